//! The ring: polynomials modulo X^d + 1 and a product of primes.

use std::sync::Arc;

use blindcore_math::ntt::{Automorphism, Ntt, NttError, primes};
use blindcore_math::{Elementwise, MaskSeed, Prime, Recombination};
use zeroize::Zeroizing;

use crate::poly::{Coefficients, Form, Poly, Values};
use crate::profile::{Kind, noted};
use crate::rns::{Fractions, Garner, inverse};

/// Why there is no ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// A prime has no transform of this degree.
    #[error(transparent)]
    Ntt(#[from] NttError),
    /// There are no primes, or two are the same.
    #[error("a ring needs at least one prime, each once")]
    Primes,
    /// There are not enough primes of a size.
    #[error(
        "{found} primes of {bits} bits have a transform of degree {degree}, and {wanted} are wanted; choose more bits"
    )]
    TooFew {
        /// Primes wanted.
        wanted: usize,
        /// Primes found.
        found: usize,
        /// Their size.
        bits: u32,
        /// d.
        degree: usize,
    },
    /// The modulus is too large.
    #[error("a modulus of {0} bits is over the limit of 126; choose fewer or smaller primes")]
    TooLarge(u32),
}

/// The arithmetic modulo one prime.
struct Channel {
    ntt: Ntt,
    modulo: Elementwise,
}

/// Polynomials modulo X^d + 1 and Q, a product of different primes for which the transform exists; Q is below 2^126, so that a
/// coefficient is an integer of 128 bits.
///
/// A ring is made once and shared ([`Arc`]). Its functions take a time that depends on the degree and the primes alone,
/// except where they say otherwise.
///
/// ```
/// use blindcore_rlwe::Ring;
///
/// let ring = Ring::of_bits(2048, &[50, 50])?;
/// assert_eq!((ring.degree(), ring.bits()), (2048, 100));
/// let x = ring.forward(ring.small(&[[0, 1].as_slice(), &[0; 2046]].concat())); // X
/// let mut square = x.clone();
/// ring.multiply(&mut square, &x);
/// assert_eq!(ring.inverse(square).words()[..4], [0, 0, 1, 0]);
/// # Ok::<(), blindcore_rlwe::RingError>(())
/// ```
pub struct Ring {
    degree: usize,
    channels: Vec<Arc<Channel>>,
    primes: Vec<Prime>,
    pub(crate) garner: Garner,
    pub(crate) fractions: Fractions,
    recombination: Recombination,
}

impl PartialEq for Ring {
    fn eq(&self, other: &Self) -> bool {
        self.degree == other.degree && self.primes == other.primes
    }
}

impl Eq for Ring {}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("degree", &self.degree).field("primes", &self.primes).finish()
    }
}

impl Ring {
    /// The ring of a degree and these primes.
    ///
    /// # Errors
    /// The degree is not a power of two from 128 to 32768; there are no primes, or two are the same; one has no root of
    /// X^d + 1; or their product is 2^126 or more.
    pub fn new(degree: usize, primes: &[Prime]) -> Result<Self, RingError> {
        let channel = |q: &Prime| -> Result<_, RingError> {
            Ok(Arc::new(Channel { ntt: Ntt::new(*q, degree)?, modulo: Elementwise::new(*q) }))
        };
        if primes.is_empty() || primes.iter().enumerate().any(|(i, q)| primes[..i].contains(q)) {
            return Err(RingError::Primes);
        }
        Self::of(degree, primes.iter().map(channel).collect::<Result<_, _>>()?)
    }

    /// The ring of a degree and the largest primes of these sizes.
    ///
    /// # Errors
    /// As [`Self::new`]; or there are too few primes of a size.
    pub fn of_bits(degree: usize, bits: &[u32]) -> Result<Self, RingError> {
        Self::new(degree, &distinct_primes(degree, bits, &[])?)
    }

