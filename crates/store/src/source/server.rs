//! Database servers: their URLs and passwords, TLS, and the thread that reads.

use super::{Of, Position, Row, Source, SourceError};
use crate::Value;
use blindcore_tls::{Fault, Trust};
use blindcore_units::Unit;
use blindcore_wire::KeyType;
use std::error::Error;
use std::fmt::{self, Write};
use std::io;
use std::mem;
use std::net::IpAddr;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use std::{thread, vec};
use zeroize::Zeroizing;

/// How long a server may take to be reached.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// How long a silent connection stays unasked whether it still stands, between questions, and how many there are:
/// a server that vanishes is noticed within a minute.
pub(super) const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(30), Duration::from_secs(10), 3);
/// Rows that are sent on together, at most.
const BATCH_ROWS: usize = 256;
/// Bytes of values after which a batch is sent on.
const BATCH_BYTES: usize = 256 << 10;
/// Batches that wait to be taken.
const BATCHES: usize = 2;

/// What to do where TLS fails.
const TLS: &str =
    "name in ca=FILE who signed its certificate, if you trust them, and the server by a name that is in it";

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    Postgres,
    Mysql,
}

impl System {
    fn scheme(self) -> &'static str {
        match self {
            System::Postgres => "postgres",
            System::Mysql => "mysql",
        }
    }

    /// The variable that its own tools take a password from.
    fn password_variable(self) -> &'static str {
        match self {
            System::Postgres => "PGPASSWORD",
            System::Mysql => "MYSQL_PWD",
        }
    }
}

/// A password: never shown, and wiped.
#[derive(Clone, PartialEq, Eq)]
struct Password(Zeroizing<String>);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("...")
    }
}

/// `postgres://USER:PASSWORD@HOST:PORT/DATABASE?tls=verify&ca=FILE&table=NAME`, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) system: System,
    pub(super) user: String,
    password: Option<Password>,
    /// A name, an address, or the path of a Unix socket or its folder.
    pub(super) host: String,
    pub(super) port: Option<u16>,
    pub(super) database: String,
    tls: Option<bool>,
    pub(super) ca: Option<String>,
    pub(super) of: Of,
}

impl Server {
    /// Understands a URL; `None` where it is of another scheme.
    ///
    /// # Errors
    /// What is wrong, and the remedy. Neither repeats any part that may be, or by mistake hold, a password.
    pub(super) fn parse(text: &str) -> Option<Result<Self, (String, String)>> {
        let (scheme, rest) = text.split_once("://")?;
        let system = match scheme {
            "postgres" | "postgresql" => System::Postgres,
            "mysql" | "mariadb" => System::Mysql,
            _ => return None,
        };
        let form = format!("write {scheme}://USER@HOST/DATABASE?table=NAME or ...?query=SELECT ...");
        Some(
            Self::understand(system, rest)
                .map_err(|(why, remedy)| (why, if remedy.is_empty() { form } else { remedy.to_owned() })),
        )
    }

