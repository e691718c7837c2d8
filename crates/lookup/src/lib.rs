//! Private lookup: fetch a record from a server that never learns which.
//!
//! [`schemes`] has two of Henzinger, Hong, Corrigan-Gibbs, Meiklejohn and Vaikuntanathan ("One Server for the Price
//! of Two", 2023), `simple` and `double`, at 128 bits by today's estimate. [`keyword`] puts an index inside the same
//! query, so that a key that is not there costs and looks the same as one that is.
//!
//! ```text
//!                        records, R bytes each, upright in a matrix of bytes
//!                              columns (J) ──▶
//!   group 0    ┌ rec ┬ rec ┬ rec ┬ ...        rows = R * groups
//!              │  0  │  1  │  2  │            a query picks columns, its answer holds every row of their sum
//!   group 1    ├ rec ┼ rec ┼ ... │            modulo 256, and the client keeps one group's R rows
//!      ▼       └ ... ┴ ... ┴ ... ┘
//! ```
//!
//! ```
//! use std::sync::Arc;
//! use blindcore_accel_cpu::Cpu;
//! use blindcore_lookup::{Client, Geometry, Params, Selection, Server, pack_group, preprocess, schemes};
//!
//! // Six records of two bytes: two groups of three.
//! let params = Params::new(schemes::find("simple")?, Geometry { record_bytes: 2, groups: 2, columns: 3 })?;
//! let mut database = params.database_buffer();
//! for (group, records) in [b"aabbcc", b"ddeeff"].into_iter().enumerate() {
//!     pack_group(&params, group, records, &mut database);
//! }
//! let device = Cpu::open("cpu")?;
//! let database: Vec<blindcore_accel::SharedBytes> = vec![Arc::new(database)];
//! let mut hint = vec![0; params.hint_bytes() as usize];
//! let derived = preprocess(&params, &device, database.clone(), &mut hint, &mut ())?;
//!
//! let derived = derived.into_iter().map(|operand| vec![Arc::new(operand) as _]);
//! let server = Server::new(params, &device, [database].into_iter().chain(derived).collect())?;
//! let client = Client::new(params, Arc::new(hint))?;
//! let (query, pending) = client.query(client.prepare()?, &Selection::index(&params.geometry, 4)?)?;
//! let (answers, _cost) = server.answer(&[&query])?; // sees a query, the same bytes whatever was picked
//! assert_eq!(client.decode(pending, &answers[0])?.slot.as_slice(), b"ee");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod batch;
mod client;
mod constant_time;
mod error;
pub mod keyword;
mod lanes;
mod params;
mod plan;
mod registration;
pub mod schemes;
mod server;

pub use blindcore_units::Progress;
pub use client::{Client, Decoded, Pending, Prepared, SchemeClient, Selection};
pub use error::Error;
pub use params::{Geometry, MAX_BLOCKS, MAX_GATHER, MAX_RECORD_BYTES, MAX_SLOT_BYTES, Params};
pub use plan::{MAX_HINT_BYTES, QUERIES_PER_HINT, SchemeChoice, bytes_moved, plan, plan_blocks};
pub use registration::{KeySet, RegisteredKeys, Registration, SecretKeys};
pub use schemes::{InsecureOnionPir2021, InsecurePlain, SHORT_HINT_BYTES, Scheme, SchemeRef};
pub use server::{
    OperandBytes, PREPARING, Preprocessing, SchemeServer, Server, pack_group, preprocess, preprocess_placed,
};
