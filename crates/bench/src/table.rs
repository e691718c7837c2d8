//! Building and updating a table, beside reading its source.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use blindcore_accel::Device;
use blindcore_store::{BuildOptions, SourceSpec, StageTimes, Stored, UpdateOptions, build, update};
use blindcore_units::Progress;

use crate::{Row, Samples};

/// A CSV table read and laid out, its hint apart, beside reading the same file and nothing else; and updates of one of
/// its rows and of a thousandth of them, beside building all of it. `db build` chooses the scheme.
pub(super) fn table(
    disk: Option<&Path>,
    repeat: usize,
    bytes: usize,
    cpu: &Device,
    progress: &mut dyn Progress,
) -> anyhow::Result<[Row; 4]> {
    let dir = match disk {
        Some(disk) => tempfile::tempdir_in(disk)?,
        None => tempfile::tempdir()?,
    };
    let path = dir.path().join("table.csv");
    let len = write_table(&path, bytes, 1, 0)?;
    let options = BuildOptions {
        key: Some("id".into()),
        proofs: blindcore_store::ProofChoice::Without,
        force: true,
        ..BuildOptions::new(SourceSpec::parse(&path.to_string_lossy())?, dir.path().join("db"))
    };
    let [mut built, mut read, mut whole, mut updated, mut single]: [Samples; 5] = Default::default();
    for _ in 0..repeat.min(3) {
        read.time(|| -> std::io::Result<()> {
            let (mut file, mut buffer) = (File::open(&path)?, vec![0; 1 << 20]);
            while file.read(&mut buffer)? > 0 {}
            Ok(())
        })?;
        let mut stages = StageTimes::new(progress);
        build(&options, cpu, &mut stages)?;
        let [reading, layout, hint] = stages.end();
        built.0.push(reading + layout);
        whole.0.push(reading + layout + hint);
    }
    let changes = dir.path().join("changes.csv");
    let mut share = f64::NAN;
    // The same rows each time, with other values: as many differ from the base in every epoch.
    for (each, updated) in [(u64::MAX, &mut single), (1000, &mut updated)] {
        for epoch in 1..=repeat.min(9) {
            write_table(&changes, bytes, each, epoch as u64)?;
            let options = UpdateOptions::new(&options.out, SourceSpec::parse(&changes.to_string_lossy())?);
            updated.time(|| update(&options, cpu, &mut ()))?;
        }
        if each == u64::MAX {
            share = redone(&options.out)?;
        }
    }
    let rate = |samples: &Samples| samples.map(|t| len as f64 / t / 1e6);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let build = Row {
        id: "lookup.build".into(),
        what: "CSV read and laid out, the hint apart",
        unit: "MB/s",
        threads,
        value: rate(&built),
        of: "the same file read".into(),
        of_value: rate(&read).median(),
        limit: None,
    };
    let update = Row {
        id: "lookup.update".into(),
        what: "a thousandth of the rows changed",
        unit: "ms",
        threads,
        value: updated.map(|t| 1e3 * t),
        of: "building all of it".into(),
        of_value: 1e3 * whole.median(),
        limit: None,
    };
    let single = Row {
        id: "lookup.nohint.update".into(),
        what: "one row changed",
        unit: "ms",
        threads,
        value: single.map(|t| 1e3 * t),
        of: "building all of it".into(),
        of_value: 1e3 * whole.median(),
        limit: None,
    };
    let share = Row {
        id: "lookup.nohint.update.share".into(),
        what: "of the table, what one changed row had made again",
        unit: "%",
        threads,
        value: Samples(vec![100.0 * share]),
        of: "a row's share of it".into(),
        of_value: 100.0 / rows_of(len),
        limit: None,
    };
    Ok([build, update, single, share])
}

/// Rows of a table of so many bytes, about.
fn rows_of(bytes: u64) -> f64 {
    (bytes as f64 / 250.0).max(1.0)
}

/// The share of a table's operands that stand for what changed since its base.
fn redone(db: &Path) -> anyhow::Result<f64> {
    let of = Stored::open(db)?.describe()?;
    let bytes = |part: &str| {
        let bytes = |field: &str| of[part][field].as_f64().unwrap_or_default();
        bytes("database_bytes") + bytes("state_bytes")
    };
    Ok((bytes("changes") + bytes("new_keys")) / (bytes("records") + bytes("keys")))
}

/// Writes rows of some 250 bytes, as they are in an epoch, and of them one in `each`; returns how many bytes they have.
fn write_table(path: &Path, bytes: usize, each: u64, epoch: u64) -> anyhow::Result<u64> {
    let mut file = BufWriter::new(File::create(path)?);
    let (mut written, mut row) = (0, 0u64);
    file.write_all(b"id,name,mail,note,remark\n")?;
    let words = |seed: u64| format!("{:016x} {:020}", seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), seed);
    while written < bytes {
        let id = row.wrapping_mul(2_654_435_761) & 0xffff_ffff;
        let note = words(id * 3);
        let line = format!(
            "{id},{},{row}@example.org,\"{note}, {}\",{note} {}\n",
            words(row + epoch),
            words(id),
            words(id * 7)
        );
        if row.is_multiple_of(each) {
            file.write_all(line.as_bytes())?;
        }
        written += line.len();
        row += 1;
    }
    Ok(file.into_inner()?.metadata()?.len())
}
