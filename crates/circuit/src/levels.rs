//! Gates by layer, and slots that are used again: what every compiler of a circuit shares.
//!
//! A window is a run of gates that is ordered at once. Its parts, which need nothing of each other, are put out one by one:
//! layers of XORs and of independent ANDs, each wire in a slot that is free from its last read on, or from its window's end on.

use std::collections::VecDeque;

use blindcore_accel::garble::{Program, ProgramBuilder, Step};

/// Gates of a window.
pub(crate) const WINDOW: usize = 1 << 16;
/// ANDs that a part has at least.
const PART_ANDS: usize = 1024;
/// ANDs that a part's layers have at least on average, so that a layer fills the pipeline of AES many times.
const PART_WIDTH: usize = 32;

/// A gate of a window: what it reads are gates of the window by their places, or slots.
#[derive(Clone, Copy)]
pub(crate) struct Local {
    pub(crate) and: bool,
    pub(crate) a: u32,
    pub(crate) b: u32,
}

/// Marks an operand that is a slot: it was there before the window.
pub(crate) const SLOT: u32 = 1 << 31;

/// Where a gate's wire goes: any slot, which is free after the wire's last read in the window,
pub(crate) const DIES: u32 = u32::MAX;
/// any slot, which it keeps,
pub(crate) const LIVES: u32 = u32::MAX - 1;
// or this slot.

/// Added to the readers that are left of a wire that keeps its slot: they never come to none.
const KEPT: u32 = 1 << 31;

/// Of a gate of a window the number of its component, and its bucket: twice the ANDs before it on the longest way to it, which are
/// its layer, and one more where it is an AND itself.
type Place = [u32; 2];

/// The layer of a gate that reads one of this bucket, as far as that one says.
#[inline]
const fn layer_after(bucket: u32) -> u32 {
    (bucket + 1) >> 1
}

/// Programs under construction.
pub(crate) struct Emitter {
    program: ProgramBuilder,
    /// ANDs of a program, at most.
    most: usize,
    done: VecDeque<Program>,
    /// Slots that hold nothing, of the present part and of before the window; the one that was freed last on top: it is the
    /// warmest.
    free_here: Vec<u32>,
    free: Vec<u32>,
    /// Those that parts of the window before this one freed: parts share no slots.
    retired: Vec<u32>,
    /// The next slot that was not handed out yet.
    next: u32,
    runs: Runs,
    /// Of each gate of the window: its place; its rank among the XORs of its layer; how many operands that read it are still to come.
    places: Vec<Place>,
    ranks: Vec<u32>,
    uses: Vec<u32>,
    /// The window's gates part by part and layer by layer, XORs before ANDs; and where each of those buckets ends.
    order: Vec<u32>,
    ends: Vec<u32>,
    /// The same gates in that order, where slots are known before.
    steps: Vec<Step>,
}

/// How often programs are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// While they are made: each wire that dies in its window has a slot of its own there, behind those of wires that live on. To find
    /// which could be used again would take longer than what a smaller window of labels saves.
    Once,
    /// Again and again: within a window slots are used again, and XORs get their best order.
    Often,
}

