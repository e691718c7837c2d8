//! What tests of noise share.

use blindcore_rlwe::{Pair, Ring};

use super::{LANE_BITS, Secret};

/// The noise of each coefficient of a pair of a ring: its phase less `message`, the residue that it encrypts there.
pub(in crate::schemes) fn noise(
    secret: &Secret,
    ring: &Ring,
    pair: &Pair,
    message: &dyn Fn(usize) -> i128,
) -> Vec<f64> {
    let mut phase = pair.mask.clone();
    ring.multiply(&mut phase, &secret.key().values(ring));
    ring.negate(&mut phase);
    ring.add(&mut phase, &pair.body);
    let (phase, q) = (ring.inverse(phase), ring.modulus() as i128);
    let off = |at: usize, phase: i128| {
        let off = (phase - message(at)).rem_euclid(q);
        if off > q / 2 { (off - q) as f64 } else { off as f64 }
    };
    ring.centred(&phase).iter().enumerate().map(|(at, phase)| off(at, *phase)).collect()
}

/// The mean square of noises.
pub(in crate::schemes) fn square(noise: &[f64]) -> f64 {
    noise.iter().map(|off| off * off).sum::<f64>() / noise.len() as f64
}

/// Shows a stage's measured variance beside what it is sized by, and compares them.
#[allow(clippy::print_stderr, reason = "noise is shown beside what it is sized by")]
pub(in crate::schemes) fn near(what: &str, stage: &str, measured: f64, predicted: f64) {
    let (measured, predicted) = (measured.log2() / 2.0, predicted.log2() / 2.0);
    eprintln!("{what:12} {stage:24} 2^{measured:.2}, sized by 2^{predicted:.2}");
    assert!(measured < predicted + 0.2, "{what}, {stage}: 2^{measured:.2}, sized by 2^{predicted:.2}");
    assert!(measured > predicted - 0.6, "{what}, {stage}: 2^{measured:.2}, sized by 2^{predicted:.2}");
}

/// Records whose lanes have the signs of what each leaf of a tree of `height` levels makes of one error at the root, turned round:
/// without pads their products would add up in the constant coefficient.
pub(in crate::schemes) fn aligned(degree: usize, height: u32, rows: usize) -> Vec<Vec<u8>> {
    let d = degree as i64;
    let automorphism = |x: &[i64], k: i64| {
        let mut out = vec![0; degree];
        for (i, x) in (0i64..).zip(x) {
            let to = i * k % (2 * d);
            out[(to % d) as usize] = if to < d { *x } else { -*x };
        }
        out
    };
    let turned = |x: &[i64], power: i64| {
        let mut out = vec![0; degree];
        for (i, x) in (0i64..).zip(x) {
            let to = (i + power).rem_euclid(2 * d);
            out[(to % d) as usize] = if to < d { *x } else { -*x };
        }
        out
    };
    // A key's error at the root goes to the even leaf, and with the other sign, turned, to the odd one.
    let error: Vec<i64> = (0..degree).map(|i| ((i * 0x9e37_79b1) >> 13 & 255) as i64 - 128).collect();
    let mut nodes = vec![error.clone(), turned(&error, -1).iter().map(|x| -x).collect()];
    for level in 1..height {
        let (width, k) = (1i64 << level, d / (1 << level) + 1);
        let mut odd = Vec::new();
        for node in &mut nodes {
            let image = automorphism(node, k);
            let difference: Vec<i64> = node.iter().zip(&image).map(|(a, b)| a - b).collect();
            odd.push(turned(&difference, -width));
            node.iter_mut().zip(&image).for_each(|(a, b)| *a += b);
        }
        nodes.extend(odd);
    }
    let record = |node: &Vec<i64>| {
        // The product's constant coefficient has coefficient i of one meet -(d - i) of the other.
        let lane = |i: usize| {
            let meets = if i == 0 { node[0] } else { -node[degree - i] };
            if meets > 0 { (1u64 << (LANE_BITS - 1)) - 1 } else { 1 << (LANE_BITS - 1) }
        };
        let mut bytes = Vec::new();
        blindcore_rlwe::rounding::pack(&(0..degree).map(lane).collect::<Vec<_>>(), LANE_BITS, &mut bytes);
        bytes
    };
    nodes[..rows].iter().map(record).collect()
}
