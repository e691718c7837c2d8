//! How slots add up.

/// How slots add up: their bytes are one number, least significant byte first, cut into lanes of this many bits, 8 at least, each of
/// which counts modulo its own power of two. A scheme's plaintexts say how many ([`crate::Params::lanes`]); with eight a lane is a
/// byte.
///
/// ```
/// use blindcore_lookup::keyword::Lanes;
///
/// // 255 + 1 carries into the next byte, but not out of the lane.
/// let mut lanes = Lanes(11).sums();
/// assert_eq!((lanes.next(&[255, 1], &[]), lanes.next(&[7, 0], &[])), (0, 0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes(pub u32);

impl Lanes {
    /// Sums of slots from their first byte on.
    #[must_use]
    pub fn sums(self) -> Sums {
        Sums { lane: self.0, bit: 0, carry: 0 }
    }
}

/// Sums of slots, byte after byte.
#[derive(Clone, Debug)]
pub struct Sums {
    lane: u32,
    /// Where in its lane the next byte begins.
    bit: u32,
    carry: i32,
}

impl Sums {
    /// The next byte of the sum of `plus` less `minus`, which have the next byte of each slot. The time depends on their number alone.
    pub fn next(&mut self, plus: &[u8], minus: &[u8]) -> u8 {
        // Bits of this byte that belong to the lane before the next one begins.
        let low = (self.lane - self.bit).min(8);
        let mask = (1i32 << low) - 1;
        let (mut below, mut above) = (self.carry, 0);
        for (sign, bytes) in [(1, plus), (-1, minus)] {
            for byte in bytes {
                below += sign * (i32::from(*byte) & mask);
                above += sign * (i32::from(*byte) >> low);
            }
        }
        self.carry = if low == 8 { below >> 8 } else { above >> (8 - low) };
        self.bit += 8;
        if self.bit >= self.lane {
            self.bit -= self.lane;
            // What a lane carries where it ends with its byte is lost.
            self.carry = if self.bit == 0 { 0 } else { self.carry };
        }
        ((below & mask) | (above << low)) as u8
    }
}
