//! What is said of mistakes: each is made, and what is printed stands in docs/reference/errors.md.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Output, Stdio};

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

use crate::common::{Serving, blindcore, code, json, refused, run, stderr, stdout};

/// The page, and how it is written again: with this variable set.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/errors.md");
const WRITE: &str = "WRITE_PAGES";

/// A certificate that signs itself, as an authority's or not, with its key.
fn certificate(dir: &Path, file: &str, name: &str, authority: bool) {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    if authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let key = KeyPair::generate().unwrap();
    std::fs::write(dir.join(file).with_extension("crt"), params.self_signed(&key).unwrap().pem()).unwrap();
    let path = dir.join(file).with_extension("key");
    std::fs::write(&path, key.serialize_pem()).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}

/// The page as it grows.
struct Page<'a> {
    dir: &'a Path,
    text: String,
    /// Ports as they were given out, and as the page has them.
    ports: Vec<(String, &'static str)>,
}

impl Page<'_> {
    fn stable(&self, text: &str) -> String {
        let text = self.ports.iter().fold(text.to_owned(), |text, (port, shown)| text.replace(port, shown));
        // The port of one who connects is the system's choice.
        let Some((before, rest)) = text.split_once(FROM) else { return text };
        format!("{before}{FROM}50000{}", rest.trim_start_matches(|c: char| c.is_ascii_digit()))
    }

    fn part(&mut self, title: &str, text: &str) {
        let text = if text.is_empty() { String::new() } else { format!("\n{text}\n") };
        self.text += &format!("\n## {title}\n{text}");
    }

    fn add(&mut self, what: &str, args: &[&str], printed: &str) {
        let command: Vec<String> = args
            .iter()
            .map(|arg| match arg.len() {
                0..100 if !arg.contains([' ', ';', '&', '?']) => (*arg).to_owned(),
                0..100 => format!("'{arg}'"),
                _ => format!("{}...", &arg[..20]),
            })
            .collect();
        let shown = self.stable(&format!("$ blindcore {}\n{printed}", command.join(" ")));
        self.text += &format!("\n{what}:\n\n```console\n{}\n```\n", shown.trim_end());
    }

    /// A command that is refused.
    fn refused(&mut self, what: &str, args: &[&str], words: &[&str]) {
        let output = run(self.dir, args);
        refused(&output, words);
        self.add(what, args, &(stdout(&output) + &stderr(&output)));
    }
}

/// A party that listens, and the address that it says.
fn listening(dir: &Path, args: &[&str]) -> (Child, String, BufReader<std::process::ChildStderr>) {
    let mut child = blindcore(dir).args(args).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
    (child, address, stderr)
}

/// What stands before the port of one who is turned away.
const FROM: &str = "a connection from 127.0.0.1:";

const GARBLER: [&str; 9] =
    ["circuit", "run", "--role", "garbler", "--circuit", "mult8", "--input", "3", "--listen"];
const EVALUATOR: [&str; 9] =
    ["circuit", "run", "--role", "evaluator", "--circuit", "mult8", "--input", "5", "--connect"];

/// A mistake between two parties: the evaluator's, which is refused, and what the garbler says then.
fn parties(page: &mut Page, what: &str, theirs: &[&str], ours: &[&str], words: [&[&str]; 2]) {
    let (mut garbler, address, mut log) =
        listening(page.dir, &[&GARBLER[..], &["127.0.0.1:0"], theirs].concat());
    page.ports.push((address.clone(), "127.0.0.1:7800"));
    let output = run(page.dir, &[&EVALUATOR[..], &[&address, "--timeout", "20"], ours].concat());
    refused(&output, words[0]);
    page.add(what, &[&EVALUATOR[..], &[&address], ours].concat(), &stderr(&output));
    if !words[1].is_empty() {
        let mut line = String::new();
        log.read_line(&mut line).unwrap();
        assert!(words[1].iter().all(|word| line.contains(word)), "{line}");
        let line = page.stable(line.trim_end());
        page.text += &format!("\nThe garbler says:\n\n```console\n{line}\n```\n");
    }
    let _ = garbler.kill();
    let _ = garbler.wait();
}

