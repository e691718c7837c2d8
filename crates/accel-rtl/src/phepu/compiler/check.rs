//! The proof that a program keeps to its element's buffers and writes what it should.

use std::ops::Range;

use super::error::Error;
use super::instruction::Instruction;
use super::machine::Machine;
use super::program::Program;
use super::shape::Task;

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
