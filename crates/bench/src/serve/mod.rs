//! A lookup server under attack: how long honest clients wait, and what the server needs.
//!
//! The server is a process of its own; every client has an address of its own on this machine (127.1.0.0/16 and on), so that
//! the server tells them apart. Honest clients ask one query after another and measure; the others do as `HOSTILE` says.

mod load;
mod server;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use blindcore_accel_cpu::Cpu;
use blindcore_lookup::SchemeChoice;
use blindcore_lookup::schemes::yardstick;
use blindcore_math::SecretRng;
use blindcore_store::{BuildOptions, SourceSpec, Stored, StreamOptions, build};
use blindcore_units::{Progress, Unit};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{Report, Row, Samples};
use load::{Counts, HOSTILE, Target, ask, phase};
use server::Serving;

/// Bytes of a row of the table.
const ROW: usize = 1024;
/// How many clients ask, and how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// Clients at a time, 20 to 5000.
    pub clients: usize,
    /// How many of them are hostile; at least one is honest.
    pub hostile: usize,
    /// Size of the table in MiB, 1 to 16384.
    pub mib: usize,
    /// Seconds of each measurement, 1 to 3600.
    pub seconds: u64,
    /// Times that each figure is measured, 1 to 1000.
    pub repeat: usize,
    /// Instead of that: minutes under attack, 1 to 1440, with the server's memory every second.
    pub soak: Option<u64>,
    /// The `blindcore` command, whose `serve` is measured in a process of its own.
    pub program: PathBuf,
}

/// Measures rows `lookup.load.*`, `lookup.quiet.*`, `lookup.start` and `lookup.memory`, or `lookup.soak.memory`.
///
/// # Errors
/// An option is out of its range, the server can't be started, or no honest client is answered.
pub fn run(args: &Options, progress: &mut dyn Progress) -> anyhow::Result<Report> {
    let Options { clients, hostile, mib, seconds, repeat, soak, .. } = *args;
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
    make_table(dir.path(), mib << 20, progress)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let starts = if soak.is_some() { Vec::new() } else { started(&args.program, dir.path(), repeat, progress).await? };
        let server = Serving::start(&args.program, dir.path())?;
        server.settle()?;
        let target = Arc::new(Target::of(&server, dir.path()).await?);
        let settings = json!({
            "clients": clients, "hostile": hostile, "table_mib": mib, "query_bytes": target.one.len(), "seconds": seconds,
            "hostile_clients": HOSTILE,
        });
        match soak {
            Some(minutes) => soaked(args, &target, &server, Duration::from_secs(60 * minutes), settings, progress).await,
            None => measured(args, &target, &server, starts, settings, progress).await,
        }
    })
}

/// Honest clients alone, and then with hostile ones, turn about.
async fn measured(
    args: &Options,
    target: &Arc<Target>,
    server: &Serving,
    mut rows: Vec<Row>,
    mut settings: Value,
    progress: &mut dyn Progress,
) -> anyhow::Result<Report> {
    let length = Duration::from_secs(args.seconds);
    let honest = args.clients - args.hostile;
    let idle = server.memory("VmRSS:")?;
    let [mut quiet, mut p50, mut p99, mut passes, mut shares, mut peak]: [Samples; 6] = Default::default();
    let counts = Counts::default();
    for i in 0..args.repeat {
        for hostile in [0, args.hostile] {
            progress.at(
                "measuring",
                (2 * i + usize::from(hostile > 0)) as u64,
                Some(2 * args.repeat as u64),
                Unit::Items,
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
    if !quiet.is_empty() {
        let what = "the same as the first when nobody attacks";
        rows.push(row("lookup.quiet.p99", what, "s", quiet, "its share of passes", share));
    }
    Ok(Report { rows, settings, notes: Vec::new() })
}

/// Under attack for long, with the server's memory at every second.
async fn soaked(
    args: &Options,
    target: &Arc<Target>,
    server: &Serving,
    length: Duration,
    mut settings: Value,
    progress: &mut dyn Progress,
) -> anyhow::Result<Report> {
    let honest = args.clients - args.hostile;
    let watch = async {
        let (started, mut seen) = (Instant::now(), Samples::default());
        while started.elapsed() < length {
            progress.at("soaking", started.elapsed().as_secs(), Some(length.as_secs()), Unit::Items);
            seen.0.push(server.memory("VmRSS:")? as f64 / f64::from(1 << 20));
            sleep(Duration::from_secs(1)).await;
        }
        anyhow::Ok(seen)
    };
    let (phase, seen) = tokio::join!(phase(target, honest, args.hostile, length), watch);
    let (phase, seen) = (phase?, seen?);
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
    Ok(Report { rows: vec![row], settings, notes: Vec::new() })
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
async fn started(
    program: &Path,
    dir: &Path,
    repeat: usize,
    progress: &mut dyn Progress,
) -> anyhow::Result<Vec<Row>> {
    let part = Stored::open(&dir.join("table.db"))?.records;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let matrix = part.stream(&Cpu::with_threads("cpu", threads)?, StreamOptions::default())?;
    // Which compares it with its checksums.
    matrix.scan(&mut |_| Ok(()))?;
    let [mut first, mut read, mut memory]: [Samples; 3] = Default::default();
    for i in 0..repeat {
        progress.at("starting", i as u64, Some(repeat as u64), Unit::Items);
        read.time(|| matrix.scan(&mut |_| Ok(())))?;
        let begun = Instant::now();
        let server = Serving::start(program, dir)?;
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
fn make_table(dir: &Path, bytes: usize, progress: &mut dyn Progress) -> anyhow::Result<()> {
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
        scheme: SchemeChoice::Only(yardstick()),
        proofs: blindcore_store::ProofChoice::Without,
        directory: false,
        ..BuildOptions::new(
            SourceSpec::parse(&dir.join("table.csv").to_string_lossy())?,
            dir.join("table.db"),
        )
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    build(&options, &Cpu::with_threads("cpu", threads)?, progress)?;
    std::fs::remove_file(dir.join("table.csv"))?;
    Ok(())
}
