//! Sums, differences and products modulo a prime by IFMA, eight at a time.

use std::arch::x86_64::*;

use crate::Prime;
use crate::features::Ifma;

/// Arithmetic modulo an odd prime below 2^50.
///
/// Each function does the whole vectors of eight words that there are, and returns how many words are done. In: residues.
/// Out: residues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Residues {
    _token: Ifma,
    q: u64,
    /// floor(2^(k+51) / q), k the bits of q.
    inverse: u64,
}

impl Residues {
    /// `None` where the kernel does not take the prime.
    pub(crate) fn new(token: Ifma, prime: Prime) -> Option<Self> {
        let q = prime.value();
        let inverse = ((1u128 << (q.ilog2() + 52)) / u128::from(q)) as u64;
        (3..1 << 50).contains(&q).then_some(Self { _token: token, q, inverse })
    }

    /// `out[i]` += `b[i]`.
    pub(crate) fn add(self, out: &mut [u64], b: &[u64]) -> usize {
        assert!(b.len() == out.len());
        // SAFETY: the token stands for these features.
        unsafe { sums::<true>(self.q, out, b) }
    }

    /// `out[i]` -= `b[i]`.
    pub(crate) fn subtract(self, out: &mut [u64], b: &[u64]) -> usize {
        assert!(b.len() == out.len());
        // SAFETY: the token stands for these features.
        unsafe { sums::<false>(self.q, out, b) }
    }

    /// (`a[i]`, `difference[i]`) become (`a[i]` + `b[i]`, `a[i]` - `b[i]`).
    pub(crate) fn sum_and_difference(self, a: &mut [u64], b: &[u64], difference: &mut [u64]) -> usize {
        assert!(b.len() == a.len() && difference.len() == a.len());
        // SAFETY: the token stands for these features.
        unsafe { sums_and_differences(self.q, a, b, difference) }
    }

    /// `out[i]` = `add[i]` + `a[i]` `b[i]`; `a` is `out` where none is given, and nothing is added then.
    ///
    /// The product p is at most 100 bits, t = floor(p / 2^(k-1)) and the inverse are below 2^52, and
    /// floor(t inverse / 2^52) is at most two short of floor(p / q). Source: Barrett 1986.
    pub(crate) fn multiply(self, add: Option<&[u64]>, out: &mut [u64], b: &[u64]) -> usize {
        assert!(b.len() == out.len() && add.is_none_or(|a| a.len() == out.len()));
        // SAFETY: the token stands for these features.
        unsafe {
            match add {
                None => products::<false>(self, out, b, b),
                Some(a) => products::<true>(self, out, a, b),
            }
        }
    }

    /// `out[i]` *= `factor`, below q.
    pub(crate) fn scale(self, out: &mut [u64], factor: u64) -> usize {
        assert!(factor < self.q);
        // SAFETY: the token stands for these features.
        unsafe { scaled(self.q, out, factor) }
    }

    /// `out[i]` += the sum of `a[i]` `b[i]` over all pairs.
    ///
    /// Low and high halves of products are added up by themselves, [`TOGETHER`] of them, and reduced then.
    pub(crate) fn multiply_sum(self, out: &mut [u64], pairs: &[[&[u64]; 2]]) -> usize {
        assert!(pairs.iter().flatten().all(|side| side.len() == out.len()));
        // SAFETY: the token stands for these features.
        unsafe { products_summed(self, out, pairs) }
    }

    /// (`low[i]`, `high[i]`) become (`low[i]` + `high[i]`, (`low[i]` - `high[i]`) `factors[i]`).
    pub(crate) fn butterflies(self, low: &mut [u64], high: &mut [u64], factors: &[u64]) -> usize {
        assert!(low.len() == high.len() && factors.len() == low.len());
        // SAFETY: the token stands for these features.
        unsafe { butterflies(self, low, high, factors) }
    }
}

#[target_feature(enable = "avx512f")]
fn sums<const PLUS: bool>(q: u64, out: &mut [u64], b: &[u64]) -> usize {
    let modulus = _mm512_set1_epi64(q as i64);
    let whole = out.len() / 8 * 8;
    for at in (0..whole).step_by(8) {
        // SAFETY: eight words from `at` on lie within both.
        unsafe {
            let a = _mm512_loadu_si512(out.as_ptr().add(at).cast());
            let b = _mm512_loadu_si512(b.as_ptr().add(at).cast());
            _mm512_storeu_si512(out.as_mut_ptr().add(at).cast(), sum::<PLUS>(modulus, a, b));
        }
    }
    whole
}

