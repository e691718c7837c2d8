//! What a rows kernel is, for the driver beside it and the instruction sets.

use blindcore_accel::Word;

/// Lines are a multiple of this many words, and kernels take them this many at once.
pub(crate) const UNIT: usize = 32;
/// The most words of a line in a block.
pub(crate) const WIDTH: usize = 512;
/// The most words of a row in a block.
///
/// A block is wide rather than high: lines are often a power of two apart, where a cache has few places for
/// them.
pub(crate) const BLOCK: usize = 16 * WIDTH;
/// The most lines in a block.
pub(crate) const MAX_LINES: usize = BLOCK / UNIT;
/// Outputs that share a line, where several do.
pub(crate) const SHARING: usize = 4;
/// The most queries that a kernel takes at once.
pub(crate) const GROUP: usize = 2;

/// How one channel is computed: pure functions over slices, like a tile kernel. A fast one is made from the token of its
/// instruction set.
pub(crate) struct Kernel {
    /// The power of two that each of a lane's accumulators counts.
    pub(crate) weights: &'static [u32],
    /// Products that an accumulator takes before it must be split.
    pub(crate) capacity: usize,
    /// Adds a block's products to the sums, `[query][accumulator][low, high half][lane]`.
    pub(crate) block: BlockFn,
    /// Reduces the sums, `[accumulator][low, high half][coefficient]`, of a multiple of eight coefficients,
    /// where there is a faster way than one by one.
    pub(crate) reduce: Option<Reduce>,
}

pub(crate) type BlockFn = Box<dyn Fn(&Block<'_>, &mut [u64]) + Send + Sync>;
pub(crate) type Reduce = Box<dyn Fn(&[u64], &mut [u64]) + Send + Sync>;

/// One block of a row and of up to [`GROUP`] queries.
pub(crate) struct Block<'a> {
    /// The row, from the block's first word on.
    pub(crate) row: &'a [u8],
    /// What is read next, in the same steps: to be fetched ahead.
    pub(crate) next: &'a [u8],
    /// The queries, from the block's first word on: of each line a word for each [`Block::outputs`] of the row's.
    pub(crate) queries: &'a [&'a [u64]],
    /// The row's word.
    pub(crate) word: Word,
    /// Words from a line to the next of the row; those of a query lie together.
    pub(crate) stride: usize,
    /// Lines in this block, 1 to [`MAX_LINES`].
    pub(crate) lines: usize,
    /// Words of each line in this block, a multiple of [`UNIT`].
    pub(crate) width: usize,
    /// Outputs that share a line, one after another, and with it a query's words: 1, or [`SHARING`], whose lines have
    /// [`UNIT`] words.
    pub(crate) outputs: usize,
    /// [`Kernel::capacity`].
    pub(crate) capacity: usize,
}

impl Block<'_> {
    /// Panics unless every word that a kernel reads or writes lies in its slice.
    pub(crate) fn check(&self, accumulators: usize, sums: &[u64]) {
        assert!((1..=MAX_LINES).contains(&self.lines));
        assert!(self.width.is_multiple_of(UNIT) && self.capacity > 0);
        assert!(self.outputs == 1 || self.outputs == SHARING && self.width == UNIT);
        let words = (self.lines - 1) * self.stride + self.width;
        assert!(self.row.len() >= words * self.word.bytes());
        assert!(self.queries.iter().all(|q| q.len() == self.lines * self.width / self.outputs));
        assert_eq!(sums.len(), self.queries.len() * accumulators * 2 * self.width);
    }
}
