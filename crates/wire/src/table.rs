//! What a table is, checked: nothing here believes a stranger's sizes.

use std::collections::HashSet;
use std::fmt;

use blindcore_lookup::keyword::{FINGERPRINT_BYTES, Index};
use blindcore_lookup::{Geometry, MAX_BLOCKS, Params, Scheme};
use bytes::Bytes;

use crate::codec::MAX_KEY_BYTES;
use crate::proof::{MAX_DEPTH, Proofs};
use crate::proto;
use crate::signature::SIGNATURE_BYTES;

/// What a [`proto::Table`] says in `protocol_version`, at most: 1, or 2 where it has changes, records of several
/// blocks or proofs.
pub const PROTOCOL_VERSION: u32 = 2;
/// Bytes of a table's name.
pub const MAX_NAME_BYTES: usize = 255;
/// Bytes of a column's name.
pub const MAX_COLUMN_NAME_BYTES: usize = 255;
/// Columns of a record.
pub const MAX_VALUE_COLUMNS: usize = 4096;
/// Groups of a keyed table, each of which has a seed in the description.
pub const MAX_GROUPS: usize = 2 << 20;
/// Bytes of a [`proto::GetTableResponse`].
pub const MAX_TABLE_BYTES: usize = 4 << 20;
/// Bytes of a [`proto::ListTablesResponse`].
pub const MAX_LISTING_BYTES: usize = 1 << 20;

/// The fewest columns of a keyed part: a key picks four.
const MIN_KEYED_COLUMNS: usize = 4;
/// Bytes before the key in a slot of part `keys`.
const KEY_LENGTH_BYTES: usize = 2;
/// Bytes before the record in a slot of part `changes`, fingerprint apart.
const STATE_BYTES: usize = 1;

/// Why a description is no table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// Another protocol.
    #[error(
        "the table speaks protocol version {got}, this program versions 1 to {PROTOCOL_VERSION}; update the older of \
         client and server"
    )]
    Version {
        /// Its version.
        got: u32,
    },
    /// A name that a table or a column can't have.
    #[error("{what} {name} is refused: it has to be {rule}; rename it")]
    Name {
        /// Whose name.
        what: &'static str,
        /// The name, or what can be said of it.
        name: String,
        /// What is allowed.
        rule: &'static str,
    },
    /// A column twice.
    #[error("column {name:?} is there twice; rename one")]
    DuplicateColumn {
        /// Its name.
        name: String,
    },
    /// A number outside its range.
    #[error("{what} is {got}, outside {min} to {max}; {remedy}")]
    Range {
        /// Which number.
        what: &'static str,
        /// Its value.
        got: u64,
        /// The least that is allowed.
        min: u64,
        /// The most that is allowed.
        max: u64,
        /// What to do.
        remedy: &'static str,
    },
    /// Bytes of the wrong length.
    #[error("{what} has {got} bytes where the table makes it {want}; {REMEDY}")]
    Length {
        /// Which bytes.
        what: &'static str,
        /// How many there are.
        got: u64,
        /// How many there should be.
        want: u64,
    },
    /// Something that has to be there is not, or the other way round.
    #[error("the table's description {what}; {REMEDY}")]
    Shape {
        /// What is wrong.
        what: &'static str,
    },
    /// A digest that is not what it stands for.
    #[error("{what} is not the digest of what came with it; {REMEDY}")]
    Digest {
        /// Which digest.
        what: &'static str,
    },
    /// Parameters that no lookup may use.
    #[error("part {part}: {source}")]
    Params {
        /// The part.
        part: PartKind,
        /// What is wrong with them.
        source: blindcore_lookup::Error,
    },
}

const REMEDY: &str = "the server does not follow the protocol, or something changed the message on its way";

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
}

