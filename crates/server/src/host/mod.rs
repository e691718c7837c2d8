//! Folders of databases, served: opened, placed, watched for new epochs and read again on request.
//!
//! ```text
//!   folder ──▶ Stored ──▶ residency: copied, or streamed ──▶ Table ──▶ Server
//!     │                   within a memory limit                          ▲
//!     └──▶ epoch watcher: a new manifest, a damaged hint ────────────────┘ publish
//! ```

mod epoch_watcher;
mod error;
mod files;
mod opener;
mod residency;

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use blindcore_accel::Device;
use blindcore_store::{Manifest, Stored};
use blindcore_units::Progress;

use crate::front::Front;
use crate::serve::{self, Sockets};
use crate::{Config, Error, Server, Stats, Table};
use epoch_watcher::EpochWatcher;
use error::with_causes;
use opener::{Hints, Opener, open_table};
use residency::Placer;

pub use error::HostError;
pub use files::AccessFiles;
pub use residency::MemoryLimit;

/// A server of folders, opened and ready to listen.
///
/// ```no_run
/// # async fn serve(device: blindcore_accel::Device) -> Result<(), Box<dyn std::error::Error>> {
/// use blindcore_server::Host;
///
/// let host = Host::builder().table_dir("people.db").device(device).listen("127.0.0.1:7700".parse()?).open()?;
/// let server = host.bind().await?;
/// let reloader = server.reloader(); // call reload() on SIGHUP; new epochs are taken up without it
/// # let _ = reloader;
/// server.run(async { /* until a signal */ }).await;
/// # Ok(())
/// # }
/// ```
pub struct Host {
    config: Config,
    /// Taken before anything is loaded.
    sockets: Sockets,
    files: AccessFiles,
    tables: Vec<Table>,
    watchers: Vec<EpochWatcher>,
    unchecked: Hints,
    opener: Opener,
    /// Each table's manifest and bytes, for the log.
    opened: Vec<(Manifest, u64)>,
}

/// What a [`Host`] serves, and how; see [`Host::builder`].
pub struct HostBuilder {
    config: Config,
    dirs: Vec<PathBuf>,
    device: Option<Device>,
    files: AccessFiles,
    memory: MemoryLimit,
    streamed: bool,
    request_timeout: Option<Duration>,
    request_memory: Option<usize>,
    progress: Box<dyn Progress>,
}

impl Host {
    /// Starts to describe a host: no table, no device, the default [`Config`], memory as the system allows.
    #[must_use]
    pub fn builder() -> HostBuilder {
        HostBuilder {
            config: Config::default(),
            dirs: Vec::new(),
            device: None,
            files: AccessFiles::default(),
            memory: MemoryLimit::Auto,
            streamed: false,
            request_timeout: None,
            request_memory: None,
            progress: Box::new(()),
        }
    }

    /// Listens, and starts to watch the folders.
    ///
    /// # Errors
    /// The address can't be had, a thread can't be started, or a limit is too small for a table.
    pub async fn bind(self) -> Result<BoundHost, HostError> {
        let Self { config, sockets, files, tables, watchers, unchecked, opener, opened } = self;
        let described = opener.device.description();
        let server = Server::listen(sockets, &config, tables)?;
        tracing::info!(
            device = described.name,
            threads = described.threads,
            why = described.why,
            "computing"
        );
        for (m, bytes) in &opened {
            let signed_by = m.signed.as_ref().map(|s| &s.key);
            tracing::info!(
                table = m.name,
                epoch = m.epoch,
                rows = m.live_rows(),
                bytes,
                signed_by,
                "serving"
            );
            if signed_by.is_some() && m.records.proofs.is_none() {
                tracing::error!(
                    table = m.name,
                    "it is signed and has no proofs: clients that trust its key refuse it; build it again with --sign"
                );
            }
        }
        if let Some(address) = server.metrics_address() {
            tracing::info!("metrics at http://{address}/metrics");
        }
        serve::announce(&config, server.address());
        let (wake, woken) = mpsc::channel();
        let handle = server.handle();
        std::thread::Builder::new()
            .name("blindcore-watch".into())
            .spawn(move || epoch_watcher::run(watchers, &handle, &opener, &unchecked, &woken))
            .map_err(HostError::Thread)?;
        let reloader = Reloader::new(files, server.front(), Some(wake));
        Ok(BoundHost { server, reloader })
    }
}

