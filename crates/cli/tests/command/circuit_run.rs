//! `blindcore circuit run`: parties as processes, over real sockets.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Serving, blindcore, code, json, own_host, refused, run, stderr};

/// Both parties: the garbler listens, the evaluator connects. Their outputs, garbler's first.
fn both(dir: &Path, common: &[&str], garbler: &[&str], evaluator: &[&str]) -> (Output, Output) {
    let mut listener = party(dir, "garbler", &[&["--listen", "127.0.0.1:0"], common, garbler].concat());
    let address = address(&mut listener);
    let evaluated =
        party(dir, "evaluator", &[&["--connect", &address], common, evaluator].concat()).wait_with_output();
    (finish(listener), evaluated.expect("it ends"))
}

fn party(dir: &Path, role: &str, args: &[&str]) -> Child {
    party_waiting(dir, role, "60", args)
}

/// One that waits this many seconds for its peer to be there.
fn party_waiting(dir: &Path, role: &str, seconds: &str, args: &[&str]) -> Child {
    let mut command = blindcore(dir);
    command
        .args(["circuit", "run", "--role", role, "--json", "--timeout", "30", "--wait", seconds])
        .args(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
}

/// The next line that a party says.
fn line(child: &mut Child) -> String {
    let stderr = child.stderr.as_mut().expect("piped");
    let (mut line, mut byte) = (Vec::new(), [0]);
    while stderr.read(&mut byte).expect("readable") == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    String::from_utf8(line).expect("UTF-8")
}

/// Where a listening party says that it listens.
fn address(child: &mut Child) -> String {
    loop {
        let line = line(child);
        // What was done to its values is said before.
        if !line.starts_with("input ") {
            return line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
        }
    }
}

/// What a party whose first lines were taken still says.
fn finish(child: Child) -> Output {
    child.wait_with_output().expect("it ends")
}

fn outputs(output: &Output) -> Value {
    json(output)["outputs"].clone()
}

fn certificates(dir: &Path) {
    for name in ["alice", "bob", "eve"] {
        let made = run(dir, &["circuit", "identity", name]);
        assert_eq!(code(&made), 0, "{}", stderr(&made));
    }
}

const ALICE: [&str; 6] = ["--cert", "alice.crt", "--key", "alice.key", "--trust", "bob.crt"];
const BOB: [&str; 8] =
    ["--cert", "bob.crt", "--key", "bob.key", "--trust", "alice.crt", "--peer-name", "alice"];

#[test]
fn standards_vectors_between_two_processes() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    certificates(dir);
    // FIPS 197, appendix B.
    let (key, block) = ("0x2b7e151628aed2a6abf7158809cf4f3c", "0x3243f6a8885a308d313198a2e0370734");
    std::fs::write(dir.join("key.txt"), format!("{key}\n")).unwrap();
    let (garbled, evaluated) = both(
        dir,
        &["--circuit", "aes128", "--check-transfers"],
        &[&["--input", "@key.txt"], &ALICE[..]].concat(),
        &[&["--input", block], &BOB[..]].concat(),
    );
    for output in [&garbled, &evaluated] {
        assert_eq!(outputs(output), json!(["0x3925841d02dc09fbdc118597196a0b32"]), "{}", stderr(output));
    }
    assert_eq!(json(&evaluated)["table_bytes"], 32 * json(&evaluated)["ands"].as_u64().unwrap());
    // FIPS 180-4's example, "abc": one block after the initial state, the block's last input the evaluator's.
    let state = "0x6a09e667bb67ae853c6ef372a54ff53a510e527f9b05688c1f83d9ab5be0cd19";
    let block = format!("0x61626380{:0>120}", "18");
    let (garbled, evaluated) = both(
        dir,
        &["--circuit", "sha256", "--reveal", "evaluator"],
        &["--input", state, "--scheme", "three-halves"],
        &["--input", &block],
    );
    assert_eq!(outputs(&garbled), Value::Null);
    let digest = json!(["0xba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"]);
    assert_eq!(outputs(&evaluated), digest, "{}", stderr(&evaluated));
    assert_eq!(json(&garbled)["table_bytes"], 25 * json(&garbled)["ands"].as_u64().unwrap());
    // No secret in anything that was said.
    for output in [&garbled, &evaluated] {
        assert!(!stderr(output).contains("6a09e667") && !stderr(output).contains("61626380"));
    }
}

