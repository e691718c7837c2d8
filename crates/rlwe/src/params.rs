//! Parameters: a literal that a person can read, checked once.

use std::sync::Arc;

use crate::ring::{Ring, RingError, distinct_primes};
use crate::security::{ESTIMATOR, Insecure, LEAST_BITS, Strength, estimate};

/// The distribution of a secret's coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretKind {
    /// -1, 0 and 1, each a third of the time.
    Ternary,
}

/// The distribution of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A centred binomial of 21 pairs of bits: variance 10.5, deviation 3.24, where the estimates have 3.2.
    CentredBinomial21,
}

impl ErrorKind {
    /// Pairs of bits.
    pub(crate) const fn pairs(self) -> u32 {
        match self {
            Self::CentredBinomial21 => 21,
        }
    }

    /// The variance.
    #[must_use]
    pub const fn variance(self) -> f64 {
        self.pairs() as f64 / 2.0
    }
}

/// What a person writes down; [`Literal::check`] makes [`Parameters`] of it.
///
/// ```
/// use blindcore_rlwe::{ErrorKind, Literal, SecretKind};
///
/// let parameters = Literal {
///     name: "mine",
///     degree: 2048,
///     chain: &[48],
///     reduced: &[],
///     plaintext: 256,
///     secret: SecretKind::Ternary,
///     error: ErrorKind::CentredBinomial21,
/// }
/// .check()?;
/// assert_eq!(parameters.strength().classical, 142.8);
/// // 60 bits are too many for this dimension.
/// let refused = Literal { chain: &[60], ..blindcore_rlwe::sets::N2048 }.check();
/// assert!(refused.unwrap_err().to_string().starts_with("a secret of 2048 coefficients under a modulus of 60 bits has 113.0"));
/// # Ok::<(), blindcore_rlwe::ParametersError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Literal<'a> {
    /// What the set is called, in messages and digests.
    pub name: &'a str,
    /// d.
    pub degree: usize,
    /// Bits of each prime of Q, 20 to 61; the largest primes of these sizes that the ring has are taken. Ciphertexts lose the last
    /// ones first.
    pub chain: &'a [u32],
    /// Bits of further single primes that ciphertexts may be switched to.
    pub reduced: &'a [u32],
    /// p: messages are modulo this, from 2 to 2^32.
    pub plaintext: u64,
    /// The secret's distribution.
    pub secret: SecretKind,
    /// The errors' distribution.
    pub error: ErrorKind,
}

/// Why a literal is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParametersError {
    /// A ring does not exist.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// p is out of range.
    #[error("a plaintext modulus of {0} is outside 2 to 4294967296")]
    Plaintext(u64),
    /// p is too large for a modulus.
    #[error("a plaintext modulus of {plaintext} leaves no room for noise under a modulus of {bits} bits; choose one below 2^{}", bits - 10)]
    NoRoom {
        /// p.
        plaintext: u64,
        /// Bits of the modulus.
        bits: u32,
    },
    /// A modulus is too large for the dimension.
    #[error(
        "a secret of {degree} coefficients under a modulus of {modulus_bits} bits has {found} ({ESTIMATOR}), and {LEAST_BITS} \
         are the least; choose a smaller modulus or a larger degree"
    )]
    Weak {
        /// d.
        degree: usize,
        /// Bits of the modulus.
        modulus_bits: u32,
        /// What is known of it.
        found: Found,
    },
}

/// Classical bits that the table has, if any.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found(pub Option<f64>);

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(bits) => write!(f, "{bits:.1} classical bits"),
            None => f.write_str("no known strength"),
        }
    }
}

/// Checked parameters with their rings: what everything else here is made from.
///
/// A secret's keys and ciphertexts live under [`Self::ring`], or under one of the smaller moduli that [`Self::rings`] lists.
pub struct Parameters {
    name: String,
    rings: Vec<Arc<Ring>>,
    chain: usize,
    plaintext: u64,
    secret: SecretKind,
    error: ErrorKind,
    security: Vec<Option<Strength>>,
}

