//! A processing element: what it holds, what each instruction makes of that, and what it counts.

use serde::Serialize;

use super::group::Group;
use super::isa::{self, Method, Operation, address};
use super::machine::Machine;

/// Why an element gave up. It takes and drops what comes then, and its outputs are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// What was to be inverted is not a unit.
    NoInverse,
    /// An instruction reaches out of a buffer, or a weight is over 8 in [`Method::Buckets`].
    Range,
    /// A word that is not an instruction.
    Unknown,
    /// An instruction came before a context.
    NoContext,
}

impl Fault {
    /// The error's number in the chip's report.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::NoInverse => 3,
            Self::Range => 4,
            Self::Unknown => 5,
            Self::NoContext => 7,
        }
    }
}

/// What elements did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Work {
    /// Multiplications of inputs into terms, and of mode 2.
    pub multiplications: u64,
    /// Squarings, of alignment, of digits, and of mode 2.
    pub squarings: u64,
    /// Inversions.
    pub inversions: u64,
    /// Multiplications that bring an inverse back to Montgomery's form: two an inversion.
    pub conversions: u64,
    /// Multiplications of terms with one another and into outputs.
    pub reductions: u64,
    /// Copies: the first input of a term, a term into an empty one, the first factor of an output.
    pub copies: u64,
    /// Zero bits of weights and exponents, which cost nothing.
    pub zero_bits: u64,
}

impl Work {
    /// Montgomery multiplications of any kind.
    #[must_use]
    pub fn montgomery(&self) -> u64 {
        self.multiplications + self.squarings + self.conversions + self.reductions
    }

    /// Cycles of all that, one after the other.
    #[must_use]
    pub fn cycles(&self, machine: &Machine) -> u64 {
        (self.montgomery() - self.conversions) * machine.multiply_cycles()
            + self.inversions * machine.invert_cycles()
            + self.copies * machine.copy_cycles()
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.multiplications += other.multiplications;
        self.squarings += other.squarings;
        self.inversions += other.inversions;
        self.conversions += other.conversions;
        self.reductions += other.reductions;
        self.copies += other.copies;
        self.zero_bits += other.zero_bits;
    }
}

/// Why an element can't go on.
pub(super) enum Stop {
    /// The chip would have given the element up.
    Fault(Fault),
    /// The stream is wrong.
    Never(String),
}

pub(super) fn never<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Never(why.into()))
}

pub(super) struct Output<E> {
    pub(super) value: Option<E>,
    pub(super) full: bool,
}

/// A processing element.
pub(super) struct Element<'a, G: Group> {
    group: &'a G,
    /// Bits of a weight; none before a context.
    pub(super) width: Option<usize>,
    inputs: Vec<Option<G::Element>>,
    /// Words, and the regions that they came as.
    weights: Vec<Option<([u64; 4], u8)>>,
    pub(super) terms: Vec<Option<G::Element>>,
    pub(super) outputs: Vec<Output<G::Element>>,
    slots_busy: u16,
    regions_busy: u8,
    pub(super) work: Work,
    pub(super) fault: Option<(Fault, u32)>,
    /// Instructions of its queue that it has finished.
    pub(super) finished: u32,
    pub(super) given: bool,
}

impl<'a, G: Group> Element<'a, G> {
    pub(super) fn new(group: &'a G) -> Self {
        Self {
            group,
            width: None,
            inputs: vec![None; isa::INPUT_SLOTS],
            weights: vec![None; isa::WEIGHT_WORDS],
            terms: vec![None; isa::TERMS],
            outputs: (0..isa::OUTPUT_SLOTS).map(|_| Output { value: None, full: false }).collect(),
            slots_busy: 0,
            regions_busy: 0,
            work: Work::default(),
            fault: None,
            finished: 0,
            given: false,
        }
    }

    pub(super) fn load_inputs(&mut self, slot: usize, inputs: &[G::Element]) -> Result<(), Stop> {
        if self.width.is_none() {
            return Err(Stop::Fault(Fault::NoContext));
        }
        for (slot, input) in (slot..).zip(inputs) {
            if self.slots_busy >> slot & 1 == 1 {
                return never(format!("waits for input slot {slot}, which nothing frees,"));
            }
            self.slots_busy |= 1 << slot;
            self.inputs[slot] = Some(input.clone());
        }
        Ok(())
    }

    pub(super) fn load_weights(&mut self, word: usize, words: &[[u64; 4]], regions: u8) -> Result<(), Stop> {
        if self.regions_busy & regions != 0 {
            return never(format!("waits for the regions {regions:#b} of the weights, which nothing frees,"));
        }
        self.regions_busy |= regions;
        for (place, word) in self.weights[word..].iter_mut().zip(words) {
            *place = Some((*word, regions));
        }
        Ok(())
    }

    fn input(&self, slot: usize) -> Result<G::Element, Stop> {
        match &self.inputs[slot] {
            None => never(format!("reads input slot {slot}, never loaded,")),
            Some(_) if self.slots_busy >> slot & 1 == 0 => {
                never(format!("reads input slot {slot} after its free"))
            }
            Some(input) => Ok(input.clone()),
        }
    }

