//! What a database survives: kills at any moment and damaged files. `outages` has full disks and sources that go away.
//!
//! `BLINDCORE_KILLS` says how many processes are killed in all; a few by default.

use std::collections::BTreeMap;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use blindcore_store::{StoreError, Stored};

use crate::common::{Serving, blindcore, code, json, own_host, refused, run, stderr};

/// What a table holds.
pub(crate) type Rows = BTreeMap<String, String>;
/// How often each stage was hit.
type Hits = BTreeMap<&'static str, usize>;

pub(crate) const BUILD: [&str; 7] = ["db", "build", "t.csv", "--key", "k", "--out", "t.db"];
pub(crate) const UPDATE: [&str; 5] = ["db", "update", "t.db", "--from", "changes.csv"];

/// Kills in each of four parts.
fn kills() -> usize {
    let all =
        std::env::var("BLINDCORE_KILLS").map_or(12, |n| n.parse().expect("BLINDCORE_KILLS is a number"));
    (all / 4).max(1)
}

/// Moments spread evenly over the length of an undisturbed run and a little more, in no order.
fn moment(kill: usize, whole: Duration) -> Duration {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    whole.mul_f64(1.15 * (kill as f64 * GOLDEN).fract())
}

fn value(key: usize, version: usize) -> (String, String) {
    (format!("key {key}"), format!("{key:x}.{version}"))
}

pub(crate) fn table(rows: usize, version: usize) -> Rows {
    (0..rows).map(|key| value(key, version)).collect()
}

pub(crate) fn write_csv(dir: &Path, rows: &Rows) {
    let rows: String = rows.iter().map(|(k, v)| format!("{k},{v}\n")).collect();
    std::fs::write(dir.join("t.csv"), format!("k,v\n{rows}")).unwrap();
}

/// Writes changes to every fifth row, removes one in 50 and adds a few, and returns the table after them.
pub(crate) fn write_changes(dir: &Path, before: &Rows, rows: usize, version: usize) -> Rows {
    let mut after = before.clone();
    let mut lines = String::from("k,v,_change\n");
    for key in (0..rows + 5 * version).filter(|key| key % 5 == version % 5 || *key >= rows) {
        let (k, v) = value(key, version);
        if key % 50 == version % 5 {
            lines += &format!("{k},,remove\n");
            after.remove(&k);
        } else {
            lines += &format!("{k},{v},set\n");
            after.insert(k, v);
        }
    }
    std::fs::write(dir.join("changes.csv"), lines).unwrap();
    after
}

pub(crate) fn ok(output: &Output) {
    assert_eq!(code(output), 0, "{}", stderr(output));
}

/// Reads every row of these tables from the database: the row is as in `rows`, or not there.
fn holds(dir: &Path, rows: &Rows, others: &Rows) {
    let stored = Stored::open(&dir.join("t.db")).unwrap();
    assert_eq!(stored.manifest().live_rows(), rows.len() as u64);
    for key in rows.keys().chain(others.keys()) {
        let record = stored.record(key.as_bytes()).unwrap();
        let has = |v: &String| record.as_ref().is_some_and(|r| r.windows(v.len()).any(|w| w == v.as_bytes()));
        match rows.get(key) {
            Some(v) => assert!(has(v), "{key} is {record:?} and not {v}"),
            None => assert!(record.is_none(), "{key} is {record:?} and was removed"),
        }
    }
}

/// The epoch that stands in `t.db`: the one before with its rows or the one after with its rows, whole.
pub(crate) fn stands(dir: &Path, epoch: u64, before: &Rows, after: &Rows) -> u64 {
    ok(&run(dir, &["db", "verify", "t.db"]));
    let now = Stored::open(&dir.join("t.db")).unwrap().manifest().epoch;
    assert!(now == epoch || now == epoch + 1, "epoch {now} after {epoch}");
    let (rows, others) = if now == epoch { (before, after) } else { (after, before) };
    holds(dir, rows, others);
    now
}

pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Nothing lies beside the database and nothing in it but what its manifest names.
pub(crate) fn no_litter(dir: &Path) {
    assert!(!names(dir).iter().any(|n| n.starts_with('.')), "{:?}", names(dir));
    let stored = Stored::open(&dir.join("t.db")).unwrap();
    let mut known: Vec<&str> = stored.manifest().files().map(|f| f.file.as_str()).collect();
    known.push("manifest.json");
    known.sort_unstable();
    assert_eq!(names(&dir.join("t.db")), known);
}

/// How far a build or an update was, from what it left.
fn stage(dir: &Path, landed: bool) -> &'static str {
    let beside = names(dir).into_iter().find(|n| n.starts_with(".t.db.building-")).map(|n| dir.join(n));
    let inside = dir.join("t.db/.update");
    let Some(work) = beside.or(inside.exists().then_some(inside)) else {
        return if landed { "after all" } else { "before it began" };
    };
    let left = names(&work);
    let has = |ending: &str| left.iter().any(|n| n.ends_with(ending));
    match () {
        () if landed => "sweeping",
        () if has("manifest.json") => "publishing",
        () if has(".hint") => "after a hint",
        () if has(".shard") => "filling a matrix",
        () => "reading",
    }
}

fn start(dir: &Path, args: &[&str]) -> Child {
    let silent = || Stdio::null();
    blindcore(dir).args(args).stdout(silent()).stderr(silent()).spawn().expect("the binary starts")
}

#[allow(clippy::disallowed_methods, reason = "a moment to kill at is not a condition to wait for")]
fn wait(moment: Duration) {
    std::thread::sleep(moment);
}

/// SIGKILL after a while; it may have ended.
fn kill_after(mut child: Child, moment: Duration) {
    wait(moment);
    let _ = child.kill();
    child.wait().unwrap();
}

/// How long an undisturbed run takes.
fn timed(dir: &Path, args: &[&str]) -> Duration {
    let start = Instant::now();
    ok(&run(dir, args));
    start.elapsed()
}

#[test]
fn killed_builds_lose_nothing() {
    const ROWS: usize = 4000;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let tables = [table(ROWS, 0), table(ROWS + 10, 1)];
    write_csv(dir, &tables[0]);
    let whole = timed(dir, &BUILD);
    let mut hits = Hits::new();
    for i in 0..kills() {
        std::fs::remove_dir_all(dir.join("t.db")).unwrap();
        let child = start(dir, &BUILD);
        kill_after(child, moment(i, whole));
        let landed = dir.join("t.db").exists();
        if landed {
            assert_eq!(stands(dir, 0, &Rows::new(), &tables[0]), 1);
        }
        *hits.entry(stage(dir, landed)).or_default() += 1;
        ok(&run(dir, &[&BUILD[..], &["--force"]].concat()));
        no_litter(dir);
    }
    eprintln!("db build was killed {} times: {hits:?}", kills());

    let mut hits = Hits::new();
    let mut epoch = Stored::open(&dir.join("t.db")).unwrap().manifest().epoch;
    let force = [&BUILD[..], &["--force"]].concat();
    for i in 0..kills() {
        let (before, after) = (&tables[i % 2], &tables[(i + 1) % 2]);
        write_csv(dir, after);
        let child = start(dir, &force);
        kill_after(child, moment(i, whole));
        let now = stands(dir, epoch, before, after);
        *hits.entry(stage(dir, now > epoch)).or_default() += 1;
        ok(&run(dir, &force));
        epoch = now + 1;
        assert_eq!(stands(dir, epoch, after, after), epoch);
        no_litter(dir);
    }
    eprintln!("db build --force was killed {} times: {hits:?}", kills());
}

