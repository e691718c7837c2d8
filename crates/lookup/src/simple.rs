//! SimplePIR (Henzinger et al. 2023, section 4): what is its own.
//!
//! ```text
//!   hint   H   = D * A                       rows by 1024, mod 2^32
//!   query  c   = A * s + e + Delta * u       columns
//!   answer a   = D * c                       rows, upper 16 bits sent
//!   decode     round((a - H * s - 128 * sum(e)) / Delta)
//! ```
//!
//! D's bytes go in as 0 to 255. Noise is bounded as if they were -128 to 127: the client knows its errors and
//! takes off the 128 * sum(e) that makes the difference.

use crate::client::{Pending, round};
use crate::constant_time::equal_mask;
use crate::params::{ANSWER_SHIFT, Params};

/// The upper bits of a word, rounded.
pub(crate) fn shorten(word: u32) -> [u8; 2] {
    ((word.wrapping_add(1 << (ANSWER_SHIFT - 1)) >> ANSWER_SHIFT) as u16).to_le_bytes()
}

/// A shortened word, at full scale.
pub(crate) fn lengthen(bytes: [u8; 2]) -> u32 {
    u32::from(u16::from_le_bytes(bytes)) << ANSWER_SHIFT
}

/// Decodes every group and keeps one, reading all of them alike.
pub(crate) fn decode(params: &Params, pending: &Pending, answer: &[u8]) -> Vec<u8> {
    let record_bytes = params.geometry.record_bytes;
    let centring = pending.levels[0].centring;
    let mut record = vec![0u8; record_bytes];
    let groups = answer.chunks_exact(2 * record_bytes).zip(pending.hint_product.chunks_exact(record_bytes));
    for (group, (answer, product)) in groups.enumerate() {
        let mask = equal_mask(group as u32, *pending.group) as u8;
        for ((out, a), h) in record.iter_mut().zip(answer.as_chunks::<2>().0).zip(product) {
            let noisy = lengthen(*a).wrapping_sub(*h).wrapping_sub(centring);
            *out |= round(noisy) & mask;
        }
    }
    record
}
