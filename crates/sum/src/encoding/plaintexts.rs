//! Numbers as plaintexts of a key, and back.

use blindcore_accel::bigmod::Numbers;
use ndarray::{AsArray, Dimension};
use zeroize::Zeroizing;

use super::bound::Bound;
use super::error::EncodingError;
use super::exponent::float_parts;
use super::float::{BASE_LOG2, integer_parts};
use super::form::Form;
use super::lowering::Lowering;
use super::values::Encoding;
use super::words::{add_masked, bit_length, centre, negate_if, reduce_once, shift_left, window};
use crate::keys::{KeyId, PublicKey};
use crate::scheme::Decryptor;

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
    ) -> Result<Self, EncodingError> {
        let values = values.into();
        let mantissas = values.iter().enumerate().map(|(i, v)| encoding.mantissa(i, integer_parts(*v)));
        Self::encode(key, values.shape(), encoding, mantissas)
    }

    /// Encodes floats: a slice, or a view of any shape. Rounded half to even where the encoding is coarser.
    ///
    /// # Errors
    /// As [`Plaintexts::integers`]; or one is not finite.
    pub fn floats<'a, D: Dimension>(
        key: &PublicKey,
        values: impl AsArray<'a, f64, D>,
        encoding: Encoding,
    ) -> Result<Self, EncodingError> {
        let values = values.into();
        let mantissas = values.iter().enumerate().map(|(i, v)| encoding.mantissa(i, float_parts(i, *v)?));
        Self::encode(key, values.shape(), encoding, mantissas)
    }

    /// Encodes mantissas of the encoding.
    pub(crate) fn encode(
        key: &PublicKey,
        shape: &[usize],
        encoding: Encoding,
        mantissas: impl ExactSizeIterator<Item = Result<(bool, u64, u32), EncodingError>>,
    ) -> Result<Self, EncodingError> {
        let Encoding { exponent, scale, bound, .. } = encoding;
        let form = Form { exponent, scale, bound, packed: None, shape: shape.to_vec() };
        form.check(key, mantissas.len())?;
        let n = key.n();
        let mut numbers = Numbers::zeroed(mantissas.len(), n.len());
        for (position, mantissa) in mantissas.enumerate() {
            let (negative, magnitude, shift) = mantissa?;
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
    pub fn decrypt(decryptor: &Decryptor, ciphertexts: &Numbers, form: &Form) -> Result<Self, EncodingError> {
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
    pub fn lower_exponent(&self, key: &PublicKey, exponent: i32) -> Result<Self, EncodingError> {
        self.lowered(key, exponent, self.form.scale)
    }

    /// The same numbers in a finer unit.
    pub(crate) fn lowered(&self, key: &PublicKey, exponent: i32, scale: u32) -> Result<Self, EncodingError> {
        let down = Lowering::new(&self.form, exponent, scale)?;
        let mut out = self.clone();
        (out.form.exponent, out.form.scale) = (exponent, scale);
        out.form.bound = down.bound(self.form.bound);
        out.form.check_range(key, "a lower exponent", down.counted(self.form.bound))?;
        let double = |number: &mut [u64]| {
            let high = shift_left(number);
            reduce_once(number, high, &self.n);
        };
        for position in 0..out.numbers.len() {
            let number = out.numbers.get_mut(position);
            (0..down.bits).for_each(|_| double(number));
            for _ in 0..down.tens {
                double(number);
                let twice = Zeroizing::new(number.to_vec());
                double(number);
                double(number);
                let carry = add_masked(number, &twice, u64::MAX);
                reduce_once(number, carry, &self.n);
            }
        }
        Ok(out)
    }

    /// Decodes to integers, row-major, in the shape [`Form::numbers_shape`].
    ///
    /// # Errors
    /// A number is over its bound, not whole, or over 63 bits.
    pub fn to_i64(&self) -> Result<Vec<i64>, EncodingError> {
        self.decode(integer)
    }

    /// Decodes to floats, each the nearest: exactly what was encoded, where that was exact.
    ///
    /// # Errors
    /// A number is over its bound, or over the largest float.
    pub fn to_f64(&self) -> Result<Vec<f64>, EncodingError> {
        self.decode(float)
    }

    /// Decodes to decimals of any length, exactly; a point stands where a number is not whole.
    ///
    /// # Errors
    /// A number is over its bound, or has tens of thousands of bits.
    pub fn to_decimals(&self) -> Result<Vec<String>, EncodingError> {
        self.decode(decimals)
    }

    /// Decodes to text: each number as the nearest float is printed. In decimals, exactly, stands one over the largest float, one
    /// that is not 0 and whose float is, one over 2^53 that is not its float, and one in a unit of decimals that is not what its
    /// float is printed as.
    ///
    /// # Errors
    /// As [`Plaintexts::to_decimals`].
    pub fn to_texts(&self) -> Result<Vec<String>, EncodingError> {
        self.decode(|position, negative, magnitude, unit| {
            if unit.1 == 0 {
                let bits = i64::from(bit_length(magnitude));
                let lost = bits - i64::from(trailing_zeros(magnitude)) > 53;
                let large = bits + i64::from(BASE_LOG2 * unit.0) > 53;
                return match float(position, negative, magnitude, unit) {
                    Ok(v) if (v != 0.0 || bits == 0) && !(large && lost) => Ok(format!("{v:?}")),
                    Ok(_) => decimals(position, negative, magnitude, unit).map(pointed),
                    Err(_) => decimals(position, negative, magnitude, unit),
                };
            }
            let exact = decimals(position, negative, magnitude, unit)?;
            let v: f64 = exact.parse().unwrap_or(f64::INFINITY);
            // Without an exponent, as decimals are.
            if v.is_infinite() {
                return Ok(exact);
            }
            if v.to_string() == exact {
                return Ok(format!("{v:?}"));
            }
            Ok(pointed(exact))
        })
    }

    fn decode<T>(
        &self,
        decode: impl Fn(usize, bool, &[u64], (i32, u32)) -> Result<T, EncodingError>,
    ) -> Result<Vec<T>, EncodingError> {
        let unit = (self.form.exponent, self.form.scale);
        if self.form.packed.is_some() {
            let slots = Zeroizing::new(self.slots()?);
            let value = |(i, v): (usize, &i64)| decode(i, *v < 0, &[v.unsigned_abs()], unit);
            return slots.iter().enumerate().map(value).collect();
        }
        let bound = self.form.bound;
        let mut out = Vec::with_capacity(self.numbers.len());
        let mut magnitude = Numbers::zeroed(1, self.n.len());
        for (position, number) in self.numbers.iter().enumerate() {
            let magnitude = magnitude.get_mut(0);
            let negative = centre(magnitude, number, &self.n);
            if !bound.holds(magnitude) {
                return Err(EncodingError::Overflow { position, limit: bound });
            }
            out.push(decode(position, negative, magnitude, unit)?);
        }
        Ok(out)
    }
}

/// Whether the lowest `down` bits are zero.
fn is_whole(magnitude: &[u64], down: u32) -> bool {
    magnitude.iter().enumerate().all(|(i, w)| {
        let cut = down.saturating_sub(64 * i as u32);
        if cut >= 64 { *w == 0 } else { w & ((1 << cut) - 1) == 0 }
    })
}

/// The zeros below the lowest bit that is set; all where none is.
fn trailing_zeros(magnitude: &[u64]) -> u32 {
    let word = magnitude.iter().position(|w| *w != 0).unwrap_or(magnitude.len());
    64 * word as u32 + magnitude.get(word).map_or(0, |w| w.trailing_zeros())
}

/// A decimal with a point, as floats have one.
fn pointed(decimal: String) -> String {
    if decimal.contains('.') { decimal } else { decimal + ".0" }
}

/// Bits of an integer that is written out, at most: of a key's n some times over.
const MAX_DECIMAL_BITS: i64 = 1 << 16;

fn decimals(
    position: usize,
    negative: bool,
    magnitude: &[u64],
    (exponent, scale): (i32, u32),
) -> Result<String, EncodingError> {
    let bits = i64::from(bit_length(magnitude));
    if bits == 0 {
        return Ok("0".into());
    }
    if bits + i64::from(BASE_LOG2 * exponent) > MAX_DECIMAL_BITS {
        let (why, remedy) = ("has over 65,536 bits", "decode it as a float");
        return Err(EncodingError::Decode { position, why, remedy });
    }
    // A sixteenth is 0.0625: 625 with the point before its fourth digit.
    let (by, point) = if exponent < 0 { (625, scale + 4 * exponent.unsigned_abs()) } else { (16, scale) };
    let mut value = magnitude.to_vec();
    let mut left = exponent.unsigned_abs();
    while left > 0 {
        let factors = left.min(6); // 625^6 < 2^56
        let (by, mut carry) = (u128::pow(by, factors), 0u128);
        left -= factors;
        for word in &mut value {
            carry += u128::from(*word) * by;
            (*word, carry) = (carry as u64, carry >> 64);
        }
        value.extend((carry > 0).then_some(carry as u64));
    }
    // Nineteen digits at a time, the last ones first.
    const BILLIONS: u128 = 10_000_000_000_000_000_000;
    let mut parts = Vec::new();
    while let Some(top) = value.iter().rposition(|word| *word != 0) {
        value.truncate(top + 1);
        let mut rest = 0u128;
        for word in value.iter_mut().rev() {
            rest = rest << 64 | u128::from(*word);
            *word = (rest / BILLIONS) as u64;
            rest %= BILLIONS;
        }
        parts.push(rest);
    }
    let digits: String = parts.iter().rev().map(|part| format!("{part:019}")).collect();
    let point = point as usize;
    let digits = format!("{:0>width$}", digits.trim_start_matches('0'), width = point + 1);
    let (whole, part) = digits.split_at(digits.len() - point);
    let (sign, part) = (if negative { "-" } else { "" }, part.trim_end_matches('0'));
    let dot = if part.is_empty() { "" } else { "." };
    Ok(format!("{sign}{whole}{dot}{part}"))
}

pub(super) fn integer(
    position: usize,
    negative: bool,
    magnitude: &[u64],
    (exponent, scale): (i32, u32),
) -> Result<i64, EncodingError> {
    let refuse = |why, remedy| Err(EncodingError::Decode { position, why, remedy });
    if scale > 0 {
        let text = decimals(position, negative, magnitude, (exponent, scale))?;
        let why = if text.contains('.') { "is not whole" } else { "has over 63 bits" };
        return text.parse().or_else(|_| refuse(why, "decode it as a float"));
    }
    let bits = bit_length(magnitude);
    if bits == 0 {
        return Ok(0);
    }
    let shift = BASE_LOG2 * exponent;
    if bits as i32 + shift > 64 {
        return refuse("has over 63 bits", "decode it as a float");
    }
    let down = (-shift).max(0) as u32;
    if !is_whole(magnitude, down) {
        return refuse("is not whole", "decode it as a float");
    }
    // What is left has 64 bits at most.
    let value = if shift >= 0 { magnitude[0] << shift } else { window(magnitude, down) };
    let signed = if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() };
    signed.map_or_else(|| refuse("has over 63 bits", "decode it as a float"), Ok)
}

pub(super) fn float(
    position: usize,
    negative: bool,
    magnitude: &[u64],
    (exponent, scale): (i32, u32),
) -> Result<f64, EncodingError> {
    let finite = |value: f64| {
        let (why, remedy) = ("is over the largest float", "decode it as decimals");
        if value.is_finite() { Ok(value) } else { Err(EncodingError::Decode { position, why, remedy }) }
    };
    let bits = bit_length(magnitude) as i32;
    if bits == 0 {
        return Ok(0.0);
    }
    if scale > 0 {
        let text = decimals(position, negative, magnitude, (exponent, scale))?;
        return finite(text.parse().unwrap_or(f64::INFINITY));
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
        let (_, mantissa, zeros) = Encoding::new(0, Bound::ZERO)?.round((false, top, shift + 1074));
        f64::from_bits((mantissa as u64) << zeros)
    } else {
        // Rounded by the conversion; the two products are exact or pass the largest float.
        let half = shift / 2;
        top as f64 * 2f64.powi(half) * 2f64.powi(shift - half)
    };
    finite(if negative { -value } else { value })
}
