//! Rows on their way from a source to a build: encoded, many at a time, from a thread of their own.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use super::lines::failed;
use super::{Position, Row, Source, SourceError};
use crate::codec;

/// Bytes after which a batch is handed on.
const BATCH_BYTES: usize = 256 << 10;
/// Rows after which one is.
const BATCH_ROWS: usize = 4096;
/// Batches there are, filled, waiting and being used.
const BATCHES: usize = 4;

/// Rows whose values are encoded, one behind the other, as in a record.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    columns: usize,
    bytes: Vec<u8>,
    /// Where each value ends.
    ends: Vec<usize>,
    /// Where each row starts in its source.
    lines: Vec<u64>,
}

impl Rows {
    /// No rows yet, of this many columns.
    #[must_use]
    pub fn new(columns: usize) -> Self {
        Self { columns, ..Self::default() }
    }

    /// Adds a row.
    pub fn push(&mut self, row: &Row) {
        for value in &row.values {
            codec::encode_record(std::slice::from_ref(value), &mut self.bytes);
            self.ends.push(self.bytes.len());
        }
        self.end_row(row.line);
    }

    /// Adds a text to the row that comes next.
    pub(super) fn text(&mut self, text: &str) {
        codec::encode_text(text, &mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Makes a row of the values that were added since the last.
    pub(super) fn end_row(&mut self, line: u64) {
        self.lines.push(line);
        debug_assert_eq!(self.ends.len(), self.lines.len() * self.columns);
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Where a row starts: see [`Row::line`].
    ///
    /// # Panics
    /// There are not this many rows.
    #[must_use]
    pub fn line(&self, row: usize) -> u64 {
        self.lines[row]
    }

    /// Neighbouring values of a row.
    ///
    /// # Panics
    /// There are not this many rows or columns.
    #[must_use]
    pub fn values(&self, row: usize, columns: Range<usize>) -> &[u8] {
        assert!(row < self.lines.len() && columns.end <= self.columns, "a row and columns that there are");
        let end = |values: usize| values.checked_sub(1).map_or(0, |last| self.ends[last]);
        &self.bytes[end(row * self.columns + columns.start)..end(row * self.columns + columns.end)]
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.lines.clear();
    }
}

/// Some rows, how far the source was behind them, and how it ended if it did.
pub(crate) struct Batch {
    pub(crate) rows: Rows,
    pub(crate) position: Position,
    pub(crate) end: Option<Result<(), SourceError>>,
    /// As [`Source::lacked`].
    pub(crate) lacked: Vec<(String, u64)>,
}

/// A source that is read a few batches ahead.
pub(crate) struct Ahead {
    batches: Receiver<Batch>,
    /// Takes batches back, to be filled again.
    used: Sender<Rows>,
    thread: Option<JoinHandle<()>>,
}

impl Ahead {
    /// Starts reading. Where the batches are no longer taken, the thread ends with its next.
    pub(crate) fn start(mut source: Box<dyn Source>, origin: &str) -> Result<Self, SourceError> {
        let (sender, batches) = channel();
        let (used, empty) = channel();
        for _ in 0..BATCHES {
            let _ = used.send(Rows::new(source.columns().len()));
        }
        let run = move || {
            for mut rows in empty {
                rows.clear();
                let end = fill(&mut *source, &mut rows);
                let last = end.is_some();
                let (position, lacked) = (source.position(), source.lacked());
                if sender.send(Batch { rows, position, end, lacked }).is_err() || last {
                    return;
                }
            }
        };
        let thread = Builder::new().name("source".into()).spawn(run);
        let thread = Some(thread.map_err(|error| failed(origin, error))?);
        Ok(Self { batches, used, thread })
    }

    /// The next rows; the batch that says how the source ended is the last.
    ///
    /// # Panics
    /// The source did, or the last batch was taken.
    pub(crate) fn next(&mut self) -> Batch {
        match self.batches.recv() {
            Ok(batch) => batch,
            Err(_) => match self.thread.take().map(JoinHandle::join) {
                Some(Err(panic)) => resume_unwind(panic),
                _ => panic!("there is no batch behind the last"),
            },
        }
    }

    /// Takes rows back that are not needed any more.
    pub(crate) fn done(&self, rows: Rows) {
        let _ = self.used.send(rows);
    }
}

/// Fills a batch; says how the source ended if it did.
fn fill(source: &mut dyn Source, rows: &mut Rows) -> Option<Result<(), SourceError>> {
    while rows.bytes.len() < BATCH_BYTES && rows.len() < BATCH_ROWS {
        match source.next_into(rows) {
            Ok(true) => {}
            Ok(false) => return Some(Ok(())),
            Err(error) => return Some(Err(error)),
        }
    }
    None
}
