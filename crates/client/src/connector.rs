//! The way to a server: TCP, and TLS on it where the URL says so.

use std::error::Error as StdError;
use std::io;
use std::pin::Pin;

use http::Uri;
use hyper_util::rt::TokioIo;
use rustls::CertificateError;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::error::chain;
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
    /// Whether requests show a token.
    token: bool,
}

/// Plain text would leave the machine.
#[derive(Debug, thiserror::Error)]
#[error("plain text would leave this machine")]
struct BeyondThisMachine {
    token: bool,
}

impl Connector {
    pub(crate) fn new(uri: &Uri, encrypted: bool, options: &Options) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Url { url: uri.to_string(), why: why.to_owned() };
        // An IPv6 address has brackets in a URL and nowhere else.
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let tls = if encrypted {
            let name = ServerName::try_from(host.clone());
            let name = name.map_err(|_| wrong("no certificate could have its host's name"))?;
            Some((TlsConnector::from(blindcore_tls::client(options.ca.as_deref())?), name))
        } else if options.ca.is_some() {
            return Err(wrong(
                "http:// shows no certificate that an authority (--ca, BLINDCORE_CA) could have signed; ask for https://, or leave it out",
            ));
        } else {
            None
        };
        let port = uri.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
        Ok(Self { host, port, tls, plain_text: options.plain_text, token: options.token.is_some() })
    }

    pub(crate) async fn connect(&self) -> io::Result<TokioIo<Pin<Box<dyn Stream>>>> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        let stream: Pin<Box<dyn Stream>> = match &self.tls {
            Some((tls, name)) => Box::pin(tls.connect(name.clone(), stream).await?),
            None if stream.peer_addr()?.ip().to_canonical().is_loopback() => Box::pin(stream),
            None if self.plain_text && !self.token => Box::pin(stream),
            None => return Err(io::Error::other(BeyondThisMachine { token: self.token })),
        };
        Ok(TokioIo::new(stream))
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
        if let Some(error) = inner.and_then(|e| e.downcast_ref::<rustls::Error>()) {
            return Error::Tls { url, why: explain(error) };
        }
        cause = this.source();
    }
    Error::Connect { url, why: chain(error) }
}

/// What went wrong in a handshake, and what to do.
fn explain(error: &rustls::Error) -> String {
    use rustls::Error::{InvalidCertificate, InvalidMessage};
    let remedy = match error {
        InvalidMessage(_) => "what answers there does not speak TLS; ask for http://, or another port",
        InvalidCertificate(CertificateError::UnknownIssuer) => {
            "give the authority that signed the server's certificate, in PEM (--ca), if you trust it"
        }
        InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "ask by a name that the certificate has",
        InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "the server's operator must renew it; check this machine's clock, too"
        }
        _ => "don't trust this server before its operator has explained it",
    };
    blindcore_protocol::line(&format!("{error}; {remedy}"))
}
