//! What an overlay garbles: a netlist's gates over the places of its two memories, and what hardware can take together.
//!
//! - [`program`] puts a netlist into the order of its batches, every gate on the places that an [`Assignment`] gives it.
//!   Devices run it like any other program, which says what an overlay's tables have to be.
//! - [`full_adders`] finds the five gates of a full adder, which a cell takes as one: they span three layers, and three of
//!   their wires never leave it.
//! - [`components`] finds subcircuits that share inputs alone and have the same shape: one sequence of commands serves all
//!   of a shape, on labels of their own.
//!
//! Source: SIFO (Fang, Ioannidis and Leeser 2019), section 3.3; cells across layers are what its section 5 proposes.
//!
//! ```
//! use blindcore_accel_rtl::sifo::layers::{Cells, Layers};
//! use blindcore_accel_rtl::sifo::circuits;
//! use blindcore_accel_rtl::sifo::memory::{Assignment, BLOCK_RAM, Policy};
//! use blindcore_circuit::problems::published::{ROWS, netlist};
//!
//! let circuit = netlist(ROWS.iter().find(|row| row.name == "matmul5x5x4").unwrap());
//! let netlist = circuit.wiring();
//! let (layers, cells) = (Layers::new(&netlist), Cells::new(15, Some(15))?);
//! let assignment = Assignment::new(&netlist, &layers, cells, Policy::DirectlyUsed, BLOCK_RAM);
//! let placed = circuits::program(&netlist, &layers, &assignment)?;
//! assert_eq!(placed.program.layers().len(), layers.batches(cells).count());
//! // Inputs are in DDR, whose places come after those of the block RAM.
//! assert_eq!(placed.inputs[2], BLOCK_RAM as u32 + 2);
//!
//! // 25 dot products, each of 5 products with 3 additions of 4 bits and of 4 more additions.
//! let alike = circuits::components(&netlist);
//! assert_eq!((alike.len(), alike[0].members.len()), (1, 25));
//! assert_eq!(circuits::full_adders(&netlist).len(), 25 * (5 * 3 * 4 + 4 * 4));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::HashMap;

use blindcore_accel::garble::{Gate, Kind, Program, ProgramBuilder, Wire, Wiring};

use super::layers::Layers;
use super::memory::{Address, Assignment, AssignmentError};

/// A netlist as a program over an overlay's places.
///
/// A place of block RAM is the slot of its number; place `p` of DDR is slot `capacity + p`, with the assignment's
/// capacity.
#[derive(Clone, Debug)]
pub struct Placed {
    /// A layer for each batch: its XORs, then its ANDs.
    pub program: Program,
    /// Where constants and inputs lie at the start: wire `w` in slot `inputs[w]`.
    pub inputs: Vec<u32>,
    /// Where the outputs' bits lie in the end, in order.
    pub outputs: Vec<u32>,
    /// Which gate of the netlist each step is.
    pub gates: Vec<u32>,
    /// Which gate of the netlist each AND of the program is: tables come in this order, and AND `i` has the number of the
    /// first gate and `i`.
    pub ands: Vec<u32>,
}

/// The program of a netlist whose wires lie where an assignment says.
///
/// It has as many slots as block RAM and DDR have places, read or not: a label of 16 bytes each where it is run.
///
/// # Errors
/// The assignment is not of this netlist, or loses a label ([`Assignment::check`]).
///
/// # Panics
/// `layers` are another netlist's.
pub fn program(
    netlist: &Wiring<'_>,
    layers: &Layers,
    assignment: &Assignment,
) -> Result<Placed, AssignmentError> {
    let traffic = assignment.check(netlist, layers)?;
    let slot = |address: Address| {
        (address.place() + if address.is_block_ram() { 0 } else { assignment.capacity }) as u32
    };
    let mut program = ProgramBuilder::new(assignment.capacity + traffic.ddr);
    let (mut gates, mut ands) = (Vec::with_capacity(netlist.gates().len()), Vec::new());
    for batch in layers.batches(assignment.cells) {
        for gate in batch.gates() {
            let operands = assignment.gates[gate as usize];
            let [out, a, b] = [operands.out, operands.a, operands.b].map(slot);
            let done = match netlist.gates()[gate as usize].kind() {
                Kind::Xor => program.xor(out, a, b),
                Kind::And => {
                    ands.push(gate);
                    program.and(out, a, b)
                }
            };
            done.expect("gates of a batch don't meet, which was checked");
            gates.push(gate);
        }
        program.end_layer();
    }
    Ok(Placed {
        program: program.finish(),
        inputs: (0..netlist.first_gate_wire().0).map(|w| slot(Address::ddr(w))).collect(),
        outputs: assignment.outputs.iter().map(|address| slot(*address)).collect(),
        gates,
        ands,
    })
}

