//! Locks on files.

use std::fs::{File, TryLockError};
use std::io;

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
}
