//! The client's half. Constant time: no branch, index or division that a selection, a secret or a message decides.

use blindcore_math::{MaskSeed, SecretRng};
use blindcore_rlwe::fresh_seed;
use zeroize::Zeroizing;

use super::params::{self, DEGREE, MASK_BITS, QUERY_BYTES, QUERY_CUT, Rings};
use crate::schemes::rings::{Pads, Places, SEED_BYTES, Secret, answers};
use crate::{Decoded, Error, Params, SchemeClient, Selection, constant_time};

pub(super) struct MulClient {
    params: Params,
    places: Places,
    pads: Pads,
}

/// Encryptions of nothing: the masks' seed, and the bodies by coefficients, prime after prime.
pub(super) struct Prepared {
    secret: Secret,
    seed: MaskSeed,
    bodies: Zeroizing<Vec<u64>>,
}

pub(super) struct Pending {
    secret: Secret,
    selection: Selection,
}

impl MulClient {
    pub(super) fn new(params: &Params, seed: [u8; SEED_BYTES]) -> Self {
        Self { params: *params, places: params::places(&params.geometry), pads: Pads::new(seed) }
    }

    /// Adds Q / p, with a minus where `minus` is all ones, to encryptions of nothing: X^(`turn` 2^h) for a leaf.
    fn ask(&self, bodies: &mut [u64], leaf: u32, turn: u32, minus: u64) {
        let (rings, height) = (Rings::get(), self.places.height);
        let ciphertext = leaf >> height;
        let at = (leaf & ((1 << height) - 1)) + (turn << height);
        let whole = bodies.chunks_exact_mut(rings.large().words());
        for (this, body) in (0u32..).zip(whole) {
            let here = constant_time::equal_mask(this, ciphertext);
            let channels = body.chunks_exact_mut(DEGREE).zip(rings.large().primes()).zip(rings.delta());
            for ((body, prime), delta) in channels {
                let q = prime.value();
                let message = (delta & !minus) | ((q - delta) & minus);
                for (i, word) in (0u32..).zip(body) {
                    let mask = here & constant_time::equal_mask(i, at);
                    *word = plus(q, *word, message & mask as i32 as u64);
                }
            }
        }
    }

    pub(super) fn prepare_under(&self, secret: &Secret) -> Result<Prepared, Error> {
        let ring = Rings::get().large();
        // The seed is sent. It is drawn apart, so that it says nothing of the stream that errors are drawn from.
        let seed = fresh_seed(&mut SecretRng::from_os()?);
        let mut rng = SecretRng::from_os()?;
        let mut bodies = Zeroizing::new(Vec::with_capacity(self.places.ciphertexts() * ring.words()));
        for number in 0..self.places.ciphertexts() as u64 {
            let body = secret.key().body(ring, &ring.uniform(seed, number), &ring.zero(), &mut rng);
            let body = Zeroizing::new(ring.inverse(body));
            bodies.extend(body.words());
        }
        Ok(Prepared { secret: secret.clone(), seed, bodies })
    }

    pub(super) fn make_query(&self, prepared: Prepared, selection: &Selection) -> (Vec<u8>, Pending) {
        let Prepared { secret, seed, mut bodies } = prepared;
        let (rings, places) = (Rings::get(), &self.places);
        for column in selection.columns() {
            let place = places.place(*column, selection.group());
            let (turn, minus) = places.turn(&place);
            self.ask(&mut bodies, place.row, turn, minus);
        }
        let output = places.place(0, selection.group()).output;
        self.ask(&mut bodies, places.rows as u32 + output, 0, 0);
        let mut query = Vec::with_capacity(self.params.query_bytes());
        query.extend(seed.0);
        let ring = rings.large();
        for (i, body) in bodies.chunks_exact(ring.words()).enumerate() {
            let body = Zeroizing::new(ring.polynomial(body.to_vec()).expect("residues"));
            // Coefficients that lead to no leaf are left out.
            let integers = ring.centred(&body);
            let runs = integers.chunks_exact(1 << places.height);
            for integer in runs.flat_map(|run| &run[..places.leaves_of(i)]) {
                let rounded = (integer + (1 << (QUERY_CUT - 1))) >> QUERY_CUT;
                query.extend(&rounded.to_le_bytes()[..QUERY_BYTES]);
            }
        }
        (query, Pending { secret, selection: selection.clone() })
    }

    pub(super) fn read(&self, pending: &Pending, answer: &[u8]) -> Zeroizing<Vec<u8>> {
        let (ring, places) = (Rings::get().small(), &self.places);
        let sent = params::sent(places);
        let part = |part: usize| {
            let bytes = sent.bytes_of(DEGREE);
            sent.phases_in(ring, &pending.secret, &answer[part * bytes..][..bytes])
        };
        let record_bytes = self.params.geometry.record_bytes;
        answers::read(places, &self.pads, &pending.selection, record_bytes, MASK_BITS, part)
    }
}

/// a + b modulo q, for residues.
fn plus(q: u64, a: u64, b: u64) -> u64 {
    let sum = a + b;
    sum.min(sum.wrapping_sub(q))
}

impl SchemeClient for MulClient {
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
