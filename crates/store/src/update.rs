//! Changes to a database: rows set or removed become a small table beside the base, which stays as it is.
//!
//! ```text
//!   changes so far (log) ─┐
//!                         ├─▶ sorted by key ─▶ the last word on each key ─▶ log, records ─▶ solved ─▶ hint
//!   CHANGES ──rows────────┘          against the base: added, changed, removed, or nothing new
//! ```
//!
//! What it costs goes with the rows that differ from the base, not with the base. All new files are made in a hidden
//! folder within the database, moved beside the others, and named by a manifest that replaces the old one in one
//! step; a server that serves the epoch before has its files open and goes on.

use std::path::{Path, PathBuf};

use blindcore_accel::{Device, SharedBytes};
use blindcore_files::new_file::{self, sync_folder};
use blindcore_lookup::keyword::KeyHash;
use blindcore_lookup::{Params, SchemeChoice};
use blindcore_units::Progress;
use blindcore_wire::signature::SigningKey;
use blindcore_wire::{Change, PartKind, Value, proof};

use crate::build::{MAX_LONG_RECORD_BYTES, as_records_do, cut, new_salt, plan_keyed};
use crate::folder::{WORK, lock};
use crate::job::{Build, Wanted, entry};
use crate::manifest::{ChangesManifest, FileEntry, Follow, MANIFEST, Manifest, some_blocks, to_hex};
use crate::section::{Kind, Writer};
use crate::source::Position;
use crate::stages::{self, READING};
use crate::{ExternalSort, Order, Source, SourceSpec, StoreError, Stored, build, codec};

/// The column of CHANGES that says what happens to a row: `set`, also where it is empty, or `remove`.
pub const CHANGE_COLUMN: &str = "_change";
/// The column of CHANGES that says which row is meant in a table without keys; empty for a row that is added.
pub const ROW_COLUMN: &str = "_row";
/// Rows between two words of how far it is.
const ROWS_A_WORD: u64 = 1024;

/// What to change.
#[derive(Clone, Debug)]
pub struct UpdateOptions {
    /// The database.
    pub dir: PathBuf,
    /// Where changed rows come from: the table's columns, and perhaps [`CHANGE_COLUMN`] and [`ROW_COLUMN`].
    pub changes: SourceSpec,
    /// A column of the source that only grows: rows below what an update before this one saw are not asked for.
    pub follow: Option<String>,
    /// The new epoch's signer.
    pub sign: Option<SigningKey>,
    /// Bytes of memory for sorting.
    pub memory: usize,
}

/// What an update did.
#[derive(Clone, Debug)]
pub struct Updated {
    /// The database now.
    pub manifest: Manifest,
    /// Whether that is a new epoch: not where nothing is different.
    pub published: bool,
    /// Rows that were not there.
    pub added: u64,
    /// Rows that had another record.
    pub changed: u64,
    /// Rows that are gone.
    pub removed: u64,
    /// Rows that were so already, removed ones that were not there among them.
    pub unchanged: u64,
    /// Rows that differ from the base in all, which every lookup looks through.
    pub changes: u64,
}

