//! Vectors of residues taken apart into signed digits.

use crate::Prime;
use crate::arch;

/// Residues modulo a prime, centred, as digits of few bits: x is about the sum of t_i B^i 2^w, with B = 2^b and w dropped low bits.
///
/// Digits but the last lie from -B/2 to B/2 - 1; the last one takes what is left. They come as residues. The time depends on the
/// lengths alone.
///
/// ```
/// use blindcore_math::{SignedDigits, Prime};
///
/// let digits = SignedDigits { prime: Prime::new(65_537)?, count: 2, bits: 8, dropped: 1 };
/// let mut out = [0; 2];
/// digits.split(&[1000], &mut out); // 500 = -12 + 2 * 256
/// assert_eq!(out, [65_525, 2]);
/// # Ok::<(), blindcore_math::ModulusError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SignedDigits {
    /// The residues' prime.
    pub prime: Prime,
    /// Digits of each.
    pub count: usize,
    /// b, at least 1; digits are smaller than the prime.
    pub bits: u32,
    /// w: low bits that are rounded away.
    pub dropped: u32,
}

impl SignedDigits {
    /// log2 of what a digit counts: B^`digit` 2^w.
    #[must_use]
    pub fn weight(&self, digit: usize) -> u32 {
        self.dropped + digit as u32 * self.bits
    }

    /// Takes residues apart: `out` has the lowest digit of all of them, then the next.
    ///
    /// # Panics
    /// There is not room for all digits of each residue.
    pub fn split(&self, residues: &[u64], out: &mut [u64]) {
        assert_eq!(out.len(), residues.len() * self.count, "a word for each digit");
        arch::split_digits(self, residues, out);
    }
}

/// A digit of integers of two limbs, low and high, each half a digit too large so that no digit carries.
///
/// ```
/// use blindcore_math::{CutDigit, Prime};
///
/// let primes = [Prime::new(65_537)?, Prime::new(257)?];
/// let (low, high) = ([3 << 60 | 5], [1]); // bits 60 to 67 are 19, and a digit's half is 128
/// let mut out = [0; 2];
/// CutDigit { shift: 60, bits: Some(8) }.residues([&low, &high], &primes, &mut out);
/// assert_eq!(out, [65_537 - 109, 257 - 109]);
/// # Ok::<(), blindcore_math::ModulusError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CutDigit {
    /// Bits below it, under 128.
    pub shift: u32,
    /// Its bits, 1 to 62; none for the last, which is all that is left, with its sign and no half.
    pub bits: Option<u32>,
}

impl CutDigit {
    /// The digit of each integer as residues: `out` has all of them modulo the first prime, then modulo the next. A digit is smaller
    /// than each prime. The time depends on the lengths alone.
    ///
    /// # Panics
    /// There are not as many high limbs as low ones, or there is not room for each prime's residues.
    pub fn residues(&self, [low, high]: [&[u64]; 2], primes: &[Prime], out: &mut [u64]) {
        assert!(self.shift < u128::BITS && low.len() == high.len());
        assert_eq!(out.len(), primes.len() * low.len(), "a word for each prime and integer");
        arch::cut_digit(self, [low, high], primes, out);
    }
}

/// Integers modulo the product Q of primes, from their shares: with x the integer and q_i a prime, the share y_i is
/// x (Q / q_i)^-1 modulo q_i, and x is the sum of y_i Q / q_i less as many times Q as the sum of y_i / q_i is when it is
/// rounded. So x is centred.
///
/// ```
/// use blindcore_math::{Prime, Recombination};
///
/// let recombination = Recombination::new(&[Prime::new(17)?, Prime::new(257)?]);
/// // -3 is 14 modulo 17 and 254 modulo 257; 257 is 2 modulo 17, and 17 is the inverse of 121 modulo 257.
/// let [low, high] = recombination.limbs(&[7, 254 * 121 % 257], 0);
/// assert_eq!((low, high), (vec![3u64.wrapping_neg()], vec![u64::MAX]));
/// # Ok::<(), blindcore_math::ModulusError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recombination {
    /// For each prime what a share counts, and the part of Q that this is.
    pub(crate) counts: Vec<(u128, f64)>,
    pub(crate) modulus: u128,
}

impl Recombination {
    /// Added to a small number it leaves that one, rounded, in the lowest bits.
    pub(crate) const ROUND: f64 = 1.5 * (1u64 << 52) as f64;

    /// Modulo the product of `primes`, which is below 2^127.
    ///
    /// # Panics
    /// It is not.
    #[must_use]
    pub fn new(primes: &[Prime]) -> Self {
        let product = primes.iter().try_fold(1u128, |q, prime| q.checked_mul(u128::from(prime.value())));
        let modulus = product.filter(|q| *q < 1 << 127).expect("a product below 2^127");
        let count = |prime: &Prime| (modulus / u128::from(prime.value()), 1.0 / prime.value() as f64);
        Self { counts: primes.iter().map(count).collect(), modulus }
    }