    fn understand(system: System, rest: &str) -> Result<Self, (String, &'static str)> {
        const ENCODE: &str = "percent-encode what has a meaning in URLs: %40 for @, %2F for /, %3A for :";
        let fail = |why: &str| (why.to_owned(), "");
        let (place, mut question) = rest.split_once('?').unwrap_or((rest, ""));
        let (mut tls, mut ca) = (None, None);
        let mut table = None;
        let of = loop {
            match question.split_once('=') {
                None if question.is_empty() && table.is_some() => break Of::Table(table.unwrap_or_default()),
                Some(("table" | "query", "")) => {
                    return Err((fail("nothing follows the =").0, "name a table or a query"));
                }
                Some(("table", name)) if table.is_none() => {
                    let end = ["&tls=", "&ca="].iter().filter_map(|option| name.find(option)).min();
                    let (name, options) = name.split_at(end.unwrap_or(name.len()));
                    if name.is_empty() {
                        return Err((fail("nothing follows the =").0, "name a table or a query"));
                    }
                    (table, question) = (Some(name.to_owned()), options.get(1..).unwrap_or(""));
                }
                Some(("query", sql)) if table.is_none() => break Of::Query(sql.to_owned()),
                Some((name @ ("tls" | "ca"), value)) => {
                    let (value, next) = value.split_once('&').unwrap_or((value, ""));
                    match (name, value) {
                        ("tls", "verify") if tls.is_none() => tls = Some(true),
                        ("tls", "off") if tls.is_none() => tls = Some(false),
                        ("ca", file) if ca.is_none() && !file.is_empty() => {
                            ca =
                                Some(decoded(file).ok_or_else(|| {
                                    (fail("its ca is not percent-encoded UTF-8").0, ENCODE)
                                })?);
                        }
                        _ => {
                            return Err((
                                format!("its {name} is there twice, or has a value that is none"),
                                "tls is verify or off, ca a file of certificates",
                            ));
                        }
                    }
                    question = next;
                }
                _ => return Err(fail("it doesn't say which table")),
            }
        };
        if ca.is_some() && tls == Some(false) {
            return Err((fail("it names certificates and turns TLS off").0, "leave out ca or tls=off"));
        }
        let (authority, database) = place.split_once('/').ok_or_else(|| fail("it names no database"))?;
        let (login, address) = authority.rsplit_once('@').ok_or_else(|| fail("it names no user"))?;
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (login, None),
        };
        let (host, port) = match address.strip_prefix('[') {
            Some(rest) => {
                let (host, port) =
                    rest.split_once(']').ok_or_else(|| fail("its address has a [ and no ]"))?;
                (host, port.strip_prefix(':').or((!port.is_empty()).then_some("no port")))
            }
            None => match address.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (address, None),
            },
        };
        let port = match port {
            None => None,
            Some(port) => Some(
                port.parse::<u16>()
                    .ok()
                    .filter(|p| *p > 0 && !port.starts_with('+'))
                    .ok_or_else(|| (fail("its port is not a number from 1 to 65535").0, ENCODE))?,
            ),
        };
        let part = |text: &str, what: &str| match decoded(text) {
            None => Err((format!("its {what} is not percent-encoded UTF-8"), ENCODE)),
            Some(text) if text.contains('\0') => {
                Err((format!("its {what} holds a zero byte"), "leave it out"))
            }
            Some(text) => Ok(text),
        };
        let server = Self {
            system,
            user: part(user, "user")?,
            password: match password {
                None | Some("") => None,
                Some(password) => Some(Password(Zeroizing::new(part(password, "password")?))),
            },
            host: part(host, "host")?,
            port,
            database: part(database, "database")?,
            tls,
            ca,
            of,
        };
        for (what, part) in [("user", &server.user), ("host", &server.host), ("database", &server.database)] {
            if part.is_empty() {
                return Err(fail(&format!("it names no {what}")));
            }
        }
        if server.host.starts_with('/') && (tls == Some(true) || server.ca.is_some()) {
            return Err((fail("it asks for TLS through a Unix socket").0, "leave out tls and ca"));
        }
        Ok(server)
    }

    /// What errors call it.
    pub(super) fn origin(&self) -> String {
        self.of.origin(&self.place())
    }

    /// Everything before the question mark, but for the password.
    pub(super) fn place(&self) -> String {
        let mut text = format!("{}://{}@", self.system.scheme(), encoded(&self.user));
        match self.host.contains(':') {
            true => write!(text, "[{}]", self.host),
            false => write!(text, "{}", encoded(&self.host)),
        }
        .and_then(|()| self.port.map_or(Ok(()), |port| write!(text, ":{port}")))
        .expect("a String takes all");
        text + "/" + &encoded(&self.database)
    }

    /// The password: the URL's, or the one in the environment.
    pub(super) fn password(&self) -> Option<Zeroizing<String>> {
        match &self.password {
            Some(Password(password)) => Some(password.clone()),
            None => blindcore_units::text_variable(self.system.password_variable())
                .ok()
                .flatten()
                .map(Zeroizing::new),
        }
    }

    /// Whether the server must show a certificate: it must where the connection leaves this machine, unless the URL
    /// says otherwise.
    pub(super) fn verifies(&self) -> bool {
        let here = self.host.starts_with('/')
            || self.host.eq_ignore_ascii_case("localhost")
            || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        self.tls.unwrap_or(self.ca.is_some() || !here)
    }

    /// Whom the server must be: one of a file's certificates, or one that an authority of it or, without a file, of Mozilla's list signed.
    pub(super) fn trust(&self) -> Result<Trust, SourceError> {
        let Some(path) = &self.ca else { return Ok(Trust::public()) };
        super::lines::open_regular(Path::new(path)).map_err(|error| super::lines::failed(path, error))?;
        Trust::read(Path::new(path)).map_err(|error| SourceError::Unfit {
            origin: path.clone(),
            why: format!("no certificate can be taken from it: {}", error.why),
            remedy: "name a PEM file of the certificates that sign the server's".to_owned(),
        })
    }

    /// Explains an error that TLS caused; `None` for all others.
    pub(super) fn fault_of_tls(&self, error: &(dyn Error + 'static)) -> Option<SourceError> {
        let mut cause = Some(error);
        while let Some(this) = cause {
            let carried = this.downcast_ref::<io::Error>().and_then(Fault::find);
            if let Some(fault) = carried.or_else(|| this.downcast_ref().map(Fault::of)) {
                return Some(self.refused(format!("no TLS with it: {fault}"), TLS));
            }
            cause = this.source();
        }
        None
    }

    /// What the server, or the way to it, said.
    pub(super) fn refused(&self, error: impl fmt::Display, remedy: &'static str) -> SourceError {
        SourceError::Server { origin: self.origin(), error: one_line(&error.to_string()), remedy }
    }

    /// What it means that the server asks for a password; nothing where it was given one.
    pub(super) fn no_password(&self) -> Option<SourceError> {
        let variable = self.system.password_variable();
        let remedy = format!("set {variable}, or write it in the URL, percent-encoded: USER:PASSWORD@HOST");
        let none = self.password().is_none();
        none.then(|| self.unfit("the server asks for a password, and none was given", &remedy))
    }

    /// What it means that the connection ends among the rows.
    pub(super) fn ended(&self, error: impl fmt::Display) -> SourceError {
        let why = format!("the connection ended while rows were read ({error})");
        self.refused(why, "see whether the server runs and reaches this machine, and read it again")
    }

    /// What is wrong with a column's type.
    pub(super) fn unknown_type(&self, column: &str, kind: &str) -> SourceError {
        SourceError::Unfit {
            origin: self.origin(),
            why: format!("column {column:?} is of type {kind}, which has no rule here"),
            remedy: "leave it out with --value, or cast it to text in a ?query=".to_owned(),
        }
    }

    /// What is wrong with the query.
    pub(super) fn unfit(&self, why: &str, remedy: &str) -> SourceError {
        SourceError::Unfit { origin: self.origin(), why: why.to_owned(), remedy: remedy.to_owned() }
    }

    /// What is wrong with a row.
    pub(super) fn flaw(&self, line: u64, why: String, remedy: &'static str) -> SourceError {
        SourceError::Row { origin: self.origin(), unit: "row", line, why, remedy }
    }
}

