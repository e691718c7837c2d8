//! Servers that answer to some alone.

use std::sync::Arc;

use crate::common::{Made, Running, config, http, people};
use blindcore_client::{CacheDir, Client, Error, LookupError, Options, Reason, Token};
use blindcore_server::{Config, Tokens};

fn made() -> Made {
    crate::common::keyed("people", 1, crate::common::plain(), 1, &people(40))
}

fn tokens(all: &[(&str, &str)]) -> Arc<Tokens> {
    let lines: Vec<String> = all.iter().map(|(name, token)| Tokens::line(name, token).unwrap()).collect();
    Arc::new(Tokens::parse(&lines.join("\n")).unwrap())
}

async fn client(server: &Running, token: Option<&str>) -> Client {
    let token = token.map(|t| Token::new(t).unwrap());
    let options = Options { cache: CacheDir::None, token, ..Options::default() };
    Client::connect_with(&server.url(), options).await.unwrap()
}

fn unauthorized<T>(asked: Result<T, Error>, words: &str) {
    match asked.err().expect("refused") {
        Error::Lookup(LookupError::Refused { reason: Some(Reason::Unauthorized), message, .. }) => {
            assert!(message.contains(words), "{message}");
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn who_has_a_token_is_answered_and_nobody_else() {
    let config = Config { tokens: Some(tokens(&[("ada", "one"), ("bob", "two")])), ..config() };
    let server = Running::start_with(config, &[&made()]).await;
    for token in ["one", "two"] {
        let table = client(&server, Some(token)).await.table("people").await.unwrap();
        assert!(table.get("key-3").await.unwrap().found.is_some());
    }
    let before = server.stats.totals().refused;
    unauthorized(client(&server, None).await.tables().await, "--token-file");
    unauthorized(client(&server, None).await.table("people").await.map(|_| ()), "--token-file");
    for none in ["three", "On", "one1", "ONE"] {
        unauthorized(client(&server, Some(none)).await.tables().await, "ask its operator");
    }
    assert_eq!(server.stats.totals().refused, before + 6);

    // The same over plain HTTP, where everything of the tables is behind it and what watches a server isn't.
    let at = server.address;
    for path in
        ["GET /v1/tables", "GET /v1/tables/people", "GET /v1/tables/people/records/hint", "POST /v1/query"]
    {
        let (status, head, body) = http(at, path, b"").await;
        assert_eq!(status, 401, "{path}: {head}");
        assert!(head.contains("www-authenticate: Bearer") && head.contains("blindcore-reason: unauthorized"));
        assert!(String::from_utf8(body).unwrap().contains("\"reason\":\"unauthorized\""));
        let shown = |header: &str| format!("{path}|Authorization: {header}");
        for wrong in ["Bearer three", "Bearer", "Basic one", "one", "Bearer  ", "Bearer one two"] {
            assert_eq!(http(at, &shown(wrong), b"").await.0, 401, "{wrong}");
        }
        assert_ne!(http(at, &shown("bearer one"), b"").await.0, 401);
    }
    for open in ["GET /livez", "GET /readyz"] {
        assert_eq!(http(at, open, b"").await.0, 200);
    }
    // A browser asks first whether it may send one, and may read why it was refused.
    let preflight = "OPTIONS /v1/tables|Origin: http://page.example|Access-Control-Request-Method: GET|\
                     Access-Control-Request-Headers: authorization";
    let (status, head, _) = http(at, preflight, b"").await;
    assert!(status == 200 && head.contains("authorization"), "{head}");
    let (_, head, _) = http(at, "GET /v1/tables|Origin: http://page.example", b"").await;
    assert!(head.contains("access-control-allow-origin: *"), "{head}");
}

#[tokio::test]
async fn tokens_change_under_open_connections() {
    let config = Config { tokens: Some(tokens(&[("ada", "one"), ("bob", "two")])), ..config() };
    let server = Running::start_with(config, &[&made()]).await;
    let (ada, bob) = (client(&server, Some("one")).await, client(&server, Some("two")).await);
    let (adas, bobs) = (ada.table("people").await.unwrap(), bob.table("people").await.unwrap());
    server.handle.set_tokens(tokens(&[("ada", "one"), ("eve", "three")]));
    assert!(adas.get("key-1").await.unwrap().found.is_some());
    unauthorized(bobs.get("key-1").await, "ask its operator");
    assert_eq!(client(&server, Some("three")).await.tables().await.unwrap().len(), 1);

    // A server without tokens doesn't come to have some.
    let open = Running::start(&[&made()]).await;
    open.handle.set_tokens(tokens(&[("ada", "one")]));
    assert_eq!(client(&open, None).await.tables().await.unwrap().len(), 1);
}

#[tokio::test]
async fn no_token_leaves_the_machine_in_plain_text() {
    // Addresses that are documentation's: nobody answers, and nobody is asked.
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let own = socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr()).map(|a| a.ip());
    let Some(own) = own.ok().filter(|ip| !ip.is_loopback()) else { return };
    let config = Config { plain_text: true, listen: (own, 0).into(), ..config() };
    let server = Running::start_with(config, &[&made()]).await;
    let token = Some(Token::new("one").unwrap());
    let options = Options { cache: CacheDir::None, token, plain_text: true, ..Options::default() };
    let error = Client::connect_with(&server.url(), options).await.err().unwrap();
    assert!(matches!(error, Error::PlainTextToken { .. }), "{error}");
}
