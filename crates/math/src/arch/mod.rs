//! Run-time choice of the fastest code for three small pieces: the Gaussian's table scan, the inner product
//! and the public matrix. A kernel takes the token of its instruction set, which exists only where the machine has it.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

#[cfg(target_arch = "x86_64")]
use crate::features::{Avx2, Avx512, Level, Vaes, within};
use crate::public_matrix::LWE_DIMENSION;

/// `out[i]` = the magnitude whose interval of `cumulative` holds the upper 127 bits of `uniform[i]`, its sign the
/// lowest bit. All are pairs of upper and lower words.
pub(crate) fn invert_cumulative(cumulative: &[[u64; 2]], uniform: &[[u64; 2]], out: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = within(Level::Avx512, Avx512::new) {
        return avx512::invert_cumulative(token, cumulative, uniform, out);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = within(Level::Avx2, Avx2::new) {
        return avx2::invert_cumulative(token, cumulative, uniform, out);
    }
    invert_cumulative_generic(cumulative, uniform, out);
}

/// Inner product modulo 2^32.
pub(crate) fn dot(a: &[u32], b: &[u32]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = within(Level::Avx512, Avx512::new) {
        return avx512::dot(token, a, b);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = within(Level::Avx2, Avx2::new) {
        return avx2::dot(token, a, b);
    }
    dot_generic(a, b)
}

/// Rows of the public matrix times the secret, or `false` where only the portable code can run.
pub(crate) fn public_matrix_mul(
    key: &[u8; 16],
    first_row: u64,
    secret: &[u32; LWE_DIMENSION],
    out: &mut [u32],
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = within(Level::Avx512, Vaes::new) {
        avx512::public_matrix_mul(token, key, first_row, secret, out);
        return true;
    }
    let _ = (key, first_row, secret, out);
    false
}

/// Written so that the compiler vectorises it for whichever instruction set it is inlined into.
#[inline(always)]
fn invert_cumulative_generic(cumulative: &[[u64; 2]], uniform: &[[u64; 2]], out: &mut [u32]) {
    for (out, [high, low]) in out.iter_mut().zip(uniform) {
        let sign = (low & 1) as u32;
        // The upper 127 bits, as 63 and 64.
        let (r_high, r_low) = (high >> 1, high << 63 | low >> 1);
        let magnitude = cumulative.iter().fold(0u64, |n, [c_high, c_low]| {
            // r >= c exactly when r - c does not borrow; upper words are below 2^63.
            let borrow = u64::from(r_low < *c_low);
            n + (c_high.wrapping_add(borrow).wrapping_sub(1).wrapping_sub(r_high) >> 63)
        }) as u32;
        *out = (magnitude ^ sign.wrapping_neg()).wrapping_add(sign);
    }
}

#[inline(always)]
fn dot_generic(a: &[u32], b: &[u32]) -> u32 {
    let (a_chunks, a_rest) = a.as_chunks::<64>();
    let (b_chunks, b_rest) = b.as_chunks::<64>();
    let mut sums = [0u32; 64];
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for i in 0..64 {
            sums[i] = sums[i].wrapping_add(a[i].wrapping_mul(b[i]));
        }
    }
    let rest = a_rest.iter().zip(b_rest).fold(0u32, |sum, (a, b)| sum.wrapping_add(a.wrapping_mul(*b)));
    sums.iter().fold(rest, |sum, s| sum.wrapping_add(*s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_finds_its_interval() {
        let split = |x: u128| [(x >> 64) as u64, x as u64];
        let cumulative = [1u128, 100, 1 << 64, (1 << 100) + 7, (1 << 127) - 1].map(split);
        let edges = [
            (0u128, 0),
            (1, 1),
            (99, 1),
            (100, 2),
            ((1 << 64) - 1, 2),
            (1 << 64, 3),
            ((1 << 100) + 6, 3),
            ((1 << 100) + 7, 4),
            ((1 << 127) - 2, 4),
            ((1 << 127) - 1, 5),
        ];
        let uniform: Vec<[u64; 2]> = edges.iter().map(|(r, _)| split(r << 1)).collect();
        let want: Vec<u32> = edges.iter().map(|(_, k)| *k).collect();
        let mut out = vec![0u32; uniform.len()];
        invert_cumulative(&cumulative, &uniform, &mut out);
        assert_eq!(out, want);
        let negative: Vec<[u64; 2]> = uniform.iter().map(|[h, l]| [*h, l | 1]).collect();
        invert_cumulative(&cumulative, &negative, &mut out);
        assert_eq!(out, want.iter().map(|k| k.wrapping_neg()).collect::<Vec<_>>());
    }
}
