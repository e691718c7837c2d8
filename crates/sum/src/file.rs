//! The file of ciphertexts. All numbers are little-endian.
//!
//! | at       | bytes  | what                                                                             |
//! |----------|--------|----------------------------------------------------------------------------------|
//! | 0        | 8      | magic `BLNDCIPH`                                                                 |
//! | 8        | 4      | version, 1                                                                       |
//! | 12       | 4      | A: axes of the shape, 1 to 8                                                     |
//! | 16       | 32     | key id                                                                           |
//! | 48       | 4      | bits of the key's n                                                              |
//! | 52       | 4      | exponent, signed                                                                 |
//! | 56       | 8 + 4  | bound on magnitudes: top, and shift (top * 2^shift)                              |
//! | 68       | 4 + 4  | bits of a slot, and slots; zeros where numbers are not packed                    |
//! | 76       | 4      | decimals after the point, up to 4096; zero in files of earlier releases          |
//! | 80       | 8      | samples, where they are packed                                                   |
//! | 88       | 8 A    | the shape; its product is the number of ciphertexts                              |
//! | 88 + 8 A | 32     | BLAKE3 of all before, in the context `blindcore sum ciphertexts v1`              |
//! | then     |        | blocks of [`BLOCK`] ciphertexts, the last one shorter, each followed by 32 bytes: |
//! |          |        | BLAKE3 of the digest above, the block's number (8 bytes) and its bytes           |
//!
//! A ciphertext is the number below n^2 in as many whole 8-byte words as twice the key's bits take. The digests find
//! damage, not forgery: ciphertexts are checked by [`Ciphertexts::accept`], and what a forged header says of bounds
//! is believed.

use std::io::{self, Read, Write};
use std::ops::RangeInclusive;

use blindcore_accel::bigmod::Numbers;
use blindcore_files::OutOfRange;
use blindcore_files::header::{DIGEST, Field, HeaderError, Layout, Seal};

use crate::ciphertexts::Ciphertexts;
use crate::encoding::{Bound, Form, MAX_AXES, MAX_SCALE};
use crate::keys::KeyId;
use crate::packing::{Packed, Packing};
use crate::scheme::Encryptor;

/// Ciphertexts that are written, checked and read at a time.
pub const BLOCK: usize = 1024;
/// What stands before the shape.
const LAYOUT: Layout = Layout {
    what: "a file of ciphertexts",
    magic: b"BLNDCIPH",
    version_at: 8,
    version_bytes: 4,
    version: 1,
    bytes: FIXED,
};
const FIXED: usize = 88;
const AXES: Field<u32> = Field::at(12);
const KEY: Field<[u8; 32]> = Field::at(16);
const BITS: Field<u32> = Field::at(48);
const EXPONENT: Field<i32> = Field::at(52);
const TOP: Field<u64> = Field::at(56);
const SHIFT: Field<u32> = Field::at(64);
const SLOT_BITS: Field<u32> = Field::at(68);
const SLOTS: Field<u32> = Field::at(72);
const SCALE: Field<u32> = Field::at(76);
const SAMPLES: Field<u64> = Field::at(80);
const SEAL: Seal = Seal::In("blindcore sum ciphertexts v1");
/// The shortest and the longest n.
const KEY_BITS: RangeInclusive<u64> = 64..=4096;

