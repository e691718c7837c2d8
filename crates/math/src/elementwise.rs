//! Sums and products of vectors of residues, word by word.
//!
//! ```
//! use blindcore_math::{Elementwise, Prime};
//!
//! let modulo = Elementwise::new(Prime::new(17)?);
//! let mut sums = [1, 2, 16];
//! modulo.multiply_add(&mut sums, &[3, 4, 16], &[5, 6, 16]);
//! assert_eq!(sums, [16, 9, 0]);
//! # Ok::<(), blindcore_math::ModulusError>(())
//! ```

use crate::Prime;
use crate::arch;
use crate::features::{Ifma, Level, within};

/// Arithmetic modulo a prime on vectors of its residues, in a time that depends on their length alone.
#[derive(Clone, Copy, Debug)]
pub struct Elementwise {
    prime: Prime,
    fast: Option<arch::Residues>,
}

impl Elementwise {
    /// Modulo `prime`, by the fastest code of this machine.
    #[must_use]
    pub fn new(prime: Prime) -> Self {
        Self::with(prime, within(Level::Avx512, Ifma::new))
    }

    /// As [`Self::new`], by IFMA where its token is given and the prime is odd and below 2^50, else portable.
    #[must_use]
    pub fn with(prime: Prime, ifma: Option<Ifma>) -> Self {
        Self { prime, fast: ifma.and_then(|token| arch::Residues::new(token, prime)) }
    }

    /// q.
    #[must_use]
    pub fn prime(&self) -> Prime {
        self.prime
    }

    /// `a[i]` += `b[i]`.
    ///
    /// # Panics
    /// The lengths differ.
    pub fn add(&self, a: &mut [u64], b: &[u64]) {
        self.check(a, &[b]);
        let done = self.fast.map_or(0, |fast| fast.add(a, b));
        for (a, b) in a.iter_mut().zip(b).skip(done) {
            *a = self.sum(*a, *b);
        }
    }

    /// `a[i]` -= `b[i]`.
    ///
    /// # Panics
    /// The lengths differ.
    pub fn subtract(&self, a: &mut [u64], b: &[u64]) {
        self.check(a, &[b]);
        let done = self.fast.map_or(0, |fast| fast.subtract(a, b));
        for (a, b) in a.iter_mut().zip(b).skip(done) {
            *a = self.less(*a, *b);
        }
    }

    /// `a[i]` += `b[i]`, and `difference[i]` is what `a[i]` was, less `b[i]`.
    ///
    /// # Panics
    /// The lengths differ.
    pub fn sum_and_difference(&self, a: &mut [u64], b: &[u64], difference: &mut [u64]) {
        self.check(a, &[b]);
        assert_eq!(difference.len(), a.len(), "vectors of one length");
        let done = self.fast.map_or(0, |fast| fast.sum_and_difference(a, b, difference));
        let (a, b, difference) = (&mut a[done..], &b[done..], &mut difference[done..]);
        for ((a, b), difference) in a.iter_mut().zip(b).zip(difference) {
            (*a, *difference) = (self.sum(*a, *b), self.less(*a, *b));
        }
    }

    /// `a[i]` *= `b[i]`.
    ///
    /// # Panics
    /// The lengths differ.
    pub fn multiply(&self, a: &mut [u64], b: &[u64]) {
        self.check(a, &[b]);
        let done = self.fast.map_or(0, |fast| fast.multiply(None, a, b));
        for (a, b) in a.iter_mut().zip(b).skip(done) {
            *a = self.prime.reduce(u128::from(*a) * u128::from(*b));
        }
    }

    /// `a[i]` *= `factor`.
    ///
    /// # Panics
    /// The factor is not a residue.
    pub fn scale(&self, a: &mut [u64], factor: u64) {
        assert!(factor < self.prime.value(), "a residue");
        let done = self.fast.map_or(0, |fast| fast.scale(a, factor));
        for a in &mut a[done..] {
            *a = self.prime.reduce(u128::from(*a) * u128::from(factor));
        }
    }

