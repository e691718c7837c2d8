//! The sizes and the noise of the scheme of one-hot rows and rotations.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use blindcore_accel::contract::Shape;
use blindcore_accel::{Layout, Word};
use blindcore_math::Modulus;
use blindcore_rlwe::rounding::packed_bytes;
use blindcore_rlwe::{Gadget, Parameters, Ring, sets};

use crate::schemes::matrix;
use crate::schemes::rings::tree::{self, TERNARY, digits_noise, dropped_noise, gadget, product};
use crate::schemes::rings::{self, EIGHT_LANES, LANE_BITS, SEED_BYTES, cheapest, cut};
use crate::schemes::scheme::{ClientWork, Operand, Origin, RingWork, Run};
use crate::{Error, Geometry, MAX_GATHER};

/// d: coefficients of a polynomial, and slots of one.
pub(super) const DEGREE: usize = 2048;
/// Slots of a row: a rotation turns both rows.
pub(super) const ROW: usize = DEGREE / 2;
/// p: the least prime that has as many slots. Four lanes of 11 bits add up to less.
const PLAINTEXT: u64 = 12_289;
/// Bits of a residue modulo Q.
const MODULUS_BITS: u32 = 48;
/// Values of a stored polynomial that are a channel of the contract: `[output][run][column][32]`.
const RUN: usize = 32;
/// Bits of a word of a query: of its bodies the low four are cut off.
pub(super) const QUERY_BITS: u32 = 44;
/// Bits of an answer's mask and body.
pub(super) const MASK_BITS: u32 = 22;
pub(super) const BODY_BITS: u32 = 17;
/// Digits and bits of a key.
const ROTATION: (usize, u32) = (2, 15);
/// Turns by 1, 2, 4, ... 512 slots, and the swap of the rows.
const KEYS: usize = DEGREE.ilog2() as usize;

/// The most outputs: each takes 32 KiB of a pass's result.
const MAX_OUTPUTS: usize = RESULT_BYTES / OUTPUT_BYTES;
const OUTPUT_BYTES: usize = 2 * DEGREE * 8;
/// The most columns, each of which a query has a ciphertext for.
const MAX_COLUMNS: usize = 4096;

/// The operands' places.
pub(super) const POLYNOMIALS: usize = 1;
/// The most bytes of a pass's result: more queries are several passes.
const RESULT_BYTES: usize = 512 << 20;

/// What a digest of parameters covers.
pub(super) const CONSTANTS: &[u64] = &[
    DEGREE as u64,
    PLAINTEXT,
    MODULUS_BITS as u64,
    LANE_BITS as u64,
    ROTATION.0 as u64,
    ROTATION.1 as u64,
    QUERY_BITS as u64,
    MASK_BITS as u64,
    BODY_BITS as u64,
];

/// The ring, and how polynomials are taken apart.
pub(super) struct Rings {
    pub(super) parameters: Arc<Parameters>,
    pub(super) gadget: Gadget,
}

impl Rings {
    /// The ring, made once.
    pub(super) fn get() -> &'static Self {
        static RINGS: OnceLock<Rings> = OnceLock::new();
        RINGS.get_or_init(|| {
            let parameters = sets::N2048_SLOTS.check().expect("a set that is shipped");
            let gadget = gadget(parameters.ring(), ROTATION);
            Self { parameters, gadget }
        })
    }

    pub(super) fn ring(&self) -> &Arc<Ring> {
        self.parameters.ring()
    }
}

/// The automorphism that moves what is in each slot by 2^`level` slots up, round its row; beyond the last such level, the one that
/// swaps the rows.
fn exponent(level: u32) -> usize {
    // X -> X^(5^t) turns a row by t to the left, so by ROW - t to the right.
    let turns = ROW - (1 << level);
    if level == ROW.ilog2() {
        return 2 * DEGREE - 1;
    }
    (0..turns).fold(1, |power, _| power * 5 % (2 * DEGREE))
}

/// The exponents of all keys, by level.
pub(super) fn exponents() -> &'static [usize; KEYS] {
    static EXPONENTS: OnceLock<[usize; KEYS]> = OnceLock::new();
    EXPONENTS.get_or_init(|| std::array::from_fn(|level| exponent(level as u32)))
}

