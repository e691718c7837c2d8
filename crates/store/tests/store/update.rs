//! Databases that change: what is there after each epoch, what it cost, and what a killed update leaves.

use std::collections::BTreeMap;
use std::path::Path;

use blindcore_accel::Device;
use blindcore_accel_cpu::Cpu;
use blindcore_store::stages::READING;
use blindcore_store::{
    BuildOptions, Manifest, Overlap, SourceSpec, StoreError, Stored, UpdateOptions, Updated, Value, build,
    codec, update,
};
use proptest::prelude::*;

pub(crate) fn device() -> Device {
    Cpu::with_threads("cpu", 1).unwrap()
}

pub(crate) fn make(dir: &Path, csv: &str, key: Option<&str>) {
    std::fs::write(dir.join("t.csv"), csv).unwrap();
    let options = BuildOptions {
        key: key.map(str::to_owned),
        proofs: blindcore_store::ProofChoice::With,
        ..BuildOptions::new(SourceSpec::parse(dir.join("t.csv").to_str().unwrap()).unwrap(), dir.join("db"))
    };
    build(&options, &device(), &mut ()).unwrap();
}

pub(crate) fn from(dir: &Path, spec: &str, follow: Option<&str>) -> Result<Updated, StoreError> {
    let options = UpdateOptions {
        follow: follow.map(str::to_owned),
        memory: 1 << 16,
        ..UpdateOptions::new(dir.join("db"), SourceSpec::parse(spec).unwrap())
    };
    update(&options, &device(), &mut ())
}

pub(crate) fn change(dir: &Path, csv: &str) -> Result<Updated, StoreError> {
    let path = dir.join("changes.csv");
    std::fs::write(&path, csv).unwrap();
    from(dir, path.to_str().unwrap(), None)
}

pub(crate) fn counts(updated: &Updated) -> [u64; 5] {
    [updated.added, updated.changed, updated.removed, updated.unchanged, updated.changes]
}

pub(crate) fn open(dir: &Path) -> Stored {
    let stored = Stored::open(&dir.join("db")).unwrap();
    stored.verify(&mut ()).unwrap();
    stored
}

