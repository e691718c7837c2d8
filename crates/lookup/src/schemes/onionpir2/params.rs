//! The sizes and the noise of the scheme with registered keys.

use std::sync::{Arc, OnceLock};

use blindcore_accel::contract::Shape;
use blindcore_accel::{Layout, Word};
use blindcore_math::Modulus;
use blindcore_rlwe::galois::tree_exponents;
use blindcore_rlwe::rounding::packed_bytes;
use blindcore_rlwe::{Gadget, Parameters, Ring, sets};

use crate::keyword::{columns_for, fullest};
use crate::schemes::matrix;
use crate::schemes::rings::{EIGHT_LANES, LANE_BITS, SEED_BYTES};
use crate::schemes::scheme::{ClientWork, Operand, Origin, RingWork, Run};
use crate::{Error, Geometry, MAX_GATHER};

/// d: coefficients of a polynomial.
pub(super) const DEGREE: usize = 2048;
/// Levels of the tallest tree: 256 leaves.
pub(super) const HEIGHT: u32 = 8;
/// Bits of a residue modulo Q and q.
const LARGE_BITS: u32 = 50;
const SMALL_BITS: u32 = 40;
/// Bytes of a residue of a stored polynomial.
pub(super) const RESIDUE_BYTES: usize = 5;
/// Values that lie together in a stored polynomial: `[output][part][run][row][32]`.
pub(super) const RUN: usize = 32;
/// Bits of a word of a query: of its body the low ten are cut off.
pub(super) const QUERY_BITS: u32 = 40;
/// Bits of an answer's mask and body.
pub(super) const MASK_BITS: u32 = 20;
pub(super) const BODY_BITS: u32 = 14;

/// Digits and their bits for each level of the tree, from the root on: what switching adds at a level is doubled by each level after
/// it, so that fine digits are few and far up.
const TREE: [(usize, u32); HEIGHT as usize] =
    [(24, 2), (24, 2), (24, 2), (16, 3), (16, 3), (12, 4), (9, 5), (7, 6)];
/// Digits and bits of the key for s^2, which makes the second half of a factor.
const SQUARE: (usize, u32) = (5, 10);
/// Digits and bits of a factor, modulo q.
const FOLD: (usize, u32) = (3, 8);
/// Leaves that a bit of a choice takes.
pub(super) const BIT_LEAVES: usize = FOLD.0;

/// The operands' places.
pub(super) const POLYNOMIALS: usize = 1;
/// The most bytes of a pass's result: more queries are several passes.
const RESULT_BYTES: usize = 512 << 20;

/// What a digest of parameters covers.
pub(super) const CONSTANTS: &[u64] = &[
    DEGREE as u64,
    LARGE_BITS as u64,
    SMALL_BITS as u64,
    LANE_BITS as u64,
    HEIGHT as u64,
    TREE[0].0 as u64,
    TREE[1].0 as u64,
    TREE[2].0 as u64,
    TREE[3].0 as u64,
    TREE[4].0 as u64,
    TREE[5].0 as u64,
    TREE[6].0 as u64,
    TREE[7].0 as u64,
    SQUARE.0 as u64,
    FOLD.0 as u64,
    QUERY_BITS as u64,
    MASK_BITS as u64,
    BODY_BITS as u64,
];

/// The two rings, and how polynomials are taken apart.
pub(super) struct Rings {
    pub(super) parameters: Arc<Parameters>,
    /// The exponent and the gadget of each level, from the root on.
    pub(super) tree: Vec<(usize, Gadget)>,
    pub(super) square: Gadget,
    pub(super) fold: Gadget,
}

