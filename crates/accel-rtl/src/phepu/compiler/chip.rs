//! What chips make of a stream, without clocks: the model that the hardware has to equal.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;

use super::element::{Element, Fault, Stop, Work, never};
use super::error::Error;
use super::group::Group;
use super::isa::{self, Operation, Word};
use super::machine::GlobalBuffers;
use super::stream::{Body, Packet, QUEUED_INSTRUCTIONS, Stream};

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
