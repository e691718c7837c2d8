//! Encryption, decryption and rerandomisation.
//!
//! ```text
//!   m below n ──Encryptor──▶ c = (1 + m n) * noise modulo n^2 ──...──▶ c ──Decryptor──▶ m
//!                            noise = r^n, or hs^r from tables
//! ```

use blindcore_accel::bigmod::{Bigmod, Exponents, FixedBase, Modulus, Numbers, Residues};
use blindcore_accel::{Device, Error as DeviceError};
use blindcore_math::{RandomnessError, SecretRng};
use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, NonZero, Odd, Resize};
use subtle::{Choice, ConstantTimeEq};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::keys::{Mode, PublicKey, SecretKey, uint};

/// Why something can't be encrypted or decrypted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// A plaintext that is not below n.
    #[error("plaintext {position} of {count} is not below n; encode numbers first")]
    Plaintext {
        /// Which.
        position: usize,
        /// How many there are.
        count: usize,
    },
    /// A number that is no ciphertext of this key.
    #[error("number {position} of {count} is no ciphertext under this key: {why}")]
    Ciphertext {
        /// Which.
        position: usize,
        /// How many there are.
        count: usize,
        /// What is wrong.
        why: &'static str,
    },
    /// A decryption that did not add up.
    #[error("decryption did not pass its own check, so nothing is given out; the machine may be faulty")]
    Fault,
    /// The device refused.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No randomness.
    #[error(transparent)]
    Randomness(#[from] RandomnessError),
}

/// Encrypts under one key on one device.
pub struct Encryptor {
    key: PublicKey,
    bigmod: Box<dyn Bigmod>,
    base: Option<Box<dyn FixedBase>>,
}

impl Encryptor {
    /// Prepares the tables that a key's base asks for: some milliseconds and megabytes.
    ///
    /// # Errors
    /// The device does not do bigmod.
    pub fn new(key: &PublicKey, device: &dyn Device) -> Result<Self, Error> {
        let bigmod = device.bigmod(&key.modulus())?;
        let base = match key.mode() {
            Mode::Textbook => None,
            Mode::ShortExponent | Mode::SpecialKey => {
                let base = bigmod.place(&Numbers::from_words(key.ciphertext_words(), [key.base()]))?;
                Some(bigmod.fixed_base(&base, key.exponent_bits())?)
            }
        };
        Ok(Self { key: key.clone(), bigmod, base })
    }

