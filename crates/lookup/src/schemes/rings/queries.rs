//! Queries: seeded ciphertexts modulo Q whose coefficients a tree brings to leaves.
//!
//! ```text
//!   seed | bodies of 40-bit words, ciphertext after ciphertext: of each 2^h coefficients those that lead to a leaf
//!
//!   leaf i of a ciphertext:  coefficients i, i + 2^h, i + 2 * 2^h, ...   as those of 1, X^(2^h), X^(2 * 2^h), ...
//! ```
//!
//! The client's side is constant time: no branch, index or division that a selection, a secret or a message decides.

use blindcore_math::{MaskSeed, SecretRng};
use blindcore_rlwe::rounding::{Rounding, pack, packed_bytes, unpack};
use blindcore_rlwe::{Ciphertext, GaloisKeys, Noise, Pair, fresh_seed};
use zeroize::Zeroizing;

use super::tree::{DEGREE, QUERY_BITS, Tree};
use super::{Place, Places, SEED_BYTES, Secret, grown, plus, wide};
use crate::{Error, constant_time};

/// Encryptions of nothing: the seed of their masks, and their bodies by coefficients, one after another.
pub(in crate::schemes) struct Prepared {
    pub(in crate::schemes) secret: Secret,
    seed: MaskSeed,
    bodies: Zeroizing<Vec<u64>>,
}

impl Prepared {
    /// As many as a table takes.
    ///
    /// # Errors
    /// The operating system gives no randomness.
    pub(in crate::schemes) fn new(places: &Places, secret: &Secret) -> Result<Self, Error> {
        let ring = Tree::get().large();
        // The seed is sent. It is drawn apart, so that it says nothing of the stream that errors are drawn from.
        let seed = fresh_seed(&mut SecretRng::from_os()?);
        let mut rng = SecretRng::from_os()?;
        let mut bodies = Zeroizing::new(Vec::with_capacity(places.ciphertexts() * DEGREE));
        for number in 0..places.ciphertexts() as u64 {
            let body = secret.key().body(ring, &ring.uniform(seed, number), &ring.zero(), &mut rng);
            let body = Zeroizing::new(ring.inverse(body));
            bodies.extend(body.words());
        }
        Ok(Self { secret: secret.clone(), seed, bodies })
    }

    /// Asks for a column's slot: `delta` goes to its row's leaf, with the monomial that turns its place towards the start.
    pub(in crate::schemes) fn pick(&mut self, places: &Places, place: &Place, delta: u64) {
        // X^-(turn 2^h), for the multiple of 2^h at or below the place; X^d = -1.
        let turns = (DEGREE >> places.height) as u32;
        let position =
            places.position(0, 1) as u32 * place.fine + places.position(1, 0) as u32 * place.coarse;
        let turn = position >> places.height;
        let straight = wide(constant_time::equal_mask(turn, 0));
        let message = (delta & straight) | ((Tree::get().large().modulus() as u64 - delta) & !straight);
        self.add(places, place.row, turns.wrapping_sub(turn) & (turns - 1), message);
    }

    /// Adds a message times X^(`turn` 2^h) to a leaf, wherever that is.
    pub(in crate::schemes) fn add(&mut self, places: &Places, leaf: u32, turn: u32, message: u64) {
        let q = Tree::get().large().modulus() as u64;
        let (ciphertext, leaf) = (leaf >> places.height, leaf & ((1 << places.height) - 1));
        let at = ciphertext * DEGREE as u32 + (turn << places.height) + leaf;
        for (i, word) in (0u32..).zip(self.bodies.iter_mut()) {
            *word = plus(q, *word, message & wide(constant_time::equal_mask(i, at)));
        }
    }

    /// Adds a message to a leaf that is no secret.
    pub(in crate::schemes) fn add_at(&mut self, places: &Places, leaf: usize, message: u64) {
        let q = Tree::get().large().modulus() as u64;
        let (ciphertext, leaf) = (leaf >> places.height, leaf & ((1 << places.height) - 1));
        let word = &mut self.bodies[ciphertext * DEGREE + leaf];
        *word = plus(q, *word, message);
    }

    /// The query's bytes: coefficients that lead to no leaf are left out.
    pub(in crate::schemes) fn send(&self, places: &Places) -> Vec<u8> {
        let rounding = Rounding::new(Tree::get().large().primes()[0], QUERY_BITS);
        let mut sent = Zeroizing::new(Vec::with_capacity(places.asked()));
        for (number, body) in self.bodies.chunks_exact(DEGREE).enumerate() {
            let runs = body.chunks_exact(1 << places.height);
            let words = runs.flat_map(|run| &run[..places.leaves_of(number)]);
            sent.extend(words.map(|word| rounding.down(*word)));
        }
        let mut query = Vec::with_capacity(query_bytes(places));
        query.extend(self.seed.0);
        pack(&sent, QUERY_BITS, &mut query);
        query
    }
}

/// Bytes of a query.
pub(in crate::schemes) fn query_bytes(places: &Places) -> usize {
    SEED_BYTES + packed_bytes(places.asked(), QUERY_BITS)
}

/// The leaves of a query's ciphertexts, modulo Q. Whatever the query's bytes, they are a seed and words.
pub(in crate::schemes) fn leaves(
    places: &Places,
    query: &[u8],
    keys: &GaloisKeys,
    threads: usize,
) -> Vec<Ciphertext> {
    let tree = Tree::get();
    let ring = tree.large();
    let (seed, bodies) = query.split_at(SEED_BYTES);
    let seed = MaskSeed(seed.try_into().expect("it was cut so"));
    let rounding = Rounding::new(ring.primes()[0], QUERY_BITS);
    let mut sent = unpack(bodies, QUERY_BITS).map(|word| rounding.up(word));
    let root = |ciphertext: usize| {
        let count = places.leaves_of(ciphertext);
        // What leads to no leaf was not sent, and may be anything.
        let mut words = vec![0; DEGREE];
        for run in words.chunks_exact_mut(1 << places.height) {
            run[..count].iter_mut().zip(&mut sent).for_each(|(word, sent)| *word = sent);
        }
        let body = ring.forward(ring.polynomial(words).expect("rounded to residues"));
        let pair = Pair { mask: ring.uniform(seed, ciphertext as u64), body };
        (Ciphertext::from_pair(&tree.parameters, ring, pair, Noise::NONE), count)
    };
    let roots: Vec<_> = (0..places.ciphertexts()).map(root).collect();
    grown(keys, places.height, &roots, threads)
}
