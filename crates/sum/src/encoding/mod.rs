//! Numbers as plaintexts: signed integers and floats with an exponent, and bounds on their magnitude.
//!
//! A number is `mantissa * 16^exponent`, as in python-paillier (`phe.EncodedNumber`, base 16), or that over a power of ten,
//! which python-paillier doesn't know and which keeps decimals such as cents exactly; the mantissa is an
//! integer of magnitude at most n/3, a negative one is held as n less its magnitude, and what decrypts to the
//! middle third has overflowed.
//!
//! Here all numbers of a batch share one exponent, one count of decimals and one [`Bound`], which are declared, travel with the
//! ciphertexts and are *public*: [`Encoding::integers`] and [`Encoding::fixed`] say nothing of the data, while
//! [`Encoding::exact`] is made from the data and shows its range, as phe shows each number's.
//!
//! Encoding and packing take no branch and no address from an integer's value, but for the comparison with its bound;
//! a float's rounding, and decoding into integers and floats, do: they run where the numbers are in the clear.

mod bound;
mod error;
mod exponent;
mod float;
mod form;
mod lowering;
mod plaintexts;
pub(crate) mod slots;
mod values;
mod words;

pub use bound::Bound;
pub use error::EncodingError;
pub(crate) use exponent::{MAX_SCALE, check_exponent, float_parts};
pub(crate) use float::integer_parts;
pub use float::{BASE_LOG2, MAX_EXPONENT};
pub use form::{Form, MAX_AXES};
pub(crate) use lowering::Lowering;
pub use plaintexts::Plaintexts;
pub use values::Encoding;
pub(crate) use values::MAX_DECIMALS;
pub(crate) use words::{add_masked, bit_length, reduce_once, subtract_masked};

#[cfg(test)]
mod tests {
    use crypto_bigint::BoxedUint;

    use super::float::{exact_exponent, parts};
    use super::plaintexts::{float, integer};
    use super::*;
    use proptest::prelude::*;

    fn big(top: u64, shift: u32) -> BoxedUint {
        let shift = shift as usize;
        let mut words = vec![0u64; shift / 64 + 3];
        let wide = u128::from(top) << (shift % 64);
        words[shift / 64] = wide as u64;
        words[shift / 64 + 1] = (wide >> 64) as u64;
        BoxedUint::from_words_with_precision(words, 1024)
    }

    proptest! {
        #[test]
        fn bounds_are_never_below_and_hardly_above(
            a in any::<u64>(), s in 0u32..200, b in any::<u64>(), t in 0u32..200,
        ) {
            let exact = |bound: Bound| big(bound.parts().0, bound.parts().1);
            let (x, y) = (Bound::scaled(a.into(), s), Bound::scaled(b.into(), t));
            prop_assert_eq!(exact(x), big(a, s), "a product with a power of two is exact");
            let sum = big(a, s).wrapping_add(big(b, t));
            let product = big(a, s).wrapping_mul(big(b, t));
            for (bound, value) in [(x.plus(y), sum), (x.times(y), product)] {
                prop_assert!(exact(bound) >= value);
                let slack = value.shr_vartime(62).unwrap_or_default();
                prop_assert!(exact(bound) <= value.wrapping_add(&slack));
                prop_assert!(bound.holds(value.as_words()));
                prop_assert!(Bound::below(value.as_words()) <= bound);
                let over = exact(bound).wrapping_add(BoxedUint::one_with_precision(1024));
                prop_assert!(!bound.holds(over.as_words()));
                prop_assert!(bound.holds(exact(bound).as_words()));
            }
            prop_assert_eq!(x < y, big(a, s) < big(b, t), "the order of bounds is that of values");
            prop_assert_eq!(x.bits(), big(a, s).bits());
        }

        #[test]
        fn floats_are_the_nearest(top in 1u64.., low in any::<u64>(), words in 1usize..5, exponent in -290i32..240) {
            // A float's own parts come back exactly, at any exponent that is not above its own.
            let value = f64::from_bits(top);
            if value.is_finite() && value != 0.0 {
                let own = exact_exponent(value);
                let encoding = Encoding::new(own, Bound::signed(200)).unwrap();
                let (negative, magnitude, shift) = encoding.round(parts(value));
                let exact = big(magnitude as u64, shift);
                let back = float(0, negative, exact.as_words(), (own, 0)).unwrap();
                prop_assert_eq!(back.to_bits(), value.to_bits());
            }
            // Others are compared with the standard library's reading of the same number in decimal, scaled by a
            // power of two, which is exact for normal floats.
            let mut number = vec![low; words];
            number.push(top);
            let decimal: f64 = BoxedUint::from_words(number.iter().copied()).to_string_radix_vartime(10).parse().unwrap();
            prop_assert_eq!(float(0, false, &number, (0, 0)).unwrap(), decimal);
            let scaled = decimal * 2f64.powi(2 * exponent) * 2f64.powi(2 * exponent);
            if scaled.is_normal() {
                prop_assert_eq!(float(0, true, &number, (exponent, 0)).unwrap(), -scaled);
            }
        }

        #[test]
        fn rounding_is_to_the_nearest_and_half_to_even(mantissa in any::<u64>(), down in 0i32..80) {
            let encoding = Encoding::new(0, Bound::ZERO).unwrap();
            let (_, got, _) = encoding.round((false, mantissa, -down));
            let (unit, m) = (1u128 << down, u128::from(mantissa));
            let (kept, rest) = (m / unit, m % unit);
            let want = kept + u128::from(2 * rest > unit || 2 * rest == unit && kept % 2 == 1);
            prop_assert_eq!(got, want);
        }
    }

