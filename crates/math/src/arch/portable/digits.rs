//! Signed digits, for the compiler to vectorise.

use crate::SignedDigits;

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