#[test]
fn every_mistake_of_the_page_is_said_so() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("people.csv"), "name,city\nada,Paris\nbob,Ghent\n").unwrap();
    let built = run(dir, &["db", "build", "people.csv", "--key", "name", "--out", "people.db"]);
    assert_eq!(code(&built), 0, "{}", stderr(&built));
    for name in ["alice", "bob", "eve"] {
        assert_eq!(code(&run(dir, &["circuit", "identity", name])), 0);
    }
    certificate(dir, "own", "localhost", false);
    certificate(dir, "ca", "localhost", true);
    let mut page = Page { dir, text: String::new(), ports: Vec::new() };
    page.text += "# Errors\n\n<!-- Made by the test `said` of crates/cli, which makes every mistake; WRITE_PAGES=1 writes it. -->\n\n\
        What is printed where something is wrong: one line with what, the value, the limit and, after the last semicolon, what \
        to do. The exit code is 2. Values of more than 160 characters are cut, and their length is said.\n";

    page.part(
        "For programs",
        "With `--json` the same is printed to standard output too, as one object: `error`, `remedy` (null \
        where nothing can be done) and `code`, a word that stays the same where messages change.",
    );
    let plain = Serving::start(dir, &["people.db"]);
    let url = plain.url.clone();
    page.ports.push((url.rsplit_once(':').unwrap().1.to_owned(), "7700"));
    let nowhere = ["get", "--server", &url, "--table", "folk", "--key", "ada"];
    page.refused("No such table", &[&nowhere[..], &["--json"]].concat(), &["folk"]);
    page.refused(
        "No such option",
        &["db", "build", "people.csv", "--key", "name", "--ot", "x", "--json"],
        &["--ot"],
    );

    page.part("The command line", "");
    page.refused("Something is missing", &["db", "build", "people.csv"], &["what is missing: --out <DIR>"]);
    page.refused(
        "A word too much or too few",
        &["db", "biuld"],
        &["'biuld'", "'build'", "blindcore db --help"],
    );
    let below = ["serve", "people.db", "--threads", "-1"];
    page.refused("A number below 0", &below, &["'-1'", "'--threads <N>'", "it is below 0"]);
    let long = "x".repeat(100_000);
    let key = ["get", "--server", &url, "--table", "people", "--index", &long];
    page.refused("A long value", &key, &["(100000 characters)", "--index"]);
    page.refused(
        "A number out of range",
        &["plan", "--rows", "0", "--record-bytes", "64"],
        &["--rows is 0, outside 1 to"],
    );
    page.refused("No server", &["tables"], &["BLINDCORE_SERVER"]);

    page.refused(
        "A record that no table by index holds",
        &["plan", "--rows", "10", "--by-index", "--record-bytes", "65537"],
        &["--record-bytes is 65537, not 1 to 65536"],
    );
    let add = ["sum", "add", "--key", "k.pub", "--in", "a.ct", "--out", "b.ct", "--magnitude", "nan"];
    page.refused("A bound that is no number", &add, &["'nan'", "--magnitude", "over 0"]);
    std::fs::write(dir.join("limits.toml"), "[limits]\nheader_seconds = 0\n").unwrap();
    let serve = ["serve", "people.db", "--config", "limits.toml"];
    page.refused("A setting out of range", &serve, &["header_seconds is 0, outside 1 to 1048576"]);

    page.part("Numbers and values", "");
    let test = "--insecure-test-key";
    let keygen = run(dir, &["sum", "keygen", "--bits", "512", test, "--out", "k.key"]);
    assert_eq!(code(&keygen), 0, "{}", stderr(&keygen));
    for (what, file, text, words) in [
        (
            "A separator of thousands",
            "t.csv",
            "1,000\n2,000\n",
            ["line 1, column 2", "; write 1000 for 1,000"],
        ),
        (
            "A first line that is neither names nor numbers",
            "h.csv",
            "total,3\n1,2\n",
            ["line 1, column 1", "--header"],
        ),
    ] {
        std::fs::write(dir.join(file), text).unwrap();
        page.refused(
            what,
            &["sum", "encrypt", test, "--key", "k.key", "--in", file, "--out", "n.ct"],
            &words,
        );
    }
    let decrypt = ["sum", "decrypt", test, "--key", "k.key", "--in", "t.csv"];
    page.refused(
        "A file that holds no ciphertexts",
        &decrypt,
        &["t.csv: it is not a file of ciphertexts but text"],
    );
    let one = ["circuit", "eval", "--circuit", "sort6x16", "--input", "5", "--input", "1,2,3"];
    page.refused("One value of a list", &one, &["input a has 1 value,", "; give as many"]);
    let keys = ["--cert", "bob.crt", "--key", "eve.key", "--trust", "alice.crt"];
    let other = [&EVALUATOR[..], &["127.0.0.1:7800"], &keys].concat();
    page.refused(
        "The key of another certificate",
        &other,
        &["eve.key: it is not the key of the certificate bob.crt"],
    );

    page.part("Tables and keys", "");
    std::fs::write(
        dir.join("c.jsonl"),
        "{\"name\":\"ada\",\"city\":\"Rome\"}\n{\"name\":\"bob\",\"city\":7}\n",
    )
    .unwrap();
    let update = ["db", "update", "people.db", "--from", "c.jsonl"];
    page.refused(
        "An update with a value of another kind than its column",
        &update,
        &["line 2 of c.jsonl", "holds texts there"],
    );
    std::fs::write(dir.join("p.jsonl"), "{\"name\":\"ada\",\"price\":0.10000000000000001}\n").unwrap();
    let build = ["db", "build", "p.jsonl", "--key", "name", "--out", "p.db"];
    page.refused(
        "A decimal of more digits than are kept",
        &build,
        &["line 1 of p.jsonl", "column \"price\"", "; write it as a text"],
    );
    std::fs::write(dir.join("nokey.pem"), "no key\n").unwrap();
    let sign = ["db", "sign", "people.db", "nokey.pem", "--json"];
    page.refused(
        "A file that holds no signing key",
        &sign,
        &["nokey.pem", "; make one with `blindcore db key`"],
    );
    let people = ["get", "--server", &url, "--table", "people"];
    let resume = ["--key", "ada", "--resume", "state"];
    page.refused(
        "--resume without --keys-from",
        &[&people[..], &resume].concat(),
        &["--resume <FILE>", "--key <KEY>"],
    );
    let keys = ["--keys-from", "nofile"];
    page.refused("Keys that are not there", &[&people[..], &keys].concat(), &["nofile", "; check the path"]);
    let hex = ["--key-hex", "abc"];
    page.refused(
        "Half a byte",
        &[&people[..], &hex].concat(),
        &["ends in the middle of a byte; it may be cut short"],
    );

    page.part("Lookups: the way to the server", "");
    let get = |url: &str| ["get", "--server", url, "--table", "people", "--key", "ada"].map(str::to_owned);
    let tls = Serving::start_as(
        dir,
        &["serve", "people.db", "--listen", "127.0.0.1:0", "--tls-cert", "own.crt", "--tls-key", "own.key"],
    );
    let port = tls.url.rsplit_once(':').unwrap().1.to_owned();
    page.ports.push((port.clone(), "7701"));
    let authority = Serving::start_as(
        dir,
        &["serve", "people.db", "--listen", "127.0.0.1:0", "--tls-cert", "ca.crt", "--tls-key", "ca.key"],
    );
    let authority_port = authority.url.rsplit_once(':').unwrap().1.to_owned();
    page.ports.push((authority_port.clone(), "7702"));
    let mut ask = |what: &str, url: String, more: &[&str], words: &[&str]| {
        let args = get(&url);
        let args: Vec<&str> = args.iter().map(String::as_str).chain(more.iter().copied()).collect();
        page.refused(what, &args, words);
    };
    let ca = ["--ca", "own.crt"];
    ask(
        "http:// at a port that speaks TLS",
        format!("http://127.0.0.1:{port}"),
        &[],
        &["speaks TLS", "; ask for https://"],
    );
    let other = url.replace("http://127.0.0.1", "https://localhost");
    ask("https:// at a port that does not", other, &ca, &["does not speak TLS", "; ask for http://"]);
    ask(
        "A certificate that nobody known signed",
        format!("https://localhost:{port}"),
        &[],
        &["nobody who is trusted", "--ca"],
    );
    ask(
        "A name that the certificate does not have",
        format!("https://127.0.0.1:{port}"),
        &ca,
        &["is for localhost"],
    );
    let own = ["--ca", "ca.crt"];
    let url = format!("https://localhost:{authority_port}");
    ask(
        "A server that shows an authority's own certificate",
        url,
        &own,
        &["signs itself", "basicConstraints=critical,CA:FALSE"],
    );
    ask("Nobody is there", "http://127.0.0.1:1".into(), &[], &["nobody listens there"]);
    ask("An address without a scheme", "127.0.0.1:7700".into(), &[], &["neither http:// nor https://"]);

    page.part(
        "Circuits: the way to the other party",
        "The garbler listens with `--cert alice.crt --key alice.key --trust bob.crt`, \
        unless it is said otherwise.",
    );
    let alice = ["--cert", "alice.crt", "--key", "alice.key", "--trust", "bob.crt"];
    let bob = ["--cert", "bob.crt", "--key", "bob.key", "--trust", "alice.crt"];
    let named = [&bob[..], &["--peer-name", "alice"]].concat();
    parties(
        &mut page,
        "No --peer-name",
        &alice,
        &bob,
        [&["is for alice", "; say --peer-name alice"], &["wants another name", "--peer-name"]],
    );
    let wrong = ["--cert", "bob.crt", "--key", "bob.key", "--trust", "eve.crt", "--peer-name", "alice"];
    parties(
        &mut page,
        "The wrong certificate as --trust",
        &alice,
        &wrong,
        [&["nobody who is trusted", "as --trust"], &["turned away"]],
    );
    let eve = ["--cert", "eve.crt", "--key", "eve.key", "--trust", "alice.crt", "--peer-name", "alice"];
    parties(
        &mut page,
        "A certificate that the other side does not trust",
        &alice,
        &eve,
        [&["does not trust the certificate"], &["turned away", "--trust"]],
    );
    let for_carol = [&alice[..], &["--peer-name", "carol"]].concat();
    parties(
        &mut page,
        "A garbler that waits for --peer-name carol",
        &for_carol,
        &named,
        [&["wants another name", "--peer-name"], &["is for bob, and not for carol", "say --peer-name bob"]],
    );
    parties(
        &mut page,
        "TLS on the garbler's side alone",
        &alice,
        &[],
        [&["TLS", "both sides give"], &["does not speak TLS", "both sides give"]],
    );
    parties(
        &mut page,
        "TLS on the evaluator's side alone",
        &[],
        &named,
        [&["does not speak TLS", "both sides give"], &["speaks TLS and this side does not"]],
    );
    let of_authority = ["--cert", "ca.crt", "--key", "ca.key", "--trust", "bob.crt"];
    let trusting = ["--cert", "bob.crt", "--key", "bob.key", "--trust", "ca.crt", "--peer-name", "localhost"];
    parties(
        &mut page,
        "A certificate that signs itself as an authority, on the garbler's side",
        &of_authority,
        &trusting,
        [&["signs itself", "CA:FALSE", "circuit identity"], &[]],
    );

    if std::env::var_os(WRITE).is_some() {
        std::fs::write(PAGE, &page.text).unwrap();
    }
    let kept = std::fs::read_to_string(PAGE).unwrap_or_default();
    for (now, then) in page.text.lines().zip(kept.lines()) {
        assert_eq!(now, then, "{WRITE}=1 writes {PAGE} again");
    }
    assert_eq!(page.text, kept);
}

