//! Finer units for what is encoded.

use blindcore_files::OutOfRange;

use super::bound::Bound;
use super::error::EncodingError;
use super::exponent::{MAX_SCALE, check_exponent};
use super::float::BASE_LOG2;
use super::form::Form;

/// By what mantissas grow when their unit becomes a finer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lowering {
    /// Times two to this.
    pub(crate) bits: u32,
    /// Then times ten to this.
    pub(crate) tens: u32,
}

impl Lowering {
    /// From the unit of `form` to the exponent and the decimals asked for.
    pub(crate) fn new(form: &Form, exponent: i32, scale: u32) -> Result<Self, EncodingError> {
        check_exponent(exponent.into())?;
        if exponent > form.exponent {
            let (got, max) = (exponent.unsigned_abs().into(), form.exponent.unsigned_abs().into());
            let (what, remedy) =
                ("the size of a new exponent", "only a lower exponent can be had without decryption");
            return Err(OutOfRange { what, got, min: 0, max, remedy }.into());
        }
        let (min, remedy) = (form.scale.into(), "only more decimals can be had without decryption");
        OutOfRange::check("the number of decimals", scale.into(), min..=MAX_SCALE.into(), remedy)?;
        Ok(Self { bits: (form.exponent - exponent) as u32 * BASE_LOG2 as u32, tens: scale - form.scale })
    }

    /// The bound of what it was applied to.
    pub(crate) fn bound(self, bound: Bound) -> Bound {
        (0..self.tens).fold(bound.shifted(self.bits), |bound, _| bound.times(Bound::new(10)))
    }

    /// What a bound counts as when mantissas grow. Of zeros as of ones: who may be wrong about that buys no squarings
    /// without end.
    pub(crate) fn counted(self, bound: Bound) -> Bound {
        if self == (Self { bits: 0, tens: 0 }) { bound } else { self.bound(bound.max(Bound::new(1))) }
    }
}
