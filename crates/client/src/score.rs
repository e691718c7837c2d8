//! Scores of encrypted rows: a model's owner weighs them and never sees them.

use std::io;
use std::net::ToSocketAddrs;
use std::time::Duration;

use blindcore_sum::ciphertexts::Ciphertexts;
use blindcore_sum::encoding::Form;
use blindcore_sum::evaluate::Weights;
use blindcore_sum::file::{self, Header};
use blindcore_sum::scheme::Encryptor;
use blindcore_wire::score::MAX_OUTPUTS;
use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Body;
use hyper::client::conn::http1;
use tokio::time::timeout;

use crate::Options;
use crate::connection::{parse, without_user};
use crate::connector::{Connector, SPEAKS_TLS, unreachable};

/// The most bytes in an answer, however many rows were sent.
const MAX_BYTES: usize = 1 << 30;
/// The most bytes in a refusal.
const REFUSAL_BYTES: usize = 16 << 10;

/// Why there are no scores.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScoreError {
    /// The server can't be asked as its URL, certificate or token say.
    #[error(transparent)]
    Client(#[from] crate::Error),
    /// Not an address that can be asked.
    #[error("--server {url:?} {why}")]
    Address {
        /// What was given.
        url: String,
        /// What is wrong with it, and what to say.
        why: String,
    },
    /// Plain text would leave the machine.
    #[error(
        "--server {url} is beyond this machine and the transport is plain text: ask for https://, or say --plain-text"
    )]
    PlainText {
        /// What was given.
        url: String,
    },
    /// Nobody listens.
    #[error("no service answers at {host}; start one with `blindcore sum serve`")]
    Connect {
        /// Its URL.
        host: String,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The connection or the request failed.
    #[error("the service hung up")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No answer in time.
    #[error("no answer within {} s; say --timeout, or send fewer rows", after.as_secs())]
    Timeout {
        /// How long was waited.
        after: Duration,
    },
    /// The service says no.
    #[error("the service refused ({status}): {why}")]
    Refused {
        /// HTTP's status.
        status: u16,
        /// What it said, which is not to be trusted with a terminal.
        why: String,
    },
    /// The answer is not a file of ciphertexts, or not under this key: what the server knows, too.
    #[error("the server's answer can't be used: {why}; ask again, and if it stays, don't trust that server")]
    Answer {
        /// What is wrong with it.
        why: String,
    },
    /// The answer doesn't decrypt to what it says. The server doesn't know of it, and must not learn of it by what is sent: a
    /// caller must not ask again because of it.
    #[error(
        "the scores can't be right: {why}; don't ask that server again because of this, nor tell it, for it would learn \
         something of the rows"
    )]
    Decrypted {
        /// What is wrong with them.
        why: String,
    },
    /// The answer's scores are several in a ciphertext, which nobody asks for.
    #[error(
        "the server answered packed scores, which it was not asked for; it is not to be trusted with more"
    )]
    Packed,
    /// The answer's scores are not one or several for each row.
    #[error(
        "the server answered scores of shape {shape:?} for {rows} rows; it is not to be trusted with more"
    )]
    Shape {
        /// The shape of the scores.
        shape: Vec<usize>,
        /// The rows that were sent.
        rows: usize,
    },
    /// The answer's scores are in a unit that no weights have.
    #[error(
        "the server answered scores with an exponent of {} and {} decimals, which no weights make of rows with {} and {}; it is \
         not to be trusted with more",
        .got.0, .got.1, .sent.0, .sent.1
    )]
    Unit {
        /// Exponent and decimals of the scores.
        got: (i32, u32),
        /// Those of the rows.
        sent: (i32, u32),
    },
    /// The answer is longer than the scores of any model that is taken.
    #[error(
        "the server's answer is over the {limit} bytes that {MAX_OUTPUTS} scores for each of {rows} rows take; {}ask for a model \
         of fewer outputs", if *limit < MAX_BYTES { "" } else { "send fewer rows, or " }
    )]
    Long {
        /// The limit in bytes.
        limit: usize,
        /// The rows that were sent.
        rows: usize,
    },
}

impl ScoreError {
    /// What is said of an answer that is refused: why, and not what to do about a file.
    fn answer(error: impl std::fmt::Display) -> Self {
        Self::Answer { why: without_remedy(&error) }
    }

