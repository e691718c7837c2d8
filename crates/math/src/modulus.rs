//! The moduli that operations run under: 2^32, 2^64 and primes below 2^62.

use std::fmt;

/// A modulus that an operation computes under.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Modulus {
    /// 2^32, the modulus of SimplePIR and DoublePIR: arithmetic wraps in 32 bits.
    Pow2_32,
    /// 2^64: arithmetic wraps in 64 bits.
    Pow2_64,
    /// A prime below 2^62.
    Prime(Prime),
}

/// A prime below 2^62 with its Barrett constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prime {
    value: u64,
    /// floor(2^128 / value), 128 bits. Source: Barrett 1986; k = 128 as in OnionChopper, section 4.2.1.
    barrett: u128,
}

/// Why a number is not a modulus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ModulusError {
    /// Too large.
    #[error("modulus {0} is not below the limit of 2^62; choose a prime below 4611686018427387904")]
    TooLarge(u64),
    /// Composite, zero or one.
    #[error("modulus {0} is not prime; only 2^32, 2^64 and primes below 2^62 are supported")]
    NotPrime(u64),
}

impl Modulus {
    /// The prime modulus `value`.
    ///
    /// # Errors
    /// `value` is 2^62 or more, or is not prime.
    pub fn prime(value: u64) -> Result<Self, ModulusError> {
        Prime::new(value).map(Modulus::Prime)
    }

    /// The largest residue.
    #[must_use]
    pub fn max_residue(&self) -> u64 {
        match self {
            Modulus::Pow2_32 => u64::from(u32::MAX),
            Modulus::Pow2_64 => u64::MAX,
            Modulus::Prime(p) => p.value - 1,
        }
    }

    /// Reduces `x`, any 128-bit number, to its residue.
    #[must_use]
    pub fn reduce(&self, x: u128) -> u64 {
        match self {
            Modulus::Pow2_32 => u64::from(x as u32),
            Modulus::Pow2_64 => x as u64,
            Modulus::Prime(p) => p.reduce(x),
        }
    }

    /// `a * b + c`, reduced. Operands need not be residues.
    #[must_use]
    pub fn mul_add(&self, a: u64, b: u64, c: u64) -> u64 {
        // (2^64 - 1)^2 + 2^64 - 1 < 2^128: no overflow.
        self.reduce(u128::from(a) * u128::from(b) + u128::from(c))
    }
}

impl Prime {
    /// A prime below 2^62.
    ///
    /// # Errors
    /// `value` is 2^62 or more, or is not prime.
    pub fn new(value: u64) -> Result<Self, ModulusError> {
        if value >= 1 << 62 {
            return Err(ModulusError::TooLarge(value));
        }
        if !is_prime(value) {
            return Err(ModulusError::NotPrime(value));
        }
        // value is odd or 2. floor((2^128 - 1) / value) equals floor(2^128 / value) unless value divides
        // 2^128, which only 2 does; there the quotient is one short, which `reduce` corrects like any other.
        Ok(Self { value, barrett: u128::MAX / u128::from(value) })
    }

    /// The prime itself.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.value
    }

    /// Whether all words are below the prime. No branch on a word, so that the compiler takes vectors for it.
    pub(crate) fn are_residues(&self, words: &[u64]) -> bool {
        // For a word below 2^63 the difference has its highest bit where the word is too large.
        words.iter().fold(0, |bits, &word| bits | word | (self.value - 1).wrapping_sub(word)) >> 63 == 0
    }

    /// `x mod value` for any 128-bit `x`, in the same time whatever `x` is.
    ///
    /// The quotient estimate is at most two short of the true one, so the remainder before correction is
    /// below 3 * value < 2^64.
    #[must_use]
    pub fn reduce(&self, x: u128) -> u64 {
        let quotient = mul_high_u128(x, self.barrett);
        let rest = (x.wrapping_sub(quotient.wrapping_mul(u128::from(self.value)))) as u64;
        let rest = conditional_subtract(rest, self.value);
        conditional_subtract(rest, self.value)
    }
}

/// `x - n` if `x >= n`, else `x`, without a branch.
fn conditional_subtract(x: u64, n: u64) -> u64 {
    let (difference, borrow) = x.overflowing_sub(n);
    difference.wrapping_add(n & 0u64.wrapping_sub(u64::from(borrow)))
}

