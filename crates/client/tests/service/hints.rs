//! Hints: cached, resumed, verified, shared.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use std::time::Duration;

use crate::common::fake::{Fake, Then};
use crate::common::{Made, Running, cache, client_of, config, keyed, people, unkeyed};
use blindcore_client::{CacheDir, Client, Error, LookupError, Options};
use blindcore_wire::{PartKind, Value};

fn small(epoch: u64) -> Made {
    let rows: Vec<Vec<Value>> = (0..200).map(|i| vec![Value::Int(i + epoch as i64)]).collect();
    unkeyed("small", epoch, crate::common::simple(), &rows)
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path());
    all.filter(|f| f.extension().is_some_and(|e| e == ending)).collect()
}

/// A table without a hint to speak of is asked at once: what its client needs comes with the description.
#[tokio::test]
async fn a_short_hint_comes_with_the_description() {
    let rows: Vec<Vec<Value>> = (0..200).map(|i| vec![Value::Int(i)]).collect();
    let made = unkeyed("small", 1, "hintless".parse().unwrap(), &rows);
    assert_eq!(made.hint_len(), 32);
    let server = Running::start(&[&made]).await;
    let folder = tempfile::tempdir().unwrap();
    let table = client_of(&server.url(), cache(folder.path())).await.table("small").await.unwrap();
    for i in [0, 7, 199] {
        assert_eq!(table.get_index(i).await.unwrap().found.unwrap().values[0].1, Value::Int(i as i64));
    }
    assert_eq!(table.hint_bytes_fetched(), 0);
    assert_eq!(server.stats.part("small", PartKind::Records).hint_bytes, 0);
    assert!(files(folder.path(), "hint").is_empty());
}

#[tokio::test]
async fn a_hint_is_fetched_once() {
    let made = small(1);
    let server = Running::start(&[&made]).await;
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("not/yet/there");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heard = seen.clone();
    let client = client_of(&server.url(), cache(&inside)).await;
    let progress =
        move |_: &str, done, total: Option<u64>, _| heard.lock().unwrap().push((done, total.unwrap()));
    let table = client.table_with("small", Some(Arc::new(Mutex::new(progress)))).await.unwrap();
    let total = made.hint_len();
    assert_eq!(table.hint_bytes_fetched(), total);
    let seen = seen.lock().unwrap().clone();
    assert_eq!((seen[0], *seen.last().unwrap()), ((0, total), (total, total)));

    let again = client_of(&server.url(), cache(&inside)).await.table("small").await.unwrap();
    assert_eq!(again.hint_bytes_fetched(), 0);
    assert!(again.get_index(7).await.unwrap().found.is_some());
    assert_eq!(server.stats.part("small", PartKind::Records).hint_bytes, total);

    // A file that was damaged is fetched again.
    let file = files(&inside, "hint").pop().unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let again = client_of(&server.url(), cache(&inside)).await.table("small").await.unwrap();
    assert_eq!(again.hint_bytes_fetched(), total);
    assert!(files(&inside, "part").is_empty());

    // Another epoch is another hint.
    let server = Running::start(&[&small(2)]).await;
    let next = client_of(&server.url(), cache(&inside)).await.table("small").await.unwrap();
    assert_eq!((next.hint_bytes_fetched(), files(&inside, "hint").len()), (total, 2));
}

#[tokio::test]
async fn a_broken_download_goes_on_where_it_broke() {
    let made = small(1);
    let total = made.hint_len();
    // The first two break and go on by themselves; four in a row that bring nothing give up.
    let fake = Fake { cuts: vec![25_000, 10_000, 0, 0, 0, 0], ..Fake::of(&made) };
    let (address, fake) = fake.start().await;
    let folder = tempfile::tempdir().unwrap();
    let client = client_of(&format!("http://{address}"), cache(folder.path())).await;
    let Err(error) = client.table("small").await else { panic!("it broke") };
    assert!(matches!(error, Error::Network { .. }) && error.to_string().contains("cable"), "{error}");
    let part = files(folder.path(), "part").pop().unwrap();
    assert_eq!(std::fs::metadata(part).unwrap().len(), 96 + 35_000);
    let tried = fake.offsets.lock().unwrap().len();

    let table = client.table("small").await.unwrap_or_else(|_| panic!("tried {tried} times"));
    assert_eq!(table.hint_bytes_fetched(), total - 35_000);
    let offsets = fake.offsets.lock().unwrap().clone();
    assert_eq!(offsets[..2], [0, 25_000]);
    assert!(offsets[2..].iter().all(|o| *o == 35_000), "{offsets:?}");
    assert!(files(folder.path(), "part").is_empty());
}

