//! `blindcore sum serve` and `score`: real processes over real sockets, honest clients and others.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use blindcore_sum::encoding::Bound;
use blindcore_sum::file::Writer;
use serde_json::json;

use crate::common::{Serving, code, json, refused, run, stderr, stdout};

const TEST: &str = "--insecure-test-key";

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    for key in ["a.key", "b.key"] {
        let made = run(path, &["sum", "keygen", "--bits", "512", TEST, "--out", key]);
        assert_eq!(code(&made), 0, "{}", stderr(&made));
    }
    std::fs::write(path.join("line.csv"), "10\n20\n-30\n").unwrap();
    std::fs::write(path.join("layer.csv"), "1,2,3\n-1,0,1\n").unwrap();
    std::fs::write(path.join("rows.csv"), "1,2,3\n4,5,6\n-7,8,-9\n").unwrap();
    std::fs::write(path.join("floats.csv"), "0.5,0.25,-1\n").unwrap();
    std::fs::write(path.join("one.csv"), "2\n").unwrap();
    std::fs::write(path.join("short.csv"), "1,2\n").unwrap();
    dir
}

fn serve(dir: &Path) -> Serving {
    Serving::start_as(
        dir,
        &[
            "sum",
            "serve",
            TEST,
            "--listen",
            "127.0.0.1:0",
            "--model",
            "line=line.csv",
            "--model",
            "layer=layer.csv",
            "--model",
            "one=one.csv",
            "--request-mib",
            "1",
        ],
    )
}

fn score(server: &Serving, dir: &Path, args: &[&str]) -> std::process::Output {
    score_at(&server.url, dir, args)
}

fn score_at(url: &str, dir: &Path, args: &[&str]) -> std::process::Output {
    run(dir, &[&["sum", "score", TEST, "--server", url], args].concat())
}

#[test]
fn scores_are_those_of_the_plain_rows() {
    let dir = folder();
    let dir = dir.path();
    let server = serve(dir);
    let line = score(&server, dir, &["--model", "line", "--key", "a.key", "--in", "rows.csv"]);
    assert_eq!((code(&line), stdout(&line).as_str()), (0, "-40\n-40\n360\n"), "{}", stderr(&line));
    // Several clients at once, two keys, a key that is there again.
    std::thread::scope(|scope| {
        for i in 0..6 {
            let url = server.url.as_str();
            scope.spawn(move || {
                let key = ["a.key", "b.key"][i % 2];
                let layer =
                    score_at(url, dir, &["--model", "layer", "--key", key, "--in", "rows.csv", "--json"]);
                let layer = json(&layer);
                assert_eq!(layer["scores"], json!([14, 2, 32, 2, -18, -2]));
                assert_eq!(layer["shape"], json!([3, 2]));
            });
        }
    });
    // A line is a row, also where it has one number.
    let column = dir.join("column.csv");
    std::fs::write(&column, "4\n5\n6\n").unwrap();
    let scaled = score(&server, dir, &["--model", "one", "--key", "a.key", "--in", "column.csv", "--json"]);
    assert_eq!(json(&scaled)["scores"], json!([8, 10, 12]), "{}", stderr(&scaled));
    refused(&score(&server, dir, &["--model", "line", "--key", "a.key", "--in", "column.csv"]), &["3 terms"]);
    let floats =
        json(&score(&server, dir, &["--model", "line", "--key", "b.key", "--in", "floats.csv", "--json"]));
    assert_eq!(floats["scores"], json!([40.0]));
    // So long that no random identifier in a log holds its digits.
    std::fs::write(dir.join("long.csv"), "2105273941,0,0\n").unwrap();
    let long = score(&server, dir, &["--model", "line", "--key", "a.key", "--in", "long.csv"]);
    assert_eq!(stdout(&long), "21052739410\n", "{}", stderr(&long));
    #[cfg(unix)]
    {
        let (code, log) = server.terminate();
        assert_eq!(code, 0, "{log}");
        assert!(log.contains("scored") && !log.contains("2105273941"), "{log}");
        assert!(log.contains("client=\"127.0.0.1\" from=127.0.0.1"), "{log}");
    }
}