    /// `sums[i]` += `a[i]` `b[i]`.
    ///
    /// # Panics
    /// The lengths differ.
    pub fn multiply_add(&self, sums: &mut [u64], a: &[u64], b: &[u64]) {
        self.check(sums, &[a, b]);
        let done = self.fast.map_or(0, |fast| fast.multiply(Some(a), sums, b));
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b).skip(done) {
            *sum = self.prime.reduce(u128::from(*a) * u128::from(*b) + u128::from(*sum));
        }
    }

    /// `sums[i]` += the sum of `a[i]` `b[i]` over all pairs `[a, b]`: less work than one after another.
    ///
    /// # Panics
    /// The lengths differ.
    pub fn multiply_sum(&self, sums: &mut [u64], pairs: &[[&[u64]; 2]]) {
        pairs.iter().for_each(|pair| self.check(sums, pair));
        let done = self.fast.map_or(0, |fast| fast.multiply_sum(sums, pairs));
        for (i, sum) in sums.iter_mut().enumerate().skip(done) {
            for [a, b] in pairs {
                *sum = self.prime.reduce(u128::from(a[i]) * u128::from(b[i]) + u128::from(*sum));
            }
        }
    }

    /// (`low[i]`, `high[i]`) become (`low[i]` + `high[i]`, (`low[i]` - `high[i]`) `factors[i]`): Gentleman and Sande's
    /// butterfly, as a transform across polynomials takes it.
    ///
    /// # Panics
    /// The lengths differ.
    pub fn butterflies(&self, low: &mut [u64], high: &mut [u64], factors: &[u64]) {
        self.check(low, &[high, factors]);
        let done = self.fast.map_or(0, |fast| fast.butterflies(low, high, factors));
        for ((low, high), factor) in low.iter_mut().zip(high).zip(factors).skip(done) {
            let difference = self.less(*low, *high);
            *low = self.sum(*low, *high);
            *high = self.prime.reduce(u128::from(difference) * u128::from(*factor));
        }
    }

    fn sum(&self, a: u64, b: u64) -> u64 {
        let sum = a + b;
        sum.min(sum.wrapping_sub(self.prime.value()))
    }

    fn less(&self, a: u64, b: u64) -> u64 {
        let difference = a.wrapping_sub(b);
        difference.min(difference.wrapping_add(self.prime.value()))
    }

    fn check(&self, out: &[u64], others: &[&[u64]]) {
        assert!(others.iter().all(|other| other.len() == out.len()), "vectors of one length");
        debug_assert!(
            self.prime.are_residues(out) && others.iter().all(|other| self.prime.are_residues(other)),
            "a word is not a residue"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIMES: [u64; 9] = [
        2,
        3,
        65537,
        (1 << 31) - 1,
        (1 << 47) - 115,
        (1 << 49) - 81,
        (1 << 50) - 27,
        (1 << 51) - 129,
        (1 << 62) - 57,
    ];

    #[test]
    fn words_are_those_of_the_definition() {
        for prime in PRIMES.map(|q| Prime::new(q).unwrap()) {
            let q = u128::from(prime.value());
            let edges = [0, 1, 2, q / 2, q / 2 + 1, q - 2, q - 1];
            let mut x = 1u64;
            let mut next = || {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                prime.reduce(u128::from(x ^ x >> 31) << 64 | u128::from(x))
            };
            // Every pair of edges, random words, and a length that is no multiple of a vector.
            let pairs =
                edges.iter().flat_map(|a| edges.iter().map(move |b| ((a % q) as u64, (b % q) as u64)));
            let mut words: Vec<(u64, u64, u64)> = pairs.map(|(a, b)| (a, b, (q - 1) as u64)).collect();
            words.extend((0..5_000).map(|_| (next(), next(), next())));
            let a: Vec<u64> = words.iter().map(|w| w.0).collect();
            let b: Vec<u64> = words.iter().map(|w| w.1).collect();
            let c: Vec<u64> = words.iter().map(|w| w.2).collect();
            for modulo in [Elementwise::new(prime), Elementwise::with(prime, None)] {
                type Work<'a> = &'a dyn Fn(&mut [u64]);
                let is = |what: &str, work: Work<'_>, want: &dyn Fn(u128, u128, u128) -> u128| {
                    let mut out = a.clone();
                    work(&mut out);
                    for (i, out) in out.into_iter().enumerate() {
                        let [a, b, c] = [a[i], b[i], c[i]].map(u128::from);
                        assert_eq!(u128::from(out), want(a, b, c) % q, "{what} of {a}, {b}, {c} modulo {q}");
                    }
                };
                is("sum", &|a| modulo.add(a, &b), &|a, b, _| a + b);
                is("difference", &|a| modulo.subtract(a, &b), &|a, b, _| a + q - b);
                let mut difference = vec![0; a.len()];
                modulo.sum_and_difference(&mut a.clone(), &b, &mut difference);
                is(
                    "sum beside a difference",
                    &|a| modulo.sum_and_difference(a, &b, &mut vec![0; b.len()]),
                    &|a, b, _| a + b,
                );
                is("difference beside a sum", &|a| a.copy_from_slice(&difference), &|a, b, _| a + q - b);
                is("product", &|a| modulo.multiply(a, &b), &|a, b, _| a * b);
                is("sum of a product", &|a| modulo.multiply_add(a, &b, &c), &|a, b, c| a + b * c);
                for factor in edges.iter().map(|x| x % q).chain([u128::from(c[c.len() - 1])]) {
                    is("multiple", &|a| modulo.scale(a, factor as u64), &|a, _, _| a * factor);
                }
                let many = |pairs: usize| -> Vec<[&[u64]; 2]> {
                    (0..pairs).map(|i| if i % 2 == 0 { [&b[..], &c[..]] } else { [&c[..], &c[..]] }).collect()
                };
                for pairs in [0, 1, 2, 14, 15, 16, 41] {
                    let work = |a: &mut [u64]| modulo.multiply_sum(a, &many(pairs));
                    let (even, odd) = (pairs.div_ceil(2) as u128, (pairs / 2) as u128);
                    is("sum of products", &work, &|a, b, c| a + even * (b * c % q) + odd * (c * c % q));
                }
                is("sum of a butterfly", &|a| modulo.butterflies(a, &mut b.clone(), &c), &|a, b, _| a + b);
                let mut high = b.clone();
                modulo.butterflies(&mut a.clone(), &mut high, &c);
                for (i, high) in high.into_iter().enumerate() {
                    let [a, b, c] = [a[i], b[i], c[i]].map(u128::from);
                    let want = prime.reduce((a + q - b) % q * c);
                    assert_eq!(high, want, "butterfly of {a}, {b} by {c} modulo {q}");
                }
            }
        }
    }
}
