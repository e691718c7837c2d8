//! A table's columns: rows of which only some are said, and texts whose types are the table's.

use blindcore_wire::{Value, codec};

use super::short;
use crate::build::MAX_LONG_RECORD_BYTES;
use crate::kinds::Kinds;
use crate::{StoreError, Stored, source};

/// The columns of a table's records.
pub(super) struct Shape<'a> {
    names: &'a [String],
    /// The kinds of values that each holds, where CHANGES have texts alone and some column holds other values.
    kinds: Option<Vec<Kinds>>,
}

/// Rows of the base by which its columns are judged: at least, and at most where a column holds null in all of them.
const JUDGED: std::ops::Range<u64> = 32..1024;

impl<'a> Shape<'a> {
    /// The columns of a table, for CHANGES that have texts alone or values of all kinds.
    ///
    /// They are what the manifest says. One of an earlier version says nothing: then they are those of the first rows and, for a row that
    /// is there, its own; of a table without a directory of keys only its own can be seen.
    pub(super) fn of(stored: &'a Stored, texts: bool) -> Result<Self, StoreError> {
        let names = &stored.manifest().values[..];
        if !texts {
            return Ok(Self { names, kinds: None });
        }
        if let Some(kinds) = &stored.manifest().kinds {
            let texts_alone = kinds.iter().all(|kinds| kinds.without(Kinds::TEXT) == Kinds::NONE);
            return Ok(Self { names, kinds: (!texts_alone).then(|| kinds.clone()) });
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
        Ok(Self { names, kinds: (!texts_alone).then_some(kinds) })
    }

    /// Whether a row's types depend on what the table holds.
    pub(super) fn judges(&self) -> bool {
        self.kinds.is_some()
    }

    /// Columns of a row that is set, where `None` keeps what the row has: a byte for each that says whether it is there, then
    /// those that are as a record.
    pub(super) fn columns(values: &[Option<&Value>]) -> Vec<u8> {
        let mut out: Vec<u8> = values.iter().map(|value| value.is_some().into()).collect();
        let given: Vec<Value> = values.iter().copied().flatten().cloned().collect();
        codec::encode_record(&given, &mut out);
        out
    }

    /// The record of a row after its columns were set; `before` is what it was, if it was there.
    pub(super) fn record(&self, columns: &[u8], before: Option<&[u8]>) -> Result<Vec<u8>, String> {
        let (given, values) = columns.split_at(self.names.len());
        let count = given.iter().filter(|given| **given == 1).count();
        let values = codec::decode_record(values, count).expect("written by this update");
        let before = before.map(|record| codec::decode_record(record, self.names.len())).transpose();
        let before = before.map_err(|e| e.to_string())?;
        let mut values = values.into_iter();
        let mut row = Vec::with_capacity(given.len());
        for (column, name) in self.names.iter().enumerate() {
            let own = before.as_ref().map(|row| &row[column]);
            row.push(match (given[column], own) {
                (1, own) => self.typed(column, values.next().expect("counted"), own)?,
                (_, Some(own)) => own.clone(),
                (_, None) => {
                    return Err(format!(
                        "it has no {name:?}, and the table has no such row yet whose {name:?} could stay; give every column of \
                         a row that is added, null where nothing is meant"
                    ));
                }
            });
        }
        let mut record = Vec::new();
        codec::encode_record(&row, &mut record);
        fits(record)
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
        Kinds::REAL => text.parse().ok().filter(|x: &f64| x.is_finite()).map(Value::Real),
        Kinds::BOOL => text.parse().ok().map(Value::Bool),
        Kinds::JSON => source::json_value(text).ok().filter(|value| Kinds::of(value) == Kinds::JSON),
        Kinds::BLOB => Some(Value::Blob(text.as_bytes().to_vec())),
        _ => None,
    }
}

/// Kinds, in words.
fn names(kinds: Kinds) -> String {
    let numbers = match (kinds.any(Kinds::INTEGER), kinds.any(Kinds::REAL)) {
        (true, false) => Some("integers of 64 bits"),
        (false, false) => None,
        _ => Some("numbers"),
    };
    let bool = kinds.any(Kinds::BOOL).then_some("true or false");
    let json = kinds.any(Kinds::JSON).then_some("JSON arrays or objects");
    [numbers, bool, json].into_iter().flatten().collect::<Vec<_>>().join(", or ")
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
            let shape = Shape { names: &names, kinds: Some(vec![kinds]) };
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
            (REAL, "inf", "holds numbers there"),
            (BOOL | JSON, "1", "holds true or false, or JSON arrays or objects there"),
        ] {
            let error = typed(kinds, None, wrong).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
