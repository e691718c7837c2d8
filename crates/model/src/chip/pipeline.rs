//! Clocks of a chip whose units wait for each other: what [`cost`](super::cost) leaves out.
//!
//! Ports and lanes give a lower bound; a chip also waits for a stream's first words, for half of an SRAM, for sums in flight, and
//! for its last results. Here each unit of OnionChopper (`hw/doc/onionchopper.md`) is a recurrence over what it handles: beats of
//! the stream, reads of the DRAM, tiles of the registers, rows of sums. A state of a unit takes a clock; what else there is to know
//! stands in the machine's `[pipeline]`. Nothing is fitted to a shape.
//!
//! ```text
//!   SSD ─beats─▶ DRAM's port ─reads─▶ SRAM halves ─tiles─▶ registers ─runs─▶ lanes ─rows─▶ SRAM ─▶ out, or DRAM again
//! ```

mod walk;

use std::collections::VecDeque;

use super::machine::{Machine, Pipeline};
use super::nest::{Mapping, Misfit, check};
use super::problem::{Dim, Problem, Tensor};
use walk::Walk;

/// Tiles of registers that are computed one by one; of more, the outermost loop's turns are counted on.
const MOST: u128 = 1 << 21;
/// Halves of an SRAM.
const HALVES: usize = 2;
/// Idle clocks of a port that uses known late may have had.
const IDLE: u64 = 64;
/// The most tiles of sums that registers hold.
const BANKS: u64 = 15;

/// Clocks from the start of a run to the end of its last result.
///
/// `machine` has four levels (SSD, DRAM, SRAM, registers) and a `[pipeline]`; the mapping keeps every tensor in each and spreads over lanes
/// at the DRAM alone. Words lie on the SSD by modulus, coefficient, depth, then columns or rows, as the host lays them. `resident`:
/// they are in the DRAM already. Beyond two million tiles of registers the outermost loop's turns are taken to be alike.
///
/// # Errors
/// The machine has no pipeline, or the mapping is none that it runs: which level, what, the remedy.
pub fn pipelined(
    problem: &Problem,
    machine: &Machine,
    mapping: &Mapping,
    resident: bool,
) -> Result<u64, Misfit> {
    check(problem, machine, mapping)?;
    let chip = Chip::new(problem, machine, mapping, resident)?;
    let tiles: u128 =
        mapping.levels[..3].iter().flat_map(|nest| &nest.temporal).map(|(_, n)| u128::from(*n)).product();
    let outer = mapping.levels[..2].iter().flat_map(|n| &n.temporal).map(|(_, n)| *n).position(|n| n > 3);
    let Some(outer) = outer.filter(|_| tiles > MOST) else { return Ok(Run::new(&chip).all()) };
    // Two turns and three of the outermost loop: each further one takes what the third does.
    let of = |turns: u64| {
        let mut part = mapping.clone();
        let slot = part.levels[..2].iter_mut().flat_map(|n| &mut n.temporal).nth(outer).expect("found");
        let (dim, all) = (slot.0, std::mem::replace(&mut slot.1, turns));
        let mut less = problem.clone();
        less.bounds[dim as usize] = less.bounds[dim as usize] / all * turns;
        pipelined(&less, machine, &part, resident).map(|clocks| (clocks, all))
    };
    let ((two, _), (three, all)) = (of(2)?, of(3)?);
    Ok(three + (all - 3) * (three - two))
}

/// A step of a nest: which operands move at its end, and where C is.
#[derive(Clone, Copy)]
struct Step {
    /// Moves to the next step, which [`Walk::ends`] says of A, B and C.
    ends: [bool; 3],
    /// The row of C.
    c: usize,
}

/// Multiply-accumulates that sum to one word.
#[derive(Clone, Copy)]
struct Sum {
    word: usize,
    length: u64,
}

