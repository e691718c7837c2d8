//! Servers that lie: errors, never panics, never a second query.

use crate::common::fake::{Answer, Fake};
use crate::common::{Made, client_of, keyed, people, unkeyed};
use blindcore_client::{CacheDir, Client, Error, LookupError, Options, TableClient};
use blindcore_wire::{PartKind, REASON_HEADER, Value, proto};
use bytes::Bytes;
use tonic::{Code, Status};

async fn open(fake: Fake) -> (Result<TableClient, Error>, std::sync::Arc<Fake>) {
    let name = fake.table.table.as_ref().map(|t| t.name.clone()).unwrap_or_default();
    let (address, fake) = fake.start().await;
    (client_of(&format!("http://{address}"), CacheDir::None).await.table(&name).await, fake)
}

fn plain() -> Made {
    unkeyed("plain", 1, crate::common::simple(), &(0..50).map(|i| vec![Value::Int(i)]).collect::<Vec<_>>())
}

/// Answers of the right length that decode to noise.
fn noise(
    made: &Made,
) -> impl Fn(&proto::QueryRequest) -> Result<proto::QueryResponse, Status> + Send + Sync + 'static {
    let description = made.description.clone();
    move |request| {
        let params = description.part(PartKind::from_proto(request.part).unwrap()).unwrap().params;
        let queries = request.queries.len() / params.query_bytes();
        let answers: Vec<u8> = (0..queries * params.answer_bytes())
            .map(|i| i as u32)
            // No line that the masks of a table of few rows could lie on.
            .map(|i| (i ^ i >> 3).wrapping_mul(0x9e37_79b1).wrapping_pow(2).to_be_bytes()[0])
            .collect();
        Ok(proto::QueryResponse { answers: answers.into(), server_micros: u64::MAX })
    }
}

#[tokio::test]
async fn descriptions_that_lie_are_refused() {
    type Lie = fn(&mut proto::GetTableResponse);
    let lies: &[Lie] = &[
        |a| a.table = None,
        |a| a.records_queries = 0,
        |a| a.table.as_mut().unwrap().protocol_version = 9,
        |a| a.table.as_mut().unwrap().rows = u64::MAX,
        |a| a.table.as_mut().unwrap().records.as_mut().unwrap().groups = u64::MAX,
        |a| a.table.as_mut().unwrap().records.as_mut().unwrap().columns = 1 << 50,
        |a| a.table.as_mut().unwrap().records.as_mut().unwrap().hint_bytes = u64::MAX,
        |a| a.table.as_mut().unwrap().seeds = vec![0; 3 << 20].into(),
        |a| a.table.as_mut().unwrap().value_columns = vec![String::new(); 100_000],
        |a| a.table.as_mut().unwrap().digest = Bytes::new(),
        // Over what a client reads at all.
        |a| a.table.as_mut().unwrap().seeds = vec![0; 30 << 20].into(),
    ];
    for (i, lie) in lies.iter().enumerate() {
        let mut fake = Fake::of(&plain());
        lie(&mut fake.table);
        if fake.table.table.is_none() {
            fake.hint = Bytes::new();
        }
        let (address, _) = fake.start().await;
        let client = client_of(&format!("http://{address}"), CacheDir::None).await;
        let error = client.table("plain").await.err().unwrap_or_else(|| panic!("lie {i}"));
        let expected = matches!(
            error,
            Error::Lookup(LookupError::Protocol { .. })
                | Error::Lookup(LookupError::Table { .. })
                | Error::Lookup(LookupError::Refused { .. })
        );
        assert!(expected, "{i}: {error}");
        assert!(error.to_string().len() < 1500);
    }
    let (address, _) = Fake::of(&plain()).start().await;
    let client = client_of(&format!("http://{address}"), CacheDir::None).await;
    assert!(
        matches!(client.table("other").await, Err(Error::Lookup(LookupError::Protocol { .. }))),
        "another table than asked for"
    );
    assert!(
        matches!(client.table("no/name").await, Err(Error::Lookup(LookupError::Table { .. }))),
        "not even asked"
    );
    assert!(matches!(client.tables().await, Err(Error::Lookup(LookupError::Protocol { .. }))));
}

#[tokio::test]
async fn answers_of_another_length_are_refused() {
    let made = plain();
    let bytes = made.description.records().params.answer_bytes();
    for len in [0, 1, bytes - 1, bytes + 1, 2 * bytes, 40 << 20] {
        let mut fake = Fake::of(&made);
        fake.answer =
            Box::new(move |_| Ok(proto::QueryResponse { answers: vec![1; len].into(), server_micros: 1 }));
        let (table, fake) = open(fake).await;
        let error = table.unwrap().get_index(1).await.unwrap_err();
        assert!(
            matches!(
                error,
                Error::Lookup(LookupError::Protocol { .. }) | Error::Lookup(LookupError::Refused { .. })
            ),
            "{len}: {error}"
        );
        assert_eq!(fake.queries.lock().unwrap().len(), 1, "asked once");
    }
}

