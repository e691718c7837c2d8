//! From records as they lie to outputs of slots, in bounded memory and on all threads.

use std::thread;

use blindcore_accel::{Device, Placed};
use blindcore_math::SecretRng;
use blindcore_units::Unit;

use super::polynomials::POLYNOMIALS;
use super::{Lay, SEED_BYTES};
use crate::{Error, Geometry, PREPARING, Params, Preprocessing, Progress};

/// Rows of a stripe of the records.
pub(in crate::schemes) const HEIGHT: usize = 16;
/// Columns of a line of it.
const LINE_COLUMNS: usize = 4;

/// What makes outputs: each of some groups of slots that follow each other, and all of as many parts and rows.
pub(in crate::schemes) trait Make: Sync {
    /// Memory that one row after another uses; what one leaves in it changes nothing for the next.
    type Scratch: Default;

    /// Groups of an output.
    fn groups(&self) -> usize;

    /// Parts of an output: rows of the operand.
    fn parts(&self) -> usize;

    /// Rows of a part.
    fn rows(&self) -> usize;

    /// Gives the values of a row's polynomials to `put`, with their first channel and the sub-row. Its place is an output, a part, a row.
    fn row(
        &self,
        place: [usize; 3],
        slots: &Slots,
        scratch: &mut Self::Scratch,
        put: &mut dyn FnMut(usize, usize, &[u64]),
    );
}

/// The seed of pads, which is the hint: drawn where nothing is done, so when the records are fixed, and whoever wrote them can't have
/// aimed at it.
pub(in crate::schemes) fn pad_seed(into: &mut Preprocessing<'_>) -> Result<[u8; SEED_BYTES], Error> {
    let seed: &mut [u8; SEED_BYTES] = into.hint.try_into().expect("the hint is the seed");
    if into.done == 0 {
        SecretRng::from_os()?.fill(seed);
    }
    Ok(*seed)
}

/// Makes the outputs that are not done, by reading the records once: at a time as many for each thread as share stripes.
pub(in crate::schemes) fn preprocess<M: Make>(
    params: &Params,
    device: &Device,
    records: &dyn Placed,
    into: &mut Preprocessing<'_>,
    progress: &mut dyn Progress,
    maker: impl FnOnce([u8; SEED_BYTES]) -> M,
) -> Result<(), Error> {
    let maker = &maker(pad_seed(into)?);
    let (groups, outputs) = (maker.groups(), params.geometry.groups.div_ceil(maker.groups()));
    let (total, threads) = (outputs as u64, device.description().threads.max(1));
    let mut tell = |done: u64| {
        progress.at(PREPARING, done, Some(total), Unit::Items);
        if progress.stopped() { Err(Error::Stopped) } else { Ok(()) }
    };
    let lay = &Lay::of(&params.operands()[POLYNOMIALS]);
    let polynomials = &mut into.derived[0];
    // The fewest outputs that fill stripes.
    let unit = (1..=lay.rows()).find(|unit| (unit * maker.parts()).is_multiple_of(lay.rows())).unwrap_or(1);
    let unit_bytes = unit * maker.parts() / lay.rows() * lay.stripe_bytes();
    let mut first = usize::try_from(into.done).expect("fewer than groups") / unit * unit;
    // Outputs whose slots have come, or are coming.
    let mut slots: Vec<Slots> = (0..(threads * unit).min(outputs - first.min(outputs)))
        .map(|_| Slots::new(&params.geometry, groups))
        .collect();
    let mut make = |first: usize, slots: &mut [Slots], done: &mut u64| {
        (0..slots.len() as u64).try_for_each(|i| tell(*done + i))?;
        let units = polynomials[first / unit * unit_bytes..].chunks_mut(unit_bytes);
        thread::scope(|scope| {
            let mut work = slots.chunks(unit).zip(units).enumerate();
            let last = work.next_back();
            for (i, (slots, out)) in work {
                scope.spawn(move || outputs_of(maker, lay, first + i * unit, slots, out));
            }
            if let Some((i, (slots, out))) = last {
                outputs_of(maker, lay, first + i * unit, slots, out);
            }
        });
        *done += slots.len() as u64;
        Ok::<(), Error>(())
    };
    let (operand, output_rows) = (params.records(), groups * params.geometry.record_bytes);
    let (mut row, mut failed, mut done) = (0, None, first as u64);
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
            let left = outputs - first.min(outputs);
            make(first, &mut slots[..left], &mut done)
        }
    };
    into.done = done;
    finished
}

