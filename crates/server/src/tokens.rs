//! Tokens: who may ask.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use subtle::ConstantTimeEq;

/// The most tokens of a server: each is compared with, whichever comes.
const MAX_TOKENS: usize = 10_000;
/// The longest name of a token.
const MAX_NAME: usize = 64;

/// Tokens that a server answers to: for each a name and the digest of the token itself, which the server doesn't know.
pub struct Tokens(Vec<(Arc<str>, [u8; 32])>);

/// A file of tokens that can't be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct TokensError {
    /// Which line, counted from 1.
    pub line: usize,
    /// What is wrong with it, and what to do.
    pub why: String,
}

impl Tokens {
    /// Reads lines of a name and the BLAKE3 of a token in hexadecimal, as [`Tokens::line`] writes them. Empty lines and
    /// what follows a `#` are skipped.
    ///
    /// # Errors
    /// A line is something else, a name or a token is there twice, or there are over 10,000. None at all are no error: nobody is
    /// answered then.
    pub fn parse(text: &str) -> Result<Self, TokensError> {
        let mut tokens = Vec::new();
        let (mut names, mut digests) = (HashSet::new(), HashSet::new());
        for (number, line) in (1..).zip(text.lines()) {
            let fail = |why: String| Err(TokensError { line: number, why });
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            let (name, digest) = match (words.next(), words.next(), words.next()) {
                (None, ..) => continue,
                (Some(name), Some(digest), None) => (name, digest),
                _ => {
                    return fail(
                        "it is not NAME and DIGEST; `blindcore token NAME` makes such a line".into(),
                    );
                }
            };
            if let Err(why) = check_name(name) {
                return fail(why);
            }
            let Ok(digest) = blake3::Hash::from_hex(digest) else {
                return fail("its second word is not a digest of 64 hexadecimal digits".into());
            };
            if !names.insert(name) {
                return fail(format!("{name} is there already; name each token once"));
            }
            if !digests.insert(digest) {
                return fail(format!(
                    "the token of {name} belongs to another name already; make one for each"
                ));
            }
            if tokens.len() == MAX_TOKENS {
                return fail(format!("there are over {MAX_TOKENS} tokens; serve the rest elsewhere"));
            }
            tokens.push((name.into(), *digest.as_bytes()));
        }
        Ok(Self(tokens))
    }

    /// The line of a token that its server is to know.
    ///
    /// # Errors
    /// The name is none: 1 to 64 letters, digits and `.`, `_`, `-`, `@`.
    pub fn line(name: &str, token: &str) -> Result<String, String> {
        check_name(name)?;
        Ok(format!("{name} {}", blake3::hash(token.as_bytes()).to_hex()))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none, and so nobody is answered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whose token it is. Takes the same time whichever it is, or none.
    pub(crate) fn owner(&self, token: &[u8]) -> Option<Arc<str>> {
        let digest = blake3::hash(token);
        let mut owner = None;
        for (name, known) in &self.0 {
            if bool::from(known.ct_eq(digest.as_bytes())) {
                owner = Some(name.clone());
            }
        }
        owner
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens", self.0.len())
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"._-@".contains(&b);
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(fits) {
        Ok(())
    } else {
        Err(format!("a token's name has 1 to {MAX_NAME} letters, digits and . _ - @; choose another"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_or_refused_by_number() {
        let (ada, bob) = (Tokens::line("ada", "one").unwrap(), Tokens::line("bob@x.y_z-1", "two").unwrap());
        let tokens = Tokens::parse(&format!("# who may ask\n\n  {ada}  # since May\n{bob}\r\n")).unwrap();
        assert_eq!((tokens.len(), format!("{tokens:?}").as_str()), (2, "2 tokens"));
        assert_eq!(tokens.owner(b"one").as_deref(), Some("ada"));
        assert_eq!(tokens.owner(b"two").as_deref(), Some("bob@x.y_z-1"));
        for none in [&b""[..], b"three", b"One", blake3::hash(b"one").to_hex().as_bytes()] {
            assert!(tokens.owner(none).is_none());
        }
        let nobody = Tokens::parse("# nobody\n").unwrap();
        assert!(nobody.is_empty() && nobody.owner(b"one").is_none() && nobody.owner(b"").is_none());
        let long = "x".repeat(65);
        for (text, line, words) in [
            (format!("{ada}\nbob"), 2, "not NAME and DIGEST"),
            (format!("{ada} more"), 1, "not NAME and DIGEST"),
            (format!("{ada}\nbob {}", "g".repeat(64)), 2, "not a digest"),
            (format!("{ada}\nbob abc"), 2, "not a digest"),
            (format!("{ada}\n{ada}"), 2, "ada is there already"),
            (format!("{ada}\n{}", ada.replace("ada", "eve")), 2, "belongs to another name"),
            (ada.replace("ada", &long), 1, "1 to 64"),
            (ada.replace("ada", "a/b"), 1, "1 to 64"),
        ] {
            let error = Tokens::parse(&text).unwrap_err();
            assert!(error.line == line && error.why.contains(words), "{error}");
        }
        assert!(Tokens::line("", "t").is_err() && Tokens::line("a b", "t").is_err());
    }
}
