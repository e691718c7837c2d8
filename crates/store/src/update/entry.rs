//! What is known of a row that differs from the base, and the log of such rows.

use blindcore_accel::SharedBytes;

/// What is known of a row that differs from the base, or might.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its number, where it is not one of the base's. [`UNKNOWN`] otherwise.
    pub(super) number: u64,
    pub(super) key: Vec<u8>,
    pub(super) word: Word,
}

/// What is said of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// It is gone.
    Removed,
    /// Its record.
    Set(Vec<u8>),
    /// Columns of its record, as [`Shape::columns`](super::shape::Shape::columns) writes them.
    Columns(Vec<u8>),
    /// The base has it: it is gone where nothing else is said.
    Listed,
}

pub(super) const UNKNOWN: u64 = u64::MAX;

impl Entry {
    /// The number in 8 bytes, what is said in one (0 to 3), the key's length in 2, the key, the record.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let (word, record): (u8, &[u8]) = match &self.word {
            Word::Removed => (0, &[]),
            Word::Set(record) => (1, record),
            Word::Columns(columns) => (2, columns),
            Word::Listed => (3, &[]),
        };
        out.clear();
        out.extend_from_slice(&self.number.to_le_bytes());
        out.push(word);
        out.extend_from_slice(&(self.key.len() as u16).to_le_bytes());
        out.extend_from_slice(&self.key);
        out.extend_from_slice(record);
    }

    /// `None` for what [`Entry::encode`] never wrote.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (number, rest) = bytes.split_first_chunk::<8>()?;
        let (word, rest) = rest.split_first()?;
        let (len, rest) = rest.split_first_chunk::<2>()?;
        let (key, record) = rest.split_at_checked(u16::from_le_bytes(*len).into())?;
        let word = match word {
            1 => Word::Set(record.to_vec()),
            2 => Word::Columns(record.to_vec()),
            0 if record.is_empty() => Word::Removed,
            3 if record.is_empty() => Word::Listed,
            _ => return None,
        };
        Some(Self { number: u64::from_le_bytes(*number), key: key.to_vec(), word })
    }

    /// What this update wrote itself.
    pub(super) fn decoded(payload: &[u8]) -> Self {
        Self::decode(payload).expect("written by this update")
    }
}

/// The log of a database's changes: each entry after its length in 4 bytes. Rows in it are set or removed.
pub(super) struct Log {
    bytes: SharedBytes,
    at: usize,
}

impl Log {
    pub(super) fn new(bytes: SharedBytes) -> Self {
        Self { bytes, at: 0 }
    }
}

impl Iterator for Log {
    type Item = Option<Entry>;

    fn next(&mut self) -> Option<Option<Entry>> {
        let rest = &(*self.bytes).as_ref()[self.at..];
        if rest.is_empty() {
            return None;
        }
        let entry = rest.split_first_chunk::<4>().and_then(|(len, rest)| {
            let len = u32::from_le_bytes(*len) as usize;
            self.at += 4 + len;
            Entry::decode(rest.get(..len)?).filter(|e| matches!(e.word, Word::Set(_) | Word::Removed))
        });
        if entry.is_none() {
            self.at = (*self.bytes).as_ref().len();
        }
        Some(entry)
    }
}
