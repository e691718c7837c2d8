//! Compressed forms: masks as seeds, residues packed without gaps.
//!
//! ```text
//!   "BCRL"  version  kind  0 0  digest of the parameters (8)     then by kind, little-endian:
//!
//!   1 ciphertext      seed (32)   body
//!   2 public key      seed (32)   body
//!   3 switching key   ring (1)  digits (1)  bits (1)  dropped (1)   seed (32)   a body for each digit
//!   7 relinearisation key      as a switching key
//!   4 Galois keys     ring (1)  count (2)      for each: exponent (4), then as a switching key
//!   5 factor (RGSW)   ring (1)  sum of the message's magnitudes (8, a double)     two sets of rows as in a switching key
//!   6 answer          ring (1)  mask bits (1)  body bits (1)  coefficients kept (4)     mask, body
//! ```
//!
//! A body is d residues for each prime of its ring, by values, each of as many bits as its prime has; `ring` is the place in
//! [`Parameters::rings`]. Bytes are measured before memory is taken for what they stand for.

use std::collections::BTreeMap;
use std::sync::Arc;

use blindcore_math::MaskSeed;
use blindcore_math::ntt::Automorphism;

use crate::ciphertext::Pair;
use crate::gadget::{Gadget, Rows};
use crate::galois::{GaloisKey, GaloisKeys};
use crate::keys::{PublicKey, SeededCiphertext};
use crate::modulus::Answer;
use crate::noise::Noise;
use crate::poly::{Poly, Values};
use crate::rounding::{pack, packed_bytes, unpack};
use crate::switching::{RelinearisationKey, SwitchingKey};
use crate::{Parameters, Rgsw, Ring};

const MAGIC: &[u8; 4] = b"BCRL";
const VERSION: u8 = 1;

/// Why bytes are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// They do not start as such bytes do.
    #[error(
        "these bytes are no ring ciphertext or key: they don't start with BCRL; look where they come from"
    )]
    Magic,
    /// Another version.
    #[error(
        "version {0} of ring ciphertexts and keys can't be read, only version {VERSION}; use a build of that version"
    )]
    Version(u8),
    /// Another kind.
    #[error(
        "these bytes are of kind {got}, and kind {wanted} is expected; look which file or message they come from"
    )]
    Kind {
        /// Kind found.
        got: u8,
        /// Kind expected.
        wanted: u8,
    },
    /// Other parameters.
    #[error("these bytes were made with other parameters; use the same parameter set on both sides")]
    Parameters,
    /// Too few or too many.
    #[error("{got} bytes are not the {wanted} that this takes; they were cut off, or something follows them")]
    Length {
        /// Bytes there.
        got: usize,
        /// Bytes wanted.
        wanted: usize,
    },
    /// A number makes no sense.
    #[error("{0} is out of range; the bytes were damaged")]
    Damaged(&'static str),
    /// The masks were worked out and have no seed.
    #[error(
        "this factor's masks were worked out, not expanded from a seed, and can't be written; write what it was made from"
    )]
    NoSeed,
}

/// Bytes being read.
struct Reader<'a> {
    rest: &'a [u8],
    whole: usize,
}