impl PartKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Records, Self::Keys, Self::Changes, Self::NewKeys];

    /// Whether it is of the base, which stays when the table changes.
    #[must_use]
    pub fn is_base(self) -> bool {
        matches!(self, PartKind::Records | PartKind::Keys)
    }

    /// The message's number for it.
    #[must_use]
    pub fn to_proto(self) -> proto::PartKind {
        match self {
            PartKind::Records => proto::PartKind::Records,
            PartKind::Keys => proto::PartKind::Keys,
            PartKind::Changes => proto::PartKind::Changes,
            PartKind::NewKeys => proto::PartKind::NewKeys,
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
            .ok_or_else(|| format!("part {s:?} is unknown; use records, keys, changes or new-keys"))
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
}

impl PartDescription {
    /// Bytes of the hint: its words, and the roots of proofs.
    #[must_use]
    pub fn hint_bytes(&self) -> u64 {
        4 * self.params.hint_words() as u64 + self.proofs.map_or(0, |p| p.root_bytes())
    }

    /// Bytes of a slot beside its proof.
    #[must_use]
    pub fn content_bytes(&self) -> usize {
        self.params.geometry.record_bytes.saturating_sub(self.proofs.map_or(0, |p| p.slot_bytes()))
    }

    fn to_proto(self) -> proto::Part {
        let Geometry { record_bytes, groups, columns } = self.params.geometry;
        proto::Part {
            scheme: match self.params.scheme {
                Scheme::Simple => proto::Scheme::Simple,
                Scheme::Double => proto::Scheme::Double,
            }
            .into(),
            record_bytes: record_bytes as u64,
            groups: groups as u64,
            columns: columns as u64,
            params_digest: Bytes::copy_from_slice(&self.params.digest()),
            hint_digest: Bytes::copy_from_slice(&self.hint_digest),
            hint_bytes: self.hint_bytes(),
            proofs: self.proofs.map(|p| proto::Proofs { depth: p.depth.into(), chunks: p.chunks }),
        }
    }

    fn from_proto(kind: PartKind, part: &proto::Part) -> Result<Self, TableError> {
        let scheme = match proto::Scheme::try_from(part.scheme) {
            Ok(proto::Scheme::Simple) => Scheme::Simple,
            Ok(proto::Scheme::Double) => Scheme::Double,
            Ok(proto::Scheme::Unspecified) | Err(_) => {
                return Err(TableError::Shape {
                    what: "names a scheme that this program does not know; update it",
                });
            }
        };
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
        let part_description = Self { params, hint_digest, proofs };
        let (got, want) = (part.hint_bytes, part_description.hint_bytes());
        if got != want {
            return Err(TableError::Length { what: "the hint", got, want });
        }
        Ok(part_description)
    }
}

/// What a keyed table has beside its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedContent {
    /// The column that keys come from.
    pub column: String,
    /// What key hashes start from.
    pub salt: [u8; 32],
    /// One seed for each group of `records`.
    pub seeds: Bytes,
    /// Keys by index, if the table has them.
    pub keys: Option<PartDescription>,
    /// How many slots a record takes, 1 to [`MAX_BLOCKS`].
    pub blocks: u32,
}

/// What changed since a table's base was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangesContent {
    /// The epoch at which `records` and `keys` were built.
    pub base_epoch: u64,
    /// How many rows they hold.
    pub base_rows: u64,
    /// The changed rows, by key.
    pub records: PartDescription,
    /// What their key hashes start from.
    pub salt: [u8; 32],
    /// One seed for each group of them.
    pub seeds: Bytes,
    /// Keys of the rows that were added, by index.
    pub new_keys: Option<PartDescription>,
    /// How many slots a record takes, 1 to [`MAX_BLOCKS`].
    pub blocks: u32,
}

/// What a table is, for [`TableDescription::new`] to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableContent {
    /// See [`check_table_name`].
    pub name: String,
    /// Another epoch is another content.
    pub epoch: u64,
    /// How many rows, at least 1; those that were removed keep their numbers and count.
    pub rows: u64,
    /// The columns that a record holds, in order; see [`check_column_name`].
    pub value_columns: Vec<String>,
    /// The records.
    pub records: PartDescription,
    /// How keys are found, where they can be.
    pub keyed: Option<KeyedContent>,
    /// What changed since `records` and `keys` were built.
    pub changes: Option<ChangesContent>,
}