/// Two lists in no order: each side sorts and fills up its own, and both learn how many values they share.
#[test]
fn sets_between_two_processes() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("ours.txt"), "31\n4\n15\n4\n").unwrap();
    let circuit = ["--circuit", "intersection4x44"];
    let (garbled, evaluated) = both(dir, &circuit, &["--input", "@ours.txt"], &["--input", "15,31,16,2"]);
    for output in [&garbled, &evaluated] {
        assert_eq!(json(output)["values"], json!([2]), "{}", stderr(output));
    }
    assert!(stderr(&evaluated).starts_with("input b: 4 values, sorted\n"), "{}", stderr(&evaluated));
    let alone =
        ["circuit", "run", "--role", "garbler", "--listen", "127.0.0.1:0", "--wait", "1", "--circuit"];
    refused(
        &run(dir, &[&alone[..], &["intersection4x44", "--input", "0x7"]].concat()),
        &["strictly ascending"],
    );
}

#[test]
fn a_netlist_that_yosys_made() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let netlist = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/circuits/auction.net.v");
    let shape = json(&run(dir, &["circuit", "stats", netlist, "--json"]));
    assert!(shape["ands"].as_u64().unwrap() > 0);
    let inputs: usize = {
        let refusal = run(dir, &["circuit", "eval", "--circuit", netlist]);
        stderr(&refusal).matches(" bits)").count()
    };
    assert!(inputs >= 2, "{inputs}");
    let values: Vec<String> = (0..inputs).map(|i| ((i * 7 + 3) % 8).to_string()).collect();
    let given: Vec<&str> = values.iter().flat_map(|v| ["--input", v]).collect();
    let clear = run(dir, &[&["circuit", "eval", "--circuit", netlist, "--json"], &given[..]].concat());
    let (garbled, evaluated) = both(dir, &["--circuit", netlist], &given[..2], &given[2..]);
    assert_eq!(outputs(&garbled), outputs(&clear), "{}", stderr(&garbled));
    assert_eq!(outputs(&evaluated), outputs(&clear), "{}", stderr(&evaluated));
}

#[test]
fn rounds_and_places() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let clear = |state: &str| {
        let args = ["circuit", "eval", "--circuit", "sha256", "--json", "--input", state, "--input", "77"];
        outputs(&run(dir, &args))
    };
    let once = clear("0x1234");
    let twice = clear(once[0].as_str().unwrap());
    // The garbler holds the second input, which stays; the first becomes the result of the round.
    let common = ["--circuit", "sha256", "--rounds", "2"];
    let (garbled, evaluated) = both(dir, &common, &["--input", "1=77"], &["--input", "0=0x1234"]);
    assert_eq!(outputs(&garbled), twice, "{}", stderr(&garbled));
    assert_eq!(outputs(&evaluated), twice, "{}", stderr(&evaluated));
    // The same from a file that both stream; one that doesn't has another order of gates.
    let made = run(dir, &["circuit", "make", "sha256", "--out", "sha.txt"]);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    let common = ["--circuit", "sha.txt", "--rounds", "2"];
    let (one, other) = (["--input", "1=77", "--stream"], ["--input", "0=0x1234", "--stream"]);
    let (garbled, evaluated) = both(dir, &common, &one, &other);
    assert_eq!(outputs(&garbled), twice, "{}", stderr(&garbled));
    assert_eq!(outputs(&evaluated), twice, "{}", stderr(&evaluated));
    differ(dir, &common, &one[..2], &other, &["--stream"]);
    let wider = run(
        dir,
        &[
            "circuit",
            "run",
            "--role",
            "garbler",
            "--circuit",
            "mult8",
            "--rounds",
            "2",
            "--listen",
            "127.0.0.1:0",
        ],
    );
    refused(&wider, &["16 bits", "make them as wide"]);
}