impl<'a> Reader<'a> {
    fn new(parameters: &Parameters, kind: u8, bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Self { rest: bytes, whole: bytes.len() };
        if !bytes.starts_with(MAGIC) {
            return Err(WireError::Magic);
        }
        let header = reader.take(16)?;
        if header[4] != VERSION {
            return Err(WireError::Version(header[4]));
        }
        if header[5] != kind {
            return Err(WireError::Kind { got: header[5], wanted: kind });
        }
        if header[6..8] != [0; 2] {
            return Err(WireError::Damaged("a reserved byte"));
        }
        if header[8..] != parameters.digest() {
            return Err(WireError::Parameters);
        }
        Ok(reader)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let wanted = self.whole - self.rest.len() + count;
        let (head, rest) =
            self.rest.split_at_checked(count).ok_or(WireError::Length { got: self.whole, wanted })?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    fn byte(&mut self) -> Result<u8, WireError> {
        Ok(self.take(1)?[0])
    }

    /// Packed words; what fills their last byte is zeros, so that words have one form.
    fn words(&mut self, count: usize, width: u32) -> Result<impl Iterator<Item = u64>, WireError> {
        let bytes = self.take(packed_bytes(count, width))?;
        let filled = 8 * bytes.len() - count * width as usize;
        let zeros = bytes.last().is_none_or(|last| last.leading_zeros() as usize >= filled);
        if zeros {
            Ok(unpack(bytes, width).take(count))
        } else {
            Err(WireError::Damaged("what fills the last byte"))
        }
    }

    fn body(&mut self, ring: &Ring) -> Result<Poly<Values>, WireError> {
        // Before memory is taken for what they stand for.
        let wanted = self.whole - self.rest.len() + body_bytes(ring);
        if wanted > self.whole {
            return Err(WireError::Length { got: self.whole, wanted });
        }
        let mut words = Vec::with_capacity(ring.words());
        for prime in ring.primes() {
            for (part, count) in parts(ring.degree(), width(prime.value())) {
                words.extend(self.words(count, part)?);
            }
            join(&mut words, ring.degree(), width(prime.value()));
        }
        ring.polynomial(words).ok_or(WireError::Damaged("a residue"))
    }

    fn ring<'p>(&mut self, parameters: &'p Parameters) -> Result<&'p Arc<Ring>, WireError> {
        parameters.rings().get(usize::from(self.byte()?)).ok_or(WireError::Damaged("a ring's place"))
    }

    fn rows(&mut self, ring: &Ring) -> Result<Rows, WireError> {
        let [digits, bits, dropped] = self.array()?;
        let gadget = Gadget::new(ring, usize::from(digits), u32::from(bits), u32::from(dropped))
            .map_err(|_| WireError::Damaged("a gadget"))?;
        let seed = MaskSeed(self.array()?);
        let row = |i| Ok(Pair { mask: ring.uniform(seed, i as u64), body: self.body(ring)? });
        Ok(Rows { gadget, rows: (0..gadget.digits()).map(row).collect::<Result<_, _>>()?, seed: Some(seed) })
    }

    fn end(self) -> Result<(), WireError> {
        let wanted = self.whole - self.rest.len();
        if self.rest.is_empty() { Ok(()) } else { Err(WireError::Length { got: self.whole, wanted }) }
    }
}

/// Bits of a residue.
fn width(prime: u64) -> u32 {
    prime.ilog2() + 1
}

/// A word of more than 57 bits is written as its low half and the rest, each packed by itself.
fn parts(degree: usize, width: u32) -> impl Iterator<Item = (u32, usize)> {
    let halves = if width > 57 { [width / 2, width - width / 2] } else { [width, 0] };
    halves.into_iter().filter(|part| *part > 0).map(move |part| (part, degree))
}

/// Makes words of the low halves and the rests at the end of `words`.
fn join(words: &mut Vec<u64>, degree: usize, width: u32) {
    if width > 57 {
        let highs = words.split_off(words.len() - degree);
        let from = words.len() - degree;
        words[from..].iter_mut().zip(highs).for_each(|(low, high)| *low |= high << (width / 2));
    }
}

fn body_bytes(ring: &Ring) -> usize {
    let of = |q: &blindcore_math::Prime| {
        parts(ring.degree(), width(q.value())).map(|(part, count)| packed_bytes(count, part)).sum::<usize>()
    };
    ring.primes().iter().map(of).sum()
}

fn header(parameters: &Parameters, kind: u8) -> Vec<u8> {
    [MAGIC.as_slice(), &[VERSION, kind, 0, 0], &parameters.digest()].concat()
}

fn write_body(ring: &Ring, body: &Poly<Values>, out: &mut Vec<u8>) {
    for (words, prime) in body.words().chunks_exact(ring.degree()).zip(ring.primes()) {
        let width = width(prime.value());
        let mut shift = 0;
        for (part, _) in parts(ring.degree(), width) {
            let shifted: Vec<u64> = words.iter().map(|word| word >> shift).collect();
            pack(&shifted, part, out);
            shift += part;
        }
    }
}

fn write_ring(parameters: &Parameters, ring: &Ring, out: &mut Vec<u8>) -> Result<(), WireError> {
    let place = parameters.rings().iter().position(|other| **other == *ring).ok_or(WireError::Parameters)?;
    out.push(place as u8);
    Ok(())
}

fn write_rows(ring: &Ring, rows: &Rows, out: &mut Vec<u8>) -> Result<(), WireError> {
    let seed = rows.seed.ok_or(WireError::NoSeed)?;
    out.extend([rows.gadget.digits() as u8, rows.gadget.bits() as u8, rows.gadget.dropped() as u8]);
    out.extend(seed.0);
    rows.rows.iter().for_each(|row| write_body(ring, &row.body, out));
    Ok(())
}

