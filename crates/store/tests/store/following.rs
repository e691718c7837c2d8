//! A database that is followed: its rows in their order, what is read again, and what errors call it.

use std::path::Path;

use blindcore_store::{BuildOptions, SourceSpec, StoreError, UpdateOptions, Updated, build, update};

use crate::update::{device, open, row};

/// A table of these JSON lines, and a SQLite database that it follows.
pub(crate) struct Following {
    dir: tempfile::TempDir,
}

impl Following {
    pub(crate) fn new(lines: &str, key: Option<&str>, feed: &str) -> Self {
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

    pub(crate) fn write(&self, sql: &str) {
        rusqlite::Connection::open(self.dir().join("f.db")).unwrap().execute_batch(sql).unwrap();
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The database's table or query, as a person writes it.
    pub(crate) fn spec(&self, of: &str) -> String {
        format!("sqlite:{}?{of}", self.dir().join("f.db").display())
    }

    fn poll(&self, of: &str, column: &str, partial: bool) -> Result<Updated, StoreError> {
        self.update(&self.spec(of), column, |options| options.partial = partial)
    }

    pub(crate) fn update(
        &self,
        spec: &str,
        column: &str,
        more: impl FnOnce(&mut UpdateOptions),
    ) -> Result<Updated, StoreError> {
        let changes = SourceSpec::parse(spec).unwrap();
        let mut options = UpdateOptions {
            follow: Some(column.to_owned()),
            ..UpdateOptions::new(self.dir().join("db"), changes)
        };
        more(&mut options);
        update(&options, &device(), &mut ())
    }
}

/// A server's rows for one key: the largest value is the last word, whatever texts sort as, and a null is behind all. By `xmin` the
/// last transaction is.
#[cfg(target_os = "linux")]
pub(crate) fn in_order(url: &dyn Fn(&str) -> String, run: &mut dyn FnMut(&str), with_xmin: bool) {
    for (kind, first, later) in [
        ("varchar(60)", "'9'", "'10'"),
        ("varchar(60)", "'9007199254740993.25'", "'9007199254740993.5'"),
        ("varchar(60)", "'2026-11-27T02:30:00Z'", "'2026-11-27T02:30:00.00000005Z'"),
        ("varchar(60)", "'2026-11-27T02:30:00+02:00'", "'2026-11-27T02:05:00+01:00'"),
        // Neither is a time to a server, which refuses to cast them.
        ("varchar(60)", "'2026-02-30'", "'n/a'"),
        ("int", "9", "10"),
        ("int", "5000", "NULL"),
    ] {
        run(&format!("CREATE TABLE ordered (at {kind}, k varchar(9), a int, b int)"));
        run(&format!("INSERT INTO ordered VALUES ({first}, 'k1', 9, 9)"));
        let following = Following::new(ROWS, Some("k"), "");
        for changed in [1, 1, 0] {
            let now = following.update(&url("table=ordered"), "at", |_| ()).unwrap();
            assert_eq!(now.changed, changed, "{first} {later}");
            if changed == 1 && now.manifest.epoch == 2 {
                run(&format!("INSERT INTO ordered VALUES ({later}, 'k1', 8, 8)"));
            }
        }
        assert_eq!(row(&open(following.dir()), "k1"), Some(serde_json::json!([8, 8])), "{first} {later}");
        let error = following.update(&url("table=ordered"), "nope", |_| ()).unwrap_err().to_string();
        assert!(error.ends_with(" has no column \"nope\"; its columns are at, k, a, b"), "{error}");
        run("DROP TABLE ordered");
    }
    // The largest number of 31 bits is read every time, also where larger ones have come.
    for kind in ["bigint", "numeric(20, 2)", "double precision", "varchar(60)"] {
        run(&format!("CREATE TABLE ordered (at {kind}, k varchar(9), a int, b int)"));
        run("INSERT INTO ordered VALUES ('2147483647', 'k1', 9, 9), ('3000000000', 'k2', 2, 20)");
        let following = Following::new(ROWS, Some("k"), "");
        for (changed, write) in [
            (1, "INSERT INTO ordered VALUES ('4000000000', 'k2', 3, 3)"),
            (1, "UPDATE ordered SET a = 8 WHERE k = 'k1'"),
            (1, "DELETE FROM ordered WHERE k = 'k2'"),
        ] {
            let now = following.update(&url("table=ordered"), "at", |_| ()).unwrap();
            assert_eq!(now.changed, changed, "{kind}, before {write}");
            run(write);
        }
        assert_eq!(row(&open(following.dir()), "k1"), Some(serde_json::json!([8, 9])), "{kind}");
        run("DROP TABLE ordered");
    }
    if with_xmin {
        run("CREATE TABLE ordered (k text, a int, b int)");
        run("INSERT INTO ordered SELECT 'k2', g, g FROM generate_series(1, 9) g");
        run("INSERT INTO ordered VALUES ('k1', 9, 9)");
        run("DELETE FROM ordered WHERE k = 'k2'");
        // The place of what is deleted is free, and before that of the row which is there.
        run("VACUUM ordered");
        run("INSERT INTO ordered VALUES ('k1', 8, 8)");
        let following = Following::new(ROWS, Some("k"), "");
        following.update(&url("table=ordered"), "xmin", |_| ()).unwrap();
        assert_eq!(row(&open(following.dir()), "k1"), Some(serde_json::json!([8, 8])));
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
        (
            "table=feed",
            "id",
            false,
            format!("row 1 of {}: its source has no column", following.spec("table=feed")),
        ),
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

#[test]
fn the_largest_value_is_the_last_word_on_a_key() {
    // Each with the one that comes later and sorts before it as a text.
    for (first, later) in [
        ("9", "10"),
        ("99.5", "100"),
        ("-10", "-9"),
        ("9007199254740993.25", "9007199254740993.5"),
        ("2026-11-27T02:30:00Z", "2026-11-27T02:30:00.5Z"),
        ("2026-11-27T02:30:00.00000004Z", "2026-11-27 02:30:00.00000005Z"),
        ("2026-11-27T02:30:00+02:00", "2026-11-27T02:05:00+01:00"),
        ("2026-11-27T02:30:00+0200", "2026-11-27T02:05:00+01"),
        ("2026-11-27T02:30:00Z", "2026-11-27 02:31:00Z"),
    ] {
        for change in ["set", "remove"] {
            let feed = format!(
                "CREATE TABLE feed (at TEXT, k TEXT, a INT, b INT, _change TEXT);
                 INSERT INTO feed VALUES ('{first}', 'k1', 9, 9, 'set')"
            );
            let following = Following::new(ROWS, Some("k"), &feed);
            following.poll("table=feed", "at", false).unwrap();
            following.write(&format!("INSERT INTO feed VALUES ('{later}', 'k1', 8, 8, '{change}')"));
            // Read once or again, in one read or in two.
            for _ in 0..2 {
                following.poll("table=feed", "at", false).unwrap();
                let want = (change == "set").then(|| serde_json::json!([8, 8]));
                assert_eq!(row(&open(following.dir()), "k1"), want, "{first} {later} {change}");
            }
            assert_eq!(open(following.dir()).manifest().epoch, 3, "{first} {later} {change}");
        }
    }
}

/// Where nothing else was there to be followed by, such a text was the place, and what sorts before it was never read.
#[test]
fn what_comes_behind_a_text_alone_is_read() {
    for (first, later) in [
        ("'n/a'", ["'2026-01-02'", "'2026-01-03'"]),
        ("NULL, 'k2', 9, 9), ('n/a'", ["'108'", "'2026-01-01'"]),
        ("'2099-01-01', 'k2', 9, 9), ('n/a'", ["'2026-01-02'", "'2026-01-03'"]),
        ("'4611686018427387907', 'k2', 9, 9), ('n/a'", ["'4611686018427387912'", "'4611686018427387913'"]),
        ("'n/a'", ["'108'", "109"]),
        ("'v9'", ["'2026-01-02'", "'w'"]),
    ] {
        let feed = format!(
            "CREATE TABLE feed (at, k TEXT, a INT, b INT); INSERT INTO feed VALUES ({first}, 'k1', 9, 9)"
        );
        let following = Following::new(ROWS, Some("k"), &feed);
        following.poll("table=feed", "at", false).unwrap();
        for (i, at) in later.iter().enumerate() {
            following.write(&format!("INSERT INTO feed VALUES ({at}, 'new{i}', {i}, 0)"));
            following.poll("table=feed", "at", false).unwrap();
            let got = row(&open(following.dir()), &format!("new{i}"));
            assert_eq!(got, Some(serde_json::json!([i, 0])), "{first} {at}");
        }
    }
}

#[test]
fn rows_that_nothing_is_followed_by_are_behind_the_others() {
    // Every poll reads them, so that no poll may see them before others.
    for (stray, followed, later) in [
        ("NULL", "5000", "9000"),
        ("'n/a'", "5000", "9000"),
        ("x'00'", "5000", "9000"),
        ("'7'", "5000", "9000"),
        ("2147483647", "3000000000", "4000000000"),
        ("'2147483647'", "'3000000000'", "'4000000000'"),
        ("7", "'2026-11-25'", "'2026-11-26'"),
        ("'9999-12-31'", "'2026-11-25'", "'2026-11-26'"),
        ("NULL", "'a'", "'b'"),
        // Of which there are more.
        ("'n/a', 'k4', 1, 1), ('n/a', 'k5', 1, 1), ('n/a'", "'108'", "'n/a'"),
    ] {
        // Most rows say what is followed.
        let feed = format!(
            "CREATE TABLE feed (at, k TEXT, a INT, b INT); INSERT INTO feed VALUES ({stray}, 'k1', 7, 7), ({followed}, 'k1', 8, 8), \
             ({followed}, 'k3', 4, 4)"
        );
        let following = Following::new(ROWS, Some("k"), &feed);
        let poll = || following.update(&following.spec("table=feed"), "at", |_| ()).unwrap();
        poll();
        following.write(&format!("INSERT INTO feed VALUES ({later}, 'k2', 3, 3)"));
        for _ in 0..2 {
            poll();
            assert_eq!(
                row(&open(following.dir()), "k1"),
                Some(serde_json::json!([7, 7])),
                "{stray} {followed}"
            );
        }
    }
}

#[test]
fn rows_of_one_value_come_as_sqlite_numbered_them() {
    let feed = "CREATE TABLE feed (at INT, k TEXT, a INT, b INT); CREATE INDEX by_all ON feed (at, k, a, b);
                CREATE VIEW seen AS SELECT * FROM feed;
                CREATE TABLE keyed (at INT, k TEXT, a INT, b INT, PRIMARY KEY (k, a)) WITHOUT ROWID;
                INSERT INTO feed VALUES (1, 'k1', 9, 9), (1, 'k1', 8, 8);
                INSERT INTO keyed VALUES (1, 'k2', 9, 9), (1, 'k2', 8, 8);";
    let following = Following::new(ROWS, Some("k"), feed);
    following.poll("table=feed", "at", false).unwrap();
    assert_eq!(row(&open(following.dir()), "k1"), Some(serde_json::json!([8, 8])));
    // Others have no such numbers, and are read all the same.
    for of in
        ["table=seen", "table=keyed", "query=SELECT * FROM feed", "query=SELECT * FROM feed -- all of it"]
    {
        following.poll(of, "at", false).unwrap();
    }
}

#[test]
fn a_row_that_was_set_in_part_and_removed_is_read_again() {
    let feed = "CREATE TABLE feed (id INTEGER PRIMARY KEY, k TEXT, a INT, _change TEXT);
                INSERT INTO feed VALUES (1, 'k1', 5, 'set'), (2, 'k1', NULL, 'remove'), (3, 'k2', 7, 'set'),
                                        (4, 'never', 1, 'set'), (5, 'never', NULL, 'remove')";
    let following = Following::new(ROWS, Some("k"), feed);
    let poll = || {
        let now = following.poll("table=feed", "id", true).unwrap();
        ([now.added, now.changed, now.removed], now.manifest.epoch)
    };
    assert_eq!(poll(), ([0, 1, 1], 2));
    assert_eq!(poll(), ([0, 0, 0], 2));
    following
        .write("INSERT INTO feed VALUES (6, 'k2', 8, 'set'), (7, 'k2', 9, 'set'), (8, 'k2', NULL, 'remove')");
    assert_eq!(poll(), ([0, 0, 1], 3));
    assert_eq!(poll(), ([0, 0, 0], 3));
    // What is set in part and isn't there is an error all the same, at the row that does it.
    following.write("INSERT INTO feed VALUES (9, 'k1', 1, 'set')");
    let error = following.poll("table=feed", "id", true).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("row 9 of {}: it has no \"b\"", following.spec("table=feed"))),
        "{error}"
    );
}

#[test]
fn rows_without_keys_are_followed_only_by_their_numbers() {
    let feed = "CREATE TABLE feed (id INT, v INT); INSERT INTO feed VALUES (2, 20);
                CREATE TABLE numbered (at INT, id INT, v INT, _row INT, _change TEXT);
                INSERT INTO numbered VALUES (1, 3, 30, 1, 'set'), (2, NULL, NULL, 0, 'remove'), (3, 4, 40, 2, NULL);";
    let lines = "{\"id\":0,\"v\":0}\n{\"id\":1,\"v\":10}\n{\"id\":2,\"v\":20}\n";
    let following = Following::new(lines, None, feed);
    let file = following.dir().join("f.db");
    let spec = following.spec("table=feed");
    let ignored =
        following.update(&following.spec("table=numbered"), "at", |o| o.ignore = vec!["_row".into()]);
    for refused in
        [following.poll("table=feed", "id", false), following.poll("table=feed", "id", true), ignored]
    {
        let error = refused.unwrap_err().to_string();
        let words = "can't be told from a new one; build the table with --key, say in a column _row which row each one is, or \
                     update it without --follow";
        assert!(
            error.starts_with("rows of table t have no keys, so a row of ") && error.contains(words),
            "{error}"
        );
        assert!(!error.contains('\n') && error.contains(file.to_str().unwrap()), "{error}");
    }
    assert_eq!(open(following.dir()).manifest().epoch, 1);
    let poll = || following.poll("table=numbered", "at", false);
    let now = poll().unwrap();
    assert_eq!([now.added, now.changed, now.removed, now.manifest.epoch], [0, 2, 1, 2]);
    let again = poll().unwrap();
    assert_eq!([again.added, again.changed, again.removed, again.manifest.epoch], [0, 0, 0, 2]);
    following.write("INSERT INTO numbered VALUES (4, 5, 50, NULL, 'set')");
    let error = poll().unwrap_err().to_string();
    let words = "its _row is empty, and a row that is added would be added again whenever it is read";
    assert!(error.starts_with(&format!("row 4 of {}: {words}", following.spec("table=numbered"))), "{error}");
    // An update that doesn't follow adds a row, as before.
    let options = UpdateOptions::new(following.dir().join("db"), SourceSpec::parse(&spec).unwrap());
    assert_eq!(update(&options, &device(), &mut ()).unwrap().added, 1);
}

#[test]
fn a_column_that_a_poll_left_out_is_read_from_the_beginning_once_it_is_taken() {
    let ignoring = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    for (ignored, before, after, said) in [
        (ignoring(&["a"]), "", "", "\"a\""),
        (ignoring(&["a", "_change"]), "", "", "\"a\", \"_change\""),
        // The source lacks it for a while.
        (
            Vec::new(),
            "ALTER TABLE feed RENAME COLUMN a TO c",
            "ALTER TABLE feed RENAME COLUMN c TO a",
            "\"a\"",
        ),
    ] {
        let feed = "CREATE TABLE feed (u INT, k TEXT, a INT, b INT, _change TEXT);
                    INSERT INTO feed VALUES (1, 'k1', 1, 10, NULL), (2, 'k2', 2, 20, NULL)";
        let following = Following::new(ROWS, Some("k"), feed);
        let version = || {
            let json = std::fs::read(following.dir().join("db/manifest.json")).unwrap();
            serde_json::from_slice::<serde_json::Value>(&json).unwrap()["version"].as_u64().unwrap()
        };
        let narrow = || {
            let less = |o: &mut UpdateOptions| (o.partial, o.ignore) = (true, ignored.clone());
            following.update(&following.spec("table=feed"), "u", less).unwrap()
        };
        let poll = || {
            let now = following.poll("table=feed", "u", false).unwrap();
            let words = format!("was followed without {said} before, so all of its rows were read");
            (version(), now.changed, now.notes.iter().any(|note| note.ends_with(&words)))
        };
        assert_eq!(poll(), (7, 0, false));
        following.write("UPDATE feed SET a = 99, u = 20000 WHERE k = 'k1'");
        following.write("UPDATE feed SET a = 98, u = 30000 WHERE k = 'k2'");
        following.write(before);
        for _ in 0..2 {
            narrow();
            assert_eq!(version(), 8);
        }
        following.write(after);
        assert_eq!(poll(), (7, 2, true), "{said}");
        assert_eq!(row(&open(following.dir()), "k1"), Some(serde_json::json!([99, 10])));
        assert_eq!(poll(), (7, 0, false));
        // To take less than before costs nothing.
        let now = narrow();
        assert!((now.changed, now.unchanged, &now.notes[..]) == (0, 1, &[]), "{:?}", now.notes);
    }
}