/// Names of what is printed with its quotation marks or brackets by `{name:?}`: texts, and lists of numbers such as shapes.
/// Whatever else there is has words of its own: no debug print of a library's type reaches a person.
const QUOTED: [&str; 33] = [
    "0", "MAGIC", "address", "circuit", "column", "foreign", "found", "got", "index", "inner", "key",
    "model", "name", "number", "other", "output", "input", "part", "s", "said", "shape", "sign", "spec",
    "start", "table", "text", "url", "v", "want", "wanted", "weights", "wire", "word",
];
/// What says that a `{:?}` is a text or a shape, or is hashed and shown to nobody, in the same statement.
const PLACED: [&str; 14] = [
    "blake3::hash(",
    ".name",
    "from_utf8_lossy",
    "shape",
    "self.ssd",
    "args.device",
    "char::from",
    "columns[",
    "names[",
    "layout",
    "text[",
    "slice(&index)",
    "self.database",
    "name(",
];
/// Where a format's own name for a type is the library's, and is trimmed to it.
const TRIMMED: [&str; 3] =
    ["store/src/source/mysql.rs", "store/src/source/parquet/columns.rs", "numbers/src/parquet_checks.rs"];

/// Every source file of the workspace's crates up to its tests, with its path below `crates`.
fn sources() -> Vec<(String, String)> {
    fn collect(folder: &Path, into: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.is_dir() {
                true => collect(&entry, into),
                false if entry.extension().is_some_and(|end| end == "rs") => into.push(entry),
                false => {}
            }
        }
    }
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for one in std::fs::read_dir(&crates).unwrap().map(|entry| entry.unwrap().path().join("src")) {
        if one.is_dir() {
            collect(&one, &mut files);
        }
    }
    let read = |file: std::path::PathBuf| {
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap().to_owned();
        (file.strip_prefix(&crates).unwrap().display().to_string(), text)
    };
    files.into_iter().map(read).collect()
}

