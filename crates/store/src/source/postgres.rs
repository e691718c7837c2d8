//! PostgreSQL tables, views and queries, read-only.
//!
//! Rows come through `COPY (...) TO STDOUT` in its text format: a stream that the server doesn't gather first, of
//! values that it writes as text itself. Source: PostgreSQL's manual, "COPY", File Formats.

use super::server::{CONNECT, Form, KEEPALIVE, Server, Sink};
use super::{MAX_ROW_BYTES, Of, SourceError, json_lines, project};
use crate::Value;
use ::postgres::config::SslMode;
use ::postgres::error::SqlState;
use ::postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use ::postgres::types::{Kind, Type};
use ::postgres::{Client, Config, IsolationLevel, NoTls, Socket, Statement, Transaction};
use blindcore_wire::KeyType;
use rustls::pki_types::ServerName;
use std::borrow::Cow;
use std::error::Error;
use std::future::Future;
use std::io::{self, BufRead, Read};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;

/// What makes the text of a value the same wherever the server is and whatever its client.
const SESSION: &str = "SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'postgres'; SET TimeZone = 'UTC'; \
                       SET bytea_output = 'hex'; SET extra_float_digits = 3; SET lc_monetary = 'C'; \
                       SET synchronize_seqscans = off; SET statement_timeout = 0";

/// Reads all rows.
pub(super) fn read(server: &Server, wanted: Option<&[String]>, sink: &mut Sink) -> Result<(), SourceError> {
    let refused = |error| refused(server, &error);
    let mut client = connect(server)?;
    client.batch_execute(SESSION).map_err(refused)?;
    let transaction =
        client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
    let mut transaction = transaction.start().map_err(refused)?;
    let Plan { sql, positions, rules, columns, forms } = Plan::new(server, &mut transaction, wanted)?;
    if !sink.columns(columns.clone(), forms) {
        return Ok(());
    }
    let mut rows = transaction.copy_out(&format!("COPY ({sql}\n) TO STDOUT")).map_err(refused)?;
    let mut line = Vec::new();
    loop {
        line.clear();
        let most = MAX_ROW_BYTES as u64 + 1;
        let read =
            rows.by_ref().take(most).read_until(b'\n', &mut line).map_err(|error| broken(server, &error))?;
        if read == 0 {
            return Ok(());
        }
        if read as u64 == most {
            let why = format!("it is over the limit of {MAX_ROW_BYTES} B for a row");
            return Err(server.flaw(sink.line(), why, "leave the largest column out, or split it"));
        }
        let fields: Vec<&[u8]> = line.strip_suffix(b"\n").unwrap_or(&line).split(|b| *b == b'\t').collect();
        let mut values = Vec::with_capacity(columns.len());
        for ((position, rule), name) in positions.iter().zip(&rules).zip(&columns) {
            let field = fields.get(*position).copied();
            let value =
                field.ok_or("it has fewer fields than columns".into()).and_then(|field| rule.value(field));
            values.push(value.map_err(|why| {
                let remedy = "cast it to text in a ?query=, or leave it out";
                server.flaw(sink.line(), format!("column {name:?}: {why}"), remedy)
            })?);
        }
        if !sink.row(values, read) {
            return Ok(());
        }
    }
}

fn connect(server: &Server) -> Result<Client, SourceError> {
    let mut config = Config::new();
    config.user(&server.user).dbname(&server.database).host(&server.host).application_name("blindcore");
    if let Some(port) = server.port {
        config.port(port);
    }
    if let Some(password) = server.password() {
        config.password(password.as_bytes());
    }
    let (idle, interval, retries) = KEEPALIVE;
    config
        .connect_timeout(CONNECT)
        .keepalives_idle(idle)
        .keepalives_interval(interval)
        .keepalives_retries(retries);
    let connected = if server.verifies() {
        config
            .ssl_mode(SslMode::Require)
            .connect(MakeTls(TlsConnector::from(Arc::new(blindcore_tls::client_of(&server.trust()?)))))
    } else {
        config.ssl_mode(SslMode::Disable).connect(NoTls)
    };
    connected.map_err(|error| refused(server, &error))
}

/// What to read, and what is made of it.
struct Plan {
    sql: String,
    /// Which of its columns to take.
    positions: Vec<usize>,
    rules: Vec<Rule>,
    columns: Vec<String>,
    forms: Vec<Form>,
}

