//! The client's half. Constant time: no branch, index or division that a selection, a secret or a message decides.

use blindcore_math::{MaskSeed, Prime, SecretRng};
use blindcore_rlwe::rounding::{Rounding, pack, packed_bytes, unpack};
use blindcore_rlwe::{Plaintext, Slots, fresh_seed};
use zeroize::Zeroizing;

use super::params::{BODY_BITS, DEGREE, MASK_BITS, Places, QUERY_BITS, ROW, Rings};
use crate::schemes::rings::{LANE, LANE_BITS, Pads, SEED_BYTES, Secret, answers, plus, wide};
use crate::{Decoded, Error, Params, SchemeClient, Selection, constant_time};

pub(super) struct FastClient {
    params: Params,
    places: Places,
    pads: Pads,
    slots: Slots,
    plaintext: Prime,
}

/// Encryptions of nothing: the masks' seed, and a body for each column by coefficients.
pub(super) struct Prepared {
    secret: Secret,
    seed: MaskSeed,
    bodies: Vec<Zeroizing<Vec<u64>>>,
}

pub(super) struct Pending {
    secret: Secret,
    selection: Selection,
}

/// Where a group's slots lie: what a client knows and the server doesn't.
struct Place {
    share: u32,
    cell: u32,
}

impl FastClient {
    pub(super) fn new(params: &Params, seed: [u8; SEED_BYTES]) -> Self {
        let parameters = &Rings::get().parameters;
        Self {
            params: *params,
            places: Places::new(&params.geometry),
            pads: Pads::new(seed),
            slots: Slots::new(parameters).expect("the set has slots"),
            plaintext: Prime::new(parameters.plaintext()).expect("slots are modulo a prime"),
        }
    }

    fn place(&self, group: u32) -> Place {
        let (share, cell) = constant_time::divide(group.into(), self.places.cells as u64);
        Place { share: share as u32, cell: cell as u32 }
    }

    /// What a picked column adds to a body: 1 in each slot of the cell, by coefficients, times Q / p.
    fn picked(&self, cell: u32) -> Zeroizing<Vec<u64>> {
        let ring = Rings::get().ring();
        let one_hot: Zeroizing<Vec<u64>> = Zeroizing::new(
            (0..DEGREE)
                .map(|slot| 1 & wide(constant_time::equal_mask((slot / self.places.slots) as u32, cell)))
                .collect(),
        );
        let plaintext = self.slots.encode(&one_hot).expect("ones and zeros");
        let mut scaled = plaintext.scaled_up(ring);
        let scaled = Zeroizing::new(ring.inverse(std::mem::replace(&mut *scaled, ring.zero())));
        Zeroizing::new(scaled.words().to_vec())
    }

    /// What each coefficient that is sent of a ciphertext of an answer is, with noise, modulo 2^22 ([`MASK_BITS`]) of the whole.
    pub(super) fn phases(&self, secret: &Secret, sent: &[u8]) -> Zeroizing<Vec<u64>> {
        let places = &self.places;
        let (mask, body) = sent.split_at(packed_bytes(DEGREE, MASK_BITS));
        let mask = unpack(mask, MASK_BITS).take(DEGREE).collect();
        let body = unpack(body, BODY_BITS).map(|body| body << (MASK_BITS - BODY_BITS));
        let at = (0..DEGREE).step_by(places.step());
        answers::phases_at(Rings::get().ring(), secret, mask, at, body)
    }

    /// The slots of a ciphertext of an answer, as the coefficients show them that were sent.
    fn decrypted(&self, secret: &Secret, sent: &[u8]) -> Zeroizing<Vec<u64>> {
        let (rings, places, p) = (Rings::get(), &self.places, self.plaintext);
        let phases = self.phases(secret, sent);
        let mut coefficients = Zeroizing::new(vec![0; DEGREE]);
        for (coefficient, phase) in coefficients.iter_mut().step_by(places.step()).zip(phases.iter()) {
            let phase = phase & ((1 << MASK_BITS) - 1);
            // At most p, which stands for 0.
            let message = (phase * p.value() + (1 << (MASK_BITS - 1))) >> MASK_BITS;
            *coefficient = p.reduce(u128::from(message) * places.step() as u128);
        }
        let plaintext = Plaintext::new(&rings.parameters, &coefficients).expect("reduced modulo p");
        self.slots.decode(&plaintext)
    }
}

/// Adds those of `from` to `to` that a mask of all ones stands for.
fn add_where(here: u32, from: &[u16], to: &mut [u16]) {
    let here = here as u16;
    to.iter_mut().zip(from).for_each(|(to, from)| *to = to.wrapping_add(from & here));
}

/// Turns slots so that the one with number `first`, which is secret, comes first, and those behind it follow within the rows.
fn turn_to_first(slots: &mut [u16], first: u32) {
    let mut before = Zeroizing::new(vec![0; slots.len()]);
    for bit in 0..DEGREE.ilog2() {
        before.copy_from_slice(slots);
        let here = constant_time::equal_mask(first >> bit & 1, 1) as u16;
        let rows = before.chunks_exact(ROW).zip(slots.chunks_exact_mut(ROW));
        let by = 1usize << bit;
        if by == ROW {
            // The rows' swap.
            let swapped = before.iter().cycle().skip(ROW);
            slots.iter_mut().zip(swapped).for_each(|(slot, other)| *slot ^= (*slot ^ other) & here);
        } else {
            for (before, row) in rows {
                let turned = before.iter().cycle().skip(by);
                row.iter_mut().zip(turned).for_each(|(slot, other)| *slot ^= (*slot ^ other) & here);
            }
        }
    }
}

