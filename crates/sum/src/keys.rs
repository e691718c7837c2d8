//! Keys: generation, validation, their files.
//!
//! A public key is n = p q and, in the modes that have one, a base hs; a secret key is its primes. Everything that comes
//! from outside is validated where it is loaded: a key that is held is a key that is sound.
//!
//! What is kept of a secret key is wiped when it is dropped. The library of big numbers frees its working memory as it
//! is, so making or loading a key, and preparing a decryptor, may leave parts of it in memory of this process.

use blindcore_accel::bigmod::BigModulus;
use blindcore_files::header::{DIGEST, Field, HeaderError, Layout, Seal};
use blindcore_files::secret::SUM_SECRET_KEY;
use blindcore_math::{RandomnessError, SecretRng};
use crypto_bigint::{
    BoxedUint, ConcatenatingMul, ConcatenatingSquare, NonZero, Odd, Resize,
    modular::{BoxedMontyForm, BoxedMontyParams},
};
use crypto_primes::{Flavor, is_prime};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Why a key can't be made or used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum KeyError {
    /// A size that keys don't come in.
    #[error(
        "keys of {got} bits are not made; use 2048, 3072 or 4096, or for tests alone 512, 1024 or 1536 with --insecure-test-key"
    )]
    Size {
        /// What was asked for.
        got: u32,
    },
    /// Numbers that make no sound key.
    #[error("{what} is not sound: {why}; make a new key")]
    Unsound {
        /// Which key.
        what: &'static str,
        /// What is wrong, never a secret number.
        why: &'static str,
    },
    /// Bytes that are not a key.
    #[error("these bytes are no {what}: {why}")]
    Bytes {
        /// Which key was expected.
        what: &'static str,
        /// What is wrong.
        why: String,
    },
    /// No randomness.
    #[error(transparent)]
    Randomness(#[from] RandomnessError),
}

/// The length of n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySize(u32);

impl KeySize {
    /// 2048 (112 bits of security), 3072 (128) or 4096 (some 150), by NIST SP 800-57 part 1.
    ///
    /// # Errors
    /// Another length.
    pub fn new(bits: u32) -> Result<Self, KeyError> {
        if matches!(bits, 2048 | 3072 | 4096) { Ok(Self(bits)) } else { Err(KeyError::Size { got: bits }) }
    }

    /// 512, 1024 or 1536: broken or soon to be, and quick to test with.
    ///
    /// # Errors
    /// Another length.
    pub fn test_only(bits: u32) -> Result<Self, KeyError> {
        if matches!(bits, 512 | 1024 | 1536) { Ok(Self(bits)) } else { Err(KeyError::Size { got: bits }) }
    }

    fn any(bits: u32) -> Result<Self, KeyError> {
        Self::new(bits).or_else(|_| Self::test_only(bits))
    }

    /// The length.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.0
    }
}

/// How a key encrypts. Keys of one mode are not keys of another: the mode is in a key's bytes and in its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// (1 + m n) r^n with r below n: Paillier 1999, what `phe` does.
    Textbook,
    /// (1 + m n) hs^r with r half as long as n and hs = (-x^2)^n: Damgard, Jurik and Nielsen 2010, section 4.2. Rests on
    /// subgroup of squares' short exponents being indistinguishable from long ones.
    ShortExponent,
    /// (1 + m n) hs^r with hs of a small secret order alpha and r as long as it: Ma, Han and Lei, "Optimized Paillier's
    /// Cryptosystem with Fast Encryption and Decryption", ACSAC 2021. The shortest exponents on both sides; rests on a
    /// further assumption, that a subgroup of order alpha can't be told from the group, and on the primes' special form.
    SpecialKey,
}

impl Mode {
    const ALL: [Mode; 3] = [Mode::Textbook, Mode::ShortExponent, Mode::SpecialKey];

    fn code(self) -> u8 {
        self as u8
    }
}

/// A key's name: the BLAKE3 hash of its public bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId([u8; 32]);

