//! Answers that are checked: digests that are pinned, tables that are signed, databases that were tampered with.

use std::path::Path;

use crate::common::{Serving, code, json, refused, run, run_with_input, stderr, stdout};

fn build(dir: &Path, more: &[&str]) -> serde_json::Value {
    let csv: String = (0..50).map(|i| format!("key {i},the value of row {i}\n")).collect();
    std::fs::write(dir.join("t.csv"), format!("k,v\n{csv}")).unwrap();
    json(&run(dir, &[&["db", "build", "t.csv", "--out", "t.db", "--force", "--json"], more].concat()))
}

#[test]
fn a_pinned_digest_is_the_only_table() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let built = build(dir, &["--key", "k"]);
    let digest = built["digest"].as_str().unwrap().to_owned();
    assert_eq!(built["records"]["proofs"]["depth"], 0);
    assert!(stdout(&run(dir, &["db", "inspect", "t.db"])).contains(&digest));
    let server = Serving::start(dir, &["t.db"]);
    let ask = ["--table", "t", "--key", "key 7", "--json", "--pin"];
    let found = json(&server.get(dir, &[&ask[..], &[&digest]].concat()));
    assert_eq!(
        (&found["value"]["v"], &found["digest"]),
        (&"the value of row 7".into(), &digest.clone().into())
    );
    let other = "0123456789abcdef".repeat(4);
    refused(&server.get(dir, &[&ask[..], &[&other]].concat()), &["table t is refused", &digest, &other]);
    let output = server.get(dir, &[&ask[..], &["12"]].concat());
    assert!(code(&output) == 2 && stderr(&output).contains("64 hexadecimal digits"), "{}", stderr(&output));
}

#[test]
fn a_table_without_proofs_is_not_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let built = build(dir, &["--key", "k", "--no-proofs"]);
    assert!(built["records"]["proofs"].is_null() && built["keys"]["proofs"].is_null());
    let server = Serving::start(dir, &["t.db"]);
    let ask = ["--table", "t", "--key", "key 7", "--json"];
    assert_eq!(json(&server.get(dir, &ask))["found"], true);
    let pinned = server.get(dir, &[&ask[..], &["--pin", built["digest"].as_str().unwrap()]].concat());
    refused(&pinned, &["no proofs"]);
}

/// Changes every cell, and every checksum that a server compares: as an attacker does.
fn forge(db: &Path) {
    let digest = |bytes: &[u8]| *blake3::hash(bytes).as_bytes();
    let path = db.join("records-0000.shard");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096..].iter_mut().for_each(|b| *b ^= 1);
    let payload = digest(&bytes[4096..]);
    bytes[64..96].copy_from_slice(&payload);
    let header = digest(&bytes[..96]);
    bytes[96..128].copy_from_slice(&header);
    std::fs::write(&path, bytes).unwrap();

    let digest = blake3::Hash::from_bytes(payload).to_hex();
    edit_manifest(db, |manifest| manifest["records"]["shards"][0]["blake3"] = digest.as_str().into());
}

/// Changes a manifest, and its checksum with it.
fn edit_manifest(db: &Path, edit: impl FnOnce(&mut serde_json::Value)) {
    let path = db.join("manifest.json");
    let mut manifest: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    edit(&mut manifest);
    manifest["checksum"] = "".into();
    manifest["checksum"] = blake3::hash(&serde_json::to_vec(&manifest).unwrap()).to_hex().as_str().into();
    std::fs::write(&path, manifest.to_string()).unwrap();
}

#[test]
fn a_database_that_somebody_changed_answers_wrongly_and_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let made = json(&run(dir, &["db", "key", "ours.pem", "--json"]));
    let built = build(dir, &["--sign", "ours.pem"]);
    forge(&dir.join("t.db"));
    let server = Serving::start(dir, &["t.db"]);
    let [digest, ours] = [&built["digest"], &made["public_key"]].map(|text| text.as_str().unwrap());
    for more in [&[][..], &["--pin", digest], &["--trust", ours]] {
        let ask = [&["--table", "t", "--index", "7"], more].concat();
        refused(&server.get(dir, &ask), &["more noise than an honest one", "verify the database"]);
    }
}

