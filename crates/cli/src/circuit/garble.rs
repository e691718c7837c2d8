//! `blindcore circuit garble`: both sides in this process, to see what a circuit costs.

use std::time::{Duration, Instant};

use blindcore_accel::garble::{Label, Labels, Offset, Scheme};
use blindcore_circuit::compile::Compiled;
use clap::ValueEnum;
use serde_json::json;

use super::load;
use crate::args::DeviceArgs;
use crate::config::Config;
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

/// Most memory for tables, labels and inputs.
const MOST: usize = 8 << 30;

pub(crate) fn run(config: &Config, args: &Garble) -> anyhow::Result<Outcome> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|e| anyhow::anyhow!("the system gave no randomness: {e}"))?;
    let (offset, key) = random.split_at(16);
    let key: [u8; 16] = key.try_into().expect("sixteen bytes");
    let scheme = match args.scheme {
        Way::HalfGates => Scheme::HalfGates { key },
        Way::ThreeHalves => Scheme::ThreeHalves { key },
        Way::Sifo => {
            anyhow::ensure!(
                args.allow_broken,
                "SIFO's way hashes with SHA-1 and has labels of 80 bits, which protect nothing today; give \
                 --allow-broken to measure it all the same"
            );
            output::note("SIFO's way is broken (SHA-1, 80 bits): what it garbles is not protected");
            Scheme::InsecureSifo
        }
    };
    let netlist = load(&args.circuit)?;
    let compiled = Compiled::new(&netlist);
    let program = &compiled.program;
    let instances = args.instances as usize;
    let bytes = program.ands().saturating_mul(instances).saturating_mul(scheme.table_bytes());
    // Two labels a slot, its own and the one that is active.
    let labels = program.slots().saturating_mul(instances).saturating_mul(2 * size_of::<Label>());
    let all = bytes.saturating_add(labels).saturating_add(compiled.input_bits.saturating_mul(instances));
    anyhow::ensure!(
        all <= MOST,
        "{} of tables and {} of labels are over the {} that this command keeps; take fewer --instances",
        output::bytes(bytes as u64),
        output::bytes(labels as u64),
        output::bytes(MOST as u64)
    );
    let device = device::open(&args.device, config)?;
    let operation = device.garble(&scheme)?;
    let mask = Label::MAX >> (128 - scheme.label_bits());
    let offset = Offset::new(Label::from_le_bytes(offset.try_into().expect("sixteen bytes")) & mask);
    let mut labels = Labels::new(program.slots(), instances);
    let mut active = Labels::new(program.slots(), instances);
    let mut inputs = vec![vec![false; compiled.input_bits]; instances];
    let mut drawn = vec![0u8; compiled.input_bits * 17];
    labels.set_all(1, offset.label());
    for (instance, bits) in inputs.iter_mut().enumerate() {
        getrandom::fill(&mut drawn).map_err(|e| anyhow::anyhow!("the system gave no randomness: {e}"))?;
        for (bit, drawn) in drawn.as_chunks::<17>().0.iter().enumerate() {
            let zero = Label::from_le_bytes(drawn[..16].try_into().expect("sixteen")) & mask;
            bits[bit] = drawn[16] & 1 == 1;
            labels.set(2 + bit as u32, instance, zero);
            let one = Label::from(bits[bit]).wrapping_neg() & offset.label();
            active.set(2 + bit as u32, instance, zero ^ one);
        }
    }
    let mut tables = vec![0u8; bytes];
    let timed = |work: &mut dyn FnMut() -> Result<(), blindcore_accel::Error>| {
        let start = Instant::now();
        work().map(|()| start.elapsed())
    };
    let garbled = timed(&mut || operation.garble(program, &offset, 0, &mut labels, &mut tables).map(|_| ()))?;
    let evaluated = timed(&mut || operation.evaluate(program, 0, &mut active, &tables).map(|_| ()))?;
    for (instance, bits) in inputs.iter().enumerate() {
        let mut rest = &bits[..];
        let values: Vec<Vec<bool>> = netlist
            .inputs()
            .iter()
            .map(|port| rest.split_off(..port.wires.len()).expect("as many bits").to_vec())
            .collect();
        let clear = netlist.evaluate(&values)?.concat();
        for (slot, want) in compiled.outputs.iter().zip(clear) {
            let got = active.get(*slot, instance) ^ labels.get(*slot, instance);
            let label = Label::from(want).wrapping_neg() & offset.label();
            anyhow::ensure!(got == label, "the device {} evaluated wrongly", device.name());
        }
    }
    let ands = program.ands() as u64 * u64::from(args.instances);
    let rate = |time: Duration| ands as f64 / time.as_secs_f64();
    if args.json {
        output::json(&json!({
            "ands": ands,
            "xors": (program.steps().len() - program.ands()) as u64 * u64::from(args.instances),
            "layers": program.layers().len(),
            "parts": program.parts().len(),
            "slots": program.slots(),
            "wires": netlist.wires(),
            "table_bytes": bytes,
            "device": device.name(),
            "garble_seconds": garbled.as_secs_f64(),
            "evaluate_seconds": evaluated.as_secs_f64(),
            "garble_ands_per_second": rate(garbled),
            "evaluate_ands_per_second": rate(evaluated),
        }))?;
    } else {
        output::print(&format!(
            "{ands} ANDs in {} layers, {} of tables, {} labels kept of {} wires\n\
             garbled    in {:.6} s, {:.1} M ANDs/s\nevaluated  in {:.6} s, {:.1} M ANDs/s, as in the clear\n",
            program.layers().len(),
            output::bytes(bytes as u64),
            program.slots(),
            netlist.wires(),
            garbled.as_secs_f64(),
            rate(garbled) / 1e6,
            evaluated.as_secs_f64(),
            rate(evaluated) / 1e6,
        ))?;
    }
    Ok(Outcome::Done)
}
