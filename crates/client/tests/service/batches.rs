//! Many keys in one request, over real sockets: found, changed, refused, and left unanswered one by one.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use blindcore_accel::contract::Shape;
use blindcore_accel::{Cost, Placed, Words};
use blindcore_client::{CacheDir, Lookup, LookupError, Reason, TableClient};
use blindcore_lookup::batch::{BatchServer, Buckets, bucket};
use blindcore_lookup::schemes::{self, SchemeRef};
use blindcore_lookup::{Decoded, SchemeChoice, Server};
use blindcore_server::{Host, Part, Table};
use blindcore_store::{
    BuildOptions, ProofChoice, SourceSpec, Stored, StoredPart, UpdateOptions, build, update,
};
use blindcore_wire::proto::lookup_client::LookupClient;
use blindcore_wire::{PartKind, REASON_HEADER, proto};

use crate::common::{client_of, config, device, first, plain, simple, text};

type Rows = HashMap<String, Option<blindcore_client::Value>>;

fn spec(dir: &Path, name: &str) -> SourceSpec {
    SourceSpec::parse(dir.join(name).to_str().unwrap()).unwrap()
}

/// A table of 60 rows in batches of 8, in `t.db`.
fn built(dir: &Path, scheme: SchemeRef, proofs: ProofChoice) -> (BuildOptions, Rows) {
    let rows: Rows = (0..60).map(|i| (format!("key-{i}"), text(&format!("value {i}")))).collect();
    let lines: String = (0..60).map(|i| format!("key-{i},value {i}\n")).collect();
    std::fs::write(dir.join("t.csv"), format!("k,v\n{lines}")).unwrap();
    let scheme = SchemeChoice::Only(scheme);
    let (key, batch) = (Some("k".into()), Some(8));
    let options = BuildOptions {
        key,
        batch,
        scheme,
        proofs,
        directory: false,
        ..BuildOptions::new(spec(dir, "t.csv"), dir.join("t.db"))
    };
    build(&options, device(), &mut ()).unwrap();
    (options, rows)
}

/// Twenty keys, one of them twice and some of them not there: two batches and a half.
fn asked() -> Vec<String> {
    let there = (0..60).step_by(4).map(|i| format!("key-{i}"));
    there.chain(["key-8", "nobody", "key-60", "key-4", "key-8"].map(String::from)).collect()
}

async fn equals(table: &TableClient, rows: &Rows) -> Vec<Lookup> {
    let keys = asked();
    let found = table.get_many(&keys).await.unwrap();
    for (key, found) in keys.iter().zip(&found) {
        assert_eq!(first(found), rows.get(key).cloned().flatten(), "{key}");
    }
    found
}

