//! Key switching, and products of ciphertexts that need it.

use std::sync::Arc;

use blindcore_math::SecretRng;
use zeroize::Zeroizing;

use crate::Ring;
use crate::ciphertext::{Ciphertext, Pair};
use crate::gadget::{Gadget, Rows};
use crate::keys::{SecretKey, square};
use crate::noise::{Noise, TERNARY, concentrated};
use crate::poly::{Coefficients, Poly, Values};

impl Noise {
    /// What switching from a ternary secret adds.
    #[must_use]
    pub fn of_switching(ring: &Ring, gadget: Gadget, error: f64) -> Self {
        gadget.noise(ring, error, TERNARY)
    }

    /// What switching from s^2 adds: its coefficients have a variance of 4d/9, and tails heavier than a Gaussian's, for which the
    /// variance is doubled twice.
    #[must_use]
    pub fn of_relinearising(ring: &Ring, gadget: Gadget, error: f64) -> Self {
        gadget.noise(ring, error, 4.0 * TERNARY * TERNARY * ring.degree() as f64)
    }
}

/// A key that takes products by one secret, s', to phases under another, s: encryptions of s' times a gadget's weights.
#[derive(Clone)]
pub struct SwitchingKey {
    pub(crate) ring: Arc<Ring>,
    pub(crate) rows: Rows,
    /// What a switch adds to the noise.
    pub(crate) noise: Noise,
}

impl SwitchingKey {
    /// From the secret `from`, of the same parameters, to `to`, in one of the parameters' rings.
    #[must_use]
    pub fn new(
        from: &SecretKey,
        to: &SecretKey,
        ring: &Arc<Ring>,
        gadget: Gadget,
        rng: &mut SecretRng,
    ) -> Self {
        Self::of(&from.values(ring), to, ring, gadget, rng)
    }

    pub(crate) fn of(
        from: &Poly<Values>,
        to: &SecretKey,
        ring: &Arc<Ring>,
        gadget: Gadget,
        rng: &mut SecretRng,
    ) -> Self {
        let rows = Rows::encrypt(to, ring, gadget, from, rng);
        Self {
            ring: ring.clone(),
            rows,
            noise: Noise::of_switching(ring, gadget, to.parameters().error().variance()),
        }
    }

    /// The gadget.
    #[must_use]
    pub fn gadget(&self) -> Gadget {
        self.rows.gadget
    }

    /// What a switch adds to the noise.
    #[must_use]
    pub fn noise(&self) -> Noise {
        self.noise
    }

    /// A pair whose phase under s is `polynomial` times s'.
    pub(crate) fn product(&self, polynomial: &Poly<Coefficients>) -> Pair {
        let mut sum = Pair::zero(&self.ring);
        self.rows.apply(&self.ring, polynomial, &mut sum);
        sum
    }

    /// The pair under s of one under s', whose mask is given by coefficients.
    pub(crate) fn switch_pair(&self, mask: &Poly<Coefficients>, body: Poly<Values>) -> Pair {
        let mut product = self.product(mask);
        self.ring.negate(&mut product.mask);
        self.ring.negate(&mut product.body);
        self.ring.add(&mut product.body, &body);
        product
    }

    /// The ciphertext under s of one under s'. Noise: [`Noise::of_switching`] more.
    ///
    /// # Panics
    /// It is of another ring than the key.
    #[must_use]
    pub fn switch(&self, ciphertext: &Ciphertext) -> Ciphertext {
        ciphertext.check(&self.ring);
        let mask = self.ring.inverse(ciphertext.pair.mask.clone());
        let pair = self.switch_pair(&mask, ciphertext.pair.body.clone());
        let noise = ciphertext.noise.plus_independent(self.noise);
        Ciphertext::made("switch key", &self.ring, ciphertext.plaintext, pair, noise)
    }
}

/// A key that brings products of two ciphertexts back to s: a switching key from s^2.
#[derive(Clone)]
pub struct RelinearisationKey(pub(crate) SwitchingKey);

impl RelinearisationKey {
    /// The key of a secret, in one of the parameters' rings.
    #[must_use]
    pub fn new(secret: &SecretKey, ring: &Arc<Ring>, gadget: Gadget, rng: &mut SecretRng) -> Self {
        let rows = Rows::encrypt(secret, ring, gadget, &square(secret, ring), rng);
        let noise = Noise::of_relinearising(ring, gadget, secret.parameters().error().variance());
        Self(SwitchingKey { ring: ring.clone(), rows, noise })
    }

    /// The gadget.
    #[must_use]
    pub fn gadget(&self) -> Gadget {
        self.0.gadget()
    }

    /// The ring of the key.
    #[must_use]
    pub fn ring(&self) -> &Arc<Ring> {
        &self.0.ring
    }

    /// A pair whose phase is -s times that of `pair`: what the second half of RGSW rows encrypts. With phase b - a s, the mask b and
    /// body 0 give -b s, and the rest is a s^2.
    pub(crate) fn times_secret(&self, pair: &Pair) -> Pair {
        let ring = &self.0.ring;
        let mut product = self.0.product(&ring.inverse(pair.mask.clone()));
        ring.add(&mut product.mask, &pair.body);
        product
    }
}

/// The secret X -> X^k of another, by values: what Galois keys are about.
pub(crate) fn turned_secret(
    secret: &SecretKey,
    ring: &Ring,
    automorphism: &blindcore_math::ntt::Automorphism,
) -> Zeroizing<Poly<Values>> {
    Zeroizing::new(ring.automorphism(automorphism, &secret.values(ring)))
}

/// Slack for the length of a random polynomial, as a factor of its variance.
pub(crate) fn slack(ring: &Ring) -> f64 {
    concentrated(ring.degree())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Bench};

    #[test]
    fn switched_ciphertexts_decrypt_below_their_bounds() {
        for parameters in testing::all() {
            let (mut from, mut to) = (Bench::new(&parameters, 31), Bench::new(&parameters, 32));
            let ring = parameters.ring();
            let digits = ring.bits().div_ceil(24) - 1;
            let one = Gadget::new(ring, digits as usize, 24, ring.bits() - 24 * digits).unwrap();
            for gadget in [Gadget::exact(ring, 8).unwrap(), Gadget::exact(ring, 2).unwrap(), one] {
                let key = SwitchingKey::new(&from.secret, &to.secret, ring, gadget, &mut to.rng);
                for message in [testing::message(&parameters, 1), testing::edges(&parameters).1] {
                    let switched = key.switch(&from.encrypt(&message));
                    to.check("switch", &switched, &message, 3.0);
                }
                // A mask whose digits are all as large as they can be.
                let message = testing::message(&parameters, 2);
                let x = from.extreme(&gadget, &message);
                to.check("extreme switch", &key.switch(&x), &message, 3.0);
            }
        }
    }
}
