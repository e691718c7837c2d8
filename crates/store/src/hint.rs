//! A hint in its file, read piece by piece on request.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use memmap2::MmapMut;

use crate::section::{self, HEADER, Header};
use crate::tile_checksums::{self, TILE, tile_sums};
use crate::{StoreError, direct};

/// A hint on its disk. Once [`HintFile::check`] has read all of it, every piece of it is compared with what was read then: who
/// changes the file in place is noticed, and who cuts it harms nothing else.
#[derive(Debug)]
pub struct HintFile {
    path: PathBuf,
    header: Header,
    file: File,
    /// The same file for the first check: whether reads go past the cache is a matter of the file that was opened, and another
    /// may have its name by then.
    unchecked: Mutex<Option<File>>,
    /// Checksums of its tiles once it was read, or none where it was damaged.
    sums: OnceLock<Option<Vec<u8>>>,
    fails: AtomicBool,
}

impl HintFile {
    pub(crate) fn open(path: PathBuf, header: Header) -> Result<Self, StoreError> {
        let file = section::open_file(&path, &header)?;
        let unchecked = Mutex::new(Some(section::open_file(&path, &header)?));
        Ok(Self { path, header, file, unchecked, sums: OnceLock::new(), fails: AtomicBool::new(false) })
    }

    /// How long it is.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.header.payload_bytes
    }

    /// Whether a check or a read failed.
    #[must_use]
    pub fn fails(&self) -> bool {
        self.fails.load(Ordering::Relaxed)
    }

    /// Reads all of it, past the page cache where that works, and compares it with its checksum. No piece of a damaged one
    /// is read afterwards.
    ///
    /// # Errors
    /// It can't be read, or is damaged.
    pub fn check(&self) -> Result<(), StoreError> {
        let read = self.noted(self.read_all())?;
        let right = read.is_some();
        let _ = self.sums.set(read);
        if right { Ok(()) } else { self.noted(Err(StoreError::unfit(&self.path))) }
    }

    fn read_all(&self) -> Result<Option<Vec<u8>>, StoreError> {
        const STEP: usize = 1 << 20;
        let io = |e| StoreError::io(&self.path, "read", e);
        let mut file = match self.unchecked.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(file) => file,
            None => section::open_file(&self.path, &self.header)?,
        };
        file.seek(SeekFrom::Start(HEADER as u64)).map_err(io)?;
        let mut buffer = MmapMut::map_anon(STEP).map_err(io)?;
        let (mut hasher, mut sums) = (blake3::Hasher::new(), Vec::new());
        let mut left = self.bytes();
        while left > 0 {
            let piece = &mut buffer[..left.min(STEP as u64) as usize];
            direct::fill(&mut file, piece, &mut |_| ()).map_err(io)?;
            hasher.update(piece);
            sums.extend(tile_sums(piece));
            left -= piece.len() as u64;
        }
        Ok(Some(sums).filter(|_| hasher.finalize() == self.header.payload_digest))
    }

    /// Reads what it has from `offset` on, as much as there is room for.
    ///
    /// # Errors
    /// It can't be read, there is less of it, or it is no longer what [`HintFile::check`] read.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), StoreError> {
        self.noted(self.read_checked(offset, into))
    }

    fn read_checked(&self, offset: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let end = offset.checked_add(into.len() as u64).filter(|end| *end <= self.bytes());
        let Some(end) = end else { return Err(self.io(io::ErrorKind::UnexpectedEof.into())) };
        let sums = match self.sums.get() {
            None => return self.read(offset, into),
            Some(None) => return Err(StoreError::unfit(&self.path)),
            Some(Some(sums)) => sums,
        };
        // Whole tiles, of which the last may be shorter.
        let first = offset / TILE as u64 * TILE as u64;
        let last = end.next_multiple_of(TILE as u64).min(self.bytes());
        let mut tiles = vec![0; (last - first) as usize];
        self.read(first, &mut tiles)?;
        if !tile_checksums::fit(sums, (first / TILE as u64) as usize, &tiles) {
            return Err(StoreError::unfit(&self.path));
        }
        let start = (offset - first) as usize;
        into.copy_from_slice(&tiles[start..start + into.len()]);
        Ok(())
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let mut done = 0;
        while done < into.len() {
            match direct::read_at(&self.file, &mut into[done..], HEADER as u64 + offset + done as u64) {
                Ok(0) => return Err(self.io(io::ErrorKind::UnexpectedEof.into())),
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.io(e)),
            }
        }
        Ok(())
    }

    fn noted<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if result.is_err() {
            self.fails.store(true, Ordering::Relaxed);
        }
        result
    }

    fn io(&self, error: io::Error) -> StoreError {
        StoreError::io(&self.path, "read", error)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::section::{Kind, Writer};

    #[test]
    fn pieces_are_those_of_the_file_until_it_is_changed() {
        let dir = tempfile::tempdir().unwrap();
        let noise: Vec<u8> = (0..3 * TILE + 77).map(|i| (i * i / 251) as u8).collect();
        let path = dir.path().join("a.hint");
        let mut writer = Writer::create(path.clone(), Kind::Hint, [7; 32], 3).unwrap();
        writer.write(&noise).unwrap();
        let (_, header) = writer.finish().unwrap();
        let good = std::fs::read(&path).unwrap();
        // Into the same file, as a copy over it does.
        let write = |bytes: &[u8]| {
            let mut file = File::options().write(true).truncate(true).open(&path).unwrap();
            file.write_all(bytes).unwrap();
        };
        let read = |hint: &HintFile, start: usize, len: usize| {
            let mut piece = vec![0; len];
            hint.read_at(start as u64, &mut piece).map(|()| piece)
        };
        for checked in [false, true] {
            let open = || HintFile::open(path.clone(), header.clone()).unwrap();
            let hint = open();
            if checked {
                hint.check().unwrap();
            }
            for (start, len) in [(0, noise.len()), (0, 1), (TILE - 1, 2), (3 * TILE, 77), (noise.len(), 0)] {
                assert_eq!(read(&hint, start, len).unwrap(), noise[start..start + len]);
            }
            assert!(!hint.fails());
            assert!(read(&hint, 3 * TILE, 78).is_err() && hint.fails());

            for at in [HEADER, HEADER + TILE, good.len() - 1] {
                let mut bad = good.clone();
                bad[at] ^= 1;
                write(&bad);
                let hint = open();
                let error = hint.check().unwrap_err().to_string();
                assert!(hint.fails() && error.contains("a.hint") && error.contains("checksum"), "{error}");
                assert!(read(&hint, 0, 1).is_err());
                write(&good);
                let hint = open();
                if checked {
                    hint.check().unwrap();
                }
                write(&bad);
                assert_eq!(read(&hint, at - HEADER, 1).is_err(), checked);
                assert_eq!(hint.fails(), checked);
                write(&good[..at]);
                assert!(read(&hint, 0, noise.len()).is_err() && hint.fails());
                write(&good);
            }
        }
    }
}
