//! Databases that change while a real server serves them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::park_timeout;
use std::time::{Duration, Instant};

use crate::common::{Serving, blindcore, code, json, refused, run, run_with_input, stderr, stdout};

fn build(dir: &Path, rows: usize, more: &[&str]) {
    let csv: String = (0..rows).map(|i| format!("key {i},0\n")).collect();
    std::fs::write(dir.join("t.csv"), format!("k,v\n{csv}")).unwrap();
    let output = run(dir, &[&["db", "build", "t.csv", "--key", "k", "--out", "t.db"], more].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}

fn update(dir: &Path, rows: &str) -> serde_json::Value {
    let args = ["db", "update", "t.db", "--from", "-", "--json"];
    json(&run_with_input(dir, &args, rows.as_bytes()))
}

fn value(server: &str, dir: &Path, key: &str) -> serde_json::Value {
    json(&run(dir, &["get", "--server", server, "--table", "t", "--key", key, "--json"]))["value"]["v"]
        .clone()
}

/// Asks until it is so: an epoch is noticed within about a second.
pub(crate) fn soon(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never is");
        park_timeout(Duration::from_millis(100));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_standard_output_and_a_path_that_is_no_text_are_named() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("t.csv"), "k,v\na,1\n").unwrap();
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output =
        blindcore(dir).args(["db", "build", "t.csv", "--out", "t.db"]).stdout(full()).output().unwrap();
    let words = "blindcore: t.db is made, and can be served: standard output can't be written: ";
    assert!(code(&output) == 2 && stderr(&output).contains(words), "{}", stderr(&output));
    // An update is there for all to see, whatever becomes of what it prints: who runs it again should know.
    std::fs::write(dir.join("u.csv"), "k,v\nb,2\n").unwrap();
    let update = ["db", "update", "t.db", "--from", "u.csv"];
    let output = blindcore(dir).args(update).stdout(full()).output().unwrap();
    let words = "blindcore: epoch 2 is published: standard output can't be written: ";
    assert!(code(&output) == 2 && stderr(&output).contains(words), "{}", stderr(&output));
    // So are other things that are made.
    for (args, words) in [
        (&["db", "key", "k.pem"][..], "k.pem is made: "),
        (&["db", "build", "t.csv", "--sign", "k.pem", "--out", "s.db"], "s.db is made, and can be served: "),
        (&["db", "sign", "s.db", "k.pem"], "table t, epoch 1, is signed: "),
        (&["token", "zed", "--out", "z"], "z is made, and its line for the server is lost; make another: "),
        (&["circuit", "make", "add8", "--out", "add8.txt", "--json"], "add8.txt is made: "),
    ] {
        let output = blindcore(dir).args(args).stdout(full()).output().unwrap();
        let words = format!("blindcore: {words}standard output can't be written: ");
        assert!(code(&output) == 2 && stderr(&output).contains(&words), "{}", stderr(&output));
    }
    for args in [&["--help"][..], &["--version"], &["db", "build", "--help"]] {
        let output = blindcore(dir).args(args).stdout(full()).output().unwrap();
        let words = "blindcore: standard output can't be written: ";
        assert!(code(&output) == 2 && stderr(&output).starts_with(words), "{}", stderr(&output));
    }
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = blindcore(dir).args(["db", "inspect", "t.db"]).stdout(writer).output().unwrap();
    assert!(
        code(&output) == 2 && stderr(&output).contains("standard output can't be written"),
        "{}",
        stderr(&output)
    );
    // Closed by who starts it: Rust's start has opened /dev/null in its place by then.
    for args in [&["db", "inspect", "t.db"][..], &["db", "inspect", "t.db", "--json"], &["--help"]] {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" >&-", env!("CARGO_BIN_EXE_blindcore")]).args(args);
        let output = shell.current_dir(dir).output().unwrap();
        let words = "blindcore: standard output can't be written: it is closed\n";
        assert!(code(&output) == 2 && stderr(&output).ends_with(words), "{}", stderr(&output));
    }
    let null = blindcore(dir).args(["db", "inspect", "t.db"]).stdout(std::process::Stdio::null()).output();
    assert_eq!(code(&null.unwrap()), 0);
    let path = std::ffi::OsStr::from_bytes(b"x\xff.csv");
    let output = blindcore(dir).args(["db", "build", "--out", "u.db"]).arg(path).output().unwrap();
    assert!(
        code(&output) == 2 && stderr(&output).contains("it is not UTF-8; rename the file"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_server_takes_epochs_up_under_load() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    build(dir, 2000, &[]);
    let server = Serving::start(dir, &["t.db"]);
    let url = &*server.url;
    assert_eq!(value(url, dir, "key 7"), "0");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A client that asks meanwhile finds the row as some epoch had it, and never an older one than before.
        let asking = scope.spawn(|| {
            let mut values = vec![0];
            while !stop.load(Ordering::Relaxed) {
                let value: i64 = value(url, dir, "key 7").as_str().unwrap().parse().unwrap();
                assert!(value >= *values.last().unwrap(), "{value} after {values:?}");
                values.push(value);
            }
            values
        });
        for epoch in 2..6 {
            let rows =
                format!("{{\"k\":\"key 7\",\"v\":\"{epoch}\"}}\n{{\"k\":\"new {epoch}\",\"v\":\"x\"}}\n");
            let updated = update(dir, &rows);
            assert_eq!(
                (&updated["epoch"], &updated["added"], &updated["changed"]),
                (&epoch.into(), &1.into(), &1.into(),)
            );
            server.line("a new epoch");
        }
        stop.store(true, Ordering::Relaxed);
        let values = asking.join().unwrap();
        assert!(values.len() > 2, "{values:?}");
    });
    assert_eq!(value(url, dir, "key 7"), "5");
    assert_eq!(value(url, dir, "new 3"), "x");
    let by_index = json(&server.get(dir, &["--table", "t", "--index", "2001", "--json"]));
    assert_eq!(by_index["key"], "new 3");
    // The base's hint stayed in the cache: what is fetched for an epoch is the difference.
    let fetched =
        json(&server.get(dir, &["--table", "t", "--key", "key 9", "--json"]))["bytes"]["hint"].clone();
    assert_eq!(fetched, 0);
    update(dir, "{\"k\":\"key 9\",\"_change\":\"remove\"}\n");
    server.line("a new epoch");
    let gone = json(&server.get(dir, &["--table", "t", "--key", "key 9", "--json"]));
    assert_eq!(gone["found"], false);
    let inspected = json(&run(dir, &["db", "inspect", "t.db", "--json"]));
    assert_eq!(gone["bytes"]["hint"], inspected["changes"]["hint_bytes"]);
    assert_eq!((&inspected["rows"], &inspected["base_epoch"]), (&2003.into(), &1.into()));
    // Rebuilt, it is another base: the server takes that up as well.
    build(dir, 10, &["--force"]);
    server.line("a new epoch");
    soon(|| value(url, dir, "key 7") == "0");
    soon(|| value(url, dir, "key 12").is_null());
    let (status, log) = server.terminate();
    assert_eq!(status, 0, "{log}");
}

