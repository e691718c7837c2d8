//! The bigmod operation on a card: batches over all elements.

use std::sync::Arc;

use super::compiler::Body;
use super::compiler::isa::{Operation, address};
use blindcore_accel::bigmod::{
    BigModulus, Bigmod, BigmodCapabilities, BigmodSlot, Exponents, FixedBase, MAX_EXPONENT_BITS, Method,
    MultiExp, Numbers, Residues, check_exponents,
};
use blindcore_accel::{Cost, Device, Error, Slots};
use zeroize::Zeroize;

use super::batch::{Batch, Places, SHARED, Words};
use super::card::{Card, CardSettings};
use super::context::{Context, DIGIT, DIGIT_BITS, MAX_BITS, get, put};
use super::report::{Failure, NO_INVERSE, Run};

/// Squarings and bits of an exponent that an instruction carries at most.
const MAX_TIMES: u16 = (1 << 13) - 1;
const MAX_POWER_BITS: u32 = 4096;

/// Simulated PH-EPU as a device for bigmod.
#[derive(Clone)]
pub struct Phepu {
    card: Arc<Card>,
}

impl Phepu {
    /// The names of the devices that there are.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Card::names()
    }

    /// Opens a device whose links cost no time: what its chips alone take.
    ///
    /// # Errors
    /// There is no such device, or its library has not been built.
    pub fn open(name: &str) -> Result<Self, Error> {
        Self::with_settings(name, CardSettings::UNBOUND)
    }

    /// Opens a device that is run another way.
    ///
    /// # Errors
    /// As [`Card::with_settings`].
    pub fn with_settings(name: &str, settings: CardSettings) -> Result<Self, Error> {
        Ok(Self { card: Arc::new(Card::with_settings(name, settings)?) })
    }

    /// This card as a device, with a bigmod slot.
    #[must_use]
    pub fn device(&self) -> Device {
        let bigmod = Some(Arc::new(self.clone()) as _);
        Device::new(self.card.describe(), Slots { bigmod, ..Slots::default() })
    }

    /// The card, for streams of one's own.
    #[must_use]
    pub fn card(&self) -> &Card {
        &self.card
    }
}

impl BigmodSlot for Phepu {
    fn capabilities(&self) -> BigmodCapabilities {
        let methods = vec![Method::BitSerial, Method::Buckets];
        BigmodCapabilities { bits: MAX_BITS, methods, simulated: true }
    }

    fn prepare(&self, modulus: &BigModulus) -> Result<Arc<dyn Bigmod>, Error> {
        let context = Context::new(&Arc::new(modulus.clone()))?;
        Ok(Arc::new(PhepuBigmod { card: Arc::clone(&self.card), context }))
    }
}

/// Arithmetic modulo one number on a card.
#[derive(Clone)]
pub(super) struct PhepuBigmod {
    pub(super) card: Arc<Card>,
    pub(super) context: Context,
}

impl PhepuBigmod {
    pub(super) fn digits(&self) -> usize {
        self.context.digits()
    }

    /// Items of one residue each, all there are.
    fn each(&self, count: usize) -> Vec<Vec<u32>> {
        (0..count as u32).map(|i| vec![i]).collect()
    }

    /// Runs a batch; none where there are no items.
    pub(super) fn run(&self, batch: &Batch<'_>, residues: &Residues) -> Result<Option<Run>, Error> {
        if batch.items.is_empty() {
            return Ok(None);
        }
        let mut stream = batch.stream(&self.card.build());
        let run = self.card.run(&stream, &self.context, residues);
        for packet in &mut stream.packets {
            if let Body::Weights { words, .. } = &mut packet.body {
                words.zeroize(); // exponents
            }
        }
        run.map(Some)
    }

    /// A batch in which nothing can fail, and what it cost.
    fn results(&self, batch: &Batch<'_>, residues: &Residues) -> Result<(Residues, Cost), Error> {
        let run = self.run(batch, residues)?.map(Run::whole).transpose()?;
        Ok(match run {
            Some(run) => {
                let cost = run.cost();
                (run.outputs, cost)
            }
            None => (self.context.none(), Cost::default()),
        })
    }

    /// Each of `residues` times one of the constants.
    fn convert(&self, residues: &Residues, constant: u8) -> Result<Residues, Error> {
        let steps = |_, at: &Places| vec![Operation::Multiply { to: at.output, x: at.input, y: constant }];
        let batch = Batch {
            digits: self.digits(),
            items: self.each(residues.len()),
            shared: None,
            words: Words::None,
            steps: &steps,
        };
        Ok(self.results(&batch, residues)?.0)
    }

