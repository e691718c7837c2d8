//! What a benchmark of lookups is asked for.

use std::path::PathBuf;

use blindcore_lookup::{SchemeRef, schemes};

/// Queries of a gathered pass.
pub(crate) const GATHERED: usize = 16;

/// What is measured, and on how much.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size of the scanned database in GiB, 1/64 to 64.
    pub gib: f64,
    /// Times that each figure is measured, 1 to 1000.
    pub repeat: usize,
    /// Measure only this; if `None` everything but batches, and schemes that are there for comparison.
    pub only: Option<Part>,
    /// A folder on the disk to measure; a file of the database's size is in it meanwhile.
    pub disk: Option<PathBuf>,
    /// The CPU device, such as `cpu:avx2`; one and two of its threads are measured.
    pub device: String,
}

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Passes over a database in memory.
    Scan,
    /// Preprocessing.
    Hint,
    /// Making a query and decoding its answer.
    Client,
    /// Transforms of a ring.
    Ring,
    /// A lookup without a hint.
    NoHint,
    /// A lookup under registered keys by this scheme.
    Registered(SchemeRef),
    /// Batches of keys: by name alone, for they take several gigabytes of memory.
    Batch,
    /// Building and updating a table.
    Table,
    /// Passes over a database on its disk.
    Disk,
}

impl Part {
    /// All of them.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let keyed = schemes::offered().into_iter().filter(|scheme| scheme.registers_keys());
        let before = [Self::Scan, Self::Hint, Self::Client, Self::Ring, Self::NoHint];
        before
            .into_iter()
            .chain(keyed.map(Self::Registered))
            .chain([Self::Batch, Self::Table, Self::Disk])
            .collect()
    }

    /// Whether it is measured where nothing is asked for by name.
    pub(crate) fn is_usual(self) -> bool {
        !matches!(self, Self::Batch) && !matches!(self, Self::Registered(scheme) if scheme.for_comparison())
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::Hint => "hint",
            Self::Client => "client",
            Self::Ring => "ring",
            Self::NoHint => "nohint",
            Self::Registered(scheme) => scheme.name(),
            Self::Batch => "batch",
            Self::Table => "table",
            Self::Disk => "disk",
        }
    }
}
