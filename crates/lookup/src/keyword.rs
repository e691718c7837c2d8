//! Lookup by key: a binary fuse filter in every group of the matrix.
//!
//! A key's hash names its group and, within it, four columns; the table is filled so that the four slots add
//! up, lane by lane ([`Lanes`]), to the key's fingerprint and record. One query picks four columns as cheaply
//! as one, so a key costs what an index costs, and a key that is not there costs and looks the same: its four
//! slots add up to a fingerprint that doesn't match.
//!
//! Source: Graf and Lemire, "Binary Fuse Filters" (2022), four-wise; as a store of values inside a lookup,
//! Celi and Davidson, "Call Me By My Name" (ChalametPIR, 2024). New here is a filter a group, which lets the
//! matrix be square: all four slots of a key lie in the same rows.

use blindcore_accel::prefetch;
use zeroize::Zeroizing;

use crate::constant_time::{divide, equal_mask};
pub use crate::lanes::{Lanes, Sums};
use crate::params::Geometry;
use crate::{Error, Selection};

/// Buckets of a table's batches that a record lies in.
pub const CHOICES: usize = 3;
/// Bytes of a slot that tell a key from one that is not there. A key that is not there is taken for one that
/// is with probability 2^-40, as rare as the failure of a lookup may be.
pub const FINGERPRINT_BYTES: usize = 5;

/// Cells among which keys are counted, as a power of two. With more than 2^16 groups their sizes would begin
/// to differ by their number of cells; a matrix has as many at some 10^9 keys.
pub const CELL_BITS: u32 = 22;

/// Slots that add up to a record.
pub const ARITY: usize = 4;
/// Seeds that are tried for a bucket.
const TRIES: usize = 256;
/// Keys between the one that is set in its cell and the one that memory is asked for meanwhile.
const AHEAD: usize = 4;

/// What a key's bytes hash to, under the table's salt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyHash {
    group: u64,
    position: u64,
    /// Opens the slot of this key alone.
    pub fingerprint: [u8; FINGERPRINT_BYTES],
}

impl KeyHash {
    /// Hashes a key. The salt is public, drawn at random when the table is built.
    #[must_use]
    pub fn new(salt: &[u8; 32], key: &[u8]) -> Self {
        let hash = blake3::keyed_hash(salt, key);
        let bytes = hash.as_bytes();
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let fingerprint = bytes[16..16 + FINGERPRINT_BYTES].try_into().expect("five bytes");
        Self { group: number(0), position: number(8), fingerprint }
    }

    /// The hash of one of the slots that this key's record takes; the first is the key's own.
    #[must_use]
    pub fn block(self, salt: &[u8; 32], block: u32) -> Self {
        if block == 0 {
            return self;
        }
        let mut of = blake3::Hasher::new_keyed(salt);
        let salt = of.update(b"blindcore block").update(&block.to_le_bytes()).finalize();
        Self::new(salt.as_bytes(), &self.order().to_le_bytes())
    }

    /// The three slots of a table's batches that hold this key's record: the bucket of each, all of them different, and a hash
    /// whose [`KeyHash::group`] is one of the bucket's, whatever their number.
    ///
    /// `buckets` is at least 3 and at most 2^20.
    #[must_use]
    pub fn candidates(self, salt: &[u8; 32], buckets: usize) -> [(u32, Self); CHOICES] {
        let mut hashes = [0, 1, 2].map(|choice: u32| {
            let mut of = blake3::Hasher::new_keyed(salt);
            let salt = of.update(b"blindcore batch").update(&choice.to_le_bytes()).finalize();
            (choice, Self::new(salt.as_bytes(), &self.order().to_le_bytes()))
        });
        // Numbers are below 2^63, and none is this.
        let mut taken = [u64::MAX >> 1; CHOICES];
        for (bucket, hash) in &mut hashes {
            // Of the buckets that are left; then past those that are taken, the lowest first.
            let left = buckets as u128 - u128::from(*bucket);
            let product = u128::from(hash.group) * left;
            let (mut chosen, within) = ((product >> 64) as u64, product as u64);
            for taken in &taken {
                chosen += 1 - (chosen.wrapping_sub(*taken) >> 63);
            }
            insert(&mut taken, chosen);
            // The bucket's first cell, and that of the next: their groups are the bucket's for any number of groups.
            let first = |bucket: u64| divide((bucket << CELL_BITS) + buckets as u64 - 1, buckets as u64).0;
            let (start, end) = (first(chosen), first(chosen + 1));
            let cell = u128::from(within) * u128::from(end - start);
            let low = (cell as u64) >> CELL_BITS;
            hash.group = (start + (cell >> 64) as u64) << (64 - CELL_BITS) | low;
            *bucket = chosen as u32;
        }
        hashes
    }

