//! The client's half. Constant time: no branch, index or division that a selection, a secret or a message decides.

use blindcore_math::{MaskSeed, Prime, SecretRng};
use blindcore_rlwe::fresh_seed;
use blindcore_rlwe::rounding::{pack, packed_bytes, unpack};
use zeroize::Zeroizing;

use super::params::{DEGREE, LATER, Places, Set};
use crate::schemes::rings::{SEED_BYTES, Secret, WidePads};
use crate::{Decoded, Error, Params, SchemeClient, Selection, constant_time};

pub(super) struct OnionClient {
    set: &'static Set,
    params: Params,
    places: Places,
    pads: WidePads,
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
    pub(super) fn new(set: &'static Set, params: &Params, seed: [u8; SEED_BYTES]) -> Self {
        let places = Places::new(&set.sizes, &params.geometry);
        Self { set, params: *params, places, pads: WidePads::new(seed, set.sizes.lane_bits) }
    }

    fn place(&self, column: u32, group: u32) -> Place {
        let (coarse, row) = constant_time::divide(column.into(), self.places.rows as u64);
        let (output, fine) = constant_time::divide(group.into(), self.places.fine as u64);
        Place { row: row as u32, coarse: coarse as u32, output: output as u32, fine: fine as u32 }
    }

    fn primes(&self) -> &[Prime] {
        self.set.rings().small().primes()
    }

    /// Adds what `place` is asked for by to an encryption of nothing.
    fn ask(&self, body: &mut [u64], place: &Place) {
        let (places, sizes) = (&self.places, &self.set.sizes);
        // X^-(turn 2^h), for the multiple of 2^h at or below the place; X^d = -1.
        let turns = (DEGREE >> places.height) as u32;
        let position =
            places.position(0, 1) as u32 * place.fine + places.position(1, 0) as u32 * place.coarse;
        let turn = position >> places.height;
        let at =
            place.row * sizes.pieces as u32 + ((turns.wrapping_sub(turn) & (turns - 1)) << places.height);
        let straight = wide(constant_time::equal_mask(turn, 0));
        for (q, body) in self.primes().iter().zip(body.chunks_exact_mut(DEGREE)) {
            for piece in 0..sizes.pieces as u32 {
                let weight = q.reduce(self.set.rings().delta() << (piece * sizes.piece_bits()));
                let message = (weight & straight) | ((q.value() - weight) & !straight);
                for (i, word) in (0u32..).zip(&mut *body) {
                    *word = plus(q.value(), *word, message & wide(constant_time::equal_mask(i, at + piece)));
                }
            }
        }
    }

    /// Adds the weights of the factors that choose an output: in each later dimension one, or none for the first choice.
    fn choose(&self, body: &mut [u64], output: u32) {
        let (places, rings) = (&self.places, self.set.rings());
        let digits = rings.fold.digits();
        for (level, choice) in (0..places.levels).flat_map(|l| (1..places.choices(l)).map(move |c| (l, c))) {
            let digit = output >> (LATER.ilog2() * level) & (LATER as u32 - 1);
            let here = wide(constant_time::equal_mask(digit, choice as u32));
            let first = places.picking() + (places.first_factor(level) + choice - 1) * digits;
            for (q, body) in self.primes().iter().zip(body.chunks_exact_mut(DEGREE)) {
                for (i, word) in body[first..first + digits].iter_mut().enumerate() {
                    *word = plus(q.value(), *word, q.reduce(rings.weight(i)) & here);
                }
            }
        }
    }

