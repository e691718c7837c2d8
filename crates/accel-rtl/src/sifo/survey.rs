//! A circuit's figures, counted while its gates go by.
//!
//! [`Layers`](super::layers::Layers) and [`Assignment`](super::memory::Assignment) keep several words of each gate, so that it can be
//! run. A survey keeps three bits of each gate, what is known of the wires that are alive, and counts of layers and batches: gates go
//! by once for the layers, once for the batches, and again for each 2^21 wires that compete for block RAM.
//!
//! ```
//! use blindcore_accel_rtl::sifo::layers::Cells;
//! use blindcore_accel_rtl::sifo::memory::BLOCK_RAM;
//! use blindcore_accel_rtl::sifo::survey::Survey;
//! use blindcore_circuit::builder::Builder;
//!
//! let mut c = Builder::new();
//! let (a, b) = (c.input("a", 8), c.input("b", 8));
//! let both: Vec<_> = a.iter().zip(&b).map(|(a, b)| c.and(*a, *b)).collect();
//! let parity = both.iter().copied().reduce(|x, y| c.xor(x, y)).unwrap();
//! c.output("parity", &[parity]);
//! let survey = Survey::new(&c.finish()?.wiring(), Cells::new(3, None)?, BLOCK_RAM, &mut ());
//! assert_eq!((survey.statistics.layers, survey.statistics.one_to_one), (8, 14));
//! assert_eq!((survey.batches, survey.rounds(5)), (3 + 7, 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use blindcore_accel::garble::{Alive, Bits, Gate, Held, Kind, MAX_WIRES, Wiring};
use blindcore_units::{Progress, Unit};

use super::layers::{Cells, Statistics, kind_place};
use super::memory::{Policy, Profile, Traffic};

/// Wires that are compared at once where they compete for block RAM: 16 bytes each, twice.
const LIVES: usize = 1 << 21;

/// What a circuit looks like in numbers, and what memory policies make of it.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The columns of the paper's Tables 1, 3 and 4.
    pub statistics: Statistics,
    /// The batches in which cells take the gates: as many as [`Layers::batches`](super::layers::Layers::batches) has.
    pub batches: usize,
    /// What each policy costs: as an [`Assignment`](super::memory::Assignment) that is run through.
    pub traffic: [(Policy, Traffic); 3],
    /// XORs and ANDs of each layer.
    layers: Vec<[u32; 2]>,
}

impl Survey {
    /// Counts everything, for these cells and this many words of block RAM; 30 million gates take a minute.
    #[must_use]
    pub fn new(netlist: &Wiring<'_>, cells: Cells, capacity: usize, progress: &mut dyn Progress) -> Self {
        Self::within(netlist, cells, capacity, LIVES, progress)
    }

    /// The same with at most `lives` wires compared at once, and 1 at least: fewer take less memory and longer.
    #[must_use]
    pub fn within(
        netlist: &Wiring<'_>,
        cells: Cells,
        capacity: usize,
        lives: usize,
        progress: &mut dyn Progress,
    ) -> Self {
        let passes = Passes::new(netlist, progress);
        passes.begin("counting layers", 1);
        let mut counts = Counts::of(&passes);
        let time = Time::new(&counts.layers, cells);
        let capacity = capacity.min(MAX_WIRES);
        let direct = counts.directly_used(&passes, capacity);
        let frequent = counts.most_frequently_used(&passes, capacity);
        passes.begin("counting batches", 2);
        let lifetimes = Lifetimes::new(&passes, &time, &mut counts, capacity).traffic(lives.max(1));
        let of = [direct, frequent, lifetimes];
        let traffic = std::array::from_fn(|i| (Policy::ALL[i], of[i]));
        let Counts { statistics, layers, .. } = counts;
        Self { statistics, batches: time.batches as usize, traffic, layers }
    }

    /// How many ANDs each layer has, in order.
    pub fn ands_by_layer(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.layers.iter().map(|[_, ands]| *ands as usize)
    }

    /// How often an FPGA with this many AND gates would be reprogrammed if layers are processed one at a time: the sum over layers of
    /// their ANDs by `at_once`, rounded up.
    ///
    /// # Panics
    /// None at once.
    #[must_use]
    pub fn rounds(&self, at_once: usize) -> usize {
        self.ands_by_layer().map(|ands| ands.div_ceil(at_once)).sum()
    }
}

