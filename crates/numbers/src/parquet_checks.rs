//! What a Parquet file says of itself, checked before the parquet crate believes it.
//!
//! The crate takes memory by sizes in the file, and its decoders panic on some pages that don't hold what they say.
//! Here the metadata's lists are walked ([`check_footer`]), then the headers of all pages that are read ([`check_pages`]),
//! then each page ([`CheckedPages`]). Columns are flat: one value or null a row.

use crate::thrift::Thrift;
use ::parquet::basic::{Compression, Encoding, Type as Physical};
use ::parquet::column::page::{Page as Unpacked, PageMetadata, PageReader};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::ColumnChunkMetaData;
use ::parquet::file::reader::ChunkReader;
use std::collections::BTreeSet;
use std::io::{self, Read};

/// Bytes of what a file says about itself, at most: 64 MiB.
const MAX_METADATA_BYTES: u32 = 64 << 20;
/// Bytes of a page's header, at most: 64 KiB.
const MAX_HEADER_BYTES: u64 = 64 << 10;
/// Bytes of a page, unpacked, at most: 256 MiB.
const MAX_PAGE_BYTES: u64 = 256 << 20;
/// Lengths of a page that are kept at once, at most: 2^24.
const MAX_LENGTHS: u64 = 1 << 24;

/// Numbers of a dictionary beyond those that its group has rows, at most: 2^20.
const MAX_SPARE_NUMBERS: u64 = 1 << 20;
const DAMAGED: &str = "write it again";

/// Why a file can't be read.
#[derive(Debug)]
pub enum Flaw {
    /// It can't be got at.
    Unread(ParquetError),
    /// It is not what it should be.
    Unfit {
        /// What is wrong, as a clause about "it".
        why: String,
        /// What to do.
        remedy: &'static str,
    },
}

impl Flaw {
    fn unfit(why: impl Into<String>, remedy: &'static str) -> Self {
        Self::Unfit { why: why.into(), remedy }
    }
}

/// What is wrong with a column whose pages are encrypted.
pub const ENCRYPTED: &str = "it is encrypted";
/// What to do about it.
pub const ENCRYPTED_REMEDY: &str = "write it without encryption, or choose other columns";

/// Checks a file's end and what it says about itself, before the parquet crate opens it. Gives the leaves of the schema,
/// counted from 0, whose values are encrypted, though the footer is not.
///
/// # Errors
/// It is not a Parquet file, is encrypted, or its metadata is damaged or over 64 MiB.
pub fn check_footer(file: &impl ChunkReader) -> Result<BTreeSet<usize>, Flaw> {
    let len = file.len();
    let foreign = || Flaw::unfit("it is not a Parquet file: it doesn't end in PAR1", "check its ending");
    let end = len.checked_sub(8).filter(|at| *at >= 4).ok_or_else(foreign)?;
    let end = file.get_bytes(end, 8).map_err(Flaw::Unread)?;
    let metadata_len = u32::from_le_bytes(*end.first_chunk().ok_or_else(foreign)?);
    match end.get(4..) {
        Some(b"PAR1") => {}
        Some(b"PARE") => return Err(Flaw::unfit("it is encrypted", "write it without encryption")),
        _ => return Err(foreign()),
    }
    if metadata_len > MAX_METADATA_BYTES {
        let why = format!("its metadata of {metadata_len} B is over the limit of {MAX_METADATA_BYTES} B");
        return Err(Flaw::unfit(why, DAMAGED));
    }
    let start = len.checked_sub(8 + u64::from(metadata_len)).ok_or_else(foreign)?;
    let bytes = file.get_bytes(start, metadata_len as usize).map_err(Flaw::Unread)?;
    check_metadata(&bytes).ok_or_else(|| Flaw::unfit("its metadata is damaged", DAMAGED))?
}