/// Brings a database to its next epoch.
///
/// # Errors
/// The database, the source, a row, the disk or the progress, which may say stop: the epoch before stands then.
pub fn update(
    options: &UpdateOptions,
    device: &Device,
    progress: &mut dyn Progress,
) -> Result<Updated, StoreError> {
    let dir = &options.dir;
    let _lock = lock(dir)?;
    let stored = Stored::open(dir)?;
    let old = stored.manifest();
    stored.records.check_cells()?;
    sweep(dir, old);
    let work = Work::create(dir)?;
    let epoch = old.epoch.checked_add(1).ok_or_else(|| StoreError::Unfit("the epochs are used up".into()))?;

    let mut rows = Rows::new(&stored, options, &work.0)?;
    let read = rows.read(progress)?;
    let salt = new_salt()?;
    let merged = merge(&stored, options, &work.0, read.sorted, old.rows, &salt)?;
    let counts = merged.counts;
    let last = read.last.or_else(|| old.follow.as_ref().map(|f| f.last.clone()));
    let follow = options.follow.clone().zip(last).map(|(column, last)| Follow { column, last });
    if counts.added + counts.changed + counts.removed == 0 {
        let manifest = old.clone();
        return Ok(counts.outcome(manifest, false, old.changes.as_ref().map_or(0, |_| merged.count)));
    }

    let build = Build { dir: &work.0, device, origin: options.changes.to_string(), epoch };
    let base_rows = old.base_rows();
    let changes = if merged.count == 0 {
        None
    } else {
        let proofs = as_records_do(old.records.proofs.is_some());
        let beside = SchemeChoice::beside(stored.records.params.scheme);
        let (mut records, blocks) = cut(&work.0, options.memory, merged.records, &salt)?;
        let (params, depth) = plan_keyed(&mut records, 2, beside, proofs)?;
        let prefix = format!("changes-{epoch}");
        let wanted = Wanted { kind: PartKind::Changes, prefix: &prefix, params, depth, keyed: true };
        let slots = records.count();
        let records = build.part(&wanted, records.finish()?, slots, progress)?;
        let added = merged.keys.count();
        let keys = if added == 0 || stored.keys.is_none() {
            None
        } else {
            let prefix = format!("{prefix}-keys");
            let longest = merged.keys.max_payload();
            let (params, depth) = proof::plan(added, longest, false, beside, proofs)?;
            let wanted = Wanted { kind: PartKind::NewKeys, prefix: &prefix, params, depth, keyed: false };
            Some(build.part(&wanted, merged.keys.finish()?, added, progress)?)
        };
        let log = write_log(&work.0, &params, epoch, &mut merged.log.finish()?)?;
        let salt = to_hex(&salt);
        let blocks = some_blocks(blocks);
        Some(ChangesManifest { base_rows, removed: merged.removed, blocks, salt, records, keys, log })
    };
    let manifest = Manifest {
        epoch,
        rows: merged.rows,
        base_epoch: Some(old.base_epoch()),
        changes,
        follow: follow.or_else(|| old.follow.clone()),
        signed: None,
        ..old.clone()
    };
    let manifest = manifest.sealed();
    let manifest = publish(dir, &work.0, manifest, options.sign.as_ref())?;
    sweep(dir, &manifest);
    Ok(counts.outcome(manifest, true, merged.count))
}

struct Work(PathBuf);

impl Work {
    fn create(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(WORK);
        std::fs::create_dir(&path).map_err(|e| StoreError::io(&path, "made", e))?;
        Ok(Self(path))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Removes what killed updates left, and the changes of epochs before this one.
fn sweep(dir: &Path, manifest: &Manifest) {
    let _ = std::fs::remove_dir_all(dir.join(WORK));
    // Of a build that was killed once its database stood.
    let _ = std::fs::remove_file(dir.join(crate::folder::LOCK));
    let known: std::collections::HashSet<&str> = manifest.files().map(|f| f.file.as_str()).collect();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("changes-") && !known.contains(&*name) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Moves the new files beside the others, signs the manifest if there is a signer, and replaces the one before.
fn publish(
    dir: &Path,
    work: &Path,
    manifest: Manifest,
    by: Option<&SigningKey>,
) -> Result<Manifest, StoreError> {
    let changes = manifest.changes.iter();
    let files =
        changes.flat_map(|c| c.records.files().chain(c.keys.iter().flat_map(|k| k.files())).chain([&c.log]));
    for entry in files {
        let to = dir.join(&entry.file);
        std::fs::rename(work.join(&entry.file), &to).map_err(|e| StoreError::io(&to, "made", e))?;
    }
    let manifest = build::signed(dir, manifest, by)?;
    let new = work.join(MANIFEST);
    let write = || {
        std::fs::write(&new, manifest.to_json())?;
        sync_folder(dir)?;
        new_file::publish(&new, &dir.join(MANIFEST))
    };
    write().map_err(|e| StoreError::io(&dir.join(MANIFEST), "written", e))?;
    Ok(manifest)
}

/// What is known of a row that differs from the base, or might.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// Its number, where it is not one of the base's. [`UNKNOWN`] otherwise.
    number: u64,
    key: Vec<u8>,
    /// Its record; none where it is gone.
    record: Option<Vec<u8>>,
}

const UNKNOWN: u64 = u64::MAX;

impl Entry {
    /// The number in 8 bytes, 1 or 0, the key's length in 2, the key, the record.
    fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.number.to_le_bytes());
        out.push(self.record.is_some().into());
        out.extend_from_slice(&(self.key.len() as u16).to_le_bytes());
        out.extend_from_slice(&self.key);
        out.extend_from_slice(self.record.as_deref().unwrap_or_default());
    }

