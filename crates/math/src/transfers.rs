//! What oblivious transfer computes by the million: sums of pseudorandom streams, and matrices of bits turned over.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use polyval::{Polyval, universal_hash::UniversalHash};
use zeroize::{Zeroize, Zeroizing};

use crate::arch;
pub use crate::stores::Stores;

/// Numbered streams of pseudorandom words: AES-128 in counter mode, a stream a key. Wiped when dropped.
///
/// Word `c` of a stream is the cipher of the little-endian block `c`.
pub struct Streams {
    first: usize,
    keys: Keys,
}

enum Keys {
    Ciphers(Vec<Aes128Enc>),
    #[cfg(target_arch = "x86_64")]
    Vaes(crate::features::Vaes, Zeroizing<Vec<[u128; 11]>>),
}

impl Streams {
    /// Streams of these keys, numbered from `first` on.
    ///
    /// # Panics
    /// A number is above fifteen, more than the deepest tree has.
    #[must_use]
    pub fn new(first: usize, keys: &[u128]) -> Self {
        assert!(first + keys.len() <= 16, "streams are numbered up to 15");
        #[cfg(target_arch = "x86_64")]
        if let Some((token, keys)) = arch::stream_keys(keys) {
            return Self { first, keys: Keys::Vaes(token, keys) };
        }
        Self::portable(first, keys)
    }

    fn portable(first: usize, keys: &[u128]) -> Self {
        let cipher = |key: &u128| Aes128Enc::new((&*Zeroizing::new(key.to_le_bytes())).into());
        Self { first, keys: Keys::Ciphers(keys.iter().map(cipher).collect()) }
    }

    /// Bits of the last number.
    #[must_use]
    pub fn levels(&self) -> usize {
        let count = match &self.keys {
            Keys::Ciphers(ciphers) => ciphers.len(),
            #[cfg(target_arch = "x86_64")]
            Keys::Vaes(_, keys) => keys.len(),
        };
        (self.first + count).next_power_of_two().ilog2() as usize
    }

    /// XORs of words `counter..counter + total.len()`: of all streams to `total`; of those whose number has bit `l` to
    /// `sums`, from word `l * stride` on.
    ///
    /// # Panics
    /// `sums` is too short for [`Self::levels`].
    pub fn sums(&self, counter: u64, total: &mut [u128], sums: &mut [u128], stride: usize) {
        let (levels, words) = (self.levels(), total.len());
        assert!(levels == 0 || sums.len() >= (levels - 1) * stride + words && stride >= words);
        match &self.keys {
            #[cfg(target_arch = "x86_64")]
            Keys::Vaes(token, keys) => {
                arch::stream_sums(*token, self.first, keys, counter, total, &mut sums[..], stride, levels);
            }
            Keys::Ciphers(ciphers) => {
                total.fill(0);
                (0..levels).for_each(|level| sums[level * stride..][..words].fill(0));
                let mut stream = vec![Block::default(); words];
                for (number, cipher) in (self.first..).zip(ciphers) {
                    for (block, word) in stream.iter_mut().zip(u128::from(counter)..) {
                        *block = word.to_le_bytes().into();
                    }
                    cipher.encrypt_blocks(&mut stream);
                    add(total, &stream);
                    for level in (0..levels).filter(|level| number >> level & 1 == 1) {
                        add(&mut sums[level * stride..][..words], &stream);
                    }
                }
                stream.iter_mut().for_each(|block| block.as_mut_slice().zeroize());
            }
        }
    }
}

fn add(words: &mut [u128], blocks: &[Block]) {
    for (sum, block) in words.iter_mut().zip(blocks) {
        *sum ^= u128::from_le_bytes((*block).into());
    }
}

/// A linear hash of columns at a point of GF(2^128): the POLYVAL (RFC 8452, section 3) of all words but the last, plus the last.
/// Two columns of `n` words that differ hash alike for at most `n` points of 2^128; and where the last word is random, so is
/// the hash. The point is public, the columns need not be.
pub struct ColumnHash(Point);

enum Point {
    Polyval(Polyval),
    /// Its powers down to itself.
    #[cfg(target_arch = "x86_64")]
    Powers(crate::features::Clmul, Vec<u128>),
}

impl ColumnHash {
    /// The hash of this point, of columns of at most this many words.
    #[must_use]
    pub fn new(point: u128, most: usize) -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some((token, powers)) = arch::powers(point, most) {
            return Self(Point::Powers(token, powers));
        }
        Self::portable(point, most)
    }

    fn portable(point: u128, _: usize) -> Self {
        Self(Point::Polyval(Polyval::new(&point.to_le_bytes().into())))
    }

    /// A column's hash.
    ///
    /// # Panics
    /// The column is empty, or longer than was said.
    #[must_use]
    pub fn of(&self, column: &[u128]) -> u128 {
        let (&last, rest) = column.split_last().expect("a column has a word");
        match &self.0 {
            #[cfg(target_arch = "x86_64")]
            Point::Powers(token, powers) => {
                last ^ arch::polynomial(*token, &powers[powers.len() - rest.len()..], rest)
            }
            Point::Polyval(polyval) => {
                let mut state = polyval.clone();
                let mut blocks = [polyval::Block::default(); 8];
                for words in rest.chunks(blocks.len()) {
                    let blocks = &mut blocks[..words.len()];
                    for (block, word) in blocks.iter_mut().zip(words) {
                        *block = word.to_le_bytes().into();
                    }
                    state.update(blocks);
                }
                blocks.iter_mut().for_each(|block| block.as_mut_slice().zeroize());
                last ^ u128::from_le_bytes(state.finalize().into())
            }
        }
    }
}

