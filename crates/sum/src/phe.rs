//! The JSON of python-paillier (phe 1.5), so that who uses phe can encrypt there and evaluate here.
//!
//! | what        | JSON                                                                                       |
//! |-------------|--------------------------------------------------------------------------------------------|
//! | public key  | `{"kty":"DAJ","alg":"PAI-GN1","key_ops":["encrypt"],"n":BASE64URL,"kid":TEXT}`             |
//! | private key | `{"kty":"DAJ","key_ops":["decrypt"],"p":BASE64URL,"q":BASE64URL,"pub":PUBLIC,"kid":TEXT}`  |
//! | ciphertext  | `{"v":"DECIMAL","e":EXPONENT}`, one a line                                                 |
//!
//! BASE64URL is a number's bytes, highest first, without padding. Private keys that have `lambda` in place of `p` and
//! `q`, (p - 1)(q - 1) or the least common multiple of both, are read too; `mu` follows from it and is checked.
//!
//! Unknown members of keys are ignored, as RFC 7517, section 4, has it and phe does. Unknown members of ciphertexts
//! are refused, where phe ignores them: one may say how its number is to be read. Members that occur twice are
//! refused, and so are texts with escapes, which numbers never need. A number never takes more time to read than
//! one as long as the key's n^2.
//!
//! phe has an exponent for each ciphertext and says nothing of magnitudes; see [`PheCiphertexts`] here and
//! [`crate::ciphertexts::Ciphertexts`] for what is needed to combine them.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, Write};
use std::marker::PhantomData;

use blindcore_accel::bigmod::Numbers;
use blindcore_files::secret::json_document;
use blindcore_files::text;
use crypto_bigint::{BoxedUint, ConcatenatingMul, NonZero, Resize};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use zeroize::{Zeroize, Zeroizing};

use crate::ciphertexts::Ciphertexts;
use crate::encoding::{Bound, Form, Plaintexts, check_exponent};
use crate::evaluate::Evaluator;
use crate::keys::{Mode, PublicKey, SecretKey};
use crate::scheme::Decryptor;

/// The longest key's JSON, in bytes.
pub const MAX_KEY_BYTES: usize = 64 << 10;
/// The longest n that is looked at, in bytes.
const MAX_N_BYTES: usize = 512;
/// What a line may have beside its digits.
const LINE_ROOM: usize = 256;
const KTY: &str = "DAJ";
const ALG: &str = "PAI-GN1";
/// What the `kid` of a key that blindcore wrote begins with; the key's name follows.
const OWN_KID: &str = "blindcore ";