#[test]
fn killed_updates_lose_nothing() {
    const ROWS: usize = 3000;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut rows = table(ROWS, 0);
    write_csv(dir, &rows);
    ok(&run(dir, &BUILD));
    let after = write_changes(dir, &rows, ROWS, 1);
    let whole = timed(dir, &UPDATE);
    assert_eq!(stands(dir, 1, &rows, &after), 2);
    rows = after;
    let (mut epoch, mut hits) = (2, Hits::new());
    for i in 0..kills() {
        let after = write_changes(dir, &rows, ROWS, i + 2);
        let child = start(dir, &UPDATE);
        kill_after(child, moment(i, whole));
        let now = stands(dir, epoch, &rows, &after);
        *hits.entry(stage(dir, now > epoch)).or_default() += 1;
        let again = json(&run(dir, &[&UPDATE[..], &["--json"]].concat()));
        assert_eq!(again["published"], now == epoch);
        epoch += 1;
        assert_eq!(stands(dir, epoch, &after, &rows), epoch);
        no_litter(dir);
        rows = after;
    }
    eprintln!("db update was killed {} times: {hits:?}", kills());
}

/// A server is killed while it is asked and while an update lands, every other time together with the update.
#[test]
fn killed_servers_lose_nothing() {
    const ROWS: usize = 2000;
    const KEY: &str = "key 777";
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut rows = table(ROWS, 0);
    write_csv(dir, &rows);
    ok(&run(dir, &BUILD));
    let after = write_changes(dir, &rows, ROWS, 1);
    // A server looks for a new epoch every second.
    let whole = timed(dir, &UPDATE) + Duration::from_millis(1500);
    rows = after;
    let (mut epoch, mut answers) = (2, 0);
    let asked = |url: &str| run(dir, &["get", "--server", url, "--table", "t", "--key", KEY, "--json"]);
    let value_of = |output: &Output| json(output)["value"]["v"].as_str().map(str::to_owned);
    for i in 0..kills() {
        // Who still asks once it is dead asks nobody else.
        let mut serving = Serving::start_at(dir, &["t.db"], &format!("{}:0", own_host(4)));
        assert_eq!(value_of(&asked(&serving.url)).as_ref(), rows.get(KEY));
        let after = write_changes(dir, &rows, ROWS, i + 2);
        let dead = AtomicBool::new(false);
        let url = serving.url.clone();
        answers += std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let mut answers = 0;
                while !dead.load(Ordering::Relaxed) {
                    let got = asked(&url);
                    if code(&got) == 2 {
                        // Cut off, in one line.
                        refused(&got, &[]);
                        continue;
                    }
                    let got = value_of(&got);
                    assert!(got.as_ref() == rows.get(KEY) || got.as_ref() == after.get(KEY), "{got:?}");
                    answers += 1;
                }
                answers
            });
            let mut update = start(dir, &UPDATE);
            wait(moment(i, whole));
            serving.child.kill().unwrap();
            serving.child.wait().unwrap();
            if i % 2 == 0 {
                kill_after(update, Duration::ZERO);
            } else {
                assert!(update.wait().unwrap().success());
            }
            dead.store(true, Ordering::Relaxed);
            asking.join().unwrap()
        });
        let now = stands(dir, epoch, &rows, &after);
        assert!(i % 2 == 0 || now == epoch + 1);
        ok(&run(dir, &UPDATE));
        epoch += 1;
        assert_eq!(stands(dir, epoch, &after, &rows), epoch);
        no_litter(dir);
        rows = after;
    }
    eprintln!("serve was killed {} times, after {answers} right answers", kills());
}

/// A copy of a database's folder.
fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir(to).unwrap();
    for name in names(from) {
        std::fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}

/// A database at epoch 2, and what it holds.
fn changed_once(dir: &Path, rows: usize, scheme: &str) -> Rows {
    let before = table(rows, 0);
    write_csv(dir, &before);
    ok(&run(dir, &[&BUILD[..], &["--scheme", scheme]].concat()));
    let after = write_changes(dir, &before, rows, 1);
    ok(&run(dir, &UPDATE));
    after
}

