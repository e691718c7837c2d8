//! The public matrix of learning with errors, expanded from a seed and never stored.

use crate::arch;
use crate::row::{BLOCKS_PER_ROW, LWE_DIMENSION};
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

/// The seed of a public matrix: the key of an AES-128 in counter mode. It is not secret, but nobody may choose
/// it: callers take it from a hash of the parameters that it serves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Seed(pub [u8; 16]);

/// A matrix of uniform 32-bit words with [`LWE_DIMENSION`] columns and any number of rows.
///
/// Row `r` is the AES-128-CTR keystream of blocks 256 r to 256 r + 255, the counter a little-endian 128-bit
/// number, read as little-endian 32-bit words.
#[derive(Clone)]
pub struct PublicMatrix {
    seed: Seed,
    cipher: aes::Aes128,
}

impl PublicMatrix {
    /// The matrix of a seed.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        Self { seed, cipher: aes::Aes128::new(&seed.0.into()) }
    }

    /// Writes row `row` to `out`.
    ///
    /// # Panics
    /// `out` does not have [`LWE_DIMENSION`] words.
    pub fn row(&self, row: u64, out: &mut [u32]) {
        assert_eq!(out.len(), LWE_DIMENSION);
        self.part_of_row(row, 0, out);
    }

    /// Writes the words of row `row` from column `first`, a multiple of 4, on to `out`.
    ///
    /// # Panics
    /// `first` or the length of `out` is not a multiple of 4, or they pass the row's end.
    pub fn part_of_row(&self, row: u64, first: usize, out: &mut [u32]) {
        assert!(first.is_multiple_of(4) && out.len().is_multiple_of(4) && first + out.len() <= LWE_DIMENSION);
        expand(&self.cipher, u128::from(row) * BLOCKS_PER_ROW as u128 + (first / 4) as u128, out);
    }

    /// `out[i]` = row (`first_row` + i) times `secret`, modulo 2^32.
    ///
    /// The time depends on `out.len()` alone.
    ///
    /// # Panics
    /// `secret` does not have [`LWE_DIMENSION`] words.
    pub fn mul(&self, first_row: u64, secret: &[u32], out: &mut [u32]) {
        let secret = secret.try_into().expect("a word for each column");
        if !arch::public_matrix_mul(&self.seed.0, first_row, secret, out) {
            let mut row = [0u32; LWE_DIMENSION];
            for (i, out) in out.iter_mut().enumerate() {
                self.row(first_row + i as u64, &mut row);
                *out = arch::dot(&row, secret);
            }
        }
    }
}

/// The inner product modulo 2^32, in a time that depends on the length alone.
///
/// # Panics
/// The lengths differ.
#[must_use]
pub fn dot(a: &[u32], b: &[u32]) -> u32 {
    assert_eq!(a.len(), b.len());
    arch::dot(a, b)
}

/// The keystream from block `first` on, as many words as `out` has.
fn expand(cipher: &aes::Aes128, first: u128, out: &mut [u32]) {
    let mut blocks = [aes::Block::default(); 64];
    for (chunk, out) in out.chunks_mut(4 * blocks.len()).enumerate() {
        let blocks = &mut blocks[..out.len() / 4];
        for (i, block) in blocks.iter_mut().enumerate() {
            *block = Array::from((first + (64 * chunk + i) as u128).to_le_bytes());
        }
        cipher.encrypt_blocks(blocks);
        for (words, block) in out.chunks_exact_mut(4).zip(blocks) {
            for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
                *word = u32::from_le_bytes(*bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_the_aes_counter_stream() {
        // FIPS 197, appendix C.1: this key maps 00112233..ff to 69c4e0d8..5a. As a little-endian counter the
        // plaintext is block 0xffeeddccbbaa99887766554433221100, out of a row number's reach, so the key is
        // checked through the cipher and the counter through block 1 of row 0.
        let key: [u8; 16] = std::array::from_fn(|i| i as u8);
        let cipher = aes::Aes128::new(&key.into());
        let mut block: aes::Block = std::array::from_fn::<u8, 16, _>(|i| (i * 0x11) as u8).into();
        cipher.encrypt_block(&mut block);
        assert_eq!(block[..4], [0x69, 0xc4, 0xe0, 0xd8]);

        let mut row = vec![0u32; LWE_DIMENSION];
        PublicMatrix::new(Seed(key)).row(3, &mut row);
        let mut counter = [0u8; 16];
        counter[..8].copy_from_slice(&(3u64 * 256 + 1).to_le_bytes());
        let mut expected: aes::Block = counter.into();
        cipher.encrypt_block(&mut expected);
        assert_eq!(row[4].to_le_bytes(), expected[..4]);
    }

    #[test]
    fn products_are_the_same_at_every_level() {
        use crate::features::{Level, limited_to};
        for level in [Level::Portable, Level::Avx2, Level::Avx512] {
            limited_to(level, || {
                #[cfg(target_arch = "x86_64")]
                for other in [Level::Portable, Level::Avx2, Level::Avx512] {
                    assert_eq!(crate::features::within(other, || Some(())).is_some(), other <= level);
                }
                the_fast_product_equals_the_reference();
                dot_wraps();
            });
        }
    }

    #[test]
    fn the_fast_product_equals_the_reference() {
        let seed = Seed([7; 16]);
        let secret: Vec<u32> =
            (0..LWE_DIMENSION as u32).map(|i| i.wrapping_mul(0x9e37_79b9) ^ 0xffff).collect();
        for (first, rows) in [(0u64, 1usize), (5, 9), (1 << 40, 3), ((1 << 56) - 1, 2)] {
            let (mut fast, mut slow) = (vec![0u32; rows], vec![0u32; rows]);
            PublicMatrix::new(seed).mul(first, &secret, &mut fast);
            for (i, s) in slow.iter_mut().enumerate() {
                let mut row = vec![0u32; LWE_DIMENSION];
                PublicMatrix::new(seed).row(first + i as u64, &mut row);
                *s = row.iter().zip(&secret).fold(0u32, |sum, (a, b)| sum.wrapping_add(a.wrapping_mul(*b)));
            }
            assert_eq!(fast, slow, "rows from {first}");
        }
    }

    #[test]
    fn dot_wraps() {
        for len in [0, 1, 15, 16, 17, 63, 1024, 1031] {
            let a = vec![u32::MAX; len];
            assert_eq!(dot(&a, &a), len as u32);
        }
    }
}