impl Rings {
    /// The rings, made once.
    pub(super) fn get() -> &'static Self {
        static RINGS: OnceLock<Rings> = OnceLock::new();
        RINGS.get_or_init(|| {
            let parameters = sets::N2048_ONION.check().expect("a set that is shipped");
            let gadget = |ring: &Ring, (digits, bits): (usize, u32)| {
                Gadget::new(ring, digits, bits, ring.bits() - digits as u32 * bits)
                    .expect("digits that fill the ring")
            };
            let large = |digits| gadget(parameters.ring(), digits);
            let tree = tree_exponents(DEGREE).zip(TREE.map(large)).collect();
            let (square, fold) = (large(SQUARE), gadget(parameters.reduced(0), FOLD));
            Self { parameters, tree, square, fold }
        })
    }

    /// The ring of keys and queries.
    pub(super) fn large(&self) -> &Arc<Ring> {
        self.parameters.ring()
    }

    /// The ring of the scan and of what follows it.
    pub(super) fn small(&self) -> &Arc<Ring> {
        self.parameters.reduced(0)
    }

    /// Q / p: what a picked column adds to a query.
    pub(super) fn delta(&self) -> u64 {
        ((self.large().modulus() + (1 << (LANE_BITS - 1))) >> LANE_BITS) as u64
    }

    /// What digit `i` of a bit that is 1 adds to a query: its weight modulo q, brought to Q.
    pub(super) fn weight(&self, digit: usize) -> u64 {
        let weight = 1u128 << (self.fold.dropped() + digit as u32 * self.fold.bits());
        let small = self.small().modulus();
        ((self.large().modulus() * weight + small / 2) / small) as u64
    }
}

/// Where the slots of a table lie among the polynomials.
///
/// ```text
///   polynomial, 2048 coefficients        output = a column of polynomials, one for each row; a query's first dimension picks a row
///   ┌ place 0 ┬ place 1 ┬ ...            outputs are folded two by two, a bit of the query for each level
///
///   few columns: column = row,   group = output and place
///   many:        column = row and one of eight coarse places, 256 coefficients apart;  group = output and a place within them
/// ```
///
/// A query's monomial turns a polynomial by multiples of 2^h coefficients at no cost, and only such turns are left to it: so the
/// columns of a group, of which a key takes four, differ by rows and by coarse places, and their sum lies where each of them does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places {
    /// Coefficients of a part of a slot.
    pub(super) width: usize,
    /// Polynomials that a slot takes a part of each.
    pub(super) parts: usize,
    /// Bytes of each part but the last, which may be shorter.
    pub(super) part_bytes: usize,
    /// Coarse places: columns of one row.
    pub(super) coarse: usize,
    /// Places within them: groups of one output.
    pub(super) fine: usize,
    /// Rows: polynomials of an output.
    pub(super) rows: usize,
    /// Outputs, each in as many parts as a slot.
    pub(super) outputs: usize,
    /// Bits that choose an output.
    pub(super) folds: u32,
    /// h: levels of the tree.
    pub(super) height: u32,
}

/// Coefficients between coarse places.
const COARSE: usize = 1 << HEIGHT;

impl Places {
    /// Of a geometry, which need not fit: [`Self::check`].
    pub(super) fn new(geometry: &Geometry) -> Self {
        let Geometry { record_bytes, groups, columns } = *geometry;
        let (parts, part_bytes, width) = cut(record_bytes);
        let dense = Self::of(parts, part_bytes, width, 1, DEGREE / width, columns, groups);
        if dense.leaves() <= 1 << HEIGHT || width > COARSE {
            return dense;
        }
        let coarse = DEGREE / COARSE;
        Self::of(parts, part_bytes, width, coarse, COARSE / width, columns.div_ceil(coarse), groups)
    }

    fn of(
        parts: usize,
        part_bytes: usize,
        width: usize,
        coarse: usize,
        fine: usize,
        rows: usize,
        groups: usize,
    ) -> Self {
        let outputs = groups.div_ceil(fine);
        let folds = GaloisLevels::of(outputs);
        let all = Self { width, parts, part_bytes, coarse, fine, rows, outputs, folds, height: HEIGHT };
        // Coarse places are as far apart as the tallest tree turns.
        let height = if coarse == 1 { GaloisLevels::of(all.leaves()).min(HEIGHT) } else { HEIGHT };
        Self { height, ..all }
    }

    /// Leaves of the tree: the rows, then three for each bit.
    pub(super) fn leaves(&self) -> usize {
        self.rows + BIT_LEAVES * self.folds as usize
    }

    /// Coefficients that a query's body is sent of: those that lead to a leaf.
    pub(super) fn asked(&self) -> usize {
        self.leaves() << (DEGREE.ilog2() - self.height)
    }

    /// Polynomials of a database: outputs and parts.
    pub(super) fn polynomials(&self) -> usize {
        self.outputs * self.parts
    }

    /// The first coefficient of a place.
    pub(super) fn position(&self, coarse: usize, fine: usize) -> usize {
        coarse * COARSE + fine * self.width
    }

