//! The sizes and the noise of the scheme without a hint.

use std::ops::{Range, RangeInclusive};
use std::sync::OnceLock;

use blindcore_accel::contract::{Shape, Window};
use blindcore_accel::{Layout, Word};
use blindcore_math::ntt::primes;
use blindcore_math::{Modulus, Prime, SignedDigits};
use blindcore_rlwe::inspiring::Packing;
use blindcore_rlwe::rounding::packed_bytes;

use crate::schemes::matrix;
use crate::schemes::rings::cheapest;
use crate::schemes::scheme::{About, ClientWork, Operand, Origin, RingWork, Run, Security};
use crate::{Error, Geometry};

/// A modulus, the digits that it takes, and what they are worth.
pub(super) struct Set {
    pub(super) about: About,
    /// Q is the largest prime of this many bits for which 2d divides Q - 1.
    prime_bits: u32,
    prime: OnceLock<Prime>,
    /// How packing takes polynomials apart.
    pub(super) packing: Cut,
    /// What packs rows so, for each of [`COUNTS`]: the buckets of batches share it.
    packings: [OnceLock<Packing>; COUNTS.len()],
    /// How picking does.
    pub(super) picking: Cut,
}

/// Digits of so many bits, above so many that are dropped.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    pub(super) count: usize,
    bits: u32,
    dropped: u32,
}

impl Cut {
    pub(super) fn digits(self, prime: Prime) -> SignedDigits {
        let Self { count, bits, dropped } = self;
        SignedDigits { prime, count, bits, dropped }
    }

    /// The variances of all digits together, and of what is dropped: the highest is uniform below Q / B^i 2^w, the others below B.
    fn variances(self, prime: Prime) -> (f64, f64) {
        let uniform = |below: f64| below.powi(2) / 12.0;
        let power = |bits: u32| f64::from(bits).exp2();
        let highest = prime.value() as f64 / power(self.digits(prime).weight(self.count - 1));
        let others = (self.count - 1) as f64 * uniform(power(self.bits));
        (uniform(highest) + others, uniform(power(self.dropped)))
    }
}

/// Nothing is fetched before the first lookup, and answers have a few kilobytes.
pub(super) static CLASSICAL: Set = Set {
    about: About {
        name: "hintless",
        title: "Hintless",
        suits: "with nothing to fetch before the first lookup",
        wire_id: 3,
        security: Some(Security { bits: 142.8, quantum_bits: Some(102.5), estimator: ESTIMATOR }),
        constants: &[DEGREE as u64, 48, ERROR_PAIRS as u64, 25, 25, MASK_BITS as u64, BODY_BITS as u64],
    },
    prime_bits: 48,
    prime: OnceLock::new(),
    packing: Cut { count: 1, bits: 23, dropped: 25 },
    packings: [const { OnceLock::new() }; COUNTS.len()],
    picking: Cut { count: 1, bits: 23, dropped: 25 },
};

/// The same for whoever fears quantum computers: a smaller modulus leaves less room for noise, so that packing and picking take two
/// digits each, and packing tables and keys are as long again.
pub(super) static QUANTUM: Set = Set {
    about: About {
        name: "hintless-q128",
        title: "Hintless, 128 quantum bits",
        suits: "the same at 128 bits against quantum computers too",
        wire_id: 4,
        security: Some(Security { bits: 173.1, quantum_bits: Some(131.8), estimator: ESTIMATOR }),
        constants: &[
            DEGREE as u64,
            40,
            ERROR_PAIRS as u64,
            2,
            13,
            14,
            2,
            13,
            14,
            MASK_BITS as u64,
            BODY_BITS as u64,
        ],
    },
    prime_bits: 40,
    prime: OnceLock::new(),
    packing: Cut { count: 2, bits: 13, dropped: 14 },
    packings: [const { OnceLock::new() }; COUNTS.len()],
    picking: Cut { count: 2, bits: 13, dropped: 14 },
};
const ESTIMATOR: &str = blindcore_rlwe::security::ESTIMATOR;

