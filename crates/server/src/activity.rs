//! How quiet a connection is.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// When something last happened on a connection.
pub(crate) struct Activity {
    last: Mutex<(Instant, bool)>,
}

impl Activity {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { last: Mutex::new((Instant::now(), false)) })
    }

    pub(crate) fn touch(&self) {
        *self.last.lock().expect("nobody panics with it") = (Instant::now(), true);
    }

    /// How quiet it is: what never said anything before what did, and then the longest.
    pub(crate) fn quiet(&self) -> (bool, Duration) {
        let (at, any) = *self.last.lock().expect("nobody panics with it");
        (!any, at.elapsed())
    }

    /// Whether nothing happened for `idle`, or, before anything did, for `first`.
    pub(crate) fn stalled(&self, first: Duration, idle: Duration) -> bool {
        let (at, any) = *self.last.lock().expect("nobody panics with it");
        at.elapsed() > if any { idle } else { first }
    }
}