/// A problem as it is mapped, in beats and rows.
struct Chip {
    pipeline: Pipeline,
    /// The stream: words of 64 bits, and the clocks in which they come.
    rate: (u64, u64),
    resident: bool,
    /// From a multiply-accumulate to its sum in the registers.
    latency: u64,
    ssd_tiles: u64,
    dram: Vec<(Dim, u64)>,
    strides: Vec<[u64; 3]>,
    /// Beats of A and of B in a tile of the SSD.
    tile_beats: [u64; 2],
    /// Beats of A, B and C that a step of the DRAM's nest reads.
    reads: [u64; 3],
    /// Rows of a tile in the registers.
    rows: [u64; 3],
    banks: usize,
    sram: Vec<Step>,
    sums: Vec<Sum>,
    /// The tile has one sum, which the next tile's products can go on with.
    one_sum: bool,
    /// Rows of C in an SRAM, beats and words of one; lanes that share a sum, and groups of these.
    drain: Drain,
}

struct Drain {
    rows: u64,
    beats: u64,
    words: u64,
    sharers: u64,
    groups: u64,
}

impl Chip {
    fn new(problem: &Problem, machine: &Machine, mapping: &Mapping, resident: bool) -> Result<Self, Misfit> {
        let no = |why: &str| Err(Misfit(format!("{}: {why}", machine.name)));
        let Some(pipeline) = machine.pipeline else {
            return no("it has no [pipeline], so its units never wait; give it one, or ask for cost alone");
        };
        let [ssd, dram, sram, registers] = mapping.levels.as_slice() else {
            return no("a pipeline has four levels: SSD, DRAM, SRAM, registers");
        };
        if [ssd, sram, registers].iter().any(|nest| !nest.spatial.is_empty())
            || mapping.levels.iter().any(|nest| nest.kept != [true; 3])
        {
            return no("a pipeline keeps every tensor and spreads at the DRAM alone; map it so");
        }
        let (beat, row) = (machine.levels[1].port.num, machine.levels[2].port.num);
        let held = machine.levels[3].bytes.unwrap_or(u64::MAX / 8).saturating_mul(8) / row;
        let of = |loops: &[(Dim, u64)], tensor: Tensor| -> u64 {
            loops.iter().filter(|(d, _)| tensor.has(*d)).map(|(_, n)| n).product()
        };
        let bits = Tensor::ALL.map(|t| of(&registers.temporal, t) * problem.bits[t as usize]);
        let rows = bits.map(|bits| bits.div_ceil(row));
        let one_beat = bits.map(|bits| bits <= beat);
        let tiles = Tensor::ALL.map(|t| of(&sram.temporal, t));
        let beats: [u64; 3] =
            std::array::from_fn(|t| tiles[t] * rows[t] * if one_beat[t] { 1 } else { row / beat });
        let lanes = Tensor::ALL.map(|t| of(&dram.spatial, t));
        let reads: [u64; 3] = std::array::from_fn(|t| beats[t] * lanes[t]);
        let banks = held.saturating_sub(2 * (rows[0] + rows[1])) / rows[2].max(1);
        if banks == 0 {
            return no("its registers hold no tile twice and a sum; cut tiles smaller");
        }
        // Moduli and coefficients outside depth, this outside columns and rows.
        let class = |dim: Dim| match dim {
            Dim::C | Dim::D => 0,
            Dim::J | Dim::K => 1,
            _ => 2,
        };
        let mut order: Vec<usize> = (0..dram.temporal.len()).collect();
        order.sort_by_key(|at| class(dram.temporal[*at].0));
        let mut strides = vec![[0; 3]; order.len()];
        let mut all = reads;
        for at in order.into_iter().rev() {
            let (dim, n) = dram.temporal[at];
            for tensor in Tensor::ALL.into_iter().filter(|t| t.has(dim) && n > 1) {
                let t = tensor as usize;
                strides[at][t] = all[t];
                all[t] *= n;
            }
        }
        let mut sums: Vec<Sum> = Vec::new();
        let mut walk = Walk::new(&registers.temporal);
        let mut goes_on = false;
        loop {
            match sums.last_mut() {
                Some(sum) if goes_on => sum.length += 1,
                _ => sums.push(Sum { word: walk.at(Tensor::C), length: 1 }),
            }
            goes_on = !walk.ends()[2];
            if !walk.step() {
                break;
            }
        }
        let mut walk = Walk::new(&sram.temporal);
        let mut steps = Vec::new();
        loop {
            steps.push(Step { ends: walk.ends(), c: walk.at(Tensor::C) * rows[2] as usize });
            if !walk.step() {
                break;
            }
        }
        let sharers =
            dram.spatial.iter().filter(|(d, _)| !Tensor::C.has(*d)).map(|(_, n)| *n).product::<u64>();
        let drain = Drain {
            rows: tiles[2] * rows[2],
            beats: if one_beat[2] { 1 } else { row / beat },
            words: if one_beat[2] { beat } else { row } / problem.bits[2],
            sharers,
            groups: lanes[2],
        };
        let port = machine.levels[0].port;
        Ok(Self {
            pipeline,
            rate: (port.num, port.den * 64),
            resident,
            latency: machine.lanes.fill + 1,
            ssd_tiles: ssd.temporal.iter().map(|(_, n)| n).product(),
            dram: dram.temporal.clone(),
            strides,
            tile_beats: [all[0], all[1]],
            reads,
            rows,
            banks: banks.min(BANKS) as usize,
            one_sum: registers.temporal.iter().all(|(d, n)| !Tensor::C.has(*d) || *n == 1),
            sram: steps,
            sums,
            drain,
        })
    }
}

