//! A table's columns: rows of which only some are said, and texts whose types are the table's.

use std::borrow::Cow;

use blindcore_wire::{Value, codec};

use crate::build::MAX_LONG_RECORD_BYTES;
use crate::kinds::Kinds;
use crate::{SourceSpec, StoreError, Stored, source};

/// The columns of a table's records.
pub(super) struct Shape<'a> {
    names: &'a [String],
    /// The kinds of values that each holds, where CHANGES have texts alone and some column holds other values.
    kinds: Option<Vec<Kinds>>,
    /// The same where CHANGES have values of all kinds and were written for this table.
    kept: Option<&'a [Kinds]>,
}

/// Rows of the base by which its columns are judged: at least, and at most where a column holds null in all of them.
const JUDGED: std::ops::Range<u64> = 32..1024;

impl<'a> Shape<'a> {
    /// The columns of a table, for CHANGES that have texts alone or values of all kinds.
    ///
    /// They are what the manifest says. One of an earlier version says nothing: then texts become what the first rows hold and, for a
    /// row that is there, its own values; of a table without a directory of keys only its own can be seen. Values of a database's table
    /// are what they are there, and a file's keep to the columns' kinds.
    pub(super) fn of(stored: &'a Stored, changes: &SourceSpec) -> Result<Self, StoreError> {
        let names = &stored.manifest().values[..];
        let known = stored.manifest().kinds.as_deref();
        if !changes.is_text() {
            return Ok(Self { names, kinds: None, kept: known.filter(|_| !changes.is_database()) });
        }
        if let Some(kinds) = known {
            let texts_alone = kinds.iter().all(|kinds| kinds.without(Kinds::TEXT) == Kinds::NONE);
            return Ok(Self { names, kinds: (!texts_alone).then(|| kinds.to_vec()), kept: None });
        }
        let mut kinds = vec![Kinds::NONE; names.len()];
        let description = stored.description()?;
        for row in 0..stored.manifest().base_rows().min(JUDGED.end) {
            if row >= JUDGED.start && kinds.iter().all(|kinds| *kinds != Kinds::NONE) {
                break;
            }
            let Some(key) = stored.base_key(row)? else { break };
            let Some(record) = stored.base_record(description.index(), &key)? else { continue };
            let record = record.collect::<Result<Vec<u8>, _>>()?;
            Kinds::add_record(&mut kinds, &record);
        }
        let texts_alone = !kinds.is_empty() && kinds.iter().all(|kinds| *kinds == Kinds::TEXT);
        Ok(Self { names, kinds: (!texts_alone).then_some(kinds), kept: None })
    }

    /// Whether a row's types depend on what the table holds.
    pub(super) fn judges(&self) -> bool {
        self.kinds.is_some()
    }