/// Strangers, a wrong owner and the right ones: the garbler names each who comes and who is missing, and goes on.
#[test]
fn who_comes_and_who_is_missing_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let circuit = ["--circuit", "auction3x16"];
    let waits = [&circuit[..], &["--owners", "--listen", "127.0.0.1:0"]].concat();
    let mut garbler = party(dir, "garbler", &waits);
    let to_garbler = address(&mut garbler);
    let _silent = TcpStream::connect(&to_garbler).unwrap();
    TcpStream::connect(&to_garbler).unwrap().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let stranger = line(&mut garbler);
    assert!(stranger.contains("turned away: the peer sent a request of HTTP"), "{stranger}");
    let mut evaluator = party(dir, "evaluator", &[&waits[..], &["--connect", &to_garbler]].concat());
    let to_evaluator = address(&mut evaluator);
    let here = line(&mut garbler);
    assert!(here.starts_with("the evaluator is here; missing: owners of inputs 0 ("), "{here}");
    let owner = |bid: &str| {
        let to = ["--input", bid, "--connect", &to_garbler, "--evaluator", &to_evaluator];
        party(dir, "owner", &[&circuit[..], &to].concat())
    };
    let first = owner("0=410");
    let here = line(&mut garbler);
    assert!(
        here.starts_with("the owner of input 0 (") && here.contains("missing: owners of inputs 1 ("),
        "{here}"
    );
    refused(&owner("0=999").wait_with_output().unwrap(), &["input 0", "another owner"]);
    let wrong = line(&mut garbler);
    assert!(wrong.contains("turned away: input 0"), "{wrong}");
    for owner in [owner("1=977"), owner("2=650"), first] {
        let output = owner.wait_with_output().unwrap();
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
    let (garbled, evaluated) = (finish(garbler), finish(evaluator));
    for output in [&garbled, &evaluated] {
        assert_eq!(outputs(output), json!(["0x1", "0x028a"]), "{}", stderr(output));
        assert!(stderr(output).contains("and so is everybody"), "{}", stderr(output));
    }
}

/// An owner that is killed while others are awaited: its place is free again, on both sides, and the session goes on.
#[test]
fn a_killed_owner_leaves_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    certificates(dir);
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    std::fs::write(dir.join("all.crt"), ["alice.crt", "bob.crt", "eve.crt"].map(read).concat()).unwrap();
    for tls in [false, true] {
        let start = |role: &str, name: &str, args: &[&str]| {
            let [cert, key] = ["crt", "key"].map(|ending| format!("{name}.{ending}"));
            let own = ["--cert", &cert, "--key", &key, "--trust", "all.crt"];
            let own = if tls { &own[..] } else { &[] };
            party(dir, role, &[&["--circuit", "auction3x16"], args, own].concat())
        };
        let named = |args: &[&'static str]| if tls { args.to_vec() } else { Vec::new() };
        let waits = ["--owners", "--listen", "127.0.0.1:0"];
        let mut garbler = start("garbler", "alice", &waits);
        let to_garbler = address(&mut garbler);
        let to = [&waits[..], &["--connect", &to_garbler], &named(&["--peer-name", "alice"])].concat();
        let mut evaluator = start("evaluator", "bob", &to);
        let to_evaluator = address(&mut evaluator);
        assert!(line(&mut garbler).starts_with("the evaluator is here"));
        let names = named(&["--peer-name", "alice", "--evaluator-name", "bob"]);
        let owner = |bid: &str| {
            let to = ["--input", bid, "--connect", &to_garbler, "--evaluator", &to_evaluator];
            start("owner", "eve", &[&to[..], &names].concat())
        };
        let mut first = owner("0=410");
        for side in [&mut garbler, &mut evaluator] {
            let here = line(side);
            assert!(here.starts_with("the owner of input 0 (\"bid0\") is here; missing:"), "{here}");
        }
        first.kill().unwrap();
        first.wait().unwrap();
        for side in [&mut garbler, &mut evaluator] {
            let gone = line(side);
            let want = "the owner of input 0 (\"bid0\") is gone, and another may take its place; missing: owners of inputs 0 (";
            assert!(gone.starts_with(want), "{gone}");
        }
        for owner in [owner("1=977"), owner("0=980"), owner("2=650")] {
            let output = owner.wait_with_output().unwrap();
            assert_eq!(code(&output), 0, "{}", stderr(&output));
        }
        for output in [garbler, evaluator].map(finish) {
            assert_eq!(outputs(&output), json!(["0x0", "0x03d1"]), "{}", stderr(&output));
        }
    }
}

