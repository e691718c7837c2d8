//! Matrix products.

use crate::builder::{Bit, Builder};
use crate::gadgets::arithmetic::Columns;

impl Builder {
    /// The dot product of two lists of words modulo 2^width, unsigned. Carries are kept apart to the end, so that k
    /// products of n bits by n cost about 2 k n^2 ANDs.
    ///
    /// # Panics
    /// Lists of different lengths.
    pub fn dot(&mut self, a: &[Vec<Bit>], b: &[Vec<Bit>], width: usize) -> Vec<Bit> {
        assert_eq!(a.len(), b.len(), "{} words by {}; a dot product takes as many of both", a.len(), b.len());
        let mut columns = Columns::new(width);
        a.iter().zip(b).for_each(|(a, b)| self.add_product(&mut columns, a, b, width));
        columns.sum(self)
    }

    /// The product of an n x k matrix and a k x m one, both row by row, each element modulo 2^width.
    ///
    /// By dot products, or, where that needs fewer ANDs, with half as many products (Winograd 1968, "A new algorithm
    /// for inner product"): of 10 x 10 matrices of 32 bits, modulo 2^32, 633,160 ANDs instead of 1.0 million.
    ///
    /// # Panics
    /// The numbers of words are not those of matrices that share `k`, or widths differ within a matrix.
    pub fn multiply_matrices(
        &mut self,
        a: &[Vec<Bit>],
        b: &[Vec<Bit>],
        shared: usize,
        width: usize,
    ) -> Vec<Vec<Bit>> {
        let k = shared;
        assert!(
            k > 0 && a.len().is_multiple_of(k) && b.len().is_multiple_of(k),
            "{} and {} words make no matrices that share a dimension of {k}",
            a.len(),
            b.len()
        );
        let (n, m) = (a.len() / k, b.len() / k);
        let (a_rows, b_columns): (Vec<_>, Vec<Vec<Vec<Bit>>>) =
            (a.chunks(k).collect(), (0..m).map(|j| (0..k).map(|i| b[i * m + j].clone()).collect()).collect());
        if !halving_wins(n, m, k, a.first().map_or(0, Vec::len), b.first().map_or(0, Vec::len), width) {
            return (0..n * m).map(|i| self.dot(a_rows[i / m], &b_columns[i % m], width)).collect();
        }
        // a0 b0 + a1 b1 = (a0 + b1) (a1 + b0) - a0 a1 - b0 b1, and the latter are shared by rows and by columns.
        let of_rows: Vec<Vec<Bit>> = a_rows.iter().map(|row| self.products_of_pairs(row, width)).collect();
        let of_columns: Vec<Vec<Bit>> =
            b_columns.iter().map(|column| self.products_of_pairs(column, width)).collect();
        let mut product = Vec::with_capacity(n * m);
        for (row, of_row) in a_rows.iter().zip(&of_rows) {
            for (column, of_column) in b_columns.iter().zip(&of_columns) {
                let mut columns = Columns::new(width);
                columns.subtract(self, 0, of_row);
                columns.subtract(self, 0, of_column);
                for (a, b) in row.chunks(2).zip(column.chunks(2)) {
                    match (a, b) {
                        ([a0, a1], [b0, b1]) => {
                            let first = self.sum_within(a0, b1, width);
                            let second = self.sum_within(a1, b0, width);
                            self.add_product(&mut columns, &first, &second, width);
                        }
                        _ => self.add_product(&mut columns, &a[0], &b[0], width),
                    }
                }
                product.push(columns.sum(self));
            }
        }
        product
    }

    /// The sum of first times second, third times fourth and so on, modulo 2^width.
    fn products_of_pairs(&mut self, words: &[Vec<Bit>], width: usize) -> Vec<Bit> {
        let mut columns = Columns::new(width);
        for pair in words.chunks_exact(2) {
            self.add_product(&mut columns, &pair[0], &pair[1], width);
        }
        columns.sum(self)
    }

    /// `a + b` with its carry, unless that lies beyond `width`.
    fn sum_within(&mut self, a: &[Bit], b: &[Bit], width: usize) -> Vec<Bit> {
        self.sum(&[a.to_vec(), b.to_vec()], width.min(a.len().max(b.len()) + 1))
    }
}

/// Whether half as many products of sums need fewer ANDs, at one AND for each product of two bits and one to add it.
fn halving_wins(n: usize, m: usize, k: usize, a: usize, b: usize, width: usize) -> bool {
    let product = |a: usize, b: usize| 2 * (0..a).map(|i| b.min(width.saturating_sub(i))).sum::<usize>();
    let sum = width.min(a.max(b) + 1);
    let plain = n * m * (k / 2) * 2 * product(a, b);
    let pairs = n * m * (k / 2) * (product(sum, sum) + 2 * sum)
        + (n * product(a, a) + m * product(b, b)) * (k / 2)
        + n * m * 2 * width;
    pairs < plain
}
