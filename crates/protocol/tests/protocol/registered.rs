//! Registered keys: what a lookup needs of them, when others are made, and what a cache keeps.

use std::sync::Arc;
use std::time::Duration;

use blindcore_protocol::{
    ClientKeys, Error, Grant, KEY_HEADER_BYTES, KeyNeed, Lookup, Policy, Rotation, Step, Table,
};
use blindcore_wire::{PartKind, Reason, Value, proto};

use crate::driver::{drive, firsts, honest, open, register};
use crate::made::{Made, keyed_with, people, registered, row};

const ROTATION: Rotation = Rotation { queries: 10, age: Duration::from_secs(100) };

/// A keyed table that changed, with every part there is.
fn made(depth: Option<u8>) -> Made {
    let base = keyed_with("people", 1, registered(), 3, &people(40), depth);
    let rows: [(&[u8], _); 3] = [(b"key-7", row("changed")), (b"key-8", None), (b"late", row("added"))];
    base.changed(2, &rows, &[b"late"])
}

fn table(made: &Made) -> Arc<Table> {
    open(made, &Policy::default(), None).unwrap()
}

fn need(lookup: &mut Lookup) -> KeyNeed {
    match lookup.step().unwrap() {
        Step::Keys(need) => need,
        _ => panic!("it needs keys"),
    }
}

fn grant(need: &KeyNeed, kept: Option<ClientKeys>, now: u64) -> Grant {
    need.grant(kept, &ROTATION, now).unwrap()
}

/// Keys that a server has.
fn kept(need: &KeyNeed) -> ClientKeys {
    let Grant { mut keys, made, register } = grant(need, None, 1000);
    assert!(register && !keys.is_registered());
    crate::driver::register(need, made.unwrap());
    keys.registered();
    keys
}

fn unknown() -> Error {
    Error::refused("a query", Some(Reason::UnknownKeys), None, "", "people", 2)
}

#[test]
fn keys_and_rows_are_found_under_registered_keys() {
    let made = made(Some(2));
    let table = table(&made);
    let text = |text: &str| Some(Value::Text(text.into()));
    let keys = ["key-7", "key-8", "late", "key-9", "nobody"];
    let (outcomes, seen) = drive(Lookup::by_key(&table, &keys).unwrap(), &made, &honest(&made));
    assert_eq!(firsts(outcomes.unwrap()), [text("changed"), None, text("added"), text("person 9"), None]);
    let order: Vec<_> = seen.iter().map(|(kind, queries, _)| (*kind, *queries)).collect();
    let [records, changes] = [PartKind::Records, PartKind::Changes];
    assert_eq!(order, [(records, 4), (records, 1), (changes, 4), (changes, 1)]);
    let (outcomes, _) = drive(Lookup::by_row(&table, &[7, 8, 40, 9]).unwrap(), &made, &honest(&made));
    assert_eq!(firsts(outcomes.unwrap()), [text("changed"), None, text("added"), text("person 9")]);
}

/// Wrong answers are outcomes as elsewhere, and no answer is damaged: that would be a bit of a secret that stays.
#[test]
fn nothing_is_damaged_under_registered_keys() {
    let made = made(Some(2));
    let noise = |request: &proto::QueryRequest| {
        let mut response = honest(&made)(request);
        let len = response.answers.len();
        response.answers = (0..len).map(|i| (i * i / 7) as u8).collect::<Vec<_>>().into();
        response
    };
    let (outcomes, _) = drive(Lookup::by_key(&table(&made), &["key-1", "nobody"]).unwrap(), &made, &noise);
    for outcome in outcomes.unwrap() {
        assert!(matches!(outcome.found, Ok(None)), "no slot opens");
    }
    let (outcomes, _) = drive(Lookup::by_row(&table(&made), &[1]).unwrap(), &made, &noise);
    assert!(matches!(outcomes.unwrap()[0].found, Err(Error::WrongAnswer { .. })));
}

#[test]
fn each_request_is_under_keys_that_are_given_for_it() {
    let made = made(None);
    let table = table(&made);
    let mut lookup = Lookup::by_key(&table, &["key-1"; 5]).unwrap();
    let first = need(&mut lookup);
    assert_eq!((first.kind(), first.queries()), (PartKind::Records, 4));
    assert_eq!(need(&mut lookup).queries(), 4, "it is said again until they come");
    let keys = kept(&first);
    lookup.take_keys(keys.clone());
    let Step::Send(request) = lookup.step().unwrap() else { panic!("it is ready") };
    assert_eq!(request.message().keys[..], *keys.digest());
    lookup.receive_on(&honest(&made)(request.message()), &blindcore_protocol::OneThread).unwrap();
    assert_eq!(need(&mut lookup).queries(), 1, "the rest");
    // Another table's part of other parameters would need others; here all parts share them.
    assert_eq!(need(&mut lookup).params_digest(), first.params_digest());
}

