//! From a source to a database: read, spill in order, choose parameters, fill the matrix, compute the hint.
//!
//! ```text
//!   source ──rows──▶ spill of records, in order of key hash ──▶ buckets solved ─▶ shards ─▶ hint
//!              └───▶ spill of keys, in order of arrival ──────▶ packed ────────▶ shards ─▶ hint
//! ```
//!
//! Parameters follow from the number of rows and the longest record, so nothing can be laid out before the
//! last row was read: everything rests in spills meanwhile. All files are made in a hidden folder beside the
//! output, which is put in its place at the end; whatever ends a build before leaves the output as it was.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread::{self, ScopedJoinHandle};

use blindcore_accel::{Database, Device, Error, Placed};
use blindcore_lookup::keyword::{self, FINGERPRINT_BYTES, KeyHash};
use blindcore_lookup::schemes::Operand;
use blindcore_lookup::{Geometry, MAX_RECORD_BYTES, Params, SchemeChoice, plan_blocks, preprocess_placed};
use blindcore_wire::proof::{self, NODE_BYTES, Node, Proofs};
use blindcore_wire::signature::SigningKey;
use blindcore_wire::{PartKind, ProofChoice};

use crate::manifest::{FileEntry, MANIFEST, Manifest, PartManifest, some_blocks, to_hex};
use crate::mapped::{self, Scratch};
use crate::section::{self, HEADER, Header, Kind, Writer};
use crate::source::{Ahead, Batch, MAX_ROW_BYTES};
use crate::{
    Checksum, Entries, Entry, Order, Shard, SourceSpec, Spill, SpillError, StoreError, Stored, StreamOptions,
    Streamed, codec, memory, sums, tile_sums, update,
};

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
    /// Who signs it.
    pub sign: Option<SigningKey>,
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
            directory: true,
            force: false,
            memory: Spill::DEFAULT_MEMORY,
        }
    }
}

/// What a build is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Reading rows, in the source's unit.
    Read,
    /// Filling a matrix, in rows.
    Fill,
    /// Computing a hint, in passes.
    Hint,
}

/// Told what a build is doing, how far it is and of how much, as each stage begins and while it lasts; an error stops it.
pub type Watch<'a> = &'a mut dyn FnMut(Stage, u64, Option<u64>) -> Result<(), StoreError>;

/// Bytes of a record, at most: what a row has, and what is put before its values.
pub(crate) const MAX_LONG_RECORD_BYTES: usize = MAX_ROW_BYTES + (64 << 10);
/// Groups that are solved at a time, at most.
const MAX_SOLVERS: usize = 8;
/// Bytes of the groups that are collected, solved and written at a time, unless one is larger.
const ROUND_BYTES: usize = 192 << 20;
/// Bytes of memory for a pass over a matrix that makes its hint, for a matrix of up to so many times as much; of a larger
/// one it's a share.
const HINT_BYTES: u64 = 256 << 20;
const HINT_SHARE: u64 = 16;
/// Bytes that such a pass reads at a time: so many more than the columns that it is multiplied by have, which come from
/// memory for each.
const HINT_PIECE: usize = 32 << 20;
/// Bytes of a shard, at most, but for a stripe that is larger.
const SHARD_BYTES: usize = 1 << 30;

