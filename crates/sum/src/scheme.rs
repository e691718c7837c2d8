//! Encryption, decryption and rerandomisation.
//!
//! ```text
//!   m below n ──Encryptor──▶ c = (1 + m n) * noise modulo n^2 ──...──▶ c ──Decryptor──▶ m
//!                            noise = r^n, or hs^r from tables
//! ```

use std::sync::Arc;

use blindcore_accel::bigmod::{BigModulus, Bigmod, Exponents, FixedBase, Numbers, Residues};
use blindcore_accel::{Device, Error as DeviceError};
use blindcore_math::{RandomnessError, SecretRng};
use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, NonZero, Odd, Resize};
use subtle::{Choice, ConstantTimeEq};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::keys::{Mode, PublicKey, SecretKey, uint};

/// Why something can't be encrypted or decrypted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PaillierError {
    /// A plaintext that is not below n.
    #[error("plaintext {position} of {count} is not below n; encode numbers first")]
    Plaintext {
        /// Which.
        position: usize,
        /// How many there are.
        count: usize,
    },
    /// A number that is not a ciphertext of this key.
    #[error("number {position} of {count} is not a ciphertext under this key: {why}; is it under another?")]
    Ciphertext {
        /// Which.
        position: usize,
        /// How many there are.
        count: usize,
        /// What is wrong.
        why: &'static str,
    },
    /// A decryption that did not add up.
    #[error(
        "decryption did not pass its own check, so nothing is given out: are these ciphertexts under this key? Else the machine may \
         be faulty"
    )]
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
    bigmod: Arc<dyn Bigmod>,
    base: Option<Arc<dyn FixedBase>>,
}

