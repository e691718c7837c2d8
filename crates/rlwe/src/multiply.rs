//! Products of two ciphertexts.
//!
//! With phases (Q / p) m_i + e_i + Q k_i over the integers, the product of both times p / Q is (Q / p) m_1 m_2 and noise, modulo Q. It is
//! worked out over the integers, modulo Q and modulo P, a product of further primes above p d Q: round(p t / Q) is (p t - r) / Q, with
//! r the centred residue of p t modulo Q, and that quotient is exact modulo P. Source: Fan and Vercauteren 2012; with residues,
//! Halevi, Polyakov and Shoup 2018. No key lives modulo P.

use std::sync::Arc;

use blindcore_math::Prime;

use crate::ciphertext::{Ciphertext, Pair};
use crate::noise::{Noise, secret_weight};
use crate::poly::{Coefficients, Poly, Values};
use crate::ring::distinct_primes;
use crate::rns::{Extension, inverse};
use crate::switching::{RelinearisationKey, slack};
use crate::{Parameters, Ring, RingError};

impl Noise {
    /// Of a product of two ciphertexts, before relinearisation: [`Self::of_tensor`], and what rounding loses.
    #[must_use]
    pub fn of_product(ring: &Ring, plaintext: u64, a: Self, b: Self) -> Self {
        Self::of_tensor(ring, plaintext, a, b).plus(Self::of_scaling(ring))
    }

    /// Of a product before it is rounded: each one's error times the other's message and times p k, where k, the multiple of Q in its
    /// phase, has a variance of a twelfth of the secret's weight.
    #[must_use]
    pub fn of_tensor(ring: &Ring, plaintext: u64, a: Self, b: Self) -> Self {
        let (d, p, q) = (ring.degree() as f64, plaintext as f64, ring.modulus() as f64);
        let weight = 1.0 + secret_weight(ring.degree());
        let multiples = (d * weight / 12.0 * slack(ring)).sqrt();
        let length = d.sqrt() * p / 2.0 + p * multiples;
        let sum = d * p / 2.0 + p * multiples * d.sqrt();
        let each = a.times_polynomial(length, sum).plus(b.times_polynomial(length, sum));
        let both = p / q * d * a.bound(ring.degree()) * b.bound(ring.degree());
        each.plus(Self::at_most(both))
    }

    /// Of three roundings: times 1, s and s^2.
    #[must_use]
    pub fn of_scaling(ring: &Ring) -> Self {
        let weight = 1.0 + secret_weight(ring.degree());
        let squares = 4.0 * (2.0 / 3.0 * ring.degree() as f64).powi(2);
        Self::of_variance((weight + squares) / 4.0)
    }
}

/// What products in a ring take: further primes, and the tables between them and the ring's.
///
/// What costs is bringing ciphertexts to the further primes ([`Self::lift`]), once for each that is multiplied, and scaling and
/// relinearising ([`Self::finish`]), once for a whole sum of products; between them are products of values.
///
/// ```
/// use blindcore_math::SecretRng;
/// use blindcore_rlwe::{Gadget, Multiplier, Plaintext, RelinearisationKey, SecretKey, sets};
///
/// let parameters = sets::N4096.check()?;
/// let (ring, mut rng) = (parameters.ring().clone(), SecretRng::from_os()?);
/// let secret = SecretKey::generate(&parameters, &mut rng);
/// let key = RelinearisationKey::new(&secret, &ring, Gadget::exact(&ring, 20)?, &mut rng);
/// let multiplier = Multiplier::new(&parameters, &ring, 2)?; // sums of up to two products
///
/// // 3 * 5 + 7 * 11
/// let lifted = [3, 5, 7, 11].map(|number| {
///     let plaintext = Plaintext::scalar(&parameters, number).expect("below p");
///     multiplier.lift(&secret.encrypt(&plaintext, &mut rng))
/// });
/// let products = multiplier.products(&[[&lifted[0], &lifted[1]], [&lifted[2], &lifted[3]]]);
/// let sum = multiplier.finish(products, &key);
/// assert_eq!(secret.decrypt(&sum).coefficients()[..2], [92, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Multiplier {
    ring: Arc<Ring>,
    plaintext: u64,
    terms: usize,
    /// Rings of the further primes, one each.
    further: Vec<Ring>,
    up: Extension,
    down: Extension,
}

/// A ciphertext that is ready to be multiplied: itself, and its centred coefficients modulo each of the further primes.
pub struct Lifted {
    own: Pair,
    further: Vec<Pair>,
    noise: Noise,
}

/// A sum of products of two ciphertexts each, over the integers: what stands before 1, s and s^2, modulo Q and the further primes.
#[derive(Clone)]
pub struct Products {
    own: Tensor,
    further: Vec<Tensor>,
    terms: usize,
    noise: Noise,
}

