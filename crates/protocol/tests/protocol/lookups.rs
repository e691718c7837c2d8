//! Whole lookups: what is found, which steps they take, and what a server sees of them.

use std::sync::Arc;

use blindcore_protocol::{CacheEntry, Error, Lookup, Policy, Step, Table, Trust};
use blindcore_wire::signature::SigningKey;
use blindcore_wire::{KeyType, PartKind, Value, proto};

use crate::driver::{drive, fetched, firsts, honest, open};
use crate::made::{Made, keyed, keyed_with, number, people, row, unkeyed, unkeyed_with};

fn text(text: &str) -> Option<Value> {
    Some(Value::Text(text.into()))
}

/// A keyed table that changed, with every part there is.
fn changed(depth: Option<u8>) -> Made {
    changed_of(crate::made::simple(), depth)
}

fn changed_of(scheme: blindcore_lookup::SchemeRef, depth: Option<u8>) -> Made {
    let base = keyed_with("people", 1, scheme, 3, &people(40), depth);
    let rows: [(&[u8], _); 3] = [(b"key-7", row("changed")), (b"key-8", None), (b"late", row("added"))];
    base.changed(2, &rows, &[b"late"])
}

fn numbers(depth: Option<u8>) -> Made {
    let rows: Vec<Vec<Value>> = (0..40).map(|i| vec![Value::Int(i)]).collect();
    let base = unkeyed_with("plain", 3, crate::made::simple(), &rows, depth);
    let (five, six, forty) = (number(5), number(6), number(40));
    let rows: [(&[u8], _); 3] =
        [(&five, Some(vec![Value::Int(-5)])), (&six, None), (&forty, Some(vec![Value::Int(40)]))];
    base.changed(4, &rows, &[b""])
}

fn table(made: &Made) -> Arc<Table> {
    open(made, &Policy::default(), None).unwrap()
}

#[test]
fn keys_and_rows_are_found() {
    for depth in [None, Some(2)] {
        let made = changed(depth);
        let table = table(&made);
        let keys = ["key-7", "key-8", "late", "key-9", "nobody"];
        let (outcomes, _) = drive(Lookup::by_key(&table, &keys).unwrap(), &made, &honest(&made));
        assert_eq!(firsts(outcomes.unwrap()), [text("changed"), None, text("added"), text("person 9"), None]);
        let rows = [7, 8, 40, 9, 0];
        let (outcomes, _) = drive(Lookup::by_row(&table, &rows).unwrap(), &made, &honest(&made));
        let outcomes = outcomes.unwrap();
        let key = |i: usize| outcomes[i].found.as_ref().unwrap().as_ref().unwrap().key.clone().unwrap();
        assert_eq!(key(2), b"late");
        assert_eq!(
            firsts(outcomes),
            [text("changed"), None, text("added"), text("person 9"), text("person 0")]
        );

        let made = numbers(depth);
        let table = self::table(&made);
        let (outcomes, _) = drive(Lookup::by_row(&table, &[4, 5, 6, 39, 40]).unwrap(), &made, &honest(&made));
        let int = |n| Some(Value::Int(n));
        assert_eq!(firsts(outcomes.unwrap()), [int(4), int(-5), None, int(39), int(40)]);
    }
}

