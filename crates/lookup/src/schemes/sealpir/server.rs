//! The server's half: expand, scan, take the results apart, and sum up.

use std::ops::Range;
use std::sync::Arc;

use blindcore_accel::{Cost, Device, Placed};
use blindcore_rlwe::{Ciphertext, GaloisKeys, Pair, Poly, Values};

use super::params::{DIGIT_BITS, DIGITS, PAIR, ROUNDED_BITS, part_bytes, pieces, places, sent};
use crate::registration::RegisteredKeys;
use crate::schemes::parallel::each;
use crate::schemes::rings::answers::rounded;
use crate::schemes::rings::polynomials::Outputs;
use crate::schemes::rings::tree::{DEGREE, Tree};
use crate::schemes::rings::{Places, in_passes, pass_queries, polynomials, queries};
use crate::{Error, Params, SchemeServer};

/// Results that are taken apart before they are summed up: their plaintexts stay in the second level's cache, and a sum is reduced
/// once for all of them.
const BLOCK: usize = 8;

pub(super) struct SealServer {
    places: Places,
    polynomials: Arc<dyn Placed>,
    threads: usize,
}

/// A query, expanded, modulo q and by values.
pub(super) struct Expanded {
    /// The first dimension: a mask and a body for each row.
    pub(super) first: Vec<u64>,
    /// The second: a leaf for each output.
    pub(super) second: Vec<Pair>,
}

impl SealServer {
    pub(super) fn new(params: &Params, device: &Device, mut operands: Vec<Arc<dyn Placed>>) -> Self {
        let threads = device.description().threads.max(1);
        let polynomials = operands.swap_remove(polynomials::POLYNOMIALS);
        Self { places: places(&params.geometry), polynomials, threads }
    }

    /// Answers as many queries as a pass has room for.
    fn pass(&self, work: &[(&[u8], &GaloisKeys)], cost: &mut Cost) -> Result<Vec<Vec<u8>>, Error> {
        let Self { places, polynomials, threads } = self;
        // A single query's work is shared out; of several queries each is.
        let inner = threads.div_ceil(work.len());
        let mut expanded = each(*threads, work, |(query, keys)| expand(places, query, keys, inner));
        let first = expanded.iter_mut().map(|query| std::mem::take(&mut query.first)).collect();
        // Of each query and part, the sums so far.
        let mut sums = vec![vec![Vec::new(); places.parts]; work.len()];
        let second = |query: usize, outputs: Outputs<'_>, threads| -> Vec<Vec<Pair>> {
            let leaves = &expanded[query].second;
            (0..places.parts).map(|part| second(places, leaves, outputs, part, threads)).collect()
        };
        polynomials::scan(&**polynomials, first, [places.parts, *threads], cost, second, |query, made| {
            sums[query].iter_mut().zip(made).for_each(|(sums, made)| add(sums, made));
        })?;
        Ok(sums.iter().map(|sums| answer(places, sums)).collect())
    }
}

impl SchemeServer for SealServer {
    fn answer(&self, queries: &[&[u8]], keys: &[&RegisteredKeys]) -> Result<(Vec<Vec<u8>>, Cost), Error> {
        in_passes(queries, keys, pass_queries(self.places.leaves * PAIR), |work, cost| self.pass(work, cost))
    }
}

/// Expands a query. Whatever its bytes, they are a seed and words.
pub(super) fn expand(places: &Places, query: &[u8], keys: &GaloisKeys, threads: usize) -> Expanded {
    let small = Tree::get().small();
    let leaves = queries::leaves(places, query, keys, threads);
    let switched =
        |leaf: &Ciphertext| leaf.switch_modulus(small).expect("a smaller prime of the same degree");
    let leaves = each(threads, &leaves, switched);
    let (rows, second) = leaves.split_at(places.rows);
    let mut first = Vec::with_capacity(places.rows * 2 * DEGREE);
    for leaf in rows {
        first.extend(leaf.pair().mask.words());
        first.extend(leaf.pair().body.words());
    }
    Expanded { first, second: second.iter().map(|leaf| leaf.pair().clone()).collect() }
}

