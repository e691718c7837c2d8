//! The sizes and the noise of the scheme with two dimensions.

use std::sync::{Arc, OnceLock};

use blindcore_accel::Word;
use blindcore_rlwe::galois::tree_exponents;
use blindcore_rlwe::{Gadget, Multiplier, Parameters, Ring, sets};

use crate::schemes::rings::answers::Sent;
use crate::schemes::rings::{self, LANE_BITS, Places, SEED_BYTES, polynomials};
use crate::schemes::scheme::{ClientWork, Operand, RingWork, Run};
use crate::{Error, Geometry};

/// d: coefficients of a polynomial.
pub(super) const DEGREE: usize = 4096;
/// Levels of the tallest tree: 1024 leaves of a ciphertext.
pub(super) const HEIGHT: u32 = 10;
/// Ciphertexts of a query, and leaves of all of them, at most.
const MOST_CIPHERTEXTS: usize = 32;
const MOST_LEAVES: usize = MOST_CIPHERTEXTS << HEIGHT;
/// Primes of Q, and bits of each.
const PRIMES: usize = 2;
pub(super) const PRIME_BITS: u32 = 48;
/// Bytes of a word of a query: of a body's coefficient, a centred integer, the low 24 bits are cut off.
pub(super) const QUERY_BYTES: usize = 9;
pub(super) const QUERY_CUT: u32 = 24;
/// The word of a residue of a stored polynomial.
pub(super) const STORED: Word = Word::U48;
/// Bits of an answer's mask and body.
pub(super) const MASK_BITS: u32 = 20;
const BODY_BITS: u32 = 14;

/// Digits and their bits for each level of the tree, from the root on: what switching adds at a level is doubled by each level after
/// it, so that fine digits are few and far up.
const TREE: [(usize, u32); HEIGHT as usize] =
    [(5, 16), (5, 16), (5, 16), (5, 16), (4, 19), (4, 19), (4, 19), (4, 19), (4, 19), (4, 19)];
/// Digits and bits of the key for s^2.
const SQUARE: (usize, u32) = (4, 19);

/// What a digest of parameters covers.
pub(super) const CONSTANTS: &[u64] = &[
    DEGREE as u64,
    PRIMES as u64,
    PRIME_BITS as u64,
    LANE_BITS as u64,
    HEIGHT as u64,
    TREE[0].0 as u64,
    TREE[0].1 as u64,
    TREE[4].0 as u64,
    TREE[4].1 as u64,
    SQUARE.0 as u64,
    SQUARE.1 as u64,
    QUERY_CUT as u64,
    MASK_BITS as u64,
    BODY_BITS as u64,
];

/// The rings, and how polynomials are taken apart.
pub(super) struct Rings {
    pub(super) parameters: Arc<Parameters>,
    /// The exponent and the gadget of each level, from the root on.
    pub(super) tree: Vec<(usize, Gadget)>,
    pub(super) square: Gadget,
}

impl Rings {
    /// The rings, made once.
    pub(super) fn get() -> &'static Self {
        static RINGS: OnceLock<Rings> = OnceLock::new();
        RINGS.get_or_init(|| {
            let parameters = sets::N4096_MUL.check().expect("a set that is shipped");
            let ring = parameters.ring();
            let gadget = |(digits, bits): (usize, u32)| {
                Gadget::new(ring, digits, bits, ring.bits() - digits as u32 * bits)
                    .expect("digits that fill the ring")
            };
            let tree = tree_exponents(DEGREE).zip(TREE.map(gadget)).collect();
            Self { square: gadget(SQUARE), tree, parameters }
        })
    }

    /// What a server multiplies by, for sums of as many products as a query has leaves, made once.
    pub(super) fn multiplier(&self) -> &'static Multiplier {
        static MULTIPLIER: OnceLock<Multiplier> = OnceLock::new();
        MULTIPLIER.get_or_init(|| {
            Multiplier::new(&self.parameters, self.large(), MOST_LEAVES).expect("there are primes of 49 bits")
        })
    }

    /// The ring of keys, queries and products.
    pub(super) fn large(&self) -> &Arc<Ring> {
        self.parameters.ring()
    }

    /// The ring of answers: one prime.
    pub(super) fn small(&self) -> &Arc<Ring> {
        self.parameters.level(PRIMES - 1)
    }

    /// Q / p modulo each prime: what a picked column or output adds to a query.
    pub(super) fn delta(&self) -> [u64; PRIMES] {
        let delta = (self.large().modulus() + (1 << (LANE_BITS - 1))) >> LANE_BITS;
        std::array::from_fn(|i| self.large().primes()[i].reduce(delta))
    }
}

