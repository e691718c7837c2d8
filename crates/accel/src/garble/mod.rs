//! The garble operation: garbling and evaluating a layered program of AND and XOR gates.
//!
//! ```text
//!   Program: layers of      garble:   labels, offset ──▶ tables, labels     one label a slot, for the value 0
//!   free XORs, then of      evaluate: labels, tables ──▶ labels             one label a slot, for whatever value
//!   independent ANDs
//! ```
//!
//! A [`Program`] works on *slots* that hold a label each; a slot is written again when what it held is not needed
//! any more, so that labels take the room of the live wires and not of all. Labels stay between programs, so a
//! circuit that is larger than memory is a sequence of programs over the same slots.
//!
//! Several *instances* of one program run side by side; they share the offset and nothing else. The gate numbers of
//! instance `i` follow those of instance `i - 1`, so that instances are what separate garblings would be.
//!
//! | scheme | bytes a gate | source |
//! |---|---|---|
//! | [`GarblingScheme::HalfGates`] | 32 | Zahur, Rosulek and Evans 2015, figure 2; hash: TMMO of Guo, Katz, Wang and Yu 2020 |
//! | [`GarblingScheme::ThreeHalves`] | 25 | Rosulek and Roy 2021; the same hash |
//! | [`GarblingScheme::InsecureSifo`] | 30 | SIFO 2019, section 3.1.1: SHA-1, 80 bits, three rows; for comparison |
//!
//! The hash of a label `x` under the tweak `t` is `pi(pi(x) ^ t) ^ pi(x)`, with `pi` AES-128 under a public key that
//! a session chooses: tweakable circular correlation robust if `pi` is an ideal permutation (Guo et al., section 7.4 of
//! ePrint 2019/074). A gate number is never used twice under one offset; the holder of the offset counts them.

mod alive;
mod bits;
mod hash;
mod kind;
mod labels;
mod program;
pub mod reference;
pub mod three_halves;
mod wiring;

pub use alive::{Alive, Held};
pub use bits::{Bits, Ranks};
pub use kind::GarblingKind;
pub use labels::{Label, Labels, Offset, room};
pub use program::{Layer, Part, Program, ProgramBuilder, ProgramError, Step};
pub use wiring::{Gate, Kind, MAX_WIRES, Wire, Wiring};

use std::sync::Arc;

use crate::{Cost, Error};

/// Which way to garble, with what is public about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GarblingScheme {
    /// Two 128-bit ciphertexts a gate; the default.
    HalfGates {
        /// The public key of the permutation.
        key: [u8; 16],
    },
    /// Three 64-bit ciphertexts a gate and five bits: where bandwidth is dearer than AES, of which it takes half as
    /// much again.
    ThreeHalves {
        /// The public key of the permutation.
        key: [u8; 16],
    },
    /// SIFO's: SHA-1 over 80-bit labels. Eighty bits and a broken hash: to compare with, never to use.
    InsecureSifo,
}

impl GarblingScheme {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> GarblingKind {
        match self {
            GarblingScheme::HalfGates { .. } => GarblingKind::HalfGates,
            GarblingScheme::ThreeHalves { .. } => GarblingKind::ThreeHalves,
            GarblingScheme::InsecureSifo => GarblingKind::InsecureSifo,
        }
    }

    /// Bytes of a gate's table.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        match self {
            GarblingScheme::HalfGates { .. } => 32,
            GarblingScheme::ThreeHalves { .. } => three_halves::ROW,
            GarblingScheme::InsecureSifo => 30,
        }
    }

    /// Bits of a label.
    #[must_use]
    pub fn label_bits(&self) -> u32 {
        match self {
            GarblingScheme::HalfGates { .. } | GarblingScheme::ThreeHalves { .. } => 128,
            GarblingScheme::InsecureSifo => 80,
        }
    }
}

