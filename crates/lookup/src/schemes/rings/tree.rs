//! The two rings of OnionPIR's class, the tree by which a query is expanded in the larger one, and the keys of that tree.
//!
//! No key has a special prime: keys live modulo Q, of 50 bits, for which strength is counted. Leaves are switched to q, of 40 bits,
//! where polynomials are stored. What a level's switching adds is doubled by each level after it, so that digits are finest at the
//! root.

use std::sync::{Arc, OnceLock};

use blindcore_math::SecretRng;
use blindcore_rlwe::galois::tree_exponents;
use blindcore_rlwe::rounding::packed_bytes;
use blindcore_rlwe::{Gadget, GaloisKeys, Parameters, Ring, sets};
use zeroize::Zeroizing;

use super::{SEED_BYTES, Secret};
use crate::Error;
use crate::registration::KeySet;

/// d: coefficients of a polynomial.
pub(in crate::schemes) const DEGREE: usize = 2048;
/// Levels of the tallest tree: 256 leaves.
pub(in crate::schemes) const HEIGHT: u32 = 8;
/// Bits of a residue modulo Q and q.
pub(in crate::schemes) const LARGE_BITS: u32 = 50;
pub(in crate::schemes) const SMALL_BITS: u32 = 40;
/// Bits of a word of a query: of its body the low ten are cut off.
pub(in crate::schemes) const QUERY_BITS: u32 = 40;

/// Digits and their bits for each level of the tree, from the root on: fine digits are few and far up.
pub(in crate::schemes) const TREE: [(usize, u32); HEIGHT as usize] =
    [(24, 2), (24, 2), (24, 2), (16, 3), (16, 3), (12, 4), (9, 5), (7, 6)];

/// Bytes before a key: magic, version, kind and the parameters' digest.
pub(in crate::schemes) const KEY_HEADER: usize = 16;

/// The variance of a ternary coefficient.
pub(in crate::schemes) const TERNARY: f64 = 2.0 / 3.0;

/// The rings, and how the tree takes polynomials apart.
pub(in crate::schemes) struct Tree {
    pub(in crate::schemes) parameters: Arc<Parameters>,
    /// The exponent and the gadget of each level, from the root on.
    levels: Vec<(usize, Gadget)>,
}

