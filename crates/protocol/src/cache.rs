//! Hints in a cache: under which name, and what a cached one must hold. A driver keeps the bytes: in files, or in a
//! browser's storage.
//!
//! An entry is named after table, part, server and digest. It starts with 96 bytes that say what it is:
//!
//! | bytes | what                                     |
//! |-------|------------------------------------------|
//! | 8     | `BLNDHINT`                               |
//! | 4     | version, 1                               |
//! | 4     | bytes of this header, 96                 |
//! | 32    | digest of the parameters                 |
//! | 32    | digest of the hint                       |
//! | 8     | bytes of the hint                        |
//! | 8     | zeros                                    |
//!
//! The hint follows. It is believed only if it hashes to its digest.

use std::sync::Arc;

use blindcore_wire::{PartDescription, PartKind, check_table_name};

use crate::kept::{Hint, Kept, digest};

/// Bytes before the hint in a cached entry.
pub const HEADER_BYTES: usize = 96;

const MAGIC: &[u8; 8] = b"BLNDHINT";
const VERSION: u32 = 1;

/// The place of one hint in a cache.
#[derive(Clone, Debug)]
pub struct CacheEntry {
    /// What the names of all hints of its table's part begin with.
    family: String,
    name: String,
    header: [u8; HEADER_BYTES],
    kind: PartKind,
    part: PartDescription,
}

impl CacheEntry {
    /// The entry of a hint from `server`. Each server has entries of its own: were they shared, one could offer
    /// another's hint and see from what is fetched whether this client knows the other.
    pub(crate) fn new(server: &str, table: &str, kind: PartKind, part: &PartDescription) -> Self {
        let server: String = blake3::hash(server.as_bytes()).to_hex()[..8].to_owned();
        let digest: String = part.hint_digest[..8].iter().map(|b| format!("{b:02x}")).collect();
        // A long name is cut; the digest tells tables apart all the same. Names are ASCII.
        let table = &table[..table.len().min(100)];
        let family = format!("{table}-{kind}-{server}-");
        let name = format!("{family}{digest}");
        Self { family, name, header: header(part), kind, part: *part }
    }

    /// Its name, without an ending: letters, digits, `_`, `.` and `-`, fit for a file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether an entry of any version may have this name, without an ending. Nobody else's file has one by chance: it says a
    /// part and has 24 digits of hashes.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        let table = |rest| {
            let rest = before(rest, |server| is_hex(server, 8))?;
            PartKind::ALL.iter().find_map(|kind| rest.strip_suffix(kind.as_str())?.strip_suffix('-'))
        };
        let Some(rest) = before(name, |digest| is_hex(digest, 16)) else { return false };
        // Earlier versions had an epoch there.
        let earlier = || before(rest, is_number).and_then(table);
        table(rest).or_else(earlier).is_some_and(|table| check_table_name(table).is_ok())
    }

    /// Whether `name`, with any ending, is of the same table's part with another content. A cache keeps few of them: a table
    /// may go back to one, but a server must not fill a disk by going through contents.
    #[must_use]
    pub fn is_other_content(&self, name: &str) -> bool {
        name.starts_with(&self.family) && !name.starts_with(&self.name) && !self.is_earlier_name(name)
    }

    /// Whether `name`, with any ending, is what earlier versions called this entry: with an epoch before the digest.
    #[must_use]
    pub fn is_earlier_name(&self, name: &str) -> bool {
        let digest = &self.name[self.family.len()..];
        let rest = name.strip_prefix(&self.family).and_then(|rest| rest.split_once('-'));
        rest.is_some_and(|(epoch, rest)| {
            !epoch.is_empty() && epoch.bytes().all(|b| b.is_ascii_digit()) && rest.starts_with(digest)
        })
    }

    /// What a whole entry starts with, and one that broke off.
    #[must_use]
    pub fn header(&self) -> &[u8; HEADER_BYTES] {
        &self.header
    }

    /// Bytes of a whole entry.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        HEADER_BYTES as u64 + self.part.hint_bytes()
    }

    /// How many bytes of the hint an entry of this length holds that broke off and starts like this: where its download
    /// goes on. Nothing where it is not of this hint and has to start again.
    #[must_use]
    pub fn resumes(&self, bytes: u64, start: &[u8]) -> Option<u64> {
        let ours = bytes <= self.bytes() && start == self.header;
        if ours { bytes.checked_sub(HEADER_BYTES as u64) } else { None }
    }

    /// Says whether an entry of this length that starts like this can be the hint, before the rest is read.
    ///
    /// # Errors
    /// What is wrong with it, for a log; it is to be removed.
    pub fn check_start(&self, bytes: u64, start: &[u8]) -> Result<(), String> {
        let want = self.bytes();
        if bytes != want {
            return Err(format!("it has {bytes} B where this hint makes {want}"));
        }
        if start != self.header {
            return Err("its header is another file's".into());
        }
        Ok(())
    }

    /// Believes what follows the header, if it is the hint. This reads all of it, once.
    ///
    /// # Errors
    /// What is wrong with it, for a log; it is to be removed.
    pub fn check(&self, hint: Hint) -> Result<Kept, String> {
        if digest(&hint) != self.part.hint_digest {
            return Err("its bytes are not what its digest says".into());
        }
        Ok(Kept { kind: self.kind, part: self.part, hint: Arc::new(hint) })
    }

    /// The hint in a whole entry.
    ///
    /// # Errors
    /// What is wrong with it, for a log; it is to be removed.
    pub fn read(&self, entry: &[u8]) -> Result<Kept, String> {
        let (start, rest) = entry.split_at(entry.len().min(HEADER_BYTES));
        self.check_start(entry.len() as u64, start)?;
        let mut hint = Hint::default();
        hint.push(rest);
        self.check(hint)
    }
}

