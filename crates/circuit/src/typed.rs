//! A front end for people who write no gates: numbers of a type, whose operators build the circuit.
//!
//! A value stands for what nobody knows yet: it can be computed with, chosen by ([`Bool::select`]) and put out, but not
//! branched on. Loops and functions of Rust run while the circuit is built, so they may depend on sizes, not on
//! values.
//!
//! Two millionaires and who of them is richer, by how much:
//!
//! ```
//! use blindcore_circuit::gadgets::{to_bits, to_number};
//! use blindcore_circuit::typed::{Uint, circuit};
//!
//! let netlist = circuit(|c| {
//!     let [a, b]: [Uint<32>; 2] = ["a", "b"].map(|name| c.input(name));
//!     let a_is_richer = a.gt(b);
//!     c.output("a is richer", a_is_richer);
//!     c.output("by", a_is_richer.select(a - b, b - a));
//! })?;
//! let out = netlist.evaluate(&[to_bits(5_000_000, 32), to_bits(7_500_000, 32)])?;
//! assert_eq!((out[0][0], to_number(&out[1])), (false, 2_500_000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A second-price auction: the highest bid wins and pays the second highest.
//!
//! ```
//! use blindcore_circuit::gadgets::{to_bits, to_number};
//! use blindcore_circuit::typed::{Uint, circuit, sort};
//!
//! let netlist = circuit(|c| {
//!     let bids: [Uint<16>; 3] = [c.input("anna"), c.input("ben"), c.input("cleo")];
//!     let [_, price, highest] = sort(bids);
//!     c.output("winners", bids.map(|bid| bid.eq(highest)));
//!     c.output("price", price);
//! })?;
//! let out = netlist.evaluate(&[to_bits(700, 16), to_bits(950, 16), to_bits(800, 16)])?;
//! assert_eq!(out[0], [false, true, false]);
//! assert_eq!(to_number(&out[1]), 800);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::builder::{Bit, Builder};
use crate::netlist::{Netlist, NetlistError};
use std::cell::{Cell, RefCell};
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

/// Why there is no circuit of a description.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TypedError {
    /// An input after the first operation.
    #[error("input {0:?} comes after a computation; declare all inputs first")]
    LateInput(String),
    /// A constant that its type can't hold.
    #[error("the constant {value} does not fit {kind}; take a wider type")]
    Constant {
        /// The value.
        value: String,
        /// The type.
        kind: String,
    },
    /// A netlist that is too large.
    #[error(transparent)]
    Netlist(#[from] NetlistError),
}

/// A circuit under construction, which values refer to.
pub struct TypedCircuit {
    builder: RefCell<Builder>,
    computed: Cell<bool>,
    error: RefCell<Option<TypedError>>,
}

/// The circuit that `describe` builds.
///
/// # Errors
/// The first of: an input after a computation, a constant beyond its type, a netlist that is too large.
pub fn circuit(describe: impl FnOnce(&TypedCircuit)) -> Result<Netlist, TypedError> {
    let circuit =
        TypedCircuit { builder: RefCell::default(), computed: Cell::new(false), error: RefCell::new(None) };
    describe(&circuit);
    match circuit.error.into_inner() {
        Some(error) => Err(error),
        None => Ok(circuit.builder.into_inner().finish()?),
    }
}

/// What goes in, comes out and can be chosen: [`Bool`], [`Uint`], [`Int`], [`Fixed`] and arrays of them.
pub trait Value<'c>: Sized {
    /// How many bits it has.
    const WIDTH: usize;

    /// The value of [`WIDTH`](Self::WIDTH) bits, least significant first.
    fn from_bits(circuit: &'c TypedCircuit, bits: &[Bit]) -> Self;

    /// Its bits, least significant first; an array's first element first.
    fn bits(&self) -> Vec<Bit>;
}

impl TypedCircuit {
    /// A new input.
    pub fn input<'c, T: Value<'c>>(&'c self, name: &str) -> T {
        if self.computed.get() {
            self.fail(TypedError::LateInput(name.to_owned()));
            return T::from_bits(self, &vec![Bit::ZERO; T::WIDTH]);
        }
        let bits = self.builder.borrow_mut().input(name, T::WIDTH);
        T::from_bits(self, &bits)
    }