fn text(stored: &Stored, key: &[u8]) -> Option<String> {
    let record = stored.record(key).unwrap()?;
    match &codec::decode_record(&record, 1).unwrap()[0] {
        Value::Text(text) => Some(text.clone()),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn table(rows: usize) -> String {
    "k,v\n".to_owned() + &(0..rows).map(|i| format!("key {i},value {i}\n")).collect::<String>()
}

/// A row's values as JSON; nothing where it is not there.
pub(crate) fn row(stored: &Stored, key: &str) -> Option<serde_json::Value> {
    let record = stored.record(key.as_bytes()).unwrap()?;
    let values = codec::decode_record(&record, stored.manifest().values.len()).unwrap();
    Some(values.iter().map(Value::to_json).collect())
}

fn listing(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir.join("db")).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn rows_are_set_added_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    make(dir, &table(500), Some("k"));
    let first = "k,v,_change\nkey 7,new,\nkey 9,,remove\nfresh,hello,set\nnobody,,remove\nkey 1,value 1,\n";
    let updated = change(dir, first).unwrap();
    assert!(updated.published);
    assert_eq!(counts(&updated), [1, 1, 1, 2, 3]);
    let stored = open(dir);
    let manifest = stored.manifest();
    assert_eq!((manifest.epoch, manifest.base_epoch()), (2, 1));
    assert_eq!((manifest.rows, manifest.base_rows(), manifest.live_rows()), (501, 500, 500));
    let expect =
        [("key 7", Some("new")), ("key 9", None), ("fresh", Some("hello")), ("key 1", Some("value 1"))];
    for (key, value) in expect {
        assert_eq!(text(&stored, key.as_bytes()).as_deref(), value, "{key}");
    }
    let description = stored.description().unwrap();
    assert_eq!(description.parts().count(), 4);
    assert_eq!(description.rows(), 501);

    // The next says some of it again, takes some back, and goes on; the last word in a file counts.
    let second =
        "_change,v,k\n,new,key 7\n,back,key 9\n,value 9,key 9\nremove,,fresh\n,other,late\n,x,late\n";
    let updated = change(dir, second).unwrap();
    assert_eq!(counts(&updated), [2, 0, 1, 1, 3]);
    let stored = open(dir);
    assert_eq!((stored.manifest().epoch, stored.manifest().rows), (3, 502));
    for (key, value) in
        [("key 7", Some("new")), ("key 9", Some("value 9")), ("fresh", None), ("late", Some("x"))]
    {
        assert_eq!(text(&stored, key.as_bytes()).as_deref(), value, "{key}");
    }
    assert!(listing(dir).iter().all(|n| !n.starts_with("changes-2")), "{:?}", listing(dir));

    // Nothing new is not an epoch.
    let updated = change(dir, "k,v\nkey 7,new\nlate,x\n").unwrap();
    assert!(!updated.published);
    assert_eq!(counts(&updated), [0, 0, 0, 2, 3]);
    assert_eq!(open(dir).manifest().epoch, 3);
}

#[test]
fn rows_without_keys_go_by_their_number() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    make(dir, "v\na\nb\nc\n", None);
    let at = |stored: &Stored, i: u64| text(stored, &i.to_le_bytes());
    let updated = change(dir, "_row,v,_change\n1,B,\n,d,\n0,,remove\n,e,\n").unwrap();
    assert_eq!(counts(&updated), [2, 1, 1, 0, 4]);
    let stored = open(dir);
    assert_eq!(stored.manifest().rows, 5);
    let now: Vec<_> = (0..6).map(|i| at(&stored, i)).collect();
    assert_eq!(now, [None, Some("B".into()), Some("c".into()), Some("d".into()), Some("e".into()), None]);

    // Added rows can be changed and removed as others, and keep their numbers.
    let updated = change(dir, "_row,v,_change\n3,,remove\n0,a,\n,f,\n").unwrap();
    assert_eq!(counts(&updated), [2, 0, 1, 0, 4]);
    let stored = open(dir);
    let now: Vec<_> = (0..6).map(|i| at(&stored, i)).collect();
    let want = [Some("a"), Some("B"), Some("c"), None, Some("e"), Some("f")];
    assert_eq!(now.iter().map(Option::as_deref).collect::<Vec<_>>(), want);

    for (csv, words) in [
        ("_row,v\n6,x\n", "line 2 of"),
        ("_row,v\n6,x\n", "the table has 6 rows, counted from 0"),
        ("_row,v\n-1,x\n", "\"-1\", no row number"),
        ("_row,v,_change\n,x,remove\n", "say which in _row"),
        ("_row,v,_change\n1,x,delete\n", "write set or remove"),
        ("_row,w\n1,x\n", "has no column \"v\""),
        (
            "_rows,v\n1,x\n",
            "has a column \"_rows\", which is none of the table's; an update of it knows _change and _row",
        ),
    ] {
        let error = change(dir, csv).unwrap_err().to_string();
        assert!(error.contains(words), "{words}: {error}");
        assert_eq!(open(dir).manifest().epoch, 3);
    }
}

#[test]
fn taking_everything_back_leaves_the_base_alone() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    make(dir, &table(50), Some("k"));
    change(dir, "k,v\nkey 3,x\n").unwrap();
    let updated = change(dir, "k,v\nkey 3,value 3\n").unwrap();
    assert!(updated.published);
    let stored = open(dir);
    assert_eq!((stored.manifest().epoch, stored.manifest().base_epoch()), (3, 1));
    assert!(stored.changes.is_none());
    assert_eq!(text(&stored, b"key 3").as_deref(), Some("value 3"));
    assert_eq!(listing(dir).iter().filter(|n| n.starts_with("changes")).count(), 0);
    change(dir, "k,v\nkey 4,y\n").unwrap();
    assert_eq!(text(&open(dir), b"key 4").as_deref(), Some("y"));
}

