//! The builder: gates one by one, folded where they can be.
//!
//! Whatever is a constant, a repeated operand or a gate that was made just before costs nothing. Gadgets on words
//! ([`gadgets`](crate::gadgets)) are further `impl Builder` blocks, in terms of the five operations here.

use blindcore_accel::garble::Bits;

use crate::netlist::{Form, Gate, Kind, MAX_WIRES, Netlist, NetlistError, Port, Wire};

/// A bit of a circuit under construction.
pub type Bit = Wire;

/// Builds a [`Netlist`].
///
/// ```
/// use blindcore_circuit::builder::Builder;
///
/// let mut c = Builder::new();
/// let (a, b) = (c.input("a", 1), c.input("b", 1));
/// let both = c.and(a[0], b[0]);
/// c.output("both", &[both]);
/// let netlist = c.finish()?;
/// assert_eq!(netlist.evaluate(&[vec![true], vec![true]])?, [[true]]);
/// # Ok::<(), blindcore_circuit::netlist::NetlistError>(())
/// ```
pub struct Builder {
    inputs: Vec<(String, usize)>,
    input_bits: usize,
    gates: Vec<Gate>,
    outputs: Vec<Port>,
    /// What inputs and outputs stand for.
    forms: [Vec<Form>; 2],
    /// Gates made lately and their wires, by a hash of what they are: a direct-mapped cache.
    recent: Vec<(Gate, u32)>,
    ands: usize,
    /// Which gates are read by another one.
    read: Bits,
    /// Whether a gate reads a wire that is not there yet, one of another builder.
    unwritten: bool,
}