/// Five gates that are one full adder: `x = a ^ c`, `y = b ^ c`, `both = x & y`; `sum = a ^ y` or `x ^ b`, and
/// `carry = c ^ both`.
///
/// Nobody else reads `x`, `y` and `both`, so nothing but sum and carry has to be kept. All five can be done where the
/// earlier one of `sum` and `both` is: each of the two needs `a`, `b` and `c`, and nobody has read sum or carry before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullAdder {
    /// The bit beside the carry in the AND's first operand.
    pub a: Wire,
    /// The bit beside the carry in the AND's second operand.
    pub b: Wire,
    /// The bit that both operands have, and so the one that the carry is made with.
    pub c: Wire,
    /// Gates `x` and `y`, the AND's first and second operand.
    pub differences: [u32; 2],
    /// The AND, `both`.
    pub and: u32,
    /// The gate whose wire is `a ^ b ^ c`.
    pub sum: u32,
    /// The gate whose wire is 1 where two or three bits are.
    pub carry: u32,
}

impl FullAdder {
    /// Its five gates, in the order in which they can be done.
    #[must_use]
    pub fn gates(&self) -> [u32; 5] {
        let [x, y] = self.differences;
        [x, y, self.sum, self.and, self.carry]
    }
}

/// All full adders of a netlist, in the order of their ANDs; no gate is in two.
#[must_use]
pub fn full_adders(netlist: &Wiring<'_>) -> Vec<FullAdder> {
    let readers = Readers::new(netlist);
    let mut taken = vec![false; netlist.gates().len()];
    let mut adders = Vec::new();
    for (i, gate) in netlist.gates().iter().enumerate().filter(|(_, gate)| gate.kind() == Kind::And) {
        let Some(adder) = full_adder(netlist, &readers, i as u32, *gate) else { continue };
        if adder.gates().iter().all(|g| !taken[*g as usize]) {
            adder.gates().iter().for_each(|g| taken[*g as usize] = true);
            adders.push(adder);
        }
    }
    adders
}

/// The full adder of an AND, if it is one's.
fn full_adder(netlist: &Wiring<'_>, readers: &Readers, and: u32, gate: Gate) -> Option<FullAdder> {
    let first = netlist.first_gate_wire();
    let wire = |gate: u32| Wire(first.0 + gate);
    let xor = |gate: u32| Some(netlist.gates()[gate as usize]).filter(|gate| gate.kind() == Kind::Xor);
    let of_wire = |wire: Wire| wire.index().checked_sub(first.index()).map(|gate| gate as u32);
    let [x, y] = [of_wire(gate.a())?, of_wire(gate.b())?];
    let &[carry] = readers.of(and)? else { return None };
    let c = other(xor(carry)?, wire(and))?;
    let [a, b] = [other(xor(x)?, c)?, other(xor(y)?, c)?];
    // One of the two is read for the sum too, with what the other one has.
    let (both, reads, beside) = match (readers.of(x)?, readers.of(y)?) {
        ([_], both @ [_, _]) => (both, y, a),
        (both @ [_, _], [_]) => (both, x, b),
        _ => return None,
    };
    let sum = *both.iter().find(|reader| **reader != and)?;
    let is_sum = other(xor(sum)?, wire(reads)) == Some(beside);
    is_sum.then_some(FullAdder { a, b, c, differences: [x, y], and, sum, carry })
}

/// The operand beside this one.
fn other(gate: Gate, one: Wire) -> Option<Wire> {
    match one {
        _ if one == gate.a() => Some(gate.b()),
        _ if one == gate.b() => Some(gate.a()),
        _ => None,
    }
}

/// The gates that read each gate's wire, as far as there are at most two and it is not an output.
struct Readers {
    of: Vec<[u32; 2]>,
    /// How many, or [`MANY`].
    count: Vec<u8>,
}

const MANY: u8 = 3;

impl Readers {
    fn new(netlist: &Wiring<'_>) -> Self {
        let first = netlist.first_gate_wire().index();
        let gates = netlist.gates().len();
        let mut readers = Self { of: vec![[0; 2]; gates], count: vec![0; gates] };
        for wire in netlist.outputs().iter() {
            if let Some(gate) = wire.index().checked_sub(first) {
                readers.count[gate] = MANY;
            }
        }
        for (i, gate) in netlist.gates().iter().enumerate() {
            for gate in gate.reads().into_iter().filter_map(|w| w.index().checked_sub(first)) {
                let count = &mut readers.count[gate];
                if let Some(place) = readers.of[gate].get_mut(*count as usize) {
                    *place = i as u32;
                }
                *count = (*count + 1).min(MANY);
            }
        }
        readers
    }