/// Selective failure: what an answer decodes to must change nothing that the server sees.
#[tokio::test]
async fn garbage_is_not_told() {
    // Rows of an index: the record is noise.
    let made = plain();
    let (table, fake) = open(Fake { answer: Box::new(noise(&made)), ..Fake::of(&made) }).await;
    let table = table.unwrap();
    let query_bytes = made.description.records().params.query_bytes();
    let mut failed = 0;
    for i in 0..20u64 {
        match table.get_index(i % 50).await {
            Err(Error::Lookup(LookupError::Damaged { .. })) => failed += 1,
            Ok(lookup) => panic!("{lookup:?}"),
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(failed, 20);
    assert_eq!(*fake.queries.lock().unwrap(), vec![(1, query_bytes); 20]);
    // Many in several requests: a damaged answer in the first keeps none of the others back.
    let all: Vec<u64> = (0..20).collect();
    assert!(matches!(table.get_many_index(&all).await, Err(Error::Lookup(LookupError::Damaged { .. }))));
    let sizes: Vec<_> = fake.queries.lock().unwrap()[20..].iter().map(|q| q.1 / query_bytes).collect();
    assert_eq!(sizes, [8, 8, 4]);

    // Keys that decode to noise are looked up all the same.
    let made = keyed("people", 1, crate::common::simple(), 2, &people(30));
    let (table, fake) = open(Fake { answer: Box::new(noise(&made)), ..Fake::of(&made) }).await;
    let table = table.unwrap();
    for error in [table.get("key-1").await.unwrap_err(), table.get_index(3).await.unwrap_err()] {
        assert!(matches!(error, Error::Lookup(LookupError::Damaged { .. })), "{error}");
    }
    let records = made.description.records().params.query_bytes();
    let keys = made.description.keys().unwrap().params.query_bytes();
    assert_eq!(*fake.queries.lock().unwrap(), [(1, records), (2, keys), (1, records)]);
}

#[tokio::test]
async fn refusals_are_typed_and_final() {
    let refuse = |code, reason: Option<&'static str>, text: &'static str| {
        move |_: &proto::QueryRequest| {
            let mut status = Status::new(code, text);
            if let Some(reason) = reason {
                status.metadata_mut().insert(REASON_HEADER, reason.parse().unwrap());
            }
            Err(status)
        }
    };
    let made = plain();
    let ask = async |answer: Answer| {
        let (table, fake) = open(Fake { answer, ..Fake::of(&made) }).await;
        let error = table.unwrap().get_index(1).await.unwrap_err();
        assert_eq!(fake.queries.lock().unwrap().len(), 1, "asked once");
        error
    };
    let error = ask(Box::new(refuse(Code::FailedPrecondition, Some("stale-epoch"), "now 2"))).await;
    assert!(matches!(error, Error::Lookup(LookupError::StaleEpoch { epoch: 1, .. })), "{error}");
    let error = ask(Box::new(refuse(Code::ResourceExhausted, Some("busy"), "full\x1b[31m\n"))).await;
    assert!(
        matches!(
            error,
            Error::Lookup(LookupError::Refused { reason: Some(blindcore_wire::Reason::Busy), .. })
        ),
        "{error}"
    );
    assert!(!error.to_string().contains(char::is_control), "{error:?}");
    let error = ask(Box::new(refuse(Code::Unavailable, None, "gone"))).await;
    assert!(matches!(error, Error::Network { .. }), "{error}");
    let error = ask(Box::new(refuse(Code::PermissionDenied, Some("no such reason"), "no"))).await;
    assert!(matches!(error, Error::Lookup(LookupError::Refused { reason: None, .. })), "{error}");
}

#[tokio::test]
async fn a_server_that_never_answers_is_left() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let short = std::time::Duration::from_millis(200);
    let options = Options { request_timeout: short, cache: CacheDir::None, ..Options::default() };
    let client = Client::connect_with(&url, options).await.unwrap();
    let error = client.table("t").await.err().unwrap();
    assert!(matches!(error, Error::Network { .. }), "{error}");
    drop(listener);
}

#[tokio::test]
async fn addresses_are_checked() {
    for (url, what) in [
        ("https://127.0.0.1:1", "can't reach https://127.0.0.1:1"),
        ("127.0.0.1:7700", "http://"),
        ("localhost", "http://"),
        ("ftp://x", "only http:// and https://"),
        ("http://x/y", "after the port"),
        ("http://me@x", "names a user"),
        ("", "http://"),
        ("http://", "http://"),
    ] {
        let error = Client::connect(url).await.err().unwrap_or_else(|| panic!("{url}")).to_string();
        assert!(error.contains(what), "{url}: {error}");
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = Client::connect(&url).await.err().unwrap();
    assert!(
        matches!(error, Error::Connect { .. }) && error.to_string().contains("nobody listens there"),
        "{error}"
    );
}
