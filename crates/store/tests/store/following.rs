//! A database that is followed: its rows in their order, what is read again, and what errors call it.

use std::path::Path;

use blindcore_store::{BuildOptions, SourceSpec, StoreError, UpdateOptions, Updated, build, update};

use crate::update::device;

/// A table of these JSON lines, and a SQLite database that it follows.
struct Following {
    dir: tempfile::TempDir,
}

impl Following {
    fn new(lines: &str, key: Option<&str>, feed: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("t.jsonl"), lines).unwrap();
        let lines = SourceSpec::parse(dir.path().join("t.jsonl").to_str().unwrap()).unwrap();
        let options =
            BuildOptions { key: key.map(str::to_owned), ..BuildOptions::new(lines, dir.path().join("db")) };
        build(&options, &device(), &mut ()).unwrap();
        let following = Self { dir };
        following.write(feed);
        following
    }

    fn write(&self, sql: &str) {
        rusqlite::Connection::open(self.dir().join("f.db")).unwrap().execute_batch(sql).unwrap();
    }

    fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The database's table or query, as a person writes it.
    fn spec(&self, of: &str) -> String {
        format!("sqlite:{}?{of}", self.dir().join("f.db").display())
    }

    fn poll(&self, of: &str, column: &str, partial: bool) -> Result<Updated, StoreError> {
        let changes = SourceSpec::parse(&self.spec(of)).unwrap();
        let options = UpdateOptions {
            follow: Some(column.to_owned()),
            partial,
            ..UpdateOptions::new(self.dir().join("db"), changes)
        };
        update(&options, &device(), &mut ())
    }
}

const ROWS: &str = "{\"k\":\"k1\",\"a\":1,\"b\":10}\n{\"k\":\"k2\",\"a\":2,\"b\":20}\n";

#[test]
fn errors_name_what_a_person_wrote() {
    let feed =
        "CREATE TABLE feed (id INTEGER PRIMARY KEY, k TEXT, a INT); INSERT INTO feed VALUES (1, 'new', 5)";
    let following = Following::new(ROWS, Some("k"), feed);
    let file = following.dir().join("f.db");
    let file = file.display();
    let query = "query=SELECT * FROM feed WHERE a > 0";
    for (of, column, partial, words) in [
        ("table=feed", "id", true, format!("row 1 of {}: it has no \"b\"", following.spec("table=feed"))),
        (query, "id", true, format!("row 1 of {}: it has no \"b\"", following.spec(query))),
        ("table=feed", "id", false, format!("row 1 of {}: {0} has no column", following.spec("table=feed"))),
        ("table=feed", "at", true, format!("feed in {file} has no column \"at\"; its columns are id, k, a")),
        (query, "at", true, format!("the query on {file} has no column \"at\"")),
        ("table=nope", "id", true, format!("nope in {file}: there is no such table; name one of feed")),
        ("query=SELEKT", "id", true, format!("the query on {file} can't be read: near \"SELEKT\"")),
    ] {
        let error = following.poll(of, column, partial).unwrap_err().to_string();
        assert!(error.starts_with(&words), "{error}");
        assert!(!error.contains("ORDER BY") && !error.contains("AS followed"), "{error}");
    }
}
