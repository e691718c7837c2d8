//! Messages: polynomials modulo p, one number, or a number in each slot.

use blindcore_math::ntt::{Ntt, NttError, orbit};
use blindcore_math::{ModulusError, Prime};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::poly::{Coefficients, Poly, Values};
use crate::{Parameters, Ring};

/// Why there is no plaintext.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    /// Too many numbers.
    #[error("{got} numbers don't fit into a plaintext of {limit}; encode fewer")]
    TooMany {
        /// Numbers given.
        got: usize,
        /// d.
        limit: usize,
    },
    /// A number is not below p.
    #[error(
        "the number at place {place} is not below the plaintext modulus of {limit}; reduce it, or choose a larger modulus"
    )]
    TooLarge {
        /// Where it stands. It is not shown: it may be secret.
        place: usize,
        /// p.
        limit: u64,
    },
    /// p has no slots.
    #[error("a plaintext modulus of {0} has no slots ({1}); choose a prime p for which 2d divides p - 1")]
    NoSlots(u64, NoSlots),
}

/// Why a plaintext modulus has no slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSlots {
    /// It is no prime.
    #[error(transparent)]
    Modulus(#[from] ModulusError),
    /// It has no transform.
    #[error(transparent)]
    Ntt(#[from] NttError),
}

/// A message: a polynomial modulo p. It may be secret: it has no `Debug` and no `==`, and is wiped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Plaintext {
    coefficients: Vec<u64>,
    modulus: u64,
}

impl Plaintext {
    /// The polynomial with these coefficients, zeros after the last.
    ///
    /// # Errors
    /// There are more than d, or one is not below p. The check takes the same time whatever they are.
    pub fn new(parameters: &Parameters, coefficients: &[u64]) -> Result<Self, EncodingError> {
        let (degree, modulus) = (parameters.degree(), parameters.plaintext());
        if coefficients.len() > degree {
            return Err(EncodingError::TooMany { got: coefficients.len(), limit: degree });
        }
        if coefficients.iter().fold(false, |bad, c| bad | (*c >= modulus)) {
            let place = coefficients.iter().position(|c| *c >= modulus).unwrap_or(0);
            return Err(EncodingError::TooLarge { place, limit: modulus });
        }
        let mut all = vec![0; degree];
        all[..coefficients.len()].copy_from_slice(coefficients);
        Ok(Self { coefficients: all, modulus })
    }

    /// A single number, as the constant coefficient.
    ///
    /// # Errors
    /// It is not below p.
    pub fn scalar(parameters: &Parameters, number: u64) -> Result<Self, EncodingError> {
        Self::new(parameters, &[number])
    }

    pub(crate) fn of(coefficients: Vec<u64>, modulus: u64) -> Self {
        Self { coefficients, modulus }
    }

    /// The coefficients, each below p.
    #[must_use]
    pub fn coefficients(&self) -> &[u64] {
        &self.coefficients
    }

    /// p.
    #[must_use]
    pub fn modulus(&self) -> u64 {
        self.modulus
    }

    /// round(Q m / p) by values in a ring, in constant time: what is added to a phase.
    #[must_use]
    pub fn scaled_up(&self, ring: &Ring) -> Zeroizing<Poly<Values>> {
        let p = self.modulus;
        let (quotient, rest) = (ring.modulus() / u128::from(p), (ring.modulus() % u128::from(p)) as u64);
        let by = Divider::new(p);
        let mut out: Poly<Coefficients> = ring.zero();
        for (out, prime) in out.words_mut().chunks_exact_mut(ring.degree()).zip(ring.primes()) {
            let quotient = u128::from(prime.reduce(quotient));
            for (out, m) in out.iter_mut().zip(&self.coefficients) {
                let fraction = by.divide(m * rest + p / 2);
                *out = prime.reduce(quotient * u128::from(*m) + u128::from(fraction));
            }
        }
        Zeroizing::new(ring.forward(out))
    }

    /// The message itself, centred, as a polynomial of the ring.
    pub(crate) fn lifted(&self, ring: &Ring) -> Zeroizing<Poly<Values>> {
        Zeroizing::new(ring.forward(ring.signed(self.centred())))
    }

