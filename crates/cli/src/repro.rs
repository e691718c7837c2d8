//! `blindcore repro`: a paper's figures, made again beside those that it published.

use blindcore_repro::phepu::Figure;
use blindcore_repro::{Table, half_gates_table, onionchopper, phepu, sifo};
use clap::builder::PossibleValue;
use clap::{Subcommand, ValueEnum};

use crate::Outcome;
use crate::output::{self, Bar};

#[derive(Subcommand)]
pub(crate) enum Repro {
    /// Tables 5 to 11 of SIFO (2019) and its bandwidths, on the paper's own netlists
    #[command(after_help = "\
Examples:
  blindcore repro sifo                        tables in Markdown, in some ten seconds
  blindcore repro sifo --simulate             what can be simulated, simulated too: some two minutes
  blindcore repro sifo --table 11 --simulate  only the last table
  blindcore repro sifo --today                the half-gates overlay beside the paper's
  blindcore repro sifo --json                 the same rows for programs

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
    /// Table 3.2, Figures 6-1 to 6-13 and section 6.4 of OnionChopper (2023), by the model and its sweeps
    #[command(after_help = "\
Examples:
  blindcore repro onionchopper                          tables in Markdown, in a minute or two
  blindcore repro onionchopper --no-cpu --pictures DIR  the same on every machine; the figures as SVG and PNG
  blindcore repro onionchopper --table 3.2              the operation that schemes share, counted

Joules that are called calibrated are fitted to the published shares. `hw report` has the simulated chip's clocks.")]
    Onionchopper(Onionchopper),
}

#[derive(clap::Args)]
pub(crate) struct Sifo {
    /// Simulate the problems up to the 64-bit multiplication, on the chip that `make -C hw libraries` makes
    #[arg(long)]
    simulate: bool,
    /// Only this table, 5 to 11; may be given several times
    #[arg(long = "table", value_name = "N", value_parser = clap::value_parser!(u32).range(sifo::TABLES))]
    tables: Vec<u32>,
    /// Instead: the half-gates overlay on the problems from the 8-bit multiplication on, simulated, beside the paper's times
    #[arg(long, conflicts_with_all = ["simulate", "tables"])]
    today: bool,
    /// Print the rows as one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct Phepu {
    /// Only this figure; may be given several times
    #[arg(long = "figure", value_name = "N", value_enum)]
    figures: Vec<FigureName>,
    /// Leave the CPU out: what is left is the same on every machine
    #[arg(long)]
    no_cpu: bool,
    /// Print the rows as one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct Onionchopper {
    /// Instead: this table alone, counted from real queries of every scheme
    #[arg(long, value_name = "N", value_parser = ["3.2"], conflicts_with_all = ["no_cpu", "pictures"])]
    table: Option<String>,
    /// Leave the CPU out: what is left is the same on every machine
    #[arg(long)]
    no_cpu: bool,
    /// Draw the figures into this folder
    #[arg(long, value_name = "DIR")]
    pictures: Option<std::path::PathBuf>,
    /// Print the rows as one JSON document
    #[arg(long)]
    json: bool,
}

/// A figure as the command line has it.
#[derive(Clone, Copy)]
struct FigureName(Figure);

impl ValueEnum for FigureName {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(Figure::Scaling), Self(Figure::Rates), Self(Figure::Specification)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self.0 {
            Figure::Scaling => "Tasks over elements and chips, and beside software",
            Figure::Rates => "Rates of primitive operations, and what sparse weights save",
            Figure::Specification => "The chip's and the card's figures",
        };
        Some(PossibleValue::new(self.0.name()).help(help))
    }
}

pub(crate) fn run(command: &Repro) -> anyhow::Result<Outcome> {
    let mut progress = Bar::new();
    let bar = &mut progress;
    let (table, as_json) = match command {
        Repro::Sifo(args) if args.today => (half_gates_table::make(bar)?, args.json),
        Repro::Sifo(args) => {
            let options = sifo::Options { simulate: args.simulate, tables: args.tables.clone() };
            (sifo::make(&options, bar)?, args.json)
        }
        Repro::Phepu(args) => {
            let figures = args.figures.iter().map(|figure| figure.0).collect();
            (phepu::make(&phepu::Options { figures, no_cpu: args.no_cpu }, bar)?, args.json)
        }
        Repro::Onionchopper(args) if args.table.is_some() => {
            (onionchopper::operation::table(bar)?, args.json)
        }
        Repro::Onionchopper(args) => {
            let (no_cpu, pictures) = (args.no_cpu, args.pictures.clone());
            (onionchopper::make(&onionchopper::Options { no_cpu, pictures }, bar)?, args.json)
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
