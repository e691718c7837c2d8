//! Kernels that are written once for any width of vector and compiled in the instruction sets' folders.

pub(crate) mod bigmod;
pub(crate) mod garble;
pub(crate) mod measure;