/// A table that was checked: every size is one that this program can bear, every part fits the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDescription {
    content: TableContent,
    index: Option<Index>,
    changes_index: Option<Index>,
    digest: [u8; 32],
    signature: Option<[u8; SIGNATURE_BYTES]>,
}

impl TableDescription {
    /// Checks a table.
    ///
    /// # Errors
    /// A name, a size or the parameters are out of range, or parts don't fit each other.
    pub fn new(content: TableContent) -> Result<Self, TableError> {
        check_table_name(&content.name)?;
        check_columns(&content.value_columns)?;
        let records = &content.records;
        checked_params(PartKind::Records, records)?;
        let base_rows = content.changes.as_ref().map_or(content.rows, |c| c.base_rows);
        let rows = |of: &PartDescription, rows| range("number of rows", rows, 1, of.params.geometry.slots());
        rows(records, base_rows)?;
        let check_keys = |kind, keys: &PartDescription, count| {
            checked_params(kind, keys)?;
            rows(keys, count)?;
            let (got, max) = (keys.content_bytes(), KEY_LENGTH_BYTES + MAX_KEY_BYTES);
            range("slot size of a part of keys", got as u64, KEY_LENGTH_BYTES as u64 + 1, max as u64)
        };
        let index = match &content.keyed {
            None => None,
            Some(keyed) => {
                check_column_name(&keyed.column)?;
                check_blocks(keyed.blocks)?;
                if let Some(keys) = &keyed.keys {
                    check_keys(PartKind::Keys, keys, base_rows)?;
                }
                Some(keyed_index(PartKind::Records, records, 0, keyed.salt, &keyed.seeds)?)
            }
        };
        let changes_index = match &content.changes {
            None => None,
            Some(changes) => {
                range("epoch of the base", changes.base_epoch, 0, content.epoch.saturating_sub(1))?;
                range("number of rows", content.rows, base_rows, u64::MAX)?;
                checked_params(PartKind::Changes, &changes.records)?;
                check_blocks(changes.blocks)?;
                let added = content.rows - base_rows;
                if let Some(keys) = &changes.new_keys {
                    check_keys(PartKind::NewKeys, keys, added)?;
                }
                let has_keys = content.keyed.as_ref().is_some_and(|k| k.keys.is_some());
                if changes.new_keys.is_some() != (has_keys && added > 0) {
                    return Err(TableError::Shape { what: "has keys of new rows without new rows, or not" });
                }
                let (salt, seeds) = (changes.salt, &changes.seeds);
                Some(keyed_index(PartKind::Changes, &changes.records, STATE_BYTES, salt, seeds)?)
            }
        };
        let digest = digest(&content);
        let table = Self { content, index, changes_index, digest, signature: None };
        if table.parts().any(|(_, part)| part.proofs.is_some() != table.has_proofs()) {
            return Err(TableError::Shape { what: "has proofs in some parts and not in others" });
        }
        Ok(table)
    }

    /// The table with a signature of its digest, which is not checked here.
    #[must_use]
    pub fn signed(self, signature: Option<[u8; SIGNATURE_BYTES]>) -> Self {
        Self { signature, ..self }
    }

