//! Expansion: from one ciphertext of n coefficients to n ciphertexts of a constant each.
//!
//! ```text
//!   level j:  c  ->  c + c(X^k),   X^-(2^j) (c - c(X^k))        k = d / 2^j + 1
//! ```
//!
//! After h levels leaf i holds the coefficients at i, i + 2^h, i + 2 * 2^h, ... 2^h times, at multiples of 2^h; the power of two is
//! divided out modulo Q first. Branches that lead to no leaf are left out. Source: Angel, Chen, Laine and Setty 2018 (SealPIR, Figure
//! 3); pruned as in OnionPIRv2.

use crate::ciphertext::{Ciphertext, Pair};
use crate::galois::{GaloisKey, GaloisKeys, MissingKey, tree_exponents};
use crate::noise::Noise;
use crate::poly::{Poly, Values};

impl GaloisKeys {
    /// Levels of an expansion to `count` leaves.
    #[must_use]
    pub fn levels(count: usize) -> u32 {
        count.next_power_of_two().ilog2()
    }

    /// Expands: leaf i of `count` has coefficient i of the plaintext as its constant one; the plaintext's coefficients from
    /// 2^[`Self::levels`] on are 0, or lie at the multiples of that number.
    ///
    /// Noise: of the ciphertext as it was; each level doubles what switching added before it, so that few bits a digit at the
    /// first levels pay. Leaves share errors: a sum of them counts by deviations, as [`Noise::plus`] has it. Needs keys for the
    /// first of [`tree_exponents`], one a level, each with its own gadget.
    ///
    /// # Errors
    /// A key is missing, or `count` is not from 1 to d.
    ///
    /// # Panics
    /// The ciphertext is of another ring.
    pub fn expand(&self, ciphertext: &Ciphertext, count: usize) -> Result<Vec<Ciphertext>, MissingKey> {
        self.expand_by(ciphertext, Self::levels(count), count)
    }

    /// The same by a tree of more levels than the leaves take: leaf i has coefficients i, i + 2^`levels`, i + 2 * 2^`levels`, ... at
    /// multiples of 2^`levels`.
    ///
    /// # Errors
    /// A key is missing, or `count` is not from 1 to 2^`levels`, which is d at most.
    ///
    /// # Panics
    /// The ciphertext is of another ring.
    pub fn expand_by(
        &self,
        ciphertext: &Ciphertext,
        levels: u32,
        count: usize,
    ) -> Result<Vec<Ciphertext>, MissingKey> {
        let limit = 1usize.checked_shl(levels).unwrap_or(usize::MAX).min(self.ring.degree());
        if !(1..=limit).contains(&count) {
            return Err(MissingKey::Count { count, limit });
        }
        let added = self.expansion_noise(limit)?;
        let leaf = |pair| {
            let noise = ciphertext.noise.plus(added);
            Ciphertext::made("expand", &self.ring, ciphertext.plaintext, pair, noise)
        };
        Ok(self.expand_pairs(ciphertext, limit.ilog2(), count)?.into_iter().map(leaf).collect())
    }

    /// What an expansion to `count` leaves adds to the noise.
    ///
    /// # Errors
    /// A key is missing, or `count` is not from 1 to d.
    pub fn expansion_noise(&self, count: usize) -> Result<Noise, MissingKey> {
        let degree = self.ring.degree();
        if !(1..=degree).contains(&count) {
            return Err(MissingKey::Count { count, limit: degree });
        }
        tree_exponents(degree)
            .take(Self::levels(count) as usize)
            .try_fold(Noise::NONE, |added, k| Ok(added.times(2.0).plus(self.get(k)?.key.noise)))
    }

    fn expand_pairs(
        &self,
        ciphertext: &Ciphertext,
        levels: u32,
        count: usize,
    ) -> Result<Vec<Pair>, MissingKey> {
        ciphertext.check(&self.ring);
        let mut root = ciphertext.clone();
        root.prescale(self.ring.inverse_power_of_two(levels));
        // Node r of a level leads to the leaves that are r modulo its width.
        let mut nodes = vec![root];
        for j in 0..levels {
            let (level, width) = (self.level(j)?, nodes.len());
            let mut odd = Vec::new();
            for (r, node) in nodes.iter_mut().enumerate() {
                let (even, other) = level.split(node, r + width < count);
                *node = even;
                odd.extend(other);
            }
            nodes.extend(odd);
        }
        Ok(nodes.into_iter().map(|node| node.pair).collect())
    }

