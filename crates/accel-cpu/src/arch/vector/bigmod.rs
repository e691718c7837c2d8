//! The Montgomery product, by product scanning in blocks of digits: for every block of the result's digits, all
//! products of blocks that meet there are added up in registers, and memory is written once a digit.
//!
//! ```text
//!           x1 x0                column blocks, from the right; in the lower half a block of m is chosen so that
//!         * y1 y0   + m * n      the column becomes zero; the upper half is the result
//!   ─────────────
//!    k=3 k=2 k=1 k=0
//! ```
//!
//! Source: Gueron and Krasnov, "Software implementation of modular exponentiation, using advanced vector instructions
//! architectures" (2012), for digits and lanes; Koc, Acar and Kaliski (1996), finely integrated product scanning.
//! Modulo n^2 a residue is x0 + x1 n: with x0 y0 + m n = R z0, the product over R is z0 + z1 n, where
//! z1 = (x0 y1 + x1 y0 - m) / R modulo n. That is five products of halves where the plain way takes eight, and
//! three and a half of six for a square.

use blindcore_accel::Line;

use crate::bigmod::field::Field;

/// A vector of 64-bit lanes.
///
/// # Safety
/// `load` and `store` touch exactly `LANES` words. Methods may be called only where the instruction set is there; pointers
/// must be to a vector, aligned as one.
pub(crate) unsafe trait Vector: Copy {
    /// What shows that the instruction set is there.
    type Token: Copy + Send + Sync + 'static;
    /// Numbers side by side.
    const LANES: usize;
    /// Bits of a digit.
    const DIGIT_BITS: u32;
    /// Digits of a block: 4, 5 or 8.
    const TILE: usize;
    /// Whether products come in two halves, of which the upper belongs a column further.
    const HALVES: bool;

    unsafe fn zero() -> Self;
    unsafe fn splat(x: u64) -> Self;
    unsafe fn load(at: *const u64) -> Self;
    unsafe fn store(self, at: *mut u64);
    unsafe fn add(self, x: Self) -> Self;
    unsafe fn sub(self, x: Self) -> Self;
    unsafe fn and(self, x: Self) -> Self;
    /// Right by a digit.
    unsafe fn shift(self) -> Self;
    /// `self + x * y`, or the lower half of the product where there are halves.
    unsafe fn add_low(self, x: Self, y: Self) -> Self;
    /// `self` and the upper half of `x * y`.
    unsafe fn add_high(self, x: Self, y: Self) -> Self;
    /// The lowest digit of the product of the lowest digits; what is above them in `x` does not count.
    unsafe fn digit_product(x: Self, y: Self) -> Self;
}

/// Sums by column: twice a block's digits, less one, and one more for upper halves. In small blocks these are kept
/// apart, for there two chains of additions are as fast as the multipliers where one is not; a block of eight has chains
/// enough, and no registers for more.
struct Columns<V> {
    low: [V; 16],
    high: [V; 9],
}

impl<V: Vector> Columns<V> {
    /// Whether upper halves have columns of their own.
    const APART: bool = V::HALVES && V::TILE <= 5;

    /// Adds the upper half of a product to the column after `c`.
    #[inline(always)]
    unsafe fn add_high(&mut self, c: usize, x: V, y: V) {
        // SAFETY: the caller's.
        unsafe {
            if Self::APART {
                self.high[c] = self.high[c].add_high(x, y);
            } else if V::HALVES {
                self.low[c + 1] = self.low[c + 1].add_high(x, y);
            }
        }
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller's.
        unsafe { Self { low: [V::zero(); 16], high: [V::zero(); 9] } }
    }

    /// Adds `x[r] * y[j]` to column `r + j`.
    #[inline(always)]
    unsafe fn add(&mut self, r: usize, j: usize, x: V, y: V) {
        // SAFETY: the caller's.
        unsafe {
            self.low[r + j] = self.low[r + j].add_low(x, y);
            self.add_high(r + j, x, y);
        }
    }

