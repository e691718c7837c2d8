//! Stored polynomials: slots become polynomials, by values modulo each prime, under their pads.
//!
//! ```text
//!   records ──groups of an output──▶ slots ──lanes──▶ coefficients + pad, centred ──transform──▶ values, as they lie
//! ```

use blindcore_accel::contract::Shape;
use blindcore_accel::{Cost, Layout, Placed, Word, Words};
use blindcore_math::Modulus;
use blindcore_math::ntt::Ntt;
use blindcore_rlwe::Ring;

use super::tree::Tree;
use super::{LANE_BITS, Make, Pads, Places, SEED_BYTES, Slots, spread};
use crate::schemes::matrix;
use crate::schemes::parallel::each;
use crate::schemes::scheme::{Operand, Origin};
use crate::schemes::spare::Spare;
use crate::{Error, Geometry, MAX_GATHER};

/// Values of a stored polynomial that are a channel of the contract: `[output][part][prime][run][row][32]`. Which of them lie together is
/// the device's choice.
const RUN: usize = 32;

/// The operands' places: the records, and the polynomials that a query's first dimension picks from.
pub(in crate::schemes) const POLYNOMIALS: usize = 1;

/// The records, and the polynomials made of them.
pub(in crate::schemes) fn operands(geometry: &Geometry, places: &Places) -> Vec<Operand> {
    operands_in(Tree::get().small(), Word::U40, geometry, places)
}

/// The same in another ring, whose primes fit `word`.
pub(in crate::schemes) fn operands_in(
    ring: &Ring,
    word: Word,
    geometry: &Geometry,
    places: &Places,
) -> Vec<Operand> {
    let (n, j) = (places.polynomials(), places.rows);
    // Values are independent of each other. As runs of 32, each a channel of its own, they lie so that a run's sums stay in
    // registers while rows go by in order.
    let moduli = ring.primes().iter().flat_map(|q| vec![Modulus::Prime(*q); ring.degree() / RUN]).collect();
    let shape = Shape { m: MAX_GATHER, n, p: 2, j, d: RUN, ..Shape::new(word, moduli) };
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

/// Memory for the outputs of a pass that are there at a time, of all queries: what comes of them should find them in a cache.
pub(in crate::schemes) const PIECE_BYTES: usize = 32 << 20;

/// Memory for the queries that a pass gathers, which [`super::passes::pass_queries`] bounds.
static SPARE: Spare = Spare::new(128 << 20);

/// At least as many outputs come together, from a multiple of as many on, but for a table's last ones.
pub(in crate::schemes) const TOGETHER: usize = 32;
/// And at most.
const MOST_TOGETHER: usize = 128;

/// Outputs of a query that follow each other.
#[derive(Clone, Copy)]
pub(in crate::schemes) struct Outputs<'a> {
    /// The number of the first one in the table, and how many.
    pub(in crate::schemes) first: usize,
    pub(in crate::schemes) count: usize,
    /// Pairs of an output.
    parts: usize,
    words: &'a [u64],
}

impl<'a> Outputs<'a> {
    /// Those from `first` on: of each output and part a mask and a body, of `pair` words in all.
    pub(in crate::schemes) fn new(first: usize, parts: usize, pair: usize, words: &'a [u64]) -> Self {
        Self { first, count: words.len() / (parts * pair), parts, words }
    }

    /// The mask and the body of a part of the output with this number in the table.
    pub(in crate::schemes) fn pair(&self, output: usize, part: usize) -> &'a [u64] {
        let pair = self.words.len() / (self.count * self.parts);
        &self.words[((output - self.first) * self.parts + part) * pair..][..pair]
    }
}

