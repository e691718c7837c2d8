//! The sizes and the noise of OnionPIR.

use std::sync::{Arc, OnceLock};

use blindcore_accel::contract::Shape;
use blindcore_accel::{Layout, Word};
use blindcore_math::{Modulus, Prime};
use blindcore_rlwe::galois::tree_exponents;
use blindcore_rlwe::rounding::packed_bytes;
use blindcore_rlwe::security::ESTIMATOR;
use blindcore_rlwe::{Gadget, Insecure, Literal, Parameters, Ring, sets};

use crate::keyword::{columns_for, fullest};
use crate::schemes::matrix;
use crate::schemes::rings::{self, SEED_BYTES};
use crate::schemes::scheme::{About, ClientWork, Operand, Origin, RingWork, Run, Security};
use crate::{Error, Geometry, MAX_GATHER};

/// d: coefficients of a polynomial.
pub(super) const DEGREE: usize = 4096;
/// Rows of the first dimension, at most.
pub(super) const FIRST: usize = 256;
/// Ciphertexts of which a later dimension leaves one.
pub(super) const LATER: usize = 4;
/// The operands' places.
pub(super) const POLYNOMIALS: usize = 1;

/// What one set of parameters says; all else follows.
pub(super) struct Sizes {
    /// The moduli: keys live under all primes, queries, stored polynomials and folding under the first ones.
    literal: Literal<'static>,
    /// Primes that a leaf loses.
    dropped: usize,
    /// Bits of a coefficient of the plaintext: p is 2 to their power.
    pub(super) lane_bits: u32,
    /// Digits that a stored polynomial is split into, each with a row of the query of its own.
    pub(super) pieces: usize,
    /// A residue of a stored polynomial and of a query.
    word: Word,
    /// Values that lie together in a stored polynomial, `[output][part][prime][run][row][piece][value]`, each run a channel of the contract: values are
    /// independent of each other, and the sums of 32 stay in registers while an output's rows go by in order.
    pub(super) run: usize,
    /// Digits and their bits for each level of the tree, from the root on: what switching adds at a level is doubled by each level
    /// after it, so that digits are finest where nodes are few.
    tree: &'static [(usize, u32)],
    /// Digits and bits of the key for s^2, which makes the second half of a factor.
    square: (usize, u32),
    /// Digits and bits of a factor.
    fold: (usize, u32),
    /// Bits of an answer's mask and body.
    pub(super) mask_bits: u32,
    pub(super) body_bits: u32,
}

const CLASSICAL_SIZES: Sizes = Sizes {
    literal: sets::N4096_ONION,
    dropped: 1,
    lane_bits: 30,
    pieces: 1,
    word: Word::U40,
    run: 32,
    tree: &[(6, 15), (6, 15), (6, 15), (6, 15), (5, 18), (5, 18), (5, 18), (4, 21), (4, 21)],
    square: (4, 21),
    fold: (2, 27),
    mask_bits: 39,
    body_bits: 35,
};

const PUBLISHED_SIZES: Sizes = Sizes {
    literal: sets::ONIONPIR_2021,
    dropped: 0,
    lane_bits: 48,
    pieces: 2,
    word: Word::U64,
    run: DEGREE,
    tree: &[(16, 8); 10],
    square: (16, 8),
    fold: (5, 16),
    mask_bits: 57,
    body_bits: 53,
};

impl Sizes {
    /// What a digest of parameters covers.
    pub(super) const fn constants(&self) -> [u64; 36] {
        let mut out = [0; 36];
        out[0] = DEGREE as u64;
        out[1] = self.dropped as u64;
        out[2] = self.lane_bits as u64;
        out[3] = self.pieces as u64;
        out[4] = (self.square.0 as u64) << 32 | self.square.1 as u64;
        out[5] = (self.fold.0 as u64) << 32 | self.fold.1 as u64;
        out[6] = self.mask_bits as u64;
        out[7] = (self.body_bits as u64) << 32 | self.run as u64;
        let mut i = 0;
        while i < self.literal.chain.len() {
            out[8 + i] = self.literal.chain[i] as u64;
            i += 1;
        }
        i = 0;
        while i < self.tree.len() {
            out[16 + i] = (self.tree[i].0 as u64) << 32 | self.tree[i].1 as u64;
            i += 1;
        }
        out
    }

    /// Levels of the tallest tree.
    fn height(&self) -> u32 {
        self.tree.len() as u32
    }

    /// Coefficients between coarse places.
    fn coarse(&self) -> usize {
        1 << self.height()
    }

