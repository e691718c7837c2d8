//! The sizes and the noise of the scheme without a hint.

use std::sync::LazyLock;

use blindcore_accel::contract::{Shape, Window};
use blindcore_accel::{Layout, Word};
use blindcore_math::ntt::primes;
use blindcore_math::{Modulus, Prime};
use blindcore_rlwe::rounding::packed_bytes;

use crate::schemes::matrix;
use crate::schemes::scheme::{About, ClientWork, Operand, Origin, RingWork, Run, Security};
use crate::{Error, Geometry};

/// Nothing is fetched before the first lookup, and answers have a few kilobytes.
pub(super) const ABOUT: About = About {
    name: "hintless",
    title: "Hintless",
    suits: "with nothing to fetch before the first lookup",
    wire_id: 3,
    security: Some(Security { bits: 142.8, quantum_bits: Some(103.0), estimator: ESTIMATOR }),
    constants: &[
        DEGREE as u64,
        PRIME_BITS as u64,
        ERROR_PAIRS as u64,
        PACKING_DROPPED as u64,
        PICKING_DROPPED as u64,
        MASK_BITS as u64,
        BODY_BITS as u64,
    ],
};
const ESTIMATOR: &str = "lattice-estimator 27a581b";

/// d: coefficients of a polynomial.
pub(super) const DEGREE: usize = 2048;
/// Q is the largest prime of this many bits for which 2d divides Q - 1.
const PRIME_BITS: u32 = 48;
/// Bytes of a residue.
pub(super) const RESIDUE_BYTES: usize = 6;
/// Errors are centred binomials of this many pairs of bits: deviation 3.24.
pub(super) const ERROR_PAIRS: u32 = 21;
const ERROR_VARIANCE: f64 = ERROR_PAIRS as f64 / 2.0;
/// Low bits that the digits of packing drop.
pub(super) const PACKING_DROPPED: u32 = 25;
/// Low bits that the digits of picking drop.
pub(super) const PICKING_DROPPED: u32 = 25;
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
/// The most bytes of packing tables: so many, and so many times the records. A table of few columns would have far longer ones.
const SMALL_TABLES: u64 = 128 << 20;
const TABLES_SHARE: u64 = 2;
/// Traffic, in bytes, that is worth a byte of packing tables read in each pass.
const TABLE_WEIGHT: f64 = 6.6e-5;
/// A lookup may fail once in two to this.
const NOISE_LIMIT_LOG2: f64 = 40.0;

/// The operands' places.
pub(super) const RECORDS: usize = 0;
pub(super) const TABLES: usize = 1;

/// Q.
pub(super) fn prime() -> Prime {
    static PRIME: LazyLock<Prime> = LazyLock::new(|| {
        primes(PRIME_BITS, DEGREE)
            .ok()
            .and_then(|mut found| found.next())
            .expect("there are primes of 48 bits")
    });
    *PRIME
}

/// Delta: what a picked column adds to a query.
pub(super) fn delta() -> u64 {
    (prime().value() + 128) / 256
}

