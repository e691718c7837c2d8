//! The half-gates overlay: a gate a clock in each lane, garbling or evaluating.
//!
//! ```no_run
//! use blindcore_accel::garble::{Labels, Offset, ProgramBuilder, GarblingScheme};
//! use blindcore_accel_rtl::sifo::half_gates::HalfGates;
//!
//! let mut program = ProgramBuilder::new(3);
//! program.and(2, 0, 1)?;
//! let program = program.finish();
//! let chip = HalfGates::open("rtl:sifo-half-gates")?; // made by `make -C hw libraries`
//! let (mut labels, mut tables) = (Labels::new(3, 1), [0; 32]);
//! let offset = Offset::new(0xdead_beef);
//! chip.device().garble(&GarblingScheme::HalfGates { key: [7; 16] })?.garble(&program, &offset, 0, &mut labels, &mut tables)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Instances of a program go to the chip's lanes, as many at once as it has; a chip that garbles one instance leaves the
//! other lanes' results unread.

use std::sync::Arc;

use blindcore_accel::garble::{
    self, Evaluate, EvaluateSlot, Garble, GarbleCapabilities, GarbleSlot, GarblingKind, GarblingScheme,
    Labels, Offset, Program,
};
use blindcore_accel::{Cost, Device, Error, Slots};

use super::chip::{self, Chip, Entry};
use super::clocks::{CLOCK, Clocks, DMA};
use super::library::{Build, Tables, Timing};
use super::schedule::{Op, Place, Schedule};

const DEVICES: [Entry; 1] = [Entry {
    name: "rtl:sifo-half-gates",
    file: "sifo-half-gates",
    what: "the half-gates overlay: four lanes of half gates over AES",
    label: 128,
    lanes: 4,
}];

/// Bytes of a command as DMA brings it: 96 bits.
const COMMAND_BYTES: f64 = 12.0;

/// How the chip is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HalfGatesSettings {
    /// Bytes per second each way between host and board; none: the link never holds the chip up.
    pub dma: Option<f64>,
    /// Nanoseconds of an access to DDR memory; accesses overlap.
    pub ddr_ns: f64,
}

impl HalfGatesSettings {
    /// The paper's board: PCIe Gen3 x8, DDR memory of 180 ns.
    pub const BOARD: HalfGatesSettings = HalfGatesSettings { dma: Some(DMA), ddr_ns: 180.0 };
    /// What the cells do if link and memory keep up.
    pub const UNBOUND: HalfGatesSettings = HalfGatesSettings { dma: None, ddr_ns: 180.0 };

    fn timing(&self) -> Timing {
        let clocks = |ns: f64| (ns * 1e-9 * CLOCK).round().clamp(1.0, 65535.0) as u32;
        let bytes = self.dma.map(|rate| rate / CLOCK);
        Timing {
            period: bytes
                .map_or(0, |bytes| (64.0 * COMMAND_BYTES / bytes).round().clamp(1.0, 65535.0) as u32),
            sync: 0,
            latency: clocks(self.ddr_ns),
            tables: bytes.map_or(0, |bytes| (64.0 * bytes).round().clamp(1.0, 1e9) as u32),
        }
    }
}

/// What a program became, beside the clocks that it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What the clocks went to.
    pub clocks: Clocks,
    /// Commands, headers aside, of a pass.
    pub commands: u64,
    /// Full adders that were one command.
    pub full_adders: u64,
    /// Labels that went to DDR memory and came back.
    pub spilled: u64,
    /// How often the chip had to wait for what was under way.
    pub fences: u64,
}

impl std::ops::AddAssign for Report {
    /// One program after the other.
    fn add_assign(&mut self, other: Self) {
        self.clocks += other.clocks;
        self.commands += other.commands;
        self.full_adders += other.full_adders;
        self.spilled += other.spilled;
        self.fences += other.fences;
    }
}

/// A simulated half-gates overlay.
#[derive(Clone)]
pub struct HalfGates {
    chip: Arc<Chip>,
    settings: HalfGatesSettings,
}

enum Side<'a> {
    Garble(&'a Offset, &'a mut [u8]),
    Evaluate(&'a [u8]),
}

