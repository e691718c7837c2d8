//! Databases built from real files, opened again and asked.

use std::path::Path;
use std::sync::Arc;

use blindcore_accel_cpu::Cpu;
use blindcore_lookup::keyword::{self, Index};
use blindcore_lookup::{Client, SchemeChoice, Selection, Server};
use blindcore_store::stages::{PREPARING, READING};
use blindcore_store::{
    BuildOptions, ProofChoice, SourceSpec, StoreError, Stored, StoredPart, UpdateOptions, Value, build,
    codec, update,
};
use blindcore_units::{Progress, Unit};
use blindcore_wire::PartKind;

fn options(dir: &Path, source: &str, key: Option<&str>) -> BuildOptions {
    BuildOptions {
        key: key.map(str::to_owned),
        proofs: ProofChoice::Without,
        memory: 1 << 20,
        ..BuildOptions::new(SourceSpec::parse(dir.join(source).to_str().unwrap()).unwrap(), dir.join("db"))
    }
}

/// Stops the work when it comes to this stage.
struct StopAt {
    stage: &'static str,
    there: bool,
}

impl Progress for StopAt {
    fn at(&mut self, stage: &str, _: u64, _: Option<u64>, _: Unit) {
        self.there = stage == self.stage;
    }

    fn stopped(&self) -> bool {
        self.there
    }
}

fn run(options: &BuildOptions) -> Result<Stored, StoreError> {
    build(options, &Cpu::with_threads("cpu", 2).unwrap(), &mut ())?;
    Stored::open(&options.out)
}

/// Everything in the folder, hidden files too.
fn listing(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn phone_book(rows: usize) -> String {
    let row = |i: usize| format!("name {i},{},{}\n", 5_550_000 + i, "x".repeat(i % 40));
    "name,phone,note\n".to_owned() + &(0..rows).map(row).collect::<String>()
}

/// The hint without what proofs add to it.
fn words(part: &StoredPart) -> &[u8] {
    &(*part.hint).as_ref()[..part.params.hint_bytes() as usize]
}

struct Asked {
    server: Server,
    client: Client,
}

impl Asked {
    fn new(part: &StoredPart) -> Self {
        let device = Cpu::with_threads("cpu", 1).unwrap();
        Self {
            server: Server::new(part.params, &device, part.operands()).unwrap(),
            client: Client::new(part.params, Arc::new(words(part).to_vec())).unwrap(),
        }
    }

    fn slot(&self, selection: &Selection) -> Vec<u8> {
        let (query, pending) = self.client.query(self.client.prepare().unwrap(), selection).unwrap();
        self.client.decode(pending, &self.server.answer(&[&query]).unwrap().0[0]).unwrap().slot.to_vec()
    }
}

#[test]
fn a_keyed_table_answers_by_key_and_lists_its_keys() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("book.csv"), phone_book(3000)).unwrap();
    let stored = run(&options(dir.path(), "book.csv", Some("name"))).unwrap();
    stored.verify(&mut ()).unwrap();
    let manifest = stored.manifest();
    assert_eq!((manifest.name.as_str(), manifest.rows, manifest.epoch), ("book", 3000, 1));
    assert_eq!(manifest.values, ["phone", "note"]);
    assert_eq!(listing(dir.path()), ["book.csv", "db"]);

    let records = Asked::new(&stored.records);
    let salt = manifest.salt().unwrap().unwrap();
    let index =
        Index::new(stored.records.params.geometry, salt, stored.records.seeds.clone().unwrap()).unwrap();
    let look = |key: &str| {
        let (selection, print) = index.select(key.as_bytes());
        let slot = records.slot(&selection);
        keyword::open(&slot, &print).map(|r| codec::decode_record(r, 2).unwrap())
    };
    for i in [0usize, 1, 39, 1500, 2999] {
        let want = [Value::Text((5_550_000 + i).to_string()), Value::Text("x".repeat(i % 40))];
        assert_eq!(look(&format!("name {i}")).unwrap(), want);
    }
    assert_eq!(look("name 3000"), None);
    assert_eq!(look(""), None);

    let keys = stored.keys.as_ref().unwrap();
    let directory = Asked::new(keys);
    let slot = directory.slot(&Selection::index(&keys.params.geometry, 1234).unwrap());
    let len = usize::from(u16::from_le_bytes([slot[0], slot[1]]));
    assert_eq!(&slot[2..2 + len], b"name 1234");
}

