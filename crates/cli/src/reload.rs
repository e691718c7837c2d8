//! New epochs of databases, taken up while they are served.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

use blindcore_server::{Handle, Table};
use blindcore_store::{HintFile, Manifest, Stored, manifest::MANIFEST};
use blindcore_wire::PartKind;

/// How often somebody looks whether a manifest is another one.
const EVERY: Duration = Duration::from_secs(1);

/// How long after a server's start, or after a new epoch, hints are checked that nobody waited for: who asks first has the
/// disk for itself.
const HINTS_AFTER: Duration = Duration::from_secs(5);

/// Opens a database's parts of these kinds as a table; also gives the hints that nobody checked yet.
pub(crate) type Open =
    Box<dyn FnMut(&Stored, &dyn Fn(PartKind) -> bool) -> anyhow::Result<(Table, Hints)> + Send>;

/// Hints in their files.
pub(crate) type Hints = Vec<Arc<HintFile>>;

/// A database that is served.
pub(crate) struct Watched {
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

impl Watched {
    pub(crate) fn new(stored: &Stored) -> Self {
        // Not the stamp of what is there now, which may be newer than what was opened.
        Self { dir: stored.dir().to_owned(), manifest: stored.manifest().clone(), seen: None, said: false }
    }

    /// Publishes what is there now, if it is another epoch, or if it fails to be served and somebody asks to look. Gives the
    /// hints that are to be checked.
    fn look(&mut self, handle: &Handle, open: &mut Open, always: bool) -> Hints {
        let now = stamp(&self.dir);
        if now == self.seen && !always {
            return Hints::new();
        }
        match self.publish(handle, open, always) {
            Ok(hints) => {
                (self.seen, self.said) = (now, false);
                hints
            }
            Err(error) => {
                // The folder may be between two epochs: another look comes, and is silent.
                if self.said || always {
                    tracing::warn!(
                        table = self.manifest.name,
                        error = format!("{error:#}"),
                        "an epoch can't be served"
                    );
                    self.seen = now;
                }
                self.said = true;
                Hints::new()
            }
        }
    }

    fn publish(&mut self, handle: &Handle, open: &mut Open, always: bool) -> anyhow::Result<Hints> {
        let stored = Stored::open(&self.dir)?;
        let (old, new) = (&self.manifest, stored.manifest());
        let fails = handle.fails(&old.name);
        if old == new && !(always && fails) {
            return Ok(Hints::new());
        }
        anyhow::ensure!(
            old.name == new.name,
            "{} holds table {} where {} is served; start the server again",
            self.dir.display(),
            new.name,
            old.name
        );
        // What fails is opened again, for its files may have been mended.
        let same_base = old.records == new.records && old.keys == new.keys && !fails;
        let (table, hints) = open(&stored, &|kind| !(same_base && kind.is_base()))?;
        handle.publish(table)?;
        tracing::info!(table = new.name, epoch = new.epoch, rows = new.live_rows(), same_base, "a new epoch");
        self.manifest = new.clone();
        Ok(hints)
    }
}

/// Takes up new epochs, and checks hints, until whoever can wake it is gone.
pub(crate) fn run(
    mut watched: Vec<Watched>,
    handle: &Handle,
    mut open: Open,
    mut unchecked: Hints,
    wake: &Receiver<()>,
) {
    let mut since = Instant::now();
    loop {
        let always = match wake.recv_timeout(EVERY) {
            Ok(()) => true,
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        for database in &mut watched {
            let hints = database.look(handle, &mut open, always);
            if !hints.is_empty() {
                since = Instant::now();
                unchecked.extend(hints);
            }
        }
        if since.elapsed() >= HINTS_AFTER {
            for hint in unchecked.drain(..) {
                if let Err(error) = hint.check() {
                    tracing::error!("{error}");
                }
            }
        }
    }
}
