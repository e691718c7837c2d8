//! Reads numbers with units. What is wrong with one, only the caller can say: which flag it was, and its limits.

/// A whole number: decimal, `0x`-hexadecimal, or with an exponent, such as `1e9`.
#[must_use]
pub fn whole(text: &str) -> Option<u64> {
    let number: u128 = match text.strip_prefix("0x") {
        Some(hex) => u128::from_str_radix(hex, 16).ok()?,
        None => text.parse().ok().or_else(|| {
            let (digits, zeros) = text.split_once('e')?;
            digits.parse::<u128>().ok()?.checked_mul(10u128.checked_pow(zeros.parse().ok()?)?)
        })?,
    };
    u64::try_from(number).ok()
}

/// Bytes: a [`whole`] number, or a number with `B`, `kB`, `KiB`, `MB`, `MiB`, `GB`, `GiB`, `TB` or `TiB` that makes a
/// whole number of bytes.
#[must_use]
pub fn size(text: &str) -> Option<u64> {
    let (number, unit) = split(text);
    let scale: u64 = match unit {
        _ if text.starts_with("0x") => return whole(text),
        "" => return whole(text),
        "B" => 1,
        "kB" | "KB" => 1000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        "TB" => 1_000_000_000_000,
        "TiB" => 1 << 40,
        _ => return None,
    };
    if let Ok(number) = number.parse::<u64>() {
        return number.checked_mul(scale);
    }
    let bytes = number.parse::<f64>().ok()? * scale as f64;
    // Doubles hold whole numbers up to 2^53.
    (bytes.fract() == 0.0 && (0.0..=(1u64 << 53) as f64).contains(&bytes)).then_some(bytes as u64)
}

/// Seconds: a number with `s`, `m`, `h` or `d`; at least 0 and finite.
#[must_use]
pub fn duration(text: &str) -> Option<f64> {
    let (number, unit) = split(text);
    let scale = match unit {
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    let seconds = number.parse::<f64>().ok()? * scale;
    (seconds.is_finite() && seconds >= 0.0).then_some(seconds)
}

/// Splits a number from the letters after it.
fn split(text: &str) -> (&str, &str) {
    let at = text.rfind(|c: char| !c.is_ascii_alphabetic()).map_or(0, |i| i + 1);
    (text[..at].trim_end(), &text[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers() {
        assert_eq!(["7", "0x10", "1e9", "0"].map(whole), [Some(7), Some(16), Some(1_000_000_000), Some(0)]);
        for bad in ["", "-1", "1.5", "1e40", "0x", "ten", "99999999999999999999999999999999999999999999"] {
            assert_eq!(whole(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes() {
        let read = ["256", "0x100", "1KiB", "3MB", "1.5kB", "64B", "8 GiB", "2TiB", "1e9"].map(size);
        let bytes = [256, 256, 1024, 3_000_000, 1500, 64, 8 << 30, 2 << 40, 1_000_000_000];
        assert_eq!(read, bytes.map(Some));
        for bad in
            ["", "-3MB", "1.0001kB", "3XB", "MB", "1e99", "nanMB", "infMB", "8gib", "18446744073709551615KiB"]
        {
            assert_eq!(size(bad), None, "{bad}");
        }
    }

    #[test]
    fn durations() {
        let read = ["90s", "1.5h", "7d", "2m", "0s"].map(duration);
        assert_eq!(read, [90.0, 5400.0, 604_800.0, 120.0, 0.0].map(Some));
        for bad in ["-1d", "5", "d", "5w", "nans", "infs", ""] {
            assert_eq!(duration(bad), None, "{bad}");
        }
    }
}
