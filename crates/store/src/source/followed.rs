//! A database that is followed: which rows are asked for, and how far a read came.
//!
//! A row whose column has grown is not seen at once: `now()` is the start of a transaction, and a number is drawn before
//! the transaction that uses it commits. So a read begins an [`Overlap`] below the last value. `xmin`, PostgreSQL's column
//! of transaction numbers, needs none. ([Decision 40](../../../../docs/decisions/0040-following.md))

use super::server::System;
use super::{Kind, Of, SourceError, SourceSpec};
use crate::Value;
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};
use serde_json::Value as Json;
use std::time::{SystemTime, UNIX_EPOCH};

/// PostgreSQL's column of the transaction that wrote a row.
const XMIN: &str = "xmin";

/// How far below the last value the next read of a followed column begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlap {
    /// Ten minutes of times, a thousand of numbers.
    #[default]
    Usual,
    /// This many seconds.
    Seconds(u64),
    /// This much of a number.
    Count(u64),
}

impl Overlap {
    /// Seconds of a time, where nothing is said.
    const SECONDS: u64 = 600;
    /// Of a number, where nothing is said: more than sequences hand out ahead.
    const COUNT: u64 = 1000;

    /// Understands what a person wrote: `10m`, `36h` or `1000`.
    ///
    /// # Errors
    /// It is neither a duration nor a whole number; as a clause about it, with the remedy.
    pub fn parse(text: &str) -> Result<Self, String> {
        let seconds =
            || blindcore_units::duration(text).filter(|s| *s <= 1e10).map(|s| Self::Seconds(s.ceil() as u64));
        let count = blindcore_units::whole(text).map(Self::Count);
        count
            .or_else(seconds)
            .ok_or_else(|| "it is no span; write 10m or 36h for times, 1000 for numbers".to_owned())
    }

    fn seconds(self) -> Result<u64, &'static str> {
        match self {
            Self::Usual => Ok(Self::SECONDS),
            Self::Seconds(seconds) => Ok(seconds),
            Self::Count(0) => Ok(0),
            Self::Count(_) => Err("holds times; give the overlap as a duration, such as --overlap 10m"),
        }
    }

    fn count(self) -> Result<u64, &'static str> {
        match self {
            Self::Usual => Ok(Self::COUNT),
            Self::Count(count) => Ok(count),
            Self::Seconds(0) => Ok(0),
            Self::Seconds(_) => Err("holds numbers; give the overlap as a number, such as --overlap 1000"),
        }
    }
}

/// What to read of a source that is followed.
pub(crate) struct Followed {
    pub(crate) spec: SourceSpec,
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
                    let least =
                        if count == 0 { text.clone() } else { (whole - i128::from(count) - 1).to_string() };
                    return Ok(Self { least: least.into(), kind: StartKind::Number });
                }
                Ok(Self { least: text.clone().into(), kind: StartKind::Other })
            }
            _ => Err("can't be followed from where it was; build the table again"),
        }
    }
}

/// A time of day, what stands before it, and what stands behind it.
type TimeOfDay<'a> = (NaiveTime, &'a str, &'a str);

