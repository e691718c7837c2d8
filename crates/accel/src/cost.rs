//! What an operation cost.

use std::time::Duration;

/// The cost of one run. Devices fill in what they know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Wall-clock time.
    pub time: Duration,
    /// Bytes of the database that were read from memory, each counted once a pass.
    pub database_bytes: u64,
    /// Multiplications modulo the modulus (bigmod).
    pub multiplications: u64,
    /// Squarings modulo the modulus (bigmod).
    pub squarings: u64,
    /// Butterflies of transforms, one for each two words of a layer.
    pub butterflies: u64,
    /// AND gates that were garbled or evaluated.
    pub and_gates: u64,
    /// XOR gates that were.
    pub xor_gates: u64,
    /// Threads that shared the work.
    pub threads: usize,
    /// What the clocks of simulated hardware went to.
    pub hardware: Option<Hardware>,
}

/// Clocks and traffic of simulated hardware, counted by the hardware itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hardware {
    /// Clocks from start to end.
    pub cycles: u64,
    /// Clocks on which the lanes multiplied; every lane does at once.
    pub busy: u64,
    /// Multiply-accumulates, of all lanes.
    pub macs: u64,
    /// The clocks on which they did not, by cause. With `busy` they make `cycles`.
    pub stalls: Stalls,
    /// What moved at each level of the storage hierarchy.
    pub traffic: Traffic,
}

/// Clocks without a multiply-accumulate, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// The SSD's stream had not brought what comes next.
    pub ssd: u64,
    /// The DRAM was bringing it.
    pub dram: u64,
    /// Both halves of an SRAM were in use.
    pub sram: u64,
    /// Register files were being filled.
    pub registers: u64,
    /// A sum in flight was needed.
    pub hazard: u64,
    /// The last sums were leaving.
    pub tail: u64,
}

/// Bytes moved at each level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Out of the SSD.
    pub ssd_read: u64,
    /// Out of the DRAM.
    pub dram_read: u64,
    /// Into the DRAM.
    pub dram_written: u64,
    /// Out of all SRAMs.
    pub sram_read: u64,
    /// Sums into all SRAMs.
    pub sram_written: u64,
    /// Words out of all register files into compute units.
    pub registers_read: u64,
    /// Results out of the chip.
    pub out: u64,
}

impl std::ops::Add for Hardware {
    type Output = Self;

    /// One run after the other.
    fn add(self, other: Self) -> Self {
        let (s, t, a, b) = (self.stalls, other.stalls, self.traffic, other.traffic);
        Self {
            cycles: self.cycles + other.cycles,
            busy: self.busy + other.busy,
            macs: self.macs + other.macs,
            stalls: Stalls {
                ssd: s.ssd + t.ssd,
                dram: s.dram + t.dram,
                sram: s.sram + t.sram,
                registers: s.registers + t.registers,
                hazard: s.hazard + t.hazard,
                tail: s.tail + t.tail,
            },
            traffic: Traffic {
                ssd_read: a.ssd_read + b.ssd_read,
                dram_read: a.dram_read + b.dram_read,
                dram_written: a.dram_written + b.dram_written,
                sram_read: a.sram_read + b.sram_read,
                sram_written: a.sram_written + b.sram_written,
                registers_read: a.registers_read + b.registers_read,
                out: a.out + b.out,
            },
        }
    }
}
