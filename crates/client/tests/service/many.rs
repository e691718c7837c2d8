//! Many keys, a line each: what comes of each, and what a run outlasts.

use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::Duration;

use crate::common::fake::Fake;
use crate::common::{Running, config, first, keyed, people, text};
use blindcore_client::{
    Answer, CacheDir, Client, Counts, Error, Keys, KeysError, LookupError, Options, Resume,
};
use blindcore_server::Config;
use blindcore_wire::{PartKind, REASON_HEADER, Value, proto};
use tonic::{Code, Status};

async fn patient(url: &str) -> Client {
    let patience = Duration::from_secs(600);
    let options = Options { cache: CacheDir::None, patience, ..Options::default() };
    Client::connect_with(url, options).await.unwrap()
}

fn keys(text: &str) -> Keys {
    Keys::new(Path::new("keys"), Box::new(std::io::Cursor::new(text.to_owned().into_bytes())))
}

/// What somebody types.
struct Typed(mpsc::Receiver<&'static str>, Vec<u8>);

impl Read for Typed {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.1.is_empty() {
            let Ok(more) = self.0.recv() else { return Ok(0) };
            self.1.extend_from_slice(more.as_bytes());
        }
        let len = self.1.len().min(into.len());
        into[..len].copy_from_slice(&self.1[..len]);
        self.1.drain(..len);
        Ok(len)
    }
}

/// Refusals that pass, a broken connection, noise: the rest is answered, in order, and no query comes twice.
#[tokio::test]
async fn what_passes_is_outlasted_and_what_is_wrong_is_of_its_key() {
    let made = keyed("people", 1, crate::common::simple(), 2, &people(30));
    let server = made.records.server();
    let params = made.description.records().params;
    let script = Mutex::new((0, Vec::<Vec<u8>>::new()));
    let answer = move |request: &proto::QueryRequest| {
        let mut script = script.lock().unwrap();
        let (step, seen) = &mut *script;
        *step += 1;
        for query in request.queries.chunks(params.query_bytes()) {
            assert!(!seen.iter().any(|s| s == query), "a query came twice");
            seen.push(query.to_vec());
        }
        let refuse = |code, reason: Option<&'static str>| {
            let mut status = Status::new(code, "not now");
            if let Some(reason) = reason {
                status.metadata_mut().insert(REASON_HEADER, reason.parse().unwrap());
                status.metadata_mut().insert("retry-after", "0".parse().unwrap());
            }
            Err(status)
        };
        match *step {
            1 => refuse(Code::ResourceExhausted, Some("busy")),
            2 => refuse(Code::ResourceExhausted, Some("too-many")),
            3 => refuse(Code::Unavailable, None),
            // As of a table that was built anew: it is opened again.
            4 => refuse(Code::FailedPrecondition, Some("wrong-parameters")),
            step => {
                let queries: Vec<&[u8]> = request.queries.chunks(params.query_bytes()).collect();
                let mut answers = server.answer(&queries).unwrap().0.concat();
                if step == 5 {
                    answers[..params.answer_bytes()].fill(0);
                }
                Ok(proto::QueryResponse { answers: answers.into(), server_micros: 1 })
            }
        }
    };
    let (address, fake) = Fake { answer: Box::new(answer), ..Fake::of(&made) }.start().await;
    let table = patient(&format!("http://{address}")).await.table("people").await.unwrap();
    let lines: String = (0..20).map(|i| format!("key-{}\n", 2 * i)).collect();
    let mut got = Vec::new();
    let counts = table.get_all::<Error>(keys(&lines), None, |Answer { line, lookup, .. }| {
        got.push((line.line, lookup.map(|found| first(&found))));
        Ok(())
    });
    assert_eq!(counts.await.unwrap(), Counts { found: 14, absent: 5, failed: 1 });
    assert_eq!(got.iter().map(|(line, _)| *line).collect::<Vec<_>>(), (1..=20).collect::<Vec<_>>());
    for (line, found) in got {
        match (line, found) {
            (_, Err(Error::Lookup(LookupError::Damaged { .. }))) => {}
            (line, found) => {
                let number = 2 * (line - 1);
                let want = (number < 30).then(|| Value::Text(format!("person {number}")));
                assert_eq!(found.unwrap(), want);
            }
        }
    }
    let requests = fake.queries.lock().unwrap().len();
    assert!(requests >= 7, "four that were refused, and three of up to 8 keys: {requests}");
}

