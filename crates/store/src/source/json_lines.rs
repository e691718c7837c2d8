//! JSON lines: an object a line, strictly.

use super::lines::Lines;
use super::{Position, Row, Source, SourceError, project};
use crate::Value;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::io::BufRead;

pub(super) struct JsonLines<R> {
    lines: Lines<R>,
    /// Where each column stands in a row.
    positions: HashMap<String, usize>,
    columns: Vec<String>,
    others: Others,
    /// The columns that the last object lacked, where that is told.
    missing: Vec<usize>,
    /// Whether the line that was read last waits to be given out: the first one, read for its columns.
    waiting: bool,
}

/// What becomes of keys that are no columns.
enum Others {
    /// The first object's keys are all there are.
    Refused,
    /// Only some columns were asked for.
    PassedOver,
    /// An update knows its columns, and passes over these.
    Ignored(Vec<String>),
}

const UNKNOWN_REMEDY: &str = "rename it, leave it out, or pass over it with --ignore";
const CHANGES_REMEDY: &str = "write one JSON object a line";
const REMEDY: &str = "write one JSON object a line, with no key that the first object lacks";

impl<R: BufRead> JsonLines<R> {
    pub(super) fn new(mut lines: Lines<R>, wanted: Option<&[String]>) -> Result<Self, SourceError> {
        if !lines.start_row(blank)? {
            return Err(
                lines.unfit("it is empty", "write one JSON object a line; the first names the columns")
            );
        }
        let Json::Object(first) = parse(&lines, Tree { wide: &Cell::default() })? else {
            return Err(lines.flaw("it is not a JSON object".into(), REMEDY));
        };
        let keys: Vec<String> = first.into_iter().map(|(key, _)| key).collect();
        let columns = project(lines.origin(), &keys, wanted)?.into_iter().map(|i| keys[i].clone());
        let columns: Vec<String> = columns.collect();
        let positions = columns.iter().cloned().zip(0..).collect();
        let others = if wanted.is_some() { Others::PassedOver } else { Others::Refused };
        Ok(Self { lines, positions, columns, others, missing: Vec::new(), waiting: true })
    }

    /// Changes, whose objects have any of the `known` keys.
    pub(super) fn changes(
        mut lines: Lines<R>,
        known: &[String],
        ignored: &[String],
    ) -> Result<Self, SourceError> {
        if !lines.start_row(blank)? {
            return Err(lines.unfit("it is empty", CHANGES_REMEDY));
        }
        let positions = known.iter().cloned().zip(0..).collect();
        let others = Others::Ignored(ignored.to_vec());
        Ok(Self { lines, positions, columns: known.to_vec(), others, missing: Vec::new(), waiting: true })
    }
}

impl<R: BufRead + Send> Source for JsonLines<R> {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn next_row(&mut self) -> Result<Option<Row>, SourceError> {
        if !std::mem::take(&mut self.waiting) && !self.lines.start_row(blank)? {
            return Ok(None);
        }
        let (wide, unknown) = (Cell::default(), Cell::default());
        let Self { positions, columns, others, .. } = &*self;
        let fields = Fields { positions, columns, others, wide: &wide, unknown: &unknown };
        let values = parse(&self.lines, fields).map_err(|mut error| {
            if let (SourceError::Row { remedy, .. }, Others::Ignored(_)) = (&mut error, &self.others) {
                *remedy = if unknown.get() { UNKNOWN_REMEDY } else { CHANGES_REMEDY };
            }
            error
        })?;
        if wide.get()
            && let Some(digits) = wide_integer(self.lines.raw())
        {
            let why = format!("the integer {digits} takes more than 64 bits and would lose digits");
            return Err(self.lines.flaw(why, "write it as a text, in quotes"));
        }
        self.missing.clear();
        if let Others::Ignored(_) = self.others {
            self.missing.extend((0..values.len()).filter(|i| values[*i].is_none()));
        }
        let values = values.into_iter().map(|value| value.unwrap_or(Value::Null)).collect();
        Ok(Some(Row { line: self.lines.row(), values }))
    }

    fn missing(&self) -> &[usize] {
        &self.missing
    }

    fn position(&self) -> Position {
        self.lines.position()
    }
}

/// The value of one piece of JSON, as strictly as in a line: nothing repeated, no digits lost.
pub(crate) fn value(text: &str) -> Result<Value, &'static str> {
    let wide = Cell::default();
    let mut json = serde_json::Deserializer::from_str(text);
    let value = Tree { wide: &wide }.deserialize(&mut json).and_then(|value| json.end().map(|()| value));
    let value = value.map_err(|_| "it is not JSON, or has a key twice, or lies too deep")?;
    match wide.get() && wide_integer(text.as_bytes()).is_some() {
        true => Err("an integer in it takes more than 64 bits and would lose digits"),
        false => Ok(Value::from_json(value)),
    }
}

