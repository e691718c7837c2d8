//! Points as they are finished, wherever they are computed.

use blindcore_units::{Progress, Unit};

use crate::point::Outcome;

/// Takes what is finished, and says how far the sweep is.
pub(crate) struct Counted<'a> {
    pub(crate) take: &'a mut dyn FnMut(Vec<Outcome>, usize) -> anyhow::Result<()>,
    pub(crate) all: usize,
    pub(crate) resumed: usize,
    pub(crate) done: usize,
    pub(crate) progress: &'a mut dyn Progress,
}

impl Counted<'_> {
    /// Takes finished points, none or more.
    ///
    /// # Errors
    /// They can't be kept, or the progress stops the sweep.
    pub(crate) fn take(&mut self, batch: Vec<Outcome>) -> anyhow::Result<()> {
        let count = batch.len();
        if count > 0 {
            (self.take)(batch, self.done)?;
        }
        self.done += count;
        let (done, all) = (self.resumed + self.done, self.all);
        self.progress.at("exploring", done as u64, Some(all as u64), Unit::Items);
        anyhow::ensure!(
            !self.progress.stopped(),
            "stopped with {done} of {all} points; run it again to go on"
        );
        Ok(())
    }
}
