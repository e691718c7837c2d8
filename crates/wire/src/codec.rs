//! Records and lookup keys as bytes.
//!
//! A record is its values, one after another; how many there are stands elsewhere (in a manifest). Every value
//! says where it ends and none starts with a zero byte, so a record may stand in a longer slot that zeros
//! fill, and a slot of zeros alone is not a record. Each value has exactly one encoding, which its first byte
//! opens:
//!
//! | first byte   | value                            | what follows                                           |
//! |--------------|----------------------------------|--------------------------------------------------------|
//! | `00`         | none: the zeros after a record   | zeros                                                  |
//! | `01`         | null                             |                                                        |
//! | `02`, `03`   | false, true                      |                                                        |
//! | `04`         | a real                           | binary64, 8 bytes, little-endian                       |
//! | `05`         | an integer n, 96 to 2^64 - 1     | varint of n - 96                                       |
//! | `06`         | an integer n, -2^63 to -17       | varint of -17 - n                                      |
//! | `07`         | a text of 128 bytes or more      | varint of its length - 128, UTF-8                      |
//! | `08`         | a blob                           | varint of its length, bytes                            |
//! | `09`         | a JSON array                     | varint of its length, values                           |
//! | `0a`         | a JSON object                    | varint of its length, pairs of a text and a value      |
//! | `0b` to `0f` | none: kept for later             |                                                        |
//! | `10` to `7f` | an integer, -16 to 95            |                                                        |
//! | `80` to `ff` | a text of 0 to 127 bytes         | UTF-8                                                  |
//!
//! A varint is LEB128: seven bits a byte, lowest first, the top bit set on all but the last byte, which is not
//! zero unless it is the only one; 64 bits at most. Arrays and objects lie in each other
//! [`MAX_DEPTH`] deep at most, hold no blob and no real that is not finite, and an object holds a key once.

use std::borrow::Cow;

use crate::Value;
use serde_json::{Map, Value as Json};

/// How deep JSON arrays and objects may lie in each other: what JSON's own reader allows.
pub const MAX_DEPTH: usize = 128;
/// Bytes in a lookup key, at most.
pub const MAX_KEY_BYTES: usize = 4096;

const NULL: u8 = 0x01;
const FALSE: u8 = 0x02;
const TRUE: u8 = 0x03;
const REAL: u8 = 0x04;
const POSITIVE: u8 = 0x05;
const NEGATIVE: u8 = 0x06;
const LONG_TEXT: u8 = 0x07;
const BLOB: u8 = 0x08;
const ARRAY: u8 = 0x09;
const OBJECT: u8 = 0x0a;
/// The first of the bytes that no version uses yet.
const KEPT: u8 = 0x0b;
const SMALL: u8 = 0x10;
const SHORT_TEXT: u8 = 0x80;
const SMALL_MIN: i128 = -16;
const SMALL_MAX: i128 = 95;
const SHORT_TEXT_MAX: u64 = 127;

/// Why bytes are not a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The bytes end within the record.
    #[error(
        "a record of {columns} columns breaks off after {len} B, in column {column}; the database and the \
         description it was read with differ: fetch the description again, or rebuild the database"
    )]
    Truncated {
        /// How many columns were asked for.
        columns: usize,
        /// The column that is cut short, counted from 0.
        column: usize,
        /// How many bytes there were.
        len: usize,
    },
    /// The bytes hold something that no encoder writes.
    #[error(
        "byte {at} of a record, in column {column}, is not what an encoder writes: {why}; the database and the \
         description it was read with differ: fetch the description again, or rebuild the database"
    )]
    Malformed {
        /// The column, counted from 0; one past the last is what follows the record.
        column: usize,
        /// The byte, counted from 0.
        at: usize,
        /// What is wrong.
        why: &'static str,
    },
}

/// Why a value is not a lookup key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A kind of value that nobody could ask for.
    #[error("{what} is not a lookup key; leave such rows out, or take another key column")]
    Kind {
        /// The kind.
        what: &'static str,
    },
    /// A text or blob of no bytes: nearly always a cell that was never filled.
    #[error("an empty value is not a lookup key; leave such rows out, or take another key column")]
    Empty,
    /// A key that is too long.
    #[error(
        "a lookup key of {got} B is over the limit of {MAX_KEY_BYTES} B; take a shorter column, or its hash"
    )]
    Length {
        /// Its bytes.
        got: usize,
    },
}

