//! The way to a server: TCP, and TLS on it where the URL says so.

use std::error::Error as StdError;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use blindcore_tls::{Fault, is_record, recipe};
use http::Uri;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::broken::in_words;
use crate::{Error, Options};

/// Bytes both ways, encrypted or not.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send {}

impl<S: AsyncRead + AsyncWrite + Send> Stream for S {}

/// Connects to one server, whenever its connection is gone.
#[derive(Clone)]
pub(crate) struct Connector {
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    plain_text: bool,
    /// Whether HTTP/1.1 is spoken.
    web: bool,
    /// Whether requests show a token.
    token: bool,
    said: Said,
}

/// What the server of the last connection spoke instead, once that is known.
///
/// A connection ends by it, and a request that waits for that connection may learn of its end alone.
#[derive(Clone, Default)]
pub(crate) struct Said(Arc<Mutex<Option<&'static str>>>);

impl Said {
    pub(crate) fn get(&self) -> Option<&'static str> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, said: Option<&'static str>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = said;
    }
}

/// Plain text would leave the machine.
#[derive(Debug, thiserror::Error)]
#[error("plain text would leave this machine")]
struct BeyondThisMachine {
    token: bool,
}

impl Connector {
    /// To a server that speaks this protocol, by its name in TLS.
    pub(crate) fn new(uri: &Uri, encrypted: bool, options: &Options, protocol: &[u8]) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Url { url: uri.to_string(), why: why.to_owned() };
        // An IPv6 address has brackets in a URL and nowhere else.
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let tls = if encrypted {
            let name = ServerName::try_from(host.clone());
            let name = name.map_err(|_| wrong("no certificate could have its host's name"))?;
            let mut config = blindcore_tls::client(options.ca.as_deref())?;
            Arc::make_mut(&mut config).alpn_protocols = vec![protocol.to_vec()];
            Some((TlsConnector::from(config), name))
        } else if options.ca.is_some() {
            let why = "http:// shows no certificate that an authority (--ca, BLINDCORE_CA) could have signed; ask for https://, or \
                       leave the authority out";
            return Err(Error::Tls { url: uri.to_string(), why: why.into() });
        } else {
            None
        };
        let port = uri.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
        let web = protocol == b"http/1.1";
        Ok(Self {
            host,
            port,
            tls,
            plain_text: options.plain_text,
            web,
            token: options.token.is_some(),
            said: Said::default(),
        })
    }

    /// What its servers spoke instead.
    pub(crate) fn said(&self) -> Said {
        self.said.clone()
    }

    pub(crate) async fn connect(&self) -> io::Result<TokioIo<Pin<Box<dyn Stream>>>> {
        self.said.set(None);
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        let stream: Pin<Box<dyn Stream>> = match &self.tls {
            Some((tls, name)) => Box::pin(tls.connect(name.clone(), stream).await?),
            None if stream.peer_addr()?.ip().to_canonical().is_loopback() => {
                Box::pin(Plain::new(stream, self.web, self.said()))
            }
            None if self.plain_text && !self.token => Box::pin(Plain::new(stream, self.web, self.said())),
            None => return Err(io::Error::other(BeyondThisMachine { token: self.token })),
        };
        Ok(TokioIo::new(stream))
    }
}

/// What a server says, in its words, that was asked in others. The layers above keep the text of an I/O error alone.
pub(crate) const SPEAKS_TLS: &str = "what answers there speaks TLS, and was asked over http://";

/// The same of a server of web pages.
const SPEAKS_HTTP1: &str = "what answers there speaks HTTP/1.1 alone, as no blindcore server does";

/// What the first bytes of an answer speak instead of HTTP/2, or of HTTP/1.1 where that is spoken (`web`): TLS, or HTTP/1.1,
/// in which servers say that they speak TLS: as a bad request (400), and what else an answer holds may be any bytes.
fn speaks(first: &[u8], web: bool) -> Option<&'static str> {
    match first {
        _ if is_record(first) => Some(SPEAKS_TLS),
        [b'H', b'T', b'T', b'P', b'/', ..] => {
            let says = |word: &[u8]| first.windows(word.len()).any(|bytes| bytes == word);
            let refused = first.get(8..12) == Some(b" 400");
            let encrypted = refused && (says(b"TLS") || says(b"HTTPS"));
            if encrypted { Some(SPEAKS_TLS) } else { (!web).then_some(SPEAKS_HTTP1) }
        }
        _ => None,
    }
}