/// The answer, from the sums of each part.
pub(super) fn answer(places: &Places, sums: &[Vec<Pair>]) -> Vec<u8> {
    let mut answer = Vec::with_capacity(places.parts * part_bytes(places));
    for sums in sums {
        sent(places).zip(sums).for_each(|(sent, sum)| sent.write(sum, &mut answer));
    }
    answer
}

/// The second dimension of a part: for each piece, the sum over outputs of a leaf times the piece of the output's result.
pub(super) fn second(
    places: &Places,
    leaves: &[Pair],
    outputs: Outputs<'_>,
    part: usize,
    threads: usize,
) -> Vec<Pair> {
    // Several ranges for each thread.
    let length = outputs.count.div_ceil(4 * threads).next_multiple_of(BLOCK);
    let end = outputs.first + outputs.count;
    let ranges: Vec<Range<usize>> =
        (outputs.first..end).step_by(length).map(|from| from..end.min(from + length)).collect();
    let sums = each(threads, &ranges, |range| sum(places, leaves, outputs, part, range.clone()));
    let mut all = Vec::new();
    sums.into_iter().for_each(|these| add(&mut all, these));
    all
}

/// Adds sums to those so far, of which there are none before the first.
fn add(all: &mut Vec<Pair>, these: Vec<Pair>) {
    if all.is_empty() {
        return *all = these;
    }
    let ring = Tree::get().small();
    for (all, this) in all.iter_mut().zip(&these) {
        ring.add(&mut all.mask, &this.mask);
        ring.add(&mut all.body, &this.body);
    }
}

fn sum(
    places: &Places,
    leaves: &[Pair],
    outputs: Outputs<'_>,
    part: usize,
    range: Range<usize>,
) -> Vec<Pair> {
    let ring = Tree::get().small();
    let mut sums: Vec<Pair> =
        (0..pieces(places)).map(|_| Pair { mask: ring.zero(), body: ring.zero() }).collect();
    for from in range.clone().step_by(BLOCK) {
        let block = from..range.end.min(from + BLOCK);
        let plain: Vec<Vec<Poly<Values>>> =
            block.clone().map(|at| plaintexts(places, outputs.pair(at, part))).collect();
        for (piece, sum) in sums.iter_mut().enumerate() {
            let pairs = |half: fn(&Pair) -> &Poly<Values>| -> Vec<[&Poly<Values>; 2]> {
                leaves[block.clone()]
                    .iter()
                    .map(half)
                    .zip(plain.iter().map(|plain| &plain[piece]))
                    .map(<[_; 2]>::from)
                    .collect()
            };
            ring.multiply_sum(&mut sum.mask, &pairs(|leaf| &leaf.mask));
            ring.multiply_sum(&mut sum.body, &pairs(|leaf| &leaf.body));
        }
    }
    sums
}

/// A result of the first dimension, a mask and a body, as plaintexts of the second: the low digits of the rounded mask and its
/// high ones, then those of what is kept of the body, centred.
pub(super) fn plaintexts(places: &Places, result: &[u64]) -> Vec<Poly<Values>> {
    let ring = Tree::get().small();
    let q = ring.modulus() as u64;
    let mut words = Vec::with_capacity(pieces(places) * DEGREE);
    for (half, kept) in result.chunks_exact(DEGREE).zip([DEGREE, places.window()]) {
        let half = ring.polynomial(half.to_vec()).expect("a device gives residues");
        let half = rounded(half, ROUNDED_BITS, kept);
        for digit in 0..DIGITS as u32 {
            let digits = half.iter().map(|word| word >> (digit * DIGIT_BITS) & ((1 << DIGIT_BITS) - 1));
            words.extend(digits.map(|digit| polynomials::centred(q, DIGIT_BITS, digit)));
        }
    }
    words.resize(pieces(places) * DEGREE, 0);
    let plaintext = |words: &[u64]| ring.polynomial(words.to_vec()).expect("digits are residues");
    words.chunks_exact(DEGREE).map(|words| ring.forward(plaintext(words))).collect()
}
