//! Kernels by instruction set, `arch/<isa>/<operation>.rs`; `vector` holds what is written once for any width. All of this
//! crate's SIMD is below here.
//!
//! A kernel is made from the token of its instruction set ([`blindcore_math::features`]), which exists only where the
//! machine has it. What takes pointers takes them from slices that it has measured, so that each `unsafe` can be judged
//! from its own file.
#![allow(unsafe_code)]
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

#[cfg(target_arch = "x86_64")]
pub(crate) mod aes;
pub(crate) mod amx;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
pub(crate) mod vector;
