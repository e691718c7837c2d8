//! What is asked of a source that is followed. ([Decision 40](../../../../docs/decisions/0040-following.md))

use super::followed::{LARGEST, NO_END, Overlap, earlier, instant, is_ahead, is_time, now, whole_part};
use super::server::System;
use super::{Kind, Of, SourceError, SourceSpec};
use serde_json::Value as Json;
use std::fs;
use std::path::PathBuf;

/// PostgreSQL's column of the transaction that wrote a row.
const XMIN: &str = "xmin";
/// Texts that are numbers, as a regular expression that servers know.
const NUMBERS: &str = "^[-+]?[0-9]+([.][0-9]+)?$";
/// Texts that are times.
const TIMES: &str = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])\
                     ([ Tt]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9][-0-9.:+Zz]*)?$";
/// Of a date, as SQLite's `GLOB` has it.
const DATE: &str = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]";

/// SQL: whether a number is one to follow by, and does not mean "without end" ([`is_ahead`]).
fn has_end(number: &str) -> String {
    format!("{number} < {NO_END} AND {number} NOT IN ({}, {})", LARGEST[0], LARGEST[1])
}

/// SQL: takes the rows whose number means "without end" as well, wherever the place is.
fn or_largest(number: &str) -> String {
    format!(" OR {number} IN ({}, {})", LARGEST[0], LARGEST[1])
}

/// What to read of a source that is followed.
pub(crate) struct Followed {
    pub(crate) spec: SourceSpec,
    /// What to read instead where the column is one of texts, which a server compares as texts.
    pub(crate) of_texts: Option<SourceSpec>,
    /// What should be said of it, a sentence.
    pub(crate) note: Option<String>,
}

/// Where a read begins.
#[derive(Debug, PartialEq)]
struct Start {
    /// As SQL writes it, but for quotes and what a system escapes.
    least: Json,
    kind: StartKind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum StartKind {
    Number,
    /// A number in a text.
    Decimal,
    Time,
    /// A text that is neither: nothing can be taken from it.
    Other,
}

impl Start {
    fn new(last: &Json, overlap: Overlap) -> Result<Self, &'static str> {
        match last {
            Json::Number(n) => {
                let count = overlap.count()?;
                let least: Json = match (n.as_i64(), n.as_u64(), n.as_f64()) {
                    (Some(n), ..) => n.saturating_sub_unsigned(count).into(),
                    (_, Some(n), _) => n.saturating_sub(count).into(),
                    (.., x) => (x.unwrap_or(f64::MIN) - count as f64).into(),
                };
                Ok(Self { least, kind: StartKind::Number })
            }
            Json::String(text) => {
                if is_time(text) {
                    let seconds = overlap.seconds()?;
                    let least = if seconds == 0 { Some(text.clone()) } else { earlier(text, seconds) };
                    return Ok(Self {
                        least: least.unwrap_or_else(|| text.clone()).into(),
                        kind: StartKind::Time,
                    });
                }
                if let Some(whole) = whole_part(text) {
                    let count = overlap.count()?;
                    let least = whole.checked_sub(i128::from(count) + 1).filter(|_| count > 0);
                    let least = least.map_or_else(|| text.clone(), |least| least.to_string());
                    return Ok(Self { least: least.into(), kind: StartKind::Decimal });
                }
                Ok(Self { least: text.clone().into(), kind: StartKind::Other })
            }
            _ => Err("can't be followed from where it was; build the table again"),
        }
    }
}

/// The names of a source's rows and of the column that is followed, as SQL writes them.
struct Names {
    system: Option<System>,
    from: String,
    column: String,
}

impl Names {
    fn new(of: &Of, system: Option<System>, column: &str) -> Self {
        let quote = if system == Some(System::Mysql) { "`" } else { "\"" };
        let name = |name: &str| format!("{quote}{}{quote}", name.replace(quote, &quote.repeat(2)));
        let from = match (of, system) {
            (Of::Table(table), None) => name(table),
            // A dot is between schema and table.
            (Of::Table(table), _) => table.split('.').map(name).collect::<Vec<_>>().join("."),
            (Of::Query(sql) | Of::Followed { sql, .. }, _) => {
                // On a line of its own: a comment may end the query.
                format!("({}\n) AS followed", sql.trim_end().trim_end_matches(';'))
            }
        };
        Self { system, from, column: name(column) }
    }

    /// A value as SQL writes it. MySQL knows backslashes in texts.
    fn value(&self, value: &Json) -> String {
        let Some(text) = value.as_str() else { return value.to_string() };
        let mysql = self.system == Some(System::Mysql);
        let text = if mysql { text.replace('\\', "\\\\") } else { text.to_owned() };
        format!("'{}'", text.replace('\'', "''"))
    }

