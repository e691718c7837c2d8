//! What an update is asked for.

use std::path::PathBuf;

use blindcore_wire::signature::SigningKey;

#[cfg(doc)]
use crate::Updated;
use crate::{ExternalSort, Overlap, SourceSpec};

/// The column of CHANGES that says what happens to a row: `set`, also where it is empty, or `remove`.
pub const CHANGE_COLUMN: &str = "_change";
/// The column of CHANGES that says which row is meant in a table without keys; empty for a row that is added.
pub const ROW_COLUMN: &str = "_row";

/// What to change.
#[derive(Clone, Debug)]
pub struct UpdateOptions {
    /// The database.
    pub dir: PathBuf,
    /// Where changed rows come from: the table's columns, and perhaps [`CHANGE_COLUMN`] and [`ROW_COLUMN`].
    pub changes: SourceSpec,
    /// A column of the source that only grows: rows below what an update before this one saw are not asked for. `xmin` of a
    /// PostgreSQL table misses no row that is committed late.
    pub follow: Option<String>,
    /// How far below that a read begins.
    pub overlap: Overlap,
    /// Whether rows keep the columns that CHANGES don't give. Without it every row that is set gives all of them.
    pub partial: bool,
    /// Whether CHANGES are the whole table, so that rows which they lack are removed. The table needs a directory of keys.
    pub whole: bool,
    /// Columns of CHANGES to pass over as if they were not there, the table's and an update's own among them, but for the key
    /// and for what `follow` reads. Others that the table lacks are refused or, of a database, named in [`Updated::notes`].
    pub ignore: Vec<String>,
    /// The new epoch's signer.
    pub sign: Option<SigningKey>,
    /// Whether an epoch of a signed table may be signed by another key, or by none.
    pub change_signer: bool,
    /// Bytes of memory for sorting.
    pub memory: usize,
}

impl UpdateOptions {
    /// Rows that are set or removed one by one, whole.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>, changes: SourceSpec) -> Self {
        Self {
            dir: dir.into(),
            changes,
            follow: None,
            overlap: Overlap::Usual,
            partial: false,
            whole: false,
            ignore: Vec::new(),
            sign: None,
            change_signer: false,
            memory: ExternalSort::DEFAULT_MEMORY,
        }
    }
}