#[test]
fn a_server_forgets_keys_once() {
    let made = made(None);
    let table = table(&made);
    let mut lookup = Lookup::by_key(&table, &["key-1"]).unwrap();
    let keys = kept(&need(&mut lookup));
    lookup.take_keys(keys.clone());
    assert!(matches!(lookup.step().unwrap(), Step::Send(_)));
    lookup.forgotten(unknown()).unwrap();
    let again = grant(&need(&mut lookup), Some(keys.clone()), 1001);
    assert!(again.register && again.made.is_none() && again.keys.digest() == keys.digest());
    // Another client made others meanwhile, which the server has.
    let others = kept(&need(&mut lookup));
    assert!(!grant(&need(&mut lookup), Some(others), 1001).register);
    lookup.take_keys(again.keys);
    assert!(matches!(lookup.step().unwrap(), Step::Send(_)));
    let refused = lookup.forgotten(unknown());
    assert!(matches!(refused, Err(Error::Refused { reason: Some(Reason::UnknownKeys), .. })));
    assert!(matches!(lookup.step(), Err(Error::Over)));

    // Other refusals, and answers to nothing, are no such thing.
    let mut lookup = Lookup::by_key(&table, &["key-1"]).unwrap();
    assert!(lookup.forgotten(unknown()).is_err(), "nothing was asked");
    let mut lookup = Lookup::by_key(&table, &["key-1"]).unwrap();
    lookup.take_keys(keys);
    assert!(matches!(lookup.step().unwrap(), Step::Send(_)));
    let busy = Error::refused("a query", Some(Reason::Busy), None, "", "people", 2);
    assert!(lookup.forgotten(busy).is_err());
}

#[test]
fn keys_are_replaced_in_time() {
    let made = made(None);
    let table = table(&made);
    let need = need(&mut Lookup::by_key(&table, &["key-1"; 4]).unwrap());
    let keys = kept(&need);
    assert_eq!((need.queries(), keys.used()), (4, 4));
    let second = grant(&need, Some(keys.clone()), 1099);
    assert!(second.made.is_none() && !second.register);
    assert_eq!((second.keys.used(), second.keys.digest()), (8, keys.digest()));
    let third = grant(&need, Some(second.keys), 1099);
    assert!(
        third.register && third.made.is_some() && third.keys.digest() != keys.digest(),
        "12 are too many"
    );
    assert_eq!(third.keys.used(), 4);
    assert!(grant(&need, Some(keys.clone()), 1100).made.is_some(), "they are old");
    assert!(grant(&need, Some(keys), 10).made.is_none(), "a clock that went back makes nothing old");
}

#[test]
fn an_entry_reads_back_or_is_refused() {
    let made = made(None);
    let table = table(&made);
    let need = need(&mut Lookup::by_key(&table, &["key-1"]).unwrap());
    let entry = need.cached("host:1");
    assert_ne!(entry.name(), need.cached("host:2").name());
    assert!(entry.name().starts_with("people-") && entry.name().is_ascii());
    let Grant { keys, made, .. } = grant(&need, None, 1000);
    let (start, public) = (entry.start(&keys), made.unwrap());
    assert_eq!(start[..16], *b"BLNDKEYS\x01\0\0\0\xa0\0\0\0");
    assert_eq!((start.len(), start.len() + public.len()), (entry.start_bytes(), entry.bytes()));
    let bytes = entry.bytes() as u64;
    let read = entry.read(bytes, &start, None).unwrap();
    assert_eq!((read.digest(), read.used(), read.is_registered()), (keys.digest(), 1, false));
    assert!(entry.is_public(&read, &public) && !entry.is_public(&read, b""));
    assert_eq!(entry.start(&read), start);
    // Every byte counts, but for how far they are used.
    for at in 0..start.len() {
        let mut bad = start.to_vec();
        bad[at] ^= 0x10;
        let counts = !(136..KEY_HEADER_BYTES).contains(&at) || (144..152).contains(&at);
        for known in [None, Some(&keys)] {
            assert_eq!(entry.read(bytes, &bad, known).is_err(), counts, "byte {at}");
        }
    }
    for (bytes, start) in [(bytes - 1, &start[..]), (bytes + 1, &start), (bytes, &start[1..]), (0, &[])] {
        assert!(entry.read(bytes, start, None).is_err());
    }
    register(&need, public);
}
