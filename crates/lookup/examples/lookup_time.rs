//! Whether what a client of a lookup without a hint computes takes the same time whatever it asks for and whatever its secrets
//! are: Welch's t-test on two classes of inputs, after Reparaz, Balasch and Verbauwhede, "Dude, is my code constant time?"
//! (2016).
//!
//! ```sh
//! cargo run --release -p blindcore-lookup --example lookup_time [SECONDS]
//! ```
//!
//! Prints a line a test with its largest |t| over crops of the slowest samples, and exits with 1 if one is over 10,
//! which the paper's tool calls a definite leak; under 4.5 there is no evidence of one.

#![allow(clippy::print_stdout)]

use std::cell::RefCell;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blindcore_lookup::{Client, Geometry, Params, Selection, schemes};
use blindcore_math::SecretRng;
use blindcore_testing::{LEAK, welch};

type Failure = Box<dyn std::error::Error>;

/// Inputs of a class.
const INPUTS: u64 = 64;

fn main() -> Result<ExitCode, Failure> {
    let seconds = std::env::args().nth(1).map_or(Ok(10), |s| s.parse())?;
    let time = Duration::from_secs(seconds);
    println!("two classes of inputs, {seconds} s a test; |t| over {LEAK} is a leak");
    // Few columns, so that there are many samples; one ciphertext of thirty-three is picked.
    let geometry = Geometry { record_bytes: 256, groups: 33, columns: 64 };
    let params = Params::new(schemes::find("hintless")?, geometry)?;
    let client = Client::new(params, Arc::new(vec![7; params.hint_bytes() as usize]))?;
    let rng = RefCell::new(SecretRng::from_os()?);
    let choose = || {
        let mut choice = [0; 2];
        rng.borrow_mut().fill(&mut choice);
        Ok::<_, Failure>(choice)
    };
    let mut worst: f64 = 0.0;
    let mut report = |what: &str, (t, samples): (f64, usize)| {
        worst = worst.max(t.abs());
        println!("{what:62} |t| = {:5.2}  {samples} samples", t.abs());
    };

    // Slot 0 again and again, and others.
    let classes = [vec![0; INPUTS as usize], (0..INPUTS).map(|i| i * 31 % geometry.slots()).collect()];
    let selection = |slot: &u64| Selection::index(&geometry, *slot);
    let found = welch(time, &classes, choose, |slot| {
        let (prepared, selection) = (client.prepare()?, selection(slot)?);
        let begin = Instant::now();
        std::hint::black_box(client.query(prepared, &selection)?);
        Ok(begin.elapsed())
    })?;
    report("queries (encoding), one slot or others", found);

    let mut answer = vec![0; params.answer_bytes()];
    rng.borrow_mut().fill(&mut answer);
    let found = welch(time, &classes, choose, |slot| {
        let (_, pending) = client.query(client.prepare()?, &selection(slot)?)?;
        let begin = Instant::now();
        std::hint::black_box(client.decode(pending, &answer)?);
        Ok(begin.elapsed())
    })?;
    report("decoding, one slot or others", found);

    // Answers of zeros and random ones: noise that is outside, or not.
    let answers = [
        vec![vec![0; params.answer_bytes()]; INPUTS as usize],
        (0..INPUTS)
            .map(|_| {
                let mut answer = vec![0; params.answer_bytes()];
                rng.borrow_mut().fill(&mut answer);
                answer
            })
            .collect(),
    ];
    let found = welch(time, &answers, choose, |answer| {
        let (_, pending) = client.query(client.prepare()?, &selection(&5)?)?;
        let begin = Instant::now();
        std::hint::black_box(client.decode(pending, answer)?);
        Ok(begin.elapsed())
    })?;
    report("decoding, zeros or random answers", found);

    // Samplers draw from a stream that no class decides: what can show is the stream's position.
    let found = welch(time, &[vec![0usize; 8], vec![1usize; 8]], choose, |which| {
        let mut out = vec![0i8; 2048];
        let mut rng = rng.borrow_mut();
        let begin = Instant::now();
        let _ = which;
        rng.fill_ternary(&mut out);
        rng.fill_centred_binomial(21, &mut out);
        std::hint::black_box(&out);
        Ok::<_, Failure>(begin.elapsed())
    })?;
    report("sampling, twice the same (what the test itself shows)", found);

    let leak = worst > LEAK;
    println!("{}", if leak { "a leak" } else { "no leak found" });
    Ok(if leak { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
