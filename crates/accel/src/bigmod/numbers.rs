//! Batches of numbers.

use zeroize::{Zeroize, ZeroizeOnDrop};

/// Numbers of one length, 64-bit words, least significant first, one number after the other.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Numbers {
    words: usize,
    data: Vec<u64>,
}

impl Numbers {
    /// `count` zeros of `words` words each.
    #[must_use]
    pub fn zeroed(count: usize, words: usize) -> Self {
        Self { words, data: vec![0; count * words] }
    }

    /// Numbers from shorter or longer ones; what is cut off must be zero.
    ///
    /// # Panics
    /// A number does not fit `words` words.
    #[must_use]
    pub fn from_words<'a>(words: usize, numbers: impl IntoIterator<Item = &'a [u64]>) -> Self {
        let mut data = Vec::new();
        for number in numbers {
            let (low, high) = number.split_at(number.len().min(words));
            assert!(high.iter().all(|w| *w == 0), "a number of over {words} words");
            data.extend_from_slice(low);
            data.extend(std::iter::repeat_n(0, words - low.len()));
        }
        Self { words, data }
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.data.len().checked_div(self.words).unwrap_or(0)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Words of each.
    #[must_use]
    pub fn words(&self) -> usize {
        self.words
    }

    /// The number at `position`.
    #[must_use]
    pub fn get(&self, position: usize) -> &[u64] {
        &self.data[position * self.words..][..self.words]
    }

    /// The number at `position`, to be written.
    #[must_use]
    pub fn get_mut(&mut self, position: usize) -> &mut [u64] {
        &mut self.data[position * self.words..][..self.words]
    }

    /// One after the other.
    pub fn iter(&self) -> std::slice::ChunksExact<'_, u64> {
        self.data.chunks_exact(self.words.max(1))
    }

    /// All words.
    #[must_use]
    pub fn as_words(&self) -> &[u64] {
        &self.data
    }

    /// All words, to be written.
    #[must_use]
    pub fn as_words_mut(&mut self) -> &mut [u64] {
        &mut self.data
    }
}
