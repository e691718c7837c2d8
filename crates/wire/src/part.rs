//! The parts of a table: which there are, and what describes one.

use std::ops::{Index, IndexMut};

use blindcore_lookup::{Geometry, Params, schemes};
use bytes::Bytes;

use crate::check::{TableError, fixed, range, shown};
use crate::proof::{MAX_DEPTH, Proofs};
use crate::{PartKind, proto};

/// Something for each kind of part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerPart<T>([T; PartKind::ALL.len()]);

impl<T> PerPart<T> {
    /// One for each kind.
    pub fn new(of: impl FnMut(PartKind) -> T) -> Self {
        Self(PartKind::ALL.map(of))
    }
}

impl<T> Index<PartKind> for PerPart<T> {
    type Output = T;

    fn index(&self, kind: PartKind) -> &T {
        &self.0[kind as usize]
    }
}

impl<T> IndexMut<PartKind> for PerPart<T> {
    fn index_mut(&mut self, kind: PartKind) -> &mut T {
        &mut self.0[kind as usize]
    }
}

impl proto::Table {
    /// The message of a part, if the table has it.
    pub fn part_mut(&mut self, kind: PartKind) -> Option<&mut proto::Part> {
        match kind {
            PartKind::Records => self.records.as_mut(),
            PartKind::Keys => self.keys.as_mut(),
            PartKind::Changes => self.changes.as_mut()?.records.as_mut(),
            PartKind::NewKeys => self.changes.as_mut()?.new_keys.as_mut(),
            PartKind::Batches => self.batches.as_mut()?.records.as_mut(),
        }
    }
}

impl proto::GetTableResponse {
    /// A table, and the most queries of each part in a request; 0 for those that it has not.
    #[must_use]
    pub fn new(table: proto::Table, queries: impl Fn(PartKind) -> u32) -> Self {
        Self {
            table: Some(table),
            records_queries: queries(PartKind::Records),
            keys_queries: queries(PartKind::Keys),
            changes_queries: queries(PartKind::Changes),
            new_keys_queries: queries(PartKind::NewKeys),
            batches_queries: queries(PartKind::Batches),
        }
    }

    /// The most queries of each part in a request, as the server says.
    #[must_use]
    pub fn queries(&self) -> PerPart<u32> {
        PerPart::new(|kind| match kind {
            PartKind::Records => self.records_queries,
            PartKind::Keys => self.keys_queries,
            PartKind::Changes => self.changes_queries,
            PartKind::NewKeys => self.new_keys_queries,
            PartKind::Batches => self.batches_queries,
        })
    }
}

/// A part of a table: its parameters, and what its hint hashes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartDescription {
    /// Scheme and geometry.
    pub params: Params,
    /// BLAKE3 of the hint's [`PartDescription::hint_bytes`] bytes.
    pub hint_digest: [u8; 32],
    /// How its slots are tied to the hint, where they are.
    pub proofs: Option<Proofs>,
    /// Matrices of these parameters, each with a hint of its own: 1, but of batches.
    pub buckets: u32,
}

impl PartDescription {
    /// Bytes of the hint: the scheme's own, of each bucket, and the roots of proofs.
    #[must_use]
    pub fn hint_bytes(&self) -> u64 {
        let own = self.params.hint_bytes().saturating_mul(self.buckets.into());
        own.saturating_add(self.proofs.map_or(0, |p| p.root_bytes()))
    }

    /// Bytes of a query: one of each bucket.
    #[must_use]
    pub fn query_bytes(&self) -> usize {
        self.params.query_bytes().saturating_mul(self.buckets as usize)
    }

    /// Bytes of an answer: one of each bucket and, of batches, a bit that says whether it was not answered.
    #[must_use]
    pub fn answer_bytes(&self) -> usize {
        let said = if self.buckets > 1 { self.buckets.div_ceil(8) as usize } else { 0 };
        self.params.answer_bytes().saturating_mul(self.buckets as usize).saturating_add(said)
    }

