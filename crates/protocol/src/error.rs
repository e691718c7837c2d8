//! Why a lookup was not made, or not believed.

use std::time::Duration;

use blindcore_wire::{KeyError, PartKind, Reason, TableError};

/// Why a lookup was not made, or not believed.
///
/// Nothing here is ever told to the server, and no query is ever sent again: a server that learnt whether an
/// answer of its choosing decodes could read the secret from it, bit by bit (selective failure). A caller that
/// retries on [`Error::Damaged`], [`Error::Garbage`] or [`Error::WrongAnswer`] gives a malicious server such a bit:
/// [`Error::is_of_an_answer`] tells these from what the server knows anyway.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The table has another content now, or other parameters.
    #[error(
        "table {table} is no longer as it was at epoch {epoch}; open it again (the server says: {message})"
    )]
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
        /// How long it says that asking again makes no sense.
        retry_after: Option<Duration>,
        /// Its words.
        message: String,
    },
    /// The server's description of a table makes no sense.
    #[error("the server's description of table {table} is refused: {source}")]
    Table {
        /// The table.
        table: String,
        /// What is wrong with it.
        source: Box<TableError>,
    },
    /// The server has another table than is trusted. Nothing was asked of it.
    #[error(
        "table {table} is refused: {why}; ask the table's publisher for its digest, and another server if this one \
         has an older table"
    )]
    Untrusted {
        /// The table.
        table: String,
        /// What is wrong with it.
        why: String,
    },
    /// The server has an older epoch of a signed table than this client has seen. Nothing was asked of it.
    #[error(
        "table {table} is refused: it is at epoch {epoch}, and this client has seen epoch {newest} of it; ask a server that \
         has not gone back or, if the publisher has, say so (--allow-rollback)"
    )]
    Rollback {
        /// The table.
        table: String,
        /// The epoch that the server has.
        epoch: u64,
        /// The newest that was seen.
        newest: u64,
    },
    /// The server does not follow the protocol in some other way.
    #[error(
        "the server does not follow the protocol: {what}; nothing of it was used: check what stands between, or ask another server"
    )]
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
    /// A hint that is not what its digest says. What was fetched of it is to be thrown away.
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
    /// What was asked for is not a key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The table has no keys.
    #[error("table {table} has no keys; look its rows up by row number (--index)")]
    NotKeyed {
        /// The table.
        table: String,
    },
    /// The table's rows are found by key alone.
    #[error(
        "rows of table {table} are not found by row number; look them up by key, or build it with a directory (without --no-directory)"
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
    /// An answer is noise. The server was not told, and nothing was sent again.
    #[error(
        "an answer of table {table}, part {part}, is damaged: it decodes to more noise than an honest one has. Either \
         something between its database and here fails or the server cheats; verify the database before you ask it \
         again, for asking again tells a cheat that this failed"
    )]
    Damaged {
        /// The table.
        table: String,
        /// The part.
        part: PartKind,
    },
    /// What came out is not a record. The server was not told, and nothing was sent again.
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
    /// A key of a batch was not answered; the others were. The server was not told that a key was meant.
    #[error(
        "a key of table {table} was not answered: the server failed in the bucket that it was asked of, or too many keys share \
         its buckets; the others were. Don't ask again for it because of this, which would tell the server what it was: ask in \
         another batch, which you would send anyway"
    )]
    NotAnswered {
        /// The table.
        table: String,
    },
    /// The lookup is over: it has given its outcomes, or it failed.
    #[error("this lookup is over; start another one")]
    Over,
    /// The scheme refused.
    #[error(transparent)]
    Scheme(#[from] blindcore_lookup::Error),
}

impl Error {
    /// Whether it is of what an answer decoded to, or of where the keys of a batch were asked. The server doesn't know of it, and must not learn of it by what is sent
    /// next: everything that would have been asked without it is asked, and nothing is asked because of it.
    #[must_use]
    pub fn is_of_an_answer(&self) -> bool {
        matches!(
            self,
            Error::Damaged { .. }
                | Error::Garbage { .. }
                | Error::WrongAnswer { .. }
                | Error::NoSuchRow { .. }
                | Error::NotAnswered { .. }
        )
    }

    /// What a server's refusal means: of `what`, asked of `table` as it was at `epoch`. A transport brings the
    /// [`Reason`], if there was one that this version knows, how long to wait if the server said so, and its words.
    #[must_use]
    pub fn refused(
        what: &'static str,
        reason: Option<Reason>,
        retry_after: Option<Duration>,
        message: &str,
        table: &str,
        epoch: u64,
    ) -> Self {
        let message = line(message);
        match reason {
            // The other one is of a table that was built anew. What is refused of no table can't be opened again.
            Some(Reason::StaleEpoch | Reason::WrongParameters) if !table.is_empty() => {
                Error::StaleEpoch { table: table.to_owned(), epoch, message }
            }
            _ => Error::Refused { what, reason, retry_after, message },
        }
    }
}

/// A stranger's words, fit for a line on a terminal: 1,000 characters at most, none of them control.
#[must_use]
pub fn line(text: &str) -> String {
    text.chars().take(1000).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_to_do() {
        let stale = Error::refused("a query", Some(Reason::StaleEpoch), None, "now 2\n\u{1b}[31m", "t", 1);
        assert!(matches!(stale, Error::StaleEpoch { epoch: 1, .. }));
        assert!(!stale.to_string().contains(char::is_control));
        let other = Error::refused("a query", Some(Reason::WrongParameters), None, "another", "t", 1);
        assert!(matches!(other, Error::StaleEpoch { epoch: 1, .. }));
        let listing = Error::refused("the list of tables", Some(Reason::StaleEpoch), None, "now 2", "", 0);
        assert_eq!(listing.to_string(), "the server refused the list of tables: now 2");
        let busy = Error::refused("a query", Some(Reason::Busy), None, &"x".repeat(5000), "t", 1);
        assert!(matches!(busy, Error::Refused { reason: Some(Reason::Busy), .. }));
        assert!(busy.to_string().len() < 1100);
    }
}
