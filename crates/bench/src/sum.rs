//! Encrypted sums on one core: modular arithmetic, encryption, decryption, dot products, beside their limits and peers.

use std::path::PathBuf;

use blindcore_accel::Device;
use blindcore_accel::bigmod::{BigModulus, Exponents, Method, MultiExp, Numbers, Residues};
use blindcore_accel::cost::{Bound, Cost};
use blindcore_accel_cpu::{Cpu, Isa, kernel_rates};
use blindcore_math::SecretRng;
use blindcore_sum::keys::{KeySize, Mode, SecretKey};
use blindcore_sum::packing::Packing;
use blindcore_sum::scheme::{Decryptor, Encryptor};
use blindcore_units::{Progress, Unit};
use serde_json::json;

use crate::{Report, Row, Samples, peers};

/// Inputs of a dot product: a 3 x 3 x 64 convolution.
const TERMS: usize = 576;
/// Outputs that share their inputs.
const OUTPUTS: usize = 1024;
/// Multiplications of a kernel measurement.
const TIMES: u32 = 1 << 16;
/// Ciphertexts of a batch, whose rows stay in the L2.
const BATCH: usize = 256;
/// What PH-EPU's chip does: 4096-bit Montgomery multiplications per second in its MAC mode (Fig. 15.4.7).
const CHIP: f64 = 68e6;

/// What is measured, and beside what.
#[derive(Clone, Debug)]
pub struct Options {
    /// Times that each figure is measured, 1 to 1000.
    pub repeat: usize,
    /// The CPU device, such as `cpu:avx2`; one thread of it is measured.
    pub device: String,
    /// Folder of programs that measure peers and print rows of the same ids.
    pub peers: Option<PathBuf>,
}

/// Measures rows `sum.*`.
///
/// # Errors
/// An option is out of its range, or the device or a peer's program fails.
pub fn run(args: &Options, progress: &mut dyn Progress) -> anyhow::Result<Report> {
    anyhow::ensure!((1..=1000).contains(&args.repeat), "--repeat is {}, outside 1 to 1000", args.repeat);
    let cpu = Cpu::with_threads(&args.device, 1)?;
    let peers = peers::all(args.peers.as_deref(), progress)?;
    let mut bench = Bench { repeat: args.repeat, progress, rows: Vec::new() };
    bench.kernels(Isa::named(cpu.name())?)?;
    bench.scheme(&cpu)?;
    bench.dot_products(&cpu)?;
    let mut rows = bench.rows;
    peers::beside(&mut rows, &peers);
    let settings = json!({
        "device": cpu.name(), "repeat": args.repeat, "batch": BATCH, "terms": TERMS, "outputs": OUTPUTS,
        "exponent_bits": 1024,
    });
    Ok(Report { rows, settings, notes: Vec::new() })
}

struct Bench<'a> {
    repeat: usize,
    progress: &'a mut dyn Progress,
    rows: Vec<Row>,
}

