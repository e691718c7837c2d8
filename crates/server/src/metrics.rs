//! `GET /metrics`: what a server does, for Prometheus. Nothing in it depends on the content of a query or on its client.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State as Extract};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use blindcore_wire::PartKind;
use http::StatusCode;
use http::header::{ALLOW, CONTENT_TYPE};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::connection;
use crate::state::State;
use crate::stats::{Histogram, PartCounters};

/// Connections at a time.
const CONNECTIONS: usize = 64;
/// How long a request's head may take.
const HEAD: Duration = Duration::from_secs(3);
/// How long one scrape may take.
const SCRAPE: Duration = Duration::from_secs(10);

/// One connection.
#[derive(Default)]
struct Place {
    /// Whether its request came.
    asked: AtomicBool,
    cut: Notify,
}

/// Those there are, the oldest first. A new one is always taken, so that connections that stand still keep no scrape out.
#[derive(Default)]
struct Places(Mutex<VecDeque<Arc<Place>>>);

impl Places {
    fn all(&self) -> MutexGuard<'_, VecDeque<Arc<Place>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place; where all are taken that of the oldest connection that has not asked yet, or else of the oldest.
    fn take(&self) -> Arc<Place> {
        let mut all = self.all();
        if all.len() >= CONNECTIONS {
            let silent = all.iter().position(|place| !place.asked.load(Ordering::Relaxed));
            if let Some(place) = all.remove(silent.unwrap_or(0)) {
                place.cut.notify_one();
            }
        }
        let place = Arc::new(Place::default());
        all.push_back(place.clone());
        place
    }

    fn leave(&self, place: &Arc<Place>) {
        self.all().retain(|other| !Arc::ptr_eq(other, place));
    }
}

async fn asked(Extension(place): Extension<Arc<Place>>, request: Request, next: Next) -> Response {
    place.asked.store(true, Ordering::Relaxed);
    next.run(request).await
}

/// Answers scrapes, one request on each connection, until it is dropped.
pub(crate) async fn serve(listener: TcpListener, state: Arc<State>) {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Collected(state)));
    let router = Router::new()
        .route("/metrics", get(scrape))
        .fallback(async || (StatusCode::NOT_FOUND, "there is nothing here but /metrics\n"))
        .method_not_allowed_fallback(async || {
            (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "GET, HEAD")], "only GET is understood\n")
        })
        .with_state(Arc::new(registry));
    answer(listener, router, HEAD, SCRAPE).await;
}

/// Answers one request on each connection, whose head and whole may take so long.
async fn answer(listener: TcpListener, router: Router, head: Duration, whole: Duration) {
    let router = router.layer(from_fn(asked));
    let places = Arc::new(Places::default());
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (router, places) = (router.clone(), places.clone());
        let place = places.take();
        tokio::spawn(async move {
            tokio::select! {
                _ = timeout(whole, connection::one_request(stream, router, head, place.clone())) => {}
                () = place.cut.notified() => {}
            }
            places.leave(&place);
        });
    }
}

async fn scrape(Extract(registry): Extract<Arc<Registry>>) -> Response {
    let mut out = String::new();
    if text::encode(&mut out, &registry).is_err() {
        return (StatusCode::INTERNAL_SERVER_ERROR, "the counters can't be written\n").into_response();
    }
    ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], out).into_response()
}

/// The server's own counters, written when they are scraped.
struct Collected(Arc<State>);

impl fmt::Debug for Collected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Collected")
    }
}

impl Collector for Collected {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let state = &*self.0;
        let mut out = Out(encoder);
        out.0
            .encode_descriptor("blindcore_build", "What serves", None, MetricType::Info)?
            .encode_info(&[("version", env!("CARGO_PKG_VERSION"))])?;
        let ready = state.front.ready.load(Ordering::Relaxed) && state.failing() == 0;
        out.gauge("blindcore_ready", "1 but where /readyz says no", ready.into())?;

