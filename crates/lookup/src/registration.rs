//! Registered keys: a client makes them once, a server keeps them, and every query is under them.
//!
//! ```text
//!   client                                                        server
//!   Params::make_keys ─▶ KeySet ── public ── registered once ──▶ Params::open_registered ─▶ RegisteredKeys ─┐
//!                          │ secret: kept, never sent                                     (parsed, shared)  │
//!                          ▼                                                                                ▼
//!   Params::open_secret ─▶ SecretKeys ─▶ Client::prepare_under ─▶ query ──────────────────▶ Server::answer_under
//!                                        Client::decode ◀──────── answer ◀─────────────────────────────────┘
//! ```
//!
//! A secret is used for many queries, so what an answer decodes to must stay invisible even more than elsewhere: each
//! failure that a server sees is a bit of the same secret. Schemes with registered keys never say [`crate::Decoded::damaged`],
//! and whoever drives them makes other keys after so many lookups, whatever came of these.

use std::any::Any;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::schemes::keeps::Keeps;
use crate::{Error, Geometry, Params};

/// What a scheme answers whose clients register keys ([`Keeps::RegisteredKeys`]), beside [`crate::Scheme`].
///
/// Every question is about a geometry that the scheme has checked.
pub trait Registration: Send + Sync {
    /// What keys depend on beside the scheme's constants. Geometries that give the same share a client's keys: records and
    /// their changes, and the same table at its next epoch. By default each geometry has keys of its own.
    fn shape(&self, geometry: &Geometry) -> Vec<u64> {
        let Geometry { record_bytes, groups, columns } = *geometry;
        [record_bytes, groups, columns].map(|number| number as u64).to_vec()
    }

    /// Bytes of [`KeySet::secret`], 1 to 64 MiB, as registered keys have.
    fn secret_bytes(&self, geometry: &Geometry) -> usize;

    /// Bytes of memory that [`RegisteredKeys`] take once they are parsed, at most: 1 to 256 MiB.
    fn parsed_bytes(&self, geometry: &Geometry) -> usize;

    /// Makes a secret from the operating system's randomness, and the keys of it that a server needs.
    ///
    /// # Errors
    /// The operating system gives no randomness.
    fn make(&self, geometry: &Geometry) -> Result<KeySet, Error>;

    /// Reads [`KeySet::secret`], of [`Registration::secret_bytes`]. The value is [`crate::SchemeClient::Keys`], for
    /// [`SecretKeys::new`]; it wipes itself on drop.
    ///
    /// # Errors
    /// [`Error::KeyBytes`]: it is none that this scheme makes.
    fn secret(&self, geometry: &Geometry, secret: &[u8]) -> Result<SecretKeys, Error>;

    /// Reads [`KeySet::public`], of as many bytes as [`Keeps::RegisteredKeys`] says. They are a stranger's: whatever passes
    /// here is safe to compute with, and costs no more than honest keys.
    ///
    /// # Errors
    /// [`Error::KeyBytes`]: they are none that this scheme makes.
    fn registered(&self, geometry: &Geometry, public: &[u8]) -> Result<RegisteredKeys, Error>;
}

/// A client's keys as they were made, in bytes.
pub struct KeySet {
    /// What the client keeps and never sends: [`Params::secret_bytes`].
    pub secret: Zeroizing<Vec<u8>>,
    /// What it registers: [`Params::registered_bytes`]. A server finds them by their BLAKE3.
    pub public: Vec<u8>,
}

/// A client's secret, ready for queries. Clones share it; the last one wipes it.
#[derive(Clone)]
pub struct SecretKeys {
    keys: Arc<dyn Any + Send + Sync>,
    of: [u8; 32],
}

impl SecretKeys {
    /// What a scheme made of a secret: its [`crate::SchemeClient::Keys`].
    #[must_use]
    pub fn new(keys: impl Any + Send + Sync) -> Self {
        Self { keys: Arc::new(keys), of: [0; 32] }
    }

    /// Those of a scheme that has none.
    pub(crate) fn none() -> Self {
        Self::new(())
    }

    /// The value, if it is of this type.
    pub(crate) fn get<T: 'static>(&self) -> Option<&T> {
        self.keys.downcast_ref()
    }

    /// What [`Params::keys_digest`] said where they were opened.
    #[must_use]
    pub fn params_digest(&self) -> &[u8; 32] {
        &self.of
    }
}