/// The same with every kind of file.
fn every_file(dir: &Path, rows: usize) -> Rows {
    let after = changed_once(dir, rows, "double");
    let left = names(&dir.join("t.db"));
    for file in [
        "records-0000.shard",
        "records.sums",
        "records.hint",
        "records.state",
        "records.seeds",
        "keys-0000.shard",
        "keys.sums",
        "keys.hint",
    ]
    .into_iter()
    .chain(["changes-2-0000.shard", "changes-2.sums", "changes-2.hint", "changes-2.seeds", "changes-2.log"])
    .chain(["changes-2-keys-0000.shard", "changes-2-keys.sums", "changes-2-keys.hint", "manifest.json"])
    {
        assert!(left.iter().any(|n| n == file), "no {file} in {left:?}");
    }
    after
}

fn verify(dir: &Path) -> Result<(), StoreError> {
    Stored::open(dir)?.verify(&mut ())
}

/// One bit in every region of every file, and every way to cut a file, is found by name.
#[test]
fn every_damaged_region_is_named() {
    const HEADER: usize = 4096;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    every_file(dir, 300);
    let db = dir.join("t.db");
    let named = |file: &str, what: &str| {
        let error = verify(&db).expect_err(what).to_string();
        assert!(error.contains(file) && error.lines().count() == 1, "{file}, {what}: {error}");
    };
    verify(&db).unwrap();
    for file in names(&db) {
        let path = db.join(&file);
        let good = std::fs::read(&path).unwrap();
        let put = |at: usize, byte: u8| {
            let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.seek(SeekFrom::Start(at as u64)).unwrap();
            file.write_all(&[byte]).unwrap();
        };
        let flip = |at: usize, bit: u8| {
            put(at, good[at] ^ 1 << bit);
            named(&file, &format!("bit {bit} of byte {at}"));
            put(at, good[at]);
        };
        let ends = if file == "manifest.json" {
            for at in 0..good.len() {
                flip(at, (at % 8) as u8);
            }
            vec![0, 1, good.len() / 2, good.len() - 2]
        } else {
            // Magic, version, kind, parameters, epoch, length, digest of the payload, of the header, nothing.
            for at in [0, 7, 8, 11, 12, 15, 16, 47, 48, 55, 56, 63, 64, 95, 96, 127, 128, HEADER - 1] {
                flip(at, 0);
                flip(at, 7);
            }
            for at in [HEADER, (HEADER + good.len()) / 2, good.len() - 1] {
                flip(at, 0);
                flip(at, 7);
            }
            vec![0, 1, 127, HEADER - 1, HEADER, (HEADER + good.len()) / 2, good.len() - 1]
        };
        for end in ends {
            std::fs::write(&path, &good[..end]).unwrap();
            named(&file, &format!("cut to {end} bytes"));
        }
        if file != "manifest.json" {
            std::fs::write(&path, [&good[..], &[0]].concat()).unwrap();
            named(&file, "a byte too many");
        }
        std::fs::remove_file(&path).unwrap();
        named(if file == "manifest.json" { "t.db" } else { &file }, "gone");
        std::fs::write(&path, &good).unwrap();
    }
    verify(&db).unwrap();
}

