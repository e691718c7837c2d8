//! MySQL and MariaDB tables, views and queries, read-only.
//!
//! A statement is prepared, which refuses more than one, and its rows come one by one as the server has them.

use super::server::{CONNECT, Form, KEEPALIVE, Server, Sink};
use super::{MAX_ROW_BYTES, Of, SourceError, json_lines, project};
use crate::Value;
use ::mysql::consts::{ColumnFlags, ColumnType};
use ::mysql::prelude::Queryable;
use ::mysql::{
    AccessMode, Column, Conn, Error, IsolationLevel, OptsBuilder, Row, SslOpts, Transaction, TxOpts,
};
use blindcore_wire::KeyType;
use std::borrow::Cow;
use std::path::PathBuf;

/// What makes values the same wherever the server is, and lets a build take its time.
const SESSION: [&str; 3] =
    ["SET time_zone = '+00:00'", "SET net_write_timeout = 86400", "SET SESSION TRANSACTION READ ONLY"];
/// The character set that stands for bytes. Source: MySQL's manual, "The binary Character Set".
const BINARY: u16 = 63;
/// What a row takes in a packet beside its values.
const PACKET: usize = 1 << 20;

/// Reads all rows.
pub(super) fn read(server: &Server, wanted: Option<&[String]>, sink: &mut Sink) -> Result<(), SourceError> {
    let refused = |error| refused(server, &error);
    let mut connection = connect(server)?;
    for statement in SESSION {
        connection.query_drop(statement).map_err(refused)?;
    }
    let options = TxOpts::default()
        .set_with_consistent_snapshot(true)
        .set_isolation_level(Some(IsolationLevel::RepeatableRead))
        .set_access_mode(Some(AccessMode::ReadOnly));
    let mut transaction = connection.start_transaction(options).map_err(refused)?;
    let all = match server.of.own() {
        Of::Query(sql) | Of::Followed { sql, .. } => sql.clone(),
        Of::Table(name) => format!("SELECT * FROM {}", quoted(name)),
    };
    let mut statement = transaction.prep(&all).map_err(refused)?;
    if statement.num_params() > 0 {
        return Err(server.unfit("the query has a parameter, a ? on its own", "write its value instead"));
    }
    if statement.columns().is_empty() {
        return Err(server.unfit("it is not a statement that reads rows", "write one SELECT"));
    }
    let names: Vec<String> =
        statement.columns().iter().map(|column| column.name_str().into_owned()).collect();
    let origin = server.origin();
    let followed = server.of.followed(&origin, &names)?;
    let mut positions = project(&origin, &names, wanted)?;
    let columns: Vec<String> = positions.iter().map(|i| names[*i].clone()).collect();
    let rule = |i: &usize| {
        let column = &statement.columns()[*i];
        Rule::of(column).ok_or_else(|| {
            let kind = format!("{:?}", column.column_type());
            server.unknown_type(&names[*i], kind.trim_start_matches("MYSQL_TYPE_"))
        })
    };
    let rules: Vec<Rule> = positions.iter().map(rule).collect::<Result<_, _>>()?;
    let form = |(i, rule): (&usize, &Rule)| {
        let key = key_type(&statement.columns()[*i]);
        Form { key, texts: *rule == Rule::Text && key.is_none() }
    };
    let forms = positions.iter().zip(&rules).map(form).collect();
    if let Of::Table(name) = &server.of {
        let list: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
        let order = order(&mut transaction, name).map_err(refused)?;
        let sql = format!("SELECT {} FROM {}{order}", list.join(", "), quoted(name));
        statement = transaction.prep(sql).map_err(refused)?;
        positions = (0..columns.len()).collect();
    }
    if let Some(sql) = followed {
        statement = transaction.prep(sql).map_err(refused)?;
    }
    if !sink.columns(columns.clone(), forms) {
        return Ok(());
    }
    for row in transaction.exec_iter(&statement, ()).map_err(refused)? {
        let row = row.map_err(|error| match error {
            Error::MySqlError(_) | Error::CodecError(_) => refused(error),
            ended => server.ended(ended),
        })?;
        let mut bytes = 0;
        let mut values = Vec::with_capacity(columns.len());
        for ((position, rule), name) in positions.iter().zip(&rules).zip(&columns) {
            values.push(rule.value(&row, *position, &mut bytes).map_err(|why| {
                let remedy = "cast it in a ?query=, or leave it out";
                server.flaw(sink.line(), format!("column {name:?}: {why}"), remedy)
            })?);
        }
        if bytes > MAX_ROW_BYTES {
            let why = format!("it is over the limit of {MAX_ROW_BYTES} B for a row");
            return Err(server.flaw(sink.line(), why, "leave the largest column out, or split it"));
        }
        if !sink.row(values, bytes) {
            break;
        }
    }
    Ok(())
}

