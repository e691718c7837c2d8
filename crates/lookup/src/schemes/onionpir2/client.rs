//! The client's half. Constant time: no branch, index or division that a selection, a secret or a message decides.

use zeroize::Zeroizing;

use super::params::{BIT_LEAVES, Gadgets, MASK_BITS, folds, places, sent};
use crate::schemes::rings::queries::Prepared;
use crate::schemes::rings::tree::Tree;
use crate::schemes::rings::{LANE_BITS, Pads, Place, Places, SEED_BYTES, Secret, answers};
use crate::{Decoded, Error, Params, SchemeClient, Selection};

pub(super) struct OnionClient {
    params: Params,
    places: Places,
    pads: Pads,
}

pub(super) struct Pending {
    secret: Secret,
    selection: Selection,
}

impl OnionClient {
    pub(super) fn new(params: &Params, seed: [u8; SEED_BYTES]) -> Self {
        Self { params: *params, places: places(&params.geometry), pads: Pads::new(seed) }
    }

    pub(super) fn make_query(&self, mut prepared: Prepared, selection: &Selection) -> (Vec<u8>, Pending) {
        let (gadgets, places) = (Gadgets::get(), &self.places);
        let delta = Tree::get().delta(LANE_BITS);
        for column in selection.columns() {
            prepared.pick(places, &places.place(*column, selection.group()), delta);
        }
        let Place { output, .. } = places.place(0, selection.group());
        for fold in 0..folds(places) {
            let bit = u64::from(output >> fold & 1).wrapping_neg();
            for digit in 0..BIT_LEAVES {
                let leaf = places.rows + fold as usize * BIT_LEAVES + digit;
                prepared.add_at(places, leaf, gadgets.weight(digit) & bit);
            }
        }
        (prepared.send(places), Pending { secret: prepared.secret, selection: selection.clone() })
    }

    pub(super) fn read(&self, pending: &Pending, answer: &[u8]) -> Zeroizing<Vec<u8>> {
        let (places, sent) = (&self.places, sent(&self.places));
        let part = |i| sent.phases(&pending.secret, &answer[i * sent.bytes()..][..sent.bytes()]);
        let record_bytes = self.params.geometry.record_bytes;
        answers::read(places, &self.pads, &pending.selection, record_bytes, MASK_BITS, part)
    }
}

impl SchemeClient for OnionClient {
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