fn blank(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
}

/// Reads the one thing that the last line holds.
fn parse<'a, R: BufRead, S: DeserializeSeed<'a>>(
    lines: &'a Lines<R>,
    seed: S,
) -> Result<S::Value, SourceError> {
    let text = str::from_utf8(lines.raw());
    let text = text.map_err(|e| {
        lines.flaw(format!("byte {} is not UTF-8", e.valid_up_to() + 1), "save the file as UTF-8")
    })?;
    let mut json = serde_json::Deserializer::from_str(text.trim_end());
    let parsed = seed.deserialize(&mut json).and_then(|value| json.end().map(|()| value));
    parsed.map_err(|e| {
        let why = e.to_string();
        let position = format!(" at line {} column {}", e.line(), e.column());
        lines.flaw(format!("{} (byte {})", why.strip_suffix(&position).unwrap_or(&why), e.column()), REMEDY)
    })
}

/// Reads an object into the values of a row, as far as it has them.
struct Fields<'s> {
    positions: &'s HashMap<String, usize>,
    columns: &'s [String],
    others: &'s Others,
    wide: &'s Cell<bool>,
    /// Set when there is a key that an update doesn't know.
    unknown: &'s Cell<bool>,
}

/// A key, borrowed from the line where it holds no escapes.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = Vec<Option<Value>>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = Vec<Option<Value>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = vec![None; self.columns.len()];
        while let Some(Key(key)) = map.next_key()? {
            match self.positions.get(key.as_ref()) {
                Some(i) if values[*i].is_some() => return Err(twice(&key)),
                Some(i) => {
                    values[*i] = Some(Value::from_json(map.next_value_seed(Tree { wide: self.wide })?))
                }
                None => match self.others {
                    Others::Refused => {
                        return Err(A::Error::custom(format!("the first object has no key {key:?}")));
                    }
                    Others::Ignored(ignored) if ignored.iter().all(|i| *i != key) => {
                        self.unknown.set(true);
                        return Err(A::Error::custom(format!(
                            "the key {key:?} is unknown; those of this table and of an update are {}",
                            self.columns.join(", ")
                        )));
                    }
                    _ => drop(map.next_value::<IgnoredAny>()?),
                },
            }
        }
        Ok(values)
    }
}

fn twice<E: Error>(key: &str) -> E {
    E::custom(format!("the key {key:?} is there twice"))
}

/// Reads any JSON; unlike serde_json's own reader, refuses an object with a key twice.
#[derive(Clone, Copy)]
struct Tree<'s> {
    /// Set when there is a number so large that it may have been an integer whose digits are lost.
    wide: &'s Cell<bool>,
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Json, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, b: bool) -> Result<Json, E> {
        Ok(b.into())
    }

    fn visit_i64<E>(self, n: i64) -> Result<Json, E> {
        Ok(n.into())
    }

    fn visit_u64<E>(self, n: u64) -> Result<Json, E> {
        Ok(n.into())
    }

    fn visit_f64<E>(self, x: f64) -> Result<Json, E> {
        if x.abs() >= i64::MAX as f64 {
            self.wide.set(true);
        }
        Ok(x.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            array.push(item);
        }
        Ok(array.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(twice(&key));
            }
            object.insert(key, map.next_value_seed(self)?);
        }
        Ok(object.into())
    }
}

