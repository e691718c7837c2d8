//! The hash of labels, and choices without a branch.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use zeroize::{Zeroize, Zeroizing};

use super::Label;

/// `label` where the lowest bit of `bit` is 1, and 0 where it is not; without a branch.
pub(super) fn when(bit: &Label, label: Label) -> Label {
    (bit & 1).wrapping_neg() & label
}

/// TMMO: `pi(pi(x) ^ t) ^ pi(x)` of every `(x, t)`; blocks are little-endian labels.
pub(super) fn hash(key: &[u8; 16], inputs: impl IntoIterator<Item = (Label, Label)>) -> Vec<Label> {
    let pi = Aes128::new(&Array(*key));
    let (mut blocks, tweaks): (Vec<_>, Vec<_>) =
        inputs.into_iter().map(|(x, t)| (Array(x.to_le_bytes()), t)).unzip();
    pi.encrypt_blocks(&mut blocks);
    // Knowing these is knowing the labels: the permutation's key is public.
    let inner: Vec<Label> = blocks.iter().map(|b| Label::from_le_bytes(b.0)).collect();
    let inner = Zeroizing::new(inner);
    for (block, (inner, tweak)) in blocks.iter_mut().zip(inner.iter().zip(tweaks)) {
        *block = Array((inner ^ tweak).to_le_bytes());
    }
    pi.encrypt_blocks(&mut blocks);
    let hashes = blocks.iter().zip(&*inner).map(|(b, inner)| Label::from_le_bytes(b.0) ^ inner).collect();
    blocks.iter_mut().for_each(|block| block.0.zeroize());
    hashes
}
