//! Fixed-point numbers: signed words of n bits, the lowest `fraction` of them after the point.

use crate::builder::{Bit, Builder};
use crate::gadgets::arithmetic::Columns;

impl Builder {
    /// `a * b` modulo 2^n, rounded to the nearest, half up. 1,759 ANDs for 32 bits, 16 of them
    /// after the point.
    pub fn fixed_multiply(&mut self, a: &[Bit], b: &[Bit], fraction: usize) -> Vec<Bit> {
        crate::gadgets::width::same_width(a, b);
        // The signed product modulo 2^(n + fraction), and half a last place.
        let mut columns = Columns::new(a.len() + fraction);
        self.add_signed_product(&mut columns, a, b);
        if fraction > 0 {
            columns.add_bit(fraction - 1, Bit::ONE);
        }
        columns.sum(self).split_off(fraction)
    }

    /// `a / b` modulo 2^n, rounded towards zero; by zero, the quotient of the absolute values is all ones.
    pub fn fixed_divide(&mut self, a: &[Bit], b: &[Bit], fraction: usize) -> Vec<Bit> {
        crate::gadgets::width::same_width(a, b);
        let Some((&a_negative, &b_negative)) = a.last().zip(b.last()) else { return Vec::new() };
        let (absolute_a, absolute_b) = (self.absolute(a), self.absolute(b));
        let dividend = [vec![Bit::ZERO; fraction], absolute_a].concat();
        let (mut quotient, _) = self.divide(&dividend, &absolute_b);
        quotient.truncate(a.len());
        let negative = self.xor(a_negative, b_negative);
        self.negate_if(negative, &quotient)
    }
}
