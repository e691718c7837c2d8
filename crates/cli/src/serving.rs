//! What the command's servers share: an address, a log, an end.

use std::net::{SocketAddr, ToSocketAddrs};

use anyhow::Context;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

pub(crate) fn address(text: &str) -> anyhow::Result<SocketAddr> {
    let remedy = "give an address and a port, such as 127.0.0.1:7700";
    text.to_socket_addrs()
        .map_err(|e| anyhow::anyhow!("--listen {text:?} is not an address: {e}; {remedy}"))?
        .next()
        .with_context(|| format!("--listen {text:?} names no address; {remedy}"))
}

/// What `BLINDCORE_LOG` asks for: levels, of all or of a part. A name alone would be read as a part's and log nothing else.
fn filter() -> anyhow::Result<EnvFilter> {
    let said = blindcore_units::variable("BLINDCORE_LOG").unwrap_or("info".into());
    let fits = |part: &str| part.contains('=') || part.trim().parse::<LevelFilter>().is_ok();
    let filter =
        said.to_str().filter(|said| said.split(',').all(fits)).and_then(|said| EnvFilter::try_new(said).ok());
    filter.with_context(|| {
        format!(
            "BLINDCORE_LOG {said:?} is not a filter; say error, warn, info, debug or trace, or PART=LEVEL,..."
        )
    })
}

pub(crate) fn log_to_stderr(json: bool) -> anyhow::Result<()> {
    let filter = filter()?;
    // The server stays if the reader of its log goes away.
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    if json {
        builder.json().init();
    } else {
        builder.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).with_target(false).init();
    }
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
