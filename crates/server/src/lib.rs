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
//! ```no_run
//! # async fn serve(tables: Vec<blindcore_server::Table>) -> Result<(), blindcore_server::Error> {
//! use blindcore_server::{Config, Server};
//!
//! let server = Server::bind(Config::default(), tables).await?;
//! let stats = server.stats();
//! println!("listening on {}", server.address());
//! server.run(async { /* until a signal */ }).await;
//! println!("{} connections", stats.totals().connections);
//! # Ok(())
//! # }
//! ```

mod access;
mod batcher;
mod clients;
mod config;
mod error;
mod grpc;
mod host;
mod http;
mod metrics;
mod permit;
mod refusal;
mod serve;
mod state;
mod stats;
pub mod sum;
mod table;
mod tls;

pub use access::{Tokens, TokensError};
pub use config::Config;
pub use error::Error;
pub use host::{BoundHost, Host, HostBuilder, HostError, MemoryLimit, Reloader};
pub use serve::{Handle, Server};
pub use stats::{PartStats, Stats, Totals};
pub use table::{Hint, Part, Table};
