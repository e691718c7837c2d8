//! Columns: what becomes of their values, and the values of a group one by one.

use super::super::json_lines;
use super::text::{clock, date, decimal, half, timestamp};
use crate::Value;
use ::parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use ::parquet::column::reader::ColumnReaderImpl;
use ::parquet::data_type::{
    BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
    Int96Type,
};
use ::parquet::errors::ParquetError;
use ::parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};
use blindcore_numbers::parquet_checks::CheckedPages;
use blindcore_wire::KeyType;

/// What becomes of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
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
    pub(super) fn of(column: &ColumnDescriptor) -> Result<Self, String> {
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

    /// The one form of its values as keys.
    pub(super) fn key_type(self) -> Option<KeyType> {
        match self {
            Rule::Decimal(_) => Some(KeyType::Decimal),
            Rule::Uuid => Some(KeyType::Uuid),
            Rule::Timestamp(_, true) => Some(KeyType::Instant),
            Rule::Timestamp(_, false) | Rule::Legacy => Some(KeyType::Timestamp),
            _ => None,
        }
    }

    /// The values of a chunk.
    pub(super) fn cells(self, pages: CheckedPages, column: ColumnDescPtr) -> Box<dyn Cells> {
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
pub(super) trait Cells: Send {
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
