//! The rtl devices: the SystemVerilog of `hw/`, simulated clock by clock and opened by name like any other device.
//!
//! ```no_run
//! use blindcore_accel::Device;
//! use blindcore_accel_rtl::Rtl;
//!
//! let device = Rtl::open("rtl:onionchopper")?; // made by `make -C hw libraries`
//! println!("{}: {} lanes", device.name(), device.build().lanes);
//! # Ok::<(), blindcore_accel::Error>(())
//! ```
//!
//! Building this crate needs no simulator: a chip is a library that is loaded when its device is opened. The host's part
//! is here: [`mapping`] cuts an operation into tiles and says where each word lies, [`descriptor`] is what the chip is
//! told. Every run's [`Cost`] has what the chip's own counters say.

mod board;
pub mod descriptor;
mod library;
pub mod mapping;
pub mod measure;
pub mod overlay;
pub mod phepu;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use blindcore_accel::contract::Shape;
use blindcore_accel::{
    Contract, Cost, Database, Description, Device, Error, Hardware, Layout, Pass, Placed, Stalls, Traffic,
    Words,
};
use blindcore_math::Modulus;

use board::{Board, Stream};
pub use board::{Build, find};
use mapping::{Mapping, Plan};

/// The names of all devices here.
pub fn names() -> impl Iterator<Item = &'static str> {
    Rtl::names()
        .chain(overlay::Overlay::names())
        .chain(overlay::half_gates::HalfGates::names())
        .chain(phepu::Phepu::names())
}

/// Where the library of one of them lies; it is looked for and not loaded.
///
/// # Errors
/// It is not where it is looked for.
pub fn built(name: &str) -> Result<PathBuf, Error> {
    board::find(name, name.trim_start_matches("rtl:"))
}

/// Opens any of them as it is by default.
///
/// # Errors
/// There is no such device, or its library has not been built.
pub fn open(name: &str) -> Result<Box<dyn Device>, Error> {
    use overlay::{Overlay, half_gates::HalfGates};
    if Overlay::names().any(|n| n == name) {
        return Ok(Box::new(Overlay::open(name)?));
    }
    if HalfGates::names().any(|n| n == name) {
        return Ok(Box::new(HalfGates::open(name)?));
    }
    if phepu::Phepu::names().any(|n| n == name) {
        return Ok(Box::new(phepu::Phepu::open(name)?));
    }
    if Rtl::names().any(|n| n == name) {
        return Ok(Box::new(Rtl::open(name)?));
    }
    let names: Vec<_> = names().collect();
    Err(Error::Device {
        name: name.into(),
        why: "no rtl device has this name".into(),
        remedy: format!("use one of {}", names.join(", ")),
    })
}

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

/// The most 64-bit words that a simulated SSD holds. The host keeps them twice, and a chip takes minutes for them.
pub const MAX_WORDS: usize = 1 << 26;

/// The thesis's SSD: 10 * 2^30 bytes a second at 2 GHz, 0.67 words a clock.
pub const SSD_RATE: (u16, u16) = (67, 100);

/// A simulated chip.
pub struct Rtl {
    chip: Arc<Chip>,
    options: Options,
}

/// How a chip is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The SSD's rate: so many 64-bit words in so many clocks, at most one a clock.
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

struct Chip {
    name: &'static str,
    what: &'static str,
    path: PathBuf,
    build: Build,
    board: Mutex<Board>,
}

