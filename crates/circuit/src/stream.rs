//! Netlist files larger than memory.
//!
//! A file in a Bristol format is read once and kept as records on disk, then read from its end, which tells the last
//! reader of each wire: one bit of memory a wire. Running it compiles window after window of [`WINDOW`] gates as netlists
//! of their own; labels of wires that live on move between a window's slots and those of live wires by XORs with 0, which
//! are free. So memory is that of a window and of the wires that are alive.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use blindcore_accel::garble::{Program, ProgramBuilder};
use blindcore_files::text;

use crate::compile::{Compiled, WINDOW};
use crate::formats::FormatError;
use crate::formats::bristol::{FileGate, Reader};
use crate::netlist::{Gate, Kind, Netlist, Port, Wire};
use crate::ports::{Form, PIECE, PortShape};

/// Bits of all inputs, and of all outputs.
const MOST_BITS: u32 = 1 << 27;

/// A wire of the file, or a constant.
const ZERO: u32 = u32::MAX;
const ONE: u32 = u32::MAX - 1;

/// A gate as it lies on disk: kind and flags, operands, output.
const RECORD: usize = 13;
const AND: u8 = 1;
const A_DIES: u8 = 2;
const B_DIES: u8 = 4;
const UNREAD: u8 = 8;

/// Records of a file, in a file of its own that goes with it.
#[derive(Debug)]
pub(crate) struct Streamed {
    records: File,
    gates: u64,
    pub(crate) ands: u64,
    pub(crate) inputs: Vec<PortShape>,
    pub(crate) outputs: Vec<PortShape>,
    pub(crate) output_slots: Vec<u32>,
    pub(crate) slots: usize,
    pub(crate) digest: [u8; 32],
    /// Where the slots of live wires begin.
    base: u32,
    input_bits: u32,
    /// The outputs' wires: from this one on.
    first_output: u32,
}

#[derive(Clone, Copy)]
struct Record {
    flags: u8,
    a: u32,
    b: u32,
    out: u32,
}

impl Record {
    fn to_bytes(self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[0] = self.flags;
        bytes[1..5].copy_from_slice(&self.a.to_le_bytes());
        bytes[5..9].copy_from_slice(&self.b.to_le_bytes());
        bytes[9..].copy_from_slice(&self.out.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; RECORD]) -> Self {
        let word = |i: usize| u32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
        Self { flags: bytes[0], a: word(1), b: word(5), out: word(9) }
    }
}

impl Streamed {
    /// Reads a file in a Bristol format and finds where each wire is read for the last time. Records lie in `folder`.
    pub(crate) fn new(path: &Path, folder: &Path) -> Result<Self, FormatError> {
        let name = path.display().to_string();
        let kept = |source| FormatError::Records { folder: folder.display().to_string(), source };
        let (file, bytes) = crate::formats::open(path, &name)?;
        let input = text::unmarked(BufReader::with_capacity(1 << 20, file));
        let input = input.map_err(|source| FormatError::Io { file: name.clone(), source })?;
        let mut reader = Reader::new(&name, input, bytes)?;
        let header = reader.header().clone();
        let too_many = |reason: String| FormatError::Content {
            file: name.clone(),
            line: 1,
            reason,
            remedy: "cut the circuit into rounds",
        };
        if header.wires >= ONE {
            return Err(too_many(format!(
                "{} wires are over the {} that are streamed",
                header.wires,
                ONE - 1
            )));
        }
        // Their slots are numbered beside those of live wires, and a session refuses as many anyway.
        for (what, bits) in [("inputs", header.input_bits()), ("outputs", header.output_bits())] {
            if bits > MOST_BITS {
                return Err(too_many(format!(
                    "{bits} bits of {what} are over the {MOST_BITS} that are streamed"
                )));
            }
        }
        let mut records = tempfile::tempfile_in(folder).map_err(kept)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"blindcore streamed netlist 1");
        for widths in [&header.inputs, &header.outputs] {
            hasher.update(&(widths.len() as u64).to_le_bytes());
            widths.iter().for_each(|w| {
                hasher.update(&w.to_le_bytes());
            });
        }
        let (mut gates, mut ands) = (0u64, 0u64);
        let mut out = BufWriter::with_capacity(1 << 20, &mut records);
        while let Some(gate) = reader.next_gate()? {
            let record = match gate {
                FileGate::And { a, b, out } => Record { flags: AND, a, b, out },
                FileGate::Xor { a, b, out } => Record { flags: 0, a, b, out },
                FileGate::Not { a, out } => Record { flags: 0, a, b: ONE, out },
                FileGate::Copy { a, out } => Record { flags: 0, a, b: ZERO, out },
                FileGate::Constant { value, out } => {
                    Record { flags: 0, a: if value { ONE } else { ZERO }, b: ZERO, out }
                }
            };
            gates += 1;
            ands += u64::from(record.flags);
            let bytes = record.to_bytes();
            hasher.update(&bytes);
            out.write_all(&bytes).map_err(kept)?;
        }
        out.flush().map_err(kept)?;
        drop(out);
        drop(reader);
        let (input_bits, first_output) = (header.input_bits(), header.wires - header.output_bits());
        mark_last_reads(&mut records, gates, header.wires, input_bits, first_output).map_err(kept)?;

