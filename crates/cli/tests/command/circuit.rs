//! `blindcore circuit`: by name and by file, counted, evaluated, converted, and what is refused.

use std::path::Path;

use serde_json::{Value, json};

use crate::common::{code, json, refused, run, run_with_input, stderr, stdout};

fn ok(dir: &Path, args: &[&str]) -> std::process::Output {
    let output = run(dir, &[&["circuit"], args].concat());
    assert_eq!(code(&output), 0, "{args:?}: {}", stderr(&output));
    output
}

fn outputs(dir: &Path, circuit: &str, inputs: &[&str]) -> Value {
    let inputs: Vec<&str> = inputs.iter().flat_map(|i| ["--input", i]).collect();
    json(&ok(dir, &[&["eval", "--circuit", circuit, "--json"], &inputs[..]].concat()))["outputs"].clone()
}

#[test]
fn every_listed_circuit_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let list = json(&ok(dir.path(), &["list", "--json"]));
    let problems = list["problems"].as_array().unwrap();
    assert_eq!(problems.iter().filter(|p| !p["paper_ands"].is_null()).count(), 14);
    for problem in problems.iter().map(|p| p["name"].as_str().unwrap()) {
        // The largest take a while to write; that they are made, other tests see.
        if problem.starts_with("matmul") && problem != "matmul5x5x4" {
            continue;
        }
        let made = json(&ok(dir.path(), &["make", problem, "--out", "c.txt", "--force", "--json"]));
        let [name, file] = [problem, "c.txt"].map(|c| json(&ok(dir.path(), &["stats", c, "--json"])));
        assert_eq!((&made["ands"], &made["ands"]), (&name["ands"], &file["ands"]), "{problem}");
        assert_eq!(name["output_wires"], file["output_wires"]);
        assert_eq!((&name["digest"], &made["digest"]), (&file["digest"], &file["digest"]), "{problem}");
        let bits: u64 = made["inputs"].as_array().unwrap().iter().map(|p| p["bits"].as_u64().unwrap()).sum();
        assert_eq!(bits, file["input_wires"].as_u64().unwrap());
    }
    let text = stdout(&ok(dir.path(), &["list"]));
    assert!(
        text.contains("hamming50") && text.contains("sort<N>x<W>") && text.contains("1 to 2048"),
        "{text}"
    );
    // Standard output has the circuit and nothing else.
    let printed = ok(dir.path(), &["make", "mult8"]);
    ok(dir.path(), &["make", "mult8", "--out", "m.txt"]);
    assert_eq!(printed.stdout, std::fs::read(dir.path().join("m.txt")).unwrap());
    assert_eq!(stderr(&printed), "");
    // What a file has no place for is said.
    let made = ok(dir.path(), &["make", "intersection4x8", "--out", "i.txt"]);
    assert!(stderr(&made).contains("a (8-bit) and b (8-bit) strictly ascending lists"), "{}", stderr(&made));
    let digest = json(&ok(dir.path(), &["stats", "i.txt", "--json"]))["digest"].as_str().unwrap().to_owned();
    assert!(stderr(&made).contains(&digest), "{}", stderr(&made));
    assert!(stdout(&ok(dir.path(), &["stats", "i.txt"])).contains(&digest));
    let evaluated =
        ok(dir.path(), &["eval", "--circuit", "intersection4x8", "--input", "1,2,3,4", "--input", "2,4,6,8"]);
    assert!(stderr(&evaluated).contains(&digest), "{}", stderr(&evaluated));
}

