//! Repeated measurements.

use std::time::{Duration, Instant};

/// Seconds of a repeated measurement, or figures computed from them.
#[derive(Clone, Debug, Default)]
pub struct Samples(
    /// In the order in which they were measured.
    pub Vec<f64>,
);

impl Samples {
    /// Times `f` once more.
    pub fn time<T>(&mut self, f: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let out = f();
        self.0.push(start.elapsed().as_secs_f64());
        out
    }

    /// Times `f` repeatedly for `least`, at least once; the mean is one sample.
    ///
    /// # Errors
    /// The first error of `f`; its run is not a sample.
    pub fn time_for<E>(&mut self, least: Duration, mut f: impl FnMut() -> Result<(), E>) -> Result<(), E> {
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

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mean of the quickest quarter; there is a sample. Other work on a machine and cold caches only add to
    /// a time, so slow samples say little; the single quickest one says little about a machine that is never idle.
    #[must_use]
    pub fn quickest_quarter(&self) -> f64 {
        let sorted = self.sorted();
        let quarter = &sorted[..sorted.len().div_ceil(4)];
        quarter.iter().sum::<f64>() / quarter.len() as f64
    }

    /// Each sample turned into a figure.
    #[must_use]
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        Self(self.0.iter().map(|s| f(*s)).collect())
    }

    /// The least and the most; there is a sample.
    #[must_use]
    pub fn range(&self) -> [f64; 2] {
        let sorted = self.sorted();
        [sorted[0], sorted[sorted.len() - 1]]
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// The middle sample, or the mean of the two in the middle; there is a sample.
    #[must_use]
    pub fn median(&self) -> f64 {
        let sorted = self.sorted();
        (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
    }

    /// The way of doing something that has the least median; there is one.
    #[must_use]
    pub fn least(ways: impl IntoIterator<Item = Self>) -> Self {
        ways.into_iter().min_by(|a, b| a.median().total_cmp(&b.median())).expect("a way at least")
    }
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