#[test]
fn no_debug_print_reaches_a_person() {
    let mut wrong = Vec::new();
    for (file, text) in sources() {
        // The suites of devices speak to those who write one, and dumps of an assignment to who wrote it.
        let apart = ["accel/src/conformance/", "accel/src/garble/wiring.rs", "testing/"]
            .iter()
            .any(|folder| file.starts_with(folder));
        if apart || TRIMMED.contains(&&*file) {
            continue;
        }
        let mut panics = false;
        for (number, line) in text.lines().enumerate() {
            let code = line.trim_start();
            panics |=
                ["assert", "panic!(", "unreachable!(", "debug_assert"].iter().any(|word| code.contains(word));
            let said = !code.starts_with("//") && !panics;
            for (at, _) in [":?}", ":#?}", "x?}"]
                .into_iter()
                .flat_map(|print| code.match_indices(print))
                .filter(|_| said)
            {
                let name = code[..at].rsplit_once('{').map_or("", |(_, name)| name);
                let statement = || text.lines().skip(number).take(6).collect::<String>();
                let placed = name.is_empty() && PLACED.iter().any(|word| statement().contains(word));
                if !placed && !QUOTED.contains(&name) {
                    wrong.push(format!("{file}:{}: {code}", number + 1));
                }
            }
            panics &= !code.ends_with(';');
        }
    }
    assert!(wrong.is_empty(), "give it words, or a name of a text: {wrong:#?}");
}

