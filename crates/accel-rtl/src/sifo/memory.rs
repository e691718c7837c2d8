//! Where an overlay keeps its labels: which wires go to block RAM on the chip, and which to DDR memory beside it.
//!
//! Source: SIFO (Fang, Ioannidis and Leeser 2019), section 3.4.2. A DDR access takes some 180 ns, block RAM one clock
//! (5 ns), but block RAM is small; so the host places every wire ahead of time, and a bit of each address says which
//! memory it is in. Three policies:
//!
//! - *directly used*: wires that one gate reads, in the next layer; halves of the block RAM take turns, one being read
//!   while the other is written.
//! - *most frequently used*: the wires that are read most often, each in a place of its own to the end.
//! - *lifetimes*, which the paper left to future work: a place is used again once what it held has been read for the last
//!   time. It never takes more DDR accesses than either of the others ([`Policy::Lifetimes`] says why).
//!
//! The host reaches DDR alone (section 3.4.1), so constants, inputs and outputs are there under every policy. The paper
//! gives the block RAM twice: 6.75 Mbit in section 3.1.3, the default here, and 13 Mbit in section 3.4.2.
//!
//! ```
//! use blindcore_circuit::builder::Builder;
//! use blindcore_accel_rtl::sifo::layers::{Cells, Layers};
//! use blindcore_accel_rtl::sifo::memory::{Assignment, BLOCK_RAM, Policy};
//!
//! let mut c = Builder::new();
//! let (a, b) = (c.input("a", 16), c.input("b", 16));
//! let distance = c.hamming_distance(&a, &b);
//! c.output("distance", &distance);
//! let circuit = c.finish()?;
//! let netlist = circuit.wiring();
//! let layers = Layers::new(&netlist);
//! let traffic = |policy| Assignment::new(&netlist, &layers, Cells::TEN_ANDS, policy, BLOCK_RAM).check(&netlist, &layers);
//! assert!(traffic(Policy::Lifetimes)?.block_ram < traffic(Policy::MostFrequentlyUsed)?.block_ram);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

use blindcore_accel::garble::{MAX_WIRES, Wire, Wiring};

use super::layers::{Cells, Layers, reads};

/// Words of the paper's block RAM: 6.75 Mbit of 108 bits, of which a label takes 80 (section 3.1.3).
pub const BLOCK_RAM: usize = (6.75 * 1024.0 * 1024.0) as usize / 108;

/// Addresses that the paper's two registers carry besides the flag: 20 bits (section 3.4.1).
pub const PAPER_ADDRESSES: usize = 1 << 20;

/// Which wires go to block RAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Wires that one gate reads, in the next layer, as far as half of the block RAM holds a layer's.
    DirectlyUsed,
    /// The wires that are read most often, without reuse.
    MostFrequentlyUsed,
    /// Wires that fit at every moment of their lives, those with the most accesses a batch first; places are reused.
    ///
    /// Which wires save the most accesses is weighted interval scheduling. Three orders of priority are tried, each wire
    /// being taken that still fits: most accesses for the batches it lives, most accesses, and directly-used's choice first.
    /// The second takes all that most-frequently-used does and the third all that directly-used does, so the best of the
    /// three is at least as good as both.
    Lifetimes,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 3] = [Policy::DirectlyUsed, Policy::MostFrequentlyUsed, Policy::Lifetimes];

    /// Its name: `directly-used`, `most-frequently-used` or `lifetimes`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Policy::DirectlyUsed => "directly-used",
            Policy::MostFrequentlyUsed => "most-frequently-used",
            Policy::Lifetimes => "lifetimes",
        }
    }
}

/// A place in one of the two memories, as the host sends it: its last bit is the flag, 1 for block RAM.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address(pub u32);

impl Address {
    /// A place in block RAM, below 2^31.
    #[must_use]
    pub fn block_ram(place: u32) -> Self {
        Self(place << 1 | 1)
    }

    /// A place in DDR memory, below 2^31.
    #[must_use]
    pub fn ddr(place: u32) -> Self {
        Self(place << 1)
    }

    /// Which memory: block RAM, or else DDR.
    #[must_use]
    pub fn is_block_ram(self) -> bool {
        self.0 & 1 == 1
    }

    /// The place within its memory.
    #[must_use]
    pub fn place(self) -> usize {
        (self.0 >> 1) as usize
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = if self.is_block_ram() { "block RAM" } else { "DDR" };
        write!(f, "{memory} {}", self.place())
    }
}

