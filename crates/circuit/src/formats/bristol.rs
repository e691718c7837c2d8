//! Bristol Fashion and the older Bristol format: a header of counts, then a gate a line.
//!
//! Both as described at <https://nigelsmart.github.io/MPC-Circuits/>, with all gate kinds in either: `AND`, `XOR`,
//! `INV` (or `NOT`), `EQ` (a constant), `EQW` (a copy), `MAND` (several ANDs in one line), and with `OR`, `NAND`, `NOR` and
//! `XNOR`, in capitals or not. What follows `#` or `//` in a line is a comment. A line that isn't blank is
//!
//! | line   | Bristol Fashion                            | the older format                                 |
//! |--------|--------------------------------------------|--------------------------------------------------|
//! | first  | gates (lines) and wires                    | the same                                         |
//! | second | number of inputs, the width of each        | widths of both parties' inputs and of the output |
//! | third  | number of outputs, the width of each       | a gate                                           |
//! | others | `INS OUTS in... out... KIND`               | the same                                         |
//!
//! The first wires are the inputs', the last are the outputs', both least significant bit first. Gates are in an order
//! in which every wire is written before it is read, and each wire is written once: anything else is refused with its
//! line. `AND`, `XOR` and `INV` each become one gate, so that counts stay those of the file; `OR` becomes three, one of them an
//! AND. What reads a constant and is one itself, or a copy, becomes none: [`write()`] has such gates as `EQ` and `EQW`, so a
//! file that is read, written and read again is the same circuit.
//!
//! A netlist that is larger than memory is read by [`Reader`], gate by gate, in a bit of memory a wire:
//!
//! ```
//! use blindcore_circuit::formats::bristol::{FileGate, Reader};
//!
//! let file = b"1 3\n2 1 1\n1 1\n\n2 1 0 1 2 AND\n";
//! let mut gates = Reader::new("and.txt", &file[..], file.len() as u64)?;
//! assert_eq!(gates.header().inputs, [1, 1]);
//! assert_eq!(gates.next_gate()?, Some(FileGate::And { a: 0, b: 1, out: 2 }));
//! assert_eq!(gates.next_gate()?, None);
//! # Ok::<(), blindcore_circuit::formats::FormatError>(())
//! ```

use super::FormatError;
use crate::netlist::{Gate, Kind, MAX_WIRES, Netlist, Port, Wire};
use crate::ports::MAX_PORTS;
use blindcore_files::new_file::NewFileError;
use blindcore_files::{Access, Existing, NewFile};
use std::collections::VecDeque;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;

/// Bytes in a line, at most.
pub(crate) const MAX_LINE: u64 = 1 << 26;
/// The shortest gate, `1 1 0 1 EQ` and a line's end.
const SHORTEST_GATE: u64 = 11;
/// Wires that a file of any size may declare beyond one a byte: every other wire is read or written in some line, and
/// only inputs that no gate reads need no byte.
const FREE_WIRES: u64 = 1 << 20;

const CUT: &str = "the file is cut short or its header is wrong: fetch or write it again";
const SYNTAX: &str = "a gate reads like `2 1 0 1 2 AND`: inputs, outputs, their wires, the kind";
const KINDS: &str = "known are AND, XOR, INV, NOT, EQ, EQW, MAND, OR, NAND, NOR and XNOR";
/// Letters of the longest kind.
const LONGEST_KIND: usize = 4;
const ORDER: &str =
    "sort the gates so that each wire is written once, before it is read, and no cycle is left";

/// What stands before the gates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Whether it is Bristol Fashion; the older format otherwise.
    pub fashion: bool,
    /// Lines with a gate.
    pub gates: u64,
    /// All wires; their numbers are below it.
    pub wires: u32,
    /// The widths of the inputs: the first wires, in order.
    pub inputs: Vec<u32>,
    /// The widths of the outputs: the last wires, in order.
    pub outputs: Vec<u32>,
}

