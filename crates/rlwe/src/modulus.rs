//! Smaller moduli: dropping a prime, switching to another one, and rounding answers to a few bits.

use std::sync::Arc;

use crate::ciphertext::{Ciphertext, Pair};
use crate::noise::{Noise, TERNARY};
use crate::poly::{Coefficients, Poly, Values};
use crate::rounding::Rounding;
use crate::{Parameters, Ring};

impl Noise {
    /// Of a ciphertext whose modulus was multiplied by `factor`, with roundings of at most `mask` and `body`: what is lost of the mask
    /// meets the secret.
    #[must_use]
    pub fn switched(self, degree: usize, factor: f64, mask: f64, body: f64) -> Self {
        let lost = Self::of_variance(degree as f64 * mask * mask * TERNARY);
        self.times(factor).plus_independent(lost).plus(Self::at_most(body))
    }
}

/// Why a modulus can't be switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModulusSwitchError {
    /// The ring can't be reached.
    #[error(
        "a modulus of {from} bits can't be switched to one of {to}; choose a shorter chain of the same primes, or one smaller prime"
    )]
    Unreachable {
        /// Bits of the ciphertext's modulus.
        from: u32,
        /// Bits wanted.
        to: u32,
    },
    /// Answers have too many bits, or several primes.
    #[error(
        "{bits} bits are outside 1 to {limit} for an answer modulo one prime; switch to one prime first, or round to fewer bits"
    )]
    Width {
        /// Bits asked for.
        bits: u32,
        /// The most.
        limit: u32,
    },
}

impl Ciphertext {
    /// The ciphertext under a smaller modulus: a shorter chain of its ring's primes, or a single prime below its last one left.
    ///
    /// Noise: in proportion to the modulus, and rounding (Brakerski, Gentry and Vaikuntanathan 2012, section 4.2). The time
    /// depends on the rings alone.
    ///
    /// # Errors
    /// The ring is neither.
    pub fn switch_modulus(&self, ring: &Arc<Ring>) -> Result<Self, ModulusSwitchError> {
        let unreachable = ModulusSwitchError::Unreachable { from: self.ring.bits(), to: ring.bits() };
        if ring.degree() != self.ring.degree() {
            return Err(unreachable);
        }
        let mut out = self.clone();
        while out.ring.primes() != ring.primes() {
            let primes = out.ring.primes();
            if let [prime] = primes {
                let [target] = ring.primes() else { return Err(unreachable) };
                if target.value() >= prime.value() {
                    return Err(unreachable);
                }
                out = out.rounded(ring, &|from, values| {
                    ring.forward(to_prime(from, ring, from.inverse(values.clone())))
                });
            } else {
                let next = match primes.split_last() {
                    Some((_, others)) if others == ring.primes() => ring.clone(),
                    _ => out.ring.without_last().map(Arc::new).ok_or(unreachable)?,
                };
                out = out.rounded(&next, &|from, values| from.drop_last(&next, values));
            }
        }
        out.ring = ring.clone();
        Ok(out)
    }

    fn rounded(&self, to: &Arc<Ring>, round: &dyn Fn(&Ring, &Poly<Values>) -> Poly<Values>) -> Self {
        let pair =
            Pair { mask: round(&self.ring, &self.pair.mask), body: round(&self.ring, &self.pair.body) };
        let factor = to.modulus() as f64 / self.ring.modulus() as f64;
        let noise = self.noise.switched(self.ring.degree(), factor, 0.501, 0.501);
        Self::made("switch modulus", to, self.plaintext, pair, noise)
    }

    /// An answer of `mask_bits` bits a coefficient of the mask and `body_bits` of the body, of which the first `kept` are sent.
    ///
    /// # Errors
    /// The ring has several primes, or a width is 0 or not below the prime's.
    ///
    /// # Panics
    /// More than d coefficients are to be kept.
    pub fn to_answer(
        &self,
        mask_bits: u32,
        body_bits: u32,
        kept: usize,
    ) -> Result<Answer, ModulusSwitchError> {
        assert!(kept <= self.ring.degree(), "at most as many coefficients as the degree");
        let [prime] = self.ring.primes() else {
            return Err(ModulusSwitchError::Width { bits: mask_bits.max(body_bits), limit: 0 });
        };
        let limit = prime.value().ilog2().min(57);
        if let Some(bits) = [mask_bits, body_bits].into_iter().find(|bits| !(1..=limit).contains(bits)) {
            return Err(ModulusSwitchError::Width { bits, limit });
        }
        let round = |part: &Poly<Values>, bits| -> Vec<u64> {
            let rounding = Rounding::new(*prime, bits);
            self.ring.inverse(part.clone()).words().iter().map(|word| rounding.down(*word)).collect()
        };
        let mut body = round(&self.pair.body, body_bits);
        body.truncate(kept);
        Ok(Answer {
            ring: self.ring.clone(),
            mask_bits,
            body_bits,
            mask: round(&self.pair.mask, mask_bits),
            body,
        })
    }
}

