//! AVX2: `pmaddwd` on 16-bit digits, two columns of eight rows an instruction. (`pmaddubsw` would take bytes
//! as they lie, but saturates.)

use std::arch::x86_64::*;

use blindcore_math::features::Avx2;

use crate::tiles::kernel::{Block, COLUMNS, Kernel, ROWS, TILE, digits16};

/// Digits of a query.
const DIGITS: usize = 2;

/// The kernel. Digits lie as `[query][group of four columns][columns 0 and 2, columns 1 and 3][digit]`, in
/// pairs of 16-bit digits, as the even and the odd bytes of a database word meet them.
pub(crate) fn kernel(token: Avx2) -> Kernel {
    Kernel {
        group: 16,
        pad: 1,
        digits: DIGITS,
        block_size: |queries| if queries == 1 { (4, 1 << 15) } else { (8, 2048) },
        pack,
        block: Box::new(move |block, sums| run(token, block, sums)),
    }
}

fn run(_: Avx2, block: &Block<'_>, sums: &mut [i32]) {
    // SAFETY: the token stands for AVX2.
    unsafe { strips(block, sums) }
}

fn pack(queries: &[&[u32]]) -> Vec<u8> {
    let columns = queries[0].len().next_multiple_of(COLUMNS);
    let mut out = Vec::with_capacity(queries.len() * columns * 4);
    for query in queries {
        for group in 0..columns / 4 {
            let digits: [[i16; 2]; 4] =
                std::array::from_fn(|column| digits16(query.get(4 * group + column).copied().unwrap_or(0)));
            for odd in 0..2 {
                for digit in 0..DIGITS {
                    out.extend(digits[odd][digit].to_le_bytes());
                    out.extend(digits[odd + 2][digit].to_le_bytes());
                }
            }
        }
    }
    out
}

#[target_feature(enable = "avx2")]
fn strips(block: &Block<'_>, sums: &mut [i32]) {
    let query_bytes = block.width * COLUMNS * 4;
    let lines = block.width * (TILE / 64);
    for (stripe, sums) in sums.chunks_exact_mut(block.queries * DIGITS * ROWS).enumerate() {
        let tiles = &block.tiles[stripe * block.stripe_bytes..][..lines * 64];
        for (digits, sums) in block.digits.chunks_exact(query_bytes).zip(sums.chunks_exact_mut(DIGITS * ROWS))
        {
            strip(tiles, digits, sums);
        }
    }
}

/// One stripe by one query.
///
/// In: any bytes and digits; a product pair is below 2 * 255 * 2^15 < 2^24. Out: sums exact modulo 2^32.
#[target_feature(enable = "avx2")]
fn strip(tiles: &[u8], digits: &[u8], sums: &mut [i32]) {
    let low_bytes = _mm256_set1_epi16(0x00ff);
    // [digit][half of the rows][even, odd columns]
    let mut registers = [[[_mm256_setzero_si256(); 2]; 2]; DIGITS];
    for (line, digits) in tiles.as_chunks::<64>().0.iter().zip(digits.as_chunks::<16>().0) {
        // SAFETY: both arrays are as long as what is read of them; a prefetch reads nothing.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().wrapping_add(2048).cast());
            let digit = |i: usize| _mm256_set1_epi32(digits.as_ptr().cast::<i32>().add(i).read_unaligned());
            let pairs = [[digit(0), digit(2)], [digit(1), digit(3)]];
            for half in 0..2 {
                let entries = _mm256_loadu_si256(line.as_ptr().add(32 * half).cast());
                let columns = [_mm256_and_si256(entries, low_bytes), _mm256_srli_epi16::<8>(entries)];
                for d in 0..DIGITS {
                    for odd in 0..2 {
                        let product = _mm256_madd_epi16(columns[odd], pairs[d][odd]);
                        let sum = &mut registers[d][half][odd];
                        *sum = _mm256_add_epi32(*sum, product);
                    }
                }
            }
        }
    }
    for d in 0..DIGITS {
        for half in 0..2 {
            let out = &mut sums[d * ROWS + half * 8..][..8];
            let both = _mm256_add_epi32(registers[d][half][0], registers[d][half][1]);
            // SAFETY: `out` is eight words, 32 bytes.
            unsafe {
                let sum = _mm256_add_epi32(_mm256_loadu_si256(out.as_ptr().cast()), both);
                _mm256_storeu_si256(out.as_mut_ptr().cast(), sum);
            }
        }
    }
}