    fn of(degree: usize, channels: Vec<Arc<Channel>>) -> Result<Self, RingError> {
        let primes: Vec<Prime> = channels.iter().map(|channel| channel.ntt.prime()).collect();
        let bits = primes.iter().map(|q| q.value().ilog2() + 1).sum();
        let garner = Garner::new(&primes).ok_or(RingError::TooLarge(bits))?;
        let (fractions, recombination) = (Fractions::new(&primes), Recombination::new(&primes));
        Ok(Self { degree, channels, fractions, recombination, garner, primes })
    }

    /// The ring without its last prime, `None` where it is the only one.
    pub(crate) fn without_last(&self) -> Option<Self> {
        let (_, rest) = self.channels.split_last()?;
        if rest.is_empty() { None } else { Self::of(self.degree, rest.to_vec()).ok() }
    }

    /// d.
    #[must_use]
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// The primes, in order.
    #[must_use]
    pub fn primes(&self) -> &[Prime] {
        &self.primes
    }

    /// Q.
    #[must_use]
    pub fn modulus(&self) -> u128 {
        self.garner.product
    }

    /// The bits of Q: it is below 2 to their power.
    #[must_use]
    pub fn bits(&self) -> u32 {
        u128::BITS - self.modulus().leading_zeros()
    }

    /// Words of a polynomial.
    #[must_use]
    pub fn words(&self) -> usize {
        self.degree * self.primes.len()
    }

    /// The polynomial 0.
    #[must_use]
    pub fn zero<F: Form>(&self) -> Poly<F> {
        Poly::from_words(vec![0; self.words()])
    }

    /// A polynomial from its residues, prime after prime; `None` where their number is wrong or one is not below its prime.
    #[must_use]
    pub fn polynomial<F: Form>(&self, words: Vec<u64>) -> Option<Poly<F>> {
        let residues = || words.chunks_exact(self.degree).zip(&self.primes);
        let fits = words.len() == self.words() && residues().all(|(w, q)| w.iter().all(|w| *w < q.value()));
        fits.then(|| Poly::from_words(words))
    }

    /// The polynomial with these small coefficients.
    ///
    /// # Panics
    /// There are not d of them.
    #[must_use]
    pub fn small(&self, coefficients: &[i8]) -> Poly<Coefficients> {
        self.signed(coefficients.iter().map(|x| i64::from(*x)))
    }

    /// The polynomial with these coefficients, whose magnitudes are below every prime.
    ///
    /// # Panics
    /// There are not d of them.
    #[must_use]
    pub(crate) fn signed(
        &self,
        coefficients: impl ExactSizeIterator<Item = i64> + Clone,
    ) -> Poly<Coefficients> {
        let mut words = Vec::with_capacity(self.words());
        self.extend_signed(&mut words, coefficients);
        Poly::from_words(words)
    }

    /// Its words after others.
    pub(crate) fn extend_signed(
        &self,
        words: &mut Vec<u64>,
        coefficients: impl ExactSizeIterator<Item = i64> + Clone,
    ) {
        assert_eq!(coefficients.len(), self.degree, "as many coefficients as the degree");
        for q in &self.primes {
            let q = q.value();
            words.extend(coefficients.clone().map(|x| (x as u64).wrapping_add(q & (x >> 63) as u64)));
        }
    }

    /// Uniform values that anyone with the seed can repeat: public polynomials `number` times the primes, and the following ones,
    /// of [`MaskSeed`].
    #[must_use]
    pub fn uniform(&self, seed: MaskSeed, number: u64) -> Poly<Values> {
        let mut out = self.zero();
        let first = number * self.primes.len() as u64;
        for ((words, prime), at) in
            out.words_mut().chunks_exact_mut(self.degree).zip(&self.primes).zip(first..)
        {
            seed.polynomial(at, *prime, words);
        }
        out
    }

