//! The headers of binary formats: magic, version, fields at fixed places, perhaps a digest of all before it.
//!
//! Formats were made at different times and differ in where their fields lie. A [`Layout`] and some [`Field`]s say so
//! as data; one reader and one writer serve all, except a client's hint and its keys, which the protocol crate reads without files.
//! Numbers are little-endian.
//!
//! | format                       | magic              | version at | header's bytes | digest                        |
//! |------------------------------|--------------------|------------|----------------|-------------------------------|
//! | a database's file            | `BLINDCOR`         | 8, u32     | 4096           | at 96, then zeros             |
//! | a client's hint              | `BLNDHINT`         | 8, u32     | 96             | of the payload alone          |
//! | a client's keys              | `BLNDKEYS`         | 8, u32     | 160            | of the fixed part and a secret |
//! | keys on a server             | `BLNDREGK`         | 8, u32     | 128            | its name, of the payload      |
//! | ciphertexts                  | `BLNDCIPH`         | 8, u32     | 88 and a shape | at its end, in a context      |
//! | a Paillier key               | `bcsumpub`, `bcsumsec` | 8, u16 | 16             | at the end of the file        |
//! | transfers' greeting          | `bcot`             | 4, u8      | 24             | none: a message               |
//! | a proxy transfer             | `bcpo`             | 4, u8      | 26             | none: a message               |
//! | a session's hello            | `blindcore garble` | 16, u16    | 198            | none: a message               |
//! | a database's manifest        | JSON: `"magic": "blindcore-db"`, `"version"`, `"checksum"` |||               |

use std::marker::PhantomData;

/// Bytes of a digest.
pub const DIGEST: usize = 32;

/// Why bytes don't start with a header of a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// They start otherwise.
    #[error("it starts with \"{}\" and not with \"{}\": it is not {what}", got.escape_ascii(), want.escape_ascii())]
    Magic {
        /// What they should be.
        what: &'static str,
        /// How they start: as many bytes as the magic has, zeros where there are fewer.
        got: Vec<u8>,
        /// How they should.
        want: &'static [u8],
    },
    /// They are of a version that is not known.
    #[error("its version is {got}, and this blindcore reads version {want}")]
    Version {
        /// Their version.
        got: u32,
        /// The version that is read.
        want: u32,
    },
    /// They end within the header.
    #[error("it is shorter than its header: {got} of {want} bytes")]
    Short {
        /// How many bytes there are.
        got: usize,
        /// How many the header has.
        want: usize,
    },
}

/// How the header of a format starts, and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// What has such a header, with its article: `a file of ciphertexts`.
    pub what: &'static str,
    /// The first bytes.
    pub magic: &'static [u8],
    /// Where the version stands.
    pub version_at: usize,
    /// Bytes of the version: 1, 2 or 4.
    pub version_bytes: usize,
    /// The version that is read and written.
    pub version: u32,
    /// Bytes of the header.
    pub bytes: usize,
}

impl Layout {
    /// A header with magic and version, zeros elsewhere.
    #[must_use]
    pub fn start(&self) -> Vec<u8> {
        let mut header = vec![0; self.bytes];
        header[..self.magic.len()].copy_from_slice(self.magic);
        let version = &mut header[self.version_at..self.version_at + self.version_bytes];
        version.copy_from_slice(&self.version.to_le_bytes()[..self.version_bytes]);
        header
    }

    /// Whether bytes start with the magic.
    #[must_use]
    pub fn is_start_of(&self, bytes: &[u8]) -> bool {
        bytes.starts_with(self.magic)
    }

    /// The header that bytes start with, its magic and version checked.
    ///
    /// # Errors
    /// They start otherwise, are of another version, or end within the header. That is what is looked for, in this
    /// order.
    pub fn check<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], HeaderError> {
        let short = HeaderError::Short { got: bytes.len(), want: self.bytes };
        if !self.is_start_of(bytes) {
            if self.magic.starts_with(bytes) {
                return Err(short);
            }
            let mut got = bytes[..bytes.len().min(self.magic.len())].to_vec();
            got.resize(self.magic.len(), 0);
            return Err(HeaderError::Magic { what: self.what, got, want: self.magic });
        }
        if let Some(version) = bytes.get(self.version_at..self.version_at + self.version_bytes) {
            let got = version.iter().rev().fold(0, |n, byte| n << 8 | u32::from(*byte));
            if got != self.version {
                return Err(HeaderError::Version { got, want: self.version });
            }
        }
        bytes.get(..self.bytes).ok_or(short)
    }
}