    /// The key.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        &self.key
    }

    /// Arithmetic on ciphertexts.
    #[must_use]
    pub fn bigmod(&self) -> &dyn Bigmod {
        &*self.bigmod
    }

    /// Encrypts plaintexts below n, of as many words as n, each with fresh randomness.
    ///
    /// # Errors
    /// A plaintext is not below n; or the operating system gave no randomness.
    pub fn encrypt(&self, plaintexts: &Numbers) -> Result<Residues, Error> {
        let plain = self.without_randomness(plaintexts)?;
        self.rerandomise(&plain)
    }

    /// 1 + m n: what is added to a ciphertext to add m. **No encryption**: anyone reads m from it.
    ///
    /// # Errors
    /// A plaintext is not below n.
    pub fn without_randomness(&self, plaintexts: &Numbers) -> Result<Residues, Error> {
        let n = self.key.n();
        let count = plaintexts.len();
        let mut out = Numbers::zeroed(count, self.key.ciphertext_words());
        for position in 0..count {
            let m = plaintexts.get(position);
            if m.len() != n.len() || !below(m, n) {
                return Err(Error::Plaintext { position, count });
            }
            multiply(m, n, out.get_mut(position));
            // m n is at most n (n - 1): one more is below n^2.
            let mut carry = true;
            for word in out.get_mut(position) {
                (*word, carry) = word.overflowing_add(u64::from(carry));
            }
        }
        Ok(self.bigmod.place(&out)?)
    }

    /// Encryptions of the same plaintexts that can't be linked to what went in. A result that goes back to someone who
    /// holds the key, and knows the inputs' randomness, shows nothing of how it was made but its plaintext.
    ///
    /// # Errors
    /// The residues are not this key's; or the operating system gave no randomness.
    pub fn rerandomise(&self, ciphertexts: &Residues) -> Result<Residues, Error> {
        let mut rng = SecretRng::from_os()?;
        let count = ciphertexts.len();
        let noise = match &self.base {
            Some(base) => {
                let bits = self.key.exponent_bits();
                let mut exponents = Numbers::zeroed(count, bits.div_ceil(64) as usize);
                fill(&mut rng, exponents.as_words_mut());
                base.power(&exponents)?.0
            }
            None => {
                let n = self.key.n();
                let mut random = Numbers::zeroed(count, self.key.ciphertext_words());
                for position in 0..count {
                    let r = &mut random.get_mut(position)[..n.len()];
                    // Uniform below n by rejection; that it shares a factor with n is as likely as guessing one.
                    loop {
                        fill(&mut rng, r);
                        if below(r, n) && r.iter().any(|word| *word != 0) {
                            break;
                        }
                    }
                }
                let random = self.bigmod.place(&random)?;
                self.bigmod.power(&random, &Exponents::Shared(n, self.key.bits()))?.0
            }
        };
        Ok(self.bigmod.multiply(ciphertexts, &noise)?.0)
    }

    /// Takes ciphertexts from outside: each above zero, below n^2 and without a factor of n.
    ///
    /// # Errors
    /// The first that is none is named by its position.
    pub fn accept(&self, numbers: &Numbers) -> Result<Residues, Error> {
        let count = numbers.len();
        let refuse = |position, why| Err(Error::Ciphertext { position, count, why });
        if count > 0 && numbers.words() != self.key.ciphertext_words() {
            return refuse(0, "it has another length than this key's have");
        }
        let residues = match self.bigmod.place(numbers) {
            Err(DeviceError::NotReduced { position, .. }) => return refuse(position, "it is not below n^2"),
            other => other?,
        };
        // One inversion of the product of all says whether each has one.
        let mut product = residues.clone();
        while product.len() > 1 {
            let half = product.len() / 2;
            let odd = product.select(2 * half..product.len());
            product = self.bigmod.multiply(&product.select(0..half), &product.select(half..2 * half))?.0;
            product.append(&odd)?;
        }
        match self.bigmod.invert(&product) {
            Err(DeviceError::NotInvertible { .. }) => {}
            other => return other.map(|_| residues).map_err(Error::from),
        }
        match self.bigmod.invert(&residues) {
            Err(DeviceError::NotInvertible { position, .. })
                if numbers.get(position).iter().all(|w| *w == 0) =>
            {
                refuse(position, "it is zero")
            }
            Err(DeviceError::NotInvertible { position, .. }) => refuse(position, "it shares a factor with n"),
            other => Err(other.err().map_or(Error::Fault, Error::from)),
        }
    }
}

/// Decrypts with one key on one device, in constant time in the key and the plaintexts.
pub struct Decryptor {
    public: PublicKey,
    p: Half,
    q: Half,
    /// 1 / q modulo p.
    inverse: Residues,
}

/// What one prime takes to decrypt.
struct Half {
    numbers: HalfNumbers,
    square: Box<dyn Bigmod>,
    modulus: Box<dyn Bigmod>,
    reduce: Reduce,
    reduce_prime: Reduce,
    /// 1 / (exponent * other prime) modulo the prime, and what it is the inverse of.
    factor: Residues,
    back: Residues,
}

#[derive(Zeroize, ZeroizeOnDrop)]
struct HalfNumbers {
    prime: Vec<u64>,
    exponent: Vec<u64>,
    bits: u32,
    /// 1 / prime modulo 2^(64 words).
    inverse: Vec<u64>,
}

