//! Automorphisms of ciphertexts, the trace, and packing by them.
//!
//! ```text
//!   trace:  c <- c + c(X^k),  k = d + 1, d/2 + 1, ..., 3:  after j steps coefficients at multiples of 2^j are left, 2^j times
//!
//!   pack:   (even, odd)  ->  even + X^h odd + (even - X^h odd)(X^k)     two constant coefficients beside each other
//! ```
//!
//! Both multiply by a power of two, which is divided out modulo Q first; so a plaintext and noise keep their size.

use std::collections::BTreeMap;
use std::sync::Arc;

use blindcore_math::SecretRng;
use blindcore_math::ntt::{Automorphism, NttError};

use crate::Ring;
use crate::ciphertext::Ciphertext;
use crate::gadget::Gadget;
use crate::keys::SecretKey;
use crate::noise::Noise;
use crate::switching::{SwitchingKey, turned_secret};

/// A key for the automorphism X -> X^k.
#[derive(Clone)]
pub struct GaloisKey {
    pub(crate) automorphism: Automorphism,
    pub(crate) key: SwitchingKey,
}

impl GaloisKey {
    /// For X -> X^`exponent`, in one of the parameters' rings.
    ///
    /// # Errors
    /// The exponent is even.
    pub fn new(
        secret: &SecretKey,
        ring: &Arc<Ring>,
        exponent: usize,
        gadget: Gadget,
        rng: &mut SecretRng,
    ) -> Result<Self, NttError> {
        let automorphism = Automorphism::new(ring.degree(), exponent)?;
        let key = SwitchingKey::of(&turned_secret(secret, ring, &automorphism), secret, ring, gadget, rng);
        Ok(Self { automorphism, key })
    }

    /// k.
    #[must_use]
    pub fn exponent(&self) -> usize {
        self.automorphism.exponent()
    }

    /// The gadget.
    #[must_use]
    pub fn gadget(&self) -> Gadget {
        self.key.gadget()
    }

    /// The ciphertext of m(X^k). Noise: that of a switch more.
    ///
    /// # Panics
    /// It is of another ring than the key.
    #[must_use]
    pub fn apply(&self, ciphertext: &Ciphertext) -> Ciphertext {
        let ring = &self.key.ring;
        ciphertext.check(ring);
        let mask = ring.inverse(ring.automorphism(&self.automorphism, &ciphertext.pair.mask));
        let body = ring.automorphism(&self.automorphism, &ciphertext.pair.body);
        let pair = self.key.switch_pair(&mask, body);
        let noise = ciphertext.noise.plus_independent(self.key.noise);
        Ciphertext::made("automorphism", ring, ciphertext.plaintext, pair, noise)
    }
}

/// There is no key for an automorphism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MissingKey {
    /// There is no key for it.
    #[error("there is no Galois key for X to X^{0}; make one with the others")]
    Exponent(usize),
    /// The count of ciphertexts is not one that can be packed.
    #[error("{count} ciphertexts can't be packed; give a power of two from 1 to {limit}")]
    Count {
        /// How many were given.
        count: usize,
        /// d.
        limit: usize,
    },
}

/// Galois keys, found by exponent.
#[derive(Clone)]
pub struct GaloisKeys {
    pub(crate) ring: Arc<Ring>,
    pub(crate) keys: BTreeMap<usize, GaloisKey>,
}

/// The exponents d / 2^j + 1 for j from 0 on: those of a trace, of packing and of an expansion, in the order of an expansion.
pub fn tree_exponents(degree: usize) -> impl Iterator<Item = usize> {
    (0..degree.ilog2()).map(move |j| (degree >> j) + 1)
}

impl GaloisKeys {
    /// A key for each exponent, with its gadget.
    ///
    /// # Errors
    /// An exponent is even.
    pub fn new(
        secret: &SecretKey,
        ring: &Arc<Ring>,
        exponents: impl IntoIterator<Item = (usize, Gadget)>,
        rng: &mut SecretRng,
    ) -> Result<Self, NttError> {
        let key = |(exponent, gadget)| {
            let key = GaloisKey::new(secret, ring, exponent, gadget, rng)?;
            Ok((key.exponent(), key))
        };
        Ok(Self { ring: ring.clone(), keys: exponents.into_iter().map(key).collect::<Result<_, _>>()? })
    }

