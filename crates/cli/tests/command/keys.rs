//! Keys that are no text, and tables without a key.

use serde_json::json;

use crate::common::{Serving, code, json, refused, run, stderr, stdout};

#[test]
fn keys_of_bytes_are_written_in_digits() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let sqlite = rusqlite::Connection::open(dir.join("s.db")).unwrap();
    sqlite
        .execute_batch(
            "CREATE TABLE t (hash BLOB, name TEXT); \
             INSERT INTO t VALUES (x'00ffa1', 'bytes'), (x'fbff', 'more'), ('ada', 'text')",
        )
        .unwrap();
    let built =
        run(dir, &["db", "build", "sqlite:s.db?table=t", "--key", "hash", "--name", "t", "--out", "t.db"]);
    assert_eq!(code(&built), 0, "{}", stderr(&built));
    assert!(!stderr(&built).contains("no key was named"));
    let server = Serving::start(dir, &["t.db"]);
    let get = |args: &[&str]| server.get(dir, &[&["--table", "t"], args].concat());
    for (args, key, name) in [
        (["--key-hex", "00FFa1"], json!({"base64": "AP+h"}), "bytes"),
        (["--key-base64", "AP+h"], json!({"base64": "AP+h"}), "bytes"),
        (["--key-base64", "-_8"], json!({"base64": "+/8="}), "more"),
        (["--key-hex", "616461"], json!("ada"), "text"),
        (["--key", "ada"], json!("ada"), "text"),
    ] {
        let found = json(&get(&[&args[..], &["--json"]].concat()));
        assert_eq!((&found["key"], &found["value"]["name"]), (&key, &json!(name)), "{found}");
    }
    std::fs::write(dir.join("hex"), "00ffa1\r\n\nFBFF\nffff").unwrap();
    let many = get(&["--keys-from", "hex", "--keys-form", "hex"]);
    assert_eq!(code(&many), 1, "{}", stderr(&many));
    for said in ["bytes", "more", "{\"base64\":\"//8=\"}: not there"] {
        assert!(stdout(&many).contains(said), "{}", stdout(&many));
    }
    std::fs::write(dir.join("wrong"), "00\n0g\n").unwrap();
    for (args, words) in [
        (&["--key-hex", "abc"][..], &["--key-hex", "cut short"][..]),
        (&["--key-hex", ""], &["--key-hex", "0 B"]),
        (&["--key-base64", "A*=="], &["--key-base64", "character 2"]),
    ] {
        refused(&get(args), words);
    }
    let wrong = stderr(&get(&["--keys-from", "wrong", "--keys-form", "hex"]));
    assert!(wrong.contains("line 2 is not a key: character 2"), "{wrong}");
    let unknown = get(&["--keys-from", "hex", "--keys-form", "hexa"]);
    assert!(code(&unknown) == 2 && stderr(&unknown).contains("text, hex or base64"), "{}", stderr(&unknown));
}

#[test]
fn a_table_that_was_built_without_a_key_says_so() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("people.csv"), "name,city\nada,london\n").unwrap();
    let built = run(dir.path(), &["db", "build", "people.csv", "--out", "people.db"]);
    assert_eq!(code(&built), 0, "{}", stderr(&built));
    let said = stderr(&built);
    assert!(
        said.contains("no key was named") && said.contains("--index") && said.contains("name, city"),
        "{said}"
    );
}

/// Of updates it would be data, and remove nothing.
#[test]
fn a_column_that_updates_have_too_is_named_when_a_table_takes_it() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let note = "note: _change is a column of the table itself, so updates can't remove rows by it";
    for (name, header, noted) in [("a", "id,_change", true), ("b", "id,change", false)] {
        std::fs::write(dir.join("t.csv"), format!("{header}\n1,\n2,remove\n")).unwrap();
        let built = run(dir, &["db", "build", "t.csv", "--key", "id", "--out", name]);
        assert!(code(&built) == 0 && stderr(&built).contains(note) == noted, "{}", stderr(&built));
    }
}

#[test]
fn the_note_on_a_large_hint_names_what_it_grows_with() {
    let dir = tempfile::tempdir().unwrap();
    for (bytes, noted) in [(17_000, true), (1_700, false)] {
        let text = "x".repeat(bytes);
        std::fs::write(dir.path().join("t.csv"), format!("text\n{text}\n{text}\n{text}\n")).unwrap();
        let built =
            run(dir.path(), &["db", "build", "t.csv", "--scheme", "simple", "--out", &format!("{bytes}.db")]);
        assert_eq!(code(&built), 0, "{}", stderr(&built));
        let said = stderr(&built);
        assert_eq!(said.contains("note: clients fetch a hint of"), noted, "{said}");
        assert!(
            !noted
                || said.contains("it grows with the length of a slot")
                    && said.contains("not with the 3 rows")
        );
    }
}
