//! What a server refuses, how it says so, and that it costs nobody else anything.

use std::time::{Duration, Instant};

use crate::common::{Made, Running, config, http, keyed, people, simple, unkeyed};
use blindcore_server::Config;
use blindcore_wire::proto::lookup_client::LookupClient;
use blindcore_wire::{PartKind, REASON_HEADER, Value, proto};
use bytes::Bytes;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config as Cases, TestRunner};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;

fn plain(name: &str) -> Made {
    let rows: Vec<Vec<Value>> =
        (0..100).map(|i| vec![Value::Int(i), Value::Text("some text".into())]).collect();
    unkeyed(name, 5, simple(), &rows)
}

fn request(made: &Made, queries: usize) -> proto::QueryRequest {
    let params = made.description.records().params;
    proto::QueryRequest {
        table: made.description.name().into(),
        epoch: made.description.epoch(),
        part: proto::PartKind::Records.into(),
        table_digest: Bytes::copy_from_slice(made.place().description().digest()),
        queries: vec![7; queries * params.query_bytes()].into(),
        keys: Bytes::new(),
    }
}

fn json(body: &[u8]) -> serde_json::Value {
    serde_json::from_slice(body).unwrap_or_else(|e| panic!("{e}: {:?}", String::from_utf8_lossy(body)))
}

/// Every refusal, over gRPC and over HTTP.
#[tokio::test]
async fn refusals_name_what_is_wrong_and_what_to_do() {
    let made = plain("plain");
    let server = Running::start(&[&made]).await;
    let mut grpc = LookupClient::connect(server.url()).await.unwrap().max_encoding_message_size(usize::MAX);
    type Change = Box<dyn Fn(&mut proto::QueryRequest)>;
    let change = |f: fn(&mut proto::QueryRequest)| Box::new(f) as Change;
    let size = made.description.records().params.query_bytes();
    let cases: Vec<(Change, Code, u16, &str, &str)> = vec![
        (change(|r| r.table = "other".into()), Code::NotFound, 404, "unknown-table", "other"),
        (change(|r| r.table = "a\nb".into()), Code::NotFound, 404, "unknown-table", "list the tables"),
        (
            change(|r| r.epoch = 4),
            Code::FailedPrecondition,
            409,
            "stale-epoch",
            "at epoch 5, the request is for epoch 4",
        ),
        (change(|r| r.part = 2), Code::NotFound, 404, "unknown-part", "no part keys"),
        (change(|r| r.part = 77), Code::NotFound, 404, "unknown-part", "changes, new-keys or batches"),
        (
            change(|r| r.table_digest = vec![0; 32].into()),
            Code::FailedPrecondition,
            409,
            "wrong-parameters",
            "open the table again",
        ),
        (
            change(|r| r.table_digest = Bytes::new()),
            Code::FailedPrecondition,
            409,
            "wrong-parameters",
            "plain",
        ),
        (change(|r| r.queries = Bytes::new()), Code::InvalidArgument, 400, "wrong-size", "0 B"),
        (
            Box::new(move |r| r.queries = vec![1; size + 1].into()),
            Code::InvalidArgument,
            400,
            "wrong-size",
            "not a whole number of queries",
        ),
        (
            Box::new(move |r| r.queries = vec![1; 65 * size].into()),
            Code::OutOfRange,
            413,
            "too-large",
            "limit of 64",
        ),
    ];
    for (change, code, status, reason, words) in &cases {
        let mut request = request(&made, 1);
        change(&mut request);
        let refused = grpc.query(request.clone()).await.unwrap_err();
        assert_eq!(refused.code(), *code, "{refused}");
        assert_eq!(refused.metadata().get(REASON_HEADER).unwrap(), reason);
        assert!(refused.message().contains(words), "{words}: {refused}");
        let (got, head, body) = http(server.address, "POST /v1/query", &request.encode_to_vec()).await;
        assert_eq!(got, *status, "{head}");
        assert_eq!(json(&body)["reason"], *reason);
        assert_eq!(json(&body)["error"], refused.message());
        assert!(head.contains(&format!("{REASON_HEADER}: {reason}")), "{head}");
    }
    assert_eq!(server.stats.totals().refused, 2 * cases.len() as u64);

    // Over the limit of any request: refused before it is read.
    let huge = request(&made, 1000).encode_to_vec();
    let (status, _, body) = http(server.address, "POST /v1/query", &huge).await;
    assert_eq!((status, &json(&body)["reason"]), (413, &"too-large".into()));
    let refused = grpc.query(request(&made, 1000)).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused}");
    let refused = grpc.get_table(proto::GetTableRequest { name: "x".repeat(65 << 20) }).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused}");
    let (status, _, body) = http(server.address, "POST /v1/query", b"\xff\xff\xff").await;
    assert_eq!((status, &json(&body)["reason"]), (400, &"malformed".into()));
    let part = server.stats.part("plain", PartKind::Records);
    assert_eq!((part.queries, part.passes), (0, 0), "nothing of it was computed");

    // And still it answers.
    assert!(grpc.query(request(&made, 64)).await.is_ok());
}