    /// `None` for what [`Entry::encode`] never wrote.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (number, rest) = bytes.split_first_chunk::<8>()?;
        let (there, rest) = rest.split_first()?;
        let (len, rest) = rest.split_first_chunk::<2>()?;
        let (key, record) = rest.split_at_checked(u16::from_le_bytes(*len).into())?;
        let record = match there {
            1 => Some(record.to_vec()),
            0 if record.is_empty() => None,
            _ => return None,
        };
        Some(Self { number: u64::from_le_bytes(*number), key: key.to_vec(), record })
    }
}

/// The log of a database's changes: each entry after its length in 4 bytes.
struct Log {
    bytes: SharedBytes,
    at: usize,
}

impl Iterator for Log {
    type Item = Option<Entry>;

    fn next(&mut self) -> Option<Option<Entry>> {
        let rest = &(*self.bytes).as_ref()[self.at..];
        if rest.is_empty() {
            return None;
        }
        let entry = rest.split_first_chunk::<4>().and_then(|(len, rest)| {
            let len = u32::from_le_bytes(*len) as usize;
            self.at += 4 + len;
            Entry::decode(rest.get(..len)?)
        });
        if entry.is_none() {
            self.at = (*self.bytes).as_ref().len();
        }
        Some(entry)
    }
}

fn write_log(
    work: &Path,
    params: &Params,
    epoch: u64,
    entries: &mut crate::Entries,
) -> Result<FileEntry, StoreError> {
    let path = work.join(format!("changes-{epoch}.log"));
    let mut writer = Writer::create(path, Kind::Log, params.digest(), epoch)?;
    for entry in entries {
        let payload = entry?.payload;
        writer.write(&(payload.len() as u32).to_le_bytes())?;
        writer.write(&payload)?;
    }
    let (path, header) = writer.finish()?;
    Ok(entry(&path, &header))
}

/// Rows of CHANGES, matched with the table's columns.
struct Rows<'a> {
    stored: &'a Stored,
    origin: String,
    source: Box<dyn Source>,
    key: Option<usize>,
    /// None where the source lacks one of them, which only rows that are removed do without.
    values: Result<Vec<usize>, String>,
    change: Option<usize>,
    row: Option<usize>,
    follow: Option<usize>,
    sorted: ExternalSort,
}

struct Read {
    sorted: ExternalSort,
    /// The largest value of the column that is followed.
    last: Option<serde_json::Value>,
}

