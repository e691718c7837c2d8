//! A circuit as people say which they mean: a file, or the name of a problem.

use std::path::Path;

use crate::circuit::Circuit;
use crate::formats::{self, FormatError};
use crate::netlist::Netlist;
use crate::problems::{self, ProblemError, is_name};

/// Why no circuit was found.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file can't be read, or is not a netlist.
    #[error(transparent)]
    File(#[from] FormatError),
    /// No problem has the name with these numbers.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// There is neither.
    #[error(
        "{} names neither a file nor a circuit; `blindcore circuit list` has all names",
        blindcore_units::quoted(.0)
    )]
    Neither(String),
    /// A name, where only a file can be streamed.
    #[error(
        "{0} is a circuit's name, and --stream takes a file; `blindcore circuit make {0} --out FILE` writes one"
    )]
    Stream(String),
}

/// Whether the text means a file: there is one, and it is not a folder that has a circuit's name.
#[must_use]
pub fn is_file(circuit: &str) -> bool {
    let path = Path::new(circuit);
    path.is_file() || path.exists() && !is_name(circuit)
}

/// The circuit of a file or, where there is none, of a name. `note` is told what its user should know: that a file has a
/// circuit's name. A file declares nothing of its inputs, so the two differ in what they refuse.
///
/// # Errors
/// There is neither, or it can't be read or made.
pub fn load(circuit: &str, note: &mut dyn FnMut(&str)) -> Result<Netlist, LoadError> {
    if is_file(circuit) {
        if is_name(circuit) {
            note(&format!(
                "{circuit} is a file here, which is read, and the name of a circuit, which is not: for that one run in another \
                 folder, for the file say ./{circuit}"
            ));
        }
        return Ok(formats::read(circuit)?);
    }
    match problems::make(circuit) {
        Err(ProblemError::Unknown(_)) => Err(LoadError::Neither(circuit.to_owned())),
        made => Ok(made?),
    }
}

/// The circuit of a file that is streamed: see [`Circuit::stream`].
///
/// # Errors
/// As there; or what is meant is a name.
pub fn stream(circuit: &str, folder: &Path) -> Result<Circuit, LoadError> {
    if !is_file(circuit) && is_name(circuit) {
        return Err(LoadError::Stream(circuit.to_owned()));
    }
    Ok(Circuit::stream(Path::new(circuit), folder)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_name_is_one() {
        assert!(problems::PROBLEMS.iter().all(|problem| is_name(problem.name)));
        assert!(
            is_name("intersection4x64")
                && is_name("sort9999999999x8")
                && !is_name("sort8")
                && !is_name("./mult8")
        );
    }
}