impl Plan {
    fn new(
        server: &Server,
        transaction: &mut Transaction<'_>,
        wanted: Option<&[String]>,
    ) -> Result<Self, SourceError> {
        let refused = |error| refused(server, &error);
        let (mut all, mut from) = match server.of.own() {
            Of::Query(sql) | Of::Followed { sql, .. } => {
                (sql.trim_end_matches(|c: char| c.is_whitespace() || c == ';').to_owned(), None)
            }
            Of::Table(name) => {
                let from = table(server, transaction, name)?;
                (format!("SELECT * FROM {}", from.0), Some(from))
            }
        };
        // The server understands one statement here and refuses more than one.
        let mut statement = transaction.prepare(&all).map_err(refused)?;
        if !statement.params().is_empty() {
            return Err(server.unfit("the query has a parameter", "write its value instead"));
        }
        let named = |statement: &Statement| -> Vec<String> {
            statement.columns().iter().map(|column| column.name().to_owned()).collect()
        };
        let mut names = named(&statement);
        if names.is_empty() {
            return Err(server.unfit("it is not a statement that reads rows", "write one SELECT"));
        }
        let origin = server.origin();
        if let Some(sql) = server.of.followed(&origin, &names)? {
            statement = transaction.prepare(sql).map_err(refused)?;
            (names, all, from) = (named(&statement), sql.to_owned(), None);
        }
        let positions = project(&origin, &names, wanted)?;
        let columns: Vec<String> = positions.iter().map(|i| names[*i].clone()).collect();
        let rule = |i: &usize| {
            let kind = statement.columns()[*i].type_();
            Rule::of(kind).ok_or_else(|| server.unknown_type(&names[*i], kind.name()))
        };
        let rules = positions.iter().map(rule).collect::<Result<_, _>>()?;
        let forms = positions.iter().map(|i| form(statement.columns()[*i].type_())).collect();
        Ok(match from {
            None => Self { sql: all, positions, rules, columns, forms },
            Some((from, order)) => {
                let list: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
                let sql = format!("SELECT {} FROM {from}{order}", list.join(", "));
                Self { sql, positions: (0..columns.len()).collect(), rules, columns, forms }
            }
        })
    }
}

/// A table as SQL names it, and the order of its primary key.
fn table(
    server: &Server,
    transaction: &mut Transaction<'_>,
    name: &str,
) -> Result<(String, String), SourceError> {
    let refused = |error| refused(server, &error);
    let mut spellings = vec![quoted(name)];
    if let Some((schema, table)) = name.split_once('.') {
        spellings.push(format!("{}.{}", quoted(schema), quoted(table)));
    }
    for from in spellings {
        let found = transaction.query_one("SELECT to_regclass($1)::oid", &[&from]).map_err(refused)?;
        let Some(oid) = found.try_get::<_, Option<u32>>(0).map_err(refused)? else { continue };
        let key = "SELECT a.attname::text FROM pg_index i, unnest(i.indkey) WITH ORDINALITY AS k(n, at), pg_attribute a \
                   WHERE i.indrelid = $1 AND i.indisprimary AND a.attrelid = $1 AND a.attnum = k.n ORDER BY k.at";
        let key = transaction.query(key, &[&oid]).map_err(refused)?;
        let key = key.iter().map(|row| row.try_get::<_, String>(0).map(|column| quoted(&column)));
        let key = key.collect::<Result<Vec<_>, _>>().map_err(refused)?;
        let order = if key.is_empty() { String::new() } else { format!(" ORDER BY {}", key.join(", ")) };
        return Ok((from, order));
    }
    Err(server
        .unfit("there is no such table", "name a table or view as TABLE or SCHEMA.TABLE, in its own case"))
}

/// A name as SQL writes one, whatever it holds.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn form(kind: &Type) -> Form {
    if let Kind::Domain(base) = kind.kind() {
        return form(base);
    }
    Form {
        key: match *kind {
            Type::NUMERIC => Some(KeyType::Decimal),
            Type::UUID => Some(KeyType::Uuid),
            Type::TIMESTAMP => Some(KeyType::Timestamp),
            Type::TIMESTAMPTZ => Some(KeyType::Instant),
            Type::BPCHAR => Some(KeyType::Padded),
            _ => None,
        },
        texts: [Type::TEXT, Type::VARCHAR, Type::BPCHAR, Type::NAME].contains(kind)
            || kind.name() == "citext",
    }
}