/// The three addresses of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operands {
    /// Its first input.
    pub a: Address,
    /// Its second input.
    pub b: Address,
    /// Its output.
    pub out: Address,
}

/// Where every gate reads and writes.
///
/// Constants and inputs lie in DDR at their wires' numbers from the start; batches follow in the order of
/// [`Layers::batches`]. What a batch reads or writes is written by no other gate of the batch, so within a batch any
/// order is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The cells that it was made for.
    pub cells: Cells,
    /// Words of block RAM.
    pub capacity: usize,
    /// Addresses of each gate, in the netlist's order.
    pub gates: Vec<Operands>,
    /// Where the outputs' bits are in the end, in order; always in DDR unless one is not a gate's.
    pub outputs: Vec<Address>,
}

/// What an assignment costs, counted while it is run through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Words of block RAM that are used, by the highest place.
    pub block_ram: usize,
    /// Words of DDR memory that are used, by the highest place, constants and inputs among them.
    pub ddr: usize,
    /// Reads from block RAM.
    pub block_ram_reads: usize,
    /// Writes to block RAM.
    pub block_ram_writes: usize,
    /// Reads from DDR.
    pub ddr_reads: usize,
    /// Writes to DDR; the host's, of inputs, are not counted.
    pub ddr_writes: usize,
}

impl Traffic {
    /// Reads and writes of DDR.
    #[must_use]
    pub fn ddr_accesses(&self) -> usize {
        self.ddr_reads + self.ddr_writes
    }
}

/// Why an assignment is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssignmentError {
    /// It has another number of gates or outputs than the netlist.
    #[error("the assignment has {got} {what}, the netlist {want}")]
    Count {
        /// Gates or output bits.
        what: &'static str,
        /// How many it has.
        got: usize,
        /// How many the netlist has.
        want: usize,
    },
    /// A place past the end of the block RAM, or in DDR past as many words as there are wires.
    #[error("{address:?} is past the {capacity} words that there are")]
    Capacity {
        /// The address.
        address: Address,
        /// Words of its memory.
        capacity: usize,
    },
    /// A place that does not hold what is read.
    #[error("{reader} reads {wire:?} at {address:?}, which holds {found:?}")]
    Lost {
        /// Which gate or output bit.
        reader: Reader,
        /// What it needs.
        wire: Wire,
        /// Where it looks.
        address: Address,
        /// What is there, if anything.
        found: Option<Wire>,
    },
    /// A place that two gates of a batch use and one of them writes.
    #[error("gates of batch {batch} meet at {address:?}, which gate {gate} writes")]
    Race {
        /// The batch.
        batch: usize,
        /// The gate that writes.
        gate: usize,
        /// The place.
        address: Address,
    },
}

/// The readers of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A gate, by its position.
    Gate(usize),
    /// A bit of the outputs, counted over all of them.
    Output(usize),
}

impl fmt::Display for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reader::Gate(i) => write!(f, "gate {i}"),
            Reader::Output(i) => write!(f, "output bit {i}"),
        }
    }
}

impl Assignment {
    /// Places all wires of a netlist by a policy, for these cells and this many words of block RAM.
    #[must_use]
    pub fn new(netlist: &Wiring<'_>, layers: &Layers, cells: Cells, policy: Policy, capacity: usize) -> Self {
        // More than there can be wires is useless, and a place takes 31 bits.
        let capacity = capacity.min(MAX_WIRES);
        let places = Wires::new(netlist, layers, cells).places(layers, cells, policy, capacity);
        let at = |wire| address_of(netlist, &places, wire);
        let gates = netlist.gates().iter().zip(&places);
        Self {
            cells,
            capacity,
            gates: gates
                .map(|(gate, out)| Operands { a: at(gate.a()), b: at(gate.b()), out: *out })
                .collect(),
            outputs: netlist.outputs().iter().map(|w| at(*w)).collect(),
        }
    }

    /// Runs through all batches and makes sure that every read finds the wire that it needs, whatever the order within
    /// a batch.
    ///
    /// # Errors
    /// What is wrong first.
    pub fn check(&self, netlist: &Wiring<'_>, layers: &Layers) -> Result<Traffic, AssignmentError> {
        let count = |what, got, want| {
            if got == want { Ok(()) } else { Err(AssignmentError::Count { what, got, want }) }
        };
        count("gates", self.gates.len(), netlist.gates().len())?;
        count("output bits", self.outputs.len(), netlist.outputs().len())?;
        let operands = |gate: usize| self.gates[gate];
        run_through(netlist, layers, (self.cells, self.capacity), operands, &self.outputs)
    }
}

