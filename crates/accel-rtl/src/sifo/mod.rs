//! Garbling overlays: SIFO's, as it was built in 2019, and [one for half gates](half_gates).
//!
//! ```no_run
//! use blindcore_accel::garble::{Labels, Offset, ProgramBuilder, GarblingScheme};
//! use blindcore_accel_rtl::sifo::Overlay;
//!
//! let mut program = ProgramBuilder::new(3);
//! program.and(2, 0, 1)?;
//! let program = program.finish();
//! let chip = Overlay::open("rtl:sifo")?; // made by `make -C hw libraries`
//! let (mut labels, mut tables) = (Labels::new(3, 1), [0; 30]);
//! let offset = Offset::new(0xdead_beef);
//! chip.device().garble(&GarblingScheme::InsecureSifo)?.garble(&program, &offset, 0, &mut labels, &mut tables)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A circuit's way to the chip: its gates by layer and in batches of the chip's cells ([`layers`]), its wires over two memories
//! ([`memory`]), both as a program over places, or as copies of subcircuits side by side ([`circuits`]); or only what they come to,
//! counted ([`survey`]). They take a [`Wiring`](blindcore_accel::garble::Wiring), gates without anything else.
//!
//! [`Commands`] are what the host sends; [`OverlaySettings`] say how fast link and memory are, and which of the paper's
//! optimisations are on; [`Overlay::estimate`] counts clocks without simulating what is garbled.

pub mod boards;
mod chip;
pub mod circuits;
mod clocks;
mod commands;
pub mod half_gates;
pub mod layers;
mod library;
pub mod memory;
mod model;
mod schedule;
pub mod survey;

use std::sync::Arc;

use blindcore_accel::garble::{
    self, Garble, GarbleCapabilities, GarbleSlot, GarblingKind, GarblingScheme, Labels, Offset, Program,
};
use blindcore_accel::{Cost, Device, Error, Slots};

use chip::{Chip, Entry};
pub use clocks::{CLOCK, Clocks, DMA};
pub use commands::{Batch, CellCounts, Commands, Operation, Order, RawAddress, Registers};
pub use library::Build;
use library::{Tables, Timing};

const DEVICES: [Entry; 1] = [Entry {
    name: "rtl:sifo",
    file: "sifo",
    what: "the paper's overlay: 15 AND cells of SHA-1, 15 XOR cells, labels of 80 bits",
    label: 80,
    lanes: 1,
}];

/// Labels that two registers can address in each memory (section 3.4.1).
pub const ADDRESSES: usize = 1 << 20;

/// How an overlay is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverlaySettings {
    /// Cells that the host fills at once; at most those that the chip has.
    pub cells: CellCounts,
    /// Places of block RAM that are used; 0: all labels are in DDR memory.
    pub block_ram: usize,
    /// When gates begin, and what the host waits for.
    pub order: Order,
    /// Registers that carry a gate's addresses.
    pub registers: Registers,
    /// Nanoseconds in which the host writes a register.
    pub register_ns: f64,
    /// Nanoseconds from the end of a batch until the host, who waits for it, goes on.
    pub sync_ns: f64,
    /// Nanoseconds of an access to DDR memory.
    pub ddr_ns: f64,
    /// Bytes per second by DMA between host and board.
    pub dma: f64,
}

impl OverlaySettings {
    /// The paper's best (section 4.2, Table 11): 15 cells of each kind, two registers a gate, a link at 300 MHz.
    ///
    /// A register takes 50 ns at 200 MHz (section 3.4.1), so two thirds of that at 300 MHz, and DDR 180 ns (section 3.4.2).
    /// How long the host needs to see that a batch is done is not said; [`SYNC_NS`] is fitted.
    pub const PAPER: OverlaySettings = OverlaySettings {
        cells: CellCounts { ands: 15, xors: Some(15) },
        block_ram: 1 << 16,
        order: Order { whole_batches: false, ands_in_turn: false, waits_for_xors: false, and_accesses: 0 },
        registers: Registers::Two,
        register_ns: 50.0 * 200.0 / 300.0,
        sync_ns: SYNC_NS,
        ddr_ns: 180.0,
        dma: DMA,
    };

