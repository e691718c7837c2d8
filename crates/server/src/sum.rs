//! The service mode of sum: models in the clear here, numbers that only clients can read.
//!
//! | request                        | answer                                                                        |
//! |--------------------------------|-------------------------------------------------------------------------------|
//! | `GET /v1/models`               | `{"models": [{"name", "outputs", "terms"}]}`                                  |
//! | `POST /v1/models/NAME/score`   | body a [`request`], answer a file of ciphertexts, rerandomised                |
//! | `GET /livez`, `GET /readyz`    | 200; `/readyz` 503 while the server drains                                    |
//!
//! A refusal is `{"error": ...}` under 400, 404, 408, 411, 413, 422 or 503. Plain text: numbers are encrypted, but who asks and
//! how much is not.
//!
//! What a client can take is bounded before it takes it: connections, the bytes of bodies that are held at once, the time that
//! a body may take to arrive and a request to be answered, jobs at once. A connection carries one request.

use std::collections::VecDeque;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State as Extract};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use blindcore_accel::Device;
use blindcore_sum::evaluate::{Evaluator, Weights};
use blindcore_sum::file;
use blindcore_sum::keys::{KeyId, PublicKey};
use http::StatusCode;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::{BodyExt, Limited};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tower::ServiceExt;

use crate::Error;

/// The longest public key.
const MAX_KEY_BYTES: usize = 1 << 14;
/// Bytes of bodies are counted in such units.
const UNIT: usize = 1 << 10;

/// The body of a request: the length of the public key's bytes in four little-endian bytes, these, and a file of ciphertexts.
#[must_use]
pub fn request(key: &PublicKey, ciphertexts: &[u8]) -> Vec<u8> {
    let key = key.to_bytes();
    let mut out = Vec::with_capacity(4 + key.len() + ciphertexts.len());
    out.extend((key.len() as u32).to_le_bytes());
    out.extend(key);
    out.extend(ciphertexts);
    out
}

/// A linear model: what rows are weighed with.
pub struct Model {
    /// What it is asked for by.
    pub name: String,
    /// M x K, or K for a single output.
    pub weights: Weights,
}

impl Model {
    fn terms(&self) -> usize {
        self.weights.shape().last().copied().unwrap_or(0)
    }

    fn outputs(&self) -> usize {
        if self.weights.shape().len() == 1 { 1 } else { self.weights.shape()[0] }
    }
}

