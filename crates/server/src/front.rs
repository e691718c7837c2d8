//! What every service has in front, whatever it answers: one listener with TLS, tokens, shares of connections, memory and
//! time for each client, and an end that lets requests finish.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State as Extract;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::{Extension, Router};
use blindcore_wire::Reason;
use http::Request;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tower::ServiceExt;

use crate::access::Access;
use crate::activity::{Activity, Owed};
use crate::clients::Peer;
use crate::clients::{Clients, Connections};
use crate::permit::{MemoryBudget, MemoryPermit, Metered};
use crate::refusal::Refusal;
use crate::refusal::{answer, is_grpc};
use crate::stats::{TotalCounters, add};
use crate::unread::ReadToItsEnd;
use crate::{Config, connection, open_files, tls};

/// What a service lets in, and what that takes.
pub(crate) struct Front {
    pub(crate) config: Config,
    pub(crate) budget: Arc<MemoryBudget>,
    pub(crate) ready: AtomicBool,
    pub(crate) access: Access,
    pub(crate) clients: Clients,
    pub(crate) connections: Arc<Connections>,
    pub(crate) totals: Arc<TotalCounters>,
}

impl Front {
    pub(crate) fn new(config: &Config) -> Arc<Self> {
        let config = open_files::fitted(config);
        Arc::new(Self {
            budget: MemoryBudget::new(config.memory_bytes),
            ready: AtomicBool::new(true),
            access: Access::new(&config),
            clients: Clients::new(&config),
            connections: Connections::new(&config),
            totals: Arc::default(),
            config,
        })
    }

    /// Every request that is refused passes here once.
    pub(crate) fn refused(&self, refusal: Refusal) -> Refusal {
        add(&self.totals.refused, 1);
        add(&self.totals.refusals[refusal.reason as usize], 1);
        tracing::info!(reason = refusal.reason.as_str(), "refused");
        refusal
    }

    /// Counts that certificates, tokens or tables were read again, or could not be.
    pub(crate) fn reloaded(&self, done: bool) {
        add(if done { &self.totals.reloads } else { &self.totals.reloads_failed }, 1);
    }
}

/// Answers with `router` until `shutdown` is done, then drains: `/readyz` says no for [`Config::drain_delay`], then new
/// connections are refused, and requests have [`Config::grace`] to finish. Returns how many connections were cut after that.
pub(crate) async fn serve(
    front: &Arc<Front>,
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()>,
) -> usize {
    let router = router.layer(from_fn_with_state(front.clone(), metered));
    let (drain, draining) = watch::channel(false);
    let slots = Arc::new(Semaphore::new(front.connections.sockets()));
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(async {
        shutdown.await;
        front.ready.store(false, Ordering::Relaxed);
        tracing::info!("draining");
        sleep(front.config.drain_delay).await;
    });
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => continue,
            accepted = async {
                let slot = slots.clone().acquire_owned().await.ok();
                (slot, listener.accept().await)
            } => accepted,
        };
        match accepted {
            (slot, Ok((stream, peer))) => {
                let activity = Activity::new();
                let place = match front.connections.admit(peer.ip(), activity.clone()) {
                    Ok((place, cut)) => {
                        add(&front.totals.connections, 1);
                        add(&front.totals.cut, cut.into());
                        place
                    }
                    Err(why) => {
                        add(&front.totals.not_taken, 1);
                        tracing::debug!(?why, "a connection is not taken");
                        continue;
                    }
                };
                let (front, router) = (front.clone(), router.clone());
                let draining = draining.clone();
                connections.spawn(async move {
                    let _ = stream.set_nodelay(true);
                    let peer = Peer(peer.ip());
                    let served = async {
                        match front.access.tls() {
                            None => converse(stream, peer, activity, front, router, draining).await,
                            Some(tls) => match tls::accept(stream, tls, front.config.header_timeout).await {
                                Ok(stream) => {
                                    converse(stream, peer, activity, front, router, draining).await;
                                }
                                Err(error) => {
                                    add(&front.totals.handshakes_failed, 1);
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
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(front.config.grace, all).await;
    let cut = connections.len();
    connections.shutdown().await;
    if cut > 0 {
        tracing::warn!(cut, "connections did not finish in time and were cut");
    }
    cut
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    activity: Arc<Activity>,
    front: Arc<Front>,
    router: Router,
    mut draining: watch::Receiver<bool>,
) {
    let caller = Caller { peer, activity: activity.clone() };
    let service = router.map_request(move |request: Request<_>| {
        caller.activity.touch();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(caller.clone());
        request
    });
    let config = &front.config;
    let builder = connection::any_http(config);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)));
    let idle = config.idle_timeout;
    // A request that is being computed is quiet and no stall.
    let working = idle.max(config.request_timeout + Duration::from_secs(1));
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
                let limit = if activity.owes() { working } else { idle };
                if activity.stalled(config.header_timeout, limit) {
                    if warned {
                        return;
                    }
                    // Asked once to leave, closed at the next tick.
                    warned = true;
                    add(&front.totals.stalled, 1);
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
    Extract(front): Extract<Arc<Front>>,
    Extension(Caller { peer, activity }): Extension<Caller>,
    request: Request<Body>,
    next: Next,
) -> Response {
    let grpc = is_grpc(&request);
    let held = MemoryPermit::new(front.budget.clone());
    let (owed, limit) = (Owed::new(activity), front.config.request_timeout);
    let mut request =
        request.map(|body| Body::new(Metered::request(ReadToItsEnd::new(body), held.clone(), owed.clone())));
    request.extensions_mut().insert(held.clone());
    request.extensions_mut().insert(peer);
    let response = timeout(limit, next.run(request)).await.unwrap_or_else(|_| {
        let refusal = front.refused(Refusal::new(
            Reason::TimedOut,
            format!(
                "the request took longer than {} s; send it faster or ask later, or raise request_seconds in the server's [limits]",
                limit.as_secs_f64()
            ),
        ));
        answer(refusal, grpc)
    });
    owed.due();
    response.map(|body| Body::new(Metered::answer(body, held, owed)))
}
