//! Files that appear under their name once they are whole and on the disk; until then, what was there stays.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::private::is_strange_link;
use crate::secret::{is_secret_key, is_token, read};
use crate::{left, refusal};

/// Why a file can't be written. Each is one line that names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NewFileError {
    /// The system refuses.
    #[error("{} can't be written: {error}; {}", path.display(), refusal::remedy(error))]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// Its folder is missing.
    #[error("{} can't be written: its folder {} is missing; make it, or name another", path.display(), folder_of(path).display())]
    NoFolder {
        /// The file.
        path: PathBuf,
    },
    /// A file, or a link, is there that is to stay: it may have come while this one was made.
    #[error("{} is there already, and stays; name another file", path.display())]
    Taken {
        /// The file.
        path: PathBuf,
    },
    /// What is there is a folder, a pipe or a device.
    #[error("{} is there already and is not an ordinary file", path.display())]
    NoFile {
        /// The file.
        path: PathBuf,
    },
    /// What is there is a link that another user made where others may write.
    #[error("{} is a link of another user, in a folder where others may write; name another file", path.display())]
    StrangeLink {
        /// The file.
        path: PathBuf,
    },
    /// What is there is a secret key, and what is written is not.
    #[error("{} is a secret key, which would be lost; name another file", path.display())]
    SecretKey {
        /// The file.
        path: PathBuf,
    },
    /// What is there is a token, and what is written is not.
    #[error("{} is a token, which would be lost; name another file", path.display())]
    Token {
        /// The file.
        path: PathBuf,
    },
    /// What is there can't be read, so it may be a secret key.
    #[error("{} can't be read to see whether it is a secret key: {error}; name another file", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
}

/// Fails where a file is a secret key or a token, or can't be read to see.
///
/// # Errors
/// It is one, or it can't be read.
pub fn check_no_secret(path: &Path) -> Result<(), NewFileError> {
    let bytes = read(path).map_err(|error| NewFileError::Unreadable { path: path.to_owned(), error })?;
    match bytes {
        bytes if is_secret_key(&bytes) => Err(NewFileError::SecretKey { path: path.to_owned() }),
        bytes if is_token(&bytes) => Err(NewFileError::Token { path: path.to_owned() }),
        _ => Ok(()),
    }
}

/// Who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everyone whom the process's umask lets and, where a file is replaced, that one let.
    Everyone,
    /// Its owner alone (mode 0600), for what was secret and is no key, such as decrypted numbers. Otherwise as `Everyone`.
    Private,
    /// Its owner alone (mode 0600): a secret key, a token.
    Owner,
}

/// What becomes of a file that is there already when a new one is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The new one takes its place.
    Replace,
    /// It stays, and the new one is given up.
    Keep,
}

/// A new file beside its place, which takes the place when it is whole. Dropped before, it leaves nothing; what a killed
/// process left of it is removed by the next that makes one there.
pub struct NewFile {
    file: BufWriter<Unnamed>,
    place: PathBuf,
}

/// A file whose errors don't name it: who asked for another file knows that one.
struct Unnamed(tempfile::NamedTempFile);

impl Write for Unnamed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_file_mut().flush()
    }
}

impl NewFile {
    /// Starts a file for `place`. A link is followed, unless it is [another user's](is_strange_link), and a secret key or a token that is there is not replaced; for
    /// [`Access::Owner`] a link is replaced by the file, and a key may be.
    ///
    /// # Errors
    /// A folder, a pipe, a device, another user's link, a secret key or a token is there, or the system refuses.
    pub fn create(place: &Path, access: Access) -> Result<Self, NewFileError> {
        let place = Self::checked(place, access)?;
        Self::open(place, access)
    }

