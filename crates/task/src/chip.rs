//! What chips make of a stream, without clocks: the model that the hardware has to equal.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;

use crate::isa::{self, Method, Operation, Word, address};
use crate::stream::{Body, Packet, QUEUED_INSTRUCTIONS, Stream};
use crate::{Error, GlobalBuffers, Group, Machine};

/// How far a controller is behind the packets that its chip takes. A stream must give the same either way: if it
/// relied on data that comes later, [`Pace::Eager`] would miss it, and if it overwrote data too early, [`Pace::Lazy`]
/// would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// It has finished every instruction before the next packet comes.
    Eager,
    /// It finishes instructions only when a packet waits for that, or the queue is full.
    Lazy,
}

/// Why an element gave up. It takes and drops what comes then, and its outputs are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// What was to be inverted is no unit.
    NoInverse,
    /// An instruction reaches out of a buffer, or a weight is over 8 in [`Method::Buckets`].
    Range,
    /// A word that is no instruction.
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

    fn add(&mut self, other: &Self) {
        self.multiplications += other.multiplications;
        self.squarings += other.squarings;
        self.inversions += other.inversions;
        self.conversions += other.conversions;
        self.reductions += other.reductions;
        self.copies += other.copies;
        self.zero_bits += other.zero_bits;
    }
}

/// An element, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ElementRun {
    /// Its chip.
    pub chip: usize,
    /// Which of the chip's.
    pub element: usize,
    /// What it did.
    pub work: Work,
    /// Why it gave up, and how many instructions it had finished by then.
    pub fault: Option<(Fault, u32)>,
}

/// What came of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution<E> {
    /// Outputs by tag; none of elements that had given up.
    pub outputs: BTreeMap<u32, Option<E>>,
    /// All elements that were given an instruction.
    pub elements: Vec<ElementRun>,
    /// All of them together.
    pub work: Work,
}

impl Stream {
    /// Executes the stream on every chip. Input i of a packet stands for `residues[i]`.
    ///
    /// Elements keep to the rules of `hw/rtl/phepu`, those of numbers as digits apart: moduli, reduction and watchdogs
    /// are not modelled, nor multiplications by R^2 and by the literal 1, which mean nothing in a group. Each
    /// instruction is finished before the next begins, so whatever waits for a later one is found out.
    ///
    /// # Errors
    /// Numbers have not 4, 8 or 16 digits; an instruction waits for what never comes, reads what is not there or not claimed any more, or can't be done in
    /// a group; a packet names a chip, a residue or an address that is none, or waits for ever; a chip is sent no end,
    /// or something behind it; or a tag comes twice.
    pub fn execute<G: Group>(
        &self,
        residues: &[G::Element],
        group: &G,
        pace: Pace,
    ) -> Result<Execution<G::Element>, Error> {
        if ![4, 8, 16].contains(&self.digits) {
            let why = format!("has numbers of {} digits, where 4, 8 and 16 are carried", self.digits);
            return Err(Error::Stream { chip: 0, at: "the stream".into(), why });
        }
        let count = self.chips.min(u32::BITS as usize);
        let mut chips: Vec<Chip<'_, G>> =
            (0..count).map(|chip| Chip::new(chip, self.digits, group)).collect();
        let mut outputs = BTreeMap::new();
        for (number, packet) in self.packets.iter().enumerate() {
            if u64::from(packet.chips) >> count != 0 {
                let chip = u32::BITS as usize - 1 - packet.chips.leading_zeros() as usize;
                let why = format!("is for a chip that is not among the {count} of the stream");
                return Err(Error::Stream { chip, at: format!("packet {number}"), why });
            }
            for chip in chips.iter_mut().filter(|chip| packet.chips >> chip.number & 1 == 1) {
                chip.take(number, packet, residues, pace, &mut outputs)?;
            }
        }
        let mut execution = Execution { outputs, elements: Vec::new(), work: Work::default() };
        for mut chip in chips {
            chip.finish(&mut execution.outputs)?;
            for (element, state) in chip.elements.iter().enumerate().filter(|(_, state)| state.given) {
                let (work, fault) = (state.work, state.fault);
                execution.elements.push(ElementRun { chip: chip.number, element, work, fault });
                execution.work.add(&work);
            }
        }
        Ok(execution)
    }

    /// What elements do, which weights tell without any residue.
    ///
    /// # Errors
    /// As [`Stream::execute`].
    pub fn work(&self) -> Result<Work, Error> {
        let last = self.packets.iter().filter_map(|packet| match &packet.body {
            Body::Inputs { inputs, .. } => inputs.iter().max(),
            _ => None,
        });
        let count = last.max().map_or(0, |last| *last as usize + 1);
        Ok(self.execute(&vec![(); count], &Trivial, Pace::Eager)?.work)
    }
}

/// The group of one element.
struct Trivial;

impl Group for Trivial {
    type Element = ();
    fn one(&self) {}
    fn multiply(&self, (): &(), (): &()) {}
    fn square(&self, (): &()) {}
    fn invert(&self, (): &()) -> Option<()> {
        Some(())
    }
}

