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
use std::path::{Path, PathBuf};

use blindcore_accel::{Device, Layout};
use blindcore_lookup::keyword::{self, CELL_BITS, FINGERPRINT_BYTES, KeyHash};
use blindcore_lookup::{Geometry, MAX_RECORD_BYTES, Params, SchemeChoice, plan, preprocess};

use crate::manifest::{FileEntry, MANIFEST, Manifest, PartManifest, Parts, to_hex};
use crate::mapped::{self, Scratch};
use crate::section::{self, HEADER, Header, Kind, Writer};
use crate::{Entries, Order, SourceSpec, Spill, StoreError, codec, update};

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
    /// Whether a table with keys can also be read by index, through a directory of its keys.
    pub directory: bool,
    /// Whether to replace a database that is there.
    pub force: bool,
    /// Bytes of memory for sorting.
    pub memory: usize,
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

/// Told what a build is doing, how far it is and of how much; an error stops it.
pub type Watch<'a> = &'a mut dyn FnMut(Stage, u64, Option<u64>) -> Result<(), StoreError>;

/// Rows between two calls of the watch.
pub(crate) const WATCH_ROWS: u64 = 1024;
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
    let payload = read.records.max_payload().max(1);
    let (records, salt) = match read.keyed.take() {
        None => {
            let params = plan(rows, payload, false, options.scheme)?;
            let shards = build.dense("records", &params, read.records.finish()?, rows, watch)?;
            (build.part("records", &params, shards, None, watch)?, None)
        }
        Some(keyed) => {
            let record_bytes = payload.saturating_sub(FINGERPRINT_BYTES).max(1);
            let planned = plan(rows, record_bytes, true, options.scheme)?;
            let columns = keyword::columns_for(keyed.fullest(planned.geometry.groups));
            let params = Params::new(planned.scheme, Geometry { columns, ..planned.geometry })?;
            let (shards, seeds) = build.keyed("records", &params, read.records.finish()?, rows, watch)?;
            (build.part("records", &params, shards, Some(seeds), watch)?, Some(keyed.salt))
        }
    };
    let keys = match read.keys.take() {
        None => None,
        Some(keys) => {
            let params = plan(rows, keys.max_payload(), false, SchemeChoice::Auto)?;
            let shards = build.dense("keys", &params, keys.finish()?, rows, watch)?;
            Some(build.part("keys", &params, shards, None, watch)?)
        }
    };
    let (key, values) = (options.key.clone(), read.values);
    let manifest = Manifest::new(Parts {
        name,
        epoch,
        rows,
        key,
        values,
        salt,
        records,
        keys,
        base_epoch: epoch,
        changes: None,
        follow: None,
    });
    let path = dir.join(MANIFEST);
    let write = || {
        std::fs::write(&path, manifest.to_json())?;
        File::open(&path)?.sync_all()
    };
    write().map_err(|e| StoreError::io(&path, "written", e))?;
    folder.publish()?;
    Ok(manifest)
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
    keyed: Option<Keyed>,
    keys: Option<Spill>,
    values: Vec<String>,
}

/// What keys make of a table.
pub(crate) struct Keyed {
    pub(crate) salt: [u8; 32],
    /// Keys by the upper bits of their hash.
    histogram: Vec<u32>,
}

impl Keyed {
    pub(crate) fn new() -> Result<Self, StoreError> {
        let mut salt = [0u8; 32];
        blindcore_math::SecretRng::from_os().map_err(blindcore_lookup::Error::from)?.fill(&mut salt);
        Ok(Self { salt, histogram: vec![0; 1 << CELL_BITS] })
    }

    pub(crate) fn count(&mut self, hash: &KeyHash) {
        self.histogram[hash.cell()] += 1;
    }