    /// Adds the product of two blocks.
    #[inline(always)]
    unsafe fn tile(&mut self, x: *const u64, y: impl Fn(usize) -> V) {
        // SAFETY: the caller's; a block is `TILE` vectors.
        unsafe {
            let mut held = [V::zero(); 8];
            for r in 0..V::TILE {
                held[r] = V::load(x.add(r * V::LANES));
            }
            for j in 0..V::TILE {
                let y = y(j);
                for r in 0..V::TILE {
                    self.low[r + j] = self.low[r + j].add_low(held[r], y);
                }
                for r in 0..V::TILE {
                    self.add_high(r + j, held[r], y);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn double(&mut self) {
        // SAFETY: the caller's.
        unsafe {
            for c in 0..2 * V::TILE {
                self.low[c] = self.low[c].add(self.low[c]);
            }
            if Self::APART {
                for c in 0..2 * V::TILE - 1 {
                    self.high[c] = self.high[c].add(self.high[c]);
                }
            }
        }
    }

    /// Column `c` of the block, upper halves of the one before included.
    #[inline(always)]
    unsafe fn column(&self, c: usize) -> V {
        // SAFETY: the caller's.
        unsafe { if Self::APART && c > 0 { self.low[c].add(self.high[c - 1]) } else { self.low[c] } }
    }

    /// What goes on to the next block.
    #[inline(always)]
    unsafe fn rest(&self) -> [V; 8] {
        // SAFETY: the caller's.
        unsafe {
            let mut rest = [V::zero(); 8];
            for c in 0..V::TILE {
                rest[c] = self.column(V::TILE + c);
            }
            rest
        }
    }
}

/// What is multiplied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// `x[0] * y[0]`.
    Product,
    /// `2 * x[0] * y[0]`.
    Twice,
    /// `x[0] * y[0] + x[1] * y[1]`.
    Two,
    /// `x[0] * x[0]`.
    Square,
}

/// One part of a product: `out = (what is multiplied - less) / R` modulo n, below 2n if the factors are; `m` gets
/// the digits by which n was added.
///
/// Every slice is a part, `digits * LANES` words, or begins with one.
///
/// Sums: at most 4 * 160 halves of 52 bits or 3 * 304 products of 54 in a column, below 2^64.
///
/// # Safety
/// The instruction set is there.
#[inline(always)]
pub(crate) unsafe fn scan<V: Vector>(
    field: &Field,
    what: What,
    x: [&[u64]; 2],
    y: [&[u64]; 2],
    less: Option<&[u64]>,
    m: &mut [u64],
    out: &mut [u64],
) {
    const { assert!(V::TILE <= 8) };
    let tile = V::TILE;
    let block = tile * V::LANES;
    let blocks = field.digits / tile;
    // What the pointers below rely on.
    let (mut shortest, mut addresses) = (usize::MAX, 0);
    for part in [x[0], x[1], y[0], y[1], less.unwrap_or(x[0]), m, out] {
        shortest = shortest.min(part.len());
        addresses |= part.as_ptr().addr();
    }
    assert!(shortest >= blocks * block && addresses.is_multiple_of(8 * V::LANES));
    assert!(field.digits == blocks * tile && field.n.len().min(field.minuend.len()) >= field.digits);
    let (x, y) = (x.map(<[u64]>::as_ptr), y.map(<[u64]>::as_ptr));
    let less = less.map_or(std::ptr::null(), <[u64]>::as_ptr);
    let (m, out, n) = (m.as_mut_ptr(), out.as_mut_ptr(), field.n.as_ptr());
    // SAFETY: the instruction set is the caller's; every block's index is below `blocks`, and every slice was measured.
    unsafe {
        let mask = V::splat((1 << V::DIGIT_BITS) - 1);
        let inverse = V::splat(field.inverse);
        let mut carry = [V::zero(); 8];
        let mut ripple = V::zero();
        for k in 0..2 * blocks {
            let mut sum = Columns::<V>::zero();
            let first = k.saturating_sub(blocks - 1);
            if what == What::Square {
                let x = x[0];
                for i in first..k.div_ceil(2) {
                    let other = x.add((k - i) * block);
                    sum.tile(x.add(i * block), |j| V::load(other.add(j * V::LANES)));
                }
                let middle = x.add(k / 2 * block);
                let digit = |r: usize| V::load(middle.add(r * V::LANES));
                if k % 2 == 0 {
                    for r in 0..tile {
                        for j in r + 1..tile {
                            sum.add(r, j, digit(r), digit(j));
                        }
                    }
                }
                sum.double();
                if k % 2 == 0 {
                    for r in 0..tile {
                        sum.add(r, r, digit(r), digit(r));
                    }
                }
            } else {
                for i in first..=k.min(blocks - 1) {
                    let other = y[0].add((k - i) * block);
                    sum.tile(x[0].add(i * block), |j| V::load(other.add(j * V::LANES)));
                    if what == What::Two {
                        let other = y[1].add((k - i) * block);
                        sum.tile(x[1].add(i * block), |j| V::load(other.add(j * V::LANES)));
                    }
                }
                if what == What::Twice {
                    sum.double();
                }
            }
            for i in first..k.min(blocks) {
                let other = n.add((k - i) * tile);
                sum.tile(m.add(i * block), |j| V::splat(*other.add(j)));
            }

            if k < blocks {
                let mut n_low = [V::zero(); 8];
                for r in 0..tile {
                    n_low[r] = V::splat(*n.add(r));
                }
                for d in 0..tile {
                    let at = k * tile + d;
                    // What the last digit does not change first: the chain from digit to digit is what takes long.
                    let mut before = carry[d].add(ripple);
                    if !less.is_null() {
                        let minuend = V::splat(*field.minuend.as_ptr().add(at));
                        before = before.add(minuend.sub(V::load(less.add(at * V::LANES))));
                    }
                    let column = sum.column(d).add(before);
                    let digit = V::digit_product(column, inverse);
                    digit.store(m.add(at * V::LANES));
                    // The column's lowest digit becomes zero: with halves that carries unless it was zero before.
                    let whole = if V::HALVES { column.add(mask) } else { column.add_low(n_low[0], digit) };
                    ripple = whole.shift();
                    for r in 1..tile {
                        sum.low[d + r] = sum.low[d + r].add_low(n_low[r], digit);
                    }
                    for r in 0..tile {
                        sum.add_high(d + r, n_low[r], digit);
                    }
                }
            } else {
                for d in 0..tile {
                    let column = sum.column(d).add(carry[d]).add(ripple);
                    column.and(mask).store(out.add(((k - blocks) * tile + d) * V::LANES));
                    ripple = column.shift();
                }
            }
            carry = sum.rest();
        }
    }
}

/// `rounds` times ten independent additions of digit products: what multipliers do when nothing holds them up.
///
/// # Safety
/// The instruction set is there.
#[inline(always)]
pub(crate) unsafe fn peak<V: Vector>(rounds: u64, seed: u64, out: &mut Line) {
    const { assert!(V::LANES <= 8) };
    // SAFETY: the instruction set is the caller's; a line is a vector or two.
    unsafe {
        let (x, y) = (V::splat(seed), V::splat(seed ^ 5));
        let mut sums = [V::zero(); 10];
        for _ in 0..rounds {
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = if V::HALVES && i % 2 == 1 { sum.add_high(x, y) } else { sum.add_low(x, y) };
            }
        }
        let sum = sums.into_iter().fold(V::zero(), |a, b| a.add(b));
        sum.store(out.0.as_mut_ptr());
    }
}

/// A compiled [`scan`] for each use, so that none is inlined twice.
pub(crate) trait Scans: Vector {
    fn scan_product(_: Self::Token, f: &Field, x: &[u64], y: &[u64], m: &mut [u64], out: &mut [u64]);
    fn scan_twice(
        _: Self::Token,
        f: &Field,
        x: &[u64],
        y: &[u64],
        less: &[u64],
        m: &mut [u64],
        out: &mut [u64],
    );
    fn scan_two(
        _: Self::Token,
        f: &Field,
        x: [&[u64]; 2],
        y: [&[u64]; 2],
        less: Option<&[u64]>,
        m: &mut [u64],
        out: &mut [u64],
    );
    fn scan_square(_: Self::Token, f: &Field, x: &[u64], m: &mut [u64], out: &mut [u64]);
    fn peak(_: Self::Token, rounds: u64, seed: u64, out: &mut Line);
}

/// What an instruction set does with groups beside [`scan`].
///
/// A group is `digits * LANES` words, aligned to a vector; the field's groups have both parts of a pair, one after the
/// other. Functions panic where a slice is too short.
pub(crate) trait Kernel: Scans + Send + Sync + 'static {
    /// Bits of an exponent that one look into a fixed base's table covers.
    const TEETH: u32;
    /// Groups that one pass over a table of powers chooses.
    const CHOSEN: usize;

    /// Says that a line will be read soon.
    fn fetch(line: &Line);

    /// The first `lines` lines of at most [`Vector::LANES`] rows into a group, one a lane; lanes that are left repeat the
    /// first row.
    fn gather(_: Self::Token, rows: &[&[Line]], lines: usize, out: &mut [u64]);

    /// A group into rows of `lines` lines, at most [`Vector::LANES`], each from its start in `rows` on.
    fn scatter(
        _: Self::Token,
        group: &[u64],
        lines: usize,
        rows: &mut [Line],
        starts: impl Iterator<Item = usize>,
    );

    /// Lays out groups, `stride` words from one to the next, as [`Kernel::select`] wants them: a table of as many words as they
    /// have in `digits` digits. 32 groups, or 16 too where one is chosen at a time.
    fn arrange(_: Self::Token, groups: &[u64], stride: usize, digits: usize, table: &mut [u64]);

    /// For every lane of [`Kernel::CHOSEN`] groups the group `index[chosen][lane]` of a table, looking at all of them.
    fn select(_: Self::Token, table: &[u64], digits: usize, index: &[Line], out: &mut [u64]);

    /// Lays out the rows of one table of 2^[`Kernel::TEETH`] entries as [`Kernel::look_up`] wants them.
    fn lay_out(rows: &[&[u64]], digits: usize) -> Vec<u64>;

    /// For every lane of `groups` groups the entry `index[group][lane]` of a table, looking at all of them.
    fn look_up(_: Self::Token, table: &[u64], digits: usize, index: &[u8], groups: usize, out: &mut [u64]);
}

/// Room for the digits by which n is added, a part for each half of a product.
pub(crate) struct Scratch<'a>(pub(crate) [&'a mut [u64]; 2]);

