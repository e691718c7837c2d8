//! Entries at rest on disk, and back in order, in bounded memory.
//!
//! ```text
//!   push ─▶ buffer ── full ─▶ (sort) ─▶ run 0, run 1, ... run n      one file each, deleted with their owner
//!                                          └──────┬──────┘
//!   finish ────────────────────────────── merge ─▶ Entries           over 128 runs: merged in several passes
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::vec;
use tempfile::TempPath;

/// Runs that are merged at a time, each an open file. macOS allows a process 256.
const FAN_IN: usize = 128;
/// Bytes of a file's buffer while merging, at least, so at most `FAN_IN` times that in all for a tiny budget.
const MIN_BUFFER: usize = 4096;
/// Bytes of a file's buffer at most; more gains nothing.
const MAX_BUFFER: usize = 256 << 10;
/// Bytes of an entry in a run before its payload: hash, line, length of the payload.
const HEADER: usize = 16 + 8 + 8;

/// In what order a [`Spill`] gives its entries back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As they were pushed.
    Arrival,
    /// By hash; equal hashes by line, and equal lines as they were pushed.
    Hash,
}

/// What goes into a [`Spill`] and comes out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// A hash of the row's key.
    pub hash: u128,
    /// Where the row stands in its source.
    pub line: u64,
    /// Whatever the caller keeps for the row.
    pub payload: Vec<u8>,
}

/// Why entries can't be kept or given back.
#[derive(Debug, thiserror::Error)]
#[error("the temporary file {} can't be {action}: {error}; {}", path.display(), remedy(error))]
pub struct SpillError {
    /// The file, or the folder that it was to be made in.
    pub path: PathBuf,
    /// What was being done: `made`, `written`, `read`.
    pub action: &'static str,
    /// What the system said.
    #[source]
    pub error: io::Error,
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free space there, or name a folder for temporary files on a larger disk"
        }
        io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => {
            "something else removed or cut temporary files; leave them alone and start again"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "name a folder for temporary files that this user may write to"
        }
        _ => "check that disk, or name a folder for temporary files on another one",
    }
}

/// Takes entries in any order and any number, and gives them back in the [`Order`] it was made for.
///
/// Memory stays at about the budget, or at the largest payload where that is more. What doesn't fit goes to
/// files in one folder; they are deleted when the `Spill` and the [`Entries`] made of it are dropped.
#[derive(Debug)]
pub struct Spill {
    dir: PathBuf,
    memory: usize,
    order: Order,
    buffer: Buffer,
    runs: Vec<Run>,
    count: u64,
    max_payload: usize,
}

impl Spill {
    /// A budget that suits most machines: 64 MiB.
    pub const DEFAULT_MEMORY: usize = 64 << 20;

    /// Starts one whose files go to `dir` once `memory` bytes are full.
    #[must_use]
    pub fn new(dir: &Path, memory: usize, order: Order) -> Self {
        let (buffer, runs) = (Buffer::default(), Vec::new());
        Self { dir: dir.to_owned(), memory, order, buffer, runs, count: 0, max_payload: 0 }
    }

    /// Takes an entry.
    ///
    /// # Errors
    /// A temporary file can't be made or written. What was pushed before can't be relied on any more.
    pub fn push(&mut self, hash: u128, line: u64, payload: &[u8]) -> Result<(), SpillError> {
        if !self.buffer.slots.is_empty()
            && self.buffer.bytes() + size_of::<Slot>() + payload.len() > self.memory
        {
            self.flush()?;
        }
        let start = self.buffer.payloads.len();
        self.buffer.payloads.extend_from_slice(payload);
        self.buffer.slots.push(Slot { hash, line, start, len: payload.len() });
        self.count += 1;
        self.max_payload = self.max_payload.max(payload.len());
        Ok(())
    }

    /// How many entries were pushed.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Bytes in the largest payload that was pushed; 0 when none was.
    #[must_use]
    pub fn max_payload(&self) -> usize {
        self.max_payload
    }

