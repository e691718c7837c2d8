//! What a task runs on, and what a step costs there.

use serde::Serialize;

use super::error::{Error, within};
use super::isa::{INPUT_SLOTS, OUTPUT_SLOTS};

/// Bits that the bus carries a cycle (Fig. 15.4.2).
pub(crate) const BUS_BITS: usize = 256;
/// Cycles from a Montgomery multiplication's start to the start of one that needs its result, by digits of 256 bits:
/// those of `hw/rtl/phepu/ph_pkg.sv`.
const MULTIPLY_CYCLES: [(usize, u64); 3] = [(4, 49), (8, 89), (16, 206)];
/// Cycles of Stein's inversion a bit, as a fraction; see [`Machine`].
const STEIN_CYCLES: (u64, u64) = (141, 100);
/// An inversion on a CPU, in multiplications of the same length: GMP's at 4096 bits.
const CPU_INVERSION: u64 = 39;
/// Processing elements of a chip (Fig. 15.4.2).
pub const CHIP_ELEMENTS: usize = 16;
/// Cycles per second of PH-EPU (Fig. 15.4.7).
pub const CLOCK_HZ: f64 = 500e6;
/// The most chips.
pub const MAX_CHIPS: usize = 256;
/// The most elements of a chip, and the most threads.
pub const MAX_ELEMENTS: usize = 1024;

/// Whose clocks a step takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Those of `hw/rtl/phepu`.
    #[default]
    Built,
    /// The paper's, from its rates at 4096 bits and the shape of its rounds, see [`Machine`].
    Published,
}

/// Clocks of the paper's inversion of 4096 bits: 38 k/s at 500 MHz, read as one unit's (Fig. 15.4.6).
const PUBLISHED_INVERSION: u64 = 13_158;

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
    pub(crate) fn ciphertext_bytes(&self) -> usize {
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
/// Cycles of PH-EPU as `hw/rtl/phepu` has it, for ciphertexts of L bits, d = L / 256 digits:
///
/// | step | cycles | at 4096 bits | from |
/// |---|---|---|---|
/// | Montgomery multiplication or squaring | 49, 89, 206 for d = 4, 8, 16 | 206 | three multipliers of 256 bits, d rounds; the 2 d^2 + d products take (2 d^2 + d) / 3 = 176 at the least. The paper's chip at 23 M/s: at most 347 |
/// | Stein inversion | 1.41 L + 3 d | 5,823 | one branch a cycle: Kaliski's almost inverse takes 1.41 of them a bit in the mean, 2 at most; numbers in and out. The paper's chip at 38 k/s, read as one unit's: 13,158 |
/// | inversion of the negative term | Stein + 2 multiplications | 6,235 | "Stein once and Mont twice": the two bring the inverse back to Montgomery's form |
/// | first input of an empty term | d | 16 | a copy; behind a multiplication it waits for that one's last words, up to d more, left out here |
/// | clearing terms | 0 | 0 | a term has a bit that says whether it holds anything |
/// | a ciphertext over the bus | d | 16 | 256-bit bus, a word a cycle |
/// | w weights of b bits over the bus | ceil(w b / 256) | - | the same |
///
/// By the [published schedule](Schedule::Published) a multiplication takes d (d + 5.75) cycles: 348 at 4096 bits, which is the rate
/// of 23 M/s, in d rounds of d cycles (Fig. 15.4.3) and what is left for each quotient; an inversion takes 13,158 at 4096 bits, in
/// proportion to L.
///
/// The published rates are whole chips' with off-chip traffic in them, which is not modelled; nor are fetching
/// instructions, weights that are read though they are zero, and the global buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Machine {
    chips: usize,
    elements: usize,
    buffers: Option<Buffers>,
    schedule: Schedule,
}

impl Machine {
    /// PH-EPU: `chips` of 16 elements, each with 9 KB of weights, 8 KB of inputs, 1 KB of outputs and eight
    /// partial-sum terms (Fig. 15.4.2); the paper's card has 8 chips. Ciphertexts of 1024, 2048 or 4096 bits: always 16
    /// inputs and 2 outputs, for in `hw/rtl/phepu` a shorter one lies where a long one would.
    ///
    /// # Errors
    /// There are none or more than [`MAX_CHIPS`] chips, or ciphertexts have another length.
    pub fn phepu(chips: usize, ciphertext_bits: usize) -> Result<Self, Error> {
        let buffers = Buffers {
            ciphertext_bits,
            weight_bytes: 9 << 10,
            input_bytes: (ciphertext_bits / 8).saturating_mul(INPUT_SLOTS),
            output_bytes: (ciphertext_bits / 8).saturating_mul(OUTPUT_SLOTS),
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
        Ok(Self { chips, elements, buffers: Some(buffers), schedule: Schedule::Built })
    }

    /// The threads of a CPU: memory for everything, no bus. Its estimates are in multiplications, not in cycles.
    ///
    /// # Errors
    /// There are none, or more than [`MAX_ELEMENTS`].
    pub fn cpu(threads: usize) -> Result<Self, Error> {
        within("the number of threads", threads, 1, MAX_ELEMENTS as u64, "use another number")?;
        Ok(Self { chips: 1, elements: threads, buffers: None, schedule: Schedule::Built })
    }

    /// The same machine with another schedule; a CPU has none.
    #[must_use]
    pub fn with_schedule(self, schedule: Schedule) -> Self {
        Self { schedule, ..self }
    }

    /// How many chips.
    #[must_use]
    pub(crate) fn chip_count(&self) -> usize {
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
            let digits = buffers.ciphertext_bits / BUS_BITS;
            if self.schedule == Schedule::Published {
                return (digits * (4 * digits + 23)).div_ceil(4) as u64;
            }
            let cycles = MULTIPLY_CYCLES.into_iter().find(|(of, _)| *of == digits);
            cycles.expect("Machine::chips takes 4, 8 and 16 digits alone").1
        })
    }

    /// Cycles of copying a ciphertext within an element; 0 on a CPU.
    #[must_use]
    pub fn copy_cycles(&self) -> u64 {
        self.buffers.map_or(0, |buffers| buffers.ciphertext_cycles())
    }

    /// Cycles of inverting a negative term, its two multiplications included.
    #[must_use]
    pub fn invert_cycles(&self) -> u64 {
        self.buffers.map_or(CPU_INVERSION, |buffers| {
            let bits = buffers.ciphertext_bits as u64;
            let stein = match self.schedule {
                Schedule::Built => bits * STEIN_CYCLES.0 / STEIN_CYCLES.1 + 3 * buffers.ciphertext_cycles(),
                Schedule::Published => bits * PUBLISHED_INVERSION / 4096,
            };
            stein + 2 * self.multiply_cycles()
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

/// What a chip has for all of its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GlobalBuffers {
    /// Words of 256 bits of the input buffer.
    pub input_words: u32,
    /// Words of the weight buffer.
    pub weight_words: u32,
}

impl GlobalBuffers {
    /// Those of `hw/rtl/phepu`: 2 MB and 512 KB.
    pub const PHEPU: Self = Self { input_words: 1 << 16, weight_words: 1 << 14 };
}
