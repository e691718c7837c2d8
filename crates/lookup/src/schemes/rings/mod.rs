//! What schemes share whose databases are polynomials and whose clients register keys.

mod lanes;
mod secret;
mod slots;

pub(super) use lanes::{EIGHT_LANES, LANE, LANE_BITS, Pads, spread};
pub(super) use secret::{SEED_BYTES, Secret};
pub(super) use slots::{Make, Slots, preprocess};
