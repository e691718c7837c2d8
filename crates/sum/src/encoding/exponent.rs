//! Exponents of 16, and numbers as mantissas and shifts.

use blindcore_files::OutOfRange;

use super::error::EncodingError;

/// log2 of the base of exponents, phe's 16.
pub const BASE_LOG2: i32 = 4;
/// Exponents reach from minus this to this; those of floats from -282 to 242.
pub const MAX_EXPONENT: i32 = 4096;

/// The highest exponent at which a float that is not zero is whole.
pub(super) fn exact_exponent(value: f64) -> i32 {
    let (_, mantissa, shift) = parts(value);
    (mantissa.trailing_zeros() as i32 + shift).div_euclid(BASE_LOG2)
}

/// A finite float as `(negative, mantissa, shift)`: mantissa * 2^shift.
pub(crate) fn parts(value: f64) -> (bool, u64, i32) {
    let bits = value.to_bits();
    let (biased, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    let normal = u64::from(biased != 0);
    (value.is_sign_negative(), fraction | normal << 52, biased.max(1) - 1075)
}

pub(crate) fn integer_parts(value: i64) -> (bool, u64, i32) {
    (value < 0, value.unsigned_abs(), 0)
}

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
