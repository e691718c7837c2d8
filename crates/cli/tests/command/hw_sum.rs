//! `blindcore hw run sum`: encrypted convolutions on simulated PH-EPU chips.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::common::{blindcore, code, json, refused, run, stderr, stdout};
use crate::hw_circuit::chip_is_built;

fn sum(dir: &Path, more: &[&str]) -> Output {
    run(dir, &[&["hw", "run", "sum"], more].concat())
}

/// Under a key that protects nothing and is quick.
const QUICK: [&str; 3] = ["--bits", "512", "--insecure-test-key"];

fn number(of: &Value, field: &str) -> u64 {
    of[field].as_u64().unwrap_or_else(|| panic!("no {field} in {of}"))
}

#[test]
fn a_convolution_runs_on_the_chips() {
    if !chip_is_built("rtl:phepu") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let of = |more: &[&str]| json(&sum(dir.path(), &[&QUICK, more, &["--json"]].concat()));
    // The command itself compares every ciphertext with the CPU's and every number with the convolution in the clear.
    let paper = of(&[]);
    assert_eq!((number(&paper, "outputs"), number(&paper, "terms")), (64, 18));
    assert_eq!(paper["decrypted"].as_array().unwrap().len(), 64);
    assert_eq!((&paper["device"], number(&paper, "ciphertext_bits")), (&"rtl:phepu".into(), 1024));
    assert_eq!(paper["time_us"].as_f64().unwrap(), number(&paper, "cycles") as f64 / 500.0);
    let elements = paper["per_chip"][0]["elements"].as_array().unwrap();
    let multiplications: u64 = elements.iter().map(|e| number(e, "multiplications")).sum();
    assert_eq!((elements.len(), multiplications), (16, number(&paper, "multiplications")));
    let stages = paper["stages"].as_array().unwrap();
    assert!(stages.len() == 4 && stages.iter().all(|s| number(s, "cycles_of_all_elements") > 0), "{paper}");
    // What the compiler reckons leaves links out; nothing else is large.
    let (took, reckoned) = (number(&paper, "cycles") as f64, number(&paper, "cycles_reckoned") as f64);
    assert!((0.8..1.4).contains(&(took / reckoned)), "{took} {reckoned}");

    let dense = of(&["--zeros", "0", "--unbound"]);
    let sparse = of(&["--zeros", "75", "--unbound"]);
    assert!(number(&sparse, "cycles") < number(&dense, "cycles") && number(&dense, "zero_bits_skipped") == 0);
    let ours = of(&["--dataflow", "buckets", "--unbound"]);
    assert!(number(&ours, "inversions") == 0 && number(&ours, "cycles_of_inverting_inputs") > 0, "{ours}");
    assert!(ours["cycles_reckoned"].is_null());
    let narrow = of(&["--weight-bits", "2", "--padding", "1", "--stride", "2", "--kernels", "3x2x4"]);
    assert_eq!(number(&narrow, "outputs"), 3 * 4 * 3);
    let card = of(&["--chips", "3"]);
    assert_eq!((card["per_chip"].as_array().unwrap().len(), &card["device"]), (3, &"rtl:phepu-card".into()));
}

#[test]
fn instructions_are_listed() {
    if !chip_is_built("rtl:phepu") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let shown = sum(dir.path(), &[&QUICK[..], &["--listing"]].concat());
    assert_eq!(code(&shown), 0, "{}", stderr(&shown));
    let text = stdout(&shown);
    for word in ["context", "accumulate", "align", "invert", "reduce", "store", "end", "clocks on rtl:phepu"]
    {
        assert!(text.contains(word), "no {word} in {text}");
    }
    let file = sum(dir.path(), &[&QUICK[..], &["--listing=program.txt"]].concat());
    assert_eq!(code(&file), 0, "{}", stderr(&file));
    let kept = std::fs::read_to_string(dir.path().join("program.txt")).unwrap();
    assert!(kept.contains("accumulate") && !stdout(&file).contains("context"), "{kept}");
    refused(
        &sum(dir.path(), &[&QUICK[..], &["--listing=program.txt"]].concat()),
        &["program.txt", "new file"],
    );
    refused(&sum(dir.path(), &[&QUICK[..], &["--listing", "--json"]].concat()), &["--listing=FILE"]);
}

#[test]
fn what_the_chips_do_not_carry_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (more, said) in [
        (&["--bits", "512"][..], &["512", "--insecure-test-key"][..]),
        (&["--bits", "1000"], &["1000", "2048"]),
        (&["--bits", "3072"], &["3072", "2048"]),
        (&["--weight-bits", "3"], &["3", "2, 4 and 8"]),
        (&["--kernels", "4x9x3"], &["kernel", "9"]),
        (&["--image", "0x6x6"], &["0", "channels"]),
        (&["--stride", "0"], &["stride"]),
    ] {
        refused(&sum(dir.path(), more), said);
    }
    for more in [&["--image", "2x3"][..], &["--chips", "9"], &["--zeros", "101"], &["--dataflow", "else"]] {
        assert_eq!(code(&sum(dir.path(), more)), 2, "{more:?}");
    }
    let mut without = blindcore(dir.path());
    without.args(["hw", "run", "sum"]).env("BLINDCORE_RTL", dir.path());
    refused(&without.output().unwrap(), &["make -C hw libraries"]);
}
