//! Residues modulo several primes: the integer that they stand for, and its residues modulo other primes.
//!
//! With Q the product of the primes q_i and y_i = x (Q / q_i)^-1 mod q_i, an integer x is sum_i y_i Q / q_i - v Q, where v is the sum
//! of the fractions y_i / q_i rounded. A fraction is kept in 64 bits, so that v is right unless x lies within some 2^-60 Q of
//! halfway between two multiples of Q. Source: Halevi, Polyakov and Shoup 2018 (section 2.2), in fixed point.

use blindcore_math::{Elementwise, Prime};

/// `a` to the power `exponent` modulo `prime`.
pub(crate) fn power(prime: Prime, a: u64, exponent: u64) -> u64 {
    let mul = |a: u64, b: u64| prime.reduce(u128::from(a) * u128::from(b));
    let (mut base, mut left, mut power) = (a, exponent, 1);
    while left > 0 {
        if left & 1 == 1 {
            power = mul(power, base);
        }
        base = mul(base, base);
        left >>= 1;
    }
    power
}

/// The inverse of `a`, which is no multiple of `prime`. Both are public.
pub(crate) fn inverse(prime: Prime, a: u64) -> u64 {
    power(prime, prime.reduce(u128::from(a)), prime.value() - 2)
}

/// The product of `factors` modulo `prime`.
fn product(prime: Prime, factors: impl Iterator<Item = Prime>) -> u64 {
    factors.fold(1, |product, factor| prime.reduce(u128::from(product) * u128::from(factor.value())))
}

/// Fractions of residues: x / Q modulo 1, in 64 bits.
#[derive(Clone)]
pub(crate) struct Fractions {
    /// For each prime: itself, (Q / q_i)^-1 modulo it, and floor(2^(63 + n) / q_i) for a prime of n bits.
    primes: Vec<(Prime, u64, u64)>,
}

impl Fractions {
    pub(crate) fn new(primes: &[Prime]) -> Self {
        let others = |i: usize| primes.iter().enumerate().filter(move |(j, _)| *j != i).map(|(_, q)| *q);
        let of = |(i, q): (usize, &Prime)| {
            let bits = q.value().ilog2() + 1;
            let reciprocal = ((1u128 << (63 + bits)) / u128::from(q.value())) as u64;
            (*q, inverse(*q, product(*q, others(i))), reciprocal)
        };
        Self { primes: primes.iter().enumerate().map(of).collect() }
    }

    /// (Q / q_i)^-1 modulo q_i.
    pub(crate) fn inverse(&self, i: usize) -> u64 {
        self.primes[i].1
    }

    /// y_i.
    #[inline]
    pub(crate) fn share(&self, i: usize, residue: u64) -> u64 {
        let (prime, inverse, _) = &self.primes[i];
        prime.reduce(u128::from(residue) * u128::from(*inverse))
    }

    /// y_i / q_i in units of 2^-64, less two units at most; in constant time.
    #[inline]
    pub(crate) fn fraction(&self, i: usize, share: u64) -> u64 {
        let (prime, _, reciprocal) = &self.primes[i];
        // Below 2^(63 + n) (2^n / 2^n): the product is below 2^(64 + n), the quotient below 2^64.
        ((u128::from(share) * u128::from(*reciprocal)) >> prime.value().ilog2()) as u64
    }
}

/// Takes residues modulo some primes to the residues of the same integer, centred, modulo others.
pub(crate) struct Extension {
    fractions: Fractions,
    from: Vec<Source>,
    to: Vec<Target>,
}

/// Coefficients that are worked on together: what they take, and constants as often, stay in a near cache.
const BLOCK: usize = 256;

/// A prime that residues are given of.
struct Source {
    modulo: Elementwise,
    /// (Q / q_i)^-1 modulo it.
    inverse: [u64; BLOCK],
}

/// A prime that residues are wanted of.
struct Target {
    modulo: Elementwise,
    /// -Q modulo it.
    negative: [u64; BLOCK],
    /// For each prime of Q: Q / q_i modulo this one, and how often this one fits into it.
    factors: Vec<([u64; BLOCK], u64)>,
}

