//! Apache Parquet: columns of single values, a row at a time, read by the parquet crate.
//!
//! Source: `parquet-format`'s `LogicalTypes.md`.

use super::lines::{failed, open_with};
use super::server::one_line;
use super::sqlite::Frozen;
use super::{MAX_ROW_BYTES, Progress, Row, Source, SourceError, Unit, json_lines, project};
use crate::Value;
use ::parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use ::parquet::column::reader::ColumnReaderImpl;
use ::parquet::data_type::{
    BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
    Int96Type,
};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::ParquetMetaData;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};
use blindcore_numbers::parquet_checks::{CheckedPages, Flaw, check_footer, check_pages};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Rows that are unpacked at once.
const BATCH: u64 = 1024;
/// Bytes of a decimal, at most: 76 digits.
const MAX_DECIMAL_BYTES: usize = 32;
const DAMAGED: &str = "write it again";

/// The rows of a file.
pub(super) struct Parquet {
    file: SerializedFileReader<File>,
    raw: File,
    frozen: Frozen,
    origin: String,
    names: Vec<String>,
    leaves: Vec<(usize, Rule)>,
    /// The next group.
    group: usize,
    /// The columns of the group that is read, and how many of its rows are not unpacked yet, and how many are.
    cells: Vec<Box<dyn Cells>>,
    packed: u64,
    unpacked: u64,
    done: u64,
    total: u64,
    ended: bool,
}

impl Parquet {
    pub(super) fn open(path: &str, wanted: Option<&[String]>) -> Result<Self, SourceError> {
        guarded(path, || Self::open_unguarded(path, wanted))
    }

    fn open_unguarded(path: &str, wanted: Option<&[String]>) -> Result<Self, SourceError> {
        let refused = |error| failed(path, error);
        let damaged = |error: &ParquetError| damaged(path, error);
        let raw = open_with(Path::new(path), 0).map_err(refused)?;
        let metadata = raw.metadata().map_err(refused)?;
        if !metadata.is_file() {
            return Err(unfit(path, "it is not a file", "name a file"));
        }
        let frozen = Frozen::new(Path::new(path)).map_err(refused)?;
        check_footer(&raw).map_err(|flaw| match flaw {
            Flaw::Unread(error) => damaged(&error),
            Flaw::Unfit { why, remedy } => unfit(path, why, remedy),
        })?;
        let file = SerializedFileReader::new(raw.try_clone().map_err(refused)?).map_err(|e| damaged(&e))?;
        let (names, leaves) = leaves(path, file.metadata(), wanted)?;
        let mut total = 0u64;
        for group in file.metadata().row_groups() {
            let rows = u64::try_from(group.num_rows()).ok().and_then(|rows| total.checked_add(rows));
            total = rows.ok_or_else(|| {
                unfit(path, format!("a group of {} rows is impossible", group.num_rows()), DAMAGED)
            })?;
        }
        Ok(Self {
            file,
            raw,
            frozen,
            origin: path.to_owned(),
            names,
            leaves,
            group: 0,
            cells: Vec::new(),
            packed: 0,
            unpacked: 0,
            done: 0,
            total,
            ended: false,
        })
    }

    /// Unpacks more rows; false at the end.
    fn more(&mut self) -> Result<bool, SourceError> {
        while self.packed == 0 {
            if self.group == self.file.num_row_groups() {
                return Ok(false);
            }
            self.open_group()?;
        }
        let most = self.packed.min(BATCH);
        for (cells, name) in self.cells.iter_mut().zip(&self.names) {
            let read = cells.unpack(most as usize).map_err(|error| damaged(&self.origin, &error))?;
            if read as u64 != most {
                let why = format!("column {name:?} ends before row {}", self.done + most);
                return Err(unfit(&self.origin, why, DAMAGED));
            }
        }
        (self.packed, self.unpacked) = (self.packed - most, most);
        Ok(true)
    }

    fn open_group(&mut self) -> Result<(), SourceError> {
        let group = self.file.metadata().row_group(self.group);
        let rows = group.num_rows().cast_unsigned(); // was checked
        self.cells.clear();
        for ((leaf, rule), name) in self.leaves.iter().zip(&self.names) {
            let bad = |why: &str| unfit(&self.origin, format!("column {name:?}: {why}"), DAMAGED);
            let chunk = group.columns().get(*leaf).ok_or_else(|| bad("a group lacks it"))?;
            check_pages(&self.raw, chunk, rows).map_err(|why| bad(&why))?;
            if chunk.column_type() != chunk.column_descr().physical_type() {
                return Err(bad("a group holds it in another type"));
            }
            let pages =
                self.file.get_row_group(self.group).and_then(|group| group.get_column_page_reader(*leaf));
            let pages = pages.map_err(|error| damaged(&self.origin, &error))?;
            self.cells.push(rule.cells(CheckedPages::new(pages, chunk), chunk.column_descr_ptr()));
        }
        self.group += 1;
        self.packed = rows;
        Ok(())
    }

