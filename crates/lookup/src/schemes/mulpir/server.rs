//! The server's half: expand, scan, multiply, switch, round.

use std::sync::Arc;

use blindcore_accel::{Cost, Device, Placed};
use blindcore_math::{MaskSeed, Prime};
use blindcore_rlwe::{Ciphertext, Lifted, Noise, Pair, Products};

use super::keys::Registered;
use super::params::{self, DEGREE, QUERY_BYTES, QUERY_CUT, Rings, pass_queries};
use crate::registration::RegisteredKeys;
use crate::schemes::parallel::each;
use crate::schemes::rings::{Places, SEED_BYTES, grown, in_passes, polynomials};
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
        // A single query is shared out; of several queries each is.
        let inner = self.threads.div_ceil(work.len());
        let mut expanded = each(self.threads, work, |(query, keys)| expand(&self.places, query, keys, inner));
        let first = expanded.iter_mut().map(|query| std::mem::take(&mut query.first)).collect();
        let outputs = polynomials::scan(&*self.polynomials, first, cost)?;
        let picking: Vec<_> = work
            .iter()
            .zip(&expanded)
            .zip(outputs.chunks_exact(outputs.len() / work.len()))
            .map(|(((_, keys), query), outputs)| (*keys, &query.second[..], outputs))
            .collect();
        Ok(each(self.threads, &picking, |(keys, second, outputs)| {
            let mut answer = Vec::new();
            for picked in pick(&self.places, keys, second, outputs, inner) {
                round(&self.places, &picked, &mut answer);
            }
            answer
        }))
    }
}

impl SchemeServer for MulServer {
    fn answer(&self, queries: &[&[u8]], keys: &[&RegisteredKeys]) -> Result<(Vec<Vec<u8>>, Cost), Error> {
        in_passes(queries, keys, pass_queries(&self.places), |work, cost| self.pass(work, cost))
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

/// The sum over outputs of second dimension by first, for each part.
pub(super) fn pick(
    places: &Places,
    keys: &Registered,
    second: &[Ciphertext],
    outputs: &[u64],
    threads: usize,
) -> Vec<Ciphertext> {
    let multiplier = Rings::get().multiplier();
    // As many shares as threads, of whole batches.
    let share = second.len().div_ceil(threads.max(1)).next_multiple_of(TOGETHER);
    let firsts: Vec<usize> = (0..second.len()).step_by(share).collect();
    let shares = each(threads, &firsts, |first| {
        products(places, &second[*first..(first + share).min(second.len())], *first, outputs)
    });
    let mut shares = shares.into_iter();
    let mut sums = shares.next().unwrap_or_default();
    for other in shares {
        sums.iter_mut().zip(&other).for_each(|(sum, other)| multiplier.add(sum, other));
    }
    sums.into_iter().map(|sum| multiplier.finish(sum, &keys.square)).collect()
}

/// The products of some outputs, from output `first` on, summed up for each part.
fn products(places: &Places, second: &[Ciphertext], first: usize, outputs: &[u64]) -> Vec<Products> {
    let multiplier = Rings::get().multiplier();
    let parts = places.parts;
    let mut sums: Vec<Products> = Vec::with_capacity(parts);
    for (batch, second) in second.chunks(TOGETHER).enumerate() {
        let at = first + batch * TOGETHER;
        let second: Vec<Lifted> = second.iter().map(|leaf| multiplier.lift(leaf)).collect();
        for part in 0..parts {
            let outputs = (at..at + second.len()).map(|at| output(outputs, at * parts + part));
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

/// A polynomial of the first dimension's result.
pub(super) fn output(outputs: &[u64], number: usize) -> Ciphertext {
    let rings = Rings::get();
    let ring = rings.large();
    let words = &outputs[number * 2 * ring.words()..][..2 * ring.words()];
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
