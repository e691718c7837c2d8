//! The format of a database's binary files: a header of 4096 bytes, then a payload.
//!
//! | at | bytes | what                                                                 |
//! |----|-------|----------------------------------------------------------------------|
//! | 0  | 8     | magic `BLINDCOR`                                                     |
//! | 8  | 4     | version, 1                                                           |
//! | 12 | 4     | what it holds: 1 a shard, 2 a hint, 3 server state, 4 keyword seeds, |
//! |    |       | 5 changed rows, 6 checksums of tiles                                 |
//! | 16 | 32    | digest of the lookup parameters it was made for                      |
//! | 48 | 8     | epoch                                                                |
//! | 56 | 8     | bytes of payload                                                     |
//! | 64 | 32    | BLAKE3 of the payload                                                |
//! | 96 | 32    | BLAKE3 of the 96 bytes before                                        |
//!
//! Numbers are little-endian, the rest of the header is zero. The payload starts at a page, so that it can be
//! mapped and computed on where it lies. Files are made to last together, when what they belong to is published.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use blindcore_accel::SharedBytes;
use blindcore_files::header::{Field, HeaderError, Layout, Seal};

use crate::StoreError;
use crate::{direct, mapped};

/// Bytes of the header.
pub(crate) const HEADER: usize = 4096;
const LAYOUT: Layout = Layout {
    what: "a file of a blindcore database",
    magic: b"BLINDCOR",
    version_at: 8,
    version_bytes: 4,
    version: 1,
    bytes: HEADER,
};
const KIND: Field<u32> = Field::at(12);
const PARAMS_DIGEST: Field<[u8; 32]> = Field::at(16);
const EPOCH: Field<u64> = Field::at(48);
const PAYLOAD_BYTES: Field<u64> = Field::at(56);
const PAYLOAD_DIGEST: Field<[u8; 32]> = Field::at(64);
/// Bytes that the header's own digest is of, which follows them.
const SEALED: usize = 96;
const DIGEST: Field<[u8; 32]> = Field::at(SEALED);

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Shard = 1,
    Hint = 2,
    State = 3,
    Seeds = 4,
    Log = 5,
    Sums = 6,
}

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: u32,
    pub(crate) params_digest: [u8; 32],
    pub(crate) epoch: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) payload_digest: [u8; 32],
}

impl Header {
    fn encode(&self) -> Vec<u8> {
        let mut header = LAYOUT.start();
        KIND.put(&mut header, self.kind);
        PARAMS_DIGEST.put(&mut header, self.params_digest);
        EPOCH.put(&mut header, self.epoch);
        PAYLOAD_BYTES.put(&mut header, self.payload_bytes);
        PAYLOAD_DIGEST.put(&mut header, self.payload_digest);
        let digest = Seal::Plain.digest(&header[..SEALED]);
        DIGEST.put(&mut header, digest);
        header
    }

    /// Reads a header, or says what is wrong with it.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let header = LAYOUT.check(bytes).map_err(|error| match error {
            HeaderError::Magic { .. } => "it is not a blindcore file".into(),
            HeaderError::Short { .. } => "it is shorter than its header".into(),
            HeaderError::Version { .. } => error.to_string(),
        })?;
        let zeros = &header[SEALED + blindcore_files::header::DIGEST..];
        if DIGEST.get(header) != Seal::Plain.digest(&header[..SEALED]) || zeros.iter().any(|b| *b != 0) {
            return Err("its header is damaged".into());
        }
        Ok(Self {
            kind: KIND.get(header),
            params_digest: PARAMS_DIGEST.get(header),
            epoch: EPOCH.get(header),
            payload_bytes: PAYLOAD_BYTES.get(header),
            payload_digest: PAYLOAD_DIGEST.get(header),
        })
    }
}

/// Writes a file's payload in order.
pub(crate) struct Writer {
    path: PathBuf,
    file: direct::Writer,
    hasher: blake3::Hasher,
    header: Header,
}

impl Writer {
    pub(crate) fn create(
        path: PathBuf,
        kind: Kind,
        params_digest: [u8; 32],
        epoch: u64,
    ) -> Result<Self, StoreError> {
        let payload_digest = [0; 32];
        let header = Header { kind: kind as u32, params_digest, epoch, payload_bytes: 0, payload_digest };
        let write = || {
            let mut file = direct::Writer::new(File::create_new(&path)?)?;
            file.write_all(&[0; HEADER])?;
            Ok(file)
        };
        let file = write().map_err(|e| StoreError::io(&path, "written", e))?;
        Ok(Self { path, file, hasher: blake3::Hasher::new(), header })
    }

    pub(crate) fn payload_bytes(&self) -> u64 {
        self.header.payload_bytes
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.hasher.update(bytes);
        self.header.payload_bytes += bytes.len() as u64;
        self.file.write_all(bytes).map_err(|e| StoreError::io(&self.path, "written", e))
    }

    /// Writes the header. Returns the file's path and the payload's digest. It lasts when it is published.
    pub(crate) fn finish(self) -> Result<(PathBuf, Header), StoreError> {
        let Self { path, file, hasher, mut header, .. } = self;
        header.payload_digest = *hasher.finalize().as_bytes();
        let write = || {
            let mut file = file.into_file()?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&header.encode())
        };
        write().map_err(|e| StoreError::io(&path, "written", e))?;
        Ok((path, header))
    }
}