/// What is known of a gate's wire while it is alive.
#[derive(Clone, Copy)]
struct Life {
    layer: u32,
    /// ANDs on the longest way to it, its own gate among them.
    depth: u32,
    /// How often gates have read it.
    reads: u32,
    /// The time of its gate, and of the last that has read it, or its own again.
    begin: u32,
    end: u32,
}

impl Held for Life {
    const NOTHING: Self = Life { layer: u32::MAX, depth: 0, reads: 0, begin: 0, end: 0 };

    #[inline]
    fn is_nothing(&self) -> bool {
        self.layer == u32::MAX
    }
}

/// Gates that go by as often as somebody asks, with what is known of the wires that are alive.
struct Passes<'a> {
    gates: &'a [Gate],
    first: usize,
    input_bits: usize,
    output_bits: usize,
    /// Whether gate `i`'s first or second operand is read for the last time there.
    dies: [Bits; 2],
    /// Whether a gate's wire is read by a gate, or is an output.
    read: Bits,
    is_output: Bits,
    last_output: Option<u32>,
    told: RefCell<Told<'a>>,
}

/// Who is told how far the passes of a stage are.
struct Told<'a> {
    progress: &'a mut dyn Progress,
    stage: &'static str,
    passes: usize,
    done: usize,
}

impl Told<'_> {
    /// This many gates of a pass over `all` have gone by.
    fn at(&mut self, gates: usize, all: usize) {
        let [done, total] = [self.done * all + gates, self.passes * all].map(|gates| gates as u64);
        self.progress.at(self.stage, done, Some(total), Unit::Items);
    }
}

impl<'a> Passes<'a> {
    fn new(netlist: &Wiring<'a>, progress: &'a mut dyn Progress) -> Self {
        let (gates, first) = (netlist.gates(), netlist.first_gate_wire().index());
        let mut is_output = Bits::new(gates.len());
        let outputs = netlist.outputs().iter().filter_map(|wire| wire.index().checked_sub(first));
        outputs.clone().for_each(|gate| is_output.set(gate));
        let last_output = outputs.max().map(|gate| gate as u32);
        let mut read = is_output.clone();
        let mut dies = [Bits::new(gates.len()), Bits::new(gates.len())];
        for (i, gate) in gates.iter().enumerate().rev() {
            for (wire, dies) in gate.reads().into_iter().zip(&mut dies) {
                if let Some(operand) = wire.index().checked_sub(first)
                    && !read.get(operand)
                {
                    read.set(operand);
                    dies.set(i);
                }
            }
        }
        let (input_bits, output_bits) = (netlist.input_bits(), netlist.outputs().len());
        let told = RefCell::new(Told { progress, stage: "", passes: 0, done: 0 });
        Self { gates, first, input_bits, output_bits, dies, read, is_output, last_output, told }
    }

    /// Begins a stage of this many passes.
    fn begin(&self, stage: &'static str, passes: usize) {
        let mut told = self.told.borrow_mut();
        (told.stage, told.passes, told.done) = (stage, passes, 0);
    }

    /// All gates in order. `time` says when one of this place and layer is garbled; `ended` gets the life of each gate's wire once
    /// no gate reads it any more, in no order.
    fn pass(&self, mut time: impl FnMut(usize, u32) -> u32, mut ended: impl FnMut(usize, Life)) {
        let mut alive = Alive::default();
        for (i, gate) in self.gates.iter().enumerate() {
            let operands =
                gate.reads().map(|wire| wire.index().checked_sub(self.first).map(|gate| gate as u32));
            let (mut layer, mut depth) = (0, 0);
            for operand in operands.into_iter().flatten() {
                let life: Life = alive.get(operand);
                layer = layer.max(life.layer + 1);
                depth = depth.max(life.depth);
            }
            depth += u32::from(gate.kind() == Kind::And);
            let now = time(i, layer);
            // Of an operand twice the first is read for the last time after the second.
            for (operand, dies) in operands.into_iter().zip(&self.dies).rev() {
                let Some(operand) = operand else { continue };
                let read = |life: &mut Life| {
                    life.reads += 1;
                    life.end = life.end.max(now);
                };
                if dies.get(i) {
                    let mut life = alive.remove(operand);
                    read(&mut life);
                    ended(operand as usize, life);
                } else {
                    read(alive.get_mut(operand));
                }
            }
            let life = Life { layer, depth, reads: 0, begin: now, end: now };
            if self.read.get(i) {
                alive.insert(i as u32, life);
            } else {
                ended(i, life);
            }
            if i.is_multiple_of(1 << 12) {
                alive.settle();
            }
            if i.is_multiple_of(1 << 18) {
                self.told.borrow_mut().at(i, self.gates.len());
            }
        }
        self.told.borrow_mut().done += 1;
        // What is left are outputs.
        alive.all().for_each(|(gate, life)| ended(gate as usize, life));
    }
}

