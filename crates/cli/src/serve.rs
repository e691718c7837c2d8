//! `blindcore serve`: a host of folders, from flags and settings, until a signal.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use blindcore_accel::Operation;
use blindcore_server::{Config as ServerConfig, Host, HostBuilder, MemoryLimit, Reloader};

use crate::config::{Config, Limits};
use crate::output::Bar;
use crate::serving::{address, log_to_stderr, shutdown};
use crate::{Outcome, args, device};

/// Where a server listens unless told otherwise.
const DEFAULT_LISTEN: &str = "127.0.0.1:7700";

/// Whether a server would start with the settings and the environment, whatever its tables.
pub(crate) fn check(config: &Config) -> anyhow::Result<()> {
    match args::parse_from(["blindcore", "serve", "."]).1.map(|args| args.command) {
        Ok(args::Command::Serve(args)) => Ok(builder(config, &args)?.check()?),
        Ok(_) => unreachable!("it is serve that was parsed"),
        Err(wrong) => Err(args::refused(&wrong).into()),
    }
}

fn builder(config: &Config, args: &args::Serve) -> anyhow::Result<HostBuilder> {
    let listen = args.listen.as_deref().or(config.listen.as_deref()).unwrap_or(DEFAULT_LISTEN);
    let mut settings = ServerConfig { listen: address(listen)?, ..ServerConfig::default() };
    settings.plain_text = args.plain_text || config.plain_text;
    limit(&mut settings, args, &config.limits)?;
    let metrics = args.metrics.as_deref().or(config.metrics.as_deref());
    settings.metrics = metrics.map(metrics_address).transpose()?;
    settings.gather = args.gather.or(config.gather).unwrap_or(settings.gather);
    let memory = memory(args.memory.as_deref().or(config.memory.as_deref()))?;
    let mut builder = Host::builder().config(settings).memory(memory).streamed(args.streamed);
    let cert = args.tls_cert.as_ref().or(config.tls_cert.as_ref());
    let key = args.tls_key.as_ref().or(config.tls_key.as_ref());
    builder = match (cert, key) {
        (Some(cert), Some(key)) => builder.tls_files(cert, key),
        (None, None) => builder,
        (Some(_), None) => anyhow::bail!("--tls-cert is of no use without its key; add --tls-key FILE"),
        (None, Some(_)) => {
            anyhow::bail!("--tls-key is of no use without its certificate; add --tls-cert FILE")
        }
    };
    if let Some(tokens) = args.tokens.as_ref().or(config.tokens.as_ref()) {
        builder = builder.tokens_file(tokens);
    }
    if let Some(bytes) = mib("request_memory_mib", config.limits.request_memory_mib)? {
        builder = builder.request_memory(bytes);
    }
    if let Some(seconds) = config.limits.request_seconds {
        builder = builder.request_timeout(Duration::from_secs(seconds));
    }
    Ok(args.dirs.iter().fold(builder, |builder, dir| builder.table_dir(dir)))
}

pub(crate) fn run(config: &Config, args: args::Serve) -> anyhow::Result<Outcome> {
    log_to_stderr(args.log_json || config.log_json)?;
    let builder = builder(config, &args)?;
    let device = device::open_for(&args.device, config, &[Operation::Contract])?;
    let host = builder.device(device).progress(Bar::new()).open()?;
    if let Some(file) = &config.file {
        tracing::info!("settings: {}", file.display());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        // Signals are caught before anybody is told that the server is there.
        let (stop, hangup) = (shutdown()?, Hangup::new()?);
        let server = host.bind().await?;
        hangup.reload(server.reloader());
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

/// What `--memory` says.
fn memory(said: Option<&str>) -> anyhow::Result<MemoryLimit> {
    let Some(said) = said.filter(|said| *said != "auto") else { return Ok(MemoryLimit::Auto) };
    let bytes = blindcore_units::size(said).filter(|bytes| *bytes > 0);
    let bytes = bytes.with_context(|| {
        format!(
            "--memory {said:?} is not a size; say auto, or a number with B, KiB, MiB, GiB or TiB such as 8GiB"
        )
    })?;
    Ok(MemoryLimit::Set { bytes, by: "--memory" })
}

/// Mebibytes of the settings file, in bytes.
fn mib(what: &str, n: Option<usize>) -> anyhow::Result<Option<usize>> {
    let Some(n) = n else { return Ok(None) };
    let bytes = n.checked_mul(1 << 20);
    Ok(Some(bytes.with_context(|| format!("{what} is {n}, over what this machine has"))?))
}

/// What clients may take: flags over settings over defaults. The server checks the ranges.
fn limit(settings: &mut ServerConfig, args: &args::Serve, limits: &Limits) -> anyhow::Result<()> {
    fn set<T: Copy>(place: &mut T, values: [Option<T>; 2]) {
        if let Some(value) = values.into_iter().flatten().next() {
            *place = value;
        }
    }
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
    settings.memory_per_client = mib("memory_mib_per_client", limits.memory_mib_per_client)?;
    set(&mut settings.header_timeout, [None, seconds(limits.header_seconds)]);
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
        anyhow::anyhow!("--metrics {text:?} is neither a port nor an address; say 9100 or 127.0.0.1:9100")
    })
}

/// SIGHUP, caught from here on.
struct Hangup(#[cfg(unix)] tokio::signal::unix::Signal);

#[cfg(unix)]
impl Hangup {
    fn new() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self(signal(SignalKind::hangup())?))
    }

    /// Has the server's files read again at each, on a thread that may block.
    fn reload(mut self, reloader: Reloader) {
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
    fn new() -> anyhow::Result<Self> {
        Ok(Self())
    }

    fn reload(self, _: Reloader) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_a_size_or_auto() {
        let bytes = |text| match memory(Some(text)).unwrap() {
            MemoryLimit::Set { bytes, .. } => bytes,
            MemoryLimit::Auto => panic!("{text}"),
        };
        for (text, want) in [
            ("1", 1),
            ("17B", 17),
            ("3KiB", 3 << 10),
            ("512MiB", 512 << 20),
            ("8 GiB", 8 << 30),
            ("2TiB", 2 << 40),
        ] {
            assert_eq!(bytes(text), want, "{text}");
        }
        assert_eq!(
            (memory(None).unwrap(), memory(Some("auto")).unwrap()),
            (MemoryLimit::Auto, MemoryLimit::Auto)
        );
        for text in ["", "0", "8G", "GiB", "-1", "1.3B", "99999999999999999999", "18446744073709551615KiB"] {
            let error = memory(Some(text)).unwrap_err().to_string();
            assert!(error.contains("--memory") && error.contains("8GiB"), "{error}");
        }
    }
}
