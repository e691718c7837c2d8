//! A client's keys: what it keeps, and what the server expands its queries with.

use blindcore_math::SecretRng;
use blindcore_rlwe::rounding::packed_bytes;
use blindcore_rlwe::{GaloisKeys, RelinearisationKey, Ring, WireError};
use zeroize::Zeroizing;

use super::params::{DEGREE, Rings, Set};
use crate::Error;
use crate::registration::KeySet;
use crate::schemes::rings::{SEED_BYTES, Secret};

/// What a client registers: a key for each level of the tree, whichever tables it looks into, and one for s^2.
pub(super) struct Registered {
    pub(super) tree: GaloisKeys,
    pub(super) square: RelinearisationKey,
}

/// The secret that a seed stands for.
pub(super) fn secret(set: &Set, seed: &[u8; SEED_BYTES]) -> Secret {
    let rings = set.rings();
    Secret::new(&rings.parameters, rings.small(), seed)
}

/// Bytes of the keys of the tree, and of both.
pub(super) fn public_bytes(set: &Set) -> [usize; 2] {
    let rings = set.rings();
    let bits = rings.large().primes().iter().map(|q| q.value().ilog2() + 1);
    let row: usize = bits.map(|bits| packed_bytes(DEGREE, bits)).sum();
    // As `blindcore_rlwe::wire` has it: a header, then for each key its gadget, its seed and its bodies.
    let rows = |digits: usize| 3 + SEED_BYTES + digits * row;
    let tree: usize = rings.tree.iter().map(|(_, gadget)| 4 + rows(gadget.digits())).sum();
    let tree = HEADER + 1 + 2 + tree;
    [tree, tree + HEADER + 1 + rows(rings.square.digits())]
}

/// Bytes before a key: magic, version, kind and the parameters' digest.
const HEADER: usize = 16;

/// Bytes of [`Registered`] in memory: each row's mask and body in words.
pub(super) fn parsed_bytes(set: &Set) -> usize {
    let rings = set.rings();
    let rows: usize = rings.tree.iter().map(|(_, gadget)| gadget.digits()).sum();
    (rows + rings.square.digits()) * 2 * 8 * rings.large().words()
}

/// Makes keys: a seed of a secret, and what is registered.
pub(super) fn make(set: &Set) -> Result<KeySet, Error> {
    let mut seed = Zeroizing::new([0; SEED_BYTES]);
    let mut rng = SecretRng::from_os()?;
    rng.fill(&mut *seed);
    let (rings, secret) = (set.rings(), secret(set, &seed));
    // Seeds of masks are sent. They come from a stream of their own, which says nothing of the secret's.
    let mut rng = SecretRng::from_os()?;
    let tree = GaloisKeys::new(secret.key(), rings.large(), rings.tree.iter().copied(), &mut rng)
        .expect("exponents of a tree are odd");
    let square = RelinearisationKey::new(secret.key(), rings.large(), rings.square, &mut rng);
    let of = |bytes: Result<Vec<u8>, WireError>| bytes.expect("keys of these parameters");
    let public = [of(tree.to_bytes(&rings.parameters)), of(square.to_bytes(&rings.parameters))].concat();
    Ok(KeySet { secret: Zeroizing::new(seed.to_vec()), public })
}

impl Registered {
    /// Reads what a stranger registers, of the right length.
    ///
    /// # Errors
    /// Says what is not as such keys are.
    pub(super) fn new(set: &Set, bytes: &[u8]) -> Result<Self, String> {
        let (rings, [tree, _]) = (set.rings(), public_bytes(set));
        let (tree, square) = bytes.split_at(tree.min(bytes.len()));
        let tree = GaloisKeys::from_bytes(&rings.parameters, tree).map_err(|e| e.to_string())?;
        let square = RelinearisationKey::from_bytes(&rings.parameters, square).map_err(|e| e.to_string())?;
        let keys = Self { tree, square };
        keys.check(rings)?;
        Ok(keys)
    }

    /// Refuses keys of other gadgets, exponents or rings: noise is bounded for these.
    fn check(&self, rings: &Rings) -> Result<(), String> {
        let large: &Ring = rings.large();
        let of_tree = rings
            .tree
            .iter()
            .all(|(exponent, gadget)| self.tree.get(*exponent).is_ok_and(|key| key.gadget() == *gadget));
        let of_rings = **self.tree.ring() == *large && **self.square.ring() == *large;
        if of_tree && of_rings && self.square.gadget() == rings.square {
            Ok(())
        } else {
            Err("they are not of this scheme's gadgets".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::params::CLASSICAL;
    use super::*;

    #[test]
    fn keys_have_the_bytes_that_are_said_and_come_back() {
        let set = &CLASSICAL;
        let keys = make(set).unwrap();
        assert_eq!(keys.public.len(), public_bytes(set)[1]);
        assert!(keys.public.len() < 3_000_000, "{}", keys.public.len());
        assert_eq!(keys.secret.len(), SEED_BYTES);
        Registered::new(set, &keys.public).unwrap();
        // Another gadget, a damaged magic, an exponent of no tree. Whatever a byte is, nothing panics.
        for at in [0, 5, 8, 16, 19, 23, 24, 25, public_bytes(set)[0], public_bytes(set)[0] + 17] {
            let mut bytes = keys.public.clone();
            bytes[at] ^= 0x55;
            assert!(Registered::new(set, &bytes).is_err(), "byte {at}");
        }
        assert!(Registered::new(set, &keys.public[..100]).is_err() && Registered::new(set, &[]).is_err());
        let mut high = keys.public.clone();
        high[200..300].fill(0xff);
        assert!(Registered::new(set, &high).err().unwrap().contains("residue"));
    }
}