/// As [`Residues::sum_and_difference`].
#[target_feature(enable = "avx512f")]
fn sums_and_differences(q: u64, a: &mut [u64], b: &[u64], difference: &mut [u64]) -> usize {
    let modulus = _mm512_set1_epi64(q as i64);
    let whole = a.len() / 8 * 8;
    for at in (0..whole).step_by(8) {
        // SAFETY: eight words from `at` on lie within all three.
        unsafe {
            let [left, right] =
                [a.as_ptr(), b.as_ptr()].map(|words| _mm512_loadu_si512(words.add(at).cast()));
            _mm512_storeu_si512(a.as_mut_ptr().add(at).cast(), sum::<true>(modulus, left, right));
            _mm512_storeu_si512(difference.as_mut_ptr().add(at).cast(), sum::<false>(modulus, left, right));
        }
    }
    whole
}

/// a + b or a - b: of what it is and what it is with a modulus less or more, the lesser is right.
#[inline]
#[target_feature(enable = "avx512f")]
fn sum<const PLUS: bool>(modulus: __m512i, a: __m512i, b: __m512i) -> __m512i {
    if PLUS {
        let sum = _mm512_add_epi64(a, b);
        _mm512_min_epu64(sum, _mm512_sub_epi64(sum, modulus))
    } else {
        let difference = _mm512_sub_epi64(a, b);
        _mm512_min_epu64(difference, _mm512_add_epi64(difference, modulus))
    }
}

/// What a reduction takes, in registers.
struct Reduction {
    modulus: __m512i,
    twice: __m512i,
    minus: __m512i,
    inverse: __m512i,
    mask: __m512i,
    left: __m128i,
    right: __m128i,
}

impl Reduction {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(residues: Residues) -> Self {
        let Residues { q, inverse, .. } = residues;
        let bits = q.ilog2() + 1;
        let all = |x: u64| _mm512_set1_epi64(x as i64);
        Self {
            modulus: all(q),
            twice: all(2 * q),
            minus: all((1 << 52) - q),
            inverse: all(inverse),
            mask: all((1 << 52) - 1),
            left: _mm_cvtsi64_si128(i64::from(53 - bits)),
            right: _mm_cvtsi64_si128(i64::from(bits - 1)),
        }
    }

    /// a b, below 3q.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn product(&self, a: __m512i, b: __m512i) -> __m512i {
        let zero = _mm512_setzero_si512();
        let low = _mm512_madd52lo_epu64(zero, a, b);
        let high = _mm512_madd52hi_epu64(zero, a, b);
        let t = _mm512_or_si512(_mm512_sll_epi64(high, self.left), _mm512_srl_epi64(low, self.right));
        let quotient = _mm512_madd52hi_epu64(zero, t, self.inverse);
        _mm512_and_si512(_mm512_madd52lo_epu64(low, quotient, self.minus), self.mask)
    }

    /// x, which is below 4q.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn whole(&self, x: __m512i) -> __m512i {
        let x = _mm512_min_epu64(x, _mm512_sub_epi64(x, self.twice));
        _mm512_min_epu64(x, _mm512_sub_epi64(x, self.modulus))
    }
}

/// As [`Residues::multiply`]: `ADD` multiplies `a` by `b` and adds to `out`, else `out` is multiplied by `b`. All are of one
/// length.
#[target_feature(enable = "avx512f,avx512ifma")]
fn products<const ADD: bool>(residues: Residues, out: &mut [u64], a: &[u64], b: &[u64]) -> usize {
    let reduction = Reduction::new(residues);
    let whole = out.len() / 8 * 8;
    for at in (0..whole).step_by(8) {
        // SAFETY: eight words from `at` on lie within all three.
        unsafe {
            let before = _mm512_loadu_si512(out.as_ptr().add(at).cast());
            let factor = _mm512_loadu_si512(b.as_ptr().add(at).cast());
            let other = if ADD { _mm512_loadu_si512(a.as_ptr().add(at).cast()) } else { before };
            let product = reduction.product(other, factor);
            let sum = if ADD { _mm512_add_epi64(product, before) } else { product };
            _mm512_storeu_si512(out.as_mut_ptr().add(at).cast(), reduction.whole(sum));
        }
    }
    whole
}

