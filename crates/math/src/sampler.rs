//! Randomness and the distributions that encryption draws from.

use chacha20::cipher::{KeyIvInit, StreamCipher};

use crate::arch;

/// The operating system gave no randomness.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gave no randomness ({0}); nothing secret can be made without it")]
pub struct RandomnessError(#[from] getrandom::Error);

/// A stream of secret randomness: a key from the operating system, expanded by ChaCha20.
///
/// Has no `Debug` and no `Clone`; the key is wiped on drop.
pub struct SecretRng(chacha20::ChaCha20);

impl SecretRng {
    /// A fresh stream, keyed by the operating system.
    ///
    /// # Errors
    /// The operating system gave no randomness.
    pub fn from_os() -> Result<Self, RandomnessError> {
        let mut key = zeroize::Zeroizing::new([0u8; 32]);
        getrandom::fill(key.as_mut_slice())?;
        Ok(Self(chacha20::ChaCha20::new((&*key).into(), &[0u8; 12].into())))
    }

    /// The stream of a key: whoever has the key has the stream. A key gives one stream, and what is secret under it is drawn from it
    /// once. For tests that have to repeat, and for secrets that are derived from another one.
    #[must_use]
    pub fn from_key(key: &[u8; 32]) -> Self {
        Self(chacha20::ChaCha20::new(key.into(), &[0u8; 12].into()))
    }

    /// A stream that anyone can repeat.
    #[cfg(test)]
    fn from_test_seed(seed: u64) -> Self {
        let mut key = [0u8; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Self::from_key(&key)
    }

    /// Fills `out` with uniform bytes. One stream carries 256 GiB; a query takes a few hundred KiB.
    pub fn fill(&mut self, out: &mut [u8]) {
        out.fill(0);
        self.0.apply_keystream(out);
    }

    /// Fills `out` with -1, 0 and 1, each a third of the time but for 2^-126, in the same time whatever comes out.
    pub fn fill_ternary(&mut self, out: &mut [i8]) {
        const CHUNK: usize = 1024;
        let mut uniform = zeroize::Zeroizing::new([[0u64; 2]; CHUNK]);
        for out in out.chunks_mut(CHUNK) {
            let uniform = &mut uniform[..out.len()];
            self.fill(bytemuck::cast_slice_mut(uniform));
            for (out, [high, low]) in out.iter_mut().zip(uniform.iter()) {
                // floor(3 x / 2^128) for x of 128 bits.
                let carry = (u128::from(*low) * 3) >> 64;
                *out = ((u128::from(*high) * 3 + carry) >> 64) as i8 - 1;
            }
        }
    }

    /// Fills `out` with centred binomials: the sum of `pairs` differences of two bits, so from -`pairs` to `pairs`, with variance
    /// `pairs` / 2; in the same time whatever comes out.
    ///
    /// # Panics
    /// `pairs` is not from 1 to 64.
    pub fn fill_centred_binomial(&mut self, pairs: u32, out: &mut [i8]) {
        const CHUNK: usize = 1024;
        assert!((1..=64).contains(&pairs), "{pairs} pairs of bits are outside 1 to 64");
        let mask = u64::MAX >> (64 - pairs);
        let mut uniform = zeroize::Zeroizing::new([[0u64; 2]; CHUNK]);
        for out in out.chunks_mut(CHUNK) {
            let uniform = &mut uniform[..out.len()];
            self.fill(bytemuck::cast_slice_mut(uniform));
            for (out, [a, b]) in out.iter_mut().zip(uniform.iter()) {
                *out = (a & mask).count_ones() as i8 - (b & mask).count_ones() as i8;
            }
        }
    }

    /// Fills `out` with uniform 32-bit words.
    pub fn fill_u32(&mut self, out: &mut [u32]) {
        self.fill(bytemuck::cast_slice_mut(out));
    }
}

/// The discrete Gaussian over the integers, centred at 0, sampled in the same time whatever comes out.
///
/// Every sample reads the whole table of cumulative probabilities. The table has 127-bit entries, right to about
/// 2^-116, and ends where the rest weighs less, so the statistical distance of a sample to the true distribution
/// is below 2^-108, and that of a query of 2^19 samples below 2^-89. Source: the inversion sampler of FrodoKEM
/// (Algorithm 5), with a table so fine that nothing need be argued about it.
pub struct Gaussian {
    /// `cumulative[k]` = floor(2^127 * P(|X| <= k)), at most 2^127 - 1: upper 63 and lower 64 bits.
    cumulative: Vec<[u64; 2]>,
}

impl Gaussian {
    /// The distribution with density proportional to exp(-k^2 / (2 * `variance`)).
    ///
    /// `variance` is sigma squared, from 1 to 4096.
    ///
    /// # Panics
    /// `variance` outside that range.
    #[must_use]
    pub fn new(variance: u32) -> Self {
        assert!((1..=4096).contains(&variance), "variance {variance} is outside 1..=4096");
        // weight[k] = exp(-k^2 / 2v), built from exp(-(2k+1) / 2v) = step_k, step_(k+1) = step_k * exp(-1/v).
        let shrink = fixed_exp_neg(1, variance);
        let mut step = fixed_exp_neg(1, 2 * variance);
        let mut weight = ONE;
        let mut weights = Vec::new();
        while weight >> (FRACTION_BITS - 120) != 0 {
            weights.push(weight);
            weight = fixed_mul(weight, step);
            step = fixed_mul(step, shrink);
        }
        // |X| = 0 has weight 1 and |X| = k has weight 2 * weights[k]. At 2^118 a sum stays below 2^126: the
        // whole is sigma * sqrt(2 pi), at most 161.
        let small = |w: u128| w >> (FRACTION_BITS - 118);
        let total: u128 = weights.iter().map(|w| 2 * small(*w)).sum::<u128>() - small(ONE);
        let mut sum = 0u128;
        let cumulative = weights
            .iter()
            .enumerate()
            .map(|(k, w)| {
                sum += if k == 0 { small(*w) } else { 2 * small(*w) };
                let c = divide_to_127_bits(sum, total);
                [(c >> 64) as u64, c as u64]
            })
            .collect();
        Self { cumulative }
    }

    /// Fills `out` with samples modulo 2^32.
    pub fn fill(&self, rng: &mut SecretRng, out: &mut [u32]) {
        const CHUNK: usize = 1024;
        let mut uniform = zeroize::Zeroizing::new([[0u64; 2]; CHUNK]);
        for out in out.chunks_mut(CHUNK) {
            let uniform = &mut uniform[..out.len()];
            rng.fill(bytemuck::cast_slice_mut(uniform));
            arch::invert_cumulative(&self.cumulative, uniform, out);
        }
    }
}

const FRACTION_BITS: u32 = 126;
const ONE: u128 = 1 << FRACTION_BITS;

/// Product of two numbers in [0, 1] with 126 fraction bits.
fn fixed_mul(a: u128, b: u128) -> u128 {
    // Split into 63-bit halves: a = a1 * 2^63 + a0.
    let mask = (1u128 << 63) - 1;
    let (a1, a0, b1, b0) = (a >> 63, a & mask, b >> 63, b & mask);
    a1 * b1 + ((a1 * b0) >> 63) + ((a0 * b1) >> 63)
}

/// exp(-numerator / denominator) for a quotient of at most 1, by its series; error below 2^-120.
fn fixed_exp_neg(numerator: u32, denominator: u32) -> u128 {
    let (mut sum, mut term) = (ONE, ONE);
    for i in 1u128.. {
        term = term / (u128::from(denominator) * i) * u128::from(numerator);
        if term == 0 {
            break;
        }
        if i % 2 == 1 {
            sum -= term;
        } else {
            sum += term;
        }
    }
    sum
}

/// floor(2^127 * sum / total) for sum <= total < 2^127, capped at 2^127 - 1.
fn divide_to_127_bits(sum: u128, total: u128) -> u128 {
    let (mut quotient, mut rest) = (0u128, sum);
    if rest >= total {
        return (1 << 127) - 1;
    }
    for _ in 0..127 {
        rest <<= 1;
        quotient <<= 1;
        if rest >= total {
            rest -= total;
            quotient |= 1;
        }
    }
    quotient
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_equals_the_density() {
        for variance in [1u32, 41, 121, 4096] {
            let gaussian = Gaussian::new(variance);
            let weight = |k: usize| (-((k * k) as f64) / (2.0 * f64::from(variance))).exp();
            let total = 1.0 + 2.0 * (1..1000).map(weight).sum::<f64>();
            let mut sum = 0.0;
            for (k, c) in gaussian.cumulative.iter().enumerate() {
                sum += if k == 0 { weight(0) } else { 2.0 * weight(k) };
                let got = c[0] as f64 / (1u64 << 63) as f64;
                assert!((got - sum / total).abs() < 1e-14, "variance {variance}, k {k}: {got}");
            }
            assert_eq!(gaussian.cumulative.last().unwrap(), &[(1 << 63) - 1, u64::MAX]);
        }
    }

    /// Computed with 400 bits (mpmath): sigma = 11.
    #[test]
    fn table_is_right_to_116_bits() {
        let golden: [(usize, u128); 5] = [
            (0, 6170591974538010552845045780717520997),
            (1, 18460884515677984241010153007045852183),
            (10, 112354222409155004741365863801645550833),
            (50, 170140438257465788557686531487012180406),
            (100, 170141183460469231721011766697894390808),
        ];
        let gaussian = Gaussian::new(121);
        for (k, want) in golden {
            let [high, low] = gaussian.cumulative[k];
            let got = u128::from(high) << 64 | u128::from(low);
            assert!(got.abs_diff(want) < 1 << 11, "k {k}: {got} and not {want}");
        }
    }

    #[test]
    fn samples_have_the_right_moments() {
        let gaussian = Gaussian::new(121);
        let mut rng = SecretRng::from_test_seed(1);
        let mut samples = vec![0u32; 200_000];
        gaussian.fill(&mut rng, &mut samples);
        let n = samples.len() as f64;
        let values: Vec<f64> = samples.iter().map(|s| f64::from(*s as i32)).collect();
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| v * v).sum::<f64>() / n;
        let fourth = values.iter().map(|v| v.powi(4)).sum::<f64>() / n;
        // Five standard errors each.
        assert!(mean.abs() < 5.0 * 11.0 / n.sqrt(), "{mean}");
        assert!((variance - 121.0).abs() < 5.0 * 121.0 * (2.0 / n).sqrt(), "{variance}");
        assert!((fourth / (121.0 * 121.0) - 3.0).abs() < 0.1, "{fourth}");
    }

    #[test]
    fn ternaries_are_equally_frequent() {
        let mut rng = SecretRng::from_test_seed(2);
        let mut samples = vec![0i8; 90_000];
        rng.fill_ternary(&mut samples);
        for value in [-1, 0, 1] {
            let count = samples.iter().filter(|&&s| s == value).count() as f64;
            // Five standard errors, sqrt(90000 * 2 / 9).
            assert!((count - 30_000.0).abs() < 5.0 * 141.5, "{value}: {count}");
        }
    }

    #[test]
    fn centred_binomials_have_the_right_moments() {
        let mut rng = SecretRng::from_test_seed(3);
        for pairs in [1, 2, 21, 64] {
            let mut samples = vec![0i8; 100_000];
            rng.fill_centred_binomial(pairs, &mut samples);
            let n = samples.len() as f64;
            let most = pairs as i8;
            assert!(samples.iter().all(|s| (-most..=most).contains(s)));
            let values = samples.iter().map(|s| f64::from(*s));
            let mean = values.clone().sum::<f64>() / n;
            let variance = values.map(|v| v * v).sum::<f64>() / n;
            let want = f64::from(pairs) / 2.0;
            // Five standard errors each, the fourth moment at most three times the variance squared.
            assert!(mean.abs() < 5.0 * (want / n).sqrt(), "{pairs}: {mean}");
            assert!((variance - want).abs() < 5.0 * want * (2.0 / n).sqrt(), "{pairs}: {variance}");
        }
    }

    #[test]
    fn the_operating_systems_streams_differ() {
        let mut streams = [[0u8; 32]; 2];
        for s in &mut streams {
            SecretRng::from_os().unwrap().fill(s);
        }
        assert_ne!(streams[0], streams[1]);
    }
}
