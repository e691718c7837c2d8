//! What a plan is asked for: a table, its clients, and what things cost.

use blindcore_wire::ProofChoice;
use serde::Serialize;

/// Seconds of a month, a twelfth of a year of 365 days.
pub(crate) const MONTH: f64 = 365.0 * 86_400.0 / 12.0;

/// A table, its clients, and what things cost.
#[derive(Clone, Debug, Serialize)]
pub struct Question {
    /// Rows, at least 1.
    pub rows: u64,
    /// Bytes of the longest record as it is stored, at least 1.
    pub record_bytes: u64,
    /// Bytes of the longest key; none where rows are found by their number.
    pub key_bytes: Option<usize>,
    /// Whether a table with keys can also be read by number.
    pub directory: bool,
    /// Whether slots carry proofs.
    #[serde(skip)]
    pub proofs: ProofChoice,
    /// Bits per second from a client.
    pub up: f64,
    /// Bits per second to a client.
    pub down: f64,
    /// Lookups of a client in an epoch, at least 1.
    pub queries: u64,
    /// Seconds of an epoch.
    pub epoch: f64,
    /// Share of the rows that change in an epoch, 0 to 1.
    pub changed: f64,
    /// Clients.
    pub clients: u64,
    /// Queries in a pass, at most.
    pub gather: usize,
    /// Keys that clients ask for in one request, where the table has batches.
    pub batch: Option<usize>,
    /// What things cost.
    pub prices: Prices,
}

/// What things cost, in any one currency.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Prices {
    /// A core for an hour.
    pub core_hour: f64,
    /// A GB (10^9 B) of memory for a month.
    pub gb_month: f64,
    /// A GB of traffic, either way.
    pub gb: f64,
}
