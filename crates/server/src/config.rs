//! What a server allows.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::sizes::HINT_BUFFERS;
use crate::{Error, KeysConfig, Tokens};

/// What a server allows. Every limit is checked before the memory that it bounds is taken.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where `GET /metrics` is answered, in plain text, and nothing else; nowhere if `None`.
    pub metrics: Option<SocketAddr>,
    /// Certificates, and so TLS on every connection; [`crate::Handle::set_tls`] puts others in their place. Without, the
    /// transport is plain text, which [`crate::Server::bind`] refuses beyond this machine unless `plain_text` says so.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Plain text also beyond this machine.
    pub plain_text: bool,
    /// Answers only requests with one of these tokens; [`crate::Handle::set_tokens`] puts others in their place.
    pub tokens: Option<Arc<Tokens>>,
    /// The most queries in one pass over a database, 1 to [`blindcore_lookup::MAX_GATHER`].
    pub gather: usize,
    /// The most queries that wait for one part of a table. Where there would be more, the client that has most of them
    /// gives way to those that have fewer.
    pub waiting_queries: usize,
    /// The most queries that one client has waiting, for whatever table. A client is a token or, without, an address.
    pub waiting_per_client: usize,
    /// The most queries a minute of one client; any number if `None`.
    pub queries_per_minute: Option<u64>,
    /// The most bytes of hints a minute for one client; any number if `None`.
    pub hint_bytes_per_minute: Option<u64>,
    /// The most queries in a request. Fewer where they would pass `request_bytes`.
    pub queries_per_request: usize,
    /// The most bytes in a request, or in its answer; one query is always allowed.
    pub request_bytes: usize,
    /// The most bytes of requests and answers in memory at a time.
    pub memory_bytes: usize,
    /// The most of that for one client; if `None`, a quarter, or what one request needs.
    pub memory_per_client: Option<usize>,
    /// The most connections at a time. Where there would be more, the address that has most of them gives way.
    pub connections: usize,
    /// The most connections from one address, of IPv6 from one network of 64 bits. Where it is no less than `connections`,
    /// nobody gives way, and more wait to be accepted.
    pub connections_per_client: usize,
    /// The most requests at a time on one HTTP/2 connection.
    pub streams_per_connection: u32,
    /// How long a handshake may take, and then a connection to say what it wants.
    pub header_timeout: Duration,
    /// How long a request may take, from its first byte to the first of its answer.
    pub request_timeout: Duration,
    /// How long a connection may stand still; where it waits for an answer, or doesn't read one, `request_timeout` if that is more.
    /// Over HTTP/1.1, between requests, it is `header_timeout`.
    pub idle_timeout: Duration,
    /// How long an epoch that is not the newest is kept after it was last asked for.
    pub epoch_linger: Duration,
    /// The most epochs of a table that are kept beside the newest.
    pub old_epochs: usize,
    /// How long `/readyz` says no before connections are refused, for load balancers to notice.
    pub drain_delay: Duration,
    /// How long requests may take to finish once connections are refused.
    pub grace: Duration,
    /// What is kept of keys that clients register.
    pub keys: KeysConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7700)),
            metrics: None,
            tls: None,
            plain_text: false,
            tokens: None,
            gather: 16,
            waiting_queries: 1024,
            waiting_per_client: 256,
            queries_per_minute: None,
            hint_bytes_per_minute: None,
            queries_per_request: 64,
            request_bytes: 64 << 20,
            memory_bytes: 1 << 30,
            memory_per_client: None,
            connections: 1024,
            connections_per_client: 64,
            streams_per_connection: 64,
            header_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(120),
            epoch_linger: Duration::from_secs(600),
            old_epochs: 8,
            drain_delay: Duration::ZERO,
            grace: Duration::from_secs(30),
            keys: KeysConfig::default(),
        }
    }
}

impl Config {
    /// The most memory that one client's requests and answers may take.
    pub(crate) fn memory_of_client(&self) -> usize {
        self.memory_per_client.unwrap_or(self.memory_bytes / 4).min(self.memory_bytes)
    }

    /// Whether a server could start with it, whatever its tables: so that nothing is loaded in vain.
    ///
    /// # Errors
    /// A setting is out of range, or plain text would leave the machine.
    pub fn check(&self) -> Result<(), Error> {
        if self.tls.is_none() && !self.plain_text && !self.listen.ip().is_loopback() {
            return Err(Error::PlainText { address: self.listen });
        }
        let most = blindcore_lookup::MAX_GATHER as u64;
        check("gather", self.gather as u64, 1, most, "gather fewer or more")?;
        check("connections", self.connections as u64, 1, 1 << 20, "allow some")?;
        let each = self.connections_per_client as u64;
        check("connections_per_client", each, 1, 1 << 20, "allow some")?;
        let remedy = "leave it out to allow any number";
        check("queries_per_minute", self.queries_per_minute.unwrap_or(1), 1, 1 << 40, remedy)?;
        check(
            "hint_mib_per_minute",
            self.hint_bytes_per_minute.map_or(1, |bytes| bytes.div_ceil(1 << 20)),
            1,
            1 << 30,
            remedy,
        )?;
        let most = Duration::from_secs(1 << 20);
        for (what, time, least) in [
            ("header_seconds", self.header_timeout, 1),
            ("request_seconds", self.request_timeout, 1),
            ("idle_seconds", self.idle_timeout, 1),
            ("drain_seconds", self.drain_delay, 0),
            ("grace_seconds", self.grace, 0),
        ] {
            // Less than a second is for tests and programs; people say seconds.
            let seconds = if time.is_zero() { 0 } else { time.as_secs().max(1) };
            check(what, seconds, least, most.as_secs(), "say another time")?;
        }
        let streams = u64::from(self.streams_per_connection);
        check("streams_per_connection", streams, 1, 1 << 16, "allow some")?;
        check("queries_per_request", self.queries_per_request as u64, 1, 1 << 20, "allow some")?;
        let remedy = "allow more memory";
        let (memory, least) = (self.memory_bytes as u64, HINT_BUFFERS as u64);
        check("memory for requests (request_memory_mib, here in bytes)", memory, least, u64::MAX, remedy)?;
        self.keys.check()
    }
}

/// Whether a setting is in its range.
pub(crate) fn check(
    what: &'static str,
    got: u64,
    min: u64,
    max: u64,
    remedy: &'static str,
) -> Result<(), Error> {
    if (min..=max).contains(&got) { Ok(()) } else { Err(Error::Range { what, got, min, max, remedy }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the settings file's seconds, each that can be written: none wraps on its way to the limit.
    #[test]
    fn times_of_any_length_are_refused_with_their_limit() {
        let limit = Duration::from_secs(1 << 20);
        type Set = fn(&mut Config, Duration);
        let times: [Set; 5] = [
            |c, t| c.header_timeout = t,
            |c, t| c.request_timeout = t,
            |c, t| c.idle_timeout = t,
            |c, t| c.drain_delay = t,
            |c, t| c.grace = t,
        ];
        for set in times {
            let with = |time| {
                let mut config = Config::default();
                set(&mut config, time);
                config.check()
            };
            assert!(with(limit).is_ok());
            // The last two wrap to little in 64 bits, as milliseconds.
            for seconds in [(1 << 20) + 1, u64::MAX, u64::MAX / 1000 + 1, 18_446_744_073_709_552] {
                let error = with(Duration::from_secs(seconds)).unwrap_err().to_string();
                assert!(error.contains("_seconds") && error.contains("to 1048576"), "{error}");
            }
        }
    }
}