    /// Where a fine place begins in what is sent of a body, after the query's monomial has turned it.
    pub(super) fn offset(&self, fine: usize) -> usize {
        (fine * self.width) & ((1 << self.height) - 1)
    }

    /// Coefficients that are sent of a body: whatever the place, its own are among them.
    pub(super) fn window(&self) -> usize {
        (0..self.fine).map(|fine| self.offset(fine) + self.width).max().unwrap_or(self.width)
    }

    /// Bytes of a part of an answer.
    pub(super) fn sent_bytes(&self) -> usize {
        packed_bytes(DEGREE, MASK_BITS) + packed_bytes(self.window(), BODY_BITS)
    }
}

/// Levels of a binary tree.
struct GaloisLevels;

impl GaloisLevels {
    fn of(leaves: usize) -> u32 {
        leaves.next_power_of_two().ilog2()
    }
}

/// Parts of a slot, the bytes of each, and its coefficients.
fn cut(record_bytes: usize) -> (usize, usize, usize) {
    const POLYNOMIAL: usize = DEGREE / 8 * EIGHT_LANES;
    let parts = record_bytes.div_ceil(POLYNOMIAL);
    if parts == 1 {
        return (1, record_bytes, (8 * record_bytes).div_ceil(LANE_BITS as usize));
    }
    // Whole lanes, so that a lane never lies in two parts.
    let bytes = record_bytes.div_ceil(parts).next_multiple_of(EIGHT_LANES);
    (record_bytes.div_ceil(bytes), bytes, bytes / EIGHT_LANES * 8)
}

/// Refuses a table that the scheme does not suit.
pub(super) fn check(geometry: &Geometry) -> Result<(), Error> {
    let places = Places::new(geometry);
    let (got, leaves) = (geometry.columns as u64, 1usize << HEIGHT);
    let rows = leaves.saturating_sub(BIT_LEAVES * places.folds as usize);
    let max = (rows * if places.width > COARSE { 1 } else { DEGREE / COARSE }) as u64;
    if places.leaves() <= leaves {
        return Ok(());
    }
    Err(Error::Range { what: "number of columns", got, min: 1, max, remedy: "use more groups" })
}

pub(super) fn query_bytes(geometry: &Geometry) -> usize {
    SEED_BYTES + packed_bytes(Places::new(geometry).asked(), QUERY_BITS)
}

pub(super) fn answer_bytes(geometry: &Geometry) -> usize {
    let places = Places::new(geometry);
    places.parts * places.sent_bytes()
}

pub(super) fn operands(geometry: &Geometry) -> Vec<Operand> {
    let places = Places::new(geometry);
    let q = Modulus::Prime(Rings::get().small().primes()[0]);
    let (n, j) = (places.polynomials(), places.rows);
    // Values are independent of each other. As runs of 32, each a channel of its own, they lie so that a run's sums stay in
    // registers while an output's rows go by in order.
    let runs = Shape::new(Word::U40, vec![q; DEGREE / RUN]);
    let shape = Shape { m: MAX_GATHER, n, p: 2, j, d: RUN, ..runs };
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
    (RESULT_BYTES / (places.polynomials() * 2 * DEGREE * 8)).clamp(1, MAX_GATHER)
}

pub(super) fn answering(geometry: &Geometry, queries: usize) -> Vec<Run> {
    let most = pass_queries(&Places::new(geometry));
    let run = |queries, passes| Run { operand: POLYNOMIALS, queries, passes };
    let (full, rest) = (run(most, (queries / most) as u64), run(queries % most, 1));
    [full, rest].into_iter().filter(|run| run.queries > 0 && run.passes > 0).collect()
}

pub(super) fn client_work(geometry: &Geometry) -> ClientWork {
    ClientWork { masked: 0, products: 0, decoded: answer_bytes(geometry) }
}