impl Extension {
    pub(crate) fn new(from: &[Prime], to: &[Prime]) -> Self {
        let others = |i: usize| from.iter().enumerate().filter(move |(j, _)| *j != i).map(|(_, q)| *q);
        let source = |(i, prime): (usize, &Prime)| {
            let inverse = inverse(*prime, product(*prime, others(i)));
            Source { modulo: Elementwise::new(*prime), inverse: [inverse; BLOCK] }
        };
        let target = |prime: &Prime| {
            let factor =
                |(i, q): (usize, &Prime)| ([product(*prime, others(i)); BLOCK], q.value() / prime.value());
            let negative = prime.value() - product(*prime, from.iter().copied());
            Target {
                modulo: Elementwise::new(*prime),
                negative: [prime.reduce(negative.into()); BLOCK],
                factors: from.iter().enumerate().map(factor).collect(),
            }
        };
        Self {
            fractions: Fractions::new(from),
            from: from.iter().enumerate().map(source).collect(),
            to: to.iter().map(target).collect(),
        }
    }

    /// The residues of as many integers as `degree`; the words of both lie prime after prime.
    pub(crate) fn extend(&self, degree: usize, words: &[u64]) -> Vec<u64> {
        let mut out = vec![0; self.to.len() * degree];
        let mut shares = vec![[0; BLOCK]; self.from.len()];
        for at in (0..degree).step_by(BLOCK) {
            let count = BLOCK.min(degree - at);
            // Each fraction is below one, so their sum has few bits above 2^64; a half rounds it.
            let (mut fractions, mut turns) = ([1u64 << 63; BLOCK], [0; BLOCK]);
            for (i, (source, shares)) in self.from.iter().zip(&mut shares).enumerate() {
                let shares = &mut shares[..count];
                shares.copy_from_slice(&words[i * degree + at..][..count]);
                source.modulo.multiply(shares, &source.inverse[..count]);
                for ((share, sum), turns) in shares.iter().zip(&mut fractions).zip(&mut turns) {
                    let over;
                    (*sum, over) = sum.overflowing_add(self.fractions.fraction(i, *share));
                    *turns += u64::from(over);
                }
            }
            for (target, out) in self.to.iter().zip(out.chunks_exact_mut(degree)) {
                target.sum(&shares, &turns, &mut out[at..at + count]);
            }
        }
        out
    }
}

impl Target {
    /// The sum of shares times factors, less Q as often as `turns` say, modulo this prime.
    fn sum(&self, shares: &[[u64; BLOCK]], turns: &[u64; BLOCK], out: &mut [u64]) {
        let mut reduced = Vec::new();
        let shares = if self.factors.iter().all(|(_, fits)| *fits == 0) {
            shares
        } else {
            reduced.extend(
                shares.iter().zip(&self.factors).map(|(share, (_, fits))| self.reduced(share, *fits)),
            );
            &reduced
        };
        let products = shares.iter().zip(&self.factors).map(|(share, (factor, _))| [share, factor]);
        let pairs: Vec<[&[u64]; 2]> = products
            .chain([[turns, &self.negative]])
            .map(|pair| pair.map(|side| &side[..out.len()]))
            .collect();
        self.modulo.multiply_sum(out, &pairs);
    }

    /// Residues of another prime, into which this one fits so often, modulo this one.
    fn reduced(&self, residues: &[u64; BLOCK], fits: u64) -> [u64; BLOCK] {
        let (mut out, prime) = (*residues, self.modulo.prime());
        if fits < 8 {
            for _ in 0..fits {
                out.iter_mut().for_each(|x| *x = (*x).min(x.wrapping_sub(prime.value())));
            }
        } else {
            out.iter_mut().for_each(|x| *x = prime.reduce((*x).into()));
        }
        out
    }
}

