//! AVX-512: the Gaussian's table scan and the inner product, vectorised by the compiler, and the public matrix by VAES.

use std::arch::x86_64::*;
use zeroize::Zeroize;

pub(super) mod elementwise;
pub(super) mod lanes;
pub(super) mod ntt;
pub(super) mod recombination;

use super::portable::digits::{cut_generic, split_generic};
use super::portable::{self, dot_generic, invert_cumulative_generic};
use crate::features::{Avx512, Clmul, Gfni, Vaes};
use crate::row::{BLOCKS_PER_ROW, LWE_DIMENSION};
use crate::stores::Stores;
use crate::{CutDigit, Prime, SignedDigits};

pub(super) fn invert_cumulative(_: Avx512, cumulative: &[[u64; 2]], uniform: &[[u64; 2]], out: &mut [u32]) {
    #[target_feature(enable = "avx512f,avx512dq")]
    fn compiled(cumulative: &[[u64; 2]], uniform: &[[u64; 2]], out: &mut [u32]) {
        invert_cumulative_generic(cumulative, uniform, out);
    }
    // SAFETY: the token stands for these features.
    unsafe { compiled(cumulative, uniform, out) }
}

pub(super) fn dot(_: Avx512, a: &[u32], b: &[u32]) -> u32 {
    #[target_feature(enable = "avx512f,avx512dq")]
    fn compiled(a: &[u32], b: &[u32]) -> u32 {
        dot_generic(a, b)
    }
    // SAFETY: the token stands for these features.
    unsafe { compiled(a, b) }
}

pub(super) fn split_digits(_: Avx512, digits: &SignedDigits, residues: &[u64], out: &mut [u64]) {
    #[target_feature(enable = "avx512f,avx512dq")]
    fn compiled(digits: &SignedDigits, residues: &[u64], out: &mut [u64]) {
        split_generic(digits, residues, out);
    }
    // SAFETY: the token stands for these features.
    unsafe { compiled(digits, residues, out) }
}

pub(super) fn cut_digit(_: Avx512, cut: &CutDigit, limbs: [&[u64]; 2], primes: &[Prime], out: &mut [u64]) {
    #[target_feature(enable = "avx512f,avx512dq")]
    fn compiled(cut: &CutDigit, limbs: [&[u64]; 2], primes: &[Prime], out: &mut [u64]) {
        cut_generic(cut, limbs, primes, out);
    }
    // SAFETY: the token stands for these features.
    unsafe { compiled(cut, limbs, primes, out) }
}

pub(super) fn widen(_: Avx512, bytes: &[u8], words: &mut [u64]) {
    #[target_feature(enable = "avx512f")]
    fn compiled(bytes: &[u8], words: &mut [u64]) {
        portable::widen(bytes, words);
    }
    // SAFETY: the token stands for these features.
    unsafe { compiled(bytes, words) }
}

/// Rows of the public matrix times the secret.
pub(super) fn public_matrix_mul(
    _: Vaes,
    key: &[u8; 16],
    first_row: u64,
    secret: &[u32; LWE_DIMENSION],
    out: &mut [u32],
) {
    // SAFETY: the token stands for these features.
    unsafe { public_matrix_mul_vaes512(key, first_row, secret, out) }
}

/// The round keys of AES-128 (FIPS 197, section 5.2). The key is a public seed.
#[target_feature(enable = "aes,sse2")]
fn round_keys(key: &[u8; 16]) -> [__m128i; 11] {
    macro_rules! next {
        ($previous:expr, $rcon:literal) => {{
            let assist = _mm_shuffle_epi32::<0xff>(_mm_aeskeygenassist_si128::<$rcon>($previous));
            let mut k = $previous;
            k = _mm_xor_si128(k, _mm_slli_si128::<4>(k));
            k = _mm_xor_si128(k, _mm_slli_si128::<8>(k));
            _mm_xor_si128(k, assist)
        }};
    }
    // SAFETY: an unaligned load of exactly the sixteen bytes of `key`.
    let k0 = unsafe { _mm_loadu_si128(key.as_ptr().cast()) };
    let k1 = next!(k0, 0x01);
    let k2 = next!(k1, 0x02);
    let k3 = next!(k2, 0x04);
    let k4 = next!(k3, 0x08);
    let k5 = next!(k4, 0x10);
    let k6 = next!(k5, 0x20);
    let k7 = next!(k6, 0x40);
    let k8 = next!(k7, 0x80);
    let k9 = next!(k8, 0x1b);
    let k10 = next!(k9, 0x36);
    [k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10]
}

