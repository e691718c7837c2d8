//! The folder of a build: hidden while it is made, then put in its place in one step.

use std::fs::File;
use std::path::{Path, PathBuf};

use blindcore_files::new_file::{sync_files, sync_folder};
use blindcore_files::private::is_strange_link;

use crate::manifest::{MANIFEST, Manifest};
use crate::{StoreError, mapped};

/// The folder in which a build works, removed unless it is published.
pub(crate) struct Folder {
    work: tempfile::TempDir,
    /// Held while the build lives, so that others see it does.
    _lock: File,
    out: PathBuf,
    /// Whether what is at the output may be replaced.
    force: bool,
    /// What was at the output when the build began, and alone may be replaced.
    replaces: Option<Standing>,
    /// Of the database to be made: the one after that which it replaces.
    pub(crate) epoch: u64,
}

/// The database at a build's output. An epoch is published while its folder is locked and compared with the one
/// that it was made from, so that of builds and updates that overlap one succeeds, and no epoch is lost or comes twice.
#[derive(PartialEq)]
struct Standing {
    /// Its epoch, also where nothing else can be read; 0 where that can't be read either.
    epoch: u64,
    manifest: Option<Manifest>,
}

impl Standing {
    /// Nothing where nothing is. Only a database is replaced: a mistyped --out must not cost a home folder.
    fn read(out: &Path) -> Result<Option<Self>, StoreError> {
        if out.symlink_metadata().is_err() {
            return Ok(None);
        }
        let standing = match Manifest::read(out) {
            Ok(m) => Self { epoch: m.epoch, manifest: Some(m.without_follow()) },
            Err(
                StoreError::Damaged { .. }
                | StoreError::UnknownScheme { .. }
                | StoreError::Newer { .. }
                | StoreError::Older { .. },
            ) if Manifest::is_ours(out) => {
                Self { epoch: Manifest::epoch_of(out).unwrap_or(0), manifest: None }
            }
            Err(_) => {
                let out = out.display();
                return Err(StoreError::Unfit(format!(
                    "{out} is not a database, so --force won't replace it"
                )));
            }
        };
        match foreign_file(out) {
            None => Ok(Some(standing)),
            Some(other) => Err(StoreError::Unfit(format!(
                "{} holds {other:?}, which is not a file of a database, so --force won't replace it; move it away",
                out.display()
            ))),
        }
    }
}

/// The file in a build's folder that is locked while the build lives.
pub(crate) const LOCK: &str = "building.lock";
/// What stands in the name of a folder that is being built, behind that of its place.
const BUILDING: &str = ".building-";

impl Folder {
    pub(crate) fn create(out: &Path, force: bool) -> Result<Self, StoreError> {
        if !force && out.symlink_metadata().is_ok() {
            return Err(StoreError::Exists { path: out.into() });
        }
        if is_strange_link(out) {
            return Err(StoreError::Unfit(format!(
                "--out {} is a link of another user, in a folder where others may write; name another folder",
                out.display()
            )));
        }
        // A link that is there stays, and what it leads to is replaced.
        let out = &if force { followed(out) } else { out.into() };
        let replaces = if force { Standing::read(out)? } else { None };
        let unfit = || StoreError::Unfit(format!("--out {} names no folder to make", out.display()));
        let name = out.file_name().ok_or_else(unfit)?.to_string_lossy().into_owned();
        let parent = match out.parent() {
            Some(p) if !p.as_os_str().is_empty() => p.to_owned(),
            _ => PathBuf::from("."),
        };
        let io = |e| StoreError::io(&parent, "written to", e);
        std::fs::create_dir_all(&parent).map_err(io)?;
        let prefix = format!(".{name}{BUILDING}");
        // One at a time: between making a folder and locking it, it looks like a dead build's.
        let alone = File::open(&parent).and_then(|f| f.lock().map(|()| f));
        if let Some(process) = sweep(&parent, &prefix) {
            return Err(StoreError::Building { path: out.into(), process });
        }
        // As errors name it: without the dot of the present folder.
        let whole = std::path::absolute(&parent).map_err(io)?;
        let work = tempfile::Builder::new().prefix(&prefix).tempdir_in(whole).map_err(io)?;
        let mut lock = File::create(work.path().join(LOCK)).map_err(io)?;
        std::io::Write::write_all(&mut lock, std::process::id().to_string().as_bytes()).map_err(io)?;
        lock.try_lock().map_err(|e| io(e.into()))?;
        drop(alone);
        let epoch = replaces.as_ref().map_or(0, |r| r.epoch).saturating_add(1);
        Ok(Self { work, _lock: lock, out: out.into(), force, replaces, epoch })
    }

    pub(crate) fn path(&self) -> &Path {
        self.work.path()
    }

    /// The database that is replaced, if one is and its manifest can be read.
    pub(crate) fn replaces(&self) -> Option<&Manifest> {
        self.replaces.as_ref()?.manifest.as_ref()
    }