#[test]
fn owners_of_an_auction() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let circuit = ["--circuit", "auction3x16", "--reveal", "evaluator"];
    let garbler_args = [&circuit[..], &["--owners", "--listen", "127.0.0.1:0"]].concat();
    let mut garbler = party(dir, "garbler", &garbler_args);
    let to_garbler = address(&mut garbler);
    let evaluator_args =
        [&circuit[..], &["--owners", "--listen", "127.0.0.1:0", "--connect", &to_garbler]].concat();
    let mut evaluator = party(dir, "evaluator", &evaluator_args);
    let to_evaluator = address(&mut evaluator);
    let owners: Vec<Child> = [410, 977, 650]
        .iter()
        .enumerate()
        .map(|(place, bid)| {
            let bid = format!("{place}={bid}");
            let to = ["--input", &bid, "--connect", &to_garbler, "--evaluator", &to_evaluator];
            party(dir, "owner", &[&circuit[..], &to].concat())
        })
        .collect();
    for owner in owners {
        let output = owner.wait_with_output().unwrap();
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
    let (garbled, evaluated) = (finish(garbler), finish(evaluator));
    assert_eq!(outputs(&garbled), Value::Null, "{}", stderr(&garbled));
    // The highest bid is the second owner's, the price the third's.
    assert_eq!(outputs(&evaluated), json!(["0x1", "0x028a"]), "{}", stderr(&evaluated));
}

