//! `blindcore bench serve`: honest clients of a server that others attack, how long they wait and what it takes.
//!
//! The server is a process of its own; every client has an address of its own on this machine (127.1.0.0/16 and on), so that
//! the server tells them apart. Honest clients ask one query after another and measure; the others do as [`HOSTILE`] says.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use blindcore_accel_cpu::Cpu;
use blindcore_lookup::{Scheme, SchemeChoice};
use blindcore_math::SecretRng;
use blindcore_store::{BuildOptions, SourceSpec, Stored, StreamOptions, build};
use blindcore_wire::proto;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use prost::Message;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use super::{Row, Samples, print};
use crate::Outcome;
use crate::output::Bar;

/// Bytes of a row of the table.
const ROW: usize = 1024;
/// No answer is longer.
const ANSWER_BYTES: usize = 64 << 20;
/// Between two deeds of one hostile connection that doesn't wait for answers.
const PACE: Duration = Duration::from_millis(500);
/// Connections of one hostile client.
const CONNECTIONS: usize = 8;
/// What hostile clients do, a tenth or so each; each does it on eight connections.
const HOSTILE: [&str; 5] = [
    "stall: half a handshake, or half a request, and then nothing",
    "flood: requests of as many queries as the server takes, one after another",
    "hang up: a whole request, and away before its answer",
    "garbage: noise instead of a handshake, or after it",
    "read slowly: a hint asked for, and a byte of it read at times",
];

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore bench serve                                 a table to read
  blindcore bench serve --mib 4096 --clients 20 --hostile 2   how soon a large table is there
  blindcore bench serve --json > result.json            the same rows for programs
  blindcore bench serve --soak 10 --clients 100         ten minutes under attack: does memory stay flat?

An honest client's share is the median time of a pass times the passes that answer one query of every client. Clients
and server are on this machine and share its cores.")]
pub(crate) struct BenchServe {
    /// Clients at a time, 20 to 5000
    #[arg(long, value_name = "N", default_value_t = 500)]
    clients: usize,
    /// How many of them are hostile
    #[arg(long, value_name = "N", default_value_t = 50)]
    hostile: usize,
    /// Size of the table in MiB, 1 to 16384
    #[arg(long, value_name = "N", default_value_t = 256)]
    mib: usize,
    /// Seconds of each measurement
    #[arg(long, value_name = "N", default_value_t = 20)]
    seconds: u64,
    /// Times that each figure is measured
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeat: usize,
    /// Instead of that: minutes under attack, with the server's memory every second
    #[arg(long, value_name = "MINUTES")]
    soak: Option<u64>,
    /// Print the rows as one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &BenchServe) -> anyhow::Result<Outcome> {
    let BenchServe { clients, hostile, mib, seconds, repeat, soak, .. } = *args;
    anyhow::ensure!((20..=5000).contains(&clients), "--clients is {clients}, outside 20 to 5000");
    anyhow::ensure!(
        hostile < clients,
        "--hostile is {hostile}, and there are {clients} clients; leave some honest"
    );
    anyhow::ensure!((1..=16_384).contains(&mib), "--mib is {mib}, outside 1 to 16384");
    anyhow::ensure!((1..=3600).contains(&seconds), "--seconds is {seconds}, outside 1 to 3600");
    anyhow::ensure!((1..=1000).contains(&repeat), "--repeat is {repeat}, outside 1 to 1000");
    anyhow::ensure!(soak.is_none_or(|m| (1..=1440).contains(&m)), "--soak is outside 1 to 1440 minutes");
    let dir = tempfile::tempdir()?;
    let mut bar = Bar::new();
    make_table(dir.path(), mib << 20, &mut bar)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let starts = if soak.is_some() { Vec::new() } else { started(dir.path(), repeat, &mut bar).await? };
        let server = Serving::start(dir.path())?;
        server.settle()?;
        let target = Arc::new(Target::of(&server, dir.path()).await?);
        let settings = json!({
            "clients": clients, "hostile": hostile, "table_mib": mib, "query_bytes": target.one.len(), "seconds": seconds,
            "hostile_clients": HOSTILE,
        });
        match soak {
            Some(minutes) => soaked(args, &target, &server, Duration::from_secs(60 * minutes), settings, bar).await,
            None => measured(args, &target, &server, starts, settings, bar).await,
        }
    })
}

