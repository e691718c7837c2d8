//! Apache Parquet: columns of numbers, read and written by the parquet crate.
//!
//! The crate takes the sizes of pages from the file. Before any is unpacked the headers of all pages are walked
//! here, and a size that its numbers can't fill is refused.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ::parquet::basic::{Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical};
use ::parquet::column::page::{Page as Unpacked, PageMetadata, PageReader};
use ::parquet::column::reader::ColumnReaderImpl;
use ::parquet::data_type::{DataType, DoubleType, FloatType, Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{ColumnDescriptor, Type};

use crate::Values;
use crate::error::{Error, Reading, shown};
use crate::npy::{Flaw, finite, unsigned};
use crate::values::Run;
use crate::write::{Writing, columns};

/// Bytes of what a file says about itself, at most: 64 MiB.
const MAX_METADATA_BYTES: u32 = 64 << 20;
/// Bytes of a page's header, at most: 64 KiB.
const MAX_HEADER_BYTES: u64 = 64 << 10;
/// Rows that are unpacked at once.
const BATCH: usize = 1 << 16;
/// Rows in a group that is written.
const GROUP_ROWS: usize = 1 << 20;
const DAMAGED: &str = "write it again";
const CAST: &str = "choose other columns, or cast it to int64 or float64";

/// Reads columns.
///
/// The library's decoders panic on some pages that don't hold what they say. Those that are known are refused
/// beforehand, in [`CheckedPages`]; a panic that is not known ends here as well.
pub(crate) fn read<R: ChunkReader + 'static>(file: R, reading: &Reading) -> Result<Values, Error> {
    // Nothing outlives the panic that could have been left half done.
    catch_unwind(AssertUnwindSafe(|| read_columns(file, reading))).unwrap_or_else(|_| {
        Err(reading.unfit("it is damaged in a way that its decoder doesn't bear", DAMAGED))
    })
}

fn read_columns<R: ChunkReader + 'static>(file: R, reading: &Reading) -> Result<Values, Error> {
    let len = file.len();
    let foreign = || reading.unfit("it is no Parquet file: it doesn't end in PAR1", "check its ending");
    if len < 12 {
        return Err(foreign());
    }
    let end = file.get_bytes(len - 8, 8).map_err(|e| failed(reading, &e))?;
    let metadata_len = u32::from_le_bytes([end[0], end[1], end[2], end[3]]);
    match &end[4..] {
        b"PAR1" => {}
        b"PARE" => return Err(reading.unfit("it is encrypted", "write it without encryption")),
        _ => return Err(foreign()),
    }
    if metadata_len > MAX_METADATA_BYTES {
        let why = format!("its metadata of {metadata_len} B is over the limit of {MAX_METADATA_BYTES} B");
        return Err(reading.unfit(why, DAMAGED));
    }
    let start = len.checked_sub(8 + u64::from(metadata_len)).ok_or_else(foreign)?;
    let bytes = file.get_bytes(start, metadata_len as usize).map_err(|e| failed(reading, &e))?;
    check_metadata(&bytes).ok_or_else(|| reading.unfit("its metadata is damaged", DAMAGED))?;
    let file = Arc::new(file);
    let reader = SerializedFileReader::new(Shared(file.clone())).map_err(|e| failed(reading, &e))?;
    let metadata = reader.metadata();
    let wanted = Column::wanted(metadata, reading)?;

    let mut rows = 0usize;
    for group in metadata.row_groups() {
        let some = usize::try_from(group.num_rows()).ok().and_then(|n| rows.checked_add(n));
        rows = some.ok_or_else(|| {
            reading.unfit(format!("a group of {} rows is impossible", group.num_rows()), DAMAGED)
        })?;
    }
    if rows.checked_mul(wanted.len()).is_none_or(|n| n > reading.limit) {
        return Err(reading.too_many());
    }

    let mut runs = Vec::with_capacity(wanted.len());
    for column in &wanted {
        runs.push(column.read(&reader, &*file, len, reading)?);
    }
    if runs.iter().any(|run| matches!(run, Run::Float(_))) && runs.len() > 1 {
        let float = |(run, column): (Run, &Column)| match run.into_float() {
            Ok(values) => Ok(Run::Float(values)),
            Err((row, value)) => {
                let why = format!("{value} stands beside a column of floats, and no float is equal to it");
                let remedy = "keep integers beside floats within 2^53, or read the columns on their own";
                Err(reading.value(column.place(row), why, remedy))
            }
        };
        runs = runs.into_iter().zip(&wanted).map(float).collect::<Result<_, _>>()?;
    }
    let width = runs.len();
    let (mut ints, mut floats) = (Vec::new(), Vec::new());
    for run in runs {
        // One after another: a matrix in Fortran order.
        match run {
            Run::Int(mut values) if ints.is_empty() => std::mem::swap(&mut ints, &mut values),
            Run::Int(values) => ints.extend(values),
            Run::Float(mut values) if floats.is_empty() => std::mem::swap(&mut floats, &mut values),
            Run::Float(values) => floats.extend(values),
        }
    }
    let run = if wanted.iter().any(|c| matches!(c.kind, Kind::F32 | Kind::F64)) {
        Run::Float(floats)
    } else {
        Run::Int(ints)
    };
    if width == 1 { run.shaped(reading, &[rows], false) } else { run.shaped(reading, &[rows, width], true) }
}