    /// The key for an exponent, below 2d.
    ///
    /// # Errors
    /// There is none.
    pub fn get(&self, exponent: usize) -> Result<&GaloisKey, MissingKey> {
        self.keys.get(&exponent).ok_or(MissingKey::Exponent(exponent))
    }

    /// The ring of the keys.
    #[must_use]
    pub fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// Keeps every 2^`steps`-th coefficient of the plaintext and makes the others 0. All of log2(d) steps leave the constant one.
    ///
    /// Noise: of the ciphertext as it was; each step doubles what switching added before it. Needs keys for the first `steps`
    /// of [`tree_exponents`]. Source: Chen, Dai, Kim and Song 2020, Algorithm 1.
    ///
    /// # Errors
    /// A key is missing.
    ///
    /// # Panics
    /// The ciphertext is of another ring, or there are more steps than log2(d).
    pub fn trace(&self, ciphertext: &Ciphertext, steps: u32) -> Result<Ciphertext, MissingKey> {
        assert!(steps <= self.ring.degree().ilog2(), "{steps} steps are more than the degree has");
        let mut out = ciphertext.clone();
        out.prescale(self.ring.inverse_power_of_two(steps));
        let mut added = Noise::NONE;
        for exponent in tree_exponents(self.ring.degree()).take(steps as usize) {
            added = self.step(&mut out, exponent, added)?;
        }
        out.noisier("trace", ciphertext.noise.plus(added));
        Ok(out)
    }

    /// c <- c + c(X^k), where the keys' errors so far are `added`.
    fn step(&self, c: &mut Ciphertext, exponent: usize, added: Noise) -> Result<Noise, MissingKey> {
        let key = self.get(exponent)?;
        c.pair.add(&self.ring, &key.apply(c).pair);
        Ok(added.times(2.0).plus(key.key.noise))
    }