/// round(x q' / q) for one prime to another.
fn to_prime(from: &Ring, to: &Ring, poly: Poly<Coefficients>) -> Poly<Coefficients> {
    let (q, target) = (from.primes()[0].value(), to.primes()[0].value());
    let factor = ((u128::from(target) << 64) / u128::from(q)) as u64;
    let round = |x: &u64| {
        let y = ((u128::from(*x) * u128::from(factor) + (1 << 63)) >> 64) as u64;
        y.min(y.wrapping_sub(target))
    };
    Poly::from_words(poly.words().iter().map(round).collect())
}

/// A ciphertext rounded to powers of two: what a server sends.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Of one prime, above both widths.
    pub(crate) ring: Arc<Ring>,
    pub(crate) mask_bits: u32,
    pub(crate) body_bits: u32,
    pub(crate) mask: Vec<u64>,
    pub(crate) body: Vec<u64>,
}

impl Answer {
    /// The noise of an answer to a ciphertext of this noise.
    #[must_use]
    pub fn noise(ring: &Ring, noise: Noise, mask_bits: u32, body_bits: u32) -> Noise {
        let step = |bits: u32| ring.modulus() as f64 / f64::from(bits).exp2() / 2.0 + 1.0;
        noise.switched(ring.degree(), 1.0, step(mask_bits), step(body_bits))
    }

    /// The ciphertext that it stands for, in the ring it came from; coefficients of the plaintext beyond those that were kept mean
    /// nothing. `noise` is what is known of the ciphertext before it was rounded.
    #[must_use]
    pub fn to_ciphertext(&self, parameters: &Parameters, noise: Noise) -> Ciphertext {
        let ring = &self.ring;
        let up = |words: &[u64], bits| {
            let rounding = Rounding::new(ring.primes()[0], bits);
            let mut all: Vec<u64> = words.iter().map(|word| rounding.up(*word)).collect();
            all.resize(ring.degree(), 0);
            ring.forward(Poly::from_words(all))
        };
        let pair = Pair { mask: up(&self.mask, self.mask_bits), body: up(&self.body, self.body_bits) };
        let noise = Self::noise(ring, noise, self.mask_bits, self.body_bits);
        Ciphertext::made("answer", ring, parameters.plaintext(), pair, noise)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{self, Bench};
    use crate::{Factor, sets};

    #[test]
    fn plaintexts_survive_smaller_moduli() {
        for parameters in testing::all() {
            let mut bench = Bench::new(&parameters, 81);
            for message in [testing::message(&parameters, 1), testing::edges(&parameters).0] {
                let x = bench.encrypt(&message);
                for ring in parameters.rings() {
                    bench.check("switch", &x.switch_modulus(ring).unwrap(), &message, 3.0);
                }
                let mut noisy = x;
                noisy.multiply_plain(&Factor::new(parameters.ring(), &message));
                let want = testing::product(&message, &message);
                for ring in parameters.rings() {
                    bench.check("noisy switch", &noisy.switch_modulus(ring).unwrap(), &want, 3.0);
                }
            }
        }
    }

    #[test]
    fn answers_are_rounded() {
        for (parameters, mask_bits, body_bits) in
            [(sets::N2048, 17, 11), (sets::N2048_ONION, 20, 14), (sets::N4096, 27, 20)]
        {
            let parameters = parameters.check().unwrap();
            let mut bench = Bench::new(&parameters, 82);
            let message = testing::message(&parameters, 3);
            let last = parameters.rings().last().unwrap();
            let x = bench.encrypt(&message).switch_modulus(last).unwrap();
            let answer = x.to_answer(mask_bits, body_bits, parameters.degree()).unwrap();
            bench.check("answer", &answer.to_ciphertext(&parameters, x.noise()), &message, 3.0);
            let part = x.to_answer(mask_bits, body_bits, 100).unwrap().to_ciphertext(&parameters, x.noise());
            assert_eq!(bench.secret.decrypt(&part).coefficients()[..100], message.coefficients()[..100]);
            assert!(x.to_answer(0, 11, 1).is_err() && x.to_answer(17, 58, 1).is_err());
        }
        let parameters = testing::toy();
        let x = Bench::new(&parameters, 83).encrypt(&testing::message(&parameters, 1));
        assert!(x.to_answer(17, 11, 1).is_err());
        assert!(x.switch_modulus(testing::n2048().ring()).is_err());
        let low = x.switch_modulus(parameters.level(1)).unwrap();
        assert!(low.switch_modulus(parameters.ring()).is_err());
    }
}
