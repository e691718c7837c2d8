//! Where rows come from, one row at a time: files, folders and databases.
//!
//! | what is written                       | what it is                                                         |
//! |---------------------------------------|--------------------------------------------------------------------|
//! | `data.csv`                            | comma-separated values with a header row                           |
//! | `data.tsv`                            | the same with tabs, quotes included                                |
//! | `data.jsonl`, `data.ndjson`           | a JSON object a line                                               |
//! | `-`                                   | JSON lines on standard input                                       |
//! | `data.parquet`                        | Apache Parquet                                                     |
//! | `dir:photos`                          | a folder: the name and the content of every file                   |
//! | `sqlite:data.db?table=users`          | a table or view of a SQLite database                               |
//! | `sqlite:data.db?query=SELECT …`       | the rows of one `SELECT`                                           |
//! | `postgres://user@host/db?table=users` | a table or view of PostgreSQL; `?query=SELECT …` as well           |
//! | `mysql://user@host/db?table=users`    | a table or view of MySQL or MariaDB; `?query=SELECT …` as well     |
//!
//! What follows `?table=` or `?query=` is taken as it stands, to the end (a server's `table=NAME` may have options behind it): nothing
//! is percent-decoded, for `%`
//! is what `LIKE` patterns are made of, and `+`, `&` and `?` are themselves. A database's path ends at the first
//! `?`. Endings don't mind case.
//!
//! **CSV and TSV** are RFC 4180, in UTF-8. The first line names the columns. Every value is text, an empty cell
//! an empty text. A quoted field may hold delimiters, doubled quotes and line ends; a quote within an unquoted
//! field is itself. Blank lines are skipped; lines may end in CRLF; a byte order mark is skipped. A quote that is
//! never closed, text after a closing quote and a row of another length are errors, never guesses.
//!
//! **JSON lines**: the columns are the keys of the first object. In a later object a key that is missing is
//! null, which a build says once, and a key that is new is an error, unless only some columns are [asked for](SourceSpec::open). Objects of
//! [changes](SourceSpec::open_changes) have any of the keys that are known.
//!
//! A number is an integer of 64 bits, or a real: one whose digits would not come back, but for zeros behind the last (1.10 is 1.1),
//! is an error, and can be written as a text.
//!
//! **SQLite** databases are opened read-only and read in one transaction, so that rows written meanwhile are not
//! seen; a table is read in the order of its rowid or primary key.
//!
//! **Parquet**: top-level columns of single values; a nested one is an error unless it is not asked for. Integers,
//! booleans and floats are what they are (a float of 32 bits is the shortest decimal that names it), strings and
//! enums text, JSON what it says, decimals their digits as text, dates `2001-02-03`, times `04:05:06.5`, timestamps
//! `2001-02-03 04:05:06.5` with `+00` behind it where they are in UTC, UUIDs their 36 characters, other bytes blobs.
//!
//! **Folders**: a row a file, `name` its path below the folder with `/` between its parts, `content` its bytes; in
//! the order of the names' bytes. Folders in it are walked, hidden files are files, symbolic links are passed over.
//! A pipe, a device, a name that is not UTF-8, and a file that changes, goes away or is larger than a record may be
//! are errors.
//!
//! **PostgreSQL, MySQL and MariaDB** are read in one read-only transaction of one moment, row by row as the server
//! sends them; a table in the order of its primary key, where it has one. User, password, host and database are
//! percent-encoded, so `%2Fvar%2Frun%2Fpostgresql` is a Unix socket's folder (MySQL: the socket). A password that
//! is not in the URL is taken from `PGPASSWORD` or `MYSQL_PWD`; it appears in no message and no database. Before
//! `table=` or `query=`, or behind `table=NAME`, may stand `ca=FILE&`, a PEM file of the certificates that the server's must be signed by
//! (for MySQL, beside Mozilla's), and `tls=verify&` or `tls=off&`: without either, a server that is not on
//! this machine must show a certificate that fits its name, signed by those or by one of Mozilla's.
//!
//! | type                                                     | PostgreSQL                  | MySQL, MariaDB           |
//! |----------------------------------------------------------|-----------------------------|--------------------------|
//! | integers, `oid`, `YEAR`, `BIT` (MySQL)                   | an integer                  | an integer               |
//! | floats, of 32 bits as the decimal that names them        | a real                      | a real                   |
//! | booleans                                                 | a boolean                   | it has none: 0 and 1     |
//! | `numeric`, `decimal`, `money`                            | its digits, a text          | its digits, a text       |
//! | texts, enums, sets, `uuid`, `inet`, bit strings, `xml`   | a text                      | a text                   |
//! | `date`, `time`, `timestamp`, `interval`, `DATETIME`      | ISO 8601 text, in UTC       | ISO 8601 text, in UTC    |
//! | `bytea`, `BLOB`, `BINARY`                                | a blob                      | a blob                   |
//! | `json`, `jsonb`                                          | JSON                        | JSON; MariaDB's is text  |
//! | arrays, ranges, geometric types                          | the text that it writes     | refused by name          |
//! | anything else                                            | refused by name             | refused by name          |
//!
//! PostgreSQL's table is `NAME` or `SCHEMA.NAME`, in its own case.