/// The first integer in valid JSON that neither an `i64` nor a `u64` holds.
fn wide_integer(json: &[u8]) -> Option<&str> {
    let mut at = 0;
    while at < json.len() {
        let start = at;
        at += 1;
        match json[start] {
            b'"' => {
                while json[at] != b'"' {
                    at += if json[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                while json.get(at).is_some_and(|b| b"0123456789.eE+-".contains(b)) {
                    at += 1;
                }
                let number = str::from_utf8(&json[start..at]).ok()?;
                let integer = !number.contains(['.', 'e', 'E']);
                if integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    return Some(number);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn open<'a>(file: &'a [u8], wanted: Option<&[&str]>) -> Result<JsonLines<&'a [u8]>, SourceError> {
        let wanted: Option<Vec<String>> = wanted.map(|names| names.iter().map(|n| (*n).to_owned()).collect());
        JsonLines::new(Lines::new(file, "x.jsonl").with_limit(150), wanted.as_deref())
    }

    fn rows(source: &mut impl Source) -> Result<Vec<(u64, Vec<Value>)>, SourceError> {
        let mut rows = Vec::new();
        while let Some(Row { line, values }) = source.next_row()? {
            rows.push((line, values));
        }
        Ok(rows)
    }

    #[test]
    fn every_kind_of_value_is_read_exactly() {
        let file = concat!(
            "\u{feff}\n",
            r#"{"a": 1, "b": "x\u00e9\n"}"#,
            "\r\n \r\n",
            r#"{"b":-9223372036854775808,"a":18446744073709551615}"#,
            "\n{}\n",
            r#"{"\u0061":[1,{"z":1.5,"y":null}],"b":true}"#,
            "\n",
            // Without the exact parser this number comes out one bit off.
            r#"{"a":1e300,"b":122.416294033786585}"#,
        );
        let mut source = open(file.as_bytes(), None).unwrap();
        assert_eq!(source.columns(), ["a", "b"]);
        assert_eq!(
            rows(&mut source).unwrap(),
            [
                (2, vec![Value::Int(1), Value::Text("xé\n".into())]),
                (4, vec![Value::Json(json!(u64::MAX)), Value::Int(i64::MIN)]),
                (5, vec![Value::Null, Value::Null]),
                (6, vec![Value::Json(json!([1, {"z": 1.5, "y": null}])), Value::Bool(true)]),
                (7, vec![Value::Real(1e300), Value::Real("122.416294033786585".parse().unwrap())]),
            ]
        );
        assert_eq!(source.position().done, file.len() as u64);
        assert!(source.next_row().unwrap().is_none());
    }

    #[test]
    fn only_wanted_keys_are_read_and_others_come_and_go() {
        let file = br#"{"a":1,"b":{"x":1,"x":2},"c":3}
            {"c":4,"new":123456789012345678901234567890}"#;
        assert!(
            open(file, Some(&["c", "a"])).is_err(),
            "the first object names the columns, so all of it counts"
        );
        let file = br#"{"a":1,"b":[2],"c":3}
            {"c":4,"new":1,"new":2}"#;
        let mut source = open(file, Some(&["c", "a"])).unwrap();
        assert_eq!(source.columns(), ["c", "a"]);
        let expected = [(1, vec![Value::Int(3), Value::Int(1)]), (2, vec![Value::Int(4), Value::Null])];
        assert_eq!(rows(&mut source).unwrap(), expected);
    }

    #[test]
    fn a_flaw_is_named_by_line_reason_and_remedy() {
        let long = format!("{{\"a\":1}}\n{{\"a\":\"{}\"}}", "x".repeat(150));
        let deep = format!("{{\"a\":{}1", "[".repeat(128));
        for (file, message) in [
            (&b""[..], "x.jsonl: it is empty; write one JSON object a line"),
            (b" \n\n", "x.jsonl: it is empty"),
            (b"{}\n", "x.jsonl: there are no columns; name at least one"),
            (b"{\"\":1}", "x.jsonl: column 1 has no name"),
            (b"\n[1]", "line 2 of x.jsonl: it is not a JSON object; write one JSON object a line"),
            (b"{\"a\":1,\"a\":1}", "line 1 of x.jsonl: the key \"a\" is there twice (byte 10); write"),
            (
                b"{\"a\":1}\n\n7",
                "line 3 of x.jsonl: invalid type: integer `7`, expected a JSON object (byte 1); write",
            ),
            (
                b"{\"a\":1}\n{\"a\":1,\"b\":2}",
                "line 2 of x.jsonl: the first object has no key \"b\" (byte 10)",
            ),
            (b"{\"a\":1}\n{\"a\":1,\"\\u0061\":2}", "line 2 of x.jsonl: the key \"a\" is there twice"),
            (b"{\"a\":1}\n{\"a\":{\"b\":1,\"b\":2}}", "line 2 of x.jsonl: the key \"b\" is there twice"),
            (b"{\"a\":1}\n{\"a\":1\n", "line 2 of x.jsonl: EOF while parsing an object (byte 6); write"),
            (b"{\"a\":1}\n{\"a\":1} {}", "line 2 of x.jsonl: trailing characters (byte 9)"),
            (
                b"{\"a\":1}\n{\"a\":\"\xff\"}",
                "line 2 of x.jsonl: byte 7 is not UTF-8; save the file as UTF-8",
            ),
            (b"{\"a\":1}\n{\"a\":NaN}", "line 2 of x.jsonl: expected value"),
            (b"{\"a\":1}\n{\"a\":1e999}", "line 2 of x.jsonl: number out of range"),
            (
                b"{\"a\":1}\n{\"a\":[\"\\\"9\",1e40,-18446744073709551616]}",
                "line 2 of x.jsonl: the integer -18446744073709551616 takes more than 64 bits and would lose digits; write",
            ),
            (deep.as_bytes(), "line 1 of x.jsonl: recursion limit exceeded"),
            (long.as_bytes(), "line 2 of x.jsonl: it is over the limit of 150 B for a row"),
        ] {
            let error = open(file, None).and_then(|mut source| rows(&mut source)).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        let error = open(b"{\"a\":1,\"b\":2}", Some(&["z"])).err().unwrap().to_string();
        assert_eq!(error, "x.jsonl has no column \"z\"; its columns are a, b");
    }
}
