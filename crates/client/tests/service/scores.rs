//! The scoring service behind the same front as lookups: TLS, tokens, shares, turns, an end; and those who abuse it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use blindcore_accel::Device;
use blindcore_accel_cpu::Cpu;
use blindcore_client::{Options, ScoreClient, Token};
use blindcore_server::sum::{Model, SumConfig, SumServer};
use blindcore_server::{Config, Tokens};
use blindcore_sum::ciphertexts::Ciphertexts;
use blindcore_sum::encoding::{Encoding, Form, Plaintexts};
use blindcore_sum::evaluate::{Evaluator, Weights};
use blindcore_sum::file;
use blindcore_sum::keys::{KeySize, Mode, SecretKey};
use blindcore_sum::packing::{Packed, Packing};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::common::authority::Authority;

fn device() -> Device {
    Cpu::with_threads("cpu", 1).unwrap()
}

fn config() -> SumConfig {
    let server = Config { listen: ([127, 0, 0, 1], 0).into(), ..SumConfig::default().server };
    SumConfig { server, insecure_test_keys: true, ..SumConfig::default() }
}

/// A service with one model, three times a number; its address, and how it is ended.
struct Service {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    done: JoinHandle<usize>,
}

impl Service {
    async fn start(config: SumConfig) -> Self {
        let models = vec![Model { name: "thrice".into(), weights: Weights::integers(&[3]), bias: None }];
        let server = SumServer::bind(config, device(), models).await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel::<()>();
        let done = tokio::spawn(server.run(async move {
            let _ = stopped.await;
        }));
        Self { address, stop, done }
    }

    async fn stop(self) -> usize {
        self.stop.send(()).unwrap();
        self.done.await.unwrap()
    }
}

/// A key that is for tests, and rows of one number under it.
struct Rows {
    evaluator: Evaluator,
    rows: Ciphertexts,
}

impl Rows {
    fn new(count: usize) -> Self {
        let key = SecretKey::generate(KeySize::test_only(512).unwrap(), Mode::ShortExponent).unwrap();
        let evaluator = Evaluator::new(key.public(), &device()).unwrap();
        let numbers: Vec<i64> = (0..count as i64).map(|n| n % 100).collect();
        let plaintexts =
            Plaintexts::integers(key.public(), numbers.as_slice(), Encoding::integers(8).unwrap()).unwrap();
        let rows = Ciphertexts::encrypt(evaluator.encryptor(), &plaintexts).unwrap();
        Self { evaluator, rows: rows.reshape(&[count, 1]).unwrap() }
    }

