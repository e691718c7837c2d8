//! InspiRING: many ciphertexts of single numbers packed into one ring ciphertext, with everything that does not depend on the
//! secret worked out beforehand.
//!
//! A ciphertext of a number under the ring's secret s is a pair (a_j, c_j): c_j less the constant coefficient of a_j s is the
//! number and noise. `count` of them become one pair (a, b) where b - a s has number j as its coefficient j, for j below
//! `count`; its other coefficients mean nothing.
//!
//! ```text
//!   tau: X -> X^g, of order `count`          trace: sum of tau^i, keeps coefficients at multiples of `count`
//!
//!   sum_j X^j trace(a_j s) / count  =  sum_i r_i tau^i(s)      r_i = sum_j X^j tau^i(a_j) / count
//!
//!   from i = count - 1 down to 1:  digit t_i = round(r_i / 2^w),  r_(i-1) -= t_i tau^(i-1)(k)
//!                                  tau^i(s) becomes tau^(i-1)(s): the key (k, y) has y = k s + e + 2^w tau(s)
//!
//!   beforehand: t_1..t_(count-1) and a = r_0       with a key:  b = sum_j c_j X^j - sum_i t_i tau^(i-1)(y)
//! ```
//!
//! Where one digit would leave too much noise there are several ([`SignedDigits`]), the lowest first, and a key for each.
//!
//! SignedDigits are by values, in the ring's orbit order ([`blindcore_math::ntt::orbit`]): there tau^(i-1)(y) is y with each half
//! turned to the left by (i - 1) [`Packing::step`] places, so that the sum over i is a sliding window over one polynomial.
//! Source: InsPIRe (Mahdavi and others 2025, section on InspiRING), with one digit in place of three, whose low bits are dropped.

mod fourier;

use std::sync::OnceLock;

use blindcore_math::ntt::{Automorphism, Ntt, NttError, orbit};
use blindcore_math::{Elementwise, SignedDigits};
use fourier::Fourier;

/// Why there is no packing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackingError {
    /// The ring has no transform.
    #[error(transparent)]
    Ring(#[from] NttError),
    /// The count is not a power of two in range.
    #[error("{count} ciphertexts can't be packed with one key; choose a power of two from 2 to {}", degree / 2)]
    Count {
        /// Ciphertexts to be packed.
        count: usize,
        /// The ring's degree.
        degree: usize,
    },
    /// Digits don't reach over the modulus, or reach beyond.
    #[error(
        "{count} digits of {bits} bits above {dropped} dropped ones don't fit a prime of {prime} bits; from their sum take less \
         than a digit off to be below it"
    )]
    Digits {
        /// Digits.
        count: usize,
        /// Bits of each.
        bits: u32,
        /// Low bits that are dropped.
        dropped: u32,
        /// Bits of the prime.
        prime: u32,
    },
}

/// What packing takes that depends on the ring and the count alone.
pub struct Packing {
    ntt: Ntt,
    modulo: Elementwise,
    count: usize,
    digits: SignedDigits,
    /// tau.
    automorphism: Automorphism,
    /// For each place of the orbit order, its place in the transform's order.
    orbit: Vec<u32>,
    generator: usize,
    /// Of as many megabytes, and of use to [`Packing::prepare`] alone: clients never make it.
    fourier: OnceLock<Fourier>,
}

/// Memory for [`Packing::prepare`]; it is made once and used again.
pub struct Scratch {
    /// r_i, by values in orbit order.
    sums: Vec<u64>,
    polynomial: Vec<u64>,
    digits: Vec<u64>,
    block: Vec<u64>,
}