/// Sends a request that asks for a connection of its own, and reads what comes back until the server hangs up.
fn raw(server: &Serving, head: &str, body: &[u8]) -> String {
    let address = server.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let head = head.replacen("Host: x\r\n", "Host: x\r\nConnection: close\r\n", 1);
    stream.write_all(head.as_bytes()).unwrap();
    // It may refuse before it has read all.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn what_is_wrong_is_refused_and_the_server_lives_on() {
    let dir = folder();
    let dir = dir.path();
    let server = serve(dir);
    let key = ["--key", "a.key"];
    for (args, words) in [
        (vec!["--model", "none", "--in", "rows.csv"], vec!["404", "no such model"]),
        (vec!["--model", "../line", "--in", "rows.csv"], vec!["404"]),
        (
            vec!["--model", "line", "--in", "short.csv"],
            vec!["422", "[1, 2]", "3 terms; send rows of 3 numbers"],
        ),
        (vec!["--model", "one", "--in", "short.csv"], vec!["422", "[1, 2]", "1 term; send rows"]),
        (vec!["--model", "line", "--in", "rows.csv", "--bits", "99"], vec!["99"]),
    ] {
        refused(&score(&server, dir, &[&args[..], &key].concat()), &words);
    }
    refused(
        &run(
            dir,
            &[
                "sum", "score", TEST, "--server", "ftp://x", "--model", "m", "--key", "a.key", "--in",
                "rows.csv",
            ],
        ),
        &["http:// and https://"],
    );
    refused(
        &run(
            dir,
            &[
                "sum",
                "score",
                TEST,
                "--server",
                "http://192.0.2.1:80",
                "--model",
                "m",
                "--key",
                "a.key",
                "--in",
                "rows.csv",
            ],
        ),
        &["--plain-text"],
    );
    refused(
        &run(dir, &["sum", "serve", "--model", "m=line.csv", "--listen", "0.0.0.0:0"]),
        &["--plain-text"],
    );
    refused(&run(dir, &["sum", "serve", "--model", "line.csv"]), &["NAME=FILE"]);
    refused(
        &run(dir, &["sum", "serve", "--model", "a b=line.csv"]),
        &["has the name \"a b\"", "letters and digits"],
    );
    refused(
        &run(dir, &["sum", "serve", "--model", "..=line.csv"]),
        &["has the name \"..\"", "neither . nor .."],
    );
    refused(&run(dir, &["sum", "serve", "--model", "m=nothere.csv"]), &["nothere.csv"]);

    let post = |length: &str| format!("POST /v1/models/line/score HTTP/1.1\r\nHost: x\r\n{length}\r\n");
    let with = |body: &[u8]| raw(&server, &post(&format!("Content-Length: {}\r\n", body.len())), body);
    let public = {
        let made = run(dir, &["sum", "public", TEST, "--key", "a.key", "--out", "a.pub"]);
        assert_eq!(code(&made), 0);
        std::fs::read(dir.join("a.pub")).unwrap()
    };
    let made = run(
        dir,
        &["sum", "encrypt", TEST, "--key", "a.pub", "--in", "rows.csv", "--out", "rows.ct", "--bits", "8"],
    );
    assert_eq!(code(&made), 0);
    let rows = std::fs::read(dir.join("rows.ct")).unwrap();
    let good = [&(public.len() as u32).to_le_bytes()[..], &public, &rows].concat();
    assert!(with(&good).starts_with("HTTP/1.1 200"));
    let mut flipped = good.clone();
    let last = flipped.len() - 50;
    flipped[last] ^= 1;
    for (body, status, word) in [
        (&b""[..], "400", "too short"),
        (&[9, 9, 9, 9, 0], "400", "too long"),
        (&good[..public.len()], "400", "too long"),
        (&good[..good.len() - 1], "400", "length"),
        (&flipped[..], "422", "block"),
    ] {
        let answer = with(body);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(answer.contains(word), "no {word:?} in {answer}");
    }
    // Another key's ciphertexts.
    let other = run(
        dir,
        &["sum", "encrypt", TEST, "--key", "b.key", "--in", "rows.csv", "--out", "other.ct", "--bits", "8"],
    );
    assert_eq!(code(&other), 0);
    let mixed =
        [&(public.len() as u32).to_le_bytes()[..], &public, &std::fs::read(dir.join("other.ct")).unwrap()]
            .concat();
    assert!(with(&mixed).starts_with("HTTP/1.1 422"));
    // Bodies that are too long, without a length, or broken off.
    assert!(raw(&server, &post("Content-Length: 99999999\r\n"), b"").starts_with("HTTP/1.1 413"));
    assert!(raw(&server, &post("Transfer-Encoding: chunked\r\n"), b"").starts_with("HTTP/1.1 411"));
    {
        let address = server.url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(post("Content-Length: 1000\r\n").as_bytes()).unwrap();
        stream.write_all(&good[..10]).unwrap();
        // Hung up in the middle.
    }
    assert!(raw(&server, "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n", b"").contains(r#""terms":3"#));
    assert!(raw(&server, "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n", b"").starts_with("HTTP/1.1 200"));
    assert!(raw(&server, "GET /else HTTP/1.1\r\nHost: x\r\n\r\n", b"").starts_with("HTTP/1.1 404"));
    // Stalled requests hold memory for a while, and nobody else up.
    let address = server.url.strip_prefix("http://").unwrap();
    let stalled: Vec<TcpStream> = (0..5)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(post("Content-Length: 1000\r\n").as_bytes()).unwrap();
            stream
        })
        .collect();
    let line = score(&server, dir, &["--model", "line", "--key", "a.key", "--in", "rows.csv"]);
    assert_eq!(stdout(&line), "-40\n-40\n360\n", "{}", stderr(&line));
    drop(stalled);
}

