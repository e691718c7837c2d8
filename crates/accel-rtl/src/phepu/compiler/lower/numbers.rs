//! How residues are numbered, and where each lies if all of them fit.

use super::super::error::{Error, within};
use super::super::shape::Task;

/// How residues are numbered.
pub(super) struct Numbers<'a> {
    sources: Option<&'a [u32]>,
    /// Whether each comes with its inverse.
    pairs: bool,
    /// All residues of the task, ascending, without inverses.
    all: Vec<u32>,
}

impl<'a> Numbers<'a> {
    pub(super) fn new(task: &Task, sources: Option<&'a [u32]>, pairs: bool) -> Result<Self, Error> {
        let mut all: Vec<u32> = match sources {
            Some(sources) => sources.to_vec(),
            None => (0..task.inputs() as u32).collect(),
        };
        all.sort_unstable();
        all.dedup();
        let most = if pairs { u32::MAX / 2 } else { u32::MAX };
        let last = all.last().copied().unwrap_or(0) as usize;
        within("the number of a residue", last, 0, most.into(), "give fewer residues")?;
        Ok(Self { sources, pairs, all })
    }

    pub(super) fn of(&self, input: u32) -> u32 {
        let number = self.sources.map_or(input, |sources| sources[input as usize]);
        if self.pairs { 2 * number } else { number }
    }

    /// A frame for each residue, if there are enough of them: inputs, then inverses, so that those of neighbours lie
    /// side by side.
    pub(super) fn fixed(&self, frames: usize) -> Option<impl Fn(u32) -> u32 + '_> {
        let count = self.all.len();
        let of = move |residue: u32| {
            let (number, inverse) =
                if self.pairs { (residue / 2, residue % 2 == 1) } else { (residue, false) };
            let rank = self.all.binary_search(&number).expect("residues are those of the task");
            (rank + if inverse { count } else { 0 }) as u32
        };
        (count * if self.pairs { 2 } else { 1 } <= frames).then_some(of)
    }
}