impl KeyId {
    /// From 32 bytes, as they stand in files.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Display for KeyId {
    /// The first eight bytes, in hexadecimal.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A public key: n, and the base of a [`Mode`] that has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    mode: Mode,
    n: Vec<u64>,
    /// hs, below n^2; empty in textbook mode.
    base: Vec<u64>,
    id: KeyId,
}

/// Magic, version, mode, a zero byte, bits of n; then words, and the digest of all before it.
const PUBLIC: Layout = Layout {
    what: "a public key",
    magic: b"bcsumpub",
    version_at: 8,
    version_bytes: 2,
    version: 1,
    bytes: 16,
};
const SECRET: Layout = Layout { what: "a secret key", magic: SUM_SECRET_KEY, ..PUBLIC };
const MODE: Field<u8> = Field::at(10);
const ZERO: Field<u8> = Field::at(11);
const BITS: Field<u32> = Field::at(12);
/// Bytes of a key, at most.
const MAX_BYTES: usize = 1 << 14;

impl PublicKey {
    /// The textbook key of a bare n, as `phe` has them.
    ///
    /// # Errors
    /// n has not a length that keys come in, is even, or is prime.
    pub fn textbook(n: &[u64]) -> Result<Self, KeyError> {
        Self::checked(Mode::Textbook, n, &[])
    }

    /// Without validation of what was just made.
    fn made(mode: Mode, n: Vec<u64>, base: Vec<u64>) -> Self {
        let mut key = Self { mode, n, base, id: KeyId([0; 32]) };
        key.id = KeyId(*blake3::hash(&key.body()).as_bytes());
        key
    }

    fn checked(mode: Mode, n: &[u64], base: &[u64]) -> Result<Self, KeyError> {
        let unsound = |why| KeyError::Unsound { what: "the public key", why };
        let n = uint(n);
        let bits = KeySize::any(n.bits_vartime())?.bits();
        let n = trimmed(&n, bits);
        let value = uint(&n);
        if n[0].is_multiple_of(2) {
            return Err(unsound("n is even"));
        }
        if is_prime(Flavor::Any, &value) {
            return Err(unsound("n is prime"));
        }
        let base = uint(base);
        if mode == Mode::Textbook {
            return Ok(Self::made(mode, n, Vec::new()));
        }
        if base.bits_vartime() > 2 * bits || uint(&trimmed(&base, 2 * bits)) >= value.concatenating_square() {
            return Err(unsound("its base is not below n^2"));
        }
        let low = base.rem_vartime(&NonZero::new(value.clone()).expect("not zero"));
        let odd = Odd::new(value).expect("checked above");
        let inverse: Option<BoxedUint> = low.clone().resize(bits).invert_odd_mod_vartime(&odd).into();
        let minus_one = odd.wrapping_sub(BoxedUint::one_with_precision(bits));
        if inverse.is_none() || low.bits_vartime() <= 1 || low == minus_one {
            return Err(unsound("its base is 1 or -1, or shares a factor with n"));
        }
        Ok(Self::made(mode, n, trimmed(&base, 2 * bits)))
    }

    /// n, in words of 64 bits, least significant first.
    #[must_use]
    pub fn n(&self) -> &[u64] {
        &self.n
    }

    /// The length of n.
    #[must_use]
    pub fn bits(&self) -> u32 {
        64 * self.n.len() as u32
    }

    /// Bits of security of n (NIST SP 800-57 part 1, table 2; by interpolation at 4096); none for keys of tests.
    #[must_use]
    pub fn security_bits(&self) -> Option<u32> {
        match self.bits() {
            2048 => Some(112),
            3072 => Some(128),
            4096 => Some(150),
            _ => None,
        }
    }

