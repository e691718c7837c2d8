//! `blindcore hw`, and simulated hardware under a real server.

use serde_json::{Value, json};

use crate::common::{Serving, blindcore, code, json, refused, run, stderr, stdout};

/// Whether the simulated chips have been built; a test that needs them says that it is skipped.
fn built() -> bool {
    let dir = tempfile::tempdir().unwrap();
    let doctor = json(&run(dir.path(), &["doctor", "--json"]));
    let devices = doctor["devices"].as_array().unwrap();
    let chip = devices.iter().find(|d| d["name"] == "rtl:onionchopper").expect("listed");
    if chip["available"] == false {
        // The tests' processes don't see it: chips that are said to be built have to be where they are looked for.
        assert!(std::env::var_os("BLINDCORE_RTL").is_none(), "{}", chip["missing"]);
        eprintln!("skipped: {}", chip["missing"]);
    }
    chip["available"] == true
}

#[test]
fn a_real_lookup_runs_on_the_chip() {
    if !built() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let gold = json(&run(dir.path(), &["hw", "run", "lookup", "--json"]));
    assert_eq!(gold["value"], json!({"number": "79", "name": "Gold", "weight": "196.97"}));
    let hardware = &gold["hardware"];
    let stalls: u64 = hardware["stalls"].as_object().unwrap().values().map(|v| v.as_u64().unwrap()).sum();
    assert_eq!(hardware["cycles"].as_u64().unwrap(), hardware["busy"].as_u64().unwrap() + stalls);
    assert_eq!(gold["seconds_at_2_ghz"].as_f64().unwrap(), hardware["cycles"].as_f64().unwrap() / 2e9);

    // What is asked for does not show in what the chip does. One table for all: each has a salt of its own, and by it its columns.
    let elements = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/elements.csv");
    let build = ["db", "build", elements, "--key", "symbol", "--scheme", "simple", "--out", "elements.db"];
    assert_eq!(code(&run(dir.path(), &build)), 0);
    for device in ["rtl:onionchopper", "rtl:onionchopper-lwe"] {
        let of = |key| {
            let asked = ["elements.db", "--key", key, "--device", device, "--json"];
            json(&run(dir.path(), &[&["hw", "run", "lookup"][..], &asked].concat()))
        };
        let (iron, nothing) = (of("Fe"), of("Unobtainium"));
        assert_eq!(iron["value"]["name"], "Iron");
        assert_eq!((&nothing["found"], &nothing["value"]), (&json!(false), &json!(null)));
        assert_eq!(iron["hardware"], nothing["hardware"]);
    }
    let missing = run(dir.path(), &["hw", "run", "lookup", "--key", "Unobtainium"]);
    assert_eq!((code(&missing), stdout(&missing).starts_with("Unobtainium: not there\n")), (1, true));

    // By row, in a table without keys, under both schemes.
    std::fs::write(
        dir.path().join("t.csv"),
        "a\n".to_owned() + &(0..300).map(|i| format!("v{i}\n")).collect::<String>(),
    )
    .unwrap();
    for scheme in ["simple", "double"] {
        let build = ["db", "build", "t.csv", "--scheme", scheme, "--out", "t.db", "--force"];
        assert_eq!(code(&run(dir.path(), &build)), 0);
        let row = json(&run(dir.path(), &["hw", "run", "lookup", "t.db", "--index", "0x7b", "--json"]));
        assert_eq!(row["value"], json!({"a": "v123"}), "{scheme}");
    }
    refused(&run(dir.path(), &["hw", "run", "lookup", "t.db", "--index", "300"]), &["300", "rows"]);
    refused(&run(dir.path(), &["hw", "run", "lookup", "t.db", "--key", "v1"]), &["no keys", "--index"]);
    refused(&run(dir.path(), &["hw", "run", "lookup", "t.db"]), &["--key or --index"]);
    refused(&run(dir.path(), &["hw", "run", "lookup", "nowhere"]), &["nowhere"]);
}

#[test]
fn a_server_answers_from_the_chip() {
    if !built() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..50).map(|i| format!("k{i},v{i}\n")).collect();
    std::fs::write(dir.path().join("t.csv"), format!("k,v\n{rows}")).unwrap();
    assert_eq!(
        code(&run(
            dir.path(),
            &["db", "build", "t.csv", "--key", "k", "--scheme", "simple", "--out", "t.db"]
        )),
        0
    );
    let server = Serving::start(dir.path(), &["t.db", "--device", "rtl:onionchopper-gathered"]);
    let got = json(&server.get(dir.path(), &["--table", "t", "--key", "k17", "--json"]));
    assert_eq!(got["value"], json!({"v": "v17"}));
    assert_eq!(code(&server.get(dir.path(), &["--table", "t", "--key", "nobody"])), 1);
}

