//! Instructions as the chip reads them: words of 64 bits, and lines that a person reads.
//!
//! ```text
//!   63    60 59              44 43                                              0
//!  ┌────────┬──────────────────┬─────────────────────────────────────────────────┐
//!  │ opcode │ mask of elements │ operands, lowest first as they are listed below │
//!  └────────┴──────────────────┴─────────────────────────────────────────────────┘
//! ```
//!
//! | opcode | instruction | operands: bits |
//! |---|---|---|
//! | 0 | [`Operation::End`] | |
//! | 1 | [`Operation::LoadInput`] | slot 4, count 5, global 16 |
//! | 2 | [`Operation::LoadWeights`] | word 9, count 9, global 16, regions 2 |
//! | 3 | [`Operation::Store`] | slot 1, tag 32 |
//! | 4 | [`Operation::Context`] | digits 2, width 2, global 16 |
//! | 8 | [`Operation::Free`] | slots 16, regions 2 |
//! | 9 | [`Operation::Clear`] | sum 2, all 1 |
//! | 10 | [`Operation::Accumulate`] | sum 2, slot 4, count 5, weight 16, method 1, delta 4 |
//! | 11, 12 | [`Operation::Align`], [`Operation::Invert`] | sum 2 |
//! | 13 | [`Operation::Reduce`] | sum 2, slot 1, method 1, chain 1, shift 4, last 1 |
//! | 14 | [`Operation::Multiply`], [`Operation::Square`], [`Operation::Power`], [`Operation::Inverse`] | to 6, x 6, y 6, then from bit 18 times 13, or word 9, bits 13, steady 1; kind in 43 to 41 |
//! | 15 | [`Operation::Nop`] | |
//!
//! Opcodes 0 to 4 are the controller's; 8 to 14 go to the queues of all masked elements at once. Instructions are ours:
//! the PH-EPU paper says that there are some (Fig. 15.4.5), not which.
//!
//! ```
//! use blindcore_accel_rtl::phepu::compiler::isa::{Method, Operation, Word};
//!
//! let word = Word {
//!     mask: 0x00ff,
//!     operation: Operation::Accumulate { sum: 0, slot: 3, count: 5, weight: 40, method: Method::BitSerial, delta: 0 },
//! };
//! assert_eq!(Word::decode(word.encode()?)?, word);
//! assert_eq!(word.to_string(), "accumulate  pe 0-7  sum 0  input 3..7  weights 40..44");
//! # Ok::<(), blindcore_accel_rtl::phepu::compiler::Error>(())
//! ```

use std::fmt;

use super::error::Error;

/// Ciphertexts in an element's input buffer.
pub(crate) const INPUT_SLOTS: usize = 16;
/// Partial-sum terms of an element.
pub const TERMS: usize = 8;
/// Ciphertexts in an element's output buffer.
pub(crate) const OUTPUT_SLOTS: usize = 2;
/// Words of 256 bits in an element's weight buffer.
pub(crate) const WEIGHT_WORDS: usize = 288;
/// Bits of a word of every buffer and of the bus, and of a ciphertext's digit.
pub(crate) const WORD_BITS: usize = 256;
/// Elements that a mask names.
pub const ELEMENTS: usize = 16;

/// Addresses of ciphertexts in an element: 0 to 15 are the slots of the input buffer.
pub mod address {
    /// The first of eight partial-sum terms.
    pub const TERM: u8 = 16;
    /// The first of two slots of the output buffer.
    pub const OUTPUT: u8 = 24;
    /// R^2 modulo m: times it a number gets into Montgomery's form.
    pub(crate) const SQUARED: u8 = 32;
    /// R modulo m: Montgomery's form of 1.
    pub const ONE: u8 = 33;
    /// The number 1: times it a number gets out of Montgomery's form.
    pub(crate) const LITERAL: u8 = 34;
    /// m.
    pub(crate) const MODULUS: u8 = 35;
}

/// How weights are taken into terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// A term for each bit of a weight (Fig. 15.4.4, mode 1).
    BitSerial,
    /// A term for each absolute value, 1 to 8; a negative weight takes the input's inverse.
    Buckets,
}

