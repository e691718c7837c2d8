//! What a windows kernel is, for the driver beside it and the instruction sets.

use blindcore_accel::Word;
use blindcore_accel::contract::Window;

/// How one channel is computed: a pure function over slices. A fast one is made from the token of its instruction set.
pub(crate) struct Kernel {
    /// The most tiles that it takes at once, for a single query: memory reads several streams faster than one.
    pub(crate) tiles: usize,
    /// The most products of a sum.
    pub(crate) depth: usize,
    /// Writes the tiles' sums, residues, `[query][tile][lane]`.
    pub(crate) tile: TileFn,
}

pub(crate) type TileFn = Box<dyn Fn(&Tile<'_>, &mut [u64]) + Send + Sync>;

/// Thirty-two coefficients of a row, and the windows of all queries over them; or several such tiles side by side, and those of
/// one query.
pub(crate) struct Tile<'a> {
    /// For each tile `[j][32]`, words as they lie.
    pub(crate) words: &'a [&'a [u8]],
    pub(crate) word: Word,
    /// For each query its words from the first window on: window j of tile i begins at `j * step + 32 * i`.
    pub(crate) queries: &'a [&'a [u64]],
    pub(crate) step: usize,
    /// Windows.
    pub(crate) depth: usize,
}

impl Tile<'_> {
    /// Panics unless every word that a kernel reads or writes lies in its slice.
    pub(crate) fn check(&self, sums: &[u64]) {
        let tiles = self.words.len();
        assert!(self.depth > 0 && tiles > 0 && (tiles == 1 || self.queries.len() == 1));
        let bytes = self.depth * Window::LANES * self.word.bytes();
        assert!(self.words.iter().all(|words| words.len() == bytes));
        let reach = (self.depth - 1) * self.step + tiles * Window::LANES;
        assert!(self.queries.iter().all(|query| query.len() >= reach));
        assert_eq!(sums.len(), self.queries.len() * tiles * Window::LANES);
    }
}