/// A date, `2001-02-03`, and the time behind it, if there is one.
fn time_of(text: &str) -> Option<(NaiveDate, Option<TimeOfDay<'_>>)> {
    let date = NaiveDate::parse_from_str(text.get(..10)?, "%Y-%m-%d").ok()?;
    if text.len() == 10 {
        return Some((date, None));
    }
    let between = text.get(10..11).filter(|c| matches!(*c, " " | "T" | "t"))?;
    let time = NaiveTime::parse_from_str(text.get(11..19)?, "%H:%M:%S").ok()?;
    let fraction = text
        .get(19..)?
        .strip_prefix('.')
        .map_or(0, |rest| 1 + rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
    let zone = text.get(19 + fraction..)?;
    let plain = zone.chars().all(|c| c.is_ascii_digit() || "+-:Zz".contains(c));
    plain.then_some((date, Some((time, between, zone))))
}

fn is_time(text: &str) -> bool {
    time_of(text).is_some()
}

/// When a time is, in UTC and without its fraction, and whether it names its zone; one that names none is in UTC.
fn instant(text: &str) -> Option<(NaiveDateTime, bool)> {
    let (date, time) = time_of(text)?;
    let Some((time, _, zone)) = time else { return Some((date.and_time(NaiveTime::MIN), false)) };
    let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
    let part = |range| digits.get(range).map_or(Some(0), |part: &str| part.parse::<i64>().ok());
    let ahead = 3600 * part(0..2)? + 60 * part(2..4)? + part(4..6)?;
    let ahead = if zone.starts_with('-') { -ahead } else { ahead };
    let utc = date.and_time(time).checked_sub_signed(TimeDelta::try_seconds(ahead)?)?;
    Some((utc, !zone.is_empty()))
}

/// This machine's time, in UTC.
pub(crate) fn now() -> NaiveDateTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let now = i64::try_from(since).ok().and_then(|since| DateTime::from_timestamp(since, 0));
    now.map_or(NaiveDateTime::MAX, |now| now.naive_utc())
}

/// Numbers from here on stand for no end, as the largest of 64 bits does: nanoseconds since 1970 come here in 2116.
const NO_END: u64 = 1 << 62;
/// So do the largest of 31 and of 32 bits.
const LARGEST: [u64; 2] = [i32::MAX as u64, u32::MAX as u64];

/// Whether a value lies so far ahead that what grows would come behind it: a time to come, by more than clocks differ and,
/// where it names no zone, zones; or a number that stands for no end. Such a row is read every time and is never the place: that
/// loses nothing where the value is meant as it is.
fn is_ahead(value: &Json, now: NaiveDateTime) -> bool {
    match value {
        Json::Number(n) => match (n.as_u64(), n.as_i64(), n.as_f64()) {
            (Some(n), ..) => n >= NO_END || LARGEST.contains(&n),
            (_, Some(_), _) => false,
            (.., x) => x.is_some_and(|x| x >= NO_END as f64),
        },
        Json::String(text) => match instant(text) {
            Some((time, zoned)) => {
                let slack = if zoned { TimeDelta::minutes(10) } else { TimeDelta::days(1) };
                now.checked_add_signed(slack).is_some_and(|latest| time > latest)
            }
            None => whole_part(text).is_some_and(|n| n >= NO_END.into()),
        },
        _ => false,
    }
}

/// A time at least this many seconds before, in the same form: SQLite compares times as texts.
fn earlier(text: &str, seconds: u64) -> Option<String> {
    let (date, time) = time_of(text)?;
    let span = TimeDelta::try_seconds(i64::try_from(seconds).ok()?)?;
    let Some((time, between, zone)) = time else {
        let before = date.and_time(NaiveTime::MIN).checked_sub_signed(span)?;
        return Some(before.format("%Y-%m-%d").to_string());
    };
    // A second more, because the text's fraction is left out.
    let before = date.and_time(time).checked_sub_signed(span)?.checked_sub_signed(TimeDelta::seconds(1))?;
    Some(format!("{}{between}{}{zone}", before.format("%Y-%m-%d"), before.format("%H:%M:%S")))
}

/// What a decimal has before its point.
fn whole_part(text: &str) -> Option<i128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| whole.parse().ok()).flatten()
}