        let shapes = |widths: &[u32], name: &str| {
            let shape = |(i, w): (usize, &u32)| PortShape {
                name: format!("{name}{i}"),
                width: *w as usize,
                form: Form::default(),
            };
            widths.iter().enumerate().map(shape).collect::<Vec<_>>()
        };
        let mut streamed = Self {
            records,
            gates,
            ands,
            inputs: shapes(&header.inputs, "in"),
            outputs: shapes(&header.outputs, "out"),
            output_slots: Vec::new(),
            slots: 0,
            digest: *hasher.finalize().as_bytes(),
            base: (2 + input_bits).max(2 + 3 * WINDOW as u32),
            input_bits,
            first_output,
        };
        // Once through, without compiling: where outputs end up, and how many slots live wires need.
        let mut live = Live::new(&streamed);
        let mut windows = Windows::new(&streamed).map_err(kept)?;
        while let Some(window) = windows.next().map_err(kept)? {
            live.pass(&window);
        }
        streamed.output_slots = (first_output..header.wires).map(|wire| live.of[&wire]).collect();
        streamed.slots = live.next as usize;
        Ok(streamed)
    }

    /// The programs in order.
    pub(crate) fn programs(&self) -> impl Iterator<Item = io::Result<Arc<Program>>> + '_ {
        let mut live = Live::new(self);
        let mut windows = Windows::new(self);
        let mut ready: std::collections::VecDeque<Program> =
            [copies(self.slots, (0..self.input_bits).map(|i| (self.base + i, 2 + i)))].into();
        let mut ended = false;
        std::iter::from_fn(move || {
            loop {
                if let Some(program) = ready.pop_front() {
                    return Some(Ok(Arc::new(program)));
                }
                if ended {
                    return None;
                }
                let windows = match &mut windows {
                    Ok(windows) => windows,
                    Err(e) => return Some(Err(io::Error::new(e.kind(), e.to_string()))),
                };
                match windows.next() {
                    Ok(None) => {
                        // Windows wrote over the inputs' own slots, where another round looks for them.
                        ended = true;
                        ready.push_back(copies(
                            self.slots,
                            (0..self.input_bits).map(|i| (2 + i, self.base + i)),
                        ));
                    }
                    Err(e) => return Some(Err(e)),
                    Ok(Some(window)) => ready.extend(self.compile(&window, &mut live)),
                }
            }
        })
    }

    /// A window as programs: what it reads comes in, it runs, what lives on goes out.
    fn compile(&self, window: &[Record], live: &mut Live) -> Vec<Program> {
        // Wires of the file as wires of the window's own netlist.
        let mut own: HashMap<u32, Wire> = HashMap::with_capacity(2 * window.len());
        let mut read_before = Vec::new();
        let written: HashMap<u32, ()> = window.iter().map(|r| (r.out, ())).collect();
        for wire in window.iter().flat_map(|r| [r.a, r.b]).filter(|w| *w < ONE && !written.contains_key(w)) {
            own.entry(wire).or_insert_with(|| {
                read_before.push((2 + read_before.len() as u32, live.of[&wire]));
                Wire(1 + read_before.len() as u32)
            });
        }
        let wire_of = |wire: u32, own: &HashMap<u32, Wire>| match wire {
            ZERO => Wire::ZERO,
            ONE => Wire::ONE,
            wire => own[&wire],
        };
        let first = 2 + read_before.len() as u32;
        let mut gates = Vec::with_capacity(window.len());
        for (i, record) in window.iter().enumerate() {
            let kind = if record.flags & AND == 0 { Kind::Xor } else { Kind::And };
            gates.push(Gate { kind, a: wire_of(record.a, &own), b: wire_of(record.b, &own) });
            own.insert(record.out, Wire(first + i as u32));
        }
        let stays = live.pass(window);
        let port = Port { name: String::new(), wires: stays.iter().map(|(wire, _)| own[wire]).collect() };
        let netlist = Netlist::new([(String::new(), read_before.len())], gates, vec![port])
            .expect("the reader checked that wires are written before they are read");
        let compiled = Compiled::new(&netlist);
        let out = compiled.outputs.iter().zip(&stays).map(|(from, (_, to))| (*to, *from));
        let mut programs = vec![copies(self.slots, read_before.into_iter())];
        programs.extend(compiled.program.pieces(PIECE));
        programs.push(copies(self.slots, out));
        programs
    }
}

