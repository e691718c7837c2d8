//! Tasks, numbers that look random, and what convolutions and products are by their definitions.

use blindcore_accel_rtl::phepu::compiler::{Convolution, Group, Task};
use proptest::prelude::*;

pub(crate) const PRIME: u64 = (1 << 61) - 1;

/// Numbers that look random, the same every time: splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    pub(crate) fn residues(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.next() % PRIME).collect()
    }

    /// Two's complement weights of which each bit is set with a probability of `set` quarters.
    pub(crate) fn weights(&mut self, count: usize, bits: u32, set: u64) -> Vec<i64> {
        let weight = |random: &mut Self| {
            let raw = (0..bits).fold(0u64, |raw, _| raw << 1 | u64::from(random.next() % 4 < set));
            (raw << (64 - bits)) as i64 >> (64 - bits)
        };
        (0..count).map(|_| weight(self)).collect()
    }
}

pub(crate) fn times(weight: i64, input: u64) -> i128 {
    i128::from(weight) * i128::from(input)
}

pub(crate) fn reduced(sum: i128) -> u64 {
    sum.rem_euclid(i128::from(PRIME)) as u64
}

/// A convolution from its definition, over an image padded for real.
pub(crate) fn convolution(shape: &Convolution, weights: &[i64], image: &[u64]) -> Vec<u64> {
    let &Convolution { channels, rows, columns, outputs, kernel, stride, padding } = shape;
    let (height, width) = (rows + 2 * padding.0, columns + 2 * padding.1);
    let mut padded = vec![0; channels * height * width];
    for c in 0..channels {
        for y in 0..rows {
            for x in 0..columns {
                padded[(c * height + y + padding.0) * width + x + padding.1] =
                    image[(c * rows + y) * columns + x];
            }
        }
    }
    let mut results = Vec::new();
    for m in 0..outputs {
        for y in (0..=height - kernel.0).step_by(stride.0) {
            for x in (0..=width - kernel.1).step_by(stride.1) {
                let mut sum = 0;
                for c in 0..channels {
                    for i in 0..kernel.0 {
                        for j in 0..kernel.1 {
                            let weight = weights[((m * channels + c) * kernel.0 + i) * kernel.1 + j];
                            sum += times(weight, padded[(c * height + y + i) * width + x + j]);
                        }
                    }
                }
                results.push(reduced(sum));
            }
        }
    }
    results
}

pub(crate) fn matrix([rows, terms, columns]: [usize; 3], weights: &[i64], inputs: &[u64]) -> Vec<u64> {
    let at = |p: usize, m: usize| {
        reduced((0..terms).map(|k| times(weights[k * columns + m], inputs[p * terms + k])).sum())
    };
    (0..rows).flat_map(|p| (0..columns).map(move |m| at(p, m))).collect()
}

pub(crate) fn bits_and_weights() -> impl Strategy<Value = (u32, u8, u64)> {
    (prop::sample::select(vec![2, 4, 8]), 0..6u8, any::<u64>())
}

/// Weights of one of six kinds: random, sparse, dense, the least, the greatest, zero.
pub(crate) fn weights(task: &Task, kind: u8, random: &mut Random) -> Vec<i64> {
    let bits = task.weight_bits();
    match kind {
        3 => vec![-(1 << (bits - 1)); task.weights()],
        4 => vec![(1 << (bits - 1)) - 1; task.weights()],
        kind => random.weights(task.weights(), bits, [2, 1, 3, 0, 0, 0][kind as usize]),
    }
}

pub(crate) fn shape() -> impl Strategy<Value = Convolution> {
    let sides = (1..5usize, 1..9usize, 1..9usize, 1..7usize);
    (sides, (1..5usize, 1..5usize), (1..4usize, 1..4usize), (0..5usize, 0..5usize)).prop_map(
        |((channels, rows, columns, outputs), kernel, stride, padding)| {
            let kernel = (kernel.0.min(rows + 2 * padding.0), kernel.1.min(columns + 2 * padding.1));
            Convolution { channels, rows, columns, outputs, kernel, stride, padding }
        },
    )
}

/// The integers modulo 15 under multiplication: some have no inverse.
pub(crate) struct Modulo15;

impl Group for Modulo15 {
    type Element = u64;
    fn one(&self) -> u64 {
        1
    }
    fn multiply(&self, x: &u64, y: &u64) -> u64 {
        x * y % 15
    }
    fn square(&self, x: &u64) -> u64 {
        x * x % 15
    }
    fn invert(&self, x: &u64) -> Option<u64> {
        (1..15).find(|y| x * y % 15 == 1)
    }
}
