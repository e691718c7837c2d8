//! Programs: what each processing element does, instruction by instruction, and the proof that it may.

use std::ops::Range;

use serde::Serialize;

use crate::{Assignment, Buffers, Error, Machine, Task, Tile};

/// Instructions of an element, at most: 80 MiB of them.
pub const MAX_INSTRUCTIONS: usize = 1 << 22;

/// A step of a processing element.
///
/// A partial sum has a term for each bit of a weight. A term is empty, the group's one, until the first input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum Instruction {
    /// Weights of one channel, `count` terms from `term` on, go to `address` of the weight buffer and after.
    LoadWeights {
        /// Where in the weight buffer, in weights.
        address: u32,
        /// Of which output channel.
        channel: u32,
        /// The first term.
        term: u32,
        /// How many.
        count: u32,
    },
    /// `count` ciphertexts from `input` on go to `slot` of the input buffer and after.
    LoadInput {
        /// Where in the input buffer, in ciphertexts.
        slot: u32,
        /// The first ciphertext.
        input: u32,
        /// How many.
        count: u32,
    },
    /// Empties the terms of a partial sum.
    Clear {
        /// Which.
        sum: u32,
    },
    /// For each of `count` inputs and weights, and each set bit b of the weight in two's complement: multiplies term
    /// b of the partial sum by the input. Zero bits and zero weights take no time.
    Accumulate {
        /// The partial sum.
        sum: u32,
        /// The first input's slot.
        slot: u32,
        /// The first weight's address.
        address: u32,
        /// How many.
        count: u32,
    },
    /// Squares term b of a partial sum b times.
    Align {
        /// Which.
        sum: u32,
    },
    /// Inverts the term of the sign bit.
    Invert {
        /// The partial sum.
        sum: u32,
    },
    /// Multiplies the terms of a partial sum into a slot of the output buffer.
    Reduce {
        /// The partial sum.
        sum: u32,
        /// Where in the output buffer, in ciphertexts.
        slot: u32,
    },
    /// Sends an output off.
    Store {
        /// The slot of the output buffer.
        slot: u32,
        /// Which output.
        output: u32,
    },
}

/// How an element weighs its terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dataflow {
    /// PH-EPU's: a partial-sum term for each bit of a weight, zero bits skipped (Fig. 15.4.4, mode 1).
    BitSerial,
    /// Ours, Pippenger's buckets on the same units: a term for each absolute value of a digit of up to four bits, and
    /// inputs that come with their inverses, so that a digit is one multiplication and nothing is inverted at the end.
    Buckets,
}

/// How buffers are used for tiles of up to a number of rows: channels, each once for every digit of its weights.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    dataflow: Dataflow,
    /// Digits of a weight: rows of a channel, the highest digit's first.
    digits: usize,
    /// Rows weighed at once.
    sums: usize,
    /// Terms of a stage.
    piece: usize,
    /// Rows whose weights are held at once; none if weights come piece by piece.
    block: Option<usize>,
    /// Where the second half of the weight buffer starts; 0 where all weights fit at once.
    weight_half: usize,
    /// Where the second half of the input buffer starts.
    input_half: usize,
}

impl Plan {
    /// Bit-serial, for tiles of at most `channels` channels, of which all that share positions must be given the same.
    pub(crate) fn new(task: &Task, buffers: &Buffers, channels: usize) -> Self {
        let capacity = buffers.weight_slots(task.weight_bits());
        let sums = buffers.sums(task.weight_bits()).min(channels).clamp(1, capacity / 2);
        let input_half = buffers.input_slots() / 2;
        let (dataflow, digits) = (Dataflow::BitSerial, 1);
        Self { dataflow, digits, sums, piece: input_half, block: None, weight_half: capacity / 2, input_half }
            .blocks(task.terms(), channels, capacity)
    }

    /// Buckets, of weights of `digits` digits in fields of `bits` bits; the same.
    pub(crate) fn buckets(task: &Task, buffers: &Buffers, channels: usize, digits: usize, bits: u32) -> Self {
        let capacity = buffers.weight_slots(bits);
        let input_half = buffers.input_slots() / 2;
        let (dataflow, piece) = (Dataflow::Buckets, input_half / 2); // each input beside its inverse
        Self { dataflow, digits, sums: 1, piece, block: None, weight_half: capacity / 2, input_half }.blocks(
            task.terms(),
            channels * digits,
            capacity,
        )
    }

