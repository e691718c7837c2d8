//! The lookup server: tables in, answers out, nothing learnt.
//!
//! ```text
//!   socket ──▶ connection ──▶ gRPC  ┐
//!              limits, time   HTTP  ┴▶ state: name, epoch, digest, sizes ──▶ batcher ─▶ one pass, many clients
//!                                      refused before memory is taken        bounded
//! ```
//!
//! gRPC and plain HTTP share one port; the messages are `blindcore_wire`'s. A server sees which table and part
//! is asked, how many queries, when and by whom; it never logs more than that, and what it does for a query
//! depends on nothing that is in it.
//!
//! [`Host`] serves folders: it opens databases, copies or streams their matrices within a memory limit, takes up new
//! epochs, and reads certificates and tokens again on request. [`Server`] is the part below it, for tables that a program
//! has in memory.
//!
//! ```no_run
//! # async fn serve(device: blindcore_accel::Device) -> Result<(), Box<dyn std::error::Error>> {
//! use blindcore_server::Host;
//!
//! let host = Host::builder().table_dir("people.db").device(device).listen("127.0.0.1:7700".parse()?).open()?;
//! let server = host.bind().await?;
//! println!("listening on {}", server.address());
//! let stats = server.stats();
//! server.run(async { /* until a signal */ }).await;
//! println!("{} connections", stats.totals().connections);
//! # Ok(())
//! # }
//! ```

mod access;
mod activity;
mod admission;
mod batcher;
mod clients;
mod config;
mod connection;
mod error;
mod front;
mod grpc;
mod host;
mod http;
mod metrics;
mod open_files;
mod permit;
mod refusal;
mod registered;
mod serve;
mod sizes;
mod state;
mod stats;
pub mod sum;
mod table;
mod tls;
mod tokens;
mod turns;
mod unread;

pub use config::Config;
pub use error::Error;
pub use host::{AccessFiles, BoundHost, Host, HostBuilder, HostError, MemoryLimit, Reloader};
pub use registered::{Clock, KeysConfig};
pub use serve::{Handle, Server};
pub use stats::{KeyStats, PartStats, Stats, Totals};
pub use table::{Hint, Part, Table};
pub use tokens::{Tokens, TokensError};
