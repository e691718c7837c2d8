//! Tables that change while they are served: what clients find before and after, what they fetch, what a server
//! sees.

use std::time::{Duration, Instant};

use crate::common::{Running, cache, client_of, config, first, keyed, number, people, row, text, unkeyed};
use blindcore_client::{Error, LookupError};
use blindcore_server::Config;
use blindcore_wire::{PartKind, Value};

const NEW: [PartKind; 2] = [PartKind::Changes, PartKind::NewKeys];

#[tokio::test]
async fn a_table_changes_under_its_clients() {
    let base = keyed("people", 1, crate::common::simple(), 5, &people(300));
    let rows: [(&[u8], _); 4] =
        [(b"key-7", row("changed")), (b"key-8", None), (b"late", row("added")), (b"later", row("second"))];
    let next = base.changed(2, &rows, &[b"late", b"later"]);
    let server = Running::start(&[&base]).await;
    let dir = tempfile::tempdir().unwrap();
    let client = client_of(&server.url(), cache(dir.path())).await;
    let old = client.table("people").await.unwrap();
    assert!(old.get_index(0).await.unwrap().bytes.hint > 0);

    server.handle.publish(next.place_parts(&NEW)).unwrap();
    // A client that opened the table before goes on in the epoch that it knows.
    assert_eq!(first(&old.get("key-7").await.unwrap()), text("person 7"));
    assert_eq!(first(&old.get("late").await.unwrap()), None);
    assert_eq!(old.description().epoch(), 1);

    let new = old.refresh().await.unwrap();
    assert_eq!((new.description().epoch(), new.description().rows()), (2, 302));
    let changes = new.description().changes().unwrap();
    assert_eq!(new.hint_bytes_fetched(), changes.records.hint_bytes(), "the difference alone");
    let keys = ["key-7", "key-8", "late", "key-9", "nobody"];
    let found: Vec<_> = new.get_many(&keys).await.unwrap().iter().map(first).collect();
    assert_eq!(found, [text("changed"), None, text("added"), text("person 9"), None]);
    let rows: Vec<u64> = vec![7, 8, 300, 301, 9, 0];
    let by_index = new.get_many_index(&rows).await.unwrap();
    let found: Vec<_> = by_index.iter().map(first).collect();
    assert_eq!(
        found,
        [text("changed"), None, text("added"), text("second"), text("person 9"), text("person 0")]
    );
    assert!(matches!(new.get_index(302).await, Err(Error::Lookup(LookupError::NoSuchRow { .. }))));
    let keys_hint = new.description().part(PartKind::NewKeys).unwrap().hint_bytes();
    assert_eq!(
        new.hint_bytes_fetched(),
        changes.records.hint_bytes() + keys_hint,
        "the directory is the old one"
    );

    // A client that comes later finds the base in its cache, whatever the epoch.
    let again = client_of(&server.url(), cache(dir.path())).await.table("people").await.unwrap();
    assert_eq!(again.hint_bytes_fetched(), 0);
    assert_eq!(first(&again.get("late").await.unwrap()), text("added"));
    assert_eq!(server.stop().await, 0);
}

#[tokio::test]
async fn rows_without_keys_change_by_number() {
    let rows: Vec<Vec<Value>> = (0..40).map(|i| vec![Value::Int(i)]).collect();
    let base = unkeyed("plain", 3, crate::common::simple(), &rows);
    let (five, six, forty) = (number(5), number(6), number(40));
    let rows: [(&[u8], _); 3] =
        [(&five, Some(vec![Value::Int(-5)])), (&six, None), (&forty, Some(vec![Value::Int(40)]))];
    let next = base.changed(4, &rows, &[b""]);
    let server = Running::start(&[&next]).await;
    let table = server.client().await.table("plain").await.unwrap();
    let found: Vec<_> = table.get_many_index(&[4, 5, 6, 39, 40]).await.unwrap().iter().map(first).collect();
    let int = |n| Some(Value::Int(n));
    assert_eq!(found, [int(4), int(-5), None, int(39), int(40)]);
    assert_eq!(server.stop().await, 0);
}

/// What is asked is the same whatever it is about: as many queries of each part.
#[tokio::test]
async fn a_server_sees_the_same_for_every_row() {
    let base = keyed("people", 1, crate::common::simple(), 5, &people(50));
    let next = base.changed(2, &[(b"key-7", row("changed")), (b"late", row("added"))], &[b"late"]);
    let server = Running::start(&[&next]).await;
    let table = server.client().await.table("people").await.unwrap();
    let seen = || {
        PartKind::ALL.map(|kind| {
            let part = server.stats.part("people", kind);
            (part.requests, part.queries, part.bytes_in, part.bytes_out)
        })
    };
    let mut before = seen();
    let mut differences = Vec::new();
    for index in [0, 7, 50] {
        table.get_index(index).await.unwrap();
        let after = seen();
        differences.push(std::array::from_fn::<_, 4, _>(|i| {
            let (a, b) = (after[i], before[i]);
            (a.0 - b.0, a.1 - b.1, a.2 - b.2, a.3 - b.3)
        }));
        before = after;
    }
    assert_eq!(differences[0], differences[1]);
    assert_eq!(differences[0], differences[2]);
    assert!(differences[0].iter().all(|part| part.1 == 1));
    assert_eq!(server.stop().await, 0);
}

#[tokio::test]
async fn an_old_epoch_goes_once_nobody_asks_for_it() {
    let base = keyed("people", 1, crate::common::simple(), 2, &people(20));
    let settings = Config { epoch_linger: Duration::from_secs(2), ..config() };
    let server = Running::start_with(settings, &[&base]).await;
    let old = server.client().await.table("people").await.unwrap();
    server.handle.publish(base.changed(2, &[(b"key-1", None)], &[]).place_parts(&NEW)).unwrap();
    // As long as it is asked for it stays, however long: without a pause, so that a busy machine makes none of two seconds.
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(3) {
        assert_eq!(first(&old.get("key-1").await.unwrap()), text("person 1"));
    }
    let mut gone = None;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_secs(3)).await;
        gone = old.get("key-1").await.err();
        if gone.is_some() {
            break;
        }
    }
    assert!(matches!(gone, Some(Error::Lookup(LookupError::StaleEpoch { .. }))), "{gone:?}");
    assert_eq!(first(&old.refresh().await.unwrap().get("key-1").await.unwrap()), None);
    assert_eq!(server.stop().await, 0);
}

#[tokio::test]
async fn an_epoch_that_does_not_fit_changes_nothing() {
    let base = keyed("people", 1, crate::common::simple(), 2, &people(20));
    let other = keyed("people", 5, crate::common::simple(), 2, &people(30));
    let server = Running::start(&[&base]).await;
    let error = server.handle.publish(other.changed(6, &[(b"x", None)], &[]).place_parts(&NEW)).unwrap_err();
    assert!(error.to_string().contains("part records"), "{error}");
    let table = server.client().await.table("people").await.unwrap();
    assert_eq!(table.description().epoch(), 1);
    // A whole one is another base.
    server.handle.publish(other.place()).unwrap();
    let other = table.refresh().await.unwrap();
    assert_eq!(first(&other.get("key-25").await.unwrap()), text("person 25"));
    assert_eq!(first(&table.get("key-2").await.unwrap()), text("person 2"));
    assert_eq!(server.stop().await, 0);
}
