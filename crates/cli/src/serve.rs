//! `blindcore serve`: databases, placed on a device, answering until a signal.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use blindcore_accel::{Device, SharedBytes};
use blindcore_accel_cpu::HugeBytes;
use blindcore_server::{Config as ServerConfig, Part, Server, Table};
use blindcore_store::{Stored, StoredPart};

use crate::config::Config;
use crate::output::Bar;
use crate::{Outcome, args, device};

/// Where a server listens unless told otherwise.
const DEFAULT_LISTEN: &str = "127.0.0.1:7700";

pub(crate) fn run(config: &Config, args: args::Serve) -> anyhow::Result<Outcome> {
    log_to_stderr(args.log_json);
    let listen = args.listen.as_deref().or(config.listen.as_deref()).unwrap_or(DEFAULT_LISTEN);
    let mut settings = ServerConfig { listen: address(listen)?, ..ServerConfig::default() };
    settings.plain_text = args.plain_text;
    let access = Access::new(&args, config)?;
    settings.tls = access.tls()?;
    settings.gather = args.gather.or(config.gather).unwrap_or(settings.gather);
    let device = device::open(&args.device, config)?;

    let stored: Vec<Stored> = args.dirs.iter().map(|d| Stored::open(d)).collect::<Result<_, _>>()?;
    let total: u64 = stored.iter().map(database_bytes).sum();
    let copied = !args.mapped && available_memory().is_none_or(|free| total < free / 2);
    let mut bar = Bar::new();
    let mut done = 0;
    let mut load = |bytes: &SharedBytes| -> anyhow::Result<SharedBytes> {
        let bytes = if copied {
            copy(bytes, &mut |n| bar.set("loading", done + n, Some(total), true))?
        } else {
            bytes.clone()
        };
        done += (*bytes).as_ref().len() as u64;
        Ok(bytes)
    };
    let tables = stored
        .iter()
        .map(|s| open(s, &*device, &mut load).with_context(|| format!("{}", s.dir().display())))
        .collect::<anyhow::Result<Vec<Table>>>()?;
    drop(bar);
    let encrypted = settings.tls.is_some();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        // Signals are caught before anybody is told that the server is there.
        let stop = shutdown()?;
        let server = Server::bind(settings, tables).await?;
        let described = device.describe();
        tracing::info!(
            device = described.name,
            threads = described.threads,
            why = described.why,
            "computing"
        );
        for s in &stored {
            let m = s.manifest();
            tracing::info!(
                table = m.name,
                epoch = m.epoch,
                rows = m.rows,
                bytes = database_bytes(s),
                copied,
                "serving"
            );
        }
        let scheme = if encrypted { "https" } else { "http" };
        if !encrypted && !server.address().ip().is_loopback() {
            tracing::warn!("the transport is plain text, for everybody between to read and change");
        }
        tracing::info!("listening on {scheme}://{}", server.address());
        let stats = server.stats();
        let cut = server.run(stop).await;
        for (table, part, s) in stats.parts().filter(|(_, _, s)| s.requests > 0) {
            let mean_ms = s.pass_micros as f64 / 1e3 / s.passes.max(1) as f64;
            tracing::info!(
                table, part = %part, requests = s.requests, queries = s.queries, passes = s.passes,
                mean_pass_ms = mean_ms, most_gathered = s.most_gathered, "served"
            );
        }
        anyhow::ensure!(cut == 0, "{cut} connections did not finish in time and were cut");
        Ok(Outcome::Done)
    })
}

/// Files that say who the server is, read at the start and again whenever the server is told to.
struct Access {
    tls: Option<(PathBuf, PathBuf)>,
}

impl Access {
    fn new(args: &args::Serve, config: &Config) -> anyhow::Result<Self> {
        let cert = args.tls_cert.clone().or_else(|| config.tls_cert.clone());
        let key = args.tls_key.clone().or_else(|| config.tls_key.clone());
        let tls = match (cert, key) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            (Some(_), None) => anyhow::bail!("--tls-cert is of no use without its key; add --tls-key FILE"),
            (None, Some(_)) => {
                anyhow::bail!("--tls-key is of no use without its certificate; add --tls-cert FILE")
            }
        };
        Ok(Self { tls })
    }

    fn tls(&self) -> anyhow::Result<Option<Arc<rustls::ServerConfig>>> {
        let load = |(cert, key): &(PathBuf, PathBuf)| blindcore_tls::server(cert, key);
        Ok(self.tls.as_ref().map(load).transpose()?)
    }
}

pub(crate) fn address(text: &str) -> anyhow::Result<SocketAddr> {
    let remedy = "give an address and a port, such as 127.0.0.1:7700";
    text.to_socket_addrs()
        .map_err(|e| anyhow::anyhow!("--listen {text:?} is no address: {e}; {remedy}"))?
        .next()
        .with_context(|| format!("--listen {text:?} names no address; {remedy}"))
}

pub(crate) fn log_to_stderr(json: bool) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("BLINDCORE_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    // Who reads the log may go away; the server stays.
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    if json {
        builder.json().init();
    } else {
        builder.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).with_target(false).init();
    }
}

/// Done when the system says stop.
pub(crate) fn shutdown() -> anyhow::Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        Ok(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
    }
    #[cfg(not(unix))]
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}

fn database_bytes(stored: &Stored) -> u64 {
    let parts = stored.manifest().parts();
    let files = parts.flat_map(|(_, p)| p.shards.iter().chain(&p.state).chain([&p.hint]));
    files.map(|f| f.bytes).sum()
}

/// A table of a database, its matrices and hints loaded by `load`.
fn open(
    stored: &Stored,
    device: &dyn Device,
    load: &mut dyn FnMut(&SharedBytes) -> anyhow::Result<SharedBytes>,
) -> anyhow::Result<Table> {
    let description = stored.description()?;
    let mut part = |p: &StoredPart| -> anyhow::Result<Part> {
        let shards = p.shards.iter().map(&mut *load).collect::<anyhow::Result<Vec<_>>>()?;
        let state = p.state.as_ref().map(&mut *load).transpose()?;
        let server = blindcore_lookup::Server::new(p.params, device, shards, state.map(|s| vec![s]))?;
        Ok(Part::new(server, load(&p.hint)?))
    };
    let parts = stored.parts().map(|(kind, p)| Ok((kind, part(p)?))).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Table::new(description, parts)?)
}

/// Copies a mapped file to memory in huge pages, which a scan reads faster than a file's small pages.
fn copy(bytes: &SharedBytes, progress: &mut dyn FnMut(u64)) -> anyhow::Result<SharedBytes> {
    const STEP: usize = 16 << 20;
    let from = (**bytes).as_ref();
    let mut memory = HugeBytes::zeroed(from.len())?;
    for (i, (to, from)) in memory.as_mut().chunks_mut(STEP).zip(from.chunks(STEP)).enumerate() {
        to.copy_from_slice(from);
        progress((i * STEP) as u64);
    }
    Ok(Arc::new(memory))
}

/// Memory that could be taken without swapping.
fn available_memory() -> Option<u64> {
    let info = std::fs::read_to_string(Path::new("/proc/meminfo")).ok()?;
    let line = info.lines().find(|l| l.starts_with("MemAvailable:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib << 10)
}
