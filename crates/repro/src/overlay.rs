//! A circuit on SIFO's overlay: placed, garbled by the simulated chip, compared with the CPU and told.

use std::time::{Duration, Instant};

use blindcore_accel::garble::{GarblingScheme, Labels, Offset};
use blindcore_accel_cpu::Cpu;
use blindcore_accel_rtl::sifo::circuits::{self, Placed};
use blindcore_accel_rtl::sifo::layers::{self, Layers};
use blindcore_accel_rtl::sifo::memory::{Assignment, Policy};
use blindcore_accel_rtl::sifo::{ADDRESSES, CLOCK, Clocks, Commands, Overlay, OverlaySettings};
use blindcore_circuit::netlist::Netlist;
use blindcore_units::bytes;
use serde_json::{Value, json};

use crate::labels::{Fresh, decode};
use crate::text::bars;

/// A netlist over the places of an overlay's memories, in the order of the batches in which it is garbled.
///
/// Without a policy all labels are in DDR memory.
pub(crate) fn place(
    netlist: &Netlist,
    layers: &Layers,
    settings: &OverlaySettings,
    policy: Policy,
) -> anyhow::Result<Placed> {
    let cells = layers::Cells::new(settings.cells.ands, settings.cells.xors)?;
    let assignment = Assignment::new(&netlist.wiring(), layers, cells, policy, settings.block_ram);
    Ok(circuits::program(&netlist.wiring(), layers, &assignment)?)
}

/// What was garbled, and what it took.
pub(crate) struct Garbled {
    tables: Vec<u8>,
    /// Labels of 0, of all places, in the end.
    labels: Labels,
    /// Labels of the inputs' values, where evaluation begins.
    active: Labels,
    offset: Offset,
    pub(crate) clocks: Clocks,
    simulated: Duration,
}

/// A circuit on a chip, ready to be garbled.
pub struct Job<'a> {
    device: &'a str,
    netlist: &'a Netlist,
    settings: OverlaySettings,
    chip: Overlay,
    placed: Placed,
    commands: Commands,
}

impl<'a> Job<'a> {
    /// Places a circuit for a chip; `name` is the circuit's, for people.
    ///
    /// # Errors
    /// The chip is not built or lacks what the settings ask for; or the circuit takes more places than it can address.
    pub fn new(
        device: &'a str,
        settings: OverlaySettings,
        policy: Policy,
        name: &str,
        netlist: &'a Netlist,
    ) -> anyhow::Result<Self> {
        layers::Cells::new(settings.cells.ands, settings.cells.xors)?;
        let chip = crate::chip(Overlay::with_settings(device, settings))?;
        let placed = place(netlist, &Layers::new(&netlist.wiring()), &settings, policy)?;
        let (ddr, most) = (placed.program.slots() - settings.block_ram, chip.build().ddr.min(ADDRESSES));
        anyhow::ensure!(
            ddr <= most,
            "{name} takes {ddr} places of DDR memory, over the {most} that {device}'s addresses reach; take a smaller \
             circuit, or --policy lifetimes"
        );
        let commands = chip.commands(&placed.program)?;
        Ok(Self { device, netlist, settings, chip, placed, commands })
    }

    /// What the host sends.
    #[must_use]
    pub fn commands(&self) -> &Commands {
        &self.commands
    }

    /// The circuit over the overlay's places.
    #[must_use]
    pub fn placed(&self) -> &Placed {
        &self.placed
    }

    /// Garbles on the chip and on the CPU, compares every table and label, and evaluates on the CPU.
    ///
    /// # Errors
    /// The chip stopped, or something is not the CPU's or not what the circuit computes.
    pub fn run(&self, inputs: &[Vec<bool>]) -> anyhow::Result<Run<'_>> {
        let mut garbled = garble(&self.chip, &self.placed, inputs)?;
        let outputs = evaluate(self.netlist, &self.placed, &mut garbled)?;
        anyhow::ensure!(
            outputs == self.netlist.evaluate(inputs)?,
            "{}'s tables don't evaluate to what the circuit computes; report this",
            self.device
        );
        Ok(Run { job: self, garbled, outputs })
    }
}