/// Files of megabytes are cut into blocks, and stay whole through builds and updates.
#[test]
fn long_records_take_several_slots() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let file = |len: usize, salt: usize| -> Vec<u8> { (0..len).map(|i| (i * i / 7 + salt) as u8).collect() };
    std::fs::create_dir(dir.join("files")).unwrap();
    let lengths = [0usize, 10, 2047, 4096, 70_000, 300_000];
    for len in lengths {
        std::fs::write(dir.join(format!("files/{len}")), file(len, 0)).unwrap();
    }
    let spec = format!("dir:{}", dir.join("files").display());
    let options = BuildOptions {
        key: Some("name".into()),
        proofs: blindcore_store::ProofChoice::With,
        memory: 1 << 16,
        ..BuildOptions::new(SourceSpec::parse(&spec).unwrap(), dir.join("db"))
    };
    build(&options, &device(), &mut ()).unwrap();
    let content = |stored: &Stored, name: &str| {
        let record = stored.record(name.as_bytes()).unwrap()?;
        let Value::Blob(bytes) = codec::decode_record(&record, 1).unwrap().remove(0) else { panic!() };
        Some(bytes)
    };
    let stored = open(dir);
    let manifest = stored.manifest();
    assert_eq!((manifest.rows, manifest.epoch), (6, 1));
    let block = stored.records.params.geometry.record_bytes - 5;
    assert_eq!(manifest.blocks() as usize, 300_005usize.div_ceil(block));
    assert!(manifest.records.hint.bytes < 32 << 20, "{}", manifest.records.hint.bytes);
    for len in lengths {
        assert_eq!(content(&stored, &len.to_string()), Some(file(len, 0)), "{len}");
    }
    assert_eq!(content(&stored, "7"), None);
    assert_eq!(stored.description().unwrap().blocks(), manifest.blocks());

    // One grows, one shrinks, one goes, one stays as it is.
    std::fs::write(dir.join("files/10"), file(400_000, 3)).unwrap();
    std::fs::write(dir.join("files/300000"), file(5, 3)).unwrap();
    let updated = from(dir, &spec, None).unwrap();
    assert_eq!(counts(&updated), [0, 2, 0, 4, 2]);
    let stored = open(dir);
    assert!(stored.description().unwrap().changes().unwrap().blocks > 1);
    assert_eq!(content(&stored, "10"), Some(file(400_000, 3)));
    assert_eq!(content(&stored, "300000"), Some(file(5, 3)));
    assert_eq!(content(&stored, "70000"), Some(file(70_000, 0)));
}

#[test]
fn what_is_wrong_leaves_the_epoch_before() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    make(dir, &table(50), Some("k"));
    let before = listing(dir);
    for (csv, words) in [
        ("k\nkey 3\n", "has no column \"v\""),
        ("id,v\nkey 3,x\n", "has no column \"k\""),
        ("k,v\nkey 3\n", "line 2"),
        ("k,v\n,x\n", "line 2"),
        ("k,v,_change\nkey 3,x,\"drop\ntable\"\n", "write set or remove"),
        ("k,v,_chang\nkey 3,,remove\n", "has a column \"_chang\""),
        ("k,v,_row\nkey 3,x,1\n", "an update of it knows _change, so"),
    ] {
        let error = change(dir, csv).unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains('\n'), "{words}: {error}");
        assert_eq!(listing(dir), before);
    }
    // Rows that go need no values.
    assert_eq!(counts(&change(dir, "k,_change\nkey 3,remove\n").unwrap()), [0, 0, 1, 0, 1]);
    let error = from(&dir.join("no"), dir.join("t.csv").to_str().unwrap(), None).unwrap_err();
    assert!(matches!(error, StoreError::NoDatabase { .. }), "{error}");
}

