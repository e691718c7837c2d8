//! From a source to a database: read, sort, choose parameters, fill the matrix, compute the hint.
//!
//! ```text
//!   source ──rows──▶ records, sorted by key hash ─────────────▶ buckets solved ─▶ shards ─▶ hint
//!              └───▶ keys, in order of arrival ───────────────▶ packed ────────▶ shards ─▶ hint
//! ```
//!
//! Parameters follow from the number of rows and the longest record, so nothing can be laid out before the
//! last row was read: everything rests in sorted files meanwhile. All files are made in a hidden folder beside the
//! output, which is put in its place at the end; whatever ends a build before leaves the output as it was.

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};

use blindcore_accel::{Device, keep_freed_memory};
use blindcore_lookup::batch::Buckets;
use blindcore_lookup::keyword::{self, FINGERPRINT_BYTES, KeyHash};
use blindcore_lookup::{Geometry, MAX_RECORD_BYTES, Params, SchemeChoice, plan_blocks, schemes};
use blindcore_units::{Progress, bytes};
use blindcore_wire::proof::{self};
use blindcore_wire::signature::SigningKey;
use blindcore_wire::{KeyType, PartKind, ProofChoice, SHORT_HINT_BYTES};

use crate::folder::Folder;
use crate::job::{Build, Wanted};
use crate::kinds::Kinds;
use crate::manifest::{BatchesManifest, MANIFEST, Manifest, some_blocks, to_hex};
use crate::signer::{check_proofs, check_signer};
use crate::source::{Ahead, Batch, MAX_ROW_BYTES, dir};
use crate::stages::{self, READING};
use crate::{Entry, ExternalSort, Order, SourceSpec, StoreError, Stored, codec};

/// What to build.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// Where the rows come from.
    pub source: SourceSpec,
    /// The column that rows are found by; `None` for a table found by index alone.
    pub key: Option<String>,
    /// The columns of a record; `None` for all but the key.
    pub values: Option<Vec<String>>,
    /// The table's name; `None` for the source's own.
    pub name: Option<String>,
    /// The folder to make.
    pub out: PathBuf,
    /// Which scheme.
    pub scheme: SchemeChoice,
    /// Whether clients can tell a wrong answer.
    pub proofs: ProofChoice,
    /// Its signer. A signed table has proofs.
    pub sign: Option<SigningKey>,
    /// Whether a signed database may be replaced by one that another key signs, or none.
    pub change_signer: bool,
    /// How many keys can be asked for in one request, where that is more than one after another: the records are then kept
    /// three times more, in buckets ([`blindcore_lookup::batch`]). The table has keys, and its records one slot each.
    pub batch: Option<usize>,
    /// Whether a table with keys can also be read by index, through a directory of its keys.
    pub directory: bool,
    /// Whether to replace a database that is there.
    pub force: bool,
    /// Bytes of memory for sorting.
    pub memory: usize,
}

impl BuildOptions {
    /// All rows and columns of a source, found by index, with what suits most tables.
    #[must_use]
    pub fn new(source: SourceSpec, out: impl Into<PathBuf>) -> Self {
        Self {
            source,
            key: None,
            values: None,
            name: None,
            out: out.into(),
            scheme: SchemeChoice::Auto,
            proofs: ProofChoice::Auto,
            sign: None,
            change_signer: false,
            batch: None,
            directory: true,
            force: false,
            memory: ExternalSort::DEFAULT_MEMORY,
        }
    }
}

/// Bytes of a record by key, at most: what a row has, and what is put before its values.
pub const MAX_LONG_RECORD_BYTES: usize = MAX_ROW_BYTES + (64 << 10);

