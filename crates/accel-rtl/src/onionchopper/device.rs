//! OnionChopper as a device: its builds by name, and the shapes that it takes.

use std::sync::{Arc, Mutex};

use blindcore_accel::contract::{ContractCapabilities, ContractSlot, Shape};
use blindcore_accel::{Contract, Description, Device, Error, Layout, Slots};
use blindcore_math::Modulus;

use super::board::{Board, Build};
use super::chip::Chip;
use super::contract::{ChipContract, MAX_WORDS};
use super::mapping::{Cut, Mapping, Plan};
use super::options::Options;
use crate::library::find;

/// A device: its name, its library's file, what it is, and its lanes, word and full adders in a row.
type Entry = (&'static str, &'static str, &'static str, [usize; 3]);

/// The devices that there are.
const DEVICES: [Entry; 4] = [
    ("rtl:onionchopper", "onionchopper", "the thesis's chip: two lanes, six stages", [2, 64, 0]),
    (
        "rtl:onionchopper-gathered",
        "onionchopper-gathered",
        "sixteen lanes: one reading of the database serves eight clients",
        [16, 64, 0],
    ),
    ("rtl:onionchopper-lwe", "onionchopper-lwe", "two lanes of 32-bit words modulo 2^32", [2, 32, 0]),
    (
        "rtl:onionchopper-deep",
        "onionchopper-deep",
        "the thesis's chip with eight full adders a stage",
        [2, 64, 8],
    ),
];

/// The most moduli that a chip holds.
const MODULI: usize = 16;

/// A simulated chip.
#[derive(Clone)]
pub struct OnionChopper {
    chip: Arc<Chip>,
    options: Options,
}

impl OnionChopper {
    /// The names of the devices that there are.
    pub fn names() -> impl Iterator<Item = &'static str> {
        DEVICES.iter().map(|(name, ..)| *name)
    }

    fn entry(name: &str) -> Result<Entry, Error> {
        DEVICES
            .into_iter()
            .find(|(n, ..)| *n == name)
            .ok_or_else(|| crate::library::unknown(name, Self::names()))
    }

    /// Opens a chip on a board with the thesis's SSD.
    ///
    /// # Errors
    /// There is no such device, or its library has not been built.
    pub fn open(name: &str) -> Result<Self, Error> {
        Self::with_options(name, Options::default())
    }

    /// Opens a chip that is run another way.
    ///
    /// # Errors
    /// As [`OnionChopper::open`]; or the SSD's rate is none.
    pub fn with_options(name: &str, options: Options) -> Result<Self, Error> {
        let (name, file, what, promised) = Self::entry(name)?;
        let (words, clocks) = options.ssd_rate;
        if words == 0 || clocks < words || clocks > 1 << 14 {
            let why =
                format!("an SSD of {words} words in {clocks} clocks is out of range; use 1/16384 to 1/1");
            return Err(Error::setting(name, why));
        }
        let path = find(name, file)?;
        let board = Board::open(name, &path, promised)?;
        let chip = Chip { name, what, path, build: board.build(), board: Mutex::new(board) };
        Ok(Self { chip: Arc::new(chip), options })
    }

    /// What this chip has.
    #[must_use]
    pub fn build(&self) -> Build {
        self.chip.build
    }
}

impl OnionChopper {
    /// The name that opens it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.chip.name
    }

    /// This chip as a device, with a contract slot.
    #[must_use]
    pub fn device(&self) -> Device {
        let description = Description {
            name: self.chip.name.into(),
            hardware: format!(
                "{}, {} MiB of DRAM of the 4,096 that it addresses, simulated from {}",
                self.chip.what,
                self.build().dram_bytes() >> 20,
                self.chip.path.display()
            ),
            threads: 1,
            why: "asked for by name".into(),
        };
        Device::new(description, Slots { contract: Some(Arc::new(self.clone())), ..Slots::default() })
    }

    /// How a shape is cut, all its queries gathered in one pass.
    ///
    /// # Errors
    /// The shape does not fit the chip, or has more queries than a pass takes.
    pub fn cut(&self, shape: &Shape) -> Result<Cut, Error> {
        self.capabilities().check(shape)?;
        let mapping = self.options.mapping.unwrap_or_else(|| Mapping::for_shape(shape, &self.chip.build));
        Ok(Plan::new(shape, &self.chip.build, mapping)?.loops())
    }

    fn prepared(&self, shape: &Shape) -> Result<ChipContract, Error> {
        self.capabilities().check(shape)?;
        ChipContract::new(&self.chip, self.options, shape)
    }
}

