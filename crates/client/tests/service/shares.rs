//! What one client may take, that the others get theirs, and that the counters say so.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{Made, Running, config, http, people, unkeyed, until};
use blindcore_client::{CacheDir, Client, Error, LookupError, Options, Reason, Token};
use blindcore_server::{Config, Tokens};
use blindcore_wire::{PartKind, Value, proto};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

fn made() -> Made {
    crate::common::keyed("people", 1, crate::common::simple(), 1, &people(40))
}

async fn client(server: &Running, token: &str) -> Client {
    let options =
        Options { cache: CacheDir::None, token: Some(Token::new(token).unwrap()), ..Options::default() };
    Client::connect_with(&server.url(), options).await.unwrap()
}

/// A connection from another address of this machine.
async fn connect_from(last: u8, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, last], 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

/// A request on such a connection, until the server closes.
async fn ask_from(last: u8, to: SocketAddr, head: &str, body: &[u8]) -> String {
    let mut socket = connect_from(last, to).await;
    let head =
        format!("{head} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    let _ = socket.write_all(&[head.as_bytes(), body].concat()).await;
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn too_many(error: &Error, words: &str) {
    match error {
        Error::Lookup(LookupError::Refused { reason: Some(Reason::TooMany), message, .. }) => {
            assert!(message.contains(words), "{message}")
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_token_has_so_many_queries_a_minute() {
    let lines = [Tokens::line("ada", "one").unwrap(), Tokens::line("bob", "two").unwrap()].join("\n");
    let tokens = Some(Arc::new(Tokens::parse(&lines).unwrap()));
    let config = Config { tokens, queries_per_minute: Some(10), ..config() };
    let server = Running::start_with(config, &[&made()]).await;
    // Two connections of one are one client.
    let ada = [client(&server, "one").await, client(&server, "one").await];
    let tables = [ada[0].table("people").await.unwrap(), ada[1].table("people").await.unwrap()];
    let mut answered = 0;
    let refused = loop {
        match tables[answered % 2].get("key-1").await {
            Ok(lookup) => assert!(lookup.found.is_some()),
            Err(error) => break error,
        }
        answered += 1;
    };
    too_many(&refused, "its 10 queries a minute");
    assert!(answered >= 10, "{answered}");
    assert_eq!(server.stats.part("people", PartKind::Records).queries, answered as u64);
    let bob = client(&server, "two").await.table("people").await.unwrap();
    assert!(bob.get("key-1").await.unwrap().found.is_some(), "others have their own");
}

#[tokio::test]
async fn an_address_has_its_share_of_hints() {
    let config = Config { hint_bytes_per_minute: Some(100), ..config() };
    let server = Running::start_with(config, &[&made()]).await;
    let hint = "GET /v1/tables/people/records/hint";
    assert_eq!(http(server.address, hint, b"").await.2.len() as u64, made().hint_len());
    // What was too much is paid off first.
    let (status, head, body) = http(server.address, hint, b"").await;
    assert_eq!(status, 429);
    let seconds: u64 = head.lines().find_map(|l| l.strip_prefix("retry-after: ")).unwrap().parse().unwrap();
    assert!(seconds > 60, "{head}");
    assert!(String::from_utf8(body).unwrap().contains("too-many"));
    assert!(ask_from(2, server.address, hint, b"").await.starts_with("HTTP/1.1 200"));
    let refused = server.client().await.table("people").await.err().unwrap();
    too_many(&refused, "100 bytes of hints a minute");
}

#[tokio::test]
async fn who_holds_memory_holds_its_own() {
    let rows: Vec<Vec<Value>> = (0..10_000).map(|i| vec![Value::Int(i)]).collect();
    let made = unkeyed("wide", 1, crate::common::simple(), &rows);
    let config = Config { memory_bytes: 2 << 20, memory_per_client: Some(512 << 10), ..config() };
    let server = Running::start_with(config, &[&made]).await;
    let at = server.address;
    let query = proto::QueryRequest {
        table: "wide".into(),
        epoch: 1,
        part: proto::PartKind::Records.into(),
        table_digest: made.description.digest().to_vec().into(),
        queries: vec![7; 64 * made.description.records().params.query_bytes()].into(),
        keys: Default::default(),
    };
    let body = query.encode_to_vec();
    // Requests of one client that lack their last byte, until no other of it fits.
    let head = format!("POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut held = Vec::new();
    for _ in 0..(516 << 10) / body.len() {
        let mut socket = connect_from(2, at).await;
        socket.write_all(&[head.as_bytes(), &body[..body.len() - 1]].concat()).await.unwrap();
        held.push(socket);
    }
    let refused = async {
        loop {
            let answer = ask_from(2, at, "POST /v1/query", &body).await;
            if !answer.starts_with("HTTP/1.1 200") {
                return answer;
            }
        }
    };
    let answer = tokio::time::timeout(std::time::Duration::from_secs(20), refused).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 429") && answer.contains("too-many"), "{answer}");
    // A hint and the request for it have a place in the smallest share.
    assert!(answer.contains("limit of 528384 B a client"), "{answer}");
    for other in 3..10 {
        assert!(ask_from(other, at, "POST /v1/query", &body).await.starts_with("HTTP/1.1 200"));
    }
    // Where it isn't said, the largest request fits at least.
    let small = Config { memory_bytes: (3 * body.len()).max(512 << 10), ..crate::common::config() };
    let small = Running::start_with(small, &[&made]).await;
    assert!(ask_from(2, small.address, "POST /v1/query", &body).await.starts_with("HTTP/1.1 200"));

    drop(held);
    let served =
        async { while !ask_from(2, at, "POST /v1/query", &body).await.starts_with("HTTP/1.1 200") {} };
    tokio::time::timeout(std::time::Duration::from_secs(20), served).await.expect("it gets its memory back");
}

#[tokio::test]
async fn whoever_has_most_connections_gives_way() {
    let config = Config { connections: 4, connections_per_client: 3, ..config() };
    let server = Running::start_with(config, &[&made()]).await;
    let at = server.address;
    let mut greedy = Vec::new();
    for _ in 0..3 {
        greedy.push(connect_from(2, at).await);
    }
    until(|| server.stats.totals().connections == 3).await;
    // One more than an address may have takes the place of its own that was quiet longest.
    let next = connect_from(2, at).await;
    assert_eq!(greedy.remove(0).read_to_end(&mut Vec::new()).await.unwrap_or(0), 0);
    greedy.push(next);
    let other = connect_from(3, at).await;
    until(|| server.stats.totals().connections == 5).await;
    assert!(ask_from(4, at, "GET /livez", b"").await.starts_with("HTTP/1.1 200"));
    assert_eq!((server.stats.totals().cut, server.stats.totals().not_taken), (2, 0));
    // It was the greedy one that gave way.
    let mut closed = 0;
    for socket in &mut greedy {
        let wait = std::time::Duration::from_millis(200);
        closed += usize::from(tokio::time::timeout(wait, socket.read(&mut [0])).await.is_ok());
    }
    assert_eq!(closed, 1);
    drop((greedy, other));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_floods_keeps_nobody_from_being_answered() {
    let rows: Vec<Vec<Value>> = (0..20_000).map(|i| vec![Value::Text(format!("{i:060}"))]).collect();
    let made = unkeyed("wide", 1, crate::common::simple(), &rows);
    // A query a pass, so that a queue builds up.
    let config = Config { gather: 1, waiting_queries: 128, waiting_per_client: 96, ..config() };
    let server = Running::start_with(config, &[&made]).await;
    let at = server.address;
    let params = made.description.records().params;
    let query = |n: usize| proto::QueryRequest {
        table: "wide".into(),
        epoch: 1,
        part: proto::PartKind::Records.into(),
        table_digest: made.description.digest().to_vec().into(),
        queries: vec![7; n * params.query_bytes()].into(),
        keys: Default::default(),
    };
    let (flood, one) = (Arc::new(query(32).encode_to_vec()), Arc::new(query(1).encode_to_vec()));
    let (done, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut flooding = Vec::new();
    for i in 0..24 {
        let (flood, done, refused) = (flood.clone(), done.clone(), refused.clone());
        flooding.push(tokio::spawn(async move {
            while done.load(Ordering::Relaxed) == 0 {
                let answer = ask_from(2 + i % 3, at, "POST /v1/query", &flood).await;
                refused.fetch_add(answer.starts_with("HTTP/1.1 429").into(), Ordering::Relaxed);
            }
        }));
    }
    until(|| refused.load(Ordering::Relaxed) > 20).await;
    for i in 0..60 {
        let answer = ask_from(10 + i % 20, at, "POST /v1/query", &one).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{i}: {}", &answer[..answer.len().min(400)]);
    }
    done.store(1, Ordering::Relaxed);
    for task in flooding {
        task.await.unwrap();
    }
    assert_eq!(server.stop().await, 0);
}

/// Metrics by name and labels.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let (mut all, mut helped) = (BTreeMap::new(), Vec::new());
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            helped.push(help.split(' ').next().unwrap().to_owned());
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        let base = name.split('{').next().unwrap();
        assert!(helped.last().is_some_and(|h| base.starts_with(h.as_str())), "{line} after {helped:?}");
        assert!(all.insert(name.to_owned(), value.parse().unwrap()).is_none(), "{name} twice");
    }
    assert!(text.ends_with("# EOF\n"));
    all
}

#[tokio::test]
async fn metrics_parse_and_add_up() {
    let (people, plain) = (made(), unkeyed("plain", 7, crate::common::simple(), &[vec![Value::Int(5)]]));
    let config = Config { metrics: Some(([127, 0, 0, 1], 0).into()), ..config() };
    let server = Running::start_with(config, &[&people, &plain]).await;
    let table = server.client().await.table("people").await.unwrap();
    for i in 0..7 {
        table.get(&format!("key-{i}")).await.unwrap();
    }
    table.get_many(&["key-1", "key-2", "nobody"]).await.unwrap();
    for _ in 0..3 {
        assert_eq!(http(server.address, "GET /v1/tables/nobody", b"").await.0, 404);
    }
    server.handle.reloaded(true);
    server.handle.reloaded(false);
    let at = server.metrics.unwrap();
    assert_eq!(http(server.address, "GET /metrics", b"").await.0, 404, "on a port of its own");
    assert_eq!(http(at, "GET /v1/tables", b"").await.0, 404);
    assert_eq!(http(at, "POST /metrics", b"x").await.0, 405);
    let (status, head, body) = http(at, "GET /metrics", b"").await;
    assert!(status == 200 && head.contains("application/openmetrics-text"), "{head}");
    let all = parse(std::str::from_utf8(&body).unwrap());
    let value = |name: &str| *all.get(name).unwrap_or_else(|| panic!("{name} in {all:#?}"));
    let of =
        |name: &str, labels: &str| value(&format!("{name}{{table=\"people\",part=\"records\"{labels}}}"));

    let stats = server.stats.part("people", PartKind::Records);
    assert_eq!(of("blindcore_queries_total", ""), 10.0);
    assert_eq!(of("blindcore_requests_total", ""), stats.requests as f64);
    assert_eq!(of("blindcore_query_bytes_total", ""), stats.bytes_in as f64);
    assert_eq!(of("blindcore_answer_bytes_total", ""), stats.bytes_out as f64);
    assert_eq!(of("blindcore_hint_bytes_total", ""), people.hint_len() as f64);
    assert_eq!(of("blindcore_queries_waiting", ""), 0.0);
    assert_eq!(of("blindcore_pass_seconds_count", ""), stats.passes as f64);
    assert!((of("blindcore_pass_seconds_sum", "") - stats.pass_micros as f64 / 1e6).abs() < 1e-9);
    assert_eq!(of("blindcore_pass_queries_sum", ""), 10.0);
    assert_eq!(of("blindcore_queue_wait_seconds_count", ""), stats.requests as f64);
    for name in ["blindcore_pass_seconds", "blindcore_queue_wait_seconds", "blindcore_pass_queries"] {
        let ours = |n: &str| n.contains("table=\"people\"") && n.contains("part=\"records\"");
        let bound = |n: &str| {
            let (_, rest) = n.split_once("le=\"").unwrap();
            rest.split('"').next().unwrap().replace("+Inf", "inf").parse::<f64>().unwrap()
        };
        let bucket = format!("{name}_bucket{{");
        let mut buckets: Vec<(f64, f64)> = all
            .iter()
            .filter(|(n, _)| n.starts_with(&bucket) && ours(n))
            .map(|(n, v)| (bound(n), *v))
            .collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(buckets.len() == 17 && buckets.is_sorted_by(|a, b| a.1 <= b.1), "{buckets:?}");
        assert_eq!(buckets[16].1, of(&format!("{name}_count"), ""));
    }
    assert_eq!(value("blindcore_refusals_total{reason=\"unknown-table\"}"), 3.0);
    let refusals: f64 =
        all.iter().filter(|(n, _)| n.starts_with("blindcore_refusals_total")).map(|(_, v)| v).sum();
    assert_eq!(refusals, server.stats.totals().refused as f64);
    assert_eq!(value("blindcore_table_epoch{table=\"plain\"}"), 7.0);
    assert_eq!(value("blindcore_table_rows{table=\"people\"}"), 40.0);
    assert_eq!(value("blindcore_queries_total{table=\"plain\",part=\"records\"}"), 0.0);
    assert!(!all.keys().any(|n| n.contains("plain") && n.contains("keys")), "it has no keys");
    assert_eq!((value("blindcore_ready"), value("blindcore_reloads_total")), (1.0, 1.0));
    assert_eq!(value("blindcore_reloads_failed_total"), 1.0);
    assert!(value("blindcore_connections_open") >= 1.0 && value("blindcore_clients") == 1.0);
    assert_eq!(value("blindcore_request_memory_limit_bytes"), (1u64 << 30) as f64);
    let version = format!("blindcore_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    assert_eq!(value(&version), 1.0);
}
