//! Circuits compiled while they are run, window after window of gates.
//!
//! Gates lie in memory, eight bytes each, or in a file. Reading them once from the end tells which wires live on past their
//! window and where those are read for the last time: three bits a gate, and how many slots are enough. Each window is then
//! ordered by itself, with the slots of older wires that it reads, so beside the gates memory is that of a window and of
//! the wires that are alive.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, OnceLock};

use blindcore_accel::garble::{Alive, Bits, Program, Step};

use crate::levels::{DIES, Emitter, LIVES, Local, Runs, SLOT, WINDOW};
use crate::netlist::{Gate, Kind, Netlist};
use crate::ports::PIECE;

/// Wires are numbered as in Bristol files: inputs, then gates; these two are the constants.
pub(crate) const ZERO: u32 = u32::MAX - 1;
pub(crate) const ONE: u32 = u32::MAX;

/// A gate with what is known of its wires.
#[derive(Clone, Copy)]
pub(crate) struct Record {
    pub(crate) flags: u8,
    pub(crate) a: u32,
    pub(crate) b: u32,
    pub(crate) out: u32,
}

pub(crate) const AND: u8 = 1;
/// Nobody reads the operand later, and it was written before this window.
const A_DIES: u8 = 2;
const B_DIES: u8 = 4;
/// Its output is read by a later window, or is an output of the circuit.
const OUT_LIVES: u8 = 8;

impl Record {
    /// Bytes of a record in a file: flags, operands, output.
    const BYTES: usize = 13;

    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0] = self.flags;
        bytes[1..5].copy_from_slice(&self.a.to_le_bytes());
        bytes[5..9].copy_from_slice(&self.b.to_le_bytes());
        bytes[9..].copy_from_slice(&self.out.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let word = |i: usize| u32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
        Self { flags: bytes[0], a: word(1), b: word(5), out: word(9) }
    }
}

/// Where gates lie.
#[derive(Debug)]
enum Store {
    /// Records of a file of its own, which goes with it.
    File(File),
    Memory {
        gates: Vec<Gate>,
        /// Whether its operands die with it, and whether its output lives on.
        marks: [Bits; 3],
    },
}

/// The gates of a circuit, ready to be compiled.
#[derive(Debug)]
pub(crate) struct Windows {
    store: Store,
    gates: u64,
    pub(crate) ands: u64,
    input_bits: u32,
    /// The circuit's outputs that are gates', in order of their wires: their slots come after the inputs'.
    outputs: Vec<u32>,
    /// Slots of all outputs' bits, in order.
    pub(crate) output_slots: Vec<u32>,
    /// How many slots are enough.
    pub(crate) slots: usize,
    /// Whether they were compiled before.
    ran: AtomicBool,
    /// All programs, once they were compiled for the second time.
    kept: OnceLock<Vec<Arc<Program>>>,
}

/// Bytes of programs that are kept of gates that lie in memory, at most. Gates take two thirds of that anyway.
const KEPT_BYTES: u64 = 1 << 30;

impl Windows {
    /// The gates of a netlist.
    pub(crate) fn of_netlist(netlist: Netlist) -> Self {
        let (ands, input_bits) = (netlist.ands() as u64, netlist.input_bits() as u32);
        // The constants' numbers wrap around to those that they have here.
        let outputs: Vec<u32> =
            netlist.outputs().iter().flat_map(|p| &p.wires).map(|w| w.0.wrapping_sub(2)).collect();
        let gates = netlist.into_gates();
        let (count, wires) = (gates.len(), u64::from(input_bits) + gates.len() as u64);
        let marks = [(); 3].map(|()| Bits::new(count));
        Self::new(Store::Memory { gates, marks }, count as u64, ands, input_bits, wires, &outputs)
            .expect("memory is always read")
    }

    /// Records of a file, with this many wires.
    pub(crate) fn of_file(
        file: File,
        gates: u64,
        ands: u64,
        input_bits: u32,
        wires: u64,
        outputs: &[u32],
    ) -> io::Result<Self> {
        Self::new(Store::File(file), gates, ands, input_bits, wires, outputs)
    }

