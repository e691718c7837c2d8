//! Half gates (Zahur, Rosulek and Evans 2015), for any width of vector.
//!
//! A hash is two permutations, one after the other, and each waits for what it reads. So units of gates roll: the first
//! permutation of one goes round by round with the second of the unit before it, and twice as many blocks are in flight as
//! registers could hold of one permutation's gates.

use super::blocks::{Blocks, Places, permute, permute_both};
use super::job::RawTables;

/// All vectors of a layer.
#[inline(always)]
pub(super) unsafe fn all<B: Blocks, P: Places<B>>(
    keys: &[B; 11],
    tables: RawTables,
    places: P,
    vectors: usize,
) {
    // SAFETY: as of [`super::gates::run`].
    unsafe {
        match tables {
            RawTables::Garble(offset, _) => {
                let garbler = Garbler { offset: B::splat(offset) };
                // Two vectors in a unit do not fit the registers (docs/decisions/0015-garbling.md).
                roll::<B, P, _, 1, 4>(keys, &garbler, places, 0, vectors);
            }
            RawTables::Evaluate(_) => {
                let at = match B::N {
                    1 => roll::<B, P, _, 2, 2>(keys, &Evaluator, places, 0, vectors),
                    _ => roll::<B, P, _, 4, 2>(keys, &Evaluator, places, 0, vectors),
                };
                roll::<B, P, _, 1, 2>(keys, &Evaluator, places, at, vectors);
            }
        }
    }
}

/// Units of `Q` vectors from `at` on, as many as there are whole ones; the first vector that is left.
#[inline(always)]
unsafe fn roll<B: Blocks, P: Places<B>, S: Side<B, Q, K>, const Q: usize, const K: usize>(
    keys: &[B; 11],
    side: &S,
    places: P,
    mut at: usize,
    vectors: usize,
) -> usize {
    // SAFETY: as of [`super::gates::run`].
    unsafe {
        if at + Q > vectors {
            return at;
        }
        let (mut outer, unit) = side.load(places, at);
        permute(keys, &mut outer);
        let mut unit = side.between(places, at, unit, &mut outer);
        at += Q;
        while at + Q <= vectors {
            let (mut inner, next) = side.load(places, at);
            permute_both(keys, &mut outer, &mut inner);
            side.put(places, at - Q, unit, &outer);
            unit = side.between(places, at, next, &mut inner);
            outer = inner;
            at += Q;
        }
        permute(keys, &mut outer);
        side.put(places, at - Q, unit, &outer);
        at
    }
}

/// What one of the sides does with a unit of `Q` vectors of gates, of `K` hashes each. It carries along as few vectors as
/// it can: those that don't fit the registers have to be stored.
///
/// What is unsafe is as of [`Places`].
trait Side<B: Blocks, const Q: usize, const K: usize> {
    /// What is left of the operands during the first permutation, and what of all during the second.
    type Loaded: Copy;
    type Carried: Copy;
    /// What is hashed.
    unsafe fn load<P: Places<B>>(&self, places: P, at: usize) -> ([[B; Q]; K], Self::Loaded);
    /// Makes the second permutation's blocks of what the first gave.
    unsafe fn between<P: Places<B>>(
        &self,
        places: P,
        at: usize,
        loaded: Self::Loaded,
        x: &mut [[B; Q]; K],
    ) -> Self::Carried;
    /// Ends the unit with what the second permutation gave.
    unsafe fn put<P: Places<B>>(&self, places: P, at: usize, carried: Self::Carried, x: &[[B; Q]; K]);
}

/// The garbler: four hashes a gate, of `a`, `a ^ offset`, `b` and `b ^ offset`.
struct Garbler<B> {
    offset: B,
}

impl<B: Blocks, const Q: usize> Side<B, Q, 4> for Garbler<B> {
    type Loaded = [[B; Q]; 2];
    /// Both operands; what the first permutation gives to the garbler's row, the evaluator's and the label.
    type Carried = [[B; Q]; 5];