/// What stands before the last `-` of a name, if what follows it is so.
pub(crate) fn before(name: &str, so: impl Fn(&str) -> bool) -> Option<&str> {
    name.rsplit_once('-').filter(|(_, last)| so(last)).map(|(rest, _)| rest)
}

/// So many digits of a hash.
pub(crate) fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// A number as it is printed.
pub(crate) fn is_number(text: &str) -> bool {
    text.parse().is_ok_and(|n: u64| n.to_string() == text)
}

fn header(part: &PartDescription) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
    header[16..48].copy_from_slice(&part.params.digest());
    header[48..80].copy_from_slice(&part.hint_digest);
    header[80..88].copy_from_slice(&part.hint_bytes().to_le_bytes());
    header
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use blindcore_lookup::{Geometry, Params, schemes};

    /// A part, and a hint for it.
    pub(crate) fn part() -> (Vec<u8>, PartDescription) {
        let geometry = Geometry { record_bytes: 1, groups: 1, columns: 1 };
        let params = Params::new(schemes::yardstick(), geometry).unwrap();
        let mut part = PartDescription { params, hint_digest: [0; 32], proofs: None, buckets: 1 };
        let hint: Vec<u8> = (0..part.hint_bytes()).map(|i| i as u8).collect();
        part.hint_digest = *blake3::hash(&hint).as_bytes();
        (hint, part)
    }

    fn entry(kind: PartKind, table: &str) -> (Vec<u8>, CacheEntry) {
        let (hint, part) = part();
        (hint, CacheEntry::new("host:1", table, kind, &part))
    }

    #[test]
    fn the_entry_of_version_1_reads_back() {
        let (hint, entry) = entry(PartKind::Records, "t");
        assert_eq!(entry.header()[..16], *b"BLNDHINT\x01\0\0\0\x60\0\0\0");
        assert!(entry.name().starts_with("t-records-"), "{}", entry.name());
        let whole = [&entry.header()[..], &hint].concat();
        let kept = entry.read(&whole).unwrap();
        assert_eq!((*kept.hint).as_ref(), hint);
    }

    #[test]
    fn foreign_and_damaged_entries_are_refused() {
        let (hint, entry) = entry(PartKind::Keys, &"n".repeat(255));
        assert!(entry.name().len() < 200);
        let whole = [&entry.header()[..], &hint].concat();
        let mut flipped = whole.clone();
        flipped[HEADER_BYTES + 5] ^= 1;
        let mut other = whole.clone();
        other[8] = 2;
        for bad in [&[][..], b"hello", &whole[..whole.len() - 1], &flipped, &other] {
            assert!(entry.read(bad).is_err());
        }
    }

    #[test]
    fn what_broke_off_goes_on_if_it_is_ours() {
        let (hint, entry) = entry(PartKind::Records, "t");
        let header = *entry.header();
        for (bytes, have) in [(96, Some(0)), (196, Some(100)), (95, None), (97 + hint.len() as u64, None)] {
            assert_eq!(entry.resumes(bytes, &header), have);
        }
        assert_eq!(entry.resumes(196, &[7; 96]), None);
        assert_eq!(entry.resumes(3, b"BLN"), None);
    }

    #[test]
    fn contents_have_names_whatever_the_epoch() {
        let (_, mut part) = part();
        let now = CacheEntry::new("host:1", "t", PartKind::Records, &part);
        let keys = CacheEntry::new("host:1", "t", PartKind::Keys, &part);
        part.hint_digest = [7; 32];
        let other = CacheEntry::new("host:1", "t", PartKind::Records, &part);
        assert!(now.is_other_content(&format!("{}.hint", other.name())));
        assert!(!now.is_other_content(&format!("{}.part", now.name())) && !now.is_other_content(keys.name()));
        let earlier = format!("{}12-{}.hint", now.family, &now.name[now.family.len()..]);
        assert!(now.is_earlier_name(&earlier) && !now.is_other_content(&earlier));
        assert!(other.is_other_content(&earlier) && !other.is_earlier_name(&earlier));
        assert!(!now.is_earlier_name(&format!("{}.hint", now.name())));
        for ours in [now.name(), keys.name(), other.name(), earlier.trim_end_matches(".hint")] {
            assert!(CacheEntry::is_name(ours), "{ours}");
            for not in [&ours[1..], &ours[..ours.len() - 1], &ours.to_uppercase(), &format!("{ours}-1")] {
                assert!(!CacheEntry::is_name(not), "{not}");
            }
        }
        for kind in PartKind::ALL {
            let long = CacheEntry::new("host:1", &"n-1.".repeat(60), kind, &part);
            assert!(CacheEntry::is_name(long.name()), "{}", long.name());
        }
    }
}
