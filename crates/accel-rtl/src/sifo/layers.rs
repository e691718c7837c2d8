//! Layers: gates that can be garbled at once, the batches in which cells take them, and what a circuit looks like in
//! numbers.
//!
//! Source: SIFO (Fang, Ioannidis and Leeser 2019), section 3.3.2, and the columns of its Tables 1, 3 and 4.
//!
//! ```
//! use blindcore_circuit::builder::Builder;
//! use blindcore_accel_rtl::sifo::layers::{Cells, Layers};
//!
//! let mut c = Builder::new();
//! let (a, b) = (c.input("a", 8), c.input("b", 8));
//! let both: Vec<_> = a.iter().zip(&b).map(|(a, b)| c.and(*a, *b)).collect();
//! let parity = both.iter().copied().reduce(|x, y| c.xor(x, y)).unwrap();
//! c.output("parity", &[parity]);
//! let circuit = c.finish()?;
//! let netlist = circuit.wiring();
//!
//! let layers = Layers::new(&netlist);
//! assert_eq!((layers.len(), layers.ands(0), layers.xors(1)), (8, 8, 1));
//! // Eight ANDs on three cells take three batches, then comes an XOR a layer.
//! assert_eq!(layers.batches(Cells::new(3, None)?).count(), 3 + 7);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ops::Range;

use blindcore_accel::garble::{Gate, Kind, Wiring};

/// The gates of a netlist by layer: each in the layer after the latest of what it reads.
///
/// AND and XOR count alike, as in the paper's layer extractor. (A garbler, to whom XORs are free, counts depth in ANDs:
/// `blindcore_circuit::compile`.) Layers are counted from 0; inputs and constants come before all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layers {
    of: Vec<u32>,
    /// Gates by layer, of each layer its XORs first.
    order: Vec<u32>,
    /// Where each layer begins in `order`, where its ANDs do, and after all the end.
    begins: Vec<(u32, u32)>,
}

impl Layers {
    /// Extracts the layers, in time and memory linear in the gates.
    #[must_use]
    pub fn new(netlist: &Wiring<'_>) -> Self {
        let first = netlist.first_gate_wire().index();
        let mut of = Vec::with_capacity(netlist.gates().len());
        // XORs and ANDs of each layer.
        let mut counts: Vec<[u32; 2]> = Vec::new();
        for gate in netlist.gates() {
            let after = |of: &[u32], wire: usize| wire.checked_sub(first).map_or(0, |gate| of[gate] + 1);
            let layer = after(&of, gate.a().index()).max(after(&of, gate.b().index()));
            if layer as usize == counts.len() {
                counts.push([0, 0]);
            }
            counts[layer as usize][kind_place(gate)] += 1;
            of.push(layer);
        }
        let mut begins = Vec::with_capacity(counts.len() + 1);
        let mut end = 0;
        for [xors, ands] in counts {
            begins.push((end, end + xors));
            end += xors + ands;
        }
        begins.push((end, end));
        let mut next = begins.clone();
        let mut order = vec![0; of.len()];
        for (i, gate) in netlist.gates().iter().enumerate() {
            let (xor, and) = &mut next[of[i] as usize];
            let place = if kind_place(gate) == 0 { xor } else { and };
            order[*place as usize] = i as u32;
            *place += 1;
        }
        Self { of, order, begins }
    }

    /// How many layers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.begins.len() - 1
    }

    /// Whether there is none, because there is no gate.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The layer of each gate.
    #[must_use]
    pub fn of(&self) -> &[u32] {
        &self.of
    }

    /// The gates of a layer by their positions in the netlist, XORs first.
    ///
    /// # Panics
    /// There is no such layer; the same goes for the methods below.
    #[must_use]
    pub fn gates(&self, layer: usize) -> &[u32] {
        &self.order[self.begins[layer].0 as usize..self.begins[layer + 1].0 as usize]
    }

    /// How many XORs a layer has.
    #[must_use]
    pub fn xors(&self, layer: usize) -> usize {
        self.xor_places(layer).len()
    }

    /// How many ANDs a layer has.
    #[must_use]
    pub fn ands(&self, layer: usize) -> usize {
        self.and_places(layer).len()
    }

    /// The batches in which this many cells garble the circuit, in order.
    pub fn batches(&self, cells: Cells) -> impl Iterator<Item = LayerBatch<'_>> {
        (0..self.len()).flat_map(move |layer| {
            let (xors, ands) = (self.xor_places(layer), self.and_places(layer));
            let most_xors = cells.xors.unwrap_or(xors.len().max(1));
            let batches = xors.len().div_ceil(most_xors).max(ands.len().div_ceil(cells.ands));
            (0..batches).map(move |i| LayerBatch {
                layer,
                xors: &self.order[piece(&xors, i, most_xors)],
                ands: &self.order[piece(&ands, i, cells.ands)],
            })
        })
    }

    fn xor_places(&self, layer: usize) -> Range<usize> {
        self.begins[layer].0 as usize..self.begins[layer].1 as usize
    }

    fn and_places(&self, layer: usize) -> Range<usize> {
        self.begins[layer].1 as usize..self.begins[layer + 1].0 as usize
    }
}

pub(super) fn kind_place(gate: &Gate) -> usize {
    match gate.kind() {
        Kind::Xor => 0,
        Kind::And => 1,
    }
}

/// The `i`-th piece of a range cut into pieces of this length.
fn piece(all: &Range<usize>, i: usize, length: usize) -> Range<usize> {
    let begin = all.start.saturating_add(i.saturating_mul(length)).min(all.end);
    begin..begin.saturating_add(length).min(all.end)
}

/// How many gates of each kind an overlay garbles at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    ands: usize,
    xors: Option<usize>,
}