impl Header {
    /// Bits of all inputs; the first wire that a gate writes may have this number.
    #[must_use]
    pub fn input_bits(&self) -> u32 {
        self.inputs.iter().sum()
    }

    /// Bits of all outputs: the last wires.
    #[must_use]
    pub fn output_bits(&self) -> u32 {
        self.outputs.iter().sum()
    }
}

/// A gate between wires by the file's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileGate {
    /// `out = a & b`; a `MAND` is several of them.
    #[allow(missing_docs)]
    And { a: u32, b: u32, out: u32 },
    /// `out = a ^ b`.
    #[allow(missing_docs)]
    Xor { a: u32, b: u32, out: u32 },
    /// `out = !a`.
    #[allow(missing_docs)]
    Not { a: u32, out: u32 },
    /// `out = a`.
    #[allow(missing_docs)]
    Copy { a: u32, out: u32 },
    /// `out = value`.
    #[allow(missing_docs)]
    Constant { value: bool, out: u32 },
}

/// Reads gates one at a time, every wire checked.
pub struct Reader<R> {
    lines: Lines<R>,
    header: Header,
    /// A bit a wire.
    written: Vec<u64>,
    /// How many wires are written, and lines of gates read.
    wires: u64,
    gates: u64,
    /// The rest of a line that is several gates.
    pending: VecDeque<FileGate>,
    /// Wires that such gates write beside the file's.
    added: u32,
    numbers: Vec<u32>,
    /// The line after the header, where it had to be read to know the format.
    ahead: bool,
}

/// Lines that aren't blank, by number.
struct Lines<R> {
    name: String,
    input: R,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    fn error(&self, reason: impl Into<String>, remedy: &'static str) -> FormatError {
        // Of what is empty it is the first that is missing.
        let (file, line) = (self.name.clone(), self.number.max(1));
        FormatError::Content { file, line, reason: reason.into(), remedy }
    }

    /// Whether there was another line.
    fn advance(&mut self) -> Result<bool, FormatError> {
        loop {
            self.line.clear();
            let read = self.input.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut self.line);
            if let Err(source) = read {
                return Err(FormatError::Io { file: self.name.clone(), source });
            }
            if self.line.is_empty() {
                return Ok(false);
            }
            self.number += 1;
            if self.line.len() as u64 > MAX_LINE {
                let reason = format!("a line is over the limit of {MAX_LINE} B");
                return Err(self.error(reason, "cut its MAND into several"));
            }
            let sign = self.line.iter().position(|c| matches!(c, b'#' | b'/'));
            let comment = sign.filter(|at| self.line[*at] == b'#' || self.line[*at..].starts_with(b"//"));
            let end = comment.unwrap_or(self.line.len());
            self.line.truncate(self.line[..end].trim_ascii_end().len());
            if !self.line.trim_ascii_start().is_empty() {
                return Ok(true);
            }
        }
    }

    /// The numbers of a line of nothing else.
    fn counts(&self) -> Result<Vec<u32>, FormatError> {
        let mut numbers = Vec::new();
        match split(&self.line, &mut numbers) {
            Split::Numbers => Ok(numbers),
            Split::Kind(..) | Split::Bad(_) => {
                let reason = format!("the header has {}", shown(&self.line));
                Err(self
                    .error(reason, "it is counts alone: gates and wires, then widths of inputs and outputs"))
            }
        }
    }
}

/// What a line is: its numbers go to a list, a word after them is where the result says.
enum Split {
    Numbers,
    Kind(usize, usize),
    /// A word elsewhere than at the end or a number over 32 bits, from here.
    Bad(usize),
}

fn split(line: &[u8], numbers: &mut Vec<u32>) -> Split {
    numbers.clear();
    let mut at = 0;
    loop {
        while line.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        let start = at;
        let mut value = 0u64;
        while let Some(digit) = line.get(at).map(|c| c.wrapping_sub(b'0')).filter(|d| *d < 10) {
            value = (value * 10 + u64::from(digit)).min(1 << 32);
            at += 1;
        }
        if at == start {
            if at == line.len() {
                return Split::Numbers;
            }
            while line.get(at).is_some_and(u8::is_ascii_alphanumeric) {
                at += 1;
            }
            return if at == line.len() { Split::Kind(start, at) } else { Split::Bad(start) };
        }
        match u32::try_from(value) {
            Ok(value) if line.get(at).is_none_or(u8::is_ascii_whitespace) => numbers.push(value),
            _ => return Split::Bad(start),
        }
    }
}

