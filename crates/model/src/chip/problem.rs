//! What is computed: an operation and its bounds.

use std::fmt;

use blindcore_accel::contract::Shape;

/// An operation of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Multiply-accumulates of residues.
    Contract,
    /// Butterflies of number-theoretic transforms.
    Transform,
    /// Products of 64-bit limbs in arithmetic modulo a long number.
    Bigmod,
    /// AND gates of garbled circuits.
    Garble,
}

impl Operation {
    /// All of them, as they stand in a machine's `[lanes]`.
    pub const ALL: [Self; 4] = [Self::Contract, Self::Transform, Self::Bigmod, Self::Garble];

    /// Its name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Contract => "contract",
            Self::Transform => "transform",
            Self::Bigmod => "bigmod",
            Self::Garble => "garble",
        }
    }
}

/// An index of the contraction (Shay 2023, section 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dim {
    /// Rows of the query.
    M,
    /// Columns of the database.
    N,
    /// Sub-rows of the query.
    P,
    /// Sub-columns of the database.
    Q,
    /// Summed over.
    J,
    /// Summed over, within a sub-matrix.
    K,
    /// Moduli.
    C,
    /// Coefficients.
    D,
}

impl Dim {
    /// All of them, in the order of [`Problem::bounds`].
    pub const ALL: [Self; 8] = [Self::M, Self::N, Self::P, Self::Q, Self::J, Self::K, Self::C, Self::D];
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// An operand or the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tensor {
    /// The first operand.
    A,
    /// The second.
    B,
    /// The result.
    C,
}

impl Tensor {
    /// All of them, in the order in which words are counted.
    pub const ALL: [Self; 3] = [Self::A, Self::B, Self::C];

    /// Its letter.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
        }
    }

    /// Whether it has this index.
    #[must_use]
    pub fn has(self, dim: Dim) -> bool {
        match dim {
            Dim::M | Dim::P => self != Self::B,
            Dim::N | Dim::Q => self != Self::A,
            Dim::J | Dim::K => self != Self::C,
            Dim::C | Dim::D => true,
        }
    }
}

/// An operation with its bounds: `C[m,n,p,q,c,d] += A[m,j,p,k,c,d] * B[j,n,k,q,c,d]`, or what has the same form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What lanes do at each point.
    pub operation: Operation,
    /// The bounds of M, N, P, Q, J, K, C and D, each at least 1.
    pub bounds: [u64; 8],
    /// Bits of a word of A, of B and of C.
    pub bits: [u64; 3],
    /// What a point takes of a lane, as a fraction: 1 multiply-accumulate, so many butterflies.
    pub work: (u64, u64),
}

impl Problem {
    /// A contraction of 64-bit words.
    #[must_use]
    pub fn contract(bounds: [u64; 8]) -> Self {
        Self { operation: Operation::Contract, bounds, bits: [64; 3], work: (1, 1) }
    }

    /// The first dimension of OnionPIR (section 6.1): 64 GiB are 2,048 columns, so `gib` GiB are 32 for each.
    #[must_use]
    pub fn onionpir(gib: f64) -> Self {
        Self::contract([1, (32.0 * gib).round().max(1.0) as u64, 2, 1, 256, 2, 2, 4096])
    }

    /// SealPIR (Table 3.2): a square of plaintexts of 64 KiB. Where their number is no square, there are twice as many rows as columns:
    /// the thesis does not say how they lie then.
    #[must_use]
    pub fn sealpir(gib: f64) -> Self {
        let (n, j) = halves((gib * 16_384.0).round().max(1.0) as u64);
        Self::contract([1, n, 2, 1, j, 1, 2, 4096])
    }

    /// SimplePIR (Table 3.2), the database as A: a square of words, or as near to one as powers of two come.
    #[must_use]
    pub fn simplepir(gib: f64) -> Self {
        let (m, j) = halves((gib * f64::from(1 << 27)).round().max(1.0) as u64);
        Self::contract([m, 1, 1, 1, j, 1, 1, 1])
    }

