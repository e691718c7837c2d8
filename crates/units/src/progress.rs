//! How far long work is: the one way in which anything here says so, and in which it hears that it should stop.

use std::sync::{Arc, Mutex};

/// What the numbers of a [`Progress`] count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Rows, passes, measurements: whole things.
    Items,
    /// Bytes.
    Bytes,
}

/// Told how far long work is. A terminal draws a bar, a service logs or counts; `()` ignores it, and a closure will do.
///
/// ```
/// use blindcore_units::{Progress, Unit};
///
/// fn work(progress: &mut dyn Progress) {
///     progress.at("counting", 3, Some(3), Unit::Items);
/// }
///
/// let mut seen = 0;
/// work(&mut |_: &str, done, _, _| seen = done);
/// assert_eq!(seen, 3);
/// ```
pub trait Progress {
    /// Work is in `stage`, a word or two for people, and has done `done` of `total`, if that is known.
    fn at(&mut self, stage: &str, done: u64, total: Option<u64>, unit: Unit);

    /// Something that is no error and that a person should hear, in a line.
    fn note(&mut self, line: &str) {
        let _ = line;
    }

    /// Whether the work should stop. What can be stopped says so, and asks after each [`Progress::at`].
    fn stopped(&self) -> bool {
        false
    }
}

impl Progress for () {
    fn at(&mut self, _: &str, _: u64, _: Option<u64>, _: Unit) {}
}

impl<F: FnMut(&str, u64, Option<u64>, Unit)> Progress for F {
    fn at(&mut self, stage: &str, done: u64, total: Option<u64>, unit: Unit) {
        self(stage, done, total, unit);
    }
}

/// For work that goes on in several places at a time.
pub type SharedProgress = Arc<Mutex<dyn Progress + Send>>;
