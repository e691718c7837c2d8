//! What packs databases by SIMD and asks for memory ahead. All of this crate's `unsafe` is here.
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
