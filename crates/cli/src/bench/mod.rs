//! `blindcore bench`: figures beside what they are measured against, in one run.

mod circuit;
mod lookup;
mod serve;
mod sum;
mod table;

use std::borrow::Cow;

use serde_json::json;

use crate::{doctor, output};

pub(crate) use circuit::run as circuit;
pub(crate) use lookup::{noise, run as lookup};
pub(crate) use serve::{BenchServe, run as serve};
pub(crate) use sum::run as sum;

/// Seconds of a repeated measurement, or what was made of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// Times `f` once more.
    pub(crate) fn time<T>(&mut self, f: impl FnOnce() -> T) -> T {
        let start = std::time::Instant::now();
        let out = f();
        self.0.push(start.elapsed().as_secs_f64());
        out
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Each sample, turned into a figure.
    fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        Self(self.0.iter().map(|s| f(*s)).collect())
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    fn median(&self) -> f64 {
        let sorted = self.sorted();
        (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
    }
}

/// A figure and what it is held against.
pub(crate) struct Row {
    id: Cow<'static, str>,
    what: &'static str,
    unit: &'static str,
    threads: usize,
    value: Samples,
    of: Cow<'static, str>,
    of_value: f64,
}

impl Row {
    pub(crate) fn new(
        id: &'static str,
        what: &'static str,
        unit: &'static str,
        threads: usize,
        value: Samples,
        of: &'static str,
        of_value: f64,
    ) -> Self {
        Self { id: id.into(), what, unit, threads, value, of: of.into(), of_value }
    }
}

/// Prints rows for programs or for people.
fn print(rows: &[Row], settings: serde_json::Value, as_json: bool) -> anyhow::Result<()> {
    let round = |x: f64| (x * 1000.0).round() / 1000.0;
    if as_json {
        let rows: Vec<serde_json::Value> = rows
            .iter()
            .map(|r| {
                let sorted = r.value.sorted();
                json!({
                    "id": r.id, "value": round(r.value.median()), "unit": r.unit, "threads": r.threads,
                    "n": sorted.len(), "min": round(sorted[0]), "max": round(sorted[sorted.len() - 1]),
                    "of": r.of, "of_value": round(r.of_value), "ratio": round(r.value.median() / r.of_value),
                })
            })
            .collect();
        let machine = json!({
            "processor": doctor::processor(),
            "cores": std::thread::available_parallelism().map_or(1, usize::from),
            "memory_bytes": doctor::memory_bytes(),
            "os": std::env::consts::OS,
            "version": env!("CARGO_PKG_VERSION"),
            "settings": settings,
        });
        return output::json(&json!({"machine": machine, "rows": rows}));
    }
    let mut text = format!("{}\n{settings}\n\n", doctor::processor());
    for r in rows {
        let sorted = r.value.sorted();
        text += &format!(
            "{:26} {:>9.2} {:12} {:.2} of {:.2}, {}\n{:26} {} ({} thread{}; {:.2} to {:.2}, n = {})\n",
            r.id,
            r.value.median(),
            r.unit,
            r.value.median() / r.of_value,
            r.of_value,
            r.of,
            "",
            r.what,
            r.threads,
            if r.threads == 1 { "" } else { "s" },
            sorted[0],
            sorted[sorted.len() - 1],
            sorted.len(),
        );
    }
    output::print(&text)
}
