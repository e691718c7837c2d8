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
use ndarray::{AsArray, Dimension};

use crate::encoding::{
    Bound, Encoding, EncodingError, Form, Plaintexts, add_masked, float_parts, integer_parts, reduce_once,
    subtract_masked,
};
use crate::keys::PublicKey;

pub use crate::encoding::slots::{MASK_BITS, MAX_SLOT_BITS, Packed, Packing};

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
        let values = values.into();
        let mantissas = values.iter().enumerate().map(|(i, v)| encoding.mantissa(i, integer_parts(*v)));
        Self::pack(key, values.shape(), encoding, packing, mantissas)
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
        let values = values.into();
        let mantissas = values.iter().enumerate().map(|(i, v)| encoding.mantissa(i, float_parts(i, *v)?));
        Self::pack(key, values.shape(), encoding, packing, mantissas)
    }

    /// The mantissas in the slots: the samples in order, each in row-major order.
    pub(crate) fn slots(&self) -> Result<Vec<i64>, EncodingError> {
        let Some(Packed { packing, samples }) = self.form.packed else {
            let (got, want) = ("not packed".into(), "a packed batch".into());
            return Err(EncodingError::Packing { what: "the batch", got, want });
        };
        let offset = packing.offset(self.n.len());
        let half = 1u64 << (packing.slot_bits() - 1);
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
            if crate::encoding::bit_length(lifted) > packing.slots() * packing.slot_bits() {
                return Err(overflow);
            }
            for slot in 0..packing.slots() {
                let value = packing.get(lifted, slot).wrapping_sub(half) as i64;
                if Bound::new(value.unsigned_abs()) > self.form.bound {
                    return Err(overflow);
                }
                let sample = group * packing.slots() as usize + slot as usize;
                if sample < samples {
                    out[sample * inner + column] = value;
                }
            }
        }
        Ok(out)
    }

    /// Packs mantissas of the encoding.
    pub(crate) fn pack(
        key: &PublicKey,
        shape: &[usize],
        encoding: Encoding,
        packing: Packing,
        mantissas: impl Iterator<Item = Result<(bool, u64, u32), EncodingError>>,
    ) -> Result<Plaintexts, EncodingError> {
        let want = || "one with an axis of samples".to_string();
        let Some(&samples) = shape.first() else {
            return Err(EncodingError::Shape { what: "what is packed", got: vec![], want: want() });
        };
        packing.check(key.bits())?;
        let slots = packing.slots() as usize;
        let mut shape = shape.to_vec();
        shape[0] = samples.div_ceil(slots);
        let inner: usize = shape[1..].iter().product();
        let count = shape[0] * inner;
        let (exponent, scale, bound) = (encoding.exponent(), encoding.scale(), encoding.bound());
        let form = Form { exponent, scale, bound, packed: Some(Packed { packing, samples }), shape };
        form.check(key, count)?;

        let n = key.n();
        let offset = packing.offset(n.len());
        let half = 1u64 << (packing.slot_bits() - 1);
        let mut numbers = Numbers::zeroed(count, n.len());
        for (position, mantissa) in mantissas.enumerate() {
            let (sample, column) = (position / inner, position % inner);
            let (negative, magnitude, shift) = mantissa?;
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
}
