//! Getting a hint: from the cache, or from the server, where a download that breaks goes on.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use blindcore_files::Lock;
use blindcore_protocol::{Download, Error as LookupError, Fetch, HEADER_BYTES, Hint, Kept, Table};
use blindcore_units::{SharedProgress, Unit};
use blindcore_wire::proto;
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::background::blocking;
use crate::cache::{Found, HintFile};
use crate::error::refused;
use crate::{Client, Error};

/// Bytes that must come in [`crate::Options::idle_timeout`], or the download has stalled.
const LEAST: u64 = 64 << 10;
/// How long another client's download may stand still before this one stops waiting for it.
const OTHERS_STALL: Duration = Duration::from_secs(3);

/// One hint of one table.
pub(crate) struct Fetching<'a> {
    pub(crate) client: &'a Client,
    pub(crate) table: &'a Table,
    pub(crate) fetch: Fetch,
    pub(crate) progress: Option<&'a SharedProgress>,
}

/// Where pieces go.
enum Sink<'a> {
    Memory(&'a mut Hint),
    /// To a thread that writes them.
    File(mpsc::Sender<Bytes>),
}

impl Sink<'_> {
    async fn take(&mut self, piece: Bytes) -> Result<(), Error> {
        match self {
            Sink::Memory(hint) => hint.push(&piece),
            Sink::File(pieces) => {
                // Closed only by a writer that failed, and the one that waits for it says why.
                let source = std::io::ErrorKind::BrokenPipe.into();
                let gone = |_| Error::Cache { path: PathBuf::new(), source };
                pieces.send(piece).await.map_err(gone)?;
            }
        }
        Ok(())
    }
}