/// What the commands do with a database one of whose files has a flipped bit: each says so by name or is right.
#[test]
fn commands_refuse_damaged_files_or_are_unharmed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let rows = every_file(dir, 300);
    let good_db = dir.join("good.db");
    copy(&dir.join("t.db"), &good_db);
    let after = write_changes(dir, &rows, 300, 2);
    for file in names(&good_db) {
        let path = dir.join("t.db").join(&file);
        let damage = || {
            copy(&good_db, &dir.join("t.db"));
            let mut bytes = std::fs::read(&path).unwrap();
            let at = if file == "manifest.json" { bytes.len() / 2 } else { (4096 + bytes.len()) / 2 };
            bytes[at] ^= 1;
            std::fs::write(&path, bytes).unwrap();
        };
        damage();
        let refuse = |args: &[&str], words: &[&str]| refused(&run(dir, args), words);
        refuse(&["db", "verify", "t.db"], &[&file]);
        // What every lookup goes through is read whole when a database is opened.
        if file == "manifest.json" || file.ends_with(".seeds") {
            refuse(&["db", "inspect", "t.db"], &[&file]);
            refuse(&["serve", "t.db", "--listen", "127.0.0.1:0"], &[&file]);
            refuse(&UPDATE, &[&file]);
            continue;
        }
        ok(&run(dir, &["db", "inspect", "t.db"]));
        let by = if file.contains("keys") { ["--index", "303"] } else { ["--key", "key 7"] };
        let ask = [&["--table", "t"][..], &by].concat();
        let large_hint = file == "records.hint";
        for how in [&[][..], &["--streamed"]] {
            let streamed = !how.is_empty();
            let flags = [&["t.db"][..], how].concat();
            // What is copied to memory is checked before anybody is answered, hints and checksums that are needed too.
            let at_start = match file.rsplit_once('.').unwrap().1 {
                "shard" => !streamed,
                "sums" => streamed,
                ending => ending != "log" && !large_hint,
            };
            if at_start {
                let served = run(dir, &[&["serve", "--listen", "127.0.0.1:0"], &flags[..]].concat());
                let said = stderr(&served);
                let last = said.lines().last().unwrap();
                assert_eq!(code(&served), 2, "{said}");
                assert!(last.contains(&file) && last.contains("checksum"), "{said}");
                continue;
            }
            let serving = Serving::start(dir, &flags);
            assert_eq!(ready(&serving).0, 200);
            if large_hint {
                // Whoever fetches it before it is read sees it too.
                let _ = std::fs::remove_dir_all(dir.join("cache"));
                refused(&serving.get(dir, &ask), &["hint"]);
                assert!(serving.line(" ERROR ").contains(&file));
                refuse_get(&serving, dir, &ask);
                assert_eq!(ready(&serving).0, 503);
                continue;
            }
            if !file.ends_with(".shard") {
                ok(&serving.get(dir, &ask));
                continue;
            }
            // What is streamed is checked by every pass, and nobody gets its answers.
            for _ in 0..2 {
                refuse_get(&serving, dir, &ask);
            }
            let (status, said) = ready(&serving);
            assert!(status == 503 && said.contains("fails to serve: 1"), "{said}");
            #[cfg(unix)]
            {
                let (_, log) = serving.terminate();
                assert!(log.contains(&format!("{file} is damaged")), "{log}");
            }
        }

        // An update says what it finds damaged, and then leaves all as it was; or it is right once the file is restored.
        let updated = run(dir, &UPDATE);
        if code(&updated) == 0 {
            if !file.starts_with("changes-") {
                refuse(&["db", "verify", "t.db"], &[&file]);
                std::fs::copy(good_db.join(&file), &path).unwrap();
            }
            assert!(!file.ends_with(".log"));
            stands(dir, 3, &after, &after);
        } else {
            refused(&updated, &[&file]);
            std::fs::copy(good_db.join(&file), &path).unwrap();
            assert_eq!(stands(dir, 2, &rows, &after), 2);
        }
        no_litter(dir);
    }
}

fn refuse_get(serving: &Serving, dir: &Path, ask: &[&str]) {
    refused(&serving.get(dir, ask), &["the server failed to"]);
}

/// What `/readyz` says.
fn ready(serving: &Serving) -> (u16, String) {
    use std::io::{Read, Write};
    let address = serving.url.strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    (said.split(' ').nth(1).unwrap().parse().unwrap(), said)
}

