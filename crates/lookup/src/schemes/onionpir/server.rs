//! The server's half, stage by stage: expand, scan the first dimension, choose by external products in the later ones, round.

use std::sync::Arc;

use blindcore_accel::{Cost, Device, Placed};
use blindcore_math::MaskSeed;
use blindcore_rlwe::rounding::{Rounding, pack};
use blindcore_rlwe::{Ciphertext, Noise, Pair, Poly, Rgsw, Values};

use super::keys::Registered;
use super::params::{DEGREE, LATER, POLYNOMIALS, Places, Set, pass_queries};
use crate::registration::RegisteredKeys;
use crate::schemes::parallel::each;
use crate::schemes::rings::polynomials::{Outputs, TOGETHER, scan};
use crate::schemes::rings::{SEED_BYTES, grown, in_passes};
use crate::{Error, Params, SchemeServer};

pub(super) struct OnionServer {
    set: &'static Set,
    places: Places,
    polynomials: Arc<dyn Placed>,
    threads: usize,
}

/// A query, expanded.
pub(super) struct Expanded {
    /// The first dimension modulo q, by values: for each row the masks of its pieces, then their bodies.
    pub(super) first: Vec<u64>,
    /// Encrypted factors: for each later dimension, one for each choice but the first.
    pub(super) factors: Vec<Rgsw>,
}

impl OnionServer {
    pub(super) fn new(
        set: &'static Set,
        params: &Params,
        device: &Device,
        mut operands: Vec<Arc<dyn Placed>>,
    ) -> Self {
        let threads = device.description().threads.max(1);
        let polynomials = operands.swap_remove(POLYNOMIALS);
        Self { set, places: Places::new(&set.sizes, &params.geometry), polynomials, threads }
    }

    /// Answers as many queries as a pass has room for.
    fn pass(&self, work: &[(&[u8], &Registered)], cost: &mut Cost) -> Result<Vec<Vec<u8>>, Error> {
        let Self { set, places, polynomials, threads } = self;
        // A single query's work is shared out; of several queries each is.
        let inner = threads.div_ceil(work.len());
        let mut expanded = each(*threads, work, |(query, keys)| expand(set, places, query, keys, inner));
        let first = expanded.iter_mut().map(|query| std::mem::take(&mut query.first)).collect();
        // Of each query and part, what the first of the later dimensions leave.
        let mut left = vec![vec![Vec::new(); places.parts]; work.len()];
        let middle = |query: usize, outputs: Outputs<'_>, threads| -> Vec<Vec<Ciphertext>> {
            (0..places.parts)
                .map(|part| middle(set, places, &expanded[query], outputs, part, threads))
                .collect()
        };
        scan(&**polynomials, first, [places.parts, *threads], cost, middle, |query, made| {
            left[query].iter_mut().zip(made).for_each(|(left, made)| left.extend(made));
        })?;
        let left: Vec<_> = expanded.iter().zip(left).collect();
        Ok(each(*threads, &left, |(query, left)| {
            let mut answer = Vec::with_capacity(places.parts * places.sent_bytes(&set.sizes));
            for left in left {
                round(set, places, &last(places, query, left.clone(), inner), &mut answer);
            }
            answer
        }))
    }
}

impl SchemeServer for OnionServer {
    fn answer(&self, queries: &[&[u8]], keys: &[&RegisteredKeys]) -> Result<(Vec<Vec<u8>>, Cost), Error> {
        let most = pass_queries(&self.set.sizes, &self.places);
        in_passes(queries, keys, most, |work, cost| self.pass(work, cost))
    }
}

/// Stage 1: expands a query. Whatever its bytes, they are a seed and words.
pub(super) fn expand(
    set: &Set,
    places: &Places,
    query: &[u8],
    keys: &Registered,
    threads: usize,
) -> Expanded {
    let rings = set.rings();
    let small = rings.small();
    let mut leaves = leaves(set, places, query, keys, threads);
    let rows = leaves.split_off(places.picking());
    let switched = each(threads, &leaves, |leaf| leaf.switch_modulus(small).expect("a shorter chain"));
    let mut first = Vec::with_capacity(places.picking() * 2 * small.words());
    for row in switched.chunks_exact(set.sizes.pieces) {
        row.iter().for_each(|leaf| first.extend(leaf.pair().mask.words()));
        row.iter().for_each(|leaf| first.extend(leaf.pair().body.words()));
    }
    let rows: Vec<&[Ciphertext]> = rows.chunks_exact(rings.fold.digits()).collect();
    let factors = each(threads, &rows, |rows| {
        let rows = rows.iter().map(|row| row.pair().clone()).collect();
        Rgsw::from_rows(&keys.square, small, rows, rings.fold, Noise::NONE, 1.0).expect("a shorter chain")
    });
    Expanded { first, factors }
}

