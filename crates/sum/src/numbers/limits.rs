//! What is said of numbers that are over what was declared, or below what is kept.

use std::borrow::Cow;

use blindcore_numbers::{Content, Values};
use ndarray::ArrayD;

use super::NumbersError;
use crate::encoding::{BASE_LOG2, Bound, Encoding, EncodingError};

/// An error of the encoding of what was read, in the person's words: where the number stands, and the option that helps.
pub(super) fn refused(content: &Content, encoding: Encoding, error: EncodingError) -> NumbersError {
    let origin = content.origin.clone();
    let EncodingError::Value { position, limit, .. } = error else {
        return NumbersError::In { origin, error };
    };
    match &content.values {
        Values::Int(array) => {
            let (over, remedy) = integer(array, position, encoding.bound().bits(), limit);
            NumbersError::Over { place: content.place(position), origin, over, remedy }
        }
        Values::Float(_) => over_magnitude(content, position, in_units(limit, encoding)),
    }
}

/// A float that is over the magnitude that was declared, both as they were written.
pub(super) fn over_magnitude(content: &Content, position: usize, most: f64) -> NumbersError {
    let over = format!("{} is over the declared magnitude of {}", written(content, position), short(most));
    let (place, origin) = (content.place(position), content.origin.clone());
    NumbersError::Over { place, origin, over, remedy: format!("--magnitude {}", round_up(content.largest())) }
}

fn integer(array: &ArrayD<i64>, position: usize, bits: u32, limit: Bound) -> (String, String) {
    let value = array.iter().nth(position).copied().unwrap_or_default();
    let (word, sign) = if value < 0 { ("below", "-") } else { ("over", "") };
    let power = bits.saturating_sub(1);
    let over = format!(
        "{value} is {word} the declared {sign}{} of --bits {bits} (-2^{power} to 2^{power} - 1)",
        limit.parts().0
    );
    let length = |v: &i64| 65 - (if *v < 0 { !v } else { *v }).leading_zeros();
    (over, format!("--bits {}", array.iter().map(length).max().unwrap_or(64)))
}

/// Numbers that are rounded as they were written, where their unit is one of decimals.
pub(super) fn exact(content: &Content, encoding: Encoding) -> Cow<'_, [(usize, i128)]> {
    if encoding.exponent() == 0 { content.exact(encoding.decimals()) } else { Cow::Borrowed(&[]) }
}

/// A unit in words.
pub(super) fn unit(exponent: i32, decimals: u32) -> String {
    match (exponent, decimals) {
        (0, 0) => "whole numbers".into(),
        (0, decimals) => format!("1e-{decimals}"),
        (exponent, _) => {
            let value = 2f64.powi(BASE_LOG2 * exponent);
            match value {
                1.0..1e9 => format!("16^{exponent} ({value})"),
                // Below all floats.
                0.0 => format!("16^{exponent}"),
                _ => format!("16^{exponent} (about {value:.0e})"),
            }
        }
    }
}

/// Says that numbers are floats, where decimals were asked for.
pub(super) fn say_floats(encoding: Encoding, what: &str, remedy: &str, say: &mut dyn FnMut(String)) {
    if encoding.exponent() != 0 || encoding.bound() > Bound::signed(64) {
        let unit = unit(encoding.exponent(), 0);
        say(format!(
            "note: {what} of this precision take over 63 bits as decimals, and are floats rounded to {unit}; {remedy}"
        ));
    }
}

/// A float as it was written.
pub(super) fn written(content: &Content, position: usize) -> String {
    let value = content.values.as_float().and_then(|array| array.iter().nth(position));
    content.written(position).map_or_else(|| short(value.copied().unwrap_or_default()), str::to_owned)
}

/// The shorter of a float's two forms.
fn short(value: f64) -> String {
    let (plain, power) = (value.to_string(), format!("{value:e}"));
    if plain.len() > 8 && power.len() < plain.len() { power } else { plain }
}

fn in_units(bound: Bound, encoding: Encoding) -> f64 {
    let (top, shift) = bound.parts();
    let power = shift as i32 + BASE_LOG2 * encoding.exponent();
    top as f64 * 2f64.powi(power) / 10f64.powi(encoding.scale() as i32)
}

/// The least number of one digit that is not below a magnitude.
fn round_up(magnitude: f64) -> String {
    let text = format!("{magnitude:e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let (first, power) = (digits.chars().next().and_then(|c| c.to_digit(10)), power.parse::<i32>());
    let (Some(first), Ok(power)) = (first, power) else { return text };
    let up = match first + u32::from(digits.len() > 1) {
        10 => format!("1e{}", power + 1),
        digit => format!("{digit}e{power}"),
    };
    if up.parse().is_ok_and(f64::is_finite) { up } else { text }
}

/// Says how many weights have digits that are not kept.
pub(super) fn say_rounded(content: &Content, what: &str, say: &mut dyn FnMut(String)) {
    let rounded = content.rounded();
    if rounded > 0 {
        let (all, origin) = (content.values.len(), &content.origin);
        say(format!(
            "note: {rounded} of {all} {what} of {origin} have more digits than a float holds and are rounded to the nearest; \
             --precision rounds them by the digits that were written"
        ));
    }
}

/// Says how many numbers are so small that they count as 0.
pub(super) fn say_lost(content: &Content, encoding: Encoding, what: &str, say: &mut dyn FnMut(String)) {
    let Values::Float(array) = &content.values else { return };
    let exact = exact(content, encoding);
    let loses = |(position, value): &(usize, &f64)| match exact.binary_search_by_key(position, |(at, _)| *at)
    {
        Ok(at) => exact[at].1 == 0,
        Err(_) => encoding.loses(**value),
    };
    let lost = content.vanished() + array.iter().enumerate().filter(loses).count();
    if lost > 0 {
        let (all, origin) = (array.len(), &content.origin);
        say(format!(
            "note: {lost} of {all} {what} of {origin} are so small that they count as 0; a smaller --precision keeps them"
        ));
    }
}
