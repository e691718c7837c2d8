//! Lookups over real sockets: what comes back, and what a server sees.

use crate::common::{Running, keyed, people, unkeyed};
use blindcore_client::{Error, LookupError, Record};
use blindcore_wire::{PartKind, Value};

fn values(record: &Record) -> Vec<Value> {
    record.values.iter().map(|(_, v)| v.clone()).collect()
}

async fn every_key(scheme: blindcore_lookup::SchemeRef, groups: usize, rows: &[(String, Vec<Value>)]) {
    let server = Running::start(&[&keyed("people", 1, scheme, groups, rows)]).await;
    let client = server.client().await;
    let tables = client.tables().await.unwrap();
    assert_eq!((tables.len(), &*tables[0].name, tables[0].rows), (1, "people", rows.len() as u64));
    let table = client.table("people").await.unwrap();
    assert_eq!(table.description().rows(), rows.len() as u64);

    let present = table.get(&rows[0].0).await.unwrap();
    let record = present.found.unwrap();
    assert_eq!(record.key.as_deref(), Some(rows[0].0.as_bytes()));
    assert_eq!(&*record.values[0].0, "column 0");
    assert!(present.ms.prepare > 0.0 && present.ms.query >= present.ms.server, "{:?}", present.ms);
    assert!(present.bytes.hint > 0);
    for absent in ["key-", "key-99999", "KEY-0", "\0"] {
        assert_eq!(table.get(absent).await.unwrap().found, None, "{absent}");
    }

    // Every row, twice one of them, and one that is not there, in requests of 64.
    let mut keys: Vec<&str> = rows.iter().map(|(k, _)| &**k).collect();
    keys.extend([keys[1], "nobody"]);
    let before = server.stats.part("people", PartKind::Records);
    let lookups = table.get_many(&keys).await.unwrap();
    let after = server.stats.part("people", PartKind::Records);
    assert_eq!(after.queries - before.queries, keys.len() as u64);
    assert_eq!(after.requests - before.requests, keys.len().div_ceil(64) as u64);
    for ((_, row), lookup) in rows.iter().zip(&lookups) {
        assert_eq!(values(lookup.found.as_ref().unwrap()), *row);
    }
    assert_eq!(values(lookups[rows.len()].found.as_ref().unwrap()), rows[1].1);
    assert_eq!(lookups[rows.len() + 1].found, None);

    let index = rows.len() as u64 - 1;
    let by_index = table.get_index(index).await.unwrap().found.unwrap();
    assert_eq!(by_index.key.as_deref(), Some(rows[index as usize].0.as_bytes()));
    assert_eq!(values(&by_index), rows[index as usize].1);
    let error = table.get_index(rows.len() as u64).await.unwrap_err();
    assert!(matches!(error, Error::Lookup(LookupError::NoSuchRow { .. })), "{error}");
    assert!(matches!(table.get("").await, Err(Error::Lookup(LookupError::Key(_)))));
    assert!(matches!(table.get("x".repeat(4097)).await, Err(Error::Lookup(LookupError::Key(_)))));
    assert_eq!(server.stop().await, 0);
}

#[tokio::test]
async fn simple_by_key() {
    every_key(crate::common::simple(), 5, &people(300)).await;
}

#[tokio::test]
async fn simple_by_key_in_one_group() {
    every_key(crate::common::simple(), 1, &people(3)).await;
}

#[tokio::test]
async fn double_by_key() {
    // One byte a record: DoublePIR's hint is 16 MiB for each byte of a slot.
    let rows: Vec<_> = (0..100).map(|i| (format!("key-{i}"), vec![Value::Int(i % 90)])).collect();
    every_key(crate::common::double(), 4, &rows).await;
}

#[tokio::test]
async fn by_index_without_keys() {
    for scheme in [crate::common::simple(), crate::common::double()] {
        let rows: Vec<Vec<Value>> = (0..150).map(|i| vec![Value::Int(i % 90)]).collect();
        let server = Running::start(&[&unkeyed("plain", 1, scheme, &rows)]).await;
        let table = server.client().await.table("plain").await.unwrap();
        let all: Vec<u64> = (0..150).collect();
        let lookups = table.get_many_index(&all).await.unwrap();
        for (row, lookup) in rows.iter().zip(lookups) {
            let record = lookup.found.unwrap();
            assert_eq!(values(&record), *row);
            assert_eq!(record.key, None);
        }
        assert!(matches!(table.get("x").await, Err(Error::Lookup(LookupError::NotKeyed { .. }))));
        assert!(matches!(
            table.get_index(150).await,
            Err(Error::Lookup(LookupError::NoSuchRow { index: 150, rows: 150, .. }))
        ));
    }
}