/// The order of steps is the same for every key and row, there or not, and whatever the answers hold.
#[test]
fn a_server_sees_the_same_whatever_is_found() {
    let made = changed(Some(2));
    let liars = [PartKind::Records, PartKind::Changes, PartKind::Keys, PartKind::NewKeys].map(|kind| {
        let mut liar = made.clone();
        match kind {
            PartKind::Records => liar.records = liar.records.wrong(5),
            PartKind::Changes => liar.changes = liar.changes.map(|c| c.wrong(6)),
            PartKind::Keys => liar.keys = liar.keys.map(|k| k.wrong(3)),
            PartKind::NewKeys => liar.new_keys = liar.new_keys.map(|k| k.wrong(3)),
            PartKind::Batches => unreachable!("these tables have none"),
        }
        liar
    });
    let noise = |request: &proto::QueryRequest| {
        let params = made.description.part(PartKind::from_proto(request.part).unwrap()).unwrap().params;
        let bytes = request.queries.len() / params.query_bytes() * params.answer_bytes();
        let answers: Vec<u8> =
            (0..bytes).map(|i| ((i as u32).wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
        proto::QueryResponse { answers: answers.into(), server_micros: u64::MAX }
    };
    let seen = |answer: crate::driver::Answer| {
        let table = table(&made);
        let keys: [[&str; 5]; 3] =
            [["key-7", "key-8", "late", "key-9", "nobody"], ["a", "b", "c", "d", "e"], ["key-1"; 5]];
        let by_key = keys.map(|keys| drive(Lookup::by_key(&table, &keys).unwrap(), &made, answer));
        let rows: [[u64; 5]; 3] = [[7, 8, 40, 9, 0], [0; 5], [u64::MAX, 41, 40, 39, 1]];
        let by_row = rows.map(|rows| drive(Lookup::by_row(&table, &rows).unwrap(), &made, answer));
        for (outcomes, _) in by_key.iter().chain(&by_row) {
            assert_eq!(outcomes.as_ref().unwrap().len(), 5, "no answer of the right length ends a lookup");
        }
        assert!(by_key.iter().all(|(_, seen)| *seen == by_key[0].1));
        assert!(by_row.iter().all(|(_, seen)| *seen == by_row[0].1));
        (by_key[0].1.clone(), by_row[0].1.clone())
    };
    let right = seen(&honest(&made));
    let order =
        |seen: &[crate::driver::Seen]| seen.iter().map(|(kind, n, _)| (*kind, *n)).collect::<Vec<_>>();
    let [records, changes, keys, new] =
        [PartKind::Records, PartKind::Changes, PartKind::Keys, PartKind::NewKeys];
    let each = |kinds: &[PartKind]| kinds.iter().flat_map(|k| [(*k, 4), (*k, 1)]).collect::<Vec<_>>();
    assert_eq!(order(&right.0), each(&[records, changes]));
    assert_eq!(order(&right.1), each(&[keys, new, records, changes]), "the second query is always sent");
    for liar in &liars {
        assert_eq!(seen(&honest(liar)), right);
    }
    assert_eq!(seen(&noise), right);
}

#[test]
fn a_key_is_brought_to_the_form_of_the_tables() {
    let rows: Vec<_> = ["1.5", "-0.25", "20"].map(|key| (key.to_owned(), vec![text(key).unwrap()])).into();
    let made = crate::made::keyed("prices", 1, crate::made::simple(), 1, &rows).formed(KeyType::Decimal);
    let keys = ["1.500", "15e-1", "-.25", "+20.0", "1,5"];
    let (outcomes, _) = drive(Lookup::by_key(&table(&made), &keys).unwrap(), &made, &honest(&made));
    assert_eq!(firsts(outcomes.unwrap()), [text("1.5"), text("1.5"), text("-0.25"), text("20"), None]);
}

#[test]
fn what_is_wrong_is_an_outcome() {
    let made = changed_of(crate::made::plain(), Some(2));
    let liar = Made { records: made.records.wrong(5), ..made.clone() };
    let table = table(&made);
    let (outcomes, _) = drive(Lookup::by_key(&table, &["key-1", "nobody"]).unwrap(), &made, &honest(&liar));
    let outcomes = outcomes.unwrap();
    assert!(matches!(outcomes[0].found, Err(Error::WrongAnswer { part: PartKind::Records, .. })));
    assert!(matches!(outcomes[1].found, Ok(None)));
    let (outcomes, _) = drive(Lookup::by_row(&table, &[u64::MAX, 41]).unwrap(), &made, &honest(&made));
    for outcome in outcomes.unwrap() {
        assert!(matches!(outcome.found, Err(Error::NoSuchRow { rows: 41, .. })));
    }
}

/// Noise is no answer, on any way and in any part, and everything is asked all the same.
#[test]
fn noise_is_damaged() {
    for depth in [None, Some(2)] {
        // Several new keys: what one column holds is masked by multiples of one number, which zeros pass for honest once in 22,000 times.
        let new: [&[u8]; 4] = [b"late", b"later than all others", "zw\u{f6}lf".as_bytes(), b"0123456789"];
        let base = keyed_with("people", 1, crate::made::simple(), 3, &people(40), depth);
        let made = base.changed(2, &new.map(|key| (key, row("added"))), &new);
        let numbers = numbers(depth);
        let (people, plain) = (table(&made), table(&numbers));
        let zeros = |made: &Made, of: PartKind, request: &proto::QueryRequest| {
            let mut response = honest(made)(request);
            if PartKind::from_proto(request.part).unwrap() == of {
                response.answers = vec![0; response.answers.len()].into();
            }
            response
        };
        for part in made.description.parts().map(|(kind, _)| kind) {
            let by_key = Lookup::by_key(&people, &["key-7", "key-1", "nobody"]).unwrap();
            let numbered = Lookup::by_row(&plain, &[5, 6]).unwrap();
            let mut lookups = vec![(Lookup::by_row(&people, &[7, 40, 9]).unwrap(), &made)];
            if matches!(part, PartKind::Records | PartKind::Changes) {
                lookups.extend([(by_key, &made), (numbered, &numbers)]);
            }
            for (lookup, made) in lookups {
                let (outcomes, seen) = drive(lookup, made, &|request| zeros(made, part, request));
                for outcome in outcomes.unwrap() {
                    let error = outcome.found.unwrap_err();
                    assert!(error.is_of_an_answer());
                    let of = matches!(&error, Error::Damaged { part: of, .. } if *of == part);
                    assert!(of, "{part}: {error}");
                }
                assert!(seen.iter().any(|(kind, ..)| *kind == PartKind::Changes), "all is asked");
            }
        }
    }
}

/// A slot whose fingerprint alone was changed is the key's slot: with proofs that is noticed.
#[test]
fn a_hidden_key_is_noticed_where_there_are_proofs() {
    for depth in [None, Some(2)] {
        let made = changed_of(crate::made::plain(), depth);
        let liar = Made { records: made.records.wrong(1), ..made.clone() };
        let table = table(&made);
        let keys = ["key-1", "nobody", "key-8", "key-7"];
        let (outcomes, _) = drive(Lookup::by_key(&table, &keys).unwrap(), &made, &honest(&liar));
        let outcomes = outcomes.unwrap();
        match depth {
            None => assert!(matches!(outcomes[0].found, Ok(None)), "there is nothing to notice it by"),
            Some(_) => assert!(matches!(outcomes[0].found, Err(Error::WrongAnswer { .. }))),
        }
        assert!(matches!(outcomes[1].found, Ok(None)) && !outcomes[1].proved, "absence is not proved");
    }
}

#[test]
fn outcomes_say_what_is_proved() {
    for depth in [None, Some(2)] {
        let made = changed(depth);
        let table = table(&made);
        let keys = ["key-7", "key-8", "late", "key-9", "nobody"];
        let (outcomes, _) = drive(Lookup::by_key(&table, &keys).unwrap(), &made, &honest(&made));
        let proved: Vec<bool> = outcomes.unwrap().iter().map(|o| o.proved).collect();
        // Of the base's record a change might be hidden.
        let changes = depth.is_some();
        assert_eq!(proved, [changes, changes, changes, false, false]);
        let made = keyed_with("people", 1, crate::made::simple(), 3, &people(10), depth);
        let table = self::table(&made);
        let (outcomes, _) = drive(Lookup::by_key(&table, &["key-7", "x"]).unwrap(), &made, &honest(&made));
        let proved: Vec<bool> = outcomes.unwrap().iter().map(|o| o.proved).collect();
        assert_eq!(proved, [depth.is_some(), false]);
    }
}

#[test]
fn answers_of_another_length_end_a_lookup() {
    let made = numbers(None);
    for change in [-1i64, 1] {
        let table = table(&made);
        let short = |request: &proto::QueryRequest| {
            let mut response = honest(&made)(request);
            let len = response.answers.len() as i64 + change;
            let mut answers = response.answers.to_vec();
            answers.resize(len as usize, 0);
            response.answers = answers.into();
            response
        };
        let (outcomes, seen) = drive(Lookup::by_row(&table, &[1]).unwrap(), &made, &short);
        assert!(matches!(outcomes, Err(Error::Protocol { .. })));
        assert_eq!(seen.len(), 1, "asked once");
    }
    let table = table(&made);
    let mut lookup = Lookup::by_row(&table, &[1]).unwrap();
    assert!(matches!(lookup.receive(&[]), Err(Error::Protocol { .. })), "nothing was asked");
    assert!(matches!(lookup.step(), Err(Error::Over)));
    assert!(matches!(lookup.receive(&[]), Err(Error::Over)));
}

#[test]
fn queries_are_fresh_and_counted() {
    let made = keyed("people", 1, crate::made::simple(), 3, &people(20));
    let table = table(&made);
    let all = std::cell::RefCell::new(Vec::new());
    let answer = |request: &proto::QueryRequest| {
        all.borrow_mut().extend(
            request.queries.chunks(made.description.records().params.query_bytes()).map(<[u8]>::to_vec),
        );
        honest(&made)(request)
    };
    let (outcomes, _) = drive(Lookup::by_key(&table, &["key-1"; 6]).unwrap(), &made, &answer);
    let ranges: Vec<_> = outcomes.unwrap().into_iter().map(|o| o.queries).collect();
    assert_eq!(ranges, (0..6).map(|i| std::iter::once(i..i + 1).collect()).collect::<Vec<Vec<_>>>());
    let mut all = all.into_inner();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 6, "no two queries are alike");
}

#[test]
fn only_what_is_asked_for_is_refused() {
    let made = numbers(None);
    let table = table(&made);
    assert!(matches!(Lookup::by_key(&table, &["x"]), Err(Error::NotKeyed { .. })));
    let made = changed(None);
    let table = self::table(&made);
    assert!(matches!(Lookup::by_key(&table, &[""]), Err(Error::Key(_))));
    assert!(matches!(Lookup::by_key(&table, &["x".repeat(4097)]), Err(Error::Key(_))));
    let none: [&str; 0] = [];
    assert!(matches!(Lookup::by_key(&table, &none).unwrap().step(), Ok(Step::Done(all)) if all.is_empty()));
    let small = Policy { hint_bytes: 1, ..Policy::default() };
    let table = open(&made, &small, None).unwrap();
    assert!(matches!(table.missing(PartKind::Records), Err(Error::HintTooLarge { limit: 1, .. })));
}

#[test]
fn what_did_not_change_is_kept() {
    let base = keyed("people", 1, crate::made::simple(), 3, &people(40));
    let next = base.changed(2, &[(b"key-7", row("changed"))], &[]);
    let old = table(&base);
    drive(Lookup::by_row(&old, &[1]).unwrap(), &base, &honest(&base)).0.unwrap();
    let new = open(&next, &Policy::default(), Some(&old)).unwrap();
    for kind in [PartKind::Records, PartKind::Keys] {
        assert!(new.missing(kind).unwrap().is_none());
    }
    assert!(new.missing(PartKind::Changes).unwrap().is_some());
    assert!(matches!(new.missing(PartKind::NewKeys), Err(Error::Protocol { .. })), "there is none");
    // Another table's hint is not taken.
    let other = unkeyed("plain", 1, crate::made::simple(), &[vec![Value::Int(1)]]);
    let fetch = table(&other).missing(PartKind::Records).unwrap().unwrap();
    let kept = fetch.check(fetched(&other, &fetch)).unwrap();
    assert!(matches!(new.keep(kept), Err(Error::HintDigest { .. })));
}

#[test]
fn a_cached_hint_is_taken() {
    let made = keyed("people", 1, crate::made::simple(), 3, &people(20));
    let fetch = table(&made).missing(PartKind::Records).unwrap().unwrap();
    let entry: CacheEntry = fetch.cached("host:1");
    assert_ne!(entry.name(), fetch.cached("host:2").name());
    let whole = [&entry.header()[..], fetched(&made, &fetch).as_ref()].concat();
    let again = table(&made);
    again.keep(entry.read(&whole).unwrap()).unwrap();
    assert!(again.missing(PartKind::Records).unwrap().is_none());
}

#[test]
fn only_trusted_tables_are_opened() {
    let policy = |trust| Policy { trust, ..Policy::default() };
    let (plain, proven) = (changed(None), changed(Some(1)));
    let digest = |made: &Made| Trust::Digest(*made.description.digest());
    assert!(open(&proven, &policy(digest(&proven)), None).is_ok());
    for (made, trust) in [(&plain, digest(&plain)), (&proven, digest(&plain)), (&proven, Trust::Key([7; 32]))]
    {
        assert!(matches!(open(made, &policy(trust), None), Err(Error::Untrusted { .. })));
    }
    let key = SigningKey::from_pkcs8(&SigningKey::generate_pkcs8().unwrap()).unwrap();
    let sign = |made: &Made| {
        let signature = key.sign(made.description.digest());
        Made { description: made.description.clone().signed(Some(signature)), ..made.clone() }
    };
    let trust = policy(Trust::Key(key.public()));
    let older = keyed_with("people", 1, crate::made::simple(), 3, &people(40), Some(1));
    let new = open(&sign(&proven), &trust, None).unwrap();
    assert!(open(&sign(&older), &trust, None).is_ok());
    let newest = new.description().epoch();
    let seen = Policy { newest: Some(newest), ..trust.clone() };
    for back in [open(&sign(&older), &trust, Some(&new)), open(&sign(&older), &seen, None)] {
        assert!(matches!(back, Err(Error::Rollback { newest: n, .. }) if n == newest));
    }
    assert!(open(&sign(&proven), &seen, None).is_ok(), "the same epoch");
    let allowed = Policy { allow_rollback: true, ..seen };
    assert!(open(&sign(&older), &allowed, Some(&new)).is_ok());
}
