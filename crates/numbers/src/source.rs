//! Which numbers to read: what a person wrote, understood.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::PathBuf;

use bytes::Bytes;

use crate::error::{Error, Reading};
use crate::{Content, Format, Values, delimited, npy, parquet};

/// Numbers that are read from one source at most, unless more are allowed: 100 million, which take 800 MB.
pub const DEFAULT_LIMIT: usize = 100_000_000;

/// Numbers that can be read.
#[derive(Clone, Debug)]
pub struct Source {
    input: Input,
    format: Format,
    columns: Option<Vec<String>>,
    limit: usize,
    named: bool,
    decimals: Option<i32>,
}

#[derive(Clone, Debug)]
enum Input {
    Stdin,
    File(PathBuf),
    Bytes(Bytes),
}

impl Source {
    /// Understands `FILE`, `FILE?column=NAME`, `FILE?column=NAME,NAME` and, with or without columns, `-` for CSV
    /// on standard input. A name with a comma is only for [`with_columns`](Self::with_columns). Touches no disk.
    ///
    /// # Errors
    /// The ending names no [`Format`], or a column has no name.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (path, columns) = match text.rsplit_once("?column=") {
            Some((path, names)) => (path, Some(names.split(',').map(str::to_owned).collect::<Vec<_>>())),
            None => (text, None),
        };
        if columns.as_ref().is_some_and(|names| names.iter().any(String::is_empty)) {
            let why = "a column has no name".to_owned();
            return Err(Error::Spec { spec: text.to_owned(), why, remedy: "write FILE?column=NAME,NAME" });
        }
        let source = match path {
            "-" => Self::new(Input::Stdin, Format::Csv),
            _ => Self::file(path)?,
        };
        Ok(Self { columns, ..source })
    }

    /// A file, its format named by its ending.
    ///
    /// # Errors
    /// The ending names no [`Format`].
    pub fn file(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let format = Format::of(&path)?;
        Ok(Self::new(Input::File(path), format))
    }

    /// A file's bytes.
    #[must_use]
    pub fn bytes(format: Format, bytes: impl Into<Bytes>) -> Self {
        Self::new(Input::Bytes(bytes.into()), format)
    }

    fn new(input: Input, format: Format) -> Self {
        Self { input, format, columns: None, limit: DEFAULT_LIMIT, named: false, decimals: None }
    }

    /// Reads these columns, in this order, instead of all.
    #[must_use]
    pub fn with_columns(self, columns: Vec<String>) -> Self {
        Self { columns: Some(columns), ..self }
    }

    /// Takes the first line of CSV or TSV as the names of its columns, whatever stands there.
    #[must_use]
    pub fn with_header(self) -> Self {
        Self { named: true, ..self }
    }

    /// That nothing was said of it that says nothing: [`Source::with_header`], of a format that has no such line.
    ///
    /// # Errors
    /// There is.
    pub fn check(&self) -> Result<(), Error> {
        if !self.named || matches!(self.format, Format::Csv | Format::Tsv) {
            return Ok(());
        }
        let why = "its format has no first line that could hold names".to_owned();
        Err(Error::Unfit {
            origin: self.to_string(),
            why,
            remedy: "leave out --header, which is for CSV and TSV",
        })
    }

    /// Has numbers rounded to this many decimals by the digits that were written, where their floats would be rounded
    /// differently; -3 rounds to thousands. [`Content::exact`] returns them.
    #[must_use]
    pub fn with_decimals(self, decimals: Option<i32>) -> Self {
        Self { decimals, ..self }
    }

    /// Whether what is read are lines, each of which may be one of many alike, and not an array with a shape of its own.
    #[must_use]
    pub fn is_table(&self) -> bool {
        self.format != Format::Npy
    }

    /// Reads at most this many numbers.
    #[must_use]
    pub fn with_limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }
}

impl fmt::Display for Source {
    /// The name that messages give it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.input {
            Input::Stdin => f.write_str("standard input"),
            Input::File(path) => write!(f, "{}", path.display()),
            Input::Bytes(_) => f.write_str("the input"),
        }
    }
}

/// Reads numbers. A first line of CSV without a digit that begins a cell with a letter holds names, unless another cell may be
/// a number gone wrong: [`read_content`] tells.
///
/// # Errors
/// The source can't be read, is not what its ending says, holds what is not a finite number or more of them than
/// the limit, or lacks a column that is asked for.
pub fn read(source: &Source) -> Result<Values, Error> {
    read_content(source).map(|content| content.values)
}

/// Reads numbers, and what is known of them besides.
///
/// # Errors
/// As [`read`].
pub fn read_content(source: &Source) -> Result<Content, Error> {
    let origin = source.to_string();
    let reading = Reading {
        origin: &origin,
        columns: source.columns.as_deref(),
        limit: source.limit,
        named: source.named,
        decimals: source.decimals,
    };
    if let Some(columns) = reading.columns {
        if columns.is_empty() {
            return Err(reading.unfit("no column is asked for", "name one, or ask for all"));
        }
        if source.format == Format::Npy {
            let why = "NPY files have no columns to ask for by name";
            return Err(reading.unfit(why, "ask for the whole array"));
        }
    }
    let delimiter = if source.format == Format::Tsv { b'\t' } else { b',' };
    let array = |values: Result<Values, Error>| values.map(|values| Content::new(&origin, values));
    match (&source.input, source.format) {
        (Input::Stdin, _) => delimited::read(io::stdin().lock(), b',', &reading),
        (Input::Bytes(bytes), Format::Csv | Format::Tsv) => delimited::read(&bytes[..], delimiter, &reading),
        (Input::Bytes(bytes), Format::Npy) => array(npy::read(&bytes[..], bytes.len() as u64, &reading)),
        (Input::Bytes(bytes), Format::Parquet) => parquet::read(bytes.clone(), &reading),
        (Input::File(path), format) => {
            let file = File::open(path).map_err(|e| reading.io(e))?;
            let metadata = file.metadata().map_err(|e| reading.io(e))?;
            if metadata.is_dir() {
                return Err(reading.io(io::ErrorKind::IsADirectory.into()));
            }
            if !metadata.is_file() && matches!(format, Format::Npy | Format::Parquet) {
                let why = "it is not a regular file, so its size isn't known";
                return Err(reading.unfit(why, "copy it to a file first"));
            }
            match format {
                Format::Csv | Format::Tsv => {
                    delimited::read(BufReader::with_capacity(1 << 16, file), delimiter, &reading)
                }
                Format::Npy => array(npy::read(BufReader::new(file), metadata.len(), &reading)),
                Format::Parquet => parquet::read(file, &reading),
            }
        }
    }
}