/// Builds a database.
///
/// # Errors
/// The source, a row, the parameters, the disk or the progress, which may say stop: nothing is left at the output then, and what was
/// there before is as it was. So it is where another build makes the same folder, and where an update or another build published
/// an epoch there after this one began: the first to publish stays.
pub fn build(
    options: &BuildOptions,
    device: &Device,
    progress: &mut dyn Progress,
) -> Result<Manifest, StoreError> {
    let name = table_name(options)?;
    let buckets = options.batch.map(Buckets::for_keys).transpose()?;
    if buckets.is_some() && options.key.is_none() {
        return Err(StoreError::Unfit(
            "batches are of keys, and none was named; choose a column with --key, or leave --batch out"
                .into(),
        ));
    }
    if options.source.holds(&options.out) {
        let (out, source) = (options.out.display(), &options.source);
        return Err(StoreError::Unfit(format!(
            "--out {out} lies in {source}, so the build would read what it writes; choose a folder outside"
        )));
    }
    let by = options.sign.as_ref();
    let proofs = match options.proofs {
        // No client would trust the signature otherwise.
        ProofChoice::Auto if by.is_some() => ProofChoice::With,
        said => said,
    };
    if by.is_some() {
        check_proofs(&options.out, proofs != ProofChoice::Without)?;
    }
    keep_freed_memory();
    let folder = Folder::create(&options.out, options.force)?;
    check_signer(&options.out, folder.replaces(), by, options.change_signer)?;
    let dir = folder.path().to_owned();
    let mut read = read(options, &dir, progress)?;
    // A build that can't be published ends before the long part of its work.
    folder.check()?;
    let rows = read.records.count();
    if rows == 0 {
        return Err(StoreError::Unfit(format!("{} has no rows; a table needs at least one", options.source)));
    }

    let epoch = folder.epoch;
    let build = Build { dir: &dir, device, origin: &options.source, epoch };
    let (mut blocks, keyed) = (1, read.salt.is_some());
    let (params, depth) = match read.salt {
        None => {
            let payload = read.records.max_payload().max(1);
            if payload > MAX_RECORD_BYTES {
                return Err(StoreError::Unfit(format!(
                    "{} has a record of {payload} bytes, over the limit of {MAX_RECORD_BYTES} in a table without keys; \
                     choose a column with --key, or fewer or shorter columns with --value",
                    options.source
                )));
            }
            proof::plan(rows, payload, false, options.scheme, proofs)?
        }
        Some(salt) => {
            (read.records, blocks) = cut(&dir, options.memory, read.records, &salt)?;
            plan_keyed(&mut read.records, 1, 1, options.scheme.with_blocks(blocks as u64), proofs)?
        }
    };
    let mut batched = None;
    if let (Some(buckets), Some(salt)) = (buckets, read.salt) {
        check_batches(&options.source, params, blocks)?;
        let mut copies;
        (read.records, copies) = replicate(&dir, options.memory, read.records, &salt, buckets)?;
        let shape = SchemeChoice::Bucket { scheme: params.scheme, keys: buckets.keys() };
        let (of_each, depth) =
            plan_keyed(&mut copies, 1, buckets.count(), shape, as_records_do(depth.is_some()))?;
        large_batches(buckets, &params, &of_each).iter().for_each(|said| progress.note(said));
        batched = Some((buckets, copies, of_each, depth));
    }
    let wanted = Wanted { kind: PartKind::Records, prefix: "records", params, depth, keyed, buckets: 1 };
    let slots = read.records.count();
    let records = build.part(&wanted, read.records.finish()?, slots, progress)?;
    let keys = match read.keys.take() {
        None => None,
        Some(keys) => {
            let proofs = as_records_do(depth.is_some());
            let (params, depth) =
                proof::plan(rows, keys.max_payload(), false, SchemeChoice::beside(params.scheme), proofs)?;
            let wanted =
                Wanted { kind: PartKind::Keys, prefix: "keys", params, depth, keyed: false, buckets: 1 };
            Some(build.part(&wanted, keys.finish()?, rows, progress)?)
        }
    };
    let batches = match batched {
        None => None,
        Some((buckets, copies, params, depth)) => {
            let (kind, prefix, slots) = (PartKind::Batches, "batches", copies.count());
            let wanted = Wanted { kind, prefix, params, depth, keyed: true, buckets: buckets.count() };
            let records = build.part(&wanted, copies.finish()?, slots, progress)?;
            let (keys, buckets) = (buckets.keys() as u32, buckets.count() as u32);
            Some(BatchesManifest { keys, buckets, records })
        }
    };
    let ReadTable { values, salt, key_type, kinds, .. } = read;
    let key = options.key.clone();
    let manifest = Manifest {
        magic: String::new(),
        version: 0,
        name,
        epoch,
        rows,
        key,
        values,
        salt: salt.map(|s| to_hex(&s)),
        records,
        keys,
        base_epoch: None,
        blocks: some_blocks(blocks),
        batches,
        changes: None,
        follow: None,
        key_type,
        kinds: Some(kinds),
        signed: None,
        checksum: String::new(),
    };
    let manifest = manifest.sealed();
    let manifest = signed(&dir, manifest, by)?;
    let path = dir.join(MANIFEST);
    std::fs::write(&path, manifest.to_json()).map_err(|e| StoreError::io(&path, "written", e))?;
    folder.publish(&manifest)?;
    Ok(manifest)
}

