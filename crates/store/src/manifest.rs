//! The manifest: what a database is, and every file of it.

use std::path::Path;

use blindcore_accel::Layout;
use blindcore_lookup::batch::Buckets;
use blindcore_lookup::schemes::{self, Operand};
use blindcore_lookup::{Geometry, Params};
use blindcore_wire::signature::{SIGNATURE_BYTES, SigningKey};
use blindcore_wire::{KeyType, PartKind, Proofs};
use serde::{Deserialize, Serialize};

use crate::kinds::Kinds;
use crate::update::options::CHANGE_COLUMN;
use crate::{SourceSpec, StoreError, tile_checksums};

/// The manifest's file name.
pub const MANIFEST: &str = "manifest.json";
const MAGIC: &str = "blindcore-db";
/// What a manifest says in `version`, at most. 1 and 2 are those of databases without checksums of tiles: 2 where a table
/// changed since it was built, has records of several blocks, proofs or a signature. 3 says neither `key_type` nor `kinds`,
/// 4 no `batches`, 5 no `state_layout`, 6 not which source is followed, and 7 not which columns following left out.
const VERSION: u32 = 8;
/// A manifest is read whole; this is more than a million shards need.
const MAX_BYTES: u64 = 256 << 20;

/// What a database is, and every file of it. `DIR/manifest.json` is this in JSON; unknown fields are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub(crate) magic: String,
    pub(crate) version: u32,
    /// The table's name.
    pub name: String,
    /// Which state of the table this is, counted from 1.
    pub epoch: u64,
    /// Rows.
    pub rows: u64,
    /// The column that rows are found by; `None` where they are found by index alone.
    pub key: Option<String>,
    /// The columns of a record.
    pub values: Vec<String>,
    /// The salt of the keys' hashes, 64 hexadecimal digits; present where there is a key.
    pub salt: Option<String>,
    /// The matrix of records.
    pub records: PartManifest,
    /// The directory from index to key; present where there is a key, unless it was left out.
    pub keys: Option<PartManifest>,
    /// The epoch at which `records` and `keys` were built, where that is another than `epoch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base_epoch: Option<u64>,
    /// How many slots of `records` a record takes, where it is not one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) blocks: Option<u32>,
    /// The records in buckets, where many keys can be asked for at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batches: Option<BatchesManifest>,
    /// What changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangesManifest>,
    /// How far a source that is followed was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow: Option<Follow>,
    /// The one form of its keys, where the source's type has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_type: Option<KeyType>,
    /// What each column of a record holds. Earlier builds left it out of tables of texts alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kinds: Option<Vec<Kinds>>,
    /// The signer of this table, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Signed>,
    /// BLAKE3 of this manifest with an empty checksum, in hexadecimal.
    pub(crate) checksum: String,
}

/// The records of a table in buckets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchesManifest {
    /// The most keys of a batch.
    pub keys: u32,
    /// How many buckets there are.
    pub buckets: u32,
    /// A bucket's parameters, and the files of all of them: what each holds of a bucket, one after another.
    pub records: PartManifest,
}

impl BatchesManifest {
    /// -log2 of a bound on how often a key finds no bucket; nothing where the numbers are none of batches.
    pub(crate) fn failure_log2(&self) -> Option<f64> {
        let buckets = Buckets::new(self.keys as usize, self.buckets as usize).ok()?;
        Some(buckets.failure_log2())
    }
}

/// What changed since `records` and `keys` were built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangesManifest {
    /// Rows that `records` and `keys` hold; the table's `rows` counts those that were added too.
    pub base_rows: u64,
    /// How many of the table's rows are gone.
    pub removed: u64,
    /// How many slots of `records` a record takes, where it is not one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) blocks: Option<u32>,
    /// The salt of its keys' hashes, 64 hexadecimal digits.
    pub salt: String,
    /// The changed rows, by key.
    pub records: PartManifest,
    /// The keys of rows that were added, by index.
    pub keys: Option<PartManifest>,
    /// The changed rows as they were read, for the next update.
    pub log: FileEntry,
}

/// A signature of a table's digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signed {
    /// The public key that it is checked with, 64 hexadecimal digits.
    pub key: String,
    /// The signature, 128 hexadecimal digits.
    pub signature: String,
}

impl Signed {
    /// The signature; nothing where it is none.
    pub(crate) fn bytes(&self) -> Option<[u8; SIGNATURE_BYTES]> {
        let (start, end) = self.signature.split_at_checked(SIGNATURE_BYTES)?;
        [from_hex(start)?, from_hex(end)?].as_flattened().try_into().ok()
    }
}

