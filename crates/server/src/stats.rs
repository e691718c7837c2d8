//! What a server did, in numbers that hold nothing of what it was asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blindcore_wire::{PartKind, Reason};

macro_rules! counters {
    ($(#[$doc:meta])* $snapshot:ident / $live:ident: $($(#[$field_doc:meta])* $field:ident,)*
        $(; $($(#[$more_doc:meta])* $more:ident: $type:ty,)*)?) => {
        #[derive(Default)]
        pub(crate) struct $live {
            $(pub(crate) $field: AtomicU64,)*
            $($($(#[$more_doc])* pub(crate) $more: $type,)*)?
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
    /// Queries that were dropped for those of clients that had fewer waiting.
    displaced,
    /// Bytes of queries.
    bytes_in,
    /// Bytes of answers.
    bytes_out,
    /// Bytes of hints that clients asked for.
    hint_bytes,
    ;
    /// Queries that wait now.
    waiting: AtomicU64,
    /// Microseconds of each pass.
    pass_time: Histogram<1000>,
    /// Microseconds until a request's first pass.
    wait_time: Histogram<1000>,
    /// Queries of each pass.
    gathered: Histogram<1>,
}

counters! {
    /// What a server did since the start, whatever the table.
    Totals / TotalCounters:
    /// Connections accepted.
    connections,
    /// Connections closed because they stood still.
    stalled,
    /// Connections closed for those of addresses that had fewer.
    cut,
    /// Connections not taken, for their address or the server had all that it may have.
    not_taken,
    /// Connections whose TLS handshake failed or took too long.
    handshakes_failed,
    /// Requests refused, of any kind.
    refused,
    /// Times that certificates, tokens or tables were read again.
    reloads,
    /// Times that they could not be read, and stayed as they were.
    reloads_failed,
    ;
    /// Requests refused, by reason.
    refusals: [AtomicU64; Reason::ALL.len()],
}

counters! {
    /// What a server did with keys that clients register, since the start.
    KeyStats / KeyCounters:
    /// Sets of keys that were registered.
    registered,
    /// Registrations of keys that were there already.
    again,
    /// Sets that went because others came.
    evicted,
    /// Sets that went because nobody used them.
    expired,
    /// Registrations refused, because what came was no keys.
    refused,
    /// Sets that could not be read from the disk any more.
    damaged,
    /// Queries refused, because they were under keys that are not there.
    unknown,
    /// Sets that are there now.
    sets,
    /// Bytes of them.
    bytes,
    /// Bytes of memory that those take which are ready for use.
    ready_bytes,
}

impl KeyCounters {
    /// What there is now.
    pub(crate) fn held(&self, sets: u64, bytes: u64, ready_bytes: u64) {
        self.sets.store(sets, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
        self.ready_bytes.store(ready_bytes, Ordering::Relaxed);
    }
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

/// How many of how much: each bucket holds what is at most twice as much as the one before, the first up to `UNIT`.
#[derive(Default)]
pub(crate) struct Histogram<const UNIT: u64> {
    /// The last has what is over all bounds.
    pub(crate) counts: [AtomicU64; 17],
    pub(crate) sum: AtomicU64,
}

impl<const UNIT: u64> Histogram<UNIT> {
    /// The most that a bucket holds, but for the last.
    pub(crate) fn bound(i: usize) -> Option<u64> {
        (i < 16).then_some(UNIT << i)
    }

    pub(crate) fn observe(&self, value: u64) {
        let at = (0..16).find(|i| Self::bound(*i).is_some_and(|b| value <= b)).unwrap_or(16);
        add(&self.counts[at], 1);
        add(&self.sum, value);
    }
}

#[derive(Default)]
struct Inner {
    parts: Vec<(String, PartKind, Arc<PartCounters>)>,
    totals: Arc<TotalCounters>,
    keys: Arc<KeyCounters>,
}

/// A handle on a server's counters.
#[derive(Clone, Default)]
pub struct Stats(Arc<Inner>);

impl Stats {
    pub(crate) fn new(
        parts: Vec<(String, PartKind, Arc<PartCounters>)>,
        totals: Arc<TotalCounters>,
        keys: Arc<KeyCounters>,
    ) -> Self {
        Self(Arc::new(Inner { parts, totals, keys }))
    }

    /// Keys that clients register.
    #[must_use]
    pub fn keys(&self) -> KeyStats {
        self.0.keys.snapshot()
    }

    /// Every part of every table, in order of their names.
    pub fn parts(&self) -> impl Iterator<Item = (&str, PartKind, PartStats)> {
        self.0.parts.iter().map(|(table, part, live)| (&**table, *part, live.snapshot()))
    }

    /// The same, while they change.
    pub(crate) fn live(&self) -> impl Iterator<Item = (&str, PartKind, &PartCounters)> {
        self.0.parts.iter().map(|(table, part, live)| (&**table, *part, &**live))
    }

    /// Requests refused, by reason.
    pub fn refusals(&self) -> impl Iterator<Item = (Reason, u64)> {
        let all = self.0.totals.refusals.iter().map(|n| n.load(Ordering::Relaxed));
        Reason::ALL.iter().copied().zip(all)
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
