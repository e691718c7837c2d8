//! Values as text: decimals, dates and times; and numbers of binary16.

/// Bytes of a decimal, at most: 76 digits.
const MAX_DECIMAL_BYTES: usize = 32;

/// The digits of an integer in two's complement, highest byte first, with this many behind the point.
pub(super) fn decimal(bytes: &[u8], scale: usize) -> Result<String, String> {
    if !(1..=MAX_DECIMAL_BYTES).contains(&bytes.len()) {
        return Err(format!("a decimal of {} B is outside 1 to {MAX_DECIMAL_BYTES} B", bytes.len()));
    }
    let negative = bytes[0] >= 0x80;
    let mut magnitude = bytes.to_vec();
    if negative {
        let mut carry = true;
        for byte in magnitude.iter_mut().rev() {
            (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
        }
    }
    let mut digits = Vec::new();
    while magnitude.iter().any(|b| *b != 0) || digits.len() <= scale {
        let mut rest = 0u16;
        for byte in &mut magnitude {
            let value = rest << 8 | u16::from(*byte);
            (*byte, rest) = ((value / 10) as u8, value % 10);
        }
        digits.push(b'0' + rest as u8);
        if digits.len() == scale {
            digits.push(b'.');
        }
    }
    if scale > 0 && digits.last() == Some(&b'.') {
        digits.push(b'0');
    }
    if negative {
        digits.push(b'-');
    }
    Ok(digits.iter().rev().map(|b| char::from(*b)).collect())
}

/// A number of binary16. Source: IEEE 754-2019, section 3.4.
pub(super) fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

/// The day that comes this many days after 1 January 1970. Source: H. Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", `civil_from_days`.
pub(super) fn date(days: i64) -> String {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153; // from March on
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = 400 * era + year + i64::from(month <= 2);
    let before = if year < 0 { "-" } else { "" };
    format!("{before}{:04}-{month:02}-{day:02}", year.unsigned_abs())
}

/// A time of a day, with the digits of its fraction that are needed.
pub(super) fn clock(seconds: i64, fraction: i64, unit: i64) -> String {
    let text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction == 0 {
        return text;
    }
    let digits = unit.ilog10() as usize;
    format!("{text}.{}", format!("{fraction:0digits$}").trim_end_matches('0'))
}

pub(super) fn timestamp(seconds: i64, fraction: i64, unit: i64) -> String {
    format!("{} {}", date(seconds.div_euclid(86_400)), clock(seconds.rem_euclid(86_400), fraction, unit))
}
