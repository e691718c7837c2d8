//! Reads through io_uring.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, types};

use crate::reads::{Done, Queue, Read};

/// Reads under way in the kernel. Their buffers are in here until the kernel is done with them.
pub(crate) struct Uring {
    ring: IoUring,
    /// By user data.
    flying: Vec<Option<Read>>,
}

impl Uring {
    /// A ring for this many reads at a time.
    ///
    /// # Errors
    /// The kernel has no io_uring, or doesn't let this process have it.
    pub(crate) fn new(reads: usize) -> io::Result<Self> {
        let entries = u32::try_from(reads.next_power_of_two()).map_err(io::Error::other)?;
        // Threads that compute needn't be interrupted when a read is done: who waits for it asks. Kernels before
        // 5.19 don't know the flag.
        let ring = IoUring::builder().setup_coop_taskrun().build(entries);
        let ring = ring.or_else(|_| IoUring::new(entries))?;
        Ok(Self { ring, flying: (0..reads).map(|_| None).collect() })
    }
}

impl Queue for Uring {
    /// Where the kernel refuses, the read is among those under way, and the next wait tries again.
    ///
    /// # Panics
    /// More reads than the ring was made for.
    fn submit(&mut self, mut read: Read) -> io::Result<()> {
        let slot = self.flying.iter().position(Option::is_none).expect("a read for each buffer");
        let (fd, offset) = (types::Fd(read.file.as_raw_fd()), read.offset());
        let target = read.target();
        let len = u32::try_from(target.len()).map_err(io::Error::other)?;
        let entry = opcode::Read::new(fd, target.as_mut_ptr(), len).offset(offset).build();
        self.flying[slot] = Some(read);
        // SAFETY: file and buffer lie in `flying`, whose memory doesn't move with them (a descriptor, a mapping) and
        // which nobody looks at, until the read's completion is seen in `wait`.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(slot as u64)) };
        pushed.expect("an entry for each buffer");
        match self.ring.submit() {
            Err(e) if !later(&e) => Err(e),
            _ => Ok(()),
        }
    }

    /// Where the kernel refuses, every read stays under way.
    ///
    /// # Panics
    /// None is under way.
    fn wait(&mut self) -> io::Result<Done> {
        assert!(self.flying() > 0, "nothing to wait for");
        loop {
            if let Some(entry) = self.ring.completion().next() {
                let slot = entry.user_data() as usize;
                let read = self.flying[slot].take().expect("completed once");
                let result = match entry.result() {
                    n if n < 0 => Err(io::Error::from_raw_os_error(-n)),
                    n => Ok(n as usize),
                };
                return Ok(Done { read, result });
            }
            match self.ring.submit_and_wait(1) {
                Err(e) if !later(&e) => return Err(e),
                _ => {}
            }
        }
    }

    fn flying(&self) -> usize {
        self.flying.iter().flatten().count()
    }
}

/// Whether the kernel says to try again.
fn later(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}

impl Drop for Uring {
    fn drop(&mut self) {
        while self.flying() > 0 {
            if self.wait().is_err() {
                // The kernel may still write there: memory that is never given back.
                std::mem::forget(std::mem::take(&mut self.flying));
            }
        }
    }
}