/// A chip.
struct Chip<'a, G: Group> {
    number: usize,
    digits: usize,
    /// Ciphertexts by the address of their first word.
    inputs: BTreeMap<u32, G::Element>,
    weights: Vec<Option<[u64; 4]>>,
    /// Where contexts lie in the weight buffer.
    contexts: BTreeSet<u32>,
    queue: VecDeque<u64>,
    finished: u32,
    ended: bool,
    given: bool,
    elements: Vec<Element<'a, G>>,
}

/// Outputs by tag.
type Outputs<E> = BTreeMap<u32, Option<E>>;

impl<'a, G: Group> Chip<'a, G> {
    fn new(number: usize, digits: usize, group: &'a G) -> Self {
        Self {
            number,
            digits,
            inputs: BTreeMap::new(),
            weights: vec![None; GlobalBuffers::PHEPU.weight_words as usize],
            contexts: BTreeSet::new(),
            queue: VecDeque::new(),
            finished: 0,
            ended: false,
            given: false,
            elements: (0..isa::ELEMENTS).map(|_| Element::new(group)).collect(),
        }
    }

    fn take(
        &mut self,
        number: usize,
        packet: &Packet,
        residues: &[G::Element],
        pace: Pace,
        outputs: &mut Outputs<G::Element>,
    ) -> Result<(), Error> {
        let chip = self.number;
        let refuse = |why: String| Error::Stream { chip, at: format!("packet {number}"), why };
        self.given = true;
        while self.finished < packet.after {
            if !self.step(outputs)? {
                let (after, finished) = (packet.after, self.finished);
                return Err(refuse(format!(
                    "waits for {after} instructions, where only {finished} come before it"
                )));
            }
        }
        let (address, most) = match &packet.body {
            Body::Instructions(_) => (0, usize::MAX),
            Body::Inputs { address, .. } => (*address, GlobalBuffers::PHEPU.input_words as usize),
            Body::Weights { address, .. } | Body::Context { address } => (*address, self.weights.len()),
        };
        let end = address as usize + packet.words(self.digits);
        if end > most {
            return Err(refuse(format!(
                "reaches to word {end} of a buffer of {most}; its words would be dropped"
            )));
        }
        match &packet.body {
            Body::Instructions(instructions) => {
                let nops = packet.finishes() - instructions.len();
                let nop = Word::nop().encode().expect("a NOP has no fields");
                for word in instructions.iter().copied().chain(std::iter::repeat_n(nop, nops)) {
                    while self.queue.len() >= QUEUED_INSTRUCTIONS {
                        self.step(outputs)?;
                    }
                    self.queue.push_back(word);
                }
                while pace == Pace::Eager && self.step(outputs)? {}
            }
            Body::Inputs { address, inputs } => {
                let digits = self.digits as u32;
                for (residue, at) in inputs.iter().zip((*address..).step_by(self.digits)) {
                    let residue = residues.get(*residue as usize).ok_or_else(|| {
                        refuse(format!("is to bring residue {residue}, where there are {}", residues.len()))
                    })?;
                    let over: Vec<u32> = self
                        .inputs
                        .range((at + 1).saturating_sub(digits)..at + digits)
                        .map(|i| *i.0)
                        .collect();
                    over.iter().for_each(|at| drop(self.inputs.remove(at)));
                    self.inputs.insert(at, residue.clone());
                }
            }
            Body::Weights { address, words } => {
                for (place, word) in self.weights[*address as usize..].iter_mut().zip(words) {
                    *place = Some(*word);
                }
                let length = 3 * self.digits as u32 + 1;
                self.contexts.retain(|context| *context + length <= *address || *context as usize >= end);
            }
            Body::Context { address } => {
                self.weights[*address as usize..end].fill(None);
                self.contexts.insert(*address);
            }
        }
        Ok(())
    }

    fn finish(&mut self, outputs: &mut Outputs<G::Element>) -> Result<(), Error> {
        while self.step(outputs)? {}
        match self.given && !self.ended {
            true => Err(self.refuse("is the last, and no END".into())),
            false => Ok(()),
        }
    }

    fn refuse(&self, why: String) -> Error {
        Error::Stream { chip: self.number, at: format!("instruction {}", self.finished), why }
    }

    /// Finishes an instruction; false if there is none.
    fn step(&mut self, outputs: &mut Outputs<G::Element>) -> Result<bool, Error> {
        let Some(word) = self.queue.pop_front() else { return Ok(false) };
        let result = match Word::decode(word) {
            Ok(word) => self.execute(word, outputs),
            Err(error) => {
                let fault = if matches!(error, Error::Word { .. }) { Fault::Unknown } else { Fault::Range };
                self.each((word >> 44) as u16, |_| Err(Stop::Fault(fault)))
            }
        };
        result.map_err(|why| self.refuse(why))?;
        self.finished += 1;
        Ok(true)
    }

