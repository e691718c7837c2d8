//! A run: entries in a temporary file, in order, and the heads that they are told apart by.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use crate::direct;

/// Bytes of a file's buffer while merging, at least, so at most `FAN_IN` times that in all for a tiny budget.
pub(super) const MIN_BUFFER: usize = 4096;
/// Bytes of a file's buffer at most; more gains nothing.
pub(super) const MAX_BUFFER: usize = 2 << 20;
/// Bytes of an entry in a run before its payload, at most: how many bytes the three numbers take, hash, line,
/// length of the payload, without the zeros above them. Room is for three numbers of 16 bytes.
pub(super) const HEADER: usize = WIDTHS + 3 * 16;
pub(super) const WIDTHS: usize = 2;

/// Why entries can't be kept or given back.
#[derive(Debug, thiserror::Error)]
#[error("the temporary file {} can't be {action}: {error}; {}", path.display(), remedy(error))]
pub struct ExternalSortError {
    /// The file, or the folder that it was to be made in.
    pub path: PathBuf,
    /// What was being done: `made`, `written`, `read`.
    pub action: &'static str,
    /// What the system said.
    #[source]
    pub error: io::Error,
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free space there, or name a folder for temporary files on a larger disk"
        }
        io::ErrorKind::FileTooLarge => "raise the limit of a file's size (ulimit -f)",
        io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => {
            "something else removed or cut temporary files; leave them alone and start again"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "name a folder for temporary files that this user may write to"
        }
        _ => "check that disk, or name a folder for temporary files on another one",
    }
}

/// An entry but for its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Head {
    pub(crate) hash: u128,
    pub(crate) line: u64,
    /// The run that it lies in.
    pub(super) run: usize,
    /// Bytes of its payload.
    pub(crate) len: usize,
}

/// Bytes of a header's numbers, by its first two: hash, line, length.
pub(super) fn widths(first: u8, second: u8) -> [usize; 3] {
    [first.min(16), (second >> 4).min(8), (second & 15).min(8)].map(usize::from)
}

/// What the header of an entry says, and how many bytes it has.
#[inline]
pub(super) fn head(entry: &[u8]) -> (Head, usize) {
    let [hash, line, len] = widths(entry[0], entry[1]);
    let (line_at, len_at) = (WIDTHS + hash, WIDTHS + hash + line);
    let head = Head {
        hash: number(entry, WIDTHS, hash),
        line: number(entry, line_at, line) as u64,
        run: 0,
        len: number(entry, len_at, len) as usize,
    };
    (head, len_at + len)
}

/// A number of up to 16 bytes.
#[inline]
fn number(bytes: &[u8], at: usize, width: usize) -> u128 {
    match bytes[at..].first_chunk() {
        // Loaded whole, what doesn't belong to it shifted out.
        Some(sixteen) => match 8 * (16 - width) as u32 {
            u128::BITS => 0,
            above => u128::from_le_bytes(*sixteen) << above >> above,
        },
        None => bytes[at..at + width].iter().rev().fold(0, |n, byte| n << 8 | u128::from(*byte)),
    }
}

/// Entries in a file: for each a header, whose numbers are little-endian, and its payload. No other process
/// reads it, so it starts with no magic.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) path: TempPath,
    pub(super) bytes: u64,
}

/// A run that is being written.
#[derive(Debug)]
pub(super) struct RunWriter {
    pub(super) run: Run,
    pub(super) out: direct::Writer,
}

impl RunWriter {
    pub(super) fn create(dir: &Path) -> Result<Self, ExternalSortError> {
        let made = || {
            let (file, path) = tempfile::Builder::new().prefix("sort-").tempfile_in(dir)?.into_parts();
            Ok((path, direct::Writer::new(file)?))
        };
        let (path, out) =
            made().map_err(|error| ExternalSortError { path: dir.to_owned(), action: "made", error })?;
        Ok(Self { run: Run { path, bytes: 0 }, out })
    }

    /// Writes whole entries.
    pub(super) fn write(&mut self, entries: &[u8]) -> Result<(), ExternalSortError> {
        self.run.bytes += entries.len() as u64;
        self.out.write_all(entries).map_err(failed(&self.run.path, "written"))
    }

    pub(super) fn finish(self) -> Result<Run, ExternalSortError> {
        self.out.into_file().map_err(failed(&self.run.path, "written"))?;
        Ok(self.run)
    }
}

pub(super) fn failed(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> ExternalSortError {
    move |error| ExternalSortError { path: path.to_owned(), action, error }
}
