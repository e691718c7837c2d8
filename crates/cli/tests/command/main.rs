//! The command as a user meets it: real processes, real files, real sockets.

#![allow(clippy::print_stderr, reason = "a test that is skipped says why")]

mod circuit;
mod circuit_run;
mod common;
mod epochs;
mod explore;
mod hardware;
mod hw_circuit;
mod hw_sum;
mod keys;
mod outages;
mod places;
mod plan;
mod proofs;
mod real_table;
mod repro;
mod said;
mod schemes;
mod secured;
mod sum;
#[cfg(target_os = "linux")]
mod sum_bodies;
mod sum_cents;
mod sum_exact;
mod sum_serve;
mod survives;

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use common::{Serving, blindcore, code, json, own_host, refused, run, run_with_input, stderr, stdout};

fn phone_book(dir: &Path, rows: usize) {
    let rows: String =
        (0..rows).map(|i| format!("name {i},{},{}\n", 5_550_000 + i, "x".repeat(i % 40))).collect();
    std::fs::write(dir.join("book.csv"), format!("name,phone,note\n{rows}")).unwrap();
}

fn built(rows: usize) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    phone_book(dir.path(), rows);
    let output = run(dir.path(), &["db", "build", "book.csv", "--key", "name", "--out", "book.db"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    dir
}

/// A table that hides nothing is for tests of our own: nothing that a user starts takes one.
#[test]
fn a_table_without_secrecy_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.csv"), "v\n1\n2\n").unwrap();
    let scheme = blindcore_lookup::InsecurePlain::for_tests().scheme();
    let source = blindcore_store::SourceSpec::parse(dir.path().join("t.csv").to_str().unwrap()).unwrap();
    let options = blindcore_store::BuildOptions {
        scheme: blindcore_lookup::SchemeChoice::Only(scheme),
        ..blindcore_store::BuildOptions::new(source, dir.path().join("t.db"))
    };
    let device = blindcore_accel_cpu::Cpu::with_threads("cpu", 1).unwrap();
    blindcore_store::build(&options, &device, &mut ()).unwrap();
    for command in [&["db", "inspect", "t.db"][..], &["db", "verify", "t.db"], &["serve", "t.db"]] {
        refused(
            &run(dir.path(), command),
            &["table \"t\"", "`plain` is not known", "which knows simple, double"],
        );
    }
    let built = run(dir.path(), &["db", "build", "t.csv", "--scheme", "plain", "--out", "u.db"]);
    refused(&built, &["--scheme \"plain\" is not offered", "auto, known, or one of simple, double"]);
}

#[test]
fn build_inspect_verify() {
    let dir = built(1000);
    let inspected = json(&run(dir.path(), &["db", "inspect", "book.db", "--json"]));
    assert_eq!(inspected["rows"], 1000);
    assert_eq!(inspected["key"], "name");
    assert_eq!(inspected["epoch"], 1);
    assert!(inspected["records"]["failure_log2"].as_f64().unwrap() <= -40.0);
    assert!(stdout(&run(dir.path(), &["db", "inspect", "book.db"])).contains("128.4 bits"));
    assert_eq!(json(&run(dir.path(), &["db", "verify", "book.db", "--json"]))["ok"], true);

    let shard = dir.path().join("book.db/records-0000.shard");
    let mut bytes = std::fs::read(&shard).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&shard, &bytes).unwrap();
    refused(&run(dir.path(), &["db", "verify", "book.db"]), &["records-0000.shard", "checksum"]);
    std::fs::write(&shard, &bytes[..last]).unwrap();
    refused(&run(dir.path(), &["db", "inspect", "book.db"]), &["records-0000.shard", "bytes"]);
    refused(&run(dir.path(), &["serve", "book.db"]), &["records-0000.shard", "bytes"]);
}

