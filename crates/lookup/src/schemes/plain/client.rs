//! The client that hides nothing.

use super::{NONE, PICKED, whole};
use crate::{Decoded, Error, SchemeClient, Selection};

pub(super) struct PlainClient;

impl SchemeClient for PlainClient {
    type Prepared = ();
    type Pending = ();

    fn prepare(&self) -> Result<(), Error> {
        Ok(())
    }

    fn query(&self, (): (), selection: &Selection) -> (Vec<u8>, ()) {
        let columns = selection.columns().iter().copied().chain(std::iter::repeat(NONE)).take(PICKED);
        let words = columns.chain([selection.group()]);
        (words.flat_map(u32::to_le_bytes).collect(), ())
    }

    fn decode(&self, (): (), answer: &[u8]) -> Decoded {
        Decoded { slot: whole(answer), damaged: false }
    }
}
