//! JSON lines: an object a line, strictly.

use super::lines::Lines;
use super::{Position, Row, Source, SourceError, project};
use crate::Value;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
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
    /// How many objects lacked each column.
    lacked: Vec<u64>,
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
const NEW_REMEDY: &str = "leave it out, or give it to the first object too, null where nothing is meant";
const REMEDY: &str = "write one JSON object a line";

impl<R: BufRead> JsonLines<R> {
    pub(super) fn new(mut lines: Lines<R>, wanted: Option<&[String]>) -> Result<Self, SourceError> {
        if !lines.start_row(blank)? {
            return Err(
                lines.unfit("it is empty", "write one JSON object a line; the first names the columns")
            );
        }
        let Json::Object(first) = parse(&lines, Tree { inexact: &Cell::default() })? else {
            return Err(lines.flaw("it is not a JSON object".into(), REMEDY));
        };
        let keys: Vec<String> = first.into_iter().map(|(key, _)| key).collect();
        let columns = project(lines.origin(), &keys, wanted)?.into_iter().map(|i| keys[i].clone());
        let columns: Vec<String> = columns.collect();
        let positions = columns.iter().cloned().zip(0..).collect();
        let others = if wanted.is_some() { Others::PassedOver } else { Others::Refused };
        let lacked = vec![0; columns.len()];
        Ok(Self { lines, positions, columns, others, missing: Vec::new(), lacked, waiting: true })
    }

    /// Changes, whose objects have any of the `known` keys.
    pub(super) fn changes(
        mut lines: Lines<R>,
        known: &[String],
        ignored: &[String],
    ) -> Result<Self, SourceError> {
        if !lines.start_row(blank)? {
            return Err(lines.unfit("it is empty", REMEDY));
        }
        let positions = known.iter().cloned().zip(0..).collect();
        let others = Others::Ignored(ignored.to_vec());
        let (columns, lacked) = (known.to_vec(), vec![0; known.len()]);
        Ok(Self { lines, positions, columns, others, missing: Vec::new(), lacked, waiting: true })
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
        let (inexact, unknown) = (Cell::default(), Cell::default());
        let Self { positions, columns, others, .. } = &*self;
        let fields = Fields { positions, columns, others, inexact: &inexact, unknown: &unknown };
        let values = parse(&self.lines, fields).map_err(|mut error| {
            if let (SourceError::Row { remedy, .. }, true) = (&mut error, unknown.get()) {
                *remedy = if let Others::Ignored(_) = self.others { UNKNOWN_REMEDY } else { NEW_REMEDY };
            }
            error
        })?;
        if inexact.get()
            && let Some((column, why)) = lost_digits(self.lines.raw(), |key| self.positions.contains_key(key))
        {
            return Err(self
                .lines
                .flaw(format!("column {column:?}: {why}"), "write it as a text, in quotes"));
        }
        for (lacked, value) in self.lacked.iter_mut().zip(&values) {
            *lacked += u64::from(value.is_none());
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

    fn lacked(&self) -> Vec<(String, u64)> {
        let lacked = self.columns.iter().cloned().zip(self.lacked.iter().copied());
        lacked.filter(|(_, rows)| *rows > 0).collect()
    }

    fn position(&self) -> Position {
        self.lines.position()
    }
}

/// The value of one piece of JSON, as strictly as in a line: nothing repeated, no digits lost.
pub(crate) fn value(text: &str) -> Result<Value, Cow<'static, str>> {
    let inexact = Cell::default();
    let mut json = serde_json::Deserializer::from_str(text);
    let value =
        Tree { inexact: &inexact }.deserialize(&mut json).and_then(|value| json.end().map(|()| value));
    let value = value.map_err(|error| match error.classify() {
        Category::Data => cause(&error),
        _ => format!("it is not JSON: {}", cause(&error)),
    })?;
    match inexact.get().then(|| lost_digits(text.as_bytes(), |_| true)).flatten() {
        Some((_, why)) => Err(why.into()),
        None => Ok(Value::from_json(value)),
    }
}

/// What the JSON library says, and at which byte.
fn cause(error: &serde_json::Error) -> String {
    let why = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    format!("{} (byte {})", why.strip_suffix(&position).unwrap_or(&why), error.column())
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
    parsed.map_err(|error| {
        let why = cause(&error);
        let remedy = remedy(&why);
        lines.flaw(why, remedy)
    })
}

/// What to do about what the JSON library says.
fn remedy(why: &str) -> &'static str {
    let known = [
        (
            "hex escape",
            "write the character itself, or as \\u and four digits; one above U+FFFF takes two of these",
        ),
        ("recursion limit", "nest no deeper than 127, or write the value as a text, in quotes"),
        ("number out of range", "write it as a text, in quotes"),
    ];
    known.iter().find(|(words, _)| why.contains(words)).map_or(REMEDY, |(_, remedy)| remedy)
}

