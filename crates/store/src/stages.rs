//! The stages of a build and of an update, as a [`Progress`] is told of them, and how long they take.

use std::time::Instant;

use blindcore_units::{Progress, Unit};

use crate::StoreError;

/// Rows are read, in the source's unit.
pub const READING: &str = "reading";
/// A matrix is filled, in rows.
pub const LAYING_OUT: &str = "laying out";
/// A hint is computed, in passes.
pub const PREPARING: &str = blindcore_lookup::PREPARING;

/// Tells how far a stage is, and whether to go on.
pub(crate) fn at(
    progress: &mut dyn Progress,
    stage: &str,
    done: u64,
    total: Option<u64>,
    unit: Unit,
) -> Result<(), StoreError> {
    progress.at(stage, done, total, unit);
    if progress.stopped() { Err(StoreError::Interrupted) } else { Ok(()) }
}

/// Seconds of a build by stage, on the way to who else hears of it.
pub struct StageTimes<'a> {
    seconds: [f64; 3],
    at: usize,
    since: Instant,
    next: &'a mut dyn Progress,
}

impl<'a> StageTimes<'a> {
    /// Begins now, with reading.
    #[must_use]
    pub fn new(next: &'a mut dyn Progress) -> Self {
        Self { seconds: [0.0; 3], at: 0, since: Instant::now(), next }
    }

    /// Ends the last stage and returns the seconds of all: reading, laying out, preparing.
    #[must_use]
    pub fn end(mut self) -> [f64; 3] {
        self.stop();
        self.seconds
    }

    fn stop(&mut self) {
        self.seconds[self.at] += self.since.elapsed().as_secs_f64();
        self.since = Instant::now();
    }
}

impl Progress for StageTimes<'_> {
    fn at(&mut self, stage: &str, done: u64, total: Option<u64>, unit: Unit) {
        let at = [READING, LAYING_OUT, PREPARING].iter().position(|name| *name == stage);
        if let Some(at) = at.filter(|at| *at != self.at) {
            self.stop();
            self.at = at;
        }
        self.next.at(stage, done, total, unit);
    }

    fn note(&mut self, line: &str) {
        self.next.note(line);
    }

    fn stopped(&self) -> bool {
        self.next.stopped()
    }
}