impl ContractSlot for OnionChopper {
    fn capabilities(&self) -> ContractCapabilities {
        ContractCapabilities {
            layouts: vec![Layout::Tiles16x64, Layout::Rows, Layout::Lanes8x4],
            moduli: (self.chip.build.word == 32).then(|| vec![Modulus::Pow2_32]),
            channels: MODULI,
            row_depth: usize::MAX,
            words: Some(MAX_WORDS),
            streams: false,
            simulated: true,
        }
    }

    fn check(&self, shape: &Shape) -> Result<(), Error> {
        self.prepared(shape).map(drop)
    }

    fn prepare(&self, shape: &Shape) -> Result<Arc<dyn Contract>, Error> {
        Ok(Arc::new(self.prepared(shape)?))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::print_stderr, reason = "a test that is skipped says why")]

    use super::*;
    use crate::onionchopper::descriptor::{DRAM_BEATS, Descriptor, HardwareModulus};
    use crate::onionchopper::mapping::{Mapping, Plan};
    use blindcore_accel::Word;

    /// A chip and a job that it can do: one modulus, tiles in two SSD tiles' worth of DRAM.
    fn job() -> Option<(OnionChopper, Plan, Vec<u64>)> {
        let rtl = OnionChopper::open("rtl:onionchopper").map_err(|e| eprintln!("skipped: {e}")).ok()?;
        let shape =
            Shape { n: 20, j: 80, d: 2, p: 2, ..Shape::new(Word::U64, vec![Modulus::prime(65537).unwrap()]) };
        let plan = Plan::new(&shape, &rtl.build(), Mapping::thesis()).unwrap();
        let database = plan.lay_database(|channel, column, deep| (channel + 3 * column + 5 * deep) as u64);
        let stream = plan.stream(&database, |channel, row, deep| (7 * channel + row + deep) as u64);
        Some((rtl, plan, stream))
    }

    /// The error register behind a descriptor; the chip must do the good job right afterwards.
    fn code(change: impl FnOnce(&mut Descriptor, &mut Vec<u64>)) -> Option<u64> {
        let (rtl, plan, stream) = job()?;
        let (mut bad, mut words) = (plan.descriptor.clone(), stream.clone());
        change(&mut bad, &mut words);
        let mut out = vec![0; plan.out_words()];
        let error = rtl.chip.run(&bad, (1, 1), &words, &mut out).expect_err("an error");
        let Error::Hardware { code, .. } = error else { panic!("{error}") };
        rtl.chip.run(&plan.descriptor, (1, 1), &stream, &mut out).expect("the chip goes on");
        Some(code)
    }

    #[test]
    fn the_error_register_names_what_is_wrong() {
        if job().is_none() {
            return;
        }
        type Change = fn(&mut Descriptor, &mut Vec<u64>);
        let changes: [(u64, &str, Change); 17] = [
            (1, "no tiles", |d, _| d.tiles = 0),
            (1, "a tile over half the DRAM", |d, _| d.tile_beats = 1 << 20),
            (1, "a bound of zero", |d, _| d.dram[1].bound = 0),
            (1, "a bound of zero in an SRAM's loop", |d, _| d.sram[2].bound = 0),
            (1, "a bound of zero in the registers'", |d, _| d.rf[0].bound = 0),
            (1, "other lanes than there are", |d, _| d.groups = 3),
            (1, "no bank for C", |d, _| d.c_banks = 0),
            (1, "no watchdog", |d, _| d.watchdog = 0),
            (2, "no moduli", |d, _| d.moduli.clear()),
            (2, "a modulus of zero", |d, _| d.moduli[0].n = 0),
            (2, "a modulus of one", |d, _| d.moduli[0].n = 1),
            (2, "a modulus over 2^64", |d, _| d.moduli[0].n = (1 << 64) + 1),
            (3, "columns behind the tile", |d, _| d.dram[2].bound = 1000),
            (4, "SRAM rows behind the tile", |d, _| d.sram[0].strides[1] += 100),
            (4, "tiles over an SRAM", |d, _| d.sram_rows[0] = 100),
            (5, "words behind the register file's tile", |d, _| d.rf[0].strides[1] += 100),
            (6, "an operand that is its modulus", |_, words| words[0] = 65537),
        ];
        for (want, what, change) in changes {
            assert_eq!(code(change), Some(want), "{what}");
        }
    }

    #[test]
    fn a_stream_that_ends_early_ends_the_run() {
        let Some((rtl, plan, stream)) = job() else { return };
        let mut out = vec![0; plan.out_words()];
        let mut hasty = plan.descriptor.clone();
        hasty.watchdog = 500;
        let error = rtl.chip.run(&hasty, (1, 1), &stream[..stream.len() / 2], &mut out).unwrap_err();
        assert!(matches!(error, Error::Hardware { code: 7, .. }), "{error}");
        assert!(error.to_string().contains("watchdog"), "{error}");
    }

    #[test]
    fn four_gibibytes_of_dram_are_addressed() {
        // A build whose halves have 1.5 GiB each: tiles that a board of 9 MiB cuts stay whole, up to the last of their beats.
        let small = Build {
            lanes: 2,
            word: 64,
            bits: 0,
            latency: 6,
            sram_rows: 128,
            rf_rows: 16,
            half_beats: 9 << 16,
            c_beats: 1 << 17,
        };
        let large = Build { half_beats: 3 << 25, c_beats: 1 << 26, ..small };
        assert_eq!(large.dram_bytes(), 16 * DRAM_BEATS);
        let shape = |d| Shape {
            p: 2,
            n: 2048,
            j: 256,
            k: 2,
            d,
            ..Shape::new(Word::U64, vec![Modulus::prime(65537).unwrap()])
        };
        let tile = |d, build| Plan::new(&shape(d), build, Mapping::thesis()).unwrap().descriptor;
        let (cut, whole) = (tile(120, &small), tile(120, &large));
        assert_eq!((cut.tiles, whole.tiles), (120, 1));
        assert_eq!(whole.tile_beats, 120 * cut.tile_beats);
        // The last step's tile of B begins behind the 256 MiB of 24-bit addresses, within its tile of the SSD.
        let far = |x: usize| {
            whole.dram.iter().map(|l| (l.bound - 1) * l.strides[x]).sum::<usize>() + whole.inner_stride[x]
        };
        assert!(whole.b_base + far(1) > 1 << 24 && whole.b_base + far(1) < whole.tile_beats);
        assert!(far(2) < large.c_beats);
        assert!(whole.registers().contains(&(0x03, whole.tile_beats as u64)));
        // Over half of it, more tiles; a query that does not fit at all is refused with what there is.
        assert_eq!(tile(240, &large).tiles, 2);
        let deep = Shape { n: 2, j: 1 << 27, ..shape(1) };
        let refused = Plan::new(&deep, &large, Mapping::thesis()).unwrap_err().to_string();
        assert!(refused.contains("half of this chip's DRAM, 1572864 KiB"), "{refused}");
    }

    #[test]
    fn registers_hold_what_the_descriptor_says() {
        let (pow32, pow64) =
            (HardwareModulus::from(Modulus::Pow2_32), HardwareModulus::from(Modulus::Pow2_64));
        assert_eq!((pow32.n, pow32.m), (1 << 32, 1 << 96));
        assert_eq!((pow64.n, pow64.m), (1 << 64, 1 << 64));
        for p in [2u64, 3, 65537, (1 << 62) - 57] {
            let HardwareModulus { n, m } = Modulus::prime(p).unwrap().into();
            // m n <= 2^128 < (m + 1) n, without a number of 129 bits: what is over 2^128 wraps.
            let rest = 0u128.wrapping_sub(m.wrapping_mul(n));
            assert!(n == u128::from(p) && rest < n, "{p}");
        }
    }

    #[test]
    fn unknown_names_and_rates_are_refused_with_a_remedy() {
        for name in ["rtl:", "rtl:onion", "cpu"] {
            let error = OnionChopper::open(name).err().expect("refused").to_string();
            assert!(error.contains("rtl:onionchopper-gathered"), "{error}");
        }
        for ssd_rate in [(0, 1), (2, 1), (1, 0), (1, 20_000)] {
            let options = Options { ssd_rate, ..Options::default() };
            let error =
                OnionChopper::with_options("rtl:onionchopper", options).err().expect("refused").to_string();
            assert!(error.contains("out of range"), "{error}");
        }
    }
}
