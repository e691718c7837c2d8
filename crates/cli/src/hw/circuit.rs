//! `blindcore hw run circuit`: a real circuit, garbled by a simulated overlay.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use blindcore_accel::Device;
use blindcore_accel::garble::{Label, Labels, Offset, Scheme};
use blindcore_accel_cpu::Cpu;
use blindcore_accel_rtl::sifo::half_gates::{self, HalfGates};
use blindcore_accel_rtl::sifo::{ADDRESSES, CLOCK, Cells, Clocks, Commands, Overlay, Settings};
use blindcore_circuit::levels::{self, Layers};
use blindcore_circuit::netlist::Netlist;
use blindcore_circuit::overlay::{self, Placed};
use blindcore_circuit::policy::{Assignment, Policy};
use blindcore_circuit::problems::published::{self, ROWS, Row};
use clap::ValueEnum;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::{bars, boards, lanes, watched};
use crate::Outcome;
use crate::circuit::{load, shown, values};
use crate::output;
use crate::sum::files::NewFile;

/// What is garbled where nothing is named, and its inputs.
const DEFAULT: (&str, [&str; 2]) = ("mult8", ["200", "123"]);

/// Which wires block RAM holds.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Placing {
    /// Wires that one gate reads, in the next layer
    DirectlyUsed,
    /// Wires that are read most often, to the end
    MostFrequentlyUsed,
    /// Wires as long as they live: what the paper left to later work
    Lifetimes,
    /// None: every label is in DDR memory
    None,
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore hw run circuit --allow-broken                                 200 times 123
  blindcore hw run circuit mult32 --published --allow-broken              the paper's netlist, beside the paper's time
  blindcore hw run circuit design.v --policy lifetimes --allow-broken --json
  blindcore hw run circuit adder6 --commands --allow-broken               with what the host sends
  blindcore hw run circuit matmul5x5x4 --boards 4 --allow-broken          on four boards
  blindcore hw run circuit --device rtl:sifo-half-gates                   on today's overlay, where nothing is broken