impl Bench<'_> {
    /// `count` things in every run of `work`, per second; the first run is not counted.
    fn rate<T>(
        &mut self,
        label: &str,
        count: f64,
        mut work: impl FnMut() -> anyhow::Result<T>,
    ) -> anyhow::Result<Samples> {
        let mut samples = Samples::default();
        work()?;
        for i in 0..self.repeat {
            self.progress.at(label, i as u64, Some(self.repeat as u64), Unit::Items);
            samples.time(&mut work)?;
        }
        Ok(samples.map(|seconds| count / seconds))
    }

    fn row(
        &mut self,
        id: &'static str,
        what: &'static str,
        unit: &'static str,
        value: Samples,
        of: &'static str,
        limit: f64,
    ) {
        self.rows.push(Row {
            id: id.into(),
            what,
            unit,
            threads: 1,
            value,
            of: of.into(),
            of_value: limit,
            limit: None,
        });
    }

    /// Montgomery products and squares, operands in lanes.
    fn kernels(&mut self, isa: Isa) -> anyhow::Result<()> {
        let of = "digit multipliers alone";
        for (bits, square, products, squares) in [
            (4096, false, "sum.mul.4096", "sum.sqr.4096"),
            (2048, false, "sum.mul.2048", "sum.sqr.2048"),
            (2048, true, "sum.mul.n2.2048", "sum.sqr.n2.2048"),
        ] {
            let root = odd(bits)?;
            let modulus = if square { BigModulus::square_of(&root) } else { BigModulus::odd(&root) }?;
            let [mut multiplications, mut squarings, mut limits, mut square_limits]: [Samples; 4] =
                Default::default();
            for i in 0..=self.repeat {
                self.progress.at("kernels", i as u64, Some(self.repeat as u64 + 1), Unit::Items);
                let rates =
                    kernel_rates(isa, &modulus, if isa == Isa::Portable { TIMES >> 6 } else { TIMES });
                if i > 0 {
                    multiplications.0.push(rates.multiplications / 1e6);
                    squarings.0.push(rates.squarings / 1e6);
                    let limit = rates.limit.unwrap_or((rates.multiplications, rates.squarings));
                    limits.0.push(limit.0 / 1e6);
                    square_limits.0.push(limit.1 / 1e6);
                }
            }
            let (what, what_square) = if square {
                (
                    "products modulo n^2, n of 2048 bits, in halves",
                    "squares modulo n^2, n of 2048 bits, in halves",
                )
            } else {
                ("Montgomery products of this many bits", "Montgomery squares of this many bits")
            };
            if square {
                let chip = multiplications.clone();
                self.row(
                    "sum.chip",
                    "4096-bit products of one core, of PH-EPU's chip",
                    "M/s",
                    chip,
                    "one PH-EPU chip (MAC mode)",
                    CHIP / 1e6,
                );
            }
            for (id, what, samples, limit, square) in [
                (products, what, multiplications, limits.median(), 0),
                (squares, what_square, squarings, square_limits.median(), 1),
            ] {
                self.row(id, what, "M/s", samples, of, limit);
                let seconds = 1e-6 / limit;
                let bounds = vec![Bound::seconds("lanes", seconds)];
                let (multiplications, squarings) = (1 - square, square);
                let cost =
                    Cost { seconds, threads: 1, multiplications, squarings, bounds, ..Cost::default() };
                let row = self.rows.pop().map(|row| row.limited(cost));
                self.rows.extend(row);
            }
        }
        Ok(())
    }

    fn scheme(&mut self, cpu: &Device) -> anyhow::Result<()> {
        let secret = SecretKey::generate(KeySize::new(2048)?, Mode::ShortExponent)?;
        let public = secret.public();
        let encryptor = Encryptor::new(public, cpu)?;
        let decryptor = Decryptor::new(&secret, cpu)?;
        let mut plaintexts = random(BATCH, public.n().len())?;
        for i in 0..BATCH {
            let number = plaintexts.get_mut(i);
            number[number.len() - 1] >>= 1; // below n, whose top bit is set
        }
        let encrypted = encryptor.encrypt(&plaintexts)?;
        let numbers = encryptor.bigmod().read(&encrypted)?;

        // What the comb's products and squarings take by themselves: 1024 bits in columns of 8, a squaring for each of 15.
        let kernel = |id: &str| {
            self.rows.iter().find(|row| row.id == id).map_or(f64::NAN, |row| row.value.median() * 1e6)
        };
        let (product, square) = (kernel("sum.mul.n2.2048"), kernel("sum.sqr.n2.2048"));
        let encrypt = 1.0 / (129.0 / product + 15.0 / square);
        // Both halves' powers: a squaring a bit and a product for every five.
        let rates = kernel_rates(Isa::named(cpu.name())?, &BigModulus::square_of(secret.primes().0)?, TIMES);
        let decrypt = 0.5 / (1024.0 / rates.squarings + 205.0 / rates.multiplications);

        let samples = self.rate("encrypt", BATCH as f64, || Ok(encryptor.encrypt(&plaintexts)?))?;
        self.row(
            "sum.encrypt.2048",
            "encryptions, exponents of 1024 random bits, randomness included",
            "1/s",
            samples,
            "their products and squarings alone",
            encrypt,
        );
        let samples = self.rate("decrypt", BATCH as f64, || Ok(decryptor.decrypt(&numbers)?))?;
        self.row(
            "sum.decrypt.2048",
            "decryptions by CRT, checked, in constant time",
            "1/s",
            samples,
            "their products and squarings alone",
            decrypt,
        );
        let other = encryptor.encrypt(&plaintexts)?;
        let samples =
            self.rate("add", BATCH as f64 / 1e6, || Ok(encryptor.bigmod().multiply(&encrypted, &other)?))?;
        self.row("sum.add.2048", "ciphertexts added", "M/s", samples, "sum.mul.n2.2048", product / 1e6);
        let samples = self.rate("accept", BATCH as f64 / 1e6, || Ok(encryptor.accept(&numbers)?))?;
        self.row(
            "sum.accept.2048",
            "ciphertexts from outside validated",
            "M/s",
            samples,
            "sum.mul.n2.2048",
            product / 1e6,
        );
        let exponent = random(1, 16)?;
        let samples = self.rate("power", 64.0, || {
            let powers = encryptor
                .bigmod()
                .power(&encrypted.select(0..64), &Exponents::Shared(exponent.get(0), 1024))?;
            Ok(powers)
        })?;
        let limit = 1.0 / (1024.0 / square + 205.0 / product);
        self.row(
            "sum.power.2048",
            "powers to 1024 secret bits modulo n^2",
            "1/s",
            samples,
            "their products and squarings alone",
            limit,
        );
        Ok(())
    }

    fn dot_products(&mut self, cpu: &Device) -> anyhow::Result<()> {
        let root = odd(2048)?;
        let bigmod = cpu.bigmod(&BigModulus::square_of(&root)?)?;
        // Any residues without a factor of the root do: Paillier's are such.
        let mut numbers = random(TERMS, 2 * root.len())?;
        for i in 0..TERMS {
            let number = numbers.get_mut(i);
            number[2 * root.len() - 1] = 0;
        }
        let x: Residues = bigmod.place(&numbers)?;
        let mut bytes = vec![0u8; TERMS * OUTPUTS];
        SecretRng::from_os()?.fill(&mut bytes);
        let weights: Vec<i64> = bytes.iter().map(|b| i64::from(*b as i8)).collect();
        let mut rates = Vec::new();
        let serial = 32;
        for (method, label, count) in
            [(Method::BitSerial, "bit-serial", serial), (Method::Auto, "dot products", OUTPUTS)]
        {
            let multi_exp = MultiExp { method, ..MultiExp::matrix(TERMS, weights[..TERMS * count].to_vec()) };
            rates.push(self.rate(label, count as f64, || Ok(bigmod.multi_exp(&x, &multi_exp)?))?);
        }
        let (fast, bit_serial) = (rates.remove(1), rates.remove(0));
        let slots = f64::from(Packing::plan(2048, 8, TERMS as u64, 8)?.slots());
        let serial = bit_serial.median();
        self.row(
            "sum.dot576.unpacked",
            "outputs of 576 int8 terms, tables and inversions included",
            "1/s",
            fast.clone(),
            "bit-serial, PH-EPU's dataflow",
            serial,
        );
        let packed = |samples: &Samples| samples.map(|rate| rate * TERMS as f64 * slots / 1e6);
        let of = packed(&bit_serial).median();
        self.row(
            "sum.dot576.packed",
            "the same, multiply-accumulates of plaintexts, 77 slots a ciphertext",
            "M/s",
            packed(&fast),
            "bit-serial, PH-EPU's dataflow",
            of,
        );
        Ok(())
    }
}

fn random(count: usize, words: usize) -> anyhow::Result<Numbers> {
    let mut out = Numbers::zeroed(count, words);
    let mut bytes = vec![0u8; 8 * count * words];
    SecretRng::from_os()?.fill(&mut bytes);
    for (word, bytes) in out.as_words_mut().iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    }
    Ok(out)
}

/// An odd number of exactly `bits` bits without a prime factor below 2^16.
fn odd(bits: usize) -> anyhow::Result<Vec<u64>> {
    loop {
        let mut number = random(1, bits / 64)?.get(0).to_vec();
        number[0] |= 1;
        number[bits / 64 - 1] |= 1 << 63;
        let divides = |d: &u64| {
            number.iter().rev().fold(0u128, |r, w| (r << 64 | u128::from(*w)) % u128::from(*d)) == 0
        };
        if !(3..1u64 << 16).step_by(2).any(|d| divides(&d)) {
            return Ok(number);
        }
    }
}
