//! The server's half: expand, scan, multiply, switch, round.

use std::ops::Range;
use std::sync::Arc;

use blindcore_accel::{Cost, Device, Placed};
use blindcore_math::{MaskSeed, Prime};
use blindcore_rlwe::{Ciphertext, Lifted, Noise, Pair, Products};

use super::keys::Registered;
use super::params::{self, DEGREE, PAIR, QUERY_BYTES, QUERY_CUT, Rings};
use crate::registration::RegisteredKeys;
use crate::schemes::parallel::each;
use crate::schemes::rings::polynomials::Outputs;
use crate::schemes::rings::{Places, SEED_BYTES, grown, in_passes, pass_queries, polynomials};
use crate::{Error, Params, SchemeServer};

pub(super) struct MulServer {
    places: Places,
    polynomials: Arc<dyn Placed>,
    threads: usize,
}

/// A query, expanded.
pub(super) struct Expanded {
    /// The first dimension, by values: a mask and a body for each row.
    pub(super) first: Vec<u64>,
    /// The second dimension: a ciphertext for each output, one of them of 1.
    pub(super) second: Vec<Ciphertext>,
}

impl MulServer {
    pub(super) fn new(params: &Params, device: &Device, mut operands: Vec<Arc<dyn Placed>>) -> Self {
        let threads = device.description().threads.max(1);
        let polynomials = operands.swap_remove(polynomials::POLYNOMIALS);
        Self { places: params::places(&params.geometry), polynomials, threads }
    }

    /// Answers as many queries as a pass has room for.
    fn pass(&self, work: &[(&[u8], &Registered)], cost: &mut Cost) -> Result<Vec<Vec<u8>>, Error> {
        let Self { places, polynomials, threads } = self;
        // A single query is shared out; of several queries each is.
        let inner = threads.div_ceil(work.len());
        let mut expanded = each(*threads, work, |(query, keys)| expand(places, query, keys, inner));
        let first = expanded.iter_mut().map(|query| std::mem::take(&mut query.first)).collect();
        // Of each query, the sums of its parts so far.
        let mut sums = vec![Vec::new(); work.len()];
        let multiply = |query: usize, outputs: Outputs<'_>, threads| {
            multiply(places, &expanded[query].second, outputs, threads)
        };
        polynomials::scan(&**polynomials, first, [places.parts, *threads], cost, multiply, |query, made| {
            add(&mut sums[query], made);
        })?;
        let sums: Vec<_> = work.iter().map(|(_, keys)| *keys).zip(&sums).collect();
        Ok(each(*threads, &sums, |(keys, sums)| {
            let mut answer = Vec::new();
            finish(keys, sums).iter().for_each(|picked| round(places, picked, &mut answer));
            answer
        }))
    }
}

impl SchemeServer for MulServer {
    fn answer(&self, queries: &[&[u8]], keys: &[&RegisteredKeys]) -> Result<(Vec<Vec<u8>>, Cost), Error> {
        in_passes(queries, keys, pass_queries(self.places.leaves * PAIR), |work, cost| self.pass(work, cost))
    }
}

/// Expands a query. Whatever its bytes, they are a seed and words.
pub(super) fn expand(places: &Places, query: &[u8], keys: &Registered, threads: usize) -> Expanded {
    let mut leaves = leaves(places, query, keys, threads);
    let second = leaves.split_off(places.rows);
    let mut first = Vec::with_capacity(leaves.len() * 2 * Rings::get().large().words());
    for leaf in leaves {
        first.extend(leaf.pair().mask.words());
        first.extend(leaf.pair().body.words());
    }
    Expanded { first, second }
}

/// The leaves of a query.
pub(super) fn leaves(places: &Places, query: &[u8], keys: &Registered, threads: usize) -> Vec<Ciphertext> {
    let rings = Rings::get();
    let (ring, height) = (rings.large(), places.height);
    let (seed, bodies) = query.split_at(SEED_BYTES);
    let seed = MaskSeed(seed.try_into().expect("it was cut so"));
    let mut sent = bodies.as_chunks::<QUERY_BYTES>().0.iter().map(integer);
    // What leads to no leaf was not sent, and may be anything.
    let mut words = vec![0; places.ciphertexts() * ring.words()];
    for (i, words) in words.chunks_exact_mut(ring.words()).enumerate() {
        for first in (0..DEGREE).step_by(1 << height) {
            for (at, integer) in (first..first + places.leaves_of(i)).zip(&mut sent) {
                for (words, prime) in words.chunks_exact_mut(DEGREE).zip(ring.primes()) {
                    words[at] = residue(*prime, integer);
                }
            }
        }
    }
    let root = |(i, words): (usize, &[u64])| {
        let body = ring.forward(ring.polynomial(words.to_vec()).expect("reduced"));
        let pair = Pair { mask: ring.uniform(seed, i as u64), body };
        (Ciphertext::from_pair(&rings.parameters, ring, pair, Noise::NONE), places.leaves_of(i))
    };
    let roots: Vec<_> = words.chunks_exact(ring.words()).enumerate().map(root).collect();
    grown(&keys.tree, height, &roots, threads)
}

