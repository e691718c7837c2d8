//! Every scheme that tables may be built with, from `db build` to an answer: over real sockets, with small tables.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::{Serving, code, json, long, run, run_with_input, stderr};
use serde_json::Value;

const ROWS: usize = 1000;
const ABSENT: usize = 20;
/// Of the table's keys, one in four is looked up where time is short.
const ONE_IN: usize = 4;

/// What the source says: changed by the test as the table is.
type Table = BTreeMap<String, String>;

/// Looks keys of the table up, and some that are not in it, with one command.
fn keys_are_as_the_table_says(server: &Serving, dir: &Path, table: &Table) {
    let absent = (0..ABSENT).map(|i| format!("nobody {i}"));
    let step = if long() { 1 } else { ONE_IN };
    let keys: Vec<String> = table.keys().step_by(step).cloned().chain(absent).collect();
    std::fs::write(dir.join("keys"), keys.join("\n")).unwrap();
    let output = server.get(dir, &["--table", "t", "--keys-from", "keys", "--json"]);
    assert_eq!(code(&output), 1, "some are not there: {}", stderr(&output));
    same(&json(&output)["results"], &keys, table);
}

fn same(results: &Value, keys: &[String], table: &Table) {
    let results = results.as_array().unwrap();
    assert_eq!(results.len(), keys.len());
    for (key, result) in keys.iter().zip(results) {
        assert_eq!(result["key"], **key);
        assert_eq!(result["found"], table.contains_key(key), "{key}");
        let want = table.get(key).map_or(Value::Null, |value| Value::from(&**value));
        assert_eq!(result["value"]["value"], want, "{key}");
    }
}

fn update(dir: &Path, rows: &str) {
    std::fs::write(dir.join("changes.jsonl"), rows).unwrap();
    let output = run(dir, &["db", "update", "t.db", "--from", "changes.jsonl", "--json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}

/// A table's whole life under a scheme.
fn lives(scheme: &str) {
    // A hint of `double` is 16 MiB for each byte of a record.
    let longest = if scheme == "double" && !long() { 2 } else { 30 };
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut table: Table =
        (0..ROWS).map(|i| (format!("name {i}"), format!("{i:x}{}", "y".repeat(i % longest)))).collect();
    let rows: String = table.iter().map(|(key, value)| format!("{key},{value}\n")).collect();
    std::fs::write(dir.join("t.csv"), format!("key,value\n{rows}")).unwrap();
    let built = run(
        dir,
        &[
            "db", "build", "t.csv", "--key", "key", "--scheme", scheme, "--out", "t.db", "--name", "t",
            "--json",
        ],
    );
    assert_eq!(json(&built)["records"]["scheme"], scheme, "{}", stderr(&built));
    let bound = json(&built)["records"]["failure_log2"].as_f64().unwrap_or(f64::NEG_INFINITY);
    assert!(bound <= -40.0, "a lookup may fail once in 2^{bound}");

    let server = Serving::start(dir, &["t.db"]);
    keys_are_as_the_table_says(&server, dir, &table);

    // An epoch that changes a row, adds one and removes one, while it is served.
    table.insert("name 7".into(), "new 7".into());
    table.insert("new".into(), "added".into());
    table.remove("name 8");
    update(
        dir,
        "{\"key\":\"name 7\",\"value\":\"new 7\"}\n{\"key\":\"new\",\"value\":\"added\"}\n{\"key\":\"name 8\",\"_change\":\"remove\"}\n",
    );
    server.line("a new epoch");
    let some: Vec<String> = ["name 7", "new", "name 8", "name 9"].map(Into::into).to_vec();
    let ask = |url: &str, keys: &[String]| {
        let arguments = ["get", "--server", url, "--table", "t", "--keys-from", "-", "--json"];
        let output = run_with_input(dir, &arguments, keys.join("\n").as_bytes());
        same(&json(&output)["results"], keys, &table);
    };
    ask(&server.url, &some);

    // The same after a restart; then eight clients at a time, each a process of its own.
    drop(server);
    let server = Serving::start(dir, &["t.db"]);
    ask(&server.url, &some);
    std::thread::scope(|scope| {
        for client in 0..8 {
            let (url, ask) = (&*server.url, &ask);
            scope.spawn(move || {
                let keys: Vec<String> = (0..4).map(|i| format!("name {}", 100 * client + 13 * i)).collect();
                ask(url, &keys);
            });
        }
    });
}

/// A test for each scheme that this build offers; another says when one is missing here.
macro_rules! schemes {
    ($($test:ident: $name:literal,)*) => {
        $(#[test]
        fn $test() {
            lives($name);
        })*

        #[test]
        fn every_scheme_is_tested() {
            let names = [$($name),*];
            assert_eq!(blindcore_lookup::schemes::offered_names(), names.join(", "));
        }
    };
}

schemes! {
    simple: "simple",
    double: "double",
    hintless: "hintless",
    hintless_quantum: "hintless-q128",
    onionpir2: "onionpir2",
    sealpir: "sealpir",
    fastpir: "fastpir",
    mulpir: "mulpir",
    onionpir: "onionpir",
}
