//! Keys that clients registered: kept under their digest, in a folder if there is one, in bounds.
//!
//! ```text
//!   RegisterKeys ─▶ length, parameters ─▶ parsed ─▶ folder, to the disk ─▶ index ─▶ answered
//!                                            │                              │  bounds: what goes for them
//!                                            ▼                              ▼
//!   Query ─▶ index: known? ─▶ ready? ─▶ batcher       ready: parsed, in memory ◀── read and parsed when first needed
//! ```
//!
//! Strangers can't fill the disk: keys are taken for parts that are served alone, of exactly the length that these take; a
//! client has so many registrations a minute, and so much of the folder; and where all of it is taken, keys go first that
//! nothing was ever asked under.

mod folder;
mod index;
mod ready;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use blindcore_lookup::Params;
use blindcore_wire::Reason;
use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::Error;
use crate::config::check;
use crate::refusal::Refusal;
use crate::stats::{KeyCounters, add};
use folder::Folder;
use index::{Bounds, Digest, Entry, Index, Owner};
use ready::Ready;
pub(crate) use ready::ReadyKeys;

/// Registrations, and reads from the folder, that are under way at a time. Each parses keys.
const AT_A_TIME: usize = 2;
/// How far the time of a file may lie behind that of its use, in seconds: a lookup does not always write to a disk.
const STALE: u64 = 60;

/// What time it is, in seconds since 1970.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// A clock of one's own, for tests.
    #[must_use]
    pub fn new(now: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    fn now(&self) -> u64 {
        (self.0)()
    }
}

impl Default for Clock {
    /// The system's.
    fn default() -> Self {
        Self::new(|| {
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
        })
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// What a server keeps of keys that its clients register, where it has tables of a scheme with such.
#[derive(Clone, Debug)]
pub struct KeysConfig {
    /// The folder that they are kept in. Without, they are in memory alone, and clients register them again when the server
    /// starts again.
    pub folder: Option<PathBuf>,
    /// The most bytes of keys in the folder. Where there would be more, those go that nothing was asked under, and then those
    /// that were used least lately.
    pub bytes: u64,
    /// The most sets of keys in the folder.
    pub count: usize,
    /// The most of these bytes for one client, whose own keys go then; a quarter if `None`.
    pub bytes_per_client: Option<u64>,
    /// The most sets of keys of one client; a quarter if `None`.
    pub count_per_client: Option<usize>,
    /// The most bytes of memory for keys that are ready for use.
    pub memory_bytes: usize,
    /// How long keys are kept that nothing is asked under.
    pub expire: Duration,
    /// The most registrations a minute of one client; any number if `None`.
    pub per_minute: Option<u64>,
    /// What time it is.
    pub clock: Clock,
}

impl Default for KeysConfig {
    fn default() -> Self {
        Self {
            folder: None,
            bytes: 4 << 30,
            count: 1 << 16,
            bytes_per_client: None,
            count_per_client: None,
            memory_bytes: 512 << 20,
            expire: Duration::from_secs(30 * 24 * 3600),
            per_minute: Some(60),
            clock: Clock::default(),
        }
    }
}

impl KeysConfig {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let remedy = "leave it out to allow any number";
        check("registrations_per_minute", self.per_minute.unwrap_or(1), 1, 1 << 40, remedy)?;
        check("keys_count", self.count as u64, 1, 1 << 24, "allow some")?;
        let most = 1 << 32;
        check("keys_expire, in seconds,", self.expire.as_secs(), 1, most, "say another time")
    }

    fn bounds(&self) -> [Bounds; 2] {
        let all = Bounds { bytes: self.bytes, count: self.count };
        let bytes = self.bytes_per_client.unwrap_or(self.bytes / 4).min(self.bytes);
        [
            all,
            Bounds { bytes, count: self.count_per_client.unwrap_or(self.count.div_ceil(4)).min(self.count) },
        ]
    }

    /// Whether keys of these parameters have room.
    pub(crate) fn allows(&self, params: &Params) -> Result<(), Error> {
        if !params.registers_keys() {
            return Ok(());
        }
        let remedy = "allow more";
        let [_, each] = self.bounds();
        let bytes = params.registered_bytes() as u64;
        check("keys_mib or keys_mib_per_client, in bytes,", each.bytes, bytes, u64::MAX, remedy)?;
        let parsed = params.parsed_key_bytes() as u64;
        check("keys_memory_mib, in bytes,", self.memory_bytes as u64, parsed, u64::MAX, remedy)
    }
}

/// What is known of keys. The lock is held for moments, and never while a disk is waited for.
struct Known {
    index: Index,
    ready: Ready,
}

struct Inner {
    folder: Option<Folder>,
    known: Mutex<Known>,
    /// Held while the folder changes.
    changing: Mutex<()>,
    clock: Clock,
    expire: u64,
    counters: Arc<KeyCounters>,
}

/// Registered keys, of all tables of a server.
pub(crate) struct Registered {
    inner: Arc<Inner>,
    at_a_time: Arc<Semaphore>,
}

impl Registered {
    pub(crate) fn new(config: &KeysConfig, counters: Arc<KeyCounters>) -> Result<Self, Error> {
        let [all, each] = config.bounds();
        let mut index = Index::new(all, each);
        let mut open = |path: &Path| {
            let folder = Folder::open(path)?;
            let mut there = folder.list()?;
            // In the order in which they were used, so that the last ones stay where bounds are lower now.
            there.sort_by_key(|(digest, entry)| (entry.asked, entry.used, *digest));
            for (digest, entry) in there {
                for gone in index.insert(digest, entry) {
                    add(&counters.evicted, 1);
                    folder.remove(&gone)?;
                }
            }
            Ok(folder)
        };
        let folder = config
            .folder
            .as_deref()
            .map(|path| open(path).map_err(|source| Error::Keys { path: path.to_owned(), source }));
        let folder = folder.transpose()?;
        let known = Mutex::new(Known { index, ready: Ready::new(config.memory_bytes) });
        let inner = Inner {
            folder,
            known,
            changing: Mutex::default(),
            clock: config.clock.clone(),
            expire: config.expire.as_secs(),
            counters,
        };
        inner.tell(&inner.known());
        Ok(Self { inner: Arc::new(inner), at_a_time: Arc::new(Semaphore::new(AT_A_TIME)) })
    }

