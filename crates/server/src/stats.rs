//! What a server did, in numbers that hold nothing of what it was asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blindcore_wire::PartKind;

macro_rules! counters {
    ($(#[$doc:meta])* $snapshot:ident / $live:ident: $($(#[$field_doc:meta])* $field:ident,)*) => {
        #[derive(Default)]
        pub(crate) struct $live {
            $(pub(crate) $field: AtomicU64,)*
        }

        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $snapshot {
            $($(#[$field_doc])* pub $field: u64,)*
        }

        impl $live {
            fn snapshot(&self) -> $snapshot {
                $snapshot { $($field: self.$field.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// What one part of a table did since the start.
    PartStats / PartCounters:
    /// Requests answered.
    requests,
    /// Queries that went into a pass.
    queries,
    /// Passes over the database.
    passes,
    /// Time spent in them, in microseconds.
    pass_micros,
    /// The most queries that one pass gathered.
    most_gathered,
    /// Queries that were dropped because their client went away before they were computed.
    abandoned,
    /// Bytes of queries.
    bytes_in,
    /// Bytes of answers.
    bytes_out,
    /// Bytes of hints that clients asked for.
    hint_bytes,
}

counters! {
    /// What a server did since the start, whatever the table.
    Totals / TotalCounters:
    /// Connections accepted.
    connections,
    /// Connections closed because they stood still.
    stalled,
    /// Connections whose TLS handshake failed or took too long.
    handshakes_failed,
    /// Requests refused, of any kind.
    refused,
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

#[derive(Default)]
struct Inner {
    parts: Vec<(String, PartKind, Arc<PartCounters>)>,
    totals: Arc<TotalCounters>,
}

/// A handle on a server's counters.
#[derive(Clone, Default)]
pub struct Stats(Arc<Inner>);

impl Stats {
    pub(crate) fn new(parts: Vec<(String, PartKind, Arc<PartCounters>)>, totals: Arc<TotalCounters>) -> Self {
        Self(Arc::new(Inner { parts, totals }))
    }

    /// Every part of every table, in order of their names.
    pub fn parts(&self) -> impl Iterator<Item = (&str, PartKind, PartStats)> {
        self.0.parts.iter().map(|(table, part, live)| (&**table, *part, live.snapshot()))
    }

    /// One part; zeros where there is none.
    #[must_use]
    pub fn part(&self, table: &str, part: PartKind) -> PartStats {
        self.parts().find(|(t, p, _)| *t == table && *p == part).map(|(_, _, s)| s).unwrap_or_default()
    }

    /// Whatever the table.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.0.totals.snapshot()
    }
}
