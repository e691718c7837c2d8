//! AVX2: four lanes, digits of 27 bits, whole products.

use std::arch::x86_64::*;

use blindcore_accel::Line;
use blindcore_math::features;
use zeroize::Zeroize;

use crate::arch::vector::bigmod::{Kernel, Vector, scans};
use crate::bigmod::field::Field;

/// Four lanes.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(__m256i);

const LANES: usize = 4;

// SAFETY: instructions of AVX2 on whole vectors.
unsafe impl Vector for Avx2 {
    type Token = features::Avx2;
    const LANES: usize = LANES;
    const DIGIT_BITS: u32 = 27;
    const TILE: usize = 4;
    const HALVES: bool = false;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller's, here and below.
        unsafe { Self(_mm256_setzero_si256()) }
    }
    #[inline(always)]
    unsafe fn splat(x: u64) -> Self {
        // SAFETY: see `zero`.
        unsafe { Self(_mm256_set1_epi64x(x as i64)) }
    }
    #[inline(always)]
    unsafe fn load(at: *const u64) -> Self {
        // SAFETY: see `zero`; the caller's pointer.
        unsafe { Self(_mm256_load_si256(at.cast())) }
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut u64) {
        // SAFETY: see `load`.
        unsafe { _mm256_store_si256(at.cast(), self.0) }
    }
    #[inline(always)]
    unsafe fn add(self, x: Self) -> Self {
        // SAFETY: see `zero`.
        unsafe { Self(_mm256_add_epi64(self.0, x.0)) }
    }
    #[inline(always)]
    unsafe fn sub(self, x: Self) -> Self {
        // SAFETY: see `zero`.
        unsafe { Self(_mm256_sub_epi64(self.0, x.0)) }
    }
    #[inline(always)]
    unsafe fn and(self, x: Self) -> Self {
        // SAFETY: see `zero`.
        unsafe { Self(_mm256_and_si256(self.0, x.0)) }
    }
    #[inline(always)]
    unsafe fn shift(self) -> Self {
        // SAFETY: see `zero`.
        unsafe { Self(_mm256_srli_epi64::<27>(self.0)) }
    }
    #[inline(always)]
    unsafe fn add_low(self, x: Self, y: Self) -> Self {
        // SAFETY: see `zero`.
        unsafe { Self(_mm256_add_epi64(self.0, _mm256_mul_epu32(x.0, y.0))) }
    }
    #[inline(always)]
    unsafe fn add_high(self, _: Self, _: Self) -> Self {
        self
    }
    #[inline(always)]
    unsafe fn digit_product(x: Self, y: Self) -> Self {
        // SAFETY: see `zero`.
        unsafe { Self(_mm256_mul_epu32(x.0, y.0)).and(Self::splat((1 << 27) - 1)) } // bits 27 to 31 of x don't reach it
    }
}

scans!(compiled, Avx2, "avx2");

impl Kernel for Avx2 {
    const TEETH: u32 = 5;
    const CHOSEN: usize = 1;

    #[inline]
    fn fetch(line: &Line) {
        // SAFETY: a hint, on an address that is there.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(line).cast()) }
    }

    fn gather(_: features::Avx2, rows: &[&[Line]], lines: usize, out: &mut [u64]) {
        let rows = std::array::from_fn(|lane| *rows.get(lane).unwrap_or(&rows[0]));
        // SAFETY: the token stands for AVX2, here and below.
        unsafe { gather(rows, lines, out) }
    }

    fn scatter(
        _: features::Avx2,
        group: &[u64],
        lines: usize,
        rows: &mut [Line],
        starts: impl Iterator<Item = usize>,
    ) {
        // All from one borrow: another would end those before it.
        let (count, base) = (rows.len(), rows.as_mut_ptr());
        let mut pointers = [std::ptr::null_mut(); LANES];
        let mut used = 0;
        for (pointer, start) in pointers.iter_mut().zip(starts) {
            assert!(start <= count && count - start >= lines);
            *pointer = base.wrapping_add(start).cast();
            used += 1;
        }
        // SAFETY: see `gather`; the rows were measured.
        unsafe { scatter(group, lines, &pointers[..used]) }
    }

    /// The first block of every group, then the second: so the table is read from its beginning to its end.
    fn arrange(_: features::Avx2, groups: &[u64], stride: usize, digits: usize, table: &mut [u64]) {
        let (group, block) = (digits * LANES, Self::TILE * LANES);
        let entries = table.len() / group;
        for (e, group) in groups.chunks(stride).map(|all| &all[..group]).enumerate().take(entries) {
            for (to, from) in table[e * block..].chunks_mut(entries * block).zip(group.chunks_exact(block)) {
                to[..block].copy_from_slice(from);
            }
        }
    }

    fn select(_: features::Avx2, table: &[u64], digits: usize, index: &[Line], out: &mut [u64]) {
        // SAFETY: see `gather`.
        unsafe { select::<false>(table, digits, &index[0].0, out) }
    }