/// Honest clients alone, and then with hostile ones, turn about.
async fn measured(
    args: &BenchServe,
    target: &Arc<Target>,
    server: &Serving,
    mut rows: Vec<Row>,
    mut settings: Value,
    mut bar: Bar,
) -> anyhow::Result<Outcome> {
    let length = Duration::from_secs(args.seconds);
    let honest = args.clients - args.hostile;
    let idle = server.memory("VmRSS:")?;
    let [mut quiet, mut p50, mut p99, mut passes, mut shares, mut peak]: [Samples; 6] = Default::default();
    let counts = Counts::default();
    for i in 0..args.repeat {
        for hostile in [0, args.hostile] {
            bar.set(
                "measuring",
                (2 * i + usize::from(hostile > 0)) as u64,
                Some(2 * args.repeat as u64),
                false,
            );
            let phase = phase(target, honest, hostile, length).await?;
            let Some([half, most]) = phase.percentiles() else {
                anyhow::bail!(
                    "no honest client was answered within {} s: {}; say --seconds, or --mib",
                    args.seconds,
                    phase.counts.json()
                );
            };
            if hostile == 0 && args.hostile > 0 {
                quiet.0.push(most);
            } else {
                p50.0.push(half);
                p99.0.push(most);
                passes.0.push(phase.pass);
                shares.0.push(phase.pass * args.clients.div_ceil(target.gather) as f64);
                peak.0.push(server.memory("VmHWM:")? as f64);
                counts.add(&phase.counts);
            }
        }
    }
    drop(bar);
    settings["pass_seconds"] = json!(passes.median());
    settings["counts"] = counts.json();
    let share = shares.median();
    let mib = |s: &Samples| s.map(|b| b / f64::from(1 << 20));
    let may = (idle + target.request_memory) as f64 / f64::from(1 << 20);
    rows.extend([
        row(
            "lookup.load.p99",
            "an honest client's wait, one in a hundred",
            "s",
            p99,
            "its share of passes",
            share,
        ),
        row("lookup.load.p50", "an honest client's wait, the median", "s", p50, "its share of passes", share),
        row(
            "lookup.load.memory",
            "the server's memory at its most",
            "MiB",
            mib(&peak),
            "at rest, and for requests",
            may,
        ),
    ]);
    if quiet.len() > 0 {
        let what = "the same as the first when nobody attacks";
        rows.push(row("lookup.quiet.p99", what, "s", quiet, "its share of passes", share));
    }
    print(&rows, settings, args.json)?;
    Ok(Outcome::Done)
}

/// Under attack for long, with the server's memory at every second.
async fn soaked(
    args: &BenchServe,
    target: &Arc<Target>,
    server: &Serving,
    length: Duration,
    mut settings: Value,
    mut bar: Bar,
) -> anyhow::Result<Outcome> {
    let honest = args.clients - args.hostile;
    let watch = async {
        let (started, mut seen) = (Instant::now(), Samples::default());
        while started.elapsed() < length {
            bar.set("soaking", started.elapsed().as_secs(), Some(length.as_secs()), false);
            seen.0.push(server.memory("VmRSS:")? as f64 / f64::from(1 << 20));
            sleep(Duration::from_secs(1)).await;
        }
        anyhow::Ok(seen)
    };
    let (phase, seen) = tokio::join!(phase(target, honest, args.hostile, length), watch);
    let (phase, seen) = (phase?, seen?);
    drop(bar);
    settings["counts"] = phase.counts.json();
    settings["seconds"] = json!(length.as_secs());
    settings["peak_mib"] = json!(server.memory("VmHWM:")? >> 20);
    let quarter = (seen.len() / 4).max(1);
    let (first, last) =
        (Samples(seen.0[quarter..2 * quarter].to_vec()), Samples(seen.0[seen.len() - quarter..].to_vec()));
    let [half, most] = phase.percentiles().context("no honest client was answered")?;
    settings["honest_p50_seconds"] = json!(half);
    settings["honest_p99_seconds"] = json!(most);
    let what = "the server's memory in the last quarter of the time";
    let row = row("lookup.soak.memory", what, "MiB", last, "in the second quarter", first.median());
    print(&[row], settings, args.json)?;
    Ok(Outcome::Done)
}

fn row(
    id: &'static str,
    what: &'static str,
    unit: &'static str,
    value: Samples,
    of: &'static str,
    of_value: f64,
) -> Row {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Row::new(id, what, unit, threads, value, of, of_value)
}