fn is_decimal(text: &str) -> bool {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let whole = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    [whole, part].iter().all(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

impl SourceSpec {
    /// The rows whose `column` is at least `last` less the overlap, or has no value; all rows where there is no `last`. The
    /// server sorts them, each type in its own way. Rows that were read before come again.
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
        // MySQL quotes names in its own way, and knows backslashes in texts.
        let mysql = system == Some(System::Mysql);
        let name = |name: &str| {
            let quote = if mysql { "`" } else { "\"" };
            format!("{quote}{}{quote}", name.replace(quote, &quote.repeat(2)))
        };
        let from = match (of, system) {
            (Of::Table(table), None) => name(table),
            // A dot is between schema and table.
            (Of::Table(table), _) => table.split('.').map(name).collect::<Vec<_>>().join("."),
            (Of::Query(sql), _) => format!("({}) AS followed", sql.trim_end().trim_end_matches(';')),
        };
        // A place that is ahead of all that comes, as a build before this one may have kept, is none.
        let last = last.filter(|last| column == XMIN || !is_ahead(last, now()));
        let (sql, note) = if column == XMIN && system == Some(System::Postgres) {
            if let Of::Query(_) = of {
                return refuse("a query's rows have no xmin", "name a table, or follow another column");
            }
            match last.map(Json::as_u64) {
                Some(None) => {
                    return refuse("what it was followed by is no transaction", "build the table again");
                }
                last => (by_transaction(&from, last.flatten()), None),
            }
        } else {
            let start =
                last.map(|last| Start::new(last, overlap)).transpose().map_err(|why| SourceError::Unfit {
                    origin: self.to_string(),
                    why: format!("column {column:?} {}", why.split_once("; ").map_or(why, |(why, _)| why)),
                    remedy: why.split_once("; ").map_or("", |(_, remedy)| remedy).to_owned(),
                })?;
            let least = start.as_ref().map_or(String::new(), |start| {
                let value = match &start.least {
                    Json::String(text) => {
                        let text = if mysql { text.replace('\\', "\\\\") } else { text.clone() };
                        format!("'{}'", text.replace('\'', "''"))
                    }
                    number => number.to_string(),
                };
                let column = name(column);
                // SQLite compares times as texts, whatever their zones. A text of the same date in another zone differs by a day at most,
                // and by the date alone an index finds it; what has no value as a time is read.
                let by_value = match &start.least {
                    Json::String(text) if system.is_none() && start.kind == StartKind::Time => instant(text),
                    _ => None,
                };
                let day = by_value.and_then(|(least, _)| Some((least, least.date().pred_opt()?)));
                let at_least = day.map_or_else(
                    || format!("{column} >= {value}"),
                    |(least, day)| {
                        format!(
                            "{column} >= '{day}' AND COALESCE(julianday({column}) >= julianday('{}'), 1)",
                            least.format("%Y-%m-%d %H:%M:%S")
                        )
                    },
                );
                let more = match (start.kind, last, system) {
                    (StartKind::Time, _, Some(System::Postgres)) => format!(" OR {column} = '-infinity'"),
                    // SQLite sorts all numbers below texts, whatever the column's type; '/' is the character before '0', so texts that begin with
                    // a digit are not below it.
                    (StartKind::Time, _, None) => format!(" OR {column} < '/'"),
                    // If the largest value was set back, what follows lies below the place.
                    (StartKind::Number, Some(Json::Number(last)), _) => format!(
                        " OR NOT EXISTS (SELECT 1 FROM {from} WHERE {column} >= {last} AND {column} < {NO_END} AND {column} NOT IN \
                         ({}, {}))",
                        LARGEST[0], LARGEST[1]
                    ),
                    (StartKind::Other, _, None) => format!(" OR {column} < ''"),
                    // Digits of a text may have another order than the number that they make.
                    (StartKind::Number, Some(Json::String(last)), system) => {
                        let numbers =
                            if system.is_none() { format!(" OR {column} < ''") } else { String::new() };
                        format!(" OR {column} >= '{last}'{numbers}")
                    }
                    _ => String::new(),
                };
                format!(" WHERE {at_least} OR {column} IS NULL{more}")
            });
            let other =
                start.is_some_and(|start| start.kind == StartKind::Other) && overlap != Overlap::Count(0);
            let note = other.then(|| {
                format!(
                    "column {column:?} holds neither times nor numbers, so nothing below its last value is read again, and a \
                     row that is committed late is not seen"
                )
            });
            (format!("SELECT * FROM {from}{least} ORDER BY {}", name(column)), note)
        };
        let mut spec = self.clone();
        match &mut spec.0 {
            Kind::Sqlite { of, .. } => *of = Of::Query(sql),
            Kind::Server(server) => server.of = Of::Query(sql),
            _ => unreachable!("refused above"),
        }
        Ok(Followed { spec, note })
    }
}

/// The rows of a PostgreSQL table that a transaction wrote which the read before could not see to its end, with the oldest
/// transaction that still runs in column `xmin`: where the next read begins. Rows keep 32 bits of their transaction's
/// number; the others are the highest with which it is not ahead of all. Where the counter is behind `last`, the
/// server is another one or was restored, and all rows are read. Source: PostgreSQL's manual, "Transaction ID and Snapshot
/// Information Functions".
fn by_transaction(from: &str, last: Option<u64>) -> String {
    const SNAPSHOT: &str = "pg_current_snapshot()";
    let next = format!("pg_snapshot_xmax({SNAPSHOT})::text::bigint");
    let since = last.map_or(String::new(), |last| {
        format!(
            " WHERE {next} - (({next} - followed.xmin::text::bigint) & 4294967295) >= {last} OR {next} < {last}"
        )
    });
    format!(
        "SELECT followed.*, pg_snapshot_xmin({SNAPSHOT})::text::bigint AS xmin FROM {from} AS followed{since}"
    )
}

/// Kinds of values that a column is followed by, each with an order of its own. SQLite keeps them beside one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaceKind {
    Number,
    /// Digits in a text, as servers give decimals.
    Decimal,
    Time,
    /// A text that is neither.
    Text,
}

