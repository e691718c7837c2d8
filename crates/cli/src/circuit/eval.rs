//! `blindcore circuit eval`.

use blindcore_circuit::values;
use serde_json::json;

use super::load;
use crate::{Outcome, output};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore circuit eval --circuit mult8 --input 200 --input 0x7b
  blindcore circuit eval --circuit aes128 --input 0x2b7e151628aed2a6abf7158809cf4f3c --input 0 --json

Nothing is hidden here: this is what two parties' result is compared with. An input's least
significant bit is on its first wire; outputs are printed the same way, with as many digits as their
widths.")]
pub(crate) struct Eval {
    /// A circuit file, or a name of `blindcore circuit list`
    #[arg(long, value_name = "FILE|NAME")]
    circuit: String,
    /// The value of an input, decimal or 0x-hexadecimal; once for each input, in order
    #[arg(long = "input", value_name = "VALUE", allow_hyphen_values = true)]
    inputs: Vec<String>,
    /// Print {"outputs": ["0x...", ...], ...}
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Eval) -> anyhow::Result<Outcome> {
    let netlist = load(&args.circuit)?;
    let inputs = values::inputs(&netlist, &args.inputs)?;
    let outputs = netlist.evaluate(&inputs)?;
    let values: Vec<String> = outputs.iter().map(|bits| values::hex(bits)).collect();
    let names: Vec<&str> = netlist.outputs().iter().map(|p| p.name.as_str()).collect();
    if args.json {
        let bits: Vec<usize> = outputs.iter().map(Vec::len).collect();
        output::json(&json!({"outputs": values, "names": names, "bits": bits, "ands": netlist.ands()}))?;
    } else {
        output::print(&super::shown(&names, &outputs))?;
    }
    Ok(Outcome::Done)
}
