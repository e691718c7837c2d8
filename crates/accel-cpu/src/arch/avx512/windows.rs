//! AVX-512 for windows: `vpmadd52luq` and `vpmadd52huq`, sums in registers.

use std::arch::x86_64::*;

use blindcore_accel::Word;
use blindcore_accel::contract::Window;
use blindcore_math::Modulus;
use blindcore_math::features::Ifma;

use super::rows::{LANES, LIMB, REGISTERS, Spread, load, reduction};
use crate::rows::kernel::{Reduce, UNIT};
use crate::windows::kernel::{Kernel, Tile};

const _: () = assert!(UNIT == Window::LANES, "a unit is a tile's width");

/// Queries at once, or tiles at once: 3 by 4 registers by two accumulators are 24 registers.
const GATHER: usize = 3;
/// Each product adds less than 2^52 to an accumulator of 64 bits.
const DEPTH: usize = 1 << (64 - LIMB);
/// How far ahead the database is fetched for a single group of queries, in bytes of a tile, to the second level's cache: decision 43
/// has what was tried.
const AHEAD: usize = 1280;
/// For several groups, windows that all of them see before the next, for each group. While a group computes, it fetches its
/// part of the next chunk, some twelve lines.
const CHUNK: usize = 4;
/// At least.
const LEAST_CHUNK: usize = 8;
/// At most: 12 KiB of six-byte words, so that they stay in the first level's cache.
const MOST_CHUNK: usize = 64;

/// A query's sums: low and high 52 bits of the products.
type Sums = [[__m512i; REGISTERS]; 2];
// SAFETY: of zeros any register can be made.
const EMPTY: Sums = unsafe { std::mem::zeroed() };