impl fmt::Display for Server {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}?", self.place())?;
        match self.tls {
            Some(true) => f.write_str("tls=verify&")?,
            Some(false) => f.write_str("tls=off&")?,
            None => {}
        }
        if let Some(ca) = &self.ca {
            write!(f, "ca={}&", encoded(ca))?;
        }
        self.of.fmt(f)
    }
}

/// A message from outside, on one line.
pub(super) fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_control()).filter(|part| !part.trim().is_empty()).collect::<Vec<_>>().join(" ")
}

/// Percent-encoding undone (RFC 3986, section 2.1).
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let digit = |b: Option<u8>| char::from(b?).to_digit(16);
            (digit(rest.next())? << 4 | digit(rest.next())?) as u8
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok()
}

fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'~' => out.push(char::from(byte)),
            _ => write!(out, "%{byte:02X}").expect("a String takes all"),
        }
    }
    out
}

/// What a server says of a column.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Form {
    /// The one form of its values as keys.
    pub(super) key: Option<KeyType>,
    /// As [`Source::is_texts`].
    pub(super) texts: bool,
}

enum Message {
    Columns(Vec<String>, Vec<Form>),
    Rows(Vec<Row>),
    End,
}

/// Where a reading thread puts what it reads.
pub(super) struct Sink {
    sender: SyncSender<Result<Message, SourceError>>,
    batch: Vec<Row>,
    bytes: usize,
    line: u64,
}

