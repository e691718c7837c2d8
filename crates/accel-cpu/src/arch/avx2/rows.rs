//! AVX2 for rows: `vpmuludq`, 32 by 32 bits, four lanes at a time.

use std::arch::x86_64::*;

use blindcore_accel::Word;
use blindcore_math::Modulus;
use blindcore_math::features::Avx2;

use crate::rows::kernel::{Block, BlockFn, Kernel, SHARING, UNIT};

/// 64-bit lanes in a register.
pub(super) const LANES: usize = 4;

/// Words of a query's line that outputs share.
const SHARED: usize = UNIT / SHARING;

/// Words below 2^32: one product. Modulo 2^32 the accumulator may wrap.
pub(super) const ONE_LIMB: usize = 0;
/// Modulo 2^64: three products, those that count 2^32 in an accumulator of their own. Both may wrap.
pub(super) const WRAP64: usize = 1;
/// Words below 2^52, cut into two limbs of 26 bits: four products.
pub(super) const TWO_LIMBS: usize = 2;
/// Words below 2^62, cut into two limbs of 32 bits: four products, each added to what the one below it
/// carries.
pub(super) const CARRIED: usize = 3;

/// Bits of a limb of [`TWO_LIMBS`].
pub(super) const LIMB: u32 = 26;

/// Accumulators of a lane.
pub(super) const fn accumulators(method: usize) -> usize {
    match method {
        ONE_LIMB => 1,
        WRAP64 => 2,
        _ => 3,
    }
}

/// The kernel for a modulus and the database's word.
pub(crate) fn kernel(token: Avx2, modulus: Modulus, word: Word) -> Kernel {
    match modulus {
        Modulus::Pow2_32 => {
            Kernel { weights: &[0], capacity: usize::MAX, block: block::<ONE_LIMB>(token), reduce: None }
        }
        Modulus::Pow2_64 => {
            Kernel { weights: &[0, 32], capacity: usize::MAX, block: block::<WRAP64>(token), reduce: None }
        }
        Modulus::Prime(p) if p.value() <= 1 << 32 => {
            let max = p.value() - 1;
            let capacity = (u64::MAX / (max * max.min(word.max()))) as usize;
            Kernel { weights: &[0], capacity, block: block::<ONE_LIMB>(token), reduce: None }
        }
        Modulus::Prime(p) if p.value() <= 1 << (2 * LIMB) => {
            // The middle accumulator takes two products of limbs.
            const MAX: u64 = (1 << LIMB) - 1;
            const CAPACITY: usize = (u64::MAX / (2 * MAX * MAX)) as usize;
            Kernel {
                weights: &[0, LIMB, 2 * LIMB],
                capacity: CAPACITY,
                block: block::<TWO_LIMBS>(token),
                reduce: None,
            }
        }
        Modulus::Prime(_) => {
            // The upper accumulator takes a product of upper limbs and a carry.
            const MAX: u64 = (1 << 30) - 1;
            const CAPACITY: usize = (u64::MAX / (MAX * MAX + u32::MAX as u64)) as usize;
            Kernel { weights: &[0, 32, 64], capacity: CAPACITY, block: block::<CARRIED>(token), reduce: None }
        }
    }
}

/// The method's block function.
fn block<const METHOD: usize>(token: Avx2) -> BlockFn {
    Box::new(move |block, sums| run::<METHOD>(token, block, sums))
}

fn run<const METHOD: usize>(_: Avx2, block: &Block<'_>, sums: &mut [u64]) {
    // SAFETY: the token stands for AVX2.
    unsafe { dispatch::<METHOD>(block, sums) }
}

#[target_feature(enable = "avx2")]
fn dispatch<const METHOD: usize>(block: &Block<'_>, sums: &mut [u64]) {
    match block.word {
        Word::U8 => words::<METHOD, 1>(block, sums),
        Word::U16 => words::<METHOD, 2>(block, sums),
        Word::U32 => words::<METHOD, 4>(block, sums),
        Word::U40 => words::<METHOD, 5>(block, sums),
        Word::U48 => words::<METHOD, 6>(block, sums),
        Word::U64 => words::<METHOD, 8>(block, sums),
    }
}