#[tokio::test]
async fn a_download_into_memory_goes_on_too() {
    let made = small(1);
    let (address, fake) = Fake { cuts: vec![12_345], piece: 777, ..Fake::of(&made) }.start().await;
    let client = client_of(&format!("http://{address}"), CacheDir::None).await;
    assert_eq!(client.table("small").await.unwrap().hint_bytes_fetched(), made.hint_len());
    assert_eq!(*fake.offsets.lock().unwrap(), [0, 12_345]);
}

#[tokio::test]
async fn a_hint_that_is_another_is_refused_and_removed() {
    let made = small(1);
    let mut hint = made.records.hint().to_vec();
    hint[4321] ^= 1;
    let (address, _) = Fake { hint: hint.into(), ..Fake::of(&made) }.start().await;
    let folder = tempfile::tempdir().unwrap();
    for cache in [cache(folder.path()), CacheDir::None] {
        let error = client_of(&format!("http://{address}"), cache).await.table("small").await.err().unwrap();
        assert!(matches!(error, Error::Lookup(LookupError::HintDigest { .. })), "{error}");
    }
    assert!(files(folder.path(), "part").is_empty() && files(folder.path(), "hint").is_empty());
}

#[tokio::test]
async fn a_damaged_beginning_is_fetched_anew() {
    let server = Running::start(&[&small(1)]).await;
    let folder = tempfile::tempdir().unwrap();
    client_of(&server.url(), cache(folder.path())).await.table("small").await.unwrap();
    let whole = files(folder.path(), "hint").remove(0);
    let good = std::fs::read(&whole).unwrap();
    for len in [good.len(), good.len() / 2] {
        let mut bytes = good[..len].to_vec();
        bytes[len - 7] ^= 1;
        std::fs::remove_file(&whole).unwrap();
        std::fs::write(whole.with_extension("part"), &bytes).unwrap();
        let table = client_of(&server.url(), cache(folder.path())).await.table("small").await.unwrap();
        assert!(table.hint_bytes_fetched() >= small(1).hint_len());
        assert_eq!(std::fs::read(&whole).unwrap(), good);
    }
}

#[tokio::test]
async fn pieces_that_overflow_or_hold_nothing_are_refused() {
    let made = small(1);
    let long = [&made.records.hint()[..], b"more"].concat();
    for fake in [Fake { hint: long.into(), ..Fake::of(&made) }, Fake { piece: 0, ..Fake::of(&made) }] {
        let (address, _) = fake.start().await;
        let client = client_of(&format!("http://{address}"), CacheDir::None).await;
        let error = client.table("small").await.err().unwrap();
        assert!(matches!(error, Error::Lookup(LookupError::Protocol { .. })), "{error}");
    }
}

