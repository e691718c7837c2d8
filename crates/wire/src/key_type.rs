//! The one form that a key has, where its column's type writes one value in several.

use std::borrow::Cow;
use std::fmt;

use chrono::{NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike};
use serde::{Deserialize, Serialize};

use crate::codec::MAX_KEY_BYTES;

/// How the keys of a table are written. A database is built with keys of this form, and a client brings the key that it is
/// given to it before it asks.
///
/// What is no value of the type stays as it is: it is looked up all the same, and is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyType {
    /// Decimals without an exponent, a plus, zeros in front of the first digit or behind the last: `1.5`, `-0.25`, `20`.
    Decimal,
    /// UUIDs of 36 characters in lower case.
    Uuid,
    /// Dates and times of no zone: `2001-02-03 04:05:06.5`, without a fraction where it is zero.
    Timestamp,
    /// Moments, the same in UTC with `+00` behind. One that names no zone is in UTC.
    Instant,
    /// Texts of a fixed length, without the spaces that fill it.
    Padded,
}

impl KeyType {
    /// Every form.
    pub const ALL: [Self; 5] = [Self::Decimal, Self::Uuid, Self::Timestamp, Self::Instant, Self::Padded];

    /// What descriptions and manifests call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Decimal => "decimal",
            Self::Uuid => "uuid",
            Self::Timestamp => "timestamp",
            Self::Instant => "instant",
            Self::Padded => "padded",
        }
    }

    /// The form of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }

    /// What its keys are, for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Decimal => "decimals, such as 1.5; 1.50 and 15e-1 are the same key",
            Self::Uuid => {
                "UUIDs, such as 01234567-89ab-cdef-0123-456789abcdef; upper case and braces are the same key"
            }
            Self::Timestamp => {
                "times, such as 2001-02-03 04:05:06.5; 2001-02-03T04:05:06.500 is the same key"
            }
            Self::Instant => {
                "times in UTC, such as 2001-02-03 04:05:06+00; 2001-02-03T05:05:06+01:00 is the same key"
            }
            Self::Padded => "texts without the spaces behind them",
        }
    }

    /// A key in this form.
    #[must_use]
    pub fn of(self, key: &[u8]) -> Cow<'_, [u8]> {
        let Ok(text) = str::from_utf8(key) else { return Cow::Borrowed(key) };
        let formed = match self {
            Self::Decimal => decimal(text),
            Self::Uuid => uuid(text),
            Self::Timestamp => time(text, false),
            Self::Instant => time(text, true),
            // A key of spaces alone would be empty, and no key: one of them stands for all.
            Self::Padded => Some(match text.trim_end_matches(' ') {
                "" => text.chars().take(1).collect(),
                text => text.to_owned(),
            }),
        };
        formed.map_or(Cow::Borrowed(key), |text| Cow::Owned(text.into_bytes()))
    }
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn decimal(text: &str) -> Option<String> {
    let text = text.trim();
    let (minus, text) = match text.strip_prefix('-') {
        Some(text) => ("-", text),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    for (name, others) in [("NaN", &["nan"][..]), ("Infinity", &["inf", "infinity"])] {
        if others.iter().any(|other| text.eq_ignore_ascii_case(other)) {
            return Some(format!("{minus}{name}"));
        }
    }
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{part}");
    if digits.is_empty() || digits.bytes().any(|b| !b.is_ascii_digit()) {
        return None;
    }
    // Where the point stands among the digits that count.
    let point = whole.len() as i64 + i64::from(exponent.parse::<i32>().ok()?);
    let from_first = digits.trim_start_matches('0');
    let point = point - (digits.len() - from_first.len()) as i64;
    let digits = from_first.trim_end_matches('0');
    if digits.is_empty() {
        return Some("0".to_owned());
    }
    let zeros = |n: i64| (n <= MAX_KEY_BYTES as i64).then(|| "0".repeat(n.max(0) as usize));
    let len = digits.len() as i64;
    Some(match point {
        ..=0 => format!("{minus}0.{}{digits}", zeros(-point)?),
        _ if point >= len => format!("{minus}{digits}{}", zeros(point - len)?),
        _ => {
            let (whole, part) = digits.split_at(point as usize);
            format!("{minus}{whole}.{part}")
        }
    })
}

fn uuid(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let text = text.strip_prefix("urn:uuid:").unwrap_or(&text);
    let text = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let digits: String = text.split('-').collect();
    let hexadecimal = digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    hexadecimal.then(|| [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]).join("-"))
}