    /// What each coefficient that is sent of each part is, with noise, modulo 2 to [`super::params::Sizes::mask_bits`] of the whole.
    fn phases(&self, secret: &Secret, answer: &[u8]) -> Zeroizing<Vec<u64>> {
        let (sizes, ring, window) = (&self.set.sizes, self.set.rings().small(), self.places.window());
        let mut phases = Zeroizing::new(Vec::with_capacity(self.places.parts * window));
        for part in answer.chunks_exact(self.places.sent_bytes(sizes)) {
            let (mask, body) = part.split_at(packed_bytes(DEGREE, sizes.mask_bits));
            let mask: Vec<u64> = unpack(mask, sizes.mask_bits).take(DEGREE).collect();
            // Words have fewer bits than each prime.
            let mask = mask.repeat(ring.primes().len());
            let mut product = Zeroizing::new(ring.forward(ring.polynomial(mask).expect("narrow words")));
            ring.multiply(&mut product, secret.values());
            let product = Zeroizing::new(ring.inverse(std::mem::replace(&mut *product, ring.zero())));
            // A sum of 4096 such words is far below q / 2.
            let product = ring.centred(&product);
            let bodies = unpack(body, sizes.body_bits).take(window);
            phases.extend(bodies.zip(product.iter()).map(|(body, product)| {
                (body << (sizes.mask_bits - sizes.body_bits)).wrapping_sub(*product as u64)
            }));
        }
        phases
    }
}

impl OnionClient {
    pub(super) fn prepare_under(&self, secret: &Secret) -> Result<Prepared, Error> {
        let ring = self.set.rings().small();
        // The seed is sent. It is drawn apart, so that it says nothing of the stream that errors are drawn from.
        let seed = fresh_seed(&mut SecretRng::from_os()?);
        let mut rng = SecretRng::from_os()?;
        let body = secret.key().body(ring, &ring.uniform(seed, 0), &ring.zero(), &mut rng);
        let body = Zeroizing::new(ring.inverse(body));
        Ok(Prepared { secret: secret.clone(), seed, body: Zeroizing::new(body.words().to_vec()) })
    }

    pub(super) fn make_query(&self, prepared: Prepared, selection: &Selection) -> (Vec<u8>, Pending) {
        let Prepared { secret, seed, mut body } = prepared;
        let places = &self.places;
        for column in selection.columns() {
            self.ask(&mut body, &self.place(*column, selection.group()));
        }
        self.choose(&mut body, self.place(0, selection.group()).output);
        let mut query = Vec::with_capacity(self.params.query_bytes());
        query.extend(seed.0);
        // Coefficients that lead to no leaf are left out.
        for word in body.chunks_exact(1 << places.height).flat_map(|run| &run[..places.leaves()]) {
            query.extend(&word.to_le_bytes()[..self.set.sizes.residue_bytes()]);
        }
        (query, Pending { secret, selection: selection.clone() })
    }

    pub(super) fn read(&self, pending: &Pending, answer: &[u8]) -> Zeroizing<Vec<u8>> {
        let (places, group, lane_bits) = (&self.places, pending.selection.group(), self.set.sizes.lane_bits);
        let phases = self.phases(&pending.secret, answer);
        let mut slot = Zeroizing::new(Vec::with_capacity(places.parts * places.part_bytes + 8));
        let mut lanes = Zeroizing::new(vec![0u64; places.width]);
        let mut pad = Zeroizing::new(vec![0; DEGREE]);
        for (part, phases) in phases.chunks_exact(places.window()).enumerate() {
            let Place { fine, .. } = self.place(0, group);
            lanes.fill(0);
            for this in 0..places.fine {
                let here = wide(constant_time::equal_mask(this as u32, fine));
                let phases = &phases[places.offset(this)..][..places.width];
                lanes.iter_mut().zip(phases).for_each(|(lane, phase)| *lane |= self.round(*phase) & here);
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
                    let lanes = lanes.iter_mut().zip(pad);
                    lanes.for_each(|(lane, pad)| *lane = lane.wrapping_sub(pad & wide(here)));
                }
            }
            let start = slot.len();
            pack(&lanes, lane_bits, &mut slot);
            slot.truncate(start + places.part_bytes);
        }
        slot.truncate(self.params.geometry.record_bytes);
        slot
    }

    /// The lane that a phase rounds to; bits above a lane's mean nothing.
    fn round(&self, phase: u64) -> u64 {
        let step = self.set.sizes.mask_bits - self.set.sizes.lane_bits;
        phase.wrapping_add(1 << (step - 1)) >> step
    }
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
