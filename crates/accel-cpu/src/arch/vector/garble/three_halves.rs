//! Three halves in vectors: what `blindcore_accel::garble::three_halves` defines, solved for the ciphertexts.
//!
//! Twelve AES a gate to garble, six to evaluate. With `A0`, `B0` the labels of colour 0, `a` and `b` the colours at which
//! the output is 1, `d` and `e` the random bits, `U` and `L` the upper and lower half of a label where the other is 0:
//!
//! ```text
//!   F(A, B) = swap(A) ^ B ^ U(A)        G(A, B) = A ^ swap(B) ^ L(B)         the two matrices that are chosen from
//!   C0  =              d F(A0, B0) ^ e G(A0, B0) ^ U(B0) ^ L(A0) ^ !a !b offset ^ [hashes]
//!   X10 =        b F(A0, B0) ^ (a ^ b) G(A0, B0) ^ R_10 (offset, 0) ^ U(B0) ^ L(offset) ^ !b offset
//!   X01 =  (a ^ b) F(A0, B0) ^      a  G(A0, B0) ^ R_01 (0, offset) ^ L(A0) ^ U(offset) ^ !a offset
//!   X11 =  (a ^ b) F(A1, B0) ^      a  G(A1, B0) ^ R_11 (0, offset) ^ a offset
//!   G0  = both halves of X10 ^ H(A0) ^ H(A1)
//!   G1  = both halves of X01 ^ H(B0) ^ H(B1)
//!   G2  = the upper half of X11 ^ H(A0 ^ B0) ^ H(A0 ^ B1)
//! ```
//!
//! `X10`, `X01` and `X11` are sums of two right sides each: of the colours 00 and 10, 00 and 01, 10 and 11.

use blindcore_accel::garble::Label;
use blindcore_accel::garble::three_halves::{ROW, first_of_dice};

use super::blocks::{Blocks, Places, hash};
use super::job::RawTables;

/// What three halves want of a vector besides.
///
/// What is unsafe is as of [`Blocks`].
pub(crate) trait Halves: Blocks {
    /// The lower halves of both: `self`'s below, `other`'s above.
    unsafe fn lower(self, other: Self) -> Self;
    /// The upper halves of both: `self`'s below, `other`'s above.
    unsafe fn upper(self, other: Self) -> Self;
    /// Halves exchanged.
    unsafe fn swap(self) -> Self;
    /// Both halves shifted towards the lowest bit.
    unsafe fn right<const BITS: u32>(self) -> Self;
    /// Both halves shifted towards the highest bit.
    unsafe fn left<const BITS: u32>(self) -> Self;
    /// The lowest bit of a word in the lowest bit of the lower half, the next one in that of the upper; other bits are
    /// of no meaning.
    unsafe fn pairs(words: [u64; 4]) -> Self;
    /// Rows from byte addresses: 16 bytes, and the 9 after them.
    unsafe fn load_rows(from: *const u8, at: [usize; 4]) -> (Self, Self);
    /// The first `count` rows to byte addresses: `self`, and 9 bytes of `rest`.
    unsafe fn store_rows(self, rest: Self, to: *mut u8, at: [usize; 4], count: usize);
}

/// All vectors of a layer.
///
/// # Safety
/// As of [`gates::run`](super::gates::run); `dice` are the random bits from gate `first_gate` on, if this garbles.
#[inline(always)]
pub(super) unsafe fn all<B: Halves, P: Places<B>>(
    keys: &[B; 11],
    tables: RawTables,
    dice: &[Label],
    first_gate: u64,
    places: P,
    vectors: usize,
) {
    // SAFETY: as this function's.
    unsafe {
        let mut at = 0;
        match tables {
            RawTables::Garble(offset, rows) => {
                let dice =
                    Dice { bits: dice.as_ptr().cast(), skipped: first_gate - first_of_dice(first_gate) };
                let offset = Constants::new(offset);
                // Six hashes of one vector keep AES busy; twelve would not fit the registers.
                while at < vectors {
                    garble_at::<B, P, 1>(keys, &offset, dice, places, rows, at);
                    at += 1;
                }
            }
            RawTables::Evaluate(rows) => {
                while at + 1 < vectors {
                    evaluate_at::<B, P, 2>(keys, places, rows, at);
                    at += 2;
                }
                if at < vectors {
                    evaluate_at::<B, P, 1>(keys, places, rows, at);
                }
            }
        }
    }
}

