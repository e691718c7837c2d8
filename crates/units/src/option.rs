//! What a person gives to an option, and one line about what is wrong with it: the option, the value, the limits, the remedy.

use crate::{duration, size};

/// A whole number from 1 to `max`.
///
/// # Errors
/// It is something else; `remedy` ends the line.
pub fn whole(option: &str, text: &str, max: u64, remedy: &str) -> Result<u64, String> {
    match crate::whole(text) {
        Some(n) if (1..=max).contains(&n) => Ok(n),
        Some(_) => Err(format!("{option} is {text}, outside 1 to {max}; {remedy}")),
        None => Err(format!("{option} is {text:?}, not a whole number from 1 to {max}; {remedy}")),
    }
}

/// A number in a range, of a unit.
///
/// # Errors
/// It is something else; `remedy` ends the line.
pub fn real(option: &str, text: &str, min: f64, max: f64, unit: &str, remedy: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if (min..=max).contains(&n) => Ok(n),
        Ok(n) => Err(format!("{option} is {n}{unit}, outside {min} to {max}; {remedy}")),
        Err(_) => Err(format!("{option} is {text:?}, not a number from {min} to {max}; {remedy}")),
    }
}

/// Bytes from 1 to `max`, with a unit or without.
///
/// # Errors
/// It is something else.
pub fn bytes(option: &str, text: &str, max: u64) -> Result<u64, String> {
    let remedy = "say bytes, or a number with kB, KiB, MB, MiB, GB or GiB";
    let bytes = size(text).filter(|bytes| (1..=max).contains(bytes));
    bytes.ok_or_else(|| format!("{option} is {text}, not 1 to {max} whole bytes; {remedy}"))
}

/// Seconds, from 1 to ten years.
///
/// # Errors
/// It is something else.
pub fn seconds(option: &str, text: &str) -> Result<f64, String> {
    let remedy = "say a number with s, m, h or d, such as 12h";
    let seconds = duration(text).filter(|seconds| (1.0..=3650.0 * 86_400.0).contains(seconds));
    seconds.ok_or_else(|| format!("{option} is {text:?}, not a duration from 1s to 3650d; {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_their_limits() {
        let n = |text| whole("--rows", text, 1 << 40, "say it");
        assert_eq!((n("7"), n("0x10"), n("1e9")), (Ok(7), Ok(16), Ok(1_000_000_000)));
        for bad in ["0", "-1", "", "1.5", "1e40", "0x", "ten", "99999999999999999999999999999999999999999999"]
        {
            let why = n(bad).unwrap_err();
            assert!(["--rows", "1099511627776", "say it"].iter().all(|part| why.contains(part)), "{why}");
        }
        let b = |text| bytes("--record-bytes", text, 1 << 30);
        assert_eq!((b("256"), b("0x100"), b("1KiB"), b("3MB")), (Ok(256), Ok(256), Ok(1024), Ok(3_000_000)));
        assert_eq!((b("1.5kB"), b("64B"), b("1GiB")), (Ok(1500), Ok(64), Ok(1 << 30)));
        for bad in ["0", "0B", "-3MB", "2GiB", "1.0001kB", "3XB", "MB", "1e99", "nanMB", "infMB"] {
            let why = b(bad).unwrap_err();
            assert!(why.contains("--record-bytes") && why.contains("1073741824"), "{why}");
        }
        let d = |text| seconds("--epoch", text);
        assert_eq!((d("90s"), d("1.5h"), d("7d"), d("2m")), (Ok(90.0), Ok(5400.0), Ok(604_800.0), Ok(120.0)));
        for bad in ["0d", "-1d", "5", "d", "5w", "4000d", "nans", ""] {
            assert!(d(bad).unwrap_err().contains("--epoch"), "{bad}");
        }
        let r = |text| real("--up", text, 0.001, 1e6, " Mbit/s", "say it");
        assert_eq!(r("2.5"), Ok(2.5));
        for bad in ["0", "-1", "NaN", "inf", "1e7", "fast", ""] {
            assert!(r(bad).unwrap_err().contains("--up is"), "{bad}");
        }
    }
}