    /// Bytes of a residue of a stored polynomial or of a query.
    pub(super) fn residue_bytes(&self) -> usize {
        self.word.bytes()
    }

    /// Bits of a piece of a coefficient.
    pub(super) fn piece_bits(&self) -> u32 {
        self.lane_bits / self.pieces as u32
    }

    /// Primes of stored polynomials.
    pub(super) fn primes(&self) -> usize {
        self.literal.chain.len() - self.dropped
    }
}

/// A set of parameters, with its rings once they are made.
pub(super) struct Set {
    pub(super) about: About,
    pub(super) sizes: Sizes,
    /// Leave to open a set that is broken.
    insecure: Option<fn() -> Insecure>,
    rings: OnceLock<Rings>,
}

/// At 128 bits.
pub(super) static CLASSICAL: Set = Set {
    about: About {
        name: "onionpir",
        title: "OnionPIR of 2021, registered keys",
        suits: "for comparison",
        wire_id: 9,
        security: Some(Security { bits: 131.5, quantum_bits: Some(90.2), estimator: ESTIMATOR }),
        constants: &CLASSICAL_SIZES.constants(),
    },
    sizes: CLASSICAL_SIZES,
    insecure: None,
    rings: OnceLock::new(),
};

/// As published, but for what has no place here: primes have 61 bits and not 62, keys no special prime but finer digits, and lanes 48 bits and not
/// 60, so that an answer fits one prime.
pub(super) static PUBLISHED: Set = Set {
    about: About {
        name: "onionpir-2021",
        title: "OnionPIR as published in 2021, insecure",
        suits: "for measurements",
        wire_id: 997,
        security: None,
        constants: &PUBLISHED_SIZES.constants(),
    },
    sizes: PUBLISHED_SIZES,
    insecure: Some(|| Insecure::because("what was published is measured as it was; it is never offered")),
    rings: OnceLock::new(),
};

/// The rings, and how polynomials are taken apart.
pub(super) struct Rings {
    pub(super) parameters: Arc<Parameters>,
    /// The exponent and the gadget of each level, from the root on.
    pub(super) tree: Vec<(usize, Gadget)>,
    pub(super) square: Gadget,
    pub(super) fold: Gadget,
    dropped: usize,
    lane_bits: u32,
}

impl Set {
    /// The rings, made once.
    pub(super) fn rings(&self) -> &Rings {
        self.rings.get_or_init(|| {
            let Sizes { literal, dropped, lane_bits, tree, square, fold, .. } = &self.sizes;
            let parameters = match self.insecure {
                None => literal.check(),
                Some(token) => literal.check_insecure(token()),
            };
            let parameters = parameters.expect("a set that is shipped");
            let gadget = |ring: &Ring, (digits, bits): (usize, u32)| {
                let dropped = ring.bits().saturating_sub(digits as u32 * bits);
                Gadget::new(ring, digits, bits, dropped).expect("digits that fill the ring")
            };
            let large = |digits: &(usize, u32)| gadget(parameters.ring(), *digits);
            let tree = tree_exponents(DEGREE).zip(tree.iter().map(large)).collect();
            let (square, fold) = (large(square), gadget(parameters.level(*dropped), *fold));
            Rings { parameters, tree, square, fold, dropped: *dropped, lane_bits: *lane_bits }
        })
    }
}

impl Rings {
    /// The ring of keys and of the tree, of modulus Q.
    pub(super) fn large(&self) -> &Arc<Ring> {
        self.parameters.ring()
    }

    /// The ring of queries, of stored polynomials and of folding, of modulus q.
    pub(super) fn small(&self) -> &Arc<Ring> {
        self.parameters.level(self.dropped)
    }

    /// The ring that an answer is rounded from, of one prime.
    pub(super) fn last(&self) -> &Arc<Ring> {
        self.parameters.level(self.large().primes().len() - 1)
    }

    /// q / p: what a picked column adds to a query.
    pub(super) fn delta(&self) -> u128 {
        (self.small().modulus() + (1 << (self.lane_bits - 1))) >> self.lane_bits
    }

    /// What digit `i` of a factor of 1 adds to a query: its weight.
    pub(super) fn weight(&self, digit: usize) -> u128 {
        1 << (self.fold.dropped() + digit as u32 * self.fold.bits())
    }

    /// What takes a query from q to Q: Q / q modulo q. Modulo the primes that q is without the product is 0.
    pub(super) fn lift(&self) -> u128 {
        let q = self.small().modulus();
        self.large().modulus() / q % q
    }
}