/// What the library says, on one line.
/// That the metadata's lists are as long as they say, and that no part of the schema has more children than the schema has
/// parts: the library takes memory for them before it looks.
///
/// It also looks at a field's number and not at its type, so one of another type would be read there as something else than
/// here: up to the schema's end every field must have the type that parquet.thrift gives it.
fn check_metadata(bytes: &[u8]) -> Option<()> {
    let mut thrift = Thrift(bytes);
    let mut last = 0;
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
        if id == 2 {
            check_schema(&mut thrift)?;
        } else {
            thrift.skip(kind, 16)?;
        }
    }
    Some(())
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

fn failed(reading: &Reading, error: &ParquetError) -> Error {
    let text: String = error.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let text = text.trim_start_matches("Parquet error: ").trim_start_matches("EOF: ");
    let short: String = text.chars().take(200).collect();
    reading.unfit(format!("it is damaged, or of a kind that isn't read: {short}"), DAMAGED)
}

/// A file that two look at.
struct Shared<R>(Arc<R>);

impl<R: ChunkReader> ::parquet::file::reader::Length for Shared<R> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<R: ChunkReader> ChunkReader for Shared<R> {
    type T = R::T;

    fn get_read(&self, start: u64) -> ::parquet::errors::Result<R::T> {
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> ::parquet::errors::Result<bytes::Bytes> {
        self.0.get_bytes(start, length)
    }
}

/// A column of numbers.
struct Column {
    name: String,
    leaf: usize,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

impl Column {
    /// The columns asked for: all of them where none is asked for.
    fn wanted(metadata: &ParquetMetaData, reading: &Reading) -> Result<Vec<Column>, Error> {
        let schema = metadata.file_metadata().schema_descr();
        let root = schema.root_schema();
        let fields = if root.is_group() { root.get_fields() } else { &[] };
        let names: Vec<String> = fields.iter().map(|f| f.name().to_owned()).collect();
        if names.is_empty() {
            return Err(reading.unfit("it has no columns", DAMAGED));
        }
        let mut columns = Vec::new();
        for position in reading.positions(&names)? {
            let (name, field) = (names[position].clone(), &fields[position]);
            let info = field.get_basic_info();
            let repeated = !info.has_repetition() || info.repetition() == Repetition::REPEATED;
            let leaf = (0..schema.num_columns()).find(|leaf| schema.get_column_root_idx(*leaf) == position);
            let Some(leaf) = leaf.filter(|_| field.is_primitive() && !repeated) else {
                let why = format!("column {} is nested", shown(&name));
                return Err(reading.unfit(why, "choose columns of single numbers"));
            };
            let kind = kind(&schema.column(leaf)).map_err(|what| {
                reading.unfit(format!("column {} holds {what}, not numbers", shown(&name)), CAST)
            })?;
            columns.push(Column { name, leaf, kind });
        }
        Ok(columns)
    }

