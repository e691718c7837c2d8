//! The two vectors: one block with AES-NI, four with AVX-512 and VAES.

use std::arch::x86_64::*;

use blindcore_accel::garble::Label;

use super::kernel::{self, Blocks, Work};
use super::{Job, RawTables, Stream};

/// One part or layer, a block at a time.
///
/// # Safety
/// AES-NI and SSE4.1 are there; see [`kernel::run`].
#[target_feature(enable = "aes,sse4.1")]
pub(super) unsafe fn aes_ni(job: Job<'_>, streams: &[Stream], tables: RawTables, work: Work<'_>) {
    // SAFETY: as this function's.
    unsafe { kernel::run(job, &round_keys(job.key), streams, tables, work) }
}

/// One part or layer, four blocks at a time.
///
/// # Safety
/// AVX-512 F, BW, DQ, VL and VAES are there; see [`kernel::run`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes,aes")]
pub(super) unsafe fn vaes(job: Job<'_>, streams: &[Stream], tables: RawTables, work: Work<'_>) {
    // SAFETY: as this function's.
    unsafe {
        let keys = round_keys(job.key).map(|key| _mm512_broadcast_i32x4(key));
        kernel::run(job, &keys, streams, tables, work);
    }
}

/// FIPS 197, section 5.2.
#[target_feature(enable = "aes,sse2")]
fn round_keys(key: &[u8; 16]) -> [__m128i; 11] {
    // SAFETY: sixteen bytes, unaligned.
    let mut key = unsafe { _mm_loadu_si128(key.as_ptr().cast()) };
    let mut keys = [key; 11];
    let mut round_constant = 1u8;
    for next in &mut keys[1..] {
        // SubWord and RotWord of the last word, in the last word.
        let word = _mm_shuffle_epi32::<0xff>(_mm_aeskeygenassist_si128::<0>(key));
        let constant = _mm_set1_epi32(i32::from(round_constant));
        for shift in [4, 8] {
            let shifted = if shift == 4 { _mm_slli_si128::<4>(key) } else { _mm_slli_si128::<8>(key) };
            key = _mm_xor_si128(key, shifted);
        }
        key = _mm_xor_si128(key, _mm_xor_si128(word, constant));
        *next = key;
        round_constant = round_constant << 1 ^ if round_constant & 0x80 != 0 { 0x1b } else { 0 };
    }
    keys
}

impl Blocks for __m128i {
    const N: usize = 1;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has the instruction set, here and below.
        unsafe { _mm_setzero_si128() }
    }

    #[inline(always)]
    unsafe fn splat(label: Label) -> Self {
        // SAFETY: a label is sixteen bytes.
        unsafe { _mm_loadu_si128((&raw const label).cast()) }
    }

    #[inline(always)]
    unsafe fn low(low: &[u64; 4]) -> Self {
        // SAFETY: as above.
        unsafe { _mm_set_epi64x(0, low[0] as i64) }
    }

    #[inline(always)]
    unsafe fn add_low(self, x: u64) -> Self {
        // SAFETY: as above.
        unsafe { _mm_add_epi64(self, _mm_set_epi64x(0, x as i64)) }
    }

    #[inline(always)]
    unsafe fn load(from: *const Label) -> Self {
        // SAFETY: the caller's.
        unsafe { _mm_loadu_si128(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut Label) {
        // SAFETY: the caller's.
        unsafe { _mm_storeu_si128(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn gather(from: &[*const Label; 4]) -> Self {
        // SAFETY: the caller's.
        unsafe { Self::load(from[0]) }
    }

    #[inline(always)]
    unsafe fn scatter(self, to: &[*mut Label; 4], count: usize) {
        if count > 0 {
            // SAFETY: the caller's.
            unsafe { self.store(to[0]) }
        }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm_xor_si128(self, other) }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm_and_si128(self, other) }
    }

    #[inline(always)]
    unsafe fn colors(self) -> Self {
        // SAFETY: as above.
        unsafe { _mm_shuffle_epi32::<0>(_mm_srai_epi32::<31>(_mm_slli_epi32::<31>(self))) }
    }

    #[inline(always)]
    unsafe fn aes(self, key: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm_aesenc_si128(self, key) }
    }

    #[inline(always)]
    unsafe fn aes_last(self, key: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm_aesenclast_si128(self, key) }
    }
}

impl Blocks for __m512i {
    const N: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has the instruction set, here and below.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn splat(label: Label) -> Self {
        // SAFETY: a label is sixteen bytes.
        unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128((&raw const label).cast())) }
    }

    #[inline(always)]
    unsafe fn low(low: &[u64; 4]) -> Self {
        // SAFETY: four words of 64 bits, each to the lower half of a block.
        unsafe {
            let low = _mm512_castsi256_si512(_mm256_loadu_si256(low.as_ptr().cast()));
            _mm512_maskz_permutexvar_epi64(0x55, _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0), low)
        }
    }

    #[inline(always)]
    unsafe fn add_low(self, x: u64) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_add_epi64(self, _mm512_maskz_set1_epi64(0x55, x as i64)) }
    }

    #[inline(always)]
    unsafe fn load(from: *const Label) -> Self {
        // SAFETY: the caller's.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut Label) {
        // SAFETY: the caller's.
        unsafe { _mm512_storeu_si512(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn gather(from: &[*const Label; 4]) -> Self {
        // SAFETY: the caller's; each address has sixteen bytes.
        unsafe {
            let block = |l: usize| _mm_loadu_si128(from[l].cast());
            let x = _mm512_broadcast_i32x4(block(0));
            let x = _mm512_mask_broadcast_i32x4(x, 0x00f0, block(1));
            let x = _mm512_mask_broadcast_i32x4(x, 0x0f00, block(2));
            _mm512_mask_broadcast_i32x4(x, 0xf000, block(3))
        }
    }

    #[inline(always)]
    unsafe fn scatter(self, to: &[*mut Label; 4], count: usize) {
        // SAFETY: the caller's; the first `count` addresses have sixteen bytes each.
        unsafe {
            let put = |l: usize, block: __m128i| {
                if l < count {
                    _mm_storeu_si128(to[l].cast(), block);
                }
            };
            put(0, _mm512_castsi512_si128(self));
            put(1, _mm512_extracti32x4_epi32::<1>(self));
            put(2, _mm512_extracti32x4_epi32::<2>(self));
            put(3, _mm512_extracti32x4_epi32::<3>(self));
        }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_xor_si512(self, other) }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_and_si512(self, other) }
    }

    #[inline(always)]
    unsafe fn colors(self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_shuffle_epi32::<0>(_mm512_srai_epi32::<31>(_mm512_slli_epi32::<31>(self))) }
    }

    #[inline(always)]
    unsafe fn aes(self, key: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_aesenc_epi128(self, key) }
    }

    #[inline(always)]
    unsafe fn aes_last(self, key: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_aesenclast_epi128(self, key) }
    }
}
