//! Preprocessing: lanes become slots of polynomials, which lie by values modulo Q.
//!
//! ```text
//!   a share's groups, some bytes of each record ──▶ lanes + pad ──▶ slots ──modulo p──▶ coefficients, centred ──modulo Q──▶ values, as they lie
//! ```
//!
//! A polynomial has a lane of every group of a share, so a record's bytes are gone through some at a time: as many as memory has room for.

use std::sync::{Mutex, PoisonError};

use blindcore_accel::{Device, Placed};
use blindcore_math::Prime;
use blindcore_math::ntt::{Ntt, orbit};
use blindcore_units::Unit;

use super::params::{DEGREE, POLYNOMIALS, Places, Rings};
use crate::schemes::parallel::each;
use crate::schemes::rings::{HEIGHT, LANE, Lay, Pads, SEED_BYTES, Slots, pad_seed, spread};
use crate::{Error, Geometry, PREPARING, Params, Preprocessing, Progress};

/// Bytes of records that are held at a time.
const HELD_BYTES: usize = 256 << 20;

/// Makes the units that are not done. Each is a few outputs of a piece: lanes that begin with a byte.
pub(super) fn preprocess(
    params: &Params,
    device: &Device,
    records: &dyn Placed,
    into: &mut Preprocessing<'_>,
    progress: &mut dyn Progress,
) -> Result<(), Error> {
    let maker = Maker::new(Places::new(&params.geometry), pad_seed(into)?);
    let (places, threads) = (&maker.places, device.description().threads.max(1));
    let total = (places.pieces() * places.units()) as u64;
    let lay = Lay::of(&params.operands()[POLYNOMIALS]);
    // Stripes may be of several units, and of two pieces.
    let stripes = into.derived[0].chunks_exact_mut(lay.stripe_bytes()).map(Mutex::new);
    let stored = Stored { stripes: stripes.collect(), lay };
    while into.done < total {
        let done = usize::try_from(into.done).expect("fewer than outputs");
        let (piece, first) = (done / places.units(), done % places.units());
        let held = places.cells * places.columns * places.unit_bytes();
        let count = (HELD_BYTES / held).max(threads).min(places.units() - first);
        let slice = Slice::new(params, places, piece, first, count);
        let slots = slice.read(params, records)?;
        let outputs = places.unit_outputs();
        let begin = piece * places.height + first * outputs;
        let end = (begin + count * outputs).min((piece + 1) * places.height);
        let mut units = (begin..end).step_by(outputs).enumerate();
        loop {
            let now: Vec<(usize, usize)> = units.by_ref().take(threads).collect();
            for i in 0..now.len() as u64 {
                progress.at(PREPARING, into.done + i, Some(total), Unit::Items);
                if progress.stopped() {
                    return Err(Error::Stopped);
                }
            }
            if now.is_empty() {
                break;
            }
            each(threads, &now, |(i, first)| {
                maker.unit(*first..(first + outputs).min(end), &slots, i * places.unit_bytes(), &stored);
            });
            into.done += now.len() as u64;
        }
    }
    Ok(())
}

/// Some bytes of each record of a share.
struct Slice {
    groups: std::ops::Range<usize>,
    bytes: std::ops::Range<usize>,
}

impl Slice {
    /// Those of `count` units of a piece from `first` on.
    fn new(params: &Params, places: &Places, piece: usize, first: usize, count: usize) -> Self {
        let Geometry { record_bytes, groups, .. } = params.geometry;
        let (part, share) = (piece / places.shares, piece % places.shares);
        let part_end = ((part + 1) * places.part_bytes).min(record_bytes);
        let begin = (part * places.part_bytes + first * places.unit_bytes()).min(part_end);
        let end = (begin + count * places.unit_bytes()).min(part_end);
        let first = share * places.cells;
        Self { groups: first..(first + places.cells).min(groups), bytes: begin..end }
    }

    /// Reads them as they lie; rows of other groups and bytes are not touched.
    fn read(&self, params: &Params, records: &dyn Placed) -> Result<Slots, Error> {
        let record_bytes = params.geometry.record_bytes;
        let Self { groups, bytes } = self;
        let slice = Geometry { record_bytes: bytes.len(), ..params.geometry };
        let (mut slots, mut row) = (Slots::new(&slice, groups.len()), 0);
        let stripe_bytes = params.records().stripe_bytes();
        records.stripes(&mut |stripes| {
            for stripe in stripes.chunks_exact(stripe_bytes) {
                let end = (row + HEIGHT).min(params.geometry.rows());
                for group in row / record_bytes..end.div_ceil(record_bytes) {
                    // The rows of this group's slice that lie in this stripe.
                    let first = group * record_bytes + bytes.start;
                    let (from, to) = (first.max(row), (first + bytes.len()).min(end));
                    if groups.contains(&group) && from < to {
                        let at = (group - groups.start) * bytes.len() + from - first;
                        slots.take(stripe, from - row, at, to - from);
                    }
                }
                row = end;
            }
            Ok(())
        })?;
        Ok(slots)
    }
}

