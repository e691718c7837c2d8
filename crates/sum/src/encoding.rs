//! Numbers as plaintexts: signed integers and floats with an exponent, and bounds on their magnitude.
//!
//! A number is `mantissa * 16^exponent`, as in python-paillier (`phe.EncodedNumber`, base 16); the mantissa is an
//! integer of magnitude at most n/3, a negative one is held as n less its magnitude, and what decrypts to the
//! middle third has overflowed.
//!
//! Here all numbers of a batch share one exponent and one [`Bound`], which are declared, travel with the
//! ciphertexts and are *public*: [`Encoding::integers`] and [`Encoding::fixed`] say nothing of the data, while
//! [`Encoding::exact`] is made from the data and shows its range, as phe shows each number's.
//!
//! Encoding and packing take no branch and no address from an integer's value, but for the comparison with its bound;
//! a float's rounding, and decoding into integers and floats, do: they run where the numbers are in the clear.

use std::fmt;

use blindcore_accel::bigmod::Numbers;
use crypto_bigint::{BoxedUint, Limb, NonZero};
use ndarray::{AsArray, Dimension};
use zeroize::Zeroizing;

use crate::keys::{KeyId, PublicKey};
use crate::packing::Packed;
use crate::scheme::Decryptor;

/// log2 of the base of exponents, phe's 16.
pub const BASE_LOG2: i32 = 4;
/// Exponents reach from minus this to this; those of floats from -282 to 242.
pub const MAX_EXPONENT: i32 = 4096;
/// The most axes that a batch has.
pub const MAX_AXES: usize = 8;