/// What the first pass counts.
struct Counts {
    statistics: Statistics,
    /// XORs and ANDs of each layer; and those of them whose wire one gate of the next layer reads and nobody else, nor is it an
    /// output.
    layers: Vec<[u32; 2]>,
    direct: Vec<[u32; 2]>,
    /// Which gates those are.
    is_direct: Bits,
    /// Wires that are no outputs by how often they are read: how many, and the last one's gate.
    by_reads: BTreeMap<u32, (usize, u32)>,
}

impl Counts {
    fn of(passes: &Passes<'_>) -> Self {
        let gates = passes.gates;
        let mut layers: Vec<[u32; 2]> = Vec::new();
        let (mut direct, mut one_to_one) = (Vec::<[u32; 2]>::new(), Vec::<u32>::new());
        let mut is_direct = Bits::new(gates.len());
        let mut by_reads: BTreeMap<u32, (usize, u32)> = BTreeMap::new();
        let (mut and_depth, mut adjacent) = (0, 0);
        let time = |gate: usize, layer: u32| {
            if layers.len() <= layer as usize {
                layers.push([0, 0]);
            }
            layers[layer as usize][kind_place(&gates[gate])] += 1;
            layer
        };
        passes.pass(time, |gate, life| {
            and_depth = and_depth.max(life.depth);
            let output = passes.is_output.get(gate);
            if life.reads == 1 {
                let layer = life.layer as usize;
                one_to_one.resize(one_to_one.len().max(layer + 1), 0);
                direct.resize(direct.len().max(layer + 1), [0, 0]);
                one_to_one[layer] += 1;
                let next = life.end == life.begin + 1;
                adjacent += usize::from(next);
                if next && !output {
                    is_direct.set(gate);
                    direct[layer][kind_place(&gates[gate])] += 1;
                }
            }
            if !output {
                let (count, last) = by_reads.entry(life.reads).or_default();
                *count += 1;
                *last = (*last).max(gate as u32);
            }
        });
        direct.resize(layers.len(), [0, 0]);
        let [xors, ands] = [0, 1].map(|kind| layers.iter().map(|sizes| sizes[kind] as usize).sum());
        let statistics = Statistics {
            layers: layers.len(),
            input_wires: passes.input_bits,
            output_wires: passes.output_bits,
            ands,
            xors,
            most_ands: layers.iter().map(|[_, ands]| *ands as usize).max().unwrap_or(0),
            and_depth: and_depth as usize,
            one_to_one: one_to_one.iter().map(|count| *count as usize).sum(),
            adjacent,
            most_one_to_one: one_to_one.iter().copied().max().unwrap_or(0) as usize,
        };
        Self { statistics, layers, direct, is_direct, by_reads }
    }

    /// Words of block RAM that the wires of one layer have under [`Policy::DirectlyUsed`].
    fn half(&self, capacity: usize) -> usize {
        let most = self.direct.iter().map(|[xors, ands]| (xors + ands) as usize).max().unwrap_or(0);
        most.min(capacity / 2)
    }