#[test]
fn keys_that_protect_nothing_are_refused_unless_asked_for() {
    let dir = folder();
    let dir = dir.path();
    let server =
        Serving::start_as(dir, &["sum", "serve", "--listen", "127.0.0.1:0", "--model", "line=line.csv"]);
    refused(
        &score(&server, dir, &["--model", "line", "--key", "a.key", "--in", "rows.csv"]),
        &["422", "512 bits"],
    );
}

/// A request for a model, ready to send.
fn post(model: &str, length: usize) -> String {
    format!("POST /v1/models/{model}/score HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n")
}

fn connect(server: &Serving) -> TcpStream {
    TcpStream::connect(server.url.strip_prefix("http://").unwrap()).unwrap()
}

/// The body of a request: `rows` rows of one number, under a key that is made for it.
fn body(dir: &Path, keygen: &[&str], rows: usize) -> Vec<u8> {
    let ok = |args: &[&str]| assert_eq!(code(&run(dir, args)), 0, "{args:?}");
    ok(&[&["sum", "keygen", "--force", "--out", "made.key"], keygen].concat());
    ok(&["sum", "public", "--force", TEST, "--key", "made.key", "--out", "made.pub"]);
    // A list has one axis; rows of one number have two.
    let header =
        format!("{:<117}\n", format!("{{'descr': '<i8', 'fortran_order': False, 'shape': ({rows}, 1), }}"));
    let ones: Vec<u8> = (0..rows).flat_map(|_| 1i64.to_le_bytes()).collect();
    let npy = [b"\x93NUMPY\x01\x00".as_slice(), &118u16.to_le_bytes(), header.as_bytes(), &ones].concat();
    std::fs::write(dir.join("column.npy"), npy).unwrap();
    ok(&[
        "sum",
        "encrypt",
        TEST,
        "--key",
        "made.pub",
        "--in",
        "column.npy",
        "--out",
        "column.ct",
        "--force",
        "--bits",
        "8",
    ]);
    let key = std::fs::read(dir.join("made.pub")).unwrap();
    let rows = std::fs::read(dir.join("column.ct")).unwrap();
    [&(key.len() as u32).to_le_bytes()[..], &key, &rows].concat()
}

