//! Whether decryption and the comb take the same time whatever they work on: Welch's t-test on two classes of inputs,
//! after Reparaz, Balasch and Verbauwhede, "Dude, is my code constant time?" (2016).
//!
//! ```sh
//! cargo run --release -p blindcore-sum --example decryption_time [DEVICE] [SECONDS]
//! ```
//!
//! Prints a line a test with its largest |t| over crops of the slowest samples, and exits with 1 if one is over 10.
//! The tool of that paper takes a value over 10 for a definite leak, and a value below 4.5 for no evidence of one.

#![allow(clippy::print_stdout)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use blindcore_accel::bigmod::{BigModulus, Exponents, Numbers};
use blindcore_accel_cpu::Cpu;
use blindcore_math::SecretRng;
use blindcore_sum::keys::{KeySize, Mode, SecretKey};
use blindcore_sum::scheme::{Decryptor, Encryptor};
use blindcore_testing::LEAK;

/// Numbers that are worked on at once: a group of lanes.
const BATCH: usize = 8;
/// Inputs of a class that are made beforehand, so that making them is not measured.
const PREPARED: usize = 64;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<ExitCode, Failure> {
    let mut arguments = std::env::args().skip(1);
    let device = Cpu::with_threads(&arguments.next().unwrap_or_else(|| "cpu".into()), 1)?;
    let seconds = arguments.next().map_or(Ok(10), |s| s.parse())?;
    let time = Duration::from_secs(seconds);
    println!("{}: two classes of inputs, {seconds} s a test; |t| over {LEAK} is a leak", device.name());

    let secret = SecretKey::generate(KeySize::test_only(1024)?, Mode::ShortExponent)?;
    let public = secret.public();
    let encryptor = Encryptor::new(public, &device)?;
    let decryptor = Decryptor::new(&secret, &device)?;
    let words = public.n().len();

    let mut worst: f64 = 0.0;
    let mut report = |what: &str, (t, samples): (f64, usize)| {
        worst = worst.max(t.abs());
        println!("{what:62} |t| = {:5.2}  {samples} samples", t.abs());
    };

    // One ciphertext again and again, and a new one each time.
    let ciphertexts = |plaintexts: &Numbers| -> Result<Numbers, Failure> {
        Ok(encryptor.bigmod().read(&encryptor.encrypt(plaintexts)?)?)
    };
    let fixed = ciphertexts(&Numbers::zeroed(BATCH, words))?;
    let random =
        (0..PREPARED).map(|_| ciphertexts(&numbers(words, words)?)).collect::<Result<Vec<_>, _>>()?;
    let decrypt = |c: &Numbers| drop(std::hint::black_box(decryptor.decrypt(c)));
    report("decryption, one ciphertext or random ones", welch(time, &fixed, &random, decrypt)?);

    // Plaintexts of zero and random ones, all ciphertexts random.
    let zeros =
        (0..PREPARED).map(|_| ciphertexts(&Numbers::zeroed(BATCH, words))).collect::<Result<Vec<_>, _>>()?;
    let classes = [zeros, random];
    report("decryption, plaintexts of zero or random ones", compare(time, &classes, decrypt)?);

    // The exponent of a decryption, which is the key: few bits set, and random ones.
    let modulus = BigModulus::square_of(secret.primes().0)?;
    let bigmod = device.bigmod(&modulus)?;
    let bases = bigmod.place(&numbers(modulus.words(), modulus.words() - 1)?)?;
    let bits = 64 * words as u32 / 2;
    let mut sparse = Numbers::zeroed(BATCH, words / 2);
    sparse.get_mut(0)[words / 2 - 1] = 1 << 63;
    let random = (0..PREPARED).map(|_| numbers(words / 2, words / 2)).collect::<Result<Vec<_>, _>>()?;
    let power = |e: &Numbers| {
        drop(std::hint::black_box(bigmod.power(&bases, &Exponents::Shared(e.get(0), bits))));
    };
    report("powers to a secret exponent, sparse or random", welch(time, &sparse, &random, power)?);

    // The randomness of an encryption.
    let base = encryptor.bigmod().place(&numbers(2 * words, words)?)?.select([0]);
    let comb = encryptor.bigmod().fixed_base(&base, bits)?;
    let powers = |e: &Numbers| drop(std::hint::black_box(comb.power(e)));
    report(
        "powers of a fixed base (comb), exponent zero or random",
        welch(time, &Numbers::zeroed(BATCH, words / 2), &random, powers)?,
    );

    let leak = worst > LEAK;
    println!("{}", if leak { "a leak" } else { "no leak found" });
    Ok(if leak { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A batch of random numbers of `words` words, `used` of them filled.
fn numbers(words: usize, used: usize) -> Result<Numbers, Failure> {
    let mut out = Numbers::zeroed(BATCH, words);
    let mut bytes = vec![0; 8 * used];
    let mut rng = SecretRng::from_os()?;
    for i in 0..BATCH {
        rng.fill(&mut bytes);
        for (word, bytes) in out.get_mut(i)[..used].iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into()?);
        }
        if used == words {
            out.get_mut(i)[words - 1] >>= 1; // below any modulus with its top bit set
        }
    }
    Ok(out)
}

fn welch(
    time: Duration,
    fixed: &Numbers,
    random: &[Numbers],
    work: impl Fn(&Numbers),
) -> Result<(f64, usize), Failure> {
    // As many copies, so that both classes come from as much memory.
    compare(time, &[vec![fixed.clone(); random.len()], random.to_vec()], work)
}

/// The largest t of the two classes' times.
fn compare(
    time: Duration,
    classes: &[Vec<Numbers>; 2],
    work: impl Fn(&Numbers),
) -> Result<(f64, usize), Failure> {
    let mut rng = SecretRng::from_os()?;
    let random = || {
        let mut choice = [0u8; 2];
        rng.fill(&mut choice);
        Ok(choice)
    };
    let sample = |input: &Numbers| {
        let begin = Instant::now();
        work(input);
        Ok(begin.elapsed())
    };
    blindcore_testing::welch(time, classes, random, sample)
}
