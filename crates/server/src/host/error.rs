//! Why folders can't be served.

use std::path::PathBuf;

use blindcore_store::StoreError;

use crate::TokensError;

/// Why a [`Host`](crate::Host) does not start, or does not take up what it was asked to read again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// A table's folder, and why it can't be served.
    #[error("{}", dir.display())]
    Table {
        /// The folder.
        dir: PathBuf,
        /// Why not.
        source: Box<HostError>,
    },
    /// No device was given.
    #[error("no device computes; name one with HostBuilder::device")]
    NoDevice,
    /// No folder was given.
    #[error("no table is served; name its folder with HostBuilder::table_dir")]
    NoTable,
    /// The folder holds another table than the one that is served.
    #[error("{} holds table {found} where {served} is served; start the server again", dir.display())]
    OtherTable {
        /// The folder.
        dir: PathBuf,
        /// The table's name in the folder now.
        found: String,
        /// The name that is served.
        served: String,
    },
    /// A file can't be read, or is too long.
    #[error(transparent)]
    File(#[from] blindcore_files::small::SmallFileError),
    /// A pipe, a device or a folder where a file is read at the start and at each reload.
    #[error("{} is not an ordinary file, and it is read again when the server is told; name a file", path.display())]
    NotOrdinary {
        /// What was named.
        path: PathBuf,
    },
    /// A file without tokens at the start.
    #[error("there are no tokens in {}, so nobody could ask; `blindcore token NAME` makes one", path.display())]
    NoTokens {
        /// The file.
        path: PathBuf,
    },
    /// A file of tokens can't be used.
    #[error("tokens {}", path.display())]
    Tokens {
        /// The file.
        path: PathBuf,
        /// The line, and why not.
        source: TokensError,
    },
    /// A certificate or its key can't be used.
    #[error(transparent)]
    Tls(#[from] blindcore_tls::Error),
    /// A database can't be opened or is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Batches that have no room in memory.
    #[error(
        "the batches of table {table} have to be in memory, for their buckets are too small to be streamed ({why}); allow more \
         memory, or build the table without --batch"
    )]
    BatchesStreamed {
        /// The table.
        table: String,
        /// Why they would be streamed.
        why: String,
    },
    /// A matrix does not fit its scheme.
    #[error(transparent)]
    Lookup(#[from] blindcore_lookup::Error),
    /// The device refuses, or memory is short.
    #[error(transparent)]
    Device(#[from] blindcore_accel::Error),
    /// A setting, an address, or a table beside its description.
    #[error(transparent)]
    Server(#[from] crate::Error),
    /// A thread can't be started.
    #[error("can't start a thread; raise the limit on processes")]
    Thread(#[source] std::io::Error),
}

/// An error and what caused it, in one line, each said once.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}