/// Clocks of a port that one unit asks for in turn while others want it too. Theirs are known late: those of the past take a clock in
/// which the port was idle, if there was one, else the unit waits for one of them at a time.
#[derive(Default)]
struct Slots {
    /// Taken before this clock.
    free: u64,
    /// Clocks before it that nobody took.
    idle: u64,
    others: VecDeque<u64>,
}

impl Slots {
    /// Another's use, if one comes before or at this clock.
    fn other(&mut self, at: u64, late: &mut bool) -> bool {
        let may = |other: &u64| *other <= at && (*late || *other >= self.free || self.idle > 0);
        let Some(other) = self.others.front().copied().filter(may) else { return false };
        self.others.pop_front();
        if other < self.free && self.idle > 0 {
            self.idle -= 1;
        } else {
            *late &= other >= self.free;
            self.idle += other.saturating_sub(self.free);
            self.free = other.max(self.free) + 1;
        }
        true
    }

    fn take(&mut self, at: u64) -> u64 {
        self.idle = (self.idle + at - self.free).min(IDLE);
        self.free = at + 1;
        at
    }

    /// The unit's clock, at this one or later.
    fn next(&mut self, at: u64) -> u64 {
        let (mut at, mut late) = (at.max(self.free), true);
        while self.other(at, &mut late) {
            at = at.max(self.free);
        }
        self.take(at)
    }
}

/// The SSD's stream and the DRAM's one port.
struct Port {
    rate: (u64, u64),
    resident: bool,
    tile_beats: u64,
    tiles: u64,
    /// Clocks from which each tile of the SSD may be taken, as far as they are known.
    allowed: Vec<u64>,
    /// The stream's credit behind its last word, when that was, and when the word before was taken.
    credit: u64,
    given: u64,
    taken: u64,
    /// The tile and the beat that come next, and the clock from which it wants to be written.
    tile: u64,
    beat: u64,
    wants: Option<u64>,
    written: u64,
    /// From when on beats are there, of the tile in use and later ones.
    there: VecDeque<u64>,
    first: u64,
    /// The port, which sums on their way back want too; and whether a read was the last to have it.
    slots: Slots,
    by_read: bool,
}

impl Port {
    fn new(chip: &Chip) -> Self {
        let mut port = Self {
            rate: chip.rate,
            resident: chip.resident,
            tile_beats: chip.tile_beats[0] + chip.tile_beats[1],
            tiles: chip.ssd_tiles,
            allowed: vec![0, 0],
            credit: chip.rate.0 + chip.rate.1,
            given: 0,
            taken: 0,
            tile: 0,
            beat: 0,
            wants: None,
            written: 0,
            there: VecDeque::new(),
            first: 0,
            slots: Slots::default(),
            by_read: false,
        };
        port.next();
        port
    }

    /// The next word's way from the SSD into the loader, not before a clock.
    fn word(&mut self, from: u64) -> u64 {
        let (num, den) = self.rate;
        let wait = den.saturating_sub(self.credit).div_ceil(num).max(1);
        let given = (self.given + wait).max(self.taken);
        self.credit = (self.credit + (given - self.given) * num).min(num + den) - den;
        self.given = given;
        self.taken = (given + 1).max(from);
        self.taken
    }