    fn request(&self) -> Vec<u8> {
        let encryptor = self.evaluator.encryptor();
        let file = file::write(Vec::new(), &self.rows, encryptor).unwrap();
        let body = blindcore_wire::score::encode(&encryptor.public().to_bytes(), &file);
        let head = format!(
            "POST /v1/models/thrice/score HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        [head.as_bytes(), &body].concat()
    }
}

async fn connect_from(last: u8, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, last], 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

/// What is answered to these bytes, until the server closes.
async fn say(last: u8, to: SocketAddr, request: &[u8]) -> String {
    let mut socket = connect_from(last, to).await;
    // It may refuse before it has read all.
    let _ = socket.write_all(request).await;
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

const LIVEZ: &[u8] = b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn tls_and_tokens_are_those_of_lookups() {
    let authority = Authority::new();
    let tokens = Tokens::parse(&Tokens::line("ada", "one").unwrap()).unwrap();
    let mut config = config();
    config.server.tls = Some(authority.server("localhost"));
    config.server.tokens = Some(Arc::new(tokens));
    let service = Service::start(config).await;
    let url = format!("https://localhost:{}", service.address.port());
    let rows = Rows::new(3);
    let ask = async |ca: bool, token: Option<&str>| {
        let token = token.map(|t| Token::new(t).unwrap());
        let options = Options { ca: ca.then(|| authority.file()), token, ..Options::default() };
        let asked = ScoreClient::new(&url, options).unwrap();
        asked.score("thrice", &rows.rows, rows.evaluator.encryptor()).await.map_err(|e| e.to_string())
    };
    assert_eq!(ask(true, Some("one")).await.unwrap().scores.shape(), [3]);
    for (ca, token, words) in [
        (true, None, "401"),
        (true, Some("two"), "401"),
        (false, Some("one"), "no TLS with https://localhost"),
    ] {
        let refused = ask(ca, token).await.err().unwrap();
        assert!(refused.contains(words), "{refused}");
    }
    assert_eq!(service.stop().await, 0);
}

/// One address may have 8 connections: of 100 that say nothing its last are left, and whoever asks gets in.
#[tokio::test]
async fn idle_connections_keep_nobody_out() {
    let mut config = config();
    (config.server.connections, config.server.connections_per_client) = (20, 8);
    let service = Service::start(config).await;
    let mut idle = Vec::new();
    for _ in 0..100 {
        idle.push(connect_from(1, service.address).await);
    }
    for last in [1, 2] {
        let live = say(last, service.address, LIVEZ).await;
        assert!(live.starts_with("HTTP/1.1 200"), "{live}");
    }
    let scored = say(1, service.address, &Rows::new(2).request()).await;
    assert!(scored.starts_with("HTTP/1.1 200"), "{scored}");
    drop(idle);
    service.stop().await;
}

/// Bodies that all but end hold one client's share, which is no other's, and give it back.
#[tokio::test]
async fn bodies_that_stand_still_hold_no_memory() {
    let mut config = config();
    config.body_stall = Duration::from_millis(300);
    (config.server.request_bytes, config.server.memory_bytes) = (1 << 20, 16 << 20);
    let service = Service::start(config).await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut socket = connect_from(2, service.address).await;
        let head = b"POST /v1/models/thrice/score HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n";
        let _ = socket.write_all(head).await;
        let _ = socket.write_all(&vec![0; (1 << 20) - 1]).await;
        slow.push(socket);
    }
    let request = Rows::new(500).request();
    let other = say(3, service.address, &request).await;
    assert!(other.starts_with("HTTP/1.1 200"), "{other:.300}");
    // Each is refused for what it did: it stood still, or there was no memory for it.
    for mut socket in slow {
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        let said = ["stood still", "a client", "broke off"];
        assert!(answer.is_empty() || said.iter().any(|words| answer.contains(words)), "{answer}");
    }
    let same = say(2, service.address, &request).await;
    assert!(same.starts_with("HTTP/1.1 200"), "{same:.300}");
    service.stop().await;
}

/// Large requests are at work on all there is, and a small one is answered before any of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_small_request_does_not_wait_for_large_ones() {
    let service = Service::start(SumConfig { jobs: 1, ..config() }).await;
    let (large, small) = (Arc::new(Rows::new(20_000).request()), Rows::new(1).request());
    let at = service.address;
    // A machine that has other work may let large ones end first, once: a server that makes small ones wait does so each time.
    for attempt in 1.. {
        let working: Vec<JoinHandle<String>> = (0..2)
            .map(|_| {
                let large = large.clone();
                tokio::spawn(async move { say(2, at, &large).await })
            })
            .collect();
        // So that they are at work, most likely; what is asserted holds if they are not.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let unfinished = working.iter().filter(|job| !job.is_finished()).count();
        for last in [2, 3] {
            let scored = say(last, at, &small).await;
            assert!(scored.starts_with("HTTP/1.1 200"), "{scored:.300}");
        }
        let after = working.iter().filter(|job| !job.is_finished()).count();
        for job in working {
            assert!(job.await.unwrap().starts_with("HTTP/1.1 200"));
        }
        // At most the one whose last pieces they were.
        if after + 1 >= unfinished {
            break;
        }
        assert!(attempt < 5, "{after} of {unfinished} were still at work");
    }
    service.stop().await;
}

/// A body that never ends is cut when the time to drain is over.
#[tokio::test]
async fn a_body_without_an_end_does_not_outlast_the_drain() {
    let mut config = config();
    config.server.grace = Duration::from_millis(100);
    let service = Service::start(config).await;
    let mut endless = connect_from(1, service.address).await;
    endless
        .write_all(b"POST /v1/models/thrice/score HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc")
        .await
        .unwrap();
    // Another is answered: by then the first is there, too.
    assert!(say(1, service.address, LIVEZ).await.starts_with("HTTP/1.1 200"));
    assert!(service.stop().await <= 1);
    assert_eq!(endless.read(&mut [0]).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn refusals_are_json_with_a_reason() {
    let service = Service::start(config()).await;
    for (line, status, reason) in [
        ("GET /v1/models/none/score", "405", "malformed"),
        ("POST /v1/models/none/score", "404", "malformed"),
        ("POST /v1/models/thrice/score", "400", "malformed"),
        ("GET /else", "404", "malformed"),
    ] {
        let request = format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        let answer = say(1, service.address, request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{line}: {answer}");
        assert!(answer.contains(&format!("\"reason\":\"{reason}\"")), "{line}: {answer}");
    }
    assert_eq!(service.stop().await, 0);
}

/// A server that gives everyone who asks the next of these answers, as they are, and then hangs up.
async fn answering(answers: Vec<Vec<u8>>) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for answer in answers {
            let (mut socket, _) = listener.accept().await.unwrap();
            let (mut asked, mut part) = (Vec::new(), [0; 4096]);
            let length = |asked: &[u8]| {
                let head = asked.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
                let text = String::from_utf8_lossy(&asked[..head]).to_lowercase();
                let length = text.split_once("content-length: ")?.1.split_once('\r')?.0.parse::<usize>();
                Some(head + length.unwrap())
            };
            while length(&asked).is_none_or(|length| asked.len() < length) {
                match socket.read(&mut part).await {
                    Ok(got) if got > 0 => asked.extend_from_slice(&part[..got]),
                    _ => break,
                }
            }
            // The client may have hung up by then.
            let _ = socket.write_all(&answer).await;
        }
    });
    address
}