#[test]
fn circuits_are_evaluated_by_name_and_by_file() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    assert_eq!(outputs(dir, "mult8", &["200", "0x7b"]), json!(["0x6018"]));
    assert_eq!(outputs(dir, "adder6", &["0X3f", "2"]), json!(["0x01"]));
    // FIPS 197, appendix C.1, in the order in which the standard writes a block.
    let (key, block) = ("0x000102030405060708090a0b0c0d0e0f", "0x00112233445566778899aabbccddeeff");
    let encrypted = json!(["0x69c4e0d86a7b0430d8cdb78070b4c55a"]);
    assert_eq!(outputs(dir, "aes128", &[key, block]), encrypted);
    // The same from a file, from the same file written again, and with values in decimal.
    ok(dir, &["make", "aes128", "--out", "aes.txt"]);
    ok(dir, &["convert", "aes.txt", "--out", "again.txt"]);
    assert_eq!(outputs(dir, "again.txt", &[key, "88962710306127702866241727433142015"]), encrypted);
    // Verilog, with names.
    let verilog = "module vote(input [2:0] ballots, input chair, output passed, output [1:0] all);\n\
                   assign passed = (ballots[0] & ballots[1]) | (chair & ballots[2]);\n\
                   assign all = {&ballots, ~chair};\nendmodule\n";
    let verilog = verilog.replace("&ballots", "ballots[0] & ballots[1] & ballots[2]");
    std::fs::write(dir.join("vote.v"), verilog).unwrap();
    let text = ok(dir, &["eval", "--circuit", "vote.v", "--input", "7", "--input", "0"]);
    assert_eq!(stdout(&text), "passed 0x1 (1)\nall    0x3 (3)\n");
    ok(dir, &["convert", "vote.v", "--out", "vote.txt"]);
    assert_eq!(outputs(dir, "vote.txt", &["4", "1"]), json!(["0x1", "0x0"]));
    // A file comes before a name.
    std::fs::copy(dir.join("vote.txt"), dir.join("mult8")).unwrap();
    assert_eq!(outputs(dir, "mult8", &["4", "1"]), json!(["0x1", "0x0"]));
    let stats = json(&ok(dir, &["stats", "mult8", "--json"]));
    assert_eq!((&stats["input_wires"], &stats["paper"]), (&json!(4), &Value::Null));
}

/// What is said of a converted file is what the file has, which is the circuit that was read: converted again, it stays.
#[test]
fn a_converted_file_is_the_same_circuit() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // The first of both ANDs is a copy, for its other operand is 1.
    std::fs::write(dir.join("k.txt"), "3 5\n2 1 1\n1 1\n\n1 1 1 2 EQ\n2 1 0 2 3 AND\n2 1 3 1 4 AND\n")
        .unwrap();
    let stats = |file: &str| json(&ok(dir, &["stats", file, "--json"]));
    let read = stats("k.txt");
    for (from, to) in [("k.txt", "k1.txt"), ("k1.txt", "k2.txt")] {
        let made = json(&ok(dir, &["convert", from, "--out", to, "--json"]));
        for of in [&made, &stats(to)] {
            assert_eq!((&of["digest"], &of["ands"], &of["xors"]), (&read["digest"], &json!(1), &json!(0)));
        }
        let said = stderr(&ok(dir, &["convert", from, "--out", to, "--force"]));
        assert!(
            said.contains(&format!("1 ANDs and 0 XORs, digest {}", read["digest"].as_str().unwrap())),
            "{said}"
        );
    }
    let [one, two] = ["k1.txt", "k2.txt"].map(|file| std::fs::read(dir.join(file)).unwrap());
    assert_eq!(one, two);
}