    /// Keys in the fullest of so many groups.
    pub(crate) fn fullest(&self, groups: usize) -> usize {
        let mut loads = vec![0usize; groups];
        for (cell, keys) in self.histogram.iter().enumerate() {
            loads[KeyHash::group_of_cell(cell, groups)] += *keys as usize;
        }
        loads.into_iter().max().unwrap_or(0)
    }
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
    let mut source = options.source.open(wanted.as_deref())?;
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
    let mut keyed = key.map(|_| Keyed::new()).transpose()?;
    let order = if key.is_some() { Order::Hash } else { Order::Arrival };
    let directory = key.is_some() && options.directory;
    let memory = if directory { options.memory / 2 } else { options.memory };
    let mut records = Spill::new(dir, memory, order);
    let mut keys = directory.then(|| Spill::new(dir, memory, Order::Arrival));
    let mut payload = Vec::new();
    let mut chosen = Vec::with_capacity(values.len());
    while let Some(mut row) = source.next_row()? {
        let fail = |why: String| StoreError::Row { origin: origin.clone(), line: row.line, why };
        let mut hash = u128::from(records.count());
        payload.clear();
        if let (Some(key), Some(keyed)) = (key, &mut keyed) {
            let bytes = codec::encode_key(&row.values[key]).map_err(|e| fail(e.to_string()))?;
            let key_hash = KeyHash::new(&keyed.salt, &bytes);
            hash = key_hash.order();
            keyed.count(&key_hash);
            payload.extend_from_slice(&key_hash.fingerprint);
            if let Some(keys) = &mut keys {
                let len = u16::try_from(bytes.len()).expect("keys are at most 4096 bytes");
                keys.push(0, row.line, &[&len.to_le_bytes(), bytes.as_slice()].concat())?;
            }
        }
        let start = payload.len();
        chosen.clear();
        chosen.extend(values.iter().map(|i| std::mem::replace(&mut row.values[*i], crate::Value::Null)));
        codec::encode_record(&chosen, &mut payload);
        let len = payload.len() - start;
        if len > MAX_RECORD_BYTES {
            return Err(StoreError::Row {
                origin,
                line: row.line,
                why: format!(
                    "its record has {len} bytes, over the limit of {MAX_RECORD_BYTES}; choose fewer or shorter \
                     columns with --value"
                ),
            });
        }
        records.push(hash, row.line, &payload)?;
        if records.count().is_multiple_of(WATCH_ROWS) {
            let progress = source.progress();
            watch(Stage::Read, progress.done, progress.total)?;
        }
    }
    let progress = source.progress();
    watch(Stage::Read, progress.done, progress.total)?;
    let values = values.into_iter().map(|i| columns[i].clone()).collect();
    Ok(ReadTable { records, keyed, keys, values })
}

/// What filling and preprocessing share.
pub(crate) struct Build<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) device: &'a dyn Device,
    pub(crate) origin: String,
    pub(crate) epoch: u64,
}