fn connect(server: &Server) -> Result<Conn, SourceError> {
    let (idle, interval, probes) = KEEPALIVE;
    let password = server.password();
    let mut options = OptsBuilder::new()
        .user(Some(&server.user))
        .pass(password.as_ref().map(|password| password.as_str()))
        .db_name(Some(&server.database))
        .prefer_socket(false)
        .max_allowed_packet(Some(MAX_ROW_BYTES + PACKET))
        .tcp_connect_timeout(Some(CONNECT))
        .tcp_keepalive_time_ms(Some(idle.as_millis() as u32));
    #[cfg(target_os = "linux")]
    {
        options = options
            .tcp_keepalive_probe_interval_secs(Some(interval.as_secs() as u32))
            .tcp_keepalive_probe_count(Some(probes));
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (interval, probes);
    options = if server.host.starts_with('/') {
        options.socket(Some(&server.host))
    } else {
        options.ip_or_hostname(Some(&server.host)).tcp_port(server.port.unwrap_or(3306))
    };
    if server.verifies() {
        server.trust()?; // a file that holds none is named here
        let ca = server.ca.as_ref().map(PathBuf::from);
        options = options.ssl_opts(Some(SslOpts::default().with_root_cert_path(ca)));
    }
    Conn::new(options).map_err(|error| refused(server, &error))
}

/// The order of a table's primary key.
fn order(transaction: &mut Transaction<'_>, table: &str) -> Result<String, Error> {
    let key: Vec<String> = transaction.exec(
        "SELECT column_name FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = ? \
         AND index_name = 'PRIMARY' ORDER BY seq_in_index",
        (table,),
    )?;
    let key: Vec<String> = key.iter().map(|column| quoted(column)).collect();
    Ok(if key.is_empty() { String::new() } else { format!(" ORDER BY {}", key.join(", ")) })
}

/// A name as MySQL writes one, whatever it holds.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The one form of a column's values as keys. Spaces that fill a text are not sent.
fn key_type(column: &Column) -> Option<KeyType> {
    match column.column_type() {
        ColumnType::MYSQL_TYPE_DECIMAL | ColumnType::MYSQL_TYPE_NEWDECIMAL => Some(KeyType::Decimal),
        ColumnType::MYSQL_TYPE_DATETIME | ColumnType::MYSQL_TYPE_TIMESTAMP => Some(KeyType::Timestamp),
        _ => None,
    }
}

/// What becomes of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Number,
    Text,
    Bytes,
    Bits,
    Json,
    Date,
    /// With this many digits of a second.
    Time(usize),
}

impl Rule {
    /// The rule for a column; `None` where its type has none.
    fn of(column: &Column) -> Option<Self> {
        use ColumnType::*;
        let digits = if column.decimals() <= 6 { usize::from(column.decimals()) } else { 0 };
        Some(match column.column_type() {
            MYSQL_TYPE_NULL | MYSQL_TYPE_TINY | MYSQL_TYPE_SHORT | MYSQL_TYPE_INT24 | MYSQL_TYPE_LONG
            | MYSQL_TYPE_LONGLONG | MYSQL_TYPE_YEAR | MYSQL_TYPE_FLOAT | MYSQL_TYPE_DOUBLE => Rule::Number,
            MYSQL_TYPE_DECIMAL | MYSQL_TYPE_NEWDECIMAL => Rule::Text,
            MYSQL_TYPE_DATE | MYSQL_TYPE_NEWDATE => Rule::Date,
            MYSQL_TYPE_DATETIME | MYSQL_TYPE_TIMESTAMP | MYSQL_TYPE_TIME => Rule::Time(digits),
            MYSQL_TYPE_BIT => Rule::Bits,
            MYSQL_TYPE_JSON => Rule::Json,
            MYSQL_TYPE_ENUM | MYSQL_TYPE_SET => Rule::Text,
            MYSQL_TYPE_VARCHAR
            | MYSQL_TYPE_VAR_STRING
            | MYSQL_TYPE_STRING
            | MYSQL_TYPE_TINY_BLOB
            | MYSQL_TYPE_MEDIUM_BLOB
            | MYSQL_TYPE_LONG_BLOB
            | MYSQL_TYPE_BLOB => {
                let set = column.flags().intersects(ColumnFlags::ENUM_FLAG | ColumnFlags::SET_FLAG);
                if column.character_set() == BINARY && !set { Rule::Bytes } else { Rule::Text }
            }
            _ => return None,
        })
    }