#[test]
fn a_database_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    build(dir, 20, &[]);
    let sqlite = rusqlite::Connection::open(dir.join("s.db")).unwrap();
    sqlite
        .execute_batch("CREATE TABLE t (k TEXT, v TEXT, at INT); INSERT INTO t VALUES ('key 1', 'a', 1)")
        .unwrap();
    let server = Serving::start(dir, &["t.db"]);
    let url = &*server.url;
    let mut following = blindcore(dir)
        .args([
            "db",
            "update",
            "t.db",
            "--from",
            "sqlite:s.db?table=t",
            "--follow",
            "at",
            "--every",
            "1",
            "--json",
        ])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    soon(|| value(url, dir, "key 1") == "a");
    sqlite.execute_batch("INSERT INTO t VALUES ('key 1', 'b', 2), ('late', 'c', 2)").unwrap();
    soon(|| value(url, dir, "late") == "c");
    assert_eq!(value(url, dir, "key 1"), "b");
    assert!(following.try_wait().unwrap().is_none());
    #[cfg(unix)]
    {
        crate::common::signal(&following, "-TERM");
        assert_eq!(following.wait().unwrap().code(), Some(0));
    }
    let _ = following.kill();
    let once =
        ["db", "update", "t.db", "--from", "sqlite:s.db?table=t", "--follow", "at", "--once", "--json"];
    let again = json(&run(dir, &once));
    assert_eq!((&again["published"], &again["unchanged"]), (&false.into(), &2.into()));
}