impl Half {
    fn new(
        prime: &[u64],
        other: &[u64],
        (exponent, bits): &(Zeroizing<Vec<u64>>, u32),
        device: &dyn Device,
    ) -> Result<Self, Error> {
        let words = prime.len();
        let value = Zeroizing::new(uint(prime));
        let params = BoxedMontyParams::new(Odd::new((*value).clone()).expect("a prime is odd"));
        let modulus = NonZero::new((*value).clone()).expect("a prime is not zero");
        let reduced =
            |x: &[u64]| BoxedMontyForm::new(uint(x).rem(&modulus).resize(64 * words as u32), &params);
        // c^e = (1 + m n)^e = 1 + e m n modulo p^2, so L = e m (other prime) modulo p.
        let back = reduced(exponent).mul(&reduced(other));
        let factor =
            Option::<BoxedMontyForm>::from(back.invert()).expect("neither is a multiple of the prime");
        let bigmod = device.bigmod(&Modulus::odd(prime)?)?;
        let place = |x: &BoxedMontyForm| bigmod.place(&Numbers::from_words(words, [x.retrieve().as_words()]));
        let (factor, back) = (place(&factor)?, place(&back)?);
        let square = Modulus::square_of(prime)?;
        let (inverse, _) = value.invert_mod2k(64 * words as u32);
        let numbers = HalfNumbers {
            prime: prime.to_vec(),
            exponent: exponent.to_vec(),
            bits: *bits,
            inverse: inverse.as_words().to_vec(),
        };
        let reduce = Reduce::new(square.value());
        Ok(Self {
            numbers,
            square: device.bigmod(&square)?,
            modulus: bigmod,
            reduce,
            reduce_prime: Reduce::new(prime),
            factor,
            back,
        })
    }

    /// L of every ciphertext: (c^exponent - 1) / prime modulo the prime. And whether every division came out even,
    /// which it does for every c that shares no factor with n, unless something went wrong on the way.
    fn logarithms(&self, ciphertexts: &Numbers) -> Result<(Numbers, Choice), Error> {
        let HalfNumbers { prime, exponent, bits, inverse } = &self.numbers;
        let words = prime.len();
        let mut reduced = Numbers::zeroed(ciphertexts.len(), self.square.modulus().words());
        for (i, c) in ciphertexts.iter().enumerate() {
            self.reduce.reduce(c, reduced.get_mut(i));
        }
        let placed = self.square.place(&reduced)?;
        let (powers, _) = self.square.power(&placed, &Exponents::Shared(exponent, *bits))?;
        let powers = self.square.read(&powers)?;
        let mut out = Numbers::zeroed(ciphertexts.len(), words);
        let mut even = Choice::from(1);
        let mut value = Zeroizing::new(vec![0; 2 * words]);
        let mut product = Zeroizing::new(vec![0; 2 * words]);
        for (i, power) in powers.iter().enumerate() {
            value.fill(0);
            value[..power.len()].copy_from_slice(power);
            let mut borrow = true;
            for word in value.iter_mut() {
                (*word, borrow) = word.overflowing_sub(u64::from(borrow));
            }
            let quotient = out.get_mut(i);
            multiply(&value[..words], inverse, quotient);
            multiply(quotient, prime, &mut product);
            even &= product.ct_eq(&value);
        }
        Ok((out, even))
    }

    /// Plaintexts modulo the prime.
    fn plaintexts(&self, logarithms: &Numbers) -> Result<Numbers, Error> {
        let (out, _) = self.modulus.multiply(&self.modulus.place(logarithms)?, &self.factor)?;
        Ok(self.modulus.read(&out)?)
    }

    /// Whether plaintexts are what logarithms say: the way there, gone back.
    fn check(&self, plaintexts: &Numbers, logarithms: &Numbers) -> Result<Choice, Error> {
        let mut reduced = Numbers::zeroed(plaintexts.len(), self.numbers.prime.len());
        for (i, m) in plaintexts.iter().enumerate() {
            self.reduce_prime.reduce(m, reduced.get_mut(i));
        }
        let (back, _) = self.modulus.multiply(&self.modulus.place(&reduced)?, &self.back)?;
        let back = self.modulus.read(&back)?;
        Ok(back.as_words().ct_eq(logarithms.as_words()))
    }
}

