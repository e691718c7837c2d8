//! Small tables, servers that run until a test ends, and servers that lie.

pub(crate) mod authority;
pub(crate) mod fake;

use std::net::SocketAddr;
use std::path::Path;

use blindcore_client::{CacheDir, Client, Options};
use blindcore_server::{Config, Handle, Part, Server, Stats, Table};
use blindcore_wire::{PartKind, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) use self::made::*;

/// The tables of the protocol's own tests.
#[path = "../../../../protocol/tests/protocol/made.rs"]
mod made;

impl Made {
    pub(crate) fn place(&self) -> Table {
        self.place_parts(&PartKind::ALL)
    }

    /// The table with these parts alone: what is published over an epoch before.
    pub(crate) fn place_parts(&self, kinds: &[PartKind]) -> Table {
        let place = |part: &MadePart| Part::new(part.server(), part.hint.clone());
        let parts = kinds.iter().filter_map(|kind| Some((*kind, place(self.part(*kind)?))));
        Table::new(self.description.clone(), parts).unwrap()
    }
}

/// A server that drains when it is dropped or asked.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) stats: Stats,
    pub(crate) handle: Handle,
    pub(crate) metrics: Option<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    done: JoinHandle<usize>,
}

impl Running {
    pub(crate) async fn start(tables: &[&Made]) -> Self {
        Self::start_with(config(), tables).await
    }

    pub(crate) async fn start_with(config: Config, tables: &[&Made]) -> Self {
        let server = Server::bind(config, tables.iter().map(|t| t.place()).collect()).await.unwrap();
        let (address, stats, handle) = (server.address(), server.stats(), server.handle());
        let metrics = server.metrics_address();
        let (stop, stopped) = oneshot::channel::<()>();
        let done = tokio::spawn(server.run(async move {
            let _ = stopped.await;
        }));
        Self { address, stats, handle, metrics, stop: Some(stop), done }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) async fn client(&self) -> Client {
        client_of(&self.url(), CacheDir::None).await
    }

    pub(crate) fn begin_stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    /// How many connections had to be cut.
    pub(crate) async fn stop(mut self) -> usize {
        if self.stop.is_some() {
            self.begin_stop();
        }
        self.done.await.unwrap()
    }
}

pub(crate) fn config() -> Config {
    Config { listen: ([127, 0, 0, 1], 0).into(), ..Config::default() }
}

pub(crate) async fn client_of(url: &str, cache: CacheDir) -> Client {
    Client::connect_with(url, Options { cache, ..Options::default() }).await.unwrap()
}

pub(crate) fn cache(path: &Path) -> CacheDir {
    CacheDir::At(path.to_owned())
}

/// Waits until it is so, which a server comes to when it gets to it.
pub(crate) async fn until(so: impl Fn() -> bool) {
    let waiting = async {
        while !so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), waiting).await.expect("it comes to be so");
}

/// An HTTP/1.1 request, spoken by hand, such as `GET /livez|Accept: x`: status, head, body.
pub(crate) async fn http(address: SocketAddr, head: &str, body: &[u8]) -> (u16, String, Vec<u8>) {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let (line, more) = head.split_once('|').unwrap_or((head, ""));
    let more = if more.is_empty() { String::new() } else { format!("{}\r\n", more.replace('|', "\r\n")) };
    let head = format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{more}{length}\r\n");
    // The server may answer and close before it has read everything.
    let _ = socket.write_all(head.as_bytes()).await;
    let _ = socket.write_all(body).await;
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer).await;
    let at = answer.windows(4).position(|w| w == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8(answer[..at].to_vec()).unwrap();
    let status = head[9..12].parse().unwrap();
    (status, head, answer[at..].to_vec())
}

/// The first value of what a lookup found.
pub(crate) fn first(lookup: &blindcore_client::Lookup) -> Option<Value> {
    lookup.found.as_ref().map(|record| record.values[0].1.clone())
}

pub(crate) fn text(text: &str) -> Option<Value> {
    Some(Value::Text(text.into()))
}
