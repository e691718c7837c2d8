//! What is computed: convolutions and matrix products, and where their operands lie.

use serde::Serialize;

use super::error::{Error, within};
use super::limits::MAX_ADDRESSED;

/// Bits of a weight, at most; chips carry 2, 4 and 8.
const MAX_WEIGHT_BITS: u64 = 63;

/// A two-dimensional convolution (a cross-correlation, as in every neural network).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Convolution {
    /// C: input channels.
    pub channels: usize,
    /// H: rows of the input.
    pub rows: usize,
    /// W: columns of the input.
    pub columns: usize,
    /// O: output channels.
    pub outputs: usize,
    /// KH, KW: rows and columns of the kernel.
    pub kernel: (usize, usize),
    /// Rows and columns from one output to the next.
    pub stride: (usize, usize),
    /// Rows of zeros above and below, columns of zeros left and right.
    pub padding: (usize, usize),
}

impl Convolution {
    /// Inputs C x H x W under a kernel of O x C x KH x KW, given without its C; stride 1, no padding.
    #[must_use]
    pub fn new([channels, rows, columns]: [usize; 3], [outputs, height, width]: [usize; 3]) -> Self {
        let kernel = (height, width);
        Self { channels, rows, columns, outputs, kernel, stride: (1, 1), padding: (0, 0) }
    }

    /// The same with a stride.
    #[must_use]
    pub fn strided(self, rows: usize, columns: usize) -> Self {
        Self { stride: (rows, columns), ..self }
    }

    /// The same with padding.
    #[must_use]
    pub fn padded(self, rows: usize, columns: usize) -> Self {
        Self { padding: (rows, columns), ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Convolution(Convolution),
    Matrix,
}

/// `out[y, x, m] = product over k of input[y, x, k] ^ weight[m, k]`, over a grid of output positions (y, x) and
/// output channels m; made by [`Task::convolution`] and [`Task::matrix`] alone.
///
/// | | positions | terms K | inputs | weights | outputs |
/// |---|---|---|---|---|---|
/// | convolution | OH x OW | C x KH x KW | C x H x W | O x C x KH x KW | O x OH x OW |
/// | matrix | P x 1 | K | P x K | K x M | P x M |
///
/// All in row-major order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Task {
    kind: Kind,
    /// Rows and columns of the grid of output positions.
    grid: (usize, usize),
    terms: usize,
    channels: usize,
    inputs: usize,
    weight_bits: u32,
}

impl Task {
    /// A convolution with weights of `weight_bits` bits, two's complement.
    ///
    /// # Errors
    /// A size or a stride is zero, the kernel is larger than the padded input, `weight_bits` is not in 2..=63, or
    /// inputs, weights or outputs are more than [`MAX_ADDRESSED`].
    pub fn convolution(shape: Convolution, weight_bits: u32) -> Result<Self, Error> {
        let Convolution { channels, rows, columns, outputs, kernel, stride, padding } = shape;
        let max = MAX_ADDRESSED;
        for (what, size) in [
            ("the number of input channels", channels),
            ("the number of input rows", rows),
            ("the number of input columns", columns),
            ("the number of output channels", outputs),
            ("the number of kernel rows", kernel.0),
            ("the number of kernel columns", kernel.1),
            ("the stride over rows", stride.0),
            ("the stride over columns", stride.1),
        ] {
            within(what, size, 1, max, "give a shape whose sizes are all in range")?;
        }
        within("the padding of rows", padding.0, 0, max / 2, "pad less")?;
        within("the padding of columns", padding.1, 0, max / 2, "pad less")?;
        let steps = |side, size: usize, kernel: usize, stride: usize, padding: usize| {
            let padded = size + 2 * padding; // at most 2 * MAX_ADDRESSED
            match padded.checked_sub(kernel) {
                Some(room) => Ok(room / stride + 1),
                None => Err(Error::Kernel { side, kernel, padded }),
            }
        };
        let grid = (
            steps("rows", rows, kernel.0, stride.0, padding.0)?,
            steps("columns", columns, kernel.1, stride.1, padding.1)?,
        );
        let terms = addressed("weights of an output", &[channels, kernel.0, kernel.1])?;
        let inputs = addressed("inputs", &[channels, rows, columns])?;
        Self::checked(Kind::Convolution(shape), grid, terms, outputs, inputs, weight_bits)
    }

