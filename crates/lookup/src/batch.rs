//! Batches: many keys in one request, each asked of a small table of its own.
//!
//! ```text
//!   build    each record lies in three of the buckets, those that its key hashes to; a bucket is a small table
//!   ask      key ──▶ one of its three buckets, no two keys the same       every bucket gets one query,
//!            no key ──▶ what lies first in the bucket                     whatever is asked for
//! ```
//!
//! So a request of 256 keys takes what three lookups take, and the work that goes with a query once for each bucket.
//! Buckets without a key get a query too, which a server can't tell from others. A key that finds no bucket is not
//! answered; the number of queries stays what it was, and nothing else is asked because of it.
//!
//! Sources: probabilistic batch codes by cuckoo hashing, Angel, Chen, Laine and Setty, "PIR with Compressed Queries and
//! Amortized Query Processing" (2018), section 5. Keys are placed by local search, Khosla, "Balls into Bins Made Faster"
//! (2013), here with the same work whatever the keys.

use std::ops::Range;
use std::sync::Arc;

use blindcore_accel::{Cost, Device, SharedBytes};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::constant_time::{equal_mask, less_mask};
pub use crate::keyword::CHOICES;
use crate::keyword::{ARITY, FINGERPRINT_BYTES, Index, KeyHash, MIN_COLUMNS, columns_for, fullest};
use crate::params::{Geometry, Params};
use crate::schemes::parallel;
use crate::{Decoded, Error, RegisteredKeys, Selection, Server};

/// The fewest keys of a batch.
pub const MIN_KEYS: usize = 8;
/// The most keys of a batch: placing takes a client the square of them.
pub const MAX_KEYS: usize = 1024;
/// The most buckets of a table's batches.
pub const MAX_BUCKETS: usize = 4096;
/// At most once in two to this, a batch has a key that finds no bucket.
const FAILURE_LIMIT_LOG2: f64 = 40.0;
/// A key is given up that would push as many others on. The bound below does not count this limit: random keys never come near
/// it.
const MAX_LABEL: u32 = 48;
/// Steps of placing for each key, of which random keys take 1.1.
const STEPS: usize = 8;

/// Keys of a batch, and the buckets that they are asked of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buckets {
    keys: usize,
    count: usize,
}

impl Buckets {
    /// The fewest buckets for batches of this many keys: half as many again, or more where so few would fail more often than
    /// once in 2^40.
    ///
    /// # Errors
    /// The keys are not [`MIN_KEYS`] to [`MAX_KEYS`].
    pub fn for_keys(keys: usize) -> Result<Self, Error> {
        let (got, min, max) = (keys as u64, MIN_KEYS as u64, MAX_KEYS as u64);
        if !(min..=max).contains(&got) {
            let remedy = "choose another size of batches";
            return Err(Error::Range { what: "number of keys of a batch", got, min, max, remedy });
        }
        let mut count = keys + keys.div_ceil(2);
        while failure_log2(keys, count) < FAILURE_LIMIT_LOG2 {
            count += 1;
        }
        Ok(Self { keys, count })
    }

    /// What a table says of its batches.
    ///
    /// # Errors
    /// The keys are out of range, or there are fewer buckets than they need, or more than [`MAX_BUCKETS`].
    pub fn new(keys: usize, count: usize) -> Result<Self, Error> {
        let least = Self::for_keys(keys)?;
        let (got, min, max) = (count as u64, least.count as u64, MAX_BUCKETS as u64);
        if !(min..=max).contains(&got) {
            let remedy = "build the table's batches again";
            return Err(Error::Range { what: "number of buckets", got, min, max, remedy });
        }
        Ok(Self { keys, count })
    }

    /// The most keys of a batch.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// How many buckets there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The mean number of records in a bucket, of a table with `of` records.
    #[must_use]
    pub fn records(&self, of: u64) -> u64 {
        of.saturating_mul(CHOICES as u64).div_ceil(self.count as u64)
    }

    /// Parameters of a bucket with enough columns for the fullest group of all buckets, estimated for a table of `records` records
    /// before it is built.
    ///
    /// # Errors
    /// As [`Params::new`].
    pub fn filled(&self, bucket: Params, records: u64) -> Result<Params, Error> {
        let groups = bucket.geometry.groups.saturating_mul(self.count);
        let columns = columns_for(fullest(records.saturating_mul(CHOICES as u64), groups));
        Params::new(bucket.scheme, Geometry { columns: columns.max(MIN_COLUMNS), ..bucket.geometry })
    }

