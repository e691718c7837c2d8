//! Thousands of lookups in a real table, over a real server, all equal to what SQL says.

use std::process::Command;

use crate::common::{Serving, code, json, long, run, stderr};
use rusqlite::types::ValueRef;
use serde_json::{Map, Value};

#[test]
fn lookups_equal_sql() {
    let lookups = if long() { 10_000 } else { 2000 };
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("unicode.sqlite");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/unicode_table.py");
    match Command::new("python3").arg(script).arg(&source).output() {
        Err(e) => return eprintln!("skipped: python3, which makes the table, can't be run: {e}"),
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
    }
    let spec = format!("sqlite:{}?table=characters", source.display());
    let built = run(dir.path(), &["db", "build", &spec, "--key", "code", "--out", "characters.db", "--json"]);
    let built = json(&built);
    assert!(built["rows"].as_u64().unwrap() >= 50_000, "{built}");
    let bound = built["records"]["failure_log2"].as_f64().unwrap();
    assert!(bound <= -40.0, "a lookup may fail once in 2^{bound}");

    // Every row in an order of its own, some rows twice, some keys that are not there.
    let db = rusqlite::Connection::open(&source).unwrap();
    let mut keys: Vec<String> = db
        .prepare("SELECT code FROM characters ORDER BY abs(random())")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .take(lookups - 200)
        .collect::<Result<_, _>>()
        .unwrap();
    keys.extend(keys[..100].to_vec());
    keys.extend((0..100).map(|i| format!("U+{:X}", 0x20_0000 + i)));
    assert_eq!(keys.len(), lookups);
    std::fs::write(dir.path().join("keys"), keys.join("\n")).unwrap();

    let server = Serving::start(dir.path(), &["characters.db"]);
    let output = server.get(dir.path(), &["--table", "characters", "--keys-from", "keys", "--json"]);
    assert_eq!(code(&output), 1, "a hundred are not there: {}", stderr(&output));
    let results = json(&output)["results"].take();
    let results = results.as_array().unwrap();
    assert_eq!(results.len(), lookups);
    let mut row = db.prepare("SELECT * FROM characters WHERE code = ?").unwrap();
    let columns: Vec<String> = row.column_names().map(str::to_owned).collect();
    let mut found = 0;
    for (key, result) in keys.iter().zip(results) {
        assert_eq!(result["key"], **key);
        let mut rows = row.query([key]).unwrap();
        let want = rows.next().unwrap().map(|row| {
            let value = |i: usize| match row.get_ref(i).unwrap() {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(n) => n.into(),
                ValueRef::Real(x) => x.into(),
                ValueRef::Text(t) => String::from_utf8(t.to_vec()).unwrap().into(),
                ValueRef::Blob(b) => blindcore_wire::Value::Blob(b.to_vec()).to_json(),
            };
            let record = columns.iter().enumerate().filter(|(_, c)| *c != "code");
            Value::Object(record.map(|(i, c)| (c.clone(), value(i))).collect::<Map<_, _>>())
        });
        assert_eq!(result["found"], want.is_some(), "{key}");
        assert_eq!(result["value"], want.unwrap_or_default(), "{key}");
        found += usize::from(result["found"] == true);
    }
    assert_eq!(found, lookups - 100);
}
