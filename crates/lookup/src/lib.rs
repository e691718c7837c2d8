//! Private lookup: fetch a record from a server that never learns which.
//!
//! Two schemes of Henzinger, Hong, Corrigan-Gibbs, Meiklejohn and Vaikuntanathan ("One Server for the Price
//! of Two", 2023), [`Scheme::Simple`] and [`Scheme::Double`], at 128 bits by today's estimate, and a keyword
//! index inside the same query, so that a key that is not there costs and looks the same as one that is.
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
//! use blindcore_lookup::{Client, Geometry, Params, Scheme, Selection, Server, preprocess, pack_group};
//!
//! // Six records of two bytes: two groups of three.
//! let params = Params::new(Scheme::Simple, Geometry { record_bytes: 2, groups: 2, columns: 3 })?;
//! let mut database = params.database_buffer();
//! for (group, records) in [b"aabbcc", b"ddeeff"].into_iter().enumerate() {
//!     pack_group(&params, group, records, &mut database);
//! }
//! let device = Cpu::open("cpu")?;
//! let database: Vec<blindcore_accel::SharedBytes> = vec![Arc::new(database)];
//! let mut hint = vec![0u32; params.hint_words()];
//! let state = preprocess(&params, &device, database.clone(), &mut hint, &mut |_, _| Ok::<(), blindcore_lookup::Error>(()))?;
//!
//! let server = Server::new(params, &device, database, state.map(|s| vec![Arc::new(s) as _]))?;
//! let hint: Vec<u8> = hint.iter().flat_map(|w| w.to_le_bytes()).collect();
//! let client = Client::new(params, Arc::new(hint))?;
//! let (query, pending) = client.query(client.prepare()?, &Selection::index(&params.geometry, 4)?)?;
//! let (answers, _cost) = server.answer(&[&query])?; // sees a query, the same bytes whatever was picked
//! assert_eq!(client.decode(pending, &answers[0])?.as_slice(), b"ee");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client;
mod constant_time;
mod double;
mod error;
pub mod keyword;
mod params;
mod plan;
mod server;
mod simple;

pub use client::{Client, Pending, Prepared, Selection};
pub use error::Error;
pub use params::{
    ESTIMATOR, Geometry, MAX_BLOCKS, MAX_RECORD_BYTES, MAX_SLOT_BYTES, PLAINTEXT_MODULUS, Params,
    SECURITY_BITS, SIGMA, Scheme,
};
pub use plan::{QUERIES_PER_HINT, SchemeChoice, bytes_moved, plan, plan_blocks};
pub use server::{MAX_GATHER, Server, hint_shape, pack_group, preprocess, preprocess_placed};
