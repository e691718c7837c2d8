//! `blindcore sum encrypt` and `decrypt`.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::Context;
use blindcore_numbers::{Format, Source, Values};
use blindcore_sum::ciphertexts::Ciphertexts;
use blindcore_sum::encoding::{Encoding, Form, Plaintexts};
use blindcore_sum::evaluate::Evaluator;
use blindcore_sum::packing::Packing;
use blindcore_sum::scheme::Decryptor;
use blindcore_sum::{file, phe};
use ndarray::{ArrayD, IxDyn};
use serde_json::{Value, json};

use super::files::{
    TestKeys, check_numbers_output, check_output, is_json, numbers_path, public_key, secret_key,
    write_ciphertexts,
};
use crate::args::DeviceArgs;
use crate::config::Config;
use crate::output::Bar;
use crate::{Outcome, device, output};

/// Numbers between two looks at the progress bar.
const BLOCK: usize = 4096;

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
        "bound_bits": form.bound.bits(),
        "packing": form.packed.map(|p| json!({
            "slots": p.packing.slots(), "slot_bits": p.packing.slot_bits(), "samples": p.samples,
        })),
    })
}

/// What numbers are declared to keep to: public, so not taken from them.
#[derive(clap::Args)]
pub(crate) struct Range {
    /// Integers have at most so many bits, the sign's included [default: 32]
    #[arg(long, value_name = "N")]
    bits: Option<u32>,
    /// Floats are rounded to the next power of 16 below this [default: 1e-9]
    #[arg(long, value_name = "X")]
    precision: Option<f64>,
    /// Floats are at most this large [default: 1e9]
    #[arg(long, value_name = "X")]
    magnitude: Option<f64>,
}

