//! Matrices of bits, 128 wide: how they lie, and the hash of their columns.

use polyval::{Polyval, universal_hash::UniversalHash};

/// Transfers that are worked on at once: all of their matrix stays in a second-level cache.
pub const CHUNK: usize = 1 << 14;

/// Blocks of 128 rows from one column's start to the next: odd, so that columns don't fall on the same lines of a cache.
pub(super) const STRIDE: usize = CHUNK / 128 + 1;

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
        fn a_column_hashes_to_its_polynomial(key: u128, column in prop::collection::vec(any::<u128>(), 1..130)) {
            let (last, rest) = column.split_last().unwrap();
            let expected = rest.iter().fold(0, |sum, block| slow_dot(sum ^ block, key)) ^ last;
            prop_assert_eq!(ColumnHash::new(key).of(&column), expected);
        }
    }
}
