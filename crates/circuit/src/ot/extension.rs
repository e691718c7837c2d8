//! Transfers by the million: SoftSpokenOT (Roy, CRYPTO 2022; figures are those of ePrint 2022/192) with a repetition code
//! over GF(2^k), figures 7 and 8.
//!
//! 128 base transfers in the other direction are set up once. Then each call makes as many *correlated* transfers as are
//! asked for: the sender holds one secret `delta` and gets `q`, the receiver has a choice bit `r` each and gets
//!
//! ```text
//! t = q ^ r * delta        128-bit words; bit i of delta is lane i
//! ```
//!
//! which are labels of free-XOR garbling as they are: `q` is false, `q ^ delta` true. A garbler that wants to point and
//! permute takes a `delta` that is odd. *Random* and *chosen* transfers come out of these by a hash.
//!
//! The receiver sends `128 / k` bits a transfer and both spend `2^k / k * 128` bits of AES-128 in counter mode; `k` is
//! [`Parameters::depth`], 1 to 4. At 2, half the bytes of IKNP and KOS cost no more AES than theirs.
//!
//! With [`Check::None`] both sides must keep to the protocol, though a malicious *sender* learns nothing in any case.
//! With [`Check::Malicious`] the sender notices a receiver that lies: about its trees of seeds and about its choices
//! (figure 9, by POLYVAL as the universal hash, 128 more rows that mask what it shows, and a hash key that is the BLAKE3
//! hash of what the receiver sent, so that no round is needed; a lie passes for one key in 2^121, and a receiver can try
//! as many keys as it can hash). A receiver that guesses bits of `delta` can
//! still pass with luck, one half for each bit; where it has none the sender's state is spent and delta with it.
//!
//! ```
//! use blindcore_circuit::ot::extension::{Parameters, Receiver, Sender};
//! use std::{os::unix::net::UnixStream, thread};
//!
//! let (mut left, mut right) = UnixStream::pair()?;
//! let delta = 0x1234_5678_9abc_def0_0fed_cba9_8765_4321; // at random, and odd
//! let sender = thread::spawn(move || {
//!     let mut labels = [0; 3];
//!     let mut sender = Sender::setup(&mut left, delta, Parameters::default())?;
//!     sender.extend(&mut left, &mut labels).map(|()| labels)
//! });
//! let mut labels = [0; 3];
//! let mut receiver = Receiver::setup(&mut right, Parameters::default())?;
//! receiver.extend(&mut right, &[false, true, true], &mut labels)?;
//! let zeros = sender.join().unwrap()?;
//! assert_eq!(labels, [zeros[0], zeros[1] ^ delta, zeros[2] ^ delta]);
//! # Ok::<(), blindcore_circuit::ot::OtError>(())
//! ```

use std::io::{Read, Write};

use aes::{
    Aes128Enc, Block,
    cipher::{BlockCipherEncrypt, KeyInit},
};
use blindcore_accel::advise_huge_pages;
use blindcore_files::header::{Field, Layout};
use blindcore_math::transfers::{ColumnHash, Stores, Streams, rows};
use subtle::{Choice, ConstantTimeEq};
use zeroize::{Zeroize, Zeroizing};

pub use super::matrix::CHUNK;
use super::{OtError, Session, base, differs, first_block, mask, matrix::STRIDE, oracle, random, trees};

/// What is done about a receiver that doesn't keep to the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// Nothing: for peers that are honest but curious.
    #[default]
    None,
    /// The sender checks what the receiver sent, before it gives anything out.
    Malicious,
}

/// What both sides have to agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Levels of the trees of seeds, 1 to 4: bytes go down by it and AES goes up from 2.
    pub depth: u8,
    /// Whether the receiver is checked.
    pub check: Check,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { depth: 2, check: Check::None }
    }
}

impl Parameters {
    fn checked(self) -> bool {
        self.check == Check::Malicious
    }

    /// Trees of one level are base transfers as they are, and need no check.
    fn trees_checked(self) -> bool {
        self.checked() && self.depth > 1
    }

    /// Blocks of 128 rows for this many transfers, with the one that masks the check.
    fn blocks(self, transfers: usize) -> usize {
        transfers.div_ceil(128) + usize::from(self.checked())
    }

    /// Bytes that the receiver sends for `transfers` of them, at most [`CHUNK`].
    #[must_use]
    pub fn message_len(self, transfers: usize) -> usize {
        let corrections = trees::depths(self.depth).count() * self.blocks(transfers);
        16 * (corrections + if self.checked() { 129 } else { 0 })
    }
}