/// Builds a database.
///
/// # Errors
/// The source, a row, the parameters, the disk or the watch: nothing is left at the output then, and what was
/// there before is as it was.
pub fn build(options: &BuildOptions, device: &dyn Device, watch: Watch<'_>) -> Result<Manifest, StoreError> {
    let name = table_name(options)?;
    let folder = Folder::create(&options.out, options.force)?;
    let dir = folder.path().to_owned();
    let mut read = read(options, &dir, watch)?;
    let rows = read.records.count();
    if rows == 0 {
        return Err(StoreError::Unfit(format!("{} has no rows; a table needs at least one", options.source)));
    }

    let epoch = folder.epoch;
    let build = Build { dir: &dir, device, origin: options.source.to_string(), epoch };
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
            proof::plan(rows, payload, false, options.scheme, options.proofs)?
        }
        Some(salt) => {
            (read.records, blocks) = cut(&dir, options.memory, read.records, &salt)?;
            plan_keyed(&mut read.records, 1, options.scheme, options.proofs)?
        }
    };
    let wanted = Wanted { kind: PartKind::Records, prefix: "records", params, depth, keyed };
    let slots = read.records.count();
    let records = build.part(&wanted, read.records.finish()?, slots, watch)?;
    let keys = match read.keys.take() {
        None => None,
        Some(keys) => {
            let proofs = as_records_do(depth.is_some());
            let (params, depth) =
                proof::plan(rows, keys.max_payload(), false, SchemeChoice::beside(params.scheme), proofs)?;
            let wanted = Wanted { kind: PartKind::Keys, prefix: "keys", params, depth, keyed: false };
            Some(build.part(&wanted, keys.finish()?, rows, watch)?)
        }
    };
    let (key, values, salt) = (options.key.clone(), read.values, read.salt);
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
        changes: None,
        follow: None,
        signed: None,
        checksum: String::new(),
    };
    let manifest = manifest.sealed();
    let manifest = signed(&dir, manifest, options.sign.as_ref())?;
    let path = dir.join(MANIFEST);
    let write = || {
        std::fs::write(&path, manifest.to_json())?;
        File::open(&path)?.sync_all()
    };
    write().map_err(|e| StoreError::io(&path, "written", e))?;
    folder.publish()?;
    Ok(manifest)
}

/// A manifest with a signature, where somebody signs. Its files lie in this folder.
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

/// The parameters of records by key, each a fingerprint and at least so many bytes, and the depth of their proofs.
pub(crate) fn plan_keyed(
    records: &mut Spill,
    least: usize,
    scheme: SchemeChoice,
    proofs: ProofChoice,
) -> Result<(Params, Option<u8>), StoreError> {
    let record_bytes = records.max_payload().saturating_sub(FINGERPRINT_BYTES).max(least);
    let (planned, depth) = proof::plan(records.count(), record_bytes, true, scheme, proofs)?;
    let columns = keyword::columns_for(records.fullest(planned.geometry.groups)?);
    Ok((Params::new(planned.scheme, Geometry { columns, ..planned.geometry })?, depth))
}

fn table_name(options: &BuildOptions) -> Result<String, StoreError> {
    let name = options.name.clone().or_else(|| options.source.default_table_name()).ok_or_else(|| {
        StoreError::Unfit(format!("{} has no name to give the table; say --name NAME", options.source))
    })?;
    blindcore_wire::check_table_name(&name)
        .map_err(|e| StoreError::Unfit(format!("{e}; say another with --name NAME")))?;
    Ok(name)
}

/// Everything that was read, at rest.
struct ReadTable {
    records: Spill,
    /// Of the hashes of keys, where rows have keys.
    salt: Option<[u8; 32]>,
    keys: Option<Spill>,
    values: Vec<String>,
}

/// A salt for the hashes of a table's keys.
pub(crate) fn new_salt() -> Result<[u8; 32], StoreError> {
    let mut salt = [0u8; 32];
    blindcore_math::SecretRng::from_os().map_err(blindcore_lookup::Error::from)?.fill(&mut salt);
    Ok(salt)
}

