//! Hints on disk, so that each content of a table is fetched once: the files of [`CacheEntry`].
//!
//! While a hint is fetched its file is called `.part`, and a download that broke goes on where that ends. A client that
//! fetches holds a lock beside it; others wait for it. A file is read whole and believed only if it hashes to its
//! digest.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use blindcore_files::{Lock, lock, private};
use blindcore_protocol::{CacheEntry, HEADER_BYTES, Hint, Kept, KeyEntry, SeenEpochs};

use crate::{Error, registered};

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
        let absolute = |name| blindcore_units::variable(name).map(PathBuf::from).filter(|p| p.is_absolute());
        match self {
            CacheDir::None => Ok(None),
            CacheDir::At(path) => Ok(Some(path.clone())),
            CacheDir::User => absolute("XDG_CACHE_HOME")
                .or_else(|| Some(absolute("HOME")?.join(".cache")))
                .map(|base| Some(base.join("blindcore")))
                .ok_or(Error::NoCacheFolder),
        }
    }

    /// Whether the folder can be used, if there is one; else it would be made.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Some(folder) = self.path()?.filter(|folder| folder.as_os_str().is_empty() || folder.exists())
        else {
            return Ok(());
        };
        private::check_folder(&folder).map_err(HintFile::error(&folder))
    }
}

/// A file of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cached {
    /// Its name in the cache's folder: the table's, with digits that tell entries apart.
    pub name: String,
    /// Bytes of it.
    pub bytes: u64,
}

/// The name of the hint whose file is called so: whole, on its way or locked. Nothing where the file is not a cache's.
fn hint_of(file: &str) -> Option<&str> {
    let (name, ending) = file.rsplit_once('.')?;
    let number = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit());
    let own = || {
        let (name, process) = name.rsplit_once('.')?;
        process.split_once('-').filter(|(process, n)| number(process) && number(n)).map(|_| name)
    };
    let name = match ending {
        "hint" | "lock" => name,
        "part" => own().unwrap_or(name),
        _ => return None,
    };
    CacheEntry::is_name(name).then_some(name)
}

