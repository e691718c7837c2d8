//! CSV and TSV: RFC 4180, strictly.
//!
//! The csv crate is what the tests compare with. It is not used here because it takes a quote that is never
//! closed, and text after a closing quote, for data, and puts no bound on a row.

use super::lines::Lines;
use super::{Position, Row, Rows, Source, SourceError, project};
use crate::Value;
use memchr::{memchr, memchr3};
use std::io::BufRead;
use std::ops::Range;

pub(super) struct Delimited<R> {
    records: Records<R>,
    /// How many columns the file has.
    width: usize,
    /// Where the wanted ones stand in it.
    positions: Vec<usize>,
    columns: Vec<String>,
}

impl<R: BufRead> Delimited<R> {
    pub(super) fn new(
        lines: Lines<R>,
        delimiter: u8,
        wanted: Option<&[String]>,
    ) -> Result<Self, SourceError> {
        let mut records = Records { lines, delimiter, fields: Vec::new() };
        if !records.read()? {
            return Err(records.lines.unfit("it is empty", "start it with a row of column names"));
        }
        let width = records.fields.len();
        let name = |i| Ok(records.field(i, || format!("the name of column {}", i + 1))?.to_owned());
        let header = (0..width).map(name).collect::<Result<Vec<String>, SourceError>>()?;
        let positions = project(records.lines.origin(), &header, wanted)?;
        let columns = positions.iter().map(|i| header[*i].clone()).collect();
        Ok(Self { records, width, positions, columns })
    }
}

impl<R: BufRead> Delimited<R> {
    /// Reads a row; false where there is none.
    fn read(&mut self) -> Result<bool, SourceError> {
        if !self.records.read()? {
            return Ok(false);
        }
        // Of one column, some programs write a row without a value so.
        if let (1, Some(line)) = (self.width, self.records.lines.blank()) {
            let why = "it is empty, which may be a row of this one column".to_owned();
            let remedy = "write \"\" for a row without text, or remove the line";
            return Err(self.records.lines.flaw_at(line, why, remedy));
        }
        let (got, want) = (self.records.fields.len(), self.width);
        if got != want {
            let why = format!("its fields number {got}, and the header's {want}");
            return Err(self.records.lines.flaw(why, "quote fields that hold delimiters, or mend the row"));
        }
        Ok(true)
    }

    /// A wanted value of the row.
    fn value(&self, i: usize) -> Result<&str, SourceError> {
        self.records.field(self.positions[i], || format!("column {:?}", self.columns[i]))
    }
}

impl<R: BufRead + Send> Source for Delimited<R> {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn next_row(&mut self) -> Result<Option<Row>, SourceError> {
        if !self.read()? {
            return Ok(None);
        }
        let values = (0..self.columns.len()).map(|i| Ok(Value::Text(self.value(i)?.to_owned())));
        let values = values.collect::<Result<_, SourceError>>()?;
        Ok(Some(Row { line: self.records.lines.row(), values }))
    }

    fn next_into(&mut self, rows: &mut Rows) -> Result<bool, SourceError> {
        if !self.read()? {
            return Ok(false);
        }
        // Most rows are UTF-8 from end to end, which is known sooner than of each field.
        let row = str::from_utf8(self.records.lines.raw());
        for (i, position) in self.positions.iter().enumerate() {
            let field = row.ok().and_then(|row| row.get(self.records.fields[*position].clone()));
            rows.text(field.map_or_else(|| self.value(i), Ok)?);
        }
        rows.end_row(self.records.lines.row());
        Ok(true)
    }

    fn position(&self) -> Position {
        self.records.lines.position()
    }
}

/// Rows of fields, one at a time.
struct Records<R> {
    lines: Lines<R>,
    delimiter: u8,
    /// Where the row's fields lie in its lines, unquoted.
    fields: Vec<Range<usize>>,
}

impl<R: BufRead> Records<R> {
    /// Reads a row; false where there is none.
    fn read(&mut self) -> Result<bool, SourceError> {
        self.fields.clear();
        // A line of delimiters is a row, even where they are tabs.
        if !self.lines.start_row(|line| line.iter().all(|b| matches!(b, b'\r' | b'\n')))? {
            return Ok(false);
        }
        let mut at = 0;
        loop {
            let quoted = self.lines.raw().get(at) == Some(&b'"');
            let (field, end) = if quoted { self.quoted(at + 1)? } else { self.unquoted(at)? };
            let last = match &self.lines.raw()[end..] {
                [byte, ..] if *byte == self.delimiter => false,
                b"" | b"\n" | b"\r\n" | b"\r" => true,
                _ => {
                    return Err(
                        self.flaw("text follows its closing quote", "double quotes within a quoted field")
                    );
                }
            };
            self.fields.push(field);
            if last {
                return Ok(true);
            }
            at = end + 1;
        }
    }