/// What a circuit declares of its inputs is checked on one's own, and sets are put in order for the person.
#[test]
fn sets_are_put_in_order_and_what_is_none_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let eval = |a: &str, b: &str| {
        run(dir, &["circuit", "eval", "--circuit", "intersection4x44", "--json", "--input", a, "--input", b])
    };
    std::fs::write(dir.join("theirs.txt"), "\u{feff}400\r\n7\r\n7\r\n9\r\n").unwrap();
    let done = eval("9,400,1,7", "@theirs.txt");
    assert_eq!((&json(&done)["outputs"], &json(&done)["values"]), (&json!(["0x3"]), &json!([3])));
    assert_eq!(
        stderr(&done),
        "input a: 4 values, sorted\n\
         input b: 4 values, sorted, 1 that were there before left out, 1 random ones added, which the other side lacks\n"
    );
    // What is in order is taken as it is, in silence; so is a list in one number.
    let quiet = eval("1,7,9,400", "[1, 7, 9, 400]");
    assert_eq!((&json(&quiet)["values"], stderr(&quiet).as_str()), (&json!([4]), ""));
    // Every list that does not ascend strictly gave some size or other before.
    for list in ["0x0", "0x5", "0x00000000001_00000000001_00000000001_00000000001"] {
        refused(&eval("1,2,3,4", &list.replace('_', "")), &["input b", "strictly ascending", "5,7,9"]);
    }
    refused(&eval("1,2,3,4,5", "1,2,3,4"), &["input a has 5 values", "takes 4 of 44 bits"]);
    let narrow =
        ["circuit", "eval", "--circuit", "intersection4x32", "--input", "1,2,2,3", "--input", "1,2,3,4"];
    refused(&run(dir, &narrow), &["3 different values", "takes 4", "circuit of 3 values", "44 bits"]);
    // Lists come out as lists, and signs are refused where the circuit has none.
    let sorted = ok(dir, &["eval", "--circuit", "sort5x8", "--input", "9 3 200", "--input", "1=0x10,4"]);
    assert_eq!(stdout(&sorted), "sorted 0xc810090403 [3, 4, 9, 16, 200]\n");
    assert_eq!(outputs(dir, "sub64", &["-3", "-5"]), json!(["0x0000000000000002"]));
    let piped = ["circuit", "eval", "--circuit", "sort5x8", "--input", "-", "--input", "1=0x10,4"];
    let piped = run_with_input(dir, &piped, b"9 3 200\n");
    assert_eq!((code(&piped), stdout(&piped)), (0, stdout(&sorted)));
    let signed = ["circuit", "eval", "--circuit", "sort5x8", "--input", "-9,3,200", "--input", "16,4"];
    refused(&run(dir, &signed), &["value 1", "negative", "unsigned"]);
    // One value is not all of them, unless it says so in hexadecimal.
    std::fs::write(dir.join("one.txt"), "5\n").unwrap();
    refused(&eval("1,2,3,4", "@one.txt"), &["input b has 1 value,", "takes 4 of 44 bits"]);
    for one in ["@one.txt", "5", "0"] {
        let args = ["circuit", "eval", "--circuit", "sort6x16", "--input", one, "--input", "1,2,3"];
        refused(
            &run(dir, &args),
            &["input a has 1 value,", "takes 3 of 16 bits", "hexadecimal number 0x..."],
        );
    }
    let whole = ok(dir, &["eval", "--circuit", "sort6x16", "--input", "0x5", "--input", "1,2,3"]);
    assert!(stdout(&whole).contains("[0, 0, 1, 2, 3, 5]"), "{}", stdout(&whole));
}

/// Who reads integers gets no texts with larger numbers, and the other way round.
#[test]
fn values_in_json_are_of_one_kind_for_a_width() {
    let dir = tempfile::tempdir().unwrap();
    let values = |circuit: &str, inputs: [&str; 2]| {
        let eval =
            ["circuit", "eval", "--circuit", circuit, "--json", "--input", inputs[0], "--input", inputs[1]];
        json(&run(dir.path(), &eval))["values"].clone()
    };
    let most = u64::MAX.to_string();
    assert_eq!(values("add64", ["2", "3"]), json!([5]));
    assert_eq!(values("add64", [&most, "0"]), json!([u64::MAX]));
    assert_eq!(values("add65", ["2", "3"]), json!(["5"]));
    assert_eq!(values("add65", [&most, "2"]), json!(["18446744073709551617"]));
}