/// A line or word in an error: cut, and printable.
fn shown(text: &[u8]) -> String {
    let cut = &text[..text.len().min(40)];
    format!("{:?}{}", String::from_utf8_lossy(cut), if cut.len() < text.len() { "..." } else { "" })
}

impl<R: BufRead> Reader<R> {
    /// Reads the header. `bytes` is how many the input has at most: counts that it can't hold are refused before any
    /// memory is taken for them. `name` is for errors.
    ///
    /// # Errors
    /// The input can't be read, or the header is malformed or doesn't fit the size.
    pub fn new(name: &str, input: R, bytes: u64) -> Result<Self, FormatError> {
        Self::new_at(name, 1, input, bytes)
    }

    pub(crate) fn new_at(name: &str, first_line: u64, input: R, bytes: u64) -> Result<Self, FormatError> {
        let mut lines =
            Lines { name: name.to_owned(), input, line: Vec::new(), number: first_line.saturating_sub(1) };
        let missing = |lines: &Lines<R>, what: &str| lines.error(format!("the file ends before {what}"), CUT);
        if !lines.advance()? {
            return Err(missing(&lines, "the number of gates and of wires"));
        }
        let [gates, wires] = lines.counts()?[..] else {
            let reason = format!("{} isn't the number of gates and of wires", shown(&lines.line));
            return Err(lines.error(reason, "a netlist starts with these two"));
        };
        let gates = u64::from(gates);
        let most = (bytes + 1) / SHORTEST_GATE;
        if gates > most {
            let reason = format!("{gates} gates are declared, and {bytes} B hold {most} at most");
            return Err(lines.error(reason, CUT));
        }
        let most = bytes.saturating_add(FREE_WIRES);
        if u64::from(wires) > most {
            let reason =
                format!("{wires} wires are declared, and a file of {bytes} B may have {most} at most");
            return Err(lines.error(reason, CUT));
        }
        if !lines.advance()? {
            return Err(missing(&lines, "the inputs' widths"));
        }
        let (second, second_line) = (lines.counts()?, lines.number);
        let after = lines.advance()?;
        let fashion = after && matches!(split(&lines.line, &mut Vec::new()), Split::Numbers);
        let at = |line, reason, remedy| FormatError::Content { file: name.to_owned(), line, reason, remedy };
        let widths = |list: &[u32], line, what| match list.split_first() {
            Some((_, widths)) if widths.len() > MAX_PORTS => {
                let reason = format!("{} {what}, over the limit of {MAX_PORTS}", widths.len());
                Err(at(line, reason, "join them into wider ones"))
            }
            Some((&count, widths)) if count as usize == widths.len() => Ok(widths.to_vec()),
            _ => Err(at(
                line,
                format!("the first number isn't that of the widths of {what} after it ({})", list.len() - 1),
                "write how many there are and then each width",
            )),
        };
        let (inputs, outputs) = if fashion {
            (widths(&second, second_line, "inputs")?, widths(&lines.counts()?, lines.number, "outputs")?)
        } else if let [first, second, output] = second[..] {
            ([first, second].into_iter().filter(|w| *w > 0).collect(), vec![output])
        } else if after {
            let reason = format!("{} widths, where the older format has three", second.len());
            return Err(at(second_line, reason, "in Bristol Fashion a line of the outputs' widths follows"));
        } else {
            return Err(missing(&lines, "the outputs' widths"));
        };
        let outputs_line = if fashion { lines.number } else { second_line };
        for (what, list, line) in [("inputs", &inputs, second_line), ("outputs", &outputs, outputs_line)] {
            let bits: u64 = list.iter().map(|w| u64::from(*w)).sum();
            if bits > u64::from(wires) {
                let reason = format!("{what} of {bits} bits, and {wires} wires in all");
                return Err(at(line, reason, CUT));
            }
        }
        let header = Header { fashion, gates, wires, inputs, outputs };
        let given = header.input_bits();
        let mut written = vec![0u64; (wires as usize).div_ceil(64)];
        let whole = given as usize / 64;
        written[..whole].fill(u64::MAX);
        if !given.is_multiple_of(64) {
            written[whole] = (1 << (given % 64)) - 1;
        }
        let (pending, numbers) = (VecDeque::new(), Vec::new());
        let (wires, gates, ahead) = (u64::from(given), 0, after && !fashion);
        Ok(Self { lines, header, written, wires, gates, pending, added: 0, numbers, ahead })
    }