#[tokio::test]
async fn a_hint_over_the_limit_is_not_fetched() {
    let made = small(1);
    let (address, fake) = Fake::of(&made).start().await;
    let options = Options { cache: CacheDir::None, hint_bytes: made.hint_len() - 1, ..Options::default() };
    let client = Client::connect_with(&format!("http://{address}"), options).await.unwrap();
    let error = client.table("small").await.err().unwrap();
    assert!(matches!(error, Error::Lookup(LookupError::HintTooLarge { .. })), "{error}");
    assert!(fake.offsets.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_share_a_cache_fetch_once() {
    let server = Running::start(&[&keyed("people", 1, crate::common::simple(), 6, &people(500))]).await;
    let folder = tempfile::tempdir().unwrap();
    let mut clients = tokio::task::JoinSet::new();
    for i in 0..12 {
        let client = client_of(&server.url(), cache(folder.path())).await;
        clients.spawn(async move {
            let table = client.table("people").await.unwrap();
            assert!(table.get(format!("key-{i}")).await.unwrap().found.is_some());
            assert!(table.get_index(i).await.unwrap().found.is_some());
        });
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    let files = files(folder.path(), "hint");
    assert_eq!(files.len(), 2, "records and keys: {files:?}");
    for kind in [PartKind::Records, PartKind::Keys] {
        let bytes = server.stats.part("people", kind).hint_bytes;
        let one = std::fs::metadata(
            files.iter().find(|f| f.to_str().unwrap().contains(&format!("-{kind}-"))).unwrap(),
        );
        assert_eq!(bytes, one.unwrap().len() - 96);
    }
}

#[tokio::test]
async fn another_epoch_asks_to_open_again() {
    let server = Running::start(&[&small(1)]).await;
    let client = server.client().await;
    let table = client.table("small").await.unwrap();
    let listen = server.address;
    server.stop().await;
    let config = blindcore_server::Config { listen, ..config() };
    let _server = Running::start_with(config, &[&small(2)]).await;
    // The first request may still find the old connection.
    let error = match table.get_index(3).await.unwrap_err() {
        Error::Network { .. } => table.get_index(3).await.unwrap_err(),
        error => error,
    };
    assert!(matches!(error, Error::Lookup(LookupError::StaleEpoch { epoch: 1, .. })), "{error}");
    assert!(error.to_string().contains("open it again"), "{error}");
    let values = client.table("small").await.unwrap().get_index(3).await.unwrap().found.unwrap().values;
    assert_eq!(values[0].1, Value::Int(5));
}

/// One limit is for the whole of a hint, however it comes, and one for silence.
#[tokio::test]
async fn a_hint_that_drips_or_stops_ends_in_time() {
    let (short, long) = (Duration::from_millis(300), Duration::from_secs(86_400));
    for (then, hint_timeout, idle_timeout, words) in [
        (Then::Drips, short, long, "did not come within 0.3 s"),
        (Then::Silence, short, long, "did not come within 0.3 s"),
        (Then::Silence, long, short / 10, "nothing came for 0.03 s"),
    ] {
        let (address, _) = Fake { then, ..Fake::of(&small(1)) }.start().await;
        let folder = tempfile::tempdir().unwrap();
        for cache in [cache(folder.path()), CacheDir::None] {
            let options =
                Options { cache, hint_timeout, idle_timeout, request_timeout: long, ..Options::default() };
            let client = Client::connect_with(&format!("http://{address}"), options).await.unwrap();
            let error = client.table("small").await.err().unwrap().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}

/// Lines that a person hears.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl blindcore_client::Progress for Heard {
    fn at(&mut self, _: &str, _: u64, _: Option<u64>, _: blindcore_client::Unit) {}

    fn note(&mut self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }
}

#[tokio::test]
async fn an_earlier_content_is_not_fetched_again() {
    let of = |content: u64, epoch: u64| {
        let rows: Vec<Vec<Value>> = (0..200).map(|i| vec![Value::Int(i + content as i64)]).collect();
        unkeyed("small", epoch, crate::common::simple(), &rows)
    };
    let server = Running::start(&[&of(1, 1)]).await;
    let folder = tempfile::tempdir().unwrap();
    let fetched = async || {
        let table = client_of(&server.url(), cache(folder.path())).await.table("small").await.unwrap();
        assert!(table.get_index(0).await.unwrap().found.is_some());
        table.hint_bytes_fetched()
    };
    let total = small(1).hint_len();
    assert_eq!((fetched().await, fetched().await), (total, 0));
    for (content, epoch, bytes) in [(2, 2, total), (1, 3, 0), (2, 4, 0), (3, 5, total), (1, 6, 0)] {
        server.handle.publish(of(content, epoch).place()).unwrap();
        assert_eq!(fetched().await, bytes, "content {content} at epoch {epoch}");
    }

    // What an earlier version called by its epoch is taken over.
    for file in files(folder.path(), "hint") {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let (family, digest) = name.rsplit_once('-').unwrap();
        std::fs::rename(&file, folder.path().join(format!("{family}-4-{digest}"))).unwrap();
    }
    assert_eq!(fetched().await, 0);

    // A damaged one is replaced, and that is said.
    for file in files(folder.path(), "hint") {
        std::fs::write(file, b"hello").unwrap();
    }
    let heard = Heard::default();
    let client = client_of(&server.url(), cache(folder.path())).await;
    client.table_with("small", Some(Arc::new(Mutex::new(heard.clone())))).await.unwrap();
    let heard = heard.0.lock().unwrap().join("\n");
    assert!(heard.contains("is fetched again: the cached one is damaged (it has 5 B"), "{heard}");
}

#[tokio::test]
#[cfg(unix)]
async fn a_pipe_in_the_cache_is_not_waited_for() {
    let server = Running::start(&[&small(1)]).await;
    let folder = tempfile::tempdir().unwrap();
    client_of(&server.url(), cache(folder.path())).await.table("small").await.unwrap();
    let hint = files(folder.path(), "hint").remove(0);
    std::fs::remove_file(&hint).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&hint).status().unwrap().success());
    let table = client_of(&server.url(), cache(folder.path())).await.table("small").await.unwrap();
    assert_eq!(table.hint_bytes_fetched(), small(1).hint_len());
}
