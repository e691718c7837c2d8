//! What the command's servers share: an address, a log, an end.

use std::net::{SocketAddr, ToSocketAddrs};

use anyhow::Context;

pub(crate) fn address(text: &str) -> anyhow::Result<SocketAddr> {
    let remedy = "give an address and a port, such as 127.0.0.1:7700";
    text.to_socket_addrs()
        .map_err(|e| anyhow::anyhow!("--listen {text:?} is not an address: {e}; {remedy}"))?
        .next()
        .with_context(|| format!("--listen {text:?} names no address; {remedy}"))
}

pub(crate) fn log_to_stderr(json: bool) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("BLINDCORE_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
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
