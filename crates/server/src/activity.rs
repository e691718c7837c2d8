//! How quiet a connection is.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// When something last happened on a connection.
pub(crate) struct Activity {
    last: Mutex<(Instant, bool)>,
    /// Requests that came whole and whose answers have not left.
    owed: AtomicUsize,
}

impl Activity {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { last: Mutex::new((Instant::now(), false)), owed: AtomicUsize::new(0) })
    }

    pub(crate) fn touch(&self) {
        *self.last.lock().expect("nobody panics with it") = (Instant::now(), true);
    }

    /// How quiet it is: what never said anything before what did, and then the longest. It is since when and not how long, so that
    /// of two the answer does not depend on which was asked first.
    pub(crate) fn quiet(&self) -> (bool, Reverse<Instant>) {
        let (at, any) = *self.last.lock().expect("nobody panics with it");
        (!any, Reverse(at))
    }

    /// Whether its client waits for an answer: its silence is ours.
    pub(crate) fn owes(&self) -> bool {
        self.owed.load(Ordering::Relaxed) > 0
    }

    /// Whether nothing happened for `idle`, or, before anything did, for `first`.
    pub(crate) fn stalled(&self, first: Duration, idle: Duration) -> bool {
        let (at, any) = *self.last.lock().expect("nobody panics with it");
        at.elapsed() > if any { idle } else { first }
    }
}

/// An answer that a connection owes, from when its request has come whole until this is dropped: once it has left.
pub(crate) struct Owed {
    pub(crate) activity: Arc<Activity>,
    due: AtomicBool,
}

impl Owed {
    pub(crate) fn new(activity: Arc<Activity>) -> Arc<Self> {
        Arc::new(Self { activity, due: AtomicBool::new(false) })
    }

    /// The request is there; what happens now is the server's.
    pub(crate) fn due(&self) {
        self.activity.touch();
        if !self.due.swap(true, Ordering::Relaxed) {
            self.activity.owed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        if *self.due.get_mut() {
            self.activity.owed.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
