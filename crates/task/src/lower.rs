//! From programs to streams: the compiler's last step.
//!
//! ```text
//!   programs ──▶ stages of each element ──▶ a chip's instructions ──▶ packets of a chip ──▶ a stream
//!    tiles        loads, arithmetic, frees    equal ones get one mask   addresses, `after`    equal ones get one mask
//! ```
//!
//! **Nothing waits for what comes later.** A chip's controller works off instructions in order, and whatever one of
//! them waits for was put in motion by one before it: a load for slots that an earlier free gives back, a store for an
//! earlier reduction, a reduction for the store of what lay in its slot before, a place in an element's queue for
//! what is ahead in that queue. So, by induction over the order, each instruction ends once it has come. And packets,
//! which a chip takes in order: instructions wait only for instructions before them to leave the queue; ciphertexts
//! that overwrite others wait for `after` instructions, all of which are in packets sent before (the packet that holds
//! the last of them is closed first) and read what was sent before them. So each packet ends too. Chips never wait for
//! one another, and a packet for several is held up only by what each of them has already been sent.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::isa::{self, Method, Operation, Word};
use crate::program::{Plan, Writer};
use crate::stream::{Body, PACKET_INSTRUCTIONS, Packet, Stream};
use crate::{Buffers, Dataflow, Error, Instruction, Programs, Task, within};

/// Instructions of a chip, at most: 128 MiB of them.
pub const MAX_STREAM: usize = 1 << 24;
/// Chips that a packet names.
const CHIPS: u64 = 32;
/// A digit's bits; the digit above it counts 2^4 times as much.
const DIGIT_BITS: u8 = 4;

/// What a chip has for all of its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GlobalBuffers {
    /// Words of 256 bits of the input buffer.
    pub input_words: u32,
    /// Words of the weight buffer.
    pub weight_words: u32,
}

impl GlobalBuffers {
    /// Those of `hw/rtl/phepu`: 2 MB and 512 KB.
    pub const PHEPU: Self = Self { input_words: 1 << 16, weight_words: 1 << 14 };
}

/// Weights as digits for [`Dataflow::Buckets`]: how many a weight has, and of how many bits the field of each is.
///
/// A weight of 8 bits is 16 high + low with both in -8..=8, taken of its absolute value: high = (|w| + 7) / 16. In
/// fields of 4 bits +8 has no place, and without it two digits reach from -136 to 119 only, whichever the base; so
/// digits of 8-bit weights lie in fields of 8 bits. That costs a byte more a weight, where a ciphertext has 512.
fn digits(bits: u32) -> (usize, u32) {
    if bits == 8 { (2, 8) } else { (1, bits) }
}

/// Digit `digit` of `digits` of a weight, the highest first.
fn digit(weight: i64, digit: usize, digits: usize) -> i64 {
    if digits == 1 {
        return weight;
    }
    let high = weight.signum() * ((weight.abs() + 7) >> DIGIT_BITS);
    if digit == 0 { high } else { weight - (high << DIGIT_BITS) }
}

impl Stream {
    /// Puts the programs of all elements together into what the host sends the chips. Tags of outputs are their
    /// positions in the task. Residues are numbered as inputs are, or by `sources`, a residue for each input of the
    /// task; with [`Dataflow::Buckets`] number 2 i is what would be number i, and number 2 i + 1 its inverse.
    ///
    /// Programs are merged stage by stage: what several elements load or do becomes one instruction with a mask.
    /// Weights lie in the chip's buffer for the whole run, equal ones once, behind the 3 d + 1 words of the context at
    /// address 0. If all inputs fit the input buffer together, each keeps one address on all chips; else one that a
    /// load needs takes the place of the one whose next use is farthest (Belady), after the last load that read it.
    /// Data that several chips need is sent to all of them at once.
    ///
    /// # Errors
    /// The machine is not PH-EPU's or smaller; weights or sources are not the task's; weights don't fit the weight
    /// buffer; a program or the stream is too long.
    pub fn lower(
        programs: &Programs,
        weights: &[i64],
        sources: Option<&[u32]>,
        dataflow: Dataflow,
    ) -> Result<Self, Error> {
        Self::lower_into(GlobalBuffers::PHEPU, programs, weights, sources, dataflow)
    }

