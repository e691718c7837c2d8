//! AVX2: the Gaussian's table scan and the inner product, vectorised by the compiler.

use super::portable::{dot_generic, invert_cumulative_generic};
use crate::features::Avx2;

pub(super) fn invert_cumulative(_: Avx2, cumulative: &[[u64; 2]], uniform: &[[u64; 2]], out: &mut [u32]) {
    #[target_feature(enable = "avx2")]
    fn compiled(cumulative: &[[u64; 2]], uniform: &[[u64; 2]], out: &mut [u32]) {
        invert_cumulative_generic(cumulative, uniform, out);
    }
    // SAFETY: the token stands for AVX2.
    unsafe { compiled(cumulative, uniform, out) }
}

pub(super) fn dot(_: Avx2, a: &[u32], b: &[u32]) -> u32 {
    #[target_feature(enable = "avx2")]
    fn compiled(a: &[u32], b: &[u32]) -> u32 {
        dot_generic(a, b)
    }
    // SAFETY: the token stands for AVX2.
    unsafe { compiled(a, b) }
}
