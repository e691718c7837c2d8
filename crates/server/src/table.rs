//! Tables to serve.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use blindcore_accel::SharedBytes;
use blindcore_lookup::batch::BatchServer;
use blindcore_wire::{PartDescription, PartKind, TableDescription};

use crate::Error;

/// Where the hint lies that clients fetch: little-endian words, and the roots of proofs.
pub trait Hint: Send + Sync {
    /// How long it is.
    fn bytes(&self) -> u64;

    /// Reads what it has from `offset` on, as much as there is room for.
    ///
    /// # Errors
    /// It can't be read, or is damaged; there is less of it.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Whether something is known to be wrong with it, so that the server is not ready.
    fn fails(&self) -> bool {
        false
    }
}

impl Hint for SharedBytes {
    fn bytes(&self) -> u64 {
        (**self).as_ref().len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let rest = usize::try_from(offset).ok().and_then(|offset| (**self).as_ref().get(offset..));
        let here = rest.and_then(|rest| rest.get(..into.len())).ok_or(io::ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(here);
        Ok(())
    }
}

/// A part of a table, in place and ready to answer.
pub struct Part {
    pub(crate) server: BatchServer,
    pub(crate) hint: Arc<dyn Hint>,
}

impl Part {
    /// A matrix on its device, or those of all buckets of batches, and its hint.
    #[must_use]
    pub fn new(server: impl Into<BatchServer>, hint: impl Hint + 'static) -> Self {
        Self { server: server.into(), hint: Arc::new(hint) }
    }

    fn check(&self, table: &TableDescription, part: PartKind, says: &PartDescription) -> Result<(), Error> {
        let mismatch = |what| Err(Error::Mismatch { table: table.name().to_owned(), part, what });
        if *self.server.params() != says.params {
            return mismatch("the matrix");
        }
        if self.server.buckets() != says.buckets as usize {
            return mismatch("the number of buckets");
        }
        if self.hint.bytes() != says.hint_bytes() {
            return mismatch("the hint's length");
        }
        Ok(())
    }
}

/// A table at one epoch, to serve.
pub struct Table {
    pub(crate) description: TableDescription,
    /// Rows that are there.
    pub(crate) rows: u64,
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
        let mut table = Self { rows: description.rows(), description, parts: BTreeMap::new() };
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

    /// Says how many of its rows are there, which lists of tables say then: those that were removed keep their numbers.
    #[must_use]
    pub fn with_rows(mut self, rows: u64) -> Self {
        self.rows = rows;
        self
    }

    /// What the table says of itself.
    #[must_use]
    pub fn description(&self) -> &TableDescription {
        &self.description
    }
}
