//! Integers from their shares by IFMA, eight at a time.

use std::arch::x86_64::*;

use super::super::portable;
use crate::Recombination;
use crate::features::Ifma;

/// Integers from shares: by vectors where those are below 2^52, of two or three primes, and fill whole vectors.
pub(crate) fn recombine(_: Ifma, of: &Recombination, shares: &[u64], plus: u128, limbs: [&mut [u64]; 2]) {
    let count = limbs[0].len();
    assert!(shares.len() == of.counts.len() * count && limbs[1].len() == count);
    // A share is below its prime, which is the modulus by what it counts.
    let short = of.counts.iter().all(|(counts, _)| of.modulus / counts <= 1 << 52);
    // SAFETY: the token stands for these features.
    unsafe {
        match *of.counts {
            [a, b] if short && count.is_multiple_of(8) => vectors(of.modulus, [a, b], shares, plus, limbs),
            [a, b, c] if short && count.is_multiple_of(8) => {
                vectors(of.modulus, [a, b, c], shares, plus, limbs)
            }
            _ => portable::digits::recombine(of, shares, plus, limbs),
        }
    }
}

/// A number modulo 2^156 as three digits of 52 bits.
fn digits(x: u128) -> [i64; 3] {
    [0, 52, 104].map(|shift| (x >> shift & ((1 << 52) - 1)) as i64)
}

/// Sums of products of digits of 52 bits, which hold the few products that there are, and are brought to two limbs at the end.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
fn vectors<const PRIMES: usize>(
    modulus: u128,
    counts: [(u128, f64); PRIMES],
    shares: &[u64],
    plus: u128,
    [low, high]: [&mut [u64]; 2],
) {
    let all = low.len();
    let plus = digits(plus).map(|x| _mm512_set1_epi64(x));
    // Less so many times Q is as many times 2^128 - Q more, of which bits from 128 on are dropped.
    let less = digits(modulus.wrapping_neg()).map(|x| _mm512_set1_epi64(x));
    let counts =
        counts.map(|(count, part)| (digits(count).map(|x| _mm512_set1_epi64(x)), _mm512_set1_pd(part)));
    let round = _mm512_set1_pd(Recombination::ROUND);
    let mask = _mm512_set1_epi64((1 << 52) - 1);
    for at in (0..all).step_by(8) {
        let (mut sums, mut turns) = (plus, _mm512_setzero_pd());
        for (i, (count, part)) in counts.iter().enumerate() {
            // SAFETY: eight shares of each prime from `at` on, as the caller has made sure.
            let share = unsafe { _mm512_loadu_si512(shares.as_ptr().add(i * all + at).cast()) };
            sums = add(sums, share, count);
            turns = _mm512_add_pd(turns, _mm512_mul_pd(_mm512_cvtepi64_pd(share), *part));
        }
        let turns =
            _mm512_sub_epi64(_mm512_castpd_si512(_mm512_add_pd(turns, round)), _mm512_castpd_si512(round));
        let [a, b, c] = add(sums, turns, &less);
        let b = _mm512_add_epi64(b, _mm512_srli_epi64::<52>(a));
        let c = _mm512_add_epi64(c, _mm512_srli_epi64::<52>(b));
        let (a, b) = (_mm512_and_si512(a, mask), _mm512_and_si512(b, mask));
        let words = [
            _mm512_or_si512(a, _mm512_slli_epi64::<52>(b)),
            _mm512_or_si512(_mm512_srli_epi64::<12>(b), _mm512_slli_epi64::<40>(c)),
        ];
        for (out, words) in [&mut *low, &mut *high].into_iter().zip(words) {
            // SAFETY: eight words from `at` on, as above.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().add(at).cast(), words) };
        }
    }
}

/// `sums` plus `x` times three digits, without what lies above the third.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn add([a, b, c]: [__m512i; 3], x: __m512i, digits: &[__m512i; 3]) -> [__m512i; 3] {
    let (a, carry) = (_mm512_madd52lo_epu64(a, x, digits[0]), _mm512_madd52hi_epu64(b, x, digits[0]));
    let (b, carry) = (_mm512_madd52lo_epu64(carry, x, digits[1]), _mm512_madd52hi_epu64(c, x, digits[1]));
    [a, b, _mm512_madd52lo_epu64(carry, x, digits[2])]
}
