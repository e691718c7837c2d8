//! Primes for a ring.

use super::{NttError, check_degree};
use crate::Prime;

/// The primes q of `bits` bits (2^(`bits` - 1) < q < 2^`bits`) for which X^`degree` + 1 has all its roots: 2 * `degree`
/// divides q - 1. The largest comes first.
///
/// Below 2^50 an IFMA kernel takes them, and below 2^47 one that reduces nothing between its layers.
///
/// ```
/// use blindcore_math::ntt::primes;
///
/// let two: Vec<u64> = primes(30, 2048)?.take(2).map(|q| q.value()).collect();
/// assert_eq!(two, [1_073_692_673, 1_073_668_097]);
/// # Ok::<(), blindcore_math::ntt::NttError>(())
/// ```
///
/// # Errors
/// The degree is not one that a ring has here, or `bits` is not from 20 to 61.
pub fn primes(bits: u32, degree: usize) -> Result<impl Iterator<Item = Prime>, NttError> {
    check_degree(degree)?;
    if !(20..=61).contains(&bits) {
        return Err(NttError::Bits(bits));
    }
    let step = 2 * degree as u64;
    let least = 1u64 << (bits - 1);
    let candidates = (least / step..(2 * least).div_ceil(step)).rev().map(move |k| k * step + 1);
    Ok(candidates.filter(move |q| (least..2 * least).contains(q)).filter_map(|q| Prime::new(q).ok()))
}
