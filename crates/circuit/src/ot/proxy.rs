//! Proxy oblivious transfer: the input's owner chooses, the evaluator opens, the garbler learns nothing.
//!
//! Naor, Pinkas and Sumner (EC 1999) on the transfer of Naor and Pinkas (SODA 2001), the setting of three roles that SIFO
//! runs in. Over ristretto255:
//!
//! 1. The *sender* (garbler) publishes a random point `C` ([`Sender::publish`]).
//! 2. The *chooser* (input owner) draws `k` for each of its bits `b`, sets `PK_b = kG` and `PK_{1-b} = C - PK_b`, sends
//!    `PK_0` to the sender and `k` to the proxy ([`choose`]). `PK_0` is uniform for either bit, so even an unbounded sender
//!    learns nothing; knowing both logarithms would be knowing that of `C`.
//! 3. The sender draws `s`, shows `S = sG`, and encrypts word `i` of each pair under the hash of `s PK_i`
//!    ([`Sender::encrypt`]).
//! 4. The *proxy* (evaluator) computes `kS` and opens the one ciphertext that this key fits ([`open`]).
//!
//! So that the proxy finds that one and doesn't learn `b` by its place, the sender puts each pair in random order, and
//! each ciphertext carries a 128-bit tag under the same key: the proxy tries both. Nothing that the proxy sees depends on
//! `b` but the opened word itself, a label at random; the sender and the proxy together would know `b`, as in any protocol
//! of these roles. All are honest but curious. The chooser's message to the proxy is secret: send it through a channel
//! that is encrypted and authenticated, as all others are to be authenticated.
//!
//! Every message starts with `bcpo`, a version, its kind, the session (16 B) and the number of transfers (4 B, little
//! endian). A message is read in whole: any other length, kind or session is refused.
//!
//! ```
//! use blindcore_circuit::ot::proxy;
//!
//! let sender = proxy::Sender::new()?;
//! let chosen = proxy::choose(&sender.publish(), &[true, false])?;
//! let sealed = sender.encrypt(&chosen.for_sender, &[[10, 11], [20, 21]])?;
//! assert_eq!(proxy::open(&chosen.for_proxy, &sealed)?, [11, 20]);
//! # Ok::<(), blindcore_circuit::ot::OtError>(())
//! ```

use blake3::Hasher;
use blindcore_files::header::{Field, HeaderError, Layout};
use curve25519_dalek::{RistrettoPoint, Scalar, traits::IsIdentity};
use subtle::{ConditionallySelectable, ConstantTimeEq};
use zeroize::{Zeroize, Zeroizing};

use super::{
    OtError,
    base::{POINT, compress, decode, random_scalar},
    differs, oracle, random,
};

/// Transfers of one batch.
pub const MAX_BATCH: usize = 1 << 20;

/// The side that offers pairs. One sender makes one batch.
pub struct Sender {
    session: [u8; 16],
    constant: RistrettoPoint,
}

/// What a chooser makes of its bits.
pub struct Chosen {
    /// Goes to the sender.
    pub for_sender: Vec<u8>,
    /// Goes to the proxy, and to nobody else. Wiped when it is dropped.
    pub for_proxy: Zeroizing<Vec<u8>>,
}

impl Sender {
    /// A sender with a session and a point of its own.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn new() -> Result<Self, OtError> {
        Ok(Self { session: *random()?, constant: RistrettoPoint::from_uniform_bytes(&*random()?) })
    }

    /// What choosers have to know: 58 B.
    #[must_use]
    pub fn publish(&self) -> Vec<u8> {
        let mut message = header(PUBLICATION, &self.session, 0);
        message.extend(self.constant.compress().as_bytes());
        message
    }

    /// Encrypts a pair for each of a chooser's bits: 96 B a pair and 58 B for the proxy.
    ///
    /// # Errors
    /// The request is not one for this sender and as many pairs, or holds what is not a point.
    pub fn encrypt(self, request: &[u8], pairs: &[[u128; 2]]) -> Result<Vec<u8>, OtError> {
        let (count, body) = parse(request, REQUEST, Some(&self.session), 0, POINT)?;
        if count != pairs.len() {
            return Err(OtError::Length {
                what: "the chooser's request",
                got: count,
                expected: pairs.len(),
                unit: "transfers",
            });
        }
        let secret = random_scalar()?;
        let constant = *secret * self.constant;
        let mut shared = Zeroizing::new(Vec::with_capacity(2 * count));
        for (i, key) in body.chunks_exact(POINT).enumerate() {
            let zero = *secret * decode(key, "the chooser's request", i)?;
            shared.extend([zero, constant - zero]);
        }
        let keys = oracle(TO_PAD, &self.session);
        let shown = RistrettoPoint::mul_base(&secret).compress();
        let mut message = header(SEALED, &self.session, count);
        message.reserve(POINT + count * 2 * SEALED_WORD);
        message.extend(shown.as_bytes());
        let mut order = Zeroizing::new(vec![0; count]);
        getrandom::fill(&mut order).map_err(OtError::Randomness)?;
        for (i, ((pair, shared), order)) in
            pairs.iter().zip(compress(&shared).chunks_exact(2)).zip(&*order).enumerate()
        {
            let mut sealed = [0, 1].map(|slot| seal(&keys, i, &shared[slot], pair[slot]));
            let [first, second] = &mut sealed;
            <[u8; SEALED_WORD]>::conditional_swap(first, second, (order & 1).into());
            message.extend(sealed.as_flattened());
        }
        Ok(message)
    }
}