impl Packing {
    /// Packs `count` ciphertexts of the ring of this degree and the digits' prime into one.
    ///
    /// # Errors
    /// The ring has no transform, the count is not a power of two from 2 to half the degree, or the digits don't reach over the
    /// modulus, or reach beyond.
    pub fn new(degree: usize, count: usize, digits: SignedDigits) -> Result<Self, PackingError> {
        let ntt = Ntt::new(digits.prime, degree)?;
        if !count.is_power_of_two() || !(2..=degree / 2).contains(&count) {
            return Err(PackingError::Count { count, degree });
        }
        let prime = digits.prime.value().ilog2() + 1;
        let below = digits.count.checked_sub(1).map(|below| {
            u64::from(digits.dropped).saturating_add((below as u64).saturating_mul(digits.bits.into()))
        });
        let fits = |below| below < u64::from(prime) && below + u64::from(digits.bits) >= u64::from(prime);
        if !(1..prime).contains(&digits.bits) || !below.is_some_and(fits) {
            let SignedDigits { count, bits, dropped, .. } = digits;
            return Err(PackingError::Digits { count, bits, dropped, prime });
        }
        let order = 2 * degree;
        let generator = (0..degree / 2 / count).fold(1, |power, _| power * 5 % order);
        let automorphism = Automorphism::new(degree, generator)?;
        let orbit = orbit(degree)?;
        let fourier = OnceLock::new();
        let modulo = Elementwise::new(digits.prime);
        Ok(Self { modulo, ntt, count, digits, automorphism, orbit, generator, fourier })
    }

    /// Ciphertexts that are packed into one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Coefficients of a polynomial.
    #[must_use]
    pub fn degree(&self) -> usize {
        self.ntt.degree()
    }

    /// The transform of the ring.
    #[must_use]
    pub fn ntt(&self) -> &Ntt {
        &self.ntt
    }

    /// How polynomials are taken apart.
    #[must_use]
    pub fn digits(&self) -> SignedDigits {
        self.digits
    }

    /// Places of the orbit order by which tau turns each half to the left.
    #[must_use]
    pub fn step(&self) -> usize {
        self.degree() / 2 / self.count
    }

    /// B^i 2^w tau(s) for digit i, by values in the transform's order: what the packing key of a digit encrypts. `secret` is s by values.
    ///
    /// In constant time.
    ///
    /// # Panics
    /// There are not as many values as the degree, or there is no such digit.
    pub fn key_message(&self, digit: usize, secret: &[u64], out: &mut [u64]) {
        self.automorphism.values(secret, out);
        assert!(digit < self.digits.count);
        let factor = vec![self.ntt.prime().reduce(1 << self.digits.weight(digit)); out.len()];
        self.modulo.multiply(out, &factor);
    }

    /// Values in the transform's order, brought to orbit order.
    ///
    /// # Panics
    /// There are not as many values as the degree.
    pub fn to_orbit(&self, values: &[u64], out: &mut [u64]) {
        assert!(values.len() == self.degree() && out.len() == self.degree());
        for (out, &from) in out.iter_mut().zip(&self.orbit) {
            *out = values[from as usize];
        }
    }

    /// Values in orbit order, brought back to the transform's order.
    ///
    /// # Panics
    /// There are not as many values as the degree.
    pub fn from_orbit(&self, values: &[u64], out: &mut [u64]) {
        assert!(values.len() == self.degree() && out.len() == self.degree());
        for (value, &to) in values.iter().zip(&self.orbit) {
            out[to as usize] = *value;
        }
    }

    /// tau^i(y) for i = 0..`count`-2, one after another, all in orbit order: what the digits are multiplied by.
    ///
    /// # Panics
    /// A length is wrong.
    pub fn windows(&self, key: &[u64], out: &mut [u64]) {
        let (half, degree) = (self.degree() / 2, self.degree());
        assert!(key.len() == degree && out.len() == (self.count - 1) * degree);
        for (i, out) in out.chunks_exact_mut(degree).enumerate() {
            for (out, key) in out.chunks_exact_mut(half).zip(key.chunks_exact(half)) {
                let (wrapped, first) = key.split_at(i * self.step());
                out[..first.len()].copy_from_slice(first);
                out[first.len()..].copy_from_slice(wrapped);
            }
        }
    }

    fn fourier(&self) -> &Fourier {
        self.fourier.get_or_init(|| Fourier::new(&self.ntt, self.count, self.generator))
    }

    /// Memory for [`Packing::prepare`].
    #[must_use]
    pub fn scratch(&self) -> Scratch {
        let degree = self.degree();
        Scratch {
            sums: vec![0; self.count * degree],
            polynomial: vec![0; degree],
            digits: vec![0; self.digits.count * degree],
            block: self.fourier().block(),
        }
    }

