//! How the numbers of a batch are encoded: one exponent and one bound for all.

use blindcore_files::OutOfRange;

use ndarray::{AsArray, Dimension};

use super::bound::Bound;
use super::error::EncodingError;
use super::exponent::check_exponent;
use super::float::{BASE_LOG2, exact_exponent, parts};

/// Mantissas of decimals keep to this: 63 bits, as those of weights do.
const MAX_DECIMAL: u128 = 1 << 63;
/// The most decimals of an encoding: a float's mantissa and ten to this fit 128 bits together.
pub(crate) const MAX_DECIMALS: u32 = 19;
/// The largest power of ten that numbers are rounded to: one of 63 bits.
const MAX_TENS: u32 = 18;

/// How values become mantissas: their unit, and the bound that they are declared to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    pub(super) exponent: i32,
    pub(super) scale: u32,
    /// Mantissas are multiples of 10 to this: numbers that are rounded to thousands, say, in units of 1.
    tens: u32,
    pub(super) bound: Bound,
    /// Whether the bound itself is kept by negative values alone, as two's complement has it.
    twos_complement: bool,
}

impl Encoding {
    /// Integers of `bits` bits in two's complement, 1 to 64: int8's are 8.
    ///
    /// # Errors
    /// `bits` is out of range.
    pub fn integers(bits: u32) -> Result<Self, EncodingError> {
        if !(1..=64).contains(&bits) {
            let remedy = if bits == 0 { "say how many the longest has" } else { "split longer integers" };
            let got = bits.into();
            return Err(
                OutOfRange { what: "the length of integers in bits", got, min: 1, max: 64, remedy }.into()
            );
        }
        Ok(Self { twos_complement: true, ..Self::new(0, Bound::signed(bits))? })
    }

    /// Numbers of magnitude up to `magnitude`, rounded to at least the precision `precision` in decimals: to the next power
    /// of ten that is not over it, up to 10^18. Decimals are then exact, and so are their sums and products; from 10 on their
    /// unit stays 1. Where mantissas would pass 63 bits, or 19 decimals don't do, it is [`Encoding::fixed`].
    ///
    /// # Errors
    /// As [`Encoding::fixed`].
    pub fn decimal(precision: f64, magnitude: f64) -> Result<Self, EncodingError> {
        let fixed = Self::fixed(precision, magnitude)?;
        let fine = |scale: &u32| format!("1e-{scale}").parse::<f64>().is_ok_and(|unit| unit <= precision);
        let Some(scale) = (0..=MAX_DECIMALS).find(fine) else { return Ok(fixed) };
        let tens = (1..=MAX_TENS).take_while(|tens| 10f64.powi(*tens as i32) <= precision).count() as u32;
        let unbounded = Self { scale, tens, ..Self::new(0, Bound::ZERO)? };
        // What is written is rounded by its digits, a float by its bits: near a tie the magnitude is the larger of both.
        let (_, units, shift) = unbounded.round(parts(magnitude));
        let written = blindcore_numbers::units(&magnitude.to_string(), unbounded.decimals());
        let written = written.map_or(0, |units| units.unsigned_abs() * unbounded.step());
        let bound = Bound::scaled(units, shift).max(Bound::scaled(written, 0));
        Ok(if bound > Bound::scaled(MAX_DECIMAL, 0) { fixed } else { Self { bound, ..unbounded } })
    }

    /// Numbers of magnitude up to `magnitude`, rounded to at least the precision `precision`: the exponent is the
    /// largest with 16^exponent not over it (phe's `precision`, without its rounding of the logarithm).
    ///
    /// # Errors
    /// One is not finite and above zero.
    pub fn fixed(precision: f64, magnitude: f64) -> Result<Self, EncodingError> {
        for (what, value) in [("the precision", precision), ("the magnitude", magnitude)] {
            if !value.is_finite() || value <= 0.0 {
                return Err(EncodingError::Parameter { what, value });
            }
        }
        let (_, mantissa, shift) = parts(precision);
        let log2 = 63 - mantissa.leading_zeros() as i32 + shift;
        let exponent = log2.div_euclid(BASE_LOG2);
        Self::new(exponent, Bound::of_value(magnitude, exponent))
    }

