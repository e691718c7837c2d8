//! What a task runs on, and what a step costs there.

use serde::Serialize;

use crate::{Error, within};

/// Bits that the bus carries a cycle (Fig. 15.4.2).
pub const BUS_BITS: usize = 256;
/// Bits of a multiplier's operands, the digits of Montgomery's multiplication (Fig. 15.4.3).
const MULTIPLIER_BITS: usize = 256;
/// Cycles of a round's quotient; see [`Machine`].
const QUOTIENT_CYCLES: u64 = 5;
/// Cycles of Stein's inversion a bit, as a fraction; see [`Machine`].
const STEIN_CYCLES: (u64, u64) = (16, 5);
/// An inversion on a CPU, in multiplications of the same length: GMP's at 4096 bits.
const CPU_INVERSION: u64 = 39;
/// Processing elements of a chip (Fig. 15.4.2).
pub const CHIP_ELEMENTS: usize = 16;
/// Cycles a second of PH-EPU (Fig. 15.4.7).
pub const CLOCK_HZ: f64 = 500e6;
/// The most chips.
pub const MAX_CHIPS: usize = 256;
/// The most elements of a chip, and the most threads.
pub const MAX_ELEMENTS: usize = 1024;

/// The buffers of a processing element, and the ciphertexts that they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Buffers {
    /// L: bits of a ciphertext.
    pub ciphertext_bits: usize,
    /// Bytes of the weight buffer.
    pub weight_bytes: usize,
    /// Bytes of the input buffer.
    pub input_bytes: usize,
    /// Bytes of the output buffer.
    pub output_bytes: usize,
    /// Partial-sum terms that the look-up table holds.
    pub terms: usize,
}

impl Buffers {
    /// Bytes of a ciphertext.
    #[must_use]
    pub fn ciphertext_bytes(&self) -> usize {
        self.ciphertext_bits / 8
    }

    /// Cycles of a ciphertext on the bus.
    #[must_use]
    pub fn ciphertext_cycles(&self) -> u64 {
        (self.ciphertext_bits / BUS_BITS) as u64
    }

    /// Ciphertexts in the input buffer.
    #[must_use]
    pub fn input_slots(&self) -> usize {
        self.input_bytes / self.ciphertext_bytes()
    }

    /// Ciphertexts in the output buffer.
    #[must_use]
    pub fn output_slots(&self) -> usize {
        self.output_bytes / self.ciphertext_bytes()
    }

    /// Weights of `bits` bits in the weight buffer.
    #[must_use]
    pub fn weight_slots(&self, bits: u32) -> usize {
        self.weight_bytes * 8 / bits as usize
    }

    /// Partial sums that the look-up table keeps at once for weights of `bits` bits. The paper tells of one of
    /// eight terms; that narrower weights leave room for more is derived.
    #[must_use]
    pub fn sums(&self, bits: u32) -> usize {
        self.terms / bits as usize
    }
}

/// Chips of processing elements, with their buffers; or the threads of a CPU, which need none.
///
/// Cycles of PH-EPU, for ciphertexts of L bits, d = L / 256 digits:
///
/// | step | cycles | at 4096 bits | from |
/// |---|---|---|---|
/// | Montgomery multiplication or squaring | d (d + 5) | 336 | d rounds of d cycles: the paper's text on Fig. 15.4.3 (4096 b x 256 b in 16 cycles); the 5 for a round's quotient is fitted: the most with which 16 elements at 500 MHz still reach the published 23 M/s |
/// | Stein inversion | 16 L / 5 | 13,107 | fitted to the published 38 k/s, read as one unit's: one branch a cycle is 1.4 to 4 L cycles, while sixteen units at that rate would need 51 L |
/// | inversion of the negative term | Stein + 2 multiplications | 13,779 | "Stein once and Mont twice": the two bring the inverse back to Montgomery's form |
/// | a ciphertext over the bus | d | 16 | 256-bit bus, a word a cycle |
/// | w weights of b bits over the bus | ceil(w b / 256) | - | the same |
/// | first input of an empty term, clearing | 0 | 0 | derived: a term has a bit that says whether it holds anything |
///
/// The published rates are whole chips' with off-chip traffic in them, which is not modelled; nor are fetching
/// instructions and the global buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Machine {
    chips: usize,
    elements: usize,
    buffers: Option<Buffers>,
}