impl Literal<'_> {
    /// Checks the literal.
    ///
    /// # Errors
    /// A ring does not exist, p is out of range or leaves no room for noise, or a modulus that keys live under gives less than 128
    /// classical bits.
    pub fn check(&self) -> Result<Arc<Parameters>, ParametersError> {
        let parameters = self.build()?;
        for (ring, strength) in parameters.rings.iter().zip(&parameters.security) {
            if strength.is_none_or(|strength| strength.classical < LEAST_BITS) {
                let found = Found(strength.map(|strength| strength.classical));
                let (degree, modulus_bits) = (ring.degree(), ring.bits());
                return Err(ParametersError::Weak { degree, modulus_bits, found });
            }
        }
        Ok(Arc::new(parameters))
    }

    /// Checks everything but the strength.
    ///
    /// # Errors
    /// A ring does not exist, or p is out of range or leaves no room for noise.
    pub fn check_insecure(&self, _: Insecure) -> Result<Arc<Parameters>, ParametersError> {
        self.build().map(Arc::new)
    }

    fn build(&self) -> Result<Parameters, ParametersError> {
        if !(2..=1 << 32).contains(&self.plaintext) {
            return Err(ParametersError::Plaintext(self.plaintext));
        }
        let primes = distinct_primes(self.degree, self.chain, &[])?;
        let others = distinct_primes(self.degree, self.reduced, &primes)?;
        let whole = Ring::new(self.degree, &primes)?;
        if whole.bits() < 64 - self.plaintext.leading_zeros() + 9 {
            return Err(ParametersError::NoRoom { plaintext: self.plaintext, bits: whole.bits() });
        }
        let mut rings = vec![Arc::new(whole)];
        while let Some(next) = rings[rings.len() - 1].without_last() {
            rings.push(Arc::new(next));
        }
        let chain = rings.len();
        for prime in others {
            rings.push(Arc::new(Ring::new(self.degree, &[prime])?));
        }
        let security = rings.iter().map(|ring| estimate(self.degree, ring.bits())).collect();
        let Self { name, plaintext, secret, error, .. } = *self;
        Ok(Parameters { name: name.to_owned(), rings, chain, plaintext, secret, error, security })
    }
}

impl Parameters {
    /// What the set is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// d.
    #[must_use]
    pub fn degree(&self) -> usize {
        self.ring().degree()
    }

    /// The ring of the whole chain: fresh ciphertexts and keys.
    #[must_use]
    pub fn ring(&self) -> &Arc<Ring> {
        &self.rings[0]
    }

    /// The ring of the chain without its last `dropped` primes.
    ///
    /// # Panics
    /// No prime is left.
    #[must_use]
    pub fn level(&self, dropped: usize) -> &Arc<Ring> {
        assert!(dropped < self.chain, "{dropped} of {} primes can't be dropped", self.chain);
        &self.rings[dropped]
    }

    /// The ring of a further prime, by its place in [`Literal::reduced`].
    ///
    /// # Panics
    /// There is none at that place.
    #[must_use]
    pub fn reduced(&self, at: usize) -> &Arc<Ring> {
        &self.rings[self.chain + at]
    }

    /// All rings: the chain, its shorter forms, then the further primes.
    #[must_use]
    pub fn rings(&self) -> &[Arc<Ring>] {
        &self.rings
    }

    /// p.
    #[must_use]
    pub fn plaintext(&self) -> u64 {
        self.plaintext
    }

    /// The secret's distribution.
    #[must_use]
    pub fn secret(&self) -> SecretKind {
        self.secret
    }

    /// The errors' distribution.
    #[must_use]
    pub fn error(&self) -> ErrorKind {
        self.error
    }

    /// The strength under each modulus of [`Self::rings`], every one of which keys and ciphertexts may live under; `None` where the
    /// table has no entry.
    #[must_use]
    pub fn security(&self) -> &[Option<Strength>] {
        &self.security
    }

    /// The least of [`Self::security`]; all zeros where one of them is unknown.
    #[must_use]
    pub fn strength(&self) -> Strength {
        let none = Strength {
            degree: self.degree(),
            modulus_bits: self.ring().bits(),
            classical: 0.0,
            quantum_adps16: 0.0,
            quantum_chaloy21: 0.0,
        };
        let all = self.security.iter().map(|strength| strength.unwrap_or(none));
        all.min_by(|a, b| a.classical.total_cmp(&b.classical)).unwrap_or(none)
    }

    /// A digest of everything that two sides have to agree on: 8 bytes of BLAKE3 over the numbers.
    #[must_use]
    pub fn digest(&self) -> [u8; 8] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"blindcore rlwe parameters 1");
        let mut word = |word: u64| {
            hasher.update(&word.to_le_bytes());
        };
        word(self.degree() as u64);
        word(self.plaintext);
        word(u64::from(self.error.pairs()));
        for ring in &self.rings {
            word(ring.primes().len() as u64);
            ring.primes().iter().for_each(|q| word(q.value()));
        }
        let mut digest = [0; 8];
        digest.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        digest
    }
}

impl std::fmt::Debug for Parameters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, plaintext, rings, .. } = self;
        f.debug_struct("Parameters")
            .field("name", name)
            .field("plaintext", plaintext)
            .field("ring", &rings[0])
            .finish()
    }
}

/// Parameter sets.
pub mod sets {
    use super::{ErrorKind, Literal, SecretKind};

