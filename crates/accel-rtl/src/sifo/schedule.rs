//! The half-gates overlay from the host's side: a program as the commands of a chip that starts a gate a clock.
//!
//! ```text
//!   Program ──▶ values ──▶ full adders ──▶ stages ──▶ places ──▶ commands
//!               who reads    five gates     what needs   block RAM as long as they live,
//!               what         as one         nothing of   DDR where there is no room
//!                                           each other
//! ```
//!
//! Places are taken by lifetimes: one is used again in the stage after its label was read for the last time. Where labels
//! don't fit, those that are needed last go to DDR memory and come back. ANDs stay in the program's order, because their
//! numbers do. Source for cells across layers and for the reuse of places: what SIFO (Fang, Ioannidis and Leeser 2019)
//! leaves to later work, sections 3.4.2 and 5.

use std::collections::{BTreeSet, HashMap};

use blindcore_accel::garble::Program;

/// A label's number: those that are there at the start come first.
pub(super) type Value = u32;

/// What the chip does in a clock; places of block RAM, and of DDR memory where it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Xor {
        out: u32,
        a: u32,
        b: u32,
    },
    And {
        out: u32,
        a: u32,
        b: u32,
    },
    /// `sum = a ^ b ^ c`, `carry = c ^ ((a ^ c) & (b ^ c))`.
    Full {
        sum: u32,
        carry: u32,
        a: u32,
        b: u32,
        c: u32,
    },
    Load {
        place: u32,
        ddr: u64,
    },
    Store {
        place: u32,
        ddr: u64,
    },
}

impl Op {
    /// The header's operation (`sf_dispatcher.sv`).
    pub(super) fn code(self) -> u32 {
        match self {
            Op::Xor { .. } => 0,
            Op::And { .. } => 1,
            Op::Full { .. } => 2,
            Op::Load { .. } => 3,
            Op::Store { .. } => 4,
        }
    }
}

/// Where a label is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Ram(u32),
    Ddr(u64),
}

/// A program as the chip runs it.
#[derive(Clone, Debug, Default)]
pub(super) struct Schedule {
    /// Batches: whether all before must be done first, and operations of one kind that need nothing of each other.
    pub(super) batches: Vec<(bool, Vec<Op>)>,
    /// Slots whose labels the program needs, and the DDR place of each.
    pub(super) inputs: Vec<(u32, u64)>,
    /// Slots that it writes, and where their labels are in the end.
    pub(super) outputs: Vec<(u32, Place)>,
    /// Labels that went to DDR memory and came back.
    pub(super) spilled: usize,
    /// Full adders that are one gate.
    pub(super) full_adders: usize,
    /// Steps: batches that had to wait for those before.
    pub(super) stages: usize,
}

/// Why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooSmall;

/// A gate over values, or a full adder.
#[derive(Clone, Copy, Debug)]
enum Node {
    Xor {
        a: Value,
        b: Value,
        out: Value,
    },
    And {
        a: Value,
        b: Value,
        out: Value,
    },
    /// `both` is its AND's value, which nobody else reads.
    Full {
        a: Value,
        b: Value,
        c: Value,
        sum: Value,
        carry: Value,
        both: Value,
    },
}

impl Node {
    fn reads(&self) -> impl Iterator<Item = Value> + use<> {
        let (values, count) = match *self {
            Node::Xor { a, b, .. } | Node::And { a, b, .. } => ([a, b, 0], 2),
            Node::Full { a, b, c, .. } => ([a, b, c], 3),
        };
        values.into_iter().take(count)
    }

    fn writes(&self) -> impl Iterator<Item = Value> + use<> {
        let (values, count) = match *self {
            Node::Xor { out, .. } | Node::And { out, .. } => ([out, 0], 1),
            Node::Full { sum, carry, .. } => ([sum, carry], 2),
        };
        values.into_iter().take(count)
    }

    fn garbles(&self) -> bool {
        !matches!(self, Node::Xor { .. })
    }
}

/// A program with a value for each label that ever is.
pub(super) struct Values {
    /// The slot of each value that is there at the start.
    pub(super) inputs: Vec<u32>,
    /// `(is an AND, a, b)`; gate `i` writes value `inputs.len() + i`.
    pub(super) gates: Vec<(bool, Value, Value)>,
    /// Slots that are written, and what they hold in the end.
    pub(super) outputs: Vec<(u32, Value)>,
}