    fn new(
        store: Store,
        gates: u64,
        ands: u64,
        input_bits: u32,
        wires: u64,
        outputs: &[u32],
    ) -> io::Result<Self> {
        let mut own: Vec<u32> = outputs.iter().copied().filter(|w| *w >= input_bits && *w < ZERO).collect();
        own.sort_unstable();
        own.dedup();
        let (output_slots, slots) = (Vec::new(), 0);
        let (ran, kept) = (AtomicBool::new(false), OnceLock::new());
        let mut windows =
            Self { store, gates, ands, input_bits, outputs: own, output_slots, slots, ran, kept };
        windows.output_slots =
            outputs.iter().map(|wire| windows.fixed_slot(*wire).expect("theirs")).collect();
        let needs = windows.mark(wires)?;
        let fixed = 2 + input_bits as usize + windows.outputs.len();
        windows.slots = fixed + slots_for(needs.iter().rev());
        Ok(windows)
    }

    /// The slot of a constant, an input or an output.
    fn fixed_slot(&self, wire: u32) -> Option<u32> {
        if wire >= ZERO {
            return Some(wire - ZERO);
        }
        if wire < self.input_bits {
            return Some(2 + wire);
        }
        self.output_slot(wire)
    }

    /// The slot of a gate's wire that is an output.
    #[inline]
    fn output_slot(&self, wire: u32) -> Option<u32> {
        if self.outputs.first().is_none_or(|first| wire < *first) {
            return None;
        }
        self.outputs.binary_search(&wire).ok().map(|place| 2 + self.input_bits + place as u32)
    }

    /// Finds where wires are read for the last time, and what each window needs, from the last to the first.
    fn mark(&mut self, wires: u64) -> io::Result<Vec<Need>> {
        match &mut self.store {
            Store::Memory { gates, marks } => Ok(mark_in_order(gates, marks, self.input_bits, &self.outputs)),
            Store::File(_) => self.mark_file(wires),
        }
    }

    /// The same of gates in any order, each with the wire that it writes.
    fn mark_file(&mut self, wires: u64) -> io::Result<Vec<Need>> {
        let (mut read, mut here) = (Bits::new(wires as usize), Bits::new(wires as usize));
        self.outputs.iter().for_each(|wire| read.set(*wire as usize));
        let (mut alive, mut needs) = (0, Vec::new());
        let mut reader = self.reader()?;
        let mut records = Vec::new();
        for window in (0..self.count()).rev() {
            records.clear();
            self.each(&mut reader, window, |record| records.push(record))?;
            let (mut living, mut dying) = (0, 0);
            for record in &mut records {
                here.set(record.out as usize);
                if read.get(record.out as usize) {
                    record.flags |= OUT_LIVES;
                    living += usize::from(self.fixed_slot(record.out).is_none());
                } else {
                    dying += 1;
                }
            }
            alive -= living;
            for record in records.iter_mut().rev() {
                for (wire, dies) in [(record.a, A_DIES), (record.b, B_DIES)] {
                    let old = (self.input_bits..ZERO).contains(&wire) && !here.get(wire as usize);
                    if old && !read.get(wire as usize) {
                        read.set(wire as usize);
                        record.flags |= dies;
                        alive += 1;
                    }
                }
            }
            records.iter().for_each(|record| here.clear(record.out as usize));
            needs.push(Need { alive: alive + living, dying });
            self.keep(window, &records)?;
        }
        Ok(needs)
    }

    fn count(&self) -> u64 {
        self.gates.div_ceil(WINDOW as u64)
    }

    /// What a file is read by; its position is its own, for it may be read by several at once.
    fn reader(&self) -> io::Result<Option<BufReader<File>>> {
        match &self.store {
            Store::File(file) => Ok(Some(BufReader::with_capacity(1 << 20, reopened(file)?))),
            Store::Memory { .. } => Ok(None),
        }
    }