    /// A value of CHANGES that have values of all kinds, as the table holds it in this column: an integer among reals becomes one.
    ///
    /// # Errors
    /// The column holds none of its kind.
    pub(super) fn kept<'v>(&self, column: usize, value: &'v Value) -> Result<Cow<'v, Value>, String> {
        let held = self.kept.map_or(Kinds::NONE, |kinds| kinds[column]);
        let kind = Kinds::of(value);
        if held == Kinds::NONE || kind == Kinds::NONE || held.any(kind) {
            return Ok(Cow::Borrowed(value));
        }
        if let (Value::Int(n), true) = (value, held.any(Kinds::REAL)) {
            let real = *n as f64;
            if real as i128 == i128::from(*n) {
                return Ok(Cow::Owned(Value::Real(real)));
            }
        }
        let said = match value {
            Value::Text(text) => format!("the text {}", short(text)),
            Value::Blob(bytes) => format!("a blob of {} B", bytes.len()),
            other => other.to_json().to_string().chars().take(40).collect(),
        };
        Err(format!(
            "its {:?} is {said}, and the table holds {} there; write one, or null, or build the table again to hold both",
            self.names[column],
            names(held)
        ))
    }

    /// Columns of a row that is set, where `None` keeps what the row has: a byte for each that says whether it is there, then
    /// those that are as a record.
    pub(super) fn columns(values: &[Option<Cow<'_, Value>>]) -> Vec<u8> {
        let mut out: Vec<u8> = values.iter().map(|value| value.is_some().into()).collect();
        let given: Vec<Value> = values.iter().flatten().map(|value| Value::clone(value)).collect();
        codec::encode_record(&given, &mut out);
        out
    }

    /// The record of a row after its columns were set; `before` is what it was, if it was there. If it wasn't and not all of its columns
    /// are given, the first that is missing.
    ///
    /// # Errors
    /// A value is none that its column holds, or the record is too long.
    pub(super) fn record(
        &self,
        columns: &[u8],
        before: Option<&[u8]>,
    ) -> Result<Result<Vec<u8>, &str>, String> {
        let (given, values) = columns.split_at(self.names.len());
        let count = given.iter().filter(|given| **given == 1).count();
        let values = codec::decode_record(values, count).expect("written by this update");
        let before = before.map(|record| codec::decode_record(record, self.names.len())).transpose();
        let before = before.map_err(|e| e.to_string())?;
        let mut values = values.into_iter();
        let mut row = Vec::with_capacity(given.len());
        let mut missing = None;
        for (column, name) in self.names.iter().enumerate() {
            let own = before.as_ref().map(|row| &row[column]);
            row.push(match (given[column], own) {
                (1, own) => self.typed(column, values.next().expect("counted"), own)?,
                (_, Some(own)) => own.clone(),
                (_, None) => {
                    missing = missing.or(Some(name.as_str()));
                    Value::Null
                }
            });
        }
        let mut record = Vec::new();
        codec::encode_record(&row, &mut record);
        let record = fits(record)?;
        Ok(missing.map_or(Ok(record), Err))
    }

    /// A value as the table holds it in this column, where CHANGES have texts alone.
    fn typed(&self, column: usize, value: Value, own: Option<&Value>) -> Result<Value, String> {
        let (Some(kinds), Value::Text(text)) = (&self.kinds, &value) else { return Ok(value) };
        let own = own.map_or(Kinds::NONE, Kinds::of);
        let held = kinds[column] | own;
        // Where texts stand beside other values, a row keeps its own kind as far as it goes.
        let tried = if held.any(Kinds::TEXT) { own.without(Kinds::TEXT) } else { held };
        if text.is_empty() && held != Kinds::NONE && !held.any(Kinds::TEXT | Kinds::BLOB) {
            return Ok(Value::Null);
        }
        let order = [Kinds::INTEGER, Kinds::REAL, Kinds::BOOL, Kinds::JSON, Kinds::BLOB];
        let tried = order.into_iter().filter(|kind| tried.any(*kind));
        if let Some(read) = tried.map(|kind| read(text, kind)).find_map(|read| read) {
            return Ok(read);
        }
        if held == Kinds::NONE || held.any(Kinds::TEXT) {
            return Ok(value);
        }
        Err(format!(
            "its {:?} is {}, and the table holds {} there; write one, or leave it empty for null",
            self.names[column],
            short(text),
            names(held)
        ))
    }
}

/// A record, unless it is too long.
pub(super) fn fits(record: Vec<u8>) -> Result<Vec<u8>, String> {
    if record.len() <= MAX_LONG_RECORD_BYTES {
        return Ok(record);
    }
    Err(format!(
        "its record has {} bytes, over the limit of {MAX_LONG_RECORD_BYTES}; shorten its columns",
        record.len()
    ))
}

/// A text as a value of one kind, if it is one.
fn read(text: &str, kind: Kinds) -> Option<Value> {
    match kind {
        Kinds::INTEGER => {
            let large = || text.parse::<u64>().ok().map(|n| Value::from_json(n.into()));
            text.parse().ok().map(Value::Int).or_else(large)
        }
        Kinds::REAL => {
            let point = if text.contains(['.', 'e', 'E']) { "" } else { ".0" };
            let kept = |x: &f64| x.is_finite() && source::keeps_digits(&format!("{text}{point}"));
            text.parse().ok().filter(kept).map(Value::Real)
        }
        Kinds::BOOL => text.parse().ok().map(Value::Bool),
        Kinds::JSON => source::json_value(text).ok().filter(|value| Kinds::of(value) == Kinds::JSON),
        Kinds::BLOB => Some(Value::Blob(text.as_bytes().to_vec())),
        _ => None,
    }
}

/// Kinds, in words.
pub(super) fn names(kinds: Kinds) -> String {
    let numbers = match (kinds.any(Kinds::INTEGER), kinds.any(Kinds::REAL)) {
        (true, false) => Some("integers of 64 bits"),
        (false, true) => Some("numbers of which a 64-bit float keeps every digit"),
        (false, false) => None,
        _ => Some("integers of 64 bits and other numbers of which a 64-bit float keeps every digit"),
    };
    let bool = kinds.any(Kinds::BOOL).then_some("true or false");
    let json = kinds.any(Kinds::JSON).then_some("JSON arrays or objects");
    let texts = kinds.any(Kinds::TEXT).then_some("texts");
    let blobs = kinds.any(Kinds::BLOB).then_some("blobs");
    [numbers, bool, json, texts, blobs].into_iter().flatten().collect::<Vec<_>>().join(", or ")
}

