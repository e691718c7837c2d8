//! `blindcore hw run circuit`: a real circuit, garbled by a simulated overlay.

use std::path::PathBuf;

use blindcore_accel_rtl::sifo::half_gates::HalfGates;
use blindcore_accel_rtl::sifo::memory::Policy;
use blindcore_accel_rtl::sifo::{self, CellCounts, Overlay, OverlaySettings};
use blindcore_circuit::netlist::{Netlist, Port};
use blindcore_circuit::problems::published::{self, ROWS, Row};
use blindcore_circuit::values;
use blindcore_files::{Access, Existing, new_file};
use blindcore_repro::overlay::{About, Job};
use blindcore_repro::{boards, half_gates};
use clap::ValueEnum;
use serde_json::{Value, json};

use super::{simulated, watched};
use crate::Outcome;
use crate::circuit::load;
use crate::output;

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
  blindcore hw run circuit --device rtl:sifo-half-gates                   on the half-gates overlay, where nothing is broken

The chip garbles; the CPU garbles the same, and every table and label is compared. Then the CPU (the half-gates overlay: the chip)
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
    #[arg(long, value_name = "L", default_value = "15")]
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
    fn cells(&self) -> anyhow::Result<CellCounts> {
        let xors = match self.xors.as_str() {
            "any" => None,
            number => Some(number.parse().map_err(|_| {
                anyhow::anyhow!("--xors {number:?} is not a number of cells; say 1 to 15, or any")
            })?),
        };
        Ok(CellCounts { ands: self.ands, xors })
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
        let mut notes = Vec::new();
        let inputs = match (&self.inputs[..], named) {
            ([], None) => values::all(&netlist, &DEFAULT.1.map(str::to_owned), &mut notes)?,
            ([], Some(_)) => blindcore_repro::random_inputs(&netlist)?,
            (given, _) => values::all(&netlist, given, &mut notes)?,
        };
        notes.iter().for_each(|said| output::note(said));
        Ok((circuit, row, netlist, inputs))
    }
}

pub(crate) fn run(args: &HwCircuit) -> anyhow::Result<Outcome> {
    anyhow::ensure!((1..=16).contains(&args.boards), "--boards is {}, outside 1 to 16", args.boards);
    if HalfGates::names().any(|name| name == args.device) {
        return half_gates(args);
    }
    anyhow::ensure!(
        Overlay::names().any(|name| name == args.device),
        "--device {:?} is not a chip that runs circuits; use {}",
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
    let (policy, block_ram) = match args.policy {
        Placing::DirectlyUsed => (Policy::DirectlyUsed, OverlaySettings::PAPER.block_ram),
        Placing::MostFrequentlyUsed => (Policy::MostFrequentlyUsed, OverlaySettings::PAPER.block_ram),
        Placing::Lifetimes => (Policy::Lifetimes, OverlaySettings::PAPER.block_ram),
        Placing::None => (Policy::DirectlyUsed, 0),
    };
    let settings = OverlaySettings { cells, block_ram, ..OverlaySettings::PAPER };

    let (circuit, row, netlist, inputs) = args.circuit()?;
    let job = Job::new(&args.device, settings, policy, circuit, &netlist)?;
    if let Some(Some(path)) = &args.commands {
        new_file::write(path, Access::Everyone, Existing::Keep, job.commands().to_string().as_bytes())?;
        output::made(path);
    }
    output::warn("SIFO's way is broken (SHA-1, 80 bits): what it garbles is not protected");
    let printable = output::printable(&json!(circuit));
    if args.boards > 1 {
        let several =
            watched(|| boards::run(&args.device, &settings, &netlist, job.placed(), &inputs, args.boards))?;
        if args.json {
            let mut document = several.document(circuit);
            document["published"] = json!(args.published);
            document["device"] = json!(args.device);
            document["cells"] = json!({"ands": args.ands, "xors": settings.cells.xors});
            document["inputs"] = json!(named(netlist.inputs(), &inputs));
            document["outputs"] = json!(named(netlist.outputs(), several.outputs()));
            output::json(&document)?;
        } else {
            let text = values_text(&netlist, &inputs, several.outputs());
            output::print(&format!("{text}\n{}", several.text(&args.device, &printable)))?;
        }
        return Ok(Outcome::Done);
    }

    let run = watched(|| job.run(&inputs))?;
    // Table 11's time, where this is a run of Table 11.
    let paper = row.filter(|_| settings == OverlaySettings::PAPER && args.policy == Placing::DirectlyUsed);
    let paper = paper.map(|row| row.figures.fpga_us as f64);
    if args.json {
        let policy = args.policy.to_possible_value();
        output::json(&run.document(&About {
            circuit,
            published: args.published,
            policy: policy.as_ref().map_or("", |value| value.get_name()),
            inputs: json!(named(netlist.inputs(), &inputs)),
            outputs: json!(named(netlist.outputs(), run.outputs())),
            paper,
        }))?;
    } else {
        let text = values_text(&netlist, &inputs, run.outputs()) + &run.text(&printable, paper);
        output::print(&if to_screen { format!("{}\n{text}", job.commands()) } else { text })?;
        simulated(run.simulated());
    }
    Ok(Outcome::Done)
}

/// The same on the half-gates overlay.
fn half_gates(args: &HwCircuit) -> anyhow::Result<Outcome> {
    let only = |given: bool, option: &str| {
        anyhow::ensure!(!given, "{option} is for rtl:sifo; {} schedules and places by itself", args.device);
        Ok(())
    };
    only(args.commands.is_some(), "--commands")?;
    only(args.policy != Placing::DirectlyUsed, "--policy")?;
    only(args.ands != 15, "--ands")?;
    only(args.xors != "15", "--xors")?;
    only(args.boards > 1, "--boards")?;
    let settings = if args.unbound {
        sifo::half_gates::HalfGatesSettings::UNBOUND
    } else {
        sifo::half_gates::HalfGatesSettings::BOARD
    };
    let (circuit, _, netlist, inputs) = args.circuit()?;
    let netlist = if args.published { netlist } else { blindcore_circuit::folded(&netlist)? };
    let chip = blindcore_repro::chip(HalfGates::with_settings(&args.device, settings))?;
    let done = watched(|| half_gates::run(&chip, &netlist, &inputs))?;
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
        simulated(done.simulated());
    }
    Ok(Outcome::Done)
}

fn named(ports: &[Port], bits: &[Vec<bool>]) -> Vec<Value> {
    let named = ports.iter().zip(bits);
    named.map(|(port, bits)| json!({"name": port.name, "value": values::hex(bits)})).collect()
}

/// Inputs and, a line further down, outputs.
fn values_text(netlist: &Netlist, inputs: &[Vec<bool>], outputs: &[Vec<bool>]) -> String {
    let all = [netlist.input_shapes(), netlist.output_shapes()].concat();
    let bits: Vec<Vec<bool>> = inputs.iter().chain(outputs).cloned().collect();
    let lines = values::shown(&all, &bits);
    let mut text = String::new();
    for (i, line) in lines.lines().enumerate() {
        text += if i == inputs.len() { "\n" } else { "" };
        text += &format!("  {line}\n");
    }
    text
}