    fn of(&self, gate: u32) -> Option<&[u32]> {
        self.of[gate as usize].get(..self.count[gate as usize] as usize)
    }
}

/// Subcircuits of one shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alike {
    /// Every one of them, in the order of their first gates.
    pub members: Vec<Component>,
}

/// A subcircuit that shares inputs alone with the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Its gates, in the netlist's order. Gate `i` of each member does the same to the same.
    pub gates: Vec<u32>,
    /// The input bits that it reads, in the order in which it first reads them. Input `i` of each member is read by the
    /// same of its gates.
    pub inputs: Vec<Wire>,
}

/// The independent subcircuits of a netlist, those of one shape together, in the order of their first gates.
///
/// Two have the same shape if their gates, in the netlist's order, are of the same kinds and read, operand by operand,
/// the same of their own gates, of their own inputs and of the constants. Which of their gates are outputs of the
/// circuit may differ. Subcircuits whose gates come in different orders aren't recognized as alike.
#[must_use]
pub fn components(netlist: &Wiring<'_>) -> Vec<Alike> {
    let first = netlist.first_gate_wire().index();
    let mut parts = connected(netlist);
    // Of each gate its place within its subcircuit; of each input the last one that read it, and its place there.
    let mut place = vec![0u32; netlist.gates().len()];
    let mut seen = vec![(usize::MAX, 0); first];
    let mut groups: Vec<Alike> = Vec::new();
    let mut shapes: HashMap<Vec<u64>, usize> = HashMap::new();
    for (part, gates) in parts.drain(..).enumerate() {
        let mut inputs = Vec::new();
        let mut shape = Vec::with_capacity(2 * gates.len());
        for (i, gate) in gates.iter().enumerate() {
            place[*gate as usize] = i as u32;
            let gate = netlist.gates()[*gate as usize];
            for wire in gate.reads() {
                // Constants, then gates and inputs in turn.
                let operand = if wire.is_constant() {
                    u64::from(wire.0)
                } else if let Some(gate) = wire.index().checked_sub(first) {
                    2 + 2 * u64::from(place[gate])
                } else {
                    let seen = &mut seen[wire.index()];
                    if seen.0 != part {
                        *seen = (part, inputs.len());
                        inputs.push(wire);
                    }
                    3 + 2 * seen.1 as u64
                };
                shape.push(operand << 1 | u64::from(gate.kind() == Kind::And));
            }
        }
        let group = *shapes.entry(shape).or_insert(groups.len());
        if group == groups.len() {
            groups.push(Alike { members: Vec::new() });
        }
        groups[group].members.push(Component { gates, inputs });
    }
    groups
}

/// The gates that are connected through gates' wires, in the netlist's order; the subcircuits in that of their first.
fn connected(netlist: &Wiring<'_>) -> Vec<Vec<u32>> {
    let first = netlist.first_gate_wire().index();
    // Union-find with path halving; a root is the least gate of its subcircuit.
    let mut parent: Vec<u32> = (0..netlist.gates().len() as u32).collect();
    fn root(parent: &mut [u32], mut gate: u32) -> u32 {
        while parent[gate as usize] != gate {
            parent[gate as usize] = parent[parent[gate as usize] as usize];
            gate = parent[gate as usize];
        }
        gate
    }
    for (i, gate) in netlist.gates().iter().enumerate() {
        for other in gate.reads().into_iter().filter_map(|w| w.index().checked_sub(first)) {
            let (x, y) = (root(&mut parent, i as u32), root(&mut parent, other as u32));
            parent[x.max(y) as usize] = x.min(y);
        }
    }
    let mut part_of = vec![usize::MAX; parent.len()];
    let mut parts: Vec<Vec<u32>> = Vec::new();
    for gate in 0..parent.len() as u32 {
        let part = &mut part_of[root(&mut parent, gate) as usize];
        if *part == usize::MAX {
            *part = parts.len();
            parts.push(Vec::new());
        }
        parts[*part].push(gate);
    }
    parts
}
/// Copies of a subcircuit for lanes that all do the same gates on labels of their own.
#[derive(Clone, Debug)]
pub struct Share {
    /// The copies of a lane, layer by layer: XORs, then ANDs, those within full adders first, so that no other has read a
    /// sum before an adder's turn. A slot for each wire; inputs have the first, behind the constants' two.
    pub program: Program,
    /// How many copies a lane has.
    pub copies: usize,
    /// The netlist's wire that each input of a lane is: slot `2 + i` of lane `l` is `inputs[l][i]`. A lane with nothing of
    /// its own to do does what another one does.
    pub inputs: Vec<Vec<Wire>>,
    /// Slots that hold outputs of the circuit, and the wire of each lane; none where a lane does another's work.
    pub outputs: Vec<(u32, Vec<Option<Wire>>)>,
}