/// How the rows of a table are packed into ciphertexts.
///
/// ```text
///   short records: ciphertext = several groups           long records: group = several ciphertexts
///     rows  ┌ group 0 ┐                                    rows  ┌ group 0, part 0 ┐ ciphertext 0
///           │ group 1 │ ciphertext 0                             │ group 0, part 1 │ ciphertext 1
///           ├ group 2 ┤                                          ├ group 1, part 0 ┤ ciphertext 2
///           │ group 3 │ ciphertext 1                             └ ...             ┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packed {
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
    pub(super) fn new(geometry: &Geometry) -> Self {
        let of = |count: usize| {
            let (bytes, groups) = (geometry.record_bytes, geometry.groups);
            let (per, parts) = if bytes <= count { (count / bytes, 1) } else { (1, bytes.div_ceil(count)) };
            let choices = groups.div_ceil(per);
            let sent = choices == 1 || choices * parts <= MAX_SENT;
            let picks = (!sent).then(|| choices.next_power_of_two());
            Self { count, groups: per, parts, choices, picks }
        };
        let cost = |packed: &Self| {
            let traffic = packed.sent() * packed.sent_bytes() + packed.picking_bytes();
            TABLE_WEIGHT * packed.table_bytes() as f64 + traffic as f64
        };
        let [first, others @ ..] = COUNTS.map(of);
        others.into_iter().fold(first, |best, this| if cost(&this) < cost(&best) { this } else { best })
    }

    /// Ciphertexts in all.
    pub(super) fn ciphertexts(&self) -> usize {
        self.choices * self.parts
    }

    /// Rows that there is room for.
    fn rows(&self) -> usize {
        self.ciphertexts() * self.count
    }

    /// Bytes of a query for picking: a seed and two rows.
    fn picking_bytes(&self) -> usize {
        if self.picks.is_some() { SEED_BYTES + 2 * DEGREE * RESIDUE_BYTES } else { 0 }
    }

    /// Bytes of the packing tables.
    fn table_bytes(&self) -> usize {
        self.rows().saturating_mul(DEGREE * RESIDUE_BYTES)
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

    /// Ciphertexts of an answer.
    pub(super) fn sent(&self) -> usize {
        if self.picks.is_some() { self.parts } else { self.ciphertexts() }
    }

    /// Bytes of a ciphertext of an answer.
    pub(super) fn sent_bytes(&self) -> usize {
        packed_bytes(DEGREE, MASK_BITS) + packed_bytes(self.count, BODY_BITS)
    }
}

/// Bits of a word of a query's first part. More columns leave less room for its rounding.
pub(super) fn query_bits(columns: usize) -> u32 {
    if columns <= 1 << 16 { 26 } else { 28 }
}

/// Polynomials that cover the columns.
pub(super) fn blocks(columns: usize) -> usize {
    columns.div_ceil(DEGREE)
}

pub(super) fn check(geometry: &Geometry) -> Result<(), Error> {
    let range = |what, got: usize, max: u64, remedy| {
        let (got, min) = (got as u64, 1);
        if got <= max { Ok(()) } else { Err(Error::Range { what, got, min, max, remedy }) }
    };
    range("number of columns", geometry.columns, MAX_COLUMNS, "use more groups")?;
    let packed = Packed::new(geometry);
    let picks = packed.picks.unwrap_or(1);
    range("number of ciphertexts to pick from", picks, MAX_PICKS as u64, "use fewer groups of more columns")?;
    let most = SMALL_TABLES + TABLES_SHARE * geometry.rows() as u64 * geometry.columns as u64;
    let remedy = "use more columns, cut records into shorter blocks, or choose another scheme";
    range("packing tables in bytes", packed.table_bytes(), most, remedy)
}

/// Bytes of a query: its first part, the packing key, and for picking a seed and two rows.
pub(super) fn query_bytes(geometry: &Geometry) -> usize {
    first_bytes(geometry) + DEGREE * RESIDUE_BYTES + Packed::new(geometry).picking_bytes()
}

/// Bytes of the part of a query that the records are multiplied by.
pub(super) fn first_bytes(geometry: &Geometry) -> usize {
    packed_bytes(geometry.columns, query_bits(geometry.columns))
}

pub(super) fn answer_bytes(geometry: &Geometry) -> usize {
    let packed = Packed::new(geometry);
    packed.sent() * packed.sent_bytes()
}

pub(super) fn operands(geometry: &Geometry) -> Vec<Operand> {
    let packed = Packed::new(geometry);
    let residues = |name, n, j, window| {
        let words = Shape::new(Word::U48, vec![Modulus::Prime(prime())]);
        let shape = Shape { m: crate::MAX_GATHER, n, j, d: DEGREE, window, ..words };
        Operand { name, layout: Layout::for_shape(&shape), shape, origin: Origin::Preprocessed }
    };
    // As `Packing::step` has it.
    let window = Window { period: DEGREE / 2, step: DEGREE / 2 / packed.count };
    let masks = packed.picks.unwrap_or(packed.choices) * packed.parts;
    vec![
        matrix::operand("records", geometry.rows(), geometry.columns, Origin::Slots),
        // t_i for each ciphertext and i.
        residues("packing tables", packed.ciphertexts(), packed.count - 1, Some(window)),
        // Coefficients; where one is picked, of the polynomial that goes through them all.
        residues("masks", masks, 1, None),
    ]
}

