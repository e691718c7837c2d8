//! A client's keys: what it keeps, and what the server turns slots with.

use blindcore_math::SecretRng;
use blindcore_rlwe::{Ciphertext, GaloisKeys};
use zeroize::Zeroizing;

use super::params::{DEGREE, Rings, exponents};
use crate::Error;
use crate::registration::KeySet;
use crate::schemes::rings::tree::{KEY_HEADER, OTHER_GADGETS, rows_bytes};
use crate::schemes::rings::{SEED_BYTES, Secret};

/// What a client registers: a key for each turn by a power of two, and one for the swap of the rows.
pub(super) struct Registered(GaloisKeys);

/// The secret that a seed stands for.
pub(super) fn secret(seed: &[u8; SEED_BYTES]) -> Secret {
    let rings = Rings::get();
    Secret::new(&rings.parameters, rings.ring(), seed)
}

/// Bytes of the keys: a header and a count, then for each its exponent and its rows.
pub(super) fn public_bytes() -> usize {
    let rings = Rings::get();
    KEY_HEADER + 1 + 2 + exponents().len() * (4 + rows_bytes(rings.ring(), rings.gadget.digits()))
}

/// Bytes of [`Registered`] in memory: each row's mask and body in words, and a place for each value that a turn moves.
pub(super) fn parsed_bytes() -> usize {
    let rings = Rings::get();
    exponents().len() * (rings.gadget.digits() * 2 * 8 * rings.ring().words() + 4 * DEGREE)
}

/// Makes keys: a seed of a secret, and what is registered.
pub(super) fn make() -> Result<KeySet, Error> {
    let mut seed = Zeroizing::new([0; SEED_BYTES]);
    let mut rng = SecretRng::from_os()?;
    rng.fill(&mut *seed);
    let (rings, secret) = (Rings::get(), secret(&seed));
    // Seeds of masks are sent. They come from a stream of their own, which says nothing of the secret's.
    let mut rng = SecretRng::from_os()?;
    let all = exponents().map(|exponent| (exponent, rings.gadget));
    let keys =
        GaloisKeys::new(secret.key(), rings.ring(), all, &mut rng).expect("powers of five and -1 are odd");
    let public = keys.to_bytes(&rings.parameters).expect("keys of these parameters");
    Ok(KeySet { secret: Zeroizing::new(seed.to_vec()), public })
}

impl Registered {
    /// Reads what a stranger registers, of the right length.
    ///
    /// # Errors
    /// Says what is not as such keys are: noise is bounded for this ring, these exponents and their gadget.
    pub(super) fn new(bytes: &[u8]) -> Result<Self, String> {
        let rings = Rings::get();
        let keys = GaloisKeys::from_bytes(&rings.parameters, bytes).map_err(|e| e.to_string())?;
        let fits = |exponent: &usize| keys.get(*exponent).is_ok_and(|key| key.gadget() == rings.gadget);
        if **keys.ring() == **rings.ring() && exponents().iter().all(fits) {
            Ok(Self(keys))
        } else {
            Err(OTHER_GADGETS.into())
        }
    }

    /// What lies in each slot, 2^`level` slots further up; or in the other row.
    pub(super) fn turn(&self, level: u32, ciphertext: &Ciphertext) -> Ciphertext {
        self.0.get(exponents()[level as usize]).expect("they were checked").apply(ciphertext)
    }
}

#[cfg(test)]
mod tests {
    use blindcore_rlwe::Slots;

    use super::*;
    use crate::schemes::fastpir::params::ROW;

    #[test]
    fn keys_have_the_bytes_that_are_said_and_come_back() {
        let keys = make().unwrap();
        assert_eq!(keys.public.len(), public_bytes());
        assert!(keys.public.len() < 300_000, "{}", keys.public.len());
        assert_eq!(keys.secret.len(), SEED_BYTES);
        Registered::new(&keys.public).unwrap();
        // A damaged magic, another ring, count, exponent or gadget. Whatever a byte is, nothing panics.
        for at in [0, 5, 8, 16, 17, 19, 20, 23, 24, 25] {
            let mut bytes = keys.public.clone();
            bytes[at] ^= 0x55;
            assert!(Registered::new(&bytes).is_err(), "byte {at}");
        }
        assert!(Registered::new(&keys.public[..100]).is_err() && Registered::new(&[]).is_err());
        let mut high = keys.public.clone();
        high[200..300].fill(0xff);
        assert!(Registered::new(&high).err().unwrap().contains("residue"));
    }

    #[test]
    fn keys_turn_slots_up_and_swap_rows() {
        let (made, rings) = (make().unwrap(), Rings::get());
        let secret = secret(made.secret[..].try_into().unwrap());
        let (keys, slots) = (Registered::new(&made.public).unwrap(), Slots::new(&rings.parameters).unwrap());
        let numbers: Vec<u64> = (0..DEGREE as u64).collect();
        let mut rng = SecretRng::from_os().unwrap();
        let x = secret.key().encrypt(&slots.encode(&numbers).unwrap(), &mut rng);
        for level in 0..=ROW.ilog2() {
            let turned = slots.decode(&secret.key().decrypt(&keys.turn(level, &x)));
            let mut want = numbers.clone();
            if level == ROW.ilog2() {
                want.rotate_left(ROW);
            } else {
                want.chunks_exact_mut(ROW).for_each(|row| row.rotate_right(1 << level));
            }
            assert!(*turned == want, "level {level}");
        }
    }
}
