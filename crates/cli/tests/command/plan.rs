//! `blindcore plan`: what a table would cost, before it is built.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::common::{code, json, refused, run, stderr, stdout};

/// A machine of round numbers.
const RATES: &str = r#"{
  "version": 2, "processor": "round", "device": "cpu:avx2", "threads": 2,
  "passes": [
    {"queries": 1, "seconds": [[1000000, 0.0001], [1000000000, 0.1]]},
    {"queries": 16, "seconds": [[1000000, 0.00016], [1000000000, 0.16]]}
  ],
  "packing": [
    {"queries": 1, "seconds": [[1000000, 0.0001], [1000000000, 0.1]]},
    {"queries": 16, "seconds": [[1000000, 0.0003], [1000000000, 0.3]]}
  ],
  "ring": {"transform": 0.000001, "encrypted": 0.00002},
  "hint": [[1000000, 0.01], [1000000000, 10]],
  "client": {"column": 0.000001, "rows": [[1, 0.000001], [100000, 0.1]], "answer_byte": 1e-9},
  "dense": {"read": {"row": 1e-6, "byte": 1e-9}, "fill": {"row": 1e-6, "byte": 1e-9}},
  "keyed": {"read": {"row": 2e-6, "byte": 1e-9}, "fill": {"row": 2e-6, "byte": 1e-9}}
}"#;

fn with_rates() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("rates.json"), RATES).unwrap();
    dir
}

fn plan(dir: &Path, more: &[&str]) -> Output {
    run(dir, &[&["plan", "--rates", "rates.json"], more].concat())
}

fn chosen(plan: &Value) -> &Value {
    let candidates = plan["candidates"].as_array().unwrap();
    assert_eq!(candidates.len(), 5);
    let chosen: Vec<&Value> = candidates.iter().filter(|c| c["chosen"] == true).collect();
    assert_eq!(chosen.len(), 1, "{plan}");
    assert_eq!(chosen[0]["scheme"], plan["chosen"]);
    chosen[0]
}

#[test]
fn what_is_planned_is_what_db_build_makes() {
    let dir = with_rates();
    let rows: String = (0..3000).map(|i| format!("key {i:04},{i:0>100}\n")).collect();
    std::fs::write(dir.path().join("t.csv"), format!("k,v\n{rows}")).unwrap();
    // 100 characters and a byte before them; a key has 8.
    let ask = ["--rows", "3000", "--record-bytes", "101", "--json"];
    let build = |more: &[&str]| {
        let args =
            [&["db", "build", "t.csv", "--value", "v", "--force", "--out", "t.db", "--json"], more].concat();
        json(&run(dir.path(), &args))
    };
    let on_disk = || {
        let files = std::fs::read_dir(dir.path().join("t.db")).unwrap();
        files.map(|f| f.unwrap().metadata().unwrap().len()).sum::<u64>() as f64
    };

    let built = &build(&[])["records"];
    let planned = json(&plan(dir.path(), &[&ask[..], &["--by-index"]].concat()));
    let planned = chosen(&planned);
    for field in ["scheme", "groups", "rows", "columns", "hint_bytes", "query_bytes", "answer_bytes"] {
        assert_eq!(planned[field], built[field], "{field}");
    }
    assert_eq!(planned["slot_bytes"], built["record_bytes"]);
    assert_eq!(planned["failure_log2"].as_f64(), built["failure_log2"].as_f64().map(|bits| -bits));
    // Headers and the manifest are a few KiB.
    let disk = planned["disk_bytes"].as_f64().unwrap();
    assert!((disk..disk + 32_768.0).contains(&on_disk()), "{disk} planned, {} made", on_disk());

    // The fullest group of keys is known once they are read: columns may be fewer than planned.
    let built = &build(&["--key", "k"])["records"];
    let planned = json(&plan(dir.path(), &[&ask[..], &["--key-bytes", "8"]].concat()));
    let planned = chosen(&planned);
    for field in ["scheme", "groups", "rows", "answer_bytes"] {
        assert_eq!(planned[field], built[field], "{field}");
    }
    // How many roots of proofs there are depends on how hashes fall: each group's last chunk may be cut short. What is planned is
    // the mean, less than a root of 16 bytes for each group away from any.
    let [made, mean] = [built, planned].map(|of| of["hint_bytes"].as_i64().unwrap());
    assert!((made - mean).abs() < 16 * planned["groups"].as_i64().unwrap(), "{built} {planned}");
    let columns = |of: &Value| of["columns"].as_f64().unwrap();
    assert!((0.8..1.05).contains(&(columns(built) / columns(planned))), "{built} {planned}");
    let disk = planned["disk_bytes"].as_f64().unwrap();
    assert!((0.9..1.1).contains(&(on_disk() / disk)), "{disk} planned, {} made", on_disk());
}