/// The integer below the product, from residues: mixed radix (Garner 1959). In constant time.
#[derive(Clone)]
pub(crate) struct Garner {
    primes: Vec<Prime>,
    /// (q_0 ... q_(i-1))^-1 modulo q_i.
    inverses: Vec<u64>,
    /// q_0 ... q_(i-1).
    weights: Vec<u128>,
    /// Q.
    pub(crate) product: u128,
}

impl Garner {
    /// `None` where the product is 2^126 or more.
    pub(crate) fn new(primes: &[Prime]) -> Option<Self> {
        let (mut weights, mut product) = (Vec::new(), 1u128);
        for q in primes {
            weights.push(product);
            product = product.checked_mul(u128::from(q.value())).filter(|product| *product < 1 << 126)?;
        }
        let inverses = (0..primes.len())
            .map(|i| inverse(primes[i], self::product(primes[i], primes[..i].iter().copied())))
            .collect();
        Some(Self { primes: primes.to_vec(), inverses, weights, product })
    }

    /// The integer whose residue modulo prime i is `residue(i)`.
    #[inline]
    pub(crate) fn integer(&self, residue: impl Fn(usize) -> u64) -> u128 {
        let mut integer = 0u128;
        for (i, prime) in self.primes.iter().enumerate() {
            let mut digit = u128::from(residue(i));
            // The digits before this one are subtracted, and their primes divided out.
            if i > 0 {
                let before = u128::from(prime.reduce(integer));
                let rest = prime.reduce(digit + u128::from(prime.value()) - before);
                digit = u128::from(prime.reduce(u128::from(rest) * u128::from(self.inverses[i])));
            }
            integer += digit * self.weights[i];
        }
        integer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blindcore_math::ntt::primes;

    fn some(bits: u32, count: usize) -> Vec<Prime> {
        primes(bits, 1024).unwrap().take(count).collect()
    }

    #[test]
    fn an_integer_comes_back_from_its_residues() {
        for set in [some(30, 1), some(50, 2), some(40, 3), some(20, 4), some(61, 2)] {
            let garner = Garner::new(&set).unwrap();
            let q = garner.product;
            for x in [0, 1, 2, q / 2, q / 2 + 1, q - 2, q - 1, q / 3, q / 7 * 5] {
                assert_eq!(garner.integer(|i| set[i].reduce(x)), x, "{set:?}");
            }
        }
        assert!(Garner::new(&some(50, 3)).is_none(), "150 bits are too many");
    }

    #[test]
    fn residues_are_extended_to_other_primes() {
        for (from, to) in [(some(50, 2), some(48, 3)), (some(48, 1), some(50, 2)), (some(40, 3), some(61, 1))]
        {
            let extension = Extension::new(&from, &to);
            let q = Garner::new(&from).unwrap().product;
            let integers = [0, 1, q - 1, q / 2 - (q >> 50), q / 2 + (q >> 50), q / 3, q / 5 * 4];
            let words: Vec<u64> = from.iter().flat_map(|prime| integers.map(|x| prime.reduce(x))).collect();
            let out = extension.extend(integers.len(), &words);
            for (prime, out) in to.iter().zip(out.chunks(integers.len())) {
                for (x, out) in integers.iter().zip(out) {
                    let own = prime.reduce(*x);
                    // Above half, x stands for x - Q.
                    let want = if *x > q / 2 {
                        prime.reduce(u128::from(own + prime.value() - prime.reduce(q)))
                    } else {
                        own
                    };
                    assert_eq!(*out, want, "{x} of {q} modulo {prime:?}");
                }
            }
        }
    }

    #[test]
    fn fractions_are_right_to_two_units() {
        for prime in some(20, 1).into_iter().chain(some(50, 1)).chain(some(61, 1)) {
            let fractions = Fractions::new(&[prime]);
            let q = prime.value();
            for x in [0, 1, q / 2, q - 1, q / 3] {
                let exact = (u128::from(x) << 64) / u128::from(q);
                let got = u128::from(fractions.fraction(0, fractions.share(0, x)));
                assert!(got <= exact && exact - got <= 2, "{x} of {q}");
            }
        }
    }
}
