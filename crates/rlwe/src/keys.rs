//! Secret and public keys, encryption and decryption. All of it takes the same time whatever is secret.

use std::sync::Arc;

use blindcore_math::{MaskSeed, SecretRng};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::ciphertext::{Ciphertext, Pair};
use crate::encoding::{Plaintext, scaled_down};
use crate::noise::{Noise, secret_weight};
use crate::poly::{Poly, Values};
use crate::{Parameters, Ring};

impl Noise {
    /// Of a ciphertext made with the secret key: an error, and the rounding of the message.
    #[must_use]
    pub fn fresh(parameters: &Parameters) -> Self {
        Self::of_variance(parameters.error().variance()).plus(Self::at_most(0.5))
    }

    /// Of a ciphertext made with the public key: u e + e_2 - e_1 s for a ternary u, the key's error e, and two errors more.
    #[must_use]
    pub fn fresh_public(parameters: &Parameters) -> Self {
        let weight = secret_weight(parameters.degree());
        Self::of_variance(parameters.error().variance() * (1.0 + 2.0 * weight)).plus(Self::at_most(0.5))
    }
}

/// A fresh public seed.
#[must_use]
pub fn fresh_seed(rng: &mut SecretRng) -> MaskSeed {
    let mut seed = [0; 32];
    rng.fill(&mut seed);
    MaskSeed(seed)
}

/// An error polynomial.
pub(crate) fn error(parameters: &Parameters, ring: &Ring, rng: &mut SecretRng) -> Zeroizing<Poly<Values>> {
    let mut error = Zeroizing::new(vec![0; ring.degree()]);
    rng.fill_centred_binomial(parameters.error().pairs(), &mut error);
    Zeroizing::new(ring.forward(ring.small(&error)))
}

/// A ternary polynomial by coefficients.
fn ternary(degree: usize, rng: &mut SecretRng) -> Zeroizing<Vec<i8>> {
    let mut out = Zeroizing::new(vec![0; degree]);
    rng.fill_ternary(&mut out);
    out
}

/// The secret: a ternary polynomial s, the same in all rings of its parameters.
///
/// It has no `Debug` and no `==`, and is wiped on drop.
///
/// ```
/// use blindcore_math::SecretRng;
/// use blindcore_rlwe::{Plaintext, SecretKey, sets};
///
/// let parameters = sets::N2048.check()?;
/// let mut rng = SecretRng::from_os()?;
/// let secret = SecretKey::generate(&parameters, &mut rng);
/// let message = Plaintext::new(&parameters, b"bytes".map(u64::from).as_slice())?;
/// let ciphertext = secret.encrypt(&message, &mut rng);
/// assert_eq!(secret.decrypt(&ciphertext).coefficients(), message.coefficients());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SecretKey {
    parameters: Arc<Parameters>,
    coefficients: Zeroizing<Vec<i8>>,
    /// In the ring of the whole chain.
    values: Zeroizing<Poly<Values>>,
}

impl SecretKey {
    /// A fresh secret.
    #[must_use]
    pub fn generate(parameters: &Arc<Parameters>, rng: &mut SecretRng) -> Self {
        let ring = parameters.ring();
        let coefficients = ternary(ring.degree(), rng);
        let values = Zeroizing::new(ring.forward(ring.small(&coefficients)));
        Self { parameters: parameters.clone(), coefficients, values }
    }

    /// The parameters that it belongs to.
    #[must_use]
    pub fn parameters(&self) -> &Arc<Parameters> {
        &self.parameters
    }

    /// s by values in one of the parameters' rings.
    #[must_use]
    pub fn values(&self, ring: &Ring) -> Zeroizing<Poly<Values>> {
        if ring == &**self.parameters.ring() {
            return self.values.clone();
        }
        Zeroizing::new(ring.forward(ring.small(&self.coefficients)))
    }

    /// The body for a mask: mask s + e + message. Two bodies under one secret need two masks.
    #[must_use]
    pub fn body(
        &self,
        ring: &Ring,
        mask: &Poly<Values>,
        message: &Poly<Values>,
        rng: &mut SecretRng,
    ) -> Poly<Values> {
        let mut body = error(&self.parameters, ring, rng);
        ring.multiply_add(&mut body, mask, &self.values(ring));
        ring.add(&mut body, message);
        body.take()
    }

    /// Encrypts under a fresh seed, from which the mask can be repeated: half of the bytes to send.
    #[must_use]
    pub fn encrypt_seeded(&self, plaintext: &Plaintext, rng: &mut SecretRng) -> SeededCiphertext {
        let ring = self.parameters.ring();
        let seed = fresh_seed(rng);
        let body = self.body(ring, &ring.uniform(seed, 0), &plaintext.scaled_up(ring), rng);
        SeededCiphertext { parameters: self.parameters.clone(), seed, body }
    }

    /// Encrypts.
    #[must_use]
    pub fn encrypt(&self, plaintext: &Plaintext, rng: &mut SecretRng) -> Ciphertext {
        self.encrypt_seeded(plaintext, rng).expand()
    }