/// A server with a model of one term and many outputs.
fn serve_wide(dir: &Path, outputs: usize, more: &[&str]) -> Serving {
    let header = format!(
        "{:<117}\n",
        format!("{{'descr': '<i8', 'fortran_order': False, 'shape': ({outputs}, 1), }}")
    );
    let values: Vec<u8> = (0..outputs).flat_map(|i| (i as i64 % 200).to_le_bytes()).collect();
    let npy = [b"\x93NUMPY\x01\x00".as_slice(), &118u16.to_le_bytes(), header.as_bytes(), &values].concat();
    std::fs::write(dir.join("wide.npy"), npy).unwrap();
    let args = ["sum", "serve", TEST, "--listen", "127.0.0.1:0", "--model", "wide=wide.npy"];
    Serving::start_as(dir, &[&args[..], more].concat())
}

#[test]
fn bodies_that_do_not_come_hold_no_memory() {
    let dir = folder();
    let dir = dir.path();
    let server = serve(dir);
    let waiting: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = connect(&server);
            stream.write_all(post("line", 1 << 20).as_bytes()).unwrap();
            stream
        })
        .collect();
    let line = score(&server, dir, &["--model", "line", "--key", "a.key", "--in", "rows.csv"]);
    assert_eq!(stdout(&line), "-40\n-40\n360\n", "{}", stderr(&line));
    drop(waiting);
}

#[test]
fn answers_that_nobody_reads_count() {
    let dir = folder();
    let dir = dir.path();
    // Answers of 14 MiB where one client's may take 64 MiB.
    let server = serve_wide(dir, 1000, &["--request-mib", "16"]);
    let body = body(dir, &["--bits", "512", TEST], 115);
    let mut unread = Vec::new();
    for _ in 0..4 {
        let mut stream = connect(&server);
        stream.write_all(&[post("wide", body.len()).as_bytes(), &body].concat()).unwrap();
        // Its first byte says that it was made.
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let mut head = [0u8; 12];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(&head, b"HTTP/1.1 200");
        unread.push(stream);
    }
    let ask = || raw(&server, &post("wide", body.len()), &body);
    let refused = ask();
    assert!(refused.starts_with("HTTP/1.1 429") && refused.contains("and read them"), "{:.300}", refused);
    drop(unread);
    let start = std::time::Instant::now();
    let mut free = false;
    while !free && start.elapsed() < Duration::from_secs(20) {
        free = ask().starts_with("HTTP/1.1 200");
    }
    assert!(free, "memory does not come back");
}

#[test]
fn work_has_a_limit() {
    let dir = folder();
    let dir = dir.path();
    let server = serve_wide(dir, 100, &["--request-work", "1"]);
    let slow = body(dir, &["--bits", "2048", "--mode", "textbook"], 5);
    let answer = raw(&server, &post("wide", slow.len()), &slow);
    assert!(answer.starts_with("HTTP/1.1 422"), "{answer:.200}");
    assert!(answer.contains("over the 1000000 of a request"), "{answer:.300}");
    let quick = body(dir, &["--bits", "2048"], 5);
    assert!(raw(&server, &post("wide", quick.len()), &quick).starts_with("HTTP/1.1 200"));
}

