//! `blindcore sum add`, `dot` and `conv`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use blindcore_accel::Operation;
use blindcore_sum::ciphertexts::Ciphertexts;
use blindcore_sum::disk;
use blindcore_sum::evaluate::{Convolution, Evaluator, Weights};
use blindcore_sum::numbers::{parameter, read_weights};
use serde_json::json;

use super::files::{TestKeys, numbers_path, public_key};
use super::numbers::{Stages, describe, say};
use crate::config::Config;
use crate::device::DeviceArgs;
use crate::outputs::{Force, check_output};
use crate::{Outcome, device, output};

/// A bound of numbers, checked also where the inputs say their own.
fn magnitude(text: &str) -> Result<f64, String> {
    let bound = text.parse().ok().filter(|x: &f64| x.is_finite() && *x > 0.0);
    bound.ok_or_else(|| "not a number over 0; say how large numbers may be, such as 1e6".to_owned())
}

/// What every evaluation takes.
#[derive(clap::Args)]
pub(crate) struct Common {
    /// The public key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Where results go; .jsonl for python-paillier's JSON, one a line
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    force: Force,
    /// Ciphertexts in .jsonl files hold numbers up to this: they don't say
    #[arg(long, value_name = "X", default_value_t = 1e15, value_parser = magnitude)]
    magnitude: f64,
    /// Write results without rerandomising them: the key holder may then learn weights from them. Fine for results that stay here
    #[arg(long)]
    no_rerandomise: bool,
    #[command(flatten)]
    test_keys: TestKeys,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print what was done as one JSON document
    #[arg(long)]
    json: bool,
}

/// Reads, evaluates, writes and says so.
fn evaluate(
    config: &Config,
    common: &Common,
    inputs: &[PathBuf],
    weights: Option<&str>,
    work: impl FnOnce(&Evaluator, &[Ciphertexts]) -> anyhow::Result<Ciphertexts>,
) -> anyhow::Result<Outcome> {
    let mut stages = Stages::new();
    let files = inputs.iter().map(PathBuf::as_path);
    let read: Vec<&Path> = files.chain([common.key.as_path()]).chain(weights.map(numbers_path)).collect();
    check_output(&common.out, &common.force, &read)?;
    let key = public_key(&common.key, &common.test_keys)?;
    let device = device::open_for(&common.device, config, &[Operation::Bigmod])?;
    let evaluator = Evaluator::new(&key, &device)?;
    stages.end("prepare");
    let read = inputs
        .iter()
        .map(|path| disk::read(path, &evaluator, common.magnitude))
        .collect::<Result<Vec<_>, _>>()?;
    stages.end("read");
    let mut result = work(&evaluator, &read)?;
    stages.end("evaluate");
    if !common.no_rerandomise {
        result = evaluator.rerandomise(&result)?;
        stages.end("rerandomise");
    }
    let bytes = disk::write(&common.out, &result, &evaluator, common.force.existing())?;
    output::made(&common.out);
    stages.end("write");
    if common.json {
        let mut document = describe(result.form());
        document["key"] = json!(key.id().to_string());
        document["out"] = json!(common.out.display().to_string());
        document["bytes"] = json!(bytes);
        document["device"] = json!(device.name());
        document["ms"] = stages.json();
        output::json(&document)?;
    } else {
        output::note(&format!(
            "{:?} results under key {}: {}, {}",
            result.form().numbers_shape(),
            key.id(),
            common.out.display(),
            output::bytes(bytes)
        ));
    }
    Ok(Outcome::Done)
}

/// Weights from a file, for results that go to `out`.
fn weights(spec: &str, precision: Option<f64>, out: &Path) -> anyhow::Result<Weights> {
    Ok(read_weights(spec, precision, disk::ends_in(out, "jsonl"), &mut say)?)
}

#[derive(clap::Args)]
#[command(after_help = "\
Example:
  blindcore sum add --key mine.pub --in site1.ct --in site2.ct --in site3.ct --out total.ct