/// Makes a file whose payload is written through a mapping by `fill`.
pub(crate) fn write_mapped<E: From<StoreError>>(
    path: &Path,
    mut header: Header,
    fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
) -> Result<Header, E> {
    let io = |e| StoreError::io(path, "written", e);
    let len = HEADER + usize::try_from(header.payload_bytes).expect("addressable");
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true).open(path).map_err(io)?;
    mapped::reserve(&file, len as u64).map_err(io)?;
    let mut map = mapped::map_mut(&file, len).map_err(io)?;
    fill(&mut map[HEADER..])?;
    header.payload_digest = *blake3::hash(&map[HEADER..]).as_bytes();
    map[..HEADER].copy_from_slice(&header.encode());
    Ok(header)
}

/// Makes a file for a payload of this many bytes, which are zeros, and maps them. [`seal`] ends it.
pub(crate) fn create_mapped(path: &Path, payload_bytes: u64) -> Result<mapped::Payload, StoreError> {
    let io = |e| StoreError::io(path, "written", e);
    let len = HEADER + usize::try_from(payload_bytes).expect("addressable");
    let file = File::options().read(true).write(true).create_new(true).open(path).map_err(io)?;
    mapped::reserve(&file, len as u64).map_err(io)?;
    Ok(mapped::Payload::new(mapped::map_mut(&file, len).map_err(io)?, HEADER))
}

/// Ends a file whose payload was written through a mapping that is gone.
pub(crate) fn seal(path: &Path, mut header: Header) -> Result<Header, StoreError> {
    let io = |e| StoreError::io(path, "written", e);
    let mut file = File::options().read(true).write(true).open(path).map_err(io)?;
    file.seek(SeekFrom::Start(HEADER as u64)).map_err(io)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(&mut file).map_err(io)?;
    header.payload_digest = *hasher.finalize().as_bytes();
    file.seek(SeekFrom::Start(0)).map_err(io)?;
    file.write_all(&header.encode()).map_err(io)?;
    Ok(header)
}

/// Opens a file, checks everything but its payload's digest, and maps the payload.
pub(crate) fn open(path: &Path, expected: &Header) -> Result<SharedBytes, StoreError> {
    let file = open_file(path, expected)?;
    mapped::map(&file, HEADER).map_err(|e| StoreError::io(path, "read", e))
}

/// Opens a file and checks everything but its payload's digest.
pub(crate) fn open_file(path: &Path, expected: &Header) -> Result<File, StoreError> {
    let io = |e| StoreError::io(path, "read", e);
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        return Err(StoreError::Damaged { path: path.into(), why: "it is not an ordinary file".into() });
    }
    let mut file = File::open(path).map_err(io)?;
    let len = file.metadata().map_err(io)?.len();
    let mut head = Vec::with_capacity(HEADER);
    (&mut file).take(HEADER as u64).read_to_end(&mut head).map_err(io)?;
    let damaged = |why: String| StoreError::Damaged { path: path.into(), why };
    let header = Header::decode(&head).map_err(damaged)?;
    if header != *expected {
        return Err(damaged("it belongs to another database or epoch than its manifest says".into()));
    }
    let want = HEADER as u64 + header.payload_bytes;
    if len != want {
        return Err(damaged(format!("it has {len} bytes where {want} were written")));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(payload: &[u8]) -> Header {
        Header {
            kind: Kind::Shard as u32,
            params_digest: [7; 32],
            epoch: 3,
            payload_bytes: payload.len() as u64,
            payload_digest: *blake3::hash(payload).as_bytes(),
        }
    }

    #[test]
    fn what_is_written_is_mapped_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let mut writer = Writer::create(path.clone(), Kind::Shard, [7; 32], 3).unwrap();
        writer.write(b"hello ").unwrap();
        writer.write(b"world").unwrap();
        assert_eq!(writer.finish().unwrap(), (path.clone(), header(b"hello world")));
        assert_eq!((*open(&path, &header(b"hello world")).unwrap()).as_ref(), b"hello world");

        let other = dir.path().join("b");
        let blank = Header { payload_digest: [0; 32], ..header(b"hello world") };
        let made = write_mapped::<StoreError>(&other, blank, |p| {
            p.copy_from_slice(b"hello world");
            Ok(())
        });
        assert_eq!(made.unwrap(), header(b"hello world"));
        assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(&other).unwrap());
    }

    #[test]
    fn foreign_cut_and_damaged_files_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let mut writer = Writer::create(path.clone(), Kind::Shard, [7; 32], 3).unwrap();
        writer.write(&[1; 100]).unwrap();
        writer.finish().unwrap();
        let good = std::fs::read(&path).unwrap();
        let refuse = |bytes: &[u8], expected: &Header, words: &str| {
            std::fs::write(&path, bytes).unwrap();
            let error = open(&path, expected).err().expect("refused").to_string();
            assert!(error.contains(words) && error.contains(path.to_str().unwrap()), "{error}");
        };
        let expected = header(&[1; 100]);
        refuse(&good[..HEADER + 99], &expected, "4195 bytes where 4196");
        refuse(&good[..100], &expected, "shorter than its header");
        refuse(b"", &expected, "shorter than its header");
        refuse(&[b"PAR1".as_slice(), &good[4..]].concat(), &expected, "not a blindcore file");
        let mut version = good.clone();
        version[8] = 9;
        refuse(&version, &expected, "version is 9");
        for at in [20, 60, 70, 100, 4000] {
            let mut flipped = good.clone();
            flipped[at] ^= 1;
            refuse(&flipped, &expected, "header is damaged");
        }
        refuse(&good, &Header { epoch: 4, ..expected }, "another database or epoch");
    }

    /// Version 1 as it was first written stays readable.
    #[test]
    fn golden_header() {
        let bytes = header(b"hello world").encode();
        let hex: String = bytes[..128].iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, include_str!("../testdata/header-v1.hex").trim());
        assert_eq!(Header::decode(&bytes).unwrap(), header(b"hello world"));
    }
}
