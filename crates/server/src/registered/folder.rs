//! Keys on disk: a file for each set, under its digest.
//!
//! | bytes | what                                              |
//! |-------|---------------------------------------------------|
//! | 8     | `BLNDREGK`                                        |
//! | 4     | version, 1                                        |
//! | 4     | zeros                                             |
//! | 32    | digest of the parameters                          |
//! | 16    | what stands for the client that registered them   |
//! | 8     | when, in seconds since 1970                       |
//! | 8     | bytes of the keys                                 |
//! | 48    | zeros                                             |
//!
//! The keys follow; they hash to the file's name. When they were used last is when the file was changed last. A file appears
//! under its name once it is whole and on the disk, so that nothing is lost that a client was told of.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use blindcore_files::header::{Field, Layout};
use blindcore_files::new_file::NewFileError;
use blindcore_files::{Access, Lock, NewFile, private};

use super::index::{Digest, Entry, Owner};

const HEADER_BYTES: usize = 128;
const LAYOUT: Layout = Layout {
    what: "a client's registered keys",
    magic: b"BLNDREGK",
    version_at: 8,
    version_bytes: 4,
    version: 1,
    bytes: HEADER_BYTES,
};
const PARAMS: Field<[u8; 32]> = Field::at(16);
const OWNER: Field<Owner> = Field::at(48);
const REGISTERED: Field<u64> = Field::at(64);
const BYTES: Field<u64> = Field::at(72);
const ENDING: &str = ".keys";
/// Its holder is the server whose folder it is.
const LOCK: &str = "lock";

/// A folder of keys, of one server at a time.
pub(crate) struct Folder {
    path: PathBuf,
    lock: Lock,
}