/// The side that holds `delta`.
pub struct Sender {
    delta: u128,
    /// For each tree, streams of leaves 1 and up, relative to the one that is not known.
    trees: Vec<Streams>,
    common: Common,
}

/// The side that chooses.
pub struct Receiver {
    /// For each tree, streams of all leaves.
    trees: Vec<Streams>,
    common: Common,
}

impl Sender {
    /// Sets up with a receiver that does the same; `delta` is a secret at random, not used in another session.
    ///
    /// # Errors
    /// The channel fails; the peer has other parameters or is not a receiver; it fails the check; `delta` is zero.
    pub fn setup<C: Read + Write>(
        channel: &mut C,
        delta: u128,
        parameters: Parameters,
    ) -> Result<Self, OtError> {
        if delta == 0 {
            return Err(OtError::Delta);
        }
        let session = agree(channel, parameters, SENDER)?;
        let choices = Zeroizing::new((0..128).map(|i| (!delta >> i & 1) as u8).collect::<Vec<_>>());
        let mut choices: Vec<Choice> = choices.iter().map(|&bit| bit.into()).collect();
        let keys = base::receive(channel, &session, &choices);
        // `Choice` has no wiping of its own.
        choices.fill(0.into());
        std::hint::black_box(&choices);
        let keys = keys?;
        let checked = parameters.trees_checked();
        let mut message = vec![0; trees::message_len(parameters.depth, checked)];
        channel.read_exact(&mut message)?;
        let leaves = trees::gather(&session, &keys, delta, parameters.depth, checked, &message)?;
        let trees = leaves.iter().map(|tree| Streams::new(1, &tree[1..])).collect();
        Ok(Self { delta, trees, common: Common::new(session, parameters) })
    }

    /// Makes `labels.len()` correlated transfers: the words `q`, of which the receiver gets `q` or `q ^ delta`.
    ///
    /// Reads [`Parameters::message_len`] bytes a [`CHUNK`] and sends nothing.
    ///
    /// # Errors
    /// The channel fails; the receiver fails the check. Either spends this sender.
    pub fn extend<C: Read + Write>(&mut self, channel: &mut C, labels: &mut [u128]) -> Result<(), OtError> {
        self.common.begin()?;
        let stores = stores(labels);
        labels.chunks_mut(CHUNK).try_for_each(|labels| self.chunk(channel, labels, stores))?;
        self.common.end();
        Ok(())
    }

    /// Makes `pairs.len()` random transfers: pairs of words, of which the receiver gets one each.
    ///
    /// # Errors
    /// As [`extend`](Self::extend).
    pub fn random<C: Read + Write>(
        &mut self,
        channel: &mut C,
        pairs: &mut [[u128; 2]],
    ) -> Result<(), OtError> {
        self.common.begin()?;
        let mut labels = Zeroizing::new(vec![0; pairs.len().min(CHUNK)]);
        for pairs in pairs.chunks_mut(CHUNK) {
            let labels = &mut labels[..pairs.len()];
            let first = self.common.transfers;
            self.chunk(channel, labels, Stores::Cached)?;
            self.common.hash(first, labels.iter().copied(), pairs.iter_mut().map(|pair| &mut pair[0]));
            let ones = labels.iter().map(|label| label ^ self.delta);
            self.common.hash(first, ones, pairs.iter_mut().map(|pair| &mut pair[1]));
        }
        self.common.end();
        Ok(())
    }

    /// Transfers one word of each pair. Sends 32 B a transfer.
    ///
    /// # Errors
    /// As [`extend`](Self::extend).
    pub fn send<C: Read + Write>(&mut self, channel: &mut C, pairs: &[[u128; 2]]) -> Result<(), OtError> {
        let mut pads = Zeroizing::new(vec![[0; 2]; pairs.len().min(CHUNK)]);
        let mut message = Vec::with_capacity(32 * pads.len());
        for pairs in pairs.chunks(CHUNK) {
            let pads = &mut pads[..pairs.len()];
            self.random(channel, pads)?;
            let hidden = pairs.as_flattened().iter().zip(pads.as_flattened());
            message.clear();
            message.extend(hidden.flat_map(|(word, pad)| (word ^ pad).to_le_bytes()));
            self.common.begin()?;
            channel.write_all(&message)?;
            channel.flush()?;
            self.common.end();
        }
        Ok(())
    }

