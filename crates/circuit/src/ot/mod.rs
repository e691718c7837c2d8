//! Oblivious transfer: one side offers pairs, the other takes one of each and the first never learns which.
//!
//! - [`base`]: a few transfers of random keys by public-key cryptography (Masny and Rindal 2019).
//! - [`extension`]: as many as anyone wants, out of 128 of those, by AES alone (Roy 2022, SoftSpokenOT).
//! - [`proxy`]: three roles, where the one who opens is not the one who chooses (Naor and Pinkas).
//!
//! Built here, because `cryprot-ot` 0.3, the crate that is published and kept up, talks only through its own connection
//! of Tokio and QUIC, where a session of ours has one blocking stream. Its extensions are KOS and silent transfer; ours
//! sends half of KOS's bytes, and needs one consistency check a chunk, so that what was checked can be used at once.
//!
//! Both sides block. Whatever is written is flushed before anything is read. Values of secrets take no part in branches
//! or addresses. What a peer sends is of lengths that both sides know beforehand, so no length is read from a peer.

use std::io;

use blake3::Hasher;
use blindcore_files::header::HeaderError;
use zeroize::Zeroizing;

pub mod base;
pub mod extension;
mod matrix;
pub mod proxy;
mod trees;

/// Why a transfer ended.
#[derive(Debug, thiserror::Error)]
pub enum OtError {
    /// The channel failed or was closed.
    #[error("the channel to the peer failed: {0}")]
    Io(#[from] io::Error),
    /// The peer speaks another protocol, or was started otherwise.
    #[error("the peer sent {what} {got} where this side has {expected}; start both sides alike")]
    Peer {
        /// What differs.
        what: &'static str,
        /// What the peer sent.
        got: u32,
        /// What it should be.
        expected: u32,
    },
    /// Bytes that encode no point of the group, or the neutral one where it would make a key known.
    #[error(
        "in oblivious transfer point {index} of {what} is not valid: it was changed on the way, or the peer is faulty or cheats"
    )]
    Point {
        /// The message it is in.
        what: &'static str,
        /// Its place in that message.
        index: usize,
    },
    /// What came is not what an honest peer sends. Start over with another delta.
    #[error(
        "in oblivious transfer the consistency check of {what} failed: what came was changed on the way, or the peer is faulty or \
         cheats"
    )]
    Check {
        /// What was checked.
        what: &'static str,
    },
    /// An earlier call of this side failed, and its state is of no use any more.
    #[error("an earlier call on this side failed; set it up again with another delta")]
    Spent,
    /// Something has the wrong length.
    #[error("{what} has {got} {unit}, and should have {expected}")]
    Length {
        /// What.
        what: &'static str,
        /// How long it is.
        got: usize,
        /// How long it should be.
        expected: usize,
        /// What is counted.
        unit: &'static str,
    },
    /// Trees of a depth that isn't made.
    #[error("trees of {got} levels are not made; use 1 to 4")]
    Depth {
        /// What was asked for.
        got: u8,
    },
    /// A delta of zero, under which both messages of a pair are the same.
    #[error("a delta of zero hides nothing; draw one at random")]
    Delta,
    /// A message of more transfers than a proxy's message carries.
    #[error("{got} transfers are over the {limit} of one batch; use several")]
    Batch {
        /// What was asked for.
        got: usize,
        /// The limit.
        limit: usize,
    },
    /// The operating system gave no randomness.
    #[error("the operating system gave no randomness: {0}")]
    Randomness(getrandom::Error),
}

/// A message that starts otherwise than this side's.
fn differs(error: HeaderError) -> OtError {
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, byte| n << 8 | u32::from(*byte));
    let (what, got, expected) = match error {
        HeaderError::Magic { got, want, .. } => ("the magic number", number(&got), number(want)),
        HeaderError::Version { got, want } => ("the version", got, want),
        HeaderError::Short { got, want } => {
            return OtError::Length { what: "a message", got, expected: want, unit: "B" };
        }
    };
    OtError::Peer { what, got, expected }
}

/// What both sides hold alike and no other session has.
pub(crate) type Session = [u8; 32];

/// `N` bytes of the operating system's randomness.
fn random<const N: usize>() -> Result<Zeroizing<[u8; N]>, OtError> {
    let mut bytes = Zeroizing::new([0; N]);
    getrandom::fill(&mut *bytes).map_err(OtError::Randomness)?;
    Ok(bytes)
}

/// A random oracle of its own for each purpose and session.
fn oracle(purpose: &str, session: &[u8]) -> Hasher {
    let mut hasher = Hasher::new_derive_key(purpose);
    hasher.update(session);
    hasher
}

/// The first 16 bytes of what a hash gives.
fn first_block(hasher: &Hasher) -> u128 {
    let mut bytes = Zeroizing::new([0; 16]);
    hasher.finalize_xof().fill(&mut *bytes);
    u128::from_le_bytes(*bytes)
}

/// All ones where a bit is set, zero where it is not.
fn mask(word: u128, bit: usize) -> u128 {
    0u128.wrapping_sub(word >> bit & 1)
}
