//! Text that people's programs write: with or without a byte order mark before it, lines that end in LF or CRLF, the last
//! line with an end or without. Every reader of text here goes through this module, so that all take the same files.

use std::io::{self, BufRead, Read};

/// What reading text failed with, where bytes that are none are said as such.
#[must_use]
pub fn in_words(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::InvalidData => io::Error::new(error.kind(), "it is not text in UTF-8"),
        _ => error,
    }
}

/// What some editors put before text in UTF-8, and none of it.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Text without a byte order mark before it.
#[must_use]
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// A line without its end.
#[must_use]
pub fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// What an input gives, without a byte order mark before it.
///
/// # Errors
/// The input can't be read.
pub fn unmarked<R: BufRead>(mut input: R) -> io::Result<impl BufRead> {
    let mut begin = Vec::new();
    input.by_ref().take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut begin)?;
    if begin == BYTE_ORDER_MARK {
        begin.clear();
    }
    Ok(io::Cursor::new(begin).chain(input))
}

/// The lines of a text, one at a time.
///
/// ```
/// use blindcore_files::text::{Lines, without_end};
///
/// let mut lines = Lines::new(&b"\xef\xbb\xbfone\r\ntwo"[..]);
/// let mut line = Vec::new();
/// assert_eq!(lines.append(&mut line, 100)?, 8, "bytes of the file, the mark's and the end's among them");
/// assert_eq!(without_end(&line), b"one");
/// line.clear();
/// lines.append(&mut line, 100)?;
/// assert_eq!(without_end(&line), b"two");
/// assert_eq!(lines.append(&mut line, 100)?, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    begun: bool,
}

impl<R: BufRead> Lines<R> {
    /// The lines of what `input` gives from here on.
    pub fn new(input: R) -> Self {
        Self { input, begun: false }
    }

    /// Adds the next line with its end to `line`, or as many bytes of what is left of it as `most`. Returns how many bytes of
    /// the input that took: none where nothing is left.
    ///
    /// # Errors
    /// The input can't be read.
    pub fn append(&mut self, line: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        let start = line.len();
        let mut read = self.append_raw(line, most)?;
        if !std::mem::replace(&mut self.begun, true) && line[start..].starts_with(BYTE_ORDER_MARK) {
            line.drain(start..start + BYTE_ORDER_MARK.len());
            // Of a line that was cut, the mark took the place of what follows.
            if read == most && line.last() != Some(&b'\n') {
                read += self.append_raw(line, BYTE_ORDER_MARK.len())?;
            }
        }
        Ok(read)
    }

    fn append_raw(&mut self, line: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        let mut read = 0;
        loop {
            let some = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                some => some?,
            };
            let some = &some[..some.len().min(most - read)];
            let end = memchr::memchr(b'\n', some);
            let len = end.map_or(some.len(), |end| end + 1);
            line.extend_from_slice(&some[..len]);
            self.input.consume(len);
            read += len;
            if end.is_some() || len == 0 || read == most {
                return Ok(read);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], most: usize) -> Vec<String> {
        // A buffer of two bytes: marks and ends are cut.
        let mut lines = Lines::new(io::BufReader::with_capacity(2, text));
        let mut all = Vec::new();
        loop {
            let mut line = Vec::new();
            if lines.append(&mut line, most).unwrap() == 0 {
                return all;
            }
            all.push(String::from_utf8_lossy(without_end(&line)).into_owned());
        }
    }

    #[test]
    fn marks_and_ends_are_not_text() {
        for text in
            ["a,b\nc\n\nd", "a,b\r\nc\r\n\r\nd\r\n", "\u{feff}a,b\nc\n\nd\n", "\u{feff}a,b\r\nc\r\n\r\nd"]
        {
            assert_eq!(lines(text.as_bytes(), 100), ["a,b", "c", "", "d"], "{text:?}");
        }
        assert!(lines(b"", 100).is_empty());
        assert_eq!(lines("\u{feff}".as_bytes(), 100), [""]);
        assert_eq!(lines("a\u{feff}b\n\u{feff}c".as_bytes(), 100), ["a\u{feff}b", "\u{feff}c"]);
        assert_eq!(without_mark("\u{feff}\u{feff}a"), "\u{feff}a");
        for (text, want) in [("\u{feff}a", "a"), ("a", "a"), ("", ""), ("abcd", "abcd"), ("\u{feff}", "")] {
            let mut got = String::new();
            unmarked(text.as_bytes()).unwrap().read_to_string(&mut got).unwrap();
            assert_eq!(got, want);
        }
    }

    #[test]
    fn a_line_is_cut_at_its_limit_whether_marked_or_not() {
        for text in ["abcdef\ng", "\u{feff}abcdef\ng"] {
            assert_eq!(lines(text.as_bytes(), 4)[0], "abcd");
            assert_eq!(lines(text.as_bytes(), 7)[..2], ["abcdef", "g"]);
        }
    }
}
