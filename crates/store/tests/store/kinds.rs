//! Kinds of values: in keys, in the columns of records, and in a column that is followed.

use std::path::Path;

use blindcore_accel_cpu::Cpu;
use blindcore_store::{
    BuildOptions, Manifest, SourceSpec, StoreError, Stored, UpdateOptions, Updated, Value, build, codec,
    update,
};
use blindcore_units::{Progress, Unit};
use blindcore_wire::KeyType;

/// What was noted.
#[derive(Default)]
struct Notes(Vec<String>);

impl Progress for Notes {
    fn at(&mut self, _: &str, _: u64, _: Option<u64>, _: Unit) {}

    fn note(&mut self, line: &str) {
        self.0.push(line.to_owned());
    }
}

fn built(dir: &Path, spec: &str, key: &str) -> (Manifest, Vec<String>) {
    let options = BuildOptions {
        key: Some(key.to_owned()),
        force: true,
        ..BuildOptions::new(SourceSpec::parse(spec).unwrap(), dir.join("db"))
    };
    let mut notes = Notes::default();
    let manifest = build(&options, &Cpu::with_threads("cpu", 1).unwrap(), &mut notes).unwrap();
    (manifest, notes.0)
}

/// A table of these lines, which are of the kind that `ending` says.
fn made(dir: &Path, ending: &str, lines: &str) -> (Manifest, Vec<String>) {
    let path = dir.join(format!("t.{ending}"));
    std::fs::write(&path, lines).unwrap();
    built(dir, path.to_str().unwrap(), "k")
}

fn updated(dir: &Path, spec: &str, follow: Option<&str>) -> Result<Updated, StoreError> {
    let changes = SourceSpec::parse(spec).unwrap();
    let options =
        UpdateOptions { follow: follow.map(str::to_owned), ..UpdateOptions::new(dir.join("db"), changes) };
    update(&options, &Cpu::with_threads("cpu", 1).unwrap(), &mut ())
}

fn changed(dir: &Path, ending: &str, lines: &str) -> Result<Updated, StoreError> {
    let path = dir.join(format!("c.{ending}"));
    std::fs::write(&path, lines).unwrap();
    updated(dir, path.to_str().unwrap(), None)
}

/// The first value of a row's record.
fn value(dir: &Path, key: &str) -> Option<Value> {
    let stored = Stored::open(&dir.join("db")).unwrap();
    let record = stored.record(key.as_bytes()).unwrap()?;
    Some(codec::decode_record(&record, stored.manifest().values.len()).unwrap().swap_remove(0))
}

/// A table of SQLite whose rows have these keys and values of column `u`; it is followed once.
fn followed(dir: &Path, rows: &str) -> (rusqlite::Connection, impl Fn() -> Updated + use<>) {
    followed_as(dir, "u", rows)
}

/// The same, with the column declared so.
fn followed_as(dir: &Path, u: &str, rows: &str) -> (rusqlite::Connection, impl Fn() -> Updated + use<>) {
    let path = dir.join("s.db");
    let sqlite = rusqlite::Connection::open(&path).unwrap();
    sqlite
        .execute_batch(&format!(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, {u}); INSERT INTO t VALUES {rows}"
        ))
        .unwrap();
    let spec = format!("sqlite:{}?table=t", path.display());
    built(dir, &spec, "id");
    let dir = dir.to_owned();
    let follow = move || updated(&dir, &spec, Some("u")).unwrap();
    follow();
    (sqlite, follow)
}

