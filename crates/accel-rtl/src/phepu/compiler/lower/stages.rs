//! A program in stages: what an element loads, then does with that, with frees and stores where nothing waits for them.

use std::collections::BTreeMap;

use super::super::instruction::Instruction;
use super::super::isa::{self, Method, Operation};
use super::super::machine::Buffers;
use super::super::plan::{Dataflow, Plan};
use super::super::shape::Task;
use super::numbers::Numbers;

/// A digit's bits; the digit above it counts 2^4 times as much.
const DIGIT_BITS: u8 = 4;

/// Weights as digits for [`Dataflow::Buckets`]: how many a weight has, and of how many bits the field of each is.
///
/// A weight of 8 bits is 16 high + low with both in -8..=8, taken of its absolute value: high = (|w| + 7) / 16. In
/// fields of 4 bits +8 has no place, and without it two digits reach from -136 to 119 only, whichever the base; so
/// digits of 8-bit weights lie in fields of 8 bits. That costs a byte more a weight, where a ciphertext has 512.
pub(super) fn digits(bits: u32) -> (usize, u32) {
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

/// Weights that an element loads at once, in whole words.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Image {
    pub(super) word: u16,
    pub(super) regions: u8,
    pub(super) words: Vec<[u64; 4]>,
}

/// What an element loads, then does with that.
#[derive(Default)]
pub(super) struct Stage {
    pub(super) weights: Option<Image>,
    /// Slots and residues.
    pub(super) inputs: Vec<(u8, u32)>,
    pub(super) steps: Vec<Operation>,
    /// Stores of the stage before: so late that the element has this stage's work while they are waited for.
    pub(super) late: Vec<Operation>,
}

/// What every element's programs are written from.
pub(super) struct ElementContext<'a> {
    pub(super) task: &'a Task,
    pub(super) buffers: &'a Buffers,
    pub(super) weights: &'a [i64],
    pub(super) numbers: &'a Numbers<'a>,
    pub(super) dataflow: Dataflow,
    pub(super) digits: usize,
    pub(super) width: u32,
}

/// Something that is claimed by a load and freed after its last reading.
#[derive(Clone, Copy)]
struct Claim {
    /// The stage and the number of its steps after which it is not read any more.
    read: (usize, usize),
}

impl ElementContext<'_> {
    /// A program in stages, with frees, and with stores where nothing has to wait for them.
    pub(super) fn stages(&self, plan: Plan, program: &[Instruction]) -> Vec<Stage> {
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

/// Slots and regions to be freed, by the stage in which they were last read and the one that loads them again: those of
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
