//! Picking one of t ciphertexts by an encrypted monomial.
//!
//! With z = X^(2d / t), the ciphertexts c_0..c_(t-1) are the values of a polynomial at z^0..z^(t-1):
//!
//! ```text
//!   t p_m = sum_i c_i z^-im          c_k = sum_m p_m z^km
//! ```
//!
//! The client sends an encryption of z^k; Horner's rule multiplies by it t - 1 times. Source: InsPIRe interpolates the database
//! in the same way; to interpolate the packed ciphertexts keeps its bytes as they are.

use blindcore_math::ntt::Ntt;
use blindcore_math::{Elementwise, Prime, SignedDigits};

use super::params::DEGREE;

/// 1 / t.
pub(super) fn share(prime: Prime, picks: usize) -> u64 {
    let half = |x: u64| prime.reduce(u128::from(x) * u128::from(prime.value().div_ceil(2)));
    (0..picks.ilog2()).fold(1, |x, _| half(x))
}

/// Turns c_0..c_(t-1), each at its [`place_of`](super::params::place_of), into t p_0..t p_(t-1) in their order, by coefficients, in place. Whoever made
/// them multiplied them by [`share`] at less cost, or does it after.
///
/// `make` makes what lies at a place, soon before it is used.
pub(super) fn interpolate(
    modulo: &Elementwise,
    polynomials: &mut [u64],
    make: &mut dyn FnMut(usize, &mut [u64]),
) {
    halves(modulo, polynomials, 0, make, &mut [0; DEGREE]);
}

/// Cooley and Tukey's transform, halves first, so that all but the largest lie in a cache. The first of these polynomials is
/// at `first` of all.
fn halves(
    modulo: &Elementwise,
    polynomials: &mut [u64],
    first: usize,
    make: &mut dyn FnMut(usize, &mut [u64]),
    turned: &mut [u64; DEGREE],
) {
    let count = polynomials.len() / DEGREE;
    if count == 1 {
        return make(first, polynomials);
    }
    let (low, high) = polynomials.split_at_mut(count / 2 * DEGREE);
    halves(modulo, low, first, make, turned);
    halves(modulo, high, first + count / 2, make, turned);
    let pairs = low.chunks_exact_mut(DEGREE).zip(high.chunks_exact_mut(DEGREE));
    for (k, (low, high)) in pairs.enumerate() {
        // The root of this length is X^(2d / count); its k-th power, inverted.
        turn(modulo, 2 * DEGREE - k * (2 * DEGREE / count), high, turned);
        modulo.sum_and_difference(low, turned, high);
    }
}

/// `out` = `a` X^`power`, by coefficients.
fn turn(modulo: &Elementwise, power: usize, a: &[u64], out: &mut [u64]) {
    let (turn, negative) = (power % DEGREE, power / DEGREE % 2 == 1);
    let (stay, wrap) = a.split_at(DEGREE - turn);
    let (to_wrap, to_stay) = out.split_at_mut(turn);
    for (from, to, negative) in [(stay, to_stay, negative), (wrap, to_wrap, !negative)] {
        if negative {
            to.fill(0);
            modulo.subtract(to, from);
        } else {
            to.copy_from_slice(from);
        }
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
        let mut digits = [0; 2].map(|_| vec![0; self.digits.count * DEGREE]);
        for (mask, body) in terms {
            for (sum, digits) in sum.iter().rev().zip(&mut digits) {
                self.digits.split(sum, digits);
                digits.chunks_exact_mut(DEGREE).for_each(|digit| ntt.forward(digit));
            }
            for (sum, (rows, add)) in sum.iter_mut().zip([(&self.masks, mask), (&self.bodies, body)]) {
                // As the rows lie: the body's digits meet those of z^k, the mask's those of -z^k s.
                let digit = |i: usize| &digits[i % 2][i / 2 * DEGREE..][..DEGREE];
                let pairs: Vec<_> = rows.iter().enumerate().map(|(i, row)| [digit(i), row]).collect();
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
    use crate::schemes::hintless::params::{CLASSICAL, place_of};

    #[test]
    fn the_polynomial_goes_through_the_ciphertexts() {
        let prime = || CLASSICAL.prime();
        for picks in [2usize, 4, 16, 64] {
            let wanted: Vec<u64> =
                (0..picks * DEGREE).map(|i| prime().reduce((i as u128 + 7).pow(7))).collect();
            let modulo = Elementwise::new(prime());
            let mut polynomials = vec![0; wanted.len()];
            for (choice, wanted) in wanted.chunks_exact(DEGREE).enumerate() {
                polynomials[place_of(picks, choice) * DEGREE..][..DEGREE].copy_from_slice(wanted);
            }
            let mut made = Vec::new();
            interpolate(&modulo, &mut polynomials, &mut |place, _| made.push(place));
            assert!(made.into_iter().eq(0..picks));
            let share = vec![share(prime(), picks); DEGREE];
            for k in [0, 1, picks / 2, picks - 1] {
                let mut sum = vec![0; DEGREE];
                let mut term = vec![0; DEGREE];
                for (m, polynomial) in polynomials.chunks_exact(DEGREE).enumerate() {
                    let power = 2 * DEGREE / picks * (k * m % picks);
                    turn(&modulo, power, polynomial, &mut term);
                    modulo.multiply_add(&mut sum, &term, &share);
                }
                assert!(sum == wanted[k * DEGREE..][..DEGREE], "{k} of {picks}");
            }
        }
    }
}
