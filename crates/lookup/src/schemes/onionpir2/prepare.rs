//! Preprocessing: slots become polynomials, by values modulo q, under their pads.
//!
//! ```text
//!   records ──groups of an output──▶ slots ──lanes──▶ coefficients + pad, centred ──transform──▶ five bytes a value
//! ```

use std::thread;

use blindcore_accel::{Device, Placed};
use blindcore_math::SecretRng;
use blindcore_math::ntt::Ntt;
use blindcore_units::Unit;

use super::lanes::{LANE, Pads, spread};
use super::params::{DEGREE, LANE_BITS, Places, RESIDUE_BYTES, RUN, Rings, SEED_BYTES};
use crate::{Error, Geometry, PREPARING, Params, Preprocessing, Progress};

/// Rows of a stripe of the records, and columns of a line of it.
const HEIGHT: usize = 16;
const LINE_COLUMNS: usize = 4;

/// Makes the polynomials of the outputs that are not done.
pub(super) fn preprocess(
    params: &Params,
    device: &Device,
    records: &dyn Placed,
    into: &mut Preprocessing<'_>,
    progress: &mut dyn Progress,
) -> Result<(), Error> {
    let places = Places::new(&params.geometry);
    let seed: &mut [u8; SEED_BYTES] = into.hint.try_into().expect("the hint is the seed");
    if into.done == 0 {
        // Once the records are fixed, so that whoever wrote them can't have aimed at it.
        SecretRng::from_os()?.fill(seed);
    }
    let worker = &Worker::new(params.geometry, places, *seed);
    let (total, threads) = (places.outputs as u64, device.description().threads.max(1));
    let mut tell = |done: u64| {
        progress.at(PREPARING, done, Some(total), Unit::Items);
        if progress.stopped() { Err(Error::Stopped) } else { Ok(()) }
    };
    let output_bytes = places.parts * places.rows * DEGREE * RESIDUE_BYTES;
    let polynomials = &mut into.derived[0];
    let mut first = usize::try_from(into.done).expect("fewer than groups");
    // Outputs whose slots have come, or are coming.
    let mut slots: Vec<Slots> =
        (0..threads.min(places.outputs - first.min(places.outputs))).map(|_| Slots::new(worker)).collect();
    let mut make = |first: usize, slots: &mut [Slots], done: &mut u64| {
        (0..slots.len() as u64).try_for_each(|i| tell(*done + i))?;
        let outputs = polynomials[first * output_bytes..].chunks_exact_mut(output_bytes);
        thread::scope(|scope| {
            let mut work = slots.iter().zip(outputs).enumerate();
            let last = work.next_back();
            for (i, (slots, out)) in work {
                scope.spawn(move || worker.output(first + i, slots, out));
            }
            if let Some((i, (slots, out))) = last {
                worker.output(first + i, slots, out);
            }
        });
        *done += slots.len() as u64;
        Ok::<(), Error>(())
    };
    let (operand, output_rows) = (params.records(), places.fine * params.geometry.record_bytes);
    let (mut row, mut failed, mut done) = (0, None, into.done);
    let read = records.stripes(&mut |stripes| {
        for stripe in stripes.chunks_exact(operand.stripe_bytes()) {
            let end = params.geometry.rows().min(row + HEIGHT);
            // A stripe's rows may be those of several outputs.
            while row < end {
                let output = row / output_rows;
                let here = end.min((output + 1) * output_rows) - row;
                if output >= first {
                    if output == first + slots.len() {
                        if let Err(error) = make(first, &mut slots, &mut done) {
                            failed = Some(error);
                            return Err(blindcore_accel::Error::Stopped);
                        }
                        first = output;
                        slots.iter_mut().for_each(Slots::clear);
                    }
                    slots[output - first].take(stripe, row % HEIGHT, row - output * output_rows, here);
                }
                row += here;
            }
        }
        Ok(())
    });
    let finished = match (failed, read) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(error.into()),
        (None, Ok(())) => {
            let left = places.outputs - first.min(places.outputs);
            make(first, &mut slots[..left], &mut done)
        }
    };
    into.done = done;
    finished
}

/// The slots of an output, `[group][column]`, each with room to whole lanes of eleven bytes.
struct Slots {
    bytes: Vec<u8>,
    record_bytes: usize,
    columns: usize,
    filled: usize,
}

impl Slots {
    fn new(worker: &Worker) -> Self {
        let Geometry { record_bytes, columns, .. } = worker.geometry;
        Self { bytes: vec![0; worker.places.fine * columns * record_bytes], record_bytes, columns, filled: 0 }
    }

    fn clear(&mut self) {
        self.filled = 0;
    }

    /// Takes `count` rows of a stripe from row `from` on: rows of this output from `to` on.
    fn take(&mut self, stripe: &[u8], from: usize, to: usize, count: usize) {
        let Self { record_bytes, columns, .. } = *self;
        let mut done = 0;
        while done < count {
            let (group, byte) = ((to + done) / record_bytes, (to + done) % record_bytes);
            let run = (count - done).min(record_bytes - byte);
            let slots = &mut self.bytes[group * columns * record_bytes..][..columns * record_bytes];
            let lines = stripe.as_chunks::<{ HEIGHT * LINE_COLUMNS }>().0;
            for (four, line) in slots.chunks_mut(LINE_COLUMNS * record_bytes).zip(lines) {
                for (column, slot) in four.chunks_exact_mut(record_bytes).enumerate() {
                    let words =
                        line[LINE_COLUMNS * (from + done)..].iter().skip(column).step_by(LINE_COLUMNS);
                    slot[byte..byte + run].iter_mut().zip(words).for_each(|(out, byte)| *out = *byte);
                }
            }
            done += run;
        }
        self.filled = to + count;
    }

    /// The slot of a group and a column, if there is one.
    fn slot(&self, group: usize, column: usize) -> Option<&[u8]> {
        let there = column < self.columns && group * self.record_bytes < self.filled;
        there.then(|| &self.bytes[(group * self.columns + column) * self.record_bytes..][..self.record_bytes])
    }
}

/// What makes an output's polynomials.
pub(super) struct Worker {
    geometry: Geometry,
    places: Places,
    pads: Pads,
    ntt: Ntt,
    q: u64,
}

impl Worker {
    pub(super) fn new(geometry: Geometry, places: Places, seed: [u8; SEED_BYTES]) -> Self {
        let prime = Rings::get().small().primes()[0];
        let ntt = Ntt::new(prime, DEGREE).expect("a ring's prime");
        Self { geometry, places, pads: Pads::new(seed), ntt, q: prime.value() }
    }

    /// Writes an output's polynomials: part after part, row after row.
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
