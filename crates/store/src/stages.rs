//! The stages of a build: who is told of them, and how long they take.

use std::time::Instant;

use crate::StoreError;

/// What a build is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Reading rows, in the source's unit.
    Read,
    /// Filling a matrix, in rows.
    Fill,
    /// Computing a hint, in passes.
    Hint,
}

/// Told what a build is doing, how far it is and of how much, as each stage begins and while it lasts; an error stops it.
pub type Watch<'a> = &'a mut dyn FnMut(Stage, u64, Option<u64>) -> Result<(), StoreError>;

/// Seconds of a build by stage. Tell it every stage that a [`Watch`](crate::Watch) is told.
#[derive(Debug)]
pub struct StageTimes {
    seconds: [f64; 3],
    at: Stage,
    since: Instant,
}

impl Default for StageTimes {
    fn default() -> Self {
        Self { seconds: [0.0; 3], at: Stage::Read, since: Instant::now() }
    }
}

impl StageTimes {
    /// The build is at this stage.
    pub fn at(&mut self, stage: Stage) {
        if stage != self.at {
            self.stop();
            self.at = stage;
        }
    }

    /// Ends the last stage and returns the seconds of all: reading, laying out, hints.
    #[must_use]
    pub fn end(mut self) -> [f64; 3] {
        self.stop();
        self.seconds
    }

    fn stop(&mut self) {
        self.seconds[self.at as usize] += self.since.elapsed().as_secs_f64();
        self.since = Instant::now();
    }
}
