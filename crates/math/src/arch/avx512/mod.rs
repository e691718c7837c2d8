//! AVX-512: the Gaussian's table scan and the inner product, vectorised by the compiler, and the public matrix by VAES.

use std::arch::x86_64::*;

pub(super) mod elementwise;
pub(super) mod ntt;

use super::portable::{dot_generic, invert_cumulative_generic};
use crate::features::{Avx512, Vaes};
use crate::row::{BLOCKS_PER_ROW, LWE_DIMENSION};

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
