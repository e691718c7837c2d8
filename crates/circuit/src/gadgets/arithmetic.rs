//! Sums, differences, quotients.

use crate::builder::{Bit, Builder};
use crate::gadgets::width::same_width;
use std::collections::VecDeque;

/// A sum under construction: bits of weight 2^i in column i, modulo 2^width.
///
/// Summed up column by column, three bits to one of their weight and one of twice it by a full adder: so k bits of a
/// column cost k / 2 ANDs, rounded down, and none in the last column.
pub(crate) struct Columns {
    bits: Vec<VecDeque<Bit>>,
    /// How often 2^i is added (or subtracted).
    constant: Vec<i64>,
}

impl Columns {
    pub(crate) fn new(width: usize) -> Self {
        Self { bits: vec![VecDeque::new(); width], constant: vec![0; width] }
    }

    /// Adds `bit << place`.
    pub(crate) fn add_bit(&mut self, place: usize, bit: Bit) {
        if place >= self.bits.len() {
        } else if bit == Bit::ONE {
            self.constant[place] += 1;
        } else if bit != Bit::ZERO {
            self.bits[place].push_back(bit);
        }
    }

    /// Subtracts `bit << place`: adds the bit's complement less 1.
    pub(crate) fn subtract_bit(&mut self, c: &mut Builder, place: usize, bit: Bit) {
        if place < self.bits.len() {
            let complement = c.not(bit);
            self.add_bit(place, complement);
            self.constant[place] -= 1;
        }
    }

    /// Adds `word << place`.
    pub(crate) fn add(&mut self, place: usize, word: &[Bit]) {
        word.iter().enumerate().for_each(|(i, b)| self.add_bit(place + i, *b));
    }

    /// Subtracts `word << place`.
    pub(crate) fn subtract(&mut self, c: &mut Builder, place: usize, word: &[Bit]) {
        word.iter().enumerate().for_each(|(i, b)| self.subtract_bit(c, place + i, *b));
    }

    /// Adds a signed word, whose top bit counts negative.
    pub(crate) fn add_signed(&mut self, c: &mut Builder, place: usize, word: &[Bit]) {
        if let Some((top, rest)) = word.split_last() {
            self.add(place, rest);
            self.subtract_bit(c, place + rest.len(), *top);
        }
    }

    /// Subtracts a signed word.
    pub(crate) fn subtract_signed(&mut self, c: &mut Builder, place: usize, word: &[Bit]) {
        if let Some((top, rest)) = word.split_last() {
            self.subtract(c, place, rest);
            self.add_bit(place + rest.len(), *top);
        }
    }

    /// The sum's bits.
    pub(crate) fn sum(mut self, c: &mut Builder) -> Vec<Bit> {
        let width = self.bits.len();
        let mut sum = Vec::with_capacity(width);
        let mut constant = 0;
        for place in 0..width {
            constant += self.constant[place];
            // The constant's bit comes last: beside a single bit it costs nothing.
            let mut one = constant.rem_euclid(2) == 1;
            constant = constant.div_euclid(2);
            let mut column = std::mem::take(&mut self.bits[place]);
            if place + 1 == width {
                let all = c.parity(column.make_contiguous());
                sum.push(c.xor(all, if one { Bit::ONE } else { Bit::ZERO }));
                break;
            }
            while column.len() > 1 {
                let a = column.pop_front().unwrap_or(Bit::ZERO);
                let b = column.pop_front().unwrap_or(Bit::ZERO);
                let third = column
                    .pop_front()
                    .unwrap_or_else(|| if std::mem::take(&mut one) { Bit::ONE } else { Bit::ZERO });
                let (low, high) = c.full_add(a, b, third);
                if low == Bit::ONE {
                    constant += i64::from(one);
                    one = !one;
                } else if low != Bit::ZERO {
                    column.push_back(low);
                }
                self.add_bit(place + 1, high);
            }
            sum.push(match (column.pop_front(), one) {
                (None, _) => c.constant(one),
                (Some(bit), false) => bit,
                (Some(bit), true) => {
                    self.add_bit(place + 1, bit);
                    c.not(bit)
                }
            });
        }
        sum
    }
}