/// Where the slots of a table lie among the polynomials.
///
/// ```text
///   column 0, column 1, ...       a ciphertext of the query for each: one-hot at a cell where the column is picked, else nothing
///   ┌ cell 0 ┬ cell 1 ┬ ... ┐
///   │ lane 0 │ lane 0 │     │ output 0      a cell has `slots` slots of each polynomial: one in a large table
///   │ lane 1 │ lane 1 │     │ output 1
///   │ ...                   │ ...           group = share and cell;  piece = a part of a record of one share
///   └────────┴────────┴─────┘               outputs go piece after piece, and as many pieces as fit are an answer
/// ```
///
/// Outputs of an answer are gathered by rotations: lane t comes t slots behind the cell's first. So the answer's lanes lie in a row, and
/// in the other row from half of them on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places {
    /// Columns: polynomials of an output.
    pub(super) columns: usize,
    /// Slots of a cell: a power of two.
    pub(super) slots: usize,
    /// Cells that are in use: groups of a share.
    pub(super) cells: usize,
    /// Shares of the groups.
    pub(super) shares: usize,
    /// Parts of a record.
    pub(super) parts: usize,
    /// Bytes of each part but the last, which may be shorter.
    pub(super) part_bytes: usize,
    /// Lanes of a part.
    pub(super) width: usize,
    /// Outputs of a piece: `width` lanes, `slots` in each.
    pub(super) height: usize,
    /// Pieces of an answer; the last one may have fewer.
    pub(super) per: usize,
}

impl Places {
    /// Of a geometry, which need not fit: [`check`].
    pub(super) fn new(geometry: &Geometry) -> Self {
        let Geometry { record_bytes, groups, columns } = *geometry;
        let (parts, part_bytes, width) = cut(DEGREE, record_bytes);
        let cells = groups.div_ceil(groups.div_ceil(DEGREE));
        let shares = groups.div_ceil(cells);
        // Room that few cells leave is their slots', of which a record fills at most half of what its lanes are gathered to.
        let slots = (DEGREE / cells.next_power_of_two()).min((width.next_power_of_two() / 2).max(1));
        let height = width.div_ceil(slots);
        let per = (DEGREE / (height * slots)).min(shares * parts);
        // Parts of more than half a polynomial stand alone.
        Self { columns, slots, cells, shares, parts, part_bytes, width, height, per }
    }

    /// Pieces: first parts of all shares, then second parts.
    pub(super) fn pieces(&self) -> usize {
        self.shares * self.parts
    }

    /// Polynomials of a column.
    pub(super) fn outputs(&self) -> usize {
        self.pieces() * self.height
    }

    /// Ciphertexts of an answer.
    pub(super) fn answers(&self) -> usize {
        self.pieces().div_ceil(self.per)
    }

    /// Outputs of one of them.
    pub(super) fn outputs_of(&self, answer: usize) -> Range<usize> {
        let each = self.per * self.height;
        answer * each..((answer + 1) * each).min(self.outputs())
    }

    /// n: what the lanes of a ciphertext of an answer are gathered to, a power of two from 2 on.
    pub(super) fn lanes(&self) -> usize {
        (self.per * self.height * self.slots).next_power_of_two().max(2)
    }

    /// The slot of a cell where lane `t` of an answer lies behind the cell's first, as it is shown by the n coefficients that are sent:
    /// in each row every n/2 slots are the same.
    pub(super) fn behind(&self, lane: usize) -> usize {
        let half = self.lanes() / 2;
        lane / half * ROW + lane % half
    }

    /// Coefficients between two that are sent of a body.
    pub(super) fn step(&self) -> usize {
        DEGREE / self.lanes()
    }

    /// Bytes of a ciphertext of an answer.
    pub(super) fn sent_bytes(&self) -> usize {
        packed_bytes(DEGREE, MASK_BITS) + packed_bytes(self.lanes(), BODY_BITS)
    }