impl Decryptor {
    /// Prepares a key.
    ///
    /// # Errors
    /// The device does not do bigmod.
    pub fn new(key: &SecretKey, device: &dyn Device) -> Result<Self, Error> {
        let (p, q) = key.primes();
        let [of_p, of_q] = key.exponents();
        let half_p = Half::new(p, q, &of_p, device)?;
        let half_q = Half::new(q, p, &of_q, device)?;
        let inverse = Zeroizing::new(uint(q)).invert_odd_mod(&Odd::new(uint(p)).expect("a prime is odd"));
        let inverse = Zeroizing::new(Option::<BoxedUint>::from(inverse).expect("two primes"));
        let inverse = half_p.modulus.place(&Numbers::from_words(p.len(), [inverse.as_words()]))?;
        Ok(Self { public: key.public().clone(), p: half_p, q: half_q, inverse })
    }

    /// The public key that belongs to the secret one.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Plaintexts below n of ciphertexts, which must come from [`Encryptor::accept`] or be made here: numbers that share
    /// a factor with n fail as a whole, without saying which.
    ///
    /// Every plaintext is checked before any is given out, against faults that would give the key away (Boneh, DeMillo
    /// and Lipton 1997): each power must be 1 modulo its prime, which a disturbed exponentiation is not but by a chance
    /// of 1 in p; and the result, taken modulo each prime and multiplied back, must be the logarithm that it came from.
    ///
    /// # Errors
    /// A number is not below n^2; or [`Error::Fault`].
    pub fn decrypt(&self, ciphertexts: &Numbers) -> Result<Numbers, Error> {
        let count = ciphertexts.len();
        let n = self.public.n();
        let modulus = self.public.modulus();
        if let Some(position) =
            ciphertexts.iter().position(|c| c.len() != modulus.words() || !below(c, modulus.value()))
        {
            return Err(Error::Ciphertext { position, count, why: "it is not below n^2" });
        }
        let (log_p, even_p) = self.p.logarithms(ciphertexts)?;
        let (log_q, even_q) = self.q.logarithms(ciphertexts)?;
        if !bool::from(even_p & even_q) {
            return Err(Error::Fault);
        }
        let (of_p, of_q) = (self.p.plaintexts(&log_p)?, self.q.plaintexts(&log_q)?);
        // m = m_q + q ((m_p - m_q) / q modulo p), Garner; q is below p, so m_q is a residue.
        let p = &self.p.numbers.prime;
        let mut difference = Numbers::zeroed(count, p.len());
        for i in 0..count {
            subtract(of_p.get(i), of_q.get(i), p, difference.get_mut(i));
        }
        let (multiple, _) = self.p.modulus.multiply(&self.p.modulus.place(&difference)?, &self.inverse)?;
        let multiple = self.p.modulus.read(&multiple)?;
        let mut out = Numbers::zeroed(count, n.len());
        for i in 0..count {
            let m = out.get_mut(i);
            multiply(multiple.get(i), &self.q.numbers.prime, m);
            let mut carry = false;
            for (at, word) in m.iter_mut().enumerate() {
                let add = of_q.get(i).get(at).copied().unwrap_or(0);
                (*word, carry) = word.carrying_add(add, carry);
            }
        }
        if !bool::from(self.p.check(&out, &log_p)? & self.q.check(&out, &log_q)?) {
            return Err(Error::Fault);
        }
        Ok(out)
    }
}

/// Takes numbers modulo an odd secret one, in constant time: by Montgomery's reduction, in words.
#[derive(Zeroize, ZeroizeOnDrop)]
struct Reduce {
    modulus: Vec<u64>,
    /// -1 / modulus modulo 2^64.
    inverse: u64,
    /// 2^(128 words) modulo the modulus.
    square: Vec<u64>,
}

