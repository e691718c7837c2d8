//! `blindcore repro`: a paper's figures, made again beside those that it published.

use blindcore_repro::onionchopper::{operation, profile};
use blindcore_repro::phepu::Figure;
use blindcore_repro::{Table, half_gates_table, onionchopper, phepu, sifo};
use clap::Subcommand;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::Outcome;
use crate::output::{self, Bar};

#[derive(Subcommand)]
pub(crate) enum Repro {
    /// Tables 1 and 3 to 11 of SIFO (2019) and its bandwidths, on the paper's own netlists
    #[command(after_help = "\
Examples:
  blindcore repro sifo                        tables in Markdown, in some ten seconds
  blindcore repro sifo --simulate             what can be simulated, simulated too: some two minutes
  blindcore repro sifo --table 11 --simulate  only the last table
  blindcore repro sifo --today --json         the half-gates overlay beside the paper's, for programs

Clocks come from a model of the overlay that takes as many as its SystemVerilog; --simulate runs that as well, for all
problems up to the 64-bit multiplication, and says whether it takes the same clocks; it compares every table and label
with the CPU's, too. One set of link and memory parameters serves all of Table 11: what is fitted is said.")]
    Sifo(Sifo),
    /// Figures 15.4.5 to 15.4.7 of PH-EPU (2023), on the simulated chip and card
    #[command(after_help = "\
Examples:
  blindcore repro phepu                       tables in Markdown, in a minute or two
  blindcore repro phepu --figure 15.4.6       only rates and sparsity
  blindcore repro phepu --json                the same rows for programs

Clocks are the simulated hardware's own, at 4096 bits, and exact; times are at 500 MHz. The CPU's rates are measured on
this machine in the same run. Areas are those that `make -C hw syn` left in hw/syn/results.")]
    Phepu(Phepu),
    /// Tables 2.1, 3.1 and 3.2, Figures 6-1 to 6-13 and section 6.4 of OnionChopper (2023), by queries, the model and its sweeps
    #[command(after_help = "\
Examples:
  blindcore repro onionchopper                          tables in Markdown, in a minute or two
  blindcore repro onionchopper --no-cpu --pictures DIR  the same on every machine; the figures as SVG and PNG
  blindcore repro onionchopper --table 3.1 --gib 32     where the time of our own OnionPIR goes, at the thesis's size
  blindcore repro onionchopper --table 3.1 --disk DIR   the same over polynomials that are streamed from a disk
  blindcore repro onionchopper --table 3.2              the operation that schemes share, counted

Joules that are called calibrated are fitted to the published shares. `hw report` has the simulated chip's clocks.")]
    Onionchopper(Onionchopper),
}

#[derive(clap::Args)]
pub(crate) struct Sifo {
    /// Simulate the problems up to the 64-bit multiplication, on the chip that `make -C hw libraries` makes
    #[arg(long)]
    simulate: bool,
    /// Only this table; may be given several times
    #[arg(long = "table", value_name = "N", value_parser = table())]
    tables: Vec<u32>,
    /// Instead: the half-gates overlay on the problems from the 8-bit multiplication on, simulated, beside the paper's times
    #[arg(long, conflicts_with_all = ["simulate", "tables", "no_cpu"])]
    today: bool,
    #[command(flatten)]
    out: Out,
}

#[derive(clap::Args)]
struct Out {
    /// Leave the CPU out: what is left is the same on every machine
    #[arg(long)]
    no_cpu: bool,
    /// Print the rows as one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct Phepu {
    /// Only this figure; may be given several times
    #[arg(long = "figure", value_name = "N", value_parser = figure())]
    figures: Vec<Figure>,
    #[command(flatten)]
    out: Out,
}

#[derive(clap::Args)]
pub(crate) struct Onionchopper {
    /// Instead: this table alone, from real queries of OnionPIR (3.1) or of every scheme (3.2)
    #[arg(long, value_name = "N", value_parser = ["3.1", "3.2"], conflicts_with_all = ["no_cpu", "pictures"])]
    table: Option<String>,
    /// Table 3.1: GiB of records, 1/64 to 64 [default: 4]
    #[arg(long, value_name = "N", requires = "table")]
    gib: Option<f64>,
    /// Table 3.1: stream polynomials, 3 to 6 times the records, from a file in this folder; it is gone when the command is
    #[arg(long, value_name = "DIR", requires = "table")]
    disk: Option<std::path::PathBuf>,
    /// Draw the figures into this folder
    #[arg(long, value_name = "DIR")]
    pictures: Option<std::path::PathBuf>,
    #[command(flatten)]
    out: Out,
}

fn table() -> impl TypedValueParser<Value = u32> {
    PossibleValuesParser::new(sifo::TABLES).map(|number| number.parse().expect("it is one of these"))
}

fn figure() -> impl TypedValueParser<Value = Figure> {
    let values = Figure::ALL.map(|figure| PossibleValue::new(figure.name()).help(figure.about()));
    PossibleValuesParser::new(values).map(|name| Figure::named(&name).expect("it is one of these"))
}

pub(crate) fn run(command: &Repro) -> anyhow::Result<Outcome> {
    let mut progress = Bar::new();
    let bar = &mut progress;
    let (table, as_json) = match command {
        Repro::Sifo(args) if args.today => (half_gates_table::make(bar)?, args.out.json),
        Repro::Sifo(args) => {
            let (simulate, no_cpu, tables) = (args.simulate, args.out.no_cpu, args.tables.clone());
            (sifo::make(&sifo::Options { simulate, no_cpu, tables }, bar)?, args.out.json)
        }
        Repro::Phepu(args) => {
            let figures = args.figures.clone();
            (phepu::make(&phepu::Options { figures, no_cpu: args.out.no_cpu }, bar)?, args.out.json)
        }
        Repro::Onionchopper(args) => {
            let (gib, disk, pictures) = (args.gib, args.disk.clone(), args.pictures.clone());
            let table = match args.table.as_deref() {
                Some("3.1") => profile::make(&profile::Options::new(gib, disk), bar)?,
                Some(_) if gib.is_some() || disk.is_some() => {
                    anyhow::bail!("--gib and --disk are Table 3.1's; leave them out, or say --table 3.1")
                }
                Some(_) => operation::table(bar)?,
                None => {
                    onionchopper::make(&onionchopper::Options { no_cpu: args.out.no_cpu, pictures }, bar)?
                }
            };
            (table, args.out.json)
        }
    };
    drop(progress);
    let Table { document, text, notes } = table;
    notes.iter().for_each(|note| output::note(note));
    if as_json {
        output::json(&document)?
    } else {
        output::print(&text)?
    }
    Ok(Outcome::Done)
}