    /// Checks a description that came from outside.
    ///
    /// # Errors
    /// As [`TableDescription::new`]; or it is of another version, or a digest or length in it is not what the
    /// rest makes it.
    pub fn from_proto(table: proto::Table) -> Result<Self, TableError> {
        if !(1..=PROTOCOL_VERSION).contains(&table.protocol_version) {
            return Err(TableError::Version { got: table.protocol_version });
        }
        let records = table.records.as_ref().ok_or(TableError::Shape { what: "has no part records" })?;
        let new = table.changes.is_some() || table.blocks.is_some() || records.proofs.is_some();
        if table.protocol_version != version(new) {
            return Err(TableError::Shape { what: "is of another protocol version than its contents" });
        }
        let records = PartDescription::from_proto(PartKind::Records, records)?;
        let keys =
            table.keys.as_ref().map(|keys| PartDescription::from_proto(PartKind::Keys, keys)).transpose()?;
        let keyed = match table.key_column {
            Some(column) => {
                let (salt, blocks) = (fixed("salt", &table.salt)?, some_blocks(table.blocks)?);
                Some(KeyedContent { column, salt, seeds: table.seeds, keys, blocks })
            }
            None if keys.is_some()
                || !table.salt.is_empty()
                || !table.seeds.is_empty()
                || table.blocks.is_some() =>
            {
                return Err(TableError::Shape { what: "has keys, a salt or seeds but no key column" });
            }
            None => None,
        };
        let changes = table.changes.map(ChangesContent::from_proto).transpose()?;
        let proto::Table { name, epoch, rows, value_columns, digest, signature, .. } = table;
        let checked = Self::new(TableContent { name, epoch, rows, value_columns, records, keyed, changes })?;
        if digest != checked.digest[..] {
            return Err(TableError::Digest { what: "digest" });
        }
        if signature.is_empty() {
            return Ok(checked);
        }
        let (got, want) = (signature.len() as u64, SIGNATURE_BYTES as u64);
        let signature =
            signature[..].try_into().map_err(|_| TableError::Length { what: "signature", got, want })?;
        Ok(checked.signed(Some(signature)))
    }

    /// The message; [`TableDescription::from_proto`] reads it back.
    #[must_use]
    pub fn to_proto(&self) -> proto::Table {
        let TableContent { name, epoch, rows, value_columns, records, keyed, changes } = &self.content;
        proto::Table {
            protocol_version: self.protocol_version(),
            name: name.clone(),
            epoch: *epoch,
            rows: *rows,
            key_column: keyed.as_ref().map(|k| k.column.clone()),
            value_columns: value_columns.clone(),
            records: Some(records.to_proto()),
            keys: keyed.as_ref().and_then(|k| k.keys).map(PartDescription::to_proto),
            salt: keyed.as_ref().map(|k| Bytes::copy_from_slice(&k.salt)).unwrap_or_default(),
            seeds: keyed.as_ref().map(|k| k.seeds.clone()).unwrap_or_default(),
            digest: Bytes::copy_from_slice(&self.digest),
            changes: changes.as_ref().map(ChangesContent::to_proto),
            signature: self.signature.map(|s| Bytes::copy_from_slice(&s)).unwrap_or_default(),
            blocks: keyed.as_ref().map(|k| k.blocks).filter(|n| *n > 1),
        }
    }

    /// The table in short.
    #[must_use]
    pub fn summary(&self) -> proto::TableSummary {
        proto::TableSummary {
            name: self.name().to_owned(),
            epoch: self.epoch(),
            rows: self.rows(),
            keyed: self.is_keyed(),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.content.name
    }

    /// What its message says in `protocol_version`.
    #[must_use]
    pub fn protocol_version(&self) -> u32 {
        version(is_new(&self.content))
    }

    /// Its epoch.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.content.epoch
    }

