//! Instruction sets, and what this machine has of them.

use blindcore_math::features::{Aes, Avx2, Ifma, Level, Vaes, Vnni};

use crate::arch::amx::Amx;

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
        Features::of(self).map(drop)
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
        let missing = Ifma::detect().err().filter(|_| self >= Isa::Avx512)?;
        Some(format!("rows and long numbers are computed by AVX2, for want of {missing}"))
    }
}

/// The tokens of what a device may use. An [`Isa`] is a name that anybody can write down; kernels are made from these.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Features {
    pub(crate) avx2: Option<Avx2>,
    pub(crate) vnni: Option<Vnni>,
    pub(crate) ifma: Option<Ifma>,
    pub(crate) amx: Option<Amx>,
    pub(crate) aes: Option<Aes>,
    pub(crate) vaes: Option<Vaes>,
}

impl Features {
    /// What the device of `isa` uses: what it can't do without, and what helps where it is there.
    ///
    /// # Errors
    /// The first feature that is missing.
    pub(crate) fn of(isa: Isa) -> Result<Self, &'static str> {
        let mut features = Self::default();
        if isa >= Isa::Avx2 {
            features.avx2 = Some(Avx2::detect()?);
            features.aes = Aes::new();
        }
        if isa >= Isa::Avx512 {
            features.vnni = Some(Vnni::detect()?);
            features.ifma = Ifma::new();
            features.vaes = Vaes::new();
        }
        if isa >= Isa::Amx {
            features.amx = Some(Amx::detect()?);
        }
        Ok(features)
    }
}

/// Limits what this process uses beside its devices, the samplers and the public matrix of [`blindcore_math`], to the
/// instruction set of the CPU device that it asked for by name; results are the same. `cpu` and other names limit nothing.
///
/// A command calls it once, with the name that its user gave.
pub fn limit_process(device: &str) {
    let base = device.split('+').next().unwrap_or(device);
    match Isa::named(base) {
        Ok(Isa::Portable) => blindcore_math::features::limit(Level::Portable),
        Ok(Isa::Avx2) => blindcore_math::features::limit(Level::Avx2),
        Ok(Isa::Avx512 | Isa::Amx) | Err(_) => {}
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

    #[test]
    fn a_name_limits_what_computes_beside_the_device() {
        use blindcore_math::features::limited;
        for (name, want) in [
            ("cpu:portable", Level::Portable),
            ("cpu", Level::Portable),
            ("cpu:avx2+garble=cpu:portable", Level::Avx2),
        ] {
            limit_process(name);
            assert_eq!(limited(), want, "{name}");
        }
        blindcore_math::features::limit(Level::Avx512);
    }
}