fn read(options: &BuildOptions, dir: &Path, watch: Watch<'_>) -> Result<ReadTable, StoreError> {
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
        blindcore_wire::check_column_name(name).map_err(|e| {
            StoreError::Unfit(format!("{origin}: {e}; choose columns with --value, or rename it"))
        })?;
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
    let mut records = Spill::new(dir, memory, order).counted();
    let mut keys = directory.then(|| Spill::new(dir, memory, Order::Arrival));
    let pieces = neighbours(&values);
    let mut payload = Vec::new();
    let mut ahead = Ahead::start(source, &origin)?;
    loop {
        let Batch { rows, progress, end } = ahead.next();
        for row in 0..rows.len() {
            let line = rows.line(row);
            let fail = |why: String| StoreError::Row { origin: origin.clone(), line, why };
            let mut hash = u128::from(records.count());
            payload.clear();
            if let (Some(key), Some(salt)) = (key, &salt) {
                let bytes =
                    codec::key_of_encoded(rows.values(row, key..key + 1)).map_err(|e| fail(e.to_string()))?;
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
            records.push(hash, line, &payload)?;
        }
        ahead.done(rows);
        watch(Stage::Read, progress.done, progress.total)?;
        if let Some(end) = end {
            end?;
            break;
        }
    }
    let values = values.into_iter().map(|i| columns[i].clone()).collect();
    Ok(ReadTable { records, salt, keys, values })
}

/// Cuts the records of a keyed table into blocks where they are long for it, each under its own hash. Also returns how
/// many slots a record takes, at most.
pub(crate) fn cut(
    dir: &Path,
    memory: usize,
    records: Spill,
    salt: &[u8; 32],
) -> Result<(Spill, u32), StoreError> {
    let longest = records.max_payload().saturating_sub(FINGERPRINT_BYTES);
    let block_bytes = plan_blocks(records.count(), records.payload_bytes(), longest);
    if longest <= block_bytes {
        return Ok((records, 1));
    }
    let mut cut = Spill::new(dir, memory / 2, Order::Hash).counted();
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

/// What filling and preprocessing share.
pub(crate) struct Build<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) device: &'a dyn Device,
    pub(crate) origin: String,
    pub(crate) epoch: u64,
}

/// A matrix that is to be made.
pub(crate) struct Wanted<'a> {
    pub(crate) kind: PartKind,
    /// What its files' names begin with.
    pub(crate) prefix: &'a str,
    pub(crate) params: Params,
    /// Levels of its slots' proofs, if they have any.
    pub(crate) depth: Option<u8>,
    /// Whether its slots are found by key.
    pub(crate) keyed: bool,
}

impl Wanted<'_> {
    /// Chunks of proofs that so many slots in a group make.
    fn chunks(&self, slots: usize) -> usize {
        self.depth.map_or(0, |depth| slots.div_ceil(1 << depth))
    }
}

/// A matrix that was laid out.
struct LaidOut {
    shards: Vec<FileEntry>,
    sums: FileEntry,
    /// Of its buckets, where it is keyed.
    seeds: Vec<u8>,
    chunks: u32,
    /// Of its chunks, and room.
    roots: Scratch,
}

