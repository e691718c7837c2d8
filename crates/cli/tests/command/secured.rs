//! `blindcore serve` beyond this machine: certificates, tokens, and both reloaded.

use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedKey, IsCa, KeyPair, date_time_ymd,
    generate_simple_self_signed,
};

use crate::common::{Serving, blindcore, code, json, refused, run, stderr, stdout};

/// A database, a certificate for localhost with its key, a token and its line.
fn folder() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    std::fs::write(path.join("book.csv"), "name,phone\nada,1\nbob,2\n").unwrap();
    let built = run(path, &["db", "build", "book.csv", "--key", "name", "--out", "book.db"]);
    assert_eq!(code(&built), 0, "{}", stderr(&built));
    certificate(path, "own");
    let made = json(&run(path, &["token", "ada", "--json"]));
    assert_eq!(made["name"], "ada");
    std::fs::write(path.join("tokens"), format!("# who may ask\n{}\n", made["line"].as_str().unwrap()))
        .unwrap();
    let token = made["token"].as_str().unwrap().to_owned();
    std::fs::write(path.join("ada.token"), format!("{token}\n")).unwrap();
    (dir, token)
}

fn certificate(dir: &Path, name: &str) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(dir.join(name).with_extension("crt"), cert.pem()).unwrap();
    std::fs::write(dir.join(name).with_extension("key"), signing_key.serialize_pem()).unwrap();
}

fn serve(dir: &Path) -> Serving {
    let files = ["--tls-cert", "own.crt", "--tls-key", "own.key", "--tokens", "tokens"];
    let mut serving =
        Serving::start_as(dir, &[&["serve", "book.db", "--listen", "127.0.0.1:0"][..], &files].concat());
    assert!(serving.url.starts_with("https://127.0.0.1:"), "{}", serving.url);
    serving.url = serving.url.replace("127.0.0.1", "localhost");
    serving
}

#[test]
fn lookups_over_tls_with_a_token() {
    let (dir, token) = folder();
    let dir = dir.path();
    let server = serve(dir);
    let ask = ["--table", "book", "--key", "ada", "--json"];
    let get = |more: &[&str]| server.get(dir, &[&ask[..], more].concat());
    let with = ["--ca", "own.crt", "--token-file", "ada.token"];
    assert_eq!(json(&get(&with))["value"]["phone"], "1");
    assert!(
        stdout(&run(dir, &[&["tables", "--server", &server.url][..], &with].concat())).contains("2 rows")
    );

    refused(&get(&["--ca", "own.crt"]), &["only requests with a token", "--token-file"]);
    refused(&get(&["--token-file", "ada.token"]), &["no TLS with https://localhost", "--ca"]);
    refused(&get(&["--ca", "none.crt", "--token-file", "ada.token"]), &["none.crt"]);
    refused(
        &get(&["--ca", "own.crt", "--token-file", "none"]),
        &["the token can't be read: none can't be read", "; check the path"],
    );
    refused(&get(&["--ca", "own.crt", "--token-file", "tokens"]), &["tokens", "no space"]);

    // By variable and by settings, too, and the flag wins.
    let server_args = ["get", "--server", &server.url, "--ca", "own.crt"];
    let by_variable =
        blindcore(dir).args(server_args).args(ask).env("BLINDCORE_TOKEN", &token).output().unwrap();
    assert_eq!(json(&by_variable)["found"], true);
    let wrong = blindcore(dir).args(server_args).args(ask).env("BLINDCORE_TOKEN", "wrong").output().unwrap();
    refused(&wrong, &["ask its operator"]);
    let settings = format!("server = {:?}\nca = \"own.crt\"\ntoken_file = \"ada.token\"\n", server.url);
    std::fs::write(dir.join("blindcore.toml"), settings).unwrap();
    assert_eq!(json(&run(dir, &[&["get"][..], &ask].concat()))["found"], true);
    // A file that merely lies in the folder decides how its own server is asked, not whose certificate the person believes.
    refused(&get(&["--token-file", "ada.token"]), &["note: ca of ", "no TLS with https://localhost", "--ca"]);
    assert_eq!(json(&get(&["--config", "blindcore.toml"]))["found"], true);
    std::fs::remove_file(dir.join("blindcore.toml")).unwrap();

    // Nothing of a token is ever written to a log.
    #[cfg(unix)]
    {
        let (code, log) = server.terminate();
        assert_eq!(code, 0, "{log}");
        assert!(
            log.contains("reason=\"unauthorized\"") && !log.contains(&token) && !log.contains("wrong"),
            "{log}"
        );
    }
}

