//! What of a table is refused, and the checks of names, numbers and lengths.

use std::collections::HashSet;

use crate::PartKind;

/// What a [`crate::proto::Table`] says in `protocol_version`, at most: 1, or 2 where it has changes, records of several
/// blocks or proofs, or 3 where its keys have a form, or 4 where it can be asked in batches.
pub const PROTOCOL_VERSION: u32 = 4;
/// Bytes of a table's name.
pub const MAX_NAME_BYTES: usize = 255;
/// Bytes of a column's name.
pub const MAX_COLUMN_NAME_BYTES: usize = 255;
/// Columns of a record.
pub const MAX_VALUE_COLUMNS: usize = 4096;

/// Why a description is not a table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// Another protocol.
    #[error(
        "the table speaks protocol version {got}, this program versions 1 to {PROTOCOL_VERSION}; update the older of \
         client and server"
    )]
    Version {
        /// Its version.
        got: u32,
    },
    /// A name that a table or a column can't have.
    #[error("{what} {name} is refused: it has to be {rule}; rename it")]
    Name {
        /// Whose name.
        what: &'static str,
        /// The name, or what can be said of it.
        name: String,
        /// What is allowed.
        rule: &'static str,
    },
    /// A column twice.
    #[error("column {name:?} is there twice; rename one")]
    DuplicateColumn {
        /// Its name.
        name: String,
    },
    /// A number outside its range.
    #[error("{what} is {got}, outside {min} to {max}; {remedy}")]
    Range {
        /// Which number.
        what: &'static str,
        /// Its value.
        got: u64,
        /// The least that is allowed.
        min: u64,
        /// The most that is allowed.
        max: u64,
        /// What to do.
        remedy: &'static str,
    },
    /// Bytes of the wrong length.
    #[error("{what} has {got} bytes where the table makes it {want}; {REMEDY}")]
    Length {
        /// Which bytes.
        what: &'static str,
        /// How many there are.
        got: u64,
        /// How many there should be.
        want: u64,
    },
    /// Something that has to be there is not, or the other way round.
    #[error("the table's description {what}; {REMEDY}")]
    Shape {
        /// What is wrong.
        what: &'static str,
    },
    /// A digest that is not what it stands for.
    #[error("{what} is not the digest of what came with it; {REMEDY}")]
    Digest {
        /// Which digest.
        what: &'static str,
    },
    /// A scheme that this program has not.
    #[error("table {table}, part {part}: {source}")]
    Scheme {
        /// The table's name.
        table: String,
        /// The part.
        part: PartKind,
        /// Which scheme, and which are known.
        source: blindcore_lookup::Error,
    },
    /// Parameters that no lookup may use.
    #[error("part {part}: {source}")]
    Params {
        /// The part.
        part: PartKind,
        /// What is wrong with them.
        source: blindcore_lookup::Error,
    },
}

const REMEDY: &str = "the server does not follow the protocol, or something changed the message on its way";

/// A table's name: 1 to [`MAX_NAME_BYTES`] bytes of letters, digits, `_`, `.` and `-`, so that it stands in
/// URLs, file names and logs as it is; so neither `.` nor `..`, which a URL's path takes for its folders.
///
/// # Errors
/// It is something else.
pub fn check_table_name(name: &str) -> Result<(), TableError> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
    let folder = matches!(name, "." | "..");
    if (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(allowed) && !folder {
        return Ok(());
    }
    Err(TableError::Name {
        what: "a table's name",
        name: shown(name),
        rule: "1 to 255 bytes of A-Z a-z 0-9 _ . -, and neither . nor ..",
    })
}

/// A column's name: up to [`MAX_COLUMN_NAME_BYTES`] bytes of text without control characters.
///
/// # Errors
/// It is something else.
pub fn check_column_name(name: &str) -> Result<(), TableError> {
    if name.len() <= MAX_COLUMN_NAME_BYTES && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let rule = "at most 255 bytes without control characters";
    Err(TableError::Name { what: "a column's name", name: shown(name), rule })
}

/// A name that may be a stranger's, fit for a line of text.
pub(crate) fn shown(name: &str) -> String {
    if name.len() <= MAX_NAME_BYTES { format!("{name:?}") } else { format!("of {} bytes", name.len()) }
}

pub(crate) fn check_columns(columns: &[String]) -> Result<(), TableError> {
    range("number of value columns", columns.len() as u64, 0, MAX_VALUE_COLUMNS as u64)?;
    let mut seen = HashSet::with_capacity(columns.len());
    for name in columns {
        check_column_name(name)?;
        if !seen.insert(name) {
            return Err(TableError::DuplicateColumn { name: name.clone() });
        }
    }
    Ok(())
}

pub(crate) fn range(what: &'static str, got: u64, min: u64, max: u64) -> Result<(), TableError> {
    if (min..=max).contains(&got) {
        return Ok(());
    }
    Err(TableError::Range { what, got, min, max, remedy: "build the table again, or split it" })
}

pub(crate) fn fixed(what: &'static str, bytes: &[u8]) -> Result<[u8; 32], TableError> {
    bytes.try_into().map_err(|_| TableError::Length { what, got: bytes.len() as u64, want: 32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for good in ["a", "Top-1.000_x", "...", ".x", &"x".repeat(255)] {
            assert!(check_table_name(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a b", "a/b", "é", "a\0", &"x".repeat(256)] {
            assert!(check_table_name(bad).is_err(), "{bad}");
        }
        assert!(check_column_name("größe (m)").is_ok());
        assert!(check_column_name("a\u{1b}[2J").is_err());
        let long = check_table_name(&"x".repeat(5000)).unwrap_err().to_string();
        assert!(long.contains("of 5000 bytes") && long.len() < 300, "{long}");
    }
}