    /// -log2 of a bound on the probability that some key of a batch finds no bucket, over the table's salt.
    #[must_use]
    pub fn failure_log2(&self) -> f64 {
        failure_log2(self.keys, self.count)
    }
}

/// The bound: some s of the keys have but s - 1 buckets among them (Hall). Of the fewest such keys, each of these buckets is
/// hit twice at least, or one key less would do. So for each s the choices of keys and buckets, times the probability that
/// 3 s hits fall on s - 1 buckets, each on two at least: their number is at most (3s)! (e^x - 1 - x)^(s-1) / x^(3s) for any x.
fn failure_log2(keys: usize, buckets: usize) -> f64 {
    let mut factorial = vec![0.0; CHOICES * keys.max(buckets) + 1];
    for n in 1..factorial.len() {
        factorial[n] = factorial[n - 1] + (n as f64).ln();
    }
    let choose = |n: usize, k: usize| factorial[n] - factorial[k] - factorial[n - k];
    let ordered = factorial[buckets] - factorial[buckets - CHOICES];
    let of = |s: usize| {
        let (hits, hit) = ((CHOICES * s) as f64, (s - 1) as f64);
        let inside = s as f64 * (choose(s - 1, CHOICES) - choose(buckets, CHOICES));
        let twice = (1..=60).map(|tenth| {
            let x = f64::from(tenth) / 10.0;
            factorial[CHOICES * s] + hit * (x.exp_m1() - x).ln() - hits * x.ln() - s as f64 * ordered
        });
        let probability = twice.fold(inside, f64::min);
        (choose(keys, s) + choose(buckets, s - 1) + probability).exp()
    };
    let all: f64 = (CHOICES + 1..=keys.min(buckets)).map(of).sum();
    -all.log2()
}

/// The bytes of one of `count` buckets. The pieces hold all buckets, one after another.
///
/// # Panics
/// `bucket` is `count` or more, or the bytes do not divide into `count` equal parts.
#[must_use]
pub fn bucket(pieces: &[SharedBytes], count: usize, bucket: usize) -> Vec<SharedBytes> {
    struct Piece(SharedBytes, Range<usize>);
    impl AsRef<[u8]> for Piece {
        fn as_ref(&self) -> &[u8] {
            &(*self.0).as_ref()[self.1.clone()]
        }
    }
    let total: usize = pieces.iter().map(|piece| (**piece).as_ref().len()).sum();
    assert!(bucket < count && total.is_multiple_of(count), "there is as much of each bucket");
    let (start, end) = (bucket * (total / count), (bucket + 1) * (total / count));
    let mut at = 0;
    let cut = |piece: &SharedBytes| {
        let first = at;
        at += (**piece).as_ref().len();
        let range = start.max(first)..end.min(at);
        let inside = range.start.saturating_sub(first)..range.end.saturating_sub(first);
        (range.start < range.end).then(|| Arc::new(Piece(piece.clone(), inside)) as SharedBytes)
    };
    pieces.iter().filter_map(cut).collect()
}

/// A part of a table, in place: one matrix, or those of all buckets, which answer batches.
pub struct BatchServer {
    /// Of the same parameters, at least one.
    servers: Vec<Server>,
    /// Buckets that are answered side by side, at most.
    threads: usize,
}

/// What came of queries or batches.
pub struct Answered {
    /// An answer to each: of a batch, those of its buckets one after another, and behind them a bit for each bucket, the lowest of a
    /// byte first, which is 1 where it was not answered and its answer is zeros.
    pub answers: Vec<Vec<u8>>,
    /// Buckets that were not answered, and why.
    pub failed: Vec<(usize, Error)>,
    /// What it cost. Buckets that are answered side by side count one after another.
    pub cost: Cost,
}

impl From<Server> for BatchServer {
    fn from(server: Server) -> Self {
        Self { servers: vec![server], threads: 1 }
    }
}

