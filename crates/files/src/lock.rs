//! Locks on files.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::private;

/// A lock on a file, which one holder has at a time, in this process or another.
///
/// It is given up before the file is closed. A process that is being started has what its parent has open, until its own program runs:
/// by closing alone the file would stay locked for so long.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Locks a file without waiting; nothing while another holds it.
    ///
    /// # Errors
    /// The system has no locks there.
    pub fn try_on(file: File) -> io::Result<Option<Self>> {
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Locks the file at a path without waiting, and makes it where it is missing; returns nothing while another holds it. The holder
    /// may remove the file: the next one makes another.
    ///
    /// # Errors
    /// As [`private::open`], or the system has no locks there.
    pub fn try_at(path: &Path) -> io::Result<Option<Self>> {
        loop {
            let file = private::open(path, OpenOptions::new().create(true).truncate(false).write(true))?;
            let Some(lock) = Self::try_on(file)? else { return Ok(None) };
            // Its last holder may have removed it, and another may have made the one that is there now.
            if is_at(&lock.file, path)? {
                return Ok(Some(lock));
            }
        }
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Lets others have it from now on.
    pub fn give_up(&self) {
        // What fails here ends with the process.
        let _ = self.file.unlock();
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// Whether a file is the one at this path.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let there = match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            there => there?,
        };
        let this = file.metadata()?;
        Ok((this.dev(), this.ino()) == (there.dev(), there.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = (file, path);
        Ok(true)
    }
}

/// Removes a file and returns whether it was there.
///
/// # Errors
/// The system refuses.
pub fn remove(path: &Path) -> io::Result<bool> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_it_until_it_is_given_up_whoever_has_the_file_open() {
        let folder = tempfile::tempdir().unwrap();
        let open = || File::create(folder.path().join("lock")).unwrap();
        let lock = Lock::try_on(open()).unwrap().expect("free");
        assert!(Lock::try_on(open()).unwrap().is_none());
        // As a process that is being started has it.
        let _other = lock.file().try_clone().unwrap();
        drop(lock);
        let lock = Lock::try_on(open()).unwrap().expect("free again");
        lock.give_up();
        let next = Lock::try_on(open()).unwrap().expect("given up");
        // It gives up its own alone.
        drop(lock);
        assert!(Lock::try_on(open()).unwrap().is_none());
        drop(next);
    }

    #[test]
    fn a_file_that_its_holder_removed_is_nobodys_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = Lock::try_at(&path).unwrap().expect("free");
        assert!(Lock::try_at(&path).unwrap().is_none());
        // As one that waits has it open.
        let waiting = File::open(&path).unwrap();
        assert!(remove(&path).unwrap() && !remove(&path).unwrap());
        drop(lock);
        let stale = Lock::try_on(waiting).unwrap().expect("the file that is gone");
        assert!(!is_at(stale.file(), &path).unwrap());
        assert!(Lock::try_at(&path).unwrap().is_some(), "another file");
    }
}