impl Fetching<'_> {
    /// The hint, and how many bytes of it had to be fetched.
    pub(crate) async fn run(&self) -> Result<(Kept, u64), Error> {
        let Some(folder) = self.client.options.cache.path()? else { return self.fetch_to_memory().await };
        let file = HintFile::new(&folder, self.fetch.cached(&self.client.server));
        file.make_folder()?;
        let whole = file.path();
        if let Some(kept) = self.read(&file, &whole).await? {
            return Ok((kept, 0));
        }
        let (lock, part) = self.wait_for_lock(&file).await?;
        // Another client may have fetched it meanwhile.
        if let Some(kept) = self.read(&file, &whole).await? {
            return Ok((kept, 0));
        }
        let mut fetched = 0;
        loop {
            let this_time = self.fetch_to_file(&file, &part).await?;
            fetched += this_time;
            let (finish, from) = (file.clone(), part.clone());
            if let Some(kept) = blocking(move || finish.finish(&from)).await? {
                drop(lock);
                return Ok((kept, fetched));
            }
            // What was there before may have been damaged; it is gone, so the next time everything is fetched again.
            if this_time == self.fetch.bytes() {
                let table = self.table.description().name().to_owned();
                return Err(LookupError::HintDigest { table, part: self.fetch.kind() }.into());
            }
            self.note("what was kept of a download that broke is damaged");
        }
    }

    /// Waits while another client fetches the hint and gets on with it.
    async fn wait_for_lock(&self, file: &HintFile) -> Result<(Option<Lock>, PathBuf), Error> {
        let part = file.part_path(false);
        let (mut seen, mut since) = (0, Instant::now());
        loop {
            if let Some(lock) = file.try_lock()? {
                return Ok((Some(lock), part));
            }
            let len = std::fs::metadata(&part).map_or(0, |m| m.len());
            if len != seen {
                (seen, since) = (len, Instant::now());
                self.tell(len.saturating_sub(HEADER_BYTES as u64));
            }
            if since.elapsed() > OTHERS_STALL {
                return Ok((None, file.part_path(true)));
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// What a cache has, if it is whole.
    async fn read(&self, file: &HintFile, path: &Path) -> Result<Option<Kept>, Error> {
        let (file, path) = (file.clone(), path.to_owned());
        let cached = blocking(move || {
            file.take_earlier();
            file.read(&path)
        });
        Ok(match cached.await? {
            Found::Whole(kept) => Some(kept),
            Found::Nothing => None,
            Found::Damaged(why) => {
                self.note(&format!("the cached one is damaged ({why})"));
                None
            }
        })
    }

    /// Says why a hint is fetched that was there.
    fn note(&self, why: &str) {
        if let Some(progress) = self.progress {
            let (table, part) = (self.table.description().name(), self.fetch.kind());
            let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.note(&format!("the hint of table {table}, part {part}, is fetched again: {why}"));
        }
    }

    fn tell(&self, have: u64) {
        if let Some(progress) = self.progress {
            let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.at("hint", have, Some(self.fetch.bytes()), Unit::Bytes);
        }
    }

    async fn fetch_to_memory(&self) -> Result<(Kept, u64), Error> {
        let mut hint = Hint::default();
        self.download(self.fetch.download(0), &mut Sink::Memory(&mut hint)).await?;
        let fetch = self.fetch.clone();
        let kept = blocking(move || Ok(fetch.check(hint)?)).await?;
        Ok((kept, self.fetch.bytes()))
    }

    async fn fetch_to_file(&self, file: &HintFile, path: &Path) -> Result<u64, Error> {
        let (open, have) = file.open_part(path)?;
        let (pieces, mut queue) = mpsc::channel::<Bytes>(16);
        let writer = tokio::task::spawn_blocking(move || {
            let mut open = open;
            while let Some(piece) = queue.blocking_recv() {
                std::io::Write::write_all(&mut open, &piece)?;
            }
            Ok::<_, std::io::Error>(())
        });
        let mut sink = Sink::File(pieces);
        let done = self.download(self.fetch.download(have), &mut sink).await;
        drop(sink);
        let written = writer.await.unwrap_or_else(|e| std::panic::resume_unwind(e.into_panic()));
        written.map_err(|source| Error::Cache { path: path.to_owned(), source })?;
        done.map(|()| self.fetch.bytes() - have)
    }

    /// Hands every piece on to a sink; goes on where a connection broke, for as long as a hint may take.
    async fn download(&self, download: Download, sink: &mut Sink<'_>) -> Result<(), Error> {
        let limit = self.client.options.hint_timeout;
        match timeout(limit, self.pieces(download, sink)).await {
            Ok(done) => done,
            Err(_) => {
                let (limit, total) = (limit.as_secs_f32(), self.fetch.bytes());
                let why =
                    format!("its {total} B did not come within {limit} s; a longer timeout waits for them");
                Err(Error::Network { what: "a hint", why })
            }
        }
    }

    async fn pieces(&self, mut download: Download, sink: &mut Sink<'_>) -> Result<(), Error> {
        self.tell(download.have());
        while let Some(request) = download.request() {
            let Err(error) = self.stream(request, &mut download, sink).await else { continue };
            let wait = if matches!(error, Error::Network { .. }) { download.broke() } else { None };
            let Some(wait) = wait else { return Err(error) };
            let (have, total) = (download.have(), download.total());
            tracing::debug!(%error, have, total, "a hint's download broke and goes on");
            sleep(wait).await;
        }
        Ok(())
    }

    async fn stream(
        &self,
        request: proto::GetHintRequest,
        download: &mut Download,
        sink: &mut Sink<'_>,
    ) -> Result<(), Error> {
        const WHAT: &str = "a hint";
        let (total, description) = (download.total(), self.table.description());
        let stall = self.client.options.idle_timeout;
        let late =
            |_| Error::Network { what: WHAT, why: format!("nothing came for {} s", stall.as_secs_f32()) };
        let refused = |status| refused(&status, WHAT, description.name(), description.epoch());
        let mut grpc = self.client.grpc.clone();
        let stream = timeout(stall, grpc.get_hint(request)).await.map_err(late)?.map_err(refused)?;
        let mut stream = stream.into_inner();
        let (mut since, mut mark) = (Instant::now(), download.have());
        while download.have() < total {
            let have = download.have();
            if since.elapsed() > stall {
                if have - mark < LEAST {
                    let why = format!("{} B came in {} s", have - mark, stall.as_secs_f32());
                    return Err(Error::Network { what: WHAT, why });
                }
                (since, mark) = (Instant::now(), have);
            }
            let piece = timeout(stall, stream.message()).await.map_err(late)?.map_err(refused)?;
            let Some(proto::HintChunk { data }) = piece else {
                return Err(Error::Network { what: WHAT, why: format!("it ended at {have} of {total} B") });
            };
            download.receive(&data)?;
            sink.take(data).await?;
            self.tell(download.have());
        }
        Ok(())
    }
}
