//! Products of two ciphertexts.
//!
//! With phases (Q / p) m_i + e_i + Q k_i over the integers, the product of both times p / Q is (Q / p) m_1 m_2 and noise, modulo Q. It is
//! worked out over the integers, modulo Q and modulo P, a product of further primes above p d Q: round(p t / Q) is (p t - r) / Q, with
//! r the centred residue of p t modulo Q, and that quotient is exact modulo P. Source: Fan and Vercauteren 2012; with residues,
//! Halevi, Polyakov and Shoup 2018. No key lives modulo P.

use std::sync::Arc;

use blindcore_math::Prime;

use crate::ciphertext::Ciphertext;
use crate::noise::{Noise, secret_weight};
use crate::poly::{Coefficients, Poly, Values};
use crate::ring::distinct_primes;
use crate::rns::{Extension, inverse};
use crate::switching::{RelinearisationKey, slack};
use crate::{Parameters, Ring, RingError};

impl Noise {
    /// Of a product of two ciphertexts, before relinearisation: each one's error times the other's message and times p k, where k, the
    /// multiple of Q in its phase, has a variance of a twelfth of the secret's weight; and what rounding loses.
    #[must_use]
    pub fn of_product(ring: &Ring, plaintext: u64, a: Self, b: Self) -> Self {
        let (d, p, q) = (ring.degree() as f64, plaintext as f64, ring.modulus() as f64);
        let weight = 1.0 + secret_weight(ring.degree());
        let multiples = (d * weight / 12.0 * slack(ring)).sqrt();
        let length = d.sqrt() * p / 2.0 + p * multiples;
        let sum = d * p / 2.0 + p * multiples * d.sqrt();
        let each = a.times_polynomial(length, sum).plus(b.times_polynomial(length, sum));
        let both = p / q * d * a.bound(ring.degree()) * b.bound(ring.degree());
        // Three roundings: times 1, s and s^2.
        let squares = 4.0 * (2.0 / 3.0 * d).powi(2);
        let rounding = Self::of_variance((weight + squares) / 4.0);
        each.plus(Self::at_most(both)).plus(rounding)
    }
}

/// What products in a ring take: further primes, and the tables between them and the ring's.
pub struct Multiplier {
    ring: Arc<Ring>,
    plaintext: u64,
    /// Rings of the further primes, one each.
    further: Vec<Ring>,
    up: Extension,
    down: Extension,
}

impl Multiplier {
    /// For one of the parameters' rings.
    ///
    /// # Errors
    /// There are not enough further primes.
    pub fn new(parameters: &Parameters, ring: &Arc<Ring>) -> Result<Self, RingError> {
        let (degree, plaintext) = (ring.degree(), parameters.plaintext());
        // P > 4 p d Q.
        let bits = ring.bits() + degree.ilog2() + (64 - plaintext.leading_zeros()) + 3;
        let size = 49;
        let sizes = vec![size; bits.div_ceil(size - 1) as usize];
        let taken: Vec<Prime> = parameters.rings().iter().flat_map(|ring| ring.primes().to_vec()).collect();
        let primes = distinct_primes(degree, &sizes, &taken)?;
        let further = primes.iter().map(|q| Ring::new(degree, &[*q])).collect::<Result<_, _>>()?;
        let (up, down) = (Extension::new(ring.primes(), &primes), Extension::new(&primes, ring.primes()));
        Ok(Self { ring: ring.clone(), plaintext, further, up, down })
    }

    /// A polynomial modulo each of the further primes, by values.
    fn extended(&self, polynomial: &Poly<Values>) -> Vec<Poly<Values>> {
        let coefficients = self.ring.inverse(polynomial.clone());
        let words = self.up.extend(self.ring.degree(), coefficients.words());
        let of = |(ring, words): (&Ring, &[u64])| ring.forward(Poly::from_words(words.to_vec()));
        self.further.iter().zip(words.chunks_exact(self.ring.degree())).map(of).collect()
    }

    /// round(p t / Q) modulo Q, from t modulo Q and modulo P.
    fn scaled(&self, mut own: Poly<Values>, further: Vec<Poly<Values>>) -> Poly<Values> {
        let (degree, p) = (self.ring.degree(), u128::from(self.plaintext));
        self.ring.scale(&mut own, p);
        let rest = self.up.extend(degree, self.ring.inverse(own).words());
        let mut words = Vec::with_capacity(self.further.len() * degree);
        for ((ring, mut t), rest) in self.further.iter().zip(further).zip(rest.chunks_exact(degree)) {
            ring.scale(&mut t, p);
            let mut t: Poly<Coefficients> = ring.inverse(t);
            ring.subtract(&mut t, &Poly::from_words(rest.to_vec()));
            let prime = ring.primes()[0];
            ring.scale(&mut t, u128::from(inverse(prime, prime.reduce(self.ring.modulus()))));
            words.extend(t.into_words());
        }
        self.ring.forward(Poly::from_words(self.down.extend(degree, &words)))
    }

