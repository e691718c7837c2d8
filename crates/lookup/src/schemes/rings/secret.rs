//! The secret of registered keys.

use std::sync::Arc;

use blindcore_math::SecretRng;
use blindcore_rlwe::{Parameters, Poly, Ring, SecretKey, Values};
use zeroize::Zeroizing;

/// Bytes of a seed.
pub(in crate::schemes) const SEED_BYTES: usize = 32;

/// What a client keeps: the secret that all of its queries are under.
#[derive(Clone)]
pub(in crate::schemes) struct Secret(Arc<Inner>);

struct Inner {
    key: SecretKey,
    values: Zeroizing<Poly<Values>>,
}

impl Secret {
    /// The secret that a seed stands for, in a ring of the parameters.
    pub(in crate::schemes) fn new(
        parameters: &Arc<Parameters>,
        ring: &Ring,
        seed: &[u8; SEED_BYTES],
    ) -> Self {
        let key = SecretKey::generate(parameters, &mut SecretRng::from_key(seed));
        let values = key.values(ring);
        Self(Arc::new(Inner { key, values }))
    }

    pub(in crate::schemes) fn key(&self) -> &SecretKey {
        &self.0.key
    }

    /// s by values.
    pub(in crate::schemes) fn values(&self) -> &Poly<Values> {
        &self.0.values
    }
}
