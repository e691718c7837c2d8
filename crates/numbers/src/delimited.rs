//! CSV and TSV: a column of numbers, or a matrix.
//!
//! Stricter than the csv crate, which the tests compare with: a quote that is never closed, text after a closing
//! quote and a line of more than [`MAX_LINE_BYTES`] are errors here and data there.

use std::borrow::Cow;
use std::io::{self, BufRead, Write};
use std::ops::Range;

use blindcore_files::text;
use ndarray::ArrayD;

use crate::Values;
use crate::content::{Content, Exact, Places, line_place};
use crate::error::{Error, Reading, shown};
use crate::values::{Run, float};
use crate::writing::{Writing, columns};

/// Bytes in a line, at most: 16 MiB.
const MAX_LINE_BYTES: usize = 16 << 20;
/// Bytes of a number, at most: none that this workspace writes has more. The standard library counts an exponent to 65,536 at
/// least and no further; with so few digits what is over that is beyond all floats either way, or below them.
const MAX_NUMBER_BYTES: usize = 32 << 10;

pub(crate) fn read(reader: impl BufRead, delimiter: u8, reading: &Reading) -> Result<Content, Error> {
    let mut table = Table::new(reader, delimiter, reading)?;
    let (positions, width) = (table.positions.clone(), table.positions.len());
    let mut run = Run::Int(Vec::new());
    let mut exact = Exact::new(reading.decimals);
    // Names say what is a column.
    let mut separated = table.first_is_data && width > 1 && delimiter == b',';
    let mut more = table.first_is_data || table.line.next(reading)?;
    while more {
        table.line.split(reading)?;
        let got = table.line.cells.len();
        if got != table.names.len() {
            let why = format!("it has {got} cells where the first line has {}", table.names.len());
            return Err(table.line.flaw(reading, why, "give every line the same number of cells"));
        }
        separated = separated && (1..got).all(|i| table.line.is_separated(i, false));
        for position in &positions {
            if run.len() >= reading.limit {
                return Err(reading.too_many());
            }
            run = table.push(run, *position)?;
            if let Run::Float(values) = &run
                && let Some(value) = values.last()
            {
                exact.look(values.len() - 1, *value, &table.line.cell(*position));
            }
        }
        more = table.line.next(reading)?;
    }
    if run.len() == 0 {
        return Err(reading.unfit("it holds no numbers", "put a number on every line after the names"));
    }
    let rows = run.len() / width;
    let shape = if width == 1 { vec![rows] } else { vec![rows, width] };
    let guessed = !table.first_is_data && !reading.named && reading.columns.is_none();
    let values = run.shaped(reading, &shape, false)?;
    let columns = positions.iter().map(|i| (*i, table.names[*i].clone())).collect();
    let places = Places::Lines { first: 1 + u64::from(!table.first_is_data), columns };
    let names = guessed.then_some(table.names);
    Ok(Content { names, separated, exact, places, ..Content::new(reading.origin, values) })
}

/// A table whose first line was read.
struct Table<'a, R> {
    reading: &'a Reading<'a>,
    line: Line<R>,
    /// The names of all columns; empty ones where the first line holds numbers.
    names: Vec<String>,
    /// Where the wanted columns stand.
    positions: Vec<usize>,
    first_is_data: bool,
}

impl<'a, R: BufRead> Table<'a, R> {
    fn new(reader: R, delimiter: u8, reading: &'a Reading<'a>) -> Result<Self, Error> {
        let lines = text::Lines::new(reader);
        let mut line = Line { lines, bytes: Vec::new(), cells: Vec::new(), number: 0, delimiter };
        if !line.next(reading)? {
            return Err(reading.unfit("it is empty", "put a number on every line"));
        }
        line.split(reading)?;
        // Where nobody says so, a line holds names if a word stands there, no digit, and nothing that may be a number gone
        // wrong: such a line is data, and its flaw is said.
        let cells = || (0..line.cells.len()).map(|i| number(&line.cell(i)));
        let words = cells().any(|cell| matches!(cell, Cell::Word));
        let doubtful =
            cells().any(|cell| !matches!(cell, Cell::Word | Cell::Int(_) | Cell::Float(_) | Cell::Empty));
        let wanted = reading.columns.is_some();
        let digits = String::from_utf8_lossy(&line.bytes).contains(char::is_numeric);
        let named = reading.named || if wanted { words || doubtful } else { words && !doubtful && !digits };
        if !named && wanted {
            let why = "its first line holds numbers, so its columns have no names";
            return Err(reading.unfit(why, "ask for all of its columns, or name them in its first line; for names that are numbers say --header, where it is an option"));
        }
        let mut names = vec![String::new(); line.cells.len()];
        for (i, name) in names.iter_mut().enumerate().filter(|_| named) {
            let cell = line.cell(i);
            let Ok(text) = str::from_utf8(&cell) else {
                let why = format!("the name of column {} is not UTF-8", i + 1);
                return Err(line.flaw(reading, why, "save the file as UTF-8"));
            };
            text.clone_into(name);
        }
        let positions = reading.positions(&names)?;
        Ok(Self { reading, line, names, positions, first_is_data: !named })
    }