    fn chunk<C: Read + Write>(
        &mut self,
        channel: &mut C,
        labels: &mut [u128],
        stores: Stores,
    ) -> Result<(), OtError> {
        let Common { session, parameters, columns, total, message, counter, .. } = &mut self.common;
        let blocks = parameters.blocks(labels.len());
        message.resize(parameters.message_len(labels.len()), 0);
        channel.read_exact(message)?;

        let mut lane = 0;
        for (tree, correction) in self.trees.iter().zip(message.chunks_exact(16 * blocks)) {
            let columns = &mut columns[lane * STRIDE..];
            tree.sums(*counter, &mut total[..blocks], columns, STRIDE);
            for level in 0..tree.levels() {
                let mask = mask(self.delta, lane + level);
                let column = &mut columns[level * STRIDE..][..blocks];
                for (word, bytes) in column.iter_mut().zip(correction.as_chunks().0) {
                    *word ^= u128::from_le_bytes(*bytes) & mask;
                }
            }
            lane += tree.levels();
        }
        if parameters.checked() {
            let (corrections, shown) = message.split_at(message.len() - 16 * 129);
            let hash = ColumnHash::new(challenge(session, *counter, corrections), blocks);
            let mut shown = shown.as_chunks().0.iter().map(|bytes| u128::from_le_bytes(*bytes));
            let choices = shown.next().expect("129 of them");
            let mut differ = 0;
            for (lane, theirs) in shown.enumerate() {
                let ours = hash.of(&columns[lane * STRIDE..][..blocks]);
                differ |= ours ^ theirs ^ choices & mask(self.delta, lane);
            }
            if !bool::from(differ.ct_eq(&0)) {
                return Err(OtError::Check { what: "the choices" });
            }
        }
        rows(columns, STRIDE, labels, stores);
        self.common.advance(labels.len(), blocks);
        Ok(())
    }
}

impl Receiver {
    /// Sets up with a sender that does the same.
    ///
    /// # Errors
    /// The channel fails; the peer has other parameters or is not a sender; it sends what is not a point.
    pub fn setup<C: Read + Write>(channel: &mut C, parameters: Parameters) -> Result<Self, OtError> {
        let session = agree(channel, parameters, RECEIVER)?;
        let pairs = base::send(channel, &session, 128)?;
        let (leaves, message) = trees::plant(&session, &pairs, parameters.depth, parameters.trees_checked());
        channel.write_all(&message)?;
        channel.flush()?;
        let trees = leaves.iter().map(|tree| Streams::new(0, tree)).collect();
        Ok(Self { trees, common: Common::new(session, parameters) })
    }

    /// Makes `choices.len()` correlated transfers: for each the word `q`, or `q ^ delta` where the choice is true.
    ///
    /// Sends [`Parameters::message_len`] bytes a [`CHUNK`] and reads nothing.
    ///
    /// # Errors
    /// The channel fails, which spends this receiver; or there are not as many `labels` as choices.
    pub fn extend<C: Read + Write>(
        &mut self,
        channel: &mut C,
        choices: &[bool],
        labels: &mut [u128],
    ) -> Result<(), OtError> {
        same_length("labels", labels.len(), choices.len())?;
        self.common.begin()?;
        let stores = stores(labels);
        for (choices, labels) in choices.chunks(CHUNK).zip(labels.chunks_mut(CHUNK)) {
            self.chunk(channel, choices, labels, stores)?;
        }
        self.common.end();
        Ok(())
    }

    /// Makes `choices.len()` random transfers: one word of each of the sender's pairs.
    ///
    /// # Errors
    /// As [`extend`](Self::extend).
    pub fn random<C: Read + Write>(
        &mut self,
        channel: &mut C,
        choices: &[bool],
        words: &mut [u128],
    ) -> Result<(), OtError> {
        same_length("words", words.len(), choices.len())?;
        self.common.begin()?;
        let mut labels = Zeroizing::new(vec![0; choices.len().min(CHUNK)]);
        for (choices, words) in choices.chunks(CHUNK).zip(words.chunks_mut(CHUNK)) {
            let labels = &mut labels[..choices.len()];
            let first = self.common.transfers;
            self.chunk(channel, choices, labels, Stores::Cached)?;
            self.common.hash(first, labels.iter().copied(), words.iter_mut());
        }
        self.common.end();
        Ok(())
    }

