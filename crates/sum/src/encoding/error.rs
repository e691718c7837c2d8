//! What encoding refuses.

use blindcore_files::OutOfRange;
use blindcore_numbers::MAX_LEN;

use super::bound::Bound;
use super::float::MAX_EXPONENT;
use crate::keys::KeyId;

/// Why numbers can't be encoded, combined or decoded.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EncodingError {
    /// A value over the bound that was declared.
    #[error(
        "value {position} has a magnitude of up to {got}, over the declared {limit}; declare more bits or a larger magnitude"
    )]
    Value {
        /// Which.
        position: usize,
        /// Its magnitude, in units of 16^exponent.
        got: Bound,
        /// What was declared.
        limit: Bound,
    },
    /// A parameter that is zero, negative or no number.
    #[error("{what} is {value}; it must be above zero and finite")]
    Parameter {
        /// Which.
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// A value that is not a number.
    #[error("value {position} is {value}; only finite numbers are encrypted")]
    NotFinite {
        /// Which.
        position: usize,
        /// The value.
        value: f64,
    },
    /// A result that could pass what a plaintext holds.
    #[error(
        "{what} could reach {got} in magnitude, over the {limit} that {room} holds; use {remedy}, fewer terms or smaller weights"
    )]
    Range {
        /// What would be computed.
        what: &'static str,
        /// What it could reach.
        got: Bound,
        /// The limit.
        limit: Bound,
        /// What has that limit.
        room: &'static str,
        /// A larger key, or wider slots.
        remedy: &'static str,
    },
    /// An exponent out of range.
    #[error(
        "an exponent of {got} is outside -{MAX_EXPONENT} to {MAX_EXPONENT}; use a coarser or finer precision"
    )]
    Exponent {
        /// The exponent.
        got: i64,
    },
    /// A size or parameter out of range.
    #[error(transparent)]
    Size(#[from] OutOfRange),
    /// Shapes that don't go together.
    #[error("{what} has shape {got:?} where {want} is asked for")]
    Shape {
        /// Which operand.
        what: &'static str,
        /// Its shape.
        got: Vec<usize>,
        /// What fits.
        want: String,
    },
    /// A kernel that is larger than the image.
    #[error(
        "the image has {size} {side} and {padding} of padding on each side, and the kernel {kernel}; take a smaller kernel, or more \
         padding (less than the kernel)"
    )]
    Kernel {
        /// `rows` or `columns`.
        side: &'static str,
        /// How many the image has.
        size: usize,
        /// How many are put on each side.
        padding: usize,
        /// How many the kernel has.
        kernel: usize,
    },
    /// Batches to add that are of two shapes.
    #[error(
        "the second operand has shape {got:?} where {want:?} is asked for; add batches of one shape, or a single number to all (of \
         CSV one column is a list, and several are rows)"
    )]
    Operands {
        /// The shape of the second.
        got: Vec<usize>,
        /// That of the first.
        want: Vec<usize>,
    },
    /// A shape that no array has, empty or not.
    #[error(
        "a batch of shape {got:?} has axes that multiply, those of 0 left out, to over the limit of {MAX_LEN}; make one of \
         shorter axes"
    )]
    Axes {
        /// The shape.
        got: Vec<usize>,
    },
    /// What is weighed has another number of terms than the weights.
    #[error(
        "the batch has shape {got:?} where {want} is asked for; give a weight for each number along its last axis (a CSV file \
         of one column is a single row), or encrypt rows as long as those of the weights"
    )]
    Terms {
        /// The shape of the batch.
        got: Vec<usize>,
        /// What fits.
        want: String,
    },
    /// A plaintext over what its ciphertext was declared to hold.
    #[error(
        "number {position} decrypts to over the declared {limit} in magnitude; is it under this key? Else it overflowed, or was \
         declared too small"
    )]
    Overflow {
        /// Which.
        position: usize,
        /// What was declared.
        limit: Bound,
    },
    /// A number that doesn't fit the type asked for.
    #[error("number {position} {why}; {remedy}")]
    Decode {
        /// Which.
        position: usize,
        /// What is wrong.
        why: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// Operands under different keys.
    #[error("{what} is under key {got} where {want} is used; encrypt under that key")]
    Key {
        /// Which operand.
        what: &'static str,
        /// Its key.
        got: KeyId,
        /// The key.
        want: KeyId,
    },
    /// Packed and unpacked numbers, or two packings.
    #[error("{what} is {got} where {want} is asked for; pack both alike")]
    Packing {
        /// Which operand.
        what: &'static str,
        /// How it is packed.
        got: String,
        /// What fits.
        want: String,
    },
    /// Batches with different units.
    #[error(
        "a batch has exponent {} and {} decimals where {} and {} are asked for; lower the higher one first",
        .got.0, .got.1, .want.0, .want.1
    )]
    Alignment {
        /// Its exponent and its decimals.
        got: (i32, u32),
        /// Those that fit.
        want: (i32, u32),
    },
    /// A bound that would be tightened.
    #[error("a bound of {got} is below the {least} that the numbers may reach; a bound can only be loosened")]
    Loosen {
        /// What was asked for.
        got: Bound,
        /// What is known.
        least: Bound,
    },
    /// Keys or ciphertexts were refused.
    #[error(transparent)]
    Scheme(#[from] crate::scheme::PaillierError),
    /// The device refused.
    #[error(transparent)]
    Device(#[from] blindcore_accel::Error),
}