    fn weight_word(&self, word: usize) -> Result<[u64; 4], Stop> {
        match self.weights[word] {
            None => never(format!("reads word {word} of the weights, never loaded,")),
            Some((_, regions)) if self.regions_busy & regions != regions => {
                never(format!("reads word {word} of the weights after their free"))
            }
            Some((word, _)) => Ok(word),
        }
    }

    /// The signed weight at an address.
    fn weight(&self, at: usize, width: usize) -> Result<i64, Stop> {
        let in_word = isa::WORD_BITS / width;
        let (word, bit) = (self.weight_word(at / in_word)?, at % in_word * width);
        Ok((word[bit / 64] << (64 - width - bit % 64)) as i64 >> (64 - width))
    }

    /// Multiplies a term, or fills it.
    fn gather(&mut self, term: usize, by: &G::Element) -> bool {
        let held = &mut self.terms[term];
        let full = held.is_some();
        *held = Some(held.as_ref().map_or_else(|| by.clone(), |held| self.group.multiply(held, by)));
        self.work.copies += u64::from(!full);
        full
    }

    fn invert(&mut self, x: &G::Element) -> Result<G::Element, Stop> {
        self.work.inversions += 1;
        let inverse = self.group.invert(x).ok_or(Stop::Fault(Fault::NoInverse))?;
        self.work.conversions += 2;
        Ok(inverse)
    }

    /// The terms of a partial sum.
    fn places(&self, sum: u8, method: Method) -> Result<std::ops::Range<usize>, Stop> {
        let width = self.width.ok_or(Stop::Fault(Fault::NoContext))?;
        let start = usize::from(sum) * width;
        match method {
            Method::Buckets => Ok(0..isa::TERMS),
            Method::BitSerial if start + width <= isa::TERMS => Ok(start..start + width),
            Method::BitSerial => Err(Stop::Fault(Fault::Range)),
        }
    }

    /// Does what its queue brings.
    pub(super) fn step(&mut self, operation: Operation) -> Result<(), Stop> {
        match operation {
            Operation::Free { slots, regions } => {
                self.slots_busy &= !slots;
                self.regions_busy &= !regions;
            }
            Operation::Clear { sum, all } => {
                let method = if all { Method::Buckets } else { Method::BitSerial };
                let places = self.places(sum, method)?;
                self.terms[places].fill(None);
            }
            Operation::Accumulate { sum, slot, count, weight, method, delta } => {
                let places = self.places(sum, method)?;
                let (slot, count) = (usize::from(slot), usize::from(count));
                let (weight, width) = (usize::from(weight), self.width.ok_or(Stop::Fault(Fault::NoContext))?);
                let weights = isa::WEIGHT_WORDS * isa::WORD_BITS / width;
                if slot + count > isa::INPUT_SLOTS || weight + count > weights {
                    return Err(Stop::Fault(Fault::Range));
                }
                for i in 0..count {
                    let value = self.weight(weight + i, width)?;
                    let inverse = (slot + i + usize::from(delta)) % isa::INPUT_SLOTS;
                    self.accumulate(places.start, method, value, width, slot + i, inverse)?;
                }
            }
            Operation::Align { sum } => {
                for (bit, place) in self.places(sum, Method::BitSerial)?.enumerate() {
                    let Some(term) = &mut self.terms[place] else { continue };
                    for _ in 0..bit {
                        *term = self.group.square(term);
                    }
                    self.work.squarings += bit as u64;
                }
            }
            Operation::Invert { sum } => {
                let last = self.places(sum, Method::BitSerial)?.end - 1;
                if let Some(term) = self.terms[last].take() {
                    self.terms[last] = Some(self.invert(&term)?);
                }
            }
            Operation::Reduce { sum, slot, method, chain, shift, last } => {
                let places = self.places(sum, method)?;
                self.reduce(places, usize::from(slot), method, chain.then_some(shift), last)?;
            }
            Operation::Multiply { to, x, y } => {
                let (x, y) = (self.operand(x)?, self.operand(y)?);
                self.work.multiplications += 1;
                self.set(to, self.group.multiply(&x, &y))?;
            }
            Operation::Square { to, x, times } => {
                let mut x = self.operand(x)?;
                for _ in 0..times {
                    x = self.group.square(&x);
                }
                self.work.squarings += u64::from(times);
                self.set(to, x)?;
            }
            Operation::Power { to, x, word, bits, steady } => {
                let words = usize::from(bits).div_ceil(isa::WORD_BITS);
                if to == x || usize::from(word) + words > isa::WEIGHT_WORDS {
                    return Err(Stop::Fault(Fault::Range));
                }
                let x = self.operand(x)?;
                let power = self.power(&x, usize::from(word), usize::from(bits), steady)?;
                self.set(to, power)?;
            }
            Operation::Inverse { to, x } => {
                let x = self.operand(x)?;
                let inverse = self.invert(&x)?;
                self.set(to, inverse)?;
            }
            Operation::End
            | Operation::LoadInput { .. }
            | Operation::LoadWeights { .. }
            | Operation::Store { .. }
            | Operation::Context { .. }
            | Operation::Nop => {} // the controller's
        }
        Ok(())
    }