impl Machine {
    /// PH-EPU: `chips` of 16 elements, each with 9 KB of weights, 8 KB of inputs, 1 KB of outputs and eight
    /// partial-sum terms (Fig. 15.4.2); the paper's card has 8 chips. Ciphertexts of 1024, 2048 or 4096 bits.
    ///
    /// # Errors
    /// There are none or more than [`MAX_CHIPS`] chips, or ciphertexts have another length.
    pub fn phepu(chips: usize, ciphertext_bits: usize) -> Result<Self, Error> {
        let buffers = Buffers {
            ciphertext_bits,
            weight_bytes: 9 << 10,
            input_bytes: 8 << 10,
            output_bytes: 1 << 10,
            terms: 8,
        };
        Self::chips(chips, CHIP_ELEMENTS, buffers)
    }

    /// Chips as PH-EPU's with other numbers of elements and other buffers.
    ///
    /// # Errors
    /// As [`Machine::phepu`]; or there are none or more than [`MAX_ELEMENTS`] elements; or a buffer holds less
    /// than one weight of 8 bits a half, one ciphertext a half of the inputs, one output, eight terms; or more
    /// than 2^24 bytes or terms.
    pub fn chips(chips: usize, elements: usize, buffers: Buffers) -> Result<Self, Error> {
        within("the number of chips", chips, 1, MAX_CHIPS as u64, "use another number")?;
        within("the number of elements", elements, 1, MAX_ELEMENTS as u64, "use another number")?;
        if ![1024, 2048, 4096].contains(&buffers.ciphertext_bits) {
            return Err(Error::Choice {
                what: "the length of a ciphertext in bits",
                got: buffers.ciphertext_bits as u64,
                of: "1024, 2048 and 4096",
                remedy: "use a key of half of one of these",
            });
        }
        let ciphertext = buffers.ciphertext_bytes();
        for (buffer, got, least) in [
            ("weight", buffers.weight_bytes, 2),
            ("input", buffers.input_bytes, 2 * ciphertext),
            ("output", buffers.output_bytes, ciphertext),
        ] {
            if got < least {
                return Err(Error::Buffer { buffer, got, least });
            }
            within("the size of a buffer in bytes", got, 1, 1 << 24, "use smaller ones")?;
        }
        within("the number of partial-sum terms", buffers.terms, 8, 1 << 24, "keep eight")?;
        Ok(Self { chips, elements, buffers: Some(buffers) })
    }

    /// The threads of a CPU: memory for everything, no bus. Its estimates are in multiplications, not in cycles.
    ///
    /// # Errors
    /// There are none, or more than [`MAX_ELEMENTS`].
    pub fn cpu(threads: usize) -> Result<Self, Error> {
        within("the number of threads", threads, 1, MAX_ELEMENTS as u64, "use another number")?;
        Ok(Self { chips: 1, elements: threads, buffers: None })
    }

    /// How many chips.
    #[must_use]
    pub fn chip_count(&self) -> usize {
        self.chips
    }

    /// Processing elements of a chip, or threads.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// The buffers of an element; none on a CPU.
    #[must_use]
    pub fn buffers(&self) -> Option<&Buffers> {
        self.buffers.as_ref()
    }

    /// Cycles of a multiplication or a squaring; 1 on a CPU.
    #[must_use]
    pub fn multiply_cycles(&self) -> u64 {
        self.buffers.map_or(1, |buffers| {
            let digits = (buffers.ciphertext_bits / MULTIPLIER_BITS) as u64;
            digits * (digits + QUOTIENT_CYCLES)
        })
    }

    /// Cycles of inverting a negative term, its two multiplications included.
    #[must_use]
    pub fn invert_cycles(&self) -> u64 {
        self.buffers.map_or(CPU_INVERSION, |buffers| {
            let (cycles, bits) = STEIN_CYCLES;
            buffers.ciphertext_bits as u64 * cycles / bits + 2 * self.multiply_cycles()
        })
    }

    /// Cycles of an output of `terms` terms with weights of `bits` bits, half of them set: multiplications into
    /// terms, alignment, one inversion, reduction.
    pub(crate) fn output_cycles(&self, terms: usize, bits: u32) -> u64 {
        let (terms, bits) = (terms as u64, u64::from(bits));
        let steps = (terms * bits).div_ceil(2) + bits * (bits - 1) / 2 + (bits - 1);
        steps * self.multiply_cycles() + self.invert_cycles()
    }
}