pub(super) fn answering(queries: usize) -> Vec<Run> {
    [RECORDS, TABLES].map(|operand| Run { operand, queries, passes: 1 }).into()
}

/// A query's words are encrypted polynomial by polynomial ([`ring_work`]).
pub(super) fn client_work(geometry: &Geometry) -> ClientWork {
    ClientWork { masked: 0, products: 0, decoded: answer_bytes(geometry) }
}

/// Counted: a product with its sum takes a third of a transform, orders and rounding a half, a butterfly of polynomials as
/// much.
pub(super) fn ring_work(geometry: &Geometry) -> RingWork {
    let packed = Packed::new(geometry);
    let (rows, blocks) = (geometry.rows() as f64, blocks(geometry.columns) as f64);
    let room = packed.rows() as f64;
    let across = f64::from(packed.count.ilog2()) / 4.0;
    let picking = packed.picks.map_or(0.0, |picks| {
        let butterflies = picks as f64 * f64::from(picks.ilog2()) / 2.0;
        packed.parts as f64 * ((picks - 1) as f64 * 6.0 + butterflies / 2.0)
    });
    RingWork {
        preparing: rows * blocks * 1.4 + room * (across + 4.0),
        answering: packed.ciphertexts() as f64 * 2.0 + picking,
        encrypted: blocks + 1.0 + if packed.picks.is_some() { 3.0 } else { 0.0 },
    }
}

/// The variance of the noise of a coefficient before the answer is rounded, for the worst data: each stage's. Source:
/// InsPIRe's analysis, with 128 for a centred entry; digits' low bits are independent of the secrets.
pub(super) fn variance(geometry: &Geometry) -> f64 {
    let (q, d, packed) = (prime().value() as f64, DEGREE as f64, Packed::new(geometry));
    let power = |bits: u32| f64::from(bits).exp2();
    // A ternary coefficient's.
    let secret = 2.0 / 3.0;
    let rounded = (q / power(query_bits(geometry.columns))).powi(2) / 12.0;
    let scan = geometry.columns as f64 * 128.0 * 128.0 * (ERROR_VARIANCE + rounded);
    // A digit is uniform below q / 2^w, what it drops below 2^w.
    let digit = |dropped| (q / power(dropped)).powi(2) / 12.0;
    let rest = |dropped| power(dropped).powi(2) / 12.0;
    let switched = d * (digit(PACKING_DROPPED) * ERROR_VARIANCE + rest(PACKING_DROPPED) * secret);
    let packing = (packed.count - 1) as f64 * switched;
    let product =
        2.0 * d * digit(PICKING_DROPPED) * ERROR_VARIANCE + rest(PICKING_DROPPED) * (1.0 + d * secret);
    let picking = (packed.picks.unwrap_or(1) - 1) as f64 * product;
    let sent = (q / power(MASK_BITS)).powi(2) / 12.0 * d * secret;
    scan + packing + picking + sent
}

/// Half of the distance between two bytes, less the rounding of an answer's body.
fn margin() -> f64 {
    prime().value() as f64 * (1.0 / 512.0 - 0.5 / f64::from(BODY_BITS).exp2())
}

/// -log2 of a bound on the probability that a record decodes wrongly: the noise of each of its bytes is subgaussian.
pub(super) fn failure_log2(geometry: &Geometry) -> f64 {
    let exponent = margin().powi(2) / (2.0 * variance(geometry));
    exponent * std::f64::consts::LOG2_E - 1.0 - (geometry.record_bytes as f64).log2()
}

/// How far from a byte an honest answer's body is, at most, in units of 2^-17 of the whole: a bound that noise passes once in
/// 2^40 lookups. Half of a byte is 2^8 units.
pub(super) fn reach(geometry: &Geometry) -> u64 {
    let packed = Packed::new(geometry);
    let bits = NOISE_LIMIT_LOG2 + 1.0 + ((packed.sent() * packed.count) as f64).log2();
    let reach = (2.0 * std::f64::consts::LN_2 * bits * variance(geometry)).sqrt();
    let unit = prime().value() as f64 / f64::from(MASK_BITS).exp2();
    // The body's rounding, and one unit for that of the mask's word.
    let rounding = f64::from(1u32 << (MASK_BITS - BODY_BITS - 1)) + 1.0;
    (reach / unit + rounding).ceil() as u64
}