/// Minutes of work end with the connection that asked for it, and the server need not wait for them.
#[cfg(unix)]
#[test]
fn a_busy_server_ends_when_it_is_told_to() {
    let dir = folder();
    let dir = dir.path();
    let server = serve_wide(dir, 1000, &["--request-mib", "32", "--request-work", "100000"]);
    let slow = body(dir, &["--bits", "4096", "--mode", "textbook"], 30);
    let mut stream = connect(&server);
    stream.write_all(&[post("wide", slow.len()).as_bytes(), &slow].concat()).unwrap();
    // No answer in two seconds: it is at work.
    stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    assert!(stream.read(&mut [0]).is_err());
    drop(stream);
    let start = std::time::Instant::now();
    let (code, log) = server.terminate();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert_eq!(code, 0, "{log}");
    assert!(!log.contains("scored"), "{log}");
}

#[test]
fn refusals_are_json_and_name_the_option() {
    let dir = folder();
    let dir = dir.path();
    let server = serve(dir);
    for (request, status) in [
        ("POST /v1/models/%ff/score", "404"),
        ("GET /v1/models/line/score", "405"),
        ("DELETE /v1/models", "405"),
    ] {
        let answer =
            raw(&server, &format!("{request} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"), b"");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(answer.contains(r#"{"error":"#), "{answer}");
    }
    let no_port = score_at("http://127.0.0.1", dir, &["--model", "m", "--key", "a.key", "--in", "rows.csv"]);
    refused(&no_port, &["--server", "names no address and port"]);
    assert!(!stderr(&no_port).contains("--listen"));
    let ask = |url: &str| score_at(url, dir, &["--model", "m", "--key", "a.key", "--in", "rows.csv"]);
    refused(
        &ask("http://no.such.host.invalid:7710"),
        &["no service answers at http://no.such.host.invalid:7710"],
    );
    refused(
        &ask("127.0.0.1:7710"),
        &["starts with neither http:// nor https://; give one such as http://127.0.0.1:7710"],
    );
    // Who takes a connection and closes it within the handshake is there.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let closes = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let closed = ask(&url);
    closes.join().unwrap();
    assert!(
        !stderr(&closed).contains("eof") && !stderr(&closed).contains("no service"),
        "{}",
        stderr(&closed)
    );
    refused(&closed, &["the service hung up: it closed the connection"]);
    let serving = |more: &[&str]| run(dir, &[&["sum", "serve", "--model", "m=line.csv"], more].concat());
    refused(&serving(&["--jobs", "4611686018427387904"]), &["--jobs", "1 to 1024"]);
    refused(&serving(&["--request-work", "0"]), &["--request-work"]);
    refused(&serving(&["--tls-cert", "a.crt"]), &["--tls-key FILE"]);
    refused(&serving(&["--tokens", "nowhere"]), &["nowhere"]);
    let at =
        ["--server", &server.url, "--model", "m", "--key", "a.key", "--in", "rows.csv", "--timeout", "0"];
    assert!(stderr(&run(dir, &[&["sum", "score"], &at[..]].concat())).contains("1 to 86400"));
    // A start that fails is a line of the log, in the log's form.
    let taken = server.url.strip_prefix("http://").unwrap();
    let logged = serving(&["--listen", taken, "--log-json"]);
    let line: serde_json::Value = serde_json::from_str(stderr(&logged).trim_end()).unwrap();
    let said = line["fields"]["message"].as_str().unwrap();
    assert!(code(&logged) == 2 && said.contains("can't listen on") && line["level"] == "ERROR", "{line}");
}

/// A server's scores that don't keep to what its answer says: the answer is named, and not a file that could be copied again.
#[test]
fn an_answer_that_lies_is_said_to_be_the_servers() {
    let dir = folder();
    let dir = dir.path();
    std::fs::write(dir.join("lies.csv"), "4\n6\n7\n").unwrap();
    let encrypt = ["sum", "encrypt", TEST, "--key", "a.key", "--in", "lies.csv", "--out", "lies.ct"];
    assert_eq!(code(&run(dir, &encrypt)), 0);
    let mut honest = blindcore_sum::disk::open(&dir.join("lies.ct")).unwrap();
    let mut header = honest.header().clone();
    header.form.bound = Bound::new(5);
    let mut lies = Writer::new(Vec::new(), &header).unwrap();
    lies.write(&honest.next_block().unwrap().unwrap()).unwrap();
    let lies = lies.finish().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut request = BufReader::new(&stream);
        let (mut length, mut line) = (0, String::new());
        while request.read_line(&mut line).unwrap() > 2 {
            let lower = line.to_lowercase();
            length = lower.strip_prefix("content-length: ").map_or(length, |n| n.trim().parse().unwrap());
            line.clear();
        }
        request.read_exact(&mut vec![0; length]).unwrap();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", lies.len());
        (&stream).write_all(&[head.as_bytes(), &lies].concat()).unwrap();
    });
    let scored = score_at(&url, dir, &["--model", "m", "--key", "a.key", "--in", "rows.csv"]);
    server.join().unwrap();
    let why = "the scores can't be right: number 1 decrypts to over the declared 5 in magnitude; don't ask that server again";
    refused(&scored, &[why]);
}