#[tokio::test]
async fn browsers_are_served() {
    let (people, plain) = (keyed("people", 3, simple(), 2, &people(60)), plain("plain"));
    let server = Running::start(&[&people, &plain]).await;
    let at = server.address;

    let (status, head, body) = http(at, "GET /v1/tables|Origin: http://page.example", b"").await;
    assert_eq!(status, 200);
    assert!(head.to_lowercase().contains("access-control-allow-origin: *"), "{head}");
    assert_eq!(
        json(&body)["tables"],
        serde_json::json!([
            {"name": "people", "epoch": 3, "rows": 60, "keyed": true},
            {"name": "plain", "epoch": 5, "rows": 100, "keyed": false},
        ])
    );
    let preflight = "OPTIONS /v1/query|Origin: http://page.example|Access-Control-Request-Method: POST|\
                     Access-Control-Request-Headers: content-type";
    let (status, head, _) = http(at, preflight, b"").await;
    assert!(status == 200 && head.to_lowercase().contains("access-control-allow-methods"), "{head}");

    let (_, _, body) = http(at, "GET /v1/tables/people", b"").await;
    let table = json(&body);
    assert_eq!(table["key_column"], "key");
    assert_eq!(table["records"]["hint_bytes"], people.hint_len());
    assert_eq!(table["records"]["queries_per_request"], 64);
    assert_eq!(table["salt"].as_str().unwrap().len(), 64);
    assert_eq!(table["keys"]["scheme"], "simple");
    assert!(json(&http(at, "GET /v1/tables/plain", b"").await.2)["keys"].is_null());
    assert_eq!(http(at, "GET /v1/tables/nobody", b"").await.0, 404);
    assert_eq!(http(at, "GET /", b"").await.0, 404);
    assert_eq!(http(at, "PUT /v1/query", b"x").await.0, 405);

    let hint = people.records.hint();
    let (status, head, body) = http(at, "GET /v1/tables/people/records/hint?epoch=3", b"").await;
    assert_eq!((status, body.len()), (200, hint.len()));
    assert!(body == hint && head.contains("cache-control: no-cache"), "{head}");
    let tag = head.lines().find_map(|l| l.strip_prefix("etag: ")).unwrap().to_owned();
    let ranged = |range: &str| format!("GET /v1/tables/people/records/hint|Range: bytes={range}");
    let (status, head, body) = http(at, &ranged("5000-"), b"").await;
    assert!(status == 206 && body == hint[5000..], "{head}");
    assert!(head.contains(&format!("content-range: bytes 5000-{}/{}", hint.len() - 1, hint.len())), "{head}");
    let (status, _, body) = http(at, &ranged("10-19"), b"").await;
    assert!(status == 206 && body == hint[10..20]);
    assert_eq!(http(at, &ranged("999999999-"), b"").await.0, 416);
    assert_eq!(http(at, &ranged("9-5"), b"").await.0, 200, "no range at all");
    assert_eq!(http(at, &format!("{}|If-Range: \"old\"", ranged("10-")), b"").await.0, 200);
    let cached = format!("GET /v1/tables/people/records/hint|If-None-Match: {tag}");
    assert_eq!(http(at, &cached, b"").await.0, 304);
    for (path, status) in [
        ("people/records/hint?epoch=2", 409),
        ("people/records/hint?epoch=x", 400),
        ("people/other/hint", 404),
        ("plain/keys/hint", 404),
        ("nobody/records/hint", 404),
    ] {
        assert_eq!(http(at, &format!("GET /v1/tables/{path}"), b"").await.0, status, "{path}");
    }

    // The same answer as over gRPC.
    let ask = request(&people, 3);
    let (status, _, body) = http(at, "POST /v1/query", &ask.encode_to_vec()).await;
    let answer = proto::QueryResponse::decode(&body[..]).unwrap();
    let mut grpc = LookupClient::connect(server.url()).await.unwrap();
    assert_eq!((status, &answer.answers), (200, &grpc.query(ask).await.unwrap().into_inner().answers));
    assert_eq!(http(at, "GET /livez", b"").await.0, 200);
    assert_eq!(http(at, "GET /readyz", b"").await.0, 200);
}

