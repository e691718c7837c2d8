//! Three halves: Rosulek and Roy, "Three Halves Make a Whole?", CRYPTO 2021, ePrint 2021/749.
//!
//! A label `X` is two halves, `X_L` its upper 64 bits and `X_R` its lower. The evaluator of a gate with labels `A` and
//! `B` of the colours `i` and `j` hashes `A`, `B` and `A ^ B` and computes each half of the output's label from them,
//! from three ciphertexts `G0`, `G1`, `G2` of half a label each, and from halves of `A` and `B`:
//!
//! ```text
//!   C_L = H(A) ^ H(A ^ B) ^ i G0 ^ (i ^ j) G2 ^ [halves of A and B that the first row of R_ij chooses]
//!   C_R = H(B) ^ H(A ^ B) ^ j G1 ^ (i ^ j) G2 ^ [those of its second row]
//! ```
//!
//! Over the colours these are eight equations `V (C, G) = M H ^ (R ^ t) (A0, B0, offset)`, whose matrices `V` and `M`
//! have the same five dimensions of columns. They can be solved because `K R = K t`, where `K V = 0`.
//! The truth table `t` says where the gate's output is 1, hence `R` cannot be public; but `R_ij` alone is uniform among
//! four matrices whatever `t` is, for `R` is drawn with two random bits (the paper's dicing). It is sent as two
//! control bits for each of the four colours, under the same equations with one more bit of each hash: five bits.
//!
//! Row: `G0`, `G1`, `G2`, 8 bytes each, little-endian; a byte with the five control bits, from the lowest.
//!
//! Why this hides the values: of the six hashes the evaluator lacks three, under which the offset's halves come in as
//! linear functions, and those hashes make `(G, control bits)` uniform but for what the evaluator computes anyway;
//! the tests count this out over all hashes. What is asked of the hash is that `H(x ^ offset, t) ^ L(offset)` looks
//! random for linear `L` of the adversary's choice, if `(x, t)` never repeats with another `L`. For TMMO with an ideal
//! permutation, `pi(pi(x ^ offset) ^ t) ^ pi(x ^ offset)`, `L` changes nothing in the proof: unless inputs or
//! outputs of `pi` collide, which is as rare for uniform answers whatever `L` is added to them, the outer `pi` is fresh,
//! and its output covers `L(offset)`.
//!
//! The two random bits of a gate are bits of `H(offset)` under tweaks of its own: one more such query, with `x = 0`.
//! So the garbler needs no state, and all devices make the same tables.
//!
//! ```
//! use blindcore_accel::garble::GarblingScheme;
//!
//! assert_eq!(GarblingScheme::ThreeHalves { key: [1; 16] }.table_bytes(), 25);
//! ```

use zeroize::Zeroizing;

use super::Label;
use super::hash::{hash, when};

/// Bytes of a gate's row.
pub const ROW: usize = 25;

/// Gates whose random bits come out of one hash.
const GATES_A_HASH: u64 = 64;

/// Garbles gates that follow each other in number: labels of 0 in, labels of 0 out.
pub(super) fn garble(
    key: &[u8; 16],
    offset: Label,
    first: u64,
    pairs: &[(Label, Label)],
    tables: &mut [u8],
) -> Vec<Label> {
    let zeros = |(a, b): &(Label, Label)| (a ^ when(a, offset), b ^ when(b, offset));
    let inputs = (first..).zip(pairs).flat_map(|(gate, pair)| {
        let [t_a, t_b, t_both] = tweaks(gate);
        let (a, b) = zeros(pair);
        let both = a ^ b;
        [(a, t_a), (a ^ offset, t_a), (b, t_b), (b ^ offset, t_b), (both, t_both), (both ^ offset, t_both)]
    });
    let hashes = hash(key, inputs);
    let dice = Zeroizing::new(dice(key, offset, first, pairs.len()));
    let (hashes, _) = hashes.as_chunks::<6>();
    let (rows, _) = tables.as_chunks_mut::<ROW>();
    let outs = (first..).zip(pairs).zip(hashes).zip(rows).map(|(((gate, (a, b)), hashes), row)| {
        let gate = gate - first_of_dice(first);
        let dice = dice[(gate / GATES_A_HASH) as usize] >> (2 * (gate % GATES_A_HASH));
        let out;
        (out, *row) = garble_gate(*a, *b, offset, dice, hashes);
        out
    });
    outs.collect()
}