    /// What is said of scores that were decrypted and can't be right: why, and not what to do about a file.
    pub fn decrypted(error: impl std::fmt::Display) -> Self {
        Self::Decrypted { why: without_remedy(&error) }
    }
}

fn without_remedy(error: &impl std::fmt::Display) -> String {
    let why = error.to_string();
    why.rsplit_once("; ").map_or(&*why, |(why, _)| why).to_owned()
}

/// Scores and what they cost on the wire.
pub struct Scored {
    /// A score for each row and output, encrypted under the key of the rows.
    pub scores: Ciphertexts,
    /// Bytes of the request's body.
    pub sent: usize,
    /// Bytes of the answer's body.
    pub received: usize,
}

/// A client of a scoring service, as `blindcore sum serve` runs it.
#[derive(Clone)]
pub struct ScoreClient {
    connector: Connector,
    url: String,
    host: String,
    options: Options,
}

/// Whether an error says that an open connection was closed.
fn is_cut(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::UnexpectedEof | Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe
    )
}

impl ScoreError {
    fn connect(url: &str, source: io::Error) -> Self {
        Self::Connect { host: url.to_owned(), source: Box::new(source) }
    }
}

impl ScoreClient {
    /// A client of the service at `url`, `https://HOST:PORT`, or `http://HOST:PORT` on this machine. Rows and scores are
    /// encrypted in any case, but a service beyond this machine is refused without TLS unless [`Options::plain_text`]
    /// says that everything else may be read on the way. The request as a whole has [`Options::request_timeout`].
    ///
    /// # Errors
    /// The URL is not one, names no address, or is beyond this machine; the file of authorities can't be used.
    pub fn new(url: &str, options: Options) -> Result<Self, ScoreError> {
        let wrong = |why: &str| {
            let why = format!("{why}; give one such as http://127.0.0.1:7710");
            ScoreError::Address { url: without_user(url), why }
        };
        let (uri, encrypted) = parse(url).map_err(|error| match error {
            crate::Error::Url { why, .. } => wrong(&format!("is not an address of a service: {why}")),
            error => error.into(),
        })?;
        let host = uri.authority().map_or_else(String::new, ToString::to_string);
        if !encrypted {
            if uri.port_u16().is_none() {
                return Err(wrong("names no address and port"));
            }
            let found = host.to_socket_addrs();
            let mut found = found.map_err(|error| ScoreError::connect(url, error))?;
            if !found.all(|found| found.ip().is_loopback()) && !options.plain_text {
                return Err(ScoreError::PlainText { url: url.to_owned() });
            }
        }
        let connector = Connector::new(&uri, encrypted, &options, b"http/1.1")?;
        Ok(Self { connector, url: url.to_owned(), host, options })
    }

    /// Has `rows` scored by a model. The last dimension of their shape is a row's terms.
    ///
    /// # Errors
    /// The service can't be reached, refuses, takes too long, or answers something else.
    pub async fn score(
        &self,
        model: &str,
        rows: &Ciphertexts,
        encryptor: &Encryptor,
    ) -> Result<Scored, ScoreError> {
        // A score or several for each vector along the last axis.
        let form = rows.form();
        let lead = form.shape.split_last().map_or(&[][..], |(_, lead)| lead);
        let count: usize = lead.iter().product();
        let limit = answer_bytes(rows, encryptor, lead);
        let file = file::write(Vec::new(), rows, encryptor).map_err(ScoreError::answer)?;
        let body = blindcore_wire::score::encode(&encryptor.public().to_bytes(), &file);
        let sent = body.len();
        let after = self.options.request_timeout;
        let asked = timeout(after, self.ask(model, body, limit)).await;
        let bytes = asked.map_err(|_| ScoreError::Timeout { after })??;
        let bytes = bytes.ok_or(ScoreError::Long { limit, rows: count })?;
        let reader = file::Reader::new(&bytes[..], Some(bytes.len() as u64)).map_err(ScoreError::answer)?;
        let got = &reader.header().form;
        if got.packed.is_some() {
            return Err(ScoreError::Packed);
        }
        let fits = match got.shape.strip_prefix(lead) {
            Some([]) => !lead.is_empty(),
            Some([outputs]) => (1..=MAX_OUTPUTS).contains(outputs),
            _ => false,
        };
        if !fits || count == 0 {
            return Err(ScoreError::Shape { shape: got.shape.clone(), rows: count });
        }
        if !Weights::make(form, got) {
            let unit = |form: &Form| (form.exponent, form.scale);
            return Err(ScoreError::Unit { got: unit(got), sent: unit(form) });
        }
        let scores = reader.read_all(encryptor).map_err(ScoreError::answer)?;
        Ok(Scored { scores, sent, received: bytes.len() })
    }