        let stats = state.stats();
        let totals = stats.totals();
        let help = "Connections accepted";
        out.counter("blindcore_connections", help, totals.connections)?;
        out.gauge(
            "blindcore_connections_open",
            "Connections that are open",
            state.front.connections.len() as u64,
        )?;
        let help = "Connections closed because they stood still";
        out.counter("blindcore_connections_stalled", help, totals.stalled)?;
        let help = "Connections closed for those of addresses that had fewer";
        out.counter("blindcore_connections_cut", help, totals.cut)?;
        let help = "Connections not taken, for their address or the server had all that it may have";
        out.counter("blindcore_connections_refused", help, totals.not_taken)?;
        let help = "Connections whose TLS handshake failed or took too long";
        out.counter("blindcore_handshakes_failed", help, totals.handshakes_failed)?;
        let help = "Clients that are remembered, by token or address";
        out.gauge("blindcore_clients", help, state.front.clients.len() as u64)?;
        let help = "Times that certificates, tokens or tables were read again";
        out.counter("blindcore_reloads", help, totals.reloads)?;
        let help = "Times that they could not be read, and stayed as they were";
        out.counter("blindcore_reloads_failed", help, totals.reloads_failed)?;
        let mut refusals =
            out.0.encode_descriptor("blindcore_refusals", "Requests refused", None, MetricType::Counter)?;
        for (reason, n) in stats.refusals() {
            count(refusals.encode_family(&[("reason", reason.as_str())])?, n)?;
        }

        let keys = stats.keys();
        for (name, help, n) in [
            ("blindcore_keys_registered", "Sets of keys that clients registered", keys.registered),
            ("blindcore_keys_registered_again", "Registrations of keys that were there already", keys.again),
            ("blindcore_keys_evicted", "Sets of keys that went because others came", keys.evicted),
            ("blindcore_keys_expired", "Sets of keys that went because nobody used them", keys.expired),
            ("blindcore_keys_refused", "Registrations refused, because what came was no keys", keys.refused),
            ("blindcore_keys_damaged", "Sets of keys that could not be read any more", keys.damaged),
            ("blindcore_keys_unknown", "Requests refused for keys that are not there", keys.unknown),
        ] {
            out.counter(name, help, n)?;
        }
        out.gauge("blindcore_keys", "Sets of registered keys", keys.sets)?;
        out.gauge("blindcore_keys_bytes", "Bytes of registered keys", keys.bytes)?;
        let help = "Memory of registered keys that are ready for use";
        out.gauge("blindcore_keys_ready_bytes", help, keys.ready_bytes)?;

        let (used, limit) = state.front.budget.used();
        let help = "Memory that requests and answers take";
        out.gauge("blindcore_request_memory_bytes", help, used as u64)?;
        let help = "Memory that requests and answers may take";
        out.gauge("blindcore_request_memory_limit_bytes", help, limit as u64)?;
        if let Some(bytes) = resident_bytes() {
            out.gauge("process_resident_memory_bytes", "Resident memory size in bytes", bytes)?;
        }

        let tables = state.epochs();
        let mut table = |name: &str, help: &str, value: fn(&crate::state::Epochs) -> u64| {
            let mut metric = out.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
            tables
                .iter()
                .try_for_each(|t| metric.encode_family(&[("table", &*t.name)])?.encode_gauge(&value(t)))
        };
        table("blindcore_table_epoch", "The newest epoch of a table", |t| t.newest)?;
        table("blindcore_table_epochs", "Epochs of a table that are answered", |t| t.served)?;
        let help = "Parts of a table whose last pass failed, or whose hint can't be served";
        table("blindcore_table_failing", help, |t| t.failing)?;
        table("blindcore_table_rows", "Rows of a table at its newest epoch", |t| t.rows)?;

        // Parts that no epoch of a table had yet are left out.
        let parts: Vec<_> = stats
            .live()
            .filter(|(table, kind, part)| {
                part.queries.load(Ordering::Relaxed) > 0
                    || part.hint_bytes.load(Ordering::Relaxed) > 0
                    || tables.iter().any(|t| t.name == *table && t.parts.contains(kind))
            })
            .collect();
        out.parts("blindcore_requests", "Requests answered", &parts, |p| p.requests.load(Ordering::Relaxed))?;
        let help = "Queries that went into a pass";
        out.parts("blindcore_queries", help, &parts, |p| p.queries.load(Ordering::Relaxed))?;
        let help = "Queries dropped because their client went away";
        out.parts("blindcore_queries_abandoned", help, &parts, |p| p.abandoned.load(Ordering::Relaxed))?;
        let help = "Queries dropped for those of clients that had fewer waiting";
        out.parts("blindcore_queries_displaced", help, &parts, |p| p.displaced.load(Ordering::Relaxed))?;
        let help = "Bytes of queries that were answered";
        out.parts("blindcore_query_bytes", help, &parts, |p| p.bytes_in.load(Ordering::Relaxed))?;
        out.parts("blindcore_answer_bytes", "Bytes of answers", &parts, |p| {
            p.bytes_out.load(Ordering::Relaxed)
        })?;
        let help = "Bytes of hints that clients asked for";
        out.parts("blindcore_hint_bytes", help, &parts, |p| p.hint_bytes.load(Ordering::Relaxed))?;
        let name = "blindcore_queries_waiting";
        let mut waiting =
            out.0.encode_descriptor(name, "Queries that wait for a pass", None, MetricType::Gauge)?;
        for (table, kind, part) in &parts {
            waiting
                .encode_family(&labels(table, *kind))?
                .encode_gauge(&part.waiting.load(Ordering::Relaxed))?;
        }
        let help = "Time that a pass over a part took";
        out.histograms("blindcore_pass_seconds", help, &parts, |p| p.pass_time.snapshot(1e-6))?;
        let help = "Time that a request waited for its first pass";
        out.histograms("blindcore_queue_wait_seconds", help, &parts, |p| p.wait_time.snapshot(1e-6))?;
        let help = "Queries that a pass answered";
        out.histograms("blindcore_pass_queries", help, &parts, |p| p.gathered.snapshot(1.0))
    }
}

