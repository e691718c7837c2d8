//! The client's side, the same for both schemes.

use std::sync::Arc;

use blindcore_math::{Gaussian, LWE_DIMENSION, PublicMatrix, SecretRng, dot};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::params::{DELTA_LOG2, Geometry, PLAINTEXT_MODULUS, Params, SIGMA, Scheme};
use crate::{Error, constant_time, double, simple};

/// The hint, shared and perhaps mapped from a file.
pub(crate) type Hint = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A client of one table: its parameters and its hint.
pub struct Client {
    params: Params,
    hint: Hint,
}

/// What a lookup picks: columns, whose sum modulo 256 it fetches, and one group of them. It is the secret.
#[derive(Clone, ZeroizeOnDrop)]
pub struct Selection {
    pub(crate) columns: Vec<u32>,
    pub(crate) group: u32,
}

impl Selection {
    /// Record `index` of a table whose records lie group after group.
    ///
    /// # Errors
    /// There is no such slot.
    pub fn index(geometry: &Geometry, index: u64) -> Result<Self, Error> {
        if index >= geometry.slots() {
            let max = geometry.slots() - 1;
            let remedy = "ask for a row that is there";
            return Err(Error::Range { what: "row index", got: index, min: 0, max, remedy });
        }
        let (group, column) = constant_time::divide(index, geometry.columns as u64);
        Ok(Self { columns: vec![column as u32], group: group as u32 })
    }

    pub(crate) fn new(columns: Vec<u32>, group: u32) -> Self {
        Self { columns, group }
    }
}

/// The part of a query that no lookup's target enters: made ahead, used once.
pub struct Prepared {
    pub(crate) levels: Vec<Sample>,
    /// Hint times the secret that the hint's level was made with.
    pub(crate) hint_product: Zeroizing<Vec<u32>>,
}

/// What decoding needs of a query. Wiped on drop.
pub struct Pending {
    pub(crate) levels: Vec<Sample>,
    pub(crate) hint_product: Zeroizing<Vec<u32>>,
    pub(crate) group: Zeroizing<u32>,
}

/// A learning-with-errors sample under a secret of its own.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Sample {
    pub(crate) secret: Vec<u32>,
    /// Public matrix times secret plus errors; moves out when the query is sent.
    pub(crate) masked: Vec<u32>,
    /// 128 times the sum of the errors: what centring the entries at 0 takes off an answer.
    pub(crate) centring: u32,
}

impl Sample {
    fn new(rng: &mut SecretRng, gaussian: &Gaussian, matrix: &PublicMatrix, len: usize) -> Self {
        let mut secret = vec![0u32; LWE_DIMENSION];
        rng.fill_u32(&mut secret);
        let mut errors = Zeroizing::new(vec![0u32; len]);
        gaussian.fill(rng, &mut errors);
        let mut masked = vec![0u32; len];
        matrix.mul(0, &secret, &mut masked);
        let mut sum = 0u32;
        for (m, e) in masked.iter_mut().zip(errors.iter()) {
            *m = m.wrapping_add(*e);
            sum = sum.wrapping_add(*e);
        }
        Self { secret, masked, centring: sum.wrapping_mul(PLAINTEXT_MODULUS / 2) }
    }

    /// A sample of its own randomness.
    #[cfg(test)]
    pub(crate) fn fresh(matrix: &PublicMatrix, len: usize) -> Result<Self, Error> {
        Ok(Self::new(&mut SecretRng::from_os()?, &Gaussian::new(SIGMA * SIGMA), matrix, len))
    }

    /// Adds Delta at each position, touching every word alike.
    fn select(&mut self, positions: &[u32]) {
        for (i, m) in self.masked.iter_mut().enumerate() {
            let hits =
                positions.iter().fold(0u32, |n, p| n.wrapping_sub(constant_time::equal_mask(i as u32, *p)));
            *m = m.wrapping_add(hits << DELTA_LOG2);
        }
    }
}