/// A format of floats is said to hold the nearest, as by `sum decrypt`.
#[test]
fn scores_of_more_digits_than_a_float_are_said_to_be_rounded() {
    let dir = folder();
    let dir = dir.path();
    std::fs::write(dir.join("tenth.csv"), "0.1\n").unwrap();
    std::fs::write(dir.join("long.csv"), "123456789.123456789\n").unwrap();
    let server = Serving::start_as(
        dir,
        &["sum", "serve", TEST, "--listen", "127.0.0.1:0", "--model", "tenth=tenth.csv"],
    );
    let ask = |out: &[&str]| {
        let args = ["--model", "tenth", "--key", "a.key", "--in", "long.csv"];
        let scored = score(&server, dir, &[&args[..], out].concat());
        assert_eq!(code(&scored), 0, "{}", stderr(&scored));
        scored
    };
    let exact = ask(&[]);
    assert_eq!((stdout(&exact).as_str(), stderr(&exact).as_str()), ("12345678.9123456789\n", ""));
    assert_eq!(stderr(&ask(&["--out", "scores.csv"])), "1 number: scores.csv\n");
    let rounded = stderr(&ask(&["--out", "scores.npy"]));
    assert!(
        rounded.contains("more digits than a float holds") && rounded.contains("the nearest floats"),
        "{rounded}"
    );
}

/// Who mistakes the one service for the other is told so, in words of ours.
#[test]
fn lookups_of_a_scoring_service_are_refused() {
    let dir = folder();
    let server = serve(dir.path());
    for ask in [&["get", "--table", "t", "--key", "k"][..], &["tables"]] {
        refused(&run(dir.path(), &[ask, &["--server", &server.url]].concat()), &["no tables", "sum score"]);
    }
}

/// What is refused before it has come whole is read on: its client sees why, and can ask for something else.
#[test]
fn a_refusal_reaches_who_is_still_sending() {
    let dir = folder();
    let server = serve(dir.path());
    let mut stream = connect(&server);
    stream.write_all(post("nobody", 512 << 10).as_bytes()).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut answer = |status: &str| {
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            assert!(lines.read_line(&mut head).unwrap() > 0, "{head}");
        }
        assert!(head.starts_with(status), "{head}");
        for line in head.to_lowercase().lines() {
            length = line.strip_prefix("content-length: ").map_or(length, |n| n.parse().unwrap());
        }
        lines.read_exact(&mut vec![0; length]).unwrap();
    };
    answer("HTTP/1.1 404");
    for _ in 0..8 {
        stream.write_all(&[0; 64 << 10]).unwrap();
    }
    stream.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    answer("HTTP/1.1 200");
}