/// Why numbers can't be encoded, combined or decoded.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A value over the bound that was declared.
    #[error(
        "value {position} has a magnitude of up to {got}, over the declared {limit}; declare more bits or a coarser precision"
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
    /// A value that is no number.
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
    #[error("{what} is {got}, outside {min} to {max}; {remedy}")]
    Size {
        /// What.
        what: &'static str,
        /// Its value.
        got: u64,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
        /// What to do.
        remedy: &'static str,
    },
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
    /// A plaintext over what its ciphertext was declared to hold.
    #[error(
        "number {position} decrypts to over the declared {limit} in magnitude: it overflowed, or was declared too small"
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
    /// Batches with different exponents.
    #[error("a batch has exponent {got} where {want} is asked for; lower the higher one first")]
    Alignment {
        /// Its exponent.
        got: i32,
        /// The exponent that fits.
        want: i32,
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
    Scheme(#[from] crate::scheme::Error),
    /// The device refused.
    #[error(transparent)]
    Device(#[from] blindcore_accel::Error),
}

/// An upper bound on a magnitude: `top * 2^shift`, exact below 2^64, else rounded up by less than 2^-63 of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bound {
    // Zero unless `top` has its highest bit: so the order of fields is the order of values.
    shift: u32,
    top: u64,
}

impl Bound {
    /// Nothing but zeros.
    pub const ZERO: Self = Self { shift: 0, top: 0 };

    /// Exactly this.
    #[must_use]
    pub fn new(magnitude: u64) -> Self {
        Self { shift: 0, top: magnitude }
    }

    /// `top * 2^shift`, whatever `top`.
    #[must_use]
    pub fn scaled(top: u128, shift: u32) -> Self {
        let over = (128 - top.leading_zeros()).saturating_sub(64);
        let mut up = top >> over;
        if up << over != top {
            up += 1; // may reach 2^64
        }
        let shift = shift.saturating_add(over);
        let (up, shift) = if up >> 64 != 0 { (up >> 1, shift.saturating_add(1)) } else { (up, shift) };
        let room = up.leading_zeros() - 64; // up < 2^64
        if up == 0 {
            return Self::ZERO;
        }
        let left = room.min(shift);
        Self { shift: shift - left, top: (up as u64) << left }
    }

    /// The magnitude of two's complement of `bits` bits: 2^(bits - 1).
    #[must_use]
    pub fn signed(bits: u32) -> Self {
        Self::scaled(1, bits.saturating_sub(1))
    }

    /// The part that [`Bound::scaled`] takes: `(top, shift)`.
    #[must_use]
    pub fn parts(self) -> (u64, u32) {
        (self.top, self.shift)
    }

    /// Its length in bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        (64 - self.top.leading_zeros()).saturating_add(self.shift)
    }

    /// Of a sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (high, low) = if self.shift >= other.shift { (self, other) } else { (other, self) };
        let down = high.shift - low.shift;
        let rest = if down >= 64 { u64::from(low.top != 0) } else { low.top.div_ceil(1 << down) };
        Self::scaled(u128::from(high.top) + u128::from(rest), high.shift)
    }

    /// Of a product.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self::scaled(u128::from(self.top) * u128::from(other.top), self.shift.saturating_add(other.shift))
    }

    /// Of a product with `2^bits`.
    #[must_use]
    pub fn shifted(self, bits: u32) -> Self {
        Self::scaled(self.top.into(), self.shift.saturating_add(bits))
    }

    /// The largest bound that is not over `number`.
    #[must_use]
    pub fn below(number: &[u64]) -> Self {
        let Some(high) = number.iter().rposition(|w| *w != 0) else { return Self::ZERO };
        if high == 0 {
            return Self::new(number[0]);
        }
        let room = number[high].leading_zeros();
        let low = if room == 0 { 0 } else { number[high - 1] >> (64 - room) };
        Self { shift: 64 * high as u32 - room, top: number[high] << room | low }
    }

    /// Of the mantissa that the finite `value` has at an exponent, however it is rounded.
    #[must_use]
    pub fn of_value(value: f64, exponent: i32) -> Self {
        let (_, mantissa, shift) = parts(value);
        let shift = shift - BASE_LOG2 * exponent;
        if shift >= 0 {
            Self::scaled(mantissa.into(), shift as u32)
        } else {
            let (down, kept) = (-shift as u32, mantissa.checked_shr(-shift as u32).unwrap_or(0));
            let exact = kept.checked_shl(down) == Some(mantissa);
            Self::new(kept + u64::from(!exact))
        }
    }

    /// What the plaintexts of a key hold: n/3.
    #[must_use]
    pub fn of_key(key: &PublicKey) -> Self {
        let three = NonZero::new(Limb::from(3u64)).expect("three is not zero");
        let (third, _) = BoxedUint::from_words(key.n().iter().copied()).div_rem_limb(three);
        Self::below(third.as_words())
    }

    /// Whether the magnitude `number` is within it.
    #[must_use]
    pub(crate) fn holds(self, number: &[u64]) -> bool {
        // Below 2^64 both are exact; above, rounding down what is compared would admit what is over by less than
        // the bound's own rounding: so the words cut off are looked at too.
        let below = Self::below(number);
        if below != self {
            return below < self;
        }
        let cut = below.shift as usize;
        number.iter().enumerate().all(|(i, w)| {
            let kept = cut.saturating_sub(64 * i);
            if kept >= 64 { *w == 0 } else { w & ((1 << kept) - 1) == 0 }
        })
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.shift == 0 && self.top < 1 << 40 {
            write!(f, "{}", self.top)
        } else {
            write!(f, "2^{:.1}", (self.top as f64).log2() + f64::from(self.shift))
        }
    }
}

/// How values become mantissas: their exponent, and the bound that they are declared to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    exponent: i32,
    bound: Bound,
}

impl Encoding {
    /// Integers of `bits` bits in two's complement, 1 to 64: int8's are 8.
    ///
    /// # Errors
    /// `bits` is out of range.
    pub fn integers(bits: u32) -> Result<Self, Error> {
        if !(1..=64).contains(&bits) {
            let (got, remedy) = (bits.into(), "split longer integers");
            return Err(Error::Size { what: "the length of integers in bits", got, min: 1, max: 64, remedy });
        }
        Ok(Self { exponent: 0, bound: Bound::signed(bits) })
    }

    /// Numbers of magnitude up to `magnitude`, rounded to at least the precision `precision`: the exponent is the
    /// largest with 16^exponent not over it (phe's `precision`, without its rounding of the logarithm).
    ///
    /// # Errors
    /// One is not finite and above zero.
    pub fn fixed(precision: f64, magnitude: f64) -> Result<Self, Error> {
        for (what, value) in [("the precision", precision), ("the magnitude", magnitude)] {
            if !value.is_finite() || value <= 0.0 {
                return Err(Error::Parameter { what, value });
            }
        }
        let (_, mantissa, shift) = parts(precision);
        let log2 = 63 - mantissa.leading_zeros() as i32 + shift;
        let exponent = log2.div_euclid(BASE_LOG2);
        Self::new(exponent, Bound::of_value(magnitude, exponent))
    }

