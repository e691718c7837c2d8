//! SimplePIR's client.

use zeroize::Zeroizing;

use crate::constant_time::equal_mask;
use crate::schemes::lwe::{self, Hint, NoiseCheck, Pending, Prepared, ROUNDING, lengthen};
use crate::{Decoded, Error, Geometry, Params, SchemeClient, Selection};

pub(super) struct SimpleClient {
    pub(super) params: Params,
    pub(super) hint: Hint,
}

impl SchemeClient for SimpleClient {
    type Keys = ();
    type Prepared = Prepared;
    type Pending = Pending;

    fn prepare(&self, (): &()) -> Result<Prepared, Error> {
        lwe::prepare(&self.params, &[self.params.geometry.columns], &self.hint)
    }

    fn query(&self, prepared: Prepared, selection: &Selection) -> (Vec<u8>, Pending) {
        lwe::query(prepared, &[selection.columns()], selection.group())
    }

    /// Decodes every group and keeps one, reading all of them alike. Noise is checked in all of them: a check of the one alone
    /// would tell a server which it is.
    fn decode(&self, pending: Pending, answer: &[u8]) -> Decoded {
        let Geometry { record_bytes, columns, .. } = self.params.geometry;
        let mut check = NoiseCheck::new(self.params.geometry.rows(), columns, ROUNDING);
        let centring = pending.levels[0].centring;
        let mut record = Zeroizing::new(vec![0u8; record_bytes]);
        let groups =
            answer.chunks_exact(2 * record_bytes).zip(pending.hint_product.chunks_exact(record_bytes));
        for (group, (answer, product)) in groups.enumerate() {
            let mask = equal_mask(group as u32, *pending.group) as u8;
            for ((out, a), h) in record.iter_mut().zip(answer.as_chunks::<2>().0).zip(product) {
                let noisy = lengthen(*a).wrapping_sub(*h).wrapping_sub(centring);
                *out |= check.round(noisy) & mask;
            }
        }
        Decoded { slot: record, damaged: check.damaged() }
    }

    fn expand(&self) {
        lwe::expand(&self.params, 0, self.params.geometry.columns);
    }
}

#[cfg(test)]
mod tests {
    use blindcore_math::{LWE_DIMENSION, dot};

    use crate::schemes::lwe::{SIGMA, Sample, public_matrix};
    use crate::{Geometry, Params, schemes};

    /// The worst entries (0 and 255 lie farthest from their centre) and a real width: the noise that is left in
    /// an answer must have the deviation that the failure bound is computed from, no more and no less.
    #[test]
    fn noise_has_the_deviation_that_the_bound_assumes() {
        const COLUMNS: usize = 4096;
        const ROWS: usize = 128;
        let params = Params::new(
            schemes::find("simple").unwrap(),
            Geometry { record_bytes: 1, groups: 1, columns: COLUMNS },
        )
        .unwrap();
        let matrix = public_matrix(&params, 0);
        let sample = Sample::fresh(&matrix, COLUMNS).unwrap();
        // SplitMix64's finaliser: rows that have nothing to do with each other.
        let entry = |row: usize, column: usize| {
            let mut h = ((row * COLUMNS + column) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            if (h ^ (h >> 31)) & 1 == 0 { 0u32 } else { 255 }
        };
        let mut public = vec![0u32; LWE_DIMENSION];
        let mut hint = vec![0u32; ROWS * LWE_DIMENSION];
        for column in 0..COLUMNS {
            matrix.row(column as u64, &mut public);
            for row in 0..ROWS {
                if entry(row, column) == 255 {
                    for (h, a) in hint[row * LWE_DIMENSION..][..LWE_DIMENSION].iter_mut().zip(&public) {
                        *h = h.wrapping_add(a.wrapping_mul(255));
                    }
                }
            }
        }
        let noise: Vec<f64> = (0..ROWS)
            .map(|row| {
                let answer = (0..COLUMNS)
                    .fold(0u32, |sum, c| sum.wrapping_add(entry(row, c).wrapping_mul(sample.masked[c])));
                let product = dot(&hint[row * LWE_DIMENSION..][..LWE_DIMENSION], &sample.secret);
                f64::from(answer.wrapping_sub(product).wrapping_sub(sample.centring) as i32)
            })
            .collect();
        // Entries lie 128 or 127 from their centre.
        let expected = f64::from(SIGMA) * 127.5 * (COLUMNS as f64).sqrt();
        let deviation = (noise.iter().map(|n| n * n).sum::<f64>() / ROWS as f64).sqrt();
        // 128 rows estimate the deviation to a sixteenth: six of those either way.
        assert!((0.62..1.38).contains(&(deviation / expected)), "{deviation} where {expected} is expected");
        let widest = noise.iter().fold(0f64, |m, n| m.max(n.abs()));
        assert!(widest < 7.0 * expected, "{widest}");
    }
}