impl Encryptor {
    /// Prepares the tables that a key's base asks for: some milliseconds and megabytes.
    ///
    /// # Errors
    /// The device does not do bigmod.
    pub fn new(key: &PublicKey, device: &Device) -> Result<Self, PaillierError> {
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
    pub fn encrypt(&self, plaintexts: &Numbers) -> Result<Residues, PaillierError> {
        let plain = self.without_randomness(plaintexts)?;
        self.rerandomise(&plain)
    }

    /// 1 + m n: what is added to a ciphertext to add m. **No encryption**: anyone reads m from it.
    ///
    /// # Errors
    /// A plaintext is not below n.
    pub fn without_randomness(&self, plaintexts: &Numbers) -> Result<Residues, PaillierError> {
        let n = self.key.n();
        let count = plaintexts.len();
        let mut out = Numbers::zeroed(count, self.key.ciphertext_words());
        for position in 0..count {
            let m = plaintexts.get(position);
            if m.len() != n.len() || !below(m, n) {
                return Err(PaillierError::Plaintext { position, count });
            }
            plain(m, n, out.get_mut(position));
        }
        Ok(self.bigmod.place(&out)?)
    }

    /// Encryptions of the same plaintexts that can't be linked to what went in. A result that goes back to someone who
    /// holds the key, and knows the inputs' randomness, shows nothing of how it was made but its plaintext.
    ///
    /// # Errors
    /// The residues are not this key's; or the operating system gave no randomness.
    pub fn rerandomise(&self, ciphertexts: &Residues) -> Result<Residues, PaillierError> {
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
                    // That one shares a factor with n is as likely as guessing one.
                    fill_below(&mut rng, n, &mut random.get_mut(position)[..n.len()]);
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
    pub fn accept(&self, numbers: &Numbers) -> Result<Residues, PaillierError> {
        let count = numbers.len();
        let refuse = |position, why| Err(PaillierError::Ciphertext { position, count, why });
        if count > 0 && numbers.words() != self.key.ciphertext_words() {
            return refuse(0, "it has another length than this key's have");
        }
        let residues = match self.bigmod.place(numbers) {
            Err(DeviceError::NotReduced { position, .. }) => return refuse(position, "it is not below n^2"),
            other => other?,
        };
        // One inversion of the product of all says whether each has one.
        match self.bigmod.invert(&product(&*self.bigmod, residues.clone())?) {
            Err(DeviceError::NotInvertible { .. }) => {}
            other => return other.map(|_| residues).map_err(PaillierError::from),
        }
        match self.bigmod.invert(&residues) {
            Err(DeviceError::NotInvertible { position, .. })
                if numbers.get(position).iter().all(|w| *w == 0) =>
            {
                refuse(position, "it is zero")
            }
            Err(DeviceError::NotInvertible { position, .. }) => refuse(position, "it shares a factor with n"),
            other => Err(other.err().map_or(PaillierError::Fault, PaillierError::from)),
        }
    }
}

/// Decrypts with one key on one device, in constant time in the key and the plaintexts.
pub struct Decryptor {
    public: PublicKey,
    /// Arithmetic modulo n^2, and there an encryption of a random number that no one knows: see [`Decryptor::decrypt`].
    whole: Arc<dyn Bigmod>,
    mask: Residues,
    p: Half,
    q: Half,
    /// 1 / q modulo p.
    inverse: Residues,
}

/// What one prime takes to decrypt.
struct Half {
    numbers: HalfNumbers,
    square: Arc<dyn Bigmod>,
    modulus: Arc<dyn Bigmod>,
    reduce: Reduce,
    reduce_prime: Reduce,
    /// What [`Reduce`] divides by, modulo the prime's square.
    shift: Residues,
    /// 1 / (exponent * other prime) modulo the prime; and what it is the inverse of, times what [`Reduce`] divides by.
    factor: Residues,
    back: Residues,
    /// The logarithm of the mask.
    mask: Numbers,
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
        mask: &Numbers,
        device: &Device,
    ) -> Result<Self, PaillierError> {
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
        let bigmod = device.bigmod(&BigModulus::odd(prime)?)?;
        let place = |x: &BoxedMontyForm| bigmod.place(&Numbers::from_words(words, [x.retrieve().as_words()]));
        let shift = BoxedMontyForm::new(BoxedMontyForm::one(&params).as_montgomery().clone(), &params);
        let (factor, back) = (place(&factor)?, place(&back.mul(&shift))?);
        let square = BigModulus::square_of(prime)?;
        let (inverse, _) = value.invert_mod2k(64 * words as u32);
        let numbers = HalfNumbers {
            prime: prime.to_vec(),
            exponent: exponent.to_vec(),
            bits: *bits,
            inverse: inverse.as_words().to_vec(),
        };
        let reduce = Reduce::new(square.value());
        let params = BoxedMontyParams::new(Odd::new(uint(square.value())).expect("a prime is odd"));
        let shift = Zeroizing::new(BoxedMontyForm::one(&params).as_montgomery().clone());
        let square = device.bigmod(&square)?;
        let shift = square.place(&Numbers::from_words(square.modulus().words(), [shift.as_words()]))?;
        let mut half = Self {
            numbers,
            square,
            modulus: bigmod,
            reduce,
            reduce_prime: Reduce::new(prime),
            shift,
            factor,
            back,
            mask: Numbers::zeroed(1, words),
        };
        half.mask = half.logarithms_of(mask)?;
        Ok(half)
    }

    /// L of every ciphertext: (c^exponent - 1) / prime modulo the prime. And whether all went well: every division came
    /// out even, and `all`, the mask times the square of the product of all, has the logarithm that belongs to that.
    fn logarithms(&self, ciphertexts: &Numbers, all: &Numbers) -> Result<(Numbers, Choice), PaillierError> {
        let HalfNumbers { prime, exponent, bits, inverse } = &self.numbers;
        let words = prime.len();
        let count = ciphertexts.len();
        let mut reduced = Numbers::zeroed(count + 1, self.square.modulus().words());
        for (i, c) in ciphertexts.iter().chain(all.iter()).enumerate() {
            self.reduce.reduce(c, reduced.get_mut(i));
        }
        let (placed, _) = self.square.multiply(&self.square.place(&reduced)?, &self.shift)?;
        let (powers, _) = self.square.power(&placed, &Exponents::Shared(exponent, *bits))?;
        let powers = self.square.read(&powers)?;
        let (mut out, mut rest) = (Numbers::zeroed(count, words), Numbers::zeroed(1, words));
        let mut good = Choice::from(1);
        let mut value = Zeroizing::new(vec![0; 2 * words]);
        let mut product = Zeroizing::new(vec![0; 2 * words]);
        for (i, power) in powers.iter().enumerate() {
            value.fill(0);
            value[..power.len()].copy_from_slice(power);
            let mut borrow = true;
            for word in value.iter_mut() {
                (*word, borrow) = word.overflowing_sub(u64::from(borrow));
            }
            let quotient = if i < count { out.get_mut(i) } else { rest.get_mut(0) };
            multiply(&value[..words], inverse, quotient);
            multiply(quotient, prime, &mut product);
            good &= product.ct_eq(&value);
        }
        // Taking each logarithm twice from that of all leaves the mask's.
        let rest = rest.get_mut(0);
        for logarithm in out.iter().flat_map(|l| [l, l]) {
            subtract(rest, logarithm, prime);
        }
        good &= rest.ct_eq(self.mask.get(0));
        Ok((out, good))
    }

    /// Plaintexts modulo the prime.
    fn plaintexts(&self, logarithms: &Numbers) -> Result<Numbers, PaillierError> {
        let (out, _) = self.modulus.multiply(&self.modulus.place(logarithms)?, &self.factor)?;
        Ok(self.modulus.read(&out)?)
    }

    /// The logarithms that ciphertexts of plaintexts have.
    fn logarithms_of(&self, plaintexts: &Numbers) -> Result<Numbers, PaillierError> {
        let mut reduced = Numbers::zeroed(plaintexts.len(), self.numbers.prime.len());
        for (i, m) in plaintexts.iter().enumerate() {
            self.reduce_prime.reduce(m, reduced.get_mut(i));
        }
        let (back, _) = self.modulus.multiply(&self.modulus.place(&reduced)?, &self.back)?;
        Ok(self.modulus.read(&back)?)
    }
}

impl Decryptor {
    /// Prepares a key.
    ///
    /// # Errors
    /// The device does not do bigmod; or the operating system gave no randomness.
    pub fn new(key: &SecretKey, device: &Device) -> Result<Self, PaillierError> {
        let (p, q) = key.primes();
        let [of_p, of_q] = key.exponents();
        let (whole, number, mask) = mask(key.public(), device)?;
        let half_p = Half::new(p, q, &of_p, &number, device)?;
        let half_q = Half::new(q, p, &of_q, &number, device)?;
        let inverse = Zeroizing::new(uint(q)).invert_odd_mod(&Odd::new(uint(p)).expect("a prime is odd"));
        let inverse = Zeroizing::new(Option::<BoxedUint>::from(inverse).expect("two primes"));
        let inverse = half_p.modulus.place(&Numbers::from_words(p.len(), [inverse.as_words()]))?;
        Ok(Self { public: key.public().clone(), whole, mask, p: half_p, q: half_q, inverse })
    }