    /// The coefficients from -p/2 to p/2.
    fn centred(&self) -> impl ExactSizeIterator<Item = i64> + Clone {
        let p = self.modulus as i64;
        self.coefficients.iter().map(move |c| {
            let c = *c as i64;
            c - (p & ((p / 2 - c) >> 63))
        })
    }
}

/// The message whose phase is nearest, in constant time: round(p x / Q) modulo p.
pub(crate) fn scaled_down(ring: &Ring, phase: &Poly<Coefficients>, p: u64) -> Plaintext {
    let (d, words) = (ring.degree(), phase.words());
    let message = |at: usize| {
        let fraction = (0..ring.primes().len()).fold(0u64, |sum, i| {
            let share = ring.fractions.share(i, words[i * d + at]);
            sum.wrapping_add(ring.fractions.fraction(i, share))
        });
        let rounded = ((u128::from(fraction) * u128::from(p) + (1 << 63)) >> 64) as u64;
        rounded.min(rounded.wrapping_sub(p))
    };
    Plaintext::of((0..d).map(message).collect(), p)
}

/// Division by a public number, in constant time.
struct Divider {
    by: u64,
    /// floor((2^64 - 1) / by).
    reciprocal: u64,
}

impl Divider {
    fn new(by: u64) -> Self {
        Self { by, reciprocal: u64::MAX / by }
    }

    /// floor(x / by): the estimate is at most two short.
    fn divide(&self, x: u64) -> u64 {
        let mut quotient = ((u128::from(x) * u128::from(self.reciprocal)) >> 64) as u64;
        for _ in 0..2 {
            let rest = x.wrapping_sub(quotient.wrapping_mul(self.by));
            quotient += 1 ^ (rest.overflowing_sub(self.by).1 as u64);
        }
        quotient
    }
}

/// A public factor, by values and with its norms: for [`crate::Ciphertext::multiply_plain`].
#[derive(Clone)]
pub struct Factor {
    pub(crate) values: Poly<Values>,
    /// Root of the sum of the squares.
    pub(crate) length: f64,
    /// Sum of the magnitudes.
    pub(crate) sum: f64,
}

impl Factor {
    /// The plaintext as a factor in a ring. Its norms decide how noise grows, so they are not secret.
    #[must_use]
    pub fn new(ring: &Ring, plaintext: &Plaintext) -> Self {
        let magnitudes = || plaintext.centred().map(|c| c as f64);
        Self {
            length: magnitudes().map(|c| c * c).sum::<f64>().sqrt(),
            sum: magnitudes().map(f64::abs).sum(),
            values: plaintext.lifted(ring).take(),
        }
    }
}

/// A number modulo p in each of d slots: sums and products of plaintexts are sums and products slot by slot.
///
/// Slots stand in two rows of d / 2: the automorphism X -> X^(5^t) turns each row to the left by t, and X -> X^-1 swaps the rows.
///
/// ```
/// use blindcore_rlwe::{Slots, sets};
///
/// let parameters = sets::N4096.check().expect("a shipped set");
/// let slots = Slots::new(&parameters)?;
/// let plaintext = slots.encode(&[3, 1, 4, 1, 5])?;
/// assert_eq!(slots.decode(&plaintext)[..6], [3, 1, 4, 1, 5, 0]);
/// # Ok::<(), blindcore_rlwe::EncodingError>(())
/// ```
pub struct Slots {
    ntt: Ntt,
    orbit: Vec<u32>,
}

impl Slots {
    /// The slots of these parameters.
    ///
    /// # Errors
    /// p is no prime, or 2d does not divide p - 1.
    pub fn new(parameters: &Parameters) -> Result<Self, EncodingError> {
        let (degree, p) = (parameters.degree(), parameters.plaintext());
        let of = || -> Result<Self, NoSlots> {
            Ok(Self { ntt: Ntt::new(Prime::new(p)?, degree)?, orbit: orbit(degree)? })
        };
        of().map_err(|why| EncodingError::NoSlots(p, why))
    }