    /// Rows are counted from 1.
    fn place(&self, row: usize) -> String {
        format!("row {}, column {}", row as u64 + 1, shown(&self.name))
    }

    fn read<R: ChunkReader + 'static>(
        &self,
        reader: &SerializedFileReader<Shared<R>>,
        file: &R,
        len: u64,
        reading: &Reading,
    ) -> Result<Run, Error> {
        let (mut ints, mut floats) = (Vec::new(), Vec::new());
        let mut first = 0;
        for (i, group) in reader.metadata().row_groups().iter().enumerate() {
            let rows = group.num_rows() as usize; // was checked
            let damaged = |why: &str| reading.unfit(format!("column {}: {why}", shown(&self.name)), DAMAGED);
            let chunk = group.columns().get(self.leaf).ok_or_else(|| damaged("a group lacks it"))?;
            check_pages(file, len, chunk, rows).map_err(|why| damaged(&why))?;
            if chunk.column_type() != chunk.column_descr().physical_type() {
                return Err(damaged("a group holds it in another type"));
            }
            let pages = || reader.get_row_group(i)?.get_column_page_reader(self.leaf);
            let pages = CheckedPages {
                inner: pages().map_err(|e| failed(reading, &e))?,
                nullable: chunk.column_descr().max_def_level() > 0,
                number_bytes: match self.kind {
                    Kind::I32 | Kind::U32 | Kind::F32 => 4,
                    Kind::I64 | Kind::U64 | Kind::F64 => 8,
                },
                dictionary: false,
            };
            let part = Part { column: self, chunk, first, rows, reading };
            match self.kind {
                Kind::I32 => part.read::<Int32Type, _>(pages, &mut ints, |v| Ok(v.into())),
                Kind::U32 => {
                    part.read::<Int32Type, _>(pages, &mut ints, |v| Ok(i64::from(v.cast_unsigned())))
                }
                Kind::I64 => part.read::<Int64Type, _>(pages, &mut ints, Ok),
                Kind::U64 => part.read::<Int64Type, _>(pages, &mut ints, |v| unsigned(v.cast_unsigned())),
                Kind::F32 => part.read::<FloatType, _>(pages, &mut floats, |v| finite(f64::from(v))),
                Kind::F64 => part.read::<DoubleType, _>(pages, &mut floats, finite),
            }?;
            first += rows;
        }
        Ok(match self.kind {
            Kind::F32 | Kind::F64 => Run::Float(floats),
            _ => Run::Int(ints),
        })
    }
}

/// What a column holds; else what it is, in words.
fn kind(column: &ColumnDescriptor) -> Result<Kind, String> {
    let (kind, unsigned) = match column.physical_type() {
        Physical::INT32 => (Kind::I32, Kind::U32),
        Physical::INT64 => (Kind::I64, Kind::U64),
        Physical::FLOAT => (Kind::F32, Kind::F32),
        Physical::DOUBLE => (Kind::F64, Kind::F64),
        other => {
            return Err(match (column.logical_type_ref(), column.converted_type(), other) {
                (Some(LogicalType::String), ..) | (_, ConvertedType::UTF8, _) => "strings".into(),
                (Some(LogicalType::Decimal(_)), ..) | (_, ConvertedType::DECIMAL, _) => "decimals".into(),
                (Some(LogicalType::Float16), ..) => "floats of 2 B".into(),
                (.., Physical::BOOLEAN) => "booleans".into(),
                (.., Physical::INT96) => "times".into(),
                _ => "bytes".into(),
            });
        }
    };
    let float = matches!(kind, Kind::F32 | Kind::F64);
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Integer(int)), _) if !float => Ok(if int.is_signed { kind } else { unsigned }),
        (Some(LogicalType::Decimal(_)), _) | (None, ConvertedType::DECIMAL) => Err("decimals".into()),
        (Some(LogicalType::Date | LogicalType::Time(_) | LogicalType::Timestamp(_)), _) => {
            Err("dates or times".into())
        }
        (Some(_), _) => Err("a logical type that isn't read".into()),
        (None, ConvertedType::NONE) => Ok(kind),
        (
            None,
            ConvertedType::INT_8 | ConvertedType::INT_16 | ConvertedType::INT_32 | ConvertedType::INT_64,
        ) if !float => Ok(kind),
        (
            None,
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64,
        ) if !float => Ok(unsigned),
        (None, other) => Err(format!("{other}")),
    }
}

