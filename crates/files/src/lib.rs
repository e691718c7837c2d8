//! What every crate that reads or writes files shares: files that appear whole or not at all, the headers of binary
//! formats, and the words of a refusal.
//!
//! | module | what is in it |
//! |---|---|
//! | [`new_file`] | a file that takes its place once it is whole, a file for its owner alone, a file moved to its place |
//! | [`private`] | folders and files of one user alone, such as a cache |
//! | [`secret`] | whether a file holds a secret key, so that nothing is written over one |
//! | [`header`] | magic, version, fields and digest of a binary format, its layout given as data |
//! | [`lock`] | a lock on a file, which one holder has at a time |
//! | [`small`] | a text file that somebody keeps by hand, up to a limit |
//! | [`text`] | lines of text, whatever stands before the first and behind the last |
//! | [`refusal`] | values out of range, and what to do about an error of the system |
//!
//! ```
//! use std::io::Write;
//!
//! use blindcore_files::header::{Field, Layout};
//! use blindcore_files::{Access, NewFile};
//!
//! const FORMAT: Layout =
//!     Layout { what: "a file of counts", magic: b"COUNTS__", version_at: 8, version_bytes: 4, version: 1, bytes: 20 };
//! const COUNT: Field<u64> = Field::at(12);
//!
//! let folder = tempfile::tempdir()?;
//! let place = folder.path().join("a.counts");
//! let mut header = FORMAT.start();
//! COUNT.put(&mut header, 7);
//! let mut file = NewFile::create(&place, Access::Everyone)?;
//! file.write_all(&header)?;
//! assert!(!place.exists(), "not before it is whole");
//! file.replace()?;
//!
//! let bytes = std::fs::read(&place)?;
//! assert_eq!(COUNT.get(FORMAT.check(&bytes)?), 7);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod header;
mod left;
pub mod lock;
pub mod new_file;
pub mod private;
pub mod refusal;
pub mod secret;
pub mod small;
pub mod text;

pub use lock::Lock;
pub use new_file::{Access, Existing, NewFile};
pub use refusal::OutOfRange;