/// Why phe's JSON can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum PheError {
    /// JSON that is none, or has members that are missing, unknown, doubled or of another type.
    #[error("{what} is not phe's JSON: {why}; give it as phe wrote it")]
    Json {
        /// A key, or which line.
        what: String,
        /// What the parser says; never what stands there, because it may be secret.
        why: String,
    },
    /// A member with a value that is not phe's.
    #[error("{what} has {member} {got:?} where phe writes {want:?}; it is not a Paillier key of phe's")]
    Member {
        /// Which key.
        what: &'static str,
        /// Which member.
        member: &'static str,
        /// Its value.
        got: String,
        /// phe's.
        want: &'static str,
    },
    /// A number that is none, or too long.
    #[error("{what}: {member} {why}; give it as phe wrote it")]
    Number {
        /// A key, or which line.
        what: String,
        /// Which member.
        member: &'static str,
        /// What is wrong.
        why: String,
    },
    /// Too long.
    #[error("{what} has over {limit} B; phe writes less: give it as phe wrote it")]
    TooLong {
        /// A key, or which line.
        what: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// Numbers that are not a key.
    #[error("the private key is not its public key's: {0}")]
    Mismatch(&'static str),
    /// A public key that blindcore wrote, and whose `kid` names another.
    #[error(
        "the public key's n makes key {key}, and its kid names another: it was changed; write it again with `blindcore sum public`"
    )]
    Name {
        /// The key that n makes.
        key: crate::keys::KeyId,
    },
    /// A number that is as long as its key.
    #[error(
        "number {position} decrypts to about as many digits as the key has; is it under this key? Else it overflowed"
    )]
    Long {
        /// Which, from 0.
        position: usize,
    },
    /// A file without a ciphertext.
    #[error("it holds no ciphertexts; name a file that has one on each line")]
    Empty,
    /// Something that phe has no form for.
    #[error("{what} can't be used with phe; {remedy}")]
    Foreign {
        /// What.
        what: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A key that is refused.
    #[error(transparent)]
    Key(#[from] crate::keys::KeyError),
    /// Ciphertexts that are refused.
    #[error(transparent)]
    Refused(#[from] crate::encoding::EncodingError),
    /// The disk or pipe failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

// Texts are borrowed: no copy of a secret is left behind, and one with escapes is refused.
#[derive(Deserialize)]
struct PublicJwk<'a> {
    kty: &'a str,
    alg: &'a str,
    n: &'a str,
    kid: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct SecretJwk<'a> {
    kty: &'a str,
    key_ops: Vec<&'a str>,
    #[serde(borrow, rename = "pub", deserialize_with = "object")]
    public: PublicJwk<'a>,
    p: Option<&'a str>,
    q: Option<&'a str>,
    lambda: Option<&'a str>,
    mu: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    v: &'a str,
    e: i64,
}

/// Reads a public key.
///
/// # Errors
/// It is not phe's JSON, or no key that is allowed.
pub fn public_key(json: &[u8]) -> Result<PublicKey, PheError> {
    check_length("the public key", json.len(), MAX_KEY_BYTES)?;
    let jwk: PublicJwk<'_> = parse("the public key", json_document(json))?;
    let key = PublicKey::textbook(public_n(&jwk)?.as_words())?;
    // phe's JSON has no checksum, and nobody decrypts what is encrypted under a damaged n.
    let kid = jwk.kid.as_ref().and_then(serde_json::Value::as_str).and_then(|kid| kid.strip_prefix(OWN_KID));
    match kid {
        Some(kid) if kid != key.id().to_string() => Err(PheError::Name { key: key.id() }),
        _ => Ok(key),
    }
}

fn public_n(jwk: &PublicJwk<'_>) -> Result<BoxedUint, PheError> {
    member("the public key", "kty", jwk.kty, KTY)?;
    member("the public key", "alg", jwk.alg, ALG)?;
    number("the public key", "n", jwk.n)
}

/// Reads a private key; of phe's older form with `lambda`, the primes are found from it.
///
/// # Errors
/// It is not phe's JSON, its numbers don't belong together, or it is not a key that is allowed.
pub fn secret_key(json: &[u8]) -> Result<SecretKey, PheError> {
    let what = "the private key";
    check_length(what, json.len(), MAX_KEY_BYTES)?;
    let jwk: SecretJwk<'_> = parse(what, json_document(json))?;
    member(what, "kty", jwk.kty, KTY)?;
    if !jwk.key_ops.contains(&"decrypt") {
        let got = jwk.key_ops.first().copied().unwrap_or_default();
        member(what, "key_ops", got, "decrypt")?;
    }
    let n = public_n(&jwk.public)?;
    let read = |name, text: Option<&str>| text.map(|t| number(what, name, t).map(Zeroizing::new)).transpose();
    let primes = match (read("p", jwk.p)?, read("q", jwk.q)?, read("lambda", jwk.lambda)?) {
        (Some(p), Some(q), None) => (p, q),
        (None, None, Some(lambda)) => {
            if let Some(mu) = read("mu", jwk.mu)? {
                // mu lambda = 1 mod n, for g = n + 1.
                let modulus = nonzero(&n)?;
                let product = Zeroizing::new(mu.concatenating_mul(&*lambda));
                if Zeroizing::new(product.rem(&modulus)).bits() != 1 {
                    return Err(PheError::Mismatch("mu is not the inverse of lambda modulo n"));
                }
            }
            factor(&n, &lambda)?
        }
        _ => {
            let why = "it needs p and q, or lambda alone".to_owned();
            return Err(PheError::Json { what: what.into(), why });
        }
    };
    let (p, q) = primes;
    if p.concatenating_mul(&*q).cmp_vartime(&n).is_ne() {
        return Err(PheError::Mismatch("p times q is not n"));
    }
    Ok(SecretKey::from_primes(p.as_words(), q.as_words())?)
}

/// The primes of n, from (p - 1)(q - 1) or the least common multiple of both, which is a k-th of it for a small k.
fn factor(
    n: &BoxedUint,
    lambda: &BoxedUint,
) -> Result<(Zeroizing<BoxedUint>, Zeroizing<BoxedUint>), PheError> {
    let wrong = || PheError::Mismatch("lambda is not that of n");
    let precision = 2 * n.bits_precision().max(lambda.bits_precision()) + 64;
    let n = n.resize_unchecked(precision);
    let lambda = Zeroizing::new(lambda.resize_unchecked(precision));
    let divisor = NonZero::new((*lambda).clone()).into_option().ok_or_else(wrong)?;
    // n = k lambda + (p + q - 1), and the rest is below lambda.
    let (k, rest) = n.div_rem(&divisor);
    let (mut k, rest) = (k, Zeroizing::new(rest));
    k.zeroize();
    let sum = Zeroizing::new(rest.wrapping_add(BoxedUint::one_with_precision(precision)));
    if sum.bits() > precision / 2 - 1 {
        return Err(wrong());
    }
    // (p + q)^2 - 4 n = (p - q)^2
    let square = Zeroizing::new(sum.wrapping_mul(&*sum));
    let four_n = n.shl(2);
    if square.cmp_vartime(&four_n).is_lt() {
        return Err(wrong());
    }
    let square = Zeroizing::new(square.wrapping_sub(&four_n));
    let difference = Zeroizing::new(square.floor_sqrt_vartime());
    let p = Zeroizing::new(sum.wrapping_add(&*difference).shr(1));
    let q = Zeroizing::new(sum.wrapping_sub(&*difference).shr(1));
    if p.wrapping_mul(&*q).cmp_vartime(&n).is_ne() {
        return Err(wrong());
    }
    Ok((p, q))
}

/// Writes a public key.
///
/// # Errors
/// Its mode is not one that phe's encryption fits.
pub fn write_public_key(key: &PublicKey) -> Result<String, PheError> {
    check_public_mode(key)?;
    let key = PublicKey::textbook(key.n())?;
    Ok(serde_json::json!({
        "kty": KTY,
        "alg": ALG,
        "key_ops": ["encrypt"],
        "n": to_base64(key.n()).as_str(),
        "kid": format!("{OWN_KID}{}", key.id()),
    })
    .to_string())
}

/// Writes a private key.
///
/// # Errors
/// As [`check_secret_mode`].
pub fn write_secret_key(key: &SecretKey) -> Result<Zeroizing<String>, PheError> {
    check_secret_mode(key.public().mode())?;
    let public = write_public_key(key.public())?;
    let (p, q) = key.primes();
    let (p, q) = (to_base64(p), to_base64(q));
    // Taken at once, so that no copy of it is left where it would grow.
    let mut out = Zeroizing::new(String::with_capacity(public.len() + p.len() + q.len() + 256));
    for part in [
        r#"{"kty":"DAJ","key_ops":["decrypt"],"p":""#,
        &p,
        r#"","q":""#,
        &q,
        r#"","pub":"#,
        &public,
        r#","kid":"blindcore "#,
        &key.public().id().to_string(),
        r#""}"#,
    ] {
        out.push_str(part);
    }
    Ok(out)
}

/// Whether a private key of this mode is the same one after it was written and read: phe's has its primes and nothing else.
///
/// # Errors
/// It is not.
pub fn check_secret_mode(mode: Mode) -> Result<(), PheError> {
    let what = match mode {
        Mode::Textbook => return Ok(()),
        Mode::ShortExponent => "a private key of mode short-exponent",
        Mode::SpecialKey => "a private key of mode special-key",
    };
    let remedy = "it would come back as another key: keep it in a file that doesn't end in .json, or make one of mode textbook";
    Err(PheError::Foreign { what, remedy })
}

/// Whether ciphertexts under the key as phe knows it, by n alone, decrypt with the same private key.
fn check_public_mode(key: &PublicKey) -> Result<(), PheError> {
    if matches!(key.mode(), Mode::SpecialKey) {
        let (what, remedy) =
            ("a special key", "phe's ciphertexts don't decrypt under it: make an ordinary key");
        return Err(PheError::Foreign { what, remedy });
    }
    Ok(())
}

/// Ciphertexts as phe has them: numbers that are not yet checked, each with its exponent.
pub struct PheCiphertexts {
    numbers: Numbers,
    exponents: Vec<i32>,
}

impl PheCiphertexts {
    /// Reads one ciphertext a line; empty lines are skipped.
    ///
    /// # Errors
    /// A line is not phe's JSON, or has a number longer than the key's n^2; the line is named.
    pub fn read(key: &PublicKey, from: impl BufRead) -> Result<Self, PheError> {
        check_public_mode(key)?;
        let words = key.ciphertext_words();
        let limit = digits(words) + LINE_ROOM;
        let (mut rows, mut exponents, mut line) = (Vec::new(), Vec::new(), Vec::new());
        let mut lines = text::Lines::new(from);
        for at in 1.. {
            line.clear();
            if lines.append(&mut line, limit + 1)? == 0 {
                break;
            }
            let what = || format!("line {at}");
            check_length(&what(), line.len(), limit)?;
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let (number, exponent) = ciphertext(&what(), words, &line)?;
            rows.extend_from_slice(&number);
            exponents.push(exponent);
        }
        Ok(Self { numbers: Numbers::from_words(words, rows.chunks_exact(words)), exponents })
    }

    /// Reads a single one, as phe's command line writes it.
    ///
    /// # Errors
    /// As [`PheCiphertexts::read`].
    pub fn parse(key: &PublicKey, json: &[u8]) -> Result<Self, PheError> {
        check_public_mode(key)?;
        let words = key.ciphertext_words();
        check_length("the ciphertext", json.len(), digits(words) + LINE_ROOM)?;
        let (number, exponent) = ciphertext("the ciphertext", words, json_document(json))?;
        Ok(Self { numbers: Numbers::from_words(words, [&number[..]]), exponents: vec![exponent] })
    }

    /// The canonical numbers.
    #[must_use]
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// Their exponents.
    #[must_use]
    pub fn exponents(&self) -> &[i32] {
        &self.exponents
    }

    /// Checks them and brings all to the lowest exponent, so that they can be combined, as a vector. phe says
    /// nothing of magnitudes, so the caller does: no number is over `magnitude`.
    ///
    /// # Errors
    /// A ciphertext is refused, `magnitude` is not finite, or exponents lie so far apart that it does not fit the
    /// key at the lowest.
    pub fn align(&self, evaluator: &Evaluator, magnitude: f64) -> Result<Ciphertexts, PheError> {
        if !magnitude.is_finite() || magnitude < 0.0 {
            let what = "the magnitude";
            return Err(crate::encoding::EncodingError::Parameter { what, value: magnitude }.into());
        }
        let lowest = self.exponents.iter().copied().min().unwrap_or(0);
        let form = |exponent, count| {
            let bound = Bound::of_value(magnitude, exponent);
            Form { exponent, scale: 0, bound, packed: None, shape: vec![count] }
        };
        // At the lowest exponent first: so that what does not fit is refused before anything is computed.
        let mut out =
            Ciphertexts::accept(evaluator.encryptor(), &self.numbers, form(lowest, self.numbers.len()))?;
        for (exponent, positions) in self.by_exponent() {
            if exponent == lowest {
                continue;
            }
            let mut part = out.select(0, &positions)?;
            part.form.exponent = exponent;
            part.form.bound = Bound::of_value(magnitude, exponent);
            let part = evaluator.lower_exponent(&part, lowest)?;
            let count = out.len();
            let mut order: Vec<usize> = (0..count).collect();
            for (at, position) in positions.iter().enumerate() {
                order[*position] = count + at;
            }
            out.residues.append(&part.residues).map_err(crate::encoding::EncodingError::from)?;
            out.residues = out.residues.select(order);
        }
        Ok(out)
    }

    /// Decrypts each at its own exponent, to the nearest float.
    ///
    /// # Errors
    /// A ciphertext is refused, or a number is in the middle third of n, or over the largest float.
    pub fn decrypt(&self, decryptor: &Decryptor) -> Result<Vec<f64>, PheError> {
        let mut out = vec![0.0; self.exponents.len()];
        for (positions, plaintexts) in self.plaintexts(decryptor)? {
            for (position, value) in positions.iter().zip(plaintexts.to_f64()?) {
                out[*position] = value;
            }
        }
        Ok(out)
    }

    /// Decrypts to a batch for each exponent there is, with the positions of its numbers among all: so that they can be
    /// decoded exactly.
    ///
    /// # Errors
    /// A ciphertext is refused.
    pub fn plaintexts(&self, decryptor: &Decryptor) -> Result<Vec<(Vec<usize>, Plaintexts)>, PheError> {
        let key = decryptor.public();
        let mut out = Vec::new();
        for (exponent, positions) in self.by_exponent() {
            let numbers =
                Numbers::from_words(self.numbers.words(), positions.iter().map(|p| self.numbers.get(*p)));
            let shape = vec![positions.len()];
            let form = Form { exponent, scale: 0, bound: Bound::of_key(key), packed: None, shape };
            let plaintexts = Plaintexts::decrypt(decryptor, &numbers, &form)?;
            out.push((positions, plaintexts));
        }
        Ok(out)
    }

    fn by_exponent(&self) -> BTreeMap<i32, Vec<usize>> {
        let mut out = BTreeMap::<i32, Vec<usize>>::new();
        for (position, exponent) in self.exponents.iter().enumerate() {
            out.entry(*exponent).or_default().push(position);
        }
        out
    }
}

/// Writes ciphertexts under a key, one a line.
///
/// # Errors
/// The key is a special one, or they are packed or in decimals, all of which phe does not know; or writing fails.
pub fn write_ciphertexts(
    mut out: impl Write,
    key: &PublicKey,
    numbers: &Numbers,
    form: &Form,
) -> Result<(), PheError> {
    check_public_mode(key)?;
    for (foreign, what, remedy) in [
        (form.packed.is_some(), "a packed batch", "write the binary file, or don't pack"),
        (
            form.scale > 0,
            "a batch in decimals",
            "write the binary file, or encrypt to a .jsonl file, which rounds to powers of 16",
        ),
    ] {
        if foreign {
            return Err(PheError::Foreign { what, remedy });
        }
    }
    for number in numbers.iter() {
        let v = BoxedUint::from_words(number.iter().copied()).to_string_radix_vartime(10);
        writeln!(out, r#"{{"v":"{v}","e":{}}}"#, form.exponent)?;
    }
    Ok(())
}

fn ciphertext(what: &str, words: usize, json: &[u8]) -> Result<(Vec<u64>, i32), PheError> {
    let line: Line<'_> = parse(what, json)?;
    let refuse = |why: String| PheError::Number { what: what.into(), member: "v", why };
    if line.v.is_empty() || !line.v.bytes().all(|b| b.is_ascii_digit()) {
        return Err(refuse("is not a decimal number".into()));
    }
    let too_long = || {
        refuse(format!(
            "has over the {} bits of a ciphertext under this key; is it under another?",
            64 * words
        ))
    };
    let significant = line.v.trim_start_matches('0');
    if significant.len() > digits(words) {
        return Err(too_long());
    }
    // Digits by 19, which fit a word.
    let mut number = vec![0u64; words];
    for chunk in significant.as_bytes().chunks(19) {
        let (mut carry, mut scale) = (0u64, 1u64);
        for digit in chunk {
            carry = 10 * carry + u64::from(digit - b'0');
            scale *= 10;
        }
        for word in &mut number {
            let next = u128::from(*word) * u128::from(scale) + u128::from(carry);
            (*word, carry) = (next as u64, (next >> 64) as u64);
        }
        if carry != 0 {
            return Err(too_long());
        }
    }
    Ok((number, check_exponent(line.e)?))
}

/// Decimal digits that a number of this many words may have.
fn digits(words: usize) -> usize {
    // log10 2^64 is below 19.266.
    words * 19_266 / 1000 + 1
}

fn check_length(what: &str, got: usize, limit: usize) -> Result<(), PheError> {
    if got > limit { Err(PheError::TooLong { what: what.into(), limit }) } else { Ok(()) }
}

/// Reads an object: by itself serde takes an array of the members' values for one, too.
fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    struct Object<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }
    from.deserialize_map(Object(PhantomData))
}

fn parse<'a, T: Deserialize<'a>>(what: &str, json: &'a [u8]) -> Result<T, PheError> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let read = object(&mut reader).and_then(|read| reader.end().map(|()| read));
    read.map_err(|e| {
        // Only what kind of flaw and where: the parser's own words may quote a secret.
        use serde_json::error::Category;
        let why = match e.classify() {
            Category::Eof => "it ends too soon",
            Category::Syntax => "its syntax is wrong",
            Category::Data => {
                "a member is missing, unknown, doubled, or of another type, or an array stands for an object"
            }
            Category::Io => "it can't be read",
        };
        // Of a file of lines, each is a document of its own.
        let column = format!("column {}", e.column().max(1));
        let place = if what.starts_with("line ") { column } else { format!("line {}, {column}", e.line()) };
        PheError::Json { what: what.into(), why: format!("{why} ({place})") }
    })
}

fn member(what: &'static str, member: &'static str, got: &str, want: &'static str) -> Result<(), PheError> {
    if got == want {
        return Ok(());
    }
    let got = got.chars().take(32).collect();
    Err(PheError::Member { what, member, got, want })
}

/// A number above zero from its bytes in base64url, without padding or with it.
fn number(what: &str, member: &'static str, text: &str) -> Result<BoxedUint, PheError> {
    let refuse = |why: String| PheError::Number { what: what.into(), member, why };
    let text = text.trim_end_matches('=').as_bytes();
    if text.len() > MAX_N_BYTES.div_ceil(3) * 4 {
        return Err(refuse(format!("has over {} bits", 8 * MAX_N_BYTES)));
    }
    if text.is_empty() || text.len() % 4 == 1 {
        return Err(refuse("is not a number in base64url".into()));
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len()));
    let (mut bits, mut count) = (0u32, 0);
    for symbol in text {
        let six = match symbol {
            b'A'..=b'Z' => symbol - b'A',
            b'a'..=b'z' => symbol - b'a' + 26,
            b'0'..=b'9' => symbol - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return Err(refuse("has a symbol that base64url has not".into())),
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
        bits &= (1 << count) - 1;
    }
    if bits != 0 {
        return Err(refuse("has bits left over at its end".into()));
    }
    let number = BoxedUint::from_be_slice_vartime(&bytes);
    if bool::from(number.is_zero()) {
        return Err(refuse("is zero".into()));
    }
    Ok(number)
}

fn to_base64(words: &[u64]) -> Zeroizing<String> {
    const SYMBOLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut bytes = Zeroizing::new(Vec::with_capacity(8 * words.len()));
    bytes.extend(words.iter().rev().flat_map(|w| w.to_be_bytes()).skip_while(|b| *b == 0));
    let mut out = Zeroizing::new(String::with_capacity(bytes.len().div_ceil(3) * 4));
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().enumerate().fold(0u32, |w, (i, b)| w | u32::from(*b) << (16 - 8 * i));
        for i in 0..=chunk.len() {
            out.push(char::from(SYMBOLS[(word >> (18 - 6 * i)) as usize & 63]));
        }
    }
    out
}

fn nonzero(n: &BoxedUint) -> Result<NonZero<BoxedUint>, PheError> {
    NonZero::new(n.clone()).into_option().ok_or(PheError::Mismatch("n is zero"))
}
