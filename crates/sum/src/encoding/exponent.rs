//! Exponents of 16, in range.

use blindcore_files::OutOfRange;

use super::error::EncodingError;
use super::float::{BASE_LOG2, MAX_EXPONENT, parts};

pub(crate) fn float_parts(position: usize, value: f64) -> Result<(bool, u64, i32), EncodingError> {
    if value.is_finite() { Ok(parts(value)) } else { Err(EncodingError::NotFinite { position, value }) }
}

pub(crate) fn check_exponent(exponent: i64) -> Result<i32, EncodingError> {
    match i32::try_from(exponent) {
        Ok(e) if (-MAX_EXPONENT..=MAX_EXPONENT).contains(&e) => Ok(e),
        _ => Err(EncodingError::Exponent { got: exponent }),
    }
}

/// By how many bits mantissas grow from one exponent to a lower.
pub(crate) fn lowering(from: i32, to: i32) -> Result<u32, EncodingError> {
    check_exponent(to.into())?;
    if to > from {
        let (got, max) = (to.unsigned_abs().into(), from.unsigned_abs().into());
        let (what, remedy) =
            ("the size of a new exponent", "only a lower exponent can be had without decryption");
        return Err(OutOfRange { what, got, min: 0, max, remedy }.into());
    }
    Ok((from - to) as u32 * BASE_LOG2 as u32)
}
