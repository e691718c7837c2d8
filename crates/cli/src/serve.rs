//! `blindcore serve`: databases, placed on a device, answering until a signal.

use std::io::Read;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use blindcore_accel::Device;
use blindcore_server::{Config as ServerConfig, Handle, Hint, Part, Server, Table, Tokens};
use blindcore_store::{HintFile, Stored};
use blindcore_wire::PartKind;

use crate::config::{Config, Limits};
use crate::placing::{Memory, Placing};
use crate::reload::{self, Watched};
use crate::{Outcome, args, device};

/// Where a server listens unless told otherwise.
const DEFAULT_LISTEN: &str = "127.0.0.1:7700";
/// No file of tokens is longer.
const MAX_TOKENS_BYTES: u64 = 4 << 20;

pub(crate) fn run(config: &Config, args: args::Serve) -> anyhow::Result<Outcome> {
    log_to_stderr(args.log_json);
    let listen = args.listen.as_deref().or(config.listen.as_deref()).unwrap_or(DEFAULT_LISTEN);
    let mut settings = ServerConfig { listen: address(listen)?, ..ServerConfig::default() };
    settings.plain_text = args.plain_text;
    let access = Access::new(&args, config)?;
    limit(&mut settings, &args, &config.limits)?;
    let metrics = args.metrics.as_deref().or(config.metrics.as_deref());
    settings.metrics = metrics.map(metrics_address).transpose()?;
    settings.tls = access.tls()?;
    settings.tokens = access.tokens()?;
    settings.gather = args.gather.or(config.gather).unwrap_or(settings.gather);
    settings.check()?;
    let device: Arc<dyn Device> = device::open(&args.device, config)?.into();

    let stored: Vec<Stored> = args.dirs.iter().map(|d| Stored::open(d)).collect::<Result<_, _>>()?;
    let mut names = std::collections::HashSet::new();
    if let Some(twice) = stored.iter().map(|s| &s.manifest().name).find(|name| !names.insert(*name)) {
        // Before anything is placed.
        return Err(blindcore_server::Error::DuplicateTable { name: twice.clone() }.into());
    }
    let said = args.memory.clone().or_else(|| config.memory.clone());
    let memory = Memory::new(said.as_deref())?;
    if let (Some(memory), None) = (memory, config.limits.request_memory_mib) {
        settings.memory_bytes = settings.memory_bytes.min(memory.for_requests());
    }
    let streamed = args.streamed;
    let parts = stored.iter().flat_map(|s| s.parts().map(|(_, part)| part));
    let mut placing = Placing::new(parts, memory, streamed);
    let (mut tables, mut unchecked) = (Vec::new(), Vec::new());
    for s in &stored {
        let (table, hints) =
            open(s, &*device, &mut placing, &|_| true).with_context(|| format!("{}", s.dir().display()))?;
        tables.push(table);
        unchecked.extend(hints);
    }
    if config.limits.request_seconds.is_none() {
        settings.request_timeout = settings.request_timeout.max(placing.request_time());
    }
    drop(placing);
    let encrypted = settings.tls.is_some();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        // Signals are caught before anybody is told that the server is there.
        let stop = shutdown()?;
        let server = Server::bind(settings, tables).await?;
        let mut reloads = Reloads::default();
        let handle = server.handle();
        reloads.add("certificates and tokens", move || {
            // All or nothing: both are read before either takes its place.
            let (tls, tokens) = (access.tls()?, access.tokens()?);
            tls.into_iter().for_each(|tls| handle.set_tls(tls));
            tokens.into_iter().for_each(|tokens| handle.set_tokens(tokens));
            Ok(())
        });
        let (wake, woken) = std::sync::mpsc::channel();
        let wake_now = wake.clone();
        reloads.add("databases", move || Ok(wake_now.send(())?));
        reloads.on_hangup(server.handle())?;
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
                "serving"
            );
        }
        let scheme = if encrypted { "https" } else { "http" };
        if !encrypted && !server.address().ip().is_loopback() {
            tracing::warn!("the transport is plain text, for everybody between to read and change");
        }
        if let Some(address) = server.metrics_address() {
            tracing::info!("metrics at http://{address}/metrics");
        }
        tracing::info!("listening on {scheme}://{}", server.address());
        let stats = server.stats();
        let watched = stored.iter().map(Watched::new).collect();
        let (handle, on) = (server.handle(), device.clone());
        let open: reload::Open = Box::new(move |stored, careful, wanted| {
            let parts = stored.parts().filter(|(kind, _)| wanted(*kind)).map(|(_, part)| part);
            // What is left now: the epoch before is still there.
            let placing = Placing::new(parts, Memory::left(said.as_deref())?, streamed);
            open(stored, &*on, &mut if careful { placing.careful() } else { placing }, wanted)
        });
        std::thread::Builder::new()
            .name("blindcore-reload".into())
            .spawn(move || reload::run(watched, &handle, open, unchecked, &woken))?;
        let cut = server.run(stop).await;
        drop(wake);
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

