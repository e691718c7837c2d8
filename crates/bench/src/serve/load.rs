//! Clients of the server that is measured, honest and hostile.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use blindcore_math::SecretRng;
use blindcore_wire::proto;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use prost::Message;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use super::server::Serving;
use crate::Samples;

/// No answer is longer.
const ANSWER_BYTES: usize = 64 << 20;
/// Between two deeds of one hostile connection that doesn't wait for answers.
const PACE: Duration = Duration::from_millis(500);
/// Connections of one hostile client.
const CONNECTIONS: usize = 8;
/// What hostile clients do, a tenth or so each; each does it on eight connections.
pub(super) const HOSTILE: [&str; 5] = [
    "stall: half a handshake, or half a request, and then nothing",
    "flood: requests of as many queries as the server takes, one after another",
    "hang up: a whole request, and away before its answer",
    "garbage: noise instead of a handshake, or after it",
    "read slowly: a hint asked for, and a byte of it read at times",
];

/// What everybody asks.
pub(super) struct Target {
    address: SocketAddr,
    metrics: SocketAddr,
    tls: TlsConnector,
    /// A request of one query, and one of as many as the server takes.
    pub(super) one: Bytes,
    many: Bytes,
    pub(super) gather: usize,
    pub(super) request_memory: u64,
}

impl Target {
    pub(super) async fn of(server: &Serving, dir: &Path) -> anyhow::Result<Self> {
        let mut client = (*blindcore_tls::client(Some(&dir.join("chain.pem")))?).clone();
        client.alpn_protocols = vec![b"http/1.1".to_vec()];
        let mut target = Self {
            address: server.address,
            metrics: server.metrics,
            tls: TlsConnector::from(Arc::new(client)),
            one: Bytes::new(),
            many: Bytes::new(),
            gather: blindcore_server::Config::default().gather,
            request_memory: blindcore_server::Config::default().memory_bytes as u64,
        };
        let mut sender = target.open(Ipv4Addr::LOCALHOST).await?;
        let (_, body) = ask(&mut sender, "GET", "/v1/tables/table", Bytes::new()).await?;
        let table: Value = serde_json::from_slice(&body)?;
        let part = &table["records"];
        let (bytes, most) = (part["query_bytes"].as_u64(), part["queries_per_request"].as_u64());
        let (bytes, most) = (bytes.context("its size")? as usize, most.context("its limit")? as usize);
        let digest = table["digest"].as_str().context("its digest")?;
        let digest = (0..digest.len() / 2).map(|i| u8::from_str_radix(&digest[2 * i..2 * i + 2], 16));
        let digest: Bytes = digest.collect::<Result<Vec<u8>, _>>()?.into();
        let mut rng = SecretRng::from_os()?;
        let mut request = |queries: usize| {
            let mut words = vec![0u32; queries * bytes / 4];
            rng.fill_u32(&mut words);
            let request = proto::QueryRequest {
                table: "table".into(),
                epoch: table["epoch"].as_u64().unwrap_or_default(),
                part: proto::PartKind::Records.into(),
                table_digest: digest.clone(),
                queries: bytemuck::cast_slice::<u32, u8>(&words).to_vec().into(),
                keys: Bytes::new(),
            };
            Bytes::from(request.encode_to_vec())
        };
        (target.one, target.many) = (request(1), request(most));
        Ok(target)
    }

    async fn connect(&self, from: Ipv4Addr) -> std::io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        let stream = socket.connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    async fn encrypted(&self, from: Ipv4Addr) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let name = ServerName::try_from("localhost").expect("is a name");
        self.tls.connect(name, self.connect(from).await?).await
    }

    pub(super) async fn open(&self, from: Ipv4Addr) -> anyhow::Result<SendRequest<Full<Bytes>>> {
        let stream = TokioIo::new(self.encrypted(from).await?);
        let (sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    /// Seconds in passes, and passes, up to now.
    async fn passes(&self) -> anyhow::Result<[f64; 2]> {
        let mut stream = TcpStream::connect(self.metrics).await?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        let value = |name: &str| {
            let line = text.lines().find(|l| l.starts_with(name));
            line.and_then(|l| l.rsplit_once(' ')).and_then(|(_, v)| v.parse().ok()).unwrap_or_default()
        };
        Ok([value("blindcore_pass_seconds_sum"), value("blindcore_pass_seconds_count")])
    }
}

pub(super) async fn ask(
    sender: &mut SendRequest<Full<Bytes>>,
    method: &str,
    path: &str,
    body: Bytes,
) -> anyhow::Result<(u16, Bytes)> {
    sender.ready().await?;
    let request = http::Request::builder().method(method).uri(path).header("host", "localhost");
    let response = sender.send_request(request.body(Full::new(body))?).await?;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), ANSWER_BYTES).collect().await;
    Ok((status, body.map_err(|e| anyhow::anyhow!("{e}"))?.to_bytes()))
}

