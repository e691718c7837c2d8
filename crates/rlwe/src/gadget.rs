//! Gadgets: polynomials taken apart into signed digits, and rows of encryptions that the digits are multiplied with.
//!
//! x modulo Q, centred, is about sum_i t_i B^i 2^w, with B = 2^b and w dropped low bits. SignedDigits but the last lie from -B/2 to
//! B/2 - 1; the last one takes what is left. The error is at most 2^(w-1), and none where w is 0.

use blindcore_math::{CutDigit, MaskSeed, SecretRng, SignedDigits};

use crate::Ring;
use crate::ciphertext::Pair;
use crate::keys::{SecretKey, fresh_seed};
use crate::noise::Noise;
use crate::poly::{Coefficients, Poly, Values};

/// Why there is no gadget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GadgetError {
    /// No digits, or digits too wide.
    #[error("digits of {bits} bits are outside 1 to {limit}, which the ring's smallest prime allows")]
    Bits {
        /// Bits of a digit.
        bits: u32,
        /// The most.
        limit: u32,
    },
    /// SignedDigits don't reach over the modulus, or reach beyond.
    #[error("{digits} digits of {bits} bits above {dropped} dropped ones don't fit a modulus of {modulus} bits; {}", remedy(*.digits, *.bits, *.dropped, *.modulus))]
    Reach {
        /// SignedDigits.
        digits: usize,
        /// Bits of each.
        bits: u32,
        /// Low bits that are dropped.
        dropped: u32,
        /// Bits of the modulus.
        modulus: u32,
    },
}

fn remedy(digits: usize, bits: u32, dropped: u32, modulus: u32) -> String {
    if u64::from(dropped) + digits as u64 * u64::from(bits) < u64::from(modulus) {
        "take more or wider digits, or drop more".into()
    } else {
        "take fewer digits, or drop less".into()
    }
}

/// How a polynomial is taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gadget {
    digits: usize,
    bits: u32,
    dropped: u32,
}

impl Gadget {
    /// `digits` digits of `bits` bits each, above `dropped` bits that are rounded away.
    ///
    /// # Errors
    /// The digits don't reach over the ring's modulus, one of them is not needed, or they are wider than its smallest prime.
    pub fn new(ring: &Ring, digits: usize, bits: u32, dropped: u32) -> Result<Self, GadgetError> {
        let limit = ring.primes().iter().map(|q| q.value().ilog2() - 1).min().unwrap_or(0);
        if !(1..=limit).contains(&bits) {
            return Err(GadgetError::Bits { bits, limit });
        }
        let (modulus, below) =
            (ring.bits(), u64::from(dropped) + digits.saturating_sub(1) as u64 * u64::from(bits));
        if digits == 0 || below + u64::from(bits) < u64::from(modulus) || below >= u64::from(modulus) {
            return Err(GadgetError::Reach { digits, bits, dropped, modulus });
        }
        Ok(Self { digits, bits, dropped })
    }

    /// As many digits of `bits` bits as reach over the whole modulus: nothing is dropped.
    ///
    /// # Errors
    /// They are wider than the ring's smallest prime.
    pub fn exact(ring: &Ring, bits: u32) -> Result<Self, GadgetError> {
        Self::new(ring, ring.bits().div_ceil(bits.max(1)) as usize, bits, 0)
    }

    /// SignedDigits of a polynomial.
    #[must_use]
    pub fn digits(&self) -> usize {
        self.digits
    }

    /// Bits of a digit.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// w: low bits that are rounded away.
    #[must_use]
    pub fn dropped(&self) -> u32 {
        self.dropped
    }

    /// B^i 2^w.
    pub(crate) fn weight(&self, digit: usize) -> u128 {
        1 << (self.dropped + digit as u32 * self.bits)
    }

    /// The largest magnitude of a digit.
    fn largest(&self, ring: &Ring, digit: usize) -> f64 {
        if digit + 1 < self.digits {
            return f64::from(self.bits - 1).exp2();
        }
        ring.modulus() as f64 / 2.0 / self.weight(digit) as f64 + 1.0
    }

