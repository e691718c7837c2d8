//! Arrays of numbers from and to CSV, NPY and Parquet.
//!
//! | ending            | read                                                    | written                      |
//! |-------------------|---------------------------------------------------------|------------------------------|
//! | `.csv`, `.tsv`    | a column or a matrix, with names in the first line or without | the same               |
//! | `.npy`            | up to 8 axes of `i1` to `i8`, `u1` to `u8`, `f4`, `f8`, either byte order, C or Fortran order | `<i8` or `<f8` in C order, format 1.0 |
//! | `.parquet`        | columns of integers and floats; Snappy, LZ4, Zstandard, GZIP, Brotli or nothing | `int64` or `double`, Snappy |
//! | `-`               | standard input, as CSV                                  |                              |
//!
//! One column is an array of one axis, several are one of two: rows by columns. What is read is exactly what was
//! written: integers stay integers, and one that doesn't fit 64 bits with sign is refused; infinities, NaN, nulls
//! and empty cells are refused by their place. An integer among floats becomes the float equal to it, or is
//! refused where there is none.
//!
//! Files are read as if by a stranger: their sizes are checked before memory is taken, numbers are limited to
//! [`DEFAULT_LIMIT`] unless [told](Source::with_limit), and nothing in a file makes this crate panic or run code.
//!
//! ```
//! use blindcore_numbers::{Access, Existing, Source, Values, write};
//!
//! let folder = tempfile::tempdir()?;
//! let table = folder.path().join("ages.csv");
//! std::fs::write(&table, "name,age,height\n1,42,1.5\n2,17,1.75\n")?;
//!
//! let ages = blindcore_numbers::read(&Source::parse(&format!("{}?column=age", table.display()))?)?;
//! let Values::Int(array) = &ages else { panic!("ages are integers") };
//! assert_eq!(array.as_slice(), Some(&[42, 17][..]));
//!
//! let copy = folder.path().join("ages.npy");
//! write(&copy, Access::Everyone, Existing::Keep, &ages, None)?;
//! assert_eq!(blindcore_numbers::read(&Source::file(&copy)?)?, ages);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod content;
mod delimited;
mod error;
mod format;
mod npy;
#[cfg_attr(not(feature = "parquet"), path = "no_parquet.rs")]
mod parquet;
#[cfg(feature = "parquet")]
pub mod parquet_checks;
mod source;
#[cfg(feature = "parquet")]
mod thrift;
mod values;
mod write;
mod writing;

pub use blindcore_files::{Access, Existing};
pub use content::{Content, units};
pub use error::Error;
pub use format::Format;
pub use source::{DEFAULT_LIMIT, Source, read, read_content};
pub use values::{MAX_LEN, Values, is_shape};
pub use write::{encode, encode_decimals, write, write_decimals};