impl Sink {
    /// The row that comes next, counted from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Says what the columns are; false where the listener is gone.
    pub(super) fn columns(&mut self, columns: Vec<String>, forms: Vec<Form>) -> bool {
        self.sender.send(Ok(Message::Columns(columns, forms))).is_ok()
    }

    /// Takes the next row, of this many bytes; false where the listener is gone.
    pub(super) fn row(&mut self, values: Vec<Value>, bytes: usize) -> bool {
        self.batch.push(Row { line: self.line, values });
        self.line += 1;
        self.bytes += bytes;
        (self.batch.len() < BATCH_ROWS && self.bytes < BATCH_BYTES) || self.flush()
    }

    fn flush(&mut self) -> bool {
        self.bytes = 0;
        self.batch.is_empty() || self.sender.send(Ok(Message::Rows(mem::take(&mut self.batch)))).is_ok()
    }
}

/// Reads a server's rows into a sink: first it says the columns.
type Reader = fn(&Server, Option<&[String]>, &mut Sink) -> Result<(), SourceError>;

/// Rows that a thread reads, because they borrow from their connection.
pub(super) struct Threaded {
    origin: String,
    columns: Vec<String>,
    forms: Vec<Form>,
    done: u64,
    batch: vec::IntoIter<Row>,
    messages: Option<Receiver<Result<Message, SourceError>>>,
}

impl Threaded {
    /// Starts a thread and waits for the columns. Dropping what this returns ends the thread when it next has rows
    /// to give.
    pub(super) fn start(
        server: &Server,
        wanted: Option<&[String]>,
        read: Reader,
    ) -> Result<Self, SourceError> {
        let origin = server.origin();
        let (server, wanted) = (server.clone(), wanted.map(<[String]>::to_vec));
        let (sender, messages) = sync_channel(BATCHES);
        let run = move || {
            let mut sink = Sink { sender, batch: Vec::new(), bytes: 0, line: 1 };
            let end = read(&server, wanted.as_deref(), &mut sink).map(|()| Message::End);
            if sink.flush() {
                let _ = sink.sender.send(end);
            }
        };
        let spawned = thread::Builder::new().name("source".into()).spawn(run);
        spawned.map_err(|error| super::lines::failed(&origin, error))?;
        let batch = Vec::new().into_iter();
        let mut source =
            Self { origin, columns: Vec::new(), forms: Vec::new(), done: 0, batch, messages: Some(messages) };
        source.receive()?;
        Ok(source)
    }

