//! The lookup client: a key in, a record out, and a server that learns which table was asked and no more.
//!
//! ```no_run
//! # async fn example() -> Result<(), blindcore_client::Error> {
//! use blindcore_client::Client;
//!
//! let client = Client::connect("http://127.0.0.1:7700").await?;
//! let table = client.table("passwords").await?; // fetches the hint, once an epoch
//! match table.get("correct horse").await?.found {
//!     Some(record) => {
//!         for (column, value) in &record.values {
//!             match value {
//!                 blindcore_client::Value::Int(n) => println!("{column}: {n} times"),
//!                 other => println!("{column}: {}", other.to_json()),
//!             }
//!         }
//!     }
//!     None => println!("not there"),
//! }
//! let first = table.get_index(0).await?; // by row number
//! # let _ = first;
//! # Ok(())
//! # }
//! ```
//!
//! What a server sees of a lookup is the same for every key, there or not: one request of one length, answered
//! by one of one length. Each query is under a secret of its own and is sent once; see [`LookupError`] on why.
//!
//! [`blindcore_protocol`] decides what is asked and what is believed; this crate drives it: connections, TLS, tokens, the
//! cache's files, threads.

mod background;
pub mod blocking;
mod broken;
mod cache;
mod connection;
mod connector;
mod epochs;
mod error;
mod hint;
mod keys;
mod many;
mod options;
mod registered;
mod score;
mod table;
mod token;
mod waiting;

pub use blindcore_protocol::{Error as LookupError, Record, Rotation, Trust};
pub use blindcore_units::{Progress, SharedProgress, Unit};
pub use blindcore_wire::{PartKind, Reason, TableDescription, Value, proto::TableSummary};
pub use cache::{CacheDir, Cached};
pub use connection::Client;
pub use error::Error;
pub use keys::{Counts, KeyLine, Keys, KeysError, Resume};
pub use many::Answer;
pub use options::{Options, TIMEOUTS, rotation, timeout_seconds};
pub use score::{ScoreClient, ScoreError, Scored};
pub use table::{Lookup, TableClient, Timings, Traffic};
pub use token::Token;