    /// The rows from a start on, as the column's type compares.
    fn by_type(&self, start: &Start, last: &Json) -> String {
        let Self { system, from, column } = self;
        let (least, last) = (self.value(&start.least), self.value(last));
        // If the largest value was set back, what follows lies below the place.
        let set_back = |below: &str| {
            format!(" OR NOT EXISTS (SELECT 1 FROM {from} WHERE {column} >= {last} AND {below})")
        };
        let number = |column: &str| format!("{}{}", set_back(&has_end(column)), or_largest(column));
        let more = match (start.kind, system) {
            (StartKind::Decimal, Some(System::Postgres)) => number(&format!("CAST({column} AS numeric)")),
            (StartKind::Number | StartKind::Decimal, _) => number(column),
            (StartKind::Time, Some(System::Postgres)) => format!(" OR {column} = '-infinity'"),
            // SQLite sorts all numbers below texts, whatever the column's type.
            (StartKind::Other, None) => format!(" OR {column} < ''"),
            (StartKind::Time | StartKind::Other, _) => String::new(),
        };
        format!("{column} >= {least} OR {column} IS NULL{more}")
    }

    /// The rows from a start on where the column holds texts: by what they say, and all that don't say it. `None` where they are no
    /// texts.
    fn by_text(&self, start: &Start, last: &Json) -> Option<String> {
        match start.kind {
            StartKind::Decimal => Some(self.numbers(start, last)),
            StartKind::Time => Some(self.times(start)),
            // Times and numbers are not in the order of texts: where one has come all rows are read, and it may be the next place.
            StartKind::Other => Some(format!(
                "{} OR EXISTS (SELECT 1 FROM {} WHERE {} OR {})",
                self.by_type(start, last),
                self.from,
                self.is_number(),
                self.is_time()
            )),
            StartKind::Number => None,
        }
    }

    /// Whether a value is a number in a text.
    fn is_number(&self) -> String {
        let Self { system, column, .. } = self;
        match system {
            None => format!(
                "typeof({column}) = 'text' AND ({column} GLOB '[0-9]*' OR {column} GLOB '[-+][0-9]*') AND {column} GLOB '*[0-9]' \
                 AND {column} NOT GLOB '*.*.*' AND substr({column}, 2) NOT GLOB '*[^0-9.]*'"
            ),
            Some(System::Postgres) => format!("CAST({column} AS text) ~ '{NUMBERS}'"),
            Some(System::Mysql) => format!("{column} REGEXP '{NUMBERS}'"),
        }
    }

    /// Whether a value is a time in a text.
    fn is_time(&self) -> String {
        let Self { system, column, .. } = self;
        match system {
            None => format!(
                "typeof({column}) = 'text' AND julianday(replace(substr({column}, 1, 19), 't', 'T')) IS NOT NULL AND ({column} \
                 GLOB '{DATE}' OR {column} GLOB '{DATE}[ Tt][0-9][0-9]:[0-9][0-9]:[0-9][0-9]*' AND substr({column}, 20) NOT GLOB \
                 '*[^-0-9.:+Zz]*')"
            ),
            Some(System::Postgres) => format!("CAST({column} AS text) ~ '{TIMES}'"),
            Some(System::Mysql) => format!("{column} REGEXP '{TIMES}'"),
        }
    }

    fn numbers(&self, start: &Start, last: &Json) -> String {
        let Self { system, from, column } = self;
        let is_number = self.is_number();
        // What a type rounds is rounded on both sides, and keeps its order.
        let number = |text: &str| match system {
            None => format!("CAST({text} AS REAL)"),
            Some(System::Postgres) => format!("CAST(CAST({text} AS text) AS numeric)"),
            Some(System::Mysql) => format!("CAST({text} AS DECIMAL(65, 20))"),
        };
        let value = number(column);
        let (least, last) = (number(&self.value(&start.least)), number(&self.value(last)));
        format!(
            "CASE WHEN {is_number} THEN {value} >= {least}{} ELSE TRUE END OR NOT EXISTS (SELECT 1 FROM {from} WHERE CASE WHEN \
             {is_number} THEN {value} >= {last} AND {} ELSE FALSE END)",
            or_largest(&value),
            has_end(&value)
        )
    }