    /// The highest exponent and least power of two that hold all of `values` exactly. (phe's exponent for one is at
    /// most this: it allows for a full mantissa.) Made from data: see the [module](self).
    ///
    /// # Errors
    /// A value is not finite.
    pub fn exact<'a, D: Dimension>(values: impl AsArray<'a, f64, D>) -> Result<Self, Error> {
        let values = values.into();
        let mut exponent = None;
        for (position, &value) in values.iter().enumerate() {
            if !value.is_finite() {
                return Err(Error::NotFinite { position, value });
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
    /// The exponent is over [`MAX_EXPONENT`] in magnitude.
    pub fn new(exponent: i32, bound: Bound) -> Result<Self, Error> {
        check_exponent(exponent.into())?;
        Ok(Self { exponent, bound })
    }

    /// The exponent.
    #[must_use]
    pub fn exponent(&self) -> i32 {
        self.exponent
    }

    /// The bound, in units of 16^exponent.
    #[must_use]
    pub fn bound(&self) -> Bound {
        self.bound
    }

    /// A mantissa in units of 16^exponent as `(negative, magnitude, shift)`, `shift` at least 0: half to even.
    pub(crate) fn round(&self, (negative, mantissa, shift): (bool, u64, i32)) -> (bool, u64, u32) {
        let shift = shift - BASE_LOG2 * self.exponent;
        if shift >= 0 {
            return (negative, mantissa, shift as u32);
        }
        let down = -shift as u32;
        let kept = mantissa.checked_shr(down).unwrap_or(0);
        let half = 1u64.checked_shl(down - 1).unwrap_or(0);
        let cut = mantissa & half.wrapping_mul(2).wrapping_sub(1);
        // Past 64 bits all is cut off and less than half; at 64 it is half at most when the top bit is alone.
        let up = down <= 64 && (cut > half || cut == half && kept & 1 == 1);
        (negative, kept + u64::from(up), 0)
    }

    /// As [`Encoding::round`], within the bound.
    pub(crate) fn mantissa(
        &self,
        position: usize,
        number: (bool, u64, i32),
    ) -> Result<(bool, u64, u32), Error> {
        let (negative, magnitude, shift) = self.round(number);
        let got = Bound::scaled(magnitude.into(), shift);
        if got > self.bound {
            return Err(Error::Value { position, got, limit: self.bound });
        }
        Ok((negative, magnitude, shift))
    }
}

/// The highest exponent at which a float that is not zero is whole.
fn exact_exponent(value: f64) -> i32 {
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

pub(crate) fn float_parts(position: usize, value: f64) -> Result<(bool, u64, i32), Error> {
    if value.is_finite() { Ok(parts(value)) } else { Err(Error::NotFinite { position, value }) }
}

pub(crate) fn check_exponent(exponent: i64) -> Result<i32, Error> {
    match i32::try_from(exponent) {
        Ok(e) if (-MAX_EXPONENT..=MAX_EXPONENT).contains(&e) => Ok(e),
        _ => Err(Error::Exponent { got: exponent }),
    }
}

/// What is known in public of a batch of numbers, encrypted or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// The exponent that all share.
    pub exponent: i32,
    /// What no mantissa exceeds in magnitude; of packed numbers, no slot's.
    pub bound: Bound,
    /// How many small numbers lie in each, where they do.
    pub packed: Option<Packed>,
    /// The shape of the batch in row-major order, 1 to [`MAX_AXES`] axes. Of packed numbers the first axis is of
    /// groups of samples.
    pub shape: Vec<usize>,
}

impl Form {
    /// How many plaintexts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shape of the numbers: that of the batch, but for the first axis of packed ones, which counts samples.
    #[must_use]
    pub fn numbers_shape(&self) -> Vec<usize> {
        let mut shape = self.shape.clone();
        if let Some(packed) = &self.packed {
            shape[0] = packed.samples;
        }
        shape
    }

    /// What limits a mantissa or slot under `key`.
    #[must_use]
    pub fn limit(&self, key: &PublicKey) -> Bound {
        self.packed.map_or_else(|| Bound::of_key(key), |packed| packed.packing.limit())
    }

    /// That a result of bound `got` can't wrap.
    pub(crate) fn check_range(&self, key: &PublicKey, what: &'static str, got: Bound) -> Result<(), Error> {
        let limit = self.limit(key);
        if got <= limit {
            return Ok(());
        }
        let (room, remedy) = match self.packed {
            Some(_) => ("a slot", "wider slots (fewer to a plaintext)"),
            None => ("a third of the key's n", "a larger key"),
        };
        Err(Error::Range { what, got, limit, room, remedy })
    }

    /// That it makes sense under `key` for `count` plaintexts; it may come from a stranger.
    ///
    /// # Errors
    /// The exponent, the shape or the packing is out of range, or the bound is over what the key holds.
    pub fn check(&self, key: &PublicKey, count: usize) -> Result<(), Error> {
        check_exponent(self.exponent.into())?;
        if !(1..=MAX_AXES).contains(&self.shape.len()) {
            let (got, max) = (self.shape.len() as u64, MAX_AXES as u64);
            return Err(Error::Size { what: "the number of axes", got, min: 1, max, remedy: "reshape it" });
        }
        let product = self.shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        // Of an empty batch too, so that no product of some of its axes overflows.
        if product != Some(count) || !addressable(&self.shape) {
            let (got, want) = (self.shape.clone(), format!("one of {count} numbers"));
            return Err(Error::Shape { what: "the batch", got, want });
        }
        if let Some(packed) = &self.packed {
            packed.packing.check(key.bits())?;
            let slots = packed.packing.slots() as usize;
            if packed.samples.div_ceil(slots) != self.shape[0] || !addressable(&self.numbers_shape()) {
                let got = self.shape.clone();
                let want = format!("{} samples in groups of {slots}", packed.samples);
                return Err(Error::Shape { what: "the packed batch", got, want });
            }
        }
        self.check_range(key, "what was declared", self.bound)
    }
}

/// Whether a batch of this shape could be addressed if none of its axes were empty.
fn addressable(shape: &[usize]) -> bool {
    let product = shape.iter().try_fold(1usize, |n, d| n.checked_mul((*d).max(1)));
    product.is_some_and(|n| n <= isize::MAX as usize / 8)
}

/// Numbers as residues modulo a key's n, ready to encrypt or just decrypted. Secret: wiped, never printed.
#[derive(Clone)]
pub struct Plaintexts {
    pub(crate) key: KeyId,
    pub(crate) n: Vec<u64>,
    pub(crate) numbers: Numbers,
    pub(crate) form: Form,
}

impl Plaintexts {
    /// Encodes integers: a slice, or a view of any shape.
    ///
    /// # Errors
    /// One is over the encoding's bound, or that is over what the key holds.
    pub fn integers<'a, D: Dimension>(
        key: &PublicKey,
        values: impl AsArray<'a, i64, D>,
        encoding: Encoding,
    ) -> Result<Self, Error> {
        let values = values.into();
        Self::encode(key, values.shape(), encoding, values.iter().map(|v| Ok(integer_parts(*v))))
    }

    /// Encodes floats: a slice, or a view of any shape. Rounded half to even where the encoding is coarser.
    ///
    /// # Errors
    /// As [`Plaintexts::integers`]; or one is not finite.
    pub fn floats<'a, D: Dimension>(
        key: &PublicKey,
        values: impl AsArray<'a, f64, D>,
        encoding: Encoding,
    ) -> Result<Self, Error> {
        let values = values.into();
        Self::encode(
            key,
            values.shape(),
            encoding,
            values.iter().enumerate().map(|(i, v)| float_parts(i, *v)),
        )
    }

    fn encode(
        key: &PublicKey,
        shape: &[usize],
        encoding: Encoding,
        values: impl ExactSizeIterator<Item = Result<(bool, u64, i32), Error>>,
    ) -> Result<Self, Error> {
        let Encoding { exponent, bound } = encoding;
        let form = Form { exponent, bound, packed: None, shape: shape.to_vec() };
        form.check(key, values.len())?;
        let n = key.n();
        let mut numbers = Numbers::zeroed(values.len(), n.len());
        for (position, value) in values.enumerate() {
            let (negative, magnitude, shift) = encoding.mantissa(position, value?)?;
            let out = numbers.get_mut(position);
            for (i, word) in out.iter_mut().enumerate() {
                let at = shift as i32 - 64 * i as i32;
                *word = magnitude.checked_shl(at as u32).unwrap_or(0)
                    | magnitude.checked_shr(at.wrapping_neg() as u32).unwrap_or(0);
            }
            negate_if(out, n, negative & (magnitude != 0));
        }
        Ok(Self { key: key.id(), n: n.to_vec(), numbers, form })
    }

    /// Decrypts canonical ciphertexts that were declared to have the form `form`.
    ///
    /// # Errors
    /// The form does not fit the key, or a ciphertext is refused. That numbers keep the bound is checked where they
    /// are decoded.
    pub fn decrypt(decryptor: &Decryptor, ciphertexts: &Numbers, form: &Form) -> Result<Self, Error> {
        let key = decryptor.public();
        form.check(key, ciphertexts.len())?;
        let numbers = decryptor.decrypt(ciphertexts)?;
        Ok(Self { key: key.id(), n: key.n().to_vec(), numbers, form: form.clone() })
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> KeyId {
        self.key
    }

    /// What is known of them.
    #[must_use]
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// As residues modulo n.
    #[must_use]
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// The same numbers with a lower exponent: mantissas times 16 to the difference.
    ///
    /// # Errors
    /// The exponent is higher than theirs, or a mantissa could wrap.
    pub fn lower_exponent(&self, key: &PublicKey, exponent: i32) -> Result<Self, Error> {
        let down = lowering(self.form.exponent, exponent)?;
        let mut out = self.clone();
        out.form.exponent = exponent;
        out.form.bound = self.form.bound.shifted(down);
        out.form.check_range(key, "a lower exponent", lowered_bound(self.form.bound, down))?;
        for position in 0..out.numbers.len() {
            let number = out.numbers.get_mut(position);
            for _ in 0..down {
                let high = shift_left(number);
                reduce_once(number, high, &self.n);
            }
        }
        Ok(out)
    }

    /// Decodes to integers, row-major, in the shape [`Form::numbers_shape`].
    ///
    /// # Errors
    /// A number is over its bound, not whole, or over 63 bits.
    pub fn to_i64(&self) -> Result<Vec<i64>, Error> {
        self.decode(integer)
    }

    /// Decodes to floats, each the nearest: exactly what was encoded, where that was exact.
    ///
    /// # Errors
    /// A number is over its bound, or over the largest float.
    pub fn to_f64(&self) -> Result<Vec<f64>, Error> {
        self.decode(float)
    }

    fn decode<T>(
        &self,
        decode: impl Fn(usize, bool, &[u64], i32) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let exponent = self.form.exponent;
        if self.form.packed.is_some() {
            let slots = Zeroizing::new(self.slots()?);
            let value = |(i, v): (usize, &i64)| decode(i, *v < 0, &[v.unsigned_abs()], exponent);
            return slots.iter().enumerate().map(value).collect();
        }
        let bound = self.form.bound;
        let mut out = Vec::with_capacity(self.numbers.len());
        let mut magnitude = Numbers::zeroed(1, self.n.len());
        for (position, number) in self.numbers.iter().enumerate() {
            let magnitude = magnitude.get_mut(0);
            let negative = centre(magnitude, number, &self.n);
            if !bound.holds(magnitude) {
                return Err(Error::Overflow { position, limit: bound });
            }
            out.push(decode(position, negative, magnitude, exponent)?);
        }
        Ok(out)
    }
}

/// By how many bits mantissas grow from one exponent to a lower.
pub(crate) fn lowering(from: i32, to: i32) -> Result<u32, Error> {
    check_exponent(to.into())?;
    if to > from {
        let (got, max) = (to.unsigned_abs().into(), from.unsigned_abs().into());
        let (what, remedy) =
            ("the size of a new exponent", "only a lower exponent can be had without decryption");
        return Err(Error::Size { what, got, min: 0, max, remedy });
    }
    Ok((from - to) as u32 * BASE_LOG2 as u32)
}

/// What a bound counts as when mantissas grow by `bits`. Of zeros as of ones: who may be wrong about that buys no
/// squarings without end.
pub(crate) fn lowered_bound(bound: Bound, bits: u32) -> Bound {
    if bits == 0 { bound } else { bound.max(Bound::new(1)).shifted(bits) }
}

fn integer(position: usize, negative: bool, magnitude: &[u64], exponent: i32) -> Result<i64, Error> {
    let refuse = |why, remedy| Err(Error::Decode { position, why, remedy });
    let bits = bit_length(magnitude);
    if bits == 0 {
        return Ok(0);
    }
    let shift = BASE_LOG2 * exponent;
    if bits as i32 + shift > 64 {
        return refuse("has over 63 bits", "decode it as a float");
    }
    let down = (-shift).max(0) as u32;
    let whole = magnitude.iter().enumerate().all(|(i, w)| {
        let cut = down.saturating_sub(64 * i as u32);
        if cut >= 64 { *w == 0 } else { w & ((1 << cut) - 1) == 0 }
    });
    if !whole {
        return refuse("is not whole", "decode it as a float");
    }
    // What is left has 64 bits at most.
    let value = if shift >= 0 { magnitude[0] << shift } else { window(magnitude, down) };
    let signed = if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() };
    signed.map_or_else(|| refuse("has over 63 bits", "decode it as a float"), Ok)
}