impl<'a> Rows<'a> {
    fn new(stored: &'a Stored, options: &UpdateOptions, work: &Path) -> Result<Self, StoreError> {
        let manifest = stored.manifest();
        let spec = match &options.follow {
            None => options.changes.clone(),
            Some(column) => {
                let last = manifest.follow.as_ref().filter(|f| f.column == *column).map(|f| &f.last);
                options.changes.since(column, last)?
            }
        };
        let origin = spec.to_string();
        let source = spec.open(None)?;
        let columns = source.columns();
        let find = |name: &str| columns.iter().position(|c| c == name);
        let need = |name: &str| {
            find(name).ok_or_else(|| {
                format!("{origin} has no column {name:?}; its columns are {}", columns.join(", "))
            })
        };
        let key = manifest.key.as_deref().map(need).transpose().map_err(StoreError::Unfit)?;
        let values = manifest.values.iter().map(|name| need(name)).collect();
        let follow = options.follow.as_deref().map(need).transpose().map_err(StoreError::Unfit)?;
        // A table may have columns of these names itself.
        let own =
            |name: &str| Some(name) == manifest.key.as_deref() || manifest.values.iter().any(|v| v == name);
        let special = |name: &str| if own(name) { None } else { find(name) };
        let row = if key.is_none() { special(ROW_COLUMN) } else { None };
        let (change, row) = (special(CHANGE_COLUMN), row);
        // What is meant for an update and read by none would do something else than it says.
        let known = [Some(CHANGE_COLUMN), key.is_none().then_some(ROW_COLUMN)];
        let foreign = |c: &&String| c.starts_with('_') && !own(c) && !known.contains(&Some(c));
        if let Some(foreign) = columns.iter().find(foreign) {
            let row = if key.is_none() { format!(" and {ROW_COLUMN}") } else { String::new() };
            return Err(StoreError::Unfit(format!(
                "{origin} has a column {foreign:?}, which is none of the table's; an update of it knows {CHANGE_COLUMN}{row}, \
                 so rename it or leave it out"
            )));
        }
        let sorted = ExternalSort::new(work, options.memory, Order::Hash);
        Ok(Self { stored, origin, source, key, values, change, row, follow, sorted })
    }

    /// Reads all, the changes so far before them. Keys are not hashed yet but by BLAKE3 without a salt: it only
    /// brings equal ones together.
    fn read(&mut self, progress: &mut dyn Progress) -> Result<Read, StoreError> {
        let mut payload = Vec::new();
        if let Some((path, bytes)) = self.stored.checked_log()? {
            for entry in (Log { bytes, at: 0 }) {
                let entry = entry.ok_or_else(|| StoreError::Damaged {
                    path: path.clone(),
                    why: "an entry in it is cut or is none".into(),
                })?;
                entry.encode(&mut payload);
                self.sorted.push(group_of(&entry.key), 0, &payload)?;
            }
        }
        let (mut rows, mut order) = (self.stored.manifest().rows, 0u64);
        let mut last = None;
        while let Some(row) = self.source.next_row()? {
            order += 1;
            let fail = |why: String| StoreError::Row { origin: self.origin.clone(), line: row.line, why };
            let entry = self.entry(&row.values, &mut rows).map_err(fail)?;
            entry.encode(&mut payload);
            self.sorted.push(group_of(&entry.key), order, &payload)?;
            if let Some(follow) = self.follow {
                later(&mut last, &row.values[follow]).map_err(fail)?;
            }
            if order.is_multiple_of(ROWS_A_WORD) {
                self.tell(progress)?;
            }
        }
        self.tell(progress)?;
        let sorted = std::mem::replace(&mut self.sorted, ExternalSort::new(Path::new("."), 0, Order::Hash));
        Ok(Read { sorted, last: last.map(|v| v.to_json()) })
    }

    fn tell(&self, progress: &mut dyn Progress) -> Result<(), StoreError> {
        let Position { done, total, unit } = self.source.position();
        stages::at(progress, READING, done, total, unit)
    }