/// Why a file of ciphertexts can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Not such a file: what it is by how it starts. Its bytes are not shown, for they may be numbers in the clear.
    #[error(
        "it is not a file of ciphertexts but {0}; name one that `blindcore sum encrypt` wrote, or a computation"
    )]
    Magic(&'static str),
    /// Of a version that is not known.
    #[error("it has version {0} where {known} is known; update blindcore", known = LAYOUT.version)]
    Version(u32),
    /// Shorter or longer than its header says.
    #[error("it has {got} bytes where its header says {want}; copy it again")]
    Length {
        /// Its length.
        got: u64,
        /// The length that its header says.
        want: u64,
    },
    /// Longer than its header says, where its length is not known before it is read.
    #[error("it has more than {want} bytes where its header says {want}; copy it again")]
    Longer {
        /// The length that its header says.
        want: u64,
    },
    /// It ended.
    #[error("it ends within {what}; copy it again")]
    Truncated {
        /// What is cut short.
        what: &'static str,
    },
    /// Its bytes are not those that were written.
    #[error("{what} does not match its checksum; copy it again")]
    Checksum {
        /// What is damaged.
        what: String,
    },
    /// A header that makes no sense.
    #[error("its header says {} {}, outside {} to {}; {}", .0.what, .0.got, .0.min, .0.max, .0.remedy)]
    Header(OutOfRange),
    /// A key of another length than the one of that name.
    #[error(
        "its header says that the key has {got} bits, and it has {want}; it was not written by blindcore: have it encrypted or \
         computed again"
    )]
    KeyBits {
        /// The length that its header says.
        got: u32,
        /// The key's.
        want: u32,
    },
    /// A bound that was not written as bounds are.
    #[error(
        "its header says that numbers are up to {top} x 2^{shift}, and beyond 64 bits the first factor is 2^63 or more; it was \
         not written by blindcore: have it encrypted or computed again"
    )]
    Bound {
        /// The first factor.
        top: u64,
        /// The exponent of the second.
        shift: u32,
    },
    /// More or fewer numbers to write than the header says.
    #[error("{got} ciphertexts were written where the header says {want}")]
    Count {
        /// How many were written.
        got: u64,
        /// How many were announced.
        want: u64,
    },
    /// Ciphertexts of a block that are refused.
    #[error("in the block from ciphertext {first} on, {source}")]
    Block {
        /// The first of the block, counted from 0.
        first: u64,
        /// Why, counted within the block.
        source: Box<crate::encoding::EncodingError>,
    },
    /// A header or batch that is refused.
    #[error(transparent)]
    Refused(#[from] crate::encoding::EncodingError),
    /// The disk or pipe failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// What a file says of its ciphertexts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The key.
    pub key: KeyId,
    /// Bits of its n, 64 to 4096.
    pub key_bits: u32,
    /// What is known of the plaintexts.
    pub form: Form,
}

impl Header {
    /// Words of a ciphertext.
    #[must_use]
    pub fn words(&self) -> usize {
        self.key_bits.div_ceil(32) as usize
    }

    /// How many bits numbers may grow by, under any key of that length.
    #[must_use]
    pub fn headroom_bits(&self) -> u32 {
        let limit = self.form.packed.map(|packed| packed.packing.limit());
        self.form.bound.headroom(limit.unwrap_or_else(|| Bound::of_key_bits(self.key_bits)))
    }

    /// Bytes of the whole file.
    ///
    /// # Errors
    /// The shape is of more than can be addressed.
    pub fn file_bytes(&self) -> Result<u64, FileError> {
        let count = count(&self.form.shape)?;
        let bytes = u128::from(count) * 8 * self.words() as u128
            + u128::from(count.div_ceil(BLOCK as u64)) * DIGEST as u128
            + (FIXED + 8 * self.form.shape.len() + DIGEST) as u128;
        u64::try_from(bytes).map_err(|_| too_many(count))
    }

    fn to_bytes(&self) -> Result<Vec<u8>, FileError> {
        self.check()?;
        let Form { exponent, scale, bound, packed, shape } = &self.form;
        let (top, shift) = bound.parts();
        let mut out = LAYOUT.start();
        AXES.put(&mut out, shape.len() as u32);
        KEY.put(&mut out, *self.key.as_bytes());
        BITS.put(&mut out, self.key_bits);
        EXPONENT.put(&mut out, *exponent);
        SCALE.put(&mut out, *scale);
        TOP.put(&mut out, top);
        SHIFT.put(&mut out, shift);
        if let Some(packed) = packed {
            SLOT_BITS.put(&mut out, packed.packing.slot_bits());
            SLOTS.put(&mut out, packed.packing.slots());
            SAMPLES.put(&mut out, packed.samples as u64);
        }
        for axis in shape {
            out.extend_from_slice(&(*axis as u64).to_le_bytes());
        }
        SEAL.close(&mut out);
        Ok(out)
    }