#[test]
fn batches_are_planned_beside_lookups() {
    let dir = with_rates();
    let ask = ["--rows", "1000000", "--record-bytes", "256", "--batch", "256"];
    let planned = json(&plan(dir.path(), &[&ask[..], &["--json"]].concat()));
    let (of, alone) =
        (&chosen(&planned)["batch"], json(&plan(dir.path(), &[&ask[..4], &["--json"]].concat())));
    assert_eq!((of["keys"].as_u64(), of["buckets"].as_u64()), (Some(256), Some(384)), "{of}");
    assert!(chosen(&alone)["batch"].is_null());
    let of = |field: &str| of[field].as_f64().unwrap();
    // A key of a batch takes a tenth of a lookup or less.
    assert!(of("server_seconds") / 256.0 < 0.1 * chosen(&alone)["server_seconds"].as_f64().unwrap());
    assert!(of("memory_bytes") > 3.0 * 256e6 && of("failure_log2") > 40.0);
    let text = stdout(&plan(dir.path(), &ask));
    assert!(
        text.contains("a batch of 256 keys, buckets    -") && text.contains("384, fails once in 2^41"),
        "{text}"
    );
    let long = stdout(&plan(dir.path(), &["--rows", "1000", "--record-bytes", "3MB", "--batch", "64"]));
    assert!(long.contains("makes no batches for this table"), "{long}");
    let few = stderr(&plan(dir.path(), &[&ask[..4], &["--batch", "7"]].concat()));
    assert!(few.contains("number of keys of a batch is 7, outside 8 to 1024"), "{few}");
    let many = stderr(&plan(dir.path(), &["--rows", "1e12", "--record-bytes", "200"]));
    assert!(many.contains("use fewer rows or shorter records"), "{many}");
}

#[test]
fn the_whole_table_is_advised_where_it_suits_the_clients() {
    let dir = with_rates();
    // A bit each of very many rows: `db build` weighs a hundredth of the hint.
    let ask = |queries| {
        let rows =
            ["--rows", "3000000000", "--record-bytes", "1", "--by-index", "--queries", queries, "--json"];
        json(&plan(dir.path(), &rows))
    };
    let (few, many) = (ask("1"), ask("1000000"));
    assert_eq!(few["chosen"], many["chosen"]);
    // Whoever looks up a million of them is better off with all of them.
    assert!(few["advice"].is_null(), "{few}");
    assert!(many["advice"].as_str().unwrap().contains("the whole table is 2.79 GiB"), "{many}");
    assert!(many["whole_table"]["bytes"] == 3_000_000_000u64 && few["whole_table"] != many["whole_table"]);
    for of in [&few, &many] {
        assert!(of["reason"].as_str().unwrap().contains("1/100 of the hint"), "{of}");
    }
}

#[test]
fn records_of_megabytes_are_planned_as_blocks() {
    let dir = with_rates();
    let ask = ["--rows", "1000", "--record-bytes", "3MB"];
    let planned = json(&plan(dir.path(), &[&ask[..], &["--json"]].concat()));
    let of = chosen(&planned);
    let (blocks, bytes) = (of["blocks"].as_u64().unwrap(), of["block_bytes"].as_u64().unwrap());
    assert!(blocks > 1 && bytes <= 65_536 && blocks * bytes >= 3_000_000, "{of}");
    assert!(of["query_bytes"].as_u64().unwrap() > 3 * blocks * of["columns"].as_u64().unwrap());
    let output = plan(dir.path(), &ask);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let by_index = plan(dir.path(), &[&ask[..], &["--by-index"]].concat());
    refused(&by_index, &["--record-bytes is 3MB, not 1 to 65536"]);
    let words = format!("cuts them into {blocks} blocks of {bytes} B, and a lookup asks {blocks} queries");
    assert!(stdout(&output).contains(&words), "{}", stdout(&output));
}

