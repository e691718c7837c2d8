//! What packs databases by SIMD, asks for memory ahead, and for huge pages. All of this crate's `unsafe` is here.
#![allow(unsafe_code)]

/// Bytes that [`prefetch`] asks for: as many lines of the cache as most records take.
#[cfg(target_arch = "x86_64")]
const PREFETCH_BYTES: usize = 256;

/// Asks for bytes that will be read or written soon, from `at` on, where there are any. It changes nothing but time.
#[inline]
pub fn prefetch(bytes: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (at..bytes.len().min(at + PREFETCH_BYTES)).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint for an address inside the slice; the instruction reads nothing that a program sees.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().add(line).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, at);
}

/// A line of a tile, from its four columns: of each row the four bytes that stand in it.
pub(crate) fn weave(columns: [&[u8; 16]; 4]) -> [u8; 64] {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 has SSE2.
        unsafe { weave_sse2(columns) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    reference(columns)
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn reference(columns: [&[u8; 16]; 4]) -> [u8; 64] {
    std::array::from_fn(|i| columns[i % 4][i / 4])
}

/// Eight instructions, which compilers find in none of the ways to say it in plain Rust.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
fn weave_sse2(columns: [&[u8; 16]; 4]) -> [u8; 64] {
    use std::arch::x86_64::{_mm_unpackhi_epi8, _mm_unpackhi_epi16, _mm_unpacklo_epi8, _mm_unpacklo_epi16};
    let [a, b, c, d] = columns.map(|column| bytemuck::cast(*column));
    let (ab, cd) = (_mm_unpacklo_epi8(a, b), _mm_unpacklo_epi8(c, d));
    let (ab_high, cd_high) = (_mm_unpackhi_epi8(a, b), _mm_unpackhi_epi8(c, d));
    bytemuck::cast([
        _mm_unpacklo_epi16(ab, cd),
        _mm_unpackhi_epi16(ab, cd),
        _mm_unpacklo_epi16(ab_high, cd_high),
        _mm_unpackhi_epi16(ab_high, cd_high),
    ])
}

/// Asks the system for huge pages of 2 MiB where a slice lies, but for those at its ends that others use too. Where labels or residues are
/// looked up anywhere in megabytes, small pages cost as much as the look-up; and many megabytes that are written once would cost more
/// in small pages than to write them. It counts for pages that were not touched yet, as those of `vec![0; n]`; where the system has none,
/// nothing changes.
///
/// ```
/// let mut words = vec![0u64; 1 << 20];
/// blindcore_accel::advise_huge_pages(&mut words);
/// assert!(words.iter().all(|word| *word == 0));
/// ```
pub fn advise_huge_pages<T>(memory: &mut [T]) {
    const HUGE_PAGE: usize = 2 << 20;
    let bytes = memory.as_mut_ptr_range();
    let start = bytes.start.addr().next_multiple_of(HUGE_PAGE);
    let end = bytes.end.addr() / HUGE_PAGE * HUGE_PAGE;
    #[cfg(target_os = "linux")]
    if start < end {
        let at = bytes.start.cast::<libc::c_void>().wrapping_byte_add(start - bytes.start.addr());
        // SAFETY: whole pages of memory that is borrowed; advice changes no byte, and may be refused.
        unsafe { libc::madvise(at, end - start, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_goes_where_the_reference_puts_it() {
        for k in 0..8u8 {
            let columns: [[u8; 16]; 4] = std::array::from_fn(|c| {
                std::array::from_fn(|r| (16 * c as u8 + r as u8).wrapping_mul(k).wrapping_add(k) | k)
            });
            assert_eq!(weave(columns.each_ref()), reference(columns.each_ref()), "{k}");
        }
    }
}