    /// Whether it is too short for anything but tests.
    #[must_use]
    pub fn is_test_only(&self) -> bool {
        KeySize::new(self.bits()).is_err()
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Whether its secret key decrypts what was encrypted under the key of this name: that is its own name, and of a
    /// short-exponent key that of the textbook key of its n, which is how python-paillier knows it. Decryption takes out noise
    /// of any kind, but for that of a special key, whose exponents are those of its own noise.
    #[must_use]
    pub fn decrypts(&self, id: KeyId) -> bool {
        let textbook = || Self::made(Mode::Textbook, self.n.clone(), Vec::new()).id;
        id == self.id || self.mode == Mode::ShortExponent && id == textbook()
    }

    /// How it encrypts.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// hs, below n^2; empty in textbook mode.
    pub(crate) fn base(&self) -> &[u64] {
        &self.base
    }

    /// Bits of the exponents that hs is raised to.
    pub fn exponent_bits(&self) -> u32 {
        match self.mode {
            Mode::Textbook => self.bits(),
            Mode::ShortExponent => self.bits() / 2,
            Mode::SpecialKey => alpha_bits(self.bits()),
        }
    }

    /// n^2, of which ciphertexts are residues.
    ///
    /// # Panics
    /// Never: n was checked.
    #[must_use]
    pub fn modulus(&self) -> BigModulus {
        BigModulus::square_of(&self.n).expect("n is odd and of a length that is carried")
    }

    /// Words of a ciphertext.
    #[must_use]
    pub fn ciphertext_words(&self) -> usize {
        2 * self.n.len()
    }

    fn body(&self) -> Vec<u8> {
        let mut out = header(&PUBLIC, self.mode, self.bits());
        for word in self.n.iter().chain(&self.base) {
            out.extend(word.to_le_bytes());
        }
        out
    }

    /// The key as bytes: a header, n, hs, and the BLAKE3 hash of all before it.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.body();
        Seal::Plain.close(&mut out);
        out
    }

    /// Reads [`PublicKey::to_bytes`], and validates.
    ///
    /// # Errors
    /// The bytes are damaged or of another kind, or the key is not sound.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        let (mode, bits, words) = opened("public key", &PUBLIC, bytes)?;
        let n_words = bits as usize / 64;
        let want = if mode == Mode::Textbook { n_words } else { 3 * n_words };
        if words.len() != want {
            let why = format!("{} words where {want} belong", words.len());
            return Err(KeyError::Bytes { what: "public key", why });
        }
        let key = Self::checked(mode, &words[..n_words], &words[n_words..])?;
        if key.bits() != bits {
            return Err(KeyError::Bytes {
                what: "public key",
                why: format!("n has {} bits, not {bits}", key.bits()),
            });
        }
        Ok(key)
    }
}

/// A secret key: the primes, the larger first, and in the special mode the primes of alpha. Wiped.
pub struct SecretKey {
    public: PublicKey,
    primes: Primes,
}

#[derive(Zeroize, ZeroizeOnDrop)]
struct Primes {
    p: Vec<u64>,
    q: Vec<u64>,
    /// The prime factors of p - 1 and q - 1 whose product is alpha; empty in the other modes.
    small_p: Vec<u64>,
    small_q: Vec<u64>,
}

impl SecretKey {
    /// Makes a key with randomness of the operating system. Takes some tenths of a second to some seconds.
    ///
    /// Both primes are 3 modulo 4 (so that -x^2 has Jacobi symbol 1 and generates: IPCL tests one of them twice, and
    /// half of its keys leak a bit), have their two top bits set, and differ in their upper hundred bits.
    ///
    /// # Errors
    /// The operating system gave no randomness.
    pub fn generate(size: KeySize, mode: Mode) -> Result<Self, KeyError> {
        let mut rng = SecretRng::from_os()?;
        let half = size.bits() / 2;
        loop {
            let (p, small_p) = prime(&mut rng, half, mode, size);
            let (q, small_q) = prime(&mut rng, half, mode, size);
            let (p, q) = (p.as_words(), q.as_words());
            let small = |s: &Option<Zeroizing<BoxedUint>>| {
                s.as_ref().map_or_else(Vec::new, |s| s.as_words().to_vec())
            };
            let (mut first, mut second) = ((p.to_vec(), small(&small_p)), (q.to_vec(), small(&small_q)));
            if uint(p) < uint(q) {
                std::mem::swap(&mut first, &mut second);
            }
            let primes = Primes { p: first.0, q: second.0, small_p: first.1, small_q: second.1 };
            if primes.check(size).is_err() {
                continue;
            }
            let n = uint(&primes.p).concatenating_mul(&uint(&primes.q));
            let base = if mode == Mode::Textbook { Vec::new() } else { base(&mut rng, &n, &primes) };
            return Ok(Self { public: PublicKey::made(mode, n.as_words().to_vec(), base), primes });
        }
    }

