//! Registered keys that hide nothing: queries and answers are exclusive-ored with bytes that follow from them, so that a query
//! under other keys than its own comes to nothing.

use blindcore_math::SecretRng;
use zeroize::Zeroizing;

use crate::{Error, Geometry, KeySet, RegisteredKeys, Registration, SecretKeys};

/// Bytes of a secret.
const SECRET: usize = 32;
/// Bytes of registered keys: 32 that follow from the secret, and 32 that follow from these.
pub(super) const PUBLIC: usize = 64;

/// Keys of a client, on either side.
#[derive(Clone)]
pub(super) struct PlainKeys([u8; 32]);

impl PlainKeys {
    fn of(secret: &[u8]) -> Self {
        Self(blake3::derive_key("blindcore plain keys v1", secret))
    }

    /// Exclusive-ors bytes with those that follow from the keys for `what`.
    pub(super) fn mix(&self, what: &[u8], bytes: &mut [u8]) {
        let mut stream = blake3::Hasher::new_keyed(&self.0).update(what).finalize_xof();
        let mut mask = vec![0; bytes.len()];
        stream.fill(&mut mask);
        bytes.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
    }
}

pub(super) struct PlainRegistration;

impl Registration for PlainRegistration {
    /// One set of keys for all tables.
    fn shape(&self, _: &Geometry) -> Vec<u64> {
        Vec::new()
    }

    fn secret_bytes(&self, _: &Geometry) -> usize {
        SECRET
    }

    fn parsed_bytes(&self, _: &Geometry) -> usize {
        PUBLIC
    }

    fn make(&self, _: &Geometry) -> Result<KeySet, Error> {
        let mut secret = Zeroizing::new(vec![0; SECRET]);
        SecretRng::from_os()?.fill(&mut secret);
        let keys = PlainKeys::of(&secret).0;
        let public = [keys, *blake3::hash(&keys).as_bytes()].concat();
        Ok(KeySet { secret, public })
    }

    fn secret(&self, _: &Geometry, secret: &[u8]) -> Result<SecretKeys, Error> {
        Ok(SecretKeys::new(PlainKeys::of(secret)))
    }

    fn registered(&self, _: &Geometry, public: &[u8]) -> Result<RegisteredKeys, Error> {
        let (keys, check) = public.split_first_chunk::<32>().expect("the length was checked");
        if blake3::hash(keys) != *check {
            let why = "their second half does not follow from their first".into();
            return Err(Error::KeyBytes { what: "registered keys", why });
        }
        Ok(RegisteredKeys::new(PlainKeys(*keys)))
    }
}
