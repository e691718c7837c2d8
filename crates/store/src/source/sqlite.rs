//! SQLite tables, views and queries, read-only.
//!
//! Rows borrow from their statement and statements from their connection, so a thread of its own holds all
//! three and sends rows on in small batches.

use super::lines::{failed, open_regular};
use super::{MAX_ROW_BYTES, Of, Position, Row, Source, SourceError, project};
use crate::Value;
use blindcore_units::Unit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, ErrorCode, InterruptHandle, OpenFlags};
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use std::{thread, vec};

/// Rows that are sent on together, at most.
const BATCH_ROWS: usize = 256;
/// Bytes of values after which a batch is sent on.
const BATCH_BYTES: usize = 256 << 10;
/// Batches that wait to be taken.
const BATCHES: usize = 2;

type Batch = Result<Vec<Row>, SourceError>;

pub(super) struct Sqlite {
    origin: String,
    columns: Vec<String>,
    done: u64,
    total: Option<u64>,
    batch: vec::IntoIter<Row>,
    batches: Receiver<Batch>,
    interrupt: InterruptHandle,
    thread: Option<JoinHandle<()>>,
}

impl Sqlite {
    pub(super) fn open(path: &str, of: &Of, wanted: Option<&[String]>) -> Result<Self, SourceError> {
        let origin = of.origin(path);
        let refused = |error| refused(&origin, error);
        let (connection, frozen) = connect(path)?;
        let mut query = match of.own() {
            Of::Table(name) => Query::table(&connection, &origin, name, wanted)?,
            Of::Query(sql) | Of::Followed { sql, .. } => Query::free(&connection, &origin, sql, wanted)?,
        };
        if let Some(sql) = of.followed(&origin, &query.columns)? {
            let numbered =
                |name: &str| connection.prepare(&format!("SELECT rowid FROM {}", quoted(name))).is_ok();
            // Rows of one value come as they were numbered, where they are: not in a view, nor in a table WITHOUT ROWID.
            let by_number = match of.own() {
                Of::Table(name) if numbered(name) => ", rowid",
                _ => "",
            };
            query = Query::free(&connection, &origin, &format!("{sql}{by_number}"), wanted)?;
        }
        let total = match &query.count {
            Some(sql) => Some(connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(refused)?),
            None => None,
        };
        let total = total.map(i64::cast_unsigned);
        let columns = query.columns.clone();
        let interrupt = connection.get_interrupt_handle();
        let (sender, batches) = sync_channel(BATCHES);
        let reader = Reader { origin: origin.clone(), query, frozen };
        let thread = thread::Builder::new()
            .name("sqlite source".into())
            .spawn(move || reader.run(&connection, &sender));
        let thread = Some(thread.map_err(|error| failed(&origin, error))?);
        Ok(Self {
            origin,
            columns,
            done: 0,
            total,
            batch: Vec::new().into_iter(),
            batches,
            interrupt,
            thread,
        })
    }
}

impl Source for Sqlite {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn next_row(&mut self) -> Result<Option<Row>, SourceError> {
        loop {
            if let Some(row) = self.batch.next() {
                self.done += 1;
                return Ok(Some(row));
            }
            match self.batches.recv() {
                Ok(batch) => self.batch = batch?.into_iter(),
                // The thread is done, which is the end of the rows if it came to its own.
                Err(_) => match self.thread.take().map(JoinHandle::join) {
                    None | Some(Ok(())) => return Ok(None),
                    Some(Err(_)) => {
                        let why = "the thread that reads it has panicked".to_owned();
                        let remedy = "report this as a defect of blindcore".to_owned();
                        return Err(SourceError::Unfit { origin: self.origin.clone(), why, remedy });
                    }
                },
            }
        }
    }

    fn position(&self) -> Position {
        Position { done: self.done, total: self.total, unit: Unit::Items }
    }
}

impl Drop for Sqlite {
    /// Ends a query that nobody waits for and, within a second, its thread, so that the file is let go of. An
    /// interruption between two statements is lost, so it is said again.
    fn drop(&mut self) {
        self.batches = sync_channel(0).1; // nobody takes the next batch
        let Some(thread) = self.thread.take() else { return };
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(1) {
            self.interrupt.interrupt();
            if thread.is_finished() {
                // A panic there has been printed; there is no listener left.
                let _ = thread.join();
                return;
            }
            thread::park_timeout(Duration::from_micros(100));
        }
    }
}

