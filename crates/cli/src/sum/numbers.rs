//! `blindcore sum encrypt` and `decrypt`.

use std::path::{Path, PathBuf};

use blindcore_accel::Operation;
use blindcore_numbers::Source;
use blindcore_sum::disk;
use blindcore_sum::encoding::Form;
use blindcore_sum::evaluate::Evaluator;
use blindcore_sum::numbers::{self, Declared, Results};
use blindcore_sum::packing::Packing;
use blindcore_sum::scheme::Decryptor;
use serde_json::{Value, json};

use super::files::{TestKeys, check_numbers_output, numbers_path, public_key, secret_key};
use crate::config::Config;
use crate::device::DeviceArgs;
use crate::output::Bar;
use crate::outputs::{Force, check_output};
use crate::{Outcome, device, output};

/// Milliseconds by stage.
pub(crate) struct Stages {
    last: std::time::Instant,
    stages: serde_json::Map<String, Value>,
}

impl Stages {
    pub(crate) fn new() -> Self {
        Self { last: std::time::Instant::now(), stages: serde_json::Map::new() }
    }

    /// The stage that ends now.
    pub(crate) fn end(&mut self, name: &str) {
        let ms = (self.last.elapsed().as_secs_f64() * 1e6).round() / 1e3;
        self.stages.insert(name.into(), json!(ms));
        self.last = std::time::Instant::now();
    }

    pub(crate) fn json(self) -> Value {
        Value::Object(self.stages)
    }
}

/// What is said of a batch.
pub(crate) fn describe(form: &Form) -> Value {
    json!({
        "ciphertexts": form.len(), "shape": form.numbers_shape(), "exponent": form.exponent,
        "decimals": form.scale, "bound_bits": form.bound.bits(),
        "packing": form.packed.map(|p| json!({
            "slots": p.packing.slots(), "slot_bits": p.packing.slot_bits(), "samples": p.samples,
        })),
    })
}

/// What numbers are declared to keep to: public, so not taken from them.
#[derive(clap::Args)]
pub(crate) struct Range {
    /// Integers have at most this many bits, the sign's included [default: 32]
    #[arg(long, value_name = "N")]
    bits: Option<u32>,
    /// Floats are rounded to the next power of 10 below this (of 16 for .jsonl): 0.01 keeps cents [default: 1e-9]
    #[arg(long, value_name = "X", value_parser = numbers::parameter)]
    precision: Option<f64>,
    /// Floats are at most this large [default: 1e9]
    #[arg(long, value_name = "X", value_parser = numbers::parameter)]
    magnitude: Option<f64>,
    /// The first line of CSV or TSV holds the names of its columns, whatever stands there
    #[arg(long)]
    header: bool,
}

impl Range {
    /// Where numbers come from.
    pub(crate) fn source(&self, spec: &str) -> anyhow::Result<Source> {
        let source = Source::parse(spec)?.with_decimals(self.declared(false).decimals());
        Ok(if self.header { source.with_header() } else { source })
    }