/// Garbles on the chip and on the CPU, and makes sure that every table and every label is the same.
pub(crate) fn garble(chip: &Overlay, placed: &Placed, inputs: &[Vec<bool>]) -> anyhow::Result<Garbled> {
    let (program, scheme) = (&placed.program, GarblingScheme::InsecureSifo);
    let Fresh { offset, mut labels, active } = Fresh::new(placed, inputs)?;
    let mut on_cpu = Labels::new(program.slots(), 1);
    for slot in &placed.inputs {
        on_cpu.set(*slot, 0, labels.get(*slot, 0));
    }
    let mut tables = vec![0; program.ands() * scheme.table_bytes()];
    let start = Instant::now();
    let clocks = chip.run(program, &offset, 0, 0, &mut labels, &mut tables)?;
    let simulated = start.elapsed();

    let cpu = Cpu::open("cpu")?;
    let mut cpu_tables = vec![0; tables.len()];
    cpu.garble(&scheme)?.garble(program, &offset, 0, &mut on_cpu, &mut cpu_tables)?;
    let differs = |what: &str, which: usize| {
        anyhow::anyhow!("{what} {which} of {} and {} differ; report this", chip.name(), cpu.name())
    };
    let row = scheme.table_bytes();
    if let Some(gate) = (0..program.ands()).find(|i| tables[i * row..][..row] != cpu_tables[i * row..][..row])
    {
        return Err(differs("the table of AND", gate));
    }
    if let Some(slot) = (0..program.slots() as u32).find(|slot| labels.get(*slot, 0) != on_cpu.get(*slot, 0))
    {
        return Err(differs("the label in place", slot as usize));
    }
    Ok(Garbled { tables, labels, active, offset, clocks, simulated })
}

/// How long this machine's CPU takes to garble the same.
pub(crate) fn on_cpu(placed: &Placed, inputs: &[Vec<bool>]) -> anyhow::Result<Duration> {
    let scheme = GarblingScheme::InsecureSifo;
    let Fresh { offset, mut labels, .. } = Fresh::new(placed, inputs)?;
    let mut tables = vec![0; placed.program.ands() * scheme.table_bytes()];
    let cost =
        Cpu::open("cpu")?.garble(&scheme)?.garble(&placed.program, &offset, 0, &mut labels, &mut tables)?;
    Ok(Duration::from_secs_f64(cost.seconds))
}

/// Evaluates the chip's tables on the CPU and decodes the outputs.
fn evaluate(netlist: &Netlist, placed: &Placed, garbled: &mut Garbled) -> anyhow::Result<Vec<Vec<bool>>> {
    let Garbled { active, tables, labels, offset, .. } = garbled;
    let cpu = Cpu::open("cpu")?.evaluate(&GarblingScheme::InsecureSifo)?;
    cpu.evaluate(&placed.program, 0, active, tables)?;
    decode(netlist, placed, labels, active, offset)
}

/// A run that is over, to be told.
pub struct Run<'a> {
    job: &'a Job<'a>,
    garbled: Garbled,
    outputs: Vec<Vec<bool>>,
}

/// What is told beside what was counted.
#[derive(Clone, Debug)]
pub struct About<'a> {
    /// The circuit's name.
    pub circuit: &'a str,
    /// Whether it is the paper's own netlist.
    pub published: bool,
    /// The policy's name.
    pub policy: &'a str,
    /// Values of the inputs.
    pub inputs: Value,
    /// Values of the outputs.
    pub outputs: Value,
    /// The paper's time in microseconds, where this is a run of its Table 11.
    pub paper: Option<f64>,
}

/// The host's clocks.
struct Host {
    /// Writing registers.
    writes: u64,
    /// Waiting until a batch is done.
    waits: u64,
    /// From then until it knows.
    notices: u64,
}