/// Expands 32 blocks at a time in eight registers and multiplies them by the secret without storing them.
///
/// In: any key and rows below 2^56. Out: exact modulo 2^32.
#[target_feature(enable = "avx512f,avx512dq,vaes,aes")]
fn public_matrix_mul_vaes512(key: &[u8; 16], first_row: u64, secret: &[u32; LWE_DIMENSION], out: &mut [u32]) {
    const LANES: usize = 8;
    let keys: [__m512i; 11] = round_keys(key).map(|k| _mm512_broadcast_i32x4(k));
    let low_lanes = _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0);
    for (i, out) in out.iter_mut().enumerate() {
        let row = first_row + i as u64;
        let first_block = row.wrapping_mul(BLOCKS_PER_ROW as u64);
        // 256 blocks a row: a row never carries out of the low half of its counter.
        let high = (row >> 56) as i64;
        let mut sums = [_mm512_setzero_si512(); LANES];
        for step in 0..BLOCKS_PER_ROW / (4 * LANES) {
            let mut state: [__m512i; LANES] = std::array::from_fn(|lane| {
                let block = first_block.wrapping_add(((step * LANES + lane) * 4) as u64) as i64;
                let base = _mm512_set_epi64(high, block, high, block, high, block, high, block);
                _mm512_xor_si512(_mm512_add_epi64(base, low_lanes), keys[0])
            });
            for key in &keys[1..10] {
                for s in &mut state {
                    *s = _mm512_aesenc_epi128(*s, *key);
                }
            }
            for lane in 0..LANES {
                let words = _mm512_aesenclast_epi128(state[lane], keys[10]);
                let at = (step * LANES + lane) * 16;
                // SAFETY: `at` is at most 1024 - 16, and `secret` has 1024 words.
                let s = unsafe { _mm512_loadu_si512(secret.as_ptr().add(at).cast()) };
                sums[lane] = _mm512_add_epi32(sums[lane], _mm512_mullo_epi32(words, s));
            }
        }
        let sum = sums.into_iter().reduce(|a, b| _mm512_add_epi32(a, b)).expect("eight sums");
        *out = _mm512_reduce_add_epi32(sum) as u32;
    }
}

/// The round keys of each key.
pub(super) fn stream_keys(_: Vaes, keys: &[u128]) -> Vec<[u128; 11]> {
    let mut all = Vec::with_capacity(keys.len());
    for key in keys {
        // SAFETY: the token stands for these features; a round key is a word's sixteen bytes.
        all.push(unsafe {
            let key = zeroize::Zeroizing::new(key.to_le_bytes());
            std::mem::transmute::<[__m128i; 11], [u128; 11]>(round_keys(&key))
        });
    }
    all
}

/// See `transfers::Streams::sums`.
#[allow(clippy::too_many_arguments)]
pub(crate) fn stream_sums(
    _: Vaes,
    first: usize,
    keys: &[[u128; 11]],
    counter: u64,
    total: &mut [u128],
    sums: &mut [u128],
    stride: usize,
    levels: usize,
) {
    let words = total.len();
    assert!(levels <= LEVELS && (levels == 0 || sums.len() >= (levels - 1) * stride + words));
    let mut outs = [total.as_mut_ptr(); LEVELS + 1];
    for (level, out) in outs[1..=levels].iter_mut().enumerate() {
        // Not past the end: see above.
        *out = sums.as_mut_ptr().wrapping_add(level * stride);
    }
    // SAFETY: the token stands for these features; each output has `words` words from its beginning on.
    unsafe { sums_of_streams(first, keys, counter, words, &outs[..=levels]) }
}

/// Bits of a stream's number at most.
const LEVELS: usize = 4;

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes,aes")]
unsafe fn sums_of_streams(first: usize, keys: &[[u128; 11]], counter: u64, words: usize, outs: &[*mut u128]) {
    let mut at = 0;
    while at < words {
        let counter = counter.wrapping_add(at as u64);
        // SAFETY: the caller's, here and below.
        unsafe {
            if words - at >= 16 {
                store_sums(&sums_of::<4>(first, keys, counter), at, words, outs);
                at += 16;
            } else {
                store_sums(&sums_of::<1>(first, keys, counter), at, words, outs);
                at += 4;
            }
        }
    }
}

