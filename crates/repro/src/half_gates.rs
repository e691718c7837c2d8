//! A circuit on the half-gates overlay: subcircuits of one shape side by side in its lanes.

use std::time::{Duration, Instant};

use blindcore_accel::garble::{GarblingScheme, Label, Labels, Offset};
use blindcore_accel_cpu::Cpu;
use blindcore_accel_rtl::sifo::CLOCK;
use blindcore_accel_rtl::sifo::circuits::{self, Share};
use blindcore_accel_rtl::sifo::half_gates::{HalfGates, HalfGatesSettings, Report};
use blindcore_circuit::netlist::{Netlist, Wire};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::labels::fill;
use blindcore_units::bytes;

use crate::text::bars;

/// What was garbled and evaluated, and what it took.
#[derive(Clone, Debug)]
pub struct Done {
    /// The chip's report of garbling.
    pub garbling: Report,
    /// And of evaluating.
    pub evaluation: Report,
    /// ANDs that were garbled, those in lanes with nothing of their own to do left out.
    pub ands: usize,
    /// Bytes of all tables.
    pub table_bytes: usize,
    /// Programs, one after the other.
    pub shares: usize,
    /// Lanes of the chip.
    pub lanes: usize,
    /// The most copies of a subcircuit in a lane.
    pub copies: usize,
    /// The bits of each output.
    pub outputs: Vec<Vec<bool>>,
    simulated: Duration,
}

/// The widest shares of which no label goes to DDR memory and back, or else single copies.
fn shares(chip: &HalfGates, netlist: &Netlist) -> anyhow::Result<Vec<Share>> {
    let lanes = chip.build().lanes;
    let mut most = usize::MAX;
    loop {
        let shares = circuits::side_by_side(&netlist.wiring(), lanes, most);
        let copies = shares.iter().map(|share| share.copies).max().unwrap_or(1);
        let plans: Result<Vec<Report>, _> =
            shares.iter().map(|share| chip.plan(&share.program, &wanted(share))).collect();
        match plans {
            Ok(plans) if copies == 1 || plans.iter().all(|plan| plan.spilled == 0) => return Ok(shares),
            Err(e) if copies == 1 => anyhow::bail!(
                "{} can't hold this circuit: {e}; take a smaller circuit, or --device rtl:sifo",
                chip.name()
            ),
            _ => most = copies / 2,
        }
    }
}

fn wanted(share: &Share) -> Vec<u32> {
    share.outputs.iter().map(|(slot, _)| *slot).collect()
}

/// Garbles on the chip and on the CPU, compares every table and every label that is wanted, evaluates on the chip, and
/// decodes.
///
/// # Errors
/// The chip can't hold the circuit or stopped; or a table, a label or an output is not the CPU's.
pub fn run(chip: &HalfGates, netlist: &Netlist, inputs: &[Vec<bool>]) -> anyhow::Result<Done> {
    let start = Instant::now();
    let cpu = Cpu::open("cpu")?;
    let first_gate_wire = netlist.first_gate_wire().index();
    let mut drawn = Zeroizing::new(vec![0u8; 16 * (first_gate_wire + 2)]);
    fill(&mut drawn)?;
    let (blocks, _) = drawn.as_chunks::<16>();
    let key = blocks[0];
    let scheme = GarblingScheme::HalfGates { key };
    let offset = Offset::new(Label::from_le_bytes(blocks[1]));
    // Labels of 0 and of their values, of constants and inputs and then of every output that a gate makes.
    let values: Vec<bool> = [false, true].into_iter().chain(inputs.iter().flatten().copied()).collect();
    let mut zeros: Vec<Label> = vec![0; netlist.wires()];
    let mut actives = zeros.clone();
    for (wire, value) in values.iter().enumerate() {
        zeros[wire] = Label::from_le_bytes(blocks[2 + wire]);
        actives[wire] = zeros[wire] ^ Label::from(*value).wrapping_neg() & offset.label();
    }
    let shares = shares(chip, netlist)?;
    let lanes = chip.build().lanes;
    let row = scheme.table_bytes();
    let mut done = Done {
        garbling: Report::default(),
        evaluation: Report::default(),
        ands: netlist.ands(),
        table_bytes: 0,
        shares: shares.len(),
        lanes,
        copies: shares.iter().map(|share| share.copies).max().unwrap_or(0),
        outputs: Vec::new(),
        simulated: Duration::ZERO,
    };
    let mut first_gate = 0;
    for share in &shares {
        let fresh = |of: &[Label]| {
            let mut labels = Labels::new(share.program.slots(), lanes);
            for (lane, wires) in share.inputs.iter().enumerate() {
                let all = [Wire::ZERO, Wire::ONE].iter().chain(wires);
                all.enumerate().for_each(|(slot, wire)| labels.set(slot as u32, lane, of[wire.index()]));
            }
            labels
        };
        let program = &share.program;
        let wanted = wanted(share);
        let mut tables = vec![0u8; program.ands() * lanes * row];
        let mut labels = fresh(&zeros);
        done.garbling +=
            chip.garble_wanted(&key, program, &wanted, &offset, first_gate, &mut labels, &mut tables)?;

        let mut on_cpu = fresh(&zeros);
        let mut cpu_tables = vec![0u8; tables.len()];
        cpu.garble(&scheme)?.garble(program, &offset, first_gate, &mut on_cpu, &mut cpu_tables)?;
        if let Some(gate) =
            tables.chunks_exact(row).zip(cpu_tables.chunks_exact(row)).position(|(a, b)| a != b)
        {
            anyhow::bail!(
                "the table of AND {gate} of {} and {} differ; report this",
                chip.name(),
                cpu.name()
            );
        }
        let mut active = fresh(&actives);
        done.evaluation += chip.evaluate_wanted(&key, program, &wanted, first_gate, &mut active, &tables)?;
        for (slot, wires) in &share.outputs {
            for (lane, wire) in wires.iter().enumerate() {
                anyhow::ensure!(
                    labels.get(*slot, lane) == on_cpu.get(*slot, lane),
                    "the label of slot {slot} in lane {lane} of {} and {} differ; report this",
                    chip.name(),
                    cpu.name()
                );
                if let Some(wire) = wire {
                    zeros[wire.index()] = labels.get(*slot, lane);
                    actives[wire.index()] = active.get(*slot, lane);
                }
            }
        }
        first_gate += (program.ands() * lanes) as u64;
        done.table_bytes += tables.len();
    }
    let decode = |wire: &Wire| match zeros[wire.index()] ^ actives[wire.index()] {
        0 => Ok(false),
        label if label == offset.label() => Ok(true),
        _ => anyhow::bail!("an output's label is neither of its two; report this"),
    };
    let ports = netlist.outputs().iter().map(|port| port.wires.iter().map(decode).collect());
    done.outputs = ports.collect::<anyhow::Result<_>>()?;
    anyhow::ensure!(
        done.outputs == netlist.evaluate(inputs)?,
        "{}'s tables don't evaluate to what the circuit computes; report this",
        chip.name()
    );
    done.simulated = start.elapsed();
    Ok(done)
}

