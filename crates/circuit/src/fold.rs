//! Circuits without gates that they don't need.

use crate::builder::Builder;
use crate::netlist::{Kind, Netlist, NetlistError};

/// The same circuit without gates that a constant or an earlier gate makes unneeded, nor gates that nobody reads.
///
/// FlexSC folds nothing: a third of the XORs of its multipliers are with 0.
///
/// # Errors
/// There are more wires than a netlist has; never for a netlist that has fewer.
pub fn folded(netlist: &Netlist) -> Result<Netlist, NetlistError> {
    let mut read = vec![false; netlist.wires()];
    for wire in netlist.outputs().iter().flat_map(|port| &port.wires) {
        read[wire.index()] = true;
    }
    let first = netlist.first_gate_wire().index();
    for (i, gate) in netlist.gates().iter().enumerate().rev() {
        if read[first + i] {
            read[gate.a().index()] = true;
            read[gate.b().index()] = true;
        }
    }
    let mut c = Builder::new();
    let mut bits = vec![c.constant(false), c.constant(true)];
    for port in netlist.input_shapes() {
        bits.extend(c.input_of(port.form, port.name, port.width));
    }
    for (i, gate) in netlist.gates().iter().enumerate() {
        let (a, b) = (bits[gate.a().index()], bits[gate.b().index()]);
        bits.push(match gate.kind() {
            _ if !read[first + i] => c.constant(false),
            Kind::Xor => c.xor(a, b),
            Kind::And => c.and(a, b),
        });
    }
    for (port, shape) in netlist.outputs().iter().zip(netlist.output_shapes()) {
        let port_bits: Vec<_> = port.wires.iter().map(|wire| bits[wire.index()]).collect();
        c.output_of(shape.form, shape.name, &port_bits);
    }
    c.finish()
}