    /// X^`power`, for a power from -d to d.
    pub(crate) fn monomial(&self, power: isize) -> Poly<Values> {
        let d = self.degree as isize;
        let power = power.rem_euclid(2 * d);
        let mut coefficients = vec![0i8; self.degree];
        coefficients[(power % d) as usize] = if power < d { 1 } else { -1 };
        self.forward(self.small(&coefficients))
    }

    /// Coefficients to values.
    #[must_use]
    pub fn forward(&self, coefficients: Poly<Coefficients>) -> Poly<Values> {
        let mut words = coefficients.into_words();
        noted(Kind::Transform, 1, || self.each(&mut words, |channel, words| channel.ntt.forward(words)));
        Poly::from_words(words)
    }

    /// The same of polynomials modulo the prime at a place alone.
    pub(crate) fn forward_modulo(&self, place: usize, words: &mut [u64]) {
        // A polynomial's transform is one, however many primes there are.
        let counted = if place == 0 { words.len() / self.degree } else { 0 };
        let all =
            || words.chunks_exact_mut(self.degree).for_each(|words| self.channels[place].ntt.forward(words));
        noted(Kind::Transform, counted, all);
    }

    /// Values to coefficients.
    #[must_use]
    pub fn inverse(&self, values: Poly<Values>) -> Poly<Coefficients> {
        let mut words = values.into_words();
        noted(Kind::Transform, 1, || self.each(&mut words, |channel, words| channel.ntt.inverse(words)));
        Poly::from_words(words)
    }

    /// `a` += `b`.
    pub fn add<F: Form>(&self, a: &mut Poly<F>, b: &Poly<F>) {
        let each = |channel: &Channel, a: &mut [u64], b: &[u64]| channel.modulo.add(a, b);
        noted(Kind::Sum, 1, || self.each_with(a.words_mut(), b.words(), each));
    }

    /// `a` -= `b`.
    pub fn subtract<F: Form>(&self, a: &mut Poly<F>, b: &Poly<F>) {
        let each = |channel: &Channel, a: &mut [u64], b: &[u64]| channel.modulo.subtract(a, b);
        noted(Kind::Sum, 1, || self.each_with(a.words_mut(), b.words(), each));
    }

    /// `a` = -`a`.
    pub fn negate<F: Form>(&self, a: &mut Poly<F>) {
        self.each(a.words_mut(), |channel, words| {
            let q = channel.modulo.prime().value();
            for word in words {
                let negated = q - *word;
                *word = negated.min(negated.wrapping_sub(q));
            }
        });
    }

    /// `a` *= `b`.
    pub fn multiply(&self, a: &mut Poly<Values>, b: &Poly<Values>) {
        let each = |channel: &Channel, a: &mut [u64], b: &[u64]| channel.modulo.multiply(a, b);
        noted(Kind::Product, 1, || self.each_with(a.words_mut(), b.words(), each));
    }

    /// `sum` += `a` `b`.
    ///
    /// # Panics
    /// As all of these functions: a polynomial has another length than the ring's.
    pub fn multiply_add(&self, sum: &mut Poly<Values>, a: &Poly<Values>, b: &Poly<Values>) {
        let d = self.degree;
        assert!(
            a.words().len() == self.words() && b.words().len() == self.words(),
            "polynomials of this ring"
        );
        let factors = a.words().chunks_exact(d).zip(b.words().chunks_exact(d));
        assert_eq!(sum.words().len(), self.words(), "a polynomial of this ring");
        noted(Kind::Product, 1, || {
            let sums = sum.words_mut().chunks_exact_mut(d);
            for ((sum, (a, b)), channel) in sums.zip(factors).zip(&self.channels) {
                channel.modulo.multiply_add(sum, a, b);
            }
        });
    }

    /// `sum` += the sum of `a` `b` over all pairs `[a, b]`: less work than one after another.
    pub fn multiply_sum(&self, sum: &mut Poly<Values>, pairs: &[[&Poly<Values>; 2]]) {
        assert!(
            pairs.iter().flatten().all(|side| side.words().len() == self.words()),
            "polynomials of this ring"
        );
        for place in 0..self.channels.len() {
            let at = place * self.degree..(place + 1) * self.degree;
            let pairs: Vec<[&[u64]; 2]> =
                pairs.iter().map(|pair| pair.map(|side| &side.words()[at.clone()])).collect();
            self.multiply_sum_modulo(place, sum, &pairs);
        }
    }