    /// Lets masked elements that have not given up do something.
    fn each(
        &mut self,
        mask: u16,
        mut act: impl FnMut(&mut Element<'a, G>) -> Result<(), Stop>,
    ) -> Result<(), String> {
        for (number, element) in
            self.elements.iter_mut().enumerate().filter(|(number, _)| mask >> number & 1 == 1)
        {
            element.given = true;
            if element.fault.is_some() {
                continue;
            }
            match act(element) {
                Ok(()) => {}
                Err(Stop::Fault(fault)) => element.fault = Some((fault, element.finished)),
                Err(Stop::Never(why)) => return Err(format!("{why} in element {number}")),
            }
        }
        Ok(())
    }

    fn execute(&mut self, word: Word, outputs: &mut Outputs<G::Element>) -> Result<(), String> {
        let Word { mask, operation } = word;
        if self.ended && operation != Operation::Nop {
            return Err("comes after the END".into());
        }
        let out_of_range = |_: &mut Element<'a, G>| Err(Stop::Fault(Fault::Range));
        match operation {
            Operation::End => self.ended = true,
            Operation::Nop => {}
            Operation::LoadInput { slot, count, global } => {
                let (slot, count) = (usize::from(slot), usize::from(count));
                let end = usize::from(global) + count * self.digits;
                if slot + count > isa::INPUT_SLOTS || end > GlobalBuffers::PHEPU.input_words as usize {
                    return self.each(mask, out_of_range);
                }
                let at = (u32::from(global)..).step_by(self.digits).take(count);
                let inputs: Option<Vec<_>> = at.map(|at| self.inputs.get(&at).cloned()).collect();
                let Some(inputs) = inputs else {
                    return Err(format!(
                        "loads {count} ciphertexts from word {global} on, where there are none"
                    ));
                };
                self.each(mask, |element| element.load_inputs(slot, &inputs))?;
            }
            Operation::LoadWeights { word, count, global, regions } => {
                let (start, end) = (usize::from(global), usize::from(global) + usize::from(count));
                if usize::from(word + count) > isa::WEIGHT_WORDS || end > self.weights.len() {
                    return self.each(mask, out_of_range);
                }
                let words: Option<Vec<_>> = self.weights[start..end].iter().copied().collect();
                let Some(words) = words else {
                    return Err(format!(
                        "loads {count} words of weights from word {global} on, where there are none"
                    ));
                };
                self.each(mask, |element| element.load_weights(usize::from(word), &words, regions))?;
            }
            Operation::Store { slot, tag } => {
                if mask.count_ones() != 1 {
                    return self.each(mask, out_of_range);
                }
                let mut output = None;
                self.each(mask, |element| {
                    let out = &mut element.outputs[usize::from(slot)];
                    if !std::mem::take(&mut out.full) {
                        return never(format!("stores output {slot}, which is never full,"));
                    }
                    output = out.value.clone();
                    Ok(())
                })?;
                if outputs.insert(tag, output).is_some() {
                    return Err(format!("sends a second output {tag}"));
                }
            }
            Operation::Context { digits, width, global } => {
                if usize::from(digits) != self.digits {
                    return Err(format!("sets {digits} digits, where the stream has {}", self.digits));
                }
                if !self.contexts.contains(&u32::from(global)) {
                    return Err(format!("takes a context from word {global} on, where there is none"));
                }
                self.each(mask, |element| {
                    element.width = Some(usize::from(width));
                    element.terms.fill(None);
                    Ok(())
                })?;
            }
            _ => self.each(mask, |element| {
                element.step(operation)?;
                element.finished += 1;
                Ok(())
            })?,
        }
        Ok(())
    }
}

/// Why an element can't go on.
enum Stop {
    /// The chip would have given the element up.
    Fault(Fault),
    /// The stream is wrong.
    Never(String),
}

fn never<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Never(why.into()))
}

struct Output<E> {
    value: Option<E>,
    full: bool,
}

/// A processing element.
struct Element<'a, G: Group> {
    group: &'a G,
    /// Bits of a weight; none before a context.
    width: Option<usize>,
    inputs: Vec<Option<G::Element>>,
    /// Words, and the regions that they came as.
    weights: Vec<Option<([u64; 4], u8)>>,
    terms: Vec<Option<G::Element>>,
    outputs: Vec<Output<G::Element>>,
    slots_busy: u16,
    regions_busy: u8,
    work: Work,
    fault: Option<(Fault, u32)>,
    /// Instructions of its queue that it has finished.
    finished: u32,
    given: bool,
}

impl<'a, G: Group> Element<'a, G> {
    fn new(group: &'a G) -> Self {
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

    fn load_inputs(&mut self, slot: usize, inputs: &[G::Element]) -> Result<(), Stop> {
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

    fn load_weights(&mut self, word: usize, words: &[[u64; 4]], regions: u8) -> Result<(), Stop> {
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
    fn step(&mut self, operation: Operation) -> Result<(), Stop> {
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