/// As many accumulators at once as fit sixteen registers beside the operands.
#[inline]
#[target_feature(enable = "avx2")]
fn words<const METHOD: usize, const BYTES: usize>(block: &Block<'_>, sums: &mut [u64]) {
    match (accumulators(METHOD), block.queries.len()) {
        (1, 1) => lines::<METHOD, 8, BYTES, 1>(block, sums),
        (1, _) => lines::<METHOD, 4, BYTES, 2>(block, sums),
        (2, 1) => lines::<METHOD, 4, BYTES, 1>(block, sums),
        (2, _) => lines::<METHOD, 2, BYTES, 2>(block, sums),
        (_, 1) => lines::<METHOD, 2, BYTES, 1>(block, sums),
        (_, _) => lines::<METHOD, 1, BYTES, 2>(block, sums),
    }
}

/// One block, `REGISTERS` registers wide at a time, whose accumulators are split after this many lines as they
/// hold, `block.capacity`.
///
/// In: residues of the method's modulus. Out: exact sums (modulo 2^64 for those that may wrap), added in
/// halves. Cost: a register of words takes one load, and for each query one load and the method's products.
#[target_feature(enable = "avx2")]
fn lines<const METHOD: usize, const REGISTERS: usize, const BYTES: usize, const QUERIES: usize>(
    block: &Block<'_>,
    sums: &mut [u64],
) {
    const { assert!(UNIT.is_multiple_of(REGISTERS * LANES)) };
    let accumulators = accumulators(METHOD);
    block.check(accumulators, sums);
    let queries: [&[u64]; QUERIES] = block.queries.try_into().expect("as dispatched");
    assert_eq!(BYTES, block.word.bytes());
    let low_half = _mm256_set1_epi64x(0xffff_ffff);
    let shared = block.width / block.outputs;
    for lane in (0..block.width).step_by(REGISTERS * LANES) {
        let mut first = 0;
        while first < block.lines {
            let end = block.lines.min(first.saturating_add(block.capacity));
            let mut registers = [[[_mm256_setzero_si256(); 3]; REGISTERS]; QUERIES];
            for line in first..end {
                let at = line * block.stride + lane;
                // Five- and six-byte words seldom begin at a line's start.
                if BYTES == 5 || BYTES == 6 || (at * BYTES).is_multiple_of(64) {
                    for i in 0..(REGISTERS * LANES * BYTES).div_ceil(64) {
                        let ahead = block.next.as_ptr().wrapping_add(at * BYTES + 64 * i);
                        _mm_prefetch::<_MM_HINT_T1>(ahead.cast());
                    }
                }
                for r in 0..REGISTERS {
                    // SAFETY: `block.check` holds a unit at (line, lane) within the row and every query.
                    let words = unsafe { load::<BYTES>(block.row.as_ptr().add((at + r * LANES) * BYTES)) };
                    let lane = lane + r * LANES;
                    let place = line * shared + if block.outputs == 1 { lane } else { lane % SHARED };
                    for q in 0..QUERIES {
                        // SAFETY: as above; what outputs share is two registers.
                        let query = unsafe { _mm256_loadu_si256(queries[q].as_ptr().add(place).cast()) };
                        multiply_add::<METHOD>(&mut registers[q][r], words, query);
                    }
                }
            }
            for q in 0..QUERIES {
                for a in 0..accumulators {
                    for r in 0..REGISTERS {
                        let register = registers[q][r][a];
                        let halves =
                            [_mm256_and_si256(register, low_half), _mm256_srli_epi64::<32>(register)];
                        for (half, value) in halves.into_iter().enumerate() {
                            let at = ((q * accumulators + a) * 2 + half) * block.width + lane + r * LANES;
                            // SAFETY: `block.check` holds `sums` to queries * accumulators * 2 widths.
                            unsafe {
                                let sum: *mut __m256i = sums.as_mut_ptr().add(at).cast();
                                let added = _mm256_add_epi64(_mm256_loadu_si256(sum), value);
                                _mm256_storeu_si256(sum, added);
                            }
                        }
                    }
                }
            }
            first = end;
        }
    }
}