    /// Reads a field from behind its opening quote, over as many lines as it takes, and moves it together where
    /// quotes are doubled; gives where it lies and where its closing quote ends.
    fn quoted(&mut self, start: usize) -> Result<(Range<usize>, usize), SourceError> {
        let (mut end, mut at, mut searched) = (start, start, start);
        loop {
            let Some(quote) = memchr(b'"', &self.lines.raw()[searched..]) else {
                searched = self.lines.raw().len();
                if !self.lines.more()? {
                    return Err(
                        self.flaw("its quote is never closed", "close it, or double it to mean a quote")
                    );
                }
                continue;
            };
            let quote = searched + quote;
            let doubled = self.lines.raw().get(quote + 1) == Some(&b'"');
            let text = at..quote + usize::from(doubled);
            if at > end {
                self.lines.raw_mut().copy_within(text.clone(), end);
            }
            end += text.len();
            at = quote + 1 + usize::from(doubled);
            searched = at;
            if !doubled {
                return Ok((start..end, at));
            }
        }
    }

    /// Reads a field that starts with no quote; gives where it lies and where it ends.
    fn unquoted(&self, at: usize) -> Result<(Range<usize>, usize), SourceError> {
        let rest = &self.lines.raw()[at..];
        let end = memchr3(self.delimiter, b'\n', b'\r', rest).unwrap_or(rest.len());
        if rest[end..].first() == Some(&b'\r') && !matches!(rest[end..], [_] | [_, b'\n']) {
            return Err(
                self.flaw("a carriage return stands alone", "end lines with LF or CRLF, or quote the field")
            );
        }
        Ok((at..at + end, at + end))
    }

    /// A field of the row.
    fn field(&self, i: usize, name: impl FnOnce() -> String) -> Result<&str, SourceError> {
        str::from_utf8(&self.lines.raw()[self.fields[i].clone()])
            .map_err(|_| self.lines.flaw(format!("{} is not UTF-8", name()), "save the file as UTF-8"))
    }

    /// What is wrong with the field that would come next.
    fn flaw(&self, why: &str, remedy: &'static str) -> SourceError {
        self.lines.flaw(format!("field {}: {why}", self.fields.len() + 1), remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn open<'a>(file: &'a [u8], wanted: Option<&[&str]>) -> Result<Delimited<&'a [u8]>, SourceError> {
        let wanted: Option<Vec<String>> = wanted.map(|names| names.iter().map(|n| (*n).to_owned()).collect());
        Delimited::new(Lines::new(file, "x.csv").with_limit(100), b',', wanted.as_deref())
    }

    type Read = Vec<(u64, Vec<String>)>;

    fn texts(values: Vec<Value>) -> Vec<String> {
        let text = |value| match value {
            Value::Text(text) => text,
            other => panic!("{other:?}"),
        };
        values.into_iter().map(text).collect()
    }

    fn one_by_one(mut source: Delimited<&[u8]>) -> Result<Read, SourceError> {
        let mut rows = Vec::new();
        while let Some(Row { line, values }) = source.next_row()? {
            rows.push((line, texts(values)));
        }
        Ok(rows)
    }

    fn batched(mut source: Delimited<&[u8]>) -> Result<Read, SourceError> {
        let columns = source.columns().len();
        let mut batch = Rows::new(columns);
        while source.next_into(&mut batch)? {}
        let values = |row| crate::codec::decode_record(batch.values(row, 0..columns), columns).unwrap();
        Ok((0..batch.len()).map(|row| (batch.line(row), texts(values(row)))).collect())
    }