    /// Receives one word of each of the sender's pairs.
    ///
    /// # Errors
    /// As [`extend`](Self::extend).
    pub fn receive<C: Read + Write>(
        &mut self,
        channel: &mut C,
        choices: &[bool],
        words: &mut [u128],
    ) -> Result<(), OtError> {
        same_length("words", words.len(), choices.len())?;
        let mut message = vec![0; 32 * choices.len().min(CHUNK)];
        for (choices, words) in choices.chunks(CHUNK).zip(words.chunks_mut(CHUNK)) {
            self.random(channel, choices, words)?;
            let message = &mut message[..32 * choices.len()];
            self.common.begin()?;
            channel.read_exact(message)?;
            self.common.end();
            for ((pair, choice), word) in message.as_chunks::<16>().0.chunks_exact(2).zip(choices).zip(words)
            {
                let [zero, one] = [pair[0], pair[1]].map(u128::from_le_bytes);
                *word ^= zero ^ (zero ^ one) & mask((*choice).into(), 0);
            }
        }
        Ok(())
    }

    fn chunk<C: Read + Write>(
        &mut self,
        channel: &mut C,
        choices: &[bool],
        labels: &mut [u128],
        stores: Stores,
    ) -> Result<(), OtError> {
        let Common { session, parameters, columns, total, message, counter, .. } = &mut self.common;
        let blocks = parameters.blocks(choices.len());
        let mut packed = Zeroizing::new(vec![0; blocks]);
        for (word, choices) in packed.iter_mut().zip(choices.chunks(128)) {
            *word = pack(choices);
        }
        if parameters.checked() {
            packed[blocks - 1] = u128::from_le_bytes(*random()?);
        }

        let total = &mut total[..blocks];
        message.resize(trees::depths(parameters.depth).count() * 16 * blocks, 0);
        let mut lane = 0;
        for (tree, correction) in self.trees.iter().zip(message.chunks_exact_mut(16 * blocks)) {
            tree.sums(*counter, total, &mut columns[lane * STRIDE..], STRIDE);
            for ((bytes, word), choices) in correction.as_chunks_mut().0.iter_mut().zip(&*total).zip(&*packed)
            {
                *bytes = (word ^ choices).to_le_bytes();
            }
            lane += tree.levels();
        }
        if parameters.checked() {
            let hash = ColumnHash::new(challenge(session, *counter, message), blocks);
            message.extend(hash.of(&packed).to_le_bytes());
            for lane in 0..128 {
                message.extend(hash.of(&columns[lane * STRIDE..][..blocks]).to_le_bytes());
            }
        }
        channel.write_all(message)?;
        channel.flush()?;
        rows(columns, STRIDE, labels, stores);
        self.common.advance(labels.len(), blocks);
        Ok(())
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.delta.zeroize();
    }
}

/// What both sides have.
struct Common {
    session: Session,
    parameters: Parameters,
    /// Transfers made so far, the tweak of the next one's hash.
    transfers: u64,
    /// Blocks drawn so far from every generator.
    counter: u64,
    /// Whether a call failed or was left before its end.
    spent: bool,
    permutation: Aes128Enc,
    /// 128 columns, [`STRIDE`] apart.
    columns: Zeroizing<Vec<u128>>,
    /// Sums of all streams of a tree.
    total: Zeroizing<Vec<u128>>,
    message: Vec<u8>,
}

impl Common {
    fn new(session: Session, parameters: Parameters) -> Self {
        let key = first_block(&oracle("blindcore 2026 ot extension: permutation", &session));
        Self {
            session,
            parameters,
            transfers: 0,
            counter: 0,
            spent: false,
            permutation: Aes128Enc::new(&key.to_le_bytes().into()),
            columns: Zeroizing::new(vec![0; 128 * STRIDE]),
            total: Zeroizing::new(vec![0; STRIDE]),
            message: Vec::new(),
        }
    }

    fn begin(&mut self) -> Result<(), OtError> {
        if std::mem::replace(&mut self.spent, true) { Err(OtError::Spent) } else { Ok(()) }
    }

    fn end(&mut self) {
        self.spent = false;
    }

    fn advance(&mut self, transfers: usize, blocks: usize) {
        self.transfers += transfers as u64;
        self.counter += blocks as u64;
    }

