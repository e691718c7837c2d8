//! Exponents of 16 and decimals, in range.

use super::error::EncodingError;
use super::float::{MAX_EXPONENT, parts};

pub(crate) fn float_parts(position: usize, value: f64) -> Result<(bool, u64, i32), EncodingError> {
    if value.is_finite() { Ok(parts(value)) } else { Err(EncodingError::NotFinite { position, value }) }
}

pub(crate) fn check_exponent(exponent: i64) -> Result<i32, EncodingError> {
    match i32::try_from(exponent) {
        Ok(e) if (-MAX_EXPONENT..=MAX_EXPONENT).contains(&e) => Ok(e),
        _ => Err(EncodingError::Exponent { got: exponent }),
    }
}

/// Decimals after the point, at most: products add up those of their factors.
pub(crate) const MAX_SCALE: u32 = 4096;