/// As many connections as the files of a process allow, and then the one gives way that has most: who comes then is answered.
#[cfg(target_os = "linux")]
#[test]
fn files_that_run_out_keep_nobody_out() {
    let dir = folder();
    let dir = dir.path();
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -n 160; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_blindcore")]);
    limited.args(["sum", "serve", TEST, "--listen", "127.0.0.1:0", "--model", "line=line.csv"]);
    limited.current_dir(dir).env("BLINDCORE_LOG", "info");
    let server = Serving::started(&mut limited);
    server.line("1024 connections at a time do not fit the 160 files");
    let to: std::net::SocketAddr = server.url.strip_prefix("http://").unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let many = runtime.block_on(async {
        let mut many = Vec::new();
        for address in 2..=6 {
            for _ in 0..40 {
                let socket = tokio::net::TcpSocket::new_v4().unwrap();
                socket.bind(([127, 0, 0, address], 0).into()).unwrap();
                many.push(socket.connect(to).await.unwrap());
            }
        }
        many
    });
    let scores = score(&server, dir, &["--model", "line", "--key", "a.key", "--in", "rows.csv"]);
    assert_eq!(stdout(&scores), "-40\n-40\n360\n", "{}", stderr(&scores));
    drop(many);
}

/// Where nothing or nonsense is named, the example is this service's port and not that of lookups.
#[test]
fn examples_name_the_port_of_scores() {
    let dir = folder();
    let asked =
        run(dir.path(), &["sum", "score", TEST, "--model", "line", "--key", "a.key", "--in", "rows.csv"]);
    refused(&asked, &["no server is named; say --server http://127.0.0.1:7710"]);
    let serve = ["sum", "serve", TEST, "--model", "line=line.csv", "--listen", "127.0.0.1"];
    refused(&run(dir.path(), &serve), &["--listen \"127.0.0.1\"", "such as 127.0.0.1:7710"]);
}

/// Clients take fewer scores.
#[test]
fn a_model_of_more_outputs_than_clients_take_is_refused_at_the_start() {
    let dir = folder();
    std::fs::write(dir.path().join("tall.csv"), "1,0\n".repeat(4097)).unwrap();
    let serve = ["sum", "serve", TEST, "--listen", "127.0.0.1:0", "--model", "tall=tall.csv"];
    let words = ["model \"tall\" has 4097 outputs, over the limit of 4096", "several models"];
    refused(&run(dir.path(), &serve), &words);
}

/// Those of the settings file are this server's, too; a flag is before them.
#[test]
fn limits_of_the_settings_hold_for_scores() {
    let dir = folder();
    let dir = dir.path();
    let limits = |text: &str| std::fs::write(dir.join("l.toml"), format!("[limits]\n{text}\n")).unwrap();
    let start =
        ["sum", "serve", TEST, "--config", "l.toml", "--listen", "127.0.0.1:0", "--model", "line=line.csv"];
    for (text, words) in [
        ("request_seconds = 0", &["request_seconds is 0, outside 1 to"][..]),
        ("request_mib = 0", &["request_mib (--request-mib) is 0, outside 1 to 4096"]),
        ("connections = 9223372036854775807", &["connections is 9223372036854775807, outside 1 to 1048576"]),
        (
            "hint_mib_per_minute = 9223372036854775807",
            &["hint_mib_per_minute is 9223372036854775807, which is more MiB"],
        ),
        ("hint_mib_per_minute = 1073741825", &["hint_mib_per_minute is 1073741825, outside 1 to 1073741824"]),
        ("request_memory_mib = 255", &["67108864 B (request_mib)", "request_memory_mib", "more memory"]),
        ("waiting_queries = 0", &["waiting_queries is 0"]),
        ("waiting_per_client = 0", &["waiting_per_client is 0"]),
    ] {
        limits(text);
        refused(&run(dir, &start), words);
    }
    std::fs::write(dir.join("l.toml"), "threads = 0\n").unwrap();
    refused(&run(dir, &start), &["threads (--threads) is 0, outside 1 to 1024"]);
    limits("request_mib = 1\nrequest_memory_mib = 16");
    let long = |more: &[&str]| {
        let server = Serving::start_as(dir, &[&start[..], more].concat());
        raw(&server, &post("line", (1 << 20) + 1), b"")
    };
    let refused = long(&[]);
    assert!(refused.starts_with("HTTP/1.1 413") && refused.contains("too-large"), "{refused}");
    limits("request_mib = 2");
    let refused = long(&["--request-mib", "1"]);
    assert!(refused.starts_with("HTTP/1.1 413"), "{refused}");
}