/// A connection without TLS, which looks at the first bytes that come.
struct Plain {
    stream: TcpStream,
    begun: bool,
    web: bool,
    said: Said,
}

impl Plain {
    fn new(stream: TcpStream, web: bool, said: Said) -> Self {
        Self { stream, begun: false, web, said }
    }
}

impl AsyncRead for Plain {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let start = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if std::mem::replace(&mut self.begun, true) {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(match speaks(&buffer.filled()[start..], self.web) {
            Some(other) => {
                self.said.set(Some(other));
                Err(io::Error::other(other))
            }
            None => Ok(()),
        })
    }
}

impl AsyncWrite for Plain {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// What it means that there is no connection.
pub(crate) fn unreachable(url: &str, error: &(dyn StdError + 'static)) -> Error {
    let url = url.to_owned();
    let mut cause = Some(error);
    while let Some(this) = cause {
        // An I/O error shows what it was made from only when asked, and not as its source.
        let inner = this.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(beyond) = inner.and_then(|e| e.downcast_ref::<BeyondThisMachine>()) {
            return if beyond.token { Error::PlainTextToken { url } } else { Error::PlainText { url } };
        }
        if let Some(fault) = this.downcast_ref::<io::Error>().and_then(Fault::find) {
            return Error::Tls { url, why: explain(&fault) };
        }
        cause = this.source();
    }
    Error::Connect { url, why: bottom(error) }
}

/// What lies at the bottom of an error: the layers above repeat it in their own words.
fn bottom(error: &(dyn StdError + 'static)) -> String {
    let mut last = error;
    while let Some(next) = last.source() {
        last = next;
    }
    in_words(error).unwrap_or_else(|| blindcore_protocol::line(&last.to_string()))
}

/// What went wrong in a handshake, and what to do.
fn explain(fault: &Fault) -> String {
    let remedy = match fault {
        Fault::NotTls => "ask for http://, or another port".to_owned(),
        Fault::Unknown => {
            "give the authority that signed the server's certificate, in PEM (--ca), if you trust it"
                .to_owned()
        }
        Fault::Authority => format!("its operator makes another: {}", recipe("NAME")),
        Fault::Name { has, .. } if has.is_empty() => {
            format!("its operator makes one that has: {}", recipe("NAME"))
        }
        Fault::Name { .. } => "ask by a name that the certificate has".to_owned(),
        Fault::Expired | Fault::NotYet => {
            "the server's operator must renew it; check this machine's clock, too".to_owned()
        }
        _ => "don't trust this server before its operator has explained it".to_owned(),
    };
    blindcore_protocol::line(&format!("{fault}; {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_tls_is_known_by_how_it_refuses() {
        let refusal = |status: &str, body: &str| {
            format!("HTTP/1.1 {status}\r\nConnection: close\r\n\r\n{body}").into_bytes()
        };
        for said in [
            "The plain HTTP request was sent to an HTTPS port",
            "You are speaking HTTP to a TLS-enabled server",
        ] {
            assert_eq!(speaks(&refusal("400 Bad Request", said), true), Some(SPEAKS_TLS), "{said}");
        }
        assert_eq!(speaks(&[21, 3, 3, 0, 2, 2, 70], true), Some(SPEAKS_TLS));
        // Ciphertexts are any bytes.
        let answer = refusal("200 OK", "\u{1}HTTPS\u{2}TLS");
        assert_eq!((speaks(&answer, true), speaks(&answer, false)), (None, Some(SPEAKS_HTTP1)));
        assert_eq!(speaks(&refusal("400 Bad Request", "{}"), true), None);
        assert_eq!(speaks(b"HTTP/1.1", true), None);
    }
}
