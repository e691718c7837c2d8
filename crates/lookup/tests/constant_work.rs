//! What a client does must not depend on what it looks up: under valgrind's `lackey`, every index and every key of
//! one length gives the same trace of instructions, loads and stores, address by address, though each run draws
//! fresh secrets. So no branch, no index and no division is decided by a secret.
//!
//! The test runs itself under valgrind; where there is no valgrind it says so and passes.

#![allow(clippy::print_stdout, reason = "this test is its own harness and prints its results")]

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use blindcore_lookup::batch::{BatchIndex, Buckets};
use blindcore_lookup::keyword::{Index, open};
use blindcore_lookup::{Client, Decoded, Geometry, Params, Selection, schemes};

const WORKER: &str = "BLINDCORE_CONSTANT_WORK";
/// How often a group is traced until its traces are alike. A public word that is not below its modulus is drawn again, in one of 700
/// traces of `onionpir`; what a target decides shows each time.
const TRIES: usize = 3;

fn main() {
    if let Ok(target) = std::env::var(WORKER) {
        return work(&target);
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: valgrind, which counts instructions, is not installed");
        return;
    }
    let mut failed = 0;
    // However a row is chosen, the choice has one form, which every scheme's query starts from. So each way of choosing is traced
    // with the cheapest scheme, and every scheme with one way.
    let targets = [
        "simple index 0000 0129 1023",
        "double index 0000 0129",
        "simple key aaaa zzzz \u{1}\u{2}\u{3}\u{4}",
        "hintless key aaaa \u{1}\u{2}\u{3}\u{4}",
        "onionpir2 key aaaa zzzz",
        "sealpir key aaaa zzzz",
        "fastpir key aaaa zzzz",
        "onionpir key aaaa zzzz",
        "mulpir key aaaa zzzz",
        "batch keys aaaa \u{1}\u{2}\u{3}\u{4}",
    ];
    for group in targets {
        let [scheme, way, targets @ ..] = &group.split(' ').collect::<Vec<_>>()[..] else {
            unreachable!("a scheme, a way")
        };
        // Valgrind is of one thread: a group's runs go side by side.
        let trace_all = || -> Vec<_> {
            std::thread::scope(|scope| {
                let run = |target: &&str| format!("{scheme} {way} {target}");
                let runs = targets.iter().map(run).map(|target| scope.spawn(move || trace(&target)));
                let runs: Vec<_> = runs.collect();
                runs.into_iter().map(|run| run.join().expect("a trace")).collect()
            })
        };
        let alike = |traces: &[(u64, u64)]| traces.iter().all(|t| *t == traces[0]);
        let mut traces = trace_all();
        for _ in 1..TRIES {
            if !alike(&traces) {
                traces = trace_all();
            }
        }
        let same = alike(&traces);
        let hashes: Vec<_> = traces.iter().map(|t| format!("{:x}", t.1)).collect();
        println!(
            "{}: {scheme} by {way}: {} steps, traces {}",
            if same { "ok" } else { "FAILED" },
            traces[0].0,
            hashes.join(" ")
        );
        failed += usize::from(!same);
    }
    // A check that can't fail shows nothing: a branch on the target must show, and so must an index.
    for leak in ["branch", "index"] {
        let [a, b] = ["aaaa", "zzzz"].map(|key| trace(&format!("leak {leak} {key}")));
        assert_ne!(a.1, b.1, "a secret {leak} goes unseen");
    }
    println!("{} passed, {failed} failed", targets.len() - failed);
    assert_eq!(failed, 0, "what is looked up shows in what the client does");
}

/// Bytes that a pipe holds.
const PIPE: usize = 64 << 10;

/// Valgrind writes each line by itself. Into a file each costs as much as all else, and into a pipe more where it wakes a reader that
/// waits for it. So this one looks away for a while whenever it has read what there is.
struct Unhurried(ChildStderr);

impl Read for Unhurried {
    #[expect(clippy::disallowed_methods, reason = "it paces the reading of a pipe, and decides nothing")]
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read(into)?;
        if read > 0 && read < into.len() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(read)
    }
}