/// Evaluates gates that follow each other in number: active labels in, active labels out.
pub(super) fn evaluate(key: &[u8; 16], first: u64, pairs: &[(Label, Label)], tables: &[u8]) -> Vec<Label> {
    let inputs = (first..).zip(pairs).flat_map(|(gate, (a, b))| {
        let [t_a, t_b, t_both] = tweaks(gate);
        [(*a, t_a), (*b, t_b), (a ^ b, t_both)]
    });
    let hashes = hash(key, inputs);
    let (hashes, _) = hashes.as_chunks::<3>();
    let (rows, _) = tables.as_chunks::<ROW>();
    let gates = pairs.iter().zip(hashes).zip(rows);
    gates.map(|(((a, b), hashes), row)| evaluate_gate(*a, *b, hashes, row)).collect()
}

/// The random bits of gates that follow each other in number, two a gate: secret. The first two are those of gate
/// [`first_of_dice`].
#[must_use]
pub fn dice(key: &[u8; 16], offset: Label, first: u64, gates: usize) -> Vec<Label> {
    let groups = first / GATES_A_HASH..(first + gates as u64).div_ceil(GATES_A_HASH);
    hash(key, groups.map(|group| (offset, dice_tweak(group))))
}

/// The gate that [`dice`] for gates from `first` on begin with: it, or one a few before it.
#[must_use]
pub fn first_of_dice(first: u64) -> u64 {
    first / GATES_A_HASH * GATES_A_HASH
}

/// The tweaks of a gate's three hashes: which hash in the upper half, the gate's number in the lower.
fn tweaks(gate: u64) -> [Label; 3] {
    [0, 1, 2].map(|which: Label| which << 64 | Label::from(gate))
}

/// The tweak of the hash that random bits of 64 gates come from.
fn dice_tweak(group: u64) -> Label {
    3 << 64 | Label::from(group)
}

/// One gate from labels of 0: the output's label of 0, and the row.
///
/// `dice`: the lowest two bits are the random ones. `hashes` are of the labels of both colours, first colour 0: of `a`,
/// of `b`, and of `a ^ b`.
fn garble_gate(a: Label, b: Label, offset: Label, dice: Label, hashes: &[Label; 6]) -> (Label, [u8; ROW]) {
    let (zero_a, zero_b) = (a ^ when(&a, offset), b ^ when(&b, offset));
    // Where the output is 1: at these colours.
    let (true_a, true_b) = (!a & 1, !b & 1);
    let (mut labels, mut controls) = ([0; 4], [0; 4]);
    for colors in 0..4 {
        let (i, j) = (colors as Label >> 1, colors as Label & 1);
        let h = |which: usize, color: Label| {
            // Colours are not secret here: all four are gone through.
            hashes[2 * which + color as usize]
        };
        let (label, spare) = combine(h(0, i), h(1, j), h(2, i ^ j));
        // One of four, whatever the other summands are.
        let control = (dice >> 1 & 1) << 64
            ^ dice & 1
            ^ when(&true_a, CONTROL_A[colors])
            ^ when(&true_b, CONTROL_B[colors]);
        let (active_a, active_b) = (zero_a ^ when(&i, offset), zero_b ^ when(&j, offset));
        let one = !(i ^ true_a) & !(j ^ true_b);
        labels[colors] = label ^ chosen(control, active_a, active_b) ^ when(&one, offset);
        controls[colors] = spare ^ control;
    }
    let (out, halves) = solve(&labels);
    let (first, rest) = solve(&controls);
    let mut row = [0; ROW];
    for (bytes, half) in row.as_chunks_mut::<8>().0.iter_mut().zip(halves) {
        *bytes = half.to_le_bytes();
    }
    let bits = [upper(first), lower(first), rest[0], rest[1], rest[2]];
    row[ROW - 1] = bits.iter().rev().fold(0, |byte, bit| byte << 1 | (bit & 1) as u8);
    (out, row)
}

/// One gate from active labels: the output's. `hashes`: of `a`, of `b`, and of `a ^ b`.
fn evaluate_gate(a: Label, b: Label, hashes: &[Label; 3], row: &[u8; ROW]) -> Label {
    let (label, spare) = combine(hashes[0], hashes[1], hashes[2]);
    let (halves, _) = row.as_chunks::<8>();
    let halves = [0, 1, 2].map(|i| u64::from_le_bytes(halves[i]));
    let bits: [u64; 5] = std::array::from_fn(|i| u64::from(row[ROW - 1] >> i & 1));
    let control = spare ^ join(bits[0], bits[1]) ^ masked(a, b, [bits[2], bits[3], bits[4]]);
    label ^ masked(a, b, halves) ^ chosen(control, a, b)
}

/// The part of R that tells where the output is 1 along the first wire, by colours `2 i + j`: how often the two
/// matrices of [`chosen`] are added, in the lowest bits of both halves.
const CONTROL_A: [Label; 4] = [0, 1 << 64 | 1, 1, 1 << 64];
/// The same for the second wire.
const CONTROL_B: [Label; 4] = [0, 1 << 64, 1 << 64 | 1, 1];

