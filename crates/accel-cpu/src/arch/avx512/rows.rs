//! AVX-512 for rows: `vpmadd52luq` and `vpmadd52huq` multiply, split and add at once, eight lanes at a time.

use std::arch::x86_64::*;

use blindcore_accel::Word;
use blindcore_math::Modulus;
use blindcore_math::features::Ifma;

use crate::rows::kernel::{Block, BlockFn, Kernel, MAX_LINES, Reduce, SHARING, UNIT};

/// 64-bit lanes in a register.
pub(super) const LANES: usize = 8;
/// Registers in a unit.
pub(super) const REGISTERS: usize = UNIT / LANES;
/// Bits of what `vpmadd52` multiplies.
pub(super) const LIMB: u32 = 52;

/// Modulo 2^32: the low 52 bits of each product, one instruction. Accumulators may wrap.
const WRAP32: usize = 0;
/// Modulo 2^64: `vpmullq`. Accumulators may wrap.
const WRAP64: usize = 1;
/// Words below 2^52: the low and the high 52 bits of each product, two instructions.
const ONE_LIMB: usize = 2;
/// Words below 2^62, as a limb of 52 bits and one of ten: seven instructions.
const TWO_LIMBS: usize = 3;

/// Accumulators of a lane.
const fn accumulators(method: usize) -> usize {
    match method {
        WRAP32 | WRAP64 => 1,
        ONE_LIMB => 2,
        _ => 3,
    }
}

// A product adds at most 3 * 2^52 to an accumulator (the middle one of two limbs): a block never overflows.
const _: () = assert!((MAX_LINES as u64) < u64::MAX / (3 << LIMB));

/// The kernel for a modulus and this many products a sum.
pub(crate) fn kernel(token: Ifma, modulus: Modulus, depth: usize) -> Kernel {
    let reduce = reduction(token, modulus, depth);
    let kernel = |weights, block| Kernel { weights, capacity: MAX_LINES, block, reduce };
    match modulus {
        Modulus::Pow2_32 => kernel(&[0], block::<WRAP32>(token)),
        Modulus::Pow2_64 => kernel(&[0], block::<WRAP64>(token)),
        Modulus::Prime(p) if p.value() <= 1 << LIMB => kernel(&[0, LIMB], block::<ONE_LIMB>(token)),
        Modulus::Prime(_) => kernel(&[0, LIMB, 2 * LIMB], block::<TWO_LIMBS>(token)),
    }
}

/// The method's block function.
fn block<const METHOD: usize>(token: Ifma) -> BlockFn {
    Box::new(move |block, sums| run::<METHOD>(token, block, sums))
}