/// What a word of a query stands for.
fn integer(word: &[u8; QUERY_BYTES]) -> i128 {
    let mut bytes = [0; 16];
    bytes[16 - QUERY_BYTES..].copy_from_slice(word);
    // Its sign is its highest bit.
    (i128::from_le_bytes(bytes) >> (128 - 8 * QUERY_BYTES)) << QUERY_CUT
}

/// The residue of an integer of 96 bits modulo a prime of 48.
fn residue(prime: Prime, integer: i128) -> u64 {
    // A multiple of the prime above whatever stands there.
    let above = u128::from(prime.value()) << 56;
    prime.reduce(above.wrapping_add_signed(integer))
}

/// Outputs that are multiplied together: what they take should stay in a cache.
const TOGETHER: usize = 4;

/// The sum over some outputs of second dimension by first, for each part.
pub(super) fn multiply(
    places: &Places,
    second: &[Ciphertext],
    outputs: Outputs<'_>,
    threads: usize,
) -> Vec<Products> {
    // As many shares as threads, of whole batches.
    let share = outputs.count.div_ceil(threads.max(1)).next_multiple_of(TOGETHER);
    let end = outputs.first + outputs.count;
    let shares: Vec<Range<usize>> =
        (outputs.first..end).step_by(share).map(|from| from..end.min(from + share)).collect();
    let shares = each(threads, &shares, |share| products(places, second, outputs, share.clone()));
    let mut sums = Vec::new();
    shares.into_iter().for_each(|share| add(&mut sums, share));
    sums
}

/// Adds sums to those so far, of which there are none before the first.
fn add(sums: &mut Vec<Products>, these: Vec<Products>) {
    if sums.is_empty() {
        return *sums = these;
    }
    let multiplier = Rings::get().multiplier();
    sums.iter_mut().zip(&these).for_each(|(sum, this)| multiplier.add(sum, this));
}

/// What the sums encrypt, for each part.
pub(super) fn finish(keys: &Registered, sums: &[Products]) -> Vec<Ciphertext> {
    let multiplier = Rings::get().multiplier();
    sums.iter().map(|sum| multiplier.finish(sum.clone(), &keys.square)).collect()
}

/// The products of some outputs, summed up for each part.
fn products(
    places: &Places,
    second: &[Ciphertext],
    outputs: Outputs<'_>,
    range: Range<usize>,
) -> Vec<Products> {
    let multiplier = Rings::get().multiplier();
    let mut sums: Vec<Products> = Vec::with_capacity(places.parts);
    for from in range.clone().step_by(TOGETHER) {
        let batch = from..range.end.min(from + TOGETHER);
        let second: Vec<Lifted> = second[batch.clone()].iter().map(|leaf| multiplier.lift(leaf)).collect();
        for part in 0..places.parts {
            let outputs = batch.clone().map(|at| output(outputs.pair(at, part)));
            let outputs: Vec<Lifted> = outputs.map(|output| multiplier.lift(&output)).collect();
            let pairs: Vec<[&Lifted; 2]> = second.iter().zip(&outputs).map(|(a, b)| [a, b]).collect();
            let products = multiplier.products(&pairs);
            match sums.get_mut(part) {
                Some(sum) => multiplier.add(sum, &products),
                None => sums.push(products),
            }
        }
    }
    sums
}

/// A mask and a body of the first dimension's result.
pub(super) fn output(words: &[u64]) -> Ciphertext {
    let rings = Rings::get();
    let ring = rings.large();
    let (mask, body) = words.split_at(ring.words());
    let [mask, body] =
        [mask, body].map(|words| ring.polynomial(words.to_vec()).expect("a device gives residues"));
    Ciphertext::from_pair(&rings.parameters, ring, Pair { mask, body }, Noise::NONE)
}

/// A part of an answer modulo one prime.
pub(super) fn switched(picked: &Ciphertext) -> Ciphertext {
    picked.switch_modulus(Rings::get().small()).expect("a shorter chain")
}

/// A part of an answer as it is sent.
pub(super) fn round(places: &Places, picked: &Ciphertext, answer: &mut Vec<u8>) {
    params::sent(places).write_in(Rings::get().small(), switched(picked).pair(), answer);
}