/// Where a wire lies whose gates' places are these.
fn address_of(netlist: &Wiring<'_>, places: &[Address], wire: Wire) -> Address {
    let gate = wire.index().checked_sub(netlist.first_gate_wire().index());
    gate.map_or(Address::ddr(wire.0), |gate| places[gate])
}

/// Runs through all batches, gates going where `operands` says.
fn run_through(
    netlist: &Wiring<'_>,
    layers: &Layers,
    (cells, capacity): (Cells, usize),
    operands: impl Fn(usize) -> Operands,
    outputs: &[Address],
) -> Result<Traffic, AssignmentError> {
    let first = netlist.first_gate_wire().0;
    let capacity = [netlist.wires(), capacity];
    let addresses = (0..netlist.gates().len()).map(&operands).flat_map(|g| [g.a, g.b, g.out]);
    let addresses = addresses.chain(outputs.iter().copied());
    for address in addresses {
        let capacity = capacity[usize::from(address.is_block_ram())];
        if address.place() >= capacity {
            return Err(AssignmentError::Capacity { address, capacity });
        }
    }
    let mut memory = Memory::default();
    for wire in (0..first).map(Wire) {
        memory.at(Address::ddr(wire.0)).holds = wire.0;
    }
    let mut traffic = Traffic::default();
    for (batch, gates) in layers.batches(cells).enumerate() {
        for gate in gates.gates().map(|g| g as usize) {
            let operands = operands(gate);
            for (wire, address) in netlist.gates()[gate].reads().into_iter().zip([operands.a, operands.b]) {
                let place = memory.at(address);
                if place.holds != wire.0 {
                    let (reader, found) = (Reader::Gate(gate), place.found());
                    return Err(AssignmentError::Lost { reader, wire, address, found });
                }
                place.used_in = batch as u32;
                if address.is_block_ram() {
                    traffic.block_ram_reads += 1;
                } else {
                    traffic.ddr_reads += 1;
                }
            }
        }
        for gate in gates.gates().map(|g| g as usize) {
            let address = operands(gate).out;
            let place = memory.at(address);
            if place.used_in == batch as u32 {
                return Err(AssignmentError::Race { batch, gate, address });
            }
            *place = Place { holds: first + gate as u32, used_in: batch as u32 };
            if address.is_block_ram() {
                traffic.block_ram_writes += 1;
            } else {
                traffic.ddr_writes += 1;
            }
        }
    }
    for (i, (wire, address)) in netlist.outputs().iter().zip(outputs).enumerate() {
        let found = memory.at(*address).found();
        if found != Some(*wire) {
            let reader = Reader::Output(i);
            return Err(AssignmentError::Lost { reader, wire: *wire, address: *address, found });
        }
    }
    traffic.block_ram = memory.block_ram.len();
    traffic.ddr = memory.ddr.len();
    Ok(traffic)
}

/// Both memories while an assignment is run through.
#[derive(Default)]
struct Memory {
    block_ram: Vec<Place>,
    ddr: Vec<Place>,
}

/// Eight bytes, for there are as many as wires; [`NOTHING`] where it is empty and no batch used it.
#[derive(Clone, Copy)]
struct Place {
    holds: u32,
    /// The batch that read or wrote it last: batches are no more than gates.
    used_in: u32,
}

const NOTHING: u32 = u32::MAX;

impl Place {
    fn found(self) -> Option<Wire> {
        (self.holds != NOTHING).then_some(Wire(self.holds))
    }
}

impl Memory {
    fn at(&mut self, address: Address) -> &mut Place {
        let memory = if address.is_block_ram() { &mut self.block_ram } else { &mut self.ddr };
        if memory.len() <= address.place() {
            memory.resize(address.place() + 1, Place { holds: NOTHING, used_in: NOTHING });
        }
        &mut memory[address.place()]
    }
}

/// What the policies go by: of each gate's wire its reads and its life.
struct Wires {
    first: u32,
    reads: Vec<u32>,
    is_output: Vec<bool>,
    is_direct: Vec<bool>,
    /// First and last batch of each gate's wire, or [`END`] where it is an output.
    life: Vec<(u32, u32)>,
    batches: usize,
}

/// After all batches.
const END: u32 = u32::MAX;