    /// The same modulo the prime at a place alone, of residues modulo that one.
    pub(crate) fn multiply_sum_modulo(&self, place: usize, sum: &mut Poly<Values>, pairs: &[[&[u64]; 2]]) {
        assert_eq!(sum.words().len(), self.words(), "a polynomial of this ring");
        let sum = &mut sum.words_mut()[place * self.degree..][..self.degree];
        // A product of polynomials is one, however many primes there are.
        let counted = if place == 0 { pairs.len() } else { 0 };
        noted(Kind::Product, counted, || self.channels[place].modulo.multiply_sum(sum, pairs));
    }

    /// (`low`, `high`) become (`low` + `high`, (`low` - `high`) `factor`).
    pub(crate) fn butterflies(&self, low: &mut Poly<Values>, high: &mut Poly<Values>, factor: &Poly<Values>) {
        let d = self.degree;
        let all = [low.words().len(), high.words().len(), factor.words().len()];
        assert!(all == [self.words(); 3], "polynomials of this ring");
        let pairs = low.words_mut().chunks_exact_mut(d).zip(high.words_mut().chunks_exact_mut(d));
        for ((channel, (low, high)), factor) in
            self.channels.iter().zip(pairs).zip(factor.words().chunks_exact(d))
        {
            channel.modulo.butterflies(low, high, factor);
        }
    }

    /// `a` times an integer, which is public.
    pub fn scale<F: Form>(&self, a: &mut Poly<F>, factor: u128) {
        self.each(a.words_mut(), |channel, words| {
            channel.modulo.scale(words, channel.modulo.prime().reduce(factor));
        });
    }

    /// `a`(X^k).
    #[must_use]
    pub fn automorphism(&self, k: &Automorphism, a: &Poly<Values>) -> Poly<Values> {
        let mut out = self.zero();
        for (out, a) in out.words_mut().chunks_exact_mut(self.degree).zip(a.words().chunks_exact(self.degree))
        {
            k.values(a, out);
        }
        out
    }

    /// 2^-`halvings` modulo Q.
    pub(crate) fn inverse_power_of_two(&self, halvings: u32) -> u128 {
        let q = self.modulus();
        (0..halvings).fold(1, |x, _| if x & 1 == 0 { x >> 1 } else { (x + q) >> 1 })
    }

    /// The coefficients as integers from -Q/2 to Q/2, one after another.
    pub(crate) fn centred_integers(&self, a: &Poly<Coefficients>) -> impl Iterator<Item = i128> {
        let (words, degree, q) = (a.words(), self.degree, self.modulus() as i128);
        (0..degree).map(move |at| {
            let x = self.garner.integer(|i| words[i * degree + at]) as i128;
            x - (q & ((q / 2 - x) >> 127))
        })
    }

    /// The coefficients as integers from -Q/2 to Q/2, wiped when they are dropped.
    #[must_use]
    pub fn centred(&self, a: &Poly<Coefficients>) -> Zeroizing<Vec<i128>> {
        Zeroizing::new(self.centred_integers(a).collect())
    }

    /// The coefficients as integers of 128 bits, centred, plus one that is public, modulo 2^128: their low and their high halves. Where a
    /// coefficient lies within 2^-48 Q of Q / 2 it may be taken for one near -Q / 2, or the other way round.
    pub(crate) fn limbs(&self, a: &Poly<Coefficients>, plus: u128) -> [Vec<u64>; 2] {
        let mut shares = a.words().to_vec();
        for (i, (shares, channel)) in shares.chunks_exact_mut(self.degree).zip(&self.channels).enumerate() {
            channel.modulo.scale(shares, self.fractions.inverse(i));
        }
        self.recombination.limbs(&shares, plus)
    }

