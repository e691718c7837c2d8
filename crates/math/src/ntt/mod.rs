//! The negacyclic number-theoretic transform: polynomials modulo X^d + 1 and a prime, to and from their values.
//!
//! With psi a root of X^d + 1 modulo q, the forward transform takes the coefficients a_0..a_(d-1) to the values
//! a(psi^(2 rev(i) + 1)), i = 0..d-1, where rev reverses the log2(d) bits of i. In that order neither direction moves data for
//! order's sake, and a product of polynomials modulo X^d + 1 is a product value by value.
//!
//! Source: Longa and Naehrig 2016 (Algorithms 1 and 2), with the lazy butterflies of Harvey 2014 (Algorithms 2 and 3) and
//! quotients worked out beforehand (Shoup). psi is x^((q-1)/2d) for the least x that is not a square modulo q: the same on
//! every machine and device.
//!
//! ```
//! use blindcore_math::ntt::{Ntt, primes};
//!
//! let prime = primes(50, 1024)?.next().expect("primes are dense enough");
//! let ntt = Ntt::new(prime, 1024)?;
//!
//! // (1 + X) (1 - X) = 1 - X^2
//! let polynomial = |first: u64| [[1, first].as_slice(), &[0; 1022]].concat();
//! let (mut a, mut b) = (polynomial(1), polynomial(prime.value() - 1));
//! ntt.forward(&mut a);
//! ntt.forward(&mut b);
//! for (a, b) in a.iter_mut().zip(&b) {
//!     *a = prime.reduce(u128::from(*a) * u128::from(*b));
//! }
//! ntt.inverse(&mut a);
//! assert_eq!(a[..4], [1, 0, prime.value() - 1, 0]);
//! # Ok::<(), blindcore_math::ntt::NttError>(())
//! ```

mod automorphism;
mod primes;
pub(crate) mod tables;

pub use automorphism::{Automorphism, orbit};
pub use primes::primes;

use crate::Prime;
use crate::arch;
use crate::features::{Ifma, Level, within};
use tables::{Tables, power};

/// The least degree.
pub const MIN_DEGREE: usize = 128;
/// The largest degree.
pub const MAX_DEGREE: usize = 1 << 15;

/// Why there is no transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NttError {
    /// The degree is out of range or no power of two.
    #[error("a ring of degree {0} is not supported; choose a power of two from {MIN_DEGREE} to {MAX_DEGREE}")]
    Degree(usize),
    /// X^d + 1 has no roots modulo the prime.
    #[error("modulo {prime}, X^{degree} + 1 has no roots; choose a prime q for which {} divides q - 1", 2 * degree)]
    NoRoot {
        /// q.
        prime: u64,
        /// d.
        degree: usize,
    },
    /// X -> X^k is no automorphism for even k.
    #[error("X to X^{0} is not an automorphism of the ring; choose an odd exponent")]
    EvenExponent(usize),
    /// No primes of this size.
    #[error("primes of {0} bits can't be found for a ring; choose from 20 to 61 bits")]
    Bits(u32),
}

/// Refuses a degree that is not a power of two in range.
fn check_degree(degree: usize) -> Result<(), NttError> {
    if degree.is_power_of_two() && (MIN_DEGREE..=MAX_DEGREE).contains(&degree) {
        Ok(())
    } else {
        Err(NttError::Degree(degree))
    }
}

/// psi: a root of X^`degree` + 1 modulo `prime`, x^((q-1)/2d) for the least x that is not a square.
///
/// # Errors
/// The degree is not a power of two from 128 to 32768, or 2 * `degree` does not divide `prime` - 1.
pub fn root(prime: Prime, degree: usize) -> Result<u64, NttError> {
    check_degree(degree)?;
    let q = prime.value();
    if !(q - 1).is_multiple_of(2 * degree as u64) {
        return Err(NttError::NoRoot { prime: q, degree });
    }
    // Euler's criterion.
    let least = (2..).find(|&x| power(prime, x, (q - 1) / 2) == q - 1).expect("half of all are no squares");
    Ok(power(prime, least, (q - 1) / (2 * degree as u64)))
}

/// The transform for a prime and a degree, with its roots of unity worked out.
pub struct Ntt {
    prime: Prime,
    tables: Tables,
    /// For the fastest kernel that this machine and the prime allow.
    fast: Option<arch::NttTables>,
}

