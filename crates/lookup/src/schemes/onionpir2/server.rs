//! The server's half: expand, scan, fold, round.

use std::sync::Arc;

use blindcore_accel::{Cost, Device, Placed, Words};
use blindcore_math::MaskSeed;
use blindcore_rlwe::rounding::{Rounding, pack, unpack};
use blindcore_rlwe::{Ciphertext, Noise, Pair, Rgsw, Ring};

use super::keys::Registered;
use super::params::{
    BIT_LEAVES, BODY_BITS, DEGREE, MASK_BITS, POLYNOMIALS, Places, QUERY_BITS, Rings, pass_queries,
};
use crate::registration::RegisteredKeys;
use crate::schemes::parallel::each;
use crate::schemes::rings::SEED_BYTES;
use crate::{Error, Params, SchemeServer};

pub(super) struct OnionServer {
    places: Places,
    polynomials: Arc<dyn Placed>,
    threads: usize,
}

/// A query, expanded.
pub(super) struct Expanded {
    /// The first dimension modulo q, by values: a mask and a body for each row.
    pub(super) first: Vec<u64>,
    /// An encrypted bit for each level of folding, the lowest first.
    pub(super) bits: Vec<Rgsw>,
}

impl OnionServer {
    pub(super) fn new(params: &Params, device: &Device, mut operands: Vec<Arc<dyn Placed>>) -> Self {
        let threads = device.description().threads.max(1);
        let polynomials = operands.swap_remove(POLYNOMIALS);
        Self { places: Places::new(&params.geometry), polynomials, threads }
    }

    /// Answers as many queries as a pass has room for.
    fn pass(&self, work: &[(&[u8], &Registered)], cost: &mut Cost) -> Result<Vec<Vec<u8>>, Error> {
        let mut expanded = each(self.threads, work, |(query, keys)| expand(&self.places, query, keys));
        let mut first: Vec<Vec<u64>> =
            expanded.iter_mut().map(|query| std::mem::take(&mut query.first)).collect();
        let first = if let [one] = &mut first[..] { std::mem::take(one) } else { first.concat() };
        let (outputs, this) = self.polynomials.run(&Words::U64(first))?;
        cost.time += this.time;
        cost.database_bytes += this.database_bytes;
        cost.threads = this.threads;
        let outputs = outputs.into_u64()?;
        let folding: Vec<(&Expanded, &[u64])> =
            expanded.iter().zip(outputs.chunks_exact(outputs.len() / work.len())).collect();
        // A single query's subtrees are shared out; of several queries each is.
        let inner = self.threads.div_ceil(work.len());
        Ok(each(self.threads, &folding, |(query, outputs)| self.answer_one(query, outputs, inner)))
    }

    fn answer_one(&self, query: &Expanded, outputs: &[u64], threads: usize) -> Vec<u8> {
        let mut answer = Vec::with_capacity(self.places.parts * self.places.sent_bytes());
        for part in 0..self.places.parts {
            round(&self.places, &fold(&self.places, query, outputs, part, threads), &mut answer);
        }
        answer
    }
}

impl SchemeServer for OnionServer {
    fn answer(&self, queries: &[&[u8]], keys: &[&RegisteredKeys]) -> Result<(Vec<Vec<u8>>, Cost), Error> {
        let keys = keys.iter().filter_map(|keys| keys.get::<Registered>());
        let work: Vec<(&[u8], &Registered)> = queries.iter().copied().zip(keys).collect();
        let mut cost = Cost::default();
        let passes = work.chunks(pass_queries(&self.places)).map(|work| self.pass(work, &mut cost));
        let answers = passes.collect::<Result<Vec<_>, _>>()?;
        Ok((answers.concat(), cost))
    }
}

/// Expands a query. Whatever its bytes, they are a seed and words.
pub(super) fn expand(places: &Places, query: &[u8], keys: &Registered) -> Expanded {
    let rings = Rings::get();
    let (large, small) = (rings.large(), rings.small());
    let mut leaves = leaves(places, query, keys);
    let rows = leaves.split_off(places.rows);
    let mut first = Vec::with_capacity(places.rows * 2 * DEGREE);
    for leaf in leaves {
        let leaf = leaf.switch_modulus(small).expect("a smaller prime of the same degree");
        first.extend(leaf.pair().mask.words());
        first.extend(leaf.pair().body.words());
    }
    let bits = rows.chunks_exact(BIT_LEAVES).map(|rows| {
        debug_assert!(rows[0].ring() == large);
        let rows = rows.iter().map(|row| row.pair().clone()).collect();
        Rgsw::from_rows(&keys.square, small, rows, rings.fold, Noise::NONE, 1.0)
            .expect("a smaller prime of the same degree")
    });
    Expanded { first, bits: bits.collect() }
}

