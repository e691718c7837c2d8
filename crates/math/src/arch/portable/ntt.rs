//! The number-theoretic transform, a layer after the other.

use crate::ntt::tables::{Factor, Tables};

/// `x` times the factor, below 2q for any 64-bit `x`.
#[inline(always)]
fn multiply(x: u64, factor: Factor, q: u64) -> u64 {
    let quotient = ((u128::from(x) * u128::from(factor.quotient)) >> 64) as u64;
    x.wrapping_mul(factor.value).wrapping_sub(quotient.wrapping_mul(q))
}

/// `x - n` where that is not negative, else `x`, without a branch: of two numbers below 2^63, or one that wraps, the least.
#[inline(always)]
fn reduce(x: u64, n: u64) -> u64 {
    x.min(x.wrapping_sub(n))
}

/// Coefficients to values; between the layers words are below 4q.
pub(crate) fn forward(tables: &Tables, words: &mut [u64]) {
    let q = tables.prime.value();
    let mut blocks = 1;
    while blocks < tables.degree {
        let length = tables.degree / blocks;
        for (block, factor) in words.chunks_exact_mut(length).zip(&tables.forward[blocks..]) {
            let (left, right) = block.split_at_mut(length / 2);
            for (x, y) in left.iter_mut().zip(right) {
                let (a, b) = (reduce(*x, 2 * q), multiply(*y, *factor, q));
                (*x, *y) = (a + b, a + 2 * q - b);
            }
        }
        blocks *= 2;
    }
    for word in words {
        *word = reduce(reduce(*word, 2 * q), q);
    }
}

/// Values to coefficients; between the layers words are below 2q.
pub(crate) fn inverse(tables: &Tables, words: &mut [u64]) {
    let q = tables.prime.value();
    let mut blocks = tables.degree / 2;
    while blocks > 1 {
        let length = tables.degree / blocks;
        for (block, factor) in words.chunks_exact_mut(length).zip(&tables.inverse[blocks..]) {
            let (left, right) = block.split_at_mut(length / 2);
            for (x, y) in left.iter_mut().zip(right) {
                (*x, *y) = (reduce(*x + *y, 2 * q), multiply(*x + 2 * q - *y, *factor, q));
            }
        }
        blocks /= 2;
    }
    let (left, right) = words.split_at_mut(tables.degree / 2);
    for (x, y) in left.iter_mut().zip(right) {
        let (sum, difference) = (*x + *y, *x + 2 * q - *y);
        (*x, *y) = (multiply(sum, tables.scale, q), multiply(difference, tables.last, q));
        (*x, *y) = (reduce(*x, q), reduce(*y, q));
    }
}