/// A pass of gathered queries: of each its first dimension by values, a mask and a body for each row. What a query's outputs
/// come to is made as they come: `make` has some of a query's outputs and threads for it, `take` a query's number and what was made,
/// in the outputs' order.
///
/// # Errors
/// The device refuses.
pub(in crate::schemes) fn scan<M: Send>(
    polynomials: &dyn Placed,
    mut queries: Vec<Vec<u64>>,
    [parts, threads]: [usize; 2],
    cost: &mut Cost,
    make: impl Fn(usize, Outputs<'_>, usize) -> M + Sync,
    mut take: impl FnMut(usize, M),
) -> Result<(), Error> {
    let gathered = queries.len();
    let pair = polynomials.shape().answer_len(1) / polynomials.shape().n;
    let together = (PIECE_BYTES / (gathered * parts * pair * 8)).min(MOST_TOGETHER) / TOGETHER * TOGETHER;
    let together = together.max(TOGETHER);
    let words = if let [one] = &mut queries[..] {
        std::mem::take(one)
    } else {
        let mut words = SPARE.take();
        words.clear();
        words.reserve_exact(queries.iter().map(Vec::len).sum());
        queries.into_iter().for_each(|query| words.extend_from_slice(&query));
        words
    };
    let words = Words::U64(words);
    // A single query's outputs are shared out; of several queries each is.
    let inner = threads.div_ceil(gathered);
    let (mut first, mut refused) = (0, Ok(()));
    let this = polynomials.run_in_pieces(&words, together * parts, &mut |piece| {
        let words = match piece.as_u64() {
            Ok(words) => words,
            Err(error) => return refused = Err(error),
        };
        let of_query = |words| Outputs::new(first, parts, pair, words);
        let outputs: Vec<_> = words.chunks_exact(words.len() / gathered).map(of_query).enumerate().collect();
        let made = each(threads, &outputs, |(query, outputs)| make(*query, *outputs, inner));
        made.into_iter().enumerate().for_each(|(query, made)| take(query, made));
        first += outputs[0].1.count;
    })?;
    *cost += &this;
    if let (Words::U64(words), 2..) = (words, gathered) {
        SPARE.keep(words);
    }
    Ok(refused?)
}

/// A row on its way: its lanes, those of a slot's part, and its values.
#[derive(Default)]
pub(in crate::schemes) struct Scratch {
    lanes: Vec<u16>,
    part_lanes: Vec<u16>,
    words: Vec<u64>,
}

/// What makes an output's polynomials.
pub(in crate::schemes) struct Worker {
    places: Places,
    pads: Pads,
    ntts: Vec<Ntt>,
}

impl Worker {
    pub(in crate::schemes) fn new(places: Places, seed: [u8; SEED_BYTES]) -> Self {
        Self::within(Tree::get().small(), places, seed)
    }

    /// The same in another ring.
    pub(in crate::schemes) fn within(ring: &Ring, places: Places, seed: [u8; SEED_BYTES]) -> Self {
        let ntt = |prime: &_| Ntt::new(*prime, ring.degree()).expect("a ring's prime");
        Self { places, pads: Pads::new(seed), ntts: ring.primes().iter().map(ntt).collect() }
    }

    /// The lanes of a stored polynomial: its pad, and what lies there.
    fn lanes(&self, [output, part, row]: [usize; 3], slots: &Slots, scratch: &mut Scratch) {
        let places = &self.places;
        let Scratch { lanes, part_lanes, .. } = scratch;
        lanes.resize(places.degree, 0);
        part_lanes.resize(places.width, 0);
        let number = (output * places.parts + part) * places.rows + row;
        self.pads.of(number as u64, lanes);
        for coarse in 0..places.coarse {
            for fine in 0..places.fine {
                let column = coarse * places.rows + row;
                let Some(bytes) = slots.part(fine, column, part, places.part_bytes) else { continue };
                spread(bytes, part_lanes);
                let here = &mut lanes[places.position(coarse, fine)..][..places.width];
                here.iter_mut().zip(&*part_lanes).for_each(|(lane, part)| *lane = lane.wrapping_add(*part));
            }
        }
    }
}

/// A number of so many bits as a residue modulo q, from -2^(`bits` - 1) to 2^(`bits` - 1) - 1.
pub(in crate::schemes) fn centred(q: u64, bits: u32, number: u64) -> u64 {
    let negative = (number >> (bits - 1)).wrapping_neg();
    number.wrapping_add(negative & (q - (1 << bits)))
}

impl Make for Worker {
    type Scratch = Scratch;

    fn groups(&self) -> usize {
        self.places.fine
    }

    fn parts(&self) -> usize {
        self.places.parts
    }

    fn rows(&self) -> usize {
        self.places.rows
    }

    /// Prime after prime.
    fn row(
        &self,
        place: [usize; 3],
        slots: &Slots,
        scratch: &mut Scratch,
        put: &mut dyn FnMut(usize, usize, &[u64]),
    ) {
        let degree = self.places.degree;
        self.lanes(place, slots, scratch);
        let Scratch { lanes, words, .. } = scratch;
        words.resize(degree, 0);
        for (i, ntt) in self.ntts.iter().enumerate() {
            blindcore_math::lanes::centre(ntt.prime(), LANE_BITS, lanes, words);
            ntt.forward(words);
            put(i * degree / RUN, place[2], words);
        }
    }
}
