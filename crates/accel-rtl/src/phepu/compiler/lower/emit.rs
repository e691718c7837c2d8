//! A chip's packets: where inputs and weights lie in its buffers, and what waits for what.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::super::error::Error;
use super::super::isa::{self, Operation, Word};
use super::super::machine::GlobalBuffers;
use super::super::stream::{Body, PACKET_INSTRUCTIONS, Packet};
use super::merge::Item;
use super::stages::Image;

/// A ciphertext's place in the chip's input buffer. The place to give away is the greatest: next read in the latest
/// stage, then last read the longest ago, then the lowest.
type Frame = (u32, Reverse<u32>, Reverse<u32>);

/// Ciphertexts of neighbouring frames for neighbouring slots.
struct Load {
    mask: u16,
    slot: u8,
    frame: u32,
    residues: Vec<u32>,
}

/// Makes a chip's packets.
pub(super) struct Emitter<F> {
    chip: usize,
    /// Words of a ciphertext.
    digits: usize,
    weight_words: u32,
    packets: Vec<Packet>,
    /// The packet that is being filled, and instructions of all before it.
    open: Vec<u64>,
    finished: u32,
    /// Whether that packet has anything but loads.
    work: bool,
    images: HashMap<Vec<[u64; 4]>, u32>,
    weights: u32,
    /// Where each residue lies, if all fit.
    fixed: Option<F>,
    frames: u32,
    used: u32,
    /// Residues that are there, each in its frame; frames whose residues may go.
    there: HashMap<u32, Frame>,
    held: BTreeMap<Frame, u32>,
    /// A load that may get longer.
    load: Option<Load>,
    /// Ciphertexts that it or the next one needs: the first frame, residues, after.
    data: Option<(u32, Vec<u32>, u32)>,
}

impl<F: Fn(u32) -> u32> Emitter<F> {
    pub(super) fn new(
        chip: usize,
        digits: usize,
        frames: usize,
        global: &GlobalBuffers,
        fixed: Option<F>,
    ) -> Self {
        Self {
            chip,
            digits,
            weight_words: global.weight_words,
            packets: Vec::new(),
            open: Vec::new(),
            finished: 0,
            work: false,
            images: HashMap::new(),
            weights: 3 * digits as u32 + 1,
            fixed,
            frames: frames as u32,
            used: 0,
            there: HashMap::new(),
            held: BTreeMap::new(),
            load: None,
            data: None,
        }
    }

    pub(super) fn begin(&mut self, context: Word) -> Result<(), Error> {
        self.send(0, Body::Context { address: 0 });
        self.push(context)
    }

    pub(super) fn emit(mut self, items: &[Item]) -> Result<Vec<Packet>, Error> {
        // When each input is needed next, seen from each load of it.
        let mut next = vec![u32::MAX; items.len()];
        let mut seen = HashMap::new();
        for (at, item) in items.iter().enumerate().rev() {
            if let Item::Input { residue, stage, .. } = item {
                next[at] = seen.insert(*residue, *stage).unwrap_or(u32::MAX);
            }
        }
        for (at, item) in items.iter().enumerate() {
            match item {
                Item::Input { mask, slot, residue, .. } => self.input(*mask, *slot, *residue, next[at])?,
                Item::Weights { mask, image } => self.load_weights(*mask, image)?,
                Item::Plain(word) => self.push(*word)?,
            }
        }
        self.push(Word::new(0, Operation::End))?;
        self.close();
        Ok(self.packets)
    }

    /// The number of the next instruction.
    fn now(&self) -> u32 {
        self.finished + self.open.len() as u32
    }

    fn push(&mut self, word: Word) -> Result<(), Error> {
        self.flush_load()?;
        self.push_alone(word)
    }

    fn push_alone(&mut self, word: Word) -> Result<(), Error> {
        self.open.push(word.encode()?);
        let load = matches!(word.operation, Operation::LoadInput { .. } | Operation::LoadWeights { .. });
        self.work |= !load && !matches!(word.operation, Operation::Context { .. });
        if self.open.len() == PACKET_INSTRUCTIONS {
            self.close();
        }
        Ok(())
    }

    fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let nop = Word::nop().encode().expect("a NOP has no fields");
        let mut instructions = std::mem::take(&mut self.open);
        self.work = false;
        instructions.resize(instructions.len().next_multiple_of(isa::WORD_BITS / 64), nop);
        self.finished += instructions.len() as u32;
        self.packets.push(Packet { chips: 1 << self.chip, after: 0, body: Body::Instructions(instructions) });
    }

    /// Sends data. Instructions before it go first if there is work for elements among them, which they have then
    /// while data is on its way; or if `after` counts one of them.
    fn send(&mut self, after: u32, body: Body) {
        if self.work || after > self.finished {
            self.close();
        }
        self.packets.push(Packet { chips: 1 << self.chip, after, body });
    }

    fn load_weights(&mut self, mask: u16, image: &Image) -> Result<(), Error> {
        self.flush_load()?;
        let address = match self.images.get(&image.words) {
            Some(address) => *address,
            None => {
                let address = self.weights;
                let end = address as usize + image.words.len();
                if end > self.weight_words as usize {
                    return Err(Error::Memory {
                        chip: self.chip,
                        got: end,
                        most: self.weight_words as usize,
                    });
                }
                self.weights = end as u32;
                self.images.insert(image.words.clone(), address);
                self.send(0, Body::Weights { address, words: image.words.clone() });
                address
            }
        };
        let count = image.words.len() as u16;
        let global = address as u16;
        let &Image { word, regions, .. } = image;
        self.push_alone(Word::new(mask, Operation::LoadWeights { word, count, global, regions }))
    }

    /// Loads one input, together with those before it if they lie side by side.
    fn input(&mut self, mask: u16, slot: u8, residue: u32, next: u32) -> Result<(), Error> {
        let next_slot = |load: &Load| {
            load.mask == mask && usize::from(load.slot) + load.residues.len() == usize::from(slot)
        };
        if !self.load.as_ref().is_some_and(next_slot) {
            self.flush_load()?;
        }
        let known = self.there.get(&residue).map(|(_, _, Reverse(frame))| *frame);
        let frame = known.map_or_else(|| self.place(residue), Ok)?;
        let next_frame = |load: &Load| load.frame as usize + load.residues.len() == frame as usize;
        if !self.load.as_ref().is_some_and(next_frame) {
            // What comes for this load alone may get longer yet.
            let own = self.data.take_if(|(_, residues, _)| known.is_none() && residues.len() == 1);
            self.flush_load()?;
            self.data = own;
            self.load = Some(Load { mask, slot, frame, residues: Vec::new() });
        }
        if let Some(load) = &mut self.load {
            load.residues.push(residue);
        }
        // It is not known yet when its load is over; until then it stays.
        self.keep(residue, (next, Reverse(u32::MAX), Reverse(frame)));
        Ok(())
    }

    /// Gives a residue a frame, and has it sent there.
    fn place(&mut self, residue: u32) -> Result<u32, Error> {
        let (frame, after) = if let Some(fixed) = &self.fixed {
            (fixed(residue), 0)
        } else if self.used < self.frames {
            self.used += 1;
            (self.used - 1, 0)
        } else {
            let greatest = |held: &BTreeMap<Frame, u32>| *held.last_key_value().expect("a frame there is").1;
            if self.load.as_ref().is_some_and(|load| load.residues.contains(&greatest(&self.held))) {
                self.flush_load()?;
            }
            let gone = greatest(&self.held);
            let place = self.there.remove(&gone).expect("what is held is there");
            self.held.remove(&place);
            let (_, Reverse(read), Reverse(frame)) = place;
            (frame, read)
        };
        match &mut self.data {
            Some((first, residues, last)) if *first as usize + residues.len() == frame as usize => {
                residues.push(residue);
                *last = after.max(*last);
            }
            _ => {
                self.flush_data();
                self.data = Some((frame, vec![residue], after));
            }
        }
        Ok(frame)
    }

    fn keep(&mut self, residue: u32, place: Frame) {
        if let Some(before) = self.there.insert(residue, place) {
            self.held.remove(&before);
        }
        self.held.insert(place, residue);
    }

    fn flush_data(&mut self) {
        if let Some((frame, inputs, after)) = self.data.take() {
            self.send(after, Body::Inputs { address: frame * self.digits as u32, inputs });
        }
    }

    fn flush_load(&mut self) -> Result<(), Error> {
        self.flush_data();
        let Some(Load { mask, slot, frame, residues }) = self.load.take() else { return Ok(()) };
        let (count, global) = (residues.len() as u8, (frame as usize * self.digits) as u16);
        self.push_alone(Word::new(mask, Operation::LoadInput { slot, count, global }))?;
        let now = self.now();
        for residue in residues {
            let (next, _, frame) = self.there[&residue];
            self.keep(residue, (next, Reverse(now), frame));
        }
        Ok(())
    }
}