/// From a server's start to its first answer, beside reading the database from its disk; and its memory once it is at
/// rest.
async fn started(dir: &Path, repeat: usize, bar: &mut Bar) -> anyhow::Result<Vec<Row>> {
    let part = Stored::open(&dir.join("table.db"))?.records;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let matrix = part.stream(&Cpu::with_threads("cpu", threads)?, StreamOptions::default())?;
    // Which compares it with its checksums.
    matrix.scan(&mut |_| Ok(()))?;
    let [mut first, mut read, mut memory]: [Samples; 3] = Default::default();
    for i in 0..repeat {
        bar.set("starting", i as u64, Some(repeat as u64), false);
        read.time(|| matrix.scan(&mut |_| Ok(())))?;
        let begun = Instant::now();
        let server = Serving::start(dir)?;
        let target = Target::of(&server, dir).await?;
        let mut sender = target.open(Ipv4Addr::LOCALHOST).await?;
        let (status, answer) = ask(&mut sender, "POST", "/v1/query", target.one.clone()).await?;
        first.0.push(begun.elapsed().as_secs_f64());
        anyhow::ensure!(status == 200, "status {status}: {}", String::from_utf8_lossy(&answer));
        server.settle()?;
        memory.0.push(server.memory("VmRSS:")? as f64 / f64::from(1 << 20));
    }
    let bytes = matrix.bytes() as f64 / f64::from(1 << 20);
    Ok(vec![
        row(
            "lookup.start",
            "from a server's start to its first answer",
            "s",
            first,
            "the database read",
            read.median(),
        ),
        row("lookup.memory", "the server's memory at rest", "MiB", memory, "the database", bytes),
    ])
}

/// A table of rows that are found by their number.
fn make_table(dir: &Path, bytes: usize, bar: &mut Bar) -> anyhow::Result<()> {
    let mut rng = SecretRng::from_os()?;
    let mut file = BufWriter::new(File::create(dir.join("table.csv"))?);
    writeln!(file, "value")?;
    let mut words = vec![0u32; ROW / 8];
    for _ in 0..bytes.div_ceil(ROW) {
        rng.fill_u32(&mut words);
        for word in &words {
            write!(file, "{word:08x}")?;
        }
        writeln!(file)?;
    }
    file.flush()?;
    let options = BuildOptions {
        scheme: SchemeChoice::Only(Scheme::Simple),
        proofs: blindcore_store::ProofChoice::Without,
        directory: false,
        ..BuildOptions::new(
            SourceSpec::parse(&dir.join("table.csv").to_string_lossy())?,
            dir.join("table.db"),
        )
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    build(&options, &Cpu::with_threads("cpu", threads)?, &mut |_, done, total| {
        bar.set("building", done, total, false);
        Ok(())
    })?;
    std::fs::remove_file(dir.join("table.csv"))?;
    Ok(())
}

/// The server, ended with its value.
struct Serving {
    child: Child,
    address: SocketAddr,
    metrics: SocketAddr,
    /// Closed once a copy that was not there at the start is.
    copied: Option<Receiver<()>>,
}

impl Serving {
    fn start(dir: &Path) -> anyhow::Result<Self> {
        let (certificate, key) = blindcore_circuit::transport::new_identity("localhost")?;
        std::fs::write(dir.join("chain.pem"), certificate)?;
        std::fs::write(dir.join("key.pem"), &*key)?;
        let mut command = Command::new(std::env::current_exe()?);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("BLINDCORE_") {
                command.env_remove(name);
            }
        }
        command
            .current_dir(dir)
            .args(["serve", "table.db", "--listen", "127.0.0.1:0", "--metrics", "0"])
            .args(["--tls-cert", "chain.pem", "--tls-key", "key.pem"])
            .env("BLINDCORE_LOG", "warn,blindcore::serve=info,blindcore::placing=info")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().context("the server can't be started")?;
        let mut lines = BufReader::new(child.stderr.take().context("its log")?).lines();
        let (mut metrics, mut copying, mut last) = (None, false, String::new());
        let found = loop {
            let Some(line) = lines.next().transpose()? else {
                let _ = child.wait();
                anyhow::bail!("the server did not start: {last}");
            };
            if let Some((_, url)) = line.split_once("metrics at http://") {
                metrics = url.trim().trim_end_matches("/metrics").parse().ok();
            }
            copying |= line.contains("streamed until the copy is there");
            if let Some((_, url)) = line.split_once("listening on https://") {
                break url.trim().parse().ok();
            }
            last = line;
        };
        // It goes on to log, and must not come to wait for somebody to read.
        let (tell, copied) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            let mut tell = Some(tell);
            lines.map_while(Result::ok).for_each(|line| {
                if line.contains("the copy is there") {
                    tell = None;
                }
            });
        });
        let copied = copying.then_some(copied);
        let (Some(address), Some(metrics)) = (found, metrics) else {
            let _ = child.kill();
            anyhow::bail!("the server does not say where it listens");
        };
        Ok(Self { child, address, metrics, copied })
    }

    /// Waits until its table is where it is to stay.
    fn settle(&self) -> anyhow::Result<()> {
        const LONGEST: Duration = Duration::from_secs(600);
        let waited = self.copied.as_ref().map(|copied| copied.recv_timeout(LONGEST));
        anyhow::ensure!(
            waited != Some(Err(RecvTimeoutError::Timeout)),
            "the server copies its table for too long"
        );
        Ok(())
    }

    /// A line of what the system says of its memory, in bytes.
    fn memory(&self, what: &str) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))
            .context("the server's memory can't be read; this needs Linux, and the server to live")?;
        let line = status.lines().find(|l| l.starts_with(what)).context("the server is gone")?;
        let kib: u64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
        Ok(kib << 10)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What everybody asks.