/// Appends a record to `out`.
///
/// JSON that lies deeper than [`MAX_DEPTH`] is written and then refused by [`decode_record`]; no source of
/// this crate yields any.
pub fn encode_record(values: &[Value], out: &mut Vec<u8>) {
    for value in values {
        match value {
            Value::Null => out.push(NULL),
            Value::Bool(b) => out.push(if *b { TRUE } else { FALSE }),
            Value::Int(n) => put_integer((*n).into(), out),
            Value::Real(x) => put_real(*x, out),
            Value::Text(text) => encode_text(text, out),
            Value::Blob(bytes) => {
                out.push(BLOB);
                put_varint(bytes.len() as u64, out);
                out.extend_from_slice(bytes);
            }
            Value::Json(json) => put_json(json, out),
        }
    }
}

/// Reads a record of `columns` values; zeros may follow it.
///
/// Takes memory in proportion to `bytes`, whatever they claim.
///
/// # Errors
/// The bytes are not what [`encode_record`] writes for that many values, followed by zeros.
pub fn decode_record(bytes: &[u8], columns: usize) -> Result<Vec<Value>, CodecError> {
    let mut reader = Reader { bytes, at: 0 };
    let mut values = Vec::with_capacity(columns.min(bytes.len()));
    for column in 0..columns {
        values.push(reader.value(0).map_err(|flaw| match flaw {
            Flaw::Truncated => CodecError::Truncated { columns, column, len: bytes.len() },
            Flaw::Malformed(at, why) => CodecError::Malformed { column, at, why },
        })?);
    }
    match bytes[reader.at..].iter().position(|b| *b != 0) {
        None => Ok(values),
        Some(n) => Err(CodecError::Malformed {
            column: columns,
            at: reader.at + n,
            why: "only zeros may follow the last column",
        }),
    }
}

/// The bytes by which a row is looked up: its key as a person writes it.
///
/// An integer is its decimal digits, a text itself, a boolean `true` or `false`, a blob its bytes, a real the
/// shortest decimal that reads back as itself, with no exponent and no `.0` (`0.1`, `42`, `-0`). So `42` is the
/// same key whether a column holds integers, reals or text.
///
/// # Errors
/// The value is null, empty, a JSON array or object, a real that is not finite, or over [`MAX_KEY_BYTES`].
pub fn encode_key(value: &Value) -> Result<Vec<u8>, KeyError> {
    let key = match value {
        Value::Null => return Err(KeyError::Kind { what: "null" }),
        Value::Real(x) if !x.is_finite() => {
            return Err(KeyError::Kind { what: "a number that is not finite" });
        }
        Value::Json(Json::Array(_)) => return Err(KeyError::Kind { what: "a JSON array" }),
        Value::Json(Json::Object(_)) => return Err(KeyError::Kind { what: "a JSON object" }),
        Value::Bool(b) => b.to_string().into_bytes(),
        Value::Int(n) => n.to_string().into_bytes(),
        Value::Real(x) => x.to_string().into_bytes(),
        Value::Json(scalar) => match Value::from_json(scalar.clone()) {
            Value::Json(wide) => wide.to_string().into_bytes(),
            value => return encode_key(&value),
        },
        Value::Text(text) => text.clone().into_bytes(),
        Value::Blob(bytes) => bytes.clone(),
    };
    check_key(&key).map(|()| key)
}

fn check_key(key: &[u8]) -> Result<(), KeyError> {
    match key.len() {
        0 => Err(KeyError::Empty),
        got if got > MAX_KEY_BYTES => Err(KeyError::Length { got }),
        _ => Ok(()),
    }
}

/// The bytes that [`encode_key`] gives for a value, from the bytes that [`encode_record`] gives for it alone. A
/// text's are where they lie.
///
/// # Errors
/// As [`encode_key`].
///
/// # Panics
/// Some, if the bytes are not one encoded value.
pub fn key_of_encoded(value: &[u8]) -> Result<Cow<'_, [u8]>, KeyError> {
    let (first, rest) = value.split_first().expect("a value has a first byte");
    let text = match *first {
        SHORT_TEXT.. => rest,
        LONG_TEXT => {
            let varint = rest.iter().position(|b| b & 0x80 == 0).expect("a text says how long it is");
            &rest[varint + 1..]
        }
        ARRAY => return Err(KeyError::Kind { what: "a JSON array" }),
        OBJECT => return Err(KeyError::Kind { what: "a JSON object" }),
        _ => {
            let value = decode_record(value, 1).expect("an encoded value is read back");
            return encode_key(&value[0]).map(Cow::Owned);
        }
    };
    check_key(text).map(|()| Cow::Borrowed(text))
}

