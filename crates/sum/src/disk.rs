//! Keys and ciphertexts on the disk: read whole and checked, written whole or not at all.
//!
//! A name that ends in `.json` is a key of python-paillier, one that ends in `.jsonl` its ciphertexts, one a line; any
//! other is a file of this crate (`keys`, `file`).

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use blindcore_files::new_file::NewFileError;
use blindcore_files::secret::{self, MAX_KEY_BYTES, SUM_SECRET_KEY};
use blindcore_files::{Access, Existing, NewFile};

use crate::ciphertexts::Ciphertexts;
use crate::evaluate::Evaluator;
use crate::keys::{self, Mode, PublicKey, SecretKey};
use crate::{encoding, file, phe};

/// Why keys or ciphertexts can't be read or written. Each is one line that names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// The system refuses.
    #[error("{} can't be read: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A file that is longer than any key.
    #[error("{} is over the {MAX_KEY_BYTES} bytes that a key has; name a key", path.display())]
    Long {
        /// The file.
        path: PathBuf,
    },
    /// A key of the other kind than its name's ending says.
    #[error("{} {}", path.display(), if *json {
        "holds JSON, as a key of python-paillier does; rename it so that it ends in .json"
    } else {
        "is a key of blindcore, and .json is for python-paillier's; give it another ending, such as .key"
    })]
    Ending {
        /// The file.
        path: PathBuf,
        /// Whether it holds JSON.
        json: bool,
    },
    /// A public key where a secret one is asked for.
    #[error(
        "{} is a public key where a secret key is asked for; name the one that `blindcore sum keygen` made", path.display()
    )]
    Public {
        /// The file.
        path: PathBuf,
    },
    /// No key, or an unsound one.
    #[error("{}: {error}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        error: keys::KeyError,
    },
    /// No key or ciphertexts of python-paillier.
    #[error("{}: {error}", path.display())]
    Phe {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        error: phe::PheError,
    },
    /// No file of ciphertexts.
    #[error("{}: {error}", path.display())]
    Ciphertexts {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        error: file::FileError,
    },
    /// Ciphertexts that can't be used.
    #[error("{}: {error}", path.display())]
    Encoding {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        error: encoding::EncodingError,
    },
    /// The file can't be made.
    #[error(transparent)]
    New(#[from] NewFileError),
}

/// Whether a file's name ends so, in any case.
#[must_use]
pub fn ends_in(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending))
}

fn io_of(path: &Path) -> impl Fn(io::Error) -> DiskError + '_ {
    |error| DiskError::Io { path: path.to_owned(), error }
}

fn phe_of(path: &Path) -> impl Fn(phe::PheError) -> DiskError + '_ {
    |error| DiskError::Phe { path: path.to_owned(), error }
}

fn file_of(path: &Path) -> impl Fn(file::FileError) -> DiskError + '_ {
    |error| DiskError::Ciphertexts { path: path.to_owned(), error }
}

/// The system's errors where ciphertexts are written are those of a new file, with what to do about them.
fn unwritten(error: DiskError) -> DiskError {
    match error {
        DiskError::Ciphertexts { path, error: file::FileError::Io(error) }
        | DiskError::Phe { path, error: phe::PheError::Io(error) } => NewFileError::Io { path, error }.into(),
        other => other,
    }
}

fn key_of(path: &Path) -> impl Fn(keys::KeyError) -> DiskError + '_ {
    |error| DiskError::Key { path: path.to_owned(), error }
}

fn key_bytes(path: &Path) -> Result<zeroize::Zeroizing<Vec<u8>>, DiskError> {
    let bytes = secret::read(path).map_err(io_of(path))?;
    if bytes.len() as u64 > MAX_KEY_BYTES {
        return Err(DiskError::Long { path: path.to_owned() });
    }
    let json = secret::json_document(&bytes).trim_ascii_start().starts_with(b"{");
    if json != ends_in(path, "json") && (json || bytes.starts_with(b"bcsum")) {
        return Err(DiskError::Ending { path: path.to_owned(), json });
    }
    Ok(bytes)
}