impl Folder {
    /// Makes the folder where it is missing, and takes it for this process.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        private::folder(path)?;
        let file =
            private::open(&path.join(LOCK), OpenOptions::new().create(true).truncate(false).write(true))?;
        let Some(lock) = Lock::try_on(file)? else {
            let why = "another server uses it; give each a folder of its own";
            return Err(io::Error::new(ErrorKind::ResourceBusy, why));
        };
        Ok(Self { path: path.to_owned(), lock })
    }

    /// Lets another server have it.
    pub(crate) fn give_up(&self) {
        self.lock.give_up();
    }

    /// What lies there. Keys that can't be read are removed, and named in the log; other files stay.
    pub(crate) fn list(&self) -> io::Result<Vec<(Digest, Entry)>> {
        let mut all = Vec::new();
        for file in std::fs::read_dir(&self.path)? {
            let path = file?.path();
            let Some(digest) = path.file_name().and_then(|name| digest_of(&name.to_string_lossy())) else {
                continue;
            };
            match entry(&path) {
                Ok(entry) => all.push((digest, entry)),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "a file of registered keys is refused and removed");
                    std::fs::remove_file(&path)?;
                }
            }
        }
        Ok(all)
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.path.join(format!("{}{ENDING}", blake3::Hash::from_bytes(*digest).to_hex()))
    }

    /// Writes keys, whole and to the disk, or not at all.
    pub(crate) fn write(&self, digest: &Digest, entry: &Entry, keys: &[u8]) -> io::Result<()> {
        let mut header = LAYOUT.start();
        PARAMS.put(&mut header, entry.params);
        OWNER.put(&mut header, entry.owner);
        REGISTERED.put(&mut header, entry.used);
        BYTES.put(&mut header, entry.bytes);
        let path = self.path(digest);
        let write = || {
            let mut file = NewFile::create(&path, Access::Owner)?;
            let io = |error| NewFileError::Io { path: path.clone(), error };
            file.write_all(&header).and_then(|()| file.write_all(keys)).map_err(io)?;
            file.replace()
        };
        write().map_err(of_kind)?;
        // When it was registered counts, whatever clock the system has.
        self.used(digest, entry.used)
    }

    /// The keys of a digest, if the file still holds them.
    pub(crate) fn read(&self, digest: &Digest, bytes: u64) -> io::Result<Vec<u8>> {
        let mut file = private::open(&self.path(digest), OpenOptions::new().read(true))?;
        let refuse = |why: &str| Err(io::Error::new(ErrorKind::InvalidData, why));
        if file.metadata()?.len() != HEADER_BYTES as u64 + bytes {
            return refuse("it has another length");
        }
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header)?;
        let mut keys = vec![0; bytes as usize];
        file.read_exact(&mut keys)?;
        if *blake3::hash(&keys).as_bytes() != *digest {
            return refuse("its bytes are not what its name says");
        }
        Ok(keys)
    }

    /// Says when keys were used last.
    pub(crate) fn used(&self, digest: &Digest, at: u64) -> io::Result<()> {
        let file = private::open(&self.path(digest), OpenOptions::new().write(true))?;
        file.set_modified(UNIX_EPOCH + Duration::from_secs(at))
    }

    pub(crate) fn remove(&self, digest: &Digest) -> io::Result<()> {
        match std::fs::remove_file(self.path(digest)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// An error that says as much, of the kind of what the system said: a full disk is another matter than the rest.
fn of_kind(error: NewFileError) -> io::Error {
    match &error {
        NewFileError::Io { error: said, .. } => io::Error::new(said.kind(), error),
        _ => io::Error::other(error),
    }
}

/// The digest that a file's name is, if it is one.
fn digest_of(name: &str) -> Option<Digest> {
    let hex = name.strip_suffix(ENDING)?;
    let digest = blake3::Hash::from_hex(hex).ok()?;
    (digest.to_hex().as_str() == hex).then_some(*digest.as_bytes())
}

/// What a file's header says. Its keys are read when something is asked under them.
fn entry(path: &Path) -> io::Result<Entry> {
    let mut file = private::open(path, OpenOptions::new().read(true))?;
    let about = file.metadata()?;
    let mut header = Vec::with_capacity(HEADER_BYTES);
    (&mut file).take(HEADER_BYTES as u64).read_to_end(&mut header)?;
    let refuse = |why: String| io::Error::new(ErrorKind::InvalidData, why);
    let header = LAYOUT.check(&header).map_err(|error| refuse(error.to_string()))?;
    let bytes = BYTES.get(header);
    if bytes.checked_add(HEADER_BYTES as u64) != Some(about.len()) {
        return Err(refuse(format!("it has {} B and its header says {bytes} B of keys", about.len())));
    }
    let used = about.modified()?.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (params, owner, asked) = (PARAMS.get(header), OWNER.get(header), used > REGISTERED.get(header));
    Ok(Entry { params, owner, bytes, used, asked })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &[u8] = b"public keys";

    fn digest() -> Digest {
        *blake3::hash(KEYS).as_bytes()
    }

    fn entry() -> Entry {
        Entry { params: [1; 32], owner: [2; 16], bytes: KEYS.len() as u64, used: 1000, asked: false }
    }

    #[test]
    fn what_was_written_is_there_when_the_folder_is_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        let folder = Folder::open(&path).unwrap();
        assert!(Folder::open(&path).err().unwrap().to_string().contains("another server uses it"));
        folder.write(&digest(), &entry(), KEYS).unwrap();
        // What a killed process left, and what is none of ours.
        std::fs::write(path.join(".blindcore-dead"), "half").unwrap();
        std::fs::write(path.join("notes.txt"), "stays").unwrap();
        drop(folder);
        let folder = Folder::open(&path).unwrap();
        assert_eq!(folder.list().unwrap(), [(digest(), entry())]);
        assert_eq!(folder.read(&digest(), entry().bytes).unwrap(), KEYS);
        folder.used(&digest(), 2000).unwrap();
        assert_eq!(folder.list().unwrap(), [(digest(), Entry { used: 2000, asked: true, ..entry() })]);
        folder.remove(&digest()).unwrap();
        folder.remove(&digest()).unwrap();
        assert!(folder.list().unwrap().is_empty() && path.join("notes.txt").exists());
    }

    #[test]
    fn damaged_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        folder.write(&digest(), &entry(), KEYS).unwrap();
        let path = folder.path(&digest());
        let whole = std::fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        *flipped.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &flipped).unwrap();
        assert_eq!(folder.list().unwrap().len(), 1, "its keys are not read yet");
        assert_eq!(folder.read(&digest(), entry().bytes).unwrap_err().kind(), ErrorKind::InvalidData);
        let mut newer = whole.clone();
        newer[8] = 2;
        for bad in [&whole[..whole.len() - 1], &whole[..20], &[], &newer] {
            std::fs::write(&path, bad).unwrap();
            assert!(folder.list().unwrap().is_empty() && !path.exists());
        }
        assert!(folder.read(&digest(), entry().bytes).is_err());
    }

    #[test]
    fn a_full_disk_is_told_from_the_rest() {
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::PermissionDenied] {
            let error = of_kind(NewFileError::Io { path: "some.keys".into(), error: kind.into() });
            assert!(
                error.kind() == kind && error.to_string().contains("some.keys can't be written"),
                "{error}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(&dir.path().join("keys")).unwrap();
        let elsewhere = dir.path().join("elsewhere");
        std::fs::write(&elsewhere, "x").unwrap();
        std::os::unix::fs::symlink(&elsewhere, folder.path(&digest())).unwrap();
        assert!(folder.read(&digest(), 1).is_err());
        assert!(folder.list().unwrap().is_empty() && elsewhere.exists());
    }
}
