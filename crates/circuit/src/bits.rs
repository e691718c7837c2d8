//! A bit for each gate or wire of circuits that have many.

/// Bits, all clear at first.
#[derive(Clone, Debug)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub(crate) fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    #[inline]
    pub(crate) fn get(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }

    #[inline]
    pub(crate) fn set(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }

    #[inline]
    pub(crate) fn clear(&mut self, i: usize) {
        self.0[i / 64] &= !(1 << (i % 64));
    }

    /// The 64 bits from this one on, which is the first of them.
    #[inline]
    pub(crate) fn word(&self, i: usize) -> u64 {
        debug_assert!(i.is_multiple_of(64));
        self.0[i / 64]
    }

    /// Makes the 64 bits from this one on these.
    #[inline]
    pub(crate) fn set_word(&mut self, i: usize, bits: u64) {
        debug_assert!(i.is_multiple_of(64));
        self.0[i / 64] = bits;
    }

    /// Counts of what is set, for [`Ranks::of`].
    pub(crate) fn ranks(&self) -> Ranks {
        let counts = self.0.iter().scan(0, |sum, word| {
            let before = *sum;
            *sum += word.count_ones();
            Some(before)
        });
        Ranks(counts.collect())
    }
}

/// How many bits are set before each word.
pub(crate) struct Ranks(Vec<u32>);

impl Ranks {
    /// How many bits are set before this one.
    #[inline]
    pub(crate) fn of(&self, bits: &Bits, i: usize) -> usize {
        let below = bits.0[i / 64] & ((1 << (i % 64)) - 1);
        self.0[i / 64] as usize + below.count_ones() as usize
    }
}