    /// A number whose order is the order of groups, whatever their number. Equal for equal keys and, but for
    /// one chance in 2^128 a pair, only for them.
    #[must_use]
    pub fn order(&self) -> u128 {
        u128::from(self.group) << 64 | u128::from(self.position)
    }

    /// The hash of an [`KeyHash::order`]; the fingerprint is the caller's to keep.
    #[must_use]
    pub fn from_order(order: u128, fingerprint: [u8; FINGERPRINT_BYTES]) -> Self {
        Self { group: (order >> 64) as u64, position: order as u64, fingerprint }
    }

    /// The group of this key among `groups`, at most 2^31. It is decided by [`KeyHash::cell`], so that a
    /// histogram of cells gives the load of every group for any number of groups.
    #[must_use]
    pub fn group(&self, groups: usize) -> usize {
        Self::group_of_cell(self.cell(), groups)
    }

    /// The group of every key in a cell.
    #[must_use]
    pub fn group_of_cell(cell: usize, groups: usize) -> usize {
        (cell * groups) >> CELL_BITS
    }

    /// The upper [`CELL_BITS`] bits of the hash's order.
    #[must_use]
    pub fn cell(&self) -> usize {
        (self.group >> (64 - CELL_BITS)) as usize
    }
}

/// Puts a number among those that are taken, which stay in order. All are below 2^63, and secret.
fn insert(taken: &mut [u64; CHOICES], mut number: u64) {
    for of in taken {
        let less = std::hint::black_box(number.wrapping_sub(*of) >> 63).wrapping_neg();
        let low = (number & less) | (*of & !less);
        number ^= *of ^ low;
        *of = low;
    }
}

/// What a client must know, beside the parameters, to look a key up. It is public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    salt: [u8; 32],
    seeds: Vec<u8>,
    geometry: Geometry,
}

impl Index {
    /// The index of a geometry: the salt of its hashes and the seed of each group.
    ///
    /// # Errors
    /// There is not one seed a group, or there are fewer columns than a key has.
    pub fn new(geometry: Geometry, salt: [u8; 32], seeds: Vec<u8>) -> Result<Self, Error> {
        if geometry.columns < MIN_COLUMNS {
            let (got, min, max) = (geometry.columns as u64, MIN_COLUMNS as u64, u64::MAX);
            let remedy = "a keyed table needs as many";
            return Err(Error::Range { what: "number of columns", got, min, max, remedy });
        }
        if seeds.len() != geometry.groups {
            let remedy = "fetch the table's description again";
            return Err(Error::Length {
                what: "keyword index",
                got: seeds.len(),
                want: geometry.groups,
                remedy,
            });
        }
        Ok(Self { salt, seeds, geometry })
    }

    /// Group, columns and fingerprint of a key's block, for the table's holder, which has nothing to hide from it.
    #[must_use]
    pub fn locate(&self, key: &[u8], block: u32) -> (usize, [usize; ARITY], [u8; FINGERPRINT_BYTES]) {
        let hash = KeyHash::new(&self.salt, key).block(&self.salt, block);
        let group = hash.group(self.geometry.groups);
        let columns = Fuse::new(self.geometry.columns).positions(hash.position, self.seeds[group]);
        (group, columns.map(|c| c as usize), hash.fingerprint)
    }

    /// What tells a key's block from all others of the table: [`KeyHash::order`].
    #[must_use]
    pub fn order(&self, key: &[u8], block: u32) -> Zeroizing<u128> {
        Zeroizing::new(KeyHash::new(&self.salt, key).block(&self.salt, block).order())
    }