    /// Makes this value an output.
    pub fn output<'c, T: Value<'c>>(&'c self, name: &str, value: T) {
        self.builder.borrow_mut().output(name, &value.bits());
    }

    /// A constant bit.
    #[must_use]
    pub fn bool(&self, value: bool) -> Bool<'_> {
        Bool { circuit: self, bit: if value { Bit::ONE } else { Bit::ZERO } }
    }

    /// A constant.
    #[must_use]
    pub fn uint<const N: usize>(&self, value: u128) -> Uint<'_, N> {
        if N < 128 && value >> N != 0 {
            self.fail(TypedError::Constant { value: value.to_string(), kind: format!("Uint<{N}>") });
        }
        Uint::from_bits(self, &self.constant(value, false, N))
    }

    /// A constant.
    #[must_use]
    pub fn int<const N: usize>(&self, value: i128) -> Int<'_, N> {
        // What is above the sign has to equal it.
        if N == 0 || (N < 128 && value >> (N - 1) != 0 && value >> (N - 1) != -1) {
            self.fail(TypedError::Constant { value: value.to_string(), kind: format!("Int<{N}>") });
        }
        Int::from_bits(self, &self.constant(value as u128, value < 0, N))
    }

    /// A constant, rounded to the nearest that there is.
    #[must_use]
    pub fn fixed<const N: usize, const F: usize>(&self, value: f64) -> Fixed<'_, N, F> {
        let scaled = (value * 2f64.powi(F as i32)).round();
        // Nothing beyond 128 bits, no infinity, no NaN: so that the conversion is exact.
        let limit = 2f64.powi(N.min(128) as i32 - 1);
        if !(scaled >= -limit && scaled < limit) {
            self.fail(TypedError::Constant { value: value.to_string(), kind: format!("Fixed<{N}, {F}>") });
        }
        let whole = scaled as i128;
        Fixed::from_bits(self, &self.constant(whole as u128, whole < 0, N))
    }

    /// The value at this place, zero where there is none.
    ///
    /// # Panics
    /// No values, or one of another circuit.
    pub fn index<'c, T: Value<'c>, const N: usize>(&'c self, values: &[T], index: Uint<'c, N>) -> T {
        let words: Vec<Vec<Bit>> = values.iter().map(Value::bits).collect();
        self.same(index.circuit);
        let chosen = self.build(|c| c.index(&words, &index.bits));
        T::from_bits(self, &chosen)
    }

    fn constant(&self, value: u128, negative: bool, width: usize) -> Vec<Bit> {
        let sign = if negative { Bit::ONE } else { Bit::ZERO };
        let bit = |i| if i < 128 { Some(value >> i & 1 == 1) } else { None };
        (0..width).map(|i| bit(i).map_or(sign, |one| if one { Bit::ONE } else { Bit::ZERO })).collect()
    }

    /// Keeps the first error.
    fn fail(&self, error: TypedError) {
        self.error.borrow_mut().get_or_insert(error);
    }

    fn build<T>(&self, gates: impl FnOnce(&mut Builder) -> T) -> T {
        self.computed.set(true);
        gates(&mut self.builder.borrow_mut())
    }

    fn same(&self, other: &TypedCircuit) {
        assert!(std::ptr::eq(self, other), "values of two circuits can't be computed with together");
    }
}

/// A truth value.
#[derive(Clone, Copy)]
pub struct Bool<'c> {
    circuit: &'c TypedCircuit,
    bit: Bit,
}

/// An unsigned number of N bits; it wraps around as a machine's does.
#[derive(Clone, Copy)]
pub struct Uint<'c, const N: usize> {
    circuit: &'c TypedCircuit,
    bits: [Bit; N],
}

/// A signed number of N bits in two's complement; it wraps around as a machine's does.
#[derive(Clone, Copy)]
pub struct Int<'c, const N: usize> {
    circuit: &'c TypedCircuit,
    bits: [Bit; N],
}