/// A sum, and each bucket's bound with how many are in it alone.
type Buckets = (f64, Vec<(f64, u64)>);

/// A part of a table, and what it does.
type Live<'a> = (&'a str, PartKind, &'a PartCounters);

/// Writes metrics one after another.
struct Out<'a>(DescriptorEncoder<'a>);

impl Out<'_> {
    fn counter(&mut self, name: &str, help: &str, n: u64) -> fmt::Result {
        count(self.0.encode_descriptor(name, help, None, MetricType::Counter)?, n)
    }

    fn gauge(&mut self, name: &str, help: &str, n: u64) -> fmt::Result {
        self.0.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&n)
    }

    fn parts(
        &mut self,
        name: &str,
        help: &str,
        parts: &[Live],
        value: fn(&PartCounters) -> u64,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (table, kind, part) in parts {
            count(metric.encode_family(&labels(table, *kind))?, value(part))?;
        }
        Ok(())
    }

    fn histograms(
        &mut self,
        name: &str,
        help: &str,
        parts: &[Live],
        value: fn(&PartCounters) -> Buckets,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (table, kind, part) in parts {
            let (sum, buckets) = value(part);
            let count = buckets.iter().map(|(_, n)| n).sum();
            let labels = labels(table, *kind);
            metric.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }
}

fn count(mut metric: MetricEncoder, n: u64) -> fmt::Result {
    metric.encode_counter::<NoLabelSet, _, u64>(&n, None)
}

fn labels(table: &str, kind: PartKind) -> [(&'static str, String); 2] {
    [("table", table.to_owned()), ("part", kind.to_string())]
}

impl<const UNIT: u64> Histogram<UNIT> {
    fn snapshot(&self, scale: f64) -> Buckets {
        let bound = |i| Self::bound(i).map_or(f64::INFINITY, |b| b as f64 * scale);
        let buckets = self.counts.iter().enumerate().map(|(i, n)| (bound(i), n.load(Ordering::Relaxed)));
        (self.sum.load(Ordering::Relaxed) as f64 * scale, buckets.collect())
    }
}

/// Memory that the process has, where the system says.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn the_oldest_that_has_not_asked_makes_room() {
        let places = Places::default();
        let taken: Vec<_> = (0..CONNECTIONS).map(|_| places.take()).collect();
        taken[0].asked.store(true, Ordering::Relaxed);
        let last = places.take();
        assert_eq!(places.all().len(), CONNECTIONS);
        let there = |place| places.all().iter().any(|other| Arc::ptr_eq(other, place));
        assert!(there(&taken[0]) && !there(&taken[1]) && there(&taken[2]) && there(&last));
        places.all().iter().for_each(|place| place.asked.store(true, Ordering::Relaxed));
        places.take();
        assert!(!there(&taken[0]) && there(&taken[2]));
        places.leave(&taken[2]);
        assert!(!there(&taken[2]) && places.all().len() == CONNECTIONS - 1);
    }

    /// None of the silent ones would leave by itself within the test.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn silent_connections_keep_no_scrape_out() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/metrics", get(async || "all is well"));
        let hour = Duration::from_secs(3600);
        let server = tokio::spawn(answer(listener, router, hour, hour));
        let asked = tokio::task::spawn_blocking(move || {
            let silent: Vec<_> = (0..3 * CONNECTIONS)
                .map(|_| {
                    let mut stream = TcpStream::connect(address).unwrap();
                    stream.write_all(b"GET /met").unwrap();
                    stream
                })
                .collect();
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: it\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            drop(silent);
            answer
        });
        assert!(asked.await.unwrap().ends_with("all is well"));
        server.abort();
    }
}
