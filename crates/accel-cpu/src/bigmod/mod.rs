//! Big modular arithmetic on the CPU: batches are cut over the threads, and every piece is worked out by an
//! [`Engine`], which knows one form of residues.
//!
//! The engines are [`portable`], on crypto-bigint, and [`vector`], which keeps a number a lane. What is built of multiplications alone, [`invert`] and [`multi_exp`], is written once for all.

pub(crate) mod field;
mod invert;
mod multi_exp;
mod portable;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod vector;

use std::sync::Arc;
use std::time::Instant;

use blindcore_accel::bigmod::{
    BigModulus, Bigmod, Exponents, FixedBase, Form, HostRows, MAX_EXPONENT_BITS, MultiExp, Numbers, Residues,
    check_exponents,
};
use blindcore_accel::{Cost, Error, Line};
use rayon::prelude::*;

#[cfg(target_arch = "x86_64")]
use crate::arch::{avx2, avx512};
use crate::{Features, Isa};

/// Arithmetic modulo one number, on rows: residues in this engine's form, [`Engine::row_lines`] lines each.
///
/// Where a method takes lists of rows, it takes any number of them and writes as many rows to `out`, in order.
pub(crate) trait Engine: Send + Sync {
    /// What the rows hold, for messages and to tell forms apart.
    fn form(&self) -> &'static str;

    /// Lines of a row.
    fn row_lines(&self) -> usize;

    /// Rows that are worked on at once; fewer cost as much.
    fn lanes(&self) -> usize;

    /// Bits of an exponent that [`Engine::power`] takes at once.
    fn window(&self) -> u32 {
        WINDOW
    }

    /// Takes numbers below the modulus into rows.
    fn enter(&self, numbers: &[&[u64]], out: &mut [Line]);

    /// Gives rows back as numbers below the modulus, one after the other.
    fn leave(&self, rows: &[&[Line]], out: &mut [u64]);

    /// `x[i] * y[i]`.
    fn multiply(&self, x: &[&[Line]], y: &[&[Line]], out: &mut [Line]);

    /// The product of each list; one for an empty one.
    fn products(&self, lists: &[Vec<&[Line]>], out: &mut [Line]);

    /// `rows[slots[i]] *= y[i]`; the slots are all different.
    fn multiply_into(&self, rows: &mut [Line], slots: &[usize], y: &[&[Line]]);

    /// `x[i] * y[i] ^ times`.
    fn multiply_times(&self, x: &[&[Line]], y: &[&[Line]], times: u32, out: &mut [Line]);

    /// `x[i] ^ (2 ^ times)`.
    fn square(&self, x: &[&[Line]], times: u32, out: &mut [Line]);

    /// `x[i] ^ exponents[i]`, of which `bits` bits count, in constant time.
    fn power(&self, x: &[&[Line]], exponents: &[&[u64]], bits: u32, out: &mut [Line]);

    /// Multiplications that are done in a second where nothing but multipliers holds them up, and squarings; nothing for
    /// an engine that is not made of vectors.
    fn limit(&self) -> Option<(f64, f64)>;

    /// What powers of one base, to exponents of `bits` bits, are made from.
    fn table(self: Arc<Self>, base: &[Line], bits: u32) -> Box<dyn Table>;
}

/// Powers of one base.
pub(crate) trait Table: Send + Sync {
    /// `base ^ exponents[i]`, in constant time.
    fn power(&self, exponents: &[&[u64]], out: &mut [Line]);

    /// Bytes it takes.
    fn bytes(&self) -> usize;
}

/// The fastest engine for a modulus.
fn engine(features: &Features, modulus: &BigModulus) -> Arc<dyn Engine> {
    #[cfg(target_arch = "x86_64")]
    {
        use avx2::bigmod::Avx2;
        use avx512::bigmod::Avx512;
        use field::Field;
        use vector::VectorEngine;

        if let Some(token) = features.ifma {
            const FORM: &str = "cpu:avx512";
            let (five, eight) = (Field::new(modulus, 52, 5), Field::new(modulus, 52, 8));
            // Blocks of eight are the faster ones where they are as many digits, but for pairs: two products' operands and
            // what is taken from their sum are too much for the registers (measured: 3.6 and 4.3 M squares of 4096 bits per
            // second).
            return if eight.digits <= five.digits && eight.parts == 1 {
                Arc::new(VectorEngine::<Avx512<8>>::new(token, FORM, eight))
            } else {
                Arc::new(VectorEngine::<Avx512<5>>::new(token, FORM, five))
            };
        }
        if let Some(token) = features.avx2 {
            return Arc::new(VectorEngine::<Avx2>::new(token, "cpu:avx2", Field::new(modulus, 27, 4)));
        }
    }
    let _ = features;
    Arc::new(portable::Portable::new(modulus))
}