/// How far a source that is followed was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Follow {
    /// The column that only grows.
    pub column: String,
    /// The largest value that was read.
    pub last: serde_json::Value,
    /// A short digest of the source's name. Earlier builds left it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Columns that were not taken of all rows up to there: they were passed over, or the source lacked them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
}

impl Follow {
    /// Whether it says how far another source was read. A place without a source fits any.
    pub(crate) fn is_of_another(&self, source: &SourceSpec) -> bool {
        self.source.as_ref().is_some_and(|mark| *mark != source.mark())
    }
}

/// One matrix: its parameters and files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartManifest {
    /// The scheme's name; [`PartManifest::params`] finds it.
    pub scheme: String,
    /// The geometry.
    pub geometry: Geometry,
    /// The layout of the shards' bytes.
    pub layout: String,
    /// The matrix, in order.
    pub shards: Vec<FileEntry>,
    /// The checksums of its tiles; databases of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sums: Option<FileEntry>,
    /// The hint that clients fetch, and behind it the roots of proofs.
    pub hint: FileEntry,
    /// How slots end in proofs, where they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proofs: Option<Proofs>,
    /// The layout of the operands that the server keeps beside the records, where it is one that earlier builds had not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) state_layout: Option<String>,
    /// The operand that the server keeps beside the records, where the scheme has one.
    pub state: Option<FileEntry>,
    /// Those after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) more_state: Vec<FileEntry>,
    /// A seed for each group, where records are found by key.
    pub seeds: Option<FileEntry>,
}

/// A file of the database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Its name within the database's folder.
    pub file: String,
    /// Bytes of its payload.
    pub bytes: u64,
    /// BLAKE3 of its payload, in hexadecimal.
    pub blake3: String,
}

impl PartManifest {
    /// The parameters, checked.
    ///
    /// # Errors
    /// This build doesn't know the scheme, or they are out of range.
    pub fn params(&self) -> Result<Params, blindcore_lookup::Error> {
        Params::new(schemes::find(&self.scheme)?, self.geometry)
    }

    /// The operands that the server keeps beside the records, in the scheme's order.
    pub fn derived(&self) -> impl Iterator<Item = &FileEntry> {
        self.state.iter().chain(&self.more_state)
    }

    /// Every file.
    pub fn files(&self) -> impl Iterator<Item = &FileEntry> {
        self.shards.iter().chain(&self.sums).chain([&self.hint]).chain(self.derived()).chain(&self.seeds)
    }
}

impl ChangesManifest {
    /// Every file.
    pub(crate) fn files(&self) -> impl Iterator<Item = &FileEntry> {
        let keys = self.keys.iter().flat_map(PartManifest::files);
        self.records.files().chain(keys).chain([&self.log])
    }
}

impl Manifest {
    /// Its magic, version and checksum, from all else that it says.
    pub(crate) fn sealed(mut self) -> Self {
        self.magic = MAGIC.into();
        self.version = self.version_it_needs();
        self.checksum = self.compute_checksum();
        self
    }

    fn version_it_needs(&self) -> u32 {
        let second = self.base_epoch.is_some()
            || self.blocks.is_some()
            || self.records.proofs.is_some()
            || self.signed.is_some();
        match self.parts().any(|(_, part)| part.sums.is_some()) {
            _ if self.follow.as_ref().is_some_and(|follow| !follow.without.is_empty()) => VERSION,
            _ if self.follow.as_ref().is_some_and(|follow| follow.source.is_some()) => 7,
            _ if self.parts().any(|(_, part)| part.state_layout.is_some()) => 6,
            _ if self.batches.is_some() => 5,
            _ if self.key_type.is_some() || self.kinds.is_some() => 4,
            true => 3,
            false if second => 2,
            false => 1,
        }
    }

    /// The same, signed.
    pub(crate) fn signed(mut self, by: &SigningKey, digest: &[u8; 32]) -> Self {
        let signature = hex(&by.sign(digest));
        self.signed = Some(Signed { key: to_hex(&by.public()), signature });
        self.sealed()
    }

    fn compute_checksum(&self) -> String {
        let blank = Self { checksum: String::new(), ..self.clone() };
        let json = serde_json::to_vec(&blank).expect("a manifest is JSON");
        blake3::hash(&json).to_hex().to_string()
    }