#[test]
fn a_value_that_no_other_reaches_loses_no_row() {
    for (rows, later) in [
        ("(1, 'a', '2024-03-01 10:00:00'), (2, 'b', '9999-12-31 00:00:00')", "'2024-03-02 10:00:00'"),
        ("(1, 'a', '2024-03-01'), (2, 'b', '9999-12-31')", "'2024-03-02'"),
        ("(1, 'a', 5000), (2, 'b', 9223372036854775807)", "7000"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (sqlite, follow) = followed(dir.path(), rows);
        sqlite.execute_batch(&format!("UPDATE t SET v = 'new', u = {later} WHERE id = 1")).unwrap();
        let now = follow();
        assert!(now.changed == 1 && now.notes[0].starts_with("1 of the rows"), "{rows}: {:?}", now.notes);
        sqlite.execute_batch(&format!("UPDATE t SET v = 'too', u = {later} WHERE id = 2")).unwrap();
        assert_eq!(follow().changed, 1, "{rows}");
        assert_eq!(follow().notes, Vec::<String>::new(), "{rows}");
    }
}

#[test]
fn a_largest_number_that_is_set_back_loses_no_row() {
    let dir = tempfile::tempdir().unwrap();
    let (sqlite, follow) = followed(dir.path(), "(1, 'a', 5), (2, 'b', 800000), (3, 'c', 2147483647)");
    sqlite
        .execute_batch("UPDATE t SET v = 'new', u = 6 WHERE id = 1; UPDATE t SET u = 7 WHERE id = 2")
        .unwrap();
    let now = follow();
    assert!(now.changed == 2, "{}", now.to_json());
    assert!(
        now.notes.iter().any(|n| n.contains("7 at most, and it was followed from 800000")),
        "{:?}",
        now.notes
    );
    sqlite.execute_batch("UPDATE t SET v = 'newer', u = 8 WHERE id = 1").unwrap();
    assert_eq!(follow().changed, 1);
}

#[test]
fn times_of_several_forms_are_followed_by_their_values() {
    for (place, later) in [
        ("'2024-10-27T02:30:00+02:00'", "'2024-10-27T02:05:00+01:00'"),
        ("'2024-10-27T02:30:00Z'", "'2024-10-27 02:35:00'"),
        ("'2024-10-27T00:30:00+02:00'", "'2024-10-26T22:35:00Z'"),
        ("'2024-10-27 02:30:00'", "'27.10.2024 02:35'"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let old = "(3, 'c', '2024-10-20 00:00:00')";
        let (sqlite, follow) = followed(dir.path(), &format!("(1, 'a', {place}), (2, 'b', {place}), {old}"));
        sqlite.execute_batch(&format!("UPDATE t SET v = 'new', u = {later} WHERE id = 1")).unwrap();
        let now = follow();
        // The row of the week before is not read again.
        assert_eq!((now.changed, now.unchanged), (1, 1), "{place} {later}");
    }
}

#[test]
fn a_text_that_is_no_time_is_read_at_every_poll() {
    let dir = tempfile::tempdir().unwrap();
    let old = "(2, 'b', '2024-01-01 00:00:00'), (3, 'c', '2024-01-01'), (4, 'd', '2024-01-01T00:00:00.5+01')";
    let (sqlite, follow) =
        followed_as(dir.path(), "u TEXT", &format!("(1, 'a', '2025-01-01 00:00:00'), {old}"));
    // Some of them SQLite takes for times of its own.
    let texts = [
        "01/15/2026",
        "1767225600",
        "12345",
        "2460000.5",
        "10:00",
        "now",
        "n/a",
        "",
        "2024-02-30x",
        "2024-13-01 00:00:00",
        "2024-01-01 25:00:00",
        "2024-01-01 00:00:00 foo",
        "2024-01-01 10:00",
    ];
    for (id, text) in (10..).zip(texts) {
        sqlite.execute("INSERT INTO t VALUES (?1, 'x', ?2)", (id, text)).unwrap();
        assert_eq!(follow().added, 1, "{text}");
        sqlite.execute("UPDATE t SET v = 'y' WHERE id = ?1", [id]).unwrap();
        assert_eq!(follow().changed, 1, "{text}");
    }
    let now = follow();
    // Times of the year before are not read again.
    assert_eq!(now.unchanged, 1 + texts.len() as u64);
    assert!(now.notes[0].contains(&format!("in {} of the rows", texts.len())), "{:?}", now.notes);
}

#[test]
fn numbers_in_texts_are_followed_by_their_values() {
    for (first, later) in [
        ("'9000'), (2, 'b', '9999'", ["10000", "10001", "100000.5"]),
        ("'-5000'), (2, 'b', '-999'", ["-100", "+7", "00012"]),
        ("'9.5'), (2, 'b', '99.25'", ["100.25", "3000", "12345678901234567.25"]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let old = "(8, 'old', '-100000')";
        let (sqlite, follow) = followed_as(dir.path(), "u TEXT", &format!("(1, 'a', {first}), {old}"));
        for (id, text) in (3..).zip(later) {
            sqlite.execute("INSERT INTO t VALUES (?1, 'x', ?2)", (id, text)).unwrap();
            sqlite.execute("UPDATE t SET v = ?1, u = ?1 WHERE id = 2", [text]).unwrap();
            let now = follow();
            assert_eq!((now.added, now.changed, now.notes.len()), (1, 1, 0), "{text}: {:?}", now.notes);
            let stored = Stored::open(&dir.path().join("db")).unwrap();
            assert_eq!(stored.manifest().follow.as_ref().unwrap().last, text);
            sqlite.execute("UPDATE t SET v = 'unseen' WHERE id = 8", []).unwrap();
            assert_eq!(follow().changed, 0, "what lies below is not read again");
        }
        // Texts that are not numbers are read, however they begin.
        for (id, text) in (20..).zip(["1-2", "192.168.0.1", "5.", ".5", "--5", "1e3", " 5", "0x10", ""]) {
            sqlite.execute("INSERT INTO t VALUES (?1, 'x', ?2)", (id, text)).unwrap();
            assert_eq!(follow().added, 1, "{text}");
        }
        // Set back, all are read.
        sqlite.execute("DELETE FROM t WHERE id < 8", []).unwrap();
        sqlite.execute("INSERT INTO t VALUES (50, 'x', '-70000')", []).unwrap();
        let now = follow();
        let said = now.notes.iter().any(|n| n.contains("\"u\" is -70000 at most, and it was followed from "));
        assert!(said && (now.added, now.changed) == (1, 1), "{:?}", now.notes);
    }
}

#[test]
fn a_value_without_an_order_is_taken_and_counted() {
    for (first, later) in
        [("'2025-01-01 00:00:00'", "'2026-03-01 00:00:00'"), ("5", "8000"), ("'5'", "'8000'"), ("'a'", "'b'")]
    {
        let dir = tempfile::tempdir().unwrap();
        let (sqlite, follow) = followed(dir.path(), &format!("(1, 'a', {first})"));
        // The second is the text of a time, and of a number.
        for (id, blob) in [(2, "x'00'"), (3, "x'323032342d30312d3031'"), (4, "x'31'"), (5, "x''")] {
            sqlite.execute_batch(&format!("INSERT INTO t VALUES ({id}, 'x', {blob})")).unwrap();
            let now = follow();
            let strays = format!("\"u\" has another kind of value in {} of the rows", id - 1);
            assert!(now.added == 1 && now.notes.iter().any(|n| n.starts_with(&strays)), "{:?}", now.notes);
        }
        sqlite.execute_batch(&format!("INSERT INTO t VALUES (9, 'y', {later})")).unwrap();
        assert_eq!(follow().added, 1, "{first}");
        let stored = Stored::open(&dir.path().join("db")).unwrap();
        let last = stored.manifest().follow.as_ref().unwrap().last.to_string();
        assert_eq!(last.replace('"', "'"), later);
    }
    // A column of nothing else has no order at all.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let sqlite = rusqlite::Connection::open(&path).unwrap();
    sqlite.execute_batch("CREATE TABLE t (id INT, u); INSERT INTO t VALUES (1, x'00'), (2, NULL)").unwrap();
    let spec = format!("sqlite:{}?table=t", path.display());
    built(dir.path(), &spec, "id");
    let error = updated(dir.path(), &spec, Some("u")).unwrap_err().to_string();
    assert!(error.ends_with("holds what has no order; follow numbers or times"), "{error}");
}

#[test]
fn a_place_is_that_of_its_source() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let path = dir.join("s.db");
    let sqlite = rusqlite::Connection::open(&path).unwrap();
    sqlite
        .execute_batch(
            "CREATE TABLE y2025 (k, v, id INT); CREATE TABLE y2026 (k, v, id INT);
             INSERT INTO y2025 VALUES ('a', 1, 100000); INSERT INTO y2026 VALUES ('p', 1, 1), ('q', 2, 2), ('r', 3, 100001);",
        )
        .unwrap();
    let spec = |file: &Path, table: &str| format!("sqlite:{}?table={table}", file.display());
    built(dir, &spec(&path, "y2025"), "k");
    let follow = |spec: &str| updated(dir, spec, Some("id")).unwrap();
    let another =
        |now: &Updated| now.notes.iter().any(|n| n.contains("is another source than the one that was"));
    assert!(!another(&follow(&spec(&path, "y2025"))));
    let now = follow(&spec(&path, "y2026"));
    assert!(now.added == 3 && another(&now), "{} {:?}", now.added, now.notes);
    // The same by another path is the same; another file is another source.
    let now = follow(&spec(&dir.join("./s.db"), "y2026"));
    assert_eq!((now.unchanged, another(&now)), (1, false));
    let copy = dir.join("copy.db");
    std::fs::copy(&path, &copy).unwrap();
    let now = follow(&spec(&copy, "y2026"));
    assert_eq!((now.unchanged, another(&now)), (3, true));
    // Nothing of its name stands in the manifest, which is published.
    let manifest = || std::fs::read_to_string(dir.join("db/manifest.json")).unwrap();
    let follows = manifest().split_once("\"follow\"").unwrap().1.to_owned();
    assert!(!follows.contains("y2026") && !follows.contains("copy"), "{follows}");
}

#[test]
fn a_place_of_an_earlier_build_fits_any_source() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (sqlite, follow) = followed(dir, "(1, 'a', 5), (2, 'b', 900000)");
    // As an earlier build wrote it, without its source.
    let path = dir.join("db/manifest.json");
    let mut json: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(json["version"], 7);
    json["follow"].as_object_mut().unwrap().remove("source").unwrap();
    (json["version"], json["checksum"]) = (4.into(), "".into());
    json["checksum"] = blake3::hash(json.to_string().as_bytes()).to_hex().as_str().into();
    std::fs::write(&path, json.to_string()).unwrap();
    let manifest = Manifest::read(&dir.join("db")).unwrap();
    assert_eq!(manifest.follow.unwrap().source, None);
    sqlite.execute_batch("UPDATE t SET v = 'new' WHERE id = 2").unwrap();
    let now = follow();
    // What lies below its place is not read.
    assert_eq!((now.changed, now.unchanged, now.notes), (1, 0, Vec::new()));
    assert!(Manifest::read(&dir.join("db")).unwrap().follow.unwrap().source.is_some());
}

#[test]
fn a_stray_value_in_the_column_that_is_followed_loses_no_row() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for (first, stray, later, last, followed_by) in [
        ("1", "'n/a'", "5000", serde_json::json!(5000), "numbers"),
        (
            "'2024-03-01 10:00:00'",
            "'tomorrow'",
            "'2024-04-01 10:00:00'",
            "2024-04-01 10:00:00".into(),
            "times",
        ),
        ("'2024-03-01'), (9, '', '2024-03-02'", "7", "'2024-04-01'", "2024-04-01".into(), "times"),
    ] {
        let path = dir.join("s.db");
        let _ = std::fs::remove_file(&path);
        let sqlite = rusqlite::Connection::open(&path).unwrap();
        let add = |id: u64, v: &str, u: &str| {
            sqlite.execute_batch(&format!("INSERT INTO t VALUES ({id}, '{v}', {u})")).unwrap();
        };
        sqlite.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, u)").unwrap();
        add(1, "a", first);
        let spec = format!("sqlite:{}?table=t", path.display());
        built(dir, &spec, "id");
        let follow = || updated(dir, &spec, Some("u")).unwrap();
        add(2, "typo", stray);
        let now = follow();
        assert_eq!((now.added, now.published), (1, true), "{stray}");
        let strays = |now: &Updated| {
            let said =
                now.notes.iter().find(|n| n.starts_with("\"u\" has another kind of value in ")).cloned();
            said.unwrap_or_else(|| panic!("{stray}: {:?}", now.notes))
        };
        assert!(
            strays(&now).contains(" 1 of the rows") && strays(&now).contains(followed_by),
            "{}",
            strays(&now)
        );
        let widened = now.notes.iter().any(|n| n.starts_with("column \"u\" held"));
        assert_eq!(widened, first.starts_with('\'') != stray.starts_with('\''), "{stray}: {:?}", now.notes);
        add(3, "x", later);
        assert_eq!(follow().added, 1, "{stray}");
        let stored = Stored::open(&dir.join("db")).unwrap();
        assert_eq!(stored.manifest().follow.as_ref().unwrap().last, last);
        // One that comes later is seen too, and nothing is said of it once it is corrected.
        add(4, "y", stray);
        let now = follow();
        assert!(now.added == 1 && strays(&now).contains(" 2 of the rows"), "{stray}: {:?}", now.notes);
        sqlite.execute_batch(&format!("UPDATE t SET u = {later} WHERE id IN (2, 4)")).unwrap();
        assert_eq!(follow().notes, Vec::<String>::new());
        for (key, v) in [("1", "a"), ("2", "typo"), ("3", "x"), ("4", "y")] {
            assert_eq!(value(dir, key), Some(Value::Text(v.into())), "{stray}");
        }
    }
}

