use blindcore_accel::{Placed, Words};

use super::*;
use crate::{BuildOptions, SourceSpec, UpdateOptions, build, update};

/// Databases of versions 1 and 2: their readers compare with what they have, and find what is damaged.
#[test]
fn databases_without_checksums_of_tiles_are_read_and_checked() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let rows: String = (0..300).map(|i| format!("key {i},value {i}\n")).collect();
    std::fs::write(dir.join("t.csv"), format!("k,v\n{rows}")).unwrap();
    std::fs::write(dir.join("c.csv"), "k,v,_change\nkey 7,,remove\nkey 8,new,\n").unwrap();
    let spec = |file: &str| SourceSpec::parse(dir.join(file).to_str().unwrap()).unwrap();
    let device = blindcore_accel_cpu::Cpu::with_threads("cpu", 1).unwrap();
    let db = dir.join("db");
    let options = BuildOptions { key: Some("k".into()), ..BuildOptions::new(spec("t.csv"), &db) };
    let mut manifest = build(&options, &device, &mut ()).unwrap();
    assert_eq!(manifest.version, 4);
    manifest.kinds = None;
    for part in [Some(&mut manifest.records), manifest.keys.as_mut()].into_iter().flatten() {
        std::fs::remove_file(db.join(part.sums.take().unwrap().file)).unwrap();
    }
    let manifest = manifest.sealed();
    assert_eq!(manifest.version, 2);
    std::fs::write(db.join(crate::manifest::MANIFEST), manifest.to_json()).unwrap();

    let shard = db.join("records-0000.shard");
    let good = std::fs::read(&shard).unwrap();
    let change = || {
        let (dir, changes) = (db.clone(), spec("c.csv"));
        let options = UpdateOptions { memory: 1 << 16, ..UpdateOptions::new(dir, changes) };
        update(&options, &device, &mut ())
    };
    let pass = |stored: &Stored| {
        let streamed = stored.records.stream(&device, StreamOptions::default()).unwrap();
        let shape = streamed.shape();
        streamed.run(&Words::zeros(shape.query_word(), shape.query_len(1))).map(drop)
    };
    let stored = Stored::open(&db).unwrap();
    stored.verify(&mut ()).unwrap();
    pass(&stored).unwrap();
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    std::fs::write(&shard, bad).unwrap();
    let error = pass(&Stored::open(&db).unwrap()).unwrap_err().to_string();
    assert!(error.contains("records-0000.shard is damaged"), "{error}");
    let error = change().unwrap_err().to_string();
    assert!(error.contains("records-0000.shard") && error.contains("checksum"), "{error}");
    std::fs::write(&shard, good).unwrap();
    let updated = change().unwrap();
    assert_eq!((updated.changed, updated.removed, updated.manifest.version), (1, 1, 3));
    let stored = Stored::open(&db).unwrap();
    stored.verify(&mut ()).unwrap();
    assert!(stored.record(b"key 7").unwrap().is_none());
    assert!(stored.record(b"key 9").unwrap().is_some());
}

/// A database of an earlier build, whose polynomials would be taken for others.
#[test]
fn polynomials_that_lie_as_they_used_to_are_refused_with_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let device = blindcore_accel_cpu::Cpu::with_threads("cpu", 1).unwrap();
    let scheme = blindcore_lookup::schemes::find("onionpir2").unwrap();
    let built = |name: &str, rows: &[String]| {
        let file = dir.join(format!("{name}.csv"));
        std::fs::write(&file, format!("v\n{}\n", rows.join("\n"))).unwrap();
        let spec = SourceSpec::parse(file.to_str().unwrap()).unwrap();
        let scheme = blindcore_lookup::SchemeChoice::Only(scheme);
        let options = BuildOptions { scheme, ..BuildOptions::new(spec, dir.join(name)) };
        (build(&options, &device, &mut ()).unwrap(), options)
    };
    // One output lies as it always did, and earlier builds read it.
    let (few, options) = built("few", &["1".into(), "2".into()]);
    assert_eq!((few.version, &few.records.state_layout), (4, &None));
    Stored::open(&options.out).unwrap();
    // A slot of four polynomials makes four outputs.
    let (mut long, options) = built("long", &["a".repeat(11_000), "b".repeat(11_000)]);
    assert_eq!((long.version, long.records.state_layout.as_deref()), (6, Some("lanes8x4")));
    Stored::open(&options.out).unwrap();
    long.records.state_layout = None;
    let long = long.sealed();
    assert_eq!(long.version, 4);
    std::fs::write(options.out.join(crate::manifest::MANIFEST), long.to_json()).unwrap();
    let refused = [
        Stored::open(&options.out).err().unwrap(),
        update(&UpdateOptions::new(&options.out, options.source.clone()), &device, &mut ()).err().unwrap(),
    ];
    for error in refused.map(|error| error.to_string()) {
        let words = "manifest.json: table \"long\" was made by an earlier blindcore";
        assert!(error.contains(words) && error.ends_with("build the database again"), "{error}");
    }
    build(&BuildOptions { force: true, ..options.clone() }, &device, &mut ()).unwrap();
    Stored::open(&options.out).unwrap();
}

/// A database that a newer build made.
#[test]
fn a_scheme_that_is_not_known_is_refused_by_name_and_build() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("towns.csv"), "v\n1\n2\n").unwrap();
    let spec = SourceSpec::parse(dir.join("towns.csv").to_str().unwrap()).unwrap();
    let device = blindcore_accel_cpu::Cpu::with_threads("cpu", 1).unwrap();
    let options = BuildOptions::new(spec, dir.join("db"));
    let mut manifest = build(&options, &device, &mut ()).unwrap();
    manifest.records.scheme = "newest".into();
    let manifest = manifest.sealed();
    std::fs::write(dir.join("db/manifest.json"), manifest.to_json()).unwrap();
    let error = Stored::open(&dir.join("db")).err().unwrap().to_string();
    let words = "manifest.json: table \"towns\": scheme `newest` is not known to this build (blindcore 0.1.0), which knows";
    assert!(error.contains(words) && error.ends_with("update it"), "{error}");
    // It is a database all the same, which a build may replace when it is told to.
    build(&BuildOptions { force: true, ..options }, &device, &mut ()).unwrap();
    Stored::open(&dir.join("db")).unwrap();
}
