//! DoublePIR's sizes.

use blindcore_math::LWE_DIMENSION;

use crate::params::MAX_SIDE;
use crate::schemes::scheme::{About, ClientWork, Operand, Origin, Run, full_passes};
use crate::schemes::{lwe, matrix};
use crate::{Error, Geometry};

/// The answer is itself looked up, so hint and answer have 16 MiB and 24 KiB a byte of the record, however large the table.
/// For records of a few bytes in large tables.
pub(super) const ABOUT: About = About {
    name: "double",
    title: "DoublePIR",
    suits: "for records of a few bytes in large tables",
    wire_id: 2,
    security: Some(lwe::SECURITY),
    constants: &lwe::CONSTANTS,
};
/// Byte digits of a word modulo q.
pub(super) const DIGITS: usize = 4;
/// The operands' places.
pub(super) const RECORDS: usize = 0;
pub(super) const DIGITS_OF_HINT: usize = 1;
pub(super) const PLANES: usize = 2;

pub(super) fn check(geometry: &Geometry) -> Result<(), Error> {
    let (got, max) = (geometry.record_bytes as u64, MAX_SIDE / (DIGITS * LWE_DIMENSION) as u64);
    if got > max {
        let what = "record size under doublepir";
        return Err(Error::Range { what, got, min: 1, max, remedy: "use simplepir" });
    }
    Ok(())
}

pub(super) fn failure_log2(geometry: &Geometry) -> f64 {
    let Geometry { record_bytes, groups, columns } = *geometry;
    let first = lwe::failure_log2(record_bytes as f64, columns, lwe::WHOLE_MARGIN);
    let entries = (record_bytes * DIGITS * (LWE_DIMENSION + 1)) as f64;
    let second = lwe::failure_log2(entries, groups, lwe::SHORT_MARGIN);
    -(first.exp2() + second.exp2()).log2().max(f64::MIN_EXP.into())
}

/// Rows of the second matrix: one for each byte of a record, digit and secret position.
fn second_rows(geometry: &Geometry) -> usize {
    geometry.record_bytes * DIGITS * LWE_DIMENSION
}

pub(super) fn hint_bytes(geometry: &Geometry) -> u64 {
    4 * second_rows(geometry) as u64 * LWE_DIMENSION as u64
}

pub(super) fn answer_bytes(geometry: &Geometry) -> usize {
    geometry.record_bytes * DIGITS * (4 * LWE_DIMENSION + 2 * LWE_DIMENSION + 2)
}

pub(super) fn operands(geometry: &Geometry) -> Vec<Operand> {
    let Geometry { groups, columns, .. } = *geometry;
    vec![
        matrix::operand("records", geometry.rows(), columns, Origin::Slots),
        // The digits of the first level's hint, a column for each group.
        matrix::operand("digits of the hint", second_rows(geometry), groups, Origin::Preprocessed),
        // Byte planes of A2, transposed: plane by secret position, groups.
        matrix::operand("second public matrix", DIGITS * LWE_DIMENSION, groups, Origin::Parameters),
    ]
}

/// The digits of each answer are queries of the second public matrix, four for each byte of the record.
pub(super) fn answering(geometry: &Geometry, queries: usize) -> Vec<Run> {
    let each = full_passes(PLANES, DIGITS * geometry.record_bytes);
    let planes = each.map(|run| Run { passes: run.passes * queries as u64, ..run });
    [RECORDS, DIGITS_OF_HINT]
        .map(|operand| Run { operand, queries, passes: 1 })
        .into_iter()
        .chain(planes)
        .collect()
}

pub(super) fn client_work(geometry: &Geometry) -> ClientWork {
    let Geometry { groups, columns, .. } = *geometry;
    ClientWork { masked: columns + groups, products: second_rows(geometry), decoded: answer_bytes(geometry) }
}

pub(super) fn groups(records: u64, slot_bytes: usize) -> u64 {
    let slot = slot_bytes as f64;
    // The second lookup reads about 4096 * groups * (slot + 1) bytes: keep it near a quarter of the first.
    let side = (records as f64 * slot).sqrt().max(16_384.0 * (slot + 1.0) / slot);
    records.div_ceil(side as u64).max(1)
}
