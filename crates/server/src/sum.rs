//! The service mode of sum: models in the clear here, numbers that only clients can read.
//!
//! | request                        | answer                                                                        |
//! |--------------------------------|-------------------------------------------------------------------------------|
//! | `GET /v1/models`               | `{"models": [{"name", "outputs", "terms"}]}`                                  |
//! | `POST /v1/models/NAME/score`   | body as in [`blindcore_wire::score`], answer a file of ciphertexts, rerandomised                |
//! | `GET /livez`, `GET /readyz`    | 200; `/readyz` 503 while the server drains                                    |
//!
//! A refusal is `{"error": ...}` under 400, 404, 405, 408, 411, 413, 422 or 503. Plain text: numbers are encrypted, but the client's address and
//! how much is not.
//!
//! What a client can take is bounded before it takes it: connections, the bytes of bodies and answers that are held at once
//! (a body's count as they arrive, an answer's until they have left), the time that a body may take to arrive, an answer to
//! go on and a request to be answered, the work of a request, jobs at once. A connection carries one request; once it is
//! gone, its job ends with the block of results that it is at.

use std::collections::VecDeque;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State as Extract};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use blindcore_accel::Device;
use blindcore_sum::encoding::Form;
use blindcore_sum::evaluate::Evaluator;
use blindcore_sum::file;
use blindcore_sum::keys::{KeyId, Mode, PublicKey};
pub use blindcore_sum::model::Model;
use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep, timeout, timeout_at};

use crate::activity::Activity;
use crate::permit::{MemoryBudget, MemoryPermit, Metered};
use crate::refusal;
use crate::{Error, connection};

/// Bytes of an answer that are handed over at a time.
const PIECE: usize = 1 << 16;
/// For the head of a request to arrive.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// The work of a block of results, after which a job checks whether its client is still there: some tenths of a second.
const BLOCK_WORK: u64 = 1 << 20;
/// The most results of a block.
const BLOCK_RESULTS: u64 = 1024;

/// What a service may use.
#[derive(Clone, Debug)]
pub struct SumConfig {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Bytes of one request.
    pub request_bytes: usize,
    /// Bytes of all requests and answers that are held at once; at least four requests.
    pub memory_bytes: usize,
    /// What one request may cost, in multiplications modulo the n^2 of a 2048-bit key, as estimated from its shape and the
    /// key: a core does some three million per second.
    pub request_work: u64,
    /// Requests that are computed at once.
    pub jobs: usize,
    /// Connections at once.
    pub connections: usize,
    /// Keys whose tables are kept.
    pub keys: usize,
    /// For a body to arrive, and for an answer to stand still.
    pub body_timeout: Duration,
    /// For a connection, from its beginning to its end.
    pub timeout: Duration,
    /// For requests to finish when the server stops.
    pub grace: Duration,
    /// Takes keys of under 2048 bits.
    pub insecure_test_keys: bool,
}

impl Default for SumConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7710)),
            request_bytes: 64 << 20,
            memory_bytes: 256 << 20,
            request_work: 100_000_000,
            jobs: 2,
            connections: 256,
            keys: 16,
            body_timeout: Duration::from_secs(30),
            timeout: Duration::from_secs(300),
            grace: Duration::from_secs(30),
            insecure_test_keys: false,
        }
    }
}

struct State {
    config: SumConfig,
    device: Device,
    models: Vec<Model>,
    memory: Arc<MemoryBudget>,
    jobs: Arc<Semaphore>,
    /// Tables of keys, the last used at the end.
    evaluators: Mutex<VecDeque<(KeyId, Arc<Evaluator>)>>,
    ready: AtomicBool,
}

/// A service that listens; [`SumServer::run`] makes it answer.
pub struct SumServer {
    listener: TcpListener,
    address: SocketAddr,
    state: Arc<State>,
}

struct Refusal(StatusCode, String);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        tracing::info!(status = self.0.as_u16(), why = self.1, "refused");
        (self.0, Json(json!({"error": self.1}))).into_response()
    }
}

fn refuse<T>(status: StatusCode, why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(status, why.into()))
}

