//! The size of a row of the public matrix.

/// n, the dimension of every learning-with-errors secret in blindcore.
pub const LWE_DIMENSION: usize = 1024;

/// AES blocks in a row.
pub(crate) const BLOCKS_PER_ROW: usize = LWE_DIMENSION / 4;
