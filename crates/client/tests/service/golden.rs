//! A hint that an earlier build left in a cache (commit c8b64fe, of the golden database of version 2).

use std::path::{Path, PathBuf};

use blindcore_server::Host;
use blindcore_wire::Value;
use tokio::sync::oneshot;

use crate::common::{cache, client_of};

fn only_hint(folder: &Path) -> PathBuf {
    let mut files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.find(|file| file.extension().is_some_and(|e| e == "hint")).expect("a cached hint")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cached_hint_of_an_earlier_build_is_written_alike_and_read() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden");
    let device = blindcore_accel_cpu::Cpu::with_threads("cpu", 1).unwrap();
    let builder = Host::builder().table_dir(golden.join("databases/v2")).device(device);
    let host = builder.listen("127.0.0.1:0".parse().unwrap()).open().unwrap();
    let server = host.bind().await.unwrap();
    let url = format!("http://{}", server.address());
    let (stop, stopped) = oneshot::channel::<()>();
    let done = tokio::spawn(server.run(async move {
        let _ = stopped.await;
    }));

    // An entry's name holds the server's address, so a first lookup says which it is.
    let folder = tempfile::tempdir().unwrap();
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