/// Where the slots of a table lie among the polynomials.
///
/// ```text
///   polynomial, 4096 coefficients        output = a column of polynomials, one for each row; a query's first dimension picks a row
///   ┌ place 0 ┬ place 1 ┬ ...            of four neighbouring outputs one is left, level by level; the last level may have fewer
///
///   few columns: column = row,   group = output and place
///   many:        column = row and one of several coarse places, 2^h coefficients apart;  group = output and a place within them
/// ```
///
/// A query's monomial turns a polynomial by multiples of 2^h coefficients at no cost, as in `onionpir2`.
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
    /// Later dimensions.
    pub(super) levels: u32,
    /// h: levels of the tree.
    pub(super) height: u32,
    /// Coefficients between coarse places.
    apart: usize,
    pieces: usize,
    /// Rows of a factor.
    digits: usize,
}

impl Places {
    /// Of a geometry, which need not fit: [`check`].
    pub(super) fn new(sizes: &Sizes, geometry: &Geometry) -> Self {
        let Geometry { record_bytes, groups, columns } = *geometry;
        let (parts, part_bytes, width) = cut(sizes, record_bytes);
        let apart = sizes.coarse();
        let (coarse, fine) = if columns <= FIRST || width > apart {
            (1, DEGREE / width)
        } else {
            (DEGREE / apart, apart / width)
        };
        let (rows, outputs) = (columns.div_ceil(coarse), groups.div_ceil(fine));
        let levels = (0..).find(|levels| LATER.pow(*levels) >= outputs).unwrap_or(0);
        let (pieces, digits) = (sizes.pieces, sizes.fold.0);
        let (width, height) = (width, sizes.height());
        let all = Self {
            width,
            parts,
            part_bytes,
            coarse,
            fine,
            rows,
            outputs,
            levels,
            height,
            apart,
            pieces,
            digits,
        };
        // Coarse places are as far apart as the tallest tree turns.
        let height = if coarse == 1 { all.leaves().next_power_of_two().ilog2().min(height) } else { height };
        Self { height, ..all }
    }

    /// Ciphertexts of which a level leaves one: four, or as many as are left at the last.
    pub(super) fn choices(&self, level: u32) -> usize {
        self.outputs.div_ceil(LATER.pow(level)).min(LATER)
    }

    /// The first factor of a level: each has one for each choice but the first, which is taken where all are 0.
    pub(super) fn first_factor(&self, level: u32) -> usize {
        (LATER - 1) * level as usize
    }

    /// Encrypted factors.
    pub(super) fn factors(&self) -> usize {
        self.levels.checked_sub(1).map_or(0, |last| self.first_factor(last) + self.choices(last) - 1)
    }

    /// Leaves that the first dimension takes: a row each, for each piece of it.
    pub(super) fn picking(&self) -> usize {
        self.rows * self.pieces
    }

    /// Leaves of the tree: the rows, then those of each factor.
    pub(super) fn leaves(&self) -> usize {
        self.picking() + self.factors() * self.digits
    }

    /// Coefficients that a query's body is sent of: those that lead to a leaf.
    pub(super) fn asked(&self) -> usize {
        self.leaves() << (DEGREE.ilog2() - self.height)
    }

    /// Polynomials of a database, before they are split into pieces: outputs and parts.
    pub(super) fn polynomials(&self) -> usize {
        self.outputs * self.parts
    }