/// That the metadata's lists are as long as they say, and that no part of the schema has more children than the schema has
/// parts: the library takes memory for them before it looks.
///
/// It also looks at a field's number and not at its type, so one of another type would be read there as something else than
/// here: up to the schema's end every field must have the type that parquet.thrift gives it.
fn check_metadata(bytes: &[u8]) -> Option<Result<BTreeSet<usize>, Flaw>> {
    let mut thrift = Thrift(bytes);
    let (mut last, mut encrypted, mut hidden) = (0, BTreeSet::new(), 0u64);
    while let Some((id, kind)) = thrift.field(&mut last)? {
        let fits = match id {
            1 => kind == Thrift::I32,
            2 | 4 | 5 | 7 => kind == Thrift::LIST,
            3 => kind == Thrift::I64,
            6 | 9 => kind == Thrift::BINARY,
            8 => kind == Thrift::STRUCT,
            _ => true,
        };
        if !fits {
            return None;
        }
        match id {
            2 => check_schema(&mut thrift)?,
            4 => hidden += encrypted_chunks(&mut thrift, &mut encrypted)?,
            _ => thrift.skip(kind, 16)?,
        }
    }
    Some(match hidden {
        0 => Ok(encrypted),
        // The library reads none of the others either.
        _ => {
            let why = format!("{} of its columns are encrypted under keys of their own", encrypted.len());
            Err(Flaw::unfit(why, "write it without encryption"))
        }
    })
}

/// Walks the list of row groups: adds the columns whose chunks are encrypted, and counts those that don't even say what
/// they hold. Source: `parquet.thrift`, `RowGroup` and `ColumnChunk`.
fn encrypted_chunks(thrift: &mut Thrift<'_>, encrypted: &mut BTreeSet<usize>) -> Option<u64> {
    let mut hidden = 0;
    let (groups, kind) = thrift.list()?;
    for _ in 0..groups {
        if kind != Thrift::STRUCT {
            thrift.element(kind, 16)?;
            continue;
        }
        let mut last = 0;
        while let Some((id, kind)) = thrift.field(&mut last)? {
            if (id, kind) != (1, Thrift::LIST) {
                thrift.skip(kind, 16)?;
                continue;
            }
            let (chunks, kind) = thrift.list()?;
            for leaf in 0..chunks {
                if kind != Thrift::STRUCT {
                    thrift.element(kind, 16)?;
                    continue;
                }
                let (mut last, mut described, mut secret) = (0, false, false);
                while let Some((id, kind)) = thrift.field(&mut last)? {
                    described |= id == 3;
                    secret |= id == 8;
                    thrift.skip(kind, 16)?;
                }
                if secret {
                    encrypted.insert(usize::try_from(leaf).ok()?);
                    hidden += u64::from(!described);
                }
            }
        }
    }
    Some(hidden)
}

fn check_schema(thrift: &mut Thrift<'_>) -> Option<()> {
    let (parts, kind) = thrift.list()?;
    if kind != Thrift::STRUCT {
        return None;
    }
    for _ in 0..parts {
        let mut last = 0;
        while let Some((id, kind)) = thrift.field(&mut last)? {
            match (id, kind) {
                (5, Thrift::I32) => {
                    u64::try_from(thrift.integer()?).ok().filter(|children| *children < parts)?;
                }
                (1..=3 | 6..=9, Thrift::I32) | (4, Thrift::BINARY) => thrift.skip(kind, 1)?,
                (10, Thrift::STRUCT) => check_logical_type(thrift)?,
                (1..=10, _) => return None,
                _ => thrift.skip(kind, 16)?,
            }
        }
    }
    Some(())
}

/// A union: which type it is, and what is said of it.
fn check_logical_type(thrift: &mut Thrift<'_>) -> Option<()> {
    let mut last = 0;
    while let Some((of, kind)) = thrift.field(&mut last)? {
        if kind != Thrift::STRUCT {
            return None;
        }
        let mut last = 0;
        while let Some((id, kind)) = thrift.field(&mut last)? {
            match (of, id, kind) {
                (5, 1 | 2, Thrift::I32) | (18, 2, Thrift::I32) => {} // decimal; geography's algorithm
                (7 | 8, 1, 1 | 2) | (10, 2, 1 | 2) => {}             // times in UTC, integers with a sign
                (10 | 16, 1, Thrift::I8) => {} // an integer's width, a variant's version
                (17 | 18, 1, Thrift::BINARY) => {} // geometry's reference system
                (7 | 8, 2, Thrift::STRUCT) => {
                    let mut last = 0;
                    while let Some((_, kind)) = thrift.field(&mut last)? {
                        // A unit of time is an empty structure.
                        if kind != Thrift::STRUCT || thrift.byte()? != 0 {
                            return None;
                        }
                    }
                    continue;
                }
                _ => return None,
            }
            thrift.skip(kind, 1)?;
        }
    }
    Some(())
}

