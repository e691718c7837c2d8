//! Lanes of eleven bits: how a slot's bytes become coefficients, and the pad over them.
//!
//! ```text
//!   bytes  0        1        2        ...      10        as one number, least significant byte first
//!   lanes  [ 0: bits 0 to 10 ][ 1: bits 11 to 21 ] ... [ 7: bits 77 to 87 ]
//! ```

use blindcore_math::{MaskSeed, lanes};

/// Bits of a coefficient of the plaintext: p = 2^11, or more. Slots that lie in lanes of so many bits add up lane by lane.
pub(in crate::schemes) const LANE_BITS: u32 = 11;
/// Bytes that eight lanes fill.
pub(in crate::schemes) const EIGHT_LANES: usize = LANE_BITS as usize;

/// A lane's largest number, as a mask.
pub(in crate::schemes) const LANE: u16 = (1 << LANE_BITS) - 1;

/// Lanes of a slot's part or of a pad, as many as `out` takes; beyond the bytes they are zeros.
pub(in crate::schemes) fn spread(bytes: &[u8], out: &mut [u16]) {
    lanes::unpack_short(bytes, LANE_BITS, out);
}

/// The pad of a stored polynomial: uniform lanes that whoever has the seed can repeat. The seed is public; it is drawn when the
/// records are fixed, so that none can have been aimed at what the polynomials become.
pub(in crate::schemes) struct Pads(MaskSeed);

impl Pads {
    pub(in crate::schemes) fn new(seed: [u8; 32]) -> Self {
        Self(MaskSeed(seed))
    }

    /// The pad of polynomial `number`, of as many coefficients as `out` takes: 4096 at most. The time depends on nothing else.
    pub(in crate::schemes) fn of(&self, number: u64, out: &mut [u16]) {
        let mut bytes = [0; 4096 / 8 * EIGHT_LANES];
        let bytes = &mut bytes[..out.len() / 8 * EIGHT_LANES];
        self.0.bytes(number, bytes);
        spread(bytes, out);
    }
}

#[cfg(test)]
mod tests {
    use blindcore_rlwe::rounding::{pack, packed_bytes, unpack};

    use super::*;

    const DEGREE: usize = 2048;

    #[test]
    fn lanes_are_those_that_pack_into_the_bytes() {
        for length in [0usize, 1, 2, 10, 11, 12, 23, 256, 261] {
            let bytes: Vec<u8> = (0..length).map(|i| (i * 37 + 11) as u8).collect();
            let count = (8 * length).div_ceil(LANE_BITS as usize);
            for room in [count, count + 9, count + 16] {
                let mut lanes = vec![7; room];
                spread(&bytes, &mut lanes);
                let words: Vec<u64> = lanes.iter().map(|lane| u64::from(*lane)).collect();
                let mut back = Vec::new();
                pack(&words[..count], LANE_BITS, &mut back);
                assert_eq!(back.len(), packed_bytes(count, LANE_BITS));
                assert!(
                    back[..length] == bytes[..] && back[length..].iter().all(|byte| *byte == 0),
                    "{length}"
                );
                assert!(lanes[count..].iter().all(|lane| *lane == 0));
            }
        }
    }

    #[test]
    fn pads_are_those_of_their_number() {
        let pads = Pads::new([5; 32]);
        let [mut a, mut b] = [[0; DEGREE]; 2];
        pads.of(3, &mut a);
        pads.of(4, &mut b);
        assert!(a != b && a.iter().all(|lane| *lane <= LANE));
        let mut bytes = [0; DEGREE / 8 * EIGHT_LANES];
        MaskSeed([5; 32]).bytes(3, &mut bytes);
        assert!(unpack(&bytes, LANE_BITS).take(DEGREE).eq(a.iter().map(|lane| u64::from(*lane))));
        // Lanes are used alike.
        let mean = a.iter().chain(&b).map(|lane| f64::from(*lane)).sum::<f64>() / (2.0 * DEGREE as f64);
        assert!((mean - 1023.5).abs() < 60.0, "{mean}");
    }
}
