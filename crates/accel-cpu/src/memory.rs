//! Memory in huge pages: a database scan touches every page once, and with 4 KiB pages the page walk costs.
#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

use blindcore_accel::{Allocator, Buffer, Error, Line, Word, Words, advise_huge_pages};

const HUGE_PAGE: usize = 2 << 20;

/// The CPU's allocator: memory at a 2 MiB boundary, in huge pages where the system grants them.
#[derive(Clone, Copy, Debug, Default)]
pub struct HugePages;

impl Allocator for HugePages {
    fn zeroed(&self, len: usize) -> Result<Buffer, Error> {
        HugeBytes::zeroed(len).map(Buffer::new)
    }
}

/// Zeros of this word, as [`advise_huge_pages`] would have them.
pub(crate) fn words(word: Word, len: usize) -> Words {
    let mut words = Words::zeros(word, len);
    match &mut words {
        Words::U32(words) => advise_huge_pages(words),
        Words::U64(words) => advise_huge_pages(words),
        _ => {}
    }
    words
}

/// Memory of finished passes, kept for later ones. The allocator returns vectors of [`LONG_BYTES`] and more to the system when they
/// are dropped, and getting such memory back takes longer than writing to it.
static SPARE: Mutex<Vec<Vec<u64>>> = Mutex::new(Vec::new());
/// Shorter vectors are the allocator's.
const LONG_BYTES: usize = 16 << 20;
/// Of all that is kept.
const KEPT_BYTES: usize = 192 << 20;

fn bytes(words: &Vec<u64>) -> usize {
    words.capacity() * size_of::<u64>()
}

/// `len` words of any value: the caller overwrites each.
pub(crate) fn any_words(len: usize) -> Vec<u64> {
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    let large = spare.iter().enumerate().filter(|(_, words)| words.capacity() >= len);
    let found = large.min_by_key(|(_, words)| words.capacity()).map(|(at, _)| at);
    // Not one that is far too large.
    let found = found.filter(|at| len * size_of::<u64>() >= LONG_BYTES.max(bytes(&spare[*at]) / 2));
    let found = found.map(|at| spare.swap_remove(at));
    drop(spare);
    if let Some(mut words) = found {
        words.resize(len, 0);
        return words;
    }
    let mut words = vec![0; len];
    advise_huge_pages(&mut words);
    words
}

/// Takes back what [`any_words`] gave.
pub(crate) fn keep(words: Vec<u64>) {
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    let kept: usize = spare.iter().map(bytes).sum();
    if bytes(&words) >= LONG_BYTES && kept + bytes(&words) <= KEPT_BYTES {
        spare.push(words);
    }
}

/// Zeroed memory at a 2 MiB boundary, in huge pages where the system grants them.
pub(crate) struct HugeBytes {
    mapping: *mut libc::c_void,
    mapping_len: usize,
    start: usize,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone, like a Box<[u8]>'s memory.
unsafe impl Send for HugeBytes {}
// SAFETY: shared access only reads.
unsafe impl Sync for HugeBytes {}

impl HugeBytes {
    /// `len` zero bytes.
    ///
    /// # Errors
    /// The system has not that much memory.
    pub(crate) fn zeroed(len: usize) -> Result<Self, Error> {
        let too_much = || Error::Memory { bytes: len, why: "no process has so much".into() };
        let mapping_len = len.max(1).checked_next_multiple_of(HUGE_PAGE).ok_or_else(too_much)?;
        let mapping_len = mapping_len.checked_add(HUGE_PAGE).filter(|n| *n <= isize::MAX as usize);
        let mapping_len = mapping_len.ok_or_else(too_much)?;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice; checked below.
        let mapping = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(std::ptr::null_mut(), mapping_len, protection, flags, -1, 0)
        };
        if mapping == libc::MAP_FAILED {
            let why = std::io::Error::last_os_error().to_string();
            return Err(Error::Memory { bytes: mapping_len, why });
        }
        let start = mapping.addr().next_multiple_of(HUGE_PAGE) - mapping.addr();
        let bytes = Self { mapping, mapping_len, start, len };
        #[cfg(target_os = "linux")]
        // SAFETY: the range lies inside the mapping; advice that is refused changes nothing.
        unsafe {
            libc::madvise(mapping.byte_add(start), mapping_len - HUGE_PAGE, libc::MADV_HUGEPAGE);
        }
        Ok(bytes)
    }

    fn pointer(&self) -> *mut u8 {
        self.mapping.cast::<u8>().wrapping_add(self.start)
    }
}

impl AsRef<[u8]> for HugeBytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `start + len` lies inside the mapping, whose pages are initialised to zero.
        unsafe { std::slice::from_raw_parts(self.pointer(), self.len) }
    }
}

impl AsMut<[u8]> for HugeBytes {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `as_ref`, and `&mut self` means nobody else looks.
        unsafe { std::slice::from_raw_parts_mut(self.pointer(), self.len) }
    }
}

impl Drop for HugeBytes {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `zeroed` and is unmapped once.
        unsafe { libc::munmap(self.mapping, self.mapping_len) };
    }
}

/// Lines that are worth huge pages: 1 MiB. Smaller pages lie in a cache by chance, some of them in each other's places.
const LARGE: usize = 1 << 14;

/// Zeroed lines; many of them in huge pages, for they are looked up anywhere.
pub(crate) enum Lines {
    Small(Vec<Line>),
    Large(HugeBytes),
}

impl Lines {
    pub(crate) fn zeroed(count: usize) -> Self {
        let small = || Self::Small(vec![Line([0; 8]); count]);
        if count < LARGE {
            small()
        } else {
            HugeBytes::zeroed(count * 64).map_or_else(|_| small(), Self::Large)
        }
    }
}

impl Deref for Lines {
    type Target = [Line];

    fn deref(&self) -> &[Line] {
        match self {
            Self::Small(lines) => lines,
            Self::Large(bytes) => bytemuck::cast_slice(bytes.as_ref()),
        }
    }
}

impl DerefMut for Lines {
    fn deref_mut(&mut self) -> &mut [Line] {
        match self {
            Self::Small(lines) => lines,
            Self::Large(bytes) => bytemuck::cast_slice_mut(bytes.as_mut()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_bytes_are_zeroed_aligned_and_writable() {
        for len in [0, 1, HUGE_PAGE, HUGE_PAGE + 1] {
            let mut bytes = HugeBytes::zeroed(len).unwrap();
            assert_eq!(bytes.as_ref().len(), len);
            assert!(bytes.as_ref().iter().all(|b| *b == 0));
            assert_eq!(bytes.as_ref().as_ptr().addr() % HUGE_PAGE, 0);
            bytes.as_mut().fill(7);
        }
        for len in [1 << 60, isize::MAX as usize, usize::MAX - 1, usize::MAX] {
            assert!(HugeBytes::zeroed(len).is_err());
        }
    }
}