impl Rtl {
    /// The names of the devices that there are.
    pub fn names() -> impl Iterator<Item = &'static str> {
        DEVICES.iter().map(|(name, ..)| *name)
    }

    fn entry(name: &str) -> Result<Entry, Error> {
        DEVICES.into_iter().find(|(n, ..)| *n == name).ok_or_else(|| {
            let names: Vec<_> = Self::names().collect();
            let remedy = format!("use one of {}", names.join(", "));
            Error::Device { name: name.into(), why: "no rtl device has this name".into(), remedy }
        })
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
    /// As [`Rtl::open`]; or the SSD's rate is none.
    pub fn with_options(name: &str, options: Options) -> Result<Self, Error> {
        let (name, file, what, promised) = Self::entry(name)?;
        let (words, clocks) = options.ssd_rate;
        if words == 0 || clocks < words || clocks > 1 << 14 {
            let why = format!("an SSD of {words} words in {clocks} clocks is out of range");
            let remedy = "use 1/16384 to 1/1".into();
            return Err(Error::Device { name: name.into(), why, remedy });
        }
        let path = board::find(name, file)?;
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

impl Device for Rtl {
    fn name(&self) -> &str {
        self.chip.name
    }

    fn describe(&self) -> Description {
        Description {
            name: self.chip.name.into(),
            hardware: format!("{}, simulated from {}", self.chip.what, self.chip.path.display()),
            threads: 1,
            why: "asked for by name".into(),
        }
    }

    fn contract(&self, shape: &Shape) -> Result<Box<dyn Contract>, Error> {
        shape.check()?;
        if self.chip.build.word == 32 && shape.moduli.iter().any(|m| *m != Modulus::Pow2_32) {
            let why = "this chip computes modulo 2^32 only; use rtl:onionchopper".into();
            return Err(Error::Shape { shape: shape.to_string(), why });
        }
        if shape.c() > 16 {
            let why = format!("{} moduli are over the 16 that the chip holds", shape.c());
            return Err(Error::Shape { shape: shape.to_string(), why });
        }
        let mapping = self.options.mapping.unwrap_or_else(|| Mapping::for_shape(shape, &self.chip.build));
        // As many queries in a pass as fit; fewer of them fit too.
        let plan = |m: usize| Plan::new(&Shape { m, ..shape.clone() }, &self.chip.build, mapping);
        let words = plan(1)?.words();
        if words > MAX_WORDS {
            let why = format!(
                "{words} words of 64 bits are over the {MAX_WORDS} of a simulated SSD; take a smaller table, or a cpu \
                 device"
            );
            return Err(Error::Shape { shape: shape.to_string(), why });
        }
        let fits = |m: usize| plan(m).is_ok_and(|plan| plan.words() <= MAX_WORDS);
        let (mut gathered, mut over) = (1, shape.m + 1);
        while over - gathered > 1 {
            let middle = gathered.midpoint(over);
            if fits(middle) { gathered = middle } else { over = middle }
        }
        Ok(Box::new(RtlContract {
            chip: self.chip.clone(),
            options: self.options,
            shape: shape.clone(),
            mapping,
            gathered,
        }))
    }
}

struct RtlContract {
    chip: Arc<Chip>,
    options: Options,
    shape: Shape,
    mapping: Mapping,
    gathered: usize,
}

impl Contract for RtlContract {
    fn layout(&self) -> Layout {
        Layout::for_shape(&self.shape)
    }

    fn place(&self, database: Database<'_>) -> Result<Box<dyn Placed>, Error> {
        let shape = &self.shape;
        let layout = self.layout();
        let packed = match database {
            Database::Canonical(words) => {
                shape.check_database(words)?;
                layout.pack(shape, words)
            }
            Database::Packed(pieces) => {
                let mut packed = Vec::new();
                let stripe = layout.stripe_bytes(shape);
                for piece in &pieces {
                    let piece = (**piece).as_ref();
                    if piece.len() % stripe != 0 {
                        let want = format!("a multiple of its stripe, {stripe}");
                        let what = "a piece of the packed database";
                        return Err(Error::Length { what, got: piece.len(), want, unit: "bytes" });
                    }
                    packed.extend_from_slice(piece);
                }
                let want = stripe * layout.stripes(shape);
                if packed.len() != want {
                    let (got, want) = (packed.len(), want.to_string());
                    return Err(Error::Length { what: "packed database", got, want, unit: "bytes" });
                }
                packed
            }
        };
        // The word of a channel (c * d + coefficient), a column (n, q) and a depth (j, k).
        let stripe = layout.stripe_bytes(shape);
        let width = shape.database.bytes();
        let word = |channel: usize, column: usize, deep: usize| match layout {
            Layout::Tiles16x64 => {
                let rows = layout.stripe_rows();
                packed[column / rows * stripe + Layout::tile_index(column % rows, deep)].into()
            }
            Layout::Rows => {
                let (c, d) = (channel / shape.d, channel % shape.d);
                let at = column * stripe + ((c * shape.depth() + deep) * shape.d + d) * width;
                let mut word = [0u8; 8];
                word[..width].copy_from_slice(&packed[at..at + width]);
                u64::from_le_bytes(word)
            }
        };
        // The chip flags what is no residue; it is refused here, where it has a place to name.
        for channel in 0..shape.c() * shape.d {
            let modulus = shape.moduli[channel / shape.d];
            if modulus.max_residue() >= shape.database.max() {
                continue;
            }
            for column in 0..shape.rows() {
                for deep in 0..shape.depth() {
                    let value = word(channel, column, deep);
                    if value > modulus.max_residue() {
                        let (j, k, n, q) =
                            (deep / shape.k, deep % shape.k, column / shape.q, column % shape.q);
                        let (c, d) = (channel / shape.d, channel % shape.d);
                        let position = shape.database_index([j, n, k, q, c, d]);
                        let modulus = modulus.to_string();
                        return Err(Error::Residue { what: "database", value, position, modulus });
                    }
                }
            }
        }
        let shape = Shape { m: self.gathered, ..shape.clone() };
        let plan = Plan::new(&shape, &self.chip.build, self.mapping)?;
        Ok(Box::new(RtlPlaced {
            database: plan.lay_database(word),
            bytes: packed.len(),
            chip: self.chip.clone(),
            options: self.options,
            shape: self.shape.clone(),
            plan,
        }))
    }

    fn begin(&self, _: &Words) -> Result<Box<dyn Pass + '_>, Error> {
        Err(Error::Unsupported { name: self.chip.name.into(), operation: "a contract over streamed stripes" })
    }
}

struct RtlPlaced {
    chip: Arc<Chip>,
    options: Options,
    shape: Shape,
    /// For as many queries as one pass gathers.
    plan: Plan,
    /// B as it lies in each of the SSD's tiles.
    database: Vec<Vec<u64>>,
    bytes: usize,
}

impl Placed for RtlPlaced {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn run(&self, query: &Words) -> Result<(Words, Cost), Error> {
        let queries = self.shape.check_query(query)?;
        let start = Instant::now();
        let mut answer = Words::zeros(self.shape.query_word(), self.shape.answer_len(queries));
        let mut hardware = Hardware::default();
        let mut passes = 0;
        let gathered = self.plan.queries();
        for first in (0..queries).step_by(gathered) {
            let plan = self.plan.for_queries(gathered.min(queries - first), &self.chip.build)?;
            hardware = hardware + self.pass(&plan, query, first, &mut answer)?;
            passes += 1;
        }
        let cost = Cost {
            time: start.elapsed(),
            database_bytes: (self.bytes * passes) as u64,
            threads: 1,
            hardware: Some(hardware),
            ..Cost::default()
        };
        Ok((answer, cost))
    }
}

impl RtlPlaced {
    /// The queries from `first` on, as many as the plan gathers.
    fn pass(&self, plan: &Plan, query: &Words, first: usize, answer: &mut Words) -> Result<Hardware, Error> {
        let shape = &self.shape;
        let stream = plan.stream(&self.database, |channel, row, deep| {
            let (m, p) = (first + row / shape.p, row % shape.p);
            let (c, d) = (channel / shape.d, channel % shape.d);
            query.get(shape.query_index([m, deep / shape.k, p, deep % shape.k, c, d]))
        });
        let mut out = vec![0; plan.out_words()];
        let mut descriptor = plan.descriptor.clone();
        descriptor.resident = self.options.resident;
        let hardware = self.chip.run(&descriptor, self.options.ssd_rate, &stream, &mut out)?;
        let words = out.iter().flat_map(|word| plan.split(*word));
        for (word, at) in words.zip(plan.results()) {
            let Some((channel, column, row)) = at else { continue };
            let (m, p) = (first + row / shape.p, row % shape.p);
            let (c, d) = (channel / shape.d, channel % shape.d);
            let at = shape.answer_index([m, column / shape.q, p, column % shape.q, c, d]);
            match answer {
                Words::U32(answer) => answer[at] = word as u32,
                Words::U64(answer) => answer[at] = word,
                _ => unreachable!("answers have 32- or 64-bit words"),
            }
        }
        Ok(hardware)
    }
}

impl Chip {
    /// Writes the descriptor, runs to the end and reads the counters.
    fn run(
        &self,
        descriptor: &descriptor::Descriptor,
        rate: (u16, u16),
        stream: &[u64],
        out: &mut [u64],
    ) -> Result<Hardware, Error> {
        const CONTROL: u16 = 0;
        const COUNTERS: u16 = 0x80;
        let mut board = self.board.lock().unwrap_or_else(|poisoned| {
            let mut board = poisoned.into_inner();
            board.renew(); // whoever panicked may have left it busy
            board
        });
        for (register, value) in descriptor.registers() {
            board.write(register, value);
        }
        let mut words = stream;
        if descriptor.resident {
            for (tile, words) in stream.chunks(2 * descriptor.tile_beats).take(2).enumerate() {
                for (beat, pair) in words.as_chunks::<2>().0.iter().enumerate() {
                    board.poke(tile * self.build.half_beats + beat, pair[0], pair[1]);
                }
            }
            words = &[];
        }
        board.write(CONTROL, 1);
        // The chip's watchdog ends a run that stands still; this one ends a run that never does.
        let (rate_words, rate_clocks) = (u64::from(rate.0), u64::from(rate.1));
        let macs = descriptor.mac_period.saturating_mul((descriptor.tiles * descriptor.moduli.len()) as u64);
        let most = (4 * stream.len() as u64 * (rate_clocks / rate_words + 1))
            .saturating_add(macs.saturating_mul(64))
            .saturating_add(1_000_000);
        let written = board.run(&Stream { words, rate }, out, most);
        let state = board.read(CONTROL);
        let code = state >> 4 & 15;
        if code != 0 || written != Some(out.len()) {
            board.renew();
            let (what, remedy) = meaning(code);
            return Err(Error::Hardware { device: self.name.into(), code, what, remedy });
        }
        let [
            cycles,
            issued,
            hazard,
            tail,
            registers,
            ssd,
            sram,
            dram,
            ssd_words,
            reads,
            writes,
            rows,
            stores,
            begun,
            outs,
        ] = std::array::from_fn(|i| board.read(COUNTERS + i as u16));
        let lanes = self.build.lanes as u64;
        Ok(Hardware {
            cycles,
            busy: issued,
            macs: issued * lanes,
            stalls: Stalls { ssd, dram, sram, registers, hazard, tail },
            traffic: Traffic {
                ssd_read: 8 * ssd_words,
                dram_read: 16 * reads,
                dram_written: 16 * writes,
                sram_read: 32 * lanes * rows,
                sram_written: 32 * lanes * stores,
                registers_read: self.build.word as u64 / 8 * lanes * (2 * issued + begun),
                out: 16 * outs,
            },
        })
    }
}

/// What the chip's error register says, and what to do. `error_e` in `oc_pkg.sv`.
fn meaning(code: u64) -> (&'static str, &'static str) {
    let report = "report this as a defect of blindcore";
    match code {
        1 => ("the descriptor asks for what this build does not have", report),
        2 => ("a modulus is none, or below 2", "use 2^32, 2^64 or a prime below 2^62"),
        3 => ("an address lies behind its region of the DRAM", report),
        4 => ("an address lies behind its tile in an SRAM", report),
        5 => ("an address lies behind its tile in a register file", report),
        6 => ("an operand was not below its modulus", "reduce it first"),
        7 => ("nothing moved for as long as the watchdog waits", report),
        _ => ("it came to no end, or to another number of results", report),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::print_stderr, reason = "a test that is skipped says why")]

    use super::*;
    use blindcore_accel::Word;
    use descriptor::HardwareModulus;

    /// A chip and a job that it can do: one modulus, tiles in two SSD tiles' worth of DRAM.
    fn job() -> Option<(Rtl, Plan, Vec<u64>)> {
        let rtl = Rtl::open("rtl:onionchopper").map_err(|e| eprintln!("skipped: {e}")).ok()?;
        let shape =
            Shape { n: 20, j: 80, d: 2, p: 2, ..Shape::new(Word::U64, vec![Modulus::prime(65537).unwrap()]) };
        let plan = Plan::new(&shape, &rtl.build(), Mapping::thesis()).unwrap();
        let database = plan.lay_database(|channel, column, deep| (channel + 3 * column + 5 * deep) as u64);
        let stream = plan.stream(&database, |channel, row, deep| (7 * channel + row + deep) as u64);
        Some((rtl, plan, stream))
    }

    /// The error register behind a descriptor; the chip must do the good job right afterwards.
    fn code(change: impl FnOnce(&mut descriptor::Descriptor, &mut Vec<u64>)) -> Option<u64> {
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
        type Change = fn(&mut descriptor::Descriptor, &mut Vec<u64>);
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
            let error = Rtl::open(name).err().expect("refused").to_string();
            assert!(error.contains("rtl:onionchopper-gathered"), "{error}");
        }
        for ssd_rate in [(0, 1), (2, 1), (1, 0), (1, 20_000)] {
            let options = Options { ssd_rate, ..Options::default() };
            let error = Rtl::with_options("rtl:onionchopper", options).err().expect("refused").to_string();
            assert!(error.contains("out of range"), "{error}");
        }
    }
}