/// A netlist over this many lanes: its subcircuits of one shape beside each other, at most `most` in a lane at once.
///
/// Shares are done one after the other; outputs that no gate makes are in none.
///
/// # Panics
/// No lane, or no copy.
#[must_use]
pub fn side_by_side(netlist: &Wiring<'_>, lanes: usize, most: usize) -> Vec<Share> {
    assert!(lanes > 0 && most > 0, "a lane and a copy at least");
    let first = netlist.first_gate_wire().0;
    let mut asked = vec![false; netlist.wires()];
    for wire in netlist.outputs().iter() {
        asked[wire.index()] = true;
    }
    let mut shares = Vec::new();
    for alike in components(netlist) {
        // As few rounds as there must be, and copies spread evenly over them.
        let each = alike.members.len().div_ceil(lanes);
        let copies = each.div_ceil(each.div_ceil(most));
        for members in alike.members.chunks(lanes * copies) {
            shares.push(share(
                netlist,
                members,
                lanes,
                copies.min(members.len().div_ceil(lanes)),
                first,
                &asked,
            ));
        }
    }
    shares
}

fn share(
    netlist: &Wiring<'_>,
    members: &[Component],
    lanes: usize,
    copies: usize,
    first: u32,
    asked: &[bool],
) -> Share {
    let member = |lane: usize, copy: usize| members.get(lane * copies + copy);
    let (shape, width) = (&members[0].gates, members[0].inputs.len());
    // A lane with nothing of its own does the first one's work. Inputs that all lanes share in the same way come in once.
    let of = |lane: usize, copy: usize| member(lane, copy).unwrap_or(&members[copy.min(members.len() - 1)]);
    let mut known: HashMap<Vec<Wire>, Wire> = HashMap::new();
    let mut inputs: Vec<Vec<Wire>> = vec![Vec::new(); lanes];
    let mut input = vec![Wire(0); copies * width];
    for copy in 0..copies {
        for i in 0..width {
            let wires: Vec<Wire> = (0..lanes).map(|lane| of(lane, copy).inputs[i]).collect();
            let next = Wire(2 + inputs[0].len() as u32);
            input[copy * width + i] = *known.entry(wires.clone()).or_insert_with(|| {
                inputs.iter_mut().zip(wires).for_each(|(lane, wire)| lane.push(wire));
                next
            });
        }
    }
    // Copy after copy, as a netlist of its own: its layers have those of all copies.
    let own_first = 2 + inputs[0].len() as u32;
    let mut gates = Vec::with_capacity(copies * shape.len());
    for copy in 0..copies {
        let mut place: HashMap<Wire, Wire> = HashMap::new();
        for (i, wire) in members[0].inputs.iter().enumerate() {
            place.insert(*wire, input[copy * width + i]);
        }
        for gate in shape {
            let read = netlist.gates()[*gate as usize];
            let at = |wire: Wire| if wire.is_constant() { wire } else { place[&wire] };
            let own = Gate::new(read.kind(), at(read.a()), at(read.b()));
            place.insert(Wire(first + gate), Wire(own_first + gates.len() as u32));
            gates.push(own);
        }
    }
    let mut outputs = Vec::new();
    for copy in 0..copies {
        for i in 0..shape.len() {
            let wires: Vec<Option<Wire>> = (0..lanes)
                .map(|lane| member(lane, copy).map(|m| Wire(first + m.gates[i])).filter(|w| asked[w.index()]))
                .collect();
            if wires.iter().any(Option::is_some) {
                outputs.push((own_first + (copy * shape.len() + i) as u32, wires));
            }
        }
    }
    let wires = outputs.iter().map(|(slot, _)| Wire(*slot)).collect();
    let own = Wiring::new(inputs[0].len(), &gates, wires).expect("copies of a netlist");
    let mut within = vec![false; own.gates().len()];
    for adder in full_adders(&own) {
        within[adder.and as usize] = true;
    }
    let layers = Layers::new(&own);
    let mut program = ProgramBuilder::new(own.wires());
    for layer in 0..layers.len() {
        let mut order = layers.gates(layer).to_vec();
        order.sort_by_key(|gate| (own.gates()[*gate as usize].kind() == Kind::And, !within[*gate as usize]));
        for gate in order {
            let (out, gate) = (own_first + gate, own.gates()[gate as usize]);
            let done = match gate.kind() {
                Kind::Xor => program.xor(out, gate.a().0, gate.b().0),
                Kind::And => program.and(out, gate.a().0, gate.b().0),
            };
            done.expect("gates of a layer need nothing of each other");
        }
        program.end_layer();
    }
    Share { program: program.finish(), copies, inputs, outputs }
}
