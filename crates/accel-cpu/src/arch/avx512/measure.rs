//! What kernels are measured against.

use std::arch::x86_64::*;

use blindcore_math::features::{Avx512, Ifma};

use crate::arch::vector::measure::{Streams, packed_product_generic};

/// How far ahead a line of each stream is fetched, in bytes: as far as the kernel for one query fetches of all its stripes.
const AHEAD: usize = super::tiles::AHEAD;

/// See [`crate::measure::streaming_read`].
pub(crate) fn streaming_read(_: Avx512, bytes: &[u8], streams: Streams) -> u64 {
    // SAFETY: the token stands for these features.
    unsafe {
        match streams {
            Streams::One => sum::<1>(bytes),
            Streams::Four => sum::<4>(bytes),
        }
    }
}

/// See [`crate::measure::packed_product`].
pub(crate) fn packed_product(_: Avx512, matrix: &[u32], vector: &[u32], out: &mut [u32]) {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn compiled(matrix: &[u32], vector: &[u32], out: &mut [u32]) {
        packed_product_generic(matrix, vector, out);
    }
    // SAFETY: the token stands for these features.
    unsafe { compiled(matrix, vector, out) }
}

/// The streaming read: whole lines of `STREAMS` streams, fetched ahead; eight lines a step.
#[target_feature(enable = "avx512f,avx512bw")]
fn sum<const STREAMS: usize>(bytes: &[u8]) -> u64 {
    const BLOCK: usize = 4 << 20;
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let (stream, lines) = (BLOCK / STREAMS, 8 / STREAMS);
    let mut sums = [_mm512_setzero_si512(); 8];
    for block in blocks {
        for at in (0..stream).step_by(lines * 64) {
            for (i, sum) in sums.iter_mut().enumerate() {
                // SAFETY: `lines` lines of each of the streams, all inside the block; a prefetch reads nothing.
                let line = unsafe {
                    let line = block.as_ptr().add(i / lines * stream + at + i % lines * 64);
                    _mm_prefetch::<_MM_HINT_T0>(line.wrapping_add(AHEAD).cast());
                    _mm512_loadu_si512(line.cast())
                };
                *sum = _mm512_add_epi64(*sum, line);
            }
        }
    }
    let sum = sums.into_iter().reduce(|a, b| _mm512_add_epi64(a, b)).expect("eight sums");
    let rest = rest.as_chunks::<8>().0.iter().fold(0u64, |sum, w| sum.wrapping_add(u64::from_le_bytes(*w)));
    rest.wrapping_add(_mm512_reduce_add_epi64(sum) as u64)
}

/// See [`crate::measure::products`].
pub(crate) fn products(_: Ifma, steps: u64) -> (u64, u64) {
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn sum(steps: u64) -> u64 {
        let mut sums = [_mm512_setzero_si512(); SUMS];
        let mut factor = _mm512_set1_epi64(3);
        for _ in 0..steps {
            for _ in 0..ROUNDS {
                for sum in &mut sums {
                    *sum = _mm512_madd52lo_epu64(*sum, factor, factor);
                }
            }
            // Else the compiler could multiply once and add.
            factor = std::hint::black_box(factor);
        }
        let sum = sums.into_iter().reduce(|a, b| _mm512_add_epi64(a, b)).expect("sixteen sums");
        _mm512_reduce_add_epi64(sum) as u64
    }
    const SUMS: usize = 16;
    // The factor goes through memory once a step, which takes as long as many products.
    const ROUNDS: usize = 8;
    // SAFETY: the token stands for these features.
    let sum = unsafe { sum(steps) };
    (steps * (ROUNDS * SUMS * 8) as u64, sum)
}
