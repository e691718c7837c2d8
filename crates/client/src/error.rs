//! Why a lookup was not made, or not believed.

use std::path::PathBuf;

use blindcore_protocol::{Error as LookupError, line};
use blindcore_wire::{REASON_HEADER, Reason};
use tonic::{Code, Status};

use crate::broken::{broken, words};
use crate::waiting::told;

/// Why a lookup was not made, or not believed.
///
/// Nothing here is ever told to the server, and no query is ever sent again; [`LookupError`] says why.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system gives a blocking client no thread.
    #[error(
        "no thread for connections: {source}; raise the limit of processes, or use the asynchronous client"
    )]
    Runtime {
        /// What the system says.
        source: std::io::Error,
    },
    /// A blocking client where blocking stops everything else.
    #[error("a blocking client was called from asynchronous code; use blindcore_client::Client there")]
    Blocking,
    /// The address is none that this client can use.
    #[error("{url:?} is not an address of a server: {why}; give one such as http://127.0.0.1:7700")]
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
    /// What was given is not a token.
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
    /// The server speaks TLS and was asked without.
    #[error("{what} failed: {}; ask for https://", crate::connector::SPEAKS_TLS)]
    SpeaksTls {
        /// What was asked.
        what: &'static str,
    },
    /// The connection broke, or the server did not answer in time.
    #[error(
        "{what} failed on the way: {why}; try again, and if it stays, see whether a blindcore server answers there"
    )]
    Network {
        /// What was asked.
        what: &'static str,
        /// What happened.
        why: String,
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
    /// Keys of a text can't be had, or their lookups can't go on.
    #[error(transparent)]
    Keys(#[from] crate::KeysError),
    /// What the protocol itself refuses: the server's refusals, and what it sent where that is not believed.
    #[error(transparent)]
    Lookup(#[from] blindcore_protocol::Error),
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

/// What it means that a server spoke something else.
pub(crate) fn spoke(said: &'static str, what: &'static str) -> Error {
    if said == crate::connector::SPEAKS_TLS {
        return Error::SpeaksTls { what };
    }
    LookupError::Protocol { what: format!("{what} was asked, and {said}") }.into()
}

/// What a status means to one who asked `what` of a table at an epoch.
pub(crate) fn refused(status: &Status, what: &'static str, table: &str, epoch: u64) -> Error {
    let word = status.metadata().get(REASON_HEADER).and_then(|w| w.to_str().ok());
    let reason: Option<Reason> = word.and_then(|w| w.parse().ok());
    let wait = status.metadata().get("retry-after").and_then(|s| told(s.to_str().ok()?));
    // Beside a reason, too, the words can be the library's, of a page of HTTP: a server sends one where a request was damaged on
    // the way and looks like nobody's.
    let broken = broken(status, what);
    let said = if broken.is_some() {
        "by a page of HTTP and no answer; see what stands between"
    } else {
        status.message()
    };
    let refused = |reason| LookupError::refused(what, reason, wait, said, table, epoch).into();
    if let (None | Some(Reason::Malformed), Some(broken)) = (reason, broken) {
        return broken;
    }
    match (reason, status.code()) {
        (Some(_), _) => refused(reason),
        // A status of the server's own library rather than of its rules.
        (
            None,
            Code::Unavailable | Code::Unknown | Code::Cancelled | Code::DeadlineExceeded | Code::Internal,
        ) => Error::Network { what, why: words(status) },
        (None, Code::OutOfRange | Code::ResourceExhausted) => refused(Some(Reason::TooLarge)),
        (None, Code::Unimplemented | Code::NotFound) => {
            let what = format!("it has no method for {what} ({})", words(status));
            LookupError::Protocol { what }.into()
        }
        (None, _) => refused(None),
    }
}
