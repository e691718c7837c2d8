//! Netlists: AND and XOR gates in an order in which every wire is written before it is read.
//!
//! A [`Netlist`] can't hold a cycle, a wire with two writers or one without: gate `i` writes the wire after that of
//! gate `i - 1` and reads wires below its own. Files in other orders are sorted where they are read
//! ([`formats`](crate::formats)).

pub use blindcore_accel::garble::{Gate, Kind, MAX_WIRES, Wire, Wiring};

pub use crate::ports::{Form, PortShape};

/// An input or an output: a number of bits under a name, least significant bit first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name; made up (`in0`, `out0`) where a file has none.
    pub name: String,
    /// Its bits, first the least significant.
    pub wires: Vec<Wire>,
}

/// A Boolean circuit of AND and XOR gates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Netlist {
    inputs: Vec<Port>,
    gates: Vec<Gate>,
    outputs: Vec<Port>,
    input_bits: usize,
    ands: usize,
    /// Of inputs and of outputs, where they were declared.
    forms: [Vec<Form>; 2],
}

/// Why a netlist is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetlistError {
    /// A gate or output reads what is not written before it.
    #[error("{reader} reads wire {wire:?}, and only the {known} wires before it exist")]
    Unwritten {
        /// Which gate or output.
        reader: String,
        /// The wire.
        wire: Wire,
        /// How many wires there are at that point.
        known: usize,
    },
    /// More wires than a netlist in memory can have.
    #[error(
        "{got} wires are over the {MAX_WIRES} of a netlist in memory; cut it into pieces and stream them"
    )]
    TooLarge {
        /// How many there would be.
        got: usize,
    },
    /// An input value that has bits beyond its port's width, or the wrong number of values.
    #[error("{0}")]
    Input(String),
}

impl Netlist {
    /// A netlist of inputs with these names and widths, gates in order, and outputs.
    ///
    /// # Errors
    /// A gate or an output reads a wire that is not there yet; or there are more than [`MAX_WIRES`].
    pub fn new(
        inputs: impl IntoIterator<Item = (String, usize)>,
        gates: Vec<Gate>,
        outputs: Vec<Port>,
    ) -> Result<Self, NetlistError> {
        let inputs: Vec<_> = inputs.into_iter().collect();
        let first = inputs.iter().fold(2usize, |sum, (_, width)| sum.saturating_add(*width));
        let mut ands = 0;
        for (i, gate) in gates.iter().enumerate() {
            let known = first.saturating_add(i);
            if let Some(wire) = gate.reads().into_iter().find(|w| w.index() >= known) {
                return Err(NetlistError::Unwritten { reader: format!("gate {i}"), wire, known });
            }
            ands += usize::from(gate.kind() == Kind::And);
        }
        Self::in_order(inputs, gates, ands, outputs)
    }

    /// The same of gates that are known to read what is written before them, with this many ANDs.
    pub(crate) fn in_order(
        inputs: impl IntoIterator<Item = (String, usize)>,
        gates: Vec<Gate>,
        ands: usize,
        outputs: Vec<Port>,
    ) -> Result<Self, NetlistError> {
        let mut next = 2usize;
        let mut ports = Vec::new();
        for (name, width) in inputs {
            let end = next.saturating_add(width);
            if end > MAX_WIRES {
                return Err(NetlistError::TooLarge { got: end });
            }
            ports.push(Port { name, wires: (next as u32..end as u32).map(Wire).collect() });
            next = end;
        }
        let input_bits = next - 2;
        let total = next.saturating_add(gates.len());
        if total > MAX_WIRES {
            return Err(NetlistError::TooLarge { got: total });
        }
        for port in &outputs {
            if let Some(&wire) = port.wires.iter().find(|w| w.index() >= total) {
                let reader = format!("output {:?}", port.name);
                return Err(NetlistError::Unwritten { reader, wire, known: total });
            }
        }
        Ok(Self { inputs: ports, gates, outputs, input_bits, ands, forms: Default::default() })
    }

