//! Files written whole or not at all.

use std::io::{BufWriter, Write};
use std::path::Path;

use blindcore_files::new_file::NewFileError;
use blindcore_files::{Access, Existing, NewFile};
use ndarray::ArrayD;

use crate::error::Error;
use crate::writing::Writing;
use crate::{Format, Values, delimited, npy, parquet};

/// Writes numbers to a file, in the format that its ending names.
///
/// The file appears whole, under its name, once it is on the disk: until then whatever stood there stays, and after it
/// as `existing` says. It is written beside its place, and made for those whom `access` says. A link is followed.
///
/// `names` are the columns' names, one for each: a matrix has as many columns as its second axis is long, a list
/// is one. Without them a CSV file has no line of names and Parquet columns are called `value`, or `value_0`,
/// `value_1` and so on; NPY keeps no names.
///
/// Floats in CSV have as many decimals as it takes to read the same float back.
///
/// # Errors
/// A number is not finite, the format can't hold the shape, the names don't fit, the ending is none of
/// [`Format`]'s, what stands there is no regular file, a secret key or to be kept, or the system refuses.
pub fn write(
    path: &Path,
    access: Access,
    existing: Existing,
    values: &Values,
    names: Option<&[String]>,
) -> Result<(), Error> {
    let format = Format::of(path)?;
    let origin = path.display().to_string();
    create(path, access, existing, &origin, |file| encode_as(&origin, format, values, names, file))
}

/// Writes numbers anywhere: to standard output, into memory. See [`write()`].
///
/// # Errors
/// As for [`write()`]; something may have been written by then.
pub fn encode(
    format: Format,
    values: &Values,
    names: Option<&[String]>,
    out: &mut (impl Write + Send),
) -> Result<(), Error> {
    encode_as("the output", format, values, names, out)
}

/// Writes numbers in decimals, each as it stands, to a CSV or TSV file: [`write()`] for what no integer or float holds.
///
/// # Errors
/// The ending names another format; else as [`write()`].
pub fn write_decimals(
    path: &Path,
    access: Access,
    existing: Existing,
    values: &ArrayD<String>,
) -> Result<(), Error> {
    let (format, origin) = (Format::of(path)?, path.display().to_string());
    create(path, access, existing, &origin, |file| encode_decimals_as(&origin, format, values, file))
}

/// Writes numbers in decimals, each as it stands, as CSV or TSV anywhere.
///
/// # Errors
/// As [`write_decimals`]; something may have been written by then.
pub fn encode_decimals(format: Format, values: &ArrayD<String>, out: &mut impl Write) -> Result<(), Error> {
    encode_decimals_as("the output", format, values, out)
}

fn encode_decimals_as(
    origin: &str,
    format: Format,
    values: &ArrayD<String>,
    out: &mut impl Write,
) -> Result<(), Error> {
    let delimiter = match format {
        Format::Csv => b',',
        Format::Tsv => b'\t',
        Format::Npy | Format::Parquet => {
            let infinite = |v: &str| v.parse::<f64>().is_ok_and(|v| v.is_infinite());
            let wide = |v: &str| !v.contains(['.', 'e']) && v.parse::<i64>().is_err();
            let first = |unfit: fn(&str) -> bool, why: &str| {
                let (index, _) = values.indexed_iter().find(|(_, v)| unfit(v))?;
                Some(format!("element {:?} is {why}", ndarray::Dimension::slice(&index)))
            };
            let why = first(infinite, "over the largest float, 1.8e308")
                .or_else(|| first(wide, "beyond the integers of 64 bits with sign"))
                .unwrap_or_else(|| "a point was set among their digits".into());
            return Err(Error::Misfit { origin: origin.to_owned(), why, remedy: "save them as CSV or JSON" });
        }
    };
    delimited::write_decimals(out, delimiter, values).map_err(|error| Error::Io {
        origin: origin.to_owned(),
        action: "written",
        error,
    })
}

/// A file that is filled by `fill`, and appears whole.
fn create(
    path: &Path,
    access: Access,
    existing: Existing,
    origin: &str,
    fill: impl FnOnce(&mut NewFile) -> Result<(), Error>,
) -> Result<(), Error> {
    let refused = |error| match error {
        NewFileError::Io { error, .. } => Error::Io { origin: origin.to_owned(), action: "written", error },
        NewFileError::NoFile { .. } => {
            let why = "it is there already and is not a regular file".to_owned();
            Error::Unfit { origin: origin.to_owned(), why, remedy: "name a file" }
        }
        other => Error::New(other),
    };
    let mut file = NewFile::create(path, access).map_err(refused)?;
    fill(&mut file)?;
    file.finish(existing).map(|_| ()).map_err(refused)
}

fn encode_as(
    origin: &str,
    format: Format,
    values: &Values,
    names: Option<&[String]>,
    out: &mut (impl Write + Send),
) -> Result<(), Error> {
    let writing = Writing { origin, values, names };
    if let Values::Float(array) = values
        && let Some((index, value)) = array.indexed_iter().find(|(_, v)| !v.is_finite())
    {
        let why = format!("element {:?} is {value}", ndarray::Dimension::slice(&index));
        return Err(writing.misfit(why, "keep finite numbers only"));
    }
    let mut out = BufWriter::with_capacity(1 << 16, out);
    match format {
        Format::Csv => delimited::write(&mut out, b',', &writing)?,
        Format::Tsv => delimited::write(&mut out, b'\t', &writing)?,
        Format::Npy => npy::write(&mut out, &writing)?,
        Format::Parquet => parquet::write(&mut out, &writing)?,
    }
    out.flush().map_err(|e| writing.io(e))
}
