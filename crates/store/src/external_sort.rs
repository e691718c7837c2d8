//! Entries at rest on disk, and back in order, in bounded memory.
//!
//! ```text
//!   push ─▶ buffer ── full ─▶ (sort) ─▶ run 0, run 1, ... run n      one file each, deleted with their owner
//!            next one ◀── empty ──┘ on a thread of its own
//!                                          └──────┬──────┘
//!   finish ────────────────────────────── merge ─▶ Entries           over 128 runs: merged in several passes
//! ```

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use blindcore_lookup::keyword::{CELL_BITS, KeyHash};

use crate::mapped;

mod merge;
mod run;

use merge::Merge;
pub use run::ExternalSortError;
pub(crate) use run::Head;
use run::{HEADER, Run, RunWriter, WIDTHS, failed, head};

/// Runs that are merged at a time, each an open file. macOS allows a process 256.
const FAN_IN: usize = 128;
/// In what order a [`ExternalSort`] gives its entries back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As they were pushed.
    Arrival,
    /// By hash; equal hashes by line, and equal lines as they were pushed.
    Hash,
}

/// What goes into a [`ExternalSort`] and comes out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// A hash of the row's key.
    pub hash: u128,
    /// Where the row stands in its source.
    pub line: u64,
    /// Whatever the caller keeps for the row.
    pub payload: Vec<u8>,
}

/// Takes entries in any order and any number, and gives them back in the [`Order`] it was made for.
///
/// Memory stays at about the budget, or at the largest payload where that is more. What doesn't fit goes to
/// files in one folder; they are deleted when the `ExternalSort` and the [`Entries`] made of it are dropped.
#[derive(Debug)]
pub struct ExternalSort {
    dir: PathBuf,
    memory: usize,
    order: Order,
    /// Up to half of the memory; the other half is being written.
    buffer: Buffer,
    writing: Flush,
    runs: Vec<Run>,
    /// For [`Order::Arrival`] the run that all buffers go to, once there is one.
    open: Option<RunWriter>,
    /// Whether entries are counted for [`ExternalSort::fullest`].
    counted: bool,
    /// How many entries in runs have each upper [`CELL_BITS`] of a hash; nothing where there are no runs or nobody asks. It
    /// is counted in that order: at random it would miss every cache.
    cells: Vec<u32>,
    count: u64,
    max_payload: usize,
    payload_bytes: u64,
}

impl ExternalSort {
    /// A budget that suits most machines: 128 MiB.
    pub const DEFAULT_MEMORY: usize = 128 << 20;

    /// Starts one whose files go to `dir` once `memory` bytes are full.
    #[must_use]
    pub fn new(dir: &Path, memory: usize, order: Order) -> Self {
        let (buffer, writing) = (Buffer::default(), Flush(None));
        Self {
            dir: dir.to_owned(),
            memory,
            order,
            buffer,
            writing,
            runs: Vec::new(),
            open: None,
            counted: false,
            cells: Vec::new(),
            count: 0,
            max_payload: 0,
            payload_bytes: 0,
        }
    }

    /// Counts entries for [`ExternalSort::fullest`].
    pub(crate) fn counted(mut self) -> Self {
        self.counted = true;
        self
    }

    /// Takes an entry.
    ///
    /// # Errors
    /// A temporary file can't be made or written, for this entry or some before it, which can't be relied on any
    /// more.
    pub fn push(&mut self, hash: u128, line: u64, payload: &[u8]) -> Result<(), ExternalSortError> {
        if !self.buffer.bytes.is_empty()
            && self.buffer.held() + size_of::<u128>() + HEADER + payload.len() > self.memory / 2
        {
            self.flush()?;
        }
        if self.buffer.bytes.is_empty() {
            // All at once: a buffer that grows is copied, and lies twice in memory meanwhile.
            self.buffer.bytes.reserve_exact((self.memory / 2).min(MAX_RESERVE));
            mapped::huge(&mut self.buffer.bytes);
        }
        if self.order == Order::Hash {
            // The offset is the order of arrival.
            self.buffer.places.push(hash >> 64 << 64 | self.buffer.bytes.len() as u128);
        }
        self.buffer.push(hash, line, payload);
        self.count += 1;
        self.max_payload = self.max_payload.max(payload.len());
        self.payload_bytes += payload.len() as u64;
        Ok(())
    }

