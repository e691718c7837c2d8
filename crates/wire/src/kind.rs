//! Kinds of parts.

use std::fmt;

use crate::proto;

/// Which matrix of a table is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PartKind {
    /// The records.
    Records,
    /// The keys by index.
    Keys,
    /// What changed since the base was built.
    Changes,
    /// The keys of rows that were added since, by index.
    NewKeys,
    /// The records in buckets, for many keys at a time.
    Batches,
}

impl PartKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Records, Self::Keys, Self::Changes, Self::NewKeys, Self::Batches];

    /// Whether it is of the base, which stays when the table changes.
    #[must_use]
    pub fn is_base(self) -> bool {
        matches!(self, PartKind::Records | PartKind::Keys | PartKind::Batches)
    }

    /// Whether its slots are keys, found by index.
    #[must_use]
    pub fn is_directory(self) -> bool {
        matches!(self, PartKind::Keys | PartKind::NewKeys)
    }

    /// Whether its slots are found by key, in a table that has keys or not: changes always are.
    #[must_use]
    pub fn is_keyed(self, table: bool) -> bool {
        !self.is_directory() && (table || !self.is_base())
    }

    /// The directory of keys beside these records; nothing beside a directory, or beside batches, which are asked by key alone.
    #[must_use]
    pub fn directory(self) -> Option<Self> {
        match self {
            PartKind::Records => Some(PartKind::Keys),
            PartKind::Changes => Some(PartKind::NewKeys),
            PartKind::Keys | PartKind::NewKeys | PartKind::Batches => None,
        }
    }

    /// The message's number for it.
    #[must_use]
    pub fn to_proto(self) -> proto::PartKind {
        match self {
            PartKind::Records => proto::PartKind::Records,
            PartKind::Keys => proto::PartKind::Keys,
            PartKind::Changes => proto::PartKind::Changes,
            PartKind::NewKeys => proto::PartKind::NewKeys,
            PartKind::Batches => proto::PartKind::Batches,
        }
    }

    /// The part that a message's number names, if any.
    #[must_use]
    pub fn from_proto(number: i32) -> Option<Self> {
        match proto::PartKind::try_from(number) {
            Ok(proto::PartKind::Records) => Some(PartKind::Records),
            Ok(proto::PartKind::Keys) => Some(PartKind::Keys),
            Ok(proto::PartKind::Changes) => Some(PartKind::Changes),
            Ok(proto::PartKind::NewKeys) => Some(PartKind::NewKeys),
            Ok(proto::PartKind::Batches) => Some(PartKind::Batches),
            Ok(proto::PartKind::Unspecified) | Err(_) => None,
        }
    }

    /// Its name, as it stands in URLs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            PartKind::Records => "records",
            PartKind::Keys => "keys",
            PartKind::Changes => "changes",
            PartKind::NewKeys => "new-keys",
            PartKind::Batches => "batches",
        }
    }
}

impl fmt::Display for PartKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for PartKind {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        PartKind::ALL
            .into_iter()
            .find(|p| p.as_str() == s)
            .ok_or_else(|| format!("part {s:?} is unknown; use records, keys, changes, new-keys or batches"))
    }
}
