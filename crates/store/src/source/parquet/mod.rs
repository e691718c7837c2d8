//! Apache Parquet: columns of single values, a row at a time, read by the parquet crate.
//!
//! Source: `parquet-format`'s `LogicalTypes.md`.

mod columns;
mod text;

use self::columns::{Cells, Rule};
use super::lines::{failed, open_with};
use super::server::one_line;
use super::sqlite::Frozen;
use super::{MAX_ROW_BYTES, Position, Row, Source, SourceError, project};
use crate::Value;
use ::parquet::basic::Repetition;
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::ParquetMetaData;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use blindcore_numbers::parquet_checks::{
    CheckedPages, ENCRYPTED, ENCRYPTED_REMEDY, Flaw, check_footer, check_pages,
};
use blindcore_units::Unit;
use blindcore_wire::KeyType;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Rows that are unpacked at once.
const BATCH: u64 = 1024;
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
        let encrypted = check_footer(&raw).map_err(|flaw| match flaw {
            Flaw::Unread(error) => damaged(&error),
            Flaw::Unfit { why, remedy } => unfit(path, why, remedy),
        })?;
        let file = SerializedFileReader::new(raw.try_clone().map_err(refused)?).map_err(|e| damaged(&e))?;
        let (names, leaves) = leaves(path, file.metadata(), wanted)?;
        if let Some(i) = leaves.iter().position(|(leaf, _)| encrypted.contains(leaf)) {
            return Err(unfit(path, format!("column {:?}: {ENCRYPTED}", names[i]), ENCRYPTED_REMEDY));
        }
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

    fn key_type(&self, column: usize) -> Option<KeyType> {
        self.leaves[column].1.key_type()
    }

    fn position(&self) -> Position {
        Position { done: self.done, total: Some(self.total), unit: Unit::Items }
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

#[cfg(test)]
mod tests {
    use super::text::{date, decimal};
    use super::*;
    use crate::SourceSpec;
    use ::parquet::basic::{Compression, Encoding};
    use ::parquet::column::writer::ColumnWriter;
    use ::parquet::data_type::{ByteArray, Int96};
    use ::parquet::file::metadata::ParquetMetaDataWriter;
    use ::parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
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
        assert_eq!(source.position().total, Some(rows.len() as u64));
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
        for count in [0, 33] {
            let said = format!("a decimal of {count} B is outside 1 to 32 B");
            fail("optional binary a (DECIMAL(9,2));", bytes(&vec![1; count]), &said);
        }
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
                Compression::GZIP(Default::default()),
                Compression::BROTLI(Default::default()),
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
    fn a_page_that_does_not_fit_its_checksum_is_an_error() {
        let (_dir, path) = folder();
        let column = vec![Some(Raw::Bytes(b"the same text".to_vec())); 3];
        let plain = WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_offset_index_disabled(true)
            .set_statistics_enabled(EnabledStatistics::None);
        write(&path, "optional binary t (UTF8);", &[column], 9, plain.build());
        // The library's writer gives pages no checksum: here one is put into the header of the only page.
        let file = fs::read(&path).unwrap();
        let metadata = SerializedFileReader::new(File::open(&path).unwrap()).unwrap().metadata().clone();
        let group = metadata.row_group(0).clone();
        let page = &file[4..4 + group.column(0).compressed_size() as usize];
        let data = page.windows(4).position(|w| w == [13, 0, 0, 0]).unwrap();
        // Three integers, and then the structure that is field 5.
        let struct_at =
            (0..3).fold(0, |at, _| at + 2 + page[at + 1..].iter().position(|b| *b < 0x80).unwrap());
        assert_eq!(page[struct_at], 0x2c);
        let levels = 6; // before the values, of an optional column
        let crc = crc32fast::hash(&page[data - levels..]).cast_signed();
        let mut zigzag = (crc << 1 ^ crc >> 31).cast_unsigned();
        let mut new = [b"PAR1", &page[..struct_at], &[0x15]].concat();
        while zigzag > 0x7f {
            new.push(zigzag as u8 | 0x80);
            zigzag >>= 7;
        }
        new.extend([&[zigzag as u8, 0x1c], &page[struct_at + 1..]].concat());
        let size = new.len() as i64 - 4;
        let chunk = group.column(0).clone().into_builder();
        let chunk = chunk.set_total_compressed_size(size).set_total_uncompressed_size(size).build().unwrap();
        let group = group.into_builder().set_column_metadata(vec![chunk]).build().unwrap();
        let metadata = metadata.into_builder().set_row_groups(vec![group]).build();
        ParquetMetaDataWriter::new(&mut new, &metadata).finish().unwrap();
        fs::write(&path, &new).unwrap();
        assert_eq!(read(&path, None).unwrap()[2], [Value::Text("the same text".into())]);
        let at = new.windows(4).position(|w| w == b"same").unwrap();
        new[at] ^= 1;
        fs::write(&path, &new).unwrap();
        let error = read(&path, None).unwrap_err().to_string();
        assert!(error.contains("checksum mismatch"), "{error}");
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
            // Four digits, as ISO 8601 has them, before the year 0 too.
            let year = today.strip_prefix('-').unwrap_or(&today).split('-').next().unwrap();
            prop_assert_eq!(year.len(), 4);
        }
    }
}