#[test]
fn keys_that_are_numbers_are_found_in_every_usual_form() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (manifest, _) = made(
        dir,
        "jsonl",
        "{\"k\":1.50,\"v\":1}\n{\"k\":1e3,\"v\":2}\n{\"k\":-0.0,\"v\":3}\n{\"k\":7,\"v\":4}\n",
    );
    assert_eq!(manifest.key_type, Some(KeyType::Decimal));
    let summary = Stored::open(&dir.join("db")).unwrap().summary().unwrap();
    assert!(
        summary.contains("keys are         decimals, such as 1.5; 1.50 and 15e-1 are the same key"),
        "{summary}"
    );
    for (v, forms) in [
        (1, &["1.5", "1.50", "15e-1"][..]),
        (2, &["1e3", "1000", "1000.0"]),
        (3, &["0", "-0.0"]),
        (4, &["7", "7.0"]),
    ] {
        forms.iter().for_each(|form| assert_eq!(value(dir, form), Some(Value::Int(v)), "{form}"));
    }
    // An update's keys are brought to the same form.
    let now = changed(dir, "csv", "k,v\n1.500,9\n0.0,8\n").unwrap();
    assert_eq!((now.changed, now.added), (2, 0));

    let path = dir.join("s.db");
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE t (k REAL, v); INSERT INTO t VALUES (1e20, 'a'), (1, 'b')")
        .unwrap();
    let (manifest, _) = built(dir, &format!("sqlite:{}?table=t", path.display()), "k");
    assert_eq!(manifest.key_type, Some(KeyType::Decimal));
    for form in ["1e20", "100000000000000000000", "1E+20"] {
        assert_eq!(value(dir, form), Some(Value::Text("a".into())), "{form}");
    }
    assert_eq!(value(dir, "1.0"), Some(Value::Text("b".into())));
    // Integers alone, and numbers beside texts, are looked up as they are written.
    for lines in ["{\"k\":1,\"v\":1}\n", "{\"k\":1.5,\"v\":1}\n{\"k\":\"a\",\"v\":1}\n"] {
        assert_eq!(made(dir, "jsonl", lines).0.key_type, None, "{lines}");
    }
}

