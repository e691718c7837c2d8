//! Ciphertexts over a ring: polynomials modulo X^d + 1 and a prime or a product of primes.
//!
//! Nothing here knows a lookup, a device or a connection.

pub mod inspiring;
pub mod rounding;
