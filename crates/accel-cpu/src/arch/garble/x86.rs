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
/// AVX-512 F, BW, DQ and VL, VAES and AES-NI are there; see [`kernel::run`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes,aes")]
pub(super) unsafe fn vaes(job: Job<'_>, streams: &[Stream], tables: RawTables, work: Work<'_>) {
    // SAFETY: as this function's.
    unsafe {
        let keys = round_keys(job.key).map(|key| _mm512_broadcast_i32x4(key));
        kernel::run(job, &keys, streams, tables, work);
    }
}

/// Enciphers eight vectors `rounds` times; their XOR, so that nothing is left out.
///
/// # Safety
/// As of [`aes_ni`].
#[target_feature(enable = "aes,sse4.1")]
pub(super) unsafe fn aes_ni_blocks(key: &[u8; 16], rounds: usize) -> Label {
    /// A function of its own: in one with the loop, the compiler takes vectors apart between rounds.
    #[inline(never)]
    #[target_feature(enable = "aes,sse4.1")]
    unsafe fn once(keys: &[__m128i; 11], x: &mut [[__m128i; 2]; 4]) {
        // SAFETY: as the caller's.
        unsafe { kernel::permute(keys, x) }
    }
    let keys = round_keys(key);
    let mut x = [[_mm_setzero_si128(); 2]; 4];
    for _ in 0..rounds {
        // SAFETY: as this function's.
        unsafe { once(&keys, &mut x) }
    }
    let mut first: Label = 0;
    for v in x.as_flattened() {
        let mut block: Label = 0;
        // SAFETY: a block is a label.
        unsafe { v.store(&raw mut block) }
        first ^= block;
    }
    first
}

/// As [`aes_ni_blocks`].
///
/// # Safety
/// As of [`vaes`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes,aes")]
pub(super) unsafe fn vaes_blocks(key: &[u8; 16], rounds: usize) -> Label {
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes,aes")]
    unsafe fn once(keys: &[__m512i; 11], x: &mut [[__m512i; 2]; 4]) {
        // SAFETY: as the caller's.
        unsafe { kernel::permute(keys, x) }
    }
    let keys = round_keys(key).map(|key| _mm512_broadcast_i32x4(key));
    let mut x = [[_mm512_setzero_si512(); 2]; 4];
    for _ in 0..rounds {
        // SAFETY: as this function's.
        unsafe { once(&keys, &mut x) }
    }
    let mut first: Label = 0;
    for v in x.as_flattened() {
        let mut blocks: [Label; 4] = [0; 4];
        // SAFETY: four blocks are four labels.
        unsafe { v.store(blocks.as_mut_ptr()) }
        first ^= blocks[0];
    }
    first
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
    unsafe fn steps(_: u64) -> Self {
        // SAFETY: as above.
        unsafe { Self::zero() }
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
    unsafe fn gather(from: *const Label, at: [usize; 4]) -> Self {
        // SAFETY: the caller's.
        unsafe { Self::load(from.add(at[0])) }
    }

    #[inline(always)]
    unsafe fn scatter(self, to: *mut Label, at: [usize; 4], count: usize) {
        if count > 0 {
            // SAFETY: the caller's.
            unsafe { self.store(to.add(at[0])) }
        }
    }

    #[inline(always)]
    unsafe fn store_pairs(self, other: Self, to: *mut Label) {
        // SAFETY: the caller's.
        unsafe {
            self.store(to);
            other.store(to.add(1));
        }
    }

    #[inline(always)]
    unsafe fn load_pairs(from: *const Label) -> (Self, Self) {
        // SAFETY: the caller's.
        unsafe { (Self::load(from), Self::load(from.add(1))) }
    }

    #[inline(always)]
    unsafe fn xor_one(out: *mut Label, a: *const Label, b: *const Label) {
        // SAFETY: the caller's.
        unsafe {
            let sum = _mm_xor_si128(_mm_loadu_si128(a.cast()), _mm_loadu_si128(b.cast()));
            _mm_storeu_si128(out.cast(), sum);
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
    unsafe fn steps(step: u64) -> Self {
        let step = step as i64;
        // SAFETY: as above.
        unsafe { _mm512_set_epi64(0, 3 * step, 0, 2 * step, 0, step, 0, 0) }
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
    unsafe fn gather(from: *const Label, at: [usize; 4]) -> Self {
        // SAFETY: the caller's; each address has sixteen bytes.
        unsafe {
            let x = _mm512_broadcast_i32x4(_mm_loadu_si128(from.add(at[0]).cast()));
            let x = _mm512_mask_broadcast_i32x4(x, 0x00f0, _mm_loadu_si128(from.add(at[1]).cast()));
            let x = _mm512_mask_broadcast_i32x4(x, 0x0f00, _mm_loadu_si128(from.add(at[2]).cast()));
            _mm512_mask_broadcast_i32x4(x, 0xf000, _mm_loadu_si128(from.add(at[3]).cast()))
        }
    }

    #[inline(always)]
    unsafe fn scatter(self, to: *mut Label, at: [usize; 4], count: usize) {
        // SAFETY: the caller's; the first `count` addresses have sixteen bytes each.
        unsafe {
            if count > 3 {
                _mm_storeu_si128(to.add(at[3]).cast(), _mm512_extracti32x4_epi32::<3>(self));
            }
            if count > 2 {
                _mm_storeu_si128(to.add(at[2]).cast(), _mm512_extracti32x4_epi32::<2>(self));
            }
            if count > 1 {
                _mm_storeu_si128(to.add(at[1]).cast(), _mm512_extracti32x4_epi32::<1>(self));
            }
            if count > 0 {
                _mm_storeu_si128(to.add(at[0]).cast(), _mm512_castsi512_si128(self));
            }
        }
    }

    #[inline(always)]
    unsafe fn store_pairs(self, other: Self, to: *mut Label) {
        // SAFETY: the caller's; eight blocks.
        unsafe {
            let low = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
            let high = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
            Self::store(_mm512_permutex2var_epi64(self, low, other), to);
            Self::store(_mm512_permutex2var_epi64(self, high, other), to.add(4));
        }
    }

    #[inline(always)]
    unsafe fn load_pairs(from: *const Label) -> (Self, Self) {
        // SAFETY: the caller's; eight blocks.
        unsafe {
            let (low, high) = (Self::load(from), Self::load(from.add(4)));
            // Blocks 0 and 2 of both, blocks 1 and 3 of both.
            (
                _mm512_shuffle_i64x2::<0b10_00_10_00>(low, high),
                _mm512_shuffle_i64x2::<0b11_01_11_01>(low, high),
            )
        }
    }

    #[inline(always)]
    unsafe fn xor_one(out: *mut Label, a: *const Label, b: *const Label) {
        // SAFETY: the caller's.
        unsafe {
            let sum = _mm_xor_si128(_mm_loadu_si128(a.cast()), _mm_loadu_si128(b.cast()));
            _mm_storeu_si128(out.cast(), sum);
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