#[test]
fn what_a_killed_update_left_goes_with_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    make(dir, &table(50), Some("k"));
    std::fs::create_dir(dir.join("db/.update")).unwrap();
    std::fs::write(dir.join("db/.update/changes-2-0000.shard"), "half").unwrap();
    std::fs::write(dir.join("db/changes-2.hint"), "moved but never named").unwrap();
    assert_eq!(text(&open(dir), b"key 4").as_deref(), Some("value 4"));
    change(dir, "k,v\nkey 4,y\n").unwrap();
    assert_eq!(text(&open(dir), b"key 4").as_deref(), Some("y"));
    assert!(!dir.join("db/.update").exists());
    // A build that replaces the database knows its files.
    std::fs::create_dir(dir.join("db/.update")).unwrap();
    let options = BuildOptions {
        key: Some("k".into()),
        proofs: blindcore_store::ProofChoice::Without,
        force: true,
        ..BuildOptions::new(SourceSpec::parse(dir.join("t.csv").to_str().unwrap()).unwrap(), dir.join("db"))
    };
    build(&options, &device(), &mut ()).unwrap();
    assert_eq!(open(dir).manifest().epoch, 3);
}

#[test]
fn a_source_is_followed_by_a_column_that_grows() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    make(dir, "k,v\na,1\nb,2\n", Some("k"));
    let path = dir.join("s.db");
    let sqlite = rusqlite::Connection::open(&path).unwrap();
    sqlite
        .execute_batch(
            "CREATE TABLE \"my t\" (k TEXT, v TEXT, at INT);
             INSERT INTO \"my t\" VALUES ('a', '1', 10), ('b', '2', 11);",
        )
        .unwrap();
    let spec = format!("sqlite:{}?table=my t", path.display());
    let follow = |counts_wanted: [u64; 5], read: u64| {
        let mut seen = 0;
        let options = UpdateOptions {
            follow: Some("at".into()),
            overlap: Overlap::Count(0),
            memory: 1 << 16,
            ..UpdateOptions::new(dir.join("db"), SourceSpec::parse(&spec).unwrap())
        };
        let updated = update(&options, &device(), &mut |stage: &str, done, _, _| {
            if stage == READING {
                seen = done;
            }
        })
        .unwrap();
        assert_eq!(counts(&updated), counts_wanted);
        assert_eq!(seen, read);
    };
    let before = open(dir);
    follow([0, 0, 0, 2, 0], 2);
    // Nothing changed, so that the epoch stays, and where it was is kept.
    let now = open(dir);
    assert_eq!((now.manifest().epoch, now.manifest().follow.as_ref().unwrap().last.clone()), (1, 11.into()));
    assert!(now.manifest().is_same_epoch(before.manifest()) && now.manifest() != before.manifest());
    follow([0, 0, 0, 1, 0], 1);
    sqlite.execute_batch("INSERT INTO \"my t\" VALUES ('c', '3', 12), ('a', '9', 13);").unwrap();
    follow([1, 1, 0, 1, 2], 3);
    // From here on only what is as new as the newest is read.
    sqlite.execute_batch("INSERT INTO \"my t\" VALUES ('d', '4', 13);").unwrap();
    follow([1, 0, 0, 1, 3], 2);
    let stored = open(dir);
    assert_eq!(text(&stored, b"a").as_deref(), Some("9"));
    assert_eq!(text(&stored, b"d").as_deref(), Some("4"));
    assert_eq!(stored.manifest().follow.as_ref().unwrap().last, 13);
    let error = from(dir, dir.join("t.csv").to_str().unwrap(), Some("k")).unwrap_err().to_string();
    assert!(error.contains("only a database can be followed"), "{error}");
}

