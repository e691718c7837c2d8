//! A database that is followed: which rows are asked for, and how far a read came.
//!
//! A row whose column has grown is not seen at once: `now()` is the start of a transaction, and a number is drawn before
//! the transaction that uses it commits. So a read begins an [`Overlap`] below the last value. `xmin`, PostgreSQL's column
//! of transaction numbers, needs none. ([Decision 40](../../../../docs/decisions/0040-following.md))

use crate::Value;
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};
use serde_json::Value as Json;
use std::time::{SystemTime, UNIX_EPOCH};

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

    pub(super) fn seconds(self) -> Result<u64, &'static str> {
        match self {
            Self::Usual => Ok(Self::SECONDS),
            Self::Seconds(seconds) => Ok(seconds),
            Self::Count(0) => Ok(0),
            Self::Count(_) => Err("holds times; give the overlap as a duration, such as --overlap 10m"),
        }
    }

    pub(super) fn count(self) -> Result<u64, &'static str> {
        match self {
            Self::Usual => Ok(Self::COUNT),
            Self::Count(count) => Ok(count),
            Self::Seconds(0) => Ok(0),
            Self::Seconds(_) => Err("holds numbers; give the overlap as a number, such as --overlap 1000"),
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

pub(super) fn is_time(text: &str) -> bool {
    time_of(text).is_some()
}

/// When a time is, in UTC and without its fraction, and whether it names its zone; one that names none is in UTC.
pub(super) fn instant(text: &str) -> Option<(NaiveDateTime, bool)> {
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
pub(super) const NO_END: u64 = 1 << 62;
/// So do the largest of 31 and of 32 bits.
pub(super) const LARGEST: [u64; 2] = [i32::MAX as u64, u32::MAX as u64];

/// Whether a value lies so far ahead that what grows would come behind it: a time to come, by more than clocks differ and,
/// where it names no zone, zones; or a number that stands for no end. Such a row is read every time and is never the place: that
/// loses nothing where the value is meant as it is.
pub(super) fn is_ahead(value: &Json, now: NaiveDateTime) -> bool {
    match value {
        Json::Number(n) => match (n.as_u64(), n.as_i64(), n.as_f64()) {
            (Some(n), ..) => n >= NO_END || LARGEST.contains(&n),
            (_, Some(_), _) => false,
            (.., x) => x.is_some_and(|x| x >= NO_END as f64 || LARGEST.iter().any(|n| x == *n as f64)),
        },
        Json::String(text) => match instant(text) {
            Some((time, zoned)) => {
                let slack = if zoned { TimeDelta::minutes(10) } else { TimeDelta::days(1) };
                now.checked_add_signed(slack).is_some_and(|latest| time > latest)
            }
            None => whole_part(text).is_some_and(|n| {
                let largest = LARGEST.iter().any(|largest| n == i128::from(*largest));
                n >= NO_END.into()
                    || largest && digits(text).is_some_and(|(.., part)| part.bytes().all(|b| b == b'0'))
            }),
        },
        _ => false,
    }
}

/// Where a value stands among those of a column that is followed: numbers by what they are, behind them times, behind these what is
/// neither, all in one place. Of a number its first [`DIGITS`] digits count, of a second 18 behind the point.
fn order(value: &Value) -> u128 {
    const TIMES: u128 = 1 << 126;
    const OTHERS: u128 = 2 << 126;
    let number = |text: &str| order_of_number(text).unwrap_or(OTHERS);
    match value {
        Value::Int(n) => number(&n.to_string()),
        Value::Real(x) => number(&x.to_string()),
        Value::Json(json) if json.is_number() => number(&json.to_string()),
        Value::Text(text) => match order_of_time(text) {
            Some(time) => TIMES + time,
            None => number(text),
        },
        _ => OTHERS,
    }
}

/// Digits by which numbers are told apart, from the first one that is not 0.
const DIGITS: usize = 33;

/// Numbers in digits, below 2^126: for positive ones how many stand before the point, then the first of them.
fn order_of_number(text: &str) -> Option<u128> {
    const ZERO: u128 = 1 << 125;
    const MOST: i64 = (1 << 14) - 1;
    let (sign, whole, part) = digits(text)?;
    let whole = whole.trim_start_matches('0');
    let below = part.len() - part.trim_start_matches('0').len();
    let before = if whole.is_empty() { -(below as i64) } else { whole.len() as i64 };
    let all = whole.bytes().chain(part.bytes()).skip_while(|b| *b == b'0').chain(std::iter::repeat(b'0'));
    let first = all.take(DIGITS).fold(0, |n, b| 10 * n + u128::from(b - b'0'));
    let size = ((before.clamp(-MOST, MOST) + MOST) as u128) << 110 | first;
    Some(match sign {
        _ if first == 0 => ZERO,
        "-" => ZERO - 1 - size,
        _ => ZERO + 1 + size,
    })
}

/// Times, below 2^126: seconds and 10^-18 of one.
fn order_of_time(text: &str) -> Option<u128> {
    let seconds = i128::from(instant(text)?.0.and_utc().timestamp()) + (1 << 63);
    let part = text.get(19..).and_then(|rest| rest.strip_prefix('.')).unwrap_or_default();
    let part = part.bytes().take_while(u8::is_ascii_digit).chain(std::iter::repeat(b'0'));
    let part = part.take(18).fold(0, |n, b| 10 * n + u128::from(b - b'0'));
    Some((seconds as u128) << 60 | part)
}

/// A time at least this many seconds before, in the same form: SQLite compares times as texts.
pub(super) fn earlier(text: &str, seconds: u64) -> Option<String> {
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

/// What a decimal has before its point, as far as 128 bits go.
pub(super) fn whole_part(text: &str) -> Option<i128> {
    let whole = text.split('.').next().filter(|_| is_decimal(text))?;
    Some(whole.parse().unwrap_or(if whole.starts_with('-') { i128::MIN } else { i128::MAX }))
}

fn is_decimal(text: &str) -> bool {
    digits(text).is_some()
}

/// A decimal's sign, what stands before its point, and what stands behind it.
fn digits(text: &str) -> Option<(&str, &str, &str)> {
    let (sign, rest) = text.split_at(text.starts_with(['-', '+']).into());
    let (whole, part) = rest.split_once('.').unwrap_or((rest, "0"));
    let all = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    (all(whole) && all(part)).then_some((sign, whole, part))
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

/// What a row can be followed by, as a byte that is kept beside it until the kind that is followed is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept(pub(crate) u8);

impl Kept {
    /// Nothing.
    const NONE: Self = Self(u8::MAX);
}

/// How far a source that is followed was read.
pub(crate) struct Reached {
    /// How far the reads before came, if there were any.
    before: Option<Json>,
    now: NaiveDateTime,
    /// The largest value of each kind with its [`order`], and how many were of it. Of texts that are neither times nor numbers the last is
    /// the largest: they come in the order of the database.
    seen: [(Option<(u128, Value)>, u64); 4],
    /// Rows whose values have no order, such as blobs.
    orderless: u64,
    /// Rows by whose value nothing is followed, because it is null, infinite or ahead of all that comes.
    pub(crate) unplaced: u64,
}

impl Reached {
    /// Nothing yet, behind reads that came as far as `before`, at a time in UTC.
    pub(crate) fn after(before: Option<&Json>, now: NaiveDateTime) -> Self {
        Self { before: before.cloned(), now, seen: Default::default(), orderless: 0, unplaced: 0 }
    }

    /// Takes the next row's value, and says where its row stands among the others: by the value, whatever order the database gives
    /// its rows. Those that are alike in it stay in that order. The second value tells, once all rows were seen, whether this one comes
    /// [behind](Self::is_behind) all that are followed.
    pub(crate) fn see(&mut self, value: &Value) -> (u128, Kept) {
        let order = order(value);
        let kind = match value {
            Value::Real(x) if !x.is_finite() => None,
            Value::Text(text) if is_endless(text) => None,
            Value::Null => None,
            value if is_ahead(&value.to_json(), self.now) => None,
            Value::Text(text) => Some(PlaceKind::of_text(text)),
            Value::Int(_) | Value::Real(_) => Some(PlaceKind::Number),
            Value::Json(json) if json.is_number() => Some(PlaceKind::Number),
            _ => {
                self.orderless += 1;
                return (order, Kept::NONE);
            }
        };
        let Some(kind) = kind else {
            self.unplaced += 1;
            return (order, Kept::NONE);
        };
        let (last, count) = &mut self.seen[kind as usize];
        if last.as_ref().is_none_or(|(largest, _)| *largest <= order) {
            *last = Some((order, value.clone()));
        }
        *count += 1;
        (order, Kept(kind as u8))
    }

    /// Once all were seen: whether a row stands behind those that are followed, because nothing is followed by its value. Every
    /// poll reads it, so that no poll may see it before others. Beside texts that are followed, each poll reads all rows once a time
    /// or a number is among them, and then they stand where they will when these are followed.
    pub(crate) fn is_behind(&self, kept: Kept) -> bool {
        match self.kind() {
            PlaceKind::Text => kept == Kept::NONE,
            kind => kept != Kept(kind as u8),
        }
    }

    /// That nothing but values without an order was ever read, as a clause.
    pub(crate) fn has_no_order(&self) -> Option<&'static str> {
        let none = self.before.is_none() && self.seen.iter().all(|(_, count)| *count == 0);
        (none && self.orderless > 0)
            .then_some("the column that is followed holds what has no order; follow numbers or times")
    }

    /// The kind that is followed: that of the reads before; else what most values are, other texts last. A place that is such a text
    /// gives way to numbers, and to times and numbers in texts where there are as many of them.
    fn kind(&self) -> PlaceKind {
        let count = |kind: &PlaceKind| self.seen[*kind as usize].1;
        // Of equal ones the last is taken.
        let most = [PlaceKind::Time, PlaceKind::Decimal, PlaceKind::Number].into_iter().max_by_key(count);
        let most = most.expect("there are three");
        match self.before.as_ref().map(PlaceKind::of_place) {
            Some(kind) if kind != PlaceKind::Text => kind,
            _ if most == PlaceKind::Number && count(&most) > 0 => most,
            before if count(&most) >= count(&PlaceKind::Text).max(before.is_some().into()) => most,
            _ => PlaceKind::Text,
        }
    }

    /// Where the next read begins, if a value of the kind that is followed was seen.
    pub(crate) fn last(&self) -> Option<&Value> {
        self.seen[self.kind() as usize].0.as_ref().map(|(_, value)| value)
    }

    /// That the largest value is below the one before, as a sentence about `column`.
    pub(crate) fn set_back(&self, column: &str) -> Option<String> {
        let (before, last) = (self.before.as_ref()?, self.last()?.to_json());
        let below = match self.kind() {
            PlaceKind::Number => last.as_f64() < before.as_f64(),
            PlaceKind::Decimal => last.as_str().and_then(whole_part) < before.as_str().and_then(whole_part),
            // Only of numbers all are read again.
            PlaceKind::Time | PlaceKind::Text => false,
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
        let placed: u64 = self.seen.iter().map(|(_, count)| count).sum();
        let count = placed + self.orderless - self.seen[kind as usize].1;
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
    fn what_has_no_place_is_counted_and_does_not_stick() {
        let mut reached = Reached::after(None, day(2026));
        let text = |text: &str| Value::Text(text.into());
        // Numerics come in their order, which is not that of their digits.
        for value in [text("-infinity"), text("9"), text("10"), text("Infinity"), text("NaN"), Value::Null] {
            reached.see(&value);
        }
        assert_eq!((reached.last(), reached.unplaced), (Some(&text("10")), 4));
        reached.see(&Value::Real(f64::INFINITY));
        assert_eq!((reached.last(), reached.unplaced), (Some(&text("10")), 5));
        assert_eq!((reached.has_no_order(), reached.strays("u")), (None, None));
        let mut reached = Reached::after(None, day(2026));
        reached.see(&Value::Bool(true));
        assert!(reached.has_no_order().is_some() && reached.last().is_none());
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
            (Some(json!("1.5")), vec![Value::Blob(vec![0])], None, 1),
            (None, vec![one.clone(), Value::Blob(vec![0]), Value::Bool(true)], Some(&one), 2),
            // In the order of texts.
            (
                None,
                vec![text("10000"), text("10001.5"), text("9999"), text("n/a")],
                Some(&text("10001.5")),
                1,
            ),
            (None, vec![text("-3"), text("-20")], Some(&text("-3")), 0),
            // A build before this one may have stopped at a text.
            (Some(json!("n/a")), vec![one.clone(), text("n/a")], Some(&one), 1),
            (Some(json!("n/a")), vec![time.clone(), text("n/a")], Some(&time), 1),
            (Some(json!("n/a")), vec![text("108"), text("n/a")], Some(&text("108")), 1),
            (Some(json!("a")), vec![text("b")], Some(&text("b")), 0),
            (Some(json!("v9")), vec![time.clone(), text("v9"), text("w")], Some(&text("w")), 1),
            (Some(json!("a")), vec![], None, 0),
        ] {
            let mut reached = Reached::after(before.as_ref(), day(2026));
            for value in &values {
                reached.see(value);
            }
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
            reached.see(&value);
        }
        assert_eq!(reached.last(), Some(&late));
    }

    #[test]
    fn rows_stand_in_the_order_of_their_values() {
        let text = |text: &str| Value::Text(text.into());
        let large = format!("{}.5", "9".repeat(40));
        let ordered = [
            Value::Real(-1e300),
            text("-100000000000000000000.5"),
            Value::Int(i64::MIN),
            text("-20"),
            text("-3.5"),
            text("-0003"),
            text("-0.25"),
            text("-0.0025"),
            Value::Real(0.0),
            text("0.0000000001"),
            text("+0.25"),
            Value::Real(0.5),
            Value::Int(9),
            text("10"),
            text("10.5"),
            text("12345678901234567890.25"),
            text("12345678901234567890.26"),
            Value::Json(json!(u64::MAX)),
            text(&large),
            Value::Real(1e300),
            text("1926-11-27"),
            text("2026-11-26"),
            text("2026-11-27T02:30:00+02:00"),
            text("2026-11-27T02:05:00+01:00"),
            text("2026-11-27 02:30:00"),
            text("2026-11-27T02:30:00.000000000000000001Z"),
            text("2026-11-27T02:30:00.49999+00"),
            text("2026-11-27T02:30:00.5Z"),
            text("9999-12-31"),
            text("n/a"),
        ];
        let orders: Vec<u128> = ordered.iter().map(order).collect();
        for (pair, values) in orders.windows(2).zip(ordered.windows(2)) {
            assert!(pair[0] < pair[1], "{values:?}");
        }
        for (value, same) in [
            (text("-0"), Value::Int(0)),
            (text("007.50"), Value::Real(7.5)),
            (text("2026-11-27T03:30:00+01:00"), text("2026-11-27 02:30:00.0Z")),
            (Value::Null, text("v9")),
            (Value::Real(f64::NAN), text("-infinity")),
            (Value::Blob(vec![1]), Value::Bool(true)),
        ] {
            assert_eq!(order(&value), order(&same), "{value:?}");
        }
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
            (text("1.5"), text(&"9".repeat(60))),
            (text("2147483646.5"), text("2147483647")),
            (text("4294967295.5"), text("4294967295.00")),
            (Value::Real(2147483647.5), Value::Real(4294967295.0)),
        ] {
            let mut reached = Reached::after(None, now);
            for value in [&place, &ahead] {
                reached.see(value);
            }
            assert_eq!((reached.last(), reached.unplaced), (Some(&place), 1), "{ahead:?}");
            assert!(!is_ahead(&place.to_json(), now) && is_ahead(&ahead.to_json(), now));
        }
        let mut reached = Reached::after(Some(&json!(5000)), now);
        reached.see(&Value::Int(3));
        assert!(reached.set_back("n").unwrap().contains("3 at most, and it was followed from 5000"));
    }
}
