//! A matrix that stays on its disk: each pass streams it past the device.
//!
//! ```text
//!   shards, in order      a few buffers, each one piece                    device
//!   ┌────────┬─ ...       ┌───────┐ ┌───────┐ ┌───────┐ ┌───────┐
//!   │ pieces │   ──read──▶│ lands │ │ lands │ │ ready │ │ ready │──take──▶ outputs of its rows,
//!   └────────┴─ ...       └───────┘ └───────┘ └───────┘ └───────┘          for all gathered queries
//! ```
//!
//! A piece is whole stripes, so that the device computes it as it comes; its buffer is read into again at once. Reads
//! go through io_uring and past the page cache, several at a time, so that the disk never waits for the processor;
//! where a kernel, a container or a file system doesn't allow one or the other, threads read, or through the
//! cache ([`Streamed::reader`] says which).

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Instant;

use blindcore_accel::contract::{self, Shape};
use blindcore_accel::{Contract, Cost, Device, Error, Placed, Words};
use memmap2::MmapMut;

use crate::direct::{self, read_at, set_direct};
use crate::reads::{Done, Queue, Read};
use crate::tile_checksums::TILE;
#[cfg(target_os = "linux")]
use crate::uring::Uring;
use crate::{StoreError, tile_checksums};

const BLOCK: u64 = direct::BLOCK as u64;
/// From here on a buffer asks for large pages.
#[cfg(target_os = "linux")]
const LARGE_PAGE: usize = 2 << 20;
/// Threads that read where there is no io_uring.
const THREADS: usize = 4;
/// How often a read that the system put off is tried again.
const TRIES: usize = 100;

/// How a matrix is streamed. The defaults are what was fastest, on the least memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// Bytes that are read at a time, but for a stripe that is larger. They are cut to whole stripes.
    pub piece_bytes: usize,
    /// Pieces that lie in memory, 2 at least; fewer where stripes are longer than a piece.
    pub pieces: usize,
    /// Whether io_uring may be used.
    pub uring: bool,
    /// Whether reads may go past the page cache.
    pub direct: bool,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self { piece_bytes: 4 << 20, pieces: 8, uring: true, direct: true }
    }
}

impl StreamOptions {
    /// Bytes of memory that streaming a matrix of this stripe takes.
    #[must_use]
    pub fn memory_bytes(&self, stripe_bytes: usize) -> usize {
        // A piece, and what lies before and after it in its blocks.
        let buffer = self.piece(stripe_bytes).next_multiple_of(BLOCK as usize) + BLOCK as usize;
        self.pieces(stripe_bytes) * buffer
    }

    /// Pieces that lie in memory: of longer stripes fewer, so that they take no more than others, but two.
    fn pieces(&self, stripe_bytes: usize) -> usize {
        let room = self.pieces.saturating_mul(self.piece_bytes);
        (room / self.piece(stripe_bytes)).clamp(2, self.pieces.max(2))
    }

    fn piece(&self, stripe_bytes: usize) -> usize {
        (self.piece_bytes / stripe_bytes).max(1) * stripe_bytes
    }
}

/// A file with whole stripes of a matrix.
#[derive(Debug)]
pub struct Shard {
    /// Its name, for messages.
    pub path: PathBuf,
    /// The file.
    pub file: File,
    /// Where the stripes lie in it.
    pub bytes: Range<u64>,
    /// What every pass compares them with.
    pub checksum: Checksum,
}

/// What tells that bytes are those that were written.
#[derive(Clone, Debug)]
pub enum Checksum {
    /// Nothing.
    Nothing,
    /// BLAKE3 of all of them, which a pass knows at their end.
    Whole([u8; 32]),
    /// [`tile_sums`](crate::tile_sums) of them, which a pass knows before it computes on them, at a fraction of the time.
    Tiles(Vec<u8>),
}

/// A matrix on its disk, answering queries. Passes of several threads come one after the other.
pub struct Streamed {
    contract: Arc<dyn Contract>,
    shape: Shape,
    files: Vec<(PathBuf, Arc<File>)>,
    checksums: Vec<Checksum>,
    pieces: Vec<Piece>,
    reader: String,
    reads: Mutex<Reads>,
}

