//! The width of an operand.

/// The width of an operand's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Word {
    /// 8 bits: the database of a learning-with-errors lookup.
    U8,
    /// 16 bits: the database of Aguilar-Melchor and Gaborit.
    U16,
    /// 32 bits: residues modulo 2^32 or a prime below it.
    U32,
    /// 40 bits: residues modulo a prime below 2^40, such as the polynomials of a lookup with registered keys. Canonical operands hold
    /// them in 64 bits.
    U40,
    /// 48 bits: residues modulo a prime below 2^48, such as the packing tables of a lookup without a hint. Canonical operands
    /// hold them in 64 bits.
    U48,
    /// 64 bits: residues modulo 2^64 or a prime below 2^62.
    U64,
}

impl Word {
    /// Bytes in a word.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Word::U8 => 1,
            Word::U16 => 2,
            Word::U32 => 4,
            Word::U40 => 5,
            Word::U48 => 6,
            Word::U64 => 8,
        }
    }

    /// The word that canonical operands hold this one in: itself, but for 40 and 48 bits.
    #[must_use]
    pub fn canonical(self) -> Self {
        if matches!(self, Word::U40 | Word::U48) { Word::U64 } else { self }
    }

    /// The largest value a word holds.
    #[must_use]
    pub fn max(self) -> u64 {
        u64::MAX >> (64 - 8 * self.bytes())
    }
}
