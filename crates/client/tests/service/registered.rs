//! Keys that clients register, over real sockets: they are kept, lost, counted, replaced, damaged and refused.

use std::collections::HashSet;
use std::io::BufRead;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use blindcore_client::{CacheDir, Client, Error, LookupError, Options, Reason, Rotation, TableClient, Value};
use blindcore_lookup::{Client as Half, KeySet, Params, Selection};
use blindcore_server::{Clock, Config, KeysConfig};
use blindcore_wire::proto::lookup_client::LookupClient;
use blindcore_wire::{PartKind, REASON_HEADER, proto};
use bytes::Bytes;
use prost::Message;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tonic::Code;
use tonic::transport::Channel;

use crate::common::fake::Fake;
use crate::common::{
    Made, Running, cache, client_of, config, first, http, keyed, people, registered, row, text, unkeyed,
};

fn made() -> Made {
    keyed("people", 1, registered(), 2, &people(40))
}

fn with(keys: KeysConfig) -> Config {
    Config { keys, ..config() }
}

fn in_folder(path: &Path) -> Config {
    with(KeysConfig { folder: Some(path.to_owned()), ..KeysConfig::default() })
}

async fn open(url: &str, cache: CacheDir) -> TableClient {
    client_of(url, cache).await.table("people").await.unwrap()
}

async fn open_with(url: &str, options: Options) -> Result<TableClient, Error> {
    Client::connect_with(url, options).await?.table("people").await
}

async fn finds(table: &TableClient, key: &str, person: &str) {
    assert_eq!(first(&table.get(key).await.unwrap()), text(person), "{key}");
}

/// The one file of keys in a cache.
fn key_file(cache: &Path) -> PathBuf {
    let files = std::fs::read_dir(cache.join("keys")).unwrap().map(|file| file.unwrap().path());
    let mut keys = files.filter(|path| path.extension().is_some_and(|e| e == "keys"));
    let file = keys.next().expect("there are keys");
    assert!(keys.next().is_none(), "and no others");
    file
}

/// An address that stays, whichever server is behind it: clients know keys by it.
struct Relay {
    address: SocketAddr,
    to: Arc<Mutex<SocketAddr>>,
}

impl Relay {
    async fn to(server: &Running) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, to) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(server.address)));
        let target = to.clone();
        tokio::spawn(async move {
            while let Ok((mut from, _)) = listener.accept().await {
                let target = *target.lock().unwrap();
                tokio::spawn(async move {
                    if let Ok(mut to) = TcpStream::connect(target).await {
                        let _ = copy_bidirectional(&mut from, &mut to).await;
                    }
                });
            }
        });
        Self { address, to }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn now_to(&self, server: &Running) {
        *self.to.lock().unwrap() = server.address;
    }
}

/// A client of one's own, which says what it likes.
struct Raw {
    grpc: LookupClient<Channel>,
    made: Made,
    params: Params,
}

impl Raw {
    async fn of(server: &Running, made: &Made) -> Self {
        let grpc = LookupClient::connect(server.url()).await.unwrap().max_encoding_message_size(usize::MAX);
        Self { grpc, made: made.clone(), params: made.description.records().params }
    }

    fn registration(&self, keys: impl Into<Bytes>) -> proto::RegisterKeysRequest {
        proto::RegisterKeysRequest {
            table: self.made.description.name().into(),
            part: proto::PartKind::Records.into(),
            keys_params: self.params.keys_digest().unwrap().to_vec().into(),
            keys: keys.into(),
        }
    }

    async fn register(&self, keys: &KeySet) -> Result<[u8; 32], tonic::Status> {
        let request = self.registration(keys.public.clone());
        self.grpc.clone().register_keys(request).await?;
        Ok(*blake3::hash(&keys.public).as_bytes())
    }

