//! The transform operation: polynomials of a ring to and from their values, modulo a set of primes.
//!
//! A ring is `Z_Q[X] / (X^d + 1)` with Q a product of primes, each 1 modulo 2d. A polynomial lies as `[prime][coefficient]`
//! in 64-bit words; the forward transform takes each prime's d coefficients to d values, in the order and at the roots of
//! [`blindcore_math::ntt`], so that a product of polynomials is a product value by value.
//!
//! ```
//! use blindcore_accel::transform::{Direction, Ring, reference};
//!
//! let ring = Ring::of_bits(1024, &[50, 50])?; // two primes of 50 bits
//! let mut one = vec![0; ring.words()];
//! one[0] = 1; // modulo the first prime
//! one[1024] = 1; // and the second
//! reference::run(&ring, Direction::Forward, &mut one)?;
//! assert!(one.iter().all(|&value| value == 1)); // a constant is itself at every root
//! # Ok::<(), blindcore_accel::Error>(())
//! ```

pub mod reference;

use std::fmt;
use std::sync::Arc;

use blindcore_math::Prime;
use blindcore_math::ntt::{self, NttError};

use crate::{Cost, Error};

/// A ring that transforms compute in: the degree and the primes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ring {
    /// d: coefficients of a polynomial, a power of two from 128 to 32768.
    pub degree: usize,
    /// The primes, one at least, each below 2^62 and 1 modulo 2d; no two alike.
    pub primes: Vec<Prime>,
}

impl Ring {
    /// A ring with the largest primes of these sizes, in bits; two of a size are two primes.
    ///
    /// # Errors
    /// The degree or a size is out of range, or there are not as many primes of it.
    pub fn of_bits(degree: usize, bits: &[u32]) -> Result<Self, Error> {
        let mut primes = Vec::with_capacity(bits.len());
        for &size in bits {
            let found = ntt::primes(size, degree).map_err(|e| Error::Ring { why: e.to_string() })?;
            let free = found.into_iter().find(|prime| !primes.contains(prime));
            let why = || {
                format!("there are not as many primes of {size} bits for degree {degree}; choose more bits")
            };
            primes.push(free.ok_or_else(|| Error::Ring { why: why() })?);
        }
        let ring = Self { degree, primes };
        ring.check()?;
        Ok(ring)
    }

    /// Words of a polynomial.
    #[must_use]
    pub fn words(&self) -> usize {
        self.degree * self.primes.len()
    }

    /// Refuses a ring that has no transform.
    ///
    /// # Errors
    /// [`Error::Ring`] names what is out of range.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |why: String| Err(Error::Ring { why });
        if self.primes.is_empty() {
            return refuse("it has no primes; give one at least".into());
        }
        for (i, &prime) in self.primes.iter().enumerate() {
            if let Err(e) = ntt::root(prime, self.degree) {
                return refuse(NttError::to_string(&e));
            }
            if self.primes[..i].contains(&prime) {
                return refuse(format!("the prime {} is there twice; take another", prime.value()));
            }
        }
        Ok(())
    }

    /// How many polynomials these words are.
    ///
    /// # Errors
    /// They are not a whole number of polynomials, or a word is not a residue of its prime.
    pub fn check_words(&self, words: &[u64]) -> Result<usize, Error> {
        if !words.len().is_multiple_of(self.words()) {
            let want = format!("a multiple of {}", self.words());
            return Err(Error::Length { what: "polynomials", got: words.len(), want, unit: "words" });
        }
        let primes = self.primes.iter().cycle();
        for (i, (words, prime)) in words.chunks_exact(self.degree).zip(primes).enumerate() {
            // Words may be secret: all are looked at, and no value is named. The highest bit tells, since primes are below 2^63;
            // unlike a comparison, this is done to several words at a time on any processor.
            let most = prime.value() - 1;
            let over = words.iter().fold(0, |bits, &word| bits | most.wrapping_sub(word) | word);
            if over >> 63 == 1 {
                let position =
                    i * self.degree + words.iter().position(|&w| w >= prime.value()).expect("one is");
                return Err(Error::NotReduced { position, count: i * self.degree + words.len() });
            }
        }
        Ok(words.len() / self.words())
    }
}

impl fmt::Display for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let primes: Vec<String> = self.primes.iter().map(|q| q.value().to_string()).collect();
        write!(f, "degree {} modulo {}", self.degree, primes.join(", "))
    }
}

/// Which way a transform goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Coefficients to values.
    Forward,
    /// Values to coefficients.
    Inverse,
}

/// What a device's transform slot takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransformCapabilities {
    /// The least degree.
    pub least_degree: usize,
    /// The largest degree.
    pub most_degree: usize,
    /// The most bits of a prime.
    pub prime_bits: u32,
    /// The most primes of a ring.
    pub primes: usize,
    /// Whether it is simulated, so that its speed says nothing about this machine.
    pub simulated: bool,
}

impl TransformCapabilities {
    /// Refuses a ring that these capabilities rule out.
    ///
    /// # Errors
    /// [`Error::Ring`] names the first limit that the ring breaks.
    pub fn check(&self, ring: &Ring) -> Result<(), Error> {
        ring.check()?;
        let refuse = |why: String| Err(Error::Ring { why });
        if !(self.least_degree..=self.most_degree).contains(&ring.degree) {
            let Self { least_degree, most_degree, .. } = self;
            return refuse(format!(
                "degree {} is outside the device's {least_degree} to {most_degree}",
                ring.degree
            ));
        }
        if ring.primes.len() > self.primes {
            return refuse(format!("{} primes are over the device's {}", ring.primes.len(), self.primes));
        }
        if let Some(prime) = ring.primes.iter().find(|q| q.value() >> self.prime_bits != 0) {
            return refuse(format!(
                "the prime {} is over the device's {} bits",
                prime.value(),
                self.prime_bits
            ));
        }
        Ok(())
    }
}

/// The transform slot of a device.
///
/// ```text
///   check(ring) ──▶ prepare(ring) ──▶ run(direction, polynomials) ──▶ cost
///                    roots worked out   in place, many times, from any thread
/// ```
pub trait TransformSlot: Send + Sync {
    /// What it takes.
    fn capabilities(&self) -> TransformCapabilities;

    /// Whether it takes this ring; [`TransformSlot::prepare`] refuses the same rings, and no others.
    ///
    /// # Errors
    /// Which limit the ring breaks.
    fn check(&self, ring: &Ring) -> Result<(), Error> {
        self.capabilities().check(ring)
    }

    /// Works out the roots of a ring.
    ///
    /// # Errors
    /// As [`TransformSlot::check`].
    fn prepare(&self, ring: &Ring) -> Result<Arc<dyn Transform>, Error>;
}

/// The transforms of one ring on one device.
pub trait Transform: Send + Sync {
    /// The ring.
    fn ring(&self) -> &Ring;

    /// Transforms polynomials where they lie, `[polynomial][prime][coefficient]`. Residues in, residues out; the time
    /// depends on their number alone.
    ///
    /// # Errors
    /// The words are not a whole number of polynomials, or one is not a residue; nothing was changed then.
    fn run(&self, direction: Direction, words: &mut [u64]) -> Result<Cost, Error>;
}