/// What an update reads of the base it compares: wherever a shard is damaged, no row is lost.
#[test]
fn updates_of_a_damaged_base_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let rows = changed_once(dir, 300, "simple");
    copy(&dir.join("t.db"), &dir.join("good.db"));
    let after = write_changes(dir, &rows, 300, 2);
    let shard = dir.join("t.db/records-0000.shard");
    let len = std::fs::metadata(&shard).unwrap().len();
    let (mut found, mut landed) = (0, 0);
    for at in (4096..len).step_by(len as usize / 12) {
        copy(&dir.join("good.db"), &dir.join("t.db"));
        let mut bytes = std::fs::read(&shard).unwrap();
        bytes[at as usize] ^= 1 << (at % 8);
        std::fs::write(&shard, bytes).unwrap();
        let updated = run(dir, &UPDATE);
        if code(&updated) == 0 {
            landed += 1;
        } else {
            refused(&updated, &["records-0000.shard is damaged", "its 1024 bytes from "]);
            found += 1;
            copy(&dir.join("good.db"), &dir.join("t.db"));
            ok(&run(dir, &UPDATE));
        }
        std::fs::copy(dir.join("good.db/records-0000.shard"), &shard).unwrap();
        assert_eq!(stands(dir, 3, &after, &rows), 3);
    }
    eprintln!("updates found {found} of the damaged bases, and {landed} were of no matter to them");
    assert!(found > 0);
}

/// Files that are changed or cut in place while they are served: what is in memory goes on, what is read is refused by name
/// until it is restored, and no answer is wrong.
#[cfg(unix)]
#[test]
fn files_that_change_under_a_running_server_change_no_answer() {
    use std::os::unix::fs::FileExt;
    const KEY: &str = "key 7";
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let rows = changed_once(dir, 300, "simple");
    let ask = ["--table", "t", "--key", KEY, "--json"];
    let right = |serving: &Serving| {
        assert_eq!(json(&serving.get(dir, &ask))["value"]["v"].as_str(), rows.get(KEY).map(String::as_str));
    };
    for streamed in [false, true] {
        let flags: &[&str] = if streamed { &["t.db", "--streamed"] } else { &["t.db"] };
        let serving = Serving::start(dir, flags);
        for name in ["records-0000.shard", "records.hint", "changes-2-0000.shard", "changes-2.hint"] {
            let path = dir.join("t.db").join(name);
            let good = std::fs::read(&path).unwrap();
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            let middle = (4096 + good.len()) / 2;
            for cut in [false, true] {
                right(&serving);
                if cut {
                    file.set_len(middle as u64).unwrap();
                } else {
                    file.write_all_at(&[good[middle] ^ 0x10], middle as u64).unwrap();
                }
                let hint = name.ends_with(".hint");
                if streamed && name.ends_with(".shard") {
                    refuse_get(&serving, dir, &ask);
                } else {
                    right(&serving);
                    assert_eq!(ready(&serving).0, 200, "{name}");
                }
                if hint {
                    std::fs::remove_dir_all(dir.join("cache")).unwrap();
                    refuse_get(&serving, dir, &ask);
                }
                let harmed = hint || streamed && name.ends_with(".shard");
                if harmed {
                    let line = serving.line(" ERROR ");
                    assert!(line.contains(name), "{line}");
                    let (status, said) = ready(&serving);
                    assert!(status == 503 && said.contains("fails to serve: 1"), "{said}");
                    // Asking too early changes nothing.
                    serving.hang_up();
                    assert!(serving.line("can't be served").contains(name));
                    assert_eq!(ready(&serving).0, 503);
                }
                file.write_all_at(&good, 0).unwrap();
                if harmed {
                    serving.hang_up();
                    serving.line("opened again");
                    assert_eq!(ready(&serving).0, 200);
                }
                right(&serving);
            }
        }
        assert_eq!(serving.terminate().0, 0);
    }
}
