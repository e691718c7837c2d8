//! Why a lookup was not made, or not believed.

use std::path::PathBuf;

use blindcore_wire::{KeyError, PartKind, REASON_HEADER, Reason, TableError};
use tonic::{Code, Status};

/// Why a lookup was not made, or not believed.
///
/// Nothing here is ever told to the server, and no query is ever sent again: a server that learnt whether an
/// answer of its choosing decodes could read the secret from it, bit by bit (selective failure). Who retries
/// on [`Error::Garbage`] or [`Error::WrongAnswer`] gives a malicious server such a bit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is none that this client can use.
    #[error("{url:?} is no address of a server: {why}; give one such as http://127.0.0.1:7700")]
    Url {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The server can't be told to be the one that was meant.
    #[error("no TLS with {url}: {why}")]
    Tls {
        /// The address.
        url: String,
        /// Why not, and what to do.
        why: String,
    },
    /// Plain text would leave the machine.
    #[error(
        "{url} is beyond this machine and http:// is plain text: lookups stay private, but everybody between sees which table \
         is asked and can change what comes back; ask for https://, or say that plain text will do (--plain-text)"
    )]
    PlainText {
        /// The address.
        url: String,
    },
    /// A token would leave the machine in plain text.
    #[error(
        "{url} is beyond this machine and http:// is plain text, which no token is sent over; ask for https://"
    )]
    PlainTextToken {
        /// The address.
        url: String,
    },
    /// What was given is no token.
    #[error(
        "a token has 1 to {limit} visible characters and no space, and this has not; `blindcore token` makes one"
    )]
    Token {
        /// The most characters.
        limit: usize,
    },
    /// A file of certificates that can't be used.
    #[error("{0}; give a PEM file of the authority that signed the server's certificate")]
    Certificates(#[from] blindcore_tls::Error),
    /// Nobody answers there.
    #[error(
        "can't reach {url}: {why}; is the server running, and is the address right, http:// or https:// too?"
    )]
    Connect {
        /// The address.
        url: String,
        /// Why not.
        why: String,
    },
    /// The connection broke, or the server did not answer in time.
    #[error("{what} failed on the way: {why}; try again")]
    Network {
        /// What was asked.
        what: &'static str,
        /// What happened.
        why: String,
    },
    /// The table has another content now.
    #[error("table {table} is no longer at epoch {epoch}; open it again (the server says: {message})")]
    StaleEpoch {
        /// The table.
        table: String,
        /// The epoch that this client has.
        epoch: u64,
        /// The server's words.
        message: String,
    },
    /// The server refused.
    #[error("the server refused {what}: {message}")]
    Refused {
        /// What was asked.
        what: &'static str,
        /// Its reason, if it gives one that this version knows.
        reason: Option<Reason>,
        /// Its words.
        message: String,
    },
    /// The server's description of a table makes no sense.
    #[error("the server's description of table {table} is refused: {source}")]
    Table {
        /// The table.
        table: String,
        /// What is wrong with it.
        source: TableError,
    },
    /// The server has another table than is trusted. Nothing was asked of it.
    #[error(
        "table {table} is refused: {why}; ask whoever publishes the table for its digest, and another server if this one \
         has an older table"
    )]
    Untrusted {
        /// The table.
        table: String,
        /// What is wrong with it.
        why: String,
    },
    /// The server does not follow the protocol in some other way.
    #[error("the server does not follow the protocol: {what}; update the older of client and server")]
    Protocol {
        /// What it did.
        what: String,
    },
    /// A hint that is too large to take.
    #[error(
        "the hint of table {table}, part {part}, has {bytes} B, over the limit of {limit} B; raise the limit if \
         you trust this server"
    )]
    HintTooLarge {
        /// The table.
        table: String,
        /// The part.
        part: PartKind,
        /// Its size.
        bytes: u64,
        /// The most that is taken.
        limit: u64,
    },
    /// A hint that is not what its digest says. What was fetched of it is gone.
    #[error(
        "the hint of table {table}, part {part}, is not what its digest says and was thrown away; fetch it again; \
         if that fails too, don't trust this server"
    )]
    HintDigest {
        /// The table.
        table: String,
        /// The part.
        part: PartKind,
    },
    /// The cache can't be used.
    #[error("can't use the cache at {path}: {source}; give another folder, or none")]
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// There is no folder for the cache.
    #[error("neither XDG_CACHE_HOME nor HOME says where the cache is; set one, or give a folder, or none")]
    NoCacheFolder,
    /// What was asked for is no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The table has no keys.
    #[error("table {table} has no keys; look its rows up by index")]
    NotKeyed {
        /// The table.
        table: String,
    },
    /// The table's rows are found by key alone.
    #[error(
        "rows of table {table} are not found by index; look them up by key, or build it with keys by index"
    )]
    NotIndexed {
        /// The table.
        table: String,
    },
    /// There is no such row.
    #[error("there is no row {index} in table {table}, whose {rows} rows count from 0")]
    NoSuchRow {
        /// The table.
        table: String,
        /// What was asked for.
        index: u64,
        /// How many there are.
        rows: u64,
    },
    /// What came out is no record. The server was not told, and nothing was sent again.
    #[error(
        "an answer of table {table} decodes to no record: {why}. Either its database is damaged or the server \
         cheats; verify the database before you ask it again, for asking again tells a cheat that this failed"
    )]
    Garbage {
        /// The table.
        table: String,
        /// What is wrong with it.
        why: String,
    },
    /// What came out is not what the table's digest says. The server was not told, and nothing was sent again.
    #[error(
        "an answer of table {table}, part {part}, is not what the table's digest says. Either its database is damaged \
         or the server cheats; verify the database before you ask it again, for asking again tells a cheat that this \
         failed"
    )]
    WrongAnswer {
        /// The table.
        table: String,
        /// The part.
        part: PartKind,
    },
    /// The scheme refused.
    #[error(transparent)]
    Lookup(#[from] blindcore_lookup::Error),
}

/// A server's words, fit for a line on a terminal: 1,000 characters at most, none of them control.
pub(crate) fn line(text: &str) -> String {
    text.chars().take(1000).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// An error and what caused it, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(this) = cause {
        text = format!("{text}: {this}");
        cause = this.source();
    }
    line(&text)
}

/// What a status means to one who asked `what` of a table at an epoch.
pub(crate) fn refused(status: &Status, what: &'static str, table: &str, epoch: u64) -> Error {
    let word = status.metadata().get(REASON_HEADER).and_then(|w| w.to_str().ok());
    let reason = word.and_then(|w| w.parse().ok());
    let message = line(status.message());
    match (reason, status.code()) {
        (Some(Reason::StaleEpoch), _) => Error::StaleEpoch { table: table.to_owned(), epoch, message },
        (Some(_), _) => Error::Refused { what, reason, message },
        // A status of the server's own library rather than of its rules, or the transport's.
        (
            None,
            Code::Unavailable | Code::Unknown | Code::Cancelled | Code::DeadlineExceeded | Code::Internal,
        ) => Error::Network { what, why: chain(status) },
        (None, Code::OutOfRange | Code::ResourceExhausted) => {
            Error::Refused { what, reason: Some(Reason::TooLarge), message }
        }
        (None, Code::Unimplemented | Code::NotFound) => {
            Error::Protocol { what: format!("it has no method for {what} ({message})") }
        }
        (None, _) => Error::Refused { what, reason: None, message },
    }
}