    /// What to pick for a key, and its fingerprint. Reads every seed alike.
    #[must_use]
    pub fn select(&self, key: &[u8]) -> (Selection, Zeroizing<[u8; FINGERPRINT_BYTES]>) {
        self.select_block(key, 0)
    }

    /// The same for one of the slots that a record takes.
    #[must_use]
    pub fn select_block(&self, key: &[u8], block: u32) -> (Selection, Zeroizing<[u8; FINGERPRINT_BYTES]>) {
        let hash = KeyHash::new(&self.salt, key).block(&self.salt, block);
        let (columns, group) = self.place(hash);
        (Selection::new(columns.to_vec(), group as u32), Zeroizing::new(hash.fingerprint))
    }

    /// Columns and group of a hash. Reads every seed alike.
    pub(crate) fn place(&self, hash: KeyHash) -> ([u32; ARITY], usize) {
        let group = hash.group(self.geometry.groups);
        let seed = self
            .seeds
            .iter()
            .enumerate()
            .fold(0u8, |found, (i, seed)| found | (seed & equal_mask(i as u32, group as u32) as u8));
        (Fuse::new(self.geometry.columns).positions(hash.position, seed), group)
    }
}

/// The record in a decoded slot, or `None` where the key is not there.
#[must_use]
pub fn open<'a>(slot: &'a [u8], fingerprint: &[u8; FINGERPRINT_BYTES]) -> Option<&'a [u8]> {
    let (found, record) = slot.split_at_checked(FINGERPRINT_BYTES)?;
    let difference = found.iter().zip(fingerprint).fold(0u8, |d, (a, b)| d | (a ^ b));
    (difference == 0).then_some(record)
}

/// Keys that the fullest of `groups` random groups holds, but for one table in a thousand: the mean and the
/// deviations that a Poisson maximum needs. A builder counts, and takes more columns where it must.
pub(crate) fn fullest(records: u64, groups: usize) -> usize {
    if groups == 1 {
        return records as usize;
    }
    let mean = records as f64 / groups as f64;
    let spread = (2.0 * mean * (1000.0 * groups as f64).ln()).sqrt();
    ((mean + spread).ceil() as u64).min(records) as usize
}

/// Columns that hold a bucket of `keys` keys: what one seed of ten solves, or more. A table's columns are those of its
/// fullest group; the others, which have a few keys less, are solved by nearly every seed. Fitted to 60 trials a size, 1,000
/// to 66,000 keys, with segments of a power of two; 3 to 8 % fewer than Graf and Lemire's formula, whose first seed is to do.
#[must_use]
pub fn columns_for(keys: usize) -> usize {
    if keys <= 8 {
        // Small buckets are dense systems that peel by luck: give them room.
        return (2 * keys).max(ARITY) + 4;
    }
    let n = keys as f64;
    let factor = (0.871 + 2.653 / n.ln()).clamp(1.075, 1.5);
    let columns = (n * factor).ceil() as usize + 8;
    columns.next_multiple_of(Fuse::segment_length(columns))
}