/// What an instruction does. Fields have the ranges of their bits unless something narrower is said; whether they
/// lie in a buffer together is for their runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Waits until every element is idle and every output has left, then sends the report.
    End,
    /// Takes ciphertexts from the chip's input buffer, one after the other, to slots; waits until these are free and
    /// claims them.
    LoadInput {
        /// The first slot.
        slot: u8,
        /// How many, 1 to 16.
        count: u8,
        /// Where the first lies in the chip's buffer, in words.
        global: u16,
    },
    /// Takes words from the chip's weight buffer; waits until the regions are free and claims them.
    LoadWeights {
        /// The first word of the element's buffer.
        word: u16,
        /// How many, 1 to 288.
        count: u16,
        /// The first word of the chip's buffer.
        global: u16,
        /// Which of two regions, a bit each; what lies where is the compiler's business.
        regions: u8,
    },
    /// Sends an output off, of exactly one element; waits until its slot is full and empties it.
    Store {
        /// The slot.
        slot: u8,
        /// What the output is called.
        tag: u32,
    },
    /// Sets a modulus and the lengths of ciphertexts and weights; waits until the elements are idle.
    Context {
        /// Digits of a ciphertext: 4, 8 or 16.
        digits: u8,
        /// Bits of a weight: 2, 4 or 8.
        width: u8,
        /// Where m, R^2, R and n' lie in the chip's weight buffer.
        global: u16,
    },
    /// Gives slots and regions free, a bit each.
    Free {
        /// Which slots.
        slots: u16,
        /// Which regions.
        regions: u8,
    },
    /// Empties the terms of a partial sum, or all eight.
    Clear {
        /// Which, 0 to 3.
        sum: u8,
        /// All eight, for buckets.
        all: bool,
    },
    /// Takes inputs into terms as weights say.
    Accumulate {
        /// The partial sum, 0 to 3.
        sum: u8,
        /// The first input's slot.
        slot: u8,
        /// How many inputs and weights, 1 to 16.
        count: u8,
        /// The first weight's address, in weights.
        weight: u16,
        /// How.
        method: Method,
        /// From an input's slot to its inverse's, modulo 16; for buckets.
        delta: u8,
    },
    /// Squares term b of a partial sum b times.
    Align {
        /// Which, 0 to 3.
        sum: u8,
    },
    /// Inverts the sign bit's term of a partial sum.
    Invert {
        /// Which, 0 to 3.
        sum: u8,
    },
    /// Multiplies terms into an output.
    Reduce {
        /// The partial sum, 0 to 3.
        sum: u8,
        /// The output's slot.
        slot: u8,
        /// Of what the terms are.
        method: Method,
        /// Onto what the slot has, squared `shift` times.
        chain: bool,
        /// How many squarings, 0 to 15.
        shift: u8,
        /// Whether the output is now whole.
        last: bool,
    },
    /// to = x y / R.
    Multiply {
        /// An address of 16 to 25.
        to: u8,
        /// An address.
        x: u8,
        /// An address.
        y: u8,
    },
    /// to = x^(2^times), in Montgomery's form.
    Square {
        /// An address of 16 to 25.
        to: u8,
        /// An address.
        x: u8,
        /// How many squarings, 1 to 8191.
        times: u16,
    },
    /// to = x^e, in Montgomery's form.
    Power {
        /// An address of 16 to 25, another than x.
        to: u8,
        /// An address.
        x: u8,
        /// The word of the element's weight buffer in which e starts, lowest bits first.
        word: u16,
        /// Bits of e, 1 to 4096.
        bits: u16,
        /// Whether it takes the same time for every e of this many bits.
        steady: bool,
    },
    /// to = x^-1, in Montgomery's form.
    Inverse {
        /// An address of 16 to 25.
        to: u8,
        /// An address.
        x: u8,
    },
    /// Nothing.
    Nop,
}

/// An instruction: what, and by which elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    /// Elements, a bit each.
    pub mask: u16,
    /// What.
    pub operation: Operation,
}

const REMEDY: &str = "give what the instruction's field carries";

/// Operands as they are put together, lowest first.
#[derive(Default)]
struct Fields {
    bits: u64,
    at: u32,
}

