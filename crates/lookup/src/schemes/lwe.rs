//! Learning with errors, as both schemes of Henzinger et al. (2023) use it: dimension 1024, q = 2^32, p = 256.

use std::sync::Arc;

use blindcore_accel::contract::Shape;
use blindcore_accel::{Placed, SharedBytes, Words};
use blindcore_math::{Gaussian, LWE_DIMENSION, PublicMatrix, SecretRng, Seed, dot};
use blindcore_units::Unit;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::matrix;
use super::scheme::{Run, Security};
use crate::{Error, MAX_GATHER, PREPARING, Params, Progress, constant_time};

/// Standard deviation of the errors. With a uniform secret of dimension 1024 and q = 2^32 this is 128.4 bits; the
/// SimplePIR paper's 6.4 is 121.5 bits today.
pub(crate) const SIGMA: u32 = 11;
pub(crate) const SECURITY: Security = Security {
    bits: 128.4,
    quantum_bits: None,
    estimator: "lattice-estimator 27a581b, default cost model, least of usvp, bdd and dual_hybrid (November 2026)",
};
/// p: an entry is one byte, so nothing is ever unpacked.
pub(crate) const PLAINTEXT_MODULUS: u32 = 256;
/// What a digest of parameters covers.
pub(crate) const CONSTANTS: [u64; 3] = [LWE_DIMENSION as u64, SIGMA as u64, PLAINTEXT_MODULUS as u64];
/// log2 of Delta = q / p, what a message is scaled by.
pub(crate) const DELTA_LOG2: u32 = 24;
/// Answers lose their lower 16 bits, which the failure bound pays for.
const ANSWER_SHIFT: u32 = 16;
/// What that takes off or adds, at most.
pub(crate) const ROUNDING: u32 = 1 << (ANSWER_SHIFT - 1);
/// Half of Delta, and that less the rounding of a shortened answer: what noise may come to.
pub(crate) const WHOLE_MARGIN: f64 = (1u32 << (DELTA_LOG2 - 1)) as f64;
pub(crate) const SHORT_MARGIN: f64 = WHOLE_MARGIN - ROUNDING as f64;

/// A bound that an honest answer's noise passes once in 2^40 lookups.
const NOISE_LIMIT_LOG2: f64 = 40.0;

/// log2 of a bound on the probability that one of `entries` passes a margin.
///
/// The noise of an entry is the sum over J columns of (entry - 128) times an error; entries are at most 128 from their
/// centre and errors subgaussian with deviation sigma, so it passes t with probability at most
/// 2 exp(-t^2 / (2 sigma^2 128^2 J)). It may be up to Delta / 2 less the rounding of the answer. A record fails when any of
/// its entries does. Source: SimplePIR, appendix C, with p = 256.
pub(crate) fn failure_log2(entries: f64, columns: usize, margin: f64) -> f64 {
    let exponent = margin * margin / (2.0 * variance(columns));
    // log2 of entries * 2 * exp(-exponent)
    entries.log2() + 1.0 - exponent * std::f64::consts::LOG2_E
}

/// The variance that the noise of an entry is subgaussian with.
fn variance(columns: usize) -> f64 {
    let deviation = f64::from(SIGMA) * f64::from(PLAINTEXT_MODULUS / 2);
    deviation * deviation * columns as f64
}

/// How far the noise of honest answers reaches, and whether an answer's reaches further.
///
/// The check reads no message: what it computes is taken modulo Delta, so it comes to the same whatever was asked and whatever
/// the database holds. No branch and no index depends on it.
pub(crate) struct NoiseCheck {
    /// The bound, to both sides.
    bound: u32,
    /// The top bit is set once something was outside.
    outside: u32,
}

impl NoiseCheck {
    /// For `entries` decoded words that are sums over `columns`, each off by `rounding` at most beside its noise. The bound is
    /// [`failure_log2`] solved for its margin.
    pub(crate) fn new(entries: usize, columns: usize, rounding: u32) -> Self {
        let bits = NOISE_LIMIT_LOG2 + 1.0 + (entries as f64).log2();
        let reach = (2.0 * std::f64::consts::LN_2 * bits * variance(columns)).sqrt().ceil();
        // Half of Delta is everything: a table as wide as decoding allows has no room beside its noise.
        let bound = (reach + f64::from(rounding)).min(WHOLE_MARGIN - 1.0);
        Self { bound: bound as u32, outside: 0 }
    }

    /// The byte that a decrypted word rounds to; notes whether its noise is outside.
    #[inline(always)]
    pub(crate) fn round(&mut self, noisy: u32) -> u8 {
        let above = noisy.wrapping_add(self.bound) & ((1 << DELTA_LOG2) - 1);
        self.outside |= (2 * self.bound).wrapping_sub(above);
        round(noisy)
    }

    /// Whether something was outside.
    pub(crate) fn damaged(&self) -> bool {
        self.outside >> 31 == 1
    }
}

