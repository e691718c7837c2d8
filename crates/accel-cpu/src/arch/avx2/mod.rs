//! AVX2.

pub(crate) mod bigmod;
pub(crate) mod measure;
pub(crate) mod rows;
pub(crate) mod tiles;
pub(crate) mod windows;