    fn blocks(self, terms: usize, rows: usize, capacity: usize) -> Self {
        let together = self.sums.max(self.digits);
        if rows.saturating_mul(terms) <= capacity {
            Self { block: Some(rows), weight_half: 0, ..self }
        } else if together.saturating_mul(terms) <= self.weight_half {
            Self { block: Some(self.weight_half / terms / together * together), ..self }
        } else {
            Self { piece: self.piece.min(self.weight_half / self.sums), ..self }
        }
    }

    /// Where the second half of the weight buffer starts, in weights.
    pub(crate) fn weight_half(&self) -> usize {
        self.weight_half
    }

    /// Whether weights are loaded anew for each position.
    pub(crate) fn streams_weights(&self) -> bool {
        self.block.is_none()
    }

    /// Cycles of a channel's weights on the bus, in one pass.
    pub(crate) fn weight_cycles(&self, terms: usize, bits: u32) -> u64 {
        let cycles = |count: usize| weight_cycles(count, bits);
        if self.streams_weights() {
            (terms / self.piece) as u64 * cycles(self.piece) + cycles(terms % self.piece)
        } else {
            cycles(terms)
        }
    }

    /// Ciphertexts loaded for a position of `terms` terms that are all there, for `channels` channels.
    pub(crate) fn inputs_of_position(&self, terms: usize, channels: usize) -> u64 {
        let block = self.block.unwrap_or(channels).min(channels);
        let rest = channels % block;
        let whole = self.inputs_of_block(terms, block).saturating_mul((channels / block) as u64);
        whole.saturating_add(if rest == 0 { 0 } else { self.inputs_of_block(terms, rest) })
    }

    fn inputs_of_block(&self, terms: usize, channels: usize) -> u64 {
        let pieces = terms.div_ceil(self.piece);
        let turns = (channels.div_ceil(self.sums) - 1) as u64;
        let (far, near) = if pieces <= 2 {
            (terms, terms)
        } else {
            (self.piece + terms - (pieces - 1) * self.piece, 2 * self.piece)
        };
        let again = |kept: usize, turns: u64| ((terms - kept) as u64).saturating_mul(turns);
        (terms as u64).saturating_add(again(far, turns.div_ceil(2))).saturating_add(again(near, turns / 2))
    }
}

/// Cycles of `count` weights on the bus.
pub(crate) fn weight_cycles(count: usize, bits: u32) -> u64 {
    (count as u64 * u64::from(bits)).div_ceil(crate::BUS_BITS as u64)
}

/// What one processing element does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Program {
    /// The chip.
    pub chip: usize,
    /// The element.
    pub element: usize,
    /// One after the other.
    pub instructions: Vec<Instruction>,
}

/// How many instructions of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "named as the instructions are")]
pub struct InstructionCounts {
    pub load_weights: u64,
    pub load_input: u64,
    pub clear: u64,
    pub accumulate: u64,
    pub align: u64,
    pub invert: u64,
    pub reduce: u64,
    pub store: u64,
}

impl InstructionCounts {
    fn add(&mut self, instruction: &Instruction) {
        *match instruction {
            Instruction::LoadWeights { .. } => &mut self.load_weights,
            Instruction::LoadInput { .. } => &mut self.load_input,
            Instruction::Clear { .. } => &mut self.clear,
            Instruction::Accumulate { .. } => &mut self.accumulate,
            Instruction::Align { .. } => &mut self.align,
            Instruction::Invert { .. } => &mut self.invert,
            Instruction::Reduce { .. } => &mut self.reduce,
            Instruction::Store { .. } => &mut self.store,
        } += 1;
    }
}

/// What [`Programs::summary`] says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Programs: elements that work, of all chips.
    pub programs: usize,
    /// Instructions of the longest.
    pub longest: usize,
    /// Instructions of all.
    pub instructions: InstructionCounts,
}