fn run<const METHOD: usize>(_: Ifma, block: &Block<'_>, sums: &mut [u64]) {
    // SAFETY: the token stands for these features.
    unsafe { dispatch::<METHOD>(block, sums) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi")]
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

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi")]
fn words<const METHOD: usize, const BYTES: usize>(block: &Block<'_>, sums: &mut [u64]) {
    match (block.outputs, block.queries.len()) {
        (1, 1) => lines::<METHOD, BYTES, 1, 1>(block, sums),
        (1, _) => lines::<METHOD, BYTES, 2, 1>(block, sums),
        (_, 1) => lines::<METHOD, BYTES, 1, SHARING>(block, sums),
        (_, _) => lines::<METHOD, BYTES, 2, SHARING>(block, sums),
    }
}

/// One block, unit after unit: a unit's accumulators stay in registers down all lines.
///
/// In: residues of the method's modulus. Out: exact sums (modulo 2^64 for those that may wrap), added in
/// halves. Cost: a register of words takes one load, and for each query the method's instructions and one load, or a
/// fourth of one where four outputs share it.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi")]
fn lines<const METHOD: usize, const BYTES: usize, const QUERIES: usize, const OUTPUTS: usize>(
    block: &Block<'_>,
    sums: &mut [u64],
) {
    const { assert!(OUTPUTS == 1 || OUTPUTS == REGISTERS) };
    let accumulators = accumulators(METHOD);
    block.check(accumulators, sums);
    assert_eq!(OUTPUTS, block.outputs);
    let queries: [&[u64]; QUERIES] = block.queries.try_into().expect("as dispatched");
    assert_eq!(BYTES, block.word.bytes());
    let (low_half, spread) = (_mm512_set1_epi64(0xffff_ffff), Spread::new(BYTES));
    for lane in (0..block.width).step_by(UNIT) {
        let mut registers = [[[_mm512_setzero_si512(); 3]; REGISTERS]; QUERIES];
        for line in 0..block.lines {
            let at = line * block.stride + lane;
            for i in 0..(UNIT * BYTES).div_ceil(64) {
                let ahead = block.next.as_ptr().wrapping_add(at * BYTES + 64 * i);
                _mm_prefetch::<_MM_HINT_T1>(ahead.cast());
            }
            // SAFETY: `block.check` holds a unit at (line, lane) within the row.
            let unit = unsafe { load::<BYTES>(spread, block.row.as_ptr().add(at * BYTES)) };
            for (r, words) in unit.into_iter().enumerate() {
                for q in 0..QUERIES {
                    let at = if OUTPUTS == 1 { line * block.width + lane + r * LANES } else { line * LANES };
                    // SAFETY: `block.check` holds a unit, or what one shares, at (line, lane) within every query.
                    let query = unsafe { _mm512_loadu_si512(queries[q].as_ptr().add(at).cast()) };
                    multiply_add::<METHOD>(&mut registers[q][r], words, query);
                }
            }
        }
        for q in 0..QUERIES {
            for a in 0..accumulators {
                for r in 0..REGISTERS {
                    let register = registers[q][r][a];
                    let halves = [_mm512_and_si512(register, low_half), _mm512_srli_epi64::<32>(register)];
                    for (half, value) in halves.into_iter().enumerate() {
                        let at = ((q * accumulators + a) * 2 + half) * block.width + lane + r * LANES;
                        // SAFETY: `block.check` holds `sums` to queries * accumulators * 2 widths.
                        unsafe {
                            let sum: *mut __m512i = sums.as_mut_ptr().add(at).cast();
                            let added = _mm512_add_epi64(_mm512_loadu_si512(sum.cast_const()), value);
                            _mm512_storeu_si512(sum, added);
                        }
                    }
                }
            }
        }
    }
}

/// Brings eight words of five or six bytes apart, by one `vpermb`.
#[derive(Clone, Copy)]
pub(super) struct Spread {
    /// For words from the register's start on, and for those that end where the register does.
    places: [__m512i; 2],
    /// What is not zero.
    held: __mmask64,
}

impl Spread {
    /// For words of this many bytes.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn new(bytes: usize) -> Self {
        const fn places(bytes: usize, first: usize) -> [u8; 64] {
            let (mut places, mut i) = ([0; 64], 0);
            while i < 64 {
                places[i] = ((first + i / 8 * bytes + i % 8) % 64) as u8;
                i += 1;
            }
            places
        }
        const FIVE: [[u8; 64]; 2] = [places(5, 0), places(5, 64 - 5 * LANES)];
        const SIX: [[u8; 64]; 2] = [places(6, 0), places(6, 64 - 6 * LANES)];
        let (places, held) =
            if bytes == 5 { (FIVE, 0x1f1f_1f1f_1f1f_1f1f) } else { (SIX, 0x3f3f_3f3f_3f3f_3f3f) };
        // SAFETY: 64 bytes each.
        let places = places.map(|places| unsafe { _mm512_loadu_si512(places.as_ptr().cast()) });
        // A compiler that knows the mask permutes first and then takes a second instruction for the zeros.
        Self { places, held: std::hint::black_box(held) }
    }
}

/// A unit of words, widened.
///
/// # Safety
/// [`UNIT`] words of `BYTES` bytes lie at `at`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(super) unsafe fn load<const BYTES: usize>(spread: Spread, at: *const u8) -> [__m512i; REGISTERS] {
    let mut unit = [_mm512_setzero_si512(); REGISTERS];
    for (r, words) in unit.iter_mut().enumerate() {
        let register = at.wrapping_add(r * LANES * BYTES);
        // SAFETY: promised by the caller. Words of five and six bytes are 40 or 48 of the 64 bytes that are read: as many more
        // bytes of the unit follow but for the last register, which is read so that it ends where they do.
        *words = unsafe {
            match BYTES {
                1 => _mm512_cvtepu8_epi64(_mm_loadl_epi64(register.cast())),
                2 => _mm512_cvtepu16_epi64(_mm_loadu_si128(register.cast())),
                4 => _mm512_cvtepu32_epi64(_mm256_loadu_si256(register.cast())),
                5 | 6 => {
                    let end = r + 1 == REGISTERS;
                    let before = if end { 64 - LANES * BYTES } else { 0 };
                    let register = register.wrapping_sub(before);
                    let places = spread.places[usize::from(end)];
                    _mm512_maskz_permutexvar_epi8(spread.held, places, _mm512_loadu_si512(register.cast()))
                }
                _ => _mm512_loadu_si512(register.cast()),
            }
        };
    }
    unit
}

