//! `blindcore circuit eval`.

use blindcore_circuit::circuit::{digest, short_digest};
use blindcore_circuit::values;
use serde_json::json;

use super::load;
use crate::{Outcome, output};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore circuit eval --circuit mult8 --input 200 --input 0x7b
  blindcore circuit eval --circuit aes128 --input 0x2b7e151628aed2a6abf7158809cf4f3c --input 0 --json
  blindcore circuit eval --circuit sort6x16 --input 300,7,41 --input @others.txt      lists, of a file also a value a line

Nothing is hidden here: this is what two parties' result is compared with. An input's least
significant bit is on its first wire; outputs are printed the same way, with as many digits as their
widths, and in decimal. Lists that a circuit takes as sets are sorted and cleared of doubles, and where
they are short random values are added; standard error says so.")]
pub(crate) struct Eval {
    /// A circuit file, or a name of `blindcore circuit list`
    #[arg(long, value_name = "FILE|NAME")]
    circuit: String,
    /// The value of an input: decimal or 0x-hexadecimal, a list such as 5,7,9, @FILE, or - for standard input; or PLACE=VALUE.
    /// Without places once for each input, in order
    #[arg(long = "input", value_name = "VALUE", allow_hyphen_values = true)]
    inputs: Vec<String>,
    /// Print {"outputs": ["0x...", ...], ...}
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Eval) -> anyhow::Result<Outcome> {
    let netlist = load(&args.circuit)?;
    let mut notes = Vec::new();
    let inputs = values::all(&netlist, &args.inputs, &mut notes)?;
    notes.iter().for_each(|said| output::note(said));
    let (outputs, digest) = (netlist.evaluate(&inputs)?, short_digest(&digest(&netlist)));
    let ports = netlist.output_shapes();
    let values: Vec<String> = outputs.iter().map(|bits| values::hex(bits)).collect();
    if args.json {
        output::json(&json!({
            "outputs": values,
            "values": super::numbers(&ports, &outputs),
            "names": ports.iter().map(|p| &p.name).collect::<Vec<_>>(),
            "bits": ports.iter().map(|p| p.width).collect::<Vec<_>>(),
            "ands": netlist.ands(), "digest": digest,
        }))?;
    } else {
        output::note(&format!("circuit {digest}"));
        output::print(&values::shown(&ports, &outputs))?;
    }
    Ok(Outcome::Done)
}