    /// Reads it up to the first block, and returns it with its digest.
    fn read(from: &mut impl Read) -> Result<(Self, [u8; DIGEST]), FileError> {
        const CUT: FileError = FileError::Truncated { what: "its header" };
        let mut bytes = vec![0; FIXED];
        let got = fill(from, &mut bytes)?;
        let start = LAYOUT.check(&bytes[..got]).map_err(|error| match error {
            HeaderError::Version { got, .. } => FileError::Version(got),
            HeaderError::Short { got, .. } if got >= LAYOUT.magic.len() => CUT,
            _ => FileError::Magic(match &bytes[..got] {
                [] => "empty",
                [b'b', b'c', b's', b'u', b'm', ..] => "a key",
                [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => "an NPY file",
                [b'P', b'A', b'R', b'1', ..] => "a Parquet file",
                start if start.is_ascii() => {
                    "text (python-paillier's ciphertexts are for names that end in .jsonl)"
                }
                _ => "something else",
            }),
        })?;
        let axes = AXES.get(start);
        range("a number of axes of", axes.into(), 1..=MAX_AXES as u64)?;
        let rest = 8 * axes as usize + DIGEST;
        bytes.resize(FIXED + rest, 0);
        if fill(from, &mut bytes[FIXED..])? < rest {
            return Err(CUT);
        }
        let Some(header) = SEAL.open(&bytes) else {
            return Err(FileError::Checksum { what: "its header".into() });
        };
        let digest = *bytes.last_chunk().expect("longer than its digest");

        let word = |n: u64| usize::try_from(n).map_err(|_| too_many(n));
        let (top, shift) = (TOP.get(header), SHIFT.get(header));
        let bound = Bound::scaled(top.into(), shift);
        let (slot_bits, slots) = (SLOT_BITS.get(header), SLOTS.get(header));
        let samples = word(SAMPLES.get(header))?;
        let packed = if (slot_bits, slots, samples) == (0, 0, 0) {
            None
        } else {
            Some(Packed { packing: Packing::unchecked(slot_bits, slots), samples })
        };
        let axes = header[FIXED..].as_chunks::<8>().0.iter();
        let shape = axes.map(|axis| word(u64::from_le_bytes(*axis))).collect::<Result<_, _>>()?;
        let form = Form { exponent: EXPONENT.get(header), scale: SCALE.get(header), bound, packed, shape };
        let header = Self { key: KeyId::from_bytes(KEY.get(header)), key_bits: BITS.get(header), form };
        header.check()?;
        // Here, and not where it is written: what is written was checked with its numbers.
        header.form.check_shape()?;
        if header.form.bound.parts() != (top, shift) {
            return Err(FileError::Bound { top, shift });
        }
        Ok((header, digest))
    }

    fn check(&self) -> Result<(), FileError> {
        range("key bits of", self.key_bits.into(), KEY_BITS)?;
        range("a number of axes of", self.form.shape.len() as u64, 1..=MAX_AXES as u64)?;
        range("a number of decimals of", self.form.scale.into(), 0..=MAX_SCALE.into())?;
        if let Some(packed) = &self.form.packed {
            packed.packing.check(self.key_bits).map_err(FileError::Refused)?;
        }
        self.file_bytes().map(|_| ())
    }
}

const FOREIGN: &str = "it was not written by blindcore";

fn range(what: &'static str, got: u64, range: RangeInclusive<u64>) -> Result<(), FileError> {
    OutOfRange::check(what, got, range, FOREIGN).map_err(FileError::Header)
}

fn out_of_range(what: &'static str, got: u64, min: u64, max: u64) -> FileError {
    FileError::Header(OutOfRange { what, got, min, max, remedy: FOREIGN })
}

fn too_many(got: u64) -> FileError {
    out_of_range("a number of ciphertexts of", got, 0, u64::MAX >> 11)
}

fn count(shape: &[usize]) -> Result<u64, FileError> {
    let product = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d as u64));
    product.ok_or_else(|| too_many(u64::MAX))
}