fn parse_secret(path: &Path, bytes: &[u8]) -> Result<SecretKey, DiskError> {
    let (key, public) = if ends_in(path, "json") {
        (phe::secret_key(bytes).map_err(phe_of(path)), phe::public_key(bytes).is_ok())
    } else {
        (SecretKey::from_bytes(bytes).map_err(key_of(path)), PublicKey::from_bytes(bytes).is_ok())
    };
    key.map_err(|error| if public { DiskError::Public { path: path.to_owned() } } else { error })
}

/// Reads a secret key.
///
/// # Errors
/// The file can't be read, or holds no sound secret key.
pub fn read_secret_key(path: &Path) -> Result<SecretKey, DiskError> {
    parse_secret(path, &key_bytes(path)?)
}

/// Reads a public key; a secret one has its public one in it.
///
/// # Errors
/// The file can't be read, or holds no sound key.
pub fn read_public_key(path: &Path) -> Result<PublicKey, DiskError> {
    read_key(path).map(|(key, _)| key)
}

/// Reads a key of either kind: its public key, and whether it is a secret one.
///
/// # Errors
/// The file can't be read, or holds no sound key.
pub fn read_key(path: &Path) -> Result<(PublicKey, bool), DiskError> {
    let bytes = key_bytes(path)?;
    if ends_in(path, "json") {
        return match phe::public_key(&bytes) {
            // A private key of python-paillier has a public one in it.
            Ok(key) => Ok((key, phe::secret_key(&bytes).is_ok())),
            // Say what is wrong with it as what it is more likely to be.
            Err(error) => match phe::secret_key(&bytes) {
                Ok(key) => Ok((key.public().clone(), true)),
                Err(_) => Err(phe_of(path)(error)),
            },
        };
    }
    if bytes.starts_with(SUM_SECRET_KEY) {
        return Ok((parse_secret(path, &bytes)?.public().clone(), true));
    }
    PublicKey::from_bytes(&bytes).map(|key| (key, false)).map_err(key_of(path))
}

/// Writes a secret key to a file for its owner alone, made by [`NewFile::create`] with [`Access::Owner`] before the key
/// was.
///
/// # Errors
/// The name ends in `.json` and python-paillier has no such keys, the file is there, or the system refuses.
pub fn write_secret_key(
    mut file: NewFile,
    path: &Path,
    key: &SecretKey,
    existing: Existing,
) -> Result<(), DiskError> {
    if ends_in(path, "json") {
        file.write_all(phe::write_secret_key(key).map_err(phe_of(path))?.as_bytes())
    } else {
        file.write_all(&key.to_bytes())
    }
    .map_err(|error| NewFileError::Io { path: path.to_owned(), error })?;
    file.finish(existing)?;
    Ok(())
}

/// Whether a secret key of this mode can be written to a file of this name.
///
/// # Errors
/// The name's ending says python-paillier, whose files would hold another key.
pub fn check_secret_mode(path: &Path, mode: Mode) -> Result<(), DiskError> {
    if ends_in(path, "json") { phe::check_secret_mode(mode).map_err(phe_of(path)) } else { Ok(()) }
}

/// Writes a public key, and returns the key that the file holds: python-paillier's has n alone.
///
/// # Errors
/// As [`write_secret_key`]; or a secret key is there.
pub fn write_public_key(path: &Path, key: &PublicKey, existing: Existing) -> Result<PublicKey, DiskError> {
    let (bytes, held) = if ends_in(path, "json") {
        let json = phe::write_public_key(key).map_err(phe_of(path))?.into_bytes();
        let held = phe::public_key(&json).map_err(phe_of(path))?;
        (json, held)
    } else {
        (key.to_bytes(), key.clone())
    };
    blindcore_files::new_file::write(path, Access::Everyone, existing, &bytes)?;
    Ok(held)
}

