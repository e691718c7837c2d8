//! What blindcore's tests share. A dev-dependency alone: nothing that is shipped uses it.
//!
//! ```
//! use blindcore_testing::Random;
//!
//! let mut random = Random(7); // a test's numbers are the same in each run
//! let one = random.next();
//! assert!(random.below(10) < 10);
//! assert_eq!(Random(7).next(), one);
//! ```

use std::time::{Duration, Instant};

/// Numbers that look random and are the same in each run for the same seed: splitmix64 (Steele, Lea and Flood 2014).
/// Never for secrets.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `n`, which is above zero.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// This many bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }

    /// This many bits.
    pub fn bits(&mut self, count: usize) -> Vec<bool> {
        (0..count).map(|_| self.next() >> 63 == 1).collect()
    }
}

/// The largest |t| that shows a definite leak by [`welch`]; under 4.5 there is no evidence of one.
pub const LEAK: f64 = 10.0;

/// Whether two classes of inputs take the same time: Welch's t of their times, measured turn about in random order until
/// `time` is over. Returns the t with the largest magnitude over crops of the slowest samples, and how many samples there
/// were.
///
/// `sample` works on an input and says how long it took; `random` gives unpredictable bytes, which choose the class and
/// the input. Source: Reparaz, Balasch and Verbauwhede, "Dude, is my code constant time?" (2016).
///
/// # Errors
/// Those of `sample` and `random`.
///
/// # Panics
/// A class is empty.
pub fn welch<T, E>(
    time: Duration,
    classes: &[Vec<T>; 2],
    mut random: impl FnMut() -> Result<[u8; 2], E>,
    mut sample: impl FnMut(&T) -> Result<Duration, E>,
) -> Result<(f64, usize), E> {
    let mut samples: [Vec<f64>; 2] = Default::default();
    // Caches and clocks warm up before anything counts.
    for input in classes.iter().flatten() {
        sample(input)?;
    }
    let start = Instant::now();
    while start.elapsed() < time {
        let [class, input] = random()?.map(usize::from);
        let class = class % 2;
        let took = sample(&classes[class][input % classes[class].len()])?;
        samples[class].push(took.as_nanos() as f64);
    }
    let mut all: Vec<f64> = samples.iter().flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    // The slowest samples are interruptions: the test is made with several shares of them left out.
    let crops = [1.0, 0.99, 0.95, 0.9, 0.75, 0.5].map(|share| all[((all.len() - 1) as f64 * share) as usize]);
    let t = crops.map(|crop| t_value(&samples, crop));
    Ok((t.into_iter().fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a }), all.len()))
}

/// Welch's t of two classes of samples, those over `crop` left out.
#[must_use]
pub fn t_value(samples: &[Vec<f64>; 2], crop: f64) -> f64 {
    let [a, b] = samples.each_ref().map(|samples| {
        let kept: Vec<f64> = samples.iter().copied().filter(|s| *s <= crop).collect();
        let n = kept.len() as f64;
        let mean = kept.iter().sum::<f64>() / n;
        let variance = kept.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, variance / n)
    });
    (a.0 - b.0) / (a.1 + b.1).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_gives_the_published_numbers() {
        let mut random = Random(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn t_tells_classes_apart_that_differ() {
        let mut random = Random(1);
        let mut class = |shift: f64| (0..1000).map(|_| shift + random.below(100) as f64).collect::<Vec<_>>();
        let (a, b, c) = (class(0.0), class(0.0), class(20.0));
        assert!(t_value(&[a.clone(), b], f64::MAX).abs() < 4.5);
        assert!(t_value(&[a, c], f64::MAX) < -LEAK);
    }
}
