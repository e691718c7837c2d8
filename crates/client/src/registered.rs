//! A client's registered keys: in the cache's folder `keys`, a file for each table and server, or in memory.
//!
//! A file holds a secret, so only its user may read it, and it is overwritten before other keys take its place. Whoever uses
//! it holds a lock beside it until the server has the keys: clients beside one another count their queries together, and one
//! of them registers.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::{Duration, SystemTime};

use blindcore_files::new_file::NewFileError;
use blindcore_files::{Access, NewFile, lock, private};
use blindcore_protocol::{ClientKeys, Grant, KeyEntry, KeyNeed};
use blindcore_units::SharedProgress;
use bytes::Bytes;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};
use zeroize::Zeroizing;

use crate::background::blocking;
use crate::error::refused;
use crate::{Client, Error};

/// The folder within the cache.
pub(crate) const FOLDER: &str = "keys";
/// What the names of files of keys end in.
pub(crate) const ENDING: &str = ".keys";
/// How often a lock is tried that another client holds.
const POLL: Duration = Duration::from_millis(20);
/// How often a lock's holder shows that it gets on.
const ALIVE: Duration = Duration::from_millis(500);
/// How long another client may show nothing before this one stops waiting for it, as with hints.
const OTHERS_STALL: Duration = Duration::from_secs(3);
/// After how long a wait is said.
const SAID: Duration = Duration::from_secs(1);

/// Keys that this process has, by the names of their entries.
#[derive(Default)]
pub(crate) struct KeysInUse(SyncMutex<HashMap<String, Arc<Mutex<Slot>>>>);

/// Keys of one table.
#[derive(Default)]
struct Slot {
    keys: Option<ClientKeys>,
    /// Where they are in no file: what the server has to be given again if it forgets them.
    public: Option<Bytes>,
}

impl KeysInUse {
    fn slot(&self, name: &str) -> Arc<Mutex<Slot>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(name.to_owned()).or_default().clone()
    }
}

/// The file of one table's keys.
#[derive(Clone)]
struct KeyFile {
    path: PathBuf,
    entry: KeyEntry,
}

/// Its holder uses the keys.
struct Lock(blindcore_files::Lock);

impl Lock {
    /// Does something, and shows those that wait for the lock that its holder gets on.
    async fn while_doing<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        // The lock's time says nothing but that it changed: two seconds are another one on every disk.
        // It goes on from whoever had the lock before, so that holders who follow each other show that too.
        let file = self.0.file();
        let before = file.metadata().and_then(|file| file.modified());
        let mut shown = before.unwrap_or_else(|_| SystemTime::now());
        loop {
            shown = shown.checked_add(Duration::from_secs(2)).unwrap_or(SystemTime::UNIX_EPOCH);
            // Where that is not possible, others stop waiting.
            let _ = file.set_modified(shown);
            if let Ok(done) = timeout(ALIVE, &mut work).await {
                return done;
            }
        }
    }
}

impl KeyFile {
    /// In the cache of this folder, which is made where it is missing.
    fn open(cache: &Path, entry: KeyEntry) -> Result<Self, Error> {
        let folder = cache.join(FOLDER);
        for path in [cache, &folder] {
            private::folder(path).map_err(|source| Error::Cache { path: path.into(), source })?;
        }
        Ok(Self { path: folder.join(format!("{}{ENDING}", entry.name())), entry })
    }

    fn error(&self, source: io::Error) -> Error {
        Error::Cache { path: self.path.clone(), source }
    }

    /// Waits until nobody else uses the keys; nothing where that takes longer than `limit`, or where whoever has them shows
    /// nothing for [`OTHERS_STALL`]. `waits` is called once this takes a while.
    async fn lock(&self, limit: Duration, waits: impl Fn()) -> Result<Option<Lock>, Error> {
        let (lock, start, mut wait) = (self.path.with_extension("lock"), Instant::now(), Wait::default());
        loop {
            if let Some(lock) = try_lock(&self.path).map_err(|source| self.error(source))? {
                return Ok(Some(lock));
            }
            let shown = std::fs::metadata(&lock).and_then(|lock| lock.modified()).ok();
            match wait.next(start.elapsed(), limit, shown) {
                Next::Stop => return Ok(None),
                Next::Say => waits(),
                Next::Wait => {}
            }
            sleep(POLL).await;
        }
    }