/// The groups for which traffic and packing tables together cost least: more columns make a longer query, more groups longer
/// tables, which each pass reads.
pub(super) fn groups(records: u64, slot_bytes: usize) -> u64 {
    let cost = |columns: u64| {
        let groups = records.div_ceil(columns);
        let geometry = Geometry {
            record_bytes: slot_bytes,
            groups: usize::try_from(groups).ok()?,
            columns: columns.min(records) as usize,
        };
        check(&geometry).ok().filter(|()| failure_log2(&geometry) >= NOISE_LIMIT_LOG2)?;
        let traffic = query_bytes(&geometry) + answer_bytes(&geometry);
        Some((traffic as f64 + TABLE_WEIGHT * Packed::new(&geometry).table_bytes() as f64, groups))
    };
    // Twice as many columns each time, and one and a half times as many between.
    let columns = (10..20).flat_map(|log| [1u64 << log, 3 << (log - 1)]);
    let costs = columns.filter_map(cost);
    costs
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map_or_else(|| records.div_ceil(1 << 16), |(_, groups)| groups)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(record_bytes: usize, groups: usize, columns: usize) -> Geometry {
        Geometry { record_bytes, groups, columns }
    }

    #[test]
    fn rows_fill_ciphertexts_in_their_order() {
        for (record_bytes, groups) in
            [(1, 1), (1, 5000), (64, 100), (68, 1000), (256, 300), (260, 90), (1024, 9), (1025, 9), (5000, 3)]
        {
            let geometry = geometry(record_bytes, groups, 100);
            let packed = Packed::new(&geometry);
            let mut before = (0, 0);
            for row in 0..geometry.rows() {
                let (ciphertext, at) = packed.place(&geometry, row);
                assert!(at < packed.count && ciphertext < packed.ciphertexts(), "{geometry:?}");
                assert!(row == 0 || (ciphertext, at) > before, "{geometry:?}");
                before = (ciphertext, at);
            }
            assert_eq!(before.0, packed.ciphertexts() - 1);
        }
    }

    #[test]
    fn a_gibibyte_takes_a_hundred_kilobytes() {
        let groups = groups(1 << 22, 256);
        let geometry = geometry(256, groups as usize, (1 << 22) / groups as usize);
        assert_eq!((geometry.groups, geometry.columns), (256, 16_384));
        assert_eq!(
            Packed::new(&geometry),
            Packed { count: 256, groups: 1, parts: 1, choices: 256, picks: Some(256) }
        );
        assert!(query_bytes(&geometry) + answer_bytes(&geometry) < 110_000);
        assert!(failure_log2(&geometry) > 100.0, "{}", failure_log2(&geometry));
        let operands = operands(&geometry);
        let bytes: usize = operands.iter().map(Operand::bytes).sum();
        assert!((bytes as f64) < 1.8 * f64::from(1 << 30), "{bytes}");
    }

    #[test]
    fn honest_noise_stays_within_half_a_byte() {
        for geometry in [
            geometry(1, 1, 1),
            geometry(256, 256, 16_384),
            geometry(256, 1024, 32_768),
            geometry(64, 3000, 65_536),
        ] {
            assert!(reach(&geometry) < 1 << (MASK_BITS - 9), "{geometry:?}: {}", reach(&geometry));
        }
    }

    #[test]
    fn what_noise_leaves_no_room_for_is_refused() {
        assert!(check(&geometry(1, 1, 1 << 21)).is_err());
        assert!(check(&geometry(256, 5000, 1)).is_err());
        assert!(check(&geometry(256, 4096, 1 << 14)).is_ok());
        let error = check(&geometry(65_536, 1, 2)).unwrap_err().to_string();
        assert!(
            error.contains("packing tables in bytes is 805306368") && error.contains("shorter blocks"),
            "{error}"
        );
    }
}
