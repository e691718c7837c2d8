//! From a table somewhere to a database that a server reads: ingestion, and the database on disk.
//!
//! ```text
//!   CSV, TSV, JSON lines, Parquet, folders, SQLite, PostgreSQL, MySQL
//!        │ source: one row at a time, typed values, errors that name the line
//!        ▼
//!   Row ──codec──▶ key bytes, record bytes
//!        │ external sort: everything at rest in files, whatever its size, in order of arrival or of hash
//!        ▼
//!   build ──▶ DIR/manifest.json, *.shard in the device's layout, *.hint      one folder, made whole or not at all
//!                │
//!   Stored ◀─────┘ mapped; every size and header checked, every byte by `verify`
//!      └──▶ Streamed: a matrix larger than memory, read from its disk in every pass
//! ```
//!
//! Memory stays bounded however large the source: a source holds one row, of [`source::MAX_ROW_BYTES`] at most
//! (nested JSON takes some 30 times its text), and a few buffers (Parquet: the pages that the row lies in); a [`ExternalSort`] holds what its caller allows.
//!
//! ```
//! use blindcore_store::{Order, SourceSpec, ExternalSort, Value, codec};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("cities.csv");
//! std::fs::write(&path, "id,city,note\n7,Ghent,x\n42,Basel,y\n")?;
//!
//! let mut source = SourceSpec::parse(path.to_str().unwrap())?.open(Some(&["id".into(), "city".into()]))?;
//! let mut sort = ExternalSort::new(folder.path(), ExternalSort::DEFAULT_MEMORY, Order::Arrival);
//! while let Some(row) = source.next_row()? {
//!     let key = codec::encode_key(&row.values[0])?;
//!     let mut record = Vec::new();
//!     codec::encode_record(&row.values[1..], &mut record);
//!     sort.push(u128::from(key[0]), row.line, &record)?; // a real caller hashes the key
//! }
//!
//! let last = sort.finish()?.last().unwrap()?;
//! assert_eq!(last.line, 3);
//! assert_eq!(codec::decode_record(&last.payload, 1)?, [Value::Text("Basel".into())]);
//! # Ok(())
//! # }
//! ```

mod bucket;
mod build;
mod describe;
mod direct;
mod error;
pub mod external_sort;
mod folder;
mod hint;
mod job;
mod kinds;
pub mod manifest;
mod mapped;
pub mod memory;
mod part;
mod reads;
mod section;
mod shards;
mod sign;
mod signer;
pub mod source;
pub mod stages;
mod stored;
mod stream;
mod tile_checksums;
mod update;
#[cfg(target_os = "linux")]
mod uring;

pub use blindcore_wire::signature::SigningKey;
pub use blindcore_wire::{CodecError, KeyError, ProofChoice, Value, codec};
pub use build::{BuildOptions, MAX_LONG_RECORD_BYTES, build};
pub use error::StoreError;
pub use external_sort::{Entries, Entry, ExternalSort, ExternalSortError, Order};
pub use folder::abandon;
pub use hint::HintFile;
pub use manifest::Manifest;
pub use sign::sign;
pub use source::{Overlap, Position, Row, Rows, Source, SourceError, SourceSpec};
pub use stages::StageTimes;
pub use stored::{Payload, Stored, StoredPart};
pub use stream::{Checksum, Shard, StreamOptions, Streamed};
pub use tile_checksums::tile_sums;
pub use update::{CHANGE_COLUMN, ROW_COLUMN, UpdateOptions, Updated, update};
