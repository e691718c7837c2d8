//! Proofs: what lets a client see that a slot is the one that was built.
//!
//! ```text
//!   slot  = what it is without proofs, then: chunk (4 bytes), place in it (1 byte), a sibling for each level
//!   chunk = 2^depth neighbouring slots of a group, under a binary tree; the last of a group may be shorter
//!   hint  = the scheme's own, then the root of each chunk
//! ```
//!
//! A hint's digest covers the roots, and a table's digest its hints': so the table's digest is the root of one tree
//! over every slot of an epoch. Clients fetch the tree's upper part once, with the hint, and its lower part with each
//! slot, so nothing more is asked for and a server can't see what a check came to.
//!
//! Nodes are BLAKE3 under a key for leaves and one for inner nodes, cut to [`NODE_BYTES`]. Each is bound to its place in
//! the table, so that a wrong slot has one node to hit: 2^128 tries. The writer of rows might make two of the same
//! node by 2^64 tries; in keyed tables not even that, for what a leaf begins with depends on a salt that is drawn when
//! the table is built.

use std::sync::LazyLock;

use blindcore_lookup::{Error, Geometry, Params, SchemeChoice};
use serde::{Deserialize, Serialize};

use crate::PartKind;

/// Bytes of a node.
pub const NODE_BYTES: usize = 16;
/// The most levels below a root.
pub const MAX_DEPTH: u8 = 8;
/// Bytes of a proof beside siblings: chunk and place.
const PLACE_BYTES: usize = 5;

/// What a node hashes to.
pub type Node = [u8; NODE_BYTES];

/// What stands where a group has no slot.
const NOTHING: Node = [0; NODE_BYTES];

/// Whether slots have proofs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ProofChoice {
    /// Where a slot is at most twice as long with one, and the scheme doesn't have a client pay in full for its length.
    #[default]
    Auto,
    /// Yes.
    With,
    /// No.
    Without,
}

/// The proofs of a part: how its slots hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proofs {
    /// Levels below the root of a chunk, 0 to [`MAX_DEPTH`].
    pub depth: u8,
    /// Chunks, at least 1.
    pub chunks: u32,
}

impl Proofs {
    /// Bytes of a slot that are its proof.
    #[must_use]
    pub fn slot_bytes(&self) -> usize {
        proof_bytes(self.depth)
    }

    /// Bytes of the roots, which follow the scheme's own hint.
    #[must_use]
    pub fn root_bytes(&self) -> u64 {
        NODE_BYTES as u64 * u64::from(self.chunks)
    }

    /// What is in a slot beside its proof, or nothing where it is not what the roots say. `id` is what the slot is found
    /// by: the order of its key's hash, or its index.
    #[must_use]
    pub fn open<'a>(&self, kind: PartKind, roots: &[u8], id: u128, slot: &'a [u8]) -> Option<&'a [u8]> {
        let (content, proof) = slot.split_at_checked(slot.len().checked_sub(self.slot_bytes())?)?;
        let (chunk, rest) = proof.split_first_chunk::<4>()?;
        let (place, siblings) = rest.split_first()?;
        let chunk = u32::from_le_bytes(*chunk);
        let root = roots.as_chunks::<NODE_BYTES>().0.get(chunk as usize)?;
        if usize::from(*place) >= 1 << self.depth {
            return None;
        }
        let mut node = leaf(kind, chunk, *place, id, content);
        let mut index = *place;
        for (level, sibling) in siblings.as_chunks::<NODE_BYTES>().0.iter().enumerate() {
            let (left, right) = if index & 1 == 0 { (&node, sibling) } else { (sibling, &node) };
            index >>= 1;
            node = inner(kind, chunk, level as u8, index, left, right);
        }
        (node == *root).then_some(content)
    }
}

/// Bytes of a slot that are its proof, at a depth.
#[must_use]
pub fn proof_bytes(depth: u8) -> usize {
    PLACE_BYTES + NODE_BYTES * usize::from(depth)
}

/// Levels that leave roots of no more than a quarter of a hint: what a client fetches once and what every slot carries
/// balance there.
#[must_use]
pub fn depth_for(rows: u64, hint_bytes: u64) -> u8 {
    (0..MAX_DEPTH).find(|depth| root_bytes_at(rows, *depth) <= hint_bytes / 4).unwrap_or(MAX_DEPTH)
}

fn root_bytes_at(rows: u64, depth: u8) -> u64 {
    NODE_BYTES as u64 * rows.div_ceil(1 << depth)
}

/// A hint of no more bytes is none to speak of: roots would be all that a client fetches before its first lookup.
const NO_HINT: u64 = 1 << 10;