    /// A textbook key from its primes.
    ///
    /// # Errors
    /// They are not primes, not of one length, too near to each other, or don't go together.
    pub fn from_primes(p: &[u64], q: &[u64]) -> Result<Self, KeyError> {
        let (p, q) = (Zeroizing::new(uint(p)), Zeroizing::new(uint(q)));
        let bits = p.bits() + q.bits();
        let size = KeySize::any(bits)?;
        let (p, q) = if *p < *q { (q, p) } else { (p, q) };
        let half = bits / 2;
        if p.bits() != half || q.bits() != half {
            return Err(unsound("its primes have different lengths"));
        }
        let (p, q) = (trimmed(&p, half), trimmed(&q, half));
        let primes = Primes { p, q, small_p: Vec::new(), small_q: Vec::new() };
        primes.check(size)?;
        let n = uint(&primes.p).concatenating_mul(&uint(&primes.q));
        if n.bits() != bits {
            return Err(KeyError::Size { got: n.bits() });
        }
        Ok(Self { public: PublicKey::made(Mode::Textbook, n.as_words().to_vec(), Vec::new()), primes })
    }

    /// The public key that belongs to it.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// p and q, the larger first. Secret.
    #[must_use]
    pub fn primes(&self) -> (&[u64], &[u64]) {
        (&self.primes.p, &self.primes.q)
    }

    /// What ciphertexts are raised to modulo p^2 and q^2: p - 1, or twice a factor of it. With their bits.
    pub(crate) fn exponents(&self) -> [(Zeroizing<Vec<u64>>, u32); 2] {
        [(&self.primes.p, &self.primes.small_p), (&self.primes.q, &self.primes.small_q)].map(
            |(prime, small)| {
                if small.is_empty() {
                    let mut exponent = Zeroizing::new(prime.clone());
                    exponent[0] -= 1; // odd
                    (exponent, 64 * prime.len() as u32)
                } else {
                    let twice = Zeroizing::new(uint(small).resize(64 * small.len() as u32 + 64).shl(1));
                    (Zeroizing::new(twice.as_words().to_vec()), 64 * small.len() as u32 + 1)
                }
            },
        )
    }

