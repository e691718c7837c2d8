//! How far long work is: the one way in which anything here says so.

/// What the numbers of a [`Progress`] count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Rows, passes, measurements: whole things.
    Items,
    /// Bytes.
    Bytes,
}

/// Told how far long work is. A terminal draws a bar, a service logs or counts; `()` ignores it.
pub trait Progress {
    /// Work is in `stage`, a word or two for people, and has done `done` of `total`, if that is known.
    fn at(&mut self, stage: &str, done: u64, total: Option<u64>, unit: Unit);
}

impl Progress for () {
    fn at(&mut self, _: &str, _: u64, _: Option<u64>, _: Unit) {}
}