/// The public matrix of a level, whose seed comes from a hash, so neither side chooses it.
pub(crate) fn public_matrix(params: &Params, level: u8) -> PublicMatrix {
    let mut hasher = blake3::Hasher::new_derive_key("blindcore lookup public matrix v1");
    hasher.update(&params.digest()).update(&[level]);
    let mut seed = [0u8; 16];
    hasher.finalize_xof().fill(&mut seed);
    PublicMatrix::new(Seed(seed))
}

/// The upper bits of a word, rounded.
pub(crate) fn shorten(word: u32) -> [u8; 2] {
    ((word.wrapping_add(ROUNDING) >> ANSWER_SHIFT) as u16).to_le_bytes()
}

/// A shortened word, at full scale.
pub(crate) fn lengthen(bytes: [u8; 2]) -> u32 {
    u32::from(u16::from_le_bytes(bytes)) << ANSWER_SHIFT
}

/// The byte that a decrypted word rounds to.
#[inline(always)]
fn round(noisy: u32) -> u8 {
    (noisy.wrapping_add(1 << (DELTA_LOG2 - 1)) >> DELTA_LOG2) as u8
}

/// A hint: rows of 1024 little-endian words, used where they lie if they are aligned and copied once if not.
pub(crate) struct Hint(SharedBytes);

impl Hint {
    pub(crate) fn new(bytes: SharedBytes) -> Self {
        match bytemuck::try_cast_slice::<u8, u32>((*bytes).as_ref()) {
            Ok(_) => Self(bytes),
            Err(_) => Self(Arc::new(Aligned(matrix::words((*bytes).as_ref())))),
        }
    }

    fn words(&self) -> &[u32] {
        bytemuck::cast_slice((*self.0).as_ref())
    }
}

struct Aligned(Vec<u32>);

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// The part of a query that no lookup's target enters: made ahead, used once.
pub(crate) struct Prepared {
    pub(crate) levels: Vec<Sample>,
    /// Hint times the secret that the hint's level was made with.
    pub(crate) hint_product: Zeroizing<Vec<u32>>,
}

/// What decoding needs of a query. Wiped on drop.
pub(crate) struct Pending {
    pub(crate) levels: Vec<Sample>,
    pub(crate) hint_product: Zeroizing<Vec<u32>>,
    pub(crate) group: Zeroizing<u32>,
}

/// A learning-with-errors sample under a secret of its own.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Sample {
    pub(crate) secret: Vec<u32>,
    /// Public matrix times secret plus errors; moves out when the query is sent.
    pub(crate) masked: Vec<u32>,
    /// 128 times the sum of the errors: what centring the entries at 0 takes off an answer.
    pub(crate) centring: u32,
}

impl Sample {
    fn new(rng: &mut SecretRng, gaussian: &Gaussian, matrix: &PublicMatrix, len: usize) -> Self {
        let mut secret = vec![0u32; LWE_DIMENSION];
        rng.fill_u32(&mut secret);
        let mut errors = Zeroizing::new(vec![0u32; len]);
        gaussian.fill(rng, &mut errors);
        let mut masked = vec![0u32; len];
        matrix.mul(0, &secret, &mut masked);
        let mut sum = 0u32;
        for (m, e) in masked.iter_mut().zip(errors.iter()) {
            *m = m.wrapping_add(*e);
            sum = sum.wrapping_add(*e);
        }
        Self { secret, masked, centring: sum.wrapping_mul(PLAINTEXT_MODULUS / 2) }
    }

    /// A sample of its own randomness.
    #[cfg(test)]
    pub(crate) fn fresh(matrix: &PublicMatrix, len: usize) -> Result<Self, Error> {
        Ok(Self::new(&mut SecretRng::from_os()?, &Gaussian::new(SIGMA * SIGMA), matrix, len))
    }

    /// Adds Delta at each position, touching every word alike.
    fn select(&mut self, positions: &[u32]) {
        for (i, m) in self.masked.iter_mut().enumerate() {
            let hits =
                positions.iter().fold(0u32, |n, p| n.wrapping_sub(constant_time::equal_mask(i as u32, *p)));
            *m = m.wrapping_add(hits << DELTA_LOG2);
        }
    }
}

/// Fresh samples, one of each length, and their products with the public matrices and the hint, which is of the last level.
pub(crate) fn prepare(params: &Params, lengths: &[usize], hint: &Hint) -> Result<Prepared, Error> {
    let mut rng = SecretRng::from_os()?;
    let gaussian = Gaussian::new(SIGMA * SIGMA);
    let levels: Vec<Sample> = lengths
        .iter()
        .enumerate()
        .map(|(level, len)| Sample::new(&mut rng, &gaussian, &public_matrix(params, level as u8), *len))
        .collect();
    let last = levels.last().expect("a scheme has a level");
    let product = hint.words().chunks_exact(LWE_DIMENSION).map(|row| dot(row, &last.secret)).collect();
    Ok(Prepared { levels, hint_product: Zeroizing::new(product) })
}