    fn row(&mut self) -> Result<Option<Row>, SourceError> {
        if self.unpacked == 0 && !self.more()? {
            if !self.frozen.still() {
                let remedy = "read it again when nothing writes to it, or read a copy";
                return Err(unfit(&self.origin, "the file was written to while it was read", remedy));
            }
            return Ok(None);
        }
        self.unpacked -= 1;
        self.done += 1;
        let flaw = |why, remedy| SourceError::Row {
            origin: self.origin.clone(),
            unit: "row",
            line: self.done,
            why,
            remedy,
        };
        let (mut values, mut bytes) = (Vec::with_capacity(self.cells.len()), 0);
        for (cells, name) in self.cells.iter_mut().zip(&self.names) {
            let value = cells.next().map_err(|why| {
                flaw(format!("column {name:?}: {why}"), "mend the row, or leave the column out")
            })?;
            if let Value::Text(text) = &value {
                bytes += text.len();
            } else if let Value::Blob(blob) = &value {
                bytes += blob.len();
            }
            if bytes > MAX_ROW_BYTES {
                let why = format!("it is over the limit of {MAX_ROW_BYTES} B for a row");
                return Err(flaw(why, "leave the largest column out, or split it"));
            }
            values.push(value);
        }
        Ok(Some(Row { line: self.done, values }))
    }
}

impl Source for Parquet {
    fn columns(&self) -> &[String] {
        &self.names
    }

    fn next_row(&mut self) -> Result<Option<Row>, SourceError> {
        if self.ended {
            return Ok(None);
        }
        let origin = self.origin.clone();
        // After a panic nothing of the file is looked at again.
        let row = guarded(&origin, || self.row());
        self.ended = !matches!(row, Ok(Some(_)));
        row
    }

    fn progress(&self) -> Progress {
        Progress { done: self.done, total: Some(self.total), unit: Unit::Rows }
    }
}

/// Ends a decoder's panic on a page that doesn't hold what it says: those that are known are refused before.
fn guarded<T>(origin: &str, read: impl FnOnce() -> Result<T, SourceError>) -> Result<T, SourceError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(unfit(origin, "it is damaged in a way that its decoder doesn't bear", DAMAGED))
    })
}

fn unfit(origin: &str, why: impl Into<String>, remedy: &str) -> SourceError {
    SourceError::Unfit { origin: origin.to_owned(), why: why.into(), remedy: remedy.to_owned() }
}

/// What the library says, on one line.
fn damaged(origin: &str, error: &ParquetError) -> SourceError {
    let text = one_line(&error.to_string());
    let text = text.trim_start_matches("Parquet error: ").trim_start_matches("EOF: ");
    let short: String = text.chars().take(200).collect();
    unfit(origin, format!("it is damaged, or of a kind that isn't read: {short}"), DAMAGED)
}

/// The columns that are wanted: names, and where their values are with what is made of them.
type Leaves = (Vec<String>, Vec<(usize, Rule)>);

fn leaves(path: &str, metadata: &ParquetMetaData, wanted: Option<&[String]>) -> Result<Leaves, SourceError> {
    let schema = metadata.file_metadata().schema_descr();
    let root = schema.root_schema();
    let fields = if root.is_group() { root.get_fields() } else { &[] };
    let all: Vec<String> = fields.iter().map(|field| field.name().to_owned()).collect();
    let (mut names, mut leaves) = (Vec::new(), Vec::new());
    for position in project(path, &all, wanted)? {
        let (name, field) = (&all[position], &fields[position]);
        let info = field.get_basic_info();
        let repeated = !info.has_repetition() || info.repetition() == Repetition::REPEATED;
        let leaf = (0..schema.num_columns()).find(|leaf| schema.get_column_root_idx(*leaf) == position);
        let Some(leaf) = leaf.filter(|_| field.is_primitive() && !repeated) else {
            return Err(unfit(
                path,
                format!("column {name:?} is nested"),
                "choose columns of single values with --value",
            ));
        };
        let rule = Rule::of(&schema.column(leaf)).map_err(|kind| {
            let why = format!("column {name:?} is of type {kind}, which has no rule here");
            unfit(path, why, "leave it out with --value, or write it as a string")
        })?;
        names.push(name.clone());
        leaves.push((leaf, rule));
    }
    Ok((names, leaves))
}