    /// The same, with what its inputs and outputs stand for.
    pub(crate) fn with_forms(mut self, inputs: Vec<Form>, outputs: Vec<Form>) -> Self {
        self.forms = [inputs, outputs];
        self
    }

    /// Names, widths and forms of the inputs, in order.
    #[must_use]
    pub fn input_shapes(&self) -> Vec<PortShape> {
        shapes(&self.inputs, &self.forms[0])
    }

    /// Names, widths and forms of the outputs, in order.
    #[must_use]
    pub fn output_shapes(&self) -> Vec<PortShape> {
        shapes(&self.outputs, &self.forms[1])
    }

    /// The inputs, in order; their wires are consecutive from 2.
    #[must_use]
    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    /// The outputs, in order.
    #[must_use]
    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// The gates, in order.
    #[must_use]
    pub fn gates(&self) -> &[Gate] {
        &self.gates
    }

    /// The gates alone.
    pub(crate) fn into_gates(self) -> Vec<Gate> {
        self.gates
    }

    /// Every gate with the wire that it writes.
    pub fn gates_with_wires(&self) -> impl Iterator<Item = (Wire, Gate)> + '_ {
        let first = self.first_gate_wire().0;
        self.gates.iter().enumerate().map(move |(i, gate)| (Wire(first + i as u32), *gate))
    }

    /// The wire of the first gate: two constants and all input bits come before.
    #[must_use]
    pub fn first_gate_wire(&self) -> Wire {
        Wire(2 + self.input_bits as u32)
    }

    /// Its gates and wires without the names of its ports: what schedules are made of.
    #[must_use]
    pub fn wiring(&self) -> Wiring<'_> {
        let outputs = self.outputs.iter().flat_map(|port| port.wires.iter().copied()).collect();
        Wiring::new(self.input_bits, &self.gates, outputs)
            .expect("a netlist's gates read wires below their own")
    }

    /// All bits of all inputs.
    #[must_use]
    pub fn input_bits(&self) -> usize {
        self.input_bits
    }

    /// All bits of all outputs.
    #[must_use]
    pub fn output_bits(&self) -> usize {
        self.outputs.iter().map(|p| p.wires.len()).sum()
    }

    /// All wires: constants, input bits and gates.
    #[must_use]
    pub fn wires(&self) -> usize {
        2 + self.input_bits + self.gates.len()
    }

    /// AND gates.
    #[must_use]
    pub fn ands(&self) -> usize {
        self.ands
    }

    /// Evaluates in the clear: bits of each input, least significant first, to bits of each output.
    ///
    /// # Errors
    /// The number of values or a value's number of bits differs from the inputs'.
    pub fn evaluate(&self, inputs: &[Vec<bool>]) -> Result<Vec<Vec<bool>>, NetlistError> {
        if inputs.len() != self.inputs.len() {
            let (got, want) = (inputs.len(), self.inputs.len());
            return Err(NetlistError::Input(format!("{got} values for {want} inputs")));
        }
        let mut wires = Vec::with_capacity(self.wires());
        wires.extend([false, true]);
        for (bits, port) in inputs.iter().zip(&self.inputs) {
            if bits.len() != port.wires.len() {
                let (got, want) = (bits.len(), port.wires.len());
                return Err(NetlistError::Input(format!("{got} bits for input {:?} of {want}", port.name)));
            }
            wires.extend(bits);
        }
        for gate in &self.gates {
            let (a, b) = (wires[gate.a().index()], wires[gate.b().index()]);
            wires.push(match gate.kind() {
                Kind::And => a & b,
                Kind::Xor => a ^ b,
            });
        }
        Ok(self.outputs.iter().map(|p| p.wires.iter().map(|w| wires[w.index()]).collect()).collect())
    }
}

fn shapes(ports: &[Port], forms: &[Form]) -> Vec<PortShape> {
    let form = |i| forms.get(i).copied().unwrap_or_default();
    let shape = |(i, port): (usize, &Port)| PortShape {
        name: port.name.clone(),
        width: port.wires.len(),
        form: form(i),
    };
    ports.iter().enumerate().map(shape).collect()
}
