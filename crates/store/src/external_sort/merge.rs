//! Runs as one, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::thread;

use super::run::{
    ExternalSortError, HEADER, Head, MAX_BUFFER, MIN_BUFFER, Run, WIDTHS, failed, head, widths,
};
use crate::direct;

/// Runs being read together, always the least entry of all.
#[derive(Debug)]
pub(super) struct Merge {
    runs: Vec<(Run, direct::Reader)>,
    /// Each run's next entry but for its payload, which waits in the file. Runs are in order of arrival.
    heads: BinaryHeap<Reverse<Head>>,
}

impl Merge {
    pub(super) fn open(
        dir: &Path,
        runs: impl IntoIterator<Item = Run, IntoIter: ExactSizeIterator>,
        memory: usize,
    ) -> Result<Self, ExternalSortError> {
        let runs = runs.into_iter();
        // Two of each: what is taken, and what is read ahead.
        let buffer = (memory / (2 * runs.len().max(1))).clamp(MIN_BUFFER, MAX_BUFFER);
        let ahead = direct::Ahead::start().map_err(failed(dir, "read"))?;
        let open = |run: Run| {
            let open = File::options()
                .read(true)
                .write(true)
                .open(&run.path)
                .and_then(|file| direct::Reader::new(file, buffer, &ahead));
            let reader = open.map_err(failed(&run.path, "read"))?;
            Ok((run, reader))
        };
        let mut merge = Self { runs: runs.map(open).collect::<Result<_, _>>()?, heads: BinaryHeap::new() };
        for run in 0..merge.runs.len() {
            let head = read_head(&mut merge.runs[run], run)?;
            merge.heads.extend(head.map(Reverse));
        }
        Ok(merge)
    }

    pub(super) fn peek(&self) -> Option<Head> {
        self.heads.peek().map(|head| head.0)
    }

    /// Bytes of all runs from their next payloads on.
    pub(super) fn disk_bytes(&self) -> u64 {
        self.runs.iter().map(|(run, _)| run.bytes).sum()
    }

    /// Goes on to the next entry and gives the payload of this one, whose length `out` has.
    pub(super) fn read(&mut self, out: &mut [u8]) -> Result<(), ExternalSortError> {
        let mut least = self.heads.peek_mut().expect("peeked");
        let Head { run, len, .. } = least.0;
        assert_eq!(len, out.len(), "a payload is read whole");
        let (Run { path, .. }, input) = &mut self.runs[run];
        input.read_exact(out).map_err(failed(path, "read"))?;
        match read_head(&mut self.runs[run], run)? {
            Some(next) => least.0 = next,
            None => drop(PeekMut::pop(least)),
        }
        Ok(())
    }
}

impl Drop for Merge {
    /// A disk may take long to free the blocks of a file, which it does once its name is gone and it is closed: nobody
    /// waits for that.
    fn drop(&mut self) {
        let readers: Vec<_> = self.runs.drain(..).map(|(_, reader)| reader).collect();
        // Without a thread they are closed at once.
        let _ = thread::Builder::new().name("blindcore-sort".into()).spawn(move || drop(readers));
    }
}

/// The next header of a run, or `None` at its end.
fn read_head(
    (run, input): &mut (Run, direct::Reader),
    index: usize,
) -> Result<Option<Head>, ExternalSortError> {
    if run.bytes == 0 {
        return Ok(None);
    }
    let (head, header) = if input.buffer().len() >= HEADER {
        let (head, header) = head(input.buffer());
        input.consume(header);
        (head, header)
    } else {
        let mut header = [0; HEADER];
        input.read_exact(&mut header[..WIDTHS]).map_err(failed(&run.path, "read"))?;
        let len = widths(header[0], header[1]).iter().sum::<usize>();
        input.read_exact(&mut header[WIDTHS..WIDTHS + len]).map_err(failed(&run.path, "read"))?;
        head(&header)
    };
    let rest = (head.len as u64).checked_add(header as u64).and_then(|len| run.bytes.checked_sub(len));
    run.bytes = rest.ok_or_else(|| failed(&run.path, "read")(io::ErrorKind::UnexpectedEof.into()))?;
    Ok(Some(Head { run: index, ..head }))
}
