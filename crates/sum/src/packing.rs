//! Many small numbers in one plaintext: its slots.
//!
//! ```text
//!   plaintext = v0 + v1 2^w + v2 2^2w + ...      w: slot bits; v: signed, so that a negative one borrows above
//! ```
//!
//! Slot i of every ciphertext of a group belongs to sample i: sums, and products with weights that all samples
//! share, act on every slot at once, which is what makes a dot product over many samples cheap. A slot's magnitude
//! is tracked as a plaintext's is ([`crate::encoding::Bound`]) and may never pass [`Packing::limit`].

use blindcore_accel::bigmod::Numbers;
use blindcore_files::OutOfRange;
use ndarray::{AsArray, Dimension};

use crate::encoding::{
    Bound, Encoding, EncodingError, Form, Plaintexts, add_masked, float_parts, integer_parts, reduce_once,
    subtract_masked,
};
use crate::keys::PublicKey;

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
    fn offset(self, words: usize) -> Vec<u64> {
        let mut out = vec![0; words];
        for slot in 0..self.slots {
            self.put(&mut out, slot, 1 << (self.slot_bits - 1));
        }
        out
    }

    /// Sets a slot that is zero.
    fn put(self, number: &mut [u64], slot: u32, value: u64) {
        let at = (slot * self.slot_bits) as usize;
        let (i, low) = (at / 64, at % 64);
        number[i] |= value << low;
        if low + self.slot_bits as usize > 64 {
            number[i + 1] |= value >> (64 - low);
        }
    }

    fn get(self, number: &[u64], slot: u32) -> u64 {
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

impl Plaintexts {
    /// Packs integers, samples along the first axis: [S, ...] becomes [ceil(S / slots), ...].
    ///
    /// # Errors
    /// As [`Plaintexts::integers`]; or the bound is over [`Packing::limit`], or the packing does not fit the key.
    pub fn pack_integers<'a, D: Dimension>(
        key: &PublicKey,
        values: impl AsArray<'a, i64, D>,
        encoding: Encoding,
        packing: Packing,
    ) -> Result<Self, EncodingError> {
        pack(key, values, encoding, packing, |_, v| Ok(integer_parts(*v)))
    }

    /// Packs floats, as [`Plaintexts::pack_integers`].
    ///
    /// # Errors
    /// As [`Plaintexts::pack_integers`]; or a value is not finite.
    pub fn pack_floats<'a, D: Dimension>(
        key: &PublicKey,
        values: impl AsArray<'a, f64, D>,
        encoding: Encoding,
        packing: Packing,
    ) -> Result<Self, EncodingError> {
        pack(key, values, encoding, packing, |i, v| float_parts(i, *v))
    }

    /// The mantissas in the slots: the samples in order, each in row-major order.
    pub(crate) fn slots(&self) -> Result<Vec<i64>, EncodingError> {
        let Some(Packed { packing, samples }) = self.form.packed else {
            let (got, want) = ("not packed".into(), "a packed batch".into());
            return Err(EncodingError::Packing { what: "the batch", got, want });
        };
        let offset = packing.offset(self.n.len());
        let half = 1u64 << (packing.slot_bits - 1);
        let inner: usize = self.form.shape[1..].iter().product();
        let mut out = vec![0; samples * inner];
        let mut lifted = Numbers::zeroed(1, self.n.len());
        for (position, number) in self.numbers.iter().enumerate() {
            let (group, column) = (position / inner, position % inner);
            let lifted = lifted.get_mut(0);
            lifted.copy_from_slice(number);
            let carry = add_masked(lifted, &offset, u64::MAX);
            reduce_once(lifted, carry, &self.n);
            let overflow = EncodingError::Overflow { position, limit: self.form.bound };
            if crate::encoding::bit_length(lifted) > packing.slots * packing.slot_bits {
                return Err(overflow);
            }
            for slot in 0..packing.slots {
                let value = packing.get(lifted, slot).wrapping_sub(half) as i64;
                if Bound::new(value.unsigned_abs()) > self.form.bound {
                    return Err(overflow);
                }
                let sample = group * packing.slots as usize + slot as usize;
                if sample < samples {
                    out[sample * inner + column] = value;
                }
            }
        }
        Ok(out)
    }
}

fn pack<'a, T: 'a, D: Dimension>(
    key: &PublicKey,
    values: impl AsArray<'a, T, D>,
    encoding: Encoding,
    packing: Packing,
    parts: impl Fn(usize, &T) -> Result<(bool, u64, i32), EncodingError>,
) -> Result<Plaintexts, EncodingError> {
    let values = values.into();
    let want = || "one with an axis of samples".to_string();
    let Some(&samples) = values.shape().first() else {
        return Err(EncodingError::Shape { what: "what is packed", got: vec![], want: want() });
    };
    packing.check(key.bits())?;
    let slots = packing.slots as usize;
    let mut shape = values.shape().to_vec();
    shape[0] = samples.div_ceil(slots);
    let inner: usize = shape[1..].iter().product();
    let count = shape[0] * inner;
    let (exponent, bound) = (encoding.exponent(), encoding.bound());
    let form = Form { exponent, bound, packed: Some(Packed { packing, samples }), shape };
    form.check(key, count)?;

    let n = key.n();
    let offset = packing.offset(n.len());
    let half = 1u64 << (packing.slot_bits - 1);
    let mut numbers = Numbers::zeroed(count, n.len());
    for (position, value) in values.iter().enumerate() {
        let (sample, column) = (position / inner, position % inner);
        let (negative, magnitude, shift) = encoding.mantissa(position, parts(position, value)?)?;
        // Within the bound, so within the slot.
        let mask = u64::from(negative).wrapping_neg();
        let signed = (magnitude.checked_shl(shift).unwrap_or(0) ^ mask).wrapping_sub(mask);
        let number = numbers.get_mut(sample / slots * inner + column);
        packing.put(number, (sample % slots) as u32, signed.wrapping_add(half));
    }
    for position in 0..count {
        let number = numbers.get_mut(position);
        // Slots without a sample: half a slot, which is zero once the offset is off.
        let filled = (samples - (position / inner) * slots).min(slots);
        for slot in filled..slots {
            packing.put(number, slot as u32, half);
        }
        let borrow = subtract_masked(number, &offset, u64::MAX);
        add_masked(number, n, borrow.wrapping_neg());
    }
    Ok(Plaintexts { key: key.id(), n: n.to_vec(), numbers, form })
}
