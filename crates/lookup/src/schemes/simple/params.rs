//! SimplePIR's sizes.

use blindcore_math::LWE_DIMENSION;

use crate::Geometry;
use crate::schemes::scheme::{About, Operand, Origin};
use crate::schemes::{lwe, matrix};

/// The hint has 4 KiB a row, an answer two bytes a row.
pub(super) const ABOUT: About = About {
    name: "simple",
    title: "SimplePIR",
    suits: "",
    wire_id: 1,
    security: Some(lwe::SECURITY),
    constants: &lwe::CONSTANTS,
};
/// The only operand's place.
pub(super) const RECORDS: usize = 0;

pub(super) fn hint_bytes(geometry: &Geometry) -> u64 {
    4 * geometry.rows() as u64 * LWE_DIMENSION as u64
}

pub(super) fn operands(geometry: &Geometry) -> Vec<Operand> {
    vec![matrix::operand("records", geometry.rows(), geometry.columns, Origin::Slots)]
}

/// A square matrix.
pub(super) fn groups(records: u64, slot_bytes: usize) -> u64 {
    let slot = slot_bytes as f64;
    let side = (records as f64 * slot).sqrt();
    ((side / slot).round() as u64).max(1)
}