    /// The rows of a source, which is opened twice and read in both ways.
    fn rows<'a>(open: impl Fn() -> Result<Delimited<&'a [u8]>, SourceError>) -> Result<Read, SourceError> {
        let (one, all) = (open().and_then(one_by_one), open().and_then(batched));
        match (&one, &all) {
            (Ok(one), Ok(all)) => assert_eq!(one, all),
            (Err(one), Err(all)) => assert_eq!(one.to_string(), all.to_string()),
            _ => panic!("{one:?} one by one, {all:?} batched"),
        }
        all
    }

    fn row(line: u64, values: &[&str]) -> (u64, Vec<String>) {
        (line, values.iter().map(|v| (*v).to_owned()).collect())
    }

    #[test]
    fn every_way_to_write_a_row_is_read() {
        let file = b"\xef\xbb\xbfid,\"na\"\"me\"\r\n1,plain\n\n2,\"two\r\nlines, \"\"quoted\"\"\"\r\n\r\n3,\n,5\" pipe\n\" 6\",\"\"";
        let mut source = open(file, None).unwrap();
        assert_eq!(source.columns(), ["id", "na\"me"]);
        assert_eq!(
            rows(|| open(file, None)).unwrap(),
            [
                row(2, &["1", "plain"]),
                row(4, &["2", "two\r\nlines, \"quoted\""]),
                row(7, &["3", ""]),
                row(8, &["", "5\" pipe"]),
                row(9, &[" 6", ""]),
            ]
        );
        while source.next_row().unwrap().is_some() {}
        assert_eq!(source.position().done, file.len() as u64);
        assert!(source.next_row().unwrap().is_none());
    }

    #[test]
    fn only_wanted_columns_are_read_in_the_order_they_are_wanted() {
        // Fields are moved together where quotes are doubled, which may leave half a character behind.
        let file = "a,b,c\n1,\u{ff},3\né,\"\"\"é\"\"é\",\"é\"\"\"\n".as_bytes();
        let file = &[file, b"4,\xff,\"\"\"5\"\n"].concat()[..];
        let open = || open(file, Some(&["c", "a"]));
        assert_eq!(open().unwrap().columns(), ["c", "a"]);
        assert_eq!(rows(open).unwrap(), [row(2, &["3", "1"]), row(3, &["é\"", "é"]), row(4, &["\"5", "4"])]);
    }

    #[test]
    fn tabs_delimit_too() {
        let lines = || Lines::new(&b"a\tb\n\t\n1,5\t\"x\ty\"\n"[..], "x.tsv");
        let read = rows(|| Delimited::new(lines(), b'\t', None));
        assert_eq!(read.unwrap(), [row(2, &["", ""]), row(3, &["1,5", "x\ty"])]);
    }

    #[test]
    fn a_header_alone_is_a_table_of_no_rows() {
        for file in [&b"a,b"[..], b"a,b\n", b"\n\na,b\r\n\r\n", b"\na\n\n\n"] {
            assert!(rows(|| open(file, None)).unwrap().is_empty());
        }
    }

    #[test]
    fn a_flaw_is_named_by_line_reason_and_remedy() {
        let long = format!("a\n1\n{}\n", "x".repeat(100));
        let open_quote = format!("a\n\"{}", "x\n".repeat(80));
        for (file, message) in [
            (&b""[..], "x.csv: it is empty; start it with a row of column names"),
            (b"\n\r\n", "x.csv: it is empty"),
            (b"a,,b\n", "x.csv: column 2 has no name; give every column one"),
            (b"a,b,a\n", "x.csv: two columns are called \"a\"; give every column a name of its own"),
            (b"a,\xff\n", "line 1 of x.csv: the name of column 2 is not UTF-8; save the file as UTF-8"),
            (b"a,b\n1,2\n1,\xc3\n", "line 3 of x.csv: column \"b\" is not UTF-8; save the file as UTF-8"),
            (b"a,b\n\xc3,\xa9\n", "line 2 of x.csv: column \"a\" is not UTF-8"),
            (b"a,b\n1,2\n\n1\n", "line 4 of x.csv: its fields number 1, and the header's 2; quote"),
            (
                b"a\n1\n\n\n2\n",
                "line 3 of x.csv: it is empty, which may be a row of this one column; write \"\"",
            ),
            (b"a\n\r\n2\n", "line 2 of x.csv: it is empty"),
            (b"a,b\n1,2,\n", "line 2 of x.csv: its fields number 3, and the header's 2; quote"),
            (b"a,b\n1,2\n\"3\n\",\"4\n\n", "line 3 of x.csv: field 2: its quote is never closed; close it"),
            (b"a,b\n1,\"2\"3\n", "line 2 of x.csv: field 2: text follows its closing quote; double"),
            (b"a\rb\r", "line 1 of x.csv: field 1: a carriage return stands alone; end lines with LF"),
            (long.as_bytes(), "line 3 of x.csv: it is over the limit of 100 B for a row; split"),
            (open_quote.as_bytes(), "line 2 of x.csv: it is over the limit of 100 B for a row; split"),
        ] {
            let error = rows(|| open(file, None)).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        let error = open(b"a,b\n", Some(&["b", "c"])).err().unwrap().to_string();
        assert_eq!(error, "x.csv has no column \"c\"; its columns are a, b");
        let error = open(b"a,b\n", Some(&["b", "b"])).err().unwrap().to_string();
        assert!(error.contains("column \"b\" is asked for twice"), "{error}");
    }

    proptest! {
        #[test]
        fn what_the_csv_crate_writes_is_read(
            table in (1usize..4).prop_flat_map(|width| {
                prop::collection::vec(prop::collection::vec("[a\",\r\n\té]{0,4}", width), 0..8)
            }),
            crlf: bool,
        ) {
            let width = table.first().map_or(1, Vec::len);
            let terminator = if crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
            let mut writer = csv::WriterBuilder::new().terminator(terminator).from_writer(Vec::new());
            writer.write_record((0..width).map(|i| i.to_string())).unwrap();
            for row in &table {
                writer.write_record(row).unwrap();
            }
            let file = writer.into_inner().unwrap();
            let read = rows(|| Delimited::new(Lines::new(&file[..], "x.csv"), b',', None)).unwrap();
            let read: Vec<_> = read.into_iter().map(|(_, values)| values).collect();
            prop_assert_eq!(read, table);
        }

        #[test]
        fn whatever_is_accepted_is_what_the_csv_crate_reads(file in "a,b\n[a\",\r\n]{0,30}") {
            if let Ok(read) = rows(|| Delimited::new(Lines::new(file.as_bytes(), "x.csv"), b',', None)) {
                let reference = csv::Reader::from_reader(file.as_bytes());
                let expected: Vec<Vec<String>> = reference
                    .into_records()
                    .map(|record| record.unwrap().iter().map(str::to_owned).collect())
                    .collect();
                let read: Vec<_> = read.into_iter().map(|(_, values)| values).collect();
                prop_assert_eq!(read, expected);
            }
        }
    }
}
