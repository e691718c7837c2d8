//! A followed SQLite table against a model, whatever stands in the column that is followed.

use std::collections::BTreeMap;

use blindcore_store::Overlap;
use proptest::prelude::*;
use serde_json::json;

use crate::following::Following;
use crate::update::{open, row};

/// What grows with every change.
#[derive(Clone, Copy, Debug)]
enum Grows {
    Integers,
    Reals,
    /// Numbers in texts.
    Decimals,
    /// Integers, reals and numbers in texts.
    Numbers,
    /// Times in texts, in several zones.
    Times,
}

/// What a change writes into the column.
#[derive(Clone, Copy, Debug)]
enum Written {
    /// As much as this more than ever before.
    Later(u8),
    /// As much as this less than the largest before, as by a transaction that was committed late.
    Late(u8),
    /// What nothing is followed by.
    Stray(Stray),
}

#[derive(Clone, Copy, Debug)]
enum Stray {
    Null,
    NoValue,
    Blob,
    LargestInteger,
    LargestOf31Bits,
    TimeToCome,
}

impl Stray {
    fn sql(self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::NoValue => "'n/a'",
            Self::Blob => "x'00'",
            Self::LargestInteger => "9223372036854775807",
            Self::LargestOf31Bits => "2147483647",
            Self::TimeToCome => "'9999-12-31'",
        }
    }
}

impl Grows {
    /// A value as SQL writes it, and where it stands among the others.
    fn at(self, clock: u64) -> (String, u64) {
        let number = |text: String| (text, 4 * clock);
        let quarter = |text: String| (text, 4 * clock + 1);
        match self {
            Self::Integers => number(format!("{clock}")),
            Self::Reals => quarter(format!("{clock}.25")),
            Self::Decimals => quarter(format!("'{clock}.25'")),
            Self::Numbers => match clock % 4 {
                0 => number(format!("'{clock}'")),
                1 => number(format!("{clock}")),
                2 => quarter(format!("'{clock}.25'")),
                _ => quarter(format!("{clock}.25")),
            },
            Self::Times => {
                let written = |hours: u64, rest: &str| {
                    let minutes = clock / 60 + 60 * hours;
                    let (day, hour) = (1 + minutes / 1440, minutes / 60 % 24);
                    format!("'2024-03-{day:02}T{hour:02}:{:02}:{:02}{rest}'", minutes % 60, clock % 60)
                };
                let (text, part) = match clock % 4 {
                    0 => (written(2, "+02:00"), 0),
                    1 => (written(0, "Z"), 0),
                    2 => (written(0, ".25Z"), 1),
                    _ => (written(0, ""), 0),
                };
                (text, 4 * clock + part)
            }
        }
    }
}

fn written(late: bool) -> impl Strategy<Value = Written> {
    use Stray::*;
    let stray = prop::sample::select(vec![Null, NoValue, Blob, LargestInteger, LargestOf31Bits, TimeToCome]);
    prop_oneof![
        4 => (0..200u8).prop_map(Written::Later),
        if late { 2 } else { 0 } => (0..250u8).prop_map(Written::Late),
        3 => stray.prop_map(Written::Stray),
    ]
}

/// What is written between two polls: into which rows, and what.
fn polls(late: bool) -> impl Strategy<Value = Vec<Vec<(u64, Written)>>> {
    prop::collection::vec(prop::collection::vec((0..6u64, written(late)), 1..5), 2..7)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// After each poll each key has what its last row has: of the rows that have it, the one of the largest value, and one by which
    /// nothing is followed before all others. What did not change is as it was after another poll.
    #[test]
    fn a_followed_table_is_as_its_source_whatever_its_column_holds(
        grows in prop::sample::select(vec![
            Grows::Integers, Grows::Reals, Grows::Decimals, Grows::Numbers, Grows::Times,
        ]),
        affinity in prop::sample::select(vec!["", "TEXT", "INTEGER", "REAL", "NUMERIC"]),
        keys in 3..7u64,
        begins in prop::sample::select(vec![0, 95, 999_900, 2_147_483_600]),
        (late, polls) in any::<bool>().prop_flat_map(|late| (Just(late), polls(late))),
    ) {
        let feed = format!("CREATE TABLE feed (id INTEGER PRIMARY KEY, at {affinity}, k TEXT, a INT, b INT)");
        let following = Following::new("{\"k\":\"k0\",\"a\":1,\"b\":10}\n", Some("k"), &feed);
        // Seconds of March 2024.
        let begins = if matches!(grows, Grows::Times) { begins % 1_000_000 } else { begins };
        let (mut clock, mut count) = (begins, 0);
        let mut rows = BTreeMap::new();
        for (poll, changes) in polls.iter().enumerate() {
            let mut sql = String::new();
            for (id, change) in changes {
                let (value, order) = match change {
                    Written::Later(by) => {
                        clock += u64::from(*by);
                        grows.at(clock)
                    }
                    Written::Late(by) => grows.at(clock.saturating_sub((*by).into())),
                    Written::Stray(stray) => (stray.sql().to_owned(), u64::MAX),
                };
                count += 1;
                rows.insert(*id, (order, count));
                let key = id % keys;
                sql += &format!(
                    "INSERT INTO feed VALUES ({id}, {value}, 'k{key}', {count}, 0) ON CONFLICT (id) DO UPDATE SET at = \
                     excluded.at, a = excluded.a;"
                );
            }
            following.write(&sql);
            let overlap = match (late, grows) {
                (true, _) => Overlap::Usual,
                (false, Grows::Times) => Overlap::Seconds(0),
                (false, _) => Overlap::Count(0),
            };
            let poll_now = || following.update(&following.spec("table=feed"), "at", |o| o.overlap = overlap);
            // What has no order alone is refused where nothing was read before.
            if let Err(error) = poll_now() {
                prop_assert!(error.to_string().contains("has no order"), "{}", error);
                continue;
            }
            let stored = open(following.dir());
            for key in 0..keys {
                let of_key: Vec<_> = rows.iter().filter(|(id, _)| **id % keys == key).collect();
                let largest = of_key.iter().map(|(_, (order, _))| *order).max();
                let of_largest = || of_key.iter().filter(|(_, (order, _))| Some(*order) == largest);
                let got = row(&stored, &format!("k{key}"));
                // Integers and numbers in texts are two kinds, of which one is followed.
                let mixed = matches!(grows, Grows::Numbers) && affinity.is_empty() && of_key.len() > 1;
                let ours = |count: &u64| got == Some(json!([count, 0]));
                let holds = match of_largest().next_back() {
                    None => continue,
                    Some(_) if mixed => of_key.iter().any(|(_, (_, count))| ours(count)),
                    // Which of them comes last depends on the kind that is followed.
                    Some((_, (u64::MAX, _))) => of_largest().any(|(_, (_, count))| ours(count)),
                    Some((_, (_, count))) => ours(count),
                };
                prop_assert!(holds, "k{} is {:?} after poll {}, of {:?}", key, got, poll, of_key);
            }
            let again = poll_now().unwrap();
            prop_assert_eq!((again.added, again.changed, again.manifest.epoch), (0, 0, stored.manifest().epoch));
        }
    }
}
