//! Ciphertexts, and what is linear in them.

use std::sync::Arc;

use crate::encoding::{Factor, Plaintext};
use crate::noise::{Noise, watch};
use crate::poly::{Poly, Values};
use crate::{Parameters, Ring};

/// A mask and a body: body - mask s is the phase.
#[derive(Clone, Debug)]
pub struct Pair {
    /// a.
    pub mask: Poly<Values>,
    /// b.
    pub body: Poly<Values>,
}

impl Pair {
    /// Nothing, encrypted by nothing.
    pub(crate) fn zero(ring: &Ring) -> Self {
        Self { mask: ring.zero(), body: ring.zero() }
    }

    pub(crate) fn add(&mut self, ring: &Ring, other: &Self) {
        ring.add(&mut self.mask, &other.mask);
        ring.add(&mut self.body, &other.body);
    }

    pub(crate) fn subtract(&mut self, ring: &Ring, other: &Self) {
        ring.subtract(&mut self.mask, &other.mask);
        ring.subtract(&mut self.body, &other.body);
    }

    pub(crate) fn multiply(&mut self, ring: &Ring, factor: &Poly<Values>) {
        ring.multiply(&mut self.mask, factor);
        ring.multiply(&mut self.body, factor);
    }
}

/// An encrypted plaintext: a pair whose phase is (Q / p) m + e, with the ring that it lives in and what is known of e.
///
/// ```text
///   phase = body - mask s = (Q / p) m + e          |e| <= noise, and m comes out where |e| < Q / 2p
/// ```
///
/// Its `Debug` says how much noise it may still take.
#[derive(Clone)]
pub struct Ciphertext {
    pub(crate) ring: Arc<Ring>,
    pub(crate) plaintext: u64,
    pub(crate) pair: Pair,
    pub(crate) noise: Noise,
}

impl std::fmt::Debug for Ciphertext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (degree, bits) = (self.ring.degree(), self.ring.bits());
        write!(f, "Ciphertext(degree {degree}, {bits} bits, {:.1} bits of budget left)", self.budget())
    }
}

impl Ciphertext {
    /// A ciphertext from its parts, whoever made them: `noise` is what the caller knows of it.
    #[must_use]
    pub fn from_pair(parameters: &Parameters, ring: &Arc<Ring>, pair: Pair, noise: Noise) -> Self {
        Self::made("from parts", ring, parameters.plaintext(), pair, noise)
    }

    pub(crate) fn made(operation: &str, ring: &Arc<Ring>, plaintext: u64, pair: Pair, noise: Noise) -> Self {
        watch(operation, &noise, ring, plaintext);
        Self { ring: ring.clone(), plaintext, pair, noise }
    }

    /// Takes on what is known of the noise after an operation in place.
    pub(crate) fn noisier(&mut self, operation: &str, noise: Noise) {
        watch(operation, &noise, &self.ring, self.plaintext);
        self.noise = noise;
    }

    /// The plaintext whose encryption without noise and mask this is: for numbers that are public.
    #[must_use]
    pub fn trivial(ring: &Arc<Ring>, plaintext: &Plaintext) -> Self {
        let pair = Pair { mask: ring.zero(), body: plaintext.scaled_up(ring).take() };
        Self::made("trivial", ring, plaintext.modulus(), pair, Noise::at_most(0.5))
    }

    /// The ring that it lives in.
    #[must_use]
    pub fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// Mask and body.
    #[must_use]
    pub fn pair(&self) -> &Pair {
        &self.pair
    }

    /// A bound on its noise.
    #[must_use]
    pub fn noise(&self) -> Noise {
        self.noise
    }

    /// The same ciphertext with a bound that the caller can prove and this crate cannot: where errors are known to be independent, or an
    /// average over coefficients is what counts.
    #[must_use]
    pub fn with_noise(mut self, noise: Noise) -> Self {
        self.noisier("bound of the caller", noise);
        self
    }

    /// Bits that its noise may still grow by; below 0, the plaintext is at risk.
    #[must_use]
    pub fn budget(&self) -> f64 {
        self.noise.budget(&self.ring, self.plaintext)
    }

    pub(crate) fn check(&self, ring: &Arc<Ring>) {
        assert!(Arc::ptr_eq(&self.ring, ring) || self.ring == *ring, "a ciphertext of this ring: {ring:?}");
    }

    fn check_other(&self, other: &Self) {
        self.check(&other.ring);
        assert_eq!(self.plaintext, other.plaintext, "ciphertexts of one plaintext modulus");
    }

    /// Adds another. Noise: the sum of both.
    ///
    /// # Panics
    /// It is of another ring or plaintext modulus.
    pub fn add(&mut self, other: &Self) {
        self.check_other(other);
        self.pair.add(&self.ring, &other.pair);
        self.noisier("add", self.noise.plus(other.noise));
    }

    /// Subtracts another. Noise: the sum of both.
    ///
    /// # Panics
    /// It is of another ring or plaintext modulus.
    pub fn subtract(&mut self, other: &Self) {
        self.check_other(other);
        self.pair.subtract(&self.ring, &other.pair);
        self.noisier("subtract", self.noise.plus(other.noise));
    }