/// Solves a bucket: fills `cells`, `columns` of `record_bytes`, such that each key's four cells add up to its
/// slot, and returns the seed. `slots` has `record_bytes` for each hash.
///
/// # Errors
/// Two keys are equal, or no seed solves the bucket: it needs more columns. `cells` is untouched then.
///
/// # Panics
/// `slots` or `cells` has another length.
pub fn solve(
    hashes: &[KeyHash],
    slots: &[u8],
    columns: usize,
    record_bytes: usize,
    lanes: Lanes,
    cells: &mut [u8],
) -> Result<u8, Error> {
    assert_eq!(slots.len(), hashes.len() * record_bytes);
    assert_eq!(cells.len(), columns * record_bytes);
    let fuse = Fuse::new(columns);
    let mut order: Vec<usize> = (0..hashes.len()).collect();
    order.sort_unstable_by_key(|i| hashes[*i].order());
    if let Some(pair) = order.windows(2).find(|w| hashes[w[0]].order() == hashes[w[1]].order()) {
        let (first, second) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
        return Err(Error::DuplicateKey { first, second });
    }
    for seed in 0..TRIES {
        let positions: Vec<[u32; ARITY]> =
            hashes.iter().map(|h| fuse.positions(h.position, seed as u8)).collect();
        let Some(peeled) = peel(&positions, columns) else { continue };
        // Cells that no key owns are nothing; all others are written before they are read.
        let mut owned = vec![false; columns];
        peeled.iter().for_each(|(_, own)| owned[*own as usize] = true);
        let cell = |at: u32| at as usize * record_bytes..(at as usize + 1) * record_bytes;
        (0..columns as u32).filter(|at| !owned[*at as usize]).for_each(|at| cells[cell(at)].fill(0));
        // The last key peeled owns a cell that no other touches once those before it are set.
        for (i, (key, own)) in peeled.iter().enumerate().rev() {
            if let Some((key, _)) = i.checked_sub(AHEAD).map(|ahead| peeled[ahead]) {
                prefetch(slots, key * record_bytes);
                positions[key].iter().for_each(|at| prefetch(cells, cell(*at).start));
            }
            let slot = &slots[key * record_bytes..][..record_bytes];
            let mut others = positions[*key].into_iter().filter(|at| at != own).map(cell);
            let [a, b, c] =
                std::array::from_fn(|_| others.next().expect("four columns, one of them its own"));
            let [out, a, b, c] =
                cells.get_disjoint_mut([cell(*own), a, b, c]).expect("four different columns");
            let others = a.iter().zip(b).zip(c);
            let bytes = out.iter_mut().zip(slot).zip(others);
            if lanes == Lanes(8) {
                bytes.for_each(|((out, slot), ((a, b), c))| {
                    *out = slot.wrapping_sub(a.wrapping_add(*b).wrapping_add(*c));
                });
            } else {
                let mut sums = lanes.sums();
                bytes.for_each(|((out, slot), ((a, b), c))| *out = sums.next(&[*slot], &[*a, *b, *c]));
            }
        }
        return Ok(seed as u8);
    }
    Err(Error::Bucket { keys: hashes.len(), columns, tries: TRIES })
}

/// Orders the keys so that each owns a cell which no later key touches.
fn peel(positions: &[[u32; ARITY]], columns: usize) -> Option<Vec<(usize, u32)>> {
    let mut degree = vec![0u32; columns];
    // The exclusive or of the keys on a cell: the key itself once it is alone.
    let mut keys = vec![0u32; columns];
    for (key, cells) in positions.iter().enumerate() {
        for cell in cells {
            degree[*cell as usize] += 1;
            keys[*cell as usize] ^= key as u32;
        }
    }
    let mut alone: Vec<u32> = (0..columns as u32).filter(|c| degree[*c as usize] == 1).collect();
    let mut peeled = Vec::with_capacity(positions.len());
    while let Some(cell) = alone.pop() {
        if degree[cell as usize] != 1 {
            continue;
        }
        let key = keys[cell as usize] as usize;
        peeled.push((key, cell));
        for other in positions[key] {
            degree[other as usize] -= 1;
            keys[other as usize] ^= key as u32;
            if degree[other as usize] == 1 {
                alone.push(other);
            }
        }
    }
    (peeled.len() == positions.len()).then_some(peeled)
}

/// Where a bucket's keys lie: four neighbouring segments, one cell in each.
struct Fuse {
    segment_length: u32,
    /// First cells are below this.
    first_range: u32,
    columns: u32,
}

impl Fuse {
    fn new(columns: usize) -> Self {
        let segment_length = Self::segment_length(columns);
        let segments = columns / segment_length;
        let first_range = (segments.saturating_sub(ARITY - 1).max(1) * segment_length) as u32;
        Self { segment_length: segment_length as u32, first_range, columns: columns as u32 }
    }

    /// A power of two that leaves at least four segments: 2^e from ceil(2.91^(e + 1/2)) columns on, which client
    /// and server must agree on to the bit, so the thresholds are numbers. Source: Graf and Lemire, section 4,
    /// four-wise.
    fn segment_length(columns: usize) -> usize {
        const THRESHOLDS: [u32; 18] = [
            5,
            15,
            43,
            123,
            356,
            1_036,
            3_015,
            8_772,
            25_527,
            74_281,
            216_158,
            629_017,
            1_830_440,
            5_326_579,
            15_500_344,
            45_106_001,
            131_258_461,
            381_962_121,
        ];
        let exponent = THRESHOLDS.iter().take_while(|t| columns >= **t as usize).count();
        let most = (columns / ARITY).max(1).ilog2() as usize;
        1 << exponent.min(most)
    }

