//! Which kinds of values a column holds.

use std::fmt;
use std::ops::BitOr;

use blindcore_wire::{KeyType, Value, codec};
use serde::{Deserialize, Serialize};

/// Kinds of values. Null is of none, and fits each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Kinds(u8);

/// What each bit is called in a manifest.
const NAMES: [(Kinds, &str); 6] = [
    (Kinds::INTEGER, "integer"),
    (Kinds::REAL, "real"),
    (Kinds::BOOL, "bool"),
    (Kinds::JSON, "json"),
    (Kinds::BLOB, "blob"),
    (Kinds::TEXT, "text"),
];

impl Kinds {
    /// None: nothing but nulls.
    pub(crate) const NONE: Self = Self(0);
    /// Integers of 64 bits.
    pub(crate) const INTEGER: Self = Self(1);
    /// Numbers with a fraction.
    pub(crate) const REAL: Self = Self(2);
    /// True and false.
    pub(crate) const BOOL: Self = Self(4);
    /// JSON arrays and objects.
    pub(crate) const JSON: Self = Self(8);
    /// Bytes.
    pub(crate) const BLOB: Self = Self(16);
    /// Texts.
    pub(crate) const TEXT: Self = Self(32);

    /// The kind of a value.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NONE,
            Value::Bool(_) => Self::BOOL,
            Value::Int(_) => Self::INTEGER,
            Value::Real(_) => Self::REAL,
            Value::Text(_) => Self::TEXT,
            Value::Blob(_) => Self::BLOB,
            // One over an i64.
            Value::Json(json) if json.is_number() => Self::INTEGER,
            Value::Json(_) => Self::JSON,
        }
    }

    /// The kind of a value that is encoded alone.
    pub(crate) fn of_encoded(value: &[u8]) -> Self {
        Self::of(&codec::kind_of_encoded(value))
    }

    /// The kinds of a record's values, added to those before.
    pub(crate) fn add_record(kinds: &mut [Self], record: &[u8]) {
        let values = codec::decode_record(record, kinds.len()).unwrap_or_default();
        for (kinds, value) in kinds.iter_mut().zip(values) {
            *kinds = *kinds | Self::of(&value);
        }
    }

    /// Whether it has one of these.
    pub(crate) fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    /// The one form of keys that are of these kinds: reals are written as decimals are, and so are integers beside them.
    pub(crate) fn key_type(self) -> Option<KeyType> {
        let numbers = self.without(Self::REAL | Self::INTEGER) == Self::NONE;
        (self.any(Self::REAL) && numbers).then_some(KeyType::Decimal)
    }

    /// All but these.
    pub(crate) fn without(self, these: Self) -> Self {
        Self(self.0 & !these.0)
    }
}

impl BitOr for Kinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            NAMES.iter().filter(|(kind, _)| self.any(*kind)).map(|(_, name)| *name).collect();
        f.write_str(&names.join(" "))
    }
}

impl From<Kinds> for String {
    fn from(kinds: Kinds) -> Self {
        kinds.to_string()
    }
}

impl TryFrom<String> for Kinds {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.split_whitespace().try_fold(Self::NONE, |kinds, name| {
            let kind = NAMES.iter().find(|(_, other)| *other == name);
            kind.map(|(kind, _)| kinds | *kind).ok_or_else(|| format!("{name:?} is no kind of values"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_their_names() {
        let both = Kinds::TEXT | Kinds::INTEGER;
        assert_eq!(serde_json::to_string(&both).unwrap(), "\"integer text\"");
        assert_eq!(serde_json::from_str::<Kinds>("\"integer text\"").unwrap(), both);
        assert_eq!(serde_json::from_str::<Kinds>("\"\"").unwrap(), Kinds::NONE);
        assert!(serde_json::from_str::<Kinds>("\"number\"").unwrap_err().to_string().contains("\"number\""));
    }
}