    /// How many entries were pushed.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Bytes of all payloads that were pushed.
    #[must_use]
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// Bytes in the largest payload that was pushed; 0 when none was.
    #[must_use]
    pub fn max_payload(&self) -> usize {
        self.max_payload
    }

    /// Entries of a counted sort in the fullest of this many groups, by hash: see [`KeyHash::group`].
    pub(crate) fn fullest(&mut self, groups: usize) -> Result<usize, ExternalSortError> {
        self.settle()?;
        let mut loads = vec![0usize; groups];
        for (cell, entries) in self.cells.iter().enumerate() {
            loads[KeyHash::group_of_cell(cell, groups)] += *entries as usize;
        }
        for place in &self.buffer.places {
            loads[KeyHash::group_of_cell(cell(*place), groups)] += 1;
        }
        Ok(loads.into_iter().max().unwrap_or(0))
    }

    /// Gives the entries back.
    ///
    /// # Errors
    /// A temporary file can't be made, written or read.
    pub fn finish(mut self) -> Result<Entries, ExternalSortError> {
        self.settle()?;
        if self.runs.is_empty() && self.open.is_none() {
            self.buffer.sort();
            return Ok(Entries(Feed::Memory { buffer: self.buffer, next: 0 }));
        }
        if !self.buffer.bytes.is_empty() {
            self.flush()?;
            self.settle()?;
        }
        self.buffer = Buffer::default();
        if let Some(open) = self.open.take() {
            self.runs.push(open.finish()?);
        }
        // Runs are merged with their neighbours, so that equal entries stay in order of arrival, and round and
        // round, so that none is copied much more often than another.
        let mut at = 0;
        while self.runs.len() > FAN_IN {
            let group = FAN_IN.min(self.runs.len() - FAN_IN + 1);
            if at + group > self.runs.len() {
                at = 0;
            }
            let mut merge = Merge::open(&self.dir, self.runs.drain(at..at + group), self.memory)?;
            let mut out = RunWriter::create(&self.dir)?;
            let mut entry = Buffer::default();
            let mut payload = Vec::new();
            while let Some(head) = merge.peek() {
                payload.resize(head.len, 0);
                merge.read(&mut payload)?;
                entry.bytes.clear();
                entry.push(head.hash, head.line, &payload);
                out.write(&entry.bytes)?;
            }
            self.runs.insert(at, out.finish()?);
            at += 1;
        }
        Ok(Entries(Feed::Files(Merge::open(&self.dir, self.runs, self.memory)?)))
    }

    /// Has the buffer emptied into a file, for [`Order::Arrival`] always the same one, else one of its own, and
    /// goes on with the buffer that was emptied before.
    fn flush(&mut self) -> Result<(), ExternalSortError> {
        let emptied = self.settle()?;
        let mut buffer = std::mem::replace(&mut self.buffer, emptied);
        let mut cells = std::mem::take(&mut self.cells);
        if self.counted && cells.is_empty() {
            cells = vec![0; 1 << CELL_BITS];
        }
        let (order, dir) = (self.order, self.dir.clone());
        let open = self.open.take();
        let write = move || {
            let mut out = open.map_or_else(|| RunWriter::create(&dir), Ok)?;
            match order {
                Order::Arrival => out.write(&buffer.bytes)?,
                Order::Hash => {
                    buffer.sort();
                    for (i, place) in buffer.places.iter().enumerate() {
                        if let Some(ahead) = buffer.places.get(i + PREFETCH) {
                            blindcore_accel::prefetch(&buffer.bytes, *ahead as u64 as usize);
                        }
                        if let Some(count) = cells.get_mut(cell(*place)) {
                            *count += 1;
                        }
                        out.write(buffer.entry(*place))?;
                    }
                }
            }
            buffer.bytes.clear();
            buffer.places.clear();
            Ok((out, buffer, cells))
        };
        let thread = thread::Builder::new().name("blindcore-sort".into()).spawn(write);
        self.writing.0 = Some(thread.map_err(failed(&self.dir, "written"))?);
        Ok(())
    }

    /// Waits for the buffer that is being written, and gives it back.
    fn settle(&mut self) -> Result<Buffer, ExternalSortError> {
        let Some(thread) = self.writing.0.take() else { return Ok(Buffer::default()) };
        let (out, buffer, cells) = thread.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        match self.order {
            Order::Arrival => self.open = Some(out),
            Order::Hash => self.runs.push(out.finish()?),
        }
        self.cells = cells;
        Ok(buffer)
    }
}