fn float(position: usize, negative: bool, magnitude: &[u64], exponent: i32) -> Result<f64, Error> {
    let bits = bit_length(magnitude) as i32;
    if bits == 0 {
        return Ok(0.0);
    }
    // The highest 64 bits, the last of which stands for all that are cut off.
    let cut = (bits - 64).max(0) as u32;
    let sticky = magnitude.iter().enumerate().any(|(i, w)| {
        let below = cut.saturating_sub(64 * i as u32);
        if below >= 64 { *w != 0 } else { w & ((1 << below) - 1) != 0 }
    });
    let top = window(magnitude, cut) | u64::from(sticky);
    let shift = cut as i32 + BASE_LOG2 * exponent;
    let highest = (63 - top.leading_zeros() as i32) + shift;
    let value = if highest < f64::MIN_EXP - 1 {
        // Subnormal: round once, at the last bit that there is.
        let unit = Encoding { exponent: 0, bound: Bound::ZERO };
        let (_, mantissa, zeros) = unit.round((false, top, shift + 1074));
        f64::from_bits(mantissa << zeros)
    } else {
        // Rounded by the conversion; the two products are exact or pass the largest float.
        let half = shift / 2;
        top as f64 * 2f64.powi(half) * 2f64.powi(shift - half)
    };
    if value.is_infinite() {
        return Err(Error::Decode {
            position,
            why: "is over the largest float",
            remedy: "scale it down first",
        });
    }
    Ok(if negative { -value } else { value })
}