mod delimited;
pub(crate) mod dir;
mod followed;
mod json_lines;
mod lines;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "postgres")]
mod postgres;
mod rows;
#[cfg_attr(not(all(feature = "mysql", feature = "postgres")), allow(dead_code))]
mod server;
mod since;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use followed::Overlap;
pub(crate) use followed::{Kept, Reached, now};
pub(crate) use json_lines::{keeps_digits, value as json_value};
pub use rows::Rows;
pub(crate) use rows::{Ahead, Batch};
pub(crate) use since::Followed;

use crate::Value;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::Path;

use blindcore_units::Unit;
use blindcore_wire::KeyType;

/// Bytes in a row of a source, at most: 64 MiB.
pub const MAX_ROW_BYTES: usize = 64 << 20;

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Where it starts: the line of a file, counted from 1, or the row of a table, the same.
    pub line: u64,
    /// A value for each of [`Source::columns`].
    pub values: Vec<Value>,
}

/// How much of a source was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// So much.
    pub done: u64,
    /// Of so much, where that is known: not for standard input, servers, and SQLite's queries and views.
    pub total: Option<u64>,
    /// Counted in these: bytes of a file, rows of a table or query, files of a folder.
    pub unit: Unit,
}

/// A table being read.
///
/// After an error or the end there is nothing more to be had from it.
pub trait Source: Send {
    /// The names of the columns, in the order of every row's values.
    fn columns(&self) -> &[String];

    /// The next row, or `None` after the last.
    ///
    /// # Errors
    /// A row is malformed, naming its line; or the source can't be read any further.
    fn next_row(&mut self) -> Result<Option<Row>, SourceError>;

    /// Adds the next row to `rows`, encoded; false after the last.
    ///
    /// # Errors
    /// As [`Source::next_row`]; `rows` has no more rows then than before.
    fn next_into(&mut self, rows: &mut Rows) -> Result<bool, SourceError> {
        let Some(row) = self.next_row()? else { return Ok(false) };
        rows.push(&row);
        Ok(true)
    }

    /// Which values of the last row were not given and stand as null: keys that an object of
    /// [changes](SourceSpec::open_changes) in JSON lines lacks.
    fn missing(&self) -> &[usize] {
        &[]
    }

    /// Columns that some rows so far did not give, and how many those were: their values stand as null.
    fn lacked(&self) -> Vec<(String, u64)> {
        Vec::new()
    }

    /// Names of what is there and is not read, such as a folder's symbolic links. No row of these names or of what may lie
    /// below them comes.
    fn passed_over(&self) -> &[String] {
        &[]
    }

