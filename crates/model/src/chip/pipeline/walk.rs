//! A loop nest, step by step.

use super::super::problem::{Dim, Tensor};

/// A loop nest that is walked.
pub(super) struct Walk {
    loops: Vec<(Dim, u64)>,
    pub(super) index: Vec<u64>,
}

impl Walk {
    pub(super) fn new(loops: &[(Dim, u64)]) -> Self {
        Self { loops: loops.to_vec(), index: vec![0; loops.len()] }
    }

    fn moves(&self, at: usize, tensor: Tensor) -> bool {
        tensor.has(self.loops[at].0) && self.loops[at].1 > 1
    }

    fn at_end(&self, at: usize) -> bool {
        self.index[at] + 1 == self.loops[at].1
    }

    /// Which operands the next step moves; all at the last one.
    pub(super) fn ends(&self) -> [bool; 3] {
        Tensor::ALL.map(|tensor| {
            let mut inner = (0..self.loops.len()).rev().take_while(|at| !self.moves(*at, tensor));
            inner.all(|at| self.at_end(at))
        })
    }

    /// Whether an operand's tile is visited for the first time, and for the last.
    pub(super) fn visit(&self, tensor: Tensor) -> (bool, bool) {
        let others = (0..self.loops.len()).filter(|at| !self.moves(*at, tensor));
        others.fold((true, true), |(first, last), at| (first && self.index[at] == 0, last && self.at_end(at)))
    }

    pub(super) fn is_last(&self) -> bool {
        (0..self.loops.len()).all(|at| self.at_end(at))
    }

    /// The number of the operand's tile.
    pub(super) fn at(&self, tensor: Tensor) -> usize {
        let mine = (0..self.loops.len()).filter(|at| tensor.has(self.loops[*at].0));
        mine.fold(0, |sum, at| sum * self.loops[at].1 as usize + self.index[at] as usize)
    }

    /// The next step; no: that was the last.
    pub(super) fn step(&mut self) -> bool {
        for at in (0..self.loops.len()).rev() {
            if !self.at_end(at) {
                self.index[at] += 1;
                return true;
            }
            self.index[at] = 0;
        }
        false
    }
}