/// Makes outputs from `first` on, whose slots these are, and their stripes, whose bytes were zeros: row by row, as they lie among each
/// other.
fn outputs_of<M: Make>(maker: &M, lay: &Lay, first: usize, slots: &[Slots], out: &mut [u8]) {
    let (parts, mut number, mut scratch) = (maker.parts(), 0, M::Scratch::default());
    for stripe in out.chunks_exact_mut(lay.stripe_bytes()) {
        for row in 0..maker.rows() {
            for at in 0..lay.rows() {
                let (output, part) = ((number + at) / parts, (number + at) % parts);
                // The last stripe may have fewer.
                let Some(slots) = slots.get(output) else { break };
                let place = [first + output, part, row];
                maker.row(place, slots, &mut scratch, &mut |c, sub_row, values| {
                    lay.put(stripe, at, c, sub_row, values);
                });
            }
        }
        number += lay.rows();
    }
}

/// The columns of a line.
fn columns_of(line: &[u8; HEIGHT * LINE_COLUMNS]) -> [[u8; HEIGHT]; LINE_COLUMNS] {
    let mut rows = [0; HEIGHT];
    rows.iter_mut().zip(line.as_chunks().0).for_each(|(row, four)| *row = u32::from_le_bytes(*four));
    let mut column = 0;
    [(); LINE_COLUMNS].map(|()| {
        let bytes = rows.map(|row| (row >> column) as u8);
        column += u8::BITS;
        bytes
    })
}

/// The slots of an output, `[group][column]`, each with room to whole lanes of eleven bytes.
pub(in crate::schemes) struct Slots {
    bytes: Vec<u8>,
    record_bytes: usize,
    columns: usize,
    filled: usize,
}

impl Slots {
    pub(in crate::schemes) fn new(geometry: &Geometry, groups: usize) -> Self {
        let Geometry { record_bytes, columns, .. } = *geometry;
        Self { bytes: vec![0; groups * columns * record_bytes], record_bytes, columns, filled: 0 }
    }

    fn clear(&mut self) {
        self.filled = 0;
    }

    /// Takes `count` rows of a stripe from row `from` on: rows of this output from `to` on.
    pub(in crate::schemes) fn take(&mut self, stripe: &[u8], from: usize, to: usize, count: usize) {
        let Self { record_bytes, columns, .. } = *self;
        let mut done = 0;
        while done < count {
            let (group, byte) = ((to + done) / record_bytes, (to + done) % record_bytes);
            let run = (count - done).min(record_bytes - byte);
            let slots = &mut self.bytes[group * columns * record_bytes..][..columns * record_bytes];
            let lines = stripe.as_chunks::<{ HEIGHT * LINE_COLUMNS }>().0;
            let rows = from + done..from + done + run;
            for (four, line) in slots.chunks_mut(LINE_COLUMNS * record_bytes).zip(lines) {
                let columns = columns_of(line);
                for (slot, column) in four.chunks_exact_mut(record_bytes).zip(&columns) {
                    let out = &mut slot[byte..byte + run];
                    // A length that the compiler knows.
                    match out.as_mut_array::<HEIGHT>() {
                        Some(out) => *out = *column,
                        None => out.copy_from_slice(&column[rows.clone()]),
                    }
                }
            }
            done += run;
        }
        self.filled = to + count;
    }

    /// Part `part` of the slot of a group and a column, if there is a slot: parts have `bytes` bytes each, the last may be shorter.
    pub(in crate::schemes) fn part(
        &self,
        group: usize,
        column: usize,
        part: usize,
        bytes: usize,
    ) -> Option<&[u8]> {
        let slot = self.slot(group, column)?;
        let from = (part * bytes).min(slot.len());
        Some(&slot[from..(from + bytes).min(slot.len())])
    }

    /// The slot of a group and a column, if there is one.
    pub(in crate::schemes) fn slot(&self, group: usize, column: usize) -> Option<&[u8]> {
        let there = column < self.columns && group * self.record_bytes < self.filled;
        there.then(|| &self.bytes[(group * self.columns + column) * self.record_bytes..][..self.record_bytes])
    }
}
