//! Keys as a person writes them: as text, or bytes in digits.

use std::borrow::Cow;
use std::str::FromStr;

use data_encoding::{BASE64_NOPAD, HEXLOWER_PERMISSIVE};

use crate::codec::MAX_KEY_BYTES;

/// How a key is written. A key is bytes, of which text is only one kind.
///
/// ```
/// use blindcore_wire::KeyForm;
/// assert_eq!(KeyForm::Text.key("ada")?, b"ada");
/// assert_eq!(KeyForm::Hex.key("00ffA1")?, [0x00, 0xff, 0xa1]);
/// assert_eq!(KeyForm::Base64.key("AP+h")?, [0x00, 0xff, 0xa1]);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyForm {
    /// As it stands, in UTF-8.
    #[default]
    Text,
    /// Two hexadecimal digits for each byte, of either case.
    Hex,
    /// Base64 (RFC 4648, section 4 or 5), with padding or without.
    Base64,
}

impl KeyForm {
    /// The key that is written so.
    ///
    /// # Errors
    /// The text is not of this form, or of a key that is empty or longer than keys are; the message doesn't quote it.
    pub fn key(self, text: &str) -> Result<Vec<u8>, String> {
        let key = self.bytes(text)?;
        if (1..=MAX_KEY_BYTES).contains(&key.len()) {
            return Ok(key);
        }
        Err(format!("{} B are outside the 1 to {MAX_KEY_BYTES} of a key; give a key of as many", key.len()))
    }

    /// The bytes that are written so, however many.
    ///
    /// # Errors
    /// The text is not of this form; the message says where and doesn't quote it.
    pub fn bytes(self, text: &str) -> Result<Vec<u8>, String> {
        let other = |at: usize, digit: &str, form: &str| {
            format!("character {} is not a {digit}; give {form} alone", at + 1)
        };
        let refuse = |digit: &str, form: &str, error: data_encoding::DecodeError| match error.kind {
            data_encoding::DecodeKind::Symbol => other(error.position, digit, form),
            data_encoding::DecodeKind::Trailing => format!(
                "the last digit of {form} stands for more bits than its last byte has; give what was encoded, unchanged"
            ),
            _ => format!("what is written in {form} ends in the middle of a byte; it may be cut short"),
        };
        match self {
            KeyForm::Text => Ok(text.as_bytes().to_vec()),
            KeyForm::Hex => {
                let refuse = |e| refuse("hexadecimal digit", "hexadecimal digits", e);
                HEXLOWER_PERMISSIVE.decode(text.as_bytes()).map_err(refuse)
            }
            KeyForm::Base64 => {
                let plain: Cow<'_, str> = match text.contains(['-', '_']) {
                    true => text.replace('-', "+").replace('_', "/").into(),
                    false => text.into(),
                };
                let padding = plain.len() - plain.trim_end_matches('=').len();
                let whole = padding <= 2 && (padding == 0 || plain.len().is_multiple_of(4));
                let plain = if whole { plain.trim_end_matches('=') } else { &plain };
                let digit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/');
                if let Some(at) = plain.find(|c| !digit(c)) {
                    return Err(other(at, "digit of base64", "base64"));
                }
                BASE64_NOPAD.decode(plain.as_bytes()).map_err(|e| refuse("digit of base64", "base64", e))
            }
        }
    }

    /// The most characters of a key of this many bytes.
    #[must_use]
    pub fn characters(self, bytes: usize) -> usize {
        match self {
            KeyForm::Text => bytes,
            KeyForm::Hex => 2 * bytes,
            KeyForm::Base64 => bytes.div_ceil(3) * 4,
        }
    }
}

impl FromStr for KeyForm {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "text" => Ok(KeyForm::Text),
            "hex" => Ok(KeyForm::Hex),
            "base64" => Ok(KeyForm::Base64),
            _ => Err(format!("{name:?} is no form of keys; say text, hex or base64")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_name_one_key_or_none() {
        for text in ["-_8=", "+/8", "+/8=", "-_8"] {
            assert_eq!(KeyForm::Base64.key(text).unwrap(), [0xfb, 0xff], "{text}");
        }
        assert!(KeyForm::Hex.bytes("").unwrap().is_empty());
        for text in [String::new(), "00".repeat(MAX_KEY_BYTES + 1)] {
            assert!(KeyForm::Hex.key(&text).unwrap_err().contains("outside the 1 to 4096 of a key"));
        }
        for (form, text, why) in [
            (KeyForm::Hex, "abc", "cut short"),
            (KeyForm::Hex, "0xab", "character 2 is not a hexadecimal digit; give hexadecimal digits alone"),
            (KeyForm::Base64, "AP+h=", "character 5"),
            (KeyForm::Base64, "A", "cut short"),
            (KeyForm::Base64, "AB", "the last digit of base64 stands for more bits"),
            (KeyForm::Hex, "abc", "what is written in hexadecimal digits ends in the middle of a byte"),
            (KeyForm::Base64, "AA AA", "character 3"),
        ] {
            let said = form.key(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
        assert!("Hex".parse::<KeyForm>().unwrap_err().contains("text, hex or base64"));
        for form in [KeyForm::Text, KeyForm::Hex, KeyForm::Base64] {
            let text = "0".repeat(form.characters(6));
            assert_eq!(form.key(&text).unwrap().len(), 6);
        }
    }
}