/// The polynomials, stripe by stripe.
struct Stored<'a> {
    stripes: Vec<Mutex<&'a mut [u8]>>,
    lay: Lay,
}

impl Stored<'_> {
    /// Writes the values of an output's polynomial.
    fn put(&self, output: usize, column: usize, values: &[u64]) {
        let (stripe, row) = (output / self.lay.rows(), output % self.lay.rows());
        let mut stripe = self.stripes[stripe].lock().unwrap_or_else(PoisonError::into_inner);
        self.lay.put(&mut stripe, row, 0, column, values);
    }
}

/// What makes outputs.
struct Maker {
    places: Places,
    pads: Pads,
    /// From slots to coefficients modulo p.
    slots: Ntt,
    orbit: Vec<u32>,
    /// From coefficients to values modulo Q.
    values: Ntt,
}

impl Maker {
    fn new(places: Places, seed: [u8; SEED_BYTES]) -> Self {
        let rings = Rings::get();
        let ntt = |prime| Ntt::new(prime, DEGREE).expect("a prime of the ring");
        let plaintext = Prime::new(rings.parameters.plaintext()).expect("slots are modulo a prime");
        Self {
            places,
            pads: Pads::new(seed),
            slots: ntt(plaintext),
            orbit: orbit(DEGREE).expect("a ring's degree"),
            values: ntt(rings.ring().primes()[0]),
        }
    }

    /// Makes these outputs, a unit at most, of the records' bytes from `at` on in `slots`.
    fn unit(&self, outputs: std::ops::Range<usize>, records: &Slots, at: usize, stored: &Stored<'_>) {
        let Places { columns, cells, slots, .. } = self.places;
        let mut pads = vec![[0; DEGREE]; outputs.len()];
        outputs.clone().zip(&mut pads).for_each(|(number, pad)| self.pads.of(number as u64, pad));
        let (mut lanes, mut words) = (pads.clone(), vec![0; DEGREE]);
        // Of all cells one after another: their bytes are whole lanes.
        let (unit_bytes, unit_lanes) = (self.places.unit_bytes(), self.places.unit_lanes());
        let (mut bytes, mut units) = (vec![0; cells * unit_bytes], vec![0; cells * unit_lanes]);
        for column in 0..columns {
            lanes.copy_from_slice(&pads);
            for (cell, unit) in bytes.chunks_exact_mut(unit_bytes).enumerate() {
                let slot = records.slot(cell, column).unwrap_or_default();
                let slot = &slot[at.min(slot.len())..];
                let (there, beyond) = unit.split_at_mut(slot.len().min(unit_bytes));
                there.copy_from_slice(&slot[..there.len()]);
                beyond.fill(0);
            }
            spread(&bytes, &mut units);
            for (lanes, first) in lanes.iter_mut().zip((0..).step_by(slots)) {
                for (cell, unit) in lanes.chunks_exact_mut(slots).zip(units.chunks_exact(unit_lanes)) {
                    let unit = &unit[first..][..slots];
                    cell.iter_mut().zip(unit).for_each(|(lane, unit)| *lane = lane.wrapping_add(*unit));
                }
            }
            for (output, lanes) in outputs.clone().zip(&lanes) {
                self.polynomial(lanes, &mut words);
                stored.put(output, column, &words);
            }
        }
    }

    /// The polynomial with these lanes in its slots, by values modulo Q.
    fn polynomial(&self, lanes: &[u16; DEGREE], words: &mut [u64]) {
        let (p, q) = (self.slots.prime().value(), self.values.prime().value());
        for (lane, place) in lanes.iter().zip(&self.orbit) {
            words[*place as usize] = u64::from(lane & LANE);
        }
        self.slots.inverse(words);
        for word in words.iter_mut() {
            // From -p/2 to p/2.
            *word = if *word > p / 2 { *word + q - p } else { *word };
        }
        self.values.forward(words);
    }
}