impl PlaceKind {
    fn of_text(text: &str) -> Self {
        match text {
            text if is_time(text) => Self::Time,
            text if is_decimal(text) => Self::Decimal,
            _ => Self::Text,
        }
    }

    fn of_place(place: &Json) -> Self {
        place.as_str().map_or(Self::Number, Self::of_text)
    }

    /// What its values are, for people.
    fn title(self) -> &'static str {
        match self {
            Self::Number | Self::Decimal => "numbers",
            Self::Time => "times",
            Self::Text => "texts",
        }
    }
}

/// How far a source that is followed was read.
pub(crate) struct Reached {
    /// How far the reads before came, if there were any.
    before: Option<Json>,
    now: NaiveDateTime,
    /// The last value of each kind, and how many were of it: rows come in the order of the server.
    seen: [(Option<Value>, u64); 4],
    /// Rows by whose value nothing is followed, because it is null, infinite or ahead of all that comes.
    pub(crate) unplaced: u64,
}

impl Reached {
    /// Nothing yet, behind reads that came as far as `before`, at a time in UTC.
    pub(crate) fn after(before: Option<&Json>, now: NaiveDateTime) -> Self {
        Self { before: before.cloned(), now, seen: Default::default(), unplaced: 0 }
    }

    /// Takes the next row's value.
    pub(crate) fn see(&mut self, value: &Value) -> Result<(), String> {
        let kind = match value {
            Value::Real(x) if !x.is_finite() => None,
            Value::Text(text) if is_endless(text) => None,
            Value::Null => None,
            value if is_ahead(&value.to_json(), self.now) => None,
            Value::Text(text) => Some(PlaceKind::of_text(text)),
            Value::Int(_) | Value::Real(_) => Some(PlaceKind::Number),
            Value::Json(json) if json.is_number() => Some(PlaceKind::Number),
            _ => {
                return Err(
                    "the column that is followed holds what has no order; follow numbers or times".into()
                );
            }
        };
        match kind {
            None => self.unplaced += 1,
            Some(kind) => {
                let (last, count) = &mut self.seen[kind as usize];
                // The server sorts texts of times in its own way: the latest is the place.
                let latest = match (last.as_ref(), value) {
                    (Some(Value::Text(last)), Value::Text(text)) if kind == PlaceKind::Time => {
                        instant(text) >= instant(last)
                    }
                    _ => true,
                };
                if latest {
                    *last = Some(value.clone());
                }
                *count += 1;
            }
        }
        Ok(())
    }

