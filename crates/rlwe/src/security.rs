//! Bits of security, from a table of estimates.
//!
//! The estimates are those of lattice-estimator, commit 27a581b, for a ternary secret and errors of deviation 3.2, as many samples
//! as the dimension. *Classical* is the least of usvp, bdd and the hybrid dual attack, each in the model of MATZOV; *quantum* is usvp
//! in the models of ADPS16 and of ChaLoy21. Between entries the next harder entry's neighbour counts: the
//! one with the larger modulus, and the smaller dimension. A dimension or modulus outside the table has no estimate.

/// The version of the estimator behind [`estimate`].
pub const ESTIMATOR: &str = "lattice-estimator 27a581b";

/// The least classical strength that parameters may have without an [`Insecure`] token.
pub const LEAST_BITS: f64 = 128.0;

/// What a secret under one modulus is worth, as powers of two of an attack's cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strength {
    /// d.
    pub degree: usize,
    /// Bits of the modulus that keys and ciphertexts live under.
    pub modulus_bits: u32,
    /// Classical bits.
    pub classical: f64,
    /// Quantum bits after ADPS16.
    pub quantum_adps16: f64,
    /// Quantum bits after ChaLoy21, the lower of the two.
    pub quantum_chaloy21: f64,
}

/// Says that parameters below [`LEAST_BITS`] are wanted: for tests, and for schemes that are studied.
#[derive(Clone, Copy, Debug)]
pub struct Insecure(());

impl Insecure {
    /// The token. What is made with it protects nobody; `_why` stands in the caller's source for its reader.
    #[must_use]
    pub fn because(_why: &'static str) -> Self {
        Self(())
    }
}

/// Dimension, bits of the modulus, classical bits, quantum bits after ADPS16 and after ChaLoy21.
type Entry = (usize, u32, f64, f64, f64);

/// Sorted by dimension, then by modulus.
const TABLE: [Entry; 32] = [
    (1024, 26, 131.3, 97.0, 94.1),
    (1024, 27, 126.2, 92.0, 89.2),
    (2048, 40, 173.1, 135.9, 131.8),
    (2048, 41, 168.6, 131.4, 127.5),
    (2048, 42, 164.4, 127.2, 123.4),
    (2048, 43, 160.3, 123.2, 119.5),
    (2048, 44, 156.7, 119.2, 115.7),
    (2048, 45, 152.9, 115.5, 112.1),
    (2048, 46, 149.4, 112.1, 108.7),
    (2048, 47, 146.1, 108.9, 105.6),
    (2048, 48, 142.8, 105.7, 102.5),
    (2048, 50, 137.1, 99.6, 96.6),
    (2048, 51, 134.2, 97.0, 94.1),
    (2048, 52, 131.3, 94.3, 91.5),
    (2048, 53, 128.8, 91.7, 88.9),
    (2048, 54, 126.3, 89.3, 86.6),
    (2048, 56, 121.5, 84.8, 82.2),
    (2048, 60, 113.0, 76.6, 74.3),
    (2048, 120, 57.9, 22.8, 22.1),
    (4096, 83, 167.9, 128.0, 124.1),
    (4096, 84, 165.9, 125.9, 122.1),
    (4096, 90, 153.8, 114.2, 110.8),
    (4096, 96, 143.4, 104.4, 101.3),
    (4096, 100, 137.2, 98.3, 95.3),
    (4096, 104, 131.5, 93.0, 90.2),
    (4096, 106, 128.9, 90.4, 87.6),
    (4096, 107, 127.6, 89.0, 86.4),
    (4096, 120, 113.1, 75.3, 73.0),
    (4096, 122, 111.2, 73.4, 71.2),
    (4096, 124, 109.3, 71.5, 69.4),
    (4096, 180, 75.7, 39.0, 37.8),
    (4096, 186, 73.4, 36.8, 35.7),
];

/// What the table says of a ternary secret of `degree` coefficients under a modulus below 2^`modulus_bits`; `None` where it says
/// nothing.
///
/// ```
/// use blindcore_rlwe::security::estimate;
///
/// assert_eq!(estimate(2048, 48).map(|strength| strength.classical), Some(142.8));
/// // Between two entries the larger modulus counts.
/// assert_eq!(estimate(4096, 102).map(|strength| strength.classical), Some(131.5));
/// assert!(estimate(512, 20).is_none());
/// ```
#[must_use]
pub fn estimate(degree: usize, modulus_bits: u32) -> Option<Strength> {
    // Of the entries that are no stronger, the strongest.
    let weaker = TABLE.iter().filter(|entry| entry.0 <= degree && entry.1 >= modulus_bits);
    let entry = weaker.max_by(|a, b| a.2.total_cmp(&b.2))?;
    let (_, _, classical, quantum_adps16, quantum_chaloy21) = *entry;
    Some(Strength { degree, modulus_bits, classical, quantum_adps16, quantum_chaloy21 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sets;

    #[test]
    fn a_larger_modulus_is_never_stronger_and_a_larger_ring_never_weaker() {
        for pair in TABLE.windows(2) {
            assert!(pair[0].0 < pair[1].0 || (pair[0].1 < pair[1].1 && pair[0].2 > pair[1].2), "{pair:?}");
        }
        let bits = |degree, modulus| estimate(degree, modulus).map_or(0.0, |strength| strength.classical);
        for degree in [256, 1024, 2048, 4096, 8192] {
            for modulus in 1..200 {
                assert!(bits(degree, modulus) >= bits(degree, modulus + 1));
                assert!(bits(2 * degree, modulus) >= bits(degree, modulus));
            }
        }
    }

    /// What keys of a shipped set live under is estimated itself, and not taken from a larger modulus.
    #[test]
    fn shipped_sets_have_entries_of_their_own() {
        for set in sets::ALL.iter().chain([&sets::ONIONPIR_2021]) {
            let bits = set.chain.iter().sum();
            assert!(TABLE.iter().any(|entry| (entry.0, entry.1) == (set.degree, bits)), "{}", set.name);
            let ring = set.check_insecure(Insecure::because("only its size is looked at")).unwrap();
            assert_eq!(ring.ring().bits(), bits, "{}", set.name);
        }
    }

    #[test]
    fn entries_are_those_of_the_estimator() {
        for (degree, bits, classical, quantum) in [
            (2048, 48, 142.8, 102.5),
            (2048, 51, 134.2, 94.1),
            (4096, 104, 131.5, 90.2),
            (4096, 96, 143.4, 101.3),
            (2048, 49, 137.1, 96.6),
        ] {
            let strength = estimate(degree, bits).unwrap();
            assert_eq!((strength.classical, strength.quantum_chaloy21), (classical, quantum));
        }
        assert!(estimate(2048, 121).is_none() && estimate(4096, 187).is_none());
    }
}
