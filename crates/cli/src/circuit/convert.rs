//! `blindcore circuit convert`.

use std::path::PathBuf;

use blindcore_circuit::formats;

use super::make::{Format, write};
use crate::Outcome;
use crate::outputs::{Force, check_output};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore circuit convert design.v --out design.txt     yosys's Verilog to Bristol Fashion
  blindcore circuit convert old.txt --out new.txt         the older Bristol format to Bristol Fashion

Names of inputs and outputs have no place in Bristol Fashion; their order and widths stay.")]
pub(crate) struct Convert {
    /// The file to read, in any format
    circuit: PathBuf,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    force: Force,
    /// How it is written
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "bristol")]
    format: Format,
    /// Print what was written as one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Convert) -> anyhow::Result<Outcome> {
    check_output(&args.out, &args.force, &[&args.circuit])?;
    let (netlist, Format::Bristol) = (formats::read(&args.circuit)?, args.format);
    write(&netlist, Some(&args.out), args.force.existing(), args.json)?;
    Ok(Outcome::Done)
}
