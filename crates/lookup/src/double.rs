//! DoublePIR (Henzinger et al. 2023, section 5): what is its own.
//!
//! SimplePIR's hint and answer for one group of rows are themselves rows of a matrix, so a second lookup, by
//! group, fetches the 1024 + 1 words that decode one entry. Words modulo 2^32 are looked up as four byte
//! digits. For each byte t of a record (`D_t` has one row a group):
//!
//! ```text
//!   server keeps    H_t  = digits(D_t * A1)                4 * 1024 by groups, bytes
//!   client fetches  H_t * A2                               4 * 1024 by 1024
//!   query           c1 = A1 s1 + e1 + Delta u_column       columns
//!                   c2 = A2 s2 + e2 + Delta u_group        groups
//!   answer          y_t = digits(D_t * c1)                 4 by groups, bytes
//!                   y_t * A2, H_t * c2, y_t * c2           4 by 1024 whole; 4 * 1024 and 4 shortened
//! ```

use blindcore_accel::{Device, Layout, Placed, Words};
use blindcore_math::{LWE_DIMENSION, dot};

use crate::client::{Pending, round};
use crate::params::{DIGITS, Params, matrix_shape};
use crate::server::{place, run_gathered};
use crate::simple::{lengthen, shorten};
use crate::{Error, MAX_GATHER};

/// The server's second matrix and the second public matrix, placed.
pub(crate) struct State {
    digits: Box<dyn Placed>,
    /// Byte planes of A2, transposed: plane by secret position, groups.
    matrix: Box<dyn Placed>,
}

impl State {
    pub(crate) fn new(params: &Params, device: &dyn Device, digits: Box<dyn Placed>) -> Result<Self, Error> {
        let groups = params.geometry.groups;
        let shape = matrix_shape(DIGITS * LWE_DIMENSION, groups);
        let stripe_bytes = Layout::Tiles16x64.stripe_bytes(&shape);
        let mut packed = vec![0u8; stripe_bytes * Layout::Tiles16x64.stripes(&shape)];
        let matrix = params.public_matrix(1);
        let mut row = vec![0u32; LWE_DIMENSION];
        for group in 0..groups {
            matrix.row(group as u64, &mut row);
            for (position, word) in row.iter().enumerate() {
                for (plane, byte) in word.to_le_bytes().into_iter().enumerate() {
                    let r = plane * LWE_DIMENSION + position;
                    packed[r / 16 * stripe_bytes + Layout::tile_index(r % 16, group)] = byte;
                }
            }
        }
        let matrix = place(device, &shape, vec![std::sync::Arc::new(packed)])?;
        Ok(Self { digits, matrix })
    }

    /// Answers each (second query, first answer) pair.
    pub(crate) fn answer(
        &self,
        params: &Params,
        second: &[&[u32]],
        first: &[Vec<u32>],
        cost: &mut blindcore_accel::Cost,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let groups = params.geometry.groups;
        let record_bytes = params.geometry.record_bytes;
        let hidden = run_gathered(&*self.digits, second, cost)?;
        let mut answers = Vec::with_capacity(second.len());
        for ((first, second), hidden) in first.iter().zip(second).zip(hidden) {
            // y_t by digit: record byte, digit, group.
            let digits: Vec<Vec<u32>> = (0..record_bytes * DIGITS)
                .map(|i| {
                    let (t, digit) = (i / DIGITS, i % DIGITS);
                    (0..groups).map(|g| first[g * record_bytes + t] >> (8 * digit) & 0xff).collect()
                })
                .collect();
            let borrowed: Vec<&[u32]> = digits.iter().map(Vec::as_slice).collect();
            let mut answer = Vec::with_capacity(params.answer_bytes());
            for planes in borrowed.chunks(MAX_GATHER) {
                for planes in run_gathered(&*self.matrix, planes, cost)? {
                    for position in 0..LWE_DIMENSION {
                        let word = (0..DIGITS).fold(0u32, |sum, plane| {
                            sum.wrapping_add(planes[plane * LWE_DIMENSION + position] << (8 * plane))
                        });
                        answer.extend_from_slice(&word.to_le_bytes());
                    }
                }
            }
            for word in hidden {
                answer.extend_from_slice(&shorten(word));
            }
            for digits in &digits {
                answer.extend_from_slice(&shorten(dot(digits, second)));
            }
            answers.push(answer);
        }
        Ok(answers)
    }
}

/// Writes the digits of 64 columns of `hint` (`hint[column][row of the database]`) into the second matrix.
pub(crate) fn fill_second(params: &Params, first_column: usize, hint: &[Vec<u32>], second: &mut [u8]) {
    let shape = params.second_shape();
    let stripe_bytes = Layout::Tiles16x64.stripe_bytes(&shape);
    let geometry = params.geometry;
    for t in 0..geometry.record_bytes {
        for digit in 0..DIGITS {
            for (i, column) in hint.iter().enumerate() {
                let r = (t * DIGITS + digit) * LWE_DIMENSION + first_column + i;
                let stripe = &mut second[r / 16 * stripe_bytes..][..stripe_bytes];
                for group in 0..geometry.groups {
                    let word = column[group * geometry.record_bytes + t];
                    stripe[Layout::tile_index(r % 16, group)] = (word >> (8 * digit)) as u8;
                }
            }
        }
    }
}

/// Decodes a record's bytes; every position read is the same for every lookup.
pub(crate) fn decode(params: &Params, pending: &Pending, answer: &[u8]) -> Vec<u8> {
    let [first, second] = &pending.levels[..] else { unreachable!("DoublePIR has two levels") };
    let record_bytes = params.geometry.record_bytes;
    let (masks, rest) = answer.split_at(record_bytes * DIGITS * LWE_DIMENSION * 4);
    let (hidden, last) = rest.as_chunks::<2>().0.split_at(record_bytes * DIGITS * LWE_DIMENSION);
    // Word `k` of the record's byte `t`, put together from the digits at `k + digit * stride`.
    let digit = |word: [u8; 2], mask: u32| {
        u32::from(round(lengthen(word).wrapping_sub(mask).wrapping_sub(second.centring)))
    };
    (0..record_bytes)
        .map(|t| {
            let base = t * DIGITS * LWE_DIMENSION;
            let mut hint_row = zeroize::Zeroizing::new(vec![0u32; LWE_DIMENSION]);
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
            round(entry.wrapping_sub(dot(&hint_row, &first.secret)).wrapping_sub(first.centring))
        })
        .collect()
}

/// The answers of a run, one a query.
pub(crate) fn split(answer: Words, queries: usize) -> Result<Vec<Vec<u32>>, Error> {
    let words = answer.into_u32()?;
    Ok(words.chunks_exact(words.len() / queries).map(<[u32]>::to_vec).collect())
}