/// A list as spreadsheets write it, whose numbers would be more of them, and fewer of which both sides have.
#[test]
fn separators_of_thousands_are_refused_in_lists() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let eval = |theirs: &str| {
        std::fs::write(dir.join("theirs.txt"), theirs).unwrap();
        let inputs = ["--input", "@ours.txt", "--input", "@theirs.txt"];
        run(dir, &[&["circuit", "eval", "--circuit", "intersection4x64", "--json"], &inputs[..]].concat())
    };
    std::fs::write(dir.join("ours.txt"), "1234\n5678\n9000\n1\n").unwrap();
    assert_eq!(json(&eval("1234\n5678\n"))["values"], json!([2]));
    refused(&eval("1,234\n5,678\n"), &["input b, line 1", "separators of thousands", "1000 for 1,000"]);
    refused(&eval("1 234\n5 678\n"), &["input b, line 1", "separators of thousands"]);
    refused(&eval("9\n1234,5\n"), &["input b has 2 values in line 2", "one in each"]);
    for blank in ['\u{202f}', '\u{a0}'] {
        refused(&eval(&format!("1{blank}234\n5{blank}678\n")), &["value 1, is not a number"]);
    }
}

/// A file declares nothing of its inputs, so what it computes of lists in no order is not right: that it is the file is said.
#[test]
fn a_file_with_a_circuits_name_is_said_and_a_folder_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    ok(dir, &["make", "intersection4x8", "--out", "intersection4x8"]);
    let inputs = ["--input", "0x04030201", "--input", "0x08060402"];
    let made = ok(dir, &[&["eval", "--circuit", "intersection4x8"], &inputs[..]].concat());
    assert!(stderr(&made).contains("intersection4x8 is a file here"), "{}", stderr(&made));
    let meant = ok(dir, &[&["eval", "--circuit", "./intersection4x8"], &inputs[..]].concat());
    assert!(!stderr(&meant).contains("is a file here"), "{}", stderr(&meant));
    std::fs::create_dir(dir.join("mult8")).unwrap();
    assert_eq!(outputs(dir, "mult8", &["200", "123"]), json!(["0x6018"]));
}

#[test]
fn statistics_stand_beside_the_papers() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let stats = json(&ok(dir, &["stats", "mult32", "--json"]));
    let paper = json!({
        "layers": 249, "input_wires": 64, "output_wires": 64, "ands": 2016, "xors": 6016, "gates": 8032,
        "reprogrammings": 201, "wires": 8127, "one_to_one": 5024, "adjacent": 4063, "not_adjacent": 961,
        "most_one_to_one": 1024, "wires_a_layer": 32.6, "percent_a": 61.82, "percent_b": 80.9, "percent_c": 50.0,
    });
    assert_eq!((&stats["paper"], &stats["flexsc_ands"]), (&paper, &json!(2016)));
    for (column, theirs) in paper.as_object().unwrap() {
        assert_eq!(stats[column].is_u64(), theirs.is_u64(), "{column}");
    }
    let count = |name: &str| stats[name].as_u64().unwrap();
    assert!(count("ands") <= 2016 && count("gates") == count("ands") + count("xors"));
    assert_eq!(count("wires"), 64 + count("gates"));
    assert_eq!(count("one_to_one"), count("adjacent") + count("not_adjacent"));
    assert_eq!(count("reprogrammings"), count("ands").div_ceil(10));
    assert!(count("batches") >= count("layers").max(count("rounds")));
    let policies = |stats: &Value| -> Vec<(String, u64, u64)> {
        let of = stats["memory"]["policies"].as_array().unwrap();
        of.iter()
            .map(|p| {
                let accesses = p["ddr_reads"].as_u64().unwrap() + p["ddr_writes"].as_u64().unwrap();
                (p["policy"].as_str().unwrap().to_owned(), accesses, p["block_ram_words"].as_u64().unwrap())
            })
            .collect()
    };
    let [direct, frequent, lifetimes] = &policies(&stats)[..] else { panic!("{stats}") };
    assert_eq!(
        [&direct.0, &frequent.0, &lifetimes.0],
        ["directly-used", "most-frequently-used", "lifetimes"]
    );
    assert!(lifetimes.1 < direct.1 && lifetimes.1 <= frequent.1 && lifetimes.2 < frequent.2);
    // Without block RAM every access is to DDR; with other cells the paper's reprogrammings don't compare.
    let none = ["stats", "mult32", "--memory", "0", "--ands", "15", "--xors", "15", "--json", "--plot"];
    let none = json(&ok(dir, &none));
    assert!(
        policies(&none).iter().all(|(_, accesses, words)| (*accesses, *words) == (3 * count("gates"), 0))
    );
    assert!(none["paper"]["reprogrammings"].is_null() && none["paper"]["layers"] == 249);
    let by_layer = none["ands_by_layer"].as_array().unwrap();
    let sum: u64 = by_layer.iter().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!((sum, by_layer.len() as u64), (count("ands"), count("layers")));

    let text = stdout(&ok(dir, &["stats", "mult32", "--plot"]));
    let columns = |start: &str| -> Vec<String> {
        let line = text.lines().find(|l| l.contains(start)).unwrap_or_else(|| panic!("no {start} in {text}"));
        line.split(start).nth(1).unwrap().split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(columns("D: most in a layer"), [stats["most_one_to_one"].to_string(), "1024".into()]);
    assert_eq!(columns("ANDs of today's FlexSC")[0], "2016");
    assert!(text.contains("####") && text.lines().all(|l| l.chars().count() < 110), "{text}");
    // What is not the paper's stands alone.
    assert!(!stdout(&ok(dir, &["stats", "add64"])).contains("paper"));
    assert!(stdout(&ok(dir, &["stats", "add3", "--plot"])).contains("ANDs by layer"));
}