impl HalfGates {
    /// The names of the devices that there are.
    pub fn names() -> impl Iterator<Item = &'static str> {
        DEVICES.iter().map(|entry| entry.name)
    }

    /// Opens a chip on the paper's board.
    ///
    /// # Errors
    /// There is no such device, or its library has not been built.
    pub fn open(name: &str) -> Result<Self, Error> {
        Self::with_settings(name, HalfGatesSettings::BOARD)
    }

    /// Opens a chip that is run another way.
    ///
    /// # Errors
    /// As [`HalfGates::open`].
    pub fn with_settings(name: &str, settings: HalfGatesSettings) -> Result<Self, Error> {
        let chip = Chip::open(&DEVICES, name)?;
        Ok(Self { chip: Arc::new(chip), settings })
    }

    /// This chip as a device, which garbles and evaluates.
    #[must_use]
    pub fn device(&self) -> Device {
        let (garble, evaluate) = (Some(Arc::new(self.clone()) as _), Some(Arc::new(self.clone()) as _));
        Device::new(self.chip.describe(), Slots { garble, evaluate, ..Slots::default() })
    }

    /// The name that opens it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.chip.name
    }

    fn garbling(&self) -> GarbleCapabilities {
        let (schemes, lanes) = (vec![GarblingKind::HalfGates], self.chip.build.lanes);
        GarbleCapabilities { schemes, lanes, simulated: true }
    }

    fn prepared(&self, scheme: &GarblingScheme) -> Result<Arc<ChipGarble>, Error> {
        self.garbling().check(scheme)?;
        Ok(Arc::new(ChipGarble { chip: self.clone(), scheme: *scheme }))
    }

    /// What this chip has.
    #[must_use]
    pub fn build(&self) -> Build {
        self.chip.build
    }

    /// What a program becomes on this chip, clocks aside; of the slots that it writes, `wanted` alone are asked for.
    ///
    /// # Errors
    /// It doesn't fit.
    ///
    /// # Panics
    /// A slot that the program hasn't.
    pub fn plan(&self, program: &Program, wanted: &[u32]) -> Result<Report, Error> {
        let (_, report) = self.schedule(program, Some(wanted))?;
        Ok(report)
    }

    /// Garbles every instance and says what it took. Of the slots that the program writes, `wanted` alone have their labels
    /// in the end: a wire that nobody asks for need never leave a cell.
    ///
    /// # Errors
    /// Operands that don't fit, or the chip stopped.
    ///
    /// # Panics
    /// A slot that the program hasn't.
    #[allow(clippy::too_many_arguments, reason = "the operation's, and what is wanted of it")]
    pub fn garble_wanted(
        &self,
        key: &[u8; 16],
        program: &Program,
        wanted: &[u32],
        offset: &Offset,
        first_gate: u64,
        labels: &mut Labels,
        tables: &mut [u8],
    ) -> Result<Report, Error> {
        self.passes(key, program, Some(wanted), first_gate, labels, Side::Garble(offset, tables))
    }

    /// The other side of [`HalfGates::garble_wanted`]: labels of whatever values in, those that are wanted out.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub fn evaluate_wanted(
        &self,
        key: &[u8; 16],
        program: &Program,
        wanted: &[u32],
        first_gate: u64,
        labels: &mut Labels,
        tables: &[u8],
    ) -> Result<Report, Error> {
        self.passes(key, program, Some(wanted), first_gate, labels, Side::Evaluate(tables))
    }

    fn schedule(&self, program: &Program, wanted: Option<&[u32]>) -> Result<(Schedule, Report), Error> {
        let Build { places, ddr, .. } = self.chip.build;
        let schedule = Schedule::new(program, places, wanted).map_err(|_| Error::Shape {
            shape: "a program".into(),
            why: format!("{places} places are too few"),
        })?;
        if schedule.ddr_places() > ddr as u64 {
            let want = format!("at most {ddr} beside {places} in block RAM");
            let got = schedule.ddr_places() as usize;
            return Err(Error::Length {
                what: "the program's labels in DDR memory",
                got,
                want,
                unit: "places",
            });
        }
        let report = Report {
            clocks: Clocks::default(),
            commands: schedule.batches.iter().map(|(_, ops)| ops.len() as u64).sum(),
            full_adders: schedule.full_adders as u64,
            spilled: schedule.spilled as u64,
            fences: schedule.stages as u64,
        };
        Ok((schedule, report))
    }

    fn passes(
        &self,
        key: &[u8; 16],
        program: &Program,
        wanted: Option<&[u32]>,
        first_gate: u64,
        labels: &mut Labels,
        mut side: Side<'_>,
    ) -> Result<Report, Error> {
        let scheme = GarblingScheme::HalfGates { key: *key };
        let length = match &side {
            Side::Garble(_, tables) => tables.len(),
            Side::Evaluate(tables) => tables.len(),
        };
        garble::check(&scheme, program, first_gate, labels, length)?;
        let (schedule, mut report) = self.schedule(program, wanted)?;
        let lanes = self.chip.build.lanes;
        let passes = labels.instances().div_ceil(lanes);
        for pass in 0..passes {
            let first = pass * lanes;
            report.clocks += self.pass(key, program, &schedule, first_gate, first, labels, &mut side)?;
        }
        Ok(report)
    }

    /// The instances from `first` on, as many as there are lanes.
    #[allow(clippy::too_many_arguments, reason = "all of it is one pass's")]
    fn pass(
        &self,
        key: &[u8; 16],
        program: &Program,
        schedule: &Schedule,
        first_gate: u64,
        first: usize,
        labels: &mut Labels,
        side: &mut Side<'_>,
    ) -> Result<Clocks, Error> {
        let lanes = self.chip.build.lanes;
        let here = lanes.min(labels.instances() - first);
        let ands = program.ands();
        let mut board = self.chip.board();
        for (slot, ddr) in &schedule.inputs {
            let all: Vec<_> = (0..lanes)
                .map(|lane| if lane < here { labels.get(*slot, first + lane) } else { 0 })
                .collect();
            board.poke((*ddr as u32) << 1, &all);
        }
        let (offset, evaluate) = match side {
            Side::Garble(offset, _) => (offset.label(), 0),
            Side::Evaluate(_) => (0, 1),
        };
        let key = u128::from_le_bytes(*key);
        // hg_registers.sv
        let registers = [
            offset as u64,
            (offset >> 64) as u64,
            key as u64,
            (key >> 64) as u64,
            first_gate + (first * ands) as u64,
            ands as u64,
            evaluate,
        ];
        let mut items: Vec<u32> = Vec::new();
        for (register, value) in registers.into_iter().enumerate() {
            push(&mut items, Kind::Register, u128::from(value) | (register as u128) << 64);
        }
        for (fence, ops) in &schedule.batches {
            let header = ops.len() as u32 | ops[0].code() << 24 | u32::from(*fence) << 27;
            push(&mut items, Kind::Header, header.into());
            ops.iter().for_each(|op| push(&mut items, Kind::Gate, payload(*op)));
        }
        let timing = self.settings.timing();
        let row = 32;
        // Tables as the chip has them: those of all lanes, AND by AND.
        let mut rows = vec![0u8; ands * lanes * row];
        let at = |lane: usize, and: usize| ((first + lane) * ands + and) * row;
        if let Side::Evaluate(tables) = side {
            for (and, rows) in rows.chunks_exact_mut(lanes * row).enumerate() {
                for lane in 0..here {
                    rows[lane * row..][..row].copy_from_slice(&tables[at(lane, and)..][..row]);
                }
            }
        }
        // The chip's watchdog ends a run that stands still; this one ends a run that never does.
        let count = (items.len() / 4) as u64;
        let most = 10_000 + count * (200 + 4 * u64::from(timing.latency) + u64::from(timing.period));
        let tables = match side {
            Side::Garble(..) => Tables::Out(&mut rows),
            Side::Evaluate(_) => Tables::In(&rows),
        };
        let ended = board.run(timing, &items, tables, most);
        let out = matches!(side, Side::Garble(..)).then_some(rows.len());
        let clocks = self.chip.ended(&mut board, &ended, out)?;
        if let Side::Garble(_, tables) = side {
            for (and, rows) in rows.chunks_exact(lanes * row).enumerate() {
                for lane in 0..here {
                    tables[at(lane, and)..][..row].copy_from_slice(&rows[lane * row..][..row]);
                }
            }
        }
        for (slot, place) in &schedule.outputs {
            let address = match place {
                Place::Ram(place) => place << 1 | 1,
                Place::Ddr(ddr) => (*ddr as u32) << 1,
            };
            for (lane, label) in board.peek(address).into_iter().enumerate().take(here) {
                labels.set(*slot, first + lane, label);
            }
        }
        Ok(clocks)
    }
}