impl BatchServer {
    /// Places operands, each of which holds that of `buckets` buckets, one after another, in pieces of whole stripes. As many
    /// buckets are answered side by side as the device has threads; where they are fewer, each is shared out.
    ///
    /// # Errors
    /// As [`Server::new`], of a bucket.
    ///
    /// # Panics
    /// `buckets` is 0, or does not divide an operand's length.
    pub fn new(
        params: Params,
        buckets: usize,
        device: &Device,
        operands: &[Vec<SharedBytes>],
    ) -> Result<Self, Error> {
        let of = |number| operands.iter().map(|pieces| bucket(pieces, buckets, number)).collect();
        let threads = device.description().threads;
        let threads = if threads <= buckets { threads } else { 1 };
        let own = if threads > 1 { &device.side_by_side() } else { device };
        let servers = (0..buckets).map(|number| Server::new(params, own, of(number)));
        Self::of(servers.collect::<Result<_, _>>()?, threads)
    }

    /// Servers of buckets in place, in the buckets' order; up to `threads` of them answer side by side.
    ///
    /// # Errors
    /// They are not of the same parameters.
    ///
    /// # Panics
    /// `servers` is empty.
    pub fn of(servers: Vec<Server>, threads: usize) -> Result<Self, Error> {
        let params = *servers.first().expect("a bucket at least").params();
        if servers.iter().any(|server| *server.params() != params) {
            return Err(Error::Foreign);
        }
        Ok(Self { servers, threads })
    }

    /// The parameters of each bucket.
    #[must_use]
    pub fn params(&self) -> &Params {
        self.servers[0].params()
    }

    /// How many buckets there are: 1 where the part is one matrix.
    #[must_use]
    pub fn buckets(&self) -> usize {
        self.servers.len()
    }

    /// Answers queries or, of several buckets, batches: a query of each bucket, one after another. Up to
    /// [`crate::MAX_GATHER`] are answered in one pass over the buckets. A bucket that fails leaves the others answered.
    ///
    /// # Errors
    /// As [`Server::answer_under`], where no bucket answers.
    pub fn answer_under(&self, queries: &[&[u8]], keys: &[&RegisteredKeys]) -> Result<Answered, Error> {
        if let [server] = &self.servers[..] {
            let (answers, cost) = server.answer_under(queries, keys)?;
            return Ok(Answered { answers, failed: Vec::new(), cost });
        }
        let (buckets, params) = (self.servers.len(), self.params());
        let (asked, each) = (params.query_bytes(), params.answer_bytes());
        let want = buckets * asked;
        if let Some(batch) = queries.iter().find(|batch| batch.len() != want) {
            let remedy = "ask each bucket one query";
            return Err(Error::Length { what: "batch", got: batch.len(), want, remedy });
        }
        let servers: Vec<(usize, &Server)> = self.servers.iter().enumerate().collect();
        let results = parallel::each(self.threads, &servers, |(bucket, server)| {
            let of: Vec<&[u8]> = queries.iter().map(|batch| &batch[bucket * asked..][..asked]).collect();
            server.answer_under(&of, keys)
        });
        let mut answers = vec![vec![0; buckets * each + buckets.div_ceil(8)]; queries.len()];
        let (mut failed, mut cost) = (Vec::new(), Cost::default());
        for (bucket, result) in results.into_iter().enumerate() {
            match result {
                Ok((found, this)) => {
                    cost += &this;
                    for (answer, found) in answers.iter_mut().zip(found) {
                        answer[bucket * each..][..each].copy_from_slice(&found);
                    }
                }
                Err(error) => {
                    let said = buckets * each + bucket / 8;
                    answers.iter_mut().for_each(|answer| answer[said] |= 1 << (bucket % 8));
                    failed.push((bucket, error));
                }
            }
        }
        if failed.len() == buckets {
            return Err(failed.swap_remove(0).1);
        }
        Ok(Answered { answers, failed, cost })
    }
}

/// Where the keys of a table's batches lie. It is public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchIndex {
    index: Index,
    salt: [u8; 32],
    buckets: Buckets,
    /// Groups of a bucket.
    groups: usize,
}

/// A slot that a key may be asked by.
#[derive(Zeroize, ZeroizeOnDrop)]
struct Candidate {
    bucket: u32,
    columns: [u32; ARITY],
    /// Within its bucket.
    group: u32,
    fingerprint: [u8; FINGERPRINT_BYTES],
    order: u128,
}