    /// [`Stream::lower`] for chips with other buffers.
    ///
    /// # Errors
    /// The same; or not even one ciphertext, or the context, fits its buffer.
    pub fn lower_into(
        global: GlobalBuffers,
        programs: &Programs,
        weights: &[i64],
        sources: Option<&[u32]>,
        dataflow: Dataflow,
    ) -> Result<Self, Error> {
        let (task, buffers) = (programs.assignment().task(), programs.buffers());
        let chips = programs.assignment().chips().len();
        task.check_weights(weights)?;
        check_machine(programs, dataflow)?;
        let count = |sources: &[u32]| (sources.len() == task.inputs()).then_some(());
        if let Some(sources) = sources {
            let length = Error::Length { what: "sources", got: sources.len(), want: task.inputs() };
            count(sources).ok_or(length)?;
        }
        let buckets = dataflow == Dataflow::Buckets;
        let (digits, width) = if buckets { digits(task.weight_bits()) } else { (1, task.weight_bits()) };
        let words = buffers.ciphertext_cycles() as usize;
        let context = 3 * words as u64 + 1;
        let remedy = "use larger buffers";
        let (most_inputs, most_weights) = (1 << 16, 1 << 16); // what instructions address
        within("the input buffer in words", global.input_words as usize, words as u64, most_inputs, remedy)?;
        within("the weight buffer in words", global.weight_words as usize, context, most_weights, remedy)?;
        let numbers = Numbers::new(task, sources, buckets)?;
        let frames = global.input_words as usize / words;
        let element = ElementContext { task, buffers, weights, numbers: &numbers, dataflow, digits, width };
        let mut lists = Vec::with_capacity(chips);
        for (chip, share) in programs.assignment().chips().iter().enumerate() {
            let channels = share.channels.len().div_ceil(share.partition.channels);
            let plan = match dataflow {
                Dataflow::BitSerial => Plan::new(task, buffers, channels),
                Dataflow::Buckets => Plan::buckets(task, buffers, channels, digits, width),
            };
            let mut elements = Vec::new();
            for tile in programs.tiles().iter().filter(|tile| tile.chip == chip) {
                let program = Writer::new(task, buffers, plan).write(tile);
                let program = program.ok_or(Error::Instructions { chip, element: tile.element })?;
                elements.push((1u16 << tile.element, element.stages(plan, &program)));
            }
            let items = merge_elements(chip, &elements)?;
            let operation = Operation::Context { digits: words as u8, width: width as u8, global: 0 };
            let all = elements.iter().fold(0, |mask, (element, _)| mask | element);
            drop(elements);
            let mut emitter = Emitter::new(chip, words, frames, &global, numbers.fixed(frames));
            emitter.begin(Word::new(all, operation))?;
            lists.push(emitter.emit(&items)?);
        }
        let packets = merge_chips(words, lists);
        Ok(Self { digits: words, width, chips, packets })
    }
}

/// That the instructions reach all that programs use.
fn check_machine(programs: &Programs, dataflow: Dataflow) -> Result<(), Error> {
    let (machine, buffers) = (programs.assignment().machine(), programs.buffers());
    let least_inputs = if dataflow == Dataflow::Buckets { 4 } else { 2 };
    for (what, got, min, max) in [
        ("the number of chips", machine.chip_count(), 1, CHIPS),
        ("the number of elements", machine.elements(), 1, isa::ELEMENTS as u64),
        ("the number of inputs that an element holds", buffers.input_slots(), least_inputs, 16),
        ("the number of outputs that an element holds", buffers.output_slots(), 1, 2),
        ("the number of partial-sum terms", buffers.terms, 8, isa::TERMS as u64),
        ("the size of an element's weight buffer in bytes", buffers.weight_bytes, 64, 9 << 10),
    ] {
        within(what, got, min, max, "compile for Machine::phepu")?;
    }
    if buffers.weight_bytes % 64 != 0 {
        return Err(Error::Choice {
            what: "the size of an element's weight buffer in bytes",
            got: buffers.weight_bytes as u64,
            of: "multiples of 64",
            remedy: "compile for Machine::phepu",
        });
    }
    Ok(())
}

