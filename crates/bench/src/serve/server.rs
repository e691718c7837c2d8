//! The server that is measured: a process of its own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::Context;

/// The server, ended with its value.
pub(super) struct Serving {
    child: Child,
    pub(super) address: SocketAddr,
    pub(super) metrics: SocketAddr,
    /// Closed once a copy that was not there at the start is.
    copied: Option<Receiver<()>>,
}

impl Serving {
    pub(super) fn start(program: &Path, dir: &Path) -> anyhow::Result<Self> {
        let (certificate, key) = blindcore_circuit::transport::new_identity("localhost")?;
        std::fs::write(dir.join("chain.pem"), certificate)?;
        std::fs::write(dir.join("key.pem"), &*key)?;
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("BLINDCORE_") {
                command.env_remove(name);
            }
        }
        command
            .current_dir(dir)
            .args(["serve", "table.db", "--listen", "127.0.0.1:0", "--metrics", "0"])
            .args(["--tls-cert", "chain.pem", "--tls-key", "key.pem"])
            .env("BLINDCORE_LOG", "warn,blindcore_server::host=info,blindcore_server::serve=info")
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
        // It goes on to log, and must not come to wait for a reader.
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
    pub(super) fn settle(&self) -> anyhow::Result<()> {
        const LONGEST: Duration = Duration::from_secs(600);
        let waited = self.copied.as_ref().map(|copied| copied.recv_timeout(LONGEST));
        anyhow::ensure!(
            waited != Some(Err(RecvTimeoutError::Timeout)),
            "the server copies its table for too long"
        );
        Ok(())
    }

    /// A line of what the system says of its memory, in bytes.
    pub(super) fn memory(&self, what: &str) -> anyhow::Result<u64> {
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