/// What is read at a time.
#[derive(Clone, Copy)]
struct Piece {
    file: usize,
    start: u64,
    /// Tiles of its file before it.
    first_tile: usize,
    bytes: usize,
}

impl Piece {
    /// The blocks that it lies in start here.
    fn first_block(self) -> u64 {
        self.start / BLOCK * BLOCK
    }

    /// Where it lies in its buffer.
    fn place(self) -> Range<usize> {
        let before = (self.start - self.first_block()) as usize;
        before..before + self.bytes
    }
}

impl Streamed {
    /// A matrix whose stripes lie in these files, in the order of `device`'s layout.
    ///
    /// # Errors
    /// The device refuses the shape, the files don't hold its stripes, or they can't be read.
    pub fn open(
        device: &Device,
        shape: &Shape,
        shards: Vec<Shard>,
        options: StreamOptions,
    ) -> Result<Self, StoreError> {
        let contract = device.contract(shape).map_err(blindcore_lookup::Error::from)?;
        if contract.streaming().is_none() {
            return Err(StoreError::Unfit(format!(
                "device {:?} takes no database from a disk; place this one in its memory",
                device.name()
            )));
        }
        let stripe = contract.layout().stripe_bytes(shape);
        let (mut files, mut pieces, mut checksums) = (Vec::new(), Vec::new(), Vec::new());
        let mut total = 0u128;
        for Shard { path, file, bytes, checksum } in shards {
            let len = bytes.end.saturating_sub(bytes.start);
            let has = file.metadata().map_err(|e| StoreError::io(&path, "read", e))?.len();
            if len == 0 || len % stripe as u64 != 0 || has < bytes.end {
                let why = format!(
                    "bytes {} to {} of its {has} are not stripes of {stripe} bytes",
                    bytes.start, bytes.end
                );
                return Err(StoreError::Damaged { path, why });
            }
            total += u128::from(len);
            let piece = options.piece(stripe);
            pieces.extend(bytes.clone().step_by(piece).map(|start| Piece {
                file: files.len(),
                start,
                first_tile: (start - bytes.start) as usize / TILE,
                bytes: piece.min((bytes.end - start) as usize),
            }));
            files.push((path, Arc::new(file)));
            checksums.push(checksum);
        }
        let want = stripe as u128 * contract.layout().stripes(shape) as u128;
        if total != want {
            return Err(StoreError::Unfit(format!(
                "the shards have {total} bytes where the matrix has {want}"
            )));
        }
        let buffers = options.pieces(stripe).min(pieces.len());
        let (queue, how) = queue(buffers, options.uring);
        let mut reads = Reads { queue, free: Vec::new(), ready: BTreeMap::new() };
        // No larger than the largest piece: a small matrix doesn't take in large pages.
        let most = pieces.iter().map(|piece| piece.place().end).max().unwrap_or(0);
        let bytes = most.next_multiple_of(BLOCK as usize).max(BLOCK as usize);
        for _ in 0..buffers {
            let buffer = MmapMut::map_anon(bytes).map_err(|e| {
                let all = buffers * bytes;
                StoreError::Unfit(format!("{all} bytes of memory could not be had: {e}"))
            })?;
            #[cfg(target_os = "linux")]
            if bytes >= LARGE_PAGE {
                let _ = buffer.advise(memmap2::Advice::HugePage);
            }
            reads.free.push(buffer);
        }
        let direct = options.direct && past_the_cache(&files, &mut reads);
        let reader = format!("{how}, {}", if direct { "direct" } else { "cached" });
        Ok(Self {
            contract,
            shape: shape.clone(),
            files,
            checksums,
            pieces,
            reader,
            reads: Mutex::new(reads),
        })
    }

    /// How it is read, in words: `io_uring, direct`, or what of that there is not here.
    #[must_use]
    pub fn reader(&self) -> &str {
        &self.reader
    }

