//! What a device refuses, each with the value and the limit. What else could be taken, only the place that chose knows: it
//! adds the remedy.

use crate::Word;

/// Why an operation was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No such device, or not on this machine.
    #[error("device {name:?} can't be opened: {why}{}", remedy.as_ref().map_or(String::new(), |r| format!("; {r}")))]
    Device {
        /// The name that was asked for.
        name: String,
        /// What is missing.
        why: String,
        /// What to do, once a registry has added it; see [`crate::DeviceKind::explain`].
        remedy: Option<String>,
    },
    /// A device that can't be run in the way that was asked for.
    #[error("device {name:?} can't be run this way: {why}")]
    Setting {
        /// The device.
        name: String,
        /// Which setting, and what it may be.
        why: String,
    },
    /// A dimension of zero, or a product past what can be addressed.
    #[error("contract shape {shape} is out of range: {why}")]
    Shape {
        /// The shape.
        shape: String,
        /// Which bound it breaks.
        why: String,
    },
    /// A ring without a transform, or over a device's limits.
    #[error("the ring can't be used: {why}")]
    Ring {
        /// What is wrong with it.
        why: String,
    },
    /// An operand of the wrong width.
    #[error("{what} has {got:?} words where the shape asks for {want:?}")]
    WordWidth {
        /// Which operand.
        what: &'static str,
        /// Its width.
        got: Word,
        /// The width that fits.
        want: Word,
    },
    /// An operand of the wrong length.
    #[error("{what} has {got} {unit} where the shape asks for {want}")]
    Length {
        /// Which operand.
        what: &'static str,
        /// Its length.
        got: usize,
        /// The length that fits.
        want: String,
        /// Words or bytes.
        unit: &'static str,
    },
    /// A word that is not a residue.
    #[error(
        "{what} holds {value} at position {position}, which is not below its modulus {modulus}; reduce it first"
    )]
    Residue {
        /// Which operand.
        what: &'static str,
        /// The word.
        value: u64,
        /// Where it stands, in canonical order.
        position: usize,
        /// The modulus.
        modulus: String,
    },
    /// A modulus that bigmod can't take.
    #[error("the modulus can't be used: {why}")]
    Modulus {
        /// What is wrong with it; never its value, which may be secret.
        why: String,
    },
    /// Numbers that are not below the modulus.
    #[error("number {position} of {count} is not below the modulus; reduce it first")]
    NotReduced {
        /// Which.
        position: usize,
        /// How many there are.
        count: usize,
    },
    /// Residues of another modulus or device.
    #[error("residues in the form {got:?} {} where {want:?} works; read them there and place them here", if *same_modulus { "of this modulus" } else { "of another modulus" })]
    Residues {
        /// Their form.
        got: String,
        /// The form that fits.
        want: String,
        /// Whether the modulus is the same.
        same_modulus: bool,
    },
    /// An exponent out of range.
    #[error("{why}; use shorter exponents")]
    Exponent {
        /// What is out of range.
        why: String,
    },
    /// A number without an inverse.
    #[error("number {position} of {count} shares a factor with the modulus and has no inverse")]
    NotInvertible {
        /// Which.
        position: usize,
        /// How many there are.
        count: usize,
    },
    /// A multi-exponentiation out of range.
    #[error("the multi-exponentiation is out of range: {why}")]
    MultiExp {
        /// What is.
        why: String,
    },
    /// Gate numbers past their end.
    #[error("{gates} gates from number {first} on pass 2^63; take a new offset and begin again at 0")]
    GateNumbers {
        /// The first gate's number.
        first: u64,
        /// How many gates.
        gates: usize,
    },
    /// An operation that this device does not have.
    #[error("device {name:?} does not do {operation}")]
    Unsupported {
        /// Which device.
        name: String,
        /// Which operation.
        operation: crate::Operation,
    },
    /// A garbling scheme that this device does not have.
    #[error("this device does not do {scheme}; it does {has}")]
    GarblingScheme {
        /// Which scheme.
        scheme: crate::garble::GarblingKind,
        /// Those that it has.
        has: String,
    },
    /// Memory could not be had.
    #[error("{bytes} bytes of memory could not be had: {why}")]
    Memory {
        /// How many.
        bytes: usize,
        /// What the system said.
        why: String,
    },
    /// The database is not what was written where it lies.
    #[error("{} is damaged: its contents don't fit its checksum; build the database again, or put a copy in its place", path.display())]
    Damaged {
        /// The file.
        path: std::path::PathBuf,
    },
    /// The database could not be read where it lies.
    #[error("{} can't be read at byte {offset}: {why}; check that disk, then the database with `blindcore db verify`", path.display())]
    Read {
        /// The file.
        path: std::path::PathBuf,
        /// Where in it.
        offset: u64,
        /// What the system said.
        why: String,
    },
    /// Whoever takes a database's stripes has had enough of them.
    #[error("stopped")]
    Stopped,
    /// Simulated hardware ended with its error register set.
    #[error("{device} stopped: {what} (error register {code}); {remedy}")]
    Hardware {
        /// Which device.
        device: String,
        /// The register.
        code: u64,
        /// What it means.
        what: &'static str,
        /// What to do.
        remedy: &'static str,
    },
}

impl Error {
    /// A device that can't be opened, without a remedy yet.
    #[must_use]
    pub fn device(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Device { name: name.into(), why: why.into(), remedy: None }
    }

    /// A device that can't be run in the way that was asked for.
    #[must_use]
    pub fn setting(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Setting { name: name.into(), why: why.into() }
    }
}