    /// Keeps keys that a client registers, on the disk before this is done. Their bytes are a stranger's.
    pub(crate) async fn register(&self, params: Params, keys: Bytes, client: &str) -> Result<(), Refusal> {
        let (got, want) = (keys.len(), params.registered_bytes());
        if got != want {
            let message = format!(
                "keys of {got} B are none of this part, whose keys have {want} B; make them with its parameters"
            );
            return Err(self.inner.refuse(Reason::WrongKeys, message));
        }
        let owner = owner(client);
        let work = move |inner: &Inner| inner.register(&params, &keys, owner);
        let (known, gone) = self.blocking(work).await?;
        let (evicted, bytes) = (gone.len(), want);
        if known {
            tracing::info!(bytes, "keys are registered already");
        } else {
            tracing::info!(bytes, evicted, "keys are registered");
        }
        Ok(())
    }

    /// The keys of a digest, ready for queries of these parameters.
    pub(crate) async fn get(&self, digest: &[u8], params: &Params) -> Result<ReadyKeys, Refusal> {
        let digest: Digest = digest.try_into().map_err(|_| {
            let message = format!(
                "queries of this part are under registered keys, which are named by 32 B and not by {} B; register keys first",
                digest.len()
            );
            Refusal::new(Reason::UnknownKeys, message)
        })?;
        if let Some(ready) = self.inner.find(&digest, params)? {
            return Ok(ready);
        }
        let params = *params;
        self.blocking(move |inner| inner.load(digest, &params)).await
    }

    /// Lets keys go that nobody used for long.
    pub(crate) async fn expire(&self) {
        let work = |inner: &Inner| {
            inner.expire();
            Ok(())
        };
        // Refused where they are closed, and then another server does it.
        let _ = self.blocking(work).await;
    }

    /// Waits for what is being done to its end, and lets another server have the folder. What is asked from then on is refused.
    pub(crate) async fn close(&self) {
        let _all = self.at_a_time.acquire_many(AT_A_TIME as u32).await;
        self.at_a_time.close();
        if let Some(folder) = &self.inner.folder {
            folder.give_up();
        }
    }

