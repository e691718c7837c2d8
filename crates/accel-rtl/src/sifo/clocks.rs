//! An overlay's clock, its link, and what its clocks went to.

/// Clocks per second: the paper's (section 4).
pub const CLOCK: f64 = 200e6;

/// Bytes per second that DMA over PCIe Gen3 x8 moves: 7.88 GB/s of 128b/130b symbols less packets' heads.
pub const DMA: f64 = 6.6e9;

/// What the clocks went to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// From the first write to the last result.
    pub cycles: u64,
    /// Gates that went to a cell.
    pub gates: u64,
    /// Accesses to DDR memory.
    pub ddr_accesses: u64,
    /// Clocks on which the fetch waited for DDR memory.
    pub waits_ddr: u64,
    /// Clocks on which a gate waited for a cell.
    pub waits_cell: u64,
    /// Clocks on which the host waited for the chip or was about to see that it is done.
    pub waits_host: u64,
    /// Register writes.
    pub items: u64,
}

impl std::ops::AddAssign for Clocks {
    /// One run after the other.
    fn add_assign(&mut self, other: Self) {
        self.cycles += other.cycles;
        self.gates += other.gates;
        self.ddr_accesses += other.ddr_accesses;
        self.waits_ddr += other.waits_ddr;
        self.waits_cell += other.waits_cell;
        self.waits_host += other.waits_host;
        self.items += other.items;
    }
}