/// d: coefficients of a polynomial.
pub(super) const DEGREE: usize = 2048;
/// Bytes of a residue in a table.
pub(super) const RESIDUE_BYTES: usize = 6;
/// Errors are centred binomials of this many pairs of bits: deviation 3.24.
pub(super) const ERROR_PAIRS: u32 = 21;
const ERROR_VARIANCE: f64 = ERROR_PAIRS as f64 / 2.0;
/// Bits of a word of a query's first part: the fewest whose rounding noise leaves room for. Fewer would shorten queries of small
/// tables alone, which are keys for the most part.
const QUERY_BITS: RangeInclusive<u32> = 25..=28;
/// Bits of an answer's mask and body.
pub(super) const MASK_BITS: u32 = 17;
pub(super) const BODY_BITS: u32 = 11;
/// Bytes of a seed of masks.
pub(super) const SEED_BYTES: usize = 32;
/// Rows that are packed into one ciphertext: one of these.
const COUNTS: [usize; 3] = [256, 512, 1024];
/// Of as many ciphertexts the server picks none: all are sent, which is less than what picking takes.
const MAX_SENT: usize = 8;
/// The most groups of ciphertexts that one is picked of.
const MAX_PICKS: usize = 2 * DEGREE;
/// The most columns: what noise leaves room for.
const MAX_COLUMNS: u64 = 1 << 20;
/// The most bytes of packing tables for each digit: so many, and so many times the records. A table of few columns would have far longer ones.
const SMALL_TABLES: u64 = 128 << 20;
const TABLES_SHARE: u64 = 2;
/// Traffic, in bytes, that is worth a byte of packing tables read in each pass.
const TABLE_WEIGHT: f64 = 5e-5;
/// The part of it that is the memory's, which is there whether it is read or not: by the prices and the load that `plan` starts from.
const MEMORY_WEIGHT: f64 = 2e-5;
/// A lookup may fail once in two to this.
const NOISE_LIMIT_LOG2: f64 = 40.0;

/// A query's words may be rounded until it fails once in two to this: not as often as it may, or honest answers would come so far from
/// bytes that noise could not be told from them: a test says how often it passes for an answer.
const ROUNDED_LOG2: f64 = 64.0;

/// The operands' places.
pub(super) const RECORDS: usize = 0;
pub(super) const TABLES: usize = 1;

/// How the rows of a table are packed into ciphertexts.
///
/// ```text
///   short records: ciphertext = several groups           long records: group = several ciphertexts
///     rows  ┌ group 0 ┐                                    rows  ┌ group 0, part 0 ┐ ciphertext 0
///           │ group 1 │ ciphertext 0                             │ group 0, part 1 │ ciphertext 1
///           ├ group 2 ┤                                          ├ group 1, part 0 ┤ ciphertext 2
///           │ group 3 │ ciphertext 1                             └ ...             ┘
/// ```
#[derive(Clone, Copy)]
pub(super) struct Packed {
    pub(super) set: &'static Set,
    /// gamma: rows that a ciphertext has room for.
    pub(super) count: usize,
    /// Groups of a ciphertext.
    pub(super) groups: usize,
    /// Ciphertexts of a group.
    pub(super) parts: usize,
    /// Ciphertexts, or runs of `parts` of them, that the client's group is in one of.
    pub(super) choices: usize,
    /// t: `choices` as a power of two where the server picks one, or none where it sends them all.
    pub(super) picks: Option<usize>,
}

impl Packed {
    pub(super) fn new(set: &'static Set, geometry: &Geometry) -> Self {
        let of = |count: usize| {
            let (bytes, groups) = (geometry.record_bytes, geometry.groups);
            let (per, parts) = if bytes <= count { (count / bytes, 1) } else { (1, bytes.div_ceil(count)) };
            let choices = groups.div_ceil(per);
            let sent = choices == 1 || choices * parts <= MAX_SENT;
            let picks = (!sent).then(|| choices.next_power_of_two());
            Self { set, count, groups: per, parts, choices, picks }
        };
        let cost = |packed: &Self| {
            let traffic = packed.sent() * packed.sent_bytes() + packed.picking_bytes();
            TABLE_WEIGHT * packed.table_bytes() as f64 + traffic as f64
        };
        let [first, others @ ..] = COUNTS.map(of);
        others.into_iter().fold(first, |best, this| if cost(&this) < cost(&best) { this } else { best })
    }