impl SeededCiphertext {
    /// Its bytes: half of what mask and body would take.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = header(&self.parameters, 1);
        out.extend(self.seed.0);
        write_body(self.parameters.ring(), &self.body, &mut out);
        out
    }

    /// From the bytes that [`Self::to_bytes`] gave.
    ///
    /// # Errors
    /// They are not such bytes, or of other parameters.
    pub fn from_bytes(parameters: &Arc<Parameters>, bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(parameters, 1, bytes)?;
        let (seed, body) = (MaskSeed(reader.array()?), reader.body(parameters.ring())?);
        reader.end()?;
        Ok(Self { parameters: parameters.clone(), seed, body })
    }
}

impl PublicKey {
    /// Its bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = header(&self.parameters, 2);
        out.extend(self.seed.0);
        write_body(self.parameters.ring(), &self.body, &mut out);
        out
    }

    /// From the bytes that [`Self::to_bytes`] gave.
    ///
    /// # Errors
    /// They are not such bytes, or of other parameters.
    pub fn from_bytes(parameters: &Arc<Parameters>, bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(parameters, 2, bytes)?;
        let (seed, body) = (MaskSeed(reader.array()?), reader.body(parameters.ring())?);
        reader.end()?;
        Ok(Self { parameters: parameters.clone(), seed, body })
    }
}

impl SwitchingKey {
    /// Its bytes.
    ///
    /// # Errors
    /// It belongs to other parameters.
    pub fn to_bytes(&self, parameters: &Parameters) -> Result<Vec<u8>, WireError> {
        self.write(parameters, 3)
    }

    fn write(&self, parameters: &Parameters, kind: u8) -> Result<Vec<u8>, WireError> {
        let mut out = header(parameters, kind);
        write_ring(parameters, &self.ring, &mut out)?;
        write_rows(&self.ring, &self.rows, &mut out)?;
        Ok(out)
    }

    /// From the bytes that [`Self::to_bytes`] gave.
    ///
    /// # Errors
    /// They are not such bytes, or of other parameters.
    pub fn from_bytes(parameters: &Arc<Parameters>, bytes: &[u8]) -> Result<Self, WireError> {
        Self::read(parameters, bytes, 3)
    }

    fn read(parameters: &Arc<Parameters>, bytes: &[u8], kind: u8) -> Result<Self, WireError> {
        let mut reader = Reader::new(parameters, kind, bytes)?;
        let ring = reader.ring(parameters)?.clone();
        let rows = reader.rows(&ring)?;
        reader.end()?;
        let noise = Noise::of_switching(&ring, rows.gadget, parameters.error().variance());
        Ok(Self { ring, rows, noise })
    }
}

impl RelinearisationKey {
    /// Its bytes.
    ///
    /// # Errors
    /// It belongs to other parameters.
    pub fn to_bytes(&self, parameters: &Parameters) -> Result<Vec<u8>, WireError> {
        self.0.write(parameters, 7)
    }

    /// From the bytes that [`Self::to_bytes`] gave.
    ///
    /// # Errors
    /// They are not such bytes, or of other parameters.
    pub fn from_bytes(parameters: &Arc<Parameters>, bytes: &[u8]) -> Result<Self, WireError> {
        let mut key = SwitchingKey::read(parameters, bytes, 7)?;
        key.noise = Noise::of_relinearising(&key.ring, key.rows.gadget, parameters.error().variance());
        Ok(Self(key))
    }
}

impl GaloisKeys {
    /// Their bytes.
    ///
    /// # Errors
    /// They belong to other parameters.
    pub fn to_bytes(&self, parameters: &Parameters) -> Result<Vec<u8>, WireError> {
        let mut out = header(parameters, 4);
        write_ring(parameters, &self.ring, &mut out)?;
        out.extend((self.keys.len() as u16).to_le_bytes());
        for (exponent, key) in &self.keys {
            out.extend((*exponent as u32).to_le_bytes());
            write_rows(&self.ring, &key.key.rows, &mut out)?;
        }
        Ok(out)
    }