/// The sums of `4 J` words, which stay in registers from the first stream to the last: of all, and by each bit.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes,aes")]
fn sums_of<const J: usize>(first: usize, keys: &[[u128; 11]], counter: u64) -> [[__m512i; J]; LEVELS + 1] {
    let mut sums = [[_mm512_setzero_si512(); J]; LEVELS + 1];
    let zeros = _mm512_maskz_set1_epi64(0x55, counter as i64);
    let counters = _mm512_add_epi64(zeros, _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0));
    for (number, keys) in (first..).zip(keys) {
        let mut x = [counters; J];
        for (j, x) in x.iter_mut().enumerate() {
            let counters = _mm512_add_epi64(*x, _mm512_maskz_set1_epi64(0x55, 4 * j as i64));
            *x = _mm512_xor_si512(counters, broadcast(&keys[0]));
        }
        for key in &keys[1..10] {
            let key = broadcast(key);
            for x in &mut x {
                *x = _mm512_aesenc_epi128(*x, key);
            }
        }
        let last = broadcast(&keys[10]);
        for j in 0..J {
            x[j] = _mm512_aesenclast_epi128(x[j], last);
            sums[0][j] = _mm512_xor_si512(sums[0][j], x[j]);
        }
        // Numbers of streams are public.
        for level in 0..LEVELS {
            if number >> level & 1 == 1 {
                for j in 0..J {
                    sums[level + 1][j] = _mm512_xor_si512(sums[level + 1][j], x[j]);
                }
            }
        }
    }
    sums
}

#[inline]
#[target_feature(enable = "avx512f")]
fn broadcast(word: &u128) -> __m512i {
    // SAFETY: sixteen bytes, unaligned.
    _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128((&raw const *word).cast()) })
}

/// Stores what there is room for.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store_sums<const J: usize>(
    sums: &[[__m512i; J]; LEVELS + 1],
    at: usize,
    words: usize,
    outs: &[*mut u128],
) {
    for (sums, out) in sums.iter().zip(outs) {
        for (j, sum) in sums.iter().enumerate() {
            let from = at + 4 * j;
            let mask = ((1u16 << (2 * (words - from).min(4))) - 1) as u8;
            // SAFETY: `words` words from `out` on are the caller's, and no other is written.
            unsafe { _mm512_mask_storeu_epi64(out.add(from).cast(), mask, *sum) }
        }
    }
}

/// `point^count, ..., point^1` by POLYVAL's product.
pub(super) fn powers(_: Clmul, point: u128, count: usize) -> Vec<u128> {
    #[target_feature(enable = "avx512f,pclmulqdq")]
    fn compiled(point: u128, count: usize) -> Vec<u128> {
        let product = |a: u128| {
            let (a, b) = (from_word(a), from_word(point));
            let low = _mm_clmulepi64_si128::<0x00>(a, b);
            let middle =
                _mm_xor_si128(_mm_clmulepi64_si128::<0x01>(a, b), _mm_clmulepi64_si128::<0x10>(a, b));
            to_word(reduced(low, middle, _mm_clmulepi64_si128::<0x11>(a, b)))
        };
        let mut powers = vec![point; count];
        for i in (0..count.saturating_sub(1)).rev() {
            powers[i] = product(powers[i + 1]);
        }
        powers
    }
    // SAFETY: the token stands for these features.
    unsafe { compiled(point, count) }
}

/// The sum of products of words and as many powers: one reduction for all.
pub(crate) fn polynomial(_: Clmul, powers: &[u128], words: &[u128]) -> u128 {
    assert_eq!(powers.len(), words.len());
    // SAFETY: the token stands for these features, and both are as long.
    unsafe { sum_of_products(powers, words) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vpclmulqdq,pclmulqdq")]
unsafe fn sum_of_products(powers: &[u128], words: &[u128]) -> u128 {
    let zero = _mm512_setzero_si512();
    let (mut low, mut middle, mut other, mut high) = (zero, zero, zero, zero);
    for at in (0..words.len()).step_by(4) {
        let mask = ((1u16 << (2 * (words.len() - at).min(4))) - 1) as u8;
        // SAFETY: words that are there, of both.
        let (a, b) = unsafe {
            let load = |from: &[u128]| _mm512_maskz_loadu_epi64(mask, from.as_ptr().add(at).cast());
            (load(words), load(powers))
        };
        low = _mm512_xor_si512(low, _mm512_clmulepi64_epi128::<0x00>(a, b));
        middle = _mm512_xor_si512(middle, _mm512_clmulepi64_epi128::<0x01>(a, b));
        other = _mm512_xor_si512(other, _mm512_clmulepi64_epi128::<0x10>(a, b));
        high = _mm512_xor_si512(high, _mm512_clmulepi64_epi128::<0x11>(a, b));
    }
    let sum = |x: __m512i| {
        let halves = _mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64::<1>(x));
        _mm_xor_si128(_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves))
    };
    to_word(reduced(sum(low), sum(_mm512_xor_si512(middle, other)), sum(high)))
}