    /// What packs rows so.
    pub(super) fn packing(&self) -> &'static Packing {
        let known = COUNTS.iter().zip(&self.set.packings).find(|(count, _)| **count == self.count);
        let (_, packing) = known.expect("counts are of these");
        packing.get_or_init(|| {
            Packing::new(DEGREE, self.count, self.set.packing.digits(self.set.prime()))
                .expect("counts are powers of two below half the degree")
        })
    }

    /// Ciphertexts in all.
    pub(super) fn ciphertexts(&self) -> usize {
        self.choices * self.parts
    }

    /// Rows that there is room for.
    fn rows(&self) -> usize {
        self.ciphertexts() * self.count
    }

    /// Bytes of a query for picking: a seed, and two rows for each digit.
    fn picking_bytes(&self) -> usize {
        if self.picks.is_some() {
            SEED_BYTES + 2 * self.set.picking.count * self.set.polynomial_bytes()
        } else {
            0
        }
    }

    /// Bytes of the packing tables.
    fn table_bytes(&self) -> usize {
        self.rows().saturating_mul(self.set.packing.count * DEGREE * RESIDUE_BYTES)
    }

    /// The ciphertext of a row of the records, and its place in it. Rows that follow each other never go back.
    pub(super) fn place(&self, geometry: &Geometry, row: usize) -> (usize, usize) {
        let (group, byte) = (row / geometry.record_bytes, row % geometry.record_bytes);
        if self.parts == 1 {
            (group / self.groups, group % self.groups * geometry.record_bytes + byte)
        } else {
            (group * self.parts + byte / self.count, byte % self.count)
        }
    }

    /// The rows of the records that a ciphertext has, the first of them at place 0.
    pub(super) fn rows_of(&self, geometry: &Geometry, ciphertext: usize) -> Range<usize> {
        let (group, part) = (ciphertext / self.parts * self.groups, ciphertext % self.parts);
        let first = group * geometry.record_bytes + part * self.count;
        let end = (group + self.groups).min(geometry.groups) * geometry.record_bytes;
        // Groups that share a ciphertext have no more rows than its places.
        first..end.min(first + self.count)
    }

    /// Where a server keeps a ciphertext: where one is picked, each part's by themselves, as interpolation takes them.
    pub(super) fn kept(&self, ciphertext: usize) -> usize {
        self.picks.map_or(ciphertext, |picks| {
            let (choice, part) = (ciphertext / self.parts, ciphertext % self.parts);
            part * picks + place_of(picks, choice)
        })
    }

    /// Ciphertexts that are kept, those included that nothing is in and that interpolation takes as zeros.
    pub(super) fn room(&self) -> usize {
        self.picks.unwrap_or(self.choices) * self.parts
    }

    /// Ciphertexts of an answer.
    pub(super) fn sent(&self) -> usize {
        if self.picks.is_some() { self.parts } else { self.ciphertexts() }
    }

    /// Bytes of a ciphertext of an answer.
    pub(super) fn sent_bytes(&self) -> usize {
        packed_bytes(DEGREE, MASK_BITS) + packed_bytes(self.count, BODY_BITS)
    }
}

/// Where the server keeps what a client picks by `choice`, for interpolation: bits in reverse order.
pub(super) fn place_of(picks: usize, choice: usize) -> usize {
    if picks == 1 { 0 } else { choice.reverse_bits() >> (usize::BITS - picks.ilog2()) }
}

/// Polynomials that cover the columns.
pub(super) fn blocks(columns: usize) -> usize {
    columns.div_ceil(DEGREE)
}

impl Set {
    /// Q.
    pub(super) fn prime(&self) -> Prime {
        *self.prime.get_or_init(|| {
            let found = primes(self.prime_bits, DEGREE).ok().and_then(|mut found| found.next());
            found.expect("there are primes of so many bits")
        })
    }

