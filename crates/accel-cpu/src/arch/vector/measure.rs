//! What measurements share for every instruction set: how a read goes through memory, and the plain loop of a peer.

/// In how many places at once a streaming read goes through memory: which is faster depends on the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// From the first byte to the last.
    One,
    /// Four quarters of each 4 MiB side by side.
    Four,
}

impl Streams {
    /// All there are. The physical limit that a database scan is measured against is the fastest of them.
    pub const ALL: [Self; 2] = [Self::One, Self::Four];
}

/// Bits of an entry in [`crate::measure::packed_product`], three to a word.
pub const PACKED_BITS: u32 = 10;

/// Compiled for each instruction set.
#[inline(always)]
pub(crate) fn packed_product_generic(matrix: &[u32], vector: &[u32], out: &mut [u32]) {
    const MASK: u32 = (1 << PACKED_BITS) - 1;
    let width = vector.len() / 3;
    let (triples, _) = vector.as_chunks::<3>();
    for (rows, out) in matrix.chunks_exact(8 * width).zip(out.as_chunks_mut::<8>().0) {
        let rows: [&[u32]; 8] = std::array::from_fn(|r| &rows[r * width..][..width]);
        let mut sums = [0u32; 8];
        for (i, [x, y, z]) in triples.iter().enumerate() {
            for r in 0..8 {
                let word = rows[r][i];
                let products = (word & MASK)
                    .wrapping_mul(*x)
                    .wrapping_add((word >> PACKED_BITS & MASK).wrapping_mul(*y))
                    .wrapping_add((word >> (2 * PACKED_BITS) & MASK).wrapping_mul(*z));
                sums[r] = sums[r].wrapping_add(products);
            }
        }
        *out = sums;
    }
}