    /// As tables of groups lie: block by block, every entry's.
    fn lay_out(rows: &[&[u64]], digits: usize) -> Vec<u64> {
        let blocks = (0..digits).step_by(Self::TILE);
        blocks.flat_map(|d| rows.iter().flat_map(move |row| row[d..][..Self::TILE].iter().copied())).collect()
    }

    fn look_up(
        _: features::Avx2,
        table: &[u64],
        digits: usize,
        index: &[u8],
        groups: usize,
        out: &mut [u64],
    ) {
        assert_eq!(table.len(), digits << Self::TEETH);
        let group = digits * LANES;
        for (index, out) in index.chunks_exact(LANES).zip(out.chunks_exact_mut(group)).take(groups) {
            let mut lanes = Line([0; 8]);
            lanes.0.iter_mut().zip(index).for_each(|(lane, index)| *lane = u64::from(*index));
            // SAFETY: see `gather`.
            unsafe { select::<true>(table, digits, &lanes.0, out) }
            lanes.0.zeroize();
        }
    }
}

/// Panics unless a vector may be loaded at every fourth word of the first `len`.
fn check(words: &[u64], len: usize) {
    assert!(words.len() >= len && words.as_ptr().addr().is_multiple_of(32));
}

/// Swaps rows and columns of four by four words.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose(r: [__m256i; 4]) -> [__m256i; 4] {
    let (a, b) = (_mm256_unpacklo_epi64(r[0], r[1]), _mm256_unpacklo_epi64(r[2], r[3]));
    let (c, d) = (_mm256_unpackhi_epi64(r[0], r[1]), _mm256_unpackhi_epi64(r[2], r[3]));
    [
        _mm256_permute2x128_si256::<0x20>(a, b),
        _mm256_permute2x128_si256::<0x20>(c, d),
        _mm256_permute2x128_si256::<0x31>(a, b),
        _mm256_permute2x128_si256::<0x31>(c, d),
    ]
}

#[target_feature(enable = "avx2")]
fn gather(rows: [&[Line]; LANES], lines: usize, out: &mut [u64]) {
    assert!(rows.iter().all(|row| row.len() >= lines));
    check(out, lines * 8 * LANES);
    let rows = rows.map(|row| row.as_ptr().cast::<u64>());
    for at in (0..lines * 8).step_by(4) {
        // SAFETY: rows have `lines` lines, the group as many times eight vectors: asserted above.
        unsafe {
            let digits = transpose(rows.map(|row| _mm256_load_si256(row.add(at).cast())));
            for (d, digit) in digits.into_iter().enumerate() {
                _mm256_store_si256(out.as_mut_ptr().add((at + d) * LANES).cast(), digit);
            }
        }
    }
}

/// # Safety
/// Each row has `lines` lines, which nobody else holds.
#[target_feature(enable = "avx2")]
unsafe fn scatter(group: &[u64], lines: usize, rows: &[*mut u64]) {
    check(group, lines * 8 * LANES);
    let group = group.as_ptr();
    for at in (0..lines * 8).step_by(4) {
        // SAFETY: the caller's rows; the group has eight vectors for each line, as asserted.
        unsafe {
            let digits = std::array::from_fn(|d| _mm256_load_si256(group.add((at + d) * LANES).cast()));
            for (row, digits) in rows.iter().zip(transpose(digits)) {
                _mm256_store_si256(row.add(at).cast(), digits);
            }
        }
    }
}

/// Chooses among entries that are groups, or `SHARED` by all lanes.
#[target_feature(enable = "avx2")]
fn select<const SHARED: bool>(table: &[u64], digits: usize, index: &[u64], out: &mut [u64]) {
    const TOGETHER: usize = Avx2::TILE;
    assert!(digits.is_multiple_of(TOGETHER));
    let entry_words = if SHARED { digits } else { digits * LANES };
    let entries = table.len() / entry_words;
    check(table, entries * entry_words);
    check(index, LANES);
    check(out, digits * LANES);
    let (table, out) = (table.as_ptr(), out.as_mut_ptr());
    // SAFETY: a table of `entries` of `digits` digits, a multiple of four, and a group for the result: asserted above.
    unsafe {
        let index = _mm256_load_si256(index.as_ptr().cast());
        for d in (0..digits).step_by(TOGETHER) {
            let mut sum = [_mm256_setzero_si256(); TOGETHER];
            for entry in 0..entries {
                let here = _mm256_cmpeq_epi64(index, _mm256_set1_epi64x(entry as i64));
                for (i, sum) in sum.iter_mut().enumerate() {
                    let at = d * entries + entry * TOGETHER + i;
                    let digit = if SHARED {
                        _mm256_set1_epi64x(*table.add(at) as i64)
                    } else {
                        _mm256_load_si256(table.add(at * LANES).cast())
                    };
                    *sum = _mm256_or_si256(*sum, _mm256_and_si256(here, digit));
                }
            }
            for (i, sum) in sum.into_iter().enumerate() {
                _mm256_store_si256(out.add((d + i) * LANES).cast(), sum);
            }
        }
    }
}
