//! `blindcore sum` in decimal units: no part of a cent comes or goes.

use serde_json::json;

use crate::common::{code, json, refused, run, stderr, stdout};
use crate::sum::{TEST, folder, ok, values};

#[test]
fn cents_stay_cents() {
    let dir = folder();
    let dir = dir.path();
    std::fs::write(dir.join("prices.csv"), "0.1\n0.29\n-1234.56\n").unwrap();
    std::fs::write(dir.join("fee.csv"), "0.01\n").unwrap();
    std::fs::write(dir.join("rates.csv"), "1,0.5,0.07\n").unwrap();
    std::fs::write(dir.join("thirds.csv"), format!("{},1,1\n", 1.0 / 3.0)).unwrap();
    for file in ["prices", "fee"] {
        let (from, to) = (format!("{file}.csv"), format!("{file}.ct"));
        let args =
            ["sum", "encrypt", TEST, "--key", "k.pub", "--in", &from, "--out", &to, "--precision", "0.01"];
        ok(dir, &args);
    }
    // The operands in either order, many times over: no part of a cent comes or goes.
    let mut total = "fee.ct".to_owned();
    for i in 0..2 {
        let to = format!("total{i}.ct");
        ok(dir, &["sum", "add", TEST, "--key", "k.pub", "--in", &total, "--in", "prices.ct", "--out", &to]);
        total = to;
    }
    let decrypted = |file: &str| run(dir, &["sum", "decrypt", TEST, "--key", "k.key", "--in", file]);
    assert_eq!(stdout(&decrypted("total1.ct")), "0.21\n0.59\n-2469.11\n");
    let header = json(&ok(dir, &["sum", "inspect", "total1.ct", "--json"]));
    assert_eq!((&header["exponent"], &header["decimals"]), (&json!(0), &json!(2)));

    // Weights that were written with few digits are kept; others are rounded, and that is said.
    let dot = |weights: &str, out: &str| {
        ok(
            dir,
            &["sum", "dot", TEST, "--key", "k.pub", "--in", "prices.ct", "--weights", weights, "--out", out],
        )
    };
    assert!(!stderr(&dot("rates.csv", "dot.ct")).contains("rounded"));
    assert_eq!(stdout(&decrypted("dot.ct")), "-86.1742\n");
    let said = stderr(&dot("thirds.csv", "thirds.ct"));
    assert!(said.contains("the weights of thirds.csv are rounded to 1e-9; --precision"), "{said}");
    assert!(!said.contains("count as 0"), "{said}");
    std::fs::write(dir.join("tiny.csv"), "0.5,1e-12,0\n").unwrap();
    let said = stderr(&dot("tiny.csv", "tiny.ct"));
    assert!(said.contains("1 of 3 weights of tiny.csv are so small that they count as 0"), "{said}");
    // A column of CSV is one row, which is said to who has a weight for rows of one number.
    std::fs::write(dir.join("one.csv"), "2\n").unwrap();
    let column = ["--in", "prices.ct", "--weights", "one.csv", "--out", "one.ct"];
    let column = run(dir, &[&["sum", "dot", TEST, "--key", "k.pub"], &column[..]].concat());
    refused(
        &column,
        &["[..., 1] for weights [1]", "give a weight for each", "a CSV file of one column is a single row"],
    );
    // Where decimals don't do is said by the command, too.
    let far = ["--in", "tiny.csv", "--out", "far.ct", "--magnitude", "1e15"];
    let far = ok(dir, &[&["sum", "encrypt", TEST, "--key", "k.pub"], &far[..]].concat());
    assert!(
        stderr(&far).contains("are floats rounded to 16^-8 (about 2e-10); a coarser --precision"),
        "{}",
        stderr(&far)
    );
    // python-paillier has no decimals.
    let foreign = [
        "sum",
        "dot",
        TEST,
        "--key",
        "k.pub",
        "--in",
        "prices.ct",
        "--weights",
        "rates.csv",
        "--out",
        "d.jsonl",
    ];
    let foreign = run(dir, &foreign);
    assert!(
        code(&foreign) == 2 && stderr(&foreign).contains("d.jsonl: a batch in decimals"),
        "{}",
        stderr(&foreign)
    );
}

/// Decimals of more digits than a float has: in, and out in every form.
#[test]
fn cents_of_large_sums_are_not_lost() {
    let dir = folder();
    let dir = dir.path();
    std::fs::write(dir.join("m.csv"), "999999999.99\n0.02\n").unwrap();
    std::fs::write(dir.join("many.csv"), "100001\n0\n").unwrap();
    std::fs::write(dir.join("large.csv"), "70368744177664.07\n-1.5\n").unwrap();
    let cents = ["--precision", "0.01", "--magnitude", "1e15"];
    for file in ["m", "large"] {
        let (from, to) = (format!("{file}.csv"), format!("{file}.ct"));
        let encrypt = ["sum", "encrypt", TEST, "--key", "k.pub", "--in", &from, "--out", &to];
        ok(dir, &[&encrypt[..], &cents].concat());
    }
    let dot =
        ["sum", "dot", TEST, "--key", "k.pub", "--in", "m.ct", "--out", "dot.ct", "--weights", "many.csv"];
    ok(dir, &dot);
    let decrypt = |file: &str, more: &[&str]| {
        run(dir, &[&["sum", "decrypt", TEST, "--key", "k.key", "--in", file], more].concat())
    };
    assert_eq!(stdout(&decrypt("dot.ct", &[])), "100000999998999.99\n");
    assert_eq!(values(dir, "dot.ct"), json!(["100000999998999.99"]));
    assert_eq!(stdout(&decrypt("large.ct", &[])), "70368744177664.07\n-1.5\n");
    refused(&decrypt("large.ct", &["--scale", "2"]), &["these numbers are floats"]);
    let npy = decrypt("dot.ct", &["--out", "dot.npy"]);
    assert!(code(&npy) == 0 && stderr(&npy).contains("the nearest floats"), "{}", stderr(&npy));
    // An option that says nothing of these weights is not ignored.
    refused(
        &run(dir, &[&dot[..], &["--force", "--precision", "100"]].concat()),
        &["integers", "--precision"],
    );
}
