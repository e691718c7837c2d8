//! The sizes and the noise of the scheme with registered keys.

use std::sync::OnceLock;

use blindcore_rlwe::Gadget;

use crate::schemes::rings::tree::{
    self, DEGREE, HEIGHT, LARGE_BITS, QUERY_BITS, SMALL_BITS, TERNARY, TREE, Tree,
};
use crate::schemes::rings::{self, LANE_BITS, MAX_COARSE, Places, answers::Sent, polynomials};
use crate::schemes::scheme::{ClientWork, Operand, RingWork, Run};
use crate::{Error, Geometry};

/// Bits of an answer's mask and body.
pub(super) const MASK_BITS: u32 = 20;
pub(super) const BODY_BITS: u32 = 14;

/// Digits and bits of the key for s^2, which makes the second half of a factor.
const SQUARE: (usize, u32) = (5, 10);
/// Digits and bits of a factor, modulo q.
const FOLD: (usize, u32) = (3, 8);
/// Leaves that a bit of a choice takes.
pub(super) const BIT_LEAVES: usize = FOLD.0;

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

/// How polynomials are taken apart beside the tree.
pub(super) struct Gadgets {
    pub(super) square: Gadget,
    pub(super) fold: Gadget,
}

impl Gadgets {
    /// Made once.
    pub(super) fn get() -> &'static Self {
        static GADGETS: OnceLock<Gadgets> = OnceLock::new();
        GADGETS.get_or_init(|| {
            let tree = Tree::get();
            let (square, fold) = (tree::gadget(tree.large(), SQUARE), tree::gadget(tree.small(), FOLD));
            Self { square, fold }
        })
    }

    /// What digit `i` of a bit that is 1 adds to a query: its weight modulo q, brought to Q.
    pub(super) fn weight(&self, digit: usize) -> u64 {
        let weight = 1u128 << (self.fold.dropped() + digit as u32 * self.fold.bits());
        let (large, small) = (Tree::get().large().modulus(), Tree::get().small().modulus());
        ((large * weight + small / 2) / small) as u64
    }
}

/// Coefficients between coarse places.
const COARSE: usize = DEGREE / MAX_COARSE;

/// Where slots lie. Outputs are folded two by two, a bit of the query for each level.
///
/// ```text
///   few columns: column = row,   group = output and place
///   many:        column = row and one of eight coarse places, 256 coefficients apart;  group = output and a place within them
/// ```
///
/// The geometry need not fit: [`check`].
pub(super) fn places(geometry: &Geometry) -> Places {
    // The rows, then three leaves for each bit.
    let leaves = |rows: usize, outputs: usize| rows + BIT_LEAVES * rings::levels(outputs) as usize;
    let dense = Places::new(geometry, 1, leaves);
    if dense.leaves <= 1 << HEIGHT || dense.width > COARSE {
        return dense;
    }
    Places::new(geometry, MAX_COARSE, leaves)
}

/// Bits that choose an output.
pub(super) fn folds(places: &Places) -> u32 {
    rings::levels(places.outputs)
}

/// How a part of an answer is sent.
pub(super) fn sent(places: &Places) -> Sent {
    Sent { mask_bits: MASK_BITS, body_bits: BODY_BITS, kept: places.window() }
}

/// Refuses a table that the scheme does not suit.
pub(super) fn check(geometry: &Geometry) -> Result<(), Error> {
    let places = places(geometry);
    let (got, leaves) = (geometry.columns as u64, 1usize << HEIGHT);
    let rows = leaves.saturating_sub(BIT_LEAVES * folds(&places) as usize);
    let max = (rows * if places.width > COARSE { 1 } else { DEGREE / COARSE }) as u64;
    if places.leaves <= leaves {
        return Ok(());
    }
    Err(Error::Range { what: "number of columns", got, min: 1, max, remedy: "use more groups" })
}

pub(super) fn query_bytes(geometry: &Geometry) -> usize {
    rings::queries::query_bytes(&places(geometry))
}

pub(super) fn answer_bytes(geometry: &Geometry) -> usize {
    let places = places(geometry);
    places.parts * sent(&places).bytes()
}

pub(super) fn operands(geometry: &Geometry) -> Vec<Operand> {
    polynomials::operands(geometry, &places(geometry))
}

/// Words of an expanded row.
pub(super) const PAIR: usize = 2 * DEGREE;