    /// One request, on a connection of its own; none if its answer is over `limit` bytes.
    async fn ask(&self, model: &str, body: Vec<u8>, limit: usize) -> Result<Option<Bytes>, ScoreError> {
        let said = self.connector.said();
        let broken = |e: Box<dyn std::error::Error + Send + Sync>| {
            if said.get() == Some(SPEAKS_TLS) {
                return crate::Error::SpeaksTls { what: "scoring" }.into();
            }
            let then = "; try again, and if it stays, see whether `blindcore sum serve` answers there";
            ScoreError::Broken(crate::broken::in_words(&*e).map_or(e, |why| (why + then).into()))
        };
        let name: String = model.bytes().map(escape).collect();
        let mut request = http::Request::post(format!("/v1/models/{name}/score")).header(HOST, &self.host);
        if let Some(token) = &self.options.token {
            request = request.header(AUTHORIZATION, token.header());
        }
        let request = request.body(Full::new(Bytes::from(body))).map_err(|e| broken(e.into()))?;
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        let connected = timeout(self.options.connect_timeout, self.connector.connect()).await;
        let stream = connected.map_err(late).and_then(|connected| connected);
        let stream = stream.map_err(|error| match unreachable(&self.url, &error) {
            // Something answers, and not to its end.
            crate::Error::Connect { .. } if is_cut(&error) => broken(error.into()),
            crate::Error::Connect { .. } => ScoreError::connect(&self.url, error),
            other => other.into(),
        })?;
        let (mut sender, connection) = http1::handshake(stream).await.map_err(|e| broken(e.into()))?;
        let connection = tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(|e| broken(e.into()))?;
        let status = response.status();
        let limit = if status.is_success() { limit } else { REFUSAL_BYTES };
        // What says that it is too long is not read at all.
        let long = response.body().size_hint().lower() > limit as u64;
        let body = if long { None } else { Some(Limited::new(response.into_body(), limit).collect().await) };
        connection.abort();
        let body = match body.transpose() {
            Ok(body) => body.map(|body| body.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => None,
            Err(error) => return Err(broken(error)),
        };
        if status.is_success() {
            return Ok(body);
        }
        let said: serde_json::Value = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
        let why = said["error"].as_str().filter(|why| !why.trim().is_empty());
        let why = why
            .unwrap_or("it does not say why; see whether that is a `blindcore sum serve`, and its log")
            .to_owned();
        Err(ScoreError::Refused { status: status.as_u16(), why })
    }
}

/// The most bytes of an answer: a file of [`MAX_OUTPUTS`] scores for each row.
fn answer_bytes(rows: &Ciphertexts, encryptor: &Encryptor, lead: &[usize]) -> usize {
    let key = encryptor.public();
    let shape = lead.iter().copied().chain([MAX_OUTPUTS]).collect();
    let form = Form { packed: None, shape, ..rows.form().clone() };
    let header = Header { key: key.id(), key_bits: key.bits(), form };
    header
        .file_bytes()
        .ok()
        .and_then(|bytes| usize::try_from(bytes).ok())
        .unwrap_or(usize::MAX)
        .min(MAX_BYTES)
}

/// A byte of a path, escaped unless it is plain.
fn escape(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where each row has its bound, fewer of them don't help.
    #[test]
    fn fewer_rows_are_asked_for_where_they_help() {
        let said = |limit| ScoreError::Long { limit, rows: 3 }.to_string();
        for (limit, help) in [(1000, false), (MAX_BYTES, true)] {
            let said = said(limit);
            assert!(said.ends_with("ask for a model of fewer outputs"), "{said}");
            assert_eq!(said.contains("; send fewer rows, or ask"), help, "{said}");
        }
    }
}