impl BatchIndex {
    /// The index of buckets, each of this geometry, with a seed for each group of each.
    ///
    /// # Errors
    /// As [`Index::new`].
    pub fn new(buckets: Buckets, geometry: Geometry, salt: [u8; 32], seeds: Vec<u8>) -> Result<Self, Error> {
        let all = Geometry { groups: geometry.groups.saturating_mul(buckets.count), ..geometry };
        Ok(Self { index: Index::new(all, salt, seeds)?, salt, buckets, groups: geometry.groups })
    }

    /// The buckets.
    #[must_use]
    pub fn buckets(&self) -> Buckets {
        self.buckets
    }

    /// Reads every seed alike.
    fn candidates(&self, key: &[u8]) -> [Candidate; CHOICES] {
        let places = KeyHash::new(&self.salt, key).candidates(&self.salt, self.buckets.count);
        places.map(|(bucket, hash)| {
            let (columns, group) = self.index.place(hash);
            let group = (group - bucket as usize * self.groups) as u32;
            Candidate { bucket, columns, group, fingerprint: hash.fingerprint, order: hash.order() }
        })
    }

    /// Keys of one request, at most [`Buckets::keys`], each in a bucket of its own; the same key comes out of the same one.
    ///
    /// # Panics
    /// The keys are more.
    #[must_use]
    pub fn batch(&self, keys: &[impl AsRef<[u8]>]) -> Batch {
        assert!(keys.len() <= self.buckets.keys);
        let candidates: Vec<_> = keys.iter().map(|key| self.candidates(key.as_ref())).collect();
        // A key that was there before is placed nowhere.
        let same = repeated(&candidates);
        let again = |key: usize| !equal_mask(same[key], key as u32);
        let choices: Zeroizing<Vec<[u32; CHOICES]>> = Zeroizing::new(
            (0..).zip(&candidates).map(|(key, of)| of.each_ref().map(|c| c.bucket | again(key))).collect(),
        );
        let owners = place(&choices, self.buckets.count);
        let mut selections = Vec::with_capacity(owners.len());
        let mut places: Vec<Place> = (0..keys.len()).map(|_| Place::default()).collect();
        for (bucket, owner) in (0u32..).zip(&*owners) {
            let (mut columns, mut group, mut owned) = ([0; ARITY], 0, 0);
            for (key, (of, place)) in (1u32..).zip(candidates.iter().zip(&mut places)) {
                let mine = equal_mask(*owner, key);
                owned |= mine;
                for candidate in of {
                    let here = mine & equal_mask(candidate.bucket, bucket);
                    for (column, of) in columns.iter_mut().zip(&candidate.columns) {
                        *column |= of & here;
                    }
                    group |= candidate.group & here;
                    place.take(here, bucket, candidate);
                }
            }
            // What no key owns is asked for its first slots.
            for (first, column) in (0u32..).zip(&mut columns) {
                *column |= first & !owned;
            }
            selections.push(Selection::new(columns.to_vec(), group));
        }
        for key in 0..places.len() {
            let (before, this) = places.split_at_mut(key);
            for (first, before) in (0u32..).zip(before) {
                this[0].share(equal_mask(same[key], first), before);
            }
        }
        Batch { selections, places }
    }
}

/// For each key the first one that is the same.
fn repeated(candidates: &[[Candidate; CHOICES]]) -> Zeroizing<Vec<u32>> {
    let same = |a: u128, b: u128| {
        let word = |at: u32| ((a ^ b) >> (32 * at)) as u32;
        equal_mask(word(0) | word(1) | word(2) | word(3), 0)
    };
    let first = |key: usize| {
        (0..key).rev().fold(key as u32, |first, earlier| {
            let this = same(candidates[key][0].order, candidates[earlier][0].order);
            (first & !this) | (earlier as u32 & this)
        })
    };
    Zeroizing::new((0..candidates.len()).map(first).collect())
}

/// Where a key is asked. A secret.
#[derive(Default, Zeroize)]
#[zeroize(drop)]
struct Place {
    /// Its bucket's number, counted from 1; 0 where it found none.
    bucket: u32,
    fingerprint: [u8; FINGERPRINT_BYTES],
    order: u128,
}

impl Place {
    /// The place of a candidate, where it is `here`: all ones, or none.
    fn take(&mut self, here: u32, bucket: u32, candidate: &Candidate) {
        let &Candidate { fingerprint, order, .. } = candidate;
        self.share(here, &Self { bucket: bucket + 1, fingerprint, order });
    }