/// Bytes of the roots of this many slots: exact where they lie one after another, and in keyed tables as they come to be
/// in the mean.
#[must_use]
pub fn planned_root_bytes(rows: u64, params: &Params, keyed: bool, depth: u8) -> u64 {
    let Geometry { groups, columns, .. } = params.geometry;
    let width = 1u64 << depth;
    let chunks = if keyed {
        (rows + groups as u64 * (width - 1) / 2).div_ceil(width)
    } else {
        let columns = columns as u64;
        rows / columns * columns.div_ceil(width) + (rows % columns).div_ceil(width)
    };
    NODE_BYTES as u64 * chunks
}

/// The parameters of a table as [`blindcore_lookup::plan`] gives them, its proofs included, and their depth if it has
/// any.
///
/// # Errors
/// As [`blindcore_lookup::plan`].
pub fn plan(
    rows: u64,
    record_bytes: usize,
    keyed: bool,
    scheme: SchemeChoice,
    proofs: ProofChoice,
) -> Result<(Params, Option<u8>), Error> {
    let plain = blindcore_lookup::plan(rows, record_bytes, keyed, scheme)?;
    // Without a hint to speak of, roots may be as long as a query, and a proof takes half as much as the record at most: what
    // lengthens a slot lengthens packing tables and queries too.
    let (hint, query) = (plain.hint_bytes(), plain.query_bytes() as u64);
    let depth = depth_for(rows, if hint > NO_HINT { hint } else { 4 * query });
    let bytes = proof_bytes(depth);
    let costly =
        hint <= NO_HINT && (root_bytes_at(rows, depth) > query || 2 * bytes > plain.geometry.record_bytes);
    let proved =
        |scheme| Ok((blindcore_lookup::plan(rows, record_bytes + bytes, keyed, scheme)?, Some(depth)));
    match proofs {
        ProofChoice::Without => Ok((plain, None)),
        ProofChoice::With => proved(scheme),
        ProofChoice::Auto if plain.longer_slot_costs() || bytes > plain.geometry.record_bytes || costly => {
            Ok((plain, None))
        }
        // The scheme may have no room for them.
        ProofChoice::Auto => proved(SchemeChoice::Only(plain.scheme)).or(Ok((plain, None))),
    }
}

/// Writes the proofs of a group's slots, each of `slots.len() / ids.len()` bytes with room for its proof at its end, and
/// gives the roots of their chunks, the first of which has this number.
///
/// # Panics
/// There are not as many slots as ids, or they have no room.
pub fn seal(kind: PartKind, depth: u8, first_chunk: u32, ids: &[u128], slots: &mut [u8]) -> Vec<Node> {
    let Some(slot_bytes) = slots.len().checked_div(ids.len()) else { return Vec::new() };
    assert_eq!(slots.len(), slot_bytes * ids.len());
    let content_bytes = slot_bytes - proof_bytes(depth);
    let width = 1usize << depth;
    let mut roots = Vec::with_capacity(ids.len().div_ceil(width));
    let mut level: Vec<Node> = Vec::with_capacity(width);
    for (i, (ids, slots)) in ids.chunks(width).zip(slots.chunks_mut(width * slot_bytes)).enumerate() {
        let chunk = first_chunk + i as u32;
        level.clear();
        for (place, (id, slot)) in ids.iter().zip(slots.chunks_mut(slot_bytes)).enumerate() {
            let (content, proof) = slot.split_at_mut(content_bytes);
            level.push(leaf(kind, chunk, place as u8, *id, content));
            proof[..4].copy_from_slice(&chunk.to_le_bytes());
            proof[4] = place as u8;
        }
        level.resize(width, NOTHING);
        for depth in 0..depth {
            let at = content_bytes + PLACE_BYTES + NODE_BYTES * usize::from(depth);
            for (place, slot) in slots.chunks_mut(slot_bytes).enumerate() {
                slot[at..at + NODE_BYTES].copy_from_slice(&level[(place >> depth) ^ 1]);
            }
            for pair in 0..level.len() / 2 {
                let (left, right) = (level[2 * pair], level[2 * pair + 1]);
                level[pair] = inner(kind, chunk, depth, pair as u8, &left, &right);
            }
            level.truncate(level.len() / 2);
        }
        roots.push(level[0]);
    }
    roots
}

static LEAF: LazyLock<[u8; 32]> = LazyLock::new(|| blake3::derive_key("blindcore slot proof leaf v1", &[]));
static INNER: LazyLock<[u8; 32]> = LazyLock::new(|| blake3::derive_key("blindcore slot proof node v1", &[]));

