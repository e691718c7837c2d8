//! The vector engine of bigmod: a number a lane, in digits of 52 bits (AVX-512 IFMA) or 27 bits (AVX2).
//!
//! ```text
//!   a row: one residue, its digits one after the other   ──gather──▶   a group: digit d of every lane, then d + 1
//!   d0 d1 d2 d3 ...                                      ◀──scatter──   a0 b0 c0 .. | a1 b1 c1 .. | ...
//! ```
//!
//! [`field`] holds what is known of a modulus, [`scan`] the Montgomery product that everything runs through,
//! [`engine`] what is made of it. `avx2` and `avx512` say what a vector is. A residue is in Montgomery's form, its
//! digits normalised, its value below 2n; modulo n^2 it is a pair x0 + x1 n of such numbers.

#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod engine;
mod field;
mod scan;

use std::sync::Arc;

use blindcore_accel::Line;
use blindcore_accel::bigmod::Modulus;

use crate::bigmod::Engine;
use field::Field;

/// The AVX2 engine.
#[cfg(target_arch = "x86_64")]
pub(crate) fn avx2(modulus: &Modulus) -> Option<Arc<dyn Engine>> {
    Some(Arc::new(engine::VectorEngine::<avx2::Avx2>::new(Field::new(modulus, 27, 4))))
}

/// The AVX-512 IFMA engine.
#[cfg(target_arch = "x86_64")]
pub(crate) fn avx512(modulus: &Modulus) -> Option<Arc<dyn Engine>> {
    let (five, eight) = (Field::new(modulus, 52, 5), Field::new(modulus, 52, 8));
    // Blocks of eight are the faster ones where they are as many digits, but for pairs: two products' operands and what is
    // taken from their sum are too much for the registers (measured: 3.6 and 4.3 M squares of 4096 bits per second).
    if eight.digits <= five.digits && eight.parts == 1 {
        Some(Arc::new(engine::VectorEngine::<avx512::Avx512<8>>::new(eight)))
    } else {
        Some(Arc::new(engine::VectorEngine::<avx512::Avx512<5>>::new(five)))
    }
}

/// Not on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn avx2(_: &Modulus) -> Option<Arc<dyn Engine>> {
    None
}

/// Not on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn avx512(_: &Modulus) -> Option<Arc<dyn Engine>> {
    None
}

/// What an instruction set does with groups beside [`scan`].
///
/// A group is `digits * LANES` words. Pointers are to groups of the field's digits (both parts of a pair, one after
/// the other) unless said otherwise, and aligned to a line.
///
/// # Safety
/// Methods may be called only where the instruction set is there, with pointers to memory of the size said.
unsafe trait Kernel: scan::Scans + Send + Sync + 'static {
    /// The form's name.
    const FORM: &'static str;
    /// Bits of an exponent that one look into a fixed base's table covers.
    const TEETH: u32;

    /// Says that a line will be read soon.
    fn fetch(line: &Line);

    /// Rows into a group, `lines` lines of each; one of `rows` a lane.
    unsafe fn gather(rows: &[*const u64], lines: usize, out: *mut u64);

    /// A group into rows.
    unsafe fn scatter(group: *const u64, lines: usize, rows: &[*mut u64]);

    /// For every lane the group `index[lane]` of `entries`, looking at all of them.
    unsafe fn select(table: *const u64, entries: usize, digits: usize, index: *const u64, out: *mut u64);

    /// Lays out the rows of one table of 2^[`Kernel::TEETH`] entries as [`Kernel::look_up`] wants them.
    fn lay_out(rows: &[&[u64]], digits: usize) -> Vec<u64>;

    /// For every lane of `groups` groups the entry `index[group][lane]` of a table, looking at all of them.
    unsafe fn look_up(table: *const u64, digits: usize, index: *const u64, groups: usize, out: *mut u64);
}