/// What a device's garble or evaluate slot takes; read it before you prepare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GarbleCapabilities {
    /// The schemes that it has.
    pub schemes: Vec<GarblingKind>,
    /// Instances of a program that it works on side by side at no more cost than one.
    pub lanes: usize,
    /// Whether it is simulated, so that its speed says nothing about this machine.
    pub simulated: bool,
}

impl GarbleCapabilities {
    /// Refuses a scheme that is not among these.
    ///
    /// # Errors
    /// [`Error::GarblingScheme`] names those that are.
    pub fn check(&self, scheme: &GarblingScheme) -> Result<(), Error> {
        if self.schemes.contains(&scheme.kind()) {
            return Ok(());
        }
        let has = self.schemes.iter().map(GarblingKind::to_string).collect::<Vec<_>>().join(", ");
        Err(Error::GarblingScheme { scheme: scheme.kind(), has })
    }
}

/// The garble slot of a device.
pub trait GarbleSlot: Send + Sync {
    /// What it takes.
    fn capabilities(&self) -> GarbleCapabilities;

    /// Prepares garbling under one scheme.
    ///
    /// # Errors
    /// As [`GarbleCapabilities::check`], and no other scheme.
    fn prepare(&self, scheme: &GarblingScheme) -> Result<Arc<dyn Garble>, Error>;
}

/// The evaluate slot of a device. A device may have it without the other: a chip may garble and leave evaluation to the
/// host.
pub trait EvaluateSlot: Send + Sync {
    /// What it takes.
    fn capabilities(&self) -> GarbleCapabilities;

    /// Prepares evaluation under one scheme.
    ///
    /// # Errors
    /// As [`GarbleCapabilities::check`], and no other scheme.
    fn prepare(&self, scheme: &GarblingScheme) -> Result<Arc<dyn Evaluate>, Error>;
}

/// Garbling under one scheme on one device.
pub trait Garble: Send + Sync {
    /// Its scheme.
    fn scheme(&self) -> &GarblingScheme;

    /// Garbles `program`: slots hold labels of the value 0; the others are those XOR the offset.
    ///
    /// `first_gate` is the number of the first AND gate. `tables` has [`GarblingScheme::table_bytes`] for each AND of each
    /// instance: instance by instance, in the program's order.
    ///
    /// # Errors
    /// `labels` has too few slots, `tables` is not as long, or gate numbers would pass 2^63.
    fn garble(
        &self,
        program: &Program,
        offset: &Offset,
        first_gate: u64,
        labels: &mut Labels,
        tables: &mut [u8],
    ) -> Result<Cost, Error>;
}

/// Evaluation under one scheme on one device.
pub trait Evaluate: Send + Sync {
    /// Its scheme.
    fn scheme(&self) -> &GarblingScheme;

    /// Evaluates `program`: slots hold the labels of values that nobody here knows.
    ///
    /// # Errors
    /// As [`Garble::garble`].
    fn evaluate(
        &self,
        program: &Program,
        first_gate: u64,
        labels: &mut Labels,
        tables: &[u8],
    ) -> Result<Cost, Error>;
}

/// Whether operands fit a program; every device asks first.
///
/// # Errors
/// Which does not.
pub fn check(
    scheme: &GarblingScheme,
    program: &Program,
    first_gate: u64,
    labels: &Labels,
    tables: usize,
) -> Result<(), Error> {
    if labels.slots() < program.slots() {
        let (got, want) = (labels.slots(), format!("at least {}", program.slots()));
        return Err(Error::Length { what: "labels", got, want, unit: "slots" });
    }
    let gates = program.ands().saturating_mul(labels.instances());
    let want = gates.saturating_mul(scheme.table_bytes());
    if tables != want {
        let want = want.to_string();
        return Err(Error::Length { what: "tables", got: tables, want, unit: "bytes" });
    }
    match first_gate.checked_add(gates as u64) {
        Some(end) if end <= 1 << 63 => Ok(()),
        _ => Err(Error::GateNumbers { first: first_gate, gates }),
    }
}