    /// `x[i] ^ exponent`: of each its own residue, or of all the only one.
    fn powers(&self, x: &Residues, exponents: &Exponents<'_>) -> Result<(Residues, Cost), Error> {
        let (count, bits) = match exponents {
            Exponents::Shared(_, bits) => (x.len(), *bits),
            Exponents::Each(each, bits) => (each.len(), *bits),
        };
        let one_base = x.len() == 1 && count > 1;
        let length = (bits as usize).div_ceil(DIGIT_BITS);
        let steps = |_, at: &Places| {
            let base = if one_base { SHARED } else { at.input };
            let word = if let Exponents::Shared(..) = exponents { 0 } else { at.word };
            power(at.output, base, word, bits)
        };
        let mut shared = Vec::new();
        let each = |item: usize, words: &mut [[u64; DIGIT]]| {
            if let Exponents::Each(each, _) = exponents {
                lay(each.get(item), words);
            }
        };
        let words = match exponents {
            Exponents::Shared(exponent, _) => {
                shared.resize(length, [0; DIGIT]);
                lay(exponent, &mut shared);
                Words::Shared(&shared)
            }
            Exponents::Each(..) => Words::Each(length, &each),
        };
        let batch = Batch {
            digits: self.digits(),
            items: if one_base { vec![Vec::new(); count] } else { self.each(count) },
            shared: one_base.then_some(0),
            words,
            steps: &steps,
        };
        let results = self.results(&batch, x);
        shared.zeroize();
        let (out, cost) = results?;
        // Squarings between the pieces of a long exponent, then a product.
        let pieces = u64::from(bits.div_ceil(MAX_POWER_BITS) - 1);
        let (count, bits) = (count as u64, u64::from(bits));
        let (multiplications, squarings) =
            (count * (bits + pieces), count * (bits + pieces * u64::from(MAX_POWER_BITS)));
        Ok((out, Cost { multiplications, squarings, ..cost }))
    }

    /// Inverses; the first that has none is named.
    pub(super) fn invert_all(&self, x: &Residues) -> Result<(Residues, Cost), Error> {
        let steps = |_, at: &Places| vec![Operation::Inverse { to: at.output, x: at.input }];
        let batch = Batch {
            digits: self.digits(),
            items: self.each(x.len()),
            shared: None,
            words: Words::None,
            steps: &steps,
        };
        let Some(run) = self.run(&batch, x)? else { return self.results(&batch, x) };
        let failures = run.failures();
        if !failures.is_empty() && failures.iter().all(|failure| failure.code == NO_INVERSE) {
            // An element that fails skips the rest: the first of its items that has no inverse is known, and so the first of
            // all. An item takes two instructions, INVERT and FREE.
            let (build, count) = (self.card.build(), x.len());
            let item = |f: &Failure| Some(Batch::item(&build, f.chip, f.element?, f.at as usize / 2));
            if let Some(position) = failures.iter().filter_map(item).min().filter(|item| *item < count) {
                return Err(Error::NotInvertible { position, count });
            }
        }
        let run = run.whole()?;
        let cost = Cost { multiplications: run.multiplications(), ..run.cost() };
        Ok((run.outputs, cost))
    }
}

/// Writes an exponent into words of the weight buffer, by their number alone.
fn lay(exponent: &[u64], words: &mut [[u64; DIGIT]]) {
    for (i, word) in words.as_flattened_mut().iter_mut().enumerate() {
        *word = exponent.get(i).copied().unwrap_or(0);
    }
}

/// `base ^ exponent`, of `bits` bits from `word` on, in time that depends on `bits` alone. What is longer than an instruction
/// carries is taken in pieces, the highest first: between two of them 4096 squarings.
pub(super) fn power(output: u8, base: u8, word: u16, bits: u32) -> Vec<Operation> {
    let (sum, piece_power) = (address::TERM, address::TERM + 1);
    let pieces = bits.div_ceil(MAX_POWER_BITS);
    let power = |to, piece: u32| Operation::Power {
        to,
        x: base,
        word: word + (piece * MAX_POWER_BITS / DIGIT_BITS as u32) as u16,
        bits: (bits - piece * MAX_POWER_BITS).min(MAX_POWER_BITS) as u16,
        steady: true,
    };
    let mut steps = vec![power(if pieces == 1 { output } else { sum }, pieces - 1)];
    for piece in (0..pieces - 1).rev() {
        let to = if piece == 0 { output } else { sum };
        steps.extend(square(sum, sum, MAX_POWER_BITS));
        steps.extend([power(piece_power, piece), Operation::Multiply { to, x: sum, y: piece_power }]);
    }
    steps
}

/// `x ^ (2 ^ times)`, `times` at least 1.
pub(super) fn square(output: u8, x: u8, times: u32) -> Vec<Operation> {
    let (mut steps, mut left, mut x) = (Vec::new(), times, x);
    while left > 0 {
        let times = left.min(MAX_TIMES.into()) as u16;
        left -= u32::from(times);
        let to = if left == 0 { output } else { address::TERM };
        steps.push(Operation::Square { to, x, times });
        x = to;
    }
    steps
}

impl Bigmod for PhepuBigmod {
    fn modulus(&self) -> &Arc<BigModulus> {
        self.context.modulus()
    }