/// What becomes of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Bool,
    Int,
    Unsigned,
    Half,
    Real,
    Text,
    Json,
    Blob,
    Uuid,
    /// With this many digits behind the point.
    Decimal(usize),
    Date,
    /// This many in a second.
    Time(i64),
    /// This many in a second, and whether in UTC.
    Timestamp(i64, bool),
    Legacy,
}

impl Rule {
    /// The rule for a column, or its type's name where there is none.
    fn of(column: &ColumnDescriptor) -> Result<Self, String> {
        let physical = column.physical_type();
        let integer = matches!(physical, Physical::INT32 | Physical::INT64);
        let bytes = matches!(physical, Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY);
        let per_second = |unit: &TimeUnit| match unit {
            TimeUnit::MILLIS => 1000,
            TimeUnit::MICROS => 1_000_000,
            TimeUnit::NANOS => 1_000_000_000,
        };
        let decimal = |scale: i32| match usize::try_from(scale) {
            Ok(scale) if scale <= 255 && (integer || bytes) => Ok(Rule::Decimal(scale)),
            _ => Err(format!("DECIMAL of scale {scale}")),
        };
        if let Some(logical) = column.logical_type_ref() {
            return match logical {
                LogicalType::String | LogicalType::Enum if bytes => Ok(Rule::Text),
                LogicalType::Json if bytes => Ok(Rule::Json),
                LogicalType::Bson if bytes => Ok(Rule::Blob),
                LogicalType::Uuid if bytes && column.type_length() == 16 => Ok(Rule::Uuid),
                LogicalType::Decimal(kind) => decimal(kind.scale),
                LogicalType::Integer(kind) if integer => {
                    Ok(if kind.is_signed { Rule::Int } else { Rule::Unsigned })
                }
                LogicalType::Float16 if bytes && column.type_length() == 2 => Ok(Rule::Half),
                LogicalType::Date if physical == Physical::INT32 => Ok(Rule::Date),
                LogicalType::Time(kind) if integer => Ok(Rule::Time(per_second(&kind.unit))),
                LogicalType::Timestamp(kind) if integer => {
                    Ok(Rule::Timestamp(per_second(&kind.unit), kind.is_adjusted_to_u_t_c))
                }
                LogicalType::Unknown => Self::plain(physical),
                other => Err(format!("{other:?}")
                    .to_uppercase()
                    .split(['(', ' ', '{'])
                    .next()
                    .unwrap_or("")
                    .to_owned()),
            };
        }
        match column.converted_type() {
            ConvertedType::NONE => Self::plain(physical),
            ConvertedType::UTF8 | ConvertedType::ENUM if bytes => Ok(Rule::Text),
            ConvertedType::JSON if bytes => Ok(Rule::Json),
            ConvertedType::BSON if bytes => Ok(Rule::Blob),
            ConvertedType::DECIMAL => decimal(column.type_scale()),
            ConvertedType::DATE if physical == Physical::INT32 => Ok(Rule::Date),
            ConvertedType::TIME_MILLIS if integer => Ok(Rule::Time(1000)),
            ConvertedType::TIME_MICROS if integer => Ok(Rule::Time(1_000_000)),
            // The older types are in UTC by their definition.
            ConvertedType::TIMESTAMP_MILLIS if integer => Ok(Rule::Timestamp(1000, true)),
            ConvertedType::TIMESTAMP_MICROS if integer => Ok(Rule::Timestamp(1_000_000, true)),
            ConvertedType::INT_8 | ConvertedType::INT_16 | ConvertedType::INT_32 | ConvertedType::INT_64
                if integer =>
            {
                Ok(Rule::Int)
            }
            ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64
                if integer =>
            {
                Ok(Rule::Unsigned)
            }
            other => Err(other.to_string()),
        }
    }

    /// Of a type that nothing more is said of.
    fn plain(physical: Physical) -> Result<Self, String> {
        Ok(match physical {
            Physical::BOOLEAN => Rule::Bool,
            Physical::INT32 | Physical::INT64 => Rule::Int,
            Physical::INT96 => Rule::Legacy,
            Physical::FLOAT | Physical::DOUBLE => Rule::Real,
            Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY => Rule::Blob,
        })
    }

