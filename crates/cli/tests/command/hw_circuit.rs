//! `blindcore hw run circuit`: circuits on a simulated overlay.

use std::path::Path;
use std::process::Output;

use serde_json::json;

use crate::common::{blindcore, code, json, refused, run, stderr, stdout};

/// Whether SIFO's overlay has been built.
pub(crate) fn built() -> bool {
    chip_is_built("rtl:sifo")
}

/// Whether a chip has been built; a test that needs it says that it is skipped.
pub(crate) fn chip_is_built(name: &str) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let doctor = json(&run(dir.path(), &["doctor", "--json"]));
    let devices = doctor["devices"].as_array().unwrap();
    let chip = devices.iter().find(|d| d["name"] == name).expect("listed");
    if chip["available"] == false {
        // Chips that are said to be built have to be where they are looked for.
        assert!(std::env::var_os("BLINDCORE_RTL").is_none(), "{}", chip["missing"]);
        eprintln!("skipped: {}", chip["missing"]);
    }
    chip["available"] == true
}

fn circuit(dir: &Path, more: &[&str]) -> Output {
    run(dir, &[&["hw", "run", "circuit", "--allow-broken"], more].concat())
}

#[test]
fn circuits_run_on_the_chip() {
    if !built() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let of = |more: &[&str]| json(&circuit(dir, &[more, &["--json"]].concat()));
    let product = of(&[]);
    assert_eq!(product["inputs"][1], json!({"name": "b", "value": "0x7b"}));
    assert_eq!(product["outputs"], json!([{"name": "product", "value": "0x6018"}]));
    let number = |of: &serde_json::Value| of.as_u64().unwrap_or_else(|| panic!("{of} in {product}"));
    let clocks = &product["clocks"];
    let host: u64 = ["host_writes", "host_waits", "host_notices"].iter().map(|c| number(&clocks[c])).sum();
    assert_eq!(host, number(&clocks["all"]));
    assert_eq!(product["microseconds_at_200_mhz"].as_f64().unwrap(), number(&clocks["all"]) as f64 / 200.0);
    assert_eq!(number(&product["table_bytes"]), 30 * number(&product["ands"]));
    assert_eq!(number(&product["gates"]), number(&product["ands"]) + number(&product["xors"]));

    // What is computed doesn't show in the clocks; how it is done does.
    let other = of(&["mult8", "--input", "0", "--input", "255"]);
    assert_eq!((&other["outputs"][0]["value"], &other["clocks"]), (&json!("0x0000"), clocks));
    let all = |more: &[&str]| number(&of(&[&["--circuit", "mult8"], more].concat())["clocks"]["all"]);
    let (paper, lifetimes, none) =
        (number(&clocks["all"]), all(&["--policy=lifetimes"]), all(&["--policy=none"]));
    assert!(lifetimes < paper && paper < none, "{lifetimes} {paper} {none}");
    assert_eq!(all(&["--policy", "most-frequently-used"]), lifetimes); // all fits
    assert!(
        all(&["--ands", "2"]) > paper && all(&["--xors", "1"]) > paper && all(&["--xors", "any"]) < paper
    );

    // The paper's netlist, beside the paper's time where it is run as the paper's.
    let published = of(&["mult8", "--published"]);
    assert_eq!((&published["ands"], &published["xors"]), (&json!(120), &json!(352)));
    assert_eq!(published["paper_microseconds"], 293.0);
    assert!((published["ratio"].as_f64().unwrap() - 1.0).abs() < 0.25, "{published}");
    assert!(of(&["mult8", "--published", "--policy", "none"])["ratio"].is_null());

    // A file: outputs that are inputs and constants, and a circuit without gates.
    std::fs::write(
        dir.join("odd.v"),
        "module odd(input [1:0] a, output y, z, output [1:0] same);\n\
        assign y = a[0] & a[1];\nassign z = 1'b1;\nassign same = a;\nendmodule\n",
    )
    .unwrap();
    let odd = of(&["odd.v", "--input", "3"]);
    let values: Vec<_> = odd["outputs"].as_array().unwrap().iter().map(|o| &o["value"]).collect();
    assert_eq!(values, ["0x1", "0x1", "0x3"]);
    std::fs::write(dir.join("wire.v"), "module wire_(input a, output y);\nassign y = a;\nendmodule\n")
        .unwrap();
    let wire = of(&["wire.v", "--input", "1"]);
    assert_eq!((&wire["outputs"][0]["value"], &wire["ands_per_second"]), (&json!("0x1"), &json!(0.0)));
}