    /// Puts a cell of the line at the end of a run.
    fn push(&self, run: Run, position: usize) -> Result<Run, Error> {
        let bytes = self.line.cell(position);
        let refuse = |why: String, remedy| Err(self.flaw(self.line.number, position, why, remedy));
        let text = || shown(&String::from_utf8_lossy(&bytes));
        if self.line.delimiter == b',' && self.line.is_separated(position, true) {
            let why =
                format!("{} after a comma looks like the end of a number with a thousands separator", text());
            return refuse(
                why,
                "write 1000 for 1,000, or of two numbers the second without zeros before it or in quotes",
            );
        }
        let cell = match (run, number(&bytes)) {
            (Run::Int(mut values), Cell::Int(value)) => {
                values.push(value);
                return Ok(Run::Int(values));
            }
            (Run::Float(mut values), Cell::Float(value)) => {
                values.push(value);
                return Ok(Run::Float(values));
            }
            (Run::Float(mut values), Cell::Int(value)) => {
                let Some(value) = float(value) else {
                    return refuse(
                        format!("{value} stands among floats, and no float is equal to it"),
                        MIXED,
                    );
                };
                values.push(value);
                return Ok(Run::Float(values));
            }
            (Run::Int(values), Cell::Float(value)) => {
                let mut values = Run::Int(values).into_float().map_err(|(i, value)| {
                    let width = self.positions.len();
                    let line = (i / width) as u64 + 1 + u64::from(!self.first_is_data);
                    let why = format!("{value} stands among floats, and no float is equal to it");
                    self.flaw(line, self.positions[i % width], why, MIXED)
                })?;
                values.push(value);
                return Ok(Run::Float(values));
            }
            (_, cell) => cell,
        };
        match cell {
            Cell::Empty => refuse("it is empty".into(), "give every cell a number"),
            Cell::Long => {
                let got = bytes.trim_ascii().len();
                let why =
                    format!("it has {got} characters, over the limit of {MAX_NUMBER_BYTES} for a number");
                refuse(why, "write it with fewer digits, and large and small ones as 1e300 and 1e-300")
            }
            Cell::Wide => {
                let why = format!("{} is beyond the integers of 64 bits with sign", text());
                refuse(why, "keep integers from -2^63 to 2^63 - 1, or write a float as 1e19")
            }
            Cell::Beyond => {
                refuse(format!("{} is beyond the range of a float", text()), "keep floats below 1.8e308")
            }
            Cell::Infinite => refuse(format!("{} is not finite", text()), "keep finite numbers only"),
            _ if str::from_utf8(&bytes).is_err() || bytes.contains(&0) => refuse(
                format!("{} is not a number", text()),
                "save the file as UTF-8, and write numbers as 12",
            ),
            _ if self.line.number == 1 => refuse(
                format!("{} is not a number", text()),
                "write numbers as 12, -3.5 or 1e-9, or say that the first line holds names: FILE?column=NAME, or --header \
                 where it is an option",
            ),
            _ => refuse(format!("{} is not a number", text()), "write numbers as 12, -3.5 or 1e-9"),
        }
    }

    fn flaw(&self, line: u64, position: usize, why: String, remedy: &'static str) -> Error {
        self.reading.value(line_place(line, position, &self.names[position]), why, remedy)
    }
}

const MIXED: &str = "keep integers beside floats within 2^53, or the columns in files of their own";

/// What a cell holds.
enum Cell {
    Int(i64),
    Float(f64),
    Empty,
    /// Longer than numbers are.
    Long,
    /// An integer over 64 bits.
    Wide,
    /// Decimals over the largest float.
    Beyond,
    /// Infinity or not a number, so written.
    Infinite,
    /// What may name a column: it begins with a letter, and isn't how a number that is missing is written.
    Word,
    Other,
}