struct Target {
    address: SocketAddr,
    metrics: SocketAddr,
    tls: TlsConnector,
    /// A request of one query, and one of as many as the server takes.
    one: Bytes,
    many: Bytes,
    gather: usize,
    request_memory: u64,
}

impl Target {
    async fn of(server: &Serving, dir: &Path) -> anyhow::Result<Self> {
        let mut client = (*blindcore_tls::client(Some(&dir.join("chain.pem")))?).clone();
        client.alpn_protocols = vec![b"http/1.1".to_vec()];
        let mut target = Self {
            address: server.address,
            metrics: server.metrics,
            tls: TlsConnector::from(Arc::new(client)),
            one: Bytes::new(),
            many: Bytes::new(),
            gather: blindcore_server::Config::default().gather,
            request_memory: blindcore_server::Config::default().memory_bytes as u64,
        };
        let mut sender = target.open(Ipv4Addr::LOCALHOST).await?;
        let (_, body) = ask(&mut sender, "GET", "/v1/tables/table", Bytes::new()).await?;
        let table: Value = serde_json::from_slice(&body)?;
        let part = &table["records"];
        let (bytes, most) = (part["query_bytes"].as_u64(), part["queries_per_request"].as_u64());
        let (bytes, most) = (bytes.context("its size")? as usize, most.context("its limit")? as usize);
        let digest = table["digest"].as_str().context("its digest")?;
        let digest = (0..digest.len() / 2).map(|i| u8::from_str_radix(&digest[2 * i..2 * i + 2], 16));
        let digest: Bytes = digest.collect::<Result<Vec<u8>, _>>()?.into();
        let mut rng = SecretRng::from_os()?;
        let mut request = |queries: usize| {
            let mut words = vec![0u32; queries * bytes / 4];
            rng.fill_u32(&mut words);
            let request = proto::QueryRequest {
                table: "table".into(),
                epoch: table["epoch"].as_u64().unwrap_or_default(),
                part: proto::PartKind::Records.into(),
                table_digest: digest.clone(),
                queries: bytemuck::cast_slice::<u32, u8>(&words).to_vec().into(),
            };
            Bytes::from(request.encode_to_vec())
        };
        (target.one, target.many) = (request(1), request(most));
        Ok(target)
    }

