//! Selection, comparisons, shifts and counts.

use super::width::same_width;
use crate::builder::{Bit, Builder};

/// Bits that hold every number from 0 to `largest`.
pub(crate) fn bits_for(largest: usize) -> usize {
    (usize::BITS - largest.leading_zeros()) as usize
}

impl Builder {
    /// The lowest `width` bits of `value` as constants; zeros beyond 128.
    #[must_use]
    pub fn constant_word(&self, value: u128, width: usize) -> Vec<Bit> {
        super::to_bits(value, width).into_iter().map(|b| self.constant(b)).collect()
    }

    /// `a ^ b`. No AND.
    pub fn xor_word(&mut self, a: &[Bit], b: &[Bit]) -> Vec<Bit> {
        same_width(a, b);
        a.iter().zip(b).map(|(a, b)| self.xor(*a, *b)).collect()
    }

    /// `a & b`. n ANDs.
    pub fn and_word(&mut self, a: &[Bit], b: &[Bit]) -> Vec<Bit> {
        same_width(a, b);
        a.iter().zip(b).map(|(a, b)| self.and(*a, *b)).collect()
    }

    /// `a | b`. n ANDs.
    pub fn or_word(&mut self, a: &[Bit], b: &[Bit]) -> Vec<Bit> {
        same_width(a, b);
        a.iter().zip(b).map(|(a, b)| self.or(*a, *b)).collect()
    }

    /// `!a`. No AND.
    pub fn not_word(&mut self, a: &[Bit]) -> Vec<Bit> {
        a.iter().map(|a| self.not(*a)).collect()
    }

    /// `a` where `condition`, else zero. n ANDs.
    pub fn mask(&mut self, condition: Bit, a: &[Bit]) -> Vec<Bit> {
        a.iter().map(|a| self.and(condition, *a)).collect()
    }

    /// `then` where `condition`, else `otherwise`. n ANDs.
    pub fn mux_word(&mut self, condition: Bit, then: &[Bit], otherwise: &[Bit]) -> Vec<Bit> {
        same_width(then, otherwise);
        then.iter().zip(otherwise).map(|(t, o)| self.mux(condition, *t, *o)).collect()
    }

    /// The value at this place, zero where there is none. About n ANDs a value.
    ///
    /// # Panics
    /// No values, or values of different widths.
    pub fn index(&mut self, values: &[Vec<Bit>], index: &[Bit]) -> Vec<Bit> {
        let width = values.first().expect("an index into at least one value").len();
        let mut level = values.to_vec();
        for &bit in index {
            level = level
                .chunks(2)
                .map(|pair| match pair {
                    [zero, one] => self.mux_word(bit, one, zero),
                    [zero] => {
                        let inside = self.not(bit);
                        self.mask(inside, zero)
                    }
                    _ => vec![Bit::ZERO; width],
                })
                .collect();
        }
        level.swap_remove(0)
    }

    /// One bit for each number below 2^n, set where it is the index. 2^n - n - 1 ANDs.
    pub fn one_hot(&mut self, index: &[Bit]) -> Vec<Bit> {
        let mut lines = vec![Bit::ONE];
        for &bit in index {
            let with = self.mask(bit, &lines);
            let without: Vec<Bit> = lines.iter().zip(&with).map(|(l, w)| self.xor(*l, *w)).collect();
            lines = [without, with].concat();
        }
        lines
    }

    /// Whether all are set (true of none). n - 1 ANDs, in a tree.
    pub fn all(&mut self, bits: &[Bit]) -> Bit {
        let mut level = bits.to_vec();
        while level.len() > 1 {
            level = level.chunks(2).map(|p| if let [a, b] = *p { self.and(a, b) } else { p[0] }).collect();
        }
        level.first().copied().unwrap_or(Bit::ONE)
    }

    /// Whether one is set (false of none). n - 1 ANDs, in a tree.
    pub fn any(&mut self, bits: &[Bit]) -> Bit {
        let clear = self.not_word(bits);
        let none = self.all(&clear);
        self.not(none)
    }

    /// The XOR of all bits. No AND.
    pub fn parity(&mut self, bits: &[Bit]) -> Bit {
        bits.iter().fold(Bit::ZERO, |sum, b| self.xor(sum, *b))
    }

