//! The definition of each operation, by plain multiplication and division: what every device is compared with.

use crypto_bigint::{BoxedUint, ConcatenatingMul, NonZero};

use super::modulus::{BigModulus, bits, trim};
use super::multi_exp::MultiExp;

fn modulus(m: &BigModulus) -> NonZero<BoxedUint> {
    NonZero::new(BoxedUint::from_words(m.value().iter().copied())).expect("a modulus is above one")
}

fn words(x: &BoxedUint, m: &BigModulus) -> Vec<u64> {
    let mut words = x.as_words().to_vec();
    words.resize(m.words(), 0);
    words
}

/// `x * y mod m`.
#[must_use]
pub fn multiply(m: &BigModulus, x: &[u64], y: &[u64]) -> Vec<u64> {
    let x = BoxedUint::from_words(x.iter().copied());
    let y = BoxedUint::from_words(y.iter().copied());
    words(&x.concatenating_mul(&y).rem_vartime(&modulus(m)), m)
}

/// `x ^ e mod m`, bit by bit.
#[must_use]
pub fn power(m: &BigModulus, x: &[u64], e: &[u64]) -> Vec<u64> {
    let mut out = one(m);
    for bit in (0..bits(&trim(e))).rev() {
        out = multiply(m, &out, &out);
        if e[bit as usize / 64] >> (bit % 64) & 1 == 1 {
            out = multiply(m, &out, x);
        }
    }
    out
}

/// One.
#[must_use]
pub fn one(m: &BigModulus) -> Vec<u64> {
    let mut out = vec![0; m.words()];
    out[0] = 1;
    out
}

/// A multi-exponentiation of `x` with inverses `inverse`, term by term.
#[must_use]
pub fn multi_exp(
    m: &BigModulus,
    x: &[Vec<u64>],
    inverse: &[Vec<u64>],
    multi_exp: &MultiExp,
) -> Vec<Vec<u64>> {
    let mut out = Vec::new();
    for indices in multi_exp.indices.chunks(multi_exp.terms) {
        for weights in multi_exp.weights.chunks(multi_exp.terms) {
            let mut product = one(m);
            for (index, weight) in indices.iter().zip(weights) {
                if *index != MultiExp::ABSENT {
                    let base = if *weight < 0 { &inverse[*index as usize] } else { &x[*index as usize] };
                    product = multiply(m, &product, &power(m, base, &[weight.unsigned_abs()]));
                }
            }
            out.push(product);
        }
    }
    out
}