/// How residues are numbered.
struct Numbers<'a> {
    sources: Option<&'a [u32]>,
    /// Whether each comes with its inverse.
    pairs: bool,
    /// All residues of the task, ascending, without inverses.
    all: Vec<u32>,
}

impl<'a> Numbers<'a> {
    fn new(task: &Task, sources: Option<&'a [u32]>, pairs: bool) -> Result<Self, Error> {
        let mut all: Vec<u32> = match sources {
            Some(sources) => sources.to_vec(),
            None => (0..task.inputs() as u32).collect(),
        };
        all.sort_unstable();
        all.dedup();
        let most = if pairs { u32::MAX / 2 } else { u32::MAX };
        let last = all.last().copied().unwrap_or(0) as usize;
        within("the number of a residue", last, 0, most.into(), "give fewer residues")?;
        Ok(Self { sources, pairs, all })
    }

    fn of(&self, input: u32) -> u32 {
        let number = self.sources.map_or(input, |sources| sources[input as usize]);
        if self.pairs { 2 * number } else { number }
    }

    /// A frame for each residue, if there are enough of them: inputs, then inverses, so that those of neighbours lie
    /// side by side.
    fn fixed(&self, frames: usize) -> Option<impl Fn(u32) -> u32 + '_> {
        let count = self.all.len();
        let of = move |residue: u32| {
            let (number, inverse) =
                if self.pairs { (residue / 2, residue % 2 == 1) } else { (residue, false) };
            let rank = self.all.binary_search(&number).expect("residues are those of the task");
            (rank + if inverse { count } else { 0 }) as u32
        };
        (count * if self.pairs { 2 } else { 1 } <= frames).then_some(of)
    }
}

/// Weights that an element loads at once, in whole words.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Image {
    word: u16,
    regions: u8,
    words: Vec<[u64; 4]>,
}

/// What an element loads, then does with that.
#[derive(Default)]
struct Stage {
    weights: Option<Image>,
    /// Slots and residues.
    inputs: Vec<(u8, u32)>,
    steps: Vec<Operation>,
    /// Stores of the stage before: so late that the element has this stage's work while they are waited for.
    late: Vec<Operation>,
}

/// What every element's programs are written from.
struct ElementContext<'a> {
    task: &'a Task,
    buffers: &'a Buffers,
    weights: &'a [i64],
    numbers: &'a Numbers<'a>,
    dataflow: Dataflow,
    digits: usize,
    width: u32,
}

/// Something that is claimed by a load and freed after its last reading.
#[derive(Clone, Copy)]
struct Claim {
    /// The stage and the number of its steps after which it is not read any more.
    read: (usize, usize),
}

