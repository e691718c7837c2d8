//! Paillier as one writes it with GMP, measured on one thread: a peer of `blindcore bench sum`.
//!
//! Prints one JSON document, `{"peer": name, "rows": [{"id", "value", "n", "min", "max"}]}`; values are operations a
//! second, the median of `n` batches. `--quick` takes shorter batches.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use gmp_mpfr_sys::gmp;
use rug::integer::{IsPrime, Order};
use rug::{Assign, Integer};
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Batches a row.
const BATCHES: usize = 7;
/// Bits of n.
const BITS: u32 = 2048;
/// Bits of a short exponent.
const SHORT: u32 = BITS / 2;
/// Inputs of a dot product: a 3 x 3 x 64 convolution.
const TERMS: usize = 576;
/// Slots of 26 bits in a plaintext of 2048 bits: products of int8 by int8, summed 576 times.
const SLOTS: f64 = 77.0;

fn main() -> Result<()> {
    let batch = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => Duration::from_millis(200),
        [quick] if quick == "--quick" => Duration::from_millis(40),
        _ => return Err("usage: gmp [--quick]".into()),
    };
    let mut bench = Bench { batch, rows: Vec::new() };
    for bits in [4096, 2048] {
        multiply(&mut bench, bits)?;
    }
    paillier(&mut bench)?;
    println!("{:#}", json!({"peer": name(), "rows": bench.rows}));
    Ok(())
}