/// As [`Residues::scale`]: with floor(2^52 factor / q) the quotient is one short at most (Shoup).
#[target_feature(enable = "avx512f,avx512ifma")]
fn scaled(q: u64, out: &mut [u64], factor: u64) -> usize {
    let all = |x: u64| _mm512_set1_epi64(x as i64);
    let quotient = all(((u128::from(factor) << 52) / u128::from(q)) as u64);
    let [modulus, minus, factor, mask] = [q, (1 << 52) - q, factor, (1 << 52) - 1].map(all);
    let whole = out.len() / 8 * 8;
    for at in (0..whole).step_by(8) {
        // SAFETY: eight words from `at` on lie within it.
        unsafe {
            let place = out.as_mut_ptr().add(at).cast();
            let (x, zero) = (_mm512_loadu_si512(place), _mm512_setzero_si512());
            let times = _mm512_madd52hi_epu64(zero, x, quotient);
            let low = _mm512_madd52lo_epu64(_mm512_madd52lo_epu64(zero, x, factor), times, minus);
            let product = _mm512_and_si512(low, mask);
            _mm512_storeu_si512(place, _mm512_min_epu64(product, _mm512_sub_epi64(product, modulus)));
        }
    }
    whole
}

/// Products whose halves are summed before they are reduced: the high ones stay below 15 * 2^48 + 2^12, which is below 2^52.
const TOGETHER: usize = 15;
/// Vectors that are summed side by side.
const SIDE: usize = 4;

/// As [`Residues::multiply_sum`].
#[target_feature(enable = "avx512f,avx512ifma")]
fn products_summed(residues: Residues, out: &mut [u64], pairs: &[[&[u64]; 2]]) -> usize {
    let (reduction, q) = (Reduction::new(residues), u128::from(residues.q));
    let all = |x: u128| _mm512_set1_epi64(x as i64);
    // 2^52 modulo q with its quotient (Shoup), and floor(2^52 / q).
    let power = (1u128 << 52) % q;
    let [power, quotient, inverse] = [all(power), all((power << 52) / q), all((1 << 52) / q)];
    let zero = _mm512_setzero_si512();
    let whole = out.len() / (8 * SIDE) * (8 * SIDE);
    for at in (0..whole).step_by(8 * SIDE) {
        for pairs in pairs.chunks(TOGETHER) {
            let (mut low, mut high) = ([zero; SIDE], [zero; SIDE]);
            for [a, b] in pairs {
                for i in 0..SIDE {
                    // SAFETY: as many words as are summed side by side lie within both from `at` on.
                    let (a, b) = unsafe {
                        let at = at + 8 * i;
                        (
                            _mm512_loadu_si512(a.as_ptr().add(at).cast()),
                            _mm512_loadu_si512(b.as_ptr().add(at).cast()),
                        )
                    };
                    low[i] = _mm512_madd52lo_epu64(low[i], a, b);
                    high[i] = _mm512_madd52hi_epu64(high[i], a, b);
                }
            }
            for i in 0..SIDE {
                let high = _mm512_add_epi64(high[i], _mm512_srli_epi64::<52>(low[i]));
                let low = _mm512_and_si512(low[i], reduction.mask);
                let times = _mm512_madd52hi_epu64(zero, high, quotient);
                let high =
                    _mm512_madd52lo_epu64(_mm512_madd52lo_epu64(zero, high, power), times, reduction.minus);
                let times = _mm512_madd52hi_epu64(zero, low, inverse);
                let low = _mm512_madd52lo_epu64(low, times, reduction.minus);
                // Each is below 2q.
                let [low, high] =
                    [_mm512_and_si512(low, reduction.mask), _mm512_and_si512(high, reduction.mask)];
                let sum = reduction.whole(_mm512_add_epi64(low, high));
                // SAFETY: eight words of `out`.
                unsafe {
                    let out: *mut __m512i = out.as_mut_ptr().add(at + 8 * i).cast();
                    let before = _mm512_loadu_si512(out.cast_const());
                    _mm512_storeu_si512(out, self::sum::<true>(reduction.modulus, before, sum));
                }
            }
        }
    }
    whole
}

/// As [`Residues::butterflies`].
#[target_feature(enable = "avx512f,avx512ifma")]
fn butterflies(residues: Residues, low: &mut [u64], high: &mut [u64], factors: &[u64]) -> usize {
    let reduction = Reduction::new(residues);
    let whole = low.len() / 8 * 8;
    for at in (0..whole).step_by(8) {
        // SAFETY: eight words from `at` on lie within all three.
        unsafe {
            let a = _mm512_loadu_si512(low.as_ptr().add(at).cast());
            let b = _mm512_loadu_si512(high.as_ptr().add(at).cast());
            let factor = _mm512_loadu_si512(factors.as_ptr().add(at).cast());
            let difference = sum::<false>(reduction.modulus, a, b);
            let product = reduction.whole(reduction.product(difference, factor));
            _mm512_storeu_si512(low.as_mut_ptr().add(at).cast(), sum::<true>(reduction.modulus, a, b));
            _mm512_storeu_si512(high.as_mut_ptr().add(at).cast(), product);
        }
    }
    whole
}
