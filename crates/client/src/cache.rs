//! Hints on disk, so that a table's is fetched once an epoch.
//!
//! A file is named after table, epoch, part and digest, and starts with 96 bytes that say what it is:
//!
//! | bytes | what                                     |
//! |-------|------------------------------------------|
//! | 8     | `BLNDHINT`                               |
//! | 4     | version, 1                               |
//! | 4     | bytes of this header, 96                 |
//! | 32    | digest of the parameters                 |
//! | 32    | digest of the hint                       |
//! | 8     | bytes of the hint                        |
//! | 8     | zeros                                    |
//!
//! The hint follows. While it is fetched the file is called `.part`, and a download that broke goes on where
//! that ends. Who fetches holds a lock beside it; others wait for them. A file is read whole and believed only
//! if it hashes to its digest.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blindcore_wire::{PartDescription, PartKind};

use crate::Error;

/// Where hints are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CacheDir {
    /// `$XDG_CACHE_HOME/blindcore`, or `~/.cache/blindcore`.
    #[default]
    User,
    /// This folder, made where it is missing.
    At(PathBuf),
    /// In memory alone.
    None,
}

impl CacheDir {
    /// The folder, if there is to be one.
    ///
    /// # Errors
    /// [`CacheDir::User`], but the environment names no folder.
    pub fn path(&self) -> Result<Option<PathBuf>, Error> {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        match self {
            CacheDir::None => Ok(None),
            CacheDir::At(path) => Ok(Some(path.clone())),
            CacheDir::User => absolute("XDG_CACHE_HOME")
                .or_else(|| Some(absolute("HOME")?.join(".cache")))
                .map(|base| Some(base.join("blindcore")))
                .ok_or(Error::NoCacheFolder),
        }
    }
}

/// A hint in memory, the roots of proofs behind it, aligned for its words.
pub(crate) struct Words(Vec<u32>);

/// The first so many bytes of it.
pub(crate) struct Start(pub(crate) Arc<Words>, pub(crate) usize);

impl AsRef<[u8]> for Start {
    fn as_ref(&self) -> &[u8] {
        &(*self.0).as_ref()[..self.1]
    }
}

impl AsRef<[u8]> for Words {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

impl Words {
    pub(crate) fn empty() -> Self {
        Self(Vec::new())
    }

    /// Appends at byte `at`, which is where the bytes so far end.
    pub(crate) fn push(&mut self, at: usize, bytes: &[u8]) {
        self.0.resize((at + bytes.len()).div_ceil(4), 0);
        bytemuck::cast_slice_mut(&mut self.0)[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub(crate) fn digest(&self) -> [u8; 32] {
        *blake3::hash(self.as_ref()).as_bytes()
    }
}

pub(crate) const HEADER_BYTES: usize = 96;
const MAGIC: &[u8; 8] = b"BLNDHINT";
const VERSION: u32 = 1;

fn header(part: &PartDescription) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
    header[16..48].copy_from_slice(&part.params.digest());
    header[48..80].copy_from_slice(&part.hint_digest);
    header[80..88].copy_from_slice(&part.hint_bytes().to_le_bytes());
    header
}

/// The files of one hint.
#[derive(Clone)]
pub(crate) struct HintFile {
    folder: PathBuf,
    /// What the names of all its table's hints begin with.
    family: String,
    stem: String,
    header: [u8; HEADER_BYTES],
    bytes: u64,
    digest: [u8; 32],
}

/// Who holds it fetches.
pub(crate) struct Lock {
    _file: File,
}

impl HintFile {
    /// The file of a hint from `server`. Each server has files of its own: were they shared, one could offer
    /// another's hint and see from what is fetched whether this client knows the other.
    pub(crate) fn new(
        folder: &Path,
        server: &str,
        table: &str,
        epoch: u64,
        kind: PartKind,
        part: &PartDescription,
    ) -> Self {
        let server: String = blake3::hash(server.as_bytes()).to_hex()[..8].to_owned();
        let digest: String = part.hint_digest[..8].iter().map(|b| format!("{b:02x}")).collect();
        // A long name is cut; the digest tells tables apart all the same. Names are ASCII.
        let table = &table[..table.len().min(100)];
        Self {
            folder: folder.to_owned(),
            family: format!("{table}-{kind}-{server}-"),
            stem: format!("{table}-{kind}-{server}-{epoch}-{digest}"),
            header: header(part),
            bytes: part.hint_bytes(),
            digest: part.hint_digest,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join(format!("{}.hint", self.stem))
    }

    /// The file that a download is written to; one of this process's own where another is stuck with it.
    pub(crate) fn part_path(&self, own: bool) -> PathBuf {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(0);
        self.folder.join(if own {
            let n = NEXT.fetch_add(1, Ordering::Relaxed);
            format!("{}.{}-{n}.part", self.stem, std::process::id())
        } else {
            format!("{}.part", self.stem)
        })
    }

    fn error(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |source| Error::Cache { path: path.to_owned(), source }
    }

    /// Makes the folder, for this user alone: its names say which tables are looked at.
    pub(crate) fn make_folder(&self) -> Result<(), Error> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.folder).map_err(Self::error(&self.folder))
    }

