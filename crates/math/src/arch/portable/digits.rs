//! Signed digits, for the compiler to vectorise.

use crate::{CutDigit, Prime, SignedDigits};

/// Residues at a time: what stays in registers or the first cache.
const RUN: usize = 64;

/// Written so that the compiler vectorises it for whichever instruction set it is inlined into.
#[inline(always)]
pub(crate) fn split_generic(digits: &SignedDigits, residues: &[u64], out: &mut [u64]) {
    let SignedDigits { prime, count, bits, dropped } = *digits;
    let q = prime.value();
    let (half, mask) = (1i64 << (bits - 1), (1i64 << bits) - 1);
    let rounding = if dropped > 0 { 1i64 << (dropped - 1) } else { 0 };
    let residue = |digit: i64| (digit as u64).wrapping_add(q & (digit >> 63) as u64);
    for (run, at) in residues.chunks(RUN).zip((0..).step_by(RUN)) {
        let mut rest = [0i64; RUN];
        let rest = &mut rest[..run.len()];
        for (rest, x) in rest.iter_mut().zip(run) {
            let x = *x as i64;
            let centred = x - (q as i64 & ((q as i64 / 2 - x) >> 63));
            *rest = (centred + rounding) >> dropped;
        }
        for k in 0..count {
            let out = &mut out[k * residues.len() + at..][..rest.len()];
            if k + 1 == count {
                out.iter_mut().zip(&*rest).for_each(|(out, x)| *out = residue(*x));
                break;
            }
            for (out, x) in out.iter_mut().zip(&mut *rest) {
                let digit = ((*x + half) & mask) - half;
                *x = (*x - digit) >> bits;
                *out = residue(digit);
            }
        }
    }
}

/// Likewise, for integers of two limbs.
#[inline(always)]
pub(crate) fn cut_generic(cut: &CutDigit, [low, high]: [&[u64]; 2], primes: &[Prime], out: &mut [u64]) {
    let (mask, half) = cut.bits.map_or((-1, 0), |bits| ((1i64 << bits) - 1, 1i64 << (bits - 1)));
    let (within, above) = (cut.shift % u64::BITS, cut.shift >= u64::BITS);
    let (all, mut digits) = (low.len().max(1), [0i64; RUN]);
    for (at, (low, high)) in (0..).step_by(RUN).zip(low.chunks(RUN).zip(high.chunks(RUN))) {
        let digits = &mut digits[..low.len()];
        for ((digit, low), high) in digits.iter_mut().zip(low).zip(high) {
            // In two steps: a shift by 64 is none.
            let both = (low >> within | high << 1 << (u64::BITS - 1 - within)) as i64;
            let rest = if above { *high as i64 >> within } else { both };
            *digit = (rest & mask) - half;
        }
        for (prime, out) in primes.iter().zip(out.chunks_exact_mut(all)) {
            let q = prime.value();
            for (out, digit) in out[at..].iter_mut().zip(&*digits) {
                *out = (*digit as u64).wrapping_add(q & (*digit >> 63) as u64);
            }
        }
    }
}