impl Range {
    /// The encoding for these numbers, and how many bits they have.
    pub(crate) fn encoding(&self, values: &Values) -> anyhow::Result<(Encoding, u32)> {
        match values {
            Values::Int(_) => {
                anyhow::ensure!(
                    self.precision.is_none() && self.magnitude.is_none(),
                    "these numbers are integers, for which --precision and --magnitude say nothing; say --bits"
                );
                let bits = self.bits.unwrap_or(32);
                Ok((Encoding::integers(bits)?, bits))
            }
            Values::Float(_) => {
                anyhow::ensure!(
                    self.bits.is_none(),
                    "these numbers are floats, for which --bits says nothing; say --precision and --magnitude"
                );
                let encoding =
                    Encoding::fixed(self.precision.unwrap_or(1e-9), self.magnitude.unwrap_or(1e9))?;
                Ok((encoding, encoding.bound().bits() + 1))
            }
        }
    }
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore sum encrypt --key mine.pub --in ages.csv --out ages.ct --bits 8
  blindcore sum encrypt --key mine.pub --in prices.parquet?column=price --out prices.ct --precision 0.01 --magnitude 1e6
  blindcore sum encrypt --key mine.pub --in samples.npy --out samples.ct --bits 8 --pack --terms 576

Integers are kept exactly; how long they are is declared, not taken from them, for it is public. Floats are rounded to
--precision. Packing puts many small samples (the first axis) into one ciphertext: whatever is computed is computed for
all of them, with room for sums of --terms products with weights of --weight-bits bits.")]
pub(crate) struct Encrypt {
    /// The public key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Numbers: FILE.csv, .tsv, .npy or .parquet, with ?column=NAME,NAME for some columns; - for CSV on standard input
    #[arg(long = "in", value_name = "FILE")]
    input: String,
    /// Where ciphertexts go; .jsonl for python-paillier's JSON, one a line
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
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

pub(crate) fn read_numbers(spec: &str) -> anyhow::Result<Values> {
    let values = blindcore_numbers::read(&Source::parse(spec)?)?;
    // A single number without an axis is a list of one.
    if values.shape().is_empty() { one(values) } else { Ok(values) }
}

pub(crate) fn encrypt(config: &Config, args: &Encrypt) -> anyhow::Result<Outcome> {
    let mut stages = Stages::new();
    check_output(&args.out, &[numbers_path(&args.input), &args.key])?;
    let key = public_key(&args.key, &args.test_keys)?;
    let values = read_numbers(&args.input)?;
    anyhow::ensure!(!values.is_empty(), "{} holds no numbers; there is nothing to encrypt", args.input);
    let (encoding, value_bits) = args.range.encoding(&values)?;
    stages.end("read");
    let device = device::open(&args.device, config)?;
    let evaluator = Evaluator::new(&key, &*device)?;
    stages.end("prepare");
    let encrypted = if args.pack {
        let packing = Packing::plan(key.bits(), value_bits, args.terms, args.weight_bits)?;
        let plaintexts = match &values {
            Values::Int(array) => Plaintexts::pack_integers(&key, array, encoding, packing)?,
            Values::Float(array) => Plaintexts::pack_floats(&key, array, encoding, packing)?,
        };
        Ciphertexts::encrypt(evaluator.encryptor(), &plaintexts)?
    } else {
        let (shape, total) = (values.shape().to_vec(), values.len());
        let mut bar = Bar::new();
        let mut parts = Vec::new();
        for first in (0..total).step_by(BLOCK) {
            bar.set("encrypting", first as u64, Some(total as u64), false);
            let last = (first + BLOCK).min(total);
            let plaintexts = match &values {
                Values::Int(array) => {
                    let part: Vec<i64> = array.iter().skip(first).take(last - first).copied().collect();
                    Plaintexts::integers(&key, &part[..], encoding)
                }
                Values::Float(array) => {
                    let part: Vec<f64> = array.iter().skip(first).take(last - first).copied().collect();
                    Plaintexts::floats(&key, &part[..], encoding)
                }
            };
            let plaintexts = plaintexts.with_context(|| format!("{}, from number {first} on", args.input))?;
            parts.push(Ciphertexts::encrypt(evaluator.encryptor(), &plaintexts)?);
        }
        Ciphertexts::concatenate(&parts.iter().collect::<Vec<_>>())?.reshape(&shape)?
    };
    stages.end("encrypt");
    let bytes = write_ciphertexts(&args.out, &encrypted, &evaluator)?;
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
            "{} numbers in {} ciphertexts under key {}: {}, {}",
            values.len(),
            form.len(),
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
  blindcore sum decrypt --key mine.key --in score.ct --json          {\"values\": [...], ...}")]
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
    test_keys: TestKeys,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print numbers, or where they went, as one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn decrypt(config: &Config, args: &Decrypt) -> anyhow::Result<Outcome> {
    let mut stages = Stages::new();
    check_numbers_output(&args.out, &[&args.input, &args.key])?;
    let key = secret_key(&args.key, &args.test_keys)?;
    let device = device::open(&args.device, config)?;
    let decryptor = Decryptor::new(&key, &*device)?;
    stages.end("prepare");
    let (values, whole) = if is_json(&args.input, "jsonl") {
        let named = || args.input.display().to_string();
        let input =
            File::open(&args.input).with_context(|| format!("{} can't be read", args.input.display()))?;
        let read = phe::Ciphertexts::read(key.public(), BufReader::new(input)).with_context(named)?;
        let batches = read.plaintexts(&decryptor).with_context(named)?;
        let values = by_position(&batches).with_context(named)?;
        let large = |v: &f64| v.fract() == 0.0 && v.abs() >= 2f64.powi(53);
        let rounded = matches!(&values, Values::Float(array) if array.iter().any(large));
        if rounded {
            output::note("some results are over 2^53 and shown as floats, which keep 53 bits of each");
        }
        (values, false)
    } else {
        decrypt_file(&args.input, &decryptor)?
    };
    stages.end("decrypt");
    if let Values::Float(_) = values
        && whole
    {
        output::note("some results are over 63 bits, so all are shown as floats, which keep 53 bits of each");
    }
    let to_stdout = args.out == Path::new("-");
    if !to_stdout {
        blindcore_numbers::write(&args.out, &values, None)?;
        stages.end("write");
    }
    if args.json {
        let mut document =
            json!({"key": key.public().id().to_string(), "shape": values.shape(), "ms": stages.json()});
        if to_stdout {
            document["values"] = match &values {
                Values::Int(array) => json!(array.iter().collect::<Vec<_>>()),
                Values::Float(array) => json!(array.iter().collect::<Vec<_>>()),
            };
        } else {
            document["out"] = json!(args.out.display().to_string());
        }
        output::json(&document)?;
    } else if to_stdout {
        let mut text = Vec::new();
        blindcore_numbers::encode(Format::Csv, &flat(values)?, None, &mut text)?;
        output::print(&String::from_utf8(text)?)?;
    } else {
        output::note(&format!("{} numbers: {}", values.len(), args.out.display()));
    }
    Ok(Outcome::Done)
}

/// At most two axes, as CSV has them: all but the last are rows.
pub(crate) fn flat(values: Values) -> anyhow::Result<Values> {
    let shape = values.shape().to_vec();
    if shape.len() <= 2 {
        return Ok(values);
    }
    let columns = shape[shape.len() - 1];
    let shape = IxDyn(&[values.len() / columns.max(1), columns]);
    Ok(match values {
        Values::Int(array) => Values::Int(ArrayD::from_shape_vec(shape, array.into_iter().collect())?),
        Values::Float(array) => Values::Float(ArrayD::from_shape_vec(shape, array.into_iter().collect())?),
    })
}

/// One number as a list of one.
pub(crate) fn one(values: Values) -> anyhow::Result<Values> {
    Ok(match values {
        Values::Int(array) => Values::Int(array.into_shape_with_order(IxDyn(&[1]))?),
        Values::Float(array) => Values::Float(array.into_shape_with_order(IxDyn(&[1]))?),
    })
}

/// Numbers of several batches in their order: integers where all are, else floats.
fn by_position(batches: &[(Vec<usize>, Plaintexts)]) -> anyhow::Result<Values> {
    fn place<T: Copy + Default>(
        batches: &[(Vec<usize>, Plaintexts)],
        decode: impl Fn(&Plaintexts) -> Result<Vec<T>, blindcore_sum::encoding::Error>,
    ) -> anyhow::Result<ArrayD<T>> {
        let count = batches.iter().map(|(positions, _)| positions.len()).sum();
        let mut out = vec![T::default(); count];
        for (positions, plaintexts) in batches {
            for (position, value) in positions.iter().zip(decode(plaintexts)?) {
                out[*position] = value;
            }
        }
        Ok(ArrayD::from_shape_vec(IxDyn(&[count]), out)?)
    }
    match place(batches, Plaintexts::to_i64) {
        Ok(integers) => Ok(Values::Int(integers)),
        Err(_) => Ok(Values::Float(place(batches, Plaintexts::to_f64)?)),
    }
}

/// Integers where the exponent says that they are, else floats.
pub(crate) fn decode(plaintexts: &Plaintexts) -> anyhow::Result<Values> {
    let shape = IxDyn(&plaintexts.form().numbers_shape());
    let small = plaintexts.form().bound.bits() < 63;
    if plaintexts.form().exponent == 0 && (small || plaintexts.to_i64().is_ok()) {
        return Ok(Values::Int(ArrayD::from_shape_vec(shape, plaintexts.to_i64()?)?));
    }
    Ok(Values::Float(ArrayD::from_shape_vec(shape, plaintexts.to_f64()?)?))
}

/// The numbers of a file, and whether they are whole by its exponent.
fn decrypt_file(path: &Path, decryptor: &Decryptor) -> anyhow::Result<(Values, bool)> {
    let named = || path.display().to_string();
    let input = File::open(path).with_context(|| format!("{} can't be read", path.display()))?;
    let metadata = input.metadata().with_context(named)?;
    let length = metadata.is_file().then_some(metadata.len());
    let mut reader =
        file::Reader::new(BufReader::with_capacity(1 << 16, input), length).with_context(named)?;
    let (key, header) = (decryptor.public(), reader.header().clone());
    anyhow::ensure!(
        header.key == key.id() && header.key_bits == key.bits(),
        "{} is under key {} of {} bits, not under {} of {}; decrypt with the key that it was encrypted with",
        path.display(),
        header.key,
        header.key_bits,
        key.id(),
        key.bits()
    );
    let (total, words) = (reader.count(), key.ciphertext_words());
    let mut bar = Bar::new();
    let mut done = 0;
    let mut numbers: Vec<u64> = Vec::new();
    let flat = |count| Form { packed: None, shape: vec![count], ..header.form.clone() };
    let mut plain: Vec<Plaintexts> = Vec::new();
    while let Some(block) = reader.next_block().with_context(named)? {
        bar.set("decrypting", done, Some(total), false);
        done += block.len() as u64;
        if header.form.packed.is_some() {
            numbers.extend_from_slice(block.as_words());
        } else {
            plain.push(Plaintexts::decrypt(decryptor, &block, &flat(block.len())).with_context(named)?);
        }
    }
    if header.form.packed.is_some() {
        let numbers = blindcore_accel::bigmod::Numbers::from_words(words, numbers.chunks_exact(words));
        let plaintexts = Plaintexts::decrypt(decryptor, &numbers, &header.form).with_context(named)?;
        return Ok((decode(&plaintexts)?, header.form.exponent == 0));
    }
    let parts = plain.iter().map(decode).collect::<anyhow::Result<Vec<_>>>().with_context(named)?;
    let shape = IxDyn(&header.form.numbers_shape());
    let all_int = parts.iter().all(|part| matches!(part, Values::Int(_)));
    let values = if all_int {
        let all = parts.iter().filter_map(Values::as_int).flatten().copied().collect();
        Values::Int(ArrayD::from_shape_vec(shape, all)?)
    } else {
        let mut all = Vec::with_capacity(total as usize);
        for plaintexts in &plain {
            all.extend(plaintexts.to_f64()?);
        }
        Values::Float(ArrayD::from_shape_vec(shape, all)?)
    };
    Ok((values, header.form.exponent == 0))
}
