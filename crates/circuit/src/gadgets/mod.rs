//! Gadgets on words of bits: arithmetic, comparisons, sorting, ciphers.
//!
//! A word is `&[Bit]`, least significant bit first; negative numbers are in two's complement. Each gadget is a method
//! of [`Builder`](crate::builder::Builder) and says how many AND gates it makes for words of n bits: those cost a
//! garbler's time and traffic, XORs are nearly free. Constant bits fold, so that fewer are made where an operand is
//! known. Widths are the programmer's: a gadget panics on operands that don't fit together, whatever their values.
//!
//! ```
//! use blindcore_circuit::{builder::Builder, gadgets::{to_bits, to_number}};
//!
//! let mut c = Builder::new();
//! let (a, b) = (c.input("a", 16), c.input("b", 16));
//! let (larger, difference) = (c.max(&a, &b), c.absolute_difference(&a, &b));
//! c.output("larger", &larger);
//! c.output("difference", &difference);
//! let netlist = c.finish()?;
//! let got = netlist.evaluate(&[to_bits(1000, 16), to_bits(58_000, 16)])?;
//! assert_eq!((to_number(&got[0]), to_number(&got[1])), (58_000, 57_000));
//! # Ok::<(), blindcore_circuit::netlist::NetlistError>(())
//! ```

mod aes;
mod arithmetic;
mod fixed;
mod matrix;
mod multiply;
mod pagerank;
mod sha256;
mod sort;
mod width;
mod words;

pub(crate) use words::bits_for;

pub use pagerank::PageRank;
pub use sort::network;

/// The lowest `width` bits of `value`, least significant first; zeros beyond 128.
#[must_use]
pub fn to_bits(value: u128, width: usize) -> Vec<bool> {
    (0..width).map(|i| i < 128 && value >> i & 1 == 1).collect()
}

/// The number that these bits are, least significant first.
///
/// # Panics
/// Over 128 bits.
#[must_use]
pub fn to_number(bits: &[bool]) -> u128 {
    assert!(bits.len() <= 128, "{} bits are over the 128 of a u128", bits.len());
    bits.iter().rev().fold(0, |n, b| n << 1 | u128::from(*b))
}