/// Opens a database and starts a transaction in it; gives what must not change if SQLite takes no locks.
///
/// A database in WAL mode is shared through two more files beside it. Where neither is there, nobody has it
/// open, and SQLite would make both even to read; so it is then opened as immutable, and whether it was is
/// checked at the end.
fn connect(path: &str) -> Result<(Connection, Option<Frozen>), SourceError> {
    let file = fs::canonicalize(path).map_err(|error| failed(path, error))?;
    let mut header = Vec::new();
    let head = open_regular(&file).and_then(|file| file.take(20).read_to_end(&mut header));
    head.map_err(|error| failed(path, error))?;
    let mut wal = OsString::from(&file);
    wal.push("-wal");
    let uses_wal = header.get(18..20).is_some_and(|versions| versions.contains(&2));
    let frozen = if uses_wal && !Path::new(&wal).exists() {
        Some(Frozen::new(&file).map_err(|error| failed(path, error))?)
    } else {
        None
    };

    let mut uri = String::from("file:");
    for byte in file.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                uri.push(char::from(*byte))
            }
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri += if frozen.is_some() { "?mode=ro&immutable=1" } else { "?mode=ro" };
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(uri, flags).map_err(|error| refused(path, error))?;
    connection.execute_batch("BEGIN").map_err(|error| refused(path, error))?;
    Ok((connection, frozen))
}

/// What a file looked like.
pub(super) struct Frozen {
    file: PathBuf,
    len: u64,
    modified: Option<SystemTime>,
}

impl Frozen {
    pub(super) fn new(file: &Path) -> std::io::Result<Self> {
        let metadata = fs::metadata(file)?;
        Ok(Self { file: file.to_owned(), len: metadata.len(), modified: metadata.modified().ok() })
    }

    pub(super) fn still(&self) -> bool {
        Self::new(&self.file).is_ok_and(|now| now.len == self.len && now.modified == self.modified)
    }
}

/// What SQLite said, with what to do about it.
fn refused(origin: &str, error: Error) -> SourceError {
    let remedy = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => "name a SQLite 3 database",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "close what writes to it, or read a copy made with sqlite3's .backup"
        }
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "check the permissions of the file and its folder"
        }
        Some(ErrorCode::ReadOnly) => "open it once with sqlite3, so that it finishes what a crash cut short",
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::SystemIoFailure) => {
            "check it with sqlite3's PRAGMA integrity_check, and the disk that it is on"
        }
        _ => "mend the view or query; what follows ?query= is taken as it stands, nothing percent-decoded",
    };
    SourceError::Sqlite { origin: origin.to_owned(), error, remedy }
}

/// The one statement to run.
struct Query {
    sql: String,
    /// Which of its columns to take.
    positions: Vec<usize>,
    /// What they are called.
    columns: Vec<String>,
    /// What counts its rows, where that is cheaper than running it.
    count: Option<String>,
}

impl Query {
    fn table(
        connection: &Connection,
        origin: &str,
        name: &str,
        wanted: Option<&[String]>,
    ) -> Result<Self, SourceError> {
        let refused = |error| refused(origin, error);
        let mut statement = connection
            .prepare("SELECT name, type = 'table' FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY name")
            .map_err(refused)?;
        let tables = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(refused)?;
        let tables: Vec<(String, bool)> = tables.collect::<Result<_, _>>().map_err(refused)?;
        let Some((_, is_table)) = tables.iter().find(|(table, _)| table.eq_ignore_ascii_case(name)) else {
            let names: Vec<&str> = tables.iter().map(|(table, _)| table.as_str()).collect();
            return Err(SourceError::Unfit {
                origin: origin.to_owned(),
                why: "there is no such table".to_owned(),
                remedy: match names.as_slice() {
                    [] => "the database holds none; check the path".to_owned(),
                    names => format!("name one of {}", names.join(", ")),
                },
            });
        };
        // Without an index the rows come in the order of the table's own key. A view has none.
        let from = format!("FROM {}{}", quoted(name), if *is_table { " NOT INDEXED" } else { "" });
        let all = Self::free(connection, origin, &format!("SELECT * {from}"), wanted)?;
        let list: Vec<String> = all.columns.iter().map(|column| quoted(column)).collect();
        Ok(Self {
            sql: format!("SELECT {} {from}", list.join(", ")),
            positions: (0..list.len()).collect(),
            columns: all.columns,
            count: is_table.then(|| format!("SELECT count(*) FROM {}", quoted(name))),
        })
    }

