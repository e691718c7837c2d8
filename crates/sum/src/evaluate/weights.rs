//! What encrypted numbers are weighed with.

use std::ops::RangeInclusive;

use ndarray::{Array2, AsArray, Dimension};

use crate::encoding::{Bound, Encoding, EncodingError, Form, MAX_DECIMALS, Plaintexts, float_parts};
use crate::keys::PublicKey;
use crate::packing::Packed;

/// Plaintext weights: integer mantissas of up to 63 bits that share a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights {
    pub(super) values: Vec<i64>,
    pub(super) exponent: i32,
    pub(super) scale: u32,
    pub(super) shape: Vec<usize>,
}

/// Exponents of weights. One that is not 0 is a float from 2^-1074 up, which has over 63 bits in a unit below the first, or one
/// below 2^1024, which is less than half of a unit above the last.
const EXPONENTS: RangeInclusive<i32> = -284..=256;

impl Weights {
    /// Whether weights, and a bias, may make results in the unit of `to` of numbers in that of `from`: those of others, who
    /// answer with what costs much to decode, are refused by this.
    #[must_use]
    pub fn make(from: &Form, to: &Form) -> bool {
        // A bias has a unit as weights have, and what it is added to takes the finer of both.
        let (low, high) = (from.exponent.min(0) + EXPONENTS.start(), from.exponent + EXPONENTS.end());
        (low..=high).contains(&to.exponent) && (from.scale..=from.scale + MAX_DECIMALS).contains(&to.scale)
    }

