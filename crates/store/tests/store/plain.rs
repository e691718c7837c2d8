//! Databases of the scheme that hides nothing: all that is stored is as with others, and nothing is computed.

use std::collections::HashMap;
use std::sync::Arc;

use blindcore_accel_cpu::Cpu;
use blindcore_lookup::schemes::{self, Keeps};
use blindcore_lookup::{Client, InsecurePlain, SchemeChoice, Server, keyword};
use blindcore_store::{
    BuildOptions, ProofChoice, SourceSpec, Stored, StreamOptions, UpdateOptions, Value, build, codec, update,
};
use blindcore_units::{Progress, Unit};
use blindcore_wire::PartKind;

/// Hears a note, and stops the build at it.
#[derive(Default)]
struct Heard(Option<String>);

impl Progress for Heard {
    fn at(&mut self, _: &str, _: u64, _: Option<u64>, _: Unit) {}

    fn note(&mut self, line: &str) {
        self.0 = Some(line.to_owned());
    }

    fn stopped(&self) -> bool {
        self.0.is_some()
    }
}

#[test]
fn what_batches_of_a_small_table_take_is_said_before_they_are_made() {
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..100).map(|i| format!("key {i},value {i}\n")).collect();
    std::fs::write(dir.path().join("t.csv"), format!("k,v\n{rows}")).unwrap();
    let built = |scheme: &str, batch| {
        let source = SourceSpec::parse(dir.path().join("t.csv").to_str().unwrap()).unwrap();
        let options = BuildOptions {
            key: Some("k".into()),
            scheme: SchemeChoice::Only(schemes::find(scheme).unwrap()),
            batch,
            ..BuildOptions::new(source, dir.path().join(format!("{scheme}.db")))
        };
        let mut heard = Heard::default();
        let manifest = build(&options, &Cpu::with_threads("cpu", 1).unwrap(), &mut heard);
        (manifest.is_ok(), heard.0)
    };
    let (whole, said) = built("hintless", Some(256));
    let said = said.unwrap();
    assert!(!whole && said.starts_with("note: batches of 256 keys take "), "{said}");
    assert!(
        said.contains(" in 384 buckets of ") && said.ends_with("a smaller --batch has fewer buckets"),
        "{said}"
    );
    assert_eq!(built("simple", None), (true, None));
}

#[test]
fn a_table_is_built_changed_and_answered() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let source = |name: &str| SourceSpec::parse(path(name).to_str().unwrap()).unwrap();
    let rows: String = (0..2000).map(|i| format!("key {i},value {i}\n")).collect();
    std::fs::write(path("t.csv"), format!("k,v\n{rows}")).unwrap();
    std::fs::write(path("c.csv"), "k,v,_change\nkey 7,,remove\nkey 8,another,\nnew,newest,\n").unwrap();
    let device = Cpu::with_threads("cpu", 1).unwrap();
    let scheme = InsecurePlain::for_tests().scheme();
    let options = BuildOptions {
        key: Some("k".into()),
        scheme: SchemeChoice::Only(scheme),
        proofs: ProofChoice::With,
        batch: Some(8),
        ..BuildOptions::new(source("t.csv"), path("db"))
    };
    build(&options, &device, &mut ()).unwrap();
    let changes = UpdateOptions { memory: 1 << 20, ..UpdateOptions::new(path("db"), source("c.csv")) };
    update(&changes, &device, &mut ()).unwrap();
    let stored = Stored::open(&path("db")).unwrap();
    stored.verify(&mut ()).unwrap();
    let table = stored.description().unwrap();
    assert_eq!(table.parts().count(), PartKind::ALL.len());
    for (kind, part) in stored.parts() {
        assert_eq!((part.params.scheme, part.params.keeps()), (scheme, Keeps::Nothing), "{kind}");
        let roots = part.proofs.unwrap().root_bytes();
        assert_eq!(part.hint_bytes(), roots, "a client fetches the roots alone");
    }

    // The same from memory and from the disk, by key.
    let part = &stored.records;
    let streamed = part.stream(&device, StreamOptions::default()).unwrap();
    let servers = [
        Server::new(part.params, &device, part.operands()).unwrap(),
        Server::placed(part.params, &device, vec![Arc::new(streamed)]).unwrap(),
    ];
    let client = Client::new(part.params, Arc::new([])).unwrap();
    let index = table.index().unwrap();
    for (key, found) in [("key 0", true), ("key 1999", true), ("key 2000", false)] {
        let (selection, fingerprint) = index.select(key.as_bytes());
        for server in &servers {
            let (query, pending) = client.query(client.prepare().unwrap(), &selection).unwrap();
            let slot = client.decode(pending, &server.answer(&[&query]).unwrap().0[0]).unwrap().slot;
            let record = keyword::open(&slot, &fingerprint);
            assert_eq!(record.is_some(), found, "{key}");
            if found {
                let id = *index.order(key.as_bytes(), 0);
                let roots = (*part.hint).as_ref();
                assert!(part.proofs.unwrap().open(PartKind::Records, roots, id, &slot).is_some(), "{key}");
            }
        }
    }
    // What whoever holds the table reads is what the rows and the changes say.
    let want: HashMap<&str, Option<&str>> =
        [("key 0", Some("value 0")), ("key 7", None), ("key 8", Some("another")), ("new", Some("newest"))]
            .into();
    for (key, value) in want {
        let record = stored.record(key.as_bytes()).unwrap();
        let got = record.map(|bytes| codec::decode_record(&bytes, 1).unwrap());
        assert_eq!(got, value.map(|v| vec![Value::Text(v.into())]), "{key}");
    }
}
