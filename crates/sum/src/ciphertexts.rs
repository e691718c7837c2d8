//! Batches of ciphertexts under one key, with what is known of their plaintexts.
//!
//! A batch keeps its ciphertexts in the form of the device that works on them, so that one evaluation after another
//! costs no conversion; [`Ciphertexts::numbers`] gives the canonical numbers that files and decryption take. From
//! outside they come through [`Ciphertexts::accept`] alone, which checks each.

use blindcore_accel::bigmod::{Numbers, Residues};
use blindcore_files::OutOfRange;

use crate::encoding::{Bound, EncodingError, Form, Plaintexts};
use crate::keys::KeyId;
use crate::scheme::Encryptor;

/// Ciphertexts of one key, exponent and bound, in row-major order of a shape.
#[derive(Clone)]
pub struct Ciphertexts {
    pub(crate) key: KeyId,
    pub(crate) residues: Residues,
    pub(crate) form: Form,
}

impl Ciphertexts {
    /// Encrypts, with fresh randomness for each.
    ///
    /// # Errors
    /// The plaintexts are of another key, or randomness or the device failed.
    pub fn encrypt(encryptor: &Encryptor, plaintexts: &Plaintexts) -> Result<Self, EncodingError> {
        let want = encryptor.public().id();
        if plaintexts.key != want {
            return Err(EncodingError::Key { what: "what is encrypted", got: plaintexts.key, want });
        }
        let residues = encryptor.encrypt(&plaintexts.numbers)?;
        Ok(Self { key: want, residues, form: plaintexts.form.clone() })
    }

    /// Takes canonical ciphertexts from outside, of which `form` is said.
    ///
    /// What `form` says can't be checked here: if a plaintext is over its bound, decoding a result notices where it
    /// is out of that result's bound, and a sum may have wrapped.
    ///
    /// # Errors
    /// The form does not fit the key or the count; or a ciphertext is not between 0 and n^2 or not coprime to n.
    pub fn accept(encryptor: &Encryptor, numbers: &Numbers, form: Form) -> Result<Self, EncodingError> {
        let key = encryptor.public();
        form.check(key, numbers.len())?;
        Ok(Self { key: key.id(), residues: encryptor.accept(numbers)?, form })
    }

    /// The canonical numbers below n^2.
    ///
    /// # Errors
    /// The encryptor is another key's or device's.
    pub fn numbers(&self, encryptor: &Encryptor) -> Result<Numbers, EncodingError> {
        Ok(encryptor.bigmod().read(&self.residues)?)
    }

    /// The key that they are under.
    #[must_use]
    pub fn key(&self) -> KeyId {
        self.key
    }

