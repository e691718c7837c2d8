//! Lanes of many bits, one in a coefficient: how a slot's bytes become coefficients, and the pad over them.

use blindcore_math::{MaskSeed, lanes};
use blindcore_rlwe::rounding::packed_bytes;

/// The pads of stored polynomials, as [`super::Pads`], and slots, in lanes of any number of bits up to 57.
pub(in crate::schemes) struct WidePads {
    seed: MaskSeed,
    bits: u32,
}

impl WidePads {
    pub(in crate::schemes) fn new(seed: [u8; 32], bits: u32) -> Self {
        Self { seed: MaskSeed(seed), bits }
    }

    /// The pad of polynomial `number`, of as many coefficients as `out` takes. The time depends on nothing else.
    pub(in crate::schemes) fn of(&self, number: u64, out: &mut [u64]) {
        let mut bytes = vec![0; packed_bytes(out.len(), self.bits)];
        self.seed.bytes(number, &mut bytes);
        lanes::unpack(&bytes, self.bits, out);
    }

    /// Lanes of a slot's part, as many as `out` takes; beyond the bytes they are zeros.
    pub(in crate::schemes) fn spread(&self, bytes: &[u8], out: &mut [u64]) {
        lanes::unpack(bytes, self.bits, out);
    }
}

#[cfg(test)]
mod tests {
    use blindcore_rlwe::rounding::{pack, unpack};

    use super::*;

    #[test]
    fn lanes_are_those_that_pack_into_the_bytes() {
        for bits in [11, 30, 48] {
            let pads = WidePads::new([5; 32], bits);
            for length in [0usize, 1, 2, 10, 15, 256, 261] {
                let bytes: Vec<u8> = (0..length).map(|i| (i * 37 + 11) as u8).collect();
                let count = (8 * length).div_ceil(bits as usize);
                let mut lanes = vec![7; count + 9];
                pads.spread(&bytes, &mut lanes);
                let mut back = Vec::new();
                pack(&lanes[..count], bits, &mut back);
                assert!(back[..length] == bytes[..] && back[length..].iter().all(|byte| *byte == 0));
                assert!(lanes[count..].iter().all(|lane| *lane == 0));
            }
        }
    }

    #[test]
    fn pads_are_those_of_their_number() {
        let pads = WidePads::new([5; 32], 30);
        let [mut a, mut b] = [[0; 4096]; 2];
        pads.of(3, &mut a);
        pads.of(4, &mut b);
        assert!(a != b && a.iter().all(|lane| *lane < 1 << 30));
        let mut bytes = [0; 4096 / 8 * 30];
        MaskSeed([5; 32]).bytes(3, &mut bytes);
        assert!(unpack(&bytes, 30).eq(a));
        // Lanes are used alike.
        let mean = a.iter().chain(&b).map(|lane| *lane as f64).sum::<f64>() / 8192.0 / f64::from(1 << 29);
        assert!((mean - 1.0).abs() < 0.04, "{mean}");
    }
}
