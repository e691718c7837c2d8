//! Lines of a file, counted, measured and bounded.

use super::{MAX_ROW_BYTES, Position, SourceError};
use blindcore_files::text;
use blindcore_units::Unit;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Stdin};
use std::path::Path;

/// Bytes read from a file at a time.
const BUFFER: usize = 256 << 10;

/// The lines of a text file, read one at a time.
pub(super) struct Lines<R> {
    input: text::Lines<R>,
    origin: String,
    /// The lines of the row so far, with their ends, and without the byte order mark.
    raw: Vec<u8>,
    /// Its number, counted from 1.
    line: u64,
    /// The number of the line that the row starts at, and of the one behind the row before.
    row: u64,
    behind: u64,
    done: u64,
    total: Option<u64>,
    limit: usize,
}

/// Opens a file. A pipe is none: nobody may be there to write to it.
pub(super) fn open(path: &str) -> Result<Lines<BufReader<File>>, SourceError> {
    let opened = open_regular(Path::new(path)).and_then(|file| Ok((file.metadata()?, file)));
    let (metadata, file) = opened.map_err(|error| failed(path, error))?;
    let mut lines = Lines::new(BufReader::with_capacity(BUFFER, file), path);
    lines.total = Some(metadata.len());
    Ok(lines)
}

/// Opens standard input.
pub(super) fn stdin() -> Lines<BufReader<Stdin>> {
    Lines::new(BufReader::with_capacity(BUFFER, io::stdin()), "standard input")
}

/// What the system said about a file, with what to do about it.
pub(super) fn failed(origin: &str, error: io::Error) -> SourceError {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::PermissionDenied => "check its permissions",
        io::ErrorKind::IsADirectory => "name a file in it",
        io::ErrorKind::InvalidInput => "name a file, or - for standard input",
        io::ErrorKind::UnexpectedEof => "read it again once it is whole",
        _ => "check the disk that it is on",
    };
    SourceError::Io { origin: origin.to_owned(), error, remedy }
}

/// Opens what is to be read anywhere, with more of open(2)'s flags, and does not wait for a pipe's writer.
pub(super) fn open_with(path: &Path, flags: i32) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().read(true).custom_flags(flags | libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
}

/// Opens a regular file.
pub(super) fn open_regular(path: &Path) -> io::Result<File> {
    let file = open_with(path, 0)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a pipe, a device or a folder")),
    }
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R, origin: &str) -> Self {
        let (raw, origin) = (Vec::new(), origin.to_owned());
        let input = text::Lines::new(input);
        Self { input, origin, raw, line: 0, row: 0, behind: 0, done: 0, total: None, limit: MAX_ROW_BYTES }
    }

    #[cfg(test)]
    pub(super) fn with_limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Reads up to a line that is not blank, which the caller defines, and starts a row there; false where there
    /// is none.
    pub(super) fn start_row(&mut self, blank: impl Fn(&[u8]) -> bool) -> Result<bool, SourceError> {
        self.behind = self.line + 1;
        loop {
            self.row = self.line + 1;
            self.raw.clear();
            let read = self.more()?;
            if !read || !blank(&self.raw) {
                return Ok(read);
            }
        }
    }

    /// Reads another line of the row; false where there is none.
    pub(super) fn more(&mut self) -> Result<bool, SourceError> {
        let room = self.limit.saturating_sub(self.raw.len());
        let read = self.input.append(&mut self.raw, room + 1).map_err(|error| failed(&self.origin, error))?;
        self.done += read as u64;
        if read == 0 {
            return match self.total {
                Some(total) if self.done < total => {
                    let why = format!("it ended after {} B of {total} B", self.done);
                    Err(failed(&self.origin, io::Error::new(io::ErrorKind::UnexpectedEof, why)))
                }
                _ => Ok(false),
            };
        }
        self.line += 1;
        if read > room {
            let why = format!("it is over the limit of {} B for a row", self.limit);
            return Err(self.flaw(why, "split the row, or look for a quote or line end that is missing"));
        }
        Ok(true)
    }

    /// The lines of the row so far, with their ends.
    pub(super) fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// The same, for a caller that unquotes it where it lies.
    pub(super) fn raw_mut(&mut self) -> &mut [u8] {
        &mut self.raw
    }

    /// The number of the line that the row starts at, counted from 1.
    pub(super) fn row(&self) -> u64 {
        self.row
    }

    /// The number of the first blank line between this row and the one before, if there is one.
    pub(super) fn blank(&self) -> Option<u64> {
        (self.behind < self.row).then_some(self.behind)
    }

    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    pub(super) fn position(&self) -> Position {
        Position { done: self.done, total: self.total, unit: Unit::Bytes }
    }

    /// What is wrong with the row.
    pub(super) fn flaw(&self, why: String, remedy: &'static str) -> SourceError {
        self.flaw_at(self.row, why, remedy)
    }

    /// What is wrong with a line.
    pub(super) fn flaw_at(&self, line: u64, why: String, remedy: &'static str) -> SourceError {
        SourceError::Row { origin: self.origin.clone(), unit: "line", line, why, remedy }
    }

    /// What is wrong with all of it.
    pub(super) fn unfit(&self, why: &str, remedy: &str) -> SourceError {
        SourceError::Unfit { origin: self.origin.clone(), why: why.to_owned(), remedy: remedy.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_shrinks_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1000).unwrap();
        let mut lines = open(file.path().to_str().unwrap()).unwrap();
        file.as_file().set_len(10).unwrap();
        assert!(lines.start_row(|_| false).unwrap());
        let error = lines.start_row(|_| false).unwrap_err().to_string();
        assert!(error.contains("ended after 10 B of 1000 B; read it again"), "{error}");
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        for path in [&pipe, dir.path(), Path::new("/dev/null")] {
            assert_eq!(open_regular(path).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{path:?}");
        }
        let error = open(pipe.to_str().unwrap()).err().unwrap().to_string();
        assert!(
            error.ends_with("it is a pipe, a device or a folder; name a file, or - for standard input"),
            "{error}"
        );
    }

    #[test]
    fn a_folder_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let opened = open(dir.path().to_str().unwrap()).and_then(|mut lines| lines.start_row(|_| false));
        assert!(matches!(opened, Err(SourceError::Io { .. })));
    }

    #[test]
    fn a_line_may_be_as_long_as_the_limit() {
        let mut lines = Lines::new(&b"1234567\n12345678\n"[..], "x").with_limit(8);
        assert!(lines.start_row(|_| false).unwrap());
        let error = lines.start_row(|_| false).unwrap_err().to_string();
        assert!(error.starts_with("line 2 of x: it is over the limit of 8 B for a row; split"), "{error}");
    }
}
