//! AMX-INT8: `tdpbsud`, sixteen digits of queries by sixteen rows by 64 columns an instruction.

use std::arch::asm;

use super::Amx;
use crate::tiles::kernel::{Block, COLUMNS, Kernel, ROWS, TILE, digits8};

/// Digits of a query.
const DIGITS: usize = 4;
/// Queries whose digits fill a tile's sixteen rows.
const QUAD: usize = 4;
/// Words of an accumulator tile: 16 digits by 16 rows.
const SUMS: usize = 256;

/// The kernel. Digits lie as `[four queries][tile of columns][query][digit][column]`, missing queries zero.
pub(crate) fn kernel(token: Amx) -> Kernel {
    Kernel {
        group: 64,
        pad: QUAD,
        digits: DIGITS,
        // Sixteen queries' digits of a block are 64 KiB, a pair of stripes 32 KiB.
        block_size: |_| (16, 1024),
        pack,
        block: Box::new(move |block, sums| run(token, block, sums)),
    }
}

fn pack(queries: &[&[u32]]) -> Vec<u8> {
    let columns = queries[0].len().next_multiple_of(COLUMNS);
    let mut out = vec![0u8; queries.len().next_multiple_of(QUAD) * columns * DIGITS];
    for (quad, out) in queries.chunks(QUAD).zip(out.chunks_exact_mut(QUAD * DIGITS * columns)) {
        for (tile, out) in out.chunks_exact_mut(TILE).enumerate() {
            for (query, out) in quad.iter().zip(out.chunks_exact_mut(DIGITS * COLUMNS)) {
                let words = &query[tile * COLUMNS..query.len().min((tile + 1) * COLUMNS)];
                for (column, x) in words.iter().enumerate() {
                    for (digit, byte) in digits8(*x).into_iter().enumerate() {
                        out[digit * COLUMNS + column] = byte;
                    }
                }
            }
        }
    }
    out
}

/// Eight tiles of 16 rows of 64 bytes (Intel's manual, volume 1, table 18-1).
#[repr(C, align(64))]
struct TileConfig([u8; 64]);

impl TileConfig {
    const FULL: TileConfig = {
        let mut config = [0u8; 64];
        config[0] = 1; // palette
        let mut tile = 0;
        while tile < 8 {
            config[16 + 2 * tile] = 64; // bytes a row
            config[48 + tile] = 16; // rows
            tile += 1;
        }
        TileConfig(config)
    };
}

/// Two stripes by two quads of queries in four accumulators; an odd one out goes twice, its double to a place
/// that nobody reads.
fn run(_: Amx, block: &Block<'_>, sums: &mut [i32]) {
    let quads = block.queries.div_ceil(QUAD);
    assert!(block.width > 0 && block.digits.len() >= quads * block.width * TILE);
    assert!(block.tiles.len() >= (block.stripes - 1) * block.stripe_bytes + block.width * TILE);
    assert!(sums.len() >= block.stripes * quads * SUMS);
    let mut nowhere = [[0i32; SUMS]; 3];
    // SAFETY: the token stands for AMX-INT8 and the permission to use it; a valid configuration; released below, on the
    // same thread, with no way out between.
    unsafe { asm!("ldtilecfg [{}]", in(reg) &TileConfig::FULL, options(nostack, readonly)) };
    for stripe in (0..block.stripes).step_by(2) {
        let two_stripes = stripe + 1 < block.stripes;
        for quad in (0..quads).step_by(2) {
            let two_quads = quad + 1 < quads;
            // SAFETY: the assertions above hold every offset inside its slice; accumulators that don't exist
            // are `nowhere`'s.
            unsafe {
                let b0 = block.tiles.as_ptr().add(stripe * block.stripe_bytes);
                let b1 = if two_stripes { b0.add(block.stripe_bytes) } else { b0 };
                let a0 = block.digits.as_ptr().add(quad * block.width * TILE);
                let a1 = if two_quads { a0.add(block.width * TILE) } else { a0 };
                let s00 = sums.as_mut_ptr().add((stripe * quads + quad) * SUMS);
                let nowhere = nowhere.as_mut_ptr().cast::<i32>();
                let s01 = if two_stripes { s00.add(quads * SUMS) } else { nowhere };
                let s10 = if two_quads { s00.add(SUMS) } else { nowhere.add(SUMS) };
                let s11 = if two_stripes && two_quads {
                    s00.add((quads + 1) * SUMS)
                } else {
                    nowhere.add(2 * SUMS)
                };
                multiply([a0, a1], [b0, b1], [s00, s01, s10, s11], block.width);
            }
        }
    }
    // SAFETY: as above.
    unsafe { asm!("tilerelease", options(nostack, nomem)) };
}

/// Adds `width` tiles of two quads times two stripes to four accumulators, in the order quad 0 by stripe 0,
/// 0 by 1, 1 by 0, 1 by 1.
///
/// # Safety
/// Tiles are configured; each pointer has `width` tiles, each accumulator one, before it.
#[inline(always)]
unsafe fn multiply(a: [*const u8; 2], b: [*const u8; 2], sums: [*mut i32; 4], width: usize) {
    const _: () = assert!(ROWS * 4 == 64 && COLUMNS == 64);
    // SAFETY: promised by the caller.
    unsafe {
        asm!(
            "tileloadd tmm0, [{s00} + {line}]",
            "tileloadd tmm1, [{s01} + {line}]",
            "tileloadd tmm2, [{s10} + {line}]",
            "tileloadd tmm3, [{s11} + {line}]",
            "2:",
            "tileloadd tmm6, [{b0} + {line}]",
            "tileloadd tmm4, [{a0} + {line}]",
            "tdpbsud tmm0, tmm4, tmm6",
            "tileloadd tmm7, [{b1} + {line}]",
            "tdpbsud tmm1, tmm4, tmm7",
            "tileloadd tmm5, [{a1} + {line}]",
            "tdpbsud tmm2, tmm5, tmm6",
            "tdpbsud tmm3, tmm5, tmm7",
            "add {a0}, 1024",
            "add {a1}, 1024",
            "add {b0}, 1024",
            "add {b1}, 1024",
            "dec {n}",
            "jnz 2b",
            "tilestored [{s00} + {line}], tmm0",
            "tilestored [{s01} + {line}], tmm1",
            "tilestored [{s10} + {line}], tmm2",
            "tilestored [{s11} + {line}], tmm3",
            a0 = inout(reg) a[0] => _,
            a1 = inout(reg) a[1] => _,
            b0 = inout(reg) b[0] => _,
            b1 = inout(reg) b[1] => _,
            s00 = in(reg) sums[0],
            s01 = in(reg) sums[1],
            s10 = in(reg) sums[2],
            s11 = in(reg) sums[3],
            n = inout(reg) width => _,
            line = in(reg) 64usize,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}
