//! What a table is, checked: nothing here believes a stranger's sizes.

use blindcore_lookup::batch::{BatchIndex, Buckets, CHOICES, MAX_BUCKETS};
use blindcore_lookup::keyword::{FINGERPRINT_BYTES, Index};
use blindcore_lookup::{Geometry, MAX_BLOCKS};
use bytes::Bytes;

use crate::check::{
    PROTOCOL_VERSION, TableError, check_column_name, check_columns, check_table_name, fixed, range,
};
use crate::codec::MAX_KEY_BYTES;
use crate::key_type::KeyType;
use crate::kind::PartKind;
use crate::part::{PartDescription, checked_params};
use crate::proof::Proofs;
use crate::proto;
use crate::signature::SIGNATURE_BYTES;
use crate::slot::{KEY_LENGTH_BYTES, STATE_BYTES};

/// Groups of a keyed table, each of which has a seed in the description.
pub const MAX_GROUPS: usize = 2 << 20;
/// Bytes of a [`proto::GetTableResponse`].
pub const MAX_TABLE_BYTES: usize = 4 << 20;
/// Bytes of a batch's queries, or of their answers: a client holds them, and matrices that grow with them, for all buckets at once.
const MAX_BATCH_BYTES: u64 = 128 << 20;
/// Bytes of a [`proto::ListTablesResponse`].
pub const MAX_LISTING_BYTES: usize = 1 << 20;

/// The fewest columns of a keyed part: a key picks four.
const MIN_KEYED_COLUMNS: usize = 4;

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
    /// The one form of its keys; nothing where they are what was written.
    pub form: Option<KeyType>,
    /// The records in buckets, where many keys can be asked for at a time.
    pub batches: Option<BatchesContent>,
}