impl HostBuilder {
    /// Serves the database in this folder, too.
    #[must_use]
    pub fn table_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dirs.push(dir.into());
        self
    }

    /// Computes on this device.
    #[must_use]
    pub fn device(self, device: Device) -> Self {
        Self { device: Some(device), ..self }
    }

    /// Listens here; port 0 takes a free one.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.config.listen = address;
        self
    }

    /// Limits, and whatever else a server allows. Its address, certificates and tokens are replaced by those of
    /// [`listen`](Self::listen), [`tls_files`](Self::tls_files) and [`tokens_file`](Self::tokens_file) if these are
    /// called later.
    #[must_use]
    pub fn config(self, config: Config) -> Self {
        Self { config, ..self }
    }

    /// Encrypts connections with this certificate chain and its private key, both in PEM.
    #[must_use]
    pub fn tls_files(mut self, chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.files.tls = Some((chain.into(), key.into()));
        self
    }

    /// Answers only to the tokens in this file, as [`Tokens::parse`](crate::Tokens::parse) reads it.
    #[must_use]
    pub fn tokens_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.files.tokens = Some(path.into());
        self
    }

    /// How much memory the process may have. Three quarters are for databases, a quarter is for requests.
    #[must_use]
    pub fn memory(self, memory: MemoryLimit) -> Self {
        Self { memory, ..self }
    }

    /// Streams every matrix from its disk, even where there is memory for it.
    #[must_use]
    pub fn streamed(self, streamed: bool) -> Self {
        Self { streamed, ..self }
    }

    /// How long a request may take. Without this, what [`Config::request_timeout`] says, or longer where large
    /// databases are streamed.
    #[must_use]
    pub fn request_timeout(self, timeout: Duration) -> Self {
        Self { request_timeout: Some(timeout), ..self }
    }

    /// Certificates and tokens from these files.
    #[must_use]
    pub fn access_files(self, files: AccessFiles) -> Self {
        Self { files, ..self }
    }

    /// Bytes of all requests and answers. Without this, what [`Config::memory_bytes`] says, or less where a quarter of
    /// the memory is less.
    #[must_use]
    pub fn request_memory(self, bytes: usize) -> Self {
        Self { request_memory: Some(bytes), ..self }
    }

    /// Shows how far loading is.
    #[must_use]
    pub fn progress(self, progress: impl Progress + 'static) -> Self {
        Self { progress: Box::new(progress), ..self }
    }

    /// Reads certificates and tokens and checks the settings, as [`open`](Self::open) does first.
    ///
    /// # Errors
    /// A file can't be read, or a setting is out of its range.
    pub fn check(&self) -> Result<(), HostError> {
        self.checked().map(|_| ())
    }

    /// The settings with all that certificates, tokens and the builder add to them.
    fn checked(&self) -> Result<Config, HostError> {
        let mut config = self.config.clone();
        self.files.load(&mut config)?;
        config.request_timeout = self.request_timeout.unwrap_or(config.request_timeout);
        config.memory_bytes = self.request_memory.unwrap_or(config.memory_bytes);
        config.check()?;
        Ok(config)
    }

    /// Reads certificates, tokens and manifests, checks the settings, and places every matrix. Blocks until all that is
    /// served at once is in memory.
    ///
    /// # Errors
    /// A file can't be read or is damaged, a setting is out of its range, the builder was given no table, two tables have
    /// one name, or the device refuses.
    pub fn open(self) -> Result<Host, HostError> {
        let mut config = self.checked()?;
        let Self {
            dirs, device, files, memory, streamed, request_timeout, request_memory, mut progress, ..
        } = self;
        let device = device.ok_or(HostError::NoDevice)?;
        if dirs.is_empty() {
            return Err(HostError::NoTable);
        }
        let stored = dirs.iter().map(|dir| Stored::open(dir)).collect::<Result<Vec<_>, _>>()?;
        let mut names = std::collections::HashSet::new();
        if let Some(twice) = stored.iter().map(|s| &s.manifest().name).find(|name| !names.insert(*name)) {
            // Before anything is placed.
            return Err(Error::DuplicateTable { name: twice.clone() }.into());
        }
        let memory_now = memory.now();
        if let (Some(memory), None) = (memory_now, request_memory) {
            config.memory_bytes = config.memory_bytes.min(memory.for_requests());
        }
        let registers = |s: &Stored| s.parts().any(|(_, part)| part.params.registers_keys());
        if let Some(first) = stored.iter().find(|s| registers(s)) {
            // Beside the table, as there is nowhere else that is said to be this server's.
            config.keys.folder.get_or_insert_with(|| keys_beside(first.dir()));
            if memory_now.is_some() {
                config.keys.memory_bytes = config.keys.memory_bytes.min(config.memory_bytes / 2);
                config.memory_bytes -= config.keys.memory_bytes;
            }
        }
        // Again, before anything is placed in vain.
        config.check()?;
        let sockets = Sockets::take(&config)?;
        let parts = stored.iter().flat_map(|s| s.parts().map(|(_, part)| part));
        let mut placer = Placer::new(parts, memory_now, streamed, &mut *progress);
        let (mut tables, mut unchecked) = (Vec::new(), Hints::new());
        for s in &stored {
            let opened = open_table(s, &device, &mut placer, &|_| true);
            let (table, hints) = opened
                .map_err(|source| HostError::Table { dir: s.dir().to_owned(), source: Box::new(source) })?;
            tables.push(table);
            unchecked.extend(hints);
        }
        if request_timeout.is_none() {
            config.request_timeout = config.request_timeout.max(placer.request_time());
        }
        drop(placer);
        let opened = stored.iter().map(|s| (s.manifest().clone(), database_bytes(s))).collect();
        let watchers = stored.iter().map(EpochWatcher::new).collect();
        let opener = Opener { device, memory, streamed };
        Ok(Host { config, sockets, files, tables, watchers, unchecked, opener, opened })
    }
}

