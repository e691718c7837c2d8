//! What noise is to be expected, carried by each ciphertext and bounded.
//!
//! A ciphertext's phase is (Q / p) m + e. [`Noise`] bounds e by two numbers: a part that has a *deviation*, coefficient by
//! coefficient, with tails no heavier than a Gaussian's (rounded binomials and ternary secrets have such tails), and a part that is at
//! most *worst*. Neither depends on what is encrypted: an estimate leaks nothing.
//!
//! Sums of noises that may depend on each other add their deviations, as Minkowski's inequality has it, so that x + x is bounded too;
//! noise that an operation adds from errors of its own is added by variances. A polynomial that somebody else may choose (a plaintext
//! factor, a mask that is taken apart into digits) counts with its largest norm. Bounds hold but for a chance of
//! 2^-40 per polynomial: the noise of honest masks is about a bit below.
//!
//! Each operation states its own rule beside its code, as a function of [`Noise`].

use crate::Ring;

#[cfg(debug_assertions)]
static WATCHED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Whether each operation of this process prints the budget that its result has left to standard error. A debug build alone has this.
#[cfg(debug_assertions)]
pub fn print_budgets(print: bool) {
    WATCHED.store(print, std::sync::atomic::Ordering::Relaxed);
}

/// Prints what is left, where [`print_budgets`] asked for it.
#[inline]
pub(crate) fn watch(operation: &str, noise: &Noise, ring: &Ring, plaintext: u64) {
    #[cfg(debug_assertions)]
    #[allow(clippy::print_stderr, reason = "a debugging aid that its user turns on")]
    if WATCHED.load(std::sync::atomic::Ordering::Relaxed) {
        let (bits, budget) = (ring.bits(), noise.budget(ring, plaintext));
        eprintln!("rlwe: {operation}: {budget:.1} bits left of {bits}");
    }
    #[cfg(not(debug_assertions))]
    let _ = (operation, noise, ring, plaintext);
}

/// The chance that a bound is passed by any coefficient of a polynomial, as a power of two.
pub const FAILURE: f64 = -40.0;

/// A bound on the noise of each coefficient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// The deviation of the part that is random.
    pub deviation: f64,
    /// The most of the part that is not.
    pub worst: f64,
}

impl Noise {
    /// None at all.
    pub const NONE: Self = Self { deviation: 0.0, worst: 0.0 };

    /// Random noise of a variance.
    #[must_use]
    pub fn of_variance(variance: f64) -> Self {
        Self { deviation: variance.sqrt(), worst: 0.0 }
    }

    /// Noise of at most this.
    #[must_use]
    pub fn at_most(worst: f64) -> Self {
        Self { deviation: 0.0, worst }
    }

    /// What no coefficient of a polynomial of `degree` passes but for a chance of 2^-40.
    ///
    /// A tail like a Gaussian's passes t deviations with a chance of 2 e^(-t^2 / 2) at most.
    #[must_use]
    pub fn bound(&self, degree: usize) -> f64 {
        let bits = 1.0 - FAILURE + (degree as f64).log2();
        self.worst + self.deviation * (2.0 * std::f64::consts::LN_2 * bits).sqrt()
    }

    /// Bits that the noise may still grow by before a plaintext modulo `plaintext` is at risk; negative where it is.
    #[must_use]
    pub fn budget(&self, ring: &Ring, plaintext: u64) -> f64 {
        limit(ring, plaintext).log2() - self.bound(ring.degree()).log2()
    }

    /// The chance, as a power of two, that a plaintext modulo `plaintext` comes out wrong.
    #[must_use]
    pub fn failure(&self, ring: &Ring, plaintext: u64) -> f64 {
        let room = (limit(ring, plaintext) - self.worst) / self.deviation;
        if room <= 0.0 {
            return 0.0;
        }
        (1.0 + (ring.degree() as f64).log2() - room * room / (2.0 * std::f64::consts::LN_2)).min(0.0)
    }

    /// Of a sum of two ciphertexts, whatever they have to do with each other.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { deviation: self.deviation + other.deviation, worst: self.worst + other.worst }
    }

    /// Of a sum of two ciphertexts whose errors are independent.
    #[must_use]
    pub fn plus_independent(self, other: Self) -> Self {
        Self { deviation: self.deviation.hypot(other.deviation), worst: self.worst + other.worst }
    }

    /// Of either of two ciphertexts.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { deviation: self.deviation.max(other.deviation), worst: self.worst.max(other.worst) }
    }

    /// Of a ciphertext times a real number.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self { deviation: self.deviation * factor, worst: self.worst * factor }
    }

    /// Of a ciphertext times a polynomial that does not depend on its noise: `length` is the root of the sum of its coefficients'
    /// squares, `sum` that of their magnitudes.
    #[must_use]
    pub fn times_polynomial(self, length: f64, sum: f64) -> Self {
        Self { deviation: self.deviation * length, worst: self.worst * sum }
    }
}

/// Q / 2p: what noise has to stay below.
#[must_use]
pub fn limit(ring: &Ring, plaintext: u64) -> f64 {
    ring.modulus() as f64 / (2.0 * plaintext as f64)
}

/// How far a sum of `degree` squares may lie above its mean, as a factor, but for a chance far below 2^-40.
pub(crate) fn concentrated(degree: usize) -> f64 {
    1.0 + 8.0 * (2.0 / degree as f64).sqrt()
}

/// The sum of the squares of a ternary secret's coefficients, at most.
pub(crate) fn secret_weight(degree: usize) -> f64 {
    degree as f64 * TERNARY * concentrated(degree)
}

/// The variance of a ternary coefficient.
pub(crate) const TERNARY: f64 = 2.0 / 3.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_a_gaussian() {
        let ring = Ring::of_bits(2048, &[48]).unwrap();
        let noise = Noise::of_variance(10.5);
        // sqrt(2 ln 2 * 52) = 8.49 deviations.
        assert!((noise.bound(2048) / 3.2404 - 8.490).abs() < 0.01);
        assert!((Noise::at_most(5.0).bound(2048) - 5.0).abs() < 1e-9);
        let at_limit = Noise::of_variance((limit(&ring, 256) / 8.490).powi(2));
        assert!((at_limit.failure(&ring, 256) - FAILURE).abs() < 0.1);
        assert!(at_limit.budget(&ring, 256).abs() < 0.01);
        assert_eq!(at_limit.times(20.0).failure(&ring, 256), 0.0);
        let (three, four) = (Noise::of_variance(9.0), Noise::of_variance(16.0));
        assert_eq!(three.plus(four).deviation, 7.0);
        assert_eq!(three.plus_independent(four).deviation, 5.0);
    }
}