/// How many steps this program takes when it looks `target` up, and a hash of them all.
fn trace(target: &str) -> (u64, u64) {
    let this = std::env::current_exe().expect("a test knows its path");
    // Valgrind's debug server maps a file named by its process number, and libc reads the list of mappings before
    // `main`: a number with more digits would be another trace, so there is no debug server.
    let mut running = Command::new("valgrind")
        .args(["--tool=lackey", "--trace-mem=yes", "--basic-counts=no", "--vgdb=no"])
        .arg(this)
        .env(WORKER, target)
        .env("RUST_BACKTRACE", "0") // found in the debug lines, which takes ages under valgrind
        .stderr(Stdio::piped())
        .spawn()
        .expect("valgrind was there before");
    let log = Unhurried(running.stderr.take().expect("a pipe"));
    let mut hasher = DefaultHasher::new();
    let mut steps = 0;
    let mut lines = BufReader::with_capacity(PIPE, log);
    let mut line = Vec::new();
    // The dynamic loader draws numbers of its own before this program starts: its megabyte of addresses, which
    // the first instruction lies in, is left out until another is entered.
    let mut loader = None;
    let mut started = false;
    while lines.read_until(b'\n', &mut line).expect("a pipe") > 0 {
        if line.starts_with(b"I  ") && !started {
            let end = line.iter().position(|b| *b == b',').expect("an address, a size");
            let place = line[3..end - 5].to_vec();
            started = *loader.get_or_insert_with(|| place.clone()) != place;
        }
        // Lines of valgrind's own hold a process number.
        if started && !line.starts_with(b"==") {
            line.hash(&mut hasher);
            steps += 1;
        }
        line.clear();
    }
    assert!(running.wait().expect("a child").success(), "{target} under valgrind");
    (steps, hasher.finish())
}

/// Where keys of a batch are asked, some of them the same, and what comes back of each.
fn batch(key: &str) {
    let buckets = Buckets::for_keys(8).expect("so many keys");
    let geometry = Geometry { record_bytes: 8, groups: 2, columns: 16 };
    let seeds = (0..2 * buckets.count()).map(|seed| seed as u8).collect();
    let index = BatchIndex::new(buckets, geometry, [7; 32], seeds).expect("a seed a group");
    let keys: Vec<String> = (0..6).map(|i| format!("{key}{}", i.min(4))).collect();
    let batch = index.batch(&keys);
    let slot = |_| Some(Decoded { slot: vec![5; 8].into(), damaged: false });
    let slots: Vec<_> = (0..buckets.count()).map(slot).collect();
    for key in 0..keys.len() {
        std::hint::black_box((batch.slot(key, &slots), batch.identity(key)));
    }
    std::hint::black_box(batch.selections());
}

/// One lookup, without its server: hint and answer are zeros, which decode like any other.
fn work(target: &str) {
    if let Some(leak) = target.strip_prefix("leak ") {
        return leaks(leak);
    }
    let (scheme, target) = target.split_once(' ').expect("scheme, way, target");
    if let ("batch", Some(key)) = (scheme, target.strip_prefix("keys ")) {
        return batch(key);
    }
    // With so many rows, the scheme without a hint picks one of forty ciphertexts; so many groups share the slots of fastpir, whose
    // clients encrypt a polynomial for each column.
    let (record_bytes, groups, columns) = match scheme {
        "simple" => (8, 16, 64),
        "double" => (1, 16, 64),
        // Several outputs to choose from.
        "onionpir" => (2000, 16, 64),
        "fastpir" => (6, 2100, 4),
        _ => (250, 40, 64),
    };
    let geometry = Geometry { record_bytes, groups, columns };
    let params = Params::new(schemes::find(scheme).expect("a scheme"), geometry).expect("in range");
    let hint = vec![0u8; params.hint_bytes() as usize];
    let client = Client::new(params, Arc::new(hint)).expect("zeros are a hint");
    let prepared = if params.registers_keys() {
        // What a client keeps is read in the same time whatever it is.
        let secret = params.open_secret(&vec![5; params.secret_bytes()]).expect("a seed");
        client.prepare_under(&secret).expect("randomness")
    } else {
        client.prepare().expect("randomness")
    };
    let (selection, fingerprint) = match target.split_once(' ').expect("way, target") {
        ("index", index) => {
            let index = index.bytes().fold(0u64, |n, d| 10 * n + u64::from(d - b'0'));
            (Selection::index(&geometry, index).expect("inside"), None)
        }
        (_, key) => {
            let index = Index::new(geometry, [7; 32], (0..groups).map(|group| group as u8).collect())
                .expect("a seed a group");
            let (selection, fingerprint) = index.select(key.as_bytes());
            (selection, Some(fingerprint))
        }
    };
    let (query, pending) = client.query(prepared, &selection).expect("inside");
    std::hint::black_box(&query);
    let decoded = client.decode(pending, &vec![0u8; params.answer_bytes()]).expect("the right length");
    std::hint::black_box(decoded.damaged);
    if let Some(fingerprint) = fingerprint {
        std::hint::black_box(open(&decoded.slot, &fingerprint));
    }
}

/// What must not go unseen: a branch and an index that the target decides.
fn leaks(target: &str) {
    let (kind, key) = target.split_once(' ').expect("kind, key");
    let secret = usize::from(key.as_bytes()[0]);
    let table = std::hint::black_box([1u8; 256]);
    match kind {
        "branch" if secret > 100 => std::hint::black_box(table[0]),
        "branch" => std::hint::black_box(table[0]).wrapping_mul(std::hint::black_box(3)),
        _ => std::hint::black_box(table[secret]),
    };
}