#[test]
fn a_signed_table_is_taken_and_others_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let key = |file: &str| {
        let made = json(&run(dir, &["db", "key", file, "--json"]));
        made["public_key"].as_str().unwrap().to_owned()
    };
    let (ours, theirs) = (key("ours.pem"), key("theirs.pem"));
    assert_ne!(ours, theirs);
    assert_eq!(key("ours.pem"), ours, "a key that is there is kept");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(dir.join("ours.pem")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let built = build(dir, &["--key", "k", "--sign", "ours.pem"]);
    assert_eq!(built["signed_by"].as_str(), Some(&*ours));
    let get = |trusted: &str| {
        let server = Serving::start(dir, &["t.db"]);
        server.get(dir, &["--table", "t", "--key", "key 7", "--json", "--trust", trusted])
    };
    assert_eq!(json(&get(&ours))["value"]["v"], "the value of row 7");
    refused(&get(&theirs), &["table t is refused", "signature"]);
    // The next epoch is signed again, or isn't.
    let update = |rows: &str, more: &[&str]| {
        let args = [&["db", "update", "t.db", "--from", "-", "--json"], more].concat();
        run_with_input(dir, &args, rows.as_bytes())
    };
    json(&update("{\"k\":\"key 7\",\"v\":\"new\"}\n", &["--sign", "ours.pem"]));
    assert_eq!(json(&get(&ours))["value"]["v"], "new");
    // A slip of the operator's locks nobody out: the signer stays, unless told.
    let row = "{\"k\":\"key 7\",\"v\":\"newer\"}\n";
    for more in [&[][..], &["--sign", "theirs.pem"]] {
        refused(&update(row, more), &["is signed by", &ours, "--change-signer"]);
        let again = [&["db", "build", "t.csv", "--key", "k", "--out", "t.db", "--force"], more].concat();
        refused(&run(dir, &again), &["is signed by", &ours, "--change-signer"]);
    }
    refused(&run(dir, &["db", "sign", "t.db", "theirs.pem"]), &["is signed by", &ours, &theirs]);
    assert_eq!(json(&get(&ours))["value"]["v"], "new");
    // Where it is told, the operator hears whom it locks out.
    let server = Serving::start(dir, &["t.db"]);
    json(&update(row, &["--change-signer"]));
    server.line("another signer: clients that trust the one before refuse this epoch");
    drop(server);
    refused(&get(&ours), &["nobody signed it"]);
    // Where nothing changes, nothing is signed, and a note says so.
    let same = json(&update(row, &["--sign", "ours.pem"]));
    let note = same["notes"][0].as_str().unwrap();
    assert!(note.contains("still not signed; db sign"), "{note}");
    // What stands is signed, while it is served too.
    let server = Serving::start(dir, &["t.db"]);
    let signed = json(&run(dir, &["db", "sign", "t.db", "ours.pem", "--json"]));
    assert_eq!((signed["epoch"].as_u64(), signed["signed_by"].as_str()), (Some(3), Some(&*ours)));
    server.line("a new epoch");
    json(&server.get(dir, &["--table", "t", "--key", "key 7", "--json", "--trust", &ours]));
    drop(server);
    assert_eq!(json(&run(dir, &["db", "verify", "t.db", "--json"]))["signed_by"].as_str(), Some(&*ours));
    // A table without proofs is not signed, and one that is signed gets them.
    build(dir, &["--key", "k", "--no-proofs", "--change-signer"]);
    refused(&run(dir, &["db", "sign", "t.db", "ours.pem"]), &["no proofs", "--no-proofs"]);
    refused(&run(dir, &["db", "build", "t.csv", "--out", "n.db", "--sign", "t.csv"]), &["t.csv", "db key"]);
}

/// A signature that is not of its table is no signature, whoever asks.
#[test]
fn a_signature_is_checked_before_its_key_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let made = json(&run(dir, &["db", "key", "ours.pem", "--json"]));
    let ours = made["public_key"].as_str().unwrap();
    build(dir, &["--key", "k", "--sign", "ours.pem"]);
    edit_manifest(&dir.join("t.db"), |manifest| manifest["signed"]["signature"] = "0".repeat(128).into());
    for command in [
        &["db", "inspect", "t.db"][..],
        &["db", "verify", "t.db"],
        &["serve", "t.db", "--listen", "127.0.0.1:0"],
    ] {
        let output = run(dir, command);
        refused(&output, &["signature", "db sign"]);
        assert!(!stdout(&output).contains(ours) && !stderr(&output).contains(ours));
    }
    json(&run(dir, &["db", "sign", "t.db", "ours.pem", "--json"]));
    assert!(stdout(&run(dir, &["db", "inspect", "t.db"])).contains(ours));
    edit_manifest(&dir.join("t.db"), |manifest| manifest["version"] = 99.into());
    refused(&run(dir, &["db", "inspect", "t.db"]), &["newer blindcore", "version 99", "up to 8"]);
}

/// A server that shows an older epoch, which was signed too, shows it to nobody who saw a newer one.
#[test]
fn a_signed_table_does_not_go_back() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let made = json(&run(dir, &["db", "key", "ours.pem", "--json"]));
    let ours = made["public_key"].as_str().unwrap();
    build(dir, &["--key", "k", "--sign", "ours.pem"]);
    std::fs::rename(dir.join("t.db"), dir.join("old.db")).unwrap();
    build(dir, &["--key", "k", "--sign", "ours.pem"]);
    build(dir, &["--key", "k", "--sign", "ours.pem"]);
    let get = |db: &str, more: &[&str]| {
        let server = Serving::start(dir, &[db]);
        server.get(dir, &[&["--table", "t", "--key", "key 7", "--json", "--trust", ours], more].concat())
    };
    json(&get("old.db", &[]));
    assert_eq!(json(&get("t.db", &[]))["epoch"], 2);
    refused(&get("old.db", &[]), &["epoch 1", "epoch 2", "--allow-rollback"]);
    json(&get("old.db", &["--cache", "another"]));
    let listed = json(&run(dir, &["cache", "list", "--json"]));
    let names: Vec<&str> =
        listed["files"].as_array().unwrap().iter().map(|f| f["name"].as_str().unwrap()).collect();
    assert!(names.iter().any(|n| n.starts_with("epochs/t-") && n.ends_with("-2")), "{names:?}");
    // What was seen outlives the hints.
    json(&run(dir, &["cache", "clear", "--json"]));
    refused(&get("old.db", &[]), &["--allow-rollback"]);
    json(&get("old.db", &["--allow-rollback"]));
    json(&get("old.db", &[]));
    json(&get("t.db", &[]));
    json(&run(dir, &["cache", "clear", "--epochs", "--json"]));
    json(&get("old.db", &[]));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(dir.join("cache"), std::fs::Permissions::from_mode(0o777)).unwrap();
        refused(&get("t.db", &[]), &["others can write", "cache"]);
    }
}