/// What a value is, from the bytes that [`encode_record`] gives for it alone: one of the same kind, and of no length.
///
/// # Panics
/// There are no bytes.
#[must_use]
pub fn kind_of_encoded(value: &[u8]) -> Value {
    match value[0] {
        FALSE | TRUE => Value::Bool(false),
        REAL => Value::Real(0.0),
        POSITIVE | NEGATIVE | SMALL..SHORT_TEXT => Value::Int(0),
        LONG_TEXT | SHORT_TEXT.. => Value::Text(String::new()),
        BLOB => Value::Blob(Vec::new()),
        ARRAY | OBJECT => Value::Json(Json::Array(Vec::new())),
        _ => Value::Null,
    }
}

fn put_varint(mut n: u64, out: &mut Vec<u8>) {
    while n > 0x7f {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// `n` fits an `i64` or a `u64`.
fn put_integer(n: i128, out: &mut Vec<u8>) {
    if (SMALL_MIN..=SMALL_MAX).contains(&n) {
        out.push(SMALL + (n - SMALL_MIN) as u8);
    } else if n > 0 {
        out.push(POSITIVE);
        put_varint((n - SMALL_MAX - 1) as u64, out);
    } else {
        out.push(NEGATIVE);
        put_varint((SMALL_MIN - 1 - n) as u64, out);
    }
}

fn put_real(x: f64, out: &mut Vec<u8>) {
    out.push(REAL);
    out.extend_from_slice(&x.to_le_bytes());
}

/// Appends the text to `out`, as [`encode_record`] appends a [`Value::Text`].
pub fn encode_text(text: &str, out: &mut Vec<u8>) {
    let len = text.len() as u64;
    if len <= SHORT_TEXT_MAX {
        out.push(SHORT_TEXT + len as u8);
    } else {
        out.push(LONG_TEXT);
        put_varint(len - SHORT_TEXT_MAX - 1, out);
    }
    out.extend_from_slice(text.as_bytes());
}

fn put_json(json: &Json, out: &mut Vec<u8>) {
    match json {
        Json::Null => out.push(NULL),
        Json::Bool(b) => out.push(if *b { TRUE } else { FALSE }),
        Json::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(int), _) => put_integer(int.into(), out),
            (_, Some(int)) => put_integer(int.into(), out),
            _ => put_real(n.as_f64().expect("a JSON number without its own feature is i64, u64 or f64"), out),
        },
        Json::String(text) => encode_text(text, out),
        Json::Array(items) => {
            out.push(ARRAY);
            put_varint(items.len() as u64, out);
            items.iter().for_each(|item| put_json(item, out));
        }
        Json::Object(map) => {
            out.push(OBJECT);
            put_varint(map.len() as u64, out);
            for (key, item) in map {
                encode_text(key, out);
                put_json(item, out);
            }
        }
    }
}

enum Flaw {
    Truncated,
    Malformed(usize, &'static str),
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: u64) -> Result<&'a [u8], Flaw> {
        let rest = &self.bytes[self.at..];
        let taken = usize::try_from(len).ok().and_then(|len| rest.get(..len)).ok_or(Flaw::Truncated)?;
        self.at += taken.len();
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Flaw> {
        Ok(self.take(1)?[0])
    }

