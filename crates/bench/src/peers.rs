//! Other libraries measured in the same run, by programs of their own: see `benches/peers`.

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use blindcore_units::{Progress, Unit};

use crate::Row;

/// What a peer measured: its name, an id, operations per second, or millions of them in a benchmark whose peers count so.
pub(crate) type Peer = (String, String, f64);

/// Runs every program in `folder`, if there is one; each prints `{"peer": name, "rows": [{"id": ..., "value": ...}]}`.
pub(crate) fn all(folder: Option<&Path>, progress: &mut dyn Progress) -> anyhow::Result<Vec<Peer>> {
    let Some(folder) = folder else { return Ok(Vec::new()) };
    let mut programs: Vec<_> = std::fs::read_dir(folder)
        .with_context(|| format!("--peers {}: build them with `make peers`", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()).filter(|path| path.is_file()))
        .collect();
    programs.sort();
    let mut out = Vec::new();
    for (i, program) in programs.iter().enumerate() {
        progress.at("peers", i as u64, Some(programs.len() as u64), Unit::Items);
        let output =
            Command::new(program).output().with_context(|| format!("{} can't be run", program.display()))?;
        anyhow::ensure!(output.status.success(), "{} failed: {}", program.display(), output.status);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{} printed no JSON document", program.display()))?;
        let name = document["peer"].as_str().unwrap_or("peer").to_owned();
        for row in document["rows"].as_array().into_iter().flatten() {
            if let (Some(id), Some(value)) = (row["id"].as_str(), row["value"].as_f64()) {
                out.push((name.clone(), id.to_owned(), value));
            }
        }
    }
    Ok(out)
}

/// A row for every row of ours that a peer has a figure for.
pub(crate) fn beside(rows: &mut Vec<Row>, peers: &[Peer]) {
    for (name, id, value) in peers {
        let Some(ours) = rows.iter().find(|row| row.id == *id) else { continue };
        let short = name.split_whitespace().next().unwrap_or("peer").to_lowercase();
        let scale = if ours.unit == "M/s" && id.starts_with("sum.") { 1e6 } else { 1.0 };
        let row = Row {
            id: format!("{id}.{short}").into(),
            what: ours.what,
            unit: ours.unit,
            threads: ours.threads,
            value: ours.value.clone(),
            of: name.clone().into(),
            of_value: value / scale,
            limit: None,
        };
        rows.push(row);
    }
}