/// The leaves of a query, modulo Q.
pub(super) fn leaves(places: &Places, query: &[u8], keys: &Registered) -> Vec<Ciphertext> {
    let rings = Rings::get();
    let ring = rings.large();
    let (seed, body) = query.split_at(SEED_BYTES);
    let seed = MaskSeed(seed.try_into().expect("it was cut so"));
    let rounding = Rounding::new(ring.primes()[0], QUERY_BITS);
    let mut sent = unpack(body, QUERY_BITS).map(|word| rounding.up(word));
    // What leads to no leaf was not sent, and may be anything.
    let mut words = vec![0; DEGREE];
    for run in words.chunks_exact_mut(1 << places.height) {
        run[..places.leaves()].iter_mut().zip(&mut sent).for_each(|(word, sent)| *word = sent);
    }
    let body = ring.forward(ring.polynomial(words).expect("rounded to residues"));
    let pair = Pair { mask: ring.uniform(seed, 0), body };
    let query = Ciphertext::from_pair(&rings.parameters, ring, pair, Noise::NONE);
    keys.tree.expand_by(&query, places.height, places.leaves()).expect("keys and sizes were checked")
}

/// Folds the outputs of a part: of each two neighbours the one that a bit says, level by level.
pub(super) fn fold(places: &Places, query: &Expanded, outputs: &[u64], part: usize, threads: usize) -> Pair {
    let folding = Folding { query, outputs, places, part };
    if threads <= 1 || places.folds < 3 {
        return folding.tree(0, places.outputs, places.folds).pair().clone();
    }
    // Several subtrees for each thread.
    let height = places.folds - (threads.next_power_of_two().ilog2() + 1).min(places.folds - 1);
    let subtrees: Vec<usize> = (0..places.outputs).step_by(1 << height).collect();
    let mut level = each(threads, &subtrees, |first| {
        folding.tree(*first, (places.outputs - first).min(1 << height), height)
    });
    for bit in &query.bits[height as usize..] {
        level = level
            .chunks(2)
            .map(|pair| match pair {
                [zero, one] => bit.choose(zero, one),
                alone => alone[0].clone(),
            })
            .collect();
    }
    level.swap_remove(0).pair().clone()
}

struct Folding<'a> {
    places: &'a Places,
    query: &'a Expanded,
    outputs: &'a [u64],
    part: usize,
}

impl Folding<'_> {
    /// `count` outputs from `first` on, folded by the lowest `height` bits: depth first, so that what was folded last is in the cache.
    fn tree(&self, first: usize, count: usize, height: u32) -> Ciphertext {
        if height == 0 {
            return self.output(first);
        }
        let half = 1usize << (height - 1);
        let zero = self.tree(first, count.min(half), height - 1);
        if count <= half {
            // There is no other; no client that asks for one gets anything.
            return zero;
        }
        let one = self.tree(first + half, count - half, height - 1);
        self.query.bits[height as usize - 1].choose(&zero, &one)
    }

    fn output(&self, at: usize) -> Ciphertext {
        let rings = Rings::get();
        let ring: &Arc<Ring> = rings.small();
        let words = &self.outputs[(at * self.places.parts + self.part) * 2 * DEGREE..][..2 * DEGREE];
        let [mask, body] = [&words[..DEGREE], &words[DEGREE..]]
            .map(|words| ring.polynomial(words.to_vec()).expect("a device gives residues"));
        Ciphertext::from_pair(&rings.parameters, ring, Pair { mask, body }, Noise::NONE)
    }
}

/// A ciphertext as it is sent: of the body only the window that the slot lies in.
pub(super) fn round(places: &Places, pair: &Pair, answer: &mut Vec<u8>) {
    let ring = Rings::get().small();
    for (half, bits, kept) in [(&pair.mask, MASK_BITS, DEGREE), (&pair.body, BODY_BITS, places.window())] {
        let rounding = Rounding::new(ring.primes()[0], bits);
        let half = ring.inverse(half.clone());
        let words: Vec<u64> = half.words()[..kept].iter().map(|word| rounding.down(*word)).collect();
        pack(&words, bits, answer);
    }
}
