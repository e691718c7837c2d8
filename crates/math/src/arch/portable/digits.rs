//! Signed digits, for the compiler to vectorise.

use crate::{CutDigit, Prime, Recombination, SignedDigits};

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

/// Integers from shares, as [`Recombination`] has it.
pub(crate) fn recombine(of: &Recombination, shares: &[u64], plus: u128, [low, high]: [&mut [u64]; 2]) {
    // With numbers that the compiler knows it unrolls them.
    match *of.counts {
        [a, b] => recombine_all(of.modulus, [a, b], shares, plus, [low, high]),
        [a, b, c] => recombine_all(of.modulus, [a, b, c], shares, plus, [low, high]),
        ref counts => recombine_all(of.modulus, counts, shares, plus, [low, high]),
    }
}

#[inline(always)]
fn recombine_all<C: AsRef<[(u128, f64)]>>(
    modulus: u128,
    counts: C,
    shares: &[u64],
    plus: u128,
    [low, high]: [&mut [u64]; 2],
) {
    let all = low.len();
    for (at, (low, high)) in low.iter_mut().zip(high).enumerate() {
        let (mut sum, mut turns) = (plus, 0.0);
        for (i, (count, part)) in counts.as_ref().iter().enumerate() {
            let share = shares[i * all + at];
            sum = sum.wrapping_add(count.wrapping_mul(u128::from(share)));
            turns += share as i64 as f64 * part;
        }
        let turns = (turns + Recombination::ROUND).to_bits().wrapping_sub(Recombination::ROUND.to_bits());
        sum = sum.wrapping_sub(modulus.wrapping_mul(u128::from(turns)));
        (*low, *high) = (sum as u64, (sum >> 64) as u64);
    }
}
