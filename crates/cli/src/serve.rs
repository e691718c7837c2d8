//! `blindcore serve`: a host of folders, from flags and settings, until a signal.

use std::net::SocketAddr;
use std::time::Duration;

use blindcore_accel::Operation;
use blindcore_server::{Config as ServerConfig, Host, HostBuilder, KeysConfig, MemoryLimit};

use crate::config::Config;
use crate::output::Bar;
use crate::serving::{Hangup, address, front, log_filter, mib, shutdown};
use crate::{Outcome, args, device};

/// Where a server listens unless told otherwise.
const DEFAULT_LISTEN: &str = "127.0.0.1:7700";

/// Whether a server would start with the settings and the environment, whatever its tables.
pub(crate) fn check(config: &Config) -> anyhow::Result<()> {
    match args::parse_from(["blindcore", "serve", "."]).1.map(|args| args.command) {
        Ok(args::Command::Serve(args)) => log_filter().and(Ok(builder(config, &args)?.check()?)),
        Ok(_) => unreachable!("it is serve that was parsed"),
        Err(wrong) => Err(args::refused(&wrong).into()),
    }
}

fn builder(config: &Config, args: &args::Serve) -> anyhow::Result<HostBuilder> {
    let listen = config.listen(args.listen.as_deref())?.unwrap_or(DEFAULT_LISTEN);
    let mut settings = ServerConfig { listen: address(listen, 7700)?, ..ServerConfig::default() };
    let files = front(&mut settings, &args.front, config)?;
    settings.queries_per_minute = args.queries_per_minute.or(settings.queries_per_minute);
    keys(&mut settings.keys, args, config)?;
    let metrics = config.metrics(args.metrics.as_deref())?;
    settings.metrics = metrics.map(metrics_address).transpose()?;
    settings.gather = args.gather.or(config.gather).unwrap_or(settings.gather);
    let memory = MemoryLimit::parse("--memory", args.memory.as_deref().or(config.memory.as_deref()))
        .map_err(anyhow::Error::msg)?;
    let builder = Host::builder().config(settings).memory(memory).streamed(args.streamed);
    let mut builder = builder.access_files(files);
    if let Some(bytes) = mib("request_memory_mib", config.limits.request_memory_mib)? {
        builder = builder.request_memory(bytes);
    }
    if let Some(seconds) = config.limits.request_seconds {
        builder = builder.request_timeout(Duration::from_secs(seconds));
    }
    Ok(args.dirs.iter().fold(builder, |builder, dir| builder.table_dir(dir)))
}

pub(crate) fn run(config: &Config, args: args::Serve) -> anyhow::Result<Outcome> {
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
        server.run(stop).await;
        for (table, part, s) in stats.parts().filter(|(_, _, s)| s.requests > 0) {
            let mean_ms = s.pass_micros as f64 / 1e3 / s.passes.max(1) as f64;
            tracing::info!(
                table, part = %part, requests = s.requests, queries = s.queries, passes = s.passes,
                mean_pass_ms = mean_ms, most_gathered = s.most_gathered, "served"
            );
        }
        Ok(Outcome::Done)
    })
}

/// What is kept of registered keys: flags over settings over defaults. The server checks the ranges.
fn keys(keys: &mut KeysConfig, args: &args::Serve, config: &Config) -> anyhow::Result<()> {
    let limits = &config.limits;
    keys.folder = config.keys_dir(args.keys_dir.as_deref())?.map(Into::into);
    if let Some(said) = args.keys_expire.as_deref().or(config.keys_expire.as_deref()) {
        let seconds = blindcore_units::option::seconds("--keys-expire", said).map_err(anyhow::Error::msg)?;
        keys.expire = Duration::from_secs_f64(seconds);
    }
    let bytes = |mib: Option<u64>| mib.map(|n| n.saturating_mul(1 << 20));
    keys.bytes = bytes(limits.keys_mib).unwrap_or(keys.bytes);
    keys.bytes_per_client = bytes(limits.keys_mib_per_client);
    keys.count = limits.keys_count.unwrap_or(keys.count);
    keys.count_per_client = limits.keys_count_per_client;
    keys.memory_bytes = mib("keys_memory_mib", limits.keys_memory_mib)?.unwrap_or(keys.memory_bytes);
    keys.per_minute = limits.registrations_per_minute.or(keys.per_minute);
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