    /// Each integer plus one that is public, modulo 2^128: the low and the high halves. `shares` has those modulo the first
    /// prime, then modulo the next. An integer within 2^-48 Q of Q / 2 may be taken for one near -Q / 2, or the other way round.
    /// The time depends on the lengths alone.
    ///
    /// # Panics
    /// There are not as many shares modulo each prime.
    #[must_use]
    pub fn limbs(&self, shares: &[u64], plus: u128) -> [Vec<u64>; 2] {
        let count = shares.len() / self.counts.len();
        assert_eq!(count * self.counts.len(), shares.len(), "a share for each prime");
        let mut limbs = [0; 2].map(|_| vec![0; count]);
        let [low, high] = &mut limbs;
        arch::recombine(self, shares, plus, [low, high]);
        limbs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::{Level, limited_to};

    #[test]
    fn digits_are_small_and_add_up() {
        for q in [65_537u64, (1 << 40) - 87, (1 << 50) - 27, (1 << 62) - 57] {
            let prime = Prime::new(q).unwrap();
            let size = i128::from(q.ilog2() + 1);
            let edges = [0, 1, 2, q / 2 - 1, q / 2, q / 2 + 1, q - 2, q - 1];
            let residues: Vec<u64> =
                edges.into_iter().chain((0..500).map(|i| i * (q / 503) + i * i % 7)).map(|x| x % q).collect();
            for (bits, dropped) in [(1, 0), (2, 2), (5, 5), (8, 0), (8, 3)] {
                let count = (size as u32 - dropped).div_ceil(bits) as usize;
                let digits = SignedDigits { prime, count, bits, dropped };
                let mut out = vec![0; residues.len() * count];
                digits.split(&residues, &mut out);
                let centred = |x: u64| if x > q / 2 { i128::from(x) - i128::from(q) } else { i128::from(x) };
                for (i, residue) in residues.iter().enumerate() {
                    let mut sum = 0;
                    for k in 0..count {
                        let digit = centred(out[k * residues.len() + i]);
                        let half = 1i128 << (bits - 1);
                        assert!(k + 1 == count || (-half..half).contains(&digit), "{digit} of {bits} bits");
                        sum += digit << (k as u32 * bits + dropped);
                    }
                    let off = (sum - centred(*residue)).abs();
                    assert!(2 * off <= 1 << dropped && (dropped > 0 || off == 0), "{residue} of {q}: {off}");
                }
                // The portable code gives the same.
                let mut portable = vec![0; out.len()];
                limited_to(Level::Portable, || digits.split(&residues, &mut portable));
                assert!(portable == out);
            }
        }
    }

    #[test]
    fn digits_of_two_limbs_are_those_of_the_integer() {
        let primes = [(1 << 40) - 87, (1 << 50) - 27].map(|q| Prime::new(q).unwrap());
        let integers: Vec<i128> = (0..77)
            .map(|i| (i - 38) * ((i128::MAX >> 3) / 39) + i * i * i)
            .chain([0, 1, -1, i128::from(u64::MAX)])
            .collect();
        let low: Vec<u64> = integers.iter().map(|x| *x as u64).collect();
        let high: Vec<u64> = integers.iter().map(|x| (*x >> 64) as u64).collect();
        for shift in [0, 1, 13, 63, 64, 65, 90] {
            // What is left above 90 bits is smaller than the primes.
            let last = (shift >= 90).then_some(None);
            for bits in [Some(1), Some(7), Some(38)].into_iter().chain(last) {
                let want = primes.iter().flat_map(|prime| {
                    integers.iter().map(move |x| {
                        let rest = x >> shift;
                        let digit = bits.map_or(rest, |b| (rest & ((1 << b) - 1)) - (1 << (b - 1)));
                        digit.rem_euclid(i128::from(prime.value())) as u64
                    })
                });
                let want: Vec<u64> = want.collect();
                for level in [Level::Avx512, Level::Portable] {
                    let mut out = vec![0; want.len()];
                    limited_to(level, || {
                        CutDigit { shift, bits }.residues([&low, &high], &primes, &mut out);
                    });
                    assert!(out == want, "{shift}, {bits:?}, {level:?}");
                }
            }
        }
    }
    #[test]
    fn integers_come_from_their_shares() {
        let primes = [
            &[257][..],
            &[(1 << 40) - 87, (1 << 50) - 27],
            &[65_537, (1 << 40) - 87, 257],
            &[(1 << 62) - 57, 257],
        ];
        // Whole vectors, and not.
        for (values, count) in primes.into_iter().flat_map(|values| [(values, 80), (values, 77)]) {
            let primes: Vec<Prime> = values.iter().map(|q| Prime::new(*q).unwrap()).collect();
            let q: i128 = values.iter().map(|q| i128::from(*q)).product();
            let edge = (q >> 40) + 1;
            let integers: Vec<i128> = [0, 1, -1, q / 2 - edge, edge - q / 2]
                .into_iter()
                .chain((0..75).map(|i| (i - 35) * (q / 80) + i * i * i % (q / 80)))
                .take(count)
                .collect();
            let shares = values.iter().flat_map(|prime| {
                let prime = i128::from(*prime);
                let inverse = (q / prime).rem_euclid(prime);
                // Fermat: the power p - 2.
                let power = |base: i128| {
                    (0..62).rev().fold(1, |power, bit| {
                        let square = power * power % prime;
                        if (prime - 2) >> bit & 1 == 1 { square * base % prime } else { square }
                    })
                };
                let inverse = if prime == q { 1 } else { power(inverse) };
                integers.iter().map(move |x| (x.rem_euclid(prime) * inverse % prime) as u64)
            });
            let shares: Vec<u64> = shares.collect();
            let recombination = Recombination::new(&primes);
            for plus in [0, 1 << 70, u128::MAX] {
                let want: Vec<u128> = integers.iter().map(|x| (*x as u128).wrapping_add(plus)).collect();
                for level in [Level::Avx512, Level::Portable] {
                    let [low, high] = limited_to(level, || recombination.limbs(&shares, plus));
                    let sums =
                        low.iter().zip(&high).map(|(low, high)| u128::from(*high) << 64 | u128::from(*low));
                    assert!(sums.eq(want.iter().copied()), "{values:?}, {count}, {plus}, {level:?}");
                }
            }
        }
    }
}
