//! Connections that are encrypted: chains, names, times, and what who doesn't speak TLS hears.

use std::path::PathBuf;
use std::time::Duration;

use crate::common::authority::Authority;
use crate::common::{Made, Running, config, http, people, plain, until};
use blindcore_client::{CacheDir, Client, Error, Options};
use blindcore_server::Config;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn made() -> Made {
    crate::common::keyed("people", 1, plain(), 1, &people(40))
}

fn over(authority: &Authority, name: &str) -> Config {
    Config { tls: Some(authority.server(name)), ..config() }
}

fn trusting(ca: Option<PathBuf>) -> Options {
    Options { cache: CacheDir::None, ca, ..Options::default() }
}

async fn refused(url: &str, options: Options) -> String {
    Client::connect_with(url, options).await.err().expect("refused").to_string()
}

#[tokio::test]
async fn a_chain_to_a_trusted_authority_is_believed_and_nothing_else() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let server = Running::start_with(over(&ours, "localhost"), &[&made()]).await;
    let url = format!("https://localhost:{}", server.address.port());

    let client = Client::connect_with(&url, trusting(Some(ours.file()))).await.unwrap();
    let found = client.table("people").await.unwrap().get("key-7").await.unwrap().found.unwrap();
    assert_eq!(found.key.as_deref(), Some(&b"key-7"[..]));

    for (options, url, words) in [
        (trusting(None), url.clone(), "--ca"),
        (trusting(Some(theirs.file())), url.clone(), "--ca"),
        // The certificate is localhost's, and the address isn't in it.
        (
            trusting(Some(ours.file())),
            server.url().replace("http:", "https:"),
            "by a name that the certificate has",
        ),
    ] {
        let error = refused(&url, options).await;
        assert!(error.starts_with("no TLS with https://") && error.contains(words), "{error}");
    }
    until(|| server.stats.totals().handshakes_failed == 3).await;
    assert_eq!(server.stop().await, 0);
}

#[tokio::test]
async fn a_certificate_that_ended_is_refused() {
    let ours = Authority::new();
    let server =
        Running::start_with(Config { tls: Some(ours.expired("localhost")), ..config() }, &[&made()]).await;
    let error =
        refused(&format!("https://localhost:{}", server.address.port()), trusting(Some(ours.file()))).await;
    assert!(error.contains("must renew it"), "{error}");
}

#[tokio::test]
async fn an_address_can_be_a_name_too() {
    let ours = Authority::new();
    let server = Running::start_with(over(&ours, "127.0.0.1"), &[&made()]).await;
    let url = server.url().replace("http:", "https:");
    assert_eq!(
        Client::connect_with(&url, trusting(Some(ours.file()))).await.unwrap().tables().await.unwrap().len(),
        1
    );
}

#[tokio::test]
async fn plain_text_and_tls_tell_each_other_what_is_wrong() {
    let ours = Authority::new();
    let (encrypted, plain) =
        (Running::start_with(over(&ours, "localhost"), &[&made()]).await, Running::start(&[&made()]).await);
    let (status, _, body) = http(encrypted.address, "GET /v1/tables", b"").await;
    assert_eq!(
        (status, &body[..]),
        (400, &br#"{"error":"this port speaks TLS; ask for an https:// URL","reason":"malformed"}"#[..])
    );
    // HTTP/2 without TLS fails at its first request.
    let client = Client::connect_with(&encrypted.url(), trusting(None)).await;
    let asked = match client {
        Ok(client) => client.tables().await.map(|_| ()),
        Err(error) => Err(error),
    };
    assert!(matches!(asked, Err(Error::SpeaksTls { .. })), "{asked:?}");

    let url = plain.url().replace("http:", "https:");
    let error = refused(&url, trusting(Some(ours.file()))).await;
    assert!(error.contains("does not speak TLS; ask for http://"), "{error}");
    assert_eq!(plain.client().await.tables().await.unwrap().len(), 1);
}

#[tokio::test]
async fn noise_and_silence_on_a_tls_port_hurt_nobody() {
    let ours = Authority::new();
    let config =
        Config { connections: 4, header_timeout: Duration::from_secs(2), ..over(&ours, "localhost") };
    let server = Running::start_with(config, &[&made()]).await;
    let url = format!("https://localhost:{}", server.address.port());
    let client = Client::connect_with(&url, trusting(Some(ours.file()))).await.unwrap();
    let table = client.table("people").await.unwrap();
    let mut quiet = Vec::new();
    for said in [
        &b""[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x16\x03\x01\xff\xff",
        b"\x00\xff\x17",
        b"x",
    ] {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        socket.write_all(said).await.unwrap();
        quiet.push(socket);
    }
    // Earlier connections are served meanwhile, a new one once the others were shut out.
    assert!(table.get("key-1").await.unwrap().found.is_some());
    let late = Client::connect_with(&url, trusting(Some(ours.file()))).await.unwrap();
    assert_eq!(late.tables().await.unwrap().len(), 1);
    for mut socket in quiet {
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(20), socket.read_to_end(&mut rest));
        let _ = closed.await.expect("closed");
    }
    until(|| server.stats.totals().handshakes_failed == 5).await;
}

#[tokio::test]
async fn new_certificates_are_for_new_connections() {
    let (first, second) = (Authority::new(), Authority::new());
    let server = Running::start_with(over(&first, "localhost"), &[&made()]).await;
    let url = format!("https://localhost:{}", server.address.port());
    let before = Client::connect_with(&url, trusting(Some(first.file()))).await.unwrap();
    let table = before.table("people").await.unwrap();
    // Lookups go on while certificates change, on the connection that is there.
    let busy = tokio::spawn(async move {
        for i in 0..40 {
            assert!(table.get(&format!("key-{i}")).await.unwrap().found.is_some());
        }
    });
    server.handle.set_tls(second.server("localhost"));
    let after = Client::connect_with(&url, trusting(Some(second.file()))).await.unwrap();
    assert_eq!(after.tables().await.unwrap().len(), 1);
    assert!(refused(&url, trusting(Some(first.file()))).await.contains("--ca"));
    busy.await.unwrap();
    assert_eq!(before.tables().await.unwrap().len(), 1);
}

#[tokio::test]
async fn plain_text_leaves_the_machine_only_when_it_is_said() {
    let config = Config { listen: ([0, 0, 0, 0], 0).into(), ..config() };
    let bind = |config| blindcore_server::Server::bind(config, vec![made().place()]);
    let error = bind(config.clone()).await.err().unwrap().to_string();
    assert!(error.contains("--tls-cert") && error.contains("--plain-text"), "{error}");
    assert!(bind(Config { plain_text: true, ..config.clone() }).await.is_ok());
    assert!(bind(Config { tls: Some(Authority::new().server("localhost")), ..config }).await.is_ok());

    // An address of this machine that is none of loopback, if it has one: nothing there is asked.
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let own = socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr()).map(|a| a.ip());
    let Some(own) = own.ok().filter(|ip| !ip.is_loopback()) else { return };
    let open = Config { plain_text: true, listen: (own, 0).into(), ..crate::common::config() };
    let server = Running::start_with(open, &[&made()]).await;
    let error = Client::connect_with(&server.url(), trusting(None)).await.err().unwrap();
    assert!(
        matches!(error, Error::PlainText { .. }) && error.to_string().contains("--plain-text"),
        "{error}"
    );
    let said = Options { plain_text: true, ..trusting(None) };
    assert_eq!(Client::connect_with(&server.url(), said).await.unwrap().tables().await.unwrap().len(), 1);
}