    /// Does something that waits for a disk or computes, a few at a time. It is done to its end, whoever goes away.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let place = self.at_a_time.clone().acquire_owned().await.map_err(|_| {
            Refusal::new(Reason::Draining, "the server is shutting down; ask another one, or later")
        })?;
        let inner = self.inner.clone();
        let done = spawn_blocking(move || {
            let _place = place;
            work(&inner)
        });
        done.await.unwrap_or_else(|_| {
            let message = "the server failed to read these keys; its log says why; don't send them again";
            Err(Refusal::new(Reason::Internal, message))
        })
    }
}

/// What stands for a client on the disk: not its name.
fn owner(client: &str) -> Owner {
    let digest = blake3::derive_key("blindcore owner of registered keys v1", client.as_bytes());
    *digest.first_chunk().expect("it is longer")
}

impl Inner {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, known: &Known) {
        let held = known.index.held();
        self.counters.held(held.count as u64, held.bytes, known.ready.bytes() as u64);
    }

    fn refuse(&self, reason: Reason, message: impl Into<String>) -> Refusal {
        add(&self.counters.refused, 1);
        Refusal::new(reason, message)
    }

    fn no_room(bytes: usize) -> Refusal {
        let message = format!(
            "keys that queries wait under take all memory for keys, and {bytes} B more are needed; ask again later"
        );
        Refusal::new(Reason::Busy, message)
    }

    /// Whether these keys were there already, and what went for them.
    fn register(&self, params: &Params, keys: &[u8], owner: Owner) -> Result<(bool, Vec<Digest>), Refusal> {
        let digest = *blake3::hash(keys).as_bytes();
        let now = self.clock.now();
        let entry = Entry {
            params: params.keys_digest().unwrap_or_default(),
            owner,
            bytes: keys.len() as u64,
            used: now,
            asked: false,
        };
        let changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that would have expired by now are no longer there.
        self.expire_now(now);
        let there = self.known().index.get(&digest).map(|known| known.params);
        match there {
            Some(params) if params != entry.params => {
                return Err(self.refuse(
                    Reason::WrongKeys,
                    "these keys are registered for other parameters; make others",
                ));
            }
            Some(_) => {
                self.known().index.insert(digest, entry);
                add(&self.counters.again, 1);
                return Ok((true, Vec::new()));
            }
            None => {}
        }
        let bytes = params.parsed_key_bytes();
        let pushed_out = self.known().ready.reserve(bytes).ok_or_else(|| Self::no_room(bytes))?;
        let parsed = params.open_registered(keys).map_err(|error| {
            self.known().ready.release(bytes);
            self.refuse(Reason::WrongKeys, error.to_string())
        })?;
        let mut for_the_disk = Vec::new();
        if let Some(folder) = &self.folder {
            let written = self.make_room(&entry, || folder.write(&digest, &entry, keys));
            for_the_disk = written.map_err(|error| {
                self.known().ready.release(bytes);
                tracing::error!(%error, "registered keys can't be written");
                let message = "the server can't keep these keys; its log says why; ask another one, or later";
                Refusal::new(Reason::Internal, message)
            })?;
        }
        let mut known = self.known();
        known.ready.keep(digest, parsed, bytes);
        let mut gone = known.index.insert(digest, entry);
        gone.iter().for_each(|digest| known.ready.remove(digest));
        gone.extend(self.forgotten(&mut known, pushed_out));
        self.tell(&known);
        drop(known);
        add(&self.counters.registered, 1);
        self.gone(&gone);
        add(&self.counters.evicted, gone.len() as u64);
        drop(changing);
        gone.extend(for_the_disk);
        Ok((false, gone))
    }

    /// Writes keys. Where their disk has no room, others go until it has, and are given. They are of at most twice as many bytes
    /// (and what the last has more): a disk that is full then is filled by something else, for which the rest need not go too.
    fn make_room(&self, entry: &Entry, write: impl Fn() -> io::Result<()>) -> io::Result<Vec<Digest>> {
        let (mut gone, mut freed) = (Vec::new(), 0);
        loop {
            let error = match write() {
                Err(error) if is_full(&error) && freed < 2 * entry.bytes => error,
                written => return written.map(|()| gone),
            };
            let mut known = self.known();
            let Some((digest, bytes)) = known.index.evict(entry.owner) else { return Err(error) };
            known.ready.remove(&digest);
            self.tell(&known);
            drop(known);
            tracing::warn!(%error, "registered keys go, because the disk has no room for others");
            self.gone(&[digest]);
            add(&self.counters.evicted, 1);
            freed += bytes;
            gone.push(digest);
        }
    }

    /// Of what is no longer ready, what is gone with that: all of it where there is no folder.
    fn forgotten(&self, known: &mut Known, pushed_out: Vec<Digest>) -> Vec<Digest> {
        if self.folder.is_some() {
            return Vec::new();
        }
        pushed_out.into_iter().filter(|digest| known.index.remove(digest).is_some()).collect()
    }

    /// Removes the files of keys that are in the index no more.
    fn gone(&self, gone: &[Digest]) {
        let Some(folder) = &self.folder else { return };
        for digest in gone {
            if let Err(error) = folder.remove(digest) {
                tracing::warn!(%error, "a file of registered keys can't be removed");
            }
        }
    }

    /// Keys that are known, and ready if they were used lately.
    fn find(&self, digest: &Digest, params: &Params) -> Result<Option<ReadyKeys>, Refusal> {
        let now = self.clock.now();
        let mut known = self.known();
        let entry = known.index.get(digest).copied().filter(|entry| !self.is_old(entry, now));
        let Some(entry) = entry else {
            add(&self.counters.unknown, 1);
            return Err(unknown());
        };
        if Some(entry.params) != params.keys_digest() {
            let message = "the keys that the queries are under are of other parameters than this part's; open the table again";
            return Err(Refusal::new(Reason::WrongParameters, message));
        }
        known.index.touch(digest, now);
        let ready = known.ready.get(digest);
        drop(known);
        if (!entry.asked || entry.used + STALE < now)
            && let Some(folder) = &self.folder
        {
            // It says which go first after a restart, and no more than that.
            let _ = folder.used(digest, now.max(entry.used + 1));
        }
        Ok(ready)
    }

    /// Reads keys that are known and not ready.
    fn load(&self, digest: Digest, params: &Params) -> Result<ReadyKeys, Refusal> {
        let bytes = params.parsed_key_bytes();
        let mut known = self.known();
        if let Some(ready) = known.ready.get(&digest) {
            return Ok(ready);
        }
        let pushed_out = known.ready.reserve(bytes).ok_or_else(|| Self::no_room(bytes))?;
        add(&self.counters.evicted, self.forgotten(&mut known, pushed_out).len() as u64);
        drop(known);
        let read = match &self.folder {
            None => Err("they are gone".to_owned()),
            Some(folder) => folder
                .read(&digest, params.registered_bytes() as u64)
                .map_err(|error| error.to_string())
                .and_then(|keys| params.open_registered(&keys).map_err(|error| error.to_string())),
        };
        match read {
            Ok(parsed) => {
                let mut known = self.known();
                let keys = known.ready.keep(digest, parsed, bytes);
                self.tell(&known);
                Ok(keys)
            }
            Err(error) => {
                tracing::warn!(error, "registered keys can't be read and are removed");
                let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
                let mut known = self.known();
                known.ready.release(bytes);
                if known.index.remove(&digest).is_some() {
                    add(&self.counters.damaged, 1);
                }
                self.tell(&known);
                drop(known);
                self.gone(&[digest]);
                Err(unknown())
            }
        }
    }

    fn is_old(&self, entry: &Entry, now: u64) -> bool {
        entry.used.saturating_add(self.expire) < now
    }

    fn expire(&self) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.expire_now(self.clock.now());
    }

    /// The same where the folder is this thread's to change.
    fn expire_now(&self, now: u64) {
        let mut known = self.known();
        let old = known.index.expire(now.saturating_sub(self.expire));
        if old.is_empty() {
            return;
        }
        old.iter().for_each(|digest| known.ready.remove(digest));
        self.tell(&known);
        drop(known);
        add(&self.counters.expired, old.len() as u64);
        tracing::info!(expired = old.len(), "registered keys that nobody used are gone");
        self.gone(&old);
    }
}

/// Whether a disk, or its owner's part of it, is full.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn unknown() -> Refusal {
    let message = "no keys of this digest are registered here, or no longer; register them, and ask in queries of their own";
    Refusal::new(Reason::UnknownKeys, message)
}