#[test]
fn json_lines_on_standard_input() {
    let dir = tempfile::tempdir().unwrap();
    let rows = b"{\"id\":1,\"v\":[1,2]}\n{\"id\":2,\"v\":true}\n";
    let build = ["db", "build", "-", "--key", "id", "--name", "t", "--out", "t.db", "--json"];
    let made = json(&run_with_input(dir.path(), &build, rows));
    assert_eq!(made["rows"], 2);
    let server = Serving::start(dir.path(), &["t.db"]);
    let got = json(&server.get(dir.path(), &["--table", "t", "--key", "1", "--json"]));
    assert_eq!(got["value"], serde_json::json!({"v": [1, 2]}));
    refused(
        &run_with_input(dir.path(), &["db", "build", "-", "--key", "id", "--out", "u.db"], rows),
        &["--name"],
    );
    refused(
        &run_with_input(
            dir.path(),
            &["db", "build", "-", "--key", "id", "--name", "t", "--out", "u.db"],
            b"{\"id\":1}\nnope\n",
        ),
        &["line 2"],
    );
    assert!(!dir.path().join("u.db").exists());
}

#[test]
fn databases_are_streamed_from_their_disk() {
    let dir = built(20_000);
    let phone = |server: &Serving, i: usize| {
        let found = server.get(dir.path(), &["--table", "book", "--key", &format!("name {i}"), "--json"]);
        (code(&found), json(&found)["value"]["phone"].as_str() == Some(&*(5_550_000 + i).to_string()))
    };
    // Asked for by name, and because there is no memory for it.
    for flags in [&["--streamed"][..], &["--memory", "7MiB"]] {
        let server = Serving::start(dir.path(), &[flags, &["book.db"]].concat());
        assert_eq!(phone(&server, 77), (0, true));
        assert_eq!(phone(&server, 19_999), (0, true));
        let by_index = server.get(dir.path(), &["--table", "book", "--index", "77", "--json"]);
        assert_eq!(json(&by_index)["key"], "name 77");
        let lines: Vec<_> = server.started.iter().filter(|l| l.contains("streamed")).collect();
        assert!(lines.len() == 2 && lines.iter().all(|l| l.contains("reader=")), "{:?}", server.started);
        let why =
            if flags.len() == 1 { "streamed: it was asked for" } else { "of 7.00 MiB that --memory allows" };
        assert!(lines[0].contains(why), "{lines:?}");
    }

    // A disk that fails fails the lookups of that pass, by name in the log; the server lives on.
    let server = Serving::start(dir.path(), &["--streamed", "book.db"]);
    let shard = dir.path().join("book.db/records-0000.shard");
    let whole = std::fs::read(&shard).unwrap();
    let file = std::fs::File::options().write(true).open(&shard).unwrap();
    file.set_len(whole.len() as u64 / 2).unwrap();
    let failed = server.get(dir.path(), &["--table", "book", "--key", "name 77"]);
    refused(&failed, &["the server failed to compute this answer"]);
    (&file).write_all(&whole).unwrap();
    assert_eq!(phone(&server, 77), (0, true));
    #[cfg(unix)]
    {
        let (status, log) = server.terminate();
        assert_eq!(status, 0, "{log}");
        assert!(log.contains("records-0000.shard can't be read at byte"), "{log}");
        assert!(log.contains("the file ends there"), "{log}");
    }

    refused(&run(dir.path(), &["serve", "book.db", "--memory", "8 gigs"]), &["--memory", "8GiB"]);
    // The log has lines before it.
    let small = run(dir.path(), &["serve", "book.db", "--memory", "64KiB"]);
    assert!(code(&small) == 2 && stderr(&small).contains("memory for requests"), "{}", stderr(&small));
}

