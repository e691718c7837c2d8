//! Memory that stays from one pass to the next.

use std::sync::{Mutex, PoisonError};

/// Vectors of finished passes, kept for later ones: `most` bytes at most. The allocator returns long vectors to the system when they
/// are dropped, and getting such memory back takes longer than writing to it.
pub(crate) struct Spare {
    most: usize,
    vectors: Mutex<Vec<Vec<u64>>>,
}

impl Spare {
    pub(crate) const fn new(most: usize) -> Self {
        Self { most, vectors: Mutex::new(Vec::new()) }
    }

    /// A vector with what was left in it, or an empty one.
    pub(crate) fn take(&self) -> Vec<u64> {
        self.vectors.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Takes it back.
    pub(crate) fn keep(&self, vector: Vec<u64>) {
        let bytes = |vector: &Vec<u64>| vector.capacity() * size_of::<u64>();
        let mut vectors = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        if vectors.iter().map(bytes).sum::<usize>() + bytes(&vector) <= self.most {
            vectors.push(vector);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_kept_than_may_be() {
        let spare = Spare::new(64);
        assert!(spare.take().is_empty());
        for len in [4, 4, 4] {
            spare.keep(Vec::with_capacity(len));
        }
        let kept: Vec<usize> = [0; 3].map(|_| spare.take().capacity()).to_vec();
        assert_eq!(kept, [4, 4, 0]);
    }
}