    /// What is said of numbers.
    pub(crate) fn declared(&self, phe: bool) -> Declared {
        let Self { bits, precision, magnitude, .. } = *self;
        Declared { bits, precision, magnitude, phe }
    }
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore sum encrypt --key mine.pub --in ages.csv --out ages.ct --bits 8
  blindcore sum encrypt --key mine.pub --in prices.parquet?column=price --out prices.ct --precision 0.01 --magnitude 1e6
  blindcore sum encrypt --key mine.pub --in samples.npy --out samples.ct --bits 8 --pack --terms 576

Integers are kept exactly; how long they are is declared, not taken from them, because it is public. Floats are rounded to
--precision. Packing puts many small samples (the first axis) into one ciphertext: whatever is computed is computed for
all of them, with room for sums of --terms products with weights of --weight-bits bits.")]
pub(crate) struct Encrypt {
    /// The public key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Numbers: FILE.csv, .tsv, .npy or .parquet, with ?column=NAME,NAME for some columns; - for CSV on standard input
    #[arg(long = "in", value_name = "FILE", allow_hyphen_values = true)]
    input: String,
    /// Where ciphertexts go; .jsonl for python-paillier's JSON, one a line
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    range: Range,
    /// Put many numbers into one ciphertext
    #[arg(long)]
    pack: bool,
    /// Terms of the sums that packed numbers leave room for
    #[arg(long, value_name = "N", default_value_t = 1024, requires = "pack")]
    terms: u64,
    /// Bits of the weights that packed numbers leave room for
    #[arg(long, value_name = "N", default_value_t = 8, requires = "pack")]
    weight_bits: u32,
    #[command(flatten)]
    test_keys: TestKeys,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print what was done as one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn say(note: String) {
    output::note(&note);
}

pub(crate) fn encrypt(config: &Config, args: &Encrypt) -> anyhow::Result<Outcome> {
    let mut stages = Stages::new();
    check_output(&args.out, &args.force, &[numbers_path(&args.input), &args.key])?;
    let key = public_key(&args.key, &args.test_keys)?;
    let content = numbers::read(&args.range.source(&args.input)?, &mut say)?;
    let declared = args.range.declared(disk::ends_in(&args.out, "jsonl"));
    let (encoding, value_bits) = declared.encoding(&content, &mut say)?;
    stages.end("read");
    let device = device::open_for(&args.device, config, &[Operation::Bigmod])?;
    let evaluator = Evaluator::new(&key, &device)?;
    stages.end("prepare");
    let packing = match args.pack {
        true => Some(Packing::plan(key.bits(), value_bits, args.terms, args.weight_bits)?),
        false => None,
    };
    let mut bar = Bar::new();
    let encrypted = numbers::encrypt(&evaluator, &content, encoding, packing, &mut say, &mut bar)?;
    drop(bar);
    stages.end("encrypt");
    let bytes = disk::write(&args.out, &encrypted, &evaluator, args.force.existing())?;
    output::made(&args.out);
    stages.end("write");
    let form = encrypted.form();
    if args.json {
        let mut document = describe(form);
        document["key"] = json!(key.id().to_string());
        document["out"] = json!(args.out.display().to_string());
        document["bytes"] = json!(bytes);
        document["ms"] = stages.json();
        output::json(&document)?;
    } else {
        output::note(&format!(
            "{} in {} under key {}: {}, {}",
            blindcore_units::counted(content.values.len(), "number"),
            blindcore_units::counted(form.len(), "ciphertext"),
            key.id(),
            args.out.display(),
            output::bytes(bytes)
        ));
    }
    Ok(Outcome::Done)
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore sum decrypt --key mine.key --in score.ct                 CSV on standard output
  blindcore sum decrypt --key mine.key --in maps.ct --out maps.npy
  blindcore sum decrypt --key mine.key --in score.ct --json          {\"values\": [...], ...}

Integers are exact, however long, and so is what is over 1.8e308. Where one number is over 63 bits, or 1.8e308 among floats,
all are strings in JSON, and NPY and Parquet can't hold it.")]
pub(crate) struct Decrypt {
    /// The secret key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Ciphertexts; .jsonl for python-paillier's JSON, one a line
    #[arg(long = "in", value_name = "FILE")]
    input: PathBuf,
    /// Where numbers go: FILE.csv, .tsv, .npy or .parquet, or - for CSV on standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
    #[command(flatten)]
    force: Force,
    /// Set the point before the last N digits of integers: 2 shows cents as euros
    #[arg(long, value_name = "N", default_value_t = 0)]
    scale: u8,
    #[command(flatten)]
    test_keys: TestKeys,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print numbers, or where they went, as one JSON document
    #[arg(long)]
    json: bool,
}

/// Writes numbers where a file is to hold them, and says what is not kept of them.
pub(crate) fn write(results: &Results, out: &Path, leave: &Force, stages: &mut Stages) -> anyhow::Result<()> {
    if out != Path::new("-") {
        results.write(out, leave.existing())?;
        output::made(out);
        let count = blindcore_units::counted(results.shape().iter().product::<usize>(), "number");
        output::note(&format!("{count}: {}", out.display()));
        stages.end("write");
    }
    results.note(out).into_iter().for_each(output::note);
    Ok(())
}

pub(crate) fn decrypt(config: &Config, args: &Decrypt) -> anyhow::Result<Outcome> {
    let mut stages = Stages::new();
    check_numbers_output(&args.out, &args.force, &[&args.input, &args.key])?;
    let key = secret_key(&args.key, &args.test_keys)?;
    let device = device::open_for(&args.device, config, &[Operation::Bigmod])?;
    let decryptor = Decryptor::new(&key, &device)?;
    stages.end("prepare");
    let mut bar = Bar::new();
    let results = numbers::decrypt(&args.input, &decryptor, &mut bar)?.scaled(args.scale.into())?;
    drop(bar);
    stages.end("decrypt");
    write(&results, &args.out, &args.force, &mut stages)?;
    let to_stdout = args.out == Path::new("-");
    if args.json {
        let mut document =
            json!({"key": key.public().id().to_string(), "shape": results.shape(), "ms": stages.json()});
        if to_stdout {
            document["values"] = results.to_json();
        } else {
            document["out"] = json!(args.out.display().to_string());
        }
        output::json(&document)?;
    } else if to_stdout {
        output::print(&String::from_utf8(results.to_csv()?)?)?;
    }
    Ok(Outcome::Done)
}