    /// body - mask s.
    fn phase(&self, ciphertext: &Ciphertext) -> Zeroizing<Poly<Values>> {
        let ring = &ciphertext.ring;
        let mut product = Zeroizing::new(ciphertext.pair.mask.clone());
        ring.multiply(&mut product, &self.values(ring));
        ring.negate(&mut product);
        ring.add(&mut product, &ciphertext.pair.body);
        product
    }

    /// Decrypts. Where noise passed its limit the plaintext is wrong, and nothing says so.
    #[must_use]
    pub fn decrypt(&self, ciphertext: &Ciphertext) -> Plaintext {
        let ring = &ciphertext.ring;
        let phase = Zeroizing::new(ring.inverse(self.phase(ciphertext).take()));
        scaled_down(ring, &phase, ciphertext.plaintext)
    }

    /// The largest coefficient of the noise of a ciphertext of `plaintext`: for tests and tools. It tells something about the secret
    /// to whoever is shown it, and does not run in constant time.
    #[must_use]
    pub fn measure(&self, ciphertext: &Ciphertext, plaintext: &Plaintext) -> f64 {
        let ring = &ciphertext.ring;
        let mut phase = self.phase(ciphertext);
        ring.subtract(&mut phase, &plaintext.scaled_up(ring));
        let noise = Zeroizing::new(ring.inverse(phase.take()));
        ring.centred(&noise).iter().map(|e| e.unsigned_abs() as f64).fold(0.0, f64::max)
    }
}

/// A ciphertext whose mask is a seed.
#[derive(Clone)]
pub struct SeededCiphertext {
    pub(crate) parameters: Arc<Parameters>,
    pub(crate) seed: MaskSeed,
    pub(crate) body: Poly<Values>,
}

impl SeededCiphertext {
    /// The ciphertext.
    #[must_use]
    pub fn expand(self) -> Ciphertext {
        let ring = self.parameters.ring();
        let pair = Pair { mask: ring.uniform(self.seed, 0), body: self.body };
        let noise = Noise::fresh(&self.parameters);
        Ciphertext::made("encrypt", ring, self.parameters.plaintext(), pair, noise)
    }
}

/// A public key: an encryption of 0, whose mask is a seed.
#[derive(Clone)]
pub struct PublicKey {
    pub(crate) parameters: Arc<Parameters>,
    pub(crate) seed: MaskSeed,
    pub(crate) body: Poly<Values>,
}

impl PublicKey {
    /// The public key of a secret.
    #[must_use]
    pub fn new(secret: &SecretKey, rng: &mut SecretRng) -> Self {
        let ring = secret.parameters.ring();
        let seed = fresh_seed(rng);
        let body = secret.body(ring, &ring.uniform(seed, 0), &ring.zero(), rng);
        Self { parameters: secret.parameters.clone(), seed, body }
    }

    /// Encrypts for whoever has the secret: u times the key, with fresh errors. Source: Lyubashevsky, Peikert and Regev 2010.
    #[must_use]
    pub fn encrypt(&self, plaintext: &Plaintext, rng: &mut SecretRng) -> Ciphertext {
        let (parameters, ring) = (&self.parameters, self.parameters.ring());
        let chosen = ternary(ring.degree(), rng);
        let mut chosen = Zeroizing::new(ring.forward(ring.small(&chosen)));
        let mut mask = error(parameters, ring, rng);
        ring.multiply_add(&mut mask, &chosen, &ring.uniform(self.seed, 0));
        ring.multiply(&mut chosen, &self.body);
        ring.add(&mut chosen, &error(parameters, ring, rng));
        ring.add(&mut chosen, &plaintext.scaled_up(ring));
        let pair = Pair { mask: mask.take(), body: chosen.take() };
        Ciphertext::made("encrypt", ring, parameters.plaintext(), pair, Noise::fresh_public(parameters))
    }
}

/// s^2, by values: what relinearisation keys and the second half of expanded RGSW rows are about.
pub(crate) fn square(secret: &SecretKey, ring: &Ring) -> Zeroizing<Poly<Values>> {
    let values = secret.values(ring);
    let mut square = values.clone();
    ring.multiply(&mut square, &values);
    square
}

impl Zeroize for SecretKey {
    fn zeroize(&mut self) {
        self.coefficients.zeroize();
        self.values.zeroize();
    }
}

impl ZeroizeOnDrop for SecretKey {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Bench};

    #[test]
    fn fresh_ciphertexts_decrypt_and_stay_below_their_bound() {
        for parameters in testing::all() {
            let mut bench = Bench::new(&parameters, 21);
            let public = PublicKey::new(&bench.secret, &mut bench.rng);
            let (low, high) = testing::edges(&parameters);
            for message in [testing::message(&parameters, 1), low, high] {
                let x = bench.encrypt(&message);
                bench.check("secret key", &x, &message, 1.5);
                let y = public.encrypt(&message, &mut bench.rng);
                bench.check("public key", &y, &message, 1.5);
            }
        }
    }

    #[test]
    fn two_encryptions_share_nothing() {
        let parameters = testing::toy();
        let mut bench = Bench::new(&parameters, 22);
        let message = testing::message(&parameters, 1);
        let (x, y) = (bench.encrypt(&message), bench.encrypt(&message));
        assert!(x.pair.mask.words() != y.pair.mask.words() && x.pair.body.words() != y.pair.body.words());
    }
}