async fn serves_batches(scheme: SchemeRef, proofs: ProofChoice) {
    let dir = tempfile::tempdir().unwrap();
    let (options, mut rows) = built(dir.path(), scheme, proofs);
    let host = || {
        let host = Host::builder().table_dir(&options.out).device(device().clone());
        host.listen("127.0.0.1:0".parse().unwrap()).open().unwrap()
    };
    let server = host().bind().await.unwrap();
    let (url, stats) = (format!("http://{}", server.address()), server.stats());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async move {
        let _ = stopped.await;
    }));
    let table = client_of(&url, CacheDir::None).await.table("t").await.unwrap();
    let buckets = Buckets::for_keys(8).unwrap();
    assert_eq!(table.description().batch_index().unwrap().buckets(), buckets);
    let found = equals(&table, &rows).await;
    let of = |kind: PartKind| {
        stats.parts().find(|(_, part, _)| *part == kind).map_or(0, |(.., counted)| counted.queries)
    };
    assert_eq!(
        (of(PartKind::Batches), of(PartKind::Records)),
        (3, 0),
        "three batches, whatever is asked for"
    );
    // Few keys are asked for one by one.
    assert_eq!(first(&table.get("key-4").await.unwrap()), text("value 4"));
    assert_eq!((of(PartKind::Batches), of(PartKind::Records)), (3, 1));
    let bytes = table.description().part(PartKind::Batches).unwrap().query_bytes() as u64;
    let up: u64 = found.iter().map(|lookup| lookup.bytes.up).sum();
    assert!((3 * bytes..3 * bytes + 1000).contains(&up), "{up} of {bytes}");
    let proofs = table.description().has_proofs();
    assert!(found.iter().all(|lookup| lookup.proved == (proofs && lookup.found.is_some())));

    // Strangers' counts of buckets are refused, and nothing else is disturbed.
    let part = *table.description().part(PartKind::Batches).unwrap();
    let raw = LookupClient::connect(url.clone()).await.unwrap().max_encoding_message_size(usize::MAX);
    for buckets in [0, 1, buckets.count() - 1, buckets.count() + 1] {
        let request = proto::QueryRequest {
            table: "t".into(),
            epoch: table.description().epoch(),
            part: proto::PartKind::Batches.into(),
            table_digest: table.description().digest().to_vec().into(),
            queries: vec![7; buckets * part.params.query_bytes()].into(),
            keys: bytes::Bytes::new(),
        };
        let status = raw.clone().query(request).await.unwrap_err();
        let reason = status.metadata().get(REASON_HEADER).unwrap().to_str().unwrap();
        assert_eq!(reason, Reason::WrongSize.as_str(), "{buckets}: {}", status.message());
    }
    equals(&table, &rows).await;

    // An update, and a restart.
    std::fs::write(dir.path().join("c.csv"), "k,v,_change\nkey-4,new,\nkey-8,,remove\nkey-60,added,\n")
        .unwrap();
    let changes = UpdateOptions::new(&options.out, spec(dir.path(), "c.csv"));
    assert!(update(&changes, device(), &mut ()).unwrap().published);
    rows.extend([("key-4".into(), text("new")), ("key-8".into(), None), ("key-60".into(), text("added"))]);
    stop.send(()).unwrap();
    running.await.unwrap();
    let server = host().bind().await.unwrap();
    let url = format!("http://{}", server.address());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async move {
        let _ = stopped.await;
    }));
    let table = client_of(&url, CacheDir::None).await.table("t").await.unwrap();
    assert_eq!(table.description().epoch(), 2);
    equals(&table, &rows).await;
    stop.send(()).unwrap();
    running.await.unwrap();
    Stored::open(&options.out).unwrap().verify(&mut ()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_equal_their_source_without_a_hint() {
    serves_batches(schemes::find("hintless").unwrap(), ProofChoice::Auto).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_equal_their_source_under_registered_keys() {
    serves_batches(schemes::find("onionpir2").unwrap(), ProofChoice::Auto).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_equals_its_source_under_the_schemes_that_are_there_for_comparison() {
    for scheme in schemes::offered().into_iter().filter(|scheme| scheme.for_comparison()) {
        let dir = tempfile::tempdir().unwrap();
        let (options, rows) = built(dir.path(), scheme, ProofChoice::Auto);
        let host = Host::builder().table_dir(&options.out).device(device().clone());
        let server = host.listen("127.0.0.1:0".parse().unwrap()).open().unwrap().bind().await.unwrap();
        let (url, stats) = (format!("http://{}", server.address()), server.stats());
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(server.run(async move {
            let _ = stopped.await;
        }));
        let table = client_of(&url, CacheDir::None).await.table("t").await.unwrap();
        let keys = ["key-0", "key-59", "nobody", "key-30", "key-0"];
        for (key, found) in keys.iter().zip(table.get_many(&keys).await.unwrap()) {
            assert_eq!(first(&found), rows.get(*key).cloned().flatten(), "{scheme}, {key}");
        }
        let asked: Vec<PartKind> =
            stats.parts().filter(|(.., counted)| counted.queries > 0).map(|(_, kind, _)| kind).collect();
        assert_eq!(asked, [PartKind::Batches], "{scheme}");
        stop.send(()).unwrap();
        running.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_have_proofs() {
    serves_batches(plain(), ProofChoice::With).await;
}

/// A matrix whose every pass fails.
struct Broken(Arc<dyn Placed>);

impl Placed for Broken {
    fn shape(&self) -> &Shape {
        self.0.shape()
    }

    fn run(&self, _: &Words) -> Result<(Words, Cost), blindcore_accel::Error> {
        Err(blindcore_accel::Error::Shape { shape: "broken".into(), why: "the test says so".into() })
    }

    fn stripes(
        &self,
        take: &mut dyn FnMut(&[u8]) -> Result<(), blindcore_accel::Error>,
    ) -> Result<(), blindcore_accel::Error> {
        self.0.stripes(take)
    }
}

/// The buckets of a part, some of which fail.
fn with_broken(part: &StoredPart, broken: &[usize]) -> BatchServer {
    let server = |number: usize| {
        let operands: Vec<_> = part.operands().iter().map(|o| bucket(o, part.buckets, number)).collect();
        if !broken.contains(&number) {
            return Server::new(part.params, device(), operands).unwrap();
        }
        let place = |(operand, pieces): (schemes::Operand, _)| {
            let contract = device().contract(&operand.shape).unwrap();
            let placed = contract.place(blindcore_accel::Database::Packed(pieces)).unwrap();
            Arc::new(Broken(placed)) as Arc<dyn Placed>
        };
        let placed = part.params.stored_operands().zip(operands).map(place).collect();
        Server::placed(part.params, device(), placed).unwrap()
    };
    BatchServer::of((0..part.buckets).map(server).collect(), 2).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_fails_leaves_the_others_answered() {
    let dir = tempfile::tempdir().unwrap();
    let (options, rows) = built(dir.path(), plain(), ProofChoice::Without);
    let stored = Stored::open(&options.out).unwrap();
    let description = stored.description().unwrap();
    let keys: Vec<String> = (0..8).map(|i| format!("key-{i}")).collect();
    // Which bucket the first key is asked of: each has its number in its slot.
    let batch = description.batch_index().unwrap().batch(&keys);
    let numbered = |number: usize| Some(Decoded { slot: vec![number as u8].into(), damaged: false });
    let slots: Vec<_> = (0..stored.batches.as_ref().unwrap().buckets).map(numbered).collect();
    let broken = usize::from(batch.slot(0, &slots).unwrap().slot[0]);

    let part = |kind, server: BatchServer| (kind, Part::new(server, stored.part(kind).unwrap().hint.clone()));
    let records = Server::new(stored.records.params, device(), stored.records.operands()).unwrap();
    let parts = [
        part(PartKind::Records, records.into()),
        part(PartKind::Batches, with_broken(stored.batches.as_ref().unwrap(), &[broken])),
    ];
    let table = Table::new(description, parts).unwrap();
    let server = blindcore_server::Server::bind(config(), vec![table]).await.unwrap();
    let url = format!("http://{}", server.address());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async move {
        let _ = stopped.await;
    }));
    let table = client_of(&url, CacheDir::None).await.table("t").await.unwrap();
    for _ in 0..2 {
        let found = table.get_each(&keys).await.unwrap();
        for (key, found) in keys.iter().zip(found) {
            match found {
                Ok(found) => assert_eq!(first(&found), rows[key], "{key}"),
                Err(blindcore_client::Error::Lookup(error @ LookupError::NotAnswered { .. })) => {
                    assert_eq!(key, "key-0");
                    assert!(error.is_of_an_answer());
                }
                Err(error) => panic!("{key}: {error}"),
            }
        }
    }
    assert!(table.get_each(&keys).await.unwrap()[0].is_err());
    stop.send(()).unwrap();
    running.await.unwrap();
}

#[test]
fn what_has_no_batches_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let (options, _) = built(dir.path(), plain(), ProofChoice::Without);
    let refused = |options: BuildOptions| {
        let options = BuildOptions { force: true, ..options };
        build(&options, device(), &mut ()).map(drop).unwrap_err().to_string()
    };
    let error = refused(BuildOptions { key: None, ..options.clone() });
    assert!(error.contains("batches are of keys") && error.contains("--key"), "{error}");
    let error = refused(BuildOptions { batch: Some(4000), ..options.clone() });
    assert!(error.contains("number of keys of a batch is 4000, outside 8 to 1024"), "{error}");
    let error = refused(BuildOptions { scheme: SchemeChoice::Only(simple()), ..options.clone() });
    assert!(error.contains("scheme simple has a hint") && error.contains("--scheme hintless"), "{error}");
    // What was there before is as it was.
    Stored::open(&options.out).unwrap().verify(&mut ()).unwrap();
    let host = Host::builder().table_dir(&options.out).device(device().clone()).streamed(true);
    let error = host.listen("127.0.0.1:0".parse().unwrap()).open().map(drop).unwrap_err();
    let causes = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    assert!(causes.contains("the batches of table t have to be in memory"), "{error}: {causes}");
}
