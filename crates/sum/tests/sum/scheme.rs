//! Keys and the scheme: every mode there and back, what is refused, and what a key must be.

use std::sync::{Arc, Mutex};

use blindcore_accel::bigmod::{
    BigModulus, Bigmod, BigmodCapabilities, BigmodSlot, Exponents, FixedBase, MultiExp, Numbers, Residues,
    reference,
};
use blindcore_accel::{Cost, Description, Device, Error as DeviceError, Slots};
use blindcore_accel_cpu::Cpu;
use blindcore_sum::keys::{self, KeySize, Mode, PublicKey, SecretKey};
use blindcore_sum::scheme::{Decryptor, Encryptor, PaillierError};
use crypto_bigint::{BoxedUint, NonZero, Resize};
use crypto_primes::{Flavor, is_prime};

const MODES: [Mode; 3] = [Mode::Textbook, Mode::ShortExponent, Mode::SpecialKey];

fn key(mode: Mode) -> SecretKey {
    SecretKey::generate(KeySize::test_only(512).unwrap(), mode).unwrap()
}

fn plaintexts(public: &PublicKey) -> Numbers {
    let n = public.n();
    let minus_one: Vec<u64> = std::iter::once(n[0] - 1).chain(n[1..].iter().copied()).collect();
    let half: Vec<u64> = n.iter().map(|w| w >> 1).collect();
    let small: Vec<Vec<u64>> = (0..20).map(|i| vec![i]).collect();
    let all = small.iter().chain([&minus_one, &half]).map(Vec::as_slice);
    Numbers::from_words(n.len(), all)
}

#[test]
fn every_mode_there_and_back_and_added() {
    for name in ["cpu:portable", "cpu"] {
        let device = Cpu::open(name).unwrap();
        for mode in MODES {
            let secret = key(mode);
            let public = secret.public();
            let encryptor = Encryptor::new(public, &device).unwrap();
            let decryptor = Decryptor::new(&secret, &device).unwrap();
            let m = plaintexts(public);
            let c = encryptor.encrypt(&m).unwrap();
            let numbers = encryptor.bigmod().read(&c).unwrap();
            assert!(decryptor.decrypt(&numbers).unwrap() == m, "{mode:?} on {name}");

            let again = encryptor.bigmod().read(&encryptor.encrypt(&m).unwrap()).unwrap();
            assert!(again.iter().zip(numbers.iter()).all(|(x, y)| x != y), "the same randomness twice");
            let other = encryptor.bigmod().read(&encryptor.rerandomise(&c).unwrap()).unwrap();
            assert!(other.iter().zip(numbers.iter()).all(|(x, y)| x != y));
            assert!(decryptor.decrypt(&other).unwrap() == m, "{mode:?} rerandomised");

            // Twice 0 to 19.
            let small = c.select(0..20);
            let sums = encryptor.bigmod().multiply(&small, &small).unwrap().0;
            let sums = decryptor.decrypt(&encryptor.bigmod().read(&sums).unwrap()).unwrap();
            assert!(
                sums.iter()
                    .enumerate()
                    .all(|(i, sum)| sum[0] == 2 * i as u64 && sum[1..].iter().all(|w| *w == 0))
            );
            let five = Numbers::from_words(public.n().len(), [[5].as_slice()]);
            let five = encryptor.without_randomness(&five).unwrap();
            let sums = encryptor.bigmod().multiply(&small, &five).unwrap().0;
            let sums = decryptor.decrypt(&encryptor.bigmod().read(&sums).unwrap()).unwrap();
            assert!(sums.iter().enumerate().all(|(i, sum)| sum[0] == 5 + i as u64));
        }
    }
}

#[test]
fn sizes_for_use_work() {
    let device = Cpu::open("cpu").unwrap();
    let secret = SecretKey::generate(KeySize::new(2048).unwrap(), Mode::ShortExponent).unwrap();
    let encryptor = Encryptor::new(secret.public(), &device).unwrap();
    let m = plaintexts(secret.public());
    let c = encryptor.bigmod().read(&encryptor.encrypt(&m).unwrap()).unwrap();
    assert!(Decryptor::new(&secret, &device).unwrap().decrypt(&c).unwrap() == m);
    assert!(!secret.public().is_test_only());
}

