//! Table 2.1: what homomorphic operations cost in products of polynomials, counted while they are done.

use blindcore_math::SecretRng;
use blindcore_rlwe::{
    Factor, Gadget, Multiplier, Plaintext, RelinearisationKey, Rgsw, SecretKey, profile, sets,
};

use super::Lines;
use crate::rows::By;

/// Bits of a digit: five digits, as many as the thesis calls usual.
const DIGIT_BITS: u32 = 22;

/// The table's lines: our rings' operations beside the thesis's formulas, for as many digits.
pub(super) fn lines(lines: &mut Lines) -> anyhow::Result<()> {
    let (parameters, mut rng) = (sets::N4096.check()?, SecretRng::from_os()?);
    let (ring, secret) = (parameters.ring(), SecretKey::generate(&parameters, &mut rng));
    let gadget = Gadget::exact(ring, DIGIT_BITS)?;
    let key = RelinearisationKey::new(&secret, ring, gadget, &mut rng);
    let bit = Rgsw::bit(&secret, ring, true, gadget, &mut rng);
    let multiplier = Multiplier::new(&parameters, ring, 1)?;
    let three = Plaintext::scalar(&parameters, 3)?;
    let (x, y) = (secret.encrypt(&three, &mut rng), secret.encrypt(&three, &mut rng));
    let factor = Factor::new(ring, &three);
    let l = gadget.digits() as f64;
    let count = |work: &dyn Fn()| {
        let ((), done) = profile(work);
        (done.within.products.count + done.elsewhere.products.count) as f64
    };
    let operations: [(&str, &str, f64, &dyn Fn()); 4] = [
        ("add", "ciphertext and ciphertext, added", 0.0, &|| x.clone().add(&y)),
        ("plain", "ciphertext by plaintext", 2.0, &|| x.clone().multiply_plain(&factor)),
        ("product", "ciphertext by ciphertext (4 + 2 l)", 4.0 + 2.0 * l, &|| {
            drop(multiplier.multiply(&x, &y, &key));
        }),
        ("external", "external product (2 l)", 2.0 * l, &|| drop(bit.multiply(&x))),
    ];
    for (id, what, published, work) in operations {
        let what = format!("{what}, l = {l}: products of polynomials");
        lines.add("Table 2.1", &format!("2.1.{id}"), &what, count(work), "", published, By::Counted);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_counted_as_they_are_done() {
        let mut found = Lines::default();
        lines(&mut found).unwrap();
        let values: Vec<f64> = found.0.iter().filter_map(|row| row.value).collect();
        let published: Vec<f64> = found.0.iter().filter_map(|row| row.published).collect();
        assert_eq!(published, [0.0, 2.0, 14.0, 10.0]);
        // Sums take none; each of ten digits meets a mask and a body.
        assert_eq!((values.len(), values[0], values[1], values[3]), (4, 0.0, 2.0, 20.0));
        assert!(values[2] > published[2] && values[2] % 4.0 == published[2] % 4.0, "{}", values[2]);
    }
}