#[test]
fn a_table_without_keys_answers_by_index() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("book.csv"), phone_book(500)).unwrap();
    let mut options = options(dir.path(), "book.csv", None);
    options.values = Some(vec!["phone".into(), "name".into()]);
    options.name = Some("other".into());
    let stored = run(&options).unwrap();
    assert!(stored.keys.is_none() && stored.manifest().key.is_none());
    let asked = Asked::new(&stored.records);
    for i in [0u64, 77, 499] {
        let slot = asked.slot(&Selection::index(&stored.records.params.geometry, i).unwrap());
        let want = [Value::Text((5_550_000 + i).to_string()), Value::Text(format!("name {i}"))];
        assert_eq!(codec::decode_record(&slot, 2).unwrap(), want);
    }
}

#[test]
fn values_come_in_the_order_that_is_asked_for_wherever_the_key_stands() {
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..40).map(|i| format!("a{i},{i},b{i},c{i}\n")).collect();
    std::fs::write(dir.path().join("t.csv"), format!("a,k,b,c\n{rows}")).unwrap();
    let mut options = options(dir.path(), "t.csv", Some("k"));
    options.force = true;
    let asked = |names: &[&str]| Some(names.iter().map(|n| (*n).to_owned()).collect());
    for (values, want) in [
        (None, vec!["a7", "b7", "c7"]),
        (asked(&["c", "a"]), vec!["c7", "a7"]),
        (asked(&["b", "k", "a"]), vec!["b7", "7", "a7"]),
    ] {
        options.values = values;
        let stored = run(&options).unwrap();
        let salt = stored.manifest().salt().unwrap().unwrap();
        let seeds = stored.records.seeds.clone().unwrap();
        let index = Index::new(stored.records.params.geometry, salt, seeds).unwrap();
        let (selection, print) = index.select(b"7");
        let slot = Asked::new(&stored.records).slot(&selection);
        let record = codec::decode_record(keyword::open(&slot, &print).unwrap(), want.len()).unwrap();
        assert_eq!(record, want.into_iter().map(|v| Value::Text(v.into())).collect::<Vec<_>>());
    }
}

#[test]
fn longest_records_and_shortest_tables() {
    let dir = tempfile::tempdir().unwrap();
    let longest = "y".repeat(blindcore_lookup::MAX_RECORD_BYTES - 4);
    std::fs::write(dir.path().join("long.csv"), format!("k,v\na,{longest}\nb,short\n")).unwrap();
    let stored = run(&options(dir.path(), "long.csv", Some("k"))).unwrap();
    assert!(stored.manifest().blocks() > 1, "a slot of 64 KiB would make a hint of 256 MiB");
    let record = codec::decode_record(&stored.record(b"a").unwrap().unwrap(), 1).unwrap();
    assert_eq!(record, [Value::Text(longest.clone())]);

    // Without keys a record lies in one slot.
    std::fs::remove_dir_all(dir.path().join("db")).unwrap();
    std::fs::write(dir.path().join("long.csv"), format!("v\nok\n{longest}zzzzzzzz\n")).unwrap();
    let error = run(&options(dir.path(), "long.csv", None)).err().unwrap().to_string();
    assert!(error.contains("65544 bytes, over the limit of 65536 in a table without keys"), "{error}");
    // Membership alone: no value columns, one row.
    std::fs::write(dir.path().join("long.csv"), "k\nalone\n").unwrap();
    let stored = run(&options(dir.path(), "long.csv", Some("k"))).unwrap();
    assert!(stored.manifest().values.is_empty());
}