/// The programs of all elements, each made when it is asked for.
///
/// An element's arithmetic runs in stages: a piece of a position's terms, at most half of the input buffer, is
/// weighed into the partial sums of a few channels while the other half takes the next piece. In a program the loads
/// of a stage stand before its arithmetic and behind the arithmetic of the stage before it, which the element has in a
/// queue and works on meanwhile. Channels in turn go
/// through a position's pieces forwards and backwards, so that the last two pieces stay where they are. Weights that
/// fit are loaded once; those that don't, in blocks of channels into halves of their buffer; and where not even the
/// channels of one stage fit, piece by piece beside the inputs.
///
/// Programs depend on shapes alone. Which bits of a weight are zero, the element finds as it runs (the bit-1
/// selector of Fig. 15.4.4).
#[derive(Clone, Debug)]
pub struct Programs {
    assignment: Assignment,
    buffers: Buffers,
    tiles: Vec<Tile>,
    plans: Vec<Plan>,
}

impl Programs {
    /// Plans the buffers of every element.
    ///
    /// # Errors
    /// The assignment is to a CPU.
    pub fn compile(assignment: Assignment) -> Result<Self, Error> {
        let buffers = *assignment.machine().buffers().ok_or(Error::NoBuffers)?;
        let plans = assignment
            .chips()
            .iter()
            .map(|chip| {
                let channels = chip.channels.len().div_ceil(chip.partition.channels);
                Plan::new(assignment.task(), &buffers, channels)
            })
            .collect();
        let tiles = assignment.tiles();
        Ok(Self { assignment, buffers, tiles, plans })
    }

    /// What was compiled.
    #[must_use]
    pub fn assignment(&self) -> &Assignment {
        &self.assignment
    }

    /// The buffers that programs use.
    #[must_use]
    pub fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// The tiles, one a program, in the order of [`Assignment::tiles`].
    #[must_use]
    pub fn tiles(&self) -> &[Tile] {
        &self.tiles
    }

    /// The program of a tile of [`Programs::tiles`].
    ///
    /// # Errors
    /// It is over [`MAX_INSTRUCTIONS`].
    ///
    /// # Panics
    /// There is no such tile.
    pub fn program(&self, tile: usize) -> Result<Program, Error> {
        let tile = &self.tiles[tile];
        let task = self.assignment.task();
        let (chip, element) = (tile.chip, tile.element);
        let instructions = Writer::new(task, &self.buffers, self.plans[chip]).write(tile);
        let instructions = instructions.ok_or(Error::Instructions { chip, element })?;
        Ok(Program { chip, element, instructions })
    }

    /// Programs one after the other.
    ///
    /// # Errors
    /// As [`Programs::program`], each.
    pub fn iter(&self) -> impl Iterator<Item = Result<Program, Error>> + '_ {
        (0..self.tiles.len()).map(|tile| self.program(tile))
    }

    /// Proves that every program keeps to its element's buffers and that all together write each output once, from
    /// its own terms. Takes the time of making them all.
    ///
    /// # Errors
    /// As [`Program::check`] and [`Programs::program`]; or an output is not written once.
    pub fn check(&self) -> Result<(), Error> {
        let task = self.assignment.task();
        let mut written = vec![0u8; task.outputs()];
        for program in self.iter() {
            for output in program?.check(task, self.assignment.machine())? {
                let times = &mut written[output as usize];
                *times = times.saturating_add(1);
            }
        }
        match written.iter().position(|times| *times != 1) {
            Some(output) => Err(Error::Coverage { output, times: written[output].into() }),
            None => Ok(()),
        }
    }

    /// How many instructions there are of each kind. Takes the time of making them all.
    ///
    /// # Errors
    /// As [`Programs::program`].
    pub fn summary(&self) -> Result<Summary, Error> {
        let mut summary =
            Summary { programs: self.tiles.len(), longest: 0, instructions: InstructionCounts::default() };
        for program in self.iter() {
            let program = program?;
            summary.longest = summary.longest.max(program.instructions.len());
            program.instructions.iter().for_each(|i| summary.instructions.add(i));
        }
        Ok(summary)
    }
}

