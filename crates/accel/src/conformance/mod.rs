//! The suites that every device runs: the same random and edge operands, compared bit for bit with the
//! definitions in [`contract::reference`](crate::contract::reference), [`transform::reference`](crate::transform::reference),
//! [`bigmod::reference`](crate::bigmod::reference) and [`garble::reference`](crate::garble::reference).
//!
//! ```
//! fn conforms(device: &blindcore_accel::Device) {
//!     blindcore_accel::conformance::contract(device);
//!     blindcore_accel::conformance::transform(device);
//!     blindcore_accel::conformance::bigmod(device);
//!     blindcore_accel::conformance::garble(device);
//! }
//! ```
//!
//! Each asks the device's slot first what it takes: what the slot says it takes must work, and what it says it doesn't
//! must be refused.

mod bigmod;
mod contract;
mod garble;
mod transform;

pub use bigmod::{Limits, bigmod, bigmod_within};
pub use contract::contract;
pub use garble::garble;
pub use transform::transform;

/// SplitMix64 (Steele, Lea and Flood 2014): repeatable, and no secret depends on it.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}
