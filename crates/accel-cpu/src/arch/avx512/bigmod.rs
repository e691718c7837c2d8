//! AVX-512 IFMA: eight lanes, digits of 52 bits, products in two halves.

use std::arch::x86_64::*;

use blindcore_accel::Line;
use blindcore_math::features::Ifma;
use zeroize::Zeroize;

use crate::arch::vector::bigmod::{Kernel, Scans, Vector, scans};
use crate::bigmod::WINDOW;
use crate::bigmod::field::Field;

/// Eight lanes, in blocks of `TILE` digits: eight where a modulus fills them as well as five.
#[derive(Clone, Copy)]
pub(crate) struct Avx512<const TILE: usize>(__m512i);

const LANES: usize = 8;

// SAFETY: instructions of AVX-512 F and IFMA on whole vectors.
unsafe impl<const TILE: usize> Vector for Avx512<TILE> {
    type Token = Ifma;
    const LANES: usize = LANES;
    const DIGIT_BITS: u32 = 52;
    const TILE: usize = TILE;
    const HALVES: bool = true;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller's, here and below.
        unsafe { Self(_mm512_setzero_si512()) }
    }
    #[inline(always)]
    unsafe fn splat(x: u64) -> Self {
        // SAFETY: see `zero`.
        unsafe { Self(_mm512_set1_epi64(x as i64)) }
    }
    #[inline(always)]
    unsafe fn load(at: *const u64) -> Self {
        // SAFETY: see `zero`; the caller's pointer.
        unsafe { Self(_mm512_load_si512(at.cast())) }
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut u64) {
        // SAFETY: see `load`.
        unsafe { _mm512_store_si512(at.cast(), self.0) }
    }
    #[inline(always)]
    unsafe fn add(self, x: Self) -> Self {
        // SAFETY: see `zero`.
        unsafe { Self(_mm512_add_epi64(self.0, x.0)) }
    }
    #[inline(always)]
    unsafe fn sub(self, x: Self) -> Self {
        // SAFETY: see `zero`.
        unsafe { Self(_mm512_sub_epi64(self.0, x.0)) }
    }
    #[inline(always)]
    unsafe fn and(self, x: Self) -> Self {
        // SAFETY: see `zero`.
        unsafe { Self(_mm512_and_si512(self.0, x.0)) }
    }
    #[inline(always)]
    unsafe fn shift(self) -> Self {
        // SAFETY: see `zero`.
        unsafe { Self(_mm512_srli_epi64::<52>(self.0)) }
    }
    #[inline(always)]
    unsafe fn add_low(self, x: Self, y: Self) -> Self {
        // SAFETY: see `zero`.
        unsafe { Self(_mm512_madd52lo_epu64(self.0, x.0, y.0)) }
    }
    #[inline(always)]
    unsafe fn add_high(self, x: Self, y: Self) -> Self {
        // SAFETY: see `zero`.
        unsafe { Self(_mm512_madd52hi_epu64(self.0, x.0, y.0)) }
    }
    #[inline(always)]
    unsafe fn digit_product(x: Self, y: Self) -> Self {
        // SAFETY: see `zero`.
        unsafe { Self::zero().add_low(x, y) }
    }
}

scans!(five, Avx512<5>, "avx512f,avx512ifma");
scans!(eight, Avx512<8>, "avx512f,avx512ifma");

impl<const TILE: usize> Kernel for Avx512<TILE>
where
    Self: Scans<Token = Ifma>,
{
    const TEETH: u32 = 8;
    const CHOSEN: usize = 8;

    #[inline]
    fn fetch(line: &Line) {
        // SAFETY: a hint, on an address that is there.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(line).cast()) }
    }

    fn gather(_: Ifma, rows: &[&[Line]], lines: usize, out: &mut [u64]) {
        let rows = std::array::from_fn(|lane| *rows.get(lane).unwrap_or(&rows[0]));
        // SAFETY: the token stands for these features, here and below.
        unsafe { gather(rows, lines, out) }
    }

    fn scatter(_: Ifma, group: &[u64], lines: usize, rows: &mut [Line], starts: impl Iterator<Item = usize>) {
        // All from one borrow: another would end those before it.
        let (count, base) = (rows.len(), rows.as_mut_ptr());
        let mut pointers = [std::ptr::null_mut(); LANES];
        let mut used = 0;
        for (pointer, start) in pointers.iter_mut().zip(starts) {
            assert!(start <= count && count - start >= lines);
            *pointer = base.wrapping_add(start);
            used += 1;
        }
        // SAFETY: see `gather`; the rows were measured.
        unsafe { scatter(group, lines, &pointers[..used]) }
    }

    /// Of every digit lane by lane what it is in each group, so that one permutation chooses for eight windows.
    fn arrange(_: Ifma, groups: &[u64], stride: usize, digits: usize, table: &mut [u64]) {
        // SAFETY: see `gather`.
        unsafe { arrange(groups, stride, digits, table) }
    }

    fn select(_: Ifma, table: &[u64], digits: usize, index: &[Line], out: &mut [u64]) {
        // SAFETY: see `gather`.
        unsafe { select(table, digits, index, out) }
    }

    /// Digit by digit, the lower halves of every entry's, then the upper ones.
    fn lay_out(rows: &[&[u64]], digits: usize) -> Vec<u64> {
        let half = |d: usize, shift: u32| {
            rows.chunks_exact(2).map(move |two| {
                let [low, high] = [two[0], two[1]].map(|row| row[d] >> shift & 0xffff_ffff);
                low | high << 32
            })
        };
        (0..digits).flat_map(|d| half(d, 0).chain(half(d, 32))).collect()
    }

    fn look_up(_: Ifma, table: &[u64], digits: usize, index: &[u8], groups: usize, out: &mut [u64]) {
        // SAFETY: see `gather`.
        unsafe { look_up(table, digits, index, groups, out) }
    }
}