impl ElementContext<'_> {
    /// A program in stages, with frees, and with stores where nothing has to wait for them.
    fn stages(&self, plan: Plan, program: &[Instruction]) -> Vec<Stage> {
        let buckets = self.dataflow == Dataflow::Buckets;
        let method = if buckets { Method::Buckets } else { Method::BitSerial };
        // Weights that are all there at once are one region.
        let half = Some(plan.weight_half()).filter(|half| *half > 0).unwrap_or(usize::MAX);
        let delta = (self.buffers.input_slots() / 4) as u32; // to inverses, in a half of the input buffer
        let mut stages = vec![Stage::default()];
        let mut fields = Fields::default();
        let mut slots: [Option<Claim>; isa::INPUT_SLOTS] = [None; isa::INPUT_SLOTS];
        let mut regions: [Option<Claim>; 2] = [None; 2];
        let mut frees = Frees::default();
        let mut stores: [Option<(usize, u32)>; isa::OUTPUT_SLOTS] = [None; isa::OUTPUT_SLOTS];
        let mut chained = false;
        for (at, instruction) in program.iter().enumerate() {
            let load = matches!(instruction, Instruction::LoadWeights { .. } | Instruction::LoadInput { .. });
            let mut number = stages.len() - 1;
            if load && !stages[number].steps.is_empty() {
                finish(&mut stages[number], &mut fields, self.width, half);
                stores_before(&mut stages[number], number, &mut stores);
                stages.push(Stage::default());
                number += 1;
            }
            let stage = &mut stages[number];
            match *instruction {
                Instruction::LoadWeights { address, channel, term, count } => {
                    let region = usize::from(address as usize >= half);
                    frees.claim(&mut regions[region], number, 0, 1 << region);
                    for i in 0..count {
                        let (channel, part) =
                            (channel as usize / self.digits, channel as usize % self.digits);
                        let weight = self.weights[self.task.weight_at(channel, (term + i) as usize)];
                        fields.put(address + i, digit(weight, part, self.digits));
                    }
                }
                Instruction::LoadInput { slot, input, count } => {
                    for (slot, input) in (slot..).zip(input..).take(count as usize) {
                        let residue = self.numbers.of(input);
                        stage.inputs.push((slot as u8, residue));
                        frees.claim(&mut slots[slot as usize], number, 1 << slot, 0);
                    }
                    if buckets {
                        for (slot, input) in (slot + delta..).zip(input..).take(count as usize) {
                            let residue = self.numbers.of(input) + 1;
                            stage.inputs.push((slot as u8, residue));
                            frees.claim(&mut slots[slot as usize], number, 1 << slot, 0);
                        }
                    }
                }
                Instruction::Clear { sum } => {
                    stage.steps.push(Operation::Clear { sum: sum as u8, all: buckets });
                }
                Instruction::Accumulate { sum, slot, address, count } => {
                    stage.steps.push(Operation::Accumulate {
                        sum: sum as u8,
                        slot: slot as u8,
                        count: count as u8,
                        weight: address as u16,
                        method,
                        delta: if buckets { delta as u8 } else { 0 },
                    });
                    let read = (number, stage.steps.len());
                    let reads = |claim: &mut Option<Claim>| *claim = claim.map(|_| Claim { read });
                    for slot in slot..slot + count {
                        reads(&mut slots[slot as usize]);
                        if buckets {
                            reads(&mut slots[(slot + delta) as usize]);
                        }
                    }
                    reads(&mut regions[usize::from(address as usize >= half)]);
                }
                Instruction::Align { sum } => stage.steps.push(Operation::Align { sum: sum as u8 }),
                Instruction::Invert { sum } => stage.steps.push(Operation::Invert { sum: sum as u8 }),
                Instruction::Reduce { sum, slot } => {
                    let last = matches!(program.get(at + 1), Some(Instruction::Store { .. }));
                    if let Some((_, tag)) = stores[slot as usize].take() {
                        stage.steps.push(Operation::Store { slot: slot as u8, tag });
                    }
                    stage.steps.push(Operation::Reduce {
                        sum: sum as u8,
                        slot: slot as u8,
                        method,
                        chain: chained,
                        shift: if chained { DIGIT_BITS } else { 0 },
                        last,
                    });
                    chained = !last;
                }
                Instruction::Store { slot, output } => stores[slot as usize] = Some((number, output)),
            }
        }
        let end = stages.len();
        finish(&mut stages[end - 1], &mut fields, self.width, half);
        stores_before(&mut stages[end - 1], end - 1, &mut stores);
        let mut rest = Stage::default();
        stores_before(&mut rest, end, &mut stores);
        stages.push(rest);
        for (slot, claim) in slots.iter_mut().enumerate() {
            frees.release(claim, end, 1 << slot, 0);
        }
        for (region, claim) in regions.iter_mut().enumerate() {
            frees.release(claim, end, 0, 1 << region);
        }
        frees.insert(&mut stages);
        stages
    }
}

