//! What the host writes into the chip before a run: a loop nest over three stores. `hw/rtl/onionchopper/oc_config.sv`
//! decodes it, hw/doc/onionchopper.md says what each register is.

use blindcore_math::Modulus;

/// Beats of 128 bits that an address of the DRAM names: 4 GiB. `DRAM_ADDRESS` in `oc_pkg.sv`.
pub(crate) const DRAM_BEATS: usize = 1 << 28;

/// A loop of the nest: its bound and how far one turn moves A, B and C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loop {
    /// Turns, 1 to 65535.
    pub bound: usize,
    /// Steps of A, B and C: beats of the DRAM, rows of an SRAM or words of a register file, by level.
    pub strides: [usize; 3],
}

impl Loop {
    /// A loop of one turn.
    pub(crate) const ONE: Loop = Loop { bound: 1, strides: [0; 3] };
}

/// The descriptor, field by field as `config_t` in `oc_pkg.sv`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    /// The tiles are in the DRAM already: the SSD is not read.
    pub resident: bool,
    /// Tiles of the SSD, each A and B behind each other.
    pub tiles: usize,
    /// Beats of such a tile.
    pub tile_beats: usize,
    /// Where B begins in it.
    pub b_base: usize,
    /// The DRAM's loops, outermost first: at most six.
    pub dram: Vec<Loop>,
    /// Lanes are groups of 2^`inner_log2`.
    pub inner_log2: u32,
    /// How many groups.
    pub groups: usize,
    /// The lanes of a group sum to one C.
    pub reduce: bool,
    /// Beats from one inner lane's tile to the next one's, for A, B and C; 0: they share it.
    pub inner_stride: [usize; 3],
    /// Beats from one group's tile to the next one's.
    pub group_stride: [usize; 3],
    /// Rows of a tile in an SRAM.
    pub sram_rows: [usize; 3],
    /// Whether a row holds one beat and not two.
    pub one_beat: [bool; 3],
    /// The SRAM's loops, at most four.
    pub sram: Vec<Loop>,
    /// Rows of a tile in a register file.
    pub rf_rows: [usize; 3],
    /// Tiles of C that a register file holds at once.
    pub c_banks: usize,
    /// The register file's loops, at most three.
    pub rf: Vec<Loop>,
    /// The moduli that take turns.
    pub moduli: Vec<HardwareModulus>,
    /// Multiply-accumulates of a lane that each lasts.
    pub mac_period: u64,
    /// Words that are drained under each.
    pub drain_period: u64,
    /// Clocks without any progress after which the chip gives up.
    pub watchdog: u32,
}

/// A modulus as the chip holds it: n and floor(2^128 / n).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HardwareModulus {
    /// 65 bits.
    pub n: u128,
    /// 128 bits.
    pub m: u128,
}

impl From<Modulus> for HardwareModulus {
    fn from(modulus: Modulus) -> Self {
        let n = u128::from(modulus.max_residue()) + 1;
        // floor(2^128 / n) is floor((2^128 - 1) / n), and one more where n divides 2^128.
        Self { n, m: u128::MAX / n + u128::from(n.is_power_of_two()) }
    }
}

impl Descriptor {
    /// The writes that set it, as register and value.
    #[must_use]
    pub(crate) fn registers(&self) -> Vec<(u16, u64)> {
        let word = |x: usize| x as u64;
        let shape = u64::from(self.reduce) << 9 | word(self.groups) << 4 | u64::from(self.inner_log2);
        let rows =
            |rows: [usize; 3], bits: u32| rows.iter().rev().fold(0, |all, rows| all << bits | *rows as u64);
        let flags = self.one_beat.iter().rev().fold(0, |all, flag| all << 1 | u64::from(*flag));
        let mut out = vec![
            (0x01, self.resident.into()),
            (0x02, word(self.tiles)),
            (0x03, word(self.tile_beats)),
            (0x04, word(self.b_base)),
            (0x05, shape),
            (0x0c, rows(self.sram_rows, 8)),
            (0x0d, flags),
            (0x0e, word(self.c_banks) << 12 | rows(self.rf_rows, 4)),
            (0x0f, word(self.moduli.len())),
            (0x10, self.mac_period),
            (0x11, self.drain_period),
            (0x12, self.watchdog.into()),
        ];
        for x in 0..3 {
            out.push((0x06 + x as u16, word(self.inner_stride[x])));
            out.push((0x09 + x as u16, word(self.group_stride[x])));
        }
        for (base, room, loops) in [(0x20, 6, &self.dram), (0x40, 4, &self.sram), (0x60, 3, &self.rf)] {
            for (i, one) in loops.iter().chain(std::iter::repeat(&Loop::ONE)).take(room).enumerate() {
                let at = base + 4 * i as u16;
                out.push((at, word(one.bound)));
                out.extend((0..3).map(|x| (at + 1 + x as u16, word(one.strides[x]))));
            }
        }
        for (i, HardwareModulus { n, m }) in self.moduli.iter().enumerate() {
            let at = 0x100 + 4 * i as u16;
            out.extend([
                (at, *n as u64),
                (at + 1, (n >> 64) as u64),
                (at + 2, *m as u64),
                (at + 3, (m >> 64) as u64),
            ]);
        }
        out
    }
}