/// Opens a file of ciphertexts, its header checked, to be read block by block.
///
/// # Errors
/// The file can't be read, is no such file, or is not as long as its header says.
pub fn open(path: &Path) -> Result<file::Reader<BufReader<File>>, DiskError> {
    let input = File::open(path).map_err(io_of(path))?;
    let metadata = input.metadata().map_err(io_of(path))?;
    let length = metadata.is_file().then_some(metadata.len());
    file::Reader::new(BufReader::with_capacity(1 << 16, input), length).map_err(file_of(path))
}

/// Reads the ciphertexts of python-paillier.
///
/// # Errors
/// The file can't be read, holds no ciphertexts, or a line is not one under this key.
pub fn read_phe(path: &Path, key: &PublicKey) -> Result<phe::PheCiphertexts, DiskError> {
    let input = File::open(path).map_err(io_of(path))?;
    let read = phe::PheCiphertexts::read(key, BufReader::new(input)).map_err(phe_of(path))?;
    if read.exponents().is_empty() { Err(phe_of(path)(phe::PheError::Empty)) } else { Ok(read) }
}

/// Reads ciphertexts, every one checked. python-paillier's say nothing of magnitudes, so `magnitude` does.
///
/// # Errors
/// The file can't be read, or does not hold ciphertexts under the evaluator's key.
pub fn read(path: &Path, evaluator: &Evaluator, magnitude: f64) -> Result<Ciphertexts, DiskError> {
    if ends_in(path, "jsonl") {
        return read_phe(path, evaluator.key())?.align(evaluator, magnitude).map_err(phe_of(path));
    }
    open(path)?.read_all(evaluator.encryptor()).map_err(file_of(path))
}

/// Writes ciphertexts; returns how many bytes.
///
/// # Errors
/// They are packed, which python-paillier does not know, a secret key is there or what is to be kept, or the system refuses.
pub fn write(
    path: &Path,
    ciphertexts: &Ciphertexts,
    evaluator: &Evaluator,
    existing: Existing,
) -> Result<u64, DiskError> {
    let mut out = NewFile::create(path, Access::Everyone)?;
    if ends_in(path, "jsonl") {
        let encoding = |error| DiskError::Encoding { path: path.to_owned(), error };
        let numbers = ciphertexts.numbers(evaluator.encryptor()).map_err(encoding)?;
        let written = phe::write_ciphertexts(&mut out, evaluator.key(), &numbers, ciphertexts.form());
        written.map_err(phe_of(path)).map_err(unwritten)?;
    } else {
        out =
            file::write(out, ciphertexts, evaluator.encryptor()).map_err(file_of(path)).map_err(unwritten)?;
    }
    Ok(out.finish(existing)?)
}

/// What a file holds, as far as it can be told without a key.
#[derive(Debug)]
pub enum Contents {
    /// A public key.
    PublicKey(PublicKey),
    /// The public key of a secret one.
    SecretKey(PublicKey),
    /// Ciphertexts: their header.
    Ciphertexts(file::Header),
}

/// Looks at a file that holds a key or ciphertexts.
///
/// # Errors
/// The file can't be read, or holds neither.
pub fn inspect(path: &Path) -> Result<Contents, DiskError> {
    let mut start = Vec::new();
    let input = File::open(path).map_err(io_of(path))?;
    input.take(8).read_to_end(&mut start).map_err(io_of(path))?;
    if ends_in(path, "json") || start.starts_with(b"bcsum") {
        let (key, secret) = read_key(path)?;
        return Ok(if secret { Contents::SecretKey(key) } else { Contents::PublicKey(key) });
    }
    Ok(Contents::Ciphertexts(open(path)?.header().clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_refuses_to_write_is_said_with_a_remedy() {
        let (path, full) = (Path::new("x"), || io::Error::from(io::ErrorKind::StorageFull));
        for error in [file_of(path)(full().into()), phe_of(path)(full().into())] {
            let said = unwritten(error).to_string();
            assert!(
                said.starts_with("x can't be written: ") && said.contains("; free space there"),
                "{said}"
            );
        }
    }
}
