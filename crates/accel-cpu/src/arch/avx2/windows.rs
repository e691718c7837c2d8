//! AVX2 for windows: `vpmuludq`, 32 by 32 bits, four lanes at a time, by the methods of [rows](super::rows).

use std::arch::x86_64::*;

use blindcore_accel::Word;
use blindcore_accel::contract::Window;
use blindcore_math::Modulus;
use blindcore_math::features::Avx2;

use super::rows::{CARRIED, LANES, LIMB, ONE_LIMB, TWO_LIMBS, WRAP64, accumulators, load, multiply_add};
use crate::windows::kernel::{Kernel, Tile, TileFn};

/// How far ahead the database is fetched, in bytes.
const AHEAD: usize = 4096;
/// The least products of a sum that a method is worth.
const LEAST: u64 = 64;

/// The kernel for a modulus and the database's word.
pub(crate) fn kernel(token: Avx2, modulus: Modulus, word: Word) -> Kernel {
    // The most that each product adds to an accumulator.
    const LIMBS: u64 = 2 * ((1 << LIMB) - 1) * ((1 << LIMB) - 1);
    const CARRIES: u64 = ((1 << 30) - 1) * ((1 << 30) - 1) + u32::MAX as u64;
    let kernel =
        |depth: u64, tile| Kernel { tiles: 1, depth: usize::try_from(depth).unwrap_or(usize::MAX), tile };
    match modulus {
        Modulus::Pow2_32 => kernel(u64::MAX, tile::<ONE_LIMB>(token, modulus)),
        Modulus::Pow2_64 => kernel(u64::MAX, tile::<WRAP64>(token, modulus)),
        Modulus::Prime(p) => {
            let max = p.value() - 1;
            let whole = max.checked_mul(max.min(word.max())).map_or(0, |most| u64::MAX / most);
            if p.value() <= 1 << 32 && whole >= LEAST {
                kernel(whole, tile::<ONE_LIMB>(token, modulus))
            } else if p.value() <= 1 << (2 * LIMB) {
                kernel(u64::MAX / LIMBS, tile::<TWO_LIMBS>(token, modulus))
            } else {
                kernel(u64::MAX / CARRIES, tile::<CARRIED>(token, modulus))
            }
        }
    }
}

fn tile<const METHOD: usize>(token: Avx2, modulus: Modulus) -> TileFn {
    Box::new(move |tile, sums| run::<METHOD>(token, modulus, tile, sums))
}

fn run<const METHOD: usize>(_: Avx2, modulus: Modulus, tile: &Tile<'_>, sums: &mut [u64]) {
    tile.check(sums);
    // SAFETY: the token stands for AVX2.
    unsafe {
        match tile.word {
            Word::U8 => lanes::<METHOD, 1>(modulus, tile, sums),
            Word::U16 => lanes::<METHOD, 2>(modulus, tile, sums),
            Word::U32 => lanes::<METHOD, 4>(modulus, tile, sums),
            Word::U40 => lanes::<METHOD, 5>(modulus, tile, sums),
            Word::U48 => lanes::<METHOD, 6>(modulus, tile, sums),
            Word::U64 => lanes::<METHOD, 8>(modulus, tile, sums),
        }
    }
}

/// A tile, two queries at a time, which read it from the cache but for the first.
///
/// In: residues of the method's modulus, a tile that was checked, no more windows than the kernel's depth. Out: residues.
#[target_feature(enable = "avx2")]
fn lanes<const METHOD: usize, const BYTES: usize>(modulus: Modulus, tile: &Tile<'_>, out: &mut [u64]) {
    let ([words], step) = (tile.words, tile.step) else { unreachable!("the kernel takes one tile") };
    let queries = tile.queries.chunks(2).zip(out.chunks_mut(2 * Window::LANES));
    for (i, (queries, out)) in queries.enumerate() {
        // One query has twice the registers of sums for itself.
        for lane in (0..Window::LANES).step_by(2 * LANES) {
            let ahead = i == 0 && lane == 0;
            match *queries {
                [a] => products::<METHOD, BYTES, 2, 1>(modulus, words, [a], step, lane, ahead, out),
                [a, b] => {
                    products::<METHOD, BYTES, 1, 2>(modulus, words, [a, b], step, lane, ahead, out);
                    products::<METHOD, BYTES, 1, 2>(modulus, words, [a, b], step, lane + LANES, false, out);
                }
                _ => unreachable!("chunks of two"),
            }
        }
    }
}

/// The sums of some lanes from `lane` on, reduced.
#[inline]
#[target_feature(enable = "avx2")]
fn products<const METHOD: usize, const BYTES: usize, const REGISTERS: usize, const QUERIES: usize>(
    modulus: Modulus,
    words: &[u8],
    queries: [&[u64]; QUERIES],
    step: usize,
    lane: usize,
    ahead: bool,
    out: &mut [u64],
) {
    let width = Window::LANES * BYTES;
    let depth = words.len() / width;
    assert!(depth > 0 && lane + REGISTERS * LANES <= Window::LANES);
    assert!(queries.iter().all(|query| query.len() >= (depth - 1) * step + Window::LANES));
    let mut sums = [[[_mm256_setzero_si256(); 3]; REGISTERS]; QUERIES];
    for j in 0..depth {
        // SAFETY: `words` has `depth` windows.
        let window = unsafe { words.as_ptr().add(j * width) };
        if ahead {
            for line in 0..width.div_ceil(64) {
                // It may reach past the end: fetching ahead is no access.
                _mm_prefetch::<_MM_HINT_T0>(window.wrapping_add(AHEAD + 64 * line).cast());
            }
        }
        for r in 0..REGISTERS {
            let at = lane + r * LANES;
            // SAFETY: as asserted, these lanes lie in the window.
            let words = unsafe { load::<BYTES>(window.add(at * BYTES)) };
            for (query, sums) in queries.iter().zip(&mut sums) {
                // SAFETY: as asserted, each query reaches 32 words past the start of the last window.
                let query = unsafe { _mm256_loadu_si256(query.as_ptr().add(j * step + at).cast()) };
                multiply_add::<METHOD>(&mut sums[r], words, query);
            }
        }
    }
    // What an accumulator's unit is in the one below it.
    let apart = match METHOD {
        TWO_LIMBS => LIMB,
        _ => 32,
    };
    for (sums, out) in sums.iter().zip(out.chunks_exact_mut(Window::LANES)) {
        for (sums, out) in sums.iter().zip(out[lane..].chunks_exact_mut(LANES)) {
            let sums: [[u64; LANES]; 3] = words_of(*sums);
            for (i, out) in out.iter_mut().enumerate() {
                // Horner's rule: a residue is below 2^62, or wraps.
                let reduced = (0..accumulators(METHOD)).rev().fold(0, |above: u64, a| {
                    modulus.reduce((u128::from(above) << apart) + u128::from(sums[a][i]))
                });
                *out = reduced;
            }
        }
    }
}

/// Registers as words.
#[inline]
#[target_feature(enable = "avx2")]
fn words_of(registers: [__m256i; 3]) -> [[u64; LANES]; 3] {
    registers.map(|register| {
        let mut words = [0; LANES];
        // SAFETY: four words of 64 bits.
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), register) };
        words
    })
}
