//! Matrices of bits, 128 wide: their transpose, and the hash of their columns.

use polyval::{Polyval, universal_hash::UniversalHash};

/// Transposes 128 x 128 bits: bit `j` of word `i` becomes bit `i` of word `j`.
///
/// Seven rounds that swap ever smaller squares (Warren, Hacker's Delight, section 7-3), on two arrays of 64-bit words so
/// that six of the rounds are plain vector code.
pub(super) fn transpose(low: &mut [u64; 128], high: &mut [u64; 128]) {
    low[64..].swap_with_slice(&mut high[..64]);
    for half in [low, high] {
        swap_squares::<32>(half, 0x0000_0000_ffff_ffff);
        swap_squares::<16>(half, 0x0000_ffff_0000_ffff);
        swap_squares::<8>(half, 0x00ff_00ff_00ff_00ff);
        swap_squares::<4>(half, 0x0f0f_0f0f_0f0f_0f0f);
        swap_squares::<2>(half, 0x3333_3333_3333_3333);
        swap_squares::<1>(half, 0x5555_5555_5555_5555);
    }
}

#[inline(always)]
fn swap_squares<const SIDE: usize>(words: &mut [u64; 128], mask: u64) {
    for square in words.chunks_exact_mut(2 * SIDE) {
        let (above, below) = square.split_at_mut(SIDE);
        for (a, b) in above.iter_mut().zip(below) {
            let differ = (*a >> SIDE ^ *b) & mask;
            *b ^= differ;
            *a ^= differ << SIDE;
        }
    }
}

/// Transfers that are worked on at once: all of their matrix stays in a second-level cache.
pub const CHUNK: usize = 1 << 14;

/// Blocks of 128 rows from one column's start to the next: odd, so that columns don't fall on the same lines of a cache.
pub(super) const STRIDE: usize = CHUNK / 128 + 1;

/// Rows of a matrix of 128 columns: bit `i` of row `j` is bit `j % 128` of `columns[i * STRIDE + j / 128]`.
pub(super) fn rows(columns: &[u128], out: &mut [u128]) {
    for (block, out) in out.chunks_mut(128).enumerate() {
        let (mut low, mut high) = ([0; 128], [0; 128]);
        for lane in 0..128 {
            let word = columns[lane * STRIDE + block];
            low[lane] = word as u64;
            high[lane] = (word >> 64) as u64;
        }
        transpose(&mut low, &mut high);
        for ((out, low), high) in out.iter_mut().zip(low).zip(high) {
            *out = u128::from(high) << 64 | u128::from(low);
        }
    }
}

/// A linear hash of columns, a point in GF(2^128): the POLYVAL (RFC 8452, section 3) of all blocks but the last, plus the
/// last. Two columns that differ hash alike for at most one key in 2^121, being of at most 129 blocks; and where the last
/// block is random, so is the hash.
pub(super) struct ColumnHash {
    polyval: Polyval,
    blocks: Vec<polyval::Block>,
}

impl ColumnHash {
    pub(super) fn new(key: u128) -> Self {
        Self { polyval: Polyval::new(&key.to_le_bytes().into()), blocks: Vec::with_capacity(STRIDE) }
    }

    pub(super) fn of(&mut self, column: &[u128]) -> u128 {
        let (&last, rest) = column.split_last().expect("a column has its masking block");
        self.blocks.clear();
        self.blocks.extend(rest.iter().map(|block| polyval::Block::from(block.to_le_bytes())));
        let mut state = self.polyval.clone();
        state.update(&self.blocks);
        u128::from_le_bytes(state.finalize().into()) ^ last
    }
}

impl Drop for ColumnHash {
    fn drop(&mut self) {
        for block in &mut self.blocks {
            zeroize::Zeroize::zeroize(block.as_mut_slice());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The product in GF(2^128) of RFC 8452, section 3: `a * b * x^-128` modulo x^128 + x^127 + x^126 + x^121 + 1.
    fn slow_dot(a: u128, b: u128) -> u128 {
        // The product bit by bit, highest first, each step dividing by x.
        let mut sum = 0u128;
        for i in 0..128 {
            if a >> i & 1 == 1 {
                sum ^= b;
            }
            // x^-1 = x^127 + x^126 + x^125 + x^120.
            let odd = sum & 1;
            sum >>= 1;
            if odd == 1 {
                sum ^= 1 << 127 | 1 << 126 | 1 << 125 | 1 << 120;
            }
        }
        sum
    }

    #[test]
    fn the_slow_product_is_that_of_rfc_8452() {
        // Appendix A: a * b, a + b and dot(a, b).
        let a = u128::from_le_bytes(0x66e94bd4ef8a2c3b884cfa59ca342b2e_u128.to_be_bytes());
        let b = u128::from_le_bytes(0xff000000000000000000000000000000_u128.to_be_bytes());
        let dot = u128::from_le_bytes(0xebe563401e7e91ea3ad6426b8140c394_u128.to_be_bytes());
        assert_eq!(slow_dot(a, b), dot);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn a_transpose_is_what_its_definition_says(words in prop::collection::vec(any::<u128>(), 128)) {
            let mut low: [u64; 128] = std::array::from_fn(|i| words[i] as u64);
            let mut high: [u64; 128] = std::array::from_fn(|i| (words[i] >> 64) as u64);
            transpose(&mut low, &mut high);
            for i in 0..128 {
                for j in 0..128 {
                    let bit = if j < 64 { low[i] >> j & 1 } else { high[i] >> (j - 64) & 1 };
                    prop_assert_eq!(u128::from(bit), words[j] >> i & 1, "{} {}", i, j);
                }
            }
        }

        #[test]
        fn a_column_hashes_to_its_polynomial(key: u128, column in prop::collection::vec(any::<u128>(), 1..130)) {
            let (last, rest) = column.split_last().unwrap();
            let expected = rest.iter().fold(0, |sum, block| slow_dot(sum ^ block, key)) ^ last;
            prop_assert_eq!(ColumnHash::new(key).of(&column), expected);
        }
    }
}