/// A buffer being written: where to, the buffer, emptied, and the counts of its hashes.
#[derive(Debug)]
struct Flush(Option<JoinHandle<Result<Flushed, ExternalSortError>>>);
type Flushed = (RunWriter, Buffer, Vec<u32>);

impl Drop for Flush {
    /// So that no file outlives its sort.
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

/// The entries of an [`ExternalSort`], in its order. After an error there are no more.
#[derive(Debug)]
pub struct Entries(Feed);

#[derive(Debug)]
enum Feed {
    Memory { buffer: Buffer, next: usize },
    Files(Merge),
}

impl Entries {
    /// The next entry, but for its payload.
    pub(crate) fn peek(&self) -> Option<Head> {
        match &self.0 {
            Feed::Memory { buffer, next } => buffer.nth(*next).map(|entry| head(entry).0),
            Feed::Files(merge) => merge.peek(),
        }
    }

    /// Bytes of the temporary files that are left to read.
    pub(crate) fn disk_bytes(&self) -> u64 {
        match &self.0 {
            Feed::Memory { .. } => 0,
            Feed::Files(merge) => merge.disk_bytes(),
        }
    }

    /// Goes on to the next entry and gives the payload of this one; `out` has its length.
    ///
    /// # Panics
    /// There is no entry, or `out` has another length.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<(), ExternalSortError> {
        match &mut self.0 {
            Feed::Memory { buffer, next } => {
                let entry = buffer.nth(*next).expect("peeked");
                out.copy_from_slice(&entry[entry.len() - out.len()..]);
                // In order of arrival entries are found one after another.
                *next += if buffer.places.is_empty() { entry.len() } else { 1 };
                Ok(())
            }
            Feed::Files(merge) => {
                let read = merge.read(out);
                if read.is_err() {
                    self.0 = Feed::Memory { buffer: Buffer::default(), next: 0 };
                }
                read
            }
        }
    }
}

impl Iterator for Entries {
    type Item = Result<Entry, ExternalSortError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Head { hash, line, len, .. } = self.peek()?;
        let mut payload = vec![0; len];
        Some(self.read(&mut payload).map(|()| Entry { hash, line, payload }))
    }
}

/// Entries between the one that is copied to a run and the one that memory is asked for meanwhile.
const PREFETCH: usize = 12;
/// Address space, not memory, that a buffer takes at once, at most.
const MAX_RESERVE: usize = 1 << 30;

/// Entries in memory, as they lie in a run.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// For [`Order::Hash`] where each entry starts, below the upper half of its hash.
    places: Vec<u128>,
}

impl Buffer {
    fn held(&self) -> usize {
        self.bytes.len() + size_of_val(&self.places[..])
    }

    fn push(&mut self, hash: u128, line: u64, payload: &[u8]) {
        let numbers = [hash, line.into(), payload.len() as u128];
        let widths = numbers.map(|n| (u128::BITS - n.leading_zeros()).div_ceil(8) as u8);
        let mut header = [0; HEADER];
        header[..WIDTHS].copy_from_slice(&[widths[0], widths[1] << 4 | widths[2]]);
        let mut at = WIDTHS;
        for (number, width) in numbers.iter().zip(widths) {
            // Whole, so that the processor stores it at once; the next number overwrites the zeros.
            header[at..at + 16].copy_from_slice(&number.to_le_bytes());
            at += usize::from(width);
        }
        self.bytes.extend_from_slice(&header[..at]);
        self.bytes.extend_from_slice(payload);
    }

    /// An entry as it lies in a run.
    fn entry(&self, place: u128) -> &[u8] {
        let from = &self.bytes[place as u64 as usize..];
        let (head, header) = head(from);
        &from[..header + head.len]
    }

    /// The entry at a position of `places`; without any, the one that starts at this byte.
    fn nth(&self, next: usize) -> Option<&[u8]> {
        if self.places.is_empty() {
            (next < self.bytes.len()).then(|| self.entry(next as u128))
        } else {
            self.places.get(next).map(|place| self.entry(*place))
        }
    }

    fn sort(&mut self) {
        let mut places = std::mem::take(&mut self.places);
        places.sort_unstable();
        // Only equal keys, and one pair of others in 2^64, share half of a hash.
        for same in places.chunk_by_mut(|a, b| a >> 64 == b >> 64).filter(|same| same.len() > 1) {
            same.sort_by_key(|place| {
                let Head { hash, line, .. } = head(self.entry(*place)).0;
                (hash, line)
            });
        }
        self.places = places;
    }
}