    /// Lanes that are laid out together: whole bytes of records, and whole outputs.
    pub(super) fn unit_lanes(&self) -> usize {
        self.slots.max(8)
    }

    /// The same in outputs.
    pub(super) fn unit_outputs(&self) -> usize {
        self.unit_lanes() / self.slots
    }

    /// The same in bytes of a record.
    pub(super) fn unit_bytes(&self) -> usize {
        self.unit_lanes() / 8 * EIGHT_LANES
    }

    /// Units of a piece; the last one may have fewer outputs.
    pub(super) fn units(&self) -> usize {
        self.height.div_ceil(self.unit_outputs())
    }

    /// Polynomials of the table.
    fn polynomials(&self) -> usize {
        self.outputs() * self.columns
    }

    /// Rotations that gather an answer.
    fn rotations(&self) -> usize {
        self.outputs() - self.answers()
    }
}

/// Refuses a table that the scheme does not suit.
pub(super) fn check(geometry: &Geometry) -> Result<(), Error> {
    let (places, most) = (Places::new(geometry), MAX_OUTPUTS);
    if geometry.columns > MAX_COLUMNS {
        let (got, max) = (geometry.columns as u64, MAX_COLUMNS as u64);
        return Err(Error::Range { what: "number of columns", got, min: 1, max, remedy: "use more groups" });
    }
    if places.outputs() <= most {
        return Ok(());
    }
    // Shares of whole outputs, or else cells of as many slots as make the outputs few enough.
    let shares = most / (places.parts * places.width);
    let cells = most / places.parts * DEGREE / places.width.next_multiple_of(8);
    let max = if shares > 0 { shares * DEGREE } else { 1 << cells.max(1).ilog2() };
    let (got, max) = (geometry.groups as u64, max as u64);
    Err(Error::Range { what: "number of groups", got, min: 1, max, remedy: "use more columns" })
}

pub(super) fn query_bytes(geometry: &Geometry) -> usize {
    SEED_BYTES + geometry.columns * packed_bytes(DEGREE, QUERY_BITS)
}

pub(super) fn answer_bytes(geometry: &Geometry) -> usize {
    let places = Places::new(geometry);
    places.answers() * places.sent_bytes()
}

pub(super) fn operands(geometry: &Geometry) -> Vec<Operand> {
    let places = Places::new(geometry);
    let q = Modulus::Prime(Rings::get().ring().primes()[0]);
    // Values are independent of each other, and so runs of 32 are channels: a run's sums stay in registers.
    let runs = Shape::new(Word::U48, vec![q; DEGREE / RUN]);
    let shape = Shape { m: MAX_GATHER, n: places.outputs(), p: 2, j: places.columns, d: RUN, ..runs };
    vec![
        matrix::operand("records", geometry.rows(), geometry.columns, Origin::Slots),
        Operand {
            name: "polynomials",
            layout: Layout::for_shape(&shape),
            shape,
            origin: Origin::Preprocessed,
        },
    ]
}

/// Queries of a pass: as many as a result has room for.
pub(super) fn pass_queries(places: &Places) -> usize {
    (MAX_OUTPUTS / places.outputs()).clamp(1, MAX_GATHER)
}

pub(super) fn answering(geometry: &Geometry, queries: usize) -> Vec<Run> {
    rings::runs(POLYNOMIALS, pass_queries(&Places::new(geometry)), queries)
}

pub(super) fn client_work(geometry: &Geometry) -> ClientWork {
    ClientWork { masked: 0, products: 0, decoded: answer_bytes(geometry) }
}

/// Counted in transforms: a product with its sum takes a third of one, and so does a mask's expansion twice.
pub(super) fn ring_work(geometry: &Geometry) -> RingWork {
    let places = Places::new(geometry);
    let rotation = 1.0 + product(ROTATION.0) + 1.5;
    RingWork {
        preparing: places.polynomials() as f64 * 3.0,
        answering: places.columns as f64 * 2.0
            + places.rotations() as f64 * rotation
            + places.answers() as f64 * 2.0,
        encrypted: places.columns as f64,
    }
}

