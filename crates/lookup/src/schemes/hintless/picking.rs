//! Picking one of t ciphertexts by an encrypted monomial.
//!
//! With z = X^(2d / t), the ciphertexts c_0..c_(t-1) are the values of a polynomial at z^0..z^(t-1):
//!
//! ```text
//!   p_m = (1 / t) sum_i c_i z^-im          c_k = sum_m p_m z^km
//! ```
//!
//! The client sends an encryption of z^k; Horner's rule multiplies by it t - 1 times. Source: InsPIRe interpolates the database
//! in the same way; to interpolate the packed ciphertexts keeps its bytes as they are.

use blindcore_math::ntt::Ntt;
use blindcore_math::{Elementwise, Prime, SignedDigits};

use super::params::{DEGREE, Packed};

/// Polynomials of all ciphertexts `[choice][part]`, each part's by themselves: `[part][choice]`, with zeros up to t, in place.
/// There is room for t times the parts.
pub(super) fn parts<'a>(
    polynomials: &'a mut [u64],
    packed: &Packed,
    picks: usize,
) -> impl Iterator<Item = &'a mut [u64]> {
    let parts = packed.parts;
    if parts > 1 {
        let by_choice = polynomials.to_vec();
        for (choice, run) in by_choice.chunks_exact(parts * DEGREE).enumerate() {
            for (part, polynomial) in run.chunks_exact(DEGREE).enumerate() {
                polynomials[(part * picks + choice) * DEGREE..][..DEGREE].copy_from_slice(polynomial);
            }
        }
    }
    polynomials.chunks_exact_mut(picks * DEGREE)
}

/// Turns c_0..c_(t-1) into p_0..p_(t-1), by coefficients, in place.
pub(super) fn interpolate(prime: Prime, picks: usize, polynomials: &mut [u64]) {
    let modulo = Elementwise::new(prime);
    let half = |x: u64| prime.reduce(u128::from(x) * u128::from(prime.value().div_ceil(2)));
    let scale = vec![(0..picks.ilog2()).fold(1, |x, _| half(x)); DEGREE];
    let mut difference = vec![0; DEGREE];
    // Gentleman and Sande's transform; its outputs' order is reversed bit by bit.
    let mut len = picks / 2;
    while len > 0 {
        for pair in polynomials.chunks_exact_mut(2 * len * DEGREE) {
            let (low, high) = pair.split_at_mut(len * DEGREE);
            for (k, (low, high)) in
                low.chunks_exact_mut(DEGREE).zip(high.chunks_exact_mut(DEGREE)).enumerate()
            {
                difference.copy_from_slice(low);
                modulo.subtract(&mut difference, high);
                modulo.add(low, high);
                // The root of this length is z^(t / 2 len) = X^(d / len); its k-th power, inverted.
                rotate(prime, 2 * DEGREE - k * (DEGREE / len), &difference, high);
            }
        }
        len /= 2;
    }
    let bits = picks.ilog2();
    for i in 0..picks {
        let j = i.reverse_bits() >> (usize::BITS - bits);
        if i < j {
            let (head, tail) = polynomials.split_at_mut(j * DEGREE);
            head[i * DEGREE..][..DEGREE].swap_with_slice(&mut tail[..DEGREE]);
        }
    }
    for polynomial in polynomials.chunks_exact_mut(DEGREE) {
        modulo.multiply(polynomial, &scale);
    }
}

/// `out` = `a` X^`power`, by coefficients.
fn rotate(prime: Prime, power: usize, a: &[u64], out: &mut [u64]) {
    let q = prime.value();
    let (turn, negative) = (power % DEGREE, power / DEGREE % 2 == 1);
    let signed = |x: u64, negative: bool| {
        let negated = q - x;
        if negative { negated.min(negated.wrapping_sub(q)) } else { x }
    };
    let (stay, wrap) = a.split_at(DEGREE - turn);
    for (out, x) in out[turn..].iter_mut().zip(stay) {
        *out = signed(*x, negative);
    }
    for (out, x) in out[..turn].iter_mut().zip(wrap) {
        *out = signed(*x, !negative);
    }
}

/// What the client sends for picking, by values: for digit i rows that encrypt B^i 2^w z^k and -B^i 2^w z^k s, each a mask and a body.
pub(super) struct Picker {
    pub(super) digits: SignedDigits,
    pub(super) masks: Vec<Vec<u64>>,
    pub(super) bodies: Vec<Vec<u64>>,
}

impl Picker {
    /// The polynomial whose coefficients are these ciphertexts at z^k, by Horner's rule: mask and body by coefficients.
    pub(super) fn pick(&self, ntt: &Ntt, masks: &[u64], bodies: &[u64]) -> [Vec<u64>; 2] {
        let modulo = Elementwise::new(ntt.prime());
        let mut terms = masks.chunks_exact(DEGREE).zip(bodies.chunks_exact(DEGREE)).rev();
        let (mask, body) = terms.next().expect("there is one at least");
        let mut sum = [mask.to_vec(), body.to_vec()];
        // As the rows lie: the body's digits meet those of z^k, the mask's those of -z^k s.
        let mut split = vec![0; self.digits.count * DEGREE];
        let mut digits = vec![vec![0; DEGREE]; self.masks.len()];
        for (mask, body) in terms {
            for (half, sum) in sum.iter().rev().enumerate() {
                self.digits.split(sum, &mut split);
                for (number, split) in split.chunks_exact_mut(DEGREE).enumerate() {
                    ntt.forward(split);
                    digits[2 * number + half].copy_from_slice(split);
                }
            }
            for (sum, (rows, add)) in sum.iter_mut().zip([(&self.masks, mask), (&self.bodies, body)]) {
                let pairs: Vec<_> =
                    digits.iter().zip(rows).map(|(digit, row)| [&digit[..], &row[..]]).collect();
                sum.fill(0);
                modulo.multiply_sum(sum, &pairs);
                ntt.inverse(sum);
                modulo.add(sum, add);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemes::hintless::params::CLASSICAL;

    #[test]
    fn the_polynomial_goes_through_the_ciphertexts() {
        let prime = || CLASSICAL.prime();
        for picks in [2usize, 4, 16, 64] {
            let wanted: Vec<u64> =
                (0..picks * DEGREE).map(|i| prime().reduce((i as u128 + 7).pow(7))).collect();
            let mut polynomials = wanted.clone();
            interpolate(prime(), picks, &mut polynomials);
            let modulo = Elementwise::new(prime());
            for k in [0, 1, picks / 2, picks - 1] {
                let mut sum = vec![0; DEGREE];
                let mut term = vec![0; DEGREE];
                for (m, polynomial) in polynomials.chunks_exact(DEGREE).enumerate() {
                    rotate(prime(), 2 * DEGREE / picks * (k * m % picks), polynomial, &mut term);
                    modulo.add(&mut sum, &term);
                }
                assert!(sum == wanted[k * DEGREE..][..DEGREE], "{k} of {picks}");
            }
        }
    }
}
