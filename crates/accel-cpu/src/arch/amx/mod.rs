//! AMX-INT8.

#[cfg(target_arch = "x86_64")]
pub(crate) mod tiles;

/// AMX-INT8 tiles, which Linux lets this process use (Sapphire Rapids and later).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amx(());

impl Amx {
    /// The token.
    ///
    /// # Errors
    /// What is missing.
    pub(crate) fn detect() -> Result<Self, &'static str> {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        {
            use std::sync::OnceLock;
            static GRANTED: OnceLock<bool> = OnceLock::new();
            /// Asks for a register state by number, for the whole process (Linux 5.16).
            const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
            const XFEATURE_XTILEDATA: libc::c_long = 18;

            // CPUID leaf 7: AMX-TILE is bit 24 of EDX, AMX-INT8 bit 25.
            let features = std::arch::x86_64::__cpuid_count(7, 0).edx;
            if features >> 24 & 0b11 != 0b11 {
                return Err("amx-int8");
            }
            let ask = || {
                // SAFETY: the call takes two numbers and no pointer.
                let status =
                    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) };
                status == 0
            };
            if *GRANTED.get_or_init(ask) {
                Ok(Self(()))
            } else {
                Err("the system's permission to use AMX tiles")
            }
        }
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
        Err("AMX under Linux")
    }
}