/// What repro/sifo keeps is what the command says.
#[test]
fn the_kept_tables_are_those_of_today() {
    let dir = tempfile::tempdir().unwrap();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../repro/sifo/tables.json");
    let kept: Value = serde_json::from_slice(&std::fs::read(kept).unwrap()).unwrap();
    let rows = kept["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 14);
    for row in rows {
        let today = json(&ok(dir.path(), &["stats", row["circuit"].as_str().unwrap(), "--json"]));
        assert_eq!(&today, row, "make both of repro/sifo's tables again, as its README.md says");
    }
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let refuse = |args: &[&str], words: &[&str]| refused(&run(dir, &[&["circuit"], args].concat()), words);
    refuse(&["make", "nothing"], &["nothing", "mult<N>"]);
    refuse(&["make", "mult100000", "--out", "x"], &["100000", "2048"]);
    refuse(&["stats", "no/such.txt"], &["no/such.txt", "circuit list"]);
    refuse(&["stats", "mult8", "--ands", "0"], &["0 AND cells"]);
    refuse(&["stats", "mult8", "--xors", "0"], &["0 XOR cells"]);
    refuse(&["stats", "mult8", "--memory", "99999999999"], &["99999999999", "2147483648"]);
    refuse(&["stats", "."], &["."]);
    let eval = |circuit: &str, inputs: &[&str], words: &[&str]| {
        let inputs: Vec<&str> = inputs.iter().flat_map(|i| ["--input", i]).collect();
        refuse(&[&["eval", "--json", "--circuit", circuit], &inputs[..]].concat(), words);
    };
    eval("mult8", &["1"], &["1 of 2 values", "a (8 bits), b (8 bits)"]);
    eval("mult8", &["1", "2", "3"], &["3 of 2 values"]);
    eval("mult8", &["256", "1"], &["input a has 9 bits", "over its 8", "2^8"]);
    eval("mult8", &["1", "-1"], &["input b", "two's complement"]);
    eval("mult8", &["1", "0x1g"], &["input b", "character 4", "0x-hexadecimal"]);
    eval("mult8", &["1", ""], &["input b"]);
    std::fs::write(dir.join("wrong.txt"), "1 3\n2 1 1\n1 1\n\n2 1 0 7 2 AND\n").unwrap();
    for command in [&["stats", "wrong.txt"][..], &["convert", "wrong.txt", "--out", "y.txt"]] {
        refuse(command, &["wrong.txt", "line 5", "7"]);
    }
    assert!(!dir.join("y.txt").exists());
    refuse(&["convert", "wrong.txt", "--out", "wrong.txt"], &["--out", "another file"]);
    refuse(&["make", "mult8", "--out", "no/folder.txt"], &["no/folder.txt"]);
    refuse(&["make", "mult8", "--out", "-"], &["names no file"]);
    assert!(std::fs::read_to_string(dir.join("wrong.txt")).unwrap().starts_with("1 3\n"));
    // A pipe that nobody writes to.
    assert!(std::process::Command::new("mkfifo").arg(dir.join("pipe")).status().unwrap().success());
    refuse(&["stats", "pipe"], &["pipe", "not a regular file"]);
    // A circuit without ANDs has no tables, but labels.
    let wide = "0 1000000\n1 1000000\n1 1000000\n";
    std::fs::write(dir.join("wide.txt"), wide).unwrap();
    refuse(&["garble", "--circuit", "wide.txt", "--instances", "1000000"], &["labels", "fewer --instances"]);
}

/// What keeps an identity from being made has to do with no peer.
#[test]
fn an_identity_s_errors_are_not_a_peer_s() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    ok(dir, &["identity", "alice"]);
    for (args, code) in [
        (&["no name"][..], "refused"),
        (&["alice"], "refused"),
        (&["bob", "--out", "nowhere"], "refused"),
        (&["bob", "--out", "alice.crt"], "io"),
    ] {
        let output = run(dir, &[&["circuit", "identity", "--json"], args].concat());
        refused(&output, &[]);
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(said["code"], code, "{said}");
    }
}