/// What it is measured with, by version.
fn name() -> String {
    let rug = include_str!("../Cargo.lock")
        .split("name = \"rug\"\nversion = \"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .unwrap_or("of unknown version");
    let [major, minor, patch] = [gmp::VERSION, gmp::VERSION_MINOR, gmp::VERSION_PATCHLEVEL];
    let build = if cfg!(feature = "native") { "for this processor" } else { "for every processor" };
    format!("GMP {major}.{minor}.{patch} built {build}, through rug {rug}")
}

struct Bench {
    batch: Duration,
    rows: Vec<Value>,
}

impl Bench {
    /// Runs `operation` in batches and keeps its rate.
    fn row(&mut self, id: &str, mut operation: impl FnMut()) -> Vec<f64> {
        let mut timed = |count: u32| {
            let start = Instant::now();
            (0..count).for_each(|_| operation());
            start.elapsed()
        };
        // Enough of them for a batch; this also warms up.
        let mut count = 1;
        loop {
            let taken = timed(count);
            if taken >= self.batch / 4 {
                count =
                    (f64::from(count) * self.batch.as_secs_f64() / taken.as_secs_f64() * 1.1).ceil() as u32;
                break;
            }
            count *= 2;
        }
        let mut rates: Vec<f64> =
            (0..BATCHES).map(|_| f64::from(count) / timed(count).as_secs_f64()).collect();
        rates.sort_by(f64::total_cmp);
        self.keep(id, &rates);
        rates
    }

    /// Keeps sorted rates.
    fn keep(&mut self, id: &str, rates: &[f64]) {
        let round = |x: f64| (x * 1000.0).round() / 1000.0;
        self.rows.push(json!({
            "id": id, "value": round(rates[rates.len() / 2]), "n": rates.len(),
            "min": round(rates[0]), "max": round(rates[rates.len() - 1]),
        }));
    }
}

/// Products and squares modulo a number of `bits` bits, into integers that exist.
fn multiply(bench: &mut Bench, bits: u32) -> Result<()> {
    let mut modulus = random(bits)?;
    modulus.set_bit(bits - 1, true).set_bit(0, true);
    let factor = random(bits)? % &modulus;
    let mut value = random(bits)? % &modulus;
    let mut product = Integer::with_capacity(2 * bits as usize);
    bench.row(&format!("sum.mul.{bits}"), || {
        product.assign(&value * &factor);
        value.assign(&product % &modulus);
    });
    bench.row(&format!("sum.sqr.{bits}"), || {
        product.assign(value.square_ref());
        value.assign(&product % &modulus);
    });
    black_box(&value);
    Ok(())
}

fn paillier(bench: &mut Bench) -> Result<()> {
    let key = Key::generate()?;
    let plaintext = random(BITS)? % &key.n;
    let [textbook, short] = [key.encrypt_textbook(&plaintext)?, key.encrypt(&plaintext)?];
    if key.decrypt(&textbook) != plaintext || key.decrypt(&short) != plaintext {
        return Err("a ciphertext decrypts to another number".into());
    }
    let sum = key.add(&textbook, &short);
    if key.decrypt(&sum) != (plaintext.clone() * 2u32) % &key.n {
        return Err("a sum decrypts to another number".into());
    }

    let exponent = random(SHORT)?;
    bench.row("sum.power.2048", || {
        let power = short.pow_mod_ref(&exponent, &key.n_square).expect("no negative exponent");
        black_box(Integer::from(power));
    });
    bench.row("sum.power.2048.secure", || {
        black_box(Integer::from(short.secure_pow_mod_ref(&exponent, &key.n_square)));
    });
    bench.row("sum.invert.2048", || {
        black_box(short.invert_ref(&key.n_square).map(Integer::from));
    });
    let mut gcd = Integer::with_capacity(BITS as usize);
    bench.row("sum.accept.2048", || {
        let below = !short.is_zero() && short < key.n_square;
        gcd.assign(short.gcd_ref(&key.n));
        black_box(below && gcd == 1);
    });
    bench.row("sum.encrypt.2048", || drop(black_box(key.encrypt(&plaintext))));
    bench.row("sum.encrypt.2048.textbook", || drop(black_box(key.encrypt_textbook(&plaintext))));
    bench.row("sum.decrypt.2048", || drop(black_box(key.decrypt(&short))));
    let mut product = Integer::with_capacity(4 * BITS as usize);
    let mut total = Integer::with_capacity(2 * BITS as usize);
    bench.row("sum.add.2048", || {
        product.assign(&textbook * &short);
        total.assign(&product % &key.n_square);
        black_box(&total);
    });

    let weights = bytes(TERMS)?.into_iter().map(|byte| byte as i8).collect::<Vec<_>>();
    let inputs = bytes(TERMS)?.into_iter().map(|byte| byte as i8).collect::<Vec<_>>();
    let ciphertexts =
        inputs.iter().map(|x| key.encrypt(&key.residue((*x).into()))).collect::<Result<Vec<_>>>()?;
    let expected: i64 = inputs.iter().zip(&weights).map(|(x, w)| i64::from(*x) * i64::from(*w)).sum();
    if key.decrypt(&key.dot(&ciphertexts, &weights)) != key.residue(expected) {
        return Err("a dot product decrypts to another number".into());
    }
    let outputs = bench.row("sum.dot576.unpacked", || drop(black_box(key.dot(&ciphertexts, &weights))));
    // The same work, had the plaintexts been packed by hand: every output then holds a sum a slot.
    let packed: Vec<f64> = outputs.iter().map(|rate| rate * TERMS as f64 * SLOTS).collect();
    bench.keep("sum.dot576.packed", &packed);
    Ok(())
}

/// A key and what its owner works out once.
struct Key {
    n: Integer,
    n_square: Integer,
    /// (-x^2)^n modulo n^2: Damgard, Jurik and Nielsen 2010, section 4.2.
    base: Integer,
    p: Half,
    q: Half,
    /// 1 / q modulo p.
    q_inverse: Integer,
}

/// One prime's side of decryption: Paillier 1999, section 7.
struct Half {
    prime: Integer,
    square: Integer,
    less_one: Integer,
    /// 1 / L((1 + n)^(prime - 1) modulo prime^2).
    factor: Integer,
}

impl Half {
    fn new(prime: Integer, n: &Integer) -> Self {
        let (square, less_one) = (prime.clone().square(), prime.clone() - 1u32);
        let mut half = Self { prime, square, less_one, factor: Integer::from(1) };
        half.factor =
            half.decrypt(&(n.clone() + 1u32)).invert(&half.prime).expect("the primes are not equal");
        half
    }

    fn decrypt(&self, ciphertext: &Integer) -> Integer {
        let power = Integer::from(ciphertext % &self.square)
            .pow_mod(&self.less_one, &self.square)
            .expect("no negative exponent");
        (power - 1u32).div_exact(&self.prime) * &self.factor % &self.prime
    }
}

impl Key {
    fn generate() -> Result<Self> {
        let (p, q) = (prime()?, prime()?);
        let n = Integer::from(&p * &q);
        let n_square = n.clone().square();
        let x = random(BITS)? % &n;
        let base = (&n_square - x.square() % &n_square).pow_mod(&n, &n_square).map_err(|_| "no power")?;
        let q_inverse = q.clone().invert(&p).map_err(|_| "the primes are equal")?;
        Ok(Self { p: Half::new(p, &n), q: Half::new(q, &n), n, n_square, base, q_inverse })
    }

    /// A number's representative below n.
    fn residue(&self, number: i64) -> Integer {
        if number < 0 { &self.n + Integer::from(number) } else { Integer::from(number) }
    }

    fn encrypt(&self, plaintext: &Integer) -> Result<Integer> {
        let exponent = random(SHORT)?;
        let hidden = Integer::from(self.base.pow_mod_ref(&exponent, &self.n_square).ok_or("no power")?);
        Ok((Integer::from(plaintext * &self.n) + 1u32) * hidden % &self.n_square)
    }

    fn encrypt_textbook(&self, plaintext: &Integer) -> Result<Integer> {
        let hidden = (random(BITS)? % &self.n).pow_mod(&self.n, &self.n_square).map_err(|_| "no power")?;
        Ok((Integer::from(plaintext * &self.n) + 1u32) * hidden % &self.n_square)
    }

    fn decrypt(&self, ciphertext: &Integer) -> Integer {
        let (p, q) = (self.p.decrypt(ciphertext), self.q.decrypt(ciphertext));
        let mut quotient = (p - &q) * &self.q_inverse % &self.p.prime;
        if quotient < 0 {
            quotient += &self.p.prime;
        }
        quotient * &self.q.prime + q
    }

    fn add(&self, a: &Integer, b: &Integer) -> Integer {
        Integer::from(a * b) % &self.n_square
    }

    /// A power for every weight, the negative ones gathered and inverted once.
    fn dot(&self, ciphertexts: &[Integer], weights: &[i8]) -> Integer {
        let bits = 4 * BITS as usize;
        let (mut product, mut power) = (Integer::with_capacity(bits), Integer::with_capacity(bits));
        let mut sides = [Integer::from(1), Integer::from(1)];
        let mut exponent = Integer::new();
        for (ciphertext, weight) in ciphertexts.iter().zip(weights) {
            if *weight == 0 {
                continue;
            }
            exponent.assign(weight.unsigned_abs());
            power.assign(ciphertext.pow_mod_ref(&exponent, &self.n_square).expect("no negative exponent"));
            let side = &mut sides[usize::from(*weight < 0)];
            product.assign(&*side * &power);
            side.assign(&product % &self.n_square);
        }
        let [positive, negative] = sides;
        let inverse = negative.invert(&self.n_square).expect("ciphertexts share no factor with n");
        positive * inverse % &self.n_square
    }
}

/// A prime of half of n's bits, 3 modulo 4 and its two top bits set.
fn prime() -> Result<Integer> {
    loop {
        let mut number = random(BITS / 2)?;
        for bit in [0, 1, BITS / 2 - 1, BITS / 2 - 2] {
            number.set_bit(bit, true);
        }
        if number.is_probably_prime(30) != IsPrime::No {
            return Ok(number);
        }
    }
}

/// A random number of up to `bits` bits, a multiple of eight, from the system.
fn random(bits: u32) -> Result<Integer> {
    Ok(Integer::from_digits(&bytes(bits as usize / 8)?, Order::Lsf))
}

fn bytes(count: usize) -> Result<Vec<u8>> {
    let mut out = vec![0; count];
    getrandom::fill(&mut out)?;
    Ok(out)
}
