//! What the command's servers share: an address, a log, an end.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use blindcore_server::{AccessFiles, Config as ServerConfig, Reloader};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

use crate::config::{Config, Limits};

/// What all servers have in front.
#[derive(clap::Args)]
pub(crate) struct FrontArgs {
    /// The server's certificate and those that lead from it to an authority, in PEM
    #[arg(long, env = "BLINDCORE_TLS_CERT", value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM
    #[arg(long, env = "BLINDCORE_TLS_KEY", value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Listen beyond this machine without TLS; everybody on the way can then read and change the traffic
    #[arg(long)]
    pub(crate) plain_text: bool,
    /// Answer only requests with a token from this file: lines of a name and a digest, as `blindcore token` prints them
    #[arg(long, env = "BLINDCORE_TOKENS", value_name = "FILE")]
    pub(crate) tokens: Option<PathBuf>,
    /// Most simultaneous connections [default: 1024]
    #[arg(long, value_name = "N")]
    pub(crate) connections: Option<usize>,
    /// Most connections from one address, of IPv6 from one network of 64 bits [default: 64, or half of all if that is less]
    #[arg(long, value_name = "N")]
    pub(crate) connections_per_client: Option<usize>,
    /// Log as JSON lines
    #[arg(long)]
    pub(crate) log_json: bool,
}

/// A server's settings from flags over the settings file, and the files that certificates and tokens are in.
pub(crate) fn front(
    settings: &mut ServerConfig,
    args: &FrontArgs,
    config: &Config,
) -> anyhow::Result<AccessFiles> {
    settings.plain_text = args.plain_text || config.plain_text;
    limit(settings, args, &config.limits)?;
    let said = [args.tls_cert.as_deref(), args.tls_key.as_deref()];
    let [cert, key] = config.certificate(said, !settings.listen.ip().is_loopback())?;
    let tokens = args.tokens.as_ref().or(config.tokens.as_ref());
    Ok(AccessFiles::new(cert.map(Into::into), key.map(Into::into), tokens.cloned())?)
}

pub(crate) fn address(text: &str, port: u16) -> anyhow::Result<SocketAddr> {
    let remedy = format!("give an address and a port, such as 127.0.0.1:{port}");
    text.to_socket_addrs()
        .map_err(|_| {
            anyhow::anyhow!("--listen {text:?} is not an address that this machine knows; {remedy}")
        })?
        .next()
        .with_context(|| format!("--listen {text:?} names no address; {remedy}"))
}

/// Whether errors are lines of JSON, too.
pub(crate) static LOGS_JSON: AtomicBool = AtomicBool::new(false);

/// What `BLINDCORE_LOG` asks for: levels, of all or of a part. A name alone would be read as a part's and log nothing else.
pub(crate) fn log_filter() -> anyhow::Result<Targets> {
    let said = blindcore_units::variable("BLINDCORE_LOG").unwrap_or("info".into());
    let fits = |part: &str| part.contains('=') || part.parse::<LevelFilter>().is_ok();
    let parts = said.to_str().map(|said| said.split(',').map(str::trim).collect::<Vec<_>>());
    let parts = parts.filter(|parts| parts.iter().all(|part| fits(part)));
    parts.and_then(|parts| parts.join(",").parse().ok()).with_context(|| {
        format!("BLINDCORE_LOG {said:?} can't be read; say error, warn, info, debug, trace or PART=LEVEL,...")
    })
}

pub(crate) fn log_to_stderr(json: bool) -> anyhow::Result<()> {
    let filter = log_filter()?;
    // The server stays if the reader of its log goes away.
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).log_internal_errors(false);
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let layer = if json { layer.json().boxed() } else { layer.with_ansi(colours).with_target(false).boxed() };
    tracing_subscriber::registry().with(layer.with_filter(filter)).init();
    LOGS_JSON.store(json, Ordering::Relaxed);
    Ok(())
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

/// Mebibytes of the settings file, in bytes.
pub(crate) fn mib(what: &str, n: Option<usize>) -> anyhow::Result<Option<usize>> {
    let Some(n) = n else { return Ok(None) };
    let bytes = n.checked_mul(1 << 20);
    Ok(Some(bytes.with_context(|| {
        format!("{what} is {n}, which is more MiB than this machine can count; say fewer")
    })?))
}

/// What clients may take: flags over settings over defaults. The server checks the ranges.
fn limit(settings: &mut ServerConfig, args: &FrontArgs, limits: &Limits) -> anyhow::Result<()> {
    fn set<T: Copy>(place: &mut T, values: [Option<T>; 2]) {
        if let Some(value) = values.into_iter().flatten().next() {
            *place = value;
        }
    }
    let seconds = |n: Option<u64>| n.map(Duration::from_secs);
    set(&mut settings.connections, [args.connections, limits.connections]);
    // Where nobody said more, one address leaves half of them to others.
    let share = settings.connections_per_client.min((settings.connections / 2).max(1));
    let said = args.connections_per_client.or(limits.connections_per_client);
    set(&mut settings.connections_per_client, [said, Some(share)]);
    set(&mut settings.streams_per_connection, [None, limits.streams_per_connection]);
    set(&mut settings.waiting_queries, [None, limits.waiting_queries]);
    set(&mut settings.waiting_per_client, [None, limits.waiting_per_client]);
    set(&mut settings.queries_per_request, [None, limits.queries_per_request]);
    settings.queries_per_minute = limits.queries_per_minute;
    settings.hint_bytes_per_minute =
        mib("hint_mib_per_minute", limits.hint_mib_per_minute)?.map(|bytes| bytes as u64);
    set(&mut settings.request_bytes, [None, mib("request_mib", limits.request_mib)?]);
    settings.memory_per_client = mib("memory_mib_per_client", limits.memory_mib_per_client)?;
    set(&mut settings.header_timeout, [None, seconds(limits.header_seconds)]);
    set(&mut settings.request_timeout, [None, seconds(limits.request_seconds)]);
    set(&mut settings.idle_timeout, [None, seconds(limits.idle_seconds)]);
    set(&mut settings.drain_delay, [None, seconds(limits.drain_seconds)]);
    set(&mut settings.grace, [None, seconds(limits.grace_seconds)]);
    Ok(())
}

/// SIGHUP, caught from here on.
pub(crate) struct Hangup(#[cfg(unix)] tokio::signal::unix::Signal);

#[cfg(unix)]
impl Hangup {
    pub(crate) fn new() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self(signal(SignalKind::hangup())?))
    }

    /// Has the server's files read again at each, on a thread that may block.
    pub(crate) fn reload(mut self, reloader: Reloader) {
        tokio::spawn(async move {
            while self.0.recv().await.is_some() {
                let reloader = reloader.clone();
                // The log says what failed.
                let _ = tokio::task::spawn_blocking(move || reloader.reload()).await;
            }
        });
    }
}

#[cfg(not(unix))]
impl Hangup {
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self())
    }

    pub(crate) fn reload(self, _: Reloader) {}
}