    /// The kind that is followed: that of the reads before; else what most values are, other texts last. A place that is such a text
    /// gives way to numbers.
    fn kind(&self) -> PlaceKind {
        let count = |kind: &PlaceKind| self.seen[*kind as usize].1;
        // Of equal ones the last is taken.
        let most = [PlaceKind::Time, PlaceKind::Decimal, PlaceKind::Number].into_iter().max_by_key(count);
        let most = most.expect("there are three");
        match self.before.as_ref().map(PlaceKind::of_place) {
            Some(kind) if kind != PlaceKind::Text => kind,
            _ if most == PlaceKind::Number && count(&most) > 0 => most,
            None if count(&most) >= count(&PlaceKind::Text) => most,
            _ => PlaceKind::Text,
        }
    }

    /// Where the next read begins, if a value of the kind that is followed was seen.
    pub(crate) fn last(&self) -> Option<&Value> {
        self.seen[self.kind() as usize].0.as_ref()
    }

    /// That the largest value is below the one before, as a sentence about `column`.
    pub(crate) fn set_back(&self, column: &str) -> Option<String> {
        let (before, last) = (self.before.as_ref()?, self.last()?.to_json());
        let below = match self.kind() {
            PlaceKind::Number => last.as_f64() < before.as_f64(),
            // Only of numbers all are read again.
            PlaceKind::Time | PlaceKind::Decimal | PlaceKind::Text => false,
        };
        let said = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        below.then(|| {
            format!(
                "{column:?} is {} at most, and it was followed from {}, so all rows were read again",
                said(&last),
                said(before)
            )
        })
    }

    /// Rows whose values are of another kind than what is followed, as a sentence about `column`.
    pub(crate) fn strays(&self, column: &str) -> Option<String> {
        let kind = self.kind();
        let count: u64 = self.seen.iter().map(|(_, count)| count).sum::<u64>() - self.seen[kind as usize].1;
        (count > 0).then(|| {
            format!(
                "{column:?} has another kind of value in {count} of the rows that were read than the {} that it is followed by; \
                 these rows are taken, and nothing is followed by them: correct them in the source",
                kind.title()
            )
        })
    }
}

