//! The text of a module as tokens, each with its line.

use super::{FormatError, MAX_IDENTIFIER, MAX_WIDTH, Result, SYNTAX};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// An identifier, without its escape.
    Name(&'a [u8]),
    /// A word of the language.
    Word(&'a str),
    /// A plain decimal number.
    Decimal(u32),
    /// A constant with a base: its width where it has one, whether it is signed, the base, its digits.
    Based(Option<u32>, bool, u8, &'a [u8]),
    /// Punctuation or an operator.
    Sign(&'static str),
    End,
}

/// Words that are not identifiers here; all but the first are refused by name where a statement starts.
const WORDS: [&str; 32] = [
    "module",
    "endmodule",
    "input",
    "output",
    "wire",
    "reg",
    "logic",
    "signed",
    "assign",
    "inout",
    "always",
    "always_comb",
    "always_ff",
    "always_latch",
    "initial",
    "function",
    "task",
    "generate",
    "genvar",
    "parameter",
    "localparam",
    "defparam",
    "specify",
    "tri",
    "supply0",
    "supply1",
    "wand",
    "wor",
    "integer",
    "primitive",
    "for",
    "if",
];

/// Longer ones first.
const SIGNS: [&str; 45] = [
    "<<<", ">>>", "===", "!==", "~&", "~|", "~^", "^~", "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "**",
    "+:", "-:", "(", ")", "[", "]", "{", "}", ";", ",", ":", "?", ".", "=", "#", "@", "~", "&", "|", "^",
    "!", "+", "-", "*", "/", "%", "<", ">",
];

#[derive(Clone, Copy)]
pub(super) struct Lexer<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    pub(super) line: u32,
}

fn is_name(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'$'
}

/// Text in an error: cut, and printable.
pub(super) fn shown(text: &[u8]) -> String {
    let cut = &text[..text.len().min(60)];
    format!("{:?}{}", String::from_utf8_lossy(cut), if cut.len() < text.len() { "..." } else { "" })
}

impl<'a> Lexer<'a> {
    pub(super) fn error_at<T>(
        &self,
        line: u32,
        reason: impl Into<String>,
        remedy: &'static str,
    ) -> Result<T> {
        let (file, reason, line) = (self.name.to_owned(), reason.into(), u64::from(line));
        Err(FormatError::Content { file, line, reason, remedy })
    }

    pub(super) fn error<T>(&self, reason: impl Into<String>, remedy: &'static str) -> Result<T> {
        self.error_at(self.line, reason, remedy)
    }

    /// Goes to where `end` ends, counting lines.
    fn skip_past(&mut self, end: &[u8], what: &str) -> Result<()> {
        let line = self.line;
        while self.at < self.text.len() {
            if self.text[self.at..].starts_with(end) {
                self.at += end.len();
                self.line += u32::from(end == b"\n");
                return Ok(());
            }
            self.line += u32::from(self.text[self.at] == b'\n');
            self.at += 1;
        }
        if end == b"\n" {
            return Ok(());
        }
        self.error_at(line, format!("{what} that never ends"), SYNTAX)
    }

    /// White space, comments, attributes and compiler directives.
    fn skip(&mut self) -> Result<()> {
        loop {
            match self.text[self.at..] {
                [b'\n', ..] => {
                    self.line += 1;
                    self.at += 1;
                }
                [c, ..] if c.is_ascii_whitespace() => self.at += 1,
                [b'/', b'/', ..] => self.skip_past(b"\n", "a comment")?,
                [b'/', b'*', ..] => {
                    self.at += 2;
                    self.skip_past(b"*/", "a comment")?;
                }
                [b'(', b'*', ..] => self.attribute()?,
                [b'`', ..] => {
                    let known: [&[u8]; 3] = [b"`timescale", b"`default_nettype", b"`resetall"];
                    if !known.iter().any(|k| self.text[self.at..].starts_with(k)) {
                        let end = self.text[self.at..].iter().position(u8::is_ascii_whitespace);
                        let end = end.map_or(self.text.len(), |e| self.at + e);
                        let reason = format!("compiler directive {}", shown(&self.text[self.at..end]));
                        return self.error(reason, "let yosys's read_verilog expand it");
                    }
                    self.skip_past(b"\n", "a directive")?;
                }
                _ => return Ok(()),
            }
        }
    }

    fn attribute(&mut self) -> Result<()> {
        let line = self.line;
        self.at += 2;
        let mut quoted = false;
        while let Some(&c) = self.text.get(self.at) {
            match c {
                b'\n' => self.line += 1,
                b'"' => quoted = !quoted,
                b'\\' if quoted => {
                    self.at += 1;
                    self.line += u32::from(self.text.get(self.at) == Some(&b'\n'));
                }
                b'*' if !quoted && self.text.get(self.at + 1) == Some(&b')') => {
                    self.at += 2;
                    return Ok(());
                }
                _ => {}
            }
            self.at += 1;
        }
        // An escape at the very end steps one byte over it.
        self.at = self.text.len();
        self.error_at(line, "an attribute that never ends", SYNTAX)
    }

    fn take_while(&mut self, keep: impl Fn(u8) -> bool) -> &'a [u8] {
        let start = self.at;
        while self.text.get(self.at).is_some_and(|c| keep(*c)) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    pub(super) fn next(&mut self) -> Result<Token<'a>> {
        self.skip()?;
        let Some(&c) = self.text.get(self.at) else { return Ok(Token::End) };
        match c {
            b'\\' => {
                self.at += 1;
                let name = self.take_while(|c| !c.is_ascii_whitespace());
                self.name(name)
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => {
                let name = self.take_while(is_name);
                match WORDS.iter().find(|w| w.as_bytes() == name) {
                    Some(word) => Ok(Token::Word(word)),
                    None => self.name(name),
                }
            }
            b'0'..=b'9' | b'\'' => self.number(),
            _ => {
                let rest = &self.text[self.at..];
                let Some(sign) = SIGNS.iter().find(|s| rest.starts_with(s.as_bytes())) else {
                    return self.error(format!("{} is not Verilog", shown(&rest[..1])), SYNTAX);
                };
                self.at += sign.len();
                Ok(Token::Sign(sign))
            }
        }
    }

    fn name(&self, name: &'a [u8]) -> Result<Token<'a>> {
        if name.is_empty() || name.len() > MAX_IDENTIFIER {
            let reason = format!("an identifier of {} B; they have 1 to {MAX_IDENTIFIER}", name.len());
            return self.error(reason, "let yosys's `rename -enumerate` shorten it");
        }
        Ok(Token::Name(name))
    }

    fn number(&mut self) -> Result<Token<'a>> {
        let size = self.take_while(|c| c.is_ascii_digit() || c == b'_');
        let mut value = 0u64;
        for digit in size.iter().filter(|c| **c != b'_') {
            value = (value * 10 + u64::from(digit - b'0')).min(1 << 32);
        }
        let decimal = u32::try_from(value);
        // A space may stand before the base.
        let mut ahead = *self;
        ahead.take_while(|c| matches!(c, b' ' | b'\t'));
        if ahead.text.get(ahead.at) != Some(&b'\'') {
            return match i32::try_from(value) {
                Ok(integer) => Ok(Token::Decimal(integer.unsigned_abs())),
                Err(_) => {
                    let reason = format!("number {} is over 32 bits with its sign", shown(size));
                    self.error(reason, "give it a width and a base")
                }
            };
        }
        self.at = ahead.at + 1;
        let signed = matches!(self.text.get(self.at), Some(b's' | b'S'));
        self.at += usize::from(signed);
        let base = self.text.get(self.at).map(u8::to_ascii_lowercase);
        let Some(base @ (b'b' | b'o' | b'd' | b'h')) = base else {
            return self.error("a constant of no known base", "known are 'b, 'o, 'd and 'h");
        };
        self.at += 1;
        self.take_while(|c| matches!(c, b' ' | b'\t'));
        let digits = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'?'));
        let size = if size.is_empty() { None } else { Some(decimal.unwrap_or(u32::MAX)) };
        if digits.is_empty() || size.is_some_and(|s| s == 0 || s > MAX_WIDTH) {
            let width = size.map_or_else(|| "no stated".to_owned(), |s| s.to_string());
            let reason = format!("a constant of {width} width with {} digits", digits.len());
            return self.error(reason, "it has 1 to 1048576 bits, and digits");
        }
        Ok(Token::Based(size, signed, base, digits))
    }
}
