//! Trees of seeds: one side knows all leaves, the other all but one.
//!
//! Goldreich, Goldwasser and Micali's tree, handed over by a base transfer a level, with Roy's check (2022).
//! A tree of `d` levels has `2^d` leaves. Bit `l` of a leaf's number is the side taken at level `l`. The side that
//! receives knows every leaf but number `alpha`, and numbers what it knows relative to that: its leaf `y` is leaf
//! `y ^ alpha`, so that `0` is the one unknown to it and no address depends on `alpha`.

use blake3::{Hash, Hasher};
use subtle::{ConditionallySelectable, ConstantTimeEq};
use zeroize::{Zeroize, Zeroizing};

use super::{OtError, Session, oracle};

/// Leaves of one tree.
pub(super) type Leaves = Zeroizing<Vec<u128>>;

/// How many levels the trees have over 128 base transfers: `depth` each, and what is left for the last.
pub(super) fn depths(depth: u8) -> impl Iterator<Item = usize> {
    (0..128).step_by(depth.into()).map(move |first| usize::from(depth).min(128 - first))
}

/// Bytes that hand over trees of these levels.
pub(super) fn message_len(depth: u8, checked: bool) -> usize {
    let corrections: usize = depths(depth).map(|levels| 32 * (levels - 1)).sum();
    corrections + if checked { 32 * depths(depth).count() + 32 } else { 0 }
}

/// The side that knows all: trees out of the pairs of 128 base transfers, and what to send. With `checked`, a receiver
/// notices trees that don't hang together, but for those whose flaw it can't see for its `alpha`.
pub(super) fn plant(
    session: &Session,
    pairs: &[[u128; 2]],
    depth: u8,
    checked: bool,
) -> (Vec<Leaves>, Vec<u8>) {
    let hashes = Hashes::new(session);
    let mut message = Vec::with_capacity(message_len(depth, checked));
    let mut trees = Vec::new();
    let mut rest = pairs;
    for levels in depths(depth) {
        let (pairs, after) = rest.split_at(levels);
        rest = after;
        let mut nodes = Zeroizing::new(pairs[0].to_vec());
        for masks in &pairs[1..] {
            let mut children = Zeroizing::new(vec![0; 2 * nodes.len()]);
            let (zeros, ones) = children.split_at_mut(nodes.len());
            for ((node, zero), one) in nodes.iter().zip(&mut *zeros).zip(&mut *ones) {
                [*zero, *one] = hashes.expand(*node);
            }
            for (side, mask) in [zeros, ones].into_iter().zip(masks) {
                message.extend((sum(side) ^ mask).to_le_bytes());
            }
            nodes = children;
        }
        trees.push(nodes);
    }
    if checked {
        let mut digest = hashes.digest.clone();
        for leaves in &mut trees {
            let mut total = [0; 2];
            for leaf in leaves.iter_mut() {
                let (seed, witness) = hashes.finish(*leaf);
                *leaf = seed;
                digest.update(&bytes(&witness));
                total = xor(&total, &witness);
            }
            message.extend(bytes(&total));
        }
        message.extend(digest.finalize().as_bytes());
    }
    (trees, message)
}