    /// The one form of a column's values as keys, where its type writes one value in several.
    fn key_type(&self, column: usize) -> Option<KeyType> {
        let _ = column;
        None
    }

    /// Whether a server keeps a column as texts, and compares its values as such whatever they say.
    fn is_texts(&self, column: usize) -> bool {
        let _ = column;
        false
    }

    /// How far it is.
    fn position(&self) -> Position;
}

/// Why a source gives no rows.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// What was written names no source.
    #[error("{spec:?} names no source: {why}; {remedy}")]
    Spec {
        /// What was written.
        spec: String,
        /// What is wrong with it.
        why: String,
        /// What to write.
        remedy: String,
    },
    /// The system refuses.
    #[error("{origin} can't be read: {error}; {remedy}")]
    Io {
        /// The source.
        origin: String,
        /// What the system said.
        #[source]
        error: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// SQLite refuses.
    #[cfg(feature = "sqlite")]
    #[error("{origin} can't be read: {error}; {remedy}")]
    Sqlite {
        /// The source.
        origin: String,
        /// What SQLite said.
        #[source]
        error: rusqlite::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// A database server refuses, or goes away.
    #[error("{origin} can't be read: {error}; {remedy}")]
    Server {
        /// The source.
        origin: String,
        /// What the server, or the way to it, said.
        error: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The source as a whole is unfit: its header, its query, what happened to it meanwhile.
    #[error("{origin}: {why}; {remedy}")]
    Unfit {
        /// The source.
        origin: String,
        /// What is wrong.
        why: String,
        /// What to do.
        remedy: String,
    },
    /// A column that isn't there.
    #[error("{origin} has no column {name:?}; its columns are {}", columns.join(", "))]
    NoColumn {
        /// The source.
        origin: String,
        /// The column that was asked for.
        name: String,
        /// The columns there are.
        columns: Vec<String>,
    },
    /// A row can't be read.
    #[error("{unit} {line} of {origin}: {why}; {remedy}")]
    Row {
        /// The source.
        origin: String,
        /// `line` or `row`.
        unit: &'static str,
        /// Where the row starts, counted from 1.
        line: u64,
        /// What is wrong.
        why: String,
        /// What to do.
        remedy: &'static str,
    },
}

const ENDINGS: &str = "what is supported: FILE.csv, FILE.tsv, FILE.jsonl, FILE.ndjson, FILE.parquet, - for JSON lines \
                       on standard input, dir:FOLDER, and sqlite:FILE, postgres://USER@HOST/DATABASE or \
                       mysql://USER@HOST/DATABASE with ?table=NAME or ?query=SELECT ...";

/// Which source to read: what a person wrote, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSpec(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Delimited { path: String, delimiter: u8 },
    JsonLines { path: String },
    Stdin,
    Parquet { path: String },
    Dir { path: String },
    Sqlite { path: String, of: Of },
    Server(Box<server::Server>),
}

/// Which rows of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Of {
    /// Those of a table or view.
    Table(String),
    /// Those of a query.
    Query(String),
    /// Of one of these, those that this statement asks for where it is followed by a column of it.
    Followed { own: Box<Of>, column: Option<String>, sql: String },
}

impl Of {
    /// What a person wrote, also where it is followed.
    fn own(&self) -> &Self {
        if let Self::Followed { own, .. } = self { own } else { self }
    }

    /// What errors call it, in this place.
    fn origin(&self, place: &str) -> String {
        match self.own() {
            Self::Table(name) => format!("{name} in {place}"),
            _ => format!("the query on {place}"),
        }
    }

