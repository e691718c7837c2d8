//! What this machine's processor has, as tokens: values that exist only where the instructions do.
//!
//! A kernel takes the token of its instruction set. Who holds one has detected the features, for `new` is the only way to
//! get one; so calling the kernel is safe, and the reason stands beside its `unsafe`.
//!
//! ```
//! use blindcore_math::features::Avx2;
//!
//! match Avx2::new() {
//!     Some(token) => println!("{token:?}: kernels that take it can run here"),
//!     None => println!("this machine has no {}", Avx2::detect().unwrap_err()),
//! }
//! ```

use std::sync::atomic::{AtomicU8, Ordering};

macro_rules! token {
    ($(#[$doc:meta])* $name:ident: $($feature:tt),+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(());

        impl $name {
            /// The features it stands for, by the names that `target_feature` takes.
            pub const FEATURES: &[&str] = &[$($feature),+];

            /// The token, where this machine has all of [`Self::FEATURES`].
            #[must_use]
            pub fn new() -> Option<Self> {
                Self::detect().ok()
            }

            /// As [`Self::new`].
            ///
            /// # Errors
            /// The first feature that is missing.
            pub fn detect() -> Result<Self, &'static str> {
                #[cfg(target_arch = "x86_64")]
                {
                    $(if !is_x86_feature_detected!($feature) { return Err($feature); })+
                    Ok(Self(()))
                }
                #[cfg(not(target_arch = "x86_64"))]
                Err("x86-64 processor")
            }
        }
    };
}

token! {
    /// AVX2 (Haswell, Zen).
    Avx2: "avx2"
}
token! {
    /// AVX-512 F, BW, DQ and VL (Skylake-X, Zen 4).
    Avx512: "avx512f", "avx512bw", "avx512dq", "avx512vl"
}
token! {
    /// AVX-512 with dot products of bytes (Cascade Lake, Zen 4).
    Vnni: "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vnni"
}
token! {
    /// AVX-512 with products of 52 bits and permutations of bytes (Ice Lake, Zen 4).
    Ifma: "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512ifma", "avx512vbmi"
}
token! {
    /// AES instructions on one block (Westmere, Zen).
    Aes: "aes", "sse4.1"
}
token! {
    /// AES instructions on four blocks, with AVX-512 (Ice Lake, Zen 4).
    Vaes: "avx512f", "avx512bw", "avx512dq", "avx512vl", "vaes", "aes"
}
token! {
    /// Products without carries of 64 bits, four at once, with AVX-512 (Ice Lake, Zen 4).
    Clmul: "avx512f", "avx512bw", "avx512dq", "avx512vl", "vpclmulqdq", "pclmulqdq"
}
token! {
    /// Products of bits by 8 x 8 matrices and permutations of bytes, with AVX-512 (Ice Lake, Zen 4).
    Gfni: "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vbmi", "gfni"
}

/// How much of the processor this crate's own kernels use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Plain Rust.
    Portable,
    /// Up to AVX2.
    Avx2,
    /// All there is.
    Avx512,
}

static LIMIT: AtomicU8 = AtomicU8::new(Level::Avx512 as u8);

/// Limits the kernels of this crate, for the whole process: samplers and the public matrix have no device that would say
/// so. Results are the same at every level.
pub fn limit(level: Level) {
    LIMIT.store(level as u8, Ordering::Relaxed);
}

/// What the kernels of this crate use at most.
#[must_use]
pub fn limited() -> Level {
    match LIMIT.load(Ordering::Relaxed) {
        0 => Level::Portable,
        1 => Level::Avx2,
        _ => Level::Avx512,
    }
}

/// The token that `detect` finds, unless the limit is below `level`.
pub(crate) fn within<T>(level: Level, detect: fn() -> Option<T>) -> Option<T> {
    (limited() >= level).then(detect).flatten()
}

/// Runs a test at a level, one at a time. Other tests may run at any level meanwhile.
#[cfg(test)]
pub(crate) fn limited_to<T>(level: Level, test: impl FnOnce() -> T) -> T {
    use std::sync::{Mutex, PoisonError};
    struct Restored(Level);
    impl Drop for Restored {
        fn drop(&mut self) {
            limit(self.0);
        }
    }
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let _restored = Restored(limited());
    limit(level);
    test()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_exists_exactly_where_nothing_is_missing() {
        assert_eq!(Avx2::new().is_some(), Avx2::detect().is_ok());
        if let Err(missing) = Vaes::detect() {
            assert!(Vaes::FEATURES.contains(&missing) || missing == "x86-64 processor", "{missing}");
        }
        // What stands for more can't be there without what stands for less.
        assert!(Vnni::new().is_none() || Avx512::new().is_some());
        assert!(Ifma::new().is_none() || Avx512::new().is_some());
    }
}
