//! The client's half. Constant time: no branch, index or division that a selection, a secret or a message decides.

use blindcore_math::{MaskSeed, SecretRng};
use blindcore_rlwe::fresh_seed;
use blindcore_rlwe::rounding::{Rounding, pack, packed_bytes, unpack};
use zeroize::Zeroizing;

use super::params::{BIT_LEAVES, BODY_BITS, DEGREE, MASK_BITS, Places, QUERY_BITS, Rings};
use crate::schemes::rings::{LANE, LANE_BITS, Pads, SEED_BYTES, Secret};
use crate::{Decoded, Error, Params, SchemeClient, Selection, constant_time};

pub(super) struct OnionClient {
    params: Params,
    places: Places,
    pads: Pads,
}

/// An encryption of nothing: the mask's seed, and the body by coefficients.
pub(super) struct Prepared {
    secret: Secret,
    seed: MaskSeed,
    body: Zeroizing<Vec<u64>>,
}

pub(super) struct Pending {
    secret: Secret,
    selection: Selection,
}

/// Where a column's slot lies: what a client knows and the server doesn't.
struct Place {
    row: u32,
    coarse: u32,
    output: u32,
    fine: u32,
}

impl OnionClient {
    pub(super) fn new(params: &Params, seed: [u8; SEED_BYTES]) -> Self {
        Self { params: *params, places: Places::new(&params.geometry), pads: Pads::new(seed) }
    }

    fn place(&self, column: u32, group: u32) -> Place {
        let (coarse, row) = constant_time::divide(column.into(), self.places.rows as u64);
        let (output, fine) = constant_time::divide(group.into(), self.places.fine as u64);
        Place { row: row as u32, coarse: coarse as u32, output: output as u32, fine: fine as u32 }
    }

    /// Adds what `place` is asked for by to an encryption of nothing, at the coefficients that are sent.
    fn ask(&self, body: &mut [u64], place: &Place) {
        let rings = Rings::get();
        let (q, delta, height) = (rings.large().modulus() as u64, rings.delta(), self.places.height);
        // X^-(turn 2^h), for the multiple of 2^h at or below the place; X^d = -1.
        let turns = (DEGREE >> height) as u32;
        let position =
            self.places.position(0, 1) as u32 * place.fine + self.places.position(1, 0) as u32 * place.coarse;
        let turn = position >> height;
        let at = place.row + ((turns.wrapping_sub(turn) & (turns - 1)) << height);
        let straight = wide(constant_time::equal_mask(turn, 0));
        let message = (delta & straight) | ((q - delta) & !straight);
        for (i, word) in (0u32..).zip(body) {
            *word = plus(q, *word, message & wide(constant_time::equal_mask(i, at)));
        }
    }

    /// What each coefficient that is sent of each part is, with noise, modulo 2^20 ([`MASK_BITS`]) of the whole.
    fn phases(&self, secret: &Secret, answer: &[u8]) -> Zeroizing<Vec<u64>> {
        let (ring, window) = (Rings::get().large(), self.places.window());
        let q = ring.modulus() as u64;
        let mut phases = Zeroizing::new(Vec::with_capacity(self.places.parts * window));
        for part in answer.chunks_exact(self.places.sent_bytes()) {
            let (mask, body) = part.split_at(packed_bytes(DEGREE, MASK_BITS));
            let mask = unpack(mask, MASK_BITS).take(DEGREE).collect();
            let mut product = Zeroizing::new(ring.forward(ring.polynomial(mask).expect("words below 2^20")));
            ring.multiply(&mut product, secret.values());
            let product = Zeroizing::new(ring.inverse(std::mem::replace(&mut *product, ring.zero())));
            let bodies = unpack(body, BODY_BITS).take(window);
            // A sum of 2048 words of 20 bits is far below Q / 2.
            phases.extend(
                bodies.zip(product.words()).map(|(body, product)| {
                    (body << (MASK_BITS - BODY_BITS)).wrapping_sub(signed(q, *product))
                }),
            );
        }
        phases
    }
}

impl OnionClient {
    pub(super) fn prepare_under(&self, secret: &Secret) -> Result<Prepared, Error> {
        let ring = Rings::get().large();
        // The seed is sent. It is drawn apart, so that it says nothing of the stream that errors are drawn from.
        let seed = fresh_seed(&mut SecretRng::from_os()?);
        let mut rng = SecretRng::from_os()?;
        let body = secret.key().body(ring, &ring.uniform(seed, 0), &ring.zero(), &mut rng);
        let body = Zeroizing::new(ring.inverse(body));
        Ok(Prepared { secret: secret.clone(), seed, body: Zeroizing::new(body.words().to_vec()) })
    }

