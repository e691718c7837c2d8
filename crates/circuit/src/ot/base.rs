//! Base transfers: pairs of random 128-bit keys, of which the receiver gets one each.
//!
//! Endemic oblivious transfer of Masny and Rindal (CCS 2019; figure 8 of ePrint 2019/706) with Diffie and Hellman's
//! exchange over ristretto255: the sender shows `A = aG`. The receiver with choice `c` draws `b` and a group element
//! `r_{1-c}` of which nobody knows the logarithm, and shows it beside `r_c = bG - H_c(r_{1-c})`. The key of slot `s` is
//! the hash of `a (r_s + H_s(r_{1-s}))`, which the receiver can compute as `bA` for `c` alone. Secure against either side being
//! malicious, in the random oracle model, if the computational Diffie-Hellman problem is hard; a malicious side can
//! influence its own keys, which is all that the extension needs. Every transfer has an `a` of its own.
//!
//! ```
//! use blindcore_circuit::ot::base;
//! use std::{os::unix::net::UnixStream, thread};
//!
//! let (mut left, mut right) = UnixStream::pair()?;
//! let session = [7; 32]; // what both sides agreed on, new for each run
//! let sender = thread::spawn(move || base::send(&mut left, &session, 2));
//! let keys = base::receive(&mut right, &session, &[0.into(), 1.into()])?;
//! let pairs = sender.join().unwrap()?;
//! assert_eq!(*keys, [pairs[0][0], pairs[1][1]]);
//! # Ok::<(), blindcore_circuit::ot::OtError>(())
//! ```

use std::io::{Read, Write};

use blake3::Hasher;
use curve25519_dalek::{RistrettoPoint, Scalar, ristretto::CompressedRistretto, traits::IsIdentity};
use subtle::{Choice, ConditionallySelectable};
use zeroize::{Zeroize, Zeroizing};

use super::{OtError, Session, first_block, oracle, random};

/// Bytes of a group element on the wire.
pub(super) const POINT: usize = 32;

/// The sender's side of `count` transfers: pairs of keys.
///
/// `session` is what both sides agreed on and is not used twice. Sends 32 B a transfer and reads 64 B.
///
/// # Errors
/// The channel fails, or the peer sends what is not a point.
pub fn send<C: Read + Write>(
    channel: &mut C,
    session: &Session,
    count: usize,
) -> Result<Zeroizing<Vec<[u128; 2]>>, OtError> {
    let mut secrets = Zeroizing::new(Vec::with_capacity(count));
    let mut shown = Vec::with_capacity(count);
    for _ in 0..count {
        let secret = random_scalar()?;
        shown.push(RistrettoPoint::mul_base(&secret).compress().to_bytes());
        secrets.push(*secret);
    }
    channel.write_all(shown.as_flattened())?;
    channel.flush()?;

    let mut reply = vec![0; count * 2 * POINT];
    channel.read_exact(&mut reply)?;
    let points = oracle(TO_POINT, session);
    let mut shared = Zeroizing::new(Vec::with_capacity(2 * count));
    for (i, (pair, secret)) in reply.chunks_exact(2 * POINT).zip(&*secrets).enumerate() {
        let (r0, r1) = pair.split_at(POINT);
        let theirs = [
            decode(r0, "the receiver's choice", 2 * i)? + to_point(&points, i, 0, r1),
            decode(r1, "the receiver's choice", 2 * i + 1)? + to_point(&points, i, 1, r0),
        ];
        shared.extend(theirs.map(|point| secret * point));
    }
    let shared = compress(&shared);
    let keys = oracle(TO_KEY, session);
    let slots = reply.chunks_exact(2 * POINT).zip(&shown).zip(shared.chunks_exact(2));
    Ok(Zeroizing::new(
        slots
            .enumerate()
            .map(|(i, ((pair, shown), shared))| {
                [0, 1].map(|slot| to_key(&keys, i, slot, shown, pair, &shared[usize::from(slot)]))
            })
            .collect(),
    ))
}

/// The receiver's side: for each choice the key of that slot.
///
/// # Errors
/// The channel fails, or the peer sends what is not a point.
pub fn receive<C: Read + Write>(
    channel: &mut C,
    session: &Session,
    choices: &[Choice],
) -> Result<Zeroizing<Vec<u128>>, OtError> {
    // All of this needs nothing of the sender's, which makes its own points meanwhile.
    let points = oracle(TO_POINT, session);
    let mut reply = Vec::with_capacity(choices.len() * 2 * POINT);
    let mut secrets = Zeroizing::new(Vec::with_capacity(choices.len()));
    for (i, &choice) in choices.iter().enumerate() {
        let secret = random_scalar()?;
        let other = RistrettoPoint::from_uniform_bytes(&*random()?).compress().to_bytes();
        let own = RistrettoPoint::mul_base(&secret) - to_point(&points, i, choice.unwrap_u8(), &other);
        let own = own.compress().to_bytes();
        reply.extend(<[u8; POINT]>::conditional_select(&own, &other, choice));
        reply.extend(<[u8; POINT]>::conditional_select(&other, &own, choice));
        secrets.push(*secret);
    }
    let mut shown = vec![[0; POINT]; choices.len()];
    channel.read_exact(shown.as_flattened_mut())?;
    let mut theirs = Vec::with_capacity(choices.len());
    for (i, bytes) in shown.iter().enumerate() {
        let point = decode(bytes, "the sender's keys", i)?;
        if point.is_identity() {
            return Err(OtError::Point { what: "the sender's keys", index: i });
        }
        theirs.push(point);
    }
    channel.write_all(&reply)?;
    channel.flush()?;

    let shared: Vec<_> = theirs.iter().zip(&*secrets).map(|(point, secret)| secret * point).collect();
    let shared = Zeroizing::new(shared);
    let shared = compress(&shared);
    let keys = oracle(TO_KEY, session);
    let slots = reply.chunks_exact(2 * POINT).zip(&shown).zip(&*shared).zip(choices);
    Ok(Zeroizing::new(
        slots
            .enumerate()
            .map(|(i, (((pair, shown), shared), choice))| {
                to_key(&keys, i, choice.unwrap_u8(), shown, pair, shared)
            })
            .collect(),
    ))
}

