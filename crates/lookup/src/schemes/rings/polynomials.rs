//! Stored polynomials: slots become polynomials, by values modulo q, under their pads.
//!
//! ```text
//!   records ──groups of an output──▶ slots ──lanes──▶ coefficients + pad, centred ──transform──▶ five bytes a value
//! ```

use blindcore_accel::contract::Shape;
use blindcore_accel::{Cost, Layout, Placed, Word, Words};
use blindcore_math::Modulus;
use blindcore_math::ntt::Ntt;

use super::tree::{DEGREE, Tree};
use super::{LANE, LANE_BITS, Make, Pads, Places, SEED_BYTES, Slots, spread};
use crate::schemes::matrix;
use crate::schemes::scheme::{Operand, Origin};
use crate::{Error, Geometry, MAX_GATHER};

/// Bytes of a residue of a stored polynomial.
pub(in crate::schemes) const RESIDUE_BYTES: usize = 5;
/// Values that lie together in a stored polynomial: `[output][part][run][row][32]`.
const RUN: usize = 32;

/// The operands' places: the records, and the polynomials that a query's first dimension picks from.
pub(in crate::schemes) const POLYNOMIALS: usize = 1;

/// The records, and the polynomials made of them.
pub(in crate::schemes) fn operands(geometry: &Geometry, places: &Places) -> Vec<Operand> {
    let q = Modulus::Prime(Tree::get().small().primes()[0]);
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

/// A pass of gathered queries: of each its leaves modulo q, by values, a mask and a body for each row. Gives what a query's outputs are,
/// one query after another: of each output and part a mask and a body.
///
/// # Errors
/// The device refuses.
pub(in crate::schemes) fn scan(
    polynomials: &dyn Placed,
    mut queries: Vec<Vec<u64>>,
    cost: &mut Cost,
) -> Result<Vec<u64>, Error> {
    let first = if let [one] = &mut queries[..] { std::mem::take(one) } else { queries.concat() };
    drop(queries);
    let (outputs, this) = polynomials.run(&Words::U64(first))?;
    matrix::add_cost(cost, &this);
    Ok(outputs.into_u64()?)
}

/// What makes an output's polynomials.
pub(in crate::schemes) struct Worker {
    places: Places,
    pads: Pads,
    ntt: Ntt,
    q: u64,
}

impl Worker {
    pub(in crate::schemes) fn new(places: Places, seed: [u8; SEED_BYTES]) -> Self {
        let prime = Tree::get().small().primes()[0];
        let ntt = Ntt::new(prime, DEGREE).expect("a ring's prime");
        Self { places, pads: Pads::new(seed), ntt, q: prime.value() }
    }

    /// Centred lanes, by values.
    fn values(&self, lanes: &[u16; DEGREE], words: &mut [u64]) {
        for (word, lane) in words.iter_mut().zip(lanes) {
            *word = centred(self.q, LANE_BITS, u64::from(lane & LANE));
        }
        self.ntt.forward(words);
    }
}

/// A number of so many bits as a residue modulo q, from -2^(`bits` - 1) to 2^(`bits` - 1) - 1.
pub(in crate::schemes) fn centred(q: u64, bits: u32, number: u64) -> u64 {
    let negative = (number >> (bits - 1)).wrapping_neg();
    number.wrapping_add(negative & (q - (1 << bits)))
}

impl Make for Worker {
    fn groups(&self) -> usize {
        self.places.fine
    }

    /// Part after part, row after row.
    fn output(&self, output: usize, slots: &Slots, out: &mut [u8]) {
        let (mut lanes, mut words) = ([0; DEGREE], vec![0; DEGREE]);
        let mut part_lanes = vec![0; self.places.width];
        let rows = self.places.rows;
        for i in 0..self.places.parts * rows {
            let (part, row) = (i / rows, i % rows);
            let number = output * self.places.parts * rows + i;
            self.pads.of(number as u64, &mut lanes);
            for coarse in 0..self.places.coarse {
                for fine in 0..self.places.fine {
                    let Some(slot) = slots.slot(fine, coarse * rows + row) else { continue };
                    let from = (part * self.places.part_bytes).min(slot.len());
                    let to = (from + self.places.part_bytes).min(slot.len());
                    spread(&slot[from..to], &mut part_lanes);
                    let here = &mut lanes[self.places.position(coarse, fine)..][..self.places.width];
                    here.iter_mut()
                        .zip(&part_lanes)
                        .for_each(|(lane, part)| *lane = lane.wrapping_add(*part));
                }
            }
            self.values(&lanes, &mut words);
            let out = &mut out[part * rows * DEGREE * RESIDUE_BYTES..][..rows * DEGREE * RESIDUE_BYTES];
            let runs = out.chunks_exact_mut(rows * RUN * RESIDUE_BYTES).zip(words.chunks_exact(RUN));
            for (out, words) in runs {
                let out = &mut out[row * RUN * RESIDUE_BYTES..][..RUN * RESIDUE_BYTES];
                for (out, word) in out.as_chunks_mut::<RESIDUE_BYTES>().0.iter_mut().zip(words) {
                    let [a, b, c, d, e, ..] = word.to_le_bytes();
                    *out = [a, b, c, d, e];
                }
            }
        }
    }
}