    /// Gives the entries back.
    ///
    /// # Errors
    /// A temporary file can't be made, written or read.
    pub fn finish(mut self) -> Result<Entries, SpillError> {
        if self.runs.is_empty() {
            self.buffer.sort(self.order);
            let Buffer { payloads, slots } = self.buffer;
            return Ok(Entries(Feed::Memory { payloads, slots: slots.into_iter() }));
        }
        if !self.buffer.slots.is_empty() {
            self.flush()?;
        }
        self.buffer = Buffer::default();
        // Runs are merged with their neighbours, so that equal entries stay in order of arrival, and round and
        // round, so that none is copied much more often than another.
        let mut at = 0;
        while self.runs.len() > FAN_IN {
            let group = FAN_IN.min(self.runs.len() - FAN_IN + 1);
            if at + group > self.runs.len() {
                at = 0;
            }
            let mut run = Run::create(&self.dir)?;
            let mut merge = Merge::open(self.runs.drain(at..at + group), self.memory)?;
            let mut out = run.append()?;
            let mut payload = Vec::new();
            while let Some((hash, line)) = merge.next(&mut payload)? {
                out.write(hash, line, &payload)?;
            }
            out.finish()?;
            self.runs.insert(at, run);
            at += 1;
        }
        Ok(Entries(Feed::Files(Merge::open(self.runs, self.memory)?)))
    }

    /// Empties the buffer into a file: for [`Order::Arrival`] always the same one, else one of its own.
    fn flush(&mut self) -> Result<(), SpillError> {
        self.buffer.sort(self.order);
        if self.order == Order::Hash || self.runs.is_empty() {
            self.runs.push(Run::create(&self.dir)?);
        }
        let mut out = self.runs.last_mut().expect("there is one now").append()?;
        for slot in &self.buffer.slots {
            out.write(slot.hash, slot.line, slot.payload(&self.buffer.payloads))?;
        }
        out.finish()?;
        self.buffer.payloads.clear();
        self.buffer.slots.clear();
        Ok(())
    }
}

/// The entries of a [`Spill`], in its order. After an error there are no more.
#[derive(Debug)]
pub struct Entries(Feed);

#[derive(Debug)]
enum Feed {
    Memory { payloads: Vec<u8>, slots: vec::IntoIter<Slot> },
    Files(Merge),
}

impl Iterator for Entries {
    type Item = Result<Entry, SpillError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Feed::Memory { payloads, slots } => slots.next().map(|slot| {
                Ok(Entry { hash: slot.hash, line: slot.line, payload: slot.payload(payloads).to_vec() })
            }),
            Feed::Files(merge) => {
                let mut payload = Vec::new();
                let next = merge.next(&mut payload).transpose()?;
                if next.is_err() {
                    self.0 = Feed::Memory { payloads: Vec::new(), slots: Vec::new().into_iter() };
                }
                Some(next.map(|(hash, line)| Entry { hash, line, payload }))
            }
        }
    }
}

/// Entries in memory.
#[derive(Debug, Default)]
struct Buffer {
    payloads: Vec<u8>,
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    hash: u128,
    line: u64,
    start: usize,
    len: usize,
}

impl Buffer {
    fn bytes(&self) -> usize {
        self.payloads.len() + self.slots.len() * size_of::<Slot>()
    }

    fn sort(&mut self, order: Order) {
        if order == Order::Hash {
            // Start and length are the order of arrival: an empty payload starts where the next one does.
            self.slots.sort_unstable_by_key(|slot| (slot.hash, slot.line, slot.start, slot.len));
        }
    }
}

impl Slot {
    fn payload<'a>(&self, payloads: &'a [u8]) -> &'a [u8] {
        &payloads[self.start..self.start + self.len]
    }
}

/// Entries in a file: for each its hash, line and length, little-endian, and its payload. No other process
/// reads it, so it starts with no magic.
#[derive(Debug)]
struct Run {
    path: TempPath,
    count: u64,
}

impl Run {
    fn create(dir: &Path) -> Result<Self, SpillError> {
        let file = tempfile::Builder::new().prefix("spill-").tempfile_in(dir);
        let file = file.map_err(|error| SpillError { path: dir.to_owned(), action: "made", error })?;
        Ok(Self { path: file.into_temp_path(), count: 0 })
    }

    fn append(&mut self) -> Result<Writer<'_>, SpillError> {
        let file = File::options().append(true).open(&self.path).map_err(failed(&self.path, "written"))?;
        Ok(Writer { run: self, out: BufWriter::with_capacity(MAX_BUFFER, file) })
    }
}

struct Writer<'a> {
    run: &'a mut Run,
    out: BufWriter<File>,
}