/// A product of 256 bits times x^-128 modulo x^128 + x^127 + x^126 + x^121 + 1 (Gueron, Langley and Lindell 2017, appendix A):
/// each step takes 64 bits off the low end.
#[inline]
#[target_feature(enable = "avx512f,pclmulqdq")]
fn reduced(low: __m128i, middle: __m128i, high: __m128i) -> __m128i {
    let modulus = _mm_set_epi64x(0xc200_0000_0000_0000_u64 as i64, 1);
    let mut low = _mm_xor_si128(low, _mm_slli_si128::<8>(middle));
    for _ in 0..2 {
        let multiple = _mm_clmulepi64_si128::<0x10>(low, modulus);
        low = _mm_xor_si128(multiple, _mm_shuffle_epi32::<0b01_00_11_10>(low));
    }
    _mm_xor_si128(low, _mm_xor_si128(high, _mm_srli_si128::<8>(middle)))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn from_word(word: u128) -> __m128i {
    _mm_set_epi64x((word >> 64) as i64, word as i64)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn to_word(x: __m128i) -> u128 {
    let (low, high) = (_mm_cvtsi128_si64(x) as u64, _mm_cvtsi128_si64(_mm_unpackhi_epi64(x, x)) as u64);
    u128::from(high) << 64 | u128::from(low)
}

/// See `transfers::rows`.
pub(super) fn rows(_: Gfni, columns: &[u128], stride: usize, out: &mut [u128], stores: Stores) {
    assert!(out.is_empty() || columns.len() > 127 * stride + (out.len() - 1) / 128);
    // Once: setting it to zero takes a tenth of the time of filling it.
    let mut words = [[0u64; 8]; 32];
    for (block, out) in out.chunks_mut(128).enumerate() {
        let columns = columns[block..].as_ptr();
        // SAFETY: the token stands for these features; a word of each of 128 columns is there, and 128 of `out` or of `part`.
        unsafe {
            match stores {
                Stores::Cached if out.len() == 128 => {
                    turn::<false>(columns, stride, &mut words, out.as_mut_ptr())
                }
                Stores::Streamed if out.len() == 128 => {
                    turn::<true>(columns, stride, &mut words, out.as_mut_ptr())
                }
                _ => {
                    let mut part = [0u128; 128];
                    turn::<false>(columns, stride, &mut words, part.as_mut_ptr());
                    out.copy_from_slice(&part[..out.len()]);
                    part.zeroize();
                }
            }
        }
    }
    if stores == Stores::Streamed {
        // SAFETY: every processor with the token's features has it. Without it others see streamed stores in no order.
        unsafe { _mm_sfence() };
    }
    words.zeroize();
}

/// Transposes 128 x 128 bits: eight by eight by a product of matrices, the squares among each other by bytes and words.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
unsafe fn turn<const STREAMED: bool>(
    columns: *const u128,
    stride: usize,
    words: &mut [[u64; 8]; 32],
    out: *mut u128,
) {
    // Byte j of eight columns, the last first as the product wants it, for j below 8; for those above 8 is added.
    const SQUARES: [u8; 64] = {
        let (mut all, mut at) = ([0; 64], 0);
        while at < 64 {
            all[at] = ((7 - at % 8) * 16 + at / 8) as u8;
            at += 1;
        }
        all
    };
    // Bytes of eight words and eight more, of which byte i is for row i.
    const ROWS: [u8; 64] = {
        let (mut all, mut at) = ([0; 64], 0);
        while at < 64 {
            all[at] = (at % 16 * 8 + at / 16) as u8;
            at += 1;
        }
        all
    };
    // SAFETY: 64 bytes each; the columns and `out` are the caller's.
    unsafe {
        let squares = _mm512_loadu_si512(SQUARES.as_ptr().cast());
        let squares = [squares, _mm512_add_epi8(squares, _mm512_set1_epi8(8))];
        let identity = _mm512_set1_epi64(0x8040_2010_0804_0201_u64 as i64);
        for k in 0..16 {
            let low = four(columns.add(8 * k * stride), stride);
            let high = four(columns.add((8 * k + 4) * stride), stride);
            for half in 0..2 {
                let square = _mm512_permutex2var_epi8(low, squares[half], high);
                let turned = _mm512_gf2p8affine_epi64_epi8::<0>(identity, square);
                _mm512_storeu_si512(words[16 * half + k].as_mut_ptr().cast(), turned);
            }
        }
        for half in 0..2 {
            let (low, high) = words[16 * half..][..16].split_at(8);
            let (low, high) = (turn_words(low), turn_words(high));
            for j in 0..8 {
                for part in 0..2 {
                    let rows = _mm512_loadu_si512(ROWS.as_ptr().cast());
                    let rows = _mm512_add_epi8(rows, _mm512_set1_epi8(4 * part as i8));
                    let rows = _mm512_permutex2var_epi8(low[j], rows, high[j]);
                    let out = out.add(64 * half + 8 * j + 4 * part);
                    if STREAMED {
                        // A row at a time, for words begin at no line of a cache; four are put together before they go.
                        _mm_stream_si128(out.cast(), _mm512_castsi512_si128(rows));
                        _mm_stream_si128(out.add(1).cast(), _mm512_extracti32x4_epi32::<1>(rows));
                        _mm_stream_si128(out.add(2).cast(), _mm512_extracti32x4_epi32::<2>(rows));
                        _mm_stream_si128(out.add(3).cast(), _mm512_extracti32x4_epi32::<3>(rows));
                    } else {
                        _mm512_storeu_si512(out.cast(), rows);
                    }
                }
            }
        }
    }
}

/// A word of each of four columns.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn four(columns: *const u128, stride: usize) -> __m512i {
    // SAFETY: the caller's words.
    unsafe {
        let x = _mm512_broadcast_i32x4(_mm_loadu_si128(columns.cast()));
        let x = _mm512_mask_broadcast_i32x4(x, 0x00f0, _mm_loadu_si128(columns.add(stride).cast()));
        let x = _mm512_mask_broadcast_i32x4(x, 0x0f00, _mm_loadu_si128(columns.add(2 * stride).cast()));
        _mm512_mask_broadcast_i32x4(x, 0xf000, _mm_loadu_si128(columns.add(3 * stride).cast()))
    }
}

/// Transposes 8 x 8 words of 64 bits.
#[inline]
#[target_feature(enable = "avx512f")]
fn turn_words(x: &[[u64; 8]]) -> [__m512i; 8] {
    let mut out = [_mm512_setzero_si512(); 8];
    for odd in 0..2 {
        let mut pairs = [_mm512_setzero_si512(); 4];
        for (pair, x) in pairs.iter_mut().zip(x.chunks_exact(2)) {
            // SAFETY: 64 bytes each, unaligned.
            let (x, y) = unsafe {
                (_mm512_loadu_si512(x[0].as_ptr().cast()), _mm512_loadu_si512(x[1].as_ptr().cast()))
            };
            *pair = if odd == 0 { _mm512_unpacklo_epi64(x, y) } else { _mm512_unpackhi_epi64(x, y) };
        }
        let [a, b, c, d] = pairs;
        let (first, second) = (_mm512_shuffle_i64x2::<0x88>(a, b), _mm512_shuffle_i64x2::<0x88>(c, d));
        out[odd] = _mm512_shuffle_i64x2::<0x88>(first, second);
        out[odd + 4] = _mm512_shuffle_i64x2::<0xdd>(first, second);
        let (first, second) = (_mm512_shuffle_i64x2::<0xdd>(a, b), _mm512_shuffle_i64x2::<0xdd>(c, d));
        out[odd + 2] = _mm512_shuffle_i64x2::<0x88>(first, second);
        out[odd + 6] = _mm512_shuffle_i64x2::<0xdd>(first, second);
    }
    out
}