#[test]
fn forty_keys_have_primes_that_are_three_modulo_four_and_bases_that_leak_nothing() {
    for i in 0..40 {
        let mode = MODES[i % 3];
        let secret = key(mode);
        let (p, q) = secret.primes();
        assert_eq!((p[0] % 4, q[0] % 4), (3, 3));
        assert_eq!((p[p.len() - 1] >> 62, q[q.len() - 1] >> 62), (3, 3));
        assert_eq!(secret.public().bits(), 512);
        if mode == Mode::Textbook {
            continue;
        }
        // -x^2 is a square modulo neither prime: its Jacobi symbol modulo n is 1, as that of every encryption.
        let base = words_of(&secret.public().to_bytes())[8..].to_vec();
        for prime in [p, q] {
            let modulus = BigModulus::odd(prime).unwrap();
            let base = reference::multiply(&modulus, &base, &[1]);
            let minus_one: Vec<u64> =
                std::iter::once(prime[0] - 1).chain(prime[1..].iter().copied()).collect();
            let half = BoxedUint::from_words(prime.iter().copied()).shr(1);
            assert_eq!(reference::power(&modulus, &base, half.as_words()), minus_one, "{mode:?}");
        }
    }
}

/// The words between a key's header and its hash.
fn words_of(bytes: &[u8]) -> Vec<u64> {
    bytes[16..bytes.len() - 32].chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn keys_survive_their_bytes_and_nothing_else_does() {
    for mode in MODES {
        let secret = key(mode);
        let bytes = secret.to_bytes();
        let again = SecretKey::from_bytes(&bytes).unwrap();
        assert_eq!(again.public(), secret.public());
        assert!(again.primes() == secret.primes());
        let public = secret.public().to_bytes();
        assert_eq!(&PublicKey::from_bytes(&public).unwrap(), secret.public());
        for at in 0..bytes.len() {
            assert!(SecretKey::from_bytes(&bytes[..at]).is_err());
            let mut flipped = bytes.to_vec();
            flipped[at] ^= 1 << (at % 8);
            assert!(SecretKey::from_bytes(&flipped).is_err(), "byte {at}");
        }
        for at in 0..public.len() {
            assert!(PublicKey::from_bytes(&public[..at]).is_err());
            let mut flipped = public.clone();
            flipped[at] ^= 1 << (at % 8);
            assert!(PublicKey::from_bytes(&flipped).is_err(), "byte {at}");
        }
        assert!(PublicKey::from_bytes(&bytes).is_err() && SecretKey::from_bytes(&public).is_err());
    }
}

/// Key bytes with a good hash around whatever numbers.
fn sealed(magic: &[u8], mode: u8, bits: u32, words: &[&[u64]]) -> Vec<u8> {
    let mut out = magic.to_vec();
    out.extend([1, 0, mode, 0]);
    out.extend(bits.to_le_bytes());
    out.extend(words.iter().copied().flatten().flat_map(|w| w.to_le_bytes()));
    let hash = *blake3::hash(&out).as_bytes();
    out.extend(hash);
    out
}

#[test]
fn unsound_keys_are_refused_by_reason() {
    let secret = key(Mode::Textbook);
    let (p, q) = secret.primes();
    let message = |result: Result<SecretKey, keys::KeyError>| match result {
        Ok(_) => String::from("taken"),
        Err(e) => e.to_string(),
    };
    let mut composite = p.to_vec();
    composite[0] -= 2;
    while composite.iter().rev().fold(0u128, |r, w| (r << 64 | u128::from(*w)) % 3) != 0 {
        composite[0] -= 2;
    }
    let near = {
        // Any prime near p will do: the distance is looked at first.
        let mut near = p.to_vec();
        near[0] ^= 6;
        near
    };
    for (p, q, want) in [
        (p, p, "the same"),
        (p, &near, "too near"),
        (&composite, q, "not prime"),
        (p, &q[..3], "not made"),
        (&p[..2], &q[..2], "not made"),
    ] {
        let got = message(SecretKey::from_primes(p, q));
        assert!(got.contains(want), "{got} without {want}");
    }
    let zeros = [0u64; 16];
    let one = [1u64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let n = secret.public().n();
    let modulus = secret.public().modulus();
    let mut minus_one = modulus.value().to_vec();
    minus_one[0] -= 1;
    let n_padded: &[u64] = &n.iter().copied().chain([0; 8]).collect::<Vec<_>>();
    for (bytes, want) in [
        (sealed(b"bcsumpub", 0, 512, &[&[4; 8]]), "not made"),
        (sealed(b"bcsumpub", 1, 512, &[n, &zeros]), "1 or -1, or shares"),
        (sealed(b"bcsumpub", 1, 512, &[n, &one]), "1 or -1, or shares"),
        (sealed(b"bcsumpub", 1, 512, &[n, &minus_one]), "1 or -1, or shares"),
        (sealed(b"bcsumpub", 1, 512, &[n, n_padded]), "1 or -1, or shares"),
        (sealed(b"bcsumpub", 1, 512, &[n, &[u64::MAX; 16]]), "not below n^2"),
        (sealed(b"bcsumpub", 9, 512, &[n]), "mode 9"),
        (sealed(b"bcsumpub", 0, 640, &[&[5; 10]]), "640 bits"),
        (sealed(b"bcsumpub", 0, 1024, &[n]), "words where"),
    ] {
        let got = PublicKey::from_bytes(&bytes).unwrap_err().to_string();
        assert!(got.contains(want), "{got} without {want}");
    }
    let even: Vec<u64> = n.iter().map(|w| w & !1).collect();
    assert!(PublicKey::textbook(&even).unwrap_err().to_string().contains("even"));
    assert!(PublicKey::textbook(&[]).is_err());
    // A base of the wrong order: a short-exponent key with the base of another.
    let other = key(Mode::ShortExponent);
    let base = &words_of(&other.public().to_bytes())[8..];
    let got = message(SecretKey::from_bytes(&sealed(b"bcsumsec", 1, 512, &[p, q, base])));
    assert!(got.contains("order") || got.contains("not below"), "{got}");
    // Its own base but for the sign: x^2, a square modulo both primes.
    let modulus = other.public().modulus();
    let negative = BoxedUint::from_words(modulus.value().iter().copied())
        .wrapping_sub(BoxedUint::from_words(base.iter().copied()));
    let (other_p, other_q) = other.primes();
    let bytes = sealed(b"bcsumsec", 1, 512, &[other_p, other_q, negative.as_words()]);
    let got = message(SecretKey::from_bytes(&bytes));
    assert!(got.contains("order"), "{got}");
    // A prime that is 1 modulo 4, with a base that is no matter.
    let mut first = BoxedUint::from_words([1, 0, 0, u64::MAX]);
    while !is_prime(Flavor::Any, &first) {
        first = first.wrapping_add(BoxedUint::from_words([4, 0, 0, 0]));
    }
    let two: Vec<u64> = std::iter::once(2).chain([0; 15]).collect();
    let bytes = sealed(b"bcsumsec", 1, 512, &[first.as_words(), q, &two]);
    let got = message(SecretKey::from_bytes(&bytes));
    assert!(got.contains("3 modulo 4"), "{got}");
    assert!(SecretKey::from_primes(first.as_words(), q).is_ok(), "a textbook key may have it");
    // Factors of alpha that are short, or one twice.
    let special = words_of(&key(Mode::SpecialKey).to_bytes());
    for (small_p, small_q, want) in
        [(&[3, 0][..], &special[10..12], "short"), (&special[8..10], &special[8..10], "same")]
    {
        let bytes = sealed(b"bcsumsec", 2, 512, &[&special[..8], small_p, small_q, &special[12..]]);
        let got = message(SecretKey::from_bytes(&bytes));
        assert!(got.contains(want), "{got} without {want}");
    }
    for bits in [0, 256, 2047, 8192] {
        assert!(KeySize::new(bits).is_err() && KeySize::test_only(bits).is_err());
    }
    assert!(KeySize::new(512).is_err() && KeySize::test_only(2048).is_err());
}

#[test]
fn ciphertexts_from_outside_are_checked_by_position() {
    let device = Cpu::open("cpu").unwrap();
    let secret = key(Mode::ShortExponent);
    let public = secret.public();
    let encryptor = Encryptor::new(public, &device).unwrap();
    let good = encryptor.bigmod().read(&encryptor.encrypt(&plaintexts(public)).unwrap()).unwrap();
    assert_eq!(encryptor.accept(&good).unwrap().len(), 22);
    let words = public.ciphertext_words();
    let (p, _) = secret.primes();
    let pad = |x: &[u64]| x.iter().copied().chain(std::iter::repeat(0)).take(words).collect::<Vec<u64>>();
    let modulus = public.modulus();
    for (bad, want) in [
        (pad(&[]), "zero"),
        (modulus.value().to_vec(), "not below n^2"),
        (vec![u64::MAX; words], "not below n^2"),
        (pad(p), "shares a factor"),
        (pad(public.n()), "shares a factor"),
    ] {
        for position in [0, 7, 21] {
            let mut numbers = good.clone();
            numbers.get_mut(position).copy_from_slice(&bad);
            let error = encryptor.accept(&numbers).err().expect("refused").to_string();
            assert!(error.contains(want) && error.contains(&format!("number {position} of 22")), "{error}");
        }
    }
    let decryptor = Decryptor::new(&secret, &device).unwrap();
    let mut three = Numbers::zeroed(3, words);
    three.get_mut(0).copy_from_slice(good.get(0));
    three.get_mut(1).copy_from_slice(good.get(1));
    for (bad, want) in [(pad(p), "shares a factor"), (pad(public.n()), "shares a factor"), (pad(&[]), "zero")]
    {
        three.get_mut(2).copy_from_slice(&bad);
        let error = decryptor.decrypt(&three).err().expect("refused").to_string();
        assert!(error.contains("number 2 of 3") && error.contains(want), "{error}");
    }
    let over = Numbers::from_words(words, [modulus.value()]);
    assert!(matches!(decryptor.decrypt(&over), Err(PaillierError::Ciphertext { position: 0, .. })));
    let n = Numbers::from_words(public.n().len(), [public.n()]);
    assert!(matches!(encryptor.encrypt(&n), Err(PaillierError::Plaintext { position: 0, count: 1 })));
    assert_eq!(encryptor.encrypt(&Numbers::zeroed(0, 8)).unwrap().len(), 0);
}

/// A ciphertext under a textbook key is not what a special key decrypts: the modes do not mix.
#[test]
fn a_special_key_refuses_what_its_own_mode_did_not_make() {
    let device = Cpu::open("cpu").unwrap();
    let secret = key(Mode::SpecialKey);
    let textbook = PublicKey::textbook(secret.public().n()).unwrap();
    assert_ne!(textbook.id(), secret.public().id());
    let encryptor = Encryptor::new(&textbook, &device).unwrap();
    let c = encryptor.bigmod().read(&encryptor.encrypt(&plaintexts(&textbook)).unwrap()).unwrap();
    let decryptor = Decryptor::new(&secret, &device).unwrap();
    assert_eq!(decryptor.decrypt(&c).err(), Some(PaillierError::Fault));
}

/// A device on which one call goes wrong: `fault` multiples of the modulus' root are added to what it gives, to every
/// number or to one. Modulo p^2 that leaves a number what it was modulo p.
struct Faulty {
    device: Device,
    state: Arc<Mutex<Fault>>,
}

#[derive(Clone, Copy, Default)]
struct Fault {
    /// Calls to come before it; none: it does not happen.
    after: Option<usize>,
    calls: usize,
    /// One number, or every.
    row: Option<usize>,
    /// The root of the modulus is added, or one.
    root: bool,
}

impl BigmodSlot for Faulty {
    fn capabilities(&self) -> BigmodCapabilities {
        self.device.slots().bigmod.as_ref().unwrap().capabilities()
    }

    fn prepare(&self, modulus: &BigModulus) -> Result<Arc<dyn Bigmod>, DeviceError> {
        Ok(Arc::new(FaultyBigmod { sound: self.device.bigmod(modulus)?, state: Arc::clone(&self.state) }))
    }
}

impl Faulty {
    fn device(self) -> Device {
        let description = Description { name: "faulty".into(), ..self.device.description().clone() };
        Device::new(description, Slots { bigmod: Some(Arc::new(self)), ..Slots::default() })
    }
}

struct FaultyBigmod {
    sound: Arc<dyn Bigmod>,
    state: Arc<Mutex<Fault>>,
}

impl FaultyBigmod {
    fn disturb(&self, numbers: &Numbers) -> Numbers {
        let mut state = self.state.lock().unwrap();
        state.calls += 1;
        let mut out = numbers.clone();
        if state.after != Some(state.calls - 1) {
            return out;
        }
        let modulus = self.sound.modulus();
        let value = NonZero::new(BoxedUint::from_words(modulus.value().iter().copied())).unwrap();
        let add = if state.root && modulus.is_square() { modulus.root() } else { &[1] };
        let add = BoxedUint::from_words(add.iter().copied()).resize(value.bits_precision());
        for i in 0..out.len() {
            if state.row.is_none_or(|row| row == i) {
                let number = BoxedUint::from_words(out.get(i).iter().copied());
                out.get_mut(i).copy_from_slice(number.add_mod(&add, &value).as_words());
            }
        }
        out
    }

    fn disturbed(&self, (residues, cost): (Residues, Cost)) -> Result<(Residues, Cost), DeviceError> {
        Ok((self.sound.place(&self.disturb(&self.sound.read(&residues)?))?, cost))
    }
}

impl Bigmod for FaultyBigmod {
    fn modulus(&self) -> &Arc<BigModulus> {
        self.sound.modulus()
    }

    fn place(&self, numbers: &Numbers) -> Result<Residues, DeviceError> {
        self.sound.place(&self.disturb(numbers))
    }

    fn read(&self, residues: &Residues) -> Result<Numbers, DeviceError> {
        Ok(self.disturb(&self.sound.read(residues)?))
    }

    fn multiply(&self, x: &Residues, y: &Residues) -> Result<(Residues, Cost), DeviceError> {
        self.disturbed(self.sound.multiply(x, y)?)
    }

    fn square(&self, x: &Residues, times: u32) -> Result<(Residues, Cost), DeviceError> {
        self.disturbed(self.sound.square(x, times)?)
    }

    fn power(&self, x: &Residues, exponents: &Exponents<'_>) -> Result<(Residues, Cost), DeviceError> {
        self.disturbed(self.sound.power(x, exponents)?)
    }

    fn fixed_base(&self, base: &Residues, bits: u32) -> Result<Arc<dyn FixedBase>, DeviceError> {
        self.sound.fixed_base(base, bits)
    }

    fn invert(&self, x: &Residues) -> Result<(Residues, Cost), DeviceError> {
        self.disturbed(self.sound.invert(x)?)
    }

    fn multi_exp(&self, x: &Residues, multi_exp: &MultiExp) -> Result<(Residues, Cost), DeviceError> {
        self.disturbed(self.sound.multi_exp(x, multi_exp)?)
    }
}

/// Whatever single call of the device goes wrong while decrypting, and whether it does so for one number or for all:
/// no wrong plaintext is given out.
#[test]
fn no_fault_of_the_device_gets_out() {
    for mode in MODES {
        let secret = key(mode);
        let device = Cpu::open("cpu").unwrap();
        let encryptor = Encryptor::new(secret.public(), &device).unwrap();
        let all = plaintexts(secret.public());
        let state = Arc::new(Mutex::new(Fault::default()));
        let faulty = Faulty { device, state: Arc::clone(&state) }.device();
        let decryptor = Decryptor::new(&secret, &faulty).unwrap();
        for count in [1, 2, 5, 22] {
            let m = Numbers::from_words(all.words(), all.iter().rev().take(count));
            let c = encryptor.bigmod().read(&encryptor.encrypt(&m).unwrap()).unwrap();
            *state.lock().unwrap() = Fault::default();
            assert!(decryptor.decrypt(&c).unwrap() == m);
            let calls = state.lock().unwrap().calls;
            assert!(calls > 10);
            let mut caught = 0;
            for after in 0..calls {
                for (row, root) in [(Some(0), true), (Some(0), false), (None, true), (None, false)] {
                    *state.lock().unwrap() = Fault { after: Some(after), calls: 0, row, root };
                    let got = decryptor.decrypt(&c);
                    assert!(state.lock().unwrap().calls > after, "the fault has not happened");
                    match got {
                        Ok(got) => {
                            assert!(got == m, "{mode:?}, {count} numbers: call {after}, {row:?} {root}")
                        }
                        Err(e) => {
                            assert_eq!(e, PaillierError::Fault);
                            caught += 1;
                        }
                    }
                }
            }
            assert_eq!(caught, 4 * calls, "{mode:?}, {count} numbers: a fault without a consequence");
        }
    }
}