    /// The records of a window of a file, in order.
    fn each(
        &self,
        reader: &mut Option<BufReader<File>>,
        window: u64,
        to: impl FnMut(Record),
    ) -> io::Result<()> {
        let reader = reader.as_mut().expect("files have a reader");
        let first = window * WINDOW as u64;
        let count = (self.gates - first).min(WINDOW as u64) as usize;
        reader.seek(SeekFrom::Start(first * Record::BYTES as u64))?;
        let mut bytes = vec![0; count * Record::BYTES];
        reader.read_exact(&mut bytes)?;
        bytes.as_chunks().0.iter().map(Record::from_bytes).for_each(to);
        Ok(())
    }

    /// Keeps what was found of a window's wires.
    fn keep(&mut self, window: u64, records: &[Record]) -> io::Result<()> {
        let Store::File(file) = &mut self.store else { return Ok(()) };
        file.seek(SeekFrom::Start(window * WINDOW as u64 * Record::BYTES as u64))?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        records.iter().try_for_each(|record| out.write_all(&record.to_bytes()))?;
        out.flush()
    }

    /// The programs in order, compiled by a thread that is a few of them ahead.
    ///
    /// Who runs a circuit once needs no program twice. Who runs it again runs it often, so from the second time on they are
    /// kept, if gates lie in memory too.
    pub(crate) fn programs(self: &Arc<Self>) -> impl Iterator<Item = io::Result<Arc<Program>>> + use<> {
        let windows = Arc::clone(self);
        let kept = self.kept.get().is_some();
        let kept = kept.then(|| (0..).map_while(move |i| windows.kept.get()?.get(i).cloned().map(Ok)));
        let compiled = kept.is_none().then(|| self.compiled().into_iter());
        kept.into_iter().flatten().chain(compiled.into_iter().flatten())
    }

    fn compiled(self: &Arc<Self>) -> Receiver<io::Result<Arc<Program>>> {
        let small = self.gates * size_of::<Step>() as u64 <= KEPT_BYTES;
        let keep =
            self.ran.swap(true, Ordering::Relaxed) && small && matches!(self.store, Store::Memory { .. });
        let (sender, receiver) = sync_channel(8);
        let windows = Arc::clone(self);
        // It ends when nobody takes what it makes.
        std::thread::spawn(move || {
            let runs = if keep { Runs::Often } else { Runs::Once };
            let mut programs = Programs::new(&windows, runs);
            let mut all = Vec::new();
            while let Some(program) = programs.next().transpose() {
                let program = program.map(Arc::new);
                all.extend(program.as_ref().ok().filter(|_| keep).cloned());
                if sender.send(program).is_err() {
                    return;
                }
            }
            if keep {
                // Another run may have been faster; its programs are the same.
                let _ = windows.kept.set(all);
            }
        });
        receiver
    }

    /// All programs, now, to be run again and again.
    pub(crate) fn all_programs(&self) -> io::Result<Vec<Arc<Program>>> {
        let mut programs = Programs::new(self, Runs::Often);
        let mut all = Vec::new();
        while let Some(program) = programs.next()? {
            all.push(Arc::new(program));
        }
        Ok(all)
    }
}

