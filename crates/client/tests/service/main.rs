//! The client and the server over real sockets.
//!
//! One program, for each would have all of the server compiled into it.

mod batches;
mod broken;
mod common;
mod epochs;
mod golden;
mod hints;
mod hostile_server;
mod limits;
mod lookups;
mod many;
mod proofs;
mod registered;
mod scores;
mod shares;
mod tls;
mod tokens;