impl Ntt {
    /// The transform modulo `prime` and X^`degree` + 1.
    ///
    /// # Errors
    /// The degree is not a power of two from 128 to 32768, or 2 * `degree` does not divide `prime` - 1.
    pub fn new(prime: Prime, degree: usize) -> Result<Self, NttError> {
        Self::with(prime, degree, within(Level::Avx512, Ifma::new))
    }

    /// As [`Self::new`], by IFMA where its token is given and the prime is below 2^50, else portable: for a device that
    /// stands for an instruction set.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with(prime: Prime, degree: usize, ifma: Option<Ifma>) -> Result<Self, NttError> {
        let psi = root(prime, degree)?;
        let tables = Tables::new(prime, degree, psi);
        let fast = ifma.and_then(|token| arch::NttTables::new(token, &tables));
        Ok(Self { prime, tables, fast })
    }

    /// q.
    #[must_use]
    pub fn prime(&self) -> Prime {
        self.prime
    }

    /// d: the coefficients of a polynomial.
    #[must_use]
    pub fn degree(&self) -> usize {
        self.tables.degree
    }

    /// Takes coefficients to values, in place. Residues in, residues out; the time depends on the length alone.
    ///
    /// # Panics
    /// There are not [`Self::degree`] coefficients.
    pub fn forward(&self, coefficients: &mut [u64]) {
        self.check(coefficients);
        match &self.fast {
            Some(fast) => fast.forward(coefficients),
            None => arch::ntt_forward(&self.tables, coefficients),
        }
    }

    /// Takes coefficients that are bytes, and zeros beyond them, to values.
    ///
    /// # Panics
    /// There is not room for [`Self::degree`] values, or there are more bytes.
    pub fn forward_bytes(&self, coefficients: &[u8], values: &mut [u64]) {
        arch::widen(coefficients, values);
        self.forward(values);
    }

    /// Takes values back to coefficients, in place. Residues in, residues out; the time depends on the length alone.
    ///
    /// # Panics
    /// There are not [`Self::degree`] values.
    pub fn inverse(&self, values: &mut [u64]) {
        self.check(values);
        match &self.fast {
            Some(fast) => fast.inverse(values),
            None => arch::ntt_inverse(&self.tables, values),
        }
    }

    fn check(&self, words: &[u64]) {
        assert_eq!(words.len(), self.tables.degree, "a polynomial has as many words as the ring's degree");
        debug_assert!(self.prime.are_residues(words), "a word is not a residue");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Primes at the edges of what kernels take: the least, 31 bits, where inner reductions begin (2^47), where IFMA ends
    /// (2^50), the largest.
    const BITS: [u32; 8] = [20, 31, 46, 47, 48, 50, 51, 61];

    fn each(mut test: impl FnMut(&Ntt)) {
        for degree in [128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768] {
            for bits in BITS {
                if let Some(prime) = primes(bits, degree).unwrap().next() {
                    test(&Ntt::new(prime, degree).unwrap());
                }
            }
        }
    }

    fn random(seed: u64, ntt: &Ntt) -> Vec<u64> {
        let mut x = seed;
        let mut next = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ntt.prime().reduce(u128::from(x ^ x >> 29) << 40 | u128::from(x))
        };
        (0..ntt.degree()).map(|_| next()).collect()
    }

    /// Residues at the edges, and random ones.
    fn inputs(ntt: &Ntt) -> Vec<Vec<u64>> {
        let (d, top) = (ntt.degree(), ntt.prime().value() - 1);
        let mut alternate = vec![0; d];
        alternate.iter_mut().step_by(2).for_each(|word| *word = top);
        let mut last = vec![0; d];
        last[d - 1] = top;
        vec![vec![0; d], vec![top; d], alternate, last, random(1, ntt), random(2, ntt)]
    }

    #[test]
    fn values_are_those_of_the_polynomial() {
        each(|ntt| {
            let (q, d) = (ntt.prime(), ntt.degree());
            let mul = |a: u64, b: u64| q.reduce(u128::from(a) * u128::from(b));
            let psi = root(q, d).unwrap();
            for coefficients in inputs(ntt) {
                let mut values = coefficients.clone();
                ntt.forward(&mut values);
                for i in [0, 1, 7, 8, 63, 64, d / 2 - 1, d / 2, d - 2, d - 1] {
                    let reversed = i.reverse_bits() >> (usize::BITS - d.ilog2());
                    let point = power(q, psi, 2 * reversed as u64 + 1);
                    let value = coefficients
                        .iter()
                        .rev()
                        .fold(0, |sum, &c| q.reduce(u128::from(mul(sum, point)) + u128::from(c)));
                    assert_eq!(values[i], value, "value {i} of {d} modulo {q:?}");
                }
            }
        });
    }

    #[test]
    fn bytes_are_coefficients() {
        each(|ntt| {
            for len in [0, 1, 77, ntt.degree()] {
                let bytes: Vec<u8> = (0..len).map(|i| (i * i / 3) as u8).collect();
                let mut values = vec![5; ntt.degree()];
                ntt.forward_bytes(&bytes, &mut values);
                let mut want: Vec<u64> = bytes.iter().map(|byte| u64::from(*byte)).collect();
                want.resize(ntt.degree(), 0);
                ntt.forward(&mut want);
                assert!(values == want, "{len} of {} modulo {:?}", ntt.degree(), ntt.prime());
            }
        });
    }

    #[test]
    fn the_inverse_undoes_it() {
        each(|ntt| {
            for coefficients in inputs(ntt) {
                let mut words = coefficients.clone();
                ntt.forward(&mut words);
                assert!(words.iter().all(|&word| word < ntt.prime().value()));
                ntt.inverse(&mut words);
                assert!(words == coefficients, "{} modulo {:?}", ntt.degree(), ntt.prime());
            }
        });
    }

    #[test]
    fn every_kernel_gives_the_same_bits() {
        each(|ntt| {
            let Some(fast) = &ntt.fast else { return };
            for input in inputs(ntt) {
                let (mut a, mut b) = (input.clone(), input.clone());
                arch::ntt_forward(&ntt.tables, &mut a);
                fast.forward(&mut b);
                assert!(a == b, "forward, {} modulo {:?}", ntt.degree(), ntt.prime());
                let (mut a, mut b) = (input.clone(), input);
                arch::ntt_inverse(&ntt.tables, &mut a);
                fast.inverse(&mut b);
                assert!(a == b, "inverse, {} modulo {:?}", ntt.degree(), ntt.prime());
            }
        });
    }

    #[test]
    fn a_product_of_values_is_the_negacyclic_convolution() {
        let degree = 1024;
        for bits in BITS {
            let ntt = Ntt::new(primes(bits, degree).unwrap().next().unwrap(), degree).unwrap();
            let q = ntt.prime();
            let (a, b) = (random(3, &ntt), random(4, &ntt));
            let mut want = vec![0u64; degree];
            for (i, &a) in a.iter().enumerate() {
                for (j, &b) in b.iter().enumerate() {
                    let product = q.reduce(u128::from(a) * u128::from(b));
                    let signed = if i + j < degree { product } else { q.value() - product };
                    let at = &mut want[(i + j) % degree];
                    *at = q.reduce(u128::from(*at) + u128::from(signed));
                }
            }
            let (mut a, mut b) = (a, b);
            ntt.forward(&mut a);
            ntt.forward(&mut b);
            let mut product: Vec<u64> =
                a.iter().zip(&b).map(|(a, b)| q.reduce(u128::from(*a) * u128::from(*b))).collect();
            ntt.inverse(&mut product);
            assert!(product == want, "modulo {q:?}");
        }
    }

    #[test]
    fn what_has_no_transform_is_refused() {
        let prime = Prime::new(0x3_ffff_ffff_c001).unwrap(); // 2^14 divides it less one
        for degree in [0, 1, 64, 1000, 1 << 16] {
            assert_eq!(Ntt::new(prime, degree).err(), Some(NttError::Degree(degree)));
            assert_eq!(primes(50, degree).err(), Some(NttError::Degree(degree)));
        }
        assert!(Ntt::new(prime, 8192).is_ok());
        let none = NttError::NoRoot { prime: prime.value(), degree: 16384 };
        assert_eq!(Ntt::new(prime, 16384).err(), Some(none));
        assert!(none.to_string().ends_with("choose a prime q for which 32768 divides q - 1"));
        assert_eq!(primes(62, 1024).err(), Some(NttError::Bits(62)));
    }
}