    /// The public key that belongs to the secret one.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Plaintexts below n of ciphertexts. Numbers that share a factor with n are refused, as [`Encryptor::accept`] does.
    ///
    /// Every plaintext is checked before any is given out, against faults: one that is right modulo one prime and wrong
    /// modulo the other gives the key away (Boneh, DeMillo and Lipton 1997).
    ///
    /// 1. Each power must be 1 modulo its prime. This alone passes over faults in what is raised, and in the part of it
    ///    that is a multiple of the prime, which devices keep apart.
    /// 2. Hence one more number is decrypted: the square of the product of all, worked out modulo n^2, times the mask, an
    ///    encryption of a random number made with this decryptor. Its logarithm must be twice the sum of theirs and the
    ///    mask's: a fault in any one number shows, faults in several unless they cancel modulo a prime that is unknown.
    /// 3. The result, taken modulo each prime and multiplied back, must be the logarithm that it came from.
    ///
    /// A fault that makes the processor pass over a check is not caught.
    ///
    /// # Errors
    /// A number is not below n^2, or shares a factor with n; or [`PaillierError::Fault`].
    pub fn decrypt(&self, ciphertexts: &Numbers) -> Result<Numbers, PaillierError> {
        let count = ciphertexts.len();
        let n = self.public.n();
        let modulus = self.public.modulus();
        if let Some(position) =
            ciphertexts.iter().position(|c| c.len() != modulus.words() || !below(c, modulus.value()))
        {
            return Err(PaillierError::Ciphertext { position, count, why: "it is not below n^2" });
        }
        if count == 0 {
            return Ok(Numbers::zeroed(0, n.len()));
        }
        let (all, _) = self.whole.square(&product(&*self.whole, self.whole.place(ciphertexts)?)?, 1)?;
        let all = self.whole.read(&self.whole.multiply(&all, &self.mask)?.0)?;
        let (log_p, good_p) = self.p.logarithms(ciphertexts, &all)?;
        let (log_q, good_q) = self.q.logarithms(ciphertexts, &all)?;
        if !bool::from(good_p & good_q) {
            // A number with a factor of n has no logarithm: that is not a fault, and shows from what is public.
            return Err(self.no_ciphertext(ciphertexts).unwrap_or(PaillierError::Fault));
        }
        let (of_p, of_q) = (self.p.plaintexts(&log_p)?, self.q.plaintexts(&log_q)?);
        // m = m_q + q ((m_p - m_q) / q modulo p), Garner; q is below p, so m_q is a residue.
        let p = &self.p.numbers.prime;
        let mut difference = Numbers::zeroed(count, p.len());
        for i in 0..count {
            difference.get_mut(i).copy_from_slice(of_p.get(i));
            subtract(difference.get_mut(i), of_q.get(i), p);
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
        let (back_p, back_q) = (self.p.logarithms_of(&out)?, self.q.logarithms_of(&out)?);
        if !bool::from(back_p.as_words().ct_eq(log_p.as_words()) & back_q.as_words().ct_eq(log_q.as_words()))
        {
            return Err(PaillierError::Fault);
        }
        Ok(out)
    }
}

impl Decryptor {
    /// The first number that shares a factor with n, if one does.
    fn no_ciphertext(&self, numbers: &Numbers) -> Option<PaillierError> {
        let count = numbers.len();
        match self.whole.invert(&self.whole.place(numbers).ok()?) {
            Err(DeviceError::NotInvertible { position, .. }) => {
                let zero = numbers.get(position).iter().all(|w| *w == 0);
                let why = if zero { "it is zero" } else { "it shares a factor with n" };
                Some(PaillierError::Ciphertext { position, count, why })
            }
            _ => None,
        }
    }
}

/// Arithmetic modulo n^2, a random number below n, and an encryption of it.
fn mask(key: &PublicKey, device: &Device) -> Result<(Arc<dyn Bigmod>, Numbers, Residues), PaillierError> {
    let n = key.n();
    let mut rng = SecretRng::from_os()?;
    let whole = device.bigmod(&key.modulus())?;
    let mut number = Numbers::zeroed(1, n.len());
    fill_below(&mut rng, n, number.get_mut(0));
    let mut mask = Numbers::zeroed(1, key.ciphertext_words());
    plain(number.get(0), n, mask.get_mut(0));
    // Any noise will do, for no one sees it: the base of keys that have one.
    let noise = if key.base().is_empty() {
        let mut random = Numbers::zeroed(1, key.ciphertext_words());
        fill_below(&mut rng, n, &mut random.get_mut(0)[..n.len()]);
        whole.power(&whole.place(&random)?, &Exponents::Shared(n, key.bits()))?.0
    } else {
        whole.place(&Numbers::from_words(key.ciphertext_words(), [key.base()]))?
    };
    let (mask, _) = whole.multiply(&whole.place(&mask)?, &noise)?;
    Ok((whole, number, mask))
}

/// The product of all of at least one residue.
fn product(bigmod: &dyn Bigmod, mut residues: Residues) -> Result<Residues, PaillierError> {
    while residues.len() > 1 {
        let half = residues.len() / 2;
        let odd = residues.select(2 * half..residues.len());
        residues = bigmod.multiply(&residues.select(0..half), &residues.select(half..2 * half))?.0;
        residues.append(&odd)?;
    }
    Ok(residues)
}

/// Takes numbers over 2^(64 words) modulo an odd secret one of that many words, in constant time: Montgomery's reduction. The
/// factor goes into the next product, on a device.
#[derive(Zeroize, ZeroizeOnDrop)]
struct Reduce {
    modulus: Vec<u64>,
    /// -1 / modulus modulo 2^64.
    inverse: u64,
}

impl Reduce {
    fn new(modulus: &[u64]) -> Self {
        let mut inverse = modulus[0]; // right in three bits, twice as many a step
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(modulus[0].wrapping_mul(inverse)));
        }
        Self { modulus: modulus.to_vec(), inverse: inverse.wrapping_neg() }
    }

