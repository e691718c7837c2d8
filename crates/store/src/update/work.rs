//! Where a change to a database is made, and how it takes the place of what stood.

use std::path::{Path, PathBuf};

use blindcore_files::new_file::sync_folder;

use crate::StoreError;
use crate::folder::{WORK, make_last};
use crate::manifest::{FileEntry, MANIFEST, Manifest};

/// The folder within a database that a change to it works in, removed when this is dropped.
pub(crate) struct Work(PathBuf);

impl Work {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn create(dir: &Path) -> Result<Self, StoreError> {
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
pub(crate) fn sweep(dir: &Path, manifest: &Manifest) {
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

/// Replaces the manifest in one step, once these new files that it names last, which lie beside it.
pub(crate) fn write_manifest<'a>(
    dir: &Path,
    work: &Path,
    manifest: &Manifest,
    files: impl Iterator<Item = &'a FileEntry>,
) -> Result<(), StoreError> {
    let (new, place) = (work.join(MANIFEST), dir.join(MANIFEST));
    let io = |e| StoreError::io(&place, "written", e);
    std::fs::write(&new, manifest.to_json()).map_err(io)?;
    make_last(dir, files.map(|f| dir.join(&f.file)).chain([new.clone()]))?;
    std::fs::rename(&new, &place).and_then(|()| sync_folder(dir)).map_err(io)
}
