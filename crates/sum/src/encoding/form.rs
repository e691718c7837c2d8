//! What is known of a batch: exponent, bound, shape, packing.

use blindcore_files::OutOfRange;
use blindcore_numbers::is_shape;

use super::bound::Bound;
use super::error::EncodingError;
use super::exponent::{MAX_SCALE, check_exponent};
use super::slots::Packed;
use crate::keys::PublicKey;

/// The most axes that a batch has.
pub const MAX_AXES: usize = 8;

/// What is known in public of a batch of numbers, encrypted or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// The exponent of 16 that all share.
    pub exponent: i32,
    /// Decimals after the point: a number is `mantissa * 16^exponent / 10^scale`, so that cents stay cents.
    pub scale: u32,
    /// What no mantissa exceeds in magnitude; of packed numbers, no slot's.
    pub bound: Bound,
    /// How many small numbers lie in each, where they do.
    pub packed: Option<Packed>,
    /// The shape of the batch in row-major order, 1 to [`MAX_AXES`] axes. Of packed numbers the first axis is of
    /// groups of samples.
    pub shape: Vec<usize>,
}

impl Form {
    /// How many plaintexts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shape of the numbers: that of the batch, but for the first axis of packed ones, which counts samples.
    #[must_use]
    pub fn numbers_shape(&self) -> Vec<usize> {
        let mut shape = self.shape.clone();
        if let Some(packed) = &self.packed {
            shape[0] = packed.samples;
        }
        shape
    }

    /// What limits a mantissa or slot under `key`.
    #[must_use]
    pub fn limit(&self, key: &PublicKey) -> Bound {
        self.packed.map_or_else(|| Bound::of_key(key), |packed| packed.packing.limit())
    }

    /// That a result of bound `got` can't wrap.
    pub(crate) fn check_range(
        &self,
        key: &PublicKey,
        what: &'static str,
        got: Bound,
    ) -> Result<(), EncodingError> {
        let limit = self.limit(key);
        if got <= limit {
            return Ok(());
        }
        let (room, remedy) = match self.packed {
            Some(_) => ("a slot", "wider slots (fewer to a plaintext)"),
            None => ("a third of the key's n", "a larger key"),
        };
        Err(EncodingError::Range { what, got, limit, room, remedy })
    }

    /// That it makes sense under `key` for `count` plaintexts; it may come from a stranger.
    ///
    /// # Errors
    /// The exponent, the shape or the packing is out of range, or the bound is over what the key holds.
    pub fn check(&self, key: &PublicKey, count: usize) -> Result<(), EncodingError> {
        check_exponent(self.exponent.into())?;
        OutOfRange::check("the number of decimals", self.scale.into(), 0..=MAX_SCALE.into(), "keep fewer")?;
        if !(1..=MAX_AXES).contains(&self.shape.len()) {
            let (got, max) = (self.shape.len() as u64, MAX_AXES as u64);
            return Err(
                OutOfRange { what: "the number of axes", got, min: 1, max, remedy: "reshape it" }.into()
            );
        }
        self.check_shape()?;
        if self.len() != count {
            let (got, want) = (self.shape.clone(), format!("one of {count} numbers"));
            return Err(EncodingError::Shape { what: "the batch", got, want });
        }
        if let Some(packed) = &self.packed {
            packed.packing.check(key.bits())?;
            let slots = packed.packing.slots() as usize;
            if packed.samples.div_ceil(slots) != self.shape[0] {
                let got = self.shape.clone();
                let want = format!("{} samples in groups of {slots}", packed.samples);
                return Err(EncodingError::Shape { what: "the packed batch", got, want });
            }
        }
        self.check_range(key, "what was declared", self.bound)
    }

    /// That there are arrays of its shape, and of that of its numbers, also of empty ones: so that no product of some of the
    /// axes overflows. It has one axis or more.
    pub(crate) fn check_shape(&self) -> Result<(), EncodingError> {
        let shapes = [self.shape.clone(), self.numbers_shape()];
        shapes
            .into_iter()
            .find(|shape| !is_shape(shape))
            .map_or(Ok(()), |got| Err(EncodingError::Axes { got }))
    }
}