/// The upper 128 bits of the 256-bit product.
fn mul_high_u128(a: u128, b: u128) -> u128 {
    let (a1, a0) = (a >> 64, a & u128::from(u64::MAX));
    let (b1, b0) = (b >> 64, b & u128::from(u64::MAX));
    let low = (a0 * b0) >> 64;
    let middle = a1 * b0 + low; // (2^64 - 1)^2 + 2^64 - 1 < 2^128
    let middle2 = a0 * b1 + (middle & u128::from(u64::MAX));
    a1 * b1 + (middle >> 64) + (middle2 >> 64)
}

/// Miller-Rabin with the first twelve primes as bases, which is exact below 2^64 (Sorenson and Webster 2015).
fn is_prime(n: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    if n < 2 {
        return false;
    }
    for p in BASES {
        if n.is_multiple_of(p) {
            return n == p;
        }
    }
    let mul = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(n)) as u64;
    let twos = (n - 1).trailing_zeros();
    'bases: for base in BASES {
        let (mut x, mut power, mut exponent) = (1u64, base % n, (n - 1) >> twos);
        while exponent > 0 {
            if exponent & 1 == 1 {
                x = mul(x, power);
            }
            power = mul(power, power);
            exponent >>= 1;
        }
        if x == 1 || x == n - 1 {
            continue;
        }
        for _ in 1..twos {
            x = mul(x, x);
            if x == n - 1 {
                continue 'bases;
            }
        }
        return false;
    }
    true
}

impl fmt::Display for Modulus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Modulus::Pow2_32 => f.write_str("2^32"),
            Modulus::Pow2_64 => f.write_str("2^64"),
            Modulus::Prime(p) => write!(f, "{}", p.value),
        }
    }
}

impl fmt::Debug for Modulus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Modulus({self})")
    }
}

impl fmt::Debug for Prime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prime({})", self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIMES: [u64; 6] = [2, 3, 65537, 1_073_643_521, 0x3_ffff_ffff_c001, (1 << 62) - 57];

    #[test]
    fn refuses_what_is_no_modulus() {
        assert_eq!(Modulus::prime(1 << 62), Err(ModulusError::TooLarge(1 << 62)));
        for n in [0, 1, 4, 561, 3_215_031_751, 3_825_123_056_546_413_051] {
            assert_eq!(Modulus::prime(n), Err(ModulusError::NotPrime(n)));
        }
    }

    #[test]
    fn one_word_that_is_too_large_is_seen() {
        for p in PRIMES {
            let prime = Prime::new(p).unwrap();
            for word in
                [0, p - 1, p, p + 1, (1 << 63) - 1, 1 << 63, (1 << 63) + p - 1, (1 << 63) + p, u64::MAX]
            {
                let words = [0, p - 1, word, 1, 0];
                assert_eq!(prime.are_residues(&words), word < p, "{word} mod {p}");
            }
            assert!(prime.are_residues(&[]));
        }
    }

    #[test]
    fn barrett_equals_division_at_the_edges() {
        for p in PRIMES {
            let prime = Prime::new(p).unwrap();
            let q = u128::from(p);
            for base in [0, 1, q - 1, q, q + 1, 2 * q, q * q - 1, q * q, u128::MAX / q * q, u128::MAX] {
                for offset in 0..3u128 {
                    for x in [base.saturating_sub(offset), base.saturating_add(offset)] {
                        assert_eq!(u128::from(prime.reduce(x)), x % q, "{x} mod {p}");
                    }
                }
            }
        }
    }

    #[test]
    fn barrett_equals_division_on_many_numbers() {
        let mut x = 1u128;
        for p in PRIMES {
            let prime = Prime::new(p).unwrap();
            for _ in 0..20_000 {
                x = x.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(0x9e37_79b9);
                assert_eq!(u128::from(prime.reduce(x)), x % u128::from(p));
            }
        }
    }

    #[test]
    fn is_prime_agrees_with_a_sieve() {
        let mut composite = vec![false; 10_000];
        for i in 2..composite.len() {
            assert_eq!(is_prime(i as u64), !composite[i], "{i}");
            for j in (2 * i..composite.len()).step_by(i) {
                composite[j] = true;
            }
        }
    }
}
