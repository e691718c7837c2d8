//! Preprocessing: lanes become slots of polynomials, which lie by values modulo Q.
//!
//! ```text
//!   a share's groups, some bytes of each record ──▶ lanes + pad ──▶ slots ──modulo p──▶ coefficients, centred ──modulo Q──▶ six bytes a value
//! ```
//!
//! A polynomial has a lane of every group of a share, so a record's bytes are gone through some at a time: as many as memory has room for.

use std::sync::Mutex;

use blindcore_accel::{Device, Placed};
use blindcore_math::Prime;
use blindcore_math::ntt::{Ntt, orbit};
use blindcore_units::Unit;

use super::params::{DEGREE, Places, RESIDUE_BYTES, RUN, Rings};
use crate::schemes::parallel::each;
use crate::schemes::rings::{HEIGHT, LANE, Pads, SEED_BYTES, Slots, pad_seed, spread};
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
    let polynomials = &mut into.derived[0];
    let output_bytes = polynomials.len() / places.outputs();
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
        let mut chunks = polynomials[begin * output_bytes..end * output_bytes]
            .chunks_mut(outputs * output_bytes)
            .enumerate()
            .map(|(i, out)| (i, Mutex::new(out)));
        loop {
            let now: Vec<(usize, Mutex<&mut [u8]>)> = chunks.by_ref().take(threads).collect();
            for i in 0..now.len() as u64 {
                progress.at(PREPARING, into.done + i, Some(total), Unit::Items);
                if progress.stopped() {
                    return Err(Error::Stopped);
                }
            }
            if now.is_empty() {
                break;
            }
            each(threads, &now, |(i, out)| {
                let mut out = out.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                maker.unit(begin + i * outputs, &slots, i * places.unit_bytes(), &mut out);
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

    /// Makes outputs from `first` on, as many as `out` has room for and a unit at most, of the records' bytes from `at` on in `slots`.
    fn unit(&self, first: usize, records: &Slots, at: usize, out: &mut [u8]) {
        let Places { columns, cells, slots, .. } = self.places;
        let output_bytes = columns * DEGREE * RESIDUE_BYTES;
        let mut pads = vec![[0; DEGREE]; out.len() / output_bytes];
        (first as u64..).zip(&mut pads).for_each(|(number, pad)| self.pads.of(number, pad));
        let (mut lanes, mut words) = (pads.clone(), vec![0; DEGREE]);
        let mut unit = vec![0; self.places.unit_lanes()];
        for column in 0..columns {
            lanes.copy_from_slice(&pads);
            for cell in 0..cells {
                let Some(bytes) = records.slot(cell, column) else { continue };
                let bytes = &bytes[at.min(bytes.len())..];
                spread(&bytes[..bytes.len().min(self.places.unit_bytes())], &mut unit);
                for (lanes, unit) in lanes.iter_mut().zip(unit.chunks_exact(slots)) {
                    let here = &mut lanes[cell * slots..][..slots];
                    here.iter_mut().zip(unit).for_each(|(lane, unit)| *lane = lane.wrapping_add(*unit));
                }
            }
            for (lanes, out) in lanes.iter().zip(out.chunks_exact_mut(output_bytes)) {
                self.polynomial(lanes, &mut words);
                let runs = out.chunks_exact_mut(columns * RUN * RESIDUE_BYTES).zip(words.chunks_exact(RUN));
                for (out, words) in runs {
                    let out = &mut out[column * RUN * RESIDUE_BYTES..][..RUN * RESIDUE_BYTES];
                    for (out, word) in out.as_chunks_mut::<RESIDUE_BYTES>().0.iter_mut().zip(words) {
                        let [a, b, c, d, e, f, ..] = word.to_le_bytes();
                        *out = [a, b, c, d, e, f];
                    }
                }
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