    fn varint(&mut self) -> Result<u64, Flaw> {
        let start = self.at;
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            n |= bits << shift;
            if byte & 0x80 == 0 {
                let longer_than_need_be = byte == 0 && shift > 0;
                return if longer_than_need_be {
                    Err(Flaw::Malformed(start, "a number with more bytes than it takes"))
                } else {
                    Ok(n)
                };
            }
        }
        Err(Flaw::Malformed(start, "a number over 64 bits"))
    }

    fn text(&mut self, len: u64) -> Result<String, Flaw> {
        let start = self.at;
        let text = str::from_utf8(self.take(len)?)
            .map_err(|_| Flaw::Malformed(start, "a text that is not UTF-8"))?;
        Ok(text.to_owned())
    }

    fn value(&mut self, depth: usize) -> Result<Value, Flaw> {
        let start = self.at;
        let flaw = |why| Flaw::Malformed(start, why);
        Ok(match self.byte()? {
            0 => return Err(flaw("no value starts with a zero; this slot may hold no record")),
            NULL => Value::Null,
            FALSE => Value::Bool(false),
            TRUE => Value::Bool(true),
            REAL => Value::Real(f64::from_le_bytes(self.take(8)?.try_into().expect("took eight bytes"))),
            POSITIVE => {
                let n = self.varint()?.checked_add(SMALL_MAX as u64 + 1);
                let n = n.ok_or_else(|| flaw("an integer over 64 bits"))?;
                i64::try_from(n).map_or_else(|_| Value::Json(n.into()), Value::Int)
            }
            NEGATIVE => {
                let n = i64::try_from(SMALL_MIN - 1 - i128::from(self.varint()?));
                Value::Int(n.map_err(|_| flaw("an integer below -2^63"))?)
            }
            LONG_TEXT => {
                let len = self.varint()?.checked_add(SHORT_TEXT_MAX + 1).ok_or(Flaw::Truncated)?;
                Value::Text(self.text(len)?)
            }
            BLOB => {
                let len = self.varint()?;
                Value::Blob(self.take(len)?.to_vec())
            }
            ARRAY | OBJECT if depth == MAX_DEPTH => return Err(flaw("JSON deeper than 128 levels")),
            ARRAY => {
                let items = (0..self.varint()?).map(|_| self.json(depth + 1));
                Value::Json(Json::Array(items.collect::<Result<_, _>>()?))
            }
            OBJECT => {
                let mut map = Map::new();
                for _ in 0..self.varint()? {
                    let at = self.at;
                    let Json::String(key) = self.json(depth + 1)? else {
                        return Err(Flaw::Malformed(at, "a key of a JSON object that is not text"));
                    };
                    if map.insert(key, self.json(depth + 1)?).is_some() {
                        return Err(Flaw::Malformed(at, "a key that its JSON object already holds"));
                    }
                }
                Value::Json(Json::Object(map))
            }
            small @ SMALL..SHORT_TEXT => Value::Int(i64::from(small - SMALL) + SMALL_MIN as i64),
            short @ SHORT_TEXT.. => Value::Text(self.text((short - SHORT_TEXT).into())?),
            KEPT..SMALL => {
                return Err(flaw("a kind of value that this version doesn't know; update blindcore"));
            }
        })
    }

    /// A value within an array or an object.
    fn json(&mut self, depth: usize) -> Result<Json, Flaw> {
        let start = self.at;
        match self.value(depth)? {
            Value::Json(json) => Ok(json),
            Value::Text(text) => Ok(Json::String(text)),
            Value::Blob(_) => Err(Flaw::Malformed(start, "a blob within JSON")),
            Value::Real(x) if !x.is_finite() => Err(Flaw::Malformed(start, "JSON has no such number")),
            scalar => Ok(scalar.to_json()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn encoded(values: &[Value]) -> Vec<u8> {
        let mut out = Vec::new();
        encode_record(values, &mut out);
        out
    }

    fn text(len: usize) -> Value {
        Value::Text("x".repeat(len))
    }

    #[test]
    fn the_table_in_the_documentation_holds() {
        let cases: Vec<(Value, Vec<u8>)> = vec![
            (Value::Null, vec![0x01]),
            (Value::Bool(false), vec![0x02]),
            (Value::Bool(true), vec![0x03]),
            (Value::Real(1.0), vec![0x04, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]),
            (Value::Int(-16), vec![0x10]),
            (Value::Int(0), vec![0x20]),
            (Value::Int(95), vec![0x7f]),
            (Value::Int(96), vec![0x05, 0]),
            (Value::Int(96 + 127), vec![0x05, 0x7f]),
            (Value::Int(96 + 128), vec![0x05, 0x80, 1]),
            (Value::Int(-17), vec![0x06, 0]),
            (Value::Int(-18), vec![0x06, 1]),
            (Value::Text(String::new()), vec![0x80]),
            (Value::Text("é".into()), vec![0x82, 0xc3, 0xa9]),
            (Value::Blob(vec![0, 9]), vec![0x08, 2, 0, 9]),
            (Value::Json(json!([1, null])), vec![0x09, 2, 0x21, 0x01]),
            (Value::Json(json!({"a": {}})), vec![0x0a, 1, 0x81, b'a', 0x0a, 0]),
            (Value::Json(json!(u64::MAX)), {
                let mut bytes = vec![0x05];
                put_varint(u64::MAX - 96, &mut bytes);
                bytes
            }),
        ];
        for (value, bytes) in cases {
            assert_eq!(encoded(std::slice::from_ref(&value)), bytes, "{value:?}");
            assert_eq!(decode_record(&bytes, 1), Ok(vec![value]));
        }
        assert_eq!(encoded(&[text(127)])[..2], [0xff, b'x']);
        assert_eq!(encoded(&[text(128)])[..3], [0x07, 0, b'x']);
        assert_eq!(encoded(&[text(128 + 300)])[..4], [0x07, 0xac, 2, b'x']);
    }

    #[test]
    fn edges_of_integers_survive() {
        for n in [i64::MIN, i64::MIN + 1, -17, -16, 95, 96, i64::MAX] {
            assert_eq!(decode_record(&encoded(&[Value::Int(n)]), 1), Ok(vec![Value::Int(n)]));
        }
        for n in [1u64 << 63, u64::MAX] {
            assert_eq!(decode_record(&encoded(&[Value::Json(n.into())]), 1), Ok(vec![Value::Json(n.into())]));
        }
    }

    #[test]
    fn reals_keep_every_bit() {
        for bits in [0, 1 << 63, f64::INFINITY.to_bits(), 0x7ff8_0000_0000_0001, 0xfff0_0000_0000_0001, 1] {
            let decoded = decode_record(&encoded(&[Value::Real(f64::from_bits(bits))]), 1).unwrap();
            let [Value::Real(x)] = decoded[..] else { panic!("{decoded:?}") };
            assert_eq!(x.to_bits(), bits);
        }
    }

    #[test]
    fn zeros_may_follow_and_nothing_else() {
        let mut bytes = encoded(&[Value::Int(1), text(3)]);
        let len = bytes.len();
        bytes.resize(len + 40, 0);
        assert_eq!(decode_record(&bytes, 2), Ok(vec![Value::Int(1), text(3)]));
        bytes[len + 7] = 1;
        let CodecError::Malformed { column, at, .. } = decode_record(&bytes, 2).unwrap_err() else {
            panic!()
        };
        assert_eq!((column, at), (2, len + 7));
        assert_eq!(decode_record(&[0; 9], 0), Ok(vec![]));
    }

    #[test]
    fn what_no_encoder_writes_is_refused_where_it_stands() {
        let long = |head: &[u8], n: u64| {
            let mut bytes = head.to_vec();
            put_varint(n, &mut bytes);
            bytes
        };
        let deep = [[ARRAY, 1].repeat(MAX_DEPTH + 1), vec![NULL]].concat();
        let malformed: Vec<(Vec<u8>, usize, &str)> = vec![
            (vec![0; 8], 0, "starts with a zero"),
            (vec![0x0b], 0, "doesn't know"),
            (vec![0x0f], 0, "doesn't know"),
            (vec![0x81, 0xff], 1, "not UTF-8"),
            (vec![POSITIVE, 0x80, 0], 1, "more bytes than it takes"),
            (vec![POSITIVE, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2], 1, "over 64 bits"),
            (vec![POSITIVE, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1], 1, "over 64 bits"),
            (long(&[POSITIVE], u64::MAX - 95), 0, "over 64 bits"),
            (long(&[NEGATIVE], i64::MAX as u64 - 15), 0, "below -2^63"),
            (vec![ARRAY, 1, BLOB, 0], 2, "a blob within JSON"),
            ([&[ARRAY, 1, REAL][..], &f64::NAN.to_le_bytes()].concat(), 2, "no such number"),
            (vec![OBJECT, 1, NULL, NULL], 2, "is not text"),
            (vec![OBJECT, 2, 0x81, b'a', NULL, 0x81, b'a', NULL], 5, "already holds"),
            (deep, 2 * MAX_DEPTH, "deeper"),
        ];
        for (bytes, position, reason) in malformed {
            let CodecError::Malformed { at, why, .. } = decode_record(&bytes, 1).unwrap_err() else {
                panic!("{bytes:?}")
            };
            assert!(at == position && why.contains(reason), "{bytes:?}: byte {at}: {why}");
        }
        let truncated = [
            vec![],
            vec![REAL, 0, 0],
            vec![POSITIVE],
            vec![POSITIVE, 0x80],
            vec![0x83, b'a'],
            vec![OBJECT, 1, 0x81, b'a'],
            long(&[BLOB], u64::MAX),
            long(&[ARRAY], u64::MAX),
            long(&[OBJECT], u64::MAX),
            long(&[LONG_TEXT], u64::MAX),
        ];
        for bytes in truncated {
            let len = bytes.len();
            let got = decode_record(&bytes, 1);
            assert_eq!(got, Err(CodecError::Truncated { columns: 1, column: 0, len }), "{bytes:?}");
        }
        let message = decode_record(&[NULL], usize::MAX).unwrap_err().to_string();
        assert!(message.contains("after 1 B, in column 1; "), "{message}");
    }

    #[test]
    fn a_key_is_what_a_person_types() {
        for (value, key) in [
            (Value::Int(42), "42"),
            (Value::Text("42".into()), "42"),
            (Value::Blob(b"42".to_vec()), "42"),
            (Value::Int(-7), "-7"),
            (Value::Bool(true), "true"),
            (Value::Real(42.0), "42"),
            (Value::Real(0.1), "0.1"),
            (Value::Real(-0.0), "-0"),
            (Value::Real(1e16), "10000000000000000"),
            (Value::Real(-1.5e-7), "-0.00000015"),
            (Value::Text(" a ".into()), " a "),
            (Value::Json(json!(u64::MAX)), "18446744073709551615"),
        ] {
            assert_eq!(encode_key(&value).unwrap(), key.as_bytes());
        }
    }

    #[test]
    fn what_nobody_could_type_is_no_key() {
        for (value, why) in [
            (Value::Null, "null is not a lookup key"),
            (Value::Real(f64::NAN), "not finite"),
            (Value::Json(json!([1])), "a JSON array is"),
            (Value::Json(json!({})), "a JSON object is"),
            (text(0), "an empty value"),
            (Value::Blob(vec![]), "an empty value"),
            (text(4097), "4097 B is over the limit of 4096 B"),
        ] {
            let error = encode_key(&value).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        assert_eq!(encode_key(&text(4096)).unwrap().len(), 4096);
    }

    fn any_json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            any::<u64>().prop_map(Json::from),
            prop::num::f64::NORMAL.prop_map(Json::from),
            ".{0,200}".prop_map(Json::from),
        ];
        leaf.prop_recursive(5, 40, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Json::from),
                prop::collection::btree_map(".{0,9}", inner, 0..8)
                    .prop_map(|map| Json::Object(map.into_iter().collect())),
            ]
        })
    }

    fn any_value() -> impl Strategy<Value = Value> {
        prop_oneof![
            3 => any_json().prop_map(Value::from_json),
            1 => (-200i64..300).prop_map(Value::Int),
            1 => prop::collection::vec(any::<u8>(), 0..300).prop_map(Value::Blob),
            1 => any::<f64>().prop_filter("NaN != NaN", |x| !x.is_nan()).prop_map(Value::Real),
        ]
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(
            values in prop::collection::vec(any_value(), 0..8), padding in 0usize..20, cut: prop::sample::Index,
        ) {
            let mut bytes = encoded(&values);
            let len = bytes.len();
            if len > 0 {
                let cut = cut.index(len);
                prop_assert!(decode_record(&bytes[..cut], values.len()).is_err(), "cut to {cut} of {len} B");
            }
            bytes.resize(len + padding, 0);
            prop_assert_eq!(decode_record(&bytes, values.len()), Ok(values));
        }

        #[test]
        fn a_key_is_the_same_from_a_value_and_from_its_bytes(value in any_value()) {
            let key = encode_key(&value);
            prop_assert_eq!(key_of_encoded(&encoded(&[value])).map(Cow::into_owned), key);
        }

        #[test]
        fn decoding_anything_gives_its_only_encoding_or_an_error(
            // Bytes that open a value, short varints and padding come up often, so that many inputs are accepted.
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0u8..0x13, Just(0), Just(0x81)], 0..40),
            columns in 0usize..6,
        ) {
            if let Ok(values) = decode_record(&bytes, columns) {
                let mut again = encoded(&values);
                prop_assert!(again.len() <= bytes.len());
                again.resize(bytes.len(), 0);
                prop_assert_eq!(again, bytes);
            }
        }

        #[test]
        fn a_real_key_reads_back_as_itself(x in any::<f64>().prop_filter("finite", |x| x.is_finite())) {
            let key = String::from_utf8(encode_key(&Value::Real(x)).unwrap()).unwrap();
            prop_assert_eq!(key.parse::<f64>().unwrap().to_bits(), x.to_bits());
        }
    }
}