/// Turns samples into a query for these positions, a list for each level; what decodes the answer keeps `group`.
pub(crate) fn query(prepared: Prepared, selected: &[&[u32]], group: u32) -> (Vec<u8>, Pending) {
    let Prepared { mut levels, hint_product } = prepared;
    let bytes = levels.iter().map(|level| 4 * level.masked.len()).sum();
    let mut query = Vec::with_capacity(bytes);
    for (level, positions) in levels.iter_mut().zip(selected) {
        level.select(positions);
        // Public from here on: it is what the server sees.
        for word in std::mem::take(&mut level.masked) {
            query.extend_from_slice(&word.to_le_bytes());
        }
    }
    (query, Pending { levels, hint_product, group: Zeroizing::new(group) })
}

/// Expands this many rows of a public matrix, as the least that preparing a query can do.
pub(crate) fn expand(params: &Params, level: u8, rows: usize) {
    let matrix = public_matrix(params, level);
    let mut row = vec![0u32; LWE_DIMENSION];
    for r in 0..rows {
        matrix.row(r as u64, &mut row);
        std::hint::black_box(&row);
    }
}

/// Passes that multiply an operand by a public matrix.
pub(crate) fn preprocessing(operand: usize) -> Run {
    Run { operand, queries: MAX_GATHER, passes: LWE_DIMENSION.div_ceil(MAX_GATHER) as u64 }
}

/// The shape of a matrix for preprocessing whose passes are few, and take about `memory` bytes each: but for 64 columns of
/// the public matrix, which are the least.
pub(crate) fn preprocessing_shape(params: &Params, memory: u64) -> Shape {
    let shape = params.records().shape;
    // Words and digits of a column; words of its product, and a copy.
    let column = 8 * (shape.depth() + shape.rows()) as u64;
    let columns = usize::try_from(memory / column).unwrap_or(usize::MAX).clamp(MAX_GATHER, LWE_DIMENSION);
    // As many in each pass as in the others.
    let passes = LWE_DIMENSION.div_ceil(columns / MAX_GATHER * MAX_GATHER);
    Shape { m: LWE_DIMENSION.div_ceil(passes).next_multiple_of(MAX_GATHER), ..shape }
}

/// Passes that multiply a placed matrix by a public one.
pub(crate) fn passes(matrix: &dyn Placed) -> u64 {
    LWE_DIMENSION.div_ceil(matrix.shape().m) as u64
}

/// How far passes are that may go on from where they were stopped.
pub(crate) struct Passes<'a> {
    /// Passes that were made in all.
    pub(crate) done: &'a mut u64,
    /// The pass that comes next.
    pub(crate) at: u64,
    pub(crate) total: u64,
    pub(crate) progress: &'a mut dyn Progress,
}

impl Passes<'_> {
    /// Says how many are done, and fails where there shall be no more.
    pub(crate) fn tell(&mut self) -> Result<(), Error> {
        self.progress.at(PREPARING, *self.done, Some(self.total), Unit::Items);
        if self.progress.stopped() { Err(Error::Stopped) } else { Ok(()) }
    }
}

/// A placed matrix times a public matrix, as many columns at a time as it gathers: a public column is a query. Passes that
/// were made before are left out.
pub(crate) fn times_public_matrix(
    params: &Params,
    level: u8,
    matrix: &dyn Placed,
    passes: &mut Passes<'_>,
    mut take: impl FnMut(usize, &[Vec<u32>]),
) -> Result<(), Error> {
    let depth = matrix.shape().depth();
    let public = public_matrix(params, level);
    let gather = matrix.shape().m;
    for first in (0..LWE_DIMENSION).step_by(gather) {
        passes.at += 1;
        if passes.at <= *passes.done {
            continue;
        }
        passes.tell()?;
        let columns = gather.min(LWE_DIMENSION - first);
        let mut query = vec![0u32; columns * depth];
        let mut words = vec![0u32; columns];
        for j in 0..depth {
            public.part_of_row(j as u64, first, &mut words);
            for (i, word) in words.iter().enumerate() {
                query[i * depth + j] = *word;
            }
        }
        let (answer, _) = matrix.run(&Words::U32(query))?;
        take(first, &matrix::split(answer, columns)?);
        *passes.done = passes.at;
    }
    Ok(())
}

/// Columns of a product go to their places in its rows.
pub(crate) fn scatter(first: usize, columns: &[Vec<u32>], hint: &mut [u8]) {
    for (row, words) in hint.chunks_exact_mut(4 * LWE_DIMENSION).enumerate() {
        for (word, column) in words.as_chunks_mut::<4>().0[first..].iter_mut().zip(columns) {
            *word = column[row].to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Geometry, schemes};

    #[test]
    fn a_hint_takes_as_many_passes_as_memory_makes_it() {
        let geometry = Geometry { record_bytes: 10, groups: 100, columns: 1000 };
        let params = Params::new(schemes::find("simple").unwrap(), geometry).unwrap();
        let column = 8 * 2000;
        for (columns, m) in [
            (0, 64),
            (64, 64),
            (191, 128),
            (192, 192),
            (500, 384),
            (512, 512),
            (1023, 512),
            (1024, 1024),
            (1 << 40, 1024),
        ] {
            let shape = params.preprocessing_shape(columns * column);
            assert_eq!(shape, Shape { m, ..params.records().shape }, "{columns}");
        }
    }
}