    /// From the bytes that [`Self::to_bytes`] gave.
    ///
    /// # Errors
    /// They are not such bytes, or of other parameters.
    pub fn from_bytes(parameters: &Arc<Parameters>, bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(parameters, 4, bytes)?;
        let ring = reader.ring(parameters)?.clone();
        let (mut keys, mut last) = (BTreeMap::new(), 0);
        for _ in 0..u16::from_le_bytes(reader.array()?) {
            let exponent = u32::from_le_bytes(reader.array()?) as usize;
            if exponent <= last || exponent >= 2 * ring.degree() {
                return Err(WireError::Damaged("an exponent"));
            }
            let rows = reader.rows(&ring)?;
            let automorphism =
                Automorphism::new(ring.degree(), exponent).map_err(|_| WireError::Damaged("an exponent"))?;
            let noise = Noise::of_switching(&ring, rows.gadget, parameters.error().variance());
            let key = SwitchingKey { ring: ring.clone(), rows, noise };
            keys.insert(exponent, GaloisKey { automorphism, key });
            last = exponent;
        }
        reader.end()?;
        Ok(Self { ring, keys })
    }
}

impl Rgsw {
    /// Its bytes.
    ///
    /// # Errors
    /// It belongs to other parameters, or its rows were worked out from an expansion.
    pub fn to_bytes(&self, parameters: &Parameters) -> Result<Vec<u8>, WireError> {
        let mut out = header(parameters, 5);
        write_ring(parameters, &self.ring, &mut out)?;
        out.extend(self.sum.to_le_bytes());
        write_rows(&self.ring, &self.body, &mut out)?;
        write_rows(&self.ring, &self.mask, &mut out)?;
        Ok(out)
    }

    /// From the bytes that [`Self::to_bytes`] gave.
    ///
    /// # Errors
    /// They are not such bytes, or of other parameters.
    pub fn from_bytes(parameters: &Arc<Parameters>, bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(parameters, 5, bytes)?;
        let ring = reader.ring(parameters)?.clone();
        let sum = f64::from_le_bytes(reader.array()?);
        if !(0.0..=128.0 * ring.degree() as f64).contains(&sum) {
            return Err(WireError::Damaged("a message's sum"));
        }
        let (body, mask) = (reader.rows(&ring)?, reader.rows(&ring)?);
        reader.end()?;
        if body.gadget != mask.gadget {
            return Err(WireError::Damaged("a gadget"));
        }
        Ok(Self::of_rows(ring, body, mask, sum, parameters.error().variance()))
    }
}

impl Answer {
    /// Its bytes.
    ///
    /// # Errors
    /// It belongs to other parameters.
    pub fn to_bytes(&self, parameters: &Parameters) -> Result<Vec<u8>, WireError> {
        let mut out = header(parameters, 6);
        write_ring(parameters, &self.ring, &mut out)?;
        out.extend([self.mask_bits as u8, self.body_bits as u8]);
        out.extend((self.body.len() as u32).to_le_bytes());
        pack(&self.mask, self.mask_bits, &mut out);
        pack(&self.body, self.body_bits, &mut out);
        Ok(out)
    }