    /// What a row of CHANGES says. `rows` counts those of a table without keys.
    fn entry(&self, cells: &[Value], rows: &mut u64) -> Result<Entry, String> {
        let remove = match self.change.map(|i| &cells[i]) {
            None | Some(Value::Null) => false,
            Some(Value::Text(text)) if text.is_empty() || text == "set" => false,
            Some(Value::Text(text)) if text == "remove" => true,
            Some(Value::Text(text)) => {
                return Err(format!("its {CHANGE_COLUMN} is {}; write set or remove", short(text)));
            }
            Some(_) => return Err(format!("its {CHANGE_COLUMN} is not text; write set or remove")),
        };
        let record = if remove {
            None
        } else {
            let mut record = Vec::new();
            let values: Vec<Value> =
                self.values.as_ref().map_err(Clone::clone)?.iter().map(|i| cells[*i].clone()).collect();
            codec::encode_record(&values, &mut record);
            if record.len() > MAX_LONG_RECORD_BYTES {
                return Err(format!(
                    "its record has {} bytes, over the limit of {MAX_LONG_RECORD_BYTES}; shorten its columns",
                    record.len()
                ));
            }
            Some(record)
        };
        if let Some(key) = self.key {
            let key = codec::encode_key(&cells[key]).map_err(|e| e.to_string())?;
            return Ok(Entry { number: UNKNOWN, key, record });
        }
        let number = match self.row.map(|i| &cells[i]) {
            None | Some(Value::Null) => None,
            Some(Value::Text(text)) if text.is_empty() => None,
            Some(Value::Text(text)) => Some(text.parse::<u64>().map_err(|_| text.clone())),
            Some(Value::Int(n)) => Some(u64::try_from(*n).map_err(|_| n.to_string())),
            Some(other) => Some(Err(other.to_json().to_string())),
        };
        let number = match number {
            None if remove => return Err(format!("it removes no row; say which in {ROW_COLUMN}")),
            None => {
                *rows += 1;
                *rows - 1
            }
            Some(Ok(number)) if number < *rows => number,
            Some(Ok(number)) => {
                return Err(format!(
                    "its {ROW_COLUMN} is {number}, and the table has {rows} rows, counted from 0; leave \
                     {ROW_COLUMN} empty to add one"
                ));
            }
            Some(Err(text)) => {
                return Err(format!(
                    "its {ROW_COLUMN} is {}, no row number; count rows from 0",
                    short(&text)
                ));
            }
        };
        Ok(Entry { number, key: number.to_le_bytes().to_vec(), record })
    }
}

/// A stranger's text, fit for a line.
fn short(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(40).collect();
    format!("{start:?}{}", if chars.next().is_some() { " ..." } else { "" })
}

/// What brings equal keys together.
fn group_of(key: &[u8]) -> u128 {
    u128::from_le_bytes(blake3::hash(key).as_bytes()[..16].try_into().expect("16 bytes"))
}

