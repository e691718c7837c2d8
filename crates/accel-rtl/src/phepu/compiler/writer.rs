//! A program, written stage by stage: loads, then arithmetic.

use std::ops::Range;

use super::instruction::Instruction;
use super::limits::MAX_INSTRUCTIONS;
use super::machine::Buffers;
use super::partition::Tile;
use super::plan::{Dataflow, Plan};
use super::shape::Task;

/// Writes a program, stage by stage: loads, then arithmetic.
pub(super) struct Writer<'a> {
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
    pub(super) fn new(task: &'a Task, buffers: &Buffers, plan: Plan) -> Self {
        let output_slots = buffers.output_slots();
        Self { task, plan, output_slots, out: Vec::new(), half: 1, stages: 0, outputs: 0 }
    }

    /// None when there are too many instructions.
    pub(super) fn write(mut self, tile: &Tile) -> Option<Vec<Instruction>> {
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
