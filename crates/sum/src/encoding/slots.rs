//! The slots of a plaintext.

use blindcore_files::OutOfRange;

use super::bound::Bound;
use super::error::EncodingError;

/// The widest slot: a value is decoded to 64 bits.
pub const MAX_SLOT_BITS: u32 = 64;
/// Bits that [`Packing::plan`] leaves free above the slots, so that a whole plaintext can still be hidden from the
/// key holder by adding a random number of that many bits more, as protocols that turn it into additive shares do
/// (statistical security of 2^-40).
pub const MASK_BITS: u32 = 40;
/// Bits of n that slots never use: n/3 is above 2^(bits - 3), and slots of w s bits are at most 2^(w s - 1).
const SIGN_BITS: u32 = 2;

/// Slots of a plaintext.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packing {
    slot_bits: u32,
    slots: u32,
}

/// Samples in slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packed {
    /// The slots.
    pub packing: Packing,
    /// How many samples; the slots of the last group that are left over hold zeros.
    pub samples: usize,
}

impl Packing {
    /// Slots for sums of `terms` products of signed values and weights of these lengths in bits.
    ///
    /// A slot has `value_bits + weight_bits + ceil(log2 terms)` bits, which is one guard bit more than the sum
    /// needs; there are as many as the key holds under [`MASK_BITS`] free bits.
    ///
    /// ```
    /// # use blindcore_sum::packing::Packing;
    /// let packing = Packing::plan(2048, 8, 576, 8)?;
    /// assert_eq!((packing.slots(), packing.slot_bits()), (77, 26));
    /// # Ok::<(), blindcore_sum::encoding::EncodingError>(())
    /// ```
    ///
    /// # Errors
    /// A length is zero or so large that a slot has over [`MAX_SLOT_BITS`] bits, or not one slot fits the key.
    pub fn plan(key_bits: u32, value_bits: u32, terms: u64, weight_bits: u32) -> Result<Self, EncodingError> {
        let check = |what, got, max| OutOfRange::check(what, got, 1..=max, "don't pack");
        check("the length of packed values in bits", value_bits.into(), MAX_SLOT_BITS.into())?;
        check("the length of weights in bits", weight_bits.into(), MAX_SLOT_BITS.into())?;
        check("the number of terms", terms, 1 << 40)?;
        let slot_bits = value_bits + weight_bits + terms.next_power_of_two().trailing_zeros();
        Self::new(key_bits, slot_bits, key_bits.saturating_sub(SIGN_BITS + MASK_BITS) / slot_bits)
    }

    /// `slots` slots of `slot_bits` bits in plaintexts of a key of `key_bits`.
    ///
    /// # Errors
    /// `slot_bits` is not 2 to [`MAX_SLOT_BITS`], or slots are none or more than fit.
    pub fn new(key_bits: u32, slot_bits: u32, slots: u32) -> Result<Self, EncodingError> {
        let packing = Self { slot_bits, slots };
        packing.check(key_bits)?;
        Ok(packing)
    }

    /// What is read from outside; to be checked by [`Form::check`].
    pub(crate) fn unchecked(slot_bits: u32, slots: u32) -> Self {
        Self { slot_bits, slots }
    }

    pub(crate) fn check(self, key_bits: u32) -> Result<(), EncodingError> {
        let check = |what, got: u32, min, max: u32, remedy| {
            OutOfRange::check(what, got.into(), min..=max.into(), remedy)
        };
        let remedy = "use fewer terms, smaller values or weights, or don't pack";
        check("the width of a slot in bits", self.slot_bits, 2, MAX_SLOT_BITS, remedy)?;
        let fit = key_bits.saturating_sub(SIGN_BITS) / self.slot_bits;
        Ok(check("the number of slots", self.slots, 1, fit, "use narrower slots or a larger key")?)
    }

    /// Bits of a slot.
    #[must_use]
    pub fn slot_bits(self) -> u32 {
        self.slot_bits
    }

    /// Slots of a plaintext.
    #[must_use]
    pub fn slots(self) -> u32 {
        self.slots
    }

    /// The largest magnitude in a slot: 2^(w - 1) - 1.
    #[must_use]
    pub fn limit(self) -> Bound {
        Bound::new((1 << (self.slot_bits - 1)) - 1)
    }

    /// Half a slot in every slot, which makes all of them positive.
    pub(crate) fn offset(self, words: usize) -> Vec<u64> {
        let mut out = vec![0; words];
        for slot in 0..self.slots {
            self.put(&mut out, slot, 1 << (self.slot_bits - 1));
        }
        out
    }

    /// Sets a slot that is zero.
    pub(crate) fn put(self, number: &mut [u64], slot: u32, value: u64) {
        let at = (slot * self.slot_bits) as usize;
        let (i, low) = (at / 64, at % 64);
        number[i] |= value << low;
        if low + self.slot_bits as usize > 64 {
            number[i + 1] |= value >> (64 - low);
        }
    }

    pub(crate) fn get(self, number: &[u64], slot: u32) -> u64 {
        let at = (slot * self.slot_bits) as usize;
        let (i, low) = (at / 64, at % 64);
        let mut value = number[i] >> low;
        if low + self.slot_bits as usize > 64 {
            value |= number[i + 1] << (64 - low);
        }
        value & (u64::MAX >> (64 - self.slot_bits))
    }
}

impl std::fmt::Display for Packing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} slots of {} bits", self.slots, self.slot_bits)
    }
}
