//! The client's half. Constant time: no branch, index or division that a selection, a secret or a message decides.

use zeroize::Zeroizing;

use super::params::{DIGIT_BITS, DIGITS, MASK_BITS, ROUNDED_BITS, digits, part_bytes, places, sent};
use crate::schemes::rings::queries::Prepared;
use crate::schemes::rings::tree::{DEGREE, Tree};
use crate::schemes::rings::{LANE_BITS, Pads, Place, Places, SEED_BYTES, Secret, answers};
use crate::{Decoded, Error, Params, SchemeClient, Selection};

pub(super) struct SealClient {
    params: Params,
    places: Places,
    pads: Pads,
}

pub(super) struct Pending {
    secret: Secret,
    selection: Selection,
}

impl SealClient {
    pub(super) fn new(params: &Params, seed: [u8; SEED_BYTES]) -> Self {
        Self { params: *params, places: places(&params.geometry), pads: Pads::new(seed) }
    }

    pub(super) fn make_query(&self, mut prepared: Prepared, selection: &Selection) -> (Vec<u8>, Pending) {
        let (tree, places) = (Tree::get(), &self.places);
        for column in selection.columns() {
            prepared.pick(places, &places.place(*column, selection.group()), tree.delta(LANE_BITS));
        }
        let Place { output, .. } = places.place(0, selection.group());
        prepared.add(places, places.rows as u32 + output, 0, tree.delta(DIGIT_BITS));
        (prepared.send(places), Pending { secret: prepared.secret, selection: selection.clone() })
    }

    pub(super) fn read(&self, pending: &Pending, answer: &[u8]) -> Zeroizing<Vec<u8>> {
        let (places, bytes) = (&self.places, part_bytes(&self.places));
        let part = |i| self.result(&pending.secret, &answer[i * bytes..][..bytes]);
        let record_bytes = self.params.geometry.record_bytes;
        answers::read(places, &self.pads, &pending.selection, record_bytes, ROUNDED_BITS, part)
    }

    /// The phases of the result that was picked: its digits, put together, and decrypted in their turn.
    pub(super) fn result(&self, secret: &Secret, mut part: &[u8]) -> Zeroizing<Vec<u64>> {
        let window = self.places.window();
        let mut all = Zeroizing::new(Vec::with_capacity(digits(&self.places)));
        for sent in sent(&self.places) {
            let (this, rest) = part.split_at(sent.bytes());
            let phases = sent.phases(secret, this);
            all.extend(phases.iter().map(|phase| answers::nearest(*phase, MASK_BITS, DIGIT_BITS)));
            part = rest;
        }
        let (masks, bodies) = all.split_at(DIGITS * DEGREE);
        let word = |digits: &[u64], length: usize, at: usize| {
            let digits = digits[at..].iter().step_by(length);
            digits.rev().fold(0, |word, digit| word << DIGIT_BITS | digit)
        };
        let mask = (0..DEGREE).map(|at| word(masks, DEGREE, at)).collect();
        answers::phases(secret, mask, window, (0..window).map(|at| word(bodies, window, at)))
    }
}

impl SchemeClient for SealClient {
    type Keys = Secret;
    type Prepared = Prepared;
    type Pending = Pending;

    fn prepare(&self, keys: &Secret) -> Result<Prepared, Error> {
        Prepared::new(&self.places, keys)
    }

    fn query(&self, prepared: Prepared, selection: &Selection) -> (Vec<u8>, Pending) {
        self.make_query(prepared, selection)
    }

    /// Nothing is ever said to be damaged: the secret stays, and each answer that failed visibly would show a bit of it.
    fn decode(&self, pending: Pending, answer: &[u8]) -> Decoded {
        Decoded { slot: self.read(&pending, answer), damaged: false }
    }
}
