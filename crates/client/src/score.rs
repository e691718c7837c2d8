//! Scores of encrypted rows: a model's owner weighs them and never sees them.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use blindcore_sum::ciphertexts::Ciphertexts;
use blindcore_sum::file;
use blindcore_sum::scheme::Encryptor;
use bytes::Bytes;
use http::header::HOST;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

/// The most bytes in an answer.
const ANSWER_BYTES: usize = 1 << 30;

/// Why there are no scores.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScoreError {
    /// Not an address that can be asked.
    #[error("--server {url:?} {why}")]
    Address {
        /// What was given.
        url: String,
        /// What is wrong with it, and what to say.
        why: &'static str,
    },
    /// Plain text would leave the machine.
    #[error(
        "--server {url} is beyond this machine and the transport is plain text: tunnel it, or say --plain-text"
    )]
    PlainText {
        /// What was given.
        url: String,
    },
    /// Nobody listens.
    #[error("no service answers at http://{host}; start one with `blindcore sum serve`")]
    Connect {
        /// Host and port.
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
    /// The answer is not a file of ciphertexts, or not under this key.
    #[error("the server's answer")]
    Answer(#[source] Box<dyn std::error::Error + Send + Sync>),
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

/// A client of a scoring service, as `blindcore sum serve` runs it. TLS is not spoken yet.
#[derive(Clone, Debug)]
pub struct ScoreClient {
    address: SocketAddr,
    host: String,
    timeout: Duration,
}

impl ScoreClient {
    /// A client of the service at `url`, `http://ADDRESS:PORT`. Rows and scores are encrypted in any case, but a service
    /// beyond this machine is refused unless `plain_text` says that everything else may be read on the way.
    ///
    /// # Errors
    /// The URL is not one, names no address, or is beyond this machine.
    pub fn new(url: &str, plain_text: bool, timeout: Duration) -> Result<Self, ScoreError> {
        let address = |why| ScoreError::Address { url: crate::connection::without_user(url), why };
        let host = url.strip_prefix("http://").map(|host| host.trim_end_matches('/'));
        let host =
            host.ok_or_else(|| address("is not an http:// address; TLS is not spoken yet, so tunnel it"))?;
        let found = host.to_socket_addrs().ok().and_then(|mut all| all.next());
        let found =
            found.ok_or_else(|| address("names no address and port; such as http://127.0.0.1:7710"))?;
        if !found.ip().is_loopback() && !plain_text {
            return Err(ScoreError::PlainText { url: url.to_owned() });
        }
        Ok(Self { address: found, host: host.to_owned(), timeout })
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
        let answer = |e: file::FileError| ScoreError::Answer(Box::new(e));
        let file = file::write(Vec::new(), rows, encryptor).map_err(answer)?;
        let body = blindcore_wire::score::encode(&encryptor.public().to_bytes(), &file);
        let sent = body.len();
        let asked = tokio::time::timeout(self.timeout, self.ask(model, body)).await;
        let bytes = asked.map_err(|_| ScoreError::Timeout { after: self.timeout })??;
        let reader = file::Reader::new(&bytes[..], Some(bytes.len() as u64)).map_err(answer)?;
        let (form, shape) = (&reader.header().form, &rows.form().shape);
        let count: usize = shape[..shape.len().saturating_sub(1)].iter().product();
        if form.packed.is_some() || count == 0 || !form.len().is_multiple_of(count) {
            return Err(ScoreError::Shape { shape: form.shape.clone(), rows: count });
        }
        let scores = reader.read_all(encryptor).map_err(answer)?;
        Ok(Scored { scores, sent, received: bytes.len() })
    }

    /// One request, to the address that was checked.
    async fn ask(&self, model: &str, body: Vec<u8>) -> Result<Bytes, ScoreError> {
        let name: String = model.bytes().map(escape).collect();
        let request = http::Request::post(format!("http://{}/v1/models/{name}/score", self.address))
            .header(HOST, &self.host)
            .body(Full::new(Bytes::from(body)))
            .map_err(|e| ScoreError::Broken(Box::new(e)))?;
        let client = Client::builder(TokioExecutor::new()).build_http();
        let response = client.request(request).await.map_err(|e| {
            if e.is_connect() {
                ScoreError::Connect { host: self.host.clone(), source: Box::new(e) }
            } else {
                ScoreError::Broken(Box::new(e))
            }
        })?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES).collect().await;
        let body = body.map_err(ScoreError::Broken)?.to_bytes();
        if status.is_success() {
            return Ok(body);
        }
        let said: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let why = said["error"].as_str().unwrap_or("it does not say why").to_owned();
        Err(ScoreError::Refused { status: status.as_u16(), why })
    }
}

/// A byte of a path, escaped unless it is plain.
fn escape(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}
