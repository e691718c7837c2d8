//! `blindcore circuit`: circuits by name and in files, what they are made of, and what they compute.

mod convert;
mod eval;
mod garble;
mod make;
mod run;
mod stats;

use std::path::Path;

use blindcore_circuit::formats;
use blindcore_circuit::netlist::Netlist;
use blindcore_circuit::problems::{self, ProblemError};
use blindcore_circuit::values;
use clap::Subcommand;

use crate::config::Config;
use crate::{Outcome, output};

#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  blindcore circuit list                                            circuits that have names
  blindcore circuit make mult8 --out mult8.txt                      one of them as a file in Bristol Fashion
  blindcore circuit stats mult8.txt                                 its gates, layers, wires and memory
  blindcore circuit eval --circuit mult8 --input 200 --input 123    what it computes, in the clear
  blindcore circuit run --help                                      by two parties, neither showing its input

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
    /// Garble and evaluate a circuit in this process, to see what it costs
    Garble(garble::Garble),
    /// Write a circuit file in another format
    Convert(convert::Convert),
    /// Compute with others on all inputs, each side seeing its own alone
    Run(Box<run::Run>),
    /// Make a certificate and key, by which parties know each other
    Identity(run::Identity),
}

pub(crate) fn run(config: &Config, command: Circuit) -> anyhow::Result<Outcome> {
    match command {
        Circuit::List(args) => make::list(&args),
        Circuit::Make(args) => make::make(&args),
        Circuit::Stats(args) => stats::run(&args),
        Circuit::Eval(args) => eval::run(&args),
        Circuit::Garble(args) => garble::run(config, &args),
        Circuit::Convert(args) => convert::run(&args),
        Circuit::Run(args) => run::run(config, &args),
        Circuit::Identity(args) => run::identity(&args),
    }
}

/// The circuit of a file or, where there is none, of a name.
pub(crate) fn load(circuit: &str) -> anyhow::Result<Netlist> {
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

/// Outputs for people: name, value in hexadecimal and, where it is not too long, in decimal.
pub(crate) fn shown(names: &[&str], outputs: &[Vec<bool>]) -> String {
    let wide = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, bits) in names.iter().zip(outputs) {
        text += &format!("{:wide$} {}", output::printable(&serde_json::json!(name)), values::hex(bits));
        if bits.len() <= 128 {
            let number = bits.iter().rev().fold(0u128, |n, b| n << 1 | u128::from(*b));
            text += &format!(" ({number})");
        }
        text.push('\n');
    }
    text
}
