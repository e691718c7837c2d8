//! The service mode of sum: models in the clear here, numbers that only clients can read.
//!
//! | request                        | answer                                                                        |
//! |--------------------------------|-------------------------------------------------------------------------------|
//! | `GET /v1/models`               | `{"models": [{"name", "outputs", "terms"}]}`                                  |
//! | `POST /v1/models/NAME/score`   | body as in [`blindcore_wire::score`], answer a file of ciphertexts, rerandomised                |
//! | `GET /livez`, `GET /readyz`    | 200; `/readyz` 503 while the server drains                                    |
//!
//! A refusal is `{"error": ..., "reason": ...}` under 400, 401, 404, 405, 408, 411, 413, 422, 429, 500 or 503.
//!
//! In front is what every service of this crate has: TLS, tokens, shares of connections and memory for each client, time, an
//! end that drains. Beyond it a body has to arrive steadily, a request's work is bounded, and it is computed in blocks of
//! results that take turns with those of others (`turns.rs`). Once a connection is gone, its job ends with the block
//! that it is at.

use std::collections::VecDeque;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State as Extract};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use blindcore_accel::Device;
use blindcore_sum::encoding::Form;
use blindcore_sum::evaluate::Evaluator;
use blindcore_sum::file;
use blindcore_sum::keys::{KeyId, Mode, PublicKey};
pub use blindcore_sum::model::Model;
use blindcore_wire::Reason;
use blindcore_wire::score::MAX_OUTPUTS;
use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use memmap2::{MmapMut, MmapOptions};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::admission::admit;
use crate::clients::Client;
use crate::clients::Peer;
use crate::config::check;
use crate::front::{self, Front};
use crate::permit::MemoryPermit;
use crate::refusal::{self, Refusal};
use crate::refusal::{answer, is_grpc};
use crate::serve::{self, Bound};
use crate::turns::{Turn, Turns};
use crate::{AccessFiles, Config, Error, Reloader};

/// Bytes of an answer that are handed over at a time.
const PIECE: usize = 1 << 16;
/// The work of a block of results, after which others have their turn: some tenths of a second.
const BLOCK_WORK: u64 = 1 << 20;
/// The most results of a block.
const BLOCK_RESULTS: u64 = 1024;
/// The most requests that are computed or wait for it: each that began has a thread of the runtime, which has 512.
const MAX_WAITING: usize = 256;

/// What a service may use.
#[derive(Clone, Debug)]
pub struct SumConfig {
    /// Where it listens, its certificates and tokens, and what clients may take. Limits of queries are limits of requests here;
    /// nothing is gathered, and there are no epochs.
    pub server: Config,
    /// What one request may cost, in multiplications modulo the n^2 of a 2048-bit key, as estimated from its shape and the
    /// key: a core does some three million per second.
    pub request_work: u64,
    /// Blocks of results that are computed at once.
    pub jobs: usize,
    /// Keys whose tables are kept.
    pub keys: usize,
    /// For a body to arrive.
    pub body_timeout: Duration,
    /// For the next piece of a body to arrive: what stands still for longer gives its memory back.
    pub body_stall: Duration,
    /// Takes keys of under 2048 bits.
    pub insecure_test_keys: bool,
}

impl Default for SumConfig {
    fn default() -> Self {
        Self {
            server: Config {
                listen: SocketAddr::from(([127, 0, 0, 1], 7710)),
                waiting_queries: MAX_WAITING,
                waiting_per_client: 32,
                request_timeout: Duration::from_secs(300),
                ..Config::default()
            },
            request_work: 100_000_000,
            jobs: 2,
            keys: 16,
            body_timeout: Duration::from_secs(30),
            body_stall: Duration::from_secs(5),
            insecure_test_keys: false,
        }
    }
}

struct State {
    front: Arc<Front>,
    config: SumConfig,
    device: Device,
    models: Vec<Model>,
    turns: Arc<Turns>,
    waiting: Arc<Semaphore>,
    /// Tables of keys, the last used at the end.
    evaluators: Mutex<VecDeque<(KeyId, Arc<Evaluator>)>>,
}

/// A service that listens; [`SumServer::run`] makes it answer.
pub struct SumServer {
    listener: TcpListener,
    address: SocketAddr,
    state: Arc<State>,
}

