//! What the host sends: batches of gates, each gate three addresses.
//!
//! Source: SIFO (Fang, Ioannidis and Leeser 2019), sections 3.1.3, 3.3.2 and 3.4. A program's slots are places: block RAM
//! has the first of them, DDR memory the rest. A batch has gates of one kind, at most one for each cell, none of which
//! needs another; `Display` prints it as the host would log it.
//!
//! ```
//! use blindcore_accel::garble::ProgramBuilder;
//! use blindcore_accel_rtl::sifo::{CellCounts, Commands, Order};
//!
//! let mut program = ProgramBuilder::new(4);
//! program.xor(2, 0, 1)?;
//! program.and(3, 2, 0)?;
//! let commands = Commands::new(&program.finish(), CellCounts { ands: 15, xors: Some(15) }, Order::default(), 3);
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

/// When a batch's gates may begin, and what the host waits for beyond what it must.
///
/// The default is the overlay at its fastest. What the paper's stages of the design did is inferred from their times
/// (`repro/sifo/README.md`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// A batch begins when its last register has arrived (figure 7), and not with its first gate (figure 8); not XORs between
    /// which the host doesn't wait.
    pub whole_batches: bool,
    /// An AND begins when the gate before it is finished.
    pub ands_in_turn: bool,
    /// The host waits after a layer's XORs even where ANDs follow, and not only where none do.
    pub waits_for_xors: bool,
    /// Register accesses of the host for each AND before those of its addresses: to read a table of 240 bits back takes eight.
    pub and_accesses: usize,
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
    /// It begins when its last gate has arrived.
    pub whole: bool,
    /// Each of its gates begins when the one before is finished.
    pub in_turn: bool,
    /// Which of [`Commands::gates`].
    pub gates: Range<usize>,
}

/// Gates of a batch that can wait for its last one: the chip's queue holds them and the header (`sifo.sv`, `u_queue`).
const MOST_WHOLE: usize = 63;

/// A program as the host sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commands {
    batches: Vec<Batch>,
    gates: Vec<[RawAddress; 3]>,
    order: Order,
    xors_waited_for: bool,
}

impl Commands {
    /// Cuts a program into batches for these cells; its first `block_ram` slots are places of block RAM.
    ///
    /// # Panics
    /// No cells of a kind, or a slot of 2^31 or more.
    #[must_use]
    pub fn new(program: &Program, cells: CellCounts, order: Order, block_ram: usize) -> Self {
        assert!(cells.ands > 0 && cells.xors != Some(0), "a cell of each kind");
        let address = |slot: u32| {
            assert!(slot < 1 << 31, "slot {slot} is past 31 bits");
            if (slot as usize) < block_ram { slot << 1 | 1 } else { (slot - block_ram as u32) << 1 }
        };
        let mut commands = Self {
            batches: Vec::new(),
            gates: Vec::with_capacity(program.steps().len()),
            order,
            xors_waited_for: cells.xors.is_some(),
        };
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
            commands.end(
                Operation::Xor,
                cells.xors.is_some() || ands.is_empty() || order.waits_for_xors,
                begin,
            );
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
            let stream = operation == Operation::Xor && !self.xors_waited_for;
            let whole = self.order.whole_batches && !stream && self.gates.len() - begin <= MOST_WHOLE;
            let in_turn = self.order.ands_in_turn && operation == Operation::And;
            self.batches.push(Batch { operation, sync, whole, in_turn, gates: begin..self.gates.len() });
        }
    }

    /// When gates begin.
    pub(super) fn order(&self) -> Order {
        self.order
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
        const NOTHING: u32 = 15; // a register that nothing reads
        const FENCE: u32 = 1 << 27;
        const SYNC: u32 = 1 << 28;
        const WHOLE: u32 = 1 << 29;
        const IN_TURN: u32 = 1 << 30;
        self.batches.iter().flat_map(move |batch| {
            let operation = u32::from(batch.operation == Operation::And) << 24;
            let flags = [(batch.sync, SYNC), (batch.whole, WHOLE), (batch.in_turn, IN_TURN)];
            let flags = flags.into_iter().filter_map(|(set, bit)| set.then_some(bit)).sum::<u32>();
            let header = batch.gates.len() as u32 | operation | FENCE | flags;
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
                let more = if batch.operation == Operation::And { self.order.and_accesses } else { 0 };
                std::iter::repeat_n((false, NOTHING, 0), more)
                    .chain(writes.into_iter().take(registers.count()))
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
