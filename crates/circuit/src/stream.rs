//! Netlist files larger than memory.
//!
//! A file in a Bristol format is read once and kept as records on disk, which [`Windows`] mark and compile: two bits of memory
//! a wire, and what is alive.

use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use blindcore_files::text;

use crate::formats::bristol::{FileGate, Reader};
use crate::formats::{FormatError, Language, start};
use crate::ports::{Form, PortShape};
use crate::windows::{AND, ONE, Record, Windows, ZERO};

/// Bits of all inputs, and of all outputs.
const MOST_BITS: u32 = 1 << 27;
/// Slots of a circuit: their labels are 16 bytes each.
const MOST_SLOTS: usize = 1 << 31;

/// A circuit in a file of its own that goes with it.
#[derive(Debug)]
pub(crate) struct Streamed {
    pub(crate) windows: Windows,
    pub(crate) inputs: Vec<PortShape>,
    pub(crate) outputs: Vec<PortShape>,
    pub(crate) digest: [u8; 32],
}

impl Streamed {
    /// Reads a file in a Bristol format and finds where each wire is read for the last time. Records lie in `folder`.
    pub(crate) fn new(path: &Path, folder: &Path) -> Result<Self, FormatError> {
        let name = path.display().to_string();
        let kept = |source| FormatError::Records { folder: folder.display().to_string(), source };
        let (file, bytes) = crate::formats::open(path, &name)?;
        let input = text::unmarked(BufReader::with_capacity(1 << 20, file));
        let mut input = input.map_err(|source| FormatError::Io { file: name.clone(), source })?;
        let (language, line, _) = start(&name, &mut input)?;
        if let Language::Verilog = language {
            let reason = "it is in Verilog, and --stream takes Bristol formats alone".to_owned();
            let remedy = "write one of it with `blindcore circuit convert`";
            return Err(FormatError::Content { file: name, line, reason, remedy });
        }
        let mut reader = Reader::new_at(&name, line, input, bytes)?;
        let header = reader.header().clone();
        let too_many = |reason: String| FormatError::Content {
            file: name.clone(),
            line: 1,
            reason,
            remedy: "cut the circuit into rounds",
        };
        if header.wires >= ZERO {
            return Err(too_many(format!(
                "{} wires are over the {} that are streamed",
                header.wires,
                ZERO - 1
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
        hasher.update(b"blindcore streamed netlist 2");
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
        let added = reader.added();
        drop(reader);
        let first_output = header.wires - header.output_bits();
        let outputs: Vec<u32> = (first_output..header.wires).collect();
        let wires = u64::from(header.wires) + u64::from(added);
        if wires >= u64::from(ZERO) {
            return Err(too_many(format!("{wires} wires are over the {} that are streamed", ZERO - 1)));
        }
        let windows =
            Windows::of_file(records, gates, ands, header.input_bits(), wires, &outputs).map_err(kept)?;
        if windows.slots > MOST_SLOTS {
            return Err(too_many(format!(
                "{} wires that are needed at once are over the {MOST_SLOTS} that are kept",
                windows.slots
            )));
        }
        let shapes = |widths: &[u32], name: &str| {
            let shape = |(i, w): (usize, &u32)| PortShape {
                name: format!("{name}{i}"),
                width: *w as usize,
                form: Form::default(),
            };
            widths.iter().enumerate().map(shape).collect::<Vec<_>>()
        };
        let (inputs, outputs) = (shapes(&header.inputs, "in"), shapes(&header.outputs, "out"));
        Ok(Self { windows, inputs, outputs, digest: *hasher.finalize().as_bytes() })
    }
}