    /// What stands before the gates.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Wires that gates so far write beside the file's, numbered from [`Header::wires`] on: an `OR` is made of other gates.
    #[must_use]
    pub fn added(&self) -> u32 {
        self.added
    }

    /// The line of the gate that was last read, counted from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.lines.number
    }

    /// The next gate; none when all that were declared are read, every wire is written and the input ends.
    ///
    /// # Errors
    /// A line is not a gate, reads a wire that isn't written yet, writes one again, or the counts differ from the header's.
    pub fn next_gate(&mut self) -> Result<Option<FileGate>, FormatError> {
        if let Some(gate) = self.pending.pop_front() {
            return Ok(Some(gate));
        }
        if !std::mem::take(&mut self.ahead) && !self.lines.advance()? {
            return self.end().map(|()| None);
        }
        if self.gates == self.header.gates {
            let reason = format!("a line after the {} gates that the header declares", self.gates);
            return Err(self.lines.error(reason, "correct the number of gates, or remove what follows them"));
        }
        self.gates += 1;
        let mut numbers = std::mem::take(&mut self.numbers);
        let gate = self.gate(&mut numbers);
        self.numbers = numbers;
        gate.map(Some)
    }

    fn end(&self) -> Result<(), FormatError> {
        let (gates, wires) = (self.header.gates, u64::from(self.header.wires));
        if self.gates != gates {
            let reason = format!("the file ends after {} of {gates} gates", self.gates);
            return Err(self.lines.error(reason, CUT));
        }
        if self.wires != wires {
            let unwritten = (0..self.header.wires).find(|w| !self.is_written(*w)).unwrap_or(0);
            let others = match wires - self.wires - 1 {
                0 => String::new(),
                1 => ", nor is 1 other".to_owned(),
                n => format!(", nor are {n} others"),
            };
            let reason = format!("wire {unwritten} of {wires} is never written{others}");
            return Err(self
                .lines
                .error(reason, "correct the number of wires, or add the gates that write them"));
        }
        Ok(())
    }

    fn gate(&mut self, numbers: &mut Vec<u32>) -> Result<FileGate, FormatError> {
        let line = &self.lines.line;
        let kind = match split(line, numbers) {
            Split::Kind(start, end) if end - start <= LONGEST_KIND => {
                let mut kind = [b' '; LONGEST_KIND];
                kind[..end - start].copy_from_slice(&line[start..end]);
                kind.make_ascii_uppercase();
                kind
            }
            Split::Kind(start, end) => {
                return Err(self
                    .lines
                    .error(format!("{} is an unknown gate", shown(&line[start..end])), KINDS));
            }
            Split::Numbers => return Err(self.lines.error("a gate without a kind", SYNTAX)),
            Split::Bad(at) => {
                let reason = format!("{} is neither a wire nor a kind", shown(&line[at..]));
                return Err(self.lines.error(reason, SYNTAX));
            }
        };
        // How many wires it reads and writes.
        let kind = kind.trim_ascii_end();
        let shape = match kind {
            b"AND" | b"XOR" | b"OR" | b"NAND" | b"NOR" | b"XNOR" => Some((2, 1)),
            b"INV" | b"NOT" | b"EQ" | b"EQW" => Some((1, 1)),
            b"MAND" => None,
            _ => {
                let reason = format!("{} is an unknown gate", shown(kind));
                return Err(self.lines.error(reason, KINDS));
            }
        };
        let [reads, writes, ref wires @ ..] = numbers[..] else {
            return Err(self.lines.error("a gate without its numbers of inputs and outputs", SYNTAX));
        };
        let (reads, writes) = (reads as usize, writes as usize);
        let fits =
            shape.map_or(writes > 0 && reads / 2 == writes && reads % 2 == 0, |s| s == (reads, writes));
        if !fits || wires.len() != reads + writes {
            let reason = format!(
                "{} with {reads} inputs, {writes} outputs and {} wires",
                String::from_utf8_lossy(kind),
                wires.len()
            );
            return Err(self.lines.error(reason, SYNTAX));
        }
        match (kind, wires) {
            (b"AND", &[a, b, out]) => {
                self.check(&[a, b], &[out])?;
                Ok(FileGate::And { a, b, out })
            }
            (b"XOR", &[a, b, out]) => {
                self.check(&[a, b], &[out])?;
                Ok(FileGate::Xor { a, b, out })
            }
            (b"OR" | b"NAND" | b"NOR" | b"XNOR", &[a, b, out]) => {
                self.check(&[a, b], &[out])?;
                let [x, y, z] = [0, 1, 2].map(|i| self.header.wires.saturating_add(self.added + i));
                // Each writes the wire that the next one reads, and the last the file's.
                let (gates, added): (&[FileGate], _) = match kind {
                    b"NAND" => (&[FileGate::And { a, b, out: x }, FileGate::Not { a: x, out }], 1),
                    b"XNOR" => (&[FileGate::Xor { a, b, out: x }, FileGate::Not { a: x, out }], 1),
                    _ => {
                        let (differ, both) = (FileGate::Xor { a, b, out: x }, FileGate::And { a, b, out: y });
                        match kind {
                            b"OR" => (&[differ, both, FileGate::Xor { a: x, b: y, out }], 2),
                            _ => (
                                &[
                                    differ,
                                    both,
                                    FileGate::Xor { a: x, b: y, out: z },
                                    FileGate::Not { a: z, out },
                                ],
                                3,
                            ),
                        }
                    }
                };
                self.added += added;
                if self.header.wires.checked_add(self.added).is_none() {
                    let reason = "more than 2^32 wires, with those that its OR, NAND, NOR and XNOR take";
                    return Err(self
                        .lines
                        .error(reason, "write it with AND, XOR and INV, or cut it into rounds"));
                }
                self.pending.extend(&gates[1..]);
                Ok(gates[0])
            }
            (b"INV" | b"NOT", &[a, out]) => {
                self.check(&[a], &[out])?;
                Ok(FileGate::Not { a, out })
            }
            (b"EQW", &[a, out]) => {
                self.check(&[a], &[out])?;
                Ok(FileGate::Copy { a, out })
            }
            (b"EQ", &[value, out]) => {
                if value > 1 {
                    let reason = format!("EQ sets a wire to {value}");
                    return Err(self.lines.error(reason, "a constant is 0 or 1; a copy of a wire is EQW"));
                }
                self.check(&[], &[out])?;
                Ok(FileGate::Constant { value: value == 1, out })
            }
            _ => {
                let (reads, outs) = wires.split_at(reads);
                self.check(reads, outs)?;
                let (a, b) = reads.split_at(writes);
                let mut gates = a.iter().zip(b).zip(outs).map(|((&a, &b), &out)| FileGate::And { a, b, out });
                let first = gates.next();
                self.pending.extend(gates);
                first.ok_or_else(|| self.lines.error("a MAND of nothing", SYNTAX))
            }
        }
    }

    #[inline]
    fn is_written(&self, wire: u32) -> bool {
        self.written[wire as usize / 64] >> (wire % 64) & 1 == 1
    }

    #[inline]
    fn check(&mut self, reads: &[u32], writes: &[u32]) -> Result<(), FormatError> {
        let wires = self.header.wires;
        if let Some(&wire) = reads.iter().chain(writes).find(|w| **w >= wires) {
            let reason = format!("wire {wire}, and there are {wires}, counted from 0");
            return Err(self.lines.error(reason, "correct the number of wires, or the gate"));
        }
        if let Some(&wire) = reads.iter().find(|w| !self.is_written(**w)) {
            return Err(self.lines.error(format!("wire {wire} is read before it is written"), ORDER));
        }
        for &wire in writes {
            if self.is_written(wire) {
                let what =
                    if wire < self.header.input_bits() { "is an input" } else { "has a writer already" };
                return Err(self.lines.error(format!("wire {wire} is written, and {what}"), ORDER));
            }
            self.written[wire as usize / 64] |= 1 << (wire % 64);
            self.wires += 1;
        }
        Ok(())
    }
}

