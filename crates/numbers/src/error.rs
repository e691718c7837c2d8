//! What reading and writing numbers refuses.

use std::io;

/// Why numbers can't be read or written. Each is one line that says what, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What was written names no file of numbers.
    #[error("{spec:?} names no file of numbers: {why}; {remedy}")]
    Spec {
        /// What was written.
        spec: String,
        /// What is wrong with it.
        why: String,
        /// What to write.
        remedy: &'static str,
    },
    /// The system refuses.
    #[error("{origin} can't be {action}: {error}; {}", blindcore_files::refusal::remedy(error))]
    Io {
        /// The file.
        origin: String,
        /// What was being done: `read` or `written`.
        action: &'static str,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The file as a whole is unfit: damaged, foreign, of another kind of number.
    #[error("{origin}: {why}; {remedy}")]
    Unfit {
        /// The file.
        origin: String,
        /// What is wrong.
        why: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A value is unfit.
    #[error("{place} of {origin}: {why}; {remedy}")]
    Value {
        /// The file.
        origin: String,
        /// Where in it: a line and a column, a row and a column, or a position.
        place: String,
        /// What is wrong with it.
        why: String,
        /// What to do.
        remedy: &'static str,
    },
    /// More values than may be read.
    #[error(
        "{origin} holds more than the limit of {limit} values; read fewer columns, or cut it into several files"
    )]
    TooMany {
        /// The file.
        origin: String,
        /// The limit.
        limit: usize,
    },
    /// A column that isn't there.
    #[error("{origin} has no column {name:?}; its columns are {}", list(columns))]
    NoColumn {
        /// The file.
        origin: String,
        /// The column that was asked for.
        name: String,
        /// The columns there are.
        columns: Vec<String>,
    },
    /// The file can't be made.
    #[error(transparent)]
    New(#[from] blindcore_files::new_file::NewFileError),
    /// These values have no place in a file of that kind.
    #[error("{origin} can't hold these numbers: {why}; {remedy}")]
    Misfit {
        /// The file.
        origin: String,
        /// What doesn't fit.
        why: String,
        /// What to do.
        remedy: &'static str,
    },
}

/// Names, not too many of them.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let mut text: Vec<String> = names.iter().take(SHOWN).map(|n| shown(n)).collect();
    if names.len() > SHOWN {
        text.push(format!("and {} more", names.len() - SHOWN));
    }
    text.join(", ")
}

/// A text from a file as it stands in a message: quoted, on one line, cut after 40 characters.
pub(crate) fn shown(text: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// What reading knows while it reads: the name of the file for messages, the columns asked for and the limit.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) origin: &'a str,
    pub(crate) columns: Option<&'a [String]>,
    pub(crate) limit: usize,
    /// Whether its first line was said to hold names.
    pub(crate) named: bool,
    /// Decimals that are looked at beyond what floats hold.
    pub(crate) decimals: Option<i32>,
}

impl Reading<'_> {
    pub(crate) fn io(&self, error: io::Error) -> Error {
        Error::Io { origin: self.origin.to_owned(), action: "read", error }
    }

    pub(crate) fn unfit(&self, why: impl Into<String>, remedy: &'static str) -> Error {
        Error::Unfit { origin: self.origin.to_owned(), why: why.into(), remedy }
    }

    pub(crate) fn value(&self, place: String, why: impl Into<String>, remedy: &'static str) -> Error {
        Error::Value { origin: self.origin.to_owned(), place, why: why.into(), remedy }
    }

    pub(crate) fn too_many(&self) -> Error {
        Error::TooMany { origin: self.origin.to_owned(), limit: self.limit }
    }

    /// Where the columns asked for stand among those there are: all of them where none is asked for.
    pub(crate) fn positions(&self, names: &[String]) -> Result<Vec<usize>, Error> {
        let Some(wanted) = self.columns else { return Ok((0..names.len()).collect()) };
        let mut positions = Vec::with_capacity(wanted.len());
        for name in wanted {
            let mut places = names.iter().enumerate().filter(|(_, n)| *n == name).map(|(i, _)| i);
            let Some(position) = places.next() else {
                return Err(Error::NoColumn {
                    origin: self.origin.to_owned(),
                    name: name.clone(),
                    columns: names.to_vec(),
                });
            };
            if places.next().is_some() {
                let why = format!("two columns are called {}", shown(name));
                return Err(self.unfit(why, "give every column a name of its own"));
            }
            if positions.contains(&position) {
                let why = format!("column {} is asked for twice", shown(name));
                return Err(self.unfit(why, "name every column once"));
            }
            positions.push(position);
        }
        Ok(positions)
    }
}
