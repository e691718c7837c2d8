//! What is known of a modulus beforehand.

use blindcore_accel::bigmod::BigModulus;
use crypto_bigint::{BoxedUint, NonZero};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Constants of a modulus n (or n^2) for digits of one width, R = 2^(digit bits * digits).
///
/// R is at least 32 n, so that products of numbers below 2n, and sums of a few of them, come out below 2n again
/// without a last subtraction.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Field {
    /// Parts of a residue: 1, or 2 modulo a square.
    pub(crate) parts: usize,
    /// Digits of a part.
    pub(crate) digits: usize,
    /// Bits of a digit.
    pub(crate) digit_bits: u32,
    /// n.
    pub(crate) n: Vec<u64>,
    /// -1 / n modulo 2^(digit bits).
    pub(crate) inverse: u64,
    /// A multiple of n with every digit at least 2^(digit bits): what a number below R is taken from, digit by digit.
    pub(crate) minuend: Vec<u64>,
    /// One, in Montgomery's form: all parts.
    pub(crate) one: Vec<u64>,
    /// R^2 and R^3, which take the low and the high digits of a number into Montgomery's form: all parts each.
    pub(crate) entry: [Vec<u64>; 2],
    /// n in words of 64 bits.
    pub(crate) root: Vec<u64>,
    /// Words of a number.
    pub(crate) words: usize,
}

impl Field {
    pub(crate) fn new(modulus: &BigModulus, digit_bits: u32, tile: usize) -> Self {
        let root = modulus.root().to_vec();
        let bits = 64 * root.len() as u32 - root[root.len() - 1].leading_zeros();
        let digits = ((bits + 5).div_ceil(digit_bits) as usize).next_multiple_of(tile);
        let parts = if modulus.is_square() { 2 } else { 1 };

        let r_bits = digit_bits * digits as u32;
        // Room for R^3 and for every product below.
        let room = 3 * r_bits as usize / 64 + 1 + modulus.words();
        let wide = |words: &[u64]| {
            BoxedUint::from_words(words.iter().copied().chain(std::iter::repeat(0)).take(room))
        };
        let nonzero = |x: BoxedUint| NonZero::new(x).expect("a modulus is above one");
        let n = nonzero(wide(&root));
        let value = nonzero(wide(modulus.value()));
        // A constant as the digits of its parts.
        let parts_of = |x: &BoxedUint| {
            let (high, low) = x.div_rem(&n);
            let mut out = to_digits(low.as_words(), digit_bits, digits);
            if parts == 2 {
                out.extend(to_digits(high.as_words(), digit_bits, digits));
            }
            out
        };
        let power_of_r =
            |power: u32| BoxedUint::one_with_precision(64 * room as u32).shl(power * r_bits).rem(&value);

        // Sum of 2^(digit bits) at every digit, and what is missing from it to a multiple of n.
        let ones: Vec<u64> = vec![1; digits];
        let sum = wide(&to_words(&ones, digit_bits)).shl(digit_bits);
        let missing = n.as_ref().wrapping_sub(sum.rem(&n));
        let minuend = to_digits(missing.as_words(), digit_bits, digits);
        let minuend = minuend.iter().map(|d| d + (1 << digit_bits)).collect();

        let mask = (1u64 << digit_bits) - 1;
        Self {
            parts,
            digits,
            digit_bits,
            n: to_digits(&root, digit_bits, digits),
            inverse: negative_inverse(root[0]) & mask,
            minuend,
            one: parts_of(&power_of_r(1)),
            entry: [parts_of(&power_of_r(2)), parts_of(&power_of_r(3))],
            words: modulus.words(),
            root,
        }
    }

    /// Digits of a residue, all parts.
    pub(crate) fn row_digits(&self) -> usize {
        self.parts * self.digits
    }

    /// Lines of a row.
    pub(crate) fn row_lines(&self) -> usize {
        self.row_digits().div_ceil(8)
    }
}

/// -1 / n modulo 2^64, by Newton's iteration: each step doubles the bits that are right.
fn negative_inverse(n: u64) -> u64 {
    let mut inverse = n; // right in its lowest three bits
    for _ in 0..5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(n.wrapping_mul(inverse)));
    }
    inverse.wrapping_neg()
}

/// The lowest `count` digits of a number.
pub(crate) fn to_digits(words: &[u64], bits: u32, count: usize) -> Vec<u64> {
    (0..count).map(|i| digit(words, bits, i)).collect()
}

/// A digit of a number.
#[inline]
pub(crate) fn digit(words: &[u64], bits: u32, at: usize) -> u64 {
    bits_at(words, bits, at * bits as usize)
}

/// The `bits` bits of a number from bit `first` on, fewer than 64.
#[inline]
pub(crate) fn bits_at(words: &[u64], bits: u32, first: usize) -> u64 {
    let (word, shift) = (first / 64, first as u32 % 64);
    let low = words.get(word).map_or(0, |w| w >> shift);
    let high = if shift + bits > 64 { words.get(word + 1).map_or(0, |w| w << (64 - shift)) } else { 0 };
    (low | high) & ((1 << bits) - 1)
}

/// The words of a number in normalised digits.
pub(crate) fn to_words(digits: &[u64], bits: u32) -> Vec<u64> {
    let mut out = vec![0; (digits.len() * bits as usize).div_ceil(64)];
    for (i, digit) in digits.iter().enumerate() {
        let first = i * bits as usize;
        let (word, shift) = (first / 64, first as u32 % 64);
        out[word] |= digit << shift;
        if shift + bits > 64 {
            out[word + 1] |= digit >> (64 - shift);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_words_are_the_same_number() {
        let words = [0x0123_4567_89ab_cdef, u64::MAX, 0, 0xfedc_ba98_7654_3210];
        for bits in [27, 52] {
            let digits = to_digits(&words, bits, 256usize.div_ceil(bits as usize));
            assert_eq!(to_words(&digits, bits)[..4], words);
            assert!(digits.iter().all(|d| *d < 1 << bits));
        }
        for n in [1u64, 3, u64::MAX, 0x1234_5677] {
            assert_eq!(n.wrapping_mul(negative_inverse(n)), u64::MAX);
        }
    }
}