impl Values {
    pub(super) fn new(program: &Program) -> Self {
        // Inputs are numbered first, so that gates' numbers follow.
        const NONE: Value = Value::MAX;
        let mut first = vec![NONE; program.slots()];
        let mut written = vec![false; program.slots()];
        let mut inputs = Vec::new();
        for step in program.steps() {
            for slot in [step.a, step.b] {
                if !written[slot as usize] && first[slot as usize] == NONE {
                    first[slot as usize] = inputs.len() as Value;
                    inputs.push(slot);
                }
            }
            written[step.out as usize] = true;
        }
        let mut now = first;
        let mut gates = Vec::with_capacity(program.steps().len());
        let layers = program.parts().iter().flat_map(|part| program.layers_of(*part));
        for (and, step) in layers
            .flat_map(|(xors, ands, _)| xors.iter().map(|s| (false, s)).chain(ands.iter().map(|s| (true, s))))
        {
            gates.push((and, now[step.a as usize], now[step.b as usize]));
            now[step.out as usize] = (inputs.len() + gates.len() - 1) as Value;
        }
        let outputs = written.iter().enumerate().filter(|(_, written)| **written);
        let outputs = outputs.map(|(slot, _)| (slot as u32, now[slot])).collect();
        Self { inputs, gates, outputs }
    }

    pub(super) fn count(&self) -> usize {
        self.inputs.len() + self.gates.len()
    }

    /// The gates as nodes in order, full adders as one but for those whose ANDs are `apart`.
    fn nodes(&self, apart: &BTreeSet<Value>) -> Vec<Node> {
        let first = self.inputs.len() as Value;
        let gate = |value: Value| value.checked_sub(first).map(|g| self.gates[g as usize]);
        // How often each value is read, and its first two readers.
        let mut reads = vec![0u32; self.count()];
        let mut readers = vec![[Value::MAX; 2]; self.count()];
        for (i, (_, a, b)) in self.gates.iter().enumerate() {
            for value in [*a, *b] {
                if let Some(place) = readers[value as usize].get_mut(reads[value as usize] as usize) {
                    *place = first + i as Value;
                }
                reads[value as usize] += 1;
            }
        }
        for (_, value) in &self.outputs {
            reads[*value as usize] += 3; // the one that asked for it keeps it
        }
        let other = |(_, a, b): (bool, Value, Value), known: Value| match known {
            known if known == a => Some(b),
            known if known == b => Some(a),
            _ => None,
        };
        let mut taken = vec![false; self.count()];
        let mut fused: HashMap<Value, Node> = HashMap::new();
        let ands = (first..).zip(&self.gates).filter(|(both, (and, ..))| *and && !apart.contains(both));
        for (both, (_, x, y)) in ands {
            let found = (|| {
                let (gx, gy) = (gate(*x)?, gate(*y)?);
                if gx.0 || gy.0 || x == y || reads[both as usize] != 1 {
                    return None;
                }
                // One of the two is read by the AND alone, the other by the sum too.
                let y_is_shared = match (reads[*x as usize], reads[*y as usize]) {
                    (1, 2) => true,
                    (2, 1) => false,
                    _ => return None,
                };
                let carry = readers[both as usize][0];
                let gcarry = gate(carry)?;
                let c = other(gcarry, both).filter(|_| !gcarry.0)?;
                // Which operand is which shows in the AND's table.
                let (a, b) = (other(gx, c)?, other(gy, c)?);
                let (shared, lacks) = if y_is_shared { (*y, a) } else { (*x, b) };
                let sum = readers[shared as usize].into_iter().find(|reader| *reader != both)?;
                let gsum = gate(sum)?;
                if gsum.0 || other(gsum, shared)? != lacks || sum == carry {
                    return None;
                }
                let mine = [*x, *y, both, sum, carry];
                if mine.iter().any(|value| taken[*value as usize]) {
                    return None;
                }
                for value in mine {
                    taken[value as usize] = true;
                }
                Some(Node::Full { a, b, c, sum, carry, both })
            })();
            if let Some(node) = found {
                fused.insert(both, node);
            }
        }
        let gates = self.gates.iter().enumerate().filter_map(|(i, (and, a, b))| {
            let (a, b, out) = (*a, *b, first + i as Value);
            match (fused.get(&out), taken[out as usize], and) {
                (Some(node), ..) => Some(*node),
                (None, true, _) => None,
                (None, false, true) => Some(Node::And { a, b, out }),
                (None, false, false) => Some(Node::Xor { a, b, out }),
            }
        });
        gates.collect()
    }