/// The rows of a column that stand in one group.
struct Part<'a> {
    column: &'a Column,
    chunk: &'a ColumnChunkMetaData,
    /// Rows before.
    first: usize,
    rows: usize,
    reading: &'a Reading<'a>,
}

impl Part<'_> {
    fn read<D: DataType, T>(
        &self,
        pages: CheckedPages,
        into: &mut Vec<T>,
        number: impl Fn(D::T) -> Result<T, Flaw>,
    ) -> Result<(), Error> {
        let reading = self.reading;
        let mut reader = ColumnReaderImpl::<D>::new(self.chunk.column_descr_ptr(), Box::new(pages));
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        let mut done = 0;
        while done < self.rows {
            values.clear();
            levels.clear();
            let most = BATCH.min(self.rows - done);
            let (records, ..) = reader
                .read_records(most, Some(&mut levels), None, &mut values)
                .map_err(|e| failed(reading, &e))?;
            // A level below 1 stands for a null; columns that can't hold nulls have no levels.
            let null = levels.iter().position(|level| *level < 1);
            for (i, value) in values.drain(..).take(null.unwrap_or(most)).enumerate() {
                let value = number(value).map_err(|(why, remedy)| {
                    reading.value(self.column.place(self.first + done + i), why, remedy)
                })?;
                into.push(value);
            }
            if let Some(null) = null {
                let place = self.column.place(self.first + done + null);
                return Err(reading.value(place, "it is null", "fill nulls with a number, or drop them"));
            }
            if records == 0 {
                let why =
                    format!("column {} ends after {} rows", shown(&self.column.name), self.first + done);
                return Err(reading.unfit(why, DAMAGED));
            }
            done += records;
        }
        Ok(())
    }
}