/// A date alone is its midnight. Of a time without a zone only UTC is a zone that changes nothing.
fn time(text: &str, moment: bool) -> Option<String> {
    let text = text.trim();
    let date = NaiveDate::parse_from_str(text.get(..10)?, "%Y-%m-%d").ok()?;
    let (clock, offset) = match text.get(10..)?.strip_prefix([' ', 'T', 't']) {
        None if text.len() == 10 => (NaiveTime::MIN, 0),
        None => return None,
        Some(rest) => {
            let (clock, zone) = rest.split_at(rest.find(['Z', 'z', '+', '-', ' ']).unwrap_or(rest.len()));
            (clock_of(clock)?, offset_of(zone.trim_start())?)
        }
    };
    if offset != 0 && !moment {
        return None;
    }
    let time: NaiveDateTime = date.and_time(clock).checked_sub_signed(TimeDelta::seconds(offset))?;
    let nanos = format!("{:09}", time.nanosecond());
    let fraction = nanos.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    let zone = if moment { "+00" } else { "" };
    let shown = time.format("%Y-%m-%d %H:%M:%S").to_string();
    // Years of other than four digits are written otherwise by each system.
    (shown.len() == 19).then(|| format!("{shown}{point}{fraction}{zone}"))
}

fn clock_of(text: &str) -> Option<NaiveTime> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let time =
        NaiveTime::parse_from_str(whole, "%H:%M:%S").or_else(|_| NaiveTime::parse_from_str(whole, "%H:%M"));
    let digits = fraction.trim_end_matches('0');
    if fraction.is_empty() || digits.len() > 9 || fraction.bytes().any(|b| !b.is_ascii_digit()) {
        return None;
    }
    // A leap second is a nanosecond count over a second there.
    let time = time.ok().filter(|time| time.nanosecond() == 0)?;
    time.with_nanosecond(format!("{digits:0<9}").parse().ok()?)
}

