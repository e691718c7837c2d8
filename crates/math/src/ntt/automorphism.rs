//! The automorphisms of a ring, X to X^k, on coefficients and on values.

use super::{NttError, check_degree};
use crate::Prime;

/// The automorphism X -> X^k of polynomials modulo X^d + 1, k odd.
///
/// On values it is a permutation, the same for every prime. In *orbit order* it is a rotation where k is a power of 5: see
/// [`orbit`].
///
/// ```
/// use blindcore_math::ntt::{Automorphism, primes};
///
/// let prime = primes(30, 128)?.next().expect("there is one");
/// let mut x = vec![0; 128];
/// x[1] = 7; // 7 X
/// let mut out = vec![0; 128];
/// Automorphism::new(128, 129)?.coefficients(prime, &x, &mut out); // X^129 = -X
/// assert_eq!(out[1], prime.value() - 7);
/// # Ok::<(), blindcore_math::ntt::NttError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Automorphism {
    degree: usize,
    exponent: usize,
    /// Which value comes to each place.
    from: Vec<u32>,
}

impl Automorphism {
    /// X -> X^`exponent` for polynomials of `degree` coefficients; the exponent counts modulo 2 * `degree`.
    ///
    /// # Errors
    /// The degree is not one that a ring has here; or the exponent is even.
    pub fn new(degree: usize, exponent: usize) -> Result<Self, NttError> {
        check_degree(degree)?;
        if exponent.is_multiple_of(2) {
            return Err(NttError::EvenExponent(exponent));
        }
        let exponent = exponent % (2 * degree);
        // The value at psi^e of a(X^k) is that of a at psi^(k e).
        let from = (0..degree)
            .map(|i| place(power_at(i, degree) * exponent % (2 * degree), degree) as u32)
            .collect();
        Ok(Self { degree, exponent, from })
    }

    /// k, below 2d.
    #[must_use]
    pub fn exponent(&self) -> usize {
        self.exponent
    }

    /// `out` = a(X^k), both by coefficients: residues modulo `prime`. The time depends on the degree alone.
    ///
    /// # Panics
    /// There are not as many coefficients as the degree.
    pub fn coefficients(&self, prime: Prime, a: &[u64], out: &mut [u64]) {
        assert!(a.len() == self.degree && out.len() == self.degree, "as many coefficients as the degree");
        let q = prime.value();
        let mut to = 0;
        for &coefficient in a {
            // X^d = -1: beyond d the sign turns. What is negated may be secret; where it goes is not.
            let (at, negative) = (to % self.degree, to >= self.degree);
            let negated = q - coefficient;
            let negated = negated.min(negated.wrapping_sub(q));
            out[at] = if negative { negated } else { coefficient };
            to = (to + self.exponent) % (2 * self.degree);
        }
    }

    /// `out` = a(X^k), both by values in the transform's order. The time depends on the degree alone.
    ///
    /// # Panics
    /// There are not as many values as the degree.
    pub fn values(&self, a: &[u64], out: &mut [u64]) {
        assert!(a.len() == self.degree && out.len() == self.degree, "as many values as the degree");
        for (out, &from) in out.iter_mut().zip(&self.from) {
            *out = a[from as usize];
        }
    }
}

/// For each place of the orbit order, the place of that value in the transform's order.
///
/// The odd powers of psi are psi^(5^j) and psi^(-5^j), j = 0..d/2-1. In orbit order the values at the first come first, by j,
/// and then those at the others; so X -> X^(5^t) turns each half to the left by t places, and X -> X^-1 swaps the halves: a
/// kernel reads neighbours where the transform's order has it gather. Source: the rotations of BFV's slots (Gentry, Halevi and
/// Smart 2012, section 2).
///
/// # Errors
/// The degree is not one that a ring has here.
pub fn orbit(degree: usize) -> Result<Vec<u32>, NttError> {
    check_degree(degree)?;
    let order = 2 * degree;
    let powers = || std::iter::successors(Some(1), move |power| Some(power * 5 % order)).take(degree / 2);
    let all = powers().chain(powers().map(|power| order - power));
    Ok(all.map(|power| place(power, degree) as u32).collect())
}

/// The power of psi whose value stands at `place`.
fn power_at(place: usize, degree: usize) -> usize {
    2 * reverse(place, degree) + 1
}

/// Where the value at psi^`power` stands.
fn place(power: usize, degree: usize) -> usize {
    reverse((power - 1) / 2, degree)
}

fn reverse(i: usize, degree: usize) -> usize {
    i.reverse_bits() >> (usize::BITS - degree.ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ntt::{Ntt, primes};

    fn example(prime: Prime, degree: usize) -> Vec<u64> {
        (0..degree as u64).map(|i| (i * i * i + 7 * i) % prime.value()).collect()
    }

    #[test]
    fn values_and_coefficients_agree() {
        for degree in [128, 2048] {
            let prime = primes(31, degree).unwrap().next().unwrap();
            let ntt = Ntt::new(prime, degree).unwrap();
            let a = example(prime, degree);
            let mut values = a.clone();
            ntt.forward(&mut values);
            for exponent in [1, 3, 5, 25, degree - 1, degree + 1, 2 * degree - 1, 2 * degree + 3] {
                let automorphism = Automorphism::new(degree, exponent).unwrap();
                let (mut by_coefficients, mut by_values) = (vec![0; degree], vec![0; degree]);
                automorphism.coefficients(prime, &a, &mut by_coefficients);
                automorphism.values(&values, &mut by_values);
                ntt.forward(&mut by_coefficients);
                assert!(by_coefficients == by_values, "X^{exponent} at {degree}");
            }
        }
        assert_eq!(Automorphism::new(128, 4).err(), Some(NttError::EvenExponent(4)));
    }

    #[test]
    fn coefficients_go_where_the_definition_says() {
        let (degree, prime) = (128, Prime::new(65_537).unwrap());
        let a = example(prime, degree);
        for exponent in (1..2 * degree).step_by(2) {
            let mut out = vec![0; degree];
            Automorphism::new(degree, exponent).unwrap().coefficients(prime, &a, &mut out);
            for (i, &coefficient) in a.iter().enumerate() {
                let power = i * exponent % (2 * degree);
                let want =
                    if power < degree { coefficient } else { (prime.value() - coefficient) % prime.value() };
                assert_eq!(out[power % degree], want, "X^{exponent}, coefficient {i}");
            }
        }
    }

    #[test]
    fn in_orbit_order_a_power_of_five_is_a_rotation() {
        for degree in [128, 1024] {
            let orbit = orbit(degree).unwrap();
            let mut places = orbit.clone();
            places.sort_unstable();
            assert!(places.into_iter().eq(0..degree as u32), "every value once");
            let values: Vec<u64> = (0..degree as u64).collect();
            let ordered = |values: &[u64]| orbit.iter().map(|&at| values[at as usize]).collect::<Vec<_>>();
            let before = ordered(&values);
            for turns in [1, 2, 7, degree / 2 - 1] {
                let power = (0..turns).fold(1, |power, _| power * 5 % (2 * degree));
                let mut out = vec![0; degree];
                Automorphism::new(degree, power).unwrap().values(&values, &mut out);
                let mut want = before.clone();
                for half in want.chunks_mut(degree / 2) {
                    half.rotate_left(turns);
                }
                assert_eq!(ordered(&out), want, "5^{turns}");
            }
            let mut out = vec![0; degree];
            Automorphism::new(degree, 2 * degree - 1).unwrap().values(&values, &mut out);
            let mut want = before;
            want.rotate_left(degree / 2);
            assert_eq!(ordered(&out), want, "X^-1");
        }
    }
}