    fn place(&self, numbers: &Numbers) -> Result<Residues, Error> {
        if numbers.is_empty() {
            return Ok(self.context.none());
        }
        let modulus = self.modulus();
        if numbers.words() != modulus.words() {
            let want = modulus.words().to_string();
            return Err(Error::Length { what: "a number", got: numbers.words(), want, unit: "words" });
        }
        let count = numbers.len();
        if let Some(position) = numbers.iter().position(|n| !below(n, modulus.value())) {
            return Err(Error::NotReduced { position, count });
        }
        let mut rows = self.context.zeroed(count);
        for (row, number) in numbers.iter().enumerate() {
            put(&mut rows, row, number);
        }
        self.convert(&self.context.residues(rows), address::SQUARED)
    }

    fn read(&self, residues: &Residues) -> Result<Numbers, Error> {
        self.context.rows(residues)?;
        let read = self.convert(residues, address::LITERAL)?;
        let rows = self.context.rows(&read)?;
        let mut out = Numbers::zeroed(rows.len(), self.modulus().words());
        for row in 0..rows.len() {
            out.get_mut(row).iter_mut().zip(get(rows, row)).for_each(|(to, word)| *to = word);
        }
        Ok(out)
    }

    fn multiply(&self, x: &Residues, y: &Residues) -> Result<(Residues, Cost), Error> {
        self.context.rows(x)?;
        self.context.rows(y)?;
        let count = x.len() as u32;
        if y.len() != x.len() && y.len() != 1 {
            let want = format!("{} or 1", x.len());
            return Err(Error::Length { what: "the second factor", got: y.len(), want, unit: "residues" });
        }
        let mut both = x.clone();
        both.append(y)?;
        let one = y.len() == 1;
        let steps = |_, at: &Places| {
            let y = if one { SHARED } else { at.input + 1 };
            vec![Operation::Multiply { to: at.output, x: at.input, y }]
        };
        let batch = Batch {
            digits: self.digits(),
            items: (0..count).map(|i| if one { vec![i] } else { vec![i, count + i] }).collect(),
            shared: one.then_some(count),
            words: Words::None,
            steps: &steps,
        };
        let (out, cost) = self.results(&batch, &both)?;
        Ok((out, Cost { multiplications: count.into(), ..cost }))
    }

    fn square(&self, x: &Residues, times: u32) -> Result<(Residues, Cost), Error> {
        self.context.rows(x)?;
        if times == 0 {
            return Ok((x.clone(), Cost::default()));
        }
        let steps = |_, at: &Places| square(at.output, at.input, times);
        let batch = Batch {
            digits: self.digits(),
            items: self.each(x.len()),
            shared: None,
            words: Words::None,
            steps: &steps,
        };
        let (out, cost) = self.results(&batch, x)?;
        Ok((out, Cost { squarings: x.len() as u64 * u64::from(times), ..cost }))
    }

    /// Every bit takes a squaring and a multiplication, whose product is kept only where the bit is set.
    fn power(&self, x: &Residues, exponents: &Exponents<'_>) -> Result<(Residues, Cost), Error> {
        self.context.rows(x)?;
        check_exponents(exponents, x.len())?;
        self.powers(x, exponents)
    }

    /// Prepares nothing: a chip has no room for tables.
    fn fixed_base(&self, base: &Residues, bits: u32) -> Result<Arc<dyn FixedBase>, Error> {
        self.context.rows(base)?;
        if base.len() != 1 {
            let (what, want) = ("the base", "1".into());
            return Err(Error::Length { what, got: base.len(), want, unit: "residues" });
        }
        if bits == 0 || bits > MAX_EXPONENT_BITS {
            let why = format!("exponents of {bits} bits; 1 to {MAX_EXPONENT_BITS} are carried");
            return Err(Error::Exponent { why });
        }
        Ok(Arc::new(Base { bigmod: self.clone(), base: base.clone(), bits }))
    }

    fn invert(&self, x: &Residues) -> Result<(Residues, Cost), Error> {
        self.context.rows(x)?;
        self.invert_all(x)
    }

    /// Other methods than buckets are bit-serial.
    fn multi_exp(&self, x: &Residues, multi_exp: &MultiExp) -> Result<(Residues, Cost), Error> {
        self.context.rows(x)?;
        multi_exp.check(x.len())?;
        self.multi_exp_all(x, multi_exp)
    }
}

/// Whether `x < y`, for as many words, in time that shows neither.
fn below(x: &[u64], y: &[u64]) -> bool {
    x.iter().zip(y).fold(false, |borrow, (x, y)| x.borrowing_sub(*y, borrow).1)
}

struct Base {
    bigmod: PhepuBigmod,
    base: Residues,
    bits: u32,
}

impl FixedBase for Base {
    fn power(&self, exponents: &Numbers) -> Result<(Residues, Cost), Error> {
        let exponents = Exponents::Each(exponents, self.bits);
        let Exponents::Each(each, _) = &exponents else { unreachable!("made above") };
        check_exponents(&exponents, each.len())?;
        self.bigmod.powers(&self.base, &exponents)
    }

    fn bytes(&self) -> usize {
        self.base.len() * self.bigmod.digits() * DIGIT_BITS / 8
    }
}
