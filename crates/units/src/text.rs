//! Text that others wrote, as a person is shown it: nothing in it redraws a terminal, turns a line round or fills a screen.

/// The longest word of a message that is shown whole.
const WORD: usize = 160;
/// What is shown of a longer one.
const START: usize = 64;
/// The longest message.
const MESSAGE: usize = 2000;

/// Whether a character changes how those beside it are shown: controls, ends of lines and paragraphs, turns of direction,
/// marks that have no width. Joiners, which letters and emoji need, are left alone.
fn deceives(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// Text in quotation marks, with escapes as in Rust for what would not be seen as it is.
///
/// ```
/// use blindcore_units::quoted;
///
/// assert_eq!(quoted("a\t\u{202e}\"b\""), r#""a\t\u{202e}\"b\"""#);
/// ```
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if deceives(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Text as it is, or [`quoted`] where it would not be seen as it is: empty, with blanks around it, in quotation marks, or
/// with characters that change how others are shown. So what is shown without quotation marks is exact.
///
/// ```
/// use blindcore_units::shown;
///
/// assert_eq!((shown("Ada \\ Bob"), shown(" x")), ("Ada \\ Bob".into(), r#"" x""#.into()));
/// ```
#[must_use]
pub fn shown(text: &str) -> String {
    let plain = !text.is_empty() && text.trim() == text && !text.starts_with('"') && !text.contains(deceives);
    if plain { text.to_owned() } else { quoted(text) }
}

/// Text as it is but for characters that change how others are shown, which are escaped.
#[must_use]
pub fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| if deceives(c) { out.extend(c.escape_default()) } else { out.push(c) });
    out
}

/// A message in one line of bounded length: ends of lines become blanks, other characters that deceive are escaped, words
/// that fill a screen are cut, and their length is said.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut words = Vec::new();
    for word in text.split([' ', '\n', '\r', '\t']) {
        let length = word.chars().count();
        if length <= WORD {
            words.push(harmless(word));
            continue;
        }
        // What quotes the word still ends it, and so does its punctuation.
        let end = word.trim_end_matches(['"', '\'', ':', ';', ',']);
        let start: String = word.chars().take(START).collect();
        let length = end.trim_start_matches(['"', '\'']).chars().count();
        words.push(format!("{}... ({length} characters){}", harmless(&start), harmless(&word[end.len()..])));
    }
    let line = words.join(" ");
    let length = line.chars().count();
    if length <= MESSAGE {
        return line;
    }
    // Its end says what to do.
    let start: String = line.chars().take(MESSAGE / 2).collect();
    let end: String = line.chars().skip(length - MESSAGE / 2).collect();
    format!("{start} [...] {end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_without_quotation_marks_is_exact() {
        for plain in ["null", "a b", "Zoë", "\\n", "a\"b", "👩\u{200d}🔬", "12"] {
            assert_eq!(shown(plain), plain);
        }
        for (text, want) in [
            ("", r#""""#),
            (" ", r#"" ""#),
            ("\"a\"", r#""\"a\"""#),
            ("a\nb", r#""a\nb""#),
            ("\u{1b}[31m", r#""\u{1b}[31m""#),
            ("x\u{2028}y", r#""x\u{2028}y""#),
            ("\u{202e}drows", r#""\u{202e}drows""#),
            ("a\u{200b}", r#""a\u{200b}""#),
        ] {
            assert_eq!(shown(text), want);
        }
    }

    #[test]
    fn messages_are_bounded_lines() {
        assert_eq!(one_line("a\nb\u{202e}\t\u{7}c  d"), "a b\\u{202e} \\u{7}c  d");
        let long = one_line(&format!("--key \"{}\": no; say another", "x".repeat(100_000)));
        assert!(long.ends_with("x... (100000 characters)\": no; say another") && long.len() < 160, "{long}");
        let wordy = one_line(&"ab ".repeat(100_000));
        assert!(wordy.len() < 2100 && wordy.contains("[...]"), "{}", wordy.len());
        assert_eq!(one_line(&"é".repeat(160)), "é".repeat(160));
    }
}