    /// The stage of each node, from 1; or the ANDs of full adders that make a circle with the order of ANDs: somebody reads
    /// the sum before the AND's turn.
    fn stages(&self, nodes: &[Node]) -> Result<Vec<u32>, Vec<Value>> {
        const UNKNOWN: u32 = u32::MAX;
        let mut maker = vec![u32::MAX; self.count()];
        for (i, node) in nodes.iter().enumerate() {
            for value in node.writes() {
                maker[value as usize] = i as u32;
            }
        }
        let mut before = vec![u32::MAX; nodes.len()];
        let mut last = u32::MAX;
        for (i, _) in nodes.iter().enumerate().filter(|(_, node)| node.garbles()) {
            before[i] = last;
            last = i as u32;
        }
        let mut stage = vec![UNKNOWN; nodes.len()];
        let mut open = vec![false; nodes.len()];
        for i in 0..nodes.len() {
            // Depth first, without recursion: what a node needs comes before it.
            let mut stack = vec![i as u32];
            while let Some(at) = stack.last().map(|n| *n as usize) {
                if stage[at] != UNKNOWN {
                    stack.pop();
                    continue;
                }
                let makers = nodes[at].reads().map(|value| maker[value as usize]);
                let needs: Vec<u32> = makers.filter(|m| *m != u32::MAX).collect();
                let prior = Some(before[at]).filter(|b| *b != u32::MAX);
                let missing: Vec<u32> =
                    needs.iter().copied().chain(prior).filter(|m| stage[*m as usize] == UNKNOWN).collect();
                if missing.is_empty() {
                    let deep = needs.iter().map(|m| stage[*m as usize]).max().unwrap_or(0) + 1;
                    stage[at] = deep.max(prior.map_or(0, |p| stage[p as usize]));
                    stack.pop();
                } else if open[at] {
                    let circle = stack.iter().map(|n| *n as usize).filter(|n| open[*n]);
                    let adders = circle.filter_map(|n| match nodes[n] {
                        Node::Full { both, .. } => Some(both),
                        _ => None,
                    });
                    return Err(adders.collect());
                } else {
                    open[at] = true;
                    stack.extend(missing);
                }
            }
        }
        Ok(stage)
    }
}

impl Schedule {
    /// A program on a chip with this many places of block RAM. Of the slots that it writes, those that are `wanted`, or all.
    pub(super) fn new(program: &Program, places: usize, wanted: Option<&[u32]>) -> Result<Self, TooSmall> {
        // The smallest share: three operands and two results of a gate, and room for what comes back.
        if places < 16 {
            return Err(TooSmall);
        }
        let mut values = Values::new(program);
        if let Some(wanted) = wanted {
            let mut keep = vec![false; program.slots()];
            wanted.iter().for_each(|slot| keep[*slot as usize] = true);
            values.outputs.retain(|(slot, _)| keep[*slot as usize]);
        }
        let mut apart = BTreeSet::new();
        let (nodes, stages) = loop {
            let nodes = values.nodes(&apart);
            match values.stages(&nodes) {
                Ok(stages) => break (nodes, stages),
                Err(adders) => {
                    assert!(!adders.is_empty(), "gates alone are in order");
                    apart.extend(adders);
                }
            }
        };
        let mut order: Vec<u32> = (0..nodes.len() as u32).collect();
        // XORs before what garbles; that in its order.
        order.sort_by_key(|i| (stages[*i as usize], nodes[*i as usize].garbles(), *i));
        let mut allocator = Allocator::new(&values, places);
        allocator.schedule.full_adders = nodes.iter().filter(|n| matches!(n, Node::Full { .. })).count();
        // A piece of a stage never takes more than a share of the places, however wide the stage is.
        let most = (places / 8).max(1);
        let pieces: Vec<&[u32]> = order
            .chunk_by(|a, b| stages[*a as usize] == stages[*b as usize])
            .flat_map(|stage| stage.chunks(most))
            .collect();
        // When each value is read next: pieces by value, the last first.
        for (number, piece) in pieces.iter().enumerate().rev() {
            for value in piece.iter().flat_map(|i| nodes[*i as usize].reads()) {
                let uses = &mut allocator.uses[value as usize];
                if uses.last() != Some(&(number as u32)) {
                    uses.push(number as u32);
                }
            }
        }
        for (_, value) in &values.outputs {
            allocator.kept[*value as usize] = true;
        }
        allocator.prefetch(places);
        for (number, piece) in pieces.iter().enumerate() {
            allocator.piece(number as u32, piece.iter().map(|i| nodes[*i as usize]))?;
        }
        let mut schedule = allocator.schedule;
        for (slot, value) in &values.outputs {
            let place = match (allocator.ram[*value as usize], allocator.ddr[*value as usize]) {
                (Some(place), _) => Place::Ram(place),
                (None, Some(ddr)) => Place::Ddr(ddr),
                (None, None) => unreachable!("what is kept is somewhere"),
            };
            schedule.outputs.push((*slot, place));
        }
        schedule.inputs = values.inputs.iter().enumerate().map(|(i, slot)| (*slot, i as u64)).collect();
        Ok(schedule)
    }

