//! AVX-512 for windows: `vpmadd52luq` and `vpmadd52huq`, sums in registers from first to last.

use std::arch::x86_64::*;

use blindcore_accel::Word;
use blindcore_accel::contract::Window;
use blindcore_math::Modulus;
use blindcore_math::features::Ifma;

use super::rows::{LANES, LIMB, load, reduction};
use crate::rows::kernel::Reduce;
use crate::windows::kernel::{Kernel, Tile};

/// Registers of a tile's sums.
const REGISTERS: usize = Window::LANES / LANES;
/// Queries at once: 3 by 4 registers by two accumulators are 24 registers.
const GATHER: usize = 3;
/// Each product adds less than 2^52 to an accumulator of 64 bits.
const DEPTH: usize = 1 << (64 - LIMB);

/// The kernel for a prime below 2^51 and words of 32, 48 or 64 bits; there is none for others.
pub(crate) fn kernel(token: Ifma, modulus: Modulus, word: Word) -> Option<Kernel> {
    if !matches!(word, Word::U32 | Word::U48 | Word::U64) {
        return None;
    }
    let reduce = reduction(token, modulus, DEPTH)?;
    let tile = Box::new(move |tile: &Tile<'_>, sums: &mut [u64]| run(token, &reduce, tile, sums));
    Some(Kernel { gather: GATHER, depth: DEPTH, tile })
}

fn run(_: Ifma, reduce: &Reduce, tile: &Tile<'_>, sums: &mut [u64]) {
    tile.check(sums);
    // SAFETY: the token stands for these features.
    unsafe {
        match tile.word {
            Word::U32 => queries::<4>(reduce, tile, sums),
            Word::U48 => queries::<6>(reduce, tile, sums),
            _ => queries::<8>(reduce, tile, sums),
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma")]
fn queries<const BYTES: usize>(reduce: &Reduce, tile: &Tile<'_>, sums: &mut [u64]) {
    match tile.queries.len() {
        1 => lanes::<BYTES, 1>(reduce, tile, sums),
        2 => lanes::<BYTES, 2>(reduce, tile, sums),
        _ => lanes::<BYTES, 3>(reduce, tile, sums),
    }
}

/// In: residues below 2^51, at most [`DEPTH`] windows, a tile that was checked. Out: residues.
/// Cost: for eight words one load, and for each query a load and two `vpmadd52`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma")]
fn lanes<const BYTES: usize, const QUERIES: usize>(reduce: &Reduce, tile: &Tile<'_>, sums: &mut [u64]) {
    /// How far ahead the database is fetched.
    const AHEAD: usize = 4096;
    assert!(tile.word.bytes() == BYTES && tile.queries.len() == QUERIES && tile.depth <= DEPTH);
    let queries: [&[u64]; QUERIES] = tile.queries.try_into().expect("as asserted");
    let mut low = [[_mm512_setzero_si512(); REGISTERS]; QUERIES];
    let mut high = low;
    for j in 0..tile.depth {
        let at = j * Window::LANES * BYTES;
        for line in 0..(Window::LANES * BYTES).div_ceil(64) {
            // Fetching ahead may reach past the end, which is no access.
            _mm_prefetch::<_MM_HINT_T0>(tile.words.as_ptr().wrapping_add(at + AHEAD + 64 * line).cast());
        }
        for r in 0..REGISTERS {
            // SAFETY: the tile was checked: its words hold `depth` windows of 32, and each query reaches 32 words past the
            // start of the last window.
            let words = unsafe { load::<BYTES>(tile.words.as_ptr().add(at + r * LANES * BYTES)) };
            for q in 0..QUERIES {
                // SAFETY: as above.
                let query =
                    unsafe { _mm512_loadu_si512(queries[q].as_ptr().add(j * tile.step + r * LANES).cast()) };
                low[q][r] = _mm512_madd52lo_epu64(low[q][r], words, query);
                high[q][r] = _mm512_madd52hi_epu64(high[q][r], words, query);
            }
        }
    }
    let half = _mm512_set1_epi64(0xffff_ffff);
    for q in 0..QUERIES {
        // [low, high][lower, upper half][lane]
        let mut halves = [[0u64; Window::LANES]; 4];
        for r in 0..REGISTERS {
            for (i, register) in [low[q][r], high[q][r]].into_iter().enumerate() {
                let parts = [_mm512_and_si512(register, half), _mm512_srli_epi64::<32>(register)];
                for (part, halves) in parts.into_iter().zip(&mut halves[2 * i..]) {
                    // SAFETY: eight words from 8 r on, of 32.
                    unsafe { _mm512_storeu_si512(halves.as_mut_ptr().add(r * LANES).cast(), part) };
                }
            }
        }
        reduce(halves.as_flattened(), &mut sums[q * Window::LANES..][..Window::LANES]);
    }
}