    /// A value of a row; `bytes` grows by what it takes.
    fn value(self, row: &Row, position: usize, bytes: &mut usize) -> Result<Value, Cow<'static, str>> {
        use ::mysql::Value as Sql;
        const OTHER: &str = "it is of another type than the server said";
        Ok(match (self, row.as_ref(position).ok_or("it is missing")?) {
            (_, Sql::NULL) => Value::Null,
            (Rule::Number, Sql::Int(n)) => Value::Int(*n),
            (Rule::Number, Sql::UInt(n)) => Value::from_json((*n).into()),
            // The decimal that the server shows, not its binary digits: 0.1 and not 0.10000000149.
            (Rule::Number, Sql::Float(x)) => Value::Real(x.to_string().parse().map_err(|_| OTHER)?),
            (Rule::Number, Sql::Double(x)) => Value::Real(*x),
            (Rule::Date, Sql::Date(year, month, day, ..)) => {
                Value::Text(format!("{year:04}-{month:02}-{day:02}"))
            }
            (Rule::Time(digits), Sql::Date(year, month, day, h, m, s, micros)) => Value::Text(format!(
                "{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02}{}",
                fraction(*micros, digits)
            )),
            (Rule::Time(digits), Sql::Time(negative, days, h, m, s, micros)) => Value::Text(format!(
                "{}{:02}:{m:02}:{s:02}{}",
                if *negative { "-" } else { "" },
                u64::from(*days) * 24 + u64::from(*h),
                fraction(*micros, digits)
            )),
            (rule, Sql::Bytes(data)) => {
                *bytes += data.len();
                let text = || String::from_utf8(data.clone()).map_err(|_| "it is not UTF-8");
                match rule {
                    Rule::Bytes => Value::Blob(data.clone()),
                    Rule::Bits if data.len() <= 8 => {
                        let bits = data.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
                        Value::from_json(bits.into())
                    }
                    Rule::Text => Value::Text(text()?),
                    Rule::Json => json_lines::value(&text()?)?,
                    _ => return Err(OTHER.into()),
                }
            }
            _ => return Err(OTHER.into()),
        })
    }
}

/// This many digits of a second.
fn fraction(micros: u32, digits: usize) -> String {
    if digits == 0 { String::new() } else { format!(".{}", &format!("{micros:06}")[..digits]) }
}

/// What the server, or the way to it, said, with what to do about it.
fn refused(server: &Server, error: &Error) -> SourceError {
    const THERE: &str = "check the server, its address, what it says about TLS, and the network between";
    let carried = match error {
        Error::IoError(error) => Some(error as &(dyn std::error::Error + 'static)),
        Error::CodecError(broken) => std::error::Error::source(broken),
        _ => Some(error as _),
    };
    if let Some(fault) = carried.and_then(|error| server.fault_of_tls(error)) {
        return fault;
    }
    let (text, remedy) = match error {
        Error::MySqlError(said) => (
            said.message.clone(),
            match said.code {
                1045 | 1698 if let Some(none) = server.no_password() => return none,
                1045 | 1698 => "check the user and its password, in the URL or in MYSQL_PWD",
                1044 | 1049 => "check the database's name, and grant SELECT on it to this user",
                1142 | 1143 => "grant SELECT on it to this user",
                1146 => "name a table or view of that database",
                1792 => "write one SELECT, which changes nothing",
                _ => {
                    "mend the view or query; what follows ?query= is taken as it stands, nothing percent-decoded"
                }
            },
        ),
        Error::CodecError(broken) => match std::error::Error::source(broken) {
            Some(error) => (error.to_string(), THERE),
            None => (
                broken.to_string(),
                "leave the largest column out, for a row is limited to 64 MiB, or check the network",
            ),
        },
        Error::IoError(error) => (error.to_string(), THERE),
        Error::DriverError(error) => (error.to_string(), THERE),
        _ => (error.to_string(), THERE),
    };
    server.refused(text, remedy)
}