/// Where the slots of a geometry lie, which need not fit ([`check`]): of the arrangements that do, the one that takes the server least. A
/// query's leaves are a row each, then an output each.
pub(super) fn places(geometry: &Geometry) -> Places {
    let with = |tallest: u32, coarse| {
        Places::within(DEGREE, tallest, geometry, coarse, |rows, outputs| rows + outputs)
    };
    let dense = with(HEIGHT, 1);
    let turned = (1..=HEIGHT).filter(|height| dense.width <= 1 << height);
    let turned = turned.map(|height| with(height, DEGREE >> height));
    let fitting = std::iter::once(dense).chain(turned).filter(fits);
    fitting.min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or(dense)
}

fn fits(places: &Places) -> bool {
    places.ciphertexts() == 1 || (places.height == HEIGHT && places.leaves <= MOST_LEAVES)
}

/// What a query takes of a server, in polynomials of the pass.
fn cost(places: &Places) -> f64 {
    let lifted = places.outputs * (1 + places.parts);
    LEAF_WEIGHT * places.leaves as f64
        + LIFT_WEIGHT * lifted as f64
        + (places.polynomials() * places.rows) as f64
}

/// What a leaf, and bringing a ciphertext to the further primes, take, in polynomials of the pass.
const LEAF_WEIGHT: f64 = 20.0;
const LIFT_WEIGHT: f64 = 17.0;

/// Refuses a table that the scheme does not suit.
pub(super) fn check(geometry: &Geometry) -> Result<(), Error> {
    let places = places(geometry);
    if fits(&places) {
        return Ok(());
    }
    let Places { rows, outputs, fine, coarse, .. } = places;
    if rows > outputs {
        let max = (MOST_LEAVES.saturating_sub(outputs).max(1) * coarse) as u64;
        let got = geometry.columns as u64;
        return Err(Error::Range { what: "number of columns", got, min: 1, max, remedy: "use more groups" });
    }
    let max = (MOST_LEAVES.saturating_sub(rows).max(1) * fine) as u64;
    let (got, remedy) = (geometry.groups as u64, "use fewer groups of more columns, or another scheme");
    Err(Error::Range { what: "number of groups", got, min: 1, max, remedy })
}

/// A seed, and of the ciphertexts' bodies the coefficients that lead to a leaf.
pub(super) fn query_bytes(geometry: &Geometry) -> usize {
    SEED_BYTES + places(geometry).asked() * QUERY_BYTES
}

/// How a part of an answer is sent.
pub(super) fn sent(places: &Places) -> Sent {
    Sent { mask_bits: MASK_BITS, body_bits: BODY_BITS, kept: places.window() }
}

pub(super) fn answer_bytes(geometry: &Geometry) -> usize {
    let places = places(geometry);
    places.parts * sent(&places).bytes_of(DEGREE)
}

pub(super) fn operands(geometry: &Geometry) -> Vec<Operand> {
    polynomials::operands_in(Rings::get().large(), STORED, geometry, &places(geometry))
}

/// Words of an expanded leaf.
pub(super) const PAIR: usize = 2 * PRIMES * DEGREE;

pub(super) fn answering(geometry: &Geometry, queries: usize) -> Vec<Run> {
    rings::runs(polynomials::POLYNOMIALS, rings::pass_queries(places(geometry).leaves * PAIR), queries)
}

pub(super) fn client_work(geometry: &Geometry) -> ClientWork {
    ClientWork { masked: 0, products: 0, decoded: answer_bytes(geometry) }
}

/// Counted in transforms of 2048 coefficients, of which one of 4096 takes somewhat more than two.
pub(super) fn ring_work(geometry: &Geometry) -> RingWork {
    const TRANSFORM: f64 = 2.2;
    let places = places(geometry);
    // A digit's transform and its two products; a node's own is an order, its integers and two sums.
    let switching = |digits: usize| (digits * PRIMES) as f64 * (TRANSFORM + 1.3) + 20.0;
    let further = 3;
    // Of both halves: coefficients, residues modulo further primes, values.
    let lift = 2.0 * ((PRIMES + further) as f64 * TRANSFORM + 10.0);
    let tensor = 4.0 * (PRIMES + further) as f64;
    let (outputs, parts) = (places.outputs as f64, places.parts as f64);
    let polynomials = (places.polynomials() * places.rows) as f64;
    let encrypted = (places.ciphertexts() * PRIMES) as f64 * TRANSFORM;
    RingWork {
        preparing: polynomials * PRIMES as f64 * 2.5,
        answering: places.leaves as f64 * switching(TREE[HEIGHT as usize - 1].0)
            + outputs * (1.0 + parts) * lift
            + outputs * parts * tensor
            + parts * (switching(SQUARE.0) + 60.0),
        encrypted,
    }
}

