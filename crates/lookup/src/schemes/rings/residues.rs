//! Residues and masks on the side that holds secrets: nothing here branches, indexes or divides by what it is given.

/// a + b modulo q, for residues.
pub(in crate::schemes) fn plus(q: u64, a: u64, b: u64) -> u64 {
    let sum = a + b;
    sum.min(sum.wrapping_sub(q))
}

/// A mask of 64 bits, of one of 32.
pub(in crate::schemes) fn wide(mask: u32) -> u64 {
    mask as i32 as u64
}

/// A residue as a number, negative above half of q, modulo 2^64.
pub(super) fn signed(q: u64, residue: u64) -> u64 {
    let negative = ((q / 2).wrapping_sub(residue) as i64 >> 63) as u64;
    residue.wrapping_sub(q & negative)
}