    /// Makes sure that the output is what it was when the build began. Nothing there is as good: no epoch is lost then.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match if self.force { Standing::read(&self.out)? } else { None } {
            Some(now) if self.replaces.as_ref() != Some(&now) => Err(self.overtaken(now.epoch)),
            _ => Ok(()),
        }
    }

    fn overtaken(&self, now: u64) -> StoreError {
        StoreError::Overtaken { path: self.out.clone(), replaces: self.epoch - 1, now }
    }

    /// Makes the folder last and puts it where it belongs. A reader sees the database that was there before or the new one,
    /// and one of them whenever this process ends; where the system can't exchange two folders in one step there
    /// is a moment between.
    pub(crate) fn publish(self, manifest: &Manifest) -> Result<(), StoreError> {
        let io = |e| StoreError::io(&self.out, "made", e);
        #[cfg(unix)]
        {
            // tempfile makes folders that only their owner may enter; a database is a folder as the umask makes them.
            let ordinary = self.work.path().join("old");
            std::fs::create_dir(&ordinary).map_err(io)?;
            let mode = std::fs::metadata(&ordinary).map_err(io)?.permissions();
            std::fs::remove_dir(&ordinary).map_err(io)?;
            std::fs::set_permissions(self.work.path(), mode).map_err(io)?;
        }
        let files = manifest.files().map(|f| &f.file[..]).chain([MANIFEST]);
        make_last(self.work.path(), files.map(|file| self.work.path().join(file)))?;
        // An update of what is replaced ends first, and so does another build that replaces it.
        let _held = match self.force.then(|| lock(&self.out)) {
            None | Some(Err(StoreError::NoDatabase { .. })) => None,
            Some(held) => Some(held?),
        };
        self.check()?;
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
                std::io::ErrorKind::AlreadyExists if self.force => self.overtaken(1),
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

/// Makes these files last, and the names in their folder.
pub(crate) fn make_last(dir: &Path, files: impl Iterator<Item = PathBuf>) -> Result<(), StoreError> {
    let names = cfg!(unix).then(|| dir.to_owned());
    let files: Vec<_> = files.chain(names).collect();
    sync_files(&files).map_err(|(path, e)| StoreError::io(&path, "written", e))
}

/// Holds a database for changing it. Builds that replace it hold it too.
pub(crate) fn lock(dir: &Path) -> Result<File, StoreError> {
    let io = |e| StoreError::io(dir, "locked", e);
    loop {
        let held = File::open(dir).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => StoreError::NoDatabase { path: dir.into() },
            _ => io(e),
        })?;
        held.lock().map_err(io)?;
        // A build may have put another folder there while this waited.
        if same_file(&held, dir) {
            return Ok(held);
        }
    }
}

#[cfg(unix)]
fn same_file(held: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of = |m: std::fs::Metadata| (m.dev(), m.ino());
    held.metadata().ok().map(of) == std::fs::metadata(path).ok().map(of)
}

#[cfg(not(unix))]
fn same_file(_: &File, _: &Path) -> bool {
    true
}

/// The folder within a database that an update works in.
pub(crate) const WORK: &str = ".update";

/// A file of a folder that no database has.
fn foreign_file(dir: &Path) -> Option<String> {
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
    names.map(|e| e.file_name().to_string_lossy().into_owned()).find(|name| {
        name != MANIFEST
            && name != LOCK
            && name != WORK
            && ![".shard", ".sums", ".hint", ".state", ".seeds", ".log"]
                .iter()
                .any(|ending| name.ends_with(ending))
    })
}

/// Removes what killed builds left: folders, whatever they were to become, whose lock nobody holds, and those of this prefix
/// that have none: a living build's has one from its first moment to its last. The parent is locked meanwhile. Says which
/// process builds there now, as far as that is known, if one does.
fn sweep(parent: &Path, prefix: &str) -> Option<String> {
    let mut living = None;
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let same = name.starts_with(prefix);
        let building = name.starts_with('.') && name.contains(BUILDING);
        if !same && !building {
            continue;
        }
        let lock = entry.path().join(LOCK);
        let free = match File::open(&lock) {
            Ok(lock) => lock.try_lock().is_ok(),
            Err(e) => same && e.kind() == std::io::ErrorKind::NotFound,
        };
        if free {
            let _ = std::fs::remove_dir_all(entry.path());
        } else if same {
            living = Some(std::fs::read_to_string(lock).unwrap_or_default());
        }
    }
    living
}

/// What a link leads to, all of it; another path as it is.
fn followed(path: &Path) -> PathBuf {
    path.canonicalize().ok().filter(|_| path.is_symlink()).unwrap_or_else(|| path.into())
}

/// Removes the working folder of a build to `out` that this process runs and is about to leave by exiting: for a
/// signal's handler, when the build waits for a row that doesn't come.
pub fn abandon(out: &Path) {
    let out = followed(out);
    let (Some(name), parent) = (out.file_name(), out.parent()) else { return };
    let parent = parent.filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let prefix = format!(".{}{BUILDING}", name.to_string_lossy());
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