    /// The first coefficient of a place.
    pub(super) fn position(&self, coarse: usize, fine: usize) -> usize {
        coarse * self.apart + fine * self.width
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
    pub(super) fn sent_bytes(&self, sizes: &Sizes) -> usize {
        packed_bytes(DEGREE, sizes.mask_bits) + packed_bytes(self.window(), sizes.body_bits)
    }
}

/// Parts of a slot, the bytes of each, and its coefficients.
fn cut(sizes: &Sizes, record_bytes: usize) -> (usize, usize, usize) {
    let lane = sizes.lane_bits as usize;
    let parts = record_bytes.div_ceil(DEGREE / 8 * lane);
    if parts == 1 {
        return (1, record_bytes, (8 * record_bytes).div_ceil(lane));
    }
    // Whole lanes, so that a lane never lies in two parts: eight lanes are whole bytes.
    let bytes = record_bytes.div_ceil(parts).next_multiple_of(lane);
    (record_bytes.div_ceil(bytes), bytes, bytes / lane * 8)
}

/// Refuses a table that the scheme does not suit.
pub(super) fn check(sizes: &Sizes, geometry: &Geometry) -> Result<(), Error> {
    let places = Places::new(sizes, geometry);
    if places.rows <= FIRST {
        return Ok(());
    }
    let coarse = if places.width > sizes.coarse() { 1 } else { DEGREE / sizes.coarse() };
    let (got, max) = (geometry.columns as u64, (FIRST * coarse) as u64);
    Err(Error::Range { what: "number of columns", got, min: 1, max, remedy: "use more groups" })
}

pub(super) fn query_bytes(sizes: &Sizes, geometry: &Geometry) -> usize {
    SEED_BYTES + Places::new(sizes, geometry).asked() * sizes.primes() * sizes.residue_bytes()
}

pub(super) fn answer_bytes(sizes: &Sizes, geometry: &Geometry) -> usize {
    let places = Places::new(sizes, geometry);
    places.parts * places.sent_bytes(sizes)
}

pub(super) fn operands(set: &Set, geometry: &Geometry) -> Vec<Operand> {
    let (sizes, places) = (&set.sizes, Places::new(&set.sizes, geometry));
    let runs = |q: &Prime| vec![Modulus::Prime(*q); DEGREE / sizes.run];
    let moduli = set.rings().small().primes().iter().flat_map(runs).collect();
    let (n, j, k) = (places.polynomials(), places.rows, sizes.pieces);
    let shape = Shape { m: MAX_GATHER, n, p: 2, j, k, d: sizes.run, ..Shape::new(sizes.word, moduli) };
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

/// Queries of a pass.
pub(super) fn pass_queries(sizes: &Sizes, places: &Places) -> usize {
    rings::pass_queries(places.picking() * 2 * sizes.primes() * DEGREE)
}

pub(super) fn answering(sizes: &Sizes, geometry: &Geometry, queries: usize) -> Vec<Run> {
    rings::runs(POLYNOMIALS, pass_queries(sizes, &Places::new(sizes, geometry)), queries)
}

pub(super) fn client_work(sizes: &Sizes, geometry: &Geometry) -> ClientWork {
    ClientWork { masked: 0, products: 0, decoded: answer_bytes(sizes, geometry) }
}

/// Counted in transforms of 2048 coefficients, of which one of 4096 takes 2.2.
pub(super) fn ring_work(sizes: &Sizes, geometry: &Geometry) -> RingWork {
    const TRANSFORM: f64 = 2.2;
    let places = Places::new(sizes, geometry);
    let (large, small) = (sizes.literal.chain.len() as f64, sizes.primes() as f64);
    // A product with its sum takes a third of a transform; taking a polynomial of several primes apart as long as four.
    let product = |digits: usize| digits as f64 * (1.0 + 2.0 / 3.0);
    let leaves = places.leaves();
    let node = |(level, (digits, _)): (usize, &(usize, u32))| {
        (1usize << level).min(leaves) as f64 * (large * (product(*digits) + 2.5) + 4.0)
    };
    let expanding: f64 = sizes.tree.iter().take(places.height as usize).enumerate().map(node).sum();
    let factors = (places.factors() * sizes.fold.0) as f64;
    let polynomials = (places.polynomials() * places.picking()) as f64;
    let answering = expanding
        + leaves as f64 * 2.0 * (large + small)
        + factors * (large * (product(sizes.square.0) + 5.0) + 4.0)
        + products(&places) as f64 * (small * (2.0 * product(sizes.fold.0) + 4.0) + 8.0)
        + places.parts as f64 * 3.0 * small;
    RingWork {
        preparing: TRANSFORM * polynomials * 1.5 * small,
        answering: TRANSFORM * answering,
        encrypted: TRANSFORM * small,
    }
}

/// External products of an answer.
fn products(places: &Places) -> usize {
    places.outputs.saturating_sub(1) * places.parts
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
    /// What an external product adds.
    pub(super) product: f64,
    /// What is left of all that modulo one prime, and rounding to it.
    pub(super) last: f64,
    /// What rounding of an answer's mask adds.
    pub(super) sent: f64,
}

/// The variance of a ternary coefficient.
const TERNARY: f64 = 2.0 / 3.0;

impl Stages {
    pub(super) fn new(set: &Set, places: &Places) -> Self {
        let (sizes, rings) = (&set.sizes, set.rings());
        let (d, error) = (DEGREE as f64, rings.parameters.error().variance());
        let modulus = |ring: &Ring| ring.modulus() as f64;
        let (large, small, last) = (modulus(rings.large()), modulus(rings.small()), modulus(rings.last()));
        let power = |bits: u32| f64::from(bits).exp2();
        // Of a digit, and of what is dropped below all digits.
        let digits = |gadget: &Gadget| gadget.digits() as f64 * (power(2 * gadget.bits()) + 2.0) / 12.0;
        let dropped = |gadget: &Gadget| match gadget.dropped() {
            0 => 0.0,
            bits => power(2 * bits) / 12.0,
        };
        let height = places.height as usize;
        let level = |(level, (_, gadget)): (usize, &(usize, Gadget))| {
            let switching = d * (digits(gadget) * error + dropped(gadget) * TERNARY);
            power((height - 1 - level) as u32) * switching
        };
        let switching: f64 = rings.tree.iter().take(height).enumerate().map(level).sum();
        // A query's own errors, brought to Q, lie at every 2^h-th coefficient of a leaf.
        let leaf = switching + (large / small).powi(2) * error / power(places.height);
        // Rounding of both halves, of which the mask's meets the secret.
        let rounding = (1.0 + d * TERNARY) / 12.0;
        let scale = (small / large).powi(2);
        let rounded = if sizes.dropped > 0 { rounding } else { 0.0 };
        let switched = scale * leaf + rounded;
        let squaring = d * (digits(&rings.square) * error + dropped(&rings.square) * d * TERNARY * TERNARY);
        // A row of a factor's second half carries s e.
        let square = scale * (d * TERNARY * leaf + squaring) + rounded;
        let first = places.picking() as f64 * d * power(2 * sizes.piece_bits()) / 12.0 * switched;
        let product =
            d * digits(&rings.fold) * (switched + square) + dropped(&rings.fold) * (1.0 + d * TERNARY);
        let folded = first + places.factors() as f64 * product;
        let last_scale = (last / small).powi(2);
        let last_rounding = if sizes.primes() > 1 { rounding } else { 0.0 };
        let sent = (last / power(sizes.mask_bits)).powi(2) / 12.0 * d * TERNARY;
        Self { leaf, switched, first, product, last: last_scale * folded + last_rounding, sent }
    }
}

/// Half of the distance between two lanes, less the rounding of an answer's body.
fn margin(set: &Set) -> f64 {
    let power = |bits: u32| f64::from(bits).exp2();
    let Sizes { lane_bits, body_bits, .. } = set.sizes;
    set.rings().last().modulus() as f64 * (0.5 / power(lane_bits) - 0.5 / power(body_bits)) - 1.0
}

/// -log2 of a bound on the probability that a record decodes wrongly: the noise of each of its lanes is subgaussian.
pub(super) fn failure_log2(set: &Set, geometry: &Geometry) -> f64 {
    let places = Places::new(&set.sizes, geometry);
    let stages = Stages::new(set, &places);
    let exponent = margin(set).powi(2) / (2.0 * (stages.last + stages.sent));
    exponent * std::f64::consts::LOG2_E - 1.0 - ((places.parts * places.width) as f64).log2()
}

/// How much longer the server may take for the first dimension to have 256 rows, as published.
const NEAR: f64 = 1.1;

/// The groups for which the first dimension is as published, where that is near the least that the server can do; else those for which
/// the server does least: more columns make a taller tree, more groups more outputs to fold.
pub(super) fn groups(sizes: &Sizes, records: u64, slot_bytes: usize, keyed: bool) -> u64 {
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
        check(sizes, &Geometry { columns: columns + spare, ..geometry }).ok()?;
        let places = Places::new(sizes, &geometry);
        // In external products: a node takes some two, and a stored polynomial is read in a fifteenth.
        let nodes = (1u64 << places.height) as f64 * 2.0;
        let read = (places.polynomials() * places.picking()) as f64 / 15.0;
        Some((nodes + places.polynomials() as f64 + read, groups))
    };
    // A sixteenth more each time: the least number that fits is among the first, and few more are worth a look.
    let next = |groups: &u64| Some(groups + groups.div_ceil(16)).filter(|next| *next <= records);
    let costs = std::iter::successors(Some(1u64), next).chain([records]).filter_map(cost);
    let Some((least, best)) = costs.min_by(|a, b| a.0.total_cmp(&b.0)) else { return records.max(1) };
    let published = if keyed { None } else { cost(records.div_ceil(FIRST as u64).max(1)) };
    published.filter(|(cost, _)| *cost < least * NEAR).map_or(best, |(_, groups)| groups).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(record_bytes: usize, groups: usize, columns: usize) -> Geometry {
        Geometry { record_bytes, groups, columns }
    }

    #[test]
    fn slots_lie_apart_and_within_their_polynomial() {
        let sizes = &CLASSICAL.sizes;
        for (record_bytes, groups, columns) in [
            (1, 1, 1),
            (1, 5000, 200),
            (64, 100, 300),
            (256, 3000, 256),
            (261, 300, 1500),
            (4096, 9, 200),
            (15_360, 3, 9),
            (15_361, 3, 9),
        ] {
            let geometry = geometry(record_bytes, groups, columns);
            check(sizes, &geometry).unwrap();
            let places = Places::new(sizes, &geometry);
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
            assert!(8 * places.part_bytes <= places.width * sizes.lane_bits as usize);
        }
    }

    #[test]
    fn later_dimensions_are_of_four_but_the_last() {
        for (outputs, levels, factors) in
            [(1, 0, 0), (2, 1, 1), (4, 1, 3), (5, 2, 4), (16, 2, 6), (17, 3, 7), (273, 5, 13)]
        {
            let places = Places::new(&CLASSICAL.sizes, &geometry(15_360, outputs, 5));
            assert_eq!((places.levels, places.factors()), (levels, factors), "{outputs}");
            assert!((1..=levels).all(|level| places.choices(level - 1) >= 2));
        }
    }

    #[test]
    fn a_gibibyte_has_the_published_shape() {
        let set = &CLASSICAL;
        let groups = groups(&set.sizes, 1 << 22, 256, false);
        let geometry = geometry(256, groups as usize, (1u64 << 22).div_ceil(groups) as usize);
        check(&set.sizes, &geometry).unwrap();
        let places = Places::new(&set.sizes, &geometry);
        assert_eq!((places.height, places.rows, places.fine, places.levels), (9, 256, 59, 5), "{places:?}");
        let [up, down] = [query_bytes(&set.sizes, &geometry), answer_bytes(&set.sizes, &geometry)];
        assert!(up <= 23_000 && down <= 22_500, "{up} {down}");
        assert!(failure_log2(set, &geometry) > 90.0, "{}", failure_log2(set, &geometry));
        let shape = operands(set, &geometry).remove(POLYNOMIALS).shape;
        assert_eq!((shape.m, shape.p, shape.q, shape.j, shape.k), (MAX_GATHER, 2, 1, 256, 1));
        assert_eq!(shape.c() * shape.d, 2 * DEGREE);
        let kept = operands(set, &geometry)[POLYNOMIALS].bytes() as f64;
        assert!(kept < 2.8 * f64::from(1 << 30), "{kept}");
        // The sizes that were published have the operation that the thesis counts: J = 256, K = 2.
        let shape = operands(&PUBLISHED, &geometry).remove(POLYNOMIALS).shape;
        assert_eq!((shape.p, shape.q, shape.j, shape.k, shape.c(), shape.d), (2, 1, 256, 2, 2, DEGREE));
        assert!(failure_log2(&PUBLISHED, &geometry) > 90.0, "{}", failure_log2(&PUBLISHED, &geometry));
    }

    #[test]
    fn tables_of_every_size_have_a_plan() {
        let set = &CLASSICAL;
        for keyed in [false, true] {
            for records in [1u64, 2, 10, 1000, 50_000, 1_000_000, 100_000_000] {
                for slot_bytes in [1, 6, 64, 256, 261, 4096, 65_536] {
                    let groups = groups(&set.sizes, records, slot_bytes, keyed);
                    let columns = if keyed {
                        columns_for(fullest(records, groups as usize))
                    } else {
                        records.div_ceil(groups) as usize
                    };
                    let geometry = geometry(slot_bytes, groups as usize, columns);
                    check(&set.sizes, &geometry)
                        .unwrap_or_else(|e| panic!("{records} x {slot_bytes}, {keyed}: {e}"));
                    let failure = failure_log2(set, &geometry);
                    assert!(failure > 40.0, "{geometry:?}: {failure}");
                }
            }
        }
    }

    #[test]
    fn what_has_no_row_is_refused() {
        let check = |geometry: Geometry| check(&CLASSICAL.sizes, &geometry);
        let error = check(geometry(256, 1, 3000)).unwrap_err().to_string();
        assert!(error.contains("number of columns is 3000, outside 1 to 2048; use more groups"), "{error}");
        assert!(check(geometry(2000, 100, 300)).is_err(), "a long record has no coarse places");
    }
}
