//! Half gates and three halves, a block at a time.

use std::arch::x86_64::*;

use blindcore_accel::garble::Label;
use blindcore_accel::garble::three_halves::ROW;
use blindcore_math::features::Aes;

use crate::arch::vector::garble::blocks::{self, Blocks};
use crate::arch::vector::garble::gates::{self, Work};
use crate::arch::vector::garble::job::{Job, RawTables, Stream};
use crate::arch::vector::garble::three_halves::Halves;

/// One part or layer.
///
/// # Safety
/// See [`gates::run`].
pub(crate) unsafe fn run(_: Aes, job: Job<'_>, streams: &[Stream], tables: RawTables, work: Work<'_>) {
    #[target_feature(enable = "aes,sse4.1")]
    unsafe fn compiled(job: Job<'_>, streams: &[Stream], tables: RawTables, work: Work<'_>) {
        // SAFETY: as of `run`.
        unsafe { gates::run(job, &round_keys(job.key), streams, tables, work) }
    }
    // SAFETY: the token stands for these features; the rest is the caller's.
    unsafe { compiled(job, streams, tables, work) }
}

/// Enciphers eight blocks under one key, `rounds` times; their XOR, so that nothing is left out.
pub(crate) fn encipher(_: Aes, key: &[u8; 16], rounds: usize) -> Label {
    // SAFETY: the token stands for these features.
    unsafe { blocks(key, rounds) }
}

#[target_feature(enable = "aes,sse4.1")]
fn blocks(key: &[u8; 16], rounds: usize) -> Label {
    /// A function of its own: in one with the loop, the compiler takes vectors apart between rounds.
    #[inline(never)]
    #[target_feature(enable = "aes,sse4.1")]
    fn once(keys: &[__m128i; 11], x: &mut [[__m128i; 2]; 4]) {
        // SAFETY: this function is compiled for the instruction set, so it's there.
        unsafe { blocks::permute(keys, x) }
    }
    let keys = round_keys(key);
    let mut x = [[_mm_setzero_si128(); 2]; 4];
    for _ in 0..rounds {
        once(&keys, &mut x);
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

/// FIPS 197, section 5.2.
#[target_feature(enable = "aes,sse2")]
pub(crate) fn round_keys(key: &[u8; 16]) -> [__m128i; 11] {
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
    unsafe fn store_quads(quads: [Self; 4], to: *mut Label, at: [usize; 4]) {
        for (i, block) in quads.into_iter().enumerate() {
            // SAFETY: the caller's; four blocks.
            unsafe { block.store(to.add(at[0] + i)) }
        }
    }

    #[inline(always)]
    unsafe fn load_quads(from: *const Label, at: [usize; 4]) -> [Self; 4] {
        // SAFETY: the caller's; four blocks.
        unsafe {
            let from = from.add(at[0]);
            [Self::load(from), Self::load(from.add(1)), Self::load(from.add(2)), Self::load(from.add(3))]
        }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const Label) {
        // SAFETY: a hint, which reads nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
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

impl Halves for __m128i {
    #[inline(always)]
    unsafe fn lower(self, other: Self) -> Self {
        // SAFETY: the caller has the instruction set, here and below.
        unsafe { _mm_unpacklo_epi64(self, other) }
    }

    #[inline(always)]
    unsafe fn upper(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm_unpackhi_epi64(self, other) }
    }

    #[inline(always)]
    unsafe fn swap(self) -> Self {
        // SAFETY: as above.
        unsafe { _mm_shuffle_epi32::<0b01_00_11_10>(self) }
    }

    #[inline(always)]
    unsafe fn right<const BITS: u32>(self) -> Self {
        // SAFETY: as above.
        unsafe { _mm_srl_epi64(self, _mm_cvtsi32_si128(BITS as i32)) }
    }

    #[inline(always)]
    unsafe fn left<const BITS: u32>(self) -> Self {
        // SAFETY: as above.
        unsafe { _mm_sll_epi64(self, _mm_cvtsi32_si128(BITS as i32)) }
    }

    #[inline(always)]
    unsafe fn pairs(words: [u64; 4]) -> Self {
        // SAFETY: as above.
        unsafe { _mm_set_epi64x((words[0] >> 1) as i64, words[0] as i64) }
    }

    #[inline(always)]
    unsafe fn load_rows(from: *const u8, at: [usize; 4]) -> (Self, Self) {
        // SAFETY: the caller's; a row has 25 bytes.
        unsafe {
            let row = from.add(at[0]);
            (_mm_loadu_si128(row.cast()), _mm_srli_si128::<7>(_mm_loadu_si128(row.add(ROW - 16).cast())))
        }
    }

    #[inline(always)]
    unsafe fn store_rows(self, rest: Self, to: *mut u8, at: [usize; 4], count: usize) {
        if count > 0 {
            // SAFETY: the caller's; a row has 25 bytes. The second store repeats 7 bytes of the first.
            unsafe {
                let row = to.add(at[0]);
                _mm_storeu_si128(row.cast(), self);
                let end = _mm_or_si128(_mm_srli_si128::<9>(self), _mm_slli_si128::<7>(rest));
                _mm_storeu_si128(row.add(ROW - 16).cast(), end);
            }
        }
    }
}