/// Walks the headers of a chunk's pages: every page lies within its chunk and is unpacked to no more than its bytes and
/// values can fill, and they hold as many values as the group has `rows`.
///
/// # Errors
/// What is wrong, as a clause about the column.
pub fn check_pages(file: &impl ChunkReader, chunk: &ColumnChunkMetaData, rows: u64) -> Result<(), String> {
    let len = file.len();
    let number_bytes = number_bytes(chunk.column_descr().physical_type());
    if chunk.file_path().is_some() {
        return Err("it lies in another file".into());
    }
    if u64::try_from(chunk.num_values()).ok() != Some(rows) {
        return Err(format!("{} values are said to stand in {rows} rows", chunk.num_values()));
    }
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let range = u64::try_from(start).ok().zip(u64::try_from(chunk.compressed_size()).ok());
    let (mut at, end) = range
        .and_then(|(start, size)| Some((start, start.checked_add(size)?)))
        .filter(|(_, end)| *end <= len)
        .ok_or_else(|| {
            format!("{} B from byte {start} on are beyond the file's {len} B", chunk.compressed_size())
        })?;
    // How much a byte may unpack to: Snappy copies 64 B for 3, LZ4 255 B for one. The others' bounds are far
    // higher, but they take memory only as they fill it.
    let ratio = match chunk.compression() {
        Compression::UNCOMPRESSED => 1,
        Compression::SNAPPY => 32,
        Compression::LZ4 | Compression::LZ4_RAW => 256,
        Compression::ZSTD(_) | Compression::GZIP(_) | Compression::BROTLI(_) => u64::from(u32::MAX),
        _ => {
            let codec = chunk.compression_codec();
            return Err(format!(
                "its compression {codec:?} is none of Snappy, LZ4, Zstandard, GZIP and Brotli"
            ));
        }
    };
    let mut values = 0;
    while at < end {
        let header = file
            .get_bytes(at, (end - at).min(MAX_HEADER_BYTES) as usize)
            .map_err(|_| "the file ends within it")?;
        let (page, header_len) = Page::parse(&header).ok_or("a page's header can't be read")?;
        at += header_len as u64 + page.packed;
        if at > end || page.unpacked > page.packed.saturating_mul(ratio) + 64 {
            return Err(format!("a page of {} B is said to unpack to {} B", page.packed, page.unpacked));
        }
        if page.unpacked > MAX_PAGE_BYTES {
            return Err(format!("a page of {} B is over the limit of {MAX_PAGE_BYTES} B", page.unpacked));
        }
        // A dictionary may hold values that no row has, if not very many; each takes a bit at least.
        let spare = number_bytes.map_or(u64::MAX, |_| rows.saturating_add(MAX_SPARE_NUMBERS));
        let most = if page.data { rows } else { spare.min(8 * page.unpacked) };
        // 8 B and twice that for levels and indices a number, and what little pages need besides.
        if number_bytes.is_some() && page.unpacked > page.values.min(most).saturating_mul(24) + (64 << 10) {
            return Err(format!("a page of {} values is said to unpack to {} B", page.values, page.unpacked));
        }
        if page.levels > page.unpacked || page.values > most {
            return Err(format!(
                "a page is said to hold {} values and {} B of levels",
                page.values, page.levels
            ));
        }
        let packed = |page: &Page| file.get_bytes(at - page.packed, page.packed as usize);
        if page.compressed && page.unpacked > page.levels && !bounded(chunk.compression()) {
            let packed = packed(&page).map_err(|_| "the file ends within it")?;
            let values = packed.get(page.levels as usize..).ok_or("a page is shorter than its levels")?;
            if !unpacks_to(chunk.compression(), values, page.unpacked - page.levels) {
                return Err(format!("a page doesn't unpack to the {} B that it says", page.unpacked));
            }
        }
        if page.data {
            values += page.values;
        }
    }
    if values == rows { Ok(()) } else { Err(format!("its pages hold {values} of {rows} values")) }
}

/// Whether the library unpacks a codec to no more than a page says.
fn bounded(codec: Compression) -> bool {
    !matches!(codec, Compression::GZIP(_) | Compression::BROTLI(_))
}

