//! New epochs of databases, taken up while they are served.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

use blindcore_store::{HintFile, Manifest, Stored, manifest::MANIFEST};
use blindcore_wire::PartKind;

use super::error::{HostError, with_causes};
use super::opener::{Hints, Opener};
use crate::Handle;

/// How often manifests are looked at.
const EVERY: Duration = Duration::from_secs(1);

/// How long after a server's start, or after a new epoch, large hints are checked: the first queries have the disk to
/// themselves.
const HINTS_AFTER: Duration = Duration::from_secs(5);

/// Watches the folder of a database that is served.
pub(super) struct EpochWatcher {
    dir: PathBuf,
    manifest: Manifest,
    seen: Option<Stamp>,
    /// Whether it was said that what is there now can't be served.
    said: bool,
}

/// What tells a manifest that was replaced from the one before without reading it.
type Stamp = (SystemTime, u64, u64);

fn stamp(dir: &Path) -> Option<Stamp> {
    let file = std::fs::metadata(dir.join(MANIFEST)).ok()?;
    #[cfg(unix)]
    let id = std::os::unix::fs::MetadataExt::ino(&file);
    #[cfg(not(unix))]
    let id = 0;
    Some((file.modified().ok()?, file.len(), id))
}

impl EpochWatcher {
    pub(super) fn new(stored: &Stored) -> Self {
        // Not the stamp of what is there now, which may be newer than what was opened.
        Self { dir: stored.dir().to_owned(), manifest: stored.manifest().clone(), seen: None, said: false }
    }

    /// Publishes what is there now, if it is another epoch, or if it fails to be served and a look is requested. Gives the
    /// hints that are to be checked.
    fn look(&mut self, handle: &Handle, opener: &Opener, always: bool) -> Hints {
        let now = stamp(&self.dir);
        if now == self.seen && !always {
            return Hints::new();
        }
        match self.publish(handle, opener, always) {
            Ok(hints) => {
                (self.seen, self.said) = (now, false);
                hints
            }
            Err(error) => {
                if always {
                    handle.reloaded(false);
                }
                // The folder may be between two epochs: another look comes, and is silent.
                if self.said || always {
                    tracing::warn!(
                        table = self.manifest.name,
                        error = with_causes(&error),
                        "an epoch can't be served"
                    );
                    self.seen = now;
                }
                self.said = true;
                Hints::new()
            }
        }
    }

    fn publish(&mut self, handle: &Handle, opener: &Opener, always: bool) -> Result<Hints, HostError> {
        let stored = Stored::open(&self.dir)?;
        let (old, new) = (&self.manifest, stored.manifest());
        // What fails is opened again on request, because its files may have been restored.
        let mend = |kind| always && handle.fails(&old.name, kind);
        let mending = PartKind::ALL.into_iter().any(mend);
        if old.is_same_epoch(new) && !mending {
            return Ok(Hints::new());
        }
        if old.name != new.name {
            return Err(HostError::OtherTable {
                dir: self.dir.clone(),
                found: new.name.clone(),
                served: old.name.clone(),
            });
        }
        let same_base = old.records == new.records && old.keys == new.keys && old.batches == new.batches;
        let (table, hints) =
            opener.open(&stored, mending, &|kind| !(same_base && kind.is_base()) || mend(kind))?;
        handle.publish(table)?;
        let what = if old.is_same_epoch(new) { "opened again" } else { "a new epoch" };
        tracing::info!(table = new.name, epoch = new.epoch, rows = new.live_rows(), same_base, "{what}");
        locked_out(old, new);
        self.manifest = new.clone();
        Ok(hints)
    }
}

/// Says loudly that clients which trust the signer of the epoch before refuse the new one.
fn locked_out(old: &Manifest, new: &Manifest) {
    let Some(before) = old.signed.as_ref().map(|signed| &signed.key) else { return };
    let now = new.signed.as_ref().map_or("nobody", |signed| &signed.key);
    if now != before {
        tracing::error!(
            table = new.name,
            before,
            now,
            "another signer: clients that trust the one before refuse this epoch"
        );
    } else if new.epoch < old.epoch {
        tracing::error!(
            table = new.name,
            before = old.epoch,
            now = new.epoch,
            "an older epoch: clients that trust its signer and saw the newer one refuse it"
        );
    }
}

/// Takes up new epochs and checks hints until the other end of `wake` is gone.
pub(super) fn run(
    mut watchers: Vec<EpochWatcher>,
    handle: &Handle,
    opener: &Opener,
    unchecked: &[Arc<HintFile>],
    wake: &Receiver<()>,
) {
    let due = |hint: &Arc<HintFile>| (Instant::now() + HINTS_AFTER, Arc::downgrade(hint));
    let mut unchecked: Vec<_> = unchecked.iter().map(due).collect();
    loop {
        let always = match wake.recv_timeout(EVERY) {
            Ok(()) => true,
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        for database in &mut watchers {
            unchecked.extend(database.look(handle, opener, always).iter().map(due));
        }
        // One at a time, for an epoch may wait.
        if let Some(next) = unchecked.iter().position(|(due, _)| Instant::now() >= *due) {
            // None of an epoch that is gone.
            let hint = unchecked.swap_remove(next).1.upgrade();
            if let Some(Err(error)) = hint.map(|hint| hint.check()) {
                tracing::error!("{error}");
            }
        }
    }
}