    /// Integers: a slice, or a view of any shape.
    #[must_use]
    pub fn integers<'a, D: Dimension>(values: impl AsArray<'a, i64, D>) -> Self {
        let values = values.into();
        Self {
            values: values.iter().copied().collect(),
            exponent: 0,
            scale: 0,
            shape: values.shape().to_vec(),
        }
    }

    /// Floats, rounded to the encoding's exponent: a slice, or a view of any shape. [`Encoding::exact`] keeps every
    /// bit, at the price of a larger bound on what they weigh.
    ///
    /// # Errors
    /// One is not finite, or over the encoding's bound, or has a mantissa of over 63 bits.
    pub fn floats<'a, D: Dimension>(
        values: impl AsArray<'a, f64, D>,
        encoding: Encoding,
    ) -> Result<Self, EncodingError> {
        let values = values.into();
        let mantissas = values.iter().enumerate().map(|(i, v)| encoding.mantissa(i, float_parts(i, *v)?));
        Self::encode(values.shape(), encoding, mantissas)
    }

    /// Mantissas of the encoding.
    pub(crate) fn encode(
        shape: &[usize],
        encoding: Encoding,
        encoded: impl ExactSizeIterator<Item = Result<(bool, u64, u32), EncodingError>>,
    ) -> Result<Self, EncodingError> {
        let mut mantissas = Vec::with_capacity(encoded.len());
        for (position, mantissa) in encoded.enumerate() {
            let (negative, magnitude, shift) = mantissa?;
            let got = Bound::scaled(magnitude.into(), shift);
            if got.bits() > 63 {
                return Err(EncodingError::Value { position, got, limit: Bound::new(i64::MAX as u64) });
            }
            let magnitude = magnitude.checked_shl(shift).unwrap_or(0) as i64;
            mantissas.push(if negative { -magnitude } else { magnitude });
        }
        let (exponent, scale) = (encoding.exponent(), encoding.scale());
        Ok(Self { values: mantissas, exponent, scale, shape: shape.to_vec() })
    }

    /// The mantissas, row-major.
    #[must_use]
    pub fn values(&self) -> &[i64] {
        &self.values
    }

    /// Their exponent.
    #[must_use]
    pub fn exponent(&self) -> i32 {
        self.exponent
    }

    /// Decimals after the point.
    #[must_use]
    pub fn scale(&self) -> u32 {
        self.scale
    }

    pub(super) fn unit(&self) -> (i32, u32) {
        (self.exponent, self.scale)
    }

    /// As numbers that are added to `outputs` results of the form `to`, each in all slots where those are packed.
    pub(super) fn plaintexts(
        &self,
        key: &PublicKey,
        outputs: usize,
        to: &Form,
    ) -> Result<Plaintexts, EncodingError> {
        if self.values.len() != outputs {
            let want = format!("one number for each of {outputs} outputs");
            return Err(EncodingError::Shape { what: "the bias", got: self.shape.clone(), want });
        }
        let most = self.values.iter().map(|v| v.unsigned_abs()).max().unwrap_or(0);
        let encoding = Encoding::new(0, Bound::new(most))?;
        let mut out = match to.packed {
            None => Plaintexts::integers(key, &self.values[..], encoding)?,
            Some(Packed { packing, .. }) => {
                let slots = (packing.slots() as usize, outputs);
                let slots = Array2::from_shape_fn(slots, |(_, output)| self.values[output]);
                Plaintexts::pack_integers(key, &slots, encoding, packing)?
            }
        };
        (out.form.exponent, out.form.scale) = self.unit();
        out.form.packed = to.packed;
        Ok(out)
    }

    /// Their shape.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub(super) fn check<const AXES: usize>(
        &self,
        what: &'static str,
        want: &str,
    ) -> Result<[usize; AXES], EncodingError> {
        <[usize; AXES]>::try_from(&self.shape[..]).map_err(|_| EncodingError::Shape {
            what,
            got: self.shape.clone(),
            want: want.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever weights are made here, floats of any size at any precision, their results are taken.
    #[test]
    fn what_weights_make_is_known_as_theirs() {
        let form =
            |(exponent, scale)| Form { exponent, scale, bound: Bound::ZERO, packed: None, shape: vec![1] };
        let values = [0.0, 5e-324, 1e-310, f64::MIN_POSITIVE, 1e-19, 0.1, 1.0, 3e18, 1e300, f64::MAX];
        let mut units = vec![(0, 0)];
        for value in values {
            units.push(Weights::floats(&[value], Encoding::exact(&[value][..]).unwrap()).unwrap().unit());
            for precision in values.into_iter().filter(|precision| *precision > 0.0) {
                let most = value.max(f64::MIN_POSITIVE);
                for encoding in [Encoding::fixed(precision, most), Encoding::decimal(precision, most)] {
                    units.extend(Weights::floats(&[value], encoding.unwrap()).map(|weights| weights.unit()));
                }
            }
            for exponent in -300..300 {
                let weights = Weights::floats(&[value], Encoding::new(exponent, Bound::signed(64)).unwrap());
                units.extend(
                    weights.ok().filter(|weights| weights.values != [0]).map(|weights| weights.unit()),
                );
            }
        }
        let exponents = || units.iter().map(|(exponent, _)| *exponent);
        assert_eq!(
            (exponents().min(), exponents().max()),
            (Some(*EXPONENTS.start()), Some(*EXPONENTS.end()))
        );
        units.sort_unstable();
        units.dedup();
        for from in [(0, 0), (0, 19), (-269, 0), (255, 0)] {
            for weight in &units {
                let (exponent, scale) = (from.0 + weight.0, from.1 + weight.1);
                // With a bias, too.
                for bias in [(exponent, scale)].iter().chain(&units) {
                    let to = form((exponent.min(bias.0), scale.max(bias.1)));
                    assert!(Weights::make(&form(from), &to), "{from:?} {weight:?} {bias:?}");
                }
            }
            for (exponent, scale) in
                [(from.0.min(0) - 285, from.1), (from.0 + 257, from.1), (from.0, from.1 + 20), (-4096, 4096)]
            {
                assert!(!Weights::make(&form(from), &form((exponent, scale))));
            }
        }
        assert!(!Weights::make(&form((0, 2)), &form((0, 1))));
    }
}