#[tokio::test]
async fn a_table_of_keys_alone_says_who_is_in_it() {
    let rows: Vec<_> = (0..40).map(|i| (format!("key-{i}"), vec![])).collect();
    let server = Running::start(&[&keyed("members", 1, crate::common::simple(), 2, &rows)]).await;
    let table = server.client().await.table("members").await.unwrap();
    assert_eq!(table.get("key-39").await.unwrap().found.unwrap().values, []);
    assert_eq!(table.get("key-40").await.unwrap().found, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_clients_on_two_tables() {
    let rows = people(200);
    let plain: Vec<Vec<Value>> = (0..300).map(|i| vec![Value::Int(i), Value::Text("x".repeat(9))]).collect();
    let (people, plain_table) = (
        keyed("people", 1, crate::common::simple(), 4, &rows),
        unkeyed("plain", 9, crate::common::simple(), &plain),
    );
    let server = Running::start(&[&people, &plain_table]).await;
    let (rows, plain) = (std::sync::Arc::new(rows), std::sync::Arc::new(plain));
    let mut clients = tokio::task::JoinSet::new();
    for i in 0..50usize {
        let (rows, plain, client) = (rows.clone(), plain.clone(), server.client().await);
        clients.spawn(async move {
            if i % 2 == 0 {
                let table = client.table("people").await.unwrap();
                for j in 0..4 {
                    let (key, row) = &rows[(i * 31 + j * 7) % rows.len()];
                    assert_eq!(values(&table.get(key).await.unwrap().found.unwrap()), *row);
                    assert_eq!(table.get(format!("none-{i}")).await.unwrap().found, None);
                }
            } else {
                let table = client.table("plain").await.unwrap();
                let wanted: Vec<u64> = (0..8).map(|j| (i * 17 + j * 5) as u64 % 300).collect();
                for (index, lookup) in wanted.iter().zip(table.get_many_index(&wanted).await.unwrap()) {
                    assert_eq!(values(&lookup.found.unwrap()), plain[*index as usize]);
                }
            }
        });
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    let (people, plain) =
        (server.stats.part("people", PartKind::Records), server.stats.part("plain", PartKind::Records));
    assert_eq!((people.requests, people.queries), (25 * 8, 25 * 8));
    assert_eq!((plain.requests, plain.queries), (25, 25 * 8));
    assert!(plain.passes < plain.queries, "queries of one request are gathered");
    assert!(people.most_gathered.max(plain.most_gathered) <= 16);
    assert_eq!(server.stop().await, 0);
}

/// What a server sees of a lookup is the same whatever is looked up.
#[tokio::test]
async fn the_servers_view_is_independent_of_the_key() {
    let rows = people(120);
    for scheme in [crate::common::simple(), crate::common::double()] {
        let small: Vec<_> = rows.iter().map(|(k, _)| (k.clone(), vec![Value::Null])).collect();
        let double = scheme == crate::common::double();
        let made = keyed("people", 1, scheme, 3, if double { &small } else { &rows });
        let server = Running::start(&[&made]).await;
        let table = server.client().await.table("people").await.unwrap();
        let mut views = Vec::new();
        for keys in [
            ["key-0", "key-1"],
            ["key-0", "key-0"],
            ["absent", "also absent, and much longer than any key that is there"],
            ["key-119", "absent"],
            ["\0", "\u{ff}"],
        ] {
            let before = server.stats.part("people", PartKind::Records);
            let lookups = table.get_many(&keys).await.unwrap();
            let after = server.stats.part("people", PartKind::Records);
            // What comes down holds the server's time, in as many bytes as it takes; its answers are in `work`.
            let sizes: Vec<_> = lookups.iter().map(|l| l.bytes.up).collect();
            let work = (
                after.requests - before.requests,
                after.queries - before.queries,
                after.passes - before.passes,
                after.bytes_in - before.bytes_in,
                after.bytes_out - before.bytes_out,
            );
            views.push((sizes, work));
        }
        assert!(views.iter().all(|v| *v == views[0]), "{views:?}");
        assert_eq!(views[0].1.2, 1, "one pass for one request");
    }
}
