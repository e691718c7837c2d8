//! The sizes and the noise of the scheme of two dimensions.

use crate::schemes::rings::answers::Sent;
use crate::schemes::rings::tree::{
    self, DEGREE, HEIGHT, LARGE_BITS, QUERY_BITS, SMALL_BITS, TREE, Tree, product,
};
use crate::schemes::rings::{self, LANE_BITS, MAX_COARSE, Places, polynomials, queries};
use crate::schemes::scheme::{ClientWork, Operand, RingWork, Run};
use crate::{Error, Geometry};

/// The longest dimensions that noise has room for.
const MAX_ROWS: usize = 2048;
const MAX_OUTPUTS: usize = 4096;

/// Bits that both halves of a first dimension's result are rounded to.
pub(super) const ROUNDED_BITS: u32 = 20;
/// Bits of a digit of those: a coefficient of a plaintext of the second dimension.
pub(super) const DIGIT_BITS: u32 = 10;
/// Digits of a rounded coefficient.
pub(super) const DIGITS: usize = (ROUNDED_BITS / DIGIT_BITS) as usize;
/// Bits of an answer's masks and bodies. Masks of 18 bits would do for digits that nobody aimed, and be a thirtieth less to send.
pub(super) const MASK_BITS: u32 = 19;
pub(super) const BODY_BITS: u32 = 13;

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
    QUERY_BITS as u64,
    ROUNDED_BITS as u64,
    DIGIT_BITS as u64,
    MASK_BITS as u64,
    BODY_BITS as u64,
];

/// Where slots lie: with those coarse places for which the server does least. A query's leaves are a row each of the first dimension,
/// then an output each.
///
/// The geometry need not fit: [`check`].
pub(super) fn places(geometry: &Geometry) -> Places {
    let with = |coarse| Places::new(geometry, coarse, |rows, outputs| rows + outputs);
    let dense = with(1);
    let others = coarse_places(geometry).skip(1).map(with);
    // What is too long in one dimension goes before what is too long in the other, if nothing fits.
    let cost = |places: &Places| (places.rows > MAX_ROWS, places.outputs > MAX_OUTPUTS, cost(places));
    others.fold(dense, |best, this| if cost(&this) < cost(&best) { this } else { best })
}

/// The numbers of coarse places that a slot leaves room for.
fn coarse_places(geometry: &Geometry) -> impl Iterator<Item = usize> {
    let width = rings::width(geometry.record_bytes);
    (0..=MAX_COARSE.ilog2()).map(|log2| 1 << log2).filter(move |coarse| width <= DEGREE / coarse)
}

/// Refuses a table that the scheme does not suit.
pub(super) fn check(geometry: &Geometry) -> Result<(), Error> {
    let places = places(geometry);
    if places.rows > MAX_ROWS {
        let max = (MAX_ROWS * coarse_places(geometry).last().unwrap_or(1)) as u64;
        let (what, got) = ("number of columns", geometry.columns as u64);
        return Err(Error::Range { what, got, min: 1, max, remedy: "use more groups" });
    }
    if places.outputs > MAX_OUTPUTS {
        let (what, got, max) =
            ("number of groups", geometry.groups as u64, (MAX_OUTPUTS * places.fine) as u64);
        return Err(Error::Range { what, got, min: 1, max, remedy: "use more columns, or split the table" });
    }
    Ok(())
}

/// Digits of a first dimension's result: of the mask, and of what is kept of the body.
pub(super) fn digits(places: &Places) -> usize {
    DIGITS * (DEGREE + places.window())
}

/// F: plaintexts that they fill, and so ciphertexts of a part of an answer.
pub(super) fn pieces(places: &Places) -> usize {
    digits(places).div_ceil(DEGREE)
}

/// How the ciphertexts of a part of an answer are sent, one after another.
pub(super) fn sent(places: &Places) -> impl Iterator<Item = Sent> {
    let digits = digits(places);
    (0..pieces(places)).map(move |piece| Sent {
        mask_bits: MASK_BITS,
        body_bits: BODY_BITS,
        kept: (digits - piece * DEGREE).min(DEGREE),
    })
}