impl Run<'_> {
    /// The bits of each output.
    #[must_use]
    pub fn outputs(&self) -> &[Vec<bool>] {
        &self.outputs
    }

    /// How long the simulation took here.
    #[must_use]
    pub fn simulated(&self) -> Duration {
        self.garbled.simulated
    }

    fn seconds(&self) -> f64 {
        self.garbled.clocks.cycles as f64 / CLOCK
    }

    /// What the host did in all clocks.
    fn host(&self) -> Host {
        let c = self.garbled.clocks;
        let waits = self.job.commands.batches().iter().filter(|batch| batch.sync).count() as u64;
        let notices = waits * (self.job.settings.sync_ns * 1e-9 * CLOCK).round() as u64;
        Host { writes: c.cycles - c.waits_host, waits: c.waits_host - notices, notices }
    }

    fn ands_a_second(&self) -> f64 {
        if self.garbled.clocks.cycles == 0 {
            0.0
        } else {
            self.job.placed.program.ands() as f64 / self.seconds()
        }
    }

    /// All of it for programs.
    #[must_use]
    pub fn document(&self, about: &About<'_>) -> Value {
        let (c, ands) = (self.garbled.clocks, self.job.placed.program.ands());
        let (us, host) = (self.seconds() * 1e6, self.host());
        json!({
            "circuit": about.circuit,
            "published": about.published,
            "inputs": about.inputs,
            "outputs": about.outputs,
            "device": self.job.device,
            "same_bits_as": "cpu",
            "policy": about.policy,
            "cells": {"ands": self.job.settings.cells.ands, "xors": self.job.settings.cells.xors},
            "ands": ands,
            "xors": self.job.placed.program.steps().len() - ands,
            "batches": self.job.commands.batches().len(),
            "places": self.job.placed.program.slots(),
            "table_bytes": self.garbled.tables.len(),
            "clocks": {
                "all": c.cycles, "host_writes": host.writes, "host_waits": host.waits, "host_notices": host.notices,
                "fetch_waits_for_ddr": c.waits_ddr, "gate_waits_for_cell": c.waits_cell,
            },
            "gates": c.gates,
            "ddr_accesses": c.ddr_accesses,
            "register_writes": c.items,
            "microseconds_at_200_mhz": us,
            "paper_microseconds": about.paper,
            "ratio": about.paper.map(|paper| us / paper),
            "ands_per_second": self.ands_a_second(),
            "simulation_seconds": self.garbled.simulated.as_secs_f64(),
        })
    }

    /// What the chip did, for people, under the circuit's name.
    #[must_use]
    pub fn text(&self, circuit: &str, paper: Option<f64>) -> String {
        let (c, ands) = (self.garbled.clocks, self.job.placed.program.ands());
        let mut text = format!(
            "\n{} garbled {} ANDs and {} XORs of {} in {} batches, every table and label as cpu has them:\n\
             {} clocks, {:.1} us at 200 MHz, {:.2} M ANDs/s, {} of tables, which cpu evaluated to the outputs in the clear\n",
            self.job.device,
            ands,
            self.job.placed.program.steps().len() - ands,
            circuit,
            self.job.commands.batches().len(),
            c.cycles,
            self.seconds() * 1e6,
            self.ands_a_second() / 1e6,
            bytes(self.garbled.tables.len() as u64),
        );
        if let Some(paper) = paper {
            text += &format!("the paper has {paper} us: {:.2} of it here\n", self.seconds() * 1e6 / paper);
        }
        let host = self.host();
        text += "\n";
        text += &bars(
            c.cycles,
            &[
                ("host writes registers", host.writes),
                ("host waits for gates", host.waits),
                ("host sees them done", host.notices),
            ],
        );
        text += "\n";
        let chip = [("fetch waits for DDR", c.waits_ddr), ("gate waits for a cell", c.waits_cell)];
        text += &bars(c.cycles, &chip);
        text += &format!(
            "\n  {} register writes by the host, {} accesses to DDR memory\n",
            c.items, c.ddr_accesses
        );
        text
    }
}