/// A stranger's text, fit for a line.
pub(super) fn short(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(40).collect();
    format!("{start:?}{}", if chars.next().is_some() { " ..." } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Kinds = Kinds::NONE;
    const INTEGER: Kinds = Kinds::INTEGER;
    const REAL: Kinds = Kinds::REAL;
    const BOOL: Kinds = Kinds::BOOL;
    const JSON: Kinds = Kinds::JSON;
    const BLOB: Kinds = Kinds::BLOB;
    const TEXT: Kinds = Kinds::TEXT;

    #[test]
    fn a_text_becomes_what_the_column_holds() {
        let names = ["c".to_owned()];
        let typed = |kinds: Kinds, own: Option<Value>, text: &str| {
            let shape = Shape { names: &names, kinds: Some(vec![kinds]), kept: None };
            shape.typed(0, Value::Text(text.into()), own.as_ref())
        };
        let (int, text) = (|n| Ok(Value::Int(n)), |t: &str| Ok(Value::Text(t.into())));
        assert_eq!(typed(INTEGER, None, "-7"), int(-7));
        assert_eq!(typed(INTEGER, None, ""), Ok(Value::Null));
        assert_eq!(typed(INTEGER, None, "18446744073709551615"), Ok(Value::from_json(u64::MAX.into())));
        assert_eq!(typed(REAL, Some(Value::Null), "3"), Ok(Value::Real(3.0)));
        assert_eq!(typed(REAL, Some(Value::Int(1)), "3"), int(3));
        assert_eq!(typed(REAL | INTEGER, None, "2.5"), Ok(Value::Real(2.5)));
        assert_eq!(typed(BOOL, None, "true"), Ok(Value::Bool(true)));
        assert_eq!(typed(JSON, None, "[1]"), Ok(Value::from_json(serde_json::json!([1]))));
        assert_eq!(typed(BLOB, None, "7"), Ok(Value::Blob(b"7".to_vec())));
        // Where texts stand beside numbers, the row itself says which.
        assert_eq!(typed(TEXT | INTEGER, None, "7"), text("7"));
        assert_eq!(typed(TEXT | INTEGER, Some(Value::Text("8".into())), "7"), text("7"));
        assert_eq!(typed(TEXT, Some(Value::Int(8)), "7"), int(7));
        assert_eq!(typed(TEXT, Some(Value::Int(8)), "n/a"), text("n/a"));
        // Nothing but nulls says nothing.
        assert_eq!(typed(NONE, Some(Value::Null), "7"), text("7"));
        for (kinds, wrong, words) in [
            (
                INTEGER,
                "7.5",
                "its \"c\" is \"7.5\", and the table holds integers of 64 bits there; write one",
            ),
            (INTEGER, " 7", "\" 7\""),
            (REAL, "inf", "holds numbers of which a 64-bit float keeps every digit there"),
            (REAL, "0.10000000000000001", "holds numbers of which a 64-bit float keeps every digit there"),
            (REAL, "12345678901234567", "\"12345678901234567\""),
            (
                INTEGER | REAL,
                "9007199254740993.0",
                "holds integers of 64 bits and other numbers of which a 64-bit float keeps every digit there",
            ),
            (BOOL | JSON, "1", "holds true or false, or JSON arrays or objects there"),
        ] {
            let error = typed(kinds, None, wrong).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_value_is_of_a_kind_that_its_column_holds() {
        let names = ["c".to_owned()];
        let kept = |kinds: Kinds, value: Value| {
            let kinds = [kinds];
            let shape = Shape { names: &names, kinds: None, kept: Some(&kinds) };
            shape.kept(0, &value).map(Cow::into_owned)
        };
        let text = || Value::Text("it".into());
        for (kinds, value) in [
            (INTEGER, Value::Int(1)),
            (INTEGER, Value::Null),
            (INTEGER | TEXT, text()),
            (NONE, text()),
            (INTEGER | REAL, Value::Int(1)),
        ] {
            assert_eq!(kept(kinds, value.clone()), Ok(value));
        }
        assert_eq!(kept(REAL, Value::Int(3)), Ok(Value::Real(3.0)));
        for (kinds, value, words) in [
            (
                INTEGER,
                text(),
                "its \"c\" is the text \"it\", and the table holds integers of 64 bits there; write one, or null, or",
            ),
            (INTEGER, Value::Real(1.5), "is 1.5, and the table holds integers"),
            (
                REAL,
                Value::Int(i64::MAX),
                "is 9223372036854775807, and the table holds numbers of which a 64-bit float keeps every digit there",
            ),
            (TEXT, Value::Int(7), "is 7, and the table holds texts there"),
            (BOOL | BLOB, Value::Int(0), "holds true or false, or blobs there"),
            (TEXT, Value::Blob(vec![1, 2]), "is a blob of 2 B"),
        ] {
            let error = kept(kinds, value).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