/// `out = x * y`, groups.
pub(crate) fn multiply<V: Scans>(
    token: V::Token,
    f: &Field,
    x: &[u64],
    y: &[u64],
    out: &mut [u64],
    scratch: Scratch<'_>,
) {
    let part = f.digits * V::LANES;
    let [m0, m1] = scratch.0;
    V::scan_product(token, f, x, y, m0, out);
    if f.parts == 2 {
        let ((x0, x1), (y0, y1)) = (x.split_at(part), y.split_at(part));
        V::scan_two(token, f, [x0, x1], [y1, y0], Some(m0), m1, &mut out[part..]);
    }
}

/// `out = x * x`, groups.
pub(crate) fn square<V: Scans>(token: V::Token, f: &Field, x: &[u64], out: &mut [u64], scratch: Scratch<'_>) {
    let part = f.digits * V::LANES;
    let [m0, m1] = scratch.0;
    V::scan_square(token, f, x, m0, out);
    if f.parts == 2 {
        let (x0, x1) = x.split_at(part);
        V::scan_twice(token, f, x0, x1, m0, m1, &mut out[part..]);
    }
}

/// `out = x[0] * y[0] + x[1] * y[1]`, each `x` a single part of any digits, `y` and `out` groups.
pub(crate) fn enter<V: Scans>(
    token: V::Token,
    f: &Field,
    x: [&[u64]; 2],
    y: [&[u64]; 2],
    out: &mut [u64],
    scratch: Scratch<'_>,
) {
    let part = f.digits * V::LANES;
    let [m0, m1] = scratch.0;
    if f.parts == 1 {
        V::scan_product(token, f, x[0], y[0], m0, out);
    } else {
        V::scan_two(token, f, x, y, None, m0, out);
        V::scan_two(token, f, x, y.map(|y| &y[part..]), Some(m0), m1, &mut out[part..]);
    }
}