    /// The key as bytes, as [`PublicKey::to_bytes`]: a header, p, q, the factors of alpha, hs, a hash. Secret.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let Primes { p, q, small_p, small_q } = &self.primes;
        let words = p.len() + q.len() + small_p.len() + small_q.len() + self.public.base.len();
        // Room for all at once, so that growing leaves no copy behind.
        let mut out = Vec::with_capacity(SECRET.bytes + 8 * words + DIGEST);
        out.extend(header(&SECRET, self.public.mode, self.public.bits()));
        for word in p.iter().chain(q).chain(small_p).chain(small_q).chain(&self.public.base) {
            out.extend(word.to_le_bytes());
        }
        Seal::Plain.close(&mut out);
        Zeroizing::new(out)
    }

    /// Reads [`SecretKey::to_bytes`], and validates.
    ///
    /// # Errors
    /// The bytes are damaged or of another kind, or the key is not sound.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        let (mode, bits, words) = opened("secret key", &SECRET, bytes)?;
        let size = KeySize::any(bits)?;
        let prime_words = bits as usize / 128;
        let small = if mode == Mode::SpecialKey { alpha_bits(bits) as usize / 128 } else { 0 };
        let base = if mode == Mode::Textbook { 0 } else { 4 * prime_words };
        if words.len() != 2 * prime_words + 2 * small + base {
            let why = format!("{} words where {} belong", words.len(), 2 * prime_words + 2 * small + base);
            return Err(KeyError::Bytes { what: "secret key", why });
        }
        let mut rest = words.as_slice();
        let mut take = |count: usize| {
            let (taken, left) = rest.split_at(count);
            rest = left;
            taken.to_vec()
        };
        let primes =
            Primes { p: take(prime_words), q: take(prime_words), small_p: take(small), small_q: take(small) };
        let base = take(base);
        primes.check(size)?;
        let n = uint(&primes.p).concatenating_mul(&uint(&primes.q));
        let public = PublicKey::checked(mode, n.as_words(), &base)?;
        if public.bits() != bits {
            return Err(unsound("its primes are too short for its length"));
        }
        let key = Self { public, primes };
        key.check_base()?;
        Ok(key)
    }

    /// That hs has the order that decryption relies on, and no Jacobi symbol modulo n but 1, which would leak a bit: it is
    /// -1 modulo p^2 and q^2 when raised to half the exponent.
    fn check_base(&self) -> Result<(), KeyError> {
        if self.public.mode == Mode::Textbook {
            return Ok(());
        }
        if self.primes.p[0] % 4 != 3 || self.primes.q[0] % 4 != 3 {
            return Err(unsound("its primes are not both 3 modulo 4"));
        }
        for (prime, (exponent, bits)) in [&self.primes.p, &self.primes.q].into_iter().zip(self.exponents()) {
            let square = uint(prime).concatenating_square();
            let modulus = NonZero::new(square.clone()).expect("a prime's square");
            let params = BoxedMontyParams::new(Odd::new(square).expect("a prime's square"));
            let base = uint(&self.public.base).rem(&modulus).resize(params.bits_precision());
            let half = Zeroizing::new(uint(&exponent).shr(1)); // of an even number
            let power = BoxedMontyForm::new(base, &params).pow_bounded_exp(&half, bits - 1);
            if power != BoxedMontyForm::one(&params).neg() {
                return Err(unsound("its base has not the order that it should"));
            }
        }
        Ok(())
    }
}

fn unsound(why: &'static str) -> KeyError {
    KeyError::Unsound { what: "the secret key", why }
}

impl Primes {
    /// Everything that decryption relies on.
    fn check(&self, size: KeySize) -> Result<(), KeyError> {
        let (p, q) = (Zeroizing::new(uint(&self.p)), Zeroizing::new(uint(&self.q)));
        if p.bits() != size.bits() / 2 || q.bits() != size.bits() / 2 {
            return Err(unsound("its primes have not half of its length"));
        }
        if *p <= *q {
            return Err(unsound("its primes are the same, or in the wrong order"));
        }
        // Fermat's method factors n where they are near; FIPS 186-5, A.1.3, asks for this much.
        if Zeroizing::new(p.wrapping_sub(&*q)).bits() <= (size.bits() / 2).saturating_sub(100) {
            return Err(unsound("its primes are too near to each other"));
        }
        if !is_prime(Flavor::Any, &*p) || !is_prime(Flavor::Any, &*q) {
            return Err(unsound("p or q is not prime"));
        }
        // gcd(n, (p - 1)(q - 1)) = 1: of two primes of one length neither divides the other's predecessor, but a check
        // costs nothing.
        let minus_one =
            |x: &BoxedUint| Zeroizing::new(x.wrapping_sub(BoxedUint::one_with_precision(x.bits_precision())));
        let divides = |x: &BoxedUint, y: &BoxedUint| {
            bool::from(y.rem(&NonZero::new(x.clone()).expect("a prime")).is_zero())
        };
        if divides(&p, &minus_one(&q)) || divides(&q, &minus_one(&p)) {
            return Err(unsound("one prime divides the other's predecessor"));
        }
        if !self.small_p.is_empty() && self.small_p == self.small_q {
            return Err(unsound("both factors of alpha are the same"));
        }
        for (prime, small) in [(&p, &self.small_p), (&q, &self.small_q)] {
            if small.is_empty() {
                continue;
            }
            let small = Zeroizing::new(uint(small));
            // Its length is what keeps it from being found in the square root of its size.
            if small.bits() != alpha_bits(size.bits()) / 2
                || !is_prime(Flavor::Any, &*small)
                || !divides(&small, &minus_one(prime))
            {
                return Err(unsound("a factor of alpha is short, not prime, or does not divide p - 1"));
            }
        }
        Ok(())
    }
}