#[test]
fn what_the_host_sends_is_printed() {
    if !built() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let plain = ["adder6", "--published", "--xors", "any"];
    let text = circuit(dir, &[&plain[..], &["--commands"]].concat());
    assert_eq!(code(&text), 0, "{}", stderr(&text));
    let text = stdout(&text);
    // The first layer, whose operands are inputs and the first carry; the one wire that one gate reads goes to block RAM.
    assert!(
        text.starts_with("XOR 2\n  ram 0 = ddr 2, ddr 0\n  ddr 15 = ddr 8, ddr 0\nXOR 1, without a wait\n"),
        "{text}"
    );
    let gates = text.lines().filter(|line| line.contains(" = ")).count();
    assert!(gates == 30 && text.contains("\nAND 1\n  ") && text.contains("M ANDs/s"), "{text}");
    let json = json(&circuit(dir, &[&plain[..], &["--commands=sent.txt", "--json"]].concat()));
    let sent = std::fs::read_to_string(dir.join("sent.txt")).unwrap();
    assert!(text.starts_with(&sent) && json["register_writes"].as_u64().unwrap() > 60, "{sent}");
    refused(&circuit(dir, &["adder6", "--commands=sent.txt"]), &["sent.txt", "new file"]);
    refused(&circuit(dir, &["adder6", "--commands", "--json"]), &["--commands=FILE"]);
}

#[test]
fn what_the_chip_cannot_do_is_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // Whether it has been built or not.
    refused(&run(dir, &["hw", "run", "circuit"]), &["SHA-1", "80 bits", "--allow-broken"]);
    let refuse = |more: &[&str], words: &[&str]| refused(&circuit(dir, more), words);
    refuse(&["nothing"], &["nothing", "circuit list"]);
    refuse(&["add64", "--published"], &["add64", "mult8"]);
    // Nor is a name that is wrong called broken.
    refused(
        &run(dir, &["hw", "run", "circuit", "--device", "cpu"]),
        &["\"cpu\"", "rtl:sifo or rtl:sifo-half-gates"],
    );
    refuse(&["--device", "rtl:onionchopper"], &["rtl:onionchopper", "rtl:sifo or rtl:sifo-half-gates"]);
    refuse(&["--ands", "0"], &["0 AND cells"]);
    refuse(&["--xors", "0"], &["0 XOR cells"]);
    refuse(&["--xors", "many"], &["many", "any"]);
    refuse(&["mult8", "--input", "1"], &["1 of 2 values"]);
    refuse(&["mult8", "--input", "256", "--input", "1"], &["over its 8"]);
    let output = blindcore(dir)
        .args(["hw", "run", "circuit", "--allow-broken"])
        .env("BLINDCORE_RTL", dir)
        .output()
        .unwrap();
    refused(&output, &["libsifo.so", "make -C hw libraries"]);
    if !built() {
        return;
    }
    // Half a library, which the system's loader would map and die of.
    let chips = std::env::var_os("BLINDCORE_RTL").map_or_else(
        || Path::new(env!("CARGO_BIN_EXE_blindcore")).parent().unwrap().parent().unwrap().join("hw"),
        std::path::PathBuf::from,
    );
    let whole = std::fs::read(chips.join("libsifo.so")).unwrap();
    std::fs::write(dir.join("libsifo.so"), &whole[..whole.len() / 2]).unwrap();
    let output = blindcore(dir)
        .args(["hw", "run", "circuit", "--allow-broken"])
        .env("BLINDCORE_RTL", dir)
        .output()
        .unwrap();
    refused(&output, &["libsifo.so", "cut short", "make -C hw libraries"]);
    refuse(&["--ands", "16"], &["15 AND cells", "16"]);
    refuse(&["--xors", "16"], &["15 XOR cells", "16"]);
    // More wires than two registers address.
    let wide = "1 1100001\n1 1100000\n1 1\n\n2 1 0 1 1100000 AND\n".to_owned() + &"\n".repeat(60_000);
    std::fs::write(dir.join("wide.txt"), wide).unwrap();
    refuse(&["wide.txt"], &["wide.txt", "1100003", "1048576", "smaller circuit"]);
}

