//! `blindcore sum serve` and `blindcore sum score`.

use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use blindcore_numbers::Values;
use blindcore_server::sum::{Model, SumConfig, SumServer, request};
use blindcore_sum::ciphertexts::Ciphertexts;
use blindcore_sum::encoding::Plaintexts;
use blindcore_sum::evaluate::Evaluator;
use blindcore_sum::file;
use blindcore_sum::scheme::Decryptor;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use serde_json::json;

use super::evaluate::weights;
use super::files::{TestKeys, check_numbers_output, numbers_path, secret_key};
use super::numbers::{Range, Stages, decode, flat, one, read_numbers};
use crate::args::DeviceArgs;
use crate::config::Config;
use crate::serve::{address, log_to_stderr, shutdown};
use crate::{Outcome, device, output};

/// No answer of a service is longer.
const ANSWER_BYTES: usize = 1 << 30;

#[derive(clap::Args)]
#[command(after_help = "\
Example:
  blindcore sum serve --model risk=weights.npy
  blindcore sum score --server http://127.0.0.1:7710 --model risk --key mine.key --in rows.csv     elsewhere

A model is K weights, or a matrix M x K, in a .csv, .tsv, .npy or .parquet file; a constant term is a weight for a column of
ones. The server never sees rows or scores. Requests are bounded in bytes and time, GET /v1/models lists models, /livez and
/readyz are for whoever runs it, SIGTERM lets requests finish.")]
pub(crate) struct Serve {
    /// A model and its weights; given once for each
    #[arg(long = "model", value_name = "NAME=FILE", required = true)]
    models: Vec<String>,
    /// Address and port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7710")]
    listen: String,
    /// Listen beyond this machine, though everything but the numbers is then readable on the way
    #[arg(long)]
    plain_text: bool,
    /// Megabytes of one request
    #[arg(long, value_name = "N", default_value_t = 64)]
    request_mib: usize,
    /// What one request may cost, in millions of multiplications as under a 2048-bit key: a core does some three million a
    /// second
    #[arg(long, value_name = "N", default_value_t = 100)]
    request_work: u32,
    /// Requests that are computed at once
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: usize,
    /// Log as JSON lines
    #[arg(long)]
    log_json: bool,
    #[command(flatten)]
    test_keys: TestKeys,
    #[command(flatten)]
    device: DeviceArgs,
}

