//! x
use crate::bigmod::Engine;
use blindcore_accel::bigmod::Modulus;
use std::sync::Arc;
pub(crate) fn avx2(_: &Modulus) -> Option<Arc<dyn Engine>> {
    None
}
pub(crate) fn avx512(_: &Modulus) -> Option<Arc<dyn Engine>> {
    None
}