    /// What slot 1 decodes to under these keys, asked under the digest of whichever.
    async fn ask(&self, keys: &KeySet, digest: &[u8]) -> Result<Vec<u8>, tonic::Status> {
        let client = Half::new(self.params, Arc::new([])).unwrap();
        let secret = self.params.open_secret(&keys.secret).unwrap();
        let selection = Selection::index(&self.params.geometry, 1).unwrap();
        let (query, pending) = client.query(client.prepare_under(&secret).unwrap(), &selection).unwrap();
        let request = proto::QueryRequest {
            table: self.made.description.name().into(),
            epoch: self.made.description.epoch(),
            part: proto::PartKind::Records.into(),
            table_digest: self.made.description.digest().to_vec().into(),
            queries: query.into(),
            keys: digest.to_vec().into(),
        };
        let answer = self.grpc.clone().query(request).await?.into_inner();
        Ok(client.decode(pending, &answer.answers).unwrap().slot.to_vec())
    }

    fn keys(&self) -> KeySet {
        self.params.make_keys().unwrap()
    }
}

fn reason(status: &tonic::Status) -> &str {
    status.metadata().get(REASON_HEADER).map_or("", |reason| reason.to_str().unwrap())
}

#[tokio::test]
async fn clients_look_up_under_keys_of_their_own_whatever_they_ask() {
    let base = made();
    let rows: [(&[u8], _); 3] = [(b"key-7", row("changed")), (b"key-8", None), (b"late", row("added"))];
    let changed = base.changed(2, &rows, &[b"late"]);
    let dir = tempfile::tempdir().unwrap();
    let server = Running::start_with(in_folder(&dir.path().join("server")), &[&base]).await;
    let one = open(&server.url(), cache(&dir.path().join("one"))).await;
    let two = open(&server.url(), CacheDir::None).await;
    // Both at a time, so that passes gather them.
    let many = async |table: &TableClient| {
        let keys: Vec<String> = (0..40).map(|i| format!("key-{i}")).chain(["nobody".into()]).collect();
        let got = table.get_many(&keys).await.unwrap();
        let want = (0..40).map(|i| text(&format!("person {i}"))).chain([None]);
        assert_eq!(got.iter().map(first).collect::<Vec<_>>(), want.collect::<Vec<_>>());
        assert_eq!(got[0].bytes.keys, 64);
    };
    tokio::join!(many(&one), many(&two));
    assert_eq!(
        first(&one.get_index(3).await.unwrap()),
        text("person 3"),
        "other parts are under the same keys"
    );
    let keys = server.stats.keys();
    assert_eq!((keys.registered, keys.again, keys.sets, keys.bytes), (2, 0, 2, 128));

    // An update changes nothing of that.
    server.handle.publish(changed.place_parts(&[PartKind::Changes, PartKind::NewKeys])).unwrap();
    for table in [one.refresh().await.unwrap(), two.refresh().await.unwrap()] {
        let found = table.get_many(&["key-7", "key-8", "late", "key-9"]).await.unwrap();
        let want = [text("changed"), None, text("added"), text("person 9")];
        assert_eq!(found.iter().map(first).collect::<Vec<_>>(), want);
    }
    // Another process of the first client.
    let again = open(&server.url(), cache(&dir.path().join("one"))).await;
    finds(&again, "key-5", "person 5").await;
    let keys = server.stats.keys();
    assert_eq!((keys.registered, keys.again, keys.unknown), (2, 0, 0));
    assert_eq!(again.key_bytes_registered(), 0);
}

#[tokio::test]
async fn what_was_registered_survives_a_restart() {
    let (made, dir) = (made(), tempfile::tempdir().unwrap());
    let config = || in_folder(&dir.path().join("server"));
    let server = Running::start_with(config(), &[&made]).await;
    let relay = Relay::to(&server).await;
    let place = cache(&dir.path().join("client"));
    finds(&open(&relay.url(), place.clone()).await, "key-1", "person 1").await;
    // Registered, and nothing asked under it.
    let raw = Raw::of(&server, &made).await;
    let keys = raw.keys();
    let digest = raw.register(&keys).await.unwrap();
    drop(raw);
    server.stop().await;

    let server = Running::start_with(config(), &[&made]).await;
    relay.now_to(&server);
    finds(&open(&relay.url(), place.clone()).await, "key-2", "person 2").await;
    let raw = Raw::of(&server, &made).await;
    let slot = raw.ask(&keys, &digest).await.unwrap();
    assert_eq!(slot, raw.ask(&keys, &digest).await.unwrap());
    let stats = server.stats.keys();
    assert_eq!((stats.registered, stats.unknown, stats.sets), (0, 0, 2));
    drop(raw);
    server.stop().await;

    // One that keeps none: it is told again, once, by the client itself.
    let server = Running::start(&[&made]).await;
    relay.now_to(&server);
    let table = open(&relay.url(), place).await;
    for key in [3, 4, 5] {
        finds(&table, &format!("key-{key}"), &format!("person {key}")).await;
    }
    let stats = server.stats.keys();
    assert_eq!((stats.registered, stats.unknown), (1, 1));
}

