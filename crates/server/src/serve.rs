//! Connections: accepted up to a limit, closed when they stand still, drained at the end.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State as Extract;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::{Extension, Router};
use blindcore_wire::proto::lookup_server::{LookupServer, SERVICE_NAME};
use blindcore_wire::{PartKind, Reason};
use http::Request;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at};
use tower::ServiceExt;

use crate::activity::Activity;
use crate::admission::{self, Peer, is_grpc};
use crate::grpc::Grpc;
use crate::permit::{MemoryPermit, Metered};
use crate::refusal::Refusal;
use crate::state::State;
use crate::stats::add;
use crate::{Config, Error, Stats, Table, Tokens, connection, http as http_face, metrics, tls};

/// What can be changed of a server while it runs, from anywhere.
#[derive(Clone)]
pub struct Handle(Arc<State>);

impl Handle {
    /// Encrypts connections from now on with these certificates; those that are open keep theirs. Without effect on a
    /// server that was started without TLS: it doesn't become another kind of server under its clients.
    pub fn set_tls(&self, tls: Arc<rustls::ServerConfig>) {
        self.0.access.set_tls(tls);
    }

    /// Answers from now on to these tokens alone, also on connections that are open. Without effect on a server that was
    /// started without tokens.
    pub fn set_tokens(&self, tokens: Arc<Tokens>) {
        self.0.access.set_tokens(tokens);
    }

    /// Counts that certificates, tokens or tables were read again, or could not be.
    pub fn reloaded(&self, done: bool) {
        add(if done { &self.0.totals.reloads } else { &self.0.totals.reloads_failed }, 1);
    }

    /// Whether a part of a table's newest epoch is known not to be served: its last pass failed, or its hint does.
    #[must_use]
    pub fn fails(&self, table: &str, part: PartKind) -> bool {
        let table = self.0.table(table, None).ok();
        table.is_some_and(|table| table.part(part).is_some_and(|part| part.fails()))
    }

    /// Serves a table from now on: a new one, or a new epoch of one that is served, whose base it may share.
    /// Requests for the epochs before are answered until nobody sent one for [`Config::epoch_linger`].
    ///
    /// # Errors
    /// A part is missing, or a limit of the configuration is too small for it. Nothing changes then.
    pub fn publish(&self, table: Table) -> Result<(), Error> {
        self.0.publish(table)
    }
}

/// A server that listens; [`Server::run`] makes it answer.
pub struct Server {
    config: Config,
    listener: TcpListener,
    address: SocketAddr,
    metrics: Option<TcpListener>,
    state: Arc<State>,
}

impl Server {
    /// Checks the settings, starts a thread for each part of each table, and listens.
    ///
    /// # Errors
    /// A setting is out of range, two tables have one name, the address can't be had, or plain text would leave the
    /// machine.
    pub async fn bind(config: Config, tables: Vec<Table>) -> Result<Self, Error> {
        let state = Arc::new(State::new(&config, tables)?);
        let listener = listen(config.listen).await?;
        let address =
            listener.local_addr().map_err(|source| Error::Listen { address: config.listen, source })?;
        let metrics = match config.metrics {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        Ok(Self { config, listener, address, metrics, state })
    }

    /// Where it listens: the port that was free, if port 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it answers `GET /metrics`, if it does.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().and_then(|m| m.local_addr().ok())
    }

