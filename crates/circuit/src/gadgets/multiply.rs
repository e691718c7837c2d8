//! Products.

use crate::builder::{Bit, Builder};
use crate::gadgets::arithmetic::Columns;

/// From this many bits on, three products of halves need fewer ANDs than four (measured).
const KARATSUBA_FROM: usize = 14;
/// The same for truncated products and for squares, whose schoolbook costs half.
const LOW_FROM: usize = 31;
const SQUARE_FROM: usize = 32;

impl Builder {
    /// `a * b`, unsigned, as wide as both together. Of n bits by n: 2 n^2 - n ANDs by the schoolbook, fewer by
    /// Karatsuba (1962) where that wins: 467 for 16 bits, 1,622 for 32, 5,273 for 64.
    pub fn multiply(&mut self, a: &[Bit], b: &[Bit]) -> Vec<Bit> {
        let (a, b) = if a.len() < b.len() { (b, a) } else { (a, b) };
        let (n, m) = (a.len(), b.len());
        let half = n.div_ceil(2);
        if m < KARATSUBA_FROM {
            return self.schoolbook(a, b, n + m);
        }
        let (a0, a1) = a.split_at(half);
        if m < half + KARATSUBA_FROM / 2 {
            // A long number by a short one: in two pieces.
            let (low, high) = (self.multiply(a0, b), self.multiply(a1, b));
            let mut columns = Columns::new(n + m);
            columns.add(0, &low);
            columns.add(half, &high);
            return columns.sum(self);
        }
        let (b0, b1) = b.split_at(half);
        let (low, high) = (self.multiply(a0, b0), self.multiply(a1, b1));
        let (a_sum, b_sum) = (self.sum_of_halves(a0, a1), self.sum_of_halves(b0, b1));
        let middle = self.multiply(&a_sum, &b_sum);
        self.join(&low, &middle, &high, half, n + m)
    }

    /// `a * b` modulo 2^n. n^2 ANDs by the schoolbook, fewer by Karatsuba.
    pub fn multiply_low(&mut self, a: &[Bit], b: &[Bit]) -> Vec<Bit> {
        crate::gadgets::width::same_width(a, b);
        let n = a.len();
        let half = n.div_ceil(2);
        if n < LOW_FROM {
            return self.schoolbook(a, b, n);
        }
        let ((a0, a1), (b0, b1)) = (a.split_at(half), b.split_at(half));
        let low = self.multiply(a0, b0);
        let crossed = [self.multiply_low(&a0[..n - half], b1), self.multiply_low(&b0[..n - half], a1)];
        let mut columns = Columns::new(n);
        columns.add(0, &low);
        crossed.iter().for_each(|product| columns.add(half, product));
        columns.sum(self)
    }

    /// `a * a`, unsigned, 2 n bits. About n^2 ANDs.
    pub fn square(&mut self, a: &[Bit]) -> Vec<Bit> {
        let n = a.len();
        let mut columns = Columns::new(2 * n);
        if n < SQUARE_FROM {
            for (i, &x) in a.iter().enumerate() {
                columns.add_bit(2 * i, x);
                for (j, &y) in a.iter().enumerate().skip(i + 1) {
                    let both = self.and(x, y);
                    columns.add_bit(i + j + 1, both);
                }
            }
        } else {
            let (a0, a1) = a.split_at(n.div_ceil(2));
            let (low, high, crossed) = (self.square(a0), self.square(a1), self.multiply(a0, a1));
            columns.add(0, &low);
            columns.add(2 * a0.len(), &high);
            columns.add(a0.len() + 1, &crossed);
        }
        columns.sum(self)
    }

    /// `a * b`, signed, as wide as both together (Baugh and Wooley 1973). About 2 n^2 ANDs.
    pub fn multiply_signed(&mut self, a: &[Bit], b: &[Bit]) -> Vec<Bit> {
        let mut columns = Columns::new(a.len() + b.len());
        self.add_signed_product(&mut columns, a, b);
        columns.sum(self)
    }