impl Done {
    /// Seconds of garbling at the chip's clock.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.garbling.clocks.cycles as f64 / CLOCK
    }

    /// ANDs garbled per second at the chip's clock.
    #[must_use]
    pub fn ands_a_second(&self) -> f64 {
        if self.garbling.clocks.cycles == 0 { 0.0 } else { self.ands as f64 / self.seconds() }
    }

    /// All of it for programs.
    #[must_use]
    pub fn document(&self, settings: &HalfGatesSettings) -> Value {
        let of = |report: &Report| {
            let c = report.clocks;
            json!({
                "clocks": c.cycles, "microseconds_at_200_mhz": c.cycles as f64 / CLOCK * 1e6, "gates": c.gates,
                "commands": report.commands, "full_adders": report.full_adders, "fences": report.fences,
                "spilled": report.spilled, "ddr_accesses": c.ddr_accesses,
                "waits_for_ddr": c.waits_ddr, "waits_for_ands": c.waits_cell,
            })
        };
        json!({
            "ands": self.ands, "lanes": self.lanes, "copies_a_lane": self.copies, "shares": self.shares,
            "table_bytes": self.table_bytes, "dma_bytes_per_second": settings.dma,
            "garbling": of(&self.garbling), "evaluation": of(&self.evaluation),
            "ands_per_second": self.ands_a_second(),
            "simulation_seconds": self.simulated.as_secs_f64(),
        })
    }

    /// What the chip did, for people.
    #[must_use]
    pub fn text(&self, device: &str, settings: &HalfGatesSettings) -> String {
        let (g, e) = (self.garbling, self.evaluation);
        let link =
            if settings.dma.is_some() { "over PCIe Gen3 x8" } else { "with a link that never holds it up" };
        let mut text = format!(
            "\n{device} garbled {} ANDs in {} lanes of up to {} copies, every table and wanted label as cpu has them:\n\
             {} clocks, {:.1} us at 200 MHz {link}, {:.1} M ANDs/s, {} of tables; it evaluated them to the outputs in the \
             clear in {:.1} us\n\n",
            self.ands,
            self.lanes,
            self.copies,
            g.clocks.cycles,
            self.seconds() * 1e6,
            self.ands_a_second() / 1e6,
            bytes(self.table_bytes as u64),
            e.clocks.cycles as f64 / CLOCK * 1e6,
        );
        let c = g.clocks;
        let rest = c.cycles - c.gates.min(c.cycles) - c.waits_ddr - c.waits_cell;
        text += &bars(
            c.cycles,
            &[
                ("a command begins", c.gates),
                ("waits for ANDs", c.waits_cell),
                ("waits for DDR", c.waits_ddr),
                ("headers and the link", rest),
            ],
        );
        text += &format!(
            "\n  {} commands, {} of them full adders, {} fences, {} labels to DDR memory and back\n",
            g.commands, g.full_adders, g.fences, g.spilled
        );
        text
    }

    /// How long the simulation took here.
    #[must_use]
    pub fn simulated(&self) -> Duration {
        self.simulated
    }
}
