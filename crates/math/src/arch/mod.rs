//! Run-time choice of the fastest code: the Gaussian's table scan, the inner product, the public matrix, the
//! number-theoretic transform and what oblivious transfer computes. A kernel takes the token of its instruction set, which
//! exists only where the machine has it.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

use crate::features::Ifma;
#[cfg(target_arch = "x86_64")]
use crate::features::{Avx2, Avx512, Clmul, Gfni, Level, Vaes, within};
use crate::ntt::tables::Tables;
use crate::row::LWE_DIMENSION;
use crate::stores::Stores;
use crate::{CutDigit, Prime, Recombination, SignedDigits};
use portable::digits::{cut_generic, split_generic};
pub(crate) use portable::ntt::{forward as ntt_forward, inverse as ntt_inverse};
use portable::{dot_generic, invert_cumulative_generic};

/// `out[i]` = the magnitude whose interval of `cumulative` holds the upper 127 bits of `uniform[i]`, its sign the
/// lowest bit. All are pairs of upper and lower words.
pub(crate) fn invert_cumulative(cumulative: &[[u64; 2]], uniform: &[[u64; 2]], out: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = within(Level::Avx512, Avx512::new) {
        return avx512::invert_cumulative(token, cumulative, uniform, out);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = within(Level::Avx2, Avx2::new) {
        return avx2::invert_cumulative(token, cumulative, uniform, out);
    }
    invert_cumulative_generic(cumulative, uniform, out);
}

/// Signed digits of residues.
pub(crate) fn split_digits(digits: &SignedDigits, residues: &[u64], out: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = within(Level::Avx512, Avx512::new) {
        return avx512::split_digits(token, digits, residues, out);
    }
    split_generic(digits, residues, out);
}

/// A digit of integers of two limbs.
pub(crate) fn cut_digit(cut: &CutDigit, limbs: [&[u64]; 2], primes: &[Prime], out: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = within(Level::Avx512, Avx512::new) {
        return avx512::cut_digit(token, cut, limbs, primes, out);
    }
    cut_generic(cut, limbs, primes, out);
}

/// Integers from shares, as [`Recombination`] has it: a share for each prime and integer.
pub(crate) fn recombine(of: &Recombination, shares: &[u64], plus: u128, limbs: [&mut [u64]; 2]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = within(Level::Avx512, Ifma::new) {
        return avx512::recombination::recombine(token, of, shares, plus, limbs);
    }
    portable::digits::recombine(of, shares, plus, limbs);
}

/// Bytes as words, and zeros beyond them.
pub(crate) fn widen(bytes: &[u8], words: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = within(Level::Avx512, Avx512::new) {
        return avx512::widen(token, bytes, words);
    }
    portable::widen(bytes, words);
}

/// Words of few bits.
pub(crate) fn unpack(bytes: &[u8], width: u32, out: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = within(Level::Avx512, Ifma::new) {
        return avx512::lanes::unpack(token, bytes, width, out);
    }
    portable::lanes::unpack(bytes, width, out);
}

/// Words of few bits, to 16.
pub(crate) fn unpack_short(bytes: &[u8], width: u32, out: &mut [u16]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = within(Level::Avx512, Ifma::new) {
        return avx512::lanes::unpack_short(token, bytes, width, out);
    }
    portable::lanes::unpack_short(bytes, width, out);
}

/// The largest word of few bits.
pub(crate) fn largest(bytes: &[u8], width: u32) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = within(Level::Avx512, Ifma::new) {
        return avx512::lanes::largest(token, bytes, width);
    }
    portable::lanes::largest(bytes, width)
}

/// Lanes as residues.
pub(crate) fn centre(q: u64, bits: u32, lanes: &[u16], out: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = within(Level::Avx512, Avx512::new) {
        return avx512::lanes::centre(token, q, bits, lanes, out);
    }
    portable::lanes::centre(q, bits, lanes, out);
}

/// The low bytes of values, in runs that fit `out`.
pub(crate) fn store(values: &[u64], bytes: usize, run: usize, out: &mut [u8], step: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = within(Level::Avx512, Ifma::new) {
        return avx512::lanes::store(token, values, bytes, run, out, step);
    }
    portable::lanes::store(values, bytes, run, out, step);
}

/// Inner product modulo 2^32.
pub(crate) fn dot(a: &[u32], b: &[u32]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = within(Level::Avx512, Avx512::new) {
        return avx512::dot(token, a, b);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = within(Level::Avx2, Avx2::new) {
        return avx2::dot(token, a, b);
    }
    dot_generic(a, b)
}

/// Rows of the public matrix times the secret, or `false` where only the portable code can run.
pub(crate) fn public_matrix_mul(
    key: &[u8; 16],
    first_row: u64,
    secret: &[u32; LWE_DIMENSION],
    out: &mut [u32],
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = within(Level::Avx512, Vaes::new) {
        avx512::public_matrix_mul(token, key, first_row, secret, out);
        return true;
    }
    let _ = (key, first_row, secret, out);
    false
}

/// Arithmetic on residues modulo a prime, by the fastest kernel that takes it. Each function returns how many words of the
/// beginning are done; the others are the caller's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Residues {
    #[cfg(target_arch = "x86_64")]
    ifma: avx512::elementwise::Residues,
}

#[cfg(target_arch = "x86_64")]
impl Residues {
    /// `None` where no kernel takes the prime.
    pub(crate) fn new(token: Ifma, prime: Prime) -> Option<Self> {
        Some(Self { ifma: avx512::elementwise::Residues::new(token, prime)? })
    }

    pub(crate) fn add(self, out: &mut [u64], b: &[u64]) -> usize {
        self.ifma.add(out, b)
    }