impl Fields {
    fn put(self, width: u32, value: impl Into<u64>) -> Self {
        Self { bits: self.bits | value.into() << self.at, at: self.at + width }
    }

    /// `value`, which must be in `min..=max`.
    fn checked(
        self,
        width: u32,
        what: &'static str,
        value: impl Into<u64>,
        (min, max): (u64, u64),
    ) -> Result<Self, Error> {
        let got = value.into();
        if (min..=max).contains(&got) {
            Ok(self.put(width, got))
        } else {
            Err(Error::Range { what, got, min, max, remedy: REMEDY })
        }
    }

    /// `value`, of `width` bits.
    fn field(self, width: u32, what: &'static str, value: impl Into<u64>) -> Result<Self, Error> {
        self.checked(width, what, value, (0, (1 << width) - 1))
    }

    fn skip_to(self, at: u32) -> Self {
        Self { at, ..self }
    }
}

impl Word {
    /// For the elements of a mask.
    #[must_use]
    pub fn new(mask: u16, operation: Operation) -> Self {
        Self { mask, operation }
    }

    /// Fills packets up.
    #[must_use]
    pub fn nop() -> Self {
        Self::new(0, Operation::Nop)
    }

    /// As the chip reads it.
    ///
    /// # Errors
    /// A field is out of its range.
    pub fn encode(&self) -> Result<u64, Error> {
        const BASIC: u64 = 14;
        let fields = Fields::default;
        let inputs = (1, INPUT_SLOTS as u64);
        let basic = |kind: u64, to: u8, x: u8, y: u8| {
            let kind = Fields::default().skip_to(41).put(3, kind);
            kind.skip_to(0)
                .checked(6, "the address of a result", to, (address::TERM.into(), 25))?
                .field(6, "the address of x", x)?
                .field(6, "the address of y", y)
        };
        let (opcode, operands) = match self.operation {
            Operation::End => (0, fields()),
            Operation::LoadInput { slot, count, global } => (
                1,
                fields()
                    .field(4, "the slot", slot)?
                    .checked(5, "the number of ciphertexts", count, inputs)?
                    .put(16, global),
            ),
            Operation::LoadWeights { word, count, global, regions } => (
                2,
                fields()
                    .field(9, "the word", word)?
                    .checked(9, "the number of words", count, (1, WEIGHT_WORDS as u64))?
                    .put(16, global)
                    .field(2, "the regions", regions)?,
            ),
            Operation::Store { slot, tag } => (3, fields().field(1, "the slot", slot)?.put(32, tag)),
            Operation::Context { digits, width, global } => {
                let choice =
                    |what, got: u8, of| Err(Error::Choice { what, got: got.into(), of, remedy: REMEDY });
                let digits = match digits {
                    4 => 0u8,
                    8 => 1,
                    16 => 2,
                    _ => return choice("the number of digits", digits, "4, 8 and 16"),
                };
                let width = match width {
                    2 => 0u8,
                    4 => 1,
                    8 => 2,
                    _ => return choice("the bits of a weight", width, "2, 4 and 8"),
                };
                (4, fields().put(2, digits).put(2, width).put(16, global))
            }
            Operation::Free { slots, regions } => {
                (8, fields().put(16, slots).field(2, "the regions", regions)?)
            }
            Operation::Clear { sum, all } => (9, fields().field(2, "the partial sum", sum)?.put(1, all)),
            Operation::Accumulate { sum, slot, count, weight, method, delta } => (
                10,
                fields()
                    .field(2, "the partial sum", sum)?
                    .field(4, "the slot", slot)?
                    .checked(5, "the number of inputs", count, inputs)?
                    .put(16, weight)
                    .put(1, method == Method::Buckets)
                    .field(4, "the way to an inverse", delta)?,
            ),
            Operation::Align { sum } => (11, fields().field(2, "the partial sum", sum)?),
            Operation::Invert { sum } => (12, fields().field(2, "the partial sum", sum)?),
            Operation::Reduce { sum, slot, method, chain, shift, last } => (
                13,
                fields()
                    .field(2, "the partial sum", sum)?
                    .field(1, "the slot", slot)?
                    .put(1, method == Method::Buckets)
                    .put(1, chain)
                    .field(4, "the number of squarings", shift)?
                    .put(1, last),
            ),
            Operation::Multiply { to, x, y } => (BASIC, basic(0, to, x, y)?),
            Operation::Square { to, x, times } => (
                BASIC,
                basic(1, to, x, 0)?.checked(13, "the number of squarings", times, (1, (1 << 13) - 1))?,
            ),
            Operation::Power { to, x, word, bits, steady } => (
                BASIC,
                basic(2, to, x, 0)?
                    .field(9, "the word", word)?
                    .checked(13, "the bits of an exponent", bits, (1, 4096))?
                    .put(1, steady),
            ),
            Operation::Inverse { to, x } => (BASIC, basic(3, to, x, 0)?),
            Operation::Nop => (15, fields()),
        };
        Ok(opcode << 60 | u64::from(self.mask) << 44 | operands.bits)
    }