    /// The digits of a polynomial, by values, modulo one prime of the ring after another: `each` has the prime's place and the digits,
    /// least significant first, in memory that the next prime takes over. The time depends on the ring and the gadget alone.
    pub(crate) fn decompose(
        &self,
        ring: &Ring,
        polynomial: &Poly<Coefficients>,
        mut each: impl FnMut(usize, &[u64]),
    ) {
        let mut words = vec![0; self.digits * ring.degree()];
        if let [prime] = ring.primes() {
            let digits =
                SignedDigits { prime: *prime, count: self.digits, bits: self.bits, dropped: self.dropped };
            digits.split(polynomial.words(), &mut words);
            ring.forward_modulo(0, &mut words);
            return each(0, &words);
        }
        // With half of B added at each digit but the last, no digit carries: each is cut out of the sum, and lies half too high.
        let halves: u128 = (1..self.digits).map(|i| self.weight(i) >> 1).sum();
        let rounding = if self.dropped == 0 { 0 } else { 1 << (self.dropped - 1) };
        let [low, high] = ring.limbs(polynomial, halves + rounding);
        for (place, prime) in ring.primes().iter().enumerate() {
            for (i, digit) in words.chunks_exact_mut(ring.degree()).enumerate() {
                let bits = (i + 1 < self.digits).then_some(self.bits);
                let cut = CutDigit { shift: self.dropped + i as u32 * self.bits, bits };
                cut.residues([&low, &high], std::slice::from_ref(prime), digit);
            }
            ring.forward_modulo(place, &mut words);
            each(place, &words);
        }
    }

    /// The noise of a sum of digits times rows, for any polynomial that is taken apart: rows of independent errors of this variance, and
    /// low bits that are lost times what the rows encrypt, whose coefficients have the variance `message`.
    ///
    /// For a uniform polynomial both parts are a third of this, as variances.
    #[must_use]
    pub fn noise(&self, ring: &Ring, error: f64, message: f64) -> Noise {
        let degree = ring.degree() as f64;
        let digits: f64 = (0..self.digits).map(|i| self.largest(ring, i).powi(2)).sum();
        Noise::of_variance(degree * (digits * error + self.lost().powi(2) * message))
    }

    /// The noise of a sum of digits times rows whose errors may depend on each other from row to row.
    #[must_use]
    pub(crate) fn noise_of_rows(&self, ring: &Ring, row: Noise) -> Noise {
        let degree = ring.degree() as f64;
        let sum: f64 = (0..self.digits).map(|i| self.largest(ring, i)).sum();
        row.times_polynomial(sum * degree.sqrt(), sum * degree)
    }

    /// The most that rounding loses of a coefficient.
    pub(crate) fn lost(&self) -> f64 {
        if self.dropped == 0 { 0.0 } else { f64::from(self.dropped - 1).exp2() }
    }
}

/// Encryptions of a polynomial times each weight of a gadget: row i has the phase B^i 2^w m + e.
#[derive(Clone)]
pub struct Rows {
    pub(crate) gadget: Gadget,
    pub(crate) rows: Vec<Pair>,
    /// What the masks are expanded from, where they were not worked out otherwise.
    pub(crate) seed: Option<MaskSeed>,
}

impl Rows {
    /// Encrypts `message` times each weight, under a fresh seed.
    pub(crate) fn encrypt(
        secret: &SecretKey,
        ring: &Ring,
        gadget: Gadget,
        message: &Poly<Values>,
        rng: &mut SecretRng,
    ) -> Self {
        let seed = fresh_seed(rng);
        let row = |i: usize| {
            let mask = ring.uniform(seed, i as u64);
            let mut scaled = zeroize::Zeroizing::new(message.clone());
            ring.scale(&mut scaled, gadget.weight(i));
            let body = secret.body(ring, &mask, &scaled, rng);
            Pair { mask, body }
        };
        Self { gadget, rows: (0..gadget.digits).map(row).collect(), seed: Some(seed) }
    }

