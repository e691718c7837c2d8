//! The start of a connection that is encrypted.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, sink};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The first byte of a TLS connection: a record of the handshake.
const HANDSHAKE: u8 = 22;

/// The answer to plain HTTP/1.1 on a TLS port.
const PLAIN_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n\
    content-length: 78\r\n\r\n{\"error\":\"this port speaks TLS; ask for an https:// URL\",\"reason\":\"malformed\"}";

/// The most that is read of what comes in plain text.
const PLAIN_BYTES: u64 = 1 << 20;

/// The handshake of one connection, which must be over within `limit`.
pub(crate) async fn accept(
    mut stream: TcpStream,
    tls: Arc<rustls::ServerConfig>,
    limit: Duration,
) -> io::Result<TlsStream<TcpStream>> {
    let shake = async {
        let mut first = [0];
        if stream.peek(&mut first).await? == 1 && first[0] != HANDSHAKE {
            if first[0].is_ascii_uppercase() {
                stream.write_all(PLAIN_HTTP).await?;
                stream.shutdown().await?;
                // What was sent is read until the other side ends, or else closing would take the answer back.
                copy(&mut stream.take(PLAIN_BYTES), &mut sink()).await?;
            }
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it does not start with a TLS handshake"));
        }
        TlsAcceptor::from(tls).accept(stream).await
    };
    timeout(limit, shake).await?
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_said_to_plain_http_has_its_length() {
        let text = std::str::from_utf8(super::PLAIN_HTTP).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{text}");
    }
}
