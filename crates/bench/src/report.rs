//! What a benchmark yields: rows, and how they read for programs and for people.

use std::borrow::Cow;

use blindcore_accel::cost::{Bound, Cost, Traffic};
use serde_json::{Value, json};

use crate::{Samples, machine};

/// A figure and the limit, peer or baseline that was measured beside it.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name, which stays what it is once published.
    pub id: Cow<'static, str>,
    /// What was measured, in words.
    pub what: &'static str,
    /// The unit of `value` and `of_value`.
    pub unit: &'static str,
    /// Threads that computed.
    pub threads: usize,
    /// What was measured, each time.
    pub value: Samples,
    /// What it is compared with.
    pub of: Cow<'static, str>,
    /// That one's figure, in the same unit.
    pub of_value: f64,
    /// Where that is what the machine can do at most: what the same work costs at that limit.
    pub limit: Option<Cost>,
}

/// The cost of reading `bytes` from a level of memory that delivers `rate` GB/s to `threads` threads.
pub(crate) fn read_at(level: &'static str, bytes: f64, rate: f64, threads: usize) -> Cost {
    let seconds = bytes / (rate * 1e9);
    Cost {
        seconds,
        threads,
        database_bytes: bytes as u64,
        bounds: vec![Bound::seconds(format!("{level} read"), seconds)],
        traffic: vec![Traffic::new(level, 8 * bytes as u128, 0)],
        ..Cost::default()
    }
}

impl Row {
    pub(crate) fn new(
        id: impl Into<std::borrow::Cow<'static, str>>,
        what: &'static str,
        unit: &'static str,
        threads: usize,
        value: Samples,
        of: &'static str,
        of_value: f64,
    ) -> Self {
        Self { id: id.into(), what, unit, threads, value, of: of.into(), of_value, limit: None }
    }

    /// The row with what its work costs at the machine's limit.
    #[must_use]
    pub(crate) fn limited(self, limit: Cost) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// The row as JSON: `{id, value, unit, threads, n, min, max, of, of_value, ratio}`, where `value` is the median of
    /// `n` samples and `ratio` is `value` of `of_value`; where there is one, `limit` is a [`Cost`] with the bound that `holds`.
    #[must_use]
    pub fn json(&self) -> Value {
        let round = |x: f64| (x * 1000.0).round() / 1000.0;
        let (median, [min, max]) = (self.value.median(), self.value.range());
        let mut row = json!({
            "id": self.id, "value": round(median), "unit": self.unit, "threads": self.threads,
            "n": self.value.len(), "min": round(min), "max": round(max),
            "of": self.of, "of_value": round(self.of_value), "ratio": round(median / self.of_value),
        });
        if let Some(limit) = &self.limit {
            row["limit"] = json!(limit);
            row["limit"]["holds"] = json!(limit.holds());
        }
        row
    }

    /// The row as two lines of text.
    #[must_use]
    pub fn text(&self) -> String {
        let (median, [min, max]) = (self.value.median(), self.value.range());
        let limit = self.limit.as_ref().filter(|limit| limit.seconds >= 1e-6);
        let limit = limit.map_or(String::new(), |limit| {
            format!(" ({}: {})", limit.holds(), blindcore_units::seconds(limit.seconds))
        });
        format!(
            "{:26} {:>9.2} {:12} {:.2} of {:.2}, {}{limit}\n{:26} {} ({}; {:.2} to {:.2}, n = {})\n",
            self.id,
            median,
            self.unit,
            median / self.of_value,
            self.of_value,
            self.of,
            "",
            self.what,
            blindcore_units::counted(self.threads, "thread"),
            min,
            max,
            self.value.len(),
        )
    }
}

/// The rows of a run, and how they were measured.
#[derive(Clone, Debug)]
pub struct Report {
    /// Figures, in the order in which they are shown.
    pub rows: Vec<Row>,
    /// What was asked for: device, sizes, repetitions.
    pub settings: Value,
    /// What people should know, such as what was left out.
    pub notes: Vec<String>,
}

impl Report {
    /// The whole as JSON: `{machine, rows}`.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut machine = machine::describe();
        machine["settings"] = self.settings.clone();
        json!({"machine": machine, "rows": self.rows.iter().map(Row::json).collect::<Vec<_>>()})
    }

    /// The whole as text.
    #[must_use]
    pub fn text(&self) -> String {
        let rows = self.rows.iter().map(Row::text).collect::<String>();
        format!("{}\n{}\n\n{rows}", machine::processor(), self.settings)
    }
}
