//! What a tile kernel is, for the driver beside it and the instruction sets.

/// Rows of a stripe.
pub(crate) const ROWS: usize = 16;
/// Columns of a tile.
pub(crate) const COLUMNS: usize = 64;
/// Bytes of a tile.
pub(crate) const TILE: usize = ROWS * COLUMNS;

/// A kernel: how it wants the query and what it does with a block.
///
/// A kernel is a set of pure functions over slices; a fast one is made from the token of its instruction set. Partial
/// sums lie as `[stripe][query][digit][row]`, one digit's worth of a stripe's 16
/// rows after the other.
pub(crate) struct Kernel {
    /// The most queries that one pass over the database serves.
    pub(crate) group: usize,
    /// Partial sums of queries are kept in multiples of this many queries.
    pub(crate) pad: usize,
    /// Digits of a query word.
    pub(crate) digits: usize,
    /// Stripes and columns in a block for this many queries; the columns a multiple of [`COLUMNS`].
    pub(crate) block_size: fn(queries: usize) -> (usize, usize),
    /// Writes the digits of one group's queries over one block's columns (`queries[i]` has as many words as
    /// the block has columns, less in the last block).
    pub(crate) pack: fn(queries: &[&[u32]]) -> Vec<u8>,
    /// Adds one block's products to the partial sums.
    pub(crate) block: BlockFn,
}

pub(crate) type BlockFn = Box<dyn Fn(&Block<'_>, &mut [i32]) + Send + Sync>;

/// One block of the database and the digits of the queries against it.
pub(crate) struct Block<'a> {
    /// From this block's first tile of its first stripe on.
    pub(crate) tiles: &'a [u8],
    /// Bytes from a stripe to the next.
    pub(crate) stripe_bytes: usize,
    /// Stripes in this block.
    pub(crate) stripes: usize,
    /// Tiles in this block's width.
    pub(crate) width: usize,
    /// What [`Kernel::pack`] made of the queries.
    pub(crate) digits: &'a [u8],
    /// How many queries.
    pub(crate) queries: usize,
}

/// The four signed digits of x = d0 + d1 2^8 + d2 2^16 + d3 2^24 mod 2^32, each from -128 to 127.
#[inline(always)]
pub(crate) fn digits8(x: u32) -> [u8; 4] {
    // Adding 0x80 to each byte position carries exactly where a digit is 128 or more; taking the 0x80 off
    // again byte by byte leaves the signed digit.
    (x.wrapping_add(0x8080_8080) ^ 0x8080_8080).to_le_bytes()
}

/// The two signed digits of x = d0 + d1 2^16 mod 2^32, each from -32768 to 32767.
#[inline(always)]
pub(crate) fn digits16(x: u32) -> [i16; 2] {
    let y = x.wrapping_add(0x8000_8000) ^ 0x8000_8000;
    [y as u16 as i16, (y >> 16) as u16 as i16]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_make_the_word_again() {
        let edges = [0u32, 1, 127, 128, 255, 256, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff, 0x8000_0000, u32::MAX];
        for x in edges.into_iter().chain((0..100_000).map(|i: u32| i.wrapping_mul(0x9e37_79b9))) {
            let sum = digits8(x).iter().rev().fold(0u32, |s, d| (s << 8).wrapping_add(*d as i8 as u32));
            assert_eq!(sum, x);
            let sum = digits16(x).iter().rev().fold(0u32, |s, d| (s << 16).wrapping_add(*d as u32));
            assert_eq!(sum, x);
        }
    }
}
