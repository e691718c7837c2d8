//! Results as columns: CSV, Parquet, JSON.

use std::sync::Arc;

use anyhow::Context;
use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use serde_json::{Map, Value, json};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers from 0 to 2^63 - 1.
    Whole,
    /// Floats.
    Float,
    /// Text.
    Text,
}

/// Rows of cells as text, each empty where there is nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Names and kinds.
    pub columns: Vec<(String, Kind)>,
    /// A cell a column.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// The numbers of a column, none where there is nothing.
    ///
    /// # Panics
    /// There is no such column.
    #[must_use]
    pub fn numbers(&self, column: &str) -> Vec<Option<f64>> {
        let at = self.at(column);
        self.rows.iter().map(|row| row[at].parse().ok()).collect()
    }

    /// The cells of a column.
    ///
    /// # Panics
    /// There is no such column.
    #[must_use]
    pub fn texts(&self, column: &str) -> Vec<&str> {
        let at = self.at(column);
        self.rows.iter().map(|row| row[at].as_str()).collect()
    }

    fn at(&self, column: &str) -> usize {
        self.columns
            .iter()
            .position(|(name, _)| name == column)
            .unwrap_or_else(|| panic!("no column {column}"))
    }

    /// As CSV with a line of names.
    ///
    /// # Errors
    /// Never, into memory.
    pub fn csv(&self) -> anyhow::Result<Vec<u8>> {
        let mut out = csv::Writer::from_writer(Vec::new());
        out.write_record(self.columns.iter().map(|(name, _)| name))?;
        self.rows.iter().try_for_each(|row| out.write_record(row))?;
        out.into_inner().context("CSV can't be written into memory")
    }

    /// As Parquet: one group of rows, zstd.
    ///
    /// # Errors
    /// A cell is not a number of its column.
    pub fn parquet(&self) -> anyhow::Result<Vec<u8>> {
        let field = |(name, kind): &(String, Kind)| {
            let (physical, converted) = match kind {
                Kind::Whole => (Physical::INT64, ConvertedType::NONE),
                Kind::Float => (Physical::DOUBLE, ConvertedType::NONE),
                Kind::Text => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
            };
            let builder = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
            builder.with_converted_type(converted).build().map(Arc::new)
        };
        let fields = self.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        let schema = Arc::new(Type::group_type_builder("points").with_fields(fields).build()?);
        let compression = Compression::ZSTD(ZstdLevel::try_new(9)?);
        // A name of its own, so that files don't change with the library's version.
        let properties =
            WriterProperties::builder().set_compression(compression).set_created_by("blindcore".into());
        let mut out = Vec::new();
        let mut file = SerializedFileWriter::new(&mut out, schema, Arc::new(properties.build()))?;
        let mut group = file.next_row_group()?;
        for (at, (name, kind)) in self.columns.iter().enumerate() {
            let cells = || self.rows.iter().map(|row| row[at].as_str());
            let there: Vec<i16> = cells().map(|cell| i16::from(!cell.is_empty())).collect();
            let full = || cells().filter(|cell| !cell.is_empty());
            let mut column = group.next_column()?.context("a column for each name")?;
            let wrong = || format!("column {name} has a cell that is no number");
            match kind {
                Kind::Whole => {
                    let values =
                        full().map(str::parse).collect::<Result<Vec<i64>, _>>().with_context(wrong)?;
                    column.typed::<Int64Type>().write_batch(&values, Some(&there), None)?;
                }
                Kind::Float => {
                    let values =
                        full().map(str::parse).collect::<Result<Vec<f64>, _>>().with_context(wrong)?;
                    column.typed::<DoubleType>().write_batch(&values, Some(&there), None)?;
                }
                Kind::Text => {
                    let values: Vec<ByteArray> = full().map(ByteArray::from).collect();
                    column.typed::<ByteArrayType>().write_batch(&values, Some(&there), None)?;
                }
            }
            column.close()?;
        }
        group.close()?;
        file.close()?;
        Ok(out)
    }

    /// As a list of objects; what is not there is null.
    #[must_use]
    pub fn json(&self) -> Value {
        let cell = |(_, kind): &(String, Kind), cell: &str| match kind {
            _ if cell.is_empty() => Value::Null,
            Kind::Text => json!(cell),
            Kind::Whole => cell.parse::<u64>().map_or(Value::Null, |n| json!(n)),
            Kind::Float => cell.parse::<f64>().map_or(Value::Null, |x| json!(x)),
        };
        let object = |row: &Vec<String>| {
            let cells =
                self.columns.iter().zip(row).map(|(column, text)| (column.0.clone(), cell(column, text)));
            Value::Object(cells.collect::<Map<_, _>>())
        };
        self.rows.iter().map(object).collect()
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    #[test]
    fn parquet_holds_what_csv_holds() {
        let table = Table {
            columns: vec![("n".into(), Kind::Whole), ("x".into(), Kind::Float), ("t".into(), Kind::Text)],
            rows: vec![
                vec!["12833318209".into(), "0.1".into(), "a, b".into()],
                vec!["1".into(), String::new(), String::new()],
            ],
        };
        let bytes = table.parquet().unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes.clone())).unwrap();
        let rows: Vec<String> = reader.get_row_iter(None).unwrap().map(|r| r.unwrap().to_string()).collect();
        assert_eq!(rows[0], "{n: 12833318209, x: 0.1, t: \"a, b\"}");
        assert_eq!(rows[1], "{n: 1, x: null, t: null}");
        assert_eq!(table.parquet().unwrap(), bytes, "the same bytes each time");
        assert_eq!(
            String::from_utf8(table.csv().unwrap()).unwrap(),
            "n,x,t\n12833318209,0.1,\"a, b\"\n1,,\n"
        );
        assert_eq!(table.json()[1], json!({"n": 1, "x": null, "t": null}));
        let wrong = Table { rows: vec![vec!["x".into(), String::new(), String::new()]], ..table };
        assert!(wrong.parquet().unwrap_err().to_string().contains("column n"));
    }
}
