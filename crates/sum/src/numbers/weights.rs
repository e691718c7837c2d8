//! Weights and biases in the clear, from files of numbers.

use blindcore_numbers::{Content, Source, Values};

use super::{Declared, NumbersError, limits, mantissas, read};
use crate::encoding::{self, Bound, Encoding};
use crate::evaluate::Weights;

/// Reads weights from `FILE` or `FILE?column=NAME`: [`read`], then [`weights`].
///
/// # Errors
/// As these.
pub fn read_weights(
    spec: &str,
    precision: Option<f64>,
    phe: bool,
    say: &mut dyn FnMut(String),
) -> Result<Weights, NumbersError> {
    weights(&read(&weights_source(spec, precision)?, say)?, precision, phe, say)
}

/// Where weights come from that are rounded to a precision.
pub(crate) fn weights_source(spec: &str, precision: Option<f64>) -> Result<Source, blindcore_numbers::Error> {
    Ok(to_decimals(Source::parse(spec)?, precision))
}

/// A source whose numbers are rounded to a precision, where there is one.
pub(crate) fn to_decimals(source: Source, precision: Option<f64>) -> Source {
    let decimals =
        |_| Declared { precision, magnitude: Some(f64::MIN_POSITIVE), ..Declared::default() }.decimals();
    source.with_decimals(precision.and_then(decimals))
}

/// What the largest weight is rounded to a unit of, so that no weight has more bits: nine digits and more.
const WEIGHT_LIMIT: f64 = (1u64 << 31) as f64;

/// Weights of numbers. Floats are rounded to `precision`, or as decimals of nine or ten digits, which loses nothing of
/// weights that were written so; `say` is told where it does. Whole numbers of up to 63 bits, in units or in powers of 16, are
/// kept where floats hold all their digits. In powers of 16 where `phe` says that results go to python-paillier, which knows no decimals.
///
/// # Errors
/// They need more than 63 bits, or the precision does not exist, or one is given for integers.
pub fn weights(
    content: &Content,
    precision: Option<f64>,
    phe: bool,
    say: &mut dyn FnMut(String),
) -> Result<Weights, NumbersError> {
    weights_called("weights", content, precision, phe, say)
}

/// As [`weights`], by the name that notes give them.
pub(crate) fn weights_called(
    what: &'static str,
    content: &Content,
    precision: Option<f64>,
    phe: bool,
    say: &mut dyn FnMut(String),
) -> Result<Weights, NumbersError> {
    if content.values.is_empty() {
        return Err(NumbersError::NoWeights { origin: content.origin.clone() });
    }
    let array = match &content.values {
        Values::Int(_) if precision.is_some() => {
            let (options, remedy) = ("--precision says nothing", "it of float weights alone");
            return Err(NumbersError::Options { what, are: "integers", options, remedy });
        }
        Values::Int(array) => return Ok(Weights::integers(array)),
        Values::Float(array) => array,
    };
    let largest = content.largest().max(f64::MIN_POSITIVE);
    let made = |encoding: Encoding, say: &mut dyn FnMut(String)| {
        limits::say_lost(content, encoding, what, say);
        let mantissas = mantissas(content, encoding, 0..array.len());
        Weights::encode(array.shape(), encoding, mantissas).map_err(|error| {
            let origin = content.origin.clone();
            let encoding::EncodingError::Value { position, .. } = error else {
                return NumbersError::In { origin, error };
            };
            let value = limits::written(content, position);
            NumbersError::Weights { place: content.place(position), origin, value }
        })
    };
    if let Some(precision) = precision {
        let encoding =
            if phe { Encoding::fixed(precision, largest)? } else { Encoding::decimal(precision, largest)? };
        if !phe {
            let what = format!("the {what} of {}", content.origin);
            limits::say_floats(encoding, &what, "a coarser --precision keeps decimals", say);
        }
        return made(encoding, say);
    }
    // As they were written, if that is short.
    let written = |scale: &i32| {
        let power = 10f64.powi(*scale); // exact up to 10^22
        let is = |v: &f64| (v * power).abs() < 2f64.powi(53) && (v * power).round() / power == *v;
        array.iter().all(is)
    };
    let short = |scale: &i32| largest * 10f64.powi(*scale) < WEIGHT_LIMIT;
    let scales = || (0..if phe { 0 } else { 20 }).take_while(short);
    if let Some(scale) = scales().find(written) {
        limits::say_rounded(content, what, say);
        return made(Encoding::decimal(10f64.powi(-scale), largest)?, say);
    }
    // Whole numbers that are what they are printed as are as long as integers may be, and in units where they can be: so
    // their results are integers, too.
    let (mut exact, mut bits) = (Encoding::exact(array)?, 31);
    if array.iter().all(|v| v.to_string() == format!("{v:.0}")) {
        bits = 63;
        if exact.bound().bits() > 32 && largest < 2f64.powi(63) {
            exact = Encoding::new(0, Bound::of_value(largest, 0))?;
        }
    }
    let (encoding, unit) = match scales().last() {
        _ if exact.bound().bits() <= bits + 1 => {
            limits::say_rounded(content, what, say);
            return made(exact, say);
        }
        // With nine digits at least.
        Some(scale) if !short(&(scale + 1)) => {
            // What lies in the middle of two units may be rounded up where its float is not.
            let ties = !content.exact(scale).is_empty();
            let most = if ties { largest.next_up() } else { largest };
            (Encoding::decimal(10f64.powi(-scale), most)?, limits::unit(0, scale as u32))
        }
        _ => {
            let encoding = Encoding::fixed(largest / WEIGHT_LIMIT, largest)?;
            (encoding, limits::unit(encoding.exponent(), 0))
        }
    };
    let origin = &content.origin;
    say(format!("note: the {what} of {origin} are rounded to {unit}; --precision rounds them otherwise"));
    made(encoding, say)
}