/// Two bits a gate.
#[derive(Clone, Copy)]
struct Dice {
    bits: *const u8,
    /// Gates before the first of the job.
    skipped: u64,
}

impl Dice {
    /// A word whose lowest two bits are those of a gate, by its place in the tables.
    #[inline(always)]
    unsafe fn of(self, place: usize) -> u64 {
        let gate = self.skipped as usize + place;
        // SAFETY: there are bits for every gate of the job.
        u64::from(unsafe { *self.bits.add(gate / 4) }) >> (2 * (gate % 4))
    }
}

/// What comes of the offset alone.
struct Constants<B> {
    offset: B,
    /// `F(offset, 0)`.
    first: B,
    /// `G(0, offset)`.
    second: B,
    upper: B,
    lower: B,
}

impl<B: Halves> Constants<B> {
    #[inline(always)]
    unsafe fn new(offset: Label) -> Self {
        const LOWER: Label = u64::MAX as Label;
        let swapped = offset.rotate_left(64);
        // SAFETY: the caller has the instruction set.
        unsafe {
            Self {
                offset: B::splat(offset),
                first: B::splat(swapped ^ (offset & !LOWER)),
                second: B::splat(swapped ^ (offset & LOWER)),
                upper: B::splat(offset & !LOWER),
                lower: B::splat(offset & LOWER),
            }
        }
    }
}

/// The upper half of one and the lower of the other.
#[inline(always)]
unsafe fn join<B: Halves>(upper: B, lower: B) -> B {
    // SAFETY: the caller has the instruction set.
    unsafe {
        let mask = B::splat(u64::MAX as Label);
        upper.xor(mask.and(upper.xor(lower)))
    }
}

/// `F(a, b)` and `G(a, b)`.
#[inline(always)]
unsafe fn choices<B: Halves>(a: B, b: B) -> (B, B) {
    // SAFETY: the caller has the instruction set.
    unsafe {
        let zero = B::zero();
        (a.swap().xor(b).xor(join(a, zero)), a.xor(b.swap()).xor(join(zero, b)))
    }
}

/// Tweaks of a gate's three hashes from its number.
#[inline(always)]
unsafe fn tweaks<B: Halves>(gate: B) -> [B; 3] {
    // SAFETY: the caller has the instruction set.
    unsafe { [gate, gate.xor(B::splat(1 << 64)), gate.xor(B::splat(2 << 64))] }
}