    /// The keys in the file, or why there are none that can be used.
    fn read(&self, known: Option<&ClientKeys>) -> Result<Result<Option<ClientKeys>, String>, Error> {
        let read = || {
            let mut file = private::open(&self.path, OpenOptions::new().read(true))?;
            let bytes = file.metadata()?.len();
            let mut start = Zeroizing::new(vec![0; self.entry.start_bytes()]);
            if bytes >= start.len() as u64 {
                file.read_exact(&mut start)?;
            }
            Ok::<_, io::Error>(self.entry.read(bytes, &start, known))
        };
        match read() {
            Ok(keys) => Ok(keys.map(Some)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Ok(None)),
            Err(error) if error.kind() == ErrorKind::InvalidData => Ok(Err(error.to_string())),
            Err(source) => Err(self.error(source)),
        }
    }

    /// The public keys behind the secret; nothing where they are not what the header says.
    fn public(&self, keys: &ClientKeys) -> Result<Option<Bytes>, Error> {
        let read = || {
            let mut file = private::open(&self.path, OpenOptions::new().read(true))?;
            file.seek(SeekFrom::Start(self.entry.start_bytes() as u64))?;
            let mut public = Vec::with_capacity(self.entry.bytes() - self.entry.start_bytes());
            file.take(self.entry.bytes() as u64).read_to_end(&mut public)?;
            Ok::<_, io::Error>(public)
        };
        let public = read().map_err(|source| self.error(source))?;
        Ok(self.entry.is_public(keys, &public).then(|| public.into()))
    }

    /// Writes keys that were made just now, over zeros where others were.
    fn replace(&self, keys: &ClientKeys, public: &[u8]) -> Result<(), Error> {
        wipe(&self.path).map_err(|source| self.error(source))?;
        let write = || {
            let mut file = NewFile::create(&self.path, Access::Owner)?;
            let mut put = |bytes: &[u8]| file.write_all(bytes);
            let put = put(&self.entry.start(keys)).and_then(|()| put(public));
            put.map_err(|error| NewFileError::Io { path: self.path.clone(), error })?;
            file.replace()
        };
        write().map(drop).map_err(|error| self.error(unnamed(error)))
    }

    /// Writes how far keys are used.
    fn update(&self, keys: &ClientKeys) -> Result<(), Error> {
        let write = || {
            let mut file = private::open(&self.path, OpenOptions::new().write(true))?;
            file.write_all(&self.entry.start(keys)[..blindcore_protocol::KEY_HEADER_BYTES])
        };
        write().map_err(|source| self.error(source))
    }
}

/// The lock beside a file of keys; nothing while another holds it.
fn try_lock(keys: &Path) -> io::Result<Option<Lock>> {
    Ok(blindcore_files::Lock::try_at(&keys.with_extension("lock"))?.map(Lock))
}

/// A wait for a lock that another client holds.
#[derive(Default)]
struct Wait {
    /// When its holder showed something last, from the wait's start on, and what.
    since: Duration,
    shown: Option<SystemTime>,
    said: bool,
}

/// What comes next of a wait.
#[derive(Debug, PartialEq)]
enum Next {
    Wait,
    /// The same, after it was said that there is a wait.
    Say,
    Stop,
}

impl Wait {
    /// `elapsed` after the start, at most `limit`, where the lock's time is what its holder shows.
    fn next(&mut self, elapsed: Duration, limit: Duration, shown: Option<SystemTime>) -> Next {
        if shown != self.shown {
            (self.shown, self.since) = (shown, elapsed);
        }
        if elapsed >= limit || elapsed - self.since >= OTHERS_STALL {
            return Next::Stop;
        }
        let say = elapsed >= SAID && !std::mem::replace(&mut self.said, elapsed >= SAID);
        if say { Next::Say } else { Next::Wait }
    }
}

