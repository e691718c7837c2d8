//! The sums r_i = sum_j X^j tau^i(a_j) / count, as Fourier transforms across polynomials.
//!
//! At psi^e, r_i is sum_j psi^(e j) a_j(psi^(e g^i)) / count. With f = e g^i that is the polynomial P_f(Y) = sum_j a_j(psi^f) Y^j
//! at Y = psi^e, and e = f g^-i runs through f + (2d / count) k for k = 0..count-1 as i runs through 0..count-1. So the `count`
//! values that a slot f is part of are one cyclic transform of its `count` masks, twisted by psi^(f j). With g^-i = 1 + (2d / count) u,
//! k is f u: a transform by omega^f, omega = psi^(2d / count), has the value of each i at the same place for all f.

use blindcore_math::ntt::{Ntt, root};
use blindcore_math::{Elementwise, Prime};

/// Slots that are transformed at a time: with `count` polynomials they stay in the cache.
const SLOTS: usize = 64;

/// The roots of unity of the transform across polynomials.
pub(super) struct Fourier {
    count: usize,
    degree: usize,
    /// psi^f for each slot f in orbit order.
    twist: Vec<u64>,
    /// omega^(f k) for each block of slots f, in orbit order, and k = 0..count/2-1: `[block][k][slot]`.
    roots: Vec<u64>,
    /// 1 / count.
    scale: u64,
    /// For each i the row of a transformed block that has its values.
    rows: Vec<u32>,
}

impl Fourier {
    pub(super) fn new(ntt: &Ntt, count: usize, generator: usize) -> Self {
        let (prime, degree) = (ntt.prime(), ntt.degree());
        let order = 2 * degree;
        let psi = root(prime, degree).expect("a ring with a transform has a root");
        let powers: Vec<u64> =
            std::iter::successors(Some(1), |x| Some(mul(prime, *x, psi))).take(order).collect();
        // As `ntt::orbit` has them: 5^z, then -5^z.
        let fives = || std::iter::successors(Some(1), move |x| Some(x * 5 % order)).take(degree / 2);
        let exponents: Vec<usize> = fives().chain(fives().map(|x| order - x)).collect();
        let root = |f: usize, k: usize| powers[f * k % count * (order / count)];
        let block = |slots: &[usize]| -> Vec<u64> {
            (0..count / 2).flat_map(|k| slots.iter().map(move |f| (*f, k))).map(|(f, k)| root(f, k)).collect()
        };
        let roots = exponents.chunks_exact(SLOTS).flat_map(block).collect();
        // g has order `count`, so g^-i = g^(count - i).
        let inverses: Vec<usize> =
            std::iter::successors(Some(1), |x| Some(x * generator % order)).take(count).collect();
        let turn = |i: usize| (inverses[(count - i) % count] - 1) / (order / count);
        let rows = (0..count).map(|i| (turn(i).reverse_bits() >> (usize::BITS - count.ilog2())) as u32);
        let rows = rows.collect();
        let scale = (0..count.ilog2()).fold(1, |x, _| mul(prime, x, prime.value().div_ceil(2)));
        Self { count, degree, twist: exponents.iter().map(|f| powers[*f]).collect(), roots, scale, rows }
    }

    /// Memory for a block of slots.
    pub(super) fn block(&self) -> Vec<u64> {
        vec![0; self.count * SLOTS]
    }

    /// r_i for i = 0..count-1 from the masks, all by values in orbit order.
    pub(super) fn sums(&self, modulo: &Elementwise, masks: &[u64], block: &mut [u64], sums: &mut [u64]) {
        let (degree, half) = (self.degree, self.degree / 2);
        let step = half / self.count;
        for first in (0..degree).step_by(SLOTS) {
            let twist = &self.twist[first..first + SLOTS];
            let mut power = [self.scale; SLOTS];
            for (words, mask) in block.chunks_exact_mut(SLOTS).zip(masks.chunks_exact(degree)) {
                words.copy_from_slice(&mask[first..first + SLOTS]);
                modulo.multiply(words, &power);
                modulo.multiply(&mut power, twist);
            }
            let roots = self.count / 2 * SLOTS;
            self.transform(modulo, &self.roots[first / SLOTS * roots..][..roots], block);
            let (start, at) = (first / half * half, first % half);
            for (i, (sums, row)) in sums.chunks_exact_mut(degree).zip(&self.rows).enumerate() {
                let values = &block[*row as usize * SLOTS..][..SLOTS];
                let to = (at + half - i * step) % half;
                // They may wrap around.
                let here = SLOTS.min(half - to);
                sums[start + to..][..here].copy_from_slice(&values[..here]);
                sums[start..][..SLOTS - here].copy_from_slice(&values[here..]);
            }
        }
    }

    /// The cyclic transform down each column; its outputs' order is reversed bit by bit. Source: Gentleman and Sande 1966.
    fn transform(&self, modulo: &Elementwise, roots: &[u64], block: &mut [u64]) {
        let mut len = self.count / 2;
        while len > 0 {
            let stride = self.count / 2 / len;
            for pair in block.chunks_exact_mut(2 * len * SLOTS) {
                let (low, high) = pair.split_at_mut(len * SLOTS);
                let rows = low.chunks_exact_mut(SLOTS).zip(high.chunks_exact_mut(SLOTS));
                for ((low, high), roots) in rows.zip(roots.chunks_exact(SLOTS).step_by(stride)) {
                    modulo.butterflies(low, high, roots);
                }
            }
            len /= 2;
        }
    }
}

fn mul(prime: Prime, a: u64, b: u64) -> u64 {
    prime.reduce(u128::from(a) * u128::from(b))
}