    fn times(&self, start: &Start) -> String {
        let Self { system, column, .. } = self;
        let least = start.least.as_str().and_then(instant).map(|(least, _)| least);
        // A time of the same date in another zone differs by a day at most.
        let Some((least, day)) = least.and_then(|least| Some((least, least.date().pred_opt()?))) else {
            return "TRUE".to_owned();
        };
        let at_least = match system {
            // SQLite doesn't know the value of every form: then by the date alone.
            None => format!(
                "substr({column}, 1, 10) >= '{day}' AND COALESCE(julianday({column}) >= julianday('{}'), TRUE)",
                least.format("%Y-%m-%d %H:%M:%S")
            ),
            Some(System::Postgres) => format!("LEFT(CAST({column} AS text), 10) >= '{day}'"),
            Some(System::Mysql) => format!("LEFT({column}, 10) >= '{day}'"),
        };
        format!("CASE WHEN {} THEN {at_least} ELSE TRUE END", self.is_time())
    }
}

impl SourceSpec {
    /// The rows whose `column` is at least `last` less the overlap, or has no value; all rows where there is no `last`. The
    /// database sorts them, each type in its own way; what texts say it doesn't know ([`Reached::see`](super::Reached::see)). Rows that
    /// were read before come again.
    ///
    /// By `xmin`, those of a PostgreSQL table that were written by transactions which had not ended at the last read.
    ///
    /// # Errors
    /// The source is not a database, or `last` is of another kind than the overlap, or of none.
    pub(crate) fn since(
        &self,
        column: &str,
        last: Option<&Json>,
        overlap: Overlap,
    ) -> Result<Followed, SourceError> {
        let refuse = |why: &str, remedy: &str| {
            Err(SourceError::Spec { spec: self.to_string(), why: why.to_owned(), remedy: remedy.to_owned() })
        };
        let (of, system) = match &self.0 {
            Kind::Sqlite { of, .. } => (of, None),
            Kind::Server(server) => (&server.of, Some(server.system)),
            _ => return refuse("only a database can be followed", "name sqlite:, postgres:// or mysql://"),
        };
        let names = Names::new(of, system, column);
        // A place that is ahead of all that comes, as a build before this one may have kept, is none.
        let last = last.filter(|last| column == XMIN || !is_ahead(last, now()));
        if column == XMIN && system == Some(System::Postgres) {
            if let Of::Query(_) = of {
                return refuse("a query's rows have no xmin", "name a table, or follow another column");
            }
            let last = match last.map(Json::as_u64) {
                Some(None) => {
                    return refuse("its place is not that of a transaction", "build the table again");
                }
                last => last.flatten(),
            };
            let spec = self.asking(None, by_transaction(&names.from, last));
            return Ok(Followed { spec, of_texts: None, note: None });
        }
        let asking = |least: &str| {
            let sql = format!("SELECT * FROM {}{least} ORDER BY {}", names.from, names.column);
            self.asking(Some(column), sql)
        };
        let Some(last) = last else {
            return Ok(Followed { spec: asking(""), of_texts: None, note: None });
        };
        let start = Start::new(last, overlap).map_err(|why| SourceError::Unfit {
            origin: self.to_string(),
            why: format!("column {column:?} {}", why.split_once("; ").map_or(why, |(why, _)| why)),
            remedy: why.split_once("; ").map_or("", |(_, remedy)| remedy).to_owned(),
        })?;
        let by_text = names.by_text(&start, last).map(|rows| asking(&format!(" WHERE {rows}")));
        let by_type = || asking(&format!(" WHERE {}", names.by_type(&start, last)));
        let (spec, of_texts) = match system {
            // SQLite keeps texts in columns of any type.
            None => (by_text.unwrap_or_else(by_type), None),
            Some(_) => (by_type(), by_text),
        };
        let other = start.kind == StartKind::Other && overlap != Overlap::Count(0);
        let note = other.then(|| {
            format!(
                "column {column:?} holds neither times nor numbers, so nothing below its last value is read again, and a \
                 row that is committed late, or whose value sorts below it as a text, is not seen"
            )
        });
        Ok(Followed { spec, of_texts, note })
    }

    /// The same table or query, asked for these of its rows.
    fn asking(&self, column: Option<&str>, sql: String) -> Self {
        let mut spec = self.clone();
        let of = match &mut spec.0 {
            Kind::Sqlite { of, .. } => of,
            Kind::Server(server) => &mut server.of,
            _ => unreachable!("only a database is followed"),
        };
        *of = Of::Followed { own: Box::new(of.clone()), column: column.map(str::to_owned), sql };
        spec
    }