impl Builder {
    /// Sum and carry of three bits: 1 AND, none where two of them are constants.
    pub(crate) fn full_add(&mut self, a: Bit, b: Bit, carry: Bit) -> (Bit, Bit) {
        let mut bits = [a, b, carry];
        bits.sort_unstable();
        let [x, y, z] = bits;
        if x == Bit::ZERO {
            return (self.xor(y, z), self.and(y, z));
        }
        let x_y = self.xor(x, y);
        let sum = self.xor(x_y, z);
        if x == Bit::ONE {
            // y | z
            let not_z = self.not(z);
            let neither = self.and(x_y, not_z);
            return (sum, self.not(neither));
        }
        // Where x and y differ, z decides, else x.
        let x_z = self.xor(x, z);
        let change = self.and(x_y, x_z);
        (sum, self.xor(x, change))
    }

    /// `a + b + carry` and the carry out. n ANDs.
    pub fn add_with_carry(&mut self, a: &[Bit], b: &[Bit], carry: Bit) -> (Vec<Bit>, Bit) {
        same_width(a, b);
        let mut carry = carry;
        let sum = a
            .iter()
            .zip(b)
            .map(|(&a, &b)| {
                let (sum, next) = self.full_add(a, b, carry);
                carry = next;
                sum
            })
            .collect();
        (sum, carry)
    }

    /// `a + b + carry` modulo 2^n: n - 1 ANDs.
    fn add_modulo(&mut self, a: &[Bit], b: &[Bit], carry: Bit) -> Vec<Bit> {
        same_width(a, b);
        let Some(top) = a.len().checked_sub(1) else { return Vec::new() };
        let (mut sum, carry) = self.add_with_carry(&a[..top], &b[..top], carry);
        let either = self.xor(a[top], b[top]);
        sum.push(self.xor(either, carry));
        sum
    }

    /// `a + b` modulo 2^n. n - 1 ANDs.
    pub fn add(&mut self, a: &[Bit], b: &[Bit]) -> Vec<Bit> {
        self.add_modulo(a, b, Bit::ZERO)
    }

    /// `a + b`, a bit wider. n ANDs.
    pub fn add_wide(&mut self, a: &[Bit], b: &[Bit]) -> Vec<Bit> {
        let (mut sum, carry) = self.add_with_carry(a, b, Bit::ZERO);
        sum.push(carry);
        sum
    }

    /// The sum of all words modulo 2^width. An AND for each bit beyond the first of a place, none at the top.
    pub fn sum(&mut self, words: &[Vec<Bit>], width: usize) -> Vec<Bit> {
        let mut columns = Columns::new(width);
        words.iter().for_each(|w| columns.add(0, w));
        columns.sum(self)
    }

    /// `a - b` modulo 2^n. n - 1 ANDs.
    pub fn subtract(&mut self, a: &[Bit], b: &[Bit]) -> Vec<Bit> {
        let not_b = self.not_word(b);
        self.add_modulo(a, &not_b, Bit::ONE)
    }

    /// `a - b` modulo 2^n, and whether `a < b`. n ANDs.
    pub fn subtract_with_borrow(&mut self, a: &[Bit], b: &[Bit]) -> (Vec<Bit>, Bit) {
        let not_b = self.not_word(b);
        let (difference, carry) = self.add_with_carry(a, &not_b, Bit::ONE);
        (difference, self.not(carry))
    }

    /// The distance between `a` and `b`, unsigned. 2 n - 1 ANDs.
    pub fn absolute_difference(&mut self, a: &[Bit], b: &[Bit]) -> Vec<Bit> {
        let (difference, less) = self.subtract_with_borrow(a, b);
        self.negate_if(less, &difference)
    }

    /// `a + 1` modulo 2^n. n - 2 ANDs.
    pub fn increment(&mut self, a: &[Bit]) -> Vec<Bit> {
        self.add_modulo(a, &vec![Bit::ZERO; a.len()], Bit::ONE)
    }

    /// `-a` modulo 2^n. n - 2 ANDs.
    pub fn negate(&mut self, a: &[Bit]) -> Vec<Bit> {
        let not_a = self.not_word(a);
        self.increment(&not_a)
    }