Files must be of one shape, or of one number, which is added to all, in any order.")]
pub(crate) struct Add {
    /// Ciphertexts; given once for each file
    #[arg(long = "in", value_name = "FILE", required = true)]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    common: Common,
}

pub(crate) fn add(config: &Config, args: &Add) -> anyhow::Result<Outcome> {
    evaluate(config, &args.common, &args.inputs, None, |evaluator, read| {
        let mut sum = read[0].clone();
        for (next, path) in read.iter().zip(&args.inputs).skip(1) {
            sum = evaluator.add(&sum, next).with_context(|| path.display().to_string())?;
        }
        Ok(sum)
    })
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore sum dot --key mine.pub --in row.ct --weights w.csv --out score.ct          one number for a row of K
  blindcore sum dot --key mine.pub --in rows.ct --weights layer.npy --out scores.ct    M numbers a row for M x K weights

Weights run along the last axis of what is encrypted. Integers of up to 63 bits, or floats, rounded to nine digits unless
they are shorter or whole, or --precision says otherwise; their unit and a bound on the results are public.")]
pub(crate) struct Dot {
    /// Ciphertexts
    #[arg(long = "in", value_name = "FILE")]
    input: PathBuf,
    /// Weights in the clear: K numbers, or a matrix M x K, in a .csv, .tsv, .npy or .parquet file
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    weights: String,
    /// Round float weights to the next power of 10 below this (of 16 for .jsonl) [default: nine digits]
    #[arg(long, value_name = "X", value_parser = parameter)]
    precision: Option<f64>,
    #[command(flatten)]
    common: Common,
}

pub(crate) fn dot(config: &Config, args: &Dot) -> anyhow::Result<Outcome> {
    let weights = weights(&args.weights, args.precision, &args.common.out)?;
    let input = std::slice::from_ref(&args.input);
    evaluate(config, &args.common, input, Some(&args.weights), |evaluator, read| {
        Ok(match weights.shape() {
            [_] => evaluator.dot(&read[0], &weights)?,
            _ => evaluator.matrix_vector(&weights, &read[0])?,
        })
    })
}

#[derive(clap::Args)]
#[command(after_help = "\
Example:
  blindcore sum conv --key mine.pub --in image.ct --weights kernels.npy --padding 1 --out maps.ct

The image is channels x rows x columns (or images x channels x rows x columns), kernels are outputs x channels x rows x
columns: .npy files keep such shapes.")]
pub(crate) struct Conv {
    /// An encrypted image
    #[arg(long = "in", value_name = "FILE")]
    input: PathBuf,
    /// Kernels in the clear, a .npy file
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    weights: String,
    /// Steps from one place to the next, in rows and columns
    #[arg(long, value_name = "N", default_value_t = 1)]
    stride: usize,
    /// Zeros around the image
    #[arg(long, value_name = "N", default_value_t = 0)]
    padding: usize,
    /// Round float weights to the next power of 10 below this (of 16 for .jsonl) [default: nine digits]
    #[arg(long, value_name = "X", value_parser = parameter)]
    precision: Option<f64>,
    #[command(flatten)]
    common: Common,
}

pub(crate) fn conv(config: &Config, args: &Conv) -> anyhow::Result<Outcome> {
    let weights = weights(&args.weights, args.precision, &args.common.out)?;
    let how = Convolution { stride: (args.stride, args.stride), padding: (args.padding, args.padding) };
    anyhow::ensure!(
        weights.shape().len() == 4,
        "{} has shape {:?}, where kernels are outputs x channels x rows x columns; save it so as .npy",
        Path::new(&args.weights).display(),
        weights.shape()
    );
    let input = std::slice::from_ref(&args.input);
    evaluate(config, &args.common, input, Some(&args.weights), |evaluator, read| {
        Ok(evaluator.conv2d(&read[0], &weights, how)?)
    })
}