/// Bits of alpha: each of its two primes has twice the bits of n's security, for a meet in the middle takes the square
/// root of one (Ma, Han and Lei, section 4), in whole words: 112 bits at 2048 would do with 448.
fn alpha_bits(bits: u32) -> u32 {
    match bits {
        ..2048 => 256,
        2048..4096 => 512,
        _ => 640,
    }
}

/// A random prime that is 3 modulo 4, and in the special mode the prime factor of its predecessor.
fn prime(
    rng: &mut SecretRng,
    bits: u32,
    mode: Mode,
    size: KeySize,
) -> (Zeroizing<BoxedUint>, Option<Zeroizing<BoxedUint>>) {
    if mode != Mode::SpecialKey {
        return (search(rng, bits, |candidate| candidate), None);
    }
    let small = search(rng, alpha_bits(size.bits()) / 2, |candidate| candidate);
    // p = 2 s k + 1 with k odd is 3 modulo 4; k is random with as many bits as are left, its top bits set.
    let twice = Zeroizing::new((*small).clone().resize(bits).shl(1));
    let modulus = NonZero::new((*twice).clone()).expect("not zero");
    let p = search(rng, bits, |candidate| {
        // Down to the next number that is 1 modulo 2 s, and by another 2 s where that would make k even.
        let over = candidate.rem(&modulus);
        let p = candidate.wrapping_sub(&over).wrapping_add(BoxedUint::one_with_precision(bits));
        if p.as_words()[0] % 4 == 3 { p } else { p.wrapping_sub(&twice) }
    });
    (p, Some(small))
}

/// The first prime of a random sequence. Time shows how many candidates were passed over, which are independent of the
/// one that is kept.
fn search(rng: &mut SecretRng, bits: u32, form: impl Fn(BoxedUint) -> BoxedUint) -> Zeroizing<BoxedUint> {
    let words = (bits / 64) as usize;
    let mut candidate = Zeroizing::new(vec![0u64; words]);
    let mut bytes = Zeroizing::new(vec![0u8; 8 * words]);
    loop {
        rng.fill(&mut bytes);
        for (word, bytes) in candidate.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        }
        candidate[0] |= 3;
        candidate[words - 1] |= 3 << 62;
        let number = Zeroizing::new(form(uint(&candidate)));
        let small_factor = SMALL_PRIMES.iter().any(|p| remainder(number.as_words(), *p) == 0);
        if !small_factor && number.bits() == bits && is_prime(Flavor::Any, &*number) {
            return number;
        }
    }
}

/// The primes below 2^10 but two.
static SMALL_PRIMES: std::sync::LazyLock<Vec<u64>> = std::sync::LazyLock::new(|| {
    (3..1024u64).step_by(2).filter(|n| (3..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0)).collect()
});

fn remainder(words: &[u64], divisor: u64) -> u64 {
    words
        .iter()
        .rev()
        .fold(0, |rest, word| ((u128::from(rest) << 64 | u128::from(*word)) % u128::from(divisor)) as u64)
}