/// A score or several for each row, and no more than a model may have; what is longer is not read.
#[tokio::test]
async fn scores_are_for_the_rows_that_were_sent() {
    let rows = Rows::new(2);
    let encryptor = rows.evaluator.encryptor();
    let reply = |head: &str, body: &[u8]| [format!("HTTP/1.1 {head}\r\n\r\n").as_bytes(), body].concat();
    let one = rows.rows.clone().reshape(&[2]).unwrap();
    let of = |count: usize, shape: &[usize]| {
        let positions: Vec<usize> = (0..count).map(|i| i % 2).collect();
        let scores = one.select(0, &positions).unwrap().reshape(shape).unwrap();
        let file = file::write(Vec::new(), &scores, encryptor).unwrap();
        reply(&format!("200 OK\r\nContent-Length: {}", file.len()), &file)
    };
    // In a unit of any kind: the least and the most that weights have, and what takes thousands of digits to print.
    let unit = |exponent, scale| {
        let form = Form { exponent, scale, ..one.form().clone() };
        let (key, key_bits) = (encryptor.public().id(), encryptor.public().bits());
        let mut writer = file::Writer::new(Vec::new(), &file::Header { key, key_bits, form }).unwrap();
        writer.write(&one.numbers(encryptor).unwrap()).unwrap();
        let file = writer.finish().unwrap();
        reply(&format!("200 OK\r\nContent-Length: {}", file.len()), &file)
    };
    // Packed, cut short, and of a key of another length.
    let headed = |key_bits, packed| {
        let form = Form { packed, shape: vec![2], ..one.form().clone() };
        let header = file::Header { key: encryptor.public().id(), key_bits, form };
        let mut writer = file::Writer::new(Vec::new(), &header).unwrap();
        writer.write(&one.numbers(encryptor).unwrap()).unwrap();
        writer.finish().unwrap()
    };
    let packed = headed(512, Some(Packed { packing: Packing::new(512, 20, 1).unwrap(), samples: 2 }));
    let (other, whole) = (headed(1024, None), headed(512, None));
    let [packed, other, cut] = [&packed[..], &other, &whole[..whole.len() - 1]]
        .map(|file| reply(&format!("200 OK\r\nContent-Length: {}", file.len()), file));
    // A gigabyte in pieces, of which no more comes than is read.
    let endless = reply("200 OK\r\nTransfer-Encoding: chunked", b"10000\r\n");
    let endless = [endless, [vec![b'7'; 0x10000], b"\r\n10000\r\n".to_vec()].concat().repeat(40)].concat();
    let why = "x".repeat(1 << 20);
    let refusal = format!("{{\"error\":\"{why}\"}}");
    let refusal = reply(&format!("422 X\r\nContent-Length: {}", refusal.len()), refusal.as_bytes());
    let small = reply("422 X\r\nContent-Length: 23", b"{\"error\":\"no such row\"}");
    let answers = [
        (of(2, &[2]), Ok(vec![2])),
        (of(6, &[2, 3]), Ok(vec![2, 3])),
        (of(0, &[0]), Err("shape [0] for 2 rows")),
        (of(0, &[2, 0]), Err("shape [2, 0] for 2 rows")),
        (of(4, &[4]), Err("shape [4] for 2 rows")),
        (of(6, &[3, 2]), Err("shape [3, 2] for 2 rows")),
        (of(2, &[1, 1, 1, 1, 1, 1, 1, 2]), Err("shape [1, 1, 1, 1, 1, 1, 1, 2] for 2 rows")),
        (of(4, &[2, 2, 1]), Err("shape [2, 2, 1] for 2 rows")),
        (unit(-284, 19), Ok(vec![2])),
        (unit(256, 0), Ok(vec![2])),
        (
            unit(-4096, 4096),
            Err("an exponent of -4096 and 4096 decimals, which no weights make of rows with 0 and 0"),
        ),
        (unit(-285, 0), Err("an exponent of -285")),
        (unit(257, 0), Err("an exponent of 257")),
        (unit(0, 20), Err("20 decimals")),
        (reply("200 OK\r\nContent-Length: 999999999999", b""), Err("4096 scores for each of 2 rows")),
        (endless, Err("4096 scores for each of 2 rows")),
        (refusal, Err("it does not say why")),
        (small, Err("no such row")),
        (packed, Err("the server answered packed scores")),
        (other, Err("can't be used: its header says that the key has 1024 bits, and it has 512; ask again")),
        (
            cut,
            Err("the server's answer can't be used: it has 415 bytes where its header says 416; ask again"),
        ),
    ];
    let (answers, wants): (Vec<_>, Vec<_>) = answers.into_iter().unzip();
    let address = answering(answers).await;
    let client = ScoreClient::new(&format!("http://{address}"), Options::default()).unwrap();
    for want in wants {
        let scored = client.score("m", &rows.rows, encryptor).await;
        match (scored.map(|scored| scored.scores.shape().to_vec()).map_err(|e| e.to_string()), want) {
            (Ok(shape), Ok(want)) => assert_eq!(shape, want),
            (Err(error), Err(words)) => assert!(error.contains(words), "{error:.300}"),
            (got, want) => panic!("{got:?} where {want:?} is right"),
        }
    }
}
