//! Databases built from servers that the tests start: PostgreSQL and MariaDB, of Debian's packages, on loopback.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says why")]

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::following::in_order;
use crate::postgres_tables::{followed, keys_of_types, texts_followed};
use blindcore_accel_cpu::Cpu;
use blindcore_store::stages::READING;
use blindcore_store::{BuildOptions, Manifest, SourceError, SourceSpec, StoreError, Value, build};
use mysql::prelude::Queryable;
use tempfile::TempDir;

/// The user nobody: servers refuse to run as root.
const NOBODY: u32 = 65534;
const PASSWORD: &str = "s3cret@/:?";
const ENCODED: &str = "s3cret%40%2F%3A%3F";
const PATIENCE: Duration = Duration::from_secs(60);

/// A server, ended with its value.
struct Server {
    child: Child,
    port: u16,
    dir: TempDir,
}

impl Server {
    /// Makes a folder for a server, with a certificate, its key and who signed it.
    fn folder() -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let ca = authority.self_signed(&key).unwrap();
        let issuer = rcgen::Issuer::new(authority, key);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        for (name, text) in [
            ("ca.pem", ca.pem()),
            ("server.pem", certificate.pem()),
            ("server.key", key.serialize_pem()),
            ("password", PASSWORD.to_owned()),
        ] {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            if is_root() {
                chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        if is_root() {
            chown(dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        dir
    }

    /// A program in that folder, by a user who is not root.
    fn command(dir: &TempDir, program: &Path) -> Command {
        let mut command = Command::new(program);
        let log = File::options().create(true).append(true).open(dir.path().join("log")).unwrap();
        command.current_dir(dir).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        command.env("HOME", dir.path()).env("LC_ALL", "C");
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    fn at(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// A server that takes connections. Somebody may take the port before the server does: it gets another then.
    fn start(dir: TempDir, spawn: impl Fn(&TempDir, u16) -> Child, ready: impl Fn(&Self) -> bool) -> Self {
        let port = free_port();
        let mut server = Self { child: spawn(&dir, port), port, dir };
        for _ in 0..5 {
            if server.wait(&ready) {
                return server;
            }
            server.port = free_port();
            server.child = spawn(&server.dir, server.port);
        }
        panic!("the server ends: {}", fs::read_to_string(server.dir.path().join("log")).unwrap_or_default());
    }

    /// Waits until the server takes connections; false where it ended.
    fn wait(&mut self, ready: impl Fn(&Self) -> bool) -> bool {
        let started = Instant::now();
        while !ready(self) {
            let log = || fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            assert!(started.elapsed() < PATIENCE, "the server doesn't start: {}", log());
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            std::thread::park_timeout(Duration::from_millis(50));
        }
        true
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // At once, and with its children: what SIGKILL would not do for PostgreSQL.
        let _ = Command::new("kill").args(["-QUIT", &self.child.id().to_string()]).status();
        let started = Instant::now();
        while self.child.try_wait().is_ok_and(|status| status.is_none()) {
            if started.elapsed() > Duration::from_secs(5) {
                let _ = self.child.kill();
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// A port that was free just now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A program, where packages put it or on the path.
fn find(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = folders.iter().cloned().chain(std::env::split_paths(&path));
    all.map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Whether a test goes on; where it doesn't, it says so.
fn found(program: Option<PathBuf>, package: &str) -> Option<PathBuf> {
    if program.is_none() {
        eprintln!("skipped: {package} is not installed; scripts/test_servers.sh --install installs it");
    }
    program
}

fn postgres() -> Option<Server> {
    let mut folders: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|entries| entries.map(|entry| entry.unwrap().path().join("bin")).collect())
        .unwrap_or_default();
    folders.sort();
    let initdb = found(find("initdb", &folders), "postgresql")?;
    let dir = Server::folder();
    let made = Server::command(&dir, &initdb)
        .args(["-D", "data", "-U", "tester", "-E", "UTF8", "--locale=C", "--auth=scram-sha-256", "--no-sync"])
        .arg("--pwfile=password")
        .status()
        .unwrap();
    assert!(made.success(), "{}", fs::read_to_string(dir.path().join("log")).unwrap());
    let spawn = |dir: &TempDir, port: u16| {
        Server::command(dir, &initdb.with_file_name("postgres"))
            .args([
                "-D",
                "data",
                "-h",
                "127.0.0.1",
                "-p",
                &port.to_string(),
                "-k",
                dir.path().to_str().unwrap(),
            ])
            .args([
                "-c",
                "fsync=off",
                "-c",
                "autovacuum=off",
                "-c",
                "ssl=on",
                "-c",
                "ssl_cert_file=../server.pem",
            ])
            .args(["-c", "ssl_key_file=../server.key", "-c", "TimeZone=Asia/Tokyo", "-c", "DateStyle=German"])
            .spawn()
            .unwrap()
    };
    Some(Server::start(dir, spawn, |server| pg(server).is_some()))
}

fn pg(server: &Server) -> Option<postgres::Client> {
    let mut config = postgres::Config::new();
    config.host("127.0.0.1").port(server.port).user("tester").password(PASSWORD).dbname("postgres");
    config.connect(postgres::NoTls).ok()
}

fn mariadb() -> Option<Server> {
    let folders = ["/usr/sbin", "/usr/bin", "/usr/local/bin"].map(PathBuf::from);
    let install = found(find("mariadb-install-db", &folders), "mariadb-server")?;
    let daemon = found(find("mariadbd", &folders), "mariadb-server")?;
    let dir = Server::folder();
    let data = format!("--datadir={}", dir.path().join("data").display());
    let made = Server::command(&dir, &install)
        .args(["--no-defaults", &data, "--skip-test-db", "--auth-root-authentication-method=normal"])
        .status()
        .unwrap();
    assert!(made.success(), "{}", fs::read_to_string(dir.path().join("log")).unwrap());
    let spawn = |dir: &TempDir, port: u16| {
        Server::command(dir, &daemon)
            .args(["--no-defaults", &data, "--bind-address=127.0.0.1", &format!("--port={port}")])
            .arg(format!("--socket={}", dir.path().join("socket").display()))
            .args(["--ssl-cert=../server.pem", "--ssl-key=../server.key", "--ssl-ca=../ca.pem"])
            .args(["--skip-name-resolve", "--default-time-zone=+09:00", "--max-allowed-packet=128M"])
            .spawn()
            .unwrap()
    };
    let server = Server::start(dir, spawn, |server| my(server, "root", "", "").is_some());
    let mut root = my(&server, "root", "", "").unwrap();
    root.query_drop("CREATE DATABASE app CHARACTER SET utf8mb4").unwrap();
    root.query_drop(format!("CREATE USER tester@'%' IDENTIFIED BY '{PASSWORD}'")).unwrap();
    root.query_drop("GRANT ALL ON app.* TO tester@'%'").unwrap();
    Some(server)
}

fn my(server: &Server, user: &str, password: &str, database: &str) -> Option<mysql::Conn> {
    let options = mysql::OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(server.port)
        .prefer_socket(false)
        .user(Some(user))
        .pass((!password.is_empty()).then_some(password))
        .db_name((!database.is_empty()).then_some(database));
    mysql::Conn::new(options).ok()
}

/// Whether a build of one may be told from the other: a table without keys has no salt, so equal rows are equal bytes.
fn matrix(manifest: &Manifest) -> (Vec<String>, u64, Vec<&str>) {
    let shards = manifest.records.shards.iter().map(|shard| shard.blake3.as_str());
    (manifest.values.clone(), manifest.rows, shards.collect())
}

fn options(dir: &Path, spec: &str) -> BuildOptions {
    BuildOptions {
        name: Some("t".into()),
        proofs: blindcore_store::ProofChoice::Without,
        force: true,
        memory: 1 << 20,
        ..BuildOptions::new(SourceSpec::parse(spec).unwrap(), dir.join("db"))
    }
}

fn built(spec: &str) -> Result<Manifest, StoreError> {
    let dir = tempfile::tempdir().unwrap();
    let device = Cpu::with_threads("cpu", 2).unwrap();
    let built = build(&options(dir.path(), spec), &device, &mut ());
    if built.is_err() {
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left of {spec}");
    }
    built
}

fn rows(spec: &str, wanted: &[&str]) -> Result<Vec<Vec<Value>>, SourceError> {
    let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
    let mut source = SourceSpec::parse(spec)?.open((!wanted.is_empty()).then_some(&wanted))?;
    let mut rows = Vec::new();
    while let Some(row) = source.next_row()? {
        rows.push(row.values);
        assert_eq!(row.line, rows.len() as u64);
    }
    Ok(rows)
}

/// Texts that formats trip over, the same on every run.
static TEXTS: LazyLock<Vec<[String; 3]>> = LazyLock::new(|| {
    let odd = [
        "",
        "\\",
        "\\N",
        "\\.",
        "a\tb",
        "a\nb\r",
        "\"quoted\"",
        "'",
        "NULL",
        "é€😀",
        "%_",
        " x ",
        "\u{1}\u{7f}",
        "{1,2}",
    ];
    (0..3000)
        .map(|i| [format!("k{i:05}"), odd[i % odd.len()].repeat(1 + i % 3), "x".repeat(i % 97)])
        .collect()
});

/// The rows as files, and what databases must equal.
fn files(dir: &Path) -> (String, String) {
    let csv = dir.join("t.csv");
    let mut writer = csv::Writer::from_path(&csv).unwrap();
    writer.write_record(["id", "odd", "note"]).unwrap();
    TEXTS.iter().for_each(|row| writer.write_record(row).unwrap());
    writer.flush().unwrap();
    let parquet = dir.join("t.parquet");
    write_parquet(&parquet);
    (csv.to_str().unwrap().to_owned(), parquet.to_str().unwrap().to_owned())
}

fn write_parquet(path: &Path) {
    use parquet::data_type::{ByteArray, ByteArrayType};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    let schema =
        "message t { required binary id (UTF8); optional binary odd (UTF8); required binary note (UTF8); }";
    let schema = parquet::schema::parser::parse_message_type(schema).unwrap();
    let properties = WriterProperties::builder().set_data_page_row_count_limit(500).build();
    let mut writer =
        SerializedFileWriter::new(File::create(path).unwrap(), schema.into(), properties.into()).unwrap();
    for rows in TEXTS.chunks(1100) {
        let mut group = writer.next_row_group().unwrap();
        for column in 0..3 {
            let mut next = group.next_column().unwrap().unwrap();
            let values: Vec<ByteArray> = rows.iter().map(|row| row[column].as_str().into()).collect();
            let levels = vec![1; rows.len()];
            let levels = (column == 1).then_some(levels.as_slice());
            next.typed::<ByteArrayType>().write_batch(&values, levels, None).unwrap();
            next.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
}

#[test]
fn parquet_equals_csv() {
    let dir = tempfile::tempdir().unwrap();
    let (csv, parquet) = files(dir.path());
    assert_eq!(matrix(&built(&parquet).unwrap()), matrix(&built(&csv).unwrap()));
}

/// As a table, ordered by its key, and as a query: what CSV makes of the same rows. The table's database stays in `db`.
fn equals_csv(dir: &Path, url: &dyn Fn(&str) -> String) {
    let csv = built(&files(dir).0).unwrap();
    let query = built(&url("query=SELECT id, odd, note FROM plain ORDER BY id; ")).unwrap();
    assert_eq!(matrix(&query), matrix(&csv));
    let mut table = options(dir, &url("table=plain"));
    table.values = Some(["id", "odd", "note"].map(str::to_owned).to_vec());
    let device = Cpu::with_threads("cpu", 2).unwrap();
    let table = build(&table, &device, &mut ()).unwrap();
    assert_eq!(matrix(&table), matrix(&csv));
}

/// What each server's test refuses: a spec and words of the message.
fn refused(spec: &str, words: &[&str]) {
    let error = built(spec).expect_err(spec).to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(words.iter().all(|word| error.contains(word)), "{spec}: {error}");
    assert!(!error.contains("s3cret"), "{error}");
}

#[test]
fn postgresql() {
    let Some(server) = postgres() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut client = pg(&server).unwrap();
    client
        .batch_execute(
            "CREATE TABLE plain (note text, odd text, id text PRIMARY KEY);
             CREATE SCHEMA \"S p\"; CREATE TABLE \"S p\".\"T.\"\"t\" (a int);
             INSERT INTO \"S p\".\"T.\"\"t\" VALUES (7);
             CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN small AS int CHECK (VALUE < 10);
             CREATE TYPE pair AS (a int, b int);
             CREATE TABLE typed (b bool, i2 int2, i8 int8, f4 float4, f8 float8, n numeric, t text, c char(4), y bytea,
                j json, jb jsonb, u uuid, d date, ti time, ts timestamp, tz timestamptz, iv interval, m mood, s small,
                a int[], ta text[], r int4range, ip inet, mo money, v varbit, p point);
             INSERT INTO typed VALUES (true, -3, 9223372036854775807, 0.1, 1e300, 123456789012345678901234567890.50, 'é',
                'ab', '\\x00ff5c', '{\"b\": 1, \"a\": [1.5, null]}', '18446744073709551615',
                'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '2024-02-29', '04:05:06.7', '2024-02-29 23:59:59.5',
                '2024-02-29 23:59:59+09', '1 day 02:00', 'ok', 5, '{1,NULL,3}', '{\"a b\",\"\\\\\"}', '[1,5)',
                '10.0.0.1', 12.5, B'101', '(1,2)'),
                (NULL, NULL, NULL, 'NaN', '-Infinity', NULL, NULL, NULL, NULL, 'null', NULL, NULL, NULL, NULL, NULL, NULL,
                NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
             CREATE TABLE pairs (id int, p pair); CREATE TABLE wide (j jsonb); INSERT INTO wide VALUES ('18446744073709551616');
             CREATE VIEW three AS SELECT g AS n FROM generate_series(1, 3) g;
             CREATE TABLE empty (a int); CREATE ROLE poor LOGIN PASSWORD 'p';",
        )
        .unwrap();
    let mut shuffled: Vec<_> = TEXTS.iter().collect();
    shuffled.rotate_left(1000);
    let mut transaction = client.transaction().unwrap();
    for [id, odd, note] in shuffled {
        transaction.execute("INSERT INTO plain VALUES ($1, $2, $3)", &[note, odd, id]).unwrap();
    }
    transaction.commit().unwrap();
    let place = format!("127.0.0.1:{}/postgres", server.port);
    let url = |question: &str| format!("postgres://tester:{ENCODED}@{place}?{question}");

    equals_csv(dir.path(), &url);
    let written = fs::read_to_string(dir.path().join("db/manifest.json")).unwrap();
    assert!(!written.contains("s3cret"));

    // Every type.
    let typed = rows(&url("table=typed"), &[]).unwrap();
    let text = |text: &str| Value::Text(text.into());
    let json = |text: &str| Value::from_json(serde_json::from_str(text).unwrap());
    let expected = vec![
        Value::Bool(true),
        Value::Int(-3),
        Value::Int(i64::MAX),
        Value::Real(0.1),
        Value::Real(1e300),
        text("123456789012345678901234567890.50"),
        text("é"),
        text("ab  "),
        Value::Blob(vec![0, 255, 92]),
        json("{\"b\": 1, \"a\": [1.5, null]}"),
        json("18446744073709551615"),
        text("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        text("2024-02-29"),
        text("04:05:06.7"),
        text("2024-02-29 23:59:59.5"),
        text("2024-02-29 14:59:59+00"),
        text("1 day 02:00:00"),
        text("ok"),
        Value::Int(5),
        text("{1,NULL,3}"),
        text("{\"a b\",\"\\\\\"}"),
        text("[1,5)"),
        text("10.0.0.1"),
        text("$12.50"),
        text("101"),
        text("(1,2)"),
    ];
    assert_eq!(typed[0], expected);
    assert!(
        matches!(typed[1][3], Value::Real(x) if x.is_nan()) && typed[1][4] == Value::Real(f64::NEG_INFINITY)
    );
    assert_eq!(typed[1].iter().filter(|value| **value == Value::Null).count(), 24);
    assert_eq!(rows(&url("table=S p.T.\"t"), &[]).unwrap(), [[Value::Int(7)]]);
    assert_eq!(rows(&url("table=three"), &[]).unwrap().len(), 3);
    assert_eq!(rows(&url("table=pairs"), &["id"]).unwrap(), Vec::<Vec<Value>>::new());

    // A Unix socket, TLS with verification, and the password from nowhere.
    let socket = server.dir.path().to_str().unwrap().replace('/', "%2F");
    let spec = format!("postgres://tester:{ENCODED}@{socket}:{}/postgres?query=SELECT 1 AS one", server.port);
    assert_eq!(rows(&spec, &[]).unwrap(), [[Value::Int(1)]]);
    let ca = server.at("ca.pem");
    let secure = "query=SELECT ssl AS s FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    assert_eq!(rows(&url(&format!("ca={ca}&{secure}")), &[]).unwrap(), [[Value::Bool(true)]]);
    assert_eq!(rows(&url(secure), &[]).unwrap(), [[Value::Bool(false)]]);
    refused(
        &url(&format!("tls=verify&{secure}")),
        &["no TLS with it: nobody who is trusted here signed its certificate; name in ca=FILE"],
    );
    refused(
        &url(&format!("ca={}&{secure}", server.at("server.key"))),
        &["server.key", "no certificate can be taken from it: there is none in it"],
    );
    let other = url(&format!("ca={ca}&{secure}")).replace("127.0.0.1", "127.0.0.2");
    refused(&other, &["the query on postgres://tester@127.0.0.2:"]);

    for (question, words) in [
        (
            "table=nope",
            &["nope in postgres://tester@127.0.0.1", "there is no such table", "SCHEMA.TABLE"][..],
        ),
        ("query=SELEKT", &["syntax error", "mend the view or query"]),
        ("query=SELECT 1; DROP TABLE plain", &["cannot insert multiple commands"]),
        ("query=SELECT 1) TO STDOUT; DROP TABLE plain; COPY (SELECT 1", &["syntax error"]),
        ("query=DELETE FROM plain RETURNING id", &["write one SELECT, which changes nothing"]),
        ("query=CREATE TABLE made (a int)", &["not a statement that reads rows"]),
        ("query=SELECT $1::int AS a", &["has a parameter"]),
        ("query=SELECT 1 AS a, 2 AS a", &["two columns are called \"a\""]),
        ("query=SELECT 1/(3-g) AS a FROM generate_series(1, 5) g", &["division by zero"]),
        ("table=pairs", &["column \"p\" is of type pair, which has no rule here; leave it out with --value"]),
        ("table=wide", &["row 1 of wide in", "column \"j\"", "more than 64 bits"]),
        ("table=empty", &["has no rows"]),
    ] {
        refused(&url(question), words);
    }
    refused(
        &url("table=plain").replace(ENCODED, "s3cret"),
        &["password authentication failed", "PGPASSWORD"],
    );
    refused(
        &url("table=plain").replace("/postgres?", "/nope?"),
        &["\"nope\" does not exist", "database's name"],
    );
    refused(&url("table=plain").replace(&format!("tester:{ENCODED}"), "poor:p"), &["grant SELECT"]);
    let made = client.query_one("SELECT count(*) FROM plain", &[]).unwrap();
    assert_eq!(made.get::<_, i64>(0), 3000, "nothing was changed");

    followed(&url, &mut client, || pg(&server).unwrap());
    texts_followed(&url, &mut client);
    in_order(&url, &mut |sql| client.batch_execute(sql).unwrap(), true);
    keys_of_types(&url, &mut client);

    refused(
        &url("table=plain").replace(&format!(":{ENCODED}"), ""),
        &["the server asks for a password, and none was given; set PGPASSWORD"],
    );
    gone(&url("query=SELECT g AS id, repeat('x', 100) AS v FROM generate_series(1, 20000000) g"), server);
}

#[test]
fn mysql_and_mariadb() {
    let Some(server) = mariadb() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut client = my(&server, "tester", PASSWORD, "app").unwrap();
    for statement in [
        "CREATE TABLE plain (note text, odd text, id varchar(20) PRIMARY KEY)",
        "CREATE TABLE `T ``t` (a int)",
        "INSERT INTO `T ``t` VALUES (7)",
        "CREATE TABLE typed (ti tinyint, b bit(12), i bigint unsigned, f float, d double, n decimal(30,2), t text,
            c char(4), y blob, vb varbinary(9), j json, da date, tm time(1), dt datetime(3), ts timestamp,
            e enum('a','b'), s set('x','y'), yr year, u uuid)",
        "SET time_zone = '+00:00'",
        "INSERT INTO typed VALUES (-3, b'100000000001', 18446744073709551615, 0.1, 1e300, -1234567890123456789012345678.5,
            'é', 'ab', x'00ff', 'vb', '{\"a\": 1}', '2024-02-29', '-123:04:05.6', '2024-02-29 23:59:59.5',
            '2024-02-29 14:59:59', 'b', 'x,y', 1999, 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11')",
        "INSERT INTO typed (ti) VALUES (NULL)",
        "CREATE TABLE shapes (id int, g geometry)",
        "CREATE VIEW three AS SELECT seq AS n FROM seq_1_to_3",
        "CREATE TABLE empty (a int)",
        "CREATE TABLE large (a longblob)",
        "INSERT INTO large VALUES (repeat('x', 70000000))",
    ] {
        client.query_drop(statement).unwrap();
    }
    let mut shuffled: Vec<_> = TEXTS.iter().collect();
    shuffled.rotate_left(1000);
    client.query_drop("SET sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES'); BEGIN").ok();
    let mut transaction = client.start_transaction(mysql::TxOpts::default()).unwrap();
    let insert = transaction.prep("INSERT INTO plain VALUES (?, ?, ?)").unwrap();
    for [id, odd, note] in shuffled {
        transaction.exec_drop(&insert, (note, odd, id)).unwrap();
    }
    transaction.commit().unwrap();
    let place = format!("127.0.0.1:{}/app", server.port);
    let url = |question: &str| format!("mysql://tester:{ENCODED}@{place}?{question}");

    equals_csv(dir.path(), &url);

    let typed = rows(&url("table=typed"), &[]).unwrap();
    let text = |text: &str| Value::Text(text.into());
    let expected = vec![
        Value::Int(-3),
        Value::Int(2049),
        Value::Json(18_446_744_073_709_551_615u64.into()),
        Value::Real(0.1),
        Value::Real(1e300),
        text("-1234567890123456789012345678.50"),
        text("é"),
        text("ab"),
        Value::Blob(vec![0, 255]),
        Value::Blob(b"vb".to_vec()),
        text("{\"a\": 1}"),
        text("2024-02-29"),
        text("-123:04:05.6"),
        text("2024-02-29 23:59:59.500"),
        text("2024-02-29 14:59:59"),
        text("b"),
        text("x,y"),
        Value::Int(1999),
        text("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ];
    assert_eq!(typed[0], expected);
    assert_eq!(typed[1], vec![Value::Null; 19]);
    assert_eq!(rows(&url("table=T `t"), &[]).unwrap(), [[Value::Int(7)]]);
    assert_eq!(rows(&url("table=three"), &[]).unwrap().len(), 3);
    assert_eq!(rows(&url("table=shapes"), &["id"]).unwrap(), Vec::<Vec<Value>>::new());

    let socket = server.at("socket").replace('/', "%2F");
    let spec = format!("mariadb://tester:{ENCODED}@{socket}/app?query=SELECT 1 AS one");
    assert_eq!(rows(&spec, &[]).unwrap(), [[Value::Int(1)]]);
    let ca = server.at("ca.pem");
    let secure = "query=SELECT variable_value <> '' AS s FROM information_schema.session_status \
                  WHERE variable_name = 'ssl_cipher'";
    assert_eq!(rows(&url(&format!("ca={ca}&{secure}")), &[]).unwrap(), [[Value::Int(1)]]);
    assert_eq!(rows(&url(secure), &[]).unwrap(), [[Value::Int(0)]]);
    refused(
        &url(&format!("tls=verify&{secure}")),
        &["no TLS with it: nobody who is trusted here signed its certificate; name in ca=FILE"],
    );
    refused(
        &url(&format!("ca={}&{secure}", server.at("server.key"))),
        &["server.key", "no certificate can be taken from it: there is none in it"],
    );

    for (question, words) in [
        ("table=nope", &["nope in mysql://tester@127.0.0.1", "doesn't exist", "name a table or view"][..]),
        ("query=SELEKT", &["error in your SQL syntax", "mend the view or query"]),
        ("query=SELECT 1; DROP TABLE plain", &["error in your SQL syntax"]),
        ("query=DELETE FROM plain RETURNING id", &["write one SELECT, which changes nothing"]),
        ("query=CREATE TABLE made (a int)", &["write one SELECT, which changes nothing"]),
        ("query=DO 1", &["not a statement that reads rows"]),
        ("query=SELECT ? AS a", &["has a parameter"]),
        ("query=SELECT 1 AS a, 2 AS a", &["two columns are called \"a\""]),
        (
            "table=shapes",
            &["column \"g\" is of type GEOMETRY, which has no rule here; leave it out with --value"],
        ),
        ("table=large", &["large in mysql://", "Packet is larger", "limited to 64 MiB"]),
        ("table=empty", &["has no rows"]),
    ] {
        refused(&url(question), words);
    }
    refused(&url("table=plain").replace(ENCODED, "s3cret"), &["Access denied", "MYSQL_PWD"]);
    refused(&url("table=plain").replace("/app?", "/nope?"), &["check the database's name"]);
    assert_eq!(client.query_first::<u64, _>("SELECT count(*) FROM plain").unwrap(), Some(3000));

    in_order(&url, &mut |sql| client.query_drop(sql).unwrap(), false);

    gone(&url("query=SELECT seq AS id, repeat('x', 100) AS v FROM seq_1_to_20000000"), server);
}

/// A server that is killed while its rows are read: an error that names it, and nothing is left.
fn gone(spec: &str, server: Server) {
    let dir = tempfile::tempdir().unwrap();
    let device = Cpu::with_threads("cpu", 1).unwrap();
    let mut server = Some(server);
    let mut read = 0;
    let broken = build(&options(dir.path(), spec), &device, &mut |stage: &str, done, _, _| {
        assert_eq!(stage, READING);
        read = done;
        server.take();
    });
    let error = broken.unwrap_err().to_string();
    assert!(read > 0 && read < 20_000_000);
    let origin =
        format!("the query on {}", spec.split('?').next().unwrap().replace(&format!(":{ENCODED}"), ""));
    assert!(error.starts_with(&format!("{origin} can't be read: ")) && error.contains("; "), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left");
    // And one that is not there.
    let error = built(spec).unwrap_err().to_string();
    assert!(error.contains("check the server, its address"), "{error}");
}