    pub(crate) fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("a manifest is JSON");
        json.push('\n');
        json
    }

    /// Reads and checks `DIR/manifest.json`.
    ///
    /// # Errors
    /// There is none, it is damaged or foreign, of another version, or says what can't be.
    pub fn read(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(MANIFEST);
        let damaged = |why: String| StoreError::Damaged { path: path.clone(), why };
        match std::fs::metadata(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(StoreError::NoDatabase { path: dir.into() });
            }
            Err(e) => return Err(StoreError::io(&path, "read", e)),
            Ok(m) if !m.is_file() => return Err(damaged("it is not an ordinary file".into())),
            Ok(m) if m.len() > MAX_BYTES => {
                return Err(damaged(format!("it has {} bytes, over the limit of {MAX_BYTES}", m.len())));
            }
            Ok(_) => {}
        }
        let json = std::fs::read(&path).map_err(|e| StoreError::io(&path, "read", e))?;
        Self::parse(&json).map_err(|why| match why {
            Unreadable::Damaged(why) => damaged(why),
            Unreadable::Newer { found, known } => StoreError::Newer { path: path.clone(), found, known },
            Unreadable::Older { table, scheme } => StoreError::Older { path: path.clone(), table, scheme },
            Unreadable::Scheme { table, source } => {
                StoreError::UnknownScheme { path: path.clone(), table, source }
            }
        })
    }

    /// Whether `DIR/manifest.json` says that it is one of ours, whatever else is wrong with it.
    pub(crate) fn is_ours(dir: &Path) -> bool {
        head(dir).windows(MAGIC.len()).any(|w| w == MAGIC.as_bytes())
    }

    /// The epoch that `DIR/manifest.json` says, whatever else is wrong with it.
    pub(crate) fn epoch_of(dir: &Path) -> Option<u64> {
        let head = head(dir);
        let label = b"\"epoch\":";
        let at = head.windows(label.len()).position(|w| w == label)? + label.len();
        let digits = head[at..].trim_ascii_start();
        let end = digits.iter().position(|b| !b.is_ascii_digit())?;
        str::from_utf8(&digits[..end]).ok()?.parse().ok()
    }

    /// The same, without what following a source adds to it, which no reader of the table sees.
    pub(crate) fn without_follow(self) -> Self {
        Self { follow: None, ..self }.sealed()
    }

    /// Whether this is the same epoch of the same table, whatever was read since of a source that is followed.
    #[must_use]
    pub fn is_same_epoch(&self, other: &Self) -> bool {
        self.clone().without_follow() == other.clone().without_follow()
    }

    /// Parses a manifest from its bytes, which may be anybody's.
    ///
    /// # Errors
    /// What is wrong with it, as a clause about "it".
    pub fn parse(json: &[u8]) -> Result<Self, Unreadable> {
        #[derive(Deserialize)]
        struct Start {
            magic: String,
            version: u32,
        }
        let no_manifest = |e: serde_json::Error| format!("it is not a manifest: {e}");
        let start: Start = serde_json::from_slice(json).map_err(no_manifest)?;
        if start.magic != MAGIC {
            let got = start.magic;
            return Err(
                format!("its magic is {got:?} and not {MAGIC:?}: it is not a blindcore manifest").into()
            );
        }
        if start.version > VERSION {
            return Err(Unreadable::Newer { found: start.version, known: VERSION });
        }
        if start.version == 0 {
            return Err("its version is 0, and versions count from 1".to_owned().into());
        }
        let manifest: Self = serde_json::from_slice(json).map_err(no_manifest)?;
        if manifest.checksum != manifest.compute_checksum() {
            return Err("its checksum does not fit: it was changed or damaged".to_owned().into());
        }
        for (_, part) in manifest.parts() {
            if let Err(source) = schemes::find(&part.scheme) {
                return Err(Unreadable::Scheme { table: manifest.name.clone(), source });
            }
            let wanted = part.params().ok().and_then(|params| state_layout(&params));
            if wanted.is_some() && part.state_layout.is_none() {
                return Err(Unreadable::Older { table: manifest.name.clone(), scheme: part.scheme.clone() });
            }
        }
        manifest.check()?;
        Ok(manifest)
    }

    /// A checksum only tells what was written; this tells whether it can be.
    fn check(&self) -> Result<(), String> {
        if self.salt()?.is_some() != self.key.is_some() || (self.keys.is_some() && self.key.is_none()) {
            return Err("it names a key without its salt, or the other way round".into());
        }
        if (self.key_type.is_some() && self.key.is_none())
            || self.kinds.as_ref().is_some_and(|kinds| kinds.len() != self.values.len())
        {
            return Err("its key type or its kinds of values don't fit its columns".into());
        }
        if self.records.seeds.is_some() != self.key.is_some() {
            return Err("its keyword seeds don't fit its key".into());
        }
        if self.version != self.version_it_needs()
            || self.base_epoch() > self.epoch
            || self.base_epoch == Some(self.epoch)
            || (self.changes.is_some() && self.base_epoch.is_none())
        {
            return Err("its epochs or proofs don't fit its version".into());
        }
        if self.signed.as_ref().is_some_and(|s| s.bytes().is_none()) {
            return Err("its signature is none".into());
        }
        if let Some(changes) = &self.changes {
            if from_hex(&changes.salt).is_none() || changes.records.seeds.is_none() {
                return Err("its changes have no salt or no seeds".into());
            }
            if changes.base_rows > self.rows || changes.removed > self.rows {
                return Err("its changes count more rows than there are".into());
            }
            check_file(&changes.log)?;
        }
        if let Some(batches) = &self.batches {
            let most = blindcore_lookup::batch::MAX_BUCKETS as u32;
            if self.key.is_none() || self.blocks.is_some() || !(2..=most).contains(&batches.buckets) {
                return Err("its batches don't fit its keys, or their buckets are too few or too many".into());
            }
        }
        for (kind, part) in self.parts() {
            let params = part.params().map_err(|e| e.to_string())?;
            let (records, buckets) = (params.records(), u64::from(self.buckets(kind)));
            if part.layout != records.layout.name() {
                return Err(format!("its layout {:?} is unknown", part.layout));
            }
            if part.state_layout != state_layout(&params) {
                return Err("the layout of its state is unknown".into());
            }
            let (stripe, bytes) =
                (records.stripe_bytes() as u64, (records.bytes() as u64).saturating_mul(buckets));
            let total = part.shards.iter().try_fold(0u64, |sum, s| {
                (s.bytes % stripe == 0 && s.bytes > 0).then_some(sum.checked_add(s.bytes)).flatten()
            });
            if total != Some(bytes) {
                return Err("its shards don't make its matrix".into());
            }
            let sums = tile_checksums::bytes(bytes);
            if part.sums.as_ref().is_some_and(|s| s.bytes != sums) {
                return Err("its checksums of tiles are not as many as its matrix has".into());
            }
            let groups = (params.geometry.groups as u64).saturating_mul(buckets);
            let seeds = part.seeds.as_ref().map_or(groups, |s| s.bytes);
            let derived = part.derived().map(|file| file.bytes);
            let roots = part.proofs.map_or(0, |p| p.root_bytes());
            let of_all = |operand: Operand| (operand.bytes() as u64).saturating_mul(buckets);
            if part.hint.bytes != params.hint_bytes().saturating_mul(buckets).saturating_add(roots)
                || !derived.eq(params.stored_operands().skip(1).map(of_all))
                || seeds != groups
                || part.seeds.is_none() && kind == PartKind::Batches
            {
                return Err("its hint, state or seeds have another size than its parameters make".into());
            }
            part.files().try_for_each(check_file)?;
        }
        Ok(())
    }

    /// Matrices of a part, of the same parameters each: 1, but of batches.
    pub(crate) fn buckets(&self, kind: PartKind) -> u32 {
        self.batches.as_ref().filter(|_| kind == PartKind::Batches).map_or(1, |batches| batches.buckets)
    }

    /// How many slots of `records` a record takes.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.blocks.unwrap_or(1)
    }

    /// The epoch at which `records` and `keys` were built.
    #[must_use]
    pub fn base_epoch(&self) -> u64 {
        self.base_epoch.unwrap_or(self.epoch)
    }

    /// Rows that `records` and `keys` hold.
    #[must_use]
    pub fn base_rows(&self) -> u64 {
        self.changes.as_ref().map_or(self.rows, |c| c.base_rows)
    }

    /// Rows that are there: not those that were removed.
    #[must_use]
    pub fn live_rows(&self) -> u64 {
        self.rows - self.changes.as_ref().map_or(0, |c| c.removed)
    }

    /// What a person should know of a new table. Without a key: what its rows are found by, and how to find them by something
    /// else. With a column of its own that updates use: that updates can't use it.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let columns = self.values.join(", ");
        let without_key = self.key.is_none().then(|| {
            format!(
                "note: no key was named, so rows are found by their number from 0 alone (get --index 0); build again with --key \
                 COLUMN to find them by one of: {columns}"
            )
        });
        let own = self.values.iter().chain(&self.key).any(|column| column == CHANGE_COLUMN);
        let change = own.then(|| {
            format!(
                "note: {CHANGE_COLUMN} is a column of the table itself, so updates can't remove rows by it; to remove rows, build again without \
                 this column or under another name"
            )
        });
        without_key.into_iter().chain(change).collect()
    }

    /// Every matrix.
    pub fn parts(&self) -> impl Iterator<Item = (PartKind, &PartManifest)> {
        let changes = self.changes.as_ref();
        let new_keys = changes.and_then(|c| c.keys.as_ref());
        let batches = self.batches.as_ref().map(|batches| &batches.records);
        let parts = [Some(&self.records), self.keys.as_ref(), changes.map(|c| &c.records), new_keys, batches];
        PartKind::ALL.into_iter().zip(parts).filter_map(|(kind, part)| Some((kind, part?)))
    }

    /// The epoch at which a matrix was built.
    #[must_use]
    pub fn part_epoch(&self, kind: PartKind) -> u64 {
        if kind.is_base() { self.base_epoch() } else { self.epoch }
    }

    /// Every file.
    pub fn files(&self) -> impl Iterator<Item = &FileEntry> {
        let base = self.parts().filter(|(kind, _)| kind.is_base()).flat_map(|(_, part)| part.files());
        base.chain(self.changes.iter().flat_map(ChangesManifest::files))
    }

    /// The salt of the keys' hashes.
    ///
    /// # Errors
    /// It is not 64 hexadecimal digits.
    pub fn salt(&self) -> Result<Option<[u8; 32]>, String> {
        match &self.salt {
            None => Ok(None),
            Some(hex) => {
                from_hex(hex).map(Some).ok_or_else(|| "its salt is not 64 hexadecimal digits".into())
            }
        }
    }
}

