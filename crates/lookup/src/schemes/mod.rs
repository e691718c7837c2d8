//! Schemes: each a value, in a folder of its own, that nothing outside asks for by name.
//!
//! ```text
//!   Geometry ──Params::new──▶ Params ──▶ bytes, operands and operations with their shapes, bits, failure bound
//!                               ├──────▶ Server: preprocess, place, answer     runs operations on any device
//!                               └──────▶ Client: prepare, query, decode        constant time, no I/O
//! ```
//!
//! What differs between schemes is data that planner, store, wire, server and client ask for: what a client keeps
//! ([`Keeps`]), which databases the server works on ([`Operand`]), which passes it makes over them ([`Run`]). A scheme of
//! another crate implements [`Scheme`], calls [`register`] with a `static` of it once, and is built, served, looked up in,
//! planned and measured like those here.

use std::sync::{PoisonError, RwLock};

use crate::Error;

mod double;
mod fastpir;
mod hintless;
pub(crate) mod keeps;
pub(crate) mod lwe;
pub(crate) mod matrix;
mod mulpir;
mod onionpir;
mod onionpir2;
pub(crate) mod parallel;
mod plain;
mod rings;
pub(crate) mod scheme;
mod sealpir;
mod simple;
mod spare;

pub use keeps::{Keeps, SHORT_HINT_BYTES};
pub use onionpir::InsecureOnionPir2021;
pub use plain::InsecurePlain;
pub use scheme::{About, ClientWork, Operand, Origin, RingWork, Run, Scheme, SchemeRef, Security};

impl std::str::FromStr for SchemeRef {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        find(name)
    }
}

/// The schemes of this crate, in the order in which they are offered.
static BUILT_IN: [&dyn Scheme; 9] = [
    &simple::Simple,
    &double::Double,
    &hintless::CLASSICAL,
    &hintless::QUANTUM,
    &onionpir2::SCHEME,
    &sealpir::SCHEME,
    &fastpir::SCHEME,
    &mulpir::SCHEME,
    &onionpir::CLASSICAL,
];
/// Those that were registered since.
static REGISTERED: RwLock<Vec<&'static dyn Scheme>> = RwLock::new(Vec::new());

/// Every scheme that this process knows.
fn known() -> Vec<SchemeRef> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    BUILT_IN.iter().chain(registered.iter()).map(|scheme| SchemeRef(*scheme)).collect()
}

/// The schemes that tables may be built with: those that are secure. Where two suit a table alike, the first is taken.
#[must_use]
pub fn offered() -> Vec<SchemeRef> {
    known().into_iter().filter(|scheme| scheme.about().security.is_some()).collect()
}

/// Those of [`offered`] that a service would choose between: the others are there for comparison.
#[must_use]
pub fn usual() -> Vec<SchemeRef> {
    offered().into_iter().filter(|scheme| !scheme.for_comparison()).collect()
}

/// Those of [`usual`] whose clients fetch nothing before they ask: a hint is a seed at most, however large the table is.
#[must_use]
pub fn without_hint() -> Vec<SchemeRef> {
    let short = |params: crate::Params| params.hint_bytes() <= SHORT_HINT_BYTES as u64;
    usual().into_iter().filter(|scheme| scheme.representative(1 << 20).is_ok_and(short)).collect()
}

/// An option that takes one of [`without_hint`], for messages.
#[must_use]
pub fn option_without_hint() -> String {
    without_hint().first().map(|scheme| format!("--scheme {scheme}")).unwrap_or_default()
}

/// Names of the offered schemes, for messages.
#[must_use]
pub fn offered_names() -> String {
    offered().iter().map(|scheme| scheme.name()).collect::<Vec<_>>().join(", ")
}

/// The scheme of a name.
///
/// # Errors
/// This build knows none of it.
pub fn find(name: &str) -> Result<SchemeRef, Error> {
    known().into_iter().find(|scheme| scheme.name() == name).ok_or_else(|| unknown(name))
}

