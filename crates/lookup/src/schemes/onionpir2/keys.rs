//! A client's keys: what it keeps, and what the server expands its queries with.

use blindcore_rlwe::{GaloisKeys, RelinearisationKey};

use super::params::Gadgets;
use crate::Error;
use crate::registration::KeySet;
use crate::schemes::rings::tree::{KEY_HEADER, OTHER_GADGETS, Tree};

/// What a client registers: a key for each level of the tree, whichever tables it looks into, and one for s^2.
pub(super) struct Registered {
    pub(super) tree: GaloisKeys,
    pub(super) square: RelinearisationKey,
}

/// Bytes of the keys of the tree, and of both.
pub(super) fn public_bytes() -> [usize; 2] {
    static BYTES: std::sync::OnceLock<[usize; 2]> = std::sync::OnceLock::new();
    *BYTES.get_or_init(|| {
        let tree = Tree::get();
        let square = KEY_HEADER + 1 + tree.rows_bytes(Gadgets::get().square.digits());
        [tree.key_bytes(), tree.key_bytes() + square]
    })
}

/// Bytes of [`Registered`] in memory.
pub(super) fn parsed_bytes() -> usize {
    Tree::get().parsed_bytes(Gadgets::get().square.digits())
}

/// Makes keys: a seed of a secret, and what is registered.
pub(super) fn make() -> Result<KeySet, Error> {
    let tree = Tree::get();
    tree.make(|secret, rng| {
        let square = RelinearisationKey::new(secret.key(), tree.large(), Gadgets::get().square, rng);
        square.to_bytes(&tree.parameters).expect("a key of these parameters")
    })
}

impl Registered {
    /// Reads what a stranger registers, of the right length.
    ///
    /// # Errors
    /// Says what is not as such keys are. Those of other gadgets, exponents or rings are refused: noise is bounded for these.
    pub(super) fn new(bytes: &[u8]) -> Result<Self, String> {
        let (rings, [tree, _]) = (Tree::get(), public_bytes());
        let (tree, square) = bytes.split_at(tree.min(bytes.len()));
        let tree = rings.read_keys(tree)?;
        let square = RelinearisationKey::from_bytes(&rings.parameters, square).map_err(|e| e.to_string())?;
        let of_ring = **square.ring() == **rings.large();
        if of_ring && square.gadget() == Gadgets::get().square {
            Ok(Self { tree, square })
        } else {
            Err(OTHER_GADGETS.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemes::rings::SEED_BYTES;

    #[test]
    fn keys_have_the_bytes_that_are_said_and_come_back() {
        let keys = make().unwrap();
        assert_eq!(keys.public.len(), public_bytes()[1]);
        assert!(keys.public.len() < 2_000_000, "{}", keys.public.len());
        assert_eq!(keys.secret.len(), SEED_BYTES);
        Registered::new(&keys.public).unwrap();
        // Another gadget, a damaged magic, an exponent of no tree. Whatever a byte is, nothing panics.
        for at in [0, 5, 8, 16, 19, 23, 24, 25, public_bytes()[0], public_bytes()[0] + 17] {
            let mut bytes = keys.public.clone();
            bytes[at] ^= 0x55;
            assert!(Registered::new(&bytes).is_err(), "byte {at}");
        }
        assert!(Registered::new(&keys.public[..100]).is_err() && Registered::new(&[]).is_err());
        let mut high = keys.public.clone();
        high[200..300].fill(0xff);
        assert!(Registered::new(&high).err().unwrap().contains("residue"));
    }
}