/// Four words, widened.
///
/// # Safety
/// Four words of `BYTES` bytes lie at `at`.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load<const BYTES: usize>(at: *const u8) -> __m256i {
    // SAFETY: promised by the caller.
    unsafe {
        match BYTES {
            1 => _mm256_cvtepu8_epi64(_mm_loadu_si32(at)),
            2 => _mm256_cvtepu16_epi64(_mm_loadl_epi64(at.cast())),
            4 => _mm256_cvtepu32_epi64(_mm_loadu_si128(at.cast())),
            5 => {
                // Bytes 0 to 15 and 4 to 19: each half has its two words.
                let (low, high) = (_mm_loadu_si128(at.cast()), _mm_loadu_si128(at.add(4).cast()));
                let spread = _mm256_setr_epi8(
                    0, 1, 2, 3, 4, -1, -1, -1, 5, 6, 7, 8, 9, -1, -1, -1, // low
                    6, 7, 8, 9, 10, -1, -1, -1, 11, 12, 13, 14, 15, -1, -1, -1, // high
                );
                _mm256_shuffle_epi8(_mm256_set_m128i(high, low), spread)
            }
            6 => {
                // Bytes 0 to 15 and 8 to 23: each half has its two words.
                let (low, high) = (_mm_loadu_si128(at.cast()), _mm_loadu_si128(at.add(8).cast()));
                let spread = _mm256_setr_epi8(
                    0, 1, 2, 3, 4, 5, -1, -1, 6, 7, 8, 9, 10, 11, -1, -1, // low
                    4, 5, 6, 7, 8, 9, -1, -1, 10, 11, 12, 13, 14, 15, -1, -1, // high
                );
                _mm256_shuffle_epi8(_mm256_set_m128i(high, low), spread)
            }
            _ => _mm256_loadu_si256(at.cast()),
        }
    }
}

/// Adds four products to the accumulators that the method has.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn multiply_add<const METHOD: usize>(sums: &mut [__m256i; 3], a: __m256i, b: __m256i) {
    match METHOD {
        ONE_LIMB => sums[0] = _mm256_add_epi64(sums[0], _mm256_mul_epu32(a, b)),
        WRAP64 => {
            let (a1, b1) = (_mm256_srli_epi64::<32>(a), _mm256_srli_epi64::<32>(b));
            sums[0] = _mm256_add_epi64(sums[0], _mm256_mul_epu32(a, b));
            sums[1] = _mm256_add_epi64(sums[1], _mm256_mul_epu32(a1, b));
            sums[1] = _mm256_add_epi64(sums[1], _mm256_mul_epu32(a, b1));
        }
        TWO_LIMBS => {
            let mask = _mm256_set1_epi64x((1 << LIMB) - 1);
            let (a0, a1) = (_mm256_and_si256(a, mask), _mm256_srli_epi64::<{ LIMB as i32 }>(a));
            let (b0, b1) = (_mm256_and_si256(b, mask), _mm256_srli_epi64::<{ LIMB as i32 }>(b));
            sums[0] = _mm256_add_epi64(sums[0], _mm256_mul_epu32(a0, b0));
            sums[1] = _mm256_add_epi64(sums[1], _mm256_mul_epu32(a0, b1));
            sums[1] = _mm256_add_epi64(sums[1], _mm256_mul_epu32(a1, b0));
            sums[2] = _mm256_add_epi64(sums[2], _mm256_mul_epu32(a1, b1));
        }
        _ => {
            let low_half = _mm256_set1_epi64x(0xffff_ffff);
            let (a1, b1) = (_mm256_srli_epi64::<32>(a), _mm256_srli_epi64::<32>(b));
            let low = _mm256_mul_epu32(a, b);
            // Below 2 * 2^62 + 2^32.
            let middle = _mm256_add_epi64(_mm256_mul_epu32(a, b1), _mm256_mul_epu32(a1, b));
            let middle = _mm256_add_epi64(middle, _mm256_srli_epi64::<32>(low));
            let high = _mm256_add_epi64(_mm256_mul_epu32(a1, b1), _mm256_srli_epi64::<32>(middle));
            sums[0] = _mm256_add_epi64(sums[0], _mm256_and_si256(low, low_half));
            sums[1] = _mm256_add_epi64(sums[1], _mm256_and_si256(middle, low_half));
            sums[2] = _mm256_add_epi64(sums[2], high);
        }
    }
}
