//! Why a server does not start.

use std::net::SocketAddr;

use blindcore_wire::PartKind;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address can't be listened on.
    #[error("can't listen on {address}: {source}; give another address, or stop what listens there")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// Plain text would leave the machine.
    #[error(
        "{address} is beyond this machine and the transport is plain text, for everybody between to read and change; give a \
         certificate and its key for TLS (--tls-cert, --tls-key), or say that it is to be plain text (--plain-text)"
    )]
    PlainText {
        /// The address.
        address: SocketAddr,
    },
    /// A thread can't be started.
    #[error("can't start a thread to answer {table}: {source}; raise the limit on processes")]
    Thread {
        /// The table.
        table: String,
        /// Why not.
        source: std::io::Error,
    },
    /// A setting outside its range.
    #[error("{what} is {got}, {}; {remedy}", outside(*min, *max))]
    Range {
        /// Which setting.
        what: &'static str,
        /// Its value.
        got: u64,
        /// The least that is allowed.
        min: u64,
        /// The most that is allowed.
        max: u64,
        /// What to do.
        remedy: &'static str,
    },
    /// The folder of registered keys can't be used.
    #[error("registered keys can't be kept in {}: {source}; name another folder: --keys-dir", path.display())]
    Keys {
        /// The folder.
        path: std::path::PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Two tables of one name.
    #[error("two tables are called {name}; rename one or serve it elsewhere")]
    DuplicateTable {
        /// The name.
        name: String,
    },
    /// Settings or models that don't go together.
    #[error("{0}")]
    Setting(String),
    /// A table that is not what its description says.
    #[error("table {table}, part {part}: {what} is not what the description says; build the table again")]
    Mismatch {
        /// The table.
        table: String,
        /// The part.
        part: PartKind,
        /// What differs.
        what: &'static str,
    },
}

/// What is wrong with a number outside its range, of which only the ends are said that are there.
fn outside(min: u64, max: u64) -> String {
    match max {
        u64::MAX => format!("and must be at least {min}"),
        max => format!("outside {min} to {max}"),
    }
}