    /// Bytes of a pass.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|p| p.bytes as u64).sum()
    }

    /// Reads the matrix once, piece after piece; `each` gets a piece while those after it are read.
    ///
    /// # Errors
    /// A file can't be read, or doesn't fit its checksum; or what `each` says. Nothing more is read then, and what `each`
    /// made of the pieces so far is of no use.
    pub fn scan(&self, each: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        // Whatever a pass that panicked left.
        self.settle(&mut reads)?;
        let done = self.scan_with(&mut reads, each);
        // A buffer is free again once nobody reads into it.
        let settled = self.settle(&mut reads);
        done.and(settled)
    }

    fn scan_with(
        &self,
        reads: &mut Reads,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut next = 0;
        let mut hasher = blake3::Hasher::new();
        for (at, piece) in self.pieces.iter().enumerate() {
            while next < self.pieces.len()
                && let Some(buffer) = reads.free.pop()
            {
                self.submit(reads, read_of(next, self.pieces[next], &self.files, buffer))?;
                next += 1;
            }
            while !reads.ready.contains_key(&at) {
                let done = reads.queue.wait().map_err(|e| self.error(*piece, 0, &e.to_string()))?;
                self.arrived(reads, done)?;
            }
            let bytes = &reads.ready[&at][piece.place()];
            let last = self.pieces.get(at + 1).is_none_or(|next| next.file != piece.file);
            let fits = match &self.checksums[piece.file] {
                Checksum::Nothing => true,
                Checksum::Tiles(sums) => tile_checksums::fit(sums, piece.first_tile, bytes),
                Checksum::Whole(digest) => {
                    hasher.update_rayon(bytes);
                    !last || std::mem::take(&mut hasher).finalize() == *digest
                }
            };
            if !fits {
                return Err(Error::Damaged { path: self.files[piece.file].0.clone() });
            }
            each(bytes)?;
            reads.free.extend(reads.ready.remove(&at));
        }
        Ok(())
    }

    /// A read is done, or has to go on.
    fn arrived(&self, reads: &mut Reads, Done { mut read, result }: Done) -> Result<(), Error> {
        let piece = self.pieces[read.piece];
        let again =
            |e: &io::Error| matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock);
        let why = match result {
            Ok(got) if read.done + got >= piece.place().end => {
                reads.ready.insert(read.piece, read.buffer);
                return Ok(());
            }
            // Part of it; the rest must start at a block again.
            Ok(got) if got as u64 >= BLOCK => {
                read.done += got / BLOCK as usize * BLOCK as usize;
                return self.submit(reads, read);
            }
            Ok(got) => {
                read.done += got;
                "the file ends there".to_owned()
            }
            Err(e) if again(&e) && read.tries < TRIES => {
                read.tries += 1;
                return self.submit(reads, read);
            }
            Err(e) => e.to_string(),
        };
        reads.free.push(read.buffer);
        Err(self.error(piece, read.done, &why))
    }

    fn submit(&self, reads: &mut Reads, read: Read) -> Result<(), Error> {
        let (piece, done) = (self.pieces[read.piece], read.done);
        reads.queue.submit(read).map_err(|e| self.error(piece, done, &e.to_string()))
    }

    /// Waits for whatever is still read, and frees every buffer.
    fn settle(&self, reads: &mut Reads) -> Result<(), Error> {
        reads.free.extend(std::mem::take(&mut reads.ready).into_values());
        while reads.queue.flying() > 0 {
            let done = reads.queue.wait().map_err(|e| self.error(self.pieces[0], 0, &e.to_string()))?;
            reads.free.push(done.read.buffer);
        }
        Ok(())
    }

    fn error(&self, piece: Piece, done: usize, why: &str) -> Error {
        let offset = piece.first_block() + done as u64;
        Error::Read { path: self.files[piece.file].0.clone(), offset, why: why.to_owned() }
    }
}

impl Placed for Streamed {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn stripes(&self, take: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        self.scan(take)
    }

    fn run(&self, query: &Words) -> Result<(Words, Cost), Error> {
        contract::whole(self, query)
    }