#[test]
fn what_is_no_chip_is_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let lookup = |more: &[&str]| run(dir.path(), &[&["hw", "run", "lookup"], more].concat());
    refused(&lookup(&["--device", "rtl:nothing"]), &["rtl:nothing", "rtl:onionchopper-gathered"]);
    refused(&lookup(&["--device", "cpu"]), &["cpu", "rtl:onionchopper"]);
    for ssd in ["fast", "1", "1/", "-1/2", "70000/1"] {
        refused(&lookup(&[&format!("--ssd={ssd}")]), &["--ssd", "67/100"]);
    }
    for ssd in ["0/1", "2/1", "1/60000"] {
        refused(&lookup(&["--ssd", ssd]), &["out of range"]);
    }
    // A folder without chips: what to run is said, and nothing is done.
    for args in
        [&["hw", "run", "lookup"][..], &["hw", "report"], &["serve", "x", "--device", "rtl:onionchopper"]]
    {
        let output = blindcore(dir.path()).args(args).env("BLINDCORE_RTL", dir.path()).output().unwrap();
        refused(&output, &["make -C hw libraries", "BLINDCORE_RTL"]);
    }
    // A file that is none.
    std::fs::write(dir.path().join("libonionchopper.so"), "no library").unwrap();
    let output = blindcore(dir.path())
        .args(["hw", "run", "lookup"])
        .env("BLINDCORE_RTL", dir.path())
        .output()
        .unwrap();
    refused(&output, &["libonionchopper.so", "make -C hw libraries"]);
}

#[test]
fn the_report_stands_beside_the_thesis() {
    let dir = tempfile::tempdir().unwrap();
    let results = dir.path().join("results");
    std::fs::create_dir(&results).unwrap();
    let one = json!({
        "block": "oc_compute_unit", "parameters": {"BITS": 0}, "library": "some_library", "clock_ps": 3500.0,
        "area_um2": 1_000_000.0,
    });
    std::fs::write(results.join("x.json"), one.to_string()).unwrap();
    let row = |report: &Value, id: &str| {
        let rows = report["rows"].as_array().unwrap();
        rows.iter().find(|r| r["id"] == id).unwrap_or_else(|| panic!("{id} in {report}")).clone()
    };

    // Either half is a report. What was synthesised, without chips:
    let arguments = ["hw", "report", "--results", "results"];
    let without = |more: &[&str]| {
        let mut command = blindcore(dir.path());
        let output = command.args(arguments).args(more).env("BLINDCORE_RTL", dir.path()).output().unwrap();
        let notes = stderr(&output);
        assert!(notes.contains("without simulation") && notes.contains("make -C hw libraries"), "{notes}");
        output
    };
    let report = json(&without(&["--json"]));
    let area = row(&report, "hw.syn.x.area.two");
    assert_eq!(area["columns"]["synthesised"]["some_library"], 2.0);
    assert!(area["columns"]["calibrated"]["calibrated"].as_f64() > Some(6.8), "{area}");
    assert_eq!(row(&report, "hw.syn.x.clock")["paper"], 3442.0);
    assert_eq!(row(&report, "hw.syn.x.area")["value"], 1.0);
    let text = stdout(&without(&[]));
    let clock = text.lines().find(|line| line.contains("some_library: shortest clock")).expect("a line");
    let words: Vec<_> = clock.split_whitespace().rev().take(4).collect();
    assert_eq!(words, ["1.01685", "3442", "ps", "3500"], "{clock}");
    assert!(text.contains(" calibrated  synthesised "), "{text}");

    if built() {
        // What is simulated, without results.
        let output = run(dir.path(), &["hw", "report", "--json"]);
        assert!(stderr(&output).contains("hw/syn/results"), "{}", stderr(&output));
        let report = json(&output);
        let cycles = row(&report, "hw.onionchopper.64gb.cycles");
        assert_eq!(cycles["paper"].as_f64().unwrap(), 12_833_318_209.0);
        assert!((cycles["ratio"].as_f64().unwrap() - 1.0).abs() < 0.01, "{cycles}");
        let seconds = row(&report, "hw.onionchopper.64gb.seconds");
        assert_eq!(seconds["label"], "at the paper's clock, 2 GHz");
        assert!(seconds["beside"]["value"].as_f64() > Some(15.0), "{seconds}");
    }

    std::fs::write(results.join("x.json"), "{").unwrap();
    refused(&run(dir.path(), &["hw", "report", "--results", "results"]), &["x.json", "JSON"]);
    refused(&run(dir.path(), &["hw", "report", "--results", "none"]), &["none", "--results"]);
}
