//! Expansion: from one ciphertext of n coefficients to n ciphertexts of a constant each.
//!
//! ```text
//!   level j:  c  ->  c + c(X^k),   X^-(2^j) (c - c(X^k))        k = d / 2^j + 1
//! ```
//!
//! After h levels leaf i holds the coefficients at i, i + 2^h, i + 2 * 2^h, ... 2^h times, at multiples of 2^h; the power of two is
//! divided out modulo Q first. Branches that lead to no leaf are left out. Source: Angel, Chen, Laine and Setty 2018 (SealPIR, Figure
//! 3); pruned as in OnionPIRv2.

use crate::ciphertext::Ciphertext;
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
        let expansion = self.expansion(levels, count)?;
        let mut leaves: Vec<_> =
            expansion.branches(ciphertext, 0).iter().flat_map(|root| expansion.leaves(root)).collect();
        leaves.sort_by_key(|(leaf, _)| *leaf);
        Ok(leaves.into_iter().map(|(_, ciphertext)| ciphertext).collect())
    }

    /// What [`Self::expand_by`] goes by, for callers that share a tree's branches out to threads.
    ///
    /// # Errors
    /// As there.
    pub fn expansion(&self, levels: u32, count: usize) -> Result<Expansion<'_>, MissingKey> {
        let degree = self.ring.degree();
        let limit = 1usize.checked_shl(levels).unwrap_or(usize::MAX).min(degree);
        if !(1..=limit).contains(&count) {
            return Err(MissingKey::Count { count, limit });
        }
        let levels = (0..limit.ilog2()).map(|level| self.level(level)).collect::<Result<_, _>>()?;
        Ok(Expansion { keys: self, levels, count, added: self.expansion_noise(limit)? })
    }

    /// A level of the tree, from 0 at the root on.
    fn level(&self, level: u32) -> Result<Level<'_>, MissingKey> {
        let exponent = tree_exponents(self.ring.degree()).nth(level as usize).expect("a level of a tree");
        Ok(Level { key: self.get(exponent)?, back: self.ring.monomial(-(1 << level)) })
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
}

/// What splits the nodes of a level.
struct Level<'a> {
    key: &'a GaloisKey,
    /// X^-(2^j).
    back: Poly<Values>,
}

impl Level<'_> {
    /// The two nodes below one, or where `both` is not so the first alone: c + c(X^k), and X^-(2^j) (c - c(X^k)).
    fn split(&self, node: &Ciphertext, both: bool) -> (Ciphertext, Option<Ciphertext>) {
        let (ring, mut turned) = (&node.ring, self.key.apply(node));
        if !both {
            turned.pair.add(ring, &node.pair);
            return (turned, None);
        }
        let mut even = node.clone();
        ring.butterflies(&mut even.pair.mask, &mut turned.pair.mask, &self.back);
        ring.butterflies(&mut even.pair.body, &mut turned.pair.body, &self.back);
        (even, Some(turned))
    }
}

/// A tree, for callers that share its branches out to threads: [`GaloisKeys::expansion`].
///
/// ```
/// # use blindcore_math::SecretRng;
/// # use blindcore_rlwe::{Gadget, GaloisKeys, Plaintext, SecretKey, galois::tree_exponents, sets};
/// # let parameters = sets::N2048.check()?;
/// # let (ring, mut rng) = (parameters.ring().clone(), SecretRng::from_os()?);
/// # let secret = SecretKey::generate(&parameters, &mut rng);
/// # let gadget = Gadget::exact(&ring, 8)?;
/// # let exponents = tree_exponents(2048).take(2).map(|exponent| (exponent, gadget));
/// # let keys = GaloisKeys::new(&secret, &ring, exponents, &mut rng)?;
/// let ciphertext = secret.encrypt(&Plaintext::new(&parameters, &[3, 1, 4])?, &mut rng);
/// let expansion = keys.expansion(2, 3)?; // two levels, three leaves
/// for branch in expansion.branches(&ciphertext, 1) {
///     // In a thread of its own, say.
///     for (leaf, ciphertext) in expansion.leaves(&branch) {
///         assert_eq!(secret.decrypt(&ciphertext).coefficients()[0], [3, 1, 4][leaf]);
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Expansion<'a> {
    keys: &'a GaloisKeys,
    levels: Vec<Level<'a>>,
    count: usize,
    added: Noise,
}

/// A node of a tree, which leads to some of its leaves.
pub struct Branch {
    node: Ciphertext,
    level: usize,
    /// It leads to the leaves that are this modulo 2^level.
    first: usize,
    /// Of the ciphertext that is expanded.
    noise: Noise,
}

impl Expansion<'_> {
    /// The nodes of level `depth`, or the leaves where the tree has fewer levels.
    ///
    /// # Panics
    /// The ciphertext is of another ring than the keys.
    #[must_use]
    pub fn branches(&self, ciphertext: &Ciphertext, depth: u32) -> Vec<Branch> {
        let ring = &self.keys.ring;
        ciphertext.check(ring);
        let mut root = ciphertext.clone();
        root.prescale(ring.inverse_power_of_two(self.levels.len() as u32));
        let (level, mut branches) = (self.levels.len().min(depth as usize), Vec::new());
        self.grow(root, 0, 0, level, &mut |node, first| {
            branches.push(Branch { node, level, first, noise: ciphertext.noise });
        });
        branches
    }

    /// The leaves that a branch leads to, each with its place.
    #[must_use]
    pub fn leaves(&self, branch: &Branch) -> Vec<(usize, Ciphertext)> {
        let (noise, mut leaves) = (branch.noise.plus(self.added), Vec::new());
        self.grow(branch.node.clone(), branch.level, branch.first, self.levels.len(), &mut |node, first| {
            leaves.push((first, Ciphertext::made("expand", &node.ring, node.plaintext, node.pair, noise)));
        });
        leaves
    }

    /// Gives `take` all nodes of level `to` that a node leads to, and that lead to leaves: depth first, so that what was made last is
    /// in the cache.
    fn grow(
        &self,
        node: Ciphertext,
        level: usize,
        first: usize,
        to: usize,
        take: &mut dyn FnMut(Ciphertext, usize),
    ) {
        if level == to {
            return take(node, first);
        }
        let other = first + (1 << level);
        let (even, odd) = self.levels[level].split(&node, other < self.count);
        drop(node);
        self.grow(even, level + 1, first, to, take);
        if let Some(odd) = odd {
            self.grow(odd, level + 1, other, to, take);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Bench};
    use crate::{Gadget, Pair, Plaintext, RelinearisationKey, Rgsw};

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