    fn directly_used(&self, passes: &Passes<'_>, capacity: usize) -> Traffic {
        let half = self.half(capacity);
        let (mut inside, mut words) = (0, 0);
        for (layer, [xors, ands]) in self.direct.iter().enumerate() {
            let here = half.min((xors + ands) as usize);
            inside += here;
            words = words.max(if here > 0 { layer % 2 * half + here } else { 0 });
        }
        // The last gate's wire is an output, or nobody reads it.
        passes.traffic(inside, inside, words, passes.first + passes.gates.len())
    }

    fn most_frequently_used(&self, passes: &Passes<'_>, capacity: usize) -> Traffic {
        let (mut inside, mut reads, mut last) = (0, 0, passes.last_output);
        for (read, (count, greatest)) in self.by_reads.iter().rev() {
            let here = (*count).min(capacity - inside);
            inside += here;
            reads += here * *read as usize;
            if here < *count {
                last = last.max(Some(*greatest));
            }
        }
        let ddr = last.map_or(passes.first, |gate| passes.first + gate as usize + 1);
        passes.traffic(inside, reads, inside, ddr)
    }
}

impl Passes<'_> {
    /// Where this many wires are in block RAM and are read this often; with words of both memories.
    fn traffic(&self, inside: usize, reads: usize, block_ram: usize, ddr: usize) -> Traffic {
        Traffic {
            block_ram,
            ddr,
            block_ram_reads: reads,
            block_ram_writes: inside,
            ddr_reads: 2 * self.gates.len() - reads,
            ddr_writes: self.gates.len() - inside,
        }
    }
}

/// When gates are garbled: in which batch.
struct Time {
    cells: Cells,
    /// The first batch of each layer.
    firsts: Vec<u32>,
    batches: u32,
}

impl Time {
    fn new(layers: &[[u32; 2]], cells: Cells) -> Self {
        let mut batches = 0;
        let mut begin = |[xors, ands]: &[u32; 2]| {
            let xors =
                cells.xors().map_or(u32::from(*xors > 0), |most| (*xors as usize).div_ceil(most) as u32);
            let ands = (*ands as usize).div_ceil(cells.ands()) as u32;
            let first = batches;
            batches += xors.max(ands);
            first
        };
        let firsts = layers.iter().map(&mut begin).collect();
        Self { cells, firsts, batches }
    }

    /// The batch of a gate of a layer that this many of its kind precede there.
    #[inline]
    fn of(&self, layer: u32, kind: usize, rank: u32) -> u32 {
        let cells = if kind == 0 { self.cells.xors() } else { Some(self.cells.ands()) };
        self.firsts[layer as usize] + cells.map_or(0, |cells| (rank as usize / cells) as u32)
    }
}

/// A wire that competes for block RAM.
#[derive(Clone, Copy)]
struct Candidate {
    gate: u32,
    reads: u32,
    /// The first batch of its life and the last.
    begin: u32,
    end: u32,
}

impl Candidate {
    /// Whether one of those batches is in its life whose counts before each batch these are.
    #[inline]
    fn sees(self, before: &[u32]) -> bool {
        before[self.end as usize + 1] > before[self.begin as usize]
    }
}

/// The orders of [`Policy::Lifetimes`].
#[derive(Clone, Copy)]
enum First {
    MostAccessesABatch,
    MostAccesses,
    DirectlyUsed,
}

/// [`Policy::Lifetimes`] without its places.
///
/// A batch is *tight* if more wires are alive in it than block RAM has words. A wire that no tight batch sees is taken in whatever
/// order, and is in nobody's way. The others come in order of priority, as many at a time as are compared at once.
struct Lifetimes<'a> {
    passes: &'a Passes<'a>,
    time: &'a Time,
    capacity: usize,
    layers: usize,
    /// Of each batch the wires that are alive in it, outputs among them; those that no tight batch sees; and the tight batches before it.
    alive: Vec<u32>,
    loose: Vec<u32>,
    tight: Vec<u32>,
    /// How many wires no tight batch sees, and how often they are read.
    sure: [usize; 2],
    /// The gates whose wires are in block RAM under [`Policy::DirectlyUsed`].
    direct: &'a Bits,
}

/// What an order takes.
struct Taken {
    wires: usize,
    reads: usize,
    /// Most words of block RAM, and of DDR past constants and inputs.
    block_ram: usize,
    ddr: usize,
}

