//! What a windows kernel is, for the driver beside it and the instruction sets.

use blindcore_accel::Word;
use blindcore_accel::contract::Window;

/// How one channel is computed: a pure function over slices. A fast one is made from the token of its instruction set.
pub(crate) struct Kernel {
    /// The most queries that it takes at once.
    pub(crate) gather: usize,
    /// The most products of a sum.
    pub(crate) depth: usize,
    /// Writes a tile's sums, residues, `[query][lane]`.
    pub(crate) tile: TileFn,
}

pub(crate) type TileFn = Box<dyn Fn(&Tile<'_>, &mut [u64]) + Send + Sync>;

/// Thirty-two coefficients of a row, and the windows of some queries over them.
pub(crate) struct Tile<'a> {
    /// `[j][32]`, words as they lie.
    pub(crate) words: &'a [u8],
    pub(crate) word: Word,
    /// For each query its words from the first window on: window j begins at `j * step`.
    pub(crate) queries: &'a [&'a [u64]],
    pub(crate) step: usize,
    /// Windows.
    pub(crate) depth: usize,
}

impl Tile<'_> {
    /// Panics unless every word that a kernel reads or writes lies in its slice.
    pub(crate) fn check(&self, sums: &[u64]) {
        assert!(self.depth > 0);
        assert!(self.words.len() >= self.depth * Window::LANES * self.word.bytes());
        let reach = (self.depth - 1) * self.step + Window::LANES;
        assert!(self.queries.iter().all(|query| query.len() >= reach));
        assert_eq!(sums.len(), self.queries.len() * Window::LANES);
    }
}
