//! Kernels by instruction set. All of this crate's SIMD and its `unsafe` is below here.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
pub(crate) mod amx;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
pub(crate) mod bigmod;
pub(crate) mod garble;
pub mod measure;
#[cfg(target_arch = "x86_64")]
pub(crate) mod rows_avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod rows_avx512;

/// Fails with the name of the first feature that this machine lacks.
macro_rules! check {
    ($($feature:tt),*) => {{
        #[cfg(target_arch = "x86_64")]
        {
            $(if !is_x86_feature_detected!($feature) { return Err($feature); })*
            Ok(())
        }
        #[cfg(not(target_arch = "x86_64"))]
        Err("x86-64 processor")
    }};
}

pub(crate) fn check_avx2() -> Result<(), &'static str> {
    check!("avx2")
}

pub(crate) fn check_avx512() -> Result<(), &'static str> {
    check!("avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vnni")
}

/// AVX-512 with products of 52 bits, which Cascade Lake lacks.
pub(crate) fn check_ifma() -> Result<(), &'static str> {
    check_avx512().and_then(|()| check!("avx512ifma"))
}

pub(crate) fn check_amx() -> Result<(), &'static str> {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    {
        amx::check()
    }
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    Err("AMX under Linux")
}