    /// When the next beat wants the port, if its half is free.
    fn next(&mut self) {
        self.wants = None;
        if self.resident || self.tile >= self.tiles {
            return;
        }
        let Some(allowed) = self.allowed.get(self.tile as usize).copied() else { return };
        self.word(allowed.max(self.written));
        self.wants = Some(self.word(0) + 1);
    }

    fn write(&mut self, at: u64) {
        self.written = at;
        self.slots.free = at + 1;
        self.by_read = false;
        self.there.push_back(at + 1);
        self.beat += 1;
        if self.beat == self.tile_beats {
            self.beat = 0;
            self.tile += 1;
        }
        self.next();
    }

    /// From when on a beat of a tile is there.
    fn there(&mut self, tile: u64, beat: u64) -> u64 {
        if self.resident {
            return 0;
        }
        let index = tile * self.tile_beats + beat - self.first;
        while self.there.len() as u64 <= index {
            let wants = self.wants.expect("a tile in use may be filled");
            self.write(wants.max(self.slots.free));
        }
        self.there[index as usize]
    }

    /// A read's clock, at this one or later.
    fn read(&mut self, at: u64) -> u64 {
        let mut at = at.max(self.slots.free);
        let mut late = true;
        loop {
            let wants = self.wants.map(|wants| wants.max(self.slots.free));
            match wants.filter(|wants| *wants < at || *wants == at && self.by_read) {
                Some(wants) => {
                    self.slots.idle += wants - self.slots.free;
                    self.write(wants);
                }
                None if self.slots.other(at, &mut late) => {}
                None => break,
            }
            at = at.max(self.slots.free);
        }
        self.by_read = true;
        self.slots.take(at)
    }

    /// A tile is done with at this clock: the one behind the next may come.
    fn done(&mut self, tile: u64, at: u64) {
        self.allowed.push(at + 1);
        let gone = ((tile + 1) * self.tile_beats).saturating_sub(self.first).min(self.there.len() as u64);
        self.there.drain(..gone as usize);
        self.first += gone;
        if self.wants.is_none() {
            self.next();
        }
    }
}

/// A tile of C in the registers, from its first row to its store.
struct Bank {
    /// Its last product was issued, and its sums have come.
    closed: u64,
    /// Its last row is stored.
    stored: Option<u64>,
}

/// A tile of C in an SRAM whose last product is issued: it goes out, or back to the DRAM.
#[derive(Clone, Copy)]
struct Leaving {
    pushed: u64,
    /// The last bank that is its.
    bank: usize,
    leaves: bool,
}

/// A run under way: what each unit has done, as clocks.
struct Run<'a> {
    chip: &'a Chip,
    port: Port,
    /// When the loader selects its next operand; how often each was loaded, and the step at which it last was.
    select: u64,
    loads: [usize; 3],
    begun: [usize; 3],
    /// When the last reads arrived, of those that may be under way; when the last tiles were handed on.
    pops: VecDeque<u64>,
    marks: VecDeque<u64>,
    /// The SRAMs' port to write: beats that arrive, and rows of sums.
    lands: Slots,
    /// When filling is idle, and which steps' last tiles the registers had when.
    idle: u64,
    filled: Vec<u64>,
    /// From when on the banks of A and of B are free, and which is next.
    frees: [[u64; 2]; 2],
    side: [usize; 2],
    /// Tiles of C that the registers have had; which of them an SRAM's row was last in.
    banks: Vec<Bank>,
    rows: Vec<Option<usize>>,
    /// When the last tiles were computed that wait in the queue, and when sums begin.
    queue: VecDeque<u64>,
    issued: u64,
    pending: Vec<Vec<u64>>,
    starts: VecDeque<u64>,
    /// How many tiles of C were stored, and when.
    stored: usize,
    stores: u64,
    /// When filling reads the SRAMs.
    fills: VecDeque<(u64, u64)>,
    leaving: Vec<Leaving>,
    drained: Vec<u64>,
    /// Of the tile that leaves its SRAM: rows that did, and the clock behind the last of them.
    left: u64,
    leaves: u64,
}

