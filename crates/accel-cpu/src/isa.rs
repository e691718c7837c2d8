//! Instruction sets, and what this machine has of them.

use crate::arch;

/// An instruction set with kernels of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Isa {
    /// Plain Rust, the reference.
    Portable,
    /// AVX2.
    Avx2,
    /// AVX-512 F, BW, DQ, VL and VNNI (Cascade Lake, Zen 4 and later). What multiplies long words, rows and bigmod,
    /// wants IFMA as well (Ice Lake, Zen 4) and computes by AVX2 where it is missing.
    Avx512,
    /// AMX-INT8 tiles beside AVX-512 (Sapphire Rapids and later).
    Amx,
}

impl Isa {
    /// Every instruction set, plainest first.
    pub const ALL: [Isa; 4] = [Isa::Portable, Isa::Avx2, Isa::Avx512, Isa::Amx];

    /// The name that opens it.
    #[must_use]
    pub fn device_name(self) -> &'static str {
        match self {
            Isa::Portable => "cpu:portable",
            Isa::Avx2 => "cpu:avx2",
            Isa::Avx512 => "cpu:avx512",
            Isa::Amx => "cpu:amx",
        }
    }

    /// The one that the device of this name uses.
    ///
    /// # Errors
    /// No CPU device has this name.
    pub fn named(name: &str) -> Result<Self, blindcore_accel::Error> {
        Isa::ALL.into_iter().find(|isa| isa.device_name() == name).ok_or_else(|| {
            let names = Isa::ALL.map(Isa::device_name).join(", ");
            blindcore_accel::Error::device(
                name,
                format!("no CPU device has this name; there are cpu, {names}"),
            )
        })
    }

    /// Whether this machine can run it.
    ///
    /// # Errors
    /// Names the first feature that is missing.
    pub fn check(self) -> Result<(), &'static str> {
        match self {
            Isa::Portable => Ok(()),
            Isa::Avx2 => arch::check_avx2(),
            Isa::Avx512 => arch::check_avx512(),
            Isa::Amx => arch::check_avx512().and_then(|()| arch::check_amx()),
        }
    }

    /// Those that this machine can run, plainest first.
    pub fn available() -> impl Iterator<Item = Isa> {
        Isa::ALL.into_iter().filter(|isa| isa.check().is_ok())
    }

    /// The best that this machine has, and why.
    pub(crate) fn best() -> (Isa, String) {
        let best = Isa::available().last().expect("portable is always there");
        let why = match Isa::ALL.into_iter().find(|isa| *isa > best) {
            None => "it is the fastest kind and this machine has it".into(),
            Some(next) => match next.check() {
                Err(missing) => {
                    format!("it is the fastest that this machine has; {} needs {missing}", next.device_name())
                }
                Ok(()) => unreachable!("the best is the last available"),
            },
        };
        (best, why)
    }

    /// What of it is computed by a lesser one on this machine, if anything is.
    pub(crate) fn lacks(self) -> Option<String> {
        let missing = arch::check_ifma().err().filter(|_| self >= Isa::Avx512)?;
        Some(format!("rows and long numbers are computed by AVX2, for want of {missing}"))
    }
}

/// The processor's name.
pub(crate) fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|l| l.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_string(), |(_, n)| n.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portable_is_always_there_and_auto_takes_the_last() {
        assert_eq!(Isa::available().next(), Some(Isa::Portable));
        assert_eq!(Isa::best().0, Isa::available().last().unwrap());
        assert!(!Isa::best().1.is_empty());
    }
}
