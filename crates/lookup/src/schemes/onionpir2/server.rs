//! The server's half: expand, scan, fold, round.

use std::sync::Arc;

use blindcore_accel::{Cost, Device, Placed};
use blindcore_rlwe::{Ciphertext, Noise, Pair, Rgsw, Ring};

use super::keys::Registered;
use super::params::{BIT_LEAVES, Gadgets, PAIR, folds, places, sent};
use crate::registration::RegisteredKeys;
use crate::schemes::parallel::each;
use crate::schemes::rings::polynomials::{Outputs, TOGETHER};
use crate::schemes::rings::tree::{DEGREE, Tree};
use crate::schemes::rings::{Places, in_passes, pass_queries, polynomials, queries};
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
        let Self { places, polynomials, threads } = self;
        // A single query's work is shared out; of several queries each is.
        let inner = threads.div_ceil(work.len());
        let mut expanded = each(*threads, work, |(query, keys)| expand(places, query, keys, inner));
        let first = expanded.iter_mut().map(|query| std::mem::take(&mut query.first)).collect();
        // Of each query and part, what the first levels leave.
        let mut levels = vec![vec![Vec::new(); places.parts]; work.len()];
        let low = |query: usize, outputs: Outputs<'_>, threads| -> Vec<Vec<Ciphertext>> {
            (0..places.parts).map(|part| low(places, &expanded[query], outputs, part, threads)).collect()
        };
        polynomials::scan(&**polynomials, first, [places.parts, *threads], cost, low, |query, made| {
            levels[query].iter_mut().zip(made).for_each(|(level, made)| level.extend(made));
        })?;
        let left: Vec<_> = expanded.iter().zip(&levels).collect();
        Ok(each(*threads, &left, |(query, levels)| {
            let sent = sent(places);
            let mut answer = Vec::with_capacity(places.parts * sent.bytes());
            levels.iter().for_each(|level| sent.write(&high(places, query, level, inner), &mut answer));
            answer
        }))
    }
}

impl SchemeServer for OnionServer {
    fn answer(&self, queries: &[&[u8]], keys: &[&RegisteredKeys]) -> Result<(Vec<Vec<u8>>, Cost), Error> {
        in_passes(queries, keys, pass_queries(self.places.rows * PAIR), |work, cost| self.pass(work, cost))
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

/// Levels of folding that outputs which come together go through.
const LOW: u32 = TOGETHER.ilog2();

/// The first levels of folding of a part: of each two neighbours the one that a bit says, level by level.
pub(super) fn low(
    places: &Places,
    query: &Expanded,
    outputs: Outputs<'_>,
    part: usize,
    threads: usize,
) -> Vec<Ciphertext> {
    let (folding, height) = (Folding { query, outputs, part }, LOW.min(folds(places)));
    let end = outputs.first + outputs.count;
    let subtrees: Vec<usize> = (outputs.first..end).step_by(1 << height).collect();
    each(threads, &subtrees, |first| folding.tree(*first, (end - first).min(1 << height), height))
}

/// The other levels, of what the first ones leave.
pub(super) fn high(places: &Places, query: &Expanded, left: &[Ciphertext], threads: usize) -> Pair {
    let mut level = left.to_vec();
    for bit in query.bits.get(LOW as usize..folds(places) as usize).unwrap_or_default() {
        let pairs: Vec<&[Ciphertext]> = level.chunks(2).collect();
        level = each(threads, &pairs, |pair| match pair {
            [zero, one] => bit.choose(zero.clone(), one.clone()),
            // The other does not exist, and nothing is owed to a client that asks for it.
            alone => alone[0].clone(),
        });
    }
    level.swap_remove(0).pair().clone()
}

struct Folding<'a> {
    query: &'a Expanded,
    outputs: Outputs<'a>,
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
            // The other does not exist.
            return zero;
        }
        let one = self.tree(first + half, count - half, height - 1);
        self.query.bits[height as usize - 1].choose(zero, one)
    }

    fn output(&self, at: usize) -> Ciphertext {
        let tree = Tree::get();
        let ring: &Arc<Ring> = tree.small();
        let (mask, body) = self.outputs.pair(at, self.part).split_at(DEGREE);
        let [mask, body] =
            [mask, body].map(|words| ring.polynomial(words.to_vec()).expect("a device gives residues"));
        Ciphertext::from_pair(&tree.parameters, ring, Pair { mask, body }, Noise::NONE)
    }
}