impl Build<'_> {
    /// Records in order, group after group.
    pub(crate) fn dense(
        &self,
        prefix: &str,
        params: &Params,
        entries: Entries,
        rows: u64,
        watch: Watch<'_>,
    ) -> Result<Vec<FileEntry>, StoreError> {
        let Geometry { record_bytes, columns, .. } = params.geometry;
        let mut shards = Shards::new(self, prefix, params);
        let mut cells = self.scratch(record_bytes * columns)?;
        let (mut filled, mut done) = (0, 0u64);
        for entry in entries {
            let payload = entry?.payload;
            cells.bytes()[filled * record_bytes..][..payload.len()].copy_from_slice(&payload);
            filled += 1;
            done += 1;
            if filled == columns {
                shards.group(cells.bytes())?;
                cells.bytes().fill(0);
                filled = 0;
            }
            if done.is_multiple_of(WATCH_ROWS) {
                watch(Stage::Fill, done, Some(rows))?;
            }
        }
        if filled > 0 {
            shards.group(cells.bytes())?;
        }
        shards.finish()
    }

    /// Records by key, a solved bucket a group. Also returns the seeds.
    pub(crate) fn keyed(
        &self,
        prefix: &str,
        params: &Params,
        entries: Entries,
        rows: u64,
        watch: Watch<'_>,
    ) -> Result<(Vec<FileEntry>, Vec<u8>), StoreError> {
        let Geometry { record_bytes, groups, columns } = params.geometry;
        let mut shards = Shards::new(self, prefix, params);
        let mut slots = self.scratch(record_bytes * columns)?;
        let mut cells = self.scratch(record_bytes * columns)?;
        let mut seeds = Vec::with_capacity(groups);
        let (mut hashes, mut lines) = (Vec::new(), Vec::new());
        let mut entries = entries.peekable();
        let mut done = 0u64;
        for group in 0..groups {
            hashes.clear();
            lines.clear();
            loop {
                let here = match entries.peek() {
                    Some(Ok(entry)) => KeyHash::from_order(entry.hash, [0; 5]).group(groups) == group,
                    Some(Err(_)) => true,
                    None => false,
                };
                if !here {
                    break;
                }
                let entry = entries.next().expect("peeked")?;
                let at = hashes.len() * record_bytes;
                let slot = &mut slots.bytes()[at..at + record_bytes];
                slot[..entry.payload.len()].copy_from_slice(&entry.payload);
                slot[entry.payload.len()..].fill(0);
                hashes.push(KeyHash::from_order(entry.hash, [0; 5]));
                lines.push(entry.line);
                done += 1;
                if done.is_multiple_of(WATCH_ROWS) {
                    watch(Stage::Fill, done, Some(rows))?;
                }
            }
            cells.bytes().fill(0);
            let slots = &slots.bytes()[..hashes.len() * record_bytes];
            let seed = keyword::solve(&hashes, slots, columns, record_bytes, cells.bytes());
            seeds.push(seed.map_err(|e| self.bucket_error(e, &lines))?);
            shards.group(cells.bytes())?;
        }
        Ok((shards.finish()?, seeds))
    }

    fn bucket_error(&self, error: blindcore_lookup::Error, lines: &[u64]) -> StoreError {
        match error {
            blindcore_lookup::Error::DuplicateKey { first, second } => {
                let (first, second) = (lines[first].min(lines[second]), lines[first].max(lines[second]));
                let why = format!(
                    "its key is also the key of line {first}; keys must differ, so remove one row or choose \
                     another --key"
                );
                StoreError::Row { origin: self.origin.clone(), line: second, why }
            }
            other => other.into(),
        }
    }

    fn scratch(&self, len: usize) -> Result<Scratch, StoreError> {
        Scratch::zeroed(self.dir, len).map_err(|e| StoreError::io(self.dir, "used for temporary files", e))
    }

    /// The rest of a part, once its shards stand: hint, state and seeds.
    pub(crate) fn part(
        &self,
        prefix: &str,
        params: &Params,
        shards: Vec<FileEntry>,
        seeds: Option<Vec<u8>>,
        watch: Watch<'_>,
    ) -> Result<PartManifest, StoreError> {
        let digest = params.digest();
        let mut database = Vec::new();
        for shard in &shards {
            let path = self.dir.join(&shard.file);
            let map = File::open(&path).and_then(|f| mapped::map(&f, HEADER));
            database.push(map.map_err(|e| StoreError::io(&path, "read", e))?);
        }
        let mut state = None;
        let header = |kind, payload_bytes| Header {
            kind: kind as u32,
            params_digest: digest,
            epoch: self.epoch,
            payload_bytes,
            payload_digest: [0; 32],
        };
        let path = self.dir.join(format!("{prefix}.hint"));
        let made =
            section::write_mapped(&path, header(Kind::Hint, 4 * params.hint_words() as u64), |hint| {
                let hint = bytemuck::cast_slice_mut(hint);
                state = preprocess(params, self.device, database, hint, &mut |done, total| {
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
        Ok(PartManifest {
            scheme: params.scheme,
            geometry: params.geometry,
            layout: Layout::Tiles16x64.name().into(),
            shards,
            hint,
            state: state.map(|s| write(Kind::State, "state", s)).transpose()?,
            seeds: seeds.map(|s| write(Kind::Seeds, "seeds", s)).transpose()?,
        })
    }
}

pub(crate) fn entry(path: &Path, header: &Header) -> FileEntry {
    let file = path.file_name().expect("made with a name").to_string_lossy().into_owned();
    FileEntry { file, bytes: header.payload_bytes, blake3: to_hex(&header.payload_digest) }
}

/// Writes a matrix group by group into shards of whole stripes.
struct Shards<'a> {
    build: &'a Build<'a>,
    prefix: &'a str,
    params: &'a Params,
    stripe: Vec<u8>,
    /// Rows in the stripe.
    rows: usize,
    writer: Option<Writer>,
    done: Vec<FileEntry>,
}

impl<'a> Shards<'a> {
    fn new(build: &'a Build<'a>, prefix: &'a str, params: &'a Params) -> Self {
        let stripe = vec![0; Layout::Tiles16x64.stripe_bytes(&params.shape())];
        Self { build, prefix, params, stripe, rows: 0, writer: None, done: Vec::new() }
    }

    /// Adds a group: `columns` cells, one after the other, which stand upright in the matrix.
    fn group(&mut self, cells: &[u8]) -> Result<(), StoreError> {
        let record_bytes = self.params.geometry.record_bytes;
        let mut first = 0;
        while first < record_bytes {
            let rows = (Layout::Tiles16x64.stripe_rows() - self.rows).min(record_bytes - first);
            for (column, cell) in cells.chunks_exact(record_bytes).enumerate() {
                let at = Layout::tile_index(self.rows, column);
                for (i, byte) in cell[first..first + rows].iter().enumerate() {
                    self.stripe[at + 4 * i] = *byte;
                }
            }
            first += rows;
            self.rows += rows;
            if self.rows == Layout::Tiles16x64.stripe_rows() {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let path = self.build.dir.join(format!("{}-{:04}.shard", self.prefix, self.done.len()));
                self.writer.insert(Writer::create(path, Kind::Shard, self.params.digest(), self.build.epoch)?)
            }
        };
        writer.write(&self.stripe)?;
        if writer.payload_bytes() as usize + self.stripe.len() > SHARD_BYTES {
            self.close()?;
        }
        self.stripe.fill(0);
        self.rows = 0;
        Ok(())
    }

    fn close(&mut self) -> Result<(), StoreError> {
        if let Some(writer) = self.writer.take() {
            let (path, header) = writer.finish()?;
            self.done.push(entry(&path, &header));
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<FileEntry>, StoreError> {
        if self.rows > 0 {
            self.flush()?;
        }
        self.close()?;
        Ok(self.done)
    }
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
const LOCK: &str = "building.lock";

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
                Err(StoreError::Damaged { .. }) if Manifest::is_ours(out) => {}
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
            && ![".shard", ".hint", ".state", ".seeds", ".log"].iter().any(|ending| name.ends_with(ending))
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
