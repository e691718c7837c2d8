//! Arrays of numbers: integers or floats, never a mixture.

use ndarray::{ArrayD, IxDyn, ShapeBuilder};

use crate::error::{Error, Reading};

/// Integers of more than 53 bits are where floats begin to skip some.
const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;

/// An array of numbers of any shape, in C order.
///
/// Whatever is read holds finite numbers only, and each is exactly what the file says: integers stay integers,
/// and a float stands for an integer only beside other floats and only where it is that very integer.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Integers.
    Int(ArrayD<i64>),
    /// Floats. A CSV cell in decimals is the float nearest to it.
    Float(ArrayD<f64>),
}

impl Values {
    /// The length of each axis; none for a single number.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        match self {
            Values::Int(array) => array.shape(),
            Values::Float(array) => array.shape(),
        }
    }

    /// How many numbers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Values::Int(array) => array.len(),
            Values::Float(array) => array.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The integers, if they are such.
    #[must_use]
    pub fn as_int(&self) -> Option<&ArrayD<i64>> {
        match self {
            Values::Int(array) => Some(array),
            Values::Float(_) => None,
        }
    }

    /// The floats, if they are such.
    #[must_use]
    pub fn as_float(&self) -> Option<&ArrayD<f64>> {
        match self {
            Values::Int(_) => None,
            Values::Float(array) => Some(array),
        }
    }

    /// The same numbers with one axis or two, as CSV has them: all axes but the last are rows, a single number is a list
    /// of one.
    #[must_use]
    pub fn in_rows(self) -> Self {
        let shape = self.shape();
        let rows = match *shape {
            [] => vec![1],
            [_] | [_, _] => return self,
            [.., columns] => vec![self.len() / columns.max(1), columns],
        };
        match self {
            Values::Int(array) => Values::Int(shaped(array, &rows)),
            Values::Float(array) => Values::Float(shaped(array, &rows)),
        }
    }

    /// A list as a column: as many rows of one number.
    #[must_use]
    pub fn lines_as_rows(self) -> Self {
        let [rows] = *self.shape() else { return self };
        match self {
            Values::Int(array) => Values::Int(shaped(array, &[rows, 1])),
            Values::Float(array) => Values::Float(shaped(array, &[rows, 1])),
        }
    }

    /// The same numbers as floats, or else the first integer that no float is equal to.
    ///
    /// # Errors
    /// Beyond ±2^53 not every integer has a float.
    pub fn into_float(self) -> Result<ArrayD<f64>, i64> {
        match self {
            Values::Int(array) => {
                if let Some(value) = array.iter().find(|v| float(**v).is_none()) {
                    return Err(*value);
                }
                Ok(array.mapv(|v| v as f64))
            }
            Values::Float(array) => Ok(array),
        }
    }
}

/// As many numbers in another shape, in C order.
fn shaped<T>(array: ArrayD<T>, shape: &[usize]) -> ArrayD<T> {
    ArrayD::from_shape_vec(IxDyn(shape), array.into_iter().collect()).expect("as many as before")
}

impl From<ArrayD<i64>> for Values {
    fn from(array: ArrayD<i64>) -> Self {
        Values::Int(array)
    }
}

impl From<ArrayD<f64>> for Values {
    fn from(array: ArrayD<f64>) -> Self {
        Values::Float(array)
    }
}

/// The float that is this integer, if one is.
pub(crate) fn float(value: i64) -> Option<f64> {
    let magnitude = value.unsigned_abs();
    // Exact where the bits from the highest to the lowest that is set fit the significand.
    let fits = magnitude <= EXACT || magnitude >> magnitude.trailing_zeros() < EXACT;
    fits.then_some(value as f64)
}

/// A run of numbers that are being read: integers until the first float comes.
pub(crate) enum Run {
    Int(Vec<i64>),
    Float(Vec<f64>),
}

impl Run {
    pub(crate) fn len(&self) -> usize {
        match self {
            Run::Int(values) => values.len(),
            Run::Float(values) => values.len(),
        }
    }

    /// Turns into floats; else says which number has none.
    pub(crate) fn into_float(self) -> Result<Vec<f64>, (usize, i64)> {
        match self {
            Run::Int(values) => values.iter().enumerate().map(|(i, v)| float(*v).ok_or((i, *v))).collect(),
            Run::Float(values) => Ok(values),
        }
    }

    /// Gives the run a shape, from Fortran order if `fortran`.
    pub(crate) fn shaped(self, reading: &Reading, shape: &[usize], fortran: bool) -> Result<Values, Error> {
        Ok(match self {
            Run::Int(values) => Values::Int(array(reading, shape, fortran, values)?),
            Run::Float(values) => Values::Float(array(reading, shape, fortran, values)?),
        })
    }
}

/// The most numbers that an array holds, and would hold if none of its axes were empty.
pub const MAX_LEN: usize = isize::MAX as usize / 8;

/// Whether an array of this shape can be had: its axes, empty ones left out, multiply to at most [`MAX_LEN`]. Whoever takes a
/// shape from outside asks this first, since the product of all axes of an empty array says nothing of the others.
#[must_use]
pub fn is_shape(shape: &[usize]) -> bool {
    let product = shape.iter().try_fold(1usize, |n, axis| n.checked_mul((*axis).max(1)));
    product.is_some_and(|n| n <= MAX_LEN)
}

fn array<T: Clone>(
    reading: &Reading,
    shape: &[usize],
    fortran: bool,
    values: Vec<T>,
) -> Result<ArrayD<T>, Error> {
    if !is_shape(shape) {
        let why = format!(
            "its shape {shape:?} has axes that multiply, those of 0 left out, to over the limit of {MAX_LEN}"
        );
        return Err(reading.unfit(why, "save an array of shorter axes"));
    }
    let count = values.len();
    let array = ArrayD::from_shape_vec(IxDyn(shape).set_f(fortran), values).map_err(|_| {
        reading.unfit(format!("its shape {shape:?} is not one of {count} numbers"), "write it again")
    })?;
    Ok(if array.is_standard_layout() { array } else { array.as_standard_layout().into_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_integers_that_floats_can_be_become_floats() {
        for (value, exact) in [
            (0, true),
            (-1, true),
            (1 << 53, true),
            ((1 << 53) + 1, false),
            ((1 << 53) + 2, true),
            (-(1 << 53) - 1, false),
            (i64::MAX, false),
            (i64::MAX - 1023, true),
            (i64::MAX - 511, false),
            (i64::MIN, true),
            (i64::MIN + 1, false),
        ] {
            assert_eq!(float(value).is_some(), exact, "{value}");
        }
        let large = ArrayD::from_shape_vec(IxDyn(&[2]), vec![1, i64::MAX]).unwrap();
        assert_eq!(Values::from(large).into_float(), Err(i64::MAX));
    }

    proptest! {
        #[test]
        fn a_float_is_the_integer_itself_or_there_is_none(value: i64, shift in 0u32..64) {
            let value = value >> shift;
            // i128 tells i64::MAX from 2^63, to which it would be rounded.
            let exact = value as f64 as i128 == i128::from(value);
            prop_assert_eq!(float(value), exact.then_some(value as f64));
        }
    }
}
