//! Numbers of words, least significant first, in time that does not depend on their values.

/// The 64 bits of `number` from bit `at` up.
pub(super) fn window(number: &[u64], at: u32) -> u64 {
    let (i, low) = (at as usize / 64, at % 64);
    let word = |i: usize| number.get(i).copied().unwrap_or(0);
    word(i) >> low | if low == 0 { 0 } else { word(i + 1) << (64 - low) }
}

pub(crate) fn bit_length(number: &[u64]) -> u32 {
    number.iter().rposition(|w| *w != 0).map_or(0, |i| 64 * (i as u32 + 1) - number[i].leading_zeros())
}

/// `x += y` where `mask` is all ones, with the carry.
pub(crate) fn add_masked(x: &mut [u64], y: &[u64], mask: u64) -> u64 {
    let mut carry = 0;
    for (x, y) in x.iter_mut().zip(y) {
        let sum = u128::from(*x) + u128::from(y & mask) + carry;
        *x = sum as u64;
        carry = sum >> 64;
    }
    carry as u64
}

/// `x -= y` where `mask` is all ones, with the borrow, 0 or 1.
pub(crate) fn subtract_masked(x: &mut [u64], y: &[u64], mask: u64) -> u64 {
    let mut borrow = 0u64;
    for (x, y) in x.iter_mut().zip(y) {
        let (difference, first) = x.overflowing_sub(y & mask);
        let (difference, second) = difference.overflowing_sub(borrow);
        *x = difference;
        borrow = u64::from(first | second);
    }
    borrow
}

/// `x = n - x` if so.
pub(super) fn negate_if(x: &mut [u64], n: &[u64], negate: bool) {
    let mask = u64::from(negate).wrapping_neg();
    // ~x + 1 + n, each masked.
    let mut carry = u128::from(mask & 1);
    for (x, n) in x.iter_mut().zip(n) {
        let sum = u128::from(*x ^ mask) + u128::from(n & mask) + carry;
        *x = sum as u64;
        carry = sum >> 64;
    }
}

/// Takes `n` off a number of up to twice `n` whose word above is `high`.
pub(crate) fn reduce_once(x: &mut [u64], high: u64, n: &[u64]) {
    let borrow = subtract_masked(x, n, u64::MAX);
    let below = (borrow & !high & 1).wrapping_neg();
    add_masked(x, n, below);
}

pub(super) fn shift_left(x: &mut [u64]) -> u64 {
    let mut carry = 0;
    for word in x {
        (*word, carry) = (*word << 1 | carry, *word >> 63);
    }
    carry
}

/// The magnitude of `x` modulo n, by the nearer side; whether it is negative.
pub(super) fn centre(out: &mut [u64], x: &[u64], n: &[u64]) -> bool {
    out.copy_from_slice(n);
    subtract_masked(out, x, u64::MAX); // n - x
    // Whether n - x < x: the borrow of their difference.
    let mut borrow = 0u64;
    for (y, x) in out.iter().zip(x) {
        let (difference, first) = y.overflowing_sub(*x);
        borrow = u64::from(first | difference.overflowing_sub(borrow).1);
    }
    let mask = borrow.wrapping_neg();
    for (out, x) in out.iter_mut().zip(x) {
        *out = *out & mask | x & !mask;
    }
    borrow == 1
}
