//! What a client computes must not depend on what it looks up: under callgrind, every index and every key of one
//! length takes the same number of instructions, to the last one, though each run draws fresh secrets.
//!
//! The test runs itself under valgrind, which counts; where there is no valgrind it says so and passes.

use std::process::Command;
use std::sync::Arc;

use blindcore_lookup::keyword::{Index, open};
use blindcore_lookup::{Client, Geometry, Params, Scheme, Selection};

const WORKER: &str = "BLINDCORE_CONSTANT_WORK";

fn main() {
    if let Ok(target) = std::env::var(WORKER) {
        return work(&target);
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: valgrind, which counts instructions, is not installed");
        return;
    }
    let mut failed = 0;
    let groups = [
        [
            "simple index 0000",
            "simple index 0001",
            "simple index 0255",
            "simple index 3000",
            "simple index 4095",
        ],
        [
            "double index 0000",
            "double index 0001",
            "double index 0255",
            "double index 3000",
            "double index 4095",
        ],
        [
            "simple key aaaa",
            "simple key aaab",
            "simple key zzzz",
            "simple key 0000",
            "simple key \u{1}\u{2}\u{3}\u{4}",
        ],
    ];
    for group in groups {
        let counts: Vec<u64> = group.iter().map(|target| count(target)).collect();
        let same = counts.iter().all(|c| *c == counts[0]);
        println!("{}: {counts:?} instructions", if same { "ok" } else { "FAILED" });
        failed += usize::from(!same);
    }
    // A check that can't fail shows nothing: other work must give another count.
    assert_ne!(count("simple index 0000"), count("simple key aaaa"), "the counter does not count");
    println!("{} passed, {failed} failed", groups.len() - failed);
    assert_eq!(failed, 0, "what is looked up shows in the number of instructions");
}

/// Instructions of this program from start to end when it looks `target` up.
fn count(target: &str) -> u64 {
    let this = std::env::current_exe().expect("a test knows its path");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(this)
        .env(WORKER, target)
        .output()
        .expect("valgrind was there before");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let line =
        text.lines().find_map(|l| l.split_once("Collected :")).expect("callgrind says what it collected");
    line.1.trim().parse().expect("a number")
}

/// One lookup, without its server: hint and answer are zeros, which decode like any other.
fn work(target: &str) {
    let (scheme, target) = target.split_once(' ').expect("scheme, way, target");
    let scheme: Scheme = scheme.parse().expect("a scheme");
    let geometry =
        Geometry { record_bytes: if scheme == Scheme::Simple { 8 } else { 1 }, groups: 32, columns: 128 };
    let params = Params::new(scheme, geometry).expect("in range");
    let client = Client::new(params, Arc::new(vec![0u8; 4 * params.hint_words()])).expect("zeros are a hint");
    let prepared = client.prepare().expect("randomness");
    let (selection, fingerprint) = match target.split_once(' ').expect("way, target") {
        ("index", index) => {
            let index = index.bytes().fold(0u64, |n, d| 10 * n + u64::from(d - b'0'));
            (Selection::index(&geometry, index).expect("inside"), None)
        }
        (_, key) => {
            let index = Index::new(geometry, [7; 32], (0..32).collect()).expect("a seed a group");
            let (selection, fingerprint) = index.select(key.as_bytes());
            (selection, Some(fingerprint))
        }
    };
    let (query, pending) = client.query(prepared, &selection).expect("inside");
    std::hint::black_box(&query);
    let slot = client.decode(pending, &vec![0u8; params.answer_bytes()]).expect("the right length");
    if let Some(fingerprint) = fingerprint {
        std::hint::black_box(open(&slot, &fingerprint));
    }
}