    /// round(x / q) for the last prime q, in the ring `to` of the others: (x - r) / q with r the centred residue. Only what is subtracted is
    /// transformed. The time depends on the rings alone.
    pub(crate) fn drop_last(&self, to: &Self, values: &Poly<Values>) -> Poly<Values> {
        let degree = self.degree;
        let (words, last) = values.words().split_at(to.words());
        let channel = &self.channels[to.channels.len()];
        let (q, mut rest) = (channel.ntt.prime().value(), last.to_vec());
        channel.ntt.inverse(&mut rest);
        let mut out = words.to_vec();
        for (out, channel) in out.chunks_exact_mut(degree).zip(&to.channels) {
            let prime = channel.ntt.prime();
            let whole = prime.reduce(u128::from(q));
            // Above q / 2 the residue stands for r - q.
            let residue = |r: &u64| {
                let negative = ((q / 2).wrapping_sub(*r) as i64 >> 63) as u64;
                if q / 2 < prime.value() {
                    return r.wrapping_sub(q & negative).wrapping_add(prime.value() & negative);
                }
                let rest = prime.reduce(u128::from(*r)) + prime.value() - (whole & negative);
                rest.min(rest.wrapping_sub(prime.value()))
            };
            let mut rest: Vec<u64> = rest.iter().map(residue).collect();
            channel.ntt.forward(&mut rest);
            channel.modulo.subtract(out, &rest);
            channel.modulo.scale(out, inverse(prime, whole));
        }
        Poly::from_words(out)
    }

    fn each(&self, words: &mut [u64], mut work: impl FnMut(&Channel, &mut [u64])) {
        assert_eq!(words.len(), self.words(), "a polynomial of this ring");
        for (words, channel) in words.chunks_exact_mut(self.degree).zip(&self.channels) {
            work(channel, words);
        }
    }

    fn each_with(&self, a: &mut [u64], b: &[u64], mut work: impl FnMut(&Channel, &mut [u64], &[u64])) {
        assert!(a.len() == self.words() && b.len() == self.words(), "polynomials of this ring");
        let words = a.chunks_exact_mut(self.degree).zip(b.chunks_exact(self.degree));
        for ((a, b), channel) in words.zip(&self.channels) {
            work(channel, a, b);
        }
    }
}

