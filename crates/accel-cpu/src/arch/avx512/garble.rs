//! Half gates and three halves, four blocks at a time.

use std::arch::x86_64::*;

use blindcore_accel::garble::Label;
use blindcore_accel::garble::three_halves::ROW;
use blindcore_math::features::Vaes;

use crate::arch::aes::garble::round_keys;
use crate::arch::vector::garble::blocks::{self, Blocks};
use crate::arch::vector::garble::gates::{self, Work};
use crate::arch::vector::garble::job::{Job, RawTables, Stream};
use crate::arch::vector::garble::three_halves::Halves;

/// One part or layer.
///
/// # Safety
/// See [`gates::run`].
pub(crate) unsafe fn run(_: Vaes, job: Job<'_>, streams: &[Stream], tables: RawTables, work: Work<'_>) {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes,aes")]
    unsafe fn compiled(job: Job<'_>, streams: &[Stream], tables: RawTables, work: Work<'_>) {
        let keys = round_keys(job.key).map(|key| _mm512_broadcast_i32x4(key));
        // SAFETY: as of `run`.
        unsafe { gates::run(job, &keys, streams, tables, work) }
    }
    // SAFETY: the token stands for these features; the rest is the caller's.
    unsafe { compiled(job, streams, tables, work) }
}

/// Enciphers 64 blocks under one key, `rounds` times; their XOR, so that nothing is left out. Sixteen vectors and the round
/// keys fill the registers; eight leave the units idle for a fifth of the time.
pub(crate) fn encipher(_: Vaes, key: &[u8; 16], rounds: usize) -> Label {
    // SAFETY: the token stands for these features.
    unsafe { blocks_of(key, rounds) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes,aes")]
fn blocks_of(key: &[u8; 16], rounds: usize) -> Label {
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes,aes")]
    fn once(keys: &[__m512i; 11], x: &mut [[__m512i; 4]; 4]) {
        // SAFETY: this function is compiled for the instruction set, so it's there.
        unsafe { blocks::permute(keys, x) }
    }
    let keys = round_keys(key).map(|key| _mm512_broadcast_i32x4(key));
    let mut x = [[_mm512_setzero_si512(); 4]; 4];
    for _ in 0..rounds {
        once(&keys, &mut x);
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
    unsafe fn store_quads(quads: [Self; 4], to: *mut Label, at: [usize; 4]) {
        // SAFETY: the caller's; four blocks at each address.
        unsafe {
            for (line, at) in transposed(quads).into_iter().zip(at) {
                line.store(to.add(at));
            }
        }
    }

    #[inline(always)]
    unsafe fn load_quads(from: *const Label, [w, x, y, z]: [usize; 4]) -> [Self; 4] {
        // SAFETY: the caller's; four blocks at each address.
        unsafe {
            transposed([
                Self::load(from.add(w)),
                Self::load(from.add(x)),
                Self::load(from.add(y)),
                Self::load(from.add(z)),
            ])
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
impl Halves for __m512i {
    #[inline(always)]
    unsafe fn lower(self, other: Self) -> Self {
        // SAFETY: the caller has the instruction set, here and below.
        unsafe { _mm512_unpacklo_epi64(self, other) }
    }

    #[inline(always)]
    unsafe fn upper(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_unpackhi_epi64(self, other) }
    }

    #[inline(always)]
    unsafe fn swap(self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_shuffle_epi32::<0b01_00_11_10>(self) }
    }

    #[inline(always)]
    unsafe fn right<const BITS: u32>(self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_srli_epi64::<BITS>(self) }
    }

    #[inline(always)]
    unsafe fn left<const BITS: u32>(self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_slli_epi64::<BITS>(self) }
    }

    #[inline(always)]
    unsafe fn pairs(words: [u64; 4]) -> Self {
        // SAFETY: as above.
        unsafe {
            let [w, x, y, z] = words.map(|word| word as i64);
            _mm512_srlv_epi64(
                _mm512_set_epi64(z, z, y, y, x, x, w, w),
                _mm512_set_epi64(1, 0, 1, 0, 1, 0, 1, 0),
            )
        }
    }

    #[inline(always)]
    unsafe fn load_rows(from: *const u8, at: [usize; 4]) -> (Self, Self) {
        // SAFETY: the caller's; a row has 25 bytes.
        unsafe {
            let rest = gather_bytes(from.add(ROW - 16), at);
            (gather_bytes(from, at), _mm512_bsrli_epi128::<7>(rest))
        }
    }

    #[inline(always)]
    unsafe fn store_rows(self, rest: Self, to: *mut u8, at: [usize; 4], count: usize) {
        // SAFETY: the caller's; a row has 25 bytes. The second store of a row repeats 7 bytes of the first.
        unsafe {
            let end = _mm512_or_si512(_mm512_bsrli_epi128::<9>(self), _mm512_bslli_epi128::<7>(rest));
            let begins = blocks(self);
            let ends = blocks(end);
            for l in 0..count.min(4) {
                let row = to.add(at[l]);
                _mm_storeu_si128(row.cast(), begins[l]);
                _mm_storeu_si128(row.add(ROW - 16).cast(), ends[l]);
            }
        }
    }
}

/// Four by four blocks.
#[inline(always)]
unsafe fn transposed([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    // SAFETY: the caller has the instruction set.
    unsafe {
        // Blocks 0 and 1 of two, blocks 2 and 3 of two; then the even and the odd of all.
        let (low_ab, high_ab) = (_mm512_shuffle_i64x2::<0x44>(a, b), _mm512_shuffle_i64x2::<0xee>(a, b));
        let (low_cd, high_cd) = (_mm512_shuffle_i64x2::<0x44>(c, d), _mm512_shuffle_i64x2::<0xee>(c, d));
        [
            _mm512_shuffle_i64x2::<0x88>(low_ab, low_cd),
            _mm512_shuffle_i64x2::<0xdd>(low_ab, low_cd),
            _mm512_shuffle_i64x2::<0x88>(high_ab, high_cd),
            _mm512_shuffle_i64x2::<0xdd>(high_ab, high_cd),
        ]
    }
}

/// Sixteen bytes from each address.
#[inline(always)]
unsafe fn gather_bytes(from: *const u8, at: [usize; 4]) -> __m512i {
    // SAFETY: the caller's; each address has sixteen bytes.
    unsafe {
        let x = _mm512_broadcast_i32x4(_mm_loadu_si128(from.add(at[0]).cast()));
        let x = _mm512_mask_broadcast_i32x4(x, 0x00f0, _mm_loadu_si128(from.add(at[1]).cast()));
        let x = _mm512_mask_broadcast_i32x4(x, 0x0f00, _mm_loadu_si128(from.add(at[2]).cast()));
        _mm512_mask_broadcast_i32x4(x, 0xf000, _mm_loadu_si128(from.add(at[3]).cast()))
    }
}

#[inline(always)]
unsafe fn blocks(x: __m512i) -> [__m128i; 4] {
    // SAFETY: the caller has the instruction set.
    unsafe {
        [
            _mm512_castsi512_si128(x),
            _mm512_extracti32x4_epi32::<1>(x),
            _mm512_extracti32x4_epi32::<2>(x),
            _mm512_extracti32x4_epi32::<3>(x),
        ]
    }
}