/// Over TLS, where the garbler and the evaluator have names of their own, and one owner is later than a silence may last.
#[test]
fn owners_wait_for_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    certificates(dir);
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    std::fs::write(dir.join("all.crt"), ["alice.crt", "bob.crt", "eve.crt"].map(read).concat()).unwrap();
    let party = |role: &str, name: &str, args: &[&str]| {
        let mut command = blindcore(dir);
        command.args(["circuit", "run", "--json", "--circuit", "mult8", "--timeout", "4", "--wait", "30"]);
        command.args([
            "--cert",
            &format!("{name}.crt"),
            "--key",
            &format!("{name}.key"),
            "--trust",
            "all.crt",
        ]);
        command.args(["--role", role]).args(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
    };
    let mut garbler = party("garbler", "alice", &["--owners", "--listen", "127.0.0.1:0"]);
    let to_garbler = address(&mut garbler);
    let waits = ["--owners", "--listen", "127.0.0.1:0", "--connect", &to_garbler, "--peer-name", "alice"];
    let mut evaluator = party("evaluator", "bob", &waits);
    let to_evaluator = address(&mut evaluator);
    let to = ["--connect", &to_garbler, "--evaluator", &to_evaluator];
    let names = ["--peer-name", "alice", "--evaluator-name", "bob"];
    let first = party("owner", "eve", &[&to[..], &names, &["--input", "0=6"]].concat());
    let (_never, wait) = mpsc::channel::<()>();
    let _ = wait.recv_timeout(Duration::from_secs(6));
    let second = party("owner", "eve", &[&to[..], &names, &["--input", "1=7"]].concat());
    for output in [garbler, evaluator].map(finish) {
        assert_eq!(outputs(&output), json!(["0x002a"]), "{}", stderr(&output));
    }
    for output in [first, second].map(finish) {
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    certificates(dir);
    let alone = |args: &[&str]| run(dir, &[&["circuit", "run", "--wait", "1"], args].concat());
    let mult = ["--circuit", "mult8"];
    let garbler = ["--role", "garbler", "--circuit", "mult8", "--listen", "127.0.0.1:0"];
    refused(&alone(&[&garbler[..], &["--input", "256"]].concat()), &["9 bits", "8"]);
    refused(&alone(&[&garbler[..], &["--input", "5=1"]].concat()), &["no input 5", "has 2"]);
    refused(&alone(&[&garbler[..], &["--input", "1", "--input", "0=1"]].concat()), &["given twice"]);
    refused(&alone(&[&garbler[..], &["--input", "@nowhere"]].concat()), &["nowhere"]);
    refused(
        &alone(&[&garbler[..], &["--input", "@."]].concat()),
        &["input a", "from .: ", "give a file of text"],
    );
    refused(&alone(&[&garbler[..], &["--input", "+1=3"]].concat()), &["not a place", "PLACE=VALUE"]);
    refused(&alone(&[&garbler[..], &["--input", "@/dev/zero"]].concat()), &["4104 characters", "8 bits"]);
    // Before anything is bound, which would be a line of its own.
    std::fs::write(dir.join("many.txt"), format!("0 1025\n1025 {}\n1 1\n", "1 ".repeat(1025))).unwrap();
    let many = ["--role", "garbler", "--circuit", "many.txt", "--input", "1", "--listen", "127.0.0.1:0"];
    let said = alone(&many);
    refused(
        &said,
        &["a session takes at most 1024 inputs, and this circuit has 1025; join inputs into wider ones"],
    );
    assert!(!stderr(&said).contains("listening"), "{}", stderr(&said));
    // Options that would not be heeded.
    let owners = [&garbler[..], &["--owners"]].concat();
    refused(&alone(&[&owners[..], &["--check-transfers"]].concat()), &["for two parties", "leave it away"]);
    refused(&alone(&[&owners[..], &["--scheme", "three-halves"]].concat()), &["half-gates"]);
    refused(&alone(&[&owners[..], &["--connect", "127.0.0.1:1"]].concat()), &["--listen"]);
    refused(
        &alone(&[&owners[..], &["--peer-name", "bob"], &ALICE].concat()),
        &["--peer-name is for one peer", "--trust"],
    );
    let owner = ["--role", "owner", "--circuit", "mult8", "--connect", "127.0.0.1:1", "--evaluator"];
    refused(&alone(&[&owner[..], &["127.0.0.1:2"]].concat()), &["without an input", "PLACE=VALUE"]);
    // Nobody listens where nobody could.
    let nowhere = ["--role", "evaluator", "--circuit", "mult8", "--input", "1", "--connect", "127.0.0.1:1"];
    refused(&alone(&nowhere), &["no peer within 1 s", "--wait"]);
    refused(&alone(&["--role", "garbler", "--circuit", "mult8"]), &["--listen", "--connect"]);
    refused(
        &alone(&["--role", "owner", "--circuit", "mult8", "--input", "1", "--connect", "127.0.0.1:1"]),
        &["PLACE=VALUE"],
    );
    refused(
        &alone(&["--role", "garbler", "--circuit", "mult8", "--listen", "0.0.0.0:0"]),
        &["not on this machine", "--plain-text"],
    );
    let swapped = ["--cert", "alice.crt", "--key", "bob.key", "--trust", "bob.crt"];
    refused(
        &alone(&[&garbler[..], &["--input", "1"], &swapped].concat()),
        &["bob.key: it is not the key of", "alice.crt"],
    );
    let empty = ["--cert", "alice.crt", "--key", "alice.key", "--trust", "/dev/null"];
    refused(&alone(&[&garbler[..], &["--input", "1"], &empty].concat()), &["there is none in it"]);

    // A name that is none is one before anybody is reached, also of the second whom an owner goes to.
    let there = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = there.local_addr().unwrap().to_string();
    let owner =
        ["--role", "owner", "--circuit", "mult8", "--input", "0=1", "--connect", &address, "--evaluator"];
    for name in ["", "*"] {
        for option in ["--peer-name", "--evaluator-name"] {
            let named = [&owner[..], &["127.0.0.1:1", option, name], &ALICE].concat();
            refused(&alone(&named), &[option, "take one such as alice"]);
        }
    }
    there.set_nonblocking(true).unwrap();
    assert_eq!(there.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    let streamed =
        ["--role", "garbler", "--circuit", "mult8", "--stream", "--input", "1", "--listen", "127.0.0.1:0"];
    refused(&alone(&streamed), &["--stream takes a file", "circuit make mult8 --out FILE"]);

    differ(dir, &mult, &["--input", "1"], &["--input", "2", "--reveal", "garbler"], &["--reveal"]);
    differ(
        dir,
        &[],
        &["--circuit", "mult8"],
        &["--circuit", "add8", "--input", "2"],
        &["circuit", "same file"],
    );
    differ(dir, &mult, &[], &["--input", "2"], &["input 0", "nobody"]);
}

/// Two sides that don't agree: the evaluator is refused, the garbler says why and waits for another.
fn differ(dir: &Path, common: &[&str], garbler: &[&str], evaluator: &[&str], words: &[&str]) {
    let mut listener = party(dir, "garbler", &[&["--listen", "127.0.0.1:0"], common, garbler].concat());
    let address = address(&mut listener);
    let evaluated = party(dir, "evaluator", &[&["--connect", &address], common, evaluator].concat());
    refused(&evaluated.wait_with_output().expect("it ends"), words);
    let said = line(&mut listener);
    assert!(
        said.starts_with("a connection from 127.0.0.1:") && said.contains(" was turned away: "),
        "{said}"
    );
    for word in words {
        assert!(said.contains(word), "no {word:?} in: {said}");
    }
    listener.kill().unwrap();
    listener.wait().unwrap();
}

#[test]
fn strangers_are_turned_away() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    certificates(dir);
    let mut garbler = party(
        dir,
        "garbler",
        &[&["--circuit", "mult8", "--input", "6", "--listen", "127.0.0.1:0"], &ALICE[..]].concat(),
    );
    let address = address(&mut garbler);
    // Somebody who speaks no TLS, one whom alice does not trust, and one who waits for another name than alice.
    TcpStream::connect(&address).unwrap().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let to = ["--circuit", "mult8", "--input", "7", "--connect", &address];
    let eve = ["--cert", "eve.crt", "--key", "eve.key", "--trust", "alice.crt", "--peer-name", "alice"];
    let evil = party(dir, "evaluator", &[&to[..], &eve].concat()).wait_with_output().unwrap();
    refused(&evil, &[]);
    let mut misnamed = BOB;
    misnamed[7] = "carol";
    let other = party(dir, "evaluator", &[&to[..], &misnamed].concat()).wait_with_output().unwrap();
    refused(&other, &["TLS", "carol"]);
    let bob = party(dir, "evaluator", &[&to[..], &BOB].concat()).wait_with_output().unwrap();
    assert_eq!(outputs(&bob), json!(["0x002a"]), "{}", stderr(&bob));
    let garbled = finish(garbler);
    assert_eq!(outputs(&garbled), json!(["0x002a"]));
    assert!(stderr(&garbled).contains("turned away"), "{}", stderr(&garbled));
    assert!(
        stderr(&garbled).contains("it wants another name than the certificate of this side has"),
        "{}",
        stderr(&garbled)
    );
}

/// Of two whom it trusts, a garbler that waits for bob takes bob.
#[test]
fn a_listening_party_takes_the_peer_that_it_names() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    certificates(dir);
    let both = ["bob.crt", "eve.crt"].map(|name| std::fs::read_to_string(dir.join(name)).unwrap());
    std::fs::write(dir.join("both.crt"), both.concat()).unwrap();
    let mut alice = ALICE;
    alice[5] = "both.crt";
    let listens = ["--circuit", "mult8", "--input", "6", "--listen", "127.0.0.1:0", "--peer-name", "bob"];
    let mut garbler = party(dir, "garbler", &[&listens[..], &alice].concat());
    let address = address(&mut garbler);
    let to = ["--circuit", "mult8", "--input", "7", "--connect", &address];
    let eve = ["--cert", "eve.crt", "--key", "eve.key", "--trust", "alice.crt", "--peer-name", "alice"];
    let other = party(dir, "evaluator", &[&to[..], &eve].concat()).wait_with_output().unwrap();
    refused(&other, &["wants another name than the certificate of this side", "--peer-name"]);
    let bob = party(dir, "evaluator", &[&to[..], &BOB].concat()).wait_with_output().unwrap();
    assert_eq!(outputs(&bob), json!(["0x002a"]), "{}", stderr(&bob));
    let garbled = finish(garbler);
    assert!(stderr(&garbled).contains("for eve, and not for bob"), "{}", stderr(&garbled));
}

