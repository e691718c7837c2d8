//! `blindcore sum` on numbers beyond floats: exact, or said not to be.

use serde_json::json;

use crate::common::{json, refused, run, stderr, stdout};
use crate::sum::{TEST, folder, ok, values};

/// Of numbers of which one passes the largest float all are readable.
#[test]
fn what_is_over_the_largest_float_is_exact() {
    let dir = folder();
    let dir = dir.path();
    ok(dir, &["sum", "keygen", "--bits", "512", TEST, "--out", "p.json"]);
    let (large, small) = (2f64.powi(1023), -2f64.powi(997));
    std::fs::write(dir.join("x.csv"), format!("{large:?}\n{small:?}\n")).unwrap();
    // 2^1024, digit by digit.
    let mut digits = vec![1u8];
    for _ in 0..1024 {
        let mut carry = 0;
        for digit in &mut digits {
            carry += 2 * *digit;
            (*digit, carry) = (carry % 10, carry / 10);
        }
        digits.extend((carry > 0).then_some(carry));
    }
    let power: String = digits.iter().rev().map(|digit| char::from(b'0' + digit)).collect();
    let text = [power, format!("{:?}", 2.0 * small)];
    for (key, public, ending) in [("k.key", "k.pub", "ct"), ("p.json", "p.json", "jsonl")] {
        let (x, y) = (format!("x.{ending}"), format!("y.{ending}"));
        let range = ["--magnitude", "1e308", "--precision", "1e300"];
        let encrypt = ["sum", "encrypt", TEST, "--key", public, "--in", "x.csv", "--out", &x];
        ok(dir, &[&encrypt[..], &range].concat());
        let add = ["sum", "add", TEST, "--key", public, "--in", &x, "--in", &x, "--out", &y];
        ok(dir, &[&add[..], &range[..2]].concat());
        let decrypt =
            |args: &[&str]| run(dir, &[&["sum", "decrypt", TEST, "--key", key, "--in", &y], args].concat());
        assert_eq!(stdout(&decrypt(&[])), text.join("\n") + "\n", "{}", stderr(&decrypt(&[])));
        assert_eq!(json(&decrypt(&["--json"]))["values"], json!(text));
        let npy = decrypt(&["--out", "y.npy"]);
        refused(&npy, &["y.npy", "element [0] is over the largest float, 1.8e308", "CSV or JSON"]);
        assert!(!dir.join("y.npy").exists());
        refused(&decrypt(&["--scale", "2"]), &["these numbers are floats"]);
    }
}

#[test]
fn numbers_are_exact_or_said_not_to_be() {
    let dir = folder();
    let dir = dir.path();
    ok(dir, &["sum", "keygen", "--bits", "512", TEST, "--out", "p.json"]);
    let phe = |file: &str| run(dir, &["sum", "decrypt", TEST, "--key", "p.json", "--in", file]);
    std::fs::write(dir.join("big.csv"), "9007199254740993\n-9223372036854775808\n1\n").unwrap();
    ok(
        dir,
        &["sum", "encrypt", TEST, "--key", "p.json", "--in", "big.csv", "--out", "big.jsonl", "--bits", "64"],
    );
    let exact = phe("big.jsonl");
    assert_eq!(stdout(&exact), "9007199254740993\n-9223372036854775808\n1\n", "{}", stderr(&exact));
    assert_eq!(stderr(&exact), "");
    // Twice that is not an integer of 63 bits any more, and as exact.
    ok(
        dir,
        &[
            "sum",
            "add",
            TEST,
            "--key",
            "p.json",
            "--in",
            "big.jsonl",
            "--in",
            "big.jsonl",
            "--out",
            "two.jsonl",
            "--magnitude",
            "1e19",
        ],
    );
    let two = "18014398509481986\n-18446744073709551616\n2\n";
    assert_eq!((stdout(&phe("two.jsonl")).as_str(), stderr(&phe("two.jsonl")).as_str()), (two, ""));
    // Floats as before.
    std::fs::write(dir.join("f.csv"), "0.5\n-2.25\n").unwrap();
    ok(dir, &["sum", "encrypt", TEST, "--key", "p.json", "--in", "f.csv", "--out", "f.jsonl"]);
    assert_eq!(stdout(&phe("f.jsonl")), "0.5\n-2.25\n");

    let encrypt = ["sum", "encrypt", TEST, "--key", "k.pub", "--in", "f.csv", "--out", "f.ct"];
    for (precision, said) in
        [("0", "the precision is 0"), ("-1", "the precision is -1"), ("inf", "the precision is inf")]
    {
        let args = [&encrypt[..], &["--precision", precision]].concat();
        refused(&run(dir, &args), &[said, "above zero and finite"]);
    }
    for option in ["--precision", "--magnitude"] {
        for text in ["", "0,01", "small"] {
            let args = [&encrypt[..], &[option, text]].concat();
            refused(
                &run(dir, &args),
                &[option, &format!("'{text}'"), "not a number; say one over 0, such as"],
            );
        }
    }
    // What no float is near is quoted, and not said as the 0 or the infinity that it is read as.
    for option in ["--precision", "--magnitude"] {
        for text in ["1e-400", "1e400"] {
            let args = [&encrypt[..], &[option, text]].concat();
            refused(&run(dir, &args), &[option, &format!("'{text}'"), "not within 4.9e-324 to 1.8e308"]);
        }
    }
    // A single number without an axis.
    let header = format!("{:<117}\n", "{'descr': '<i8', 'fortran_order': False, 'shape': (), }");
    let bytes =
        [b"\x93NUMPY\x01\x00".as_slice(), &118u16.to_le_bytes(), header.as_bytes(), &7i64.to_le_bytes()];
    std::fs::write(dir.join("s.npy"), bytes.concat()).unwrap();
    ok(dir, &["sum", "encrypt", TEST, "--key", "k.pub", "--in", "s.npy", "--out", "s.ct"]);
    assert_eq!(values(dir, "s.ct"), json!([7]));
}