    /// What the chip reads.
    ///
    /// # Errors
    /// It is not an instruction, a field is out of its range, or a bit that means nothing is set.
    pub fn decode(word: u64) -> Result<Self, Error> {
        let refuse = |why| Error::Word { word, why };
        let field = |at: u32, width: u32| word >> at & ((1 << width) - 1);
        let bit = |at| field(at, 1) != 0;
        let (narrow, wide) = (|at, width| field(at, width) as u8, |at, width| field(at, width) as u16);
        let method = |at| if bit(at) { Method::Buckets } else { Method::BitSerial };
        let sum = narrow(0, 2);
        let code = |at, of: [u8; 3]| of.get(field(at, 2) as usize).copied();
        let operation = match word >> 60 {
            0 => Operation::End,
            1 => Operation::LoadInput { slot: narrow(0, 4), count: narrow(4, 5), global: wide(9, 16) },
            2 => Operation::LoadWeights {
                word: wide(0, 9),
                count: wide(9, 9),
                global: wide(18, 16),
                regions: narrow(34, 2),
            },
            3 => Operation::Store { slot: narrow(0, 1), tag: field(1, 32) as u32 },
            4 => Operation::Context {
                digits: code(0, [4, 8, 16]).ok_or(refuse("has no such number of digits"))?,
                width: code(2, [2, 4, 8]).ok_or(refuse("has no such width of weights"))?,
                global: wide(4, 16),
            },
            8 => Operation::Free { slots: wide(0, 16), regions: narrow(16, 2) },
            9 => Operation::Clear { sum, all: bit(2) },
            10 => Operation::Accumulate {
                sum,
                slot: narrow(2, 4),
                count: narrow(6, 5),
                weight: wide(11, 16),
                method: method(27),
                delta: narrow(28, 4),
            },
            11 => Operation::Align { sum },
            12 => Operation::Invert { sum },
            13 => Operation::Reduce {
                sum,
                slot: narrow(2, 1),
                method: method(3),
                chain: bit(4),
                shift: narrow(5, 4),
                last: bit(9),
            },
            14 => {
                let (to, x) = (narrow(0, 6), narrow(6, 6));
                match field(41, 3) {
                    0 => Operation::Multiply { to, x, y: narrow(12, 6) },
                    1 => Operation::Square { to, x, times: wide(18, 13) },
                    2 => Operation::Power { to, x, word: wide(18, 9), bits: wide(27, 13), steady: bit(40) },
                    3 => Operation::Inverse { to, x },
                    _ => return Err(refuse("is not a basic operation")),
                }
            }
            15 => Operation::Nop,
            _ => return Err(refuse("has an opcode that is none")),
        };
        let decoded = Self { mask: wide(44, 16), operation };
        // What encodes to something else has a bit set that none of its fields has.
        if decoded.encode()? == word { Ok(decoded) } else { Err(refuse("sets a bit that means nothing")) }
    }
}

/// The places of set bits as ranges: `0-3,7`.
pub(crate) struct Places(pub(crate) u32);

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = |i: u32| i < 32 && self.0 >> i & 1 == 1;
        if self.0 == 0 {
            return f.write_str("none");
        }
        let (mut separator, mut i) = ("", 0);
        while i < 32 {
            let start = i;
            while set(i) {
                i += 1;
            }
            match i - start {
                0 => i += 1,
                1 => write!(f, "{separator}{start}")?,
                _ => write!(f, "{separator}{start}-{}", i - 1)?,
            }
            if i > start && set(start) {
                separator = ",";
            }
        }
        Ok(())
    }
}

