//! Half gates (Zahur, Rosulek and Evans 2015), for any width of vector.

use super::blocks::{Blocks, Places, hash};
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
        let mut at = 0;
        match tables {
            RawTables::Garble(offset, _) => {
                let offset = B::splat(offset);
                while at + 1 < vectors {
                    garble_at::<B, P, 2>(keys, offset, places, at);
                    at += 2;
                }
                if at < vectors {
                    garble_at::<B, P, 1>(keys, offset, places, at);
                }
            }
            RawTables::Evaluate(_) => {
                while at + 3 < vectors {
                    evaluate_at::<B, P, 4>(keys, places, at);
                    at += 4;
                }
                if at + 1 < vectors {
                    evaluate_at::<B, P, 2>(keys, places, at);
                    at += 2;
                }
                if at < vectors {
                    evaluate_at::<B, P, 1>(keys, places, at);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn garble_at<B: Blocks, P: Places<B>, const Q: usize>(
    keys: &[B; 11],
    offset: B,
    places: P,
    at: usize,
) {
    // SAFETY: as of [`super::gates::run`].
    unsafe {
        let (mut a, mut b, mut t) = ([B::zero(); Q], [B::zero(); Q], [B::zero(); Q]);
        for q in 0..Q {
            (a[q], b[q], t[q]) = places.operands(at + q);
        }
        let garbled = garble(keys, offset, &a, &b, &t);
        for q in 0..Q {
            places.put_label(at + q, garbled.out[q]);
            places.put_rows(at + q, garbled.garblers[q], garbled.evaluators[q]);
        }
    }
}

#[inline(always)]
unsafe fn evaluate_at<B: Blocks, P: Places<B>, const Q: usize>(keys: &[B; 11], places: P, at: usize) {
    // SAFETY: as of [`super::gates::run`].
    unsafe {
        let mut x = [[B::zero(); Q]; 4];
        let mut t = [B::zero(); Q];
        for q in 0..Q {
            (x[0][q], x[1][q], t[q]) = places.operands(at + q);
            (x[2][q], x[3][q]) = places.rows(at + q);
        }
        let out = evaluate(keys, &x, &t);
        for q in 0..Q {
            places.put_label(at + q, out[q]);
        }
    }
}

/// `Q` vectors of gates, garbled.
struct Garbled<B, const Q: usize> {
    /// Labels of 0.
    out: [B; Q],
    garblers: [B; Q],
    evaluators: [B; Q],
}

/// Half gates' garbling. `tweaks` are those of the gates' first hashes.
#[inline(always)]
unsafe fn garble<B: Blocks, const Q: usize>(
    keys: &[B; 11],
    offset: B,
    a: &[B; Q],
    b: &[B; Q],
    tweaks: &[B; Q],
) -> Garbled<B, Q> {
    // SAFETY: the caller has the instruction set.
    unsafe {
        let mut x = [*a, *a, *b, *b];
        let mut t = [*tweaks; 4];
        for q in 0..Q {
            x[1][q] = a[q].xor(offset);
            x[3][q] = b[q].xor(offset);
            t[2][q] = tweaks[q].add_low(1);
            t[3][q] = t[2][q];
        }
        let h = hash(keys, &x, &t);
        let mut garbled = Garbled { out: *a, garblers: *a, evaluators: *a };
        for q in 0..Q {
            let (color_a, color_b) = (a[q].colors(), b[q].colors());
            let garblers = h[0][q].xor(h[1][q]).xor(color_b.and(offset));
            // The evaluator's half, before the label of a comes in.
            let plain = h[2][q].xor(h[3][q]);
            garbled.garblers[q] = garblers;
            garbled.evaluators[q] = plain.xor(a[q]);
            garbled.out[q] = h[0][q].xor(color_a.and(garblers)).xor(h[2][q]).xor(color_b.and(plain));
        }
        garbled
    }
}

/// Half gates' evaluation.
#[inline(always)]
unsafe fn evaluate<B: Blocks, const Q: usize>(
    keys: &[B; 11],
    [a, b, garblers, evaluators]: &[[B; Q]; 4],
    tweaks: &[B; Q],
) -> [B; Q] {
    // SAFETY: the caller has the instruction set.
    unsafe {
        let mut t = [*tweaks; 2];
        for q in 0..Q {
            t[1][q] = tweaks[q].add_low(1);
        }
        let h = hash(keys, &[*a, *b], &t);
        let mut out = *a;
        for q in 0..Q {
            let of_a = a[q].colors().and(garblers[q]);
            let of_b = b[q].colors().and(evaluators[q].xor(a[q]));
            out[q] = h[0][q].xor(of_a).xor(h[1][q]).xor(of_b);
        }
        out
    }
}