/// The side that knows all leaves but one: trees of which leaf 0 is zero, and leaf `y` is the sender's leaf `y ^ alpha`,
/// with `alpha` the bits of `delta` that stand at the tree's levels.
///
/// `keys` are of base transfers with choice `!delta`.
///
/// # Errors
/// The check fails.
pub(super) fn gather(
    session: &Session,
    keys: &[u128],
    delta: u128,
    depth: u8,
    checked: bool,
    message: &[u8],
) -> Result<Vec<Leaves>, OtError> {
    let hashes = Hashes::new(session);
    let mut message = message.chunks_exact(16).map(|b| u128::from_le_bytes(b.try_into().expect("16 bytes")));
    let mut next = || message.next().expect("as long as message_len says");
    let mut trees = Vec::new();
    let mut first = 0;
    for levels in depths(depth) {
        let mut nodes = Zeroizing::new(vec![0, keys[first]]);
        for level in first + 1..first + levels {
            let bit = ((delta >> level & 1) as u8).into();
            let mut children = Zeroizing::new(vec![0; 2 * nodes.len()]);
            let (along, across) = children.split_at_mut(nodes.len());
            for y in 1..nodes.len() {
                let [mut zero, mut one] = hashes.expand(nodes[y]);
                u128::conditional_swap(&mut zero, &mut one, bit);
                (along[y], across[y]) = (zero, one);
            }
            // The sum over the side that the unknown leaf is not on gives the one node of it that is missing.
            let (zeros, ones) = (next(), next());
            across[0] = sum(across) ^ u128::conditional_select(&ones, &zeros, bit) ^ keys[level];
            nodes = children;
        }
        trees.push(nodes);
        first += levels;
    }
    if checked {
        let mut digest = hashes.digest.clone();
        let mut first = 0;
        for leaves in &mut trees {
            let mut witnesses = Zeroizing::new(vec![[0; 2]; leaves.len()]);
            let mut missing = [next(), next()];
            for (leaf, witness) in leaves.iter_mut().zip(&mut *witnesses).skip(1) {
                (*leaf, *witness) = hashes.finish(*leaf);
                missing = xor(&missing, witness);
            }
            witnesses[0] = missing;
            for level in 0..leaves.len().ilog2() as usize {
                let bit = ((delta >> (first + level) & 1) as u8).into();
                for square in witnesses.chunks_exact_mut(2 << level) {
                    let (zeros, ones) = square.split_at_mut(1 << level);
                    for (zero, one) in zeros.iter_mut().zip(ones) {
                        <[u128; 2]>::conditional_swap(zero, one, bit);
                    }
                }
            }
            first += leaves.len().ilog2() as usize;
            for witness in &*witnesses {
                digest.update(&bytes(witness));
            }
        }
        let theirs = bytes(&[next(), next()]);
        if !bool::from(digest.finalize().as_bytes().ct_eq(&theirs)) {
            return Err(OtError::Check { what: "the seeds" });
        }
    }
    Ok(trees)
}

struct Hashes {
    expand: Hasher,
    finish: Hasher,
    digest: Hasher,
}

impl Hashes {
    fn new(session: &Session) -> Self {
        let named = |purpose: &str| oracle(purpose, session);
        Self {
            expand: named("blindcore 2026 ot trees: expand"),
            finish: named("blindcore 2026 ot trees: finish"),
            digest: named("blindcore 2026 ot trees: digest"),
        }
    }

    /// A node's two children.
    fn expand(&self, node: u128) -> [u128; 2] {
        let mut hasher = self.expand.clone();
        let children = words(&hasher.update(&node.to_le_bytes()).finalize());
        hasher.zeroize();
        children
    }

    /// A leaf's seed, and 256 bits that a receiver can check it by.
    fn finish(&self, leaf: u128) -> (u128, [u128; 2]) {
        let mut hasher = self.finish.clone();
        hasher.update(&leaf.to_le_bytes());
        let mut out = Zeroizing::new([0; 48]);
        hasher.finalize_xof().fill(&mut *out);
        hasher.zeroize();
        let word = |i: usize| u128::from_le_bytes(out[16 * i..][..16].try_into().expect("16 bytes"));
        (word(0), [word(1), word(2)])
    }
}

fn sum(nodes: &[u128]) -> u128 {
    nodes.iter().fold(0, |sum, node| sum ^ node)
}

fn xor(a: &[u128; 2], b: &[u128; 2]) -> [u128; 2] {
    [a[0] ^ b[0], a[1] ^ b[1]]
}

fn bytes(words: &[u128; 2]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(&words[0].to_le_bytes());
    bytes[16..].copy_from_slice(&words[1].to_le_bytes());
    bytes
}

fn words(hash: &Hash) -> [u128; 2] {
    let (low, high) = hash.as_bytes().split_at(16);
    [low, high].map(|half| u128::from_le_bytes(half.try_into().expect("16 bytes")))
}
