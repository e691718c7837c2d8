//! Gates over wires that are written once: a circuit as schedules take it, before it has slots.

use std::fmt;

/// A wire, by its number: 0 and 1 are the constants, then come the inputs' bits, then each gate's output.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Wire(pub u32);

impl Wire {
    /// The constant 0.
    pub const ZERO: Wire = Wire(0);
    /// The constant 1. A negation is an XOR with it, and as free.
    pub const ONE: Wire = Wire(1);

    /// Whether it is one of the two constants.
    #[must_use]
    pub fn is_constant(self) -> bool {
        self.0 < 2
    }

    /// Its place in an array of wires.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "w{}", self.0)
    }
}

/// What a gate computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `a & b`, the only gate that costs anything.
    And,
    /// `a ^ b`, free.
    Xor,
}

/// A gate with two inputs; its output is the wire of its position. Eight bytes, for circuits have many.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gate {
    /// The first input; [`AND`] is set where it is one.
    a: u32,
    b: u32,
}

/// The bit of a gate's first input that no wire's number has.
const AND: u32 = MAX_WIRES as u32;

impl Gate {
    /// A gate of this kind that reads these wires.
    ///
    /// # Panics
    /// A wire's number is not below [`MAX_WIRES`].
    #[inline]
    #[must_use]
    pub const fn new(kind: Kind, a: Wire, b: Wire) -> Self {
        assert!(a.0 < AND && b.0 < AND, "a wire's number is below 2^31");
        let kind = match kind {
            Kind::And => AND,
            Kind::Xor => 0,
        };
        Self { a: a.0 | kind, b: b.0 }
    }

    /// What it computes.
    #[inline]
    #[must_use]
    pub const fn kind(self) -> Kind {
        if self.a & AND == 0 { Kind::Xor } else { Kind::And }
    }

    /// The first input.
    #[inline]
    #[must_use]
    pub const fn a(self) -> Wire {
        Wire(self.a & !AND)
    }

    /// The second input.
    #[inline]
    #[must_use]
    pub const fn b(self) -> Wire {
        Wire(self.b)
    }

    /// Both inputs.
    #[inline]
    #[must_use]
    pub const fn reads(self) -> [Wire; 2] {
        [self.a(), self.b()]
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({:?}, {:?})", self.kind(), self.a(), self.b())
    }
}

/// How many wires a circuit held in memory can have.
pub const MAX_WIRES: usize = 1 << 31;

/// A circuit's gates in an order in which every wire is written before it is read.
///
/// Gate `i` writes the wire after that of gate `i - 1` and reads wires below its own. Wires 0 and 1 are the constants, then
/// come the inputs' bits, then each gate's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wiring<'a> {
    input_bits: usize,
    gates: &'a [Gate],
    outputs: Vec<Wire>,
}

impl<'a> Wiring<'a> {
    /// Gates over this many bits of input, and the wires that are asked for in the end; none if a gate or an output reads
    /// what is not written before it, or if there are more than [`MAX_WIRES`].
    #[must_use]
    pub fn new(input_bits: usize, gates: &'a [Gate], outputs: Vec<Wire>) -> Option<Self> {
        let first = input_bits.checked_add(2)?;
        let total = first.checked_add(gates.len()).filter(|total| *total <= MAX_WIRES)?;
        let written = |(i, gate): (usize, &Gate)| gate.a().index().max(gate.b().index()) < first + i;
        let fits = gates.iter().enumerate().all(written) && outputs.iter().all(|wire| wire.index() < total);
        fits.then_some(Self { input_bits, gates, outputs })
    }

    /// The gates, in order.
    #[must_use]
    pub fn gates(&self) -> &'a [Gate] {
        self.gates
    }

    /// The wires that are asked for, in order.
    #[must_use]
    pub fn outputs(&self) -> &[Wire] {
        &self.outputs
    }

    /// The wire of the first gate: two constants and all input bits come before.
    #[must_use]
    pub fn first_gate_wire(&self) -> Wire {
        Wire(2 + self.input_bits as u32)
    }

    /// All bits of all inputs.
    #[must_use]
    pub fn input_bits(&self) -> usize {
        self.input_bits
    }

    /// All wires: constants, input bits and gates.
    #[must_use]
    pub fn wires(&self) -> usize {
        2 + self.input_bits + self.gates.len()
    }

    /// AND gates.
    #[must_use]
    pub fn ands(&self) -> usize {
        self.gates.iter().filter(|gate| gate.kind() == Kind::And).count()
    }
}

#[cfg(test)]
mod tests {
    use super::{Gate, Kind, Wire, Wiring};

    #[test]
    fn what_reads_ahead_is_refused() {
        let gate = |a, b| Gate::new(Kind::And, Wire(a), Wire(b));
        assert!(Wiring::new(1, &[gate(0, 2), gate(3, 1)], vec![Wire(4)]).is_some());
        assert!(Wiring::new(1, &[gate(0, 3)], vec![]).is_none());
        assert!(Wiring::new(1, &[gate(0, 2)], vec![Wire(4)]).is_none());
    }
}