/// What clients may take: flags over settings over defaults. The server checks the ranges.
fn limit(settings: &mut ServerConfig, args: &args::Serve, limits: &Limits) -> anyhow::Result<()> {
    fn set<T: Copy>(place: &mut T, values: [Option<T>; 2]) {
        if let Some(value) = values.into_iter().flatten().next() {
            *place = value;
        }
    }
    let mib = |what: &str, n: Option<usize>| match n {
        Some(n) => n
            .checked_mul(1 << 20)
            .map(Some)
            .with_context(|| format!("{what} is {n}, over what this machine has")),
        None => Ok(None),
    };
    let seconds = |n: Option<u64>| n.map(Duration::from_secs);
    set(&mut settings.connections, [args.connections, limits.connections]);
    set(&mut settings.connections_per_client, [args.connections_per_client, limits.connections_per_client]);
    set(&mut settings.streams_per_connection, [None, limits.streams_per_connection]);
    set(&mut settings.waiting_queries, [None, limits.waiting_queries]);
    set(&mut settings.waiting_per_client, [None, limits.waiting_per_client]);
    set(&mut settings.queries_per_request, [None, limits.queries_per_request]);
    settings.queries_per_minute = args.queries_per_minute.or(limits.queries_per_minute);
    settings.hint_bytes_per_minute = limits.hint_mib_per_minute.map(|n| n.saturating_mul(1 << 20));
    set(&mut settings.request_bytes, [None, mib("request_mib", limits.request_mib)?]);
    set(&mut settings.memory_bytes, [None, mib("request_memory_mib", limits.request_memory_mib)?]);
    settings.memory_per_client = mib("memory_mib_per_client", limits.memory_mib_per_client)?;
    set(&mut settings.header_timeout, [None, seconds(limits.header_seconds)]);
    set(&mut settings.request_timeout, [None, seconds(limits.request_seconds)]);
    set(&mut settings.idle_timeout, [None, seconds(limits.idle_seconds)]);
    set(&mut settings.drain_delay, [None, seconds(limits.drain_seconds)]);
    set(&mut settings.grace, [None, seconds(limits.grace_seconds)]);
    Ok(())
}

/// A port of this machine, or an address and a port.
fn metrics_address(text: &str) -> anyhow::Result<SocketAddr> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    text.parse().map_err(|_| {
        anyhow::anyhow!("--metrics {text:?} is no port and no address; say 9100 or 127.0.0.1:9100")
    })
}