/// What becomes of a column's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Bool,
    Int,
    Real,
    Text,
    Bytes,
    Json,
}

impl Rule {
    /// The rule for a type; `None` where there is none.
    fn of(kind: &Type) -> Option<Self> {
        match kind.kind() {
            Kind::Domain(base) => return Self::of(base),
            Kind::Enum(_) => return Some(Rule::Text),
            Kind::Array(element) | Kind::Range(element) | Kind::Multirange(element) => {
                return Self::of(element).map(|_| Rule::Text);
            }
            Kind::Simple => {}
            _ => return None,
        }
        Some(match *kind {
            Type::BOOL => Rule::Bool,
            Type::INT2 | Type::INT4 | Type::INT8 | Type::OID => Rule::Int,
            Type::FLOAT4 | Type::FLOAT8 => Rule::Real,
            Type::BYTEA => Rule::Bytes,
            Type::JSON | Type::JSONB => Rule::Json,
            Type::TEXT
            | Type::VARCHAR
            | Type::BPCHAR
            | Type::NAME
            | Type::CHAR
            | Type::UNKNOWN
            | Type::NUMERIC
            | Type::MONEY
            | Type::UUID
            | Type::DATE
            | Type::TIME
            | Type::TIMETZ
            | Type::TIMESTAMP
            | Type::TIMESTAMPTZ
            | Type::INTERVAL
            | Type::INET
            | Type::CIDR
            | Type::MACADDR
            | Type::MACADDR8
            | Type::BIT
            | Type::VARBIT
            | Type::XML
            | Type::JSONPATH
            | Type::TS_VECTOR
            | Type::TSQUERY
            | Type::POINT
            | Type::LINE
            | Type::LSEG
            | Type::BOX
            | Type::PATH
            | Type::POLYGON
            | Type::CIRCLE => Rule::Text,
            // Text that doesn't mind case, of an extension of PostgreSQL's own.
            _ if kind.name() == "citext" => Rule::Text,
            _ => return None,
        })
    }

    fn value(self, field: &[u8]) -> Result<Value, Cow<'static, str>> {
        if field == br"\N" {
            return Ok(Value::Null);
        }
        let text = String::from_utf8(unescaped(field)).map_err(|_| "it is not UTF-8")?;
        Ok(match self {
            Rule::Text => Value::Text(text),
            Rule::Bool => match text.as_str() {
                "t" => Value::Bool(true),
                "f" => Value::Bool(false),
                _ => return Err("it is not a boolean".into()),
            },
            Rule::Int => Value::Int(text.parse().map_err(|_| "it is not an integer of 64 bits")?),
            Rule::Real => Value::Real(text.parse().map_err(|_| "it is not a number")?),
            Rule::Bytes => {
                Value::Blob(text.strip_prefix("\\x").and_then(unhexed).ok_or("it is not hexadecimal")?)
            }
            Rule::Json => json_lines::value(&text)?,
        })
    }
}

/// A field of COPY's text format without its backslashes.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field.iter();
    while let Some(byte) = rest.next() {
        out.push(match (byte, byte == &b'\\') {
            (_, false) => *byte,
            (_, true) => match rest.next() {
                Some(b'b') => 8,
                Some(b'f') => 12,
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                Some(b'v') => 11,
                Some(other) => *other,
                None => b'\\',
            },
        });
    }
    out
}