#[tokio::test]
async fn keys_that_had_to_go_are_registered_again_unseen() {
    let made = made();
    let one_place = KeysConfig { count: 1, count_per_client: Some(1), ..KeysConfig::default() };
    let dir = tempfile::tempdir().unwrap();
    for folder in [None, Some(dir.path().join("server"))] {
        let server = Running::start_with(with(KeysConfig { folder, ..one_place.clone() }), &[&made]).await;
        let tables = [open(&server.url(), CacheDir::None).await, open(&server.url(), CacheDir::None).await];
        for key in 0..6 {
            finds(&tables[key % 2], &format!("key-{key}"), &format!("person {key}")).await;
        }
        let keys = server.stats.keys();
        assert_eq!((keys.registered, keys.evicted, keys.unknown, keys.sets), (6, 5, 4, 1));
    }
    let files = std::fs::read_dir(dir.path().join("server")).unwrap().map(|f| f.unwrap().path());
    assert_eq!(files.filter(|path| path.extension().is_some_and(|e| e == "keys")).count(), 1);
}

/// A server that forgets keys whenever it is asked gets one more registration and one more query, and an end.
#[tokio::test]
async fn nothing_goes_round_in_circles() {
    let made = made();
    let mut fake = Fake::of(&made);
    fake.answer = Box::new(|_| {
        let mut status = tonic::Status::failed_precondition("never heard of them");
        status.metadata_mut().insert(REASON_HEADER, "unknown-keys".parse().unwrap());
        Err(status)
    });
    let (address, fake) = fake.start().await;
    let patient = Options { cache: CacheDir::None, patience: Duration::from_secs(60), ..Options::default() };
    let table = open_with(&format!("http://{address}"), patient).await.unwrap();
    let error = table.get("key-1").await.unwrap_err();
    let refused =
        matches!(&error, Error::Lookup(LookupError::Refused { reason: Some(Reason::UnknownKeys), .. }));
    assert!(refused, "{error}");
    let registered = fake.registrations.lock().unwrap().clone();
    assert_eq!((registered.len(), fake.queries.lock().unwrap().len()), (2, 2));
    assert_eq!(registered[0], registered[1], "the same keys again");
}

#[tokio::test]
async fn damaged_keys_in_a_cache_are_replaced() {
    let (made, dir) = (made(), tempfile::tempdir().unwrap());
    let server = Running::start(&[&made]).await;
    let folder = dir.path().join("client");
    finds(&open(&server.url(), cache(&folder)).await, "key-1", "person 1").await;
    let path = key_file(&folder);
    let good = std::fs::read(&path).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    }
    let harmed = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    // Version, parameters, digest, a checksum, the secret; too short, too long, empty.
    let bad = [harmed(8), harmed(20), harmed(50), harmed(110), harmed(170)];
    let cut = [good[..good.len() - 1].to_vec(), [&good[..], &[0]].concat(), Vec::new()];
    for (n, bytes) in (0..).zip(bad.into_iter().chain(cut)) {
        std::fs::write(&path, &bytes).unwrap();
        finds(&open(&server.url(), cache(&folder)).await, "key-2", "person 2").await;
        let now = std::fs::read(&path).unwrap();
        assert!(now.len() == good.len() && now[48..80] != good[48..80], "other keys");
        assert_eq!(server.stats.keys().registered, n + 2);
    }
    // Public keys alone are harmed: that is noticed when they are registered again.
    let now = std::fs::read(&path).unwrap();
    let mut harmed = now.clone();
    *harmed.last_mut().unwrap() ^= 1;
    harmed[144] = 0;
    std::fs::write(&path, &harmed).unwrap();
    finds(&open(&server.url(), cache(&folder)).await, "key-3", "person 3").await;
    assert_ne!(std::fs::read(&path).unwrap()[48..80], now[48..80]);
}