/// What a server reads anew when it is told to. Each part that fails keeps what it has.
#[derive(Default)]
struct Reloads(Vec<(&'static str, Reload)>);

/// Reads something, and puts it in place of what was there, or nothing of it.
type Reload = Box<dyn FnMut() -> anyhow::Result<()> + Send>;

impl Reloads {
    fn add(&mut self, what: &'static str, reload: impl FnMut() -> anyhow::Result<()> + Send + 'static) {
        self.0.push((what, Box::new(reload)));
    }

    fn run(&mut self, handle: &Handle) {
        for (what, reload) in &mut self.0 {
            let done = reload();
            handle.reloaded(done.is_ok());
            match done {
                Ok(()) => tracing::info!("{what} read anew"),
                Err(error) => tracing::error!("{what} stay as they were: {error:#}"),
            }
        }
    }

    /// Runs whenever the system says SIGHUP, on a thread of its own, for files are read.
    #[cfg(unix)]
    fn on_hangup(self, handle: Handle) -> anyhow::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        let mut hangup = signal(SignalKind::hangup())?;
        let all = Arc::new(Mutex::new(self));
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                let (all, handle) = (all.clone(), handle.clone());
                let run = move || all.lock().unwrap_or_else(PoisonError::into_inner).run(&handle);
                let _ = tokio::task::spawn_blocking(run).await;
            }
        });
        Ok(())
    }

    #[cfg(not(unix))]
    fn on_hangup(self, _: Handle) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Files that say who the server is and who may ask it, read at the start and again whenever the server is told to.
struct Access {
    tls: Option<(PathBuf, PathBuf)>,
    tokens: Option<PathBuf>,
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
        Ok(Self { tls, tokens: args.tokens.clone().or_else(|| config.tokens.clone()) })
    }

    fn tls(&self) -> anyhow::Result<Option<Arc<rustls::ServerConfig>>> {
        let load = |(cert, key): &(PathBuf, PathBuf)| blindcore_tls::server(cert, key);
        Ok(self.tls.as_ref().map(load).transpose()?)
    }

    fn tokens(&self) -> anyhow::Result<Option<Arc<Tokens>>> {
        let Some(path) = &self.tokens else { return Ok(None) };
        let text = read_small(path, MAX_TOKENS_BYTES)?;
        let tokens = Tokens::parse(&text).with_context(|| format!("tokens {}", path.display()))?;
        #[cfg(unix)]
        if std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path)?) & 0o022 != 0 {
            tracing::warn!("others may write {}, and so let themselves in: chmod 600 it", path.display());
        }
        Ok(Some(Arc::new(tokens)))
    }
}

/// A text file of at most so many bytes.
pub(crate) fn read_small(path: &Path, limit: u64) -> anyhow::Result<String> {
    let mut text = String::with_capacity(limit.min(1 << 16) as usize);
    std::fs::File::open(path)
        .and_then(|file| file.take(limit + 1).read_to_string(&mut text))
        .with_context(|| format!("{} can't be read", path.display()))?;
    anyhow::ensure!(text.len() as u64 <= limit, "{} is over the limit of {limit} B", path.display());
    Ok(text)
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

/// Bytes of a hint that is checked before anybody is answered; a larger one is checked later.
const HINT_AT_ONCE: u64 = 64 << 20;

/// A hint in its file, for a server.
struct Served(Arc<HintFile>);

impl Hint for Served {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        self.0.read_at(offset, into).map_err(std::io::Error::other)
    }

    fn fails(&self) -> bool {
        self.0.fails()
    }
}

/// The `wanted` parts of a database as a table, their matrices in place; and those of their hints, which are served from
/// their files, that are still to be checked.
fn open(
    stored: &Stored,
    device: &dyn Device,
    placing: &mut Placing,
    wanted: &dyn Fn(PartKind) -> bool,
) -> anyhow::Result<(Table, Vec<Arc<HintFile>>)> {
    let description = stored.description()?;
    let (mut parts, mut unchecked) = (Vec::new(), Vec::new());
    for (kind, part) in stored.parts().filter(|(kind, _)| wanted(*kind)) {
        let hint = Arc::new(part.hint_file()?);
        if hint.bytes() <= HINT_AT_ONCE || placing.is_careful() {
            hint.check()?;
        } else {
            unchecked.push(hint.clone());
        }
        let server = placing.place(description.name(), kind, part, device)?;
        parts.push((kind, Part::new(server, Served(hint))));
    }
    Ok((Table::new(description, parts)?, unchecked))
}