    /// Packs the constant coefficients of n plaintexts, n a power of two: number j becomes coefficient j d / n, and the others are 0.
    ///
    /// Noise: of the noisiest ciphertext; each of log2(d) levels doubles what switching added before it. Needs keys for all of
    /// [`tree_exponents`]. Source: Chen, Dai, Kim and Song 2020, Algorithms 2 and 3.
    ///
    /// # Errors
    /// A key is missing, or n is not a power of two from 1 to d.
    ///
    /// # Panics
    /// A ciphertext is of another ring or plaintext modulus than the first.
    pub fn pack(&self, ciphertexts: &[Ciphertext]) -> Result<Ciphertext, MissingKey> {
        let (count, degree) = (ciphertexts.len(), self.ring.degree());
        if !count.is_power_of_two() || count > degree {
            return Err(MissingKey::Count { count, limit: degree });
        }
        let noise = ciphertexts.iter().fold(Noise::NONE, |noise, c| noise.max(c.noise));
        let scale = self.ring.inverse_power_of_two(degree.ilog2());
        let mut level: Vec<Ciphertext> = ciphertexts.to_vec();
        for c in &mut level {
            c.check(&self.ring);
            assert_eq!(c.plaintext, ciphertexts[0].plaintext, "ciphertexts of one plaintext modulus");
            c.prescale(scale);
        }
        let mut added = Noise::NONE;
        // Pairs that lie half apart meet first, so that number j ends at place j.
        while level.len() > 1 {
            // 2, 4, 8, ... ciphertexts are in each after this.
            let packed = 2 * count / level.len();
            let (shift, key) = (self.ring.monomial((degree / packed) as isize), self.get(packed + 1)?);
            let odd = level.split_off(level.len() / 2);
            for (even, mut odd) in level.iter_mut().zip(odd) {
                odd.pair.multiply(&self.ring, &shift);
                let mut difference = even.clone();
                difference.pair.subtract(&self.ring, &odd.pair);
                even.pair.add(&self.ring, &odd.pair);
                even.pair.add(&self.ring, &key.apply(&difference).pair);
            }
            added = added.times(2.0).plus(key.key.noise);
        }
        let mut out = level.swap_remove(0);
        for exponent in tree_exponents(degree).take((degree / count).ilog2() as usize) {
            added = self.step(&mut out, exponent, added)?;
        }
        out.noisier("pack", noise.plus(added));
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plaintext;
    use crate::encoding::Slots;
    use crate::testing::{self, Bench};

    fn keys(bench: &mut Bench, bits: u32) -> GaloisKeys {
        let ring = bench.parameters.ring().clone();
        let gadget = Gadget::exact(&ring, bits).unwrap();
        let exponents = tree_exponents(ring.degree()).map(|k| (k, gadget));
        GaloisKeys::new(&bench.secret, &ring, exponents, &mut bench.rng).unwrap()
    }

    #[test]
    fn automorphisms_act_on_plaintexts() {
        for parameters in testing::all() {
            let mut bench = Bench::new(&parameters, 41);
            let ring = parameters.ring();
            let gadget = Gadget::exact(ring, 16).unwrap();
            for exponent in [3, 5, 2 * ring.degree() - 1] {
                let key = GaloisKey::new(&bench.secret, ring, exponent, gadget, &mut bench.rng).unwrap();
                for message in [testing::message(&parameters, 1), testing::edges(&parameters).0] {
                    let x = key.apply(&bench.encrypt(&message));
                    bench.check("automorphism", &x, &testing::automorphism(&message, exponent), 3.0);
                }
            }
            assert!(GaloisKey::new(&bench.secret, ring, 4, gadget, &mut bench.rng).is_err());
        }
    }

    #[test]
    fn slots_turn() {
        let parameters = testing::toy();
        let mut bench = Bench::new(&parameters, 42);
        let slots = Slots::new(&parameters).unwrap();
        let numbers: Vec<u64> = (0..256).collect();
        let x = bench.encrypt(&slots.encode(&numbers).unwrap());
        let gadget = Gadget::exact(parameters.ring(), 16).unwrap();
        let key = GaloisKey::new(&bench.secret, parameters.ring(), 25, gadget, &mut bench.rng).unwrap();
        let out = slots.decode(&bench.secret.decrypt(&key.apply(&x)));
        let want: Vec<u64> = (0..256).map(|i| i / 128 * 128 + (i % 128 + 2) % 128).collect();
        assert_eq!(*out, want);
    }

    #[test]
    fn a_trace_keeps_every_so_many_coefficients() {
        for parameters in testing::all() {
            let mut bench = Bench::new(&parameters, 43);
            let keys = keys(&mut bench, 12);
            for steps in [1, 3, parameters.degree().ilog2()] {
                for message in [testing::message(&parameters, 2), testing::edges(&parameters).1] {
                    let x = keys.trace(&bench.encrypt(&message), steps).unwrap();
                    let kept = message.coefficients().iter().enumerate();
                    let want = kept.map(|(i, c)| if i % (1 << steps) == 0 { *c } else { 0 }).collect();
                    bench.check("trace", &x, &Plaintext::of(want, parameters.plaintext()), 12.0);
                }
            }
        }
    }

    #[test]
    fn constants_are_packed() {
        for parameters in testing::all() {
            let mut bench = Bench::new(&parameters, 44);
            let keys = keys(&mut bench, 12);
            for count in [1, 2, 8] {
                let messages: Vec<Plaintext> = (0..count).map(|i| testing::message(&parameters, i)).collect();
                let ciphertexts: Vec<Ciphertext> = messages.iter().map(|m| bench.encrypt(m)).collect();
                let mut want = vec![0; parameters.degree()];
                for (j, message) in messages.iter().enumerate() {
                    want[j * parameters.degree() / messages.len()] = message.coefficients()[0];
                }
                let x = keys.pack(&ciphertexts).unwrap();
                // The last step of a single one doubles the errors of one coefficient, and how large these are is luck.
                let slack = if count == 1 { 6.0 } else { 5.0 };
                bench.check("pack", &x, &Plaintext::of(want, parameters.plaintext()), slack);
            }
        }
    }

    #[test]
    fn what_cant_be_packed_is_refused() {
        let parameters = testing::toy();
        let mut bench = Bench::new(&parameters, 45);
        let ring = parameters.ring();
        let gadget = Gadget::exact(ring, 16).unwrap();
        let keys = GaloisKeys::new(&bench.secret, ring, [(3, gadget)], &mut bench.rng).unwrap();
        let x = bench.encrypt(&testing::message(&parameters, 1));
        assert_eq!(keys.pack(&[]).err(), Some(MissingKey::Count { count: 0, limit: 256 }));
        assert!(keys.pack(&[x.clone(), x.clone(), x.clone()]).is_err());
        assert_eq!(keys.pack(&[x.clone(), x.clone()]).err(), Some(MissingKey::Exponent(257)));
        assert_eq!(keys.trace(&x, 1).err(), Some(MissingKey::Exponent(257)));
    }
}