    /// The lock on fetching, or `None` while another holds it.
    pub(crate) fn try_lock(&self) -> Result<Option<Lock>, Error> {
        let path = self.folder.join(format!("{}.lock", self.stem));
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(Self::error(&path))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(Error::Cache { path, source }),
        }
    }

    /// The hint in a whole file; `None` where there is none, or one that is not what it should be, which is
    /// then removed and named in the log.
    pub(crate) fn read(&self, path: &Path) -> Result<Option<Arc<Words>>, Error> {
        match self.read_strict(path) {
            Ok(words) => Ok(Some(Arc::new(words))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) => {
                tracing::warn!(path = %path.display(), %error, "a cached hint is refused and removed");
                std::fs::remove_file(path).map_err(Self::error(path))?;
                Ok(None)
            }
            Err(source) => Err(Error::Cache { path: path.to_owned(), source }),
        }
    }

    fn read_strict(&self, path: &Path) -> std::io::Result<Words> {
        let refuse = |what: String| Err(std::io::Error::new(ErrorKind::InvalidData, what));
        let mut file = File::open(path)?;
        let (got, want) = (file.metadata()?.len(), HEADER_BYTES as u64 + self.bytes);
        if got != want {
            return refuse(format!("it has {got} B where this hint makes {want}"));
        }
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header)?;
        if header != self.header {
            return refuse("its header is another file's".into());
        }
        let mut words = Words(vec![0; (self.bytes / 4) as usize]);
        file.read_exact(bytemuck::cast_slice_mut(&mut words.0))?;
        if words.digest() != self.digest {
            return refuse("its bytes are not what its digest says".into());
        }
        Ok(words)
    }

    /// Opens a `.part` file to go on with, and how many bytes of the hint it has. One that is not of this hint
    /// starts anew.
    pub(crate) fn open_part(&self, path: &Path) -> Result<(File, u64), Error> {
        let open = || {
            let mut file =
                OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
            let len = file.metadata()?.len();
            let mut header = [0; HEADER_BYTES];
            let ours = len >= HEADER_BYTES as u64
                && len <= HEADER_BYTES as u64 + self.bytes
                && file.read_exact(&mut header).is_ok()
                && header == self.header;
            if ours {
                file.seek(SeekFrom::End(0))?;
                return Ok((file, len - HEADER_BYTES as u64));
            }
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&self.header)?;
            Ok((file, 0))
        };
        open().map_err(Self::error(path))
    }

    /// Turns a whole `.part` file into the hint. `None` where it is not what its digest says; it is gone then.
    pub(crate) fn finish(&self, part: &Path) -> Result<Option<Arc<Words>>, Error> {
        let Some(words) = self.read(part)? else { return Ok(None) };
        std::fs::rename(part, self.path()).map_err(Self::error(part))?;
        self.remove_older();
        Ok(Some(words))
    }

    /// Removes this table's hints of other epochs, whole or not: nobody asks for them again, and a server must
    /// not fill a disk by going through epochs.
    fn remove_older(&self) {
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(&self.family) && !name.starts_with(&self.stem) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blindcore_lookup::{Geometry, Params, Scheme};

    fn part() -> (Vec<u8>, PartDescription) {
        let geometry = Geometry { record_bytes: 1, groups: 1, columns: 1 };
        let params = Params::new(Scheme::Simple, geometry).unwrap();
        let hint: Vec<u8> = (0..4 * params.hint_words()).map(|i| i as u8).collect();
        let hint_digest = *blake3::hash(&hint).as_bytes();
        (hint, PartDescription { params, hint_digest, proofs: None })
    }

    #[test]
    fn the_file_of_version_1_reads_back() {
        let (hint, part) = part();
        let header = header(&part);
        assert_eq!(header[..16], *b"BLNDHINT\x01\0\0\0\x60\0\0\0");
        let folder = tempfile::tempdir().unwrap();
        let file = HintFile::new(folder.path(), "host:1", "t", 7, PartKind::Records, &part);
        let name = file.path().file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.starts_with("t-records-") && name.ends_with(".hint"), "{name}");
        std::fs::write(file.path(), [&header[..], &hint].concat()).unwrap();
        assert_eq!((*file.read(&file.path()).unwrap().unwrap()).as_ref(), hint);
    }

    #[test]
    fn foreign_and_damaged_files_are_removed() {
        let (hint, part) = part();
        let folder = tempfile::tempdir().unwrap();
        let file = HintFile::new(folder.path(), "host:1", &"n".repeat(255), 7, PartKind::Keys, &part);
        let whole = [&header(&part)[..], &hint].concat();
        let mut flipped = whole.clone();
        flipped[HEADER_BYTES + 5] ^= 1;
        let mut other = whole.clone();
        other[8] = 2;
        for bad in [&[][..], b"hello", &whole[..whole.len() - 1], &flipped, &other] {
            std::fs::write(file.path(), bad).unwrap();
            assert!(file.read(&file.path()).unwrap().is_none());
            assert!(!file.path().exists());
        }
        assert!(file.read(&file.path()).unwrap().is_none(), "and none at all");
    }

    #[test]
    fn a_part_goes_on_where_it_ends_and_only_if_it_is_ours() {
        let (hint, part) = part();
        let folder = tempfile::tempdir().unwrap();
        let file = HintFile::new(folder.path(), "host:1", "t", 7, PartKind::Records, &part);
        let path = file.part_path(false);
        let (mut open, have) = file.open_part(&path).unwrap();
        assert_eq!(have, 0);
        open.write_all(&hint[..100]).unwrap();
        let (mut open, have) = file.open_part(&path).unwrap();
        assert_eq!(have, 100);
        open.write_all(&hint[100..]).unwrap();
        assert_eq!((*file.finish(&path).unwrap().unwrap()).as_ref(), hint);
        assert!(file.path().exists() && !path.exists());
        std::fs::write(&path, vec![7; 5000]).unwrap();
        assert_eq!(file.open_part(&path).unwrap().1, 0);
    }

    #[test]
    fn one_holds_the_lock() {
        let (_, part) = part();
        let folder = tempfile::tempdir().unwrap();
        let file = HintFile::new(folder.path(), "host:1", "t", 7, PartKind::Records, &part);
        let lock = file.try_lock().unwrap().expect("free");
        assert!(file.try_lock().unwrap().is_none());
        drop(lock);
        assert!(file.try_lock().unwrap().is_some());
    }
}