/// Writes a program, stage by stage: loads, then arithmetic.
pub(crate) struct Writer<'a> {
    task: &'a Task,
    plan: Plan,
    output_slots: usize,
    out: Vec<Instruction>,
    /// The half of the input buffer that the last stage reads.
    half: usize,
    /// Stages, outputs so far.
    stages: usize,
    outputs: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(task: &'a Task, buffers: &Buffers, plan: Plan) -> Self {
        let output_slots = buffers.output_slots();
        Self { task, plan, output_slots, out: Vec::new(), half: 1, stages: 0, outputs: 0 }
    }

    /// None when there are too many instructions.
    pub(crate) fn write(mut self, tile: &Tile) -> Option<Vec<Instruction>> {
        let rows = tile.channels.start * self.plan.digits..tile.channels.end * self.plan.digits;
        let block = self.plan.block.unwrap_or(rows.len());
        for (number, first) in rows.clone().step_by(block).enumerate() {
            let rows = first..(first + block).min(rows.end);
            let base = number % 2 * self.plan.weight_half;
            if self.plan.block.is_some() {
                for (at, row) in rows.clone().enumerate() {
                    let address = (base + at * self.task.terms()) as u32;
                    let count = self.task.terms() as u32;
                    let load = Instruction::LoadWeights { address, channel: row as u32, term: 0, count };
                    self.out.push(load);
                }
            }
            for at in tile.positions() {
                self.position(at, &rows, base);
                if self.out.len() > MAX_INSTRUCTIONS {
                    return None;
                }
            }
        }
        Some(self.out)
    }

    fn position(&mut self, at: (usize, usize), rows: &Range<usize>, base: usize) {
        let there = |term| self.task.input_at(at, term).map(|input| (term as u32, input));
        let terms: Vec<(u32, u32)> = (0..self.task.terms()).filter_map(there).collect();
        let mut pieces: Vec<&[(u32, u32)]> = terms.chunks(self.plan.piece).collect();
        if pieces.is_empty() {
            pieces.push(&[]); // all padding: the output is the group's one
        }
        let mut held = [None; 2]; // by the halves of the input buffer
        for (turn, first) in rows.clone().step_by(self.plan.sums).enumerate() {
            let group = first..(first + self.plan.sums).min(rows.end);
            for step in 0..pieces.len() {
                let piece = if turn % 2 == 0 { step } else { pieces.len() - 1 - step };
                let half = held.iter().position(|held| *held == Some(piece));
                self.half = half.unwrap_or(1 - self.half);
                if half.is_none() {
                    held[self.half] = Some(piece);
                    self.load_inputs(pieces[piece]);
                }
                let lie = match self.plan.block {
                    Some(_) => Rows::Whole(base + (group.start - rows.start) * self.task.terms()),
                    None => self.load_weights(pieces[piece], &group),
                };
                self.arithmetic(at, pieces[piece], &group, lie, step == 0, step + 1 == pieces.len());
                self.stages += 1;
            }
        }
    }

    fn load_inputs(&mut self, piece: &[(u32, u32)]) {
        let mut slot = (self.half * self.plan.input_half) as u32;
        for run in piece.chunk_by(|x, y| x.1.checked_add(1) == Some(y.1)) {
            let count = run.len() as u32;
            self.out.push(Instruction::LoadInput { slot, input: run[0].1, count });
            slot += count;
        }
    }

    fn load_weights(&mut self, piece: &[(u32, u32)], group: &Range<usize>) -> Rows {
        let base = self.stages % 2 * self.plan.weight_half;
        let mut address = base as u32;
        for row in group.clone() {
            for run in piece.chunk_by(|x, y| x.0 + 1 == y.0) {
                let (channel, term, count) = (row as u32, run[0].0, run.len() as u32);
                self.out.push(Instruction::LoadWeights { address, channel, term, count });
                address += count;
            }
        }
        Rows::Piece(base)
    }

    fn arithmetic(
        &mut self,
        at: (usize, usize),
        piece: &[(u32, u32)],
        group: &Range<usize>,
        lie: Rows,
        first: bool,
        last: bool,
    ) {
        let slot = (self.half * self.plan.input_half) as u32;
        for (number, row) in group.clone().enumerate() {
            let sum = number as u32;
            if first {
                self.out.push(Instruction::Clear { sum });
            }
            let address = |i: usize| match lie {
                Rows::Whole(base) => base + number * self.task.terms() + piece[i].0 as usize,
                Rows::Piece(base) => base + number * piece.len() + i,
            };
            let mut start = 0;
            for i in 1..=piece.len() {
                if i == piece.len() || address(i) != address(i - 1) + 1 {
                    self.out.push(Instruction::Accumulate {
                        sum,
                        slot: slot + start as u32,
                        address: address(start) as u32,
                        count: (i - start) as u32,
                    });
                    start = i;
                }
            }
            if last {
                let slot = (self.outputs % self.output_slots) as u32;
                if self.plan.dataflow == Dataflow::BitSerial {
                    self.out.extend([Instruction::Align { sum }, Instruction::Invert { sum }]);
                }
                self.out.push(Instruction::Reduce { sum, slot });
                if row % self.plan.digits + 1 == self.plan.digits {
                    let output = self.task.output_at(at, row / self.plan.digits) as u32;
                    self.out.push(Instruction::Store { slot, output });
                    self.outputs += 1;
                }
            }
        }
    }
}