/// A signed fixed-point number of N bits, F of them after the point: a multiple of 2^-F from -2^(N - F - 1) to below
/// 2^(N - F - 1). Sums, differences, products and quotients beyond that wrap around; products are rounded to the
/// nearest, half up, quotients towards zero.
#[derive(Clone, Copy)]
pub struct Fixed<'c, const N: usize, const F: usize> {
    circuit: &'c TypedCircuit,
    bits: [Bit; N],
}

impl<'c> Value<'c> for Bool<'c> {
    const WIDTH: usize = 1;

    fn from_bits(circuit: &'c TypedCircuit, bits: &[Bit]) -> Self {
        Self { circuit, bit: bits[0] }
    }

    fn bits(&self) -> Vec<Bit> {
        vec![self.bit]
    }
}

impl<'c, T: Value<'c>, const K: usize> Value<'c> for [T; K] {
    const WIDTH: usize = K * T::WIDTH;

    fn from_bits(circuit: &'c TypedCircuit, bits: &[Bit]) -> Self {
        std::array::from_fn(|i| T::from_bits(circuit, &bits[i * T::WIDTH..][..T::WIDTH]))
    }

    fn bits(&self) -> Vec<Bit> {
        self.iter().flat_map(Value::bits).collect()
    }
}

impl<'c> Bool<'c> {
    /// `then` where it is true, else `otherwise`.
    #[must_use]
    pub fn select<T: Value<'c>>(self, then: T, otherwise: T) -> T {
        let (then, otherwise) = (then.bits(), otherwise.bits());
        let chosen = self.circuit.build(|c| c.mux_word(self.bit, &then, &otherwise));
        T::from_bits(self.circuit, &chosen)
    }

    /// 1 where it is true, else 0.
    #[must_use]
    pub fn to_uint<const N: usize>(self) -> Uint<'c, N> {
        Uint::from_bits(self.circuit, &resized(&[self.bit], N, Bit::ZERO))
    }

    fn with(self, other: Self, gate: impl FnOnce(&mut Builder, Bit, Bit) -> Bit) -> Self {
        self.circuit.same(other.circuit);
        Self { circuit: self.circuit, bit: self.circuit.build(|c| gate(c, self.bit, other.bit)) }
    }

    /// Whether both are the same.
    #[must_use]
    pub fn eq(self, other: Self) -> Self {
        !(self ^ other)
    }
}

impl Not for Bool<'_> {
    type Output = Self;

    fn not(self) -> Self {
        Self { circuit: self.circuit, bit: self.circuit.build(|c| c.not(self.bit)) }
    }
}

impl BitAnd for Bool<'_> {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        self.with(other, Builder::and)
    }
}

impl BitOr for Bool<'_> {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.with(other, Builder::or)
    }
}

impl BitXor for Bool<'_> {
    type Output = Self;

    fn bitxor(self, other: Self) -> Self {
        self.with(other, Builder::xor)
    }
}

fn resized(bits: &[Bit], width: usize, fill: Bit) -> Vec<Bit> {
    let mut bits = bits.to_vec();
    bits.resize(width, fill);
    bits
}