    const BASE: Literal<'static> = Literal {
        name: "",
        degree: 2048,
        chain: &[],
        reduced: &[],
        plaintext: 256,
        secret: SecretKind::Ternary,
        error: ErrorKind::CentredBinomial21,
    };

    /// One prime of 48 bits and bytes as messages: 142.8 classical bits, 102 quantum. IFMA takes the prime. For lookups that keep
    /// nothing.
    pub const N2048: Literal<'static> = Literal { name: "N2048", chain: &[48], ..BASE };

    /// The same prime, and 2048 slots modulo 12289: 142.8 classical bits, 102 quantum. For lookups that turn slots.
    pub const N2048_SLOTS: Literal<'static> =
        Literal { name: "N2048_SLOTS", chain: &[48], plaintext: 12_289, ..BASE };

    /// One prime of 50 bits, which IFMA takes, scans at 40, which are five bytes, and messages of 11 bits: 137.1 classical bits, 96
    /// quantum. For lookups of the OnionPIR family.
    pub const N2048_ONION: Literal<'static> =
        Literal { name: "N2048_ONION", chain: &[50], reduced: &[40], plaintext: 1 << 11, ..BASE };

    /// Two primes of 50 bits, which IFMA takes, and 4096 slots modulo 65537: 137.2 classical bits, 95 quantum.
    pub const N4096: Literal<'static> =
        Literal { name: "N4096", degree: 4096, chain: &[50, 50], plaintext: 65_537, ..BASE };

    /// Two primes of 48 bits, which are six bytes, answers modulo one of them, and messages of 11 bits: 143.4 classical bits, 101 quantum.
    /// For lookups of the MulPIR family.
    pub const N4096_MUL: Literal<'static> =
        Literal { name: "N4096_MUL", degree: 4096, chain: &[48, 48], plaintext: 1 << 11, ..BASE };

    /// Two primes of 40 bits, which are five bytes, and one of 24 that is dropped before a scan, which IFMA takes, and messages of 30 bits:
    /// 131.5 classical bits, 90 quantum. For OnionPIR as published.
    pub const N4096_ONION: Literal<'static> =
        Literal { name: "N4096_ONION", degree: 4096, chain: &[40, 40, 24], plaintext: 1 << 30, ..BASE };

    /// All sets that have 128 bits.
    pub const ALL: [Literal<'static>; 6] = [N2048, N2048_SLOTS, N2048_ONION, N4096, N4096_MUL, N4096_ONION];

    /// What OnionPIR's authors had in 2021, but for a prime more in its keys: 4096 coefficients under two primes of 61 bits, which are the
    /// largest that there are here, and messages in digits of 24 bits. 111.2 bits of strength: for measurements of what was published. It needs
    /// an [`super::Insecure`].
    pub const ONIONPIR_2021: Literal<'static> =
        Literal { name: "ONIONPIR_2021", degree: 4096, chain: &[61, 61], plaintext: 1 << 24, ..BASE };

    /// 256 coefficients under two primes of 48 bits, and 256 slots modulo 7681: protects nothing, and is for tests that have to be fast.
    /// It needs an [`super::Insecure`].
    pub const TOY: Literal<'static> =
        Literal { name: "TOY", degree: 256, chain: &[48, 48], plaintext: 7681, ..BASE };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_sets_have_their_bits_under_every_modulus() {
        for (set, classical) in sets::ALL.iter().zip([142.8, 142.8, 137.1, 137.2, 143.4, 131.5]) {
            let parameters = set.check().unwrap();
            assert_eq!(parameters.strength().classical, classical, "{}", set.name);
            assert_eq!(parameters.security().len(), parameters.rings().len());
        }
        let onion = sets::N2048_ONION.check().unwrap();
        assert_eq!(onion.reduced(0).bits(), 40);
        assert_eq!(onion.security()[1].unwrap().classical, 173.1);
        let onion = sets::N4096_ONION.check().unwrap();
        assert_eq!([0, 1, 2].map(|dropped| onion.level(dropped).bits()), [104, 80, 40]);
    }

    #[test]
    fn what_is_weak_needs_the_token() {
        let why = "a test of the token";
        for weak in [
            sets::TOY,
            sets::ONIONPIR_2021,
            Literal { chain: &[56], ..sets::N2048 },
            Literal { reduced: &[55], ..sets::N2048 },
        ] {
            assert!(matches!(weak.check(), Err(ParametersError::Weak { .. })));
            assert!(weak.check_insecure(Insecure::because(why)).is_ok());
        }
        assert!(sets::TOY.check().unwrap_err().to_string().contains("no known strength"));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for plaintext in [0, 1, (1 << 32) + 1] {
            let refused = Literal { plaintext, ..sets::N2048 }.check();
            assert_eq!(refused.unwrap_err(), ParametersError::Plaintext(plaintext));
        }
        let refused = Literal { chain: &[38], plaintext: 1 << 30, ..sets::N2048 }.check();
        assert_eq!(refused.unwrap_err(), ParametersError::NoRoom { plaintext: 1 << 30, bits: 38 });
        assert!(matches!(Literal { chain: &[], ..sets::N2048 }.check(), Err(ParametersError::Ring(_))));
        assert!(matches!(Literal { degree: 2000, ..sets::N2048 }.check(), Err(ParametersError::Ring(_))));
    }

    #[test]
    fn digests_tell_sets_apart() {
        let digests: Vec<_> = sets::ALL.iter().map(|set| set.check().unwrap().digest()).collect();
        assert!((1..digests.len()).all(|i| !digests[..i].contains(&digests[i])));
        assert_eq!(digests[0], Literal { name: "other", ..sets::N2048 }.check().unwrap().digest());
        assert_ne!(digests[0], Literal { plaintext: 257, ..sets::N2048 }.check().unwrap().digest());
    }
}