/// A manifest, with a signature where there is a signer. Its files lie in this folder.
pub(crate) fn signed(
    dir: &Path,
    manifest: Manifest,
    by: Option<&SigningKey>,
) -> Result<Manifest, StoreError> {
    let Some(by) = by else { return Ok(manifest) };
    let table = Stored::open_epoch(dir, manifest.clone())?.description()?;
    Ok(manifest.signed(by, table.digest()))
}

/// All parts of a table have proofs or none.
pub(crate) fn as_records_do(proofs: bool) -> ProofChoice {
    if proofs { ProofChoice::With } else { ProofChoice::Without }
}

/// The parameters of records by key, each a fingerprint and at least this many bytes, in so many matrices, and the depth of
/// their proofs.
pub(crate) fn plan_keyed(
    records: &mut ExternalSort,
    least: usize,
    buckets: usize,
    scheme: SchemeChoice,
    proofs: ProofChoice,
) -> Result<(Params, Option<u8>), StoreError> {
    let record_bytes = records.max_payload().saturating_sub(FINGERPRINT_BYTES).max(least);
    let each = records.count().div_ceil(buckets as u64);
    let (planned, depth) = proof::plan(each, record_bytes, true, scheme, proofs)?;
    let columns = keyword::columns_for(records.fullest(planned.geometry.groups * buckets)?);
    Ok((Params::new(planned.scheme, Geometry { columns, ..planned.geometry })?, depth))
}

fn table_name(options: &BuildOptions) -> Result<String, StoreError> {
    let name = options.name.clone().or_else(|| options.source.default_table_name()).ok_or_else(|| {
        StoreError::Unfit(format!("{} has no name to give the table; say --name NAME", options.source))
    })?;
    blindcore_wire::check_table_name(&name)
        .map_err(|e| StoreError::Unfit(format!("{e}, or say another with --name NAME")))?;
    Ok(name)
}

/// Everything that was read, at rest.
struct ReadTable {
    records: ExternalSort,
    /// Of the hashes of keys, where rows have keys.
    salt: Option<[u8; 32]>,
    keys: Option<ExternalSort>,
    values: Vec<String>,
    key_type: Option<KeyType>,
    /// What each value's column holds.
    kinds: Vec<Kinds>,
}

/// A salt for the hashes of a table's keys.
pub(crate) fn new_salt() -> Result<[u8; 32], StoreError> {
    let mut salt = [0u8; 32];
    blindcore_math::SecretRng::from_os().map_err(blindcore_lookup::Error::from)?.fill(&mut salt);
    Ok(salt)
}