/// The server ends and starts again at another epoch while somebody types keys.
#[tokio::test(flavor = "multi_thread")]
async fn keys_are_answered_as_they_come_over_a_restart() {
    let made = |epoch| keyed("people", epoch, crate::common::simple(), 2, &people(30));
    let server = Running::start(&[&made(1)]).await;
    let listen = server.address;
    let table = patient(&server.url()).await.table("people").await.unwrap();
    let (type_, typed) = mpsc::channel();
    let keys = Keys::new(Path::new("-"), Box::new(BufReader::new(Typed(typed, Vec::new()))));
    let (answered, mut answers) = tokio::sync::mpsc::unbounded_channel();
    let run = tokio::spawn(async move {
        let each = |Answer { lookup, table, .. }: Answer<'_>| {
            let _ = answered.send((table.description().epoch(), first(&lookup?)));
            Ok::<_, Error>(())
        };
        table.get_all(keys, None, each).await
    });
    type_.send("key-1\n").unwrap();
    assert_eq!(answers.recv().await.unwrap(), (1, text("person 1")));
    server.stop().await;
    type_.send("key-2\nnob").unwrap();
    let _server = Running::start_with(Config { listen, ..config() }, &[&made(2)]).await;
    assert_eq!(answers.recv().await.unwrap(), (2, text("person 2")));
    type_.send("ody\n").unwrap();
    assert_eq!(answers.recv().await.unwrap(), (2, None));
    drop(type_);
    assert_eq!(run.await.unwrap().unwrap(), Counts { found: 2, absent: 1, failed: 0 });
}

#[tokio::test]
async fn a_run_that_ended_goes_on() {
    let server = Running::start(&[&keyed("people", 1, crate::common::simple(), 2, &people(300))]).await;
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let lines: String = (0..200).map(|i| format!("key-{}\n", 2 * i)).collect();
    let mut seen = Vec::new();
    let run = async |seen: &mut Vec<u64>, lines: &str, most: usize| {
        let table = patient(&server.url()).await.table("people").await.unwrap();
        let resume = Resume::open(&state, "people").unwrap();
        let each = |Answer { line, .. }: Answer<'_>| {
            if seen.len() == most {
                return Err(Error::Blocking);
            }
            seen.push(line.line);
            Ok(())
        };
        table.get_all(keys(lines), Some(resume), each).await
    };
    // Ended by force in the middle of a request's answers: those may come twice, and none is left out.
    assert!(run(&mut seen, &lines, 100).await.is_err());
    let done = Resume::open(&state, "people").unwrap().lines();
    assert!(done < 100 && done + 64 >= 100, "{done}");
    seen.truncate(done as usize);
    let counts = run(&mut seen, &lines, usize::MAX).await.unwrap();
    assert_eq!(counts, Counts { found: 150, absent: 50, failed: 0 });
    assert_eq!(seen, (1..=200).collect::<Vec<_>>());
    let queries = server.stats.part("people", PartKind::Records).queries;
    assert_eq!(run(&mut seen, &lines, 200).await.unwrap(), counts, "nothing is left");
    assert_eq!(server.stats.part("people", PartKind::Records).queries, queries);
    let other = run(&mut seen, "another\n", 200).await.unwrap_err();
    assert!(matches!(other, Error::Keys(KeysError::Other { .. })), "{other}");
}

#[tokio::test]
async fn lines_that_are_no_keys_keep_nothing_back() {
    let server = Running::start(&[&keyed("people", 1, crate::common::simple(), 2, &people(10))]).await;
    let table = async || patient(&server.url()).await.table("people").await.unwrap();
    let lines = format!("{}\nkey-1\n", "x".repeat(5000));
    let mut lookups = Vec::new();
    let each = |answer: Answer<'_>| {
        lookups.push(answer.lookup);
        Ok::<_, Error>(())
    };
    let counts = table().await.get_all(keys(&lines), None, each).await.unwrap();
    assert_eq!(counts, Counts { found: 1, absent: 0, failed: 1 });
    assert!(matches!(lookups[0], Err(Error::Keys(KeysError::Line { line: 1, .. }))));
    let none = table().await.get_all(keys("\n\n"), None, |_| Ok::<_, Error>(())).await.unwrap_err();
    assert!(matches!(none, Error::Keys(KeysError::None { .. })), "{none}");
}

/// What a request took is shared by the lookups in it, as its bytes are: all of them add up to it.
#[tokio::test]
async fn lookups_of_a_request_share_what_it_took() {
    let made = keyed("people", 1, crate::common::simple(), 2, &people(30));
    let (server, params) = (made.records.server(), made.description.records().params);
    let answer = move |request: &proto::QueryRequest| {
        let queries: Vec<&[u8]> = request.queries.chunks(params.query_bytes()).collect();
        let answers = server.answer(&queries).unwrap().0.concat();
        Ok(proto::QueryResponse { answers: answers.into(), server_micros: 8000 })
    };
    let (address, fake) = Fake { answer: Box::new(answer), ..Fake::of(&made) }.start().await;
    let table = patient(&format!("http://{address}")).await.table("people").await.unwrap();
    let all: Vec<String> = (0..8).map(|i| format!("key-{i}")).collect();
    let found = table.get_many(&all).await.unwrap();
    assert_eq!(fake.queries.lock().unwrap().len(), 1);
    for lookup in &found {
        assert_eq!(lookup.ms.server, 1.0);
        assert_eq!(lookup.bytes, found[0].bytes);
    }
    assert_eq!(table.get("key-1").await.unwrap().ms.server, 8.0);
}