impl Wires {
    fn new(netlist: &Wiring<'_>, layers: &Layers, cells: Cells) -> Self {
        let first = netlist.first_gate_wire();
        let reads = reads(netlist);
        let mut is_output = vec![false; reads.len()];
        for wire in netlist.outputs().iter() {
            if let Some(gate) = wire.index().checked_sub(first.index()) {
                is_output[gate] = true;
            }
        }
        let mut life = vec![(0, 0); reads.len()];
        let mut is_direct = vec![false; reads.len()];
        let mut batches = 0;
        for batch in layers.batches(cells) {
            for gate in batch.gates().map(|g| g as usize) {
                life[gate] = (batches, if is_output[gate] { END } else { batches });
                for wire in netlist.gates()[gate].reads() {
                    if let Some(read) = wire.index().checked_sub(first.index()) {
                        life[read].1 = life[read].1.max(batches);
                        let next = layers.of()[read] as usize + 1 == batch.layer;
                        is_direct[read] = reads[read] == 1 && next && !is_output[read];
                    }
                }
            }
            batches += 1;
        }
        Self { first: first.0, reads, is_output, is_direct, life, batches: batches as usize }
    }

    /// Where each gate's wire goes.
    fn places(&self, layers: &Layers, cells: Cells, policy: Policy, capacity: usize) -> Vec<Address> {
        match policy {
            Policy::DirectlyUsed => self.directly_used(layers, capacity),
            Policy::MostFrequentlyUsed => self.most_frequently_used(capacity),
            Policy::Lifetimes => self.lifetimes(layers, cells, capacity),
        }
    }

    /// The DDR place of a gate's wire where places aren't reused: its number.
    fn ddr(&self, gate: usize) -> Address {
        Address::ddr(self.first + gate as u32)
    }

    fn directly_used(&self, layers: &Layers, capacity: usize) -> Vec<Address> {
        let mut places: Vec<Address> = (0..self.reads.len()).map(|g| self.ddr(g)).collect();
        let direct_in = |layer| layers.gates(layer).iter().filter(|g| self.is_direct[**g as usize]);
        let most = (0..layers.len()).map(|layer| direct_in(layer).count()).max().unwrap_or(0);
        let half = most.min(capacity / 2);
        for layer in 0..layers.len() {
            let begin = layer % 2 * half;
            for (place, gate) in (begin..begin + half).zip(direct_in(layer)) {
                places[*gate as usize] = Address::block_ram(place as u32);
            }
        }
        places
    }

    fn most_frequently_used(&self, capacity: usize) -> Vec<Address> {
        let mut places: Vec<Address> = (0..self.reads.len()).map(|g| self.ddr(g)).collect();
        let candidates = self.by_priority(|gate| u64::from(self.reads[gate]));
        for (place, gate) in candidates.into_iter().take(capacity).enumerate() {
            places[gate as usize] = Address::block_ram(place as u32);
        }
        places
    }

    fn lifetimes(&self, layers: &Layers, cells: Cells, capacity: usize) -> Vec<Address> {
        let accesses = |gate: usize| u64::from(self.reads[gate]) + 1;
        let density = |gate: usize| {
            let (begin, end) = self.life[gate];
            (accesses(gate) << 32) / u64::from(end - begin + 1)
        };
        let direct: Vec<bool> =
            self.directly_used(layers, capacity).iter().map(|address| address.is_block_ram()).collect();
        let direct_first = |gate: usize| u64::from(direct[gate]);
        let mut inside = self.fitting(self.by_priority(density), capacity);
        let saved = |inside: &[bool]| (0..inside.len()).filter(|g| inside[*g]).map(accesses).sum::<u64>();
        // Where all of it fits there is nothing to choose.
        if inside.iter().zip(&self.is_output).any(|(inside, output)| !inside && !output) {
            for order in [self.by_priority(accesses), self.by_priority(direct_first)] {
                let other = self.fitting(order, capacity);
                if saved(&other) > saved(&inside) {
                    inside = other;
                }
            }
        }

        let mut places = vec![Address(0); self.reads.len()];
        let (mut block_ram, mut ddr) = (Pool::from(0), Pool::from(self.first));
        // Gates by the last batch of their wires.
        let mut ends: Vec<u32> =
            (0..self.life.len() as u32).filter(|g| !self.is_output[*g as usize]).collect();
        ends.sort_unstable_by_key(|g| self.life[*g as usize].1);
        let mut ends = ends.into_iter().peekable();
        for (i, batch) in layers.batches(cells).enumerate() {
            while let Some(gate) = ends.next_if(|g| (self.life[*g as usize].1 as usize) < i) {
                let pool = if inside[gate as usize] { &mut block_ram } else { &mut ddr };
                pool.free.push(Reverse(places[gate as usize].place() as u32));
            }
            for gate in batch.gates().map(|g| g as usize) {
                places[gate] = if inside[gate] {
                    Address::block_ram(block_ram.take())
                } else {
                    Address::ddr(ddr.take())
                };
            }
        }
        places
    }