/// Whether bytes unpack to this many, with no room for them: the library would take all the memory that they ask for.
fn unpacks_to(codec: Compression, packed: &[u8], unpacked: u64) -> bool {
    let count = |from: &mut dyn Read| io::copy(&mut from.take(unpacked + 1), &mut io::sink());
    let got = match codec {
        Compression::GZIP(_) => count(&mut flate2::read::MultiGzDecoder::new(packed)),
        _ => count(&mut brotli_decompressor::Decompressor::new(packed, 4096)),
    };
    got.is_ok_and(|got| got == unpacked)
}

/// Bytes of a value of a type of numbers.
fn number_bytes(physical: Physical) -> Option<usize> {
    match physical {
        Physical::INT32 | Physical::FLOAT => Some(4),
        Physical::INT64 | Physical::DOUBLE => Some(8),
        _ => None,
    }
}

/// Pages whose values are there: the decoders take it for granted that they are.
pub struct CheckedPages {
    inner: Box<dyn PageReader>,
    nullable: bool,
    physical: Physical,
    /// Bytes of a value, where all are of one length.
    width: usize,
    /// Whether a dictionary went by.
    dictionary: bool,
}

impl CheckedPages {
    /// The pages of a chunk that [`check_pages`] has passed, each checked before it is given out.
    #[must_use]
    pub fn new(inner: Box<dyn PageReader>, chunk: &ColumnChunkMetaData) -> Self {
        let column = chunk.column_descr();
        let width = number_bytes(column.physical_type()).unwrap_or(match column.physical_type() {
            Physical::FIXED_LEN_BYTE_ARRAY => usize::try_from(column.type_length()).unwrap_or(0),
            _ => 0,
        });
        let nullable = column.max_def_level() > 0;
        Self { inner, nullable, physical: column.physical_type(), width, dictionary: false }
    }

    fn check(&mut self, page: &Unpacked) -> Option<()> {
        let count = u64::from(page.num_values());
        let (values, encoding, levels) = match page {
            Unpacked::DictionaryPage { buf, num_values, .. } => {
                self.dictionary = true;
                return self.check_plain(buf, (*num_values).into());
            }
            Unpacked::DataPage { buf, encoding, def_level_encoding, .. } if self.nullable => {
                // What says which are null comes first, after its length.
                let length = u32::from_le_bytes(*buf.first_chunk()?) as usize;
                let (levels, values) = buf.get(4..)?.split_at_checked(length)?;
                (values, (*def_level_encoding == Encoding::RLE).then_some(*encoding)?, levels)
            }
            Unpacked::DataPage { buf, encoding, .. } => (&buf[..], *encoding, &[][..]),
            Unpacked::DataPageV2 { buf, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
                let (repetition, rest) = buf.split_at_checked(*rep_levels_byte_len as usize)?;
                let (levels, values) = rest.split_at_checked(*def_levels_byte_len as usize)?;
                repetition.is_empty().then_some((values, *encoding, levels))?
            }
        };
        let there = if self.nullable { present(levels, count)? } else { count };
        let number = number_bytes(self.physical).is_some();
        let whole = match encoding {
            Encoding::PLAIN => {
                self.check_plain(values, there)?;
                true
            }
            Encoding::RLE => self.physical == Physical::BOOLEAN,
            // A byte says how many bits an index has; a page of nulls alone may have none.
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => {
                self.dictionary && values.first().map_or(there == 0, |bits| *bits <= 32)
            }
            Encoding::BYTE_STREAM_SPLIT => self.width > 0 && values.len() as u64 == there * self.width as u64,
            Encoding::DELTA_BINARY_PACKED => {
                deltas(values, there)?;
                matches!(self.physical, Physical::INT32 | Physical::INT64)
            }
            Encoding::DELTA_LENGTH_BYTE_ARRAY if !number => {
                let (lengths, rest) = lengths(values, there)?;
                lengths.iter().sum::<u64>() <= rest.len() as u64
            }
            Encoding::DELTA_BYTE_ARRAY if !number => {
                let (prefixes, rest) = lengths(values, there)?;
                let (suffixes, rest) = lengths(rest, there)?;
                let suffixes_sum = suffixes.iter().sum::<u64>();
                suffixes_sum <= rest.len() as u64
                    && prefixes.iter().sum::<u64>() + suffixes_sum <= MAX_PAGE_BYTES
            }
            _ => false,
        };
        whole.then_some(())
    }

