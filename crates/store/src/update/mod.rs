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

mod changes;
mod entry;
mod merge;
pub(crate) mod options;
mod shape;
pub(crate) mod work;

use std::path::Path;

use blindcore_accel::{Device, keep_freed_memory};
use blindcore_lookup::{Params, SchemeChoice};
use blindcore_units::Progress;
use blindcore_wire::signature::SigningKey;
use blindcore_wire::{PartKind, proof};
use serde_json::json;

use self::changes::{Changes, Read, leaves_nothing};
use self::merge::{Counts, Said, merge};
pub use self::options::{CHANGE_COLUMN, ROW_COLUMN, UpdateOptions};
use self::shape::Shape;
use self::work::{Work, sweep, write_manifest};
use crate::build::{as_records_do, cut, new_salt, plan_keyed};
use crate::folder::lock;
use crate::job::{Build, Wanted, entry};
use crate::kinds::Kinds;
use crate::manifest::{ChangesManifest, FileEntry, Follow, Manifest, some_blocks, to_hex};
use crate::section::{Kind, Writer};
use crate::sign::unsigned;
use crate::signer::{check_proofs, check_signer};
use crate::source::{Reached, dir};
use crate::{StoreError, Stored, build};

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
    /// What CHANGES hold and the update did not use, a sentence each.
    pub notes: Vec<String>,
}

impl Updated {
    /// The same as one JSON object. `db update --json` prints it.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        json!({
            "name": self.manifest.name,
            "epoch": self.manifest.epoch,
            "base_epoch": self.manifest.base_epoch(),
            "published": self.published,
            "added": self.added,
            "changed": self.changed,
            "removed": self.removed,
            "unchanged": self.unchanged,
            "rows": self.manifest.live_rows(),
            "changes": self.changes,
            "notes": self.notes,
        })
    }
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
    if options.changes.holds(dir) {
        let (dir, changes) = (dir.display(), &options.changes);
        return Err(StoreError::Unfit(format!(
            "{dir} lies in {changes}, so its own files would be rows; move it out of that folder"
        )));
    }
    keep_freed_memory();
    let _lock = lock(dir)?;
    let stored = Stored::open(dir)?;
    let old = stored.manifest();
    check_signer(dir, Some(old), options.sign.as_ref(), options.change_signer)?;
    if options.sign.is_some() {
        check_proofs(dir, old.records.proofs.is_some())?;
    }
    stored.records.check_cells()?;
    sweep(dir, old);
    let work = Work::create(dir)?;
    let epoch = old.epoch.checked_add(1).ok_or_else(|| StoreError::Unfit("the epochs are used up".into()))?;

    if options.whole && old.key.is_none() {
        return Err(StoreError::Unfit(format!(
            "rows of table {} have no keys, by which the whole table (--whole) says which are gone; build it with --key, or leave \
             --whole out",
            old.name
        )));
    }
    if options.whole && stored.keys.is_none() {
        return Err(StoreError::Unfit(format!(
            "table {} has no directory of keys by which to see what is gone (--whole); build it again without --no-directory",
            old.name
        )));
    }
    let shape = Shape::of(&stored, &options.changes)?;
    let mut changes = Changes::open(&stored, &shape, options, work.path())?;
    let Read { sorted, reached } = changes.read(progress)?;
    let mut notes = notes(options, &changes, &reached);
    let salt = new_salt()?;
    let said = Said { sorted, origin: &changes.origin, passed_over: changes.passed_over(), shape: &shape };
    let merged = merge(&stored, options, work.path(), said, old.rows, &salt)?;
    let counts = merged.counts;
    if options.whole && counts.removed > 0 && merged.rows == merged.removed {
        return Err(leaves_nothing(&changes.origin, "has no rows but some that it removes"));
    }
    notes.extend(widened(old, merged.kinds.as_deref()));
    let follow = options.follow.clone().zip(reached.last());
    let follow = follow.map(|(column, last)| {
        let source = Some(options.changes.mark());
        Follow { column, last: last.to_json(), source, without: changes.without }
    });
    let follow = follow.or_else(|| old.follow.clone());
    if counts.added + counts.changed + counts.removed == 0 {
        notes.extend(unsigned(old, options));
        // How far a source was read is kept; no reader of the table sees that, and the epoch stays.
        let manifest = Manifest { follow, ..old.clone() }.sealed();
        if manifest != *old {
            write_manifest(dir, work.path(), &manifest, std::iter::empty())?;
        }
        return Ok(counts.outcome(manifest, false, old.changes.as_ref().map_or(0, |_| merged.count), notes));
    }

    let build = Build { dir: work.path(), device, origin: &options.changes, epoch };
    let base_rows = old.base_rows();
    let changes = if merged.count == 0 {
        None
    } else {
        let proofs = as_records_do(old.records.proofs.is_some());
        let beside = SchemeChoice::beside(stored.records.params.scheme);
        let (mut records, blocks) = cut(work.path(), options.memory, merged.records, &salt)?;
        let (params, depth) = plan_keyed(&mut records, 2, 1, beside, proofs)?;
        let prefix = format!("changes-{epoch}");
        let wanted =
            Wanted { kind: PartKind::Changes, prefix: &prefix, params, depth, keyed: true, buckets: 1 };
        let slots = records.count();
        let records = build.part(&wanted, records.finish()?, slots, progress)?;
        let added = merged.keys.count();
        let keys = if added == 0 || stored.keys.is_none() {
            None
        } else {
            let prefix = format!("{prefix}-keys");
            let longest = merged.keys.max_payload();
            let (params, depth) = proof::plan(added, longest, false, beside, proofs)?;
            let wanted =
                Wanted { kind: PartKind::NewKeys, prefix: &prefix, params, depth, keyed: false, buckets: 1 };
            Some(build.part(&wanted, merged.keys.finish()?, added, progress)?)
        };
        let log = write_log(work.path(), &params, epoch, &mut merged.log.finish()?)?;
        let salt = to_hex(&salt);
        let blocks = some_blocks(blocks);
        Some(ChangesManifest { base_rows, removed: merged.removed, blocks, salt, records, keys, log })
    };
    let manifest = Manifest {
        epoch,
        rows: merged.rows,
        base_epoch: Some(old.base_epoch()),
        changes,
        follow,
        kinds: merged.kinds,
        signed: None,
        ..old.clone()
    };
    let manifest = manifest.sealed();
    let manifest = publish(dir, work.path(), &manifest, options.sign.as_ref())?;
    sweep(dir, &manifest);
    Ok(counts.outcome(manifest, true, merged.count, notes))
}

