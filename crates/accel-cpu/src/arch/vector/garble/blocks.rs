//! Vectors of labels, where they lie, and their hash, for any width.

use blindcore_accel::garble::Label;

/// A vector of `N` blocks of 128 bits.
///
/// All functions need the instruction set that their vector stands for: that is what is unsafe about them, besides
/// the pointers.
pub(crate) trait Blocks: Copy {
    const N: usize;
    unsafe fn zero() -> Self;
    unsafe fn splat(label: Label) -> Self;
    /// `l * step` in the lower half of block `l`.
    unsafe fn steps(step: u64) -> Self;
    /// `x` added to the lower half of every block.
    unsafe fn add_low(self, x: u64) -> Self;
    /// `N` blocks from one address, which need not be aligned.
    unsafe fn load(from: *const Label) -> Self;
    unsafe fn store(self, to: *mut Label);
    /// Block `l` from `from[at[l]]`.
    unsafe fn gather(from: *const Label, at: [usize; 4]) -> Self;
    /// Block `l` to `to[at[l]]` for `l < count`.
    unsafe fn scatter(self, to: *mut Label, at: [usize; 4], count: usize);
    /// `self` and `other`, block by block in turn, to `2 N` blocks.
    unsafe fn store_pairs(self, other: Self, to: *mut Label);
    /// What [`Blocks::store_pairs`] stored.
    unsafe fn load_pairs(from: *const Label) -> (Self, Self);
    /// Of four vectors the blocks `l`, one after the other, to `to[at[l]]` and what follows.
    unsafe fn store_quads(quads: [Self; 4], to: *mut Label, at: [usize; 4]);
    /// What [`Blocks::store_quads`] stored.
    unsafe fn load_quads(from: *const Label, at: [usize; 4]) -> [Self; 4];
    /// Asks for a line that will be read; any address will do.
    unsafe fn prefetch(at: *const Label);
    /// One block: `out = a ^ b`.
    unsafe fn xor_one(out: *mut Label, a: *const Label, b: *const Label);
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn and(self, other: Self) -> Self;
    /// All ones in every block whose lowest bit is 1.
    unsafe fn colors(self) -> Self;
    unsafe fn aes(self, key: Self) -> Self;
    unsafe fn aes_last(self, key: Self) -> Self;
}

/// Where the blocks of a layer's vectors come from and go to.
pub(crate) trait Places<B: Blocks>: Copy {
    /// Operands of vector `at`.
    unsafe fn operands(&self, at: usize) -> (B, B);
    /// The tweaks of its gates' first hashes.
    unsafe fn tweaks(&self, at: usize) -> B;
    unsafe fn put_label(&self, at: usize, out: B);
    /// The rows of `Q` vectors from `at` on.
    unsafe fn put_rows<const Q: usize>(&self, at: usize, garblers: &[B; Q], evaluators: &[B; Q]);
    unsafe fn rows<const Q: usize>(&self, at: usize) -> ([B; Q], [B; Q]);
    /// The gates' places in the tables, and how many there are; the last again where there are no more.
    fn places(&self, at: usize) -> ([usize; 4], usize);
}

/// TMMO of `K * Q` vectors at once, each with its tweak: `pi(pi(x) ^ t) ^ pi(x)`.
#[inline(always)]
pub(crate) unsafe fn hash<B: Blocks, const K: usize, const Q: usize>(
    keys: &[B; 11],
    x: &[[B; Q]; K],
    tweaks: &[[B; Q]; K],
) -> [[B; Q]; K] {
    // SAFETY: the caller has the instruction set.
    unsafe {
        let mut inner = *x;
        permute(keys, &mut inner);
        let mut outer = inner;
        for (o, t) in outer.as_flattened_mut().iter_mut().zip(tweaks.as_flattened()) {
            *o = o.xor(*t);
        }
        permute(keys, &mut outer);
        for (o, i) in outer.as_flattened_mut().iter_mut().zip(inner.as_flattened()) {
            *o = o.xor(*i);
        }
        outer
    }
}

/// AES-128, round by round over all vectors, so that as many are in flight.
#[inline(always)]
pub(crate) unsafe fn permute<B: Blocks, const K: usize, const Q: usize>(keys: &[B; 11], x: &mut [[B; Q]; K]) {
    // SAFETY: the caller has the instruction set.
    unsafe { permute_both::<B, K, 0, Q>(keys, x, &mut []) }
}

/// The same of two arrays that have nothing to do with each other.
#[inline(always)]
pub(crate) unsafe fn permute_both<B: Blocks, const K: usize, const L: usize, const Q: usize>(
    keys: &[B; 11],
    x: &mut [[B; Q]; K],
    y: &mut [[B; Q]; L],
) {
    // SAFETY: the caller has the instruction set.
    unsafe {
        let (x, y) = (x.as_flattened_mut(), y.as_flattened_mut());
        for v in &mut *x {
            *v = v.xor(keys[0]);
        }
        for v in &mut *y {
            *v = v.xor(keys[0]);
        }
        for key in &keys[1..10] {
            for v in &mut *x {
                *v = v.aes(*key);
            }
            for v in &mut *y {
                *v = v.aes(*key);
            }
        }
        for v in x {
            *v = v.aes_last(keys[10]);
        }
        for v in y {
            *v = v.aes_last(keys[10]);
        }
    }
}
