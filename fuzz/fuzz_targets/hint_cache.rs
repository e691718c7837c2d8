//! A client's cached hint, or one that was broken off, replaced by anybody's bytes: the lookup is right all
//! the same. The first byte says which file, and whether it starts as a good one does.
#![no_main]
use std::path::PathBuf;
use std::sync::LazyLock;

use blindcore_client::{CacheDir, Client, Options};
use blindcore_fuzz::{RUNNING, byte, file};
use libfuzzer_sys::fuzz_target;

static CLIENT: LazyLock<Client> = LazyLock::new(|| {
    let options = Options { cache: CacheDir::At(file("cache")), ..Options::default() };
    let url = format!("http://{}", RUNNING.1);
    RUNNING.0.block_on(Client::connect_with(&url, options)).unwrap()
});

/// Opens the table and looks a row up.
fn look() {
    let client = &*CLIENT;
    RUNNING.0.block_on(async {
        let table = client.table("towns").await.unwrap();
        assert!(table.get("k7").await.unwrap().found.is_some());
        assert!(table.get("k77").await.unwrap().found.is_none());
    });
}

/// The cached hint's file and its bytes.
static GOOD: LazyLock<(PathBuf, Vec<u8>)> = LazyLock::new(|| {
    look();
    let mut files = std::fs::read_dir(file("cache")).unwrap().map(|e| e.unwrap().path());
    let path = files.find(|p| p.extension().is_some_and(|e| e == "hint")).unwrap();
    (path.clone(), std::fs::read(&path).unwrap())
});

// What every input needs is made before the first is timed.
fuzz_target!(init: LazyLock::force(&GOOD), |data: &[u8]| {
    let (path, good) = &*GOOD;
    let (how, data) = byte(data);
    let mut bytes =
        good[..if how & 2 == 2 { good.len().min(usize::from(how >> 2) * 64) } else { 0 }].to_vec();
    bytes.extend_from_slice(data);
    if how & 1 == 1 {
        std::fs::write(path, &bytes).unwrap();
    } else {
        std::fs::remove_file(path).unwrap();
        std::fs::write(path.with_extension("part"), &bytes).unwrap();
    }
    look();
    assert_eq!(&std::fs::read(path).unwrap(), good);
});