pub(super) fn answering(geometry: &Geometry, queries: usize) -> Vec<Run> {
    rings::runs(polynomials::POLYNOMIALS, rings::pass_queries(places(geometry).rows * PAIR), queries)
}

pub(super) fn client_work(geometry: &Geometry) -> ClientWork {
    ClientWork { masked: 0, products: 0, decoded: answer_bytes(geometry) }
}

/// Counted in transforms.
pub(super) fn ring_work(geometry: &Geometry) -> RingWork {
    let places = places(geometry);
    let bits = (BIT_LEAVES * folds(&places) as usize) as f64;
    let choices = (places.outputs.saturating_sub(1) * places.parts) as f64;
    let polynomials = (places.polynomials() * places.rows) as f64;
    RingWork {
        preparing: polynomials * 2.5,
        answering: Tree::work(places.height, places.leaves)
            + places.leaves as f64 * 4.0
            + bits * (tree::product(SQUARE.0) + 5.0)
            + choices * (2.0 * tree::product(FOLD.0) + 4.0)
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

impl Stages {
    pub(super) fn new(places: &Places) -> Self {
        let (tree, gadgets) = (Tree::get(), Gadgets::get());
        let (d, error) = (DEGREE as f64, tree.parameters.error().variance());
        let (digits, dropped) = (tree::digits_noise, tree::dropped_noise);
        let leaf = tree.leaf_noise(places.height);
        let switched = tree.switched_noise(leaf);
        let (square, fold) = (&gadgets.square, &gadgets.fold);
        let squaring = d * (digits(square) * error + dropped(square) * d * TERNARY * TERNARY);
        // A row of a factor's second half carries s e.
        let square = tree.switched_noise(d * TERNARY * leaf + squaring);
        let first = Tree::scan_noise(places.rows, LANE_BITS, switched);
        let fold = d * digits(fold) * (switched + square) + dropped(fold) * (1.0 + d * TERNARY);
        Self { leaf, switched, first, fold, sent: tree.sent_noise(MASK_BITS) }
    }

    /// Of a coefficient before it is rounded to a lane.
    pub(super) fn all(&self, places: &Places) -> f64 {
        self.first + f64::from(folds(places)) * self.fold + self.sent
    }
}

/// -log2 of a bound on the probability that a record decodes wrongly: the noise of each of its lanes is subgaussian.
pub(super) fn failure_log2(geometry: &Geometry) -> f64 {
    let places = places(geometry);
    let margin = Tree::get().margin(LANE_BITS, BODY_BITS);
    tree::failure_log2(margin, Stages::new(&places).all(&places), places.parts * places.width)
}

/// What a leaf takes, in products of two polynomials that are chosen between.
const LEAF_WEIGHT: f64 = 1.5;

/// The groups for which the server does least beside its pass: more columns make a taller tree, more groups more outputs to fold.
pub(super) fn groups(records: u64, slot_bytes: usize, keyed: bool) -> u64 {
    let cost = |geometry: &Geometry| {
        let places = places(geometry);
        let nodes = (1u64 << places.height) as f64;
        // Polynomials are read in the pass: those of a table by key are the more the fewer columns there are.
        let read = (places.polynomials() * places.rows) as f64 / 20.0;
        LEAF_WEIGHT * nodes + places.polynomials() as f64 + read
    };
    rings::groups(records, slot_bytes, keyed, |geometry| check(geometry).is_ok(), cost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyword::{columns_for, fullest};

    fn geometry(record_bytes: usize, groups: usize, columns: usize) -> Geometry {
        Geometry { record_bytes, groups, columns }
    }

    #[test]
    fn a_gibibyte_takes_sixteen_kilobytes() {
        let groups = groups(1 << 22, 256, false);
        let geometry = geometry(256, groups as usize, (1u64 << 22).div_ceil(groups) as usize);
        check(&geometry).unwrap();
        let places = places(&geometry);
        assert_eq!((places.height, places.fine, folds(&places)), (8, 10, 11), "{places:?}");
        assert!(query_bytes(&geometry) <= 11_000 && answer_bytes(&geometry) <= 6_000);
        assert!(failure_log2(&geometry) > 90.0, "{}", failure_log2(&geometry));
        let kept = operands(&geometry)[polynomials::POLYNOMIALS].bytes() as f64;
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