    /// The highest exponent and least power of two that hold all of `values` exactly. (phe's exponent for one is at
    /// most this: it allows for a full mantissa.) Made from data: see the module `encoding`.
    ///
    /// # Errors
    /// A value is not finite.
    pub fn exact<'a, D: Dimension>(values: impl AsArray<'a, f64, D>) -> Result<Self, EncodingError> {
        let values = values.into();
        let mut exponent = None;
        for (position, &value) in values.iter().enumerate() {
            if !value.is_finite() {
                return Err(EncodingError::NotFinite { position, value });
            }
            if value != 0.0 {
                let own = exact_exponent(value);
                exponent = Some(exponent.map_or(own, |e: i32| e.min(own)));
            }
        }
        let exponent = exponent.unwrap_or(0);
        let bits = |value: f64| {
            let (_, mantissa, shift) = parts(value);
            let length = 64 - mantissa.leading_zeros() as i32;
            if length == 0 { 0 } else { length + shift - BASE_LOG2 * exponent }
        };
        let bits = values.iter().map(|v| bits(*v)).max().unwrap_or(0);
        Self::new(exponent, Bound::scaled(1, bits.max(0) as u32))
    }

    /// An exponent, and a bound in units of 16^exponent.
    ///
    /// # Errors
    /// The exponent is over `MAX_EXPONENT`, 4096, in magnitude.
    pub fn new(exponent: i32, bound: Bound) -> Result<Self, EncodingError> {
        check_exponent(exponent.into())?;
        Ok(Self { exponent, scale: 0, tens: 0, bound, twos_complement: false })
    }

    /// The exponent.
    #[must_use]
    pub fn exponent(&self) -> i32 {
        self.exponent
    }

    /// Decimals after the point.
    #[must_use]
    pub fn scale(&self) -> u32 {
        self.scale
    }

    /// The bound, in units of 16^exponent / 10^scale.
    #[must_use]
    pub fn bound(&self) -> Bound {
        self.bound
    }

    /// Decimals that numbers are rounded to; below 0 they are rounded to tens.
    pub(crate) fn decimals(&self) -> i32 {
        self.scale as i32 - self.tens as i32
    }

    /// What mantissas are multiples of.
    pub(crate) fn step(&self) -> u128 {
        10u128.pow(self.tens)
    }

    /// A mantissa in the encoding's unit as `(negative, magnitude, shift)`, `shift` at least 0: half to even.
    pub(crate) fn round(&self, (negative, mantissa, shift): (bool, u64, i32)) -> (bool, u128, u32) {
        let mantissa = u128::from(mantissa) * 10u128.pow(self.scale);
        let shift = shift - BASE_LOG2 * self.exponent;
        if shift >= 0 {
            // What is shifted out of 128 bits is over every bound of decimals.
            let whole = (self.tens > 0 && mantissa.leading_zeros() > shift as u32).then(|| mantissa << shift);
            return whole.map_or((negative, mantissa, shift as u32), |whole| {
                (negative, self.in_steps(whole, false), 0)
            });
        }
        let down = -shift as u32;
        let kept = mantissa.checked_shr(down).unwrap_or(0);
        let half = 1u128.checked_shl(down - 1).unwrap_or(0);
        let cut = mantissa & half.wrapping_mul(2).wrapping_sub(1);
        if self.tens > 0 {
            return (negative, self.in_steps(kept, cut > 0 || down > 128), 0);
        }
        // Past 128 bits all is cut off and less than half; at 128 it is half at most when the top bit is alone.
        let up = down <= 128 && (cut > half || cut == half && kept & 1 == 1);
        (negative, kept + u128::from(up), 0)
    }

    /// The multiple of 10^`tens` that is nearest to a whole number, or to slightly more than it if `more`: half to even.
    fn in_steps(&self, whole: u128, more: bool) -> u128 {
        let step = self.step();
        let (steps, twice) = (whole / step, whole % step * 2);
        let up = twice > step || twice == step && (more || steps & 1 == 1);
        (steps + u128::from(up)) * step
    }

    /// Whether a number that is not 0 is rounded to 0.
    pub(crate) fn loses(&self, value: f64) -> bool {
        value != 0.0 && value.is_finite() && self.round(parts(value)).1 == 0
    }

    /// As [`Encoding::round`], within the bound.
    pub(crate) fn mantissa(
        &self,
        position: usize,
        number: (bool, u64, i32),
    ) -> Result<(bool, u64, u32), EncodingError> {
        self.within(position, self.round(number))
    }

    /// A mantissa that is one already, within the bound.
    pub(crate) fn within(
        &self,
        position: usize,
        (negative, magnitude, shift): (bool, u128, u32),
    ) -> Result<(bool, u64, u32), EncodingError> {
        let above = u128::from(self.twos_complement & !negative);
        if Bound::scaled(magnitude + above, shift) > self.bound {
            let limit = if above == 1 { self.bound.less_one() } else { self.bound };
            return Err(EncodingError::Value { position, got: Bound::scaled(magnitude, shift), limit });
        }
        // Of 64 bits: decimals are within 63, and what has none is as long as it came, or rounded.
        Ok((negative, magnitude as u64, shift))
    }
}
