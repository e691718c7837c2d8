//! The records of a group: collected, tied to their proofs, and solved.

use blindcore_lookup::keyword::{self, FINGERPRINT_BYTES, KeyHash};
use blindcore_lookup::{Geometry, Params};
use blindcore_wire::proof::{self, Node};

use crate::job::Wanted;
use crate::mapped::Scratch;
use crate::{Entries, ExternalSortError, SourceSpec, StoreError};

/// The records of a group.
pub(crate) struct Bucket {
    slots: Scratch,
    hashes: Vec<KeyHash>,
    pub(crate) lines: Vec<u64>,
}

impl Bucket {
    pub(crate) fn new(slots: Scratch) -> Self {
        Self { slots, hashes: Vec::new(), lines: Vec::new() }
    }

    /// Takes the entries of a group: those whose hash says so where it is one of so many, or as many as it has columns.
    pub(crate) fn collect(
        &mut self,
        entries: &mut Entries,
        params: &Params,
        group: Option<(usize, usize)>,
    ) -> Result<(), ExternalSortError> {
        let Geometry { record_bytes, columns, .. } = params.geometry;
        self.hashes.clear();
        self.lines.clear();
        let slots = self.slots.bytes();
        while let Some(head) = entries.peek() {
            let hash = KeyHash::from_order(head.hash, [0; FINGERPRINT_BYTES]);
            let here = match group {
                Some((group, groups)) => hash.group(groups) == group,
                None => self.lines.len() < columns,
            };
            if !here {
                break;
            }
            let slot = &mut slots[self.lines.len() * record_bytes..][..record_bytes];
            entries.read(&mut slot[..head.len])?;
            slot[head.len..].fill(0);
            self.hashes.push(hash);
            self.lines.push(head.line);
        }
        if group.is_none() {
            slots[self.lines.len() * record_bytes..].fill(0);
        }
        Ok(())
    }

    /// Writes proofs into the slots, if they are to have any. Gives the roots of their chunks, which count from
    /// `first`.
    pub(crate) fn seal(&mut self, wanted: &Wanted<'_>, group: usize, first: usize) -> Vec<Node> {
        let Some(depth) = wanted.depth else { return Vec::new() };
        let Geometry { record_bytes, columns, .. } = wanted.params.geometry;
        let start = group as u128 * columns as u128;
        let ids: Vec<u128> = if wanted.keyed {
            self.hashes.iter().map(KeyHash::order).collect()
        } else {
            (start..).take(self.hashes.len()).collect()
        };
        let slots = &mut self.slots.bytes()[..ids.len() * record_bytes];
        proof::seal(wanted.kind, depth, first as u32, &ids, slots)
    }

    /// Fills the group's cells. Records that are not keyed are their own.
    pub(crate) fn solve(
        &mut self,
        params: &Params,
        keyed: bool,
        cells: &mut Scratch,
        origin: &SourceSpec,
    ) -> Result<u8, StoreError> {
        if !keyed {
            std::mem::swap(&mut self.slots, cells);
            return Ok(0);
        }
        let Geometry { record_bytes, columns, .. } = params.geometry;
        let slots = &self.slots.bytes()[..self.hashes.len() * record_bytes];
        let solved =
            keyword::solve(&self.hashes, slots, columns, record_bytes, params.lanes(), cells.bytes());
        solved.map_err(|error| match error {
            blindcore_lookup::Error::DuplicateKey { first, second } => {
                let (first, second) = (self.lines[first], self.lines[second]);
                let (first, second) = (first.min(second), first.max(second));
                let unit = origin.unit();
                let why = format!(
                    "its key is also the key of {unit} {first}; keys must differ, so remove one row or choose \
                     another --key"
                );
                StoreError::Row { origin: origin.to_string(), unit, line: second, why }
            }
            other => other.into(),
        })
    }
}
