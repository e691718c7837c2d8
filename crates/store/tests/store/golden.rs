//! Databases of each version of the manifest that were built by earlier builds: they open, are whole, and have the rows
//! that went in.

use std::path::PathBuf;

use blindcore_store::{Manifest, Stored, Value, codec};

fn golden(version: u32) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/databases");
    folder.join(format!("v{version}"))
}

fn text(stored: &Stored, key: &[u8]) -> Option<String> {
    let record = stored.record(key).unwrap()?;
    match &codec::decode_record(&record, 1).unwrap()[0] {
        Value::Text(text) => Some(text.clone()),
        other => panic!("{other:?}"),
    }
}

fn opened(version: u32) -> Stored {
    let manifest = std::fs::read_to_string(golden(version).join("manifest.json")).unwrap();
    assert!(manifest.contains(&format!("\"version\": {version},")), "{manifest}");
    Manifest::read(&golden(version)).unwrap();
    let stored = Stored::open(&golden(version)).unwrap();
    stored.verify(&mut ()).unwrap();
    stored
}

#[test]
fn version_1_by_index() {
    let stored = opened(1);
    let rows: Vec<_> = (0..3u64).map(|row| text(&stored, &row.to_le_bytes()).unwrap()).collect();
    assert_eq!(rows, ["red", "green", "blue"]);
}

#[test]
fn version_2_by_key_with_proofs_and_a_signature() {
    let stored = opened(2);
    for (key, value) in [("apple", "red"), ("pear", "green"), ("plum", "blue")] {
        assert_eq!(text(&stored, key.as_bytes()).as_deref(), Some(value), "{key}");
    }
    assert_eq!(text(&stored, b"fig"), None);
}

#[test]
fn version_3_with_checksums_of_tiles_and_changes() {
    let stored = opened(3);
    for (key, value) in
        [("apple", Some("red")), ("pear", Some("yellow")), ("plum", None), ("fig", Some("purple"))]
    {
        assert_eq!(text(&stored, key.as_bytes()).as_deref(), value, "{key}");
    }
}

#[test]
fn version_5_with_batches() {
    let stored = opened(5);
    for (key, value) in [("apple", "red"), ("pear", "green"), ("plum", "blue")] {
        assert_eq!(text(&stored, key.as_bytes()).as_deref(), Some(value), "{key}");
    }
    assert_eq!(Manifest::read(&golden(5)).unwrap().batches.unwrap().keys, 8);
}

#[test]
fn version_6_with_four_outputs_beside_each_other() {
    let stored = opened(6);
    for (row, value) in ["red ".repeat(2750), "blue ".repeat(2200)].into_iter().enumerate() {
        assert_eq!(text(&stored, &(row as u64).to_le_bytes()), Some(value));
    }
}

#[test]
fn versions_4_7_and_8_with_types_and_a_place_where_following_stands() {
    for version in [4, 7, 8] {
        let stored = opened(version);
        let fruits = [
            ("apple", Some("red")),
            ("pear", Some("yellow")),
            ("plum", Some("blue")),
            ("fig", Some("purple")),
        ];
        for (key, value) in fruits {
            assert_eq!(text(&stored, key.as_bytes()).as_deref(), value, "{key}");
        }
        let follow = Manifest::read(&golden(version)).unwrap().follow.unwrap();
        assert_eq!((&follow.column[..], follow.last.as_u64()), ("seq", Some(5)));
        assert_eq!(follow.source.is_some(), version >= 7);
        assert_eq!(follow.without, if version == 8 { &["color"][..] } else { &[] });
    }
}
