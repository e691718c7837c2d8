//! What a chip is told of a modulus, and residues in its form.

use std::sync::Arc;

use blindcore_accel::Error;
use blindcore_accel::bigmod::{BigModulus, Form, HostRows, Residues};
use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Odd, U256};
use zeroize::Zeroizing;

/// Bits of the largest modulus.
pub const MAX_BITS: u32 = 4096;

/// Bits of a digit, of a word of every buffer and of the bus.
pub const DIGIT_BITS: usize = 256;

/// 64-bit words of a digit.
pub(super) const DIGIT: usize = DIGIT_BITS / 64;

/// What the rows of residues hold: x R mod m, fully reduced, d digits of 256 bits, R = 2^(256 d).
#[derive(Clone, PartialEq)]
pub(super) struct PhepuForm {
    digits: usize,
}

impl Form for PhepuForm {
    fn name(&self) -> &str {
        "rtl:phepu"
    }

    fn row_lines(&self) -> usize {
        self.digits * DIGIT / 8
    }
}

/// Residues in that form.
pub(super) type Rows = HostRows<PhepuForm>;

/// A modulus as a chip is told it: m, R^2 mod m, R mod m and -m^-1 mod 2^256, for R = 2^(256 d).
#[derive(Clone)]
pub struct Context {
    modulus: Arc<BigModulus>,
    digits: usize,
    /// 3 d + 1 digits, the least significant 64-bit word first.
    words: Zeroizing<Vec<u64>>,
}

impl Context {
    /// With the fewest digits that chips carry: 4, 8 or 16 for moduli of up to 1024, 2048 and 4096 bits.
    ///
    /// # Errors
    /// The modulus has more than [`MAX_BITS`] bits.
    pub fn new(modulus: &Arc<BigModulus>) -> Result<Self, Error> {
        let digits = match modulus.bits() {
            0..=1024 => 4,
            1025..=2048 => 8,
            _ => 16,
        };
        Self::with_digits(modulus, digits)
    }

    /// With 4, 8 or 16 digits, which may be more than are needed.
    ///
    /// # Errors
    /// The modulus has more bits than the digits, or digits are another number.
    pub(crate) fn with_digits(modulus: &Arc<BigModulus>, digits: usize) -> Result<Self, Error> {
        let bits = modulus.bits();
        if bits > MAX_BITS {
            let why = format!("it has {bits} bits, where rtl:phepu carries at most {MAX_BITS}");
            return Err(Error::Modulus { why });
        }
        if ![4, 8, 16].contains(&digits) || bits as usize > DIGIT_BITS * digits {
            let want = format!("4, 8 or 16, and no fewer than its {bits} bits");
            return Err(Error::Length { what: "the modulus", got: digits, want, unit: "digits" });
        }
        let mut words: Zeroizing<Vec<u64>> = Zeroizing::new(modulus.value().to_vec());
        words.resize(DIGIT * digits, 0);
        let odd = Odd::new(BoxedUint::from_words(words.iter().copied())).expect("a modulus is odd");
        let params = BoxedMontyParams::new(odd);
        let one = BoxedMontyForm::one(&params);
        let squared = BoxedMontyForm::new(one.as_montgomery().clone(), &params);
        let lowest = U256::from_words(std::array::from_fn(|i| words[i]));
        words.extend_from_slice(squared.as_montgomery().as_words());
        words.extend_from_slice(one.as_montgomery().as_words());
        words.extend_from_slice(negated_inverse(&lowest).as_words());
        Ok(Self { modulus: Arc::clone(modulus), digits, words })
    }

    /// The modulus.
    #[must_use]
    pub fn modulus(&self) -> &Arc<BigModulus> {
        &self.modulus
    }