/// Where a stage's weights lie: whole rows of terms, or rows of the piece's terms alone.
#[derive(Clone, Copy)]
enum Rows {
    Whole(usize),
    Piece(usize),
}

/// What a partial sum has been through.
#[derive(Clone, Debug, Default, PartialEq)]
enum Sum {
    #[default]
    Unused,
    /// Its channel, once known, and the terms and inputs taken in.
    Open(Option<u32>, Vec<(u32, u32)>),
    Aligned(Option<u32>, Vec<(u32, u32)>),
    Inverted(Option<u32>, Vec<(u32, u32)>),
}

impl Program {
    /// Proves that the program keeps to its buffers, reads what it has loaded and nothing else, and stores outputs
    /// that each hold every term of theirs once and nothing else; gives the outputs it stores, ascending.
    ///
    /// # Errors
    /// It does not: the first instruction at fault is named. Or the machine has no buffers.
    pub fn check(&self, task: &Task, machine: &Machine) -> Result<Vec<u32>, Error> {
        let buffers = machine.buffers().ok_or(Error::NoBuffers)?;
        let bits = task.weight_bits();
        let mut state = Checker {
            task,
            weights: vec![None; buffers.weight_slots(bits)],
            inputs: vec![None; buffers.input_slots()],
            sums: vec![Sum::Unused; buffers.sums(bits)],
            outputs: vec![None; buffers.output_slots()],
            written: Vec::new(),
        };
        let refuse = |at, why| Error::Program { chip: self.chip, element: self.element, at, why };
        for (at, instruction) in self.instructions.iter().enumerate() {
            state.step(instruction).map_err(|why| refuse(at, why))?;
        }
        let end = self.instructions.len();
        if let Some(slot) = state.outputs.iter().position(Option::is_some) {
            return Err(refuse(end, format!("ends with an output in slot {slot} that was never stored")));
        }
        if let Some(sum) = state.sums.iter().position(|sum| *sum != Sum::Unused) {
            return Err(refuse(end, format!("ends with partial sum {sum} unfinished")));
        }
        state.written.sort_unstable();
        match state.written.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(refuse(end, format!("ends with output {} stored twice", pair[0]))),
            None => Ok(state.written),
        }
    }
}

/// A channel and the terms and inputs that a sum of it has taken in.
type Taken = (Option<u32>, Vec<(u32, u32)>);

struct Checker<'a> {
    task: &'a Task,
    /// Channel and term of each.
    weights: Vec<Option<(u32, u32)>>,
    inputs: Vec<Option<u32>>,
    sums: Vec<Sum>,
    outputs: Vec<Option<Taken>>,
    written: Vec<u32>,
}