/// [`Windows::mark`] of gates that write the wires after the inputs' in order.
fn mark_in_order(gates: &[Gate], marks: &mut [Bits; 3], input_bits: u32, outputs: &[u32]) -> Vec<Need> {
    let [a_dies, b_dies, out_lives] = marks;
    let mut read = Bits::new(gates.len());
    let outputs: Vec<usize> = outputs.iter().map(|wire| (wire - input_bits) as usize).collect();
    outputs.iter().for_each(|gate| read.set(*gate));
    let (mut alive, mut needs) = (0, Vec::new());
    for begin in (0..gates.len()).step_by(WINDOW).rev() {
        let window = &gates[begin..gates.len().min(begin + WINDOW)];
        let mut living = 0;
        for at in (begin..begin + window.len()).step_by(64) {
            out_lives.set_word(at, read.word(at));
            living += read.word(at).count_ones() as usize;
        }
        let dying = window.len() - living;
        // Outputs have slots of their own.
        let before = |end: usize| outputs.partition_point(|gate| *gate < end);
        living -= before(begin + WINDOW) - before(begin);
        alive -= living;
        for at in (begin..begin + window.len()).step_by(64).rev() {
            let mut dies = [0, 0];
            for (i, gate) in gates[at..gates.len().min(at + 64)].iter().enumerate().rev() {
                let [a, b] = gate.reads();
                // What is read for the last time is one before the window's that no later one reads.
                for (wire, dies) in [a.min(b), a.max(b)].into_iter().zip(&mut dies) {
                    let gate = wire.index().checked_sub(2 + input_bits as usize);
                    let old = gate.filter(|gate| *gate < begin);
                    if let Some(old) = old.filter(|old| !read.get(*old)) {
                        read.set(old);
                        *dies |= 1 << i;
                        alive += 1;
                    }
                }
            }
            a_dies.set_word(at, dies[0]);
            b_dies.set_word(at, dies[1]);
        }
        needs.push(Need { alive: alive + living, dying });
    }
    needs
}

/// What a window's wires need that are no outputs.
struct Need {
    /// Wires that live on past a window: those from before it that are alive in it, and its own.
    alive: usize,
    /// Its wires that die in it.
    dying: usize,
}

/// Slots for all of these windows, one after the other: wires that live on take the first that are free, those that die in the window the
/// ones behind all that was ever taken.
fn slots_for<'a>(needs: impl Iterator<Item = &'a Need>) -> usize {
    let taken = needs.scan(0, |most, need| {
        *most = need.alive.max(*most);
        Some(*most + need.dying)
    });
    taken.max().unwrap_or(0)
}

/// Windows compiled one after the other.
struct Programs<'a> {
    windows: &'a Windows,
    reader: Option<BufReader<File>>,
    next: u64,
    /// The slots of wires that are alive between windows.
    alive: Alive<u32>,
    emitter: Emitter,
    gates: Vec<Local>,
    keep: Vec<u32>,
    slots: Vec<u32>,
    /// Wires that outlive this window, with their gates' places in it.
    living: Vec<(u32, u32)>,
    /// Slots of old wires that this window reads last.
    freed: Vec<u32>,
    /// Places of a window's own wires, where they are not in order.
    places: HashMap<u32, u32>,
}

impl<'a> Programs<'a> {
    fn new(windows: &'a Windows, runs: Runs) -> Self {
        let first = 2 + windows.input_bits + windows.outputs.len() as u32;
        let slots = match runs {
            Runs::Once => windows.slots,
            Runs::Often => first as usize,
        };
        Self {
            windows,
            reader: None,
            next: 0,
            alive: Alive::default(),
            emitter: Emitter::new(first, slots, PIECE, runs),
            gates: Vec::new(),
            keep: Vec::new(),
            slots: Vec::new(),
            living: Vec::new(),
            freed: Vec::new(),
            places: HashMap::new(),
        }
    }

    fn next(&mut self) -> io::Result<Option<Program>> {
        loop {
            if let Some(program) = self.emitter.next_program() {
                return Ok(Some(program));
            }
            if self.next == self.windows.count() {
                return Ok(None);
            }
            if self.reader.is_none() {
                self.reader = self.windows.reader()?;
            }
            self.compile(self.next)?;
            self.next += 1;
        }
    }

    fn compile(&mut self, window: u64) -> io::Result<()> {
        self.gates.clear();
        self.keep.clear();
        match &self.windows.store {
            Store::Memory { gates, marks } => self.take_in_order(gates, marks, window as usize * WINDOW),
            Store::File(_) => self.take_records(window)?,
        }
        self.slots.resize(self.gates.len(), 0);
        self.emitter.window(&self.gates, &self.keep, &mut self.slots);
        for (wire, place) in self.living.drain(..) {
            self.alive.insert(wire, self.slots[place as usize]);
        }
        self.alive.settle();
        self.emitter.end_window(self.freed.drain(..));
        Ok(())
    }