    /// The same place as another's.
    fn share(&mut self, here: u32, other: &Self) {
        self.bucket |= other.bucket & here;
        for (byte, of) in self.fingerprint.iter_mut().zip(other.fingerprint) {
            *byte |= of & here as u8;
        }
        self.order |= other.order & (u128::from(here) * 0x0000_0001_0000_0001_0000_0001_0000_0001);
    }
}

/// Keys, each in a bucket of its own. A secret.
pub struct Batch {
    selections: Vec<Selection>,
    places: Vec<Place>,
}

impl Batch {
    /// How many keys it has.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.places.len()
    }

    /// What to pick in each bucket, in their order.
    #[must_use]
    pub fn selections(&self) -> &[Selection] {
        &self.selections
    }

    /// A key's slot among those of all buckets, of one length; nothing where its bucket says that it was not answered, or it
    /// found none. Reads every slot alike.
    ///
    /// # Panics
    /// There is not one slot a bucket, or no such key.
    #[must_use]
    pub fn slot(&self, key: usize, slots: &[Option<Decoded>]) -> Option<Decoded> {
        assert_eq!(slots.len(), self.selections.len());
        let bytes = slots.iter().flatten().map(|of| of.slot.len()).max().unwrap_or(0);
        let mut slot = Zeroizing::new(vec![0; bytes]);
        let (mut answered, mut damaged) = (0, 0);
        for (bucket, of) in (1u32..).zip(slots) {
            // Which buckets were not answered is no secret.
            let Some(of) = of else { continue };
            let here = equal_mask(self.places[key].bucket, bucket);
            answered |= here;
            damaged |= here & u32::from(of.damaged);
            for (byte, from) in slot.iter_mut().zip(of.slot.iter()) {
                *byte |= from & here as u8;
            }
        }
        (answered != 0).then_some(Decoded { slot, damaged: damaged != 0 })
    }

    /// The fingerprint that opens a key's slot, and what tells it from all others: [`KeyHash::order`].
    ///
    /// # Panics
    /// There is no such key.
    #[must_use]
    pub fn identity(&self, key: usize) -> (Zeroizing<[u8; FINGERPRINT_BYTES]>, Zeroizing<u128>) {
        let Place { fingerprint, order, .. } = self.places[key];
        (Zeroizing::new(fingerprint), Zeroizing::new(order))
    }
}

