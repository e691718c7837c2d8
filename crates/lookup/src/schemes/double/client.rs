//! DoublePIR's client.

use blindcore_math::{LWE_DIMENSION, dot};
use zeroize::Zeroizing;

use super::params::DIGITS;
use crate::schemes::lwe::{self, Hint, NoiseCheck, Pending, Prepared, ROUNDING, lengthen};
use crate::{Decoded, Error, Geometry, Params, SchemeClient, Selection};

pub(super) struct DoubleClient {
    pub(super) params: Params,
    pub(super) hint: Hint,
}

impl SchemeClient for DoubleClient {
    type Keys = ();
    type Prepared = Prepared;
    type Pending = Pending;

    fn prepare(&self, (): &()) -> Result<Prepared, Error> {
        let geometry = &self.params.geometry;
        lwe::prepare(&self.params, &[geometry.columns, geometry.groups], &self.hint)
    }

    fn query(&self, prepared: Prepared, selection: &Selection) -> (Vec<u8>, Pending) {
        let group = selection.group();
        lwe::query(prepared, &[selection.columns(), &[group]], group)
    }

    /// Decodes a record's bytes; every position read is the same for every lookup.
    fn decode(&self, pending: Pending, answer: &[u8]) -> Decoded {
        let [first, second] = &pending.levels[..] else { unreachable!("DoublePIR has two levels") };
        let Geometry { record_bytes, groups, columns } = self.params.geometry;
        let mut inner = NoiseCheck::new(record_bytes, columns, 0);
        let mut outer = NoiseCheck::new(record_bytes * DIGITS * (LWE_DIMENSION + 1), groups, ROUNDING);
        let (masks, rest) = answer.split_at(record_bytes * DIGITS * LWE_DIMENSION * 4);
        let (hidden, last) = rest.as_chunks::<2>().0.split_at(record_bytes * DIGITS * LWE_DIMENSION);
        // Word `k` of the record's byte `t`, put together from the digits at `k + digit * stride`.
        let mut digit = |word: [u8; 2], mask: u32| {
            u32::from(outer.round(lengthen(word).wrapping_sub(mask).wrapping_sub(second.centring)))
        };
        let record = (0..record_bytes)
            .map(|t| {
                let base = t * DIGITS * LWE_DIMENSION;
                let mut hint_row = Zeroizing::new(vec![0u32; LWE_DIMENSION]);
                for (i, word) in hint_row.iter_mut().enumerate() {
                    for d in 0..DIGITS {
                        let at = base + d * LWE_DIMENSION + i;
                        *word |= digit(hidden[at], pending.hint_product[at]) << (8 * d);
                    }
                }
                let mut entry = 0u32;
                for d in 0..DIGITS {
                    let at = t * DIGITS + d;
                    let mask: Vec<u32> = masks[at * LWE_DIMENSION * 4..][..LWE_DIMENSION * 4]
                        .as_chunks::<4>()
                        .0
                        .iter()
                        .map(|b| u32::from_le_bytes(*b))
                        .collect();
                    entry |= digit(last[at], dot(&mask, &second.secret)) << (8 * d);
                }
                inner.round(entry.wrapping_sub(dot(&hint_row, &first.secret)).wrapping_sub(first.centring))
            })
            .collect();
        Decoded { slot: Zeroizing::new(record), damaged: inner.damaged() | outer.damaged() }
    }

    fn expand(&self) {
        let geometry = &self.params.geometry;
        lwe::expand(&self.params, 0, geometry.columns);
        lwe::expand(&self.params, 1, geometry.groups);
    }
}
