//! The scheme and the device do everything that built-in ones do.

use blindcore::accel::{OpenOptions, conformance};
use blindcore::lookup::schemes::SchemeChoice;
use blindcore::lookup::{Folder, Host, Value, blocking};
use blindcore::store::{BuildOptions, SourceSpec, build};
use blindcore::{Device, bench};
use blindcore_extending::{Definition, Download};

fn device() -> Device {
    blindcore::devices().with(Definition).open("definition", &OpenOptions::default()).unwrap()
}

#[test]
fn the_device_conforms() {
    assert!(conformance::contract(&device()) > 0);
}

#[test]
fn a_table_of_the_scheme_is_built_served_from_the_device_and_looked_up_over_a_socket() {
    let scheme = Download::register().unwrap();
    let device = device();
    let dir = tempfile::tempdir().unwrap();
    let csv = dir.path().join("drugs.csv");
    std::fs::write(&csv, "name,class\naspirin,NSAID\nibuprofen,NSAID\nwarfarin,anticoagulant\n").unwrap();
    let folder = dir.path().join("drugs.db");
    let options = BuildOptions {
        key: Some("name".into()),
        scheme: SchemeChoice::Only(scheme),
        ..BuildOptions::new(SourceSpec::parse(&csv.display().to_string()).unwrap(), &folder)
    };
    let manifest = build(&options, &device, &mut ()).unwrap();
    assert_eq!(manifest.name, "drugs");

    // In this process.
    let local = Folder::open(&folder, &device).unwrap();
    let record = local.get("warfarin").unwrap().unwrap();
    assert_eq!(record.values[0].1, Value::Text("anticoagulant".into()));

    // Over a socket.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let host = Host::builder().table_dir(&folder).device(device).listen("127.0.0.1:0".parse().unwrap());
    let bound = runtime.block_on(host.open().unwrap().bind()).unwrap();
    let url = format!("http://{}", bound.address());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = runtime.spawn(bound.run(async { drop(stopped.await) }));
    let table = blocking::Client::connect(&url).unwrap().table("drugs").unwrap();
    let found = table.get("aspirin").unwrap().found.unwrap();
    assert_eq!(found.values[0].1, Value::Text("NSAID".into()));
    assert!(table.get("paracetamol").unwrap().found.is_none());
    let by_number = table.get_index(1).unwrap().found.unwrap();
    assert_eq!(by_number.key.as_deref(), Some(&b"ibuprofen"[..]));
    drop(stop);
    runtime.block_on(server).unwrap();
}

#[test]
fn bench_measures_the_scheme_on_the_device() {
    let scheme = Download::register().unwrap();
    let rows = bench::schemes::measure(scheme, &device(), 4096, 2, &mut ()).unwrap();
    let ids: Vec<&str> = rows.iter().map(|row| &*row.id).collect();
    assert_eq!(ids, ["lookup.scheme.download.answer", "lookup.scheme.download.client"]);
    assert!(rows.iter().all(|row| row.value.len() == 2 && row.json()["value"].is_number()));
}

#[test]
fn plan_sees_the_scheme() {
    let scheme = Download::register().unwrap();
    let prices = blindcore::model::Prices { core_hour: 0.05, gb_month: 2.0, gb: 0.05 };
    let question = blindcore::model::Question {
        batch: None,
        rows: 3,
        record_bytes: 16,
        key_bytes: Some(10),
        directory: false,
        proofs: blindcore::store::ProofChoice::Without,
        up: 1e8,
        down: 1e8,
        queries: 1,
        epoch: 86_400.0,
        changed: 0.0,
        clients: 10,
        gather: 16,
        prices,
    };
    let plan = blindcore::model::Plan::new(question, rates(), None).unwrap();
    assert!(plan.candidates.iter().any(|candidate| candidate.scheme == scheme && candidate.of.is_ok()));
    let (table, _) = plan.built();
    assert_eq!(table.records.scheme, scheme, "of three rows it moves the fewest bytes");
}

/// Rates as `blindcore plan --save-rates` writes them, of a machine where a byte takes a nanosecond.
fn rates() -> blindcore::model::Rates {
    let per_row = serde_json::json!({"row": 1e-6, "byte": 1e-9});
    let curve = serde_json::json!([[1e6, 1e-3], [1e9, 1.0]]);
    let text = serde_json::json!({
        "version": blindcore::model::rates::VERSION, "processor": "made up", "device": "definition", "threads": 1,
        "passes": [{"queries": 1, "seconds": curve}], "packing": [{"queries": 1, "seconds": curve}], "hint": curve,
        "ring": {"transform": 1e-6, "encrypted": 1e-5},
        "client": {"column": 1e-6, "rows": curve, "answer_byte": 1e-9},
        "dense": {"read": per_row, "fill": per_row}, "keyed": {"read": per_row, "fill": per_row},
    });
    blindcore::model::Rates::parse(&text.to_string()).unwrap()
}