/// The form of an engine's rows. Engines that name it alike read each other's rows, if they are of one length.
#[derive(Clone, PartialEq)]
pub(crate) struct CpuForm {
    name: &'static str,
    row_lines: usize,
}

impl Form for CpuForm {
    fn name(&self) -> &str {
        self.name
    }

    fn row_lines(&self) -> usize {
        self.row_lines
    }
}

/// Residues in an engine's form.
pub(crate) type CpuRows = HostRows<CpuForm>;

/// Arithmetic modulo one number on the CPU.
#[derive(Clone)]
pub(crate) struct CpuBigmod {
    modulus: Arc<BigModulus>,
    form: CpuForm,
    engine: Arc<dyn Engine>,
    pool: Arc<rayon::ThreadPool>,
}

impl CpuBigmod {
    pub(crate) fn new(features: &Features, modulus: &BigModulus, pool: &Arc<rayon::ThreadPool>) -> Self {
        let engine = engine(features, modulus);
        let form = CpuForm { name: engine.form(), row_lines: engine.row_lines() };
        Self { modulus: Arc::new(modulus.clone()), form, engine, pool: Arc::clone(pool) }
    }

    /// The rows of residues, if they are this engine's.
    fn rows_of<'a>(&self, residues: &'a Residues) -> Result<&'a CpuRows, Error> {
        CpuRows::of(residues, &self.modulus, &self.form)
    }

    /// `count` rows to be written.
    fn rows(&self, count: usize) -> CpuRows {
        CpuRows::zeroed(self.form.clone(), count)
    }

    fn residues(&self, rows: CpuRows) -> Residues {
        Residues::new(&self.modulus, rows)
    }

    /// Rows that a thread takes at once: whole groups of lanes, a few pieces a thread where there are enough and several
    /// threads.
    fn piece(&self, count: usize) -> usize {
        let lanes = self.engine.lanes();
        let pieces = match self.pool.current_num_threads() {
            1 => 1,
            threads => 4 * threads,
        };
        count.div_ceil(pieces).next_multiple_of(lanes).min(16 * lanes)
    }

    /// Whether `count` times `products` multiplications are too few to wake other threads for.
    fn is_small(&self, count: usize, products: usize) -> bool {
        let words = self.modulus.words();
        self.pool.current_num_threads() == 1
            || count.saturating_mul(products).saturating_mul(words * words) <= SMALL
    }

    /// Makes `count` rows of some multiplications each, piece by piece over the threads; `work` gets the first position
    /// of its piece.
    fn each(&self, count: usize, products: usize, work: impl Fn(usize, &mut [Line]) + Sync) -> CpuRows {
        let mut out = self.rows(count);
        self.split(out.lines_mut(), self.engine.row_lines(), count, products, work);
        out
    }

    /// Writes `count` times `each` of anything, of some multiplications each, as [`CpuBigmod::each`] does.
    fn split<T: Send>(
        &self,
        out: &mut [T],
        each: usize,
        count: usize,
        products: usize,
        work: impl Fn(usize, &mut [T]) + Sync,
    ) {
        let piece = self.piece(count);
        let size = (piece * each).max(1);
        if self.is_small(count, products) {
            out.chunks_mut(size).enumerate().for_each(|(i, out)| work(i * piece, out));
        } else {
            self.pool.install(|| {
                out.par_chunks_mut(size).enumerate().for_each(|(i, out)| work(i * piece, out));
            });
        }
    }

    fn cost(&self, start: Instant, multiplications: usize, squarings: usize) -> Cost {
        Cost {
            seconds: start.elapsed().as_secs_f64(),
            multiplications: multiplications as u64,
            squarings: squarings as u64,
            threads: self.pool.current_num_threads(),
            ..Cost::default()
        }
    }
}

/// The rows of `all` at `first` and after, as many as `lines` holds.
fn rows<'a>(all: &'a CpuRows, first: usize, lines: &[Line]) -> Vec<&'a [Line]> {
    let row = all.row_lines();
    all.lines().chunks_exact(row).skip(first).take(lines.len() / row).collect()
}