    /// DDR places that it needs.
    pub(super) fn ddr_places(&self) -> u64 {
        let ops = self.batches.iter().flat_map(|(_, ops)| ops);
        let stored = ops.filter_map(|op| match op {
            Op::Store { ddr, .. } | Op::Load { ddr, .. } => Some(ddr + 1),
            _ => None,
        });
        stored.max().unwrap_or(0).max(self.inputs.len() as u64)
    }
}

/// Which label is where.
struct Allocator {
    schedule: Schedule,
    /// The place of block RAM and of DDR memory of each value.
    ram: Vec<Option<u32>>,
    ddr: Vec<Option<u64>>,
    /// Pieces that read it, the next one last.
    uses: Vec<Vec<u32>>,
    kept: Vec<bool>,
    free: Vec<u32>,
    /// Free from the next piece on.
    freed: Vec<u32>,
    /// What is in block RAM, by its next reader; what is read only by the one that asked for it comes last.
    resident: BTreeSet<(u32, Value)>,
    next_ddr: u64,
}

impl Allocator {
    fn new(values: &Values, places: usize) -> Self {
        let count = values.count();
        let inputs = values.inputs.len();
        Self {
            schedule: Schedule::default(),
            ram: vec![None; count],
            ddr: (0..count).map(|value| (value < inputs).then_some(value as u64)).collect(),
            uses: vec![Vec::new(); count],
            kept: vec![false; count],
            free: (0..places as u32).rev().collect(),
            freed: Vec::new(),
            resident: BTreeSet::new(),
            next_ddr: inputs as u64,
        }
    }

    fn next_use(&self, value: Value) -> u32 {
        self.uses[value as usize].last().copied().unwrap_or(u32::MAX)
    }

    /// Inputs come in at the start as far as half of the places hold them, those that are read first before others.
    fn prefetch(&mut self, places: usize) {
        let inputs = (0..self.ddr.len() as Value).take_while(|v| self.ddr[*v as usize].is_some());
        let mut inputs: Vec<Value> = inputs.filter(|v| !self.uses[*v as usize].is_empty()).collect();
        inputs.sort_by_key(|value| self.next_use(*value));
        inputs.truncate(places / 2);
        let loads: Vec<Op> = inputs.into_iter().map(|value| self.load(value)).collect();
        self.batch(true, loads);
    }

    fn load(&mut self, value: Value) -> Op {
        let place = self.free.pop().expect("room was made");
        self.ram[value as usize] = Some(place);
        self.resident.insert((self.next_use(value), value));
        Op::Load { place, ddr: self.ddr[value as usize].expect("what is not in block RAM is in DDR") }
    }

    fn batch(&mut self, fence: bool, ops: Vec<Op>) {
        if !ops.is_empty() {
            self.schedule.stages += usize::from(fence);
            self.schedule.batches.push((fence, ops));
        }
    }

