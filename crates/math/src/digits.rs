//! Vectors of residues taken apart into signed digits.

use crate::Prime;
use crate::arch;

/// Residues modulo a prime, centred, as digits of few bits: x is about the sum of t_i B^i 2^w, with B = 2^b and w dropped low bits.
///
/// SignedDigits but the last lie from -B/2 to B/2 - 1; the last one takes what is left. They come as residues. The time depends on the
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
    /// SignedDigits of each.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::{Level, limit, limited};

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
                let before = limited();
                limit(Level::Portable);
                let mut portable = vec![0; out.len()];
                digits.split(&residues, &mut portable);
                limit(before);
                assert!(portable == out);
            }
        }
    }
}