The chip garbles; the CPU garbles the same, and every table and label is compared. Then the CPU (today's overlay: the chip)
evaluates the tables, and the decoded outputs are compared with those in the clear. Without --input, inputs are random. Ten
thousand gates take seconds; `blindcore repro sifo` counts the clocks of larger circuits without simulating them. The
chips come from `make -C hw libraries`, which also installs what it needs.")]
pub(crate) struct HwCircuit {
    /// A circuit file, or a name of `blindcore circuit list` [default: mult8, of 200 and 123]
    #[arg(value_name = "FILE|NAME")]
    name: Option<String>,
    /// The same, as other commands take it
    #[arg(long, value_name = "FILE|NAME", conflicts_with = "name")]
    circuit: Option<String>,
    /// The netlist behind the paper's tables, of one of the paper's problems
    #[arg(long)]
    published: bool,
    /// The value of an input, decimal or 0x-hexadecimal; once for each input, in order
    #[arg(long = "input", value_name = "VALUE", allow_hyphen_values = true)]
    inputs: Vec<String>,
    /// The chip: rtl:sifo, as published, or rtl:sifo-half-gates, as it would be built today
    #[arg(long, value_name = "NAME", default_value = "rtl:sifo")]
    device: String,
    /// For rtl:sifo on one board: which wires block RAM holds
    #[arg(long, value_enum, default_value = "directly-used")]
    policy: Placing,
    /// For rtl:sifo: AND cells that are used, 1 to the chip's 15
    #[arg(long, value_name = "K", default_value_t = 15)]
    ands: usize,
    /// For rtl:sifo: XOR cells that are used, 1 to the chip's 15, or any: the host doesn't wait for XORs
    #[arg(long, value_name = "L", default_value = "15", allow_hyphen_values = true)]
    xors: String,
    /// For rtl:sifo: boards that share the circuit, 1 to 16, each simulated, one after the other
    #[arg(long, value_name = "N", default_value_t = 1)]
    boards: usize,
    /// For rtl:sifo-half-gates: let the link to the host keep up with the cells, whatever they do
    #[arg(long)]
    unbound: bool,
    /// For rtl:sifo on one board: print what the host sends before the result, or write it to a new file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    commands: Option<Option<PathBuf>>,
    /// Allow what is known to be broken, as rtl:sifo's labels are
    #[arg(long)]
    allow_broken: bool,
    /// Print the result as one JSON document
    #[arg(long)]
    json: bool,
}

impl HwCircuit {
    fn cells(&self) -> anyhow::Result<Cells> {
        let xors = match self.xors.as_str() {
            "any" => None,
            number => Some(number.parse().map_err(|_| {
                anyhow::anyhow!("--xors {number:?} is no number of cells; say 1 to 15, or any")
            })?),
        };
        Ok(Cells { ands: self.ands, xors })
    }

    /// What is to be garbled: its name, its row of the paper's tables if that netlist is asked for, itself, its inputs.
    #[allow(clippy::type_complexity, reason = "four things that belong together once")]
    fn circuit(&self) -> anyhow::Result<(&str, Option<&'static Row>, Netlist, Vec<Vec<bool>>)> {
        let named = self.name.as_deref().or(self.circuit.as_deref());
        let circuit = named.unwrap_or(DEFAULT.0);
        let row = self.published.then(|| ROWS.iter().find(|row| row.name == circuit)).flatten();
        let netlist = match row {
            Some(row) => published::netlist(row),
            None if self.published => {
                let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
                anyhow::bail!(
                    "the paper has no netlist of {circuit:?}; --published takes {}",
                    names.join(", ")
                )
            }
            None => load(circuit)?,
        };
        let inputs = match (&self.inputs[..], named) {
            ([], None) => values::inputs(&netlist, &DEFAULT.1.map(str::to_owned))?,
            ([], Some(_)) => random_inputs(&netlist)?,
            (given, _) => values::inputs(&netlist, given)?,
        };
        Ok((circuit, row, netlist, inputs))
    }
}

/// A netlist over the places of an overlay's memories, in the order of the batches in which it is garbled.
///
/// Without a policy all labels are in DDR memory.
pub(crate) fn place(
    netlist: &Netlist,
    layers: &Layers,
    settings: &Settings,
    policy: Policy,
) -> anyhow::Result<Placed> {
    let cells = levels::Cells::new(settings.cells.ands, settings.cells.xors)?;
    let assignment = Assignment::new(netlist, layers, cells, policy, settings.block_ram);
    Ok(overlay::program(netlist, layers, &assignment)?)
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

pub(crate) fn run(args: &HwCircuit) -> anyhow::Result<Outcome> {
    anyhow::ensure!((1..=16).contains(&args.boards), "--boards is {}, outside 1 to 16", args.boards);
    if HalfGates::names().any(|name| name == args.device) {
        return today(args);
    }
    anyhow::ensure!(
        Overlay::names().any(|name| name == args.device),
        "--device {:?} is no chip that runs circuits; use {}",
        args.device,
        Overlay::names().chain(HalfGates::names()).collect::<Vec<_>>().join(" or ")
    );
    anyhow::ensure!(!args.unbound, "--unbound is for rtl:sifo-half-gates; {} has its own link", args.device);
    anyhow::ensure!(
        args.allow_broken,
        "{} garbles as SIFO does, with SHA-1 and labels of 80 bits, which protect nothing today; give --allow-broken to \
         run it all the same",
        args.device
    );
    if args.boards > 1 {
        anyhow::ensure!(
            matches!(args.policy, Placing::DirectlyUsed | Placing::None),
            "--policy is for one board; each of several fills its block RAM first, or with --policy none has none"
        );
        anyhow::ensure!(
            args.commands.is_none(),
            "--commands is for one board; leave --boards out to see what it is sent"
        );
    }
    let to_screen = args.commands == Some(None);
    anyhow::ensure!(
        !(to_screen && args.json),
        "--commands and --json would both print to standard output; give --commands=FILE"
    );
    if let Some(Some(file)) = &args.commands {
        anyhow::ensure!(
            file.symlink_metadata().is_err(),
            "--commands={} is there already; name a new file",
            file.display()
        );
    }
    let cells = args.cells()?;
    levels::Cells::new(cells.ands, cells.xors)?;
    let (policy, block_ram) = match args.policy {
        Placing::DirectlyUsed => (Policy::DirectlyUsed, Settings::PAPER.block_ram),
        Placing::MostFrequentlyUsed => (Policy::MostFrequentlyUsed, Settings::PAPER.block_ram),
        Placing::Lifetimes => (Policy::Lifetimes, Settings::PAPER.block_ram),
        Placing::None => (Policy::DirectlyUsed, 0),
    };
    let settings = Settings { cells, block_ram, ..Settings::PAPER };

    let (circuit, row, netlist, inputs) = args.circuit()?;
    let chip = Overlay::with_settings(&args.device, settings)?;
    let layers = Layers::new(&netlist);
    let placed = place(&netlist, &layers, &settings, policy)?;
    let (ddr, most) = (placed.program.slots() - block_ram, chip.build().ddr.min(ADDRESSES));
    anyhow::ensure!(
        ddr <= most,
        "{circuit} takes {ddr} places of DDR memory, over the {most} that {}'s addresses reach; take a smaller circuit, or \
         --policy lifetimes",
        args.device
    );
    let commands = chip.commands(&placed.program)?;
    if let Some(Some(path)) = &args.commands {
        let mut file = NewFile::new(path, false)?;
        write!(file, "{commands}").with_context(|| format!("{} can't be written", path.display()))?;
        file.finish(false)?;
    }
    output::note("SIFO's way is broken (SHA-1, 80 bits): what it garbles is not protected");
    let wrong = || {
        anyhow::anyhow!("{}'s tables don't evaluate to what the circuit computes; report this", args.device)
    };
    let clear = netlist.evaluate(&inputs)?;
    if args.boards > 1 {
        let several = boards::run(&args.device, &settings, &netlist, &placed, &inputs, args.boards)?;
        anyhow::ensure!(several.outputs == clear, wrong());
        if args.json {
            let mut document = several.document(circuit);
            document["published"] = json!(args.published);
            document["device"] = json!(args.device);
            document["cells"] = json!({"ands": args.ands, "xors": settings.cells.xors});
            document["inputs"] = json!(named(netlist.inputs(), &inputs));
            document["outputs"] = json!(named(netlist.outputs(), &clear));
            output::json(&document)?;
        } else {
            let text = values_text(&netlist, &inputs, &clear);
            output::print(&format!("{text}\n{}", several.text(&args.device, circuit)))?;
        }
        return Ok(Outcome::Done);
    }

    let mut garbled = watched(|| garble(&chip, &placed, &inputs))?;
    let outputs = evaluate(&netlist, &placed, &mut garbled)?;
    anyhow::ensure!(outputs == clear, wrong());
    let result = Run {
        args,
        circuit,
        settings: &settings,
        netlist: &netlist,
        placed: &placed,
        commands: &commands,
        garbled: &garbled,
    };
    // Table 11's time, where this is a run of Table 11.
    let paper = row.filter(|_| settings == Settings::PAPER && args.policy == Placing::DirectlyUsed);
    let paper = paper.map(|row| row.figures.fpga_us as f64);
    if args.json {
        output::json(&result.document(&inputs, &outputs, paper))?;
    } else {
        let text = result.text(&inputs, &outputs, paper);
        output::print(&if to_screen { format!("{commands}\n{text}") } else { text })?;
        output::note(&format!("simulated in {:.1} s", garbled.simulated.as_secs_f64()));
    }
    Ok(Outcome::Done)
}

/// The same on today's overlay.
fn today(args: &HwCircuit) -> anyhow::Result<Outcome> {
    let only = |given: bool, option: &str| {
        anyhow::ensure!(!given, "{option} is for rtl:sifo; {} schedules and places by itself", args.device);
        Ok(())
    };
    only(args.commands.is_some(), "--commands")?;
    only(args.policy != Placing::DirectlyUsed, "--policy")?;
    only(args.ands != 15, "--ands")?;
    only(args.xors != "15", "--xors")?;
    only(args.boards > 1, "--boards")?;
    let settings = if args.unbound { half_gates::Settings::UNBOUND } else { half_gates::Settings::BOARD };
    let (circuit, _, netlist, inputs) = args.circuit()?;
    let netlist = if args.published { netlist } else { overlay::folded(&netlist)? };
    let chip = HalfGates::with_settings(&args.device, settings)?;
    let done = watched(|| lanes::run(&chip, &netlist, &inputs))?;
    if args.json {
        let mut document = done.document(&settings);
        document["circuit"] = json!(circuit);
        document["published"] = json!(args.published);
        document["device"] = json!(args.device);
        document["same_bits_as"] = json!("cpu");
        document["inputs"] = json!(named(netlist.inputs(), &inputs));
        document["outputs"] = json!(named(netlist.outputs(), &done.outputs));
        output::json(&document)?;
    } else {
        let text = values_text(&netlist, &inputs, &done.outputs) + &done.text(&args.device, &settings);
        output::print(&text)?;
        output::note(&format!("simulated in {:.1} s", done.simulated().as_secs_f64()));
    }
    Ok(Outcome::Done)
}

fn named(ports: &[blindcore_circuit::netlist::Port], bits: &[Vec<bool>]) -> Vec<Value> {
    let named = ports.iter().zip(bits);
    named.map(|(port, bits)| json!({"name": port.name, "value": values::hex(bits)})).collect()
}

/// Inputs and, a line further down, outputs.
fn values_text(netlist: &Netlist, inputs: &[Vec<bool>], outputs: &[Vec<bool>]) -> String {
    let ports = netlist.inputs().iter().chain(netlist.outputs());
    let all: Vec<&str> = ports.map(|p| p.name.as_str()).collect();
    let bits: Vec<Vec<bool>> = inputs.iter().chain(outputs).cloned().collect();
    let lines = shown(&all, &bits);
    let mut text = String::new();
    for (i, line) in lines.lines().enumerate() {
        text += if i == inputs.len() { "\n" } else { "" };
        text += &format!("  {line}\n");
    }
    text
}

pub(super) fn fill(bytes: &mut [u8]) -> anyhow::Result<()> {
    getrandom::fill(bytes).map_err(|e| anyhow::anyhow!("the system gave no randomness: {e}"))
}

/// A value for each input.
pub(crate) fn random_inputs(netlist: &Netlist) -> anyhow::Result<Vec<Vec<bool>>> {
    let ports = netlist.inputs().iter().map(|port| {
        let mut drawn = vec![0u8; port.wires.len()];
        fill(&mut drawn)?;
        Ok(drawn.iter().map(|byte| byte & 1 == 1).collect())
    });
    ports.collect()
}

/// What garbling begins with.
pub(super) struct Fresh {
    pub(super) offset: Offset,
    /// Labels of 0, of constants and inputs.
    pub(super) labels: Labels,
    /// Labels of their values.
    pub(super) active: Labels,
}

impl Fresh {
    pub(super) fn new(placed: &Placed, inputs: &[Vec<bool>]) -> anyhow::Result<Self> {
        let label_bytes = Scheme::InsecureSifo.label_bits() as usize / 8;
        let mut drawn = Zeroizing::new(vec![0u8; label_bytes * (placed.inputs.len() + 1)]);
        fill(&mut drawn)?;
        let mut random = drawn.chunks_exact(label_bytes).map(|bytes| {
            let mut label = Zeroizing::new([0; 16]);
            label[..label_bytes].copy_from_slice(bytes);
            Label::from_le_bytes(*label)
        });
        let offset = Offset::new(random.next().expect("drawn"));
        let [mut labels, mut active] = [(); 2].map(|()| Labels::new(placed.program.slots(), 1));
        // Constants have active labels of zero; the 1's is its label of 0 and the offset.
        labels.set(placed.inputs[1], 0, offset.label());
        for ((slot, bit), zero) in placed.inputs[2..].iter().zip(inputs.iter().flatten()).zip(random) {
            labels.set(*slot, 0, zero);
            active.set(*slot, 0, zero ^ Label::from(*bit).wrapping_neg() & offset.label());
        }
        Ok(Self { offset, labels, active })
    }
}

/// Garbles on the chip and on the CPU, and makes sure that every table and every label is the same.
pub(crate) fn garble(chip: &Overlay, placed: &Placed, inputs: &[Vec<bool>]) -> anyhow::Result<Garbled> {
    let (program, scheme) = (&placed.program, Scheme::InsecureSifo);
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

/// Evaluates the chip's tables on the CPU and decodes the outputs.
fn evaluate(netlist: &Netlist, placed: &Placed, garbled: &mut Garbled) -> anyhow::Result<Vec<Vec<bool>>> {
    let Garbled { active, tables, labels, offset, .. } = garbled;
    let cpu = Cpu::open("cpu")?.garble(&Scheme::InsecureSifo)?;
    cpu.evaluate(&placed.program, 0, active, tables)?;
    decode(netlist, placed, labels, active, offset)
}

/// The outputs, of labels of 0 and active labels.
pub(super) fn decode(
    netlist: &Netlist,
    placed: &Placed,
    labels: &Labels,
    active: &Labels,
    offset: &Offset,
) -> anyhow::Result<Vec<Vec<bool>>> {
    let mut bits = placed.outputs.iter().map(|slot| match active.get(*slot, 0) ^ labels.get(*slot, 0) {
        0 => Ok(false),
        label if label == offset.label() => Ok(true),
        _ => anyhow::bail!("an output's label is neither of its two; report this"),
    });
    netlist.outputs().iter().map(|port| bits.by_ref().take(port.wires.len()).collect()).collect()
}

/// A run that is over, to be told.
struct Run<'a> {
    args: &'a HwCircuit,
    circuit: &'a str,
    settings: &'a Settings,
    netlist: &'a Netlist,
    placed: &'a Placed,
    commands: &'a Commands,
    garbled: &'a Garbled,
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
    fn seconds(&self) -> f64 {
        self.garbled.clocks.cycles as f64 / CLOCK
    }

    /// What the host did in all clocks.
    fn host(&self) -> Host {
        let c = self.garbled.clocks;
        let waits = self.commands.batches().iter().filter(|batch| batch.sync).count() as u64;
        let notices = waits * (self.settings.sync_ns * 1e-9 * CLOCK).round() as u64;
        Host { writes: c.cycles - c.waits_host, waits: c.waits_host - notices, notices }
    }

    fn ands_a_second(&self) -> f64 {
        if self.garbled.clocks.cycles == 0 { 0.0 } else { self.placed.program.ands() as f64 / self.seconds() }
    }

    fn policy(&self) -> String {
        self.args.policy.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }

    fn document(&self, inputs: &[Vec<bool>], outputs: &[Vec<bool>], paper: Option<f64>) -> Value {
        let (c, ands) = (self.garbled.clocks, self.placed.program.ands());
        let (us, host) = (self.seconds() * 1e6, self.host());
        json!({
            "circuit": self.circuit,
            "published": self.args.published,
            "inputs": named(self.netlist.inputs(), inputs),
            "outputs": named(self.netlist.outputs(), outputs),
            "device": self.args.device,
            "same_bits_as": "cpu",
            "policy": self.policy(),
            "cells": {"ands": self.args.ands, "xors": self.settings.cells.xors},
            "ands": ands,
            "xors": self.placed.program.steps().len() - ands,
            "batches": self.commands.batches().len(),
            "places": self.placed.program.slots(),
            "table_bytes": self.garbled.tables.len(),
            "clocks": {
                "all": c.cycles, "host_writes": host.writes, "host_waits": host.waits, "host_notices": host.notices,
                "fetch_waits_for_ddr": c.waits_ddr, "gate_waits_for_cell": c.waits_cell,
            },
            "gates": c.gates,
            "ddr_accesses": c.ddr_accesses,
            "register_writes": c.items,
            "microseconds_at_200_mhz": us,
            "paper_microseconds": paper,
            "ratio": paper.map(|paper| us / paper),
            "ands_per_second": self.ands_a_second(),
            "simulation_seconds": self.garbled.simulated.as_secs_f64(),
        })
    }

    fn text(&self, inputs: &[Vec<bool>], outputs: &[Vec<bool>], paper: Option<f64>) -> String {
        let mut text = values_text(self.netlist, inputs, outputs);
        let (c, ands) = (self.garbled.clocks, self.placed.program.ands());
        text += &format!(
            "\n{} garbled {} ANDs and {} XORs of {} in {} batches, every table and label as cpu has them:\n\
             {} clocks, {:.1} us at 200 MHz, {:.2} M ANDs/s, {} of tables, which cpu evaluated to the outputs in the clear\n",
            self.args.device,
            ands,
            self.placed.program.steps().len() - ands,
            output::printable(&json!(self.circuit)),
            self.commands.batches().len(),
            c.cycles,
            self.seconds() * 1e6,
            self.ands_a_second() / 1e6,
            output::bytes(self.garbled.tables.len() as u64),
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