    /// Four different columns, by arithmetic alone.
    fn positions(&self, position: u64, seed: u8) -> [u32; ARITY] {
        // SplitMix64's finaliser over the hash and the seed.
        let mut h = position.wrapping_add(u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        h ^= h >> 31;
        let first = ((u128::from(h) * u128::from(self.first_range)) >> 64) as u32;
        let mask = self.segment_length - 1;
        std::array::from_fn(|i| {
            let within = if i == 0 { 0 } else { (h >> (18 * (i - 1))) as u32 & mask };
            // Below `columns`: there are at least four segments, since a keyed table has four columns.
            let cell = (first + i as u32 * self.segment_length) ^ within;
            debug_assert!(cell < self.columns);
            cell
        })
    }
}

/// The fewest columns that four positions need.
pub(crate) const MIN_COLUMNS: usize = ARITY;

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(keys: usize, salt: u8) -> Vec<KeyHash> {
        (0..keys).map(|k| KeyHash::new(&[salt; 32], &k.to_le_bytes())).collect()
    }

    #[test]
    fn positions_are_four_columns_inside() {
        for columns in [4, 5, 7, 16, 100, 1000, 4099, 70_000] {
            let fuse = Fuse::new(columns);
            for key in bucket(500, 1) {
                let mut p = fuse.positions(key.position, 3);
                assert!(p.iter().all(|c| (*c as usize) < columns), "{columns}: {p:?}");
                p.sort_unstable();
                assert!(p.windows(2).all(|w| w[0] != w[1]), "{columns}: {p:?}");
            }
        }
    }

    #[test]
    fn every_size_of_bucket_solves_and_gives_its_records_back() {
        for keys in (0..40).chain([64, 100, 150, 300, 1000, 3000, 5000, 20_000]) {
            for salt in 0..3 {
                let hashes = bucket(keys, salt);
                let slots: Vec<u8> = (0..keys * 3).map(|i| (i * 7 % 251) as u8).collect();
                let columns = columns_for(keys);
                let mut cells = vec![0u8; 3 * columns];
                let lanes = Lanes(if salt == 1 { 11 } else { 8 });
                let seed = solve(&hashes, &slots, columns, 3, lanes, &mut cells).unwrap();
                // What was in the cells before leaves no trace.
                let mut used = vec![0xa5; 3 * columns];
                assert_eq!(solve(&hashes, &slots, columns, 3, lanes, &mut used).unwrap(), seed);
                assert!(used == cells, "{keys} keys");
                let fuse = Fuse::new(columns);
                for (hash, slot) in hashes.iter().zip(slots.chunks_exact(3)) {
                    // By the definition: lanes of one number of 24 bits.
                    let number = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
                    let found = fuse.positions(hash.position, seed).map(|c| number(&cells[c as usize * 3..]));
                    for bit in (0..24).step_by(lanes.0 as usize) {
                        let mask = (1 << lanes.0.min(24 - bit)) - 1;
                        let sum = found.iter().fold(0u32, |sum, cell| sum.wrapping_add(cell >> bit));
                        assert_eq!(sum & mask, number(slot) >> bit & mask);
                    }
                }
            }
        }
    }

    #[test]
    fn equal_keys_are_found() {
        let mut hashes = bucket(10, 0);
        hashes.push(hashes[4]);
        let error = solve(&hashes, &[0; 11], 30, 1, Lanes(8), &mut [0; 30]).unwrap_err();
        assert!(matches!(error, Error::DuplicateKey { first: 4, second: 10 }), "{error}");
    }

    #[test]
    fn a_bucket_too_small_says_so() {
        let result = solve(&bucket(100, 0), &[0; 100], 90, 1, Lanes(8), &mut [0; 90]);
        assert!(matches!(result, Err(Error::Bucket { .. })));
    }
}