fn leaf(kind: PartKind, chunk: u32, place: u8, id: u128, content: &[u8]) -> Node {
    let mut at = [0u8; 22];
    at[..16].copy_from_slice(&id.to_le_bytes());
    at[16..20].copy_from_slice(&chunk.to_le_bytes());
    at[20] = place;
    at[21] = kind.to_proto() as u8;
    cut(blake3::Hasher::new_keyed(&LEAF).update(&at).update(content).finalize())
}

/// The node over two of `level`, counted from 0 at the leaves.
fn inner(kind: PartKind, chunk: u32, level: u8, index: u8, left: &Node, right: &Node) -> Node {
    let mut bytes = [0u8; 7 + 2 * NODE_BYTES];
    bytes[..4].copy_from_slice(&chunk.to_le_bytes());
    bytes[4] = level;
    bytes[5] = index;
    bytes[6] = kind.to_proto() as u8;
    bytes[7..7 + NODE_BYTES].copy_from_slice(left);
    bytes[7 + NODE_BYTES..].copy_from_slice(right);
    cut(blake3::keyed_hash(&INNER, &bytes))
}

fn cut(hash: blake3::Hash) -> Node {
    hash.as_bytes()[..NODE_BYTES].try_into().expect("a hash is longer")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KIND: PartKind = PartKind::Records;

    /// What slots are found by, and they.
    type Slots = Vec<(u128, Vec<u8>)>;

    #[test]
    fn no_table_is_refused_for_proofs_that_nobody_asked_for() {
        for bytes in [1, 700, 1000, 2000, 3000, 20_000, blindcore_lookup::MAX_RECORD_BYTES] {
            for rows in (1000..70_000).step_by(997) {
                for keyed in [false, true] {
                    let planned = |proofs| plan(rows, bytes, keyed, SchemeChoice::Auto, proofs);
                    let (without, with) = (planned(ProofChoice::Without), planned(ProofChoice::Auto));
                    assert_eq!(without.is_ok(), with.is_ok(), "{rows} of {bytes} bytes");
                }
            }
        }
    }

    /// Slots of 3 bytes and their proofs, in groups of these sizes, and the roots.
    fn sealed(depth: u8, groups: &[usize]) -> (Proofs, Vec<u8>, Slots) {
        let bytes = 3 + proof_bytes(depth);
        let (mut chunks, mut roots, mut all) = (0u32, Vec::new(), Vec::new());
        for (group, count) in groups.iter().enumerate() {
            let ids: Vec<u128> = (0..*count).map(|i| ((group as u128) << 64) + 7 * i as u128).collect();
            let mut slots = vec![0u8; count * bytes];
            for (i, slot) in slots.chunks_mut(bytes).enumerate() {
                slot[..3].copy_from_slice(&[group as u8, i as u8, 9]);
            }
            let new = seal(KIND, depth, chunks, &ids, &mut slots);
            chunks += new.len() as u32;
            roots.extend(new.concat());
            all.extend(ids.into_iter().zip(slots.chunks(bytes).map(<[u8]>::to_vec)));
        }
        (Proofs { depth, chunks }, roots, all)
    }

    #[test]
    fn every_slot_opens_as_itself_alone() {
        for depth in [0, 1, 3, MAX_DEPTH] {
            let (proofs, roots, slots) = sealed(depth, &[1, 0, 9, 16, 300]);
            assert_eq!(roots.len() as u64, proofs.root_bytes());
            for (id, slot) in &slots {
                assert_eq!(proofs.open(KIND, &roots, *id, slot), Some(&slot[..3]));
                assert_eq!(proofs.open(PartKind::Keys, &roots, *id, slot), None);
                assert_eq!(proofs.open(KIND, &roots, id + 1, slot), None);
                assert_eq!(proofs.open(KIND, &roots[NODE_BYTES..], *id, slot), None);
            }
            // Another slot in its place, proof and all.
            assert_eq!(proofs.open(KIND, &roots, slots[3].0, &slots[4].1), None);
        }
    }

    #[test]
    fn what_stands_for_nothing_is_no_slot() {
        let (proofs, roots, slots) = sealed(2, &[3]);
        let mut other = slots[2].1.clone();
        other[7] = 3;
        assert_eq!(proofs.open(KIND, &roots, slots[2].0, &other), None);
        for odd in [&[][..], &[0; 5], &vec![0; proofs.slot_bytes()]] {
            assert_eq!(proofs.open(KIND, &roots, 0, odd), None);
        }
        // A place outside the chunk.
        other[7] = 4;
        assert_eq!(proofs.open(KIND, &roots, slots[2].0, &other), None);
    }

    #[test]
    fn roots_are_a_quarter_of_a_hint() {
        for (rows, record_bytes, depth) in
            [(1, 100, 0), (1_000_000, 256, 0), (1_000_000, 8, 3), (100_000_000, 256, 4), (1 << 40, 1, 8)]
        {
            let hint = 4096.0 * (rows as f64 * record_bytes as f64).sqrt();
            assert_eq!(depth_for(rows, hint as u64), depth, "{rows} of {record_bytes}");
        }
    }

    #[test]
    fn long_slots_have_proofs_of_themselves() {
        let with = |rows, bytes, keyed, scheme, proofs| plan(rows, bytes, keyed, scheme, proofs).unwrap();
        let only = |name: &str| SchemeChoice::Only(name.parse().unwrap());
        let (simple, double, hintless) = (only("simple"), only("double"), only("hintless"));
        let (params, depth) = with(10_000, 256, true, simple, ProofChoice::Auto);
        assert_eq!((params.geometry.record_bytes, depth), (256 + 5 + 5, Some(0)));
        assert_eq!(
            with(1_000_000, 8, true, simple, ProofChoice::Auto).1,
            None,
            "it would be five times as long"
        );
        assert_eq!(with(1_000_000, 8, true, simple, ProofChoice::With).1, Some(3));
        assert_eq!(with(10_000, 256, true, simple, ProofChoice::Without).1, None);
        assert_eq!(with(10_000, 32, true, double, ProofChoice::Auto).1, None);
        let (params, depth) = with(10_000, 32, true, double, ProofChoice::With);
        assert!(params.scheme.name() == "double" && depth == Some(0));
        // Without a hint, roots are about as long as a query, or there are none unless they are asked for.
        let (params, depth) = with(10_000, 256, true, hintless, ProofChoice::Auto);
        let roots = planned_root_bytes(10_000, &params, true, depth.unwrap());
        assert!(roots <= params.query_bytes() as u64 && 4 * roots >= params.query_bytes() as u64, "{roots}");
        assert_eq!(with(10_000_000, 256, true, hintless, ProofChoice::Auto).1, None);
        assert_eq!(with(10_000, 64, true, hintless, ProofChoice::Auto).1, None);
        assert_eq!(with(10_000_000, 256, true, hintless, ProofChoice::With).1, Some(MAX_DEPTH));
        // The longest record there can be, and what a table of changes puts before it.
        let longest = blindcore_lookup::MAX_RECORD_BYTES + 1;
        assert_eq!(with(1_000_000, longest, true, simple, ProofChoice::Auto).1, Some(0));
    }

    /// The tree as it was first built.
    #[test]
    fn golden_roots() {
        let (_, roots, slots) = sealed(2, &[3, 5]);
        let digest = blake3::hash(&[roots, slots.into_iter().flat_map(|(_, s)| s).collect()].concat());
        assert_eq!(
            digest.to_hex().as_str(),
            "a06b159826ec6f6140ff5cc7c6d681007cc4e5f60db27bb0eaad9e420a84d5d9"
        );
    }

    proptest! {
        #[test]
        fn any_bit_that_is_flipped_is_noticed(
            depth in 0..5u8,
            groups in proptest::collection::vec(1..40usize, 1..4),
            which in any::<prop::sample::Index>(),
            bit in any::<prop::sample::Index>(),
        ) {
            let (proofs, roots, slots) = sealed(depth, &groups);
            let (id, slot) = &slots[which.index(slots.len())];
            let mut flipped = slot.clone();
            let at = bit.index(8 * slot.len());
            flipped[at / 8] ^= 1 << (at % 8);
            prop_assert_eq!(proofs.open(KIND, &roots, *id, &flipped), None);
            let mut flipped = roots.clone();
            let chunk = u32::from_le_bytes(slot[3..7].try_into().unwrap()) as usize;
            let at = bit.index(8 * NODE_BYTES);
            flipped[chunk * NODE_BYTES + at / 8] ^= 1 << (at % 8);
            prop_assert_eq!(proofs.open(KIND, &flipped, *id, slot), None);
            let at = bit.index(128);
            prop_assert_eq!(proofs.open(KIND, &roots, id ^ (1 << at), slot), None);
        }

        #[test]
        fn any_bytes_are_refused(
            depth in 0..=MAX_DEPTH,
            slot in proptest::collection::vec(any::<u8>(), 0..200),
            roots in proptest::collection::vec(any::<u8>(), 0..100),
            id in any::<u128>(),
        ) {
            let proofs = Proofs { depth, chunks: 3 };
            prop_assert_eq!(proofs.open(KIND, &roots, id, &slot), None);
        }
    }
}