    /// What a file's header is said to leave room for does fit, and no bit more does.
    #[test]
    fn headroom_is_what_fits() {
        for bits in [64, 65, 66, 67, 100, 512, 513, 3072, 4096] {
            let limit = Bound::of_key_bits(bits);
            let exact = BoxedUint::one_with_precision(4224).shl(bits - 1);
            let three = crypto_bigint::NonZero::new(crypto_bigint::Limb::from(3u64)).unwrap();
            assert_eq!(limit, Bound::below(exact.div_rem_limb(three).0.as_words()), "{bits}");
            for bound in [Bound::ZERO, Bound::new(1), Bound::new(255), Bound::new(256), Bound::new(5 << 40)] {
                let room = bound.headroom(limit);
                let least = bound.max(Bound::new(1));
                assert!(least.shifted(room) <= limit && least.shifted(room + 1) > limit, "{bits} {bound}");
            }
        }
        // A bound of a full mantissa and one beside it.
        let full = Bound::scaled(u64::MAX.into(), 434);
        assert_eq!([full, Bound::scaled(1, 497)].map(|b| b.headroom(Bound::of_key_bits(512))), [11, 12]);
        assert_eq!(
            [255, 256, 1 << 25].map(|b| Bound::new(b).headroom(Bound::new((1 << 25) - 1))),
            [17, 16, 0]
        );
    }

    #[test]
    fn exponents_are_as_high_as_can_be() {
        // The last is phe 1.5.0's EncodedNumber.encode(key, x).exponent.
        for (value, exponent, phe) in [
            (1.0, 0, -13),
            (-1.0, 0, -13),
            (0.1, -14, -14),
            (1e-10, -22, -22),
            (1e10, 2, -5),
            (1e300, 236, 236),
            (5e-324, -269, -282),
            (f64::MAX, 242, 242),
            (2.5, -1, -13),
            (16.0, 1, -12),
        ] {
            assert_eq!(exact_exponent(value), exponent, "{value}");
            assert!(exponent >= phe);
        }
    }

    #[test]
    fn subnormals_and_the_largest_float_decode() {
        // The second ends in zeros and has an exponent above that of its last bit.
        for value in [5e-324, 2e-323, 1e-310, f64::MIN_POSITIVE, f64::MAX] {
            let exponent = exact_exponent(value);
            let (_, mantissa, shift) = Encoding::new(exponent, Bound::ZERO).unwrap().round(parts(value));
            assert_eq!(
                float(0, false, big(mantissa as u64, shift).as_words(), (exponent, 0)).unwrap(),
                value
            );
        }
        // Half of the least float is rounded to even, a little more is not.
        assert_eq!(float(0, false, &[1 << 53], (-282, 0)).unwrap(), 0.0);
        assert_eq!(float(0, false, &[(1 << 53) + 1], (-282, 0)).unwrap(), 5e-324);
        let over = float(7, false, &[0, 0, 1], (242, 0)).unwrap_err().to_string();
        assert!(over.contains("number 7 is over the largest float"), "{over}");
    }

    #[test]
    fn integers_decode_at_their_edges() {
        assert_eq!(integer(0, true, &[1 << 63], (0, 0)).unwrap(), i64::MIN);
        assert_eq!(integer(0, false, &[i64::MAX as u64], (0, 0)).unwrap(), i64::MAX);
        assert_eq!(integer(0, true, &[0, 7], (-16, 0)).unwrap(), -7);
        assert_eq!(integer(0, false, &[7], (2, 0)).unwrap(), 7 * 256);
        assert_eq!(integer(0, false, &[0, 0], (100, 0)).unwrap(), 0);
        for (negative, number, exponent, why) in [
            (false, vec![1 << 63], 0, "over 63 bits"),
            (true, vec![(1 << 63) + 1], 0, "over 63 bits"),
            (false, vec![0, 1], 0, "over 63 bits"),
            (false, vec![1], 16, "over 63 bits"),
            (false, vec![8], -1, "not whole"),
            (false, vec![1, 16], -16, "not whole"),
        ] {
            let error = integer(3, negative, &number, (exponent, 0)).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("number 3"), "{error}");
        }
    }
}
