//! Residues, wherever a device keeps them.

use std::any::Any;
use std::sync::Arc;

use super::modulus::BigModulus;
use crate::Error;

/// Rows of residues in one device's own memory and form: what [`Residues`] are to the device that made them.
///
/// A device with memory of its own implements this for a type of its own, which nothing else can make; one that keeps
/// rows in the host's memory uses [`HostRows`](super::HostRows). Rows hold secrets: a drop wipes them, and so do
/// whichever operations leave a copy behind.
pub trait ResidueRows: Any + Send + Sync {
    /// What the rows are, for messages.
    fn form(&self) -> &str;

    /// How many rows.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows at `positions`, in that order.
    ///
    /// # Panics
    /// A position is out of range.
    fn select(&self, positions: &mut dyn Iterator<Item = usize>) -> Box<dyn ResidueRows>;

    /// These rows and then `others`, which [`Residues`] has found to belong to the same modulus.
    ///
    /// # Errors
    /// [`Error::Residues`]: `others` are of another type or form. [`Error::Length`]: they have rows of another length.
    fn append(&mut self, others: &dyn ResidueRows) -> Result<(), Error>;

    /// The same rows once more.
    fn duplicate(&self) -> Box<dyn ResidueRows>;
}

/// Residues modulo one modulus, as one device keeps them, one row after the other.
///
/// Rows can be chosen, joined and cut by anybody; what is in them only the device knows that made them, for only it can
/// name the type of its rows ([`Residues::rows`]).
pub struct Residues {
    modulus: Arc<BigModulus>,
    rows: Box<dyn ResidueRows>,
}

impl Clone for Residues {
    fn clone(&self) -> Self {
        Self { modulus: Arc::clone(&self.modulus), rows: self.rows.duplicate() }
    }
}

impl Residues {
    /// A device's rows, for its callers. A type that only the device can make keeps others from forging them.
    #[must_use]
    pub fn new(modulus: &Arc<BigModulus>, rows: impl ResidueRows) -> Self {
        Self { modulus: Arc::clone(modulus), rows: Box::new(rows) }
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Those at `positions`, in that order.
    ///
    /// # Panics
    /// A position is out of range.
    #[must_use]
    pub fn select(&self, positions: impl IntoIterator<Item = usize>) -> Self {
        let rows = self.rows.select(&mut positions.into_iter());
        Self { modulus: Arc::clone(&self.modulus), rows }
    }

    /// These and then `others`.
    ///
    /// # Errors
    /// They belong to another modulus or device.
    pub fn append(&mut self, others: &Self) -> Result<(), Error> {
        others.check_modulus(&self.modulus, self.rows.form())?;
        self.rows.append(&*others.rows)
    }

    /// The rows, for the device whose type `R` is. `want` names its form, for the message if they are not its.
    ///
    /// # Errors
    /// [`Error::Residues`]: these are residues of another modulus or device.
    pub fn rows<R: ResidueRows>(&self, modulus: &Arc<BigModulus>, want: &str) -> Result<&R, Error> {
        self.check_modulus(modulus, want)?;
        let rows: &dyn Any = &*self.rows;
        rows.downcast_ref().ok_or_else(|| self.refused(want, true))
    }

    fn check_modulus(&self, modulus: &Arc<BigModulus>, want: &str) -> Result<(), Error> {
        let same = Arc::ptr_eq(&self.modulus, modulus) || self.modulus == *modulus;
        if same { Ok(()) } else { Err(self.refused(want, false)) }
    }

    fn refused(&self, want: &str, same_modulus: bool) -> Error {
        Error::Residues { got: self.rows.form().into(), want: want.into(), same_modulus }
    }
}