const RECENT: usize = 1 << 14;
/// A gate that is never made, for it is folded.
const NONE: Gate = Gate::new(Kind::Xor, Wire::ZERO, Wire::ZERO);

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// An empty circuit.
    #[must_use]
    pub fn new() -> Self {
        let recent = vec![(NONE, 0); RECENT];
        let (inputs, gates, outputs) = (Vec::new(), Vec::new(), Vec::new());
        let (forms, read) = Default::default();
        Self { inputs, input_bits: 0, gates, outputs, forms, recent, ands: 0, read, unwritten: false }
    }

    /// A new input of `width` bits, least significant first.
    ///
    /// # Panics
    /// After the first gate: inputs come first.
    pub fn input(&mut self, name: impl Into<String>, width: usize) -> Vec<Bit> {
        self.input_of(Form::default(), name, width)
    }

    /// The same, with what its bits stand for: sessions check it, and values are read and shown by it.
    ///
    /// # Panics
    /// As [`input`](Self::input).
    pub fn input_of(&mut self, form: Form, name: impl Into<String>, width: usize) -> Vec<Bit> {
        assert!(self.gates.is_empty(), "inputs are declared before the first gate");
        let first = 2 + self.input_bits as u32;
        self.inputs.push((name.into(), width));
        self.forms[0].push(form);
        self.input_bits += width;
        (first..first + width as u32).map(Wire).collect()
    }

    /// Makes these bits an output, least significant first.
    pub fn output(&mut self, name: impl Into<String>, bits: &[Bit]) {
        self.output_of(Form::default(), name, bits);
    }

    /// The same, with what they stand for.
    pub fn output_of(&mut self, form: Form, name: impl Into<String>, bits: &[Bit]) {
        self.forms[1].push(form);
        self.outputs.push(Port { name: name.into(), wires: bits.to_vec() });
    }

    /// The constant bit of this value.
    #[must_use]
    pub fn constant(&self, value: bool) -> Bit {
        if value { Wire::ONE } else { Wire::ZERO }
    }

    /// `a ^ b`.
    pub fn xor(&mut self, a: Bit, b: Bit) -> Bit {
        let (a, b) = (a.min(b), a.max(b));
        if a == b {
            return Wire::ZERO;
        }
        if a == Wire::ZERO {
            return b;
        }
        // !!x is x.
        if a == Wire::ONE
            && let Some(x) = self.negated(b)
        {
            return x;
        }
        self.gate(Gate::new(Kind::Xor, a, b))
    }

    /// `!a`.
    pub fn not(&mut self, a: Bit) -> Bit {
        self.xor(a, Wire::ONE)
    }

    /// `a & b`.
    pub fn and(&mut self, a: Bit, b: Bit) -> Bit {
        let (a, b) = (a.min(b), a.max(b));
        if a == Wire::ZERO {
            return a;
        }
        if a == Wire::ONE || a == b {
            return b;
        }
        if self.negated(a) == Some(b) || self.negated(b) == Some(a) {
            return Wire::ZERO;
        }
        self.gate(Gate::new(Kind::And, a, b))
    }

    /// `a | b`, by one AND.
    pub fn or(&mut self, a: Bit, b: Bit) -> Bit {
        let (either, both) = (self.xor(a, b), self.and(a, b));
        self.xor(either, both)
    }

    /// `if condition { then } else { otherwise }`, by one AND.
    pub fn mux(&mut self, condition: Bit, then: Bit, otherwise: Bit) -> Bit {
        let differ = self.xor(then, otherwise);
        let change = self.and(condition, differ);
        self.xor(change, otherwise)
    }

    /// AND gates made so far.
    #[must_use]
    pub fn ands(&self) -> usize {
        self.ands
    }

    /// The circuit, without the gates that no output needs.
    ///
    /// # Errors
    /// More wires than a netlist in memory can have; or a gate or an output reads a wire that is not this builder's.
    pub fn finish(mut self) -> Result<Netlist, NetlistError> {
        let end = 2 + self.input_bits + self.gates.len();
        if self.unwritten || self.outputs.iter().flat_map(|p| &p.wires).any(|w| w.index() >= end) {
            // It says which.
            return Netlist::new(self.inputs, self.gates, self.outputs);
        }
        if !self.all_are_read() {
            self.keep_needed();
        }
        // What growing took beside them, and what no output needs.
        self.gates.shrink_to_fit();
        let [inputs_are, outputs_are] = self.forms;
        let netlist = Netlist::in_order(self.inputs, self.gates, self.ands, self.outputs)?;
        Ok(netlist.with_forms(inputs_are, outputs_are))
    }

    /// Whether each gate is an output or is read, by one that is made later, and so is needed.
    fn all_are_read(&mut self) -> bool {
        let first = 2 + self.input_bits;
        let outputs = self.outputs.iter().flat_map(|p| &p.wires).filter_map(|w| w.index().checked_sub(first));
        outputs.for_each(|gate| self.read.set(gate));
        self.read.all(self.gates.len())
    }

    /// Drops the gates that no output needs.
    fn keep_needed(&mut self) {
        let first = 2 + self.input_bits;
        let gate_of = |w: Wire| w.index().checked_sub(first);
        let mut needed = Bits::new(self.gates.len());
        self.outputs.iter().flat_map(|p| &p.wires).filter_map(|w| gate_of(*w)).for_each(|i| needed.set(i));
        for (i, gate) in self.gates.iter().enumerate().rev() {
            if needed.get(i) {
                gate.reads().into_iter().filter_map(gate_of).for_each(|read| needed.set(read));
            }
        }
        // In place: gates move down only, from the first on that is not needed.
        let places = needed.ranks();
        let same = (0..self.gates.len()).find(|i| !needed.get(*i)).unwrap_or(self.gates.len());
        let rename = |w: Wire| match gate_of(w) {
            Some(i) if i > same => Wire((first + places.of(&needed, i)) as u32),
            _ => w,
        };
        let mut kept = same;
        for i in same..self.gates.len() {
            let gate = self.gates[i];
            if needed.get(i) {
                self.gates[kept] = Gate::new(gate.kind(), rename(gate.a()), rename(gate.b()));
                kept += 1;
            } else {
                self.ands -= usize::from(gate.kind() == Kind::And);
            }
        }
        self.gates.truncate(kept);
        self.outputs.iter_mut().flat_map(|p| &mut p.wires).for_each(|w| *w = rename(*w));
    }

    /// `x` where `w` is the gate `1 ^ x`.
    fn negated(&self, w: Wire) -> Option<Wire> {
        let gate = self.gates.get(w.index().checked_sub(2 + self.input_bits)?)?;
        (gate.kind() == Kind::Xor && gate.a() == Wire::ONE).then_some(gate.b())
    }

    fn gate(&mut self, gate: Gate) -> Bit {
        let mixed = (u64::from(gate.a().0) << 32 | u64::from(gate.b().0))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(if gate.kind() == Kind::And { 1 << 63 } else { 0 });
        let place = &mut self.recent[(mixed >> (64 - RECENT.trailing_zeros())) as usize];
        if place.0 == gate {
            return Wire(place.1);
        }
        let first = 2 + self.input_bits;
        let wire = first + self.gates.len();
        assert!(wire < MAX_WIRES, "a builder's wires fit 31 bits");
        *place = (gate, wire as u32);
        if self.gates.len().is_multiple_of(64) {
            self.read.append_word();
        }
        for read in gate.reads() {
            match read.index().checked_sub(first) {
                Some(read) if read < self.gates.len() => self.read.set(read),
                Some(_) => self.unwritten = true,
                None => {}
            }
        }
        self.ands += usize::from(gate.kind() == Kind::And);
        self.gates.push(gate);
        Wire(wire as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::{Builder, NetlistError};

    #[test]
    fn wires_of_another_builder_are_refused() {
        let far = {
            let mut other = Builder::new();
            let x = other.input("x", 400);
            x[399]
        };
        for by_gate in [false, true] {
            let mut c = Builder::new();
            let x = c.input("x", 2);
            let near = c.and(x[0], x[1]);
            let last = if by_gate { c.xor(near, far) } else { far };
            c.output("y", &[near, last]);
            assert!(matches!(c.finish(), Err(NetlistError::Unwritten { wire, .. }) if wire == far));
        }
    }

    #[test]
    fn gates_that_no_output_needs_are_dropped() {
        let build = |dead: &[usize]| {
            let mut c = Builder::new();
            let x = c.input("x", 100);
            let mut sums = vec![x[0]];
            for (i, bit) in x.iter().enumerate().skip(1) {
                if dead.contains(&i) {
                    // An AND, and an XOR of it.
                    let and = c.and(*bit, x[i - 1]);
                    c.xor(and, x[0]);
                }
                let last = sums[i - 1];
                sums.push(if i % 3 == 0 { c.and(last, *bit) } else { c.xor(last, *bit) });
            }
            c.output("y", &[sums[99], sums[64]]);
            c.finish().unwrap()
        };
        let all = build(&[]);
        assert_eq!((all.gates().len(), all.ands()), (99, 33));
        for dead in [&[1][..], &[50], &[99], &[1, 2, 63, 64, 65, 98, 99]] {
            assert_eq!(build(dead), all);
        }
    }
}