/// What happened, in numbers.
#[derive(Default)]
pub(super) struct Counts {
    honest_answered: AtomicU64,
    honest_refused: AtomicU64,
    honest_broken: AtomicU64,
    hostile_deeds: AtomicU64,
    hostile_refused: AtomicU64,
}

impl Counts {
    fn all(&self) -> [(&'static str, &AtomicU64); 5] {
        [
            ("honest_answered", &self.honest_answered),
            ("honest_refused", &self.honest_refused),
            ("honest_broken", &self.honest_broken),
            ("hostile_deeds", &self.hostile_deeds),
            ("hostile_refused", &self.hostile_refused),
        ]
    }

    pub(super) fn json(&self) -> Value {
        self.all().iter().map(|(name, n)| (name.to_string(), json!(n.load(Ordering::Relaxed)))).collect()
    }

    pub(super) fn add(&self, other: &Self) {
        for ((_, mine), (_, more)) in self.all().iter().zip(other.all()) {
            mine.fetch_add(more.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

fn one(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// What came of one measurement.
pub(super) struct Phase {
    /// Seconds that honest clients waited, sorted.
    waits: Vec<f64>,
    /// Seconds of a pass, the median of many short spans.
    pub(super) pass: f64,
    pub(super) counts: Arc<Counts>,
}

impl Phase {
    pub(super) fn percentiles(&self) -> Option<[f64; 2]> {
        let at = |q: f64| {
            self.waits.get(((self.waits.len() as f64 * q) as usize).min(self.waits.len().wrapping_sub(1)))
        };
        Some([*at(0.5)?, *at(0.99)?])
    }
}

/// What clients of a measurement share.
struct Shared {
    target: Arc<Target>,
    /// Whether waits count yet: not while everybody comes at once.
    warm: AtomicBool,
    over: AtomicBool,
    waits: Mutex<Vec<f64>>,
    counts: Arc<Counts>,
}

pub(super) async fn phase(
    target: &Arc<Target>,
    honest: usize,
    hostile: usize,
    length: Duration,
) -> anyhow::Result<Phase> {
    let shared = Arc::new(Shared {
        target: target.clone(),
        warm: AtomicBool::new(false),
        over: AtomicBool::new(false),
        waits: Mutex::default(),
        counts: Arc::default(),
    });
    let address = |net: u8, i: usize| Ipv4Addr::new(127, net, (i / 250) as u8, (i % 250) as u8 + 1);
    let mut all = JoinSet::new();
    for i in 0..honest {
        all.spawn(be_honest(shared.clone(), address(1, i)));
    }
    for i in 0..hostile {
        for connection in 0..CONNECTIONS {
            let (shared, from, kind) = (shared.clone(), address(2, i), i % HOSTILE.len());
            all.spawn(async move {
                // Not all at once.
                sleep(PACE * connection as u32 / CONNECTIONS as u32).await;
                while !shared.over.load(Ordering::Relaxed) {
                    one(&shared.counts.hostile_deeds);
                    // Whatever the server did to it, it goes on.
                    let _ = be_hostile(&shared, from, kind, connection).await;
                    if kind != 1 {
                        sleep(PACE).await;
                    }
                }
            });
        }
    }
    sleep(length / 4).await;
    shared.warm.store(true, Ordering::Relaxed);
    let (mut pass, mut before) = (Samples::default(), target.passes().await?);
    let end = Instant::now() + length;
    while Instant::now() < end {
        sleep(Duration::from_millis(250).min(length / 8)).await;
        let now = target.passes().await?;
        if now[1] > before[1] {
            pass.0.push((now[0] - before[0]) / (now[1] - before[1]));
        }
        before = now;
    }
    shared.over.store(true, Ordering::Relaxed);
    // Clients that wait for an answer still get it, and count: the slowest matter most.
    let _ = timeout(Duration::from_secs(60), async { while all.join_next().await.is_some() {} }).await;
    all.shutdown().await;
    let mut waits = std::mem::take(&mut *shared.waits.lock().unwrap_or_else(PoisonError::into_inner));
    waits.sort_by(f64::total_cmp);
    anyhow::ensure!(!pass.is_empty(), "there was no pass; say more --seconds");
    Ok(Phase { waits, pass: pass.median(), counts: shared.counts.clone() })
}

/// One query after another, each timed.
async fn be_honest(shared: Arc<Shared>, from: Ipv4Addr) {
    let Shared { target, counts, .. } = &*shared;
    while !shared.over.load(Ordering::Relaxed) {
        let Ok(mut sender) = target.open(from).await else {
            one(&counts.honest_broken);
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        while !shared.over.load(Ordering::Relaxed) {
            let (counted, started) = (shared.warm.load(Ordering::Relaxed), Instant::now());
            match ask(&mut sender, "POST", "/v1/query", target.one.clone()).await {
                Ok((200, _)) => {
                    one(&counts.honest_answered);
                    if counted {
                        let wait = started.elapsed().as_secs_f64();
                        shared.waits.lock().unwrap_or_else(PoisonError::into_inner).push(wait);
                    }
                }
                Ok(_) => {
                    one(&counts.honest_refused);
                    sleep(Duration::from_millis(100)).await;
                }
                Err(_) => {
                    one(&counts.honest_broken);
                    break;
                }
            }
        }
    }
}

/// One deed of a hostile client, as [`HOSTILE`] says.
async fn be_hostile(shared: &Shared, from: Ipv4Addr, kind: usize, connection: usize) -> anyhow::Result<()> {
    let Shared { target, counts, over, .. } = shared;
    let mut buffer = [0; 64];
    let head =
        format!("POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", target.one.len());
    match kind {
        0 if connection.is_multiple_of(2) => {
            let mut stream = target.connect(from).await?;
            stream.write_all(b"\x16\x03\x01\x02\x00\x01\x00").await?;
            // Until it is shut out, or it is over.
            while !over.load(Ordering::Relaxed) {
                if let Ok(Ok(0) | Err(_)) = timeout(PACE, stream.read(&mut buffer)).await {
                    break;
                }
            }
        }
        0 => {
            let mut stream = target.encrypted(from).await?;
            stream.write_all(&[head.as_bytes(), &target.one[..target.one.len() / 2]].concat()).await?;
            while !over.load(Ordering::Relaxed) {
                if let Ok(Ok(0) | Err(_)) = timeout(PACE, stream.read(&mut buffer)).await {
                    break;
                }
            }
        }
        1 => {
            let mut sender = target.open(from).await?;
            while !over.load(Ordering::Relaxed) {
                let (status, _) = ask(&mut sender, "POST", "/v1/query", target.many.clone()).await?;
                one(&counts.hostile_deeds);
                if status != 200 {
                    one(&counts.hostile_refused);
                    sleep(PACE / 10).await;
                }
            }
        }
        2 => {
            let mut stream = target.encrypted(from).await?;
            stream.write_all(&[head.as_bytes(), &target.one].concat()).await?;
            stream.flush().await?;
        }
        3 => {
            let mut noise = vec![0u32; 512];
            SecretRng::from_os()?.fill_u32(&mut noise);
            let noise: &[u8] = bytemuck::cast_slice(&noise);
            if connection.is_multiple_of(2) {
                target.connect(from).await?.write_all(noise).await?;
            } else {
                target.encrypted(from).await?.write_all(noise).await?;
            }
        }
        _ => {
            let mut stream = target.encrypted(from).await?;
            let hint = b"GET /v1/tables/table/records/hint HTTP/1.1\r\nHost: localhost\r\n\r\n";
            stream.write_all(hint).await?;
            stream.flush().await?;
            while !over.load(Ordering::Relaxed) {
                if stream.read(&mut buffer[..1]).await? == 0 {
                    break;
                }
                sleep(PACE).await;
            }
        }
    }
    Ok(())
}