fn read(options: &BuildOptions, dir: &Path, progress: &mut dyn Progress) -> Result<ReadTable, StoreError> {
    let origin = options.source.to_string();
    let wanted = match (&options.key, &options.values) {
        (key, Some(values)) => {
            let mut wanted: Vec<String> = key.iter().cloned().collect();
            wanted.extend(values.iter().filter(|v| Some(*v) != key.as_ref()).cloned());
            Some(wanted)
        }
        _ => None,
    };
    let source = options.source.open(wanted.as_deref())?;
    let columns = source.columns().to_vec();
    let position = |name: &String| {
        columns.iter().position(|c| c == name).ok_or_else(|| {
            StoreError::Unfit(format!(
                "{origin} has no column {name:?}; its columns are {}",
                columns.join(", ")
            ))
        })
    };
    let key = options.key.as_ref().map(position).transpose()?;
    let values: Vec<usize> = match &options.values {
        Some(values) => values.iter().map(position).collect::<Result<_, _>>()?,
        None => (0..columns.len()).filter(|i| Some(*i) != key).collect(),
    };
    for name in key.iter().chain(&values).map(|i| &columns[*i]) {
        blindcore_wire::check_column_name(name)
            .map_err(|e| StoreError::Unfit(format!("{origin}: {e}, or choose others with --value")))?;
    }
    if values.len() > blindcore_wire::MAX_VALUE_COLUMNS {
        return Err(StoreError::Unfit(format!(
            "{origin} has {} columns in a record, over the limit of {}; choose fewer with --value",
            values.len(),
            blindcore_wire::MAX_VALUE_COLUMNS
        )));
    }
    let salt = key.map(|_| new_salt()).transpose()?;
    let order = if key.is_some() { Order::Hash } else { Order::Arrival };
    let directory = key.is_some() && options.directory;
    let memory = if directory { options.memory / 2 } else { options.memory };
    let mut records = ExternalSort::new(dir, memory, order).counted();
    let mut keys = directory.then(|| ExternalSort::new(dir, memory, Order::Arrival));
    let pieces = neighbours(&values);
    let key_type = key.and_then(|key| source.key_type(key));
    let typed = !options.source.is_text();
    let mut kinds = vec![if typed { Kinds::NONE } else { Kinds::TEXT }; values.len()];
    let mut key_kinds = Kinds::NONE;
    let mut payload = Vec::new();
    let passed_over = dir::passed_over(&origin, source.passed_over());
    passed_over.into_iter().for_each(|said| progress.note(&format!("note: {said}")));
    let mut ahead = Ahead::start(source, &origin)?;
    loop {
        let Batch { rows, position, end, lacked } = ahead.next();
        for row in 0..rows.len() {
            let line = rows.line(row);
            let fail = |why: String| StoreError::Row {
                origin: origin.clone(),
                unit: options.source.unit(),
                line,
                why,
            };
            let mut hash = u128::from(records.count());
            payload.clear();
            if let (Some(key), Some(salt)) = (key, &salt) {
                let value = rows.values(row, key..key + 1);
                let bytes = codec::key_of_encoded(value).map_err(|e| fail(e.to_string()))?;
                let kind = if typed { Kinds::of_encoded(value) } else { Kinds::TEXT };
                key_kinds = key_kinds | kind;
                let form = key_type.or(kind.key_type());
                let bytes = form.map_or(Cow::Borrowed(&*bytes), |form| form.of(&bytes));
                let key_hash = KeyHash::new(salt, &bytes);
                hash = key_hash.order();
                if let Some(keys) = &mut keys {
                    let len = u16::try_from(bytes.len()).expect("keys are at most 4096 bytes");
                    payload.extend_from_slice(&len.to_le_bytes());
                    payload.extend_from_slice(&bytes);
                    keys.push(0, line, &payload)?;
                    payload.clear();
                }
                payload.extend_from_slice(&key_hash.fingerprint);
            }
            let start = payload.len();
            pieces.iter().for_each(|piece| payload.extend_from_slice(rows.values(row, piece.clone())));
            let len = payload.len() - start;
            if len > MAX_LONG_RECORD_BYTES {
                return Err(fail(format!(
                    "its record has {len} bytes, over the limit of {MAX_LONG_RECORD_BYTES}; choose fewer or shorter \
                     columns with --value"
                )));
            }
            if typed {
                for (kinds, column) in kinds.iter_mut().zip(&values) {
                    *kinds = *kinds | Kinds::of_encoded(rows.values(row, *column..column + 1));
                }
            }
            records.push(hash, line, &payload)?;
        }
        ahead.done(rows);
        stages::at(progress, READING, position.done, position.total, position.unit)?;
        if let Some(end) = end {
            end?;
            for (column, lacking) in lacked {
                progress.note(&format!(
                    "note: column {column:?} is missing from {lacking} of {} rows of {origin}, and null there",
                    records.count()
                ));
            }
            break;
        }
    }
    let key_type = key_type.or(key_kinds.key_type());
    let values = values.into_iter().map(|i| columns[i].clone()).collect();
    Ok(ReadTable { records, salt, keys, values, key_type, kinds })
}

