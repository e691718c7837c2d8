//! A PostgreSQL server's tables, followed and found by keys of every type. [`crate::servers`] starts the server.

use blindcore_accel_cpu::Cpu;
use blindcore_store::{BuildOptions, SourceSpec, Stored, UpdateOptions, Value, build, codec, update};
use blindcore_wire::KeyType;

/// What is committed after a read, by a transaction that began before it, is in the next, by its transaction as by time.
pub(crate) fn followed(
    url: &dyn Fn(&str) -> String,
    client: &mut postgres::Client,
    another: impl Fn() -> postgres::Client,
) {
    client
        .batch_execute(
            "CREATE TABLE feed (id text PRIMARY KEY, v int, at timestamptz DEFAULT now(), n numeric);
             INSERT INTO feed VALUES ('a', 1, now()), ('b', 2, 'infinity'), ('c', 3, NULL);",
        )
        .unwrap();
    for (column, unplaced) in [("xmin", 0), ("at", 2), ("n", 3), ("v", 0)] {
        let dir = tempfile::tempdir().unwrap();
        let device = Cpu::with_threads("cpu", 1).unwrap();
        let spec = url("table=feed");
        let out = dir.path().join("db");
        let options = BuildOptions {
            values: Some(vec!["v".into()]),
            key: Some("id".into()),
            ..BuildOptions::new(SourceSpec::parse(&spec).unwrap(), &out)
        };
        build(&options, &device, &mut ()).unwrap();
        let mut options = UpdateOptions::new(&out, SourceSpec::parse(&spec).unwrap());
        options.follow = Some(column.into());
        let follow = || {
            let updated = update(&options, &device, &mut ()).unwrap();
            ([updated.added, updated.changed, updated.unchanged], updated.notes.join(" "))
        };
        let (counts, notes) = follow();
        assert_eq!(counts, [0, 0, 3], "{column}");
        assert_eq!(notes.contains(&format!("{unplaced} of the rows")), unplaced > 0, "{column}: {notes}");
        // Two transactions: the one that began first ends last, and a read comes between.
        let (mut early, mut late) = (another(), another());
        early.batch_execute("BEGIN; INSERT INTO feed VALUES ('early', 4, now(), 5)").unwrap();
        late.batch_execute("INSERT INTO feed VALUES ('late', 5, now(), 6)").unwrap();
        assert_eq!(follow().0[..2], [1, 0], "{column}");
        early.batch_execute("COMMIT").unwrap();
        assert_eq!(follow().0[..2], [1, 0], "{column}");
        client.batch_execute("UPDATE feed SET v = 9, at = now(), n = 7 WHERE id = 'early'").unwrap();
        assert_eq!(follow().0[..2], [0, 1], "{column}");
        if column == "xmin" {
            // The read before saw all transactions to their end.
            assert_eq!(follow().0, [0, 0, 0], "{column}");
        }
        client.batch_execute("DELETE FROM feed WHERE id IN ('early', 'late')").unwrap();
    }
}