    fn checked(place: &Path, access: Access) -> Result<PathBuf, NewFileError> {
        let io = |error| NewFileError::Io { path: place.to_owned(), error };
        match fs::metadata(place) {
            Ok(there) if !there.is_file() => Err(NewFileError::NoFile { path: place.to_owned() }),
            Ok(_) if access == Access::Owner => Ok(place.to_owned()),
            Ok(_) if is_strange_link(place) => Err(NewFileError::StrangeLink { path: place.to_owned() }),
            Ok(_) => {
                check_no_secret(place)?;
                place.canonicalize().map_err(io)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(place.to_owned()),
            Err(error) => Err(io(error)),
        }
    }

    fn open(place: PathBuf, access: Access) -> Result<Self, NewFileError> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(left::PREFIX);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // For others as any new file is made, the umask taken off, but no more than what it replaces.
            let others = fs::metadata(&place).map_or(0o066, |there| there.permissions().mode() & 0o066);
            let mode = if access == Access::Everyone { 0o600 | others } else { 0o600 };
            builder.permissions(fs::Permissions::from_mode(mode));
        }
        left::sweep(folder_of(&place));
        loop {
            match builder.tempfile_in(folder_of(&place)) {
                Ok(file) if !left::hold(file.as_file(), file.path()) => {}
                Ok(file) => {
                    return Ok(Self { file: BufWriter::with_capacity(1 << 16, Unnamed(file)), place });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(NewFileError::NoFolder { path: place });
                }
                Err(error) => {
                    return Err(NewFileError::Io { path: place, error: io::Error::from(error.kind()) });
                }
            }
        }
    }

    /// Puts the file in its place, over what is there, and makes it last. Returns its length in bytes.
    ///
    /// # Errors
    /// The system refuses.
    pub fn replace(self) -> Result<u64, NewFileError> {
        self.finish(Existing::Replace)
    }

    /// Puts the file in its place, unless something is there, and makes it last. Returns its length in bytes.
    ///
    /// # Errors
    /// Something is there, or the system refuses.
    pub fn keep(self) -> Result<u64, NewFileError> {
        self.finish(Existing::Keep)
    }

    /// Puts the file in its place and makes it last. Returns its length in bytes.
    ///
    /// # Errors
    /// Something is there that is to be kept, or the system refuses.
    pub fn finish(self, existing: Existing) -> Result<u64, NewFileError> {
        let Self { file, place } = self;
        let finish = || -> io::Result<u64> {
            let Unnamed(file) = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.as_file().sync_all()?;
            let bytes = file.as_file().metadata()?.len();
            match existing {
                Existing::Replace => file.persist(&place),
                Existing::Keep => file.persist_noclobber(&place),
            }
            .map_err(|e| e.error)?;
            sync_folder(folder_of(&place))?;
            Ok(bytes)
        };
        finish().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => NewFileError::Taken { path: place.clone() },
            _ => NewFileError::Io { path: place.clone(), error },
        })
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes `bytes` as the file at `place`, whole or not at all.
///
/// # Errors
/// As [`NewFile::create`] and [`NewFile::finish`].
pub fn write(place: &Path, access: Access, existing: Existing, bytes: &[u8]) -> Result<(), NewFileError> {
    let mut file = NewFile::create(place, access)?;
    file.write_all(bytes).map_err(|error| NewFileError::Io { path: place.to_owned(), error })?;
    file.finish(existing).map(|_| ())
}

/// Moves a file that is whole to its place on the same disk, over what is there, and makes both last.
///
/// # Errors
/// The system refuses.
pub fn publish(from: &Path, place: &Path) -> io::Result<()> {
    File::open(from)?.sync_all()?;
    fs::rename(from, place)?;
    sync_folder(folder_of(place))
}

/// Makes files last, and folders' names where [`sync_folder`] does, several at a time: a file system's journal takes them all for
/// the price of one.
///
/// # Errors
/// The system refuses, of the first file of which it does.
pub fn sync_files(files: &[PathBuf]) -> Result<(), (PathBuf, io::Error)> {
    const AT_A_TIME: usize = 16;
    let next = AtomicUsize::new(0);
    let sync = || {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            File::open(file).and_then(|f| f.sync_all()).map_err(|error| (file.clone(), error))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..files.len().min(AT_A_TIME)).map(|_| scope.spawn(sync)).collect();
        let here = sync();
        let joined =
            others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        joined.fold(here, Result::and)
    })
}

