//! How a chip is run: its SSD, what is resident, how operations are cut.

use super::mapping::Mapping;

/// The thesis's SSD: 10 * 2^30 bytes per second at 2 GHz, 0.67 words a clock.
pub const SSD_RATE: (u16, u16) = (67, 100);

/// How a chip is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The SSD's rate: this many 64-bit words in this many clocks, at most one a clock.
    pub ssd_rate: (u16, u16),
    /// The database and the query are in the DRAM before the first clock; for what fits its two halves.
    pub resident: bool,
    /// How operations are cut; by default what suits the shape.
    pub mapping: Option<Mapping>,
}

impl Default for Options {
    fn default() -> Self {
        Self { ssd_rate: SSD_RATE, resident: false, mapping: None }
    }
}