impl Tree {
    /// Made once.
    pub(in crate::schemes) fn get() -> &'static Self {
        static TREES: OnceLock<Tree> = OnceLock::new();
        TREES.get_or_init(|| {
            let parameters = sets::N2048_ONION.check().expect("a set that is shipped");
            let level = |digits| gadget(parameters.ring(), digits);
            let levels = tree_exponents(DEGREE).zip(TREE.map(level)).collect();
            Self { parameters, levels }
        })
    }

    /// The ring of keys and queries.
    pub(in crate::schemes) fn large(&self) -> &Arc<Ring> {
        self.parameters.ring()
    }

    /// The ring of stored polynomials and of what follows them.
    pub(in crate::schemes) fn small(&self) -> &Arc<Ring> {
        self.parameters.reduced(0)
    }

    /// Q / 2^`bits`: what 1 is in a query, where plaintexts have so many bits.
    pub(in crate::schemes) fn delta(&self, bits: u32) -> u64 {
        ((self.large().modulus() + (1 << (bits - 1))) >> bits) as u64
    }

    /// The secret that a seed stands for.
    pub(in crate::schemes) fn secret(&self, seed: &[u8; SEED_BYTES]) -> Secret {
        Secret::new(&self.parameters, self.large(), seed)
    }

    /// Makes a seed of a secret, and what is registered: the tree's keys, whichever tables are looked into, and what `more` makes.
    ///
    /// # Errors
    /// The operating system gives no randomness.
    pub(in crate::schemes) fn make(
        &self,
        more: impl FnOnce(&Secret, &mut SecretRng) -> Vec<u8>,
    ) -> Result<KeySet, Error> {
        let mut seed = Zeroizing::new([0; SEED_BYTES]);
        SecretRng::from_os()?.fill(&mut *seed);
        let secret = self.secret(&seed);
        // Seeds of masks are sent. They come from a stream of their own, which says nothing of the secret's.
        let mut rng = SecretRng::from_os()?;
        let levels = self.levels.iter().copied();
        let keys = GaloisKeys::new(secret.key(), self.large(), levels, &mut rng)
            .expect("exponents of a tree are odd");
        let mut public = keys.to_bytes(&self.parameters).expect("keys of these parameters");
        public.extend(more(&secret, &mut rng));
        Ok(KeySet { secret: Zeroizing::new(seed.to_vec()), public })
    }

    /// Bytes of the tree's keys: a header and a count, then for each key its exponent and its rows.
    pub(in crate::schemes) fn key_bytes(&self) -> usize {
        let keys: usize = self.levels.iter().map(|(_, gadget)| 4 + self.rows_bytes(gadget.digits())).sum();
        KEY_HEADER + 1 + 2 + keys
    }

    /// Bytes of a key's rows.
    pub(in crate::schemes) fn rows_bytes(&self, digits: usize) -> usize {
        rows_bytes(self.large(), digits)
    }

    /// Bytes in memory of the tree's keys and of `more` rows: each row's mask and body in words.
    pub(in crate::schemes) fn parsed_bytes(&self, more: usize) -> usize {
        let rows: usize = self.levels.iter().map(|(_, gadget)| gadget.digits()).sum();
        (rows + more) * 2 * 8 * self.large().words()
    }

    /// Reads keys that a stranger registers.
    ///
    /// # Errors
    /// Says what is not as such keys are. Those of other gadgets, exponents or rings are refused: noise is bounded for these.
    pub(in crate::schemes) fn read_keys(&self, bytes: &[u8]) -> Result<GaloisKeys, String> {
        let keys = GaloisKeys::from_bytes(&self.parameters, bytes).map_err(|e| e.to_string())?;
        let mut levels = self.levels.iter();
        let there =
            levels.all(|(exponent, gadget)| keys.get(*exponent).is_ok_and(|key| key.gadget() == *gadget));
        if there && keys.ring() == self.large() { Ok(keys) } else { Err(OTHER_GADGETS.into()) }
    }

    /// Transforms that a tree of `height` levels takes for `leaves` leaves: for each node one for each digit and one for each product,
    /// an order of values and two sums.
    pub(in crate::schemes) fn work(height: u32, leaves: usize) -> f64 {
        let node = |(level, (digits, _)): (usize, &(usize, u32))| {
            (1usize << level).min(leaves) as f64 * (product(*digits) + 2.5)
        };
        TREE.iter().take(height as usize).enumerate().map(node).sum()
    }

    /// The variance of a leaf's noise modulo Q. Masks are uniform, and so are digits of them.
    pub(in crate::schemes) fn leaf_noise(&self, height: u32) -> f64 {
        let (d, error) = (DEGREE as f64, self.parameters.error().variance());
        let levels = height as usize;
        let level = |(level, (_, gadget)): (usize, &(usize, Gadget))| {
            let switching = d * (digits_noise(gadget) * error + dropped_noise(gadget) * TERNARY);
            power((levels - 1 - level) as u32) * switching
        };
        let switching: f64 = self.levels.iter().take(levels).enumerate().map(level).sum();
        let cut = (self.large().modulus() as f64 / power(QUERY_BITS)).powi(2) / 12.0;
        switching + power(height) * (error + cut)
    }

    /// The variance modulo q of what has `variance` modulo Q.
    pub(in crate::schemes) fn switched_noise(&self, variance: f64) -> f64 {
        self.scale() * variance + Self::switching_noise()
    }

    /// (q / Q)^2.
    pub(in crate::schemes) fn scale(&self) -> f64 {
        (self.small().modulus() as f64 / self.large().modulus() as f64).powi(2)
    }

    /// What rounding from Q to q adds: of both halves, of which the mask's meets the secret.
    pub(in crate::schemes) fn switching_noise() -> f64 {
        (1.0 + DEGREE as f64 * TERNARY) / 12.0
    }

    /// The variance of a sum of `rows` products of a polynomial of uniform coefficients of so many `bits` with a leaf.
    pub(in crate::schemes) fn scan_noise(rows: usize, bits: u32, leaf: f64) -> f64 {
        rows as f64 * DEGREE as f64 * power(2 * bits) / 12.0 * leaf
    }

    /// What rounding of a mask modulo q to `bits` adds.
    pub(in crate::schemes) fn sent_noise(&self, bits: u32) -> f64 {
        (self.small().modulus() as f64 / power(bits)).powi(2) / 12.0 * DEGREE as f64 * TERNARY
    }

    /// Half of the distance between two plaintexts of `bits` modulo q, less the rounding of a body to `body_bits` and of Q / p.
    pub(in crate::schemes) fn margin(&self, bits: u32, body_bits: u32) -> f64 {
        self.small().modulus() as f64 * (0.5 / power(bits) - 0.5 / power(body_bits)) - power(bits)
    }
}

/// Bytes of the rows of a key of a ring, as `blindcore_rlwe::wire` has them: its gadget, its seed and its bodies.
pub(in crate::schemes) fn rows_bytes(ring: &Ring, digits: usize) -> usize {
    3 + SEED_BYTES + digits * packed_bytes(ring.degree(), ring.bits())
}

/// Why keys that can be read are refused.
pub(in crate::schemes) const OTHER_GADGETS: &str = "they are not of this scheme's gadgets";

/// A gadget of these digits and bits that fills a ring.
pub(in crate::schemes) fn gadget(ring: &Ring, (digits, bits): (usize, u32)) -> Gadget {
    Gadget::new(ring, digits, bits, ring.bits() - digits as u32 * bits).expect("digits that fill the ring")
}

/// Transforms of a product with a key's or a factor's rows: a product with its sum takes a third of one.
pub(in crate::schemes) fn product(digits: usize) -> f64 {
    digits as f64 * (1.0 + 2.0 / 3.0)
}

/// -log2 of a bound on the chance that one of `count` coefficients, whose noise is subgaussian, passes `margin`.
pub(in crate::schemes) fn failure_log2(margin: f64, variance: f64, count: usize) -> f64 {
    margin.powi(2) / (2.0 * variance) * std::f64::consts::LOG2_E - 1.0 - (count as f64).log2()
}

/// The variance of a sum over all digits.
pub(in crate::schemes) fn digits_noise(gadget: &Gadget) -> f64 {
    gadget.digits() as f64 * (power(2 * gadget.bits()) + 2.0) / 12.0
}

/// The variance of what is dropped below all digits.
pub(in crate::schemes) fn dropped_noise(gadget: &Gadget) -> f64 {
    power(2 * gadget.dropped()) / 12.0
}

fn power(bits: u32) -> f64 {
    f64::from(bits).exp2()
}