/// Reads an object into the values of a row, as far as it has them.
struct Fields<'s> {
    positions: &'s HashMap<String, usize>,
    columns: &'s [String],
    others: &'s Others,
    inexact: &'s Cell<bool>,
    /// Set when there is a key that is not known.
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
                    values[*i] = Some(Value::from_json(map.next_value_seed(Tree { inexact: self.inexact })?))
                }
                None => match self.others {
                    Others::Refused => {
                        self.unknown.set(true);
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
    /// Set when there is a number that a binary64 stands for, and may have lost digits.
    inexact: &'s Cell<bool>,
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
        self.inexact.set(true);
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

/// The first number in valid JSON that loses digits, as a clause, and the key of the outermost object that it stands under;
/// keys that are not `wanted` are passed over.
fn lost_digits(json: &[u8], wanted: impl Fn(&str) -> bool) -> Option<(String, String)> {
    let (mut at, mut depth, mut key) = (0, 0, String::new());
    while at < json.len() {
        let start = at;
        at += 1;
        match json[start] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => {
                while json[at] != b'"' {
                    at += if json[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
                if depth == 1 && json[at..].trim_ascii_start().first() == Some(&b':') {
                    key = serde_json::from_slice(&json[start..at]).ok()?;
                }
            }
            b'-' | b'0'..=b'9' => {
                while json.get(at).is_some_and(|b| b"0123456789.eE+-".contains(b)) {
                    at += 1;
                }
                let number = str::from_utf8(&json[start..at]).ok()?;
                if keeps_digits(number) || !wanted(&key) {
                    continue;
                }
                let kind = if number.contains(['.', 'e', 'E']) { "decimal" } else { "integer" };
                return Some((
                    key,
                    format!("the {kind} {number} takes more than 64 bits and would lose digits"),
                ));
            }
            _ => {}
        }
    }
    None
}

/// Whether 64 bits keep a number: an integer is itself, and a decimal has the digits of the shortest one that names the binary64
/// nearest to it, but for zeros behind the last.
pub(crate) fn keeps_digits(number: &str) -> bool {
    if !number.contains(['.', 'e', 'E']) {
        return number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok();
    }
    let number = number.trim_start_matches(['-', '+']);
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{part}");
    let from_first = digits.trim_start_matches('0');
    if from_first.is_empty() {
        return true;
    }
    let Ok(exponent) = exponent.parse::<i32>() else { return false };
    let exponent = i64::from(exponent) + whole.len() as i64 - (digits.len() - from_first.len()) as i64 - 1;
    let digits = from_first.trim_end_matches('0');
    // These come back from every binary64 that is not tiny.
    if digits.len() <= 15 && (-290..290).contains(&exponent) {
        return true;
    }
    // The shortest decimal that names the nearest binary64 is what is shown of it.
    let Ok(x) = number.parse::<f64>() else { return false };
    let point = if digits.len() > 1 { "." } else { "" };
    format!("{x:e}") == format!("{}{point}{}e{exponent}", &digits[..1], &digits[1..])
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
            // Without the exact parser numbers like these come out one bit off.
            r#"{"a":1e300,"b":122.41629403378658}"#,
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
                (7, vec![Value::Real(1e300), Value::Real("122.41629403378658".parse().unwrap())]),
            ]
        );
        assert_eq!(source.position().done, file.len() as u64);
        assert!(source.next_row().unwrap().is_none());
    }

    #[test]
    fn a_decimal_keeps_its_digits_or_is_refused() {
        for kept in [
            "0.10",
            "1.5000",
            "-0.0",
            "1e22",
            "1E+2",
            "0.1",
            "123456789012345.0",
            "0.10000000000000000",
            "2.5e-310",
            "1.7976931348623157e308",
            "5e-324",
            "0.30000000000000004",
            "100000000000000000000.0",
        ] {
            assert!(keeps_digits(kept), "{kept}");
        }
        for lost in [
            "0.1234567890123456789",
            "0.10000000000000001",
            "122.416294033786585",
            "4.9e-324",
            "12345678901234567.25",
            "1e-400",
            "0.1000000000000000000000001",
            "1.00000000000000001",
            "123456789012345678901234567890.5",
        ] {
            assert!(!keeps_digits(lost), "{lost}");
        }
        assert!(value("[1.5, {\"a\": 0.1}]").is_ok());
        let error = value("{\"a\": [1.00000000000000001]}").unwrap_err();
        assert!(error.contains("1.00000000000000001 takes more"), "{error}");
        assert_eq!(value("{\"a\": 1, \"a\": 2}").unwrap_err(), "the key \"a\" is there twice (byte 12)");
        assert!(value("{").unwrap_err().starts_with("it is not JSON: EOF"));
        // What is not wanted is not looked at.
        let file = b"{\"a\":0.5,\"b\":0}\n{\"b\":0.1234567890123456789,\"a\":0.5}";
        assert_eq!(rows(&mut open(file, Some(&["a"])).unwrap()).unwrap().len(), 2);
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
            (
                b"{\"a\":1}\n{\"a\":1e999}",
                "line 2 of x.jsonl: number out of range (byte 10); write it as a text",
            ),
            (
                b"{\"a\":\"\\ud800\"}",
                "line 1 of x.jsonl: unexpected end of hex escape (byte 13); write the character",
            ),
            (
                b"{\"a\":1}\n{\"a\":[\"\\\"9\",1e40,-18446744073709551616]}",
                "line 2 of x.jsonl: column \"a\": the integer -18446744073709551616 takes more than 64 bits and would lose \
                 digits; write",
            ),
            (
                b"{\"b\":0,\"a\":1}\n{\"b\":{\"a\":1},\"a\":[0.10,0.1234567890123456789]}",
                "line 2 of x.jsonl: column \"a\": the decimal 0.1234567890123456789 takes more than 64 bits and would",
            ),
            (
                deep.as_bytes(),
                "line 1 of x.jsonl: recursion limit exceeded (byte 132); nest no deeper than 127",
            ),
            (long.as_bytes(), "line 2 of x.jsonl: it is over the limit of 150 B for a row"),
        ] {
            let error = open(file, None).and_then(|mut source| rows(&mut source)).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        let error = open(b"{\"a\":1,\"b\":2}", Some(&["z"])).err().unwrap().to_string();
        assert_eq!(error, "x.jsonl has no column \"z\"; its columns are a, b");
    }
}