    /// That this many values of the plain encoding are there.
    fn check_plain(&self, values: &[u8], count: u64) -> Option<()> {
        if self.physical != Physical::BYTE_ARRAY {
            // Booleans take a bit, of which the decoder sees the end.
            return (count.checked_mul(self.width as u64)? <= values.len() as u64).then_some(());
        }
        let mut rest = values;
        for _ in 0..count {
            let length = u32::from_le_bytes(*rest.first_chunk()?) as usize;
            rest = rest.get(4..)?.get(length..)?;
        }
        Some(())
    }
}

/// How many of this many values are there and not null: levels of one bit, in runs and in packs of eight. Source: Apache
/// Parquet's `Encodings.md`, "Run Length Encoding / Bit-Packing Hybrid".
fn present(levels: &[u8], count: u64) -> Option<u64> {
    let mut rest = Thrift(levels); // the same integers
    let (mut left, mut there) = (count, 0);
    while left > 0 {
        let header = rest.varint()?;
        if header & 1 == 0 {
            let run = (header >> 1).min(left);
            there += u64::from(rest.byte()? & 1) * run;
            left -= run;
            if run == 0 {
                return None;
            }
        } else {
            let packs = usize::try_from(header >> 1).ok()?.min(rest.0.len());
            let (bytes, after) = rest.0.split_at(packs);
            for byte in bytes {
                let some = left.min(8);
                there += u64::from((byte & ((1u16 << some) - 1) as u8).count_ones());
                left -= some;
            }
            rest.0 = after;
            if packs == 0 {
                return None;
            }
        }
    }
    Some(there)
}

/// Reads this many values as differences in blocks: the values, and the bytes behind them. Source: Apache Parquet's `Encodings.md`, "Delta
/// encoding".
fn deltas(values: &[u8], count: u64) -> Option<(Deltas<'_>, &[u8])> {
    let mut rest = Thrift(values); // the same integers
    let (block, parts, said) = (rest.varint()?, rest.varint()?, rest.varint()?);
    if block > 1 << 16 || !(1..=block / 32).contains(&parts) || !block.is_multiple_of(parts) || said != count
    {
        return None;
    }
    let part = block / parts;
    if !part.is_multiple_of(32) {
        return None;
    }
    let first = rest.integer()?;
    let mut read = Deltas { first: (said > 0).then_some(first), parts: Vec::new() };
    let mut left = said.saturating_sub(1);
    while left > 0 {
        let least = rest.integer()?;
        let (widths, packed) = rest.0.split_at_checked(parts as usize)?;
        rest.0 = packed;
        for bits in widths {
            let bytes = usize::from(*bits) * part as usize / 8;
            // The last part may be cut where its values end.
            let cut = if left <= part { bytes.min(rest.0.len()) } else { bytes };
            let (packed, after) = rest.0.split_at_checked(cut)?;
            if *bits > 64 {
                return None;
            }
            read.parts.push((least, *bits, left.min(part), packed));
            rest.0 = after;
            left = left.saturating_sub(part);
            if left == 0 {
                break;
            }
        }
    }
    Some((read, rest.0))
}

/// Differences: the first value, then parts of a least difference, bits, how many, and what is packed.
struct Deltas<'a> {
    first: Option<i64>,
    parts: Vec<(i64, u8, u64, &'a [u8])>,
}

/// The lengths that differences stand for, none of them below zero, and the bytes behind them.
fn lengths(values: &[u8], count: u64) -> Option<(Vec<u64>, &[u8])> {
    let (read, rest) = deltas(values, (count <= MAX_LENGTHS).then_some(count)?)?;
    let mut lengths = Vec::new();
    let Some(mut last) = read.first.map(|first| first as i32) else { return Some((lengths, rest)) };
    lengths.push(u64::try_from(last).ok()?);
    for (least, bits, count, packed) in read.parts {
        for i in 0..count as usize {
            let mut delta = 0u64;
            for bit in 0..usize::from(bits) {
                let at = i * usize::from(bits) + bit;
                delta |= u64::from(packed.get(at / 8)? >> (at % 8) & 1) << bit;
            }
            last = last.wrapping_add(least as i32).wrapping_add(delta as i32);
            lengths.push(u64::try_from(last).ok()?);
        }
    }
    Some((lengths, rest))
}