    /// What is known of the plaintexts.
    #[must_use]
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// The shape of the batch; of packed numbers the first axis is of groups.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.form.shape
    }

    /// How many ciphertexts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.residues.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.residues.is_empty()
    }

    /// The same in another shape of as many.
    ///
    /// # Errors
    /// The shape has another number of elements; or moves the first axis of a packed batch, which is of groups.
    pub fn reshape(mut self, shape: &[usize]) -> Result<Self, EncodingError> {
        let count = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        let keeps_groups = self.form.packed.is_none() || shape.first() == self.form.shape.first();
        if count != Some(self.len()) || shape.is_empty() || !keeps_groups {
            let groups = if keeps_groups { "" } else { " that keeps the first axis" };
            let want = format!("one of {} ciphertexts{groups}", self.len());
            return Err(EncodingError::Shape { what: "the new shape", got: shape.to_vec(), want });
        }
        self.form.shape = shape.to_vec();
        Ok(self)
    }

    /// Those at `positions` along an axis, in that order.
    ///
    /// # Errors
    /// There is no such axis or position; or it is the axis of groups of a packed batch.
    pub fn select(&self, axis: usize, positions: &[usize]) -> Result<Self, EncodingError> {
        self.check_axis(axis)?;
        let shape = &self.form.shape;
        if let Some(&got) = positions.iter().find(|p| **p >= shape[axis]) {
            let max = (shape[axis] as u64).saturating_sub(1);
            let (what, remedy) = ("a position along the axis", "choose one that is there");
            return Err(OutOfRange { what, got: got as u64, min: 0, max, remedy }.into());
        }
        let inner: usize = shape[axis + 1..].iter().product();
        let outer: usize = shape[..axis].iter().product();
        let rows = (0..outer).flat_map(|o| positions.iter().map(move |p| o * shape[axis] + p));
        let residues = self.residues.select(rows.flat_map(|row| row * inner..(row + 1) * inner));
        let mut form = self.form.clone();
        form.shape[axis] = positions.len();
        Ok(Self { key: self.key, residues, form })
    }

    /// Those from `start` up to and without `end` along an axis.
    ///
    /// # Errors
    /// As [`Ciphertexts::select`].
    pub fn slice(&self, axis: usize, range: std::ops::Range<usize>) -> Result<Self, EncodingError> {
        self.check_axis(axis)?;
        if range.end > self.form.shape[axis] {
            let (got, max) = (range.end as u64, self.form.shape[axis] as u64);
            let (what, remedy) = ("the end of a slice", "end it within the axis");
            return Err(OutOfRange { what, got, min: 0, max, remedy }.into());
        }
        self.select(axis, &range.collect::<Vec<_>>())
    }

    /// One after the other along the first axis. The bound is the largest of theirs.
    ///
    /// # Errors
    /// There is none; or keys, exponents, other axes or packing differ; or they are packed.
    pub fn concatenate(parts: &[&Self]) -> Result<Self, EncodingError> {
        let Some((first, rest)) = parts.split_first() else {
            let (what, remedy) = ("the number of batches", "name at least one");
            return Err(OutOfRange { what, got: 0, min: 1, max: usize::MAX as u64, remedy }.into());
        };
        let mut out = (*first).clone();
        out.check_axis(0)?;
        for part in rest {
            out.check_key("a batch to append", part.key)?;
            if part.form.packed.is_some() || part.form.shape[1..] != out.form.shape[1..] {
                let want = format!("an unpacked one like {:?} but for the first axis", out.form.shape);
                return Err(EncodingError::Shape {
                    what: "a batch to append",
                    got: part.form.shape.clone(),
                    want,
                });
            }
            let (got, want) = (&part.form, &out.form);
            if (got.exponent, got.scale) != (want.exponent, want.scale) {
                return Err(EncodingError::Alignment {
                    got: (got.exponent, got.scale),
                    want: (want.exponent, want.scale),
                });
            }
            out.residues.append(&part.residues)?;
            out.form.shape[0] += part.form.shape[0];
            out.form.bound = out.form.bound.max(part.form.bound);
        }
        Ok(out)
    }

    /// The same with a larger bound, which hides how small the numbers, or the weights that made them, are known
    /// to be: bounds are public.
    ///
    /// # Errors
    /// It is smaller than theirs.
    pub fn loosen(mut self, bound: Bound) -> Result<Self, EncodingError> {
        if bound < self.form.bound {
            return Err(EncodingError::Loosen { got: bound, least: self.form.bound });
        }
        self.form.bound = bound;
        Ok(self)
    }

    pub(crate) fn check_key(&self, what: &'static str, got: KeyId) -> Result<(), EncodingError> {
        if got == self.key { Ok(()) } else { Err(EncodingError::Key { what, got, want: self.key }) }
    }

    fn check_axis(&self, axis: usize) -> Result<(), EncodingError> {
        let first = usize::from(self.form.packed.is_some());
        if (first..self.form.shape.len()).contains(&axis) {
            return Ok(());
        }
        let max = (self.form.shape.len() as u64).saturating_sub(1);
        let (what, remedy) =
            ("the axis", "choose another; samples of a packed batch lie together along axis 0");
        Err(OutOfRange { what, got: axis as u64, min: first as u64, max, remedy }.into())
    }
}