    pub(crate) fn subtract(self, out: &mut [u64], b: &[u64]) -> usize {
        self.ifma.subtract(out, b)
    }

    /// (`a[i]`, `difference[i]`) become (`a[i]` + `b[i]`, `a[i]` - `b[i]`).
    pub(crate) fn sum_and_difference(self, a: &mut [u64], b: &[u64], difference: &mut [u64]) -> usize {
        self.ifma.sum_and_difference(a, b, difference)
    }

    /// `out[i]` = `add[i]` + `a[i]` `b[i]`; without `add`, `out[i]` *= `b[i]`.
    pub(crate) fn multiply(self, add: Option<&[u64]>, out: &mut [u64], b: &[u64]) -> usize {
        self.ifma.multiply(add, out, b)
    }

    /// `out[i]` *= `factor`.
    pub(crate) fn scale(self, out: &mut [u64], factor: u64) -> usize {
        self.ifma.scale(out, factor)
    }

    /// `out[i]` += the sum of `a[i]` `b[i]` over all pairs.
    pub(crate) fn multiply_sum(self, out: &mut [u64], pairs: &[[&[u64]; 2]]) -> usize {
        self.ifma.multiply_sum(out, pairs)
    }

    pub(crate) fn butterflies(self, low: &mut [u64], high: &mut [u64], factors: &[u64]) -> usize {
        self.ifma.butterflies(low, high, factors)
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Residues {
    pub(crate) fn new(_: Ifma, _: Prime) -> Option<Self> {
        None
    }

    pub(crate) fn add(self, _: &mut [u64], _: &[u64]) -> usize {
        0
    }

    pub(crate) fn subtract(self, _: &mut [u64], _: &[u64]) -> usize {
        0
    }

    pub(crate) fn sum_and_difference(self, _: &mut [u64], _: &[u64], _: &mut [u64]) -> usize {
        0
    }

    pub(crate) fn multiply(self, _: Option<&[u64]>, _: &mut [u64], _: &[u64]) -> usize {
        0
    }

    pub(crate) fn scale(self, _: &mut [u64], _: u64) -> usize {
        0
    }

    pub(crate) fn multiply_sum(self, _: &mut [u64], _: &[[&[u64]; 2]]) -> usize {
        0
    }

    pub(crate) fn butterflies(self, _: &mut [u64], _: &mut [u64], _: &[u64]) -> usize {
        0
    }
}

/// The tables of the fastest transform for a prime and a degree.
pub(crate) struct NttTables {
    #[cfg(target_arch = "x86_64")]
    ifma: avx512::ntt::Transform,
}

impl NttTables {
    /// `None` where the kernel does not take the prime.
    pub(crate) fn new(token: Ifma, tables: &Tables) -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        return Some(Self { ifma: avx512::ntt::Transform::new(token, tables)? });
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = (token, tables);
            None
        }
    }

    pub(crate) fn forward(&self, words: &mut [u64]) {
        #[cfg(target_arch = "x86_64")]
        self.ifma.forward(words);
        #[cfg(not(target_arch = "x86_64"))]
        let _ = words;
    }

    pub(crate) fn inverse(&self, words: &mut [u64]) {
        #[cfg(target_arch = "x86_64")]
        self.ifma.inverse(words);
        #[cfg(not(target_arch = "x86_64"))]
        let _ = words;
    }
}

/// The round keys of streams, where there is a kernel for them.
#[cfg(target_arch = "x86_64")]
pub(crate) fn stream_keys(keys: &[u128]) -> Option<(Vaes, zeroize::Zeroizing<Vec<[u128; 11]>>)> {
    let token = within(Level::Avx512, Vaes::new)?;
    Some((token, zeroize::Zeroizing::new(avx512::stream_keys(token, keys))))
}

#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::stream_sums;

/// Rows of a matrix of 128 columns, or `false` where only the portable code can run.
pub(crate) fn rows(columns: &[u128], stride: usize, out: &mut [u128], stores: Stores) -> bool {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = within(Level::Avx512, Gfni::new) {
        avx512::rows(token, columns, stride, out, stores);
        return true;
    }
    let _ = (columns, stride, out, stores);
    false
}

/// Powers of a point for [`polynomial`], where there is a kernel for it.
#[cfg(target_arch = "x86_64")]
pub(crate) fn powers(point: u128, count: usize) -> Option<(Clmul, Vec<u128>)> {
    let token = within(Level::Avx512, Clmul::new)?;
    Some((token, avx512::powers(token, point, count)))
}

#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::polynomial;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_finds_its_interval() {
        let split = |x: u128| [(x >> 64) as u64, x as u64];
        let cumulative = [1u128, 100, 1 << 64, (1 << 100) + 7, (1 << 127) - 1].map(split);
        let edges = [
            (0u128, 0),
            (1, 1),
            (99, 1),
            (100, 2),
            ((1 << 64) - 1, 2),
            (1 << 64, 3),
            ((1 << 100) + 6, 3),
            ((1 << 100) + 7, 4),
            ((1 << 127) - 2, 4),
            ((1 << 127) - 1, 5),
        ];
        let uniform: Vec<[u64; 2]> = edges.iter().map(|(r, _)| split(r << 1)).collect();
        let want: Vec<u32> = edges.iter().map(|(_, k)| *k).collect();
        let mut out = vec![0u32; uniform.len()];
        invert_cumulative(&cumulative, &uniform, &mut out);
        assert_eq!(out, want);
        let negative: Vec<[u64; 2]> = uniform.iter().map(|[h, l]| [*h, l | 1]).collect();
        invert_cumulative(&cumulative, &negative, &mut out);
        assert_eq!(out, want.iter().map(|k| k.wrapping_neg()).collect::<Vec<_>>());
    }
}