    /// How many rows it has, those that were removed included: row numbers are below it.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.content.rows
    }

    /// How many slots of the base a record takes.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.content.keyed.as_ref().map_or(1, |k| k.blocks)
    }

    /// What changed since the base was built.
    #[must_use]
    pub fn changes(&self) -> Option<&ChangesContent> {
        self.content.changes.as_ref()
    }

    /// Whether answers are tied to the table's digest: a wrong one is noticed.
    #[must_use]
    pub fn has_proofs(&self) -> bool {
        self.content.records.proofs.is_some()
    }

    /// How many rows the base holds.
    #[must_use]
    pub fn base_rows(&self) -> u64 {
        self.changes().map_or(self.content.rows, |c| c.base_rows)
    }

    /// The epoch at which a part was built: for parts of the base the base's.
    #[must_use]
    pub fn part_epoch(&self, kind: PartKind) -> u64 {
        self.changes().filter(|_| kind.is_base()).map_or(self.content.epoch, |c| c.base_epoch)
    }

    /// Whether its rows are found by key.
    #[must_use]
    pub fn is_keyed(&self) -> bool {
        self.content.keyed.is_some()
    }

    /// The column that keys come from.
    #[must_use]
    pub fn key_column(&self) -> Option<&str> {
        self.content.keyed.as_ref().map(|k| &*k.column)
    }

    /// What key hashes start from.
    #[must_use]
    pub fn salt(&self) -> Option<&[u8; 32]> {
        self.content.keyed.as_ref().map(|k| &k.salt)
    }

    /// One byte for each group of `records`; none where the table is not keyed.
    #[must_use]
    pub fn seeds(&self) -> &[u8] {
        self.content.keyed.as_ref().map_or(&[], |k| &k.seeds)
    }

    /// The columns that a record holds, in order.
    #[must_use]
    pub fn value_columns(&self) -> &[String] {
        &self.content.value_columns
    }

    /// A part, if the table has it.
    #[must_use]
    pub fn part(&self, kind: PartKind) -> Option<&PartDescription> {
        match kind {
            PartKind::Records => Some(&self.content.records),
            PartKind::Keys => self.content.keyed.as_ref()?.keys.as_ref(),
            PartKind::Changes => Some(&self.changes()?.records),
            PartKind::NewKeys => self.changes()?.new_keys.as_ref(),
        }
    }

    /// The parts that the table has.
    pub fn parts(&self) -> impl Iterator<Item = (PartKind, &PartDescription)> {
        PartKind::ALL.into_iter().filter_map(|kind| Some((kind, self.part(kind)?)))
    }

    /// The records.
    #[must_use]
    pub fn records(&self) -> &PartDescription {
        &self.content.records
    }

    /// The keys by index.
    #[must_use]
    pub fn keys(&self) -> Option<&PartDescription> {
        self.part(PartKind::Keys)
    }

    /// Where keys lie.
    #[must_use]
    pub fn index(&self) -> Option<&Index> {
        self.index.as_ref()
    }

    /// Where the keys of changed rows lie.
    #[must_use]
    pub fn changes_index(&self) -> Option<&Index> {
        self.changes_index.as_ref()
    }

    /// A signature of the digest, not checked: [`crate::signature::verify`] does.
    #[must_use]
    pub fn signature(&self) -> Option<&[u8; SIGNATURE_BYTES]> {
        self.signature.as_ref()
    }

    /// BLAKE3, in its key-derivation mode with context `blindcore table v1`, of everything above: numbers as
    /// 8 bytes, little-endian; texts and bytes as their length and themselves; what may be absent as 0, or 1
    /// and itself; lists as their length and their members. In this order: protocol version, name, epoch,
    /// rows, value columns, `records`, and, for keyed tables, key column, salt, seeds, `keys`, and, where
    /// a record takes several slots, `blocks` and their number; then, where there
    /// are changes, their base's epoch, its rows, their `records`, salt, seeds and `new_keys`. A part is its
    /// parameters' digest and its hint's, which where there are proofs goes on with their depth and number of chunks.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

/// A table's name: 1 to [`MAX_NAME_BYTES`] bytes of letters, digits, `_`, `.` and `-`, so that it stands in
/// URLs, file names and logs as it is.
///
/// # Errors
/// It is something else.
pub fn check_table_name(name: &str) -> Result<(), TableError> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
    if (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(TableError::Name {
        what: "a table's name",
        name: shown(name),
        rule: "1 to 255 bytes of A-Z a-z 0-9 _ . -",
    })
}