impl SumServer {
    /// Listens.
    ///
    /// # Errors
    /// A setting is out of range, two models have one name, or the address can't be had.
    pub async fn bind(config: SumConfig, device: Device, models: Vec<Model>) -> Result<Self, Error> {
        let setting = |what: &str| Err(Error::Setting(what.to_owned()));
        if config.jobs == 0 || config.connections == 0 || config.keys == 0 {
            return setting("jobs, connections and keys must be at least 1");
        }
        let most = Semaphore::MAX_PERMITS;
        if config.jobs > most || config.connections > most {
            return setting(&format!("jobs and connections must be at most {most}"));
        }
        // A body, its residues and its answer: so that the largest request can be served.
        if config.request_bytes.checked_mul(4).is_none_or(|bytes| bytes > config.memory_bytes) {
            return setting("a request may take at most a quarter of the memory for all of them");
        }
        for (i, model) in models.iter().enumerate() {
            if models[..i].iter().any(|other| other.name == model.name) {
                return setting(&format!("two models are called {:?}; name each once", model.name));
            }
            if model.terms() == 0 || model.outputs() == 0 || model.weights.shape().len() > 2 {
                return setting(&format!(
                    "model {:?} is neither a vector nor a matrix of weights",
                    model.name
                ));
            }
        }
        let listen = |source| Error::Listen { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let state = Arc::new(State {
            memory: MemoryBudget::new(config.memory_bytes),
            jobs: Arc::new(Semaphore::new(config.jobs)),
            evaluators: Mutex::default(),
            ready: AtomicBool::new(true),
            config,
            device,
            models,
        });
        Ok(Self { listener, address, state })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `shutdown` is done, then lets requests finish. Returns how many were cut.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> usize {
        let Self { listener, state, .. } = self;
        let router = Router::new()
            .route("/v1/models", get(list))
            .route("/v1/models/{name}/score", post(score))
            .route("/livez", get(async || "ok\n"))
            .route("/readyz", get(ready))
            .fallback(async || {
                Refusal(
                    StatusCode::NOT_FOUND,
                    "there is nothing here; GET /v1/models lists the models".into(),
                )
            })
            .method_not_allowed_fallback(async || {
                Refusal(
                    StatusCode::METHOD_NOT_ALLOWED,
                    "models are listed by GET /v1/models and asked by POST /v1/models/NAME/score".into(),
                )
            })
            .layer(map_response(refusal::in_json))
            .with_state(state.clone());
        let slots = Arc::new(Semaphore::new(state.config.connections));
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                () = &mut shutdown => break,
                Some(_) = connections.join_next() => continue,
                accepted = async {
                    let slot = slots.clone().acquire_owned().await.ok();
                    (slot, listener.accept().await)
                } => accepted,
            };
            let (slot, Ok((stream, _))) = accepted else {
                sleep(Duration::from_millis(50)).await;
                continue;
            };
            let (router, limit, idle) = (router.clone(), state.config.timeout, state.config.body_timeout);
            connections.spawn(async move {
                let answering = Activity::new();
                let served = connection::one_request(stream, router, HEADER_TIMEOUT, answering.clone());
                let stands_still = async {
                    let mut tick = interval((idle / 4).max(Duration::from_millis(10)));
                    // Until an answer begins, other limits hold.
                    while !answering.stalled(limit, idle) {
                        tick.tick().await;
                    }
                };
                tokio::select! {
                    served = timeout(limit, served) => if served.is_err() {
                        tracing::info!("a connection took longer than it may");
                    },
                    () = stands_still => tracing::info!("an answer was not read"),
                }
                drop(slot);
            });
        }
        state.ready.store(false, Ordering::Relaxed);
        drop(listener);
        let end = Instant::now() + state.config.grace;
        while let Ok(Some(_)) = timeout_at(end, connections.join_next()).await {}
        let cut = connections.len();
        connections.shutdown().await;
        cut
    }
}

type Shared = Extract<Arc<State>>;