/// How numbers that are missing are written.
const MISSING: [&str; 6] = ["na", "n/a", "nil", "none", "null", "missing"];

fn number(cell: &[u8]) -> Cell {
    // No number, and refused as a name.
    let Ok(text) = str::from_utf8(cell.trim_ascii()) else { return Cell::Word };
    if text.is_empty() {
        return Cell::Empty;
    }
    if text.len() > MAX_NUMBER_BYTES && !begins_name(text) {
        return Cell::Long;
    }
    if let Ok(value) = text.parse() {
        return Cell::Int(value);
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.bytes().all(|b| b.is_ascii_digit()) && !digits.is_empty() {
        return Cell::Wide;
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Cell::Float(value),
        Ok(_) if digits.starts_with(|c: char| c.is_ascii_alphabetic()) => Cell::Infinite,
        Ok(_) => Cell::Beyond,
        Err(_) if MISSING.iter().any(|missing| text.eq_ignore_ascii_case(missing)) => Cell::Other,
        Err(_) if begins_name(text) => Cell::Word,
        Err(_) => Cell::Other,
    }
}

fn begins_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Lines, one at a time, split into cells.
struct Line<R> {
    lines: text::Lines<R>,
    bytes: Vec<u8>,
    /// Where each cell stands, quotes left out, and whether it was quoted.
    cells: Vec<(Range<usize>, bool)>,
    /// Counted from 1.
    number: u64,
    delimiter: u8,
}

impl<R: BufRead> Line<R> {
    /// Reads the next line; false where there is none, or nothing but empty lines.
    fn next(&mut self, reading: &Reading) -> Result<bool, Error> {
        if !self.raw(reading)? {
            return Ok(false);
        }
        if self.bytes.is_empty() {
            let empty = self.number;
            while self.raw(reading)? {
                if !self.bytes.is_empty() {
                    // In a file of one column this may be a number that is missing.
                    let place = format!("line {empty}");
                    return Err(reading.value(place, "it is empty", "remove it, or put its numbers there"));
                }
            }
            return Ok(false);
        }
        Ok(true)
    }

    /// Reads the next line, without its end; false where there is none.
    fn raw(&mut self, reading: &Reading) -> Result<bool, Error> {
        self.bytes.clear();
        self.number += 1;
        let got = self.lines.append(&mut self.bytes, MAX_LINE_BYTES + 1);
        if got.map_err(|e| reading.io(e))? == 0 {
            return Ok(false);
        }
        if self.bytes.len() > MAX_LINE_BYTES {
            let why = format!("it is over the limit of {MAX_LINE_BYTES} B for a line");
            return Err(self.flaw(reading, why, "end lines with LF or CRLF, or save the array as NPY"));
        }
        self.bytes.truncate(text::without_end(&self.bytes).len());
        Ok(true)
    }

    fn split(&mut self, reading: &Reading) -> Result<(), Error> {
        const QUOTES: &str = "close every quote in its line, and double quotes within quotes";
        let delimiter = self.delimiter;
        self.cells.clear();
        let bytes = &self.bytes;
        let mut at = 0;
        loop {
            let quoted = bytes.get(at) == Some(&b'"');
            let cell = if quoted {
                let mut end = at + 1;
                loop {
                    match bytes[end..].iter().position(|b| *b == b'"') {
                        None => {
                            let why = format!("the quote of cell {} is not closed", self.cells.len() + 1);
                            return Err(self.flaw(reading, why, QUOTES));
                        }
                        Some(quote) if bytes.get(end + quote + 1) == Some(&b'"') => end += quote + 2,
                        Some(quote) => break at + 1..end + quote,
                    }
                }
            } else {
                let rest = &bytes[at..];
                at..at + rest.iter().position(|b| *b == delimiter).unwrap_or(rest.len())
            };
            let end = cell.end + usize::from(quoted);
            self.cells.push((cell, quoted));
            match bytes.get(end) {
                None => return Ok(()),
                Some(byte) if *byte == delimiter => at = end + 1,
                Some(_) => {
                    let why = format!("text follows the closing quote of cell {}", self.cells.len());
                    return Err(self.flaw(reading, why, QUOTES));
                }
            }
        }
    }

    /// A cell without its quotes.
    fn cell(&self, i: usize) -> Cow<'_, [u8]> {
        let (range, quoted) = &self.cells[i];
        let bytes = &self.bytes[range.clone()];
        if !quoted || !bytes.contains(&b'"') {
            return Cow::Borrowed(bytes);
        }
        let mut halved = Vec::with_capacity(bytes.len());
        let mut rest = bytes.iter();
        while let Some(byte) = rest.next() {
            halved.push(*byte);
            if *byte == b'"' {
                rest.next(); // its double
            }
        }
        Cow::Owned(halved)
    }

    /// Whether a cell may be what follows a separator of thousands in the number that the cell before it begins or goes on
    /// with: three digits, after one to three. Neither is in quotes. If it is `surely` so, the three begin with a zero.
    fn is_separated(&self, i: usize, surely: bool) -> bool {
        let unquoted = |i: usize| {
            let (range, quoted) = &self.cells[i];
            (!quoted).then(|| self.bytes[range.clone()].trim_ascii())
        };
        // Cells of other first characters are most, and need no more of a look.
        let Some(cell @ [first, ..]) = unquoted(i) else { return false };
        if surely && *first != b'0' {
            return false;
        }
        let Some(before) = i.checked_sub(1).and_then(unquoted) else { return false };
        let digits = before.strip_prefix(b"-").or(before.strip_prefix(b"+")).unwrap_or(before);
        let cell = cell.split(|b| *b == b'.').next().unwrap_or(cell);
        let all = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
        cell.len() == 3 && all(cell) && (1..=3).contains(&digits.len()) && all(digits)
    }

    fn flaw(&self, reading: &Reading, why: String, remedy: &'static str) -> Error {
        reading.value(format!("line {}", self.number), why, remedy)
    }
}

