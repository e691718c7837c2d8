//! Text files that somebody keeps by hand: lists of tokens, a token.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::refusal::remedy;
use crate::text;

/// Why a small text file is refused.
#[derive(Debug, thiserror::Error)]
pub enum SmallFileError {
    /// The system refuses.
    #[error("{} can't be read: {source}; {}", path.display(), remedy(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is not UTF-8.
    #[error("{} is not text in UTF-8; name the file that was meant, or write it so", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// It is longer than any of its kind.
    #[error("{} is over the limit of {limit} B; name the file that was meant", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The most bytes.
        limit: u64,
    },
}

/// The text of a file of at most `limit` bytes, without a byte order mark, wiped when dropped.
///
/// # Errors
/// It can't be read, is longer or is not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> Result<Zeroizing<String>, SmallFileError> {
    // Room for most at once: little is left behind by growing.
    let mut text = Zeroizing::new(String::with_capacity(limit.min(1 << 16) as usize));
    File::open(path).and_then(|file| file.take(limit + 1).read_to_string(&mut text)).map_err(|source| {
        match source.kind() {
            io::ErrorKind::InvalidData => SmallFileError::NotText { path: path.to_owned() },
            _ => SmallFileError::Read { path: path.to_owned(), source },
        }
    })?;
    if text.len() as u64 > limit {
        return Err(SmallFileError::TooLong { path: path.to_owned(), limit });
    }
    let mark = text.len() - text::without_mark(&text).len();
    text.drain(..mark);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_up_to_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        std::fs::write(&path, "four").unwrap();
        assert_eq!(*read_text(&path, 4).unwrap(), "four");
        std::fs::write(&path, "\u{feff}x").unwrap();
        assert_eq!(*read_text(&path, 4).unwrap(), "x");
        assert!(matches!(read_text(&path, 3), Err(SmallFileError::TooLong { limit: 3, .. })));
        std::fs::write(&path, b"\xff").unwrap();
        assert!(matches!(read_text(&path, 4), Err(SmallFileError::NotText { .. })));
        assert!(matches!(read_text(&folder.path().join("none"), 4), Err(SmallFileError::Read { .. })));
    }
}