/// No cells of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("0 {0} cells garble nothing; say 1 or more")]
pub struct NoCells(&'static str);

impl Cells {
    /// The paper's ten AND cells, with XORs as many as a layer has (sections 3.2 and 4.2).
    pub const TEN_ANDS: Cells = Cells { ands: 10, xors: None };

    /// This many AND cells, and this many XOR cells or as many as a layer has.
    ///
    /// # Errors
    /// None of a kind.
    pub fn new(ands: usize, xors: Option<usize>) -> Result<Self, NoCells> {
        match (ands, xors) {
            (0, _) => Err(NoCells("AND")),
            (_, Some(0)) => Err(NoCells("XOR")),
            _ => Ok(Self { ands, xors }),
        }
    }

    /// AND cells, 1 or more.
    #[must_use]
    pub fn ands(self) -> usize {
        self.ands
    }

    /// XOR cells, 1 or more; none said where there are always enough.
    #[must_use]
    pub fn xors(self) -> Option<usize> {
        self.xors
    }
}

/// Gates of one layer, at most one for each cell; gate `i` of a kind goes to its cell `i`.
///
/// No gate of a batch reads what another one writes, so cells need no order among themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerBatch<'a> {
    /// Their layer.
    pub layer: usize,
    /// XORs, by their positions in the netlist.
    pub xors: &'a [u32],
    /// ANDs, by their positions in the netlist.
    pub ands: &'a [u32],
}

impl<'a> LayerBatch<'a> {
    /// All its gates, XORs first, as the host sends them (section 4.2).
    pub fn gates(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.xors.iter().chain(self.ands).copied()
    }
}

/// How many gates read each gate's output; what an output of the circuit reads is not counted.
#[must_use]
pub fn reads(netlist: &Wiring<'_>) -> Vec<u32> {
    let first = netlist.first_gate_wire().index();
    let mut reads = vec![0; netlist.gates().len()];
    for wire in netlist.gates().iter().flat_map(|gate| gate.reads()) {
        if let Some(gate) = wire.index().checked_sub(first) {
            reads[gate] += 1;
        }
    }
    reads
}

/// The columns of the paper's Tables 1, 3 and 4, which a [`Survey`](super::survey::Survey) counts.
///
/// What they mean was recovered from the paper's own netlists: built gate by gate, they have every figure of their rows
/// (`blindcore_circuit::problems::published`). So a one-to-one wire is a *gate's* output that one gate reads (inputs are
/// none, and to be an output of the circuit is not to be read), and its layer is its gate's.
///
/// Where the paper's columns don't add up:
/// - *Wires* exceed inputs and gates by a constant 0 for each addition; here constants are not wires.
/// - *# Reprogram* is ANDs / 10 rounded up, but for 10-bit Hamming distance (20 ANDs, 1) and the 32-bit multiplier
///   (2,016 ANDs, 201). The text says that layers are processed one at a time, which the column doesn't count:
///   [`Survey::rounds`](super::survey::Survey::rounds) does.
/// - *D* counts one-to-one wires that the next layer reads, which differs in the row of sorting alone (40; all are 88).
///   [`Statistics::most_one_to_one`] counts all, as the table's legend does.
/// - In the row of 30-bit Hamming distance *A* is what should be *B*; Table 4 has its percents A and C in each other's
///   place.
/// - 10x10 4-bit matrices have 7,526 ANDs, where 1,000 products of 4 x 4 bits make 28,000: the row is of the last 30,015
///   gates of 126,000.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Layers (Table 1).
    pub layers: usize,
    /// Bits of all inputs (Table 1).
    pub input_wires: usize,
    /// Bits of all outputs (Table 1).
    pub output_wires: usize,
    /// AND gates (Table 1).
    pub ands: usize,
    /// XOR gates, with negations (Table 1).
    pub xors: usize,
    /// Most ANDs in a layer.
    pub most_ands: usize,
    /// Most ANDs on a way from an input to an output: layers for a garbler, to whom XORs are free.
    pub and_depth: usize,
    /// One-to-one wires (Table 3, A).
    pub one_to_one: usize,
    /// Those of them that the layer after their own reads (Table 3, B).
    pub adjacent: usize,
    /// Most one-to-one wires of a layer (Table 3, D).
    pub most_one_to_one: usize,
}

impl Statistics {
    /// Gates (Table 1).
    #[must_use]
    pub fn gates(&self) -> usize {
        self.ands + self.xors
    }

    /// How often an FPGA with this many AND gates would be reprogrammed (Table 1): ANDs by `at_once`, rounded up.
    ///
    /// # Panics
    /// None at once.
    #[must_use]
    pub fn reprogrammings(&self, at_once: usize) -> usize {
        self.ands.div_ceil(at_once)
    }

    /// Wires (Table 3): inputs' bits and gates.
    #[must_use]
    pub fn wires(&self) -> usize {
        self.input_wires + self.gates()
    }

    /// One-to-one wires that a later layer than the next reads (Table 3, C).
    #[must_use]
    pub fn not_adjacent(&self) -> usize {
        self.one_to_one - self.adjacent
    }

    /// Wires a layer (Table 3); 0 without layers.
    #[must_use]
    pub fn wires_a_layer(&self) -> f64 {
        share(self.wires(), self.layers)
    }

    /// Percents A, B and C (Table 4): one-to-one wires of all wires, adjacent ones of those, adjacent ones of all wires.
    #[must_use]
    pub fn percents(&self) -> [f64; 3] {
        let shares = [
            share(self.one_to_one, self.wires()),
            share(self.adjacent, self.one_to_one),
            share(self.adjacent, self.wires()),
        ];
        shares.map(|share| 100.0 * share)
    }
}

fn share(part: usize, all: usize) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}