#[test]
#[cfg(unix)]
fn hangup_reads_certificates_and_tokens_anew() {
    let (dir, _) = folder();
    let dir = dir.path();
    let server = serve(dir);
    let get = |ca: &str, token: &str| {
        let file = ["--ca", ca, "--token-file", token];
        server.get(dir, &[&["--table", "book", "--key", "bob"][..], &file].concat())
    };
    assert_eq!(code(&get("own.crt", "ada.token")), 0);

    // What can't be read stays as it was, and the log says why; the other file is taken up all the same.
    std::fs::copy(dir.join("own.crt"), dir.join("first.crt")).unwrap();
    certificate(dir, "own");
    std::fs::copy(dir.join("own.crt"), dir.join("second.crt")).unwrap();
    std::fs::write(dir.join("tokens"), "ada nonsense\n").unwrap();
    server.hang_up();
    let line = server.line("tokens stay as they were");
    assert!(line.contains("line 1") && line.contains("not a digest"), "{line}");
    assert_eq!(code(&get("second.crt", "ada.token")), 0);
    refused(&get("first.crt", "ada.token"), &["no TLS with"]);

    // A pipe that nobody writes to is not waited for.
    for file in ["tokens", "own.key"] {
        std::fs::rename(dir.join(file), dir.join("aside")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(dir.join(file)).status().unwrap().success());
        server.hang_up();
        server.line(&format!("stay as they were: {file} is not an ordinary file"));
        std::fs::rename(dir.join("aside"), dir.join(file)).unwrap();
    }

    // A token is revoked while the certificate is broken.
    let eve = json(&run(dir, &["token", "eve", "--json"]));
    std::fs::write(dir.join("eve.token"), eve["token"].as_str().unwrap()).unwrap();
    std::fs::write(dir.join("tokens"), format!("\u{feff}{}", eve["line"].as_str().unwrap())).unwrap();
    std::fs::write(dir.join("own.crt"), "no certificate").unwrap();
    server.hang_up();
    server.line("certificates stay as they were");
    server.line("tokens were read again");
    assert_eq!(code(&get("second.crt", "eve.token")), 0);
    refused(&get("second.crt", "ada.token"), &["ask its operator"]);

    // An empty file is a list of nobody.
    std::fs::write(dir.join("tokens"), "").unwrap();
    server.hang_up();
    server.line("nobody is answered");
    server.line("tokens were read again");
    for token in ["eve.token", "ada.token"] {
        refused(&get("second.crt", token), &["ask its operator"]);
    }
}

/// A server starts with a certificate that no client takes, and says so; its clients say the same.
#[test]
#[cfg(unix)]
fn certificates_that_clients_refuse_are_named_by_the_server() {
    let (dir, _) = folder();
    let dir = dir.path();
    let key = KeyPair::from_pem(&std::fs::read_to_string(dir.join("own.key")).unwrap()).unwrap();
    let replaced = |change: fn(&mut CertificateParams)| {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        change(&mut params);
        std::fs::write(dir.join("own.crt"), params.self_signed(&key).unwrap().pem()).unwrap();
    };
    replaced(|params| params.not_after = date_time_ymd(2021, 1, 1));
    let server = serve(dir);
    assert!(server.started.iter().any(|line| line.contains("certificate own.crt: it has expired")));
    let get = || {
        server.get(dir, &["--table", "book", "--key", "bob", "--ca", "own.crt", "--token-file", "ada.token"])
    };
    refused(&get(), &["has expired"]);
    for (change, said, refusal) in [
        (
            (|params| params.not_before = date_time_ymd(3000, 1, 1)) as fn(&mut CertificateParams),
            "it is not valid yet",
            "not valid yet",
        ),
        (|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained), "CA:FALSE", "CA:FALSE"),
    ] {
        replaced(change);
        server.hang_up();
        server.line(said);
        server.line("certificates were read again");
        refused(&get(), &[refusal]);
    }
    replaced(|_| ());
    server.hang_up();
    server.line("certificates were read again");
    assert_eq!(code(&get()), 0);
}

/// Fewer connections in all leave one address no more than half of them, so that its silent ones give way.
#[test]
fn a_server_of_few_connections_answers_beside_silent_ones() {
    let (dir, _) = folder();
    let dir = dir.path();
    let args = ["serve", "book.db", "--listen", "127.0.0.1:0", "--connections", "8"];
    let server = Serving::start_as(dir, &args);
    let address = server.url.strip_prefix("http://").unwrap();
    let _silent: Vec<_> = (0..20).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
    let found = server.get(dir, &["--table", "book", "--key", "bob"]);
    assert_eq!(code(&found), 0, "{}", stderr(&found));
}

#[test]
fn what_would_not_be_safe_does_not_start() {
    let (dir, _) = folder();
    let dir = dir.path();
    let serve = |more: &[&str]| run(dir, &[&["serve", "book.db"][..], more].concat());
    refused(&serve(&["--listen", "0.0.0.0:0"]), &["0.0.0.0:0", "--tls-cert", "--plain-text"]);
    refused(&serve(&["--tls-cert", "own.crt"]), &["--tls-key"]);
    refused(&serve(&["--tls-key", "own.key"]), &["--tls-cert"]);
    refused(
        &serve(&["--tls-cert", "own.crt", "--tls-key", "own.crt"]),
        &["private key own.crt", "there is none in it"],
    );
    refused(&serve(&["--tls-cert", "none", "--tls-key", "own.key"]), &["certificate none"]);
    refused(&serve(&["--tokens", "none"]), &["none"]);
    refused(&serve(&["--tokens", "own.crt"]), &["own.crt", "line 1"]);
    std::fs::write(dir.join("empty"), "# nobody\n").unwrap();
    refused(&serve(&["--tokens", "empty"]), &["no tokens"]);
    refused(&serve(&["--tokens", "."]), &[". is not an ordinary file", "name a file"]);
    refused(&run(dir, &["token", "a b"]), &["a b", "1 to 64"]);
    let shown = stdout(&run(dir, &["token", "ada"]));
    assert!(
        shown.starts_with("blindcore_") && shown.contains("\nada ") && shown.lines().count() == 4,
        "{shown}"
    );
}

