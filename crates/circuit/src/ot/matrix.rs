//! Matrices of bits, 128 wide: how they lie.

/// Transfers that are worked on at once: all of their matrix stays in a second-level cache.
pub const CHUNK: usize = 1 << 14;

/// Blocks of 128 rows from one column's start to the next: odd, so that columns don't fall on the same lines of a cache.
pub(super) const STRIDE: usize = CHUNK / 128 + 1;
