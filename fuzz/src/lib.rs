//! What the fuzz targets share: a small database, made once a process, and files to put inputs in.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use blindcore_accel::{Device, SharedBytes};
use blindcore_accel_cpu::Cpu;
use blindcore_lookup::{Client, Geometry, Params, SchemeChoice, Server, preprocess, schemes};
use blindcore_server::Part;
use blindcore_store::{BuildOptions, SourceSpec, Stored, StoredPart, build, codec};
use tempfile::TempDir;

/// A folder of this process. Statics are never dropped, so it lies under `target/`, where `scripts/fuzz.sh`
/// sweeps.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tmp");
    std::fs::create_dir_all(&base).unwrap();
    tempfile::tempdir_in(base).unwrap()
});

/// A file of this process.
pub fn file(name: &str) -> PathBuf {
    FOLDER.path().join(name)
}

/// The CPU, on one thread.
pub static DEVICE: LazyLock<Device> = LazyLock::new(|| Cpu::with_threads("cpu", 1).unwrap());

/// A database of 40 rows with keys, and a directory of them.
pub static DATABASE: LazyLock<PathBuf> = LazyLock::new(|| {
    let source = file("towns.csv");
    let rows: String = (0..40).map(|i| format!("k{i},town {i},{}\n", i * i)).collect();
    std::fs::write(&source, format!("id,town,people\n{rows}")).unwrap();
    let out = file("towns.db");
    let options = BuildOptions {
        key: Some("id".into()),
        scheme: SchemeChoice::Only(schemes::find("simple").unwrap()),
        proofs: blindcore_store::ProofChoice::With,
        memory: 1 << 20,
        ..BuildOptions::new(SourceSpec::parse(source.to_str().unwrap()).unwrap(), out.clone())
    };
    build(&options, &*DEVICE, &mut ()).unwrap();
    out
});

/// A part, served.
pub fn serve(part: &StoredPart) -> Server {
    Server::new(part.params, &*DEVICE, part.operands()).unwrap()
}

/// A database, as the server crate takes it; none where its description is refused.
pub fn table(stored: &Stored) -> Option<blindcore_server::Table> {
    let description = stored.description().ok()?;
    let parts = stored.parts().map(|(kind, p)| (kind, Part::new(serve(p), p.hint.clone())));
    Some(blindcore_server::Table::new(description, parts).unwrap())
}

/// A table of 15 records of a byte, served, and a client of it.
pub fn tiny(scheme: &str) -> (Server, Client) {
    small(scheme, Geometry { record_bytes: 1, groups: 3, columns: 5 })
}

/// A table of these sizes, served, and a client of it.
pub fn small(scheme: &str, geometry: Geometry) -> (Server, Client) {
    let params = Params::new(schemes::find(scheme).unwrap(), geometry).unwrap();
    let mut database = params.database_buffer();
    let slots: Vec<u8> = (0..geometry.record_bytes * geometry.columns).map(|i| i as u8).collect();
    for group in 0..geometry.groups {
        blindcore_lookup::pack_group(&params, group, &slots, &mut database);
    }
    let database: Vec<SharedBytes> = vec![Arc::new(database)];
    let mut hint = vec![0u8; params.hint_bytes() as usize];
    let derived = preprocess(&params, &*DEVICE, database.clone(), &mut hint, &mut ());
    let derived = derived.unwrap().into_iter().map(|operand| vec![Arc::new(operand) as SharedBytes]);
    let operands = std::iter::once(database).chain(derived).collect();
    (Server::new(params, &*DEVICE, operands).unwrap(), Client::new(params, Arc::new(hint)).unwrap())
}

/// Reads up to 1,000 rows of a source and takes each through the codec.
pub fn drain(spec: &str) {
    let Ok(mut source) = SourceSpec::parse(spec).unwrap().open(None) else { return };
    let columns = source.columns().len();
    for _ in 0..1000 {
        let Ok(Some(row)) = source.next_row() else { return };
        assert_eq!(row.values.len(), columns);
        let mut record = Vec::new();
        codec::encode_record(&row.values, &mut record);
        let read = codec::decode_record(&record, columns).unwrap();
        let mut again = Vec::new();
        codec::encode_record(&read, &mut again);
        assert_eq!(record, again); // bytes, because NaN is not itself
        let _ = codec::encode_key(&row.values[0]);
    }
}

/// Splits the first byte off.
pub fn byte(data: &[u8]) -> (u8, &[u8]) {
    data.split_first().map_or((0, data), |(first, rest)| (*first, rest))
}

/// A server of [`DATABASE`] on a free port of this machine, and the runtime that it runs on.
pub static RUNNING: LazyLock<(tokio::runtime::Runtime, std::net::SocketAddr)> = LazyLock::new(|| {
    use std::time::Duration;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let config = blindcore_server::Config {
        listen: ([127, 0, 0, 1], 0).into(),
        header_timeout: Duration::from_millis(500),
        request_bytes: 1 << 20,
        memory_bytes: 4 << 20,
        ..blindcore_server::Config::default()
    };
    let table = table(&Stored::open(&DATABASE).unwrap()).unwrap();
    let server = runtime.block_on(blindcore_server::Server::bind(config, vec![table])).unwrap();
    let address = server.address();
    runtime.spawn(server.run(std::future::pending()));
    (runtime, address)
});