/// Bytes of a part of an answer.
pub(super) fn part_bytes(places: &Places) -> usize {
    sent(places).map(|sent| sent.bytes()).sum()
}

pub(super) fn query_bytes(geometry: &Geometry) -> usize {
    queries::query_bytes(&places(geometry))
}

pub(super) fn answer_bytes(geometry: &Geometry) -> usize {
    let places = places(geometry);
    places.parts * part_bytes(&places)
}

pub(super) fn operands(geometry: &Geometry) -> Vec<Operand> {
    polynomials::operands(geometry, &places(geometry))
}

/// Words of an expanded leaf.
pub(super) const PAIR: usize = 2 * DEGREE;

pub(super) fn answering(geometry: &Geometry, queries: usize) -> Vec<Run> {
    rings::runs(polynomials::POLYNOMIALS, rings::pass_queries(places(geometry).leaves * PAIR), queries)
}

pub(super) fn client_work(geometry: &Geometry) -> ClientWork {
    ClientWork { masked: 0, products: 0, decoded: answer_bytes(geometry) }
}

/// Counted in transforms.
pub(super) fn ring_work(geometry: &Geometry) -> RingWork {
    let places = places(geometry);
    RingWork {
        preparing: (places.polynomials() * places.rows) as f64 * 2.5,
        answering: answering_work(&places),
        encrypted: places.ciphertexts() as f64,
    }
}

/// Transforms of an answer, beside the pass.
fn answering_work(places: &Places) -> f64 {
    let pieces = pieces(places) as f64;
    // All but the last ciphertext are whole.
    let trees = places.ciphertexts();
    let expanding = (trees - 1) as f64 * Tree::work(places.height, 1 << places.height)
        + Tree::work(places.height, places.leaves_of(trees - 1));
    // A result goes back to coefficients, and each of its plaintexts is transformed and meets both halves of a leaf.
    let second = places.polynomials() as f64 * (2.0 + pieces * product(1));
    expanding + places.leaves as f64 * 4.0 + second + (places.parts as f64) * pieces * 2.0
}

/// What a stored polynomial takes in the pass, in transforms.
const PASS_WEIGHT: f64 = 0.4;

/// What an answer takes of the server, in transforms.
fn cost(places: &Places) -> f64 {
    answering_work(places) + PASS_WEIGHT * (places.polynomials() * places.rows) as f64
}

/// The groups for which the server does least: those that make both dimensions about as long.
pub(super) fn groups(records: u64, slot_bytes: usize, keyed: bool) -> u64 {
    let fits = |geometry: &Geometry| check(geometry).is_ok();
    rings::groups(records, slot_bytes, keyed, fits, |geometry| cost(&places(geometry)))
}

/// The variance of a coefficient's noise after each stage.
///
/// Plaintexts of the first dimension are uniform, whatever the records: their pad makes them so. Those of the second are digits of
/// ciphertexts under the same query: sums of its leaves' masks, times polynomials that were fixed before it, and bodies that nobody can tell
/// from uniform who hasn't the secret. So products have the average's variance in both, though leaves share errors.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(test), expect(dead_code, reason = "tests measure each stage"))]
pub(super) struct Stages {
    /// A leaf, modulo Q.
    pub(super) leaf: f64,
    /// The same modulo q.
    pub(super) switched: f64,
    /// A result of the first dimension.
    pub(super) first: f64,
    /// What rounding of its mask adds.
    pub(super) rounded: f64,
    /// A sum of the second dimension.
    pub(super) second: f64,
    /// What rounding of an answer's masks adds.
    pub(super) sent: f64,
}

impl Stages {
    pub(super) fn new(places: &Places) -> Self {
        let tree = Tree::get();
        let leaf = tree.leaf_noise(places.height);
        let switched = tree.switched_noise(leaf);
        Self {
            leaf,
            switched,
            first: Tree::scan_noise(places.rows, LANE_BITS, switched),
            rounded: tree.sent_noise(ROUNDED_BITS),
            second: Tree::scan_noise(places.outputs, DIGIT_BITS, switched),
            sent: tree.sent_noise(MASK_BITS),
        }
    }