/// What an item is (`hg_overlay.sv`).
#[derive(Clone, Copy)]
enum Kind {
    Gate = 0,
    Header = 1,
    Register = 2,
}

fn push(items: &mut Vec<u32>, kind: Kind, payload: u128) {
    let item = payload | (kind as u128) << 96;
    items.extend([0, 32, 64, 96].map(|shift| (item >> shift) as u32));
}

/// A command: a 18:0, b 37:19, c 56:38, out 75:57, out2 94:76; a DDR place is in b and c.
fn payload(op: Op) -> u128 {
    let fields = |a: u32, b: u32, c: u32, out: u32, out2: u32| {
        u128::from(a)
            | u128::from(b) << 19
            | u128::from(c) << 38
            | u128::from(out) << 57
            | u128::from(out2) << 76
    };
    match op {
        Op::Xor { out, a, b } | Op::And { out, a, b } => fields(a, b, 0, out, 0),
        Op::Full { sum, carry, a, b, c } => fields(a, b, c, sum, carry),
        Op::Load { place, ddr } => fields(0, 0, 0, place, 0) | u128::from(ddr) << 19,
        Op::Store { place, ddr } => fields(place, 0, 0, 0, 0) | u128::from(ddr) << 19,
    }
}

impl GarbleSlot for HalfGates {
    fn capabilities(&self) -> GarbleCapabilities {
        self.garbling()
    }