/// Moves the new files beside the others, signs the manifest if there is a signer, and replaces the one before.
fn publish(
    dir: &Path,
    work: &Path,
    manifest: &Manifest,
    by: Option<&SigningKey>,
) -> Result<Manifest, StoreError> {
    // The base's files stand, and every other one that the manifest names is new.
    let changes = manifest.changes.as_ref();
    let files = || changes.into_iter().flat_map(ChangesManifest::files);
    for entry in files() {
        let to = dir.join(&entry.file);
        std::fs::rename(work.join(&entry.file), &to).map_err(|e| StoreError::io(&to, "made", e))?;
    }
    let manifest = build::signed(dir, manifest.clone(), by)?;
    write_manifest(dir, work, &manifest, files())?;
    Ok(manifest)
}

/// What should be said of CHANGES that were read.
fn notes(options: &UpdateOptions, changes: &Changes<'_>, reached: &Reached) -> Vec<String> {
    let (origin, others) = (&options.changes, &changes.others);
    let others = (!others.is_empty()).then(|| {
        let others = others.join(",");
        format!("{origin} has columns that the table does not, which are passed over: {others} (--ignore {others})")
    });
    let folder = options.changes.is_folder() && !options.whole;
    let folder =
        folder.then(|| format!("rows of files that are gone from {origin} stay (--whole removes them)"));
    let links = dir::passed_over(&origin.to_string(), changes.passed_over());
    let links =
        links.map(|said| if options.whole { format!("{said}; rows of these names stay") } else { said });
    let column = options.follow.as_deref().unwrap_or_default();
    let unplaced = reached.unplaced;
    let unplaced = (unplaced > 0).then(|| {
        format!(
            "{unplaced} of the rows that were read have null, an infinite value, a time to come or the largest number there is in \
             {column:?}, by which nothing can be followed; such rows are read every time"
        )
    });
    others
        .into_iter()
        .chain(folder)
        .chain(links)
        .chain(unplaced)
        .chain(reached.strays(column))
        .chain(reached.set_back(column))
        .chain(changes.note.clone())
        .collect()
}

/// Columns that hold other kinds of values than before, a sentence each.
fn widened(old: &Manifest, now: Option<&[Kinds]>) -> Vec<String> {
    let kinds = old.kinds.iter().flatten().zip(now.unwrap_or_default()).zip(&old.values);
    let wider = kinds.filter(|((old, now), _)| **old != Kinds::NONE && old != now);
    let said = |((old, now), name): ((&Kinds, &Kinds), &String)| {
        let (old, new) = (shape::names(*old), shape::names(now.without(*old)));
        format!(
            "column {name:?} held {old} and now has {new} too; build the table again where that is not meant"
        )
    };
    wider.map(said).collect()
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

impl Counts {
    fn outcome(self, manifest: Manifest, published: bool, changes: u64, notes: Vec<String>) -> Updated {
        let Self { added, changed, removed, unchanged } = self;
        Updated { manifest, published, added, changed, removed, unchanged, changes, notes }
    }
}