    async fn connect(&self, from: Ipv4Addr) -> std::io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        let stream = socket.connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    async fn encrypted(&self, from: Ipv4Addr) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let name = ServerName::try_from("localhost").expect("is a name");
        self.tls.connect(name, self.connect(from).await?).await
    }

    async fn open(&self, from: Ipv4Addr) -> anyhow::Result<SendRequest<Full<Bytes>>> {
        let stream = TokioIo::new(self.encrypted(from).await?);
        let (sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    /// Seconds in passes, and passes, up to now.
    async fn passes(&self) -> anyhow::Result<[f64; 2]> {
        let mut stream = TcpStream::connect(self.metrics).await?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        let value = |name: &str| {
            let line = text.lines().find(|l| l.starts_with(name));
            line.and_then(|l| l.rsplit_once(' ')).and_then(|(_, v)| v.parse().ok()).unwrap_or_default()
        };
        Ok([value("blindcore_pass_seconds_sum"), value("blindcore_pass_seconds_count")])
    }
}

async fn ask(
    sender: &mut SendRequest<Full<Bytes>>,
    method: &str,
    path: &str,
    body: Bytes,
) -> anyhow::Result<(u16, Bytes)> {
    sender.ready().await?;
    let request = http::Request::builder().method(method).uri(path).header("host", "localhost");
    let response = sender.send_request(request.body(Full::new(body))?).await?;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), ANSWER_BYTES).collect().await;
    Ok((status, body.map_err(|e| anyhow::anyhow!("{e}"))?.to_bytes()))
}

/// What happened, in numbers.
#[derive(Default)]
struct Counts {
    honest_answered: AtomicU64,
    honest_refused: AtomicU64,
    honest_broken: AtomicU64,
    hostile_deeds: AtomicU64,
    hostile_refused: AtomicU64,
}

