//! Netlists in files: Bristol Fashion, the older Bristol format, and structural Verilog.
//!
//! [`read`] tells them apart by what is in them. All become a [`Netlist`], whose inputs and outputs are in the file's
//! order, each least significant bit first.
//!
//! ```
//! use blindcore_circuit::formats;
//!
//! let adder = formats::parse("half.v", b"module half(input a, b, output [1:0] y);
//!   assign y = {a & b, a ^ b};
//! endmodule")?;
//! assert_eq!(adder.evaluate(&[vec![true], vec![true]])?, [[false, true]]);
//!
//! let mut file = Vec::new();
//! formats::bristol::write(&adder, &mut file)?;
//! assert!(file.starts_with(b"2 4\n2 1 1\n1 2\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::netlist::Netlist;
use blindcore_files::text;
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

pub mod bristol;
pub mod verilog;

/// Why a file is not a netlist.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// It can't be read at all.
    #[error("{file} can't be read: {source}; check that it is there, and a file")]
    Io {
        /// The file.
        file: String,
        /// What the system says.
        source: io::Error,
    },
    /// What is kept of a file that is streamed can't be.
    #[error(
        "{folder} can't keep what is streamed: {source}; set TMPDIR to a folder with 13 bytes for each gate"
    )]
    Records {
        /// The folder.
        folder: String,
        /// What the system says.
        source: io::Error,
    },
    /// Something in it is wrong.
    #[error("{file}, line {line}: {reason}; {remedy}")]
    Content {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong.
        reason: String,
        /// What to do.
        remedy: &'static str,
    },
}

/// Reads a netlist in whichever format it is.
///
/// # Errors
/// The file can't be read, or is not a netlist: which line, why, and what to do.
pub fn read(path: impl AsRef<Path>) -> Result<Netlist, FormatError> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let (file, bytes) = open(path, &name)?;
    read_from(&name, BufReader::with_capacity(1 << 18, file), bytes)
}

/// What a file of this netlist leaves out that its user should know, in a sentence: what inputs have to be.
#[must_use]
pub fn left_out(netlist: &Netlist) -> Option<String> {
    let inputs = netlist.input_shapes();
    let sets: Vec<String> = inputs
        .iter()
        .filter(|port| port.form.ascending)
        .map(|port| format!("{} ({}-bit)", port.name, port.form.element.unwrap_or(port.width)))
        .collect();
    (!sets.is_empty()).then(|| {
        format!(
            "a file has no place for what inputs have to be: {} strictly ascending lists here; nobody who runs the file is \
             checked, so sort them, or have the circuit run by its name",
            sets.join(" and ")
        )
    })
}

/// Opens a regular file, with its size; a pipe that nobody writes to would wait for ever.
pub(crate) fn open(path: &Path, name: &str) -> Result<(File, u64), FormatError> {
    let io = |source| FormatError::Io { file: name.to_owned(), source };
    let regular = |metadata: io::Result<Metadata>| match metadata {
        Ok(metadata) if metadata.is_file() => Ok(metadata.len()),
        Ok(_) => Err(io(io::Error::other("it is not a regular file, and so of no known size"))),
        Err(e) => Err(io(e)),
    };
    regular(std::fs::metadata(path))?;
    let file = File::open(path).map_err(io)?;
    let bytes = regular(file.metadata())?;
    Ok((file, bytes))
}

/// Reads a netlist in whichever format it is from bytes that are already here; `name` is for errors.
///
/// # Errors
/// As [`read`].
pub fn parse(name: &str, bytes: &[u8]) -> Result<Netlist, FormatError> {
    read_from(name, bytes, bytes.len() as u64)
}

fn read_from(name: &str, input: impl BufRead, bytes: u64) -> Result<Netlist, FormatError> {
    let io = |source| FormatError::Io { file: name.to_owned(), source };
    let mut input = text::unmarked(input).map_err(io)?;
    let (language, line, mut text) = start(name, &mut input)?;
    match language {
        Language::Bristol => bristol::read_at(name, line, input, bytes),
        Language::Verilog if bytes > verilog::MAX_BYTES => Err(verilog::too_large(name, bytes)),
        Language::Verilog => {
            input.take(verilog::MAX_BYTES).read_to_end(&mut text).map_err(io)?;
            verilog::read_at(name, line, &text)
        }
    }
}

/// What a netlist is written in.
pub(crate) enum Language {
    /// One of both Bristol formats.
    Bristol,
    Verilog,
}

/// Takes white space and comments before the content. Returns what that is written in, the line in which it starts, so that lines are
/// the file's, and what was taken of it.
pub(crate) fn start(name: &str, input: &mut impl BufRead) -> Result<(Language, u64, Vec<u8>), FormatError> {
    let io = |source| FormatError::Io { file: name.to_owned(), source };
    let (mut line, mut head) = (1, Vec::new());
    let first = loop {
        let seen = input.fill_buf().map_err(io)?;
        let Some(&first) = seen.first() else { break None };
        match first {
            b'\n' => line += 1,
            _ if first.is_ascii_whitespace() => {}
            b'#' => {
                input.skip_until(b'\n').map_err(io)?;
                line += 1;
                continue;
            }
            b'/' => {
                // A comment of either format; what is none is Verilog's.
                let limit = verilog::MAX_BYTES;
                input.take(limit).read_until(b'\n', &mut head).map_err(io)?;
                if !head.starts_with(b"//") {
                    break Some(first);
                }
                head.clear();
                line += 1;
                continue;
            }
            _ => break Some(first),
        }
        input.consume(1);
    };
    match first {
        Some(b'0'..=b'9') => Ok((Language::Bristol, line, head)),
        Some(b'/' | b'(' | b'`' | b'a'..=b'z') => Ok((Language::Verilog, line, head)),
        other => Err(FormatError::Content {
            file: name.to_owned(),
            line,
            reason: match other {
                Some(byte) => format!("a netlist doesn't start with {:?}", char::from(byte)),
                None => "there is nothing in it".to_owned(),
            },
            remedy: "give a file in Bristol Fashion, the Bristol format, or yosys's Verilog",
        }),
    }
}