#[test]
fn what_has_no_lines_has_rows() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("s.db");
    let sqlite = rusqlite::Connection::open(&file).unwrap();
    sqlite
        .execute_batch(
            "CREATE TABLE twice (k, v); INSERT INTO twice VALUES ('a', 1), ('a', 2);
             CREATE TABLE lacks (k, v); INSERT INTO lacks VALUES ('a', 1), (NULL, 2);",
        )
        .unwrap();
    std::fs::create_dir(dir.path().join("files")).unwrap();
    for name in ["one", "two"] {
        std::fs::write(dir.path().join("files").join(name), "the same").unwrap();
    }
    let of = |table: &str| format!("sqlite:{}?table={table}", file.display());
    let files = format!("dir:{}", dir.path().join("files").display());
    for (spec, key, words) in [
        (of("twice"), "k", "its key is also the key of row 1; keys must differ"),
        (of("lacks"), "k", "key"),
        (files, "content", "its key is also the key of row 1; keys must differ"),
    ] {
        let options = BuildOptions {
            key: Some(key.into()),
            ..BuildOptions::new(SourceSpec::parse(&spec).unwrap(), dir.path().join("db"))
        };
        let error = run(&options).err().expect("refused").to_string();
        assert!(error.starts_with(&format!("row 2 of {spec}: ")) && error.contains(words), "{error}");
    }
}

#[test]
fn names_that_are_refused_have_one_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.jsonl");
    std::fs::write(&path, "{\"k\":\"a\",\"v\\u0007\":1}\n").unwrap();
    let options = BuildOptions {
        key: Some("k".into()),
        ..BuildOptions::new(SourceSpec::parse(path.to_str().unwrap()).unwrap(), dir.path().join("db"))
    };
    let column = run(&options).err().unwrap().to_string();
    assert!(column.ends_with("; rename it, or choose others with --value"), "{column}");
    for name in [".", ".."] {
        let table =
            run(&BuildOptions { name: Some(name.into()), ..options.clone() }).err().unwrap().to_string();
        assert!(
            table.ends_with("and neither . nor ..; rename it, or say another with --name NAME"),
            "{table}"
        );
    }
}

#[test]
fn what_goes_wrong_is_named_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let write = |text: &str| std::fs::write(dir.path().join("t.csv"), text).unwrap();
    let refuse = |key: &str, words: &[&str]| {
        let error = run(&options(dir.path(), "t.csv", Some(key))).err().expect("refused").to_string();
        assert!(words.iter().all(|w| error.contains(w)), "{error}");
        assert_eq!(listing(dir.path()), ["t.csv"], "after {error}");
    };
    write("k,v\n");
    refuse("k", &["no rows"]);
    write("k,v\na,1\nb,2\na,3\n");
    refuse("k", &["line 4", "line 2", "key"]);
    write("k,v\na,1\nb\n");
    refuse("k", &["line 3"]);
    write("k,v\na,1\n,2\n");
    refuse("k", &["line 3", "key"]);
    write("k,v\na,1\n");
    refuse("nokey", &["nokey", "k, v"]);

    let options = options(dir.path(), "t.csv", Some("k"));
    let device = Cpu::with_threads("cpu", 1).unwrap();
    for stage in [READING, PREPARING] {
        let result = build(&options, &device, &mut StopAt { stage, there: false });
        assert!(matches!(result, Err(StoreError::Interrupted)));
        assert_eq!(listing(dir.path()), ["t.csv"]);
    }
}

#[test]
fn an_output_in_the_way_is_kept_unless_forced() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.csv"), "k,v\na,1\n").unwrap();
    let mut options = options(dir.path(), "t.csv", Some("k"));
    run(&options).unwrap();
    let error = run(&options).err().unwrap();
    assert!(matches!(error, StoreError::Exists { .. }), "{error}");
    std::fs::write(dir.path().join("t.csv"), "k,v\na,1\nb,2\n").unwrap();
    options.force = true;
    for epoch in 2..5 {
        let stored = run(&options).unwrap();
        assert_eq!((stored.manifest().rows, stored.manifest().epoch), (2, epoch));
        assert_eq!(listing(dir.path()), ["db", "t.csv"]);
        assert!(!listing(&dir.path().join("db")).iter().any(|f| f.contains("lock") || f == "old"));
    }
    // A folder that is not a database is never replaced.
    options.out = dir.path().join("home");
    std::fs::create_dir(&options.out).unwrap();
    std::fs::write(options.out.join("letter"), "dear").unwrap();
    assert!(run(&options).err().unwrap().to_string().contains("not a database"));
    assert!(options.out.join("letter").exists());
}