/// One place reads the environment, for which an empty variable is an unset one.
#[test]
fn variables_are_read_in_one_place() {
    let reads = ["env::var(", "env::var_os(", "try_from_env(", "Args::try_parse("];
    let one = ["units/src/variable.rs"];
    for (file, text) in sources().into_iter().filter(|(file, _)| !one.contains(&&**file)) {
        for read in reads {
            assert!(
                !text.contains(read),
                "{file} has {read}: use blindcore_units::variable, args::parse_from"
            );
        }
    }
}

/// For blindcore an empty variable is an unset one, whoever reads it.
#[test]
fn an_empty_variable_is_unset() {
    let dir = tempfile::tempdir().unwrap();
    let with = |args: &[&str], name: &str| -> Output {
        blindcore(dir.path()).args(args).env(name, "").output().unwrap()
    };
    let plain = run(dir.path(), &["doctor", "--json"]);
    for name in ["BLINDCORE_THREADS", "BLINDCORE_DEVICE", "BLINDCORE_CONFIG", "BLINDCORE_LOG"] {
        assert_eq!(json(&with(&["doctor", "--json"], name))["chosen"], json(&plain)["chosen"], "{name}");
    }
    refused(&with(&["tables"], "BLINDCORE_SERVER"), &["no server is named"]);
    for name in ["BLINDCORE_TIMEOUT", "BLINDCORE_CA", "BLINDCORE_CACHE", "BLINDCORE_TOKEN"] {
        refused(&with(&["tables", "--server", "http://127.0.0.1:1"], name), &["nobody listens there"]);
    }
}

#[test]
fn quiet_leaves_results_and_errors() {
    let dir = tempfile::tempdir().unwrap();
    let make = |more: &[&str]| {
        run(dir.path(), &[&["circuit", "make", "mult8", "--out", "m.txt"][..], more].concat())
    };
    assert!(stderr(&make(&[])).contains("ANDs"));
    let quiet = make(&["--quiet", "--force"]);
    assert_eq!((code(&quiet), stderr(&quiet)), (0, String::new()));
    refused(&run(dir.path(), &["-q", "db", "inspect", "none"]), &["none"]);
}