/// The kernel for a prime below 2^51 and words of 32 to 64 bits; there is none for others.
pub(crate) fn kernel(token: Ifma, modulus: Modulus, word: Word) -> Option<Kernel> {
    if !matches!(word, Word::U32 | Word::U40 | Word::U48 | Word::U64) {
        return None;
    }
    let reduce = reduction(token, modulus, DEPTH)?;
    let tile = Box::new(move |tile: &Tile<'_>, sums: &mut [u64]| run(token, &reduce, tile, sums));
    Some(Kernel { tiles: GATHER, depth: DEPTH, tile })
}

fn run(_: Ifma, reduce: &Reduce, tile: &Tile<'_>, sums: &mut [u64]) {
    tile.check(sums);
    // SAFETY: the token stands for these features.
    unsafe {
        match tile.word {
            Word::U32 => lanes::<4>(reduce, tile, sums),
            Word::U40 => lanes::<5>(reduce, tile, sums),
            Word::U48 => lanes::<6>(reduce, tile, sums),
            _ => lanes::<8>(reduce, tile, sums),
        }
    }
}

/// Tiles for one query, or a tile for several, which stays in the first level's cache, chunk after chunk, while groups of queries see it.
///
/// In: residues below 2^51, at most [`DEPTH`] windows, a tile that was checked. Out: residues.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi")]
fn lanes<const BYTES: usize>(reduce: &Reduce, tile: &Tile<'_>, out: &mut [u64]) {
    assert!(tile.word.bytes() == BYTES && tile.depth <= DEPTH);
    if let [query] = tile.queries {
        let mut sums = [EMPTY; GATHER];
        let sums = &mut sums[..tile.words.len()];
        match *tile.words {
            [a] => products::<BYTES, 1, 1, true>([a], [query], tile.step, sums),
            [a, b] => products::<BYTES, 2, 1, true>([a, b], [query], tile.step, sums),
            [a, b, c] => products::<BYTES, 3, 1, true>([a, b, c], [query], tile.step, sums),
            _ => unreachable!("a kernel is given no more tiles than it takes"),
        }
        return finish(reduce, sums, out);
    }
    let (width, parts) = (Window::LANES * BYTES, tile.queries.len());
    let all = tile.words[0];
    let groups = parts.div_ceil(GATHER);
    let chunk = if groups == 1 { tile.depth } else { (CHUNK * groups).clamp(LEAST_CHUNK, MOST_CHUNK) };
    let mut sums = vec![EMPTY; parts];
    for first in (0..tile.depth).step_by(chunk) {
        let depth = chunk.min(tile.depth - first);
        let words = &all[first * width..][..depth * width];
        // What each group fetches of the next chunk.
        let lines = words.len().div_ceil(64).div_ceil(groups);
        for group in 0..groups {
            if groups > 1 {
                for line in group * lines..(group + 1) * lines {
                    // It may reach past the end: fetching ahead is no access.
                    let ahead = words.as_ptr().wrapping_add(words.len() + 64 * line);
                    _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
                }
            }
            // As equal as may be: four queries are two and two.
            let here = group * parts / groups..(group + 1) * parts / groups;
            let (queries, sums) = (&tile.queries[here.clone()], &mut sums[here]);
            let query = |i: usize| &queries[i][first * tile.step..];
            match (queries.len(), groups) {
                (2, 1) => products::<BYTES, 1, 2, true>([words], [0, 1].map(query), tile.step, sums),
                (_, 1) => products::<BYTES, 1, 3, true>([words], [0, 1, 2].map(query), tile.step, sums),
                (2, _) => products::<BYTES, 1, 2, false>([words], [0, 1].map(query), tile.step, sums),
                (_, _) => products::<BYTES, 1, 3, false>([words], [0, 1, 2].map(query), tile.step, sums),
            }
        }
    }
    finish(reduce, &sums, out);
}

/// Adds the products of some windows to the sums of a group of queries, or of tiles; `ALONE` ones fetch ahead as they go.
///
/// Cost: a load and a permutation for eight words, and for each query a load and two `vpmadd52`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi")]
fn products<const BYTES: usize, const TILES: usize, const QUERIES: usize, const ALONE: bool>(
    words: [&[u8]; TILES],
    queries: [&[u64]; QUERIES],
    step: usize,
    sums: &mut [Sums],
) {
    let (width, spread) = (Window::LANES * BYTES, Spread::new(BYTES));
    let depth = words[0].len() / width;
    let reach = (depth - 1) * step + TILES * Window::LANES;
    assert!(words.iter().all(|words| words.len() == depth * width));
    assert!(queries.iter().all(|query| query.len() >= reach));
    let kept: &mut [[Sums; QUERIES]] = sums.as_chunks_mut().0;
    let kept: &mut [[Sums; QUERIES]; TILES] = kept.try_into().expect("each query and tile has its sums");
    let mut sums = *kept;
    for j in 0..depth {
        for (tile, (words, sums)) in words.iter().zip(&mut sums).enumerate() {
            // SAFETY: as asserted, each tile's words have `depth` windows.
            let window = unsafe { words.as_ptr().add(j * width) };
            if ALONE {
                for line in 0..width.div_ceil(64) {
                    // It may reach past the end, as above.
                    _mm_prefetch::<_MM_HINT_T1>(window.wrapping_add(AHEAD + 64 * line).cast());
                }
            }
            // SAFETY: a window is a unit of words.
            let unit = unsafe { load::<BYTES>(spread, window) };
            for (query, [low, high]) in queries.iter().zip(sums) {
                for r in 0..REGISTERS {
                    let at = j * step + tile * Window::LANES + r * LANES;
                    // SAFETY: as asserted, each query has a window for each tile past the start of the last.
                    let query = unsafe { _mm512_loadu_si512(query.as_ptr().add(at).cast()) };
                    low[r] = _mm512_madd52lo_epu64(low[r], unit[r], query);
                    high[r] = _mm512_madd52hi_epu64(high[r], unit[r], query);
                }
            }
        }
    }
    *kept = sums;
}

/// Reduces sums, of which each has 32 words of `out`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi")]
fn finish(reduce: &Reduce, sums: &[Sums], out: &mut [u64]) {
    let half = _mm512_set1_epi64(0xffff_ffff);
    for (sums, out) in sums.iter().zip(out.chunks_exact_mut(Window::LANES)) {
        // [low, high][lower, upper half][lane]
        let mut halves = [[0u64; Window::LANES]; 4];
        for (i, registers) in sums.iter().enumerate() {
            for (r, register) in registers.iter().enumerate() {
                let parts = [_mm512_and_si512(*register, half), _mm512_srli_epi64::<32>(*register)];
                for (part, halves) in parts.into_iter().zip(&mut halves[2 * i..]) {
                    // SAFETY: eight words from 8 r on, of 32.
                    unsafe { _mm512_storeu_si512(halves.as_mut_ptr().add(r * LANES).cast(), part) };
                }
            }
        }
        reduce(halves.as_flattened(), out);
    }
}