/// What all numbers have: their bits, comparisons by a gadget of their own, the lesser and the greater.
macro_rules! number {
    ($name:ident, [$($generic:tt)*], [$($argument:tt)*], $less:ident, $min:ident, $max:ident) => {
        impl<'c, $($generic)*> Value<'c> for $name<'c, $($argument)*> {
            const WIDTH: usize = N;

            fn from_bits(circuit: &'c TypedCircuit, bits: &[Bit]) -> Self {
                Self { circuit, bits: std::array::from_fn(|i| bits[i]) }
            }

            fn bits(&self) -> Vec<Bit> {
                self.bits.to_vec()
            }
        }

        impl<'c, $($generic)*> $name<'c, $($argument)*> {
            fn with(self, other: Self, gadget: impl FnOnce(&mut Builder, &[Bit], &[Bit]) -> Vec<Bit>) -> Self {
                self.circuit.same(other.circuit);
                let bits = self.circuit.build(|c| gadget(c, &self.bits, &other.bits));
                Self::from_bits(self.circuit, &bits)
            }

            fn test(self, other: Self, gadget: impl FnOnce(&mut Builder, &[Bit], &[Bit]) -> Bit) -> Bool<'c> {
                self.circuit.same(other.circuit);
                let bit = self.circuit.build(|c| gadget(c, &self.bits, &other.bits));
                Bool { circuit: self.circuit, bit }
            }

            /// `self == other`.
            #[must_use]
            pub fn eq(self, other: Self) -> Bool<'c> {
                self.test(other, Builder::equal)
            }

            /// `self != other`.
            #[must_use]
            pub fn ne(self, other: Self) -> Bool<'c> {
                !self.eq(other)
            }

            /// `self < other`.
            #[must_use]
            pub fn lt(self, other: Self) -> Bool<'c> {
                self.test(other, Builder::$less)
            }

            /// `self <= other`.
            #[must_use]
            pub fn le(self, other: Self) -> Bool<'c> {
                !other.lt(self)
            }

            /// `self > other`.
            #[must_use]
            pub fn gt(self, other: Self) -> Bool<'c> {
                other.lt(self)
            }

            /// `self >= other`.
            #[must_use]
            pub fn ge(self, other: Self) -> Bool<'c> {
                !self.lt(other)
            }

            /// The lesser.
            #[must_use]
            pub fn min(self, other: Self) -> Self {
                self.with(other, Builder::$min)
            }

            /// The greater.
            #[must_use]
            pub fn max(self, other: Self) -> Self {
                self.with(other, Builder::$max)
            }

            /// Its bit of this weight.
            ///
            /// # Panics
            /// There is none.
            #[must_use]
            pub fn bit(self, place: usize) -> Bool<'c> {
                assert!(place < N, "bit {place} of a number of {N}");
                Bool { circuit: self.circuit, bit: self.bits[place] }
            }
        }
    };
}

number!(Uint, [const N: usize], [N], less, min, max);
number!(Int, [const N: usize], [N], less_signed, min_signed, max_signed);
number!(Fixed, [const N: usize, const F: usize], [N, F], less_signed, min_signed, max_signed);

/// An operator by a gadget.
macro_rules! operator {
    ($operator:ident $method:ident [$($generic:tt)*] $type:ty: $gadget:expr) => {
        impl<'c, $($generic)*> $operator for $type {
            type Output = Self;

            fn $method(self, other: Self) -> Self {
                self.with(other, $gadget)
            }
        }
    };
}