/// Panics unless a vector may be loaded at every eighth word of the first `len`.
fn check(words: &[u64], len: usize) {
    assert!(words.len() >= len && words.as_ptr().addr().is_multiple_of(64));
}

/// Swaps rows and columns of eight by eight words.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose(r: [__m512i; 8]) -> [__m512i; 8] {
    // Pairs of rows, then their 128-bit quarters twice.
    let low = |i: usize| _mm512_unpacklo_epi64(r[i], r[i + 1]);
    let high = |i: usize| _mm512_unpackhi_epi64(r[i], r[i + 1]);
    let fours =
        |a: __m512i, b: __m512i| (_mm512_shuffle_i64x2::<0x88>(a, b), _mm512_shuffle_i64x2::<0xdd>(a, b));
    let (even_a, even_b) = (fours(low(0), low(2)), fours(low(4), low(6)));
    let (odd_a, odd_b) = (fours(high(0), high(2)), fours(high(4), high(6)));
    let (c0, c4) = fours(even_a.0, even_b.0);
    let (c2, c6) = fours(even_a.1, even_b.1);
    let (c1, c5) = fours(odd_a.0, odd_b.0);
    let (c3, c7) = fours(odd_a.1, odd_b.1);
    [c0, c1, c2, c3, c4, c5, c6, c7]
}

#[target_feature(enable = "avx512f")]
fn gather(rows: [&[Line]; LANES], lines: usize, out: &mut [u64]) {
    assert!(rows.iter().all(|row| row.len() >= lines));
    check(out, lines * 8 * LANES);
    let rows = rows.map(<[Line]>::as_ptr);
    for line in 0..lines {
        // SAFETY: rows have `lines` lines, the group as many times eight vectors: asserted above.
        unsafe {
            let digits = transpose(rows.map(|row| _mm512_load_si512(row.add(line).cast())));
            for (d, digit) in digits.into_iter().enumerate() {
                _mm512_store_si512(out.as_mut_ptr().add((line * 8 + d) * LANES).cast(), digit);
            }
        }
    }
}

/// # Safety
/// Each row has `lines` lines, which nobody else holds.
#[target_feature(enable = "avx512f")]
unsafe fn scatter(group: &[u64], lines: usize, rows: &[*mut Line]) {
    check(group, lines * 8 * LANES);
    let group = group.as_ptr();
    for line in 0..lines {
        // SAFETY: the caller's rows; the group has eight vectors for each line, as asserted.
        unsafe {
            let digits = std::array::from_fn(|d| _mm512_load_si512(group.add((line * 8 + d) * LANES).cast()));
            for (row, digits) in rows.iter().zip(transpose(digits)) {
                _mm512_store_si512(row.add(line).cast(), digits);
            }
        }
    }
}

/// Groups of a table of powers.
const POWERS: usize = 1 << WINDOW;

#[target_feature(enable = "avx512f")]
fn arrange(groups: &[u64], stride: usize, digits: usize, table: &mut [u64]) {
    check(groups, (POWERS - 1) * stride + digits * LANES);
    check(table, POWERS * digits * LANES);
    assert!(stride.is_multiple_of(LANES));
    let (groups, table) = (groups.as_ptr(), table.as_mut_ptr());
    for d in 0..digits {
        for eight in 0..POWERS / 8 {
            // SAFETY: groups of `digits` digits, `stride` words apart, and a table of as many words: asserted above.
            unsafe {
                let of = |i: usize| groups.add((8 * eight + i) * stride + d * LANES);
                let lanes = transpose(std::array::from_fn(|i| _mm512_load_si512(of(i).cast())));
                for (lane, powers) in lanes.into_iter().enumerate() {
                    let at = (d * LANES + lane) * POWERS + 8 * eight;
                    _mm512_store_si512(table.add(at).cast(), powers);
                }
            }
        }
    }
}