fn block_digest(header: &[u8; DIGEST], block: u64, bytes: &[u8]) -> [u8; DIGEST] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(header).update(&block.to_le_bytes()).update(bytes);
    *hasher.finalize().as_bytes()
}

/// Reads as much as there is, up to the buffer's length.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> Result<usize, FileError> {
    let mut at = 0;
    while at < buffer.len() {
        match from.read(&mut buffer[at..]) {
            Ok(0) => break,
            Ok(n) => at += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(at)
}

/// Writes a file block by block.
pub struct Writer<W: Write> {
    out: W,
    digest: [u8; DIGEST],
    words: usize,
    count: u64,
    written: u64,
    buffer: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// The header is out of range, or writing fails.
    pub fn new(mut out: W, header: &Header) -> Result<Self, FileError> {
        let bytes = header.to_bytes()?;
        out.write_all(&bytes)?;
        let digest = bytes[bytes.len() - DIGEST..].try_into().expect("32 bytes");
        let count = count(&header.form.shape)?;
        Ok(Self { out, digest, words: header.words(), count, written: 0, buffer: Vec::new() })
    }

    /// Writes canonical ciphertexts, however many.
    ///
    /// # Errors
    /// They are more than the header says, or longer; or writing fails.
    pub fn write(&mut self, numbers: &Numbers) -> Result<(), FileError> {
        let got = self.written + numbers.len() as u64;
        if got > self.count {
            return Err(FileError::Count { got, want: self.count });
        }
        for number in numbers.iter() {
            let (kept, over) = number.split_at(number.len().min(self.words));
            if over.iter().any(|w| *w != 0) {
                let (what, got, max) = ("words of a ciphertext of", number.len() as u64, self.words as u64);
                return Err(out_of_range(what, got, 1, max));
            }
            for i in 0..self.words {
                self.buffer.extend_from_slice(&kept.get(i).copied().unwrap_or(0).to_le_bytes());
            }
            self.written += 1;
            if self.written.is_multiple_of(BLOCK as u64) {
                self.flush_block()?;
            }
        }
        Ok(())
    }

    /// Writes what is left and gives the output back.
    ///
    /// # Errors
    /// They are fewer than the header says, or writing fails.
    pub fn finish(mut self) -> Result<W, FileError> {
        if self.written != self.count {
            return Err(FileError::Count { got: self.written, want: self.count });
        }
        if !self.buffer.is_empty() {
            self.flush_block()?;
        }
        self.out.flush()?;
        Ok(self.out)
    }

    fn flush_block(&mut self) -> Result<(), FileError> {
        let block = (self.written - 1) / BLOCK as u64;
        self.out.write_all(&self.buffer)?;
        self.out.write_all(&block_digest(&self.digest, block, &self.buffer))?;
        self.buffer.clear();
        Ok(())
    }
}

/// Reads a file block by block, and never more than a block into memory.
pub struct Reader<R: Read> {
    from: R,
    header: Header,
    digest: [u8; DIGEST],
    count: u64,
    read: u64,
}

impl<R: Read> Reader<R> {
    /// Reads and checks the header. `length` is the length of the file, where it is known.
    ///
    /// # Errors
    /// It is no such file, of another version, damaged, or has another length than its header says.
    pub fn new(mut from: R, length: Option<u64>) -> Result<Self, FileError> {
        let (header, digest) = Header::read(&mut from)?;
        let want = header.file_bytes()?;
        if let Some(got) = length.filter(|got| *got != want) {
            return Err(FileError::Length { got, want });
        }
        let count = count(&header.form.shape)?;
        Ok(Self { from, header, digest, count, read: 0 })
    }

    /// What the file says of its ciphertexts.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many ciphertexts.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The next block of up to [`BLOCK`] canonical numbers, whole as they were written but not yet known to be
    /// ciphertexts; none after the last.
    ///
    /// # Errors
    /// The block is damaged or cut short, or something follows the last one.
    pub fn next_block(&mut self) -> Result<Option<Numbers>, FileError> {
        if self.read == self.count {
            return match fill(&mut self.from, &mut [0])? {
                0 => Ok(None),
                _ => Err(FileError::Longer { want: self.header.file_bytes()? }),
            };
        }
        let count = (self.count - self.read).min(BLOCK as u64) as usize;
        let mut bytes = vec![0; count * 8 * self.header.words() + DIGEST];
        if fill(&mut self.from, &mut bytes)? < bytes.len() {
            return Err(FileError::Truncated { what: "a block" });
        }
        let (body, digest) = bytes.split_at(bytes.len() - DIGEST);
        let block = self.read / BLOCK as u64;
        if block_digest(&self.digest, block, body) != digest {
            let last = self.read + count as u64 - 1;
            return Err(FileError::Checksum {
                what: format!("the block of ciphertexts {} to {last}", self.read),
            });
        }
        let mut numbers = Numbers::zeroed(count, self.header.words());
        for (word, bytes) in numbers.as_words_mut().iter_mut().zip(body.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        }
        self.read += count as u64;
        Ok(Some(numbers))
    }

    /// Reads and accepts all.
    ///
    /// # Errors
    /// As [`Reader::next_block`] and [`Ciphertexts::accept`]; or they are under another key.
    pub fn read_all(mut self, encryptor: &Encryptor) -> Result<Ciphertexts, FileError> {
        let key = encryptor.public();
        if self.header.key != key.id() {
            let (got, want) = (self.header.key, key.id());
            return Err(FileError::Refused(crate::encoding::EncodingError::Key {
                what: "the file",
                got,
                want,
            }));
        }
        if self.header.key_bits != key.bits() {
            return Err(FileError::KeyBits { got: self.header.key_bits, want: key.bits() });
        }
        self.header.form.check(key, self.count as usize)?;
        let flat = |count| Form { packed: None, shape: vec![count], ..self.header.form.clone() };
        let mut out = Ciphertexts::accept(encryptor, &Numbers::zeroed(0, key.ciphertext_words()), flat(0))?;
        let mut first = 0;
        let form = self.header.form.clone();
        while let Some(numbers) = self.next_block()? {
            let numbers = Numbers::from_words(key.ciphertext_words(), numbers.iter());
            let part = encryptor
                .accept(&numbers)
                .map_err(|e| FileError::Block { first, source: Box::new(e.into()) })?;
            out.residues.append(&part).map_err(crate::encoding::EncodingError::from)?;
            first += numbers.len() as u64;
        }
        out.form = form;
        Ok(out)
    }
}

/// Writes a batch.
///
/// # Errors
/// As [`Writer`]; or the batch is another key's or device's.
pub fn write<W: Write>(out: W, ciphertexts: &Ciphertexts, encryptor: &Encryptor) -> Result<W, FileError> {
    let key = encryptor.public();
    ciphertexts.check_key("the key", key.id())?;
    let header = Header { key: key.id(), key_bits: key.bits(), form: ciphertexts.form.clone() };
    let mut writer = Writer::new(out, &header)?;
    for first in (0..ciphertexts.len()).step_by(BLOCK) {
        let last = (first + BLOCK).min(ciphertexts.len());
        let part = ciphertexts.residues.select(first..last);
        writer.write(&encryptor.bigmod().read(&part).map_err(crate::encoding::EncodingError::from)?)?;
    }
    writer.finish()
}
