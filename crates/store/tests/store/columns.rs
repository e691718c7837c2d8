//! What an update says of a row's columns, and what becomes of those that it leaves out.

use std::path::Path;

use blindcore_store::{BuildOptions, SourceSpec, StoreError, UpdateOptions, Updated, build, update};

use crate::update::{change, counts, device, from, make, open, row, table};

/// Builds a table from JSON lines, by `k`.
fn make_typed(dir: &Path, lines: &str) {
    std::fs::write(dir.join("t.jsonl"), lines).unwrap();
    let spec = SourceSpec::parse(dir.join("t.jsonl").to_str().unwrap()).unwrap();
    let options = BuildOptions { key: Some("k".into()), ..BuildOptions::new(spec, dir.join("db")) };
    build(&options, &device(), &mut ()).unwrap();
}

/// Runs an update with more options.
fn change_with(
    dir: &Path,
    file: &str,
    text: &str,
    more: impl FnOnce(&mut UpdateOptions),
) -> Result<Updated, StoreError> {
    std::fs::write(dir.join(file), text).unwrap();
    let spec = SourceSpec::parse(dir.join(file).to_str().unwrap()).unwrap();
    let mut options = UpdateOptions { memory: 1 << 16, ..UpdateOptions::new(dir.join("db"), spec) };
    more(&mut options);
    update(&options, &device(), &mut ())
}

#[test]
fn a_key_that_is_missing_wipes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    make_typed(dir, "{\"k\":\"a\",\"n\":7,\"s\":\"x\"}\n{\"k\":\"b\",\"n\":8,\"s\":null}\n");
    let json = |text: &str, partial: bool| change_with(dir, "c.jsonl", text, |o| o.partial = partial);
    for (text, partial, words) in [
        ("{\"k\":\"b\",\"n\":1,\"s\":\"y\"}\n{\"k\":\"a\",\"n\":9}\n", false, "line 2 of"),
        (
            "{\"k\":\"a\",\"n\":9}\n",
            false,
            "it has no \"s\", and would wipe what the row has there; write null where that",
        ),
        ("{\"n\":9,\"s\":\"\"}\n", true, "line 1 of"),
        ("{\"n\":9,\"s\":\"\"}\n", true, "it has no \"k\", which rows are found by"),
        ("{\"k\":\"a\",\"n\":1}\n{\"k\":\"new\",\"n\":9}\n", true, "line 2 of"),
        ("{\"k\":\"new\",\"n\":9}\n", true, "it has no \"s\", and the table has no such row yet"),
        ("{\"k\":\"a\",\"_change\":\"remove\"}\n{\"k\":\"a\",\"n\":9}\n", true, "line 2 of"),
    ] {
        let error = json(text, partial).unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains('\n'), "{words}: {error}");
        assert_eq!(open(dir).manifest().epoch, 1);
    }
    let error = change_with(dir, "c.csv", "k,n\na,9\n", |_| ()).unwrap_err().to_string();
    assert!(
        error.contains(
            "c.csv: its source has no column \"s\"; its columns are k, n; add it, or say --partial"
        ),
        "{error}"
    );
    // A null is meant; what is not said stays, whatever the update before said, and within one update too.
    json("{\"k\":\"a\",\"n\":9,\"s\":null}\n", false).unwrap();
    assert_eq!(row(&open(dir), "a"), Some(serde_json::json!([9, null])));
    let updated = json(
        "{\"k\":\"b\",\"s\":\"y\"}\n{\"k\":\"c\",\"n\":1,\"s\":\"z\"}\n{\"k\":\"c\",\"n\":2}\n{\"k\":\"a\",\"s\":\"w\"}\n{\"k\":\"a\"}\n",
        true,
    );
    assert_eq!(counts(&updated.unwrap()), [1, 2, 0, 0, 3]);
    let stored = open(dir);
    for (key, want) in [("a", "[9,\"w\"]"), ("b", "[8,\"y\"]"), ("c", "[2,\"z\"]")] {
        assert_eq!(row(&stored, key).unwrap().to_string(), want);
    }
    // So it is in a file without the column.
    change_with(dir, "c.csv", "k,s\na,v\n", |o| o.partial = true).unwrap();
    assert_eq!(row(&open(dir), "a"), Some(serde_json::json!([9, "v"])));
}