/// Weights are rounded by the digits that were written, whether or not a unit was said.
#[test]
fn weights_in_the_middle_of_two_units_are_rounded_half_to_even() {
    let dir = folder();
    let dir = dir.path();
    std::fs::write(dir.join("unit.csv"), "1,0\n").unwrap();
    for (weight, want) in [("0.0025", "0.002"), ("0.0005", "0.0"), ("0.0045", "0.004"), ("0.0035", "0.004")] {
        std::fs::write(dir.join("w.csv"), format!("{weight},953742.9\n")).unwrap();
        let args =
            ["sum", "encrypt", TEST, "--force", "--key", "a.key", "--in", "unit.csv", "--out", "unit.ct"];
        assert_eq!(code(&run(dir, &args)), 0);
        for unit in [&[][..], &["--precision", "0.001"]] {
            let args = [
                "sum",
                "dot",
                TEST,
                "--force",
                "--key",
                "a.key",
                "--in",
                "unit.ct",
                "--weights",
                "w.csv",
                "--out",
                "o.ct",
            ];
            let made = run(dir, &[&args[..], unit].concat());
            assert_eq!(code(&made), 0, "{}", stderr(&made));
            let scores = run(dir, &["sum", "decrypt", TEST, "--key", "a.key", "--in", "o.ct"]);
            assert_eq!(stdout(&scores).trim(), want, "{weight} {unit:?}");
        }
    }
}

#[test]
fn models_have_floats_and_a_bias() {
    let dir = folder();
    let dir = dir.path();
    std::fs::write(dir.join("risk.csv"), "0.1,-0.25,3\n").unwrap();
    std::fs::write(dir.join("thirds.csv"), format!("{},0,0\n", 1.0 / 3.0)).unwrap();
    std::fs::write(dir.join("biases.csv"), "0.5\n-100\n").unwrap();
    let models = ["--model", "risk=risk.csv", "--model", "layer=layer.csv", "--model", "thirds=thirds.csv"];
    let start = [&["sum", "serve", TEST, "--listen", "127.0.0.1:0"], &models[..]].concat();
    let more = ["--bias", "risk=-1.5", "--bias", "layer=biases.csv", "--precision", "1e-12"];
    let server = Serving::start_as(dir, &[&start[..], &more].concat());
    for (model, rows, want) in [
        ("risk", "rows.csv", "7.1\n15.65\n-31.2\n"),
        ("layer", "rows.csv", "14.5,-98.0\n32.5,-98.0\n-17.5,-102.0\n"),
        ("thirds", "rows.csv", "0.333333333333\n1.333333333332\n-2.333333333331\n"),
        ("risk", "floats.csv", "-4.5125\n"),
    ] {
        let scores = score(&server, dir, &["--model", model, "--key", "a.key", "--in", rows]);
        assert_eq!((code(&scores), stdout(&scores).as_str()), (0, want), "{}", stderr(&scores));
    }
    for (more, words) in [
        (&["--bias", "nobody=1"][..], &["--bias", "nobody=1", "names no --model"][..]),
        (&["--bias", "layer=1", "--bias", "layer=2"], &["layer=2", "already"]),
        (&["--bias", "layer=line.csv"], &["3 numbers", "2 outputs"]),
        (&["--bias", "layer="], &["--bias", "NAME=NUMBER"]),
        (&["--bias", "layer=99999999999999999999"], &["--bias", "layer=9999", "63 bits"]),
        (&["--bias", "layer=inf"], &["--bias", "\"layer=inf\"", "finite"]),
        (&["--bias", "layer=12,50"], &["--bias", "\"layer=12,50\"", "with a point"]),
    ] {
        refused(&run(dir, &[&start[..], more].concat()), words);
    }
}
