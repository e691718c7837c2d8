//! What kernels are measured against.

use blindcore_math::features::Avx2;

use crate::arch::vector::measure::packed_product_generic;

/// See [`crate::measure::packed_product`].
pub(crate) fn packed_product(_: Avx2, matrix: &[u32], vector: &[u32], out: &mut [u32]) {
    #[target_feature(enable = "avx2")]
    fn compiled(matrix: &[u32], vector: &[u32], out: &mut [u32]) {
        packed_product_generic(matrix, vector, out);
    }
    // SAFETY: the token stands for AVX2.
    unsafe { compiled(matrix, vector, out) }
}
