//! Polynomials of a ring, by coefficients or by values.

use std::fmt;
use std::marker::PhantomData;

use zeroize::Zeroize;

mod sealed {
    pub trait Sealed {}
}

/// How a polynomial is written down: [`Coefficients`] or [`Values`].
pub trait Form: sealed::Sealed + Copy + 'static {}

/// A polynomial's words are its coefficients, the constant one first.
#[derive(Clone, Copy)]
pub enum Coefficients {}

/// A polynomial's words are its values at the roots of X^d + 1, in the transform's order ([`blindcore_math::ntt`]).
#[derive(Clone, Copy)]
pub enum Values {}

impl sealed::Sealed for Coefficients {}
impl sealed::Sealed for Values {}
impl Form for Coefficients {}
impl Form for Values {}

/// A polynomial of a [`crate::Ring`], in the form `F`: d residues modulo the first prime, then d modulo the next.
///
/// It does not know its ring; [`crate::Ring`]'s functions take it. What is secret is kept in a [`zeroize::Zeroizing`].
#[derive(Clone)]
pub struct Poly<F> {
    words: Vec<u64>,
    form: PhantomData<F>,
}

impl<F: Form> Poly<F> {
    /// From residues, prime after prime. The caller sees to it that each is below its prime.
    pub(crate) fn from_words(words: Vec<u64>) -> Self {
        Self { words, form: PhantomData }
    }

    /// The residues, prime after prime.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Moves the words out, and leaves none: out of a [`zeroize::Zeroizing`], what is no longer secret or is kept in another.
    pub(crate) fn take(&mut self) -> Self {
        Self::from_words(std::mem::take(&mut self.words))
    }

    pub(crate) fn into_words(self) -> Vec<u64> {
        self.words
    }
}

impl<F> Zeroize for Poly<F> {
    fn zeroize(&mut self) {
        self.words.zeroize();
    }
}

/// Says how long it is, and nothing of what it holds: it may be secret.
impl<F> fmt::Debug for Poly<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Poly({} words)", self.words.len())
    }
}