#[test]
fn an_update_keeps_the_kinds_that_the_build_found() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    made(
        dir,
        "jsonl",
        "{\"k\":\"a\",\"v\":1,\"w\":0.5,\"m\":1}\n{\"k\":\"b\",\"v\":2,\"w\":1.5,\"m\":\"x\"}\n",
    );
    let before = std::fs::read(dir.join("db/manifest.json")).unwrap();
    for (fields, words) in [
        ("\"v\":\"text\",\"w\":1.0,\"m\":1", "line 2 of "),
        (
            "\"v\":\"text\",\"w\":1.0,\"m\":1",
            "its \"v\" is the text \"text\", and the table holds integers of 64 bits there; write one, or null, or",
        ),
        ("\"v\":1.5,\"w\":1.0,\"m\":1", "its \"v\" is 1.5, and the table holds integers of 64 bits there"),
        (
            "\"v\":1,\"w\":true,\"m\":1",
            "its \"w\" is true, and the table holds numbers of which a 64-bit float keeps every digit there",
        ),
        (
            "\"v\":1,\"w\":1,\"m\":[1]",
            "its \"m\" is [1], and the table holds integers of 64 bits, or texts there",
        ),
    ] {
        let lines = format!("{{\"k\":\"a\",\"v\":5,\"w\":2.0,\"m\":1}}\n{{\"k\":\"b\",{fields}}}\n");
        let error = changed(dir, "jsonl", &lines).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    assert!(std::fs::read(dir.join("db/manifest.json")).unwrap() == before, "nothing changes");
    let kinds = || {
        let manifest: serde_json::Value =
            serde_json::from_slice(&std::fs::read(dir.join("db/manifest.json")).unwrap()).unwrap();
        manifest["kinds"].clone()
    };
    let before = kinds();
    let now = changed(
        dir,
        "jsonl",
        "{\"k\":\"a\",\"v\":5,\"w\":2,\"m\":\"y\"}\n{\"k\":\"b\",\"v\":null,\"w\":3,\"m\":7}\n",
    );
    assert_eq!(now.unwrap().changed, 2);
    assert_eq!(kinds(), before);
    // Nor do numbers come among the texts of a CSV file.
    made(dir, "csv", "k,v\na,1\n");
    let error = changed(dir, "jsonl", "{\"k\":\"a\",\"v\":5}\n").unwrap_err().to_string();
    assert!(error.contains("its \"v\" is 5, and the table holds texts there"), "{error}");
}

#[test]
fn what_rows_of_a_build_lack_is_said_once() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let lines = "{\"k\":1,\"v\":1,\"w\":1}\n{\"k\":2}\n{\"k\":3,\"v\":null,\"w\":1}\n{\"k\":4,\"w\":1}\n";
    let (_, notes) = made(dir, "jsonl", lines);
    let origin = dir.join("t.jsonl");
    let said = |rows, column: &str| {
        format!(
            "note: column {column:?} is missing from {rows} of 4 rows of {}, and null there",
            origin.display()
        )
    };
    assert_eq!(notes, [said(2, "v"), said(1, "w")]);
    assert_eq!(made(dir, "jsonl", "{\"k\":1,\"v\":null}\n").1, Vec::<String>::new());
}