impl Reduce {
    fn new(modulus: &[u64]) -> Self {
        let words = modulus.len();
        let params = BoxedMontyParams::new(Odd::new(uint(modulus)).expect("odd"));
        // One in Montgomery's form is 2^(64 words); in that form again, its square.
        let one = Zeroizing::new(BoxedMontyForm::one(&params).as_montgomery().clone());
        let square = Zeroizing::new(BoxedMontyForm::new((*one).clone(), &params).as_montgomery().clone());
        let mut inverse = modulus[0]; // right in three bits, twice as many a step
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(modulus[0].wrapping_mul(inverse)));
        }
        let mut square = square.as_words().to_vec();
        square.resize(words, 0);
        Self { modulus: modulus.to_vec(), inverse: inverse.wrapping_neg(), square }
    }

    /// `x` modulo the modulus, for x below modulus * 2^(64 words).
    fn reduce(&self, x: &[u64], out: &mut [u64]) {
        let words = self.modulus.len();
        let mut wide = Zeroizing::new(vec![0; 2 * words]);
        let len = x.len().min(2 * words);
        wide[..len].copy_from_slice(&x[..len]);
        // Over 2^(64 words), times its square, over it again.
        self.montgomery(&mut wide, out);
        multiply(out, &self.square, &mut wide);
        self.montgomery(&mut wide, out);
    }

    /// `wide / 2^(64 words)` modulo the modulus.
    fn montgomery(&self, wide: &mut [u64], out: &mut [u64]) {
        let words = self.modulus.len();
        let mut top = 0u64;
        for i in 0..words {
            let digit = wide[i].wrapping_mul(self.inverse);
            let mut carry = 0;
            for (word, m) in wide[i..].iter_mut().zip(&self.modulus) {
                (*word, carry) = digit.carrying_mul_add(*m, *word, carry);
            }
            let (sum, first) = wide[i + words].overflowing_add(carry);
            let (sum, second) = sum.overflowing_add(top);
            wide[i + words] = sum;
            top = u64::from(first | second);
        }
        let high = &wide[words..];
        let mut borrow = false;
        for ((out, x), m) in out.iter_mut().zip(high).zip(&self.modulus) {
            (*out, borrow) = x.borrowing_sub(*m, borrow);
        }
        // Keep the difference unless it went below zero.
        let keep = (u64::from(borrow) & !top & 1).wrapping_neg();
        for (out, x) in out.iter_mut().zip(high) {
            *out = (*x & keep) | (*out & !keep);
        }
    }
}

/// `x < y` of equal lengths, in time that shows neither.
fn below(x: &[u64], y: &[u64]) -> bool {
    x.iter().zip(y).fold(false, |borrow, (x, y)| x.borrowing_sub(*y, borrow).1)
}

/// `out = x * y`, cut to the length of `out`.
fn multiply(x: &[u64], y: &[u64], out: &mut [u64]) {
    out.fill(0);
    for (i, x) in x.iter().enumerate().take(out.len()) {
        let mut carry = 0;
        let room = y.len().min(out.len() - i);
        for (out, y) in out[i..].iter_mut().zip(&y[..room]) {
            (*out, carry) = x.carrying_mul_add(*y, *out, carry);
        }
        if let Some(out) = out.get_mut(i + y.len()) {
            *out = carry;
        }
    }
}

/// `out = x - y` modulo `p`, of numbers below p.
fn subtract(x: &[u64], y: &[u64], p: &[u64], out: &mut [u64]) {
    let mut borrow = false;
    for (i, out) in out.iter_mut().enumerate() {
        (*out, borrow) = x[i].borrowing_sub(y.get(i).copied().unwrap_or(0), borrow);
    }
    let add = u64::from(borrow).wrapping_neg();
    let mut carry = false;
    for (out, p) in out.iter_mut().zip(p) {
        (*out, carry) = out.carrying_add(p & add, carry);
    }
}

fn fill(rng: &mut SecretRng, words: &mut [u64]) {
    let mut bytes = Zeroizing::new([0u8; 4096]);
    for words in words.chunks_mut(bytes.len() / 8) {
        let bytes = &mut bytes[..8 * words.len()];
        rng.fill(bytes);
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        }
    }
}