    /// FastPIR (Table 3.2) with so many plaintexts a column, of which the thesis gives no number; columns grow with the size.
    #[must_use]
    pub fn fastpir(gib: f64, rows: u64) -> Self {
        let plaintexts = (gib * 16_384.0).round().max(1.0) as u64;
        Self::contract([1, plaintexts.div_ceil(rows.max(1)), 2, 1, rows.max(1), 1, 2, 4096])
    }

    /// Transforms of `polynomials` times `primes` of `coefficients`, a power of two: log2 / 2 butterflies a coefficient. B are the
    /// powers of the root, which all polynomials share.
    #[must_use]
    pub fn transform(polynomials: u64, primes: u64, coefficients: u64) -> Self {
        let layers = u64::from(coefficients.max(1).ilog2());
        Self {
            operation: Operation::Transform,
            bounds: [polynomials, 1, 1, 1, 1, 1, primes, coefficients],
            work: (layers, 2),
            ..Self::contract([1; 8])
        }
    }

    /// Montgomery products modulo a number of `bits`: 2 L^2 + L products of limbs, L of 64 bits (each operand's, and the reduction's).
    #[must_use]
    pub fn bigmod(products: u64, bits: u64) -> Self {
        let limbs = bits.div_ceil(64);
        Self {
            operation: Operation::Bigmod,
            bounds: [1, 1, 1, 1, 1, 1, 1, products],
            bits: [bits; 3],
            work: (2 * limbs * limbs + limbs, 1),
        }
    }

    /// AND gates with labels of `label` bits: two labels in, of which one counts as B; `rows` ciphertexts of a table out.
    #[must_use]
    pub fn garble(ands: u64, label: u64, rows: u64) -> Self {
        Self {
            operation: Operation::Garble,
            bounds: [1, 1, 1, 1, 1, 1, 1, ands],
            bits: [label, label, label * rows],
            work: (1, 1),
        }
    }

    /// The bound of an index.
    #[must_use]
    pub fn bound(&self, dim: Dim) -> u64 {
        self.bounds[dim as usize]
    }

    /// Bits of the widest of its words.
    #[must_use]
    pub fn widest(&self) -> u64 {
        self.bits.into_iter().max().unwrap_or(0)
    }

    /// How often words of A, B and C pass from a level to the memories below, in halves, where each of those has room for `room` words of
    /// A; none: for all there are. Once, but for transforms: memories that hold 2^k words do k layers of one at a time, and a lane,
    /// which holds two, a layer, with a root for each two words. Source: Aggarwal and Vitter 1988, section 5.
    #[must_use]
    pub fn halves_passed(&self, room: Option<u64>) -> [u64; 3] {
        let (layers, words) = (self.work.0, self.bound(Dim::D));
        match room {
            Some(room) if self.operation == Operation::Transform && room < words => {
                let passes = layers.div_ceil(u64::from(room.max(2).ilog2())).max(1);
                [2 * passes, if room <= 2 { layers } else { 2 }, 2 * passes]
            }
            _ => [2; 3],
        }
    }

    /// Points of the whole nest: multiply-accumulates of a contraction.
    #[must_use]
    pub fn points(&self) -> u128 {
        self.bounds.iter().map(|b| u128::from(*b)).product()
    }

    /// Words of a tensor.
    #[must_use]
    pub fn words(&self, tensor: Tensor) -> u128 {
        Dim::ALL.into_iter().filter(|d| tensor.has(*d)).map(|d| u128::from(self.bound(d))).product()
    }
}

/// A shape of the engine, as it is: words of a database keep their width.
impl From<&Shape> for Problem {
    fn from(shape: &Shape) -> Self {
        let bits = |word: blindcore_accel::Word| word.bytes() as u64 * 8;
        let bounds =
            [shape.m, shape.n, shape.p, shape.q, shape.j, shape.k, shape.c(), shape.d].map(|b| b as u64);
        let query = bits(shape.query_word());
        Self { bits: [query, bits(shape.database), query], ..Self::contract(bounds) }
    }
}

/// Two factors of a power of two, the second the larger where they differ.
fn halves(n: u64) -> (u64, u64) {
    let low = 1u64 << (n.ilog2() / 2);
    (low, n / low)
}