/// Rows of a matrix of 128 columns: bit `i` of row `j` is bit `j % 128` of `columns[i * stride + j / 128]`.
///
/// # Panics
/// There are not as many columns, or they are too short.
pub fn rows(columns: &[u128], stride: usize, out: &mut [u128], stores: Stores) {
    assert!(out.is_empty() || columns.len() > 127 * stride + (out.len() - 1) / 128);
    if !arch::rows(columns, stride, out, stores) {
        rows_portable(columns, stride, out);
    }
}

fn rows_portable(columns: &[u128], stride: usize, out: &mut [u128]) {
    for (block, out) in out.chunks_mut(128).enumerate() {
        let (mut low, mut high) = ([0; 128], [0; 128]);
        for lane in 0..128 {
            let word = columns[lane * stride + block];
            low[lane] = word as u64;
            high[lane] = (word >> 64) as u64;
        }
        transpose(&mut low, &mut high);
        for ((out, low), high) in out.iter_mut().zip(low).zip(high) {
            *out = u128::from(high) << 64 | u128::from(low);
        }
        low.zeroize();
        high.zeroize();
    }
}

/// Transposes 128 x 128 bits: bit `j` of word `i` becomes bit `i` of word `j`.
///
/// Seven rounds that swap ever smaller squares (Warren, Hacker's Delight, section 7-3), on two arrays of 64-bit words so
/// that six of the rounds are plain vector code.
fn transpose(low: &mut [u64; 128], high: &mut [u64; 128]) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that look random.
    fn words(count: usize) -> Vec<u128> {
        let mut x = 1u128;
        let mut next = || {
            x = x.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(0x5851_f42d_4c95_7f2d);
            x ^ x >> 61
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn every_kernel_sums_the_same_streams() {
        for (first, count) in [(0, 2), (1, 1), (0, 4), (1, 3), (1, 7), (0, 16), (1, 15)] {
            let keys = words(count);
            let (fast, slow) = (Streams::new(first, &keys), Streams::portable(first, &keys));
            assert_eq!(fast.levels(), (first + count).ilog2() as usize);
            for blocks in [0, 1, 3, 4, 15, 16, 17, 35, 129] {
                let stride = blocks + 3;
                let run = |streams: &Streams| {
                    let (mut total, mut sums) = (vec![7; blocks], vec![7; 4 * stride]);
                    streams.sums(u64::from(u32::MAX) - 2, &mut total, &mut sums, stride);
                    (total, sums)
                };
                assert!(run(&fast) == run(&slow), "{count} streams from {first}, {blocks} blocks");
            }
        }
    }

    #[test]
    fn a_stream_is_aes_in_counter_mode() {
        // FIPS 197, appendix B's key and cipher under another block: word 0 of stream 1 is the cipher of zeros.
        let key = u128::from_le_bytes(0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes());
        let mut total = [0];
        Streams::new(1, &[key]).sums(0, &mut total, &mut [0], 1);
        let want = 0x7df7_6b0c_1ab8_99b3_3e42_f047_b91b_546f_u128;
        assert_eq!(total[0].to_le_bytes(), want.to_be_bytes());
    }

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

    #[test]
    fn a_column_hashes_to_its_polynomial() {
        for (count, point) in [1, 2, 3, 4, 5, 8, 9, 64, 128, 129].into_iter().zip(words(10)) {
            let column = words(count);
            let (last, rest) = column.split_last().unwrap();
            let want = rest.iter().fold(0, |sum, word| slow_dot(sum ^ word, point)) ^ last;
            // Also where it is made for longer ones.
            for most in [count, 129] {
                assert_eq!(ColumnHash::new(point, most).of(&column), want, "{count} words");
                assert_eq!(ColumnHash::portable(point, most).of(&column), want, "{count} words");
            }
        }
    }

    #[test]
    fn rows_are_what_their_definition_says() {
        for count in [0, 1, 127, 128, 129, 1000] {
            let stride = count / 128 + 2;
            let columns = words(128 * stride);
            let (mut fast, mut slow) = (vec![0; count], vec![0; count]);
            rows(&columns, stride, &mut fast, Stores::Cached);
            rows_portable(&columns, stride, &mut slow);
            // Wherever lines of a cache begin.
            for before in 0..5 {
                let mut streamed = vec![5; before + count + 3];
                rows(&columns, stride, &mut streamed[before..before + count], Stores::Streamed);
                assert!(streamed[before..before + count] == slow, "{count} {before}");
                assert!(streamed[..before].iter().chain(&streamed[before + count..]).all(|word| *word == 5));
            }
            let bit = |i: usize, j: usize| columns[i * stride + j / 128] >> (j % 128) & 1;
            let want = |j: usize| (0..128).fold(0, |row, i| row | bit(i, j) << i);
            assert!((0..count).all(|j| slow[j] == want(j)) && fast == slow, "{count}");
        }
    }
}
