//! The client that hides nothing.

use super::keys::PlainKeys;
use super::{NONE, PICKED};
use crate::{Decoded, Error, SchemeClient, Selection};
use zeroize::Zeroizing;

pub(super) struct PlainClient;

impl SchemeClient for PlainClient {
    type Keys = ();
    type Prepared = ();
    type Pending = ();

    fn prepare(&self, (): &()) -> Result<(), Error> {
        Ok(())
    }

    fn query(&self, (): (), selection: &Selection) -> (Vec<u8>, ()) {
        (query(selection), ())
    }

    fn decode(&self, (): (), answer: &[u8]) -> Decoded {
        Decoded { slot: Zeroizing::new(answer.to_vec()), damaged: false }
    }
}

/// The same under registered keys.
pub(super) struct RegisteredClient;

impl SchemeClient for RegisteredClient {
    type Keys = PlainKeys;
    type Prepared = PlainKeys;
    type Pending = PlainKeys;

    fn prepare(&self, keys: &PlainKeys) -> Result<PlainKeys, Error> {
        Ok(keys.clone())
    }

    fn query(&self, keys: PlainKeys, selection: &Selection) -> (Vec<u8>, PlainKeys) {
        let mut query = query(selection);
        keys.mix(b"query", &mut query);
        (query, keys)
    }

    fn decode(&self, keys: PlainKeys, answer: &[u8]) -> Decoded {
        let mut slot = Zeroizing::new(answer.to_vec());
        keys.mix(b"answer", &mut slot);
        Decoded { slot, damaged: false }
    }
}

fn query(selection: &Selection) -> Vec<u8> {
    let columns = selection.columns().iter().copied().chain(std::iter::repeat(NONE)).take(PICKED);
    columns.chain([selection.group()]).flat_map(u32::to_le_bytes).collect()
}