/// Reads a whole netlist. `bytes` is how many the input has at most, as for [`Reader::new`]; `name` is for errors.
///
/// # Errors
/// As [`Reader::new`] and [`Reader::next_gate`]; or it is too large for a netlist in memory.
pub fn read(name: &str, input: impl BufRead, bytes: u64) -> Result<Netlist, FormatError> {
    read_at(name, 1, input, bytes)
}

pub(super) fn read_at(
    name: &str,
    first_line: u64,
    input: impl BufRead,
    bytes: u64,
) -> Result<Netlist, FormatError> {
    let mut reader = Reader::new_at(name, first_line, input, bytes)?;
    let header = reader.header().clone();
    if header.wires as usize > MAX_WIRES - 2 {
        let reason = format!("{} wires are over the {MAX_WIRES} of a netlist in memory", header.wires);
        return Err(reader.lines.error(reason, "cut it into pieces, or stream it"));
    }
    let given = header.input_bits();
    let mut wires = vec![Wire::ZERO; header.wires as usize];
    for i in 0..given {
        wires[i as usize] = Wire(2 + i);
    }
    let mut gates = Vec::with_capacity(header.gates as usize);
    while let Some(gate) = reader.next_gate()? {
        wires.resize((header.wires + reader.added()) as usize, Wire::ZERO);
        if 2 + given as usize + gates.len() >= MAX_WIRES {
            let reason = format!("its gates are over the {MAX_WIRES} of a netlist in memory");
            return Err(reader.lines.error(reason, "cut it into pieces, or stream it"));
        }
        let mut push = |kind, a: Wire, b: Wire| {
            known(kind, a, b).unwrap_or_else(|| {
                gates.push(Gate::new(kind, a, b));
                Wire(1 + given + gates.len() as u32)
            })
        };
        match gate {
            FileGate::And { a, b, out } => {
                wires[out as usize] = push(Kind::And, wires[a as usize], wires[b as usize]);
            }
            FileGate::Xor { a, b, out } => {
                wires[out as usize] = push(Kind::Xor, wires[a as usize], wires[b as usize]);
            }
            FileGate::Not { a, out } => wires[out as usize] = push(Kind::Xor, wires[a as usize], Wire::ONE),
            FileGate::Copy { a, out } => wires[out as usize] = wires[a as usize],
            FileGate::Constant { value, out } => wires[out as usize] = Wire(u32::from(value)),
        }
    }
    let mut next = (header.wires - header.output_bits()) as usize;
    let output = |(i, &width): (usize, &u32)| {
        let first = next;
        next += width as usize;
        Port { name: format!("out{i}"), wires: wires[first..next].to_vec() }
    };
    let outputs = header.outputs.iter().enumerate().map(output).collect();
    let inputs = header.inputs.iter().enumerate().map(|(i, &width)| (format!("in{i}"), width as usize));
    Netlist::new(inputs, gates, outputs)
        .map_err(|e| reader.lines.error(e.to_string(), "report this: the file was checked before"))
}