    /// `a * factor` modulo 2^width, unsigned. An adder for each non-zero digit of the factor's non-adjacent form but
    /// one.
    pub fn multiply_constant(&mut self, a: &[Bit], factor: u128, width: usize) -> Vec<Bit> {
        let mut columns = Columns::new(width);
        let mut rest = factor;
        let mut place = 0;
        while rest != 0 {
            // A run of ones, or a lone one.
            let zeros = rest.trailing_zeros() as usize;
            place += zeros;
            rest >>= zeros;
            if rest & 3 == 3 {
                columns.subtract(self, place, a);
                // Adding 1 may need a 129th bit.
                rest = (rest >> 1) + 1;
            } else {
                columns.add(place, a);
                rest >>= 1;
            }
            place += 1;
        }
        columns.sum(self)
    }

    /// Adds `a * b`, both signed, to columns.
    pub(crate) fn add_signed_product(&mut self, columns: &mut Columns, a: &[Bit], b: &[Bit]) {
        for (i, &x) in a.iter().enumerate() {
            for (j, &y) in b.iter().enumerate() {
                let both = self.and(x, y);
                if (i + 1 == a.len()) != (j + 1 == b.len()) {
                    columns.subtract_bit(self, i + j, both);
                } else {
                    columns.add_bit(i + j, both);
                }
            }
        }
    }

    /// Adds `a * b`, both unsigned, to columns of this width: by products of two bits, or finished by Karatsuba.
    pub(crate) fn add_product(&mut self, columns: &mut Columns, a: &[Bit], b: &[Bit], width: usize) {
        if a.len().min(b.len()) > KARATSUBA_FROM && a.len() + b.len() <= width {
            let product = self.multiply(a, b);
            columns.add(0, &product);
        } else {
            self.add_products_of_bits(columns, a, b, width);
        }
    }

    fn add_products_of_bits(&mut self, columns: &mut Columns, a: &[Bit], b: &[Bit], width: usize) {
        for (i, &x) in a.iter().enumerate() {
            for (j, &y) in b.iter().enumerate().take(width.saturating_sub(i)) {
                let both = self.and(x, y);
                columns.add_bit(i + j, both);
            }
        }
    }

    /// `a * b` modulo 2^width by all products of two bits.
    fn schoolbook(&mut self, a: &[Bit], b: &[Bit], width: usize) -> Vec<Bit> {
        let mut columns = Columns::new(width);
        self.add_products_of_bits(&mut columns, a, b, width);
        columns.sum(self)
    }

    /// The sum of a number's halves, the low one at least as long, a bit longer.
    fn sum_of_halves(&mut self, low: &[Bit], high: &[Bit]) -> Vec<Bit> {
        let mut high = high.to_vec();
        high.resize(low.len(), Bit::ZERO);
        self.add_wide(low, &high)
    }

    /// `low + (middle - low - high) << half + high << 2 half`.
    ///
    /// Low is l0 + l1 2^half and high h0 + h1 2^half: l1 - h0, which stands in the sum twice, is made once, an adder
    /// less (the refinement of Bernstein 2009, "Batch binary Edwards", section 2).
    fn join(&mut self, low: &[Bit], middle: &[Bit], high: &[Bit], half: usize, width: usize) -> Vec<Bit> {
        let (low0, low1) = low.split_at(half);
        let (high0, high1) = high.split_at(half.min(high.len()));
        // l1 - h0, signed, of half + 1 bits.
        let (mut above, mut below) = (low1.to_vec(), high0.to_vec());
        above.resize(half + 1, Bit::ZERO);
        below.resize(half + 1, Bit::ZERO);
        let difference = self.subtract(&above, &below);
        // low + high << 2 half - (low + high) << half
        //   = l0 + (l1 - h0 - l0) << half + (h0 - l1 - h1) << 2 half + h1 << 3 half.
        let mut columns = Columns::new(width);
        columns.add(0, low0);
        columns.add_signed(self, half, &difference);
        columns.subtract(self, half, low0);
        columns.add(half, middle);
        columns.subtract_signed(self, 2 * half, &difference);
        columns.subtract(self, 2 * half, high1);
        columns.add(3 * half, high1);
        columns.sum(self)
    }
}