    /// From the bytes that [`Self::to_bytes`] gave.
    ///
    /// # Errors
    /// They are not such bytes, or of other parameters.
    pub fn from_bytes(parameters: &Parameters, bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(parameters, 6, bytes)?;
        let ring = reader.ring(parameters)?.clone();
        let [prime] = ring.primes() else { return Err(WireError::Damaged("a ring's place")) };
        let limit = prime.value().ilog2().min(57);
        let [mask_bits, body_bits] = reader.array()?.map(u32::from);
        let kept = u32::from_le_bytes(reader.array()?) as usize;
        if [mask_bits, body_bits].iter().any(|bits| !(1..=limit).contains(bits)) {
            return Err(WireError::Damaged("a width"));
        }
        let degree = parameters.degree();
        if kept > degree {
            return Err(WireError::Damaged("the count of coefficients"));
        }
        let mask = reader.words(degree, mask_bits)?.collect();
        let body = reader.words(kept, body_bits)?.collect();
        reader.end()?;
        Ok(Self { ring, mask_bits, body_bits, mask, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Bench};
    use crate::{Literal, sets};

    /// Bytes that are cut, lengthened or changed in their head are refused, whatever stands there.
    fn refuses<T>(bytes: &[u8], read: impl Fn(&[u8]) -> Result<T, WireError>) {
        for cut in [0, 3, 4, 15, 16, 17, 20, 50, bytes.len() / 2, bytes.len() - 1] {
            assert!(read(&bytes[..cut.min(bytes.len() - 1)]).is_err(), "cut to {cut}");
        }
        assert!(read(&[bytes, &[0]].concat()).is_err(), "one byte more");
        for at in 0..16 {
            let mut changed = bytes.to_vec();
            changed[at] ^= 1;
            assert!(read(&changed).is_err(), "byte {at}");
        }
        // Nothing panics, whatever the rest says.
        for at in 16..bytes.len().min(70) {
            for byte in [0, 1, 58, 128, 255] {
                let mut changed = bytes.to_vec();
                changed[at] = byte;
                let _ = read(&changed);
            }
        }
        let mut full = bytes.to_vec();
        full[16..].fill(255);
        assert!(read(&full).is_err(), "all ones");
    }

    #[test]
    fn what_is_written_is_read() {
        let wide = Literal { chain: &[60, 61], ..sets::TOY };
        let wide = wide.check_insecure(crate::Insecure::because("a test of wide words")).unwrap();
        for parameters in testing::all().into_iter().chain([wide]) {
            let mut bench = Bench::new(&parameters, 91);
            let ring = parameters.ring().clone();
            let message = testing::message(&parameters, 1);
            let small = parameters.degree() == 256;

            let fresh = bench.secret.encrypt_seeded(&message, &mut bench.rng);
            let bytes = fresh.to_bytes();
            let back = SeededCiphertext::from_bytes(&parameters, &bytes).unwrap();
            bench.check("read", &back.expand(), &message, 1.5);
            assert!(bytes.len() < ring.words() * 61 / 8 + 100);

            let public = PublicKey::new(&bench.secret, &mut bench.rng);
            let back = PublicKey::from_bytes(&parameters, &public.to_bytes()).unwrap();
            let x = back.encrypt(&message, &mut bench.rng);
            bench.check("read public key", &x, &message, 1.5);

            let gadget = Gadget::exact(&ring, 16).unwrap();
            let keys =
                GaloisKeys::new(&bench.secret, &ring, [(3, gadget), (5, gadget)], &mut bench.rng).unwrap();
            let key_bytes = keys.to_bytes(&parameters).unwrap();
            let back = GaloisKeys::from_bytes(&parameters, &key_bytes).unwrap();
            let x = bench.encrypt(&message);
            let turned = back.get(5).unwrap().apply(&x);
            bench.check("read Galois keys", &turned, &testing::automorphism(&message, 5), 3.0);

            let factor = Rgsw::monomial(&bench.secret, &ring, 1, gadget, &mut bench.rng);
            let factor_bytes = factor.to_bytes(&parameters).unwrap();
            let back = Rgsw::from_bytes(&parameters, &factor_bytes).unwrap();
            bench.check("read factor", &back.multiply(&x), &testing::turned(&message, 1), 3.0);

            let key = RelinearisationKey::new(&bench.secret, &ring, gadget, &mut bench.rng);
            let back =
                RelinearisationKey::from_bytes(&parameters, &key.to_bytes(&parameters).unwrap()).unwrap();
            assert!(back.0.noise == key.0.noise && back.gadget() == key.gadget());

            let last = parameters.rings().last().unwrap();
            let low = x.switch_modulus(last).unwrap();
            let answer = low.to_answer(29, 29, 10).unwrap();
            let answer_bytes = answer.to_bytes(&parameters).unwrap();
            let back = Answer::from_bytes(&parameters, &answer_bytes)
                .unwrap()
                .to_ciphertext(&parameters, low.noise());
            assert_eq!(bench.secret.decrypt(&back).coefficients()[..10], message.coefficients()[..10]);
            // Ten words of 29 bits leave six bits of the last byte.
            let mut filled = answer_bytes.clone();
            *filled.last_mut().unwrap() |= 1 << 2;
            let refused = Answer::from_bytes(&parameters, &filled).err();
            assert_eq!(refused, Some(WireError::Damaged("what fills the last byte")));

            if small {
                refuses(&bytes, |bytes| SeededCiphertext::from_bytes(&parameters, bytes).map(drop));
                refuses(&public.to_bytes(), |bytes| PublicKey::from_bytes(&parameters, bytes).map(drop));
                refuses(&key_bytes, |bytes| GaloisKeys::from_bytes(&parameters, bytes).map(drop));
                refuses(&factor_bytes, |bytes| Rgsw::from_bytes(&parameters, bytes).map(drop));
                let key = key.to_bytes(&parameters).unwrap();
                refuses(&key, |bytes| RelinearisationKey::from_bytes(&parameters, bytes).map(drop));
                refuses(&answer_bytes, |bytes| Answer::from_bytes(&parameters, bytes).map(drop));
            }
        }
    }
}