/// `R_ij (a, b)`: halves of the active labels, as the control bits in the lowest bit of each half choose, and the part
/// that is the same for every AND.
fn chosen(control: Label, a: Label, b: Label) -> Label {
    const LOWER: Label = u64::MAX as Label;
    let first = a.rotate_left(64) ^ b ^ (a & !LOWER);
    let second = a ^ b.rotate_left(64) ^ (b & LOWER);
    let fixed = when(&!a, b & !LOWER) ^ when(&!b, a & LOWER);
    when(&(control >> 64), first) ^ when(&control, second) ^ fixed
}

/// M's rows for one pair of colours: halves of a label from the hashes' lower halves, control bits from their upper.
fn combine(of_a: Label, of_b: Label, of_both: Label) -> (Label, Label) {
    let (left, right) = (of_a ^ of_both, of_b ^ of_both);
    (join(lower(left), lower(right)), join(upper(left), upper(right)))
}

/// V's rows for the colours of `a` and `b`, times the ciphertexts.
fn masked(a: Label, b: Label, [g0, g1, g2]: [u64; 3]) -> Label {
    when(&a, join(g0, 0)) ^ when(&b, join(0, g1)) ^ when(&(a ^ b), join(g2, g2))
}

/// V's left inverse: what solves the equations whose right sides these are, by colours.
fn solve(sides: &[Label; 4]) -> (Label, [u64; 3]) {
    let both = |side: Label| upper(side) ^ lower(side);
    let g0 = both(sides[0]) ^ both(sides[2]);
    let g1 = both(sides[0]) ^ both(sides[1]);
    (sides[0], [g0, g1, upper(sides[2]) ^ upper(sides[3])])
}

fn upper(label: Label) -> u64 {
    (label >> 64) as u64
}

fn lower(label: Label) -> u64 {
    label as u64
}