    /// The statement that reads it where it is followed.
    ///
    /// # Errors
    /// The column that it is followed by is not among its `columns`.
    #[cfg_attr(not(any(feature = "mysql", feature = "postgres", feature = "sqlite")), allow(dead_code))]
    fn followed(&self, origin: &str, columns: &[String]) -> Result<Option<&str>, SourceError> {
        let Self::Followed { column, sql, .. } = self else { return Ok(None) };
        match column {
            Some(name) if !columns.contains(name) => {
                let (origin, name, columns) = (origin.to_owned(), name.clone(), columns.to_vec());
                Err(SourceError::NoColumn { origin, name, columns })
            }
            _ => Ok(Some(sql)),
        }
    }
}

impl fmt::Display for Of {
    /// What a person wrote.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(name) => write!(f, "table={name}"),
            Self::Query(sql) => write!(f, "query={sql}"),
            Self::Followed { own, .. } => own.fmt(f),
        }
    }
}

impl SourceSpec {
    /// Understands what a person wrote, as the table in [the module](self) says. Touches no disk.
    ///
    /// # Errors
    /// It names no source that is supported.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        // A URL may hold a password, in a place where none is expected if it is misspelt.
        let shown = match text.split_once(':') {
            Some((scheme, rest)) if rest.starts_with("//") || text.contains('@') => format!("{scheme}:..."),
            _ => text.to_owned(),
        };
        let refuse = |why: &str, remedy: &str| {
            Err(SourceError::Spec { spec: shown.clone(), why: why.to_owned(), remedy: remedy.to_owned() })
        };
        if text == "-" {
            return Ok(Self(Kind::Stdin));
        }
        match server::Server::parse(text) {
            Some(Ok(server)) => return Ok(Self(Kind::Server(Box::new(server)))),
            Some(Err((why, remedy))) => return refuse(&why, &remedy),
            None => {}
        }
        if let Some(path) = text.strip_prefix("dir:") {
            return match path {
                "" => refuse("it has no path", "write dir:FOLDER"),
                path => Ok(Self(Kind::Dir { path: path.to_owned() })),
            };
        }
        if let Some(rest) = text.strip_prefix("sqlite:") {
            let (path, question) = rest.split_once('?').unwrap_or((rest, ""));
            let of = match question.split_once('=') {
                _ if path.is_empty() => return refuse("it has no path", "write sqlite:FILE?table=NAME"),
                Some(("table" | "query", "")) => {
                    return refuse("nothing follows the =", "name a table or a query");
                }
                Some(("table", name)) => Of::Table(name.to_owned()),
                Some(("query", sql)) => Of::Query(sql.to_owned()),
                _ => {
                    let remedy = format!("write sqlite:{path}?table=NAME or sqlite:{path}?query=SELECT ...");
                    return refuse("it doesn't say which table", &remedy);
                }
            };
            return Ok(Self(Kind::Sqlite { path: path.to_owned(), of }));
        }
        if text.contains("://") {
            return refuse("it is of no kind of server that is supported", ENDINGS);
        }
        let path = text.to_owned();
        let ending = Path::new(text).extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
        match ending.as_str() {
            "csv" => Ok(Self(Kind::Delimited { path, delimiter: b',' })),
            "tsv" => Ok(Self(Kind::Delimited { path, delimiter: b'\t' })),
            "jsonl" | "ndjson" => Ok(Self(Kind::JsonLines { path })),
            "parquet" => Ok(Self(Kind::Parquet { path })),
            "db" | "sqlite" | "sqlite3" => refuse(
                "a SQLite database holds several tables, and a folder that db build made is not a source",
                &format!("write sqlite:{text}?table=NAME or sqlite:{text}?query=SELECT ..."),
            ),
            "" => refuse("it has no ending to tell its format by", ENDINGS),
            other => refuse(&format!("files that end in .{other} are not supported"), ENDINGS),
        }
    }

    /// Understands an argument as [`SourceSpec::parse`] does.
    ///
    /// # Errors
    /// As there, or it is not UTF-8.
    pub fn parse_argument(text: &OsStr) -> Result<Self, SourceError> {
        let foreign = || SourceError::Spec {
            spec: text.to_string_lossy().into_owned(),
            why: "it is not UTF-8".to_owned(),
            remedy: "rename the file, or name a link to it".to_owned(),
        };
        text.to_str().ok_or_else(foreign).and_then(Self::parse)
    }

    /// Whether it is a folder in which this path lies, or would lie, so that reading it reads what is written there.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        let Kind::Dir { path: folder } = &self.0 else { return false };
        let Ok(folder) = Path::new(folder).canonicalize() else { return false };
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        absolute
            .ancestors()
            .find_map(|a| a.canonicalize().ok())
            .is_some_and(|there| there.starts_with(&folder))
    }

    /// The column that rows are looked up by, unless one is named: a file's name in a folder.
    #[must_use]
    pub fn default_key(&self) -> Option<&'static str> {
        matches!(self.0, Kind::Dir { .. }).then_some(dir::NAME)
    }

    /// What to call the table, unless a name is given: its name in the database, the folder's name, or the file's name without
    /// its ending, with `_` for whatever is not an ASCII letter, a digit, `_`, `.` or `-`, and neither `.` nor `-` first. `None`
    /// for standard input and queries, and where nothing is left.
    #[must_use]
    pub fn default_table_name(&self) -> Option<String> {
        let name = match &self.0 {
            Kind::Delimited { path, .. } | Kind::JsonLines { path } | Kind::Parquet { path } => {
                Path::new(path).file_stem()?.to_str()?
            }
            Kind::Dir { path } => Path::new(path).file_name()?.to_str()?,
            Kind::Server(server) => match &server.of {
                Of::Table(name) => name,
                Of::Query(_) | Of::Followed { .. } => return None,
            },
            Kind::Sqlite { of: Of::Table(name), .. } => name,
            Kind::Sqlite { .. } | Kind::Stdin => return None,
        };
        let fit = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
        let name: String = name.trim_start_matches(['.', '-']).chars().map(fit).collect();
        (!name.is_empty()).then_some(name)
    }

    /// Opens the source: for all of its columns, or for the `wanted` ones, in that order.
    ///
    /// Columns that aren't wanted cost no more than finding where they end, and nothing about their values is
    /// checked; in JSON lines, keys that aren't wanted may come and go.
    ///
    /// # Errors
    /// The source can't be opened, its header is missing or has an empty or repeated name, or a wanted column is
    /// not there or wanted twice.
    pub fn open(&self, wanted: Option<&[String]>) -> Result<Box<dyn Source>, SourceError> {
        Ok(match &self.0 {
            Kind::Delimited { path, delimiter } => {
                Box::new(delimited::Delimited::new(lines::open(path)?, *delimiter, wanted)?)
            }
            Kind::JsonLines { path } => Box::new(json_lines::JsonLines::new(lines::open(path)?, wanted)?),
            Kind::Stdin => Box::new(json_lines::JsonLines::new(lines::stdin(), wanted)?),
            #[cfg(feature = "parquet")]
            Kind::Parquet { path } => Box::new(parquet::Parquet::open(path, wanted)?),
            #[cfg(not(feature = "parquet"))]
            Kind::Parquet { .. } => return Err(self.not_compiled("parquet")),
            Kind::Dir { path } => Box::new(dir::Dir::open(path, wanted)?),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite { path, of } => Box::new(sqlite::Sqlite::open(path, of, wanted)?),
            #[cfg(not(feature = "sqlite"))]
            Kind::Sqlite { .. } => return Err(self.not_compiled("sqlite")),
            Kind::Server(server) => match server.system {
                #[cfg(feature = "postgres")]
                server::System::Postgres => {
                    Box::new(server::Threaded::start(server, wanted, postgres::read)?)
                }
                #[cfg(not(feature = "postgres"))]
                server::System::Postgres => return Err(self.not_compiled("postgres")),
                #[cfg(feature = "mysql")]
                server::System::Mysql => Box::new(server::Threaded::start(server, wanted, mysql::read)?),
                #[cfg(not(feature = "mysql"))]
                server::System::Mysql => return Err(self.not_compiled("mysql")),
            },
        })
    }

    /// Opens changes of a table, whose columns and an update's own are `known`. In JSON lines those are the columns, each
    /// object has some of them, and other keys are errors unless they are `ignored`; any other source is opened for all
    /// of its columns.
    ///
    /// # Errors
    /// As [`SourceSpec::open`].
    pub fn open_changes(&self, known: &[String], ignored: &[String]) -> Result<Box<dyn Source>, SourceError> {
        Ok(match &self.0 {
            Kind::JsonLines { path } => {
                Box::new(json_lines::JsonLines::changes(lines::open(path)?, known, ignored)?)
            }
            Kind::Stdin => Box::new(json_lines::JsonLines::changes(lines::stdin(), known, ignored)?),
            _ => return self.open(None),
        })
    }

    /// Whether all of its values are texts, because the format has no types.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self.0, Kind::Delimited { .. })
    }

    /// Whether it is a database's table or query, which has columns for others.
    pub(crate) fn is_database(&self) -> bool {
        matches!(self.0, Kind::Sqlite { .. } | Kind::Server(_))
    }

    /// What its rows are counted as in errors.
    pub(crate) fn unit(&self) -> &'static str {
        match self.0 {
            Kind::Delimited { .. } | Kind::JsonLines { .. } | Kind::Stdin => "line",
            Kind::Parquet { .. } | Kind::Dir { .. } | Kind::Sqlite { .. } | Kind::Server(_) => "row",
        }
    }

    /// Whether it is a folder of files.
    pub(crate) fn is_folder(&self) -> bool {
        matches!(self.0, Kind::Dir { .. })
    }

    /// The feature that a build needs to read this source, and lacks.
    #[allow(dead_code, reason = "a build with every feature lacks none")]
    fn not_compiled(&self, feature: &str) -> SourceError {
        SourceError::Spec {
            spec: self.to_string(),
            why: "this build can't read it".to_owned(),
            remedy: format!("build blindcore with the feature `{feature}`"),
        }
    }
}