impl FastClient {
    pub(super) fn prepare_under(&self, secret: &Secret) -> Result<Prepared, Error> {
        let ring = Rings::get().ring();
        // The seed is sent. It is drawn apart, so that it says nothing of the stream that errors are drawn from.
        let seed = fresh_seed(&mut SecretRng::from_os()?);
        let mut rng = SecretRng::from_os()?;
        let body = |column: usize| {
            let mask = ring.uniform(seed, column as u64);
            let body = Zeroizing::new(ring.inverse(secret.key().body(ring, &mask, &ring.zero(), &mut rng)));
            Zeroizing::new(body.words().to_vec())
        };
        let bodies = (0..self.places.columns).map(body).collect();
        Ok(Prepared { secret: secret.clone(), seed, bodies })
    }

    pub(super) fn make_query(&self, prepared: Prepared, selection: &Selection) -> (Vec<u8>, Pending) {
        let Prepared { secret, seed, mut bodies } = prepared;
        let ring = Rings::get().ring();
        let q = ring.modulus() as u64;
        let picked = self.picked(self.place(selection.group()).cell);
        let rounding = Rounding::new(ring.primes()[0], QUERY_BITS);
        let mut query = Vec::with_capacity(self.params.query_bytes());
        query.extend(seed.0);
        for (column, body) in (0u32..).zip(&mut bodies) {
            for this in selection.columns() {
                let here = wide(constant_time::equal_mask(*this, column));
                let sums = body.iter_mut().zip(picked.iter());
                sums.for_each(|(word, picked)| *word = plus(q, *word, picked & here));
            }
            body.iter_mut().for_each(|word| *word = rounding.down(*word));
            pack(body, QUERY_BITS, &mut query);
        }
        (query, Pending { secret, selection: selection.clone() })
    }

    pub(super) fn read(&self, pending: &Pending, answer: &[u8]) -> Zeroizing<Vec<u8>> {
        let (places, selection) = (&self.places, &pending.selection);
        let Place { share, cell } = self.place(selection.group());
        let answers: Vec<Zeroizing<Vec<u16>>> = answer
            .chunks_exact(places.sent_bytes())
            .map(|sent| {
                let slots = self.decrypted(&pending.secret, sent);
                Zeroizing::new(slots.iter().map(|slot| *slot as u16).collect())
            })
            .collect();
        let piece_lanes = places.height * places.slots;
        let mut slot = Zeroizing::new(Vec::with_capacity(places.parts * places.part_bytes + 8));
        let [mut slots, mut pad] = [(); 2].map(|()| Zeroizing::new(vec![0u16; DEGREE]));
        let [mut lanes, mut pads] = [(); 2].map(|()| Zeroizing::new(vec![0u16; piece_lanes]));
        for part in 0..places.parts {
            let piece = (part * places.shares) as u64 + u64::from(share);
            let (at, within) = constant_time::divide(piece, places.per as u64);
            slots.fill(0);
            for (this, answer) in (0u32..).zip(&answers) {
                add_where(constant_time::equal_mask(this, at as u32), answer, &mut slots);
            }
            turn_to_first(&mut slots, cell * places.slots as u32);
            let gathered: Zeroizing<Vec<u16>> =
                Zeroizing::new((0..places.lanes()).map(|lane| slots[places.behind(lane)]).collect());
            lanes.fill(0);
            for (this, piece) in (0u32..).zip(gathered.chunks_exact(piece_lanes).take(places.per)) {
                add_where(constant_time::equal_mask(this, within as u32), piece, &mut lanes);
            }
            pads.fill(0);
            for (output, pads) in (0u64..).zip(pads.chunks_exact_mut(places.slots)) {
                self.pads.of(piece * places.height as u64 + output, &mut pad);
                for (this, pad) in (0u32..).zip(pad.chunks_exact(places.slots)) {
                    add_where(constant_time::equal_mask(this, cell), pad, pads);
                }
            }
            // Each picked column came with the same pad.
            let times = selection.columns().len() as u16;
            let words: Zeroizing<Vec<u64>> = Zeroizing::new(
                lanes
                    .iter()
                    .zip(pads.iter())
                    .map(|(lane, pad)| u64::from(lane.wrapping_sub(pad.wrapping_mul(times)) & LANE))
                    .collect(),
            );
            let start = slot.len();
            pack(&words[..places.width], LANE_BITS, &mut slot);
            slot.truncate(start + places.part_bytes);
        }
        slot.truncate(self.params.geometry.record_bytes);
        slot
    }
}

impl SchemeClient for FastClient {
    type Keys = Secret;
    type Prepared = Prepared;
    type Pending = Pending;

    fn prepare(&self, keys: &Secret) -> Result<Prepared, Error> {
        self.prepare_under(keys)
    }

    fn query(&self, prepared: Prepared, selection: &Selection) -> (Vec<u8>, Pending) {
        self.make_query(prepared, selection)
    }

    /// Nothing is ever said to be damaged: the secret stays, and each answer that failed visibly would show a bit of it.
    fn decode(&self, pending: Pending, answer: &[u8]) -> Decoded {
        Decoded { slot: self.read(&pending, answer), damaged: false }
    }
}
