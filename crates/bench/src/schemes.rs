//! One scheme on one device: its own representative, prepared, asked and decoded.
//!
//! Any scheme that the process knows and any device that takes its operands can be measured, those of other crates too.

use std::hint::black_box;
use std::sync::Arc;

use blindcore_accel::{Device, SharedBytes};
use blindcore_accel_cpu::measure::{Streams, streaming_read};
use blindcore_lookup::{Client, RegisteredKeys, SchemeRef, Selection, Server, preprocess};
use blindcore_units::{Progress, Unit};

use crate::{Row, Samples, noise};

/// Measures rows `lookup.scheme.NAME.*` over a table of about `bytes` bytes, `repeat` times each: preprocessing, an answer
/// (in bytes of the table per second), and the client's part of a lookup.
///
/// # Errors
/// The scheme has no table of that size, the device refuses it, or memory fails; or an answer doesn't decode to the record
/// that was asked for.
pub fn measure(
    scheme: SchemeRef,
    device: &Device,
    bytes: u64,
    repeat: usize,
    progress: &mut dyn Progress,
) -> anyhow::Result<Vec<Row>> {
    let params = scheme.representative(bytes)?;
    let mut database = params.database_buffer();
    // Every group has the same slots, random ones.
    let geometry = params.geometry;
    let slots = noise(geometry.columns * geometry.record_bytes)?;
    for group in 0..geometry.groups {
        blindcore_lookup::pack_group(&params, group, slots.as_ref(), &mut database);
    }
    let database: SharedBytes = Arc::new(database);
    let mut hint = vec![0; params.hint_bytes() as usize];
    let [mut prepared, mut answered, mut asked]: [Samples; 3] = Default::default();
    let mut derived = Vec::new();
    for i in 0..repeat {
        progress.at("preprocessing", i as u64, Some(repeat as u64), Unit::Items);
        let pieces = vec![database.clone()];
        derived = prepared.time(|| preprocess(&params, device, pieces, &mut hint, &mut ()))?;
    }
    let derived = derived.into_iter().map(|operand| vec![Arc::new(operand) as SharedBytes]);
    let operands = [vec![database]].into_iter().chain(derived).collect();
    let server = Server::new(params, device, operands)?;
    let client = Client::new(params, Arc::new(hint))?;
    // Made and registered once, and no part of a lookup.
    let keys = params.registers_keys().then(|| params.make_keys()).transpose()?;
    let secret = keys.as_ref().map(|keys| params.open_secret(&keys.secret)).transpose()?;
    let registered = keys.as_ref().map(|keys| params.open_registered(&keys.public)).transpose()?;
    let under: Vec<&RegisteredKeys> = registered.iter().collect();
    for i in 0..repeat {
        progress.at("looking up", i as u64, Some(repeat as u64), Unit::Items);
        let column = i % geometry.columns;
        let selection = Selection::index(&geometry, column as u64)?;
        let ((query, pending), made) = timed(|| {
            let prepared =
                secret.as_ref().map_or_else(|| client.prepare(), |keys| client.prepare_under(keys))?;
            client.query(prepared, &selection)
        })?;
        let (answers, _cost) = answered.time(|| server.answer_under(&[&query], &under))?;
        let (record, decoded) = timed(|| client.decode(pending, &answers[0]))?;
        asked.0.push(made + decoded);
        let want = &slots.as_ref()[column * geometry.record_bytes..][..geometry.record_bytes];
        anyhow::ensure!(
            black_box(record).slot.as_slice() == want,
            "{scheme}: an answer decoded to another record"
        );
    }
    let size = params.database_bytes() as f64;
    let megabytes = |of: &Samples| of.map(|t| size / t / 1e6);
    let read = read_rate(&params.database_buffer());
    let threads = device.description().threads;
    let row = |what: &str, text, unit, threads, value, of: &'static str, of_value| Row {
        id: format!("lookup.scheme.{scheme}.{what}").into(),
        what: text,
        unit,
        threads,
        value,
        of: of.into(),
        of_value,
        limit: None,
    };
    let mut rows = Vec::new();
    if !params.preprocessing().is_empty() {
        let (text, of) = ("preprocessing of a small table", "reading it once, one thread");
        rows.push(row("preprocess", text, "MB/s", threads, megabytes(&prepared), of, read));
    }
    let (text, of) = ("one query answered, small table", "reading it once, one thread");
    rows.push(row("answer", text, "MB/s", threads, megabytes(&answered), of, read));
    let moved = (params.query_bytes() + params.answer_bytes()) as f64;
    let text = "a query made and its answer decoded, small table";
    // 1 GB/s: what a good network brings.
    let of = "moving its query and answer at 1 GB/s";
    rows.push(row("client", text, "ms", 1, asked.map(|t| t * 1e3), of, moved / 1e9 * 1e3));
    Ok(rows)
}

/// What `work` gives, and its seconds.
fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(T, f64), E> {
    let mut one = Samples::default();
    let done = one.time(work)?;
    Ok((done, one.median()))
}

/// MB/s at which one thread reads these bytes.
fn read_rate(bytes: &[u8]) -> f64 {
    let ways = Streams::ALL.map(|streams| {
        let mut read = Samples::default();
        for _ in 0..5 {
            read.time(|| black_box(streaming_read(bytes, streams)));
        }
        read
    });
    bytes.len() as f64 / Samples::least(ways).median() / 1e6
}