impl fmt::Display for SourceSpec {
    /// What was written, but for a server's password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Delimited { path, .. } | Kind::JsonLines { path } | Kind::Parquet { path } => {
                f.write_str(path)
            }
            Kind::Dir { path } => write!(f, "dir:{path}"),
            Kind::Server(server) => server.fmt(f),
            Kind::Stdin => f.write_str("-"),
            Kind::Sqlite { path, of } => write!(f, "sqlite:{path}?{of}"),
        }
    }
}

/// Where each wanted column stands among a source's, which must have names and no name twice.
fn project(origin: &str, columns: &[String], wanted: Option<&[String]>) -> Result<Vec<usize>, SourceError> {
    let unfit = |why: String, remedy: &str| SourceError::Unfit {
        origin: origin.to_owned(),
        why,
        remedy: remedy.to_owned(),
    };
    if columns.is_empty() {
        return Err(unfit("there are no columns".into(), "name at least one"));
    }
    let mut names = HashSet::new();
    for (i, name) in columns.iter().enumerate() {
        if name.is_empty() {
            return Err(unfit(format!("column {} has no name", i + 1), "give every column one"));
        }
        if !names.insert(name) {
            return Err(unfit(
                format!("two columns are called {name:?}"),
                "give every column a name of its own",
            ));
        }
    }
    let Some(wanted) = wanted else { return Ok((0..columns.len()).collect()) };
    let mut positions = Vec::new();
    for name in wanted {
        let position = columns.iter().position(|column| column == name).ok_or_else(|| {
            SourceError::NoColumn { origin: origin.to_owned(), name: name.clone(), columns: columns.to_vec() }
        })?;
        if positions.contains(&position) {
            return Err(unfit(format!("column {name:?} is asked for twice"), "ask for it once"));
        }
        positions.push(position);
    }
    Ok(positions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_are_told_apart_and_name_their_table() {
        for (text, table) in [
            ("a/b/people.csv", Some("people")),
            ("PEOPLE.CSV", Some("PEOPLE")),
            ("x.y.tsv", Some("x.y")),
            ("x.jsonl", Some("x")),
            ("x.NdJson", Some("x")),
            ("grüße an.csv", Some("gr__e_an")),
            ("..csv", None),
            (".-x.csv", Some("x")),
            ("-", None),
            ("a/x.Parquet", Some("x")),
            ("dir:a/My files/", Some("My_files")),
            ("dir:..", None),
            ("postgres://u@h:1/d?table=s.t", Some("s.t")),
            ("mysql://u@h/d?tls=off&query=SELECT 1", None),
            ("sqlite:a/b.db?table=order items", Some("order_items")),
            ("sqlite:b.db?table=a=b&c", Some("a_b_c")),
            ("sqlite:b?query=SELECT * FROM t WHERE x LIKE '%ab+?'", None),
        ] {
            let spec = SourceSpec::parse(text).unwrap();
            assert_eq!(spec.default_table_name().as_deref(), table, "{text}");
            assert_eq!(spec.to_string(), text);
        }
        let Kind::Sqlite { path, of: Of::Query(sql) } =
            SourceSpec::parse("sqlite:a b.db?query=SELECT '?%20=+'").unwrap().0
        else {
            panic!()
        };
        assert_eq!((path.as_str(), sql.as_str()), ("a b.db", "SELECT '?%20=+'"));
    }

    #[test]
    fn what_names_no_source_is_refused_with_the_right_form() {
        for (text, remedy) in [
            ("", "what is supported: FILE.csv"),
            ("data", "FILE.tsv"),
            (".csv", "FILE.csv"),
            ("data.orc", ".orc are not supported; what is supported: FILE.csv"),
            ("dir:", "write dir:FOLDER"),
            (
                "my.db",
                "a folder that db build made is not a source; write sqlite:my.db?table=NAME or sqlite:my.db?query=SELECT ...",
            ),
            ("my.SQLITE3", "write sqlite:my.SQLITE3?table=NAME"),
            ("sqlite:my.db", "write sqlite:my.db?table=NAME or"),
            ("sqlite:my.db?tabel=x", "write sqlite:my.db?table=NAME or"),
            ("sqlite:my.db?table=", "name a table"),
            ("sqlite:?table=x", "write sqlite:FILE?table=NAME"),
        ] {
            let error = SourceSpec::parse(text).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("{text:?} names no source: ")) && error.contains(remedy),
                "{error}"
            );
        }
    }

    #[test]
    fn a_source_that_is_not_compiled_in_names_its_feature() {
        let spec = SourceSpec::parse("mysql://u:secret@h/d?table=t").unwrap();
        let error = spec.not_compiled("mysql").to_string();
        assert!(error.ends_with("build blindcore with the feature `mysql`"), "{error}");
        assert!(!error.contains("secret") && !error.contains('\n'), "{error}");
    }

    #[test]
    #[cfg(all(feature = "parquet", feature = "sqlite"))]
    fn a_file_that_is_not_there_is_an_error() {
        for spec in ["no/such.csv", "no/such.jsonl", "no/such.parquet", "sqlite:no/such.db?table=t"] {
            let error = SourceSpec::parse(spec).unwrap().open(None).err().unwrap();
            assert!(
                matches!(&error, SourceError::Io { error, .. } if error.kind() == io::ErrorKind::NotFound)
            );
            assert!(
                error.to_string().contains("no/such.") && error.to_string().contains("check the path"),
                "{error}"
            );
        }
    }
}