#[test]
fn what_came_meanwhile_and_what_is_foreign_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.csv"), "k,v\na,1\n").unwrap();
    let mut options = options(dir.path(), "t.csv", Some("k"));
    let device = Cpu::with_threads("cpu", 1).unwrap();
    let letter = options.out.join("letter");
    let error = build(&options, &device, &mut |_: &str, _, _, _| {
        let _ = std::fs::create_dir(&options.out);
        std::fs::write(&letter, "dear").unwrap();
    });
    assert!(matches!(error, Err(StoreError::Exists { .. })));
    assert!(letter.exists());
    // Another program's manifest does not make a database, and a database with other files in it stays.
    options.force = true;
    std::fs::write(options.out.join("manifest.json"), "{\"name\":\"my web extension\"}").unwrap();
    assert!(run(&options).err().unwrap().to_string().contains("not a database"));
    std::fs::remove_dir_all(&options.out).unwrap();
    run(&options).unwrap();
    std::fs::write(&letter, "dear").unwrap();
    assert!(run(&options).err().unwrap().to_string().contains("letter"));
    assert!(letter.exists());
}

#[test]
fn damage_is_named() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.csv"), phone_book(50)).unwrap();
    let stored = run(&options(dir.path(), "t.csv", Some("name"))).unwrap();
    let db = stored.dir().to_owned();
    drop(stored);
    let files: Vec<String> = listing(&db);
    assert!(files.contains(&"manifest.json".to_owned()) && files.contains(&"records-0000.shard".to_owned()));
    for file in &files {
        let path = db.join(file);
        let good = std::fs::read(&path).unwrap();
        let open_and_verify = || Stored::open(&db).and_then(|s| s.verify(&mut ())).expect_err("refused");
        let check = |bytes: &[u8], how: &str| {
            std::fs::write(&path, bytes).unwrap();
            let error = open_and_verify().to_string();
            assert!(error.contains(file.as_str()), "{file} {how}: {error}");
        };
        check(&good[..good.len() - 2], "cut"); // a manifest may lose its last newline
        check(b"", "emptied");
        check(b"PK\x03\x04 something else entirely", "replaced");
        let mut flipped = good.clone();
        let last = flipped.len() - 3;
        flipped[last] ^= 0x10;
        check(&flipped, "flipped at the end");
        flipped = good.clone();
        flipped[good.len() / 2] ^= 1;
        check(&flipped, "flipped in the middle");
        std::fs::remove_file(&path).unwrap();
        let error = open_and_verify().to_string();
        assert!(error.contains(file.as_str()), "{file} removed: {error}");
        std::fs::write(&path, &good).unwrap();
    }
    assert!(Stored::open(&db).is_ok());
    let error = Stored::open(&dir.path().join("nowhere")).err().unwrap().to_string();
    assert!(error.contains("nowhere") && error.contains("db build"), "{error}");
}

#[test]
fn what_a_killed_build_left_is_swept_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.csv"), "k,v\na,1\n").unwrap();
    let dead = dir.path().join(".db.building-dead");
    let living = dir.path().join(".db.building-living");
    for folder in [&dead, &living] {
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join("building.lock"), "").unwrap();
    }
    let lock = std::fs::File::open(living.join("building.lock")).unwrap();
    lock.lock().unwrap();
    // Of another table that nobody builds again; and something of that name which no build made.
    let (other, foreign) = (dir.path().join(".x.db.building-dead"), dir.path().join(".x.building-site"));
    std::fs::create_dir(&foreign).unwrap();
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("building.lock"), "").unwrap();
    // One folder has one build at a time.
    let error = run(&options(dir.path(), "t.csv", Some("k"))).err().unwrap().to_string();
    assert!(error.contains("db is being built by another process; wait until that ends"), "{error}");
    assert!(!dead.exists() && living.exists() && !other.exists() && foreign.exists());
    drop(lock);
    run(&options(dir.path(), "t.csv", Some("k"))).unwrap();
    assert!(!living.exists());
}

