//! From a prime to a power of two and back, and words of any width in bytes.
//!
//! ```
//! use blindcore_math::Prime;
//! use blindcore_rlwe::rounding::{Rounding, pack, packed_bytes, unpack};
//!
//! let rounding = Rounding::new(Prime::new(65_537)?, 11);
//! assert_eq!(rounding.down(32_768), 1024); // half of the prime, half of 2^11
//! assert_eq!(rounding.up(1024), 32_769);
//!
//! let mut bytes = Vec::new();
//! pack(&[5, 2047, 1], 11, &mut bytes);
//! assert_eq!(bytes.len(), packed_bytes(3, 11));
//! assert_eq!(unpack(&bytes, 11).take(3).collect::<Vec<_>>(), [5, 2047, 1]);
//! # Ok::<(), blindcore_math::ModulusError>(())
//! ```

use blindcore_math::Prime;

/// Switches residues of a prime q to `bits` bits and back: x to round(x 2^bits / q) modulo 2^bits.
///
/// In constant time: no division, and no branch on a residue. Source: modulus switching (Brakerski, Gentry and Vaikuntanathan
/// 2012, section 4.2), to a modulus that is no prime.
#[derive(Clone, Copy, Debug)]
pub struct Rounding {
    prime: Prime,
    bits: u32,
    /// floor(2^(64 + bits) / q).
    factor: u64,
}

impl Rounding {
    /// From `prime` to `bits` bits.
    ///
    /// # Panics
    /// `bits` is 0, or 2^`bits` is not below the prime.
    #[must_use]
    pub fn new(prime: Prime, bits: u32) -> Self {
        assert!(bits > 0 && prime.value() >> bits > 0, "{bits} bits are not fewer than the prime's");
        Self { prime, bits, factor: ((1u128 << (64 + bits)) / u128::from(prime.value())) as u64 }
    }

    /// The bits of a rounded word.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// round(`residue` 2^bits / q) modulo 2^bits. Where the quotient lies within q 2^-64 of halfway, it may be rounded down.
    #[must_use]
    #[inline]
    pub fn down(&self, residue: u64) -> u64 {
        let quotient = (u128::from(residue) * u128::from(self.factor) + (1 << 63)) >> 64;
        quotient as u64 & ((1 << self.bits) - 1)
    }

    /// round(`word` q / 2^bits), a residue, for a word below 2^bits.
    #[must_use]
    #[inline]
    pub fn up(&self, word: u64) -> u64 {
        // word <= 2^bits - 1 and 2^bits < q: at most q - q / 2^bits + 1/2, which is below q.
        ((u128::from(word) * u128::from(self.prime.value()) + (1 << (self.bits - 1))) >> self.bits) as u64
    }
}

/// Bytes of `count` words of `width` bits.
#[must_use]
pub const fn packed_bytes(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// Appends the low `width` bits of each word, least significant bit first, without gaps; the last byte is filled with zeros.
///
/// # Panics
/// `width` is not from 1 to 57.
pub fn pack(words: &[u64], width: u32, out: &mut Vec<u8>) {
    assert!((1..=57).contains(&width), "words of {width} bits are outside 1 to 57");
    let mask = u64::MAX >> (64 - width);
    // `held` bits are waiting, 7 at most between words.
    let (mut waiting, mut held) = (0u64, 0);
    for word in words {
        waiting |= (word & mask) << held;
        held += width;
        while held >= 8 {
            out.push(waiting as u8);
            waiting >>= 8;
            held -= 8;
        }
    }
    if held > 0 {
        out.push(waiting as u8);
    }
}

/// The words of `width` bits that [`pack`] wrote, for as long as bytes last; bits beyond the last byte are zeros.
///
/// # Panics
/// `width` is not from 1 to 57.
pub fn unpack(bytes: &[u8], width: u32) -> impl Iterator<Item = u64> {
    assert!((1..=57).contains(&width), "words of {width} bits are outside 1 to 57");
    let mask = u64::MAX >> (64 - width);
    (0..bytes.len() * 8 / width as usize).map(move |i| {
        let bit = i * width as usize;
        let mut word = [0; 8];
        let from = &bytes[bit / 8..bytes.len().min(bit / 8 + 8)];
        word[..from.len()].copy_from_slice(from);
        u64::from_le_bytes(word) >> (bit % 8) & mask
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        for width in 1..=57 {
            for count in [0, 1, 2, 7, 8, 9, 100] {
                let words: Vec<u64> =
                    (0..count).map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - width)).collect();
                let mut bytes = Vec::new();
                pack(&words, width, &mut bytes);
                assert_eq!(bytes.len(), packed_bytes(words.len(), width));
                assert_eq!(unpack(&bytes, width).take(words.len()).collect::<Vec<_>>(), words, "{width}");
            }
        }
    }

    #[test]
    fn rounding_is_the_nearest() {
        for q in [65_537u64, (1 << 48) - 59, 0x3_ffff_ffff_c001] {
            let prime = Prime::new(q).unwrap();
            for bits in [1, 2, 11, 16, 17, 26, 32] {
                if q >> bits == 0 {
                    continue;
                }
                let rounding = Rounding::new(prime, bits);
                let residues = [0, 1, q / 2 - 1, q / 2, q / 2 + 1, q - 1, q / 3, q / 256, q / 256 * 255];
                for x in residues.into_iter().chain((0..1000).map(|i| i * (q / 1000) + i)) {
                    let x = x % q;
                    let (got, exact) = (rounding.down(x), f64::from(bits).exp2() * (x as f64 / q as f64));
                    let off = (got as f64 - exact).abs();
                    let off = off.min(f64::from(bits).exp2() - off);
                    assert!(off <= 0.5 + 1e-3, "{x} of {q} to {bits} bits: {got}, off {off}");
                }
                for word in [0, 1, (1 << bits) - 1, 1 << (bits - 1)] {
                    let up = rounding.up(word);
                    assert!(up < q);
                    assert_eq!(rounding.down(up), word, "{word} of {bits} bits from {q}");
                }
            }
        }
    }
}