/// The 64 bits of `number` from bit `at` up.
fn window(number: &[u64], at: u32) -> u64 {
    let (i, low) = (at as usize / 64, at % 64);
    let word = |i: usize| number.get(i).copied().unwrap_or(0);
    word(i) >> low | if low == 0 { 0 } else { word(i + 1) << (64 - low) }
}

pub(crate) fn bit_length(number: &[u64]) -> u32 {
    number.iter().rposition(|w| *w != 0).map_or(0, |i| 64 * (i as u32 + 1) - number[i].leading_zeros())
}

/// `x += y` where `mask` is all ones, with the carry.
pub(crate) fn add_masked(x: &mut [u64], y: &[u64], mask: u64) -> u64 {
    let mut carry = 0;
    for (x, y) in x.iter_mut().zip(y) {
        let sum = u128::from(*x) + u128::from(y & mask) + carry;
        *x = sum as u64;
        carry = sum >> 64;
    }
    carry as u64
}

/// `x -= y` where `mask` is all ones, with the borrow, 0 or 1.
pub(crate) fn subtract_masked(x: &mut [u64], y: &[u64], mask: u64) -> u64 {
    let mut borrow = 0u64;
    for (x, y) in x.iter_mut().zip(y) {
        let (difference, first) = x.overflowing_sub(y & mask);
        let (difference, second) = difference.overflowing_sub(borrow);
        *x = difference;
        borrow = u64::from(first | second);
    }
    borrow
}