/// The upper [`CELL_BITS`] of a place.
fn cell(place: u128) -> usize {
    (place >> (u128::BITS - CELL_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io;

    use super::*;
    use crate::direct;
    use proptest::prelude::*;

    fn fill(sort: &mut ExternalSort, entries: &[Entry]) {
        for entry in entries {
            sort.push(entry.hash, entry.line, &entry.payload).unwrap();
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
        let mut sort = ExternalSort::new(dir.path(), 1000, Order::Hash);
        fill(&mut sort, &entries);
        assert!(files(dir.path()) > 3 * FAN_IN, "{} runs", files(dir.path()));
        assert_eq!((sort.count(), sort.max_payload()), (9000, 57));
        let merged = sort.finish().unwrap();
        assert_eq!(files(dir.path()), FAN_IN);
        assert_eq!(merged.collect::<Result<Vec<_>, _>>().unwrap(), sorted(entries));
        assert_eq!(files(dir.path()), 0, "what was read is deleted");
    }

    #[test]
    fn arrival_order_takes_one_file_or_none() {
        let dir = tempfile::tempdir().unwrap();
        let entries = entries(2000);
        for (memory, runs) in [(1000, 1), (ExternalSort::DEFAULT_MEMORY, 0)] {
            let mut sort = ExternalSort::new(dir.path(), memory, Order::Arrival);
            fill(&mut sort, &entries);
            assert_eq!(files(dir.path()), runs);
            let mut back = sort.finish().unwrap();
            // Its file holds payloads of 8 to 57 bytes, behind a few bytes each.
            assert_eq!(back.disk_bytes() > 40 * 2000, runs == 1);
            assert_eq!(back.by_ref().collect::<Result<Vec<_>, _>>().unwrap(), entries);
            assert_eq!(back.disk_bytes(), 0);
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
        let mut sort = ExternalSort::new(dir.path(), 0, Order::Hash);
        fill(&mut sort, &entries);
        assert_eq!(sort.max_payload(), 100_000);
        assert_eq!(sort.finish().unwrap().collect::<Result<Vec<_>, _>>().unwrap(), sorted(entries));
    }

    #[test]
    fn nothing_pushed_gives_nothing_and_touches_no_disk() {
        let mut none = ExternalSort::new(Path::new("no/such/folder"), 1, Order::Hash).finish().unwrap();
        assert!(none.next().is_none());
    }

    #[test]
    fn files_go_when_their_owner_does() {
        let dir = tempfile::tempdir().unwrap();
        let mut sort = ExternalSort::new(dir.path(), 100, Order::Hash);
        fill(&mut sort, &entries(50));
        assert!(files(dir.path()) > 10);
        drop(sort);
        assert_eq!(files(dir.path()), 0);
    }

    #[test]
    fn a_folder_or_file_that_is_gone_is_named_with_a_remedy() {
        let mut sort = ExternalSort::new(Path::new("no/such/folder"), 0, Order::Hash);
        sort.push(1, 1, b"x").unwrap();
        sort.push(2, 2, b"y").unwrap();
        let error = sort.push(3, 3, b"z").unwrap_err();
        assert!(error.to_string().contains("no/such/folder can't be made"), "{error}");

        let dir = tempfile::tempdir().unwrap();
        let mut sort = ExternalSort::new(dir.path(), 1000, Order::Arrival);
        fill(&mut sort, &entries(500));
        sort.flush().unwrap();
        sort.settle().unwrap();
        sort.runs.extend(sort.open.take().map(|open| open.finish().unwrap()));
        let file = std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
        let len = file.metadata().unwrap().len();
        File::options().write(true).open(&file).unwrap().set_len(len - 1).unwrap();
        let mut back = sort.finish().unwrap();
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
        let full = File::options().write(true).open("/dev/full").unwrap();
        let RunWriter { run, .. } = RunWriter::create(dir.path()).unwrap();
        let mut out = RunWriter { run, out: direct::Writer::new(full).unwrap() };
        out.write(&[0; 100]).unwrap();
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
            let mut sort = ExternalSort::new(dir.path(), memory, Order::Hash);
            fill(&mut sort, &entries);
            prop_assert_eq!(sort.finish().unwrap().collect::<Result<Vec<_>, _>>().unwrap(), sorted(entries));
        }
    }
}
