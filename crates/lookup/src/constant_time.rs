//! Choices without a branch, an index or a division that a secret decides.

/// All ones where `a == b`, else zero.
#[inline(always)]
pub(crate) fn equal_mask(a: u32, b: u32) -> u32 {
    let difference = a ^ b;
    // The top bit of x | -x is set exactly where x is not zero. The mask itself must be opaque: a compiler that
    // knew it to be all ones or zero would branch on it around what it masks.
    std::hint::black_box(((difference | difference.wrapping_neg()) >> 31).wrapping_sub(1))
}

/// All ones where `a < b`, both below 2^31, else zero.
#[inline(always)]
pub(crate) fn less_mask(a: u32, b: u32) -> u32 {
    std::hint::black_box((a.wrapping_sub(b) >> 31).wrapping_neg())
}

/// (`x / divisor`, `x % divisor`) for a public divisor, by multiplication.
pub(crate) fn divide(x: u64, divisor: u64) -> (u64, u64) {
    // floor(2^64 / divisor), at most one short for powers of two; the quotient is then at most two short.
    let reciprocal = u64::MAX / divisor;
    let mut quotient = ((u128::from(x) * u128::from(reciprocal)) >> 64) as u64;
    let mut rest = x.wrapping_sub(quotient.wrapping_mul(divisor));
    for _ in 0..2 {
        let (less, borrow) = rest.overflowing_sub(divisor);
        let keep = std::hint::black_box(u64::from(borrow)).wrapping_neg();
        rest = (rest & keep) | (less & !keep);
        quotient = quotient.wrapping_add(1 & !keep);
    }
    (quotient, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_and_quotients_are_right() {
        for (a, b) in [(0, 0), (0, 1), (1, 0), (u32::MAX, u32::MAX), (1 << 31, 0), (5, 5)] {
            assert_eq!(equal_mask(a, b), if a == b { u32::MAX } else { 0 });
        }
        for (a, b) in [(0, 0), (0, 1), (1, 0), (5, 5), (7, u32::MAX >> 1), (u32::MAX >> 1, 7)] {
            assert_eq!(less_mask(a, b), if a < b { u32::MAX } else { 0 });
        }
        for divisor in [1, 2, 3, 7, 1 << 20, (1 << 31) - 1, 1 << 31] {
            for x in [
                0,
                1,
                2,
                divisor - 1,
                divisor,
                divisor + 1,
                3 * divisor - 1,
                1 << 40,
                (1 << 62) - 1,
                u64::MAX,
            ] {
                assert_eq!(divide(x, divisor), (x / divisor, x % divisor), "{x} / {divisor}");
            }
        }
    }
}
