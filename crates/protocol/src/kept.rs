//! A hint in memory, and one that was checked.

use std::sync::Arc;

use blindcore_wire::{PartDescription, PartKind};

/// Bytes of a hint, the roots of proofs behind it, aligned for 32-bit words.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Hint {
    words: Vec<u32>,
    bytes: usize,
}

impl Hint {
    /// Zeros, to be filled through [`Hint::as_mut`].
    #[must_use]
    pub fn zeroed(bytes: usize) -> Self {
        Self { words: vec![0; bytes.div_ceil(4)], bytes }
    }

    /// Appends a piece.
    pub fn push(&mut self, piece: &[u8]) {
        let at = self.bytes;
        self.bytes += piece.len();
        self.words.resize(self.bytes.div_ceil(4), 0);
        self.as_mut()[at..].copy_from_slice(piece);
    }
}

impl AsRef<[u8]> for Hint {
    fn as_ref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }
}

impl AsMut<[u8]> for Hint {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.bytes]
    }
}

/// A hint that was checked against its part's digest: what [`crate::Table::keep`] takes.
#[derive(Clone)]
pub struct Kept {
    pub(crate) kind: PartKind,
    pub(crate) part: PartDescription,
    pub(crate) hint: Arc<Hint>,
}

pub(crate) fn digest(hint: &Hint) -> [u8; 32] {
    *blake3::hash(hint.as_ref()).as_bytes()
}
