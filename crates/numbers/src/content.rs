//! What was read: numbers, where each of them stands, and what a float doesn't hold of them.

use std::borrow::Cow;

use crate::Values;
use crate::error::shown;

/// Numbers that were read, and what is known of them besides.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// What they are called in messages.
    pub origin: String,
    /// The numbers.
    pub values: Values,
    /// The names of columns, where a first line was taken for such without being asked for.
    pub names: Option<Vec<String>>,
    /// Whether every line may be one number with separators of thousands: all cells but the first have three digits.
    pub separated: bool,
    pub(crate) exact: Exact,
    pub(crate) places: Places,
}

impl Content {
    /// Numbers that stand in no file.
    #[must_use]
    pub fn new(origin: impl Into<String>, values: Values) -> Self {
        let places = Places::Elements(values.shape().to_vec());
        let exact = Exact::default();
        Self { origin: origin.into(), values, names: None, separated: false, exact, places }
    }

    /// The numbers in another shape of as many: each stands where it stood.
    #[must_use]
    pub fn shaped(self, shape: impl FnOnce(Values) -> Values) -> Self {
        Self { values: shape(self.values), ..self }
    }

    /// The same numbers, called otherwise in messages.
    #[must_use]
    pub fn called(self, origin: impl Into<String>) -> Self {
        Self { origin: origin.into(), ..self }
    }

    /// Where in its source a number stands, counted in C order: a line and a column, a row and a column, or an element.
    #[must_use]
    pub fn place(&self, position: usize) -> String {
        match &self.places {
            Places::Lines { first, columns } => {
                let (column, name) = &columns[position % columns.len()];
                line_place(first + (position / columns.len()) as u64, *column, name)
            }
            Places::Rows(columns) => {
                row_place((position / columns.len()) as u64, &columns[position % columns.len()])
            }
            Places::Elements(shape) => {
                let (mut index, mut rest) = (vec![0; shape.len()], position);
                for (at, axis) in index.iter_mut().zip(shape).rev() {
                    (*at, rest) = (rest % axis, rest / axis);
                }
                format!("element {index:?}")
            }
        }
    }

    /// A float that no magnitude of floats is over as it was written: the largest, or the next; 0 where there is none.
    #[must_use]
    pub fn largest(&self) -> f64 {
        let largest =
            self.values.as_float().map_or(0.0, |array| array.iter().fold(0.0f64, |m, v| m.max(v.abs())));
        if self.exact.units.is_empty() && self.exact.rounded == 0 { largest } else { largest.next_up() }
    }

    /// Numbers that are rounded to other decimals than their floats, each with its position: the integers nearest to them, as
    /// they were written, times 10^`decimals`, half to even; with `decimals` at -3 they are counted in thousands. Where the source was asked for other decimals by
    /// [`with_decimals`](crate::Source::with_decimals) it is empty; where it was asked for none these are the numbers that lie
    /// in the middle of two such units, for up to 19 decimals.
    #[must_use]
    pub fn exact(&self, decimals: i32) -> Cow<'_, [(usize, i128)]> {
        match self.exact.decimals {
            Some(asked) if asked == decimals => Cow::Borrowed(&self.exact.units),
            Some(_) => Cow::Borrowed(&[]),
            None => {
                let ties = self.exact.ties.iter().filter(|(_, at, _)| *at == decimals);
                ties.map(|(position, _, units)| (*position, *units)).collect()
            }
        }
    }

    /// How many numbers were written with digits that their floats don't hold; those that have vanished are not among them.
    #[must_use]
    pub fn rounded(&self) -> usize {
        self.exact.rounded
    }

    /// A float as it was written, where no number before it is larger: the first that is over a limit, say. None where its float
    /// has all its digits, or where so many were kept that its own weren't.
    #[must_use]
    pub fn written(&self, position: usize) -> Option<&str> {
        let at = self.exact.texts.binary_search_by_key(&position, |(position, _)| *position).ok()?;
        Some(&self.exact.texts[at].1)
    }

    /// How many numbers are not 0 as they were written, and so small that their floats are.
    #[must_use]
    pub fn vanished(&self) -> usize {
        self.exact.vanished
    }
}