    /// Slots in all.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.params.geometry.slots().saturating_mul(self.buckets.into())
    }

    /// Bytes of a slot beside its proof.
    #[must_use]
    pub fn content_bytes(&self) -> usize {
        self.params.geometry.record_bytes.saturating_sub(self.proofs.map_or(0, |p| p.slot_bytes()))
    }

    pub(crate) fn to_proto(self) -> proto::Part {
        let Geometry { record_bytes, groups, columns } = self.params.geometry;
        proto::Part {
            scheme: self.params.scheme.wire_id(),
            scheme_name: self.params.scheme.wire_name().to_owned(),
            record_bytes: record_bytes as u64,
            groups: groups as u64,
            columns: columns as u64,
            params_digest: Bytes::copy_from_slice(&self.params.digest()),
            hint_digest: Bytes::copy_from_slice(&self.hint_digest),
            hint_bytes: self.hint_bytes(),
            proofs: self.proofs.map(|p| proto::Proofs { depth: p.depth.into(), chunks: p.chunks }),
            hint: None,
        }
    }

    /// `table` is the table's name, for messages. How many buckets there are was checked.
    pub(crate) fn from_proto(
        table: &str,
        kind: PartKind,
        part: &proto::Part,
        buckets: u32,
    ) -> Result<Self, TableError> {
        let scheme = schemes::find_by_wire_id(part.scheme, &part.scheme_name)
            .map_err(|source| TableError::Scheme { table: shown(table), part: kind, source })?;
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let geometry = Geometry {
            record_bytes: size(part.record_bytes),
            groups: size(part.groups),
            columns: size(part.columns),
        };
        let params =
            Params::new(scheme, geometry).map_err(|source| TableError::Params { part: kind, source })?;
        if part.params_digest != params.digest()[..] {
            return Err(TableError::Digest { what: "params_digest" });
        }
        let proofs = match part.proofs {
            None => None,
            Some(proto::Proofs { depth, chunks }) => {
                range("depth of proofs", depth.into(), 0, MAX_DEPTH.into())?;
                Some(Proofs { depth: depth as u8, chunks })
            }
        };
        let hint_digest = fixed("hint_digest", &part.hint_digest)?;
        let part_description = Self { params, hint_digest, proofs, buckets };
        let (got, want) = (part.hint_bytes, part_description.hint_bytes());
        if got != want {
            return Err(TableError::Length { what: "the hint", got, want });
        }
        Ok(part_description)
    }
}

/// Checks parameters and proofs of a part.
pub(crate) fn checked_params(kind: PartKind, part: &PartDescription) -> Result<(), TableError> {
    if let Some(proofs) = part.proofs {
        range("depth of proofs", proofs.depth.into(), 0, MAX_DEPTH.into())?;
        let slots = part.slots().min(u32::MAX.into());
        range("number of chunks of proofs", proofs.chunks.into(), 1, slots)?;
        let (slot, proof) = (part.params.geometry.record_bytes as u64, proofs.slot_bytes() as u64);
        range("slot size of a part with proofs", slot, proof + 1, u64::MAX)?;
    }
    Params::new(part.params.scheme, part.params.geometry)
        .map(|_| ())
        .map_err(|source| TableError::Params { part: kind, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_answer_for_themselves() {
        for kind in PartKind::ALL {
            assert_eq!(PartKind::from_proto(kind.to_proto().into()), Some(kind));
            assert_eq!(kind.as_str().parse(), Ok(kind));
            assert_eq!(kind.directory().is_none(), kind.is_directory() || kind == PartKind::Batches);
            assert!(!kind.is_directory() || !kind.is_keyed(true));
            if let Some(directory) = kind.directory() {
                assert!(directory.is_directory() && directory.is_base() == kind.is_base());
                assert!(kind.is_keyed(true) && kind.is_keyed(false) != kind.is_base());
            }
        }
        let table = proto::GetTableResponse::new(proto::Table::default(), |kind| 1 + kind as u32);
        let mut queries = table.queries();
        assert_eq!(PartKind::ALL.map(|kind| queries[kind]), [1, 2, 3, 4, 5]);
        queries[PartKind::Changes] = 9;
        assert_eq!(PartKind::ALL.map(|kind| queries[kind]), [1, 2, 9, 4, 5]);
    }
}
