//! What making or opening a database refuses.

use std::io;
use std::path::{Path, PathBuf};

/// Why a database can't be made or opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refuses.
    #[error("{} can't be {action}: {error}; {}", path.display(), remedy(error))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was being done.
        action: &'static str,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A folder without a manifest.
    #[error("{} {}; make one with `blindcore db build`", path.display(), absence(path))]
    NoDatabase {
        /// The folder.
        path: PathBuf,
    },
    /// A file that is not what its manifest says.
    #[error("{} is damaged or foreign: {why}; build the database again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, as a clause about "it".
        why: String,
    },
    /// A database that a newer blindcore made.
    #[error(
        "{} was made by a newer blindcore: its format is version {found}, and this build reads up to {known}; update this one",
        path.display()
    )]
    Newer {
        /// Its manifest.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest that is known.
        known: u32,
    },
    /// A database that an earlier blindcore made, and laid out otherwise.
    #[error(
        "{}: table {table:?} was made by an earlier blindcore, which laid the polynomials of {scheme} out otherwise; build \
         the database again",
        path.display()
    )]
    Older {
        /// Its manifest.
        path: PathBuf,
        /// The table's name.
        table: String,
        /// Its scheme.
        scheme: String,
    },
    /// A signature that is not of the table.
    #[error(
        "the signature of {} is not of its table by the key that it names: the database or its signature was changed; \
         restore it, build it again or, if you know its content, sign it with `blindcore db sign`",
        path.display()
    )]
    Signature {
        /// The folder.
        path: PathBuf,
    },
    /// An epoch of a signed table that its signer does not sign.
    #[error(
        "{} is signed by {before}, and {} would sign what replaces it: clients that trust the key would refuse that; \
         give its key (--sign), or say --change-signer",
        path.display(),
        now.as_deref().unwrap_or("nobody")
    )]
    Signer {
        /// The folder.
        path: PathBuf,
        /// The public key of its signer, in hexadecimal.
        before: String,
        /// That of the next epoch's; none where nobody signs it.
        now: Option<String>,
    },
    /// A table without proofs that is to be signed.
    #[error(
        "{} has no proofs, and clients that trust a key refuse a table without them; build it with --sign and not with \
         --no-proofs",
        path.display()
    )]
    Unprovable {
        /// The folder.
        path: PathBuf,
    },
    /// A database of a scheme that this build has not.
    #[error("{}: table {table:?}: {source}", path.display())]
    UnknownScheme {
        /// Its manifest.
        path: PathBuf,
        /// The table's name.
        table: String,
        /// Which scheme, and which are known.
        source: blindcore_lookup::Error,
    },
    /// The output folder is in the way.
    #[error("{} exists; remove it, choose another --out, or say --force to replace a database", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// Another build makes the same folder.
    #[error("{} is being built by {}; wait until that ends, or stop it, and build again", path.display(), other(process))]
    Building {
        /// The folder.
        path: PathBuf,
        /// The number of the process that builds it; empty where it is not known.
        process: String,
    },
    /// Another build or an update published an epoch in this folder while a build ran that replaces the one before.
    #[error("{} {}; nothing was changed: build again while nothing else changes it", path.display(), overtaken(*replaces, *now))]
    Overtaken {
        /// The folder.
        path: PathBuf,
        /// The epoch that was there when the build began; 0 where there was none.
        replaces: u64,
        /// The epoch that is there now.
        now: u64,
    },
    /// A row has no place in the table.
    #[error("{unit} {line} of {origin}: {why}")]
    Row {
        /// The source.
        origin: String,
        /// `line` or, of what has no lines, `row`.
        unit: &'static str,
        /// Where the row stands.
        line: u64,
        /// What is wrong, and the remedy.
        why: String,
    },
    /// The table as a whole is unfit.
    #[error("{0}")]
    Unfit(String),
    /// A stop was requested.
    #[error("interrupted; nothing was kept")]
    Interrupted,
    /// The source refuses.
    #[error(transparent)]
    Source(#[from] crate::SourceError),
    /// A temporary file refuses.
    #[error(transparent)]
    ExternalSort(#[from] crate::ExternalSortError),
    /// The scheme or the device refuses.
    #[error(transparent)]
    Lookup(#[from] blindcore_lookup::Error),
}

impl StoreError {
    pub(crate) fn io(path: &Path, action: &'static str, error: io::Error) -> Self {
        StoreError::Io { path: path.into(), action, error }
    }

    /// A file that doesn't fit its checksum.
    pub(crate) fn unfit(path: &Path) -> Self {
        StoreError::Damaged { path: path.into(), why: "its contents don't fit its checksum".into() }
    }
}

/// What is not there: the folder itself, or a database in it.
fn absence(path: &Path) -> &'static str {
    if path.exists() { "holds no blindcore database: manifest.json is missing" } else { "does not exist" }
}

/// A process, as far as it is known.
fn other(process: &str) -> String {
    if process.is_empty() { "another process".into() } else { format!("process {process}") }
}

/// What became of a folder while a build ran.
fn overtaken(replaces: u64, now: u64) -> String {
    match replaces {
        0 => format!("was made by another build meanwhile and is at epoch {now}"),
        _ => format!(
            "is at epoch {now} now, and this build, which replaces epoch {replaces}, would lose what came since"
        ),
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free space there or choose another disk"
        }
        io::ErrorKind::FileTooLarge => "raise the limit of a file's size (ulimit -f)",
        io::ErrorKind::NotFound => "check the path; if it is a file of a database, build the database again",
        io::ErrorKind::PermissionDenied => "check the permissions there",
        io::ErrorKind::NotADirectory => "name a folder, not a file",
        _ => "check that disk",
    }
}
