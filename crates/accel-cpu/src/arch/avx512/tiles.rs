//! AVX-512: `vpdpbusd` on byte digits, four columns of 16 rows an instruction.

use std::arch::x86_64::*;

use blindcore_math::features::Vnni;

use crate::tiles::kernel::{Block, COLUMNS, Kernel, ROWS, TILE, digits8};

/// Digits of a query.
const DIGITS: usize = 4;
/// Queries that share one pass through the registers.
const PAIR: usize = 2;
/// How far ahead of the multiplications lines are fetched, in bytes of all stripes that are read side by side, when one or two
/// queries stream the database: decision 3 has what was tried.
pub(super) const AHEAD: usize = 4096;

/// The kernel. Digits lie as `[pair of queries][group of four columns][query][digit][column]`; a pair may be
/// one query alone.
pub(crate) fn kernel(token: Vnni) -> Kernel {
    Kernel {
        group: 16,
        pad: 1,
        digits: DIGITS,
        // Alone, a query streams four whole stripes side by side, its digits in the L2.
        // Together, two stripes of 8 KiB stay in the L1 beside the digits of a pair while the next two are fetched;
        // sixteen queries' digits (32 KiB) and sums (256 KiB) in the L2, for 64 stripes.
        block_size: |queries| if queries <= PAIR { (4, 1 << 16) } else { (64, 512) },
        pack,
        block: Box::new(move |block, sums| run(token, block, sums)),
    }
}

fn run(_: Vnni, block: &Block<'_>, sums: &mut [i32]) {
    // SAFETY: the token stands for these features.
    unsafe { strips(block, sums) }
}

fn pack(queries: &[&[u32]]) -> Vec<u8> {
    let columns = queries[0].len().next_multiple_of(COLUMNS);
    let mut out = Vec::with_capacity(queries.len() * columns * DIGITS);
    for pair in queries.chunks(PAIR) {
        for group in 0..columns / 4 {
            for query in pair {
                let digits: [[u8; 4]; 4] = std::array::from_fn(|column| {
                    digits8(query.get(4 * group + column).copied().unwrap_or(0))
                });
                for digit in 0..DIGITS {
                    out.extend(digits.map(|d| d[digit]));
                }
            }
        }
    }
    out
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn strips(block: &Block<'_>, sums: &mut [i32]) {
    let limbs = block.queries * DIGITS;
    let pair_bytes = PAIR * DIGITS * block.width * COLUMNS;
    let pairs = block.queries.div_ceil(PAIR);
    let mut stripe = 0;
    while stripe < block.stripes {
        let tiles = &block.tiles[stripe * block.stripe_bytes..];
        // What comes after these stripes: the next two, or the next block's first.
        let next = match block.stripes - stripe {
            3.. => tiles.as_ptr().wrapping_add(2 * block.stripe_bytes),
            _ => block.tiles.as_ptr().wrapping_add(block.width * TILE),
        };
        let taken = match (block.stripes - stripe, block.queries) {
            (4.., 1) => 4,
            (2.., 2..) => 2,
            _ => 1,
        };
        for pair in 0..pairs {
            // If the first pair fetched all of it, it would wait for memory and the others would not: each
            // fetches its part.
            let part = 64_usize.div_ceil(pairs);
            let fetch = match pairs {
                1 => Fetch { from: tiles.as_ptr().wrapping_add(AHEAD / taken), a_line: 64 },
                _ => Fetch { from: next.wrapping_add(pair * part * block.width * (TILE / 64)), a_line: part },
            };
            let digits = &block.digits[pair * pair_bytes..];
            let both = block.queries - pair * PAIR >= PAIR;
            let sums = &mut sums[(stripe * limbs + pair * PAIR * DIGITS) * ROWS..];
            match (taken, both) {
                (1, true) => strip::<1, 8>(tiles, block, digits, sums, limbs, &fetch),
                (_, true) => strip::<2, 8>(tiles, block, digits, sums, limbs, &fetch),
                (4, false) => strip::<4, 4>(tiles, block, digits, sums, limbs, &fetch),
                (2, false) => strip::<2, 4>(tiles, block, digits, sums, limbs, &fetch),
                (_, false) => strip::<1, 4>(tiles, block, digits, sums, limbs, &fetch),
            }
        }
        stripe += taken;
    }
}

/// What a strip fetches while it multiplies, of each of its stripes: never read, so it may lie past an end.
struct Fetch {
    from: *const u8,
    /// Bytes further with each line.
    a_line: usize,
}

/// `STRIPES` stripes by `LIMBS` digits in registers.
///
/// In: any bytes and digits. Out: sums exact modulo 2^32.
/// Cost: a line of the database takes `LIMBS` `vpdpbusd`, `LIMBS` / `STRIPES` broadcasts and one load.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn strip<const STRIPES: usize, const LIMBS: usize>(
    tiles: &[u8],
    block: &Block<'_>,
    digits: &[u8],
    sums: &mut [i32],
    limbs: usize,
    fetch: &Fetch,
) {
    let lines = block.width * (TILE / 64);
    assert!(tiles.len() >= (STRIPES - 1) * block.stripe_bytes + lines * 64);
    assert!(digits.len() >= lines * LIMBS * 4);
    assert!(sums.len() >= ((STRIPES - 1) * limbs + LIMBS) * ROWS);
    let mut registers = [[_mm512_setzero_si512(); LIMBS]; STRIPES];
    for line in 0..lines {
        // SAFETY: `line` is below `lines`, which the assertions above hold within both slices; a prefetch
        // past an end reads nothing.
        unsafe {
            let entries: [__m512i; STRIPES] = std::array::from_fn(|s| {
                let at = tiles.as_ptr().add(s * block.stripe_bytes + line * 64);
                let soon = fetch.from.wrapping_add(s * block.stripe_bytes + line * fetch.a_line);
                _mm_prefetch::<_MM_HINT_T0>(soon.cast());
                _mm512_loadu_si512(at.cast())
            });
            for limb in 0..LIMBS {
                let at = digits.as_ptr().add((line * LIMBS + limb) * 4).cast::<i32>();
                let digit = _mm512_set1_epi32(at.read_unaligned());
                for s in 0..STRIPES {
                    registers[s][limb] = _mm512_dpbusd_epi32(registers[s][limb], entries[s], digit);
                }
            }
        }
    }
    for s in 0..STRIPES {
        for limb in 0..LIMBS {
            let out = &mut sums[(s * limbs + limb) * ROWS..][..ROWS];
            // SAFETY: `out` is 16 words, 64 bytes.
            unsafe {
                let sum = _mm512_add_epi32(_mm512_loadu_si512(out.as_ptr().cast()), registers[s][limb]);
                _mm512_storeu_si512(out.as_mut_ptr().cast(), sum);
            }
        }
    }
}
