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

    let path = db.join("manifest.json");
    let mut manifest: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let hex = |digest: [u8; 32]| serde_json::Value::from(blake3::Hash::from_bytes(digest).to_hex().as_str());
    manifest["records"]["shards"][0]["blake3"] = hex(payload);
    manifest["checksum"] = "".into();
    manifest["checksum"] = hex(digest(&serde_json::to_vec(&manifest).unwrap()));
    std::fs::write(&path, manifest.to_string()).unwrap();
}

#[test]
fn a_database_that_somebody_changed_answers_wrongly_and_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let built = build(dir, &[]);
    forge(&dir.join("t.db"));
    let server = Serving::start(dir, &["t.db"]);
    let digest = built["digest"].as_str().unwrap();
    for more in [&[][..], &["--pin", digest]] {
        let ask = [&["--table", "t", "--index", "7"], more].concat();
        refused(&server.get(dir, &ask), &["not what the table's digest says", "verify the database"]);
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
    let unsigned = update("{\"k\":\"key 7\",\"v\":\"newer\"}\n", &[]);
    assert!(stderr(&unsigned).contains("--sign"), "{}", stderr(&unsigned));
    refused(&get(&ours), &["nobody signed it"]);
    refused(&run(dir, &["db", "build", "t.csv", "--out", "n.db", "--sign", "t.csv"]), &["t.csv", "db key"]);
}