#[test]
fn bad_changes_are_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    build(dir, 20, &[]);
    std::fs::write(dir.join("c.csv"), "k,v,_change\nkey 1,x,drop\n").unwrap();
    std::fs::write(dir.join("short.csv"), "k\nkey 1\n").unwrap();
    let refuse =
        |args: &[&str], words: &[&str]| refused(&run(dir, &[&["db", "update"], args].concat()), words);
    refuse(&["t.db", "--from", "c.csv"], &["line 2 of c.csv", "\"drop\"", "set or remove"]);
    refuse(&["t.db", "--from", "short.csv"], &["short.csv: its source has no column \"v\""]);
    refuse(&["no.db", "--from", "c.csv"], &["no.db", "db build"]);
    refuse(&["t.db", "--from", "no.csv"], &["no.csv", "check the path"]);
    refuse(&["t.db", "--from", "t.csv", "--follow", "v"], &["only a database can be followed"]);
    refuse(
        &["t.db", "--from", "t.csv", "--follow", "v", "--overlap", "-1"],
        &["--overlap <SPAN>", "write 10m or 36h for times, 1000 for numbers"],
    );
    assert_eq!(json(&run(dir, &["db", "inspect", "t.db", "--json"]))["epoch"], 1);
}

/// A folder of files: listed by index, chosen by name, retrieved whole.
#[test]
fn files_of_a_folder_are_retrieved_whole() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::create_dir(dir.join("files")).unwrap();
    let long: Vec<u8> = (0..200_000u32).map(|i| (i.wrapping_mul(i) / 5) as u8).collect();
    std::fs::write(dir.join("files/long"), &long).unwrap();
    std::fs::write(dir.join("files/short"), b"hello").unwrap();
    let built = json(&run(dir, &["db", "build", "dir:files", "--out", "files.db", "--json"]));
    assert!(built["blocks"].as_u64().unwrap() > 1, "{built}");
    let server = Serving::start(dir, &["files.db"]);
    let get = |key: &str| json(&server.get(dir, &["--table", "files", "--key", key, "--json"]));
    assert_eq!(get("long")["value"]["content"], blindcore_wire::Value::Blob(long).to_json());
    let short = get("short");
    assert_eq!(short["value"]["content"], blindcore_wire::Value::Blob(b"hello".to_vec()).to_json());
    assert_eq!(get("none")["found"], false);
    // What travels doesn't show how long a file is.
    for direction in ["up", "down"] {
        assert_eq!(get("long")["bytes"][direction], short["bytes"][direction]);
        assert_eq!(get("none")["bytes"][direction], short["bytes"][direction]);
    }
    let listed = json(&server.get(dir, &["--table", "files", "--index", "1", "--json"]));
    assert_eq!(listed["key"], "short");
}

#[test]
fn rows_are_counted_alike_wherever_they_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    build(dir, 5, &[]);
    let updated = update(
        dir,
        "{\"_change\":\"remove\",\"k\":\"key 1\"}\n{\"k\":\"new\",\"v\":\"1\"}\n{\"k\":\"key 2\",\"v\":\"2\"}\n",
    );
    // One is gone, one is new, and one is another.
    assert_eq!(
        [&updated["added"], &updated["changed"], &updated["removed"]].map(|n| n.as_u64()),
        [Some(1); 3]
    );
    let server = Serving::start(dir, &["t.db"]);
    for args in [&["db", "inspect", "t.db"][..], &["tables", "--server", &server.url]] {
        let said = run(dir, args);
        assert!(stdout(&said).contains("5 rows"), "{args:?}: {}", stdout(&said));
    }
}