/// Gives each key one of its buckets, no two the same. Returns each bucket's key, counted from 1, or 0.
///
/// A bucket's label bounds from below how many keys have to be pushed on until one is free. A key takes the bucket of its
/// least label, whose key before goes on to another one. Each step does the same work, and so many are done whatever the keys.
fn place(choices: &[[u32; CHOICES]], buckets: usize) -> Zeroizing<Vec<u32>> {
    let mut owners = Zeroizing::new(vec![0u32; buckets]);
    let mut labels = Zeroizing::new(vec![0u32; buckets]);
    let count = choices.len() as u32;
    // The key in hand, counted from 1, and the next one.
    let (mut hand, mut next) = (0u32, 1u32);
    for _ in 0..STEPS * choices.len() + 4 * MAX_LABEL as usize {
        let fresh = equal_mask(hand, 0) & less_mask(next, count + 1);
        hand |= next & fresh;
        next += fresh & 1;
        let mut of = [0; CHOICES];
        for (key, choices) in (1u32..).zip(choices) {
            let mine = equal_mask(hand, key);
            for (of, choice) in of.iter_mut().zip(choices) {
                *of |= choice & mine;
            }
        }
        let mut found = [0; CHOICES];
        for (bucket, label) in (0u32..).zip(&*labels) {
            for (found, of) in found.iter_mut().zip(of) {
                *found |= label & equal_mask(of, bucket);
            }
        }
        let ([mut target, ..], [mut least, ..]) = (of, found);
        let mut second = u32::MAX >> 1;
        for (bucket, label) in of.into_iter().zip(found).skip(1) {
            let less = less_mask(label, least);
            let other = (label & !less) | (least & less);
            second = (second & !less_mask(other, second)) | (other & less_mask(other, second));
            target = (target & !less) | (bucket & less);
            least = (least & !less) | (label & less);
        }
        let moves = !equal_mask(hand, 0) & less_mask(least, MAX_LABEL);
        let mut before = 0;
        for ((bucket, owner), label) in (0u32..).zip(owners.iter_mut()).zip(labels.iter_mut()) {
            let here = moves & equal_mask(bucket, target);
            before |= *owner & here;
            *owner = (*owner & !here) | (hand & here);
            *label = (*label & !here) | ((second + 1) & here);
        }
        hand = before;
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(from: u64, count: usize) -> Vec<[u8; 8]> {
        (from..from + count as u64).map(u64::to_le_bytes).collect()
    }

    #[test]
    fn few_keys_need_more_buckets_and_256_half_as_many_again() {
        for (keys, want) in [(8, 67), (16, 97), (64, 188), (256, 384), (1024, 1536)] {
            let buckets = Buckets::for_keys(keys).unwrap();
            assert!(buckets.failure_log2() >= 40.0, "{buckets:?}");
            assert_eq!(buckets.count(), want, "{keys}: {}", buckets.failure_log2());
        }
        assert!(Buckets::for_keys(256).unwrap().failure_log2() > 41.0);
        assert!(Buckets::for_keys(7).is_err() && Buckets::for_keys(1025).is_err());
        for lie in [0, 383, MAX_BUCKETS + 1, usize::MAX] {
            let error = Buckets::new(256, lie).unwrap_err().to_string();
            assert!(error.contains("number of buckets is") && error.contains("384 to 4096"), "{error}");
        }
    }

    #[test]
    fn candidates_lie_in_three_buckets_and_in_their_groups() {
        for (count, groups) in [(67, 1), (384, 3), (1537, 7)] {
            for key in keys(0, 500) {
                let places = KeyHash::new(&[3; 32], &key).candidates(&[3; 32], count);
                for (bucket, hash) in &places {
                    let group = hash.group(count * groups);
                    assert_eq!(group / groups, *bucket as usize, "{count} x {groups}");
                }
                let [a, b, c] = places.map(|(bucket, _)| bucket);
                assert!(a != b && b != c && a != c);
            }
        }
    }

    /// Full batches, of which each would fail less than once in 2^40: in none of them does the limit on steps or labels show.
    #[test]
    fn every_key_of_a_full_batch_finds_a_bucket_of_its_own() {
        for (size, batches) in [(8, 200), (64, 40), (256, 6)] {
            let buckets = Buckets::for_keys(size).unwrap();
            for batch in 0..batches {
                let choices: Vec<[u32; CHOICES]> = keys(batch << 32, size)
                    .iter()
                    .map(|key| {
                        KeyHash::new(&[9; 32], key).candidates(&[9; 32], buckets.count()).map(|(b, _)| b)
                    })
                    .collect();
                let owners = place(&choices, buckets.count());
                let mut found: Vec<u32> = owners.iter().copied().filter(|owner| *owner > 0).collect();
                found.sort_unstable();
                assert!(found.into_iter().eq(1..=size as u32), "{size}, {batch}");
                for (bucket, owner) in (0..).zip(&*owners).filter(|(_, owner)| **owner > 0) {
                    assert!(choices[*owner as usize - 1].contains(&bucket));
                }
            }
        }
    }

    /// Five keys of the same three buckets: two of them have none, and the others are placed all the same.
    #[test]
    fn a_key_without_a_bucket_leaves_the_others_theirs() {
        let mut choices = vec![[0, 1, 2]; 5];
        choices.extend((1..60).map(|i| [i * 5 % 90, (i * 7 + 31) % 90, (i * 11 + 62) % 90]));
        let owners = place(&choices, 96);
        let mut found: Vec<u32> = owners.iter().copied().filter(|owner| *owner > 0).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), choices.len() - 2);
        assert_eq!(owners[..3].iter().filter(|owner| (1..=5).contains(*owner)).count(), 3);
    }

    #[test]
    fn a_buckets_bytes_may_lie_in_several_pieces() {
        let pieces: Vec<SharedBytes> = vec![Arc::new(vec![0, 1, 2, 3]), Arc::new(vec![4]), Arc::new(vec![5])];
        for (count, of) in [(1, 6), (2, 3), (3, 2), (6, 1)] {
            for number in 0..count {
                let cut: Vec<u8> = bucket(&pieces, count, number)
                    .iter()
                    .flat_map(|piece| (**piece).as_ref().to_vec())
                    .collect();
                let first = (number * of) as u8;
                assert_eq!(cut, (first..first + of as u8).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn buckets_side_by_side_answer_as_they_do_one_after_another() {
        let geometry = Geometry { record_bytes: 3, groups: 2, columns: 16 };
        let params = Params::new(crate::schemes::find("simple").unwrap(), geometry).unwrap();
        let noise = |bytes: usize, seed: usize| (0..bytes).map(|i| (i * i * 31 + i * seed) as u8).collect();
        for buckets in [2, 5, 67] {
            let database: Vec<u8> = noise(buckets * params.database_bytes(), 7);
            let operands = [vec![Arc::new(database) as SharedBytes]];
            let batches: [Vec<u8>; 2] = [3, 5].map(|seed| noise(buckets * params.query_bytes(), seed));
            let asked: Vec<&[u8]> = batches.iter().map(Vec::as_slice).collect();
            let answers = [1, 4].map(|threads| {
                let device = blindcore_accel_cpu::Cpu::with_threads("cpu", threads).unwrap();
                let server = BatchServer::new(params, buckets, &device, &operands).unwrap();
                assert_eq!(server.threads, if threads <= buckets { threads } else { 1 });
                let answered = server.answer_under(&asked, &[]).unwrap();
                assert!(answered.failed.is_empty());
                answered.answers
            });
            assert_eq!(answers[0], answers[1]);
            let each = params.answer_bytes();
            assert_ne!(answers[0][0][..each], answers[0][0][each..2 * each], "buckets differ");
            assert_ne!(answers[0][0], answers[0][1]);
        }
    }

    #[test]
    fn a_key_that_comes_often_takes_one_bucket() {
        let buckets = Buckets::for_keys(8).unwrap();
        let geometry = Geometry { record_bytes: 9, groups: 1, columns: 16 };
        let index = BatchIndex::new(buckets, geometry, [1; 32], vec![0; buckets.count()]).unwrap();
        let batch = index.batch(&["a", "b", "a", "a", "c", "a", "a", "b"]);
        let of: Vec<u32> = batch.places.iter().map(|place| place.bucket).collect();
        assert!(of.iter().all(|bucket| *bucket > 0));
        for (key, first) in [(2, 0), (3, 0), (5, 0), (6, 0), (7, 1)] {
            assert_eq!((of[key], batch.identity(key)), (of[first], batch.identity(first)));
        }
        assert!(of[0] != of[1] && of[1] != of[4] && of[0] != of[4]);
    }

    #[test]
    fn slots_come_back_to_their_keys() {
        let buckets = Buckets::for_keys(8).unwrap();
        let geometry = Geometry { record_bytes: 9, groups: 2, columns: 16 };
        let index = BatchIndex::new(buckets, geometry, [1; 32], vec![0; 2 * buckets.count()]).unwrap();
        let batch = index.batch(&keys(0, 5));
        let mut slots: Vec<Option<Decoded>> = (0..buckets.count())
            .map(|b| Some(Decoded { slot: Zeroizing::new(vec![b as u8; 9]), damaged: b % 2 == 1 }))
            .collect();
        let bucket = |key: usize| batch.places[key].bucket as usize - 1;
        for key in 0..5 {
            let found = batch.slot(key, &slots).unwrap();
            assert_eq!(found.slot[..], [bucket(key) as u8; 9]);
            assert_eq!(found.damaged, bucket(key) % 2 == 1);
            let of = index.candidates(&(key as u64).to_le_bytes());
            let mine = of.iter().find(|c| c.bucket as usize == bucket(key)).unwrap();
            assert_eq!((*batch.identity(key).0, *batch.identity(key).1), (mine.fingerprint, mine.order));
            assert_eq!(batch.selections()[bucket(key)].columns(), mine.columns);
        }
        slots[bucket(3)] = None;
        assert!(batch.slot(3, &slots).is_none() && batch.slot(2, &slots).is_some());
        let empty = (0..buckets.count()).find(|b| (0..5).all(|key| bucket(key) != *b)).unwrap();
        assert_eq!(batch.selections()[empty].columns(), [0, 1, 2, 3]);
    }
}