#[tokio::test]
async fn keys_are_replaced_after_so_many_queries_whatever_came_of_them() {
    let (made, dir) = (made(), tempfile::tempdir().unwrap());
    let liar = Made { records: made.records.wrong(9), ..made.clone() };
    let mut seen = Vec::new();
    for made in [&made, &liar] {
        let server = Running::start_with(in_folder(&dir.path().join("server")), &[made]).await;
        let folder = tempfile::tempdir().unwrap();
        let rotate_after = Rotation { queries: 3, ..Rotation::default() };
        let options = |cache| Options { cache, rotate_after, ..Options::default() };
        for cache in [cache(folder.path()), CacheDir::None] {
            let mut before = None::<Vec<u8>>;
            let table = open_with(&server.url(), options(cache.clone())).await.unwrap();
            for key in 0..7 {
                let _ = table.get(format!("key-{key}")).await;
                if key % 3 == 0 && cache != CacheDir::None {
                    let now = std::fs::read(key_file(folder.path())).unwrap();
                    let secret = now[160..192].to_vec();
                    assert_ne!(Some(&secret), before.as_ref(), "another secret");
                    before = Some(secret);
                }
            }
        }
        let keys = server.stats.keys();
        assert_eq!((keys.registered, keys.unknown), (6, 0));
        let part = server.stats.part("people", PartKind::Records);
        seen.push((part.requests, part.queries, part.bytes_in));
        server.stop().await;
    }
    assert_eq!(seen[0], seen[1], "a server sees the same, right or wrong");
}

/// A table that is built anew under another scheme keeps nobody from going on in the epoch before, with new keys, too.
#[tokio::test]
async fn keys_of_an_epoch_are_registered_while_it_is_held() {
    let made = made();
    let next = keyed("people", 2, crate::common::simple(), 5, &people(41));
    let server = Running::start(&[&made]).await;
    let rotate_after = Rotation { queries: 2, ..Rotation::default() };
    let options = Options { cache: CacheDir::None, rotate_after, ..Options::default() };
    let table = open_with(&server.url(), options).await.unwrap();
    finds(&table, "key-0", "person 0").await;
    server.handle.publish(next.place()).unwrap();
    for key in 1..6 {
        finds(&table, &format!("key-{key}"), &format!("person {key}")).await;
    }
    assert_eq!((table.description().epoch(), server.stats.keys().registered), (1, 3));
    let table = table.refresh().await.unwrap();
    finds(&table, "key-40", "person 40").await;
    assert_eq!(table.description().epoch(), 2);
}

/// A request with more queries than keys are for has keys of its own.
#[tokio::test]
async fn a_request_is_never_split_over_keys() {
    let made = made();
    let server = Running::start(&[&made]).await;
    let rotate_after = Rotation { queries: 3, ..Rotation::default() };
    let options = Options { cache: CacheDir::None, rotate_after, ..Options::default() };
    let table = open_with(&server.url(), options).await.unwrap();
    let keys: Vec<String> = (0..10).map(|i| format!("key-{i}")).collect();
    for _ in 0..2 {
        let got = table.get_many(&keys).await.unwrap();
        assert_eq!(first(&got[9]), text("person 9"));
    }
    assert_eq!(server.stats.keys().registered, 2);
}