/// Adds eight products to the accumulators that the method has.
///
/// Two limbs, a = a0 + 2^52 a1 with a1 below 2^10: `vpmadd52` ignores what is above 52 bits of its operands,
/// so that a itself serves as a0. Source: Gueron and Krasnov 2016, for the instruction's use.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
fn multiply_add<const METHOD: usize>(sums: &mut [__m512i; 3], a: __m512i, b: __m512i) {
    match METHOD {
        WRAP32 => sums[0] = _mm512_madd52lo_epu64(sums[0], a, b),
        WRAP64 => sums[0] = _mm512_add_epi64(sums[0], _mm512_mullo_epi64(a, b)),
        ONE_LIMB => {
            sums[0] = _mm512_madd52lo_epu64(sums[0], a, b);
            sums[1] = _mm512_madd52hi_epu64(sums[1], a, b);
        }
        _ => {
            let (a1, b1) = (_mm512_srli_epi64::<LIMB>(a), _mm512_srli_epi64::<LIMB>(b));
            sums[0] = _mm512_madd52lo_epu64(sums[0], a, b);
            sums[1] = _mm512_madd52hi_epu64(sums[1], a, b);
            sums[1] = _mm512_madd52lo_epu64(sums[1], a, b1);
            sums[1] = _mm512_madd52lo_epu64(sums[1], a1, b);
            sums[2] = _mm512_madd52hi_epu64(sums[2], a, b1);
            sums[2] = _mm512_madd52hi_epu64(sums[2], a1, b);
            sums[2] = _mm512_madd52lo_epu64(sums[2], a1, b1);
        }
    }
}

/// What reduces the sums of [`ONE_LIMB`]: four numbers below 2^52, each times a constant power of two.
struct Reduction {
    prime: u64,
    /// 2^0, 2^32, 2^52 and 2^84, reduced.
    powers: [u64; 4],
    /// floor(2^52 power / prime). Source: Shoup's NTL; Harvey 2014, for the bound.
    quotients: [u64; 4],
}

/// For primes below 2^51, so that twice the prime fits a limb, and up to 2^20 products, each of which adds
/// less than 2^32 to a sum.
pub(super) fn reduction(token: Ifma, modulus: Modulus, depth: usize) -> Option<Reduce> {
    let Modulus::Prime(p) = modulus else { return None };
    if p.value() >= 1 << (LIMB - 1) || depth > 1 << (LIMB - 32) {
        return None;
    }
    let prime = p.value();
    let powers = [0, 32, LIMB, LIMB + 32].map(|bits| p.reduce(1 << bits));
    let quotients = powers.map(|power| ((u128::from(power) << LIMB) / u128::from(prime)) as u64);
    let reduction = Reduction { prime, powers, quotients };
    Some(Box::new(move |sums, out| reduction.run(token, sums, out)))
}

impl Reduction {
    fn run(&self, _: Ifma, sums: &[u64], out: &mut [u64]) {
        // SAFETY: the token stands for these features.
        unsafe { self.reduce(sums, out) }
    }

    /// In: four times as many sums, below 2^52, as `out` has words, a multiple of eight. Out: residues.
    /// Cost: twelve `vpmadd52` for eight words.
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn reduce(&self, sums: &[u64], out: &mut [u64]) {
        assert!(sums.len() == 4 * out.len() && out.len().is_multiple_of(LANES));
        let set = |x: u64| _mm512_set1_epi64(x as i64);
        let (zero, mask) = (_mm512_setzero_si512(), set((1 << LIMB) - 1));
        let prime = set(self.prime);
        let (powers, quotients) = (self.powers.map(set), self.quotients.map(set));
        for at in (0..out.len()).step_by(LANES) {
            let mut total = zero;
            for i in 0..4 {
                // SAFETY: the assertion holds four times out.len() sums; `at` + 8 is at most out.len().
                let sum = unsafe { _mm512_loadu_si512(sums.as_ptr().add(i * out.len() + at).cast()) };
                // sum * power - quotient * prime is at least 0 and below 2 prime < 2^52.
                let quotient = _mm512_madd52hi_epu64(zero, sum, quotients[i]);
                let product = _mm512_madd52lo_epu64(zero, sum, powers[i]);
                let multiple = _mm512_madd52lo_epu64(zero, quotient, prime);
                let rest = _mm512_and_si512(_mm512_sub_epi64(product, multiple), mask);
                total = _mm512_add_epi64(total, rest);
            }
            for multiple in [4, 2, 1] {
                let less = _mm512_sub_epi64(total, set(multiple * self.prime));
                total = _mm512_min_epu64(total, less);
            }
            // SAFETY: `at` + 8 is at most out.len().
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().add(at).cast(), total) };
        }
    }
}