    /// What tells a database's rows from those of others: a short digest, because manifests are published. A password, TLS and the
    /// form of a path make no other source.
    pub(crate) fn mark(&self) -> String {
        let (place, of) = match &self.0 {
            Kind::Sqlite { path, of } => {
                let path = fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
                (path.into_os_string().into_encoded_bytes(), of)
            }
            Kind::Server(server) => (server.place().into_bytes(), &server.of),
            _ => return String::new(),
        };
        let (kind, of) = match of.own() {
            Of::Table(name) => ("table", name),
            Of::Query(sql) | Of::Followed { sql, .. } => ("query", sql),
        };
        let mut hasher = blake3::Hasher::new_derive_key("blindcore: a source that is followed");
        for part in [&place, kind.as_bytes(), of.as_bytes()] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        hasher.finalize().to_hex()[..16].to_owned()
    }
}

/// The rows of a PostgreSQL table that a transaction wrote which the read before could not see to its end, with the oldest
/// transaction that still runs in column `xmin`: where the next read begins. Rows keep 32 bits of their transaction's
/// number; the others are the highest with which it is not ahead of all. Where the counter is behind `last`, the
/// server is another one or was restored, and all rows are read. They come in the order in which their transactions began to write,
/// those of one transaction as they lie. Source: PostgreSQL's manual, "Transaction ID and Snapshot Information Functions".
fn by_transaction(from: &str, last: Option<u64>) -> String {
    const SNAPSHOT: &str = "pg_current_snapshot()";
    let next = format!("pg_snapshot_xmax({SNAPSHOT})::text::bigint");
    let written = format!("{next} - (({next} - followed.xmin::text::bigint) & 4294967295)");
    let since = last.map_or(String::new(), |last| format!(" WHERE {written} >= {last} OR {next} < {last}"));
    format!(
        "SELECT followed.*, pg_snapshot_xmin({SNAPSHOT})::text::bigint AS xmin FROM {from} AS followed{since} ORDER BY {written}, \
         followed.ctid"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked(spec: &SourceSpec) -> String {
        match &spec.0 {
            Kind::Sqlite { of: Of::Followed { sql, .. }, .. } => sql.clone(),
            Kind::Server(server) => match &server.of {
                Of::Followed { sql, .. } => sql.clone(),
                _ => panic!("it is not followed"),
            },
            _ => panic!("it is not followed"),
        }
    }

    #[test]
    fn a_read_begins_below_the_last_value_by_its_type() {
        for (last, overlap, least) in [
            (json!(5000), Overlap::Usual, json!(4000)),
            (json!(i64::MIN + 5), Overlap::Count(10), json!(i64::MIN)),
            (json!(u64::MAX), Overlap::Count(1), json!(u64::MAX - 1)),
            (json!(2.5), Overlap::Count(1), json!(1.5)),
            (json!("12.75"), Overlap::Usual, json!("-989")),
            (json!("12345678901234567890.5"), Overlap::Count(1), json!("12345678901234567888")),
            (json!("12.75"), Overlap::Count(0), json!("12.75")),
            (json!("2024-03-01 00:05:00.25+00"), Overlap::Usual, json!("2024-02-29 23:54:59+00")),
            (json!("2024-03-01T00:05:00Z"), Overlap::Seconds(60), json!("2024-03-01T00:03:59Z")),
            (json!("2024-03-01 00:05:00"), Overlap::Seconds(0), json!("2024-03-01 00:05:00")),
            (json!("2024-03-01"), Overlap::Usual, json!("2024-02-29")),
            (json!("2024-03-01"), Overlap::Seconds(86_400), json!("2024-02-29")),
            (json!("2024-13-01"), Overlap::Usual, json!("2024-13-01")),
            (json!("it's"), Overlap::Count(5), json!("it's")),
        ] {
            assert_eq!(Start::new(&last, overlap).unwrap().least, least, "{last}");
        }
        assert!(Start::new(&json!(5), Overlap::Seconds(60)).unwrap_err().contains("--overlap 1000"));
        assert!(Start::new(&json!("2024-03-01"), Overlap::Count(60)).unwrap_err().contains("--overlap 10m"));
        assert_eq!(Overlap::parse("1.5m"), Ok(Overlap::Seconds(90)));
        assert_eq!(Overlap::parse("1000"), Ok(Overlap::Count(1000)));
        assert!(Overlap::parse("soon").unwrap_err().contains("10m"));
    }

    #[test]
    fn what_a_server_is_asked() {
        let sql = |spec: &str, column: &str, last: Json| {
            let followed = SourceSpec::parse(spec).unwrap().since(column, Some(&last), Overlap::Usual)?;
            // Errors name what a person wrote.
            assert_eq!(followed.spec.to_string(), spec);
            Ok::<_, SourceError>((asked(&followed.spec), followed.note))
        };
        let (asked, note) = sql("postgres://u@h/d?table=s.t", "at", json!("2024-03-01 00:05:00+00")).unwrap();
        assert_eq!(
            asked,
            "SELECT * FROM \"s\".\"t\" WHERE \"at\" >= '2024-02-29 23:54:59+00' OR \"at\" IS NULL OR \"at\" = '-infinity' ORDER \
             BY \"at\""
        );
        assert!(note.is_none());
        let (asked, note) = sql("mysql://u@h/d?table=t", "a", json!("\\'x")).unwrap();
        assert_eq!(asked, "SELECT * FROM `t` WHERE `a` >= '\\\\''x' OR `a` IS NULL ORDER BY `a`");
        assert!(note.unwrap().contains("holds neither times nor numbers"));
        let (asked, _) = sql("postgres://u@h/d?table=t", "xmin", json!(70)).unwrap();
        assert!(asked.contains("& 4294967295) >= 70 OR "), "{asked}");
        assert!(asked.ends_with("followed.xmin::text::bigint) & 4294967295), followed.ctid"), "{asked}");
        let error = sql("postgres://u@h/d?query=SELECT 1", "xmin", json!(70)).err().unwrap().to_string();
        assert!(error.contains("name a table, or follow another column"), "{error}");
        let error = sql("data.csv", "a", json!(1)).err().unwrap().to_string();
        assert!(error.contains("only a database can be followed"), "{error}");
    }

    #[test]
    fn texts_of_a_server_are_compared_by_what_they_say() {
        let of_texts = |spec: &str, last: Json| {
            let followed = SourceSpec::parse(spec).unwrap().since("a", Some(&last), Overlap::Usual).unwrap();
            followed.of_texts.map(|spec| asked(&spec).split_once("WHERE ").unwrap().1.to_owned())
        };
        let my = "mysql://u@h/d?table=t";
        assert_eq!(
            of_texts(my, json!("9999")).unwrap(),
            "CASE WHEN `a` REGEXP '^[-+]?[0-9]+([.][0-9]+)?$' THEN CAST(`a` AS DECIMAL(65, 20)) >= CAST('8998' AS DECIMAL(65, 20)) \
             OR CAST(`a` AS DECIMAL(65, 20)) IN (2147483647, 4294967295) ELSE TRUE END OR NOT EXISTS (SELECT 1 FROM `t` WHERE CASE \
             WHEN `a` REGEXP '^[-+]?[0-9]+([.][0-9]+)?$' THEN CAST(`a` AS DECIMAL(65, 20)) >= CAST('9999' AS DECIMAL(65, 20)) AND \
             CAST(`a` AS DECIMAL(65, 20)) < 4611686018427387904 AND CAST(`a` AS DECIMAL(65, 20)) NOT IN (2147483647, 4294967295) ELSE \
             FALSE END) ORDER BY `a`"
        );
        let asked = of_texts(my, json!("2024-03-01 00:05:00")).unwrap();
        assert!(asked.ends_with("THEN LEFT(`a`, 10) >= '2024-02-28' ELSE TRUE END ORDER BY `a`"), "{asked}");
        for spec in [my, "postgres://u@h/d?table=t"] {
            assert!(of_texts(spec, json!(5)).is_none());
            let asked = of_texts(spec, json!("a7")).unwrap();
            assert!(asked.contains(">= 'a7' OR ") && asked.contains(" OR EXISTS (SELECT 1 FROM "), "{asked}");
        }
    }

    #[test]
    fn a_source_is_told_from_others_without_its_secrets() {
        let mark = |spec: &str| SourceSpec::parse(spec).unwrap().mark();
        let all = [
            "postgres://u@h/d?table=t",
            "postgres://u@h/d?table=t2",
            "postgres://u@h/d2?table=t",
            "postgres://u@h2/d?table=t",
            "postgres://u@h/d?query=t",
            "mysql://u@h/d?table=t",
            "sqlite:no/such.db?table=t",
            "sqlite:no/such.db?query=t",
        ];
        let marks: std::collections::HashSet<String> = all.iter().map(|spec| mark(spec)).collect();
        assert!(marks.len() == all.len() && marks.iter().all(|mark| mark.len() == 16), "{marks:?}");
        for same in ["postgres://u:secret@h/d?table=t", "postgres://u@h/d?tls=verify&table=t"] {
            assert_eq!(mark(same), mark(all[0]), "{same}");
        }
    }
}