impl Build<'_> {
    /// Lays out a matrix: records in their order or, of a keyed table, a solved bucket a group.
    ///
    /// It goes in rounds of some groups: while those of one round are written, those of the next are solved, each
    /// on a thread, and those of the one after it collected. So what is written doesn't depend on threads.
    ///
    /// ```text
    ///   entries ──collect──▶ buckets ──solve──▶ cells ──write──▶ shards
    ///   round        n + 2              n + 1              n
    /// ```
    fn matrix(
        &self,
        wanted: &Wanted<'_>,
        mut entries: Entries,
        rows: u64,
        watch: Watch<'_>,
    ) -> Result<LaidOut, StoreError> {
        let Wanted { prefix, ref params, keyed, .. } = *wanted;
        watch(Stage::Fill, 0, Some(rows))?;
        let Geometry { record_bytes, groups, columns } = params.geometry;
        let group_bytes = record_bytes * columns;
        let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_SOLVERS);
        let round = (ROUND_BYTES / (4 * group_bytes)).clamp(1, threads).min(groups);
        let memory = || (0..round).map(|_| self.scratch(group_bytes)).collect::<Result<Vec<_>, _>>();
        let buckets = || Ok::<_, StoreError>(memory()?.into_iter().map(Bucket::new).collect::<Vec<_>>());
        let (mut collecting, mut solving) = (buckets()?, buckets()?);
        let (mut solved, mut writing) = (memory()?, memory()?);
        let mut shards = Shards::new(self, prefix, params)?;
        let mut seeds = Vec::with_capacity(groups);
        // Each group's last chunk may be a short one.
        let most = wanted.depth.map_or(0, |depth| rows.div_ceil(1 << depth) + groups as u64);
        if most > u32::MAX.into() {
            let why = format!("{rows} rows are too many for proofs; build without them (--no-proofs)");
            return Err(StoreError::Unfit(why));
        }
        let mut roots = self.scratch(NODE_BYTES * most as usize)?;
        let (mut chunks, mut sealed) = (0, 0);
        for start in (0..groups + 2 * round).step_by(round) {
            // The groups of the round that started so many rounds ago.
            let ago = |rounds: usize| {
                let first = start.saturating_sub(rounds * round);
                let len = if start < rounds * round { 0 } else { round.min(groups.saturating_sub(first)) };
                first..first + len
            };
            thread::scope(|scope| {
                let collected = scope.spawn(|| {
                    ago(0).zip(&mut collecting).try_for_each(|(group, bucket)| {
                        bucket.collect(&mut entries, params, keyed.then_some(group))
                    })
                });
                let solvers = ago(1).zip(solving.iter_mut().zip(&mut solved));
                let solvers: Vec<_> = solvers
                    .map(|(group, (bucket, cells))| {
                        let first = chunks;
                        chunks += wanted.chunks(bucket.lines.len());
                        scope.spawn(move || {
                            let roots = bucket.seal(wanted, group, first);
                            Ok::<_, StoreError>((bucket.solve(params, keyed, cells, &self.origin)?, roots))
                        })
                    })
                    .collect();
                for (group, cells) in ago(2).zip(&mut writing) {
                    shards.group(cells.bytes())?;
                    let done = (u128::from(rows) * (group as u128 + 1) / groups as u128) as u64;
                    watch(Stage::Fill, done, Some(rows))?;
                }
                for solver in solvers {
                    let (seed, new) = joined(solver)?;
                    seeds.push(seed);
                    let new = new.as_flattened();
                    roots.bytes()[sealed..sealed + new.len()].copy_from_slice(new);
                    sealed += new.len();
                }
                joined(collected).map_err(StoreError::from)
            })?;
            std::mem::swap(&mut collecting, &mut solving);
            std::mem::swap(&mut solved, &mut writing);
        }
        let (shards, sums) = shards.finish()?;
        Ok(LaidOut { shards, sums, seeds, chunks: chunks as u32, roots })
    }

    fn scratch(&self, len: usize) -> Result<Scratch, StoreError> {
        Scratch::zeroed(self.dir, len).map_err(|e| StoreError::io(self.dir, "used for temporary files", e))
    }

    /// A matrix whose hint is computed, which goes through it several times: streamed from its disk, where it was
    /// written past the page cache; or mapped for a device that wants its databases placed.
    fn place(
        &self,
        params: &Params,
        shards: &[FileEntry],
        sums: &FileEntry,
    ) -> Result<Box<dyn Placed>, StoreError> {
        let bytes: u64 = shards.iter().map(|s| s.bytes).sum();
        let memory = (bytes / HINT_SHARE).max(HINT_BYTES);
        let memory = memory::limit().map_or(memory, |limit| memory.min(limit.bytes() / 4));
        let shape = params.preprocessing_shape(memory);
        let open = |entry: &FileEntry| {
            let path = self.dir.join(&entry.file);
            let file = File::open(&path).map_err(|e| StoreError::io(&path, "read", e))?;
            Ok::<_, StoreError>((path, file))
        };
        let shard = |(shard, sums): (&FileEntry, Vec<u8>)| {
            let (path, file) = open(shard)?;
            let (start, checksum) = (HEADER as u64, Checksum::Tiles(sums));
            Ok(Shard { path, file, bytes: start..start + shard.bytes, checksum })
        };
        let files = || {
            let (path, mut file) = open(sums)?;
            let read = sums::read(&mut file, shards.iter().map(|s| s.bytes));
            let (sums, _) = read.map_err(|e| StoreError::io(&path, "read", e))?;
            shards.iter().zip(sums).map(shard).collect::<Result<Vec<_>, StoreError>>()
        };
        let options = StreamOptions { piece_bytes: HINT_PIECE, pieces: 3, ..StreamOptions::default() };
        match Streamed::open(self.device, &shape, files()?, options) {
            Err(StoreError::Lookup(blindcore_lookup::Error::Device(Error::Unsupported { .. }))) => {}
            streamed => return Ok(Box::new(streamed?)),
        }
        let map = |s: Shard| mapped::map(&s.file, HEADER).map_err(|e| StoreError::io(&s.path, "read", e));
        let mapped = files()?.into_iter().map(map).collect::<Result<_, _>>()?;
        let contract =
            self.device.contract(&params.records().shape).map_err(blindcore_lookup::Error::from)?;
        Ok(contract.place(Database::Packed(mapped)).map_err(blindcore_lookup::Error::from)?)
    }

    /// A part: its matrix, then hint, state and seeds.
    pub(crate) fn part(
        &self,
        wanted: &Wanted<'_>,
        entries: Entries,
        rows: u64,
        watch: Watch<'_>,
    ) -> Result<PartManifest, StoreError> {
        let LaidOut { shards, sums, seeds, chunks, mut roots } = self.matrix(wanted, entries, rows, watch)?;
        let Wanted { prefix, ref params, .. } = *wanted;
        let proofs = wanted.depth.map(|depth| Proofs { depth, chunks });
        watch(Stage::Hint, 0, None)?;
        let digest = params.digest();
        let mut derived = Vec::new();
        let header = |kind, payload_bytes| Header {
            kind: kind as u32,
            params_digest: digest,
            epoch: self.epoch,
            payload_bytes,
            payload_digest: [0; 32],
        };
        let path = self.dir.join(format!("{prefix}.hint"));
        let hint_bytes = params.hint_bytes() as usize;
        let root_bytes = proofs.map_or(0, |p| p.root_bytes());
        let made =
            section::write_mapped(&path, header(Kind::Hint, hint_bytes as u64 + root_bytes), |payload| {
                let (hint, end) = payload.split_at_mut(hint_bytes);
                end.copy_from_slice(&roots.bytes()[..end.len()]);
                if params.preprocessing().is_empty() {
                    return Ok(());
                }
                let records = self.place(params, &shards, &sums)?;
                derived = preprocess_placed(params, self.device, &*records, hint, &mut |done, total| {
                    watch(Stage::Hint, done, Some(total))
                })?;
                Ok::<(), StoreError>(())
            })?;
        let hint = entry(&path, &made);
        let write = |kind: Kind, suffix: &str, bytes: Vec<u8>| {
            let mut writer =
                Writer::create(self.dir.join(format!("{prefix}.{suffix}")), kind, digest, self.epoch)?;
            writer.write(&bytes)?;
            let (path, header) = writer.finish()?;
            Ok::<FileEntry, StoreError>(entry(&path, &header))
        };
        let mut derived = derived.into_iter().enumerate().map(|(i, operand)| match i {
            0 => write(Kind::State, "state", operand),
            _ => write(Kind::State, &format!("{i}.state"), operand),
        });
        let state = derived.next().transpose()?;
        Ok(PartManifest {
            scheme: params.scheme.name().into(),
            geometry: params.geometry,
            layout: params.records().layout.name().into(),
            shards,
            sums: Some(sums),
            hint,
            proofs,
            state,
            more_state: derived.collect::<Result<_, _>>()?,
            seeds: if wanted.keyed { Some(write(Kind::Seeds, "seeds", seeds)?) } else { None },
        })
    }
}

