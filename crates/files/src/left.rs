//! What killed processes left: unfinished files, which lie locked beside their place while somebody writes them.

use std::fs::{self, File};
use std::path::Path;

/// What the names of unfinished files begin with.
pub(crate) const PREFIX: &str = ".blindcore-";

/// Holds an unfinished file that was just made. Whether that was done: a sweep may have come between.
pub(crate) fn hold(file: &File, path: &Path) -> bool {
    match file.try_lock() {
        // No locks here: then no sweep takes anything either.
        Err(fs::TryLockError::Error(_)) => true,
        Err(fs::TryLockError::WouldBlock) => false,
        Ok(()) => path.symlink_metadata().is_ok(),
    }
}

/// Removes unfinished files of a folder that nobody holds. What can't be read or removed stays.
pub(crate) fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // No pipe is opened: that would wait.
        if !ours || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        // Removed while it is held, so that who made it just now notices.
        if let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}