/// a1 a2, a1 b2 + a2 b1 and b1 b2.
#[derive(Clone)]
struct Tensor([Poly<Values>; 3]);

impl Tensor {
    fn of(ring: &Ring, pairs: &[[&Pair; 2]]) -> Self {
        let sum = |factors: &[[&Poly<Values>; 2]]| {
            let mut sum = ring.zero();
            ring.multiply_sum(&mut sum, factors);
            sum
        };
        let squares: Vec<_> = pairs.iter().map(|[x, y]| [&x.mask, &y.mask]).collect();
        let crosses: Vec<_> =
            pairs.iter().flat_map(|[x, y]| [[&x.mask, &y.body], [&y.mask, &x.body]]).collect();
        let bodies: Vec<_> = pairs.iter().map(|[x, y]| [&x.body, &y.body]).collect();
        Self([sum(&squares), sum(&crosses), sum(&bodies)])
    }

    fn add(&mut self, ring: &Ring, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(sum, other)| ring.add(sum, other));
    }
}

impl Multiplier {
    /// For one of the parameters' rings, and sums of up to `terms` products.
    ///
    /// # Errors
    /// There are not enough further primes.
    pub fn new(parameters: &Parameters, ring: &Arc<Ring>, terms: usize) -> Result<Self, RingError> {
        let (degree, plaintext) = (ring.degree(), parameters.plaintext());
        // P > 4 p d Q for each term.
        let terms_bits = usize::BITS - terms.leading_zeros();
        let bits = ring.bits() + degree.ilog2() + (64 - plaintext.leading_zeros()) + terms_bits + 2;
        let size = 49;
        let sizes = vec![size; bits.div_ceil(size - 1) as usize];
        let taken: Vec<Prime> = parameters.rings().iter().flat_map(|ring| ring.primes().to_vec()).collect();
        let primes = distinct_primes(degree, &sizes, &taken)?;
        let further = primes.iter().map(|q| Ring::new(degree, &[*q])).collect::<Result<_, _>>()?;
        let (up, down) = (Extension::new(ring.primes(), &primes), Extension::new(&primes, ring.primes()));
        Ok(Self { ring: ring.clone(), plaintext, terms, further, up, down })
    }

    /// Brings a ciphertext to the further primes.
    ///
    /// # Panics
    /// It is of another ring than the multiplier's, or of another plaintext modulus.
    #[must_use]
    pub fn lift(&self, ciphertext: &Ciphertext) -> Lifted {
        ciphertext.check(&self.ring);
        assert!(ciphertext.plaintext == self.plaintext, "one plaintext modulus");
        let degree = self.ring.degree();
        let part = |polynomial: &Poly<Values>| {
            let coefficients = self.ring.inverse(polynomial.clone());
            let words = self.up.extend(degree, coefficients.words());
            let of = |(ring, words): (&Ring, &[u64])| ring.forward(Poly::from_words(words.to_vec()));
            self.further.iter().zip(words.chunks_exact(degree)).map(of).collect::<Vec<_>>()
        };
        let (masks, bodies) = (part(&ciphertext.pair.mask), part(&ciphertext.pair.body));
        let further = masks.into_iter().zip(bodies).map(|(mask, body)| Pair { mask, body }).collect();
        Lifted { own: ciphertext.pair.clone(), further, noise: ciphertext.noise }
    }

    /// The sum of the products of each pair. Noise: the sum of each [`Noise::of_tensor`].
    ///
    /// # Panics
    /// There are more pairs than the multiplier's terms, or one is of another multiplier.
    #[must_use]
    pub fn products(&self, pairs: &[[&Lifted; 2]]) -> Products {
        assert!(pairs.len() <= self.terms, "sums of up to {} products", self.terms);
        let own: Vec<[&Pair; 2]> = pairs.iter().map(|pair| pair.map(|one| &one.own)).collect();
        let of = |(i, ring): (usize, &Ring)| {
            let there: Vec<[&Pair; 2]> = pairs.iter().map(|pair| pair.map(|one| &one.further[i])).collect();
            Tensor::of(ring, &there)
        };
        let noise = pairs.iter().fold(Noise::NONE, |sum, [a, b]| {
            sum.plus(Noise::of_tensor(&self.ring, self.plaintext, a.noise, b.noise))
        });
        let further = self.further.iter().enumerate().map(of).collect();
        Products { own: Tensor::of(&self.ring, &own), further, terms: pairs.len(), noise }
    }

