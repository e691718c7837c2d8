//! What the host sends: batches of gates, each gate three addresses.
//!
//! Source: SIFO (Fang, Ioannidis and Leeser 2019), sections 3.1.3, 3.3.2 and 3.4. A program's slots are places: block RAM
//! has the first of them, DDR memory the rest. A batch has gates of one kind, at most one for each cell, none of which
//! needs another; `Display` prints it as the host would log it.
//!
//! ```
//! use blindcore_accel::garble::ProgramBuilder;
//! use blindcore_accel_rtl::sifo::{CellCounts, Commands};
//!
//! let mut program = ProgramBuilder::new(4);
//! program.xor(2, 0, 1)?;
//! program.and(3, 2, 0)?;
//! let commands = Commands::new(&program.finish(), CellCounts { ands: 15, xors: Some(15) }, 3);
//! assert_eq!(commands.batches().len(), 2);
//! assert_eq!(commands.to_string(), "XOR 1\n  ram 2 = ram 0, ram 1\nAND 1\n  ddr 0 = ram 2, ram 0\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::ops::Range;

use blindcore_accel::garble::{Program, Step};

/// How many gates of each kind are garbled at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellCounts {
    /// AND cells, 1 or more.
    pub ands: usize,
    /// XOR cells, 1 or more; `None` where the host sends a layer's XORs without waiting in between (section 4.2).
    pub xors: Option<usize>,
}

/// What a batch does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Free XORs.
    Xor,
    /// Garbled ANDs.
    And,
}

/// A place and, as its last bit, which memory: 1 is block RAM.
pub type RawAddress = u32;

/// Gates of one kind that need nothing of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// What they do.
    pub operation: Operation,
    /// The host waits until they are done before it sends the next.
    pub sync: bool,
    /// Which of [`Commands::gates`].
    pub gates: Range<usize>,
}

/// A program as the host sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commands {
    batches: Vec<Batch>,
    gates: Vec<[RawAddress; 3]>,
}

impl Commands {
    /// Cuts a program into batches for these cells; its first `block_ram` slots are places of block RAM.
    ///
    /// # Panics
    /// No cells of a kind, or a slot of 2^31 or more.
    #[must_use]
    pub fn new(program: &Program, cells: CellCounts, block_ram: usize) -> Self {
        assert!(cells.ands > 0 && cells.xors != Some(0), "a cell of each kind");
        let address = |slot: u32| {
            assert!(slot < 1 << 31, "slot {slot} is past 31 bits");
            if (slot as usize) < block_ram { slot << 1 | 1 } else { (slot - block_ram as u32) << 1 }
        };
        let mut commands = Self { batches: Vec::new(), gates: Vec::with_capacity(program.steps().len()) };
        // The XOR batch that wrote a slot last, by its number from 1.
        let mut wrote = vec![0u32; program.slots()];
        let mut number = 0;
        let gate = |step: &Step| [address(step.a), address(step.b), address(step.out)];
        for (xors, ands, _) in program.parts().iter().flat_map(|part| program.layers_of(*part)) {
            let mut begin = commands.gates.len();
            number += 1;
            for step in xors {
                let full = cells.xors.is_some_and(|most| commands.gates.len() - begin == most);
                // One that needs what a gate of the batch writes, or writes the same place, waits for the next batch.
                let waits = [step.a, step.b, step.out].iter().any(|slot| wrote[*slot as usize] == number);
                if full || waits {
                    // Without waits in between only what must wait does.
                    commands.end(Operation::Xor, cells.xors.is_some() || waits, begin);
                    begin = commands.gates.len();
                    number += 1;
                }
                wrote[step.out as usize] = number;
                commands.gates.push(gate(step));
            }
            commands.end(Operation::Xor, cells.xors.is_some() || ands.is_empty(), begin);
            for batch in ands.chunks(cells.ands) {
                let begin = commands.gates.len();
                commands.gates.extend(batch.iter().map(gate));
                commands.end(Operation::And, true, begin);
            }
        }
        commands
    }

    fn end(&mut self, operation: Operation, sync: bool, begin: usize) {
        if begin < self.gates.len() {
            self.batches.push(Batch { operation, sync, gates: begin..self.gates.len() });
        }
    }

    /// The batches, in order.
    #[must_use]
    pub fn batches(&self) -> &[Batch] {
        &self.batches
    }

    /// The addresses of a, b and the output of every gate, in order.
    #[must_use]
    pub fn gates(&self) -> &[[RawAddress; 3]] {
        &self.gates
    }

    /// Addresses of DDR memory among all.
    #[must_use]
    pub fn ddr_accesses(&self) -> usize {
        self.gates.iter().flatten().filter(|address| **address & 1 == 0).count()
    }

    /// The register writes: whether the host waits behind it, the register, the data (`sf_registers.sv`).
    pub(super) fn writes(&self, registers: Registers) -> impl Iterator<Item = (bool, u32, u32)> {
        const FENCE: u32 = 1 << 27;
        const SYNC: u32 = 1 << 28;
        self.batches.iter().flat_map(move |batch| {
            let operation = u32::from(batch.operation == Operation::And) << 24;
            let sync = if batch.sync { SYNC } else { 0 };
            let header = batch.gates.len() as u32 | operation | FENCE | sync;
            let last = batch.gates.end - 1;
            let gates = batch.gates.clone().flat_map(move |i| {
                let [a, b, out] = self.gates[i];
                let wait = batch.sync && i == last;
                let packed = u64::from(out) << 42 | u64::from(b) << 21 | u64::from(a);
                let writes = match registers {
                    Registers::Two => {
                        [(false, 1, packed as u32), (wait, 2, (packed >> 32) as u32), (false, 0, 0)]
                    }
                    Registers::Three => [(false, 3, a), (false, 4, b), (wait, 5, out)],
                };
                writes.into_iter().take(registers.count())
            });
            std::iter::once((false, 0, header)).chain(gates)
        })
    }
}

/// How many registers of 32 bits carry the three addresses of a gate (section 3.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registers {
    /// Three addresses of 20 bits and a flag each, packed.
    Two,
    /// One an address.
    Three,
}

impl Registers {
    /// How many.
    #[must_use]
    pub fn count(self) -> usize {
        match self {
            Registers::Two => 2,
            Registers::Three => 3,
        }
    }
}

impl fmt::Display for Commands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = |address: RawAddress| (if address & 1 == 1 { "ram" } else { "ddr" }, address >> 1);
        for batch in &self.batches {
            let name = match batch.operation {
                Operation::Xor => "XOR",
                Operation::And => "AND",
            };
            writeln!(f, "{name} {}{}", batch.gates.len(), if batch.sync { "" } else { ", without a wait" })?;
            for [a, b, out] in &self.gates[batch.gates.clone()] {
                let [(a, at_a), (b, at_b), (out, at_out)] = [*a, *b, *out].map(place);
                writeln!(f, "  {out} {at_out} = {a} {at_a}, {b} {at_b}")?;
            }
        }
        Ok(())
    }
}