/// Cuts the records of a keyed table into blocks where they are long for it, each under its own hash. Also returns how
/// many slots a record takes, at most.
pub(crate) fn cut(
    dir: &Path,
    memory: usize,
    records: ExternalSort,
    salt: &[u8; 32],
) -> Result<(ExternalSort, u32), StoreError> {
    let longest = records.max_payload().saturating_sub(FINGERPRINT_BYTES);
    let block_bytes = plan_blocks(records.count(), records.payload_bytes(), longest);
    if longest <= block_bytes {
        return Ok((records, 1));
    }
    let mut cut = ExternalSort::new(dir, memory / 2, Order::Hash).counted();
    let mut slot = Vec::new();
    for entry in records.finish()? {
        let Entry { hash, line, payload } = entry?;
        let (fingerprint, record) = payload.split_at(FINGERPRINT_BYTES);
        let first = KeyHash::from_order(hash, fingerprint.try_into().expect("a fingerprint's length"));
        let blocks = record.len().div_ceil(block_bytes).max(1);
        for block in 0..blocks {
            let hash = first.block(salt, block as u32);
            slot.clear();
            slot.extend_from_slice(&hash.fingerprint);
            slot.extend_from_slice(&record[block * block_bytes..record.len().min((block + 1) * block_bytes)]);
            cut.push(hash.order(), line, &slot)?;
        }
    }
    Ok((cut, longest.div_ceil(block_bytes) as u32))
}

/// Refuses batches of a table that they don't suit.
fn check_batches(source: &SourceSpec, params: Params, blocks: u32) -> Result<(), StoreError> {
    if blocks > 1 {
        return Err(StoreError::Unfit(format!(
            "{source} has records of {blocks} slots each, and a batch asks for one slot of a record; choose fewer or shorter \
             columns with --value, or leave --batch out"
        )));
    }
    // Of a bucket's too: a hint grows with a table.
    if params.hint_bytes() > SHORT_HINT_BYTES as u64 {
        return Err(StoreError::Unfit(format!(
            "scheme {} has a hint, which clients would fetch of each bucket; choose one with nothing to fetch, such as \
             {}, or leave --batch out",
            params.scheme,
            schemes::option_without_hint()
        )));
    }
    Ok(())
}

/// That batches take far more than three times what records do, because a scheme makes no table as small as their buckets are.
fn large_batches(buckets: Buckets, records: &Params, bucket: &Params) -> Option<String> {
    let stored =
        |params: &Params| params.stored_operands().map(|operand| operand.bytes() as u64).sum::<u64>();
    let (records, bucket) = (stored(records), stored(bucket));
    let all = bucket.saturating_mul(buckets.count() as u64);
    (all > (64 << 20).max(4 * records)).then(|| {
        let (keys, count) = (buckets.keys(), buckets.count());
        format!(
            "note: batches of {keys} keys take {} on the disk and in memory, where the records alone take {}: they are kept in \
             {count} buckets of {} each; a smaller --batch has fewer buckets",
            bytes(all),
            bytes(records),
            bytes(bucket)
        )
    })
}

/// The records of a keyed table, and again those of its batches: each three times, under hashes of its buckets.
fn replicate(
    dir: &Path,
    memory: usize,
    records: ExternalSort,
    salt: &[u8; 32],
    buckets: Buckets,
) -> Result<(ExternalSort, ExternalSort), StoreError> {
    let sort = || ExternalSort::new(dir, memory / 3, Order::Hash).counted();
    let (mut once, mut copies) = (sort(), sort());
    let mut slot = Vec::new();
    for entry in records.finish()? {
        let Entry { hash, line, payload } = entry?;
        once.push(hash, line, &payload)?;
        let (fingerprint, record) = payload.split_at(FINGERPRINT_BYTES);
        let first = KeyHash::from_order(hash, fingerprint.try_into().expect("a fingerprint's length"));
        for (_, hash) in first.candidates(salt, buckets.count()) {
            slot.clear();
            slot.extend_from_slice(&hash.fingerprint);
            slot.extend_from_slice(record);
            copies.push(hash.order(), line, &slot)?;
        }
    }
    Ok((once, copies))
}

/// Columns in their order, those that follow one another as one.
fn neighbours(columns: &[usize]) -> Vec<Range<usize>> {
    let mut pieces: Vec<Range<usize>> = Vec::new();
    for column in columns {
        match pieces.last_mut() {
            Some(last) if last.end == *column => last.end += 1,
            _ => pieces.push(*column..column + 1),
        }
    }
    pieces
}