    /// Takes what comes next. A thread that ends without a word has panicked: its rows are not all.
    fn receive(&mut self) -> Result<(), SourceError> {
        let Some(messages) = &self.messages else { return Ok(()) };
        let message = messages.recv().unwrap_or_else(|_| {
            Err(SourceError::Unfit {
                origin: self.origin.clone(),
                why: "the thread that reads it has panicked".to_owned(),
                remedy: "report this as a defect of blindcore".to_owned(),
            })
        });
        match message {
            Ok(Message::Columns(columns, forms)) => (self.columns, self.forms) = (columns, forms),
            Ok(Message::Rows(rows)) => self.batch = rows.into_iter(),
            Ok(Message::End) => self.messages = None,
            Err(error) => {
                self.messages = None;
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Source for Threaded {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn next_row(&mut self) -> Result<Option<Row>, SourceError> {
        loop {
            if let Some(row) = self.batch.next() {
                self.done += 1;
                return Ok(Some(row));
            }
            if self.messages.is_none() {
                return Ok(None);
            }
            self.receive()?;
        }
    }

    fn key_type(&self, column: usize) -> Option<KeyType> {
        self.forms[column].key
    }

    fn is_texts(&self, column: usize) -> bool {
        self.forms[column].texts
    }

    fn position(&self) -> Position {
        Position { done: self.done, total: None, unit: Unit::Items }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceSpec;
    use proptest::prelude::*;

    fn parse(text: &str) -> Server {
        Server::parse(text).unwrap().unwrap()
    }

    #[test]
    fn every_part_of_a_url_is_understood() {
        let server = parse(
            "postgresql://a%40b:p%3Aq%2Fr:s@db.example:5433/my%20db?tls=verify&ca=/a%26b.pem&query=SELECT '?%20&=' AS a",
        );
        assert_eq!(
            (server.user.as_str(), server.host.as_str(), server.port),
            ("a@b", "db.example", Some(5433))
        );
        assert_eq!(server.password().unwrap().as_str(), "p:q/r:s");
        assert_eq!((server.database.as_str(), server.ca.as_deref()), ("my db", Some("/a&b.pem")));
        assert_eq!(server.of, Of::Query("SELECT '?%20&=' AS a".into()));
        let shown = "postgres://a%40b@db.example:5433/my%20db";
        assert_eq!(server.origin(), format!("the query on {shown}"));
        assert_eq!(
            server.to_string(),
            format!("{shown}?tls=verify&ca=%2Fa%26b.pem&query=SELECT '?%20&=' AS a")
        );
        assert!(!format!("{server:?}").contains("p:q"));
        let server = parse("mysql://u@[::1]:1/d?table=a=b&c");
        assert_eq!((server.host.as_str(), server.port), ("::1", Some(1)));
        assert_eq!(server.origin(), "a=b&c in mysql://u@[::1]:1/d");
        assert_eq!(parse("mariadb://u@%2Frun%2Fsock/d?table=t").host, "/run/sock");
        assert!(Server::parse("sqlite:x.db?table=t").is_none() && Server::parse("pg://x").is_none());
    }

    #[test]
    fn what_leaves_this_machine_is_verified_unless_it_is_told_otherwise() {
        for (host, options, verifies) in [
            ("localhost", "", false),
            ("127.8.9.1", "", false),
            ("[::1]", "", false),
            ("%2Frun", "", false),
            ("localhost", "tls=verify&", true),
            ("localhost", "ca=x&", true),
            ("10.0.0.1", "", true),
            ("localhost.example", "", true),
            ("db.example", "tls=off&", false),
        ] {
            let server = parse(&format!("postgres://u@{host}/d?{options}table=t"));
            assert_eq!(server.verifies(), verifies, "{host} {options}");
            // They may stand behind the table too; behind a query everything is the query.
            let behind = format!("?table=t&{options}");
            let behind = format!("postgres://u@{host}/d{}", behind.trim_end_matches('&'));
            assert_eq!(parse(&behind), server);
        }
        let query = parse("postgres://u@h/d?query=SELECT a&tls=off");
        assert!(query.verifies() && query.of == Of::Query("SELECT a&tls=off".into()));
    }

    #[test]
    fn what_is_no_url_is_refused_and_a_password_is_never_repeated() {
        for (text, words) in [
            (
                "postgres://u:hunter2@h/d",
                &["which table", "write postgres://USER@HOST/DATABASE?table=NAME"][..],
            ),
            ("mysql://u:hunter2@h/d?table=", &["nothing follows the ="]),
            ("mysql://u:hunter2@h/d?tabel=t", &["which table"]),
            ("mysql://u:hunter2@h/d?table=&tls=off", &["nothing follows the ="]),
            ("mysql://u:hunter2@h/d?table=t&tls=maybe", &["tls is verify or off"]),
            ("postgres://u:hunter2@h?table=t", &["names no database"]),
            ("postgres://u:hunter2@h/?table=t", &["names no database"]),
            ("postgres://h/d?table=t", &["names no user"]),
            ("postgres://:hunter2@h/d?table=t", &["names no user"]),
            ("postgres://u:hunter2@/d?table=t", &["names no host"]),
            ("postgres://u:hunter/2@h/d?table=t", &["names no user"]),
            ("postgres://u:hun%zzter2@h/d?table=t", &["password is not percent-encoded"]),
            ("postgres://u:hunter2%00@h/d?table=t", &["password holds a zero byte"]),
            ("postgres://u@h:hunter2/d?table=t", &["port is not a number from 1 to 65535"]),
            ("postgres://u@h:0/d?table=t", &["port is not a number"]),
            ("postgres://u@[::1/d?table=t", &["has a [ and no ]"]),
            ("postgres://u@[::1]hunter2/d?table=t", &["port is not a number"]),
            ("postgres://u:hunter2@h/d?tls=maybe&table=t", &["tls is verify or off"]),
            ("postgres://u:hunter2@h/d?tls=off&tls=off&table=t", &["its tls is there twice"]),
            ("postgres://u:hunter2@h/d?tls=off&ca=x&table=t", &["leave out ca or tls=off"]),
            ("postgres://u:hunter2@%2Fs/d?ca=x&table=t", &["TLS through a Unix socket"]),
            ("postgres://u:hunter2@h/d?sslmode=require&table=t", &["which table"]),
            ("Postgres://u:hunter2@h/d?table=t.x", &["no kind of server that is supported"]),
            ("postgres:u:hunter2@h/d?table=t", &["names no source"]),
            ("mongodb://u:hunter2@h/d?table=t", &["no kind of server"]),
        ] {
            let error = SourceSpec::parse(text).unwrap_err().to_string();
            assert!(words.iter().all(|word| error.contains(word)), "{text}: {error}");
            assert!(!error.contains("hunter"), "{error}");
        }
    }

    #[test]
    fn a_thread_that_panics_is_no_end() {
        let server = parse("postgres://u@localhost/d?table=t");
        let early = Threaded::start(&server, None, |_, _, _| panic!("on purpose"));
        assert!(early.err().unwrap().to_string().contains("has panicked"));
        let mut late = Threaded::start(&server, None, |_, _, sink| {
            sink.columns(vec!["a".into()], vec![Form::default()]);
            (0..1000).for_each(|n| assert!(sink.row(vec![Value::Int(n)], 8)));
            panic!("on purpose")
        })
        .unwrap();
        let read = (0..2000).map_while(|_| late.next_row().map(Option::unwrap).ok()).count();
        assert_eq!(read, 768, "whole batches");
        assert!(late.next_row().unwrap().is_none());
        let mut whole = Threaded::start(&server, None, |server, _, sink| {
            sink.columns(vec!["a".into()], vec![Form::default()]);
            assert!(sink.row(vec![Value::Null], 0));
            Err(server.unfit("it is over", "stop"))
        })
        .unwrap();
        assert_eq!(whole.next_row().unwrap().unwrap().line, 1);
        let error = whole.next_row().unwrap_err().to_string();
        assert_eq!(error, "t in postgres://u@localhost/d: it is over; stop");
    }

    proptest! {
        #[test]
        fn what_is_shown_is_understood_again(
            user in "\\PC{1,6}", host in "[a-z0-9.-]{1,8}|/[a-z/]{1,5}", port: Option<u16>, database in "\\PC{1,6}",
            of in "\\PC{1,9}", table: bool, password in "\\PC{0,6}",
        ) {
            let port = port.filter(|port| *port > 0).map_or(String::new(), |port| format!(":{port}"));
            let login = if password.is_empty() { encoded(&user) } else { encoded(&user) + ":" + &encoded(&password) };
            let kind = if table { "table" } else { "query" };
            let host = encoded(&host);
            let text = format!("mysql://{login}@{host}{port}/{}?{kind}={of}", encoded(&database));
            let server = parse(&text);
            prop_assert_eq!((&server.user, &server.database), (&user, &database));
            let again = parse(&server.to_string());
            prop_assert_eq!(again.to_string(), server.to_string());
            prop_assert_eq!(Server { password: server.password.clone(), ..again }, server);
        }
    }
}