/// A column's name: up to [`MAX_COLUMN_NAME_BYTES`] bytes of text without control characters.
///
/// # Errors
/// It is something else.
pub fn check_column_name(name: &str) -> Result<(), TableError> {
    if name.len() <= MAX_COLUMN_NAME_BYTES && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let rule = "at most 255 bytes without control characters";
    Err(TableError::Name { what: "a column's name", name: shown(name), rule })
}

/// A name that may be a stranger's, fit for a line of text.
fn shown(name: &str) -> String {
    if name.len() <= MAX_NAME_BYTES { format!("{name:?}") } else { format!("of {} bytes", name.len()) }
}

fn check_columns(columns: &[String]) -> Result<(), TableError> {
    range("number of value columns", columns.len() as u64, 0, MAX_VALUE_COLUMNS as u64)?;
    let mut seen = HashSet::with_capacity(columns.len());
    for name in columns {
        check_column_name(name)?;
        if !seen.insert(name) {
            return Err(TableError::DuplicateColumn { name: name.clone() });
        }
    }
    Ok(())
}

fn checked_params(kind: PartKind, part: &PartDescription) -> Result<(), TableError> {
    if let Some(proofs) = part.proofs {
        range("depth of proofs", proofs.depth.into(), 0, MAX_DEPTH.into())?;
        let slots = part.params.geometry.slots().min(u32::MAX.into());
        range("number of chunks of proofs", proofs.chunks.into(), 1, slots)?;
        let (slot, proof) = (part.params.geometry.record_bytes as u64, proofs.slot_bytes() as u64);
        range("slot size of a part with proofs", slot, proof + 1, u64::MAX)?;
    }
    Params::new(part.params.scheme, part.params.geometry)
        .map(|_| ())
        .map_err(|source| TableError::Params { part: kind, source })
}

fn range(what: &'static str, got: u64, min: u64, max: u64) -> Result<(), TableError> {
    if (min..=max).contains(&got) {
        return Ok(());
    }
    Err(TableError::Range { what, got, min, max, remedy: "build the table again, or split it" })
}

fn fixed(what: &'static str, bytes: &[u8]) -> Result<[u8; 32], TableError> {
    bytes.try_into().map_err(|_| TableError::Length { what, got: bytes.len() as u64, want: 32 })
}

fn digest(content: &TableContent) -> [u8; 32] {
    struct Sum(blake3::Hasher);
    impl Sum {
        fn number(&mut self, n: u64) {
            self.0.update(&n.to_le_bytes());
        }
        fn bytes(&mut self, bytes: &[u8]) {
            self.number(bytes.len() as u64);
            self.0.update(bytes);
        }
        fn part(&mut self, part: &PartDescription) {
            self.bytes(&part.params.digest());
            match part.proofs {
                None => self.bytes(&part.hint_digest),
                Some(Proofs { depth, chunks }) => {
                    let numbers = [u64::from(depth).to_le_bytes(), u64::from(chunks).to_le_bytes()];
                    self.bytes(&[&part.hint_digest[..], numbers.as_flattened()].concat());
                }
            }
        }
    }
    let TableContent { name, epoch, rows, value_columns, records, keyed, changes } = content;
    let mut sum = Sum(blake3::Hasher::new_derive_key("blindcore table v1"));
    sum.number(version(is_new(content)).into());
    sum.bytes(name.as_bytes());
    sum.number(*epoch);
    sum.number(*rows);
    sum.number(value_columns.len() as u64);
    value_columns.iter().for_each(|c| sum.bytes(c.as_bytes()));
    sum.part(records);
    sum.number(keyed.is_some().into());
    let count_blocks = |sum: &mut Sum, blocks: u32| {
        if blocks > 1 {
            sum.bytes(b"blocks");
            sum.number(blocks.into());
        }
    };
    if let Some(KeyedContent { column, salt, seeds, keys, blocks }) = keyed {
        sum.bytes(column.as_bytes());
        sum.bytes(salt);
        sum.bytes(seeds);
        sum.number(keys.is_some().into());
        if let Some(keys) = keys {
            sum.part(keys);
        }
        count_blocks(&mut sum, *blocks);
    }
    if let Some(ChangesContent { base_epoch, base_rows, records, salt, seeds, new_keys, blocks }) = changes {
        sum.number(*base_epoch);
        sum.number(*base_rows);
        sum.part(records);
        sum.bytes(salt);
        sum.bytes(seeds);
        sum.number(new_keys.is_some().into());
        if let Some(keys) = new_keys {
            sum.part(keys);
        }
        count_blocks(&mut sum, *blocks);
    }
    *sum.0.finalize().as_bytes()
}