    fn run_in_pieces(
        &self,
        query: &Words,
        outputs: usize,
        give: &mut dyn FnMut(&mut Words),
    ) -> Result<Cost, Error> {
        let start = Instant::now();
        let streaming = self.contract.streaming().expect("checked when it was opened");
        let mut pass = streaming.begin(query, outputs)?;
        self.scan(&mut |stripes| pass.take(stripes, give))?;
        let cost = pass.finish()?;
        Ok(Cost { seconds: start.elapsed().as_secs_f64(), ..cost })
    }
}

/// Buffers, and reads into them. A buffer is free, or read into, or ready.
struct Reads {
    queue: Box<dyn Queue>,
    free: Vec<MmapMut>,
    /// By the number of its piece.
    ready: BTreeMap<usize, MmapMut>,
}

/// A read of a whole piece.
fn read_of(number: usize, piece: Piece, files: &[(PathBuf, Arc<File>)], buffer: MmapMut) -> Read {
    let (start, len) = (piece.first_block(), piece.place().end.next_multiple_of(BLOCK as usize));
    Read { piece: number, file: files[piece.file].1.clone(), start, len, done: 0, tries: 0, buffer }
}

/// A queue for this many reads at a time, and what it is.
fn queue(reads: usize, uring: bool) -> (Box<dyn Queue>, String) {
    let mut why = String::new();
    #[cfg(target_os = "linux")]
    if uring {
        match Uring::new(reads) {
            Ok(uring) => return (Box::new(uring), "io_uring".into()),
            Err(e) => why = format!(" (no io_uring: {e})"),
        }
    }
    if uring && cfg!(not(target_os = "linux")) {
        why = " (no io_uring on this system)".into();
    }
    (Box::new(Threads::new(reads.min(THREADS))), format!("read{why}"))
}

/// Threads that read, each one read at a time. They end with this value.
struct Threads {
    todo: mpsc::Sender<Read>,
    done: mpsc::Receiver<Done>,
    flying: usize,
}

impl Threads {
    fn new(count: usize) -> Self {
        let (todo, queue) = mpsc::channel::<Read>();
        let (tell, done) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        for i in 0..count {
            let (queue, tell) = (queue.clone(), tell.clone());
            let work = move || {
                loop {
                    // Locked while it waits: one thread waits for a read, the others for their turn.
                    let read = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(mut read) = read else { return };
                    let (file, offset) = (read.file.clone(), read.offset());
                    let result = read_at(&file, read.target(), offset);
                    if tell.send(Done { read, result }).is_err() {
                        return;
                    }
                }
            };
            // One is enough, and without any the first read says so.
            let _ = std::thread::Builder::new().name(format!("blindcore-read-{i}")).spawn(work);
        }
        Self { todo, done, flying: 0 }
    }
}

impl Queue for Threads {
    fn submit(&mut self, read: Read) -> io::Result<()> {
        self.todo.send(read).map_err(|_| io::Error::other("no thread could be started"))?;
        self.flying += 1;
        Ok(())
    }

    fn wait(&mut self) -> io::Result<Done> {
        let done = self.done.recv().map_err(|_| io::Error::other("the threads that read are gone"));
        self.flying = if done.is_ok() { self.flying - 1 } else { 0 };
        done
    }

    fn flying(&self) -> usize {
        self.flying
    }
}

/// Lets reads go past the page cache where that works for every file, which a first read of each tells.
fn past_the_cache(files: &[(PathBuf, Arc<File>)], reads: &mut Reads) -> bool {
    let works = files.iter().all(|(_, file)| {
        set_direct(file, true).is_ok() && {
            let Some(buffer) = reads.free.pop() else { return false };
            let piece = Piece { file: 0, start: 0, first_tile: 0, bytes: 1 };
            let read = read_of(0, piece, &[(PathBuf::new(), file.clone())], buffer);
            let done = reads.queue.submit(read).and_then(|()| reads.queue.wait());
            done.is_ok_and(|Done { read, result }| {
                reads.free.push(read.buffer);
                result.is_ok()
            })
        }
    });
    works || files.iter().any(|(_, file)| set_direct(file, false).is_err())
}