/// Runs a build, and this once when it comes to a stage.
fn build_while(options: &BuildOptions, stage: &str, meanwhile: impl FnOnce()) -> Result<Stored, StoreError> {
    let mut meanwhile = Some(meanwhile);
    build(options, &Cpu::with_threads("cpu", 1).unwrap(), &mut |at: &str, _, _, _| {
        if at == stage
            && let Some(meanwhile) = meanwhile.take()
        {
            meanwhile();
        }
    })?;
    assert!(meanwhile.is_none());
    Stored::open(&options.out)
}

#[test]
fn an_update_that_a_build_overlaps_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let device = Cpu::with_threads("cpu", 1).unwrap();
    std::fs::write(dir.join("t.csv"), phone_book(50)).unwrap();
    std::fs::write(dir.join("c.csv"), "name,phone,note\nname 7,1,new\n").unwrap();
    let mut options = options(dir, "t.csv", Some("name"));
    run(&options).unwrap();
    options.force = true;
    let changes = UpdateOptions {
        memory: 1 << 16,
        ..UpdateOptions::new(&options.out, SourceSpec::parse(dir.join("c.csv").to_str().unwrap()).unwrap())
    };
    // Where it is read, where its parameters are already planned, and each time the one after.
    for (stage, epoch) in [(READING, 1), (PREPARING, 3)] {
        assert_eq!(Stored::open(&options.out).unwrap().manifest().epoch, epoch);
        let error = build_while(&options, stage, || {
            assert!(update(&changes, &device, &mut ()).unwrap().published);
        });
        let error = error.err().unwrap().to_string();
        let words =
            format!("db is at epoch {} now, and this build, which replaces epoch {epoch}, would", epoch + 1);
        assert!(error.contains(&words) && error.contains("build again"), "{error}");
        let stored = Stored::open(&options.out).unwrap();
        stored.verify(&mut ()).unwrap();
        assert_eq!(stored.manifest().epoch, epoch + 1);
        let record = stored.record(b"name 7").unwrap().unwrap();
        assert_eq!(codec::decode_record(&record, 2).unwrap()[1], Value::Text("new".into()));
        assert_eq!(listing(dir), ["c.csv", "db", "t.csv"]);
        // With nothing between, it comes after.
        assert_eq!(run(&options).unwrap().manifest().epoch, epoch + 2);
    }
}

#[test]
fn of_two_builds_of_a_folder_one_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("t.csv"), phone_book(50)).unwrap();
    let forced = BuildOptions { force: true, ..options(dir, "t.csv", Some("name")) };
    // The second is refused before it reads anything.
    let stored = build_while(&forced, READING, || {
        let error = run(&forced).err().unwrap().to_string();
        let words = format!("db is being built by process {}; wait", std::process::id());
        assert!(error.contains(&words), "{error}");
    });
    assert_eq!(stored.unwrap().manifest().epoch, 1);
    // One that came in another way stays as well, also under the same epoch.
    let other = BuildOptions { out: dir.join("other"), ..forced.clone() };
    let moved = || {
        let _ = std::fs::remove_dir_all(&forced.out);
        std::fs::rename(&other.out, &forced.out).unwrap();
    };
    run(&other).unwrap();
    let error = build_while(&forced, PREPARING, moved).err().unwrap().to_string();
    assert!(error.contains("db is at epoch 1 now, and this build, which replaces epoch 1, would"), "{error}");
    run(&other).unwrap();
    std::fs::remove_dir_all(&forced.out).unwrap();
    let error = build_while(&forced, PREPARING, moved).err().unwrap().to_string();
    assert!(
        error.contains("db was made by another build meanwhile and is at epoch 1; nothing was"),
        "{error}"
    );
    assert_eq!(listing(dir), ["db", "t.csv"]);
}

#[test]
fn an_epoch_never_goes_back() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.csv"), "k,v\na,1\n").unwrap();
    let options = BuildOptions { force: true, ..options(dir.path(), "t.csv", Some("k")) };
    (1..4).for_each(|epoch| assert_eq!(run(&options).unwrap().manifest().epoch, epoch));
    // Of a manifest that is damaged, the epoch is what can be read of it.
    let manifest = options.out.join("manifest.json");
    let whole = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, &whole[..whole.len() / 2]).unwrap();
    assert_eq!(run(&options).unwrap().manifest().epoch, 4);
    std::fs::write(&manifest, whole.replace("\"rows\": 1", "\"rows\": 9")).unwrap();
    assert!(Stored::open(&options.out).is_err());
    assert_eq!(run(&options).unwrap().manifest().epoch, 4);
    // What came where nothing was is kept.
    std::fs::remove_dir_all(&options.out).unwrap();
    let error = build_while(&options, READING, || {
        std::fs::create_dir(&options.out).unwrap();
        std::fs::write(options.out.join("letter"), "dear").unwrap();
    });
    assert!(error.err().unwrap().to_string().contains("not a database"));
    assert!(options.out.join("letter").exists());
}