#[test]
fn a_silent_peer_and_a_strange_one() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let to = ["circuit", "run", "--role", "evaluator", "--circuit", "mult8", "--input", "1", "--timeout"];
    let connect = |timeout, say: &'static [u8]| {
        std::thread::scope(|scope| {
            let peer = scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                stream.write_all(say).unwrap();
                // Held open until the other side has gone.
                let _ = stream.read_to_end(&mut Vec::new());
            });
            let output = run(dir, &[&to[..], &[timeout, "--connect", &address]].concat());
            peer.join().unwrap();
            output
        })
    };
    refused(&connect("1", b""), &["silent", "--timeout"]);
    refused(&connect("30", b"SSH-2.0-OpenSSH_9.9\r\n"), &["due"]);
}

/// At twenty moments of a session one of the parties is killed: the other ends, says so in a line, and shows nothing.
#[test]
fn either_party_killed_at_random_moments() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let common = ["--circuit", "sha256", "--rounds", "60"];
    let (mut ended, mut broken) = (0, 0);
    // A wait that nobody ends: moments are the clock's, and which they are matters to no assertion.
    let (_never, wait) = mpsc::channel::<()>();
    for moment in 0..20u64 {
        // One that is killed before it connects is waited for in vain, which ends a session like any other death.
        let start = |role, args: &[&str]| party_waiting(dir, role, "1", &[&common[..], args].concat());
        let mut garbler = start("garbler", &["--input", "1", "--listen", &format!("{}:0", own_host(3))]);
        let address = address(&mut garbler);
        let mut evaluator = start("evaluator", &["--input", "2", "--connect", &address]);
        let _ = wait.recv_timeout(Duration::from_millis(moment * moment * 2 + moment * 7));
        let survivor = if moment % 2 == 0 {
            garbler.kill().unwrap();
            garbler.wait().unwrap();
            evaluator
        } else {
            evaluator.kill().unwrap();
            evaluator.wait().unwrap();
            garbler
        };
        let output = finish(survivor);
        match code(&output) {
            0 => ended += 1,
            _ => {
                // A peer that was killed before it was greeted was turned away, which is said before.
                let said = stderr(&output);
                let (before, last) = said.trim_end().rsplit_once('\n').unwrap_or(("", said.trim_end()));
                assert!(before.lines().all(|line| line.contains("was turned away")), "{said}");
                assert!(last.starts_with("blindcore: "), "{said}");
                let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
                assert!(shown["error"].is_string() && shown["outputs"].is_null(), "{shown}");
                assert_eq!(code(&output), 2);
                broken += 1;
            }
        }
    }
    assert_eq!(ended + broken, 20);
    assert!(broken >= 5, "only {broken} of twenty were killed before the end");
}