    #[inline(always)]
    unsafe fn load<P: Places<B>>(&self, places: P, at: usize) -> ([[B; Q]; 4], Self::Loaded) {
        // SAFETY: the caller's.
        unsafe {
            let mut x = [[B::zero(); Q]; 4];
            for q in 0..Q {
                let (a, b) = places.operands(at + q);
                (x[0][q], x[1][q]) = (a, a.xor(self.offset));
                (x[2][q], x[3][q]) = (b, b.xor(self.offset));
            }
            (x, [x[0], x[2]])
        }
    }

    #[inline(always)]
    unsafe fn between<P: Places<B>>(
        &self,
        places: P,
        at: usize,
        [a, b]: Self::Loaded,
        x: &mut [[B; Q]; 4],
    ) -> Self::Carried {
        // SAFETY: the caller's.
        unsafe {
            let mut carried = [a, b, a, a, a];
            for q in 0..Q {
                carried[2][q] = x[0][q].xor(x[1][q]).xor(b[q].colors().and(self.offset));
                carried[3][q] = x[2][q].xor(x[3][q]);
                carried[4][q] = x[0][q].xor(x[2][q]);
                let first = places.tweaks(at + q);
                let second = first.add_low(1);
                (x[0][q], x[1][q]) = (x[0][q].xor(first), x[1][q].xor(first));
                (x[2][q], x[3][q]) = (x[2][q].xor(second), x[3][q].xor(second));
            }
            carried
        }
    }

    #[inline(always)]
    unsafe fn put<P: Places<B>>(&self, places: P, at: usize, carried: Self::Carried, x: &[[B; Q]; 4]) {
        // SAFETY: the caller's.
        unsafe {
            let [a, b, mut garblers, mut evaluators, out] = carried;
            for q in 0..Q {
                garblers[q] = garblers[q].xor(x[0][q]).xor(x[1][q]);
                // The evaluator's half, before the label of a comes in.
                let plain = evaluators[q].xor(x[2][q]).xor(x[3][q]);
                evaluators[q] = plain.xor(a[q]);
                let of_a = a[q].colors().and(garblers[q]);
                let of_b = b[q].colors().and(plain);
                places.put_label(at + q, out[q].xor(x[0][q]).xor(x[2][q]).xor(of_a).xor(of_b));
            }
            places.put_rows(at, &garblers, &evaluators);
        }
    }
}

/// The evaluator: two hashes a gate, of `a` and `b`.
struct Evaluator;

impl<B: Blocks, const Q: usize> Side<B, Q, 2> for Evaluator {
    /// What the rows give to the label; with it what the first permutation does.
    type Loaded = [B; Q];
    type Carried = [B; Q];

    #[inline(always)]
    unsafe fn load<P: Places<B>>(&self, places: P, at: usize) -> ([[B; Q]; 2], Self::Loaded) {
        // SAFETY: the caller's.
        unsafe {
            let (garblers, evaluators) = places.rows::<Q>(at);
            let mut x = [garblers; 2];
            let mut given = garblers;
            for q in 0..Q {
                let (a, b) = places.operands(at + q);
                (x[0][q], x[1][q]) = (a, b);
                given[q] = a.colors().and(garblers[q]).xor(b.colors().and(evaluators[q].xor(a)));
            }
            (x, given)
        }
    }

    #[inline(always)]
    unsafe fn between<P: Places<B>>(
        &self,
        places: P,
        at: usize,
        mut given: Self::Loaded,
        x: &mut [[B; Q]; 2],
    ) -> Self::Carried {
        for q in 0..Q {
            // SAFETY: the caller's.
            unsafe {
                given[q] = given[q].xor(x[0][q]).xor(x[1][q]);
                let first = places.tweaks(at + q);
                (x[0][q], x[1][q]) = (x[0][q].xor(first), x[1][q].xor(first.add_low(1)));
            }
        }
        given
    }

    #[inline(always)]
    unsafe fn put<P: Places<B>>(&self, places: P, at: usize, given: Self::Carried, x: &[[B; Q]; 2]) {
        for q in 0..Q {
            // SAFETY: the caller's.
            unsafe { places.put_label(at + q, given[q].xor(x[0][q]).xor(x[1][q])) }
        }
    }
}