#[test]
fn doublepir_tables_keep_their_state() {
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..300).map(|i| format!("{{\"v\":{}}}\n", i % 30)).collect();
    std::fs::write(dir.path().join("t.jsonl"), rows).unwrap();
    let mut options = options(dir.path(), "t.jsonl", None);
    options.scheme = SchemeChoice::Only("double".parse().unwrap());
    let stored = run(&options).unwrap();
    let derived: Vec<usize> =
        stored.records.derived.iter().map(|operand| (**operand).as_ref().len()).collect();
    assert_eq!(derived.len(), 1);
    let operands = stored.records.params.stored_operands().skip(1);
    assert_eq!(derived, operands.map(|operand| operand.bytes()).collect::<Vec<_>>());
    assert_eq!(stored.records.params.geometry.record_bytes, 1, "a small integer takes one byte");
    let asked = Asked::new(&stored.records);
    for i in [0u64, 31, 299] {
        let slot = asked.slot(&Selection::index(&stored.records.params.geometry, i).unwrap());
        assert_eq!(codec::decode_record(&slot, 1).unwrap(), [Value::Int(i as i64 % 30)]);
    }
    let _ = Arc::new(stored);
}

#[test]
fn every_slot_of_a_table_with_proofs_opens_under_its_roots() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("book.csv"), phone_book(3000)).unwrap();
    for (key, proofs) in [(Some("name"), true), (None, true), (None, false)] {
        let choice = if proofs { ProofChoice::With } else { ProofChoice::Auto };
        let options = BuildOptions { proofs: choice, force: true, ..options(dir.path(), "book.csv", key) };
        let stored = run(&options).unwrap();
        stored.verify(&mut ()).unwrap();
        let description = stored.description().unwrap();
        assert!(description.has_proofs(), "a slot of this table is not twice as long with one");
        for (kind, part) in stored.parts() {
            let (says, proofs) = (description.part(kind).unwrap(), part.proofs.unwrap());
            let roots = &(*part.hint).as_ref()[words(part).len()..];
            assert_eq!(roots.len() as u64, proofs.root_bytes());
            let asked = Asked::new(part);
            for row in [0u64, 1, 7, 8, 1500, 2999] {
                let name = format!("name {row}");
                let (id, slot) = match description.index() {
                    Some(index) if kind == PartKind::Records => {
                        let id = *index.order(name.as_bytes(), 0);
                        (id, asked.slot(&index.select(name.as_bytes()).0))
                    }
                    _ => {
                        let at = Selection::index(&part.params.geometry, row).unwrap();
                        (row.into(), asked.slot(&at))
                    }
                };
                let opened = proofs.open(kind, roots, id, &slot).unwrap_or_else(|| panic!("{kind} {row}"));
                assert_eq!(opened.len(), says.content_bytes());
                assert!(proofs.open(kind, roots, id ^ 1, &slot).is_none());
            }
        }
        let found = match key {
            Some(_) => stored.record(b"name 7").unwrap(),
            None => stored.record(&7u64.to_le_bytes()).unwrap(),
        };
        let values = codec::decode_record(&found.unwrap(), if key.is_some() { 2 } else { 3 }).unwrap();
        assert_eq!(values.last(), Some(&Value::Text("x".repeat(7))), "and without a proof behind it");
    }
}

#[test]
fn a_seed_that_was_changed_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.csv"), phone_book(50)).unwrap();
    let stored = run(&options(dir.path(), "t.csv", Some("name"))).unwrap();
    let path = stored.dir().join("records.seeds");
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let error = Stored::open(stored.dir()).err().unwrap().to_string();
    assert!(error.contains("records.seeds") && error.contains("checksum"), "{error}");
}