/// Puts off no longer what was reduced before stage `number`.
fn stores_before(stage: &mut Stage, number: usize, stores: &mut [Option<(usize, u32)>; isa::OUTPUT_SLOTS]) {
    let mut due: Vec<(usize, u32, u8)> = Vec::new();
    for (slot, held) in stores.iter_mut().enumerate() {
        if let Some((since, tag)) = held.take_if(|(since, _)| *since < number) {
            due.push((since, tag, slot as u8));
        }
    }
    due.sort_unstable();
    stage.late.extend(due.into_iter().map(|(_, tag, slot)| Operation::Store { slot, tag }));
}

/// Ends a stage's load of weights.
fn finish(stage: &mut Stage, fields: &mut Fields, width: u32, half: usize) {
    stage.weights = fields.take(width, half);
}

/// Weights that lie one after the other.
#[derive(Default)]
struct Fields {
    first: u32,
    values: Vec<i64>,
}

impl Fields {
    fn put(&mut self, address: u32, value: i64) {
        if self.values.is_empty() {
            self.first = address;
        }
        // A plan starts each region at a word and leaves no gap.
        debug_assert_eq!(address as usize, self.first as usize + self.values.len());
        self.values.push(value);
    }

    fn take(&mut self, width: u32, half: usize) -> Option<Image> {
        if self.values.is_empty() {
            return None;
        }
        let in_word = isa::WORD_BITS / width as usize;
        debug_assert_eq!(self.first as usize % in_word, 0);
        let field = |value: i64| value as u64 & ((1 << width) - 1);
        let pack = |values: &[i64]| {
            let mut word = [0; 4];
            for (i, value) in values.iter().enumerate() {
                let bit = i * width as usize;
                word[bit / 64] |= field(*value) << (bit % 64);
            }
            word
        };
        let words = self.values.chunks(in_word).map(pack).collect();
        let regions = if self.first as usize >= half { 2 } else { 1 };
        self.values.clear();
        Some(Image { word: (self.first as usize / in_word) as u16, regions, words })
    }
}

/// Slots and regions to be freed, by the stage in which they were last read and the one that loads them anew: those of
/// one such pair go together, after the last of their readings.
#[derive(Default)]
struct Frees(BTreeMap<(usize, usize), (usize, u16, u8)>);

impl Frees {
    /// Claims what a load of stage `number` fills; what it claims again within the stage is claimed once.
    fn claim(&mut self, claim: &mut Option<Claim>, number: usize, slots: u16, regions: u8) {
        if claim.is_some_and(|claim| claim.read == (number, 0)) {
            return;
        }
        self.release(claim, number, slots, regions);
        *claim = Some(Claim { read: (number, 0) });
    }

    fn release(&mut self, claim: &mut Option<Claim>, number: usize, slots: u16, regions: u8) {
        if let Some(Claim { read: (stage, steps) }) = claim.take() {
            let free = self.0.entry((stage, number)).or_default();
            *free = (free.0.max(steps), free.1 | slots, free.2 | regions);
        }
    }

    fn insert(self, stages: &mut [Stage]) {
        let mut at: Vec<(usize, usize, u16, u8)> = self
            .0
            .into_iter()
            .map(|((stage, _), (steps, slots, regions))| (stage, steps, slots, regions))
            .collect();
        at.sort_unstable();
        // Those of one place become one.
        at.dedup_by(|next, first| {
            let same = (next.0, next.1) == (first.0, first.1);
            if same {
                (first.2, first.3) = (first.2 | next.2, first.3 | next.3);
            }
            same
        });
        for (stage, steps, slots, regions) in at.into_iter().rev() {
            stages[stage].steps.insert(steps, Operation::Free { slots, regions });
        }
    }
}