impl Counts {
    fn all(&self) -> [(&'static str, &AtomicU64); 5] {
        [
            ("honest_answered", &self.honest_answered),
            ("honest_refused", &self.honest_refused),
            ("honest_broken", &self.honest_broken),
            ("hostile_deeds", &self.hostile_deeds),
            ("hostile_refused", &self.hostile_refused),
        ]
    }

    fn json(&self) -> Value {
        self.all().iter().map(|(name, n)| (name.to_string(), json!(n.load(Ordering::Relaxed)))).collect()
    }

    fn add(&self, other: &Self) {
        for ((_, mine), (_, more)) in self.all().iter().zip(other.all()) {
            mine.fetch_add(more.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

fn one(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// What came of one measurement.
struct Phase {
    /// Seconds that honest clients waited, sorted.
    waits: Vec<f64>,
    /// Seconds of a pass, the median of many short spans.
    pass: f64,
    counts: Arc<Counts>,
}

impl Phase {
    fn percentiles(&self) -> Option<[f64; 2]> {
        let at = |q: f64| {
            self.waits.get(((self.waits.len() as f64 * q) as usize).min(self.waits.len().wrapping_sub(1)))
        };
        Some([*at(0.5)?, *at(0.99)?])
    }
}

/// What clients of a measurement share.
struct Shared {
    target: Arc<Target>,
    /// Whether waits count yet: not while everybody comes at once.
    warm: AtomicBool,
    over: AtomicBool,
    waits: Mutex<Vec<f64>>,
    counts: Arc<Counts>,
}

async fn phase(
    target: &Arc<Target>,
    honest: usize,
    hostile: usize,
    length: Duration,
) -> anyhow::Result<Phase> {
    let shared = Arc::new(Shared {
        target: target.clone(),
        warm: AtomicBool::new(false),
        over: AtomicBool::new(false),
        waits: Mutex::default(),
        counts: Arc::default(),
    });
    let address = |net: u8, i: usize| Ipv4Addr::new(127, net, (i / 250) as u8, (i % 250) as u8 + 1);
    let mut all = JoinSet::new();
    for i in 0..honest {
        all.spawn(be_honest(shared.clone(), address(1, i)));
    }
    for i in 0..hostile {
        for connection in 0..CONNECTIONS {
            let (shared, from, kind) = (shared.clone(), address(2, i), i % HOSTILE.len());
            all.spawn(async move {
                // Not all at once.
                sleep(PACE * connection as u32 / CONNECTIONS as u32).await;
                while !shared.over.load(Ordering::Relaxed) {
                    one(&shared.counts.hostile_deeds);
                    // Whatever the server did to it, it goes on.
                    let _ = be_hostile(&shared, from, kind, connection).await;
                    if kind != 1 {
                        sleep(PACE).await;
                    }
                }
            });
        }
    }
    sleep(length / 4).await;
    shared.warm.store(true, Ordering::Relaxed);
    let (mut pass, mut before) = (Samples::default(), target.passes().await?);
    let end = Instant::now() + length;
    while Instant::now() < end {
        sleep(Duration::from_millis(250).min(length / 8)).await;
        let now = target.passes().await?;
        if now[1] > before[1] {
            pass.0.push((now[0] - before[0]) / (now[1] - before[1]));
        }
        before = now;
    }
    shared.over.store(true, Ordering::Relaxed);
    // Those who wait for an answer still get it, and count: the slowest are what is looked for.
    let _ = timeout(Duration::from_secs(60), async { while all.join_next().await.is_some() {} }).await;
    all.shutdown().await;
    let mut waits = std::mem::take(&mut *shared.waits.lock().unwrap_or_else(PoisonError::into_inner));
    waits.sort_by(f64::total_cmp);
    anyhow::ensure!(pass.len() > 0, "there was no pass; say more --seconds");
    Ok(Phase { waits, pass: pass.median(), counts: shared.counts.clone() })
}

/// One query after another, each timed.
async fn be_honest(shared: Arc<Shared>, from: Ipv4Addr) {
    let Shared { target, counts, .. } = &*shared;
    while !shared.over.load(Ordering::Relaxed) {
        let Ok(mut sender) = target.open(from).await else {
            one(&counts.honest_broken);
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        while !shared.over.load(Ordering::Relaxed) {
            let (counted, started) = (shared.warm.load(Ordering::Relaxed), Instant::now());
            match ask(&mut sender, "POST", "/v1/query", target.one.clone()).await {
                Ok((200, _)) => {
                    one(&counts.honest_answered);
                    if counted {
                        let wait = started.elapsed().as_secs_f64();
                        shared.waits.lock().unwrap_or_else(PoisonError::into_inner).push(wait);
                    }
                }
                Ok(_) => {
                    one(&counts.honest_refused);
                    sleep(Duration::from_millis(100)).await;
                }
                Err(_) => {
                    one(&counts.honest_broken);
                    break;
                }
            }
        }
    }
}

/// One deed of a hostile client, as [`HOSTILE`] says.
async fn be_hostile(shared: &Shared, from: Ipv4Addr, kind: usize, connection: usize) -> anyhow::Result<()> {
    let Shared { target, counts, over, .. } = shared;
    let mut buffer = [0; 64];
    let head =
        format!("POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", target.one.len());
    match kind {
        0 if connection.is_multiple_of(2) => {
            let mut stream = target.connect(from).await?;
            stream.write_all(b"\x16\x03\x01\x02\x00\x01\x00").await?;
            // Until it is shut out, or it is over.
            while !over.load(Ordering::Relaxed) {
                if let Ok(Ok(0) | Err(_)) = timeout(PACE, stream.read(&mut buffer)).await {
                    break;
                }
            }
        }
        0 => {
            let mut stream = target.encrypted(from).await?;
            stream.write_all(&[head.as_bytes(), &target.one[..target.one.len() / 2]].concat()).await?;
            while !over.load(Ordering::Relaxed) {
                if let Ok(Ok(0) | Err(_)) = timeout(PACE, stream.read(&mut buffer)).await {
                    break;
                }
            }
        }
        1 => {
            let mut sender = target.open(from).await?;
            while !over.load(Ordering::Relaxed) {
                let (status, _) = ask(&mut sender, "POST", "/v1/query", target.many.clone()).await?;
                one(&counts.hostile_deeds);
                if status != 200 {
                    one(&counts.hostile_refused);
                    sleep(PACE / 10).await;
                }
            }
        }
        2 => {
            let mut stream = target.encrypted(from).await?;
            stream.write_all(&[head.as_bytes(), &target.one].concat()).await?;
            stream.flush().await?;
        }
        3 => {
            let mut noise = vec![0u32; 512];
            SecretRng::from_os()?.fill_u32(&mut noise);
            let noise: &[u8] = bytemuck::cast_slice(&noise);
            if connection.is_multiple_of(2) {
                target.connect(from).await?.write_all(noise).await?;
            } else {
                target.encrypted(from).await?.write_all(noise).await?;
            }
        }
        _ => {
            let mut stream = target.encrypted(from).await?;
            let hint = b"GET /v1/tables/table/records/hint HTTP/1.1\r\nHost: localhost\r\n\r\n";
            stream.write_all(hint).await?;
            stream.flush().await?;
            while !over.load(Ordering::Relaxed) {
                if stream.read(&mut buffer[..1]).await? == 0 {
                    break;
                }
                sleep(PACE).await;
            }
        }
    }
    Ok(())
}