/// Makes a folder's names last: a new name is on the disk when its folder is.
///
/// # Errors
/// The system refuses.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// The folder that a path names a file of.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_appear_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a");
        let mut file = NewFile::create(&place, Access::Everyone).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
        write(&place, Access::Everyone, Existing::Keep, b"one").unwrap();
        let mut second = NewFile::create(&place, Access::Everyone).unwrap();
        second.write_all(b"two").unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"one");
        assert_eq!(second.replace().unwrap(), 3);
        assert_eq!(fs::read(&place).unwrap(), b"two");
        let third = NewFile::create(&place, Access::Everyone).unwrap();
        let said = third.keep().unwrap_err().to_string();
        assert!(said.contains("a is there already, and stays"), "{said}");
        assert_eq!(fs::read(&place).unwrap(), b"two");
        let said = NewFile::create(folder.path(), Access::Owner).err().unwrap().to_string();
        assert!(said.contains("not an ordinary file"), "{said}");
    }

    #[cfg(unix)]
    #[test]
    fn what_the_system_refuses_names_no_file_that_nobody_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let (file, path) =
            tempfile::Builder::new().prefix(left::PREFIX).tempfile_in(&folder).unwrap().into_parts();
        drop(file);
        let for_reading = File::open(&path).unwrap();
        let mut file = Unnamed(tempfile::NamedTempFile::from_parts(for_reading, path));
        let said = file.write_all(b"x").unwrap_err().to_string();
        assert!(said.contains("os error") && !said.contains(left::PREFIX), "{said}");
        let said =
            NewFile::create(&folder.path().join("no/file"), Access::Everyone).err().unwrap().to_string();
        assert!(said.contains("no/file can't be written: ") && !said.contains(left::PREFIX), "{said}");
    }

    #[test]
    fn what_killed_processes_left_goes_with_the_next_file() {
        let folder = tempfile::tempdir().unwrap();
        let (place, dead) = (folder.path().join("a"), folder.path().join(".blindcore-dead"));
        fs::write(&dead, "half").unwrap();
        fs::write(folder.path().join(".other"), "stays").unwrap();
        let mut living = NewFile::create(&place, Access::Everyone).unwrap();
        assert!(!dead.exists());
        living.write_all(b"living").unwrap();
        write(&folder.path().join("b"), Access::Everyone, Existing::Replace, b"another").unwrap();
        living.replace().unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"living");
        let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".other", "a", "b"]);
    }

    #[test]
    fn a_token_is_replaced_by_nothing_but_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("ada.token");
        let token = format!("blindcore_{}", "0123456789abcdef".repeat(4));
        for text in [format!("{token}\n"), token.clone(), format!("\u{feff}{token}\r\n")] {
            fs::write(&place, &text).unwrap();
            let said = write(&place, Access::Private, Existing::Replace, b"numbers").unwrap_err().to_string();
            assert!(said.contains("ada.token is a token, which would be lost; name another file"), "{said}");
            assert_eq!(fs::read_to_string(&place).unwrap(), text);
        }
        // A server's line about a token, and what only begins as one, may be replaced.
        for text in [format!("ada {token}\n"), format!("{token}0\n"), format!("{token}\n{token}\n")] {
            fs::write(&place, text).unwrap();
            assert!(write(&place, Access::Private, Existing::Replace, b"numbers").is_ok());
        }
    }

    #[cfg(unix)]
    #[test]
    fn secrets_are_their_owner_s_and_links_are_followed_for_the_rest() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write(&link, Access::Private, Existing::Replace, b"numbers").unwrap();
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
        write(&link, Access::Everyone, Existing::Replace, b"new").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        let mode = fs::metadata(&target).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "who kept a file from others keeps what replaces it from them");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        write(&link, Access::Owner, Existing::Replace, b"secret").unwrap();
        assert_eq!((fs::read(&target).unwrap(), fs::read(&link).unwrap()), (b"new".into(), b"secret".into()));
        let there = fs::symlink_metadata(&link).unwrap();
        assert!(there.is_file() && there.permissions().mode() & 0o777 == 0o600);
    }

    /// Only root can give a link away.
    #[cfg(unix)]
    #[test]
    fn links_that_others_made_where_they_may_write_are_not_followed() {
        use std::os::unix::fs::{PermissionsExt, lchown, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (open, target) = (folder.path().join("open"), folder.path().join("target"));
        let link = open.join("link");
        fs::create_dir(&open).unwrap();
        fs::write(&target, "precious").unwrap();
        symlink(&target, &link).unwrap();
        let mode = |mode| fs::set_permissions(&open, fs::Permissions::from_mode(mode)).unwrap();
        let made = |text: &[u8]| write(&link, Access::Private, Existing::Replace, text);
        mode(0o1777);
        made(b"one's own").unwrap();
        if lchown(&link, Some(12345), None).is_err() {
            return;
        }
        let said = made(b"numbers").unwrap_err().to_string();
        assert!(said.ends_with(
            "link is a link of another user, in a folder where others may write; name another file"
        ));
        assert_eq!(fs::read(&target).unwrap(), b"one's own");
        // Where nobody else may write, or in a folder of the link's owner, it is followed.
        mode(0o755);
        made(b"numbers").unwrap();
        lchown(&open, Some(12345), None).unwrap();
        mode(0o777);
        made(b"more").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"more");
        // A secret takes its place.
        lchown(&open, Some(0), None).unwrap();
        write(&link, Access::Owner, Existing::Replace, b"secret").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"more");
    }

    #[test]
    fn secret_keys_are_not_replaced_by_what_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("key");
        write(&place, Access::Owner, Existing::Replace, b"-----BEGIN PRIVATE KEY-----\nAAAA\n").unwrap();
        for access in [Access::Everyone, Access::Private] {
            let said = write(&place, access, Existing::Replace, b"x").unwrap_err().to_string();
            assert!(said.contains("is a secret key"), "{said}");
        }
        write(&place, Access::Owner, Existing::Replace, b"another").unwrap();
    }
}