/// Counted in transforms: a product with its sum takes a third of one; a node of the tree an order and two sums beside its digits.
pub(super) fn ring_work(geometry: &Geometry) -> RingWork {
    let places = Places::new(geometry);
    let product = |digits: usize| digits as f64 * (1.0 + 2.0 / 3.0);
    let leaves = places.leaves();
    let node = |(level, (digits, _)): (usize, &(usize, u32))| {
        (1usize << level).min(leaves) as f64 * (product(*digits) + 2.5)
    };
    let expanding: f64 = TREE.iter().take(places.height as usize).enumerate().map(node).sum();
    let bits = (BIT_LEAVES * places.folds as usize) as f64;
    let choices = (places.outputs.saturating_sub(1) * places.parts) as f64;
    let polynomials = (places.polynomials() * places.rows) as f64;
    RingWork {
        preparing: polynomials * 2.5,
        answering: expanding
            + leaves as f64 * 4.0
            + bits * (product(SQUARE.0) + 5.0)
            + choices * (2.0 * product(FOLD.0) + 4.0)
            + places.parts as f64 * 3.0,
        encrypted: 1.0,
    }
}

/// The variance of a coefficient's noise after each stage.
///
/// Masks are uniform, and so are digits of them. Stored polynomials are uniform too, whatever the records: the pad makes them so, and its
/// seed is drawn when the records are fixed. So products of leaves and stored polynomials have the average's variance, though
/// leaves share errors, and data could be aligned with those.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(test), expect(dead_code, reason = "tests measure each stage"))]
pub(super) struct Stages {
    /// A leaf, modulo Q.
    pub(super) leaf: f64,
    /// The same modulo q.
    pub(super) switched: f64,
    /// An output.
    pub(super) first: f64,
    /// What a level of folding adds.
    pub(super) fold: f64,
    /// What rounding of an answer's mask adds.
    pub(super) sent: f64,
}

/// The variance of a ternary coefficient.
const TERNARY: f64 = 2.0 / 3.0;

impl Stages {
    pub(super) fn new(places: &Places) -> Self {
        let rings = Rings::get();
        let (d, error) = (DEGREE as f64, rings.parameters.error().variance());
        let (large, small) = (rings.large().modulus() as f64, rings.small().modulus() as f64);
        let power = |bits: u32| f64::from(bits).exp2();
        // Of a digit, and of what is dropped below all digits.
        let digits = |gadget: &Gadget| gadget.digits() as f64 * (power(2 * gadget.bits()) + 2.0) / 12.0;
        let dropped = |gadget: &Gadget| power(2 * gadget.dropped()) / 12.0;
        let height = places.height as usize;
        let level = |(level, (_, gadget)): (usize, &(usize, Gadget))| {
            let switching = d * (digits(gadget) * error + dropped(gadget) * TERNARY);
            power((height - 1 - level) as u32) * switching
        };
        let switching: f64 = rings.tree.iter().take(height).enumerate().map(level).sum();
        let cut = (large / power(QUERY_BITS)).powi(2) / 12.0;
        let leaf = switching + power(places.height) * (error + cut);
        // Rounding of both halves, of which the mask's meets the secret.
        let rounding = (1.0 + d * TERNARY) / 12.0;
        let scale = (small / large).powi(2);
        let switched = scale * leaf + rounding;
        let squaring = d * (digits(&rings.square) * error + dropped(&rings.square) * d * TERNARY * TERNARY);
        // A row of a factor's second half carries s e.
        let square = scale * (d * TERNARY * leaf + squaring) + rounding;
        let first = places.rows as f64 * d * power(2 * LANE_BITS) / 12.0 * switched;
        let fold = d * digits(&rings.fold) * (switched + square) + dropped(&rings.fold) * (1.0 + d * TERNARY);
        let sent = (small / power(MASK_BITS)).powi(2) / 12.0 * d * TERNARY;
        Self { leaf, switched, first, fold, sent }
    }

    /// Of a coefficient before it is rounded to a lane.
    pub(super) fn all(&self, places: &Places) -> f64 {
        self.first + f64::from(places.folds) * self.fold + self.sent
    }
}

/// Half of the distance between two lanes, less the rounding of an answer's body and of Q / p.
fn margin() -> f64 {
    let p = f64::from(LANE_BITS).exp2();
    Rings::get().small().modulus() as f64 * (0.5 / p - 0.5 / f64::from(BODY_BITS).exp2()) - p
}

/// -log2 of a bound on the probability that a record decodes wrongly: the noise of each of its lanes is subgaussian.
pub(super) fn failure_log2(geometry: &Geometry) -> f64 {
    let places = Places::new(geometry);
    let exponent = margin().powi(2) / (2.0 * Stages::new(&places).all(&places));
    exponent * std::f64::consts::LOG2_E - 1.0 - ((places.parts * places.width) as f64).log2()
}

