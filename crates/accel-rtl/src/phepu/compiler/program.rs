//! Programs: what each processing element does, instruction by instruction.

use serde::Serialize;

use super::error::Error;
use super::instruction::{Instruction, InstructionCounts};
use super::machine::Buffers;
use super::partition::{Assignment, Tile};
use super::plan::Plan;
use super::writer::Writer;

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
    /// It is over the most instructions that a program has.
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