    /// The ciphertext of the product of both plaintexts. Noise: [`Noise::of_product`], and what relinearisation adds.
    ///
    /// # Panics
    /// A ciphertext or the key is of another ring than the multiplier's, or of another plaintext modulus.
    #[must_use]
    pub fn multiply(&self, a: &Ciphertext, b: &Ciphertext, key: &RelinearisationKey) -> Ciphertext {
        let ring = &self.ring;
        a.check(ring);
        b.check(ring);
        a.check(&key.0.ring);
        assert!(a.plaintext == self.plaintext && b.plaintext == self.plaintext, "one plaintext modulus");
        let parts = [&a.pair.mask, &a.pair.body, &b.pair.mask, &b.pair.body];
        let further = parts.map(|part| self.extended(part));
        let [square, mask, body] = tensor(ring, parts);
        let mut others = [Vec::new(), Vec::new(), Vec::new()];
        for (i, ring) in self.further.iter().enumerate() {
            let products = tensor(ring, [&further[0][i], &further[1][i], &further[2][i], &further[3][i]]);
            others.iter_mut().zip(products).for_each(|(all, product)| all.push(product));
        }
        let [square_others, mask_others, body_others] = others;
        // b1 b2 - (a1 b2 + a2 b1) s + a1 a2 s^2
        let mut pair = key.0.product(&ring.inverse(self.scaled(square, square_others)));
        ring.add(&mut pair.mask, &self.scaled(mask, mask_others));
        ring.add(&mut pair.body, &self.scaled(body, body_others));
        let noise = Noise::of_product(ring, self.plaintext, a.noise, b.noise).plus_independent(key.0.noise);
        Ciphertext::made("multiply", ring, self.plaintext, pair, noise)
    }
}

/// a1 a2, a1 b2 + a2 b1 and b1 b2, from a1, b1, a2, b2.
fn tensor(ring: &Ring, [a1, b1, a2, b2]: [&Poly<Values>; 4]) -> [Poly<Values>; 3] {
    let product = |a: &Poly<Values>, b| {
        let mut product = a.clone();
        ring.multiply(&mut product, b);
        product
    };
    let mut mask = product(a1, b2);
    ring.multiply_add(&mut mask, a2, b1);
    [product(a1, a2), mask, product(b1, b2)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Bench};
    use crate::{Gadget, Slots};

    #[test]
    fn products_decrypt_below_their_bounds() {
        for parameters in testing::all() {
            let mut bench = Bench::new(&parameters, 71);
            let ring = parameters.ring().clone();
            let multiplier = Multiplier::new(&parameters, &ring).unwrap();
            let gadget = Gadget::exact(&ring, 8).unwrap();
            let key = RelinearisationKey::new(&bench.secret, &ring, gadget, &mut bench.rng);
            let (low, high) = testing::edges(&parameters);
            for (m, n) in [(testing::message(&parameters, 1), testing::message(&parameters, 2)), (low, high)]
            {
                let (x, y) = (bench.encrypt(&m), bench.encrypt(&n));
                bench.check("product", &multiplier.multiply(&x, &y, &key), &testing::product(&m, &n), 5.0);
                bench.check("square", &multiplier.multiply(&x, &x, &key), &testing::product(&m, &m), 5.0);
            }
        }
    }

    #[test]
    fn slots_multiply() {
        let parameters = crate::sets::N4096.check().unwrap();
        let mut bench = Bench::new(&parameters, 72);
        let slots = Slots::new(&parameters).unwrap();
        let ring = parameters.ring().clone();
        let multiplier = Multiplier::new(&parameters, &ring).unwrap();
        let key =
            RelinearisationKey::new(&bench.secret, &ring, Gadget::exact(&ring, 20).unwrap(), &mut bench.rng);
        let numbers: Vec<u64> = (0..4096).map(|i| i * 16 + 5).map(|x| x % 65_537).collect();
        let x = bench.encrypt(&slots.encode(&numbers).unwrap());
        let out = slots.decode(&bench.secret.decrypt(&multiplier.multiply(&x, &x, &key)));
        assert!(out.iter().zip(&numbers).all(|(out, n)| *out == n * n % 65_537));
    }
}
