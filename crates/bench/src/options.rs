//! What a benchmark of lookups is asked for.

use std::path::PathBuf;

/// Queries of a gathered pass.
pub(crate) const GATHERED: usize = 16;

/// What is measured, and on how much.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size of the scanned database in GiB, 1/64 to 64.
    pub gib: f64,
    /// Times that each figure is measured, 1 to 1000.
    pub repeat: usize,
    /// Measure only this; everything if `None`.
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
    /// A lookup under registered keys.
    Registered,
    /// Building and updating a table.
    Table,
    /// Passes over a database on its disk.
    Disk,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Scan,
        Self::Hint,
        Self::Client,
        Self::Ring,
        Self::NoHint,
        Self::Registered,
        Self::Table,
        Self::Disk,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::Hint => "hint",
            Self::Client => "client",
            Self::Ring => "ring",
            Self::NoHint => "nohint",
            Self::Registered => "onionpir2",
            Self::Table => "table",
            Self::Disk => "disk",
        }
    }
}