/// A chip's instruction before things have addresses.
enum Item {
    Weights { mask: u16, image: Image },
    Input { mask: u16, slot: u8, residue: u32, stage: u32 },
    Plain(Word),
}

/// Those that are the same as one, with the masks of all.
fn alike<'a, T: PartialEq>(all: impl Iterator<Item = (u16, &'a T)>) -> Vec<(u16, &'a T)> {
    let mut found: Vec<(u16, &T)> = Vec::new();
    for (mask, one) in all {
        match found.iter_mut().find(|(_, other)| *other == one) {
            Some((masks, _)) => *masks |= mask,
            None => found.push((mask, one)),
        }
    }
    found
}

/// Takes several lists in turn, each in order, what stands in front of several at once; the longest goes first, so
/// that the others wait for what they have in common with its end.
fn merge<T: Copy + PartialEq>(lists: &[(u16, &[T])], mut emit: impl FnMut(u16, T)) {
    let mut lists: Vec<(u16, &[T])> = lists.to_vec();
    loop {
        let longest = lists.iter().rev().max_by_key(|(_, list)| list.len());
        let Some(&next) = longest.and_then(|(_, list)| list.first()) else { return };
        let mut all = 0;
        for (mask, list) in &mut lists {
            if let Some((_, rest)) = list.split_first().filter(|(first, _)| **first == next) {
                all |= *mask;
                *list = rest;
            }
        }
        emit(all, next);
    }
}

