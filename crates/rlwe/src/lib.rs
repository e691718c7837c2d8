//! Ciphertexts over a ring: polynomials modulo X^d + 1 and a prime or a product of primes.
//!
//! Nothing here knows a lookup, a device or a connection.
//!
//! ```text
//!   Literal ──check──▶ Parameters ─▶ Ring (one for each modulus), Strength (bits for each modulus)
//!                          │
//!          SecretKey ◀─────┘
//!     encrypt │ └─▶ PublicKey, SwitchingKey, RelinearisationKey, GaloisKeys, Rgsw        keys and factors: seeds and bodies
//!             ▼
//!   Plaintext ─▶ Ciphertext ─▶ add, multiply_plain, turn          linear
//!    (scalar,         │        Multiplier                         ciphertext by ciphertext, and sums of such products
//!     slots)          │        GaloisKeys: trace, pack, expand    automorphisms
//!                     │        Rgsw: multiply, choose             encrypted bits and monomials
//!                     └──────▶ switch_modulus, to_answer          fewer bits to send
//! ```
//!
//! The phase of a ciphertext (a, b) is b - a s, and carries (Q / p) m and noise. Each ciphertext knows a bound on its noise
//! ([`noise`]), and prints how many bits are left of its budget.
//!
//! ```
//! use blindcore_math::SecretRng;
//! use blindcore_rlwe::{Factor, Gadget, Plaintext, Rgsw, SecretKey, sets};
//!
//! let parameters = sets::N2048.check()?; // 142.8 bits, or an error
//! let mut rng = SecretRng::from_os()?;
//! let secret = SecretKey::generate(&parameters, &mut rng);
//!
//! // 3 + 4 X, times 5, plus itself.
//! let mut x = secret.encrypt(&Plaintext::new(&parameters, &[3, 4])?, &mut rng);
//! x.multiply_plain(&Factor::new(parameters.ring(), &Plaintext::scalar(&parameters, 5)?));
//! x.add(&x.clone());
//! assert_eq!(secret.decrypt(&x).coefficients()[..3], [30, 40, 0]);
//! assert!(x.budget() > 20.0);
//!
//! // An encrypted bit chooses.
//! let gadget = Gadget::new(parameters.ring(), 2, 16, 16)?;
//! let bit = Rgsw::bit(&secret, parameters.ring(), true, gadget, &mut rng);
//! let y = secret.encrypt(&Plaintext::scalar(&parameters, 7)?, &mut rng);
//! assert_eq!(secret.decrypt(&bit.choose(x, y)).coefficients()[..2], [7, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(test, allow(clippy::print_stderr, reason = "tests print noise where they are asked to"))]

mod ciphertext;
mod encoding;
mod expand;
pub mod gadget;
pub mod galois;
pub mod inspiring;
mod keys;
mod modulus;
mod multiply;
pub mod noise;
mod params;
mod poly;
mod profile;
#[cfg(test)]
mod properties;
mod rgsw;
mod ring;
mod rns;
pub mod rounding;
pub mod security;
mod switching;
#[cfg(test)]
mod testing;
pub mod wire;

pub use ciphertext::{Ciphertext, Pair};
pub use encoding::{EncodingError, Factor, NoSlots, Plaintext, Slots};
pub use expand::{Branch, Expansion};
pub use gadget::{Gadget, GadgetError};
pub use galois::{GaloisKey, GaloisKeys};
pub use keys::{PublicKey, SecretKey, SeededCiphertext, fresh_seed};
pub use modulus::{Answer, ModulusSwitchError};
pub use multiply::{Lifted, Multiplier, Products};
pub use noise::Noise;
pub use params::{ErrorKind, Found, Literal, Parameters, ParametersError, SecretKind, sets};
pub use poly::{Coefficients, Form, Poly, Values};
pub use profile::{Operations, Profile, Tally, profile};
pub use rgsw::Rgsw;
pub use ring::{Ring, RingError};
pub use security::{Insecure, Strength};
pub use switching::{RelinearisationKey, SwitchingKey};
pub use wire::WireError;