#[inline(always)]
unsafe fn garble_at<B: Halves, P: Places<B>, const Q: usize>(
    keys: &[B; 11],
    constants: &Constants<B>,
    dice: Dice,
    places: P,
    rows: *mut u8,
    at: usize,
) {
    // SAFETY: as of `all`.
    unsafe {
        let offset = constants.offset;
        let mut colors = [[B::zero(); Q]; 2];
        let (mut x, mut t) = ([[B::zero(); Q]; 6], [[B::zero(); Q]; 6]);
        for q in 0..Q {
            let ((a, b), gate) = (places.operands(at + q), places.tweaks(at + q));
            colors[0][q] = a.colors();
            colors[1][q] = b.colors();
            x[0][q] = a.xor(colors[0][q].and(offset));
            x[2][q] = b.xor(colors[1][q].and(offset));
            x[4][q] = x[0][q].xor(x[2][q]);
            let tweaks = tweaks(gate);
            for which in 0..3 {
                x[2 * which + 1][q] = x[2 * which][q].xor(offset);
                t[2 * which][q] = tweaks[which];
                t[2 * which + 1][q] = tweaks[which];
            }
        }
        let h = hash(keys, &x, &t);
        for q in 0..Q {
            let (a, b, color_a, color_b) = (x[0][q], x[2][q], colors[0][q], colors[1][q]);
            let ones = B::splat(Label::MAX);
            let (true_a, true_b, differ) = (color_a.xor(ones), color_b.xor(ones), color_a.xor(color_b));
            let (place, count) = places.places(at + q);
            let d = B::pairs([dice.of(place[0]), dice.of(place[1]), dice.of(place[2]), dice.of(place[3])]);
            let (d_1, d_2) = (d.swap().colors(), d.colors());
            let (first, second) = choices(a, b);
            let (left, right) = (h[0][q].xor(h[4][q]), h[2][q].xor(h[4][q]));

            let out = right.lower(left).xor(d_1.and(first)).xor(d_2.and(second));
            let out = out.xor(join(b, a)).xor(color_a.and(color_b).and(offset));
            places.put_label(at + q, out);

            let x_10 = true_b.and(first).xor(differ.and(second)).xor(color_b.and(offset));
            let x_10 = x_10.xor(d_1.xor(true_b).and(constants.first)).xor(d_2.xor(differ).and(offset));
            let x_10 = x_10.xor(join(b, constants.lower));
            let x_01 = differ.and(first).xor(true_a.and(second)).xor(color_a.and(offset));
            let x_01 = x_01.xor(d_1.xor(differ).and(offset)).xor(d_2.xor(true_a).and(constants.second));
            let x_01 = x_01.xor(join(constants.upper, a));
            // The summands of a's offset meet and vanish but for one.
            let x_11 = differ.and(first.xor(constants.first)).xor(true_a.and(second.xor(offset)));
            let x_11 = x_11.xor(d_1.and(offset)).xor(d_2.xor(true_b).and(constants.second));

            let (of_a, of_b, of_both) = (h[0][q].xor(h[1][q]), h[2][q].xor(h[3][q]), h[4][q].xor(h[5][q]));
            let g_0 = x_10.xor(x_10.swap()).xor(of_a);
            let g_1 = x_01.xor(x_01.swap()).xor(of_b);
            let g_2 = x_11.swap().xor(of_both);

            // Control bits: first and second; third and fourth; fifth.
            let bit = B::splat(1 << 64 | 1);
            let two = right.upper(left).xor(d).and(bit);
            let four = of_b.upper(of_a).xor(join(true_a, true_b)).and(bit);
            let fifth = of_both.xor(differ).and(bit);
            let pairs = two.xor(four.left::<2>());
            let control = pairs.xor(pairs.swap().left::<1>()).xor(fifth.left::<4>());
            g_0.lower(g_1).store_rows(join(control, g_2), rows, place.map(|place| ROW * place), count);
        }
    }
}

#[inline(always)]
unsafe fn evaluate_at<B: Halves, P: Places<B>, const Q: usize>(
    keys: &[B; 11],
    places: P,
    rows: *const u8,
    at: usize,
) {
    // SAFETY: as of `all`.
    unsafe {
        let (mut x, mut t) = ([[B::zero(); Q]; 3], [[B::zero(); Q]; 3]);
        for q in 0..Q {
            let ((a, b), gate) = (places.operands(at + q), places.tweaks(at + q));
            x[0][q] = a;
            x[1][q] = b;
            x[2][q] = a.xor(b);
            [t[0][q], t[1][q], t[2][q]] = tweaks(gate);
        }
        let h = hash(keys, &x, &t);
        for q in 0..Q {
            let (a, b) = (x[0][q], x[1][q]);
            let (place, _) = places.places(at + q);
            let (halves, rest) = B::load_rows(rows, place.map(|place| ROW * place));
            let (color_a, color_b) = (a.colors(), b.colors());
            let (differ, colors) = (color_a.xor(color_b), join(color_a, color_b));
            let (left, right) = (h[0][q].xor(h[2][q]), h[1][q].xor(h[2][q]));

            let bits = rest.upper(rest);
            let two = join(bits, bits.right::<1>());
            let control = right.upper(left).xor(two).xor(two.right::<2>().and(colors));
            let control = control.xor(bits.right::<4>().and(differ));
            let (first, second) = choices(a, b);

            let out = right.lower(left).xor(halves.swap().and(colors)).xor(rest.lower(rest).and(differ));
            let out = out.xor(control.swap().colors().and(first)).xor(control.colors().and(second));
            let fixed = join(b, a);
            places.put_label(at + q, out.xor(fixed).xor(fixed.and(colors)));
        }
    }
}