    /// The values of a chunk.
    fn cells(self, pages: CheckedPages, column: ColumnDescPtr) -> Box<dyn Cells> {
        let physical = column.physical_type();
        let reader = Reading { pages, column };
        match physical {
            Physical::BOOLEAN => reader.cells::<BoolType>(|b| Ok(Value::Bool(*b))),
            Physical::INT32 => match self {
                Rule::Unsigned => reader.cells::<Int32Type>(|n| Ok(Value::Int(n.cast_unsigned().into()))),
                _ => reader.cells::<Int32Type>(move |n| self.integer(i64::from(*n))),
            },
            Physical::INT64 => reader.cells::<Int64Type>(move |n| self.integer(*n)),
            Physical::INT96 => reader.cells::<Int96Type>(|n| {
                let [low, high, day] = *n.data() else { return Err("it is not a time".into()) };
                let nanos = i64::from(high) << 32 | i64::from(low);
                // Days since noon of 24 November 4714 BC.
                let seconds = (i64::from(day) - 2_440_588) * 86_400 + nanos.div_euclid(1_000_000_000);
                Ok(Value::Text(timestamp(seconds, nanos.rem_euclid(1_000_000_000), 1_000_000_000)))
            }),
            Physical::FLOAT => {
                reader.cells::<FloatType>(|x| Ok(Value::Real(x.to_string().parse().unwrap_or(f64::from(*x)))))
            }
            Physical::DOUBLE => reader.cells::<DoubleType>(|x| Ok(Value::Real(*x))),
            Physical::BYTE_ARRAY => reader.cells::<ByteArrayType>(move |bytes| self.bytes(bytes.data())),
            Physical::FIXED_LEN_BYTE_ARRAY => {
                reader.cells::<FixedLenByteArrayType>(move |bytes| self.bytes(bytes.data()))
            }
        }
    }

    fn integer(self, n: i64) -> Result<Value, String> {
        const DAY: i64 = 86_400;
        Ok(match self {
            Rule::Unsigned => Value::from_json(n.cast_unsigned().into()),
            Rule::Decimal(scale) => Value::Text(decimal(&n.to_be_bytes(), scale)?),
            Rule::Date => Value::Text(date(n)),
            Rule::Time(unit) => match n.div_euclid(unit) {
                seconds @ 0..DAY => Value::Text(clock(seconds, n.rem_euclid(unit), unit)),
                _ => return Err(format!("{n} is not a time of a day")),
            },
            Rule::Timestamp(unit, utc) => {
                let text = timestamp(n.div_euclid(unit), n.rem_euclid(unit), unit);
                Value::Text(if utc { text + "+00" } else { text })
            }
            _ => Value::Int(n),
        })
    }

    fn bytes(self, bytes: &[u8]) -> Result<Value, String> {
        let text = || str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned());
        Ok(match self {
            Rule::Text => Value::Text(text()?.to_owned()),
            Rule::Json => json_lines::value(text()?)?,
            Rule::Decimal(scale) => Value::Text(decimal(bytes, scale)?),
            Rule::Uuid if bytes.len() == 16 => {
                let digits: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
                let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
                Value::Text(parts.join("-"))
            }
            Rule::Half if bytes.len() == 2 => Value::Real(half(u16::from_le_bytes([bytes[0], bytes[1]]))),
            _ => Value::Blob(bytes.to_vec()),
        })
    }
}