/// The wire that has a gate's value, where a constant that it reads says which.
fn known(kind: Kind, a: Wire, b: Wire) -> Option<Wire> {
    match (kind, a.min(b), a.max(b)) {
        (Kind::And, Wire::ZERO, _) | (Kind::Xor, Wire::ONE, Wire::ONE) => Some(Wire::ZERO),
        (Kind::And, Wire::ONE, other) | (Kind::Xor, Wire::ZERO, other) => Some(other),
        _ => None,
    }
}

/// Writes a netlist in Bristol Fashion; names of inputs and outputs have no place there.
///
/// A gate is a line: `AND`, `XOR`, `INV`, or `EQ` and `EQW` where it is a constant or a copy. Outputs have to be the last wires:
/// a bit that is an input, a constant or an output already takes a further `EQ` or `EQW`.
///
/// # Errors
/// The writer's.
pub fn write(netlist: &Netlist, mut to: impl Write) -> io::Result<()> {
    let given = netlist.input_bits() as u64;
    let first_gate = netlist.first_gate_wire().index();
    let outputs: Vec<Wire> = netlist.outputs().iter().flat_map(|p| &p.wires).copied().collect();
    // The place among the outputs of every gate that is one, and the outputs that need a line of their own.
    let mut place = vec![u32::MAX; netlist.gates().len()];
    let mut copies = Vec::new();
    for (i, wire) in outputs.iter().enumerate() {
        match wire.index().checked_sub(first_gate) {
            Some(gate) if place[gate] == u32::MAX => place[gate] = i as u32,
            _ => copies.push((i as u64, *wire)),
        }
    }
    let lines = netlist.gates().len() + copies.len();
    let wires = given + lines as u64;
    let first_output = wires - outputs.len() as u64;
    writeln!(to, "{lines} {wires}")?;
    for ports in [netlist.inputs(), netlist.outputs()] {
        write!(to, "{}", ports.len())?;
        ports.iter().try_for_each(|p| write!(to, " {}", p.wires.len()))?;
        writeln!(to)?;
    }
    writeln!(to)?;
    let mut next = given;
    let numbers: Vec<u64> = place
        .iter()
        .map(|&place| {
            if place != u32::MAX {
                return first_output + u64::from(place);
            }
            next += 1;
            next - 1
        })
        .collect();
    let number = |w: Wire| match w.index().checked_sub(first_gate) {
        Some(gate) => numbers[gate],
        None => u64::from(w.0) - 2,
    };
    let same = |to: &mut dyn Write, out: u64, wire: Wire| match wire.is_constant() {
        true => writeln!(to, "1 1 {} {out} EQ", wire.0),
        false => writeln!(to, "1 1 {} {out} EQW", number(wire)),
    };
    for (gate, &out) in netlist.gates().iter().zip(&numbers) {
        let (a, b) = (gate.a().min(gate.b()), gate.a().max(gate.b()));
        match (known(gate.kind(), a, b), gate.kind()) {
            (Some(wire), _) => same(&mut to, out, wire)?,
            (_, Kind::Xor) if a == Wire::ONE => writeln!(to, "1 1 {} {out} INV", number(b))?,
            (_, Kind::And) => writeln!(to, "2 1 {} {} {out} AND", number(a), number(b))?,
            (_, Kind::Xor) => writeln!(to, "2 1 {} {} {out} XOR", number(a), number(b))?,
        }
    }
    for (place, wire) in copies {
        same(&mut to, first_output + place, wire)?;
    }
    to.flush()
}

/// Writes a netlist as [`write()`] does to a file, whole or not at all. Returns its bytes.
///
/// # Errors
/// As [`NewFile::create`] and [`NewFile::finish`].
pub fn write_file(netlist: &Netlist, path: &Path, over: Existing) -> Result<u64, NewFileError> {
    let mut file = NewFile::create(path, Access::Everyone)?;
    write(netlist, &mut file).map_err(|error| NewFileError::Io { path: path.to_owned(), error })?;
    file.finish(over)
}