/// Removes a file of keys, overwritten, and its lock; unless a client uses it.
pub(crate) fn remove(keys: &Path) -> io::Result<bool> {
    let Some(_lock) = try_lock(keys)? else { return Ok(false) };
    wipe(keys)?;
    for path in [keys, &keys.with_extension("lock")] {
        lock::remove(path)?;
    }
    Ok(true)
}

/// Overwrites a file of keys with zeros, where there is one. What is there instead of a file is removed.
pub(crate) fn wipe(path: &Path) -> io::Result<()> {
    let mut file = match private::open(path, OpenOptions::new().write(true)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == ErrorKind::InvalidData => return std::fs::remove_file(path),
        file => file?,
    };
    let bytes = file.metadata()?.len();
    let zeros = [0; 4096];
    for at in (0..bytes).step_by(zeros.len()) {
        file.write_all(&zeros[..zeros.len().min((bytes - at) as usize)])?;
    }
    file.sync_all()
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// What a client needs to have keys registered.
pub(crate) struct Registering<'a> {
    pub(crate) client: &'a Client,
    pub(crate) table: &'a str,
    pub(crate) epoch: u64,
    pub(crate) need: KeyNeed,
    pub(crate) progress: Option<&'a SharedProgress>,
}

impl Registering<'_> {
    /// Keys for one request, which the server has; and how many bytes of keys were sent for that.
    pub(crate) async fn run(&self) -> Result<(ClientKeys, u64), Error> {
        let entry = self.need.cached(&self.client.server);
        let slot = self.client.keys.slot(entry.name());
        let mut slot = slot.lock().await;
        let Some(cache) = self.client.options.cache.path()? else { return self.in_memory(&mut slot).await };
        let file = KeyFile::open(&cache, entry)?;
        let waits = || {
            self.say(&format!(
                "another client uses the keys of table {} in the cache; waiting for it",
                self.table
            ));
        };
        // As long as another's registration may take, if it gets on.
        let Some(lock) = file.lock(self.client.options.request_timeout, waits).await? else {
            self.note("another client uses those in the cache and does not get on; this one has its own");
            return self.in_memory(&mut slot).await;
        };
        slot.public = None;
        let done = lock.while_doing(self.in_file(&file, slot.keys.take())).await;
        drop(lock);
        let (keys, sent) = done?;
        slot.keys = Some(keys.clone());
        Ok((keys, sent))
    }

    async fn in_memory(&self, slot: &mut Slot) -> Result<(ClientKeys, u64), Error> {
        // Keys of a file have their public part there.
        let kept = slot.keys.take().filter(|_| slot.public.is_some());
        let Grant { mut keys, made, register } = self.grant(kept).await?;
        slot.public = made.or(slot.public.take());
        slot.keys = Some(keys.clone());
        let sent = match slot.public.clone().filter(|_| register) {
            None => 0,
            Some(public) => self.register(public).await?,
        };
        keys.registered();
        slot.keys = Some(keys.clone());
        Ok((keys, sent))
    }

    async fn in_file(&self, file: &KeyFile, known: Option<ClientKeys>) -> Result<(ClientKeys, u64), Error> {
        let from = file.clone();
        let mut kept = match blocking(move || from.read(known.as_ref())).await? {
            Ok(kept) => kept,
            Err(why) => {
                self.damaged(file, &why);
                None
            }
        };
        loop {
            let Grant { mut keys, made, register } = self.grant(kept.take()).await?;
            let (to, these) = (file.clone(), keys.clone());
            let public = blocking(move || {
                match &made {
                    Some(public) => to.replace(&these, public)?,
                    None => to.update(&these)?,
                }
                match made {
                    None if register => to.public(&these),
                    made => Ok(made),
                }
            });
            let public = public.await?;
            let sent = match (register, public) {
                (false, _) => 0,
                (true, Some(public)) => self.register(public).await?,
                // Others are made, which are what their header says.
                (true, None) => {
                    self.damaged(file, "its public keys are not what its digest says");
                    continue;
                }
            };
            if register {
                keys.registered();
                let (to, these) = (file.clone(), keys.clone());
                blocking(move || to.update(&these)).await?;
            }
            return Ok((keys, sent));
        }
    }

    /// Making keys computes.
    async fn grant(&self, kept: Option<ClientKeys>) -> Result<Grant, Error> {
        let (need, rotation) = (self.need.clone(), self.client.options.rotate_after);
        blocking(move || Ok(need.grant(kept, &rotation, now())?)).await
    }

    /// Has the server keep keys. Gives how many bytes that took.
    async fn register(&self, public: Bytes) -> Result<u64, Error> {
        const WHAT: &str = "a registration of keys";
        let bytes = public.len() as u64;
        let mut grpc = self.client.grpc.clone().max_encoding_message_size(usize::MAX);
        let answer = self.client.within(WHAT, grpc.register_keys(self.need.request(public))).await?;
        answer.map_err(|status| refused(&status, WHAT, self.table, self.epoch))?;
        tracing::debug!(table = self.table, bytes, "keys are registered");
        Ok(bytes)
    }

    fn damaged(&self, file: &KeyFile, why: &str) {
        tracing::warn!(path = %file.path.display(), why, "cached keys are refused and others made");
        self.note(&format!("those in the cache are damaged ({why})"));
    }

    /// Says why keys are made that were there.
    fn note(&self, why: &str) {
        self.say(&format!("keys of table {} are made: {why}", self.table));
    }

    fn say(&self, text: &str) {
        if let Some(progress) = self.progress {
            let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.note(text);
        }
    }
}