/// The largest primes of these sizes that are different from one another and from `taken`.
pub(crate) fn distinct_primes(degree: usize, bits: &[u32], taken: &[Prime]) -> Result<Vec<Prime>, RingError> {
    let mut out: Vec<Prime> = Vec::with_capacity(bits.len());
    for size in bits {
        let free = primes(*size, degree)?.find(|q| !taken.contains(q) && !out.contains(q));
        let wanted = bits.iter().filter(|bits| *bits == size).count();
        let found = || primes(*size, degree).map_or(0, Iterator::count);
        out.push(free.ok_or_else(|| RingError::TooFew { wanted, found: found(), bits: *size, degree })?);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_signs_come_back() {
        for bits in [&[48][..], &[50, 50], &[30, 40, 50]] {
            let ring = Ring::of_bits(256, bits).unwrap();
            let wanted: Vec<i64> = (0..256).map(|i| (i - 128) * (i & 7) * 1_000).collect();
            let poly = ring.signed(wanted.iter().copied());
            let back = ring.inverse(ring.forward(poly));
            assert!(ring.centred(&back).iter().zip(&wanted).all(|(a, b)| *a == i128::from(*b)));
            let mut negated = back.clone();
            ring.negate(&mut negated);
            ring.add(&mut negated, &back);
            assert!(negated.words().iter().all(|word| *word == 0));
        }
    }

    #[test]
    fn powers_of_two_are_divided_out() {
        let ring = Ring::of_bits(256, &[50, 50]).unwrap();
        let mut poly = ring.signed((0i32..256).map(|i| i64::from(1024 * (i - 100))));
        ring.scale(&mut poly, ring.inverse_power_of_two(10));
        assert!(ring.centred(&poly).iter().enumerate().all(|(i, x)| *x == i as i128 - 100));
    }

    #[test]
    fn monomials_turn_round() {
        let ring = Ring::of_bits(256, &[40]).unwrap();
        let q = ring.modulus() as u64;
        for (power, place, word) in
            [(0, 0, 1), (255, 255, 1), (256, 0, q - 1), (-1, 255, q - 1), (-256, 0, q - 1)]
        {
            let poly = ring.inverse(ring.monomial(power));
            assert!(
                poly.words().iter().enumerate().all(|(i, w)| *w == if i == place { word } else { 0 }),
                "{power}"
            );
        }
    }

    #[test]
    fn what_is_no_ring_is_refused() {
        assert!(matches!(Ring::of_bits(100, &[40]), Err(RingError::Ntt(NttError::Degree(100)))));
        assert!(matches!(Ring::of_bits(256, &[]), Err(RingError::Primes)));
        assert!(matches!(Ring::of_bits(256, &[50, 50, 50]), Err(RingError::TooLarge(150))));
        let q = primes(40, 256).unwrap().next().unwrap();
        assert!(matches!(Ring::new(256, &[q, q]), Err(RingError::Primes)));
        assert!(matches!(
            Ring::of_bits(32768, &[20, 20, 20]),
            Err(RingError::TooFew { bits: 20, wanted: 3, .. })
        ));
    }

    /// Whatever the sizes of the primes, the last of which may be smaller or larger than the others.
    #[test]
    fn a_dropped_prime_divides_and_rounds() {
        for bits in [&[40, 40, 24][..], &[24, 40, 50], &[48, 48], &[50, 30]] {
            let ring = Ring::of_bits(256, bits).unwrap();
            let to = ring.without_last().unwrap();
            let (q, last) = (ring.modulus(), u128::from(ring.primes()[bits.len() - 1].value()));
            let edges = [0, 1, last / 2, last / 2 + 1, last - 1, last, q / 2, q / 2 + 1, q - last / 2, q - 1];
            let integers: Vec<u128> =
                edges.into_iter().chain((1u128..).map(|i| i * (q / 257) + i)).take(256).collect();
            let words =
                ring.primes().iter().flat_map(|prime| integers.iter().map(|x| prime.reduce(*x))).collect();
            let dropped = to.inverse(ring.drop_last(&to, &ring.forward(ring.polynomial(words).unwrap())));
            for (words, prime) in dropped.words().chunks_exact(256).zip(to.primes()) {
                let want = integers.iter().map(|x| prime.reduce((x + last / 2) / last));
                assert!(words.iter().copied().eq(want), "{bits:?}");
            }
        }
    }

    #[test]
    fn limbs_are_the_centred_integers() {
        for bits in [&[48][..], &[50, 50], &[40, 40, 24], &[61, 61]] {
            let ring = Ring::of_bits(256, bits).unwrap();
            let q = ring.modulus();
            let edges = [0, 1, q / 2 - (q >> 45), q / 2 + (q >> 45), q - 1];
            let integers: Vec<u128> =
                edges.into_iter().chain((1u128..).map(|i| i * (q / 257) + i)).take(256).collect();
            let words =
                ring.primes().iter().flat_map(|prime| integers.iter().map(|x| prime.reduce(*x))).collect();
            let polynomial = ring.polynomial(words).unwrap();
            let [low, high] = ring.limbs(&polynomial, 1 << 70);
            let centred = ring.centred(&polynomial);
            for ((low, high), centred) in low.iter().zip(&high).zip(centred.iter()) {
                let sum = u128::from(*high) << 64 | u128::from(*low);
                assert_eq!(sum as i128 - (1 << 70), *centred, "{bits:?}");
            }
        }
    }
}