/// The variance of a coefficient's noise after each stage.
///
/// Errors of a query's ciphertexts are fresh and independent. Masks are uniform, and so are digits of them. Stored polynomials are uniform
/// and independent from output to output, whatever the records: the pad makes them so, and its seed is drawn when the records are
/// fixed. Without it, outputs that were the same would be a trace, whose noise comes together in the coefficients that are sent.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(test), expect(dead_code, reason = "tests measure each stage"))]
pub(super) struct Stages {
    /// A ciphertext of a query, as it came.
    pub(super) query: f64,
    /// An output.
    pub(super) first: f64,
    /// What a rotation adds.
    pub(super) rotation: f64,
    /// What rounding of an answer's mask adds.
    pub(super) sent: f64,
}

/// The most columns that a query picks, which may be the same one.
const PICKED: f64 = 4.0;

impl Stages {
    pub(super) fn new(places: &Places) -> Self {
        let rings = Rings::get();
        let (d, q) = (DEGREE as f64, rings.ring().modulus() as f64);
        let (gadget, error) = (&rings.gadget, rings.parameters.error().variance());
        let power = |bits: u32| f64::from(bits).exp2();
        let uniform = |below: f64| below.powi(2) / 12.0;
        let query = error + uniform(q / power(QUERY_BITS));
        // Rounding of (Q / p) m adds a half at most to each picked column.
        let all = places.columns as f64 * query + PICKED.powi(2) / 12.0;
        let first = d * uniform(PLAINTEXT as f64) * all;
        let rotation = d * (digits_noise(gadget) * error + dropped_noise(gadget) * TERNARY);
        let sent = uniform(q / power(MASK_BITS)) * d * TERNARY;
        Self { query, first, rotation, sent }
    }

    /// Of a coefficient before it is rounded.
    pub(super) fn all(&self, places: &Places) -> f64 {
        let outputs = (places.per * places.height) as f64;
        outputs * self.first + (outputs - 1.0) * self.rotation + self.sent
    }
}

/// Half of Q / p, less the rounding of an answer's body.
fn margin() -> f64 {
    let q = Rings::get().ring().modulus() as f64;
    q * (0.5 / PLAINTEXT as f64 - 0.5 / f64::from(BODY_BITS).exp2())
}

/// -log2 of a bound on the probability that a record decodes wrongly: each coefficient that is sent decides every lane, and its noise is
/// subgaussian.
pub(super) fn failure_log2(geometry: &Geometry) -> f64 {
    let places = Places::new(geometry);
    tree::failure_log2(margin(), Stages::new(&places).all(&places), places.parts * places.lanes())
}

/// Bytes of traffic that are worth a rotation, of some 18 microseconds, and a polynomial read in the pass, of 1.2: at 200 Mbit/s.
const ROTATION_WEIGHT: f64 = 450.0;
const READ_WEIGHT: f64 = 30.0;