/// The operations on rows.
impl CpuBigmod {
    fn enter(&self, numbers: &Numbers) -> Result<CpuRows, Error> {
        if numbers.is_empty() {
            return Ok(self.rows(0));
        }
        if numbers.words() != self.modulus.words() {
            let want = self.modulus.words().to_string();
            return Err(Error::Length { what: "a number", got: numbers.words(), want, unit: "words" });
        }
        let count = numbers.len();
        if let Some(position) = numbers.iter().position(|n| !below(n, self.modulus.value())) {
            return Err(Error::NotReduced { position, count });
        }
        Ok(self.each(count, 2, |first, lines| {
            let numbers: Vec<&[u64]> =
                numbers.iter().skip(first).take(lines.len() / self.form.row_lines).collect();
            self.engine.enter(&numbers, lines);
        }))
    }

    fn leave(&self, rows: &CpuRows) -> Numbers {
        let words = self.modulus.words();
        let mut out = Numbers::zeroed(rows.len(), words);
        self.split(out.as_words_mut(), words, rows.len(), 2, |first, out| {
            let lines = rows.lines().chunks_exact(rows.row_lines());
            let rows: Vec<&[Line]> = lines.skip(first).take(out.len() / words).collect();
            self.engine.leave(&rows, out);
        });
        out
    }

    /// `x[i] * y[i]`, for as many, or for a single `y`.
    fn products(&self, x: &CpuRows, y: &CpuRows) -> CpuRows {
        self.each(x.len(), 1, |first, lines| {
            let x = rows(x, first, lines);
            let y = if y.len() == 1 { vec![y.lines(); x.len()] } else { rows(y, first, lines) };
            self.engine.multiply(&x, &y, lines);
        })
    }
}

impl Bigmod for CpuBigmod {
    fn modulus(&self) -> &Arc<BigModulus> {
        &self.modulus
    }

    fn place(&self, numbers: &Numbers) -> Result<Residues, Error> {
        Ok(self.residues(self.enter(numbers)?))
    }

    fn read(&self, residues: &Residues) -> Result<Numbers, Error> {
        Ok(self.leave(self.rows_of(residues)?))
    }

    fn multiply(&self, x: &Residues, y: &Residues) -> Result<(Residues, Cost), Error> {
        let (x, y) = (self.rows_of(x)?, self.rows_of(y)?);
        let start = Instant::now();
        if y.len() != x.len() && y.len() != 1 {
            let want = format!("{} or 1", x.len());
            return Err(Error::Length { what: "the second factor", got: y.len(), want, unit: "residues" });
        }
        let out = self.products(x, y);
        Ok((self.residues(out), self.cost(start, x.len(), 0)))
    }

    fn square(&self, x: &Residues, times: u32) -> Result<(Residues, Cost), Error> {
        let x = self.rows_of(x)?;
        let start = Instant::now();
        let out = self.each(x.len(), times as usize, |first, lines| {
            self.engine.square(&rows(x, first, lines), times, lines)
        });
        Ok((self.residues(out), self.cost(start, 0, x.len() * times as usize)))
    }

    fn power(&self, x: &Residues, exponents: &Exponents<'_>) -> Result<(Residues, Cost), Error> {
        let x = self.rows_of(x)?;
        check_exponents(exponents, x.len())?;
        let start = Instant::now();
        let bits = match exponents {
            Exponents::Shared(_, bits) | Exponents::Each(_, bits) => *bits,
        };
        let out = self.each(x.len(), bits as usize, |first, lines| {
            let x = rows(x, first, lines);
            let exponents: Vec<&[u64]> = match exponents {
                Exponents::Shared(exponent, _) => vec![exponent; x.len()],
                Exponents::Each(each, _) => each.iter().skip(first).take(x.len()).collect(),
            };
            self.engine.power(&x, &exponents, bits, lines);
        });
        let (products, squares) = (bits.div_ceil(self.engine.window()) as usize, bits as usize);
        Ok((self.residues(out), self.cost(start, x.len() * products, x.len() * squares)))
    }