    /// Takes the gates from this one on, as many as a window has.
    fn take_in_order(&mut self, gates: &[Gate], marks: &[Bits; 3], begin: usize) {
        let window = &gates[begin..gates.len().min(begin + WINDOW)];
        let Self { windows, alive, freed, gates, keep, living, .. } = self;
        // In a netlist's numbers, where constants and inputs have those of their slots.
        let first_gate = 2 + windows.input_bits;
        let first = first_gate + begin as u32;
        let slot = |alive: &Alive<u32>, wire: u32| match wire {
            _ if wire < first_gate => wire,
            _ => windows.output_slot(wire - 2).unwrap_or_else(|| alive.get(wire - 2)),
        };
        keep.resize(window.len(), DIES);
        // The gates of a word of marks at a time.
        for (at, some) in (0..).step_by(64).zip(window.chunks(64)) {
            gates.extend(some.iter().map(|gate| {
                // In the order in which they are hashed: an AND's tables are other ones where its operands change places.
                let [a, b] = gate.reads();
                let [a, b] = [a.min(b), a.max(b)].map(|wire| match wire.0.checked_sub(first) {
                    Some(place) => place,
                    None => SLOT | slot(alive, wire.0),
                });
                Local { and: gate.kind() == Kind::And, a, b }
            }));
            let [a_dies, b_dies, out_lives] = marks.each_ref().map(|bits| bits.word(begin + at));
            for i in ones(a_dies | b_dies) {
                let [a, b] = some[i].reads();
                for (wire, dies) in [(a.min(b), a_dies), (a.max(b), b_dies)] {
                    if dies >> i & 1 == 1 {
                        freed.push(alive.remove(wire.0 - 2));
                    }
                }
            }
            for place in ones(out_lives).map(|i| at + i) {
                let wire = first - 2 + place as u32;
                keep[place] = windows.output_slot(wire).unwrap_or_else(|| {
                    living.push((wire, place as u32));
                    LIVES
                });
            }
        }
    }

    /// Takes the records of a window.
    fn take_records(&mut self, window: u64) -> io::Result<()> {
        let Self { windows, reader, alive, freed, gates, keep, living, places, .. } = self;
        places.clear();
        windows.each(reader, window, |record| {
            let operand = |wire: u32| {
                let slot = || windows.fixed_slot(wire).unwrap_or_else(|| alive.get(wire));
                places.get(&wire).copied().unwrap_or_else(|| SLOT | slot())
            };
            let (a, b) = (operand(record.a), operand(record.b));
            for (wire, dies) in [(record.a, A_DIES), (record.b, B_DIES)] {
                if record.flags & dies != 0 {
                    freed.push(alive.remove(wire));
                }
            }
            let place = gates.len() as u32;
            places.insert(record.out, place);
            gates.push(Local { and: record.flags & AND != 0, a, b });
            keep.push(match record.flags & OUT_LIVES {
                0 => DIES,
                _ => windows.fixed_slot(record.out).unwrap_or_else(|| {
                    living.push((record.out, place));
                    LIVES
                }),
            });
        })
    }
}

/// The places of the bits that are set, from the lowest on.
fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = word.trailing_zeros() as usize;
        (word != 0).then(|| word &= word - 1)?;
        Some(place)
    })
}