#[test]
fn a_row_that_is_committed_late_or_has_no_value_is_not_lost() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    make(dir, "k,v\nz,0\n", Some("k"));
    let path = dir.join("s.db");
    let sqlite = rusqlite::Connection::open(&path).unwrap();
    sqlite
        .execute_batch(
            "CREATE TABLE t (k TEXT, v TEXT, at TEXT);
             INSERT INTO t VALUES ('a', '1', '2024-03-01T00:05:00Z'), ('b', '2', '2024-03-01T00:09:00Z'), ('c', '3', NULL);",
        )
        .unwrap();
    let options = UpdateOptions {
        follow: Some("at".into()),
        memory: 1 << 16,
        ..UpdateOptions::new(
            dir.join("db"),
            SourceSpec::parse(&format!("sqlite:{}?table=t", path.display())).unwrap(),
        )
    };
    let follow = |overlap| update(&UpdateOptions { overlap, ..options.clone() }, &device(), &mut ());
    let updated = follow(Overlap::Usual).unwrap();
    assert_eq!(counts(&updated), [3, 0, 0, 0, 3]);
    assert!(updated.notes[0].starts_with("1 of the rows that were read have null"), "{:?}", updated.notes);
    // They began before b did, and were committed after it was read; and one without a value.
    sqlite
        .execute_batch(
            "INSERT INTO t VALUES ('d', '4', '2024-03-01T00:02:00Z'), ('e', '5', '2024-02-29T00:00:00Z'), ('f', '6', NULL);",
        )
        .unwrap();
    let updated = follow(Overlap::Usual).unwrap();
    assert_eq!(counts(&updated), [2, 0, 0, 3, 5]);
    let stored = open(dir);
    assert_eq!(text(&stored, b"d").as_deref(), Some("4"));
    assert_eq!(text(&stored, b"f").as_deref(), Some("6"));
    assert_eq!(text(&stored, b"e"), None, "it is a day late");
    assert_eq!(counts(&follow(Overlap::Seconds(3 * 86_400)).unwrap()), [1, 0, 0, 5, 6]);
    let error = follow(Overlap::Count(5)).unwrap_err().to_string();
    assert!(error.contains("column \"at\" holds times; give the overlap as a duration"), "{error}");
}

#[test]
fn a_table_without_a_directory_knows_its_types() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(
        dir.join("t.jsonl"),
        "{\"k\":\"a\",\"n\":1,\"x\":null}\n{\"k\":\"b\",\"n\":2,\"x\":[1]}\n",
    )
    .unwrap();
    let spec = SourceSpec::parse(dir.join("t.jsonl").to_str().unwrap()).unwrap();
    let options =
        BuildOptions { key: Some("k".into()), directory: false, ..BuildOptions::new(spec, dir.join("db")) };
    let manifest = build(&options, &device(), &mut ()).unwrap();
    assert!(std::fs::read_to_string(dir.join("db/manifest.json")).unwrap().contains("\"version\": 4"));
    assert_eq!(Manifest::read(&dir.join("db")).unwrap(), manifest);
    assert_eq!(counts(&change(dir, "k,n,x\nc,3,[2]\n").unwrap()), [1, 0, 0, 0, 1]);
    assert_eq!(row(&open(dir), "c"), Some(serde_json::json!([3, [2]])));
    let error = change(dir, "k,n,x\nd,many,\n").unwrap_err().to_string();
    assert!(error.contains("holds integers of 64 bits there"), "{error}");
}

#[test]
fn a_database_in_the_folder_that_is_read_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::create_dir(dir.join("in")).unwrap();
    std::fs::write(dir.join("in/a"), "1").unwrap();
    let spec = SourceSpec::parse(&format!("dir:{}", dir.join("in").display())).unwrap();
    for out in ["in/db", "in/new/db", "in/../in/db"] {
        let options =
            BuildOptions { key: Some("name".into()), ..BuildOptions::new(spec.clone(), dir.join(out)) };
        let error = build(&options, &device(), &mut ()).unwrap_err().to_string();
        assert!(error.contains("would read what it writes; choose a folder outside"), "{error}");
    }
    assert_eq!(std::fs::read_dir(dir.join("in")).unwrap().count(), 1, "nothing was made");
    let options =
        BuildOptions { key: Some("name".into()), ..BuildOptions::new(spec.clone(), dir.join("in-db")) };
    build(&options, &device(), &mut ()).unwrap();
    std::fs::rename(dir.join("in-db"), dir.join("in/db")).unwrap();
    let error =
        update(&UpdateOptions::new(dir.join("in/db"), spec), &device(), &mut ()).unwrap_err().to_string();
    assert!(error.contains("its own files would be rows"), "{error}");
}