    pub(super) fn make_query(&self, prepared: Prepared, selection: &Selection) -> (Vec<u8>, Pending) {
        let Prepared { secret, seed, mut body } = prepared;
        let (rings, places) = (Rings::get(), &self.places);
        let q = rings.large().modulus() as u64;
        for column in selection.columns() {
            self.ask(&mut body, &self.place(*column, selection.group()));
        }
        let Place { output, .. } = self.place(0, selection.group());
        for fold in 0..places.folds {
            let bit = u64::from(output >> fold & 1).wrapping_neg();
            for digit in 0..BIT_LEAVES {
                let word = &mut body[places.rows + fold as usize * BIT_LEAVES + digit];
                *word = plus(q, *word, rings.weight(digit) & bit);
            }
        }
        let rounding = Rounding::new(rings.large().primes()[0], QUERY_BITS);
        let mut query = Vec::with_capacity(self.params.query_bytes());
        query.extend(seed.0);
        // Coefficients that lead to no leaf are left out.
        let sent = body.chunks_exact(1 << places.height).flat_map(|run| &run[..places.leaves()]);
        let sent = Zeroizing::new(sent.map(|word| rounding.down(*word)).collect::<Vec<_>>());
        pack(&sent, QUERY_BITS, &mut query);
        (query, Pending { secret, selection: selection.clone() })
    }

    pub(super) fn read(&self, pending: &Pending, answer: &[u8]) -> Zeroizing<Vec<u8>> {
        let (places, group) = (&self.places, pending.selection.group());
        let phases = self.phases(&pending.secret, answer);
        let mut slot = Zeroizing::new(Vec::with_capacity(places.parts * places.part_bytes + 8));
        let mut lanes = Zeroizing::new(vec![0u16; places.width]);
        let mut pad = Zeroizing::new([0; DEGREE]);
        for (part, phases) in phases.chunks_exact(places.window()).enumerate() {
            let Place { fine, .. } = self.place(0, group);
            lanes.fill(0);
            for this in 0..places.fine {
                let here = constant_time::equal_mask(this as u32, fine) as u16;
                let phases = &phases[places.offset(this)..][..places.width];
                lanes.iter_mut().zip(phases).for_each(|(lane, phase)| *lane |= round(*phase) & here);
            }
            // Each column's pad lies where its slot does.
            for column in pending.selection.columns() {
                let Place { row, coarse, output, fine } = self.place(*column, group);
                let polynomial = u64::from(output) * places.parts as u64 + part as u64;
                self.pads.of(polynomial * places.rows as u64 + u64::from(row), &mut pad[..]);
                for (this_coarse, this_fine) in
                    (0..places.coarse).flat_map(|coarse| (0..places.fine).map(move |fine| (coarse, fine)))
                {
                    let here = constant_time::equal_mask(this_coarse as u32, coarse)
                        & constant_time::equal_mask(this_fine as u32, fine);
                    let pad = &pad[places.position(this_coarse, this_fine)..][..places.width];
                    lanes
                        .iter_mut()
                        .zip(pad)
                        .for_each(|(lane, pad)| *lane = lane.wrapping_sub(pad & here as u16));
                }
            }
            let words = Zeroizing::new(lanes.iter().map(|lane| u64::from(lane & LANE)).collect::<Vec<_>>());
            let start = slot.len();
            pack(&words, LANE_BITS, &mut slot);
            slot.truncate(start + places.part_bytes);
        }
        slot.truncate(self.params.geometry.record_bytes);
        slot
    }
}

/// The lane that a phase, of [`MASK_BITS`] bits, rounds to.
fn round(phase: u64) -> u16 {
    const STEP: u32 = MASK_BITS - LANE_BITS;
    (phase.wrapping_add(1 << (STEP - 1)) >> STEP) as u16 & LANE
}

/// a + b modulo q, for residues.
fn plus(q: u64, a: u64, b: u64) -> u64 {
    let sum = a + b;
    sum.min(sum.wrapping_sub(q))
}

/// A mask of 32 bits, of 64.
fn wide(mask: u32) -> u64 {
    mask as i32 as u64
}

/// A residue as a number, negative above half of q, modulo 2^64.
fn signed(q: u64, residue: u64) -> u64 {
    let negative = ((q / 2).wrapping_sub(residue) as i64 >> 63) as u64;
    residue.wrapping_sub(q & negative)
}

impl SchemeClient for OnionClient {
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
