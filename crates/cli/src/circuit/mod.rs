//! `blindcore circuit`: circuits by name and in files, what they are made of, and what they compute.

mod convert;
mod eval;
mod garble;
mod make;
mod run;
mod stats;

use blindcore_circuit::circuit::PortShape;
use blindcore_circuit::netlist::Netlist;
use blindcore_circuit::{named, values};
use clap::Subcommand;
use serde_json::Value;

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
    Ok(named::load(circuit, &mut |said| output::warn(said))?)
}

/// Outputs in JSON: a number, or a list's numbers; as integers up to 64 bits, as text where they are wider, in hexadecimal over 128.
pub(crate) fn numbers(ports: &[PortShape], outputs: &[Vec<bool>]) -> Vec<Value> {
    let number = |bits: &[bool]| match values::text(bits).parse::<u64>() {
        Ok(number) if bits.len() <= 64 => number.into(),
        _ => values::text(bits).into(),
    };
    let value = |(port, bits): (&PortShape, &Vec<bool>)| match port.form.element {
        Some(width) => bits.chunks(width).map(number).collect(),
        None => number(bits),
    };
    ports.iter().zip(outputs).map(value).collect()
}
