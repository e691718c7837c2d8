//! A database with one file changed: opened, read whole, served and asked. The first byte names the file, the
//! second what becomes of it: all of it, or its start alone, is the input; its checksums are made to fit or not.
#![no_main]
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use blindcore_fuzz::{DATABASE, byte, file, serve};
use blindcore_lookup::{Client, Selection};
use blindcore_store::Stored;
use libfuzzer_sys::fuzz_target;

/// Every file of the database, by name, with its bytes.
static FILES: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let dir = std::fs::read_dir(&*DATABASE).unwrap();
    let mut files: Vec<_> = dir.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    files.into_iter().map(|name| (name.clone(), std::fs::read(DATABASE.join(name)).unwrap())).collect()
});

/// A copy whose files change.
static COPY: LazyLock<PathBuf> = LazyLock::new(|| {
    let copy = file("changed.db");
    std::fs::create_dir(&copy).unwrap();
    for (name, bytes) in FILES.iter() {
        std::fs::write(copy.join(name), bytes).unwrap();
    }
    copy
});

// What every input needs is made before the first is timed.
fuzz_target!(init: LazyLock::force(&COPY), |data: &[u8]| {
    let (which, data) = byte(data);
    let (how, data) = byte(data);
    let (name, good) = &FILES[usize::from(which) % FILES.len()];
    let mut bytes = data.to_vec();
    if how & 1 == 1 && bytes.len() < good.len() {
        bytes.extend_from_slice(&good[bytes.len()..]);
    }
    if how & 2 == 2 && name != "manifest.json" && bytes.len() >= 128 {
        let digest = blake3::hash(&bytes[..96]);
        bytes[96..128].copy_from_slice(digest.as_bytes());
    }
    // A new file each time: what is mapped is never cut.
    let path = COPY.join(name);
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    if let Ok(stored) = Stored::open(&COPY) {
        let verified = stored.verify(&mut ());
        assert!(
            verified.is_err() || &bytes == good || name == "manifest.json",
            "a changed file passes for whole"
        );
        for part in [Some(&stored.records), stored.keys.as_ref()].into_iter().flatten() {
            // Roots of proofs lie behind the hint's words.
            let words = (*part.hint).as_ref()[..part.params.hint_bytes() as usize].to_vec();
            let client = Client::new(part.params, Arc::new(words)).unwrap();
            let selection = Selection::index(&part.params.geometry, 1).unwrap();
            let (query, pending) = client.query(client.prepare().unwrap(), &selection).unwrap();
            let answers = serve(part).answer(&[&query]).unwrap().0;
            assert!(!client.decode(pending, &answers[0]).unwrap().damaged);
        }
        blindcore_fuzz::table(&stored);
    }
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, good).unwrap();
});