impl Client {
    /// A client with its hint: [`Params::hint_words`] little-endian words, used where they lie if they are
    /// 4-byte aligned and copied once if not.
    ///
    /// # Errors
    /// The hint has another length.
    pub fn new(params: Params, hint: Hint) -> Result<Self, Error> {
        let (got, want) = ((*hint).as_ref().len(), 4 * params.hint_words());
        if got != want {
            let remedy = "fetch the hint of this epoch again";
            return Err(Error::Length { what: "hint", got, want, remedy });
        }
        let hint = match bytemuck::try_cast_slice::<u8, u32>((*hint).as_ref()) {
            Ok(_) => hint,
            Err(_) => {
                let words: Vec<u32> =
                    (*hint).as_ref().as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b)).collect();
                Arc::new(Words(words))
            }
        };
        Ok(Self { params, hint })
    }

    /// The parameters.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.params
    }

    fn hint(&self) -> &[u32] {
        bytemuck::cast_slice((*self.hint).as_ref())
    }

    /// Makes everything of a query that its target does not enter: fresh secrets, their products with the
    /// public matrix and the hint. This is the client's work; it can be done while nobody waits.
    ///
    /// # Errors
    /// The operating system gives no randomness.
    pub fn prepare(&self) -> Result<Prepared, Error> {
        let mut rng = SecretRng::from_os()?;
        let gaussian = Gaussian::new(SIGMA * SIGMA);
        let geometry = &self.params.geometry;
        let lengths: &[usize] = match self.params.scheme {
            Scheme::Simple => &[geometry.columns],
            Scheme::Double => &[geometry.columns, geometry.groups],
        };
        let levels: Vec<Sample> = lengths
            .iter()
            .enumerate()
            .map(|(level, len)| {
                Sample::new(&mut rng, &gaussian, &self.params.public_matrix(level as u8), *len)
            })
            .collect();
        let last = levels.last().expect("a scheme has a level");
        let product = self.hint().chunks_exact(LWE_DIMENSION).map(|row| dot(row, &last.secret)).collect();
        Ok(Prepared { levels, hint_product: Zeroizing::new(product) })
    }

    /// Turns a prepared query into one for `selection`. The bytes are [`Params::query_bytes`] long and
    /// indistinguishable from random whatever is selected; a prepared query is used up.
    ///
    /// # Errors
    /// The selection lies outside the matrix.
    pub fn query(&self, prepared: Prepared, selection: &Selection) -> Result<(Vec<u8>, Pending), Error> {
        let Geometry { groups, columns, .. } = self.params.geometry;
        let inside = selection.columns.iter().fold(true, |ok, c| ok & ((*c as usize) < columns))
            & ((selection.group as usize) < groups);
        if !inside {
            let remedy = "select with this table's own geometry";
            let max = columns as u64 - 1;
            return Err(Error::Range { what: "selected column", got: columns as u64, min: 0, max, remedy });
        }
        let Prepared { mut levels, hint_product } = prepared;
        levels[0].select(&selection.columns);
        if let Some(second) = levels.get_mut(1) {
            second.select(&[selection.group]);
        }
        let mut query = Vec::with_capacity(self.params.query_bytes());
        for level in &mut levels {
            // Public from here on: it is what the server sees.
            for word in std::mem::take(&mut level.masked) {
                query.extend_from_slice(&word.to_le_bytes());
            }
        }
        Ok((query, Pending { levels, hint_product, group: Zeroizing::new(selection.group) }))
    }

    /// The slot that an answer holds: [`Geometry::record_bytes`] bytes, right unless the server lied or one
    /// of 2^40 honest lookups failed. There is no way to tell from here, and callers must not let a server
    /// see which: what comes out of a keyword lookup is a record or "not there".
    ///
    /// # Errors
    /// The answer has the wrong length, which the server knows already.
    pub fn decode(&self, pending: Pending, answer: &[u8]) -> Result<Zeroizing<Vec<u8>>, Error> {
        let (got, want) = (answer.len(), self.params.answer_bytes());
        if got != want {
            let remedy = "the server does not follow the protocol; don't ask it again";
            return Err(Error::Length { what: "answer", got, want, remedy });
        }
        Ok(Zeroizing::new(match self.params.scheme {
            Scheme::Simple => simple::decode(&self.params, &pending, answer),
            Scheme::Double => double::decode(&self.params, &pending, answer),
        }))
    }
}

struct Words(Vec<u32>);

impl AsRef<[u8]> for Words {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// The byte that a decrypted word rounds to.
#[inline(always)]
pub(crate) fn round(noisy: u32) -> u8 {
    (noisy.wrapping_add(1 << (DELTA_LOG2 - 1)) >> DELTA_LOG2) as u8
}
