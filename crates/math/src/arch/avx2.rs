//! AVX2: the Gaussian's table scan and the inner product, vectorised by the compiler.

use crate::features::Avx2;

pub(super) fn invert_cumulative(_: Avx2, cumulative: &[[u64; 2]], uniform: &[[u64; 2]], out: &mut [u32]) {
    #[target_feature(enable = "avx2")]
    fn compiled(cumulative: &[[u64; 2]], uniform: &[[u64; 2]], out: &mut [u32]) {
        super::invert_cumulative_generic(cumulative, uniform, out);
    }
    // SAFETY: the token stands for AVX2.
    unsafe { compiled(cumulative, uniform, out) }
}

pub(super) fn dot(_: Avx2, a: &[u32], b: &[u32]) -> u32 {
    #[target_feature(enable = "avx2")]
    fn compiled(a: &[u32], b: &[u32]) -> u32 {
        super::dot_generic(a, b)
    }
    // SAFETY: the token stands for AVX2.
    unsafe { compiled(a, b) }
}