#[test]
fn a_file_of_a_folder_is_got_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::create_dir(dir.join("files")).unwrap();
    let noise: Vec<u8> = (0..100_000u64).map(|i| ((i * i) >> 7) as u8).collect();
    std::fs::write(dir.join("files/noise"), &noise).unwrap();
    std::fs::write(dir.join("files/empty"), "").unwrap();
    assert_eq!(code(&run(dir, &["db", "build", "dir:files", "--key", "name", "--out", "f.db"])), 0);
    let server = Serving::start(dir, &["f.db"]);
    let get =
        |key: &str, out: &str| server.get(dir, &["--table", "files", "--key", key, "--force", "--out", out]);
    std::fs::write(dir.join("got"), "what was there").unwrap();
    assert_eq!(code(&get("gone", "got")), 1);
    let unforced = server.get(dir, &["--table", "files", "--key", "noise", "--out", "got"]);
    refused(&unforced, &["got is there already", "--force"]);
    assert_eq!(std::fs::read(dir.join("got")).unwrap(), b"what was there");
    for (key, want) in [("noise", &noise[..]), ("empty", b"")] {
        assert_eq!(code(&get(key, "got")), 0);
        assert!(std::fs::read(dir.join("got")).unwrap() == want, "{key}");
        assert!(get(key, "-").stdout == want, "{key}");
    }
    refused(&get("noise", "no/such/folder"), &["no/such/folder"]);
}

#[test]
fn lookups_by_key_and_index_with_exit_codes() {
    let dir = built(2000);
    let server = Serving::start(dir.path(), &["book.db"]);
    let found = server.get(dir.path(), &["--table", "book", "--key", "name 77", "--json"]);
    assert_eq!(code(&found), 0, "{}", stderr(&found));
    let found = json(&found);
    assert_eq!(found["found"], true);
    assert_eq!(found["key"], "name 77");
    assert_eq!(found["value"], serde_json::json!({"phone": "5550077", "note": "x".repeat(37)}));
    assert!(found["bytes"]["up"].as_u64().unwrap() > 0 && found["ms"]["server"].as_f64().unwrap() > 0.0);

    let absent = server.get(dir.path(), &["--table", "book", "--key", "name 2000", "--json"]);
    assert_eq!(code(&absent), 1);
    let absent = json(&absent);
    assert_eq!((&absent["found"], &absent["value"]), (&serde_json::json!(false), &serde_json::Value::Null));
    // The hint came with the first lookup and was kept.
    assert!(found["bytes"]["hint"].as_u64().unwrap() > 0);
    assert_eq!(absent["bytes"]["hint"], 0);
    // A key that is not there costs what one costs that is, to the byte.
    for way in ["up", "down"] {
        assert_eq!(found["bytes"][way], absent["bytes"][way]);
    }

    let by_index = json(&server.get(dir.path(), &["--table", "book", "--index", "0x4d", "--json"]));
    assert_eq!(
        (&by_index["key"], &by_index["index"]),
        (&serde_json::json!("name 77"), &serde_json::json!(77))
    );
    assert_eq!(by_index["value"], found["value"]);
    let patient = ["--table", "book", "--key", "name 77", "--timeout", "3600"];
    assert_eq!(code(&server.get(dir.path(), &patient)), 0);
    for seconds in ["0", "86401", "soon", "-1", "1.5"] {
        let other = server.get(dir.path(), &[&patient[..5], &[seconds]].concat());
        let said = stderr(&other);
        assert!(code(&other) == 2 && said.contains("--timeout") && said.contains("86400"), "{said}");
    }
    std::fs::write(dir.path().join("blindcore.toml"), "timeout = 0").unwrap();
    refused(
        &server.get(dir.path(), &[&patient[..4], &["--config", "blindcore.toml"]].concat()),
        &["timeout of the settings file is 0 s, outside 1 to 86400"],
    );
    std::fs::remove_file(dir.path().join("blindcore.toml")).unwrap();
    let two = server.get(dir.path(), &["--table", "book", "--key", "name 77", "--out", "value"]);
    refused(&two, &["--out takes a record of one column", "phone, note"]);
    assert!(!dir.path().join("value").exists());
    let past = server.get(dir.path(), &["--table", "book", "--index", "2000", "--json"]);
    assert_eq!((code(&past), &json(&past)["found"]), (1, &serde_json::json!(false)));
    assert!(stderr(&past).contains("2000 rows"), "{}", stderr(&past));
    refused(&server.get(dir.path(), &["--table", "no book", "--key", "k"]), &["no book", "blindcore tables"]);
    refused(&server.get(dir.path(), &["--table", "book", "--key", ""]), &["--key", "4096"]);
    refused(&server.get(dir.path(), &["--table", "nobook", "--key", "k"]), &["nobook"]);

    std::fs::write(dir.path().join("keys"), "\u{feff}name 1\r\n\nname 1\nnobody\nname 1999").unwrap();
    let many = server.get(dir.path(), &["--table", "book", "--keys-from", "keys", "--json"]);
    assert_eq!(code(&many), 1);
    let many = json(&many);
    assert_eq!((&many["found"], &many["of"]), (&serde_json::json!(3), &serde_json::json!(4)));
    let founds: Vec<bool> =
        many["results"].as_array().unwrap().iter().map(|r| r["found"].as_bool().unwrap()).collect();
    assert_eq!(founds, [true, true, false, true]);

    // A line that is no key has an error of its own, and a run that is done has nothing left.
    std::fs::write(dir.path().join("some"), b"name 1\n\xff\nname 2\n").unwrap();
    let ask = ["--table", "book", "--keys-from", "some", "--json", "--resume", "state"];
    let some = server.get(dir.path(), &ask);
    assert_eq!(code(&some), 3, "{}", stderr(&some));
    let some: serde_json::Value = serde_json::from_slice(&some.stdout).unwrap();
    assert_eq!((&some["results"][1]["line"], &some["found"]), (&serde_json::json!(2), &serde_json::json!(2)));
    let again = server.get(dir.path(), &ask);
    assert_eq!(code(&again), 3);
    let again: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again["of"], 0, "{again}");
    // What is not there goes beside the data.
    let missing = server.get(dir.path(), &["--table", "book", "--key", "nobody", "--out", "-"]);
    assert_eq!((code(&missing), stdout(&missing).as_str()), (1, ""));
    assert!(stderr(&missing).contains("nobody: not there"), "{}", stderr(&missing));

    let text = stdout(&server.get(dir.path(), &["--table", "book", "--key", "name 77"]));
    assert!(text.contains("phone") && text.contains("5550077"), "{text}");
    assert!(stdout(&run(dir.path(), &["tables", "--server", &server.url])).contains("book  2000 rows"));
}