    fn prepare(&self, scheme: &GarblingScheme) -> Result<Arc<dyn Garble>, Error> {
        Ok(self.prepared(scheme)?)
    }
}

impl EvaluateSlot for HalfGates {
    fn capabilities(&self) -> GarbleCapabilities {
        self.garbling()
    }

    fn prepare(&self, scheme: &GarblingScheme) -> Result<Arc<dyn Evaluate>, Error> {
        Ok(self.prepared(scheme)?)
    }
}

struct ChipGarble {
    chip: HalfGates,
    scheme: GarblingScheme,
}

impl ChipGarble {
    fn run(
        &self,
        program: &Program,
        first_gate: u64,
        labels: &mut Labels,
        side: Side<'_>,
    ) -> Result<Cost, Error> {
        let GarblingScheme::HalfGates { key } = &self.scheme else {
            unreachable!("it was opened for half gates")
        };
        let instances = labels.instances();
        let clocks = self.chip.passes(key, program, None, first_gate, labels, side)?.clocks;
        let tables = program.ands() * instances * self.scheme.table_bytes();
        Ok(chip::cost(program, instances, clocks, 16, tables))
    }
}

impl Garble for ChipGarble {
    fn scheme(&self) -> &GarblingScheme {
        &self.scheme
    }

    fn garble(
        &self,
        program: &Program,
        offset: &Offset,
        first_gate: u64,
        labels: &mut Labels,
        tables: &mut [u8],
    ) -> Result<Cost, Error> {
        self.run(program, first_gate, labels, Side::Garble(offset, tables))
    }
}

impl Evaluate for ChipGarble {
    fn scheme(&self) -> &GarblingScheme {
        &self.scheme
    }

    fn evaluate(
        &self,
        program: &Program,
        first_gate: u64,
        labels: &mut Labels,
        tables: &[u8],
    ) -> Result<Cost, Error> {
        self.run(program, first_gate, labels, Side::Evaluate(tables))
    }
}
