//! Operands: words of one width, in the canonical order of their operation.

use std::ops::Range;

use crate::{Error, Word};

/// An operand or a result: words of one width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Words {
    /// 8-bit words.
    U8(Vec<u8>),
    /// 16-bit words.
    U16(Vec<u16>),
    /// 32-bit words.
    U32(Vec<u32>),
    /// 64-bit words.
    U64(Vec<u64>),
}

impl Words {
    /// `len` zero words.
    #[must_use]
    pub fn zeros(word: Word, len: usize) -> Self {
        match word {
            Word::U8 => Words::U8(vec![0; len]),
            Word::U16 => Words::U16(vec![0; len]),
            Word::U32 => Words::U32(vec![0; len]),
            Word::U40 | Word::U48 | Word::U64 => Words::U64(vec![0; len]),
        }
    }

    /// Words made one by one; values are truncated to the width. Those of 40 and 48 bits are held in 64.
    pub fn from_fn(word: Word, len: usize, mut f: impl FnMut(usize) -> u64) -> Self {
        match word {
            Word::U8 => Words::U8((0..len).map(|i| f(i) as u8).collect()),
            Word::U16 => Words::U16((0..len).map(|i| f(i) as u16).collect()),
            Word::U32 => Words::U32((0..len).map(|i| f(i) as u32).collect()),
            Word::U40 | Word::U48 => Words::U64((0..len).map(|i| f(i) & word.max()).collect()),
            Word::U64 => Words::U64((0..len).map(f).collect()),
        }
    }

    /// Takes the words out and leaves none.
    #[must_use]
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Words::U8(Vec::new()))
    }

    /// Drops all but the first `len` words.
    pub fn truncate(&mut self, len: usize) {
        match self {
            Words::U8(words) => words.truncate(len),
            Words::U16(words) => words.truncate(len),
            Words::U32(words) => words.truncate(len),
            Words::U64(words) => words.truncate(len),
        }
    }

    /// The words at these places, one range after another.
    ///
    /// # Panics
    /// A range is not within them.
    #[must_use]
    pub fn joined(&self, places: impl Iterator<Item = Range<usize>>) -> Self {
        fn join<T: Copy>(words: &[T], places: impl Iterator<Item = Range<usize>>) -> Vec<T> {
            places.flat_map(|place| words[place].iter().copied()).collect()
        }
        match self {
            Words::U8(words) => Words::U8(join(words, places)),
            Words::U16(words) => Words::U16(join(words, places)),
            Words::U32(words) => Words::U32(join(words, places)),
            Words::U64(words) => Words::U64(join(words, places)),
        }
    }

    /// The width.
    #[must_use]
    pub fn word(&self) -> Word {
        match self {
            Words::U8(_) => Word::U8,
            Words::U16(_) => Word::U16,
            Words::U32(_) => Word::U32,
            Words::U64(_) => Word::U64,
        }
    }

    /// How many words.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Words::U8(v) => v.len(),
            Words::U16(v) => v.len(),
            Words::U32(v) => v.len(),
            Words::U64(v) => v.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Word `i`, widened.
    ///
    /// # Panics
    /// `i` is out of range.
    #[must_use]
    pub fn get(&self, i: usize) -> u64 {
        match self {
            Words::U8(v) => v[i].into(),
            Words::U16(v) => v[i].into(),
            Words::U32(v) => v[i].into(),
            Words::U64(v) => v[i],
        }
    }

    /// The largest of some words, widened; 0 of none.
    ///
    /// # Panics
    /// The range reaches over the words.
    #[must_use]
    pub(crate) fn largest(&self, range: std::ops::Range<usize>) -> u64 {
        match self {
            Words::U8(v) => v[range].iter().max().map_or(0, |word| u64::from(*word)),
            Words::U16(v) => v[range].iter().max().map_or(0, |word| u64::from(*word)),
            Words::U32(v) => v[range].iter().max().map_or(0, |word| u64::from(*word)),
            Words::U64(v) => v[range].iter().max().copied().unwrap_or(0),
        }
    }

    /// The 32-bit words.
    ///
    /// # Errors
    /// The words have another width.
    pub fn as_u32(&self) -> Result<&[u32], Error> {
        match self {
            Words::U32(v) => Ok(v),
            other => Err(Error::WordWidth { what: "operand", got: other.word(), want: Word::U32 }),
        }
    }

    /// The 32-bit words, by value.
    ///
    /// # Errors
    /// The words have another width.
    pub fn into_u32(self) -> Result<Vec<u32>, Error> {
        match self {
            Words::U32(v) => Ok(v),
            other => Err(Error::WordWidth { what: "operand", got: other.word(), want: Word::U32 }),
        }
    }

    /// The 64-bit words.
    ///
    /// # Errors
    /// The words have another width.
    pub fn as_u64(&self) -> Result<&[u64], Error> {
        match self {
            Words::U64(v) => Ok(v),
            other => Err(Error::WordWidth { what: "operand", got: other.word(), want: Word::U64 }),
        }
    }

    /// The 64-bit words, by value.
    ///
    /// # Errors
    /// The words have another width.
    pub fn into_u64(self) -> Result<Vec<u64>, Error> {
        match self {
            Words::U64(v) => Ok(v),
            other => Err(Error::WordWidth { what: "operand", got: other.word(), want: Word::U64 }),
        }
    }
}
