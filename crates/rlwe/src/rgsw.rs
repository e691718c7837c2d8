//! RGSW ciphertexts: factors that multiply ciphertexts at the cost of a key switch, with noise that only adds.
//!
//! ```text
//!   RGSW(m):  for each weight g of a gadget   a row of phase m g          (for the body's digits)
//!                                             a row of phase -m s g       (for the mask's digits)
//!
//!   product:  sum of digits(b) body rows + digits(a) mask rows:  phase m (b - a s), and noise
//! ```
//!
//! Source: Gentry, Sahai and Waters 2013, over rings as in Ducas and Micciancio 2015.

use std::sync::Arc;

use blindcore_math::SecretRng;
use zeroize::Zeroizing;

use crate::Ring;
use crate::ciphertext::{Ciphertext, Pair};
use crate::gadget::{Gadget, Rows};
use crate::keys::SecretKey;
use crate::modulus::ModulusSwitchError;
use crate::noise::{Noise, TERNARY, secret_weight};
use crate::poly::{Poly, Values};
use crate::profile::{Kind, noted};
use crate::switching::RelinearisationKey;

impl Noise {
    /// What a product with an RGSW ciphertext adds, where the rows for the body and for the mask have these noises, independent from
    /// row to row or not, and the message's magnitudes sum to `sum`.
    #[must_use]
    fn of_external_product(
        ring: &Ring,
        gadget: Gadget,
        rows: [Noise; 2],
        independent: bool,
        sum: f64,
    ) -> Self {
        let half = |row: Noise| {
            if independent {
                gadget.noise(ring, row.deviation.powi(2), 0.0)
            } else {
                gadget.noise_of_rows(ring, row)
            }
        };
        let lost = gadget.noise(ring, 0.0, TERNARY).plus(Self::at_most(gadget.lost())).times(sum);
        half(rows[0]).plus(half(rows[1])).plus(lost)
    }
}

/// Rows encrypt no plaintext of any modulus; where one is shown beside noise, it is this.
const ROW: u64 = 2;

/// An encrypted factor: a bit, a monomial, or another short polynomial.
#[derive(Clone)]
pub struct Rgsw {
    pub(crate) ring: Arc<Ring>,
    /// For the body's digits.
    pub(crate) body: Rows,
    /// For the mask's digits.
    pub(crate) mask: Rows,
    /// The sum of the message's magnitudes, at most.
    pub(crate) sum: f64,
    /// What a product adds.
    pub(crate) added: Noise,
}

impl Rgsw {
    /// Encrypts X^`power`, a power from -d to d, in the time of any other. The power is secret.
    #[must_use]
    pub fn monomial(
        secret: &SecretKey,
        ring: &Arc<Ring>,
        power: isize,
        gadget: Gadget,
        rng: &mut SecretRng,
    ) -> Self {
        let (d, mut coefficients) = (ring.degree() as isize, Zeroizing::new(vec![0i8; ring.degree()]));
        let power = power + ((2 * d) & (power >> (isize::BITS - 1)));
        // 1 where `power` is i, -1 where it is i + d: each place is touched alike.
        let equal = |a: isize, b: isize| {
            let difference = (a ^ b) as usize;
            1 ^ ((difference | difference.wrapping_neg()) >> (usize::BITS - 1)) as i8
        };
        for (i, c) in coefficients.iter_mut().enumerate() {
            let i = i as isize;
            *c = equal(power, i) - equal(power, i + d) + equal(power, i + 2 * d);
        }
        Self::encrypt(secret, ring, &coefficients, 1.0, gadget, rng)
    }

    /// Encrypts a bit.
    #[must_use]
    pub fn bit(secret: &SecretKey, ring: &Arc<Ring>, bit: bool, gadget: Gadget, rng: &mut SecretRng) -> Self {
        let mut coefficients = Zeroizing::new(vec![0i8; ring.degree()]);
        coefficients[0] = i8::from(bit);
        Self::encrypt(secret, ring, &coefficients, 1.0, gadget, rng)
    }

    /// Encrypts a short polynomial by its coefficients, whose magnitudes sum to `sum` at most: that is public, and how far a product's
    /// noise grows.
    ///
    /// # Panics
    /// There are not d coefficients.
    #[must_use]
    pub fn encrypt(
        secret: &SecretKey,
        ring: &Arc<Ring>,
        coefficients: &[i8],
        sum: f64,
        gadget: Gadget,
        rng: &mut SecretRng,
    ) -> Self {
        let message: Zeroizing<Poly<Values>> = Zeroizing::new(ring.forward(ring.small(coefficients)));
        let body = Rows::encrypt(secret, ring, gadget, &message, rng);
        let mut times_secret = message;
        ring.multiply(&mut times_secret, &secret.values(ring));
        ring.negate(&mut times_secret);
        let mask = Rows::encrypt(secret, ring, gadget, &times_secret, rng);
        Self::of_rows(ring.clone(), body, mask, sum, secret.parameters().error().variance())
    }

    /// From rows with fresh errors of this variance.
    pub(crate) fn of_rows(ring: Arc<Ring>, body: Rows, mask: Rows, sum: f64, error: f64) -> Self {
        let row = Noise::of_variance(error);
        let added = Noise::of_external_product(&ring, body.gadget, [row, row], true, sum);
        Self { ring, body, mask, sum, added }
    }

