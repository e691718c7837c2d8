//! What residues are taken modulo.

use crypto_bigint::{BoxedUint, ConcatenatingSquare};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::Error;

/// The largest modulus, in bits.
pub const MAX_BITS: u32 = 8192;

/// What residues are taken modulo: an odd number above one, or the square of one.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct BigModulus {
    root: Vec<u64>,
    value: Vec<u64>,
    square: bool,
}

impl BigModulus {
    /// An odd number above one, of at most [`MAX_BITS`] bits.
    ///
    /// # Errors
    /// It is even, one, or too long.
    pub fn odd(words: &[u64]) -> Result<Self, Error> {
        let root = trim(words);
        check(&root, MAX_BITS)?;
        Ok(Self { value: root.clone(), root, square: false })
    }

    /// The square of an odd number above one, of at most half of [`MAX_BITS`] bits.
    ///
    /// # Errors
    /// The root is even, one, or too long.
    pub fn square_of(root: &[u64]) -> Result<Self, Error> {
        let root = trim(root);
        check(&root, MAX_BITS / 2)?;
        let n = BoxedUint::from_words(root.iter().copied());
        let value = trim(n.concatenating_square().as_words());
        Ok(Self { root, value, square: true })
    }

    /// The modulus, without leading zero words.
    #[must_use]
    pub fn value(&self) -> &[u64] {
        &self.value
    }

    /// The number that it is the square of, or itself.
    #[must_use]
    pub fn root(&self) -> &[u64] {
        &self.root
    }

    /// Whether it was made by [`BigModulus::square_of`].
    #[must_use]
    pub fn is_square(&self) -> bool {
        self.square
    }

    /// Its length in words: that of its residues.
    #[must_use]
    pub fn words(&self) -> usize {
        self.value.len()
    }

    /// Its length in bits.
    #[must_use]
    pub fn bits(&self) -> u32 {
        bits(&self.value)
    }
}

pub(super) fn trim(words: &[u64]) -> Vec<u64> {
    let used = words.iter().rposition(|w| *w != 0).map_or(0, |i| i + 1);
    words[..used].to_vec()
}

pub(super) fn bits(words: &[u64]) -> u32 {
    words.last().map_or(0, |top| 64 * words.len() as u32 - top.leading_zeros())
}

fn check(words: &[u64], limit: u32) -> Result<(), Error> {
    let refuse = |why: String| Err(Error::Modulus { why });
    match words {
        [] | [1] => refuse("it is not above one".into()),
        [low, ..] if low % 2 == 0 => refuse("it is even; Montgomery's form asks for an odd one".into()),
        _ if bits(words) > limit => {
            refuse(format!("it has {} bits where at most {limit} are carried", bits(words)))
        }
        _ => Ok(()),
    }
}
