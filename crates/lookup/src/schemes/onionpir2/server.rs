//! The server's half: expand, scan, fold, round.

use std::sync::Arc;

use blindcore_accel::{Cost, Device, Placed};
use blindcore_rlwe::{Ciphertext, Noise, Pair, Rgsw, Ring};

use super::keys::Registered;
use super::params::{BIT_LEAVES, Gadgets, folds, pass_queries, places, sent};
use crate::registration::RegisteredKeys;
use crate::schemes::parallel::each;
use crate::schemes::rings::tree::{DEGREE, Tree};
use crate::schemes::rings::{Places, in_passes, polynomials, queries};
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
        let polynomials = operands.swap_remove(polynomials::POLYNOMIALS);
        Self { places: places(&params.geometry), polynomials, threads }
    }

    /// Answers as many queries as a pass has room for.
    fn pass(&self, work: &[(&[u8], &Registered)], cost: &mut Cost) -> Result<Vec<Vec<u8>>, Error> {
        // A single query's work is shared out; of several queries each is.
        let inner = self.threads.div_ceil(work.len());
        let mut expanded = each(self.threads, work, |(query, keys)| expand(&self.places, query, keys, inner));
        let first = expanded.iter_mut().map(|query| std::mem::take(&mut query.first)).collect();
        let outputs = polynomials::scan(&*self.polynomials, first, cost)?;
        let folding: Vec<(&Expanded, &[u64])> =
            expanded.iter().zip(outputs.chunks_exact(outputs.len() / work.len())).collect();
        Ok(each(self.threads, &folding, |(query, outputs)| self.answer_one(query, outputs, inner)))
    }

    fn answer_one(&self, query: &Expanded, outputs: &[u64], threads: usize) -> Vec<u8> {
        let sent = sent(&self.places);
        let mut answer = Vec::with_capacity(self.places.parts * sent.bytes());
        for part in 0..self.places.parts {
            sent.write(&fold(&self.places, query, outputs, part, threads), &mut answer);
        }
        answer
    }
}

impl SchemeServer for OnionServer {
    fn answer(&self, queries: &[&[u8]], keys: &[&RegisteredKeys]) -> Result<(Vec<Vec<u8>>, Cost), Error> {
        in_passes(queries, keys, pass_queries(&self.places), |work, cost| self.pass(work, cost))
    }
}

/// Expands a query. Whatever its bytes, they are a seed and words.
pub(super) fn expand(places: &Places, query: &[u8], keys: &Registered, threads: usize) -> Expanded {
    let small = Tree::get().small();
    let leaves = queries::leaves(places, query, &keys.tree, threads);
    let (rows, bits) = leaves.split_at(places.rows);
    let switched =
        |leaf: &Ciphertext| leaf.switch_modulus(small).expect("a smaller prime of the same degree");
    let mut first = Vec::with_capacity(places.rows * 2 * DEGREE);
    for leaf in each(threads, rows, switched) {
        first.extend(leaf.pair().mask.words());
        first.extend(leaf.pair().body.words());
    }
    let bits: Vec<&[Ciphertext]> = bits.chunks_exact(BIT_LEAVES).collect();
    let bits = each(threads, &bits, |rows| {
        let rows = rows.iter().map(|row| row.pair().clone()).collect();
        Rgsw::from_rows(&keys.square, small, rows, Gadgets::get().fold, Noise::NONE, 1.0)
            .expect("a smaller prime of the same degree")
    });
    Expanded { first, bits }
}

/// Folds the outputs of a part: of each two neighbours the one that a bit says, level by level.
pub(super) fn fold(places: &Places, query: &Expanded, outputs: &[u64], part: usize, threads: usize) -> Pair {
    let (folding, folds) = (Folding { query, outputs, places, part }, folds(places));
    if threads <= 1 || folds < 3 {
        return folding.tree(0, places.outputs, folds).pair().clone();
    }
    // Several subtrees for each thread.
    let height = folds - (threads.next_power_of_two().ilog2() + 1).min(folds - 1);
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
        let tree = Tree::get();
        let ring: &Arc<Ring> = tree.small();
        let words = &self.outputs[(at * self.places.parts + self.part) * 2 * DEGREE..][..2 * DEGREE];
        let [mask, body] = [&words[..DEGREE], &words[DEGREE..]]
            .map(|words| ring.polynomial(words.to_vec()).expect("a device gives residues"));
        Ciphertext::from_pair(&tree.parameters, ring, Pair { mask, body }, Noise::NONE)
    }
}