    fn accumulate(
        &mut self,
        first: usize,
        method: Method,
        weight: i64,
        width: usize,
        slot: usize,
        inverse: usize,
    ) -> Result<(), Stop> {
        // Whatever its weight is, an input has to be there.
        let input = self.input(slot)?;
        match method {
            Method::BitSerial => {
                for bit in 0..width {
                    if weight >> bit & 1 == 0 {
                        self.work.zero_bits += 1;
                    } else if self.gather(first + bit, &input) {
                        self.work.multiplications += 1;
                    }
                }
            }
            Method::Buckets => {
                if weight.unsigned_abs() > isa::TERMS as u64 {
                    return Err(Stop::Fault(Fault::Range));
                }
                let input = if weight < 0 { self.input(inverse)? } else { input };
                match weight.unsigned_abs() {
                    0 => self.work.zero_bits += width as u64,
                    value => {
                        let full = self.gather(first + value as usize - 1, &input);
                        self.work.multiplications += u64::from(full);
                    }
                }
            }
        }
        Ok(())
    }

    fn reduce(
        &mut self,
        places: std::ops::Range<usize>,
        slot: usize,
        method: Method,
        chain: Option<u8>,
        last: bool,
    ) -> Result<(), Stop> {
        if self.outputs[slot].full {
            return never(format!("waits for output slot {slot}, which nothing stores,"));
        }
        if method == Method::Buckets {
            for place in places.clone().rev().skip(1) {
                if let Some(above) = self.terms[place + 1].clone() {
                    self.work.reductions += u64::from(self.gather(place, &above));
                }
            }
        }
        let mut product = match chain {
            None => None,
            Some(shift) => {
                let Some(mut value) = self.outputs[slot].value.take() else {
                    return never(format!("goes on with output slot {slot}, which nothing began,"));
                };
                for _ in 0..shift {
                    value = self.group.square(&value);
                }
                self.work.squarings += u64::from(shift);
                Some(value)
            }
        };
        for term in self.terms[places].iter_mut().filter_map(Option::take) {
            product = Some(match product {
                None => {
                    self.work.copies += 1;
                    term
                }
                Some(product) => {
                    self.work.reductions += 1;
                    self.group.multiply(&product, &term)
                }
            });
        }
        let value = product.unwrap_or_else(|| {
            self.work.copies += 1;
            self.group.one()
        });
        self.outputs[slot] = Output { value: Some(value), full: last };
        Ok(())
    }

    fn power(&mut self, x: &G::Element, word: usize, bits: usize, steady: bool) -> Result<G::Element, Stop> {
        let mut set = Vec::with_capacity(bits);
        for bit in 0..bits {
            let word = self.weight_word(word + bit / isa::WORD_BITS)?;
            set.push(word[bit % isa::WORD_BITS / 64] >> (bit % 64) & 1 == 1);
        }
        let mut power: Option<G::Element> = None;
        for set in set.iter().rev() {
            power = power.map(|power| self.group.square(&power));
            if *set {
                power = Some(power.map_or_else(|| x.clone(), |power| self.group.multiply(&power, x)));
            }
        }
        let ones = set.iter().filter(|set| **set).count() as u64;
        let length = set.iter().rposition(|set| *set).map_or(0, |top| top as u64 + 1);
        self.work.copies += 1;
        if steady {
            self.work.squarings += bits as u64;
            self.work.multiplications += bits as u64;
        } else {
            self.work.squarings += length.saturating_sub(1);
            self.work.multiplications += ones.saturating_sub(1);
            self.work.zero_bits += bits as u64 - ones;
        }
        Ok(power.unwrap_or_else(|| self.group.one()))
    }

    /// What lies at an address.
    fn operand(&self, at: u8) -> Result<G::Element, Stop> {
        if self.width.is_none() {
            return Err(Stop::Fault(Fault::NoContext));
        }
        let held = match at {
            0..address::TERM => return self.input(at.into()),
            address::TERM..address::OUTPUT => &self.terms[usize::from(at - address::TERM)],
            address::OUTPUT..26 => &self.outputs[usize::from(at - address::OUTPUT)].value,
            address::ONE => return Ok(self.group.one()),
            address::SQUARED | address::LITERAL => {
                return never(format!("multiplies by address {at}, which means nothing in a group,"));
            }
            _ => return Err(Stop::Fault(Fault::Range)),
        };
        match held {
            Some(held) => Ok(held.clone()),
            None => never(format!("reads address {at}, where nothing is,")),
        }
    }

    /// Puts a result of mode 2 where it belongs.
    fn set(&mut self, to: u8, value: G::Element) -> Result<(), Stop> {
        if to < address::OUTPUT {
            self.terms[usize::from(to - address::TERM)] = Some(value);
            return Ok(());
        }
        let slot = usize::from(to - address::OUTPUT);
        if self.outputs[slot].full {
            return never(format!("waits for output slot {slot}, which nothing stores,"));
        }
        self.outputs[slot] = Output { value: Some(value), full: true };
        Ok(())
    }
}
