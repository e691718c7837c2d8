//! Apache Parquet: columns of numbers, read and written by the parquet crate.
//!
//! The crate takes the sizes of pages from the file and believes what they say: [`parquet_checks`] doesn't.
//!
//! [`parquet_checks`]: crate::parquet_checks

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ::parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use ::parquet::column::reader::ColumnReaderImpl;
use ::parquet::data_type::{DataType, DoubleType, FloatType, Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{ColumnDescriptor, Type};

use crate::Values;
use crate::content::{Content, Places, row_place};
use crate::error::{Error, Reading, shown};
use crate::npy::{Flaw, finite, unsigned};
use crate::parquet_checks::{self, CheckedPages, ENCRYPTED, ENCRYPTED_REMEDY, check_footer, check_pages};
use crate::values::Run;
use crate::writing::{Writing, columns};

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
pub(crate) fn read<R: ChunkReader + 'static>(file: R, reading: &Reading) -> Result<Content, Error> {
    // Nothing outlives the panic that could have been left half done.
    catch_unwind(AssertUnwindSafe(|| read_columns(file, reading))).unwrap_or_else(|_| {
        Err(reading.unfit("it is damaged in a way that its decoder doesn't bear", DAMAGED))
    })
}

fn read_columns<R: ChunkReader + 'static>(file: R, reading: &Reading) -> Result<Content, Error> {
    let encrypted = check_footer(&file).map_err(|flaw| match flaw {
        parquet_checks::Flaw::Unread(error) => failed(reading, &error),
        parquet_checks::Flaw::Unfit { why, remedy } => reading.unfit(why, remedy),
    })?;
    let file = Arc::new(file);
    let reader = SerializedFileReader::new(Shared(file.clone())).map_err(|e| failed(reading, &e))?;
    let metadata = reader.metadata();
    let wanted = Column::wanted(metadata, reading)?;
    if let Some(column) = wanted.iter().find(|column| encrypted.contains(&column.leaf)) {
        let why = format!("column {}: {ENCRYPTED}", shown(&column.name));
        return Err(reading.unfit(why, ENCRYPTED_REMEDY));
    }

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
        runs.push(column.read(&reader, &*file, reading)?);
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
    let shape = if width == 1 { vec![rows] } else { vec![rows, width] };
    let values = run.shaped(reading, &shape, width > 1)?;
    let places = Places::Rows(wanted.into_iter().map(|column| column.name).collect());
    Ok(Content { places, ..Content::new(reading.origin, values) })
}

/// What the library says, on one line.
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

    fn place(&self, row: usize) -> String {
        row_place(row as u64, &self.name)
    }

    fn read<R: ChunkReader + 'static>(
        &self,
        reader: &SerializedFileReader<Shared<R>>,
        file: &R,
        reading: &Reading,
    ) -> Result<Run, Error> {
        let (mut ints, mut floats) = (Vec::new(), Vec::new());
        let mut first = 0;
        for (i, group) in reader.metadata().row_groups().iter().enumerate() {
            let rows = group.num_rows() as usize; // was checked
            let damaged = |why: &str| reading.unfit(format!("column {}: {why}", shown(&self.name)), DAMAGED);
            let chunk = group.columns().get(self.leaf).ok_or_else(|| damaged("a group lacks it"))?;
            check_pages(file, chunk, rows as u64).map_err(|why| damaged(&why))?;
            if chunk.column_type() != chunk.column_descr().physical_type() {
                return Err(damaged("a group holds it in another type"));
            }
            let pages = || reader.get_row_group(i)?.get_column_page_reader(self.leaf);
            let pages = CheckedPages::new(pages().map_err(|e| failed(reading, &e))?, chunk);
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