#[test]
fn objects_of_a_change_feed_have_what_they_need() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    make_typed(dir, "{\"k\":\"a\",\"n\":7}\n{\"k\":\"b\",\"n\":8}\n");
    let feed = "{\"k\":\"a\",\"n\":1}\n{\"_change\":\"remove\",\"k\":\"b\"}\n{\"n\":3,\"k\":\"c\",\"_change\":\"set\"}\n";
    assert_eq!(counts(&change_with(dir, "c.jsonl", feed, |_| ()).unwrap()), [1, 1, 1, 0, 3]);
    let error =
        change_with(dir, "c.jsonl", "{\"k\":\"a\",\"n\":2}\n{\"k\":\"a\",\"change\":\"remove\"}\n", |_| ());
    let error = error.unwrap_err().to_string();
    let words = "line 2 of";
    let more = "the key \"change\" is unknown; those of this table and of an update are k, n, _change";
    assert!(error.contains(words) && error.contains(more) && error.ends_with("with --ignore"), "{error}");
    let error = change_with(dir, "c.jsonl", "{\"k\":\"a\",\"n\":\n", |_| ()).unwrap_err().to_string();
    assert!(error.ends_with("write one JSON object a line"), "{error}");
    let text = "{\"k\":\"a\",\"n\":2}\n{\"k\":\"c\",\"n\":4,\"why\":{}}\n";
    change_with(dir, "c.jsonl", text, |o| o.ignore = vec!["why".into()]).unwrap();
    assert_eq!(row(&open(dir), "c"), Some(serde_json::json!([4])));
}

#[test]
fn a_column_that_nobody_knows_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    make(dir, &table(50), Some("k"));
    let csv = "k,v,change\nkey 3,,remove\n";
    let error = change(dir, csv).unwrap_err().to_string();
    for words in
        ["has a column \"change\", which is none of the table's", "--ignore change", "columns are k, v"]
    {
        assert!(error.contains(words), "{words}: {error}");
    }
    let updated = change_with(dir, "c.csv", csv, |o| o.ignore = vec!["change".into()]).unwrap();
    assert_eq!((counts(&updated), &updated.notes[..]), ([0, 1, 0, 0, 1], &[][..]));
    // A database's table has columns for others.
    let path = dir.join("s.db");
    let sqlite = rusqlite::Connection::open(&path).unwrap();
    sqlite
        .execute_batch("CREATE TABLE t (k TEXT, more INT, v TEXT); INSERT INTO t VALUES ('a', 1, 'x')")
        .unwrap();
    let updated = from(dir, &format!("sqlite:{}?table=t", path.display()), None).unwrap();
    assert_eq!(updated.added, 1);
    assert!(updated.notes[0].contains("columns that the table does not, which are passed over: more (--ig"));
}

/// What `ignore` names is as if the changes lacked it, whoever else knows it.
#[test]
fn a_known_column_is_passed_over_too() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    make_typed(dir, "{\"k\":\"a\",\"v\":1,\"w\":1}\n{\"k\":\"b\",\"v\":2,\"w\":2}\n");
    let sqlite = rusqlite::Connection::open(dir.join("s.db")).unwrap();
    sqlite
        .execute_batch("CREATE TABLE t (k TEXT, v INT, w INT); INSERT INTO t VALUES ('a', 300, 4)")
        .unwrap();
    let passing = |names: &[&str], partial: bool| {
        let ignore: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        move |o: &mut UpdateOptions| (o.ignore, o.partial) = (ignore, partial)
    };
    // Of a file with columns, of objects, and of a database.
    change_with(dir, "c.csv", "k,v,w\na,100,2\n", passing(&["v"], true)).unwrap();
    assert_eq!(row(&open(dir), "a"), Some(serde_json::json!([1, 2])));
    change_with(dir, "c.jsonl", "{\"k\":\"a\",\"v\":{},\"w\":3}\n", passing(&["v"], true)).unwrap();
    assert_eq!(row(&open(dir), "a"), Some(serde_json::json!([1, 3])));
    let spec = SourceSpec::parse(&format!("sqlite:{}?table=t", dir.join("s.db").display())).unwrap();
    let mut options = UpdateOptions::new(dir.join("db"), spec);
    passing(&["v"], true)(&mut options);
    let updated = update(&options, &device(), &mut ()).unwrap();
    assert_eq!((row(&open(dir), "a"), updated.notes.len()), (Some(serde_json::json!([1, 4])), 0));
    // A whole row lacks it then.
    for (file, text) in [("c.csv", "k,v,w\na,100,9\n"), ("c.jsonl", "{\"k\":\"a\",\"v\":100,\"w\":9}\n")] {
        let error = change_with(dir, file, text, passing(&["v"], false)).unwrap_err().to_string();
        assert!(
            error.contains("its \"v\" is passed over (--ignore)") && error.contains("--partial"),
            "{error}"
        );
    }
    // So it is with what an update knows.
    for (file, text) in [
        ("c.csv", "k,v,w,_change\na,5,5,remove\n"),
        ("c.jsonl", "{\"k\":\"b\",\"v\":5,\"w\":5,\"_change\":\"remove\"}\n"),
    ] {
        let updated = change_with(dir, file, text, passing(&["_change"], false)).unwrap();
        assert_eq!((updated.changed, updated.removed), (1, 0), "{file}");
    }
    assert_eq!(row(&open(dir), "a"), Some(serde_json::json!([5, 5])));
    let error =
        change_with(dir, "c.csv", "k,v,w\na,6,6\n", passing(&["v", "k"], true)).unwrap_err().to_string();
    assert!(error.contains("--ignore names \"k\", the column that rows of table t are found by"), "{error}");
}