/// What the system said of a file: the error of the cache names it, and says what to do.
fn unnamed(error: NewFileError) -> io::Error {
    match error {
        NewFileError::Io { error, .. } => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_said_with_one_path_and_one_remedy() {
        let path = Path::new("cache/keys/t.keys");
        let full = NewFileError::Io { path: path.into(), error: ErrorKind::StorageFull.into() };
        let said = Error::Cache { path: path.into(), source: unnamed(full) }.to_string();
        assert!(said.matches("t.keys").count() == 1 && said.matches(';').count() == 1, "{said}");
    }

    #[test]
    fn a_lock_is_waited_for_while_its_holder_gets_on() {
        let ms = Duration::from_millis;
        let shown = |n: u64| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(2 * n));
        let minutes = ms(120_000);
        // Nobody gets on: a stopped process, say.
        let mut wait = Wait::default();
        let steps: Vec<Next> = (0..=30).map(|n| wait.next(ms(100 * n), minutes, shown(1))).collect();
        assert_eq!(steps.iter().position(|step| *step == Next::Stop), Some(30));
        assert_eq!(steps.iter().filter(|step| **step == Next::Say).count(), 1, "it was said once");
        // A long registration: as long as it takes, and no longer than the limit.
        let mut wait = Wait::default();
        let stop = (0..).find(|n| wait.next(ms(100 * n), minutes, shown(n / 5)) == Next::Stop);
        assert_eq!(stop, Some(1200));
    }

    #[tokio::test]
    async fn who_holds_a_lock_shows_that_it_gets_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.keys");
        let held = try_lock(&path).unwrap().expect("free");
        let shown = || std::fs::metadata(path.with_extension("lock")).unwrap().modified().unwrap();
        let first = shown();
        let seen = async {
            while shown() == first {
                sleep(POLL).await;
            }
        };
        timeout(Duration::from_secs(60), held.while_doing(seen)).await.expect("it shows something");
        assert!(try_lock(&path).unwrap().is_none());
        drop(held);
        assert!(try_lock(&path).unwrap().is_some());
    }
}