impl Iterator for CheckedPages {
    type Item = ::parquet::errors::Result<Unpacked>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> ::parquet::errors::Result<Option<Unpacked>> {
        let Some(page) = self.inner.get_next_page()? else { return Ok(None) };
        match self.check(&page) {
            Some(()) => Ok(Some(page)),
            None => {
                let (count, encoding) = (page.num_values(), page.encoding());
                let why = format!("a page says that it holds {count} values in {encoding} and doesn't");
                Err(ParquetError::General(why))
            }
        }
    }

    fn peek_next_page(&mut self) -> ::parquet::errors::Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> ::parquet::errors::Result<()> {
        self.inner.skip_next_page()
    }
}

/// What a page's header says, as far as it is looked at. Source: `parquet.thrift`, `PageHeader`.
#[derive(Default)]
struct Page {
    data: bool,
    /// Bytes in the file.
    packed: u64,
    unpacked: u64,
    values: u64,
    /// Bytes of levels before the values.
    levels: u64,
    /// Whether the values are, where the chunk is.
    compressed: bool,
}

impl Page {
    /// Reads a header, and says how long it is.
    fn parse(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut thrift = Thrift(bytes);
        let mut page = Page { compressed: true, ..Page::default() };
        let size = |v: i64| u64::try_from(v).ok().filter(|v| *v <= i32::MAX as u64);
        let mut last = 0;
        while let Some((id, kind)) = thrift.field(&mut last)? {
            match (id, kind) {
                (1, Thrift::I32) => page.data = matches!(thrift.integer()?, 0 | 3),
                (2, Thrift::I32) => page.unpacked = size(thrift.integer()?)?,
                (3, Thrift::I32) => page.packed = size(thrift.integer()?)?,
                (5 | 7 | 8, Thrift::STRUCT) => {
                    let mut inner = 0;
                    while let Some((field, kind)) = thrift.field(&mut inner)? {
                        match (field, kind) {
                            (1, Thrift::I32) => page.values = size(thrift.integer()?)?,
                            (5 | 6, Thrift::I32) if id == 8 => page.levels += size(thrift.integer()?)?,
                            (7, 1 | 2) if id == 8 => page.compressed = kind == 1,
                            _ => thrift.skip(kind, 8)?,
                        }
                    }
                }
                _ => thrift.skip(kind, 8)?,
            }
        }
        Some((page, bytes.len() - thrift.0.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::parquet::basic::{BrotliLevel, GzipLevel};
    use std::io::Write;

    #[test]
    fn an_encrypted_column_under_a_plain_footer_is_seen() {
        // A row group of two chunks, the first with a place, with what it holds, and with a key.
        let described = [0x49, 0x1c, 0x19, 0x2c, 0x26, 0, 0x1c, 0, 0x5c, 0, 0, 0x26, 0, 0x1c, 0, 0, 0, 0];
        let leaves = check_metadata(&described).unwrap().unwrap();
        assert_eq!(leaves.into_iter().collect::<Vec<_>>(), [0]);
        // The same without what it holds, which lies encrypted elsewhere.
        let hidden = [0x49, 0x1c, 0x19, 0x2c, 0x26, 0, 0x6c, 0, 0, 0x26, 0, 0x1c, 0, 0, 0, 0];
        let Some(Err(Flaw::Unfit { why, remedy })) = check_metadata(&hidden) else { panic!("it is refused") };
        assert!(
            why.contains("1 of its columns are encrypted") && remedy.contains("without encryption"),
            "{why}"
        );
        for cut in 0..hidden.len() {
            assert!(check_metadata(&hidden[..cut]).is_none(), "{cut}");
        }
    }

    #[test]
    fn a_page_unpacks_to_what_it_says_or_is_refused() {
        let page = vec![7; 1 << 20];
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gzip.write_all(&page).unwrap();
        let packed = gzip.finish().unwrap();
        let codec = Compression::GZIP(GzipLevel::default());
        assert!(unpacks_to(codec, &packed, 1 << 20));
        for said in [0, 1000, (1 << 20) - 1, (1 << 20) + 1, u64::MAX - 1] {
            assert!(!unpacks_to(codec, &packed, said), "{said}");
        }
        assert!(!unpacks_to(codec, &packed[..packed.len() / 2], 1 << 20));
        assert!(!unpacks_to(Compression::BROTLI(BrotliLevel::default()), &packed, 1 << 20));
    }
}