    /// d.
    #[must_use]
    pub fn digits(&self) -> usize {
        self.digits
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Rows to be written: zeros.
    pub(super) fn zeroed(&self, count: usize) -> Rows {
        Rows::zeroed(PhepuForm { digits: self.digits }, count)
    }

    /// No residues, to be appended to.
    pub(super) fn none(&self) -> Residues {
        self.residues(self.zeroed(0))
    }

    /// One, in Montgomery form.
    #[must_use]
    pub fn one(&self) -> Residues {
        self.montgomery(&self.words[2 * DIGIT * self.digits..][..DIGIT * self.digits])
    }

    /// A residue that is already in Montgomery form, for streams of one's own; nothing checks that it is below the modulus.
    ///
    /// # Panics
    /// It has more words than the digits.
    #[must_use]
    pub fn montgomery(&self, words: &[u64]) -> Residues {
        assert!(words.len() <= DIGIT * self.digits, "{} words in {} digits", words.len(), self.digits);
        let mut rows = self.zeroed(1);
        put(&mut rows, 0, words);
        self.residues(rows)
    }

    /// Rows, for callers.
    pub(super) fn residues(&self, rows: Rows) -> Residues {
        Residues::new(&self.modulus, rows)
    }

    /// The rows of residues, if they are this modulus's, in this form and with as many digits.
    pub(super) fn rows<'a>(&self, residues: &'a Residues) -> Result<&'a Rows, Error> {
        Rows::of(residues, &self.modulus, &PhepuForm { digits: self.digits })
    }
}

/// Writes the lowest 64-bit words of a row; a row is made of zeros.
pub(super) fn put(rows: &mut Rows, row: usize, words: &[u64]) {
    let lines = rows.row_lines();
    let row = rows.lines_mut()[row * lines..][..lines].iter_mut().flat_map(|line| &mut line.0);
    row.zip(words).for_each(|(to, word)| *to = *word);
}

/// The 64-bit words of a row.
pub(super) fn get(rows: &Rows, row: usize) -> impl Iterator<Item = u64> + '_ {
    let lines = rows.row_lines();
    rows.lines()[row * lines..][..lines].iter().flat_map(|line| line.0)
}

/// -m^-1 mod 2^256, by Newton's iteration: m is its own inverse modulo 8, and each step doubles the bits that are right.
fn negated_inverse(m: &U256) -> U256 {
    let inverse = (0..7).fold(*m, |x, _| x.wrapping_mul(&U256::from_u8(2).wrapping_sub(&m.wrapping_mul(&x))));
    inverse.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use blindcore_accel::bigmod::reference;

    fn modulus(words: &[u64]) -> Arc<BigModulus> {
        Arc::new(BigModulus::odd(words).unwrap())
    }

    #[test]
    fn a_context_is_what_the_definitions_say() {
        let long: Vec<u64> = (1..=40u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1).collect();
        for (value, digits) in
            [(&[3][..], 4), (&[u64::MAX; 16], 4), (&long[..17], 8), (&long, 16), (&[3], 16)]
        {
            let m = modulus(value);
            let context = Context::with_digits(&m, digits).unwrap();
            let words = DIGIT * digits;
            assert_eq!(context.words().len(), 3 * words + DIGIT);
            let part = |i: usize| &context.words()[i * words..][..words];
            let mut r = vec![0; words + 1];
            r[words] = 1;
            let reduced = |x: &[u64], y: &[u64]| {
                let mut product = reference::multiply(&m, x, y);
                product.resize(words, 0);
                product
            };
            assert_eq!(&part(0)[..m.words()], m.value());
            assert_eq!(part(1), reduced(&r, &r));
            assert_eq!(part(2), reduced(&r, &[1]));
            assert!(get(context.rows(&context.one()).unwrap(), 0).eq(part(2).iter().copied()));
            let low = |x: &[u64]| U256::from_words(std::array::from_fn(|i| x[i]));
            let product = low(part(0)).wrapping_mul(&low(&context.words()[3 * words..]));
            assert_eq!(product, U256::MAX, "n' m is -1");
        }
    }

    #[test]
    fn digits_are_the_fewest_and_long_moduli_are_refused() {
        let of = |bits: usize| {
            let mut value = vec![0; bits.div_ceil(64)];
            value[0] = 1;
            value[(bits - 1) / 64] |= 1 << ((bits - 1) % 64);
            modulus(&value)
        };
        for (bits, digits) in [(2, 4), (1024, 4), (1025, 8), (2048, 8), (2049, 16), (4096, 16)] {
            assert_eq!(Context::new(&of(bits)).unwrap().digits(), digits, "{bits}");
        }
        let error = Context::new(&of(4097)).err().unwrap().to_string();
        assert!(error.contains("4097 bits") && error.contains("4096"), "{error}");
        assert!(Context::with_digits(&of(1025), 4).is_err());
        assert!(Context::with_digits(&of(9), 5).is_err());
    }
}
