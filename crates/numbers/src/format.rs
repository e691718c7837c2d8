//! Formats of files of numbers, by their endings.

use std::path::Path;

use crate::error::Error;

/// What a file of numbers is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Comma-separated values.
    Csv,
    /// The same with tabs.
    Tsv,
    /// NumPy's array file.
    Npy,
    /// Apache Parquet.
    Parquet,
}

impl Format {
    /// The format that a file's ending names; case doesn't matter.
    ///
    /// # Errors
    /// It names none.
    pub fn of(path: &Path) -> Result<Self, Error> {
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
        let why = match ending.as_str() {
            "csv" => return Ok(Format::Csv),
            "tsv" => return Ok(Format::Tsv),
            "npy" => return Ok(Format::Npy),
            "parquet" => return Ok(Format::Parquet),
            "" => "it has no ending to tell its format by".to_owned(),
            "npz" => "an .npz archive holds several arrays".to_owned(),
            other => format!("files that end in .{other} are not supported"),
        };
        let remedy = "name a FILE.csv, FILE.tsv, FILE.npy or FILE.parquet";
        Err(Error::Spec { spec: path.display().to_string(), why, remedy })
    }
}
