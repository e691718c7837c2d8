//! A bit for each gate or wire of circuits that have many.

/// A bit for each gate or wire of a circuit, all clear at first. All of its functions panic past the last bit.
#[derive(Clone, Debug, Default)]
pub struct Bits(Vec<u64>);

impl Bits {
    /// This many bits, rounded up to a word.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    /// Appends 64 bits that are clear.
    #[inline]
    pub fn append_word(&mut self) {
        self.0.push(0);
    }

    /// Whether a bit is set.
    #[inline]
    #[must_use]
    pub fn get(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }

    /// Sets a bit.
    #[inline]
    pub fn set(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }

    /// Clears a bit.
    #[inline]
    pub fn clear(&mut self, i: usize) {
        self.0[i / 64] &= !(1 << (i % 64));
    }

    /// The 64 bits from this one on, which is the first of them.
    #[inline]
    #[must_use]
    pub fn word(&self, i: usize) -> u64 {
        debug_assert!(i.is_multiple_of(64));
        self.0[i / 64]
    }

    /// Makes the 64 bits from this one on these.
    #[inline]
    pub fn set_word(&mut self, i: usize, bits: u64) {
        debug_assert!(i.is_multiple_of(64));
        self.0[i / 64] = bits;
    }

    /// How many bits are set.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the first `count` bits are set.
    #[must_use]
    pub fn all(&self, count: usize) -> bool {
        let (words, rest) = (&self.0[..count / 64], count % 64);
        words.iter().all(|word| *word == u64::MAX)
            && (rest == 0 || self.0[count / 64].trailing_ones() >= rest as u32)
    }

    /// Counts of what is set, for [`Ranks::of`].
    #[must_use]
    pub fn ranks(&self) -> Ranks {
        let counts = self.0.iter().scan(0, |sum, word| {
            let before = *sum;
            *sum += word.count_ones();
            Some(before)
        });
        Ranks(counts.collect())
    }
}

/// How many bits are set before each word.
#[derive(Clone, Debug)]
pub struct Ranks(Vec<u32>);

impl Ranks {
    /// How many of these bits are set before this one.
    #[inline]
    #[must_use]
    pub fn of(&self, bits: &Bits, i: usize) -> usize {
        let below = bits.0[i / 64] & ((1 << (i % 64)) - 1);
        self.0[i / 64] as usize + below.count_ones() as usize
    }
}