/// What `DIR/manifest.json` begins with; nothing where it can't be read.
fn head(dir: &Path) -> Vec<u8> {
    use std::io::Read;
    let mut head = Vec::new();
    let path = dir.join(MANIFEST);
    let file = std::fs::metadata(&path).is_ok_and(|m| m.is_file()).then(|| std::fs::File::open(&path));
    if let Some(Ok(file)) = file {
        let _ = file.take(4096).read_to_end(&mut head);
    }
    head
}

/// Why a manifest can't be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// What is wrong with it, as a clause about "it".
    #[error("{0}")]
    Damaged(String),
    /// A newer blindcore made it.
    #[error("its format is version {found}, and this build reads up to {known}: a newer blindcore made it")]
    Newer {
        /// Its version.
        found: u32,
        /// The newest that is known.
        known: u32,
    },
    /// An earlier blindcore made it, and laid its polynomials out otherwise.
    #[error(
        "table {table:?}: an earlier blindcore laid the polynomials of {scheme} out otherwise; build the database again"
    )]
    Older {
        /// The table's name.
        table: String,
        /// Its scheme.
        scheme: String,
    },
    /// Its table is of a scheme that this build has not.
    #[error("table {table:?}: {source}")]
    Scheme {
        /// The table's name.
        table: String,
        /// Which scheme, and which are known.
        source: blindcore_lookup::Error,
    },
}