pub(crate) fn entry(path: &Path, header: &Header) -> FileEntry {
    let file = path.file_name().expect("made with a name").to_string_lossy().into_owned();
    FileEntry { file, bytes: header.payload_bytes, blake3: to_hex(&header.payload_digest) }
}

/// The records of a group.
struct Bucket {
    slots: Scratch,
    hashes: Vec<KeyHash>,
    lines: Vec<u64>,
}

impl Bucket {
    fn new(slots: Scratch) -> Self {
        Self { slots, hashes: Vec::new(), lines: Vec::new() }
    }

    /// Takes the entries of a group: those whose hash says so, or as many as it has columns.
    fn collect(
        &mut self,
        entries: &mut Entries,
        params: &Params,
        group: Option<usize>,
    ) -> Result<(), SpillError> {
        let Geometry { record_bytes, groups, columns } = params.geometry;
        self.hashes.clear();
        self.lines.clear();
        let slots = self.slots.bytes();
        while let Some(head) = entries.peek() {
            let hash = KeyHash::from_order(head.hash, [0; FINGERPRINT_BYTES]);
            let here = match group {
                Some(group) => hash.group(groups) == group,
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
    fn seal(&mut self, wanted: &Wanted<'_>, group: usize, first: usize) -> Vec<Node> {
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
    fn solve(
        &mut self,
        params: &Params,
        keyed: bool,
        cells: &mut Scratch,
        origin: &str,
    ) -> Result<u8, StoreError> {
        if !keyed {
            std::mem::swap(&mut self.slots, cells);
            return Ok(0);
        }
        let Geometry { record_bytes, columns, .. } = params.geometry;
        let slots = &self.slots.bytes()[..self.hashes.len() * record_bytes];
        keyword::solve(&self.hashes, slots, columns, record_bytes, cells.bytes()).map_err(|error| match error
        {
            blindcore_lookup::Error::DuplicateKey { first, second } => {
                let (first, second) = (self.lines[first], self.lines[second]);
                let (first, second) = (first.min(second), first.max(second));
                let why = format!(
                    "its key is also the key of line {first}; keys must differ, so remove one row or choose \
                     another --key"
                );
                StoreError::Row { origin: origin.to_owned(), line: second, why }
            }
            other => other.into(),
        })
    }
}

/// What a thread returns.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Writes a matrix group by group into shards of whole stripes.
struct Shards<'a> {
    build: &'a Build<'a>,
    prefix: &'a str,
    params: &'a Params,
    records: Operand,
    /// Some stripes, because a column's bytes lie together: the more rows at a time, the fewer of its cache lines
    /// are read twice.
    stripes: Scratch,
    stripe_bytes: usize,
    /// Rows in them.
    rows: usize,
    writer: Option<Writer>,
    done: Vec<FileEntry>,
    /// The checksums of their tiles.
    sums: Writer,
}

/// Stripes that are filled together.
const STRIPES: usize = 8;

impl<'a> Shards<'a> {
    fn new(build: &'a Build<'a>, prefix: &'a str, params: &'a Params) -> Result<Self, StoreError> {
        let records = params.records();
        let stripe_bytes = records.stripe_bytes();
        let stripes = build.scratch(STRIPES * stripe_bytes)?;
        let path = build.dir.join(format!("{prefix}.sums"));
        let sums = Writer::create(path, Kind::Sums, params.digest(), build.epoch)?;
        Ok(Self {
            build,
            prefix,
            params,
            records,
            stripes,
            stripe_bytes,
            rows: 0,
            writer: None,
            done: Vec::new(),
            sums,
        })
    }

    /// Adds a group: `columns` cells, one after the other, which the scheme lays out as rows.
    fn group(&mut self, cells: &[u8]) -> Result<(), StoreError> {
        let (rows, room) = (self.params.group_rows(), STRIPES * self.records.layout.stripe_rows());
        let mut first = 0;
        while first < rows {
            let end = rows.min(first + room - self.rows);
            self.params.pack(cells, first..end, self.stripes.bytes(), self.rows);
            self.rows += end - first;
            first = end;
            if self.rows == room {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Writes the stripes that hold rows.
    fn flush(&mut self) -> Result<(), StoreError> {
        let mut sums = Vec::new();
        let used = self.rows.div_ceil(self.records.layout.stripe_rows());
        for stripe in self.stripes.bytes().chunks_exact(self.stripe_bytes).take(used) {
            let writer = match &mut self.writer {
                Some(writer) => writer,
                None => {
                    let (dir, digest) = (self.build.dir, self.params.digest());
                    let path = dir.join(format!("{}-{:04}.shard", self.prefix, self.done.len()));
                    self.writer.insert(Writer::create(path, Kind::Shard, digest, self.build.epoch)?)
                }
            };
            writer.write(stripe)?;
            sums.extend(tile_sums(stripe));
            if writer.payload_bytes() as usize + self.stripe_bytes > SHARD_BYTES {
                close(&mut self.writer, &mut self.done)?;
            }
        }
        self.rows = 0;
        self.sums.write(&sums)
    }

    fn finish(mut self) -> Result<(Vec<FileEntry>, FileEntry), StoreError> {
        // The last stripe's rows that nobody wrote are still those of a stripe before.
        let layout = self.records.layout;
        let (stripe, used) = (self.rows / layout.stripe_rows(), self.rows % layout.stripe_rows());
        if used > 0 {
            let last = &mut self.stripes.bytes()[stripe * self.stripe_bytes..][..self.stripe_bytes];
            layout.clear_rows(last, used);
        }
        self.flush()?;
        close(&mut self.writer, &mut self.done)?;
        let (path, header) = self.sums.finish()?;
        Ok((self.done, entry(&path, &header)))
    }
}

/// Makes the shard that is being written last, if there is one.
fn close(writer: &mut Option<Writer>, done: &mut Vec<FileEntry>) -> Result<(), StoreError> {
    if let Some(writer) = writer.take() {
        let (path, header) = writer.finish()?;
        done.push(entry(&path, &header));
    }
    Ok(())
}

/// The folder in which a build works, removed unless it is published.
struct Folder {
    work: tempfile::TempDir,
    /// Held while the build lives, so that others see it does.
    _lock: File,
    out: PathBuf,
    /// Whether what is at the output may be replaced.
    force: bool,
    /// Of the database to be made: the one after that which it replaces.
    epoch: u64,
}

/// The file in a build's folder that is locked while the build lives.
pub(crate) const LOCK: &str = "building.lock";

impl Folder {
    fn create(out: &Path, force: bool) -> Result<Self, StoreError> {
        if !force && out.symlink_metadata().is_ok() {
            return Err(StoreError::Exists { path: out.into() });
        }
        let mut epoch = 1;
        if force && out.symlink_metadata().is_ok() {
            // Only a database is replaced: a mistyped --out must not cost a home folder.
            match Manifest::read(out) {
                Ok(old) => epoch = old.epoch.saturating_add(1),
                Err(StoreError::Damaged { .. } | StoreError::UnknownScheme { .. })
                    if Manifest::is_ours(out) => {}
                Err(_) => {
                    let out = out.display();
                    return Err(StoreError::Unfit(format!(
                        "{out} is no database, so --force won't replace it"
                    )));
                }
            }
            if let Some(other) = foreign_file(out) {
                return Err(StoreError::Unfit(format!(
                    "{} holds {other:?}, which is no file of a database, so --force won't replace it; move it away",
                    out.display()
                )));
            }
        }
        let unfit = || StoreError::Unfit(format!("--out {} names no folder to make", out.display()));
        let name = out.file_name().ok_or_else(unfit)?.to_string_lossy().into_owned();
        let parent = match out.parent() {
            Some(p) if !p.as_os_str().is_empty() => p.to_owned(),
            _ => PathBuf::from("."),
        };
        let io = |e| StoreError::io(&parent, "written to", e);
        std::fs::create_dir_all(&parent).map_err(io)?;
        let prefix = format!(".{name}.building-");
        // One at a time: between making a folder and locking it, it looks like a dead build's.
        let alone = File::open(&parent).and_then(|f| f.lock().map(|()| f));
        sweep(&parent, &prefix);
        let work = tempfile::Builder::new().prefix(&prefix).tempdir_in(&parent).map_err(io)?;
        let mut lock = File::create(work.path().join(LOCK)).map_err(io)?;
        std::io::Write::write_all(&mut lock, std::process::id().to_string().as_bytes()).map_err(io)?;
        lock.try_lock().map_err(|e| io(e.into()))?;
        drop(alone);
        Ok(Self { work, _lock: lock, out: out.into(), force, epoch })
    }

    fn path(&self) -> &Path {
        self.work.path()
    }

    /// Puts the folder where it belongs. Whoever looks sees the database that was there before or the new one,
    /// and one of them whenever this process ends; where the system can't exchange two folders in one step there
    /// is a moment between.
    fn publish(self) -> Result<(), StoreError> {
        let io = |e| StoreError::io(&self.out, "made", e);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // tempfile makes folders that only their owner may enter; a database is an ordinary folder.
            std::fs::set_permissions(self.work.path(), std::fs::Permissions::from_mode(0o755)).map_err(io)?;
        }
        sync_folder(self.work.path()).map_err(io)?;
        // An update of what is replaced ends first.
        let _held = if self.force { update::lock(&self.out).ok() } else { None };
        // Exchanged, the old database lies in the work folder, which goes when this value does.
        let there = self.out.symlink_metadata().is_ok();
        if there && !self.force {
            // It came while the build ran.
            return Err(StoreError::Exists { path: self.out.clone() });
        }
        if !there || !mapped::exchange(self.work.path(), &self.out).map_err(io)? {
            if there {
                std::fs::rename(&self.out, self.work.path().join("old")).map_err(io)?;
            }
            mapped::rename_new(self.work.path(), &self.out).map_err(|e| match e.kind() {
                std::io::ErrorKind::AlreadyExists => StoreError::Exists { path: self.out.clone() },
                _ => io(e),
            })?;
        }
        let _ = std::fs::remove_file(self.out.join(LOCK));
        let _ = std::fs::remove_dir_all(self.out.join("old"));
        let _ = sync_folder(self.parent());
        Ok(())
    }

    fn parent(&self) -> &Path {
        self.work.path().parent().expect("made in a folder")
    }
}

/// Makes a folder's names last.
pub(crate) fn sync_folder(path: &Path) -> std::io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

/// A file of a folder that no database has.
fn foreign_file(dir: &Path) -> Option<String> {
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
    names.map(|e| e.file_name().to_string_lossy().into_owned()).find(|name| {
        name != MANIFEST
            && name != LOCK
            && name != update::WORK
            && ![".shard", ".sums", ".hint", ".state", ".seeds", ".log"]
                .iter()
                .any(|ending| name.ends_with(ending))
    })
}

/// Removes what killed builds left: folders of this prefix whose lock nobody holds, or that have none: a living
/// build's has one from its first moment to its last. The parent is locked meanwhile.
fn sweep(parent: &Path, prefix: &str) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(prefix) {
            continue;
        }
        let free = match File::open(entry.path().join(LOCK)) {
            Ok(lock) => lock.try_lock().is_ok(),
            Err(e) => e.kind() == std::io::ErrorKind::NotFound,
        };
        if free {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Removes the working folder of a build to `out` that this process runs and is about to leave by exiting: for a
/// signal's handler, when the build waits for a row that doesn't come.
pub fn abandon(out: &Path) {
    let (Some(name), parent) = (out.file_name(), out.parent()) else { return };
    let parent = parent.filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let prefix = format!(".{}.building-", name.to_string_lossy());
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let ours = || {
            std::fs::read(entry.path().join(LOCK))
                .is_ok_and(|pid| pid == std::process::id().to_string().as_bytes())
        };
        if entry.file_name().to_string_lossy().starts_with(&prefix) && ours() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