    /// Nodes that need nothing of each other: what they read comes in, they are done, what nobody reads any more goes.
    fn piece(&mut self, number: u32, nodes: impl Iterator<Item = Node> + Clone) -> Result<(), TooSmall> {
        self.free.append(&mut self.freed);
        let mut missing: Vec<Value> =
            nodes.clone().flat_map(|n| n.reads()).filter(|v| self.ram[*v as usize].is_none()).collect();
        missing.sort_unstable();
        missing.dedup();
        let results = nodes.clone().map(|n| n.writes().count()).sum::<usize>();
        let mut stores = Vec::new();
        while self.free.len() < missing.len() + results {
            // What is read last goes, and never what this piece reads.
            let (next, value) = self.resident.pop_last().ok_or(TooSmall)?;
            if next == number {
                return Err(TooSmall);
            }
            let place = self.ram[value as usize].take().expect("it is resident");
            if self.ddr[value as usize].is_none() {
                let ddr = self.next_ddr;
                self.next_ddr += 1;
                self.ddr[value as usize] = Some(ddr);
                stores.push(Op::Store { place, ddr });
            }
            self.schedule.spilled += 1;
            self.free.push(place);
        }
        self.batch(true, stores);
        let loads: Vec<Op> = missing.into_iter().map(|value| self.load(value)).collect();
        self.batch(true, loads);

        let read: BTreeSet<Value> = nodes.clone().flat_map(|n| n.reads()).collect();
        let mut run: Vec<Op> = Vec::new();
        let mut fence = true;
        for node in nodes {
            let at = |value: Value| self.ram[value as usize].expect("it came in");
            let (ram, op): (Vec<(Value, u32)>, Op) = match node {
                Node::Xor { a, b, out } => {
                    let place = self.free.pop().expect("room was made");
                    (vec![(out, place)], Op::Xor { out: place, a: at(a), b: at(b) })
                }
                Node::And { a, b, out } => {
                    let place = self.free.pop().expect("room was made");
                    (vec![(out, place)], Op::And { out: place, a: at(a), b: at(b) })
                }
                Node::Full { a, b, c, sum, carry, .. } => {
                    let (to_sum, to_carry) =
                        (self.free.pop().expect("room was made"), self.free.pop().expect("room was made"));
                    let op = Op::Full { sum: to_sum, carry: to_carry, a: at(a), b: at(b), c: at(c) };
                    (vec![(sum, to_sum), (carry, to_carry)], op)
                }
            };
            for (value, place) in ram {
                self.ram[value as usize] = Some(place);
                if self.uses[value as usize].is_empty() && !self.kept[value as usize] {
                    // Nobody wants it; its place is written all the same.
                    self.ram[value as usize] = None;
                    self.freed.push(place);
                } else {
                    self.resident.insert((self.next_use(value), value));
                }
            }
            if run.first().is_some_and(|first| first.code() != op.code()) {
                let done = std::mem::take(&mut run);
                self.batch(std::mem::take(&mut fence), done);
            }
            run.push(op);
        }
        self.batch(fence, run);
        for value in read {
            let was = self.resident.remove(&(number, value));
            debug_assert!(was, "what is read is there");
            self.uses[value as usize].pop();
            if self.uses[value as usize].is_empty() && !self.kept[value as usize] {
                self.freed.extend(self.ram[value as usize].take());
            } else {
                self.resident.insert((self.next_use(value), value));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use blindcore_accel::garble::ProgramBuilder;

    use super::*;

    /// The same sequence in each run.
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % n
        }
    }

    /// Gates and full adders on few slots, which are written again and again.
    fn random_program(random: &mut Random, steps: usize) -> Program {
        let slots = 6 + random.below(60);
        let mut program = ProgramBuilder::new(slots);
        for _ in 0..steps {
            let mut slot = || random.below(slots) as u32;
            let (out, a, b, c) = (slot(), slot(), slot(), slot());
            match random.below(4) {
                0 => {
                    program.end_layer();
                    program.and(out, a, b).unwrap();
                    program.end_layer();
                }
                1 if slots > 12 => {
                    // x, y, sum, both and carry, in slots that differ.
                    let first = random.below(slots - 11) as u32;
                    let [x, y, sum, both, carry] = [0, 1, 2, 3, 4].map(|i| first + i);
                    let (a, b, c) = (first + 5, first + 6 + (b & 1), first + 8);
                    program.xor(x, a, c).unwrap();
                    program.xor(y, c, b).unwrap();
                    if random.below(2) == 0 {
                        program.xor(sum, a, y).unwrap();
                    } else {
                        program.xor(sum, x, b).unwrap();
                    }
                    program.and(both, y, x).unwrap();
                    program.xor(carry, both, c).unwrap();
                    for dead in [x, y, both] {
                        program.xor(dead, sum, carry).unwrap();
                    }
                }
                _ => program.xor(out, a, b).unwrap(),
            }
            let _ = c;
        }
        program.finish()
    }

    /// An AND that tells its operands apart, as tables do.
    fn and(a: u64, b: u64) -> u64 {
        (a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b).rotate_left(23).wrapping_mul(0xd6e8_feb8_6659_fd93)
    }

    /// What the chip does: writes are there after the next fence and not before, whatever the order within.
    fn run(schedule: &Schedule, slots: &mut [u64], places: usize) {
        let mut ram: Vec<Option<u64>> = vec![None; places];
        let mut ddr: HashMap<u64, u64> =
            schedule.inputs.iter().map(|(slot, ddr)| (*ddr, slots[*slot as usize])).collect();
        let mut waiting: Vec<(u32, u64)> = Vec::new();
        let mut stored: Vec<(u64, u64)> = Vec::new();
        for (fence, ops) in &schedule.batches {
            if *fence {
                for (place, value) in waiting.drain(..) {
                    ram[place as usize] = Some(value);
                }
                ddr.extend(stored.drain(..));
            }
            for op in ops {
                assert_eq!(op.code(), ops[0].code(), "a batch has one kind");
                let get = |place: u32| ram[place as usize].expect("a place that was written");
                let mut put = |place: u32, value: u64| {
                    assert!(waiting.iter().all(|(other, _)| *other != place), "two write {place}");
                    waiting.push((place, value));
                };
                match *op {
                    Op::Xor { out, a, b } => put(out, get(a) ^ get(b)),
                    Op::And { out, a, b } => put(out, and(get(a), get(b))),
                    Op::Full { sum, carry, a, b, c } => {
                        let (a, b, c) = (get(a), get(b), get(c));
                        put(sum, a ^ b ^ c);
                        put(carry, c ^ and(a ^ c, b ^ c));
                    }
                    Op::Load { place, ddr: from } => put(place, ddr[&from]),
                    Op::Store { place, ddr: to } => stored.push((to, get(place))),
                }
            }
        }
        for (place, value) in waiting {
            ram[place as usize] = Some(value);
        }
        ddr.extend(stored);
        for (slot, place) in &schedule.outputs {
            slots[*slot as usize] = match place {
                Place::Ram(place) => ram[*place as usize].expect("written"),
                Place::Ddr(ddr_place) => ddr[ddr_place],
            };
        }
    }

    #[test]
    fn schedules_compute_what_their_programs_do() {
        let mut random = Random(7);
        let (mut spilled, mut full_adders) = (0, 0);
        for round in 0..600 {
            let steps = 1 + random.below(300);
            let program = random_program(&mut random, steps);
            let places = [16, 40, 4096][round % 3];
            let schedule = Schedule::new(&program, places, None).unwrap();
            spilled += schedule.spilled;
            full_adders += schedule.full_adders;
            let mut want: Vec<u64> = (0..program.slots()).map(|_| random.below(1 << 30) as u64).collect();
            let mut got = want.clone();
            for (xors, ands, _) in program.parts().iter().flat_map(|part| program.layers_of(*part)) {
                for s in xors {
                    want[s.out as usize] = want[s.a as usize] ^ want[s.b as usize];
                }
                for s in ands {
                    want[s.out as usize] = and(want[s.a as usize], want[s.b as usize]);
                }
            }
            run(&schedule, &mut got, places);
            assert_eq!(got, want);
            // ANDs and full adders are as many as ANDs.
            let ops = || schedule.batches.iter().flat_map(|(_, ops)| ops);
            let garbled = ops().filter(|op| matches!(op, Op::And { .. } | Op::Full { .. })).count();
            assert_eq!(garbled, program.ands());
        }
        assert!(spilled > 1000 && full_adders > 1000, "{spilled} {full_adders}");
    }

    #[test]
    fn too_few_places_are_refused() {
        let mut program = ProgramBuilder::new(3);
        program.xor(0, 1, 2).unwrap();
        assert_eq!(Schedule::new(&program.finish(), 15, None).unwrap_err(), TooSmall);
    }
}