    /// Works out what does not depend on the secret.
    ///
    /// `masks` are the a_j, `count` polynomials by values in orbit order, as `keys` are, k of each digit. `tell` is told i - 1, a digit's number and t_i by values in orbit order, for i from `count` - 1 down to 1. Returned
    /// is a, by coefficients.
    ///
    /// # Panics
    /// A length is wrong.
    pub fn prepare(
        &self,
        masks: &[u64],
        keys: &[Vec<u64>],
        scratch: &mut Scratch,
        mut tell: impl FnMut(usize, usize, &[u64]),
    ) -> Vec<u64> {
        let degree = self.degree();
        assert!(masks.len() == self.count * degree, "as many masks as are packed");
        assert!(keys.len() == self.digits.count && keys.iter().all(|key| key.len() == degree));
        let Scratch { sums, polynomial, digits, block } = scratch;
        self.fourier().sums(&self.modulo, masks, block, sums);
        let mut orbit = vec![0; degree];
        for i in (1..self.count).rev() {
            let (before, this) = sums[(i - 1) * degree..].split_at_mut(degree);
            self.from_orbit(&this[..degree], polynomial);
            self.ntt.inverse(polynomial);
            self.digits.split(polynomial, digits);
            for (number, (digit, key)) in digits.chunks_exact_mut(degree).zip(keys).enumerate() {
                self.ntt.forward(digit);
                self.to_orbit(digit, &mut orbit);
                tell(i - 1, number, &orbit);
                // r_(i-1) -= t_i tau^(i-1)(k), half by half and each in two runs.
                let (half, turn) = (degree / 2, (i - 1) * self.step());
                for ((before, digits), key) in before
                    .chunks_exact_mut(half)
                    .zip(orbit.chunks_exact_mut(half))
                    .zip(key.chunks_exact(half))
                {
                    let (head, tail) = digits.split_at_mut(half - turn);
                    self.modulo.multiply(head, &key[turn..]);
                    self.modulo.multiply(tail, &key[..turn]);
                    self.modulo.subtract(before, digits);
                }
            }
        }
        let mut mask = vec![0; degree];
        self.from_orbit(&sums[..degree], &mut mask);
        self.ntt.inverse(&mut mask);
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blindcore_math::Prime;
    use blindcore_math::ntt::primes;

    /// A stream of small numbers that is the same each time.
    struct Numbers(u64);

    impl Numbers {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.0 >> 16
        }

        fn residues(&mut self, prime: Prime, count: usize) -> Vec<u64> {
            (0..count)
                .map(|_| prime.reduce(u128::from(self.next()) << 32 | u128::from(self.next())))
                .collect()
        }

        /// Coefficients from -`most` to `most`.
        fn small(&mut self, prime: Prime, most: u64, count: usize) -> Vec<u64> {
            (0..count)
                .map(|_| (prime.value() + self.next() % (2 * most + 1) - most) % prime.value())
                .collect()
        }
    }

    fn centred(prime: Prime, x: u64) -> i64 {
        if x > prime.value() / 2 { x as i64 - prime.value() as i64 } else { x as i64 }
    }