impl From<String> for Unreadable {
    fn from(why: String) -> Self {
        Self::Damaged(why)
    }
}

/// What a manifest says of the layout of a part's operands beside the records: nothing where it is as earlier builds had it.
pub(crate) fn state_layout(params: &Params) -> Option<String> {
    let mut layouts = params.stored_operands().skip(1).map(|operand| operand.layout);
    layouts.find(|layout| *layout == Layout::Lanes8x4).map(|layout| layout.name().into())
}

/// A number of blocks, said where it is not one.
pub(crate) fn some_blocks(blocks: u32) -> Option<u32> {
    Some(blocks).filter(|n| *n > 1)
}

fn check_file(entry: &FileEntry) -> Result<(), String> {
    let mut components = Path::new(&entry.file).components();
    if !matches!((components.next(), components.next()), (Some(first), None) if is_plain(&first)) {
        return Err("it names a file outside its folder".into());
    }
    if from_hex(&entry.blake3).is_none() {
        return Err("it has a checksum that is none".into());
    }
    Ok(())
}

fn is_plain(component: &std::path::Component<'_>) -> bool {
    matches!(component, std::path::Component::Normal(_))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

pub(crate) fn to_hex(bytes: &[u8; 32]) -> String {
    blake3::Hash::from_bytes(*bytes).to_hex().to_string()
}

pub(crate) fn from_hex(hex: &str) -> Option<[u8; 32]> {
    blake3::Hash::from_hex(hex).ok().map(|h| *h.as_bytes())
}