/// Where numbers stand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Places {
    /// On lines, the first of which is given, counted from 1; each column has its position and maybe a name.
    Lines { first: u64, columns: Vec<(usize, String)> },
    /// In rows, the columns of which have names.
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "Parquet alone has such"))]
    Rows(Vec<String>),
    /// In an array of this shape.
    Elements(Vec<usize>),
}

pub(crate) fn line_place(line: u64, column: usize, name: &str) -> String {
    let place = format!("line {line}, column {}", column + 1);
    if name.is_empty() { place } else { format!("{place} ({})", shown(name)) }
}

/// Rows are counted from 1.
pub(crate) fn row_place(row: u64, name: &str) -> String {
    format!("row {}, column {}", row + 1, shown(name))
}

/// What floats don't hold of decimals.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Exact {
    decimals: Option<i32>,
    units: Vec<(usize, i128)>,
    /// Where no decimals were asked for, those that are in the middle of two units of some decimals, and how many.
    ties: Vec<(usize, i32, i128)>,
    vanished: usize,
    rounded: usize,
    /// Some of those that are rounded, as they were written.
    texts: Vec<(usize, Box<str>)>,
    largest: f64,
}

/// Texts of numbers that are kept for messages, and bytes of one, at most.
const TEXTS: usize = 1 << 16;
const TEXT_BYTES: usize = 64;

impl Exact {
    pub(crate) fn new(decimals: Option<i32>) -> Self {
        Self { decimals, ..Self::default() }
    }

    /// Keeps the number at a position, if it is another than its float to so many decimals.
    pub(crate) fn look(&mut self, position: usize, value: f64, text: &[u8]) {
        let mut digits = text.iter().take_while(|byte| !matches!(byte, b'e' | b'E'));
        self.vanished += usize::from(value == 0.0 && digits.any(|digit| matches!(digit, b'1'..=b'9')));
        let not_over = value.abs() >= self.largest;
        self.largest = self.largest.max(value.abs());
        if let Some(text) = str::from_utf8(text.trim_ascii()).ok().filter(|text| is_rounded(value, text)) {
            self.rounded += 1;
            if not_over && self.texts.len() < TEXTS && text.len() <= TEXT_BYTES {
                self.texts.push((position, text.into()));
            }
        }
        let Some(decimals) = self.decimals.or_else(|| tie(value, text)) else { return };
        // A float is off from its decimal by 2^-53 of itself at most, and this product, or quotient, from its own by as much:
        // 2^-52 in all. What is twice as far from a tie is rounded to the same side as its decimal, and most numbers are.
        let power = 10f64.powi(decimals.abs());
        let scaled = if decimals < 0 { value.abs() / power } else { value.abs() * power };
        if (scaled.fract() - 0.5).abs() > 2.0 * f64::EPSILON * scaled {
            return;
        }
        let units = |text: &str| units(text, decimals);
        let exact = str::from_utf8(text.trim_ascii()).ok().and_then(units);
        // Exactly: what is near a tie of up to 19 decimals is above 2^-66, and such a float ends before its 120th decimal.
        let rounded = units(&format!("{value:.120}"));
        let Some(exact) = exact.filter(|exact| Some(*exact) != rounded) else { return };
        match self.decimals {
            Some(_) => self.units.push((position, exact)),
            None => self.ties.push((position, decimals, exact)),
        }
    }
}

/// Most decimals of a unit that numbers are looked at for where none were asked for.
const MOST_DECIMALS: i32 = 19;

/// The decimals of the units between which a number may lie in the middle: it has one more, a 5. The shortest decimal of its
/// float is that middle where the float is the nearest to it.
fn tie(value: f64, text: &[u8]) -> Option<i32> {
    // A float tells decimals of fifteen digits from one another.
    let mantissa = text.iter().take_while(|byte| !matches!(byte, b'e' | b'E'));
    let (mut count, mut last) = (0, b'0');
    for digit in mantissa.filter(|byte| byte.is_ascii_digit()) {
        count += 1;
        last = if *digit == b'0' { last } else { *digit };
    }
    if count <= 15 && last != b'5' {
        return None;
    }
    let shortest = format!("{value:e}");
    let (digits, power) = shortest.split_once('e')?;
    let places = digits.strip_suffix('5')?.split_once('.').map_or(0, |(_, part)| part.len() + 1);
    let decimals = i64::try_from(places).ok()? - power.parse::<i64>().ok()? - 1;
    i32::try_from(decimals).ok().filter(|decimals| (0..=MOST_DECIMALS).contains(decimals))
}