/// The version of a table's message.
fn version(new: bool) -> u32 {
    if new { 2 } else { 1 }
}

/// Whether a table has what version 1 had not.
fn is_new(content: &TableContent) -> bool {
    content.changes.is_some()
        || content.keyed.as_ref().is_some_and(|k| k.blocks > 1)
        || content.records.proofs.is_some()
}

fn check_blocks(blocks: u32) -> Result<(), TableError> {
    range("number of slots of a record", blocks.into(), 1, MAX_BLOCKS as u64)
}

/// A number of blocks that is said only where it is not 1.
fn some_blocks(said: Option<u32>) -> Result<u32, TableError> {
    let shape = TableError::Shape { what: "says twice that a record takes one slot" };
    if said == Some(1) { Err(shape) } else { Ok(said.unwrap_or(1)) }
}

/// Where the keys of a part of keyword slots lie, if its sizes can be such a part's: a slot holds a fingerprint,
/// so many bytes more, and at least one of a record.
fn keyed_index(
    kind: PartKind,
    part: &PartDescription,
    more: usize,
    salt: [u8; 32],
    seeds: &Bytes,
) -> Result<Index, TableError> {
    let Geometry { groups, columns, .. } = part.params.geometry;
    let check = |what, got: usize, min: usize, max| range(what, got as u64, min as u64, max);
    check("slot size of a keyed part", part.content_bytes(), FINGERPRINT_BYTES + more + 1, u64::MAX)?;
    check("number of columns of a keyed part", columns, MIN_KEYED_COLUMNS, u64::MAX)?;
    check("number of groups of a keyed part", groups, 1, MAX_GROUPS as u64)?;
    let (got, want) = (seeds.len() as u64, groups as u64);
    if got != want {
        return Err(TableError::Length { what: "seeds", got, want });
    }
    Index::new(part.params.geometry, salt, seeds.to_vec())
        .map_err(|source| TableError::Params { part: kind, source })
}

impl ChangesContent {
    fn to_proto(&self) -> proto::Changes {
        proto::Changes {
            base_epoch: self.base_epoch,
            base_rows: self.base_rows,
            records: Some(self.records.to_proto()),
            salt: Bytes::copy_from_slice(&self.salt),
            seeds: self.seeds.clone(),
            new_keys: self.new_keys.map(PartDescription::to_proto),
            blocks: Some(self.blocks).filter(|n| *n > 1),
        }
    }

    fn from_proto(changes: proto::Changes) -> Result<Self, TableError> {
        let proto::Changes { base_epoch, base_rows, records, salt, seeds, new_keys, blocks } = changes;
        let records = records.ok_or(TableError::Shape { what: "has changes without records" })?;
        Ok(Self {
            base_epoch,
            base_rows,
            records: PartDescription::from_proto(PartKind::Changes, &records)?,
            salt: fixed("salt of changes", &salt)?,
            seeds,
            new_keys: new_keys.map(|k| PartDescription::from_proto(PartKind::NewKeys, &k)).transpose()?,
            blocks: some_blocks(blocks)?,
        })
    }
}

/// What the slot of a changed row says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// It has this record now, and zeros behind.
    Set(&'a [u8]),
    /// It is gone.
    Removed,
}