    /// -log2 of bounds on the probability that a digit of the second dimension comes out wrong, and a lane of the first one.
    pub(super) fn failures(&self, places: &Places) -> [f64; 2] {
        let tree = Tree::get();
        let (digits, lanes) = (tree.margin(DIGIT_BITS, BODY_BITS), tree.margin(LANE_BITS, ROUNDED_BITS));
        [
            tree::failure_log2(digits, self.second + self.sent, places.parts * self::digits(places)),
            tree::failure_log2(lanes, self.first + self.rounded, places.parts * places.width),
        ]
    }
}

/// -log2 of a bound on the probability that a record decodes wrongly.
pub(super) fn failure_log2(geometry: &Geometry) -> f64 {
    let places = places(geometry);
    let [second, first] = Stages::new(&places).failures(&places);
    -((-second).exp2() + (-first).exp2()).log2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyword::{columns_for, fullest};

    fn planned(records: u64, record_bytes: usize, keyed: bool) -> Geometry {
        let groups = groups(records, record_bytes, keyed);
        let columns = if keyed {
            columns_for(fullest(records, groups as usize))
        } else {
            records.div_ceil(groups) as usize
        };
        Geometry { record_bytes, groups: groups as usize, columns }
    }

    #[test]
    fn a_gibibyte_has_dimensions_of_about_a_length() {
        // Groups that are found by key are the fuller the more columns they have.
        for (record_bytes, keyed, ratio) in [(256, false, 2), (261, true, 5)] {
            let geometry = planned(1 << 22, record_bytes, keyed);
            check(&geometry).unwrap();
            let places = places(&geometry);
            assert_eq!(places.height, 8, "{places:?}");
            assert!(places.rows < ratio * places.outputs && places.outputs < 2 * places.rows, "{places:?}");
            assert!(places.leaves < 2000, "{places:?}");
            assert_eq!(pieces(&places), 3);
            assert!(query_bytes(&geometry) < 80_000 && answer_bytes(&geometry) < 25_000);
            assert!(failure_log2(&geometry) > 60.0, "{}", failure_log2(&geometry));
        }
    }

    #[test]
    fn tables_of_many_sizes_have_a_plan() {
        for keyed in [false, true] {
            for records in [1u64, 2, 10, 1000, 50_000, 1_000_000, 30_000_000] {
                for slot_bytes in [1, 6, 64, 256, 261, 4096, 65_536] {
                    let geometry = planned(records, slot_bytes, keyed);
                    if records as f64 * slot_bytes as f64 > 8e9 {
                        continue;
                    }
                    check(&geometry).unwrap_or_else(|e| panic!("{records} x {slot_bytes}, {keyed}: {e}"));
                    assert!(failure_log2(&geometry) > 40.0, "{geometry:?}: {}", failure_log2(&geometry));
                }
            }
        }
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let geometry = |record_bytes, groups, columns| Geometry { record_bytes, groups, columns };
        let error = check(&geometry(256, 1, 20_000)).unwrap_err().to_string();
        assert!(error.contains("number of columns is 20000, outside 1 to 16384; use more groups"), "{error}");
        let error = check(&geometry(256, 50_000, 3)).unwrap_err().to_string();
        assert!(error.contains("number of groups is 50000, outside 1 to 40960; use more columns"), "{error}");
        assert!(check(&geometry(400, 100, 10_000)).is_err(), "a long record has few coarse places");
        // The longest dimensions, and the longest records.
        for record_bytes in [256, 2816, 65_536] {
            let slots = DEGREE / rings::width(record_bytes);
            let longest = geometry(record_bytes, MAX_OUTPUTS * slots, MAX_ROWS);
            check(&longest).unwrap();
            assert!(failure_log2(&longest) > 42.0, "{record_bytes}: {}", failure_log2(&longest));
        }
    }
}