/// The records of a keyed table in buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchesContent {
    /// The most keys of a batch.
    pub keys: u32,
    /// A bucket, and how many there are.
    pub records: PartDescription,
    /// One seed for each group of each bucket.
    pub seeds: Bytes,
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
    batch_index: Option<BatchIndex>,
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
        let rows = |of: &PartDescription, rows| range("number of rows", rows, 1, of.slots());
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
        let batches = content.keyed.as_ref().and_then(|keyed| Some((keyed, keyed.batches.as_ref()?)));
        let batch_index = match batches {
            None => None,
            Some((keyed, batches)) => {
                if keyed.blocks > 1 {
                    return Err(TableError::Shape { what: "has batches of records that take several slots" });
                }
                checked_params(PartKind::Batches, &batches.records)?;
                rows(&batches.records, base_rows.saturating_mul(CHOICES as u64))?;
                Some(batch_index(batches, keyed.salt)?)
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
        let table = Self { content, index, changes_index, batch_index, digest, signature: None };
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
        if table.protocol_version != version(new, table.key_type.is_some(), table.batches.is_some()) {
            return Err(TableError::Shape { what: "is of another protocol version than its contents" });
        }
        let records = PartDescription::from_proto(&table.name, PartKind::Records, records, 1)?;
        let read = |keys| PartDescription::from_proto(&table.name, PartKind::Keys, keys, 1);
        let keys = table.keys.as_ref().map(read).transpose()?;
        let keyed = match table.key_column {
            Some(column) => {
                let (salt, blocks) = (fixed("salt", &table.salt)?, some_blocks(table.blocks)?);
                let unknown =
                    TableError::Shape { what: "has keys of a form that this program does not know" };
                let form =
                    table.key_type.as_deref().map(|name| KeyType::find(name).ok_or(unknown)).transpose()?;
                let batches = table.batches.map(|batches| BatchesContent::from_proto(&table.name, batches));
                let batches = batches.transpose()?;
                Some(KeyedContent { column, salt, seeds: table.seeds, keys, blocks, form, batches })
            }
            None if keys.is_some()
                || !table.salt.is_empty()
                || !table.seeds.is_empty()
                || table.key_type.is_some()
                || table.blocks.is_some()
                || table.batches.is_some() =>
            {
                return Err(TableError::Shape { what: "has keys, a salt or seeds but no key column" });
            }
            None => None,
        };
        let changes =
            table.changes.map(|changes| ChangesContent::from_proto(&table.name, changes)).transpose()?;
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
            key_type: keyed.as_ref().and_then(|k| k.form).map(|form| form.name().to_owned()),
            batches: self.batches().map(BatchesContent::to_proto),
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
        version_of(&self.content)
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

    /// The records in buckets, where many keys can be asked for at a time.
    #[must_use]
    pub fn batches(&self) -> Option<&BatchesContent> {
        self.content.keyed.as_ref().and_then(|k| k.batches.as_ref())
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

    /// The one form of its keys; nothing where they are what was written.
    #[must_use]
    pub fn key_type(&self) -> Option<KeyType> {
        self.content.keyed.as_ref().and_then(|k| k.form)
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
        self.parts().find(|(this, _)| *this == kind).map(|(_, part)| part)
    }

    /// The parts that the table has.
    pub fn parts(&self) -> impl Iterator<Item = (PartKind, &PartDescription)> {
        let TableContent { records, keyed, changes, .. } = &self.content;
        let keys = keyed.as_ref().and_then(|k| k.keys.as_ref());
        let new_keys = changes.as_ref().and_then(|c| c.new_keys.as_ref());
        let batches = self.batches().map(|batches| &batches.records);
        let parts = [Some(records), keys, changes.as_ref().map(|c| &c.records), new_keys, batches];
        PartKind::ALL.into_iter().zip(parts).filter_map(|(kind, part)| Some((kind, part?)))
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

    /// Where keys lie in the buckets of batches.
    #[must_use]
    pub fn batch_index(&self) -> Option<&BatchIndex> {
        self.batch_index.as_ref()
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
    /// a record takes several slots, `blocks` and their number, where keys have a form, `key type` and its name, and, where
    /// there are batches, `batches`, their keys, their number of buckets, their `records` and seeds; then, where there
    /// are changes, their base's epoch, its rows, their `records`, salt, seeds and `new_keys`. A part is its
    /// parameters' digest and its hint's, which where there are proofs goes on with their depth and number of chunks.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
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
    sum.number(version_of(content).into());
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
    if let Some(KeyedContent { column, salt, seeds, keys, blocks, form, batches }) = keyed {
        sum.bytes(column.as_bytes());
        sum.bytes(salt);
        sum.bytes(seeds);
        sum.number(keys.is_some().into());
        if let Some(keys) = keys {
            sum.part(keys);
        }
        count_blocks(&mut sum, *blocks);
        if let Some(form) = form {
            sum.bytes(b"key type");
            sum.bytes(form.name().as_bytes());
        }
        if let Some(BatchesContent { keys, records, seeds }) = batches {
            sum.bytes(b"batches");
            sum.number((*keys).into());
            sum.number(records.buckets.into());
            sum.part(records);
            sum.bytes(seeds);
        }
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
fn version(new: bool, formed: bool, batches: bool) -> u32 {
    match (batches, formed, new) {
        (true, ..) => 4,
        (false, true, _) => 3,
        (false, false, true) => 2,
        _ => 1,
    }
}

fn version_of(content: &TableContent) -> u32 {
    let keyed = |has: fn(&KeyedContent) -> bool| content.keyed.as_ref().is_some_and(has);
    version(is_new(content), keyed(|k| k.form.is_some()), keyed(|k| k.batches.is_some()))
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
/// this many bytes more, and at least one of a record.
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

/// Where the keys of batches lie, if there are as many buckets as they need, and sizes can be such a part's.
fn batch_index(batches: &BatchesContent, salt: [u8; 32]) -> Result<BatchIndex, TableError> {
    let BatchesContent { keys, ref records, ref seeds } = *batches;
    let geometry = records.params.geometry;
    let check = |what, got: u64, min: usize, max| range(what, got, min as u64, max);
    check("slot size of a keyed part", records.content_bytes() as u64, FINGERPRINT_BYTES + 1, u64::MAX)?;
    check("number of columns of a keyed part", geometry.columns as u64, MIN_KEYED_COLUMNS, u64::MAX)?;
    let groups = (geometry.groups as u64).saturating_mul(records.buckets.into());
    check("number of groups of a keyed part", groups, 1, MAX_GROUPS as u64)?;
    let bytes = records.query_bytes().max(records.answer_bytes()) as u64;
    check("size of a batch in bytes", bytes, 1, MAX_BATCH_BYTES)?;
    let got = seeds.len() as u64;
    if got != groups {
        return Err(TableError::Length { what: "seeds of batches", got, want: groups });
    }
    let of = |source| TableError::Params { part: PartKind::Batches, source };
    let buckets = Buckets::new(keys as usize, records.buckets as usize).map_err(of)?;
    BatchIndex::new(buckets, geometry, salt, seeds.to_vec()).map_err(of)
}

impl BatchesContent {
    fn to_proto(&self) -> proto::Batches {
        proto::Batches {
            keys: self.keys,
            buckets: self.records.buckets,
            records: Some(self.records.to_proto()),
            seeds: self.seeds.clone(),
        }
    }

    fn from_proto(table: &str, batches: proto::Batches) -> Result<Self, TableError> {
        let proto::Batches { keys, buckets, records, seeds } = batches;
        let records = records.ok_or(TableError::Shape { what: "has batches without records" })?;
        range("number of buckets", buckets.into(), 2, MAX_BUCKETS as u64)?;
        let records = PartDescription::from_proto(table, PartKind::Batches, &records, buckets)?;
        Ok(Self { keys, records, seeds })
    }
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

    fn from_proto(table: &str, changes: proto::Changes) -> Result<Self, TableError> {
        let proto::Changes { base_epoch, base_rows, records, salt, seeds, new_keys, blocks } = changes;
        let records = records.ok_or(TableError::Shape { what: "has changes without records" })?;
        Ok(Self {
            base_epoch,
            base_rows,
            records: PartDescription::from_proto(table, PartKind::Changes, &records, 1)?,
            salt: fixed("salt of changes", &salt)?,
            seeds,
            new_keys: new_keys
                .map(|k| PartDescription::from_proto(table, PartKind::NewKeys, &k, 1))
                .transpose()?,
            blocks: some_blocks(blocks)?,
        })
    }
}