    /// A host that costs no time, and memory that answers at once: to compare bits.
    pub const INSTANT: OverlaySettings =
        OverlaySettings { register_ns: 5.0, sync_ns: 0.0, ddr_ns: 5.0, ..OverlaySettings::PAPER };

    fn timing(&self) -> Timing {
        let clocks = |ns: f64| ns * 1e-9 * CLOCK;
        Timing {
            period: (clocks(self.register_ns) * 64.0).round().clamp(1.0, 65535.0) as u32,
            sync: clocks(self.sync_ns).round().clamp(0.0, 65535.0) as u32,
            latency: clocks(self.ddr_ns).round().clamp(1.0, 65535.0) as u32,
            tables: (self.dma / CLOCK * 64.0).round().clamp(0.0, 1e9) as u32,
        }
    }
}

/// Nanoseconds between a batch's end and the host's next write: so that the ratios of three rows of Table 11 to ours (10-bit
/// distance, 64-bit multiplier, 20 x 20 matrices) have a geometric mean of 1.
pub const SYNC_NS: f64 = 1350.0;

/// A simulated garbling overlay.
#[derive(Clone)]
pub struct Overlay {
    chip: Arc<Chip>,
    settings: OverlaySettings,
}

impl Overlay {
    /// The names of the devices that there are.
    pub fn names() -> impl Iterator<Item = &'static str> {
        DEVICES.iter().map(|entry| entry.name)
    }

    /// Opens an overlay with the paper's settings.
    ///
    /// # Errors
    /// There is no such device, or its library has not been built.
    pub fn open(name: &str) -> Result<Self, Error> {
        Self::with_settings(name, OverlaySettings::PAPER)
    }

    /// Opens an overlay that is run another way.
    ///
    /// # Errors
    /// As [`Overlay::open`]; or more cells or block RAM than it has.
    pub fn with_settings(name: &str, settings: OverlaySettings) -> Result<Self, Error> {
        let chip = Chip::open(&DEVICES, name)?;
        let build = chip.build;
        let CellCounts { ands, xors } = settings.cells;
        let over = |what: &str, got: usize, most: usize| {
            Error::setting(name, format!("it has {most} {what}, not {got}; use 1 to {most}"))
        };
        if !(1..=build.ands).contains(&ands) {
            return Err(over("AND cells", ands, build.ands));
        }
        if let Some(xors) = xors.filter(|xors| !(1..=build.xors).contains(xors)) {
            return Err(over("XOR cells", xors, build.xors));
        }
        if settings.block_ram > build.places {
            return Err(over("places of block RAM", settings.block_ram, build.places));
        }
        Ok(Self { chip: Arc::new(chip), settings })
    }

    /// This chip as a device, which garbles.
    #[must_use]
    pub fn device(&self) -> Device {
        let garble = Some(Arc::new(self.clone()) as _);
        Device::new(self.chip.describe(), Slots { garble, ..Slots::default() })
    }

    /// The name that opens it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.chip.name
    }

    /// What this chip has.
    #[must_use]
    pub fn build(&self) -> Build {
        self.chip.build
    }

    /// How it is run.
    #[must_use]
    pub fn settings(&self) -> &OverlaySettings {
        &self.settings
    }

    /// What the host sends for a program.
    ///
    /// # Errors
    /// The program has more slots than the host's addresses reach.
    pub fn commands(&self, program: &Program) -> Result<Commands, Error> {
        let ddr = program.slots().saturating_sub(self.settings.block_ram);
        let most = self.chip.build.ddr.min(ADDRESSES);
        if ddr > most {
            let want = format!(
                "at most {} ({} in block RAM, {most} in DDR memory)",
                most + self.settings.block_ram,
                self.settings.block_ram
            );
            return Err(Error::Length { what: "the program", got: program.slots(), want, unit: "slots" });
        }
        Ok(Commands::new(program, self.settings.cells, self.settings.order, self.settings.block_ram))
    }

    /// Clocks that a program takes, by the model of the chip: nothing is garbled.
    ///
    /// # Panics
    /// As [`Commands::new`].
    #[must_use]
    pub fn estimate(settings: &OverlaySettings, program: &Program) -> Clocks {
        let commands = Commands::new(program, settings.cells, settings.order, settings.block_ram);
        // The chip that was built has as many of each as the paper's best.
        let CellCounts { ands, xors } = OverlaySettings::PAPER.cells;
        let cells = [ands, xors.unwrap_or(1)];
        model::clocks(&commands, cells, settings.registers, settings.timing(), CONFIGURATION)
    }

    /// Garbles one instance and says what the clocks went to.
    ///
    /// # Errors
    /// Operands that don't fit, or the chip stopped.
    pub fn run(
        &self,
        program: &Program,
        offset: &Offset,
        first_gate: u64,
        instance: usize,
        labels: &mut Labels,
        tables: &mut [u8],
    ) -> Result<Clocks, Error> {
        let commands = self.commands(program)?;
        let mut board = self.chip.board();
        let block_ram = self.settings.block_ram;
        let address = |slot: usize| {
            if slot < block_ram { (slot as u32) << 1 | 1 } else { ((slot - block_ram) as u32) << 1 }
        };
        let mut used = vec![(false, false); program.slots()]; // read or written, written
        for step in program.steps() {
            for slot in [step.a, step.b, step.out] {
                used[slot as usize].0 = true;
            }
            used[step.out as usize].1 = true;
        }
        for (slot, _) in used.iter().enumerate().filter(|(_, (used, _))| *used) {
            board.poke(address(slot), &[labels.get(slot as u32, instance)]);
        }
        let items: Vec<u32> = configuration(offset, first_gate)
            .chain(commands.writes(self.settings.registers))
            .flat_map(|(wait, register, data)| [data, register | u32::from(wait) << 4])
            .collect();
        let timing = self.settings.timing();
        // The chip's watchdog ends a run that stands still; this one ends a run that never does.
        let a_gate = 64 + 4 * u64::from(timing.latency) + u64::from(timing.period) / 16;
        let most = (commands.gates().len() as u64 + 1) * (a_gate + u64::from(timing.sync) + 200);
        let bytes = tables.len();
        let ended = board.run(timing, &items, Tables::Out(tables), most);
        let clocks = self.chip.ended(&mut board, &ended, Some(bytes))?;
        for (slot, _) in used.iter().enumerate().filter(|(_, (_, written))| *written) {
            labels.set(slot as u32, instance, board.peek(address(slot))[0]);
        }
        Ok(clocks)
    }
}

