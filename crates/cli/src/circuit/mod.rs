//! `blindcore circuit`: circuits by name and in files, what they are made of, and what they compute.

mod convert;
mod eval;
mod make;
mod stats;
mod values;

use std::path::Path;

use blindcore_circuit::formats;
use blindcore_circuit::netlist::Netlist;
use blindcore_circuit::problems::{self, ProblemError};
use clap::Subcommand;

use crate::Outcome;

#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  blindcore circuit list                                            circuits that have names
  blindcore circuit make mult8 --out mult8.txt                      one of them as a file in Bristol Fashion
  blindcore circuit stats mult8.txt                                 its gates, layers, wires and memory
  blindcore circuit eval --circuit mult8 --input 200 --input 123    what it computes, in the clear

A circuit is a file (Bristol Fashion, the older Bristol format, or structural Verilog as yosys writes it; told apart by
what is in them) or, where there is no such file, a name from the list.")]
pub(crate) enum Circuit {
    /// List the circuits that have names
    List(make::List),
    /// Write a circuit that has a name to a file
    Make(make::Make),
    /// Count a circuit's gates, layers and wires, and what memory policies make of it
    Stats(stats::Stats),
    /// Evaluate a circuit with all inputs in the clear
    Eval(eval::Eval),
    /// Write a circuit file in another format
    Convert(convert::Convert),
}

pub(crate) fn run(command: Circuit) -> anyhow::Result<Outcome> {
    match command {
        Circuit::List(args) => make::list(&args),
        Circuit::Make(args) => make::make(&args),
        Circuit::Stats(args) => stats::run(&args),
        Circuit::Eval(args) => eval::run(&args),
        Circuit::Convert(args) => convert::run(&args),
    }
}

/// The circuit of a file or, where there is none, of a name.
fn load(circuit: &str) -> anyhow::Result<Netlist> {
    let path = Path::new(circuit);
    if path.exists() {
        return Ok(formats::read(path)?);
    }
    match problems::make(circuit) {
        Err(ProblemError::Unknown(_)) => anyhow::bail!(
            "there is no file {circuit:?}, and no circuit of that name; `blindcore circuit list` has all names"
        ),
        made => Ok(made?),
    }
}
