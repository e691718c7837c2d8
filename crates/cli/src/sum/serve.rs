//! `blindcore sum serve` and `blindcore sum score`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use blindcore_accel::Operation;
use blindcore_client::{ScoreClient, ScoreError, Scored};
use blindcore_numbers::Values;
use blindcore_server::sum::{Model, SumConfig, SumServer};
use blindcore_sum::encoding::Plaintexts;
use blindcore_sum::evaluate::Evaluator;
use blindcore_sum::numbers;
use blindcore_sum::scheme::Decryptor;
use serde_json::json;

use super::files::{TestKeys, check_numbers_output, numbers_path, secret_key};
use super::numbers::{Range, Stages, say, write};
use crate::config::Config;
use crate::connecting::ServerArgs;
use crate::device::DeviceArgs;
use crate::outputs::Force;
use crate::serving::{FrontArgs, Hangup, address, front, mib, shutdown};
use crate::{Outcome, device, output};

#[derive(clap::Args)]
#[command(after_help = "\
Example:
  blindcore sum serve --model risk=weights.npy --bias risk=-1.5
  blindcore sum score --server http://127.0.0.1:7710 --model risk --key mine.key --in rows.csv     elsewhere

A model is K weights, or a matrix M x K, in a .csv, .tsv, .npy or .parquet file, and a bias where one is given. The server
never sees rows or scores. TLS, tokens and [limits] are those of `blindcore serve`; GET /v1/models lists models, /livez and
/readyz are for operators, SIGTERM lets requests finish, SIGHUP reads certificates and tokens again.")]
pub(crate) struct Serve {
    /// A model and its weights; given once for each
    #[arg(long = "model", value_name = "NAME=FILE", required = true)]
    models: Vec<String>,
    /// A number for each output of a model, or one for all, that is added to scores; given once for each model
    #[arg(long = "bias", value_name = "NAME=FILE|NUMBER")]
    biases: Vec<String>,
    /// Round float weights and biases to the next power of 10 below this [default: nine digits]
    #[arg(long, value_name = "X", value_parser = numbers::parameter)]
    precision: Option<f64>,
    /// Address and port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7710")]
    listen: String,
    #[command(flatten)]
    pub(crate) front: FrontArgs,
    /// Megabytes of one request [default: 64]
    #[arg(long, value_name = "N")]
    request_mib: Option<usize>,
    /// What one request may cost, in millions of multiplications as under a 2048-bit key: a core does some three million a
    /// second
    #[arg(long, value_name = "N", default_value_t = 100)]
    request_work: u32,
    /// Blocks of results that are computed at once; requests take turns
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: usize,
    #[command(flatten)]
    test_keys: TestKeys,
    #[command(flatten)]
    device: DeviceArgs,
}

pub(crate) fn serve(config: &Config, args: Serve) -> anyhow::Result<Outcome> {
    let listen = address(&args.listen, 7710)?;
    let asked = args.request_mib.or(config.limits.request_mib).unwrap_or(64);
    anyhow::ensure!((1..=4096).contains(&asked), "request_mib (--request-mib) is {asked}, outside 1 to 4096");
    anyhow::ensure!((1..=1024).contains(&args.jobs), "--jobs is {}, outside 1 to 1024", args.jobs);
    anyhow::ensure!(args.request_work > 0, "--request-work is 0, and no request is free; say 1 or more");
    let models = Model::read_all(&args.models, &args.biases, args.precision, &mut say)?;
    let mut settings = SumConfig {
        request_work: 1_000_000 * u64::from(args.request_work),
        jobs: args.jobs,
        insecure_test_keys: args.test_keys.insecure_test_key,
        ..SumConfig::default()
    };
    let server = &mut settings.server;
    server.listen = listen;
    let files = front(server, &args.front, config)?;
    server.request_bytes = asked << 20;
    // A body, its residues and its answer are four times a request; one client's are a quarter of all.
    let memory = mib("request_memory_mib", config.limits.request_memory_mib)?;
    server.memory_bytes = memory.unwrap_or(16 * server.request_bytes);
    files.load(server)?;
    let device = device::open_for(&args.device, config, &[Operation::Bigmod])?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let (stop, hangup) = (shutdown()?, Hangup::new()?);
        let server = SumServer::bind(settings, device, models).await?;
        hangup.reload(server.reloader(files));
        server.run(stop).await;
        Ok(Outcome::Done)
    });
    // Jobs of requests that were cut are not waited for.
    runtime.shutdown_background();
    outcome
}

#[derive(clap::Args)]
#[command(after_help = "\
Example:
  blindcore sum score --server http://127.0.0.1:7710 --model risk --key mine.key --in rows.csv

Rows are encrypted here, scored there, and the scores are decrypted here. The secret key stays here.")]
pub(crate) struct Score {
    #[command(flatten)]
    server: ServerArgs,
    /// Which model
    #[arg(long, value_name = "NAME")]
    model: String,
    /// The secret key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Rows of numbers: FILE.csv, .tsv, .npy or .parquet, with ?column=NAME,NAME for some columns; - for CSV on standard
    /// input
    #[arg(long = "in", value_name = "FILE", allow_hyphen_values = true)]
    input: String,
    #[command(flatten)]
    range: Range,
    /// Where scores go: FILE.csv, .tsv, .npy or .parquet, or - for CSV on standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    test_keys: TestKeys,
    #[command(flatten)]
    device: DeviceArgs,
}

pub(crate) fn score(config: &Config, args: Score) -> anyhow::Result<Outcome> {
    let mut stages = Stages::new();
    check_numbers_output(&args.out, &args.force, &[numbers_path(&args.input), &args.key])?;
    let (url, mut options) = (args.server.url(config, 7710)?, args.server.options(config)?);
    if args.server.timeout.or(config.timeout).is_none() {
        options.request_timeout = Duration::from_secs(300);
    }
    let service = ScoreClient::new(&url, options)?;
    let key = secret_key(&args.key, &args.test_keys)?;
    let source = args.range.source(&args.input)?;
    let mut content = numbers::read(&source, &mut say)?;
    if source.is_table() {
        content = content.shaped(Values::lines_as_rows);
    }
    let device = device::open_for(&args.device, config, &[Operation::Bigmod])?;
    let evaluator = Evaluator::new(key.public(), &device)?;
    let (encoding, _) = args.range.declared(false).encoding(&content, &mut say)?;
    let encrypted = numbers::encrypt(&evaluator, &content, encoding, None, &mut say, &mut ())?;
    stages.end("encrypt");

    // A server that sends without end must not keep the clock from being looked at.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().event_interval(1).build()?;
    let answered = runtime.block_on(service.score(&args.model, &encrypted, evaluator.encryptor()));
    let Scored { scores, sent, received } = answered?;
    stages.end("server");

    let decryptor = Decryptor::new(&key, &device)?;
    let decrypted = scores.numbers(evaluator.encryptor())?;
    let plaintexts = Plaintexts::decrypt(&decryptor, &decrypted, scores.form());
    let scores = plaintexts.and_then(|all| numbers::decode(&all)).map_err(ScoreError::decrypted)?;
    stages.end("decrypt");
    write(&scores, &args.out, &args.force, &mut stages)?;
    if args.server.json {
        let mut document = json!({
            "model": args.model, "shape": scores.shape(), "bytes": {"up": sent, "down": received}, "ms": stages.json(),
        });
        document["scores"] = scores.to_json();
        output::json(&document)?;
    } else if args.out == Path::new("-") {
        output::print(&String::from_utf8(scores.to_csv()?)?)?;
    }
    Ok(Outcome::Done)
}
