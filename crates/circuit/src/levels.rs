//! Gates by layer, and slots that are used again: what every compiler of a circuit shares.
//!
//! A window is a run of gates that is ordered at once. Its parts, which need nothing of each other, are put out one by one:
//! layers of XORs and of independent ANDs, each wire in a slot that is free from its last read on.

use std::collections::VecDeque;

use blindcore_accel::garble::{Program, ProgramBuilder};

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

/// The last reader of a wire that keeps its slot.
const KEPT: u32 = u32::MAX;

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
    next: u32,
    /// Of each gate of the window: its layer, its rank among the XORs of its layer, and its last reader by place in `order`,
    /// from 1.
    level: Vec<u32>,
    rank: Vec<u32>,
    /// Whether the program is kept and run again, so that the best order of its XORs is worth the time to find it.
    kept: bool,
    last: Vec<u32>,
    order: Vec<u32>,
    begins: Vec<u32>,
}

impl Emitter {
    /// Programs of at most `most` ANDs; slots from `first` on are handed out, and `slots` are known to be enough. Those that are
    /// `kept` get the best order of their XORs.
    pub(crate) fn new(first: u32, slots: usize, most: usize, kept: bool) -> Self {
        let none = Vec::new;
        Self {
            program: ProgramBuilder::new(slots),
            most,
            done: VecDeque::new(),
            free_here: none(),
            free: none(),
            retired: none(),
            next: first,
            level: none(),
            kept,
            rank: none(),
            last: none(),
            order: none(),
            begins: none(),
        }
    }

    /// Puts out a part, gates of a window in its order: `keep` says where each gate's wire goes, `slots` gets it.
    pub(crate) fn part(&mut self, gates: &[Local], part: &[u32], keep: &[u32], slots: &mut [u32]) {
        let (mut level, mut last) = (std::mem::take(&mut self.level), std::mem::take(&mut self.last));
        let mut rank = std::mem::take(&mut self.rank);
        let (mut order, mut begins) = (std::mem::take(&mut self.order), std::mem::take(&mut self.begins));
        level.resize(gates.len().max(level.len()), 0);
        last.resize(gates.len().max(last.len()), 0);
        rank.resize(gates.len().max(rank.len()), 0);
        order.resize(part.len(), 0);
        begins.clear();
        // The ANDs before each gate, on the longest way to it.
        let mut layers = 1;
        for &gate in part {
            let Local { a, b, .. } = gates[gate as usize];
            let of = |operand: u32| match gates.get(operand as usize) {
                Some(before) if operand & SLOT == 0 => level[operand as usize] + u32::from(before.and),
                _ => 0,
            };
            level[gate as usize] = of(a).max(of(b));
            layers = layers.max(level[gate as usize] + 1);
        }
        if self.kept {
            put_off_xors(gates, part, layers, &mut level, &mut last);
            rank_xors(gates, part, &level, &mut rank);
        }
        // Counts of each layer's XORs and ANDs, then where they begin, then where they end.
        let bucket = |gate: u32| 2 * level[gate as usize] as usize + usize::from(gates[gate as usize].and);
        begins.resize(2 * layers as usize, 0);
        for &gate in part {
            begins[bucket(gate)] += 1;
            last[gate as usize] = if keep[gate as usize] == DIES { 0 } else { KEPT };
        }
        let mut end = 0;
        for begin in &mut begins {
            (*begin, end) = (end, end + *begin);
        }
        for &gate in part {
            order[begins[bucket(gate)] as usize] = gate;
            begins[bucket(gate)] += 1;
        }
        let mut begin = 0;
        for [and_begin, end] in begins.as_chunks::<2>().0.iter().filter(|_| self.kept) {
            order[begin..*and_begin as usize].sort_by_key(|gate| rank[*gate as usize]);
            begin = *end as usize;
        }
        for (place, &gate) in order.iter().enumerate() {
            let Local { a, b, .. } = gates[gate as usize];
            for operand in [a, b] {
                if operand & SLOT == 0 && last[operand as usize] != KEPT {
                    last[operand as usize] = place as u32 + 1;
                }
            }
        }
        let mut begin = 0;
        for layer in begins.as_chunks::<2>().0 {
            let [and_begin, end] = layer.map(|end| end as usize);
            for place in begin..and_begin {
                self.gate(gates, order[place], place, &last, keep, slots);
            }
            for place in and_begin..end {
                if self.program.ands() == self.most {
                    self.done.push_back(self.program.take());
                }
                self.gate(gates, order[place], place, &last, keep, slots);
            }
            // ANDs of a layer are independent of each other, so what they read is free after all of them.
            for place in and_begin..end {
                self.free_operands(gates[order[place] as usize], place, &last, slots);
                self.free_unread(order[place], &last, slots);
            }
            self.program.end_layer();
            begin = end;
        }
        (self.level, self.last, self.order, self.begins) = (level, last, order, begins);
        self.rank = rank;
    }

    #[inline]
    fn gate(
        &mut self,
        gates: &[Local],
        gate: u32,
        place: usize,
        last: &[u32],
        keep: &[u32],
        slots: &mut [u32],
    ) {
        let local = gates[gate as usize];
        let Local { and, a, b } = local;
        let of = |operand: u32| if operand & SLOT == 0 { slots[operand as usize] } else { operand & !SLOT };
        let (a, b) = (of(a), of(b));
        if !and {
            self.free_operands(local, place, last, slots);
        }
        let out = match keep[gate as usize] {
            DIES | LIVES => self.free_here.pop().or_else(|| self.free.pop()).unwrap_or_else(|| {
                self.next += 1;
                self.program.grow(self.next as usize);
                self.next - 1
            }),
            slot => slot,
        };
        slots[gate as usize] = out;
        let done = if and { self.program.and(out, a, b) } else { self.program.xor(out, a, b) };
        done.expect("slots are handed out to one wire at a time");
        if !and {
            self.free_unread(gate, last, slots);
        }
    }

