//! Checksums of a matrix's tiles: a reader of a few cells sees that they are those that were written, where
//! the checksum of a whole shard would have it read all of it.
//!
//! They are CRC-32s (IEEE 802.3) of 1024 bytes each, little-endian, in the order of the tiles: up to three flipped bits of a
//! tile are always found, whatever else with a chance of 2^-32 to be missed. A writer of the shards can write these
//! too: they are against disks, not against people.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use crate::section::HEADER;

/// Bytes that have a checksum together; those of a file are counted from its start.
pub(crate) const TILE: usize = 1024;
/// Bytes of a checksum.
const SUM: usize = 4;

/// Bytes of the checksums of this many bytes of tiles.
pub(crate) const fn bytes(of: u64) -> u64 {
    of / TILE as u64 * SUM as u64
}

/// The checksums of tiles of 1024 bytes, the last of which may be shorter, as [`Checksum::Tiles`](crate::Checksum::Tiles) has them.
pub fn tile_sums(tiles: &[u8]) -> impl Iterator<Item = u8> {
    tiles.chunks(TILE).flat_map(sum)
}

/// Whether these are the tiles from `first` on whose checksums are among these.
pub(crate) fn fit(sums: &[u8], first: usize, tiles: &[u8]) -> bool {
    let sums = sums.as_chunks::<SUM>().0.get(first..).unwrap_or_default();
    tiles.len() <= sums.len() * TILE && tiles.chunks(TILE).zip(sums).all(|(tile, s)| *s == sum(tile))
}

/// Reads the checksums of files of this many bytes of tiles each, which follow one another; also gives their BLAKE3.
pub(crate) fn read(
    file: &mut File,
    files: impl Iterator<Item = u64>,
) -> io::Result<(Vec<Vec<u8>>, [u8; 32])> {
    file.seek(SeekFrom::Start(HEADER as u64))?;
    let mut hasher = blake3::Hasher::new();
    let one = |tiles: u64| {
        let mut sums = vec![0; bytes(tiles) as usize];
        file.read_exact(&mut sums)?;
        hasher.update(&sums);
        Ok(sums)
    };
    let sums = files.map(one).collect::<io::Result<_>>()?;
    Ok((sums, hasher.finalize().into()))
}

fn sum(tile: &[u8]) -> [u8; SUM] {
    crc32fast::hash(tile).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flipped_bit_is_found_in_its_tile_alone() {
        let tiles: Vec<u8> = (0..3 * TILE).map(|i| (i * i / 7) as u8).collect();
        let sums: Vec<u8> = tile_sums(&tiles).collect();
        assert_eq!(sums.len() as u64, bytes(tiles.len() as u64));
        for bit in (0..8 * tiles.len()).step_by(5) {
            let mut flipped = tiles.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            for (number, tile) in flipped.chunks(TILE).enumerate() {
                assert_eq!(fit(&sums, number, tile), number != bit / 8 / TILE, "bit {bit}, tile {number}");
            }
            assert!(!fit(&sums, 0, &flipped));
        }
        assert!(fit(&sums, 0, &tiles) && fit(&sums, 1, &tiles[TILE..]));
        assert!(!fit(&sums, 1, &tiles[..TILE]));
        for first in [1, 4] {
            assert!(!fit(&sums, first, &tiles), "there are no such tiles");
        }
    }

    /// The check value of CRC-32/ISO-HDLC in the catalogue of parametrised CRC algorithms.
    #[test]
    fn known_answer() {
        assert_eq!(sum(b"123456789"), 0xcbf4_3926_u32.to_le_bytes());
    }
}