/// What a leaf takes, in products of two polynomials that are chosen between.
const LEAF_WEIGHT: f64 = 1.5;

/// The groups for which the server does least beside its pass: more columns make a taller tree, more groups more outputs to fold.
pub(super) fn groups(records: u64, slot_bytes: usize, keyed: bool) -> u64 {
    let cost = |groups: u64| {
        let count = usize::try_from(groups).ok()?;
        let columns = if keyed {
            columns_for(fullest(records, count))
        } else {
            usize::try_from(records.div_ceil(groups)).ok()?
        };
        let geometry = Geometry { record_bytes: slot_bytes, groups: count, columns };
        // The fullest group may turn out to be fuller.
        let spare = if keyed { columns / 16 } else { 0 };
        check(&Geometry { columns: columns + spare, ..geometry }).ok()?;
        let places = Places::new(&geometry);
        let nodes = (1u64 << places.height) as f64;
        // Polynomials are read in the pass: those of a table by key are the more the fewer columns there are.
        let read = (places.polynomials() * places.rows) as f64 / 20.0;
        Some((LEAF_WEIGHT * nodes + places.polynomials() as f64 + read, groups))
    };
    // A sixteenth more each time: the least number that fits is among the first, and few more are worth a look.
    let next = |groups: &u64| Some(groups + groups.div_ceil(16)).filter(|next| *next <= records);
    let costs = std::iter::successors(Some(1u64), next).chain([records]).filter_map(cost);
    costs.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(records, |(_, groups)| groups).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(record_bytes: usize, groups: usize, columns: usize) -> Geometry {
        Geometry { record_bytes, groups, columns }
    }

    #[test]
    fn slots_lie_apart_and_within_their_polynomial() {
        for (record_bytes, groups, columns) in [
            (1, 1, 1),
            (1, 5000, 200),
            (64, 100, 300),
            (256, 300, 200),
            (261, 300, 1500),
            (4096, 9, 200),
            (2816, 3, 9),
        ] {
            let geometry = geometry(record_bytes, groups, columns);
            check(&geometry).unwrap();
            let places = Places::new(&geometry);
            let mut taken = vec![false; DEGREE];
            for coarse in 0..places.coarse {
                for fine in 0..places.fine {
                    let at = places.position(coarse, fine);
                    let here = &mut taken[at..at + places.width];
                    assert!(here.iter().all(|taken| !taken), "{places:?}");
                    here.fill(true);
                    // Turned by multiples of 2^h it lies where it is looked for.
                    assert_eq!(at & ((1 << places.height) - 1), places.offset(fine));
                }
            }
            assert!(places.window() <= DEGREE && places.leaves() <= 1 << places.height);
            assert!(places.rows * places.coarse >= columns && places.outputs * places.fine >= groups);
            assert!(places.parts * places.part_bytes >= record_bytes);
            assert!(8 * places.part_bytes <= places.width * LANE_BITS as usize);
        }
    }

    #[test]
    fn a_gibibyte_takes_sixteen_kilobytes() {
        let groups = groups(1 << 22, 256, false);
        let geometry = geometry(256, groups as usize, (1u64 << 22).div_ceil(groups) as usize);
        check(&geometry).unwrap();
        let places = Places::new(&geometry);
        assert_eq!((places.height, places.fine, places.folds), (8, 10, 11), "{places:?}");
        assert!(query_bytes(&geometry) <= 11_000 && answer_bytes(&geometry) <= 6_000);
        assert!(failure_log2(&geometry) > 90.0, "{}", failure_log2(&geometry));
        let kept = operands(&geometry)[POLYNOMIALS].bytes() as f64;
        assert!(kept < 4.1 * f64::from(1 << 30), "{kept}");
    }

    #[test]
    fn tables_of_every_size_have_a_plan() {
        for keyed in [false, true] {
            for records in [1u64, 2, 10, 1000, 50_000, 1_000_000, 100_000_000] {
                for slot_bytes in [1, 6, 64, 256, 261, 4096, 65_536] {
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
    fn what_the_tree_has_no_leaves_for_is_refused() {
        let error = check(&geometry(256, 1, 3000)).unwrap_err().to_string();
        assert!(error.contains("number of columns is 3000, outside 1 to 2048; use more groups"), "{error}");
        assert!(check(&geometry(400, 100, 300)).is_err(), "a long record has no coarse places");
    }
}
