//! Fetching a hint: public, so a download that breaks may simply go on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use blindcore_wire::{PartDescription, PartKind, TableDescription, proto};
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::cache::{HEADER_BYTES, HintFile, Lock, Words};
use crate::error::{chain, refused};
use crate::{Client, Error};

/// Hears how many bytes of a hint are there, of how many.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// Times that a download may break without getting further.
const ATTEMPTS: u32 = 4;
/// Times that a download may break at all: a server that sends a few bytes a time would go on for ever.
const BREAKS: u32 = 64;
/// Bytes that must come in [`crate::Options::request_timeout`], or the download has stalled.
const LEAST: u64 = 64 << 10;
/// How long another client's download may stand still before this one stops waiting for it.
const OTHERS_STALL: Duration = Duration::from_secs(30);

/// One hint of one table.
pub(crate) struct Fetch<'a> {
    pub(crate) client: &'a Client,
    pub(crate) table: &'a TableDescription,
    pub(crate) kind: PartKind,
    pub(crate) part: &'a PartDescription,
    pub(crate) progress: Option<&'a Progress>,
}

/// Where pieces go.
enum Sink<'a> {
    Memory(&'a mut Words),
    /// To a thread that writes them.
    File(mpsc::Sender<Bytes>),
}

impl Sink<'_> {
    async fn take(&mut self, at: u64, piece: Bytes) -> Result<(), Error> {
        match self {
            Sink::Memory(words) => words.push(at as usize, &piece),
            Sink::File(pieces) => {
                // Closed only by a writer that failed, and whoever waits for that one says why.
                let source = std::io::ErrorKind::BrokenPipe.into();
                let gone = |_| Error::Cache { path: PathBuf::new(), source };
                pieces.send(piece).await.map_err(gone)?;
            }
        }
        Ok(())
    }
}

impl Fetch<'_> {
    /// The hint, and how many bytes of it had to be fetched.
    pub(crate) async fn run(&self) -> Result<(Arc<Words>, u64), Error> {
        let (bytes, limit) = (self.part.hint_bytes(), self.client.options.hint_bytes);
        if bytes > limit {
            let table = self.table.name().to_owned();
            return Err(Error::HintTooLarge { table, part: self.kind, bytes, limit });
        }
        let Some(folder) = self.client.options.cache.path()? else { return self.fetch_to_memory().await };
        let file = HintFile::new(
            &folder,
            &self.client.server,
            self.table.name(),
            self.table.part_epoch(self.kind),
            self.kind,
            self.part,
        );
        file.make_folder()?;
        let whole = file.path();
        if let Some(words) = read(&file, &whole).await? {
            return Ok((words, 0));
        }
        let (lock, part) = self.wait_for_lock(&file).await?;
        // Another client may have fetched it meanwhile.
        if let Some(words) = read(&file, &whole).await? {
            return Ok((words, 0));
        }
        let mut fetched = 0;
        loop {
            let this_time = self.fetch_to_file(&file, &part).await?;
            fetched += this_time;
            let (finish, from) = (file.clone(), part.clone());
            if let Some(words) = blocking(move || finish.finish(&from)).await? {
                drop(lock);
                return Ok((words, fetched));
            }
            // What was there before may have been damaged; it is gone, so the next time everything comes anew.
            if this_time == bytes {
                return Err(self.bad_digest());
            }
        }
    }

    fn bad_digest(&self) -> Error {
        Error::HintDigest { table: self.table.name().to_owned(), part: self.kind }
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

    fn tell(&self, have: u64) {
        if let Some(progress) = self.progress {
            progress(have, self.part.hint_bytes());
        }
    }

    async fn fetch_to_memory(&self) -> Result<(Arc<Words>, u64), Error> {
        let mut words = Words::empty();
        self.download(0, &mut Sink::Memory(&mut words)).await?;
        let (digest, words) = blocking(move || Ok((words.digest(), words))).await?;
        if digest != self.part.hint_digest {
            return Err(self.bad_digest());
        }
        Ok((Arc::new(words), self.part.hint_bytes()))
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
        let done = self.download(have, &mut sink).await;
        drop(sink);
        let written = writer.await.unwrap_or_else(|e| std::panic::resume_unwind(e.into_panic()));
        written.map_err(|source| Error::Cache { path: path.to_owned(), source })?;
        done.map(|()| self.part.hint_bytes() - have)
    }

    /// Hands every piece from `have` on to a sink; goes on where a connection broke.
    async fn download(&self, mut have: u64, sink: &mut Sink<'_>) -> Result<(), Error> {
        let total = self.part.hint_bytes();
        let (mut failures, mut breaks) = (0, 0);
        self.tell(have);
        while have < total {
            let before = have;
            let Err(error) = self.stream(&mut have, sink).await else { continue };
            let broke = matches!(error, Error::Network { .. });
            failures = if have > before { 1 } else { failures + 1 };
            breaks += 1;
            if !broke || failures >= ATTEMPTS || breaks >= BREAKS {
                return Err(error);
            }
            tracing::debug!(%error, have, total, "a hint's download broke and goes on");
            sleep(Duration::from_millis(100) * (1 << failures)).await;
        }
        Ok(())
    }

    async fn stream(&self, have: &mut u64, sink: &mut Sink<'_>) -> Result<(), Error> {
        const WHAT: &str = "a hint";
        let total = self.part.hint_bytes();
        let stall = self.client.options.request_timeout;
        let late =
            |_| Error::Network { what: WHAT, why: format!("nothing came for {} s", stall.as_secs_f32()) };
        let refused = |status| refused(&status, WHAT, self.table.name(), self.table.epoch());
        let request = proto::GetHintRequest {
            table: self.table.name().to_owned(),
            epoch: self.table.epoch(),
            part: self.kind.to_proto().into(),
            offset: *have,
        };
        let mut grpc = self.client.grpc.clone();
        let stream = timeout(stall, grpc.get_hint(request)).await.map_err(late)?.map_err(refused)?;
        let mut stream = stream.into_inner();
        let (mut since, mut mark) = (Instant::now(), *have);
        while *have < total {
            if since.elapsed() > stall {
                if *have - mark < LEAST {
                    let why = format!("{} B came in {} s", *have - mark, stall.as_secs_f32());
                    return Err(Error::Network { what: WHAT, why });
                }
                (since, mark) = (Instant::now(), *have);
            }
            let piece = timeout(stall, stream.message()).await.map_err(late)?.map_err(refused)?;
            let Some(proto::HintChunk { data }) = piece else {
                return Err(Error::Network { what: WHAT, why: format!("it ended at {have} of {total} B") });
            };
            let len = data.len() as u64;
            if len == 0 || len > total - *have {
                let what = format!("it sent a piece of {len} B of a hint at {have} of {total} B");
                return Err(Error::Protocol { what });
            }
            sink.take(*have, data).await?;
            *have += len;
            self.tell(*have);
        }
        Ok(())
    }
}

async fn read(file: &HintFile, path: &Path) -> Result<Option<Arc<Words>>, Error> {
    let (file, path) = (file.clone(), path.to_owned());
    blocking(move || file.read(&path)).await
}

/// Runs work that computes or waits for a disk where it holds nobody up.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(error) => Err(Error::Network { what: "a lookup", why: chain(&error) }),
    }
}