/// `3` or `3..7`, both ends in it.
struct Span(u32, u32);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            1 => write!(f, "{}", self.0),
            count => write!(f, "{}..{}", self.0, (self.0 + count).saturating_sub(1)),
        }
    }
}

fn span(start: impl Into<u32>, count: impl Into<u32>) -> Span {
    Span(start.into(), count.into())
}

/// An address in an element as a name.
struct Address(u8);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            slot @ 0..=15 => write!(f, "input {slot}"),
            term @ 16..=23 => write!(f, "term {}", term - address::TERM),
            slot @ (24 | 25) => write!(f, "output {}", slot - address::OUTPUT),
            address::SQUARED => f.write_str("R^2"),
            address::ONE => f.write_str("one"),
            address::LITERAL => f.write_str("literal 1"),
            address::MODULUS => f.write_str("modulus"),
            other => write!(f, "address {other}"),
        }
    }
}

/// A line of a disassembly.
impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.operation {
            Operation::End => return f.write_str("end"),
            Operation::Nop => return f.write_str("nop"),
            Operation::LoadInput { .. } => "load input",
            Operation::LoadWeights { .. } => "load weights",
            Operation::Store { .. } => "store",
            Operation::Context { .. } => "context",
            Operation::Free { .. } => "free",
            Operation::Clear { .. } => "clear",
            Operation::Accumulate { .. } => "accumulate",
            Operation::Align { .. } => "align",
            Operation::Invert { .. } => "invert",
            Operation::Reduce { .. } => "reduce",
            Operation::Multiply { .. } => "multiply",
            Operation::Square { .. } => "square",
            Operation::Power { .. } => "power",
            Operation::Inverse { .. } => "inverse",
        };
        write!(f, "{name}  pe {}  ", Places(self.mask.into()))?;
        match self.operation {
            Operation::LoadInput { slot, count, global } => {
                write!(f, "input {}  from word {global}", span(slot, count))
            }
            Operation::LoadWeights { word, count, global, regions } => {
                let regions = Places(regions.into());
                write!(f, "words {}  from word {global}  region {regions}", span(word, count))
            }
            Operation::Store { slot, tag } => write!(f, "output {slot}  as {tag}"),
            Operation::Context { digits, width, global } => {
                write!(f, "{digits} digits  weights of {width} bits  from word {global}")
            }
            Operation::Free { slots, regions } => {
                write!(f, "input {}  region {}", Places(slots.into()), Places(regions.into()))
            }
            Operation::Clear { all: true, .. } => f.write_str("all terms"),
            Operation::Clear { sum, all: false } | Operation::Align { sum } | Operation::Invert { sum } => {
                write!(f, "sum {sum}")
            }
            Operation::Accumulate { sum, slot, count, weight, method, delta } => {
                write!(f, "sum {sum}  input {}  weights {}", span(slot, count), span(weight, count))?;
                match method {
                    Method::BitSerial => Ok(()),
                    Method::Buckets => write!(f, "  buckets, inverses {delta} on"),
                }
            }
            Operation::Reduce { sum, slot, method, chain, shift, last } => {
                write!(f, "sum {sum}  output {slot}")?;
                if method == Method::Buckets {
                    f.write_str("  buckets")?;
                }
                if chain {
                    write!(f, "  onto its 2^{shift}th power")?;
                }
                f.write_str(if last { "" } else { "  more follows" })
            }
            Operation::Multiply { to, x, y } => {
                write!(f, "{} = {} by {}", Address(to), Address(x), Address(y))
            }
            Operation::Square { to, x, times } => {
                write!(f, "{} = {}  {times} times", Address(to), Address(x))
            }
            Operation::Power { to, x, word, bits, steady } => {
                let steady = if steady { "  steady" } else { "" };
                write!(f, "{} = {}  to {bits} bits at word {word}{steady}", Address(to), Address(x))
            }
            Operation::Inverse { to, x } => write!(f, "{} = {}", Address(to), Address(x)),
            Operation::End | Operation::Nop => Ok(()),
        }
    }
}