/// The same file with a position of its own, where the system can; else a clone that shares it.
fn reopened(file: &File) -> io::Result<File> {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
    }
    #[cfg(not(target_os = "linux"))]
    file.try_clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlist::{Port, Wire};

    /// What programs compute in the clear, and what each AND reads, in order.
    fn run(windows: &Windows, programs: &[Arc<Program>], inputs: &[bool]) -> (Vec<bool>, Vec<[bool; 2]>) {
        let mut slots = vec![false; windows.slots];
        slots[1] = true;
        slots[2..2 + inputs.len()].copy_from_slice(inputs);
        let mut read = Vec::new();
        for program in programs {
            for (xors, ands, _) in program.parts().iter().flat_map(|part| program.layers_of(*part)) {
                for step in xors {
                    slots[step.out as usize] = slots[step.a as usize] ^ slots[step.b as usize];
                }
                for step in ands {
                    let [a, b] = [step.a, step.b].map(|slot| slots[slot as usize]);
                    read.push([a, b]);
                    slots[step.out as usize] = a & b;
                }
            }
        }
        (windows.output_slots.iter().map(|slot| slots[*slot as usize]).collect(), read)
    }

    /// A netlist of this many gates, mostly of near wires; some that nobody reads, some that read a wire twice; outputs of all kinds.
    fn netlist(count: usize, random: &mut impl FnMut(usize) -> usize) -> Netlist {
        // Wires are near within a few chains, so that windows have parts.
        let chains = [1, 3, 40][random(3)];
        let mut gates = Vec::new();
        for next in 92..92 + count {
            let mut pick = || {
                let wire = match random(60) {
                    0 => random(next),
                    1 => random(92),
                    _ => next.saturating_sub(chains * (1 + random(12))),
                };
                Wire(wire as u32)
            };
            let (a, b) = (pick(), pick());
            gates.push(Gate::new(if random(3) == 0 { Kind::And } else { Kind::Xor }, a, b));
        }
        let some: Vec<_> = (0..20).map(|_| random(92 + count)).collect();
        let last = (92 + count).saturating_sub(70)..92 + count;
        let wires = [&some[..], &some[..2], &[0, 1, 5], &last.collect::<Vec<_>>()].concat();
        let wires = wires.into_iter().map(|wire| Wire(wire as u32)).collect();
        Netlist::new([("x".into(), 90)], gates, vec![Port { name: "y".into(), wires }]).unwrap()
    }

    #[test]
    fn programs_that_run_once_are_those_that_run_often() {
        let mut seed = 5u64;
        let mut random = move |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % n
        };
        for gates in [0, 1, 63, 64, 65, 3000, WINDOW, 2 * WINDOW, 3 * WINDOW + 700] {
            for _ in 0..3 {
                let netlist = netlist(gates, &mut random);
                let windows = Arc::new(Windows::of_netlist(netlist.clone()));
                let once: Vec<_> = windows.compiled().into_iter().map(Result::unwrap).collect();
                let often = windows.all_programs().unwrap();
                assert!(windows.compiled().into_iter().map(Result::unwrap).eq(often.iter().cloned()));
                let ands = |programs: &[Arc<Program>]| programs.iter().map(|p| p.ands()).collect::<Vec<_>>();
                assert_eq!(ands(&once), ands(&often));
                assert_eq!(ands(&once).iter().sum::<usize>(), netlist.ands());
                let value: Vec<bool> = (0..90).map(|_| random(2) == 1).collect();
                let want = netlist.evaluate(std::slice::from_ref(&value)).unwrap().concat();
                let got = run(&windows, &once, &value);
                assert_eq!(got.0, want);
                // Both sides of a session need the same order of ANDs.
                assert!(got == run(&windows, &often, &value));
                // The slots that a program says are those that programs until it use.
                let used = |program: &Arc<Program>| program.steps().iter().map(|s| s.out as usize + 1).max();
                let mut most = 92 + windows.outputs.len();
                for program in &often {
                    most = most.max(used(program).unwrap_or(0));
                    assert_eq!(program.slots(), most);
                }
                assert!(most <= windows.slots);
            }
        }
    }

    #[test]
    fn a_circuit_whose_programs_are_kept_has_labels_for_what_they_use() {
        let netlist = crate::problems::make("sha256").unwrap();
        let windows = Windows::of_netlist(netlist.clone());
        let circuit = crate::circuit::Circuit::of(netlist);
        let most = circuit.programs().map(|program| program.unwrap().slots()).max().unwrap();
        assert_eq!(circuit.slots(), most);
        assert!(16 * most < windows.slots, "{most} of {}", windows.slots);
    }
}