impl Writer<'_> {
    fn write(&mut self, hash: u128, line: u64, payload: &[u8]) -> Result<(), SpillError> {
        let mut header = [0; HEADER];
        header[..16].copy_from_slice(&hash.to_le_bytes());
        header[16..24].copy_from_slice(&line.to_le_bytes());
        header[24..].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        self.run.count += 1;
        let written = self.out.write_all(&header).and_then(|()| self.out.write_all(payload));
        written.map_err(failed(&self.run.path, "written"))
    }

    fn finish(mut self) -> Result<(), SpillError> {
        self.out.flush().map_err(failed(&self.run.path, "written"))
    }
}

fn failed(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> SpillError {
    move |error| SpillError { path: path.to_owned(), action, error }
}

/// Runs being read together, always the least entry of all.
#[derive(Debug)]
struct Merge {
    runs: Vec<(Run, BufReader<File>)>,
    /// Each run's next entry but for its payload, which waits in the file: hash, line, run, length.
    heads: BinaryHeap<Reverse<(u128, u64, usize, u64)>>,
}

impl Merge {
    fn open(
        runs: impl IntoIterator<Item = Run, IntoIter: ExactSizeIterator>,
        memory: usize,
    ) -> Result<Self, SpillError> {
        let runs = runs.into_iter();
        let buffer = (memory / runs.len().max(1)).clamp(MIN_BUFFER, MAX_BUFFER);
        let open = |run: Run| {
            let file = File::open(&run.path).map_err(failed(&run.path, "read"))?;
            Ok((run, BufReader::with_capacity(buffer, file)))
        };
        let mut merge = Self { runs: runs.map(open).collect::<Result<_, _>>()?, heads: BinaryHeap::new() };
        for run in 0..merge.runs.len() {
            merge.read_head(run)?;
        }
        Ok(merge)
    }

    /// The next entry's hash and line; its payload goes to `payload`.
    fn next(&mut self, payload: &mut Vec<u8>) -> Result<Option<(u128, u64)>, SpillError> {
        let Some(Reverse((hash, line, run, len))) = self.heads.pop() else { return Ok(None) };
        let (Run { path, .. }, input) = &mut self.runs[run];
        payload.clear();
        match input.take(len).read_to_end(payload) {
            Ok(read) if read as u64 == len => {}
            Ok(_) => return Err(failed(path, "read")(io::ErrorKind::UnexpectedEof.into())),
            Err(error) => return Err(failed(path, "read")(error)),
        }
        self.read_head(run)?;
        Ok(Some((hash, line)))
    }

    fn read_head(&mut self, index: usize) -> Result<(), SpillError> {
        let (run, input) = &mut self.runs[index];
        if run.count == 0 {
            return Ok(());
        }
        run.count -= 1;
        let mut header = [0; HEADER];
        input.read_exact(&mut header).map_err(failed(&run.path, "read"))?;
        let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        let hash = u128::from(word(0)) | u128::from(word(8)) << 64;
        self.heads.push(Reverse((hash, word(16), index, word(24))));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fill(spill: &mut Spill, entries: &[Entry]) {
        for entry in entries {
            spill.push(entry.hash, entry.line, &entry.payload).unwrap();
        }
    }

    fn files(dir: &Path) -> usize {
        std::fs::read_dir(dir).unwrap().count()
    }

    /// `count` entries among few hashes and lines, so that there are ties; the payload tells them apart.
    fn entries(count: usize) -> Vec<Entry> {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            state >> 33
        };
        let entry = |i: usize| {
            let hash = u128::from(random() % 500) << 96 | u128::from(random() % 2);
            Entry { hash, line: random() % 4, payload: [&i.to_le_bytes()[..], &vec![7; i % 50]].concat() }
        };
        (0..count).map(entry).collect()
    }

    fn sorted(mut entries: Vec<Entry>) -> Vec<Entry> {
        entries.sort_by_key(|e| (e.hash, e.line));
        entries
    }

    #[test]
    fn many_runs_merge_in_several_passes_into_one_order() {
        let dir = tempfile::tempdir().unwrap();
        let entries = entries(9000);
        let mut spill = Spill::new(dir.path(), 1000, Order::Hash);
        fill(&mut spill, &entries);
        assert!(files(dir.path()) > 3 * FAN_IN, "{} runs", files(dir.path()));
        assert_eq!((spill.count(), spill.max_payload()), (9000, 57));
        let merged = spill.finish().unwrap();
        assert_eq!(files(dir.path()), FAN_IN);
        assert_eq!(merged.collect::<Result<Vec<_>, _>>().unwrap(), sorted(entries));
        assert_eq!(files(dir.path()), 0, "what was read is deleted");
    }

    #[test]
    fn arrival_order_takes_one_file_or_none() {
        let dir = tempfile::tempdir().unwrap();
        let entries = entries(2000);
        for (memory, runs) in [(1000, 1), (Spill::DEFAULT_MEMORY, 0)] {
            let mut spill = Spill::new(dir.path(), memory, Order::Arrival);
            fill(&mut spill, &entries);
            assert_eq!(files(dir.path()), runs);
            assert_eq!(spill.finish().unwrap().collect::<Result<Vec<_>, _>>().unwrap(), entries);
        }
    }

    #[test]
    fn a_payload_over_the_budget_and_an_empty_one_pass() {
        let dir = tempfile::tempdir().unwrap();
        let payloads = [vec![], vec![3; 100_000], vec![], vec![4; 5], vec![5; 70_000]];
        let entry = |(i, payload): (usize, &Vec<u8>)| Entry {
            hash: 9 - i as u128,
            line: 1,
            payload: payload.clone(),
        };
        let entries: Vec<Entry> = payloads.iter().enumerate().map(entry).collect();
        let mut spill = Spill::new(dir.path(), 0, Order::Hash);
        fill(&mut spill, &entries);
        assert_eq!(spill.max_payload(), 100_000);
        assert_eq!(spill.finish().unwrap().collect::<Result<Vec<_>, _>>().unwrap(), sorted(entries));
    }

    #[test]
    fn nothing_pushed_gives_nothing_and_touches_no_disk() {
        let mut none = Spill::new(Path::new("no/such/folder"), 1, Order::Hash).finish().unwrap();
        assert!(none.next().is_none());
    }

    #[test]
    fn files_go_when_their_owner_does() {
        let dir = tempfile::tempdir().unwrap();
        let mut spill = Spill::new(dir.path(), 100, Order::Hash);
        fill(&mut spill, &entries(50));
        assert!(files(dir.path()) > 10);
        drop(spill);
        assert_eq!(files(dir.path()), 0);
    }

    #[test]
    fn a_folder_or_file_that_is_gone_is_named_with_a_remedy() {
        let mut spill = Spill::new(Path::new("no/such/folder"), 0, Order::Hash);
        spill.push(1, 1, b"x").unwrap();
        let error = spill.push(2, 2, b"y").unwrap_err();
        assert!(error.to_string().contains("no/such/folder can't be made"), "{error}");

        let dir = tempfile::tempdir().unwrap();
        let mut spill = Spill::new(dir.path(), 1000, Order::Arrival);
        fill(&mut spill, &entries(500));
        spill.flush().unwrap();
        let file = std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
        let len = file.metadata().unwrap().len();
        File::options().write(true).open(&file).unwrap().set_len(len - 1).unwrap();
        let mut back = spill.finish().unwrap();
        let error = back.by_ref().find_map(Result::err).unwrap();
        assert_eq!(
            (&error.path, error.action, error.error.kind()),
            (&file, "read", io::ErrorKind::UnexpectedEof)
        );
        assert!(error.to_string().contains("removed or cut"), "{error}");
        assert!(back.next().is_none());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let mut run = Run::create(dir.path()).unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut out = Writer { run: &mut run, out: BufWriter::new(full) };
        out.write(1, 1, &[0; 100]).unwrap();
        let error = out.finish().unwrap_err().to_string();
        assert!(error.contains("can't be written") && error.contains("free space there"), "{error}");
    }

    proptest! {
        #[test]
        fn it_sorts_as_the_standard_library_does(
            keys in prop::collection::vec((0u128..20, 0u64..3, 0usize..90), 0..200), memory in 0usize..6000,
        ) {
            let entry = |(i, &(hash, line, len)): (usize, &(u128, u64, usize))| {
                Entry { hash: hash << 120, line, payload: vec![i as u8; len] }
            };
            let entries: Vec<Entry> = keys.iter().enumerate().map(entry).collect();
            let dir = tempfile::tempdir().unwrap();
            let mut spill = Spill::new(dir.path(), memory, Order::Hash);
            fill(&mut spill, &entries);
            prop_assert_eq!(spill.finish().unwrap().collect::<Result<Vec<_>, _>>().unwrap(), sorted(entries));
        }
    }
}