    /// All that may go to block RAM, highest priority first, and of equals the earlier.
    fn by_priority(&self, priority: impl Fn(usize) -> u64) -> Vec<u32> {
        let gates = || (0..self.reads.len()).filter(|gate| !self.is_output[*gate]);
        // How many have each priority, then where the next of them goes: there are far fewer priorities than gates.
        let mut next: HashMap<u64, u32> = HashMap::new();
        gates().for_each(|gate| *next.entry(priority(gate)).or_default() += 1);
        let mut priorities: Vec<u64> = next.keys().copied().collect();
        priorities.sort_unstable_by_key(|priority| Reverse(*priority));
        let mut end = 0;
        for place in priorities {
            let count = next.entry(place).or_default();
            (*count, end) = (end, end + *count);
        }
        let mut order = vec![0; end as usize];
        for gate in gates() {
            let place = next.entry(priority(gate)).or_default();
            order[*place as usize] = gate as u32;
            *place += 1;
        }
        order
    }

    /// Takes each gate's wire, in this order, if at no batch of its life more than `capacity` are taken.
    fn fitting(&self, order: Vec<u32>, capacity: usize) -> Vec<bool> {
        let mut inside = vec![false; self.reads.len()];
        let mut used = Profile::new(self.batches);
        for gate in order {
            let (begin, end) = self.life[gate as usize];
            let life = begin as usize..end as usize + 1;
            if used.most(life.clone()) < capacity {
                used.add(life);
                inside[gate as usize] = true;
            }
        }
        inside
    }
}

/// Places of a memory: the lowest one that is free is taken.
struct Pool {
    free: std::collections::BinaryHeap<Reverse<u32>>,
    next: u32,
}

impl Pool {
    fn from(next: u32) -> Self {
        Self { free: std::collections::BinaryHeap::new(), next }
    }

    fn take(&mut self) -> u32 {
        self.free.pop().map_or_else(
            || {
                self.next += 1;
                self.next - 1
            },
            |place| place.0,
        )
    }
}

/// How many wires live in each batch: a segment tree of range additions and maxima.
pub(super) struct Profile {
    leaves: usize,
    /// Added to all of a node's range, not told to its children.
    added: Vec<u32>,
    /// The most in a node's range, with what was added to it and below, not above.
    most: Vec<u32>,
}

impl Profile {
    pub(super) fn new(batches: usize) -> Self {
        let leaves = batches.next_power_of_two();
        Self { leaves, added: vec![0; 2 * leaves], most: vec![0; 2 * leaves] }
    }

    /// One more in all of a range.
    pub(super) fn add(&mut self, range: Range) {
        let (low, high) = (range.start + self.leaves, range.end - 1 + self.leaves);
        let (mut l, mut r) = (low, high + 1);
        while l < r {
            if l & 1 == 1 {
                self.add_to(l);
                l += 1;
            }
            if r & 1 == 1 {
                r -= 1;
                self.add_to(r);
            }
            (l, r) = (l / 2, r / 2);
        }
        for leaf in [low, high] {
            let mut node = leaf / 2;
            while node > 0 {
                self.most[node] = self.most[2 * node].max(self.most[2 * node + 1]) + self.added[node];
                node /= 2;
            }
        }
    }

    fn add_to(&mut self, node: usize) {
        self.added[node] += 1;
        self.most[node] += 1;
    }

    /// The most anywhere in a range.
    pub(super) fn most(&self, range: Range) -> usize {
        self.most_below(1, 0..self.leaves, &range)
    }

    /// How many there are in each batch, and in none after the last.
    pub(super) fn counts(&self) -> Vec<u32> {
        let mut added = self.added.clone();
        for node in 1..self.leaves {
            for below in [2 * node, 2 * node + 1] {
                added[below] += added[node];
            }
        }
        added.split_off(self.leaves)
    }

    fn most_below(&self, node: usize, here: Range, range: &Range) -> usize {
        if range.end <= here.start || here.end <= range.start {
            return 0;
        }
        if range.start <= here.start && here.end <= range.end {
            return self.most[node] as usize;
        }
        let middle = here.start.midpoint(here.end);
        let below = self.most_below(2 * node, here.start..middle, range);
        let below = below.max(self.most_below(2 * node + 1, middle..here.end, range));
        below + self.added[node] as usize
    }
}

type Range = std::ops::Range<usize>;