/// Keeps the larger of two values of a column that only grows.
fn later(last: &mut Option<Value>, value: &Value) -> Result<(), String> {
    let larger = match (&*last, value) {
        (_, Value::Null) => false,
        (None, Value::Int(_) | Value::Real(_) | Value::Text(_)) => true,
        (Some(Value::Int(a)), Value::Int(b)) => b > a,
        (Some(Value::Real(a)), Value::Real(b)) => b > a,
        (Some(Value::Text(a)), Value::Text(b)) => b > a,
        _ => {
            return Err("the column that is followed holds what has no order; follow numbers or times".into());
        }
    };
    if larger {
        *last = Some(value.clone());
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    added: u64,
    changed: u64,
    removed: u64,
    unchanged: u64,
}

impl Counts {
    fn outcome(self, manifest: Manifest, published: bool, changes: u64) -> Updated {
        let Self { added, changed, removed, unchanged } = self;
        Updated { manifest, published, added, changed, removed, unchanged, changes }
    }
}

/// The rows that differ from the base.
struct Merged {
    counts: Counts,
    count: u64,
    /// Of the table, those that are gone included.
    rows: u64,
    /// Of those, how many are gone.
    removed: u64,
    /// What the next update reads.
    log: ExternalSort,
    /// Slots of part `changes`, by the hash of their keys.
    records: ExternalSort,
    /// Slots of part `new_keys`, in order.
    keys: ExternalSort,
}

/// The last word on each key, against the base.
fn merge(
    stored: &Stored,
    options: &UpdateOptions,
    work: &Path,
    sorted: ExternalSort,
    rows: u64,
    salt: &[u8; 32],
) -> Result<Merged, StoreError> {
    let sort_of = |order| ExternalSort::new(work, options.memory / 4, order);
    let description = stored.description()?;
    let mut counts = Counts::default();
    // Entries without a number yet, and the order in which they came.
    let (mut finals, mut fresh) = (sort_of(Order::Arrival), sort_of(Order::Hash));
    let mut payload = Vec::new();
    let mut entries = sorted.finish()?.peekable();
    while let Some(first) = entries.next() {
        let first = first?;
        let (hash, before_line) = (first.hash, first.line);
        let mut last = decoded(&first.payload);
        let old = (before_line == 0).then(|| last.clone());
        // The line at which a key that is new first came.
        let mut came = before_line;
        while let Some(next) = entries.next_if(|e| e.as_ref().map_or(true, |e| e.hash == hash)) {
            let next = next?;
            came = if came == 0 { next.line } else { came };
            last = Entry { number: last.number, ..decoded(&next.payload) };
        }
        let base = stored.base_record(description.index(), &last.key)?;
        let is_new = base.is_none() && old.is_none();
        // Whether there was a row, and the same one.
        let there = old.as_ref().map_or(base.is_some(), |old| old.record.is_some());
        let as_in_base = match (base, &last.record) {
            (Some(base), Some(record)) => same_record(base, record)?,
            // A row that was numbered keeps its number.
            _ => is_new && last.record.is_none() && last.number == UNKNOWN,
        };
        let same = match &old {
            Some(old) => {
                matches!((&old.record, &last.record), (Some(a), Some(b)) if same_record(a.iter().copied().map(Ok), b)?)
            }
            None => as_in_base,
        };
        let came_now = came != 0;
        match (there, last.record.is_some()) {
            _ if !came_now => {}
            (false, false) => counts.unchanged += 1,
            (true, true) if same => counts.unchanged += 1,
            (true, true) => counts.changed += 1,
            (false, true) => counts.added += 1,
            (true, false) => counts.removed += 1,
        }
        if as_in_base {
            continue;
        }
        if is_new && last.number == UNKNOWN {
            fresh.push(came.into(), 0, &hash.to_le_bytes())?;
        }
        last.encode(&mut payload);
        finals.push(hash, 0, &payload)?;
    }
    let (mut log, mut records, mut keys) =
        (sort_of(Order::Arrival), sort_of(Order::Hash).counted(), sort_of(Order::Hash));
    let mut table_rows = rows;
    let mut numbers = sort_of(Order::Hash);
    for entry in fresh.finish()? {
        let hash = u128::from_le_bytes(entry?.payload[..16].try_into().expect("16 bytes"));
        numbers.push(hash, table_rows, &[])?;
        table_rows += 1;
    }
    let mut numbers = numbers.finish()?.peekable();
    let (mut count, mut removed) = (0, 0);
    let directory = stored.keys.is_some();
    for entry in finals.finish()? {
        let crate::Entry { hash, payload: bytes, .. } = entry?;
        let mut entry = decoded(&bytes);
        if let Some(number) = numbers.next_if(|n| n.as_ref().map_or(true, |n| n.hash == hash)) {
            entry.number = number?.line;
        }
        table_rows = table_rows.max(if stored.manifest().key.is_none() { entry.number + 1 } else { 0 });
        entry.encode(&mut payload);
        log.push(0, 0, &payload)?;
        let key_hash = KeyHash::new(salt, &entry.key);
        payload.clear();
        payload.extend_from_slice(&key_hash.fingerprint);
        entry.record.as_deref().map_or(Change::Removed, Change::Set).encode(&mut payload);
        records.push(key_hash.order(), count, &payload)?;
        if directory && entry.number != UNKNOWN {
            let len = (entry.key.len() as u16).to_le_bytes();
            keys.push(entry.number.into(), 0, &[&len[..], &entry.key].concat())?;
        }
        removed += u64::from(entry.record.is_none());
        count += 1;
    }
    Ok(Merged { counts, count, rows: table_rows, removed, log, records, keys })
}

/// What this update wrote itself.
fn decoded(payload: &[u8]) -> Entry {
    Entry::decode(payload).expect("written by this update")
}

/// Whether two records are the same but for zeros behind them.
fn same_record(a: impl Iterator<Item = Result<u8, StoreError>>, b: &[u8]) -> Result<bool, StoreError> {
    let mut b = b.iter().copied();
    for a in a {
        if a? != b.next().unwrap_or(0) {
            return Ok(false);
        }
    }
    Ok(b.all(|b| b == 0))
}