/// `x = n - x` if so.
fn negate_if(x: &mut [u64], n: &[u64], negate: bool) {
    let mask = u64::from(negate).wrapping_neg();
    // ~x + 1 + n, each masked.
    let mut carry = u128::from(mask & 1);
    for (x, n) in x.iter_mut().zip(n) {
        let sum = u128::from(*x ^ mask) + u128::from(n & mask) + carry;
        *x = sum as u64;
        carry = sum >> 64;
    }
}

/// Takes `n` off a number of up to twice `n` whose word above is `high`.
pub(crate) fn reduce_once(x: &mut [u64], high: u64, n: &[u64]) {
    let borrow = subtract_masked(x, n, u64::MAX);
    let below = (borrow & !high & 1).wrapping_neg();
    add_masked(x, n, below);
}

fn shift_left(x: &mut [u64]) -> u64 {
    let mut carry = 0;
    for word in x {
        (*word, carry) = (*word << 1 | carry, *word >> 63);
    }
    carry
}

/// The magnitude of `x` modulo n, by the nearer side; whether it is negative.
fn centre(out: &mut [u64], x: &[u64], n: &[u64]) -> bool {
    out.copy_from_slice(n);
    subtract_masked(out, x, u64::MAX); // n - x
    // Whether n - x < x: the borrow of their difference.
    let mut borrow = 0u64;
    for (y, x) in out.iter().zip(x) {
        let (difference, first) = y.overflowing_sub(*x);
        borrow = u64::from(first | difference.overflowing_sub(borrow).1);
    }
    let mask = borrow.wrapping_neg();
    for (out, x) in out.iter_mut().zip(x) {
        *out = *out & mask | x & !mask;
    }
    borrow == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn big(top: u64, shift: u32) -> BoxedUint {
        let shift = shift as usize;
        let mut words = vec![0u64; shift / 64 + 3];
        let wide = u128::from(top) << (shift % 64);
        words[shift / 64] = wide as u64;
        words[shift / 64 + 1] = (wide >> 64) as u64;
        BoxedUint::from_words_with_precision(words, 1024)
    }

    proptest! {
        #[test]
        fn bounds_are_never_below_and_hardly_above(
            a in any::<u64>(), s in 0u32..200, b in any::<u64>(), t in 0u32..200,
        ) {
            let exact = |bound: Bound| big(bound.parts().0, bound.parts().1);
            let (x, y) = (Bound::scaled(a.into(), s), Bound::scaled(b.into(), t));
            prop_assert_eq!(exact(x), big(a, s), "a product with a power of two is exact");
            let sum = big(a, s).wrapping_add(big(b, t));
            let product = big(a, s).wrapping_mul(big(b, t));
            for (bound, value) in [(x.plus(y), sum), (x.times(y), product)] {
                prop_assert!(exact(bound) >= value);
                let slack = value.shr_vartime(62).unwrap_or_default();
                prop_assert!(exact(bound) <= value.wrapping_add(&slack));
                prop_assert!(bound.holds(value.as_words()));
                prop_assert!(Bound::below(value.as_words()) <= bound);
                let over = exact(bound).wrapping_add(BoxedUint::one_with_precision(1024));
                prop_assert!(!bound.holds(over.as_words()));
                prop_assert!(bound.holds(exact(bound).as_words()));
            }
            prop_assert_eq!(x < y, big(a, s) < big(b, t), "the order of bounds is that of values");
            prop_assert_eq!(x.bits(), big(a, s).bits());
        }

        #[test]
        fn floats_are_the_nearest(top in 1u64.., low in any::<u64>(), words in 1usize..5, exponent in -290i32..240) {
            // A float's own parts come back exactly, at any exponent that is not above its own.
            let value = f64::from_bits(top);
            if value.is_finite() && value != 0.0 {
                let own = exact_exponent(value);
                let encoding = Encoding { exponent: own, bound: Bound::signed(200) };
                let (negative, magnitude, shift) = encoding.round(parts(value));
                let exact = big(magnitude, shift);
                let back = float(0, negative, exact.as_words(), own).unwrap();
                prop_assert_eq!(back.to_bits(), value.to_bits());
            }
            // Others are compared with the standard library's reading of the same number in decimal, scaled by a
            // power of two, which is exact for normal floats.
            let mut number = vec![low; words];
            number.push(top);
            let decimal: f64 = BoxedUint::from_words(number.iter().copied()).to_string_radix_vartime(10).parse().unwrap();
            prop_assert_eq!(float(0, false, &number, 0).unwrap(), decimal);
            let scaled = decimal * 2f64.powi(2 * exponent) * 2f64.powi(2 * exponent);
            if scaled.is_normal() {
                prop_assert_eq!(float(0, true, &number, exponent).unwrap(), -scaled);
            }
        }

        #[test]
        fn rounding_is_to_the_nearest_and_half_to_even(mantissa in any::<u64>(), down in 0i32..80) {
            let encoding = Encoding { exponent: 0, bound: Bound::ZERO };
            let (_, got, _) = encoding.round((false, mantissa, -down));
            let (unit, m) = (1u128 << down, u128::from(mantissa));
            let (kept, rest) = (m / unit, m % unit);
            let want = kept + u128::from(2 * rest > unit || 2 * rest == unit && kept % 2 == 1);
            prop_assert_eq!(u128::from(got), want);
        }
    }

    #[test]
    fn exponents_are_as_high_as_can_be() {
        // The last is phe 1.5.0's EncodedNumber.encode(key, x).exponent.
        for (value, exponent, phe) in [
            (1.0, 0, -13),
            (-1.0, 0, -13),
            (0.1, -14, -14),
            (1e-10, -22, -22),
            (1e10, 2, -5),
            (1e300, 236, 236),
            (5e-324, -269, -282),
            (f64::MAX, 242, 242),
            (2.5, -1, -13),
            (16.0, 1, -12),
        ] {
            assert_eq!(exact_exponent(value), exponent, "{value}");
            assert!(exponent >= phe);
        }
    }

    #[test]
    fn subnormals_and_the_largest_float_decode() {
        // The second ends in zeros and has an exponent above that of its last bit.
        for value in [5e-324, 2e-323, 1e-310, f64::MIN_POSITIVE, f64::MAX] {
            let exponent = exact_exponent(value);
            let (_, mantissa, shift) = Encoding { exponent, bound: Bound::ZERO }.round(parts(value));
            assert_eq!(float(0, false, big(mantissa, shift).as_words(), exponent).unwrap(), value);
        }
        // Half of the least float is rounded to even, a little more is not.
        assert_eq!(float(0, false, &[1 << 53], -282).unwrap(), 0.0);
        assert_eq!(float(0, false, &[(1 << 53) + 1], -282).unwrap(), 5e-324);
        let over = float(7, false, &[0, 0, 1], 242).unwrap_err().to_string();
        assert!(over.contains("number 7 is over the largest float"), "{over}");
    }

    #[test]
    fn integers_decode_at_their_edges() {
        assert_eq!(integer(0, true, &[1 << 63], 0).unwrap(), i64::MIN);
        assert_eq!(integer(0, false, &[i64::MAX as u64], 0).unwrap(), i64::MAX);
        assert_eq!(integer(0, true, &[0, 7], -16).unwrap(), -7);
        assert_eq!(integer(0, false, &[7], 2).unwrap(), 7 * 256);
        assert_eq!(integer(0, false, &[0, 0], 100).unwrap(), 0);
        for (negative, number, exponent, why) in [
            (false, vec![1 << 63], 0, "over 63 bits"),
            (true, vec![(1 << 63) + 1], 0, "over 63 bits"),
            (false, vec![0, 1], 0, "over 63 bits"),
            (false, vec![1], 16, "over 63 bits"),
            (false, vec![8], -1, "not whole"),
            (false, vec![1, 16], -16, "not whole"),
        ] {
            let error = integer(3, negative, &number, exponent).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("number 3"), "{error}");
        }
    }
}