impl<'a> Run<'a> {
    fn new(chip: &'a Chip) -> Self {
        let words = chip.sums.iter().map(|sum| sum.word + 1).max().unwrap_or(1);
        Self {
            chip,
            port: Port::new(chip),
            select: 1,
            loads: [0; 3],
            begun: [0; 3],
            pops: VecDeque::new(),
            marks: VecDeque::new(),
            lands: Slots::default(),
            idle: 0,
            filled: Vec::new(),
            frees: [[0; 2]; 2],
            side: [0; 2],
            banks: Vec::new(),
            rows: vec![None; HALVES * chip.drain.rows as usize],
            queue: VecDeque::new(),
            issued: 0,
            pending: vec![vec![0; words]; chip.banks],
            starts: VecDeque::new(),
            stored: 0,
            stores: 0,
            fills: VecDeque::new(),
            leaving: Vec::new(),
            drained: Vec::new(),
            left: 0,
            leaves: 0,
        }
    }

    /// The whole run.
    fn all(mut self) -> u64 {
        for tile in 0..self.chip.ssd_tiles {
            self.select += 1;
            let mut walk = Walk::new(&self.chip.dram);
            let mut moves = [true; 3];
            loop {
                let (close, taken) = self.load(tile, moves, &walk);
                let ends = walk.ends();
                let leaves = walk.visit(Tensor::C).1;
                self.compute(taken, ends[2], leaves);
                self.select = close + 1;
                if walk.is_last() {
                    self.port.done(tile, close);
                    break;
                }
                walk.step();
                moves = ends;
            }
        }
        let last = self.leaving.len() - 1;
        self.drained(last) + 1
    }

    /// A place among the reads under way, not before a clock.
    fn fly(&mut self, at: u64) -> u64 {
        if (self.pops.len() as u64) < self.chip.pipeline.reads {
            return at;
        }
        self.pops.pop_front().map_or(at, |pop| at.max(pop + 1))
    }

    /// A step's tile comes into the SRAMs: when its last read was asked for, and when the sequencer takes it.
    fn load(&mut self, tile: u64, moves: [bool; 3], walk: &Walk) -> (u64, u64) {
        let step = self.filled.len();
        let mut at = self.select;
        // Sums that leave while this step is read; the last tile's wait for what is computed next.
        if let Some(before) = self.leaving.len().checked_sub(2) {
            self.drained(before);
        }
        for t in 0..3 {
            if !moves[t] {
                at += 1;
                continue;
            }
            if self.loads[t] >= HALVES {
                let free = if t == 2 {
                    self.drained(self.loads[t] - HALVES)
                } else {
                    self.filled[self.begun[t] - 1]
                };
                at = at.max(free + 1);
            }
            self.loads[t] += 1;
            self.begun[t] = step;
            at += 1;
            if t == 2 && walk.visit(Tensor::C).0 {
                continue;
            }
            let address: u64 = walk.index.iter().zip(&self.chip.strides).map(|(i, s)| i * s[t]).sum();
            let base = address + if t == 1 { self.chip.tile_beats[0] } else { 0 };
            for beat in 0..self.chip.reads[t] {
                let there = if t == 2 { 0 } else { self.port.there(tile, base + beat) };
                let free = self.fly(at);
                // The last tile's sums leave meanwhile, and want the port. Filling, which goes before them, waits for this step.
                while self.row(free) {}
                let asked = self.port.read(free.max(there));
                let lands = self.lands.next(asked + self.chip.pipeline.latency);
                self.pops.push_back(lands);
                at = asked + 1;
            }
        }
        let mut close = self.fly(at);
        if self.marks.len() as u64 == self.chip.pipeline.tiles {
            close = close.max(self.marks.pop_front().map_or(0, |mark| mark + 1));
        }
        let taken = (close + 1).max(self.lands.free).max(self.idle);
        self.pops.push_back(self.lands.take(taken));
        self.marks.push_back(taken);
        (close, taken)
    }