/// All of a table is read; the index chooses by permutations (its lower four bits) and by masks, so no address depends on it.
#[target_feature(enable = "avx512f")]
fn select(table: &[u64], digits: usize, index: &[Line], out: &mut [u64]) {
    check(table, POWERS * digits * LANES);
    check(out, 8 * digits * LANES);
    assert!(index.len() >= 8);
    let (table, out, index) = (table.as_ptr(), out.as_mut_ptr(), index.as_ptr());
    // SAFETY: eight indices of eight lanes, a table of `POWERS` groups of `digits` digits, and eight groups for the results: all
    // asserted above.
    unsafe {
        // Of every lane, which of its powers the eight groups get.
        let which = transpose(std::array::from_fn(|i| _mm512_load_si512(index.add(i).cast())));
        for d in 0..digits {
            let lanes = std::array::from_fn(|lane| {
                let at = table.add((d * LANES + lane) * POWERS);
                let [a, b, c, d] = std::array::from_fn(|i| _mm512_load_si512(at.add(8 * i).cast()));
                let low = _mm512_permutex2var_epi64(a, which[lane], b);
                let high = _mm512_permutex2var_epi64(c, which[lane], d);
                let upper = _mm512_test_epi64_mask(which[lane], _mm512_set1_epi64(16));
                _mm512_mask_mov_epi64(low, upper, high)
            });
            for (chosen, digit) in transpose(lanes).into_iter().enumerate() {
                _mm512_store_si512(out.add((chosen * digits + d) * LANES).cast(), digit);
            }
        }
    }
}

/// Every entry is read for every digit; the index chooses by permutations (its low five bits, of the halves of 32 digits in
/// two registers) and by masks (the rest), so no address depends on it. Two groups at a time, their halves side by side.
#[target_feature(enable = "avx512f,avx512bw")]
fn look_up(table: &[u64], digits: usize, index: &[u8], groups: usize, out: &mut [u64]) {
    /// Words of a digit of 256 entries.
    const ENTRIES: usize = 256;
    /// Groups that are looked up at once, two by two.
    const MOST: usize = 16;
    check(table, digits * ENTRIES);
    check(out, groups * digits * LANES);
    assert!(index.len() >= groups * LANES && groups <= MOST);
    // Of two groups the lanes in the order in which unpacking puts them.
    let mut indices = [_mm512_setzero_si512(); MOST / 2];
    for (at, index) in index[..groups * LANES].chunks(2 * LANES).enumerate() {
        let mut lanes = [0i32; 2 * LANES];
        for (place, lane) in lanes.iter_mut().enumerate() {
            let (four, i) = (place / 4, place % 4);
            *lane = i32::from(*index.get(i / 2 * LANES + four * 2 + i % 2).unwrap_or(&0));
        }
        // SAFETY: sixteen words of 32 bits.
        indices[at] = unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) };
        lanes.zeroize();
    }
    let pairs = groups.div_ceil(2);
    let (table, out) = (table.as_ptr(), out.as_mut_ptr());
    // SAFETY: a table of 256 words a digit; `groups` groups: asserted above.
    unsafe {
        for d in 0..digits {
            let at = table.add(d * ENTRIES);
            // Those of the digit after the next; past the end it is a hint alone.
            for line in 0..ENTRIES / 8 {
                _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(2 * ENTRIES + line * 8).cast());
            }
            for (pair, index) in indices[..pairs].iter().enumerate() {
                let low = half(at, *index);
                let high = half(at.add(ENTRIES / 2), *index);
                let group = out.add((2 * pair * digits + d) * LANES);
                _mm512_store_si512(group.cast(), _mm512_unpacklo_epi32(low, high));
                if 2 * pair + 1 < groups {
                    let group = group.add(digits * LANES);
                    _mm512_store_si512(group.cast(), _mm512_unpackhi_epi32(low, high));
                }
            }
        }
    }
}

/// Of 256 halves of digits those that sixteen lanes ask for.
///
/// # Safety
/// There are 256 halves.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn half(table: *const u64, index: __m512i) -> __m512i {
    // SAFETY: the caller's.
    unsafe {
        let mut found: [__m512i; 8] = std::array::from_fn(|i| {
            let low = _mm512_load_si512(table.add(i * 16).cast());
            let high = _mm512_load_si512(table.add(i * 16 + 8).cast());
            _mm512_permutex2var_epi32(low, index, high)
        });
        let mut left = 4;
        for bit in 5..8 {
            let set = _mm512_test_epi32_mask(index, _mm512_set1_epi32(1 << bit));
            for i in 0..left {
                found[i] = _mm512_mask_mov_epi32(found[2 * i], set, found[2 * i + 1]);
            }
            left /= 2;
        }
        found[0]
    }
}