#[tokio::test]
async fn any_bytes_on_the_socket_hurt_nobody() {
    let made = plain("plain");
    let server = Running::start(&[&made]).await;
    let table = server.client().await.table("plain").await.unwrap();
    let mut runner = TestRunner::new(Cases::with_cases(60));
    let bytes = proptest::collection::vec(any::<u8>(), 0..2000);
    let mut sample = || bytes.new_tree(&mut runner).unwrap().current();
    for i in 0..60 {
        let noise = sample();
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        let before: &[u8] = match i % 4 {
            0 => b"",
            1 => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            2 => b"POST /v1/query HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
            _ => b"GET /v1/tables/",
        };
        let _ = socket.write_all(&[before, &noise].concat()).await;
        drop(socket);
        // As a message, too.
        let (status, ..) = http(server.address, "POST /v1/query", &noise).await;
        assert!((400..500).contains(&status), "{status}");
    }
    assert!(table.get_index(1).await.unwrap().found.is_some());
    assert_eq!(server.stats.part("plain", PartKind::Records).queries, 1);
}

/// Reads until the server closes, and says how long that took.
async fn until_closed(mut socket: TcpStream) -> (Duration, Vec<u8>) {
    let (started, mut seen) = (Instant::now(), Vec::new());
    let _ =
        tokio::time::timeout(Duration::from_secs(20), socket.read_to_end(&mut seen)).await.expect("closed");
    (started.elapsed(), seen)
}

#[tokio::test]
async fn who_stalls_is_shut_out_and_holds_nobody_up() {
    let made = plain("plain");
    let config = Config {
        connections: 7,
        header_timeout: Duration::from_secs(1),
        request_timeout: Duration::from_secs(2),
        idle_timeout: Duration::from_secs(3),
        ..config()
    };
    let server = Running::start_with(config, &[&made]).await;
    let table = server.client().await.table("plain").await.unwrap();
    let mut stalled = Vec::new();
    for said in [
        &b""[..],
        b"PRI",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /livez HT",
        b"POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc",
        b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
    ] {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        socket.write_all(said).await.unwrap();
        stalled.push(tokio::spawn(until_closed(socket)));
    }
    // All connections are taken. Earlier connections go on undisturbed; a new one gets a place in the end.
    assert!(table.get_index(3).await.unwrap().found.is_some());
    assert_eq!(http(server.address, "GET /livez", b"").await.0, 200);
    let mut answers = Vec::new();
    for task in stalled {
        answers.push(task.await.unwrap().1);
    }
    assert!(answers[4].starts_with(b"HTTP/1.1 408"), "{:?}", String::from_utf8_lossy(&answers[4]));
    assert!(answers[5].starts_with(b"HTTP/1.1 200"));
    assert!(server.stats.totals().stalled >= 2, "{:?}", server.stats.totals());
}

/// What has been asked for may take longer than a connection that stands still.
#[tokio::test]
async fn a_body_that_stands_still_is_cut_before_a_request_is_late() {
    let config = Config {
        idle_timeout: Duration::from_secs(1),
        request_timeout: Duration::from_secs(3600),
        ..config()
    };
    let server = Running::start_with(config, &[&plain("plain")]).await;
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let part = b"POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc";
    socket.write_all(part).await.unwrap();
    until_closed(socket).await;
    assert_eq!(server.stats.totals().stalled, 1);
}