/// A table that is rebuilt is another, whatever its shape: a client that knew the old one must hear so, and
/// not that its keys are gone.
#[test]
#[cfg(unix)]
fn a_table_built_anew_is_another() {
    let dir = built(50);
    let old = json(&run(dir.path(), &["db", "inspect", "book.db", "--json"]));
    let force = ["db", "build", "book.csv", "--key", "name", "--out", "book.db", "--force"];
    assert_eq!(code(&run(dir.path(), &force)), 0);
    let new = json(&run(dir.path(), &["db", "inspect", "book.db", "--json"]));
    assert_eq!((old["epoch"].as_u64(), new["epoch"].as_u64()), (Some(1), Some(2)));

    // Even at the same epoch: the client opens one server's table and then asks another build of it.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let copy = dir.path().join("again");
    std::fs::create_dir(&copy).unwrap();
    phone_book(&copy, 50);
    let build = ["db", "build", "book.csv", "--key", "name", "--out", "book.db"];
    for folder in [dir.path(), &copy] {
        let _ = std::fs::remove_dir_all(folder.join("book.db"));
        assert_eq!(code(&run(folder, &build)), 0);
    }
    // At a shared address somebody's connection could take the port between the servers.
    let host = own_host(2);
    let first = Serving::start_at(dir.path(), &["book.db"], &format!("{host}:0"));
    let port = first.url.rsplit(':').next().unwrap().to_owned();
    let options = blindcore_client::Options { cache: blindcore_client::CacheDir::None, ..Default::default() };
    let client = runtime.block_on(blindcore_client::Client::connect_with(&first.url, options)).unwrap();
    let table = runtime.block_on(client.table("book")).unwrap();
    assert!(runtime.block_on(table.get("name 7")).unwrap().found.is_some());
    assert_eq!(first.terminate().0, 0);
    let _second = Serving::start_at(&copy, &["book.db"], &format!("{host}:{port}"));
    let error = runtime.block_on(table.get("name 7")).unwrap_err();
    assert!(
        matches!(
            &error,
            blindcore_client::Error::Lookup(blindcore_client::LookupError::StaleEpoch { epoch: 1, .. })
        ),
        "{error}"
    );
    assert!(error.to_string().contains("open the table again"), "{error}");
}