/// Seconds east of Greenwich: `Z`, `+02`, `+0200`, `+02:00`, or nothing.
fn offset_of(zone: &str) -> Option<i64> {
    let (sign, digits) = match zone.as_bytes().first() {
        None | Some(b'Z' | b'z') => return (zone.len() <= 1).then_some(0),
        Some(b'+') => (1, &zone[1..]),
        Some(b'-') => (-1, &zone[1..]),
        _ => return None,
    };
    let digits: String = digits.split(':').collect();
    if !matches!(digits.len(), 2 | 4) || digits.bytes().any(|b| !b.is_ascii_digit()) {
        return None;
    }
    let part = |part: &str| part.parse::<i64>().unwrap_or(0);
    let (hours, minutes) = (part(&digits[..2]), part(&digits[2..]));
    (hours < 24 && minutes < 60).then_some(sign * (3600 * hours + 60 * minutes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(form: KeyType, key: &str) -> String {
        String::from_utf8(form.of(key.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn every_usual_form_of_a_value_is_one_key() {
        use KeyType::{Decimal, Instant, Padded, Timestamp, Uuid};
        let uuid = "01234567-89ab-cdef-0123-456789abcdef";
        for (form, key, others) in [
            (Decimal, "1.5", &["1.50", "1.5000", "+1.5", "01.5", "15e-1", ".15E1", " 1.5 "][..]),
            (Decimal, "0", &["0.00", "-0", "0e5", "000"]),
            (Decimal, "-0.025", &["-.025", "-2.5e-2", "-0.02500"]),
            (Decimal, "20", &["20.", "2e1", "2E+1", "0020.000"]),
            (Decimal, "12345678901234567890123456789.1", &["12345678901234567890123456789.10"]),
            (Decimal, "NaN", &["nan", "NAN"]),
            (Decimal, "-Infinity", &["-inf", "-infinity"]),
            (
                Uuid,
                uuid,
                &[
                    "0123456789ABCDEF0123456789ABCDEF",
                    "{01234567-89AB-CDEF-0123-456789ABCDEF}",
                    "urn:uuid:01234567-89ab-cdef-0123-456789abcdef",
                ],
            ),
            (
                Timestamp,
                "2001-02-03 04:05:06.5",
                &["2001-02-03T04:05:06.500", "2001-02-03 04:05:06.500000", "2001-02-03T04:05:06.5Z"],
            ),
            (
                Timestamp,
                "2001-02-03 00:00:00",
                &["2001-02-03", "2001-02-03T00:00", "2001-02-03 00:00:00.000"],
            ),
            (
                Instant,
                "2001-02-02 23:05:06+00",
                &[
                    "2001-02-03 04:05:06+05",
                    "2001-02-03T00:35:06.0+01:30",
                    "2001-02-02T21:05:06-0200",
                    "2001-02-02T23:05:06Z",
                    "2001-02-02 23:05:06",
                    "2001-02-02 23:05:06 +00:00",
                ],
            ),
            (Padded, "ab", &["ab  ", "ab "]),
            (Padded, " ", &["  ", "     "]),
        ] {
            assert_eq!(of(form, key), key, "{form}");
            for other in others {
                assert_eq!(of(form, other), key, "{form}: {other}");
            }
        }
    }

    #[test]
    fn what_is_no_value_stays_as_it_is() {
        for (form, key) in [
            (KeyType::Decimal, "1,5"),
            (KeyType::Decimal, "."),
            (KeyType::Decimal, "1e99999"),
            (KeyType::Decimal, "0x10"),
            (KeyType::Decimal, ""),
            (KeyType::Uuid, "0123456789ABCDEF0123456789ABCDE"),
            (KeyType::Timestamp, "2001-02-03 04:05:06+01"),
            (KeyType::Timestamp, "2001-02-30"),
            (KeyType::Timestamp, "infinity"),
            (KeyType::Timestamp, "0044-03-15 00:00:00 BC"),
            (KeyType::Timestamp, "2001-02-03 04:05:60"),
            (KeyType::Timestamp, "2001-02-03 04:05:06.1234567891"),
            (KeyType::Instant, "2001-02-03 04:05:06+25"),
            (KeyType::Instant, "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}"),
            (KeyType::Padded, ""),
        ] {
            assert_eq!(of(form, key), key, "{form}");
        }
        assert_eq!(*KeyType::Uuid.of(b"\xff"), *b"\xff");
        assert!(KeyType::ALL.iter().all(|form| KeyType::find(form.name()) == Some(*form)));
    }

    proptest! {
        #[test]
        fn a_form_is_its_own_form(key in "[-+0-9.eE]{0,12}|[0-9T:. Z+-]{0,30}|200[0-9]-0[1-9]-1[0-9][ T]1[0-9]:[0-5][0-9](:[0-5][0-9](\\.[0-9]{1,9})?)?(Z|[+-]0[0-9])?") {
            for form in KeyType::ALL {
                let once = of(form, &key);
                prop_assert_eq!(of(form, &once), once);
            }
        }

        #[test]
        fn decimals_of_one_value_are_one_key(n: i32, scale in 0u32..9, zeros in 0usize..5) {
            let text = format!("{n}e-{scale}");
            let key = of(KeyType::Decimal, &text);
            prop_assert_eq!(key.parse::<f64>().unwrap(), text.parse::<f64>().unwrap());
            let more = if key.contains('.') { format!("{key}{}", "0".repeat(zeros)) } else { format!("{key}.{}", "0".repeat(zeros)) };
            prop_assert_eq!(of(KeyType::Decimal, &more), key);
        }
    }
}