    /// Changes the sign. Noise: the same.
    pub fn negate(&mut self) {
        self.ring.negate(&mut self.pair.mask);
        self.ring.negate(&mut self.pair.body);
    }

    /// Adds a public plaintext. Noise: half more, for rounding.
    ///
    /// # Panics
    /// The plaintext is of another modulus.
    pub fn add_plain(&mut self, plaintext: &Plaintext) {
        assert_eq!(self.plaintext, plaintext.modulus(), "a plaintext of this modulus");
        self.ring.add(&mut self.pair.body, &plaintext.scaled_up(&self.ring));
        self.noisier("add plain", self.noise.plus(Noise::at_most(0.5)));
    }

    /// Multiplies by a public factor. Noise: the factor's length times the random part.
    ///
    /// # Panics
    /// The factor is of another ring.
    pub fn multiply_plain(&mut self, factor: &Factor) {
        self.pair.multiply(&self.ring, &factor.values);
        self.noisier("multiply plain", self.noise.times_polynomial(factor.length, factor.sum));
    }

    /// Adds `other` times a public factor: the inner loop of a scan.
    ///
    /// # Panics
    /// `other` or the factor is of another ring or plaintext modulus.
    pub fn multiply_plain_add(&mut self, other: &Self, factor: &Factor) {
        self.check_other(other);
        self.ring.multiply_add(&mut self.pair.mask, &other.pair.mask, &factor.values);
        self.ring.multiply_add(&mut self.pair.body, &other.pair.body, &factor.values);
        let product = other.noise.times_polynomial(factor.length, factor.sum);
        self.noisier("multiply plain and add", self.noise.plus(product));
    }

    /// Multiplies by X^`power`, a power from -d to d. Noise: the same.
    pub fn turn(&mut self, power: isize) {
        self.pair.multiply(&self.ring, &self.ring.monomial(power));
    }

    /// Multiplies by a public integer modulo Q that makes the phase what the caller knows it to be: an inverse of a power of two before
    /// a trace that multiplies by it. What is known of the noise stays.
    pub(crate) fn prescale(&mut self, factor: u128) {
        self.ring.scale(&mut self.pair.mask, factor);
        self.ring.scale(&mut self.pair.body, factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Bench};

    #[test]
    fn sums_and_products_with_plaintexts_decrypt_below_their_bounds() {
        for parameters in testing::all() {
            let mut bench = Bench::new(&parameters, 11);
            let p = parameters.plaintext();
            for (m, n) in [
                (testing::message(&parameters, 1), testing::message(&parameters, 2)),
                testing::edges(&parameters),
            ] {
                let (x, y) = (bench.encrypt(&m), bench.encrypt(&n));
                let with = |work: &dyn Fn(u64, u64) -> u64| testing::each(&m, &n, work);
                let mut sum = x.clone();
                sum.add(&y);
                bench.check("sum", &sum, &with(&|a, b| (a + b) % p), 2.0);
                let mut twice = x.clone();
                twice.add(&x);
                bench.check("double", &twice, &with(&|a, _| 2 * a % p), 1.5);
                let mut difference = x.clone();
                difference.subtract(&y);
                bench.check("difference", &difference, &with(&|a, b| (a + p - b) % p), 2.0);
                let mut negated = y.clone();
                negated.negate();
                bench.check("negation", &negated, &with(&|_, b| (p - b) % p), 1.5);
                let mut more = x.clone();
                more.add_plain(&n);
                bench.check("plain sum", &more, &with(&|a, b| (a + b) % p), 1.5);
                let factor = Factor::new(parameters.ring(), &n);
                let mut product = x.clone();
                product.multiply_plain(&factor);
                bench.check("plain product", &product, &testing::product(&m, &n), 2.0);
                let mut scan = y.clone();
                scan.multiply_plain_add(&x, &factor);
                let want = testing::each(&testing::product(&m, &n), &n, |a, b| (a + b) % p);
                bench.check("plain product added", &scan, &want, 2.0);
                let mut turned = x.clone();
                turned.turn(-3);
                turned.turn(4);
                bench.check("turn", &turned, &testing::turned(&m, 1), 1.5);
            }
            let m = testing::message(&parameters, 3);
            bench.check("trivial", &Ciphertext::trivial(parameters.ring(), &m), &m, 1.5);
        }
    }

    #[test]
    #[should_panic(expected = "a ciphertext of this ring")]
    fn rings_do_not_mix() {
        let (a, b) = (testing::toy(), testing::n2048());
        let (mut x, y) = (Bench::new(&a, 1), Bench::new(&b, 1));
        let mut sum = x.encrypt(&testing::message(&a, 1));
        sum.add(&{ y }.encrypt(&testing::message(&b, 1)));
    }

    #[test]
    fn debug_says_the_budget() {
        let parameters = testing::n2048();
        let x = Bench::new(&parameters, 1).encrypt(&testing::message(&parameters, 1));
        assert_eq!(format!("{x:?}"), "Ciphertext(degree 2048, 48 bits, 34.2 bits of budget left)");
    }
}