    /// Adds the sum of the polynomial's digits times the rows to `sum`, whose phase grows by polynomial times message.
    pub(crate) fn apply(&self, ring: &Ring, polynomial: &Poly<Coefficients>, sum: &mut Pair) {
        let degree = ring.degree();
        self.gadget.decompose(ring, polynomial, |place, digits| {
            let Pair { mask, body } = &mut *sum;
            let halves: [fn(&Pair) -> &Poly<Values>; 2] = [|row| &row.mask, |row| &row.body];
            for (sum, half) in [mask, body].into_iter().zip(halves) {
                let rows = self.rows.iter().map(|row| &half(row).words()[place * degree..][..degree]);
                let pairs: Vec<_> =
                    digits.chunks_exact(degree).zip(rows).map(|(digit, row)| [digit, row]).collect();
                ring.multiply_sum_modulo(place, sum, &pairs);
            }
        });
    }

    /// The gadget.
    #[must_use]
    pub fn gadget(&self) -> Gadget {
        self.gadget
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn digits_are_small_and_sum_up() {
        for parameters in testing::all() {
            let ring = parameters.ring();
            let q = ring.modulus();
            let shapes = [(2, 0), (7, 0), (16, 0), (13, 11), (20, 20)];
            let gadgets = shapes.map(|(bits, dropped)| {
                let digits = (ring.bits() - dropped).div_ceil(bits) as usize;
                Gadget::new(ring, digits, bits, dropped).unwrap()
            });
            for gadget in gadgets {
                let edge = [0, 1, 2, q / 2, q / 2 + 1, q - 1, 1 << gadget.dropped, (1 << gadget.dropped) / 2];
                let integers: Vec<u128> = edge
                    .into_iter()
                    .chain((0..).map(|i| i * (q / 4099 + 1) % q))
                    .take(ring.degree())
                    .collect();
                let words = ring
                    .primes()
                    .iter()
                    .flat_map(|prime| integers.iter().map(|x| prime.reduce(*x)))
                    .collect();
                let polynomial: Poly<Coefficients> = ring.polynomial(words).unwrap();
                let mut sum: Poly<Values> = ring.zero();
                let mut digits = vec![0; gadget.digits * ring.words()];
                gadget.decompose(ring, &polynomial, |place, modulo| {
                    let at = place * ring.degree();
                    for (digit, modulo) in
                        digits.chunks_exact_mut(ring.words()).zip(modulo.chunks_exact(ring.degree()))
                    {
                        digit[at..at + ring.degree()].copy_from_slice(modulo);
                    }
                });
                for (i, digit) in digits.chunks_exact(ring.words()).enumerate() {
                    let digit: Poly<Values> = ring.polynomial(digit.to_vec()).unwrap();
                    let coefficients = ring.inverse(digit.clone());
                    let largest = ring
                        .centred(&coefficients)
                        .iter()
                        .map(|x| x.unsigned_abs() as f64)
                        .fold(0.0, f64::max);
                    assert!(largest <= gadget.largest(ring, i), "{gadget:?}, digit {i}: {largest}");
                    let mut digit = digit;
                    ring.scale(&mut digit, gadget.weight(i));
                    ring.add(&mut sum, &digit);
                }
                ring.subtract(&mut sum, &ring.forward(polynomial));
                let off = ring.inverse(sum);
                assert!(
                    ring.centred(&off).iter().all(|x| x.unsigned_abs() as f64 <= gadget.lost()),
                    "{gadget:?}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_gadget_is_refused() {
        let ring = Ring::of_bits(256, &[48]).unwrap();
        assert_eq!(Gadget::new(&ring, 3, 16, 0).unwrap().digits(), 3);
        assert_eq!(Gadget::exact(&ring, 10).unwrap().digits(), 5);
        assert!(Gadget::new(&ring, 1, 23, 25).is_ok());
        for (digits, bits, dropped) in [(0, 16, 0), (2, 16, 0), (4, 16, 0), (1, 22, 25), (1, 20, 48)] {
            let error = Gadget::new(&ring, digits, bits, dropped).unwrap_err();
            assert!(matches!(error, GadgetError::Reach { .. }), "{error}");
        }
        assert!(matches!(Gadget::new(&ring, 1, 47, 1), Err(GadgetError::Bits { limit: 46, .. })));
        assert!(Gadget::exact(&ring, 0).is_err());
    }
}