    fn free(
        connection: &Connection,
        origin: &str,
        sql: &str,
        wanted: Option<&[String]>,
    ) -> Result<Self, SourceError> {
        let only = |why: &str| SourceError::Unfit {
            origin: origin.to_owned(),
            why: why.to_owned(),
            remedy: "write one SELECT, which changes nothing".to_owned(),
        };
        let statement = connection.prepare(sql).map_err(|error| match error {
            Error::MultipleStatement => only("there is more than one statement"),
            error => refused(origin, error),
        })?;
        if statement.column_count() == 0 || !statement.readonly() {
            return Err(only("it is not a statement that only reads rows"));
        }
        check_names(connection, origin)?;
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let positions = project(origin, &names, wanted)?;
        let columns = positions.iter().map(|i| names[*i].clone()).collect();
        Ok(Self { sql: sql.to_owned(), positions, columns, count: None })
    }
}

/// Refuses a schema that is not UTF-8: rusqlite takes names for text and panics where one is none.
fn check_names(connection: &Connection, origin: &str) -> Result<(), SourceError> {
    let refused = |error| refused(origin, error);
    let mut schema = connection.prepare("SELECT sql FROM sqlite_schema").map_err(refused)?;
    let mut rows = schema.query([]).map_err(refused)?;
    while let Some(row) = rows.next().map_err(refused)? {
        if let ValueRef::Text(sql) = row.get_ref(0).map_err(refused)?
            && str::from_utf8(sql).is_err()
        {
            return Err(SourceError::Unfit {
                origin: origin.to_owned(),
                why: "a name in its schema is not UTF-8".to_owned(),
                remedy: "rename it, or copy the rows to another table".to_owned(),
            });
        }
    }
    Ok(())
}

/// A name as SQL writes one, whatever it holds.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// What the thread needs.
struct Reader {
    origin: String,
    query: Query,
    frozen: Option<Frozen>,
}

impl Reader {
    /// Sends all rows and then what went wrong, if anything did; stops when they are not taken.
    fn run(&self, connection: &Connection, out: &SyncSender<Batch>) {
        let mut batch = Vec::new();
        let end = self.read(connection, &mut batch, out);
        if out.send(Ok(batch)).is_ok()
            && let Err(error) = end
        {
            let _ = out.send(Err(error));
        }
    }

