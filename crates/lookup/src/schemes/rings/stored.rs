//! Slots become polynomials, by values modulo each prime, under their pads.
//!
//! ```text
//!   records ──groups of an output──▶ slots ──lanes──▶ coefficients + pad, centred ──transform──▶ packed words
//! ```

use blindcore_accel::Word;
use blindcore_math::ntt::Ntt;
use blindcore_rlwe::Ring;

use super::{Grid, LANE, LANE_BITS, Make, Pads, SEED_BYTES, Slots, spread};

/// What makes an output's polynomials, part after part: `[part][prime][run][row]` and the words of a run.
pub(in crate::schemes) struct Polynomials {
    grid: Grid,
    /// Values that lie together.
    run: usize,
    /// The word that a value is stored in.
    word: Word,
    pads: Pads,
    ntts: Vec<Ntt>,
}

impl Polynomials {
    /// Of a ring whose primes fit `word`.
    pub(in crate::schemes) fn new(
        grid: Grid,
        ring: &Ring,
        run: usize,
        word: Word,
        seed: [u8; SEED_BYTES],
    ) -> Self {
        let ntt = |prime: &_| Ntt::new(*prime, ring.degree()).expect("a ring's prime");
        Self { grid, run, word, pads: Pads::new(seed), ntts: ring.primes().iter().map(ntt).collect() }
    }

    /// The lanes of a stored polynomial: its pad, and what lies there.
    fn lanes(&self, output: usize, part: usize, row: usize, slots: &Slots, lanes: &mut [u16]) {
        let grid = &self.grid;
        let mut part_lanes = vec![0; grid.width];
        self.pads.of(grid.number(output as u64, part, row as u64), lanes);
        for coarse in 0..grid.coarse {
            for fine in 0..grid.fine {
                let Some(slot) = slots.slot(fine, coarse * grid.rows + row) else { continue };
                let from = (part * grid.part_bytes).min(slot.len());
                let to = (from + grid.part_bytes).min(slot.len());
                spread(&slot[from..to], &mut part_lanes);
                let here = &mut lanes[grid.position(coarse, fine)..][..grid.width];
                here.iter_mut().zip(&part_lanes).for_each(|(lane, part)| *lane = lane.wrapping_add(*part));
            }
        }
    }
}

impl Make for Polynomials {
    fn groups(&self) -> usize {
        self.grid.fine
    }

    fn output(&self, output: usize, slots: &Slots, out: &mut [u8]) {
        let Grid { degree, rows, parts, .. } = self.grid;
        let (mut lanes, mut words) = (vec![0; degree], vec![0; degree]);
        let (run, width) = (self.run, self.word.bytes());
        let channel = rows * degree * width;
        for (part, row) in (0..parts).flat_map(|part| (0..rows).map(move |row| (part, row))) {
            self.lanes(output, part, row, slots, &mut lanes);
            for (ntt, out) in self.ntts.iter().zip(out.chunks_exact_mut(channel).skip(part * self.ntts.len()))
            {
                centre(ntt.prime().value(), &lanes, &mut words);
                ntt.forward(&mut words);
                for (out, words) in out.chunks_exact_mut(rows * run * width).zip(words.chunks_exact(run)) {
                    let out = &mut out[row * run * width..][..run * width];
                    match self.word {
                        Word::U40 => store::<5>(words, out),
                        Word::U48 => store::<6>(words, out),
                        _ => store::<8>(words, out),
                    }
                }
            }
        }
    }
}

/// The low bytes of words.
fn store<const BYTES: usize>(words: &[u64], out: &mut [u8]) {
    for (out, word) in out.as_chunks_mut::<BYTES>().0.iter_mut().zip(words) {
        out.copy_from_slice(&word.to_le_bytes()[..BYTES]);
    }
}

/// Lanes from -p/2 to p/2 - 1, as residues.
pub(in crate::schemes) fn centre(q: u64, lanes: &[u16], words: &mut [u64]) {
    for (word, lane) in words.iter_mut().zip(lanes) {
        let lane = lane & LANE;
        let negative = u64::from(lane >> (LANE_BITS - 1)).wrapping_neg();
        *word = u64::from(lane).wrapping_add(negative & (q - (1 << LANE_BITS)));
    }
}
