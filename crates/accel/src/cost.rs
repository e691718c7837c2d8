//! What an operation cost.

use std::time::Duration;

/// The cost of one run. Devices fill in what they know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Wall-clock time.
    pub time: Duration,
    /// Bytes of the database that were read from memory, each counted once a pass.
    pub database_bytes: u64,
    /// Threads that shared the work.
    pub threads: usize,
    /// Clock cycles, on simulated hardware.
    pub cycles: Option<u64>,
}