/// Today's overlay: half gates, so nothing broken has to be allowed; garbled and evaluated by the chip.
#[test]
fn todays_overlay_garbles_and_evaluates() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let chip = ["hw", "run", "circuit", "--device", "rtl:sifo-half-gates"];
    for (option, words) in [
        (&["--boards", "2"][..], &["--boards", "rtl:sifo"][..]),
        (&["--commands"], &["--commands", "rtl:sifo"]),
        (&["--ands", "3"], &["--ands", "rtl:sifo"]),
        (&["--xors", "any"], &["--xors", "rtl:sifo"]),
        (&["--policy", "none"], &["--policy", "rtl:sifo"]),
    ] {
        refused(&run(dir, &[&chip, option].concat()), words);
    }
    refused(&circuit(dir, &["--unbound"]), &["--unbound", "rtl:sifo-half-gates"]);
    if !built() {
        return;
    }
    let of = |more: &[&str]| json(&run(dir, &[&chip, more, &["--json"]].concat()));
    let product = of(&[]);
    assert_eq!(product["outputs"], json!([{"name": "product", "value": "0x6018"}]));
    let number = |of: &serde_json::Value| of.as_u64().unwrap_or_else(|| panic!("{of}"));
    assert!(number(&product["garbling"]["clocks"]) > 0 && number(&product["evaluation"]["clocks"]) > 0);
    // 25 elements of one shape: seven in a lane, and four lanes at once.
    let wide = of(&["matmul5x5x4", "--published", "--unbound"]);
    assert_eq!((number(&wide["lanes"]), number(&wide["copies_a_lane"])), (4, 7));
    assert_eq!(number(&wide["ands"]), 3900);
    assert!(number(&wide["garbling"]["full_adders"]) > 300, "{wide}");
    let bound = of(&["matmul5x5x4", "--published"]);
    let clocks = |of: &serde_json::Value| number(&of["garbling"]["clocks"]);
    assert!(clocks(&bound) > clocks(&wide), "tables take the link longer than the cells");
    // At most a fifth of the paper's 5,830 us and 293 us, at its clock; clocks are exact.
    assert!(5 * clocks(&bound) <= 5_830 * 200, "{bound}");
    assert!(5 * clocks(&of(&["mult8", "--published"])) <= 293 * 200);
    // More inputs than the simulated board's memory holds: a chain of XORs, so that all are of one share.
    let mut deep = String::from("69999 139999\n1 70000\n1 1\n\n2 1 0 1 70000 XOR\n");
    for i in 2..70_000 {
        deep += &format!("2 1 {} {i} {} XOR\n", 69_998 + i, 69_999 + i);
    }
    std::fs::write(dir.join("deep.txt"), deep).unwrap();
    refused(&run(dir, &[&chip[..], &["deep.txt"]].concat()), &["70000", "65536", "smaller circuit"]);
}

#[test]
fn several_boards_share_a_circuit() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    refused(&circuit(dir, &["--boards", "17"]), &["--boards", "17", "1 to 16"]);
    refused(&circuit(dir, &["--boards", "2", "--policy", "lifetimes"]), &["--policy", "one board"]);
    refused(&circuit(dir, &["--boards", "2", "--commands"]), &["--commands", "one board"]);
    if !built() {
        return;
    }
    let of = |more: &[&str]| json(&circuit(dir, &[more, &["--json"]].concat()));
    let three = of(&["matmul5x5x4", "--published", "--boards", "3"]);
    let boards = three["gates_of_boards"].as_array().unwrap();
    assert_eq!(boards.len(), 3);
    assert_eq!(boards.iter().map(|gates| gates.as_u64().unwrap()).sum::<u64>(), 15_500);
    assert_eq!(three["bytes_moved"].as_u64().unwrap(), 10 * three["labels_moved"].as_u64().unwrap());
    let speedup = three["speedup"].as_f64().unwrap();
    assert!((1.5..=3.5).contains(&speedup), "{speedup}");
    // What they garble is evaluated, to the outputs in the clear.
    let product = of(&["--boards", "3"]);
    assert_eq!(product["inputs"][0], json!({"name": "a", "value": "0xc8"}));
    assert_eq!(product["outputs"], json!([{"name": "product", "value": "0x6018"}]));
    // Outputs that are inputs and constants, and no gate at all.
    std::fs::write(
        dir.join("wires.v"),
        "module wires(input [1:0] a, output [1:0] y, output z);\nassign y = a;\nassign z = 1'b1;\nendmodule\n",
    )
    .unwrap();
    let wires = of(&["wires.v", "--input", "2", "--boards", "2"]);
    let values: Vec<_> = wires["outputs"].as_array().unwrap().iter().map(|o| &o["value"]).collect();
    assert_eq!((values, &wires["speedup"]), (vec![&json!("0x2"), &json!("0x1")], &json!(1.0)));
    let text = stdout(&circuit(dir, &["wires.v", "--boards", "2"]));
    assert!(text.contains("1.00x"), "{text}");
    // A chain of carries goes from board to board for nothing.
    assert!(of(&["adder6", "--boards", "2"])["speedup"].as_f64().unwrap() < 2.0);
}