const TO_POINT: &str = "blindcore 2026 ot base: to point";
const TO_KEY: &str = "blindcore 2026 ot base: to key";

/// A scalar that is uniform but for 2^-252.
pub(super) fn random_scalar() -> Result<Zeroizing<Scalar>, OtError> {
    Ok(Zeroizing::new(Scalar::from_bytes_mod_order_wide(&*random()?)))
}

/// A point that a peer sent: its only encoding, or an error.
pub(super) fn decode(bytes: &[u8], what: &'static str, index: usize) -> Result<RistrettoPoint, OtError> {
    let point = CompressedRistretto::from_slice(bytes).ok().and_then(|point| point.decompress());
    point.ok_or(OtError::Point { what, index })
}

/// The encodings of the doubles of these points, which cost one inversion in all. Whether a secret is a point or its
/// double is all the same, as long as both sides take the same.
pub(super) fn compress(points: &[RistrettoPoint]) -> Zeroizing<Vec<[u8; POINT]>> {
    let encoded = RistrettoPoint::double_and_compress_batch(points);
    Zeroizing::new(encoded.into_iter().map(|point| point.to_bytes()).collect())
}

fn to_point(oracle: &Hasher, index: usize, slot: u8, other: &[u8]) -> RistrettoPoint {
    let mut bytes = Zeroizing::new([0; 64]);
    let mut hasher = oracle.clone();
    hasher.update(&(index as u64).to_le_bytes()).update(&[slot]).update(other);
    hasher.finalize_xof().fill(&mut *bytes);
    RistrettoPoint::from_uniform_bytes(&bytes)
}

fn to_key(oracle: &Hasher, index: usize, slot: u8, shown: &[u8], pair: &[u8], shared: &[u8]) -> u128 {
    let mut hasher = oracle.clone();
    hasher.update(&(index as u64).to_le_bytes()).update(&[slot]).update(shown).update(pair).update(shared);
    let key = first_block(&hasher);
    hasher.zeroize();
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use curve25519_dalek::traits::Identity;
    use std::io;

    /// A receiver whose reply is made beforehand.
    struct Prepared<'a> {
        reply: &'a [u8],
        shown: Vec<u8>,
    }

    impl Read for Prepared<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.reply.read(out)
        }
    }

    impl Write for Prepared<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.shown.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A receiver may know one key of each pair, also that of the neutral point. All points share one inversion, and its
    /// zero there must not make other keys known.
    #[test]
    fn a_neutral_point_spoils_no_other_key() {
        let session = [5; 32];
        let points = oracle(TO_POINT, &session);
        let point = || RistrettoPoint::from_uniform_bytes(&random().unwrap());
        let secrets: Vec<_> = (0..4).map(|_| random_scalar().unwrap()).collect();
        let mut reply = Vec::new();
        for (i, secret) in secrets.iter().enumerate() {
            let other = point().compress().to_bytes();
            let own = if i == 1 { RistrettoPoint::identity() } else { RistrettoPoint::mul_base(secret) };
            reply.extend((own - to_point(&points, i, 0, &other)).compress().as_bytes());
            reply.extend(other);
        }
        let mut channel = Prepared { reply: &reply, shown: Vec::new() };
        let pairs = send(&mut channel, &session, 4).unwrap();
        let keys = oracle(TO_KEY, &session);
        let messages = channel.shown.chunks_exact(POINT).zip(reply.chunks_exact(2 * POINT));
        for (i, (shown, pair)) in messages.enumerate() {
            let shared = if i == 1 {
                RistrettoPoint::identity()
            } else {
                *secrets[i] * decode(shown, "the sender's keys", i).unwrap()
            };
            let known = to_key(&keys, i, 0, shown, pair, &compress(&[shared])[0]);
            assert!(pairs[i][0] == known, "transfer {i}");
            for nothing in [[0; POINT], compress(&[RistrettoPoint::identity()])[0]] {
                assert!(pairs[i][1] != to_key(&keys, i, 1, shown, pair, &nothing), "transfer {i}");
            }
        }
    }
}
