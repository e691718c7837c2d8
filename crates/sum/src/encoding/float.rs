//! Numbers as mantissas and shifts, and the base of exponents.

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
