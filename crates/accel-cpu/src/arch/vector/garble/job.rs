//! What a run works on.

use blindcore_accel::garble::{Label, Offset, Program};

/// What a run works on, besides labels and tables.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(crate) program: &'a Program,
    pub(crate) key: &'a [u8; 16],
    /// The number of the first AND gate.
    pub(crate) first_gate: u64,
    pub(crate) gates: Gates<'a>,
}

/// How ANDs are garbled.
#[derive(Clone, Copy)]
pub(crate) enum Gates<'a> {
    HalfGates,
    /// With the random bits of all gates, if this is the garbler.
    ThreeHalves {
        dice: &'a [Label],
    },
}

/// The tables: written by a garbler, read by an evaluator.
pub(crate) enum Tables<'a> {
    Garble(&'a Offset, &'a mut [u8]),
    Evaluate(&'a [u8]),
}

/// Instances whose labels fill a vector: where they lie, and which they are.
#[derive(Clone, Copy)]
pub(crate) struct Stream {
    pub(crate) labels: *mut Label,
    /// The instance of the first lane.
    pub(crate) first: usize,
    /// How many instances; what is beside them is padding.
    pub(crate) lanes: usize,
    /// Labels from one slot to the next.
    pub(crate) stride: usize,
}

// SAFETY: a stream is a mutable borrow of a group of labels for the length of `run`; threads that share one work on
// slots that the others leave alone (parts and layers of a checked `Program`).
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

/// The tables' beginning, to be indexed by instance and gate; the garbler's with its offset.
#[derive(Clone, Copy)]
pub(crate) enum RawTables {
    Garble(Label, *mut u8),
    Evaluate(*const u8),
}

// SAFETY: every gate of every instance has rows of its own, written by the thread that runs that gate; see `Stream`.
unsafe impl Send for RawTables {}
// SAFETY: as above.
unsafe impl Sync for RawTables {}
