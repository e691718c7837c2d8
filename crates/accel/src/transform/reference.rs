//! The definition of the transform operation, in plain arithmetic: what every device is compared with.

use blindcore_math::Prime;
use blindcore_math::ntt;

use super::{Direction, Ring};
use crate::Error;

/// Transforms polynomials where they lie, `[polynomial][prime][coefficient]`.
///
/// # Errors
/// The ring has no transform, the words are not a whole number of polynomials, or one is not a residue.
pub fn run(ring: &Ring, direction: Direction, words: &mut [u64]) -> Result<(), Error> {
    ring.check()?;
    ring.check_words(words)?;
    for (words, &prime) in words.chunks_exact_mut(ring.degree).zip(ring.primes.iter().cycle()) {
        let psi = ntt::root(prime, ring.degree).expect("checked");
        match direction {
            Direction::Forward => {
                let values = evaluate(prime, psi, words);
                for (i, value) in values.into_iter().enumerate() {
                    words[reverse(i, ring.degree)] = value;
                }
            }
            Direction::Inverse => {
                // a_j = (1/d) psi^-j sum_i v_i psi^(-2ij): the values, taken for a polynomial, at the powers of psi^-2.
                let values: Vec<u64> = (0..ring.degree).map(|i| words[reverse(i, ring.degree)]).collect();
                let inverse = |x: u64| power(prime, x, prime.value() - 2);
                let back = inverse(psi);
                let sums = at_powers(prime, mul(prime, back, back), &values);
                let mut factor = inverse(ring.degree as u64);
                for (word, sum) in words.iter_mut().zip(sums) {
                    *word = mul(prime, sum, factor);
                    factor = mul(prime, factor, back);
                }
            }
        }
    }
    Ok(())
}

/// a * b modulo X^d + 1 and a prime, coefficient by coefficient.
#[must_use]
pub fn negacyclic(prime: Prime, a: &[u64], b: &[u64]) -> Vec<u64> {
    let d = a.len();
    let mut out = vec![0; d];
    for (i, &a) in a.iter().enumerate() {
        for (j, &b) in b.iter().enumerate() {
            let product = mul(prime, a, b);
            // X^d = -1
            let term = if i + j < d { product } else { prime.reduce(u128::from(prime.value() - product)) };
            let at = &mut out[(i + j) % d];
            *at = prime.reduce(u128::from(*at) + u128::from(term));
        }
    }
    out
}

/// The values of a polynomial at psi^(2i + 1), i = 0..d-1.
fn evaluate(prime: Prime, psi: u64, coefficients: &[u64]) -> Vec<u64> {
    // a(psi^(2i+1)) = sum_j (a_j psi^j) (psi^2)^(ij)
    let mut factor = 1;
    let scaled: Vec<u64> = coefficients
        .iter()
        .map(|&coefficient| {
            let scaled = mul(prime, coefficient, factor);
            factor = mul(prime, factor, psi);
            scaled
        })
        .collect();
    at_powers(prime, mul(prime, psi, psi), &scaled)
}

/// The values of a polynomial of n coefficients, n a power of two, at the powers of `root`, an n-th root of unity: those at
/// even and odd powers apart (Cooley and Tukey 1965).
fn at_powers(prime: Prime, root: u64, coefficients: &[u64]) -> Vec<u64> {
    let n = coefficients.len();
    if n == 1 {
        return coefficients.to_vec();
    }
    let every_other = |first: usize| coefficients[first..].iter().step_by(2).copied().collect::<Vec<_>>();
    let square = mul(prime, root, root);
    let even = at_powers(prime, square, &every_other(0));
    let odd = at_powers(prime, square, &every_other(1));
    let mut out = vec![0; n];
    let mut power = 1;
    for i in 0..n / 2 {
        let term = mul(prime, power, odd[i]);
        out[i] = prime.reduce(u128::from(even[i]) + u128::from(term));
        out[i + n / 2] = prime.reduce(u128::from(even[i]) + u128::from(prime.value() - term));
        power = mul(prime, power, root);
    }
    out
}

/// The log2(`n`) bits of `i`, the other way round.
fn reverse(i: usize, n: usize) -> usize {
    i.reverse_bits() >> (usize::BITS - n.ilog2())
}

fn mul(prime: Prime, a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(prime.value())) as u64
}

fn power(prime: Prime, mut base: u64, mut exponent: u64) -> u64 {
    let mut power = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = mul(prime, power, base);
        }
        base = mul(prime, base, base);
        exponent >>= 1;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_polynomials_at_the_roots() {
        let ring = Ring::of_bits(128, &[30, 61]).unwrap();
        let words: Vec<u64> = (0..256u64).map(|i| i * i + 1).collect();
        let mut values = words.clone();
        run(&ring, Direction::Forward, &mut values).unwrap();
        for ((words, values), &prime) in words.chunks(128).zip(values.chunks(128)).zip(&ring.primes) {
            let psi = ntt::root(prime, 128).unwrap();
            assert_eq!(power(prime, psi, 128), prime.value() - 1);
            for (i, value) in values.iter().enumerate() {
                let at = power(prime, psi, 2 * reverse(i, 128) as u64 + 1);
                let sum = words
                    .iter()
                    .rev()
                    .fold(0, |sum, &c| prime.reduce(u128::from(mul(prime, sum, at)) + u128::from(c)));
                assert_eq!(*value, sum, "{i}");
            }
        }
        run(&ring, Direction::Inverse, &mut values).unwrap();
        assert_eq!(values, words);
    }

    #[test]
    fn rings_without_transforms_are_refused() {
        let ring = Ring::of_bits(1024, &[30]).unwrap();
        let refused = |ring: &Ring| ring.check().unwrap_err().to_string();
        assert!(refused(&Ring { degree: 1000, ..ring.clone() }).contains("1000"), "degree");
        assert!(refused(&Ring { primes: vec![], ..ring.clone() }).contains("no primes"));
        assert!(refused(&Ring { primes: [ring.primes[0]; 2].to_vec(), ..ring.clone() }).contains("twice"));
        assert!(
            refused(&Ring { primes: vec![Prime::new(65_521).unwrap()], ..ring.clone() })
                .contains("2048 divides")
        );
        assert!(Ring::of_bits(1024, &[20; 40]).unwrap_err().to_string().contains("choose more bits"));
        let mut words = vec![0; 1024];
        words[7] = ring.primes[0].value();
        assert_eq!(ring.check_words(&words), Err(Error::NotReduced { position: 7, count: 1024 }));
        assert!(ring.check_words(&words[1..]).unwrap_err().to_string().contains("a multiple of 1024"));
    }
}
