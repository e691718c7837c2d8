//! Preprocessing: slots become polynomials, by values modulo q, under their pads.
//!
//! ```text
//!   records ──groups of an output──▶ slots ──lanes──▶ coefficients + pad, centred ──transform──▶ five bytes a value
//! ```

use blindcore_math::ntt::Ntt;

use super::params::{DEGREE, Places, RESIDUE_BYTES, RUN, Rings};
use crate::schemes::rings::{LANE, LANE_BITS, Make, Pads, SEED_BYTES, Slots, spread};

/// What makes an output's polynomials.
pub(super) struct Worker {
    places: Places,
    pads: Pads,
    ntt: Ntt,
    q: u64,
}

impl Worker {
    pub(super) fn new(places: Places, seed: [u8; SEED_BYTES]) -> Self {
        let prime = Rings::get().small().primes()[0];
        let ntt = Ntt::new(prime, DEGREE).expect("a ring's prime");
        Self { places, pads: Pads::new(seed), ntt, q: prime.value() }
    }

    /// Centred lanes, by values.
    pub(super) fn values(&self, lanes: &[u16; DEGREE], words: &mut [u64]) {
        for (word, lane) in words.iter_mut().zip(lanes) {
            // From -p/2 to p/2 - 1.
            let lane = lane & LANE;
            let negative = u64::from(lane >> (LANE_BITS - 1)).wrapping_neg();
            *word = u64::from(lane).wrapping_add(negative & (self.q - (1 << LANE_BITS)));
        }
        self.ntt.forward(words);
    }
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