/// Register writes before the first batch.
const CONFIGURATION: usize = 6;

/// The offset and the number of the first AND (`sf_registers.sv`).
fn configuration(offset: &Offset, first_gate: u64) -> impl Iterator<Item = (bool, u32, u32)> {
    let label = offset.label();
    let offset = (0..4).map(move |i| (false, 8 + i, (label >> (32 * i)) as u32));
    let first = (0..2).map(move |i| (false, 12 + i, (first_gate >> (32 * i)) as u32));
    offset.chain(first)
}

impl GarbleSlot for Overlay {
    fn capabilities(&self) -> GarbleCapabilities {
        // The paper's chip garbles; it leaves evaluation to later work (section 3).
        GarbleCapabilities { schemes: vec![GarblingKind::InsecureSifo], lanes: 1, simulated: true }
    }

    fn prepare(&self, scheme: &GarblingScheme) -> Result<Arc<dyn Garble>, Error> {
        self.capabilities().check(scheme)?;
        Ok(Arc::new(OverlayGarble { overlay: self.clone() }))
    }
}

struct OverlayGarble {
    overlay: Overlay,
}

impl Garble for OverlayGarble {
    fn scheme(&self) -> &GarblingScheme {
        &GarblingScheme::InsecureSifo
    }

    fn garble(
        &self,
        program: &Program,
        offset: &Offset,
        first_gate: u64,
        labels: &mut Labels,
        tables: &mut [u8],
    ) -> Result<Cost, Error> {
        garble::check(&GarblingScheme::InsecureSifo, program, first_gate, labels, tables.len())?;
        let (instances, ands) = (labels.instances(), program.ands());
        let mut clocks = Clocks::default();
        let rows = ands * GarblingScheme::InsecureSifo.table_bytes();
        for instance in 0..instances {
            let first = first_gate + (instance * ands) as u64;
            let tables = &mut tables[instance * rows..][..rows];
            clocks += self.overlay.run(program, offset, first, instance, labels, tables)?;
        }
        Ok(chip::cost(program, instances, clocks, 10, tables.len()))
    }
}
