//! The server's half: scan, gather, round.

use std::sync::Arc;

use blindcore_accel::{Cost, Device, Placed, Words};
use blindcore_math::MaskSeed;
use blindcore_rlwe::rounding::{Rounding, pack, packed_bytes, unpack};
use blindcore_rlwe::{Ciphertext, Noise, Pair};

use super::keys::Registered;
use super::params::{
    BODY_BITS, DEGREE, MASK_BITS, POLYNOMIALS, Places, QUERY_BITS, ROW, Rings, pass_queries,
};
use crate::registration::RegisteredKeys;
use crate::schemes::parallel::each;
use crate::schemes::rings::{SEED_BYTES, in_passes};
use crate::{Error, Params, SchemeServer};

pub(super) struct FastServer {
    places: Places,
    polynomials: Arc<dyn Placed>,
    threads: usize,
}

impl FastServer {
    pub(super) fn new(params: &Params, device: &Device, mut operands: Vec<Arc<dyn Placed>>) -> Self {
        let threads = device.description().threads.max(1);
        let polynomials = operands.swap_remove(POLYNOMIALS);
        Self { places: Places::new(&params.geometry), polynomials, threads }
    }

    /// Answers as many queries as a pass has room for.
    fn pass(&self, work: &[(&[u8], &Registered)], cost: &mut Cost) -> Result<Vec<Vec<u8>>, Error> {
        let columns: Vec<(&[u8], usize)> = work
            .iter()
            .flat_map(|(query, _)| (0..self.places.columns).map(|column| (*query, column)))
            .collect();
        let words = each(self.threads, &columns, |(query, column)| received(query, *column)).concat();
        let (outputs, this) = self.polynomials.run(&Words::U64(words))?;
        *cost += &this;
        let outputs = outputs.into_u64()?;
        let gathering: Vec<(&Registered, &[u64])> = work
            .iter()
            .map(|(_, keys)| *keys)
            .zip(outputs.chunks_exact(outputs.len() / work.len()))
            .collect();
        // A single query's subtrees are shared out; of several queries each is.
        let inner = self.threads.div_ceil(work.len());
        Ok(each(self.threads, &gathering, |(keys, outputs)| {
            let mut answer = Vec::with_capacity(self.places.answers() * self.places.sent_bytes());
            for at in 0..self.places.answers() {
                round(&self.places, &gather(&self.places, keys, outputs, at, inner), &mut answer);
            }
            answer
        }))
    }
}

impl SchemeServer for FastServer {
    fn answer(&self, queries: &[&[u8]], keys: &[&RegisteredKeys]) -> Result<(Vec<Vec<u8>>, Cost), Error> {
        in_passes(queries, keys, pass_queries(&self.places), |work, cost| self.pass(work, cost))
    }
}

/// A column's ciphertext of a query, by values: mask, then body. Whatever the query's bytes, they are a seed and words.
pub(super) fn received(query: &[u8], column: usize) -> Vec<u64> {
    let ring = Rings::get().ring();
    let (seed, bodies) = query.split_at(SEED_BYTES);
    let seed = MaskSeed(seed.try_into().expect("it was cut so"));
    let bytes = packed_bytes(DEGREE, QUERY_BITS);
    let rounding = Rounding::new(ring.primes()[0], QUERY_BITS);
    let body = unpack(&bodies[column * bytes..][..bytes], QUERY_BITS).map(|word| rounding.up(word)).collect();
    let body = ring.forward(ring.polynomial(body).expect("rounded to residues"));
    [ring.uniform(seed, column as u64).words(), body.words()].concat()
}

/// Gathers the outputs of a ciphertext of an answer: lane t of each cell comes t slots behind the cell's first.
///
/// Two outputs become one where the second is turned by as many slots as the first has lanes, level by level: as many rotations as there
/// are outputs, and a key for each level.
pub(super) fn gather(
    places: &Places,
    keys: &Registered,
    outputs: &[u64],
    answer: usize,
    threads: usize,
) -> Pair {
    let of = places.outputs_of(answer);
    let gathering = Gathering { places, keys, outputs: &outputs[of.start * 2 * DEGREE..of.end * 2 * DEGREE] };
    let (count, levels) = (of.len(), of.len().next_power_of_two().ilog2());
    if threads <= 1 || levels < 3 {
        return gathering.tree(0, count, levels).pair().clone();
    }
    // Several subtrees for each thread.
    let height = levels - (threads.next_power_of_two().ilog2() + 2).min(levels - 1);
    let subtrees: Vec<usize> = (0..count).step_by(1 << height).collect();
    let mut level =
        each(threads, &subtrees, |first| gathering.tree(*first, (count - first).min(1 << height), height));
    for at in height..levels {
        let pairs: Vec<&[Ciphertext]> = level.chunks(2).collect();
        level = each(threads, &pairs, |pair| match pair {
            [zero, one] => gathering.join(zero.clone(), one, at),
            alone => alone[0].clone(),
        });
    }
    level.swap_remove(0).pair().clone()
}

struct Gathering<'a> {
    places: &'a Places,
    keys: &'a Registered,
    outputs: &'a [u64],
}

impl Gathering<'_> {
    /// `count` outputs from `first` on, 2^`height` at most: depth first, so that what was gathered last is in the cache.
    fn tree(&self, first: usize, count: usize, height: u32) -> Ciphertext {
        if height == 0 {
            return self.output(first);
        }
        let half = 1usize << (height - 1);
        let zero = self.tree(first, count.min(half), height - 1);
        if count <= half {
            return zero;
        }
        self.join(zero, &self.tree(first + half, count - half, height - 1), height - 1)
    }

    /// Of 2^`level` outputs each.
    fn join(&self, zero: Ciphertext, one: &Ciphertext, level: u32) -> Ciphertext {
        let lanes = self.places.slots << level;
        // What fills half of the lanes goes to the other row.
        let level = if lanes == self.places.lanes() / 2 { ROW.ilog2() } else { lanes.ilog2() };
        let mut sum = self.keys.turn(level, one);
        sum.add(&zero);
        sum
    }

    fn output(&self, at: usize) -> Ciphertext {
        let rings = Rings::get();
        let words = &self.outputs[at * 2 * DEGREE..][..2 * DEGREE];
        let [mask, body] = [&words[..DEGREE], &words[DEGREE..]]
            .map(|words| rings.ring().polynomial(words.to_vec()).expect("a device gives residues"));
        Ciphertext::from_pair(&rings.parameters, rings.ring(), Pair { mask, body }, Noise::NONE)
    }
}

/// A ciphertext as it is sent: of the body only the coefficients that its lanes decide.
///
/// Were it turned by multiples of n/2 slots and summed up, so that all lanes came again every n/2 slots, its plaintext would have just
/// these coefficients, each d/n times. The client multiplies by d/n itself.
pub(super) fn round(places: &Places, pair: &Pair, answer: &mut Vec<u8>) {
    let ring = Rings::get().ring();
    for (half, bits, step) in [(&pair.mask, MASK_BITS, 1), (&pair.body, BODY_BITS, places.step())] {
        let rounding = Rounding::new(ring.primes()[0], bits);
        let half = ring.inverse(half.clone());
        let words: Vec<u64> = half.words().iter().step_by(step).map(|word| rounding.down(*word)).collect();
        pack(&words, bits, answer);
    }
}
