//! How the evaluator reads its outputs: a row for each label of an output bit, which only that label opens.
//!
//! The colour of a label says which of two rows is its own. A row is a hash of the label and of the value that it stands
//! for, so a row that was changed on the way opens nothing, and which value a label has can't be turned round by
//! turning a bit round. A digest of the outputs would not do: where the evaluator alone learns them it would tell the
//! garbler about them.

use blindcore_accel::garble::Label;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::SessionError;

/// Bytes of the two rows of an output bit.
pub(super) const ROWS: usize = 16;

/// Keeps these hashes apart from all others of labels.
const KEY: &[u8; 32] = b"blindcore garble: rows of output";

fn tag(label: Label, place: usize, value: bool) -> u64 {
    let mut text = Zeroizing::new([0; 25]);
    text[..16].copy_from_slice(&label.to_le_bytes());
    text[16..24].copy_from_slice(&(place as u64).to_le_bytes());
    text[24] = u8::from(value);
    let hash = blake3::keyed_hash(KEY, &*text);
    u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("eight bytes"))
}

/// The second if the lowest bit of the label is set, else the first.
fn by_color(label: Label, rows: [u64; 2]) -> u64 {
    rows[0] ^ ((rows[0] ^ rows[1]) & (label as u64 & 1).wrapping_neg())
}

/// The rows of output bits, whose labels of 0 are given.
pub(super) fn rows(zeros: &[Label], offset: Label) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(zeros.len() * ROWS);
    for (place, zero) in zeros.iter().enumerate() {
        let [of_0, of_1] = [tag(*zero, place, false), tag(zero ^ offset, place, true)];
        for row in [by_color(*zero, [of_0, of_1]), by_color(*zero, [of_1, of_0])] {
            bytes.extend_from_slice(&row.to_le_bytes());
        }
    }
    bytes
}

/// The outputs' bits, of the labels that the evaluator has.
pub(super) fn open(active: &[Label], rows: &[u8]) -> Result<Vec<bool>, SessionError> {
    let mut bits = Vec::with_capacity(active.len());
    let mut opened = Vec::with_capacity(active.len());
    for (place, (label, rows)) in active.iter().zip(rows.as_chunks::<ROWS>().0).enumerate() {
        let halves = rows.as_chunks::<8>().0;
        let row = by_color(*label, [u64::from_le_bytes(halves[0]), u64::from_le_bytes(halves[1])]);
        let is = [false, true].map(|value| row.ct_eq(&tag(*label, place, value)));
        bits.push(bool::from(is[1]));
        opened.push(bool::from(is[0] ^ is[1]));
    }
    match opened.iter().position(|opened| !opened) {
        Some(bit) => Err(SessionError::Row { bit }),
        None => Ok(bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_open_by_their_label_alone() {
        let (zeros, offset) = ([2, 7, 1 << 100, 0], 0x1234_5678_9abc_def1);
        let bytes = rows(&zeros, offset);
        for values in 0..16u32 {
            let bits: Vec<bool> = (0..4).map(|i| values >> i & 1 == 1).collect();
            let active: Vec<Label> =
                zeros.iter().zip(&bits).map(|(zero, bit)| if *bit { zero ^ offset } else { *zero }).collect();
            assert_eq!(open(&active, &bytes).unwrap(), bits);
            // Any bit of a row that is turned round, rows in each other's place, and another bit's rows.
            for bit in 0..8 * bytes.len() {
                let mut changed = bytes.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                match open(&active, &changed) {
                    Ok(same) => assert_eq!(same, bits, "{bit}"),
                    Err(error) => assert!(matches!(error, SessionError::Row { bit: b } if b == bit / 128)),
                }
            }
            let mut turned = bytes.clone();
            turned[..16].rotate_left(8);
            assert!(matches!(open(&active, &turned), Err(SessionError::Row { bit: 0 })));
            let mut moved = bytes.clone();
            moved.rotate_left(16);
            assert!(matches!(open(&active, &moved), Err(SessionError::Row { bit: 0 })));
        }
    }
}