    /// The registers are filled with a step's tiles, and these are computed.
    fn compute(&mut self, taken: u64, ends: bool, leaves: bool) {
        let chip = self.chip;
        let half = (self.loads[2] + 1) % HALVES * chip.drain.rows as usize;
        let mut at = taken + 1;
        let mut moves = [true; 3];
        for (i, step) in chip.sram.iter().enumerate() {
            for t in (0..2).filter(|t| moves[*t]) {
                at = at.max(self.frees[t][self.side[t]]);
                self.fills.push_back((at, at + chip.rows[t]));
                at += chip.rows[t];
            }
            if moves[2] {
                let bank = self.banks.len();
                if bank >= chip.banks {
                    at = at.max(self.stored(bank - chip.banks) + 1);
                }
                if let Some(last) = self.rows[half + step.c] {
                    at = at.max(self.stored(last) + 1);
                }
                self.rows[half + step.c] = Some(bank);
                self.banks.push(Bank { closed: 0, stored: None });
                self.fills.push_back((at, at + chip.rows[2]));
                at += chip.rows[2];
            }
            let last = i + 1 == chip.sram.len();
            if self.queue.len() as u64 == chip.pipeline.waiting {
                at = at.max(self.queue.pop_front().map_or(0, |computed| computed + 1));
            }
            if last && ends && self.leaving.len() as u64 >= chip.pipeline.leaving {
                let before = self.leaving.len() - chip.pipeline.leaving as usize;
                at = at.max(self.drained(before) + 1);
            }
            // Pushed at this clock; issued from the next one on.
            let bank = self.banks.len() - 1;
            let mut clock = (at + 1).max(self.issued + 1);
            for sum in &chip.sums {
                let pending = &mut self.pending[bank % chip.banks][sum.word];
                if moves[2] || !chip.one_sum {
                    clock = clock.max(*pending);
                    self.starts.push_back(clock);
                }
                clock += sum.length;
                *pending = clock + chip.latency;
            }
            self.issued = clock - 1;
            self.queue.push_back(self.issued);
            for t in (0..2).filter(|t| step.ends[*t]) {
                self.frees[t][self.side[t]] = clock;
                self.side[t] ^= 1;
            }
            if step.ends[2] {
                let sums = self.pending[bank % chip.banks].iter().max().copied();
                self.banks[bank].closed = sums.unwrap_or(0).max(clock);
            }
            moves = step.ends;
            if last {
                self.filled.push(at);
                self.idle = at + 1;
                if ends {
                    self.leaving.push(Leaving { pushed: at, bank, leaves });
                }
            }
            at += 1;
        }
    }

    /// When a tile of C was stored, behind all before it; not while a sum begins, for which the port reads.
    fn stored(&mut self, bank: usize) -> u64 {
        while self.stored <= bank {
            let mut at = self.banks[self.stored].closed.max(self.stores + 1);
            for _ in 0..self.chip.rows[2] {
                while self.starts.front().is_some_and(|start| *start < at) {
                    self.starts.pop_front();
                }
                while self.starts.front() == Some(&at) {
                    self.starts.pop_front();
                    at += 1;
                }
                self.stores = at;
                self.lands.others.push_back(at);
                at += 1;
            }
            self.banks[self.stored].stored = Some(self.stores);
            self.stored += 1;
        }
        self.banks[bank].stored.unwrap_or(0)
    }

    /// The next row of sums leaves its SRAM, if it does so from a clock that is not behind this one. Filling reads first.
    fn row(&mut self, by: u64) -> bool {
        let Some(Leaving { pushed, bank, leaves }) = self.leaving.get(self.drained.len()).copied() else {
            return false;
        };
        if self.left == 0 {
            if self.banks[bank].closed >= by {
                return false;
            }
            let before = self.drained.last().copied().unwrap_or(0);
            self.leaves = (pushed + 1).max(before + 1).max(self.stored(bank) + 1) + 1;
        }
        let mut at = self.leaves;
        while let Some((from, to)) = self.fills.front().copied().filter(|fill| fill.0 <= at && at <= by) {
            at = at.max(to.max(from));
            self.fills.pop_front();
        }
        self.leaves = at;
        if at > by {
            return false;
        }
        let Drain { rows, beats, words, sharers, groups } = self.chip.drain;
        at += 2 + words * (sharers - 1) + beats;
        if !leaves {
            self.port.slots.others.extend(at - beats..at);
        }
        (self.left, self.leaves) = (self.left + 1, at);
        if self.left == groups * rows {
            self.left = 0;
            self.drained.push(at - 1);
        }
        true
    }

    /// When the last beat of a tile of sums left its SRAM.
    fn drained(&mut self, tile: usize) -> u64 {
        while self.drained.len() <= tile {
            self.row(u64::MAX);
        }
        self.drained[tile]
    }
}

#[cfg(test)]
mod tests;