    /// Delta: what a picked column adds to a query.
    pub(super) fn delta(&self) -> u64 {
        (self.prime().value() + 128) / 256
    }

    /// Bytes of a polynomial in a query.
    pub(super) fn polynomial_bytes(&self) -> usize {
        packed_bytes(DEGREE, self.prime_bits)
    }

    /// Bits of a residue in a query.
    pub(super) fn residue_bits(&self) -> u32 {
        self.prime_bits
    }

    /// Refuses a table that the scheme does not suit.
    pub(super) fn check(&'static self, geometry: &Geometry) -> Result<(), Error> {
        let range = |what, got: usize, max: u64, remedy| {
            let (got, min) = (got as u64, 1);
            if got <= max { Ok(()) } else { Err(Error::Range { what, got, min, max, remedy }) }
        };
        range("number of columns", geometry.columns, MAX_COLUMNS, "use more groups")?;
        let packed = Packed::new(self, geometry);
        let picks = packed.picks.unwrap_or(1);
        range(
            "number of ciphertexts to pick from",
            picks,
            MAX_PICKS as u64,
            "use fewer groups of more columns",
        )?;
        let most = SMALL_TABLES + TABLES_SHARE * geometry.rows() as u64 * geometry.columns as u64;
        let most = self.packing.count as u64 * most;
        let remedy = "use more columns, cut records into shorter blocks, or choose another scheme";
        range("packing tables in bytes", packed.table_bytes(), most, remedy)
    }

    /// Bytes of a query: its first part, the packing key of each digit, and for picking a seed and rows.
    pub(super) fn query_bytes(&'static self, geometry: &Geometry) -> usize {
        let keys = self.packing.count * self.polynomial_bytes();
        self.first_bytes(geometry) + keys + Packed::new(self, geometry).picking_bytes()
    }

    /// Bytes of the part of a query that the records are multiplied by.
    pub(super) fn first_bytes(&'static self, geometry: &Geometry) -> usize {
        packed_bytes(geometry.columns, self.query_bits(geometry))
    }

    /// Bits of a word of that part: of [`QUERY_BITS`] the fewest that [`ROUNDED_LOG2`] allows. More columns leave less room for
    /// their rounding.
    pub(super) fn query_bits(&'static self, geometry: &Geometry) -> u32 {
        let fits = |bits: &u32| self.failure_log2_of(geometry, *bits) >= ROUNDED_LOG2;
        QUERY_BITS.clone().find(fits).unwrap_or(*QUERY_BITS.end())
    }

    /// Bytes of an answer.
    pub(super) fn answer_bytes(&'static self, geometry: &Geometry) -> usize {
        let packed = Packed::new(self, geometry);
        packed.sent() * packed.sent_bytes()
    }

    pub(super) fn operands(&'static self, geometry: &Geometry) -> Vec<Operand> {
        let packed = Packed::new(self, geometry);
        let residues = |name, n, j, window| {
            let words = Shape::new(Word::U48, vec![Modulus::Prime(self.prime())]);
            let shape = Shape { m: crate::MAX_GATHER, n, j, d: DEGREE, window, ..words };
            Operand { name, layout: Layout::for_shape(&shape), shape, origin: Origin::Preprocessed }
        };
        // As `Packing::step` has it.
        let window = Window { period: DEGREE / 2, step: DEGREE / 2 / packed.count };
        let mut operands = vec![matrix::operand("records", geometry.rows(), geometry.columns, Origin::Slots)];
        // t_i for each ciphertext and i, digit by digit.
        let tables = residues("packing tables", packed.ciphertexts(), packed.count - 1, Some(window));
        operands.extend(std::iter::repeat_n(tables, self.packing.count));
        // Coefficients; where one is picked, of the polynomial that goes through them all.
        operands.push(residues("masks", packed.room(), 1, None));
        operands
    }

    pub(super) fn answering(&'static self, queries: usize) -> Vec<Run> {
        (RECORDS..TABLES + self.packing.count).map(|operand| Run { operand, queries, passes: 1 }).collect()
    }