/// Whether a decimal is another number than its float is printed as.
fn is_rounded(value: f64, text: &str) -> bool {
    fn digits(text: &str) -> impl Iterator<Item = u8> {
        let digits = text.bytes().take_while(|byte| !matches!(byte, b'e' | b'E')).filter(u8::is_ascii_digit);
        digits.skip_while(|digit| *digit == b'0')
    }
    // Fifteen digits come back from a float, but from those that have fewer bits.
    if value == 0.0 || value.is_normal() && digits(text).nth(15).is_none() {
        return false;
    }
    // Both have that float: what has the same digits is not a power of ten from it.
    let significant = |text: &str| {
        let mut digits: Vec<u8> = digits(text).collect();
        digits.truncate(digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1));
        digits
    };
    significant(text) != significant(&format!("{value:e}"))
}

/// A decimal, as a float is written, times 10^`decimals` (which may be negative), rounded half to even. None where its magnitude is
/// over 64 bits, as no mantissa is.
#[must_use]
pub fn units(text: &str, decimals: i32) -> Option<i128> {
    let (text, exponent) = match text.split_once(['e', 'E']) {
        Some((text, exponent)) => (text, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (negative, text) = (text.starts_with('-'), text.trim_start_matches(['-', '+']));
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = || whole.bytes().chain(part.bytes());
    let point = (whole.len() as i64).checked_add(exponent)?.checked_add(decimals.into())?;
    let mut value = 0i128;
    let mut put = |digit: u8| {
        value = value.checked_mul(10)?.checked_add(i128::from(char::from(digit).to_digit(10)?))?;
        Some(())
    };
    let kept = usize::try_from(point).unwrap_or(0);
    digits().take(kept).try_for_each(&mut put)?;
    // Noughts that were not written; after 39 no digit has room.
    (digits().count()..kept).take(40).try_for_each(|_| put(b'0'))?;
    let mut cut = digits().skip(kept);
    let up = match cut.next().filter(|_| point >= 0) {
        Some(b'5') => cut.any(|digit| digit != b'0') || value % 2 == 1,
        digit => digit.is_some_and(|digit| digit > b'5'),
    };
    let value = value.checked_add(i128::from(up)).filter(|value| *value <= u64::MAX.into())?;
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_in_units_half_to_even() {
        for (text, decimals, want) in [
            ("70368744177664.07", 2, Some(7036874417766407)),
            ("-70368744177664.07", 2, Some(-7036874417766407)),
            ("+9007199254740993.0", 0, Some(9007199254740993)),
            ("0.125", 2, Some(12)),
            ("0.135", 2, Some(14)),
            ("0.1250000001", 2, Some(13)),
            ("9.5", 0, Some(10)),
            (".5", 0, Some(0)),
            ("1.5", 0, Some(2)),
            ("7.", 1, Some(70)),
            ("1.25e3", 0, Some(1250)),
            ("125E-4", 2, Some(1)),
            ("96e-2", 0, Some(1)),
            ("96e-3", 0, Some(0)),
            ("0e9999", 0, Some(0)),
            ("9223372036854775807", 0, Some(i64::MAX.into())),
            ("9223372036854775807.4", 0, Some(i64::MAX.into())),
            ("9223372036854775807.5", 0, Some(1 << 63)),
            ("92233720368547758.08", 2, Some(1 << 63)),
            ("-18446744073709551615.5", 0, None),
            ("-18446744073709551615.4", 0, Some(-i128::from(u64::MAX))),
            ("170141183460469231731687303715884105728", 0, None),
            ("54321.7", -3, Some(54)),
            ("54500", -3, Some(54)),
            ("-54500.00000000000000000001", -3, Some(-55)),
            ("500", -3, Some(0)),
            ("501", -3, Some(1)),
            ("99", -3, Some(0)),
            ("1e300", 0, None),
            ("1e99999999999999999999", 0, None),
        ] {
            assert_eq!(units(text, decimals), want, "{text}");
        }
    }
}