#[test]
#[cfg(unix)]
fn a_server_drains_and_its_log_holds_no_key() {
    let dir = built(300);
    phone_book(dir.path(), 200);
    let other = ["db", "build", "book.csv", "--value", "phone", "--name", "other", "--out", "other.db"];
    assert_eq!(code(&run(dir.path(), &other)), 0);
    let server = Serving::start(dir.path(), &["book.db", "other.db"]);
    assert_eq!(code(&server.get(dir.path(), &["--table", "book", "--key", "name 123"])), 0);
    assert_eq!(code(&server.get(dir.path(), &["--table", "other", "--index", "7"])), 0);
    refused(&server.get(dir.path(), &["--table", "other", "--key", "name 7"]), &["other"]);
    let (code, log) = server.terminate();
    assert_eq!(code, 0, "{log}");
    assert!(log.contains("drained") && log.contains("queries=1"), "{log}");
    let said = |number: &str| log.split(|c: char| !c.is_ascii_digit()).any(|digits| digits == number);
    assert!(!log.contains("name 123") && !said("5550123"), "{log}");
}

#[test]
#[cfg(unix)]
fn an_interrupted_or_killed_build_leaves_no_database() {
    use std::io::{BufRead, BufReader, Write};
    let dir = tempfile::tempdir().unwrap();
    for (signal, swept) in [("-INT", true), ("-TERM", true), ("-KILL", false)] {
        let mut child = blindcore(dir.path())
            .args(["db", "build", "-", "--key", "id", "--name", "t", "--out", "t.db"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        for id in 0..5000 {
            writeln!(stdin, "{{\"id\":{id}}}").unwrap();
        }
        stdin.flush().unwrap();
        // The build waits for more rows; its folder is there.
        let working = || std::fs::read_dir(dir.path()).unwrap().count();
        while working() == 0 {
            std::thread::yield_now();
        }
        common::signal(&child, signal);
        if swept {
            // It notices between rows.
            let mut said = String::new();
            BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
            assert!(said.contains("stopping"), "{said}");
            for id in 5000..50_000 {
                if writeln!(stdin, "{{\"id\":{id}}}").is_err() {
                    break;
                }
            }
        }
        drop(stdin);
        assert!(!child.wait().unwrap().success());
        assert!(!dir.path().join("t.db").exists());
        assert_eq!(working(), usize::from(!swept), "after {signal}");
    }
    // What the killed one left is swept by the next.
    let input = b"{\"id\":1}\n";
    let build = ["db", "build", "-", "--key", "id", "--name", "t", "--out", "t.db"];
    assert_eq!(code(&run_with_input(dir.path(), &build, input)), 0);
    let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["t.db"]);
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let dir = built(10);
    let refuse = |args: &[&str], words: &[&str]| refused(&run(dir.path(), args), words);
    refuse(&["db", "build", "nowhere.csv", "--key", "k", "--out", "x"], &["nowhere.csv"]);
    refuse(&["db", "build", "book.xlsx", "--key", "k", "--out", "x"], &["book.xlsx", ".csv"]);
    refuse(&["db", "build", "book.parquet", "--key", "k", "--out", "x"], &["book.parquet", "check the path"]);
    refuse(&["db", "build", "book.csv", "--key", "nokey", "--out", "x"], &["nokey", "name, phone, note"]);
    refuse(&["db", "build", "book.csv", "--key", "name", "--out", "book.db"], &["book.db", "--force"]);
    refuse(
        &["db", "build", "book.csv", "--key", "name", "--out", "x", "--scheme", "triple"],
        &["triple", "simple"],
    );
    refuse(&["db", "build", "book.csv", "--key", "name", "--out", "x", "--name", "a b"], &["a b"]);
    refuse(
        &["db", "build", "book.csv", "--key", "name", "--out", "x", "--device", "gpu"],
        &["gpu", "cpu:portable"],
    );
    refuse(
        &["db", "build", "book.csv", "--key", "name", "--out", "x", "--threads", "0"],
        &["--threads", "0"],
    );
    refuse(&["db", "inspect", "."], &["manifest.json", "db build"]);
    refuse(&["serve", "book.db", "--listen", "nonsense"], &["nonsense", "127.0.0.1:7700"]);
    refuse(&["serve", "book.db", "--gather", "0", "--listen", "127.0.0.1:0"], &["0"]);
    refuse(&["serve", "book.db", "book.db", "--listen", "127.0.0.1:0"], &["book"]);
    refuse(&["get", "--table", "t", "--key", "k"], &["--server"]);
    refuse(&["get", "--server", "127.0.0.1:1", "--table", "t", "--key", "k"], &["127.0.0.1:1"]);
    refuse(&["get", "--server", "http://127.0.0.1:1", "--table", "t", "--key", "k"], &["http://127.0.0.1:1"]);
    refuse(&["get", "--server", "http://127.0.0.1:1", "--table", "t", "--keys-from", "nofile"], &["nofile"]);
    refuse(&["bench", "lookup", "--gib", "1000"], &["1000", "64"]);
    std::fs::write(dir.path().join("blindcore.toml"), "devise = \"cpu\"\n").unwrap();
    refuse(&["bench", "lookup"], &["blindcore.toml", "line 1", "devise"]);
    // clap's own refusals end with 2 as well.
    for args in [&["get"][..], &["nonsense"], &["get", "--index", "-1"], &[]] {
        assert_eq!(code(&run(dir.path(), args)), 2, "{args:?}");
    }
}

#[test]
fn settings_come_below_environment_and_flags() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("blindcore.toml"), "device = \"cpu:portable\"\nthreads = 1\n").unwrap();
    let chosen = json(&run(dir.path(), &["doctor", "--json"]))["chosen"].clone();
    assert_eq!(
        (&chosen["name"], &chosen["threads"]),
        (&serde_json::json!("cpu:portable"), &serde_json::json!(1))
    );
    std::fs::write(dir.path().join("t.csv"), "k,v\n1,2\n").unwrap();
    let build = |env: Option<&str>, flag: &[&str], out: &str| {
        let mut command = blindcore(dir.path());
        if let Some(env) = env {
            command.env("BLINDCORE_DEVICE", env);
        }
        let args = [&["db", "build", "t.csv", "--key", "k", "--json", "--out", out], flag].concat();
        json(&command.args(args).output().unwrap())["device"].clone()
    };
    assert_eq!(build(None, &[], "a"), "cpu:portable");
    let auto = build(Some("auto"), &[], "b");
    assert_eq!(auto, build(Some("cpu:portable"), &["--device", "auto"], "c"));
}

