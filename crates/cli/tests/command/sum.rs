//! `blindcore sum`: every command there and back, and what is refused.

use std::path::Path;

use serde_json::json;

use crate::common::{blindcore, code, json, refused, run, stderr, stdout};

pub(crate) const TEST: &str = "--insecure-test-key";

pub(crate) fn ok(dir: &Path, args: &[&str]) -> std::process::Output {
    let output = run(dir, args);
    assert_eq!(code(&output), 0, "{args:?}: {}", stderr(&output));
    output
}

/// A folder with a test key, its public one, and some numbers.
pub(crate) fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    ok(path, &["sum", "keygen", "--bits", "512", TEST, "--out", "k.key"]);
    ok(path, &["sum", "public", TEST, "--key", "k.key", "--out", "k.pub"]);
    std::fs::write(path.join("a.csv"), "age,x\n3,1.5\n-4,2.25\n5,-0.125\n").unwrap();
    std::fs::write(path.join("w.csv"), "10\n20\n-30\n").unwrap();
    dir
}

pub(crate) fn values(dir: &Path, file: &str) -> serde_json::Value {
    json(&ok(dir, &["sum", "decrypt", TEST, "--key", "k.key", "--in", file, "--json"]))["values"].clone()
}

#[test]
fn numbers_there_and_back_added_and_weighed() {
    let dir = folder();
    let dir = dir.path();
    let made = json(&ok(
        dir,
        &[
            "sum",
            "encrypt",
            TEST,
            "--key",
            "k.pub",
            "--in",
            "a.csv?column=age",
            "--out",
            "a.ct",
            "--bits",
            "8",
            "--json",
        ],
    ));
    assert_eq!(
        (&made["ciphertexts"], &made["shape"], &made["bound_bits"]),
        (&json!(3), &json!([3]), &json!(8))
    );
    assert_eq!(values(dir, "a.ct"), json!([3, -4, 5]));
    ok(dir, &["sum", "encrypt", TEST, "--key", "k.pub", "--in", "a.csv?column=x", "--out", "x.ct"]);
    assert_eq!(values(dir, "x.ct"), json!([1.5, 2.25, -0.125]));
    ok(
        dir,
        &[
            "sum", "add", TEST, "--key", "k.pub", "--in", "a.ct", "--in", "x.ct", "--in", "a.ct", "--out",
            "s.ct",
        ],
    );
    assert_eq!(values(dir, "s.ct"), json!([7.5, -5.75, 9.875]));
    ok(dir, &["sum", "dot", TEST, "--key", "k.pub", "--in", "a.ct", "--weights", "w.csv", "--out", "d.ct"]);
    assert_eq!(values(dir, "d.ct"), json!([30 - 80 - 150]));
    // Standard output has the numbers and nothing else.
    let text = ok(dir, &["sum", "decrypt", TEST, "--key", "k.key", "--in", "d.ct"]);
    assert_eq!(stdout(&text), "-200\n");
    // Results are rerandomised unless that is not wanted.
    let twice = |out: &str, flag: &[&str]| {
        let args = ["sum", "dot", TEST, "--key", "k.pub", "--in", "a.ct", "--weights", "w.csv", "--out", out];
        ok(dir, &[&args[..], flag].concat());
        std::fs::read(dir.join(out)).unwrap()
    };
    assert_ne!(twice("1.ct", &[]), twice("2.ct", &[]));
    assert_eq!(twice("3.ct", &["--no-rerandomise"]), twice("4.ct", &["--no-rerandomise"]));
    // A matrix of weights: two outputs.
    std::fs::write(dir.join("m.csv"), "1,2,3\n-1,0,1\n").unwrap();
    ok(dir, &["sum", "dot", TEST, "--key", "k.pub", "--in", "a.ct", "--weights", "m.csv", "--out", "m.ct"]);
    assert_eq!(values(dir, "m.ct"), json!([3 - 8 + 15, 2]));
    ok(dir, &["sum", "decrypt", TEST, "--key", "k.key", "--in", "m.ct", "--out", "m.npy"]);
    assert!(std::fs::read(dir.join("m.npy")).unwrap().starts_with(b"\x93NUMPY"));
}

