//! `blindcore circuit garble`: both sides in this process, to see what a circuit costs.

use blindcore_accel::Operation;
use blindcore_accel::garble::GarblingScheme;
use blindcore_circuit::trial;
use clap::ValueEnum;
use serde_json::json;

use super::load;
use crate::config::Config;
use crate::device::DeviceArgs;
use crate::{Outcome, device, output};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Way {
    /// Two ciphertexts of 128 bits a gate
    HalfGates,
    /// Three of 64 bits and five more: a quarter less to send for more work
    ThreeHalves,
    /// SIFO's: SHA-1 and 80-bit labels; broken, to compare with
    Sifo,
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore circuit garble --circuit mult64
  blindcore circuit garble --circuit aes128 --instances 1000 --threads 1 --json
  blindcore circuit garble --circuit mult64 --scheme sifo --allow-broken      as the paper's FPGA does it

The circuit is garbled, evaluated on random inputs, and the outputs are compared with those in the clear. Nothing leaves
the process.")]
pub(crate) struct Garble {
    /// A circuit file, or a name of `blindcore circuit list`
    #[arg(long, value_name = "FILE|NAME")]
    circuit: String,
    /// How gates are garbled
    #[arg(long, default_value = "half-gates")]
    scheme: Way,
    /// Copies of the circuit, each with inputs of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    instances: u32,
    /// Allow what is known to be broken
    #[arg(long)]
    allow_broken: bool,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print the result as one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(config: &Config, args: &Garble) -> anyhow::Result<Outcome> {
    let scheme = match args.scheme {
        Way::HalfGates => GarblingScheme::HalfGates { key: trial::random_key()? },
        Way::ThreeHalves => GarblingScheme::ThreeHalves { key: trial::random_key()? },
        Way::Sifo => {
            anyhow::ensure!(
                args.allow_broken,
                "SIFO's way hashes with SHA-1 and has labels of 80 bits, which protect nothing today; give \
                 --allow-broken to measure it all the same"
            );
            output::warn("SIFO's way is broken (SHA-1, 80 bits): what it garbles is not protected");
            GarblingScheme::InsecureSifo
        }
    };
    let netlist = load(&args.circuit)?;
    let device = device::open_for(&args.device, config, &[Operation::Garble, Operation::Evaluate])?;
    let done = trial::run(&netlist, &device, &scheme, args.instances as usize)?;
    let (garbled, evaluated) = (done.garble.as_secs_f64(), done.evaluate.as_secs_f64());
    let rate = |seconds: f64| done.ands as f64 / seconds;
    if args.json {
        output::json(&json!({
            "ands": done.ands,
            "xors": done.xors,
            "layers": done.layers,
            "parts": done.parts,
            "slots": done.slots,
            "wires": netlist.wires(),
            "table_bytes": done.table_bytes,
            "device": device.name(),
            "garble_seconds": garbled,
            "evaluate_seconds": evaluated,
            "garble_ands_per_second": rate(garbled),
            "evaluate_ands_per_second": rate(evaluated),
        }))?;
    } else {
        output::print(&format!(
            "{} ANDs in {} layers, {} of tables, {} labels kept of {} wires\n\
             garbled    in {garbled:.6} s, {:.1} M ANDs/s\nevaluated  in {evaluated:.6} s, {:.1} M ANDs/s, as in the clear\n",
            done.ands,
            done.layers,
            output::bytes(done.table_bytes as u64),
            done.slots,
            netlist.wires(),
            rate(garbled) / 1e6,
            rate(evaluated) / 1e6,
        ))?;
    }
    Ok(Outcome::Done)
}