fn unhexed(text: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

/// What the server, or the way to it, said, with what to do about it.
fn refused(server: &Server, error: &::postgres::Error) -> SourceError {
    let mut text = String::new();
    let remedy = if let Some(said) = error.as_db_error() {
        text += said.message();
        for more in said.detail().into_iter().chain(said.hint()) {
            text = format!("{text} ({more})");
        }
        match said.code().code().get(..2) {
            Some("28")
                if *said.code() == SqlState::INVALID_PASSWORD
                    && let Some(none) = server.no_password() =>
            {
                return none;
            }
            Some("28") => "check the user and its password, in the URL or in PGPASSWORD",
            Some("3D") => "check the database's name",
            Some("42") if *said.code() == SqlState::INSUFFICIENT_PRIVILEGE => {
                "grant SELECT on it to this user"
            }
            Some("25") if *said.code() == SqlState::READ_ONLY_SQL_TRANSACTION => {
                "write one SELECT, which changes nothing"
            }
            Some("57" | "53") => "read it again when the server is up and has room",
            _ => {
                "mend the view or query; what follows ?query= is taken as it stands, nothing percent-decoded"
            }
        }
    } else if let Some(fault) = server.fault_of_tls(error) {
        return fault;
    } else {
        text += &error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        if text.ends_with("password missing")
            && let Some(none) = server.no_password()
        {
            return none;
        }
        "check the server, its address, what it says about TLS, and the network between"
    };
    server.refused(text, remedy)
}

/// What broke the stream of rows.
fn broken(server: &Server, error: &io::Error) -> SourceError {
    match error.get_ref().and_then(|e| e.downcast_ref::<::postgres::Error>()) {
        Some(error) if error.as_db_error().is_some() => refused(server, error),
        Some(error) => server.ended(error),
        None => server.ended(error),
    }
}

/// Makes TLS connections by rustls.
#[derive(Clone)]
struct MakeTls(TlsConnector);

impl MakeTlsConnect<Socket> for MakeTls {
    type Stream = Encrypted;
    type TlsConnect = Connect;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Connect, Self::Error> {
        Ok(Connect(self.0.clone(), ServerName::try_from(host.to_owned())?))
    }
}

/// A TLS connection to be.
struct Connect(TlsConnector, ServerName<'static>);

impl TlsConnect<Socket> for Connect {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move { self.0.connect(self.1, socket).await.map(Encrypted) })
    }
}

/// A TLS connection.
struct Encrypted(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As PostgreSQL's manual says that COPY writes a field.
    fn escaped(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        for byte in text.bytes() {
            match byte {
                8 => out.extend(b"\\b"),
                9 => out.extend(b"\\t"),
                10 => out.extend(b"\\n"),
                11 => out.extend(b"\\v"),
                12 => out.extend(b"\\f"),
                13 => out.extend(b"\\r"),
                b'\\' => out.extend(b"\\\\"),
                other => out.push(other),
            }
        }
        out
    }

    #[test]
    fn a_role_that_does_not_exist_is_no_missing_password() {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut length = [0; 4];
            stream.read_exact(&mut length).unwrap();
            stream.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize - 4]).unwrap();
            let said = b"SFATAL\0VFATAL\0C28000\0Mrole \"nobody\" does not exist\0\0";
            stream.write_all(&[b"E", &(said.len() as u32 + 4).to_be_bytes()[..], said].concat()).unwrap();
        });
        let url = format!("postgres://nobody@127.0.0.1:{port}/d?table=t&tls=off");
        let error = crate::SourceSpec::parse(&url).unwrap().open(None).err().unwrap().to_string();
        server.join().unwrap();
        assert!(error.contains("role \"nobody\" does not exist; check the user"), "{error}");
    }

    #[test]
    fn what_is_no_value_of_its_type_is_an_error() {
        for (rule, field) in [
            (Rule::Bool, "true"),
            (Rule::Int, "9223372036854775808"),
            (Rule::Int, ""),
            (Rule::Real, "1,5"),
            (Rule::Bytes, "00"),
            (Rule::Bytes, "\\\\x0"),
            (Rule::Bytes, "\\\\x0g"),
            (Rule::Json, "{"),
            (Rule::Json, "{\"a\": 1, \"a\": 2}"),
            (Rule::Json, "[18446744073709551616]"),
        ] {
            assert!(rule.value(field.as_bytes()).is_err(), "{rule:?} {field}");
        }
        assert!(Rule::Text.value(b"\xff").is_err());
        assert_eq!(Rule::Bytes.value(b"\\\\x00fF").unwrap(), Value::Blob(vec![0, 255]));
        assert_eq!(Rule::Text.value(b"\\N").unwrap(), Value::Null);
        assert_eq!(Rule::Text.value(b"\\\\N").unwrap(), Value::Text("\\N".into()));
    }

    proptest! {
        #[test]
        fn what_is_escaped_is_itself_again(text in "[\\x00-\\x10a\\\\Né]{0,12}") {
            let field = escaped(&text);
            prop_assert!(!field.contains(&b'\t') && !field.contains(&b'\n'));
            prop_assert_eq!(Rule::Text.value(&field).unwrap(), Value::Text(text));
        }

        #[test]
        fn any_field_is_a_value_or_an_error(field: Vec<u8>) {
            for rule in [Rule::Bool, Rule::Int, Rule::Real, Rule::Text, Rule::Bytes, Rule::Json] {
                let _ = rule.value(&field);
            }
        }
    }
}