/// What a service may use.
#[derive(Clone, Debug)]
pub struct SumConfig {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Bytes of one request.
    pub request_bytes: usize,
    /// Bytes of all requests that are held at once.
    pub memory_bytes: usize,
    /// Requests that are computed at once.
    pub jobs: usize,
    /// Connections at once.
    pub connections: usize,
    /// Keys whose tables are kept.
    pub keys: usize,
    /// For a body to arrive.
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
    device: Box<dyn Device>,
    models: Vec<Model>,
    memory: Semaphore,
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
    pub async fn bind(config: SumConfig, device: Box<dyn Device>, models: Vec<Model>) -> Result<Self, Error> {
        let setting = |what: &str| Err(Error::Setting(what.to_owned()));
        if config.jobs == 0 || config.connections == 0 || config.keys == 0 {
            return setting("jobs, connections and keys must be at least 1");
        }
        if config.request_bytes > config.memory_bytes {
            return setting("a request may not be larger than the memory for all of them");
        }
        for (i, model) in models.iter().enumerate() {
            if models[..i].iter().any(|other| other.name == model.name) {
                return setting(&format!("two models are called {:?}; name each once", model.name));
            }
            if model.terms() == 0 || model.outputs() == 0 || model.weights.shape().len() > 2 {
                return setting(&format!("model {:?} is no vector and no matrix of weights", model.name));
            }
        }
        let listen = |source| Error::Listen { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let state = Arc::new(State {
            memory: Semaphore::new(config.memory_bytes / UNIT),
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
            let (router, limit) = (router.clone(), state.config.timeout);
            connections.spawn(async move {
                let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                    router.clone().oneshot(request.map(Body::new))
                });
                let served = hyper::server::conn::http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(Duration::from_secs(10))
                    .keep_alive(false)
                    .max_buf_size(64 << 10)
                    .serve_connection(TokioIo::new(stream), service);
                if timeout(limit, served).await.is_err() {
                    tracing::info!("a connection took longer than it may");
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
    Path(name): Path<String>,
    request: http::Request<Body>,
) -> Result<Response, Refusal> {
    let Some(model) = state.models.iter().position(|m| m.name == name) else {
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
    // What is read, and as much again for what is made of it, is taken from the budget before the first byte.
    let units = (2 * length).div_ceil(UNIT).clamp(1, state.config.memory_bytes / UNIT) as u32;
    let Ok(_memory) = state.memory.try_acquire_many(units) else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "others' requests fill the memory; ask again later");
    };
    let body = timeout(state.config.body_timeout, Limited::new(request.into_body(), length).collect());
    let body = match body.await {
        Err(_) => return refuse(StatusCode::REQUEST_TIMEOUT, "the body took too long; send it faster"),
        Ok(Err(_)) => {
            return refuse(StatusCode::BAD_REQUEST, "the body broke off, or is longer than it said");
        }
        Ok(Ok(body)) => body.to_bytes(),
    };
    let Ok(job) = state.jobs.clone().acquire_owned().await else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "the server stops");
    };
    let worker = state.clone();
    let result = tokio::task::spawn_blocking(move || {
        let _job = job;
        answer(&worker, &worker.models[model], &body)
    });
    match result.await {
        Ok(answer) => Ok(([(CONTENT_TYPE, "application/octet-stream")], answer?).into_response()),
        Err(_) => refuse(StatusCode::INTERNAL_SERVER_ERROR, "the request failed; others go on"),
    }
}

/// Ciphertexts of the scores.
fn answer(state: &State, model: &Model, body: &[u8]) -> Result<Vec<u8>, Refusal> {
    let bad = |why: String| Refusal(StatusCode::BAD_REQUEST, why);
    let unfit = |why: String| Refusal(StatusCode::UNPROCESSABLE_ENTITY, why);
    let start = std::time::Instant::now();
    let Some((length, rest)) = body.split_first_chunk::<4>() else {
        return Err(bad("the body is too short for a key's length".into()));
    };
    let length = u32::from_le_bytes(*length) as usize;
    if length > MAX_KEY_BYTES || length > rest.len() {
        return Err(bad(format!("a key of {length} bytes is too long, or the body is cut short")));
    }
    let (key, ciphertexts) = rest.split_at(length);
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
    let x = reader.read_all(evaluator.encryptor()).map_err(|e| unfit(e.to_string()))?;
    let scores = match model.weights.shape() {
        [_] => evaluator.dot(&x, &model.weights),
        _ => evaluator.matrix_vector(&model.weights, &x),
    };
    let scores = scores.and_then(|s| evaluator.rerandomise(&s)).map_err(|e| unfit(e.to_string()))?;
    let out = file::write(Vec::new(), &scores, evaluator.encryptor()).map_err(|e| unfit(e.to_string()))?;
    tracing::info!(
        model = model.name, key = %key.id(), rows, bytes_in = body.len(), bytes_out = out.len(),
        ms = start.elapsed().as_millis() as u64, "scored"
    );
    Ok(out)
}

impl State {
    /// The tables of a key, made anew unless they are kept.
    fn evaluator(&self, key: &PublicKey) -> Result<Arc<Evaluator>, blindcore_sum::encoding::Error> {
        let lock = || self.evaluators.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let kept = {
            let mut kept = lock();
            let at = kept.iter().position(|(id, _)| *id == key.id());
            at.and_then(|at| kept.remove(at)).inspect(|entry| kept.push_back(entry.clone()))
        };
        if let Some((_, evaluator)) = kept {
            return Ok(evaluator);
        }
        let evaluator = Arc::new(Evaluator::new(key, &*self.device)?);
        let mut kept = lock();
        kept.push_back((key.id(), evaluator.clone()));
        while kept.len() > self.config.keys {
            kept.pop_front();
        }
        Ok(evaluator)
    }
}