    /// Breaks the correlation: `pi(pi(x) ^ i) ^ pi(x)` for the words' numbers `i`, with fixed-key AES-128 as `pi` (Guo,
    /// Katz, Wang and Yu, S&P 2020, section 7.4, TMMO). The key is the session's, so no two sessions share it.
    fn hash<'a>(
        &self,
        first: u64,
        words: impl Iterator<Item = u128>,
        mut out: impl Iterator<Item = &'a mut u128>,
    ) {
        const WIDE: usize = 64;
        let mut inner = [Block::default(); WIDE];
        let mut outer = [Block::default(); WIDE];
        let mut words = words.peekable();
        let mut tweaks = u128::from(first)..;
        while words.peek().is_some() {
            let mut count = 0;
            for (block, word) in inner.iter_mut().zip(&mut words) {
                *block = word.to_le_bytes().into();
                count += 1;
            }
            self.permutation.encrypt_blocks(&mut inner[..count]);
            for ((outer, inner), tweak) in outer.iter_mut().zip(&inner[..count]).zip(&mut tweaks) {
                *outer = (word(inner) ^ tweak).to_le_bytes().into();
            }
            self.permutation.encrypt_blocks(&mut outer[..count]);
            for (outer, inner) in outer.iter().zip(&inner[..count]) {
                *out.next().expect("as many as words") = word(outer) ^ word(inner);
            }
        }
        wipe(&mut inner);
        wipe(&mut outer);
    }
}

/// Labels that a second-level cache holds are read from there; more of them come back from memory anyway, in huge pages if the system has
/// some.
fn stores(labels: &mut [u128]) -> Stores {
    /// 4 MiB of labels.
    const CACHED: usize = 1 << 18;
    if labels.len() <= CACHED {
        return Stores::Cached;
    }
    advise_huge_pages(labels);
    Stores::Streamed
}

fn word(block: &Block) -> u128 {
    u128::from_le_bytes((*block).into())
}

fn wipe(blocks: &mut [Block]) {
    blocks.iter_mut().for_each(|block| block.as_mut_slice().zeroize());
}

/// Up to 128 bits, the first lowest.
fn pack(bits: &[bool]) -> u128 {
    // Byte i of the factor's product brings bit i to the top byte.
    let byte = |bits: &[bool; 8]| {
        let bytes = u64::from_le_bytes(bits.map(u8::from));
        u128::from(bytes.wrapping_mul(0x0102_0408_1020_4080) >> 56)
    };
    let (bytes, rest) = bits.as_chunks::<8>();
    let mut last = [false; 8];
    last[..rest.len()].copy_from_slice(rest);
    let high = if rest.is_empty() { 0 } else { byte(&last) };
    bytes.iter().rev().fold(high, |word, bits| word << 8 | byte(bits))
}

/// The key of a chunk's check, which its sender can't foresee.
fn challenge(session: &Session, counter: u64, corrections: &[u8]) -> u128 {
    let mut hasher = oracle("blindcore 2026 ot extension: challenge", session);
    first_block(hasher.update(&counter.to_le_bytes()).update(corrections))
}

fn same_length(what: &'static str, got: usize, expected: usize) -> Result<(), OtError> {
    if got == expected { Ok(()) } else { Err(OtError::Length { what, got, expected, unit: "words" }) }
}

/// What a side says first.
const GREETING: Layout = Layout {
    what: "a greeting of transfers",
    magic: b"bcot",
    version_at: 4,
    version_bytes: 1,
    version: 1,
    bytes: 24,
};
const ROLE: Field<u8> = Field::at(5);
const DEPTH: Field<u8> = Field::at(6);
const CHECKED: Field<u8> = Field::at(7);
const NONCE: Field<[u8; 16]> = Field::at(8);
const SENDER: u8 = 0;
const RECEIVER: u8 = 1;

/// Greets the peer, compares what both have, and makes a session that neither chose alone.
fn agree<C: Read + Write>(channel: &mut C, parameters: Parameters, role: u8) -> Result<Session, OtError> {
    if !(1..=4).contains(&parameters.depth) {
        return Err(OtError::Depth { got: parameters.depth });
    }
    let mut ours = GREETING.start();
    ROLE.put(&mut ours, role);
    DEPTH.put(&mut ours, parameters.depth);
    CHECKED.put(&mut ours, parameters.checked().into());
    NONCE.put(&mut ours, *random::<16>()?);
    channel.write_all(&ours)?;
    channel.flush()?;
    let mut theirs = [0; GREETING.bytes];
    channel.read_exact(&mut theirs)?;

    let greeting = GREETING.check(&theirs).map_err(differs)?;
    for (what, field, expected) in [
        ("the role", ROLE, 1 - role),
        ("trees of depth", DEPTH, parameters.depth),
        ("the check", CHECKED, parameters.checked().into()),
    ] {
        let got = field.get(greeting);
        if got != expected {
            return Err(OtError::Peer { what, got: got.into(), expected: expected.into() });
        }
    }
    let mut hasher = blake3::Hasher::new_derive_key("blindcore 2026 ot extension: session");
    let (sent, received) = if role == SENDER { (&ours[..], &theirs[..]) } else { (&theirs[..], &ours[..]) };
    Ok(hasher.update(sent).update(received).finalize().into())
}
