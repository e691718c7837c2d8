//! Roots of unity and their quotients.

use crate::Prime;

/// A factor and its quotient by the modulus, of 64 bits: floor(2^64 factor / q).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Factor {
    pub(crate) value: u64,
    pub(crate) quotient: u64,
}

impl Factor {
    pub(crate) fn new(prime: Prime, value: u64) -> Self {
        Self { value, quotient: ((u128::from(value) << 64) / u128::from(prime.value())) as u64 }
    }
}

/// What the portable kernel reads, and what the others' tables are made of.
pub(crate) struct Tables {
    pub(crate) prime: Prime,
    pub(crate) degree: usize,
    /// psi^rev(k) at k: a layer of m butterflies' factors lie from m on.
    pub(crate) forward: Vec<Factor>,
    /// psi^-rev(k) at k.
    pub(crate) inverse: Vec<Factor>,
    /// 1 / d.
    pub(crate) scale: Factor,
    /// The last layer's factor (there is one) over d.
    pub(crate) last: Factor,
}

impl Tables {
    /// `psi` is a root of X^`degree` + 1.
    pub(super) fn new(prime: Prime, degree: usize, psi: u64) -> Self {
        let mul = |a: u64, b: u64| prime.reduce(u128::from(a) * u128::from(b));
        let log = degree.ilog2();
        let powers = |root: u64| -> Vec<Factor> {
            let mut factors = vec![Factor { value: 0, quotient: 0 }; degree];
            let mut power = 1;
            for i in 0..degree {
                factors[i.reverse_bits() >> (usize::BITS - log)] = Factor::new(prime, power);
                power = mul(power, root);
            }
            factors
        };
        let invert = |x: u64| power(prime, x, prime.value() - 2);
        let (forward, inverse) = (powers(psi), powers(invert(psi)));
        let scale = invert(degree as u64);
        let last = Factor::new(prime, mul(inverse[1].value, scale));
        Self { prime, degree, forward, inverse, scale: Factor::new(prime, scale), last }
    }
}

/// `base` to the power `exponent`.
pub(crate) fn power(prime: Prime, mut base: u64, mut exponent: u64) -> u64 {
    let mul = |a: u64, b: u64| prime.reduce(u128::from(a) * u128::from(b));
    let mut power = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = mul(power, base);
        }
        base = mul(base, base);
        exponent >>= 1;
    }
    power
}