impl Checker<'_> {
    fn step(&mut self, instruction: &Instruction) -> Result<(), String> {
        match *instruction {
            Instruction::LoadWeights { address, channel, term, count } => {
                let to = span(address, count, self.weights.len(), "weight buffer")?;
                span(term, count, self.task.terms(), "terms of a channel")?;
                span(channel, 1, self.task.channels(), "channels")?;
                for (i, weight) in self.weights[to].iter_mut().enumerate() {
                    *weight = Some((channel, term + i as u32));
                }
            }
            Instruction::LoadInput { slot, input, count } => {
                let to = span(slot, count, self.inputs.len(), "input buffer")?;
                span(input, count, self.task.inputs(), "inputs")?;
                for (i, held) in self.inputs[to].iter_mut().enumerate() {
                    *held = Some(input + i as u32);
                }
            }
            Instruction::Clear { sum } => match self.sum(sum)? {
                held @ Sum::Unused => *held = Sum::Open(None, Vec::new()),
                _ => return Err(format!("clears partial sum {sum} that is in use")),
            },
            Instruction::Accumulate { sum, slot, address, count } => {
                let from = span(slot, count, self.inputs.len(), "input buffer")?;
                let by = span(address, count, self.weights.len(), "weight buffer")?;
                self.sum(sum)?;
                let Sum::Open(of, taken) = &mut self.sums[sum as usize] else {
                    return Err(format!("accumulates into partial sum {sum} that was not cleared"));
                };
                for (slot, address) in from.zip(by) {
                    let input =
                        self.inputs[slot].ok_or_else(|| format!("reads input slot {slot}, not loaded"))?;
                    let (channel, term) =
                        self.weights[address].ok_or_else(|| format!("reads weight {address}, not loaded"))?;
                    if *of.get_or_insert(channel) != channel {
                        return Err(format!("mixes channel {channel} into another's partial sum {sum}"));
                    }
                    taken.push((term, input));
                }
            }
            Instruction::Align { sum } => match std::mem::take(self.sum(sum)?) {
                Sum::Open(channel, taken) => *self.sum(sum)? = Sum::Aligned(channel, taken),
                _ => return Err(format!("aligns partial sum {sum} that is not open")),
            },
            Instruction::Invert { sum } => match std::mem::take(self.sum(sum)?) {
                Sum::Aligned(channel, taken) => *self.sum(sum)? = Sum::Inverted(channel, taken),
                _ => return Err(format!("inverts partial sum {sum} that is not aligned")),
            },
            Instruction::Reduce { sum, slot } => {
                span(slot, 1, self.outputs.len(), "output buffer")?;
                let Sum::Inverted(channel, taken) = std::mem::take(self.sum(sum)?) else {
                    return Err(format!("reduces partial sum {sum} that is not inverted"));
                };
                if self.outputs[slot as usize].replace((channel, taken)).is_some() {
                    return Err(format!("overwrites output slot {slot}, not stored yet"));
                }
            }
            Instruction::Store { slot, output } => {
                span(slot, 1, self.outputs.len(), "output buffer")?;
                span(output, 1, self.task.outputs(), "outputs")?;
                let (channel, mut taken) = self.outputs[slot as usize]
                    .take()
                    .ok_or_else(|| format!("stores output slot {slot}, which is empty"))?;
                let (at, of) = self.task.place_of(output as usize);
                if channel.is_some_and(|channel| channel as usize != of) {
                    return Err(format!("stores a sum of another channel than {of} as output {output}"));
                }
                taken.sort_unstable();
                let there = |term| self.task.input_at(at, term).map(|input| (term as u32, input));
                if !taken.into_iter().eq((0..self.task.terms()).filter_map(there)) {
                    return Err(format!(
                        "stores output {output} without having weighed each of its terms once"
                    ));
                }
                self.written.push(output);
            }
        }
        Ok(())
    }

    fn sum(&mut self, sum: u32) -> Result<&mut Sum, String> {
        span(sum, 1, self.sums.len(), "partial sums")?;
        Ok(&mut self.sums[sum as usize])
    }
}

/// `count` places from `start`, which must be within `len`.
fn span(start: u32, count: u32, len: usize, what: &str) -> Result<Range<usize>, String> {
    let (start, count) = (start as usize, count as usize);
    match start.checked_add(count) {
        Some(end) if end <= len => Ok(start..end),
        _ => Err(format!("reaches {count} from {start} on, past the {len} of the {what}")),
    }
}