#[test]
fn a_table_for_people() {
    let dir = with_rates();
    let output = plan(dir.path(), &["--rows", "1e7", "--record-bytes", "256"]);
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
    let text = stdout(&output);
    for words in [
        "10,000,000 rows of up to 256 B",
        "Hintless (db build takes it)",
        "DoublePIR",
        "SimplePIR",
        "128.4 bits",
        "142.8 bits, 102.5 bits",
        "sending the whole table instead: ",
        "hint, once an epoch",
        "server, one of 16 in a pass",
        "Hintless, because ",
        "prices: 0.05 a core-hour",
    ] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let dir = with_rates();
    let ask = |flag: &str, value: &str, words: &[&str]| {
        let mut args = vec!["--rows", "1000", "--record-bytes", "16"];
        match args.iter().position(|a| *a == flag) {
            Some(at) => args[at + 1] = value,
            None => args.extend([flag, value]),
        }
        refused(&plan(dir.path(), &args), words);
    };
    for bad in ["0", "-1", "x", "1e30", "2e12", "1.5"] {
        ask("--rows", bad, &["--rows", "1 to 1099511627776", "how many rows"]);
        ask("--queries", bad, &["--queries"]);
        ask("--clients", bad, &["--clients"]);
    }
    for bad in ["0", "-3MB", "2GiB", "3 XB", "MB"] {
        ask("--record-bytes", bad, &["--record-bytes", "KiB"]);
    }
    // No longer record by key than `db build` takes.
    for bad in ["70000000", "67174401", "65MiB"] {
        ask("--record-bytes", bad, &["--record-bytes", "not 1 to 67174400 whole bytes"]);
    }
    let most = plan(dir.path(), &["--rows", "100", "--record-bytes", "67174400"]);
    assert_eq!(code(&most), 0, "{}", stderr(&most));
    ask("--key-bytes", "4097", &["--key-bytes", "4096"]);
    for flag in ["--up", "--down"] {
        for bad in ["0", "-5", "inf", "NaN", "1e9", "fast"] {
            ask(flag, bad, &[flag, "0.001 to 1000000"]);
        }
    }
    for bad in ["0s", "5", "-1d", "9999d", "1w"] {
        ask("--epoch", bad, &["--epoch", "12h"]);
    }
    for bad in ["-1", "101", "NaN"] {
        ask("--changed", bad, &["--changed", "0 to 100"]);
    }
    for bad in ["0", "65"] {
        ask("--gather", bad, &["--gather", "1 to 64"]);
    }
    for flag in ["--price-core-hour", "--price-memory", "--price-traffic"] {
        ask(flag, "-1", &[flag, "0 to 1000000"]);
    }
    // More than any matrix holds.
    ask("--rows", "1000000000000", &["more often than the limit of once in 2^40"]);

    ask("--device", "cpu:portable", &["--device", "--measure"]);
    let alone =
        |more: &[&str]| run(dir.path(), &[&["plan", "--rows", "10", "--record-bytes", "16"], more].concat());
    refused(&alone(&["--rates", "none.json"]), &["none.json"]);
    std::fs::write(dir.path().join("bad.json"), RATES.replace("\"threads\": 2", "\"threads\": -2")).unwrap();
    refused(&alone(&["--rates", "bad.json"]), &["bad.json", "--save-rates"]);
    std::fs::write(dir.path().join("bad.json"), RATES.replace("0.16]", "-0.16]")).unwrap();
    refused(&alone(&["--rates", "bad.json"]), &["bad.json", "out of the range of measurements"]);
    refused(&alone(&["--rates", "."]), &["not a file of rates"]);
}

#[test]
fn rates_are_measured_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let ask = ["plan", "--rows", "20000", "--record-bytes", "64", "--json"];
    let measured =
        json(&run(dir.path(), &[&ask[..], &["--measure=1", "--save-rates", "kept.json"]].concat()));
    refused(
        &run(dir.path(), &[&ask[..], &["--measure", "--save-rates", "kept.json"]].concat()),
        &["kept.json is there already", "--force"],
    );
    let again = json(&run(dir.path(), &[&ask[..], &["--rates", "kept.json"]].concat()));
    assert_eq!(measured["candidates"], again["candidates"]);
    assert!(measured["rates"]["device"].as_str().unwrap().starts_with("cpu:"));
    let passes = measured["rates"]["passes"].as_array().unwrap();
    assert_eq!(passes.iter().map(|p| p["queries"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 8, 16, 64]);
    assert!(chosen(&measured)["server_seconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn known_clients_may_register_keys_and_schemes_for_comparison_stand_aside() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // Of a smaller table a hint would move fewer bytes than keys.
    let rows: String = (0..50_000).map(|i| format!("{i},{}\n", "x".repeat(200))).collect();
    std::fs::write(dir.join("t.csv"), format!("k,v\n{rows}")).unwrap();
    let build = ["db", "build", "t.csv", "--key", "k", "--out", "t.db", "--scheme", "known", "--json"];
    assert_eq!(json(&run(dir, &build))["records"]["scheme"], "onionpir2");

    let ask = ["plan", "--rows", "1000000", "--record-bytes", "64", "--json"];
    let schemes = |more: &[&str]| -> Vec<String> {
        let plan = json(&run(dir, &[&ask[..], more].concat()));
        let candidates = plan["candidates"].as_array().unwrap();
        assert!(plan["reason"].as_str().unwrap().contains("--scheme known"), "{plan}");
        candidates.iter().map(|c| c["scheme"].as_str().unwrap().to_owned()).collect()
    };
    let usual = schemes(&[]);
    assert_eq!(usual, ["simple", "double", "hintless", "hintless-q128", "onionpir2"]);
    let all = schemes(&["--compare"]);
    assert_eq!(all.join(", "), blindcore_lookup::schemes::offered_names());
}