    fn read(
        &self,
        connection: &Connection,
        batch: &mut Vec<Row>,
        out: &SyncSender<Batch>,
    ) -> Result<(), SourceError> {
        let mut statement =
            connection.prepare(&self.query.sql).map_err(|error| refused(&self.origin, error))?;
        let mut rows = statement.query([]).map_err(|error| refused(&self.origin, error))?;
        let (mut line, mut batch_bytes) = (0, 0);
        loop {
            line += 1;
            let failed = |error| refused(&format!("row {line} of {}", self.origin), error);
            let Some(row) = rows.next().map_err(failed)? else { break };
            let (values, bytes) = self.values(row, line)?;
            batch.push(Row { line, values });
            batch_bytes += bytes;
            if batch.len() == BATCH_ROWS || batch_bytes >= BATCH_BYTES {
                if out.send(Ok(mem::take(batch))).is_err() {
                    return Ok(());
                }
                batch_bytes = 0;
            }
        }
        match &self.frozen {
            Some(frozen) if !frozen.still() => Err(SourceError::Unfit {
                origin: self.origin.clone(),
                why: "the database was written to while it was read".to_owned(),
                remedy: "read it again when nothing writes to it, or read a copy".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// The values of a row, and how many bytes they hold.
    fn values(&self, row: &rusqlite::Row<'_>, line: u64) -> Result<(Vec<Value>, usize), SourceError> {
        let flaw =
            |why, remedy| SourceError::Row { origin: self.origin.clone(), unit: "row", line, why, remedy };
        let mut values = Vec::with_capacity(self.query.columns.len());
        let mut bytes = 0;
        for (i, name) in self.query.positions.iter().zip(&self.query.columns) {
            let value = row.get_ref(*i).map_err(|error| refused(&self.origin, error))?;
            if let ValueRef::Text(data) | ValueRef::Blob(data) = value {
                bytes += data.len();
                if bytes > MAX_ROW_BYTES {
                    let why = format!("it is over the limit of {MAX_ROW_BYTES} B for a row");
                    return Err(flaw(why, "leave the largest column out, or split it"));
                }
            }
            values.push(match value {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(n) => Value::Int(n),
                ValueRef::Real(x) => Value::Real(x),
                ValueRef::Blob(data) => Value::Blob(data.to_vec()),
                ValueRef::Text(data) => match str::from_utf8(data) {
                    Ok(text) => Value::Text(text.to_owned()),
                    Err(_) => {
                        let remedy =
                            "store the column as a blob, or read it through a query that casts it to one";
                        return Err(flaw(format!("column {name:?} is not UTF-8"), remedy));
                    }
                },
            });
        }
        Ok((values, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceSpec;
    use std::collections::BTreeMap;
    use tempfile::TempDir;

    /// A folder with `t.db` in it, made by some SQL.
    fn database(sql: &str) -> (TempDir, Connection) {
        let dir = tempfile::tempdir().unwrap();
        let connection = Connection::open(dir.path().join("t.db")).unwrap();
        connection.execute_batch(sql).unwrap();
        (dir, connection)
    }

    fn open(dir: &TempDir, question: &str, wanted: &[&str]) -> Result<Box<dyn Source>, SourceError> {
        let wanted: Vec<String> = wanted.iter().map(|n| (*n).to_owned()).collect();
        let spec = format!("sqlite:{}?{question}", dir.path().join("t.db").display());
        SourceSpec::parse(&spec).unwrap().open((!wanted.is_empty()).then_some(&wanted))
    }

    fn rows(source: &mut dyn Source) -> Result<Vec<Vec<Value>>, SourceError> {
        let mut rows = Vec::new();
        while let Some(row) = source.next_row()? {
            rows.push(row.values);
            assert_eq!(row.line, rows.len() as u64);
        }
        Ok(rows)
    }

    /// Every file of a folder, to see that none changes.
    fn files(dir: &TempDir) -> BTreeMap<OsString, Vec<u8>> {
        let entries = fs::read_dir(dir.path()).unwrap().map(Result::unwrap);
        entries.map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap())).collect()
    }

    fn ints(numbers: impl IntoIterator<Item = i64>) -> Vec<Vec<Value>> {
        numbers.into_iter().map(|n| vec![Value::Int(n)]).collect()
    }

    #[test]
    fn every_kind_of_value_is_read() {
        let (dir, connection) = database(
            "CREATE TABLE \"odd \"\"name\"\" [x]\" (id INTEGER PRIMARY KEY, \"a \"\"b\"\"\", twice AS (id * 2));
             INSERT INTO \"odd \"\"name\"\" [x]\" VALUES
                (1, NULL), (2, 9223372036854775807), (3, 0.1), (4, 9e999), (5, 'é'), (6, x'00ff');",
        );
        drop(connection);
        let mut source = open(&dir, "table=ODD \"name\" [x]", &[]).unwrap();
        assert_eq!(source.columns(), ["id", "a \"b\"", "twice"]);
        assert_eq!(source.position(), Position { done: 0, total: Some(6), unit: Unit::Items });
        let values = [
            Value::Null,
            Value::Int(i64::MAX),
            Value::Real(0.1),
            Value::Real(f64::INFINITY),
            Value::Text("é".into()),
            Value::Blob(vec![0, 255]),
        ];
        let expected = (1..).zip(values).map(|(id, value)| vec![Value::Int(id), value, Value::Int(2 * id)]);
        assert_eq!(rows(source.as_mut()).unwrap(), expected.collect::<Vec<_>>());
        assert_eq!(source.position().done, 6);
        assert!(source.next_row().unwrap().is_none());
    }

    #[test]
    fn tables_of_every_sort_come_in_the_order_of_their_key() {
        let (dir, _connection) = database(
            "CREATE TABLE t (a INTEGER PRIMARY KEY, b, c, d, e, f); CREATE INDEX i ON t (b);
             WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s LIMIT 1000)
                INSERT INTO t (b) SELECT 1000 - n FROM s;
             CREATE TABLE w (b PRIMARY KEY) WITHOUT ROWID; INSERT INTO w SELECT b FROM t;
             CREATE VIEW v AS SELECT b FROM t WHERE a > 990 ORDER BY a;
             CREATE VIRTUAL TABLE f USING fts5(b); INSERT INTO f SELECT 'word' FROM t LIMIT 3;",
        );
        assert_eq!(rows(open(&dir, "table=t", &["b"]).unwrap().as_mut()).unwrap(), ints((0..1000).rev()));
        assert_eq!(rows(open(&dir, "table=w", &["b"]).unwrap().as_mut()).unwrap(), ints(0..1000));
        let mut view = open(&dir, "table=v", &[]).unwrap();
        assert_eq!(view.position().total, None);
        assert_eq!(rows(view.as_mut()).unwrap(), ints((0..10).rev()));
        assert_eq!(
            rows(open(&dir, "table=f", &[]).unwrap().as_mut()).unwrap(),
            vec![vec![Value::Text("word".into())]; 3]
        );
    }

    #[test]
    fn wanted_columns_of_tables_and_queries_come_in_their_order() {
        let (dir, _connection) =
            database("CREATE TABLE t (a, b, c); INSERT INTO t VALUES (1, CAST(x'ff' AS TEXT), 3);");
        for question in ["table=t", "query=SELECT * FROM t -- and a comment;", "query=VALUES (1, 2, 3);"] {
            let wanted = if question.contains("VALUES") { ["column3", "column1"] } else { ["c", "a"] };
            let mut source = open(&dir, question, &wanted).unwrap();
            assert_eq!(source.columns(), wanted);
            assert_eq!(rows(source.as_mut()).unwrap(), [[Value::Int(3), Value::Int(1)]]);
        }
    }

    #[test]
    fn what_can_not_be_read_is_named_with_a_remedy() {
        let (dir, _connection) = database(
            "CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x'), (2, CAST(x'ff' AS TEXT)), (3, zeroblob(67108865));
             CREATE VIEW v AS SELECT 1 AS one;",
        );
        for (question, wanted, message) in [
            ("table=nope", &[][..], "t.db: there is no such table; name one of t, v"),
            ("table=t", &["a", "z"], "t.db has no column \"z\"; its columns are a, b"),
            ("table=t", &[], "row 2 of t in "),
            ("table=t", &[], "column \"b\" is not UTF-8; store the column as a blob"),
            ("query=SELECT b FROM t WHERE a <> 2", &[], "row 2 of the query on "),
            (
                "query=SELECT b FROM t WHERE a <> 2",
                &[],
                "it is over the limit of 67108864 B for a row; leave",
            ),
            (
                "query=SELECT CASE a WHEN 2 THEN abs(-9223372036854775807 - 1) ELSE a END AS x FROM t",
                &[],
                "row 2 of the query on",
            ),
            ("query=SELECT a, a FROM t", &[], "two columns are called \"a\""),
            ("query=SELECT a FROM t; SELECT 1", &[], "more than one statement; write one SELECT"),
            ("query=SELECT a FROM t; DROP TABLE t", &[], "more than one statement; write one SELECT"),
            (
                "query=DELETE FROM t RETURNING a",
                &[],
                "not a statement that only reads rows; write one SELECT",
            ),
            ("query=ATTACH 'other.db' AS x", &[], "not a statement that only reads rows"),
            ("query=VACUUM INTO 'other.db'", &[], "not a statement that only reads rows"),
            ("query=-- nothing", &[], "not a statement that only reads rows"),
            ("query=SELEKT", &[], "syntax error"),
            ("query=SELECT%20a", &[], "nothing percent-decoded"),
            ("query=SELECT a FROM t WHERE a = ?", &[], "parameter"),
        ] {
            let before = files(&dir);
            let error = open(&dir, question, wanted).and_then(|mut source| rows(source.as_mut()));
            let error = error.expect_err(question).to_string();
            assert!(error.contains(message), "{question}: {error}");
            assert!(files(&dir) == before, "{question} changes nothing");
        }
    }

    #[test]
    fn rows_before_a_flaw_are_given_out() {
        let (dir, _connection) =
            database("CREATE TABLE t (a); INSERT INTO t VALUES ('x'), (CAST(x'ff' AS TEXT));");
        let mut source = open(&dir, "table=t", &[]).unwrap();
        assert_eq!(source.next_row().unwrap().unwrap().values, [Value::Text("x".into())]);
        assert!(matches!(source.next_row(), Err(SourceError::Row { line: 2, unit: "row", .. })));
        assert!(source.next_row().unwrap().is_none());
    }

    #[test]
    fn what_is_no_database_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("t.db"), "id,name\n".repeat(1000)).unwrap();
        let error = open(&dir, "table=t", &[]).err().unwrap().to_string();
        assert!(error.contains("not a database; name a SQLite 3 database"), "{error}");
        fs::write(dir.path().join("t.db"), "").unwrap();
        let error = open(&dir, "table=t", &[]).err().unwrap().to_string();
        assert!(error.contains("there is no such table; the database holds none"), "{error}");
    }

    #[test]
    fn reading_a_wal_database_makes_no_files_and_sees_what_is_committed() {
        let (dir, connection) =
            database("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1);");
        drop(connection);
        let before = files(&dir);
        assert_eq!(before.len(), 1, "nobody has it open");
        let mut source = open(&dir, "table=t", &[]).unwrap();
        assert_eq!(rows(source.as_mut()).unwrap(), ints([1]));
        assert!(files(&dir) == before);

        let writer = Connection::open(dir.path().join("t.db")).unwrap();
        writer.execute_batch("INSERT INTO t VALUES (2)").unwrap();
        let wal = &files(&dir)[&OsString::from("t.db-wal")];
        assert_eq!(rows(open(&dir, "table=t", &[]).unwrap().as_mut()).unwrap(), ints([1, 2]));
        assert!(&files(&dir)[&OsString::from("t.db-wal")] == wal);
    }

    #[test]
    fn a_wal_database_that_changes_underneath_is_an_error() {
        let (dir, connection) =
            database("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1);");
        drop(connection);
        let frozen = connect(dir.path().join("t.db").to_str().unwrap()).unwrap().1.unwrap();
        assert!(frozen.still());
        let writer = Connection::open(dir.path().join("t.db")).unwrap();
        writer.execute_batch("INSERT INTO t VALUES (zeroblob(100000)); PRAGMA wal_checkpoint").unwrap();
        assert!(!frozen.still());
    }

    #[test]
    fn rows_written_meanwhile_are_not_seen() {
        let (dir, connection) =
            database("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1), (2);");
        let mut source = open(&dir, "table=t", &[]).unwrap();
        connection.execute_batch("INSERT INTO t VALUES (3)").unwrap();
        assert_eq!(source.position().total, Some(2));
        assert_eq!(rows(source.as_mut()).unwrap(), ints([1, 2]));
    }

    #[test]
    fn a_source_dropped_early_ends_an_endless_query() {
        let (dir, connection) = database("CREATE TABLE t (a)");
        let endless = "query=WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s)
                       SELECT n FROM s WHERE n <= 256 + (SELECT count(*) FROM t)";
        let mut source = open(&dir, endless, &[]).unwrap();
        assert_eq!(source.next_row().unwrap().unwrap().values, [Value::Int(1)]);
        connection.execute_batch("PRAGMA busy_timeout = 0").unwrap();
        assert!(connection.execute_batch("INSERT INTO t VALUES (1)").is_err(), "it is being read");
        drop(source);
        connection.execute_batch("PRAGMA busy_timeout = 60000; INSERT INTO t VALUES (1)").unwrap();
    }
}
