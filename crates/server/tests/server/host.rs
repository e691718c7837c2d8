//! A folder, served by a library user.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use blindcore_accel::Device;
use blindcore_accel_cpu::Cpu;
use blindcore_server::{Host, HostError, MemoryLimit};
use blindcore_store::{BuildOptions, SourceSpec, UpdateOptions, build, update};
use blindcore_units::{Progress, Unit};

fn device() -> Device {
    Cpu::with_threads("cpu", 1).unwrap()
}

/// A small table, and a change of it.
fn folder(dir: &Path) -> UpdateOptions {
    std::fs::write(dir.join("t.csv"), "id,v\na,1\nb,2\nc,3\n").unwrap();
    std::fs::write(dir.join("changes.csv"), "id,v\nb,20\n").unwrap();
    let spec = |name: &str| SourceSpec::parse(dir.join(name).to_str().unwrap()).unwrap();
    let options =
        BuildOptions { key: Some("id".into()), ..BuildOptions::new(spec("t.csv"), dir.join("t.db")) };
    build(&options, &device(), &mut ()).unwrap();
    UpdateOptions::new(options.out, spec("changes.csv"))
}

fn ask(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_served_and_its_next_epoch_is_taken_up() {
    let dir = tempfile::tempdir().unwrap();
    let changes = folder(dir.path());
    let host = Host::builder()
        .table_dir(dir.path().join("t.db"))
        .device(device())
        .listen("127.0.0.1:0".parse().unwrap())
        .open()
        .unwrap();
    let server = host.bind().await.unwrap();
    let (address, reloader) = (server.address(), server.reloader());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async {
        let _ = stopped.await;
    }));
    let epoch = move || ask(address, "/v1/tables");
    tokio::task::spawn_blocking(move || {
        assert!(epoch().contains("\"epoch\":1"), "{}", epoch());
        update(&changes, &device(), &mut ()).unwrap();
        // Nobody needs to say so, but it is sooner then.
        reloader.reload().unwrap();
        while !epoch().contains("\"epoch\":2") {
            std::thread::yield_now();
        }
        stop.send(()).unwrap();
        reloader
    })
    .await
    .unwrap()
    .reload()
    .unwrap();
    assert_eq!(running.await.unwrap(), 0);
}

/// A port in use is noticed before the database is opened, and nobody gets in before it is.
#[test]
fn an_address_is_taken_before_anything_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let open = |address: SocketAddr| {
        let host = Host::builder().table_dir(dir.path().join("t.db")).device(device());
        let loaded = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let host = host.listen(address).progress(Loads(loaded.clone())).open();
        (host, loaded.load(std::sync::atomic::Ordering::Relaxed))
    };
    let (refused, loaded) = open(taken.local_addr().unwrap());
    let refused = refused.map(drop).unwrap_err().to_string();
    assert!(refused.contains("can't listen on 127.0.0.1:") && !loaded, "{refused}");
    let address = taken.local_addr().unwrap();
    drop(taken);
    let (host, loaded) = open(address);
    assert!(host.is_ok() && loaded);
    assert!(TcpStream::connect(address).is_err(), "it does not listen yet");
}

/// Whether anything was loaded.
struct Loads(std::sync::Arc<std::sync::atomic::AtomicBool>);

impl Progress for Loads {
    fn at(&mut self, _: &str, _: u64, _: Option<u64>, _: Unit) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn what_cannot_be_served_says_why() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path());
    let open = |host: blindcore_server::HostBuilder| host.open().map(drop).unwrap_err();
    let table = || Host::builder().table_dir(dir.path().join("t.db"));
    assert!(matches!(open(table()), HostError::NoDevice));
    assert!(matches!(open(Host::builder().device(device()).table_dir("nowhere")), HostError::Store(_)));
    let twice = table().table_dir(dir.path().join("t.db")).device(device());
    assert!(open(twice).to_string().contains("two tables are called t"));
    let error = open(table().device(device()).tokens_file("no.tokens")).to_string();
    assert!(error.contains("no.tokens"), "{error}");
    let small = MemoryLimit::Set { bytes: 1 << 20, by: "the test" };
    assert!(open(table().device(device()).memory(small)).to_string().contains("memory for requests"));
}