pub(crate) fn write(out: &mut impl Write, delimiter: u8, writing: &Writing) -> Result<(), Error> {
    let (rows, width) = columns(writing, "CSV holds one column or a matrix; save it as NPY")?;
    if rows == 0 || width == 0 {
        return Err(writing.misfit("there are none", "save an empty array as NPY"));
    }
    if let Some(names) = writing.names {
        let cells = || names.iter().map(|n| number(n.as_bytes()));
        let plain = |cell| matches!(cell, Cell::Word | Cell::Int(_) | Cell::Float(_) | Cell::Empty);
        if !cells().any(|cell| matches!(cell, Cell::Word)) || !cells().all(plain) {
            let why = "these names would be read as numbers, or as numbers gone wrong";
            return Err(writing.misfit(why, "begin each column's name with a letter, or give no names"));
        }
        if let Some(name) = names.iter().find(|n| n.contains(char::is_control)) {
            let why = format!("the column name {} has a control character", shown(name));
            return Err(writing.misfit(why, "name columns in one line of plain text"));
        }
        let cell = |name: &String| {
            let quoted = name.contains([delimiter as char, '"']) || name.starts_with('\u{feff}');
            if quoted { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.clone() }
        };
        let cells: Vec<String> = names.iter().map(cell).collect();
        let delimiter = (delimiter as char).to_string();
        writeln!(out, "{}", cells.join(&delimiter)).map_err(|e| writing.io(e))?;
    }
    let done = match writing.values {
        // An integer has no point, a float always a point or an exponent: each is read back as what it was.
        Values::Int(array) => lines(out, delimiter, width, array.iter(), |out, v| write!(out, "{v}")),
        Values::Float(array) => lines(out, delimiter, width, array.iter(), |out, v| write!(out, "{v:?}")),
    };
    done.map_err(|e| writing.io(e))
}

/// Writes numbers in decimals as they stand: all axes but the last are rows.
pub(crate) fn write_decimals(out: &mut impl Write, delimiter: u8, values: &ArrayD<String>) -> io::Result<()> {
    let width = if values.ndim() < 2 { 1 } else { *values.shape().last().expect("two axes or more") };
    lines(out, delimiter, width, values.iter(), |out, v| write!(out, "{v}"))
}

fn lines<W: Write, T>(
    out: &mut W,
    delimiter: u8,
    width: usize,
    values: impl Iterator<Item = T>,
    cell: impl Fn(&mut W, T) -> io::Result<()>,
) -> io::Result<()> {
    for (i, value) in values.enumerate() {
        cell(out, value)?;
        out.write_all(if (i + 1) % width == 0 { b"\n" } else { std::slice::from_ref(&delimiter) })?;
    }
    Ok(())
}
