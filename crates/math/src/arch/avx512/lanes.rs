//! Words of few bits or bytes, eight at a time: a permutation of bytes brings each word's eight bytes to its place, or back.

use std::arch::x86_64::*;

use super::super::portable;
use crate::features::{Avx512, Ifma};

/// Words that an instruction takes.
const LANES: usize = 8;

pub(crate) fn unpack(_: Ifma, bytes: &[u8], width: u32, out: &mut [u64]) {
    // SAFETY: the token stands for these features; words of 64 bits are written to as many.
    unsafe { words::<8>(bytes, width, out.as_mut_ptr().cast(), out.len()) }
}

pub(crate) fn unpack_short(_: Ifma, bytes: &[u8], width: u32, out: &mut [u16]) {
    // SAFETY: the token stands for these features; words of 16 bits are written to as many.
    unsafe { words::<2>(bytes, width, out.as_mut_ptr().cast(), out.len()) }
}

/// The lowest `count` bits.
fn lowest(count: usize) -> u64 {
    if count < 64 { (1 << count) - 1 } else { u64::MAX }
}

pub(crate) fn largest(_: Ifma, bytes: &[u8], width: u32) -> u64 {
    // SAFETY: the token stands for these features.
    unsafe { largest_word(bytes, width) }
}

/// How eight words are taken out of the bytes that they have: the bytes from where each begins, its first bit, and its bits.
struct Taken {
    from: __m512i,
    shifts: __m512i,
    mask: __m512i,
}

impl Taken {
    /// Of words of 1 to 57 bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    fn new(width: u32) -> Self {
        let bits = _mm512_mullo_epi64(
            _mm512_set1_epi64(i64::from(width)),
            _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
        );
        // The number of the first byte of each, and of the seven after it.
        let first = _mm512_srli_epi64::<3>(bits);
        let lowest_bytes = 0x0808_0808_0808_0808;
        let everywhere = _mm512_shuffle_epi8(first, _mm512_set4_epi64(lowest_bytes, 0, lowest_bytes, 0));
        Self {
            from: _mm512_add_epi8(everywhere, _mm512_set1_epi64(0x0706_0504_0302_0100)),
            shifts: _mm512_and_si512(bits, _mm512_set1_epi64(7)),
            mask: _mm512_set1_epi64((u64::MAX >> (64 - width)) as i64),
        }
    }

    /// Those at the beginning of these bytes; what is beyond the end is zeros.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn of(&self, bytes: &[u8]) -> __m512i {
        // SAFETY: only what is there is read.
        let eight = unsafe { _mm512_maskz_loadu_epi8(lowest(bytes.len()), bytes.as_ptr().cast()) };
        let words = _mm512_srlv_epi64(_mm512_permutexvar_epi8(self.from, eight), self.shifts);
        _mm512_and_si512(words, self.mask)
    }
}

/// Writes `count` words of `WORD` bytes, 2 or 8.
///
/// # Safety
/// They fit from `out` on.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi,avx512vl")]
unsafe fn words<const WORD: usize>(bytes: &[u8], width: u32, out: *mut u8, count: usize) {
    let taken = Taken::new(width);
    for (at, base) in (0..count).step_by(LANES).zip((0..).step_by(width as usize)) {
        let words = taken.of(bytes.get(base..).unwrap_or_default());
        let room = lowest(count - at) as u8;
        // SAFETY: words are written that there is room for. Stores under a mask take several times as long.
        unsafe {
            let out = out.add(at * WORD);
            match (WORD, room) {
                (8, 0xff) => _mm512_storeu_si512(out.cast(), words),
                (8, _) => _mm512_mask_storeu_epi64(out.cast(), room, words),
                (_, 0xff) => _mm_storeu_si128(out.cast(), _mm512_cvtepi64_epi16(words)),
                _ => _mm_mask_storeu_epi16(out.cast(), room, _mm512_cvtepi64_epi16(words)),
            }
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi")]
fn largest_word(bytes: &[u8], width: u32) -> u64 {
    let taken = Taken::new(width);
    let whole = 8 * bytes.len() / width as usize;
    let mut largest = _mm512_setzero_si512();
    for (at, base) in (0..whole).step_by(LANES).zip((0..).step_by(width as usize)) {
        let words = taken.of(&bytes[base..]);
        largest = _mm512_mask_max_epu64(largest, lowest(whole - at) as u8, largest, words);
    }
    _mm512_reduce_max_epu64(largest)
}

pub(crate) fn centre(_: Avx512, q: u64, bits: u32, lanes: &[u16], out: &mut [u64]) {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn compiled(q: u64, bits: u32, lanes: &[u16], out: &mut [u64]) {
        portable::lanes::centre(q, bits, lanes, out);
    }
    // SAFETY: the token stands for these features.
    unsafe { compiled(q, bits, lanes, out) }
}

/// `bytes` is at most 8, and all runs fit `out`.
pub(crate) fn store(_: Ifma, values: &[u64], bytes: usize, run: usize, out: &mut [u8], step: usize) {
    // Byte b of the eight words' is byte b % bytes of word b / bytes.
    let mut from = [0; 64];
    for (b, from) in from[..LANES * bytes].iter_mut().enumerate() {
        *from = (b / bytes * 8 + b % bytes) as u8;
    }
    // SAFETY: the token stands for these features.
    unsafe { runs(values, bytes, run, out, step, &from) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn runs(values: &[u64], bytes: usize, run: usize, out: &mut [u8], step: usize, from: &[u8; 64]) {
    // SAFETY: 64 bytes.
    let from = unsafe { _mm512_loadu_si512(from.as_ptr().cast()) };
    for (out, values) in out.chunks_mut(step).zip(values.chunks(run)) {
        let out = &mut out[..values.len() * bytes];
        for (out, values) in out.chunks_mut(LANES * bytes).zip(values.chunks(LANES)) {
            // SAFETY: of the words only those that are there are read, and as many bytes written as `out` has.
            unsafe {
                let eight = _mm512_maskz_loadu_epi64(lowest(values.len()) as u8, values.as_ptr().cast());
                let packed = _mm512_permutexvar_epi8(from, eight);
                let to = out.as_mut_ptr();
                // Stores under a mask take several times as long.
                match out.len() {
                    40 => {
                        _mm256_storeu_si256(to.cast(), _mm512_castsi512_si256(packed));
                        _mm_storel_epi64(to.add(32).cast(), _mm512_extracti32x4_epi32::<2>(packed));
                    }
                    48 => {
                        _mm256_storeu_si256(to.cast(), _mm512_castsi512_si256(packed));
                        _mm_storeu_si128(to.add(32).cast(), _mm512_extracti32x4_epi32::<2>(packed));
                    }
                    bytes => _mm512_mask_storeu_epi8(to.cast(), lowest(bytes), packed),
                }
            }
        }
    }
}
