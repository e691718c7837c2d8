//! Memory stays bounded however large the source. The only test of its process, whose peak it measures.
#![cfg(target_os = "linux")]

use blindcore_store::{ExternalSort, Order, SourceSpec, codec};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

const ROWS: u64 = 400_000;

/// The process's largest resident size so far, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

/// About 200 bytes that differ from row to row.
fn note(row: u64) -> String {
    let mut text = String::new();
    (0..12).for_each(|i| write!(text, "{:016x}", (row + i).wrapping_mul(0x9e37_79b9_7f4a_7c15)).unwrap());
    text
}

fn write_csv(path: &Path) {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    writeln!(file, "id,note").unwrap();
    (0..ROWS).for_each(|row| writeln!(file, "{row},\"{}\"", note(row)).unwrap());
    file.into_inner().unwrap();
}

fn write_json_lines(path: &Path) {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    (0..ROWS).for_each(|row| writeln!(file, "{{\"id\":{row},\"note\":\"{}\"}}", note(row)).unwrap());
    file.into_inner().unwrap();
}

fn write_sqlite(path: &Path) {
    let mut connection = rusqlite::Connection::open(path).unwrap();
    connection
        .execute_batch("PRAGMA synchronous = OFF; CREATE TABLE t (id INTEGER PRIMARY KEY, note)")
        .unwrap();
    let transaction = connection.transaction().unwrap();
    {
        let mut insert = transaction.prepare("INSERT INTO t VALUES (?, ?)").unwrap();
        for row in 0..ROWS {
            insert.execute((row as i64, note(row))).unwrap();
        }
    }
    transaction.commit().unwrap();
}

#[test]
fn a_source_and_a_spill_take_little_memory_however_much_they_hold() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    write_csv(&at("t.csv"));
    write_json_lines(&at("t.jsonl"));
    write_sqlite(&at("t.db"));
    let dir_name = dir.path().to_str().unwrap();

    let before = peak();
    for spec in [
        format!("{dir_name}/t.csv"),
        format!("{dir_name}/t.jsonl"),
        format!("sqlite:{dir_name}/t.db?table=t"),
    ] {
        let mut source = SourceSpec::parse(&spec).unwrap().open(None).unwrap();
        let mut spill = ExternalSort::new(dir.path(), 4 << 20, Order::Hash);
        let mut record = Vec::new();
        while let Some(row) = source.next_row().unwrap() {
            record.clear();
            codec::encode_record(&row.values, &mut record);
            spill.push(u128::from(row.line.wrapping_mul(0x9e37_79b9_7f4a_7c15)), row.line, &record).unwrap();
        }
        assert_eq!(spill.count(), ROWS);
        let (mut last, mut bytes) = (0, 0);
        for entry in spill.finish().unwrap() {
            let entry = entry.unwrap();
            assert!(last <= entry.hash);
            last = entry.hash;
            bytes += entry.payload.len() as u64;
        }
        let grown = peak() - before;
        assert!(bytes > 16 * (4 << 20), "{spec}: {bytes} B went through");
        assert!(grown < 24 << 20, "{spec}: {bytes} B went through, and memory grew by {grown} B");
    }
}