/// The chooser's side: a message for the sender, 32 B a bit, and one for the proxy, as long.
///
/// # Errors
/// The publication is none; there are more bits than [`MAX_BATCH`].
pub fn choose(publication: &[u8], bits: &[bool]) -> Result<Chosen, OtError> {
    if bits.len() > MAX_BATCH {
        return Err(OtError::Batch { got: bits.len(), limit: MAX_BATCH });
    }
    let (_, body) = parse(publication, PUBLICATION, None, POINT, 0)?;
    let session = publication[6..22].try_into().expect("parsed");
    let constant = decode(body, "the sender's publication", 0)?;
    if constant.is_identity() {
        return Err(OtError::Point { what: "the sender's publication", index: 0 });
    }
    let mut for_sender = header(REQUEST, session, bits.len());
    let mut for_proxy = Zeroizing::new(Vec::with_capacity(HEADER + POINT * bits.len()));
    for_proxy.extend(header(KEYS, session, bits.len()));
    for &bit in bits {
        let secret = random_scalar()?;
        let own = RistrettoPoint::mul_base(&secret);
        let zero = RistrettoPoint::conditional_select(&own, &(constant - own), u8::from(bit).into());
        for_sender.extend(zero.compress().as_bytes());
        for_proxy.extend(secret.as_bytes());
    }
    Ok(Chosen { for_sender, for_proxy })
}

/// The proxy's side: of each pair the word that the chooser chose.
///
/// # Errors
/// The messages are not of one session and as many transfers; a key opens neither ciphertext of its pair.
pub fn open(keys: &[u8], sealed: &[u8]) -> Result<Vec<u128>, OtError> {
    let (count, secrets) = parse(keys, KEYS, None, 0, POINT)?;
    let session = keys[6..22].try_into().expect("parsed");
    let (sealed_count, body) = parse(sealed, SEALED, Some(session), POINT, 2 * SEALED_WORD)?;
    if sealed_count != count {
        return Err(OtError::Length {
            what: "the sender's message",
            got: sealed_count,
            expected: count,
            unit: "transfers",
        });
    }
    let (shown, body) = body.split_at(POINT);
    let shown = decode(shown, "the sender's message", 0)?;
    let mut shared = Zeroizing::new(Vec::with_capacity(count));
    for (i, secret) in secrets.as_chunks::<POINT>().0.iter().enumerate() {
        let secret: Option<Scalar> = Scalar::from_canonical_bytes(*secret).into();
        let secret = Zeroizing::new(secret.ok_or(OtError::Point { what: "the chooser's keys", index: i })?);
        shared.push(*secret * shown);
    }
    let pads = oracle(TO_PAD, session);
    let pairs = compress(&shared);
    let pairs = pairs.iter().zip(body.as_chunks::<SEALED_WORD>().0.chunks_exact(2)).enumerate();
    pairs
        .map(|(i, (shared, pair))| {
            let both = [0, 1].map(|place| unseal(&pads, i, shared, &pair[place]));
            both.into_iter().flatten().next().ok_or(OtError::Check { what: "a sealed pair" })
        })
        .collect()
}