/// The elements' stages as one list, equal instructions of one stage together.
fn merge_elements(chip: usize, elements: &[(u16, Vec<Stage>)]) -> Result<Vec<Item>, Error> {
    let mut items = Vec::new();
    let stages = elements.iter().map(|(_, stages)| stages.len()).max().unwrap_or(0);
    for stage in 0..stages {
        let there = || elements.iter().filter_map(|(mask, stages)| Some((*mask, stages.get(stage)?)));
        for (mask, image) in alike(there().map(|(mask, of)| (mask, &of.weights))) {
            items.extend(image.iter().map(|image| Item::Weights { mask, image: image.clone() }));
        }
        for (mask, inputs) in alike(there().map(|(mask, of)| (mask, &of.inputs))) {
            let stage = stage as u32;
            items.extend(inputs.iter().map(|&(slot, residue)| Item::Input { mask, slot, residue, stage }));
        }
        let steps: Vec<_> = there().map(|(mask, of)| (mask, of.steps.as_slice())).collect();
        merge(&steps, |mask, operation| items.push(Item::Plain(Word { mask, operation })));
        for (mask, of) in there() {
            items.extend(of.late.iter().map(|operation| Item::Plain(Word { mask, operation: *operation })));
        }
        if items.len() > MAX_STREAM {
            return Err(Error::LongStream { chip });
        }
    }
    Ok(items)
}

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
struct Emitter<F> {
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
    fn new(chip: usize, digits: usize, frames: usize, global: &GlobalBuffers, fixed: Option<F>) -> Self {
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

    fn begin(&mut self, context: Word) -> Result<(), Error> {
        self.send(0, Body::Context { address: 0 });
        self.push(context)
    }

    fn emit(mut self, items: &[Item]) -> Result<Vec<Packet>, Error> {
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

/// Chips' packets as one list, in each chip's order but for data that waits for nothing (`after` is 0): it comes where
/// nothing lay before, so it may come early, and goes to all chips that it is for as soon as one needs it. Other data
/// goes to several chips if it is the same for them: whoever comes to it first waits for the others, unless they wait
/// for one another. So do instructions that stand in front together.
fn merge_chips(digits: usize, lists: Vec<Vec<Packet>>) -> Vec<Packet> {
    let mut early = Early { digits: digits as u32, inputs: HashMap::new(), others: HashMap::new() };
    // How often each chip will take data that waits.
    let mut ahead: HashMap<u64, Vec<u32>> = HashMap::new();
    for (chip, packet) in
        lists.iter().enumerate().flat_map(|(chip, list)| list.iter().map(move |p| (chip, p)))
    {
        if let Some(data) = waits(packet) {
            ahead.entry(data).or_insert_with(|| vec![0; lists.len()])[chip] += 1;
        } else {
            early.expect(packet);
        }
    }
    let mut packets = Vec::new();
    let mut lists: Vec<VecDeque<Packet>> = lists.into_iter().map(VecDeque::from).collect();
    let same = |x: &Packet, y: &Packet| x.after == y.after && x.body == y.body;
    loop {
        // Who has most before it goes first.
        let mut order: Vec<usize> = (0..lists.len()).filter(|chip| !lists[*chip].is_empty()).collect();
        order.sort_by_key(|chip| Reverse(lists[*chip].len()));
        let Some(first) = order.first().copied() else { return packets };
        let free = order.into_iter().find(|chip| {
            let front = &lists[*chip][0];
            let Some(needed) = waits(front).map(|data| &ahead[&data]) else { return true };
            let ready = |list: &VecDeque<Packet>| list.front().is_some_and(|packet| same(packet, front));
            needed.iter().zip(&lists).all(|(count, list)| *count == 0 || ready(list))
        });
        let Some(mut next) = lists[free.unwrap_or(first)].pop_front() else { return packets };
        let data = waits(&next);
        if data.is_none() && !matches!(next.body, Body::Instructions(_)) {
            early.send(next.body, &mut packets);
            continue;
        }
        for list in &mut lists {
            let taken = list.pop_front_if(|packet| same(packet, &next));
            next.chips |= taken.map_or(0, |taken| taken.chips);
        }
        if let Some(chips) = data.and_then(|data| ahead.get_mut(&data)) {
            for (chip, count) in chips.iter_mut().enumerate() {
                *count -= next.chips >> chip & 1;
            }
        }
        packets.push(next);
    }
}

/// What stands for data that waits; none for others. Two that are taken for one merely wait for one another.
fn waits(packet: &Packet) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    (packet.after, &packet.body).hash(&mut hasher);
    (packet.after > 0).then(|| hasher.finish())
}

/// Data that waits for nothing, and the chips that it has yet to be sent to.
struct Early {
    digits: u32,
    /// Ciphertexts, by address and residue.
    inputs: HashMap<(u32, u32), u32>,
    others: HashMap<Body, u32>,
}

impl Early {
    fn expect(&mut self, packet: &Packet) {
        match &packet.body {
            Body::Instructions(_) => {}
            Body::Inputs { address, inputs } => {
                for (residue, at) in inputs.iter().zip((*address..).step_by(self.digits as usize)) {
                    *self.inputs.entry((at, *residue)).or_default() |= packet.chips;
                }
            }
            body => *self.others.entry(body.clone()).or_default() |= packet.chips,
        }
    }

    fn send(&mut self, body: Body, packets: &mut Vec<Packet>) {
        let mut send = |chips, body| packets.push(Packet { chips, after: 0, body });
        let Body::Inputs { address, inputs } = body else {
            if let Some(chips) = self.others.remove(&body) {
                send(chips, body);
            }
            return;
        };
        let mut rest = inputs.into_iter().zip((address..).step_by(self.digits as usize)).peekable();
        while let Some((residue, address)) = rest.next() {
            let Some(chips) = self.inputs.remove(&(address, residue)) else { continue };
            let mut inputs = vec![residue];
            while let Some((residue, at)) =
                rest.next_if(|(residue, at)| self.inputs.get(&(*at, *residue)) == Some(&chips))
            {
                self.inputs.remove(&(at, residue));
                inputs.push(residue);
            }
            send(chips, Body::Inputs { address, inputs });
        }
    }
}