/// A client's keys on the server: checked, parsed and ready. Clones share them.
#[derive(Clone)]
pub struct RegisteredKeys {
    keys: Arc<dyn Any + Send + Sync>,
    of: [u8; 32],
}

impl RegisteredKeys {
    /// What a scheme made of a client's bytes.
    #[must_use]
    pub fn new(keys: impl Any + Send + Sync) -> Self {
        Self { keys: Arc::new(keys), of: [0; 32] }
    }

    /// The value, if it is of this type. In [`crate::SchemeServer::answer`] it is what the scheme's own
    /// [`Registration::registered`] made for the same [`Registration::shape`].
    #[must_use]
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.keys.downcast_ref()
    }

    /// What [`Params::keys_digest`] said where they were opened.
    #[must_use]
    pub fn params_digest(&self) -> &[u8; 32] {
        &self.of
    }
}

impl Params {
    /// Bytes of the keys that a client registers; 0 where the scheme has none.
    #[must_use]
    pub fn registered_bytes(&self) -> usize {
        if let Keeps::RegisteredKeys { bytes, .. } = self.keeps() { bytes as usize } else { 0 }
    }

    /// Whether every query is under registered keys.
    #[must_use]
    pub fn registers_keys(&self) -> bool {
        matches!(self.keeps(), Keeps::RegisteredKeys { .. })
    }

    /// Bytes of a secret that a client keeps; 0 where the scheme has none.
    #[must_use]
    pub fn secret_bytes(&self) -> usize {
        self.registration().map_or(0, |r| r.secret_bytes(&self.geometry))
    }

    /// Bytes of memory that registered keys take on a server once they are parsed, at most; 0 where the scheme has none.
    #[must_use]
    pub fn parsed_key_bytes(&self) -> usize {
        self.registration().map_or(0, |r| r.parsed_bytes(&self.geometry))
    }

    /// What stands for the parameters of registered keys: a client's keys serve all parameters with the same one. Nothing where
    /// the scheme has no registered keys.
    #[must_use]
    pub fn keys_digest(&self) -> Option<[u8; 32]> {
        let registration = self.registration().ok()?;
        let mut hasher = blake3::Hasher::new_derive_key("blindcore lookup registered keys v1");
        hasher.update(self.scheme.name().as_bytes());
        let (constants, shape) = (self.scheme.about().constants, registration.shape(&self.geometry));
        let sizes = [self.registered_bytes() as u64, constants.len() as u64, shape.len() as u64];
        for number in sizes.iter().chain(constants).chain(&shape) {
            hasher.update(&number.to_le_bytes());
        }
        Some(*hasher.finalize().as_bytes())
    }

    /// Makes keys for a client to register, under a secret of their own.
    ///
    /// # Errors
    /// The scheme has none, or the operating system gives no randomness.
    pub fn make_keys(&self) -> Result<KeySet, Error> {
        let made = self.registration()?.make(&self.geometry)?;
        check_length("registered keys", made.public.len(), self.registered_bytes())?;
        check_length("secret of registered keys", made.secret.len(), self.secret_bytes())?;
        Ok(made)
    }

    /// Reads the secret of a client's keys.
    ///
    /// # Errors
    /// The scheme has none, or the bytes are none that it makes.
    pub fn open_secret(&self, secret: &[u8]) -> Result<SecretKeys, Error> {
        let registration = self.registration()?;
        check_length("secret of registered keys", secret.len(), self.secret_bytes())?;
        let opened = registration.secret(&self.geometry, secret)?;
        Ok(SecretKeys { of: self.keys_digest().unwrap_or_default(), ..opened })
    }

    /// Reads keys that a client registers. Nothing is taken for them before their length is checked.
    ///
    /// # Errors
    /// The scheme has none, or the bytes are none that it makes.
    pub fn open_registered(&self, public: &[u8]) -> Result<RegisteredKeys, Error> {
        let registration = self.registration()?;
        check_length("registered keys", public.len(), self.registered_bytes())?;
        let opened = registration.registered(&self.geometry, public)?;
        Ok(RegisteredKeys { of: self.keys_digest().unwrap_or_default(), ..opened })
    }

    fn registration(&self) -> Result<&'static dyn Registration, Error> {
        let none = Error::NoRegisteredKeys { scheme: self.scheme.name() };
        self.scheme.get().registration().ok_or(none)
    }
}

fn check_length(what: &'static str, got: usize, want: usize) -> Result<(), Error> {
    let remedy = "make keys with this table's parameters";
    if got == want { Ok(()) } else { Err(Error::Length { what, got, want, remedy }) }
}