/// A host that listens; [`BoundHost::run`] makes it answer.
pub struct BoundHost {
    server: Server,
    reloader: Reloader,
}

impl BoundHost {
    /// Where it listens: the port that was free, if port 0 was asked for.
    #[doc(alias = "local_addr")]
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Where it answers `GET /metrics`, if it does.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.server.metrics_address()
    }

    /// Its counters, which outlive it.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.server.stats()
    }

    /// Has its files read again, from anywhere.
    #[must_use]
    pub fn reloader(&self) -> Reloader {
        self.reloader.clone()
    }

    /// Answers until `shutdown` is done, then drains as [`Server::run`] does. Returns how many connections were cut.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> usize {
        let cut = self.server.run(shutdown).await;
        self.reloader.stop();
        cut
    }
}

/// Has a running [`BoundHost`] or [`SumServer`](crate::sum::SumServer) read its files again.
#[derive(Clone)]
pub struct Reloader(Arc<Reloading>);

struct Reloading {
    files: AccessFiles,
    front: Arc<Front>,
    /// Wakes the epoch watcher, if there is one, until the host ends.
    wake: Mutex<Option<mpsc::Sender<()>>>,
    one_at_a_time: Mutex<()>,
}

impl Reloader {
    pub(crate) fn new(files: AccessFiles, front: Arc<Front>, wake: Option<mpsc::Sender<()>>) -> Self {
        let (wake, one_at_a_time) = (Mutex::new(wake), Mutex::new(()));
        Self(Arc::new(Reloading { files, front, wake, one_at_a_time }))
    }

    /// Reads certificates and tokens again, each by itself, and has the epoch watcher open what fails. What can't be read
    /// stays as it was; the log says so, and each failure is counted. Tokens that are gone from their file are revoked,
    /// all of them where it is empty. Blocks while certificates and tokens are read.
    ///
    /// # Errors
    /// Certificates or tokens can't be used: the first of them. The others, and tables, are looked at all the same.
    pub fn reload(&self) -> Result<(), HostError> {
        let Reloading { files, front, wake, one_at_a_time } = &*self.0;
        let _one = one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        // A broken certificate must not keep a token from being revoked, nor the other way round.
        let tls = again(front, "certificates", files.read_tls(), |tls| front.access.set_tls(tls));
        let tokens = again(front, "tokens", files.read_tokens(), |tokens| {
            if tokens.is_empty() {
                tracing::warn!("there are no tokens any more, so nobody is answered");
            }
            front.access.set_tokens(tokens);
        });
        let done = tls.and(tokens);
        let woken = wake.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|wake| wake.send(()));
        if let Some(woken) = woken {
            front.reloaded(woken.is_ok());
        }
        done
    }

    fn stop(&self) {
        self.0.wake.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Takes up what was read again, if there is such a file, and says how that went.
fn again<T>(
    front: &Front,
    what: &str,
    read: Result<Option<T>, HostError>,
    take: impl FnOnce(T),
) -> Result<(), HostError> {
    match read {
        Ok(None) => Ok(()),
        Ok(Some(new)) => {
            take(new);
            front.reloaded(true);
            tracing::info!("{what} were read again");
            Ok(())
        }
        Err(error) => {
            front.reloaded(false);
            tracing::error!("{what} stay as they were: {}", with_causes(&error));
            Err(error)
        }
    }
}

/// Where keys of a folder's clients are kept unless it is said: `people.db.keys` beside `people.db`.
fn keys_beside(dir: &Path) -> PathBuf {
    let mut name = dir.file_name().unwrap_or_default().to_owned();
    name.push(".keys");
    dir.with_file_name(name)
}

fn database_bytes(stored: &Stored) -> u64 {
    let parts = stored.manifest().parts();
    let files = parts.flat_map(|(_, p)| p.shards.iter().chain(p.derived()).chain([&p.hint]));
    files.map(|f| f.bytes).sum()
}
