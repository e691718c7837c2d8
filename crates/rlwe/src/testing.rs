//! What the tests of this crate share: parameter sets, messages, and a bench that decrypts and compares noise with its bound.

use std::sync::Arc;

use blindcore_math::SecretRng;

use crate::encoding::Plaintext;
use crate::gadget::Gadget;
use crate::poly::Coefficients;
use crate::security::Insecure;
use crate::{Ciphertext, Noise, Pair, Parameters, SecretKey, sets};

pub(crate) fn toy() -> Arc<Parameters> {
    sets::TOY.check_insecure(Insecure::because("tests have to be fast")).unwrap()
}

pub(crate) fn n2048() -> Arc<Parameters> {
    sets::N2048.check().unwrap()
}

/// All shipped sets, and the toy; but for messages of 30 bits, whose set has no room for what tests of all operations do with plaintexts: it
/// is measured by the lookups that it is for.
pub(crate) fn all() -> Vec<Arc<Parameters>> {
    sets::ALL
        .iter()
        .filter(|set| set.plaintext <= 65_537)
        .map(|set| set.check().unwrap())
        .chain([toy()])
        .collect()
}

/// Numbers that are the same each time.
pub(crate) fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(move || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        x >> 24
    })
}

/// A plaintext of random coefficients.
pub(crate) fn message(parameters: &Parameters, seed: u64) -> Plaintext {
    let p = parameters.plaintext();
    Plaintext::of(numbers(seed).take(parameters.degree()).map(|x| x % p).collect(), p)
}

/// Plaintexts of the largest coefficients of either sign.
pub(crate) fn edges(parameters: &Parameters) -> (Plaintext, Plaintext) {
    let p = parameters.plaintext();
    let all = |c| Plaintext::of(vec![c; parameters.degree()], p);
    (all(p / 2), all(p / 2 + 1))
}

/// Coefficient by coefficient.
pub(crate) fn each(a: &Plaintext, b: &Plaintext, work: impl Fn(u64, u64) -> u64) -> Plaintext {
    let out = a.coefficients().iter().zip(b.coefficients()).map(|(a, b)| work(*a, *b)).collect();
    Plaintext::of(out, a.modulus())
}

/// The negacyclic product by the definition.
pub(crate) fn product(a: &Plaintext, b: &Plaintext) -> Plaintext {
    let (p, d) = (i128::from(a.modulus()), a.coefficients().len());
    let mut sums = vec![0i128; 2 * d];
    for (i, a) in a.coefficients().iter().enumerate().filter(|(_, a)| **a != 0) {
        for (sum, b) in sums[i..].iter_mut().zip(b.coefficients()) {
            *sum += i128::from(a * b);
        }
    }
    let out = (0..d).map(|i| (sums[i] - sums[i + d]).rem_euclid(p) as u64).collect();
    Plaintext::of(out, a.modulus())
}

/// m(X^k).
pub(crate) fn automorphism(m: &Plaintext, exponent: usize) -> Plaintext {
    let (p, d) = (m.modulus(), m.coefficients().len());
    let mut out = vec![0; d];
    for (i, c) in m.coefficients().iter().enumerate() {
        let to = i * exponent % (2 * d);
        out[to % d] = if to < d { *c } else { (p - c) % p };
    }
    Plaintext::of(out, p)
}

/// X^power m.
pub(crate) fn turned(m: &Plaintext, power: usize) -> Plaintext {
    let mut factor = vec![0; m.coefficients().len()];
    factor[power] = 1;
    product(&Plaintext::of(factor, m.modulus()), m)
}

/// A secret and a stream that are the same each time.
pub(crate) struct Bench {
    pub(crate) parameters: Arc<Parameters>,
    pub(crate) secret: SecretKey,
    pub(crate) rng: SecretRng,
}

impl Bench {
    pub(crate) fn new(parameters: &Arc<Parameters>, seed: u8) -> Self {
        let mut rng = SecretRng::from_key(&[seed; 32]);
        Self { parameters: parameters.clone(), secret: SecretKey::generate(parameters, &mut rng), rng }
    }

    pub(crate) fn encrypt(&mut self, message: &Plaintext) -> Ciphertext {
        self.secret.encrypt(message, &mut self.rng)
    }

    /// A ciphertext without an error whose mask has the largest digits that there are.
    pub(crate) fn extreme(&self, gadget: &Gadget, message: &Plaintext) -> Ciphertext {
        let ring = self.parameters.ring();
        let half = 1 << (gadget.bits() - 1);
        let sum = (0..gadget.digits() - 1).fold(0, |sum, i| sum + gadget.weight(i) * half);
        // One digit is largest near Q / 2, and loses most halfway between two multiples of 2^w.
        let unit = 1u128 << gadget.dropped();
        let single = ((ring.modulus() / 2 / unit - 1) * unit) + unit / 2;
        let low = if gadget.digits() == 1 { single } else { ring.modulus() - sum };
        let words = ring.primes().iter().flat_map(|q| vec![q.reduce(low); ring.degree()]).collect();
        let mask = ring.forward(ring.polynomial::<Coefficients>(words).unwrap());
        let mut body = message.scaled_up(ring).take();
        ring.multiply_add(&mut body, &mask, &self.secret.values(ring));
        Ciphertext::from_pair(&self.parameters, ring, Pair { mask, body }, Noise::at_most(0.5))
    }

    /// The ciphertext decrypts to the message, and its noise lies below its bound, by no more than `slack` bits beyond the width of
    /// the bound itself (some 3 bits, from a deviation's largest of d to 2^-40).
    pub(crate) fn check(&self, what: &str, ciphertext: &Ciphertext, message: &Plaintext, slack: f64) {
        let name = self.parameters.name();
        let out = self.secret.decrypt(ciphertext);
        assert!(out.coefficients() == message.coefficients(), "{name}, {what}: another plaintext");
        let (off, bound) =
            (self.secret.measure(ciphertext, message), ciphertext.noise().bound(self.parameters.degree()));
        // Shown with the tests' output, or where one fails.
        eprintln!(
            "{name:12} {what:24} 2^{:5.2} of 2^{:5.2}: {:.2} bits below",
            off.log2(),
            bound.log2(),
            (bound / off).log2()
        );
        // Measured again with rounding of the message alone: half.
        assert!(off <= bound + 0.5, "{name}, {what}: noise 2^{:.2}, bound 2^{:.2}", off.log2(), bound.log2());
        assert!(
            bound <= (off + 1.0) * slack.exp2() * 4.0,
            "{name}, {what}: a bound of 2^{:.2} for 2^{:.2}",
            bound.log2(),
            off.log2()
        );
    }
}
