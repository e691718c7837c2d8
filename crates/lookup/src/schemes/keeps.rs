//! What a client keeps.

/// A hint of no more bytes is a seed, and comes with a table's description: there is nothing to fetch.
pub const SHORT_HINT_BYTES: usize = 256;

/// What a client keeps between lookups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keeps {
    /// Nothing.
    Nothing,
    /// A hint that it fetches once an epoch.
    Hint {
        /// Its bytes.
        bytes: u64,
    },
    /// Keys that it makes and registers with the server once: see [`crate::Registration`].
    RegisteredKeys {
        /// Their bytes.
        bytes: u64,
        /// Bytes of a hint that it fetches beside them once an epoch, such as a seed; 0 for none.
        hint: u64,
    },
    /// Keys that it sends with each query.
    QueryKeys {
        /// Their bytes, which are among those of a query.
        bytes: u64,
    },
}

impl Keeps {
    /// Bytes that a client fetches once an epoch.
    #[must_use]
    pub fn hint_bytes(self) -> u64 {
        match self {
            Self::Hint { bytes } | Self::RegisteredKeys { hint: bytes, .. } => bytes,
            Self::Nothing | Self::QueryKeys { .. } => 0,
        }
    }
}
