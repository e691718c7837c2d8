//! The lookup server: its tables behind the front.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::middleware::from_fn_with_state;
use blindcore_wire::PartKind;
use blindcore_wire::proto::lookup_server::{LookupServer, SERVICE_NAME};
use http::Request;
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::{MissedTickBehavior, interval};
use tower::ServiceExt;

use crate::grpc::Grpc;
use crate::state::State;
use crate::{Config, Error, Stats, Table, Tokens, admission, front, http as http_face, metrics};

/// What can be changed of a server while it runs, from anywhere.
#[derive(Clone)]
pub struct Handle(Arc<State>);

impl Handle {
    /// Encrypts connections from now on with these certificates; those that are open keep theirs. Without effect on a
    /// server that was started without TLS: it doesn't become another kind of server under its clients.
    pub fn set_tls(&self, tls: Arc<rustls::ServerConfig>) {
        self.0.front.access.set_tls(tls);
    }

    /// Answers from now on to these tokens alone, also on connections that are open. Without effect on a server that was
    /// started without tokens.
    pub fn set_tokens(&self, tokens: Arc<Tokens>) {
        self.0.front.access.set_tokens(tokens);
    }

    /// Counts that certificates, tokens or tables were read again, or could not be.
    pub fn reloaded(&self, done: bool) {
        self.0.front.reloaded(done);
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

/// Says in the log where it listens, and whether everybody on the way reads along.
pub(crate) fn announce(config: &Config, address: SocketAddr) {
    let encrypted = config.tls.is_some();
    if !encrypted && !address.ip().is_loopback() {
        tracing::warn!("the transport is plain text: everybody on the way can read and change it");
    }
    tracing::info!("listening on {}://{address}", if encrypted { "https" } else { "http" });
}

/// A server that listens; [`Server::run`] makes it answer.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    metrics: Option<TcpListener>,
    state: Arc<State>,
}

impl Server {
    /// Checks the settings, takes its addresses, starts a thread for each part of each table, and listens.
    ///
    /// # Errors
    /// A setting is out of range, two tables have one name, the address can't be had, or plain text would leave the
    /// machine.
    pub async fn bind(config: Config, tables: Vec<Table>) -> Result<Self, Error> {
        let sockets = Sockets::take(&config)?;
        Self::listen(sockets, &config, tables)
    }

    /// Listens where it was bound before.
    pub(crate) fn listen(sockets: Sockets, config: &Config, tables: Vec<Table>) -> Result<Self, Error> {
        let state = Arc::new(State::new(config, tables)?);
        let listener = sockets.own.listen()?;
        let address =
            listener.local_addr().map_err(|source| Error::Listen { address: config.listen, source })?;
        let metrics = sockets.metrics.map(Bound::listen).transpose()?;
        Ok(Self { listener, address, metrics, state })
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

    pub(crate) fn front(&self) -> Arc<front::Front> {
        self.state.front.clone()
    }

    /// What can be changed while it runs.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle(self.state.clone())
    }

    /// Answers until `shutdown` is done, then drains: `/readyz` says no for [`Config::drain_delay`], then new
    /// connections are refused, and requests have [`Config::grace`] to finish. The folder of registered keys is another
    /// server's to take then. Returns how many connections were cut after that grace.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> usize {
        let Self { listener, metrics, state, .. } = self;
        let metrics = metrics.map(|listener| tokio::spawn(metrics::serve(listener, state.clone())));
        let mut forgetting = interval((state.front.config.epoch_linger / 4).max(Duration::from_millis(100)));
        forgetting.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let forgets = async {
            loop {
                forgetting.tick().await;
                state.forget();
                state.expire_keys().await;
            }
        };
        let cut = tokio::select! {
            cut = front::serve(&state.front, listener, router(&state), shutdown) => cut,
            () = forgets => 0,
        };
        // Until the end, so that draining can be watched.
        if let Some(metrics) = metrics {
            metrics.abort();
        }
        // Requests that were cut may still be at work for a moment.
        state.close_keys().await;
        tracing::info!(cut, "drained");
        cut
    }
}

/// An address that is this process's, and nobody is answered at yet: so that a port in use is noticed before
/// anything is loaded, and nobody who comes meanwhile waits.
pub(crate) struct Bound {
    socket: TcpSocket,
    address: SocketAddr,
}

impl Bound {
    pub(crate) fn take(address: SocketAddr) -> Result<Self, Error> {
        let bind = || {
            let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            // As the standard library does where a port that was just left is taken again at once, and not two at a time.
            #[cfg(unix)]
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            Ok(socket)
        };
        bind().map(|socket| Self { socket, address }).map_err(|source| Error::Listen { address, source })
    }

    pub(crate) fn listen(self) -> Result<TcpListener, Error> {
        let Self { socket, address } = self;
        socket.listen(1024).map_err(|source| Error::Listen { address, source })
    }
}

/// All addresses of a server.
pub(crate) struct Sockets {
    own: Bound,
    metrics: Option<Bound>,
}

impl Sockets {
    pub(crate) fn take(config: &Config) -> Result<Self, Error> {
        Ok(Self { own: Bound::take(config.listen)?, metrics: config.metrics.map(Bound::take).transpose()? })
    }
}

fn router(state: &Arc<State>) -> Router {
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
        .layer(from_fn_with_state(state.front.clone(), admission::admit));
    http_face::router(state.clone()).merge(grpc)
}
