//! AVX-512, with VNNI for bytes, IFMA for long words and VAES for labels.

pub(crate) mod bigmod;
pub(crate) mod garble;
pub(crate) mod measure;
pub(crate) mod rows;
pub(crate) mod tiles;
pub(crate) mod windows;