/// A refusal that HTTP has a word of its own for.
fn refuse<T>(reason: Reason, status: StatusCode, why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(reason, why).with_status(status))
}

/// What can't be read, or is not what it says.
fn bad(why: impl Into<String>) -> Refusal {
    Refusal::new(Reason::Malformed, why)
}

/// What can be read and not be scored.
fn unfit(why: impl Into<String>) -> Refusal {
    Refusal::new(Reason::WrongSize, why).with_status(StatusCode::UNPROCESSABLE_ENTITY)
}

impl SumServer {
    /// Listens.
    ///
    /// # Errors
    /// A setting is out of range, two models have one name, the address can't be had, or plain text would leave the machine.
    pub async fn bind(config: SumConfig, device: Device, models: Vec<Model>) -> Result<Self, Error> {
        let setting = |what: &str| Err(Error::Setting(what.to_owned()));
        if config.jobs == 0 || config.keys == 0 {
            return setting("jobs and keys must be at least 1");
        }
        config.server.check()?;
        check("jobs", config.jobs as u64, 1, Semaphore::MAX_PERMITS as u64, "compute fewer at once")?;
        for (what, got) in [
            ("waiting_queries", config.server.waiting_queries),
            ("waiting_per_client", config.server.waiting_per_client),
        ] {
            check(what, got as u64, 1, u64::MAX, "let some requests wait")?;
        }
        // A body, its residues and its answer: so that the largest request can be served.
        let share = config.server.memory_of_client();
        if config.server.request_bytes.checked_mul(4).is_none_or(|bytes| bytes > share) {
            return setting(&format!(
                "a request of {} B (request_mib) may take at most a quarter of a client's {share} B of memory (of request_memory_mib a \
                 quarter, or memory_mib_per_client); allow smaller requests, or more memory",
                config.server.request_bytes
            ));
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
            if model.outputs() > MAX_OUTPUTS {
                return setting(&format!(
                    "model {:?} has {} outputs, over the limit of {MAX_OUTPUTS} that clients take; serve it as several models",
                    model.name,
                    model.outputs()
                ));
            }
        }
        let listen = |source| Error::Listen { address: config.server.listen, source };
        let listener = Bound::take(config.server.listen)?.listen()?;
        let address = listener.local_addr().map_err(listen)?;
        serve::announce(&config.server, address);
        let state = Arc::new(State {
            front: Front::new(&config.server),
            turns: Turns::new(config.jobs),
            waiting: Arc::new(Semaphore::new(config.server.waiting_queries.clamp(1, MAX_WAITING))),
            evaluators: Mutex::default(),
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

    /// Has its certificates and tokens read again, from anywhere; they are those that the settings were
    /// [loaded](AccessFiles::load) from.
    #[must_use]
    pub fn reloader(&self, files: AccessFiles) -> Reloader {
        Reloader::new(files, self.state.front.clone(), None)
    }

    /// Answers until `shutdown` is done, then drains as [`Server::run`](crate::Server::run) does. Returns how many
    /// connections were cut.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> usize {
        let Self { listener, state, .. } = self;
        let router = Router::new()
            .route("/v1/models", get(list))
            .route("/v1/models/{name}/score", post(score))
            .layer(from_fn_with_state(state.front.clone(), admit))
            .route("/livez", get(async || "ok\n"))
            .route("/readyz", get(ready))
            .fallback(async |request: http::Request<Body>| {
                let grpc = is_grpc(&request);
                let why = match grpc {
                    true => "this service scores and has no tables; ask it with `blindcore sum score`",
                    false => "there is nothing here; GET /v1/models lists the models",
                };
                answer(Refusal::new(Reason::Malformed, why).with_status(StatusCode::NOT_FOUND), grpc)
            })
            .method_not_allowed_fallback(async || {
                let why = "models are listed by GET /v1/models and asked by POST /v1/models/NAME/score";
                Refusal::new(Reason::Malformed, why).with_status(StatusCode::METHOD_NOT_ALLOWED)
            })
            .layer(map_response(refusal::in_json))
            .with_state(state.clone());
        let cut = front::serve(&state.front, listener, router, shutdown).await;
        tracing::info!(cut, "drained");
        cut
    }
}

type Shared = Extract<Arc<State>>;

async fn ready(Extract(state): Shared) -> Response {
    if state.front.ready.load(Ordering::Relaxed) {
        return "ready\n".into_response();
    }
    Refusal::new(Reason::Draining, "the server is shutting down; use another one").into_response()
}

async fn list(Extract(state): Shared) -> Response {
    let models: Vec<_> = state
        .models
        .iter()
        .map(|m| json!({"name": m.name, "outputs": m.outputs(), "terms": m.terms()}))
        .collect();
    Json(json!({"models": models})).into_response()
}

/// Who asks, and from where.
struct Asker {
    client: Arc<Client>,
    from: IpAddr,
}

async fn score(
    Extract(state): Shared,
    Extension(held): Extension<Arc<MemoryPermit>>,
    Extension(client): Extension<Arc<Client>>,
    Extension(Peer(from)): Extension<Peer>,
    name: Result<Path<String>, PathRejection>,
    request: http::Request<Body>,
) -> Result<Response, Refusal> {
    let asker = Arc::new(Asker { client, from });
    let model = name.ok().and_then(|Path(name)| state.models.iter().position(|m| m.name == name));
    scored(&state, held, &asker, model, request).await.map_err(|refusal| {
        tracing::info!(client = asker.client.name, %from, why = refusal.message(), "not scored");
        state.front.refused(refusal)
    })
}

async fn scored(
    state: &Arc<State>,
    held: Arc<MemoryPermit>,
    asker: &Arc<Asker>,
    model: Option<usize>,
    request: http::Request<Body>,
) -> Result<Response, Refusal> {
    let Some(model) = model else {
        let why = "there is no such model; GET /v1/models lists them";
        return refuse(Reason::Malformed, StatusCode::NOT_FOUND, why);
    };
    let length = request.headers().get(CONTENT_LENGTH).and_then(|l| l.to_str().ok()?.parse::<usize>().ok());
    let Some(length) = length else {
        let why = "say how long the body is, in Content-Length";
        return refuse(Reason::Malformed, StatusCode::LENGTH_REQUIRED, why);
    };
    let limit = state.config.server.request_bytes;
    if length > limit {
        let why = format!("{length} bytes are over the {limit} of a request; send fewer rows");
        return Err(Refusal::new(Reason::TooLarge, why));
    }
    let late = |_| Refusal::new(Reason::TimedOut, "the body took too long; send it faster");
    let body = collect(request.into_body(), length, state.config.body_stall);
    let body = timeout(state.config.body_timeout, body).await.map_err(late)??;
    let waiting = asker.client.ask(1)?;
    let Ok(place) = state.waiting.clone().try_acquire_owned() else {
        return Err(Refusal::new(Reason::Busy, "as many requests wait as may; ask again later"));
    };
    let turn = state.turns.wait(asker.client.number).await;
    let gone = Gone(Arc::new(AtomicBool::new(false)));
    let job = Job { state: state.clone(), asker: asker.clone(), model, held, stop: gone.0.clone() };
    let runtime = Handle::current();
    let result = tokio::task::spawn_blocking(move || {
        let _while_it_runs = (waiting, place);
        job.answer(&body, turn, &runtime)
    });
    match result.await {
        Ok(answer) => {
            let body = Body::new(Pieces(answer?.into()));
            Ok(([(CONTENT_TYPE, "application/octet-stream")], body).into_response())
        }
        Err(_) => Err(Refusal::new(Reason::Internal, "the request failed; others go on")),
    }
}

/// Tells a job that nobody waits for it any more, once the request is dropped.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
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

/// A body in memory of its own, which goes back to the system with it: what is freed of a heap stays with the process while its
/// neighbours live, and slow bodies of many clients would leave several times of what they are counted with.
struct Arrived {
    bytes: MmapMut,
    length: usize,
}

impl Arrived {
    /// Room for a body, of which only what comes takes memory.
    fn new(most: usize) -> Result<Self, Refusal> {
        let none =
            |_| Refusal::new(Reason::Busy, "the server has no memory for this body now; ask again later");
        let bytes = MmapOptions::new().len(most.max(1)).no_reserve_swap().map_anon().map_err(none)?;
        Ok(Self { bytes, length: 0 })
    }
}

impl Deref for Arrived {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Reads a body of at most `length` bytes; each was paid for when it came, and none may keep the others waiting.
async fn collect(mut body: Body, length: usize, stall: Duration) -> Result<Arrived, Refusal> {
    let mut out = Arrived::new(length)?;
    let still = |_| Refusal::new(Reason::TimedOut, "the body stood still; send it faster");
    while let Some(frame) = timeout(stall, body.frame()).await.map_err(still)? {
        let frame = frame.map_err(|error| {
            let broken = || bad("the body broke off; send the request again");
            Refusal::find(&error).unwrap_or_else(broken)
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if out.length + data.len() > length {
            return Err(bad("the body is longer than it said"));
        }
        out.bytes[out.length..][..data.len()].copy_from_slice(&data);
        out.length += data.len();
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

/// A request that is computed.
struct Job {
    state: Arc<State>,
    asker: Arc<Asker>,
    model: usize,
    held: Arc<MemoryPermit>,
    /// Set once nobody waits for it.
    stop: Arc<AtomicBool>,
}

impl Job {
    /// Ciphertexts of the scores, a block a turn; nothing that anybody reads once it is to stop.
    fn answer(&self, body: &[u8], turn: Turn, runtime: &Handle) -> Result<Vec<u8>, Refusal> {
        let Self { state, asker, model, held, stop } = self;
        let (model, from, client) = (&state.models[*model], asker.from, &asker.client);
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
            let (terms, numbers) = if want == 1 { ("term", "number") } else { ("terms", "numbers") };
            return Err(unfit(format!(
                "rows of shape {got:?} where the model has {want} {terms}; send rows of {want} {numbers}, or ask for another model"
            )));
        }
        let rows = reader.count() as usize / model.terms();
        let answer_bytes = rows.saturating_mul(model.outputs()).saturating_mul(8 * key.ciphertext_words());
        if answer_bytes > state.config.server.request_bytes {
            let limit = state.config.server.request_bytes;
            return Err(unfit(format!(
                "{answer_bytes} bytes of scores are over the {limit} of an answer; send fewer rows"
            )));
        }
        let each = result_work(&key, model, &reader.header().form).max(1);
        let results = (rows as u64).saturating_mul(model.outputs() as u64);
        // Checking a ciphertext takes about four.
        let work =
            results.saturating_mul(each).saturating_add(scaled(&key, reader.count().saturating_mul(4)));
        let limit = state.config.request_work;
        if work > limit {
            return Err(unfit(format!(
                "{results} scores under this key take about {work} multiplications, over the {limit} of a request; send fewer \
             rows, or use a key of another mode or of fewer bits"
            )));
        }
        // What the ciphertexts take in the device's form, and the answer with its digests.
        let room = answer_bytes + answer_bytes / 64 + (1 << 10);
        held.take(ciphertexts.len() + ciphertexts.len() / 2)?;
        held.take(room)?;

        let x = reader.read_all(evaluator.encryptor()).map_err(|e| unfit(e.to_string()))?;
        let block = (BLOCK_WORK / each).clamp(1, BLOCK_RESULTS) as usize;
        let (form, mut blocks) = evaluator
            .weigh_in_blocks(&x, &model.weights, model.bias.as_ref(), block)
            .map_err(|e| unfit(e.to_string()))?;
        let header = file::Header { key: key.id(), key_bits: key.bits(), form };
        let mut writer =
            file::Writer::new(Vec::with_capacity(room), &header).map_err(|e| unfit(e.to_string()))?;
        let (mut turn, mut left) = (Some(turn), results);
        while left > 0 {
            turn.get_or_insert_with(|| runtime.block_on(state.turns.wait(client.number)));
            if stop.load(Ordering::Relaxed) {
                tracing::info!(client = client.name, %from, model = model.name, rows, "nobody waits any more");
                return Err(Refusal::new(Reason::Busy, "the request was given up"));
            }
            let Some(numbers) = blocks.next() else { break };
            turn = None;
            let numbers = numbers.map_err(|e| unfit(e.to_string()))?;
            left = left.saturating_sub(numbers.len() as u64);
            writer.write(&numbers).map_err(|e| unfit(e.to_string()))?;
        }
        let bytes = writer.finish().map_err(|e| unfit(e.to_string()))?;
        tracing::info!(
            client = client.name, %from, model = model.name, key = %key.id(), rows, bytes_in = body.len(), bytes_out = bytes.len(),
            ms = start.elapsed().as_millis() as u64, "scored"
        );
        // What it was made from is gone.
        held.keep(room);
        Ok(bytes)
    }
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