/// A field of a header, at a fixed place.
#[derive(Debug)]
pub struct Field<T> {
    at: usize,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Field<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Field<T> {}

impl<T: Plain> Field<T> {
    /// The field that starts at byte `at`.
    #[must_use]
    pub const fn at(at: usize) -> Self {
        Self { at, value: PhantomData }
    }

    /// Its value.
    ///
    /// # Panics
    /// The header ends before it: [`Layout::check`] comes first.
    pub fn get(self, header: &[u8]) -> T {
        T::read(&header[self.at..self.at + T::BYTES])
    }

    /// Sets it.
    ///
    /// # Panics
    /// The header ends before it.
    pub fn put(self, header: &mut [u8], value: T) {
        value.write(&mut header[self.at..self.at + T::BYTES]);
    }
}

/// What a field holds: a little-endian number, or bytes.
pub trait Plain: sealed::Sealed {
    /// Bytes of it.
    const BYTES: usize;
    /// From its bytes.
    fn read(bytes: &[u8]) -> Self;
    /// To its bytes.
    fn write(self, bytes: &mut [u8]);
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl sealed::Sealed for $number {}
        impl Plain for $number {
            const BYTES: usize = size_of::<$number>();
            fn read(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("as many bytes as it has"))
            }
            fn write(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, i32);

impl<const N: usize> sealed::Sealed for [u8; N] {}
impl<const N: usize> Plain for [u8; N] {
    const BYTES: usize = N;
    fn read(bytes: &[u8]) -> Self {
        bytes.try_into().expect("as many bytes as it has")
    }
    fn write(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self);
    }
}

/// How a digest of what stands before it is made: BLAKE3, or BLAKE3 deriving a key in a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// BLAKE3.
    Plain,
    /// BLAKE3 in this context.
    In(&'static str),
}

impl Seal {
    /// The digest of bytes.
    #[must_use]
    pub fn digest(self, bytes: &[u8]) -> [u8; DIGEST] {
        match self {
            Seal::Plain => *blake3::hash(bytes).as_bytes(),
            Seal::In(context) => *blake3::Hasher::new_derive_key(context).update(bytes).finalize().as_bytes(),
        }
    }

    /// Appends the digest of all that is there.
    pub fn close(self, bytes: &mut Vec<u8>) {
        let digest = self.digest(bytes);
        bytes.extend_from_slice(&digest);
    }

    /// What stands before the digest at the end of bytes; nothing where the digest is not its.
    #[must_use]
    pub fn open(self, bytes: &[u8]) -> Option<&[u8]> {
        let (body, digest) = bytes.split_last_chunk::<DIGEST>()?;
        (self.digest(body) == *digest).then_some(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout =
        Layout { what: "a test", magic: b"test", version_at: 4, version_bytes: 2, version: 3, bytes: 12 };

    #[test]
    fn a_header_is_read_as_it_is_written_or_refused() {
        let mut header = LAYOUT.start();
        const NUMBER: Field<u32> = Field::at(6);
        const BYTES: Field<[u8; 2]> = Field::at(10);
        NUMBER.put(&mut header, 0x0102_0304);
        BYTES.put(&mut header, [9, 8]);
        assert_eq!(header, b"test\x03\0\x04\x03\x02\x01\x09\x08");
        let longer = [&header[..], b"more"].concat();
        let read = LAYOUT.check(&longer).unwrap();
        assert_eq!((read.len(), NUMBER.get(read), BYTES.get(read)), (12, 0x0102_0304, [9, 8]));
        assert_eq!(LAYOUT.check(b"te"), Err(HeaderError::Short { got: 2, want: 12 }));
        assert_eq!(LAYOUT.check(&header[..11]), Err(HeaderError::Short { got: 11, want: 12 }));
        assert_eq!(LAYOUT.check(b"test\x04\0"), Err(HeaderError::Version { got: 4, want: 3 }));
        let said = LAYOUT.check(b"tex").unwrap_err().to_string();
        assert!(
            said.contains(r#"it starts with "tex\x00" and not with "test""#)
                && said.contains("it is not a test"),
            "{said}"
        );
    }

    #[test]
    fn a_seal_opens_what_it_closed() {
        for seal in [Seal::Plain, Seal::In("blindcore test 2026")] {
            let mut bytes = b"body".to_vec();
            seal.close(&mut bytes);
            assert_eq!(seal.open(&bytes), Some(&b"body"[..]));
            bytes[0] ^= 1;
            assert_eq!(seal.open(&bytes), None);
            assert_eq!(seal.open(b"short"), None);
        }
    }
}
