//! The words of a refusal: what, its value, the limit, the remedy, in one line.
//!
//! An error type of a crate holds these where a value is out of range or a length is wrong, so that the same thing is
//! said the same way everywhere.

use std::io;

/// A number outside its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} is {got}, outside {min} to {max}; {remedy}")]
pub struct OutOfRange {
    /// What the number is, with its article: `the number of axes`, `--jobs`.
    pub what: &'static str,
    /// The number.
    pub got: u64,
    /// The least that is taken.
    pub min: u64,
    /// The most that is taken.
    pub max: u64,
    /// What to do.
    pub remedy: &'static str,
}

impl OutOfRange {
    /// Passes a number within `min` to `max`, both taken.
    ///
    /// # Errors
    /// It is outside.
    pub fn check(
        what: &'static str,
        got: u64,
        range: std::ops::RangeInclusive<u64>,
        remedy: &'static str,
    ) -> Result<(), Self> {
        let (min, max) = range.into_inner();
        if (min..=max).contains(&got) { Ok(()) } else { Err(Self { what, got, min, max, remedy }) }
    }
}

/// What to do about an error of the system with a file.
#[must_use]
pub fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free space there or choose another disk"
        }
        io::ErrorKind::FileTooLarge => "raise the limit of a file's size (ulimit -f)",
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::AlreadyExists => "name another file",
        io::ErrorKind::PermissionDenied => "check the permissions there",
        io::ErrorKind::IsADirectory => "name a file, not a folder",
        io::ErrorKind::NotADirectory => "name a folder, not a file",
        _ => "check that disk",
    }
}