#[tokio::test]
async fn clients_with_one_cache_share_their_keys() {
    let (made, dir) = (made(), tempfile::tempdir().unwrap());
    let server = Running::start(&[&made]).await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..4 {
        // A connection and a state of its own each, as processes have.
        let (url, place) = (server.url(), cache(dir.path()));
        tasks.spawn(async move {
            let table = open(&url, place).await;
            for key in 0..5 {
                let key = 5 * n + key;
                finds(&table, &format!("key-{key}"), &format!("person {key}")).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let keys = server.stats.keys();
    assert_eq!((keys.registered, keys.again), (1, 0), "one registers for all");
    let bytes = std::fs::read(key_file(dir.path())).unwrap();
    assert_eq!(u64::from_le_bytes(bytes[136..144].try_into().unwrap()), 20, "their queries count together");

    // What is cleared is gone, and the next lookup makes others.
    let place = cache(dir.path());
    assert_eq!(place.list().unwrap().iter().filter(|file| file.name.ends_with(".keys")).count(), 1);
    place.clear(false).unwrap();
    assert!(place.list().unwrap().is_empty());
    finds(&open(&server.url(), place).await, "key-1", "person 1").await;
    assert_eq!(server.stats.keys().registered, 2);
}

#[tokio::test]
async fn what_is_no_keys_is_refused_and_disturbs_nobody() {
    let made = made();
    let rows: Vec<Vec<Value>> = (0..9).map(|i| vec![Value::Int(i)]).collect();
    let simple = unkeyed("simple", 1, crate::common::simple(), &rows);
    let server = Running::start(&[&made, &simple]).await;
    let raw = Raw::of(&server, &made).await;
    let good = raw.keys();
    let digest = raw.register(&good).await.unwrap();
    let request = |keys: &[u8]| raw.registration(keys.to_vec());
    let mut flipped = good.public.clone();
    flipped[3] ^= 1;
    let mut of_others = request(&good.public);
    of_others.keys_params = vec![7; 32].into();
    let (mut of_none, mut no_part) = (request(&good.public), request(&good.public));
    of_none.table = "simple".into();
    no_part.part = 3;
    let cases = [
        (request(&good.public[1..]), Code::InvalidArgument, 400, "wrong-keys", "keys of 63 B"),
        (request(&[&good.public[..], &[0]].concat()), Code::InvalidArgument, 400, "wrong-keys", "have 64 B"),
        (request(&[]), Code::InvalidArgument, 400, "wrong-keys", "keys of 0 B"),
        (request(&flipped), Code::InvalidArgument, 400, "wrong-keys", "does not follow"),
        (of_others, Code::FailedPrecondition, 409, "wrong-parameters", "open the table again"),
        (of_none, Code::FailedPrecondition, 409, "wrong-parameters", "of table simple"),
        (no_part, Code::NotFound, 404, "unknown-part", "no part changes"),
        (request(&vec![0; 100 << 20]), Code::OutOfRange, 413, "too-large", ""),
    ];
    for (request, code, status, why, words) in cases {
        let refused = raw.grpc.clone().register_keys(request.clone()).await.unwrap_err();
        assert_eq!(refused.code(), code, "{refused}");
        assert!(refused.message().contains(words), "{refused}");
        if status != 413 {
            assert_eq!(reason(&refused), why);
        }
        let (got, head, body) = http(server.address, "POST /v1/keys", &request.encode_to_vec()).await;
        assert_eq!(got, status, "{head} {}", String::from_utf8_lossy(&body));
        assert!(head.contains(&format!("{REASON_HEADER}: {why}")), "{head}");
    }
    let (status, ..) = http(server.address, "POST /v1/keys", &request(&good.public).encode_to_vec()).await;
    assert_eq!(status, 200);
    let keys = server.stats.keys();
    assert_eq!((keys.registered, keys.again, keys.sets), (1, 1, 1), "nothing of it is kept");
    assert_eq!(keys.refused, 8, "lengths and bytes, on both ways");

    // Queries that name no keys, none of these, or some where there are none.
    for bad in [&[][..], &digest[1..], &[9; 32]] {
        let refused = raw.ask(&good, bad).await.unwrap_err();
        assert_eq!(
            (refused.code(), reason(&refused)),
            (Code::FailedPrecondition, "unknown-keys"),
            "{refused}"
        );
    }
    let under = proto::QueryRequest {
        table: "simple".into(),
        epoch: 1,
        part: proto::PartKind::Records.into(),
        table_digest: simple.description.digest().to_vec().into(),
        queries: vec![0; simple.description.records().params.query_bytes()].into(),
        keys: digest.to_vec().into(),
    };
    assert_eq!(reason(&raw.grpc.clone().query(under).await.unwrap_err()), "wrong-keys");
    assert!(raw.ask(&good, &digest).await.is_ok());
}

/// Keys are public: whoever names them may be answered under them, and only their owner can read the answer.
#[tokio::test]
async fn answers_under_another_s_keys_are_for_their_owner() {
    let made = made();
    let server = Running::start(&[&made]).await;
    let raw = Raw::of(&server, &made).await;
    let (mine, others) = (raw.keys(), raw.keys());
    let (my_digest, their_digest) =
        (raw.register(&mine).await.unwrap(), raw.register(&others).await.unwrap());
    let right = raw.ask(&mine, &my_digest).await.unwrap();
    assert_eq!(raw.ask(&others, &their_digest).await.unwrap(), right);
    assert_ne!(raw.ask(&mine, &their_digest).await.unwrap(), right);
}

#[tokio::test]
async fn keys_that_nobody_uses_expire() {
    let (made, dir) = (made(), tempfile::tempdir().unwrap());
    let now = Arc::new(AtomicU64::new(1_000_000));
    let time = now.clone();
    let keys = KeysConfig {
        folder: Some(dir.path().to_owned()),
        expire: Duration::from_secs(100),
        clock: Clock::new(move || time.load(Ordering::Relaxed)),
        ..KeysConfig::default()
    };
    let server = Running::start_with(with(keys.clone()), &[&made]).await;
    let raw = Raw::of(&server, &made).await;
    let (used, unused) = (raw.keys(), raw.keys());
    let (used_digest, unused_digest) =
        (raw.register(&used).await.unwrap(), raw.register(&unused).await.unwrap());
    now.fetch_add(80, Ordering::Relaxed);
    raw.ask(&used, &used_digest).await.unwrap();
    now.fetch_add(80, Ordering::Relaxed);
    assert_eq!(reason(&raw.ask(&unused, &unused_digest).await.unwrap_err()), "unknown-keys");
    raw.ask(&used, &used_digest).await.unwrap();
    // The next registration finds it gone, if time didn't.
    raw.register(&raw.keys()).await.unwrap();
    let stats = server.stats.keys();
    assert_eq!((stats.expired, stats.sets), (1, 2));
    drop(raw);
    server.stop().await;
    // When keys were used is remembered.
    now.fetch_add(90, Ordering::Relaxed);
    let server = Running::start_with(with(keys), &[&made]).await;
    let raw = Raw::of(&server, &made).await;
    raw.ask(&used, &used_digest).await.unwrap();
    now.fetch_add(110, Ordering::Relaxed);
    assert_eq!(reason(&raw.ask(&used, &used_digest).await.unwrap_err()), "unknown-keys");
}

#[tokio::test]
async fn a_client_has_its_share_of_keys() {
    let made = made();
    let keys =
        KeysConfig { count: 10, count_per_client: Some(2), per_minute: Some(4), ..KeysConfig::default() };
    let server = Running::start_with(with(keys), &[&made]).await;
    let raw = Raw::of(&server, &made).await;
    let sets: Vec<KeySet> = (0..4).map(|_| raw.keys()).collect();
    let mut digests = Vec::new();
    for set in &sets {
        digests.push(raw.register(set).await.unwrap());
    }
    let stats = server.stats.keys();
    assert_eq!((stats.registered, stats.evicted, stats.sets), (4, 2, 2), "its own go, and nobody's else");
    for (i, (set, digest)) in sets.iter().zip(&digests).enumerate() {
        assert_eq!(raw.ask(set, digest).await.is_ok(), i >= 2, "{i}");
    }
    // However slow this machine is, some come back in time and not all.
    let refused = loop {
        if let Err(refused) = raw.register(&raw.keys()).await {
            break refused;
        }
    };
    assert_eq!(reason(&refused), "too-many");
    assert!(refused.message().contains("4 registrations of keys a minute"), "{refused}");
}

#[tokio::test]
async fn a_damaged_file_of_the_server_is_nobody_s_keys() {
    let (made, dir) = (made(), tempfile::tempdir().unwrap());
    let place = dir.path().join("server");
    let server = Running::start_with(in_folder(&place), &[&made]).await;
    let raw = Raw::of(&server, &made).await;
    let keys = raw.keys();
    let digest = raw.register(&keys).await.unwrap();
    drop(raw);
    server.stop().await;
    let name = format!("{}.keys", blake3::Hash::from_bytes(digest).to_hex());
    let mut bytes = std::fs::read(place.join(&name)).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(place.join(&name), bytes).unwrap();
    let server = Running::start_with(in_folder(&place), &[&made]).await;
    let raw = Raw::of(&server, &made).await;
    assert_eq!(reason(&raw.ask(&keys, &digest).await.unwrap_err()), "unknown-keys");
    let stats = server.stats.keys();
    assert_eq!((stats.damaged, stats.sets), (1, 0));
    assert!(!place.join(name).exists());
    raw.register(&keys).await.unwrap();
    assert!(raw.ask(&keys, &digest).await.is_ok());
}

#[tokio::test]
async fn a_folder_has_one_server() {
    let (made, dir) = (made(), tempfile::tempdir().unwrap());
    let _server = Running::start_with(in_folder(dir.path()), &[&made]).await;
    let second = blindcore_server::Server::bind(in_folder(dir.path()), vec![made.place()]).await;
    let error = second.err().unwrap().to_string();
    assert!(error.contains("another server uses it") && error.contains("--keys-dir"), "{error}");
    let small = with(KeysConfig { bytes: 63, bytes_per_client: Some(63), ..KeysConfig::default() });
    let error = blindcore_server::Server::bind(small, vec![made.place()]).await.err().unwrap().to_string();
    assert!(error.contains("keys_mib") && error.contains("at least 64"), "{error}");
}

#[tokio::test]
async fn metrics_say_what_became_of_keys() {
    let made = made();
    let config = Config { metrics: Some(([127, 0, 0, 1], 0).into()), ..config() };
    let server = Running::start_with(config, &[&made]).await;
    finds(&open(&server.url(), CacheDir::None).await, "key-1", "person 1").await;
    let (_, _, body) = http(server.metrics.unwrap(), "GET /metrics", b"").await;
    let text = String::from_utf8(body).unwrap();
    for line in [
        "blindcore_keys_registered_total 1",
        "blindcore_keys_unknown_total 0",
        "blindcore_keys_evicted_total 0",
        "blindcore_keys_expired_total 0",
        "blindcore_keys_refused_total 0",
        "blindcore_keys 1",
        "blindcore_keys_bytes 64",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} in {text}");
    }
}

const KILLED: &str = "BLINDCORE_TEST_KEYS_DIR";

/// No test but what the next one starts as a process of its own, and kills.
#[tokio::test]
async fn server_that_is_killed() {
    let Some(folder) = std::env::var_os(KILLED) else { return };
    let per_minute = None;
    let keys = KeysConfig { folder: Some(folder.into()), per_minute, ..KeysConfig::default() };
    let server = Running::start_with(with(keys), &[&made()]).await;
    #[allow(clippy::print_stdout, reason = "it tells the test that started it")]
    {
        println!("\nlistening {}", server.address);
    }
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_kill_9() {
    let (made, dir) = (made(), tempfile::tempdir().unwrap());
    let mut acknowledged = Vec::new();
    for round in 1..=2 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["registered::server_that_is_killed", "--exact", "--nocapture"])
            .env(KILLED, dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.find_map(|line| line.unwrap().strip_prefix("listening ").map(str::to_owned));
        let url = format!("http://{}", address.expect("it says where it listens"));
        let grpc = LookupClient::connect(url).await.unwrap();
        let (done, mut finished) = tokio::sync::mpsc::unbounded_channel();
        for _ in 0..4 {
            let raw =
                Raw { grpc: grpc.clone(), made: made.clone(), params: made.description.records().params };
            let done = done.clone();
            tokio::spawn(async move {
                loop {
                    let keys = raw.keys();
                    let Ok(digest) = raw.register(&keys).await else { return };
                    let _ = done.send((keys, digest));
                }
            });
        }
        drop(done);
        while acknowledged.len() < 12 * round {
            acknowledged.push(finished.recv().await.expect("it registers"));
        }
        // While others are on their way.
        child.kill().unwrap();
        child.wait().unwrap();
        while let Some(more) = finished.recv().await {
            acknowledged.push(more);
        }
    }
    let server = Running::start_with(in_folder(dir.path()), &[&made]).await;
    let raw = Raw::of(&server, &made).await;
    let mut slots = HashSet::new();
    for (keys, digest) in &acknowledged {
        slots.insert(raw.ask(keys, digest).await.expect("it was acknowledged"));
    }
    assert_eq!(slots.len(), 1, "all come to the same slot");
    let stats = server.stats.keys();
    assert_eq!((stats.unknown, stats.damaged), (0, 0));
    assert!(stats.sets >= acknowledged.len() as u64);
}