operator!(Add add [const N: usize] Uint<'c, N>: Builder::add);
operator!(Sub sub [const N: usize] Uint<'c, N>: Builder::subtract);
operator!(Mul mul [const N: usize] Uint<'c, N>: Builder::multiply_low);
operator!(Div div [const N: usize] Uint<'c, N>: |c, a, b| c.divide(a, b).0);
operator!(Rem rem [const N: usize] Uint<'c, N>: |c, a, b| c.divide(a, b).1);
operator!(BitAnd bitand [const N: usize] Uint<'c, N>: Builder::and_word);
operator!(BitOr bitor [const N: usize] Uint<'c, N>: Builder::or_word);
operator!(BitXor bitxor [const N: usize] Uint<'c, N>: Builder::xor_word);
operator!(Add add [const N: usize] Int<'c, N>: Builder::add);
operator!(Sub sub [const N: usize] Int<'c, N>: Builder::subtract);
operator!(Mul mul [const N: usize] Int<'c, N>: Builder::multiply_low);
operator!(Div div [const N: usize] Int<'c, N>: |c, a, b| c.divide_signed(a, b).0);
operator!(Rem rem [const N: usize] Int<'c, N>: |c, a, b| c.divide_signed(a, b).1);
operator!(BitAnd bitand [const N: usize] Int<'c, N>: Builder::and_word);
operator!(BitOr bitor [const N: usize] Int<'c, N>: Builder::or_word);
operator!(BitXor bitxor [const N: usize] Int<'c, N>: Builder::xor_word);
operator!(Add add [const N: usize, const F: usize] Fixed<'c, N, F>: Builder::add);
operator!(Sub sub [const N: usize, const F: usize] Fixed<'c, N, F>: Builder::subtract);
operator!(Mul mul [const N: usize, const F: usize] Fixed<'c, N, F>: |c, a, b| c.fixed_multiply(a, b, F));
operator!(Div div [const N: usize, const F: usize] Fixed<'c, N, F>: |c, a, b| c.fixed_divide(a, b, F));

/// Operators with a constant, `!` and shifts, of [`Uint`] and [`Int`].
macro_rules! integer {
    ($name:ident, $native:ty, $constant:ident, $fill:expr) => {
        integer!(@constant $name, $native, $constant:
            Add add; Sub sub; Mul mul; Div div; Rem rem; BitAnd bitand; BitOr bitor; BitXor bitxor;
        );

        impl<const N: usize> Not for $name<'_, N> {
            type Output = Self;

            fn not(self) -> Self {
                let bits = self.circuit.build(|c| c.not_word(&self.bits));
                Self::from_bits(self.circuit, &bits)
            }
        }

        impl<const N: usize> Shl<usize> for $name<'_, N> {
            type Output = Self;

            fn shl(self, by: usize) -> Self {
                let bits = self.circuit.build(|c| c.shift_left(&self.bits, by));
                Self::from_bits(self.circuit, &bits)
            }
        }

        impl<const N: usize> Shr<usize> for $name<'_, N> {
            type Output = Self;

            fn shr(self, by: usize) -> Self {
                let bits = self.circuit.build(|c| c.shift_right(&self.bits, by, $fill(&self.bits)));
                Self::from_bits(self.circuit, &bits)
            }
        }

        impl<'c, const N: usize, const M: usize> Shl<Uint<'c, M>> for $name<'c, N> {
            type Output = Self;

            fn shl(self, by: Uint<'c, M>) -> Self {
                self.circuit.same(by.circuit);
                let bits = self.circuit.build(|c| c.shift_left_by(&self.bits, &by.bits));
                Self::from_bits(self.circuit, &bits)
            }
        }

        impl<'c, const N: usize, const M: usize> Shr<Uint<'c, M>> for $name<'c, N> {
            type Output = Self;

            fn shr(self, by: Uint<'c, M>) -> Self {
                self.circuit.same(by.circuit);
                let bits = self.circuit.build(|c| c.shift_right_by(&self.bits, &by.bits, $fill(&self.bits)));
                Self::from_bits(self.circuit, &bits)
            }
        }

        impl<'c, const N: usize> $name<'c, N> {
            /// The same number in M bits, or its lowest M.
            #[must_use]
            pub fn resize<const M: usize>(self) -> $name<'c, M> {
                $name::from_bits(self.circuit, &resized(&self.bits, M, $fill(&self.bits)))
            }
        }
    };
    (@constant $name:ident, $native:ty, $constant:ident: $($operator:ident $method:ident;)*) => {$(
        impl<'c, const N: usize> $operator<$native> for $name<'c, N> {
            type Output = Self;

            fn $method(self, other: $native) -> Self {
                <Self as $operator>::$method(self, self.circuit.$constant(other))
            }
        }
    )*};
}

integer!(Uint, u128, uint, |_: &[Bit]| Bit::ZERO);
integer!(Int, i128, int, |bits: &[Bit]| bits.last().copied().unwrap_or(Bit::ZERO));

impl<'c, const N: usize> Uint<'c, N> {
    /// The whole product, in M bits (2 N hold it).
    #[must_use]
    pub fn multiply_wide<const M: usize>(self, other: Self) -> Uint<'c, M> {
        self.circuit.same(other.circuit);
        let bits = self.circuit.build(|c| c.multiply(&self.bits, &other.bits));
        Uint::from_bits(self.circuit, &resized(&bits, M, Bit::ZERO))
    }

    /// How far apart both are.
    #[must_use]
    pub fn abs_diff(self, other: Self) -> Self {
        self.with(other, Builder::absolute_difference)
    }

    /// How many bits are set.
    #[must_use]
    pub fn count_ones(self) -> Self {
        let bits = self.circuit.build(|c| c.popcount(&self.bits));
        Self::from_bits(self.circuit, &resized(&bits, N, Bit::ZERO))
    }

    /// How many zeros stand above the highest one.
    #[must_use]
    pub fn leading_zeros(self) -> Self {
        let bits = self.circuit.build(|c| c.leading_zeros(&self.bits));
        Self::from_bits(self.circuit, &resized(&bits, N, Bit::ZERO))
    }

    /// The signed number of the same bits.
    #[must_use]
    pub fn to_int(self) -> Int<'c, N> {
        Int { circuit: self.circuit, bits: self.bits }
    }
}

impl<'c, const N: usize> Int<'c, N> {
    /// The whole product, in M bits (2 N hold it).
    #[must_use]
    pub fn multiply_wide<const M: usize>(self, other: Self) -> Int<'c, M> {
        self.circuit.same(other.circuit);
        let bits = self.circuit.build(|c| c.multiply_signed(&self.bits, &other.bits));
        let sign = bits.last().copied().unwrap_or(Bit::ZERO);
        Int::from_bits(self.circuit, &resized(&bits, M, sign))
    }

    /// The absolute value.
    #[must_use]
    pub fn abs(self) -> Uint<'c, N> {
        let bits = self.circuit.build(|c| c.absolute(&self.bits));
        Uint::from_bits(self.circuit, &bits)
    }

    /// The unsigned number of the same bits.
    #[must_use]
    pub fn to_uint(self) -> Uint<'c, N> {
        Uint { circuit: self.circuit, bits: self.bits }
    }

    /// The same number with F bits after the point; beyond its range it wraps around.
    #[must_use]
    pub fn to_fixed<const M: usize, const F: usize>(self) -> Fixed<'c, M, F> {
        let sign = self.bits.last().copied().unwrap_or(Bit::ZERO);
        let bits = [vec![Bit::ZERO; F], resized(&self.bits, N.max(M), sign)].concat();
        Fixed::from_bits(self.circuit, &bits[..M])
    }
}

impl<'c, const N: usize, const F: usize> Fixed<'c, N, F> {
    /// The absolute value.
    #[must_use]
    pub fn abs(self) -> Self {
        let bits = self.circuit.build(|c| c.absolute(&self.bits));
        Self::from_bits(self.circuit, &bits)
    }

    /// The greatest integer that is not above, in M bits.
    #[must_use]
    pub fn floor<const M: usize>(self) -> Int<'c, M> {
        let sign = self.bits.last().copied().unwrap_or(Bit::ZERO);
        Int::from_bits(self.circuit, &resized(&self.bits[F.min(N)..], M, sign))
    }
}

impl<const N: usize> Neg for Int<'_, N> {
    type Output = Self;

    fn neg(self) -> Self {
        let bits = self.circuit.build(|c| c.negate(&self.bits));
        Self::from_bits(self.circuit, &bits)
    }
}

impl<const N: usize, const F: usize> Neg for Fixed<'_, N, F> {
    type Output = Self;

    fn neg(self) -> Self {
        let bits = self.circuit.build(|c| c.negate(&self.bits));
        Self::from_bits(self.circuit, &bits)
    }
}

/// The numbers in ascending order.
#[must_use]
pub fn sort<'c, const N: usize, const K: usize>(values: [Uint<'c, N>; K]) -> [Uint<'c, N>; K] {
    let Some(circuit) = values.first().map(|v| v.circuit) else { return values };
    values.iter().for_each(|value| circuit.same(value.circuit));
    let words: Vec<Vec<Bit>> = values.iter().map(Value::bits).collect();
    let sorted = circuit.build(|c| c.sort(&words));
    std::array::from_fn(|i| Uint::from_bits(circuit, &sorted[i]))
}
