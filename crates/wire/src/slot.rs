//! What slots of changes and of keys hold.

use crate::TableError;
use crate::codec::MAX_KEY_BYTES;

/// Bytes before the key in a slot of a directory of keys.
pub(crate) const KEY_LENGTH_BYTES: usize = 2;
/// Bytes before the record in a slot of part `changes`, fingerprint apart.
pub(crate) const STATE_BYTES: usize = 1;

/// What the slot of a changed row says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// It has this record now, and zeros behind.
    Set(&'a [u8]),
    /// It is gone.
    Removed,
}

impl<'a> Change<'a> {
    /// Writes it as a slot of part `changes` holds it, fingerprint apart.
    pub fn encode(self, out: &mut Vec<u8>) {
        match self {
            Change::Set(record) => {
                out.push(1);
                out.extend_from_slice(record);
            }
            Change::Removed => out.push(0),
        }
    }

    /// Reads what [`Change::encode`] wrote; `None` where it never did.
    #[must_use]
    pub fn decode(slot: &'a [u8]) -> Option<Self> {
        match slot.split_first()? {
            (1, record) => Some(Change::Set(record)),
            (0, rest) => rest.iter().all(|b| *b == 0).then_some(Change::Removed),
            _ => None,
        }
    }
}

/// Writes a key into its slot of part `keys`: its length in 2 bytes, itself, and zeros.
///
/// # Errors
/// The key is over [`MAX_KEY_BYTES`], or the slot is too short for it.
pub fn encode_key_slot(key: &[u8], slot: &mut [u8]) -> Result<(), TableError> {
    let max = slot.len().saturating_sub(KEY_LENGTH_BYTES).min(MAX_KEY_BYTES);
    if key.len() > max || slot.len() < KEY_LENGTH_BYTES {
        let (got, max) = (key.len() as u64, max as u64);
        let remedy = "give part keys slots of its longest key and 2 bytes";
        return Err(TableError::Range { what: "bytes of a key", got, min: 0, max, remedy });
    }
    slot.fill(0);
    slot[..KEY_LENGTH_BYTES].copy_from_slice(&(key.len() as u16).to_le_bytes());
    slot[KEY_LENGTH_BYTES..][..key.len()].copy_from_slice(key);
    Ok(())
}

/// The key in a slot of part `keys`, or `None` where [`encode_key_slot`] never wrote it.
#[must_use]
pub fn decode_key_slot(slot: &[u8]) -> Option<&[u8]> {
    let (length, rest) = slot.split_first_chunk::<KEY_LENGTH_BYTES>()?;
    let (key, zeros) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    (key.len() <= MAX_KEY_BYTES && zeros.iter().all(|b| *b == 0)).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_slots_read_back() {
        let mut slot = [9u8; 8];
        for key in [&b""[..], b"a", b"abcdef", b"a\0\0"] {
            encode_key_slot(key, &mut slot).unwrap();
            assert_eq!(decode_key_slot(&slot), Some(key));
        }
        assert!(encode_key_slot(b"abcdefg", &mut slot).is_err());
        assert!(encode_key_slot(b"", &mut [0]).is_err());
        assert_eq!(decode_key_slot(&[]), None);
        assert_eq!(decode_key_slot(&[2, 0, b'a']), None);
        assert_eq!(decode_key_slot(&[1, 0, b'a', 1]), None);
    }

    #[test]
    fn changes_read_back() {
        for change in [Change::Set(b""), Change::Set(b"abc"), Change::Removed] {
            let mut slot = Vec::new();
            change.encode(&mut slot);
            assert_eq!(Change::decode(&slot), Some(change));
        }
        assert_eq!(Change::decode(&[0, 0, 0]), Some(Change::Removed));
        for odd in [&[][..], &[2], &[0, 1]] {
            assert_eq!(Change::decode(odd), None);
        }
    }
}