impl Emitter {
    /// Programs of at most `most` ANDs; slots from `first` on are handed out, and `slots` are there from the beginning.
    pub(crate) fn new(first: u32, slots: usize, most: usize, runs: Runs) -> Self {
        Self {
            program: ProgramBuilder::new(slots),
            most,
            done: VecDeque::new(),
            free_here: Vec::new(),
            free: Vec::new(),
            retired: Vec::new(),
            next: first,
            runs,
            places: Vec::new(),
            ranks: Vec::new(),
            uses: Vec::new(),
            order: Vec::new(),
            ends: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// Puts out a window, part by part: `keep` says where each gate's wire goes, `slots` gets it.
    pub(crate) fn window(&mut self, gates: &[Local], keep: &[u32], slots: &mut [u32]) {
        let parts = Parts::several(gates, &mut self.places);
        match (parts, self.runs) {
            (parts, Runs::Once) => {
                let parts = parts.unwrap_or_else(|| Parts::one(gates, &mut self.places));
                self.put_in_place(gates, keep, slots, &parts);
            }
            (Some(parts), Runs::Often) => self.put_out(gates, keep, slots, &parts, true),
            (None, Runs::Often) => {
                self.part(gates, keep, slots);
                self.end_part();
            }
        }
    }

    /// The same of a window that is one part, or of a part that goes on.
    pub(crate) fn part(&mut self, gates: &[Local], keep: &[u32], slots: &mut [u32]) {
        let parts = Parts::one(gates, &mut self.places);
        self.put_out(gates, keep, slots, &parts, false);
    }

    /// Puts out a window where each wire that dies in it has a slot of its own.
    fn put_in_place(&mut self, gates: &[Local], keep: &[u32], slots: &mut [u32], parts: &Parts) {
        for (slot, keep) in slots.iter_mut().zip(keep) {
            if *keep != DIES {
                *slot = self.slot(*keep);
            }
        }
        let mut own = self.next;
        for (slot, keep) in slots.iter_mut().zip(keep) {
            let dies = *keep == DIES;
            *slot = if dies { own } else { *slot };
            own += u32::from(dies);
        }
        let (places, mut ends) = (std::mem::take(&mut self.places), std::mem::take(&mut self.ends));
        let mut steps = std::mem::take(&mut self.steps);
        let bucket = buckets(parts, &places, &mut ends);
        steps.resize(gates.len(), Step { out: 0, a: 0, b: 0 });
        for ((gate, place), out) in gates.iter().zip(&places).zip(&*slots) {
            let at = &mut ends[bucket(*place)];
            steps[*at as usize] = Step { out: *out, a: slot_of(gate.a, slots), b: slot_of(gate.b, slots) };
            *at += 1;
        }
        let (mut begin, mut layers) = (0, ends.as_chunks::<2>().0.iter());
        for count in &parts.layers {
            for layer in layers.by_ref().take(*count as usize) {
                let [and_begin, end] = layer.map(|end| end as usize);
                let (mut xors, mut ands) = (&steps[begin..and_begin], &steps[and_begin..end]);
                loop {
                    let room = ands.len().min(self.most - self.program.ands());
                    let (here, others) = ands.split_at(room);
                    self.program.extend(xors, here).expect(HANDED_OUT);
                    (xors, ands) = (&[], others);
                    if ands.is_empty() {
                        break;
                    }
                    self.done.push_back(self.program.take());
                }
                self.program.end_layer();
                begin = end;
            }
            self.end_part();
        }
        (self.places, self.ends, self.steps) = (places, ends, steps);
    }

    fn put_out(&mut self, gates: &[Local], keep: &[u32], slots: &mut [u32], parts: &Parts, end_parts: bool) {
        let (mut places, mut ranks) = (std::mem::take(&mut self.places), std::mem::take(&mut self.ranks));
        let (mut order, mut ends) = (std::mem::take(&mut self.order), std::mem::take(&mut self.ends));
        put_off_xors(gates, parts, &mut places, &mut ranks);
        rank_xors(gates, &places, &mut ranks);
        let uses = &mut self.uses;
        uses.clear();
        uses.extend(keep.iter().map(|keep| if *keep == DIES { 0 } else { KEPT }));
        for operand in gates.iter().flat_map(|gate| [gate.a, gate.b]).filter(|operand| operand & SLOT == 0) {
            uses[operand as usize] += 1;
        }
        let bucket = buckets(parts, &places, &mut ends);
        order.resize(gates.len(), 0);
        for (gate, place) in places.iter().enumerate() {
            let at = &mut ends[bucket(*place)];
            order[*at as usize] = gate as u32;
            *at += 1;
        }
        let mut begin = 0;
        for [and_begin, end] in ends.as_chunks::<2>().0 {
            order[begin..*and_begin as usize].sort_by_key(|gate| ranks[*gate as usize]);
            begin = *end as usize;
        }
        let (mut begin, mut layers) = (0, ends.as_chunks::<2>().0.iter());
        for count in &parts.layers {
            for layer in layers.by_ref().take(*count as usize) {
                let [and_begin, end] = layer.map(|end| end as usize);
                for gate in &order[begin..and_begin] {
                    self.xor(gates, *gate, keep, slots);
                }
                for gate in &order[and_begin..end] {
                    if self.program.ands() == self.most {
                        self.done.push_back(self.program.take());
                    }
                    self.and(gates, *gate, keep, slots);
                }
                // ANDs of a layer are independent of each other, so what they read is free after all of them.
                for gate in &order[and_begin..end] {
                    self.free_operands(gates[*gate as usize], slots);
                    self.free_unread(*gate, slots);
                }
                self.program.end_layer();
                begin = end;
            }
            if end_parts {
                self.end_part();
            }
        }
        (self.places, self.ranks, self.order, self.ends) = (places, ranks, order, ends);
    }

    #[inline]
    fn xor(&mut self, gates: &[Local], gate: u32, keep: &[u32], slots: &mut [u32]) {
        let local = gates[gate as usize];
        let (a, b) = (slot_of(local.a, slots), slot_of(local.b, slots));
        self.free_operands(local, slots);
        let out = self.slot(keep[gate as usize]);
        slots[gate as usize] = out;
        self.program.xor(out, a, b).expect(HANDED_OUT);
        self.free_unread(gate, slots);
    }

    #[inline]
    fn and(&mut self, gates: &[Local], gate: u32, keep: &[u32], slots: &mut [u32]) {
        let local = gates[gate as usize];
        let (a, b) = (slot_of(local.a, slots), slot_of(local.b, slots));
        let out = self.slot(keep[gate as usize]);
        slots[gate as usize] = out;
        self.program.and(out, a, b).expect(HANDED_OUT);
    }

    /// A slot for a wire that goes there.
    #[inline]
    fn slot(&mut self, keep: u32) -> u32 {
        match keep {
            DIES | LIVES => self.free_here.pop().or_else(|| self.free.pop()).unwrap_or_else(|| {
                self.next += 1;
                self.program.grow(self.next as usize);
                self.next - 1
            }),
            slot => slot,
        }
    }

    /// Frees what nobody reads after this gate.
    #[inline]
    fn free_operands(&mut self, Local { a, b, .. }: Local, slots: &[u32]) {
        for operand in [a, b].into_iter().filter(|operand| operand & SLOT == 0) {
            let left = &mut self.uses[operand as usize];
            *left -= 1;
            if *left == 0 {
                self.free_here.push(slots[operand as usize]);
            }
        }
    }

    /// Frees the slot of a gate that nobody reads.
    #[inline]
    fn free_unread(&mut self, gate: u32, slots: &[u32]) {
        if self.uses[gate as usize] == 0 {
            self.free_here.push(slots[gate as usize]);
        }
    }

    /// Slots of wires from before the window that nobody reads any more; only where the window is one part.
    pub(crate) fn free_slots(&mut self, slots: impl Iterator<Item = u32>) {
        self.free_here.extend(slots);
    }

    /// Ends a part: the next one needs nothing of it.
    pub(crate) fn end_part(&mut self) {
        self.program.end_part();
        self.retired.append(&mut self.free_here);
    }

    /// Ends a window, and its last program: slots of its parts and these are free.
    pub(crate) fn end_window(&mut self, freed: impl Iterator<Item = u32>) {
        self.end_part();
        self.free.append(&mut self.retired);
        self.free.extend(freed);
        self.done.push_back(self.program.take());
    }

    /// The next program that is done.
    pub(crate) fn next_program(&mut self) -> Option<Program> {
        self.done.pop_front()
    }

    /// The only program.
    pub(crate) fn finish(self) -> Program {
        self.program.finish()
    }
}

/// Which bucket a place is in, of each layer's XORs and ANDs, and into `ends` where those begin among all gates.
fn buckets(parts: &Parts, places: &[Place], ends: &mut Vec<u32>) -> impl Fn(Place) -> usize + use<> {
    let firsts: Vec<u32> = parts
        .layers
        .iter()
        .scan(0, |end, layers| {
            *end += 2 * layers;
            Some(*end - 2 * layers)
        })
        .collect();
    let first_of: Vec<u32> = parts.of.iter().map(|part| firsts[*part as usize]).collect();
    let bucket = move |[component, bucket]: Place| (first_of[component as usize] + bucket) as usize;
    ends.clear();
    ends.resize(2 * parts.layers.iter().sum::<u32>() as usize, 0);
    places.iter().for_each(|place| ends[bucket(*place)] += 1);
    let mut end = 0;
    for begin in ends {
        (*begin, end) = (end, end + *begin);
    }
    bucket
}

/// What holds of slots.
const HANDED_OUT: &str = "slots are handed out to one wire at a time";

/// The slot of an operand.
#[inline]
fn slot_of(operand: u32, slots: &[u32]) -> u32 {
    if operand & SLOT == 0 { slots[operand as usize] } else { operand & !SLOT }
}

/// Puts off an XOR that no gate of its layer needs by a layer: there it is run while the ANDs in between are still on their
/// way. `first` is room for the first layer that needs a gate.
fn put_off_xors(gates: &[Local], parts: &Parts, places: &mut [Place], first: &mut Vec<u32>) {
    first.clear();
    first
        .extend(places.iter().map(|[component, _]| parts.layers[parts.of[*component as usize] as usize] - 1));
    for (gate, Local { and, a, b }) in gates.iter().enumerate().rev() {
        let [_, bucket] = &mut places[gate];
        if !and {
            *bucket = 2 * (*bucket / 2 + 1).min(first[gate]);
        }
        let layer = *bucket / 2;
        for operand in [*a, *b].into_iter().filter(|operand| operand & SLOT == 0) {
            first[operand as usize] = first[operand as usize].min(layer);
        }
    }
}

/// Ranks the XORs of each layer: first those that need none of the ANDs of the layer before, and all by depth, so that XORs
/// that follow each other seldom wait for each other.
fn rank_xors(gates: &[Local], places: &[Place], ranks: &mut Vec<u32>) {
    /// The least rank of what waits for ANDs of the layer before; chains of a window are shorter.
    const WAITS: u32 = WINDOW as u32 + 1;
    ranks.clear();
    for (Local { and, a, b }, [_, bucket]) in gates.iter().zip(places) {
        let after = |operand: u32| {
            let Some([_, before]) = places.get(operand as usize).filter(|_| operand & SLOT == 0) else {
                return 0;
            };
            match before % 2 == 1 {
                true if before / 2 + 1 == bucket / 2 => WAITS,
                false if before / 2 == bucket / 2 => ranks[operand as usize] + 1,
                _ => 0,
            }
        };
        let rank = if *and { 0 } else { after(*a).max(after(*b)) };
        ranks.push(rank);
    }
}

/// Which components of a window are a part together, in order of their first gates.
struct Parts {
    /// The part of each component.
    of: Vec<u32>,
    /// The layers of each part.
    layers: Vec<u32>,
}

/// No component yet.
const NEW: u32 = u32::MAX;

impl Parts {
    /// All gates as one part. `places` gets them.
    fn one(gates: &[Local], places: &mut Vec<Place>) -> Self {
        places.clear();
        let mut layers = 0;
        for gate in gates {
            let before =
                |operand: u32| if operand & SLOT == 0 { layer_after(places[operand as usize][1]) } else { 0 };
            let layer = before(gate.a).max(before(gate.b));
            layers = layers.max(layer + 1);
            places.push([0, 2 * layer + u32::from(gate.and)]);
        }
        Self { of: vec![0], layers: vec![layers] }
    }

    /// Components that share only what was there before, small ones together; none where there are too few ANDs for two parts.
    fn several(gates: &[Local], places: &mut Vec<Place>) -> Option<Self> {
        if gates.iter().filter(|gate| gate.and).count() <= PART_ANDS {
            return None;
        }
        // Of each gate the number of its component, or of one that was joined with it: numbers are joined, to the least of them, for
        // there are far fewer than gates. A number's ANDs and last bucket are those of the gates that have it.
        let mut joined: Vec<u32> = Vec::new();
        fn root(joined: &mut [u32], mut x: u32) -> u32 {
            while joined[x as usize] != x {
                joined[x as usize] = joined[joined[x as usize] as usize];
                x = joined[x as usize];
            }
            x
        }
        let mut sizes: Vec<[u32; 2]> = Vec::new();
        places.clear();
        places.reserve(gates.len());
        for gate in gates {
            let before = |operand: u32| match places.get(operand as usize) {
                Some([component, bucket]) => (*component, layer_after(*bucket)),
                None => (NEW, 0),
            };
            let ((x, layer_x), (y, layer_y)) = (before(gate.a), before(gate.b));
            let own = match (x, y) {
                (NEW, NEW) => {
                    joined.push(joined.len() as u32);
                    sizes.push([0, 0]);
                    joined.len() as u32 - 1
                }
                (x, NEW) | (NEW, x) => x,
                (x, y) if x == y => x,
                (x, y) => {
                    let (x, y) = (root(&mut joined, x), root(&mut joined, y));
                    joined[x.max(y) as usize] = x.min(y);
                    x.min(y)
                }
            };
            let bucket = 2 * layer_x.max(layer_y) + u32::from(gate.and);
            let [ands, last] = &mut sizes[own as usize];
            *ands += u32::from(gate.and);
            *last = bucket.max(*last);
            places.push([own, bucket]);
        }
        for number in (0..joined.len() as u32).rev() {
            let (least, [ands, last]) = (root(&mut joined, number) as usize, sizes[number as usize]);
            if least != number as usize {
                sizes[least][0] += ands;
                sizes[least][1] = sizes[least][1].max(last);
            }
        }
        // Components in order of their first gate, gathered until a part is large and wide enough.
        let (mut of, mut layers) = (vec![0; joined.len()], Vec::new());
        let (mut size, mut last) = (0, 0);
        for number in 0..joined.len() {
            let least = root(&mut joined, number as u32) as usize;
            if least == number {
                if layers.is_empty() || size >= PART_ANDS.max(PART_WIDTH * layer_after(last) as usize) {
                    layers.push(0);
                    (size, last) = (0, 0);
                }
                let part = layers.len() - 1;
                of[number] = part as u32;
                size += sizes[number][0] as usize;
                last = last.max(sizes[number][1]);
                layers[part] = last / 2 + 1;
            } else {
                of[number] = of[least];
            }
        }
        Some(Self { of, layers })
    }
}

/// Gates of independent components, small ones together, each list in the gates' order.
pub(crate) fn parts(gates: &[Local]) -> Vec<Vec<u32>> {
    let mut places = Vec::new();
    let Some(parts) = Parts::several(gates, &mut places) else {
        return if gates.is_empty() { Vec::new() } else { vec![(0..gates.len() as u32).collect()] };
    };
    let mut lists = vec![Vec::new(); parts.layers.len()];
    for (gate, [component, _]) in places.iter().enumerate() {
        lists[parts.of[*component as usize] as usize].push(gate as u32);
    }
    lists
}
