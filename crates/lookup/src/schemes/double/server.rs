//! DoublePIR's server: preprocessing and answering, as contracts on a device.

use std::sync::Arc;

use blindcore_accel::{Cost, Device, Layout, Placed};
use blindcore_math::{LWE_DIMENSION, dot};

use super::params::{DIGITS, DIGITS_OF_HINT, PLANES};
use crate::schemes::lwe::{self, Passes, shorten};
use crate::schemes::matrix;
use crate::schemes::scheme::Operand;
use crate::{Error, MAX_GATHER, OperandBytes, Params, Preprocessing, Progress, RegisteredKeys, SchemeServer};

/// The matrix of records, the server's second matrix and the second public matrix, placed.
pub(super) struct DoubleServer {
    params: Params,
    records: Arc<dyn Placed>,
    digits: Arc<dyn Placed>,
    planes: Arc<dyn Placed>,
}

impl DoubleServer {
    pub(super) fn new(
        params: &Params,
        device: &Device,
        operands: Vec<Arc<dyn Placed>>,
    ) -> Result<Self, Error> {
        let [records, digits] =
            <[_; 2]>::try_from(operands).unwrap_or_else(|_| unreachable!("both were counted"));
        let operand = &params.operands()[PLANES];
        let (groups, stripe_bytes) = (params.geometry.groups, operand.stripe_bytes());
        let mut packed = vec![0u8; operand.bytes()];
        let matrix = lwe::public_matrix(params, 1);
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
        let planes = matrix::place(device, operand, vec![Arc::new(packed)])?;
        Ok(Self { params: *params, records, digits, planes })
    }

    /// Answers each (second query, first answer) pair.
    fn second(&self, second: &[&[u32]], first: &[Vec<u32>], cost: &mut Cost) -> Result<Vec<Vec<u8>>, Error> {
        let groups = self.params.geometry.groups;
        let record_bytes = self.params.geometry.record_bytes;
        let hidden = matrix::run_gathered(&*self.digits, second, cost)?;
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
            let mut answer = Vec::with_capacity(self.params.answer_bytes());
            for planes in borrowed.chunks(MAX_GATHER) {
                for planes in matrix::run_gathered(&*self.planes, planes, cost)? {
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

impl SchemeServer for DoubleServer {
    fn answer(&self, queries: &[&[u8]], _: &[&RegisteredKeys]) -> Result<(Vec<Vec<u8>>, Cost), Error> {
        let columns = self.params.geometry.columns;
        let words: Vec<Vec<u32>> = queries.iter().map(|query| matrix::words(query)).collect();
        let (first, second): (Vec<&[u32]>, Vec<&[u32]>) = words.iter().map(|w| w.split_at(columns)).unzip();
        let mut cost = Cost::default();
        let first = matrix::run_gathered(&*self.records, &first, &mut cost)?;
        let answers = self.second(&second, &first, &mut cost)?;
        Ok((answers, cost))
    }
}

/// Makes the second matrix from the digits of the first's hint, and its hint.
pub(super) fn preprocess(
    params: &Params,
    device: &Device,
    records: &dyn Placed,
    into: &mut Preprocessing<'_>,
    progress: &mut dyn Progress,
) -> Result<(), Error> {
    let operand = &params.operands()[DIGITS_OF_HINT];
    let Preprocessing { hint, derived, done } = into;
    let first = lwe::passes(records);
    let second = LWE_DIMENSION.div_ceil(operand.shape.m) as u64;
    let mut passes = Passes { done, at: 0, total: first + second, progress };
    let digits = &mut derived[0];
    lwe::times_public_matrix(params, 0, records, &mut passes, |first, columns| {
        fill_second(params, operand, first, columns, digits);
    })?;
    let shared = Arc::new(std::mem::replace(digits, OperandBytes::new([])));
    let multiplied = matrix::place(device, operand, vec![shared.clone()]).and_then(|placed| {
        lwe::times_public_matrix(params, 1, &*placed, &mut passes, |first, columns| {
            lwe::scatter(first, columns, hint);
        })
    });
    *digits = Arc::into_inner(shared).expect("the placed matrix is gone");
    multiplied
}

/// Writes the digits of 64 columns of `hint` (`hint[column][row of the database]`) into the second matrix.
fn fill_second(
    params: &Params,
    operand: &Operand,
    first_column: usize,
    hint: &[Vec<u32>],
    second: &mut [u8],
) {
    let stripe_bytes = operand.stripe_bytes();
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
