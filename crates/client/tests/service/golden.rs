//! What earlier builds left: a hint in a cache (commit c8b64fe, of the golden database of version 2), and databases (commit 8aade73b).

use std::path::{Path, PathBuf};

use blindcore_client::CacheDir;
use blindcore_server::{Config, Host, KeysConfig};
use blindcore_wire::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::common::{cache, client_of, device, first, text};

fn only_hint(folder: &Path) -> PathBuf {
    let mut files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.find(|file| file.extension().is_some_and(|e| e == "hint")).expect("a cached hint")
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden")
}

/// A server of the golden database of this version: where it is, what stops it, and its end.
async fn served(version: u32, keys: &Path) -> (String, oneshot::Sender<()>, JoinHandle<usize>) {
    // Not beside the database, where registered keys go by default.
    let keys = KeysConfig { folder: Some(keys.to_owned()), ..KeysConfig::default() };
    let builder = Host::builder().config(Config { keys, ..Config::default() });
    let builder = builder.table_dir(golden().join(format!("databases/v{version}")));
    let builder = builder.device(device().clone()).listen("127.0.0.1:0".parse().unwrap());
    let server = builder.open().unwrap().bind().await.unwrap();
    let url = format!("http://{}", server.address());
    let (stop, stopped) = oneshot::channel::<()>();
    let done = tokio::spawn(server.run(async move {
        let _ = stopped.await;
    }));
    (url, stop, done)
}

/// A wrong order of a bucket's files or of a polynomial's outputs shows in answers alone.
#[tokio::test(flavor = "multi_thread")]
async fn databases_of_earlier_builds_are_answered_from() {
    let keys = tempfile::tempdir().unwrap();
    let (url, stop, done) = served(5, &keys.path().join("5")).await;
    let table = client_of(&url, CacheDir::None).await.table("fruit").await.unwrap();
    let found = table.get_many(&["plum", "fig", "apple"]).await.unwrap();
    assert_eq!(found.iter().map(first).collect::<Vec<_>>(), [text("blue"), None, text("red")]);
    stop.send(()).unwrap();
    done.await.unwrap();

    let (url, stop, done) = served(6, &keys.path().join("6")).await;
    let table = client_of(&url, CacheDir::None).await.table("colours").await.unwrap();
    for (row, value) in ["red ".repeat(2750), "blue ".repeat(2200)].into_iter().enumerate() {
        assert_eq!(first(&table.get_index(row as u64).await.unwrap()), text(&value));
    }
    stop.send(()).unwrap();
    done.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cached_hint_of_an_earlier_build_is_written_alike_and_read() {
    let golden = golden();
    let (folder, keys) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (url, stop, done) = served(2, keys.path()).await;

    // An entry's name holds the server's address, so a first lookup says which it is.
    client_of(&url, cache(folder.path())).await.table("t").await.unwrap();
    let entry = only_hint(folder.path());
    let earlier = std::fs::read(golden.join("hint-caches/t-records.hint")).unwrap();
    assert!(std::fs::read(&entry).unwrap() == earlier, "the format changed without a new version");

    std::fs::write(&entry, earlier).unwrap();
    let table = client_of(&url, cache(folder.path())).await.table("t").await.unwrap();
    assert_eq!(table.hint_bytes_fetched(), 0);
    let record = table.get("apple").await.unwrap().found.expect("it is there");
    assert_eq!(record.get("v"), Some(&Value::Text("red".into())));
    stop.send(()).unwrap();
    done.await.unwrap();
}
