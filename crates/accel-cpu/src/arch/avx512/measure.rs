//! What kernels are measured against.

use std::arch::x86_64::*;

use blindcore_math::features::Avx512;

use crate::arch::vector::measure::packed_product_generic;

/// How far ahead a line is fetched, in bytes.
const AHEAD: usize = 2048;

/// See [`crate::measure::streaming_read`].
pub(crate) fn streaming_read(_: Avx512, bytes: &[u8]) -> u64 {
    // SAFETY: the token stands for these features.
    unsafe { sum(bytes) }
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

/// The streaming read: four streams of whole lines, fetched ahead, as the kernel for one query reads.
#[target_feature(enable = "avx512f,avx512bw")]
fn sum(bytes: &[u8]) -> u64 {
    const STREAM: usize = 1 << 20;
    let (blocks, rest) = bytes.as_chunks::<{ 4 * STREAM }>();
    let mut sums = [_mm512_setzero_si512(); 8];
    for block in blocks {
        for at in (0..STREAM).step_by(128) {
            for (i, sum) in sums.iter_mut().enumerate() {
                // SAFETY: two lines of each of four streams, all inside the block; a prefetch reads nothing.
                let line = unsafe {
                    let line = block.as_ptr().add(i / 2 * STREAM + at + i % 2 * 64);
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
