//! Preprocessing: slots become polynomials, by values modulo each prime of q, under their pads.
//!
//! ```text
//!   records ──groups of an output──▶ slots ──lanes──▶ coefficients + pad, centred ──pieces──▶ transform ──▶ values, as they lie
//! ```

use blindcore_math::Prime;
use blindcore_math::ntt::Ntt;

use super::params::{DEGREE, Places, Set};
use crate::schemes::rings::{Make, SEED_BYTES, Slots, WidePads};

/// What makes an output's polynomials.
pub(super) struct Worker {
    places: Places,
    pads: WidePads,
    /// For each prime.
    transforms: Vec<(Prime, Ntt)>,
    lane_bits: u32,
    piece_bits: u32,
    pieces: usize,
    run: usize,
}

impl Worker {
    pub(super) fn new(set: &Set, places: Places, seed: [u8; SEED_BYTES]) -> Self {
        let sizes = &set.sizes;
        let transform = |q: &Prime| (*q, Ntt::new(*q, DEGREE).expect("a ring's prime"));
        Self {
            places,
            pads: WidePads::new(seed, sizes.lane_bits),
            transforms: set.rings().small().primes().iter().map(transform).collect(),
            lane_bits: sizes.lane_bits,
            piece_bits: sizes.piece_bits(),
            pieces: sizes.pieces,
            run: sizes.run,
        }
    }

    /// Takes the lowest piece off each coefficient; the last one takes what is left.
    fn piece(&self, piece: usize, coefficients: &mut [i64], out: &mut [i64]) {
        if piece + 1 == self.pieces {
            out.copy_from_slice(coefficients);
            return;
        }
        let half = 1i64 << (self.piece_bits - 1);
        for (out, x) in out.iter_mut().zip(coefficients) {
            *out = ((*x + half) & (2 * half - 1)) - half;
            *x = (*x - *out) >> self.piece_bits;
        }
    }
}

/// A row on its way: its lanes, those of a slot's part, its coefficients, a piece of them, and the piece's values.
#[derive(Default)]
pub(super) struct Scratch {
    lanes: Vec<u64>,
    part_lanes: Vec<u64>,
    coefficients: Vec<i64>,
    piece: Vec<i64>,
    words: Vec<u64>,
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

    /// Piece after piece, prime after prime.
    fn row(
        &self,
        [output, part, row]: [usize; 3],
        slots: &Slots,
        scratch: &mut Scratch,
        put: &mut dyn FnMut(usize, usize, &[u64]),
    ) {
        let Self { places, pieces, run, .. } = self;
        let Scratch { lanes, part_lanes, coefficients, piece, words } = scratch;
        for words in [&mut *lanes, &mut *words] {
            words.resize(DEGREE, 0);
        }
        for numbers in [&mut *coefficients, &mut *piece] {
            numbers.resize(DEGREE, 0);
        }
        part_lanes.resize(places.width, 0);
        let rows = places.rows;
        self.pads.of(((output * places.parts + part) * rows + row) as u64, lanes);
        for coarse in 0..places.coarse {
            for fine in 0..places.fine {
                let column = coarse * rows + row;
                let Some(bytes) = slots.part(fine, column, part, places.part_bytes) else { continue };
                self.pads.spread(bytes, part_lanes);
                let here = &mut lanes[places.position(coarse, fine)..][..places.width];
                here.iter_mut().zip(&*part_lanes).for_each(|(lane, part)| *lane += part);
            }
        }
        // From -p/2 to p/2 - 1.
        let above = 64 - self.lane_bits;
        for (x, lane) in coefficients.iter_mut().zip(&*lanes) {
            *x = ((lane << above) as i64) >> above;
        }
        for k in 0..*pieces {
            self.piece(k, coefficients, piece);
            for (i, (q, ntt)) in self.transforms.iter().enumerate() {
                for (word, x) in words.iter_mut().zip(&*piece) {
                    *word = (*x as u64).wrapping_add(q.value() & (x >> 63) as u64);
                }
                ntt.forward(words);
                put(i * DEGREE / run, row * pieces + k, words);
            }
        }
    }
}
