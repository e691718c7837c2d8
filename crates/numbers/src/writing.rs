//! What the formats need to know while they write.

use std::io;

use crate::Values;
use crate::error::{Error, shown};

/// What writing knows while it writes.
pub(crate) struct Writing<'a> {
    pub(crate) origin: &'a str,
    pub(crate) values: &'a Values,
    pub(crate) names: Option<&'a [String]>,
}

impl Writing<'_> {
    pub(crate) fn io(&self, error: io::Error) -> Error {
        Error::Io { origin: self.origin.to_owned(), action: "written", error }
    }

    pub(crate) fn misfit(&self, why: impl Into<String>, remedy: &'static str) -> Error {
        Error::Misfit { origin: self.origin.to_owned(), why: why.into(), remedy }
    }
}

/// The rows and columns of a list or a matrix, after a look at the names.
pub(crate) fn columns(writing: &Writing, remedy: &'static str) -> Result<(usize, usize), Error> {
    let (rows, width) = match *writing.values.shape() {
        [rows] => (rows, 1),
        [rows, width] => (rows, width),
        ref shape => {
            let why = format!("their shape {shape:?} has {} axes, not one or two", shape.len());
            return Err(writing.misfit(why, remedy));
        }
    };
    if let Some(names) = writing.names {
        if names.len() != width {
            let why = format!("{} names are given for {width} columns", names.len());
            return Err(writing.misfit(why, "give every column one name"));
        }
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let why = format!("two columns are called {}", shown(pair[0]));
            return Err(writing.misfit(why, "give every column a name of its own"));
        }
    }
    Ok((rows, width))
}