/// The scheme of a message's number and name. Those whose number alone tells have an empty name.
///
/// # Errors
/// This build knows none of it.
pub fn find_by_wire_id(id: u32, name: &str) -> Result<SchemeRef, Error> {
    let scheme = known().into_iter().find(|scheme| scheme.about().wire_id == id);
    let said = || if name.is_empty() { format!("number {id}") } else { name.to_owned() };
    scheme.filter(|scheme| scheme.wire_name() == name).ok_or_else(|| unknown(&said()))
}

fn unknown(name: &str) -> Error {
    /// Bytes of a name that is shown: it may be a stranger's.
    const SHOWN: usize = 64;
    let plain = |c: &char| c.is_ascii_alphanumeric() || "-_. ".contains(*c);
    let name = name.chars().filter(plain).take(SHOWN).collect();
    Error::UnknownScheme { name, build: BUILD, known: offered_names() }
}

/// This build, in messages.
const BUILD: &str = concat!("blindcore ", env!("CARGO_PKG_VERSION"));

/// The scheme by whose passes and clients a machine is measured: one pass over one matrix of bytes is what others are
/// counted in.
#[must_use]
pub fn yardstick() -> SchemeRef {
    SchemeRef(BUILT_IN[0])
}

/// Adds a scheme to those that this process knows. It may be added again.
///
/// # Errors
/// Another scheme has its name or its number.
pub fn register(scheme: &'static dyn Scheme) -> Result<SchemeRef, Error> {
    let About { name, wire_id, .. } = *scheme.about();
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let mut there = BUILT_IN.iter().chain(registered.iter());
    match there.find(|s| s.about().name == name || s.about().wire_id == wire_id) {
        Some(same) if same.about() == scheme.about() => Ok(SchemeRef(*same)),
        Some(other) => Err(Error::SchemeTaken { name, wire_id, other: other.about().name }),
        None => {
            registered.push(scheme);
            Ok(SchemeRef(scheme))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_are_found_by_name_and_number() {
        for scheme in offered() {
            assert_eq!(find(scheme.name()).unwrap(), scheme);
            assert_eq!(find_by_wire_id(scheme.wire_id(), scheme.wire_name()).unwrap(), scheme);
            assert!(find_by_wire_id(scheme.wire_id(), "another").is_err());
        }
        assert_eq!(
            offered_names(),
            "simple, double, hintless, hintless-q128, onionpir2, sealpir, fastpir, mulpir, onionpir"
        );
        let names: Vec<_> = offered().iter().map(|s| (s.wire_id(), s.wire_name())).collect();
        let later = [
            (3, "hintless"),
            (4, "hintless-q128"),
            (5, "onionpir2"),
            (6, "sealpir"),
            (7, "fastpir"),
            (8, "mulpir"),
            (9, "onionpir"),
        ];
        assert_eq!(names[..2], [(1, ""), (2, "")], "messages stay as they were");
        assert_eq!(names[2..], later);
    }

    #[test]
    fn schemes_without_a_hint_fetch_no_more_for_a_large_table() {
        for scheme in usual() {
            let hint = |bytes| scheme.representative(bytes).unwrap().hint_bytes();
            let (small, large) = (hint(1 << 20), hint(1 << 30));
            assert_eq!(without_hint().contains(&scheme), small == large && small <= 256, "{scheme}");
        }
        let registers: Vec<_> = without_hint().iter().map(|scheme| scheme.registers_keys()).collect();
        assert!(registers.contains(&true) && registers.contains(&false));
    }

    #[test]
    fn what_is_unknown_is_refused_by_name_and_build() {
        let error = find("fo\u{1b}o").unwrap_err().to_string();
        assert_eq!(
            error,
            "scheme `foo` is not known to this build (blindcore 0.1.0), which knows simple, double, hintless, hintless-q128, onionpir2, sealpir, fastpir, mulpir, onionpir; update it"
        );
        let error = find_by_wire_id(77, "").unwrap_err().to_string();
        assert!(error.starts_with("scheme `number 77` is not known"), "{error}");
        let error = find_by_wire_id(77, "newer").unwrap_err().to_string();
        assert!(error.starts_with("scheme `newer` is not known"), "{error}");
        assert!(find(&"x".repeat(1000)).unwrap_err().to_string().len() < 300);
    }
}
