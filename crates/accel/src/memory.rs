//! Memory that a device reads its operands from.

use std::sync::Arc;

use bytemuck::Zeroable;
use zeroize::Zeroize;

use crate::{Error, SharedBytes};

/// A line of memory, on its own boundary.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub struct Line(pub [u64; 8]);

impl Zeroize for Line {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// Has the system's allocator keep up to 64 MiB of what this process frees; for processes that make and drop vectors of some hundred
/// KiB again and again. glibc gives back whatever lies free at its heaps' ends above twice the longest vector that was freed so far, of those up
/// to 32 MiB; in a process that has freed none so long, operations on rings return their memory and ask for it again each time.
/// So one so long is freed, which nobody has written to. Once a process is enough; other allocators are left alone.
///
/// Source: decision 51, and `M_MMAP_THRESHOLD` of mallopt(3).
///
/// ```
/// blindcore_accel::keep_freed_memory();
/// ```
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        const LONGEST: usize = (32 << 20) - (64 << 10);
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| drop(std::hint::black_box(Vec::<u8>::with_capacity(LONGEST))));
    }
}

/// Where a device wants the bytes of its operands: huge pages, pinned memory, or the heap.
pub trait Allocator: Send + Sync {
    /// `len` zero bytes, at a 64-byte boundary at least.
    ///
    /// # Errors
    /// [`Error::Memory`]: the system has not that much.
    fn zeroed(&self, len: usize) -> Result<Buffer, Error>;
}

/// Writable bytes of a device's [`Allocator`]; [`Buffer::share`] makes an operand of them.
pub struct Buffer(Box<dyn Memory>);

/// What an allocator's memory is to everybody else: bytes.
pub trait Memory: AsRef<[u8]> + AsMut<[u8]> + Send + Sync {}

impl<T: AsRef<[u8]> + AsMut<[u8]> + Send + Sync> Memory for T {}

impl Buffer {
    /// From memory of any kind.
    #[must_use]
    pub fn new(memory: impl Memory + 'static) -> Self {
        Self(Box::new(memory))
    }

    /// Read-only from here on, and shared: what [`crate::Database::Packed`] is made of.
    #[must_use]
    pub fn share(self) -> SharedBytes {
        Arc::new(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        (*self.0).as_mut()
    }
}

/// The process's heap: for a device that copies its operands anyway.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heap;

impl Allocator for Heap {
    fn zeroed(&self, len: usize) -> Result<Buffer, Error> {
        let mut lines: Vec<Line> = Vec::new();
        let count = len.div_ceil(size_of::<Line>());
        lines.try_reserve_exact(count).map_err(|e| Error::Memory { bytes: len, why: e.to_string() })?;
        lines.resize(count, Line::zeroed());
        Ok(Buffer::new(HeapBytes { lines, len }))
    }
}

struct HeapBytes {
    lines: Vec<Line>,
    len: usize,
}

impl AsRef<[u8]> for HeapBytes {
    fn as_ref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.len]
    }
}

impl AsMut<[u8]> for HeapBytes {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heap_gives_aligned_zeros_and_refuses_too_much() {
        for len in [0, 1, 64, 65, 1 << 16] {
            let mut buffer = Heap.zeroed(len).unwrap();
            assert_eq!(buffer.as_ref(), vec![0; len]);
            assert!(buffer.as_ref().as_ptr().cast::<Line>().is_aligned());
            buffer.as_mut().fill(7);
            assert_eq!((*buffer.share()).as_ref(), vec![7; len]);
        }
        assert!(matches!(Heap.zeroed(usize::MAX), Err(Error::Memory { .. })));
    }
}