    /// Adds another sum. Noise: the sum of both.
    ///
    /// # Panics
    /// Both together have more than the multiplier's terms.
    pub fn add(&self, sum: &mut Products, other: &Products) {
        sum.terms += other.terms;
        assert!(sum.terms <= self.terms, "sums of up to {} products", self.terms);
        sum.own.add(&self.ring, &other.own);
        let further = sum.further.iter_mut().zip(&other.further).zip(&self.further);
        further.for_each(|((sum, other), ring)| sum.add(ring, other));
        sum.noise = sum.noise.plus(other.noise);
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

    /// The ciphertext of a sum of products. Noise: [`Noise::of_scaling`], and what relinearisation adds.
    ///
    /// # Panics
    /// The key is of another ring than the multiplier's.
    #[must_use]
    pub fn finish(&self, products: Products, key: &RelinearisationKey) -> Ciphertext {
        let ring = &self.ring;
        assert!(key.0.ring == *ring, "a key of the multiplier's ring");
        let mut others = [Vec::new(), Vec::new(), Vec::new()];
        for Tensor(there) in products.further {
            others.iter_mut().zip(there).for_each(|(all, product)| all.push(product));
        }
        let (Tensor([square, mask, body]), [square_others, mask_others, body_others]) =
            (products.own, others);
        // b1 b2 - (a1 b2 + a2 b1) s + a1 a2 s^2
        let mut pair = key.0.product(&ring.inverse(self.scaled(square, square_others)));
        ring.add(&mut pair.mask, &self.scaled(mask, mask_others));
        ring.add(&mut pair.body, &self.scaled(body, body_others));
        let noise = products.noise.plus(Noise::of_scaling(ring)).plus_independent(key.0.noise);
        Ciphertext::made("multiply", ring, self.plaintext, pair, noise)
    }

    /// The ciphertext of the product of both plaintexts. Noise: [`Noise::of_product`], and what relinearisation adds.
    ///
    /// # Panics
    /// A ciphertext or the key is of another ring than the multiplier's, or of another plaintext modulus.
    #[must_use]
    pub fn multiply(&self, a: &Ciphertext, b: &Ciphertext, key: &RelinearisationKey) -> Ciphertext {
        self.finish(self.products(&[[&self.lift(a), &self.lift(b)]]), key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Bench};
    use crate::{Gadget, Plaintext, Slots};

    #[test]
    fn products_decrypt_below_their_bounds() {
        for parameters in testing::all() {
            let mut bench = Bench::new(&parameters, 71);
            let ring = parameters.ring().clone();
            let multiplier = Multiplier::new(&parameters, &ring, 1).unwrap();
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
        let multiplier = Multiplier::new(&parameters, &ring, 1).unwrap();
        let key =
            RelinearisationKey::new(&bench.secret, &ring, Gadget::exact(&ring, 20).unwrap(), &mut bench.rng);
        let numbers: Vec<u64> = (0..4096).map(|i| i * 16 + 5).map(|x| x % 65_537).collect();
        let x = bench.encrypt(&slots.encode(&numbers).unwrap());
        let out = slots.decode(&bench.secret.decrypt(&multiplier.multiply(&x, &x, &key)));
        assert!(out.iter().zip(&numbers).all(|(out, n)| *out == n * n % 65_537));
    }

    #[test]
    fn sums_of_products_are_finished_once() {
        for parameters in testing::all() {
            let mut bench = Bench::new(&parameters, 73);
            let ring = parameters.ring().clone();
            let multiplier = Multiplier::new(&parameters, &ring, 5).unwrap();
            let gadget = Gadget::exact(&ring, 8).unwrap();
            let key = RelinearisationKey::new(&bench.secret, &ring, gadget, &mut bench.rng);
            let high = testing::edges(&parameters).1;
            let scalar = Plaintext::scalar(&parameters, parameters.plaintext() / 2).unwrap();
            let mut of = |m: &Plaintext| multiplier.lift(&bench.encrypt(m));
            let (x, y) = (of(&high), of(&scalar));
            let mut sum = multiplier.products(&[[&x, &y], [&y, &x], [&x, &y]]);
            multiplier.add(&mut sum, &multiplier.products(&[[&y, &x], [&x, &y]]));
            let one = testing::product(&high, &scalar);
            let want = testing::each(&one, &one, |a, _| 5 * a % parameters.plaintext());
            bench.check("sum of products", &multiplier.finish(sum, &key), &want, 5.0);
        }
    }

    #[test]
    #[should_panic(expected = "sums of up to 2 products")]
    fn more_products_than_there_is_room_for_are_refused() {
        let parameters = testing::toy();
        let multiplier = Multiplier::new(&parameters, parameters.ring(), 2).unwrap();
        let x = multiplier.lift(&Bench::new(&parameters, 74).encrypt(&testing::message(&parameters, 1)));
        let mut sum = multiplier.products(&[[&x, &x], [&x, &x]]);
        multiplier.add(&mut sum, &multiplier.products(&[[&x, &x]]));
    }
}