impl<'a> Lifetimes<'a> {
    fn new(passes: &'a Passes<'a>, time: &'a Time, counts: &'a mut Counts, capacity: usize) -> Self {
        let layers = counts.layers.len();
        let batches = time.batches as usize;
        // Of gates that are directly used, each layer's first are in block RAM, XORs before ANDs.
        let half = counts.half(capacity) as u32;
        let mut seen = vec![[0u32; 2]; layers];
        let (mut candidates, mut outputs) = (vec![0u32; batches + 1], vec![0u32; batches + 1]);
        let Counts { is_direct, direct, .. } = counts;
        passes.batches(
            time,
            layers,
            |gate, layer| {
                if is_direct.get(gate) {
                    let kind = kind_place(&passes.gates[gate]);
                    let before = &mut seen[layer as usize][kind];
                    let rank = *before + if kind == 0 { 0 } else { direct[layer as usize][0] };
                    *before += 1;
                    if rank >= half {
                        is_direct.clear(gate);
                    }
                }
            },
            |life| {
                let among = if life.output { &mut outputs } else { &mut candidates };
                lives(among, life.candidate.begin, life.end());
            },
        );
        drop(seen);
        sums(&mut candidates);
        sums(&mut outputs);
        let tight = before(candidates.iter().map(|alive| *alive as usize > capacity));
        candidates.iter_mut().zip(outputs).for_each(|(alive, outputs)| *alive += outputs);
        let mut this = Self {
            passes,
            time,
            capacity,
            layers,
            alive: candidates,
            loose: vec![0; batches + 1],
            tight,
            sure: [0, 0],
            direct: is_direct,
        };
        let (mut loose, mut sure) = (std::mem::take(&mut this.loose), [0, 0]);
        passes.batches(
            time,
            layers,
            |_, _| {},
            |life| {
                if !life.output && !this.competes(life.candidate) {
                    let Candidate { begin, end, reads, .. } = life.candidate;
                    lives(&mut loose, begin, end);
                    sure[0] += 1;
                    sure[1] += reads as usize;
                }
            },
        );
        sums(&mut loose);
        (this.loose, this.sure) = (loose, sure);
        this
    }

    fn competes(&self, candidate: Candidate) -> bool {
        candidate.sees(&self.tight)
    }

    fn traffic(&self, lives: usize) -> Traffic {
        let orders = [First::MostAccessesABatch, First::MostAccesses, First::DirectlyUsed];
        // Where everything fits there is nothing to choose.
        let some = if self.tight.last().is_none_or(|tight| *tight == 0) { &orders[..1] } else { &orders[..] };
        // Each order ends with a pass that finds fewer wires than are compared at once.
        let wires = self.passes.gates.len() - self.passes.is_output.count() - self.sure[0];
        let passes = wires / lives + 1;
        self.passes.begin("placing wires in block RAM", some.len() * passes);
        let all = some.iter().enumerate().map(|(i, order)| {
            self.passes.told.borrow_mut().done = i * passes;
            self.taken(*order, lives)
        });
        let best = all.reduce(
            |best, other| {
                if other.wires + other.reads > best.wires + best.reads { other } else { best }
            },
        );
        let Taken { wires, reads, block_ram, ddr } = best.expect("there is an order");
        self.passes.traffic(wires, reads, block_ram, self.passes.first + ddr)
    }

    /// Takes wires in this order, each that fits at every moment of its life.
    fn taken(&self, order: First, lives: usize) -> Taken {
        let mut used = Profile::new(self.time.batches as usize);
        let [mut wires, mut reads] = self.sure;
        let mut after = None;
        // How many full batches are before each: what lives in one of them does not fit.
        let mut full = vec![0; self.tight.len()];
        loop {
            let next = self.next(order, after, lives, &full);
            for candidate in &next {
                let life = candidate.begin as usize..candidate.end as usize + 1;
                if used.most(life.clone()) < self.capacity {
                    used.add(life);
                    wires += 1;
                    reads += candidate.reads as usize;
                }
            }
            match next.last() {
                Some(last) if next.len() == lives => after = Some(self.place(order, last)),
                _ => break,
            }
            full = before(used.counts().into_iter().map(|used| used as usize >= self.capacity));
        }
        let inside = used.counts().into_iter().zip(&self.loose).map(|(taken, loose)| taken + loose);
        let (mut block_ram, mut ddr) = (0, 0);
        for (inside, alive) in inside.zip(&self.alive) {
            block_ram = block_ram.max(inside);
            ddr = ddr.max(alive - inside);
        }
        Taken { wires, reads, block_ram: block_ram as usize, ddr: ddr as usize }
    }