/// Walks the headers of a chunk's pages: every page lies within its chunk, is unpacked to no more than its numbers
/// can fill, and they hold as many numbers as there are rows.
fn check_pages(
    file: &impl ChunkReader,
    len: u64,
    chunk: &ColumnChunkMetaData,
    rows: usize,
) -> Result<(), String> {
    if chunk.file_path().is_some() {
        return Err("it lies in another file".into());
    }
    if u64::try_from(chunk.num_values()).ok() != Some(rows as u64) {
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
    // How much a byte may unpack to: Snappy copies 64 B for 3, LZ4 255 B for one. Zstandard's bound is far
    // higher, but it takes memory only as it fills it.
    let ratio = match chunk.compression() {
        Compression::UNCOMPRESSED => 1,
        Compression::SNAPPY => 32,
        Compression::LZ4 | Compression::LZ4_RAW => 256,
        Compression::ZSTD(_) => u64::from(u32::MAX),
        _ => {
            let codec = chunk.compression_codec();
            return Err(format!("its compression {codec:?} is none of Snappy, LZ4 and Zstandard"));
        }
    };
    let mut values = 0;
    while at < end {
        let header = file
            .get_bytes(at, (end - at).min(MAX_HEADER_BYTES) as usize)
            .map_err(|_| "the file ends within it")?;
        let (page, header_len) = Page::parse(&header).ok_or("a page's header can't be read")?;
        at += header_len as u64 + page.packed;
        // A dictionary may hold numbers that no row has, if not very many.
        let count = if page.data { rows as u64 } else { rows as u64 + (1 << 20) };
        // 8 B and twice that for levels and indices a number, and what little pages need besides.
        let most = page.values.min(count) * 24 + (64 << 10);
        if at > end || page.unpacked > most || page.unpacked > page.packed.saturating_mul(ratio) + 64 {
            return Err(format!("a page of {} B is said to unpack to {} B", page.packed, page.unpacked));
        }
        if page.levels > page.unpacked || page.values > count {
            return Err(format!(
                "a page is said to hold {} values and {} B of levels",
                page.values, page.levels
            ));
        }
        if page.data {
            values += page.values;
        }
    }
    if values == rows as u64 { Ok(()) } else { Err(format!("its pages hold {values} of {rows} values")) }
}

/// Pages whose values are there: the decoders take it for granted that they are.
struct CheckedPages {
    inner: Box<dyn PageReader>,
    nullable: bool,
    number_bytes: usize,
    /// Whether a dictionary went by.
    dictionary: bool,
}

impl CheckedPages {
    fn check(&mut self, page: &Unpacked) -> Option<()> {
        let (values, encoding) = match page {
            Unpacked::DictionaryPage { .. } => {
                self.dictionary = true;
                return Some(());
            }
            Unpacked::DataPage { buf, encoding, def_level_encoding, .. } if self.nullable => {
                // What says which are null comes first, after its length.
                let length = u32::from_le_bytes(*buf.first_chunk()?) as usize;
                (buf.get(4..)?.get(length..)?, (*def_level_encoding == Encoding::RLE).then_some(*encoding)?)
            }
            Unpacked::DataPage { buf, encoding, .. } => (&buf[..], *encoding),
            Unpacked::DataPageV2 { buf, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
                let levels = def_levels_byte_len.checked_add(*rep_levels_byte_len)?;
                (buf.get(levels as usize..)?, *encoding)
            }
        };
        let count = page.num_values() as usize;
        let whole = match encoding {
            Encoding::PLAIN => true,
            // A byte says how many bits an index has.
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => {
                self.dictionary && values.first().is_some_and(|bits| *bits <= 32)
            }
            // As many as the page holds, all of one length; nulls, which take none, are refused here already.
            Encoding::BYTE_STREAM_SPLIT => values.len() == count * self.number_bytes,
            Encoding::DELTA_BINARY_PACKED => {
                check_deltas(values)?;
                true
            }
            _ => false,
        };
        whole.then_some(())
    }
}

/// Walks differences in blocks. Source: Apache Parquet's `Encodings.md`, "Delta encoding".
fn check_deltas(values: &[u8]) -> Option<()> {
    let mut rest = Thrift(values); // the same integers
    let (block, parts, count) = (rest.varint()?, rest.varint()?, rest.varint()?);
    if block > 1 << 16 || !(1..=block / 32).contains(&parts) {
        return None;
    }
    let part = block / parts;
    rest.integer()?; // the first value
    let mut left = count.checked_sub(1)?;
    while left > 0 {
        rest.integer()?; // the least difference
        let (widths, packed) = rest.0.split_at_checked(parts as usize)?;
        rest.0 = packed;
        for bits in widths {
            // The last part may be cut where its values end, which the decoder sees.
            let bytes = usize::from(*bits) * part as usize / 8;
            let bytes = if left <= part { bytes.min(rest.0.len()) } else { bytes };
            rest.0 = rest.0.get(bytes..)?;
            left = left.saturating_sub(part);
            if left == 0 {
                break;
            }
        }
    }
    Some(())
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
}

impl Page {
    /// Reads a header, and says how long it is.
    fn parse(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut thrift = Thrift(bytes);
        let mut page = Page::default();
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

/// What is left of a structure in Thrift's compact protocol.
struct Thrift<'a>(&'a [u8]);

impl Thrift<'_> {
    const I32: u8 = 5;
    const I8: u8 = 3;
    const I64: u8 = 6;
    const BINARY: u8 = 8;
    const LIST: u8 = 9;
    const STRUCT: u8 = 12;
    /// Structures of one list: row groups, columns of one, parts of a schema.
    const STRUCTS: u64 = 1 << 16;

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return (shift < 63 || byte < 2).then_some(value);
            }
        }
        None
    }

    fn integer(&mut self) -> Option<i64> {
        let zigzag = self.varint()?;
        Some((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    /// The next field's number and type; `Some(None)` at the end of the structure.
    fn field(&mut self, last: &mut i64) -> Option<Option<(i64, u8)>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        *last = match byte >> 4 {
            0 => self.integer()?,
            delta => *last + i64::from(delta),
        };
        i16::try_from(*last).ok()?;
        Some(Some((*last, byte & 15)))
    }

    /// The length of a list and the type of its elements.
    fn list(&mut self) -> Option<(u64, u8)> {
        let byte = self.byte()?;
        let length = if byte >> 4 == 15 { self.varint()? } else { u64::from(byte >> 4) };
        let kind = byte & 15;
        (kind != Self::STRUCT || length <= Self::STRUCTS).then_some((length, kind))
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            1 | 2 => {} // a boolean field is its type
            3 => drop(self.byte()?),
            4..=6 => drop(self.varint()?),
            7 => self.0 = self.0.get(8..)?,
            8 => {
                let length = usize::try_from(self.varint()?).ok()?;
                self.0 = self.0.get(length..)?;
            }
            Self::LIST | 10 => {
                let (length, kind) = self.list()?;
                for _ in 0..length {
                    self.element(kind, depth)?;
                }
            }
            11 => {
                let length = self.varint()?;
                let kinds = if length == 0 { 0 } else { self.byte()? };
                for _ in 0..length {
                    self.element(kinds >> 4, depth)?;
                    self.element(kinds & 15, depth)?;
                }
            }
            Self::STRUCT => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip(kind, depth)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Within lists and maps a boolean takes a byte, so that every element takes one at least.
    fn element(&mut self, kind: u8, depth: u32) -> Option<()> {
        if matches!(kind, 1 | 2) { self.byte().map(drop) } else { self.skip(kind, depth) }
    }
}

pub(crate) fn write(out: &mut (impl Write + Send), writing: &Writing) -> Result<(), Error> {
    let (rows, width) = columns(writing, "Parquet holds one column or several; save it as NPY")?;
    if width == 0 {
        return Err(writing.misfit("they have no columns", "save an empty array as NPY"));
    }
    let made;
    let names = match writing.names {
        Some(names) => names,
        None if width == 1 => {
            made = vec!["value".to_owned()];
            &made
        }
        None => {
            made = (0..width).map(|i| format!("value_{i}")).collect::<Vec<_>>();
            &made
        }
    };
    if names.iter().any(String::is_empty) {
        return Err(writing.misfit("a column's name is empty", "give every column a name"));
    }
    let done = match writing.values {
        Values::Int(array) => {
            let array = array.as_standard_layout();
            let values = array.as_slice().unwrap_or_default();
            columns_of::<Int64Type>(out, Physical::INT64, names, rows, values)
        }
        Values::Float(array) => {
            let array = array.as_standard_layout();
            let values = array.as_slice().unwrap_or_default();
            columns_of::<DoubleType>(out, Physical::DOUBLE, names, rows, values)
        }
    };
    done.map_err(|e| writing.io(std::io::Error::other(e)))
}

fn columns_of<D: DataType>(
    out: &mut (impl Write + Send),
    physical: Physical,
    names: &[String],
    rows: usize,
    values: &[D::T],
) -> ::parquet::errors::Result<()> {
    let field = |name: &String| {
        let column = Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
        column.build().map(Arc::new)
    };
    let fields = names.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Arc::new(Type::group_type_builder("numbers").with_fields(fields).build()?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("blindcore {}", env!("CARGO_PKG_VERSION")))
        .build();
    let mut file = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    let width = names.len();
    for first in (0..rows).step_by(GROUP_ROWS) {
        let mut group = file.next_row_group()?;
        for position in 0..width {
            let rows = first..rows.min(first + GROUP_ROWS);
            let part: Vec<D::T> = rows.map(|row| values[row * width + position].clone()).collect();
            let mut column = group.next_column()?.expect("a column for each name");
            column.typed::<D>().write_batch(&part, None, None)?;
            column.close()?;
        }
        group.close()?;
    }
    file.close().map(drop)
}