async fn ready(Extract(state): Shared) -> StatusCode {
    if state.ready.load(Ordering::Relaxed) { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

async fn list(Extract(state): Shared) -> Response {
    let models: Vec<_> = state
        .models
        .iter()
        .map(|m| json!({"name": m.name, "outputs": m.outputs(), "terms": m.terms()}))
        .collect();
    Json(json!({"models": models})).into_response()
}

async fn score(
    Extract(state): Shared,
    name: Result<Path<String>, PathRejection>,
    request: http::Request<Body>,
) -> Result<Response, Refusal> {
    let model = name.ok().and_then(|Path(name)| state.models.iter().position(|m| m.name == name));
    let Some(model) = model else {
        return refuse(StatusCode::NOT_FOUND, "there is no such model; GET /v1/models lists them");
    };
    let length = request.headers().get(CONTENT_LENGTH).and_then(|l| l.to_str().ok()?.parse::<usize>().ok());
    let Some(length) = length else {
        return refuse(StatusCode::LENGTH_REQUIRED, "say how long the body is, in Content-Length");
    };
    let limit = state.config.request_bytes;
    if length > limit {
        let why = format!("{length} bytes are over the {limit} of a request; send fewer rows");
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, why);
    }
    let answering = request.extensions().get::<Arc<Activity>>().cloned().unwrap_or_else(Activity::new);
    let held = MemoryPermit::new(state.memory.clone());
    let body = timeout(state.config.body_timeout, collect(request.into_body(), length, &held));
    let Ok(body) = body.await else {
        return refuse(StatusCode::REQUEST_TIMEOUT, "the body took too long; send it faster");
    };
    let body = body?;
    let Ok(job) = state.jobs.clone().acquire_owned().await else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "the server stops");
    };
    let worker = state.clone();
    let gone = Gone(Arc::new(AtomicBool::new(false)));
    let stop = gone.0.clone();
    let result = tokio::task::spawn_blocking(move || {
        let _job = job;
        answer(&worker, &worker.models[model], &body, &held, &stop)
    });
    match result.await {
        Ok(answer) => {
            let answer = answer?;
            let memory = answer.held.clone();
            let pieces = Pieces(Bytes::from_owner(answer));
            let body = Body::new(Metered::answer(pieces, memory, answering));
            Ok(([(CONTENT_TYPE, "application/octet-stream")], body).into_response())
        }
        Err(_) => refuse(StatusCode::INTERNAL_SERVER_ERROR, "the request failed; others go on"),
    }
}

/// Tells a job that nobody waits for it any more, once the request is dropped.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The bytes of an answer, and their share of the memory, which goes back when the last of them has left.
struct Answer {
    bytes: Vec<u8>,
    held: Arc<MemoryPermit>,
}