#[tokio::test]
async fn requests_past_the_memory_are_told_to_come_again() {
    let rows: Vec<Vec<Value>> = (0..10_000).map(|i| vec![Value::Int(i)]).collect();
    let made = unkeyed("wide", 1, simple(), &rows);
    // What a hint on its way may take, and so the least that there must be.
    let memory_bytes = 512 << 10;
    let config = Config { memory_bytes, memory_per_client: Some(memory_bytes), ..config() };
    let server = Running::start_with(config.clone(), &[&made]).await;
    let body = request(&made, 64).encode_to_vec();

    // Requests that sent all but their last byte, until no other fits.
    let mut held = Vec::new();
    for _ in 0..memory_bytes / body.len() {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        let head = format!(
            "POST /v1/query HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        socket.write_all(&body[..body.len() - 1]).await.unwrap();
        held.push(socket);
    }
    // The server reads them when it gets to it.
    let refused = async {
        loop {
            let (status, _, answer) = http(server.address, "POST /v1/query", &body).await;
            if status != 200 {
                return (status, answer);
            }
        }
    };
    let (status, answer) = tokio::time::timeout(Duration::from_secs(20), refused).await.unwrap();
    assert_eq!((status, &json(&answer)["reason"]), (429, &"busy".into()));
    let mut grpc = LookupClient::connect(server.url()).await.unwrap();
    let status = grpc.query(request(&made, 64)).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert!(status.message().contains("ask again later"), "{status}");

    drop(held);
    let served = async { while grpc.query(request(&made, 64)).await.is_err() {} };
    tokio::time::timeout(Duration::from_secs(20), served).await.unwrap();

    let small = Config { memory_bytes: memory_bytes - 1, ..config };
    let error = blindcore_server::Server::bind(small, vec![made.place()]).await.err().unwrap();
    assert!(error.to_string().contains("memory for requests"), "{error}");
}

#[tokio::test]
async fn a_server_drains() {
    let made = plain("plain");
    let config = Config { drain_delay: Duration::from_secs(2), grace: Duration::from_secs(20), ..config() };
    let mut server = Running::start_with(config, &[&made]).await;
    let (at, body) = (server.address, request(&made, 2).encode_to_vec());
    let table = server.client().await.table("plain").await.unwrap();
    let mut slow = TcpStream::connect(at).await.unwrap();
    let head = format!("POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
    slow.write_all(&[head.as_bytes(), &body[..10]].concat()).await.unwrap();
    // So that the server has surely seen the slow one, which came before.
    assert_eq!(http(at, "GET /readyz", b"").await.0, 200);

    server.begin_stop();
    let told = async { while http(at, "GET /readyz", b"").await.0 != 503 {} };
    tokio::time::timeout(Duration::from_secs(20), told).await.expect("not ready");
    assert_eq!(http(at, "GET /livez", b"").await.0, 200, "alive all the same");
    assert!(table.get_index(1).await.unwrap().found.is_some(), "and serving");
    let closed = async { while TcpStream::connect(at).await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(20), closed).await.expect("refuses connections");

    // The request that was under way is answered.
    slow.write_all(&body[10..]).await.unwrap();
    let (_, answer) = until_closed(slow).await;
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{:?}", String::from_utf8_lossy(&answer));
    assert_eq!(server.stop().await, 0);
}

#[tokio::test]
async fn who_does_not_finish_is_cut() {
    let config = Config { grace: Duration::from_millis(300), ..config() };
    let server = Running::start_with(config, &[&plain("plain")]).await;
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(b"POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n").await.unwrap();
    assert_eq!(http(server.address, "GET /livez", b"").await.0, 200);
    assert_eq!(server.stop().await, 1);
    assert!(until_closed(slow).await.1.is_empty());
}

#[tokio::test]
async fn tables_and_settings_are_checked_before_anything_starts() {
    let made = plain("plain");
    let bind = async |config, tables| {
        blindcore_server::Server::bind(config, tables).await.err().unwrap().to_string()
    };
    let error = bind(config(), vec![made.place(), made.place()]).await;
    assert!(error.contains("two tables are called plain"), "{error}");
    for (config, what) in [
        (Config { gather: 0, ..config() }, "gather is 0"),
        (Config { gather: 65, ..config() }, "gather is 65"),
        (Config { waiting_queries: 63, ..config() }, "waiting_queries is 63"),
        (Config { connections: 0, ..config() }, "connections is 0"),
    ] {
        let error = bind(config, vec![made.place()]).await;
        assert!(error.contains(what), "{error}");
    }
    let taken = Running::start(&[&made]).await;
    let error = bind(Config { listen: taken.address, ..config() }, vec![made.place()]).await;
    assert!(error.contains("can't listen on 127.0.0.1"), "{error}");
}