fn join(left: u64, right: u64) -> Label {
    Label::from(left) << 64 | Label::from(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(state: &mut u64) -> Label {
        let mut next = || {
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let x = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            x ^ x >> 31
        };
        join(next(), next())
    }

    #[test]
    fn every_value_and_color_with_every_dice_evaluates() {
        let mut state = 1;
        for case in 0..64 * 20 {
            let bits = |i: u32| (case >> i & 1) as Label;
            let offset = random(&mut state) | 1;
            let a = random(&mut state) & !1 | bits(0);
            let b = random(&mut state) & !1 | bits(1);
            let (x, y) = (bits(2), bits(3));
            let hashes: [Label; 6] = std::array::from_fn(|_| random(&mut state));
            let (out, row) = garble_gate(a, b, offset, bits(4) | bits(5) << 1, &hashes);
            assert_eq!(row[ROW - 1] >> 5, 0);
            let (active_a, active_b) = (a ^ when(&x, offset), b ^ when(&y, offset));
            let (i, j) = ((active_a & 1) as usize, (active_b & 1) as usize);
            let known = [hashes[i], hashes[2 + j], hashes[4 + (i ^ j)]];
            let got = evaluate_gate(active_a, active_b, &known, &row);
            assert!(got == out ^ when(&(x & y), offset), "case {case}");
        }
    }

    /// The paper's privacy for one gate, counted out: the rows that an evaluator with given labels and hashes can see
    /// come as often for every pair of values and for every offset, over all hashes that it lacks and all dice.
    #[test]
    fn rows_are_distributed_alike_for_all_values_and_offsets() {
        // Halves of two bits. The bit at 64 of a hash is its spare one.
        let small = |bits: u32| join(u64::from(bits >> 2 & 3), u64::from(bits & 3));
        let mut state = 7;
        for _ in 0..3 {
            for colors in 0..4u32 {
                let active_a = small((random(&mut state) as u32 & !1) | colors >> 1);
                let active_b = small((random(&mut state) as u32 & !1) | colors & 1);
                let known: [Label; 3] = std::array::from_fn(|_| random(&mut state) & join(1, 3));
                let mut wanted: Option<Vec<u32>> = None;
                for offset in (1..16).step_by(2).map(small) {
                    for values in 0..4 {
                        let a = active_a ^ when(&(values >> 1), offset);
                        let b = active_b ^ when(&(values & 1), offset);
                        let mut counts = vec![0u32; 64 * 32];
                        for lacked in 0..1u64 << 11 {
                            let dice = Label::from(lacked >> 9);
                            let unknown = [0, 3, 6].map(|i| join(lacked >> (i + 2) & 1, lacked >> i & 3));
                            let mut hashes = [0; 6];
                            let (i, j) = (colors as usize >> 1, colors as usize & 1);
                            for (which, color) in [i, j, i ^ j].into_iter().enumerate() {
                                hashes[2 * which + color] = known[which];
                                hashes[2 * which + 1 - color] = unknown[which];
                            }
                            let (out, row) = garble_gate(a, b, offset, dice, &hashes);
                            // What the evaluator makes of it is a function of what was counted.
                            let one = Label::from(values == 3);
                            assert!(
                                evaluate_gate(active_a, active_b, &known, &row) == out ^ when(&one, offset)
                            );
                            let halves = usize::from(row[0] | row[8] << 2 | row[16] << 4);
                            counts[halves << 5 | usize::from(row[24])] += 1;
                        }
                        // Not only alike: uniform.
                        assert!(counts.iter().all(|count| *count == 1));
                        assert!(*wanted.get_or_insert_with(|| counts.clone()) == counts);
                    }
                }
            }
        }
    }

    /// One wire on both sides, or a wire and its inverse, and tweaks that no two hashes share.
    #[test]
    fn dependent_wires_and_all_tweaks() {
        let key = [3; 16];
        let mut state = 11;
        for case in 0..200 {
            let offset = random(&mut state) | 1;
            let a = random(&mut state);
            let first = [0, 62, (1 << 63) - 70][case % 3];
            let pairs: Vec<_> = (0..70).map(|i| (a, if i % 2 == 0 { a } else { a ^ offset })).collect();
            let mut tables = vec![0; ROW * pairs.len()];
            let outs = garble(&key, offset, first, &pairs, &mut tables);
            for value in [0, offset] {
                // The inverse has the same active label, for the other value.
                let active: Vec<_> = pairs.iter().map(|(a, _)| (a ^ value, a ^ value)).collect();
                let got = evaluate(&key, first, &active, &tables);
                for (gate, (got, zero)) in got.iter().zip(&outs).enumerate() {
                    // a AND a; then a AND its inverse, that is 0.
                    let want = if gate % 2 == 0 { zero ^ value } else { *zero };
                    assert!(*got == want, "gate {gate}");
                }
            }
        }
        let gates = [0, 1, 63, 64, (1 << 62) - 1, 1 << 62, (1 << 63) - 1];
        let mut all: Vec<_> = gates.iter().flat_map(|gate| tweaks(*gate)).collect();
        all.extend(gates.iter().map(|group| dice_tweak(*group)));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    /// The paper's conditions on the matrices themselves, read off the functions by linearity.
    #[test]
    fn matrices_meet_the_papers_conditions() {
        // K's rows by equations 00 L, 00 R, 01 L, ...: what vanishes on V vanishes on M.
        let sides = |labels: [Label; 4]| -> Vec<bool> {
            labels.iter().flat_map(|side| [side >> 64 & 1 == 1, side & 1 == 1]).collect()
        };
        let colors = [(0, 0), (0, 1), (1, 0), (1, 1)];
        let mut v: Vec<_> = [join(1, 0), join(0, 1)].map(|c| sides([c; 4])).into();
        for unit in [[1, 0, 0], [0, 1, 0], [0, 0, 1]] {
            v.push(sides(colors.map(|(i, j)| masked(i, j, unit))));
        }
        let kernel: Vec<u32> = (1..256)
            .filter(|k| {
                v.iter().all(|column| {
                    column.iter().enumerate().filter(|(row, bit)| **bit && k >> row & 1 == 1).count() % 2 == 0
                })
            })
            .collect();
        assert_eq!(kernel.len(), 7, "V has rank 5");
        for hashed in 0..6 {
            let h = |which: usize, color: Label| Label::from(2 * which + color as usize == hashed);
            let column = sides(colors.map(|(i, j)| combine(h(0, i), h(1, j), h(2, i ^ j)).0));
            for k in &kernel {
                let sum = column.iter().enumerate().filter(|(row, bit)| **bit && k >> row & 1 == 1).count();
                assert_eq!(sum % 2, 0, "K M = 0");
            }
        }
        // The control bits alone: for each colour all four, each once over the dice, wherever the output is 1.
        for control in [CONTROL_A, CONTROL_B] {
            for k in &kernel {
                let sum =
                    sides(control).iter().enumerate().filter(|(row, bit)| **bit && k >> row & 1 == 1).count();
                assert_eq!(sum % 2, 0, "control bits lie in V's columns");
            }
        }
        // Solving is V's left inverse.
        let mut state = 5;
        for _ in 0..50 {
            let (c, g) = (random(&mut state), [0, 1, 2].map(|_| lower(random(&mut state))));
            assert!(solve(&colors.map(|(i, j)| c ^ masked(i, j, g))) == (c, g));
        }
    }
}
