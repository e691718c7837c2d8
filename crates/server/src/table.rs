//! Tables to serve.

use blindcore_accel::SharedBytes;
use blindcore_wire::{PartDescription, PartKind, TableDescription};
use bytes::Bytes;

use crate::Error;

/// A part of a table, in place and ready to answer.
pub struct Part {
    pub(crate) server: blindcore_lookup::Server,
    pub(crate) hint: SharedBytes,
}

impl Part {
    /// A matrix on its device, and the hint that clients fetch: little-endian words, perhaps mapped from a
    /// file.
    #[must_use]
    pub fn new(server: blindcore_lookup::Server, hint: SharedBytes) -> Self {
        Self { server, hint }
    }

    fn check(&self, table: &TableDescription, part: PartKind, says: &PartDescription) -> Result<(), Error> {
        let mismatch = |what| Err(Error::Mismatch { table: table.name().to_owned(), part, what });
        if *self.server.params() != says.params {
            return mismatch("the matrix");
        }
        if (*self.hint).as_ref().len() as u64 != says.hint_bytes() {
            return mismatch("the hint's length");
        }
        Ok(())
    }

    pub(crate) fn hint_bytes(&self) -> Bytes {
        struct Shared(SharedBytes);
        impl AsRef<[u8]> for Shared {
            fn as_ref(&self) -> &[u8] {
                (*self.0).as_ref()
            }
        }
        Bytes::from_owner(Shared(self.hint.clone()))
    }
}

/// A table to serve.
pub struct Table {
    pub(crate) description: TableDescription,
    pub(crate) records: Part,
    pub(crate) keys: Option<Part>,
}

impl Table {
    /// A table from its parts. That hints have their digests is the caller's to know.
    ///
    /// # Errors
    /// A part is missing, or is not what the description says.
    pub fn new(description: TableDescription, records: Part, keys: Option<Part>) -> Result<Self, Error> {
        records.check(&description, PartKind::Records, description.records())?;
        match (&keys, description.keys()) {
            (None, None) => {}
            (Some(keys), Some(says)) => keys.check(&description, PartKind::Keys, says)?,
            (_, says) => {
                let what = if says.is_some() { "that it is absent" } else { "that it is there" };
                let table = description.name().to_owned();
                return Err(Error::Mismatch { table, part: PartKind::Keys, what });
            }
        }
        Ok(Self { description, records, keys })
    }

    /// What the table says of itself.
    #[must_use]
    pub fn description(&self) -> &TableDescription {
        &self.description
    }
}