#[test]
fn images_and_packed_samples() {
    let dir = folder();
    let dir = dir.path();
    // 1 x 3 x 3, and a kernel that sums two neighbours of a row: NPY by hand, int64 in C order.
    let npy = |name: &str, shape: &str, values: &[i64]| {
        let mut header = format!("{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}, }}");
        while (10 + header.len() + 1) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        std::fs::write(dir.join(name), bytes).unwrap();
    };
    npy("image.npy", "(1, 3, 3)", &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    npy("kernel.npy", "(1, 1, 1, 2)", &[1, -2]);
    ok(dir, &["sum", "encrypt", TEST, "--key", "k.pub", "--in", "image.npy", "--out", "i.ct", "--bits", "8"]);
    ok(
        dir,
        &["sum", "conv", TEST, "--key", "k.pub", "--in", "i.ct", "--weights", "kernel.npy", "--out", "c.ct"],
    );
    let maps = json(&ok(dir, &["sum", "decrypt", TEST, "--key", "k.key", "--in", "c.ct", "--json"]));
    assert_eq!((&maps["shape"], &maps["values"]), (&json!([1, 3, 2]), &json!([-3, -4, -6, -7, -9, -10])));

    // Twenty samples of three numbers in a few ciphertexts, the same weights for all.
    let rows: Vec<String> = (0..20).map(|i| format!("{},{},{}", i, -i, 2 * i)).collect();
    std::fs::write(dir.join("rows.csv"), rows.join("\n") + "\n").unwrap();
    let made = json(&ok(
        dir,
        &[
            "sum", "encrypt", TEST, "--key", "k.pub", "--in", "rows.csv", "--out", "p.ct", "--bits", "8",
            "--pack", "--terms", "3", "--json",
        ],
    ));
    assert_eq!(made["packing"]["samples"], 20);
    assert!(made["ciphertexts"].as_u64().unwrap() < 10, "{made}");
    assert_eq!(made["packing"]["slot_bits"], 8 + 8 + 2);
    ok(dir, &["sum", "dot", TEST, "--key", "k.pub", "--in", "p.ct", "--weights", "w.csv", "--out", "pd.ct"]);
    let want: Vec<i64> = (0..20).map(|i| 10 * i - 20 * i - 60 * i).collect();
    assert_eq!(values(dir, "pd.ct"), json!(want));
}

#[test]
fn keys_and_ciphertexts_of_python_paillier() {
    let dir = folder();
    let dir = dir.path();
    ok(dir, &["sum", "keygen", "--bits", "512", TEST, "--out", "p.json"]);
    ok(dir, &["sum", "public", TEST, "--key", "p.json", "--out", "q.json"]);
    // A name's ending says what is in it.
    for (from, to, words) in [("p.json", "p.txt", "ends in .json"), ("q.json", "q.pub", "ends in .json")] {
        std::fs::copy(dir.join(from), dir.join(to)).unwrap();
        refused(
            &run(dir, &["sum", "encrypt", TEST, "--key", to, "--in", "a.csv", "--out", "no.ct"]),
            &[to, words],
        );
    }
    // A file of phe's has no place for what makes these modes, and a key that is not what it says is worse than none.
    for mode in ["short-exponent", "special-key"] {
        let keygen = ["sum", "keygen", "--bits", "512", TEST, "--mode", mode, "--out", "other.json"];
        refused(&run(dir, &keygen), &["other.json", mode, "textbook"]);
        assert!(!dir.join("other.json").exists());
    }
    // Nor are ciphertexts written that no command reads.
    ok(dir, &["sum", "keygen", "--bits", "512", TEST, "--mode", "special-key", "--out", "sp.key"]);
    ok(dir, &["sum", "encrypt", TEST, "--key", "sp.key", "--in", "w.csv", "--out", "sp.ct"]);
    for computed in [
        &["encrypt", "--in", "w.csv"][..],
        &["add", "--in", "sp.ct"],
        &["dot", "--in", "sp.ct", "--weights", "w.csv"],
    ] {
        let to = ["--key", "sp.key", "--out", "sp.jsonl", TEST];
        refused(&run(dir, &[&["sum"], computed, &to].concat()), &["sp.jsonl", "a special key"]);
        assert!(!dir.join("sp.jsonl").exists());
    }
    // The public half of a short-exponent key is phe's by n alone: what is named is the key that the file holds.
    ok(dir, &["sum", "keygen", "--bits", "512", TEST, "--out", "short.key"]);
    let held =
        json(&ok(dir, &["sum", "public", TEST, "--key", "short.key", "--out", "short.json", "--json"]));
    let seen = json(&ok(dir, &["sum", "inspect", "short.json", "--json"]));
    assert_eq!(held["key"], seen["key"]);
    assert_eq!(held["mode"], "textbook");
    // That is said, and what is encrypted with it decrypts with the same secret key, from either kind of file.
    let own = json(&ok(dir, &["sum", "inspect", "short.key", "--json"]))["key"].clone();
    let said =
        stderr(&ok(dir, &["sum", "public", TEST, "--key", "short.key", "--out", "short.json", "--force"]));
    assert!(said.contains(own.as_str().unwrap()) && said.contains("by n alone"), "{said}");
    for file in ["short.ct", "short.jsonl"] {
        ok(dir, &["sum", "encrypt", TEST, "--key", "short.json", "--in", "a.csv?column=x", "--out", file]);
        let back = json(&ok(dir, &["sum", "decrypt", TEST, "--key", "short.key", "--in", file, "--json"]));
        assert_eq!(back["values"].as_array().map(Vec::len), Some(3), "{back}");
    }
    let public: serde_json::Value =
        serde_json::from_slice(&std::fs::read(dir.join("q.json")).unwrap()).unwrap();
    assert_eq!((&public["kty"], &public["alg"]), (&json!("DAJ"), &json!("PAI-GN1")));
    ok(dir, &["sum", "encrypt", TEST, "--key", "q.json", "--in", "a.csv?column=x", "--out", "x.jsonl"]);
    let lines = std::fs::read_to_string(dir.join("x.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 3);
    ok(
        dir,
        &[
            "sum",
            "add",
            TEST,
            "--key",
            "q.json",
            "--in",
            "x.jsonl",
            "--in",
            "x.jsonl",
            "--out",
            "y.jsonl",
            "--magnitude",
            "9",
        ],
    );
    let got = json(&ok(dir, &["sum", "decrypt", TEST, "--key", "p.json", "--in", "y.jsonl", "--json"]));
    assert_eq!(got["values"], json!([3.0, 4.5, -0.25]));
}

#[test]
fn what_is_inspected_is_shown_and_nothing_secret() {
    let dir = folder();
    let dir = dir.path();
    ok(dir, &["sum", "encrypt", TEST, "--key", "k.pub", "--in", "w.csv", "--out", "w.ct", "--bits", "8"]);
    let key = json(&ok(dir, &["sum", "inspect", "k.key", "--json"]));
    let public = json(&ok(dir, &["sum", "inspect", "k.pub", "--json"]));
    assert_eq!((&key["kind"], &public["kind"]), (&json!("secret key"), &json!("public key")));
    assert_eq!((&key["key"], &key["bits"], &key["security"]), (&public["key"], &json!(512), &json!(null)));
    let file = json(&ok(dir, &["sum", "inspect", "w.ct", "--json"]));
    assert_eq!(
        (&file["kind"], &file["key"], &file["shape"]),
        (&json!("ciphertexts"), &key["key"], &json!([3]))
    );
    assert!(file["headroom_bits"].as_u64().unwrap() > 400);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(dir.join("k.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

/// As many bits as inspect says fit, whatever the key.
#[test]
fn headroom_is_what_fits() {
    let dir = folder();
    let dir = dir.path();
    std::fs::write(dir.join("x.csv"), "1\n").unwrap();
    ok(dir, &["sum", "encrypt", TEST, "--key", "k.pub", "--in", "x.csv", "--out", "0.ct", "--bits", "64"]);
    let weigh = |weight: &str, from: &str, to: &str| {
        std::fs::write(dir.join("y.csv"), format!("{weight}\n")).unwrap();
        let files = ["--in", from, "--weights", "y.csv", "--out", to];
        run(dir, &[&["sum", "dot", TEST, "--key", "k.pub"], &files[..]].concat())
    };
    let weights = ["9223372036854775807"].into_iter().chain(["4611686018427387904"; 6]);
    for (i, weight) in weights.enumerate() {
        assert_eq!(code(&weigh(weight, &format!("{i}.ct"), &format!("{}.ct", i + 1))), 0);
    }
    let room = json(&ok(dir, &["sum", "inspect", "7.ct", "--json"]))["headroom_bits"].as_u64().unwrap();
    assert_eq!(room, 11);
    assert_eq!(code(&weigh(&(1u64 << room).to_string(), "7.ct", "fits.ct")), 0);
}

#[test]
fn what_is_wrong_is_said_in_a_line_and_leaves_nothing() {
    let dir = folder();
    let dir = dir.path();
    ok(dir, &["sum", "keygen", "--bits", "512", TEST, "--out", "other.key"]);
    // As some editors save it.
    ok(dir, &["sum", "keygen", "--bits", "512", TEST, "--out", "marked.json"]);
    let marked = [b"\xef\xbb\xbf", &std::fs::read(dir.join("marked.json")).unwrap()[..]].concat();
    std::fs::write(dir.join("marked.json"), &marked).unwrap();
    ok(dir, &["sum", "public", TEST, "--key", "marked.json", "--out", "pub.json"]);
    ok(dir, &["sum", "encrypt", TEST, "--key", "k.pub", "--in", "w.csv", "--out", "w.ct", "--bits", "8"]);
    std::fs::write(dir.join("w4.csv"), "1\n2\n3\n4\n").unwrap();
    std::fs::write(dir.join("huge.csv"), "9223372036854775807\n1\n1\n").unwrap();
    std::fs::write(dir.join("bad.csv"), "1\nx\n").unwrap();
    std::fs::write(dir.join("bad.jsonl"), "{\"v\":\"0\",\"e\":0}\n").unwrap();
    let mut cut = std::fs::read(dir.join("w.ct")).unwrap();
    cut.truncate(cut.len() - 9);
    std::fs::write(dir.join("cut.ct"), &cut).unwrap();
    let mut flipped = std::fs::read(dir.join("w.ct")).unwrap();
    let at = flipped.len() / 2;
    flipped[at] ^= 1;
    std::fs::write(dir.join("flipped.ct"), flipped).unwrap();
    let before = || {
        let mut names: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let there = before();
    for (args, words) in [
        (vec!["keygen", "--bits", "512", "--out", "n.key"], "--insecure-test-key"),
        (vec!["keygen", "--bits", "1000", TEST, "--out", "n.key"], "1000"),
        (
            vec!["keygen", "--bits", "8192", "--out", "n.key"],
            "blindcore: keys of 8192 bits are not made; use 2048,",
        ),
        (vec!["keygen", "--out", "k.key"], "--force"),
        (vec!["public", "--key", "k.key", "--out", "n.pub"], "--insecure-test-key"),
        (
            vec!["public", TEST, "--key", "k.pub", "--out", "n.pub"],
            "k.pub is a public key where a secret key",
        ),
        (
            vec!["decrypt", TEST, "--key", "pub.json", "--in", "w.ct"],
            "pub.json is a public key where a secret key",
        ),
        (vec!["public", TEST, "--key", "k.key", "--out", "k.key", "--force"], "same command"),
        (vec!["public", TEST, "--key", "k.key", "--out", "other.key", "--force"], "is a secret key"),
        (vec!["public", TEST, "--key", "marked.json", "--out", "marked.json", "--force"], "same command"),
        (vec!["public", TEST, "--key", "k.key", "--out", "marked.json", "--force"], "is a secret key"),
        (vec!["public", TEST, "--key", "nothere", "--out", "n.pub"], "nothere"),
        (vec!["encrypt", TEST, "--key", "k.pub", "--in", "bad.csv", "--out", "n.ct"], "bad.csv"),
        (vec!["encrypt", TEST, "--key", "k.pub", "--in", "huge.csv", "--out", "n.ct", "--bits", "8"], "2^"),
        (vec!["encrypt", TEST, "--key", "w.csv", "--in", "w.csv", "--out", "n.ct"], "public key"),
        (vec!["encrypt", TEST, "--key", "k.pub", "--in", "w.csv", "--out", "nofolder/n.ct"], "nofolder"),
        (vec!["encrypt", TEST, "--key", "k.pub", "--in", "w.csv", "--out", "n.ct", "--bits", "99"], "99"),
        (vec!["add", TEST, "--key", "other.key", "--in", "w.ct", "--out", "n.ct"], "key"),
        (vec!["add", TEST, "--key", "k.pub", "--in", "cut.ct", "--out", "n.ct"], "cut.ct"),
        (vec!["add", TEST, "--key", "k.pub", "--in", "flipped.ct", "--out", "n.ct"], "flipped.ct"),
        (vec!["add", TEST, "--key", "k.pub", "--in", "w.csv", "--out", "n.ct"], "w.csv"),
        (vec!["add", TEST, "--key", "k.pub", "--in", "bad.jsonl", "--out", "n.ct"], "zero"),
        (vec!["dot", TEST, "--key", "k.pub", "--in", "w.ct", "--weights", "w4.csv", "--out", "n.ct"], "4"),
        (
            vec!["conv", TEST, "--key", "k.pub", "--in", "w.ct", "--weights", "w.csv", "--out", "n.ct"],
            "outputs x channels",
        ),
        (vec!["decrypt", TEST, "--key", "other.key", "--in", "w.ct"], "under key"),
        (vec!["decrypt", TEST, "--key", "k.key", "--in", "cut.ct", "--out", "n.csv"], "cut.ct"),
        (vec!["decrypt", TEST, "--key", "k.key", "--in", "w.ct", "--out", "n.xyz"], "xyz"),
        (vec!["inspect", "w.csv"], "w.csv"),
        (vec!["inspect", "bad.jsonl"], "python-paillier"),
        // Nothing that is read or secret is replaced.
        (vec!["encrypt", TEST, "--key", "k.pub", "--in", "w.csv", "--out", "k.key"], "would be lost"),
        (vec!["encrypt", TEST, "--key", "k.pub", "--in", "w.csv", "--out", "w.csv"], "same command"),
        (vec!["add", TEST, "--key", "k.pub", "--in", "w.ct", "--out", "other.key"], "would be lost"),
        (vec!["add", TEST, "--key", "k.pub", "--in", "w.ct", "--out", "w.ct"], "same command"),
        (vec!["decrypt", TEST, "--key", "k.key", "--in", "w.ct", "--out", "k.key"], "same command"),
        // What does not apply is not ignored.
        (
            vec!["encrypt", TEST, "--key", "k.pub", "--in", "w.csv", "--out", "n.ct", "--magnitude", "9"],
            "--bits",
        ),
        (
            vec!["encrypt", TEST, "--key", "k.pub", "--in", "a.csv?column=x", "--out", "n.ct", "--bits", "9"],
            "--magnitude",
        ),
    ] {
        let args = [&["sum"], &args[..]].concat();
        refused(&run(dir, &args), &[words]);
        assert_eq!(before(), there, "{args:?}");
    }
    assert_eq!(std::fs::read(dir.join("marked.json")).unwrap(), marked);
    // Sums that could wrap are refused before they are computed: 512 bits hold no products of 63 bits nine times over.
    std::fs::copy(dir.join("w.ct"), dir.join("1.ct")).unwrap();
    let mut last = None;
    for i in 1..12 {
        let (from, to) = (format!("{i}.ct"), format!("{}.ct", i + 1));
        std::fs::write(dir.join("big.csv"), "9223372036854775807\n").unwrap();
        std::fs::write(
            dir.join("three.csv"),
            "9223372036854775807\n9223372036854775807\n9223372036854775807\n",
        )
        .unwrap();
        let weights = if i == 1 { "three.csv" } else { "big.csv" };
        let output = run(
            dir,
            &["sum", "dot", TEST, "--key", "k.pub", "--in", &from, "--weights", weights, "--out", &to],
        );
        if code(&output) != 0 {
            last = Some(output);
            break;
        }
    }
    refused(&last.expect("it ends"), &["could"]);
}

#[test]
fn integers_are_exact_however_long() {
    let dir = folder();
    let dir = dir.path();
    let most = i64::MAX.to_string();
    for (file, text) in [
        ("x.csv", format!("{most}\n-{most}\n5\n-1\n0\n")),
        ("most.csv", format!("{most}\n")),
        ("one.csv", "1\n".into()),
    ] {
        std::fs::write(dir.join(file), text).unwrap();
    }
    let step = |args: &[&str]| ok(dir, &[&["sum"], args].concat());
    step(&["encrypt", TEST, "--key", "k.pub", "--in", "x.csv", "--out", "x.ct", "--bits", "64"]);
    step(&["add", TEST, "--key", "k.pub", "--in", "x.ct", "--in", "x.ct", "--in", "x.ct", "--out", "y.ct"]);
    let decrypt = |args: &[&str]| {
        run(dir, &[&["sum", "decrypt", TEST, "--key", "k.key", "--in", "y.ct"], args].concat())
    };
    // One of them is too long for 64 bits, and all are what they are.
    let text = "27670116110564327421\n-27670116110564327421\n15\n-3\n0\n";
    assert_eq!((stdout(&decrypt(&[])).as_str(), stderr(&decrypt(&[])).as_str()), (text, ""));
    assert_eq!(
        json(&decrypt(&["--json"]))["values"],
        json!(["27670116110564327421", "-27670116110564327421", "15", "-3", "0"])
    );
    assert_eq!(code(&decrypt(&["--out", "y.csv"])), 0);
    assert_eq!(std::fs::read_to_string(dir.join("y.csv")).unwrap(), text);
    refused(&decrypt(&["--out", "y.npy"]), &["y.npy", "element [0]", "64 bits", "CSV or JSON"]);
    assert!(!dir.join("y.npy").exists());
    let scaled = "276701161105643274.21\n-276701161105643274.21\n0.15\n-0.03\n0.00\n";
    assert_eq!(stdout(&decrypt(&["--scale", "2"])), scaled);
    // Four times 63 bits: more than a float of 53 could say.
    step(&["encrypt", TEST, "--key", "k.pub", "--in", "most.csv", "--out", "0.ct", "--bits", "64"]);
    for i in 0..3 {
        let (from, to) = (format!("{i}.ct"), format!("{}.ct", i + 1));
        step(&["dot", TEST, "--key", "k.pub", "--in", &from, "--weights", "most.csv", "--out", &to]);
    }
    let power = step(&["decrypt", TEST, "--key", "k.key", "--in", "3.ct"]);
    let want = "7237005577332262210834635695349653859421902880380109739573089701262786560001\n";
    assert_eq!(stdout(&power), want, "(2^63 - 1)^4");
}

#[test]
fn nothing_that_is_read_or_secret_is_replaced() {
    let dir = folder();
    let dir = dir.path();
    ok(dir, &["sum", "encrypt", TEST, "--key", "k.pub", "--in", "a.csv?column=age", "--out", "a.ct"]);
    let weights = std::fs::read(dir.join("w.csv")).unwrap();
    for out in ["w.csv", "./w.csv"] {
        let args = ["sum", "dot", TEST, "--key", "k.pub", "--in", "a.ct", "--weights", "w.csv", "--out", out];
        refused(&run(dir, &args), &["read by the same command"]);
        assert_eq!(std::fs::read(dir.join("w.csv")).unwrap(), weights);
    }
    // python-paillier's key, wherever its JSON begins, and if it is one that is refused here.
    ok(dir, &["sum", "keygen", "--bits", "512", TEST, "--out", "p.json"]);
    let key = std::fs::read_to_string(dir.join("p.json")).unwrap();
    for text in [format!(" \n\t{key}"), key.replace("\"q\"", "\"r\"")] {
        std::fs::write(dir.join("x.ct"), &text).unwrap();
        let args = ["sum", "add", TEST, "--key", "k.pub", "--in", "a.ct", "--out", "x.ct"];
        refused(&run(dir, &args), &["is a secret key, which would be lost"]);
        assert_eq!(std::fs::read_to_string(dir.join("x.ct")).unwrap(), text);
    }
    // A file that can't be read may be a key; root reads all.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::copy(dir.join("k.key"), dir.join("shut.ct")).unwrap();
        std::fs::set_permissions(dir.join("shut.ct"), std::fs::Permissions::from_mode(0o000)).unwrap();
        let args = ["sum", "add", TEST, "--key", "k.pub", "--in", "a.ct", "--out", "shut.ct"];
        refused(&run(dir, &args), &["secret key"]);
        // A key that others may read is taken, with a word.
        std::fs::set_permissions(dir.join("k.key"), std::fs::Permissions::from_mode(0o644)).unwrap();
        let open = ok(dir, &["sum", "decrypt", TEST, "--key", "k.key", "--in", "a.ct"]);
        assert_eq!(stdout(&open), "3\n-4\n5\n");
        assert!(stderr(&open).contains("secret key k.key is open to others"), "{}", stderr(&open));
        std::fs::set_permissions(dir.join("k.key"), std::fs::Permissions::from_mode(0o600)).unwrap();
        let shut = ok(dir, &["sum", "decrypt", TEST, "--key", "k.key", "--in", "a.ct"]);
        assert_eq!(stderr(&shut), "");
    }
}

#[test]
fn outputs_are_looked_at_before_anything_else() {
    let dir = folder();
    let dir = dir.path();
    // The key and the numbers are not there: the output is what is said.
    let with = |command: &[&str], out: &str| run(dir, &[command, &["--key", "none", "--out", out]].concat());
    let dot = ["sum", "dot", "--in", "none", "--weights", "w.csv"];
    for command in
        [&["sum", "encrypt", "--in", "none"][..], &["sum", "add", "--in", "none"], &dot, &["sum", "public"]]
    {
        refused(&with(command, "nowhere/x.ct"), &["there is no folder nowhere"]);
        refused(&with(command, "-"), &["--out - names no file"]);
    }
    for out in ["nowhere/x.csv", "x.txt", "x"] {
        refused(&with(&["sum", "decrypt", "--in", "none"], out), &[out]);
    }
    refused(&run(dir, &["sum", "keygen", "--out", "-"]), &["--out - names no file"]);
    refused(&run(dir, &["sum", "keygen", "--out", "nowhere/k.key"]), &["there is no folder nowhere"]);
    assert!(!dir.join("-").exists());
    // Standard output is not a file, even where one has that name.
    ok(dir, &["sum", "encrypt", TEST, "--key", "k.pub", "--in", "a.csv?column=age", "--out", "a.ct"]);
    std::fs::copy(dir.join("k.key"), dir.join("-")).unwrap();
    assert_eq!(stdout(&ok(dir, &["sum", "decrypt", TEST, "--key", "k.key", "--in", "a.ct"])), "3\n-4\n5\n");
}

#[cfg(unix)]
#[test]
fn pipes_keep_nobody_waiting_and_names_need_not_be_text() {
    use std::os::unix::ffi::OsStrExt;
    let dir = folder();
    let dir = dir.path();
    ok(dir, &["sum", "encrypt", TEST, "--key", "k.pub", "--in", "a.csv?column=age", "--out", "a.ct"]);
    for name in ["pipe.ct", "pipe.csv"] {
        let made = std::process::Command::new("mkfifo").arg(dir.join(name)).status().expect("mkfifo runs");
        assert!(made.success());
    }
    let ordinary = &["not an ordinary file"];
    refused(&run(dir, &["sum", "inspect", "pipe.ct"]), ordinary);
    refused(
        &run(dir, &["sum", "encrypt", TEST, "--key", "k.pub", "--in", "w.csv", "--out", "pipe.ct"]),
        ordinary,
    );
    refused(&run(dir, &["sum", "add", TEST, "--key", "k.pub", "--in", "a.ct", "--out", "pipe.ct"]), ordinary);
    refused(
        &run(dir, &["sum", "decrypt", TEST, "--key", "k.key", "--in", "a.ct", "--out", "pipe.csv"]),
        ordinary,
    );
    // What is not text is shown as it can be.
    let odd = |name: &[u8]| std::ffi::OsStr::from_bytes(name).to_owned();
    for (args, out) in [
        (&["sum", "encrypt", TEST, "--key", "k.pub", "--in", "w.csv"][..], odd(b"b\xff.ct")),
        (&["sum", "add", TEST, "--key", "k.pub", "--in", "a.ct"], odd(b"c\xff.ct")),
        (&["sum", "decrypt", TEST, "--key", "k.key", "--in", "a.ct"], odd(b"d\xff.csv")),
        (&["sum", "keygen", "--bits", "512", TEST], odd(b"k\xff.key")),
        (&["sum", "public", TEST, "--key", "k.key"], odd(b"k\xff.pub")),
    ] {
        let made =
            crate::common::blindcore(dir).args(args).arg("--json").arg("--out").arg(&out).output().unwrap();
        assert!(json(&made)["out"].as_str().unwrap().contains('\u{fffd}'), "{}", stderr(&made));
        assert_eq!(code(&made), 0);
    }
}

/// Columns of standard input can be chosen, too: `-?column=age` is a value, although it begins with a dash.
#[test]
fn columns_of_standard_input_are_asked_for_by_name() {
    let dir = folder();
    let dir = dir.path();
    let reading = |file: &str, args: &[&str]| {
        let input = std::fs::File::open(dir.join(file)).unwrap();
        blindcore(dir).arg("sum").args(args).stdin(input).output().unwrap()
    };
    let encrypt = ["encrypt", TEST, "--key", "k.pub", "--in", "-?column=age", "--out", "a.ct"];
    let encrypted = reading("a.csv", &encrypt);
    assert_eq!(code(&encrypted), 0, "{}", stderr(&encrypted));
    assert_eq!(values(dir, "a.ct"), json!([3, -4, 5]));
    std::fs::write(dir.join("named.csv"), "w,v\n10,1\n20,1\n-30,1\n").unwrap();
    let weights = ["--in", "a.ct", "--weights", "-?column=w", "--out", "d.ct"];
    let weighed = reading("named.csv", &[&["dot", TEST, "--key", "k.pub"], &weights[..]].concat());
    assert_eq!(code(&weighed), 0, "{}", stderr(&weighed));
    assert_eq!(values(dir, "d.ct"), json!([30 - 80 - 150]));
    // Read and encrypted, and nobody is there to score it.
    let server = ["--server", "http://127.0.0.1:1", "--model", "m", "--key", "k.key", "--in", "-?column=age"];
    refused(&reading("a.csv", &[&["score", TEST], &server[..]].concat()), &["no service answers"]);
}

#[test]
fn what_is_over_a_limit_or_says_nothing_is_named() {
    let dir = folder();
    let dir = dir.path();
    std::fs::write(dir.join("o.csv"), "1.5\n2e9\n").unwrap();
    std::fs::write(dir.join("o8.csv"), "1,2\n3,128\n").unwrap();
    std::fs::write(dir.join("small.csv"), "1e-10\n0.5\n").unwrap();
    std::fs::write(dir.join("none.jsonl"), "\n").unwrap();
    let encrypt = |file: &str, more: &[&str]| {
        let args = ["sum", "encrypt", TEST, "--force", "--key", "k.pub", "--in", file, "--out", "n.ct"];
        run(dir, &[&args[..], more].concat())
    };
    refused(
        &encrypt("o.csv", &[]),
        &["line 2, column 1 of o.csv: 2e9 is over the declared magnitude of 1e9; say --magnitude 2e9"],
    );
    std::fs::write(dir.join("third.csv"), "0.3\n").unwrap();
    refused(
        &encrypt("third.csv", &["--precision", "0.1", "--magnitude", "0.01"]),
        &["line 1, column 1 of third.csv: 0.3 is over the declared magnitude of 0.01;"],
    );
    std::fs::write(dir.join("long.csv"), "9007199254740993.0\n").unwrap();
    refused(
        &encrypt("long.csv", &[]),
        &["long.csv: 9007199254740993.0 is over the declared magnitude of 1e9;"],
    );
    // Rows and a column are of two shapes, and what to do is said.
    for (file, text) in [("rows.csv", "1,2,3\n"), ("list.csv", "1\n2\n3\n")] {
        std::fs::write(dir.join(file), text).unwrap();
        let to = file.replace("csv", "ct");
        ok(dir, &["sum", "encrypt", TEST, "--key", "k.pub", "--in", file, "--out", &to]);
    }
    let add = ["sum", "add", TEST, "--key", "k.pub", "--in", "rows.ct", "--in", "list.ct", "--out", "n.ct"];
    refused(&run(dir, &add), &["list.ct", "shape [3] where [1, 3] is asked for; add batches of one shape"]);
    let eight = "line 2, column 2 of o8.csv: 128 is over the declared 127 of --bits 8";
    refused(&encrypt("o8.csv", &["--bits", "8", "--pack"]), &[eight, "say --bits 9"]);
    let score = ["sum", "score", TEST, "--server", "http://127.0.0.1:1", "--model", "m", "--key", "k.key"];
    refused(&run(dir, &[&score[..], &["--in", "o8.csv", "--bits", "8"]].concat()), &[eight]);
    assert!(stderr(&encrypt("small.csv", &[])).contains("1 of 2 numbers of small.csv are so small"));
    let header = format!("{:<117}\n", "{'descr': '<i8', 'fortran_order': False, 'shape': (), }");
    let bytes =
        [b"\x93NUMPY\x01\x00".as_slice(), &118u16.to_le_bytes(), header.as_bytes(), &7i64.to_le_bytes()];
    std::fs::write(dir.join("s.npy"), bytes.concat()).unwrap();
    refused(&encrypt("s.npy", &["--header"]), &["s.npy", "leave out --header"]);
    for command in [&["add", "--key", "k.pub", "--out", "e.ct"][..], &["decrypt", "--key", "k.key"]] {
        let none = run(dir, &[&["sum"], command, &[TEST, "--in", "none.jsonl"]].concat());
        refused(&none, &["none.jsonl", "holds no ciphertexts"]);
    }
}

#[test]
fn ciphertexts_under_another_key_are_asked_about() {
    let dir = folder();
    let dir = dir.path();
    for name in ["a", "b"] {
        ok(dir, &["sum", "keygen", "--bits", "512", TEST, "--out", &format!("{name}.json")]);
    }
    std::fs::write(dir.join("x.csv"), "1\n-2\n").unwrap();
    ok(dir, &["sum", "encrypt", TEST, "--key", "a.json", "--in", "x.csv", "--out", "x.jsonl"]);
    refused(
        &run(dir, &["sum", "decrypt", TEST, "--key", "b.json", "--in", "x.jsonl"]),
        &["x.jsonl", "under"],
    );
    assert_eq!(stdout(&ok(dir, &["sum", "decrypt", TEST, "--key", "a.json", "--in", "x.jsonl"])), "1\n-2\n");
    refused(
        &run(
            dir,
            &["sum", "encrypt", TEST, "--key", "a.json", "--in", "x.csv", "--out", "n.ct", "--bits", "1"],
        ),
        &["declared 0"],
    );
}