#[test]
fn files_that_are_gone_are_removed_or_said_to_stay() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::create_dir(dir.join("files")).unwrap();
    for name in ["a", "b", "c"] {
        std::fs::write(dir.join("files").join(name), name).unwrap();
    }
    let spec = format!("dir:{}", dir.join("files").display());
    let build_options = BuildOptions {
        key: Some("name".into()),
        ..BuildOptions::new(SourceSpec::parse(&spec).unwrap(), dir.join("db"))
    };
    build(&build_options, &device(), &mut ()).unwrap();
    std::fs::write(dir.join("files/d"), "d").unwrap();
    from(dir, &spec, None).unwrap();
    for gone in ["a", "d"] {
        std::fs::remove_file(dir.join("files").join(gone)).unwrap();
    }
    std::fs::write(dir.join("files/e"), "e").unwrap();
    let updated = from(dir, &spec, None).unwrap();
    assert_eq!(counts(&updated), [1, 0, 0, 2, 2]);
    assert!(updated.notes[0].contains("files that are gone") && updated.notes[0].contains("--whole"));
    let whole = || {
        let options = UpdateOptions {
            whole: true,
            memory: 1 << 16,
            ..UpdateOptions::new(dir.join("db"), SourceSpec::parse(&spec).unwrap())
        };
        update(&options, &device(), &mut ())
    };
    let updated = whole().unwrap();
    assert_eq!((counts(&updated), updated.notes.len()), ([0, 0, 2, 3, 3], 0));
    let stored = open(dir);
    for (name, there) in [("a", false), ("b", true), ("c", true), ("d", false), ("e", true)] {
        assert_eq!(stored.record(name.as_bytes()).unwrap().is_some(), there, "{name}");
    }
    assert_eq!(stored.manifest().live_rows(), 3);
    // Once they are gone they stay gone, and may come back.
    assert!(!whole().unwrap().published);
    std::fs::write(dir.join("files/a"), "a").unwrap();
    assert_eq!(counts(&whole().unwrap()), [1, 0, 0, 3, 2]);
    // Nor is a source whose rows are all removed a whole table.
    let removals = dir.join("removals.jsonl");
    for names in [vec!["nobody"], vec!["a", "b", "c", "e"]] {
        let lines = names.iter().map(|name| format!("{{\"name\":\"{name}\",\"_change\":\"remove\"}}\n"));
        std::fs::write(&removals, lines.collect::<String>()).unwrap();
        let options = UpdateOptions {
            whole: true,
            ..UpdateOptions::new(dir.join("db"), SourceSpec::parse(removals.to_str().unwrap()).unwrap())
        };
        let error = update(&options, &device(), &mut ()).unwrap_err().to_string();
        let words =
            "has no rows but some that it removes, and as the whole table (--whole) would remove every row";
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(open(dir).manifest().live_rows(), 4);
    // No rows at all is a source that failed.
    for name in ["a", "b", "c", "e"] {
        std::fs::remove_file(dir.join("files").join(name)).unwrap();
    }
    let error = whole().unwrap_err().to_string();
    assert!(
        error.contains("has no rows, and as the whole table (--whole) would remove every row"),
        "{error}"
    );
    build(&BuildOptions { directory: false, force: true, ..build_options }, &device(), &mut ()).unwrap_err();
    std::fs::create_dir(dir.join("other")).unwrap();
    make(&dir.join("other"), "v\na\n", None);
    let options = UpdateOptions {
        whole: true,
        ..UpdateOptions::new(dir.join("other/db"), SourceSpec::parse(&spec).unwrap())
    };
    let error = update(&options, &device(), &mut ()).unwrap_err().to_string();
    assert!(
        error.contains("rows of table t have no keys") && error.contains("build it with --key"),
        "{error}"
    );
    let csv = dir.join("other/k.csv");
    std::fs::write(&csv, "k,v\na,b\n").unwrap();
    let without = BuildOptions {
        key: Some("k".into()),
        name: Some("t".into()),
        directory: false,
        force: true,
        ..BuildOptions::new(SourceSpec::parse(csv.to_str().unwrap()).unwrap(), dir.join("other/db"))
    };
    build(&without, &device(), &mut ()).unwrap();
    let error = update(&options, &device(), &mut ()).unwrap_err().to_string();
    assert!(
        error.contains("table t has no directory of keys") && error.ends_with("without --no-directory"),
        "{error}"
    );
}

