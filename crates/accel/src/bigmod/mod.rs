//! The bigmod operation: batches of residues modulo one big odd number, or modulo the square of one.
//!
//! ```text
//!   Device::bigmod(modulus) ──▶ Bigmod ──place(numbers)──▶ Residues ──multiply, power, ...──▶ Residues ──read──▶ numbers
//!                                           once             in the device's own form, batch by batch
//! ```
//!
//! A modulus that is a square, as Paillier's n^2 and its p^2 are, is said to be one ([`BigModulus::square_of`]): then
//! a device may keep a residue as x0 + x1 n and work on halves, which takes 5/8 of the multiplications of a
//! product and 7/12 of those of a square. The residues that come out are the same.
//!
//! What numbers are is the caller's affair; a modulus, numbers and residues may all be secret and are wiped.
//! [`Bigmod::power`] and [`FixedBase::power`] take time and touch memory by the sizes of their operands alone;
//! [`Bigmod::invert`] and [`Bigmod::multi_exp`] are for numbers and weights that the computing party may see.

mod exponents;
mod host;
mod modulus;
mod multi_exp;
mod numbers;
pub mod reference;
mod residues;

use std::sync::Arc;

pub use exponents::{Exponents, MAX_EXPONENT_BITS, check_exponents};
pub use host::{Form, HostRows};
pub use modulus::{BigModulus, MAX_BITS};
pub use multi_exp::{MAX_WEIGHT, Method, MultiExp};
pub use numbers::Numbers;
pub use residues::{ResidueRows, Residues};

use crate::{Cost, Error};

/// What a device's bigmod slot takes; read it before you prepare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BigmodCapabilities {
    /// The longest modulus, in bits; at most [`MAX_BITS`].
    pub bits: u32,
    /// The ways of a [`MultiExp`] that it tells apart; asked for another, it takes one of these. The results are the same.
    pub methods: Vec<Method>,
    /// Whether it is simulated, so that its speed says nothing about this machine.
    pub simulated: bool,
}

/// The bigmod slot of a device.
pub trait BigmodSlot: Send + Sync {
    /// What it takes.
    fn capabilities(&self) -> BigmodCapabilities;

    /// Whether it takes this modulus; [`BigmodSlot::prepare`] refuses the same moduli, and no others.
    ///
    /// # Errors
    /// [`Error::Modulus`] says which limit it breaks.
    fn check(&self, modulus: &BigModulus) -> Result<(), Error> {
        let limit = self.capabilities().bits;
        if modulus.bits() > limit {
            let why = format!("it has {} bits, where this device carries at most {limit}", modulus.bits());
            return Err(Error::Modulus { why });
        }
        Ok(())
    }

    /// Prepares arithmetic modulo one number.
    ///
    /// # Errors
    /// As [`BigmodSlot::check`].
    fn prepare(&self, modulus: &BigModulus) -> Result<Arc<dyn Bigmod>, Error>;
}

/// The bigmod operation for one modulus on one device.
pub trait Bigmod: Send + Sync {
    /// The modulus.
    fn modulus(&self) -> &Arc<BigModulus>;

    /// Takes numbers below the modulus into the device's form.
    ///
    /// # Errors
    /// A number is not below the modulus, or numbers have another length than [`BigModulus::words`].
    fn place(&self, numbers: &Numbers) -> Result<Residues, Error>;

    /// Gives residues back as numbers below the modulus, of [`BigModulus::words`] words.
    ///
    /// # Errors
    /// The residues are not this modulus's or not this device's, here as in every operation below.
    fn read(&self, residues: &Residues) -> Result<Numbers, Error>;

    /// `x[i] * y[i]`; a single `y` serves all.
    ///
    /// # Errors
    /// As [`Bigmod::read`]; or lengths differ.
    fn multiply(&self, x: &Residues, y: &Residues) -> Result<(Residues, Cost), Error>;

    /// `x[i] ^ (2 ^ times)`.
    ///
    /// # Errors
    /// As [`Bigmod::read`].
    fn square(&self, x: &Residues, times: u32) -> Result<(Residues, Cost), Error>;

    /// `x[i] ^ exponent[i]`, in time that depends on nothing but lengths.
    ///
    /// # Errors
    /// As [`Bigmod::read`]; or an exponent is over its length or [`MAX_EXPONENT_BITS`].
    fn power(&self, x: &Residues, exponents: &Exponents<'_>) -> Result<(Residues, Cost), Error>;

    /// Prepares powers of the single residue `base` to exponents of up to `bits` bits.
    ///
    /// # Errors
    /// As [`Bigmod::read`]; or there is not one base; or `bits` is zero or over [`MAX_EXPONENT_BITS`].
    fn fixed_base(&self, base: &Residues, bits: u32) -> Result<Arc<dyn FixedBase>, Error>;

    /// `x[i] ^ -1`. Its time shows something of what it inverts.
    ///
    /// # Errors
    /// As [`Bigmod::read`]; or one shares a factor with the modulus, which is named by its position.
    fn invert(&self, x: &Residues) -> Result<(Residues, Cost), Error>;

    /// Products of residues' powers; see [`MultiExp`]. Its time shows weights.
    ///
    /// # Errors
    /// As [`Bigmod::invert`]; or as [`MultiExp::check`].
    fn multi_exp(&self, x: &Residues, multi_exp: &MultiExp) -> Result<(Residues, Cost), Error>;
}

/// Powers of one base, prepared by [`Bigmod::fixed_base`].
pub trait FixedBase: Send + Sync {
    /// `base ^ exponents[i]`, in time that depends on nothing but lengths.
    ///
    /// # Errors
    /// An exponent is longer than was prepared for.
    fn power(&self, exponents: &Numbers) -> Result<(Residues, Cost), Error>;

    /// Bytes of its tables.
    fn bytes(&self) -> usize;
}