/// hs = h^n modulo n^2, with h = -x^2 modulo n for a random x, or -y^(2 beta) in the special mode.
fn base(rng: &mut SecretRng, n: &BoxedUint, primes: &Primes) -> Vec<u64> {
    let bits = n.bits_precision();
    let params = BoxedMontyParams::new(Odd::new(n.clone()).expect("a product of odd primes"));
    let modulus = NonZero::new(n.clone()).expect("not zero");
    let mut bytes = vec![0u8; bits as usize / 8];
    loop {
        rng.fill(&mut bytes);
        let words = bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().expect("eight bytes")));
        let x = BoxedMontyForm::new(BoxedUint::from_words(words).rem(&modulus), &params);
        let mut h = x.square();
        if !primes.small_p.is_empty() {
            // beta = (p - 1)(q - 1) / (4 alpha): each half apart.
            for (prime, small) in [(&primes.p, &primes.small_p), (&primes.q, &primes.small_q)] {
                let mut predecessor = Zeroizing::new(prime.clone());
                predecessor[0] -= 1;
                let twice = uint(small).resize(64 * prime.len() as u32).shl(1);
                let part = uint(&predecessor).div_rem(&NonZero::new(twice).expect("not zero")).0;
                h = h.pow(&part);
            }
        }
        let h = h.neg().retrieve();
        let inverse: Option<BoxedUint> = h.invert_odd_mod(params.modulus()).into();
        if inverse.is_none() || h.bits() <= 1 {
            continue;
        }
        let square = BoxedMontyParams::new(Odd::new(n.concatenating_square()).expect("odd"));
        let power = BoxedMontyForm::new(h.resize(2 * bits), &square).pow_bounded_exp(n, bits);
        return power.retrieve().as_words().to_vec();
    }
}

pub(crate) fn uint(words: &[u64]) -> BoxedUint {
    BoxedUint::from_words(words.iter().copied().chain(std::iter::repeat_n(0, usize::from(words.is_empty()))))
}

/// The words of a number that has at most `bits` bits.
fn trimmed(x: &BoxedUint, bits: u32) -> Vec<u64> {
    let mut words = x.as_words().to_vec();
    words.resize(bits as usize / 64, 0);
    words
}

fn header(layout: &Layout, mode: Mode, bits: u32) -> Vec<u8> {
    let mut out = layout.start();
    MODE.put(&mut out, mode.code());
    BITS.put(&mut out, bits);
    out
}

/// The mode, the bits and the words of a key's bytes, their hash checked.
fn opened(
    what: &'static str,
    layout: &Layout,
    bytes: &[u8],
) -> Result<(Mode, u32, Zeroizing<Vec<u64>>), KeyError> {
    let refuse = |why: String| Err(KeyError::Bytes { what, why });
    let header = match layout.check(bytes) {
        Ok(header) => header,
        Err(HeaderError::Magic { .. }) => return refuse("they don't begin as one does".into()),
        Err(HeaderError::Version { got, want }) => {
            return refuse(format!("version {got} where {want} is read; use a newer blindcore"));
        }
        Err(HeaderError::Short { got, .. }) => {
            return refuse(format!("{got} bytes are not the length of one"));
        }
    };
    let words = bytes.len().checked_sub(layout.bytes + DIGEST);
    if words.is_none_or(|n| !n.is_multiple_of(8)) || bytes.len() > MAX_BYTES {
        return refuse(format!("{} bytes are not the length of one", bytes.len()));
    }
    let Some(body) = Seal::Plain.open(bytes) else {
        return refuse("they are damaged: their hash is another".into());
    };
    if ZERO.get(header) != 0 {
        return refuse("a byte that must be zero is not".into());
    }
    let code = MODE.get(header);
    let Some(mode) = Mode::ALL.into_iter().find(|mode| mode.code() == code) else {
        return refuse(format!("mode {code} is unknown"));
    };
    let bits = BITS.get(header);
    KeySize::any(bits)?;
    let words = body[layout.bytes..].as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b));
    Ok((mode, bits, Zeroizing::new(words.collect())))
}