#[test]
fn links_in_a_folder_are_named_and_their_rows_stay() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::create_dir_all(dir.join("files/sub")).unwrap();
    for name in ["a", "b", "sub/c", "subject"] {
        std::fs::write(dir.join("files").join(name), name).unwrap();
    }
    let spec = format!("dir:{}", dir.join("files").display());
    let options = BuildOptions {
        key: Some("name".into()),
        ..BuildOptions::new(SourceSpec::parse(&spec).unwrap(), dir.join("db"))
    };
    build(&options, &device(), &mut ()).unwrap();
    // A file and a folder become links to where they went, and another file goes.
    for (name, to) in [("a", "moved"), ("sub", "elsewhere")] {
        std::fs::rename(dir.join("files").join(name), dir.join(to)).unwrap();
        std::os::unix::fs::symlink(dir.join(to), dir.join("files").join(name)).unwrap();
    }
    std::fs::remove_file(dir.join("files/subject")).unwrap();
    let whole = UpdateOptions {
        whole: true,
        ..UpdateOptions::new(dir.join("db"), SourceSpec::parse(&spec).unwrap())
    };
    let updated = update(&whole, &device(), &mut ()).unwrap();
    assert_eq!(counts(&updated), [0, 0, 1, 1, 1]);
    assert!(
        updated.notes[0].contains("symbolic links, which are not followed: a, sub;")
            && updated.notes[0].ends_with("rows of these names stay"),
        "{:?}",
        updated.notes
    );
    let stored = open(dir);
    for (name, there) in [("a", true), ("b", true), ("sub/c", true), ("subject", false)] {
        assert_eq!(stored.record(name.as_bytes()).unwrap().is_some(), there, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Whatever is set and removed in whatever order: the table is what a map is.
    #[test]
    fn a_table_is_the_map_of_its_last_words(
        epochs in prop::collection::vec(prop::collection::vec((0u8..30, any::<bool>(), 0u16..4), 1..25), 1..5),
        memory in 0usize..3000,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        make(dir, &table(20), Some("k"));
        let mut map: BTreeMap<u8, String> = (0..20).map(|i| (i, format!("value {i}"))).collect();
        for rows in &epochs {
            let mut csv = "k,v,_change\n".to_owned();
            for (key, there, value) in rows {
                let value = if *value == 0 { format!("value {key}") } else { "y".repeat(usize::from(*value) * 9) };
                csv += &format!("key {key},{value},{}\n", if *there { "set" } else { "remove" });
                if *there { map.insert(*key, value) } else { map.remove(key) };
            }
            std::fs::write(dir.join("c.csv"), csv).unwrap();
            let changes = SourceSpec::parse(dir.join("c.csv").to_str().unwrap()).unwrap();
            let options = UpdateOptions { memory, ..UpdateOptions::new(dir.join("db"), changes) };
            update(&options, &device(), &mut ()).unwrap();
            let stored = open(dir);
            prop_assert_eq!(stored.manifest().live_rows(), map.len() as u64);
            for key in 0..30u8 {
                prop_assert_eq!(text(&stored, format!("key {key}").as_bytes()), map.get(&key).cloned());
            }
        }
    }
}
