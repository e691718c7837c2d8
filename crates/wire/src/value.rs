//! What a cell of a row holds.

use serde_json::{Number, json};

/// What a cell of a row holds.
///
/// Every value of every source has exactly one form here, the one that [`Value::from_json`] gives JSON: a
/// scalar is never a [`Value::Json`], except for the integers that only 64 unsigned bits hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing: SQL's NULL, JSON's null, a key that a JSON object lacks.
    Null,
    /// A JSON boolean. SQLite has none: it keeps 0 and 1.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A binary64 number. SQLite may hold infinities; JSON can't.
    Real(f64),
    /// Text. Every cell of a CSV file is one, an empty cell an empty text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
    /// A JSON array or object, or an integer from 2^63 to 2^64 - 1.
    Json(serde_json::Value),
}

impl Value {
    /// The value of a piece of JSON.
    #[must_use]
    pub fn from_json(json: serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(b) => Value::Bool(b),
            serde_json::Value::Number(n) => match (n.as_i64(), n.as_u64(), n.as_f64()) {
                (Some(int), _, _) => Value::Int(int),
                (None, None, Some(real)) => Value::Real(real),
                _ => Value::Json(n.into()),
            },
            serde_json::Value::String(text) => Value::Text(text),
            nested => Value::Json(nested),
        }
    }

    /// The value as JSON, for printing.
    ///
    /// A blob is `{"base64": "..."}` (RFC 4648, section 4, padded); a real that is not finite is the text
    /// `"Infinity"`, `"-Infinity"` or `"NaN"`; everything else is what it looks like.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Null => serde_json::Value::Null,
            Value::Bool(b) => (*b).into(),
            Value::Int(n) => (*n).into(),
            Value::Real(x) => match Number::from_f64(*x) {
                Some(n) => n.into(),
                None if x.is_nan() => "NaN".into(),
                None if *x > 0.0 => "Infinity".into(),
                None => "-Infinity".into(),
            },
            Value::Text(text) => text.as_str().into(),
            Value::Blob(bytes) => json!({ "base64": base64(bytes) }),
            Value::Json(json) => json.clone(),
        }
    }
}

/// Base64 with padding (RFC 4648, section 4).
#[must_use]
pub fn base64(bytes: &[u8]) -> String {
    data_encoding::BASE64.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_rfc_4648s() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, coded) in vectors {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn a_row_prints_as_a_person_expects() {
        let row = [
            (Value::Null, "null"),
            (Value::Bool(true), "true"),
            (Value::Int(i64::MIN), "-9223372036854775808"),
            (Value::Real(0.1), "0.1"),
            (Value::Real(42.0), "42.0"),
            (Value::Real(f64::INFINITY), r#""Infinity""#),
            (Value::Real(f64::NEG_INFINITY), r#""-Infinity""#),
            (Value::Real(f64::NAN), r#""NaN""#),
            (Value::Text("a\"b".into()), r#""a\"b""#),
            (Value::Blob(vec![0, 1]), r#"{"base64":"AAE="}"#),
            (Value::Json(json!({"b": [1, 2], "a": null})), r#"{"b":[1,2],"a":null}"#),
            (Value::Json(json!(u64::MAX)), "18446744073709551615"),
        ];
        for (value, printed) in row {
            assert_eq!(value.to_json().to_string(), printed);
        }
    }

    #[test]
    fn json_has_one_form() {
        for (json, value) in [
            (json!(null), Value::Null),
            (json!(-1), Value::Int(-1)),
            (json!(i64::MAX), Value::Int(i64::MAX)),
            (json!(1u64 << 63), Value::Json(json!(1u64 << 63))),
            (json!(1.0), Value::Real(1.0)),
            (json!(["x"]), Value::Json(json!(["x"]))),
        ] {
            assert_eq!(Value::from_json(json.clone()), value);
            assert_eq!(value.to_json(), json);
        }
    }
}