    /// A level of the tree, from 0 at the root on, for those who share its nodes out to threads. They divide the root by two for each
    /// level themselves, and know the noise.
    ///
    /// # Errors
    /// There is no key for it.
    ///
    /// # Panics
    /// A tree has not so many levels.
    pub fn level(&self, level: u32) -> Result<Level<'_>, MissingKey> {
        let exponent = tree_exponents(self.ring.degree()).nth(level as usize).expect("a level of a tree");
        Ok(Level { key: self.get(exponent)?, back: self.ring.monomial(-(1 << level)) })
    }
}

/// What splits the nodes of a level: [`GaloisKeys::level`].
pub struct Level<'a> {
    key: &'a GaloisKey,
    /// X^-(2^j).
    back: Poly<Values>,
}

impl Level<'_> {
    /// The two nodes below one, or where `both` is not so the first alone: c + c(X^k), and X^-(2^j) (c - c(X^k)).
    ///
    /// # Panics
    /// The ciphertext is of another ring than the keys.
    #[must_use]
    pub fn split(&self, node: &Ciphertext, both: bool) -> (Ciphertext, Option<Ciphertext>) {
        let (ring, mut turned) = (&node.ring, self.key.apply(node));
        let odd = both.then(|| {
            let mut odd = node.clone();
            odd.pair.subtract(ring, &turned.pair);
            odd.pair.multiply(ring, &self.back);
            odd
        });
        turned.pair.add(ring, &node.pair);
        (turned, odd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Bench};
    use crate::{Gadget, Plaintext, RelinearisationKey, Rgsw};

    fn keys(bench: &mut Bench, count: usize) -> GaloisKeys {
        let ring = bench.parameters.ring().clone();
        let levels = GaloisKeys::levels(count) as usize;
        // Fine digits at the root.
        let gadget = |j: usize| Gadget::exact(&ring, if j < 2 { 4 } else { 8 }).unwrap();
        let exponents: Vec<_> =
            tree_exponents(ring.degree()).take(levels).enumerate().map(|(j, k)| (k, gadget(j))).collect();
        GaloisKeys::new(&bench.secret, &ring, exponents, &mut bench.rng).unwrap()
    }

    #[test]
    fn leaves_are_the_coefficients() {
        for parameters in testing::all() {
            for count in [1, 2, 5, 16] {
                let mut bench = Bench::new(&parameters, 61);
                let keys = keys(&mut bench, count);
                let p = parameters.plaintext();
                let numbers: Vec<u64> = testing::numbers(3).take(count).map(|x| x % p).collect();
                let x = bench.encrypt(&Plaintext::new(&parameters, &numbers).unwrap());
                let leaves = keys.expand(&x, count).unwrap();
                assert_eq!(leaves.len(), count);
                for (leaf, number) in leaves.iter().zip(&numbers) {
                    bench.check("leaf", leaf, &Plaintext::scalar(&parameters, *number).unwrap(), 4.0);
                }
            }
        }
        let parameters = testing::toy();
        let mut bench = Bench::new(&parameters, 62);
        let (keys, x) =
            (keys(&mut bench, 4), Bench::new(&parameters, 62).encrypt(&testing::message(&parameters, 1)));
        assert_eq!(keys.expand(&x, 8).err(), Some(MissingKey::Exponent(65)));
        assert!(keys.expand(&x, 0).is_err() && keys.expand(&x, 257).is_err());
        assert!(keys.expand_by(&x, 1, 3).is_err() && keys.expand_by(&x, 64, 0).is_err());
    }

    #[test]
    fn a_taller_tree_leaves_monomials() {
        for parameters in testing::all() {
            let mut bench = Bench::new(&parameters, 65);
            let keys = keys(&mut bench, 8);
            let p = parameters.plaintext();
            let numbers: Vec<u64> = testing::numbers(5).take(parameters.degree()).map(|x| x % p).collect();
            let x = bench.encrypt(&Plaintext::new(&parameters, &numbers).unwrap());
            let leaves = keys.expand_by(&x, 3, 3).unwrap();
            assert_eq!(leaves.len(), 3);
            for (i, leaf) in leaves.iter().enumerate() {
                let mut wanted = vec![0; parameters.degree()];
                wanted.iter_mut().step_by(8).zip(numbers[i..].iter().step_by(8)).for_each(|(to, x)| *to = *x);
                bench.check("monomials", leaf, &Plaintext::new(&parameters, &wanted).unwrap(), 4.0);
            }
        }
    }

    /// Leaves share errors, and a database may be aligned with them: each leaf is turned so that the errors meet, times the largest
    /// plaintext that there is.
    #[test]
    fn a_database_aligned_with_the_leaves_stays_below_the_bound() {
        // One prime and messages of 14 bits leave no room for it: that set is not for expansions.
        for parameters in testing::all().into_iter().filter(|set| set.name() != "N2048_SLOTS") {
            let mut bench = Bench::new(&parameters, 64);
            let count = 16;
            let keys = keys(&mut bench, count);
            let x = bench.encrypt(&Plaintext::scalar(&parameters, 1).unwrap());
            let leaves = keys.expand(&x, count).unwrap();
            let (low, _) = testing::edges(&parameters);
            let factor = crate::Factor::new(parameters.ring(), &low);
            let mut sum =
                crate::Ciphertext::trivial(parameters.ring(), &Plaintext::new(&parameters, &[]).unwrap());
            for (i, leaf) in leaves.iter().enumerate() {
                let mut turned = leaf.clone();
                // c + c(X^k) and c - c(X^k) have errors of opposite signs.
                let sign = if i.count_ones() % 2 == 1 { parameters.degree() as isize } else { 0 };
                turned.turn(i as isize - sign);
                sum.multiply_plain_add(&turned, &factor);
            }
            // Alone the first leaf is not 0.
            bench.check("aligned", &sum, &low, 8.0);
        }
    }

    /// OnionPIR's way to a factor: its rows are leaves of an expansion.
    #[test]
    fn leaves_become_a_factor() {
        for parameters in testing::all() {
            let mut bench = Bench::new(&parameters, 63);
            let ring = parameters.ring().clone();
            let gadget =
                Gadget::new(&ring, 4, ring.bits().div_ceil(6), ring.bits() - 4 * ring.bits().div_ceil(6))
                    .unwrap();
            let keys = keys(&mut bench, 4);
            let fine = Gadget::exact(&ring, 4).unwrap();
            let key = RelinearisationKey::new(&bench.secret, &ring, fine, &mut bench.rng);
            let message = testing::message(&parameters, 7);
            let x = bench.encrypt(&message);
            for bit in [0u128, 1] {
                // Coefficient i has the phase bit g_i.
                let mut words = Vec::new();
                for q in ring.primes() {
                    let mut all = vec![0; ring.degree()];
                    (0..4).for_each(|i| all[i] = q.reduce(bit * gadget.weight(i)));
                    words.extend(all);
                }
                let phase = ring.forward(ring.polynomial(words).unwrap());
                let mask = ring.uniform(crate::fresh_seed(&mut bench.rng), 0);
                let body = bench.secret.body(&ring, &mask, &phase, &mut bench.rng);
                let fresh = Noise::of_variance(parameters.error().variance());
                let query = Ciphertext::from_pair(&parameters, &ring, Pair { mask, body }, fresh);
                let leaves = keys.expand(&query, 4).unwrap();
                let noise = leaves[0].noise();
                let rows = leaves.into_iter().map(|leaf| leaf.pair().clone()).collect();
                let factor = Rgsw::from_rows(&key, &ring, rows, gadget, noise, 1.0).unwrap();
                let want = testing::each(&message, &message, |m, _| m * bit as u64);
                bench.check("expanded factor", &factor.multiply(&x), &want, 6.0);
            }
        }
    }
}
