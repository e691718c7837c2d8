//! Where the values of stored polynomials lie in an operand, and how they come there.

use blindcore_accel::Layout;
use blindcore_accel::contract::Shape;
use blindcore_math::lanes;

use crate::schemes::scheme::Operand;

/// How an operand of polynomials is written: a polynomial is of a row and a sub-row, and of as many channels as it has values.
///
/// ```text
///   stripe, rows of outputs that lie together: [run of values][sub-row][row][value]
/// ```
pub(in crate::schemes) struct Lay {
    shape: Shape,
    layout: Layout,
    /// Values that lie together, and bytes from there to the next ones.
    run: usize,
    step: usize,
}

impl Lay {
    /// That of an operand in one of the layouts for any moduli.
    pub(in crate::schemes) fn of(operand: &Operand) -> Self {
        let (shape, layout) = (operand.shape.clone(), operand.layout);
        // Where the next ones begin, of those of a channel or else of the next channel.
        let run = if layout == Layout::Lanes8x4 { LANES } else { shape.d };
        let step = operand.stripe_bytes() / (shape.c() * shape.d / run);
        Self { shape, layout, run, step }
    }

    /// Rows of a stripe.
    pub(in crate::schemes) fn rows(&self) -> usize {
        self.layout.stripe_rows()
    }

    /// Bytes of a stripe.
    pub(in crate::schemes) fn stripe_bytes(&self) -> usize {
        self.layout.stripe_bytes(&self.shape)
    }

    /// Writes values of a row of a stripe and of a sub-row, those of channel `c` and the ones after it.
    pub(in crate::schemes) fn put(
        &self,
        stripe: &mut [u8],
        row: usize,
        c: usize,
        sub_row: usize,
        values: &[u64],
    ) {
        let start = self.layout.word_position(&self.shape, row, c, sub_row, 0);
        lanes::store(values, self.shape.database.bytes(), self.run, &mut stripe[start..], self.step);
    }
}

/// Values of a run of [`Layout::Lanes8x4`].
const LANES: usize = 8;

#[cfg(test)]
mod tests {
    use blindcore_accel::{Word, Words};
    use blindcore_math::Modulus;

    use super::*;
    use crate::schemes::scheme::Origin;

    #[test]
    fn values_lie_where_the_layout_says() {
        let prime = Modulus::prime((1 << 40) - 87).unwrap();
        for (word, n, d) in [(Word::U40, 8, 32), (Word::U40, 3, 32), (Word::U48, 4, 32), (Word::U64, 6, 64)] {
            let (j, k, channels) = (3, 2, 4);
            let shape = Shape { n, j, k, d, ..Shape::new(word, vec![prime; channels]) };
            let layout = Layout::for_shape(&shape);
            let operand = Operand { name: "", layout, shape: shape.clone(), origin: Origin::Preprocessed };
            let value = |at: usize| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24;
            let database = Words::from_fn(Word::U64, shape.database_len(), value);
            let (lay, mut packed) = (Lay::of(&operand), vec![0; operand.bytes()]);
            for (row, sub_row) in (0..n).flat_map(|row| (0..j * k).map(move |sub_row| (row, sub_row))) {
                // Of two channels at a time, as of two primes.
                for c in [0, channels / 2] {
                    let at = |i: usize| [sub_row / k, row, sub_row % k, 0, c + i / d, i % d];
                    let values = (0..channels / 2 * d).map(|i| database.get(shape.database_index(at(i))));
                    let stripe = &mut packed[row / lay.rows() * lay.stripe_bytes()..][..lay.stripe_bytes()];
                    lay.put(stripe, row % lay.rows(), c, sub_row, &values.collect::<Vec<_>>());
                }
            }
            assert!(packed == layout.pack(&shape, &database), "{shape}");
        }
    }
}