/// Labels moved: to a slot, from a slot.
fn copies(slots: usize, moves: impl Iterator<Item = (u32, u32)>) -> Program {
    let mut program = ProgramBuilder::new(slots);
    for (to, from) in moves {
        program.xor(to, from, 0).expect("slots are there");
    }
    program.finish()
}

/// The slots of wires that are alive between windows.
struct Live {
    of: HashMap<u32, u32>,
    free: Vec<u32>,
    next: u32,
    input_bits: u32,
    first_output: u32,
}

impl Live {
    fn new(streamed: &Streamed) -> Self {
        let Streamed { base, input_bits, first_output, .. } = *streamed;
        // Inputs have the first slots, and keep them.
        let of = (0..input_bits).map(|i| (i, base + i)).collect();
        Self { of, free: Vec::new(), next: base + input_bits, input_bits, first_output }
    }

    /// Goes past a window: slots for wires that it writes and that live on, which are returned; none for those that die.
    fn pass(&mut self, window: &[Record]) -> Vec<(u32, u32)> {
        let mut dead: HashMap<u32, ()> = HashMap::new();
        for record in window {
            for (wire, dies) in [(record.a, A_DIES), (record.b, B_DIES)] {
                if record.flags & dies != 0 {
                    dead.insert(wire, ());
                }
            }
            if record.flags & UNREAD != 0 {
                dead.insert(record.out, ());
            }
        }
        // What the window itself reads was copied in, so the slots of what dies in it are free for what it writes.
        for wire in dead.keys() {
            debug_assert!(*wire >= self.input_bits && *wire < self.first_output);
        }
        let mut freed: Vec<u32> = dead.keys().filter_map(|wire| self.of.remove(wire)).collect();
        // The order of a map is its own; both parties need the same slots only within themselves, but runs are compared.
        freed.sort_unstable();
        self.free.extend(freed);
        let stays = window.iter().map(|r| r.out).filter(|out| !dead.contains_key(out));
        let mut placed = Vec::new();
        for wire in stays {
            let slot = self.free.pop().unwrap_or_else(|| {
                self.next += 1;
                self.next - 1
            });
            self.of.insert(wire, slot);
            placed.push((wire, slot));
        }
        placed
    }
}

/// Records, a window at a time.
struct Windows {
    records: BufReader<File>,
    left: u64,
}

impl Windows {
    fn new(streamed: &Streamed) -> io::Result<Self> {
        // A position of its own: the file may be read by several at once.
        let mut file = reopened(&streamed.records)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(Self { records: BufReader::with_capacity(1 << 20, file), left: streamed.gates })
    }

    fn next(&mut self) -> io::Result<Option<Vec<Record>>> {
        let count = self.left.min(WINDOW as u64);
        if count == 0 {
            return Ok(None);
        }
        self.left -= count;
        let mut bytes = vec![0; count as usize * RECORD];
        self.records.read_exact(&mut bytes)?;
        Ok(Some(bytes.as_chunks::<RECORD>().0.iter().map(Record::from_bytes).collect()))
    }
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

/// From the last record to the first: the first reader that is met, from the end, is a wire's last.
fn mark_last_reads(
    records: &mut File,
    gates: u64,
    wires: u32,
    input_bits: u32,
    first_output: u32,
) -> io::Result<()> {
    let mut read = vec![0u64; (wires as usize).div_ceil(64)];
    // Inputs and outputs keep their slots, so nobody reads them last.
    let mut mark = |wire: u32| {
        let (word, bit) = (wire as usize / 64, 1u64 << (wire % 64));
        let before = read[word] & bit != 0;
        read[word] |= bit;
        before
    };
    for wire in (0..input_bits).chain(first_output..wires) {
        mark(wire);
    }
    let mut end = gates;
    let mut bytes = Vec::new();
    while end > 0 {
        let count = end.min(WINDOW as u64);
        end -= count;
        bytes.resize(count as usize * RECORD, 0);
        records.seek(SeekFrom::Start(end * RECORD as u64))?;
        records.read_exact(&mut bytes)?;
        for bytes in bytes.as_chunks_mut::<RECORD>().0.iter_mut().rev() {
            let mut record = Record::from_bytes(bytes);
            if !mark(record.out) {
                record.flags |= UNREAD;
            }
            if record.a < ONE && !mark(record.a) {
                record.flags |= A_DIES;
            }
            if record.b < ONE && !mark(record.b) {
                record.flags |= B_DIES;
            }
            *bytes = record.to_bytes();
        }
        records.seek(SeekFrom::Start(end * RECORD as u64))?;
        records.write_all(&bytes)?;
    }
    Ok(())
}