/// Texts of numbers and of times are followed by their values, and what is neither is read at every poll; a number that is set back
/// loses no row.
pub(crate) fn texts_followed(url: &dyn Fn(&str) -> String, client: &mut postgres::Client) {
    for (kind, first, later, strays) in [
        ("text", "9000", ["9999", "10000"], &["01/15/2026", "1e3", ""][..]),
        (
            "varchar(40)",
            "2025-01-01 00:00:00",
            ["2026-01-01", "2026-01-01T10:00:00Z"],
            &["01/15/2026", "2024-13-01", "7"],
        ),
        ("numeric", "9000", ["9999", "10000.5"], &[]),
    ] {
        client
            .batch_execute(&format!(
                "DROP TABLE IF EXISTS texts; CREATE TABLE texts (id int PRIMARY KEY, v text, u {kind});
                 INSERT INTO texts VALUES (1, 'a', '{first}')"
            ))
            .unwrap();
        let dir = tempfile::tempdir().unwrap();
        let device = Cpu::with_threads("cpu", 1).unwrap();
        let (source, out) = (SourceSpec::parse(&url("table=texts")).unwrap(), dir.path().join("db"));
        let options = BuildOptions {
            values: Some(vec!["v".into()]),
            key: Some("id".into()),
            ..BuildOptions::new(source.clone(), &out)
        };
        build(&options, &device, &mut ()).unwrap();
        let options = UpdateOptions { follow: Some("u".into()), ..UpdateOptions::new(&out, source) };
        let follow = || update(&options, &device, &mut ()).unwrap();
        follow();
        for (id, u) in (2..).zip(later.iter().chain(strays)) {
            client.batch_execute(&format!("INSERT INTO texts VALUES ({id}, 'x', '{u}')")).unwrap();
            assert_eq!(follow().added, 1, "{kind} {u}");
        }
        let last = Stored::open(&out).unwrap().manifest().follow.as_ref().unwrap().last.clone();
        assert_eq!(last, later[1], "{kind}");
        if !first.contains(':') {
            client.batch_execute("DELETE FROM texts; INSERT INTO texts VALUES (20, 'y', '5')").unwrap();
            let now = follow();
            let said = now.notes.iter().any(|n| n.contains("\"u\" is 5 at most"));
            assert!(now.added == 1 && said, "{kind}: {:?}", now.notes);
        }
    }
}

/// Keys are found in every usual form of their value.
pub(crate) fn keys_of_types(url: &dyn Fn(&str) -> String, client: &mut postgres::Client) {
    client
        .batch_execute(
            "CREATE TABLE keyed (n numeric, u uuid, ts timestamp, tz timestamptz, c char(5), v int);
             INSERT INTO keyed VALUES (1.50, 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '2024-02-29 12:00', '2024-02-29 12:00+02',
                'ab', 7);
             CREATE TABLE same (n numeric, v int); INSERT INTO same VALUES (1.50, 1), (1.5000, 2);",
        )
        .unwrap();
    let device = Cpu::with_threads("cpu", 1).unwrap();
    let made = |table: &str, key: &str| {
        let dir = tempfile::tempdir().unwrap();
        let options = BuildOptions {
            key: Some(key.into()),
            values: Some(vec!["v".into()]),
            ..BuildOptions::new(
                SourceSpec::parse(&url(&format!("table={table}"))).unwrap(),
                dir.path().join("db"),
            )
        };
        build(&options, &device, &mut ()).map(|manifest| (manifest, Stored::open(&options.out).unwrap(), dir))
    };
    for (column, form, keys) in [
        ("n", KeyType::Decimal, ["1.5", "1.50", "15e-1"]),
        (
            "u",
            KeyType::Uuid,
            [
                "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
                "{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}",
                "A0EEBC999C0B4EF8BB6D6BB9BD380A11",
            ],
        ),
        ("ts", KeyType::Timestamp, ["2024-02-29 12:00:00", "2024-02-29T12:00", "2024-02-29 12:00:00.000"]),
        (
            "tz",
            KeyType::Instant,
            ["2024-02-29 10:00:00+00", "2024-02-29T12:00:00+02:00", "2024-02-29T10:00:00Z"],
        ),
        ("c", KeyType::Padded, ["ab", "ab ", "ab   "]),
    ] {
        let (manifest, stored, _dir) = made("keyed", column).unwrap();
        assert_eq!(manifest.key_type, Some(form));
        assert_eq!(stored.description().unwrap().key_type(), Some(form));
        for key in keys {
            let record = stored.record(key.as_bytes()).unwrap().unwrap_or_else(|| panic!("{column}: {key}"));
            assert_eq!(codec::decode_record(&record, 1).unwrap(), [Value::Int(7)]);
        }
    }
    let error = made("same", "n").err().unwrap().to_string();
    assert!(error.contains("its key is also the key of row 1"), "{error}");
}
