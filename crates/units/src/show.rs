//! Writes numbers for people.

/// Bytes with a binary unit: `512 B`, `1.50 KiB`, `3.00 GiB`.
#[must_use]
pub fn bytes(n: u64) -> String {
    if n < 1024 {
        return format!("{n} B");
    }
    let (mut number, mut unit) = (n as f64, 0);
    while number >= 1024.0 {
        number /= 1024.0;
        unit += 1;
    }
    format!("{number:.2} {}iB", ["", "K", "M", "G", "T", "P", "E"][unit])
}

/// A whole number with a comma before every three digits.
#[must_use]
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of a thing: `1 key`, `2 keys`. The thing is one whose plural takes an s.
#[must_use]
pub fn counted<N: std::fmt::Display + PartialEq + From<u8>>(n: N, thing: &str) -> String {
    format!("{n} {thing}{}", if n == N::from(1) { "" } else { "s" })
}

/// A number with three significant digits, or all digits before its point.
#[must_use]
pub fn figure(x: f64) -> String {
    if x == 0.0 || x >= 100.0 {
        return format!("{x:.0}");
    }
    let places = (2.0 - x.log10().floor()).clamp(0.0, 8.0) as usize;
    format!("{x:.places$}")
}

/// Seconds in the unit that suits them, from microseconds to days.
#[must_use]
pub fn seconds(s: f64) -> String {
    match s {
        s if s < 1e-3 => format!("{:.0} us", s * 1e6),
        s if s < 0.01 => format!("{:.1} ms", s * 1e3),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_for_people() {
        let shown = [0.0, 0.001234, 1.234, 12.34, 123.4, 12_340.0].map(figure);
        assert_eq!(shown, ["0", "0.00123", "1.23", "12.3", "123", "12340"]);
        let shown = [0.00012, 0.0023, 0.05, 2.0, 100.0, 600.0, 7200.0, 864_000.0].map(seconds);
        assert_eq!(shown, ["120 us", "2.3 ms", "50 ms", "2.0 s", "100 s", "10 min", "2 h", "10 days"]);
        let shown = [0, 1023, 1024, 1536, 5 << 20, 3 << 30, u64::MAX].map(bytes);
        assert_eq!(shown, ["0 B", "1023 B", "1.00 KiB", "1.50 KiB", "5.00 MiB", "3.00 GiB", "16.00 EiB"]);
        assert_eq!([0, 1, 2].map(|n| counted(n, "key")), ["0 keys", "1 key", "2 keys"]);
        assert_eq!([7, 999, 1000, 1_234_567].map(count), ["7", "999", "1,000", "1,234,567"]);
    }
}