    /// Packs numbers and compares what comes out with them.
    fn packs(prime_bits: u32, degree: usize, count: usize, [digit_count, bits, dropped]: [u32; 3]) {
        let prime = primes(prime_bits, degree).unwrap().next().unwrap();
        let cut = SignedDigits { prime, count: digit_count as usize, bits, dropped };
        let packing = Packing::new(degree, count, cut).unwrap();
        let (ntt, modulo) = (packing.ntt(), Elementwise::new(prime));
        let mut numbers = Numbers(7 + count as u64);
        let mut secret = numbers.small(prime, 1, degree);
        ntt.forward(&mut secret);
        let masks = numbers.residues(prime, count * degree);
        // c_j: the constant coefficient of a_j s, and a number far above noise.
        let wanted: Vec<u64> = (0..count as u64).map(|j| (j % 256) << (prime_bits - 8)).collect();
        let bodies: Vec<u64> = masks
            .chunks_exact(degree)
            .zip(&wanted)
            .map(|(mask, wanted)| {
                let mut product = mask.to_vec();
                modulo.multiply(&mut product, &secret);
                ntt.inverse(&mut product);
                (product[0] + wanted) % prime.value()
            })
            .collect();
        // A key for each digit.
        let orbit = |values: &[u64]| {
            let mut out = vec![0; degree];
            packing.to_orbit(values, &mut out);
            out
        };
        let (mut key_masks, mut keys) = (Vec::new(), Vec::new());
        for digit in 0..cut.count {
            let key_mask = numbers.residues(prime, degree);
            let mut key = numbers.small(prime, 3, degree);
            ntt.forward(&mut key);
            modulo.multiply_add(&mut key, &key_mask, &secret);
            let mut message = vec![0; degree];
            packing.key_message(digit, &secret, &mut message);
            modulo.add(&mut key, &message);
            key_masks.push(orbit(&key_mask));
            keys.push(orbit(&key));
        }
        let mut digits = vec![vec![0; (count - 1) * degree]; cut.count];
        let masks: Vec<u64> = masks.chunks_exact(degree).flat_map(orbit).collect();
        let mask = packing.prepare(&masks, &key_masks, &mut packing.scratch(), |i, number, digit| {
            digits[number][i * degree..][..degree].copy_from_slice(digit);
        });
        let mut sum = vec![0; degree];
        for (digits, key) in digits.iter().zip(&keys) {
            let mut windows = vec![0; (count - 1) * degree];
            packing.windows(key, &mut windows);
            for (digit, window) in digits.chunks_exact(degree).zip(windows.chunks_exact(degree)) {
                modulo.multiply_add(&mut sum, digit, window);
            }
        }
        // The phase: bodies - sum - mask s.
        let mut values = vec![0; degree];
        packing.from_orbit(&sum, &mut values);
        let mut product = mask;
        ntt.forward(&mut product);
        modulo.multiply_add(&mut values, &product, &secret);
        ntt.inverse(&mut values);
        // Deviation of the noise: key errors (variance 4) and dropped bits, over count - 1 switches.
        let power = |bits: u32| f64::from(bits).exp2();
        let top = prime.value() as f64 / power(cut.weight(cut.count - 1));
        let digit = (top.powi(2) + f64::from(digit_count - 1) * power(bits).powi(2)) / 12.0;
        let above = power(dropped);
        let variance = (count - 1) as f64 * degree as f64 * (digit * 4.0 + above.powi(2) / 12.0 * 2.0 / 3.0);
        for j in 0..count {
            let phase = modulo_difference(prime, bodies[j], values[j]);
            let noise = centred(prime, modulo_difference(prime, phase, wanted[j])) as f64;
            assert!(noise.abs() < 6.5 * variance.sqrt(), "{degree} {count}: {j} is off by {noise}");
        }
    }

    fn modulo_difference(prime: Prime, a: u64, b: u64) -> u64 {
        (prime.value() + a - b) % prime.value()
    }

    #[test]
    fn numbers_are_packed() {
        for (degree, count) in
            [(128, 2), (128, 64), (256, 16), (2048, 256), (2048, 64), (2048, 1024), (1024, 512)]
        {
            packs(48, degree, count, [1, 23, 25]);
        }
        for count in [2, 256, 1024] {
            packs(40, 2048, count, [2, 13, 14]);
            packs(48, 2048, count, [3, 14, 8]);
        }
    }

    #[test]
    fn what_cant_be_packed_is_refused() {
        let prime = primes(48, 128).unwrap().next().unwrap();
        let cut = |count, bits, dropped| SignedDigits { prime, count, bits, dropped };
        for count in [0, 1, 3, 128] {
            assert_eq!(
                Packing::new(128, count, cut(1, 23, 25)).err(),
                Some(PackingError::Count { count, degree: 128 })
            );
        }
        for (count, bits, dropped) in
            [(0, 23, 25), (1, 0, 47), (1, 22, 25), (2, 23, 25), (1, 48, 0), (usize::MAX, u32::MAX, 1)]
        {
            let refused = Packing::new(128, 64, cut(count, bits, dropped)).err();
            assert_eq!(refused, Some(PackingError::Digits { count, bits, dropped, prime: 48 }));
        }
        assert!(Packing::new(100, 2, cut(1, 23, 25)).is_err());
    }
}