/// Whether it is what PostgreSQL writes for a time or number that no other is above or below.
fn is_endless(text: &str) -> bool {
    ["infinity", "-infinity", "Infinity", "-Infinity", "NaN"].contains(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn day(year: i32) -> NaiveDateTime {
        NaiveDate::from_ymd_opt(year, 3, 1).unwrap().and_time(NaiveTime::MIN)
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
            let spec = SourceSpec::parse(spec).unwrap().since(column, Some(&last), Overlap::Usual)?;
            Ok::<_, SourceError>((
                spec.spec.to_string().split_once("query=").unwrap().1.to_owned(),
                spec.note,
            ))
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
        assert!(asked.contains("& 4294967295) >= 70 OR ") && !asked.contains("ORDER BY"), "{asked}");
        let error = sql("postgres://u@h/d?query=SELECT 1", "xmin", json!(70)).err().unwrap().to_string();
        assert!(error.contains("name a table, or follow another column"), "{error}");
        let error = sql("data.csv", "a", json!(1)).err().unwrap().to_string();
        assert!(error.contains("only a database can be followed"), "{error}");
    }

    #[test]
    fn what_has_no_place_is_counted_and_does_not_stick() {
        let mut reached = Reached::after(None, day(2026));
        let text = |text: &str| Value::Text(text.into());
        // Numerics come in their order, which is not that of their digits.
        for value in [text("-infinity"), text("9"), text("10"), text("Infinity"), text("NaN"), Value::Null] {
            reached.see(&value).unwrap();
        }
        assert_eq!((reached.last(), reached.unplaced), (Some(&text("10")), 4));
        reached.see(&Value::Real(f64::INFINITY)).unwrap();
        assert_eq!((reached.last(), reached.unplaced), (Some(&text("10")), 5));
        assert!(reached.see(&Value::Bool(true)).is_err());
    }

    #[test]
    fn a_value_of_another_kind_is_never_the_place() {
        let text = |text: &str| Value::Text(text.into());
        let (one, time) = (Value::Int(1), text("2024-03-01 00:05:00"));
        for (before, values, place, strays) in [
            (None, vec![one.clone(), text("n/a"), text("n/b")], Some(&one), 2),
            (None, vec![one.clone(), text("5")], Some(&one), 1),
            (None, vec![one.clone(), time.clone(), text("tomorrow")], Some(&one), 2),
            (None, vec![time.clone(), text("tomorrow")], Some(&time), 1),
            (None, vec![text("a"), text("b")], Some(&text("b")), 0),
            (Some(json!(7)), vec![text("n/a")], None, 1),
            (Some(json!("2024-01-01")), vec![one.clone(), text("soon"), text("tomorrow")], None, 3),
            (Some(json!("1.5")), vec![text("2.5"), text("x"), text("y")], Some(&text("2.5")), 2),
            // A build before this one may have stopped at a text.
            (Some(json!("n/a")), vec![one.clone(), text("n/a")], Some(&one), 1),
            (Some(json!("a")), vec![text("b")], Some(&text("b")), 0),
        ] {
            let mut reached = Reached::after(before.as_ref(), day(2026));
            values.iter().for_each(|value| reached.see(value).unwrap());
            assert_eq!(reached.last(), place, "{before:?} {values:?}");
            let said = reached.strays("u").map_or(0, |said| said.split(' ').nth(7).unwrap().parse().unwrap());
            assert_eq!(said, strays, "{before:?} {values:?}");
        }
    }

    #[test]
    fn times_are_compared_by_their_values() {
        let utc = |text: &str| instant(text).map(|(time, _)| time.to_string());
        for (text, at) in [
            ("2024-10-27T02:30:00+02:00", "2024-10-27 00:30:00"),
            ("2024-10-27 02:05:00.5+01", "2024-10-27 01:05:00"),
            ("2024-10-27t02:05:00-0530", "2024-10-27 07:35:00"),
            ("2024-10-27 02:05:00Z", "2024-10-27 02:05:00"),
            ("2024-10-27", "2024-10-27 00:00:00"),
        ] {
            assert_eq!(utc(text).as_deref(), Some(at), "{text}");
        }
        let mut reached = Reached::after(None, day(2026));
        let late = Value::Text("2024-10-27T02:05:00+01:00".into());
        for value in [late.clone(), Value::Text("2024-10-27T02:30:00+02:00".into())] {
            reached.see(&value).unwrap();
        }
        assert_eq!(reached.last(), Some(&late));
    }

    #[test]
    fn a_value_ahead_of_all_that_comes_is_never_the_place() {
        let text = |text: &str| Value::Text(text.into());
        let now = day(2026);
        for (place, ahead) in [
            (text("2026-02-28 10:00:00+00"), text("9999-12-31 00:00:00+00")),
            (text("2026-03-01 00:09:00+00"), text("2026-03-01 00:11:00+00")),
            // Of no zone: half of the world is ahead of UTC.
            (text("2026-03-01 23:00:00"), text("2026-03-02 01:00:00")),
            (Value::Int(7), Value::Int(i64::MAX)),
            (Value::Int(i64::from(i32::MAX) + 1), Value::Int(i64::from(u32::MAX))),
            (Value::Real(1.5), Value::Real(1e300)),
            (text("1.5"), text("99999999999999999999.5")),
        ] {
            let mut reached = Reached::after(None, now);
            [&place, &ahead].into_iter().for_each(|value| reached.see(value).unwrap());
            assert_eq!((reached.last(), reached.unplaced), (Some(&place), 1), "{ahead:?}");
            assert!(!is_ahead(&place.to_json(), now) && is_ahead(&ahead.to_json(), now));
        }
        let mut reached = Reached::after(Some(&json!(5000)), now);
        reached.see(&Value::Int(3)).unwrap();
        assert!(reached.set_back("n").unwrap().contains("3 at most, and it was followed from 5000"));
    }
}
