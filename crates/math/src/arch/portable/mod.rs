//! Plain Rust.

pub(super) mod digits;
pub(super) mod lanes;
pub(super) mod ntt;

/// Bytes as words, and zeros beyond them.
#[inline(always)]
pub(crate) fn widen(bytes: &[u8], words: &mut [u64]) {
    let (there, beyond) = words.split_at_mut(bytes.len());
    there.iter_mut().zip(bytes).for_each(|(word, byte)| *word = u64::from(*byte));
    beyond.fill(0);
}

/// Written so that the compiler vectorises it for whichever instruction set it is inlined into.
#[inline(always)]
pub(super) fn invert_cumulative_generic(cumulative: &[[u64; 2]], uniform: &[[u64; 2]], out: &mut [u32]) {
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
pub(super) fn dot_generic(a: &[u32], b: &[u32]) -> u32 {
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