    /// The numbers, one a slot, zeros after the last; in constant time.
    ///
    /// # Errors
    /// There are more than d, or one is not below p.
    pub fn encode(&self, numbers: &[u64]) -> Result<Plaintext, EncodingError> {
        let (degree, p) = (self.ntt.degree(), self.ntt.prime().value());
        if numbers.len() > degree {
            return Err(EncodingError::TooMany { got: numbers.len(), limit: degree });
        }
        if let Some(place) = numbers.iter().position(|n| *n >= p) {
            return Err(EncodingError::TooLarge { place, limit: p });
        }
        let mut values = vec![0; degree];
        for (number, place) in numbers.iter().zip(&self.orbit) {
            values[*place as usize] = *number;
        }
        self.ntt.inverse(&mut values);
        Ok(Plaintext::of(values, p))
    }

    /// The numbers of all slots; in constant time.
    ///
    /// # Panics
    /// The plaintext belongs to other parameters.
    #[must_use]
    pub fn decode(&self, plaintext: &Plaintext) -> Zeroizing<Vec<u64>> {
        assert_eq!(plaintext.modulus, self.ntt.prime().value(), "a plaintext of these parameters");
        let mut values = Zeroizing::new(plaintext.coefficients.clone());
        self.ntt.forward(&mut values);
        Zeroizing::new(self.orbit.iter().map(|place| values[*place as usize]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn division_is_exact() {
        for by in [2, 3, 255, 256, 257, 65_537, u32::MAX as u64, 1 << 32] {
            let divider = Divider::new(by);
            for x in [
                0,
                1,
                by - 1,
                by,
                by + 1,
                by.wrapping_mul(by).wrapping_sub(1),
                u64::MAX,
                u64::MAX - 1,
                u64::MAX / 2,
                u64::MAX / by * by,
            ] {
                assert_eq!(divider.divide(x), x / by, "{x} by {by}");
                assert_eq!(divider.divide(x.wrapping_sub(by)), x.wrapping_sub(by) / by);
            }
        }
    }

    #[test]
    fn messages_come_back_from_their_phases_and_from_the_edges_of_noise() {
        for parameters in testing::all() {
            let p = parameters.plaintext();
            for ring in parameters.rings() {
                let message = testing::message(&parameters, 5);
                let up = ring.inverse(message.scaled_up(ring).take());
                let half = (ring.modulus() / u128::from(2 * p)) as f64 * 0.999;
                for noise in [0.0, half, -half] {
                    let mut words = up.words().to_vec();
                    for (words, q) in words.chunks_mut(ring.degree()).zip(ring.primes()) {
                        let off = (noise as i128).rem_euclid(i128::from(q.value())) as u64;
                        words.iter_mut().for_each(|w| *w = (*w + off) % q.value());
                    }
                    let back = scaled_down(ring, &ring.polynomial(words).unwrap(), p);
                    assert!(back.coefficients() == message.coefficients(), "{}: {noise}", parameters.name());
                }
            }
        }
    }

    #[test]
    fn slots_add_and_multiply() {
        let parameters = testing::toy();
        let slots = Slots::new(&parameters).unwrap();
        let p = parameters.plaintext();
        let (a, b): (Vec<u64>, Vec<u64>) = (0..256).map(|i| (i * 31 % p, (p - i) % p)).unzip();
        let (x, y) = (slots.encode(&a).unwrap(), slots.encode(&b).unwrap());
        let product = testing::product(&x, &y);
        let want: Vec<u64> = a.iter().zip(&b).map(|(a, b)| a * b % p).collect();
        assert_eq!(*slots.decode(&product), want);
        assert!(matches!(Slots::new(&testing::n2048()), Err(EncodingError::NoSlots(256, _))));
        assert_eq!(slots.encode(&[p]).err(), Some(EncodingError::TooLarge { place: 0, limit: p }));
        assert!(
            Plaintext::new(&parameters, &[0; 257]).is_err() && Plaintext::scalar(&parameters, p).is_err()
        );
    }
}
