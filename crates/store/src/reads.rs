//! Reads that are under way.

use std::fs::File;
use std::io;
use std::sync::Arc;

use memmap2::MmapMut;

/// A read of a piece, or of the rest of one, into the buffer that it brings along.
pub(crate) struct Read {
    pub(crate) piece: usize,
    pub(crate) file: Arc<File>,
    pub(crate) start: u64,
    /// Bytes that the blocks of the piece have.
    pub(crate) len: usize,
    /// Bytes that are there already.
    pub(crate) done: usize,
    pub(crate) tries: usize,
    pub(crate) buffer: MmapMut,
}

impl Read {
    /// Where in the file it reads on.
    pub(crate) fn offset(&self) -> u64 {
        self.start + self.done as u64
    }

    /// Where it reads to.
    pub(crate) fn target(&mut self) -> &mut [u8] {
        &mut self.buffer[self.done..self.len]
    }
}

/// A read that is over, and how many bytes it brought.
pub(crate) struct Done {
    pub(crate) read: Read,
    pub(crate) result: io::Result<usize>,
}

/// Reads under way, as many as there are buffers.
pub(crate) trait Queue: Send {
    /// Starts a read.
    ///
    /// # Errors
    /// It can't be started.
    fn submit(&mut self, read: Read) -> io::Result<()>;

    /// Waits until one of the reads under way is done.
    ///
    /// # Errors
    /// There is no waiting for them.
    fn wait(&mut self) -> io::Result<Done>;

    /// How many are under way.
    fn flying(&self) -> usize;
}
