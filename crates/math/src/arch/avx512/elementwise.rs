//! Products modulo a prime by IFMA, eight at a time.

use std::arch::x86_64::*;

use crate::Prime;
use crate::features::Ifma;

/// `out[i]` = `add[i]` + `a[i]` `b[i]` for the whole vectors of eight words that there are; `a` is `out` where none is given, and
/// nothing is added then. Returns how many words are done.
///
/// With k the bits of q, the product p is at most 100 bits, t = floor(p / 2^(k-1)) and m = floor(2^(k+51) / q) are below 2^52,
/// and floor(t m / 2^52) is at most two short of floor(p / q). Source: Barrett 1986.
pub(crate) fn products(_: Ifma, prime: Prime, add: Option<&[u64]>, out: &mut [u64], b: &[u64]) -> usize {
    assert!(
        (3..1 << 50).contains(&prime.value())
            && b.len() == out.len()
            && add.is_none_or(|a| a.len() == out.len())
    );
    // SAFETY: the token stands for these features.
    unsafe {
        match add {
            None => compute::<false>(prime.value(), out, b, b),
            Some(a) => compute::<true>(prime.value(), out, a, b),
        }
    }
}

/// As [`products`]: `ADD` multiplies `a` by `b` and adds to `out`, else `out` is multiplied by `b`. All are of one length.
#[target_feature(enable = "avx512f,avx512ifma")]
fn compute<const ADD: bool>(q: u64, out: &mut [u64], a: &[u64], b: &[u64]) -> usize {
    let bits = q.ilog2() + 1;
    let all = |x: u64| _mm512_set1_epi64(x as i64);
    let zero = _mm512_setzero_si512();
    let (modulus, twice, minus) = (all(q), all(2 * q), all((1 << 52) - q));
    let (inverse, mask) = (all(((1u128 << (bits + 51)) / u128::from(q)) as u64), all((1 << 52) - 1));
    let (left, right) = (_mm_cvtsi64_si128(i64::from(53 - bits)), _mm_cvtsi64_si128(i64::from(bits - 1)));
    let whole = out.len() / 8 * 8;
    for at in (0..whole).step_by(8) {
        // SAFETY: eight words from `at` on lie within all three.
        unsafe {
            let before = _mm512_loadu_si512(out.as_ptr().add(at).cast());
            let factor = _mm512_loadu_si512(b.as_ptr().add(at).cast());
            let other = if ADD { _mm512_loadu_si512(a.as_ptr().add(at).cast()) } else { before };
            let low = _mm512_madd52lo_epu64(zero, other, factor);
            let high = _mm512_madd52hi_epu64(zero, other, factor);
            let t = _mm512_or_si512(_mm512_sll_epi64(high, left), _mm512_srl_epi64(low, right));
            let quotient = _mm512_madd52hi_epu64(zero, t, inverse);
            let rest = _mm512_and_si512(_mm512_madd52lo_epu64(low, quotient, minus), mask);
            // Below 3q; with what was there, below 4q.
            let sum = if ADD { _mm512_add_epi64(rest, before) } else { rest };
            let sum = _mm512_min_epu64(sum, _mm512_sub_epi64(sum, twice));
            let sum = _mm512_min_epu64(sum, _mm512_sub_epi64(sum, modulus));
            _mm512_storeu_si512(out.as_mut_ptr().add(at).cast(), sum);
        }
    }
    whole
}