    /// `-a` modulo 2^n where `condition`, else `a`. n - 1 ANDs.
    pub fn negate_if(&mut self, condition: Bit, a: &[Bit]) -> Vec<Bit> {
        let flipped: Vec<Bit> = a.iter().map(|a| self.xor(*a, condition)).collect();
        self.add_modulo(&flipped, &vec![Bit::ZERO; a.len()], condition)
    }

    /// The absolute value of a signed number, as an unsigned one of the same width. n - 1 ANDs.
    pub fn absolute(&mut self, a: &[Bit]) -> Vec<Bit> {
        let negative = a.last().copied().unwrap_or(Bit::ZERO);
        self.negate_if(negative, a)
    }

    /// Quotient and remainder, unsigned, as wide as dividend and divisor. A zero divisor gives a quotient of ones and
    /// the dividend as remainder (its low bits where the divisor is narrower).
    ///
    /// Non-restoring, each step as wide as its partial remainder can be: of n bits by n, about n^2 / 2 + 4 n ANDs,
    /// 2,332 for 64 bits, half of which restoring division needs n^2.
    pub fn divide(&mut self, dividend: &[Bit], divisor: &[Bit]) -> (Vec<Bit>, Vec<Bit>) {
        let (quotient, remainder, _) = self.divide_and_test(dividend, divisor);
        (quotient, remainder)
    }

    /// Quotient, remainder, and whether the divisor is not zero.
    fn divide_and_test(&mut self, dividend: &[Bit], divisor: &[Bit]) -> (Vec<Bit>, Vec<Bit>, Bit) {
        let (n, m) = (dividend.len(), divisor.len());
        // large[k]: the divisor is 2^k or more.
        let mut large = vec![Bit::ZERO; m + 1];
        for k in (0..m).rev() {
            large[k] = self.or(large[k + 1], divisor[k]);
        }
        // After step k, what the first k bits of the dividend leave, less the divisor where that makes it negative.
        // It lies between -divisor and divisor; where the divisor is 2^k or more it is certainly negative, so
        // min(k, m) + 1 bits do.
        let mut partial: Vec<Bit> = Vec::new();
        let mut quotient = vec![Bit::ZERO; n];
        let mut subtract = Bit::ONE;
        for k in 1..=n {
            let width = k.min(m) + 1;
            partial.insert(0, dividend[n - k]);
            partial.resize(width, Bit::ZERO);
            let operand: Vec<Bit> = (0..width)
                .map(|i| self.xor(divisor.get(i).copied().unwrap_or(Bit::ZERO), subtract))
                .collect();
            partial = self.add_modulo(&partial, &operand, subtract);
            let negative = partial[width - 1];
            subtract = if k <= m {
                let (fits, small) = (self.not(negative), self.not(large[k]));
                self.and(fits, small)
            } else {
                // The sign is right unless the divisor is zero.
                let smaller = self.and(negative, large[0]);
                self.not(smaller)
            };
            quotient[n - k] = subtract;
        }
        let negative = self.not(subtract);
        let back = self.mask(negative, &divisor[..n.min(m)]);
        partial.truncate(n.min(m));
        let mut remainder = self.add(&partial, &back);
        remainder.resize(m, Bit::ZERO);
        (quotient, remainder, large[0])
    }

    /// Quotient, rounded towards zero, and remainder, of the dividend's sign. A zero divisor gives a quotient of -1 and
    /// the dividend as remainder; the least number by -1 gives itself and zero. [`divide`](Self::divide) and 4 n
    /// ANDs.
    pub fn divide_signed(&mut self, dividend: &[Bit], divisor: &[Bit]) -> (Vec<Bit>, Vec<Bit>) {
        same_width(dividend, divisor);
        let Some((&negative, &by_negative)) = dividend.last().zip(divisor.last()) else {
            return (Vec::new(), Vec::new());
        };
        let (a, b) = (self.absolute(dividend), self.absolute(divisor));
        let (quotient, remainder, proper) = self.divide_and_test(&a, &b);
        let differ = self.xor(negative, by_negative);
        let flip = self.and(differ, proper);
        (self.negate_if(flip, &quotient), self.negate_if(negative, &remainder))
    }
}