/// Implements [`Scans`] for a vector, compiled with its features, which its token stands for.
macro_rules! scans {
    ($module:ident, $vector:ty, $features:literal) => {
        mod $module {
            use super::*;
            use crate::arch::vector::bigmod::{What, peak, scan};

            #[target_feature(enable = $features)]
            pub(super) fn product(f: &Field, x: &[u64], y: &[u64], m: &mut [u64], out: &mut [u64]) {
                // SAFETY: this function is compiled for the instruction set, so it's there.
                unsafe { scan::<$vector>(f, What::Product, [x; 2], [y; 2], None, m, out) }
            }
            #[target_feature(enable = $features)]
            pub(super) fn twice(
                f: &Field,
                x: &[u64],
                y: &[u64],
                less: &[u64],
                m: &mut [u64],
                out: &mut [u64],
            ) {
                // SAFETY: as above.
                unsafe { scan::<$vector>(f, What::Twice, [x; 2], [y; 2], Some(less), m, out) }
            }
            #[target_feature(enable = $features)]
            pub(super) fn two(
                f: &Field,
                x: [&[u64]; 2],
                y: [&[u64]; 2],
                less: Option<&[u64]>,
                m: &mut [u64],
                out: &mut [u64],
            ) {
                // SAFETY: as above.
                unsafe { scan::<$vector>(f, What::Two, x, y, less, m, out) }
            }
            #[target_feature(enable = $features)]
            pub(super) fn square(f: &Field, x: &[u64], m: &mut [u64], out: &mut [u64]) {
                // SAFETY: as above.
                unsafe { scan::<$vector>(f, What::Square, [x; 2], [x; 2], None, m, out) }
            }
            #[target_feature(enable = $features)]
            pub(super) fn multipliers(rounds: u64, seed: u64, out: &mut Line) {
                // SAFETY: as above.
                unsafe { peak::<$vector>(rounds, seed, out) }
            }
        }

        impl crate::arch::vector::bigmod::Scans for $vector {
            fn scan_product(_: Self::Token, f: &Field, x: &[u64], y: &[u64], m: &mut [u64], out: &mut [u64]) {
                // SAFETY: the token stands for these features, here and below.
                unsafe { $module::product(f, x, y, m, out) }
            }
            fn scan_twice(
                _: Self::Token,
                f: &Field,
                x: &[u64],
                y: &[u64],
                less: &[u64],
                m: &mut [u64],
                out: &mut [u64],
            ) {
                // SAFETY: see `scan_product`.
                unsafe { $module::twice(f, x, y, less, m, out) }
            }
            fn scan_two(
                _: Self::Token,
                f: &Field,
                x: [&[u64]; 2],
                y: [&[u64]; 2],
                less: Option<&[u64]>,
                m: &mut [u64],
                out: &mut [u64],
            ) {
                // SAFETY: see `scan_product`.
                unsafe { $module::two(f, x, y, less, m, out) }
            }
            fn scan_square(_: Self::Token, f: &Field, x: &[u64], m: &mut [u64], out: &mut [u64]) {
                // SAFETY: see `scan_product`.
                unsafe { $module::square(f, x, m, out) }
            }
            fn peak(_: Self::Token, rounds: u64, seed: u64, out: &mut Line) {
                // SAFETY: see `scan_product`.
                unsafe { $module::multipliers(rounds, seed, out) }
            }
        }
    };
}
pub(crate) use scans;
