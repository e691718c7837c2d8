//! Tables to serve.

use std::collections::BTreeMap;

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

/// A table at one epoch, to serve.
pub struct Table {
    pub(crate) description: TableDescription,
    pub(crate) parts: BTreeMap<PartKind, Part>,
}

impl Table {
    /// A table from its parts. That hints have their digests is the caller's to know. Parts of the base may be left
    /// out where the table is [published](crate::Handle::publish) over an epoch with the same base.
    ///
    /// # Errors
    /// A part is not what the description says, or is there twice.
    pub fn new(
        description: TableDescription,
        parts: impl IntoIterator<Item = (PartKind, Part)>,
    ) -> Result<Self, Error> {
        let mut table = Self { description, parts: BTreeMap::new() };
        for (kind, part) in parts {
            let mismatch = |what| {
                let table = table.description.name().to_owned();
                Err(Error::Mismatch { table, part: kind, what })
            };
            match table.description.part(kind) {
                None => return mismatch("that it is there"),
                Some(says) => part.check(&table.description, kind, says)?,
            }
            if table.parts.insert(kind, part).is_some() {
                let table = table.description.name().to_owned();
                return Err(Error::Mismatch { table, part: kind, what: "that it is there twice" });
            }
        }
        Ok(table)
    }

    /// What the table says of itself.
    #[must_use]
    pub fn description(&self) -> &TableDescription {
        &self.description
    }
}
