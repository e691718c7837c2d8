//! Answers of odd widths: a ciphertext modulo one prime, of whose mask and body the upper bits are sent.

use blindcore_rlwe::rounding::{Rounding, pack, packed_bytes, unpack};
use blindcore_rlwe::{Pair, Ring};
use zeroize::Zeroizing;

use super::{LANE, LANE_BITS, Secret};

/// Bits that are sent of each coefficient of an answer's mask and body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::schemes) struct Widths {
    pub(in crate::schemes) mask: u32,
    pub(in crate::schemes) body: u32,
}

impl Widths {
    /// Bytes of an answer's part, whose body is sent of so many coefficients.
    pub(in crate::schemes) fn bytes(&self, degree: usize, window: usize) -> usize {
        packed_bytes(degree, self.mask) + packed_bytes(window, self.body)
    }

    /// Appends a ciphertext as it is sent: of the body only the window that the slot lies in.
    pub(in crate::schemes) fn round(&self, ring: &Ring, pair: &Pair, window: usize, answer: &mut Vec<u8>) {
        for (half, bits, kept) in [(&pair.mask, self.mask, ring.degree()), (&pair.body, self.body, window)] {
            let rounding = Rounding::new(ring.primes()[0], bits);
            let half = ring.inverse(half.clone());
            let words: Vec<u64> = half.words()[..kept].iter().map(|word| rounding.down(*word)).collect();
            pack(&words, bits, answer);
        }
    }

    /// The lanes of a part's window, in constant time. `ring` is the secret's, with one prime.
    pub(in crate::schemes) fn lanes(
        &self,
        ring: &Ring,
        secret: &Secret,
        answer: &[u8],
        window: usize,
    ) -> Zeroizing<Vec<u16>> {
        let (degree, q) = (ring.degree(), ring.modulus() as u64);
        let (mask, body) = answer.split_at(packed_bytes(degree, self.mask));
        let mask = unpack(mask, self.mask).take(degree).collect();
        let mut product = Zeroizing::new(ring.forward(ring.polynomial(mask).expect("narrower words")));
        ring.multiply(&mut product, secret.values());
        let product = Zeroizing::new(ring.inverse(std::mem::replace(&mut *product, ring.zero())));
        let bodies = unpack(body, self.body).take(window);
        // A sum of as many words as the degree is far below q / 2.
        let phase = |(body, product): (u64, &u64)| {
            (body << (self.mask - self.body)).wrapping_sub(signed(q, *product))
        };
        let step = self.mask - LANE_BITS;
        let lane = |phase: u64| (phase.wrapping_add(1 << (step - 1)) >> step) as u16 & LANE;
        Zeroizing::new(bodies.zip(product.words()).map(phase).map(lane).collect())
    }
}

/// A residue as a number, negative above half of q, modulo 2^64; in constant time.
fn signed(q: u64, residue: u64) -> u64 {
    let negative = ((q / 2).wrapping_sub(residue) as i64 >> 63) as u64;
    residue.wrapping_sub(q & negative)
}