/// The name of a file in the cache's folder, without that of a folder within.
fn last(file: &Cached) -> &str {
    Path::new(&file.name).file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Whether a file of the folder `keys` is one of registered keys.
fn is_keys(file: &Cached) -> bool {
    last(file).strip_suffix(registered::ENDING).is_some_and(KeyEntry::is_name)
}

/// Whether a file of the folder `epochs` stands for an epoch that was seen.
fn is_epoch(file: &Cached) -> bool {
    file.bytes == 0 && SeenEpochs::is_name(last(file))
}

impl CacheDir {
    /// The hints in the cache, whole or broken off, registered keys, and the epochs of signed tables that were seen, by name.
    ///
    /// # Errors
    /// The folder can't be read.
    pub fn list(&self) -> Result<Vec<Cached>, Error> {
        let Some(folder) = self.path()? else { return Ok(Vec::new()) };
        let mut all = files(&folder, "")?;
        all.retain(|file| hint_of(&file.name).is_some() && !file.name.ends_with(".lock"));
        all.extend(files(&folder, registered::FOLDER)?.into_iter().filter(is_keys));
        all.extend(files(&folder, crate::epochs::FOLDER)?.into_iter().filter(is_epoch));
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// Removes the hints and the registered keys from the cache, but for those that a client is fetching or registering, and
    /// gives all that is gone, locks included. Keys are overwritten first; the next lookup registers others. With `epochs`
    /// which epochs of signed tables were seen is forgotten too: older ones are taken then. A file that is not called as those
    /// of a cache are stays, whatever it ends in: the folder may be anybody's.
    ///
    /// # Errors
    /// Others can write to the folder, or the system refuses.
    pub fn clear(&self, epochs: bool) -> Result<Vec<Cached>, Error> {
        let Some(folder) = self.path()?.filter(|folder| folder.exists()) else { return Ok(Vec::new()) };
        private::check_folder(&folder).map_err(HintFile::error(&folder))?;
        let mut gone = Vec::new();
        // What another has removed meanwhile isn't counted here.
        let remove = |file: Cached, gone: &mut Vec<Cached>| {
            let path = folder.join(&file.name);
            gone.extend(lock::remove(&path).map_err(HintFile::error(&path))?.then_some(file));
            Ok::<_, Error>(())
        };
        let mut hints: BTreeMap<String, Vec<Cached>> = BTreeMap::new();
        for file in files(&folder, "")? {
            if let Some(hint) = hint_of(&file.name) {
                hints.entry(hint.to_owned()).or_default().push(file);
            }
        }
        for (hint, files) in hints {
            let held = match lock_of(&folder, &hint) {
                Ok(None) => continue,
                // A link, say, which nobody holds.
                Err(Error::Cache { source, .. }) if source.kind() == ErrorKind::InvalidData => None,
                held => held?,
            };
            let (locks, rest): (Vec<_>, Vec<_>) =
                files.into_iter().partition(|file| file.name.ends_with(".lock"));
            rest.into_iter().try_for_each(|file| remove(file, &mut gone))?;
            // Last, and where it was made just now, too.
            let path = folder.join(format!("{hint}.lock"));
            if (held.is_some() || !locks.is_empty()) && lock::remove(&path).map_err(HintFile::error(&path))? {
                gone.extend(locks);
            }
        }
        if epochs {
            let mut seen = files(&folder, crate::epochs::FOLDER)?.into_iter().filter(is_epoch);
            seen.try_for_each(|file| remove(file, &mut gone))?;
        }
        let keys = files(&folder, registered::FOLDER)?;
        for file in keys.iter().filter(|file| is_keys(file)) {
            let path = folder.join(&file.name);
            if registered::remove(&path).map_err(HintFile::error(&path))? {
                let lock = path.with_extension("lock");
                gone.extend(keys.iter().filter(|other| folder.join(&other.name) == lock).cloned());
                gone.push(file.clone());
            }
        }
        gone.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(gone)
    }
}

/// The lock of a hint in a folder, whose holder alone may change the hint's files; nothing while another has it.
fn lock_of(folder: &Path, hint: &str) -> Result<Option<Lock>, Error> {
    let path = folder.join(format!("{hint}.lock"));
    Lock::try_at(&path).map_err(HintFile::error(&path))
}

/// The files in a folder of the cache's, none where there is none.
fn files(cache: &Path, within: &str) -> Result<Vec<Cached>, Error> {
    let folder = cache.join(within);
    let read = || {
        let mut all = Vec::new();
        for file in std::fs::read_dir(&folder)? {
            let file = file?;
            let there = file.path().symlink_metadata()?;
            let name = Path::new(within).join(file.file_name()).to_string_lossy().into_owned();
            all.extend((!there.is_dir()).then_some(Cached { name, bytes: there.len() }));
        }
        Ok::<_, std::io::Error>(all)
    };
    match read() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(HintFile::error(&folder)),
    }
}

/// Bytes of hints of other contents of a table's part that are kept, or as many as the newest has if that is more: a table
/// may go back to one of them.
const OTHERS_BYTES: u64 = 64 << 20;

/// What a cache has of a hint.
pub(crate) enum Found {
    Whole(Kept),
    Nothing,
    /// A file that was refused and removed, and why.
    Damaged(String),
}

/// The files of one hint.
#[derive(Clone)]
pub(crate) struct HintFile {
    folder: PathBuf,
    entry: CacheEntry,
}

impl HintFile {
    pub(crate) fn new(folder: &Path, entry: CacheEntry) -> Self {
        Self { folder: folder.to_owned(), entry }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join(format!("{}.hint", self.entry.name()))
    }

    /// The file that a download is written to; one of this process's own where another is stuck with it.
    pub(crate) fn part_path(&self, own: bool) -> PathBuf {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(0);
        self.folder.join(if own {
            let n = NEXT.fetch_add(1, Ordering::Relaxed);
            format!("{}.{}-{n}.part", self.entry.name(), std::process::id())
        } else {
            format!("{}.part", self.entry.name())
        })
    }

    fn error(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |source| Error::Cache { path: path.to_owned(), source }
    }

    /// Makes the folder, for this user alone: its names say which tables are looked at.
    pub(crate) fn make_folder(&self) -> Result<(), Error> {
        private::folder(&self.folder).map_err(Self::error(&self.folder))
    }

    /// The lock whose holder fetches, or `None` while another holds it.
    pub(crate) fn try_lock(&self) -> Result<Option<Lock>, Error> {
        lock_of(&self.folder, self.entry.name())
    }

    /// The hint in a whole file. One that is not what it should be is removed and named in the log.
    pub(crate) fn read(&self, path: &Path) -> Result<Found, Error> {
        match self.read_strict(path) {
            Ok(kept) => Ok(Found::Whole(kept)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Nothing),
            Err(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) => {
                tracing::warn!(path = %path.display(), %error, "a cached hint is refused and removed");
                lock::remove(path).map_err(Self::error(path))?;
                Ok(Found::Damaged(error.to_string()))
            }
            Err(source) => Err(Error::Cache { path: path.to_owned(), source }),
        }
    }

    fn read_strict(&self, path: &Path) -> std::io::Result<Kept> {
        let refuse = |what: String| std::io::Error::new(ErrorKind::InvalidData, what);
        let mut file = private::open(path, OpenOptions::new().read(true))?;
        // Contents stay in the order in which they were used last.
        let _ = file.set_modified(std::time::SystemTime::now());
        let mut header = [0; HEADER_BYTES];
        let bytes = file.metadata()?.len();
        if bytes >= HEADER_BYTES as u64 {
            file.read_exact(&mut header)?;
        }
        self.entry.check_start(bytes, &header).map_err(refuse)?;
        let mut hint = Hint::zeroed(bytes as usize - HEADER_BYTES);
        file.read_exact(hint.as_mut())?;
        self.entry.check(hint).map_err(refuse)
    }

    /// Opens a `.part` file to go on with, and how many bytes of the hint it has. One that is not of this hint
    /// starts again.
    pub(crate) fn open_part(&self, path: &Path) -> Result<(File, u64), Error> {
        let open = || {
            let mut file =
                private::open(path, OpenOptions::new().create(true).truncate(false).read(true).write(true))?;
            let len = file.metadata()?.len();
            let mut header = [0; HEADER_BYTES];
            let read = len >= HEADER_BYTES as u64 && file.read_exact(&mut header).is_ok();
            if let Some(have) = self.entry.resumes(len, &header).filter(|_| read) {
                file.seek(SeekFrom::End(0))?;
                return Ok((file, have));
            }
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(self.entry.header())?;
            Ok((file, 0))
        };
        open().map_err(Self::error(path))
    }

    /// Turns a whole `.part` file into the hint. `None` where it is not what its digest says; it is gone then.
    ///
    /// # Errors
    /// Somebody has taken the file away, or the system refuses.
    pub(crate) fn finish(&self, part: &Path) -> Result<Option<Kept>, Error> {
        let kept = match self.read(part)? {
            Found::Whole(kept) => kept,
            Found::Damaged(_) => return Ok(None),
            Found::Nothing => return Err(Self::error(part)(ErrorKind::NotFound.into())),
        };
        blindcore_files::new_file::publish(part, &self.path()).map_err(Self::error(part))?;
        self.remove_others();
        Ok(Some(kept))
    }

    /// The files of the folder whose names are so, with their paths.
    fn named(&self, so: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let files = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        files.filter(|file| so(&file.file_name().to_string_lossy())).map(|file| file.path()).collect()
    }

    /// Takes over a hint that an earlier version called otherwise.
    pub(crate) fn take_earlier(&self) {
        if !self.path().exists() {
            let earlier = self.named(|name| name.ends_with(".hint") && self.entry.is_earlier_name(name));
            let _ = earlier.first().map(|earlier| std::fs::rename(earlier, self.path()));
        }
    }

    /// Removes this table's hints of other contents, but keeps those that a client is fetching and the whole ones that were used last.
    fn remove_others(&self) {
        let mut room = OTHERS_BYTES.max(self.entry.bytes());
        let mut others: Vec<_> = self
            .named(|name| self.entry.is_other_content(name))
            .into_iter()
            .map(|path| {
                let about = std::fs::symlink_metadata(&path).ok();
                (about.as_ref().and_then(|a| a.modified().ok()), about.map_or(0, |a| a.len()), path)
            })
            .collect();
        others.sort_by(|a, b| b.cmp(a));
        for (_, bytes, path) in others {
            let whole = path.extension().is_some_and(|e| e == "hint");
            match room.checked_sub(bytes).filter(|_| whole) {
                Some(left) => room = left,
                None => self.remove_other(&path),
            }
        }
    }

    /// Removes a file of another hint and its lock, unless a client is fetching that hint. What can't be removed stays.
    fn remove_other(&self, path: &Path) {
        let hint = path.file_name().and_then(|name| hint_of(name.to_str()?));
        let Some(hint) = hint else { return };
        if let Ok(Some(_held)) = lock_of(&self.folder, hint) {
            let _ = lock::remove(path);
            let _ = lock::remove(&self.folder.join(format!("{hint}.lock")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blindcore_lookup::{Geometry, Params, schemes};
    use blindcore_protocol::{Policy, Table};
    use blindcore_wire::{PartDescription, PartKind, TableContent, TableDescription, proto};

    /// A hint, and its files in a folder.
    fn files(folder: &Path) -> (Vec<u8>, HintFile) {
        let geometry = Geometry { record_bytes: 1, groups: 1, columns: 1 };
        let params = Params::new(schemes::yardstick(), geometry).unwrap();
        let mut records = PartDescription { params, hint_digest: [0; 32], proofs: None, buckets: 1 };
        let hint: Vec<u8> = (0..records.hint_bytes()).map(|i| i as u8).collect();
        records.hint_digest = *blake3::hash(&hint).as_bytes();
        let table = TableDescription::new(TableContent {
            name: "t".into(),
            epoch: 7,
            rows: 1,
            value_columns: Vec::new(),
            records,
            keyed: None,
            changes: None,
        });
        let table = Some(table.unwrap().to_proto());
        let response = proto::GetTableResponse { table, records_queries: 1, ..Default::default() };
        let table = Table::open("t", response, &Policy::default(), None).unwrap();
        let fetch = table.missing(PartKind::Records).unwrap().expect("nothing is kept yet");
        (hint, HintFile::new(folder, fetch.cached("host:1")))
    }

    #[test]
    fn foreign_and_damaged_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (hint, file) = files(folder.path());
        let whole = [&file.entry.header()[..], &hint].concat();
        let mut flipped = whole.clone();
        flipped[HEADER_BYTES + 5] ^= 1;
        let mut other = whole.clone();
        other[8] = 2;
        for bad in [&[][..], b"hello", &whole[..whole.len() - 1], &flipped, &other] {
            std::fs::write(file.path(), bad).unwrap();
            assert!(matches!(file.read(&file.path()).unwrap(), Found::Damaged(_)));
            assert!(!file.path().exists());
        }
        assert!(matches!(file.read(&file.path()).unwrap(), Found::Nothing));
        std::fs::write(file.path(), &whole).unwrap();
        assert!(matches!(file.read(&file.path()).unwrap(), Found::Whole(_)));
        assert!(file.path().to_str().unwrap().ends_with(".hint"));
    }

    #[test]
    fn a_part_goes_on_where_it_ends_and_only_if_it_is_ours() {
        let folder = tempfile::tempdir().unwrap();
        let (hint, file) = files(folder.path());
        let path = file.part_path(false);
        let (mut open, have) = file.open_part(&path).unwrap();
        assert_eq!(have, 0);
        open.write_all(&hint[..100]).unwrap();
        let (mut open, have) = file.open_part(&path).unwrap();
        assert_eq!(have, 100);
        open.write_all(&hint[100..]).unwrap();
        assert!(file.finish(&path).unwrap().is_some());
        assert_eq!(std::fs::read(file.path()).unwrap()[HEADER_BYTES..], hint);
        assert!(!path.exists());
        std::fs::write(&path, vec![7; 5000]).unwrap();
        assert_eq!(file.open_part(&path).unwrap().1, 0);
    }

    #[test]
    fn one_holds_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let (_, file) = files(folder.path());
        let lock = file.try_lock().unwrap().expect("free");
        assert!(file.try_lock().unwrap().is_none());
        drop(lock);
        assert!(file.try_lock().unwrap().is_some());
    }

    /// Several clear the cache while others fetch: none of them removes a file of the lock's holder.
    #[test]
    fn clearing_takes_nothing_from_who_fetches() {
        let folder = tempfile::tempdir().unwrap();
        let (_, file) = files(folder.path());
        let part = file.part_path(false);
        let cache = CacheDir::At(folder.path().to_owned());
        let fetch = || {
            let Some(_held) = file.try_lock().unwrap() else { return };
            std::fs::write(&part, "mine").unwrap();
            std::thread::yield_now();
            // Nobody else has begun to fetch, either.
            std::fs::remove_file(&part).expect("the holder's own");
        };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..1000).for_each(|_| _ = cache.clear(false).unwrap()));
                scope.spawn(|| (0..1000).for_each(|_| fetch()));
            }
        });
    }

    #[test]
    fn what_is_not_the_cache_s_stays_when_it_is_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let (hint, file) = files(folder.path());
        let keys = "t-0123abcd-0123abcd-0123456789abcdef";
        let epoch = format!("t-{}-7", "0123456789abcdef".repeat(2));
        let name = file.entry.name();
        let ours = [
            format!("epochs/{epoch}"),
            format!("keys/{keys}.keys"),
            format!("keys/{keys}.lock"),
            format!("{name}.12-0.part"),
            format!("{name}.hint"),
            format!("{name}.lock"),
            format!("{name}.part"),
        ];
        let others = [
            "Cargo.lock",
            "yarn.lock",
            "movie.part",
            "a.hint",
            "keys/my.keys",
            "keys/my.lock",
            "keys/t-0123abcd-0123abcd-0123456789abcdeg.keys",
            "epochs/notes-1",
            "epochs/t-1",
        ];
        for sub in ["keys", "epochs"] {
            std::fs::create_dir(folder.path().join(sub)).unwrap();
        }
        for ours in &ours {
            let empty = ours.starts_with("epochs") || ours.ends_with("lock");
            std::fs::write(folder.path().join(ours), if empty { &[] } else { &hint[..] }).unwrap();
        }
        for other in others {
            std::fs::write(folder.path().join(other), "mine").unwrap();
        }
        let kept = format!("{epoch}1");
        std::fs::write(folder.path().join("epochs").join(&kept), "somebody's, for it says something")
            .unwrap();
        let cache = CacheDir::At(folder.path().to_owned());
        let names = |files: Vec<Cached>| files.into_iter().map(|file| file.name).collect::<Vec<_>>();
        let unlocked: Vec<_> = ours.iter().filter(|name| !name.ends_with(".lock")).cloned().collect();
        assert_eq!(names(cache.list().unwrap()), unlocked);
        assert_eq!(names(cache.clear(true).unwrap()), ours);
        for other in others {
            assert!(folder.path().join(other).exists(), "{other}");
        }
        assert!(folder.path().join("epochs").join(kept).exists());
        assert!(cache.clear(true).unwrap().is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed_and_what_is_fetched_is_not_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let (hint, file) = files(folder.path());
        let elsewhere = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(elsewhere.path(), [&file.entry.header()[..], &hint].concat()).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), file.path()).unwrap();
        assert!(
            matches!(file.read(&file.path()).unwrap(), Found::Damaged(_)) && !file.path().is_symlink(),
            "it is removed"
        );
        assert!(elsewhere.path().exists());
        let part = file.part_path(false);
        std::os::unix::fs::symlink(elsewhere.path(), &part).unwrap();
        assert!(file.open_part(&part).is_err());
        std::fs::remove_file(&part).unwrap();

        let cache = CacheDir::At(folder.path().to_owned());
        std::fs::write(file.path(), "x").unwrap();
        std::fs::write(folder.path().join("mine.txt"), "not the cache's").unwrap();
        let lock = file.try_lock().unwrap().expect("free");
        assert_eq!(cache.list().unwrap().len(), 1);
        assert!(cache.clear(true).unwrap().is_empty() && file.path().exists(), "a client fetches it");
        drop(lock);
        assert_eq!(cache.clear(false).unwrap()[0].bytes, 1);
        assert!(!file.path().exists() && folder.path().join("mine.txt").exists());
        assert!(cache.list().unwrap().is_empty());
    }
}
