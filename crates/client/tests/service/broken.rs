//! Servers that are others, or break off: what a person hears of it, in no library's words.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::common::authority::Authority;
use blindcore_accel_cpu::Cpu;
use blindcore_client::{CacheDir, Client, Error, LookupError, Options, ScoreClient};
use blindcore_sum::ciphertexts::Ciphertexts;
use blindcore_sum::encoding::{Encoding, Plaintexts};
use blindcore_sum::evaluate::Evaluator;
use blindcore_sum::keys::{KeySize, Mode, SecretKey};
use blindcore_wire::REASON_HEADER;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Headers as literals; `last` where nothing follows them.
fn headers(last: bool, all: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let block: Vec<u8> =
        all.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect();
    frame(1, 4 + u8::from(last), 1, &block)
}

fn data(last: bool, bytes: &[u8]) -> Vec<u8> {
    frame(0, u8::from(last), 1, bytes)
}

/// An answer of gRPC with these bytes as its body.
fn answer(body: &[u8]) -> Vec<u8> {
    let head = headers(false, &[(":status", "200"), ("content-type", "application/grpc")]);
    [head, data(false, body), headers(true, &[("grpc-status", "0")])].concat()
}

/// Answers the first request of a connection with bytes, and closes the connection then or keeps it.
async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    bytes: &[u8],
    close: bool,
) -> std::io::Result<()> {
    stream.read_exact(&mut [0; 24]).await?;
    stream.write_all(&frame(4, 0, 0, &[])).await?;
    let mut requested = false;
    while !requested || !close {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await?;
        // The end of a request.
        if head[3] <= 1 && head[4] & 1 == 1 && !std::mem::replace(&mut requested, true) {
            stream.write_all(bytes).await?;
            stream.flush().await?;
        }
    }
    Ok(())
}

/// A server whose answers are all so.
async fn start(bytes: Vec<u8>, close: bool, tls: Option<TlsAcceptor>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (bytes, tls) = (bytes.clone(), tls.clone());
            tokio::spawn(async move {
                match tls {
                    // It is dropped without TLS's own end.
                    Some(tls) => serve(tls.accept(stream).await?, &bytes, close).await,
                    None => serve(stream, &bytes, close).await,
                }
            });
        }
    });
    address
}

async fn ask(url: &str, options: Options) -> Error {
    match Client::connect_with(url, options).await {
        Ok(client) => client.table("t").await.err().expect("the table is not described"),
        Err(error) => error,
    }
}

fn options() -> Options {
    Options { cache: CacheDir::None, ..Options::default() }
}