    /// A query's words are encrypted polynomial by polynomial ([`Self::ring_work`]).
    pub(super) fn client_work(&'static self, geometry: &Geometry) -> ClientWork {
        ClientWork { masked: 0, products: 0, decoded: self.answer_bytes(geometry) }
    }

    /// Counted: a product with its sum takes a third of a transform, orders and rounding a half, a butterfly of polynomials as
    /// much.
    pub(super) fn ring_work(&'static self, geometry: &Geometry) -> RingWork {
        let packed = Packed::new(self, geometry);
        let (rows, blocks) = (geometry.rows() as f64, blocks(geometry.columns) as f64);
        let room = packed.rows() as f64;
        let across = f64::from(packed.count.ilog2()) / 4.0;
        let [packing, picking_digits] = [self.packing, self.picking].map(|cut| cut.count as f64);
        let picking = packed.picks.map_or(0.0, |picks| {
            let butterflies = picks as f64 * f64::from(picks.ilog2()) / 2.0;
            packed.parts as f64 * ((picks - 1) as f64 * (2.0 + 4.0 * picking_digits) + butterflies / 2.0)
        });
        RingWork {
            preparing: rows * blocks * 1.4 + room * (across + 2.0 + 2.0 * packing),
            answering: packed.ciphertexts() as f64 * 2.0 + picking,
            encrypted: blocks
                + packing
                + if packed.picks.is_some() { 1.0 + 2.0 * picking_digits } else { 0.0 },
        }
    }

    /// The variance of the noise of a coefficient before the answer is rounded, for the worst data: each stage's. Source:
    /// InsPIRe's analysis, with 128 for a centred entry; digits' low bits are independent of the secrets.
    pub(super) fn variance(&'static self, geometry: &Geometry) -> f64 {
        self.variance_of(geometry, self.query_bits(geometry))
    }

    /// The same where a query's words have so many bits.
    fn variance_of(&'static self, geometry: &Geometry, query_bits: u32) -> f64 {
        let (q, d, packed) = (self.prime().value() as f64, DEGREE as f64, Packed::new(self, geometry));
        let power = |bits: u32| f64::from(bits).exp2();
        // A ternary coefficient's.
        let secret = 2.0 / 3.0;
        let rounded = (q / power(query_bits)).powi(2) / 12.0;
        let scan = geometry.columns as f64 * 128.0 * 128.0 * (ERROR_VARIANCE + rounded);
        let (digits, rest) = self.packing.variances(self.prime());
        let switched = d * (digits * ERROR_VARIANCE + rest * secret);
        let packing = (packed.count - 1) as f64 * switched;
        let (digits, rest) = self.picking.variances(self.prime());
        let product = 2.0 * d * digits * ERROR_VARIANCE + rest * (1.0 + d * secret);
        let picking = (packed.picks.unwrap_or(1) - 1) as f64 * product;
        let sent = (q / power(MASK_BITS)).powi(2) / 12.0 * d * secret;
        scan + packing + picking + sent
    }

    /// Half of the distance between two bytes, less the rounding of an answer's body.
    fn margin(&'static self) -> f64 {
        self.prime().value() as f64 * (1.0 / 512.0 - 0.5 / f64::from(BODY_BITS).exp2())
    }

    /// -log2 of a bound on the probability that a record decodes wrongly: the noise of each of its bytes is subgaussian.
    pub(super) fn failure_log2(&'static self, geometry: &Geometry) -> f64 {
        self.failure_log2_of(geometry, self.query_bits(geometry))
    }

    fn failure_log2_of(&'static self, geometry: &Geometry, query_bits: u32) -> f64 {
        let exponent = self.margin().powi(2) / (2.0 * self.variance_of(geometry, query_bits));
        exponent * std::f64::consts::LOG2_E - 1.0 - (geometry.record_bytes as f64).log2()
    }