    /// From encryptions of m times each weight of a gadget (their phases are m B^i 2^w Q / q) and a key for s^2: the other half is
    /// worked out from them, and both are brought to the ring `to` of modulus q, which the gadget is of. `noise` is that of the rows as
    /// they come. The result's mask rows have the noise s e, some 37 times as large.
    ///
    /// # Errors
    /// The ring can't be reached from the key's.
    ///
    /// # Panics
    /// There are not as many rows as digits.
    pub fn from_rows(
        key: &RelinearisationKey,
        to: &Arc<Ring>,
        rows: Vec<Pair>,
        gadget: Gadget,
        noise: Noise,
        sum: f64,
    ) -> Result<Self, ModulusSwitchError> {
        assert_eq!(rows.len(), gadget.digits(), "a row for each digit");
        let (ring, degree) = (&key.0.ring, to.degree());
        let masks = rows.iter().map(|row| key.times_secret(row)).collect();
        let second = noise.times_polynomial(secret_weight(degree).sqrt(), degree as f64).plus(key.0.noise);
        let of = |rows: Vec<Pair>, noise: Noise| {
            let (mut switched, mut worst) = (Vec::with_capacity(rows.len()), Noise::NONE);
            for pair in rows {
                let row =
                    Ciphertext { ring: ring.clone(), plaintext: ROW, pair, noise }.switch_modulus(to)?;
                worst = worst.max(row.noise);
                switched.push(row.pair);
            }
            Ok((Rows { gadget, rows: switched, seed: None }, worst))
        };
        let ((body, first), (mask, second)) = (of(rows, noise)?, of(masks, second)?);
        let added = Noise::of_external_product(to, gadget, [first, second], false, sum);
        Ok(Self { body, mask, ring: to.clone(), sum, added })
    }

    /// The gadget.
    #[must_use]
    pub fn gadget(&self) -> Gadget {
        self.body.gadget
    }

    /// Adds the product to `sum`.
    fn multiply_add(&self, pair: Pair, mut sum: Pair) -> Pair {
        let ring = &self.ring;
        self.body.apply(ring, &ring.inverse(pair.body), &mut sum);
        self.mask.apply(ring, &ring.inverse(pair.mask), &mut sum);
        sum
    }

    /// The external product: a ciphertext of m times the plaintext. Noise: what it had, m times, and what the rows add.
    ///
    /// # Panics
    /// The ciphertext is of another ring.
    #[must_use]
    pub fn multiply(&self, ciphertext: &Ciphertext) -> Ciphertext {
        ciphertext.check(&self.ring);
        let noise = ciphertext.noise.times(self.sum).plus(self.added);
        let product = || self.multiply_add(ciphertext.pair.clone(), Pair::zero(&self.ring));
        let pair = noted(Kind::External, 1, product);
        Ciphertext::made("external product", &self.ring, ciphertext.plaintext, pair, noise)
    }

    /// For an encrypted bit: `zero` where it is 0, `one` where it is 1. Noise: of the noisier of both, and what the rows add. Source:
    /// Chillotti, Gama, Georgieva and Izabachene 2016.
    ///
    /// # Panics
    /// One is of another ring or plaintext modulus.
    #[must_use]
    pub fn choose(&self, zero: Ciphertext, one: Ciphertext) -> Ciphertext {
        zero.check(&self.ring);
        one.check(&self.ring);
        assert_eq!(zero.plaintext, one.plaintext, "ciphertexts of one plaintext modulus");
        let noise = zero.noise.max(one.noise).plus(self.added);
        let pair = noted(Kind::External, 1, || {
            let mut difference = one.pair;
            difference.subtract(&self.ring, &zero.pair);
            self.multiply_add(difference, zero.pair)
        });
        Ciphertext::made("choose", &self.ring, zero.plaintext, pair, noise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Bench};

    fn gadgets(ring: &Ring) -> [Gadget; 2] {
        let digits = ring.bits().div_ceil(10) as usize;
        [
            Gadget::exact(ring, 10).unwrap(),
            Gadget::new(ring, digits - 1, 10, ring.bits() - 10 * (digits as u32 - 1)).unwrap(),
        ]
    }

    #[test]
    fn external_products_multiply() {
        for parameters in testing::all() {
            let mut bench = Bench::new(&parameters, 51);
            let (ring, d) = (parameters.ring().clone(), parameters.degree());
            for gadget in gadgets(&ring) {
                for power in [0, 1, d as isize - 1, -1] {
                    let factor = Rgsw::monomial(&bench.secret, &ring, power, gadget, &mut bench.rng);
                    let message = testing::message(&parameters, 4);
                    let p = parameters.plaintext();
                    let mut want = testing::turned(&message, power.rem_euclid(d as isize) as usize);
                    if power < 0 {
                        want = testing::each(&want, &want, |a, _| (p - a) % p);
                    }
                    let product = factor.multiply(&bench.encrypt(&message));
                    bench.check("external product", &product, &want, 3.0);
                }
            }
        }
    }

    #[test]
    fn a_bit_chooses() {
        for parameters in testing::all() {
            let mut bench = Bench::new(&parameters, 52);
            let ring = parameters.ring().clone();
            let (low, high) = testing::edges(&parameters);
            let (x, y) = (bench.encrypt(&low), bench.encrypt(&high));
            for gadget in gadgets(&ring) {
                for bit in [false, true] {
                    let factor = Rgsw::bit(&bench.secret, &ring, bit, gadget, &mut bench.rng);
                    let mut chosen = factor.choose(x.clone(), y.clone());
                    for _ in 0..2 {
                        chosen = factor.choose(
                            if bit { x.clone() } else { chosen.clone() },
                            if bit { chosen } else { y.clone() },
                        );
                    }
                    bench.check("choose", &chosen, if bit { &high } else { &low }, 3.5);
                }
            }
        }
    }
}