#[test]
fn doctor_and_bench_print_what_programs_read() {
    let dir = tempfile::tempdir().unwrap();
    let doctor = json(&run(dir.path(), &["doctor", "--json"]));
    assert!(
        doctor["devices"]
            .as_array()
            .unwrap()
            .iter()
            .any(|d| d["name"] == "cpu:portable" && d["available"] == true)
    );
    assert!(stdout(&run(dir.path(), &["doctor"])).contains("would use"));
    let bench = json(&run(dir.path(), &["bench", "lookup", "--json", "--gib", "0.016", "--repeat", "1"]));
    let ids: Vec<&str> =
        bench["rows"].as_array().unwrap().iter().map(|r| r["id"].as_str().unwrap()).collect();
    for id in [
        "lookup.read.1t",
        "lookup.read.2t",
        "lookup.answer.1q.1t",
        "lookup.answer.1q.2t",
        "lookup.answer.16q.1t",
        "lookup.hint.1t",
        "lookup.client",
    ] {
        assert!(ids.contains(&id), "{ids:?}");
    }
    for row in bench["rows"].as_array().unwrap() {
        assert!(row["value"].as_f64().unwrap() > 0.0 && row["ratio"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["min"].as_f64().unwrap() <= row["max"].as_f64().unwrap());
    }
}