    /// A product of P x K inputs and K x M weights of `weight_bits` bits, two's complement; with P = 1 a
    /// vector's.
    ///
    /// # Errors
    /// As [`Task::convolution`].
    pub fn matrix(positions: usize, terms: usize, outputs: usize, weight_bits: u32) -> Result<Self, Error> {
        for (what, size) in [
            ("the number of rows of inputs", positions),
            ("the number of terms", terms),
            ("the number of columns of weights", outputs),
        ] {
            within(what, size, 1, MAX_ADDRESSED, "give a shape whose sizes are all in range")?;
        }
        let inputs = addressed("inputs", &[positions, terms])?;
        Self::checked(Kind::Matrix, (positions, 1), terms, outputs, inputs, weight_bits)
    }

    fn checked(
        kind: Kind,
        grid: (usize, usize),
        terms: usize,
        channels: usize,
        inputs: usize,
        weight_bits: u32,
    ) -> Result<Self, Error> {
        within("the bits of a weight", weight_bits as usize, 2, MAX_WEIGHT_BITS, "use another width")?;
        addressed("weights", &[channels, terms])?;
        addressed("outputs", &[grid.0, grid.1, channels])?;
        Ok(Self { kind, grid, terms, channels, inputs, weight_bits })
    }

    /// Rows and columns of the grid of output positions: OH and OW, or P and 1.
    #[must_use]
    pub(crate) fn grid(&self) -> (usize, usize) {
        self.grid
    }

    /// K: terms of an output, absent ones included.
    #[must_use]
    pub fn terms(&self) -> usize {
        self.terms
    }

    /// M: output channels.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Inputs in all.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Weights in all: M x K.
    #[must_use]
    pub fn weights(&self) -> usize {
        self.channels * self.terms
    }

    /// Outputs in all.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.grid.0 * self.grid.1 * self.channels
    }

    /// Bits of a weight, its sign included.
    #[must_use]
    pub fn weight_bits(&self) -> u32 {
        self.weight_bits
    }

    /// The input that term `term` of the position at `row` and `column` weighs; none where that is padding.
    #[must_use]
    pub fn input_at(&self, (row, column): (usize, usize), term: usize) -> Option<u32> {
        match self.kind {
            Kind::Matrix => Some((row * self.terms + term) as u32),
            Kind::Convolution(Convolution { rows, columns, kernel, stride, padding, .. }) => {
                let (rest, kernel_column) = (term / kernel.1, term % kernel.1);
                let (channel, kernel_row) = (rest / kernel.0, rest % kernel.0);
                let y = (row * stride.0 + kernel_row).checked_sub(padding.0).filter(|y| *y < rows)?;
                let x =
                    (column * stride.1 + kernel_column).checked_sub(padding.1).filter(|x| *x < columns)?;
                Some(((channel * rows + y) * columns + x) as u32)
            }
        }
    }

    /// Where the weight of a channel's term lies.
    #[must_use]
    pub fn weight_at(&self, channel: usize, term: usize) -> usize {
        match self.kind {
            Kind::Matrix => term * self.channels + channel,
            Kind::Convolution(_) => channel * self.terms + term,
        }
    }

    /// Where a channel's output at a position goes.
    #[must_use]
    pub fn output_at(&self, (row, column): (usize, usize), channel: usize) -> usize {
        match self.kind {
            Kind::Matrix => row * self.channels + channel,
            Kind::Convolution(_) => (channel * self.grid.0 + row) * self.grid.1 + column,
        }
    }

    /// The position and the channel of an output: [`Task::output_at`] undone.
    #[must_use]
    pub fn place_of(&self, output: usize) -> ((usize, usize), usize) {
        match self.kind {
            Kind::Matrix => ((output / self.channels, 0), output % self.channels),
            Kind::Convolution(_) => {
                let (rest, column) = (output / self.grid.1, output % self.grid.1);
                ((rest % self.grid.0, column), rest / self.grid.0)
            }
        }
    }

    /// That there are as many weights as the task has, each within its bits.
    ///
    /// # Errors
    /// There are not, or one is out of range: the first is named.
    pub fn check_weights(&self, weights: &[i64]) -> Result<(), Error> {
        if weights.len() != self.weights() {
            return Err(Error::Length { what: "weights", got: weights.len(), want: self.weights() });
        }
        let bits = self.weight_bits;
        let (min, max) = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1);
        match weights.iter().position(|w| !(min..=max).contains(w)) {
            Some(position) => Err(Error::Weight { position, got: weights[position], bits, min, max }),
            None => Ok(()),
        }
    }
}

fn addressed(what: &'static str, sizes: &[usize]) -> Result<usize, Error> {
    sizes
        .iter()
        .try_fold(1usize, |product, size| product.checked_mul(*size))
        .filter(|product| *product as u64 <= MAX_ADDRESSED)
        .ok_or(Error::Addressed { what })
}