impl<'a> Change<'a> {
    /// Writes it as a slot of part `changes` holds it, fingerprint apart.
    pub fn encode(self, out: &mut Vec<u8>) {
        match self {
            Change::Set(record) => {
                out.push(1);
                out.extend_from_slice(record);
            }
            Change::Removed => out.push(0),
        }
    }

    /// Reads what [`Change::encode`] wrote; `None` where it never did.
    #[must_use]
    pub fn decode(slot: &'a [u8]) -> Option<Self> {
        match slot.split_first()? {
            (1, record) => Some(Change::Set(record)),
            (0, rest) => rest.iter().all(|b| *b == 0).then_some(Change::Removed),
            _ => None,
        }
    }
}

/// Writes a key into its slot of part `keys`: its length in 2 bytes, itself, and zeros.
///
/// # Errors
/// The key is over [`MAX_KEY_BYTES`], or the slot is too short for it.
pub fn encode_key_slot(key: &[u8], slot: &mut [u8]) -> Result<(), TableError> {
    let max = slot.len().saturating_sub(KEY_LENGTH_BYTES).min(MAX_KEY_BYTES);
    if key.len() > max || slot.len() < KEY_LENGTH_BYTES {
        let (got, max) = (key.len() as u64, max as u64);
        let remedy = "give part keys slots of its longest key and 2 bytes";
        return Err(TableError::Range { what: "bytes of a key", got, min: 0, max, remedy });
    }
    slot.fill(0);
    slot[..KEY_LENGTH_BYTES].copy_from_slice(&(key.len() as u16).to_le_bytes());
    slot[KEY_LENGTH_BYTES..][..key.len()].copy_from_slice(key);
    Ok(())
}

/// The key in a slot of part `keys`, or `None` where [`encode_key_slot`] never wrote it.
#[must_use]
pub fn decode_key_slot(slot: &[u8]) -> Option<&[u8]> {
    let (length, rest) = slot.split_first_chunk::<KEY_LENGTH_BYTES>()?;
    let (key, zeros) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    (key.len() <= MAX_KEY_BYTES && zeros.iter().all(|b| *b == 0)).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for good in ["a", "Top-1.000_x", "..", &"x".repeat(255)] {
            assert!(check_table_name(good).is_ok(), "{good}");
        }
        for bad in ["", "a b", "a/b", "é", "a\0", &"x".repeat(256)] {
            assert!(check_table_name(bad).is_err(), "{bad}");
        }
        assert!(check_column_name("größe (m)").is_ok());
        assert!(check_column_name("a\u{1b}[2J").is_err());
        let long = check_table_name(&"x".repeat(5000)).unwrap_err().to_string();
        assert!(long.contains("of 5000 bytes") && long.len() < 300, "{long}");
    }

    #[test]
    fn key_slots_read_back() {
        let mut slot = [9u8; 8];
        for key in [&b""[..], b"a", b"abcdef", b"a\0\0"] {
            encode_key_slot(key, &mut slot).unwrap();
            assert_eq!(decode_key_slot(&slot), Some(key));
        }
        assert!(encode_key_slot(b"abcdefg", &mut slot).is_err());
        assert!(encode_key_slot(b"", &mut [0]).is_err());
        assert_eq!(decode_key_slot(&[]), None);
        assert_eq!(decode_key_slot(&[2, 0, b'a']), None);
        assert_eq!(decode_key_slot(&[1, 0, b'a', 1]), None);
    }

    #[test]
    fn changes_read_back() {
        for change in [Change::Set(b""), Change::Set(b"abc"), Change::Removed] {
            let mut slot = Vec::new();
            change.encode(&mut slot);
            assert_eq!(Change::decode(&slot), Some(change));
        }
        assert_eq!(Change::decode(&[0, 0, 0]), Some(Change::Removed));
        for odd in [&[][..], &[2], &[0, 1]] {
            assert_eq!(Change::decode(odd), None);
        }
    }
}