/// A disk that takes no more, here a limit of the process, has a remedy and leaves nothing.
#[test]
fn a_circuit_that_finds_no_room_has_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    ok(dir, &["make", "mult64", "--out", "whole.txt"]);
    for command in ["make mult64", "convert whole.txt"] {
        let limited = format!("ulimit -f 8; exec \"$0\" circuit {command} --out part.txt --json");
        let mut shell = std::process::Command::new("sh");
        let output =
            shell.current_dir(dir).args(["-c", &limited, env!("CARGO_BIN_EXE_blindcore")]).output().unwrap();
        refused(&output, &["part.txt can't be written: ", "; raise the limit of a file's size (ulimit -f)"]);
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(said["code"], "io", "{said}");
        assert_eq!(std::fs::read_dir(dir).unwrap().count(), 1);
    }
}

#[test]
fn no_private_key_is_lost_and_no_half_of_an_identity_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    ok(dir, &["identity", "alice"]);
    let key = std::fs::read(dir.join("alice.key")).unwrap();
    ok(dir, &["make", "add8", "--out", "add.txt"]);
    for command in [&["make", "add8"][..], &["convert", "add.txt"]] {
        let output = run(dir, &[&["circuit"], command, &["--out", "alice.key"]].concat());
        refused(&output, &["alice.key is a secret key", "another file"]);
    }
    assert_eq!(std::fs::read(dir.join("alice.key")).unwrap(), key);
    // There is no place for one of both files.
    for (taken, other) in [("bob.crt", "bob.key"), ("carol.key", "carol.crt")] {
        std::os::unix::fs::symlink("nowhere", dir.join(taken)).unwrap();
        refused(&run(dir, &["circuit", "identity", &taken[..taken.len() - 4]]), &[taken]);
        assert!(!dir.join(other).exists(), "{other}");
    }
    for name in ["no name", "dave."] {
        refused(&run(dir, &["circuit", "identity", name]), &["alice.example.org"]);
    }
    refused(&run(dir, &["circuit", "identity", "alice"]), &["nothing was written; give another NAME"]);
}
