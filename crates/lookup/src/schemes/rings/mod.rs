//! What schemes share whose databases are polynomials and whose clients register keys.
//!
//! ```text
//!   keyed                                        what a scheme says, and the scheme that it makes
//!   lanes, slots, lay, secret, passes            whatever the ring
//!   tree ◀─ places, polynomials, queries, answers      by default degree 2048, keys and queries at 50 bits, polynomials stored at 40
//! ```

pub(super) mod answers;
mod keyed;
mod lanes;
mod lay;
mod passes;
mod places;
pub(super) mod polynomials;
pub(super) mod queries;
mod residues;
mod secret;
mod slots;
#[cfg(test)]
pub(super) mod testing;
pub(super) mod tree;
mod wide;

pub(super) use keyed::{Keyed, Of};
pub(super) use lanes::{EIGHT_LANES, LANE, LANE_BITS, Pads, spread};
pub(super) use lay::Lay;
pub(super) use passes::{grown, in_passes, pass_queries, runs};
pub(super) use places::{MAX_COARSE, Place, Places, cheapest, cut, groups, levels, width};
pub(super) use residues::{plus, wide};
pub(super) use secret::{SEED_BYTES, Secret};
pub(super) use slots::{HEIGHT, Make, Slots, pad_seed, preprocess};
pub(super) use wide::WidePads;
