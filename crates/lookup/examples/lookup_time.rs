//! Whether what a client of a lookup without a hint computes takes the same time whatever it asks for and whatever its secrets
//! are: Welch's t-test on two classes of inputs, after Reparaz, Balasch and Verbauwhede, "Dude, is my code constant time?"
//! (2016).
//!
//! ```sh
//! cargo run --release -p blindcore-lookup --example lookup_time [SECONDS]
//! ```
//!
//! Prints a line a test with its largest |t| over crops of the slowest samples, and exits with 1 if one is over 10.
//! The tool of that paper takes a value over 10 for a definite leak, and a value below 4.5 for no evidence of one.

#![allow(clippy::print_stdout)]

use std::cell::RefCell;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blindcore_accel::SharedBytes;
use blindcore_accel_cpu::Cpu;
use blindcore_lookup::{Client, Geometry, Params, Selection, Server, pack_group, preprocess, schemes};
use blindcore_math::SecretRng;
use blindcore_testing::{LEAK, welch};

type Failure = Box<dyn std::error::Error>;

/// What an answer has: 2048 coefficients of a mask, of 17 bits, then those of a body, of 11.
const MASK_BYTES: usize = 2048 * 17 / 8;
const BODY_BITS: usize = 11;
/// Inputs of a class.
const INPUTS: u64 = 64;

fn main() -> Result<ExitCode, Failure> {
    let seconds = std::env::args().nth(1).map_or(Ok(10), |s| s.parse())?;
    let time = Duration::from_secs(seconds);
    println!("two classes of inputs, {seconds} s a test; |t| over {LEAK} is a leak");
    // Few columns, so that there are many samples; one ciphertext of nine is picked.
    let geometry = Geometry { record_bytes: 256, groups: 9, columns: 64 };
    let params = Params::new(schemes::find("hintless")?, geometry)?;
    let rng = RefCell::new(SecretRng::from_os()?);
    let mut records = params.database_buffer();
    let mut slots = vec![0; geometry.columns * geometry.record_bytes];
    for group in 0..geometry.groups {
        rng.borrow_mut().fill(&mut slots);
        pack_group(&params, group, &slots, &mut records);
    }
    let device = Cpu::open("cpu")?;
    let records: Vec<SharedBytes> = vec![Arc::new(records)];
    let mut hint = vec![0; params.hint_bytes() as usize];
    let derived = preprocess(&params, &device, records.clone(), &mut hint, &mut ())?;
    let derived = derived.into_iter().map(|operand| vec![Arc::new(operand) as SharedBytes]);
    let server = Server::new(params, &device, [records].into_iter().chain(derived).collect())?;
    let client = Client::new(params, Arc::new(hint))?;
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

    // Honest answers, and the same with half a byte's step added to each coefficient, whose noise is outside. Both look random.
    // (Answers of zeros took another time than random ones on a busy machine, for a reason that was not found. The server
    // chooses them, and no secret enters what a mask of zeros decodes to.)
    let found = welch(time, &[vec![0u8], vec![1]], choose, |damaged| {
        let (query, pending) = client.query(client.prepare()?, &selection(&5)?)?;
        let mut answer = server.answer(&[&query])?.0.remove(0);
        let body = &mut answer[MASK_BYTES..];
        for coefficient in 0..8 * body.len() / BODY_BITS {
            // Eight bits are a byte's; the next counts half of its step.
            let bit = (coefficient + 1) * BODY_BITS - 9;
            body[bit / 8] ^= damaged << (bit % 8);
        }
        let begin = Instant::now();
        let decoded = std::hint::black_box(client.decode(pending, &answer)?);
        let took = begin.elapsed();
        assert_eq!(decoded.damaged, *damaged == 1, "the classes are not what they are said to be");
        Ok(took)
    })?;
    report("decoding, honest or damaged answers", found);

    // Samplers draw from a stream that no class decides: what can show is the stream's position.
    let found = welch(time, &[vec![0usize; 8], vec![1usize; 8]], choose, |which| {
        let mut out = vec![0i8; 2048];
        // A stream of its own: one ends after 256 GiB, which hours of samples are.
        let mut rng = SecretRng::from_os()?;
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