    /// `x / 2^(64 words)` modulo the modulus, for x below modulus * 2^(64 words).
    fn reduce(&self, x: &[u64], out: &mut [u64]) {
        let words = self.modulus.len();
        let mut wide = Zeroizing::new(vec![0; 2 * words]);
        let len = x.len().min(2 * words);
        wide[..len].copy_from_slice(&x[..len]);
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

/// `out = 1 + m n`, of m below n.
fn plain(m: &[u64], n: &[u64], out: &mut [u64]) {
    multiply(m, n, out);
    // m n is at most n (n - 1): one more is below n^2.
    let mut carry = true;
    for word in out {
        (*word, carry) = word.overflowing_add(u64::from(carry));
    }
}

/// `x -= y` modulo `p`, of numbers below p.
fn subtract(x: &mut [u64], y: &[u64], p: &[u64]) {
    let mut borrow = false;
    for (i, x) in x.iter_mut().enumerate() {
        (*x, borrow) = x.borrowing_sub(y.get(i).copied().unwrap_or(0), borrow);
    }
    let add = u64::from(borrow).wrapping_neg();
    let mut carry = false;
    for (x, p) in x.iter_mut().zip(p) {
        (*x, carry) = x.carrying_add(p & add, carry);
    }
}

/// A uniform number from 1 to n - 1, by rejection.
fn fill_below(rng: &mut SecretRng, n: &[u64], out: &mut [u64]) {
    loop {
        fill(rng, out);
        if below(out, n) && out.iter().any(|word| *word != 0) {
            return;
        }
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