    /// Frees what this gate is the last to read.
    #[inline]
    fn free_operands(&mut self, Local { a, b, .. }: Local, place: usize, last: &[u32], slots: &[u32]) {
        for operand in [Some(a), Some(b).filter(|b| *b != a)].into_iter().flatten() {
            if operand & SLOT == 0 && last[operand as usize] == place as u32 + 1 {
                self.free_here.push(slots[operand as usize]);
            }
        }
    }

    /// Frees the slot of a gate that nobody reads.
    #[inline]
    fn free_unread(&mut self, gate: u32, last: &[u32], slots: &[u32]) {
        if last[gate as usize] == 0 {
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

/// Puts off an XOR that no gate of its layer needs by a layer: there it is run while the ANDs in between are still on their
/// way. `first` is room for the first layer that needs a gate.
fn put_off_xors(gates: &[Local], part: &[u32], layers: u32, level: &mut [u32], first: &mut [u32]) {
    for &gate in part {
        first[gate as usize] = layers - 1;
    }
    for &gate in part.iter().rev() {
        let Local { and, a, b } = gates[gate as usize];
        let layer = &mut level[gate as usize];
        if !and {
            *layer = (*layer + 1).min(first[gate as usize]);
        }
        for operand in [a, b].into_iter().filter(|operand| operand & SLOT == 0) {
            first[operand as usize] = first[operand as usize].min(*layer);
        }
    }
}

/// Ranks the XORs of each layer: first those that need none of the ANDs of the layer before, and all by depth, so that XORs
/// that follow each other seldom wait for each other.
fn rank_xors(gates: &[Local], part: &[u32], level: &[u32], rank: &mut [u32]) {
    /// The least rank of what waits for ANDs of the layer before; chains of a window are shorter.
    const WAITS: u32 = WINDOW as u32 + 1;
    for &gate in part {
        let Local { and, a, b } = gates[gate as usize];
        let after = |operand: u32| {
            let Some(before) = gates.get(operand as usize).filter(|_| operand & SLOT == 0) else { return 0 };
            let operand = operand as usize;
            match before.and {
                true if level[operand] + 1 == level[gate as usize] => WAITS,
                false if level[operand] == level[gate as usize] => rank[operand] + 1,
                _ => 0,
            }
        };
        rank[gate as usize] = if and { 0 } else { after(a).max(after(b)) };
    }
}

/// No component yet.
const NEW: u32 = u32::MAX;

/// Gates of independent components, small ones together, each list in the gates' order.
pub(crate) fn parts(gates: &[Local]) -> Vec<Vec<u32>> {
    if gates.iter().filter(|gate| gate.and).count() <= PART_ANDS {
        return if gates.is_empty() { Vec::new() } else { vec![(0..gates.len() as u32).collect()] };
    }
    // Of each gate the number of its component, or of one that was joined with it: numbers are joined, to the least of them, for
    // there are far fewer than gates. A number's ANDs and depth in ANDs are those of the gates that have it.
    let mut joined: Vec<u32> = Vec::new();
    fn root(joined: &mut [u32], mut x: u32) -> u32 {
        while joined[x as usize] != x {
            joined[x as usize] = joined[joined[x as usize] as usize];
            x = joined[x as usize];
        }
        x
    }
    let mut sizes: Vec<[u32; 2]> = Vec::new();
    let mut of: Vec<[u32; 2]> = Vec::with_capacity(gates.len());
    for gate in gates {
        let before = |operand: u32| if operand & SLOT == 0 { of[operand as usize] } else { [NEW, 0] };
        let ([x, level_x], [y, level_y]) = (before(gate.a), before(gate.b));
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
        let level = level_x.max(level_y) + u32::from(gate.and);
        let [ands, deepest] = &mut sizes[own as usize];
        *ands += u32::from(gate.and);
        *deepest = level.max(*deepest);
        of.push([own, level]);
    }
    for number in (0..joined.len() as u32).rev() {
        let (least, [ands, depth]) = (root(&mut joined, number) as usize, sizes[number as usize]);
        if least != number as usize {
            sizes[least][0] += ands;
            sizes[least][1] = sizes[least][1].max(depth);
        }
    }
    // Components in order of their first gate, gathered until a part is large and wide enough.
    let mut part_of = vec![0; joined.len()];
    let (mut count, mut size, mut deepest) = (0, 0, 0);
    for number in 0..joined.len() {
        let least = root(&mut joined, number as u32) as usize;
        if least == number {
            if count == 0 || size >= PART_ANDS.max(PART_WIDTH * deepest) {
                count += 1;
                (size, deepest) = (0, 0);
            }
            part_of[number] = count - 1;
            size += sizes[number][0] as usize;
            deepest = deepest.max(sizes[number][1] as usize);
        } else {
            part_of[number] = part_of[least];
        }
    }
    let mut parts = vec![Vec::new(); count];
    for (gate, [number, _]) in of.iter().enumerate() {
        parts[part_of[*number as usize]].push(gate as u32);
    }
    parts
}