    fn fixed_base(&self, base: &Residues, bits: u32) -> Result<Arc<dyn FixedBase>, Error> {
        let base = self.rows_of(base)?;
        if base.len() != 1 {
            return Err(Error::Length {
                what: "the base",
                got: base.len(),
                want: "1".into(),
                unit: "residues",
            });
        }
        if bits == 0 || bits > MAX_EXPONENT_BITS {
            let why = format!("exponents of {bits} bits; 1 to {MAX_EXPONENT_BITS} are carried");
            return Err(Error::Exponent { why });
        }
        let table = self.pool.install(|| Arc::clone(&self.engine).table(base.lines(), bits));
        Ok(Arc::new(CpuFixedBase { bigmod: self.clone(), table, bits }))
    }

    fn invert(&self, x: &Residues) -> Result<(Residues, Cost), Error> {
        let x = self.rows_of(x)?;
        let start = Instant::now();
        let (out, multiplications) = self.invert_all(x)?;
        Ok((self.residues(out), self.cost(start, multiplications, 0)))
    }

    fn multi_exp(&self, x: &Residues, multi_exp: &MultiExp) -> Result<(Residues, Cost), Error> {
        let x = self.rows_of(x)?;
        multi_exp.check(x.len())?;
        let start = Instant::now();
        let (out, multiplications, squarings) = self.multi_exp_all(x, multi_exp)?;
        Ok((self.residues(out), self.cost(start, multiplications, squarings)))
    }
}

/// Word products of a job that is done before another thread is awake: some 100 us.
const SMALL: usize = 1 << 20;

/// What the kernels of an instruction set do in a second, one thread, operands in their registers' layout: for
/// benchmarks.
#[derive(Clone, Copy, Debug)]
pub struct KernelRates {
    /// Montgomery multiplications.
    pub multiplications: f64,
    /// Montgomery squarings.
    pub squarings: f64,
    /// Both, if multipliers were all that holds them up: measured just before.
    pub limit: Option<(f64, f64)>,
}

/// Measures [`KernelRates`] over about `times` multiplications.
///
/// # Panics
/// This machine has no such instruction set: see [`Isa::available`].
#[must_use]
pub fn kernel_rates(isa: Isa, modulus: &BigModulus, times: u32) -> KernelRates {
    let features = Features::of(isa).unwrap_or_else(|missing| {
        panic!("{} can't be measured here: this machine has no {missing}", isa.device_name())
    });
    let engine = engine(&features, modulus);
    let lanes = engine.lanes();
    let times = times.div_ceil(lanes as u32).max(1);
    let mut number = vec![0; modulus.words()];
    number[0] = 3.min(modulus.value()[0] - 1);
    let mut rows = vec![Line([0; 8]); lanes * engine.row_lines()];
    engine.enter(&vec![number.as_slice(); lanes], &mut rows);
    let rows: Vec<&[Line]> = rows.chunks_exact(engine.row_lines()).collect();
    let mut out = vec![Line([0; 8]); lanes * engine.row_lines()];
    let limit = engine.limit();
    let mut rate = |work: &mut dyn FnMut(&mut [Line])| {
        let start = Instant::now();
        work(&mut out);
        f64::from(times) * lanes as f64 / start.elapsed().as_secs_f64()
    };
    KernelRates {
        multiplications: rate(&mut |out| engine.multiply_times(&rows, &rows, times, out)),
        squarings: rate(&mut |out| engine.square(&rows, times, out)),
        limit,
    }
}

/// Bits of an exponent that are taken at once, at most.
pub(crate) const WINDOW: u32 = 5;

/// Whether `x < y`, for as many words, in time that shows neither.
fn below(x: &[u64], y: &[u64]) -> bool {
    x.iter().zip(y).fold(false, |borrow, (x, y)| x.borrowing_sub(*y, borrow).1)
}

struct CpuFixedBase {
    bigmod: CpuBigmod,
    table: Box<dyn Table>,
    bits: u32,
}

impl FixedBase for CpuFixedBase {
    fn power(&self, exponents: &Numbers) -> Result<(Residues, Cost), Error> {
        check_exponents(&Exponents::Each(exponents, self.bits), exponents.len())?;
        let start = Instant::now();
        let out = self.bigmod.each(exponents.len(), self.bits as usize / 8 + 1, |first, lines| {
            let count = lines.len() / self.bigmod.engine.row_lines();
            let exponents: Vec<&[u64]> = exponents.iter().skip(first).take(count).collect();
            self.table.power(&exponents, lines);
        });
        Ok((self.bigmod.residues(out), self.bigmod.cost(start, 0, 0)))
    }

    fn bytes(&self) -> usize {
        self.table.bytes()
    }
}