impl AsRef<[u8]> for Answer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A body that is handed over piece by piece, so that it shows whether it is read.
struct Pieces(Bytes);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let length = self.0.len().min(PIECE);
        Poll::Ready((length > 0).then(|| Ok(Frame::data(self.0.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

/// Reads a body of at most `length` bytes, each paid for before it is kept.
async fn collect(mut body: Body, length: usize, held: &MemoryPermit) -> Result<Vec<u8>, Refusal> {
    let mut out = Vec::new();
    while let Some(frame) = body.frame().await {
        let data = frame.ok().and_then(|frame| frame.into_data().ok());
        let Some(data) = data.filter(|data| out.len() + data.len() <= length) else {
            return refuse(StatusCode::BAD_REQUEST, "the body broke off, or is longer than it said");
        };
        held.try_take(data.len()).map_err(|why| Refusal(StatusCode::SERVICE_UNAVAILABLE, why))?;
        out.extend_from_slice(&data);
    }
    Ok(out)
}

/// What one result costs: multiplications modulo the n^2 of a 2048-bit key. Weights cost about one for each of their terms
/// and bytes, and what squares their bits; noise costs what the key's mode takes.
fn result_work(key: &PublicKey, model: &Model, rows: &Form) -> u64 {
    let weights = &model.weights;
    let terms = weights.shape().last().copied().unwrap_or(0) as u64;
    let bits = weights.values().iter().map(|w| 64 - w.unsigned_abs().leading_zeros()).max().unwrap_or(0);
    let noise = match key.mode() {
        Mode::Textbook => u64::from(key.bits()) * 6 / 5,
        Mode::ShortExponent | Mode::SpecialKey => u64::from(key.exponent_bits()) / 6 + 16,
    };
    // A bias in a finer unit than its scores: theirs are squared, and raised to powers of ten.
    let finer = model.bias.as_ref().map_or(0, |bias| {
        let bits =
            4 * (rows.exponent.saturating_add(weights.exponent()).saturating_sub(bias.exponent())).max(0);
        u64::from(bits.unsigned_abs())
            + 4 * u64::from(bias.scale().saturating_sub(rows.scale + weights.scale()))
    });
    let products = terms.saturating_mul(u64::from(bits.div_ceil(8).max(1)));
    scaled(key, products + u64::from(2 * bits) + noise + finer)
}

/// Multiplications under a key as those of one of 2048 bits: they take time by the square of its length.
fn scaled(key: &PublicKey, multiplications: u64) -> u64 {
    let square = u128::from(key.bits()).pow(2);
    u64::try_from((u128::from(multiplications) * square).div_ceil(2048 * 2048)).unwrap_or(u64::MAX)
}

/// Ciphertexts of the scores; nothing that anybody reads once `stop` is set.
fn answer(
    state: &State,
    model: &Model,
    body: &[u8],
    held: &MemoryPermit,
    stop: &AtomicBool,
) -> Result<Answer, Refusal> {
    let bad = |why: String| Refusal(StatusCode::BAD_REQUEST, why);
    let unfit = |why: String| Refusal(StatusCode::UNPROCESSABLE_ENTITY, why);
    let start = std::time::Instant::now();
    let (key, ciphertexts) = blindcore_wire::score::decode(body).map_err(bad)?;
    let key = PublicKey::from_bytes(key).map_err(|e| bad(e.to_string()))?;
    if key.is_test_only() && !state.config.insecure_test_keys {
        return Err(unfit(format!(
            "a key of {} bits protects nothing; make one of 2048 or more",
            key.bits()
        )));
    }
    let evaluator = state.evaluator(&key).map_err(|e| bad(e.to_string()))?;
    let reader =
        file::Reader::new(ciphertexts, Some(ciphertexts.len() as u64)).map_err(|e| bad(e.to_string()))?;
    if reader.header().form.shape.last() != Some(&model.terms()) {
        let (got, want) = (&reader.header().form.shape, model.terms());
        return Err(unfit(format!("rows of shape {got:?} where the model has {want} terms")));
    }
    let rows = reader.count() as usize / model.terms();
    let answer_bytes = rows.saturating_mul(model.outputs()).saturating_mul(8 * key.ciphertext_words());
    if answer_bytes > state.config.request_bytes {
        let limit = state.config.request_bytes;
        return Err(unfit(format!(
            "{answer_bytes} bytes of scores are over the {limit} of an answer; send fewer rows"
        )));
    }
    let each = result_work(&key, model, &reader.header().form).max(1);
    let results = (rows as u64).saturating_mul(model.outputs() as u64);
    // Checking a ciphertext takes about four.
    let work = results.saturating_mul(each).saturating_add(scaled(&key, reader.count().saturating_mul(4)));
    let limit = state.config.request_work;
    if work > limit {
        return Err(unfit(format!(
            "{results} scores under this key take about {work} multiplications, over the {limit} of a request; send fewer \
             rows, or use a key of another mode or of fewer bits"
        )));
    }
    // What the ciphertexts take in the device's form, and the answer with its digests.
    let busy = |why| Refusal(StatusCode::SERVICE_UNAVAILABLE, why);
    held.try_take(ciphertexts.len() + ciphertexts.len() / 2).map_err(busy)?;
    let kept = MemoryPermit::new(state.memory.clone());
    let room = answer_bytes + answer_bytes / 64 + (1 << 10);
    kept.try_take(room).map_err(busy)?;

    let x = reader.read_all(evaluator.encryptor()).map_err(|e| unfit(e.to_string()))?;
    let block = (BLOCK_WORK / each).clamp(1, BLOCK_RESULTS) as usize;
    let (form, blocks) = evaluator
        .weigh_in_blocks(&x, &model.weights, model.bias.as_ref(), block)
        .map_err(|e| unfit(e.to_string()))?;
    let header = file::Header { key: key.id(), key_bits: key.bits(), form };
    let mut writer =
        file::Writer::new(Vec::with_capacity(room), &header).map_err(|e| unfit(e.to_string()))?;
    for numbers in blocks {
        if stop.load(Ordering::Relaxed) {
            tracing::info!(model = model.name, key = %key.id(), rows, "nobody waits any more");
            return Err(Refusal(StatusCode::SERVICE_UNAVAILABLE, "the request was given up".into()));
        }
        let numbers = numbers.map_err(|e| unfit(e.to_string()))?;
        writer.write(&numbers).map_err(|e| unfit(e.to_string()))?;
    }
    let bytes = writer.finish().map_err(|e| unfit(e.to_string()))?;
    tracing::info!(
        model = model.name, key = %key.id(), rows, bytes_in = body.len(), bytes_out = bytes.len(),
        ms = start.elapsed().as_millis() as u64, "scored"
    );
    Ok(Answer { bytes, held: kept })
}

impl State {
    /// The tables of a key, from the cache or newly made.
    fn evaluator(&self, key: &PublicKey) -> Result<Arc<Evaluator>, blindcore_sum::encoding::EncodingError> {
        let lock = || self.evaluators.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let kept = {
            let mut kept = lock();
            let at = kept.iter().position(|(id, _)| *id == key.id());
            at.and_then(|at| kept.remove(at)).inspect(|entry| kept.push_back(entry.clone()))
        };
        if let Some((_, evaluator)) = kept {
            return Ok(evaluator);
        }
        let evaluator = Arc::new(Evaluator::new(key, &self.device)?);
        let mut kept = lock();
        kept.push_back((key.id(), evaluator.clone()));
        while kept.len() > self.config.keys {
            kept.pop_front();
        }
        Ok(evaluator)
    }
}