pub(crate) fn serve(config: &Config, args: Serve) -> anyhow::Result<Outcome> {
    let listen = address(&args.listen)?;
    anyhow::ensure!(
        listen.ip().is_loopback() || args.plain_text,
        "--listen {listen} is beyond this machine and the transport is plain text: put a proxy with TLS before it, or say \
         --plain-text"
    );
    anyhow::ensure!(
        (1..=4096).contains(&args.request_mib),
        "--request-mib is {}, outside 1 to 4096",
        args.request_mib
    );
    anyhow::ensure!((1..=1024).contains(&args.jobs), "--jobs is {}, outside 1 to 1024", args.jobs);
    anyhow::ensure!(args.request_work > 0, "--request-work is 0, and no request is free; say 1 or more");
    let mut models = Vec::new();
    for model in &args.models {
        let (name, path) = model.split_once('=').filter(|(name, _)| !name.is_empty()).with_context(|| {
            format!("--model {model:?} names no model; say NAME=FILE, such as risk=weights.npy")
        })?;
        models.push(Model { name: name.to_owned(), weights: weights(path, None)? });
    }
    log_to_stderr(args.log_json);
    let device = device::open(&args.device, config)?;
    let request_bytes = args.request_mib << 20;
    let settings = SumConfig {
        listen,
        request_bytes,
        memory_bytes: 4 * request_bytes,
        request_work: 1_000_000 * u64::from(args.request_work),
        jobs: args.jobs,
        insecure_test_keys: args.test_keys.insecure_test_key,
        ..SumConfig::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let stop = shutdown()?;
        let server = SumServer::bind(settings, device, models).await?;
        tracing::info!("listening on http://{}", server.address());
        let cut = server.run(stop).await;
        anyhow::ensure!(cut == 0, "{cut} requests did not finish in time and were cut");
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
    /// Where the service is: http://ADDRESS:PORT
    #[arg(long, value_name = "URL")]
    server: String,
    /// Which model
    #[arg(long, value_name = "NAME")]
    model: String,
    /// The secret key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Rows of numbers: FILE.csv, .tsv, .npy or .parquet, with ?column=NAME,NAME for some columns; - for CSV on standard
    /// input
    #[arg(long = "in", value_name = "FILE")]
    input: String,
    #[command(flatten)]
    range: Range,
    /// Where scores go: FILE.csv, .tsv, .npy or .parquet, or - for CSV on standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
    /// Ask a server beyond this machine, though everything but the numbers is then readable on the way
    #[arg(long)]
    plain_text: bool,
    /// Seconds to wait for the answer
    #[arg(long, value_name = "N", default_value_t = 300)]
    timeout: u64,
    #[command(flatten)]
    test_keys: TestKeys,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print scores as one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn score(config: &Config, args: Score) -> anyhow::Result<Outcome> {
    let mut stages = Stages::new();
    check_numbers_output(&args.out, &[numbers_path(&args.input), &args.key])?;
    let host = args.server.strip_prefix("http://").map(|host| host.trim_end_matches('/'));
    let host = host.with_context(|| {
        format!("--server {:?} is no http:// address; TLS is not spoken yet, so tunnel it", args.server)
    })?;
    let server = host.to_socket_addrs().ok().and_then(|mut all| all.next()).with_context(|| {
        format!("--server {:?} names no address and port; such as http://127.0.0.1:7710", args.server)
    })?;
    anyhow::ensure!(
        server.ip().is_loopback() || args.plain_text,
        "--server {} is beyond this machine and the transport is plain text: tunnel it, or say --plain-text",
        args.server
    );
    let key = secret_key(&args.key, &args.test_keys)?;
    let values = read_numbers(&args.input)?;
    let device = device::open(&args.device, config)?;
    let evaluator = Evaluator::new(key.public(), &*device)?;
    let (encoding, _) = args.range.encoding(&values)?;
    let plaintexts = match &values {
        Values::Int(array) => Plaintexts::integers(key.public(), array, encoding)?,
        Values::Float(array) => Plaintexts::floats(key.public(), array, encoding)?,
    };
    let encrypted = Ciphertexts::encrypt(evaluator.encryptor(), &plaintexts)?;
    let body = request(key.public(), &file::write(Vec::new(), &encrypted, evaluator.encryptor())?);
    stages.end("encrypt");

    let sent = body.len();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(async {
        let asked = ask(server, host, &args.model, body);
        tokio::time::timeout(Duration::from_secs(args.timeout), asked).await.map_err(|_| {
            anyhow::anyhow!("no answer within {} s; say --timeout, or send fewer rows", args.timeout)
        })?
    })?;
    stages.end("server");

    let reader = file::Reader::new(&answer[..], Some(answer.len() as u64)).context("the server's answer")?;
    let header = reader.header().clone();
    let mut want = plaintexts.form().shape.clone();
    want.pop();
    let rows: usize = want.iter().product();
    anyhow::ensure!(
        header.form.packed.is_none() && rows != 0 && header.form.len() % rows == 0,
        "the server answered scores of shape {:?} for {rows} rows; it is not to be trusted with more",
        header.form.shape
    );
    let scores = reader.read_all(evaluator.encryptor()).context("the server's answer")?;
    let decryptor = Decryptor::new(&key, &*device)?;
    let numbers = scores.numbers(evaluator.encryptor())?;
    let scores = decode(&Plaintexts::decrypt(&decryptor, &numbers, scores.form())?)?;
    stages.end("decrypt");

    if args.out != Path::new("-") {
        blindcore_numbers::write(&args.out, &scores, None)?;
    }
    if args.json {
        let mut document = json!({
            "model": args.model, "shape": scores.shape(), "bytes": {"up": sent, "down": answer.len()}, "ms": stages.json(),
        });
        document["scores"] = match &scores {
            Values::Int(array) => json!(array.iter().collect::<Vec<_>>()),
            Values::Float(array) => json!(array.iter().collect::<Vec<_>>()),
        };
        output::json(&document)?;
    } else if args.out == Path::new("-") {
        let mut text = Vec::new();
        let scores = if scores.shape().is_empty() { one(scores)? } else { flat(scores)? };
        blindcore_numbers::encode(blindcore_numbers::Format::Csv, &scores, None, &mut text)?;
        output::print(&String::from_utf8(text)?)?;
    }
    Ok(Outcome::Done)
}

/// One request on a connection of its own.
async fn ask(server: std::net::SocketAddr, host: &str, model: &str, body: Vec<u8>) -> anyhow::Result<Bytes> {
    let stream = tokio::net::TcpStream::connect(server).await.with_context(|| {
        format!("no service answers at http://{host}; start one with `blindcore sum serve`")
    })?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let name: String = model.bytes().map(escape).collect();
    let request = http::Request::post(format!("/v1/models/{name}/score"))
        .header(http::header::HOST, host)
        .body(Full::new(Bytes::from(body)))?;
    let response = sender.send_request(request).await.context("the service hung up")?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES)
        .collect()
        .await
        .map_err(|e| anyhow::anyhow!("the answer broke off: {e}"))?
        .to_bytes();
    if status.is_success() {
        return Ok(body);
    }
    let said: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    let why = said["error"].as_str().unwrap_or("it does not say why");
    anyhow::bail!("the service refused ({}): {}", status.as_u16(), output::printable(&json!(why)));
}

/// A byte of a path, escaped unless it is plain.
fn escape(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}