    /// `a == b`. n - 1 ANDs.
    pub fn equal(&mut self, a: &[Bit], b: &[Bit]) -> Bit {
        let differ = self.xor_word(a, b);
        let same = self.not_word(&differ);
        self.all(&same)
    }

    /// `a < b`, unsigned. n ANDs, and 3 n XORs, of which [`swap`](Self::swap) of the same words has n too.
    pub fn less(&mut self, a: &[Bit], b: &[Bit]) -> Bit {
        same_width(a, b);
        let mut less = Bit::ZERO;
        for (&a, &b) in a.iter().zip(b) {
            // Where the bits differ, b's decides, else what is below.
            let differ = self.xor(a, b);
            less = self.mux(differ, b, less);
        }
        less
    }

    /// `a <= b`, unsigned. n ANDs.
    pub fn less_or_equal(&mut self, a: &[Bit], b: &[Bit]) -> Bit {
        let greater = self.less(b, a);
        self.not(greater)
    }

    /// `a < b`, signed. n ANDs.
    pub fn less_signed(&mut self, a: &[Bit], b: &[Bit]) -> Bit {
        let (a, b) = (self.sign_flipped(a), self.sign_flipped(b));
        self.less(&a, &b)
    }

    /// `a <= b`, signed. n ANDs.
    pub fn less_or_equal_signed(&mut self, a: &[Bit], b: &[Bit]) -> Bit {
        let greater = self.less_signed(b, a);
        self.not(greater)
    }

    /// Signed numbers in the order of unsigned ones.
    pub(crate) fn sign_flipped(&mut self, a: &[Bit]) -> Vec<Bit> {
        let mut flipped = a.to_vec();
        if let Some(top) = flipped.last_mut() {
            *top = self.not(*top);
        }
        flipped
    }

    /// The lesser and the greater, unsigned. 2 n ANDs.
    pub fn compare_exchange(&mut self, a: &[Bit], b: &[Bit]) -> (Vec<Bit>, Vec<Bit>) {
        let swap = self.less(b, a);
        self.swap(swap, a, b)
    }

    /// `(b, a)` where `condition`, else `(a, b)`. n ANDs.
    pub fn swap(&mut self, condition: Bit, a: &[Bit], b: &[Bit]) -> (Vec<Bit>, Vec<Bit>) {
        let differ = self.xor_word(a, b);
        let change = self.mask(condition, &differ);
        (self.xor_word(a, &change), self.xor_word(b, &change))
    }

    /// The lesser, unsigned. 2 n ANDs.
    pub fn min(&mut self, a: &[Bit], b: &[Bit]) -> Vec<Bit> {
        let first = self.less(a, b);
        self.mux_word(first, a, b)
    }

    /// The greater, unsigned. 2 n ANDs.
    pub fn max(&mut self, a: &[Bit], b: &[Bit]) -> Vec<Bit> {
        let first = self.less(a, b);
        self.mux_word(first, b, a)
    }

    /// The lesser, signed. 2 n ANDs.
    pub fn min_signed(&mut self, a: &[Bit], b: &[Bit]) -> Vec<Bit> {
        let first = self.less_signed(a, b);
        self.mux_word(first, a, b)
    }

    /// The greater, signed. 2 n ANDs.
    pub fn max_signed(&mut self, a: &[Bit], b: &[Bit]) -> Vec<Bit> {
        let first = self.less_signed(a, b);
        self.mux_word(first, b, a)
    }

    /// `a << by`, of the same width. Free.
    #[must_use]
    pub fn shift_left(&self, a: &[Bit], by: usize) -> Vec<Bit> {
        let by = by.min(a.len());
        [&vec![Bit::ZERO; by], &a[..a.len() - by]].concat()
    }

    /// `a >> by`, of the same width, `fill` coming in at the top (zero, or the sign). Free.
    #[must_use]
    pub fn shift_right(&self, a: &[Bit], by: usize, fill: Bit) -> Vec<Bit> {
        let by = by.min(a.len());
        [&a[by..], &vec![fill; by]].concat()
    }

