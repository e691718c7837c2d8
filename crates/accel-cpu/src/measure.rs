//! What kernels are measured against: the machine's streaming read, and the plain loop of a peer.

use blindcore_math::features::{Aes, Vaes};
#[cfg(target_arch = "x86_64")]
use blindcore_math::features::{Avx2, Avx512, Ifma};

use crate::arch;
use crate::arch::vector::measure::packed_product_generic;
use crate::isa::Features;

/// Reads `bytes` once, as fast as this machine can in this way, and returns the wrapping sum of its 64-bit words
/// (a tail of less than 8 bytes is left out).
#[must_use]
pub fn streaming_read(bytes: &[u8], streams: Streams) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = Avx512::new() {
        return arch::avx512::measure::streaming_read(token, bytes, streams);
    }
    let _ = streams;
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().fold(0u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)))
}

/// Multiplies and adds words of 52 bits, 1024 times `steps` of them, sixteen vectors that do not wait for each other: the limit that
/// transforms are measured against. Returns how many products were added, or `None` without IFMA; the second value is their
/// sum.
#[must_use]
pub fn products(steps: u64) -> Option<(u64, u64)> {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = Ifma::new() {
        return Some(arch::avx512::measure::products(token, steps));
    }
    let _ = steps;
    None
}

/// Enciphers blocks under one AES-128 key in registers, as fast as this machine can: the limit that garbling is
/// measured against. Returns how many blocks were done, at least `blocks`, or `None` without AES instructions; the
/// second value is their XOR.
#[must_use]
pub fn aes_blocks(blocks: usize) -> Option<(usize, u128)> {
    let features = Features { aes: Aes::new(), vaes: Vaes::new(), ..Features::default() };
    crate::garble::kernel(&features).map(|kernel| kernel.encipher(&[0x5a; 16], blocks))
}

pub use arch::vector::measure::{PACKED_BITS, Streams};

/// A matrix of three 10-bit entries a 32-bit word times a vector, modulo 2^32, eight rows at a time: the way
/// SimplePIR's own code works (Henzinger et al. 2023, section 6), left to the compiler to vectorise for this
/// machine. The baseline of `bench lookup`; nothing else calls it.
///
/// `matrix` is row-major with `vector.len() / 3` words a row; `out` has a word a row, a multiple of 8.
///
/// # Panics
/// The lengths don't fit.
pub fn packed_product(matrix: &[u32], vector: &[u32], out: &mut [u32]) {
    assert!(vector.len().is_multiple_of(3) && out.len().is_multiple_of(8));
    assert_eq!(matrix.len(), vector.len() / 3 * out.len());
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = Avx512::new() {
        return arch::avx512::measure::packed_product(token, matrix, vector, out);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = Avx2::new() {
        return arch::avx2::measure::packed_product(token, matrix, vector, out);
    }
    packed_product_generic(matrix, vector, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_multiplies() {
        let vector: Vec<u32> = (0..30u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
        let entry = |row: usize, column: usize| (row * 31 + column * 17) as u32 % 1024;
        let matrix: Vec<u32> = (0..16 * 10)
            .map(|i| (0..3).map(|k| entry(i / 10, 3 * (i % 10) + k) << (PACKED_BITS * k as u32)).sum())
            .collect();
        let mut out = vec![0u32; 16];
        packed_product(&matrix, &vector, &mut out);
        for (row, got) in out.iter().enumerate() {
            let want = (0..30).fold(0u32, |s, c| s.wrapping_add(entry(row, c).wrapping_mul(vector[c])));
            assert_eq!(*got, want);
        }
    }

    #[test]
    fn the_read_sums_words() {
        for len in [1111u32, (8 << 20) + 77] {
            let bytes: Vec<u8> = (0..len).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 11) as u8).collect();
            let words = bytes.as_chunks::<8>().0;
            let want = words.iter().fold(0u64, |s, w| s.wrapping_add(u64::from_le_bytes(*w)));
            assert!(Streams::ALL.iter().all(|&streams| streaming_read(&bytes, streams) == want));
        }
    }
}