/// The digits of an integer in two's complement, highest byte first, with this many behind the point.
fn decimal(bytes: &[u8], scale: usize) -> Result<String, String> {
    if bytes.is_empty() || bytes.len() > MAX_DECIMAL_BYTES {
        return Err(format!("a decimal of {} B is over the limit of {MAX_DECIMAL_BYTES} B", bytes.len()));
    }
    let negative = bytes[0] >= 0x80;
    let mut magnitude = bytes.to_vec();
    if negative {
        let mut carry = true;
        for byte in magnitude.iter_mut().rev() {
            (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
        }
    }
    let mut digits = Vec::new();
    while magnitude.iter().any(|b| *b != 0) || digits.len() <= scale {
        let mut rest = 0u16;
        for byte in &mut magnitude {
            let value = rest << 8 | u16::from(*byte);
            (*byte, rest) = ((value / 10) as u8, value % 10);
        }
        digits.push(b'0' + rest as u8);
        if digits.len() == scale {
            digits.push(b'.');
        }
    }
    if scale > 0 && digits.last() == Some(&b'.') {
        digits.push(b'0');
    }
    if negative {
        digits.push(b'-');
    }
    Ok(digits.iter().rev().map(|b| char::from(*b)).collect())
}

/// A number of binary16. Source: IEEE 754-2019, section 3.4.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

/// The day that comes this many days after 1 January 1970. Source: H. Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", `civil_from_days`.
fn date(days: i64) -> String {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153; // from March on
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = 400 * era + year + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// A time of a day, with the digits of its fraction that are needed.
fn clock(seconds: i64, fraction: i64, unit: i64) -> String {
    let text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction == 0 {
        return text;
    }
    let digits = unit.ilog10() as usize;
    format!("{text}.{}", format!("{fraction:0digits$}").trim_end_matches('0'))
}

fn timestamp(seconds: i64, fraction: i64, unit: i64) -> String {
    format!("{} {}", date(seconds.div_euclid(86_400)), clock(seconds.rem_euclid(86_400), fraction, unit))
}

/// What reading a chunk takes.
struct Reading {
    pages: CheckedPages,
    column: ColumnDescPtr,
}

impl Reading {
    fn cells<D: DataType>(
        self,
        value: impl Fn(&D::T) -> Result<Value, String> + Send + 'static,
    ) -> Box<dyn Cells> {
        Box::new(CellsOf::<D, _> {
            nullable: self.column.max_def_level() > 0,
            reader: ColumnReaderImpl::new(self.column, Box::new(self.pages)),
            values: Vec::new(),
            levels: Vec::new(),
            row: 0,
            at: 0,
            value,
        })
    }
}

/// The values of a column in a group.
trait Cells: Send {
    /// Unpacks this many rows; says how many there were.
    fn unpack(&mut self, rows: usize) -> Result<usize, ParquetError>;

    /// The next value of those unpacked.
    fn next(&mut self) -> Result<Value, String>;
}

struct CellsOf<D: DataType, F> {
    nullable: bool,
    reader: ColumnReaderImpl<D>,
    values: Vec<D::T>,
    levels: Vec<i16>,
    row: usize,
    at: usize,
    value: F,
}

impl<D: DataType, F: Fn(&D::T) -> Result<Value, String> + Send> Cells for CellsOf<D, F> {
    fn unpack(&mut self, rows: usize) -> Result<usize, ParquetError> {
        self.values.clear();
        self.levels.clear();
        (self.row, self.at) = (0, 0);
        let (read, values, _) =
            self.reader.read_records(rows, Some(&mut self.levels), None, &mut self.values)?;
        let there = if self.nullable { self.levels.iter().filter(|level| **level > 0).count() } else { read };
        if (self.nullable && self.levels.len() != read) || there != values || values != self.values.len() {
            return Err(ParquetError::General("levels and values don't fit".into()));
        }
        Ok(read)
    }

    fn next(&mut self) -> Result<Value, String> {
        let there = !self.nullable || self.levels.get(self.row).is_some_and(|level| *level > 0);
        self.row += 1;
        if !there {
            return Ok(Value::Null);
        }
        self.at += 1;
        self.values.get(self.at - 1).map_or_else(|| Err("it is missing".into()), &self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceSpec;
    use ::parquet::basic::{Compression, Encoding};
    use ::parquet::column::writer::ColumnWriter;
    use ::parquet::data_type::{ByteArray, Int96};
    use ::parquet::file::properties::{WriterProperties, WriterVersion};
    use ::parquet::file::writer::SerializedFileWriter;
    use ::parquet::schema::parser::parse_message_type;
    use ::parquet::schema::types::ColumnPath;
    use proptest::prelude::*;
    use std::fs;
    use tempfile::TempDir;

    /// A value to write, of the physical type that its column has.
    #[derive(Clone, Debug)]
    enum Raw {
        Bool(bool),
        Int(i64),
        Legacy(u32, u64),
        Real(f64),
        Bytes(Vec<u8>),
    }

    /// Writes columns of a schema: for each as many values, or none, as there are rows.
    fn write(
        path: &Path,
        schema: &str,
        columns: &[Vec<Option<Raw>>],
        group: usize,
        properties: WriterProperties,
    ) {
        let schema = parse_message_type(&format!("message t {{ {schema} }}")).unwrap();
        let mut file =
            SerializedFileWriter::new(File::create(path).unwrap(), schema.into(), properties.into()).unwrap();
        let rows = columns[0].len();
        for start in (0..rows).step_by(group) {
            let mut next = file.next_row_group().unwrap();
            for column in columns {
                let values = &column[start..rows.min(start + group)];
                let levels: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
                let there: Vec<Raw> = values.iter().flatten().cloned().collect();
                let mut writer = next.next_column().unwrap().unwrap();
                macro_rules! put {
                    ($writer:expr, $pattern:pat => $value:expr) => {{
                        let values: Vec<_> = there
                            .iter()
                            .map(|raw| match raw {
                                $pattern => $value,
                                _ => panic!("{raw:?}"),
                            })
                            .collect();
                        $writer.write_batch(&values, Some(&levels), None).unwrap();
                    }};
                }
                match writer.untyped() {
                    ColumnWriter::BoolColumnWriter(w) => put!(w, Raw::Bool(b) => *b),
                    ColumnWriter::Int32ColumnWriter(w) => put!(w, Raw::Int(n) => *n as i32),
                    ColumnWriter::Int64ColumnWriter(w) => put!(w, Raw::Int(n) => *n),
                    ColumnWriter::Int96ColumnWriter(w) => put!(w, Raw::Legacy(day, nanos) => {
                        let mut value = Int96::new();
                        value.set_data(*nanos as u32, (*nanos >> 32) as u32, *day);
                        value
                    }),
                    ColumnWriter::FloatColumnWriter(w) => put!(w, Raw::Real(x) => *x as f32),
                    ColumnWriter::DoubleColumnWriter(w) => put!(w, Raw::Real(x) => *x),
                    ColumnWriter::ByteArrayColumnWriter(w) => {
                        put!(w, Raw::Bytes(b) => ByteArray::from(b.clone()))
                    }
                    ColumnWriter::FixedLenByteArrayColumnWriter(w) => {
                        put!(w, Raw::Bytes(b) => ByteArray::from(b.clone()).into());
                    }
                }
                writer.close().unwrap();
            }
            next.close().unwrap();
        }
        file.close().unwrap();
    }

    fn read(path: &Path, wanted: Option<&[&str]>) -> Result<Vec<Vec<Value>>, SourceError> {
        let wanted: Option<Vec<String>> = wanted.map(|names| names.iter().map(|n| (*n).to_owned()).collect());
        let mut source = SourceSpec::parse(path.to_str().unwrap())?.open(wanted.as_deref())?;
        let mut rows = Vec::new();
        while let Some(row) = source.next_row()? {
            rows.push(row.values);
            assert_eq!(row.line, rows.len() as u64);
        }
        assert_eq!(source.progress().total, Some(rows.len() as u64));
        Ok(rows)
    }

    fn folder() -> (TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        (dir, path)
    }

    #[test]
    fn every_type_is_read() {
        let text = |text: &str| Value::Text(text.into());
        let bytes = |bytes: &[u8]| Raw::Bytes(bytes.to_vec());
        let cases = [
            ("boolean", "", Raw::Bool(true), Value::Bool(true)),
            ("int32", "", Raw::Int(-7), Value::Int(-7)),
            ("int64", "", Raw::Int(i64::MIN), Value::Int(i64::MIN)),
            ("int32", "(INTEGER(8, true))", Raw::Int(-7), Value::Int(-7)),
            ("int32", "(INTEGER(32, false))", Raw::Int(-1), Value::Int(u32::MAX.into())),
            ("int64", "(UINT_64)", Raw::Int(-1), Value::Json(u64::MAX.into())),
            ("float", "", Raw::Real(0.1), Value::Real(0.1)),
            ("double", "", Raw::Real(1e300), Value::Real(1e300)),
            ("fixed_len_byte_array(2)", "(FLOAT16)", bytes(&[0, 0xbe]), Value::Real(-1.5)),
            ("binary", "(STRING)", bytes("é".as_bytes()), text("é")),
            ("binary", "(UTF8)", bytes(b""), text("")),
            ("binary", "(ENUM)", bytes(b"red"), text("red")),
            ("binary", "(JSON)", bytes(b"[1]"), Value::Json(serde_json::json!([1]))),
            ("binary", "(BSON)", bytes(b"\0"), Value::Blob(vec![0])),
            ("binary", "", bytes(&[255, 0]), Value::Blob(vec![255, 0])),
            ("fixed_len_byte_array(2)", "", bytes(&[1, 2]), Value::Blob(vec![1, 2])),
            (
                "fixed_len_byte_array(16)",
                "(UUID)",
                bytes(&[0xab; 16]),
                text("abababab-abab-abab-abab-abababababab"),
            ),
            ("int32", "(DECIMAL(9, 2))", Raw::Int(-5), text("-0.05")),
            ("int64", "(DECIMAL(18, 0))", Raw::Int(120), text("120")),
            ("binary", "(DECIMAL(30, 3))", bytes(&[0x80, 0, 0]), text("-8388.608")),
            ("fixed_len_byte_array(3)", "(DECIMAL(5, 5))", bytes(&[0, 1, 0]), text("0.00256")),
            ("int32", "(DATE)", Raw::Int(-1), text("1969-12-31")),
            ("int32", "(TIME(MILLIS, true))", Raw::Int(3_661_050), text("01:01:01.05")),
            ("int64", "(TIME(NANOS, false))", Raw::Int(1), text("00:00:00.000000001")),
            (
                "int64",
                "(TIMESTAMP(MICROS, true))",
                Raw::Int(1_709_251_199_500_000),
                text("2024-02-29 23:59:59.5+00"),
            ),
            ("int64", "(TIMESTAMP(NANOS, false))", Raw::Int(-1), text("1969-12-31 23:59:59.999999999")),
            ("int64", "(TIMESTAMP_MILLIS)", Raw::Int(0), text("1970-01-01 00:00:00+00")),
            ("int96", "", Raw::Legacy(2_460_370, 1_500_000_000), text("2024-02-29 00:00:01.5")),
        ];
        let columns: Vec<_> =
            cases.iter().map(|(_, _, raw, _)| vec![None, Some(raw.clone()), None]).collect();
        let schema = |(i, (kind, logical, ..)): (usize, &(&str, &str, Raw, Value))| {
            format!("optional {kind} c{i} {logical};")
        };
        let schema: String = cases.iter().enumerate().map(schema).collect();
        let (_dir, path) = folder();
        write(&path, &schema, &columns, 2, WriterProperties::builder().build());
        let rows = read(&path, None).unwrap();
        for (i, (kind, logical, _, expected)) in cases.iter().enumerate() {
            assert_eq!(rows[1][i], *expected, "{kind} {logical}");
            assert_eq!((&rows[0][i], &rows[2][i]), (&Value::Null, &Value::Null));
        }
        assert_eq!(read(&path, Some(&["c9", "c1"])).unwrap()[1], [text("é"), Value::Int(-7)]);
    }

    #[test]
    fn what_can_not_be_read_is_named() {
        let (_dir, path) = folder();
        let fail = |schema: &str, raw: Raw, words: &str| {
            write(&path, schema, &[vec![Some(raw)]], 9, WriterProperties::builder().build());
            let error = read(&path, None).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        };
        let bytes = |bytes: &[u8]| Raw::Bytes(bytes.to_vec());
        fail("optional binary a (UTF8);", bytes(&[255]), "row 1 of ");
        fail("optional binary a (UTF8);", bytes(&[255]), "column \"a\": it is not UTF-8; mend the row");
        fail("optional binary a (JSON);", bytes(b"{"), "column \"a\": it is not JSON");
        fail("optional int32 a (TIME(MILLIS, true));", Raw::Int(-1), "-1 is not a time of a day");
        fail(
            "optional binary a (DECIMAL(9,2));",
            bytes(&[1; 33]),
            "a decimal of 33 B is over the limit of 32 B",
        );
        fail(
            "optional fixed_len_byte_array(12) a (INTERVAL);",
            bytes(&[1; 12]),
            "column \"a\" is of type INTERVAL",
        );
        fail("optional group a { optional int32 b; }", Raw::Int(1), "column \"a\" is nested; choose columns");
        for (content, words) in [
            (&b"PAR1"[..], "it is not a Parquet file"),
            (b"id,name\n1,2\n1,2\n", "it doesn't end in PAR1"),
            (b"PAR1\xff\xff\xff\x7fPAR1", "metadata of 2147483647 B is over the limit"),
            (b"PAR1\xff\xff\0\0PAR1", "it is not a Parquet file"),
            (b"PAR1\0\0\0\0PARE", "it is encrypted"),
            (b"PAR1\0\0\0\0PAR1", "damaged"),
        ] {
            fs::write(&path, content).unwrap();
            let error = read(&path, None).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        let error = read(path.parent().unwrap().join("..").join("x.parquet").as_path(), None).unwrap_err();
        assert!(matches!(error, SourceError::Io { .. }));
    }

    #[test]
    fn a_file_that_is_written_to_meanwhile_is_an_error() {
        let (_dir, path) = folder();
        write(
            &path,
            "optional int32 a;",
            &[vec![Some(Raw::Int(1)); 10]],
            5,
            WriterProperties::builder().build(),
        );
        let mut source = SourceSpec::parse(path.to_str().unwrap()).unwrap().open(None).unwrap();
        assert!(source.next_row().unwrap().is_some());
        let longer = [fs::read(&path).unwrap(), b"x".to_vec()].concat();
        fs::write(&path, longer).unwrap();
        let error = (0..20).find_map(|_| source.next_row().err()).unwrap().to_string();
        assert!(error.contains("written to while it was read"), "{error}");
        assert!(source.next_row().unwrap().is_none());
    }

    /// Every way to write strings, numbers and nulls.
    fn ways() -> Vec<WriterProperties> {
        let mut ways = Vec::new();
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for compression in [
                Compression::UNCOMPRESSED,
                Compression::SNAPPY,
                Compression::LZ4_RAW,
                Compression::ZSTD(Default::default()),
            ] {
                let builder =
                    WriterProperties::builder().set_writer_version(version).set_compression(compression);
                ways.push(builder.set_data_page_row_count_limit(7).set_write_batch_size(4).build());
            }
            for encoding in [Encoding::PLAIN, Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY] {
                let builder =
                    WriterProperties::builder().set_writer_version(version).set_dictionary_enabled(false);
                let builder = builder.set_column_encoding(ColumnPath::from("t"), encoding);
                let ints = if encoding == Encoding::PLAIN {
                    Encoding::BYTE_STREAM_SPLIT
                } else {
                    Encoding::DELTA_BINARY_PACKED
                };
                ways.push(builder.set_column_encoding(ColumnPath::from("n"), ints).build());
            }
        }
        ways
    }

    fn sample() -> (Vec<Vec<Option<Raw>>>, Vec<Vec<Value>>) {
        let rows = 0..2500i64;
        let n = rows.clone().map(|i| (i % 3 > 0).then_some(Raw::Int(i * i % 1009)));
        let text = |i: i64| format!("town {} {}", i % 40, "x".repeat(i as usize % 11));
        let t = rows.clone().map(|i| (i % 5 > 0).then(|| Raw::Bytes(text(i).into_bytes())));
        let expected = rows.clone().map(|i| {
            let n = if i % 3 > 0 { Value::Int(i * i % 1009) } else { Value::Null };
            vec![n, if i % 5 > 0 { Value::Text(text(i)) } else { Value::Null }]
        });
        (vec![n.collect(), t.collect()], expected.collect())
    }

    #[test]
    fn every_encoding_and_compression_is_read() {
        let (columns, expected) = sample();
        let (_dir, path) = folder();
        for way in ways() {
            write(&path, "optional int64 n; optional binary t (UTF8);", &columns, 1100, way.clone());
            assert!(read(&path, None).unwrap() == expected, "{way:?}");
        }
    }

    #[test]
    fn damage_is_an_error_or_other_values_and_never_a_panic() {
        let (columns, _) = sample();
        let columns: Vec<_> = columns.iter().map(|column| column[..60].to_vec()).collect();
        let (_dir, path) = folder();
        for (i, way) in ways().into_iter().enumerate() {
            write(&path, "optional int64 n; optional binary t (UTF8);", &columns, 40, way);
            let good = fs::read(&path).unwrap();
            for at in (i..good.len()).step_by(43) {
                let mut bad = good.clone();
                bad[at] ^= 1 << (at % 8);
                fs::write(&path, &bad).unwrap();
                if let Err(error) = read_loosely(&path) {
                    assert!(!error.to_string().contains("doesn't bear"), "byte {at}: {error}");
                }
                fs::write(&path, &good[..at]).unwrap();
                assert!(read_loosely(&path).is_err());
            }
        }
    }

    fn read_loosely(path: &Path) -> Result<(), SourceError> {
        let mut source = SourceSpec::parse(path.to_str().unwrap())?.open(None)?;
        while source.next_row()?.is_some() {}
        Ok(())
    }

    proptest! {
        #[test]
        fn decimals_are_their_digits(n: i64, scale in 0usize..25) {
            let text = decimal(&n.to_be_bytes(), scale).unwrap();
            prop_assert_eq!(&decimal(&i128::from(n).to_be_bytes(), scale).unwrap(), &text);
            let (sign, digits) = text.strip_prefix('-').map_or((1, text.as_str()), |digits| (-1, digits));
            let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
            prop_assert_eq!(part.len(), scale);
            prop_assert!(whole == "0" || !whole.starts_with('0'));
            prop_assert_eq!(sign * format!("{whole}{part}").parse::<i128>().unwrap(), i128::from(n));
        }

        #[test]
        fn dates_follow_each_other(day in -800_000i64..800_000) {
            let (today, tomorrow) = (date(day), date(day + 1));
            let part = |text: &str| text.rsplit('-').next().unwrap().parse::<i64>().unwrap();
            prop_assert!(part(&tomorrow) == part(&today) + 1 || part(&tomorrow) == 1);
            prop_assert!(today < tomorrow || day < -719_000);
        }
    }
}