    /// `a` rotated left. Free.
    #[must_use]
    pub fn rotate_left(&self, a: &[Bit], by: usize) -> Vec<Bit> {
        let mut rotated = a.to_vec();
        if !a.is_empty() {
            rotated.rotate_right(by % a.len());
        }
        rotated
    }

    /// `a << by`, zero from n on. n ANDs for each bit of `by` that counts.
    pub fn shift_left_by(&mut self, a: &[Bit], by: &[Bit]) -> Vec<Bit> {
        self.shift_by(a, by, Bit::ZERO, |c, a, n| c.shift_left(a, n))
    }

    /// `a >> by`, `fill` (zero, or the sign) coming in at the top, `fill` alone from n on. n ANDs for each bit of `by`
    /// that counts.
    pub fn shift_right_by(&mut self, a: &[Bit], by: &[Bit], fill: Bit) -> Vec<Bit> {
        self.shift_by(a, by, fill, |c, a, n| c.shift_right(a, n, fill))
    }

    fn shift_by(
        &mut self,
        a: &[Bit],
        by: &[Bit],
        fill: Bit,
        shift: impl Fn(&Self, &[Bit], usize) -> Vec<Bit>,
    ) -> Vec<Bit> {
        // A shift by n or more is seen in the high bits or made by the low ones.
        let stages = bits_for(a.len().saturating_sub(1)).min(by.len());
        let mut shifted = a.to_vec();
        for (i, &bit) in by[..stages].iter().enumerate() {
            let moved = shift(self, &shifted, 1 << i);
            shifted = self.mux_word(bit, &moved, &shifted);
        }
        let beyond = self.any(&by[stages..]);
        self.mux_word(beyond, &vec![fill; a.len()], &shifted)
    }

    /// `a` rotated left by a word, modulo n. n ANDs for each bit of `by` (those that rotate by a multiple of n
    /// are free).
    pub fn rotate_left_by(&mut self, a: &[Bit], by: &[Bit]) -> Vec<Bit> {
        let mut rotated = a.to_vec();
        let mut step = 1;
        for &bit in by {
            let moved = self.rotate_left(&rotated, step);
            if moved != rotated && !a.is_empty() && !step.is_multiple_of(a.len()) {
                rotated = self.mux_word(bit, &moved, &rotated);
            }
            step = if a.is_empty() { 0 } else { step * 2 % a.len() };
        }
        rotated
    }

    /// How many bits are set, in as few bits as hold n. n - (bits set in n) ANDs, the fewest there can be (Boyar and
    /// Peralta 2008, "Tight bounds for the multiplicative complexity of symmetric functions").
    pub fn popcount(&mut self, bits: &[Bit]) -> Vec<Bit> {
        let mut columns = super::arithmetic::Columns::new(bits_for(bits.len()));
        bits.iter().for_each(|b| columns.add_bit(0, *b));
        columns.sum(self)
    }

    /// In how many bits `a` and `b` differ. As [`popcount`](Self::popcount).
    pub fn hamming_distance(&mut self, a: &[Bit], b: &[Bit]) -> Vec<Bit> {
        let differ = self.xor_word(a, b);
        self.popcount(&differ)
    }

    /// How many zeros stand above the highest one, n of zero. n - 1 ANDs.
    pub fn leading_zeros(&mut self, a: &[Bit]) -> Vec<Bit> {
        let reversed: Vec<Bit> = a.iter().rev().copied().collect();
        self.trailing_zeros(&reversed)
    }

    /// How many zeros stand below the lowest one, n of zero. n - 1 ANDs.
    pub fn trailing_zeros(&mut self, a: &[Bit]) -> Vec<Bit> {
        let mut count = vec![Bit::ZERO; bits_for(a.len())];
        // `seen` steps from 0 to 1 once, at the count, whose bits the step's XOR puts out.
        let mut seen = Bit::ZERO;
        for place in 0..=a.len() {
            let now = a.get(place).map_or(Bit::ONE, |&bit| self.or(seen, bit));
            let step = self.xor(seen, now);
            for (_, bit) in count.iter_mut().enumerate().filter(|(i, _)| place >> i & 1 == 1) {
                *bit = self.xor(*bit, step);
            }
            seen = now;
        }
        count
    }
}