    /// Its counters, which outlive it.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.state.stats()
    }

    /// What can be changed while it runs.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle(self.state.clone())
    }

    /// Answers until `shutdown` is done, then drains: `/readyz` says no for [`Config::drain_delay`], then new
    /// connections are refused, and requests have [`Config::grace`] to finish. Returns how many connections
    /// were cut after that.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> usize {
        let Self { config, listener, metrics, state, .. } = self;
        let config = Arc::new(config);
        let router = router(&state, config.request_timeout);
        let (drain, draining) = watch::channel(false);
        let slots = Arc::new(Semaphore::new(state.connections.sockets()));
        let metrics = metrics.map(|listener| tokio::spawn(metrics::serve(listener, state.clone())));
        let mut connections = JoinSet::new();
        let (ready, tables) = (state.clone(), state.clone());
        let mut forgetting = interval((config.epoch_linger / 4).max(Duration::from_millis(100)));
        forgetting.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut shutdown = pin!(async {
            shutdown.await;
            ready.ready.store(false, Ordering::Relaxed);
            tracing::info!("draining");
            sleep(config.drain_delay).await;
        });
        loop {
            let accepted = tokio::select! {
                () = &mut shutdown => break,
                Some(_) = connections.join_next() => continue,
                _ = forgetting.tick() => {
                    tables.forget();
                    continue;
                }
                accepted = async {
                    let slot = slots.clone().acquire_owned().await.ok();
                    (slot, listener.accept().await)
                } => accepted,
            };
            match accepted {
                (slot, Ok((stream, peer))) => {
                    let activity = Activity::new();
                    let place = match state.connections.admit(peer.ip(), activity.clone()) {
                        Ok((place, cut)) => {
                            add(&state.totals.connections, 1);
                            add(&state.totals.cut, cut.into());
                            place
                        }
                        Err(why) => {
                            add(&state.totals.not_taken, 1);
                            tracing::debug!(?why, "a connection is not taken");
                            continue;
                        }
                    };
                    let (state, router, config) = (state.clone(), router.clone(), config.clone());
                    let draining = draining.clone();
                    connections.spawn(async move {
                        let _ = stream.set_nodelay(true);
                        let peer = Peer(peer.ip());
                        let served = async {
                            match state.access.tls() {
                                None => {
                                    converse(stream, peer, activity, state, router, config, draining).await
                                }
                                Some(tls) => match tls::accept(stream, tls, config.header_timeout).await {
                                    Ok(stream) => {
                                        converse(stream, peer, activity, state, router, config, draining)
                                            .await;
                                    }
                                    Err(error) => {
                                        add(&state.totals.handshakes_failed, 1);
                                        tracing::debug!(%error, "handshake");
                                    }
                                },
                            }
                        };
                        tokio::select! {
                            () = served => {}
                            () = place.cut.notified() => {}
                        }
                        drop((place, slot));
                    });
                }
                (_, Err(error)) => {
                    // Out of files, most likely: others may free some.
                    tracing::warn!(%error, "can't accept a connection");
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
        drop(listener);
        let _ = drain.send(true);
        let end = Instant::now() + config.grace;
        while let Ok(Some(_)) = timeout_at(end, connections.join_next()).await {}
        let cut = connections.len();
        connections.shutdown().await;
        // Until the end, so that draining can be watched.
        if let Some(metrics) = metrics {
            metrics.abort();
        }
        tracing::info!(cut, "drained");
        cut
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| Error::Listen { address, source })
}

fn router(state: &Arc<State>, request_timeout: Duration) -> Router {
    let grpc = {
        let state = state.clone();
        // Made for each request: the largest that is allowed may grow with an epoch.
        tower::service_fn(move |request: Request<Body>| {
            LookupServer::new(Grpc(state.clone()))
                .max_decoding_message_size(state.request_bytes())
                .max_encoding_message_size(usize::MAX)
                .oneshot(request)
        })
    };
    let grpc = Router::new()
        .route_service(&format!("/{SERVICE_NAME}/{{*method}}"), grpc)
        .layer(from_fn_with_state(state.clone(), admission::admit));
    let metered = from_fn_with_state((state.clone(), request_timeout), metered);
    http_face::router(state.clone()).merge(grpc).layer(metered)
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    activity: Arc<Activity>,
    state: Arc<State>,
    router: Router,
    config: Arc<Config>,
    mut draining: watch::Receiver<bool>,
) {
    let caller = Caller { peer, activity: activity.clone() };
    let service = router.map_request(move |request: Request<_>| {
        caller.activity.touch();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(caller.clone());
        request
    });
    let builder = connection::any_http(&config);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)));
    // A request that is being computed is quiet and no stall.
    let idle = config.idle_timeout.max(config.request_timeout + Duration::from_secs(1));
    let period = (config.header_timeout.min(idle) / 4).max(Duration::from_millis(10));
    let mut tick = interval(period);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut told, mut warned) = (false, false);
    loop {
        tokio::select! {
            result = served.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(%error, "connection");
                }
                return;
            }
            _ = draining.wait_for(|d| *d), if !told => {
                told = true;
                served.as_mut().graceful_shutdown();
            }
            _ = tick.tick() => {
                if activity.stalled(config.header_timeout, idle) {
                    if warned {
                        return;
                    }
                    // Asked once to leave, closed at the next tick.
                    warned = true;
                    add(&state.totals.stalled, 1);
                    served.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

/// The connection that a request came by.
#[derive(Clone)]
struct Caller {
    peer: Peer,
    activity: Arc<Activity>,
}

/// One request: its memory is counted, its time is bounded.
async fn metered(
    Extract((state, limit)): Extract<(Arc<State>, Duration)>,
    Extension(Caller { peer, activity }): Extension<Caller>,
    request: Request<Body>,
    next: Next,
) -> Response {
    let grpc = is_grpc(&request);
    let held = MemoryPermit::new(state.budget.clone());
    let mut request = request.map(|body| Body::new(Metered::request(body, held.clone(), activity.clone())));
    request.extensions_mut().insert(held.clone());
    request.extensions_mut().insert(peer);
    let response = timeout(limit, next.run(request)).await.unwrap_or_else(|_| {
        let refusal = state.refused(Refusal::new(
            Reason::TimedOut,
            format!("the request took longer than {} ms; send it faster, or ask later", limit.as_millis()),
        ));
        admission::answer(refusal, grpc)
    });
    activity.touch();
    response.map(|body| Body::new(Metered::answer(body, held, activity)))
}