/// The groups for which traffic and work are least: more groups make a shorter query and more rotations.
pub(super) fn groups(records: u64, slot_bytes: usize, keyed: bool) -> u64 {
    let fits = |geometry: &Geometry| check(geometry).is_ok() && failure_log2(geometry) > 41.0;
    let cost = |geometry: &Geometry| {
        let places = Places::new(geometry);
        let traffic = (query_bytes(geometry) + answer_bytes(geometry)) as f64;
        traffic + ROTATION_WEIGHT * places.rotations() as f64 + READ_WEIGHT * places.polynomials() as f64
    };
    // Whole polynomials: a power of two of cells, or shares of as many as there are slots; a sixteenth more each time.
    let few = (0..DEGREE.ilog2()).map(|bits| 1u64 << bits);
    let many = std::iter::successors(Some(1u64), |shares| Some(shares + shares.div_ceil(16)));
    // More shares than there are outputs never fit.
    let most = records.min((MAX_OUTPUTS * DEGREE) as u64);
    let all = few.chain(many.map(|shares| shares * DEGREE as u64)).take_while(|groups| *groups < most);
    cheapest(all, records, slot_bytes, keyed, fits, cost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyword::{columns_for, fullest};

    fn geometry(record_bytes: usize, groups: usize, columns: usize) -> Geometry {
        Geometry { record_bytes, groups, columns }
    }

    #[test]
    fn lanes_lie_apart_and_within_their_polynomials() {
        for (record_bytes, groups, columns) in [
            (1, 1, 1),
            (1, 5000, 20),
            (64, 100, 30),
            (256, 300, 20),
            (256, 30_000, 2),
            (4096, 9, 20),
            (2816, 3, 9),
        ] {
            let geometry = geometry(record_bytes, groups, columns);
            check(&geometry).unwrap();
            let places = Places::new(&geometry);
            assert!(places.cells * places.shares >= groups && places.cells * places.slots <= DEGREE);
            assert!((places.shares - 1) * places.cells < groups, "each share has a group");
            assert!(places.parts * places.part_bytes >= record_bytes);
            assert!(8 * places.part_bytes <= places.width * LANE_BITS as usize);
            let half = places.lanes() / 2;
            assert!(places.slots <= half && places.slots.is_power_of_two(), "{places:?}");
            // Seen through the coefficients that are sent, a cell's lanes lie apart.
            let mut taken = vec![false; places.lanes()];
            for lane in 0..places.per * places.height * places.slots {
                let slot = places.behind(lane);
                let folded = slot / ROW * half + slot % ROW % half;
                assert!(!std::mem::replace(&mut taken[folded], true), "{places:?}, lane {lane}");
            }
            let all: usize = (0..places.answers()).map(|answer| places.outputs_of(answer).len()).sum();
            assert_eq!(all, places.outputs());
            assert!((places.units() - 1) * places.unit_outputs() < places.height);
        }
    }

    #[test]
    fn a_gibibyte_takes_a_megabyte_and_a_half() {
        let groups = groups(1 << 22, 256, false);
        let geometry = geometry(256, groups as usize, (1u64 << 22).div_ceil(groups) as usize);
        check(&geometry).unwrap();
        let places = Places::new(&geometry);
        assert_eq!((places.answers(), places.per, places.slots), (2, 10, 1), "{places:?}");
        assert!(query_bytes(&geometry) <= 1_500_000, "{}", query_bytes(&geometry));
        assert_eq!(answer_bytes(&geometry), 19_968);
        assert!(failure_log2(&geometry) > 60.0, "{}", failure_log2(&geometry));
        let kept = operands(&geometry)[POLYNOMIALS].bytes() as f64;
        assert!(kept < 4.5 * f64::from(1 << 30), "{kept}");
    }

    #[test]
    fn tables_up_to_some_gibibytes_have_a_plan() {
        for keyed in [false, true] {
            for records in [1u64, 2, 10, 1000, 50_000, 1_000_000, 10_000_000] {
                for slot_bytes in [1, 6, 64, 256, 261, 4096, 65_536] {
                    if records * slot_bytes as u64 > 4 << 30 {
                        continue;
                    }
                    let groups = groups(records, slot_bytes, keyed);
                    let columns = if keyed {
                        columns_for(fullest(records, groups as usize))
                    } else {
                        records.div_ceil(groups) as usize
                    };
                    let geometry = geometry(slot_bytes, groups as usize, columns);
                    check(&geometry).unwrap_or_else(|e| panic!("{records} x {slot_bytes}, {keyed}: {e}"));
                    assert!(failure_log2(&geometry) > 40.0, "{geometry:?}: {}", failure_log2(&geometry));
                }
            }
        }
    }

    #[test]
    fn what_a_pass_has_no_room_for_is_refused() {
        let error = check(&geometry(256, 1, 5000)).unwrap_err().to_string();
        assert!(error.contains("number of columns is 5000, outside 1 to 4096; use more groups"), "{error}");
        for record_bytes in [1, 256, 2816, 65_536] {
            let error = check(&geometry(record_bytes, 1 << 30, 1)).unwrap_err();
            let Error::Range { max, .. } = error else { panic!("{error}") };
            check(&geometry(record_bytes, max as usize, 1)).unwrap();
            assert!(check(&geometry(record_bytes, 2 * max as usize, 1)).is_err(), "{record_bytes}: {max}");
        }
    }
}
