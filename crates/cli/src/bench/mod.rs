//! `blindcore bench`: figures beside what they are measured against, in one run.

mod circuit;
mod lookup;
mod serve;
mod sum;
mod table;

use std::borrow::Cow;
use std::time::{Duration, Instant};

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
        let start = Instant::now();
        let out = f();
        self.0.push(start.elapsed().as_secs_f64());
        out
    }

    /// Times `f` again and again for so long, once at least; the mean is one sample.
    pub(crate) fn time_for<E>(
        &mut self,
        least: Duration,
        mut f: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let start = Instant::now();
        for times in 1u32.. {
            f()?;
            let elapsed = start.elapsed();
            if elapsed >= least {
                self.0.push(elapsed.as_secs_f64() / f64::from(times));
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The mean of the quickest quarter; there is a sample. Other work on a machine only adds to a time, and so do cold caches,
    /// but on one that never rests the one moment when it did is of no use to anybody.
    pub(crate) fn quickest_quarter(&self) -> f64 {
        let sorted = self.sorted();
        let quarter = &sorted[..sorted.len().div_ceil(4)];
        quarter.iter().sum::<f64>() / quarter.len() as f64
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Samples;

    #[test]
    fn a_run_is_one_sample_of_its_mean() {
        let (mut samples, mut times) = (Samples::default(), 0);
        let mut run = |least| {
            samples.time_for(least, || {
                times += 1;
                if times < 4 { Ok(()) } else { Err("no more") }
            })
        };
        assert_eq!(run(Duration::ZERO), Ok(()));
        assert_eq!(run(Duration::MAX), Err("no more"));
        assert_eq!((samples.len(), times), (1, 4));
        let (mut samples, mut times) = (Samples::default(), 0);
        let (start, least) = (Instant::now(), Duration::from_millis(5));
        let once = || {
            times += 1;
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(1) {}
            Ok::<(), ()>(())
        };
        assert_eq!(samples.time_for(least, once), Ok(()));
        let (all, outside) = (samples.quickest_quarter() * f64::from(times), start.elapsed());
        assert!(
            all > 0.99 * least.as_secs_f64() && all < 1.01 * outside.as_secs_f64(),
            "{all} of {outside:?}"
        );
    }

    #[test]
    fn the_quickest_quarter_is_rounded_up() {
        let of = |samples: &[f64]| Samples(samples.into()).quickest_quarter();
        assert_eq!(of(&[5.0, 1.0, 9.0, 3.0, 8.0, 7.0, 6.0, 4.0]), 2.0);
        assert_eq!(of(&[5.0, 3.0, 4.0]), 3.0);
        assert_eq!(of(&[5.0]), 5.0);
    }
}