#[test]
fn limits_are_set_and_checked() {
    let (dir, _) = folder();
    let dir = dir.path();
    let limits =
        |text: &str| std::fs::write(dir.join("blindcore.toml"), format!("[limits]\n{text}\n")).unwrap();
    for (text, words) in [
        ("conections = 5", &["line 2", "conections"][..]),
        ("connections = 0", &["connections is 0, outside 1 to 1048576"]),
        ("waiting_queries = 3", &["waiting_queries is 3, and must be at least"]),
        ("waiting_per_client = 3", &["waiting_per_client is 3"]),
        ("queries_per_minute = 0", &["queries_per_minute is 0"]),
        ("header_seconds = 0", &["header_seconds is 0, outside 1 to 1048576"]),
        ("request_memory_mib = 18446744073709551615", &["request_memory_mib"]),
        ("streams_per_connection = 0", &["streams_per_connection is 0"]),
    ] {
        limits(text);
        let mut serve = blindcore(dir);
        serve.args(["serve", "book.db", "--listen", "127.0.0.1:0"]).env("BLINDCORE_LOG", "error");
        refused(&serve.output().unwrap(), words);
    }
    limits("queries_per_minute = 2");
    refused(
        &run(dir, &["serve", "book.db", "--listen", "127.0.0.1:0", "--metrics", "here"]),
        &["--metrics", "9100"],
    );
    refused(
        &run(dir, &["serve", "book.db", "--connections-per-client", "0"]),
        &["connections_per_client is 0"],
    );
    let server = Serving::start_as(dir, &["serve", "book.db", "--listen", "127.0.0.1:0", "--metrics", "0"]);
    let asked = || server.get(dir, &["--table", "book", "--key", "ada"]);
    let answered = (0..20).take_while(|_| code(&asked()) == 0).count();
    assert!((2..20).contains(&answered), "{answered}");
    refused(&asked(), &["2 queries a minute", "ask again in"]);
}

/// Small, for its figures are of no interest here: honest clients are answered whatever others do.
#[test]
#[cfg(target_os = "linux")]
fn a_server_under_attack_answers_honest_clients() {
    let dir = tempfile::tempdir().unwrap();
    let sizes = ["--clients", "20", "--hostile", "5", "--mib", "1", "--seconds", "3", "--repeat", "1"];
    let result = json(&run(dir.path(), &[&["bench", "serve", "--json"][..], &sizes].concat()));
    let counts = &result["machine"]["settings"]["counts"];
    assert!(counts["honest_answered"].as_u64().unwrap() >= 15, "{counts}");
    assert!(counts["honest_refused"] == 0 && counts["honest_broken"] == 0, "{counts}");
    assert!(counts["hostile_deeds"].as_u64().unwrap() >= 40, "{counts}");
    let ids: Vec<&str> =
        result["rows"].as_array().unwrap().iter().map(|r| r["id"].as_str().unwrap()).collect();
    assert_eq!(
        ids,
        [
            "lookup.start",
            "lookup.memory",
            "lookup.load.p99",
            "lookup.load.p50",
            "lookup.load.memory",
            "lookup.quiet.p99"
        ]
    );
    refused(
        &run(dir.path(), &["bench", "serve", "--hostile", "500"]),
        &["--hostile is 500", "leave some honest"],
    );
}

#[cfg(unix)]
#[test]
fn private_keys_that_others_can_read_are_warned_of() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, _) = folder();
    let dir = dir.path();
    let warning = "private key own.key is open to others on this machine; close it: chmod 600 own.key";
    // A port in use: the party says what it has to say, and ends.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let tls = ["--cert", "own.crt", "--key", "own.key", "--trust", "own.crt"];
    let party =
        ["circuit", "run", "--role", "garbler", "--circuit", "add64", "--input", "7", "--listen", &listen];
    for (mode, open) in [(0o600, 0), (0o640, 1)] {
        std::fs::set_permissions(dir.join("own.key"), std::fs::Permissions::from_mode(mode)).unwrap();
        let server = serve(dir);
        let warned = server.started.iter().filter(|line| line.contains(warning)).count();
        assert_eq!(warned, open, "{:?}", server.started);
        let party = run(dir, &[&party[..], &tls].concat());
        assert_eq!((code(&party), stderr(&party).matches(warning).count()), (2, open), "{}", stderr(&party));
    }
}
