//! The arithmetic under blindcore: moduli, samplers and the public matrix of learning with errors.
//!
//! Nothing in this crate knows a scheme or a device. Each fast path lives in `arch/<isa>`, takes the token of its
//! instruction set ([`features`]), and is tested against the portable code beside it.
//!
//! ```
//! use blindcore_math::{Modulus, PublicMatrix, Seed};
//!
//! let prime = Modulus::prime(0x3_ffff_ffff_c001)?; // refused unless prime and below 2^62
//! assert_eq!(prime.mul_add(3, 4, 5), 17);
//!
//! // Row 7 of the public matrix of a seed.
//! let matrix = PublicMatrix::new(Seed([7; 16]));
//! let mut row = vec![0u32; blindcore_math::LWE_DIMENSION];
//! matrix.row(7, &mut row);
//! # Ok::<(), blindcore_math::ModulusError>(())
//! ```

mod arch;
mod digits;
mod elementwise;
pub mod features;
pub mod lanes;
mod mask;
mod modulus;
pub mod ntt;
mod public_matrix;
mod row;
mod sampler;
mod stores;
pub mod transfers;

pub use digits::{CutDigit, Recombination, SignedDigits};
pub use elementwise::Elementwise;
pub use mask::MaskSeed;
pub use modulus::{Modulus, ModulusError, Prime};
pub use public_matrix::{PublicMatrix, Seed, dot};
pub use row::LWE_DIMENSION;
pub use sampler::{Gaussian, RandomnessError, SecretRng};