#[test]
fn what_is_missing_counts_only_where_it_stays() {
    let made = "{\"k\":\"a\",\"v\":1,\"w\":1}\n{\"k\":\"b\",\"v\":2,\"w\":2}\n";
    let (part, whole, remove) =
        ("{\"k\":\"a\",\"v\":5}", "{\"k\":\"a\",\"v\":6,\"w\":7}", "{\"k\":\"a\",\"_change\":\"remove\"}");
    let rest = "{\"k\":\"a\",\"w\":8}";
    for (lines, want) in [
        (&[part, remove][..], Ok(None)),
        (&[part, whole], Ok(Some([6, 7]))),
        (&[part, rest, whole, part], Ok(Some([5, 7]))),
        (&[part, whole, remove], Ok(None)),
        (&[whole, remove, part, remove], Ok(None)),
        (&[part], Err(1)),
        (&[part, rest], Err(1)),
        (&[remove, part], Err(2)),
        (&[part, remove, rest, part], Err(3)),
        (&[part, whole, remove, part], Err(4)),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        make_typed(dir, made);
        change_with(dir, "c.jsonl", remove, |_| ()).unwrap();
        let said = change_with(dir, "c.jsonl", &lines.join("\n"), |o| o.partial = true);
        match (said, want) {
            (Ok(_), Ok(want)) => {
                assert_eq!(row(&open(dir), "a"), want.map(|want| serde_json::json!(want)), "{lines:?}");
            }
            (Err(error), Err(line)) => {
                let error = error.to_string();
                let words = format!("line {line} of {}: it has no ", dir.join("c.jsonl").display());
                assert!(error.starts_with(&words) && error.contains("no such row yet"), "{lines:?}: {error}");
                assert_eq!((open(dir).manifest().epoch, row(&open(dir), "a")), (2, None));
            }
            (said, want) => panic!("{lines:?}: {said:?} {want:?}"),
        }
    }
}

#[test]
fn texts_of_a_csv_become_what_the_table_holds() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    make_typed(
        dir,
        "{\"k\":\"a\",\"n\":7,\"x\":1.5,\"s\":\"1\"}\n{\"k\":\"b\",\"n\":null,\"x\":2.5,\"s\":\"2\"}\n",
    );
    change(dir, "k,n,x,s\na,8,2,3\nb,9,-0.5,4\nnew,10,,5\n").unwrap();
    let stored = open(dir);
    for (key, want) in [("a", "[8,2.0,\"3\"]"), ("b", "[9,-0.5,\"4\"]"), ("new", "[10,null,\"5\"]")] {
        assert_eq!(row(&stored, key).unwrap().to_string(), want);
    }
    let error = change(dir, "k,n,x,s\na,1,1,1\nb,many,1,1\n").unwrap_err().to_string();
    let words =
        "its \"n\" is \"many\", and the table holds integers of 64 bits there; write one, or leave it empty";
    assert!(error.contains("line 3 of") && error.contains(words), "{error}");
    assert_eq!(open(dir).manifest().epoch, 2);
}