/// The leaves of a query, modulo Q.
pub(super) fn leaves(
    set: &Set,
    places: &Places,
    query: &[u8],
    keys: &Registered,
    threads: usize,
) -> Vec<Ciphertext> {
    let (rings, bytes) = (set.rings(), set.sizes.residue_bytes());
    let (large, small) = (rings.large(), rings.small());
    let (seed, body) = query.split_at(SEED_BYTES);
    let seed = MaskSeed(seed.try_into().expect("it was cut so"));
    // What leads to no leaf was not sent, and may be anything.
    let mut words = vec![0; small.words()];
    let sent = body.chunks_exact(places.asked() * bytes);
    for ((words, sent), q) in words.chunks_exact_mut(DEGREE).zip(sent).zip(small.primes()) {
        let mut sent = sent.chunks_exact(bytes).map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            q.reduce(u128::from(u64::from_le_bytes(word)))
        });
        for run in words.chunks_exact_mut(1 << places.height) {
            run[..places.leaves()].iter_mut().zip(&mut sent).for_each(|(word, sent)| *word = sent);
        }
    }
    let body = small.forward(small.polynomial(words).expect("residues"));
    let factor = rings.lift();
    let lift = |mut half: Poly<Values>| {
        small.scale(&mut half, factor);
        let mut words = half.words().to_vec();
        words.resize(large.words(), 0);
        large.polynomial(words).expect("residues")
    };
    let pair = Pair { mask: lift(small.uniform(seed, 0)), body: lift(body) };
    let root = Ciphertext::from_pair(&rings.parameters, large, pair, Noise::NONE);
    grown(&keys.tree, places.height, &[(root, places.leaves())], threads)
}

/// Levels that outputs which come together go through.
fn together(places: &Places) -> u32 {
    TOGETHER.ilog(LATER).min(places.levels)
}

/// Stage 3, its first levels: of each four neighbouring outputs of a part the one that a dimension's factors say, level by level.
pub(super) fn middle(
    set: &Set,
    places: &Places,
    query: &Expanded,
    outputs: Outputs<'_>,
    part: usize,
    threads: usize,
) -> Vec<Ciphertext> {
    let (choosing, level) = (Choosing { set, query, outputs, places, part }, together(places));
    let end = outputs.first + outputs.count;
    let subtrees: Vec<usize> = (outputs.first..end).step_by(LATER.pow(level)).collect();
    each(threads, &subtrees, |first| choosing.tree(first / LATER.pow(level), level))
}

/// Stage 3, its last levels, of what the first ones leave.
pub(super) fn last(
    places: &Places,
    query: &Expanded,
    mut left: Vec<Ciphertext>,
    threads: usize,
) -> Ciphertext {
    for level in together(places)..places.levels {
        let fours: Vec<&[Ciphertext]> = left.chunks(LATER).collect();
        left = each(threads, &fours, |four| one_of(places, query, level, four.iter().cloned()));
    }
    left.swap_remove(0)
}

/// The first one where all factors of a level are 0, else that of the factor that is 1: where it is 1, a product puts its own in the place
/// of what came before. Fewer than there are factors is well; no client that asks for the others gets anything.
fn one_of(
    places: &Places,
    query: &Expanded,
    level: u32,
    mut these: impl Iterator<Item = Ciphertext>,
) -> Ciphertext {
    let first = these.next().expect("an output at least");
    let factors = &query.factors[places.first_factor(level)..];
    these.zip(factors).fold(first, |left, (other, factor)| factor.choose(left, other))
}

struct Choosing<'a> {
    set: &'a Set,
    query: &'a Expanded,
    outputs: Outputs<'a>,
    places: &'a Places,
    part: usize,
}

impl Choosing<'_> {
    /// The one that `level` levels leave of 4^`level` outputs, of which the first is `at` 4^`level`. It goes depth first, so that what it
    /// chose last is still in the cache.
    fn tree(&self, at: usize, level: u32) -> Ciphertext {
        let Some(below) = level.checked_sub(1) else { return self.output(at) };
        let there = (self.outputs.first + self.outputs.count).div_ceil(LATER.pow(below));
        let four = (at * LATER..(at * LATER + LATER).min(there)).map(|at| self.tree(at, below));
        one_of(self.places, self.query, below, four)
    }

    fn output(&self, at: usize) -> Ciphertext {
        let rings = self.set.rings();
        let ring = rings.small();
        let (mask, body) = self.outputs.pair(at, self.part).split_at(ring.words());
        let [mask, body] =
            [mask, body].map(|words| ring.polynomial(words.to_vec()).expect("a device gives residues"));
        Ciphertext::from_pair(&rings.parameters, ring, Pair { mask, body }, Noise::NONE)
    }
}

/// Stage 4: a ciphertext modulo one prime, rounded as it is sent: of the body only the window that the slot lies in.
pub(super) fn round(set: &Set, places: &Places, left: &Ciphertext, answer: &mut Vec<u8>) {
    let (sizes, ring) = (&set.sizes, set.rings().last());
    let left = left.switch_modulus(ring).expect("a shorter chain");
    let Pair { mask, body } = left.pair();
    for (half, bits, kept) in [(mask, sizes.mask_bits, DEGREE), (body, sizes.body_bits, places.window())] {
        let rounding = Rounding::new(ring.primes()[0], bits);
        let half = ring.inverse(half.clone());
        let words: Vec<u64> = half.words()[..kept].iter().map(|word| rounding.down(*word)).collect();
        pack(&words, bits, answer);
    }
}