/// The helper for servers reads the same line.
#[test]
fn a_party_says_where_it_listens() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["circuit", "run", "--role", "garbler", "--circuit", "mult8", "--input", "1"];
    let serving = Serving::start_as(dir.path(), &[&args[..], &["--listen", "127.0.0.1:0"]].concat());
    assert!(serving.url.starts_with("127.0.0.1:"), "{}", serving.url);
}

#[test]
fn garbling_alone_and_what_is_broken() {
    let dir = tempfile::tempdir().unwrap();
    let garble = |args: &[&str]| run(dir.path(), &[&["circuit", "garble", "--circuit"], args].concat());
    for (scheme, bytes) in [("half-gates", 32), ("three-halves", 25)] {
        let done = json(&garble(&["sort10x4", "--scheme", scheme, "--instances", "5", "--json"]));
        assert_eq!((&done["ands"], &done["table_bytes"]), (&json!(1160), &json!(1160 * bytes)));
    }
    refused(&garble(&["mult8", "--scheme", "sifo"]), &["SHA-1", "80 bits", "--allow-broken"]);
    let allowed = garble(&["mult8", "--scheme", "sifo", "--allow-broken", "--json"]);
    assert_eq!(json(&allowed)["table_bytes"], 120 * 30);
    assert!(stderr(&allowed).contains("broken"), "{}", stderr(&allowed));
    refused(&garble(&["matmul10x10x32", "--instances", "1000000"]), &["fewer --instances"]);
}