    /// The place of a wire in an order: least first.
    fn place(&self, order: First, candidate: &Candidate) -> (Reverse<u64>, u32) {
        let accesses = u64::from(candidate.reads) + 1;
        let priority = match order {
            First::MostAccessesABatch => (accesses << 32) / u64::from(candidate.end - candidate.begin + 1),
            First::MostAccesses => accesses,
            First::DirectlyUsed => u64::from(self.direct.get(candidate.gate as usize)),
        };
        (Reverse(priority), candidate.gate)
    }

    /// The first `lives` wires after a place that compete and see none of the `full` batches, in order.
    fn next(
        &self,
        order: First,
        after: Option<(Reverse<u64>, u32)>,
        lives: usize,
        full: &[u32],
    ) -> Vec<Candidate> {
        let mut found: Vec<Candidate> = Vec::new();
        // What comes no earlier than this is not among them.
        let mut end = None;
        if self.tight.last().is_some_and(|tight| *tight > 0) {
            self.passes.batches(
                self.time,
                self.layers,
                |_, _| {},
                |life| {
                    let candidate = life.candidate;
                    if life.output || !self.competes(candidate) || candidate.sees(full) {
                        return;
                    }
                    let place = self.place(order, &candidate);
                    if after.is_some_and(|after| place <= after) || end.is_some_and(|end| place >= end) {
                        return;
                    }
                    if found.len() == 2 * lives {
                        let (_, last, _) =
                            found.select_nth_unstable_by_key(lives - 1, |c| self.place(order, c));
                        end = Some(self.place(order, last));
                        found.truncate(lives);
                    }
                    found.push(candidate);
                },
            );
        }
        found.sort_unstable_by_key(|candidate| self.place(order, candidate));
        found.truncate(lives);
        found
    }
}

/// A life in batches.
struct InBatches {
    candidate: Candidate,
    output: bool,
}

impl InBatches {
    /// The last batch in which its place is taken: an output stays.
    fn end(&self) -> u32 {
        if self.output { u32::MAX } else { self.candidate.end }
    }
}

impl Passes<'_> {
    /// All gates in order, garbled in batches; `born` gets each gate with its layer.
    fn batches(
        &self,
        time: &Time,
        layers: usize,
        mut born: impl FnMut(usize, u32),
        mut ended: impl FnMut(InBatches),
    ) {
        let mut ranks = vec![[0u32; 2]; layers];
        let batch = |gate: usize, layer: u32| {
            born(gate, layer);
            let kind = kind_place(&self.gates[gate]);
            let rank = &mut ranks[layer as usize][kind];
            *rank += 1;
            time.of(layer, kind, *rank - 1)
        };
        self.pass(batch, |gate, Life { reads, begin, end, .. }| {
            let output = self.is_output.get(gate);
            ended(InBatches { candidate: Candidate { gate: gate as u32, reads, begin, end }, output });
        });
    }
}

/// Notes a life: one more from its first batch on, one fewer after its last.
fn lives(changes: &mut [u32], begin: u32, end: u32) {
    changes[begin as usize] = changes[begin as usize].wrapping_add(1);
    if let Some(after) = changes.get_mut((end as usize).saturating_add(1)) {
        *after = after.wrapping_sub(1);
    }
}

/// From changes to counts.
fn sums(changes: &mut [u32]) {
    let mut sum = 0u32;
    for change in changes {
        sum = sum.wrapping_add(*change);
        *change = sum;
    }
}

/// Of each batch how many before it are so; and of all.
fn before(so: impl Iterator<Item = bool>) -> Vec<u32> {
    let mut count = 0;
    let counts = std::iter::once(false).chain(so).map(|so| {
        count += u32::from(so);
        count
    });
    counts.collect()
}