    /// How far from a byte an honest answer's body is, at most, in units of 2^-17 of the whole: a bound that noise passes once in
    /// 2^40 lookups. Half of a byte is 2^8 units.
    pub(super) fn reach(&'static self, geometry: &Geometry) -> u64 {
        let packed = Packed::new(self, geometry);
        let bits = NOISE_LIMIT_LOG2 + 1.0 + ((packed.sent() * packed.count) as f64).log2();
        let reach = (2.0 * std::f64::consts::LN_2 * bits * self.variance(geometry)).sqrt();
        let unit = self.prime().value() as f64 / f64::from(MASK_BITS).exp2();
        // The body's rounding, and one unit for that of the mask's word.
        let rounding = f64::from(1u32 << (MASK_BITS - BODY_BITS - 1)) + 1.0;
        (reach / unit + rounding).ceil() as u64
    }

    /// The groups for which traffic and packing tables together cost least: more columns make a longer query, more groups longer
    /// tables, which each pass reads. In a table by key, one query stands for `by_key` lookups.
    pub(super) fn groups(&'static self, records: u64, slot_bytes: usize, by_key: Option<usize>) -> u64 {
        // Twice as many columns each time, and one and a half times as many between.
        let columns = (10..20).flat_map(|log| [1u64 << log, 3 << (log - 1)]);
        let fits = |geometry: &Geometry| {
            self.check(geometry).is_ok() && self.failure_log2(geometry) >= NOISE_LIMIT_LOG2
        };
        let weight = TABLE_WEIGHT + (by_key.unwrap_or(1) - 1) as f64 * MEMORY_WEIGHT;
        let cost = |geometry: &Geometry| {
            let traffic = self.query_bytes(geometry) + self.answer_bytes(geometry);
            traffic as f64 + weight * Packed::new(self, geometry).table_bytes() as f64
        };
        let numbers = columns.map(|columns| records.div_ceil(columns));
        cheapest(numbers, records, slot_bytes, by_key.is_some(), fits, cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyword::{columns_for, fullest};

    fn geometry(record_bytes: usize, groups: usize, columns: usize) -> Geometry {
        Geometry { record_bytes, groups, columns }
    }

    #[test]
    fn rows_fill_ciphertexts_in_their_order() {
        for (record_bytes, groups) in
            [(1, 1), (1, 5000), (64, 100), (68, 1000), (256, 300), (260, 90), (1024, 9), (1025, 9), (5000, 3)]
        {
            let geometry = geometry(record_bytes, groups, 100);
            let packed = Packed::new(&CLASSICAL, &geometry);
            let mut before = (0, 0);
            for row in 0..geometry.rows() {
                let (ciphertext, at) = packed.place(&geometry, row);
                assert!(at < packed.count && ciphertext < packed.ciphertexts(), "{geometry:?}");
                assert!(row == 0 || (ciphertext, at) > before, "{geometry:?}");
                before = (ciphertext, at);
            }
            assert_eq!(before.0, packed.ciphertexts() - 1);
            let mut next = 0;
            let mut kept = vec![false; packed.room()];
            for ciphertext in 0..packed.ciphertexts() {
                let rows = packed.rows_of(&geometry, ciphertext);
                assert_eq!(
                    (rows.start, packed.place(&geometry, next)),
                    (next, (ciphertext, 0)),
                    "{geometry:?}"
                );
                next = rows.end;
                assert!(!std::mem::replace(&mut kept[packed.kept(ciphertext)], true), "{geometry:?}");
            }
            assert_eq!(next, geometry.rows(), "{geometry:?}");
        }
    }

    #[test]
    fn a_gibibyte_takes_a_hundred_kilobytes() {
        let groups = CLASSICAL.groups(1 << 22, 256, None);
        let geometry = geometry(256, groups as usize, (1 << 22) / groups as usize);
        assert_eq!((geometry.groups, geometry.columns), (256, 16_384));
        let Packed { count, groups, parts, choices, picks, .. } = Packed::new(&CLASSICAL, &geometry);
        assert_eq!((count, groups, parts, choices, picks), (256, 1, 1, 256, Some(256)));
        assert_eq!(CLASSICAL.query_bytes(&geometry) + CLASSICAL.answer_bytes(&geometry), 92_800);
        assert!(CLASSICAL.failure_log2(&geometry) > 60.0, "{}", CLASSICAL.failure_log2(&geometry));
        let operands = CLASSICAL.operands(&geometry);
        let bytes: usize = operands.iter().map(Operand::bytes).sum();
        assert!((bytes as f64) < 1.8 * f64::from(1 << 30), "{bytes}");
    }

    /// All buckets' tables are kept in memory, and each is queried once for a whole batch: the larger the batch, the shorter the tables.
    #[test]
    fn buckets_have_shorter_tables_and_longer_queries() {
        let records = 3 * (1 << 20) / 384;
        let of = |lookups| {
            let groups = CLASSICAL.groups(records, 261, Some(lookups)) as usize;
            let geometry = geometry(261, groups, columns_for(fullest(records, groups)));
            assert!(CLASSICAL.failure_log2(&geometry) > 60.0, "{geometry:?}");
            (groups, Packed::new(&CLASSICAL, &geometry).table_bytes(), CLASSICAL.query_bytes(&geometry))
        };
        let (alone, batch) = (of(1), of(256));
        assert_eq!((alone.0, batch.0), (3, 1));
        assert!(batch.1 <= alone.1 / 2 && batch.2 > alone.2, "{alone:?} {batch:?}");
    }

    #[test]
    fn a_query_has_as_few_bits_as_noise_allows() {
        for (groups, columns, bits) in [(256, 16_384, 25), (400, 28_500, 26), (64, 1 << 17, 27)] {
            let geometry = geometry(256, groups, columns);
            assert_eq!(CLASSICAL.query_bits(&geometry), bits, "{columns}");
            for set in [&CLASSICAL, &QUANTUM] {
                let bits = set.query_bits(&geometry);
                let [is, fewer] = [bits, bits - 1].map(|bits| set.failure_log2_of(&geometry, bits));
                assert!(is >= ROUNDED_LOG2, "{}, {columns}: {is}", set.about.name);
                assert!(bits == 25 || fewer < ROUNDED_LOG2, "{}, {columns}: {fewer}", set.about.name);
            }
        }
    }

    #[test]
    fn honest_noise_stays_within_half_a_byte() {
        for geometry in [
            geometry(1, 1, 1),
            geometry(256, 256, 16_384),
            geometry(256, 1024, 32_768),
            geometry(64, 3000, 65_536),
        ] {
            for set in [&CLASSICAL, &QUANTUM] {
                let reach = set.reach(&geometry);
                assert!(reach < 1 << (MASK_BITS - 9), "{}, {geometry:?}: {reach}", set.about.name);
                // Coefficients at random are all as near to a byte once in 2^40 answers at most.
                let packed = Packed::new(set, &geometry);
                let near = (2 * reach + 1) as f64 / f64::from(1u32 << (MASK_BITS - 8));
                let log2 = near.log2() * (packed.sent() * packed.count) as f64;
                assert!(log2 < -40.0, "{}, {geometry:?}: {log2}", set.about.name);
            }
        }
    }

    #[test]
    fn strength_is_that_of_the_ring() {
        for set in [&CLASSICAL, &QUANTUM] {
            let strength = blindcore_rlwe::security::estimate(DEGREE, set.prime_bits).unwrap();
            let said = set.about.security.unwrap();
            assert_eq!((said.bits, said.quantum_bits), (strength.classical, Some(strength.quantum_chaloy21)));
            assert_eq!(set.prime().value().ilog2() + 1, set.prime_bits);
        }
        assert!(QUANTUM.about.security.unwrap().quantum_bits >= Some(128.0));
    }

    #[test]
    fn what_noise_leaves_no_room_for_is_refused() {
        assert!(CLASSICAL.check(&geometry(1, 1, 1 << 21)).is_err());
        assert!(CLASSICAL.check(&geometry(256, 5000, 1)).is_err());
        assert!(CLASSICAL.check(&geometry(256, 4096, 1 << 14)).is_ok());
        let error = CLASSICAL.check(&geometry(65_536, 1, 2)).unwrap_err().to_string();
        assert!(
            error.contains("packing tables in bytes is 805306368") && error.contains("shorter blocks"),
            "{error}"
        );
    }
}