/// The variance of a coefficient's noise after each stage.
///
/// Masks are uniform, and so are digits of them. Stored polynomials are uniform too, whatever the records: the pad makes them so, and its
/// seed is drawn when the records are fixed. So products of leaves and stored polynomials have the average's variance, though
/// leaves share errors, and data could be aligned with those.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stages {
    /// A leaf.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests measure each stage"))]
    pub(super) leaf: f64,
    /// A polynomial of the first dimension.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests measure each stage"))]
    pub(super) first: f64,
    /// The sum of products over the second dimension, relinearised.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests measure each stage"))]
    pub(super) product: f64,
    /// The same modulo one prime.
    pub(super) switched: f64,
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
        let cut = power(2 * QUERY_CUT) / 12.0;
        let leaf = switching + power(places.height) * (error + cut);
        let lanes = power(2 * LANE_BITS) / 12.0;
        let first = places.rows as f64 * d * lanes * leaf;
        // A phase over the integers, times p / Q: its message and the multiple of Q that it lies above or below.
        let whole = power(2 * LANE_BITS) * (1.0 + d * TERNARY) / 12.0;
        let products = places.outputs as f64 * d * whole * (first + leaf);
        // s^2 meets what is dropped and what rounding loses.
        let relinearising =
            d * (digits(&rings.square) * error + dropped(&rings.square) * d * TERNARY * TERNARY);
        let rounding = (1.0 + d * TERNARY) / 12.0;
        let product = products + relinearising + rounding + (d * TERNARY).powi(2) / 12.0;
        let switched = (small / large).powi(2) * product + rounding;
        let sent = (small / power(MASK_BITS)).powi(2) / 12.0 * d * TERNARY;
        Self { leaf, first, product, switched, sent }
    }

    /// Of a coefficient before it is rounded to a lane.
    pub(super) fn all(&self) -> f64 {
        self.switched + self.sent
    }
}

/// Half of the distance between two lanes, less the rounding of an answer's body and of Q / p.
fn margin() -> f64 {
    let p = f64::from(LANE_BITS).exp2();
    Rings::get().small().modulus() as f64 * (0.5 / p - 0.5 / f64::from(BODY_BITS).exp2()) - p
}

/// -log2 of a bound on the probability that a record decodes wrongly: the noise of each of its lanes is subgaussian.
pub(super) fn failure_log2(geometry: &Geometry) -> f64 {
    let places = places(geometry);
    let exponent = margin().powi(2) / (2.0 * Stages::new(&places).all());
    exponent * std::f64::consts::LOG2_E - 1.0 - ((places.parts * places.width) as f64).log2()
}

/// The groups for which the server does least: more columns make a longer first dimension, more groups a longer second one.
pub(super) fn groups(records: u64, slot_bytes: usize, keyed: bool) -> u64 {
    let fits = |geometry: &Geometry| check(geometry).is_ok();
    rings::groups(records, slot_bytes, keyed, fits, |geometry| cost(&places(geometry)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyword::{columns_for, fullest};

    fn geometry(record_bytes: usize, groups: usize, columns: usize) -> Geometry {
        Geometry { record_bytes, groups, columns }
    }

    #[test]
    fn a_gibibyte_takes_one_ciphertext_up_and_one_down() {
        let groups = groups(1 << 22, 256, false);
        let geometry = geometry(256, groups as usize, (1u64 << 22).div_ceil(groups) as usize);
        check(&geometry).unwrap();
        let places = places(&geometry);
        assert_eq!((places.height, places.ciphertexts()), (10, 1), "{places:?}");
        assert!(query_bytes(&geometry) <= 37_000 && answer_bytes(&geometry) <= 12_500);
        assert!(failure_log2(&geometry) > 90.0, "{}", failure_log2(&geometry));
        let kept = operands(&geometry)[polynomials::POLYNOMIALS].bytes() as f64;
        assert!(kept < 9.6 * f64::from(1 << 30), "{kept}");
    }

    #[test]
    fn tables_of_every_size_have_a_plan() {
        for keyed in [false, true] {
            for records in [1u64, 2, 10, 1000, 50_000, 1_000_000, 100_000_000] {
                for slot_bytes in [1, 6, 64, 256, 261, 4096] {
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
    fn what_a_query_has_no_leaves_for_is_refused() {
        let error = check(&geometry(256, 1, 200_000)).unwrap_err().to_string();
        assert!(error.contains("number of columns is 200000, outside 1 to"), "{error}");
        assert!(error.contains("use more groups"), "{error}");
        let error = check(&geometry(6000, 40_000, 5)).unwrap_err().to_string();
        assert!(error.contains("number of groups is 40000, outside 1 to 32763; use fewer groups"), "{error}");
    }
}
