//! Public uniform polynomials, expanded from a seed and never stored.

use chacha20::cipher::{KeyIvInit, StreamCipher};

use crate::Prime;

/// The seed of public polynomials, the masks of ring ciphertexts. It is not secret; whoever draws it draws it fresh, so that
/// nobody can have aimed data at what it expands to.
///
/// The polynomial with number `n` is the ChaCha20 keystream under the seed as key and `n` as nonce (little-endian, in 12 bytes),
/// read as little-endian words of 64 bits, cut to the bits of q - 1, less those that are q or more.
///
/// ```
/// use blindcore_math::{MaskSeed, Prime};
///
/// let q = Prime::new(65_537)?;
/// let mut mask = [0; 1024];
/// MaskSeed([7; 32]).polynomial(1, q, &mut mask);
/// assert!(mask.iter().all(|&word| word < 65_537));
/// # Ok::<(), blindcore_math::ModulusError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MaskSeed(pub [u8; 32]);

impl MaskSeed {
    /// Fills `out` with the bytes that number `number` stands for: the keystream itself, for who wants no residues.
    pub fn bytes(&self, number: u64, out: &mut [u8]) {
        out.fill(0);
        self.stream(number).apply_keystream(out);
    }

    fn stream(&self, number: u64) -> chacha20::ChaCha20 {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&number.to_le_bytes());
        chacha20::ChaCha20::new(&self.0.into(), &nonce.into())
    }

    /// Fills `out` with the residues of polynomial `number`: its coefficients or its values, which are uniform alike. Two
    /// ciphertexts of one secret need two numbers or two seeds.
    pub fn polynomial(&self, number: u64, prime: Prime, out: &mut [u64]) {
        /// Bytes that are expanded at a time.
        const CHUNK: usize = 4096;
        let mut stream = self.stream(number);
        let bits = u64::MAX >> (prime.value() - 1).leading_zeros();
        let (mut filled, mut bytes) = (0, [0; CHUNK]);
        while filled < out.len() {
            bytes.fill(0);
            stream.apply_keystream(&mut bytes);
            let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word) & bits);
            for (out, word) in out[filled..].iter_mut().zip(words.filter(|&word| word < prime.value())) {
                *out = word;
                filled += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_are_those_that_are_documented() {
        for q in [2, 3, 65_537, (1 << 46) - 21, (1 << 62) - 57] {
            let prime = Prime::new(q).unwrap();
            for number in [0, 1, u64::MAX] {
                let seed = MaskSeed([9; 32]);
                let mut nonce = [0; 12];
                nonce[..8].copy_from_slice(&number.to_le_bytes());
                let mut bytes = vec![0; 64_000];
                chacha20::ChaCha20::new(&seed.0.into(), &nonce.into()).apply_keystream(&mut bytes);
                let mut same = vec![1; 999];
                seed.bytes(number, &mut same);
                assert!(same == bytes[..999]);
                let mask = if q == 2 { 1 } else { (1 << (64 - (q - 1).leading_zeros())) - 1 };
                let all = bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()) & mask);
                let want: Vec<u64> = all.filter(|&word| word < q).take(2500).collect();
                for length in [0, 1, 511, 2500] {
                    let mut out = vec![u64::MAX; length];
                    seed.polynomial(number, prime, &mut out);
                    assert_eq!(out, want[..length], "{q}, polynomial {number}");
                }
            }
        }
    }

    /// Kept, because databases will depend on it; computed by `openssl enc -chacha20`.
    #[test]
    fn polynomials_stay() {
        let mut out = [0; 4];
        MaskSeed([1; 32]).polynomial(2, Prime::new(65_537).unwrap(), &mut out);
        assert_eq!(out, [42147, 33188, 28362, 29639]);
    }

    #[test]
    fn numbers_and_seeds_are_apart() {
        let prime = Prime::new(65_537).unwrap();
        let of = |seed, number| {
            let mut out = [0; 32];
            MaskSeed([seed; 32]).polynomial(number, prime, &mut out);
            out
        };
        assert!(of(1, 1) != of(1, 2) && of(1, 1) != of(2, 1) && of(1, 1) == of(1, 1));
    }
}
