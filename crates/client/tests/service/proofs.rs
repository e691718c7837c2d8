//! Tables with proofs: what is right is found, what is wrong is noticed, and a server sees no difference.

use crate::common::{Made, Running, first, keyed_with, number, people, row, text, unkeyed_with};
use blindcore_client::{Error, LookupError, TableClient};
use blindcore_wire::{PartKind, Value};

fn wrong(result: Result<impl std::fmt::Debug, Error>, of: PartKind) {
    match result.unwrap_err() {
        Error::Lookup(LookupError::WrongAnswer { table, part }) => {
            assert_eq!((table.as_str(), part), ("people", of))
        }
        other => panic!("{other}"),
    }
}

/// A table that changed, with every part there is.
fn changed(scheme: blindcore_lookup::SchemeRef, depth: u8, rows: usize) -> Made {
    let base = keyed_with("people", 1, scheme, 3, &people(rows), Some(depth));
    let rows: [(&[u8], _); 3] = [(b"key-7", row("changed")), (b"key-8", None), (b"late", row("added"))];
    base.changed(2, &rows, &[b"late"])
}

async fn open(made: &Made) -> (Running, TableClient) {
    let server = Running::start(&[made]).await;
    let table = server.client().await.table("people").await.unwrap();
    (server, table)
}

#[tokio::test]
async fn what_is_right_is_found() {
    for (scheme, depth, rows) in [(crate::common::simple(), 3, 300), (crate::common::simple(), 0, 40)] {
        let (server, table) = open(&changed(scheme, depth, rows)).await;
        assert!(table.description().has_proofs());
        let keys = ["key-7", "key-8", "late", "key-9", "nobody"];
        let found: Vec<_> = table.get_many(&keys).await.unwrap().iter().map(first).collect();
        assert_eq!(found, [text("changed"), None, text("added"), text("person 9"), None]);
        let numbers = [7, 8, rows as u64, 9, 0];
        let found: Vec<_> = table.get_many_index(&numbers).await.unwrap().iter().map(first).collect();
        assert_eq!(found, [text("changed"), None, text("added"), text("person 9"), text("person 0")]);
        assert_eq!(server.stop().await, 0);
    }
}

#[tokio::test]
async fn rows_without_keys_have_proofs_too() {
    let rows: Vec<Vec<Value>> = (0..40).map(|i| vec![Value::Int(i)]).collect();
    let base = unkeyed_with("people", 3, crate::common::simple(), &rows, Some(2));
    let (five, six, forty) = (number(5), number(6), number(40));
    let rows: [(&[u8], _); 3] =
        [(&five, Some(vec![Value::Int(-5)])), (&six, None), (&forty, Some(vec![Value::Int(40)]))];
    let next = base.changed(4, &rows, &[b""]);
    let (server, table) = open(&next).await;
    let found: Vec<_> = table.get_many_index(&[4, 5, 6, 39, 40]).await.unwrap().iter().map(first).collect();
    let int = |n| Some(Value::Int(n));
    assert_eq!(found, [int(4), int(-5), None, int(39), int(40)]);
    assert_eq!(server.stop().await, 0);

    let rows: Vec<Vec<Value>> = (0..9).map(|i| vec![Value::Int(i)]).collect();
    let (server, table) = open(&unkeyed_with("people", 3, crate::common::double(), &rows, Some(0))).await;
    assert_eq!(first(&table.get_index(8).await.unwrap()), int(8));
    assert_eq!(server.stop().await, 0);
}

/// A lie of whole bytes: under schemes with noise, that of the hint's slots is noticed first.
#[tokio::test]
async fn wrong_rows_without_keys_are_noticed() {
    let rows: Vec<Vec<Value>> = (0..40).map(|i| vec![Value::Int(i)]).collect();
    let base = unkeyed_with("people", 3, crate::common::plain(), &rows, Some(2));
    let (five, six, forty) = (number(5), number(6), number(40));
    let rows: [(&[u8], _); 3] =
        [(&five, Some(vec![Value::Int(-5)])), (&six, None), (&forty, Some(vec![Value::Int(40)]))];
    let next = base.changed(4, &rows, &[b""]);
    let int = |n| Some(Value::Int(n));
    let liar = Made { records: base.records.wrong(0), ..base.clone() };
    let (server, table) = open(&liar).await;
    wrong(table.get_index(4).await, PartKind::Records);
    wrong(table.get_many_index(&[0, 1]).await, PartKind::Records);
    assert_eq!(server.stop().await, 0);
    let liar = Made { changes: next.changes.as_ref().map(|c| c.wrong(6)), ..next };
    let (server, table) = open(&liar).await;
    wrong(table.get_index(5).await, PartKind::Changes);
    wrong(table.get_index(40).await, PartKind::Changes);
    assert_eq!(first(&table.get_index(4).await.unwrap()), int(4), "nothing is said of it since");
    assert_eq!(server.stop().await, 0);
}

/// A server computes on a table of another content than its description and hints say.
#[tokio::test]
async fn what_is_wrong_is_noticed_and_not_told() {
    let honest = changed(crate::common::plain(), 2, 50);
    let seen = async |made: &Made| {
        let (server, table) = open(made).await;
        let by_key = table.get_many(&["key-1", "key-7", "late", "nobody"]).await;
        let by_index = table.get_many_index(&[0, 50, 7]).await;
        let sizes = PartKind::ALL.map(|kind| {
            let part = server.stats.part("people", kind);
            (part.requests, part.queries, part.bytes_in)
        });
        assert_eq!(server.stop().await, 0);
        (by_key, by_index, sizes)
    };
    let (by_key, by_index, right) = seen(&honest).await;
    assert!(by_key.is_ok() && by_index.is_ok());
    let liars = [
        // The first byte of a record, which comes after the fingerprint.
        (PartKind::Records, Made { records: honest.records.wrong(5), ..honest.clone() }),
        (PartKind::Changes, Made { changes: honest.changes.as_ref().map(|c| c.wrong(6)), ..honest.clone() }),
        (PartKind::Keys, Made { keys: honest.keys.as_ref().map(|k| k.wrong(3)), ..honest.clone() }),
        (
            PartKind::NewKeys,
            Made { new_keys: honest.new_keys.as_ref().map(|k| k.wrong(3)), ..honest.clone() },
        ),
    ];
    for (kind, liar) in liars {
        let (by_key, by_index, sizes) = seen(&liar).await;
        if matches!(kind, PartKind::Records | PartKind::Changes) {
            wrong(by_key, kind);
        } else {
            assert!(by_key.is_ok());
        }
        wrong(by_index, kind);
        assert_eq!(sizes, right, "{kind}");
    }
}