const TO_PAD: &str = "blindcore 2026 ot proxy: to pad";
const LAYOUT: Layout = Layout {
    what: "a proxy transfer",
    magic: b"bcpo",
    version_at: 4,
    version_bytes: 1,
    version: 1,
    bytes: HEADER,
};
const HEADER: usize = 26;
const KIND: Field<u8> = Field::at(5);
const SESSION: Field<[u8; 16]> = Field::at(6);
const COUNT: Field<u32> = Field::at(22);
const PUBLICATION: u8 = 0;
const REQUEST: u8 = 1;
const KEYS: u8 = 2;
const SEALED: u8 = 3;
/// A word and its tag.
const SEALED_WORD: usize = 32;

fn header(kind: u8, session: &[u8; 16], count: usize) -> Vec<u8> {
    let mut header = LAYOUT.start();
    KIND.put(&mut header, kind);
    SESSION.put(&mut header, *session);
    COUNT.put(&mut header, u32::try_from(count).expect("at most MAX_BATCH"));
    header
}

/// How many transfers a message has, and what follows its header: `fixed` bytes and `each` a transfer.
fn parse<'a>(
    message: &'a [u8],
    kind: u8,
    session: Option<&[u8; 16]>,
    fixed: usize,
    each: usize,
) -> Result<(usize, &'a [u8]), OtError> {
    let what = match kind {
        PUBLICATION => "the sender's publication",
        REQUEST => "the chooser's request",
        KEYS => "the chooser's keys",
        _ => "the sender's message",
    };
    let length = |expected| OtError::Length { what, got: message.len(), expected, unit: "B" };
    let header = LAYOUT.check(message).map_err(|error| match error {
        HeaderError::Short { .. } => length(HEADER + fixed),
        other => differs(other),
    })?;
    let body = &message[HEADER..];
    let got = KIND.get(header);
    if got != kind {
        return Err(OtError::Peer { what: "a message of kind", got: got.into(), expected: kind.into() });
    }
    if let Some(session) = session
        && SESSION.get(header) != *session
    {
        let start = |session: &[u8; 16]| u32::from_le_bytes(*session.first_chunk().expect("16 bytes"));
        let (got, expected) = (start(&SESSION.get(header)), start(session));
        return Err(OtError::Peer { what: "a message of the session", got, expected });
    }
    let count = COUNT.get(header) as usize;
    if count > MAX_BATCH {
        return Err(OtError::Batch { got: count, limit: MAX_BATCH });
    }
    let expected = fixed + each * count;
    if body.len() == expected { Ok((count, body)) } else { Err(length(HEADER + expected)) }
}

/// The pad of a word and the key of its tag.
fn pad(oracle: &Hasher, index: usize, shared: &[u8; POINT]) -> Zeroizing<[u8; 48]> {
    let mut hasher = oracle.clone();
    hasher.update(&(index as u64).to_le_bytes()).update(shared);
    let mut pad = Zeroizing::new([0; 48]);
    hasher.finalize_xof().fill(&mut *pad);
    hasher.zeroize();
    pad
}

fn tag(pad: &[u8; 48], hidden: &[u8]) -> [u8; 16] {
    let key = Zeroizing::new(*pad.last_chunk::<32>().expect("32 of 48 bytes"));
    let tag = blake3::keyed_hash(&key, hidden);
    *tag.as_bytes().first_chunk().expect("16 of 32 bytes")
}

fn seal(oracle: &Hasher, index: usize, shared: &[u8; POINT], word: u128) -> [u8; SEALED_WORD] {
    let pad = pad(oracle, index, shared);
    let mut sealed = [0; SEALED_WORD];
    let (hidden, mark) = sealed.split_at_mut(16);
    let key = u128::from_le_bytes(*pad.first_chunk().expect("16 of 48 bytes"));
    hidden.copy_from_slice(&(word ^ key).to_le_bytes());
    mark.copy_from_slice(&tag(&pad, hidden));
    sealed
}

fn unseal(oracle: &Hasher, index: usize, shared: &[u8; POINT], sealed: &[u8; SEALED_WORD]) -> Option<u128> {
    let pad = pad(oracle, index, shared);
    let (hidden, mark) = sealed.split_first_chunk::<16>().expect("32 bytes");
    let key = u128::from_le_bytes(*pad.first_chunk().expect("16 of 48 bytes"));
    // Which of the two opens is at random, so this branch tells nothing.
    bool::from(tag(&pad, hidden).ct_eq(mark)).then_some(u128::from_le_bytes(*hidden) ^ key)
}