/// In a person's words, with these among them.
fn heard(error: &(dyn std::error::Error + 'static), words: &str) {
    let all: Vec<_> =
        std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect();
    let text = all.join(": ");
    assert!(text.contains(words), "no {words:?} in: {text}");
    let of_libraries = [
        "rustls",
        "docs.rs",
        "h2",
        "hyper",
        "tonic",
        "rotobuf",
        "stream closed",
        "flag",
        "grpc-",
        "broken pipe",
        "frame",
        "evil",
        "EOF",
        "remaining",
        "HTTP/2 error",
        "http2 error",
        "transport error",
        "(os error",
    ];
    for word in of_libraries {
        assert!(!text.contains(word), "{word:?} in: {text}");
    }
    assert!(!text.contains(char::is_control), "{text:?}");
}

#[tokio::test]
async fn what_answers_is_said_in_a_persons_words() {
    let page = |status: &str| {
        let head = headers(false, &[(":status", status), ("content-type", "text/html")]);
        [head, data(true, b"<html>\x1b[31mevil")].concat()
    };
    // As a blindcore server answers what does not look like a request of its clients.
    let reasoned = |status: &str, reason: &str| {
        let head = [(":status", status), ("content-type", "application/json"), (REASON_HEADER, reason)];
        [headers(false, &head), data(true, b"{\"error\":\"evil\"}")].concat()
    };
    let refuse = |code: &str, message: &str| {
        let of_grpc = [(":status", "200"), ("content-type", "application/grpc")];
        headers(true, &[&of_grpc[..], &[("grpc-status", code), ("grpc-message", message)]].concat())
    };
    let longer = [&[0, 0xff, 0xff, 0xff, 0xff][..], &[7; 1000]].concat();
    let goaway = |code: u8| frame(7, 0, 0, &[&[0; 7][..], &[code], b"evil\x1b[31m"].concat());
    // What is answered, whether it passes by itself, and what is said of it.
    let cases = [
        (page("502"), true, "HTTP status 502 and no answer came"),
        (page("503"), true, "HTTP status 503"),
        (page("404"), false, "brought HTTP status 404 and no answer, as from a web server that is not"),
        (headers(true, &[(":status", "302"), ("location", "http://evil/")]), false, "HTTP status 302"),
        (
            reasoned("404", "malformed"),
            false,
            "a table's description brought HTTP status 404 and no answer, as from a web server that is not",
        ),
        (
            reasoned("413", "too-large"),
            false,
            "the server refused a table's description: by a page of HTTP and no answer; see what stands between",
        ),
        (page("200"), false, "damaged, or of another kind of server"),
        (
            answer(&[0, 0, 0, 0, 2, 0xff, 0xff]),
            false,
            "a table's description brought an answer that is damaged",
        ),
        (answer(&[2, 0, 0, 0, 0]), false, "damaged, or of another kind of server"),
        (
            answer(&longer),
            false,
            "a table's description met a message of 4294967295 B, where one has 4194304 B at most",
        ),
        (answer(&[0, 0, 0, 0, 9, 1]), false, "brought no answer, or not all of it"),
        (
            headers(true, &[(":status", "200"), ("content-type", "application/grpc")]),
            true,
            "the answer broke off",
        ),
        (answer(&[]), false, "brought no answer, or not all of it"),
        (goaway(2), true, "it ended the connection (code 2 of HTTP/2)"),
        (frame(3, 0, 1, &[0, 0, 0, 7]), true, "it broke the request off (code 7 of HTTP/2)"),
        (data(false, b"before the head"), false, "was asked, and what answers there does not keep to HTTP/2"),
        (frame(0, 0, 0, b"of no stream"), false, "was asked, and what answers there does not keep to HTTP/2"),
        (vec![0xff; 100], false, "was asked, and what answers there does not keep to HTTP/2"),
        (refuse("14", "on holiday"), true, "the server says: on holiday"),
        (refuse("2", ""), true, "the server gives no reason"),
        (refuse("12", ""), false, "it has no method for a table's description (the server gives no reason)"),
        (refuse("11", "too much"), false, "the server refused a table's description: too much"),
    ];
    for (bytes, passes, words) in cases {
        let address = start(bytes, false, None).await;
        let error = ask(&format!("http://{address}"), options()).await;
        heard(&error, words);
        assert_eq!(error.passes(), passes, "{error}");
        let other =
            matches!(error, Error::Lookup(LookupError::Protocol { .. } | LookupError::Refused { .. }));
        assert!(other != matches!(error, Error::Network { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_connection_that_ends_is_said_to_end() {
    let authority = Authority::new();
    let tls = TlsAcceptor::from(authority.server("localhost"));
    let trusting = Options { ca: Some(authority.file()), ..options() };
    for bytes in [vec![], headers(false, &[(":status", "200"), ("content-type", "application/grpc")])] {
        let address = start(bytes.clone(), true, None).await;
        heard(&ask(&format!("http://{address}"), options()).await, "it closed the connection");
        let address = start(bytes, true, Some(tls.clone())).await;
        let url = format!("https://localhost:{}", address.port());
        heard(&ask(&url, trusting.clone()).await, "it closed the connection");
    }
}

/// An answer that ends within a frame, as where something between removed bytes or wrote a longer length.
#[tokio::test]
async fn an_answer_that_is_cut_is_said_to_be() {
    let whole = answer(&[0, 0, 0, 0, 2, 0xff, 0xff]);
    let body = whole.len() - headers(true, &[("grpc-status", "0")]).len();
    // In the head of a frame, in headers, in a body.
    for bytes in [&whole[..4], &whole[..20], &whole[..body - 1]] {
        let error = ask(&format!("http://{}", start(bytes.to_vec(), true, None).await), options()).await;
        heard(&error, "failed on the way: what came ends before it is whole");
        heard(&error, "; try again, and if it stays, see whether a blindcore server answers there");
        assert!(error.passes(), "{error}");
    }
}

/// A server of web pages, which answers the first line and closes: its answer is seen, or the end alone.
#[tokio::test]
async fn a_web_server_at_the_port_is_not_blindcore() {
    let listener = Arc::new(TcpListener::bind("127.0.0.1:0").await.unwrap());
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut first = [0; 16];
            let _ = stream.read_exact(&mut first).await;
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n<html>evil").await;
        }
    });
    let error = ask(&format!("http://{address}"), options()).await;
    heard(&error, if error.passes() { "it closed the connection" } else { "speaks HTTP/1.1 alone" });
}

/// A scoring service that is none, or ends: what is said is of the same words.
#[tokio::test]
async fn a_service_that_breaks_off_is_said_to() {
    let authority = Authority::new();
    let tls = TlsAcceptor::from(authority.server("localhost"));
    let trusting = Options { ca: Some(authority.file()), ..options() };
    let key = SecretKey::generate(KeySize::test_only(512).unwrap(), Mode::ShortExponent).unwrap();
    let evaluator = Evaluator::new(key.public(), &Cpu::with_threads("cpu", 1).unwrap()).unwrap();
    let numbers = Plaintexts::integers(key.public(), &[1i64][..], Encoding::integers(8).unwrap()).unwrap();
    let rows = Ciphertexts::encrypt(evaluator.encryptor(), &numbers).unwrap().reshape(&[1, 1]).unwrap();
    for (answer, words) in [
        ("", "it closed the connection"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nevil", "it closed the connection"),
        ("SSH-2.0-evil\r\n\r\n", "what answers there does not keep to HTTP"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let tls = tls.clone();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await?;
            let mut stream = tls.accept(stream).await?;
            stream.read_exact(&mut [0; 4]).await?;
            stream.write_all(answer.as_bytes()).await?;
            stream.flush().await
        });
        let service = ScoreClient::new(&url, trusting.clone()).unwrap();
        let error = service.score("m", &rows, evaluator.encryptor()).await.err().expect("no scores");
        heard(&error, words);
        heard(&error, "see whether `blindcore sum serve` answers there");
    }
}
