//! The lookup client without I/O: a state machine that any transport drives.
//!
//! It has no socket, no file, no thread and no clock. A driver asks it what to do, does that, and hands back what came:
//! bytes, or messages of [`blindcore_wire`]. The Rust client drives it over gRPC with a cache of files; a browser can
//! drive the same one over HTTP.
//!
//! ```text
//!   GetTableRequest  ◀── Table::request           what a driver does
//!   GetTableResponse ──▶ Table::open              ──────────────────
//!                          │ checked and trusted
//!                          ▼
//!        ┌──────────▶ Lookup::step
//!        │                 ├── Need(fetch) ─────▶ a cache, or GetHint ──▶ Table::keep ──┐
//!        │                 ├── Keys(need) ──────▶ a cache, or RegisterKeys ──▶ Lookup::take_keys ─────┤
//!        │                 ├── Send(request) ───▶ Query ──▶ Lookup::receive ────────────┤
//!        │                 └── Done(outcomes)                                           │
//!        └──────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! What a server can observe of a lookup does not depend on what is looked for, nor on what its answers decode to: see
//! [`Lookup`]. A driver keeps that so: it sends each request once, and it starts no lookup because another failed.
//!
//! # Example
//!
//! A lookup against a server in the same process.
//!
//! ```
//! use std::sync::Arc;
//!
//! use blindcore_accel::SharedBytes;
//! use blindcore_lookup::{Geometry, Params, Server, pack_group, preprocess, schemes};
//! use blindcore_protocol::{Hint, Lookup, Policy, Step, Table};
//! use blindcore_wire::{PartDescription, TableContent, TableDescription, Value, proto};
//! use blindcore_wire::codec::encode_record;
//!
//! // The server's side: a table of two towns, without keys, in one group of two columns.
//! let device = blindcore_accel_cpu::Cpu::open("cpu")?;
//! let mut slots = Vec::new();
//! for town in ["Ghent", "Trier"] {
//!     encode_record(&[Value::Text(town.into())], &mut slots);
//! }
//! let geometry = Geometry { record_bytes: slots.len() / 2, groups: 1, columns: 2 };
//! let params = Params::new(schemes::yardstick(), geometry)?;
//! let mut database = params.database_buffer();
//! pack_group(&params, 0, &slots, &mut database);
//! let database: Vec<SharedBytes> = vec![Arc::new(database)];
//! let mut hint = vec![0; params.hint_bytes() as usize];
//! preprocess(&params, &device, database.clone(), &mut hint, &mut ())?;
//! let description = TableDescription::new(TableContent {
//!     name: "towns".into(),
//!     epoch: 1,
//!     rows: 2,
//!     value_columns: vec!["town".into()],
//!     records: PartDescription { params, hint_digest: *blake3::hash(&hint).as_bytes(), proofs: None, buckets: 1 },
//!     keyed: None,
//!     changes: None,
//! })?;
//! let server = Server::new(params, &device, vec![database])?;
//!
//! // The client's side: the description, ...
//! let response = proto::GetTableResponse {
//!     table: Some(description.to_proto()),
//!     records_queries: 8,
//!     ..Default::default()
//! };
//! let table = Arc::new(Table::open("towns", response, &Policy::default(), None)?);
//! // ... and a lookup of row 1.
//! let mut lookup = Lookup::by_row(&table, &[1])?;
//! let outcomes = loop {
//!     match lookup.step()? {
//!         Step::Need(fetch) => {
//!             let mut download = fetch.download(0);
//!             let mut fetched = Hint::default();
//!             while let Some(request) = download.request() {
//!                 let piece = &hint[request.offset as usize..]; // of the stream that GetHint answers with
//!                 download.receive(piece)?;
//!                 fetched.push(piece);
//!             }
//!             table.keep(fetch.check(fetched)?)?;
//!         }
//!         Step::Send(request) => {
//!             let (answers, _cost) = server.answer(&[&request.message().queries])?;
//!             let response = proto::QueryResponse { answers: answers.concat().into(), server_micros: 1 };
//!             lookup.receive(&prost::Message::encode_to_vec(&response))?;
//!         }
//!         Step::Done(outcomes) => break outcomes,
//!         _ => unreachable!("each response is given at once"),
//!     }
//! };
//! let record = outcomes.into_iter().next().expect("one a row").found?.expect("it is there");
//! assert_eq!(record.values[0].1, Value::Text("Trier".into()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cache;
mod error;
mod hint;
mod kept;
mod lookup;
mod registered;
mod table;
mod trust;
mod workers;

pub use cache::{CacheEntry, HEADER_BYTES};
pub use error::{Error, line};
pub use hint::{Download, Fetch};
pub use kept::{Hint, Kept};
pub use lookup::{Lookup, Outcome, Request, Step};
pub use registered::{ClientKeys, Grant, KEY_HEADER_BYTES, KeyEntry, KeyNeed, Rotation};
pub use table::{Policy, Record, Table, check_listing, listing};
pub use trust::{SeenEpochs, Trust};
pub use workers::{OneThread, Workers};
