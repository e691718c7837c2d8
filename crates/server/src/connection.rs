//! How connections speak HTTP: axum's routers on hyper's protocols, as `axum::serve` runs them, with limits that
//! `axum::serve` does not offer. The only place of this crate that sets a protocol's limits.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tower::ServiceExt;

use crate::Config;

/// Bytes that a client may send of one request before anybody reads them.
const STREAM_WINDOW: u32 = 512 << 10;
/// The same of one connection.
const CONNECTION_WINDOW: u32 = 1 << 20;
/// Bytes of one answer that wait for their client to read.
const SEND_BYTES: usize = 256 << 10;
/// Bytes of a request's head in HTTP/2.
const HEAD_BYTES: u32 = 16 << 10;
/// The same in HTTP/1.1, with what of its body comes along.
const BUFFER_BYTES: usize = 64 << 10;

/// HTTP/1.1 and HTTP/2, request after request.
pub(crate) fn any_http(config: &Config) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(config.header_timeout)
        .max_buf_size(BUFFER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(config.streams_per_connection)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEAD_BYTES)
        .max_send_buf_size(SEND_BYTES)
        .keep_alive_interval(config.idle_timeout / 4)
        .keep_alive_timeout(config.header_timeout);
    builder
}

/// Serves one HTTP/1.1 request, whose head must come within `header_timeout`; each handler finds `extension` with it.
pub(crate) async fn one_request<T: Clone + Send + Sync + 'static>(
    stream: TcpStream,
    router: Router,
    header_timeout: Duration,
    extension: T,
) {
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .keep_alive(false)
        .max_buf_size(BUFFER_BYTES);
    let service = router.map_request(move |request: Request<_>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(extension.clone());
        request
    });
    if let Err(error) =
        builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)).await
    {
        tracing::debug!(error, "connection");
    }
}
